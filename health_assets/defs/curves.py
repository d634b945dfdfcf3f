"""Numbers of every hour that a run materialized, which Dagster draws as curves on an asset's page.

What belongs here: taking them from the rows, and handing each to the event of its partition. What does not: the
numbers of derived assets, which each system names (`Derived.curves`), and summaries of whole runs (`summaries`).

The numbers of an hour are its own, also where one run makes many hours: its summary would be a flat line.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal

import dagster as dg
from ibis import ir

from health_assets.core.hours import KEY_FORMAT, HourGroups, HourRange
from health_assets.defs.partitions import is_told_of_partitions
from health_assets.warehouse.session import Session

MOST_HOURS = 168
"""Of a longer run, the newest hours that get curves: Dagster takes longer for each, the more there are."""
ROWS = "dagster/partition_row_count"

HourlyNumbers = Mapping[datetime, Mapping[str, int | float]]
"""Numbers by name, by hour; a number that an hour does not have is left out."""


def numbers_by_hour(
    session: Session, table: str, hours: HourGroups, curves: Callable[[ir.Table], Mapping[str, ir.Value]]
) -> HourlyNumbers:
    """The number of rows, and what `curves` aggregates of them, of each of the newest hours.

    Args:
        session: a session.
        table: the asset's table.
        hours: the hours of the run.
        curves: aggregates of the rows of an hour, by name.
    """
    asked = [*hours][-MOST_HOURS:]
    rows = session.hours_of(table, HourRange(asked[0], hours.end))
    counted = rows.group_by("hour").aggregate(**{ROWS: rows.count(), **curves(rows)})
    found: dict[datetime, dict[str, int | float]] = {}
    for row in session.arrow(counted).to_pylist():
        hour = row.pop("hour")
        found[hour] = {name: _number(value) for name, value in row.items() if value is not None}
    return {hour: found.get(hour, {ROWS: 0}) for hour in asked}


def _number(value: int | float | Decimal) -> int | float:
    """A number as Dagster draws it; PostgreSQL adds whole numbers up to decimals."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else float(value)


def show_curves(context: dg.AssetExecutionContext, asset: dg.AssetKey, numbers: HourlyNumbers) -> None:
    """Give each partition of the run its own numbers, if Dagster is told of partitions; before the asset's result."""
    if not is_told_of_partitions(context):
        return
    for hour, own in numbers.items():
        context.add_asset_metadata(own, asset_key=asset, partition_key=f"{hour:{KEY_FORMAT}}")


def record_curves(table: str) -> Callable[[ir.Table], Mapping[str, ir.Value]]:
    """The curves of `raw_logs` or a record table."""
    return _RECORDS.get(table, lambda _: {})


_RECORDS: dict[str, Callable[[ir.Table], Mapping[str, ir.Value]]] = {
    "raw_logs": lambda rows: {"lines": rows.lines.sum(), "files": rows.source_file.nunique()},
    "executions": lambda rows: {"failures": (~rows.succeeded).sum(), "mean runtime in seconds": rows.runtime_s.mean()},
    "trigger_events": lambda rows: {"failures": (rows.status == "failed").sum()},
    "model_calls": lambda rows: {"failures": (rows.status == "failure").sum()},
    "tool_calls": lambda rows: {"failures": (rows.status == "failure").sum()},
    "rejected_records": lambda rows: {"rejected lines": rows.lines.sum()},
}
