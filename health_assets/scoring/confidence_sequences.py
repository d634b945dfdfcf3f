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

**Ratios of means.** Of pairs of numbers whose means have the ratio t, x - t y has the mean 0, so that M(0) above of
these differences is such a martingale (Fieller, "Some problems in interval estimation", 1954). The ratios at which it
is below a bound lie between the roots of a quadratic equation. They are unbounded where the mean of y is not told apart
from 0. Of two versions, the bound of the product is divided between both so that their ratios lie farthest apart.

**Quantiles.** Howard and Ramdas, "Sequential estimation of quantiles with applications to A/B testing and best-arm
identification" (2022). Count the numbers up to the true quantile, of those equal to it so many that the chance of each
to be counted is p: then M(p) above, with the number counted as s, is a martingale from 1, whatever the distribution. So
the counts s at which it is below 1 / alpha are ranks between which the true quantile lies. The Beta distribution has
the mean p.

What these assume: that a version's runs have the same mean whenever they run, whatever ran before.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_LOG = 40.0
"""The greatest logarithm of a multiplier, in the search for the end of an interval; the least one is its negative."""
CELLS_AT_ONCE = 8000
"""Greater arrays are several times slower: they fit no cache, and their memory is fetched anew each time."""
NEWTON_STEPS = 12
"""After as many steps of a search, every second one is by halves."""
MOST_STEPS = 150
NEAR = 1e-11
"""The last step of the search."""
LEAST_ABOVE = 1e-6
"""Of what is allowed above the least cost, a share that is too near to rounding for Newton's method."""
ANGLES = 16
"""At which the division of a bound between two versions is tried, before the best one is searched nearby."""
GOLDEN_STEPS = 24
GOLDEN = (math.sqrt(5) - 1) / 2
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


@dataclass(frozen=True, kw_only=True)
class Ratios:
    """Ratios of two means of many versions, each of pairs of numbers.

    Args:
        runs: how many pairs each has.
        numerator_variance: variance of the numbers above the line, by the square of their mean.
        denominator_variance: the same of those below.
        covariance: of both, by the product of their means.
    """

    runs: Floats
    numerator_variance: Floats
    denominator_variance: Floats
    covariance: Floats

    @property
    def spread(self) -> Floats:
        """The variance of the ratio, by the square of it, in the limit of many."""
        return self.numerator_variance + self.denominator_variance - 2 * self.covariance

    @property
    def greatest_variance(self) -> Floats:
        """The greater one of both."""
        return np.maximum(self.numerator_variance, self.denominator_variance)

    def times(self, factor: Floats) -> "Ratios":
        """The same with all variances times a factor."""
        return Ratios(
            runs=self.runs,
            numerator_variance=self.numerator_variance * factor,
            denominator_variance=self.denominator_variance * factor,
            covariance=self.covariance * factor,
        )

    def only(self, places: NDArray[np.intp]) -> "Ratios":
        """Some of the versions."""
        return Ratios(
            runs=self.runs[places],
            numerator_variance=self.numerator_variance[places],
            denominator_variance=self.denominator_variance[places],
            covariance=self.covariance[places],
        )

    def above(self, share: Floats) -> Floats:
        """The logarithm of the greater root x of (1 - x)^2 = share (a - 2 c x + b x^2): how far above the estimate."""
        return self._logarithm_of_root(share, self.denominator_variance)

    def below(self, share: Floats) -> Floats:
        """The logarithm of the lesser root, negated: that of the inverse ratio above."""
        return self._logarithm_of_root(share, self.numerator_variance)

    def _logarithm_of_root(self, share: Floats, variance: Floats) -> Floats:
        common = self.numerator_variance * self.denominator_variance - self.covariance**2
        root = np.sqrt(np.maximum(0.0, share * (self.spread - share * common)))
        return np.log((1 - share * self.covariance + root) / (1 - share * variance))


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

    At the greatest, the logarithms have slopes in proportion to the weights (Lagrange). With a slope of m, the share of
    `lower` solves m p^2 - (n + m) p + s = 0, and the share of failures of `higher` likewise.
    """
    both = np.vstack([weights.T, weights.T])
    runs = np.where(both > 0, np.vstack([lower.runs.T, higher.runs.T]), 0.0)
    counts = np.where(both > 0, np.vstack([lower.successes.T, (higher.runs - higher.successes).T]), 0.0)
    positive = np.where(both > 0, both, 1.0)
    found = [
        _multiplier(runs[:, few], counts[:, few], positive[:, few], bound[few])
        for few in _slices(len(bound), CELLS_AT_ONCE // len(both))
    ]
    shares = _with_slope(runs, counts, np.concatenate([*found, np.zeros(0)]) * positive)
    return weights.sum(axis=1) - (both * shares).sum(axis=0)


def _slices(count: int, length: int) -> Iterator[slice]:
    return (slice(first, first + length) for first in range(0, count, length))


def _multiplier(runs: Floats, counts: Floats, weights: Floats, bound: Floats) -> Floats:
    """By what to multiply the weights for slopes at which the costs of each column add up to the bound.

    The logarithm of what is above the least cost is nearly linear in that of the multiplier, so Newton's method takes
    few steps. Where one leads out of what is known to hold the multiplier, so little is above that rounding hides it,
    or Newton's steps were many, that is halved.
    """
    least = _cost(counts, runs, counts / np.maximum(runs, 1e-300)).sum(axis=0)
    allowed = bound - least
    is_found = ~counts.any(axis=0) | ~np.isfinite(allowed)  # where every multiplier is as good
    rates = (counts + 0.5) / (runs + 1)
    found = np.log(2 * allowed / (weights**2 * rates * (1 - rates) / (runs + 1)).sum(axis=0)) / 2  # of a normal one
    low, high = np.full(bound.shape, -MOST_LOG), np.full(bound.shape, MOST_LOG)
    with np.errstate(divide="ignore", invalid="ignore"):
        for place in range(MOST_STEPS):
            slope = np.exp(found) * weights
            share = _with_slope(runs, counts, slope)
            above = _cost(counts, runs, share).sum(axis=0) - least
            growth = _growth(runs, counts, slope, share).sum(axis=0)
            is_inside = above <= allowed
            low, high = np.where(is_inside, found, low), np.where(is_inside, high, found)
            newton = found + np.where(is_inside, np.log(allowed / above) * above, allowed - above) / growth
            is_newton = (newton >= low) & (newton <= high) & (above > LEAST_ABOVE * allowed)
            following = np.where(is_newton & (place < NEWTON_STEPS or place % 2 == 0), newton, (low + high) / 2)
            following = np.where(is_found, found, following)  # so that no column depends on the others
            is_found |= np.abs(following - found) <= NEAR
            found = following
            if is_found.all():
                break
    return np.exp(found)


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


def _with_slope(runs: Floats, count: Floats, slope: Floats) -> Floats:
    """The share below count / runs at which the logarithm of the likelihood has this slope."""
    return 2 * count / (runs + slope + _root(runs, count, slope))


def _growth(runs: Floats, count: Floats, slope: Floats, share: Floats) -> Floats:
    """By how much the cost of such a share grows with the logarithm of the slope."""
    return slope * slope * share * (1 - share) / _root(runs, count, slope)


def _root(runs: Floats, count: Floats, slope: Floats) -> Floats:
    total = runs + slope
    return np.sqrt(np.maximum(0.0, total * total - 4 * slope * count))


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


def difference_of_log_ratios(baseline: Ratios, candidate: Ratios, alpha: float) -> tuple[Floats, Floats]:
    """How far below and above its estimate the candidate's ratio by the baseline's may lie, as logarithms.

    Infinite where a ratio may be 0 or is unbounded.

    Args:
        baseline: one version of each pair.
        candidate: the other.
        alpha: probability that the true value is ever outside, in the limit of many numbers.
    """
    mixture_variance = _mixture_variance(alpha)
    weights = [1 + side.runs * mixture_variance for side in (baseline, candidate)]
    bound = math.log(1 / alpha) + (np.log(weights[0]) + np.log(weights[1])) / 2
    old, new = (
        side.times(2 * bound * weight / (side.runs * side.runs * mixture_variance))
        for side, weight in zip((baseline, candidate), weights, strict=True)
    )
    bounded = np.flatnonzero(np.maximum(old.greatest_variance, new.greatest_variance) < 1)
    below, above = (np.full(bound.shape, np.inf) for _ in range(2))
    for few in _slices(len(bounded), CELLS_AT_ONCE):
        rows = bounded[few]
        own_old, own_new = old.only(rows), new.only(rows)
        below[rows] = _greatest_sum(own_old.above, own_new.below)
        above[rows] = _greatest_sum(own_old.below, own_new.above)
    return below, above


def _greatest_sum(one: Callable[[Floats], Floats], other: Callable[[Floats], Floats]) -> Floats:
    """The greatest sum of both, of which one has a share of the bound and the other the rest."""

    def total(angle: Floats) -> Floats:
        share = np.sin(angle) ** 2
        return one(share) + other(1 - share)

    step = math.pi / 2 / ANGLES
    tried = np.array([total(np.full(1, place * step)) for place in range(ANGLES + 1)])
    best = tried.argmax(axis=0)
    low, high = np.maximum(best - 1, 0) * step, np.minimum(best + 1, ANGLES) * step
    for _ in range(GOLDEN_STEPS):
        lower, higher = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        is_higher = total(higher) > total(lower)
        low, high = np.where(is_higher, lower, low), np.where(is_higher, high, higher)
    return np.maximum(total((low + high) / 2), tried.max(axis=0))


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
