"""Expression keys: what the SQL of an expression depends on, as text, except for times and generated names.

What belongs here: finding out which expressions have the same key, in this process and in others. What does not:
caching SQL by its key (`sql_memory`), and compiling.

The text has every operation with all its arguments, down to values with their types. So a changed formula has another
key. An expression with a value that may not be written completely has no key, and is compiled each time.
"""

import hashlib
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache

import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
from ibis.common.collections import FrozenDict
from ibis.common.graph import Node
from ibis.common.grounds import Concrete
from ibis.expr.operations.udf import InputType

TEMPORARY = "ibis_"
"""How the names begin that ibis makes up for tables, each time others."""
_WRITTEN_WHOLE = frozenset({bool, int, float, str, bytes, type(None), Decimal, datetime, date})
"""Types whose values `repr` tells apart; of subclasses nothing is known."""


class NoExpressionKeyError(Exception):
    """An expression holds a value whose text may not say everything that its SQL depends on."""


class ExpressionKey:
    """The key of an expression, with its times and temporary tables beside it.

    Args:
        root: the expression.

    Raises:
        NoExpressionKeyError: it has none.
    """

    def __init__(self, root: Node) -> None:
        self.root = root
        self.times: list[ops.Literal] = []
        self.tables: list[ops.InMemoryTable | ops.UnboundTable] = []
        self._parts: list[str] = []
        self._places: dict[Node, str] = {}
        self._visit(root)

    @property
    def text(self) -> str:
        """The text of the key."""
        return "\n".join(self._parts)

    @property
    def key(self) -> str:
        """A digest of the text."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    def _visit(self, node: Node) -> str:
        """The place of a node among the parts; equal nodes have one, as they are one for ibis."""
        place = self._places.get(node)
        if place is None:
            part = self._part(node)
            place = self._places[node] = f"#{len(self._parts)}"
            self._parts.append(part)
        return place

    def _part(self, node: Node) -> str:
        if isinstance(node, ops.Literal):
            if isinstance(node.value, datetime):
                self.times.append(node)
                return f"time {len(self.times)} {_dtype(node.dtype)}"
            return f"literal {self._argument(node.value)} {_dtype(node.dtype)}"
        if isinstance(node, ops.InMemoryTable | ops.UnboundTable) and node.name.startswith(TEMPORARY):
            self.tables.append(node)
            return f"{_name(type(node))} {len(self.tables)} {self._argument(node.schema)}"
        if isinstance(node, ops.InMemoryTable):
            return f"{_name(type(node))} {node.name!r} {self._argument(node.schema)}"
        kind = self._function(node) if isinstance(node, ops.ScalarUDF | ops.AggUDF) else _name(type(node))
        return f"{kind}({self._arguments(node.__args__)})"

    def _function(self, node: ops.ScalarUDF | ops.AggUDF) -> str:
        """A function of the database; the name of its class depends on what was imported before it."""
        kind, base = type(node), ops.ScalarUDF if isinstance(node, ops.ScalarUDF) else ops.AggUDF
        if kind.__input_type__ is not InputType.BUILTIN:
            raise NoExpressionKeyError(f"{kind.__name__} is a function of Python's")
        said = (kind.__func_name__, kind.__config__, kind.__udf_namespace__, kind.__argnames__, node.dtype)
        return f"{_name(base)} {self._arguments(said)}"

    def _arguments(self, values: Iterable[object]) -> str:
        return ",".join(map(self._argument, values))

    def _argument(self, value: object) -> str:
        kind = type(value)
        if kind in _WRITTEN_WHOLE:
            return f"{kind.__name__}:{value!r}"
        if isinstance(value, Node):
            return self._visit(value)
        if isinstance(value, dt.DataType):
            return _dtype(value)
        if isinstance(value, tuple):
            return f"({self._arguments(value)})"
        if isinstance(value, FrozenDict):
            return f"{{{self._arguments(value.items())}}}"
        if isinstance(value, frozenset):
            return f"<{','.join(sorted(map(self._argument, value)))}>"
        if isinstance(value, Enum):
            return f"{_name(kind)}.{value.name}"
        if isinstance(value, Concrete):
            return f"{_name(kind)}({self._arguments(value.__args__)})"
        raise NoExpressionKeyError(f"nobody knows whether the text of {kind} says all of it")


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


@cache
def _dtype(dtype: dt.DataType) -> str:
    arguments = (_dtype(value) if isinstance(value, dt.DataType) else repr(value) for value in dtype.__args__)
    return f"{_name(type(dtype))}({','.join(arguments)})"
