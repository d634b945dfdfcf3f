"""A small warehouse with incidents of every kind, made by hand, of the hour that was just over."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from health_assets.core.hours import HOUR, floor_hour
from health_assets_tests.support.serving_made import Row, fill, score, state, write_targets

NEWEST = floor_hour(datetime.now(UTC)) - HOUR
AGENTS = ("fine", "crawler-1", "crawler-2", "mine", "theirs", "<script>alert(1)</script>")
TARGETS = {
    "defaults": {"team": "ours"},
    "agents": {"mine": {"personal": True}, "theirs": {"team": "theirs"}},
}
LOSSES = [
    {
        "component": "success", "dimension": "reliability", "points": 28.0, "lost": 14.5, "inputs": {}, "targets": {},
        "sentence": "46% succeeded, 95% expected", "evidence_kind": "failure", "evidence": ["run-7", "run-9"],
    }
]  # fmt: skip


def incident(
    incident_id: str, subject_id: str, *, ago_h: float = 1, lasted_h: float | None = None, **columns: Any
) -> Row:
    """A row of `alerts` that opened so many hours before the end of the newest hour."""
    opened_at = NEWEST + (1 - ago_h) * HOUR
    over = (
        {}
        if lasted_h is None
        else {"closed_at": opened_at + lasted_h * HOUR, "recovery": f"{subject_id} is back", "good_hours": 3}
    )
    return {
        "hour": floor_hour(opened_at - HOUR), "incident_id": incident_id, "rule": "floor", "subject_kind": "agent",
        "subject_id": subject_id, "severity": "critical", "opened_at": opened_at, "good_hours": 0,
        "reason": f"{subject_id} scored 42.4, below 65", "is_personal": False,
        "evidence": json.dumps({"health_score": 42.4, "explanation": LOSSES}), **over, **columns,
    }  # fmt: skip


def notice(incident_id: str, channel: str, *, event: str = "opened", **columns: Any) -> Row:
    """A row of `alert_deliveries`."""
    written_at = NEWEST + HOUR
    return {
        "incident_id": incident_id, "event": event, "channel": channel, "written_at": written_at, "attempts": 1,
        "next_attempt_at": written_at, **columns,
    }  # fmt: skip


INCIDENTS = (
    incident("open-floor", "crawler-1"),
    incident("open-drop", "fine", rule="drop", severity="warning", ago_h=5),
    incident("over-floor", "crawler-1", ago_h=100, lasted_h=10),
    incident("long-over", "fine", ago_h=24 * 20, lasted_h=2),
    incident("of-mine", "mine", severity="info"),
    incident("of-theirs", "theirs", severity="warning"),
    incident("hostile", AGENTS[-1], severity="info", rule="drop"),
    incident("late", "hours", rule="hour_late", subject_kind="pipeline"),
    incident("of-model", "gpt-5", rule="model_degraded", subject_kind="model", severity="warning"),
    incident(
        "of-check", "executions.unique", rule="expectation_failed", subject_kind="expectation", severity="warning"
    ),
)
NOTICES = (
    notice("open-floor", "chat", delivered_at=NEWEST + HOUR),
    notice("open-floor", "pager", last_error="it answered 503"),
    notice("open-drop", "chat", attempts=0),
    notice("over-floor", "chat", hushed_by="0a1b2c3d"),
    notice("of-theirs", "theirs-only", last_error="it answered 500"),
)


def make_warehouse(folder: Path) -> tuple[Path, Path]:
    """The warehouse, and its targets."""
    path = folder / "health.duckdb"
    fill(
        path,
        NEWEST,
        agent_health=[score(agent) for agent in AGENTS],
        agent_health_state=[state(agent) for agent in AGENTS],
    )
    fill(path, NEWEST, alerts=INCIDENTS, alert_deliveries=NOTICES)
    return path, write_targets(folder / "targets.yaml", TARGETS)
