"""Compaction: hours of many small files are put together at the end of the session that left them so.

What belongs here: which hours are written anew, and how many at once. What does not: which folders count (`lake`), and
writing rows (`lake_session`).

A statement writes a folder for each of its hours, and so does a pass of an executor over some logs. A reader names them
all to the cluster, which takes longer over a thousand folders than over their rows.
"""

from collections.abc import Iterator

from health_assets.core.hours import HOUR, HourRange, contiguous
from health_assets.warehouse.engines.spark.lake import Lake
from health_assets.warehouse.session import Session

MOST_FOLDERS = 16
"""Of an hour of a table."""
HOURS_AT_ONCE = 168
"""A statement that names ten thousand folders takes a minute, and each hour has some twenty."""


def compact(session: Session, lake: Lake) -> None:
    """Write hours anew that this session has left with more than `MOST_FOLDERS`, each to one; their rows stay.

    Args:
        session: a session that is about to be committed.
        lake: its lake.
    """
    for table, crowded in lake.crowded(MOST_FOLDERS).items():
        for hours in _some_at_once(contiguous(crowded)):
            session.rewrite_hours(table, hours, session.hours_of(table, hours))


def _some_at_once(ranges: list[HourRange]) -> Iterator[HourRange]:
    for hours in ranges:
        for start in list(hours)[::HOURS_AT_ONCE]:
            yield HourRange(start, min(start + HOURS_AT_ONCE * HOUR, hours.end))
