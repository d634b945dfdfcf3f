"""Superseded executions: what lines that lost against a later one of the same agent and id still say.

What belongs here: keeping their failures and violations in step with the parts of the ledger. What does not: which line
wins (`pipeline.superseding`).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa

from health_assets.core.hours import HourRange
from health_assets.schema.records import AGENT_AS_REPORTED
from health_assets.warehouse.ledger_parts import Part, part_source
from health_assets.warehouse.session import HOUR_TYPE, Session

TABLE = "superseded_executions"


NOT_JUDGED = "null"
"""JSON that stands in `violations_reported` where the line states no violations and superseded ones do."""
STATED_VIOLATIONS = "coalesce(violations_reported, violations)"
"""SQL for the violations that the line of an execution states itself, or `NOT_JUDGED`."""


class Run(NamedTuple):
    """An execution of an hour, under the agent that its lines name."""

    hour: datetime
    agent_id: str
    execution_id: str


class Superseded(NamedTuple):
    """Content of a superseded line; the violations are JSON, None where it was not judged."""

    hour: datetime
    source_file: str
    execution_id: str
    agent_id: str
    status: str
    violations: str | None

    @property
    def part(self) -> Part:
        """The part of the ledger that the line belongs to."""
        return Part(self.source_file, "execution", self.hour)

    @property
    def says_anything(self) -> bool:
        """Whether it says more than that it was replaced."""
        return self.status == "failure" or self.violations is not None


class SupersededExecutions:
    """The superseded executions of a warehouse, within a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @staticmethod
    def columns() -> Sequence[str]:
        """SQL of the fields of `Superseded` for a row of `executions`."""
        source = part_source("executions")
        return ["hour", source, "execution_id", AGENT_AS_REPORTED, "status", STATED_VIOLATIONS]

    def add(self, lines: Mapping[Superseded, int]) -> None:
        """Add lines, with how many of each."""
        stated = (
            (line._replace(violations=None) if line.violations == NOT_JUDGED else line, lines[line]) for line in lines
        )
        told = [(*line, count) for line, count in stated if line.says_anything]
        if not told:
            return
        names = (*Superseded._fields, "lines")
        columns = dict(zip(names, map(list, zip(*told, strict=True)), strict=True))
        columns["hour"] = pa.array(columns["hour"], HOUR_TYPE)
        columns["violations"] = pa.array(columns["violations"], pa.string())
        self._session.insert_arrow(TABLE, pa.table(columns))

    def delete(self, parts: Iterable[Part]) -> None:
        """Delete the lines of these parts."""
        own = [part for part in parts if part.record_type == "execution"]
        if own:
            self._session.query(
                f"DELETE FROM {TABLE} USING (SELECT unnest($files) AS source_file, unnest($hours) AS hour) AS parts "
                f"WHERE {TABLE}.source_file = parts.source_file AND {TABLE}.hour = parts.hour",
                {"files": [part.source_file for part in own], "hours": [part.hour for part in own]},
            )

    def violations(self, hours: HourRange) -> dict[Run, set[str]]:
        """By execution, the violations that superseded lines of these hours state."""
        rows = self._session.query(
            f"SELECT DISTINCT hour, agent_id, execution_id, violations FROM {TABLE} "
            "WHERE violations IS NOT NULL AND hour >= ? AND hour < ?",
            [hours.start, hours.end],
        )
        found: dict[Run, set[str]] = {}
        for *run, violations in rows:
            found.setdefault(Run(*run), set()).add(violations)
        return found

    def has_added_violations(self, hours: HourRange) -> bool:
        """Whether an execution of these hours has other violations than its own line states."""
        sql = "SELECT 1 FROM executions WHERE violations_reported IS NOT NULL AND hour >= ? AND hour < ? LIMIT 1"
        return bool(self._session.query(sql, [hours.start, hours.end]))

    def failures_by_hour(self, hours: HourRange) -> dict[datetime, int]:
        """By hour, how many superseded lines of these hours say that an execution failed."""
        return dict(
            self._session.query(
                f"SELECT hour, CAST(sum(lines) AS BIGINT) FROM {TABLE} "
                "WHERE status = 'failure' AND hour >= ? AND hour < ? GROUP BY 1",
                [hours.start, hours.end],
            )
        )

    def failures(self, hours: HourRange) -> pa.Table:
        """`hour`, `agent_id` as the line names it, `execution_id` and the number of `lines` that say that it failed."""
        rows = self._session.query(
            f"SELECT hour, agent_id, execution_id, CAST(sum(lines) AS BIGINT) FROM {TABLE} "
            "WHERE status = 'failure' AND hour >= ? AND hour < ? GROUP BY 1, 2, 3",
            [hours.start, hours.end],
        )
        return pa.Table.from_pylist([dict(zip(_FAILURES.names, row, strict=True)) for row in rows], _FAILURES)


_FAILURES = pa.schema(
    {"hour": HOUR_TYPE, "agent_id": pa.string(), "execution_id": pa.string(), "lines": pa.int64()}.items()
)
