"""Shares as exact decimals, for decisions that no rounding of a double may turn.

What belongs here: plain numbers. What does not: limits within expressions (`decimal_limits`). It imports no engine.
"""

from fractions import Fraction


def exact_share(share: float) -> Fraction:
    """A share as its shortest decimal: 0.95 is 95 of 100."""
    return Fraction(repr(share))
