"""Every table of the warehouse, declared once: name, columns, types, units and meaning.

What belongs here: what is known of all tables alike. DDL, docs and Dagster's column metadata are generated from the
tables' classes, each of which describes its columns. What does not: the classes themselves, which stand in this folder
where several systems use the table, and otherwise in the system's own (`systems`); and SQL (`warehouse.engines`).

Descriptions and NOT NULL are in the database, too. Primary keys, which state identity, are left out of its DDL, because
an index over millions of rows an hour costs ten times the load; the transforms keep them, and the expectations watch.
"""

from collections.abc import Sequence
from functools import cache
from inspect import cleandoc

import sqlalchemy as sa
from sqlmodel import AutoString, SQLModel

from health_assets.core.systems import parts
from health_assets.schema import alerts, bookkeeping, quality, records
from health_assets.schema.records import FROM_SPANS, ID_OF_TABLE, RECORD_OF_TABLE, SUPERSEDED, TABLE_OF_RECORD

__all__ = [
    "ALL_TABLES",
    "BASELINE_VERSION",
    "FROM_SPANS",
    "ID_OF_TABLE",
    "RECORD_OF_TABLE",
    "SCHEMA_DIGEST",
    "SCHEMA_VERSION",
    "SUPERSEDED",
    "TABLE_OF_RECORD",
    "columns_of",
    "describe",
    "description_of",
    "key_of",
    "schema_of",
]

BASELINE_VERSION = 14
"""The oldest version of the tables that can be upgraded."""
SCHEMA_VERSION = 14
SCHEMA_DIGEST = "8f3c65c890fb1d62"
"""Fingerprint of the tables of that version. A test compares it with the classes and says what to do where they differ:
of a table that changes without the version, an older warehouse lacks a part while it calls itself current."""

ALL_TABLES: dict[str, type[SQLModel]] = {
    model.__tablename__: model
    for model in (
        *records.TABLES,
        *(table for module in parts("tables").values() for table in module.TABLES),
        *alerts.TABLES,
        *quality.TABLES,
        *bookkeeping.TABLES,
    )
}


def columns_of(table: str) -> list[str]:
    """Names of a table's columns in their declared order: identity first, as the classes state them."""
    return [column.name for column in _columns(table)]


def key_of(table: str) -> list[str]:
    """The columns that tell a table's rows apart, the hour behind the others."""
    names = [column.name for column in _columns(table) if column.primary_key]
    return sorted(names, key=lambda name: name == "hour")


def _columns(table: str) -> Sequence[sa.Column]:
    return list(SQLModel.metadata.tables[table].columns)


def schema_of(table: str) -> dict[str, str]:
    """Column names and their types as ibis writes them."""
    return {name: kind for name, kind, _, _ in describe(table)}


def description_of(table: str) -> str:
    """The description of a table, in a sentence or two."""
    return cleandoc(ALL_TABLES[table].__doc__ or "")


@cache
def describe(table: str) -> list[tuple[str, str, bool, str]]:
    """(name, type, nullable, meaning) of every column; types as ibis writes them, which no database does."""
    model = ALL_TABLES[table]
    return [
        (
            column.name,
            _type_of(column.type),
            bool(column.nullable),
            model.model_fields[column.name].description or "",
        )
        for column in _columns(table)
    ]


def _type_of(declared: sa.types.TypeEngine) -> str:
    if isinstance(declared, sa.ARRAY):
        return f"array<{_type_of(declared.item_type)}>"
    [kind] = [kind for generic, kind in _TYPES.items() if isinstance(declared, generic)]
    return kind


_TYPES: dict[type, str] = {
    sa.DateTime: "timestamp('UTC')",
    sa.Double: "float64",
    sa.BigInteger: "int64",
    sa.SmallInteger: "int16",
    sa.Boolean: "boolean",
    sa.String: "string",
    AutoString: "string",
    sa.JSON: "json",
}
"""The kinds of columns that tables are declared with; each engine in `warehouse` spells them its own way."""
