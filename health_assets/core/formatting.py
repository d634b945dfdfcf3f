"""Numbers and names in sentences. The sentences themselves do not belong here."""

import math
import re
from collections.abc import Iterable
from difflib import get_close_matches

from health_assets.core.errors import HealthAssetsError


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun, whose plural is said where it is not the noun with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def nearest(name: str, *known: Iterable[str]) -> str:
    """The end of a sentence that proposes the name that was probably meant; empty where none is near.

    Args:
        name: the name that is not known.
        known: names that are, those first that are looked at first.
    """
    for names in known:
        if close := get_close_matches(name, sorted(names), n=1):
            return f"; did you mean {close[0]!r}?"
    return ""


def few_digits(amount: float) -> str:
    """An amount from 0 on with one decimal, or with two digits that count where it is below one."""
    if amount == 0 or amount >= 1:
        return f"{amount:,.1f}"
    return f"{amount:.{1 - math.floor(math.log10(amount))}f}"


def dollars(value: float) -> str:
    """Dollars to the cent; less than a dollar has three significant digits."""
    decimals = 2 if value >= 1 or value == 0 else 2 - math.floor(math.log10(value))
    return f"${value:,.{decimals}f}"


def share(value: float, *, beside: float | None = None) -> str:
    """A share from 0 on as percent, in whole ones; with as many decimals as it takes near all and near nothing.

    What is not all is never written as 100 %, and what is not nothing never as 0 %.

    Args:
        value: the share.
        beside: another share, in whole percent; where both differ and would read the same, this one has a decimal.
    """
    percent = round(100 * value, 9)
    if 1 <= percent <= 99 or percent >= 100 or percent == 0:
        told = f"{percent:,.0f}%"
        reads_alike = beside is not None and beside != value and told == share(beside)
        return f"{percent:,.1f}%" if reads_alike else told
    lacking = 100 - percent if percent > 99 else percent
    places = math.ceil(-math.log10(lacking))
    shown = percent if percent < 1 else math.floor(round(percent * 10**places, 6)) / 10**places
    return f"{shown:.{places}f}%".replace(".0%", "%")


def seconds_of(text: str) -> int:
    """The seconds of a duration such as 30s, 5m or 1h.

    Raises:
        HealthAssetsError: it is none, or shorter than a second.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,5})(s|m|h)", text.strip())
    if found is None:
        raise HealthAssetsError(f"{text!r} is no duration like 30s, 5m or 1h")
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def duration(seconds: float | None) -> str:
    """The duration in the unit that a person would choose; a dash for none."""
    if seconds is None:
        return "–"
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if seconds >= 2 * length or (unit == "s" and seconds >= 1):
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds * 1e3:.0f} ms"
