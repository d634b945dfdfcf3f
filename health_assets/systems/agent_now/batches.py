"""Batches of agents now."""

import ibis
import pandas as pd
from ibis import _, ir

from health_assets.core.hours import HourRange
from health_assets.quality.batches import Source, hours, hours_with_windows, rows, with_fact
from health_assets.scoring.trailing_counts import Trailing
from health_assets.systems.agent_now.names import RECOVERING
from health_assets.warehouse.partition_states import PartitionStates

CHANCES = {
    "p_chance": ("executions_1h", "failed_in_a_row"), "p_chance_6h": ("executions_6h",),
    "success_share_1h": ("executions_1h",), "success_share_6h": ("executions_6h",),
}  # fmt: skip
"""Each value that may be null, and the counts of which one makes it known."""


def streaks(source: Source) -> ir.Table:
    """Rows of `now_components`."""
    return rows(source)


def hours_of_streaks(source: Source) -> pd.DataFrame:
    """`hours`, with the agents whose last execution failed, as rows and as their executions tell."""
    executions = source.session.hours_of("executions", source.hours)
    latest = executions.group_by(["hour", "agent_id"]).aggregate(
        last=executions.ended_at.max(), last_success=executions.ended_at.max(where=executions.succeeded)
    )
    # of executions that ended in the same microsecond, the file and line decide, which is left to the formula
    ended_badly = latest.last_success.isnull() | (latest.last > latest.last_success)
    due = source.facts(latest.filter(ended_badly), _.count())
    frame = with_fact(hours(source), "agents_with_a_streak", source.counts("now_components"))
    return with_fact(frame, "agents_that_ended_badly", {hour: count for hour, (count,) in due.items()})


def verdicts(source: Source) -> ir.Table:
    """Rows of `agent_now`, with how many values are known, and how many there should be."""
    own = rows(source)
    known = [own[name].notnull().cast("int64") for name in CHANCES]
    due = []
    for counts in CHANCES.values():
        is_known = ibis.literal(False)
        for count in counts:
            is_known |= own[count] > 0
        due.append(is_known.cast("int64"))
    return own.mutate(
        values_known=sum(known, ibis.literal(0)),
        values_due=sum(due, ibis.literal(0)),
        says_good_hours=own.good_hours.notnull().cast("int64"),
        is_recovering=(own.verdict == RECOVERING).cast("int64"),
    )


def hours_of_verdicts(source: Source) -> pd.DataFrame:
    """`hours`, with the executions of the last hour of all agents, and those of their components.

    Of an hour that was not over, the last hour is no whole one: its executions themselves are counted.
    """
    frame = hours_with_windows(source, "executions_1h", window_hours=1)
    for hour, until in PartitionStates(source.session).as_of("agent_now", source.hours).items():
        executions = source.session.hours_of("executions", HourRange.of(hour).extended_back(1))
        own = executions.semi_join(source.session.hours_of("agent_now", HourRange.of(hour)), "agent_id")
        last = Trailing(executions=own, hour=hour, until=until).of("1h")
        frame.loc[frame["hour"] == hour, "executions_of_hours"] = source.session.count(last)
    return frame
