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
from health_assets.apps.alerts.facts import (
    AgentFact,
    DueFact,
    ExpectationFact,
    Fact,
    HourFact,
    MinimumSample,
    ModelFact,
)
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
    def least(self) -> MinimumSample:
        """The least that a score must rest on."""
        return MinimumSample(executions=self.least_executions, points_at_stake=self.least_points_at_stake)

    def is_good(self, fact: AgentFact, recovers_at: float | None) -> bool | None:
        """Whether the score is back above the line."""
        if not fact.is_enough(self.least) or fact.score is None or recovers_at is None:
            return None
        return fact.score >= min(recovers_at, 100.0)

    def recovery(self, fact: AgentFact, opened_in: datetime) -> str:
        """The score that it is back at."""
        del opened_in
        return f"{fact.subject_id} is back at {fact.score:.1f} {fact.bracketed(fact.state)}"

    def gives_up(self, fact: AgentFact, opened_in: datetime) -> str | None:
        """End an incident of a whole window ago where the window has too little to judge by."""
        if not fact.is_covered or fact.hour - opened_in < UNKNOWN_FOR:
            return None
        had = counted(fact.row["n"], "execution")
        if fact.score is not None and fact.row["n"] >= self.least_executions:
            had = f"{shown_points(fact.row['points_at_stake'])} points at stake"
        return f"{fact.subject_id} had {had} in its window, too few to judge by; nothing is known since"


class StateWorsened(AgentRule):
    """An agent's state is worse than its best of the day before."""

    name: ClassVar[str] = "state_worsened"

    def opening(self, fact: AgentFact) -> Opening | None:
        """Open an incident for a step down: healthy to degraded or unhealthy, or degraded to unhealthy."""
        before = fact.best_state_before
        if before is None or not fact.is_enough(self.least):
            return None
        if STATES.index(fact.state) <= STATES.index(before):
            return None
        line = fact.row["healthy_at"] if before == "healthy" else fact.row["degraded_at"]
        score = fact.bracketed(f"{fact.score:.1f}")
        reason = f"{fact.subject_id} went from {before} to {fact.state} {score}{fact.cause}"
        return Opening(reason, line + self.margin)


class Floor(AgentRule):
    """A score is below a floor.

    Args:
        below: the floor.
    """

    name: ClassVar[str] = "floor"

    severity: Severity = "critical"
    below: Points = 65.0

    def opening(self, fact: AgentFact) -> Opening | None:
        """Any score below the floor."""
        if fact.score is None or not fact.is_enough(self.least) or fact.score >= self.below:
            return None
        reason = f"{fact.subject_id} scored {fact.score:.1f}{fact.doubt}, below {self.below:g}{fact.cause}"
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

    def opening(self, fact: AgentFact) -> Opening | None:
        """A score that is so far below the highest of the hours before."""
        peak = fact.peak_before
        if peak is None or fact.score is None or not fact.is_enough(self.least):
            return None
        if peak - fact.score <= self.points:
            return None
        fell = f"fell by {peak - fact.score:.1f} points within {self.within_hours} h"
        reason = f"{fact.subject_id} {fell}, from {peak:.1f} to {fact.score:.1f}{fact.doubt}{fact.cause}"
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

    def opening(self, fact: ModelFact) -> Opening | None:
        """A model whose share of good calls is below its threshold."""
        if not self._is_enough(fact) or not fact.is_degraded:
            return None
        reason = (
            f"{fact.subject_id} answered {fact.score:.0%} of its last {fact.calls} calls, {fact.threshold:.0%} wanted"
        )
        return Opening(reason, fact.threshold + self.margin)

    def is_good(self, fact: ModelFact, recovers_at: float | None) -> bool | None:
        """Whether the score is back above the threshold."""
        if not self._is_enough(fact) or recovers_at is None:
            return None
        return fact.score >= min(recovers_at, 1.0)

    def recovery(self, fact: ModelFact, opened_in: datetime) -> str:
        """The score that it is back at."""
        del opened_in
        return f"{fact.subject_id} answers {fact.score:.0%} of its last {fact.calls} calls again"

    def gives_up(self, fact: ModelFact, opened_in: datetime) -> str | None:
        """End an incident of a model that nobody has called for a day."""
        if fact.idle_hours < 24 or fact.hour - opened_in < UNKNOWN_FOR:
            return None
        return f"nobody has called {fact.subject_id} for {fact.idle_hours:.0f} h"

    def _is_enough(self, fact: ModelFact) -> bool:
        return fact.was_called and fact.calls >= self.least_calls


class ExpectationFailed(Rule):
    """A data-quality check failed.

    Args:
        severities: severities of the checks that it looks at: `error`, `warn`.
    """

    name: ClassVar[str] = "expectation_failed"
    looks_at: ClassVar[tuple[type[Fact], ...]] = (ExpectationFact,)

    good_hours: Annotated[int, Field(ge=1, le=168)] = 1
    severities: Annotated[tuple[Literal["error", "warn"], ...], BeforeValidator(listed)] = ("error",)

    def opening(self, fact: ExpectationFact) -> Opening | None:
        """A check of such a severity that failed."""
        if fact.success or fact.severity not in self.severities:
            return None
        of = f"{fact.unexpected_count:,} of {fact.element_count:,} rows break it"
        return Opening(f"the check {fact.subject_id} failed for {fact.hour:%Y-%m-%d %H:%M} UTC: {of}")

    def is_good(self, fact: ExpectationFact, recovers_at: float | None) -> bool | None:
        """Whether it passes, on any row at all."""
        del recovers_at
        return None if fact.success and not fact.element_count else fact.success

    def recovery(self, fact: ExpectationFact, opened_in: datetime) -> str:
        """Say that the check passes again."""
        del opened_in
        return f"the check {fact.subject_id} passes again, on {fact.element_count:,} rows"

    def gives_up(self, fact: ExpectationFact, opened_in: datetime) -> str | None:
        """End an incident of a day ago whose check finds no row any more."""
        is_old = fact.hour - opened_in >= UNKNOWN_FOR
        return f"the check {fact.subject_id} has no row to look at any more" if is_old else None


class HourLate(Rule):
    """The newest hour that should have been materialized was not (HEALTH_LATE_AFTER_MINUTES)."""

    name: ClassVar[str] = "hour_late"
    looks_at: ClassVar[tuple[type[Fact], ...]] = (DueFact,)

    severity: Severity = "critical"
    good_hours: Literal[1] = 1  # it is asked as often as the sensor ticks

    def opening(self, fact: DueFact) -> Opening | None:
        """An hour that is not there although it is due, and that no run is about to make."""
        if fact.is_there or fact.is_catching_up:
            return None
        newest = f"the newest is {fact.newest:%Y-%m-%d %H:%M}" if fact.newest else "there is none"
        return Opening(f"the hour {fact.hour:%Y-%m-%d %H:%M} UTC was not materialized in time; {newest}")

    def is_good(self, fact: DueFact, recovers_at: float | None) -> bool | None:
        """Whether what is due is there; a run that catches up is no news."""
        del recovers_at
        return None if fact.is_catching_up and not fact.is_there else fact.is_there

    def recovery(self, fact: DueFact, opened_in: datetime) -> str:
        """Say that the hour is there."""
        del opened_in
        return f"the hour {fact.hour:%Y-%m-%d %H:%M} UTC is there, and no later one is due"


class NoData(Rule):
    """An agent that had executions has none in its window any more, or an hour was left out.

    Of personal agents it says nothing: how much somebody uses an assistant is nobody's business.
    """

    name: ClassVar[str] = "no_data"
    looks_at: ClassVar[tuple[type[Fact], ...]] = (AgentFact, HourFact)

    severity: Severity = "info"
    good_hours: Annotated[int, Field(ge=1, le=168)] = 1

    def opening(self, fact: AgentFact | HourFact) -> Opening | None:
        """An agent that became inactive over a window with all its hours, or an hour that is missing."""
        if isinstance(fact, HourFact):
            reason = f"the hour {fact.hour:%Y-%m-%d %H:%M} UTC was left out; later ones are there"
            return None if fact.is_there else Opening(reason)
        if fact.is_personal or not fact.is_covered or fact.state != "inactive" or not fact.was_active_before:
            return None
        return Opening(f"{fact.subject_id} had no execution in the whole window, and had some before")

    def is_good(self, fact: AgentFact | HourFact, recovers_at: float | None) -> bool | None:
        """Whether there are executions, or hours, again."""
        del recovers_at
        return fact.is_there if isinstance(fact, HourFact) else fact.state != "inactive"

    def recovery(self, fact: AgentFact | HourFact, opened_in: datetime) -> str:
        """Say that there are hours, or executions, again."""
        del opened_in
        if isinstance(fact, HourFact):
            return f"hours are there again, from {fact.hour:%Y-%m-%d %H:%M} UTC on"
        return f"{fact.subject_id} has executions again: {fact.row['n']:,} in its window"


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
