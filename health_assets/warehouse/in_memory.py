"""Expressions over rows that pass through memory, evaluated by DuckDB, whichever engine the rows come from.

What belongs here: a DuckDB that has no file. What does not: rows that a warehouse keeps (`session`), and what is made
of the rows, which is the caller's.
"""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
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


@contextmanager
def in_order(
    files: Sequence[tuple[Path, AbstractSet[datetime]]], keys: Sequence[str], rows_per_batch: int, spill: Path
) -> Iterator[pa.RecordBatchReader]:
    """Rows of Arrow files in one order; what does not fit into memory is spilled.

    Args:
        files: each file, and the hours of it that count.
        keys: columns to order by.
        rows_per_batch: how many rows a batch has at most.
        spill: folder for what does not fit into memory.
    """
    import pyarrow.dataset as ds  # large, and needed by those who put files together alone

    datasets = [ds.dataset(path, format="ipc") for path, _ in files]
    schema = pa.unify_schemas([dataset.schema for dataset in datasets], promote_options="permissive")
    config = {**_CONFIG, "memory_limit": "256MB", "temp_directory": str(spill)}
    with duckdb.connect(config=config) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        parts = []
        for number, (dataset, (_, hours)) in enumerate(zip(datasets, files, strict=True)):
            connection.register(f"part_{number}", dataset.replace_schema(schema))
            rows = ibis.table(ibis.Schema.from_pyarrow(schema), name=f"part_{number}")
            parts.append(rows.filter(rows.hour.isin(sorted(hours))))
        ordered = ibis.union(*parts).order_by(keys) if len(parts) > 1 else parts[0].order_by(keys)
        yield connection.sql(duckdb_sql(connection, ordered)).to_arrow_reader(rows_per_batch)
