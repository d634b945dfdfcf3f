"""The memory of looks for late lines: it goes from one look to the next, and says how much each of them may read.

What belongs here: what was found in files of which nobody has loaded anything yet, for as long as these stay as they
are; the budget of bytes; and whose turn it is when the budget is spent. What does not: reading (`file_looks`,
`pipeline.late_logs`) and asking for runs (`defs.sensors`).

A file that the budget does not allow is put off, and comes before all others in the next look. So every file has its
turn, however many others grow meanwhile. What has its turn is compared with others and parsed in the same look, since a
file that has grown by the next one would have to begin again. A file that is larger than a whole budget is read when
its turn comes, and nothing besides.
"""

import json
import math
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, TypeVar

from health_assets.core.wording import counted
from health_assets.logs.file_looks import Looked
from health_assets.logs.identity import Identity
from health_assets.logs.limits import Limits
from health_assets.logs.stores import RawFile

Value = TypeVar("Value")
MOST_BYTES = 8 << 20
"""Most of what is kept, before it is packed; files beyond are looked at again."""

COUNTED_AS = 2
"""Raised whenever the same bytes are counted otherwise; since 2 a count of rejected lines has their hour."""


@dataclass(frozen=True, kw_only=True)
class Count:
    """The records of one kind that a file holds for one hour, as `logs.tally.Content` has them."""

    record_type: str
    hour: datetime
    lines: int
    digest: int
    future_at: datetime | None


@dataclass(kw_only=True)
class Remembered(Looked):
    """The findings about one file, also by whoever parsed it.

    Args:
        counts: how many lines it holds; None where it was not parsed.
    """

    counts: list[Count] | None = None


class LateMemory:
    """The findings of earlier looks, and the bytes that this one may read.

    Args:
        limits: limits on what is taken of logs.
        most_bytes: how many bytes this look may read; a single file may be larger.
        version: that of how lines are read; another one may count the same bytes otherwise.
        looked: by name of a file, what was found out about it.
        waiting: names of the files whose turn it is, in order.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        most_bytes: float = math.inf,
        version: int = 0,
        looked: dict[str, Remembered] | None = None,
        waiting: Sequence[str] = (),
    ) -> None:
        self._limits = limits
        self._version = _version(limits, version)
        self._left = most_bytes
        self._looked = looked or {}
        self._places = {name: place for place, name in enumerate(waiting)}
        self._waiting = [*waiting]
        self._seen: set[str] = set()
        self._read: set[str] = set()
        self._put_off: dict[str, int] = {}

    @classmethod
    def boundless(cls) -> Self:
        """A memory of nothing that allows everything."""
        return cls()

    @classmethod
    def load(cls, text: str | None, limits: Limits, most_bytes: float, version: int) -> Self:
        """The memory that `dump` wrote; an empty one where another version, or one with other limits, wrote it."""
        kept = json.loads(zlib.decompress(b64decode(text))) if text else {}
        if kept.get("version") != _version(limits, version):
            return cls(limits, most_bytes, version)
        looked = {name: _looked(*values) for name, values in kept["looked"].items()}
        return cls(limits, most_bytes, version, looked, kept["waiting"])

    def dump(self) -> str:
        """The memory as text, of the files that this look asked about."""
        waiting = _within(MOST_BYTES // 2, sorted(self._put_off, key=self._place))
        left = MOST_BYTES - _size(waiting)
        looked = dict(_within(left, ((name, _values(self._looked[name])) for name in sorted(self._seen))))
        kept = {"version": self._version, "looked": looked, "waiting": waiting}
        return b64encode(zlib.compress(json.dumps(kept).encode())).decode()

    def of(self, file: RawFile) -> Remembered:
        """The findings about a file as it is now, to be added to."""
        self._seen.add(file.source_file)
        known = self._looked.get(file.source_file)
        if known is None or known.stamp != file.stamp:
            known = self._looked[file.source_file] = Remembered(stamp=file.stamp)
        return known

    def counts_of(self, file: RawFile) -> list[Count] | None:
        """Count the lines of a file; None where it has to be parsed, also because a future event's time has come."""
        counts = self.of(file).counts
        until = self._limits and self._limits.until
        if counts is None or any(until and count.future_at and count.future_at <= until for count in counts):
            return None
        return counts

    # -- the budget --

    def only_wait_for(self, files: Iterable[RawFile]) -> None:
        """Keep no turn for other files than these, since nobody will ask for them."""
        names = {file.source_file for file in files}
        self._waiting = [name for name in self._waiting if name in names]

    def in_turn(self, files: Sequence[RawFile]) -> list[RawFile]:
        """The files, those first whose turn it is."""
        return sorted(files, key=lambda file: self._place(file.source_file))

    def may_read(self, file: RawFile) -> bool:
        """Whether a file may be read now; one that may not is put off.

        That is decided once in a look, and the file counts once, however often and how much of it is read. While files
        wait, the first of them is the only one, however much the others would fit.
        """
        name = file.source_file
        if name in self._read:
            return True
        is_its_turn = name in self._waiting[:1] or not self._waiting
        if is_its_turn and name in self._waiting:
            self._waiting.remove(name)
        if is_its_turn and (file.size_bytes <= self._left or not self._read):
            self._put_off.pop(name, None)
            self._read.add(name)
            self._left -= file.size_bytes
            return True
        self._put_off[name] = file.size_bytes
        return False

    def _place(self, name: str) -> int:
        return self._places.get(name, len(self._places))

    def is_put_off(self, file: RawFile) -> bool:
        """Whether a file has to wait for another look."""
        return file.source_file in self._put_off

    @property
    def put_off_count(self) -> int:
        """The number of files that have to wait."""
        return len(self._put_off)

    @property
    def put_off(self) -> str:
        """The files that were not looked at, in words; empty where there is nothing."""
        if not self._put_off:
            return ""
        size_bytes = sum(self._put_off.values())
        size = f"{size_bytes / (1 << 20):,.0f} MB" if size_bytes >= 1 << 20 else counted(size_bytes, "byte")
        return f"{counted(len(self._put_off), 'file')}, {size}, not looked at yet"


def _version(limits: Limits | None, version: int) -> list[int]:
    """All that decides how the same bytes are counted."""
    return [version, COUNTED_AS, *((*limits.unpacking, limits.lines) if limits else ())]


def _within(most_bytes: int, values: Iterable[Value]) -> list[Value]:
    """The values that fit into so many bytes, one after another."""
    chosen = []
    for value in values:
        size_bytes = _size(value)
        if size_bytes <= most_bytes:
            most_bytes -= size_bytes
            chosen.append(value)
    return chosen


def _size(value: Any) -> int:
    """The bytes that a value takes among others."""
    return len(json.dumps(value)) + len(", ")


def _values(looked: Remembered) -> list[Any]:
    own, counts = looked.identity, looked.counts
    return [
        looked.stamp,
        looked.heads,
        own and [own.plain_bytes, own.digest, own.heads],
        looked.is_damaged,
        [*looked.beginnings.items()],
        counts and [*map(_count_values, counts)],
    ]


def _count_values(count: Count) -> list[Any]:
    future_at = None if count.future_at is None else count.future_at.isoformat()
    return [count.record_type, count.hour.isoformat(), count.lines, count.digest, future_at]


def _looked(
    stamp: list[Any], heads: str | None, own: list[Any] | None, is_damaged: bool, beginnings: list, counts: list | None
) -> Remembered:
    return Remembered(
        stamp=(stamp[0], stamp[1], stamp[2]),
        heads=heads,
        identity=Identity(*own) if own else None,
        is_damaged=is_damaged,
        beginnings=dict(beginnings),
        counts=None
        if counts is None
        else [
            Count(
                record_type=kind,
                hour=datetime.fromisoformat(hour),
                lines=lines,
                digest=digest,
                future_at=None if at is None else datetime.fromisoformat(at),
            )
            for kind, hour, lines, digest, at in counts
        ],
    )
