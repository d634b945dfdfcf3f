"""Executions, model calls and tool calls, made from spans (contract, section 7).

What belongs here: which spans of a trace become which records, in SQL for the DuckDB that works in this process
whatever the warehouse is. What does not: which traces are looked at (`pipeline.trace_assembly`).

Each span finds what is above it by jumping: in every round it takes over what the span knows that it has reached, and
reaches as far again as that one. So a trace that is n spans deep takes log n rounds, and its order of arrival does not
matter. A span sees the spans of its trace that ended in hours no further from its own than the look-back. A trace that
is longer than that is looked at from each of its hours in turn.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pyarrow as pa

from health_assets.logs.conventions import agent_name, own_name
from health_assets.logs.reader import in_process
from health_assets.schema.catalog import columns_of, schema_of
from health_assets.scoring.usage import AMOUNTS, MOST

UNKNOWN_SERVICE = "unknown_service"
"""What OpenTelemetry calls a service that nobody named; an agent without any name is called so, too."""

UNKNOWN_MODEL = "unknown"
UNKNOWN_TOOL = "unknown"

NOT_FROM_SPANS = ("sla_breached",)
"""Columns that follow from targets."""


@dataclass(frozen=True)
class Assembled:
    """Records that follow from spans.

    Args:
        record_type: `execution`, `model_call` or `tool_call`.
        rows: the columns of its table, but for `NOT_FROM_SPANS`.
        counts: rows of each hour that has any, with a digest of them that is the same in any order.
    """

    record_type: str
    rows: pa.Table
    counts: dict[datetime, tuple[int, str]]


def assemble(spans: pa.Table, hours: Collection[datetime], lookback_hours: int) -> list[Assembled]:
    """The executions, model calls and tool calls of some hours.

    Args:
        spans: rows of the table `spans`: all those that traces with an agent, chat or tool span in `hours` have in
            these hours and, by the look-back, around them.
        hours: the hours to give rows for.
        lookback_hours: how many hours apart spans of a trace may be and still see each other.
    """
    with _nodes(spans, hours, lookback_hours) as connection:
        _find_what_is_above(connection)
        connection.execute(_FAILURES)
        _find_calls(connection, "calls", "chat", is_same="true")
        _find_calls(connection, "tools", "tool", is_same=f"{_tool('inner_span')} = {_tool('outer_span')}")
        return [
            _assembled(connection, record_type, table, sql)
            for record_type, table, sql in [
                ("execution", "executions", _EXECUTIONS),
                ("model_call", "model_calls", _MODEL_CALLS),
                ("tool_call", "tool_calls", _TOOL_CALLS),
            ]
        ]


@contextmanager
def _nodes(spans: pa.Table, hours: Collection[datetime], lookback_hours: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with `nodes`, the spans with a number each; of a span that came twice, one."""
    with in_process() as connection:
        connection.register("spans", spans)
        connection.register("hours", pa.table({"hour": pa.array(list(hours), pa.timestamp("us", "UTC"))}))
        is_long = connection.execute(_LONG, {"lookback": lookback_hours}).fetchall()
        if is_long:
            connection.execute(_SEEN, {"lookback": lookback_hours})
        else:
            connection.execute("CREATE TEMP VIEW seen AS SELECT *, NULL::TIMESTAMPTZ AS seen_from FROM spans")
        is_twice = connection.execute(
            "SELECT 1 FROM seen GROUP BY trace_id, seen_from, span_id HAVING count(*) > 1 LIMIT 1"
        ).fetchall()
        each_once = _ONCE if is_twice else "FROM seen"
        connection.execute(f"CREATE TEMP TABLE nodes AS SELECT row_number() OVER () AS id, * FROM ({each_once})")
        yield connection


_LONG = "SELECT 1 FROM spans GROUP BY trace_id HAVING max(hour) - min(hour) > to_hours($lookback) LIMIT 1"

_SEEN = """
CREATE TEMP TABLE seen AS
WITH long AS (
    SELECT trace_id FROM spans GROUP BY trace_id HAVING max(hour) - min(hour) > to_hours($lookback)
), points_of_view AS (
    SELECT DISTINCT trace_id, hour FROM spans SEMI JOIN long USING (trace_id) SEMI JOIN hours USING (hour)
    WHERE kind IN ('agent', 'chat', 'tool')
)
SELECT *, NULL::TIMESTAMPTZ AS seen_from FROM spans ANTI JOIN long USING (trace_id)
UNION ALL
SELECT spans.*, points_of_view.hour AS seen_from FROM spans JOIN points_of_view
    ON spans.trace_id = points_of_view.trace_id AND spans.hour <= points_of_view.hour + to_hours($lookback)
    AND spans.hour >= points_of_view.hour - to_hours($lookback)
"""

_ONCE = """
FROM seen QUALIFY row_number() OVER (
    PARTITION BY trace_id, seen_from, span_id
    ORDER BY ended_at DESC, source_file DESC, line_number DESC, position DESC
) = 1
"""

_LINKS = """
CREATE OR REPLACE TEMP TABLE links AS
SELECT span.id, parent.id AS parent, span.kind = 'agent' AS is_agent,
    CASE WHEN parent.kind <> 'other' THEN parent.id END AS nearest,
    NULL::VARCHAR AS wrapper_session, NULL::VARCHAR AS wrapper_version, NULL::BIGINT AS failed_wrapper
FROM nodes AS span LEFT JOIN nodes AS parent ON parent.trace_id = span.trace_id
    AND parent.seen_from IS NOT DISTINCT FROM span.seen_from AND parent.span_id = span.parent_span_id
"""
"""`parent` is the span right above. What a wrapper right above says is filled in once wrappers are known."""

_FIRST_JUMP = """
CREATE OR REPLACE TEMP TABLE above AS
SELECT id, parent AS reached, CASE WHEN is_agent THEN id END AS execution,
    nearest, wrapper_session, wrapper_version, failed_wrapper
FROM links
"""
"""`execution` is the outermost agent span from the span itself to before the one that it has reached. `nearest`, an
agent, chat or tool span, and what wrappers say are those from above the span itself to the one that it has reached."""

_JUMP = """
CREATE OR REPLACE TEMP TABLE above AS
SELECT span.id, next.reached, coalesce(next.execution, span.execution) AS execution,
    coalesce(span.nearest, next.nearest) AS nearest,
    coalesce(span.wrapper_session, next.wrapper_session) AS wrapper_session,
    coalesce(span.wrapper_version, next.wrapper_version) AS wrapper_version,
    coalesce(span.failed_wrapper, next.failed_wrapper) AS failed_wrapper
FROM above AS span LEFT JOIN above AS next ON span.reached = next.id
"""


def _find_what_is_above(connection: duckdb.DuckDBPyConnection) -> None:
    """Make `above`: for every span the execution that it is part of, or itself, and what else is said above it."""
    connection.execute(_LINKS)
    if not _jump_to_the_roots(connection):
        _break_circles(connection)
        _jump_to_the_roots(connection)
    if connection.execute(_MAY_HAVE_WRAPPERS).fetchall():
        connection.execute(_NAMED)
        _look_below(connection)
        connection.execute(_WRAPPERS)
        connection.execute(_PASS_THROUGH)
        _jump_to_the_roots(connection)
    connection.execute(_FAILED)
    _look_below(connection)


def _jump_to_the_roots(connection: duckdb.DuckDBPyConnection) -> bool:
    """Make `above` by jumping; gives whether all reached their root, which spans in a circle never do."""
    connection.execute(_FIRST_JUMP)
    [(count,)] = connection.execute("SELECT count(*) FROM nodes").fetchall()
    for _ in range(count.bit_length() + 2):
        if not connection.execute("SELECT 1 FROM above WHERE reached IS NOT NULL LIMIT 1").fetchall():
            return True
        connection.execute(_JUMP)
    return False


def _break_circles(connection: duckdb.DuckDBPyConnection) -> None:
    """Break circles of spans: the one that started first has nothing above it from now on."""
    rows = connection.execute(
        """
        SELECT links.id, links.parent, nodes.started_at, nodes.span_id
        FROM links JOIN nodes ON nodes.id = links.id JOIN above ON above.id = links.id WHERE above.reached IS NOT NULL
        """
    ).fetchall()
    parent_of = {number: parent for number, parent, *_ in rows}
    order = {number: start for number, _, *start in rows}
    firsts = [min(circle, key=lambda number: order[number]) for circle in circles(parent_of)]
    connection.execute("UPDATE links SET parent = NULL, nearest = NULL WHERE id IN (SELECT unnest(?))", [firsts])


_MAY_HAVE_WRAPPERS = """
SELECT 1 FROM nodes WHERE kind = 'agent'
GROUP BY trace_id, seen_from HAVING count(agent_id) > 0 AND count(agent_id) < count(*) LIMIT 1
"""

_NAMED = """
CREATE OR REPLACE TEMP TABLE below AS
SELECT links.id, links.parent AS reached, nodes.kind = 'agent' AND nodes.agent_id IS NOT NULL AS holds
FROM links JOIN nodes ON nodes.id = links.id
WHERE nodes.trace_id IN (
    SELECT trace_id FROM nodes WHERE kind = 'agent'
    GROUP BY trace_id HAVING count(agent_id) > 0 AND count(agent_id) < count(*)
)
"""
"""To tell which spans have a named agent span below them."""

_WRAPPERS = """
CREATE TEMP TABLE wrappers AS
SELECT nodes.* FROM nodes JOIN below ON below.id = nodes.id
WHERE nodes.kind = 'agent' AND nodes.agent_id IS NULL AND below.holds
"""

_PASS_THROUGH = """
UPDATE links SET is_agent = false WHERE id IN (SELECT id FROM wrappers);
UPDATE links SET wrapper_session = wrappers.session_id, wrapper_version = wrappers.agent_version,
    failed_wrapper = CASE WHEN wrappers.failed THEN wrappers.id END
FROM wrappers WHERE wrappers.id = links.parent
"""

_FAILED = """
CREATE OR REPLACE TEMP TABLE below AS
SELECT links.id, links.parent AS reached, coalesce(nodes.failed AND above.execution = nodes.id, false) AS holds
FROM links JOIN nodes ON nodes.id = links.id JOIN above ON above.id = links.id
WHERE nodes.trace_id IN (
    SELECT trace_id FROM nodes JOIN above ON above.id = nodes.id WHERE above.failed_wrapper IS NOT NULL
)
"""
"""To tell which wrappers have an execution below them that failed by itself."""


def _look_below(connection: duckdb.DuckDBPyConnection) -> None:
    """Let `below.holds` of every span tell whether it holds of the span itself or of any below it.

    In every round a span asks those that have reached it, which know of as many spans below them as they have jumped
    over; so this, too, takes log n rounds.
    """
    while connection.execute("SELECT 1 FROM below WHERE reached IS NOT NULL LIMIT 1").fetchall():
        connection.execute(_LOOK_FARTHER)


_LOOK_FARTHER = """
CREATE OR REPLACE TEMP TABLE below AS
WITH told AS (SELECT reached AS id, bool_or(holds) AS holds FROM below WHERE reached IS NOT NULL GROUP BY reached)
SELECT span.id, next.reached, span.holds OR coalesce(told.holds, false) AS holds
FROM below AS span LEFT JOIN below AS next ON next.id = span.reached LEFT JOIN told ON told.id = span.id
"""


def circles(parent_of: dict[int, int]) -> Iterator[list[int]]:
    """The circles that these links make, where every number has a link and all end in a circle."""
    seen: set[int] = set()
    for start in parent_of:
        path: dict[int, None] = {}
        number = start
        while number not in seen:
            seen.add(number)
            path[number] = None
            number = parent_of[number]
        if number in path:
            members = list(path)
            yield members[members.index(number) :]


_FAILURES = """
CREATE TEMP TABLE failures AS
SELECT nodes.id, CASE WHEN nodes.failed THEN nodes.error ELSE wrapper.error END AS error
FROM nodes JOIN above ON above.id = nodes.id
LEFT JOIN below AS told ON told.id = above.failed_wrapper
LEFT JOIN nodes AS wrapper ON wrapper.id = above.failed_wrapper
WHERE above.execution = nodes.id AND (nodes.failed OR above.failed_wrapper IS NOT NULL AND NOT told.holds)
"""
"""Executions that failed: by themselves, or because a wrapper failed and none of the executions below it did."""


def _find_calls(connection: duckdb.DuckDBPyConnection, table: str, kind: str, is_same: str) -> None:
    """Make a table of the spans of a kind that hold no other one of it which stands for the same call.

    Libraries wrap one another, so the innermost span is the call; one that an agent, a tool or a model on the way makes
    is a call of its own. What only an outer span tells is not lost: a call without a model has that of the nearest span
    around it. An error that no inner span has, and amounts that none states, are those of the last inner one.

    Args:
        connection: the database.
        table: name of the table.
        kind: kind of the spans.
        is_same: SQL condition on `inner_span` and `outer_span`, the one right above it, for them to be the same call.
    """
    amounts = ", ".join(
        f"CASE WHEN count(inner_span.{name}) OVER siblings = 0 THEN outer_span.{name} END AS {name}" for name in AMOUNTS
    )
    connection.execute(f"""
    CREATE OR REPLACE TEMP TABLE held AS
    SELECT inner_span.id, outer_span.id AS reached, outer_span.id AS outer_id, outer_span.model, {amounts},
        row_number() OVER (siblings ORDER BY inner_span.ended_at DESC, inner_span.span_id DESC) = 1 AS is_last,
        CASE WHEN outer_span.failed AND NOT bool_or(inner_span.failed) OVER siblings
            THEN {{'error': outer_span.error}} END AS failure
    FROM nodes AS inner_span JOIN above ON above.id = inner_span.id
    JOIN nodes AS outer_span ON outer_span.id = above.nearest
    WHERE inner_span.kind = '{kind}' AND outer_span.kind = '{kind}' AND {is_same}
    WINDOW siblings AS (PARTITION BY outer_span.id)
    """)
    passed_on = (*AMOUNTS, "failure")
    connection.execute(f"UPDATE held SET {', '.join(f'{name} = NULL' for name in passed_on)} WHERE NOT is_last")
    inherited = ", ".join(
        f"coalesce(span.{name}, CASE WHEN span.is_last THEN next.{name} END) AS {name}" for name in passed_on
    )
    while connection.execute("SELECT 1 FROM held JOIN held AS next ON next.id = held.reached LIMIT 1").fetchall():
        connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE held AS
        SELECT span.id, next.reached, span.outer_id, coalesce(span.model, next.model) AS model, {inherited},
            span.is_last AND coalesce(next.is_last, true) AS is_last
        FROM held AS span LEFT JOIN held AS next ON next.id = span.reached
        """)
    own = ", ".join(f"coalesce(nodes.{name}, held.{name}) AS {name}" for name in ("model", *AMOUNTS))
    connection.execute(f"""
    CREATE TEMP TABLE {table} AS
    SELECT nodes.* REPLACE (
            {own}, nodes.failed OR held.failure IS NOT NULL AS failed,
            CASE WHEN nodes.failed THEN nodes.error ELSE held.failure.error END AS error
        ), above.execution
    FROM nodes JOIN above ON above.id = nodes.id LEFT JOIN held ON held.id = nodes.id
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


def _agreed(condition: str) -> str:
    """The model that all calls which meet a condition and tell one have; null where they differ or tell none."""
    least, greatest = (f"{extreme}(model) FILTER ({condition})" for extreme in ("min", "max"))
    return f"CASE WHEN {least} = {greatest} THEN {least} END"


_EXECUTIONS = f"""
WITH used_tools AS (
    SELECT execution, list({_tool("tools")} ORDER BY started_at, ended_at, span_id) AS actions
    FROM tools WHERE execution IS NOT NULL GROUP BY execution
), called_models AS (
    SELECT execution, {_agreed("NOT failed")} AS model_that_answered, {_agreed("failed")} AS model_that_failed,
        {", ".join(map(_sum, AMOUNTS))}
    FROM calls WHERE execution IS NOT NULL GROUP BY execution
)
SELECT span.hour, span.source_file, span.line_number, span.trace_id || ':' || span.span_id AS execution_id,
    {_agent_id("span")} AS agent_id,
    coalesce(span.agent_version, above.wrapper_version, span.service_version) AS agent_version,
    span.started_at, span.ended_at,
    CASE WHEN failures.id IS NULL THEN 'success' ELSE 'failure' END AS status, failures.id IS NULL AS succeeded,
    {_RUNTIME_US} / 1e6 AS runtime_s, coalesce(span.session_id, above.wrapper_session) AS session_id,
    'baseline' AS condition,
    coalesce(model_that_answered, span.model, model_that_failed) AS model, failures.error,
    coalesce(span.cost_usd, called_models.cost_usd) AS cost_usd, span.cost_usd AS cost_usd_reported,
    coalesce(span.input_tokens, called_models.input_tokens) AS input_tokens,
    span.input_tokens AS input_tokens_reported,
    coalesce(span.output_tokens, called_models.output_tokens) AS output_tokens,
    span.output_tokens AS output_tokens_reported,
    actions, len(actions) AS action_count, span.span_id
FROM nodes AS span JOIN above ON above.id = span.id AND above.execution = span.id
LEFT JOIN failures ON failures.id = span.id
LEFT JOIN used_tools ON used_tools.execution = span.id LEFT JOIN called_models ON called_models.execution = span.id
WHERE {_IS_ASKED}
"""

_OF_A_CALL = f"""
span.hour, span.source_file, span.line_number, span.trace_id || ':' || span.span_id AS call_id,
    span.ended_at, {_STATUS} AS status, CASE WHEN caller.id IS NOT NULL THEN {_agent_id("caller")} END AS agent_id,
    caller.trace_id || ':' || caller.span_id AS execution_id, {_RUNTIME_US} / 1e3 AS latency_ms, span.error,
    span.span_id
"""

_MODEL_CALLS = f"""
SELECT {_OF_A_CALL}, coalesce(span.model, '{UNKNOWN_MODEL}') AS model,
    span.input_tokens, span.output_tokens, span.cost_usd
FROM calls AS span LEFT JOIN nodes AS caller ON caller.id = span.execution
WHERE {_IS_ASKED}
"""

_TOOL_CALLS = f"""
SELECT {_OF_A_CALL}, {_tool("span")} AS tool
FROM tools AS span LEFT JOIN nodes AS caller ON caller.id = span.execution
WHERE {_IS_ASKED}
"""

_SQL_TYPES = {
    "timestamp('UTC')": "TIMESTAMPTZ", "float64": "DOUBLE", "int64": "BIGINT", "boolean": "BOOLEAN",
    "string": "VARCHAR", "array<string>": "VARCHAR[]", "json": "VARCHAR",
}  # fmt: skip


def _assembled(connection: duckdb.DuckDBPyConnection, record_type: str, table: str, sql: str) -> Assembled:
    """Rows with all of the table's columns, those that no span tells as nulls."""
    connection.execute(f"CREATE TEMP TABLE {table} AS {sql}")
    told = {row[0] for row in connection.execute(f"DESCRIBE {table}").fetchall()}
    types = schema_of(table)
    columns = ", ".join(
        name if name in told else f"NULL::{_SQL_TYPES[types[name]]} AS {name}"
        for name in columns_of(table)
        if name not in NOT_FROM_SPANS
    )
    rows = connection.sql(f"SELECT {columns} FROM {table}").to_arrow_table()
    everything = ", ".join(name for name in columns_of(table) if name in told)
    counts = connection.execute(
        f"SELECT hour, count(*), (sum(hash({everything})) % (1::HUGEINT << 64))::UBIGINT FROM {table} GROUP BY hour"
    ).fetchall()
    return Assembled(record_type, rows, {hour: (count, str(digest)) for hour, count, digest in counts})
