"""Hours: the partitions of every asset, always UTC and half-open.

What belongs here: an hour, a range of hours, ranges with holes between, how they are written and read. What does not:
which hours need work (`pipeline.hour_arithmetic`) and Dagster's partition definitions (`defs.partitions`).
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from health_assets.core.errors import HealthAssetsError

HOUR = timedelta(hours=1)
KEY_FORMAT = "%Y-%m-%d-%H:%M"
FIRST_YEAR, LAST_YEAR = 2000, 2099


def floor_hour(moment: datetime) -> datetime:
    """The start of the UTC hour that holds an aware `moment`."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def parse_hour(text: str) -> datetime:
    """Read `2026-06-07T13`, `2026-06-07T13:00`, `2026-06-07` or a partition key `2026-06-07-13:00` as an hour in UTC.

    Raises:
        HealthAssetsError: the text is not a whole hour of the years 2000 to 2099.
    """
    moment = _parse_key(text) or _parse_iso(text)
    if moment is None or moment != floor_hour(moment):
        raise HealthAssetsError(f"{text!r} is not a whole hour in UTC; write it like 2026-06-07T13")
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise HealthAssetsError(f"{text!r} is not in the years {FIRST_YEAR} to {LAST_YEAR}, of which logs are taken")
    return moment


def _parse_key(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, KEY_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def _parse_iso(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, order=True)
class HourRange:
    """The hours `[start, end)`.

    Args:
        start: aware datetime on a whole UTC hour.
        end: aware datetime on a whole UTC hour, not before `start`; excluded.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for moment in (self.start, self.end):
            if moment.tzinfo is None or moment != floor_hour(moment):
                raise ValueError(f"{moment!r} is not a whole UTC hour")
        if self.end < self.start:
            raise ValueError(f"the range ends ({self.end}) before it starts ({self.start})")

    @property
    def ranges(self) -> tuple["HourRange"]:
        """Itself: a range without holes, as `HourGroups` has several."""
        return (self,)

    @classmethod
    def of(cls, hour: datetime) -> "HourRange":
        """The range of one hour."""
        return cls(hour, hour + HOUR)

    def __len__(self) -> int:
        return int((self.end - self.start) / HOUR)

    def __iter__(self) -> Iterator[datetime]:
        return (self.start + index * HOUR for index in range(len(self)))

    def __contains__(self, hour: datetime) -> bool:
        return self.start <= hour < self.end

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%dT%H} to {self.end:%Y-%m-%dT%H} ({len(self)} h)"

    def extended_back(self, hours: int) -> "HourRange":
        """The same range with `hours` more hours in front."""
        return HourRange(self.start - hours * HOUR, self.end)

    def extended_forward(self, hours: int) -> "HourRange":
        """The same range with `hours` more hours behind."""
        return HourRange(self.start, self.end + hours * HOUR)

    def intersection(self, other: "HourRange") -> "HourRange":
        """The hours in both ranges; an empty range where there is none."""
        start = max(self.start, other.start)
        return HourRange(start, max(start, min(self.end, other.end)))


def contiguous(hours: Iterable[datetime], *, gap_hours: int = 0) -> list[HourRange]:
    """The fewest ranges that hold exactly these hours, in order; or these and gaps of so many hours at most."""
    ranges: list[HourRange] = []
    for hour in sorted(set(hours)):
        if ranges and ranges[-1].end >= hour - gap_hours * HOUR:
            ranges[-1] = HourRange(ranges[-1].start, hour + HOUR)
        else:
            ranges.append(HourRange.of(hour))
    return ranges


@dataclass(frozen=True)
class HourGroups:
    """Hours with holes between them, such as those of a log in which little happens.

    Args:
        ranges: at least one range of at least one hour, in order; no two of them touch.
    """

    ranges: tuple[HourRange, ...]

    def __post_init__(self) -> None:
        if not self.ranges or not all(map(len, self.ranges)):
            raise ValueError("at least one range is needed, and no empty one")
        if any(left.end >= right.start for left, right in pairwise(self.ranges)):
            raise ValueError(f"the ranges touch or are not in order: {', '.join(map(str, self.ranges))}")

    @classmethod
    def of(cls, hours: Iterable[datetime]) -> "HourGroups":
        """Exactly these hours, of which there is at least one."""
        return cls(tuple(contiguous(hours)))

    @property
    def start(self) -> datetime:
        """The first hour."""
        return self.ranges[0].start

    @property
    def end(self) -> datetime:
        """The end of the last hour, excluded."""
        return self.ranges[-1].end

    @property
    def span(self) -> HourRange:
        """The range from the first hour to the last, with the holes."""
        return HourRange(self.start, self.end)

    @property
    def has_holes(self) -> bool:
        """Whether an hour is left out between the first and the last."""
        return len(self.ranges) > 1

    def extended_back(self, hours: int) -> "HourGroups":
        """The same hours with `hours` more before each range."""
        return HourGroups.of({hour for own in self.ranges for hour in own.extended_back(hours)})

    def within(self, hours: HourRange) -> "HourGroups":
        """The part of these hours that lies in a range; ranges without any of them are left out."""
        shared = (own.intersection(hours) for own in self.ranges)
        return HourGroups(tuple(some for some in shared if len(some)))

    def chunks(self) -> list[HourRange]:
        """Ranges that hold these hours and only holes that cost less to compute than another statement does."""
        chunks = [self.ranges[0]]
        for own in self.ranges[1:]:
            if own.start - chunks[-1].end > WIDEST_HOLE:
                chunks.append(own)
            else:
                chunks[-1] = HourRange(chunks[-1].start, own.end)
        return chunks

    def __len__(self) -> int:
        return sum(map(len, self.ranges))

    def __iter__(self) -> Iterator[datetime]:
        return (hour for own in self.ranges for hour in own)

    def __contains__(self, hour: datetime) -> bool:
        place = bisect_right(self.ranges, hour, key=lambda own: own.start) - 1
        return place >= 0 and hour in self.ranges[place]

    def __str__(self) -> str:
        return f"{len(self):,} h of {self.span}" if self.has_holes else str(self.span)


WIDEST_HOLE = timedelta(days=60)
"""Computing a hole of this length costs about what one more statement for every table does."""

EVER = HourRange(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC), datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC))
"""All hours of which logs are taken."""
FIRST_S, END_S = int(EVER.start.timestamp()), int(EVER.end.timestamp())
"""The same in epoch seconds; the end is the first that is too late."""
NO_HOURS = HourRange(EVER.end, EVER.end)
