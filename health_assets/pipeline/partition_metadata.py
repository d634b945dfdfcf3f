"""Numbers of every hour that a run materialized, which Dagster draws as curves on an asset's page.

What belongs here: taking them from the rows. What does not: the numbers of derived assets, which each system names
(`Derived.curves`), and summaries of whole runs (`summaries`).

The numbers of an hour are its own, also where one run makes many hours: its summary would be a flat line.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from ibis import ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline.events import ROWS, HourlyNumbers
from health_assets.warehouse.session import Session


def numbers_by_hour(
    session: Session, table: str, drawn: Sequence[datetime], curves: Callable[[ir.Table], Mapping[str, ir.Value]]
) -> HourlyNumbers:
    """The number of rows, and what `curves` aggregates of them, of each hour that is drawn.

    Args:
        session: a session.
        table: the asset's table.
        drawn: the hours, in order.
        curves: aggregates of the rows of an hour, by name.
    """
    if not drawn:
        return {}
    rows = session.hours_of(table, HourRange(drawn[0], drawn[-1] + HOUR))
    counted = rows.group_by("hour").aggregate(**{ROWS: rows.count(), **curves(rows)})
    found: dict[datetime, dict[str, int | float]] = {}
    for row in session.arrow(counted).to_pylist():
        hour = row.pop("hour")
        found[hour] = {name: _number(value) for name, value in row.items() if value is not None}
    return {hour: found.get(hour, {ROWS: 0}) for hour in drawn}


def _number(value: int | float | Decimal) -> int | float:
    """A number as Dagster draws it; PostgreSQL adds whole numbers up to decimals."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else float(value)


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
