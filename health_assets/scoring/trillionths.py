"""Numbers in trillionths: rounded to 12 decimals, so that their sums are exact in any order."""

from ibis import ir

TRILLION = 1e12


def trillionths(value: ir.NumericValue) -> ir.IntegerValue:
    """A number as whole trillionths, to be added up exactly."""
    return (value * TRILLION).round().cast("int64")


def to_12_decimals(value: ir.NumericValue) -> ir.FloatingValue:
    """The double next to the number rounded to 12 decimals."""
    return trillionths(value).cast("float64") / TRILLION
