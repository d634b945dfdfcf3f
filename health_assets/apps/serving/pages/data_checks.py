"""The history of the checks for the page of the data, an hour a character.

What belongs here: what came of each check in each hour, and the shapes of that. What does not: the rest of how it
looks, of which the templates take care.
"""

from collections import defaultdict
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.utc_times import without_zone
from health_assets.core.hours import HOUR, HourRange

KEPT, BROKEN, WARNED, UNCHECKED = "o", "x", "w", "."
"""The outcomes of a check in an hour: it held, it failed, it failed as a warning, nobody looked."""
BETWEEN = "\0"
"""Between the names of asset and check, neither of which holds it."""
LINES_ARE_LOST = "every_line_is_still_there"
"""The check that fails where lines of logs are lost for good."""


def checked_hours(look: ScopedHistory, days: int) -> HourRange:
    """The hours of so many days up to the one that is looked at, without those before the first check of all."""
    asked = look.back(days)
    checks = look.history.whole("checks")
    first = pc.min(checks.column("hour")).as_py() if checks is not None and checks.num_rows else None
    return HourRange(min(max(asked.start, first or asked.start), look.hour), asked.end)


def checks_of(look: ScopedHistory, hours: HourRange) -> list[dict[str, Any]]:
    """The checks that were looked at in these hours, a check a dict: failed ones first, the newest failures first.

    Returns:
        For each `asset`, `expectation`, `severity`, `meaning` (None where nobody described it), `cells` (a character
        an hour: `o` held, `x` failed, `w` warned, `.` not checked), `checked_hours`, `failed_hours`, `last_failed`,
        `is_failing` (in the newest hour that was checked), and for callers from whom nothing is hidden
        `unexpected_rows`, `checked_rows`, and `newest_unexpected`: unexpected rows of the newest hour.
    """
    rows = _rows(look, hours)
    if not rows.num_rows:
        return []
    meanings = look.history.facts.get("declared", {}).get("checks", {})
    names = pc.binary_join_element_wise(rows.column("asset"), rows.column("expectation"), BETWEEN)
    keys = pc.dictionary_encode(names).combine_chunks()
    own = keys.indices.to_numpy()
    grid, errors = _grid(rows, own, hours)
    counts = _counts(rows, own) if look.hides_nothing else {}
    found = []
    for number, key in enumerate(keys.dictionary.to_pylist()):
        asset, expectation = key.split(BETWEEN)
        found.append(
            {
                "asset": asset,
                "expectation": expectation,
                "severity": "error" if number in errors else "warn",
                "meaning": meanings.get(asset, {}).get(expectation),
                **_outcome("".join(grid[number]), hours.start),
                **{name: int(of_checks[number]) for name, of_checks in counts.items()},
            }
        )
    order = {asset: place for place, asset in enumerate(meanings)}
    return sorted(found, key=lambda one: _urgency(one, order))


def _grid(rows: pa.Table, own: np.ndarray, hours: HourRange) -> tuple[np.ndarray, set[int]]:
    """The result of each check in each hour, as characters, and which checks are errors; `own` numbers the checks."""
    begins = without_zone(rows.column("hour"))
    places = pc.hours_between(pa.scalar(hours.start.replace(tzinfo=None), begins.type), begins).to_numpy()
    is_error = pc.equal(rows.column("severity"), "error").to_numpy()
    failed = np.where(is_error, BROKEN, WARNED)
    grid = np.full((own.max() + 1, len(hours)), UNCHECKED)
    grid[own, places] = np.where(rows.column("success").to_numpy(), KEPT, failed)
    return grid, set(own[is_error].tolist())


def _counts(rows: pa.Table, own: np.ndarray) -> dict[str, np.ndarray]:
    """Rows that each check looked at and found unexpected, in all hours, and unexpected ones of the newest hour."""
    checked, unexpected = (rows.column(name).to_numpy() for name in ("element_count", "unexpected_count"))
    newest = np.zeros(own.max() + 1, np.int64)
    newest[own] = unexpected  # rows come by hour, so that of the newest one stays
    return {
        "unexpected_rows": np.bincount(own, unexpected),
        "checked_rows": np.bincount(own, checked),
        "newest_unexpected": newest,
    }


def _outcome(cells: str, start: datetime) -> dict[str, Any]:
    last = max(cells.rfind(BROKEN), cells.rfind(WARNED))
    return {
        "cells": cells,
        "checked_hours": len(cells) - cells.count(UNCHECKED),
        "failed_hours": cells.count(BROKEN) + cells.count(WARNED),
        "last_failed": start + last * HOUR if last >= 0 else None,
        "is_failing": cells.rstrip(UNCHECKED)[-1:] in (BROKEN, WARNED),
    }


def _rows(look: ScopedHistory, hours: HourRange) -> pa.Table:
    """The outcomes of these hours, by hour."""
    checks = look.history.whole("checks")
    if checks is None:
        return pa.table({})
    column = checks.column("hour")
    first, end = (pa.scalar(moment, column.type) for moment in (hours.start, hours.end))
    return checks.filter(pc.and_(pc.greater_equal(column, first), pc.less(column, end))).sort_by("hour")


def _urgency(one: dict[str, Any], order: dict[str, int]) -> tuple:
    last: datetime | None = one["last_failed"]
    place = order.get(one["asset"], len(order)), one["asset"]
    if last is None:
        return True, *place
    return False, one["severity"] != "error", not one["is_failing"], -last.timestamp(), *place


def kept_ones(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The checks that never failed, an asset a dict with its `checks` and the `cells` of all of them together.

    An hour counts as checked where any of them looked at it.
    """
    by_asset: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in checks:
        if not one["failed_hours"]:
            by_asset[one["asset"]].append(one)
    return [
        {
            "asset": asset,
            "checks": own,
            "cells": "".join(
                KEPT if KEPT in of_hour else UNCHECKED for of_hour in zip(*(one["cells"] for one in own), strict=True)
            ),
        }
        for asset, own in by_asset.items()
    ]


def by_hour(look: ScopedHistory, hours: HourRange) -> list[dict[str, Any]]:
    """Every outcome of these hours, a check and hour a dict; counts of rows where nothing is hidden from the caller."""
    hidden = () if look.hides_nothing else ("element_count", "unexpected_count")
    rows = _rows(look, hours)
    return rows.select([name for name in rows.column_names if name not in hidden]).to_pylist()


STEP = 10


def paths(cells: str, step: int = STEP) -> dict[str, str]:
    """Draws results of a check as paths of SVG by character, so that a row of a week stays small.

    A check that held is a low bar, a warning a triangle, a failure a square with a cross; a dot where nobody looked.

    Args:
        cells: a character an hour.
        step: width of an hour.
    """
    drawn: dict[str, list[str]] = defaultdict(list)
    at = 0
    while at < len(cells):
        kind, count = cells[at], 1
        if kind == KEPT:
            count = len(cells[at:]) - len(cells[at:].lstrip(KEPT))
        x, width = at * step, count * step
        if kind == KEPT:
            drawn[kind].append(f"M{x} 8h{width}v3h-{width}z")
        elif kind == WARNED:
            drawn[kind].append(f"M{x} 11l{step / 2:g} -10l{step / 2:g} 10z")
        elif kind == BROKEN:
            drawn[kind].append(f"M{x} 1h{step}v10h-{step}z")
            drawn["cross"].append(f"M{x + 1} 2l{step - 2} 8m0 -8l-{step - 2} 8")
        else:
            drawn[kind].append(f"M{x + step / 2 - 1:g} 9h2v1h-2z")
        at += count
    return {kind: "".join(own) for kind, own in drawn.items()}
