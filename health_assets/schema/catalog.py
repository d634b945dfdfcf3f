"""Every table of the warehouse, declared once: name, columns, types, units and meaning.

What belongs here: what is known of all tables alike. DDL, docs and Dagster's column metadata are generated from the
tables' classes, each of which describes its columns. What does not: the classes themselves, which stand in this folder
where several systems use the table, and otherwise in the system's own (`systems`).

Primary keys state identity, and columns that may not be null say so. Both are left out of the warehouse's DDL, because
an index over millions of rows an hour costs ten times the load; the transforms keep what is declared here, and the
expectations watch it.
"""

from collections.abc import Sequence
from functools import cache

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlmodel import SQLModel

from health_assets.core.systems import parts
from health_assets.schema import alerts, bookkeeping, quality, records
from health_assets.schema.records import FROM_SPANS, ID_OF_TABLE, RECORD_OF_TABLE, TABLE_OF_RECORD

__all__ = [
    "ALL_TABLES",
    "FROM_SPANS",
    "ID_OF_TABLE",
    "RECORD_OF_TABLE",
    "SCHEMA_DIGEST",
    "SCHEMA_VERSION",
    "TABLE_OF_RECORD",
    "columns_of",
    "create_statement",
    "describe",
    "schema_of",
]

SCHEMA_VERSION = 6
SCHEMA_DIGEST = "df25194682b5ed21"
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


def _columns(table: str) -> Sequence[sa.Column]:
    return list(SQLModel.metadata.tables[table].columns)


_EXPRESSION_TYPES = {
    "TIMESTAMP WITH TIME ZONE": "timestamp('UTC')",
    "DOUBLE PRECISION": "float64",
    "BIGINT": "int64",
    "BOOLEAN": "boolean",
    "VARCHAR": "string",
    "VARCHAR[]": "array<string>",
    "SMALLINT[]": "array<int16>",
    "JSON": "json",
}


def schema_of(table: str) -> dict[str, str]:
    """Column names and their types as ibis writes them."""
    return {name: _EXPRESSION_TYPES[sql_type] for name, sql_type, _, _ in describe(table)}


def create_statement(table: str) -> str:
    """DDL of a table, without keys and constraints (see the module's docstring); valid in DuckDB and PostgreSQL."""
    columns = ", ".join(f"{name} {sql_type}" for name, sql_type, _, _ in describe(table))
    return f"CREATE TABLE IF NOT EXISTS {table} ({columns})"


@cache
def describe(table: str) -> list[tuple[str, str, bool, str]]:
    """(name, SQL type, nullable, meaning) of every column."""
    model = ALL_TABLES[table]
    dialect = postgresql.dialect()
    return [
        (
            column.name,
            column.type.compile(dialect=dialect),
            bool(column.nullable),
            model.model_fields[column.name].description or "",
        )
        for column in _columns(table)
    ]
