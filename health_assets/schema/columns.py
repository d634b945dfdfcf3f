"""Parts of the declarations of tables: the columns that rows share, and one function a kind of column.

A column of a record table that holds a field of the log format names it as `line`. What does not belong here: any
table.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from health_assets.schema.log_fields import LogField


def at(description: str, *, key: bool = False, nullable: bool = False, line: LogField | None = None) -> Any:
    """A moment, in UTC."""
    return _column(description, line, primary_key=key, sa_type=sa.DateTime(timezone=True), nullable=nullable)


def text(description: str, *, key: bool = False, line: LogField | None = None) -> Any:
    """A text."""
    return _column(description, line, primary_key=key)


def number(description: str, *, line: LogField | None = None) -> Any:
    """A number that need not be whole."""
    return _column(description, line, sa_type=sa.Double)


def count(description: str, *, key: bool = False, line: LogField | None = None) -> Any:
    """A whole number."""
    keywords = {"autoincrement": False} if key else {}
    return _column(description, line, keywords, sa_type=sa.BigInteger, primary_key=key)


def flag(description: str, *, line: LogField | None = None) -> Any:
    """Yes or no."""
    return _column(description, line)


def texts(description: str, *, line: LogField | None = None) -> Any:
    """A list of texts."""
    return _column(description, line, sa_type=sa.ARRAY(sa.String))


def json(description: str, *, line: LogField | None = None) -> Any:
    """JSON."""
    return _column(description, line, sa_type=sa.JSON)


LINE = "line"
"""Where SQLAlchemy keeps the field of a column, in its `info`."""


def _column(
    description: str, line: LogField | None, keywords: Mapping[str, Any] = MappingProxyType({}), **others: Any
) -> Any:
    info = {"info": {LINE: line}} if line else {}
    return Field(description=description, sa_column_kwargs={**keywords, **info}, **others)


FORMULA_VERSION = "formula_version"
"""The column of a result that says which version of its formula made the row."""


class Hourly(SQLModel):
    """A table partitioned by hour."""

    hour: datetime = at("Start of the UTC hour that the row belongs to.", key=True)


class AsOf(Hourly):
    """A table whose rows are made again and again while their hour runs."""

    as_of: datetime = at("Up to when events count: the end of the hour, or an earlier time while it runs.")
    is_final: bool = flag("Whether the hour was over when the row was made.")


class Windowed(AsOf):
    """A table whose rows summarise the evaluation window that ends with their hour."""

    window_start: datetime = at("Start of the evaluation window, included.")
    window_end: datetime = at("End of the evaluation window, excluded: the end of the hour, or `as_of` while it runs.")
    hours_covered: int = count("Hours of the window that were materialized or lie before the first log.")


class FromLine(Hourly):
    """A row cleaned from one line of a raw log."""

    source_file: str = text("Raw log that holds the line, relative to the raw root.", key=True)
    line_number: int = count("Line in that file, counted from 1.", key=True)
