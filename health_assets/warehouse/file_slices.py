"""File slices: the unit in which the ledger accounts for raw logs, and how the rows of record tables belong to them.

What belongs here: what a slice is, what is known of it, and which slice a row is of. What does not: reading and writing
the account (`ledger`).

A slice is the records of one kind in one file for one hour. A record is a line, or one of the spans in a line. What was
put together from spans of any files is a slice too, under the name `TRACES` in place of a file's. Its rows are told by
their `span_id`, and have the place of their span: a file's own slice and those rows leave one another alone. A slice of
that name for the spans themselves has no lines: it says that the hour could not be put together anew yet.
"""

from dataclasses import dataclass
from datetime import datetime

from health_assets.schema.catalog import FROM_SPANS, SUPERSEDED

_FROM_SPANS = {*FROM_SPANS, *(SUPERSEDED[table] for table in FROM_SPANS)}
TRACES = "(traces)"
"""Stands in place of a file for what was put together from spans."""


def tables_with_rows_of(table: str) -> tuple[str, ...]:
    """A record table, and the one with its superseded rows where it has such."""
    return (table, SUPERSEDED[table]) if table in SUPERSEDED else (table,)


def slice_source(table: str) -> str:
    """SQL for the file, or `TRACES`, whose slice a row of a record table or of its superseded rows is."""
    return (
        f"CASE WHEN {table}.span_id IS NULL THEN {table}.source_file ELSE '{TRACES}' END"
        if table in _FROM_SPANS
        else f"{table}.source_file"
    )


def lines_of(table: str) -> str:
    """SQL for the lines or spans that some rows of a record table stand for."""
    return "CAST(sum(lines) AS BIGINT)" if table == "rejected_records" else "count(*)"


def rows_by_slice(table: str) -> str:
    """SQL of `hour`, `source_file` and `rows`: rows from `$start` to `$end` by slice, superseded ones among them."""
    counts = [
        f"SELECT hour, {slice_source(name)} AS source_file, {lines_of(table)} AS rows FROM {name} "
        "WHERE hour >= $start AND hour < $end GROUP BY 1, 2"
        for name in tables_with_rows_of(table)
    ]
    if len(counts) == 1:
        return counts[0]
    return (
        f"SELECT hour, source_file, CAST(sum(rows) AS BIGINT) AS rows FROM ({' UNION ALL '.join(counts)}) AS counted "
        "GROUP BY 1, 2"
    )


@dataclass(frozen=True)
class FileSlice:
    """The records of one kind in one file for one hour: the unit that is loaded or not."""

    source_file: str
    record_type: str
    hour: datetime


@dataclass(frozen=True)
class SliceContent:
    """The number of records of a slice, mostly a line each, and a digest of them and their places."""

    count: int
    digest: str


EMPTY_SLICE = SliceContent(0, "")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A slice's row in the ledger."""

    file_slice: FileSlice
    lines: SliceContent
    is_loaded: bool
    is_dropped: bool = False
