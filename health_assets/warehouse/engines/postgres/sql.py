"""SQL that PostgreSQL wants in another form: parameters, ibis expressions, types, and characters of text.

What belongs here: translation, without a connection. What does not: running it (`store`), and how ibis's
compiler is changed (`postgres_compiler`).
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot.expressions as sge
from ibis import ir

from health_assets.core.sql_memory import remembered
from health_assets.schema.catalog import describe, schema_of
from health_assets.schema.column_types import ARROW_TYPES, SQL_NAMES
from health_assets.schema.columns import FORMULA_VERSION
from health_assets.warehouse.engines.postgres import postgres_compiler
from health_assets.warehouse.engines.postgres.postgres_compiler import compiler

_WORDS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\$[a-z_]\w*|\?""")
_TIME = pa.timestamp("us", "UTC")
_ARROW_TYPES: dict[type, pa.DataType] = {
    bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), datetime: _TIME,
}  # fmt: skip
HALF_JOINS = ("SEMI", "ANTI")
"""Joins that give the columns of their left side alone."""
NO_NUL = "\ufffd"
"""What stands for the character NUL, which PostgreSQL's text cannot hold."""


def numbered(sql: str, parameters: Sequence[Any] | dict[str, Any]) -> tuple[str, pa.RecordBatch | None]:
    """SQL with `$1`, `$2` in place of `?` or `$name`, and its parameters with their types in that order."""
    if not parameters:
        return sql, None
    values: list[Any] = []
    places: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        word = match[0]
        if word == "?":
            values.append(parameters[len(values)])  # type: ignore[index]
            return f"${len(values)}"
        if word[0] != "$":
            return word
        if word not in places:
            values.append(parameters[word[1:]])  # type: ignore[call-overload]
            places[word] = len(values)
        return f"${places[word]}"

    text = _WORDS.sub(number, sql)
    return text, pa.RecordBatch.from_arrays([_bound(value) for value in values], [str(n) for n in range(len(values))])


def _bound(value: Any) -> pa.Array:
    if isinstance(value, list | tuple):
        item = _ARROW_TYPES[type(value[0])] if value else pa.string()
        return pa.array([list(value)], pa.list_(item))
    return pa.nulls(1) if value is None else pa.array([value], _ARROW_TYPES[type(value)])


# -- expressions -------------------------------------------------------------------------------------------------------


@remembered("postgres", __file__, postgres_compiler.__file__)
def postgres_sql(rows: ir.Table) -> str:
    """The SQL of an expression."""
    tree = compiler().to_sqlglot(rows)
    for select in tree.find_all(sge.Select):
        if _computes_with_queries(select):
            # else the planner writes them out wherever a column is named, and each place runs them again
            select.offset(0, copy=False)
        _use_exists(select)
    return tree.sql("postgres")


def _use_exists(select: sge.Select) -> None:
    """Replace semi and anti joins by EXISTS, as PostgreSQL has neither.

    sqlglot's own pass takes a join out of the select that is its parent. ibis gives one join to several selects where
    they agree on it, so that this may be another select.
    """
    joins = select.args.get("joins") or []
    if all(join.kind not in HALF_JOINS for join in joins):
        return
    select.set("joins", [join for join in joins if join.kind not in HALF_JOINS])
    for join in joins:
        if join.kind in HALF_JOINS:
            # no copies: where a part stands in several places, it is rewritten once for all of them
            matches = sge.select("1").from_(join.this, copy=False).where(join.args.get("on"), copy=False)
            exists = sge.Exists(this=matches)
            select.where(exists.not_(copy=False) if join.kind == "ANTI" else exists, copy=False)


def _computes_with_queries(select: sge.Select) -> bool:
    """Whether a column of a derived table is made by queries of its own."""
    place = select.parent
    is_derived = isinstance(place, sge.Subquery | sge.CTE) and isinstance(place.parent, sge.From | sge.Join | sge.With)
    return is_derived and any(column.find(sge.Select) for column in select.expressions)


def typed(sql: str, types: dict[str, str]) -> str:
    """The same rows with these columns in these types: sums of whole numbers, say, are numeric otherwise."""
    columns = ", ".join(f'CAST("{name}" AS {sql_type}) AS "{name}"' for name, sql_type in types.items())
    return f"SELECT {columns} FROM ({sql}) AS untyped"


def sql_types(rows: ir.Table) -> dict[str, str]:
    """The columns of an expression with the types that ibis knows them to have."""
    return {name: _sql_type(kind) for name, kind in rows.schema().items()}


def _sql_type(kind: dt.DataType) -> str:
    return compiler().type_mapper.to_string(kind)


def memory_tables(rows: ir.Table) -> Iterator[tuple[str, dict[str, str], pa.Table]]:
    """Name, columns with types, and rows of each small table in memory that an expression uses."""
    for node in rows.op().find(ops.InMemoryTable):
        types = {name: _sql_type(kind) for name, kind in node.schema.items()}
        yield node.name, types, node.data.to_pyarrow(node.schema)


# -- tables ------------------------------------------------------------------------------------------------------------


def column_definition(name: str, sql_type: str) -> str:
    """A column as a table declares it; text sorts by its bytes, as on DuckDB, whatever the database's language."""
    return f'"{name}" {sql_type}' + (' COLLATE "C"' if sql_type.startswith(("VARCHAR", "TEXT")) else "")


TYPES = SQL_NAMES
"""How PostgreSQL spells the types that columns are declared with: as the standard has them."""
_DECLARED_TYPES = {spelled: kind for kind, spelled in TYPES.items()}


def declared_type(formatted: str) -> str:
    """A type as `schema.catalog.describe` writes it, from what PostgreSQL calls it; one that none has, as it is."""
    spelled = formatted.replace("character varying", "varchar").upper()
    return _DECLARED_TYPES.get(spelled, spelled)


# -- rows --------------------------------------------------------------------------------------------------------------


def to_load(rows: pa.Table | pa.RecordBatchReader, schema: pa.Schema) -> pa.RecordBatchReader:
    """Rows as COPY takes them: the columns in these types, and text without NUL."""
    batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
    return pa.RecordBatchReader.from_batches(
        schema,
        (
            pa.RecordBatch.from_arrays([_loadable(batch[field.name], field) for field in schema], schema=schema)
            for batch in batches
        ),
    )


def load_schema(table: str) -> pa.Schema:
    """The columns of a table with the Arrow types that COPY takes for them."""
    return pa.schema(
        pa.field(name, ARROW_TYPES[kind], metadata=_IS_JSON if kind == "json" else None)
        for name, kind, *_ in describe(table)
    )


_IS_JSON = {b"holds": b"json"}
_JSON_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|-?(?:NaN|Infinity)')
_JSON_ESCAPES = re.compile(r"(\\\\)|\\u0000")
"""In JSON's text a backslash, which is escaped by another, and NUL."""


def _loadable(column: pa.Array, field: pa.Field) -> pa.Array:
    kind = field.type
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if column.type != kind:
        column = column.cast(kind)
    if field.metadata == _IS_JSON:
        return _strict_json(column)
    if pa.types.is_string(kind):
        return _without_nul(column)
    if pa.types.is_list(kind) and pa.types.is_string(kind.value_type) and _has_nul(column.values):
        offsets, values, mask = column.offsets, _without_nul(column.values), column.is_null()
        return pa.ListArray.from_arrays(offsets, values, mask=mask)
    return column


def _has_nul(text: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring(text, "\0")).as_py())


def _without_nul(text: pa.Array) -> pa.Array:
    return pc.replace_substring(text, "\0", NO_NUL) if _has_nul(text) else text


def _strict_json(documents: pa.Array) -> pa.Array:
    """JSON as PostgreSQL takes it: DuckDB's parser also takes NaN, and text may hold an escaped NUL."""
    if not pc.any(pc.match_substring_regex(documents, r"\\u0000|NaN|Infinity")).as_py():
        return documents
    return pa.array([text and _JSON_TOKENS.sub(_strict, text) for text in documents.to_pylist()], documents.type)


def _strict(token: re.Match[str]) -> str:
    if not token[0].startswith('"'):
        return "null"
    return _JSON_ESCAPES.sub(lambda escape: escape[1] or "\\ufffd", token[0])


def as_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The server's rows in the types that were asked for; numeric comes as text, JSON as an extension."""
    columns = []
    for name, wanted in zip(schema.names, schema.types, strict=True):
        column = rows[name]
        if isinstance(column.type, pa.BaseExtensionType):
            column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
        columns.append(column if column.type == wanted else column.cast(wanted))
    return pa.table(columns, schema=schema)


def fingerprint(table: str) -> str:
    """SQL of a fingerprint of a row: its columns hashed by their binary value; JSON, which has no hash, by its text."""
    kinds = {name: kind for name, kind in schema_of(table).items() if name != FORMULA_VERSION}
    columns = (f"{name}::text" if kind == "json" else name for name, kind in kinds.items())
    return f"hash_record_extended(ROW({', '.join(columns)}), 0)"
