"""The hourly counts that drift is found in, by agent and place: the number of the hour from the first of all.

Of a single hour, hours of the past that every sum takes together are added up in the warehouse, as if all had been in
the newest of them: of each day back the hours 0, 1, 2 to 3, 4 to 7, 8 to 11 and 12 to 23. All sums are of integers, so
a range of hours comes to the same.
"""

from collections.abc import Sequence

from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.relations import time_literal
from health_assets.systems.agent_drift.names import DAY_HOURS, LOOK_BACK_HOURS, PARTS, SPREAD_UNIT, SUMS

KEYS = ("agent_id", "place")


def hourly_counts(components: ir.Table, hours: HourRange) -> ir.Table:
    """One row per agent and place with an execution: `KEYS` and `SUMS`.

    `spread` is the sum of failures^2 / executions of the hours, in units of `SPREAD_UNIT`; `cells` the number of hours.

    Args:
        components: sums by hour and agent, of these hours and the look-back before them.
        hours: the hours to find drift in.
    """
    ran = components.filter(components.executions > 0)
    squared = ran.failures.cast("float64") * ran.failures / ran.executions
    rows = ran.select(
        "agent_id", "executions", "failures",
        place=_place(ran.hour, hours), spread=(squared / SPREAD_UNIT).round().cast("int64"),
    )  # fmt: skip
    counted = rows.group_by(list(KEYS)).aggregate(
        executions=rows.executions.sum(), failures=rows.failures.sum(), spread=rows.spread.sum(), cells=rows.count()
    )
    return counted.select(*KEYS, **{name: counted[name].cast("int64") for name in SUMS})


def _place(hour: ir.TimestampValue, hours: HourRange) -> ir.IntegerValue:
    if len(hours) > 1:
        first = hours.extended_back(LOOK_BACK_HOURS - 1).start
        return _hours_between(time_literal(first), hour)
    back = _hours_between(hour, time_literal(hours.start))
    newest = back - back % DAY_HOURS + _start_of_part(back % DAY_HOURS, PARTS[:-1])
    return LOOK_BACK_HOURS - 1 - newest


def _hours_between(start: ir.TimestampValue, end: ir.TimestampValue) -> ir.IntegerValue:
    seconds = end.epoch_seconds().cast("int64") - start.epoch_seconds().cast("int64")
    return (seconds / 3600).floor().cast("int64")


def _start_of_part(back: ir.IntegerValue, starts: Sequence[int]) -> ir.IntegerValue:
    """The last of these starts that is at most so many hours back."""
    found = back * 0
    for start in starts:
        found = (back >= start).ifelse(start, found)
    return found
