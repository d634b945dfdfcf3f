"""An agent's page: why its score fell, by which executions, since when, and what changed then.

What belongs here: putting the page together, its first sentences, and what surrounds the score: sessions, tools, usage,
targets. What does not: the points lost and their evidence (`agent_causes`), curves and marks (`agent_curves`), and two
hours or versions side by side (`agent_comparison`).
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from health_assets.apps.serving.pages.agent_causes import (
    Losses,
    budget,
    errors_of,
    evidence_of,
    losses_of,
    worst_tool,
)
from health_assets.apps.serving.pages.agent_claims import claims_against_evidence, doubt_of_claims
from health_assets.apps.serving.pages.agent_comparison import compared_hours, compared_versions
from health_assets.apps.serving.pages.agent_curves import curve_of, fall_of, incidents_of, marks_of
from health_assets.apps.serving.pages.agent_document import document_text, health_document
from health_assets.apps.serving.pages.agent_last_hours import agent_now
from health_assets.apps.serving.pages.agent_runs import runs_by, runs_of
from health_assets.apps.serving.pages.agent_success import success_of
from health_assets.apps.serving.pages.incident_rows import judged_to
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.release_rows import FOR_TEMPLATES, RELEASES_SHOWN, releases_of
from health_assets.apps.serving.pages.rendering import LONGEST_NAME, shape
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.without_targets import runtime_without_target
from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.terminal import printable
from health_assets.scoring.explanation import untested
from health_assets.scoring.verdict import FAILING, SUSPECT, at_stake, last_runs, reservation
from health_assets.systems.agent_drift.texts import sentence as drift_sentence
from health_assets.systems.agent_health_model.names import TARGETS_USED

OF_DRIFT = (
    "measure", "since", "runs", "value", "baseline_runs", "baseline", "limit_value", "evidence",
    "cause_dimension", "cause", "cause_share", "hint",
)  # fmt: skip
SESSIONS_SHOWN = 20
TOOLS_SHOWN = 50
RUNS_SHOWN = 30


class NoAgentError(HealthAssetsError):
    """No agent that the caller may see has this name."""


@dataclass(frozen=True, kw_only=True)
class WantedOfAgent:
    """The parts of an agent's page that are asked for.

    Args:
        days: how far back curves, versions and usage go.
        against: another hour to compare with.
        versions: versions to compare; "" is the runs that tell none.
    """

    days: int = 7
    against: datetime | None = None
    versions: tuple[str, ...] = ()


def agent_page(look: ScopedHistory, agent_id: str, wanted: WantedOfAgent) -> Page:
    """Everything that is known of an agent at one hour.

    Raises:
        NoAgentError: nobody whom the caller may see has this name.
        HealthAssetsError: one has it at another hour.
    """
    row = _row(look, agent_id)
    window = _window(look)
    shown = _with_data(look, look.back(wanted.days))
    incidents = incidents_of(look, agent_id)
    runs = runs_of(look, agent_id, shown)
    curve, changes = curve_of(look, agent_id, shown)
    marks, marks_left_out = marks_of(changes, incidents, shown)
    losses = losses_of(row)
    tools = sorted(look.of("tools", agent_id, HourRange.of(look.hour)), key=_worst_tool_first)
    fall = fall_of(curve)
    claims = claims_against_evidence(look, agent_id, window)
    versions = runs_by(runs, "agent_version")
    releases = releases_of(look, agent_id, shown)
    data: dict[str, Any] = {
        "hour": look.hour,
        "agent": _facts(look, row),
        "now": agent_now(look, row),
        "verdict": _verdict(row, losses, len(window)),
        "worst_tool": None if row.get("now") in (FAILING, SUSPECT) else worst_tool(row, tools),
        "drifts": _drifts(look, agent_id),
        "doubts": _doubts(row, len(window)) + doubt_of_claims(claims),
        "untested": _untested(look, row),
        "incomplete": look.remembered(("incomplete", shown.start), lambda: _incomplete(look, window, shown)),
        "fall": None if fall is None else {**fall, "meanwhile": _meanwhile(marks, fall["since"])},
        "days": wanted.days,
        "curve": curve,
        "success": success_of(look, agent_id, shown),
        "marks": marks,
        "releases": releases[:RELEASES_SHOWN],
        "losses": losses.rows,
        "evidence": evidence_of(look, agent_id, window, row, losses),
        "errors": errors_of(look, agent_id, window),
        "claims": claims,
        "budget": budget(row, len(window)),
        "incidents": incidents,
        "judged_to": judged_to(look),
        "shows_errors": look.view.shows_texts,
        "sessions": _sessions(look, agent_id, window),
        "tools": tools[:TOOLS_SHOWN],
        "versions": versions[:RUNS_SHOWN],
        "models": runs_by(runs, "model")[:RUNS_SHOWN],
        "usage": runs_by(runs, "day"),
        "targets": {name: row[name] for name in TARGETS_USED},
        "document": health_document(row, look.known_until(row["hour"])),
        "hours": None if wanted.against is None else compared_hours(look, agent_id, row, wanted.against, len(window)),
        "side_by_side": compared_versions(look, agent_id, runs, wanted.versions, shown) if wanted.versions else None,
    }
    query = [f"days={wanted.days}", *_asked_again(wanted)]
    told_besides = {
        "shell_name": printable(shlex.quote(agent_id)),
        "wanted": wanted,
        "query": query,
        "window": window,
        "shown": shown,
    }
    told_besides["drift_sentences"] = [drift_sentence(one) for one in data["drifts"]]
    told_besides["examples"] = _examples(data["evidence"])
    told_besides["costliest_kind"] = losses.costliest and losses.costliest.component.evidence
    told_besides["document_text"] = document_text(data["document"])
    told_besides |= {"releases_left_out": len(releases[RELEASES_SHOWN:]), **FOR_TEMPLATES}
    told_besides |= {"marks_left_out": marks_left_out, "known_versions": [one["agent_version"] for one in versions]}
    return Page(name="agent", title=shape(agent_id[:LONGEST_NAME]), data=data, listing="curve", shown=told_besides)


def _examples(evidence: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The run of each kind of evidence that weighs most."""
    runs = [event for event in reversed(evidence) if event["kind"] != "trigger_failure"]
    return {event["kind"]: event for event in runs}


def _worst_tool_first(tool: Mapping[str, Any]) -> tuple[float, int, str]:
    return -(tool["failure_share_at_least"] or 0), -tool["calls"], tool["tool"]


def _drifts(look: ScopedHistory, agent_id: str) -> list[dict[str, Any]]:
    """In what the agent is worse than its own past at this hour."""
    rows = look.of("drifts", agent_id, HourRange.of(look.hour))
    return [{name: row[name] for name in OF_DRIFT} for row in sorted(rows, key=lambda row: -row["evidence"])]


def _row(look: ScopedHistory, agent_id: str) -> dict[str, Any]:
    """The agent's row of the hour; one whom the caller may not see looks like one that is not there."""
    if look.sees(agent_id):
        if rows := look.of("agents", agent_id, HourRange.of(look.hour)):
            return rows[0]
        hours = look.history.hours("agents")
        known = look.history.of("agents", agent_id, HourRange(hours[0], hours[-1] + HOUR), ("hour", "agent_id"))
        if known.num_rows:
            last = known.column("hour")[-1].as_py()
            raise HealthAssetsError(
                f"This agent is not known at {look.hour:%Y-%m-%d %H:%M} UTC; "
                f"look at {last:%Y-%m-%dT%H}, the last hour at which it is."
            )
    raise NoAgentError("No agent of this name is known here; search for it on the page of the fleet.")


def _window(look: ScopedHistory) -> HourRange:
    """The hours that the score is about."""
    return HourRange(look.hour - (look.window_hours - 1) * HOUR, look.hour + HOUR)


def _with_data(look: ScopedHistory, hours: HourRange) -> HourRange:
    """The same hours from the first one on that the history has."""
    first = look.history.hours("agents")[0]
    return HourRange(max(hours.start, first), hours.end)


def _incomplete(look: ScopedHistory, window: HourRange, shown: HourRange) -> list[str]:
    """Series of which hours are missing that have a score: there may be more of these than the page tells."""
    needed = dict.fromkeys(("events", "errors", "claims", "agent_sessions"), window)
    needed |= {"tools": HourRange.of(look.hour), "drifts": HourRange.of(look.hour), "runs": shown, "releases": shown}
    return [series for series, hours in needed.items() if not look.has_all(series, hours)]


def _facts(look: ScopedHistory, row: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        "agent_id", "state", "is_provisional", "health_score", "points_at_stake", "n", "n_full", "failures",
        "hours_covered", "status", "last_healthy_at", "uptime_seconds", "calibration_trend", "latency_p50_ms",
        "latency_p99_ms",
    )  # fmt: skip
    owners = {
        "team": look.ownership.team(row["agent_id"]),
        "is_personal": look.ownership.is_personal(row["agent_id"]),
        "platform": row["hour_platform"],
        "version": row["hour_version"],
        "model": row["last_model"],
    }
    by_last_runs = {name: row.get(name) for name in ("last_runs", "last_runs_since", "last_runs_state")}
    now = by_last_runs | {"now_failures": row.get("now_failures")}
    return {name: row[name] for name in names} | owners | now


def _verdict(row: Mapping[str, Any], losses: Losses, window_hours: int) -> str:
    """The score in one sentence: what cost most."""
    if row["health_score"] is None:
        return f"It ran nothing in the {window_hours:,} h that end with this hour, so it has no score."
    if losses.costliest is None:
        return "It lost no points."
    lost, points = losses.of_dimension[losses.costliest.component.dimension]
    dimension = losses.costliest.component.dimension.capitalize()
    return f"{dimension} cost most, {lost:.1f} of {points:g} points: {losses.costliest.sentence}."


def _doubts(row: Mapping[str, Any], window_hours: int) -> list[str]:
    """The reasons to trust the score less, a sentence each."""
    if row["health_score"] is None:
        return []
    doubts = []
    if row["is_provisional"]:
        by_last_runs = f" It is {last_runs(row)}." if row.get("last_runs") is not None else ""
        doubts.append(f"The score is {reservation(row)}: with so few it leans to 100.{by_last_runs}")
    if row["hours_covered"] < window_hours:
        doubts.append(f"Only {row['hours_covered']:,} of the {window_hours:,} h of its window are here.")
    if 0 < (row["untimed"] or 0) < row["n"]:
        doubts.append(f"The logs do not tell how long {counted(row['untimed'], 'execution')} took.")
    return doubts


def _untested(look: ScopedHistory, row: Mapping[str, Any]) -> str:
    """The points that could not be lost, and how a runtime moved of which none is expected; "" where all could be."""
    if not at_stake(row):
        return ""
    sentence = f"Points counted in full, though nothing tested them: {', '.join(untested(row))}."
    if row["expected_runtime_s"] is not None or row["latency_p50_ms"] is None:
        return sentence
    return f"{sentence} {runtime_without_target(look, row)}"


def _meanwhile(marks: list[dict[str, Any]], since: datetime) -> list[dict[str, Any]]:
    """The three newest changes since an hour, incidents left out."""
    return [mark for mark in marks if mark["at"] >= since and mark["kind"] != "incident"][:3]


def _sessions(look: ScopedHistory, agent_id: str, window: HourRange) -> dict[str, Any]:
    """The newest scores of the sessions of the window, the least reliable first; those that nobody evaluated last."""
    newest: dict[str, dict[str, Any]] = {}
    for row in look.sessions_of(agent_id, window).to_pylist():
        newest[row["session_id"]] = row  # rows come by hour
    for row in newest.values():
        for name in ("other_agents", "team"):  # which say who may see it
            row.pop(name, None)
        row["agent_reliability"] = row["agent_reliability"] if row["traces_evaluated"] else None
        row["agent_consistency"] = row["agent_consistency"] if row["consistency_traces_evaluated"] else None
    worst = sorted(newest.values(), key=_worst_first)
    return {"count": len(worst), "listed": worst[:SESSIONS_SHOWN]}


def _worst_first(session: Mapping[str, Any]) -> tuple:
    reliability, consistency = session["agent_reliability"], session["agent_consistency"]
    return (
        reliability is None,
        reliability or 0.0,
        consistency is None,
        consistency or 0.0,
        -session["hour"].timestamp(),
        session["session_id"],
    )


def _asked_again(wanted: WantedOfAgent) -> list[str]:
    """The hour and the versions that are compared, as parts of an address."""
    against = [] if wanted.against is None else [f"against={wanted.against:%Y-%m-%dT%H}"]
    return against + [f"versions={quote(version, safe='')}" for version in wanted.versions]
