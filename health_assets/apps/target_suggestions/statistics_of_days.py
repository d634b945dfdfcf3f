"""From an agent's days to its suggested targets, each with its evidence; pure.

A day is left out where it was worse than usual by a robust rule: its share of failures, or its median runtime, lies
above the median of all days by more than `MADS` median absolute deviations, scaled to the standard deviation of a
normal distribution (P. J. Rousseeuw and C. Croux, "Alternatives to the median absolute deviation", 1993). Of failures
the lower end of the day's Wilson interval counts, so that a few runs condemn no day.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median

from health_assets.core.formatting import counted, duration, share
from health_assets.scoring.latency_buckets import upper_end_us
from health_assets.scoring.wilson import interval, lower_end

NEEDED_DAYS = 3
NEEDED_RUNS = 100
MADS = 3
MAD_TO_DEVIATION = 1.4826
LEAST_FAILURE_GAP = 0.01
"""Share of failures above the usual one that leaves no day out, however alike the days are."""
LEAST_FAILURES = 5
"""Fewer failures leave no day out."""
LEAST_RUNTIME_GAP = 0.1
"""Median runtime above the usual one that leaves no day out, as a share of it."""
LONG_RUNNING_FACTOR = 5
LEAST_DEVIATION_ALLOWED = 0.2
LEAST_BREACHES = 5
"""The defaults of these targets; nothing stricter is suggested."""
MOST_FAILURE_SPREAD = 0.5
"""`MADS` deviations of the days' failures from which on no day is usual."""
MOST_RUNTIME_SPREAD = 1.0
"""The same of the days' mean runtimes, as a share of the usual one."""
DAY_H = 24


@dataclass(frozen=True, kw_only=True)
class Day:
    """An agent's day.

    Args:
        day: which, in UTC.
        runs: executions, at least one.
        successes: those that succeeded.
        timed: those whose runtime is known.
        runtime_us: sum of their runtimes.
        p50_s: median of these; None where nothing is timed.
    """

    day: date
    runs: int
    successes: int
    timed: int
    runtime_us: int
    p50_s: float | None

    @property
    def failures(self) -> int:
        """Executions that failed."""
        return self.runs - self.successes

    @property
    def mean_s(self) -> float:
        """Mean runtime of the timed runs, of which there must be one."""
        return self.runtime_us / self.timed / 1e6


@dataclass(frozen=True)
class LeftOut:
    """A day that was worse than usual, and by what."""

    day: date
    reason: str

    @property
    def words(self) -> str:
        """The day and why it is left out."""
        return f"left out {self.day}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Lacking:
    """An agent for which nothing is suggested."""

    agent_id: str
    reason: str
    left_out: Sequence[LeftOut] = ()


@dataclass(frozen=True)
class Value:
    """A suggested target and its evidence."""

    value: float
    evidence: str


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """The targets suggested for an agent, by name in the order of the targets' documentation."""

    agent_id: str
    runs: int
    days: int
    left_out: Sequence[LeftOut]
    values: Mapping[str, Value]
    remark: str | None = None


def typical_days(days: Sequence[Day]) -> tuple[list[Day], list[LeftOut]]:
    """The days that are not worse than usual, and those that are."""
    reasons: dict[date, list[str]] = {}
    for day, reason in (*_failing(days), *_slow(days)):
        reasons.setdefault(day, []).append(reason)
    left_out = [LeftOut(day, " and ".join(reasons[day])) for day in sorted(reasons)]
    return [day for day in days if day.day not in reasons], left_out


def lacking(typical: Sequence[Day]) -> str | None:
    """Why nothing is suggested for an agent with these typical days; None where its history is enough."""
    runs, successes = sum(day.runs for day in typical), sum(day.successes for day in typical)
    if len(typical) < NEEDED_DAYS or runs < NEEDED_RUNS:
        return f"{counted(runs, 'run')} on {counted(len(typical), 'typical day')}"
    shares = [day.successes / day.runs for day in typical]
    if MADS * _deviation(shares) > MOST_FAILURE_SPREAD:
        return f"no day is typical: {share(min(shares))} to {share(max(shares))} of its runs succeeded"
    if 2 * successes < runs:
        return f"{share(successes / runs)} of {counted(runs, 'run')} succeeded; less than half is nothing to expect"
    return None


def suggestion(
    agent_id: str, typical: Sequence[Day], left_out: Sequence[LeftOut], p99_bucket: int | None
) -> Suggestion:
    """The targets of an agent that lacks nothing.

    Args:
        agent_id: the agent.
        typical: its days, those left out excepted.
        left_out: those left out.
        p99_bucket: latency bucket of the 99th percentile of its timed runs on the typical days.
    """
    timed = [day for day in typical if day.timed]
    remark = _lacking_of_runtimes(timed)
    values = {
        "expected_success_rate": _success_rate(typical),
        "expected_failures_per_hour": _failures_per_hour(typical),
    }
    if remark is None and p99_bucket is not None:
        values |= _of_means(timed) | _of_p99(timed, p99_bucket)
        remark = _remark_on_long_runs(values)
    return Suggestion(
        agent_id=agent_id,
        runs=sum(day.runs for day in typical),
        days=len(typical),
        left_out=left_out,
        values=values,
        remark=remark,
    )


def _lacking_of_runtimes(days: Sequence[Day]) -> str | None:
    """Why nothing about runtimes is suggested; None where the days with timed runs are enough."""
    runs, means = sum(day.timed for day in days), [day.mean_s for day in days]
    nothing = "no target of runtimes"
    if len(days) < NEEDED_DAYS or runs < NEEDED_RUNS or not median(means):
        return f"{nothing}: the logs tell those of {counted(runs, 'run')} on {counted(len(days), 'day')}"
    if MADS * _deviation(means) > MOST_RUNTIME_SPREAD * median(means):
        return f"{nothing}: no day is typical, with means of {_seconds(min(means))} to {_seconds(max(means))} s"
    return None


def _failing(days: Sequence[Day]) -> list[tuple[date, str]]:
    shares = [day.failures / day.runs for day in days]
    usual = median(shares) if shares else 0.0
    most = usual + max(MADS * _deviation(shares), LEAST_FAILURE_GAP)
    return [
        (day.day, f"{share(day.successes / day.runs)} succeeded, usually {share(1 - usual)}")
        for day in days
        if day.failures >= LEAST_FAILURES and lower_end(day.failures, day.runs, math.sqrt) > most
    ]


def _slow(days: Sequence[Day]) -> list[tuple[date, str]]:
    medians = {day.day: day.p50_s for day in days if day.p50_s is not None}
    if not medians:
        return []
    usual = median(medians.values())
    most = usual + max(MADS * _deviation(list(medians.values())), LEAST_RUNTIME_GAP * usual)
    return [
        (day, f"median runtime {duration(found)}, usually {duration(usual)}")
        for day, found in medians.items()
        if found > most
    ]


def _deviation(values: Sequence[float]) -> float:
    """The median absolute deviation, scaled to the standard deviation of a normal distribution; 0 of nothing."""
    if not values:
        return 0.0
    middle = median(values)
    return MAD_TO_DEVIATION * median(abs(value - middle) for value in values)


def _success_rate(days: Sequence[Day]) -> Value:
    """The lower Wilson bound for as many runs as a day has, since scores and budgets judge a day."""
    runs, successes = sum(day.runs for day in days), sum(day.successes for day in days)
    of_a_day = max(round(median(day.runs for day in days)), NEEDED_RUNS)
    low, _ = interval(successes / runs * of_a_day, of_a_day, math.sqrt)
    value = math.floor(round(max(low, 0.0) * 1000, 6)) / 1000
    size = f"a day of {of_a_day:,} runs" if of_a_day > NEEDED_RUNS else f"{of_a_day} runs"
    return Value(value, f"{successes:,} of {runs:,} succeeded; lower 95% Wilson bound for {size}")


def _failures_per_hour(days: Sequence[Day]) -> Value:
    """As many as on the worst of the days, and no fewer than one a day."""
    worst = max(days, key=lambda day: day.failures)
    value = rounded_up(max(worst.failures, 1) / DAY_H, 2)
    if worst.failures > 1:
        return Value(value, f"{worst.failures:,} failures on {worst.day}, the most of a typical day")
    return Value(value, f"one a day; no typical day had {'more' if worst.failures else 'any'}")


def _of_means(days: Sequence[Day]) -> dict[str, Value]:
    """The mean runtime is what the score compares, so it is the median of the days' means, with their spread."""
    means = [day.mean_s for day in days]
    usual = median(means)
    spread = _deviation(means) / usual
    runtime = f"median of the means of {len(means)} days, {_seconds(min(means))} to {_seconds(max(means))} s"
    told = f"spread of the days' means, {share(spread)}"
    if MADS * spread <= LEAST_DEVIATION_ALLOWED:
        deviation = Value(LEAST_DEVIATION_ALLOWED, f"the default, above {MADS} times the {told}")
    else:
        deviation = Value(rounded_up(MADS * spread, 2), f"{MADS} times the {told} (scaled MAD)")
    return {"expected_runtime_s": Value(rounded_up(usual), runtime), "deviation_allowed": deviation}


def _of_p99(days: Sequence[Day], p99_bucket: int) -> dict[str, Value]:
    """Limits of single runs and of a day's p99; both are about runtimes of executions, not of model calls."""
    timed = sum(day.timed for day in days)
    sla_s = rounded_up(upper_end_us(p99_bucket) / 1e6)
    above = median(day.timed for day in days) / 100
    values = {"sla_s": Value(sla_s, f"p99 of {timed:,} timed runs")}
    if (breaches := math.ceil(LEAST_BREACHES * above)) > LEAST_BREACHES:
        told = f"{LEAST_BREACHES} times the {above:,.1f} runs a day above a p99"
        values["sla_breach_threshold"] = Value(breaches, told)
    baseline = Value(rounded_up(sla_s * 1e3), "the same p99; a p99 of more than three times it is degraded")
    return values | {"baseline_latency_ms": baseline}


def _remark_on_long_runs(values: Mapping[str, Value]) -> str | None:
    """That an agent's usual long runs will cost points, where they will."""
    ratio = values["sla_s"].value / values["expected_runtime_s"].value
    if ratio <= LONG_RUNNING_FACTOR:
        return None
    told = f"its p99 is {ratio:,.1f} times expected_runtime_s"
    return f"{told}: long runs cost stability unless long_running_factor is as high"


def rounded_up(value: float, digits: int = 3) -> float:
    """A positive value, up to so many digits that count."""
    exponent = math.floor(math.log10(value)) - digits + 1
    return float(f"{math.ceil(round(value / 10.0**exponent, 6))}e{exponent}")


def _seconds(value: float) -> str:
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
