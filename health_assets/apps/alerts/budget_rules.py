"""Rules about error budgets, by pairs of windows: a long one says that it matters, a short one that it goes on.

The pairs are those of Google's *The Site Reliability Workbook* ("Alerting on SLOs"): 1 hour with 5 minutes, 6 hours
with 30. An agent may run more rarely than that: of few executions a short window cannot say that the trouble is over,
so the next longer one stands in for it. Of few failures their share tells little, so these count where they are at
least half of the executions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import Field

from health_assets.apps.alerts.facts import BudgetFact, Fact
from health_assets.apps.alerts.rule import UNKNOWN_FOR, Opening, Rule, Severity


@dataclass(frozen=True, kw_only=True)
class BurnWindow:
    """A window over which a burn rate is known, by its columns of `error_budget`."""

    rate: str
    executions: str
    failures: str
    phrase: str


FIVE_MINUTES = BurnWindow(
    rate="burn_rate_5m", executions="n_5m", failures="failures_5m", phrase="in the last 5 minutes"
)
THIRTY_MINUTES = BurnWindow(
    rate="burn_rate_30m", executions="n_30m", failures="failures_30m", phrase="in the last 30 minutes"
)
LAST_HOUR = BurnWindow(rate="burn_rate_1h", executions="n_1h", failures="failures_1h", phrase="in the last hour")
SIX_HOURS = BurnWindow(rate="burn_rate_6h", executions="n_6h", failures="failures_6h", phrase="over 6 h")
WHOLE_WINDOW = BurnWindow(rate="budget_spent", executions="n", failures="failures", phrase="over the window")

FEWEST_FAILURES = 4
"""Fewer failures open no incident. This many of as many are chance once in 160,000 windows where 95 % succeed."""


class BudgetRule(Rule):
    """The settings that the rules about budgets have.

    Args:
        rate: how many times as fast as would make the budget last for the window.
        least_failures: a longer window with fewer failures opens no incident, unless half of its executions failed.
        least_executions: a shorter window with fewer executions neither opens nor closes an incident; in place of one
            of minutes with fewer than these, or than `enough_executions`, the next longer one counts.
        margin: how far below `rate` either burn rate must be for an hour to count as good.
    """

    rate: Annotated[float, Field(gt=0)]
    least_failures: Annotated[int, Field(ge=1)] = 10
    least_executions: Annotated[int, Field(ge=1)] = 1
    margin: Annotated[float, Field(ge=0)] = 1.0

    looks_at: ClassVar[tuple[type[Fact], ...]] = (BudgetFact,)
    long: ClassVar[BurnWindow]
    shorts: ClassVar[tuple[BurnWindow, ...]]
    """Shorter windows, of which the first with enough executions counts; the last one where none has."""
    enough_executions: ClassVar[int] = 1
    """That so many all succeed while the budget burns at `rate`, where 95 % are expected, is hardly chance."""

    def opening(self, fact: BudgetFact) -> Opening | None:
        """Burn rates that are both above the rate."""
        rate, row, short = self._sustained_rate(fact), fact.row, self._short(fact.row)
        if rate is None or rate <= self.rate or not self._has_enough_failures(row):
            return None
        fast = f"{row[self.long.rate]:.1f} times as fast as it may {self.long.phrase}"
        also = "" if short is self.long else f", and {row[short.rate]:.1f} times {short.phrase}"
        of = f"{row[self.long.failures]:,} of {row[self.long.executions]:,} executions failed"
        reason = f"{fact.subject_id} spends its error budget {fast}{also}: {of}"
        return Opening(reason, max(self.rate - self.margin, 0.0))

    def is_good(self, fact: BudgetFact, recovers_at: float | None) -> bool | None:
        """Whether one of the two is below the line again."""
        rate = self._sustained_rate(fact)
        return None if rate is None or recovers_at is None else rate <= recovers_at

    def recovery(self, fact: BudgetFact, opened_in: datetime) -> str:
        """Recent successes, for the all-clear."""
        del opened_in
        row, short = fact.row, self._short(fact.row)
        recent = f"{_succeeded(row, short)} executions succeeded {short.phrase}"
        return f"{fact.subject_id}: {recent}" + (
            "" if short is self.long else f", {_succeeded(row, self.long)} {self.long.phrase}"
        )

    def gives_up(self, fact: BudgetFact, opened_in: datetime) -> str | None:
        """End an incident when nothing runs any more: over 6 hours, or that a rate was known of, for a day."""
        if not fact.is_covered:
            return None
        if fact.row["n_6h"] == 0:
            return f"{fact.subject_id} had no execution {SIX_HOURS.phrase}"
        is_old = fact.hour - opened_in >= UNKNOWN_FOR
        return f"{fact.subject_id} has too few executions to judge its budget by" if is_old else None

    def _has_enough_failures(self, row: Mapping[str, Any]) -> bool:
        failures = row[self.long.failures]
        is_half = failures * 2 >= row[self.long.executions]
        return failures >= (min(FEWEST_FAILURES, self.least_failures) if is_half else self.least_failures)

    def _sustained_rate(self, fact: BudgetFact) -> float | None:
        """The lesser of the two burn rates; None where either is not known or rests on too little."""
        short = self._short(fact.row)
        rates = [fact.row[window.rate] for window in (self.long, short)]
        is_enough = fact.is_covered and fact.row[short.executions] >= self.least_executions
        return min(rates) if is_enough and None not in rates else None

    def _short(self, row: Mapping[str, Any]) -> BurnWindow:
        """The shortest window that says something of now."""
        enough = max(self.least_executions, self.enough_executions)
        return next((window for window in self.shorts if row[window.executions] >= enough), self.shorts[-1])


def _succeeded(row: Mapping[str, Any], window: BurnWindow) -> str:
    return f"{row[window.executions] - row[window.failures]:,} of {row[window.executions]:,}"


class BudgetBurnFast(BudgetRule):
    """An agent spends more than half of a day's budget in one hour, and still spends it in the last 5 minutes."""

    name: ClassVar[str] = "budget_burn_fast"
    long: ClassVar[BurnWindow] = LAST_HOUR
    shorts: ClassVar[tuple[BurnWindow, ...]] = (FIVE_MINUTES, THIRTY_MINUTES, LAST_HOUR)
    enough_executions: ClassVar[int] = 4  # 0.28 ** 4 is 0.006

    severity: Severity = "critical"
    rate: Annotated[float, Field(gt=0)] = 14.4


class BudgetBurn(BudgetRule):
    """An agent spends its error budget too fast, over the last 6 hours and still in the last 30 minutes."""

    name: ClassVar[str] = "budget_burn"
    long: ClassVar[BurnWindow] = SIX_HOURS
    shorts: ClassVar[tuple[BurnWindow, ...]] = (THIRTY_MINUTES, LAST_HOUR)
    enough_executions: ClassVar[int] = 12  # 0.7 ** 12 is 0.014

    rate: Annotated[float, Field(gt=0)] = 6.0


class BudgetBurnSlow(BudgetRule):
    """An agent has spent its error budget several times over the whole window, and still does over 6 hours."""

    name: ClassVar[str] = "budget_burn_slow"
    long: ClassVar[BurnWindow] = WHOLE_WINDOW
    shorts: ClassVar[tuple[BurnWindow, ...]] = (SIX_HOURS,)

    severity: Severity = "info"
    rate: Annotated[float, Field(gt=0)] = 3.0
