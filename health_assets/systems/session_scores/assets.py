"""Session scores (source 5): risks of traces, and reliability and consistency of sessions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import ibis
from ibis import ir

from health_assets.core.evaluators import evaluators_of
from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline.derived import Derived, Inputs
from health_assets.schema.log_fields import SIGNALS
from health_assets.scoring.evaluated_results import evaluated_results, rules_of
from health_assets.scoring.relations import without_rows
from health_assets.systems.session_scores import FORMULA_VERSION
from health_assets.systems.session_scores.computed_signals import computed_signals
from health_assets.systems.session_scores.merged_traces import STATEMENT, as_statements
from health_assets.systems.session_scores.session_scores import reach_of_sessions, session_scores, worst_first
from health_assets.systems.session_scores.trace_risks import trace_risks
from health_assets.systems.session_scores.unmapped_evaluators import results_by_name

TRACES_AT_ONCE = 10_000_000
"""Traces, each once for every hour that scores it, that one statement sums up within the default memory limit."""


def _computed(inputs: Inputs) -> ir.Table:
    back = inputs.settings.lookback_hours
    tool_calls, model_calls = (inputs.table(name, back_hours=back) for name in ("tool_calls", "model_calls"))
    return computed_signals(inputs.table("executions"), tool_calls, model_calls, back)


def _evaluated(inputs: Inputs) -> ir.Table:
    back = inputs.settings.lookback_hours
    evaluations, executions, *calls = (
        inputs.table(name, back_hours=back) for name in ("evaluations", "executions", "model_calls", "tool_calls")
    )
    entries = inputs.targets.evaluators
    names = results_by_name(inputs.session, evaluations) if entries else ()
    rows = evaluated_results(evaluations, executions, calls, rules_of(names, entries), inputs.hours, back)
    return rows if evaluators_of(names, entries) else without_rows(rows)  # else all executions would be looked at


def _stated(inputs: Inputs) -> ir.Table:
    """The signals that records of the look-back state, and those that results of evaluators state."""
    signals, evaluated = (
        inputs.table(name, back_hours=inputs.settings.lookback_hours) for name in ("signals", "evaluated_signals")
    )
    return ibis.union(signals.select(*STATEMENT), as_statements(evaluated))


def _traces(inputs: Inputs) -> ir.Table:
    back = inputs.settings.lookback_hours
    executions, computed = (inputs.table(name, back_hours=back) for name in ("executions", "computed_signals"))
    return trace_risks(executions, _stated(inputs), computed, inputs.hours, inputs.settings)


def _sessions(inputs: Inputs) -> ir.Table:
    pieces = _pieces(inputs)
    if len(pieces) == 1:
        return _scored(inputs, pieces[0])
    return ibis.union(*(inputs.session.persist(_scored(inputs, piece))[0] for piece in pieces))


@dataclass
class _Piece:
    """Hours that are scored at once, the first hour that their sessions reach back to, and how much there is to sum."""

    hours: HourRange
    since: datetime
    traces: int = 0


def _pieces(inputs: Inputs) -> list[_Piece]:
    """The hours in pieces that fit into memory."""
    versions = inputs.table("trace_risks", back_hours=inputs.settings.lookback_hours)
    rows = inputs.session.arrow(reach_of_sessions(versions, inputs.hours, _cancellations(inputs))).to_pylist()
    reach = {row["hour"]: (row["since"], row["traces"]) for row in rows}
    pieces = [_Piece(HourRange(inputs.hours.start, inputs.hours.start), since=inputs.hours.start)]
    for hour in inputs.hours:
        since, traces = reach.get(hour, (hour, 0))
        last = pieces[-1]
        if last.traces and last.traces + traces > TRACES_AT_ONCE:
            last = _Piece(HourRange(hour, hour), since)
            pieces.append(last)
        last.hours = HourRange(last.hours.start, hour + HOUR)
        last.since, last.traces = min(last.since, since), last.traces + traces
    return pieces


def _scored(inputs: Inputs, piece: _Piece) -> ir.Table:
    inputs = replace(inputs, hours=piece.hours)
    versions, executions, computed = (
        inputs.table(name, back_hours=inputs.settings.lookback_hours)
        for name in ("trace_risks", "executions", "computed_signals")
    )
    scores = session_scores(
        versions, executions, _stated(inputs), computed, piece.hours, inputs.settings, piece.since,
        _cancellations(inputs),
    )  # fmt: skip
    return inputs.with_as_of(scores)


def _cancellations(inputs: Inputs) -> ir.Table | None:
    return inputs.table_if_any("cancellations", back_hours=inputs.settings.lookback_hours)


def _most_repeated(rows: ir.Table) -> ir.Table:
    found = rows.filter((rows.repeated_steps > 0) | (rows.tool_failures > 0))
    return found.order_by(ibis.desc("repeated_steps"), ibis.desc("tool_failures"), "hour", "execution_id").select(
        "hour", "execution_id", "agent_id", "steps", "repeated_steps", "tool_calls", "tool_failures",
        "repaired_failures", "signal_loop_detection", "signal_tool_correctness",
    )  # fmt: skip


def _repeated_and_failed(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {"repeated steps": rows.repeated_steps.sum(), "failed tool calls": rows.tool_failures.sum()}


def _lowest_signals(rows: ir.Table) -> ir.Table:
    signals = rows.filter(rows.signal.isin(SIGNALS))
    return signals.order_by("value", "hour", "execution_id", "evaluator", "source_file", "line_number").select(
        "hour", "evaluator", "signal", "value", "execution_id", "agent_id", "evaluated_at"
    )


def _signals_and_violations(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {
        "mean signal of evaluators": rows.value.mean(where=rows.signal.isin(SIGNALS)),
        "violations by evaluators": rows.is_violation.sum(),
        "failures by evaluators": rows.is_failure.sum(),
    }


def _riskiest_traces(rows: ir.Table) -> ir.Table:
    evaluated = rows.filter(rows.step_risk.notnull())
    return evaluated.order_by(ibis.desc("step_risk"), "trace_id", "hour").select(
        "hour",
        "trace_id",
        "session_id",
        "agent_id",
        "confidence_risk",
        "loop_risk",
        "tool_risk",
        "coherence_risk",
        "step_risk",
        "weighted_uncertainty",
    )


def _worst_sessions(rows: ir.Table) -> ir.Table:
    reliability = (rows.traces_evaluated > 0).ifelse(rows.agent_reliability, None)
    consistency = (rows.consistency_traces_evaluated > 0).ifelse(rows.agent_consistency, None)
    return worst_first(rows).select(
        "hour", "session_id", "agent_id", "runs", "failures", "cancelled_runs", agent_reliability=reliability,
        agent_consistency=consistency, total_traces="total_traces", traces_evaluated="traces_evaluated",
        max_risk="max_risk", flagged=rows.flagged_traces.length(), cost_usd="cost_usd", last_error="last_error",
    )  # fmt: skip


def _traces_flagged(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {"traces flagged": rows.is_flagged.sum(), "mean step risk": rows.step_risk.mean()}


def _sessions_failed(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {
        "sessions that fail reliability": (~rows.reliability_passed).sum(),
        "sessions that fail consistency": (~rows.consistency_passed).sum(),
        "mean agent reliability": rows.agent_reliability.mean(),
    }


ASSETS = (
    Derived(
        name="computed_signals",
        upstream=("tool_calls", "model_calls"),
        same_hour_upstream=("executions",),
        rows=_computed,
        preview_title="executions that repeat themselves",
        preview_rows=_most_repeated,
        blocked_by=("raw_logs",),
        empty_without="an execution with a call",
        back_hours=lambda settings: settings.lookback_hours,
        is_component=True,
        curves=_repeated_and_failed,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="evaluated_signals",
        upstream=("evaluations", "executions", "model_calls", "tool_calls"),
        rows=_evaluated,
        preview_title="lowest signals of evaluators",
        preview_rows=_lowest_signals,
        blocked_by=("raw_logs",),
        empty_without="a result of an evaluator that `evaluators:` of the targets file maps",
        back_hours=lambda settings: settings.lookback_hours,
        is_component=True,
        curves=_signals_and_violations,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="trace_risks",
        upstream=("executions", "signals", "computed_signals", "evaluated_signals"),
        rows=_traces,
        preview_title="riskiest traces",
        preview_rows=_riskiest_traces,
        blocked_by=("raw_logs",),
        empty_without="an execution with a session or with signals",
        back_hours=lambda settings: settings.lookback_hours,
        is_component=True,
        curves=_traces_flagged,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="session_scores",
        upstream=("trace_risks", "executions", "signals", "computed_signals", "evaluated_signals", "cancellations"),
        rows=_sessions,
        preview_title="worst sessions",
        preview_rows=_worst_sessions,
        empty_without="an execution, signals or a cancelled run with a session",
        back_hours=lambda settings: settings.lookback_hours,
        curves=_sessions_failed,
        formula_version=FORMULA_VERSION,
    ),
)
