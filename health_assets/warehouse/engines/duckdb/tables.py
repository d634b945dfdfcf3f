"""The tables as DuckDB has them: how it spells the types that columns are declared with, and the statements.

What belongs here: how a declared table differs on DuckDB. What does not: the declaration (`schema`).
"""

from health_assets.schema.catalog import describe
from health_assets.schema.column_types import SQL_NAMES

TYPES = {**SQL_NAMES, "float64": "DOUBLE"}
"""How DuckDB spells each type, and names it when it is asked for a table's columns."""


def create_statement(table: str) -> str:
    """DDL of a table, without keys (see `schema.catalog`)."""
    columns = ", ".join(
        f"{name} {TYPES[kind]}{'' if is_nullable else ' NOT NULL'}" for name, kind, is_nullable, _ in describe(table)
    )
    return f"CREATE TABLE IF NOT EXISTS {table} ({columns})"
