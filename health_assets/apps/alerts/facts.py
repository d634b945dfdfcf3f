"""The facts of an hour, by kind of subject. Rules look at nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar

from health_assets.scoring.explanation import Loss, costliest, explain
from health_assets.scoring.verdict import reservation, stake_reservation


@dataclass(frozen=True, kw_only=True)
class MinimumSample:
    """The least that a score must rest on to be judged by.

    Args:
        executions: executions in its window.
        points_at_stake: points that could be lost.
    """

    executions: int = 1
    points_at_stake: float = 0.0


@dataclass(frozen=True)
class Fact:
    """Something seen of a subject.

    Args:
        hour: the hour.
        subject_id: the agent, model or expectation.
    """

    hour: datetime
    subject_id: str

    kind: ClassVar[str]
    is_personal: ClassVar[bool] = False

    @property
    def evidence(self) -> dict[str, Any]:
        """The facts that an incident keeps when it opens."""
        return {}


@dataclass(frozen=True, kw_only=True)
class AgentRowFact(Fact):
    """An agent's row of a table.

    Args:
        row: its row of the table.
        is_covered: whether all hours of the window are there.
        is_personal: whether the targets call it personal.
        event_ids: ids of the events that weigh most, by kind.
        failures: errors of the last hours and lines of logs that tell of them, as evidence keeps them.
    """

    row: Mapping[str, Any] = field(default_factory=dict)
    is_covered: bool = True
    is_personal: bool = field(default=False, kw_only=True)  # type: ignore[misc]
    event_ids: Mapping[str, Sequence[str]] = field(default_factory=dict, kw_only=True)
    failures: Mapping[str, Any] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True, kw_only=True)
class AgentFact(AgentRowFact):
    """An agent's score: its row of `agent_health`.

    Args:
        best_state_before: its best state in the day before, of hours that rest on enough; None where there is none.
        peak_before: its highest score in the hours that `drop` compares with, likewise.
        was_active_before: whether it had executions in a window of the day before.
    """

    best_state_before: str | None = None
    peak_before: float | None = None
    was_active_before: bool = False

    kind: ClassVar[str] = "agent"

    @property
    def state(self) -> str:
        """State of the hour."""
        return self.row["state"]

    @property
    def score(self) -> float | None:
        """Health score; None when inactive."""
        return self.row["health_score"]

    def is_enough(self, least: MinimumSample) -> bool:
        """Whether the score rests on a whole window, and on enough to be judged by."""
        if not self.is_covered or self.score is None:
            return False
        return self.row["n"] >= least.executions and self.row["points_at_stake"] >= least.points_at_stake

    @cached_property
    def losses(self) -> list[Loss]:
        """The losses of points, as `scoring.explanation` finds them."""
        return [] if self.score is None else explain(self.row, self.event_ids)

    @property
    def cause(self) -> str:
        """Say what cost most, as the end of a sentence; its events are those of the first loss of the evidence."""
        loss = costliest(self.losses)
        return f": {loss.sentence}" if loss else ""

    @property
    def doubt(self) -> str:
        """Say how little a score rests on, behind it; nothing behind any other."""
        return f" {self.bracketed()}" if self._doubts else ""

    def bracketed(self, *texts: str) -> str:
        """Texts in brackets, together with that doubt."""
        return f"({'; '.join([*texts, *self._doubts])})"

    @property
    def _doubts(self) -> list[str]:
        return [doubt for doubt in (reservation(self.row), stake_reservation(self.row)) if doubt]

    @property
    def evidence(self) -> dict[str, Any]:
        """The score and its explanation."""
        return {
            "hour": self.hour.isoformat(),
            "state": self.state,
            "health_score": self.score,
            "points_at_stake": self.row["points_at_stake"],
            "best_state_before": self.best_state_before,
            "peak_before": self.peak_before,
            "executions": self.row["n"],
            "n_full": self.row["n_full"],
            "is_provisional": bool(self.row["is_provisional"]),
            "explanation": [loss.as_dict() for loss in self.losses],
            **self.failures,
        }


@dataclass(frozen=True, kw_only=True)
class BudgetFact(AgentRowFact):
    """An agent's row of `error_budget`: how fast it spends its budget."""

    kind: ClassVar[str] = "budget"

    @property
    def evidence(self) -> dict[str, Any]:
        """The rates, what they rest on, and the latest failures."""
        kept = {name: self.row[name] for name in BUDGET_COLUMNS}
        latest = list(self.event_ids.get("failure", ()))
        return {"hour": self.hour.isoformat(), **kept, "latest_failures": latest, **self.failures}


BUDGET_COLUMNS = (
    "burn_rate_5m", "n_5m", "failures_5m", "burn_rate_30m", "n_30m", "failures_30m",
    "burn_rate_1h", "n_1h", "failures_1h", "burn_rate_6h", "n_6h", "failures_6h", "budget_spent", "n", "failures",
    "allowed_failures", "expected_success_rate",
)  # fmt: skip
"""Columns of `error_budget` that are kept with an incident."""


@dataclass(frozen=True, kw_only=True)
class ModelFact(Fact):
    """A model's rolling health.

    Args:
        score: share of its last calls that succeeded.
        is_degraded: whether that is below the threshold.
        threshold: the threshold.
        calls: calls in the rolling window.
        was_called: whether the hour holds a call; without one the score tells nothing new.
        idle_hours: hours since the last call.
    """

    score: float = 1.0
    is_degraded: bool = False
    threshold: float = 0.7
    calls: int = 0
    was_called: bool = True
    idle_hours: float = 0.0

    kind: ClassVar[str] = "model"

    @property
    def evidence(self) -> dict[str, Any]:
        """The score and what it rests on."""
        return {
            "hour": self.hour.isoformat(),
            "health_score": self.score,
            "degraded_threshold": self.threshold,
            "calls": self.calls,
        }


@dataclass(frozen=True, kw_only=True)
class ExpectationFact(Fact):
    """Result of a data-quality check; the subject is `asset.expectation`.

    Args:
        success: whether the hour meets it.
        element_count: rows looked at.
        unexpected_count: rows that break it.
        severity: `error` or `warn`.
    """

    success: bool = True
    element_count: int = 0
    unexpected_count: int = 0
    severity: str = "error"

    kind: ClassVar[str] = "expectation"

    @property
    def evidence(self) -> dict[str, Any]:
        """The hour, its rows, and how many of them break the check."""
        return {
            "hour": self.hour.isoformat(),
            "element_count": self.element_count,
            "unexpected_count": self.unexpected_count,
            "severity": self.severity,
        }


@dataclass(frozen=True)
class HourFact(Fact):
    """Whether an hour was materialized at all, now that a later one was.

    Args:
        is_there: whether it was.
    """

    is_there: bool = True

    kind: ClassVar[str] = "hour"

    @property
    def evidence(self) -> dict[str, Any]:
        """The hour."""
        return {"hour": self.hour.isoformat()}


@dataclass(frozen=True, kw_only=True)
class DueFact(HourFact):
    """Whether the newest hour that should be there by now is.

    Args:
        newest: the newest hour that is.
        is_catching_up: whether a run is making hours up to it.
    """

    newest: datetime | None = None
    is_catching_up: bool = False

    kind: ClassVar[str] = "due"

    @property
    def evidence(self) -> dict[str, Any]:
        """The hour that is missing and the newest that is not."""
        newest = self.newest.isoformat() if self.newest else None
        return {"hour": self.hour.isoformat(), "newest_hour": newest}


SUBJECT_KINDS = {
    "agent": "agent",
    "budget": "agent",
    "now": "agent",
    "status": "agent",
    "release": "agent",
    "drift": "agent",
    "probe": "probe",
    "model": "model",
    "expectation": "expectation",
    "hour": "pipeline",
    "due": "pipeline",
}
"""What `alerts` calls the subject of each kind of thing seen."""
