"""An agent's history as curves: its score, the points lost, latency and budget by hour, and marks of what changed.

What belongs here: rows by hour, read by the columns that curves need. What does not: one hour taken apart
(`agent_causes`).
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from health_assets.apps.serving.pages.incident_rows import seen_incidents
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.vocabulary import DIMENSIONS
from health_assets.core.hours import HOUR, HourRange

MARKS_SHOWN = 40
INCIDENTS_SHOWN = 20
LEAST_FALL = 1.0
"""Points; a smaller fall is none."""
CURVE = (
    "hour", "agent_id", "health_score", "state", "is_provisional", "n", "failures",
    *(column for column, _ in DIMENSIONS.values()),
    "latency_p50_ms", "latency_p99_ms", "budget_spent", "burn_rate_1h", "burn_rate_6h",
)  # fmt: skip
CHANGES = (
    "hour_version", "last_model", "last_restart_at", "last_model_update_at", "last_model_switch_at",
    "last_capability_update_at",
)  # fmt: skip

Row = dict[str, Any]


def curve_of(look: ScopedHistory, agent_id: str, hours: HourRange) -> tuple[list[Row], list[Row]]:
    """Finds points of curves by hour, null where nothing is known; and what changed, with the hour before the first."""
    before = HourRange(hours.start - HOUR, hours.end)
    found = look.of("agents", agent_id, before, (*CURVE, *CHANGES))
    by_hour = {row["hour"].timestamp(): row for row in found}
    curve = [_point(hour, by_hour.get(hour.timestamp())) for hour in hours]
    return curve, [{name: row[name] for name in ("hour", *CHANGES)} for row in found]


def _point(hour: datetime, row: Row | None) -> Row:
    """One hour of the curves: points, seconds and percent, as people read them."""
    point: Row = {"hour": hour, "score": None, "state": None, "is_provisional": None, "executions": None}
    point |= {"failures": None, **dict.fromkeys(DIMENSIONS), "p50_s": None, "p99_s": None, "budget_spent_percent": None}
    if row is None:
        return point
    point |= {"state": row["state"], "is_provisional": row["is_provisional"], "score": row["health_score"]}
    point |= {"executions": row["n"], "failures": row["failures"]}
    for name, (column, points) in DIMENSIONS.items():
        point[name] = None if row[column] is None or row["health_score"] is None else points * (1 - row[column])
    for name in ("p50", "p99"):
        latency_ms = row[f"latency_{name}_ms"]
        point[f"{name}_s"] = None if latency_ms is None else latency_ms / 1e3
    spent = row["budget_spent"]
    point["budget_spent_percent"] = None if spent is None else 100 * spent
    return point


def fall_of(curve: Sequence[Row]) -> Row | None:
    """The fall of the score from its best hour to the last, and what it fell to; None where it is less than a point."""
    known = [point for point in curve if point["score"] is not None]
    if not known or curve[-1]["score"] is None:
        return None
    best = max(known, key=lambda point: (point["score"], point["hour"]))
    now = curve[-1]
    if best["score"] - now["score"] < LEAST_FALL:
        return None
    parts = {name: now[name] - best[name] for name in DIMENSIONS}
    return {
        "since": best["hour"],
        "before": best["score"],
        "points": best["score"] - now["score"],
        "dimensions": {name: lost for name, lost in sorted(parts.items(), key=lambda one: -one[1]) if lost >= 0.05},
    }


def incidents_of(look: ScopedHistory, agent_id: str) -> list[Row]:
    """The agent's incidents that opened before the end of the hour, open ones first, then the newest."""
    end = look.hour + HOUR
    own = [one for one in seen_incidents(look, agent_id).to_pylist() if one["opened_at"] <= end]
    shown = ("incident_id", "rule", "severity", "opened_at", "closed_at", "reason", "recovery")
    data = [{name: one[name] for name in shown} for one in own]
    for one in data:
        if one["closed_at"] is not None and one["closed_at"] > end:  # it was open then
            one["closed_at"] = one["recovery"] = None
    data.sort(key=lambda one: (one["closed_at"] is None, one["opened_at"]), reverse=True)
    return data[:INCIDENTS_SHOWN]


def marks_of(changes: Sequence[Row], incidents: Sequence[Row], hours: HourRange) -> tuple[list[Row], int]:
    """Lists changes in some hours, the newest first; and counts the changes that are left out.

    Args:
        changes: rows of `curve_of`, from the hour before the first on.
        incidents: the agent's.
        hours: the hours.
    """
    found = [*_of_rows(changes), *_of_incidents(incidents)]
    inside = [mark for mark in found if hours.start <= mark["at"] <= hours.end]
    inside.sort(key=lambda mark: (mark["at"], mark["kind"]), reverse=True)
    return inside[:MARKS_SHOWN], max(0, len(inside) - MARKS_SHOWN)


def _of_rows(changes: Sequence[Row]) -> Iterator[Row]:
    version = model = None
    for row in changes:
        for column, kind in (("last_restart_at", "restart"), ("last_capability_update_at", "capability update")):
            if row[column] is not None:
                yield {"at": row[column], "kind": kind, "text": None}
        if (at := _model_changed_at(row, model)) is not None:
            yield {"at": at, "kind": "model change", "text": _from_to(model, row["last_model"])}
        if version is not None and row["hour_version"] not in (None, version):
            yield {"at": row["hour"], "kind": "version change", "text": _from_to(version, row["hour_version"])}
        version, model = row["hour_version"] or version, row["last_model"] or model


def _model_changed_at(row: Row, before: str | None) -> datetime | None:
    """The time at which the model changed in an hour: as an update tells it, else as it was seen to."""
    is_other = before is not None and row["last_model"] not in (None, before)
    seen_at = row["last_model_switch_at"] or (row["hour"] if is_other else None)
    return row["last_model_update_at"] or seen_at


def _from_to(before: str | None, after: str | None) -> str | None:
    if after is None or after == before:
        return after
    return f"to {after}" if before is None else f"{before} → {after}"


def _of_incidents(incidents: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    for one in incidents:
        yield {"at": one["opened_at"], "kind": "incident", "text": one["reason"]}
