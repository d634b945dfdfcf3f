"""The rules: when an incident opens, and which hours after it count as good.

A rule says nothing where nothing is known: an inactive agent, a window with hours missing, too few executions, a model
that was not called neither opens an incident nor counts towards its end. Only `no_data` and `hour_late` are about
what is missing. An incident about which nothing is known for a day ends, too. All is pure; a rule's fields are what
`alerts.yaml` may set. Rules about the last hours are in `now_rules`, about budgets in `budget_rules`, about health
documents in `status_rules`, about releases in `release_rules`, about drift in `drift_rules`; what all have in `rule`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from health_assets.apps.alerts.budget_rules import BudgetBurn, BudgetBurnFast, BudgetBurnSlow
from health_assets.apps.alerts.drift_rules import Drifting
from health_assets.apps.alerts.facts import AgentFact, DueFact, ExpectationFact, Fact, HourFact, Least, ModelFact
from health_assets.apps.alerts.now_rules import FailingNow, SuspectNow
from health_assets.apps.alerts.release_rules import ReleaseWorse
from health_assets.apps.alerts.rule import (
    SEVERITIES,
    UNKNOWN_FOR,
    Names,
    Opening,
    Points,
    Rule,
    Severity,
    listed,
)
from health_assets.apps.alerts.status_rules import ProbeWorsened, StatusWorsened
from health_assets.core.formatting import counted
from health_assets.scoring.explanation import shown_points

__all__ = ["SEVERITIES", "Names", "Opening", "Rule", "Severity"]

STATES = ("healthy", "degraded", "unhealthy")
"""The best first."""


class AgentRule(Rule):
    """The settings that the rules about scores have.

    Args:
        least_executions: a window with fewer executions neither opens nor closes an incident.
        least_points_at_stake: nor does a score of which fewer points could be lost.
        margin: points above the line at which an incident opened that a score must reach to count as good.
    """

    least_executions: Annotated[int, Field(ge=1)] = 10
    least_points_at_stake: Points = 0.0
    margin: Points = 2.0

    looks_at: ClassVar[tuple[type[Fact], ...]] = (AgentFact,)

    @property
    def least(self) -> Least:
        """The least that a score must rest on."""
        return Least(executions=self.least_executions, points_at_stake=self.least_points_at_stake)

    def is_good(self, seen: AgentFact, recovers_at: float | None) -> bool | None:
        """Whether the score is back above the line."""
        if not seen.is_enough(self.least) or seen.score is None or recovers_at is None:
            return None
        return seen.score >= min(recovers_at, 100.0)

    def recovery(self, seen: AgentFact) -> str:
        """The score that it is back at."""
        return f"{seen.subject_id} is back at {seen.score:.1f} {seen.bracketed(seen.state)}"

    def gives_up(self, seen: AgentFact, opened_in: datetime) -> str | None:
        """End an incident of a whole window ago where the window has too little to judge by."""
        if not seen.is_covered or seen.hour - opened_in < UNKNOWN_FOR:
            return None
        had = counted(seen.row["n"], "execution")
        if seen.score is not None and seen.row["n"] >= self.least_executions:
            had = f"{shown_points(seen.row['points_at_stake'])} points at stake"
        return f"{seen.subject_id} had {had} in its window, too few to judge by; nothing is known since"


class StateWorsened(AgentRule):
    """An agent's state is worse than its best of the day before."""

    name: ClassVar[str] = "state_worsened"

    def opening(self, seen: AgentFact) -> Opening | None:
        """Open an incident for a step down: healthy to degraded or unhealthy, or degraded to unhealthy."""
        before = seen.best_state_before
        if before is None or not seen.is_enough(self.least):
            return None
        if STATES.index(seen.state) <= STATES.index(before):
            return None
        line = seen.row["healthy_at"] if before == "healthy" else seen.row["degraded_at"]
        score = seen.bracketed(f"{seen.score:.1f}")
        reason = f"{seen.subject_id} went from {before} to {seen.state} {score}{seen.cause}"
        return Opening(reason, line + self.margin)


class Floor(AgentRule):
    """A score is below a floor.

    Args:
        below: the floor.
    """

    name: ClassVar[str] = "floor"

    severity: Severity = "critical"
    below: Points = 65.0

    def opening(self, seen: AgentFact) -> Opening | None:
        """Any score below the floor."""
        if seen.score is None or not seen.is_enough(self.least) or seen.score >= self.below:
            return None
        reason = f"{seen.subject_id} scored {seen.score:.1f}{seen.doubt}, below {self.below:g}{seen.cause}"
        return Opening(reason, self.below + self.margin)


class Drop(AgentRule):
    """A score fell by more than so many points within so many hours.

    Args:
        points: how many points.
        within_hours: how many hours.
    """

    name: ClassVar[str] = "drop"

    points: Annotated[float, Field(gt=0, le=100)] = 15.0
    within_hours: Annotated[int, Field(ge=1, le=168)] = 6

    def opening(self, seen: AgentFact) -> Opening | None:
        """A score that is so far below the highest of the hours before."""
        peak = seen.peak_before
        if peak is None or seen.score is None or not seen.is_enough(self.least):
            return None
        if peak - seen.score <= self.points:
            return None
        fell = f"fell by {peak - seen.score:.1f} points within {self.within_hours} h"
        reason = f"{seen.subject_id} {fell}, from {peak:.1f} to {seen.score:.1f}{seen.doubt}{seen.cause}"
        return Opening(reason, peak - self.points + self.margin)


class ModelDegraded(Rule):
    """A model is degraded.

    Args:
        least_calls: a rolling window with fewer calls neither opens nor closes an incident.
        margin: how much above the threshold, 0 to 1, a score must be to count as good.
    """

    name: ClassVar[str] = "model_degraded"
    looks_at: ClassVar[tuple[type[Fact], ...]] = (ModelFact,)

    least_calls: Annotated[int, Field(ge=1)] = 10
    margin: Annotated[float, Field(ge=0, le=1)] = 0.05

    def opening(self, seen: ModelFact) -> Opening | None:
        """A model whose share of good calls is below its threshold."""
        if not self._is_enough(seen) or not seen.is_degraded:
            return None
        reason = (
            f"{seen.subject_id} answered {seen.score:.0%} of its last {seen.calls} calls, {seen.threshold:.0%} wanted"
        )
        return Opening(reason, seen.threshold + self.margin)

    def is_good(self, seen: ModelFact, recovers_at: float | None) -> bool | None:
        """Whether the score is back above the threshold."""
        if not self._is_enough(seen) or recovers_at is None:
            return None
        return seen.score >= min(recovers_at, 1.0)

    def recovery(self, seen: ModelFact) -> str:
        """The score that it is back at."""
        return f"{seen.subject_id} answers {seen.score:.0%} of its last {seen.calls} calls again"

    def gives_up(self, seen: ModelFact, opened_in: datetime) -> str | None:
        """End an incident of a model that nobody has called for a day."""
        if seen.idle_hours < 24 or seen.hour - opened_in < UNKNOWN_FOR:
            return None
        return f"nobody has called {seen.subject_id} for {seen.idle_hours:.0f} h"

    def _is_enough(self, seen: ModelFact) -> bool:
        return seen.was_called and seen.calls >= self.least_calls


class ExpectationFailed(Rule):
    """A data-quality check failed.

    Args:
        severities: severities of the checks that it looks at: `error`, `warn`.
    """

    name: ClassVar[str] = "expectation_failed"
    looks_at: ClassVar[tuple[type[Fact], ...]] = (ExpectationFact,)

    good_hours: Annotated[int, Field(ge=1, le=168)] = 1
    severities: Annotated[tuple[Literal["error", "warn"], ...], BeforeValidator(listed)] = ("error",)

    def opening(self, seen: ExpectationFact) -> Opening | None:
        """A check of such a severity that failed."""
        if seen.success or seen.severity not in self.severities:
            return None
        of = f"{seen.unexpected_count:,} of {seen.element_count:,} rows break it"
        return Opening(f"the check {seen.subject_id} failed for {seen.hour:%Y-%m-%d %H:%M} UTC: {of}")

    def is_good(self, seen: ExpectationFact, recovers_at: float | None) -> bool | None:
        """Whether it passes, on any row at all."""
        del recovers_at
        return None if seen.success and not seen.element_count else seen.success

    def recovery(self, seen: ExpectationFact) -> str:
        """Say that the check passes again."""
        return f"the check {seen.subject_id} passes again, on {seen.element_count:,} rows"

    def gives_up(self, seen: ExpectationFact, opened_in: datetime) -> str | None:
        """End an incident of a day ago whose check finds no row any more."""
        is_old = seen.hour - opened_in >= UNKNOWN_FOR
        return f"the check {seen.subject_id} has no row to look at any more" if is_old else None


class HourLate(Rule):
    """The newest hour that should have been materialized was not (HEALTH_LATE_AFTER_MINUTES)."""

    name: ClassVar[str] = "hour_late"
    looks_at: ClassVar[tuple[type[Fact], ...]] = (DueFact,)

    severity: Severity = "critical"
    good_hours: Literal[1] = 1  # it is asked as often as the sensor ticks

    def opening(self, seen: DueFact) -> Opening | None:
        """An hour that is not there although it is due, and that no run is about to make."""
        if seen.is_there or seen.is_catching_up:
            return None
        newest = f"the newest is {seen.newest:%Y-%m-%d %H:%M}" if seen.newest else "there is none"
        return Opening(f"the hour {seen.hour:%Y-%m-%d %H:%M} UTC was not materialized in time; {newest}")

    def is_good(self, seen: DueFact, recovers_at: float | None) -> bool | None:
        """Whether what is due is there; a run that catches up is no news."""
        del recovers_at
        return None if seen.is_catching_up and not seen.is_there else seen.is_there

    def recovery(self, seen: DueFact) -> str:
        """Say that the hour is there."""
        return f"the hour {seen.hour:%Y-%m-%d %H:%M} UTC is there, and no later one is due"


class NoData(Rule):
    """An agent that had executions has none in its window any more, or an hour was left out.

    Of personal agents it says nothing: how much somebody uses an assistant is nobody's business.
    """

    name: ClassVar[str] = "no_data"
    looks_at: ClassVar[tuple[type[Fact], ...]] = (AgentFact, HourFact)

    severity: Severity = "info"
    good_hours: Annotated[int, Field(ge=1, le=168)] = 1

    def opening(self, seen: AgentFact | HourFact) -> Opening | None:
        """An agent that became inactive over a window with all its hours, or an hour that is missing."""
        if isinstance(seen, HourFact):
            reason = f"the hour {seen.hour:%Y-%m-%d %H:%M} UTC was left out; later ones are there"
            return None if seen.is_there else Opening(reason)
        if seen.is_personal or not seen.is_covered or seen.state != "inactive" or not seen.was_active_before:
            return None
        return Opening(f"{seen.subject_id} had no execution in the whole window, and had some before")

    def is_good(self, seen: AgentFact | HourFact, recovers_at: float | None) -> bool | None:
        """Whether there are executions, or hours, again."""
        del recovers_at
        return seen.is_there if isinstance(seen, HourFact) else seen.state != "inactive"

    def recovery(self, seen: AgentFact | HourFact) -> str:
        """Say that there are hours, or executions, again."""
        if isinstance(seen, HourFact):
            return f"hours are there again, from {seen.hour:%Y-%m-%d %H:%M} UTC on"
        return f"{seen.subject_id} has executions again: {seen.row['n']:,} in its window"


RULES: dict[str, type[Rule]] = {
    rule.name: rule
    for rule in (
        FailingNow, SuspectNow, StateWorsened, Floor, Drop, BudgetBurnFast, BudgetBurn, BudgetBurnSlow, StatusWorsened,
        ProbeWorsened, ReleaseWorse, Drifting, ModelDegraded, ExpectationFailed, HourLate, NoData,
    )
}  # fmt: skip


def drop_of(rules: Sequence[Rule]) -> Drop | None:
    """The rule about drops, if it is in force."""
    return next((rule for rule in rules if isinstance(rule, Drop)), None)
