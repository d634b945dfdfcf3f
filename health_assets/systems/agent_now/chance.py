"""Probability of failures at the expected success rate: the exact upper tail of the binomial distribution.

Of n executions that each fail with probability q = 1 - expected_success_rate, at least k fail with

    P(X >= k) = sum over j from k to n of C(n, j) q^j (1 - q)^(n - j)

which is the regularized incomplete beta function I_q(k, n - k + 1). A streak of k failures is k of k. No SQL engine has
this function, and agents share few different (k, n, rate). So these are computed here, once each,
and every engine has the same value to the last bit.
"""

from fractions import Fraction
from math import comb

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from health_assets.scoring.exact_shares import exact_share

CLOSE = 1e-9
"""Relative distance from the threshold within which exact fractions decide, far above the tail's own error."""

KEYS = {"failures": pa.int64(), "executions": pa.int64(), "expected_success_rate": pa.float64()}


def with_chances(cases: pa.Table, threshold: float) -> pa.Table:
    """Add `chance` and `is_improbable` to distinct cases.

    Args:
        cases: the columns of `KEYS`.
        threshold: a smaller chance is improbable.
    """
    from scipy.special import betainc  # a large import, which commands that compute nothing have no need of

    failures, executions, rates = (cases[name].to_numpy() for name in KEYS)
    own, place = np.unique(rates, return_inverse=True)
    failure_rates = np.array([float(1 - exact_share(float(rate))) for rate in own])[place]
    chances = np.ones(len(failures))
    some = failures > 0
    chances[some] = betainc(failures[some], (executions - failures + 1)[some], failure_rates[some])
    is_improbable = chances < threshold
    for row in np.flatnonzero(np.abs(chances - threshold) <= CLOSE * threshold):
        exact = exact_chance(int(failures[row]), int(executions[row]), float(rates[row]))
        is_improbable[row] = exact < exact_share(threshold)
    return _table(cases, chances, is_improbable)


def exact_chance(failures: int, executions: int, expected_success_rate: float) -> Fraction:
    """P(X >= failures) without any rounding."""
    success = exact_share(expected_success_rate)
    failure = 1 - success
    terms = (
        comb(executions, count) * failure**count * success ** (executions - count)
        for count in range(failures, executions + 1)
    )
    return sum(terms, Fraction(0))


def _table(cases: pa.Table, chances: NDArray[np.float64], is_improbable: NDArray[np.bool_]) -> pa.Table:
    return cases.append_column("chance", pa.array(chances)).append_column("is_improbable", pa.array(is_improbable))
