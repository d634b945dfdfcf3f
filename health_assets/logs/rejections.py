"""Rejected lines in very large numbers: a row each for the first of a file, and one row for all others.

What belongs here: choosing these rows from a stream in any order. What does not: why a line is rejected (`native`,
`otlp`) and how many there are in all, which is counted with all other lines (`routing`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from health_assets.logs.stores import RawFile

LAST_LINE = np.iinfo(np.int64).max


@dataclass
class _OfFile:
    """What is known of a file's rejected lines.

    Args:
        seen: how many there were.
        beyond: the least line number among those that get none.
        numbers: the least line numbers so far, in order, as many as may get a row.
    """

    seen: int = 0
    beyond: int = LAST_LINE
    numbers: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))


class Rejected:
    """Rows of rejected lines, of which a file may have any number.

    Which lines get a row follows from their numbers alone, whatever the order in which they come. One line may have
    several rows, of spans: either all of them are kept or none.

    Args:
        most: rows of a file that are kept, but for those of the last line.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._files: dict[int, _OfFile] = {}

    def kept(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that may be among the first of their file, each of which stands for one line."""
        ids = rows["file_id"].to_numpy(zero_copy_only=False)
        numbers = rows["line_number"].to_numpy(zero_copy_only=False)
        is_kept = np.ones(len(ids), bool)
        for file_id in np.unique(ids):
            of_file = self._files.setdefault(int(file_id), _OfFile())
            is_own = ids == file_id
            own = numbers[is_own]
            of_file.seen += len(own)
            if len(of_file.numbers) == self._most and own.min() > of_file.numbers[-1]:
                is_kept[is_own] = False
                of_file.beyond = min(of_file.beyond, int(own.min()))
                continue
            of_file.numbers = np.sort(np.concatenate([of_file.numbers, own]))[: self._most]
            is_beyond = is_own & (numbers > self._last(int(file_id)))
            if is_beyond.any():
                is_kept &= ~is_beyond
                of_file.beyond = min(of_file.beyond, int(numbers[is_beyond].min()))
        chosen = rows if is_kept.all() else rows.filter(pa.array(is_kept))
        return chosen.append_column("lines", pa.array(np.ones(chosen.num_rows, np.int64)))

    def _last(self, file_id: int) -> int:
        """The number of the last line of a file that gets a row."""
        numbers = self._files[file_id].numbers
        return int(numbers[-1]) if len(numbers) == self._most else LAST_LINE

    def summed_up(self, rows: pa.Table, files: Sequence[RawFile]) -> pa.Table:
        """The rows to keep, and one for the others of each file that has more.

        Args:
            rows: what `kept` gave, of all batches, with the names of their files.
            files: the files by their ids.
        """
        tables = [rows]
        for file_id, of_file in self._files.items():
            if of_file.seen <= self._most:
                continue
            name, last = files[file_id].source_file, self._last(file_id)
            is_own = pc.equal(tables[0]["source_file"], name)
            is_beyond = pc.and_(is_own, pc.greater(tables[0]["line_number"], last))
            beyond = pc.min(tables[0]["line_number"].filter(is_beyond)).as_py()
            tables[0] = tables[0].filter(pc.invert(is_beyond))
            kept = pc.sum(pc.equal(tables[0]["source_file"], name)).as_py()
            if more := of_file.seen - kept:
                tables.append(_rest(rows.schema, name, min(of_file.beyond, beyond or LAST_LINE), kept, more))
        return pa.concat_tables(tables)


def _rest(schema: pa.Schema, name: str, first: int, kept: int, more: int) -> pa.Table:
    """The one row for all lines behind the last one that has a row of its own."""
    reason = (
        f"neither reason nor text is kept of the rejected lines from here on, since {kept:,} come before them "
        "(HEALTH_MAX_REJECTED_LINES)"
    )
    told = {"source_file": name, "line_number": first, "reason": reason, "raw": "", "lines": more}
    return pa.table({column: pa.array([told.get(column)], schema.field(column).type) for column in schema.names})
