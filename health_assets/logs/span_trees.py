"""Trees of spans: for every span of a trace, its ancestors, and what is true of its descendants.

What belongs here: the spans with a number each, the links between them, and the tables `ancestors` and `descendants`
that follow from these. What does not: which records spans become (`traces`).

Each span finds what is above it by jumping: in every round it takes over what the span knows that it has reached, and
reaches as far again as that one. So a trace that is n spans deep takes log n rounds, and its order of arrival does not
matter. A span sees the spans of its trace that ended in hours no further from its own than the look-back. A trace that
is longer than that is looked at from each of its hours in turn.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import duckdb
import pyarrow as pa

from health_assets.core.agent_names import AgentService, is_of_services
from health_assets.logs.reader import parser_connection
from health_assets.logs.span_kinds import OPEN, is_of_record


@contextmanager
def nodes_of(
    spans: pa.Table,
    hours: Collection[datetime],
    lookback_hours: int,
    services: Sequence[AgentService] = (),
    *,
    single_threaded: bool,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with `nodes`, the spans with a number each, and `links` to what is above them.

    Of a span that came twice there is one.

    Args:
        spans: rows of the table `spans`.
        hours: the hours that records are asked for.
        lookback_hours: how many hours apart spans of a trace may be and still see each other.
        services: services whose outermost spans may be executions, so that a long trace is looked at from them, too.
        single_threaded: as of `reader.parser_connection`.
    """
    with parser_connection(single_threaded=single_threaded) as connection:
        connection.register("spans", spans)
        connection.register("hours", pa.table({"hour": pa.array(list(hours), pa.timestamp("us", "UTC"))}))
        is_long = connection.execute(_LONG, {"lookback": lookback_hours}).fetchall()
        if is_long:
            connection.execute(_seen(is_of_services("service_name", services)), {"lookback": lookback_hours})
        else:
            connection.execute("CREATE TEMP VIEW seen AS SELECT *, NULL::TIMESTAMPTZ AS seen_from FROM spans")
        is_twice = connection.execute(
            "SELECT 1 FROM seen GROUP BY trace_id, seen_from, span_id HAVING count(*) > 1 LIMIT 1"
        ).fetchall()
        each_once = _ONCE if is_twice else "FROM seen"
        connection.execute(f"CREATE TEMP TABLE nodes AS SELECT row_number() OVER () AS id, * FROM ({each_once})")
        connection.execute(_LINKS)
        if connection.execute(_HAVE_SEVERAL_PARENTS).fetchall():
            connection.execute(_NEAREST_PARENT)
        yield connection


_LONG = "SELECT 1 FROM spans GROUP BY trace_id HAVING max(hour) - min(hour) > to_hours($lookback) LIMIT 1"


def _seen(may_start: str) -> str:
    """SQL for the spans of long traces from each hour in which something starts, by its kind or this condition."""
    return f"""
CREATE TEMP TABLE seen AS
WITH long AS (
    SELECT trace_id FROM spans GROUP BY trace_id HAVING max(hour) - min(hour) > to_hours($lookback)
), points_of_view AS (
    SELECT DISTINCT trace_id, hour FROM spans SEMI JOIN long USING (trace_id) SEMI JOIN hours USING (hour)
    WHERE {is_of_record("kind")} OR {may_start}
)
SELECT *, NULL::TIMESTAMPTZ AS seen_from FROM spans ANTI JOIN long USING (trace_id)
UNION ALL
SELECT spans.*, points_of_view.hour AS seen_from FROM spans JOIN points_of_view
    ON spans.trace_id = points_of_view.trace_id AND spans.hour <= points_of_view.hour + to_hours($lookback)
    AND spans.hour >= points_of_view.hour - to_hours($lookback)
"""


_WRITER = """
coalesce(
    min(service_name) OVER (PARTITION BY trace_id, seen_from, span_id, started_at),
    min(service_name) OVER (PARTITION BY trace_id, seen_from, span_id), ''
)
"""
"""Who wrote a span: its service. One that starts at the same microsecond, or names no service, is a copy of another."""

_ONCE = f"""
SELECT * EXCLUDE (writer) FROM (SELECT *, {_WRITER} AS writer FROM seen) QUALIFY row_number() OVER (
    PARTITION BY trace_id, seen_from, span_id, writer
    ORDER BY remark IS NOT DISTINCT FROM '{OPEN}', ended_at DESC, source_file DESC, line_number DESC, position DESC
) = 1
"""

_LINKS = f"""
CREATE OR REPLACE TEMP TABLE links AS
SELECT span.id, parent.id AS parent, span.kind IN ('agent', 'workflow') AS is_agent,
    CASE WHEN {is_of_record("parent.kind")} THEN parent.id END AS nearest,
    NULL::VARCHAR AS wrapper_session, NULL::VARCHAR AS wrapper_user, NULL::VARCHAR AS wrapper_version,
    NULL::BIGINT AS failed_wrapper
FROM nodes AS span LEFT JOIN nodes AS parent ON parent.trace_id = span.trace_id
    AND parent.seen_from IS NOT DISTINCT FROM span.seen_from AND parent.span_id = span.parent_span_id
"""
"""`parent` is the span right above. What a wrapper right above says is filled in once wrappers are known."""

_HAVE_SEVERAL_PARENTS = "SELECT 1 WHERE (SELECT count(*) FROM links) > (SELECT count(*) FROM nodes)"

_NEAREST_PARENT = """
CREATE OR REPLACE TEMP TABLE links AS
SELECT links.* FROM links JOIN nodes AS span ON span.id = links.id LEFT JOIN nodes AS parent ON parent.id = links.parent
QUALIFY row_number() OVER (
    PARTITION BY links.id
    ORDER BY parent.service_name IS NOT DISTINCT FROM span.service_name DESC, parent.started_at <= span.started_at DESC,
        parent.started_at DESC, parent.service_name
) = 1
"""
"""Of spans of several services with the id of a parent, that of the same service, else the last that had started."""

_FIRST_JUMP = """
CREATE OR REPLACE TEMP TABLE ancestors AS
SELECT id, parent AS reached, CASE WHEN is_agent THEN id END AS execution,
    nearest, wrapper_session, wrapper_user, wrapper_version, failed_wrapper
FROM links
"""
"""`execution` is the outermost agent span from the span itself to before the one that it has reached. `nearest`, an
agent, workflow, chat or tool span, and what wrappers say are those from above the span itself to the one that it has
reached."""

_JUMP = """
CREATE OR REPLACE TEMP TABLE ancestors AS
SELECT span.id, next.reached, coalesce(next.execution, span.execution) AS execution,
    coalesce(span.nearest, next.nearest) AS nearest,
    coalesce(span.wrapper_session, next.wrapper_session) AS wrapper_session,
    coalesce(span.wrapper_user, next.wrapper_user) AS wrapper_user,
    coalesce(span.wrapper_version, next.wrapper_version) AS wrapper_version,
    coalesce(span.failed_wrapper, next.failed_wrapper) AS failed_wrapper
FROM ancestors AS span LEFT JOIN ancestors AS next ON span.reached = next.id
"""


def resolve_ancestors(connection: duckdb.DuckDBPyConnection, services: Sequence[AgentService] = ()) -> None:
    """Make `ancestors`: for every span the execution that it is part of, or itself, and what else is said above it.

    `descendants` tells then which wrappers have an execution below them that failed by itself.

    Args:
        connection: a database of `nodes_of`.
        services: services whose outermost spans are executions in traces without an agent's or workflow's span.
    """
    if not _jump_to_the_roots(connection):
        _break_cycles(connection)
        _jump_to_the_roots(connection)
    if services:
        connection.execute(_outermost_of_services(is_of_services("span.service_name", services)))
        connection.execute(_HOLD_CALLS)
        _mark_descendants(connection)
        connection.execute(_SERVICES_AS_AGENTS)
        _jump_to_the_roots(connection)
    if connection.execute(_MAY_HAVE_WRAPPERS).fetchall():
        connection.execute(_AGENTS)
        _mark_descendants(connection)
        connection.execute(_WORKFLOWS_AROUND_AGENTS)
        connection.execute(_NAMED)
        _mark_descendants(connection)
        connection.execute(_UNNAMED_AROUND_NAMED)
        connection.execute(_PASS_THROUGH)
        _jump_to_the_roots(connection)
    connection.execute(_FAILED)
    _mark_descendants(connection)


def _jump_to_the_roots(connection: duckdb.DuckDBPyConnection) -> bool:
    """Make `ancestors` by jumping; gives whether all reached their root, which spans in a circle never do."""
    connection.execute(_FIRST_JUMP)
    [(count,)] = connection.execute("SELECT count(*) FROM nodes").fetchall()
    for _ in range(count.bit_length() + 2):
        if not connection.execute("SELECT 1 FROM ancestors WHERE reached IS NOT NULL LIMIT 1").fetchall():
            return True
        connection.execute(_JUMP)
    return False


def _break_cycles(connection: duckdb.DuckDBPyConnection) -> None:
    """Break cycles: the span that started first has no parent from now on."""
    rows = connection.execute(
        """
        SELECT links.id, links.parent, nodes.started_at, nodes.span_id
        FROM links JOIN nodes ON nodes.id = links.id JOIN ancestors ON ancestors.id = links.id
        WHERE ancestors.reached IS NOT NULL
        """
    ).fetchall()
    parent_of = {number: parent for number, parent, *_ in rows}
    order = {number: start for number, _, *start in rows}
    firsts = [min(circle, key=lambda number: order[number]) for circle in circles(parent_of)]
    connection.execute("UPDATE links SET parent = NULL, nearest = NULL WHERE id IN (SELECT unnest(?))", [firsts])


def _outermost_of_services(is_of_services: str) -> str:
    """SQL for `entries`: ended spans of these services with nothing above them, or a span of another service.

    A span whose parent no log has is none of them, since the parent may come.
    """
    return f"""
    CREATE TEMP TABLE entries AS
    SELECT span.id, span.trace_id FROM nodes AS span JOIN links ON links.id = span.id
    LEFT JOIN nodes AS parent ON parent.id = links.parent
    WHERE {is_of_services} AND (span.parent_span_id IS NULL OR parent.service_name <> span.service_name)
        AND span.remark IS DISTINCT FROM '{OPEN}' AND NOT EXISTS (
            SELECT 1 FROM nodes AS agent WHERE agent.trace_id = span.trace_id
                AND agent.seen_from IS NOT DISTINCT FROM span.seen_from AND agent.kind IN ('agent', 'workflow')
        )
    """


_HOLD_CALLS = """
CREATE OR REPLACE TEMP TABLE descendants AS
SELECT links.id, links.parent AS reached, nodes.kind IN ('chat', 'tool') AS matches
FROM links JOIN nodes ON nodes.id = links.id WHERE nodes.trace_id IN (SELECT trace_id FROM entries)
"""
"""To tell which spans are calls or have any below them."""

_SERVICES_AS_AGENTS = """
DELETE FROM entries WHERE id NOT IN (SELECT id FROM descendants WHERE matches);
UPDATE links SET is_agent = true WHERE id IN (SELECT id FROM entries);
UPDATE nodes SET agent_id = service_name WHERE id IN (SELECT id FROM entries)
"""

_TRACES_WITH_WRAPPERS = """
SELECT trace_id FROM nodes WHERE kind IN ('agent', 'workflow') GROUP BY trace_id
HAVING count(agent_id) BETWEEN 1 AND count(*) - 1 OR bool_or(kind = 'agent') AND bool_or(kind = 'workflow')
"""

_MAY_HAVE_WRAPPERS = f"{_TRACES_WITH_WRAPPERS} LIMIT 1"

_AGENTS = f"""
CREATE OR REPLACE TEMP TABLE descendants AS
SELECT links.id, links.parent AS reached, nodes.kind = 'agent' AS matches
FROM links JOIN nodes ON nodes.id = links.id WHERE nodes.trace_id IN ({_TRACES_WITH_WRAPPERS})
"""
"""To tell which spans have an agent span below them."""

_WORKFLOWS_AROUND_AGENTS = """
CREATE TEMP TABLE wrappers AS
SELECT nodes.* FROM nodes JOIN descendants ON descendants.id = nodes.id
WHERE nodes.kind = 'workflow' AND descendants.matches
"""
"""A workflow runs agents, whatever names it has: it is an execution only where no agent span is below it."""

_NAMED = f"""
CREATE OR REPLACE TEMP TABLE descendants AS
SELECT links.id, links.parent AS reached,
    links.is_agent AND nodes.agent_id IS NOT NULL AND links.id NOT IN (SELECT id FROM wrappers) AS matches
FROM links JOIN nodes ON nodes.id = links.id WHERE nodes.trace_id IN ({_TRACES_WITH_WRAPPERS})
"""
"""To tell which spans have a named agent span below them."""

_UNNAMED_AROUND_NAMED = """
INSERT INTO wrappers
SELECT nodes.* FROM nodes JOIN descendants ON descendants.id = nodes.id JOIN links ON links.id = nodes.id
WHERE links.is_agent AND nodes.agent_id IS NULL AND descendants.matches AND nodes.id NOT IN (SELECT id FROM wrappers)
"""

_PASS_THROUGH = """
UPDATE links SET is_agent = false WHERE id IN (SELECT id FROM wrappers);
UPDATE links SET wrapper_session = wrappers.session_id, wrapper_user = wrappers.user_id,
    wrapper_version = wrappers.agent_version,
    failed_wrapper = CASE WHEN wrappers.failed THEN wrappers.id END
FROM wrappers WHERE wrappers.id = links.parent
"""

_FAILED = """
CREATE OR REPLACE TEMP TABLE descendants AS
SELECT links.id, links.parent AS reached, coalesce(nodes.failed AND ancestors.execution = nodes.id, false) AS matches
FROM links JOIN nodes ON nodes.id = links.id JOIN ancestors ON ancestors.id = links.id
WHERE nodes.trace_id IN (
    SELECT trace_id FROM nodes JOIN ancestors ON ancestors.id = nodes.id WHERE ancestors.failed_wrapper IS NOT NULL
)
"""
"""To tell which wrappers have an execution below them that failed by itself."""


def _mark_descendants(connection: duckdb.DuckDBPyConnection) -> None:
    """Let `descendants.matches` of every span tell whether it is true of the span itself or of any below it.

    In every round a span asks those that have reached it, which know of as many spans below them as they have jumped
    over; so this, too, takes log n rounds.
    """
    while connection.execute("SELECT 1 FROM descendants WHERE reached IS NOT NULL LIMIT 1").fetchall():
        connection.execute(_LOOK_FARTHER)


_LOOK_FARTHER = """
CREATE OR REPLACE TEMP TABLE descendants AS
WITH reached_by AS (
    SELECT reached AS id, bool_or(matches) AS matches FROM descendants WHERE reached IS NOT NULL GROUP BY reached
)
SELECT span.id, next.reached, span.matches OR coalesce(reached_by.matches, false) AS matches
FROM descendants AS span LEFT JOIN descendants AS next ON next.id = span.reached
LEFT JOIN reached_by ON reached_by.id = span.id
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
