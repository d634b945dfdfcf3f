"""ibis's private compiler calls what `postgres_compiler` says anew, and would say something else without it."""

from collections.abc import Callable

import ibis
import ibis.expr.datatypes as dt
import pytest
from ibis import ir
from ibis.backends.sql.compilers.postgres import PostgresCompiler

from health_assets.warehouse.engines.postgres.postgres_compiler import compiler


@ibis.udf.scalar.builtin(name="json_extract_string", signature=(("json", "string"), "array<string>"))
def json_extract_string(document: ir.JSONValue, path: str) -> ir.ArrayValue: ...  # type: ignore[empty-body]


ROWS = ibis.table({"number": "float64", "truth": "boolean", "small": "int16", "document": "json"}, name="rows")
CASES: dict[str, tuple[Callable[[], ir.Table], str]] = {
    "round": (lambda: ROWS.select(x=ROWS.number.round()), "FLOOR(("),
    "truth as a number": (lambda: ROWS.select(x=ROWS.truth.cast("int64")), "AS INT) AS BIGINT)"),
    "an empty list": (lambda: ROWS.select(x=ibis.literal([], "array<string>")), "AS VARCHAR[])"),
    "a member of a list of objects": (
        lambda: ROWS.select(x=json_extract_string(ROWS.document, "$[*].severity")),
        "WITH ORDINALITY",
    ),
}


def said(by: PostgresCompiler, rows: ir.Table) -> str:
    return by.to_sqlglot(rows).sql("postgres")


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_anew_is_called_by_the_compiler_and_is_not_its_own(name: str) -> None:
    make, words = CASES[name]
    assert words in said(compiler(), make())
    assert said(compiler(), make()) != said(PostgresCompiler(), make())


def test_every_method_that_is_said_anew_replaces_one_of_the_stock_compiler_and_has_a_case() -> None:
    ours = type(compiler())
    own = [name for name, method in vars(ours).items() if getattr(method, "__module__", "") == ours.__module__]
    assert all(callable(getattr(PostgresCompiler, name, None)) for name in own)
    assert len(own) == len(CASES)


def test_types_are_spelled_by_the_compiler() -> None:
    kinds = ["int64", "float64", "boolean", "string", "array<string>", "timestamp('UTC')"]
    spelled = [compiler().type_mapper.to_string(dt.dtype(kind)) for kind in kinds]
    assert spelled == ["BIGINT", "DOUBLE PRECISION", "BOOLEAN", "VARCHAR", "VARCHAR[]", "TIMESTAMPTZ"]
