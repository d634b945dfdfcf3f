"""Batches of the evidence behind scores."""

from collections import Counter
from datetime import datetime

import ibis
import pandas as pd
from ibis import _, ir

from health_assets.quality.batches import Source, hours, rows, with_fact, with_facts
from health_assets.scoring.relations import lookup
from health_assets.systems.explanations.names import MOST


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
    kept = source.facts("evidence_components", _.count(where=_.kind.isin(("failure", "trigger_failure"))))
    executions, triggers = (source.session.hours_of(name, source.hours) for name in ("executions", "trigger_events"))
    due: Counter[datetime] = Counter()
    for failures in (executions.filter(~executions.succeeded), triggers.filter(triggers.status == "failed")):
        by_agent = failures.group_by("hour", "agent_id").aggregate(events=ibis.least(failures.count(), MOST))
        due.update({hour: events for hour, (events,) in source.facts(by_agent, _.events.sum()).items()})
    frame = with_facts(hours(source), ["kept_failures"], kept)
    return with_fact(frame, "failures_due", due)
