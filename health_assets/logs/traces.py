"""From spans to executions and model calls (contract, section 7).

What belongs here: which spans of a trace are executions, model calls and actions, in SQL for the DuckDB that works in
this process whatever the warehouse is. What does not: which traces are looked at (`trace_assembly`).

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

from health_assets.logs.reader import in_process
from health_assets.warehouse.tables import columns_of, schema_of

UNKNOWN_SERVICE = "unknown_service"
"""What OpenTelemetry calls a service that nobody named; an agent without any name is called so, too."""

NOT_FROM_SPANS = ("sla_breached",)
"""Columns that follow from targets."""


@dataclass(frozen=True)
class Assembled:
    """Records that follow from spans.

    Args:
        record_type: `execution` or `model_call`.
        rows: the columns of its table, but for `NOT_FROM_SPANS`.
        counts: rows of each hour that has any, with a digest of them that is the same in any order.
    """

    record_type: str
    rows: pa.Table
    counts: dict[datetime, tuple[int, str]]


def assemble(spans: pa.Table, hours: Collection[datetime], lookback_hours: int) -> list[Assembled]:
    """The executions and model calls of some hours.

    Args:
        spans: rows of the table `spans`: all those that traces with an agent or chat span in `hours` have in these
            hours and, by the look-back, around them.
        hours: the hours to give rows for.
        lookback_hours: how many hours apart spans of a trace may be and still see each other.
    """
    with _nodes(spans, hours, lookback_hours) as connection:
        _find_what_is_above(connection)
        connection.execute(_LEAVES)
        return [
            _assembled(connection, record_type, table, sql)
            for record_type, table, sql in [
                ("execution", "executions", _EXECUTIONS),
                ("model_call", "model_calls", _MODEL_CALLS),
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
    WHERE kind IN ('agent', 'chat')
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
SELECT span.id, parent.id AS parent, span.kind = 'agent' AS is_agent, parent.kind = 'chat' AS is_below_chat
FROM nodes AS span LEFT JOIN nodes AS parent ON parent.trace_id = span.trace_id
    AND parent.seen_from IS NOT DISTINCT FROM span.seen_from AND parent.span_id = span.parent_span_id
"""

_FIRST_JUMP = """
CREATE OR REPLACE TEMP TABLE above AS
SELECT id, parent AS reached, CASE WHEN is_agent THEN id END AS execution,
    CASE WHEN is_below_chat THEN parent END AS chat
FROM links
"""
"""`execution` is the outermost agent span from the span itself to before the one that it has reached, `chat` the
nearest chat span from above itself to the one that it has reached."""

_JUMP = """
CREATE OR REPLACE TEMP TABLE above AS
SELECT span.id, next.reached, coalesce(next.execution, span.execution) AS execution,
    coalesce(span.chat, next.chat) AS chat
FROM above AS span LEFT JOIN above AS next ON span.reached = next.id
"""


def _find_what_is_above(connection: duckdb.DuckDBPyConnection) -> None:
    """Make `above`: for every span the execution that it is part of, or itself, and the nearest chat span above it."""
    connection.execute(_LINKS)
    [(count,)] = connection.execute("SELECT count(*) FROM nodes").fetchall()
    rounds = _jump_to_the_roots(connection, count.bit_length() + 1)
    if rounds is None:
        _break_circles(connection)
        _jump_to_the_roots(connection, count.bit_length() + 1)


def _jump_to_the_roots(connection: duckdb.DuckDBPyConnection, most_rounds: int) -> int | None:
    """How many rounds it took until all had reached their root; None where some never do."""
    connection.execute(_FIRST_JUMP)
    for number in range(most_rounds + 1):
        if not connection.execute("SELECT 1 FROM above WHERE reached IS NOT NULL LIMIT 1").fetchall():
            return number
        connection.execute(_JUMP)
    return None


def _break_circles(connection: duckdb.DuckDBPyConnection) -> None:
    """Where spans are above one another in a circle, let the one that started first have nothing above it."""
    rows = connection.execute(
        """
        SELECT links.id, links.parent, nodes.started_at, nodes.span_id
        FROM links JOIN nodes ON nodes.id = links.id JOIN above ON above.id = links.id WHERE above.reached IS NOT NULL
        """
    ).fetchall()
    parent_of = {number: parent for number, parent, *_ in rows}
    order = {number: start for number, _, *start in rows}
    firsts = [min(circle, key=lambda number: order[number]) for circle in circles(parent_of)]
    connection.execute("UPDATE links SET parent = NULL, is_below_chat = false WHERE id IN (SELECT unnest(?))", [firsts])


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


_LEAVES = """
CREATE TEMP TABLE calls AS
SELECT nodes.*, above.execution FROM nodes JOIN above ON above.id = nodes.id
WHERE kind = 'chat' AND nodes.id NOT IN (
    SELECT above.chat FROM above JOIN nodes AS below ON below.id = above.id
    WHERE below.kind = 'chat' AND above.chat IS NOT NULL
)
"""
"""Chat spans without a chat span anywhere below them."""

_IS_ASKED = "(span.seen_from IS NULL OR span.seen_from = span.hour) AND span.hour IN (SELECT hour FROM hours)"
_RUNTIME_US = "(epoch_us(span.ended_at) - epoch_us(span.started_at))"
_STATUS = "CASE WHEN span.failed THEN 'failure' ELSE 'success' END"


def _agent_id(span: str) -> str:
    return f"coalesce({span}.agent_id, {span}.service_name, '{UNKNOWN_SERVICE}')"


_EXECUTIONS = f"""
WITH used_tools AS (
    SELECT above.execution, list(coalesce(tool_name, name, span_id) ORDER BY started_at, ended_at, span_id) AS actions
    FROM nodes JOIN above ON above.id = nodes.id WHERE kind = 'tool' AND above.execution IS NOT NULL
    GROUP BY above.execution
), called_models AS (
    SELECT execution, min(model) AS least_model, max(model) AS greatest_model,
        list_sum(list(cost_usd ORDER BY ended_at, span_id) FILTER (cost_usd IS NOT NULL)) AS cost_usd
    FROM calls WHERE execution IS NOT NULL GROUP BY execution
)
SELECT span.hour, span.source_file, span.line_number, span.trace_id || ':' || span.span_id AS execution_id,
    {_agent_id("span")} AS agent_id, span.started_at, span.ended_at, {_STATUS} AS status, NOT span.failed AS succeeded,
    {_RUNTIME_US} / 1e6 AS runtime_s, span.session_id, 'baseline' AS condition,
    coalesce(span.model, CASE WHEN least_model = greatest_model THEN least_model END) AS model, span.error,
    coalesce(span.cost_usd, called_models.cost_usd) AS cost_usd, actions, len(actions) AS action_count, span.span_id
FROM nodes AS span JOIN above ON above.id = span.id AND above.execution = span.id
LEFT JOIN used_tools ON used_tools.execution = span.id LEFT JOIN called_models ON called_models.execution = span.id
WHERE {_IS_ASKED}
"""

_MODEL_CALLS = f"""
SELECT span.hour, span.source_file, span.line_number, span.trace_id || ':' || span.span_id AS call_id, span.model,
    span.ended_at, {_STATUS} AS status, CASE WHEN caller.id IS NOT NULL THEN {_agent_id("caller")} END AS agent_id,
    caller.trace_id || ':' || caller.span_id AS execution_id, {_RUNTIME_US} / 1e3 AS latency_ms, span.error,
    span.span_id
FROM calls AS span LEFT JOIN nodes AS caller ON caller.id = span.execution
WHERE span.model IS NOT NULL AND {_IS_ASKED}
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
