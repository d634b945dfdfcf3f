"""Counts of what files hold, by kind of record and hour.

What belongs here: counting a stream of parsed rows in any order. What does not: which rows go to a table (`routing`)
and a line's own time (`native`, `otlp`).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from health_assets.core.hours import floor_hour
from health_assets.logs.stores import EPOCH, RawFile

REJECTED = "rejected"
COUNTED_COLUMNS = ("file_id", "record_type", "hour", "line_number", "fingerprint", "future_at")
_HOUR_US = 3_600_000_000
_KINDS_AND_HOURS = ["file_id", "record_type", "hour"]

LastHourRead = Callable[[int], datetime | None]
"""By file id, the hour of the last line of what was read of the file before; None where nothing was."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """The records of one kind that one file holds for one hour.

    Args:
        file_id: position of the file in the list that was read.
        record_type: a key of `TABLE_OF_RECORD`.
        hour: the hour of their events; of rejected lines the hour that docs/log-format.md gives them.
        lines: how many.
        digest: sum of their fingerprints modulo 2^64, the same in any order.
        future_at: the earliest time of those that are rejected for being in the future; None where there is none.
    """

    file_id: int
    record_type: str
    hour: datetime
    lines: int
    digest: int
    future_at: datetime | None = None


class Tally:
    """Counts rows batch by batch.

    A rejected line has the hour of its own time where one can be read, else that of the nearest good line before it in
    its file (after it, at the top), else that of the file's modification. Good lines are remembered as runs of
    consecutive lines of one hour, so a log in order of time takes next to no memory.

    Args:
        files: the files, by file id.
        hour_before: the hour of what was read before of a file that only grew.
    """

    def __init__(self, files: Sequence[RawFile], hour_before: LastHourRead = lambda _: None) -> None:
        self._files = files
        self._hour_before = hour_before
        self._counts: _Counts = {}
        self._good: list[np.ndarray] = []
        self._rejected: list[tuple[np.ndarray, np.ndarray]] = []
        self._future: dict[int, datetime] = {}
        self._good_lines: _GoodLines | None = None

    def add(
        self, batch: pa.RecordBatch, multi_row_files: Collection[int] | None = ()
    ) -> dict[str, list[tuple[int, datetime]]]:
        """Count the rows of a batch; gives the (file, hour) pairs of every kind of record in it.

        Args:
            batch: rows with `COUNTED_COLUMNS`.
            multi_row_files: ids of files of which one line may become several rows; None for all.
        """
        found: dict[str, list[tuple[int, datetime]]] = {}
        has_untimed = False
        for row in _grouped(batch):
            file_id, kind, hour = (row[name] for name in _KINDS_AND_HOURS)
            pairs = found.setdefault(kind, [])
            if hour is None:
                has_untimed = True
                self._future_of(file_id, row["future_at_min"])
                continue
            pairs.append((file_id, hour))
            counted = row["fingerprint_count"], row["fingerprint_sum"], row["future_at_min"]
            _add(self._counts, (file_id, kind, hour), *counted)
        self._note_lines(batch, multi_row_files, has_rejected=REJECTED in found, has_untimed=has_untimed)
        return found

    def _future_of(self, file_id: int, future_at: datetime | None) -> None:
        if future_at is not None:
            self._future[file_id] = min(future_at, self._future.get(file_id, future_at))

    def _note_lines(
        self, batch: pa.RecordBatch, multi_row_files: Collection[int] | None, *, has_rejected: bool, has_untimed: bool
    ) -> None:
        ids, lines = (batch[name].to_numpy(zero_copy_only=False) for name in ("file_id", "line_number"))
        is_good = np.ones(len(ids), bool)
        if has_rejected:
            is_good = pc.not_equal(batch["record_type"], REJECTED).to_numpy(zero_copy_only=False)
        hours = _as_numbers(batch["hour"])
        may_give_several = np.ones(len(ids), bool) if multi_row_files is None else np.isin(ids, list(multi_row_files))
        self._good.append(_runs(ids[is_good], lines[is_good], hours[is_good], may_give_several[is_good]))
        if has_untimed:
            is_untimed = ~is_good & (hours == _NO_HOUR)
            digests = batch["fingerprint"].to_numpy(zero_copy_only=False)[is_untimed]
            own = ids[is_untimed], lines[is_untimed]
            self._rejected.append(_rejected_runs(*own, digests, may_give_several[is_untimed]))

    def contents(self) -> list[Content]:
        """The contents of the files, once all rows were counted."""
        counts, future = dict(self._counts), dict(self._future)
        for runs, digests in self._rejected:
            for (file_id, hour), (lines, digest) in _by_hour(runs, digests, self.hours_at(runs[:, 0], runs[:, 1])):
                _add(counts, (file_id, REJECTED, _as_time(hour)), lines, digest, future.pop(file_id, None))
        return [
            Content(file_id=key[0], record_type=key[1], hour=key[2], lines=lines, digest=digest, future_at=future_at)
            for key, (lines, digest, future_at) in counts.items()
        ]

    def hours_at(self, ids: np.ndarray, lines: np.ndarray) -> np.ndarray:
        """The hours of rejected lines without a time of their own, as numbers, once all rows were counted."""
        if self._good_lines is None:
            self._good_lines = _GoodLines(self._good)
        hours = np.empty(len(ids), np.int64)
        for file_id in np.unique(ids):
            is_own = ids == file_id
            hours[is_own] = self._good_lines.hours_at(int(file_id), lines[is_own], self._hour_at_top)
        return hours

    def _hour_at_top(self, file_id: int, first: int | None) -> int:
        """The hour of a line with no good line before it in what was read of the file now."""
        before = self._hour_before(file_id)
        if before is not None:
            return _as_number(before)
        return _as_number(modification_hour(self._files[file_id])) if first is None else first


def modification_hour(file: RawFile) -> datetime:
    """The hour in which a file was last written."""
    return floor_hour(datetime.fromtimestamp(file.modified_ns // 10**9, UTC))


def earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    """The earlier of two times, of which there may be one or none."""
    return min((time for time in (one, other) if time is not None), default=None)


def hours_as_column(numbers: np.ndarray, column_type: pa.DataType) -> pa.Array:
    """Hours that `Tally.hours_at` gave, as a column."""
    return pa.array(numbers * _HOUR_US, pa.int64()).cast(column_type)


class _GoodLines:
    """Runs of good lines by file and line."""

    def __init__(self, runs: Sequence[np.ndarray]) -> None:
        found = np.concatenate(runs) if runs else np.empty((0, 3), np.int64)
        found = found[np.lexsort((found[:, 2], found[:, 1], found[:, 0]))]
        is_last = np.append((found[1:, :2] != found[:-1, :2]).any(axis=1), True)[: len(found)]
        self._runs = found[is_last]  # of a line that became several rows, the latest hour

    def hours_at(self, file_id: int, lines: np.ndarray, at_top: Callable[[int, int | None], int]) -> np.ndarray:
        start, end = np.searchsorted(self._runs[:, 0], [file_id, file_id + 1])
        firsts, hours = self._runs[start:end, 1], self._runs[start:end, 2]
        places = np.searchsorted(firsts, lines, side="right") - 1
        is_at_top = places < 0
        found = hours[np.maximum(places, 0)] if len(hours) else np.empty(len(lines), np.int64)
        if is_at_top.any():
            found[is_at_top] = at_top(file_id, int(hours[0]) if len(hours) else None)
        return found


_Counts = dict[tuple[int, str, datetime], tuple[int, int, datetime | None]]
_NO_HOUR = -1


def _add(counts: _Counts, key: tuple[int, str, datetime], lines: int, digest: int, future_at: datetime | None) -> None:
    before, sums, other = counts.get(key, (0, 0, None))
    counts[key] = before + lines, (digest + sums) % 2**64, earlier(future_at, other)


def _grouped(batch: pa.RecordBatch) -> list[dict]:
    table = pa.Table.from_batches([batch.select([*_KINDS_AND_HOURS, "fingerprint", "future_at"])])
    sums = [("fingerprint", "count"), ("fingerprint", "sum"), ("future_at", "min")]
    return table.group_by(_KINDS_AND_HOURS).aggregate(sums).to_pylist()


def _as_numbers(hours: pa.Array) -> np.ndarray:
    """Hours since 1970; `_NO_HOUR` where there is none."""
    microseconds = pc.fill_null(hours.cast(pa.int64()), _NO_HOUR * _HOUR_US)
    return microseconds.to_numpy(zero_copy_only=False) // _HOUR_US


def _as_number(hour: datetime) -> int:
    return (hour - EPOCH) // timedelta(hours=1)


def _as_time(number: int) -> datetime:
    return EPOCH + timedelta(hours=int(number))


def _runs(ids: np.ndarray, lines: np.ndarray, hours: np.ndarray, may_give_several: np.ndarray) -> np.ndarray:
    """A row each of file, first line and hour for good lines that follow each other in one hour.

    The end of a run needs no place: no rejected line without a time lies within it, but where one line may become
    several rows, and there each line is a run.
    """
    order = _order(ids, lines)
    if order is not None:
        ids, lines, hours, may_give_several = ids[order], lines[order], hours[order], may_give_several[order]
    goes_on = (ids[1:] == ids[:-1]) & (lines[1:] == lines[:-1] + 1) & (hours[1:] == hours[:-1]) & ~may_give_several[1:]
    starts = np.flatnonzero(np.append(True, ~goes_on)) if len(ids) else np.empty(0, np.int64)
    # the last line of a run counts, too: behind it another batch may go on
    ends = np.append(starts[1:], len(ids)) - 1 if len(ids) else starts
    places = np.unique(np.concatenate([starts, ends]))
    return np.column_stack([ids[places], lines[places], hours[places]]).astype(np.int64)


def _rejected_runs(
    ids: np.ndarray, lines: np.ndarray, digests: np.ndarray, may_give_several: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of file, first line and number of lines for rejected lines that follow each other; the sums of digests."""
    order = _order(ids, lines)
    if order is not None:
        ids, lines, digests, may_give_several = ids[order], lines[order], digests[order], may_give_several[order]
    goes_on = (ids[1:] == ids[:-1]) & (lines[1:] == lines[:-1] + 1) & ~may_give_several[1:]
    starts = np.flatnonzero(np.append(True, ~goes_on))
    counts = np.diff(np.append(starts, len(ids)))
    runs = np.column_stack([ids[starts], lines[starts], counts]).astype(np.int64)
    return runs, np.add.reduceat(digests.astype(np.uint64), starts)  # which is modulo 2^64


def _order(ids: np.ndarray, lines: np.ndarray) -> np.ndarray | None:
    """The order by file and line; None where they have it."""
    is_in_order = (ids[1:] > ids[:-1]) | ((ids[1:] == ids[:-1]) & (lines[1:] >= lines[:-1]))
    return None if is_in_order.all() else np.lexsort((lines, ids))


def _by_hour(runs: np.ndarray, digests: np.ndarray, hours: np.ndarray) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    order = np.lexsort((hours, runs[:, 0]))
    keys = np.column_stack([runs[order, 0], hours[order]])
    starts = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1)))
    lines = np.add.reduceat(runs[order, 2], starts)
    sums = np.add.reduceat(digests[order], starts)
    return [
        ((int(file_id), int(hour)), (int(count), int(digest)))
        for (file_id, hour), count, digest in zip(keys[starts], lines, sums, strict=True)
    ]
