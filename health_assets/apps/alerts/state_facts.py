"""The facts of an hour about verdicts on the last hours, and about statuses of health documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from health_assets.apps.alerts.facts import AgentRowFact, Fact
from health_assets.core.hours import HOUR

NOW_COLUMNS = (
    "verdict", "executions_1h", "failures_1h", "executions_6h", "failures_6h", "failed_in_a_row", "p_chance",
    "expected_success_rate",
)  # fmt: skip
"""Columns of `agent_now` that are kept with an incident."""
STATUS_COLUMNS = (
    "status", "response_ratio", "sample_count", "latency_p99_ms", "baseline_latency_ms", "calibration_trend",
)  # fmt: skip
"""Columns of `agent_health_state` that are kept with an incident."""


@dataclass(frozen=True, kw_only=True)
class NowFact(AgentRowFact):
    """An agent's row of `agent_now`.

    Args:
        history: its rows of the day before and of this hour, the earliest first; needed to end an incident only.
    """

    history: Sequence[Mapping[str, Any]] = ()

    kind: ClassVar[str] = "now"

    @property
    def verdict(self) -> str:
        """Verdict of the hour."""
        return self.row["verdict"]

    def last_bad_end(self, bad: Sequence[str]) -> datetime:
        """End of the last hour with one of these verdicts; where none is in the history, its start."""
        ends = [row["hour"] + HOUR for row in self.history if row["verdict"] in bad]
        return max(ends, default=self.history[0]["hour"] if self.history else self.hour)

    def since(self, moment: datetime) -> tuple[int, int, int]:
        """Executions and failures since a moment of the history, and how many hours that is."""
        rows = [row for row in self.history if row["hour"] >= moment]
        ran = sum(row["executions_1h"] for row in rows)
        return ran, sum(row["failures_1h"] for row in rows), int((self.hour + HOUR - moment) / HOUR)

    @property
    def evidence(self) -> dict[str, Any]:
        """The counts, since when, and what failed."""
        kept = {name: self.row[name] for name in NOW_COLUMNS}
        return {"hour": self.hour.isoformat(), **kept, "since": self.row["since"].isoformat(), **self.failures}


@dataclass(frozen=True, kw_only=True)
class DocumentFact(Fact):
    """The status of a health document.

    Args:
        row: the columns that it follows from.
        status: the status; None where no document says one.
        best_status_before: the best that was known in the day before; None where none was.
        last_known_in: the last hour of the day before that has a status; None where none has.
        is_personal: whether the targets call the agent personal.
        failures: errors of the last hours and lines of logs that tell of them, as evidence keeps them.
    """

    row: Mapping[str, Any] = field(default_factory=dict)
    status: str | None = None
    best_status_before: str | None = None
    last_known_in: datetime | None = None
    is_personal: bool = False  # type: ignore[misc]
    failures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The agent, as a sentence calls it."""
        return self.subject_id


@dataclass(frozen=True, kw_only=True)
class StatusFact(DocumentFact):
    """The status of an agent's own health document: its row of `agent_health_state`."""

    kind: ClassVar[str] = "status"

    @property
    def title(self) -> str:
        """The agent's document."""
        return f"the health document of {self.subject_id}"

    @property
    def evidence(self) -> dict[str, Any]:
        """The columns that the status follows from."""
        kept = {name: self.row[name] for name in STATUS_COLUMNS}
        before = self.best_status_before
        return {"hour": self.hour.isoformat(), **kept, "best_status_before": before, **self.failures}


@dataclass(frozen=True, kw_only=True)
class ProbeFact(DocumentFact):
    """The status that a surveyed agent's document says; the subject is its address."""

    kind: ClassVar[str] = "probe"

    @property
    def title(self) -> str:
        """The agent by its name in the registry, with its address."""
        name = self.row.get("name")
        return f"{name} ({self.subject_id})" if name else self.subject_id

    @property
    def evidence(self) -> dict[str, Any]:
        """The status, and what it was."""
        return {
            "hour": self.hour.isoformat(), "status": self.status, "best_status_before": self.best_status_before,
            "name": self.row.get("name"),
        }  # fmt: skip
