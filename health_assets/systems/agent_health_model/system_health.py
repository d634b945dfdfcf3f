"""The health of the whole fleet (source 1, "Inactive Agents"): inactive agents count, but do not weigh."""

from ibis import ir

from health_assets.scoring.relations import lookup
from health_assets.systems.agent_health_model.names import STATES


def system_health(agents: ir.Table, hours: ir.Table) -> ir.Table:
    """One row per hour: the mean score of active agents (null if none), agents by state, and provisional ones.

    Args:
        agents: rows of `agent_health`.
        hours: the hours to give rows for, with the columns of `Windowed`.
    """
    # whole billionths add up to the same sum in any order, doubles do not
    billionths = (agents.health_score * 1e9).round().cast("int64")
    counted = agents.group_by("hour").aggregate(
        health_score=billionths.sum().cast("float64") / 1e9 / agents.health_score.count().nullif(0),
        agents=agents.count(),
        **{state: agents.count(where=agents.state == state) for state in STATES},
        provisional=agents.count(where=agents.is_provisional),
    )
    joined = lookup(hours, counted, "hour")
    counts = {name: joined[name].fill_null(0).cast("int64") for name in ("agents", *STATES, "provisional")}
    return joined.select(
        "hour", "as_of", "is_final", "window_start", "window_end", "hours_covered", "health_score",
        **counts,
    )  # fmt: skip
