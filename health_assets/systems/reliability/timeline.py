"""Rows of each window, for many groups and hours at once.

What belongs here: arithmetic on sorted arrays. What does not: what rows and groups are (`consistency`,
`predictability`).

From one hour to the next a group's window mostly holds the same rows. So results are computed once for each *stretch*,
the consecutive hours in which a window does not change, and repeated for its hours at the end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from health_assets.core.hours import HourRange

Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

MICROSECONDS = 3_600_000_000
MOST_MEMBERS = 1 << 20
"""Rows of windows that are looked at together; one window that holds more is looked at alone."""


@dataclass(frozen=True, kw_only=True)
class Stretches:
    """Stretches of hours in which a group's window holds the same rows, at least one.

    Args:
        group: group of each stretch.
        hour: its first hour, counted from the first hour asked for.
        hours: how many hours it lasts.
        start: first row of its windows, an index into the timeline.
        end: the row after their last.
    """

    group: Integers
    hour: Integers
    hours: Integers
    start: Integers
    end: Integers

    def __len__(self) -> int:
        return len(self.group)

    def __getitem__(self, chosen: slice | npt.NDArray[np.bool_]) -> Self:
        return type(self)(**{field.name: getattr(self, field.name)[chosen] for field in fields(self)})

    @property
    def sizes(self) -> Integers:
        """The number of rows in the windows of each stretch."""
        return self.end - self.start

    def parts(self) -> Iterator[Self]:
        """The same stretches in parts that hold at most `MOST_MEMBERS` rows together, or one stretch."""
        return (self[part] for part in parts(self.sizes, MOST_MEMBERS))


class Timeline:
    """Rows sorted by group and, within a group, by hour.

    Args:
        group: a number for each row's group, never falling.
        hour: the hour of each row, since 1970 (`hour_numbers`).
        hours: the hours asked for; each is the last of a window.
        window_hours: length of a window; rows lie in the hours asked for or up to `window_hours - 1` before them.
    """

    def __init__(self, group: Integers, hour: Integers, hours: HourRange, window_hours: int) -> None:
        self._first = hour_numbers(pa.array([hours.start], pa.timestamp("us", "UTC")))[0]
        self.group = group
        self.hour = hour - self._first
        self._hours = hours
        self._window = window_hours
        self._stride = len(hours) + window_hours + 1  # between the keys of two groups
        self._keys = self._key(self.group, self.hour)

    def _key(self, group: Integers, hour: Integers) -> Integers:
        return group * self._stride + hour + self._window

    def bounds(self, group: Integers, hour: Integers) -> tuple[Integers, Integers]:
        """First row, and the row after the last, of the window of a group that ends with an hour."""
        start = np.searchsorted(self._keys, self._key(group, hour - self._window), side="right")
        end = np.searchsorted(self._keys, self._key(group, hour), side="right")
        return start, end

    def stretches(self) -> Stretches:
        """The stretches of every group, over the hours asked for; a window without rows belongs to none."""
        count = len(self._hours)
        enters, leaves = np.maximum(self.hour, 0), self.hour + self._window
        changes = np.concatenate([self.group * count + enters, (self.group * count + leaves)[leaves < count]])
        group, hour = np.divmod(np.unique(changes), count)
        is_last = np.append(group[1:] != group[:-1], True)[: len(group)]
        until = np.where(is_last, count, np.append(hour[1:], count)[: len(hour)])
        start, end = self.bounds(group, hour)
        return Stretches(group=group, hour=hour, hours=until - hour, start=start, end=end)[end > start]

    def over_hours(self, stretches: Stretches) -> tuple[Integers, pa.Array]:
        """One entry for each hour of each stretch: the stretch's place, and the hour as a time."""
        place, offset = flat_ranges(stretches.hours)
        hour = self._first + stretches.hour[place] + offset
        return place, pa.array(hour * MICROSECONDS).cast(pa.timestamp("us", "UTC"))


def hour_numbers(hour: pa.ChunkedArray | pa.Array) -> Integers:
    """Hours since 1970 of times on the hour."""
    return np.asarray(hour.cast(pa.timestamp("us", "UTC")).cast(pa.int64())) // MICROSECONDS


def group_numbers(*keys: pa.ChunkedArray) -> Integers:
    """A number for each row that rises by one where one of the sorted keys changes."""
    changes = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        values = key.combine_chunks()
        changes[1:] |= pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
    return np.cumsum(changes)


def flat_ranges(sizes: Integers) -> tuple[Integers, Integers]:
    """The ranges `0, 1, … size - 1` one after another: for each entry the range that it is of, and its number there."""
    place = np.repeat(np.arange(len(sizes)), sizes)
    return place, np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def parts(sizes: Integers, most: int) -> Iterator[slice]:
    """Cut a list into slices whose sizes add up to at most `most`; what is larger by itself gets a slice of its own."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield slice(first, last)
        first = last


def running_sums(values: Integers) -> Integers:
    """Sums of the values before each place along the last axis, and of all at the end."""
    zero = np.zeros((*values.shape[:-1], 1), np.int64)
    return np.concatenate([zero, np.cumsum(values, axis=-1)], axis=-1)
