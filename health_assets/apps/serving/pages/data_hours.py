"""The hours of the history for the page of the data: which are there, late, missing or without any line.

What belongs here: finding the state of each hour, and what to run for it. What does not: how it looks, of
which the templates take care.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HOUR, HourRange, contiguous, floor_hour

SCORES = "agent_health"
"""The asset without which an hour has no score, and no page."""
LINES = "raw_logs"
"""The asset that has a row for every log with lines of an hour."""
COUNTED = ("executions", "rejected_records", SCORES)
STATES = ("materialized", "empty", "partial", "late", "missing", "awaited")
TO_RUN = ("missing", "late", "partial")
"""States of hours that lack something, and that a run makes whole."""
HOUR_UNIT = pa.timestamp("us", "UTC")


def hours_of(look: ScopedHistory) -> list[dict[str, Any]]:
    """Every hour of the history up to now, an hour a dict, ascending.

    Its state is `materialized`; `empty`, that is materialized, and no line of any log is of it; `partial`: it has
    scores, but lacks other assets; `missing`: later hours are there; `late`: none is, and it is due; `awaited`: it is
    over, and not due yet.

    Returns:
        For each hour `hour`, `state`, `materialized_at` (when its scores were last made), `lacking` (assets), and
        for callers from whom nothing is hidden `executions`, `rejected`, `agents`. Others are not told that an hour is
        empty, either: that it is not tells that somebody ran.
    """
    made = look.history.whole("materialized")
    first = look.history.facts.get("first_hour")
    if made is None or first is None or not made.num_rows:
        return []
    there = _by_hour(made.filter(pc.equal(made.column("asset"), SCORES)), "materialized_at")
    if not there:
        return []
    end = max(floor_hour(look.now), max(there) + HOUR)
    span = HourRange(max(datetime.fromisoformat(first), pc.min(made.column("hour")).as_py()), end)
    rows = {name: _by_hour(made.filter(pc.equal(made.column("asset"), name)), "rows") for name in (*COUNTED, LINES)}
    lacking = _lacking(look, made, span)
    due = _due(look)
    found = []
    for hour in span:
        if hour in there:
            is_empty = look.hides_nothing and rows[LINES].get(hour) == 0
            state = "partial" if hour in lacking else "empty" if is_empty else "materialized"
        elif hour > due:
            state = "awaited"
        else:
            state = "missing" if hour < max(there) else "late"
        counts = {"executions": "executions", "rejected": "rejected_records", "agents": SCORES}
        data = {
            "hour": hour,
            "state": state,
            "materialized_at": there.get(hour),
            "lacking": lacking.get(hour, []) if hour in there else [],
        }
        if look.hides_nothing:
            data |= {name: rows[asset].get(hour) for name, asset in counts.items()}
        found.append(data)
    return found


def by_day(hours: Sequence[dict[str, Any]]) -> list[tuple[datetime, list[dict[str, Any] | None]]]:
    """The hours by day, the newest first, 24 of each; None for those that are not among them."""
    days: dict[datetime, list[dict[str, Any] | None]] = {}
    for one in hours:
        days.setdefault(one["hour"].replace(hour=0), [None] * 24)[one["hour"].hour] = one
    return sorted(days.items(), reverse=True)


def counts_of(hours: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Counts the hours in each state."""
    counts = dict.fromkeys(STATES, 0)
    for one in hours:
        counts[one["state"]] += 1
    return counts


def to_run(hours: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Commands for hours that lack something: ranges of hours of one state, the newest first.

    Returns:
        For each `state`, `from`, `to` (excluded), `hours`, `lacking` (assets), and the `command`.
    """
    found = [
        {
            "state": state,
            "from": span.start,
            "to": span.end,
            "hours": len(span),
            "lacking": sorted({asset for hour in span for asset in own[hour]["lacking"]}),
            "command": command(span.start, span.end),
        }
        for state in TO_RUN
        if (own := {one["hour"]: one for one in hours if one["state"] == state})
        for span in contiguous(own)
    ]
    return sorted(found, key=lambda one: one["from"], reverse=True)


def command(start: datetime, end: datetime) -> str:
    """The command that makes the hours of a range."""
    return f"health-assets materialize --from {start:%Y-%m-%dT%H} --to {end:%Y-%m-%dT%H}"


def _by_hour(rows: pa.Table, column: str) -> dict[datetime, Any]:
    return dict(zip(rows.column("hour").to_pylist(), rows.column(column).to_pylist(), strict=True))


def _lacking(look: ScopedHistory, made: pa.Table, span: HourRange) -> dict[datetime, list[str]]:
    """By hour, the assets that it lacks, of those that an earlier hour has: a new asset need not have old hours."""
    wanted = look.history.facts.get("declared", {}).get("assets", [])
    hours = made.column("hour").cast(HOUR_UNIT)
    inside = pc.and_(
        pc.greater_equal(hours, pa.scalar(span.start, HOUR_UNIT)), pc.less(hours, pa.scalar(span.end, HOUR_UNIT))
    )
    own = made.filter(pc.and_(inside, pc.is_in(made.column("asset"), value_set=pa.array(wanted, pa.string()))))
    counts = own.group_by("asset").aggregate([("hour", "count_distinct"), ("hour", "min")]).to_pylist()
    known = {one["asset"]: (one["hour_min"], one["hour_count_distinct"]) for one in counts}
    newest = pc.max(own.column("hour")).as_py() if own.num_rows else span.start
    lacking: dict[datetime, list[str]] = {}
    for asset in wanted:
        first, count = known.get(asset, (None, 0))
        if first is None or count == len(HourRange(first, newest + HOUR)):
            continue
        there = set(own.filter(pc.equal(own.column("asset"), asset)).column("hour").to_pylist())
        for hour in HourRange(first, newest + HOUR):
            if hour not in there:
                lacking.setdefault(hour, []).append(asset)
    return lacking


def without_path(reason: str, source_file: str) -> str:
    """A reason without the path of the log that stands beside it: where the raw root lies is nobody's concern here."""
    before, mark, after = reason.partition(f"{source_file}: ")
    return after if mark and before.startswith("cannot read the raw log ") else reason


def last_days(look: ScopedHistory, hours: Iterable[dict[str, Any]], days: int) -> list[dict[str, Any]]:
    """The hours of so many days up to the one that is looked at; at the newest, up to the last that is due."""
    due = _due(look)
    end = max(look.hour, due) if look.is_newest else look.hour
    return [one for one in hours if end - timedelta(days=days) < one["hour"] <= end]


def missing_hours(look: ScopedHistory, days: int) -> list[datetime]:
    """Hours of so many days that should have scores by now and have none; what has yet to be copied is not missing.

    They are those that `hours_of` tells no time of, without looking at each hour of the history.
    """
    known = look.remembered("hours with scores", lambda: _scored(look))
    if known is None:
        return []
    first, there = known
    due = _due(look)
    newest = max(look.hour, due) if look.is_newest else look.hour
    back = HourRange(newest - (24 * days - 1) * HOUR, newest + HOUR)
    return [hour for hour in back if first <= hour <= due and hour not in there]


def _scored(look: ScopedHistory) -> tuple[datetime, frozenset[datetime]] | None:
    """The first hour that there may be, and those that have scores; None where none has."""
    made = look.history.whole("materialized")
    first = look.history.facts.get("first_hour")
    if made is None or first is None or not made.num_rows:
        return None
    there = made.filter(pc.equal(made.column("asset"), SCORES)).column("hour").to_pylist()
    begin = max(datetime.fromisoformat(first), pc.min(made.column("hour")).as_py())
    return (begin, frozenset(there)) if there else None


def _due(look: ScopedHistory) -> datetime:
    """The newest hour that should have scores by now."""
    return floor_hour(look.now - look.late_after) - HOUR
