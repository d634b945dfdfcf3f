"""The hours that plain SQL asks for of its tables, so that no more of these need be looked at.

What belongs here: reading conditions on the column `hour`. What does not: running statements (`lake_session`).

A table of years has folders by the ten thousand, and a cluster that is told of them all takes longer over that than
over the rows. Conditions of a WHERE hold for every row that comes out of it, so a table may be narrowed to the hours
that they name, wherever it stands in that query.
"""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime

import sqlglot as sg
import sqlglot.expressions as sge

from health_assets.core.hours import EVER, HOUR, HourRange, floor_hour
from health_assets.warehouse.engines.spark.sql import Parameters, by_name

HOUR_NAME = "hour"


def narrowed(
    tree: sge.Expression, parameters: Parameters, tables: Collection[str], view_of: Callable[[str, HourRange], str]
) -> sge.Expression:
    """A query in which each table that it asks for some hours of is the view of these.

    Args:
        tree: the query.
        parameters: its parameters.
        tables: the tables that there are such views of.
        view_of: the name of a table's view of some hours.
    """
    tree = tree.copy()
    own = {part.alias for part in tree.find_all(sge.CTE)}
    for table in list(tree.find_all(sge.Table)):
        select = table.parent_select
        if table.name not in tables or table.name in own or select is None:
            continue
        is_alone = len(list(_sources(select))) == 1
        hours = hours_asked(select, table.alias_or_name, parameters, is_alone=is_alone)
        if hours is not None:
            view = view_of(table.name, hours)
            table.replace(sg.table(view, alias=table.alias_or_name))
    return tree


def hours_asked(statement: sge.Expression, name: str, parameters: Parameters, *, is_alone: bool) -> HourRange | None:
    """The hours that a statement's WHERE asks for of a table; None where it names no first and last one.

    Args:
        statement: a query, UPDATE or DELETE.
        name: the name that the table has in it.
        parameters: the statement's parameters.
        is_alone: whether a column without the name of a table is this one's.
    """
    values = by_name(parameters)
    start, end = EVER.start, EVER.end
    for condition in _conditions(statement):
        column, value = condition.this, condition.expression
        is_own = isinstance(column, sge.Column) and (column.table == name or (is_alone and not column.table))
        if not is_own or column.name != HOUR_NAME or not isinstance(value, sge.Placeholder):
            continue
        moment = values[value.name]
        if isinstance(condition, sge.GTE | sge.EQ):
            start = max(start, floor_hour(moment))
        if isinstance(condition, sge.LT | sge.EQ):
            end = min(end, _end_of(moment, is_included=isinstance(condition, sge.EQ)))
    is_some = start > EVER.start and end < EVER.end
    return HourRange(start, max(start, end)) if is_some else None


def _conditions(statement: sge.Expression) -> Iterator[sge.Binary]:
    """The comparisons that all rows of a statement meet."""
    where = statement.args.get("where")
    if where is None:
        return
    both = where.this.flatten() if isinstance(where.this, sge.And) else [where.this]
    yield from (part for part in both if isinstance(part, sge.GTE | sge.LT | sge.EQ))


def _sources(select: sge.Select) -> Iterator[sge.Expression]:
    """The tables and queries that a query selects from."""
    if given := select.args.get("from_"):
        yield given.this
    for join in select.args.get("joins") or ():
        yield join.this


def _end_of(moment: datetime, *, is_included: bool) -> datetime:
    """The end of the hours before a moment, or of those up to it."""
    floor = floor_hour(moment)
    return floor if floor == moment and not is_included else floor + HOUR
