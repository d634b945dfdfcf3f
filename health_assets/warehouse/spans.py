"""Spans: what became of those of some hours, as counts.

What belongs here: comparing `spans` with the records that were put together from them. What does not: how spans become
records (`logs.traces`), and what is said of the counts (`pipeline.span_summary`).
"""

from dataclasses import dataclass

from health_assets.core.hours import HourRange
from health_assets.logs.conventions import UNKNOWN_MODEL
from health_assets.logs.span_kinds import BOOKKEEPING, OPEN, is_of_record
from health_assets.warehouse.session import Session


@dataclass(frozen=True)
class UnusedSpans:
    """The number of spans of a kind that are no record of their own.

    Args:
        kind: agent, workflow, chat or tool.
        is_unnamed: whether they state no agent's name; None of another kind than agent.
        count: how many.
    """

    kind: str
    is_unnamed: bool | None
    count: int


@dataclass(frozen=True, kw_only=True)
class CallsOfSpans:
    """The number of model calls that were made of spans.

    Args:
        calls: all.
        of_unknown_models: calls whose model no attribute names.
        outside: calls outside any agent's run.
        failed_outside: failed calls among these.
    """

    calls: int
    of_unknown_models: int
    outside: int
    failed_outside: int


@dataclass(frozen=True, kw_only=True)
class RepeatedSpans:
    """The number of spans whose trace and id another one has.

    Args:
        copies: spans that do not count since another one of the same service does.
        of_other_starts: spans among these that are no copy, since they started at another time.
        shared_ids: ids of which the spans of several services count.
    """

    copies: int
    of_other_starts: int
    shared_ids: int


class Spans:
    """The spans of some hours, and what was made of them.

    Args:
        session: a session.
        hours: the hours.
    """

    def __init__(self, session: Session, hours: HourRange) -> None:
        self._session = session
        self._hours = {"start": hours.start, "end": hours.end}

    def _rows(self, sql: str) -> list[tuple]:
        return self._session.query(sql.replace("INSIDE", "hour >= $start AND hour < $end"), self._hours)

    def records(self, table: str) -> int:
        """The number of rows of a record table that were put together from spans."""
        [(count,)] = self._rows(f"SELECT count(span_id) FROM {table} WHERE INSIDE")
        return count

    def unused(self) -> list[UnusedSpans]:
        """Agent, workflow, chat and tool spans that are no record, each span once."""
        rows = self._rows(
            f"""
            WITH own AS (
                SELECT DISTINCT kind, trace_id || ':' || span_id AS id,
                    CASE WHEN kind = 'agent' THEN agent_id IS NULL END AS is_unnamed,
                    CASE WHEN kind = 'workflow' THEN 'agent' ELSE kind END AS used_as
                FROM spans WHERE {is_of_record("kind")} AND INSIDE
            ), used AS (
                SELECT 'agent' AS kind, execution_id AS id FROM executions WHERE span_id IS NOT NULL AND INSIDE
                UNION ALL SELECT 'chat', call_id FROM model_calls WHERE span_id IS NOT NULL AND INSIDE
                UNION ALL SELECT 'tool', call_id FROM tool_calls WHERE span_id IS NOT NULL AND INSIDE
            )
            SELECT own.kind, is_unnamed, count(*)
            FROM own LEFT JOIN used ON used.kind = own.used_as AND used.id = own.id
            WHERE used.id IS NULL GROUP BY 1, 2
            """
        )
        return [UnusedSpans(*row) for row in rows]

    def of_other_kinds(self) -> dict[str | None, int]:
        """By the operation that they state, spans that are no agent's, model's or tool's, each span once."""
        return dict(
            self._rows(
                "SELECT operation, count(DISTINCT trace_id || span_id) FROM spans "
                f"WHERE NOT {is_of_record('kind')} AND coalesce(remark, '') NOT IN ('{BOOKKEEPING}', '{OPEN}') "
                "AND INSIDE AND trace_id || ':' || span_id NOT IN "
                "(SELECT execution_id FROM executions WHERE span_id IS NOT NULL AND INSIDE) "
                "GROUP BY 1"
            )
        )

    def remarks(self) -> dict[str, int]:
        """By remark, the spans whose attributes do not agree, each span once."""
        return dict(
            self._rows(
                "SELECT remark, count(DISTINCT trace_id || span_id) FROM spans WHERE remark IS NOT NULL AND INSIDE "
                "GROUP BY 1 ORDER BY 2 DESC, 1"
            )
        )

    def open(self) -> int:
        """The number of spans that have no end in these hours."""
        [(count,)] = self._rows(
            f"""
            SELECT count(*) FROM (
                SELECT trace_id, span_id FROM spans WHERE remark = '{OPEN}' AND INSIDE
                EXCEPT SELECT trace_id, span_id FROM spans WHERE coalesce(remark, '') <> '{OPEN}' AND INSIDE
            ) AS found
            """
        )
        return count

    def repeats(self) -> RepeatedSpans:
        """The number of spans whose id another one has, by what became of them."""
        [row] = self._rows(
            """
            WITH repeated AS (
                SELECT trace_id, span_id FROM spans WHERE INSIDE GROUP BY trace_id, span_id HAVING count(*) > 1
            ), written AS (
                SELECT spans.trace_id, spans.span_id, service_name, started_at, coalesce(
                        min(service_name) OVER (PARTITION BY spans.trace_id, spans.span_id, started_at),
                        min(service_name) OVER (PARTITION BY spans.trace_id, spans.span_id), ''
                    ) AS writer
                FROM spans JOIN repeated ON repeated.trace_id = spans.trace_id AND repeated.span_id = spans.span_id
                WHERE INSIDE
            ), found AS (
                SELECT trace_id, span_id, writer, count(*) AS spans,
                    count(DISTINCT CASE WHEN service_name IS NOT NULL OR writer = '' THEN started_at END) AS starts
                FROM written GROUP BY trace_id, span_id, writer
            ), ids AS (
                SELECT sum(spans) - count(*) AS copies, sum(starts) - count(*) AS of_other_starts,
                    count(*) AS writers
                FROM found GROUP BY trace_id, span_id
            )
            SELECT coalesce(sum(copies), 0), coalesce(sum(of_other_starts), 0),
                count(CASE WHEN writers > 1 THEN 1 END)
            FROM ids
            """
        )
        copies, of_other_starts, shared_ids = map(int, row)
        return RepeatedSpans(copies=copies, of_other_starts=of_other_starts, shared_ids=shared_ids)

    def model_calls(self) -> CallsOfSpans:
        """The model calls that were made of spans."""
        [row] = self._rows(
            f"""
            SELECT count(*), count(CASE WHEN model = '{UNKNOWN_MODEL}' THEN 1 END),
                count(CASE WHEN execution_id IS NULL THEN 1 END),
                count(CASE WHEN execution_id IS NULL AND status = 'failure' THEN 1 END)
            FROM model_calls WHERE span_id IS NOT NULL AND INSIDE
            """
        )
        calls, of_unknown_models, outside, failed_outside = row
        return CallsOfSpans(
            calls=calls, of_unknown_models=of_unknown_models, outside=outside, failed_outside=failed_outside
        )
