"""Write marks: by table and period, what changes whenever the warehouse's rows of the period do.

What belongs here: reading them, with one query for all assets. What does not: which periods are published
(`pipeline.publishing`).
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from health_assets.core.hours import EVER, HOUR, HourRange
from health_assets.schema.catalog import columns_of
from health_assets.warehouse.session import Session

DAYS_BY_HOUR = 2
"""The newest UTC days with any hour that are told hour by hour: late lines come for the last hours of a day, too."""
BETWEEN_HOURS = ("alerts",)
"""Assets that get rows also while no hour of theirs is made: incidents open in the running hour."""
DAY_FORMAT, HOUR_FORMAT = "%Y-%m-%d", "%Y-%m-%dT%H"

Marks = dict[str, str]
"""By period, a UTC day (`2026-06-07`) or one of its hours (`2026-06-07T14`), a digest."""


def write_marks(session: Session, tables: Iterable[str]) -> dict[str, Marks]:
    """The marks of tables with hours; of assets, those of the hours that are materialized.

    Args:
        session: a session.
        tables: tables that have `hour`.
    """
    by_hour_from = _by_hour_from(session)
    if by_hour_from is None:
        return {table: {} for table in tables}
    of_assets = _of_all_assets(session, by_hour_from)
    return {
        table: of_assets[table] if table in of_assets else _of_rows(session, table, by_hour_from) for table in tables
    }


def marks_of_assets(session: Session) -> dict[str, Marks]:
    """The marks of the assets that have any hour."""
    by_hour_from = _by_hour_from(session)
    return {} if by_hour_from is None else _of_all_assets(session, by_hour_from)


def _of_all_assets(session: Session, by_hour_from: datetime) -> dict[str, Marks]:
    of_assets = _of_assets(session, "hour", by_hour_from, HOUR_FORMAT)
    for asset, days in _of_assets(session, "day", by_hour_from, DAY_FORMAT).items():
        of_assets.setdefault(asset, {}).update(days)
    return of_assets | {asset: _of_rows(session, asset, by_hour_from) for asset in BETWEEN_HOURS}


def _by_hour_from(session: Session) -> datetime | None:
    """The first day that is told hour by hour; None where no asset has an hour."""
    [(newest,)] = session.query("SELECT max(hour) FROM partition_states")
    if newest is None:
        return None
    return newest.astimezone(UTC).replace(hour=0, tzinfo=None) - timedelta(days=DAYS_BY_HOUR - 1)


def hours_of_period(period: str) -> HourRange:
    """The hours of a day or of an hour, as marks name them."""
    if "T" in period:
        return HourRange.of(datetime.strptime(period, HOUR_FORMAT).replace(tzinfo=UTC))
    day = datetime.strptime(period, DAY_FORMAT).replace(tzinfo=UTC)
    return HourRange(day, day + 24 * HOUR)


def _of_assets(session: Session, unit: str, by_hour_from: datetime, shown: str) -> dict[str, Marks]:
    """The marks of assets that have any hour: of the days from a time on by hour, of those before by day."""
    period = f"date_trunc('{unit}', hour AT TIME ZONE 'UTC')"
    rows = session.query(
        f"SELECT asset, {period}, count(*), max(materialized_at), max(changed_at), sum(rows), count(dropped_digest), "
        "min(formula_version), max(formula_version) FROM partition_states "
        f"WHERE hour AT TIME ZONE 'UTC' {'>=' if unit == 'hour' else '<'} ? GROUP BY 1, 2",
        [by_hour_from],
    )
    found: defaultdict[str, Marks] = defaultdict(dict)
    for asset, start, *known in rows:
        found[asset][f"{start:{shown}}"] = _digest(known)
    return dict(found)


def _of_rows(session: Session, table: str, by_hour_from: datetime) -> Marks:
    """The marks of a table that is no asset, has no hour yet, or is of `BETWEEN_HOURS`, by fingerprints of its rows."""
    if "hour" not in columns_of(table):
        raise ValueError(f"{table} has no hours")
    periods: defaultdict[str, list[Any]] = defaultdict(list)
    for hour, digest in sorted(session.digests(table, EVER).items()):
        start = hour.astimezone(UTC)
        is_by_hour = start.replace(tzinfo=None) >= by_hour_from
        periods[f"{start:{HOUR_FORMAT if is_by_hour else DAY_FORMAT}}"].append([start, digest])
    return {period: _digest(known) for period, known in periods.items()}


def _digest(known: Iterable[Any]) -> str:
    texts = (value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value) for value in known)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
