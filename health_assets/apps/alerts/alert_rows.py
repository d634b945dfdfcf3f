"""Rows of the tables of alerts, as dicts by column. What does not belong here: what they mean."""

from collections.abc import Sequence
from typing import Any

import ibis
import pyarrow as pa

from health_assets.schema.catalog import columns_of, schema_of
from health_assets.schema.column_types import ARROW_TYPES
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session


def append_rows(session: Session, table: str, rows: Sequence[dict[str, Any]]) -> None:
    """Add rows to a table; a column that a row does not name is null."""
    session.insert_arrow(table, _arrow(table, rows, columns_of(table)))


def correct_rows(session: Session, table: str, rows: Sequence[dict[str, Any]], keys: Sequence[str]) -> None:
    """Set the columns that all of these rows name, of the rows that have these keys."""
    if rows:
        corrections = ibis.memtable(_arrow(table, rows, list(rows[0])))
        PartitionStates(session).correct_rows(table, corrections, keys)


def _arrow(table: str, rows: Sequence[dict[str, Any]], names: Sequence[str]) -> pa.Table:
    kinds = schema_of(table)
    return pa.Table.from_pylist(list(rows), pa.schema([(name, ARROW_TYPES[kinds[name]]) for name in names]))
