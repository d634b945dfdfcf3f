"""Batches of the evidence behind scores."""

import ibis
import pandas as pd
from ibis import ir

from health_assets.quality.batches import Source, hours, rows, with_facts
from health_assets.scoring.relations import lookup
from health_assets.systems.explanations.evidence import MOST


def evidence_of_scores(source: Source) -> ir.Table:
    """Rows of `score_evidence`, with whether the score that they explain is below 100."""
    scores = source.session.hours_of("agent_health", source.hours)
    lost = scores.select("hour", "agent_id", lost_points=scores.health_score < 100)
    own = lookup(rows(source), lost, ["hour", "agent_id"])
    return own.mutate(
        has_lost=own.agent_id.notnull().ifelse(own.lost_points.fill_null(False).cast("int64"), ibis.null("int64")),
        is_evidence=ibis.literal(1, "int64"),
    ).drop("lost_points")


def hours_of_evidence(source: Source) -> pd.DataFrame:
    """`hours`, with the failures and failed triggers that `evidence_components` has, and those that it should have."""
    kinds = "kind IN ('failure', 'trigger_failure')"
    kept = source.by_hour("SELECT hour, count(*) FROM evidence_components", kinds)
    due: dict = {}
    for table, failed in (("executions", "NOT succeeded"), ("trigger_events", "status = 'failed'")):
        by_agent = (
            f"(SELECT hour, least(count(*), {MOST}) AS events FROM {table} WHERE {failed} GROUP BY hour, agent_id)"
        )
        counted = source.by_hour(f"SELECT hour, sum(events)::BIGINT FROM {by_agent} AS failures")
        for hour, (events,) in counted.items():
            due[hour] = (due.get(hour, (0,))[0] + events,)
    frame = with_facts(hours(source), ["kept_failures"], kept)
    return with_facts(frame, ["failures_due"], due)
