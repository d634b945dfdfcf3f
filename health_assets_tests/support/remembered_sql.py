"""SQL of expressions that differ in nothing but times and names of temporary tables, compiled once per test process.

To compile the expressions of a run takes ibis a third of the run's CPU. A user's process runs once, so that it compiles
each of them once; a process of the tests runs hundreds of times, with the same formulas over other hours. What is
remembered is the very text that ibis writes, which `test_remembered_sql` holds against it.

What belongs here: telling which expressions have the same form, and their SQL. What does not: anything that the product
uses, and processes that the tests start, which compile as a user's do.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, wraps
from typing import Any
from uuid import uuid4

import ibis.expr.operations as ops
from ibis import ir
from ibis.common.collections import FrozenDict
from ibis.common.graph import Node

from health_assets.core import duckdb_sql
from health_assets.core.hours import HOUR
from health_assets.warehouse.engines.postgres import sql as postgres_sql

Compile = Callable[[ir.Table], str]
STAND_INS_FROM = datetime(9000, 1, 1, tzinfo=UTC)
"""Times from here on, which no expression has, stand for those of an expression while ibis compiles its form."""
GAP = uuid4().hex  # which no literal holds
TEMPORARY = "ibis_"
"""How the names begin that ibis makes up for tables, each time others."""


@dataclass
class Form:
    """An expression without its times and the names of its temporary tables.

    Args:
        root: the expression.
    """

    root: Node
    parts: list[Hashable] = field(default_factory=list)
    times: list[ops.Literal] = field(default_factory=list)
    tables: list[Any] = field(default_factory=list)
    places: dict[Node, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._visit(self.root)

    def _visit(self, node: Node) -> int:
        """The place of a node among the parts; equal nodes have one, as they are one for ibis."""
        if node not in self.places:
            part = self._part(node)
            self.places[node] = len(self.parts)
            self.parts.append(part)
        return self.places[node]

    def _part(self, node: Node) -> Hashable:
        if isinstance(node, ops.Literal):
            if isinstance(node.value, datetime):
                self.times.append(node)
                return "time", len(self.times), node.dtype
            return "literal", repr(node.value), node.dtype  # 0.0 and -0.0 are equal, and 1 is True
        if isinstance(node, ops.InMemoryTable | ops.UnboundTable) and node.name.startswith(TEMPORARY):
            self.tables.append(node)
            return type(node), len(self.tables), tuple(node.schema.items())
        return type(node), *map(self._argument, node.__args__)

    def _argument(self, value: Any) -> Hashable:
        if isinstance(value, Node):
            return self._visit(value)
        if isinstance(value, tuple):
            return tuple(map(self._argument, value))
        if isinstance(value, FrozenDict):
            return tuple((name, self._argument(item)) for name, item in value.items())
        return type(value), value


def remembering(compiled: Compile) -> Compile:
    """The same function, which compiles expressions of one form once."""
    texts: dict[Hashable, list[str]] = {}

    @cache
    def sql_of(time: ops.Literal) -> str:
        return compiled(time.to_expr().name("time").as_table()).removeprefix("SELECT ").removesuffix(' AS "time"')

    def text_with_gaps(form: Form) -> list[str]:
        stand_ins = {
            time: ops.Literal(STAND_INS_FROM + place * HOUR, time.dtype) for place, time in enumerate(form.times)
        }
        text = compiled(form.root.replace(stand_ins).to_expr())
        filled = [sql_of(stand_in) for stand_in in stand_ins.values()] + [table.name for table in form.tables]
        for place, filling in enumerate(filled):
            text = text.replace(filling, f"{GAP}{place}{GAP}")
        return text.split(GAP)

    @wraps(compiled)
    def remembered(rows: ir.Table) -> str:
        form = Form(rows.op())
        key = tuple(form.parts)
        if key not in texts:
            texts[key] = text_with_gaps(form)
        filled = [sql_of(time) for time in form.times] + [table.name for table in form.tables]
        pieces = list(texts[key])
        pieces[1::2] = [filled[int(place)] for place in pieces[1::2]]
        return "".join(pieces)

    return remembered


def remember() -> None:
    """Let this process compile expressions of one form once, for both engines."""
    duckdb: Any = duckdb_sql._compiler()
    duckdb.compile = remembering(duckdb.compile)
    postgres_sql.postgres_sql = remembering(postgres_sql.postgres_sql)
