"""Context for rules about agents: an hour's scores beside the best of the hours before.

What belongs here: picking, of a large fleet, the agents that a rule could have a word about, with what it compares
them with. What does not: the verdict (`health_assets.apps.alerts.rules`).
"""

from datetime import datetime, timedelta

import ibis
from ibis import ir

from health_assets.apps.alerts.facts import MinimumSample
from health_assets.scoring.relations import lookup

CONTEXT_HOURS = 24
"""How far back an agent's best state is looked for."""


def agents_worth_a_look(
    scores: ir.Table,
    watched: ir.Table,
    hour: datetime,
    *,
    window_hours: int,
    drop_hours: int,
    drop_points: float,
    floor: float,
    least_of_drop: MinimumSample,
    least_of_state: MinimumSample,
) -> ir.Table:
    """Rows of `agent_health` of an hour, of watched agents and of those that are not healthy or fell.

    Args:
        scores: `agent_health` of the hour and of at least `CONTEXT_HOURS` and `drop_hours` before it.
        watched: agents (`agent_id`) with an open incident.
        hour: the hour.
        window_hours: length of the evaluation window.
        drop_hours: how many hours before are compared with.
        drop_points: a score that is further below the highest of those is of interest.
        floor: a score below it is.
        least_of_drop: scores that rest on less are not compared with.
        least_of_state: nor are states that rest on less than this.

    Returns:
        All columns of `agent_health`, with `is_covered`, `best_state_before` (0 healthy, 1 degraded, 2 unhealthy),
        `peak_before` and `was_active_before`.
    """
    now = scores.filter(scores.hour == hour)
    before = scores.filter(scores.hour < hour, scores.hours_covered >= window_hours)
    before = before.mutate(
        is_recent=before.hour >= hour - timedelta(hours=drop_hours),
        is_of_context=before.hour >= hour - timedelta(hours=CONTEXT_HOURS),
        state_place=before.state.cases(("healthy", 0), ("degraded", 1), else_=2),
    )
    context = before.group_by("agent_id").aggregate(
        best_state_before=before.state_place.min(where=before.is_of_context & _is_enough(before, least_of_state)),
        peak_before=before.health_score.max(where=before.is_recent & _is_enough(before, least_of_drop)),
        most_executions=before.n.max(where=before.is_of_context),
    )
    rows = lookup(lookup(now, context, "agent_id"), watched.mutate(is_watched=ibis.literal(True)), "agent_id")
    rows = rows.mutate(
        is_covered=rows.hours_covered >= window_hours,
        was_active_before=(rows.most_executions > 0).fill_null(False),
        is_watched=rows.is_watched.fill_null(False),
    )
    is_of_interest = (
        rows.is_watched
        | rows.state.isin(["degraded", "unhealthy"])
        | ((rows.state == "inactive") & rows.was_active_before)
        | (rows.health_score < floor).fill_null(False)
        | (rows.peak_before - rows.health_score > drop_points).fill_null(False)
    )
    return rows.filter(is_of_interest).drop("most_executions", "is_watched")


def _is_enough(scores: ir.Table, least: MinimumSample) -> ir.BooleanValue:
    return (scores.n >= least.executions) & (scores.points_at_stake >= least.points_at_stake)
