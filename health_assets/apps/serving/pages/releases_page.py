"""The page of releases: which new versions and models are worse or better than what ran before them.

What belongs here: choosing and ordering the releases of one hour. What does not: one release (`release_rows`).
"""

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.lists import ROWS_PER_PAGE, containing, pages_of
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.release_rows import FOR_TEMPLATES, release_of, with_changed_together, with_repeats
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.systems.release_comparison.comparison_rows import PAIR, by_pair, key_of
from health_assets.systems.release_comparison.names import VERDICTS

Show = Literal["all", "worse", "better"]
Of = Literal["all", "version", "model"]
WORST_FIRST = [
    ("place", "ascending"), ("released_at", "descending"), *((name, "ascending") for name in PAIR),
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The releases that are asked for.

    Args:
        text: part of the agent's name, in any case.
        show: all of them, or those that are worse or better in something.
        of: versions, models or both.
        page: of the list, from 1.
        most: rows of a page.
    """

    text: str = ""
    show: Show = "all"
    of: Of = "all"
    page: int = 1
    most: int = ROWS_PER_PAGE


def releases_page(look: ScopedHistory, wanted: Wanted) -> Page:
    """The releases that are compared at one hour, those that are worse in something first."""
    rows = look.at("releases")
    releases = look.remembered("releases, the worst first", lambda: _releases(rows))
    found = _found(releases, wanted)
    data: dict[str, Any] = {
        "hour": look.hour,
        "compared": releases.num_rows,
        "counts": {verdict: _count(releases, verdict) for verdict in VERDICTS},
        "found": found.num_rows,
        "listed": _listed(rows, found.slice((wanted.page - 1) * wanted.most, wanted.most)) if found.num_rows else [],
    }
    shown = {"wanted": wanted, "pages": pages_of(found.num_rows, wanted.most), **FOR_TEMPLATES}
    return Page(name="releases", title="Releases", data=data, listing="listed", shown=shown)


def _releases(rows: pa.Table) -> pa.Table:
    """A row for each new version or model, with the place among verdicts of the verdict that people look for first."""
    if not rows.num_rows:
        return pa.table({})
    place = pc.index_in(rows.column("verdict"), value_set=pa.array(VERDICTS))
    placed = rows.append_column("place", place)
    releases = placed.group_by(list(PAIR)).aggregate([("place", "min"), ("released_at", "min")])
    releases = releases.rename_columns({"place_min": "place", "released_at_min": "released_at"})
    return releases.sort_by(WORST_FIRST)


def _count(releases: pa.Table, verdict: str) -> int:
    if not releases.num_rows:
        return 0
    return pc.sum(pc.equal(releases.column("place"), VERDICTS.index(verdict))).as_py()


def _found(releases: pa.Table, wanted: Wanted) -> pa.Table:
    """The releases that are asked for."""
    if not releases.num_rows:
        return releases
    if wanted.show != "all":
        releases = releases.filter(pc.equal(releases.column("place"), VERDICTS.index(wanted.show)))
    if wanted.of != "all":
        releases = releases.filter(pc.equal(releases.column("dimension"), wanted.of))
    return containing(releases, "agent_id", wanted.text)


def _listed(rows: pa.Table, page: pa.Table) -> list[dict[str, Any]]:
    """The releases of a page of the list, in its order, with their measures."""
    if not page.num_rows:  # beyond the last page
        return []
    agents = pc.unique(page.column("agent_id"))
    own = {
        key_of(measures[0]): measures
        for measures in by_pair(rows.filter(pc.is_in(rows.column("agent_id"), value_set=agents)).to_pylist())
    }
    releases = {key: release_of(measures) | {"team": measures[0].get("team")} for key, measures in own.items()}
    data = {key_of(one): one for one in with_changed_together([*releases.values()])}
    return with_repeats([data[key_of(row)] for row in page.to_pylist()])
