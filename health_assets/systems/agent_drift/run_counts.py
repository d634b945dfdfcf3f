"""Hourly counts of runs that drift is found in, by number of the agent and place, the number of the hour."""

from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.relations import time_literal
from health_assets.systems.agent_drift.names import FEWEST_RUNS, LOOK_BACK_HOURS

KEYS = ("number", "place")
RUN_COUNTS = ("executions", "failures")


def agents_with_past(components: ir.Table) -> ir.Table:
    """`agent_id` of the agents with enough executions for a past.

    Args:
        components: `release_components` of the hours to find drift in, and of the look-back before them.
    """
    summed = components.group_by("agent_id").aggregate(executions=components.executions.sum())
    return summed.filter(summed.executions >= FEWEST_RUNS).select("agent_id")


def run_counts(components: ir.Table, agents: ir.Table, hours: HourRange) -> ir.Table:
    """One row per agent, version, model and hour: `KEYS` and `RUN_COUNTS`, which add up.

    Args:
        components: as of `agents_with_past`.
        agents: `agent_id` and `number` of the agents that count.
        hours: the hours to find drift in.
    """
    rows = components.inner_join(agents, "agent_id")
    counts = {"executions": rows.executions, "failures": rows.executions - rows.successes}
    return rows.select(
        "number", place=place(rows.hour, hours), **{name: value.cast("int32") for name, value in counts.items()}
    )


def place(hour: ir.TimestampValue, hours: HourRange) -> ir.IntegerValue:
    """Number of an hour, from 0 for the first of the look-back of the first of these hours."""
    first = time_literal(hours.extended_back(LOOK_BACK_HOURS - 1).start)
    seconds = hour.epoch_seconds().cast("int64") - first.epoch_seconds().cast("int64")
    return (seconds / 3600).floor().cast("int32")
