"""Values of JSON that other programs wrote, each as the type that is wanted of it.

What belongs here: types that JSON has. What does not: times, and fields of a format (`formats`).
"""

import math
from typing import Any

_EXACT = 1 << 53
"""Up to here a float holds every whole number."""


def as_object(value: Any) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_name(value: Any) -> str | None:
    """Text or a number as text; None where it is neither or empty."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def as_number(value: Any) -> float | None:
    """A number, also one written as text, which is how some exports write decimals; None where it is no finite one."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_count(value: Any) -> int | None:
    """A whole number that is not negative and that the tables hold, also written as text; None where it is none."""
    if type(value) is int and 0 <= value < _EXACT:
        return value
    number = as_number(value)
    return int(number) if number is not None and 0 <= number < 1 << 63 else None
