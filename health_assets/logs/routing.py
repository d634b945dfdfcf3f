"""Routing: splits the stream of records by table, counts what every file holds, and drops what was not asked for.

What belongs here: one pass over the batches of `reader.LogParser.records`. What does not: where the rows go from here
(`pipeline.loading`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.core.formatting import counted
from health_assets.core.interruption import check
from health_assets.logs.files import RawFile
from health_assets.logs.rejections import OF_THE_LINE, PLACE, Rejected, example_of
from health_assets.logs.tally import Content, Tally, hours_as_column
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
        example: the part of the reason that shows the value of that line, like `, not ok`; may be empty.
    """

    reason: str
    lines: int
    source_file: str
    line_number: int
    example: str = ""

    def __str__(self) -> str:
        place = f"{self.source_file}:{self.line_number}"
        return f"{self.reason}{self.example} ({counted(self.lines, 'line')}, first in {place})"

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
        most_rejected: rejected lines of one file that get a row each; the others are one row an hour.
        tally: counts the rows.
    """

    def __init__(
        self,
        files: Sequence[RawFile],
        is_wanted: IsWanted,
        schema: pa.Schema,
        folder: Path,
        most_rejected: int,
        tally: Tally,
    ) -> None:
        self._files = files
        self._is_wanted = is_wanted
        self._names = pa.array([file.source_file for file in files], pa.string())
        self._named = schema.append(pa.field("source_file", pa.string()))
        self._folder = folder
        self._writers: dict[str, pa.ipc.RecordBatchFileWriter] = {}
        self._tally = tally
        self._rejected = Rejected(most_rejected)
        self.rejections: list[Rejection] | None = None
        """The reasons where every line was rejected, once rows that were set aside have been read."""
        self.secrets = 0
        """Secrets that were replaced in wanted rows and in rejected ones."""
        self.lines_with_secrets = 0

    def streamed(self, stream: pa.RecordBatchReader, converted: Collection[int] = ()) -> pa.RecordBatchReader:
        """Wanted rows of `STREAMED_TABLE`; reading them to the end reads the whole stream.

        Args:
            stream: the records.
            converted: ids of files of which one line may have become several records, which grows as they are read.
        """
        schema = pa.schema([self._named.field(name) for name in columns_of(STREAMED_TABLE)])
        return pa.RecordBatchReader.from_batches(schema, self._streamed(stream, converted))

    def _streamed(self, stream: pa.RecordBatchReader, converted: Collection[int]) -> Iterator[pa.RecordBatch]:
        for table, rows in self._routed(stream, converted):
            if table == STREAMED_TABLE:
                yield rows
            else:
                self._write(table, rows)

    def read(self, stream: pa.RecordBatchReader) -> None:
        """Read a stream of spans to its end."""
        for table, rows in self._routed(stream, multi_row_files=None):
            self._write(table, rows)

    def _routed(
        self, stream: pa.RecordBatchReader, multi_row_files: Collection[int] | None
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The wanted rows with the table that each goes to."""
        for unnamed in stream:
            check()
            batch = unnamed.append_column("source_file", self._names.take(unnamed["file_id"]))
            kinds = self._tally.add(batch, multi_row_files)
            for record_type, places in kinds.items():
                table = TABLE_OF_RECORD[record_type]
                columns = [*columns_of(table), *([PLACE] if record_type == "rejected" else [])]
                rows = self._wanted_rows(batch, record_type, places, columns, is_alone=len(kinds) == 1)
                self._count_secrets(rows)
                if rows.num_rows or table == STREAMED_TABLE:
                    yield table, rows.select(columns)

    def _count_secrets(self, rows: pa.RecordBatch) -> None:
        self.secrets += pc.sum(rows["secrets"], min_count=0).as_py()
        self.lines_with_secrets += pc.sum(pc.greater(rows["secrets"], 0), min_count=0).as_py()

    def _wanted_rows(
        self,
        batch: pa.RecordBatch,
        record_type: str,
        places: list[tuple[int, datetime]],
        columns: Sequence[str],
        *,
        is_alone: bool,
    ) -> pa.RecordBatch:
        if record_type == "rejected":  # their hour is known only when their file has been read to the end
            return self._rejected.kept(batch.filter(pc.equal(batch["record_type"], record_type)))
        wanted = [
            (file_id, hour)
            for file_id, hour in places
            if self._is_wanted(self._files[file_id].source_file, record_type, hour)
        ]
        has_all = len(wanted) == len(places)
        if is_alone and has_all:
            return batch
        narrow = batch.select([*columns, *({"secrets"} - set(columns))])  # fewer columns to copy
        if has_all:
            return narrow.filter(pc.equal(batch["record_type"], record_type))
        chosen = pa.table(
            {
                "file_id": pa.array([file_id for file_id, _ in wanted], batch["file_id"].type),
                "hour": pa.array([hour for _, hour in wanted], batch["hour"].type),
                "record_type": pa.array([record_type] * len(wanted), pa.string()),
            }
        )
        rows = pa.table({"row": range(batch.num_rows), **{name: batch[name] for name in chosen.column_names}})
        kept = rows.join(chosen, keys=chosen.column_names, join_type="left semi")
        return narrow.take(kept["row"].combine_chunks())

    def _write(self, table: str, rows: pa.RecordBatch) -> None:
        if table not in self._writers:
            self._writers[table] = pa.ipc.new_file(str(self._folder / table), rows.schema)
        self._writers[table].write_batch(rows)

    def other_tables(self) -> Iterator[tuple[str, pa.Table]]:
        """(table, wanted rows) of every other table, once the streams have been read."""
        for table, writer in self._writers.items():
            writer.close()
            with pa.memory_map(str(self._folder / table)) as source:
                rows = pa.ipc.open_file(source).read_all()
                yield table, self._rejected_rows(rows) if table == "rejected_records" else rows

    def _rejected_rows(self, rows: pa.Table) -> pa.Table:
        contents = self.contents()
        lines = {
            (self._files[content.file_id].source_file, content.hour): content.lines
            for content in contents
            if content.record_type == "rejected"
        }
        rows = self._rejected.summed_up(self._with_hours(rows), self._files, lines)
        if all(content.record_type == "rejected" for content in contents):
            self.rejections = _by_reason(rows)
        wanted = {place for place in lines if self._is_wanted(place[0], "rejected", place[1])}
        places = zip(rows["source_file"].to_pylist(), rows["hour"].to_pylist(), strict=True)
        return rows.filter(pa.array([place in wanted for place in places], pa.bool_()))

    def _with_hours(self, rejected: pa.Table) -> pa.Table:
        """The rows; those without a time of their own have the hour that follows from other lines."""
        hours = rejected["hour"].combine_chunks()
        is_untimed = hours.is_null()
        untimed = rejected.filter(is_untimed)
        ids = pc.index_in(untimed["source_file"], self._names).to_numpy()
        found = self._tally.hours_at(ids, untimed["line_number"].to_numpy())
        filled = pc.replace_with_mask(hours, is_untimed, hours_as_column(found, hours.type))
        return rejected.set_column(rejected.schema.get_field_index("hour"), "hour", filled)

    def contents(self) -> list[Content]:
        """The contents of the files, once the streams have been read."""
        return self._tally.contents()


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
    rows = rows.append_column("whole", rejected["reason"])
    in_order = rows.sort_by([("source_file", "ascending"), ("line_number", "ascending")])
    sums = in_order.group_by("reason", use_threads=False).aggregate(
        [("lines", "sum"), ("source_file", "first"), ("line_number", "first"), ("whole", "first")]
    )
    return [
        Rejection(
            reason=row["reason"],
            lines=row["lines_sum"],
            source_file=row["source_file_first"],
            line_number=row["line_number_first"],
            example=example_of(row["whole_first"]),
        )
        for row in sums.to_pylist()
    ]
