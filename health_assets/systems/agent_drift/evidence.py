"""Evidence of drift: likelihood ratios of an agent's last hours, against its own past before them.

Source, in our own words: an *e-process* is what a bet against a hypothesis has grown to from 1. While the hypothesis is
true it is not expected to grow, whenever one looks. A sum of such bets, one begun at every hour, is an *e-detector*
(Shin, Ramdas, Rinaldo, "E-detectors: a nonparametric framework for sequential change detection", 2022): while nothing
changes, it takes at least c hours on average until the sum reaches c. Leaving out bets only makes it smaller.

Here bets are looked at that began 1, 2, 4, ... hours ago. Each is the likelihood ratio of a mixture of alternatives to
the worst case of "no worse than before", of the counts since its start:

| measure | counts | no worse than before |
|---|---|---|
| success_rate | failures among executions | a share up to the bound of the 96 hours before the start, and the margin |
| other shares | those that count among runs, or a tool's among calls | the same; for some that of the same hours, too |
| volume_drop | executions | at least the fewest in each part of these hours on the six days before, less the margin |
| volume_rise | executions | at most the most in them, and the margin |

The alternatives lie beyond the worst case, so that a better truth makes the ratio smaller yet. The bound is two
standard errors from the estimate, so that an estimated past keeps the promise.

Executions that hang together count for less: the ratio is raised to 1 / phi, where phi, at least 1, is how much more
the past's hours scatter than independent executions do. By Jensen's inequality the power is no more than 1 on average,
either. Of shares, incidents are left out of the past: days whose share is above that of the median day by more than ten
points, and by more than four standard errors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from health_assets.systems.agent_drift.names import (
    DAY_HOURS,
    FEWEST_RUNS,
    PARTS,
    SPREAD_UNIT,
)
from health_assets.systems.agent_drift.past import Past

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

SHARE_HOURS = (1, 2, 4, 8, 12, 24, 48, 72)
"""Hours since the starts that are looked at, of the success rate."""
VOLUME_HOURS = PARTS[1:]
"""The same of volumes, which are compared with the same hours of days before."""
SHARE_DAYS, VOLUME_DAYS = 4, 6
FEWEST_SAME_HOURS = 20
"""Runs in the same hours of the days before that tell what is usual at that time of the day."""
ERRORS = 2.0
"""Standard errors between an estimated past and its bound."""
FEW_EVENTS, MOST_TOGETHER = 10, 5.0
"""A past with fewer failures does not show how many come together; up to so many executions then count as one."""
ALTERNATIVE_SHARES = (0.05, 0.2, 0.6)
"""How much of the way from the worst case to failure of all the alternatives lie."""
VOLUME_MARGIN = 0.25
LESS, MORE = (0.5, 0.1), (2.0, 5.0)
"""Alternatives of volumes, as multiples of the worst case."""
INCIDENT_POINTS, INCIDENT_ERRORS, INCIDENT_PRIOR = 0.1, 4.0, 0.05


@dataclass(frozen=True, kw_only=True)
class Bets:
    """The bets of a measure that began so many hours ago, one row an hour and one column an agent.

    Args:
        hours: hours since the start.
        has_past: whether there is enough to compare with.
        log_ratio: logarithm of what the bet has grown to; 0 where there is not enough.
        runs: executions since the start.
        value: what they come to.
        baseline_runs: executions before.
        baseline: what those came to.
        limit_value: the worst value that would still be as before.
    """

    hours: int
    has_past: Booleans
    log_ratio: Floats
    runs: Floats
    value: Floats
    baseline_runs: Floats
    baseline: Floats
    limit_value: Floats

    @property
    def complement(self) -> "Bets":
        """The same bets about the share of the other runs."""
        return replace(self, value=1 - self.value, baseline=1 - self.baseline, limit_value=1 - self.limit_value)


def log_evidence(bets: Sequence[Bets]) -> Floats:
    """Logarithm of the sum of what the bets have grown to."""
    return _log_sum(np.stack([np.where(own.has_past, own.log_ratio, -np.inf) for own in bets]))


def _log_sum(logs: Floats) -> Floats:
    greatest = logs.max(axis=0)
    finite = np.where(np.isfinite(greatest), greatest, 0.0)
    return finite + np.log(np.exp(logs - finite).sum(axis=0))


# -- shares ------------------------------------------------------------------------------------------------------------


def share_bets(past: Past, hours: int, margin: float, *, is_by_time_of_day: bool = False) -> Bets:
    """The bets on a share of runs that began so many hours ago.

    Args:
        past: the agents' counts.
        hours: how many hours ago.
        margin: largest difference that does not matter.
        is_by_time_of_day: whether the share must be worse than in the same hours of the days before, too.
    """
    runs, events = (past.between(name, 0, hours).astype(float) for name in ("runs", "events"))
    days = [
        {name: past.between(name, hours + DAY_HOURS * day, hours + DAY_HOURS * (day + 1)) for name in past.totals}
        for day in range(SHARE_DAYS)
    ]
    by_day = {name: np.stack([day[name] for day in days]).astype(float) for name in past.totals}
    is_counted = ~incidents(by_day["runs"], by_day["events"])
    before = {name: (values * is_counted).sum(axis=0) for name, values in by_day.items()}
    baseline_runs, share = before["runs"], before["events"] / before["runs"]
    phi = _dispersion(before, share)
    upper = _upper_share(share, baseline_runs / phi)
    if is_by_time_of_day and hours < DAY_HOURS:
        upper = np.fmax(upper, _upper_share_of_same_hours(past, hours, is_counted, phi))
    worst = np.minimum(upper + margin, 1.0)
    has_past = (baseline_runs >= FEWEST_RUNS) & (worst < 1)
    logs = [_log_likelihood_ratio(events, runs, worst, worst + (1 - worst) * part) / phi for part in ALTERNATIVE_SHARES]
    return Bets(
        hours=hours,
        has_past=has_past,
        log_ratio=_mixture(logs, has_past),
        runs=runs,
        value=events / runs,
        baseline_runs=baseline_runs,
        baseline=share,
        limit_value=worst,
    )


def _upper_share_of_same_hours(past: Past, hours: int, is_counted: Booleans, phi: Floats) -> Floats:
    """The bound of the same hours of the days before; nan where these have too few runs to tell."""
    runs, events = (
        sum(
            past.between(name, DAY_HOURS * day, DAY_HOURS * day + hours) * is_counted[day - 1]
            for day in range(1, SHARE_DAYS + 1)
        )
        for name in ("runs", "events")
    )
    return np.where(runs >= FEWEST_SAME_HOURS, _upper_share(events / runs, runs / phi), np.nan)


def incidents(runs: Floats, events: Floats) -> Booleans:
    """Which days have far more events than the median day, of days in the first dimension."""
    median = _median(np.where(runs > 0, events / runs, np.nan))
    expected = np.minimum(median + INCIDENT_PRIOR, 0.5)
    error = np.sqrt(runs * expected * (1 - expected))
    return (events > runs * (median + INCIDENT_POINTS)) & (events > runs * expected + INCIDENT_ERRORS * error)


def _median(values: Floats) -> Floats:
    """The median of the first dimension without nan, of an even number the mean of the two in the middle."""
    ordered = np.sort(values, axis=0)
    count = np.isfinite(values).sum(axis=0)
    middle = [np.maximum(0, (count - 1) // 2), np.minimum(count // 2, len(values) - 1)]
    low, high = (np.take_along_axis(ordered, place[None], axis=0)[0] for place in middle)
    return (low + high) / 2


def _dispersion(before: dict[str, Floats], share: Floats) -> Floats:
    """How much more the hours' events scatter than those of independent executions, at least 1.

    A few events do not show whether they come together, so then they are taken to.
    """
    squares = before["spread"] * SPREAD_UNIT - before["events"] * share
    phi = squares / (share * (1 - share) * (before["cells"] - 1))
    unknown = np.clip(before["runs"] / before["cells"], 1.0, MOST_TOGETHER)
    least = np.where(before["events"] < FEW_EVENTS, unknown, 1.0)
    return np.where(np.isfinite(phi), np.maximum(phi, least), least)


def _upper_share(share: Floats, runs: Floats) -> Floats:
    """The upper end of Wilson's interval."""
    square = ERRORS * ERRORS / runs
    return (share + square / 2 + np.sqrt(square * (share * (1 - share) + square / 4))) / (1 + square)


def _log_likelihood_ratio(events: Floats, runs: Floats, share: Floats, other: Floats) -> Floats:
    return events * np.log(other / share) + (runs - events) * np.log((1 - other) / (1 - share))


def _mixture(logs: Sequence[Floats], has_past: Booleans) -> Floats:
    mixed = _log_sum(np.stack([np.where(has_past, own, 0.0) for own in logs])) - np.log(len(logs))
    return np.where(has_past, mixed, 0.0)


# -- volume ------------------------------------------------------------------------------------------------------------


def volume_bets(past: Past) -> Iterator[tuple[Bets, Bets]]:
    """The bets on fewer executions than before, and on more, by their start."""
    by_day = _parts_of_days(past)
    phi = _dispersion_of_volume(by_day[1:])
    windows = by_day.cumsum(axis=1)
    # a weekend without work shows in parts of the day alone: a window of a whole day begins on the day before it
    least_of_parts = by_day[1:].min(axis=0).cumsum(axis=0)
    has_past = windows[1:, -1].sum(axis=0) >= FEWEST_RUNS
    for place, hours in enumerate(VOLUME_HOURS):
        runs, before, least = windows[0, place], windows[1:, place], least_of_parts[place]
        greatest, total = before.max(axis=0), before.sum(axis=0)
        fewest = np.maximum(0.0, least - np.sqrt(phi * least) / 2) * (1 - VOLUME_MARGIN)
        most = (greatest + np.sqrt(phi * greatest) / 2 + 1.1 * phi) * (1 + VOLUME_MARGIN)
        for_drop = [_log_rate_ratio(runs, fewest, factor) / phi for factor in LESS]
        for_rise = [_log_rate_ratio(runs, most, factor) / phi for factor in MORE]
        common = {"hours": hours, "has_past": has_past, "runs": runs, "value": runs / hours, "baseline_runs": total}
        common["baseline"] = total / (VOLUME_DAYS * hours)
        yield (
            Bets(**common, log_ratio=_mixture(for_drop, has_past), limit_value=fewest / hours),
            Bets(**common, log_ratio=_mixture(for_rise, has_past), limit_value=most / hours),
        )


def _parts_of_days(past: Past) -> Floats:
    """Executions by day back, from the last day on, and by part of it (`PARTS`), before the axes of hour and agent."""
    return np.stack([
        np.stack([past.between("runs", DAY_HOURS * day + start, DAY_HOURS * day + end)
                  for start, end in pairwise(PARTS)])
        for day in range(VOLUME_DAYS + 1)
    ]).astype(float)  # fmt: skip


def _log_rate_ratio(runs: Floats, worst: Floats, factor: float) -> Floats:
    return runs * np.log(factor) - (factor - 1) * worst


def _dispersion_of_volume(by_day: Floats) -> Floats:
    """How much more two days in a row differ, part by part, than those of independent executions: at least 1.

    Of the pairs of days the median, so that weekends are no dispersion.
    """
    newer, older = by_day[:-1], by_day[1:]
    squares = np.where(newer + older > 0, (newer - older) ** 2 / np.maximum(newer + older, 1), 0.0)
    counted = (newer + older > 0).sum(axis=1)
    return np.maximum(np.median(squares.sum(axis=1) / np.maximum(counted, 1), axis=0), 1.0)
