"""Tools about sessions: a list of them, one of them, and the steps of one trace.

What belongs here: which parts of these pages an answer has. What does not: the pages (`apps.serving.pages`).
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from pydantic import Field

from health_assets.apps.serving.mcp_server.arguments import Arguments, Hour, Limit, Text
from health_assets.apps.serving.mcp_server.backend import Backend, as_of, require_read
from health_assets.apps.serving.mcp_server.bounded import only
from health_assets.apps.serving.pages import sessions_page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.session_page import NoSessionError, Wanted, session_page
from health_assets.apps.serving.service import RequestContext
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import parse_hour

NO_SESSION = "No session of this id is known here, or it is not yours to see; the tool sessions lists those that are."
NO_TRACE = "No trace of this id is among those of the session that are listed; the tool session lists them."
OF_TRACE = (
    "trace_id", "agent_id", "status", "is_failed", "started_at", "ended_at", "runtime_s", "model", "task_id",
    "source_file", "line_number", "error", "step_risk", "is_flagged", "driver", "confidence_risk", "loop_risk",
    "tool_risk", "coherence_risk", "calls",
)  # fmt: skip
OF_STEP = ("kind", "name", "status", "is_failed", "ended_at", "latency_ms", "error", "call_id")


class SessionsArguments(Arguments):
    """Arguments of `sessions`."""

    text: Text = ""
    show: sessions_page.Show = Field(
        "all", description="All, those with failed runs, below a threshold, with flagged traces, or without any signal."
    )
    sort: sessions_page.Sort = Field("failures", description="Order; scores come the worst first.")
    limit: Limit = 20
    hour: Hour = None


class SessionArguments(Arguments):
    """Arguments of `session`."""

    session_id: str = Field(min_length=1, max_length=4096, description="Id of the session.")
    limit: Limit = 20
    hour: Hour = None


class TraceArguments(Arguments):
    """Arguments of `trace`."""

    session_id: str = Field(min_length=1, max_length=4096, description="Id of the session that the trace is of.")
    trace_id: str = Field(min_length=1, max_length=4096, description="Id of the trace, as the tool session has it.")
    limit: Limit = 50
    hour: Hour = None


async def sessions(backend: Backend, asked: RequestContext, wanted: SessionsArguments) -> dict[str, Any]:
    """Sessions of the last hours, by their newest scores."""

    def found(look: ScopedHistory) -> dict[str, Any]:
        question = sessions_page.Wanted(text=wanted.text, show=wanted.show, sort=wanted.sort, most=wanted.limit)
        data = sessions_page.sessions_page(look, question).data
        return {
            **as_of(look),
            "page": backend.link(look, "/ui/sessions"),
            "hours_looked_at": data["hours"],
            "sessions": data["sessions"],
            "found": data["found"],
            "counts": data["counts"],
            "bands_of_reliability": data["bands"],
            "listed": data["listed"],
            "left_out": {"listed": data["found"] - len(data["listed"])},
        }

    return await backend.find(asked, found, wanted.hour)


async def session(backend: Backend, asked: RequestContext, wanted: SessionArguments) -> dict[str, Any]:
    """Both scores of a session and its traces, the riskiest first."""

    def chosen(look: ScopedHistory, data: Mapping[str, Any]) -> dict[str, Any]:
        traces = sorted(data["traces"], key=lambda one: one["place"])
        shown = traces[: wanted.limit]
        names = (
            "session_id", "agent_id", "scored_at", "total_traces", "flagged", "flag_threshold", "runs", "reliability",
            "consistency", "why_not",
        )  # fmt: skip
        return {
            **as_of(look),
            "page": backend.link(look, f"/ui/sessions/{quote(wanted.session_id, safe='')}"),
            **only(data, names),
            "shows_errors": data["shows_errors"],
            "traces": [only(trace, OF_TRACE) for trace in shown],
            "left_out": {"traces": data["total_traces"] - len(shown)},
        }

    return await _of_session(backend, asked, wanted, chosen)


async def trace(backend: Backend, asked: RequestContext, wanted: TraceArguments) -> dict[str, Any]:
    """The steps of a trace: the calls of tools and models inside its run, in order."""

    def chosen(look: ScopedHistory, data: Mapping[str, Any]) -> dict[str, Any]:
        if data["why_not"] is not None:
            raise HealthAssetsError(f"The steps cannot be read now: {data['why_not']}.")
        traces = [one for one in data["traces"] if one["trace_id"] == wanted.trace_id]
        if not traces:
            raise HealthAssetsError(NO_TRACE)
        places = {one["place"] for one in traces}
        steps = [_step(call, traces) for call in data["calls"] if call["place"] in places]
        return {
            **as_of(look),
            "page": backend.link(look, f"/ui/sessions/{quote(wanted.session_id, safe='')}"),
            "session_id": data["session_id"],
            "traces": [only(one, OF_TRACE) for one in traces],
            "steps": steps[: wanted.limit],
            "shows_errors": data["shows_errors"],
            "calls_of_session_not_read": data["calls_not_listed"] or None,
            "left_out": {"steps": max(0, len(steps) - wanted.limit)},
        }

    return await _of_session(backend, asked, wanted, chosen)


def _step(call: Mapping[str, Any], traces: list[Mapping[str, Any]]) -> dict[str, Any]:
    """A call, and how long after the start of its run it ended."""
    [run] = [one for one in traces if one["place"] == call["place"]]
    ended_s = None if run["started_at"] is None else (call["ended_at"] - run["started_at"]).total_seconds()
    return {**only(call, OF_STEP), "ended_after_s": ended_s, "agent_id": run["agent_id"] if len(traces) > 1 else None}


async def _of_session(
    backend: Backend,
    asked: RequestContext,
    wanted: SessionArguments | TraceArguments,
    choose: Callable[[ScopedHistory, Mapping[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """What is chosen of a session's page.

    Raises:
        HealthAssetsError: the caller sees no such session, or its runs cannot be read.
    """
    require_read(asked)
    until = parse_hour(wanted.hour) if wanted.hour else None
    runs = await backend.service.runs(wanted.session_id, until, asked)
    question = Wanted(session_id=wanted.session_id, runs=runs.data, why_not=runs.why_not)

    def found(look: ScopedHistory) -> dict[str, Any]:
        try:
            return choose(look, session_page(look, question).data)
        except NoSessionError:
            raise HealthAssetsError(NO_SESSION) from None

    return await backend.find(asked, found, wanted.hour)
