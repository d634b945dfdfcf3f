"""ibis's compiler for PostgreSQL, with the operations said anew that would differ from what DuckDB computes.

What belongs here: the methods of ibis 12.0's compiler that are replaced. ibis documents none of them, so
`pyproject.toml` pins it, and `test_postgres_compiler` fails first when they move. What does not: SQL that is not made
from an expression (`sql`).

- `round` takes halves up, which is DuckDB's way for all numbers from 0 on, and no score rounds others (PostgreSQL's own
  goes to the even neighbour, and with a detour over numeric all digits after the fifteenth are lost);
- `greatest`, `max` and sorting put text in the order of its bytes, which columns with the collation "C" see to.
"""

from functools import cache
from typing import Any

import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.postgres import PostgresCompiler


class _AsOnDuckDB(PostgresCompiler):
    __slots__ = ()

    def visit_Round(self, op: ops.Round, *, arg: sge.Expression, digits: sge.Expression | None) -> sge.Expression:
        """Halves up, on doubles without a detour; the argument stands there once, since some are whole queries."""
        if not op.dtype.is_integer() or not op.arg.dtype.is_floating():
            return super().visit_Round(op, arg=arg, digits=digits)
        return self.cast(self.f.floor(sge.paren(arg + sge.convert(0.5))), op.dtype)

    def visit_Cast(self, op: ops.Cast, *, arg: sge.Expression, to: dt.DataType) -> sge.Expression:
        """Truth as a number of any width."""
        if op.arg.dtype.is_boolean() and to.is_numeric():
            return self.cast(self.cast(arg, dt.int32), to)
        return super().visit_Cast(op, arg=arg, to=to)

    def visit_DefaultLiteral(self, op: ops.Literal, *, value: Any, dtype: dt.DataType) -> sge.Expression:
        """An empty list with its type, which PostgreSQL cannot guess."""
        literal = super().visit_DefaultLiteral(op, value=value, dtype=dtype)
        return self.cast(literal, dtype) if dtype.is_array() else literal

    def visit_ScalarUDF(self, op: ops.ScalarUDF, **kw: sge.Expression) -> sge.Expression:
        """DuckDB's function for a member of every object of a JSON list, which is a subquery here."""
        if self.__sql_name__(op) != "json_extract_string":
            return super().visit_ScalarUDF(op, **kw)
        document, path = kw.values()
        name = path.name.removeprefix("$[*].")
        # of a member that stands there twice DuckDB takes the first, and `->>` the last
        members = "json_each_text(element) WITH ORDINALITY AS member(name, value, place)"
        value = f"SELECT value FROM {members} WHERE name = '{name}' ORDER BY place LIMIT 1"
        # a table of memory has its JSON as text
        listed = f"json_array_elements(CAST({document.sql('postgres')} AS json))"
        elements = f"SELECT ({value}) FROM {listed} AS element"
        return self.f.array(sg.parse_one(elements, dialect="postgres"))


@cache
def compiler() -> PostgresCompiler:
    """The compiler, which keeps nothing between expressions."""
    return _AsOnDuckDB()
