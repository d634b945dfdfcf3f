"""Names of the columns' types: in SQL as the standard has them, and in Arrow.

What belongs here: what holds on any engine. What does not: an engine's own spelling (`warehouse.engines`), and which
column is of which type (`catalog`).
"""

from collections.abc import Mapping

import pyarrow as pa

SQL_NAMES: Mapping[str, str] = {
    "timestamp('UTC')": "TIMESTAMP WITH TIME ZONE",
    "float64": "DOUBLE PRECISION",
    "int64": "BIGINT",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "array<string>": "VARCHAR[]",
    "array<int16>": "SMALLINT[]",
    "json": "JSON",
}
"""Names in SQL, by how `catalog.describe` writes a type."""

ARROW_TYPES: Mapping[str, pa.DataType] = {
    "timestamp('UTC')": pa.timestamp("us", "UTC"),
    "float64": pa.float64(),
    "int64": pa.int64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "array<string>": pa.list_(pa.string()),
    "array<int16>": pa.list_(pa.int16()),
    "json": pa.string(),
}
"""Types of the columns of rows that are brought into a table; JSON comes as its text."""
