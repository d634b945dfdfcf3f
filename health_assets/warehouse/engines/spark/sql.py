"""Plain SQL, which is written for DuckDB and PostgreSQL, taken apart for Spark and the ledger.

What belongs here: translation, without a connection. What does not: expressions (`spark_compiler`) and running it
(`lake_session`).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import count
from typing import Any

import sqlglot as sg
import sqlglot.expressions as sge
from ibis import ir

from health_assets.warehouse.engines.spark.spark_compiler import compiler

DIALECT = "spark"
LEDGER_DIALECT = "duckdb"
"""All plain SQL is said in it; both of the ledger's engines take that alike."""
Parameters = Sequence[Any] | Mapping[str, Any]
_WORDS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\?""")


def spark_sql(rows: ir.Table) -> str:
    """The SQL of an expression."""
    return compiler().to_sqlglot(rows).sql(DIALECT)


@lru_cache(1_000)
def parsed(sql: str) -> sge.Expression:
    """A statement as a tree, which nobody may change; its question marks are `$p0`, `$p1` from left to right."""
    number = count()
    named = _WORDS.sub(lambda word: f"$p{next(number)}" if word[0] == "?" else word[0], sql)
    return sg.parse_one(named, dialect=LEDGER_DIALECT)


@lru_cache(1_000)
def tables_of(sql: str) -> frozenset[str]:
    """The tables that a statement names."""
    return tables_in(parsed(sql))


def tables_in(tree: sge.Expression) -> frozenset[str]:
    """The tables that a part of a statement names, but for those that it makes itself."""
    own = {part.alias for part in tree.find_all(sge.CTE)}
    return frozenset(table.name for table in tree.find_all(sge.Table)) - own


def by_name(parameters: Parameters) -> Mapping[str, Any]:
    """Parameters by the names that they have in what `parsed` gives."""
    if isinstance(parameters, Mapping):
        return parameters
    return {f"p{number}": value for number, value in enumerate(parameters)}


def used_in(tree: sge.Expression, parameters: Parameters) -> dict[str, Any]:
    """The parameters that a part of a statement asks for."""
    values = by_name(parameters)
    return {place.name: values[place.name] for place in tree.find_all(sge.Placeholder)}


def filled(tree: sge.Expression, parameters: Parameters) -> sge.Expression:
    """A statement with its parameters as literals.

    Raises:
        ValueError: a list stands where no list of literals may.
    """
    tree, values = tree.copy(), by_name(parameters)
    for place in list(tree.find_all(sge.Placeholder)):
        value = values[place.name]
        if not isinstance(value, list):
            place.replace(literal(value))
            continue
        condition = place.find_ancestor(sge.In)
        if condition is None:
            raise ValueError(f"a list stands outside of IN: {tree.sql(LEDGER_DIALECT)}")
        among = [literal(one) for one in value] or [sge.Null()]  # nothing is equal to null
        condition.replace(sge.In(this=condition.this, expressions=among))
    return tree


def literal(value: Any) -> sge.Expression:
    """A value as Spark writes it."""
    if isinstance(value, datetime):
        return sge.cast(sge.convert(value.isoformat()), sge.DataType.Type.TIMESTAMPTZ)
    if isinstance(value, float):
        return sge.cast(sge.convert(repr(value)), sge.DataType.Type.DOUBLE)
    return sge.convert(value)


def is_among(column: str, values: Collection[Any]) -> str:
    """A condition: a column has one of these values."""
    return f"{column} IN ({', '.join(literal(value).sql(DIALECT) for value in values)})" if values else "false"


def parts_about(tree: sge.Expression, tables: Collection[str]) -> Iterator[sge.Select]:
    """The largest queries within a statement that are about these tables alone."""
    for select in list(tree.find_all(sge.Select)):  # from the outside in
        above = select.parent_select
        inside = tables_in(select)
        if inside and inside <= set(tables) and not (above and tables_in(above) <= set(tables)):
            yield select


@dataclass(frozen=True, kw_only=True)
class RowChange:
    """An UPDATE or DELETE of a table, taken apart.

    Args:
        table: the table.
        condition: the rows that change, in Spark's SQL.
        values: SQL by column; none where rows are deleted.
        source: the other rows that the condition and the values are about, under their name, where there are any.
    """

    table: str
    condition: str
    values: Mapping[str, str] | None
    source: sge.Subquery | None

    @classmethod
    def of(cls, statement: sge.Expression, parameters: Parameters) -> "RowChange":
        """The change that a statement asks for."""
        tree = statement.copy()
        source = _source(tree)
        if source is not None:
            source.pop()
        tree = filled(tree, parameters)
        values = None
        if isinstance(tree, sge.Update):
            values = {pair.this.name: pair.expression.sql(DIALECT) for pair in tree.expressions}
        return cls(
            table=tree.this.name, condition=tree.args["where"].this.sql(DIALECT), values=values, source=source
        )  # fmt: skip

    def rows(self, view: str, source: str | None, columns: Sequence[str]) -> str:
        """SQL of the table's rows after the change.

        Args:
            view: the table's rows as they are.
            source: the name of the source's rows, which is the one that the statement gives them; None without any.
            columns: the table's columns.
        """
        own = f"{view} AS {self.table}"
        if self.values is None and source is None:
            return f"SELECT * FROM {own} WHERE NOT coalesce({self.condition}, false)"
        if self.values is None:
            return f"SELECT {self.table}.* FROM {own} LEFT ANTI JOIN {source} ON {self.condition}"
        is_changed = self.condition if source is None else f"{source}.is_changed"
        chosen = ", ".join(self._column(column, is_changed) for column in columns)
        if source is None:
            return f"SELECT {chosen} FROM {own}"
        marked = f"(SELECT *, true AS is_changed FROM {source}) AS {source}"
        return f"SELECT {chosen} FROM {own} LEFT JOIN {marked} ON {self.condition}"

    def touched(self, view: str, source: str | None) -> str:
        """SQL of the hours that have a row that changes, with how many; arguments as of `rows`."""
        which = f"WHERE {self.condition}" if source is None else f"LEFT SEMI JOIN {source} ON {self.condition}"
        return f"SELECT {self.table}.hour, count(*) FROM {view} AS {self.table} {which} GROUP BY {self.table}.hour"

    def _column(self, column: str, is_changed: str) -> str:
        own = f"{self.table}.`{column}`"
        if self.values is None or column not in self.values:
            return f"{own} AS `{column}`"
        return f"IF({is_changed}, {self.values[column]}, {own}) AS `{column}`"


def _source(tree: sge.Expression) -> sge.Subquery | None:
    """The query behind FROM of an UPDATE, or behind USING of a DELETE."""
    given = tree.args.get("from_") or next(iter(tree.args.get("using") or ()), None)
    found = given.this if isinstance(given, sge.From) else given
    return found if isinstance(found, sge.Subquery) else None
