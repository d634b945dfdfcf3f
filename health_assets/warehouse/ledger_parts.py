"""Parts: the unit in which the ledger accounts for raw logs, and how the rows of record tables belong to them.

What belongs here: what a part is, what is known of it, and which part a row is of. What does not: reading and writing
the account (`ledger`).

A part is the records of one kind in one file for one hour. A record is a line, or one of the spans in a line. What was
put together from spans of any files is a part too, under the name `TRACES` in place of a file's. Its rows are told by
their `span_id`, and have the place of their span: a file's own part and those rows leave one another alone. A part of
that name for the spans themselves has no lines: it says that the hour could not be put together anew yet.
"""

from dataclasses import dataclass
from datetime import datetime

from health_assets.schema.catalog import FROM_SPANS

TRACES = "(traces)"
"""Stands in place of a file for what was put together from spans."""


def part_source(table: str) -> str:
    """SQL for the file, or `TRACES`, whose part a row of a record table is."""
    return (
        f"CASE WHEN {table}.span_id IS NULL THEN {table}.source_file ELSE '{TRACES}' END"
        if (table in FROM_SPANS)
        else f"{table}.source_file"
    )


def lines_of(table: str) -> str:
    """SQL for the lines or spans that some rows of a record table stand for."""
    return "CAST(sum(lines) AS BIGINT)" if table == "rejected_records" else "count(*)"


@dataclass(frozen=True)
class Part:
    """The records of one kind in one file for one hour: the unit that is loaded or not."""

    source_file: str
    record_type: str
    hour: datetime


@dataclass(frozen=True)
class Lines:
    """The number of records of a part, mostly a line each, and a digest of them and their places."""

    count: int
    digest: str


NO_LINES = Lines(0, "")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A part's row in the ledger."""

    part: Part
    lines: Lines
    is_loaded: bool
    superseded: int = 0
    is_dropped: bool = False
