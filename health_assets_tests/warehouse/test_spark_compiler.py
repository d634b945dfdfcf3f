"""ibis's private compiler calls what `spark_compiler` says anew, and would say something else without it."""

import re
from collections.abc import Callable

import ibis
import ibis.common.exceptions as com
import ibis.expr.datatypes as dt
import pytest
from ibis import ir
from ibis.backends.sql.compilers.pyspark import PySparkCompiler

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")

from health_assets.warehouse.engines.spark.spark_compiler import compiler


@ibis.udf.scalar.builtin(name="json_extract_string", signature=(("json", "string"), "array<string>"))
def json_extract_string(document: ir.JSONValue, path: str) -> ir.ArrayValue: ...  # type: ignore[empty-body]


@ibis.udf.agg.builtin(name="quantile_disc")
def quantile_disc(value: dt.int16, shares: dt.Array(dt.float64)) -> dt.Array(dt.int16): ...  # type: ignore[valid-type]


ROWS = ibis.table(
    {
        "number": "float64",
        "text": "string",
        "small": "int16",
        "document": "json",
        "words": "array<string>",
        "at": "timestamp('UTC')",
    },
    name="rows",
)
CASES: dict[str, tuple[Callable[[], ir.Table], str]] = {
    "a number with a point": (lambda: ROWS.select(x=ROWS.small * 0.1), "CAST('0.1' AS DOUBLE)"),
    "a column of numbers": (lambda: ROWS.select("number"), "`number`"),
    "null": (lambda: ROWS.filter(ROWS.number.isnull()), "`number` IS NULL"),
    "not null": (lambda: ROWS.filter(ROWS.number.notnull()), "`number` IS NOT NULL"),
    "the time between two moments": (lambda: ROWS.select(x=ROWS.at.delta(ROWS.at, unit="microsecond")), "UNIX_MICROS("),
    "the number of rows of a condition": (lambda: ROWS.aggregate(x=ROWS.count(where=ROWS.number > 1)), "COUNT(IF("),
    "the length of a list": (lambda: ROWS.select(x=ROWS.words.length()), "ARRAY_SIZE("),
    "a list in order": (
        lambda: ROWS.aggregate(x=ROWS.text.collect(order_by=[ibis.desc("number"), "text"])), "SORT_ARRAY(COLLECT_LIST("
    ),
    "quantiles": (lambda: ROWS.aggregate(x=quantile_disc(ROWS.small, ibis.array([0.5, 0.99]))), "CAST('0.99' AS DECIMAL"),
    "a member of a list of objects": (
        lambda: ROWS.select(x=json_extract_string(ROWS.document, "$[*].severity")), "array<struct<severity: string>>",
    ),
}  # fmt: skip


def said(by: PySparkCompiler, rows: ir.Table) -> str:
    return by.to_sqlglot(rows).sql("spark")


def stock(rows: ir.Table) -> str:
    """Let ibis's own compiler say it; where it cannot, gives that."""
    try:
        return said(PySparkCompiler(), rows)
    except (com.UnsupportedOperationError, AttributeError) as error:
        return type(error).__name__


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_anew_is_called_by_the_compiler_and_is_not_its_own(name: str) -> None:
    make, words = CASES[name]
    assert words in re.sub(r"\s+", " ", said(compiler(), make()))
    assert said(compiler(), make()) != stock(make())


def test_every_method_that_is_said_anew_replaces_one_of_the_stock_compiler_and_has_a_case() -> None:
    ours = type(compiler())
    methods = {name: method for name, method in vars(ours).items() if name.startswith("visit_")}
    own = [name for name, method in methods.items() if getattr(method, "__module__", "") == ours.__module__]
    assert all(callable(getattr(PySparkCompiler, name, None)) for name in own)
    assert len(own) == len(CASES)


def test_what_spark_would_order_otherwise_is_refused() -> None:
    for rows in (
        ROWS.aggregate(x=ROWS.text.collect(order_by=ibis.desc("text"))),
        ROWS.select(x=ROWS.at.delta(ROWS.at, unit="day")),
    ):
        with pytest.raises(com.UnsupportedOperationError):
            said(compiler(), rows)


def test_types_are_spelled_by_the_compiler() -> None:
    kinds = ["int64", "float64", "boolean", "string", "array<string>", "timestamp('UTC')"]
    spelled = [compiler().type_mapper.to_string(dt.dtype(kind)) for kind in kinds]
    assert spelled == ["BIGINT", "DOUBLE", "BOOLEAN", "STRING", "ARRAY<STRING>", "TIMESTAMP"]
