"""DuckDB's SQL of ibis expressions.

ibis is used here as a compiler alone: tables have the schema that they are declared with, and connections stay ours, so
that opening a session does not ask the database what it holds.
"""

from functools import cache

import duckdb
import ibis
import ibis.expr.operations as ops
from ibis import ir

from health_assets.core.sql_memory import remembered


def duckdb_sql(connection: duckdb.DuckDBPyConnection, rows: ir.Table) -> str:
    """SQL of an expression; small tables in memory that it uses become known to the connection."""
    for node in rows.op().find(ops.InMemoryTable):
        connection.register(node.name, node.data.to_pyarrow(node.schema))
    return compiled(rows)


@remembered("duckdb", __file__)
def compiled(rows: ir.Table) -> str:
    """SQL of an expression."""
    return _compiler().compile(rows)


@cache
def _compiler() -> ibis.BaseBackend:
    return ibis.duckdb.connect()
