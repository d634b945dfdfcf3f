"""Answers as short JSON: no nulls, few digits, no long texts, and no more than a model should read at once."""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from health_assets.apps.serving.answers import dumps

MOST_BYTES = 16_000
"""Longest answer, about four thousand tokens."""
LONGEST_TEXT = 400
KEPT_WHOLE = ("_id", "page", "source_file", "tool", "name")
"""Ends of the names of texts that a client needs as they are, to ask again or to open a file."""
SIGNIFICANT_DIGITS = 6
LEFT_OUT = "left_out"
CUT = "…"


def bounded(answer: Mapping[str, Any]) -> str:
    """An answer as JSON; rows that are too many are left out at the ends of its lists.

    Args:
        answer: the answer; `left_out` counts rows that are left out already, by the name of their list.
    """
    kept: dict[str, Any] = _short(answer)
    left_out = {name: count for name, count in kept.pop(LEFT_OUT, {}).items() if count}
    lists = {name: rows for name, rows in kept.items() if isinstance(rows, list)}
    while len(body := dumps(kept | ({LEFT_OUT: left_out} if left_out else {}))) > MOST_BYTES and any(lists.values()):
        longest = max(lists, key=lambda name: len(dumps(lists[name])))
        rows = lists[longest]
        lists[longest] = kept[longest] = rows[: len(rows) // 2]
        left_out[longest] = left_out.get(longest, 0) + len(rows) - len(lists[longest])
    return body.decode()


def only(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The named columns that a row has."""
    return {name: row[name] for name in names if name in row}


def _short(value: Any, name: str = "") -> Any:
    """The value of a member as JSON can write it, without members that are null."""
    if isinstance(value, Mapping):
        return {str(key): short for key, one in value.items() if (short := _short(one, str(key))) is not None}
    if isinstance(value, list | tuple):
        return [_short(one, name) for one in value]
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, str) and len(value) > LONGEST_TEXT and not name.endswith(KEPT_WHOLE):
        return value[:LONGEST_TEXT] + CUT
    return value
