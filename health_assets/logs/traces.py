"""Executions, model calls and tool calls, made from spans (docs/opentelemetry.md).

What belongs here: which spans of a trace become which records, in SQL for the DuckDB that works in this process
whatever the warehouse is. What does not: which spans are above and below each other (`span_trees`), and which traces
are looked at (`pipeline.trace_hours`).
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pyarrow as pa
from ibis import ir

from health_assets.core.agent_names import AgentName, AgentService, with_agents
from health_assets.logs.conventions import UNKNOWN_MODEL, agent_name, own_name
from health_assets.logs.span_trees import nodes_of, resolve_ancestors
from health_assets.schema.catalog import TABLE_OF_RECORD, columns_of, schema_of
from health_assets.scoring.prices import STATED
from health_assets.scoring.usage import AMOUNTS, MOST

UNKNOWN_SERVICE = "unknown_service"
"""What OpenTelemetry calls a service that nobody named; an agent without any name is called so, too."""

UNKNOWN_TOOL = "unknown"

NOT_FROM_SPANS = ("sla_breached",)
"""Columns that follow from targets."""

_ONCE = (*AMOUNTS, "input_digest", "output_digest")
"""Columns of an outer span that its last inner one inherits."""

DIGEST_PARTS = ("digest_high", "digest_low")
"""A row's 64-bit digest as two numbers of 32 bits, whose sums no engine overflows."""


@dataclass(frozen=True)
class Assembled:
    """Records that follow from spans.

    Args:
        record_type: `execution`, `model_call` or `tool_call`.
        rows: the columns of its table, but for `NOT_FROM_SPANS`; an expression where another machine has put them
            together.
        counts: rows of each hour that has any, with a digest of them that is the same in any order.
    """

    record_type: str
    rows: pa.Table | ir.Table
    counts: dict[datetime, tuple[int, str]]


def assemble(
    spans: pa.Table, hours: Collection[datetime], lookback_hours: int, services: Sequence[AgentService] = ()
) -> list[Assembled]:
    """The executions, model calls and tool calls of some hours.

    Args:
        spans: rows of the table `spans`: all those that traces with an agent, chat or tool span in `hours` have in
            these hours and, by the look-back, around them.
        hours: the hours to give rows for.
        lookback_hours: how many hours apart spans of a trace may be and still see each other.
        services: services whose outermost spans are executions where no span tells of an agent.
    """
    with _records(spans, hours, lookback_hours, services, single_threaded=False) as connection:
        return [_assembled(connection, record_type) for record_type in _SQL]


def assembled_rows(
    spans: pa.Table,
    hours: Collection[datetime],
    lookback_hours: int,
    names: Sequence[AgentName],
    services: Sequence[AgentService] = (),
) -> pa.Table:
    """The records of `assemble` in one table, for whoever puts some of the traces together.

    The digest of an hour's records is the sum of those of its rows, `DIGEST_PARTS[0]` times 2^32 and the other one.

    Args:
        spans: as of `assemble`, all spans of any number of traces.
        hours: as of `assemble`.
        lookback_hours: as of `assemble`.
        names: patterns that fold the names that spans give into agents.
        services: as of `assemble`.

    Returns:
        The columns of all three tables, `record_type` and `DIGEST_PARTS`; those that another table has are null.
    """
    with _records(spans, hours, lookback_hours, services, single_threaded=True) as connection:
        made = [_with_digests(connection, record_type) for record_type in _SQL]
    return with_agents(pa.concat_tables(made, promote_options="default"), names)


@contextmanager
def _records(
    spans: pa.Table,
    hours: Collection[datetime],
    lookback_hours: int,
    services: Sequence[AgentService],
    *,
    single_threaded: bool,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that has the records of each kind in the table of their name."""
    with nodes_of(spans, hours, lookback_hours, services, single_threaded=single_threaded) as connection:
        connection.execute(_FAILED_INSIDE)
        resolve_ancestors(connection, services)
        connection.execute(_FAILURES)
        _find_calls(connection, "calls", "chat", is_same="true")
        _find_calls(connection, "tools", "tool", is_same=f"{_tool('inner_span')} = {_tool('outer_span')}")
        for record_type, sql in _SQL.items():
            connection.execute(f"CREATE TEMP TABLE {TABLE_OF_RECORD[record_type]} AS {sql}")
        yield connection


_FAILED_INSIDE = """
UPDATE nodes SET failed = true, error = inner_span.error FROM nodes AS inner_span JOIN links ON links.id = inner_span.id
WHERE links.parent = nodes.id AND inner_span.operation = 'tool.execution'
    AND inner_span.convention = 'claude_code' AND inner_span.failed
    AND nodes.convention = 'claude_code' AND nodes.kind = 'tool' AND NOT nodes.failed
"""
"""Claude Code tells the outcome of a tool on a span of its own, right below the one that names the tool."""

_FAILURES = """
CREATE TEMP TABLE failures AS
SELECT nodes.id, CASE WHEN nodes.failed THEN nodes.error ELSE wrapper.error END AS error
FROM nodes JOIN ancestors ON ancestors.id = nodes.id
LEFT JOIN descendants ON descendants.id = ancestors.failed_wrapper
LEFT JOIN nodes AS wrapper ON wrapper.id = ancestors.failed_wrapper
WHERE ancestors.execution = nodes.id
    AND (nodes.failed OR ancestors.failed_wrapper IS NOT NULL AND NOT descendants.matches)
"""
"""Executions that failed: by themselves, or because a wrapper failed and none of the executions below it did."""


def _find_calls(connection: duckdb.DuckDBPyConnection, table: str, kind: str, is_same: str) -> None:
    """Make a table of the spans of a kind that hold no other one of it which stands for the same call.

    Libraries wrap one another, so the innermost span is the call; one that an agent, a tool or a model on the way makes
    is a call of its own. What only an outer span tells is not lost: a call without a model has that of the nearest span
    around it. An error that no inner span has, and amounts and contents that none states, are those of the last inner
    one.

    Args:
        connection: the database.
        table: name of the table.
        kind: kind of the spans.
        is_same: SQL condition on `inner_span` and `outer_span`, the one right above it, for them to be the same call.
    """
    amounts = ", ".join(
        f"CASE WHEN count(inner_span.{name}) OVER siblings = 0 THEN outer_span.{name} END AS {name}" for name in _ONCE
    )
    connection.execute(f"""
    CREATE OR REPLACE TEMP TABLE held AS
    SELECT inner_span.id, outer_span.id AS reached, outer_span.id AS outer_id, outer_span.model,
        outer_span.response_model, {amounts},
        row_number() OVER (
            siblings ORDER BY inner_span.ended_at DESC, inner_span.span_id DESC, inner_span.started_at DESC
        ) = 1 AS is_last,
        CASE WHEN outer_span.failed AND NOT bool_or(inner_span.failed) OVER siblings
            THEN {{'error': outer_span.error}} END AS failure
    FROM nodes AS inner_span JOIN ancestors ON ancestors.id = inner_span.id
    JOIN nodes AS outer_span ON outer_span.id = ancestors.nearest
    WHERE inner_span.kind = '{kind}' AND outer_span.kind = '{kind}' AND {is_same}
    WINDOW siblings AS (PARTITION BY outer_span.id)
    """)
    passed_on = (*_ONCE, "failure")
    connection.execute(f"UPDATE held SET {', '.join(f'{name} = NULL' for name in passed_on)} WHERE NOT is_last")
    inherited = ", ".join(
        f"coalesce(span.{name}, CASE WHEN span.is_last THEN next.{name} END) AS {name}" for name in passed_on
    )
    while connection.execute("SELECT 1 FROM held JOIN held AS next ON next.id = held.reached LIMIT 1").fetchall():
        connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE held AS
        SELECT span.id, next.reached, span.outer_id, coalesce(span.model, next.model) AS model,
            coalesce(span.response_model, next.response_model) AS response_model, {inherited},
            span.is_last AND coalesce(next.is_last, true) AS is_last
        FROM held AS span LEFT JOIN held AS next ON next.id = span.reached
        """)
    columns = ("model", "response_model", *_ONCE)
    own = ", ".join(f"coalesce(nodes.{name}, held.{name}) AS {name}" for name in columns)
    connection.execute(f"""
    CREATE TEMP TABLE {table} AS
    SELECT nodes.* REPLACE (
            {own}, nodes.failed OR held.failure IS NOT NULL AS failed,
            CASE WHEN nodes.failed THEN nodes.error ELSE held.failure.error END AS error
        ), ancestors.execution
    FROM nodes JOIN ancestors ON ancestors.id = nodes.id LEFT JOIN held ON held.id = nodes.id
    WHERE nodes.kind = '{kind}' AND nodes.id NOT IN (SELECT outer_id FROM held)
    """)


_IS_ASKED = "(span.seen_from IS NULL OR span.seen_from = span.hour) AND span.hour IN (SELECT hour FROM hours)"
_RUNTIME_US = "(epoch_us(span.ended_at) - epoch_us(span.started_at))"
_STATUS = "CASE WHEN span.failed THEN 'failure' ELSE 'success' END"


def _agent_id(span: str) -> str:
    return f"coalesce({span}.agent_id, {agent_name(span)}, {span}.service_name, '{UNKNOWN_SERVICE}')"


def _tool(span: str) -> str:
    return f"coalesce({span}.tool_name, {own_name(span)}, '{UNKNOWN_TOOL}')"


def _sum(amount: str) -> str:
    """The sum of an amount over calls, as `scoring.usage` adds it up: the same in any order; null where none is."""
    counted = f"CASE WHEN {amount} IS NOT NULL THEN least({amount}, {MOST[amount]}) END"
    if amount == "cost_usd":
        return f"CAST(sum(CAST({counted} AS DECIMAL(38, 18))) AS DOUBLE) AS {amount}"
    return f"CAST(sum({counted}) AS BIGINT) AS {amount}"


def _own_or_summed(amount: str) -> str:
    return f"coalesce(span.{amount}, called_models.{amount}) AS {amount}, span.{amount} AS {amount}_reported"


def _cost_source(cost: str) -> str:
    return f"CASE WHEN {cost} IS NOT NULL THEN '{STATED}' END AS cost_source"


def _agreed(condition: str) -> str:
    """The model that all calls which meet a condition and tell one have; null where they differ or tell none."""
    least, greatest = (f"{extreme}(model) FILTER ({condition})" for extreme in ("min", "max"))
    return f"CASE WHEN {least} = {greatest} THEN {least} END"


_EXECUTIONS = f"""
WITH used_tools AS (
    SELECT execution, list({_tool("tools")} ORDER BY started_at, ended_at, span_id) AS actions
    FROM tools WHERE execution IS NOT NULL GROUP BY execution
), evaluated AS (
    SELECT trace_id, seen_from, min(task_id) AS task_id FROM nodes WHERE task_id IS NOT NULL
    GROUP BY trace_id, seen_from HAVING min(task_id) = max(task_id)
), called_models AS (
    SELECT execution, first(input_digest ORDER BY started_at, ended_at, span_id) AS input_digest,
        {_agreed("NOT failed")} AS model_that_answered, {_agreed("failed")} AS model_that_failed,
        {", ".join(map(_sum, AMOUNTS))}
    FROM calls WHERE execution IS NOT NULL GROUP BY execution
)
SELECT span.hour, span.source_file, span.line_number, span.trace_id || ':' || span.span_id AS execution_id,
    {_agent_id("span")} AS agent_id,
    coalesce(span.agent_version, ancestors.wrapper_version, span.service_version) AS agent_version,
    span.started_at, span.ended_at,
    CASE WHEN failures.id IS NULL THEN 'success' ELSE 'failure' END AS status, failures.id IS NULL AS succeeded,
    '{STATED}' AS outcome_source, {_RUNTIME_US} / 1e6 AS runtime_s,
    coalesce(span.session_id, ancestors.wrapper_session) AS session_id,
    coalesce(span.user_id, ancestors.wrapper_user) AS user_id,
    coalesce(span.task_id, evaluated.task_id) AS task_id,
    CASE WHEN coalesce(span.task_id, evaluated.task_id) IS NOT NULL THEN 'evaluation' END AS task_source,
    coalesce(span.input_digest, called_models.input_digest) AS input_digest,
    'baseline' AS condition,
    coalesce(model_that_answered, span.model, model_that_failed) AS model, failures.error,
    {", ".join(map(_own_or_summed, AMOUNTS))}, {_cost_source("coalesce(span.cost_usd, called_models.cost_usd)")},
    actions, len(actions) AS action_count, span.span_id
FROM nodes AS span JOIN ancestors ON ancestors.id = span.id AND ancestors.execution = span.id
LEFT JOIN failures ON failures.id = span.id
LEFT JOIN evaluated ON evaluated.trace_id = span.trace_id
    AND evaluated.seen_from IS NOT DISTINCT FROM span.seen_from
LEFT JOIN used_tools ON used_tools.execution = span.id LEFT JOIN called_models ON called_models.execution = span.id
WHERE {_IS_ASKED}
"""

_OF_A_CALL = f"""
span.hour, span.source_file, span.line_number, span.trace_id || ':' || span.span_id AS call_id,
    span.ended_at, {_STATUS} AS status,
    CASE WHEN caller.id IS NOT NULL THEN {_agent_id("caller")} ELSE span.agent_id END AS agent_id,
    caller.trace_id || ':' || caller.span_id AS execution_id, {_RUNTIME_US} / 1e3 AS latency_ms, span.error,
    span.span_id
"""

_MODEL_CALLS = f"""
SELECT {_OF_A_CALL}, coalesce(span.model, '{UNKNOWN_MODEL}') AS model, span.response_model,
    {", ".join(f"span.{name}" for name in AMOUNTS)}, {_cost_source("span.cost_usd")}, span.output_digest
FROM calls AS span LEFT JOIN nodes AS caller ON caller.id = span.execution
WHERE {_IS_ASKED}
"""

_TOOL_CALLS = f"""
SELECT {_OF_A_CALL}, {_tool("span")} AS tool, span.input_digest AS arguments_digest,
    span.output_digest AS result_digest
FROM tools AS span LEFT JOIN nodes AS caller ON caller.id = span.execution
WHERE {_IS_ASKED}
"""

_SQL_TYPES = {
    "timestamp('UTC')": "TIMESTAMPTZ", "float64": "DOUBLE", "int64": "BIGINT", "boolean": "BOOLEAN",
    "string": "VARCHAR", "array<string>": "VARCHAR[]", "json": "VARCHAR",
}  # fmt: skip


_SQL = {"execution": _EXECUTIONS, "model_call": _MODEL_CALLS, "tool_call": _TOOL_CALLS}
"""SQL of the records of each kind."""


def _assembled(connection: duckdb.DuckDBPyConnection, record_type: str) -> Assembled:
    table, columns = _table_and_columns(connection, record_type)
    rows = connection.sql(f"SELECT {_columns(table, columns)} FROM {table}").to_arrow_table()
    counts = connection.execute(
        f"SELECT hour, count(*), (sum({_digest(columns)}) % (1::HUGEINT << 64))::UBIGINT FROM {table} GROUP BY hour"
    ).fetchall()
    return Assembled(record_type, rows, {hour: (count, str(digest)) for hour, count, digest in counts})


def _with_digests(connection: duckdb.DuckDBPyConnection, record_type: str) -> pa.Table:
    table, columns = _table_and_columns(connection, record_type)
    high, low = DIGEST_PARTS
    digest = _digest(columns)
    parts = f"({digest} >> 32)::BIGINT AS {high}, ({digest} & {2**32 - 1})::BIGINT AS {low}"
    sql = f"SELECT '{record_type}' AS record_type, {_columns(table, columns)}, {parts} FROM {table}"
    return connection.sql(sql).to_arrow_table()


def _table_and_columns(connection: duckdb.DuckDBPyConnection, record_type: str) -> tuple[str, list[str]]:
    """The table of a kind of records, and those of its columns that spans tell."""
    table = TABLE_OF_RECORD[record_type]
    found = {row[0] for row in connection.execute(f"DESCRIBE {table}").fetchall()}
    return table, [name for name in columns_of(table) if name in found]


def _columns(table: str, known: Collection[str]) -> str:
    """All columns of a table, those that no span tells as nulls."""
    types = schema_of(table)
    return ", ".join(
        name if name in known else f"NULL::{_SQL_TYPES[types[name]]} AS {name}"
        for name in columns_of(table)
        if name not in NOT_FROM_SPANS
    )


def _digest(columns: Sequence[str]) -> str:
    return f"hash({', '.join(columns)})"
