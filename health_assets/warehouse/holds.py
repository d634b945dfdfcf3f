"""Held hours: hours that cannot be built now, with every cause, since when and until when.

A cause holds an hour for a while only, so that nobody who may write a log can keep hours from being built. What is
overdue stays noted for as long as it lasts, so that it holds the hour no second time.

What belongs here: reading and writing `held_hours`. What does not: finding out which hours cannot be built
(`pipeline.ingestion`) and telling people of them (`pipeline.checking`).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

import pyarrow as pa

from health_assets.core.hours import EVER, HourGroups, HourRange, contiguous
from health_assets.core.wording import counted
from health_assets.logs.stores import is_among
from health_assets.warehouse.session import HOUR_TYPE, Session

EVERY_HOUR_WAS_BUILT = "every_hour_was_built"
"""Name of the check that tells people of them."""


@dataclass(frozen=True, kw_only=True)
class Hold:
    """One cause for which an hour cannot be built.

    Args:
        hour: the hour.
        source_file: the raw log that has lines of it, and cannot be had.
        reason: why not, as a sentence.
        lines: how many of its lines the hour needs.
        held_at: when a run first found it so.
        held_until: when the hour stops waiting for it, and is built without these lines.
    """

    hour: datetime
    source_file: str
    reason: str
    lines: int
    held_at: datetime
    held_until: datetime


class Holds:
    """The held hours of a warehouse, within a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def within(self, hours: HourRange = EVER) -> list[Hold]:
        """Every cause that holds one of these hours, in order."""
        now = self._session.now()
        return [hold for hold in self._noted(hours) if hold.held_until > now]

    def overdue(self, hours: HourRange = EVER) -> list[Hold]:
        """Every cause that held one of these hours for so long that it does no more, in order."""
        now = self._session.now()
        return [hold for hold in self._noted(hours) if hold.held_until <= now]

    def _noted(self, hours: HourRange) -> list[Hold]:
        names = [own.name for own in fields(Hold)]
        rows = self._session.query(
            f"SELECT {', '.join(names)} FROM held_hours WHERE hour >= ? AND hour < ? ORDER BY hour, source_file",
            [hours.start, hours.end],
        )
        return [Hold(**dict(zip(names, row, strict=True))) for row in rows]

    def hours(self, hours: HourRange = EVER) -> set[datetime]:
        """The held hours among these."""
        return {hold.hour for hold in self.within(hours)}

    def drop(self, before: datetime) -> set[datetime]:
        """Forget what holds hours before one, which nobody asks for any more; gives these hours."""
        dropped = {hour for hour in self.hours() if hour < before}  # which may lie before the first of all hours
        self._session.query("DELETE FROM held_hours WHERE hour < ?", [before])
        return dropped

    def replace(self, hours: HourRange, holds: Sequence[Hold]) -> None:
        """Note exactly these causes for these hours; one that was known keeps its times."""
        known = {(hold.hour, hold.source_file): hold for hold in self._noted(hours)}
        times = [known.get((hold.hour, hold.source_file), hold) for hold in holds]
        self._session.query("DELETE FROM held_hours WHERE hour >= ? AND hour < ?", [hours.start, hours.end])
        if not holds:
            return
        columns = {
            "hour": pa.array([hold.hour for hold in holds], HOUR_TYPE),
            "source_file": [hold.source_file for hold in holds],
            "reason": [hold.reason for hold in holds],
            "lines": [hold.lines for hold in holds],
            "held_at": pa.array([hold.held_at for hold in times], HOUR_TYPE),
            "held_until": pa.array([hold.held_until for hold in times], HOUR_TYPE),
        }
        self._session.insert_arrow("held_hours", pa.table(columns))


def still_held(holds: Iterable[Hold], unreadable: Collection[str]) -> set[datetime]:
    """Hours of which a cause is still there."""
    return {hold.hour for hold in holds if is_among(unreadable, hold.source_file)}


def causes(holds: Iterable[Hold]) -> list[str]:
    """Every cause once, with its lines and hours, as sentences."""
    by_file: dict[tuple[str, str], list[Hold]] = {}
    for hold in holds:
        by_file.setdefault((hold.source_file, hold.reason), []).append(hold)
    return [_cause(own) for own in by_file.values()]


def _cause(holds: Sequence[Hold]) -> str:
    hours = HourGroups(tuple(contiguous(hold.hour for hold in holds)))
    lines = counted(sum(hold.lines for hold in holds), "line")
    return f"{hours} needs {lines} of {holds[0].source_file}: {holds[0].reason}"
