"""The fleet's page: every agent as a square, the score of the last weeks, who got worse, and how far to trust all that.

What belongs here: choosing and counting agents of one hour. What does not: one agent (`agent_page`).

A fleet of a hundred thousand agents has more squares than a screen: each group shows its worst ones and counts the
rest, so that the page stays as small as that of a small fleet.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.data_hours import missing_hours
from health_assets.apps.serving.pages.fleet_now import STANDINGS, in_order, now_of_fleet, with_standing
from health_assets.apps.serving.pages.incident_rows import judged_to, open_incidents
from health_assets.apps.serving.pages.lists import ROWS_PER_PAGE, pages_of
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.rendering import curve_rows, squares
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.without_targets import fleet_without_targets
from health_assets.apps.serving.vocabulary import NOW_COUNTS
from health_assets.systems.agent_health_model.names import STATES

T = TypeVar("T")
Group = Literal["state", "platform", "team", "version"]
Sort = Literal["urgency", "score", "name", "n", "budget"]
GROUP_COLUMNS: dict[str, str] = {"platform": "hour_platform", "team": "team", "version": "hour_version"}
MOST_SQUARES = 600
MOST_GROUPS = 60
DROPS_SHOWN = 8
DROP_DAYS = (1, 7, 28)
LEAST_DROP = 1.0
"""Points; smaller drops are nobody's concern."""
ASCENDING: dict[str, list[tuple[str, str]]] = {
    "score": [("health_score", "ascending"), ("points_at_stake", "ascending"), ("agent_id", "ascending")],
    "name": [("agent_id", "ascending")],
    "n": [("n", "descending"), ("agent_id", "ascending")],
    "budget": [("budget_spent", "descending"), ("agent_id", "ascending")],
}
CURVES = {"fleet": ["score"], "states": ["unhealthy", "degraded", "inactive", "healthy"]}
"""The columns of each curve."""
OF_INCIDENTS = ["incident_id", "rule", "subject_kind", "subject_id", "severity", "reason", "opened_at"]
LISTED = (
    "agent_id", "now", "now_since", *NOW_COUNTS, "standing", "points_at_stake",
    "state", "is_provisional", "health_score", "n", "failures", "status", "budget_spent", "burn_rate_1h",
    "latency_p50_ms", "latency_p99_ms", "hour_platform", "hour_version", "team",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A question about the fleet.

    Args:
        text: part of the agent's name, in any case.
        state: only agents that stand so, one of `fleet_now.STANDINGS`.
        group: by what squares are grouped.
        of: only the group of this name.
        sort: the order of the list.
        page: of the list, from 1.
        most: rows of a page.
    """

    text: str = ""
    state: str | None = None
    group: Group = "state"
    of: str | None = None
    sort: Sort = "urgency"
    page: int = 1
    most: int = ROWS_PER_PAGE

    @property
    def whom(self) -> tuple[Hashable, ...]:
        """All that decides which agents are asked for, and their groups."""
        return self.text.lower(), self.state, self.group, self.of

    @property
    def is_everybody(self) -> bool:
        """Whether no agent is left out."""
        return not self.text and self.state is None and self.of is None


def fleet_page(look: ScopedHistory, wanted: Wanted) -> Page:
    """The fleet at one hour."""
    agents = _urgent_first(look)
    found = agents if wanted.is_everybody else _kept(look, wanted, "found", lambda: _found(agents, wanted))
    groups = _kept(look, wanted, "groups", lambda: _groups(found, wanted.group))
    start = (wanted.page - 1) * wanted.most
    in_order = _in_order(found, wanted.sort, start + wanted.most)
    data: dict[str, Any] = {
        "hour": look.hour,
        "agents": agents.num_rows,
        "found": found.num_rows,
        "hidden": look.hidden_agents(),
        "now": look.remembered(("now", look.is_present), lambda: now_of_fleet(look, agents)),
        "states": look.remembered("states", lambda: _counts(agents)),
        "fleet": look.remembered("fleet", lambda: _fleet(look, agents)),
        "groups": groups,
        "worse": look.remembered("worse", lambda: {str(days): _worse(look, agents, days) for days in DROP_DAYS}),
        "without_targets": look.remembered("without targets", lambda: fleet_without_targets(look, agents)),
        "trust": _trust(look),
        "listed": _rows(in_order.slice(start, wanted.most)) if in_order.num_rows else [],
    }
    pages = pages_of(found.num_rows, wanted.most)
    curve = data["fleet"]["curve"]
    curves = {name: look.remembered(("curve", name), partial(curve_rows, curve, keys)) for name, keys in CURVES.items()}
    shown = {
        "wanted": wanted, "standings": STANDINGS, "pages": pages, "first_row": start, "curves": curves,
        "window_hours": look.window_hours, "sees_all": look.sees_all,
    }  # fmt: skip
    query = "" if look.is_newest else f"?hour={look.hour:%Y-%m-%dT%H}"
    shown["squares"] = _kept(
        look, wanted, ("squares", query), lambda: [squares(one["squares"], query) for one in groups]
    )
    return Page(name="fleet", title="Fleet", data=data, listing="listed", shown=shown)


def _kept(look: ScopedHistory, wanted: Wanted, what: Hashable, make: Callable[[], T]) -> T:
    """Remember what `make` derives from the agents asked for; not for a search, which hardly anybody repeats."""
    return make() if wanted.text else look.remembered((what, wanted.whom), make)


def _urgent_first(look: ScopedHistory) -> pa.Table:
    """The agents of the hour that the caller sees, the most urgent first."""

    def sort() -> pa.Table:
        agents = look.at("agents")
        return in_order(with_standing(agents)) if agents.num_rows else agents

    return look.remembered("urgent first", sort)


def _in_order(agents: pa.Table, sort: Sort, most: int) -> pa.Table:
    """The first agents in an order, of those that come the most urgent first."""
    if sort == "urgency" or not agents.num_rows:
        return agents
    return agents.take(pc.select_k_unstable(agents, min(most, agents.num_rows), ASCENDING[sort]))


def _rows(agents: pa.Table) -> list[dict[str, Any]]:
    return agents.select([name for name in LISTED if name in agents.column_names]).to_pylist()


def _found(agents: pa.Table, wanted: Wanted) -> pa.Table:
    """The agents that are asked for."""
    if not agents.num_rows:
        return agents
    if wanted.text:
        agents = agents.filter(pc.match_substring(agents.column("agent_id"), wanted.text, ignore_case=True))
    if wanted.state:
        agents = agents.filter(pc.equal(agents.column("standing"), wanted.state))
    if wanted.of is not None and wanted.group in GROUP_COLUMNS:
        names = pc.fill_null(agents.column(GROUP_COLUMNS[wanted.group]), "")
        agents = agents.filter(pc.equal(names, wanted.of))
    return agents


def _counts(agents: pa.Table) -> dict[str, int]:
    """The number of agents of each standing; each counts once."""
    if not agents.num_rows:
        return dict.fromkeys(STANDINGS, 0)
    data = {one["values"]: one["counts"] for one in pc.value_counts(agents.column("standing")).to_pylist()}
    return {standing: data.get(standing, 0) for standing in STANDINGS}


def _groups(agents: pa.Table, group: Group) -> list[dict[str, Any]]:
    """Groups of agents, which come the most urgent first: the count of healthy ones, and the first as squares."""
    if not agents.num_rows:
        return []
    column = GROUP_COLUMNS.get(group, "standing")
    counts = pc.value_counts(agents.column(column)).to_pylist()
    order = {standing: place for place, standing in enumerate(STANDINGS)}
    if group == "state":
        counts.sort(key=lambda one: order.get(one["values"], 9))
    else:
        counts.sort(key=lambda one: (one["values"] is None, -one["counts"], str(one["values"])))
    shares = _squares_each([one["counts"] for one in counts[:MOST_GROUPS]])
    shown = agents.select(["agent_id", "now", "state", "is_provisional", "health_score", "points_at_stake"])
    values, is_healthy = agents.column(column), pc.equal(agents.column("standing"), "healthy")
    groups = []
    for one, most in zip(counts[:MOST_GROUPS], shares, strict=True):
        name = one["values"]
        is_member = pc.is_null(values) if name is None else pc.fill_null(pc.equal(values, name), False)
        healthy = pc.sum(pc.and_(is_member, is_healthy)).as_py() or 0
        first = pc.indices_nonzero(is_member).slice(0, most)
        groups.append(
            {"name": name, "agents": one["counts"], "healthy": healthy, "squares": shown.take(first).to_pylist()}
        )
    return groups


def _squares_each(sizes: list[int]) -> list[int]:
    """The number of squares of each group, so that all together are not too many and small groups are whole."""
    left, shares = MOST_SQUARES, [0] * len(sizes)
    for rank, place in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[place] = min(sizes[place], left // (len(sizes) - rank))
        left -= shares[place]
    return shares


def _fleet(look: ScopedHistory, agents: pa.Table) -> dict[str, Any]:
    """The mean score now and before, and its curve; for who does not see every agent only the mean of those it sees.

    A mean that holds an agent which the caller does not see would tell that one's score to who subtracts the others.
    """
    scores = pc.mean(agents.column("health_score")).as_py() if agents.num_rows else None
    if not look.hides_nothing:
        return {"score": scores, "curve": [], "changes": {}}
    rows = look.history.between("fleet", look.back(30)).to_pylist()
    by_hour = {row["hour"]: row for row in rows}
    now = by_hour.get(look.hour, {}).get("health_score", scores)
    changes = {}
    for days in (1, 7, 30):
        before = by_hour.get(look.hour - timedelta(days=days), {}).get("health_score")
        changes[str(days)] = None if before is None or now is None else now - before
    curve = [
        {
            "hour": hour,
            "score": by_hour[hour]["health_score"] if hour in by_hour else None,
            **{state: by_hour[hour][state] if hour in by_hour else None for state in STATES},
        }
        for hour in look.back(30)
        if rows and hour >= min(by_hour)
    ]
    return {"score": now, "curve": curve, "changes": changes}


def _worse(look: ScopedHistory, agents: pa.Table, days: int) -> list[dict[str, Any]] | None:
    """The agents whose score fell most since so many days ago; None where there is no such hour to compare with."""
    before = look.of_all("agents", look.hour - timedelta(days=days), ("agent_id", "health_score"))
    if not before.num_rows or not agents.num_rows:
        return None
    old = before.select(["agent_id", "health_score"]).rename_columns(["agent_id", "before"])
    both = agents.select(["agent_id", "health_score", "points_at_stake", "state", "is_provisional"]).join(
        old, "agent_id", join_type="inner"
    )
    drop = pc.subtract(both.column("before"), both.column("health_score"))
    both = both.append_column("drop", drop).filter(pc.fill_null(pc.greater_equal(drop, LEAST_DROP), False))
    worst = both.sort_by([("drop", "descending"), ("agent_id", "ascending")]).slice(0, DROPS_SHOWN)
    return worst.to_pylist()


def _trust(look: ScopedHistory) -> dict[str, Any]:
    """The reasons to doubt the numbers: open incidents, missing or late hours, rejected lines, failed checks."""
    since = look.hour - timedelta(hours=23)
    opened = open_incidents(look, agents_first=True)
    return {
        "open_incidents": opened.num_rows,
        "judged_to": judged_to(look),
        "incidents": opened.slice(0, 5).select(OF_INCIDENTS).to_pylist() if opened.num_rows else [],
        "missing_hours": missing_hours(look, 7),
        "late_s": look.late_s(),
        "rejected_lines": look.remembered("rejected lines", lambda: _rejected(look)) if look.sees_all else None,
        "failed_checks": look.remembered("failed checks", lambda: _failed(look, since)) if look.sees_all else None,
    }


def _rejected(look: ScopedHistory) -> int | None:
    """Rejected lines of 24 hours, from samples, of which each reason has several; None while these are not copied."""
    if not look.has_all("rejected", look.back(1)):
        return None
    samples = look.history.between("rejected", look.back(1)).to_pylist()
    return sum(one["lines"] for one in samples if one["place"] == 0)


def _failed(look: ScopedHistory, since: Any) -> int | None:
    checks = look.history.whole("checks")
    if checks is None:
        return None
    hours = checks.column("hour")
    recent = pc.and_(
        pc.greater_equal(hours, pa.scalar(since, hours.type)), pc.less_equal(hours, pa.scalar(look.hour, hours.type))
    )
    return pc.sum(pc.and_(recent, pc.invert(checks.column("success")))).as_py() or 0
