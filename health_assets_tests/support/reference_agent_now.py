"""An independent reference for agents now: plain Python over the executions themselves, in exact fractions.

Nothing here imports the product. What is null in the table is None here.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import comb, sqrt
from typing import Any

from health_assets_tests.support.reference import ONE_HOUR, Record, agent_health, deduplicate, targets_for

Z = 1.96


@cache
def chance(failures: int, executions: int, expected_success_rate: float) -> Fraction:
    """The probability of at least so many failures."""
    success = Fraction(Decimal(repr(expected_success_rate)))
    good, whole = success.numerator, success.denominator
    is_upper = failures * 2 > executions  # the fewer terms, of integers over whole ** executions
    counts = range(failures, executions + 1) if is_upper else range(failures)
    total = sum(comb(executions, count) * (whole - good) ** count * good ** (executions - count) for count in counts)
    return Fraction(total if is_upper else whole**executions - total, whole**executions)


def wilson(hits: int, cases: int) -> tuple[float | None, float | None]:
    """Both ends of the share's interval."""
    if not cases:
        return None, None
    share, spread = hits / cases, Z**2 / cases
    middle = (share + spread / 2) / (1 + spread)
    half = Z * sqrt(share * (1 - share) / cases + Z**2 / (4 * cases**2)) / (1 + spread)
    return (0.0 if not hits else middle - half), (1.0 if hits == cases else middle + half)


class Agent:
    """One agent's executions, and what is to be said of an hour of them.

    Args:
        executions: in any order.
        expected: expected success rate.
        lookback_hours: how far back anything is looked at.
        threshold: failures of a smaller chance are no chance.
    """

    def __init__(self, executions: Sequence[Record], expected: float, lookback_hours: int, threshold: Fraction) -> None:
        self._outcomes: dict[datetime, list[bool]] = {}
        for one in sorted(executions, key=lambda one: (one["_at"], one["_source_file"], one["_line_number"])):
            self._outcomes.setdefault(one["_hour"], []).append(one["status"] == "failure")
        self._expected, self._threshold = expected, threshold
        self.long_hours = min(6, lookback_hours)
        self._before = min(self.long_hours - 1, lookback_hours - self.long_hours)
        self._since_hours = lookback_hours - self.long_hours - self._before

    def outcomes(self, hour: datetime, hours: int) -> list[bool]:
        """Whether each execution of the hours up to this one failed, in order."""
        span = [hour - place * ONE_HOUR for place in reversed(range(hours))]
        return [failed for one in span for failed in self._outcomes.get(one, ())]

    def streak(self, hour: datetime) -> int:
        """Failures at the end of the longer window."""
        found = 0
        for failed in reversed(self.outcomes(hour, self.long_hours)):
            if not failed:
                break
            found += 1
        return found

    def chance_in(self, outcomes: Sequence[bool]) -> Fraction | None:
        """Of these outcomes; None without any."""
        return chance(sum(outcomes), len(outcomes), self._expected) if outcomes else None

    def _is_improbable(self, outcomes: Sequence[bool]) -> bool:
        found = self.chance_in(outcomes)
        return found is not None and found < self._threshold

    def is_failing(self, hour: datetime) -> bool:
        """Of the hour by itself."""
        last, streak = self.outcomes(hour, 1), self.streak(hour)
        is_half = self._is_improbable(last) and sum(last) * 2 >= len(last)
        return is_half or (streak >= 2 and self._is_improbable([True] * streak))

    def failed_before(self, hour: datetime, hours: int) -> datetime | None:
        """The latest of some hours before this one that was failing."""
        span = [hour - (place + 1) * ONE_HOUR for place in range(hours)]
        return next((one for one in span if self.is_failing(one)), None)

    def verdict(self, hour: datetime) -> tuple[str, int | None]:
        """The verdict, and the good hours of a recovering agent."""
        last = self.outcomes(hour, 1)
        failed_in = self.failed_before(hour, min(3, self._before))
        if self.is_failing(hour):
            return "failing", None
        if not last:
            return "quiet", None
        if self._is_improbable(last):
            return "suspect", None
        if failed_in:
            after = int((hour - failed_in) / ONE_HOUR)
            return "recovering", sum(bool(self.outcomes(hour - place * ONE_HOUR, 1)) for place in range(after))
        is_new = self.failed_before(hour, self._before) is None
        if is_new and self._is_improbable(self.outcomes(hour, self.long_hours)):
            return "suspect", None
        return "ok", None

    def since(self, hour: datetime) -> datetime:
        """The first hour of the verdict."""
        verdict = self.verdict(hour)[0]
        first = hour
        while first > hour - self._since_hours * ONE_HOUR and self.verdict(first - ONE_HOUR)[0] == verdict:
            first -= ONE_HOUR
        return first

    def row(self, hour: datetime) -> Record:
        """The agent's row, without its name."""
        verdict, good_hours = self.verdict(hour)
        streak = self.streak(hour)
        last, long = self.outcomes(hour, 1), self.outcomes(hour, self.long_hours)
        chances = [self.chance_in(last), self.chance_in([True] * streak)]
        known = [one for one in chances if one is not None]
        chance_6h = self.chance_in(long)
        return {
            "hour": hour, "as_of": hour + ONE_HOUR, "is_final": True, "verdict": verdict, "since": self.since(hour), "good_hours": good_hours,
            **_counts("1h", last), **_counts("6h", long), "failed_in_a_row": streak,
            "p_chance": float(min(known)) if known else None,
            "p_chance_6h": None if chance_6h is None else float(chance_6h),
            "expected_success_rate": self._expected, "failing_threshold": float(self._threshold),
        }  # fmt: skip


def _counts(name: str, outcomes: Sequence[bool]) -> Record:
    n, failures = len(outcomes), sum(outcomes)
    low, high = wilson(n - failures, n)
    return {
        f"executions_{name}": n, f"failures_{name}": failures, f"success_share_{name}": (n - failures) / n if n else None,
        f"success_low_{name}": low, f"success_high_{name}": high,
    }  # fmt: skip


def agent_now(
    records: list[Record],
    targets: dict[str, Any],
    hour_from: datetime,
    hour_to: datetime,
    lookback_hours: int = 168,
    threshold: Fraction = Fraction(1, 10_000),
) -> list[Record]:
    """A row for each hour in `[hour_from, hour_to)` and each agent that the Agent Health Model knows then."""
    executions_of: dict[str, list[Record]] = {}
    for record in deduplicate(records):
        if record["type"] == "execution":
            executions_of.setdefault(record["agent_id"], []).append(record)
    known = agent_health(records, targets, hour_from, hour_to, 1, lookback_hours)
    names = {row["agent_id"] for row in known}
    agents = {
        name: Agent(
            executions_of.get(name, []), float(targets_for(name, targets)["expected_success_rate"]),
            lookback_hours, threshold,
        )
        for name in names
    }  # fmt: skip
    return [{"agent_id": row["agent_id"], **agents[row["agent_id"]].row(row["hour"])} for row in known]
