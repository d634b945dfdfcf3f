"""Plain SQL, which is written for DuckDB and PostgreSQL, as Spark takes it.

What belongs here: translation, without a connection. What does not: expressions (`spark_compiler`) and running it
(`lake_session`).
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import count
from typing import Any

import sqlglot as sg
import sqlglot.expressions as sge
from ibis import ir

from health_assets.warehouse.engines.spark.spark_compiler import compiler

DIALECT = "spark"
_WORDS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\?""")
Parameters = Sequence[Any] | Mapping[str, Any]


def spark_sql(rows: ir.Table) -> str:
    """The SQL of an expression."""
    return compiler().to_sqlglot(rows).sql(DIALECT)


@lru_cache(1_000)
def parsed(sql: str) -> sge.Expression:
    """A statement as a tree, which nobody may change; its question marks are `$p0`, `$p1` from left to right."""
    number = count()
    named = _WORDS.sub(lambda word: f"$p{next(number)}" if word[0] == "?" else word[0], sql)
    return sg.parse_one(named, dialect="duckdb")


@lru_cache(1_000)
def tables_of(sql: str) -> frozenset[str]:
    """The tables that a statement names."""
    tree = parsed(sql)
    own = {part.alias for part in tree.find_all(sge.CTE)}
    return frozenset(table.name for table in tree.find_all(sge.Table)) - own


def filled(sql: str, parameters: Parameters) -> sge.Expression:
    """A statement with its parameters as literals."""
    tree = parsed(sql).copy()
    values = parameters if isinstance(parameters, Mapping) else {f"p{n}": value for n, value in enumerate(parameters)}
    for place in list(tree.find_all(sge.Placeholder)):
        value = values[place.name]
        if not isinstance(value, list):
            place.replace(literal(value))
            continue
        condition = place.find_ancestor(sge.In)
        if condition is None:
            raise ValueError(f"a list stands outside of IN: {sql}")
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
