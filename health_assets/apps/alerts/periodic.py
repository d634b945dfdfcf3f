"""Periodic digests: when one is due, and one as it is kept. Pure: no clock, no warehouse.

What does not belong here: the facts (`digest_facts`), their words (`digest_texts`) and the table (`digest_store`).
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from health_assets.apps.alerts.rules import Names
from health_assets.core.hours import floor_hour

PERIODIC = "periodic_digest"
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAY = timedelta(days=1)
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def _clock(value: Any) -> time:
    """A time of day, from text like 07:30."""
    if isinstance(value, time):
        return value
    found = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError("must be a time of day in UTC like 07:30")
    return time(int(found[1]), int(found[2]))


class DigestSchedule(BaseModel):
    """The schedule of the digest, and its channels.

    Args:
        every: `daily` or `weekly`.
        at: time of day, in UTC.
        weekday: on which day of the week; of a weekly one alone.
        channels: names of the channels; all where none is named.
        lines: most lines of each of its parts.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    every: Literal["daily", "weekly"]
    at: Annotated[time, BeforeValidator(_clock)]
    weekday: Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] | None = None
    channels: Names = ()
    lines: Annotated[int, Field(ge=1, le=30)] = 5

    @model_validator(mode="after")
    def _has_its_day(self) -> "DigestSchedule":
        if (self.every == "weekly") != (self.weekday is not None):
            raise ValueError("a weekly digest names its weekday, and a daily one none")
        return self

    @property
    def length(self) -> timedelta:
        """Length of the period."""
        return length_of(self.every)

    def latest(self, now: datetime) -> datetime:
        """The last moment up to `now` at which a digest was due."""
        today = now.replace(hour=self.at.hour, minute=self.at.minute, second=0, microsecond=0)
        back = (now.weekday() - WEEKDAYS.index(self.weekday)) % 7 if self.weekday else 0
        due_at = today - back * DAY
        return due_at if due_at <= now else due_at - self.length

    def due(self, last_due_at: datetime | None, now: datetime) -> datetime | None:
        """The moment of the digest that is to be written now, if any.

        One is late rather than never, for half a period; and there are not two within half a period, so that another
        time of day in the file sends no second one for the same day.

        Args:
            last_due_at: when the last one that was written was due.
            now: the time.
        """
        due_at = self.latest(now)
        is_long_gone = now - due_at > self.length / 2
        is_written = last_due_at is not None and due_at - last_due_at <= self.length / 2
        return None if is_long_gone or is_written else due_at


def length_of(cadence: str) -> timedelta:
    """Length of the period of a `daily` or `weekly` digest."""
    return 7 * DAY if cadence == "weekly" else DAY


@dataclass(frozen=True, kw_only=True)
class PeriodicDigest:
    """A row of `alert_digests`."""

    hour: datetime
    digest_id: str
    cadence: str
    due_at: datetime
    written_at: datetime
    content: dict[str, Any]


def new_digest(cadence: str, due_at: datetime, written_at: datetime, content: dict[str, Any]) -> PeriodicDigest:
    """The digest of a period, whose id follows from the period."""
    return PeriodicDigest(
        hour=floor_hour(due_at),
        digest_id=hashlib.sha256(f"{cadence} {due_at.isoformat()}".encode()).hexdigest()[:20],
        cadence=cadence,
        due_at=due_at,
        written_at=written_at,
        content=content,
    )


@dataclass(frozen=True, kw_only=True)
class DigestNotice:
    """A row of the outbox with the digest that it is about.

    Args:
        digest: the digest.
        channel: name of the channel.
        attempts: ticks that tried before.
    """

    digest: PeriodicDigest
    channel: str
    attempts: int = 0

    @property
    def event(self) -> str:
        """The one event that there is of a digest."""
        return PERIODIC

    @property
    def hour(self) -> datetime:
        """The hour in which it was due."""
        return self.digest.hour

    @property
    def about_id(self) -> str:
        """The digest."""
        return self.digest.digest_id
