"""The versions of formulas in use, for the page of the data.

What belongs here: comparing the versions that hours were made by with those of today. What does not: bringing hours
up to date.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.data_hours import command
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HOUR
from health_assets.core.systems import FIRST_FORMULA_VERSION


def formulas_of(look: ScopedHistory) -> list[dict[str, Any]]:
    """The scoring systems, a system a dict, those with hours of another version first.

    Returns:
        For each `system`, `version` (of today), `newest_hour` and `newest_version` (None where it has no hour),
        `hours`, `older_hours`, `older_versions`, and where any is, `first_older`, `last_older` and the `command` that
        makes them again.
    """
    made = look.history.whole("materialized")
    systems = look.history.facts.get("declared", {}).get("systems", {})
    if made is None:
        return []
    there = made.filter(pc.is_null(made.column("dropped_digest")))
    found = [_formula(there, system, declared) for system, declared in systems.items()]
    return sorted(found, key=lambda one: -one["older_hours"])


def _formula(made: pa.Table, system: str, declared: dict[str, Any]) -> dict[str, Any]:
    results = pa.array(declared["results"], pa.string())
    own = made.filter(pc.is_in(made.column("asset"), value_set=results))
    data = {"system": system, "version": declared["version"]}
    if not own.num_rows:
        return {**data, "newest_hour": None, "newest_version": None, "hours": 0, "older_hours": 0, "older_versions": []}
    versions = pc.fill_null(own.column("formula_version"), FIRST_FORMULA_VERSION)
    newest = pc.max(own.column("hour"))
    of_newest = pc.unique(versions.filter(pc.equal(own.column("hour"), newest))).to_pylist()
    is_other = pc.not_equal(versions, declared["version"])
    older = pc.unique(own.column("hour").filter(is_other)).to_pylist()
    data |= {
        "newest_hour": newest.as_py(),
        "newest_version": " and ".join(sorted(of_newest)),
        "hours": pc.count_distinct(own.column("hour")).as_py(),
        "older_hours": len(older),
        "older_versions": sorted(pc.unique(versions.filter(is_other)).to_pylist()),
    }
    if older:
        first, last = min(older), max(older)
        data |= {"first_older": first, "last_older": last, "command": command(first, last + HOUR)}
    return data
