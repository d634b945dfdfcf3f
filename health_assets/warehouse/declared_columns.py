"""Descriptions and NOT NULL of the declared tables in the catalog of the database itself.

What belongs here: the statements by which a database comes to say what the classes declare (`schema.catalog`), valid on
DuckDB and PostgreSQL alike. What does not: how an engine lists what its catalog says (`engines`).

A table is made with NOT NULL. One of an older warehouse may hold rows from before a column was there; such a column
stays nullable until an upgrade finds these rows gone or made anew, and the checks watch it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from health_assets.core.sql_text import quoted
from health_assets.schema.catalog import ALL_TABLES, describe, description_of


@dataclass(frozen=True)
class KnownColumn:
    """A column in the catalog of a database.

    Args:
        is_nullable: whether it may be null.
        comment: its description; None without any.
    """

    is_nullable: bool
    comment: str | None


def declare(
    query: Callable[[str], Sequence[Sequence[Any]]],
    table_comments: Mapping[str, str | None],
    columns: Mapping[str, Mapping[str, KnownColumn]],
) -> None:
    """Bring descriptions and NOT NULL of the tables that are there to what the classes declare.

    Args:
        query: runs a statement, and gives its rows.
        table_comments: description of each table of the database; None without any.
        columns: what the database says of the columns, by table and name.
    """
    for table in ALL_TABLES.keys() & columns.keys():
        if table_comments[table] != description_of(table):
            query(f"COMMENT ON TABLE {table} IS {quoted(description_of(table))}")
        for statement in _comments(table, columns[table]):
            query(statement)
        for change in _changes_of_nullability(query, table, columns[table]):
            query(f"ALTER TABLE {table} ALTER COLUMN {change}")


def _comments(table: str, known: Mapping[str, KnownColumn]) -> Iterator[str]:
    for name, _, _, meaning in describe(table):
        if name in known and known[name].comment != meaning:
            yield f"COMMENT ON COLUMN {table}.{name} IS {quoted(meaning)}"


def _changes_of_nullability(
    query: Callable[[str], Sequence[Sequence[Any]]], table: str, known: Mapping[str, KnownColumn]
) -> Iterator[str]:
    declared = {name: is_nullable for name, _, is_nullable, _ in describe(table) if name in known}
    for name, is_nullable in declared.items():
        if is_nullable and not known[name].is_nullable:
            yield f"{name} DROP NOT NULL"
    required = [name for name, is_nullable in declared.items() if not is_nullable and known[name].is_nullable]
    if required:
        [has_nulls] = query(f"SELECT {', '.join(f'bool_or({name} IS NULL)' for name in required)} FROM {table}")
        yield from (f"{name} SET NOT NULL" for name, is_null in zip(required, has_nulls, strict=True) if not is_null)
