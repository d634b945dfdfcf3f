"""Trace reading: what the spans of some hours became, and why others became nothing, as counts by reason.

What belongs here: counting, for a run's report and the page of the asset `spans`. What does not: how spans become
records (`logs.traces`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from health_assets.core.hours import HourRange
from health_assets.core.wording import counted
from health_assets.logs.traces import UNKNOWN_MODEL
from health_assets.warehouse.session import Session

DOCS = "docs/opentelemetry.md"

_NOT_USED = {
    ("agent", True): "agent span without a name, around named ones or inside another agent's run",
    ("agent", False): "agent span inside another agent's run",
    ("chat", None): "chat span around another one, which is the call",
    ("tool", None): "tool span around another one of the same tool, which is the call",
}
"""Why a span of a kind, and of agents one that states no name, is no record of its own."""


@dataclass(frozen=True)
class TraceReading:
    """The counts of what the spans of some hours became.

    Args:
        spans: all of them.
        executions: those that became executions.
        model_calls: those that became model calls.
        tool_calls: those that became tool calls.
        unused: how many of the others there are, by reason, most first.
        warnings: what a person should look at, a sentence each.
    """

    spans: int
    executions: int
    model_calls: int
    tool_calls: int
    unused: dict[str, int]
    warnings: list[str]

    def __str__(self) -> str:
        calls = f"{counted(self.model_calls, 'model call')} and {counted(self.tool_calls, 'tool call')}"
        return f"{counted(self.spans, 'span')} became {counted(self.executions, 'execution')}, {calls}"


def read_traces(session: Session, hours: HourRange) -> TraceReading | None:
    """Count what became of the spans of some hours; None where there are none."""
    spans = session.count_hours("spans", hours)
    if not spans:
        return None
    counting = _Counting(session, hours)
    made = {table: counting.rows_from_spans(table) for table in ("executions", "model_calls", "tool_calls")}
    unused = {reason: count for reason, count in counting.unused() if count}
    most_first = dict(sorted(unused.items(), key=lambda item: (-item[1], item[0])))
    return TraceReading(spans, **made, unused=most_first, warnings=list(counting.warnings(made["executions"])))


def without_agents(session: Session, hours: HourRange) -> str | None:
    """A sentence where these hours hold model calls of spans and no agent's run, with the place to read on."""
    counting = _Counting(session, hours)
    calls = counting.rows_from_spans("model_calls")
    return _no_agent(calls) if calls and not counting.rows_from_spans("executions") else None


def _no_agent(calls: int) -> str:
    return f"{counted(calls, 'chat span')} and no agent span: see {DOCS}#spans-of-model-calls-only"


class _Counting:
    def __init__(self, session: Session, hours: HourRange) -> None:
        self._session = session
        self._span = {"start": hours.start, "end": hours.end}

    def _rows(self, sql: str) -> list[tuple]:
        return self._session.query(sql.replace("INSIDE", "hour >= $start AND hour < $end"), self._span)

    def rows_from_spans(self, table: str) -> int:
        return self._rows(f"SELECT count(span_id) FROM {table} WHERE INSIDE")[0][0]

    def unused(self) -> Iterator[tuple[str, int]]:
        left = self._rows(
            """
            WITH own AS (
                SELECT DISTINCT kind, trace_id || ':' || span_id AS id,
                    CASE WHEN kind = 'agent' THEN agent_id IS NULL END AS is_unnamed
                FROM spans WHERE kind <> 'other' AND INSIDE
            ), used AS (
                SELECT 'agent' AS kind, execution_id AS id FROM executions WHERE span_id IS NOT NULL AND INSIDE
                UNION ALL SELECT 'chat', call_id FROM model_calls WHERE span_id IS NOT NULL AND INSIDE
                UNION ALL SELECT 'tool', call_id FROM tool_calls WHERE span_id IS NOT NULL AND INSIDE
            )
            SELECT own.kind, is_unnamed, count(*) FROM own LEFT JOIN used ON used.kind = own.kind AND used.id = own.id
            WHERE used.id IS NULL GROUP BY 1, 2
            """
        )
        for kind, is_unnamed, count in left:
            yield _NOT_USED[kind, is_unnamed], count
        others = self._rows(
            "SELECT operation, count(DISTINCT trace_id || span_id) FROM spans "
            "WHERE kind = 'other' AND INSIDE GROUP BY 1"
        )
        for operation, count in others:
            told = f"of the kind {operation}" if operation else "that states no kind"
            yield f"span {told}, which is no agent, model call or tool", count
        [(copies,)] = self._rows("SELECT count(*) - count(DISTINCT trace_id || span_id) FROM spans WHERE INSIDE")
        yield "span that came more than once", copies

    def warnings(self, executions: int) -> Iterator[str]:
        [(calls, unknown, outside, failed)] = self._rows(
            f"""
            SELECT count(*), count(CASE WHEN model = '{UNKNOWN_MODEL}' THEN 1 END),
                count(CASE WHEN execution_id IS NULL THEN 1 END),
                count(CASE WHEN execution_id IS NULL AND status = 'failure' THEN 1 END)
            FROM model_calls WHERE span_id IS NOT NULL AND INSIDE
            """
        )
        if calls and not executions:
            yield _no_agent(calls)
        elif outside:
            with_failures = f", {failed:,} of them failed" if failed else ""
            yield f"{counted(outside, 'model call')} outside any agent's run{with_failures}"
        if unknown:
            yield f"{counted(unknown, 'model call')} of the model {UNKNOWN_MODEL}, since no attribute names it"
