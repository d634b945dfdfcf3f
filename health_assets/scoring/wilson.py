"""The ends of the Wilson interval of a share, for columns of any kind.

E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
"""

from collections.abc import Callable
from typing import Any

Z = 1.96
"""Standard normal deviates on either side of which 5 % lie."""


def lower_end(failures: Any, calls: Any, sqrt: Callable[[Any], Any]) -> Any:
    """The least share of failures, at 95 %; it is a hair beside 0 where nothing failed.

    Args:
        failures: how many failed; ibis expressions, arrays or numbers.
        calls: of how many, at least 1.
        sqrt: the square root of such.
    """
    spread = sqrt(Z**2 + 4 * failures * (1 - failures / calls))
    return (2 * failures + Z**2 - Z * spread) / (2 * (calls + Z**2))


def interval(hits: Any, cases: Any, sqrt: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Both ends of a share's interval, at 95 %; they may lie a hair beside 0 and 1 where none or all are hits.

    Args:
        hits: how many are; ibis expressions, arrays or numbers.
        cases: of how many, at least 1.
        sqrt: the square root of such.
    """
    spread = Z * sqrt(Z**2 + 4 * hits * (1 - hits / cases))
    middle, whole = 2 * hits + Z**2, 2 * (cases + Z**2)
    return (middle - spread) / whole, (middle + spread) / whole
