"""Small helpers for ibis tables that every score needs."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourRange


def lookup(rows: ir.Table, other: ir.Table, keys: str | Sequence[str]) -> ir.Table:
    """Left join that adds the other table's columns and keeps only one copy of the keys."""
    keys = [keys] if isinstance(keys, str) else list(keys)
    added = [name for name in other.columns if name not in keys]
    return rows.left_join(other, keys).select(*rows.columns, *added)


def without_rows(rows: ir.Table) -> ir.Table:
    """An empty table with the columns of another, which nothing computes."""
    return ibis.memtable(rows.schema().to_pyarrow().empty_table())


FIRST_LINE = r"[^\r\n ]([^\n]*[^\r\n ])?"
"""Matches the first line of a text that is not blank, without the spaces around it."""


def first_line(texts: ir.StringValue) -> ir.StringValue:
    """The first line of each text that is not blank; null where there is none."""
    return texts.re_extract(FIRST_LINE, 0).nullif("")


def newest(rows: ir.Table, key: str) -> ir.Table:
    """The rows of the latest `hour` of each `key`, where no hour has two of one."""
    placed = rows.mutate(place=ibis.row_number().over(group_by=key, order_by=ibis.desc("hour")))
    return placed.filter(placed.place == 0).drop("place")


def of_hours(rows: ir.Table, hours: Iterable[datetime]) -> ir.Table:
    """The rows of some hours, which may have holes between them."""
    hour = pa.array(list(hours), pa.timestamp("us", "UTC"))
    return rows.semi_join(ibis.memtable(pa.table({"hour": hour})), "hour")


def time_literal(moment: datetime) -> ir.TimestampScalar:
    """A time as an expression, in UTC."""
    return ibis.literal(moment, "timestamp('UTC')")


def spine(hours: HourRange) -> ir.Table:
    """One row per hour of a range: `hour`."""
    first, end = (ibis.literal(moment, "timestamp('UTC')") for moment in (hours.start, hours.end))
    return ibis.range(first, end, ibis.interval(hours=1)).unnest().name("hour").as_table()
