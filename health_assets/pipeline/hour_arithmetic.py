"""Hours that need work: those a window depends on, those late data touches, those that have not been materialized.

What belongs here: arithmetic on sets of hours. What does not: reading files or tables (`ingestion`, `warehouse`).
"""

from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta

from health_assets.core.hours import HOUR, HourRange, contiguous, floor_hour


def late_ranges(
    touched: AbstractSet[datetime],
    lookback_hours: int,
    until: datetime,
    *,
    only_themselves: AbstractSet[datetime] = frozenset(),
) -> list[HourRange]:
    """The fewest ranges that hold the touched hours and every later hour that depends on them.

    Args:
        touched: hours whose events changed.
        lookback_hours: how far an hour's results look back.
        until: end of the hours that may be materialized, excluded.
        only_themselves: hours that need work although no later hour depends on it.
    """
    dependent = {hour for hour in only_themselves if hour < until}
    for group in contiguous(touched):
        reach = HourRange(group.start, max(group.start, min(group.end + (lookback_hours - 1) * HOUR, until)))
        dependent |= set(reach)
    return contiguous(dependent)


def newest_stretch(hours: AbstractSet[datetime], most_apart_hours: int) -> datetime | None:
    """The first of the hours that lead up to the newest one without a gap of more than so many hours."""
    first: datetime | None = None
    for hour in sorted(hours, reverse=True):
        if first is not None and first - hour > most_apart_hours * HOUR:
            break
        first = hour
    return first


def newest_finished_hour(now: datetime, grace: timedelta = timedelta(0)) -> datetime:
    """The last hour that ended at least `grace` before `now`."""
    return floor_hour(now - grace) - HOUR


def catch_up(
    newest: datetime, materialized: AbstractSet[datetime], first_materialized: datetime | None, lookback_hours: int
) -> HourRange:
    """The hours that a scheduled run must cover: from the earliest of the look-back that earlier runs missed.

    Args:
        newest: the hour that is due.
        materialized: hours of the look-back that there are.
        first_materialized: the first hour that ever was; hours before it were never asked for.
        lookback_hours: how far back to look.
    """
    span = HourRange.of(newest).extended_back(lookback_hours - 1)
    missed = [hour for hour in span if first_materialized and hour > first_materialized and hour not in materialized]
    return HourRange(min(missed, default=newest), span.end)
