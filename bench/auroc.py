"""The area under the ROC curve (AUROC) of risks against failures, with 95 % intervals after DeLong.

They take runs as independent of each other. What is scored lives in `signals`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, rankdata

Z_95 = float(norm.ppf(0.975))


class Interval(NamedTuple):
    """An estimate with the bounds of its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def auroc(has_failed: Sequence[bool], risks: Sequence[float]) -> Interval:
    """How often a failed run has a greater risk than one that succeeded, a tie as half.

    Raises:
        ValueError: fewer than two runs failed, or fewer than two succeeded.
    """
    of_failed, of_succeeded = _shares_beaten(has_failed, risks)
    error = _standard_error(of_failed, of_succeeded)
    area = float(of_failed.mean())
    return Interval(area, max(0.0, area - Z_95 * error), min(1.0, area + Z_95 * error))


def auroc_difference(has_failed: Sequence[bool], risks: Sequence[float], baseline: Sequence[float]) -> Interval:
    """The area of risks minus that of a baseline over the same runs, with the interval of the paired difference.

    Raises:
        ValueError: as of `auroc`.
    """
    pairs = zip(_shares_beaten(has_failed, risks), _shares_beaten(has_failed, baseline), strict=True)
    of_failed, of_succeeded = (ours - theirs for ours, theirs in pairs)
    error, difference = _standard_error(of_failed, of_succeeded), float(of_failed.mean())
    return Interval(difference, difference - Z_95 * error, difference + Z_95 * error)


def auroc_within(has_failed: Sequence[bool], risks: Sequence[float], strata: Sequence[int]) -> Interval:
    """The area over pairs of a failure and a success of the same stratum alone.

    Strata with fewer than two of either are left out, since nobody knows how far their area is from the true one.

    Raises:
        ValueError: no stratum is left.
    """
    failed, values, numbers = np.asarray(has_failed, dtype=bool), np.asarray(risks, dtype=float), np.asarray(strata)
    pairs, areas, variances = [], [], []
    for number in np.unique(numbers):
        own = numbers == number
        count, others = int(failed[own].sum()), int((~failed[own]).sum())
        if min(count, others) < 2:
            continue
        of_failed, of_succeeded = _shares_beaten(failed[own], values[own])
        pairs.append(count * others)
        areas.append(of_failed.mean())
        variances.append(_standard_error(of_failed, of_succeeded) ** 2)
    if not pairs:
        raise ValueError("no stratum has two runs that failed and two that succeeded")
    weights = np.asarray(pairs) / sum(pairs)
    area, error = float(weights @ areas), float(np.sqrt(weights**2 @ variances))
    return Interval(area, max(0.0, area - Z_95 * error), min(1.0, area + Z_95 * error))


def fifths(values: Sequence[float]) -> list[int]:
    """The fifth of the values in which each one lies, 0 to 4; equal values lie in the same."""
    return [int(place) for place in np.searchsorted(np.quantile(values, (0.2, 0.4, 0.6, 0.8)), values)]


def _shares_beaten(has_failed: Sequence[bool], risks: Sequence[float]) -> tuple[Any, Any]:
    """Of each failure the share of successes below it, of each success that of failures above it; ties as half."""
    failed, values = np.asarray(has_failed, dtype=bool), np.asarray(risks, dtype=float)
    count, others = int(failed.sum()), int((~failed).sum())
    if min(count, others) < 2:
        raise ValueError("an area needs two runs that failed and two that succeeded")
    ranks = rankdata(values)
    of_failed = (ranks[failed] - rankdata(values[failed])) / others
    of_succeeded = 1 - (ranks[~failed] - rankdata(values[~failed])) / count
    return of_failed, of_succeeded


def _standard_error(of_failed: Any, of_succeeded: Any) -> float:
    return float(np.sqrt(of_failed.var(ddof=1) / len(of_failed) + of_succeeded.var(ddof=1) / len(of_succeeded)))
