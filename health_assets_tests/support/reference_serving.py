"""The health document as plain Python, written from section 4 and 8 of the draft and section 5 of the contract."""

import math
from datetime import UTC, datetime
from typing import Any

Row = dict[str, Any]


def timestamp(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def known(members: Row) -> Row:
    """Without what is not known."""
    return {
        name: value
        for name, value in members.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }


def extension(score: Row) -> Row:
    names = {
        "reliability": "reliability_score",
        "performance": "performance_score",
        "stability": "stability_score",
        "operation": "operational_score",
    }
    said = {
        "state": score["state"],
        "is_provisional": score["is_provisional"],
        "n": score["n"],
        "n_full": score["n_full"],
        "score": score["health_score"],
        "points_at_stake": score.get("points_at_stake"),
        "formula_version": score["formula_version"],
    }
    if score["health_score"] is not None:
        is_timed = (score.get("n") or 0) > (score.get("untimed") or 0) and score.get("expected_runtime_s") is not None
        is_tested = {
            "reliability": True,
            "performance": is_timed,
            "stability": is_timed or score.get("long_running"),
            "operation": score.get("sla_checked") or score.get("triggers"),
        }
        told = {name: column for name, column in names.items() if is_tested[name]}
        said["components"] = known({name: score.get(column) for name, column in told.items()})
    return known(said)


def document(state: Row, score: Row | None, *, is_coarse: bool, now: Row | None = None) -> Row:
    head = {"schema_version": "0.1.0", "agent_id": state["agent_id"], "timestamp": timestamp(state["window_end"])}
    if is_coarse:
        return {**head, "health": {"status": "unhealthy" if state["status"] == "unhealthy" else "healthy"}}
    decay = known(
        {
            "calibration_trend": state["calibration_trend"],
            "last_capability_update": timestamp(state.get("last_capability_update")),
        }
    )
    decay["days_since_model_change"] = known({"days": state.get("days_since_model_change")}).get("days")
    calibration = (
        "response_ratio", "error_ratio", "latency_p50_ms", "latency_p99_ms", "measurement_window_seconds",
        "sample_count",
    )  # fmt: skip
    return {
        **head,
        "health": known(
            {
                "status": state["status"],
                "last_healthy_at": timestamp(state.get("last_healthy_at")),
                "uptime_seconds": state.get("uptime_seconds"),
            }
        ),
        "calibration": known({name: state.get(name) for name in calibration}),
        "decay": decay,
        "extensions": {
            **({} if score is None else {"org.health-assets.agent-health-model": extension(score)}),
            **({} if now is None or score is None else {"org.health-assets.agent-now": now}),
        },
    }
