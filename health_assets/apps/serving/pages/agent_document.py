"""An agent's health document of any hour, from its row in the history.

What belongs here: the members of the document, as the endpoint writes them of the newest hour
(`apps.serving.documents`, which needs an engine); a test holds both together. What does not: how the page shows it.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from health_assets.apps.serving.pages.rendering import shape
from health_assets.apps.serving.vocabulary import DIMENSIONS, EXTENSION, EXTENSION_NOW, SCHEMA_VERSION
from health_assets.scoring.explanation import unmeasured

CALIBRATION = (
    "response_ratio", "error_ratio", "latency_p50_ms", "latency_p99_ms", "measurement_window_seconds", "sample_count",
)  # fmt: skip

Row = Mapping[str, Any]


def health_document(row: Row, known_until: datetime) -> dict[str, Any] | None:
    """The document (source 3, section 4.2); None where the hour has none of the agent.

    Args:
        row: a row of the series `agents`.
        known_until: the end of its hour, or an earlier time while it runs.
    """
    if row["status"] is None:
        return None
    decay = {"calibration_trend": row["calibration_trend"], "days_since_model_change": row["days_since_model_change"]}
    if row["last_capability_update"] is not None:
        decay["last_capability_update"] = _moment(row["last_capability_update"])
    return {
        "schema_version": SCHEMA_VERSION,
        "agent_id": row["agent_id"],
        "timestamp": _moment(known_until),
        "health": _known(
            status=row["status"],
            last_healthy_at=_moment(row["last_healthy_at"]),
            uptime_seconds=row["uptime_seconds"],
        ),
        "calibration": _known(**{name: row[name] for name in CALIBRATION}),
        "decay": decay,
        "extensions": _known(**{EXTENSION: _score(row), EXTENSION_NOW: _now(row)}),
    }


def document_text(document: dict[str, Any] | None) -> str:
    """The document as a person reads it; what has no shape is shown as its code, as JSON writes it."""
    lines = json.dumps(document, indent=2, ensure_ascii=False).split("\n")
    return "\n".join(map(shape, lines))


def _score(row: Row) -> dict[str, Any] | None:
    """The extension; it says no score of an agent that has none."""
    if row["state"] is None:
        return None
    has_score = row["health_score"] is not None
    missing = unmeasured(row) if has_score else frozenset()
    components = {name: row[column] for name, (column, _) in DIMENSIONS.items() if name not in missing}
    return _known(
        state=row["state"],
        is_provisional=bool(row["is_provisional"]),
        n=row["n"],
        n_full=row["n_full"],
        score=row["health_score"],
        points_at_stake=row["points_at_stake"],
        components=components if has_score else None,
        last_runs=_last_runs(row),
        formula_version=row["formula_version"],
    )


def _last_runs(row: Row) -> dict[str, Any] | None:
    """The same formula over the last runs, where the window holds too few."""
    if row.get("last_runs") is None:
        return None
    return {
        "state": row["last_runs_state"],
        "n": row["last_runs"],
        "failures": row["last_runs_failures"],
        "score": row["last_runs_score"],
        "points_at_stake": row["last_runs_points_at_stake"],
        "since": _moment(row["last_runs_since"]),
    }


def _now(row: Row) -> dict[str, Any] | None:
    """The extension beside it: the verdict on the last hours."""
    if row.get("now") is None:
        return None
    return {"verdict": row["now"], "since": _moment(row["now_since"])}


def _known(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _moment(at: datetime | None) -> str | None:
    return None if at is None else f"{at.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
