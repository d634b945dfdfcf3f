"""Session scores (source 5): risks of traces, and reliability and consistency of sessions."""

from dataclasses import replace

import ibis
from ibis import ir

from health_assets.defs.derived import Derived, Inputs
from health_assets.hours import HourRange
from health_assets.scoring.session_scores import session_scores, traces_to_score
from health_assets.scoring.trace_risks import trace_risks

TRACES_AT_ONCE = 10_000_000
"""Traces, each counted once for every hour that scores it, that one statement may sum up within the memory limit."""


def _traces(inputs: Inputs) -> ir.Table:
    back = inputs.settings.lookback_hours
    executions, signals = (inputs.table(name, back_hours=back) for name in ("executions", "signals"))
    return trace_risks(executions, signals, inputs.hours, inputs.settings)


def _sessions(inputs: Inputs) -> ir.Table:
    pieces = _pieces(inputs)
    if len(pieces) == 1:
        return _scored(inputs)
    return ibis.union(*(inputs.session.kept(_scored(replace(inputs, hours=piece)))[0] for piece in pieces))


def _scored(inputs: Inputs) -> ir.Table:
    back = inputs.settings.lookback_hours
    versions, executions, signals = (
        inputs.table(name, back_hours=back) for name in ("trace_risks", "executions", "signals")
    )
    return session_scores(versions, executions, signals, inputs.hours, inputs.settings)


def _pieces(inputs: Inputs) -> list[HourRange]:
    """The hours in pieces that fit into memory."""
    versions = inputs.table("trace_risks", back_hours=inputs.settings.lookback_hours)
    counted = inputs.session.arrow(traces_to_score(versions, inputs.hours)).to_pylist()
    traces = {row["hour"]: row["traces"] for row in counted}
    pieces, start, total = [], inputs.hours.start, 0
    for hour in inputs.hours:
        total += traces.get(hour, 0)
        if total > TRACES_AT_ONCE and hour > start:
            pieces.append(HourRange(start, hour))
            start, total = hour, traces.get(hour, 0)
    return [*pieces, HourRange(start, inputs.hours.end)]


def _riskiest_traces(rows: ir.Table) -> ir.Table:
    evaluated = rows.filter(rows.step_risk.notnull())
    return evaluated.order_by(ibis.desc("step_risk"), "trace_id", "hour").select(
        "hour", "trace_id", "session_id", "agent_id", "confidence_risk", "loop_risk", "tool_risk", "coherence_risk",
        "step_risk", "weighted_uncertainty",
    )  # fmt: skip


def _worst_sessions(rows: ir.Table) -> ir.Table:
    return rows.order_by("agent_reliability", "agent_consistency", "hour", "session_id").select(
        "hour", "session_id", "agent_id", "agent_reliability", "agent_consistency", "total_traces",
        "traces_evaluated", "max_risk", flagged=rows.flagged_traces.length(),
    )  # fmt: skip


ASSETS = (
    Derived(
        "trace_risks", ("executions", "signals"), _traces, "riskiest traces", _riskiest_traces,
        gates=("raw_logs",), needs="an execution with a session or with signals",
        back_hours=lambda settings: settings.lookback_hours,
        is_component=True,
    ),
    Derived(
        "session_scores", ("trace_risks", "executions", "signals"), _sessions, "worst sessions", _worst_sessions,
        needs="an execution or signals with a session", back_hours=lambda settings: settings.lookback_hours,
    ),
)  # fmt: skip
