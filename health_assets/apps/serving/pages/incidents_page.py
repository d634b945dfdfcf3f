"""The page of incidents, and that of one: what is wrong, since when, what it rests on, and who was told.

What belongs here: choosing and counting incidents. What does not: which of them a caller sees (`incident_rows`), and
silences (`silences_page`).
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from glob import escape
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.alerts.rules import SEVERITIES, Severity
from health_assets.apps.alerts.silences import AGENT
from health_assets.apps.serving.pages.incident_rows import (
    URGENCY,
    as_of,
    deliveries_of,
    judged_to,
    seen_incidents,
    silenced_among,
    told_of,
)
from health_assets.apps.serving.pages.lists import ROWS_PER_PAGE, pages_of
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.utc_times import without_zone
from health_assets.core.errors import HealthAssetsError

Days = Literal[7, 30]
HISTORY_DAYS = 30
OTHERS_SHOWN = 10
BAR_HEIGHT = 48.0


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The incidents that are asked for.

    Args:
        text: part of a subject's name or of a reason, in any case.
        rule: only those of this rule.
        severity: only those of this severity.
        agent: only those of this agent.
        days: how far back those that are over are listed.
        page: of the list, from 1.
        most: rows of a page.
    """

    text: str = ""
    rule: str | None = None
    severity: Severity | None = None
    agent: str | None = None
    days: Days = 7
    page: int = 1
    most: int = ROWS_PER_PAGE


def incidents_page(look: ScopedHistory, wanted: Wanted) -> Page:
    """The open incidents, the worst and latest first, and then those that were over lately, the latest first."""
    seen = seen_incidents(look)
    found = _found(seen, wanted)
    listed = _in_order(found, as_of(look) - timedelta(days=wanted.days))
    start = (wanted.page - 1) * wanted.most
    rows = listed.slice(start, wanted.most).to_pylist() if listed.num_rows else []
    told_to = deliveries_of(look, [row["incident_id"] for row in rows])
    opened = listed.filter(listed.column("is_open")) if listed.num_rows else listed
    data: dict[str, Any] = {
        "hour": look.hour,
        "as_of": as_of(look),
        "open": opened.num_rows,
        "open_by_severity": _by_severity(opened),
        "over": listed.num_rows - opened.num_rows,
        "judged_to": judged_to(look),
        "undelivered": _undelivered(look, seen),
        "days": _by_day(found, as_of(look)),
        "listed": [told_of(row, told_to[row["incident_id"]]) for row in rows],
    }
    shown = {
        "wanted": wanted,
        "pages": pages_of(listed.num_rows, wanted.most),
        "bars": _bars(data["days"]),
        "rules": _names(seen, "rule"),
        "severities": SEVERITIES,
        "is_any": bool(seen.num_rows),
    }
    return Page(name="incidents", title="Incidents", data=data, listing="listed", shown=shown)


def incident_page(look: ScopedHistory, incident_id: str) -> Page:
    """One incident.

    Raises:
        HealthAssetsError: there is none of this id that the caller may see.
    """
    seen = seen_incidents(look)
    mine = seen.filter(pc.equal(seen.column("incident_id"), incident_id)) if seen.num_rows else seen
    if not mine.num_rows:
        raise HealthAssetsError("There is no incident of this id here, or it is not yours to see.")
    [row] = mine.slice(0, 1).to_pylist()
    incident = told_of(row, deliveries_of(look, [incident_id])[incident_id])
    same = pc.and_(
        pc.equal(seen.column("subject_id"), row["subject_id"]),
        pc.equal(seen.column("subject_kind"), row["subject_kind"]),
    )
    others = seen.filter(pc.and_(same, pc.not_equal(seen.column("incident_id"), incident_id)))
    others = others.sort_by([("opened_at", "descending")]).slice(0, OTHERS_SHOWN)
    data = {
        "hour": look.hour,
        "as_of": as_of(look),
        "incident": incident,
        "deliveries": incident["deliveries"],
        "others": [
            {
                name: one[name]
                for name in ("incident_id", "rule", "severity", "opened_at", "closed_at", "reason", "is_open")
            }
            for one in others.to_pylist()
        ],
    }
    pattern = escape(row["subject_id"]) if row["subject_kind"] == AGENT else ""
    return Page(
        name="incident",
        title="Incident",
        data=data,
        listing="deliveries",
        shown={"pattern": pattern, "agent_kind": AGENT},
    )


def _found(seen: pa.Table, wanted: Wanted) -> pa.Table:
    """The incidents that are asked for, whenever they were."""
    if not seen.num_rows:
        return seen
    if wanted.text:
        of_text = (
            pc.match_substring(seen.column(name), wanted.text, ignore_case=True) for name in ("subject_id", "reason")
        )
        seen = seen.filter(pc.or_(*of_text))
    for name, value in (("rule", wanted.rule), ("severity", wanted.severity)):
        if value:
            seen = seen.filter(pc.equal(seen.column(name), value))
    if wanted.agent:
        is_agents = pc.equal(seen.column("subject_kind"), AGENT)
        seen = seen.filter(pc.and_(is_agents, pc.equal(seen.column("subject_id"), wanted.agent)))
    return seen


def _in_order(found: pa.Table, since: datetime) -> pa.Table:
    """Open ones, and behind them those that were over since then."""
    if not found.num_rows:
        return found
    is_open = found.column("is_open")
    closed = found.column("closed_at")
    opened = found.filter(is_open).sort_by(URGENCY)
    is_recent = pc.fill_null(pc.greater_equal(closed, pa.scalar(since, closed.type)), False)
    over = found.filter(pc.and_(pc.invert(is_open), is_recent))
    return pa.concat_tables([opened, over.sort_by([("closed_at", "descending"), ("incident_id", "ascending")])])


def _by_severity(rows: pa.Table) -> dict[str, int]:
    counted = (
        {one["values"]: one["counts"] for one in pc.value_counts(rows.column("severity")).to_pylist()}
        if rows.num_rows
        else {}
    )
    return {severity: counted.get(severity, 0) for severity in SEVERITIES}


def _names(rows: pa.Table, column: str) -> list[str]:
    return sorted(pc.unique(rows.column(column)).to_pylist()) if rows.num_rows else []


def _undelivered(look: ScopedHistory, seen: pa.Table) -> list[dict[str, Any]]:
    """By channel, how many notices of these incidents wait, and why; those that a silence keeps do not."""
    rows = look.history.whole("deliveries")
    if rows is None or not rows.num_rows or not seen.num_rows:
        return []
    is_waiting = pc.and_(pc.is_null(rows.column("delivered_at")), pc.is_null(rows.column("hushed_by")))
    of_these = pc.is_in(rows.column("incident_id"), value_set=seen.column("incident_id").combine_chunks())
    is_silenced = pc.is_in(rows.column("incident_id"), value_set=silenced_among(seen))
    waiting = rows.filter(pc.and_(pc.and_(is_waiting, of_these), pc.invert(is_silenced)))
    counted = waiting.group_by("channel").aggregate([("incident_id", "count"), ("last_error", "max")])
    return [
        {"channel": one["channel"], "notices": one["incident_id_count"], "last_error": one["last_error_max"]}
        for one in counted.sort_by("channel").to_pylist()
    ]


def _by_day(found: pa.Table, at: datetime) -> list[dict[str, Any]]:
    """Counts the incidents of each severity that opened on each of the last days, in UTC."""
    counts: dict[tuple[date, str], int] = {}
    if found.num_rows:
        days = pc.strftime(without_zone(found.column("opened_at")), "%Y-%m-%d")
        counted = pa.table({"day": days, "severity": found.column("severity")}).group_by(["day", "severity"])
        for one in counted.aggregate([([], "count_all")]).to_pylist():
            counts[date.fromisoformat(one["day"]), one["severity"]] = one["count_all"]
    first = at.date() - timedelta(days=HISTORY_DAYS - 1)
    return [
        {"day": day.isoformat(), **{severity: counts.get((day, severity), 0) for severity in SEVERITIES}}
        for day in (first + timedelta(days=number) for number in range(HISTORY_DAYS))
    ]


def _bars(days: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The days as stacked rectangles, ten wide each, the worst at the bottom."""
    most = max(1, *(sum(day[severity] for severity in SEVERITIES) for day in days))
    bars = []
    for number, day in enumerate(days):
        below = 0.0
        for severity in SEVERITIES:
            if count := day[severity]:
                height = BAR_HEIGHT * count / most
                below += height
                bars.append(
                    {
                        "x": 10 * number + 1, "y": f"{BAR_HEIGHT - below:.2f}", "height": f"{height:.2f}",
                        "kind": severity, "title": f"{day['day']}: {count} {severity}",
                    }
                )  # fmt: skip
    return bars
