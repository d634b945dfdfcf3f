"""Routing: splits the stream of records by table, counts what every file holds, and drops what was not asked for.

What belongs here: one pass over the batches of `reader.Reading.records`. What does not: where the rows go from here
(`pipeline.loading`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.core.interruption import check
from health_assets.core.wording import counted
from health_assets.logs.files import RawFile
from health_assets.logs.reader import Content, earlier
from health_assets.logs.rejections import OF_THE_LINE, PLACE, Rejected
from health_assets.schema.catalog import TABLE_OF_RECORD, columns_of

STREAMED_TABLE = "executions"
"""The kind of record that most lines are: its rows flow on while files are read; others wait in files of their own."""

IsWanted = Callable[[str, str, datetime], bool]
"""Whether the lines of (source file, record type, hour) are asked for."""


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """A reason for which lines were rejected.

    Args:
        reason: the reason, without what it says of the single line.
        lines: how many lines were rejected for it.
        source_file: the file of the first of them.
        line_number: the number of that line.
    """

    reason: str
    lines: int
    source_file: str
    line_number: int

    def __str__(self) -> str:
        return f"{self.reason} ({counted(self.lines, 'line')}, first in {self.source_file}:{self.line_number})"

    @property
    def place(self) -> tuple[str, int]:
        """File and line number of the first of the lines."""
        return self.source_file, self.line_number


class Router:
    """One pass over a stream of records.

    Args:
        files: the files that are read; a batch names them by position.
        is_wanted: which lines are asked for.
        schema: schema of the stream.
        folder: for the rows that have to wait.
        most_rejected: rejected lines of one file that get a row each; the others are one row.
    """

    def __init__(
        self, files: Sequence[RawFile], is_wanted: IsWanted, schema: pa.Schema, folder: Path, most_rejected: int
    ) -> None:
        self._files = files
        self._is_wanted = is_wanted
        self._names = pa.array([file.source_file for file in files], pa.string())
        self._named = schema.append(pa.field("source_file", pa.string()))
        self._folder = folder
        self._writers: dict[str, pa.ipc.RecordBatchFileWriter] = {}
        self._counts: dict[tuple[int, str, datetime | None], tuple[int, int, datetime | None]] = {}
        self._rejected = Rejected(most_rejected)
        self.rejections: list[Rejection] | None = None
        """The reasons where every line was rejected, once rows that were set aside have been read."""
        self.secrets = 0
        """Secrets that were replaced in wanted rows and in rejected ones."""
        self.lines_with_secrets = 0

    def streamed(self, stream: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Wanted rows of `STREAMED_TABLE`; reading them to the end reads the whole stream."""
        schema = pa.schema([self._named.field(name) for name in columns_of(STREAMED_TABLE)])
        return pa.RecordBatchReader.from_batches(schema, self._streamed(stream))

    def _streamed(self, stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for table, rows in self._routed(stream):
            if table == STREAMED_TABLE:
                yield rows
            else:
                self._set_aside(table, rows)

    def read(self, stream: pa.RecordBatchReader) -> None:
        """Read a stream of other records to its end."""
        for table, rows in self._routed(stream):
            self._set_aside(table, rows)

    def _routed(self, stream: pa.RecordBatchReader) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The wanted rows with the table that each goes to."""
        for unnamed in stream:
            check()
            batch = unnamed.append_column("source_file", self._names.take(unnamed["file_id"]))
            kinds = self._count(batch)
            for record_type, places in kinds.items():
                rows = self._wanted_rows(batch, record_type, places, is_alone=len(kinds) == 1)
                table = TABLE_OF_RECORD[record_type]
                self._count_secrets(rows)
                if rows.num_rows or table == STREAMED_TABLE:
                    own = [PLACE] if record_type == "rejected" else []
                    yield table, rows.select([*columns_of(table), *own])

    def _count_secrets(self, rows: pa.RecordBatch) -> None:
        self.secrets += pc.sum(rows["secrets"], min_count=0).as_py()
        self.lines_with_secrets += pc.sum(pc.greater(rows["secrets"], 0), min_count=0).as_py()

    def _count(self, batch: pa.RecordBatch) -> dict[str, list[tuple[int, datetime | None]]]:
        """Count the batch's lines; gives the (file, hour) pairs of every kind of record in it."""
        keys = ["file_id", "record_type", "hour"]
        table = pa.Table.from_batches([batch.select([*keys, "fingerprint", "future_at"])])
        grouped = table.group_by(keys).aggregate(
            [("fingerprint", "count"), ("fingerprint", "sum"), ("future_at", "min")]
        )
        kinds: dict[str, list[tuple[int, datetime | None]]] = {}
        for row in grouped.to_pylist():
            key = (row["file_id"], row["record_type"], row["hour"])
            lines, digest, future_at = self._counts.get(key, (0, 0, None))
            self._counts[key] = (
                lines + row["fingerprint_count"],
                (digest + row["fingerprint_sum"]) % 2**64,
                earlier(row["future_at_min"], future_at),
            )
            kinds.setdefault(row["record_type"], []).append((row["file_id"], row["hour"]))
        return kinds

    def _wanted_rows(
        self, batch: pa.RecordBatch, record_type: str, places: list[tuple[int, datetime | None]], *, is_alone: bool
    ) -> pa.RecordBatch:
        if record_type == "rejected":  # their hour is known only when their file has been read to the end
            return self._rejected.kept(batch.filter(pc.equal(batch["record_type"], record_type)))
        wanted = [
            (file_id, hour)
            for file_id, hour in places
            if hour and self._is_wanted(self._files[file_id].source_file, record_type, hour)
        ]
        if is_alone and len(wanted) == len(places):
            return batch
        chosen = pa.table(
            {
                "file_id": pa.array([file_id for file_id, _ in wanted], batch["file_id"].type),
                "hour": pa.array([hour for _, hour in wanted], batch["hour"].type),
                "record_type": pa.array([record_type] * len(wanted), pa.string()),
            }
        )
        rows = pa.table({"row": range(batch.num_rows), **{name: batch[name] for name in chosen.column_names}})
        kept = rows.join(chosen, keys=chosen.column_names, join_type="left semi")
        return batch.take(kept["row"].combine_chunks())

    def _set_aside(self, table: str, rows: pa.RecordBatch) -> None:
        if table not in self._writers:
            self._writers[table] = pa.ipc.new_file(str(self._folder / table), rows.schema)
        self._writers[table].write_batch(rows)

    def set_aside(self, rejected_hours: dict[str, datetime]) -> Iterator[tuple[str, pa.Table]]:
        """(table, wanted rows) of every other table, once the stream has been read.

        Args:
            rejected_hours: the hour of each file's rejected lines.
        """
        for table, writer in self._writers.items():
            writer.close()
            with pa.memory_map(str(self._folder / table)) as source:
                rows = pa.ipc.open_file(source).read_all()
                if table == "rejected_records":
                    rows = self._rejected.summed_up(rows, self._files)
                    if all(record_type == "rejected" for _, record_type, _ in self._counts):
                        self.rejections = _by_reason(rows)
                    rows = self._with_hours(rows, rejected_hours)
                yield table, rows

    def _with_hours(self, rejected: pa.Table, hours: dict[str, datetime]) -> pa.Table:
        kept = {name: hour for name, hour in hours.items() if self._is_wanted(name, "rejected", hour)}
        rows = rejected.filter(pc.is_in(rejected["source_file"], pa.array(list(kept), pa.string())))
        hour = pa.array([kept[name] for name in rows["source_file"].to_pylist()], rejected.schema.field("hour").type)
        return rows.set_column(rows.schema.get_field_index("hour"), "hour", hour)

    def contents(self) -> list[Content]:
        """The contents of the files, once the stream has been read."""
        return [
            Content(
                file_id=file_id, record_type=record_type, hour=hour, lines=lines, digest=digest, future_at=future_at
            )
            for (file_id, record_type, hour), (lines, digest, future_at) in self._counts.items()
        ]


def main_rejection(found: Iterable[Rejection]) -> Rejection | None:
    """The most frequent of the reasons, which several readings may have found; None where there is none."""
    sums: dict[str, Rejection] = {}
    for one in found:
        other = sums.get(one.reason, one)
        first = min(one, other, key=lambda rejection: rejection.place)
        lines = one.lines if other is one else one.lines + other.lines
        sums[one.reason] = replace(first, lines=lines)
    return min(sums.values(), key=lambda rejection: (-rejection.lines, rejection.reason), default=None)


def _by_reason(rejected: pa.Table) -> list[Rejection]:
    """The reasons of these rows, each with its first line."""
    reasons = pc.replace_substring_regex(rejected["reason"], pattern=OF_THE_LINE, replacement="")
    rows = rejected.select(["lines", "source_file", "line_number"]).append_column("reason", reasons)
    in_order = rows.sort_by([("source_file", "ascending"), ("line_number", "ascending")])
    sums = in_order.group_by("reason", use_threads=False).aggregate(
        [("lines", "sum"), ("source_file", "first"), ("line_number", "first")]
    )
    return [
        Rejection(
            reason=row["reason"],
            lines=row["lines_sum"],
            source_file=row["source_file_first"],
            line_number=row["line_number_first"],
        )
        for row in sums.to_pylist()
    ]
