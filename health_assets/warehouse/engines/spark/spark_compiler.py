"""ibis's compiler for Spark, with the operations said anew that would differ from what DuckDB computes.

What belongs here: the methods of ibis 12.0's compiler that are replaced. ibis documents none of them, so
`pyproject.toml` pins it, and `test_spark_compiler` fails first when they move. What does not: running SQL
(`lake_session`).

- a number with a point is a double: Spark takes its digits for a decimal number, which it divides to a few places;
- only null is null: ibis takes NaN for null as well, on Spark alone;
- rows of a condition are counted: ibis adds up the condition, and a sum of nulls is null;
- a list is collected in the order of its keys, and no list has no length;
- Spark has other functions for microseconds between two times, for quantiles at the nearest ranks, and for a member of
  every object of a JSON list.
"""

from functools import cache
from typing import Any

import ibis.common.exceptions as com
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.base import NULL, SQLGlotCompiler
from ibis.backends.sql.compilers.pyspark import PySparkCompiler

_MEMBER = sg.to_identifier("member")


class _AsOnDuckDB(PySparkCompiler):
    __slots__ = ()

    def visit_NonNullLiteral(self, op: ops.Literal, *, value: Any, dtype: dt.DataType) -> sge.Expression | None:
        """A double by all of its digits."""
        if dtype.is_floating():
            return self.cast(sge.convert(repr(float(value))), dt.float64)
        return super().visit_NonNullLiteral(op, value=value, dtype=dtype)

    def visit_Field(self, op: ops.Field, *, rel: sge.Expression, name: str) -> sge.Expression:
        """A column as it is; ibis's own asks an option of its Spark backend, which is not loaded here."""
        return SQLGlotCompiler.visit_Field(self, op, rel=rel, name=name)

    def visit_IsNull(self, op: ops.IsNull, *, arg: sge.Expression) -> sge.Expression:  # noqa: ARG002
        """Null alone."""
        return arg.is_(NULL)

    def visit_NotNull(self, op: ops.NotNull, *, arg: sge.Expression) -> sge.Expression:  # noqa: ARG002
        """Anything but null."""
        return arg.is_(sg.not_(NULL))

    def visit_TimestampDelta(
        self,
        op: ops.TimestampDelta,  # noqa: ARG002
        *,
        left: sge.Expression,
        right: sge.Expression,
        part: sge.Expression,
    ) -> sge.Expression:
        """Whole microseconds; no formula asks for another unit."""
        if part.name != "microsecond":
            raise com.UnsupportedOperationError(f"the time between two moments in the unit {part.name}")
        return sge.paren(self.f.unix_micros(left) - self.f.unix_micros(right))

    def visit_CountStar(
        self,
        op: ops.CountStar,  # noqa: ARG002
        *,
        arg: sge.Expression,  # noqa: ARG002
        where: sge.Expression | None,
    ) -> sge.Expression:
        """The number of rows; none where a condition is null for all of them, and not null as a sum would be."""
        return self.f.count(sge.Star() if where is None else self.if_(where, sge.convert(1), NULL))

    def visit_ArrayLength(self, op: ops.ArrayLength, *, arg: sge.Expression) -> sge.Expression:  # noqa: ARG002
        """The length of a list; of none it is null, and not -1."""
        return self.f.anon.array_size(arg)

    def visit_ArrayCollect(
        self,
        op: ops.ArrayCollect,
        *,
        arg: sge.Expression,
        where: sge.Expression | None,
        order_by: tuple[sge.Ordered, ...],
        **options: Any,
    ) -> sge.Expression:
        """A list in order: Spark sorts a list of structs, from which each value is taken."""
        if not order_by:
            return super().visit_ArrayCollect(op, arg=arg, where=where, order_by=order_by, **options)
        keys = [self._ascending(key, asked.dtype) for key, asked in zip(order_by, op.order_by, strict=True)]
        row = self.f.struct(*(key.as_(f"key_{place}") for place, key in enumerate(keys)), arg.as_("value"))
        wanted = arg.is_(sg.not_(NULL)) if where is None else sg.and_(where, arg.is_(sg.not_(NULL)))
        rows = self.f.sort_array(self.f.collect_list(self.if_(wanted, row, NULL)))
        return self.f.transform(rows, _each(sge.Dot.build([_MEMBER, sg.to_identifier("value")])))

    def _ascending(self, key: sge.Ordered, dtype: dt.DataType) -> sge.Expression:
        """A value that ascends as the key is to be ordered."""
        if not key.args.get("desc"):
            return key.this
        if not dtype.is_numeric():
            raise com.UnsupportedOperationError(f"a list in descending order of {dtype}")
        return -sge.paren(key.this)

    def visit_AggUDF(self, op: ops.AggUDF, *, where: sge.Expression | None, **kw: sge.Expression) -> sge.Expression:
        """DuckDB's quantiles at the nearest ranks: the members of a sorted list at these places."""
        if self.__sql_name__(op) != "quantile_disc":
            return super().visit_AggUDF(op, where=where, **kw)
        value, _ = kw.values()
        values = self.f.sort_array(self.f.collect_list(value if where is None else self.if_(where, value, NULL)))
        exact = [self.cast(sge.convert(str(share.value)), dt.Decimal(18, 9)) for share in op.args[1].exprs]
        rank = self.cast(self.f.ceil(sge.paren(_MEMBER * self.f.size(values))), dt.int32)
        return self.f.transform(self.f.array(*exact), _each(self.f.element_at(values, self.f.greatest(rank, 1))))

    def visit_ScalarUDF(self, op: ops.ScalarUDF, **kw: sge.Expression) -> sge.Expression:
        """DuckDB's function for a member of every object of a JSON list."""
        if self.__sql_name__(op) != "json_extract_string":
            return super().visit_ScalarUDF(op, **kw)
        document, path = kw.values()
        name = path.name.removeprefix("$[*].")
        objects = self.f.from_json(document, sge.convert(f"array<struct<{name}: string>>"))
        return self.f.transform(objects, _each(sge.Dot.build([_MEMBER, sg.to_identifier(name)])))


def _each(value: sge.Expression) -> sge.Lambda:
    return sge.Lambda(this=value, expressions=[_MEMBER])


@cache
def compiler() -> PySparkCompiler:
    """The compiler, which keeps nothing between expressions."""
    return _AsOnDuckDB()
