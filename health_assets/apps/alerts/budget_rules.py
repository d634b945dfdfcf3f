"""Rules about error budgets, by pairs of windows: a long one says that it matters, a short one that it goes on.

The pairs are those of Google's *The Site Reliability Workbook* ("Alerting on SLOs"), for windows of whole hours.
Of few failures their share tells little, so these count where they are at least half of the executions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import Field

from health_assets.apps.alerts.rule import UNKNOWN_FOR, Opening, Rule, Severity
from health_assets.apps.alerts.seen import BudgetSeen, Seen


@dataclass(frozen=True, kw_only=True)
class BurnWindow:
    """A window over which a burn rate is known, by its columns of `error_budget`."""

    rate: str
    executions: str
    failures: str
    phrase: str


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
        least_executions: a shorter window with fewer executions neither opens nor closes an incident.
        margin: how far below `rate` either burn rate must be for an hour to count as good.
    """

    rate: Annotated[float, Field(gt=0)]
    least_failures: Annotated[int, Field(ge=1)] = 10
    least_executions: Annotated[int, Field(ge=1)] = 1
    margin: Annotated[float, Field(ge=0)] = 1.0

    looks_at: ClassVar[tuple[type[Seen], ...]] = (BudgetSeen,)
    long: ClassVar[BurnWindow]
    short: ClassVar[BurnWindow]

    def opening(self, seen: BudgetSeen) -> Opening | None:
        """Burn rates that are both above the rate."""
        rate, row = self._sustained_rate(seen), seen.row
        if rate is None or rate <= self.rate or not self._has_enough_failures(row):
            return None
        fast = f"{row[self.long.rate]:.1f} times as fast as it may {self.long.phrase}"
        also = "" if self.short is self.long else f", and {row[self.short.rate]:.1f} times {self.short.phrase}"
        of = f"{row[self.long.failures]:,} of {row[self.long.executions]:,} executions failed"
        reason = f"{seen.subject_id} spends its error budget {fast}{also}: {of}"
        return Opening(reason, max(self.rate - self.margin, 0.0))

    def is_good(self, seen: BudgetSeen, recovers_at: float | None) -> bool | None:
        """Whether one of the two is below the line again."""
        rate = self._sustained_rate(seen)
        return None if rate is None or recovers_at is None else rate <= recovers_at

    def recovery(self, seen: BudgetSeen) -> str:
        """Recent successes, for the all-clear."""
        row = seen.row
        hour = f"{row['n_1h'] - row['failures_1h']:,} of {row['n_1h']:,} executions succeeded in the last hour"
        return f"{seen.subject_id}: {hour}, {row['n_6h'] - row['failures_6h']:,} of {row['n_6h']:,} in 6 h"

    def gives_up(self, seen: BudgetSeen, opened_in: datetime) -> str | None:
        """End an incident when nothing runs any more: over 6 hours, or that a rate was known of, for a day."""
        if not seen.is_covered:
            return None
        if seen.row["n_6h"] == 0:
            return f"{seen.subject_id} had no execution {SIX_HOURS.phrase}"
        is_old = seen.hour - opened_in >= UNKNOWN_FOR
        return f"{seen.subject_id} has too few executions to judge its budget by" if is_old else None

    def _has_enough_failures(self, row: Mapping[str, Any]) -> bool:
        failures = row[self.long.failures]
        is_half = failures * 2 >= row[self.long.executions]
        return failures >= (min(FEWEST_FAILURES, self.least_failures) if is_half else self.least_failures)

    def _sustained_rate(self, seen: BudgetSeen) -> float | None:
        """The lesser of the two burn rates; None where either is not known or rests on too little."""
        rates = [seen.row[window.rate] for window in (self.long, self.short)]
        is_enough = seen.is_covered and seen.row[self.short.executions] >= self.least_executions
        return min(rates) if is_enough and None not in rates else None


class BudgetBurnFast(BudgetRule):
    """An agent spends more than half of a day's budget in one hour."""

    name: ClassVar[str] = "budget_burn_fast"
    long: ClassVar[BurnWindow] = LAST_HOUR
    short: ClassVar[BurnWindow] = LAST_HOUR

    severity: Severity = "critical"
    rate: Annotated[float, Field(gt=0)] = 14.4


class BudgetBurn(BudgetRule):
    """An agent spends its error budget too fast, over the last 6 hours and still in the last one."""

    name: ClassVar[str] = "budget_burn"
    long: ClassVar[BurnWindow] = SIX_HOURS
    short: ClassVar[BurnWindow] = LAST_HOUR

    rate: Annotated[float, Field(gt=0)] = 6.0


class BudgetBurnSlow(BudgetRule):
    """An agent has spent its error budget several times over the whole window, and still does over 6 hours."""

    name: ClassVar[str] = "budget_burn_slow"
    long: ClassVar[BurnWindow] = WHOLE_WINDOW
    short: ClassVar[BurnWindow] = SIX_HOURS

    severity: Severity = "info"
    rate: Annotated[float, Field(gt=0)] = 3.0
