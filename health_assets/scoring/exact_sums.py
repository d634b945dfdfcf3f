"""Sums that are the same in any order: of whole numbers as they are, of others in decimal numbers.

Doubles that are added one by one give another last digit in another order, so that a rebuild would differ from what it
rebuilds. What is added up here is rounded once, to 10^-18, and once more when the sum becomes a double again.
"""

from ibis import ir

EXACT = "decimal(38, 18)"
"""A type in which numbers below 10^20 add up without rounding."""


def exact_sum(values: ir.NumericColumn) -> ir.NumericScalar:
    """The sum of a column; null where no row has a value. It may still be put over a window."""
    return values.sum() if values.type().is_integer() else values.cast(EXACT).sum()


def as_number(total: ir.NumericValue) -> ir.NumericValue:
    """An exact sum as whole number or double, as its column was."""
    return total.cast("int64" if total.type().is_integer() else "float64")
