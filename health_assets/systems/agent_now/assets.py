"""Agents now: whether the last hours' failures are more than chance at the expected success rate."""

from collections.abc import Mapping

import ibis
from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.systems.agent_now import FORMULA_VERSION
from health_assets.systems.agent_now.agent_now import AGENTS_AT_ONCE, agent_now
from health_assets.systems.agent_now.names import VERDICTS
from health_assets.systems.agent_now.now_components import now_components

AGENTS_ON_A_CLUSTER = 2**31
"""All of them: each machine has a part of them anyway."""


def _components(inputs: Inputs) -> ir.Table:
    return now_components(inputs.table("executions"))


def _verdicts(inputs: Inputs) -> ir.Table:
    settings, session = inputs.settings, inputs.session
    rows = agent_now(
        inputs.table("health_components", back_hours=settings.lookback_hours),
        inputs.table("now_components", back_hours=settings.lookback_hours),
        inputs.targets,
        inputs.hours,
        settings.lookback_hours,
        settings.failing_threshold,
        persist=lambda rows: session.persist(rows)[0],
        fetch=session.arrow,
        grouped=session.grouped,
        agents_at_once=AGENTS_ON_A_CLUSTER if session.is_distributed else AGENTS_AT_ONCE,
        trailing=inputs.trailing,
    )
    return inputs.with_as_of(rows)


def _longest_streaks(rows: ir.Table) -> ir.Table:
    longest = rows.group_by("agent_id").aggregate(failed_at_end=rows.failed_at_end.max())
    return longest.order_by(ibis.desc("failed_at_end"), "agent_id")


def _failing_first(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    urgency = latest.verdict.cases(*((verdict, place) for place, verdict in enumerate(VERDICTS)))
    return latest.order_by(urgency, "since", "agent_id").select(
        "hour", "agent_id", "verdict", "since", "executions_1h", "failures_1h", "failed_in_a_row", "p_chance",
        "executions_6h", "failures_6h", "expected_success_rate",
    )  # fmt: skip


def _agents_by_verdict(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {f"agents {verdict}": (rows.verdict == verdict).sum() for verdict in VERDICTS}


ASSETS = (
    Derived(
        name="now_components", upstream=("executions",), rows=_components, preview_title="longest streaks of failures",
        preview_rows=_longest_streaks, blocked_by=("raw_logs",), is_component=True, has_priority=True,
        empty_without="an execution that failed, the last of an agent in the hour", formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="agent_now", upstream=("health_components", "now_components"), rows=_verdicts,
        preview_title="failing agents", preview_rows=_failing_first,
        empty_without="a known agent", back_hours=lambda settings: settings.lookback_hours,
        curves=_agents_by_verdict, has_priority=True, formula_version=FORMULA_VERSION,
    ),
)  # fmt: skip
