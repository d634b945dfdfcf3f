"""The tables as PostgreSQL has them: made from the classes in `schema.catalog`, for migrations alone.

What belongs here: how a declared table differs on PostgreSQL. What does not: the declaration (`schema.catalog`).

Primary keys are left out here as on DuckDB (see `schema.catalog`), and what `migrate` brings after the revisions:
descriptions and NOT NULL (`warehouse.declared_columns`). What is added: the collation "C", so
that text sorts by its bytes, and an index by hour. The index costs a sixth of a load, and makes reading and replacing
an hour proportional to the rows of that hour: of 50 hours with 20,000 rows each, one is read in 4 ms, against 51 ms
with a block range index, which knows nothing of what was loaded since the last vacuum; partitions would be 8,760 a year
for each of some thirty tables. What each hour looks for through its whole look-back, and mostly finds nowhere, has an
index of those rows alone, which costs nothing where there are none.
"""

import sqlalchemy as sa
from sqlmodel import AutoString, SQLModel

from health_assets.schema.catalog import ALL_TABLES

ALEMBIC_TABLE = "alembic_version"
RARE = {"executions": ("agent_id_reported", "task_id", "input_digest")}
"""By table, columns that are mostly null, of which rows that have them are looked for."""


def metadata() -> sa.MetaData:
    """Every table of a warehouse, as migrations leave it."""
    made = sa.MetaData()
    for name in ALL_TABLES:
        columns = [sa.Column(column.name, _type(column.type)) for column in SQLModel.metadata.tables[name].columns]
        by_hour = [sa.Index(f"{name}_by_hour", "hour")] if any(column.name == "hour" for column in columns) else []
        rare = [
            sa.Index(f"{name}_by_hour_with_{column}", "hour", postgresql_where=sa.text(f"{column} IS NOT NULL"))
            for column in RARE.get(name, ())
        ]
        sa.Table(name, made, *columns, *by_hour, *rare)
    return made


def _type(declared: sa.types.TypeEngine) -> sa.types.TypeEngine:
    if isinstance(declared, sa.ARRAY):
        return sa.ARRAY(_type(declared.item_type))
    return sa.String(collation="C") if isinstance(declared, sa.String | AutoString) else declared
