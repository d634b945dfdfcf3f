"""Time at which an agent was last healthy: the one value that depends on earlier results instead of events.

The results of hours that are materialized count, and no others. So hours are completed with what
the hours before them know, and when hours are replaced, those after them may have to follow.
"""

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.relations import lookup


def with_last_healthy(rows: ir.Table, before: ir.Table) -> ir.Table:
    """Add `last_healthy_at`: the latest `window_end` up to the row's own at which the agent was healthy.

    Args:
        rows: rows of `agent_health_state` without it.
        before: `agent_id` and `last_healthy_at` as known before the first of these hours.
    """
    so_far = ibis.window(group_by="agent_id", order_by="hour", preceding=None, following=0)
    healthy_at = (rows.status == "healthy").ifelse(rows.window_end, ibis.null("timestamp('UTC')"))
    joined = lookup(
        rows.mutate(healthy_at=healthy_at.max().over(so_far)),
        before.select("agent_id", healthy_before="last_healthy_at"),
        "agent_id",
    )
    return joined.select(*rows.columns, last_healthy_at=ibis.coalesce(joined.healthy_at, joined.healthy_before))


def last_known(states: ir.Table) -> ir.Table:
    """`agent_id` and `last_healthy_at` as known after these rows of `agent_health_state`."""
    return states.group_by("agent_id").aggregate(last_healthy_at=states.last_healthy_at.max())


def unhealthy_since(states: ir.Table, hours: HourRange) -> ir.Table:
    """Rows after these hours of agents that have not been healthy since: the only ones that may have to follow them.

    Args:
        states: all rows of `agent_health_state`.
        hours: the hours that were replaced.

    Returns:
        `hour`, `agent_id` and `last_healthy_at`.
    """
    later = states.filter(states.hour >= hours.end)
    later = later.filter(later.last_healthy_at.isnull() | (later.last_healthy_at <= hours.end))
    return later.select("hour", "agent_id", "last_healthy_at")


def corrections(rows: ir.Table, known: ir.Table) -> ir.Table:
    """The rows whose `last_healthy_at` is wrong, with the right value.

    Args:
        rows: result of `unhealthy_since`.
        known: `agent_id` and `last_healthy_at` as known after the hours that were replaced.

    Returns:
        `hour`, `agent_id` and `last_healthy_at`.
    """
    joined = lookup(rows, known.select("agent_id", known_at="last_healthy_at"), "agent_id")
    wrong = joined.filter(~joined.last_healthy_at.identical_to(joined.known_at))
    return wrong.select("hour", "agent_id", last_healthy_at="known_at")
