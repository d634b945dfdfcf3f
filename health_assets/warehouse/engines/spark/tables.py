"""The tables as Spark has them: which of them lie in the lake, and how it spells the types of their columns.

What belongs here: how a declared table differs on Spark. What does not: the declaration (`schema`).
"""

import ibis
import ibis.expr.datatypes as dt
import pyarrow as pa

from health_assets.core.systems import parts
from health_assets.schema.catalog import columns_of, describe
from health_assets.schema.column_types import ARROW_TYPES
from health_assets.schema.records import RECORD_TABLES, SUPERSEDED
from health_assets.warehouse.engines.spark.spark_compiler import compiler

LAKE_TABLES = frozenset(
    {*RECORD_TABLES, *SUPERSEDED.values()}
    | {table.__tablename__ for module in parts("tables").values() for table in module.TABLES}
)
"""Tables of records, components and results, which grow with the logs; all others are the account of them."""


def column_definitions(schema: ibis.Schema) -> str:
    """The columns with their types, as Spark's readers and functions take them; JSON is text there."""
    kinds = {name: dt.string if kind.is_json() else kind for name, kind in schema.items()}
    return ", ".join(f"`{name}` {compiler().type_mapper.to_string(kind)}" for name, kind in kinds.items())


def schema_in_lake(table: str) -> ibis.Schema:
    """The columns of a table as its files have them: JSON is text there."""
    return ibis.Schema.from_pyarrow(arrow_schema(table))


def arrow_schema(table: str) -> pa.Schema:
    """The columns of a table in the types of its files."""
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind, *_ in describe(table)])


def typed_columns(table: str) -> list[str]:
    """Columns of a table to select, each in the type of its files."""
    types, mapper = schema_in_lake(table), compiler().type_mapper
    return [f"CAST(`{name}` AS {mapper.to_string(types[name])}) AS `{name}`" for name in columns_of(table)]
