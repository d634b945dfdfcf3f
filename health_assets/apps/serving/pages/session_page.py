"""The page of a session: both scores, why they are what they are, and its runs over time.

What belongs here: what the two numbers of source 5 are made of, in the terms of this session. What does not: finding
its runs (`apps.serving.session_runs`) and places on the line of time (`session_timeline`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.session_timeline import Timeline
from health_assets.apps.serving.pages.sessions_page import MOMENT, OF_RUNS
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange

NO_SESSION = "No session of this id is known here, or it is not yours to see. Search for it in the list of sessions."
SIGNALS: Mapping[str, tuple[str, str]] = {
    "confidence": ("confidence_risk", "weight_confidence"),
    "loop": ("loop_risk", "weight_loop_detection"),
    "tool": ("tool_risk", "weight_tool_correctness"),
    "coherence": ("coherence_risk", "weight_coherence"),
}
"""The four risks by the words that the page has for them: their column, and that of their weight."""
FOLDS_DRAWN = 12
LONGEST_CALL_MS = 1e10
"""Four months; a call that says it took longer is drawn as that."""


class NoSessionError(HealthAssetsError):
    """No session that the caller may see has this id."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The session that is asked for.

    Args:
        session_id: the session.
        runs: its score and its runs as `session_runs.runs_of` tells them; None where they are not known.
        why_not: why the warehouse could not be asked; None where it could.
    """

    session_id: str
    runs: dict[str, Any] | None = None
    why_not: str | None = None


def session_page(look: ScopedHistory, wanted: Wanted) -> Page:
    """One session by the end of the hour.

    Raises:
        NoSessionError: there is none that the caller may see.
    """
    kept = _kept(look, wanted.session_id)
    if wanted.runs is not None:
        score = {**wanted.runs["score"], "hour": datetime.fromisoformat(wanted.runs["score"]["hour"])}
        score["flagged"] = len(score["flagged_traces"]) + score["flagged_not_listed"]
    elif kept:
        score = kept[-1]
    else:
        raise NoSessionError(NO_SESSION)
    traces = [_trace(trace, score, look) for trace in wanted.runs["traces"]] if wanted.runs else []
    calls = [_call(call, look) for call in wanted.runs["calls"]] if wanted.runs else []
    data: dict[str, Any] = {
        "hour": look.hour,
        "session_id": wanted.session_id,
        "agent_id": score["agent_id"] or "",
        "scored_at": score["hour"],
        "total_traces": score["total_traces"],
        "runs": _runs(score, look),
        "flagged": score["flagged"],
        "flagged_traces": score["flagged_traces"],
        "flag_threshold": score["flag_threshold"],
        "weights": {name: score[weight] for name, (_, weight) in SIGNALS.items()},
        "reliability": _reliability(score, traces),
        "consistency": _consistency(score),
        "curve": [_point(row) for row in kept],
        "why_not": wanted.why_not,
        "has_runs": wanted.runs is not None,
        "traces_not_listed": max(0, score["total_traces"] - len(traces)),
        "calls_not_listed": wanted.runs["calls_not_listed"] if wanted.runs else 0,
        "shows_errors": look.view.shows_texts,
        "traces": sorted(traces, key=lambda one: (one["ended_at"] or one["traced_at"], one["trace_id"], one["place"])),
        "calls": calls,
    }
    title = f"Session {wanted.session_id}"
    return Page(name="session", title=title, data=data, listing="traces", shown={"drawn": _drawn(traces, calls)})


def _kept(look: ScopedHistory, session_id: str) -> list[dict[str, Any]]:
    """The session's rows in the history up to the hour, by hour; none where the caller may not see the newest."""
    first = min(look.history.hours("sessions"), default=look.hour)
    rows = look.history.of("sessions", session_id, HourRange(min(first, look.hour), look.back(1).end))
    newest = rows.slice(max(0, rows.num_rows - 1))
    return look.visible(rows).to_pylist() if look.visible(newest).num_rows else []


def _point(row: Mapping[str, Any]) -> dict[str, Any]:
    """Both scores of an hour; null where nothing was evaluated."""
    return {
        "hour": row["hour"],
        "reliability": row["agent_reliability"] if row["traces_evaluated"] else None,
        "consistency": row["agent_consistency"] if row["consistency_traces_evaluated"] else None,
    }


def _runs(score: Mapping[str, Any], look: ScopedHistory) -> dict[str, Any]:
    """What is known of the session's runs without any signal; null where an earlier release copied the row."""
    runs = {name: score.get(name) for name in OF_RUNS}
    for name in (name for name, kind in OF_RUNS.items() if kind == MOMENT):
        moment = runs[name]
        runs[name] = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    started, ended = runs["first_started_at"], runs["last_ended_at"]
    duration = (ended - started).total_seconds() if started and ended else None
    error = runs["last_error"] if look.view.shows_texts else None
    return {**runs, "last_error": error, "duration_s": duration}


def _trace(trace: dict[str, Any], score: Mapping[str, Any], look: ScopedHistory) -> dict[str, Any]:
    """A trace with moments as such, the signal that made its risk, and no error that the caller may not read."""
    moments = {
        name: datetime.fromisoformat(trace[name]) if trace[name] else None
        for name in ("started_at", "ended_at", "traced_at")
    }
    weighed = {name: score[weight] * trace[risk] for name, (risk, weight) in SIGNALS.items() if trace[risk] is not None}
    return {
        **trace,
        **moments,
        "error": trace["error"] if look.view.shows_texts else None,
        "driver": max(weighed, key=weighed.__getitem__) if weighed else None,
        "is_failed": trace["status"] == "failure",
        "in_tail": False,
        "taken": None,
        "calls": 0,
    }


def _reliability(score: Mapping[str, Any], traces: list[dict[str, Any]]) -> dict[str, Any]:
    """The score, its verdict, and the tail that it is made from; marks the traces of the tail with what they take."""
    n, share, ensemble = score["traces_evaluated"], score["top_k_share"], score["ensemble_weight"]
    data = _verdict(score, "reliability", n)
    if not n:
        return data | {"tail": 0, "reason": "No trace carries a signal, so there is nothing to judge it by."}
    tail = max(1, math.ceil(n * Fraction(str(share)).limit_denominator(10**9)))
    riskiest = sorted((one for one in traces if one["step_risk"] is not None), key=lambda one: -one["step_risk"])
    for place, one in enumerate(riskiest[:tail]):
        one["in_tail"] = True
        one["taken"] = one["step_risk"] * ((1 - ensemble) / tail + (ensemble if place == 0 else 0))
    return data | {
        "tail": tail,
        "top_k_share": share,
        "ensemble_weight": ensemble,
        "mean_top_k_risk": score["mean_top_k_risk"],
        "max_risk": score["max_risk"],
        "raw_risk": score["raw_risk"],
        "reason": None,
    }


def _consistency(score: Mapping[str, Any]) -> dict[str, Any]:
    n = score["consistency_traces_evaluated"]
    reason = None if n else "No trace carries a confidence signal, which this score starts from."
    return _verdict(score, "consistency", n) | {"raw_instability": score["raw_instability"], "reason": reason}


def _verdict(score: Mapping[str, Any], metric: str, evaluated: int) -> dict[str, Any]:
    """A score and what follows from it; nothing where nothing was evaluated, whatever the row says."""
    said = {"score": f"agent_{metric}", "passed": f"{metric}_passed", "band": f"{metric}_band"}
    return {
        **{name: score[column] if evaluated else None for name, column in said.items()},
        "evaluated": evaluated,
        "threshold": score["pass_threshold"],
    }


def _call(call: dict[str, Any], look: ScopedHistory) -> dict[str, Any]:
    return {
        **call,
        "ended_at": datetime.fromisoformat(call["ended_at"]),
        "error": call["error"] if look.view.shows_texts else None,
        "is_failed": call["status"] == "failure",
    }


def _drawn(traces: list[dict[str, Any]], calls: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Places of runs and of the calls inside them, which each trace counts; None where no trace has a run."""
    runs = {one["place"]: one for one in traces if one["started_at"] and one["ended_at"]}
    if not runs:
        return None
    line = Timeline((one["started_at"], one["ended_at"]) for one in runs.values())
    inside: dict[int, list[tuple[dict[str, Any], float, float]]] = {}
    for call in calls:
        run = runs[call["place"]]
        run["calls"] += 1
        began = call["ended_at"] - timedelta(milliseconds=min(call["latency_ms"] or 0.0, LONGEST_CALL_MS))
        drawn_at = line.span(max(began, run["started_at"]), call["ended_at"])
        inside.setdefault(call["place"], []).append((call, *drawn_at))
    return {
        "start": line.start,
        "end": line.end,
        "folds": line.folds if len(line.folds) <= FOLDS_DRAWN else [],
        "folded": len(line.folds),
        "runs": {place: line.span(one["started_at"], one["ended_at"]) for place, one in runs.items()},
        "calls": inside,
    }
