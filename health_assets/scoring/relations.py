"""Small helpers for ibis tables that every score needs."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import ibis
import ibis.expr.operations as ops
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourRange


def lookup(rows: ir.Table, other: ir.Table, keys: str | Sequence[str]) -> ir.Table:
    """Left join that adds the other table's columns and keeps only one copy of the keys.

    It is what `left_join` and `select` of ibis make, which take a tenth of a run to find out what these names mean.
    """
    keys = [keys] if isinstance(keys, str) else list(keys)
    left = rows.op()
    if not isinstance(left, ops.JoinChain):
        first = ops.JoinReference(left, identifier=0)
        left = ops.JoinChain(first, rest=(), values=first.fields)
    if isinstance(rows, ir.Join) or isinstance(other.op(), ops.Reference):
        return rows.left_join(other, keys).select(*rows.columns, *_added(other, keys))
    right = ops.JoinReference(other.op(), identifier=left.length)
    same = [ops.Equals(left.values[key], ops.Field(right, key)) for key in keys]
    added = {name: ops.Field(right, name) for name in _added(other, keys)}
    link = ops.JoinLink("left", table=right, predicates=same)
    return ir.Table(ops.JoinChain(left.first, rest=(*left.rest, link), values={**left.values, **added}))


def _added(other: ir.Table, keys: Sequence[str]) -> list[str]:
    return [name for name in other.columns if name not in keys]


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


def within(rows: ir.Table, hours: HourRange) -> ir.Table:
    """The rows of `[hours.start, hours.end)`."""
    return rows.filter(rows.hour >= hours.start, rows.hour < hours.end)


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
