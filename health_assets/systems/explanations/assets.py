"""Assets of the evidence behind scores: the events that weigh most, of each hour and of each window."""

import ibis
from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.systems.explanations import FORMULA_VERSION
from health_assets.systems.explanations.evidence import evidence_components, score_evidence


def _components(inputs: Inputs) -> ir.Table:
    return evidence_components(inputs.table("executions"), inputs.table("trigger_events"), inputs.targets)


def _evidence(inputs: Inputs) -> ir.Table:
    window_hours = inputs.settings.window_hours
    components = inputs.table("evidence_components", back_hours=window_hours)
    rows = score_evidence(components, inputs.table("agent_health"), inputs.hours, window_hours)
    return inputs.with_windows(rows, "evidence_components", window_hours)


def _most_evidence(rows: ir.Table) -> ir.Table:
    counted = rows.group_by(["agent_id", "kind"]).aggregate(kept_events=rows.count(), last_at=rows.happened_at.max())
    return counted.order_by(ibis.desc("kept_events"), "agent_id", "kind")


def _latest_evidence(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by("agent_id", "kind", "rank").select(
        "hour", "agent_id", "kind", "rank", "event_id", "happened_at", "runtime_s"
    )


ASSETS = (
    Derived(
        name="evidence_components",
        upstream=("executions", "trigger_events"),
        rows=_components,
        preview_title="agents with most evidence",
        preview_rows=_most_evidence,
        blocked_by=("raw_logs",),
        empty_without="an event that counts against an agent",
        is_component=True,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="score_evidence",
        upstream=("evidence_components",),
        rows=_evidence,
        preview_title="evidence of the latest hour",
        preview_rows=_latest_evidence,
        empty_without="an agent that lost points to an event",
        back_hours=lambda settings: settings.window_hours,
        same_hour_upstream=("agent_health",),
        formula_version=FORMULA_VERSION,
    ),
)
