"""Expressions over rows that pass through memory, evaluated by DuckDB, whichever engine the rows come from.

What belongs here: a DuckDB that has no file. What does not: rows that a warehouse keeps (`session`), and what is made
of the rows, which is the caller's.
"""

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.duckdb_sql import duckdb_sql

_CONFIG: dict[str, Any] = {"threads": 1, "memory_limit": "128MB"}
"""Batches pass one by one, so that little memory is enough, and one thread leaves the other cores to others."""


def stream_through(
    batches: pa.RecordBatchReader, make: Callable[[ir.Table], ir.Table], rows_per_batch: int
) -> pa.RecordBatchReader:
    """Evaluate an expression over rows, batch by batch, in their order where the expression sets no other.

    Args:
        batches: the rows, read as the result is.
        make: makes the expression of them.
        rows_per_batch: how many rows a batch of the result has at most.
    """
    connection = duckdb.connect(config=_CONFIG)
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("incoming", batches)
    rows = make(ibis.table(ibis.Schema.from_pyarrow(batches.schema), name="incoming"))
    made = connection.sql(duckdb_sql(connection, rows)).to_arrow_reader(rows_per_batch)

    def parts() -> Iterator[pa.RecordBatch]:
        with connection:  # which must stay open for as long as batches come
            yield from made

    return pa.RecordBatchReader.from_batches(made.schema, parts())
