"""Long lists: which rows are looked for, in which order, and which of them are on a page.

What belongs here: what several pages do with a table of many rows. What does not: what a row means.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.page import Format

ROWS_PER_PAGE = 50
ROWS_OF_A_FILE = 10_000
"""Rows of a page that is written as CSV: people take such a file for the whole list."""


def containing(rows: pa.Table, column: str, text: str) -> pa.Table:
    """The rows whose column contains a text, in any case; all rows for no text."""
    if not text or not rows.num_rows:
        return rows
    return rows.filter(pc.match_substring(rows.column(column), text, ignore_case=True))


def sliced(rows: pa.Table, order: list[tuple[str, str]], page: int, most: int) -> list[dict[str, Any]]:
    """A page of rows.

    Args:
        rows: the table.
        order: columns with `ascending` or `descending`, unique together; what is not known comes last.
        page: from 1.
        most: rows of a page.
    """
    if not rows.num_rows:
        return []
    first = pc.select_k_unstable(rows, min(page * most, rows.num_rows), order)
    return rows.take(first.slice((page - 1) * most, most)).to_pylist()


def rows_of_page(rows: pa.Table, columns: Sequence[str], page: int, most: int) -> list[dict[str, Any]]:
    """Columns of a page of rows that are in order already, of those columns that the table has.

    Args:
        rows: the table.
        columns: the columns.
        page: from 1.
        most: rows of a page.
    """
    shown = [name for name in columns if name in rows.column_names]
    return rows.select(shown).slice((page - 1) * most, most).to_pylist() if shown else []


def pages_of(rows: int, most: int) -> int:
    """The number of pages that so many rows take; no rows take one."""
    return max(1, -(-rows // most))


def total(rows: pa.Table, column: str) -> Any:
    """The sum of a column; None where no row knows it."""
    return pc.sum(rows.column(column)).as_py() if rows.num_rows else None


def most_rows(how: Format) -> int:
    """Rows of a long list: a page for people, and for programs as many as they can have at once."""
    return ROWS_PER_PAGE if how == "html" else ROWS_OF_A_FILE
