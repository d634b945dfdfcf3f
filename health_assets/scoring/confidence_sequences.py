"""Confidence sequences: intervals that hold at all times at once, however often and whenever somebody looks.

Source, in our own words: the method of mixtures, as in Robbins, "Statistical methods related to the law of the iterated
logarithm" (1970); for means, Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and
asymptotic confidence sequences" (2021).

**Shares.** Of n runs, s succeeded. For each share p the ratio of a mixture of all shares (a Beta distribution) to p,

    M(p) = B(a + s, b + n - s) / B(a, b) / (p^s (1 - p)^(n - s))

is a martingale from 1 where p is the true share. By Ville's inequality it ever reaches 1 / alpha with a probability of
at most alpha. So the shares at which it is below 1 / alpha are a confidence sequence. The sums decide it: the order of
the runs does not matter, so sums of hours are enough. The product of two such martingales, of two versions, is one,
too: the pairs of shares at which it is below 1 / alpha hold the true pair, and their differences the true difference.
The same product over several groups of runs gives an interval for a weighted sum of differences; it is wider.

**Mixes.** Where two versions run groups of tasks with the same shares, the product of two mixtures of all shares
(Dirichlet distributions), by the likelihood of any shares, is a martingale from 1; by the greatest likelihood it is at
most as much (Wasserman, Ramdas and Balakrishnan, "Universal inference", 2020).

**Means.** Of numbers with any distribution the same holds in the limit of many, with a normal distribution as mixture:

    M(m) = exp(n^2 r (x - m)^2 / (2 v (1 + n r))) / sqrt(1 + n r)

where x is the mean, v the variance, and r the mixture's variance in units of v. The pairs of means at which the product
is below 1 / alpha are an ellipse.

**Quantiles.** Howard and Ramdas, "Sequential estimation of quantiles with applications to A/B testing and best-arm
identification" (2022). Count the numbers up to the true quantile, of those equal to it so many that the chance of each
to be counted is p: then M(p) above, with the number counted as s, is a martingale from 1, whatever the distribution. So
the counts s at which it is below 1 / alpha are ranks between which the true quantile lies. The Beta distribution has
the mean p.

What these assume: that a version's runs have the same mean whenever they run, whatever ran before.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
HALVINGS = 60
"""Of the search for the end of an interval, over the logarithm of a multiplier from e^-40 to e^40."""
MOST_FEWEST = 10_000
"""Enough numbers for both ends of any quantile up to the 99.9th percentile."""
TIGHTEST_AT = 500
"""The number of runs at which intervals of means are tightest; others are nearly so."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Runs and successes of many versions, and what was expected of them before the first of these runs.

    Args:
        runs: number of runs of each.
        successes: number that succeeded.
        prior_successes: `a` of the Beta distribution, above 0.
        prior_failures: `b`, above 0.
    """

    runs: Floats
    successes: Floats
    prior_successes: Floats
    prior_failures: Floats

    @property
    def log_mixture(self) -> Floats:
        """ln(B(a + s, b + n - s) / B(a, b))."""
        from scipy.special import betaln  # a large import, which commands that compute nothing have no need of

        after = betaln(self.prior_successes + self.successes, self.prior_failures + self.runs - self.successes)
        return after - betaln(self.prior_successes, self.prior_failures)


@dataclass(frozen=True)
class Means:
    """Numbers of many versions.

    Args:
        runs: how many numbers each has.
        mean: their mean.
        variance: their variance.
    """

    runs: Floats
    mean: Floats
    variance: Floats


def difference_of_shares(baseline: Shares, candidate: Shares, alpha: float) -> tuple[Floats, Floats]:
    """Lower and upper ends, -1 to 1, of the candidate's share less the baseline's.

    Args:
        baseline: one version of each pair.
        candidate: the other.
        alpha: probability that the true difference is ever outside.
    """
    weights = np.ones((len(baseline.runs), 1))
    return difference_of_weighted_shares(_as_one_group(baseline), _as_one_group(candidate), weights, alpha)


def _as_one_group(shares: Shares) -> Shares:
    return Shares(
        runs=shares.runs[:, np.newaxis],
        successes=shares.successes[:, np.newaxis],
        prior_successes=shares.prior_successes[:, np.newaxis],
        prior_failures=shares.prior_failures[:, np.newaxis],
    )


def difference_of_weighted_shares(
    baseline: Shares, candidate: Shares, weights: Floats, alpha: float
) -> tuple[Floats, Floats]:
    """Lower and upper ends of the weighted sum, over groups, of the candidate's share less the baseline's.

    Args:
        baseline: one version of each pair: a row a pair, a column a group.
        candidate: the other.
        weights: of the groups, which add up to 1; of a group without any its runs do not count.
        alpha: probability that the true sum is ever outside.
    """
    mixtures = np.where(weights > 0, baseline.log_mixture + candidate.log_mixture, 0.0)
    bound = math.log(1 / alpha) - mixtures.sum(axis=1)
    return (
        -_greatest_difference(candidate, baseline, weights, bound),
        _greatest_difference(baseline, candidate, weights, bound),
    )


def _greatest_difference(lower: Shares, higher: Shares, weights: Floats, bound: Floats) -> Floats:
    """The greatest sum of weights (p_higher - p_lower) where logarithms of all likelihoods add up to at least -bound.

    At the greatest, the logarithms have slopes in proportion to the weights (Lagrange), whose factor is searched for.
    With a slope of m, the share of `lower` solves m p^2 - (n + m) p + s = 0, and the share of failures of `higher`
    likewise.
    """
    failures = higher.runs - higher.successes
    is_counted = weights > 0
    log_weights = np.log(np.where(is_counted, weights, 1.0))
    low, high = np.full(bound.shape, -40.0), np.full(bound.shape, 40.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        slope = middle[:, np.newaxis] + log_weights
        share, other = _with_slope(lower.runs, lower.successes, slope), _with_slope(higher.runs, failures, slope)
        cost = _cost(lower.successes, lower.runs, share) + _cost(failures, higher.runs, other)
        is_inside = np.where(is_counted, cost, 0.0).sum(axis=1) <= bound
        low, high = np.where(is_inside, middle, low), np.where(is_inside, high, middle)
    slope = low[:, np.newaxis] + log_weights
    gap = 1 - _with_slope(lower.runs, lower.successes, slope) - _with_slope(higher.runs, failures, slope)
    return (weights * gap).sum(axis=1)


@dataclass(frozen=True)
class Mixes:
    """Runs of many versions by group, and what was expected of them: a row a version, a column a group.

    Args:
        runs: number of runs.
        prior_runs: parameters of the Dirichlet distribution, above 0.
    """

    runs: Floats
    prior_runs: Floats

    @property
    def log_mixture(self) -> Floats:
        """The logarithm of the probability of the runs, in their order, by the mixture of all shares."""
        from scipy.special import gammaln

        total, prior = self.runs.sum(axis=1), self.prior_runs.sum(axis=1)
        groups = gammaln(self.prior_runs + self.runs) - gammaln(self.prior_runs)
        return groups.sum(axis=1) + gammaln(prior) - gammaln(prior + total)


def log_evidence_of_other_mix(baseline: Mixes, candidate: Mixes) -> Floats:
    """The logarithm of the evidence that two versions run the groups with different shares.

    If they do not, it ever reaches ln(1 / alpha) with a probability of at most alpha.
    """
    runs = baseline.runs + candidate.runs
    share = runs / np.maximum(runs.sum(axis=1, keepdims=True), 1e-300)
    return baseline.log_mixture + candidate.log_mixture - _times_log(runs, share).sum(axis=1)


def _with_slope(runs: Floats, count: Floats, log_slope: Floats) -> Floats:
    """The share below count / runs at which the logarithm of the likelihood has this slope."""
    slope = np.exp(log_slope)
    total = runs + slope
    return 2 * count / (total + np.sqrt(np.maximum(0.0, total * total - 4 * slope * count)))


def _cost(count: Floats, runs: Floats, share: Floats) -> Floats:
    """-ln(share^count (1 - share)^(runs - count)), where 0^0 is 1."""
    return -_times_log(count, share) - _times_log(runs - count, 1 - share)


def _times_log(count: Floats, share: Floats) -> Floats:
    return np.where(count > 0, count * np.log(np.where(share > 0, share, np.finfo(float).tiny)), 0.0)


def difference_of_means(baseline: Means, candidate: Means, alpha: float) -> tuple[Floats, Floats]:
    """Lower and upper ends of the candidate's mean less the baseline's; without end where one has no number.

    Args:
        baseline: one version of each pair.
        candidate: the other.
        alpha: probability that the true difference is ever outside, in the limit of many numbers.
    """
    ratio = _mixture_variance(alpha)
    bound = math.log(1 / alpha) + (np.log1p(baseline.runs * ratio) + np.log1p(candidate.runs * ratio)) / 2
    half = np.sqrt(bound * (_spread(baseline, ratio) + _spread(candidate, ratio)))
    difference = candidate.mean - baseline.mean
    return difference - half, difference + half


def quantile_ranks(runs: Integers, share: float, alpha: float) -> tuple[Integers, Integers]:
    """The ranks, from 0 to runs + 1, of numbers between which the true quantile lies, both included.

    Rank 0 is below all numbers and runs + 1 above them: there are too few for an end.

    Args:
        runs: how many numbers there are, at least 1.
        share: of the quantile, between 0 and 1.
        alpha: probability that the true quantile is ever outside.
    """
    each, places = np.unique(runs, return_inverse=True)
    likely = np.round(each * share).astype(np.int64)
    low = _last_outside(each, share, alpha, likely, np.full_like(likely, -1)) + 1
    high = _last_outside(each, share, alpha, likely, each + 1)
    return low[places], high[places]


@cache
def fewest_for_quantile(share: float, alpha: float) -> int:
    """The number of numbers from which on both ends of a quantile's interval are among them."""
    runs = np.arange(1, MOST_FEWEST)
    low, high = quantile_ranks(runs, share, alpha)
    return int(runs[(low > 0) & (high <= runs)][0])


def _last_outside(runs: Integers, share: float, alpha: float, inside: Integers, outside: Integers) -> Integers:
    """The count nearest to `inside` at which M is at least 1 / alpha, between it and `outside`, by bisection."""
    while (np.abs(outside - inside) > 1).any():
        middle = (inside + outside) // 2
        is_inside = _log_martingale(runs, middle, share, alpha) < -math.log(alpha)
        inside, outside = np.where(is_inside, middle, inside), np.where(is_inside, outside, middle)
    return outside


def _log_martingale(runs: Integers, count: Integers, share: float, alpha: float) -> Floats:
    weight = 1 / _mixture_variance(alpha) - 1
    mixture = Shares(
        runs=runs.astype(np.float64),
        successes=count.astype(np.float64),
        prior_successes=np.full(runs.shape, weight * share),
        prior_failures=np.full(runs.shape, weight * (1 - share)),
    )
    return mixture.log_mixture - count * math.log(share) - (runs - count) * math.log1p(-share)


def _mixture_variance(alpha: float) -> float:
    return (-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / TIGHTEST_AT


def _spread(means: Means, ratio: float) -> Floats:
    """1 / k, where the logarithm of M grows by k times the square of the distance from the mean."""
    runs = np.where(means.runs > 0, means.runs, np.nan)
    spread = 2 * means.variance * (1 + runs * ratio) / (runs * runs * ratio)
    return np.where(means.runs > 0, spread, np.inf)
