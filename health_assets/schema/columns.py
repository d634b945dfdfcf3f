"""Parts of the declarations of tables: the columns that rows share, and one function a kind of column.

What does not belong here: any table.
"""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Field, SQLModel


def at(description: str, *, key: bool = False, nullable: bool = False) -> Any:
    """A moment, in UTC."""
    return Field(description=description, primary_key=key, sa_type=sa.DateTime(timezone=True), nullable=nullable)


def text(description: str, *, key: bool = False) -> Any:
    """A text."""
    return Field(description=description, primary_key=key)


def number(description: str) -> Any:
    """A number that need not be whole."""
    return Field(description=description, sa_type=sa.Double)


def count(description: str, *, key: bool = False) -> Any:
    """A whole number."""
    keywords = {"autoincrement": False} if key else {}
    return Field(description=description, sa_type=sa.BigInteger, primary_key=key, sa_column_kwargs=keywords)


def flag(description: str) -> Any:
    """Yes or no."""
    return Field(description=description)


FORMULA_VERSION = "formula_version"
"""The column of a result that says which version of its formula made the row."""


class Hourly(SQLModel):
    """A table partitioned by hour."""

    hour: datetime = at("Start of the UTC hour that the row belongs to.", key=True)


class Windowed(Hourly):
    """A table whose rows summarise the evaluation window that ends with their hour."""

    window_start: datetime = at("Start of the evaluation window, included.")
    window_end: datetime = at("End of the evaluation window, excluded.")
    hours_covered: int = count("Hours of the window that were materialized or lie before the first log.")


class FromLine(Hourly):
    """A row cleaned from one line of a raw log."""

    source_file: str = text("Raw log that holds the line, relative to the raw root.", key=True)
    line_number: int = count("Line in that file, counted from 1.", key=True)
