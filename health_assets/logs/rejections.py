"""Rejected lines and spans in very large numbers: a row each for the first of a file, and one an hour for all others.

What belongs here: choosing these rows from a stream in any order. What does not: why a line is rejected (`native`,
`otlp`) and how many there are in all, which is counted with all other lines (`routing`).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from health_assets.logs.stores import RawFile

LAST_LINE = np.iinfo(np.int64).max
PLACE = "position"
"""The place of a span in its line, which rows have until they are summed up; empty for a line."""
OF_THE_LINE = ", (not|in span|in log record) .*"
"""The part of a reason that is about the single line, as a regular expression: it may quote the log."""
_EXAMPLE = re.compile(r", not .*?(?=, in (?:span|log record) [0-9.]+$|$)", re.DOTALL)
_NO_PLACES = np.empty((0, 4), np.int64)
_BEHIND_ALL = np.full(4, LAST_LINE)


def example_of(reason: str) -> str:
    """The part of a reason that shows the line's own value, like `, not ok`; empty where it shows none."""
    found = _EXAMPLE.search(reason)
    return found[0] if found else ""


@dataclass
class _OfFile:
    """The account of a file's rejected lines and spans so far.

    Args:
        seen: how many there were.
        beyond: the least line number among those that get none.
        places: the first places so far, in order, as many as may get a row; as `_places` gives them.
    """

    seen: int = 0
    beyond: int = LAST_LINE
    places: np.ndarray = field(default_factory=lambda: _NO_PLACES)


class Rejected:
    """Rows of rejected lines and spans, of which a file may have any number.

    Which of them get a row follows from their places alone, whatever the order in which they come.

    Args:
        most: rows of a file that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._files: dict[int, _OfFile] = {}

    def kept(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that may be among the first of their file, each of which stands for one line or span."""
        ids = rows["file_id"].to_numpy(zero_copy_only=False)
        if PLACE not in rows.schema.names:
            rows = rows.append_column(PLACE, pa.array([""] * len(ids), pa.string()))
        places = _places(rows)
        is_kept = np.ones(len(ids), bool)
        for file_id in np.unique(ids):
            of_file = self._files.setdefault(int(file_id), _OfFile())
            is_own = ids == file_id
            of_file.seen += int(is_own.sum())
            nearer = places[is_own & ~_are_behind(places, self._last(of_file))]
            if len(nearer):
                of_file.places = _in_order(np.concatenate([of_file.places, nearer]))[: self._most]
            is_beyond = is_own & _are_behind(places, self._last(of_file))
            if is_beyond.any():
                is_kept &= ~is_beyond
                of_file.beyond = min(of_file.beyond, int(places[is_beyond, 0].min()))
        chosen = rows if is_kept.all() else rows.filter(pa.array(is_kept))
        return chosen.append_column("lines", pa.array(np.ones(chosen.num_rows, np.int64)))

    def _last(self, of_file: _OfFile) -> np.ndarray:
        """The last place of a file that gets a row."""
        return of_file.places[-1] if len(of_file.places) == self._most else _BEHIND_ALL

    def summed_up(
        self, rows: pa.Table, files: Sequence[RawFile], lines: Mapping[tuple[str, datetime], int]
    ) -> pa.Table:
        """The rows to keep, and one an hour for the others of each file that has more.

        Args:
            rows: results of `kept`, of all batches, with the names of their files and their hours.
            files: the files by their ids.
            lines: by file and hour, how many were rejected.
        """
        places = _places(rows)
        is_kept = np.ones(rows.num_rows, bool)
        beyond: dict[str, tuple[int, int]] = {}
        for file_id, of_file in self._files.items():
            if of_file.seen <= self._most:
                continue
            name = files[file_id].source_file
            is_own = pc.equal(rows["source_file"], name).to_numpy()
            is_beyond = is_own & _are_behind(places, self._last(of_file))
            is_kept &= ~is_beyond
            first = min([of_file.beyond, *places[is_beyond, 0].tolist()])
            beyond[name] = first, len(of_file.places)
        kept = rows.filter(pa.array(is_kept)).drop_columns([PLACE])
        with_rows = Counter(zip(kept["source_file"].to_pylist(), kept["hour"].to_pylist(), strict=True))
        rests = [
            _rest(kept.schema, name, hour, *beyond[name], count - with_rows[name, hour])
            for (name, hour), count in lines.items()
            if name in beyond and count > with_rows[name, hour]
        ]
        return pa.concat_tables([kept, *rests])


def _places(rows: pa.RecordBatch | pa.Table) -> np.ndarray:
    """A row each of the line's number and the place of the span in it, by resource, scope and span; 0 for a line."""
    places = np.zeros((rows.num_rows, 4), np.int64)
    places[:, 0] = rows["line_number"].to_numpy(zero_copy_only=False)
    is_span = pc.not_equal(rows[PLACE], "")
    parts = pc.split_pattern(rows[PLACE].filter(is_span), ".")
    within = pc.list_flatten(parts).cast(pa.int64()).to_numpy(zero_copy_only=False)
    places[np.asarray(is_span), 1:] = within.reshape(-1, 3)
    return places


def _in_order(places: np.ndarray) -> np.ndarray:
    return places[np.lexsort(places.T[::-1])]


def _are_behind(places: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Tell of each of these places whether it comes after one."""
    are_behind = np.zeros(len(places), bool)
    for own, limit in zip(places.T[::-1], last[::-1], strict=True):
        are_behind = (own > limit) | ((own == limit) & are_behind)
    return are_behind


def _rest(schema: pa.Schema, name: str, hour: datetime, first: int, kept: int, more: int) -> pa.Table:
    """The one row for all lines and spans of an hour behind the last one that has a row of its own."""
    reason = (
        f"neither reason nor text is kept of the rejected lines from here on, since {kept:,} come before them "
        "(HEALTH_MAX_REJECTED_LINES)"
    )
    told = {"hour": hour, "source_file": name, "line_number": first, "reason": reason, "raw": "", "lines": more}
    return pa.table({column: pa.array([told.get(column)], schema.field(column).type) for column in schema.names})
