"""Retention: dropping rows of old hours that can be made again from the raw logs, while the history of health stays.

What belongs here: which hours are old enough, and dropping them. What does not: which tables are components (`defs`),
and how dropped hours come back (`ingestion`, when somebody asks for them).

The record tables and the components go; they are as large as the logs, and only later hours are made from them. Scores,
which are as large as the fleet, stay, and so do what was observed rather than read from logs (`agent_probes`), the
history of checks and the account of what each raw log holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.schema.catalog import RECORD_OF_TABLE
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse

HOURS_AT_ONCE = 24
"""Hours dropped in one transaction, so that others do not wait long for the warehouse."""


@dataclass(kw_only=True)
class Pruned:
    """The rows that were dropped.

    Args:
        before: hours before it are dropped.
        hours: how many hours lost rows, or were found to have none.
        rows: rows dropped, by table.
        late: dropped hours whose logs hold other lines than their rows were made from, with how many lines.
    """

    before: datetime
    hours: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    late: list[tuple[datetime, int]] = field(default_factory=list)


def cutoff(settings: Settings, days: int | None, now: datetime) -> datetime:
    """The hour before which rows are dropped.

    Args:
        settings: how far hours look back, and how many days are kept where `days` does not say it.
        days: how many days to keep.
        now: the present.

    Raises:
        HealthAssetsError: nobody says how many days, or so few that current hours would need what is dropped.
    """
    kept = settings.keep_days if days is None else days
    if kept is None:
        raise HealthAssetsError("nothing says how long rows are kept; use --older-than-days or HEALTH_KEEP_DAYS")
    if kept < settings.fewest_keep_days:
        raise HealthAssetsError(settings.too_few_days(kept))
    try:
        return floor_hour(now) - timedelta(days=kept)
    except OverflowError:
        raise HealthAssetsError(f"{kept} days reach back before the first year of the calendar") from None


def prune(warehouse: Warehouse, components: Sequence[str], before: datetime, trace_hours: int) -> Pruned:
    """Drop the rows of the record tables and of these components for every hour before `before`.

    Spans stay for as many hours more as the traces of hours that are kept may reach back, and go last.

    Args:
        warehouse: the warehouse; it is opened anew for some hours at a time.
        components: tables that can be made again from the record tables.
        before: a whole hour.
        trace_hours: how many hours apart spans of a trace may be and still see each other.
    """
    pruned = Pruned(before=before)
    records = [table for table in RECORD_OF_TABLE if table != "spans"]
    pruned.hours = _drop(warehouse, records, components, before, pruned.rows)
    _drop(warehouse, ["spans"], [], before - trace_hours * HOUR, pruned.rows)
    with warehouse.write() as session:
        pruned.late = Ledger(session).late_before(PartitionStates(session).dropped_until() or before)
    return pruned


def _drop(
    warehouse: Warehouse, records: Sequence[str], components: Sequence[str], before: datetime, dropped: dict[str, int]
) -> int:
    """Drop rows, counted by table in `dropped`; gives of how many hours."""
    count = 0
    while True:
        with warehouse.write() as session:
            hours, held = _next_hours(session, [*records, *components], before)
            if hours is None:
                return count
            for table in [*records, *components]:
                rows = PartitionStates(session).drop_rows(table, hours, is_remembered=table in components)
                dropped[table] = dropped.get(table, 0) + rows
            Ledger(session).drop(records, hours)
        count += held


def _next_hours(session: Session, tables: Sequence[str], before: datetime) -> tuple[HourRange | None, int]:
    """The earliest hours that still have rows of one of these tables, None where there are none; and how many do."""
    first_of_each = [
        PartitionStates(session).first_of_any(tables, before),
        Ledger(session).first_loaded([table for table in tables if table in RECORD_OF_TABLE], before),
    ]
    first = min(filter(None, first_of_each), default=None)
    if first is None:
        return None, 0
    hours = HourRange(first, min(first + HOURS_AT_ONCE * HOUR, before))
    return hours, len(PartitionStates(session).of_any(tables, hours))
