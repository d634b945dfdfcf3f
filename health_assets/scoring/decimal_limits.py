"""Decimal arithmetic for thresholds: what is equal in decimal numbers is equal here, and neither more nor less.

Doubles say that 40 x 0.625 + 60 is a hair below 85, and that 5 x 0.59 is a hair below 2.95. Times are compared in whole
microseconds, as logs tell them, and scores are rounded to 10^-9 points before a threshold is asked.
"""

import ibis
from ibis import ir

MICROSECONDS = 1e6
MOST_US = 9e18
"""Limits above it are as good as none; an engine has no whole number for them, nor for those below its negative."""
BILLION = 1e9


def whole_us(seconds: ir.NumericValue) -> ir.FloatingValue:
    """Seconds in whole microseconds, null for null; a double, which holds them exactly up to 285 years."""
    us = seconds * MICROSECONDS
    within = ibis.cases((us > MOST_US, MOST_US), (us < -MOST_US, -MOST_US), else_=us)  # lines state any number
    return within.round().cast("float64")


def is_longer(runtime_s: ir.NumericValue, limit_s: ir.NumericValue) -> ir.BooleanValue:
    """Whether a runtime exceeds a limit, both to the microsecond; null where one is unknown."""
    return whole_us(runtime_s) > whole_us(limit_s)


def to_9_decimals(value: ir.NumericValue) -> ir.FloatingValue:
    """The double next to a number rounded to 9 decimals; null for null."""
    return (value * BILLION).round().cast("float64") / ibis.literal(BILLION)
