"""The rules: when an incident opens, and which hours after it count as good.

A rule says nothing where nothing is known: an inactive agent, a window with hours missing, too few executions, a model
that was not called neither opens an incident nor counts towards its end. Only `no_data` and `hour_late` are about
what is missing. All is pure; a rule's fields are what `alerts.yaml` may set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from health_assets.apps.alerts.seen import AgentSeen, BudgetSeen, DueSeen, ExpectationSeen, HourSeen, ModelSeen, Seen

STATES = ("healthy", "degraded", "unhealthy")
"""The best first."""

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)[::-1]
"""The worst first."""
Points = Annotated[float, Field(ge=0, le=100)]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]


@dataclass(frozen=True)
class Opening:
    """An incident that opens.

    Args:
        reason: the event, in one sentence.
        recovers_at: score, or burn rate, from which on an hour is good again.
    """

    reason: str
    recovers_at: float | None = None


class Rule(BaseModel):
    """The settings that every rule has.

    Args:
        severity: how much it matters.
        channels: names of the channels that tell of it; all where none is named.
        only: patterns, like `payment-*`, of the subjects that it looks at.
        good_hours: consecutive good hours that close an incident.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    severity: Severity = "warning"
    channels: Names = ()
    only: Names = ("*",)
    good_hours: Annotated[int, Field(ge=1, le=168)] = 3

    name: ClassVar[str]
    looks_at: ClassVar[tuple[type[Seen], ...]]

    def covers(self, seen: Seen) -> bool:
        """Whether it looks at what is seen."""
        return type(seen) in self.looks_at and self.includes(seen.subject_id)

    def includes(self, subject_id: str) -> bool:
        """Whether it looks at this subject, as far as `only` goes."""
        return any(fnmatchcase(subject_id, pattern) for pattern in self.only)

    def opening(self, seen: Any) -> Opening | None:
        """The incident that opens with what is seen, if any."""
        raise NotImplementedError

    def is_good(self, seen: Any, recovers_at: float | None) -> bool | None:
        """Whether an hour counts as good for an open incident; None where nothing is known."""
        raise NotImplementedError

    def recovery(self, seen: Any) -> str:
        """Say in one sentence why an incident ended."""
        raise NotImplementedError


class AgentRule(Rule):
    """The settings that the rules about scores have.

    Args:
        least_executions: a window with fewer executions neither opens nor closes an incident.
        margin: points above the line at which an incident opened that a score must reach to count as good.
    """

    least_executions: Annotated[int, Field(ge=1)] = 10
    margin: Points = 2.0

    looks_at: ClassVar[tuple[type[Seen], ...]] = (AgentSeen,)

    def is_good(self, seen: AgentSeen, recovers_at: float | None) -> bool | None:
        """Whether the score is back above the line."""
        if not seen.is_enough(self.least_executions) or seen.score is None or recovers_at is None:
            return None
        return seen.score >= min(recovers_at, 100.0)

    def recovery(self, seen: AgentSeen) -> str:
        """The score that it is back at."""
        return f"{seen.subject_id} is back at {seen.score:.1f} {seen.bracketed(seen.state)}"


class StateWorsened(AgentRule):
    """An agent's state is worse than its best of the day before."""

    name: ClassVar[str] = "state_worsened"

    def opening(self, seen: AgentSeen) -> Opening | None:
        """Open an incident for a step down: healthy to degraded or unhealthy, or degraded to unhealthy."""
        before = seen.best_state_before
        if before is None or not seen.is_enough(self.least_executions):
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

    def opening(self, seen: AgentSeen) -> Opening | None:
        """Any score below the floor."""
        if seen.score is None or not seen.is_enough(self.least_executions) or seen.score >= self.below:
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

    def opening(self, seen: AgentSeen) -> Opening | None:
        """A score that is so far below the highest of the hours before."""
        peak = seen.peak_before
        if peak is None or seen.score is None or not seen.is_enough(self.least_executions):
            return None
        if peak - seen.score <= self.points:
            return None
        fell = f"fell by {peak - seen.score:.1f} points within {self.within_hours} h"
        reason = f"{seen.subject_id} {fell}, from {peak:.1f} to {seen.score:.1f}{seen.doubt}{seen.cause}"
        return Opening(reason, peak - self.points + self.margin)


class BudgetBurn(Rule):
    """An agent spends its error budget too fast, over the last 6 hours and still in the last one.

    Args:
        rate: how many times as fast as would make the budget last for the window.
        least_executions: an hour with fewer executions neither opens nor closes an incident.
        margin: how far below `rate` either burn rate must be for an hour to count as good.
    """

    name: ClassVar[str] = "budget_burn"
    looks_at: ClassVar[tuple[type[Seen], ...]] = (BudgetSeen,)

    rate: Annotated[float, Field(gt=0)] = 6.0
    least_executions: Annotated[int, Field(ge=1)] = 10
    margin: Annotated[float, Field(ge=0)] = 1.0

    def opening(self, seen: BudgetSeen) -> Opening | None:
        """Burn rates that are both above the rate."""
        rate = seen.sustained_rate
        if rate is None or not seen.is_enough(self.least_executions) or rate <= self.rate:
            return None
        short, long = seen.row["burn_rate_1h"], seen.row["burn_rate_6h"]
        reason = (
            f"{seen.subject_id} spends its error budget {long:.1f} times as fast as it may over 6 h, and {short:.1f} "
            f"times in the last hour: {seen.row['failures_6h']:,} of {seen.row['n_6h']:,} executions failed"
        )
        return Opening(reason, max(self.rate - self.margin, 0.0))

    def is_good(self, seen: BudgetSeen, recovers_at: float | None) -> bool | None:
        """Whether one of the two is below the line again."""
        rate = seen.sustained_rate
        if rate is None or recovers_at is None or not seen.is_enough(self.least_executions):
            return None
        return rate <= recovers_at

    def recovery(self, seen: BudgetSeen) -> str:
        """The rates that it is back at."""
        short, long = seen.row["burn_rate_1h"], seen.row["burn_rate_6h"]
        rates = f"{short:.1f} times as fast as it may in the last hour, and {long:.1f} times over 6 h"
        return f"{seen.subject_id} spends its error budget {rates}"


class ModelDegraded(Rule):
    """A model is degraded.

    Args:
        least_calls: a rolling window with fewer calls neither opens nor closes an incident.
        margin: how much above the threshold, 0 to 1, a score must be to count as good.
    """

    name: ClassVar[str] = "model_degraded"
    looks_at: ClassVar[tuple[type[Seen], ...]] = (ModelSeen,)

    least_calls: Annotated[int, Field(ge=1)] = 10
    margin: Annotated[float, Field(ge=0, le=1)] = 0.05

    def opening(self, seen: ModelSeen) -> Opening | None:
        """A model whose share of good calls is below its threshold."""
        if not self._is_enough(seen) or not seen.is_degraded:
            return None
        reason = (
            f"{seen.subject_id} answered {seen.score:.0%} of its last {seen.calls} calls, {seen.threshold:.0%} wanted"
        )
        return Opening(reason, seen.threshold + self.margin)

    def is_good(self, seen: ModelSeen, recovers_at: float | None) -> bool | None:
        """Whether the score is back above the threshold."""
        if not self._is_enough(seen) or recovers_at is None:
            return None
        return seen.score >= min(recovers_at, 1.0)

    def recovery(self, seen: ModelSeen) -> str:
        """The score that it is back at."""
        return f"{seen.subject_id} answers {seen.score:.0%} of its last {seen.calls} calls again"

    def _is_enough(self, seen: ModelSeen) -> bool:
        return seen.was_called and seen.calls >= self.least_calls


class ExpectationFailed(Rule):
    """A data-quality check failed.

    Args:
        severities: severities of the checks that it looks at: `error`, `warn`.
    """

    name: ClassVar[str] = "expectation_failed"
    looks_at: ClassVar[tuple[type[Seen], ...]] = (ExpectationSeen,)

    good_hours: Annotated[int, Field(ge=1, le=168)] = 1
    severities: Annotated[tuple[Literal["error", "warn"], ...], BeforeValidator(_listed)] = ("error",)

    def opening(self, seen: ExpectationSeen) -> Opening | None:
        """A check of such a severity that failed."""
        if seen.success or seen.severity not in self.severities:
            return None
        of = f"{seen.unexpected_count:,} of {seen.element_count:,} rows break it"
        return Opening(f"the check {seen.subject_id} failed for {seen.hour:%Y-%m-%d %H:%M} UTC: {of}")

    def is_good(self, seen: ExpectationSeen, recovers_at: float | None) -> bool | None:
        """Whether it passes, on any row at all."""
        del recovers_at
        return None if seen.success and not seen.element_count else seen.success

    def recovery(self, seen: ExpectationSeen) -> str:
        """Say that the check passes again."""
        return f"the check {seen.subject_id} passes again, on {seen.element_count:,} rows"


class HourLate(Rule):
    """The newest hour that should have been materialized was not (HEALTH_LATE_AFTER_MINUTES)."""

    name: ClassVar[str] = "hour_late"
    looks_at: ClassVar[tuple[type[Seen], ...]] = (DueSeen,)

    severity: Severity = "critical"
    good_hours: Literal[1] = 1  # it is asked as often as the sensor ticks

    def opening(self, seen: DueSeen) -> Opening | None:
        """An hour that is not there although it is due."""
        if seen.is_there:
            return None
        newest = f"the newest is {seen.newest:%Y-%m-%d %H:%M}" if seen.newest else "there is none"
        return Opening(f"the hour {seen.hour:%Y-%m-%d %H:%M} UTC was not materialized in time; {newest}")

    def is_good(self, seen: DueSeen, recovers_at: float | None) -> bool | None:
        """Whether what is due is there."""
        del recovers_at
        return seen.is_there

    def recovery(self, seen: DueSeen) -> str:
        """Say that the hour is there."""
        return f"the hour {seen.hour:%Y-%m-%d %H:%M} UTC is there, and no later one is due"


class NoData(Rule):
    """An agent that had executions has none in its window any more, or an hour was left out.

    Of personal agents it says nothing: how much somebody uses an assistant is nobody's business.
    """

    name: ClassVar[str] = "no_data"
    looks_at: ClassVar[tuple[type[Seen], ...]] = (AgentSeen, HourSeen)

    severity: Severity = "info"
    good_hours: Annotated[int, Field(ge=1, le=168)] = 1

    def opening(self, seen: AgentSeen | HourSeen) -> Opening | None:
        """An agent that became inactive over a window with all its hours, or an hour that is missing."""
        if isinstance(seen, HourSeen):
            reason = f"the hour {seen.hour:%Y-%m-%d %H:%M} UTC was left out; later ones are there"
            return None if seen.is_there else Opening(reason)
        if seen.is_personal or not seen.is_covered or seen.state != "inactive" or not seen.was_active_before:
            return None
        return Opening(f"{seen.subject_id} had no execution in the whole window, and had some before")

    def is_good(self, seen: AgentSeen | HourSeen, recovers_at: float | None) -> bool | None:
        """Whether there are executions, or hours, again."""
        del recovers_at
        return seen.is_there if isinstance(seen, HourSeen) else seen.state != "inactive"

    def recovery(self, seen: AgentSeen | HourSeen) -> str:
        """Say that there are hours, or executions, again."""
        if isinstance(seen, HourSeen):
            return f"hours are there again, from {seen.hour:%Y-%m-%d %H:%M} UTC on"
        return f"{seen.subject_id} has executions again: {seen.row['n']:,} in its window"


RULES: dict[str, type[Rule]] = {
    rule.name: rule
    for rule in (StateWorsened, Floor, Drop, BudgetBurn, ModelDegraded, ExpectationFailed, HourLate, NoData)
}


def burn_of(rules: Sequence[Rule]) -> BudgetBurn | None:
    """The rule about error budgets, if it is in force."""
    return next((rule for rule in rules if isinstance(rule, BudgetBurn)), None)


def drop_of(rules: Sequence[Rule]) -> Drop | None:
    """The rule about drops, if it is in force."""
    return next((rule for rule in rules if isinstance(rule, Drop)), None)
