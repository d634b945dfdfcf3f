"""Superseded executions: what lines that lost against a later one of the same agent and id still say.

What belongs here: their failures and violations. What does not: which line wins (`pipeline.superseding`).
"""

from datetime import datetime
from typing import NamedTuple

import pyarrow as pa

from health_assets.core.hours import HourRange
from health_assets.schema.catalog import SUPERSEDED
from health_assets.schema.records import AGENT_AS_REPORTED
from health_assets.warehouse.session import HOUR_TYPE, Session

NOT_JUDGED = "null"
"""JSON that stands in `violations_reported` where the line states no violations and superseded ones do."""
_TABLE = SUPERSEDED["executions"]
_STATED = "CAST(coalesce(violations_reported, violations) AS VARCHAR)"
"""SQL for the violations that the line of an execution states itself, or `NOT_JUDGED`."""


class Run(NamedTuple):
    """An execution of an hour, under the agent that its lines name."""

    hour: datetime
    agent_id: str
    execution_id: str


class SupersededExecutions:
    """The superseded executions of a warehouse, within a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def violations(self, hours: HourRange) -> dict[Run, set[str]]:
        """By execution, the violations that superseded lines of these hours state, as JSON."""
        rows = self._session.query(
            f"SELECT DISTINCT hour, {AGENT_AS_REPORTED}, execution_id, {_STATED} FROM {_TABLE} "
            "WHERE violations IS NOT NULL AND hour >= ? AND hour < ?",
            [hours.start, hours.end],
        )
        found: dict[Run, set[str]] = {}
        for *run, violations in rows:
            if violations != NOT_JUDGED:
                found.setdefault(Run(*run), set()).add(violations)
        return found

    def has_added_violations(self, hours: HourRange) -> bool:
        """Whether an execution of these hours has other violations than its own line states."""
        sql = "SELECT 1 FROM executions WHERE violations_reported IS NOT NULL AND hour >= ? AND hour < ? LIMIT 1"
        return bool(self._session.query(sql, [hours.start, hours.end]))

    def failures_by_hour(self, hours: HourRange) -> dict[datetime, int]:
        """By hour, how many failed lines a later line of the same agent and id replaced by another outcome."""
        rows = self._session.query(
            f"""
            WITH lost AS (
                SELECT hour, {AGENT_AS_REPORTED} AS agent, execution_id FROM {_TABLE}
                WHERE status = 'failure' AND hour >= $start AND hour < $end
            ), kept AS (
                SELECT hour, {AGENT_AS_REPORTED} AS agent, execution_id FROM executions
                WHERE status = 'failure' AND hour >= $start AND hour < $end
            )
            SELECT hour, count(*) FROM lost LEFT JOIN kept USING (hour, agent, execution_id)
            WHERE kept.agent IS NULL GROUP BY hour
            """,
            {"start": hours.start, "end": hours.end},
        )
        return dict(rows)

    def failures(self, hours: HourRange) -> pa.Table:
        """`hour`, `agent_id` as the line names it, `execution_id` and the number of `lines` that say that it failed."""
        rows = self._session.query(
            f"SELECT hour, {AGENT_AS_REPORTED}, execution_id, count(*) FROM {_TABLE} "
            "WHERE status = 'failure' AND hour >= ? AND hour < ? GROUP BY 1, 2, 3",
            [hours.start, hours.end],
        )
        return pa.Table.from_pylist([dict(zip(_FAILURES.names, row, strict=True)) for row in rows], _FAILURES)


_FAILURES = pa.schema(
    {"hour": HOUR_TYPE, "agent_id": pa.string(), "execution_id": pa.string(), "lines": pa.int64()}.items()
)
