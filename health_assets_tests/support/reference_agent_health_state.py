"""The independent reference of the Agent Health State: the contract and source 3 in plain Python.

As in `reference`, nothing here imports the product, and being easy to check by eye is all that matters. Latencies are
exact here; the warehouse's may be off by 1 %.
"""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from health_assets_tests.support.reference import Record, deduplicate, targets_for

ONE_HOUR = timedelta(hours=1)
EVER = datetime.min.replace(tzinfo=UTC)


def nearest_rank(values: list[float], percent: int) -> float:
    """Source 3, section 4.4: the smallest value that at least `percent` % of the values do not exceed."""
    ordered = sorted(values)
    for place, value in enumerate(ordered, start=1):
        if Fraction(place, len(ordered)) >= Fraction(percent, 100):
            return value
    raise ValueError("there is no value")


def ratio_of(executions: list[Record]) -> Fraction | None:
    """Source 3, section 4.4: the fraction that succeeded; None without executions."""
    if not executions:
        return None
    return Fraction(len([one for one in executions if one["status"] == "success"]), len(executions))


def status_of(executions: list[Record], p99_ms: float | None, baseline_latency_ms: float | None) -> str:
    """Source 3, section 4.3."""
    ratio = ratio_of(executions)
    if ratio is None or len(executions) < 10:
        return "unknown"
    if ratio < Fraction(1, 2):
        return "unhealthy"
    if ratio < Fraction(95, 100):
        return "degraded"
    if baseline_latency_ms is not None and p99_ms is not None and p99_ms > 3 * baseline_latency_ms:
        return "degraded"
    return "healthy"


def trend_of(ratio: Fraction | None, ratio_before: Fraction | None) -> str:
    """Source 3, section 4.5; contract section 4: no samples in either window is stable."""
    if ratio is None or ratio_before is None:
        return "stable"
    if ratio - ratio_before > Fraction(1, 10):
        return "improving"
    if ratio_before - ratio > Fraction(1, 10):
        return "declining"
    return "stable"


def model_changes(events: list[Record]) -> list[datetime]:
    """Contract section 4: updates that say so, and executions that show another model than the one before."""
    changes = [one["_at"] for one in events if one["type"] == "agent_update" and one["kind"] == "model_change"]
    named = [one for one in events if one["type"] == "execution" and "model" in one]
    named.sort(key=lambda one: (one["_at"], one["_source_file"], one["_line_number"]))
    changes += [one["_at"] for before, one in zip(named, named[1:], strict=False) if one["model"] != before["model"]]
    return changes


def latest(moments: list[datetime]) -> datetime | None:
    return max(moments, default=None)


def state_row(events: list[Record], target: dict[str, Any], end: datetime, window: timedelta) -> Record:
    """One agent's document at `end`, from its events of the look-back and of two windows."""
    executions = [one for one in events if one["type"] == "execution"]
    own = [one for one in executions if end - window <= one["_at"] < end]
    before = [one for one in executions if end - 2 * window <= one["_at"] < end - window]
    ratio, ratio_before = ratio_of(own), ratio_of(before)
    runtimes_ms = [one["_runtime_s"] * 1000 for one in own]
    p99_ms = nearest_rank(runtimes_ms, 99) if own else None
    return {
        "window_start": end - window,
        "window_end": end,
        "as_of": end,
        "is_final": True,
        "status": status_of(own, p99_ms, target["baseline_latency_ms"]),
        "response_ratio": None if ratio is None else float(ratio),
        "error_ratio": None if ratio is None else float(1 - ratio),
        "latency_p50_ms": nearest_rank(runtimes_ms, 50) if own else None,
        "latency_p99_ms": p99_ms,
        "measurement_window_seconds": int(window.total_seconds()),
        "sample_count": len(own),
        "latency_sample_count": len(own),  # a line of the native format must tell both times
        "calibration_trend": trend_of(ratio, ratio_before),
        "previous_response_ratio": None if ratio_before is None else float(ratio_before),
        "baseline_latency_ms": target["baseline_latency_ms"],
    }


def times_row(events: list[Record], end: datetime) -> Record:
    """What an agent's events, however old, tell of its past; contract section 4."""
    updates = [one for one in events if one["type"] == "agent_update"]
    since = latest([one["_at"] for one in updates if one["kind"] == "restart"])
    changed_at = latest(model_changes(events))
    return {
        "uptime_seconds": None if since is None else (end - since).total_seconds(),
        "days_since_model_change": None if changed_at is None else (end - changed_at).total_seconds() / 86_400,
        "last_capability_update": latest([one["_at"] for one in updates if one["kind"] == "capability_update"]),
    }


def agent_health_state(
    records: list[Record],
    targets: dict[str, Any],
    hours: list[datetime],
    window_hours: int = 24,
    lookback_hours: int = 168,
    known_from: datetime = EVER,
) -> list[Record]:
    """Contract section 4, `agent_health_state`: a row for each of these hours, in order, and each known agent.

    `hours` are all that are materialized: `last_healthy_at` knows no others. Of changes before the look-back only those
    since `known_from` are known.
    """
    events_of: dict[str, list[Record]] = {agent_id: [] for agent_id in targets.get("agents") or {}}
    for record in deduplicate(records):
        if record.get("agent_id") is not None:
            events_of.setdefault(record["agent_id"], []).append(record)
    last_healthy_at: dict[str, datetime] = {}
    rows = []
    for hour in hours:
        end = hour + ONE_HOUR
        for agent_id, events in events_of.items():
            target = targets_for(agent_id, targets)
            past = [one for one in events if one["_at"] < end]
            seen = [one for one in past if one["_at"] >= end - timedelta(hours=lookback_hours)]
            named = agent_id in (targets.get("agents") or {})
            if target["retired"] or not (seen or named):
                continue
            row = {"hour": hour, "agent_id": agent_id}
            row |= state_row(past, target, end, timedelta(hours=window_hours))
            row |= times_row([one for one in past if one["_at"] >= known_from], end)
            if row["status"] == "healthy":
                last_healthy_at[agent_id] = end
            rows.append(row | {"last_healthy_at": last_healthy_at.get(agent_id)})
    return rows
