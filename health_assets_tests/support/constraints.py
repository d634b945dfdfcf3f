"""Tables without their constraints, as warehouses before version 9 have them: for rows that a test needs a part of."""

from collections.abc import Iterator

from health_assets.schema.catalog import ALL_TABLES, describe


def drop_constraints(*tables: str) -> Iterator[str]:
    """SQL that lets every column of these tables be null, by default of all; valid on DuckDB and PostgreSQL alike."""
    for table in tables or ALL_TABLES:
        for name, _, is_nullable, _ in describe(table):
            if not is_nullable:
                yield f"ALTER TABLE {table} ALTER COLUMN {name} DROP NOT NULL"
