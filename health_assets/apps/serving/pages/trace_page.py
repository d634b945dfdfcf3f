"""The page of one run: what happened inside it over time, where it failed, and the lines of the logs that say so.

What belongs here: choosing rows, and the sentences around them. What does not: reading the run
(`apps.serving.run_traces`), and the tree of its spans (`span_rows`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from health_assets.apps.serving.pages.lists import pages_of
from health_assets.apps.serving.pages.page import Format, Page
from health_assets.apps.serving.pages.rendering import shape
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.span_rows import Line, Row, overview, rows_of
from health_assets.apps.serving.trace_question import TraceQuestion
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange, floor_hour

Show = Literal["outline", "all", "failed", "calls", "repeated", "slowest"]
ROWS_PER_PAGE = 500
ROWS_OF_A_FILE = 20_001
ORIGINS_SHOWN = 5
CALLS = ("model", "tool")
NO_RUN = "No such run is known here, or it is not yours to see."
NO_SPAN = "The run has no such span, or it is not yours to see."
ONLY_CALLS = (
    "Its log has no spans, so this is what its tool and model calls say: each ends when the log says so, and begins "
    "before that by its latency."
)
SPANS_GONE = (
    "Its spans are not in the warehouse any more, since retention dropped them; this is what its tool and model calls "
    "say."
)
NO_CALLS = "Its log tells of no tool or model call inside it, so there is nothing to draw but the run itself."
IS_BUSY = 503


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The run that is asked for, and which of its rows.

    Args:
        question: the run.
        trace: what `run_traces.trace_of` says of it; None where there is none that the caller may see.
        why_not: why the warehouse could not be asked; None where it could.
        show: which rows; None for all, or the outline where these are more than a page.
        span: only this span and those below it; "" for all.
        page: of the rows, from 1.
        most: rows of a page.
    """

    question: TraceQuestion
    trace: Mapping[str, Any] | None = None
    why_not: str | None = None
    show: Show | None = None
    span: str = ""
    page: int = 1
    most: int = ROWS_PER_PAGE


def most_rows(how: Format) -> int:
    """Rows of a page for people, and for programs all that there are."""
    return ROWS_PER_PAGE if how == "html" else ROWS_OF_A_FILE


def trace_page(look: ScopedHistory, wanted: Wanted) -> Page:
    """One run with its spans, or its calls.

    Raises:
        HealthAssetsError: there is none that the caller may see.
    """
    title = f"Run {wanted.question.run_id or ''}".strip()
    if wanted.why_not:
        data = {"hour": look.hour, "why_not": wanted.why_not, "run": None, "listed": []}
        return Page(name="trace", title=title, data=data, listing="listed", shown={"wanted": wanted}, status=IS_BUSY)
    if wanted.trace is None:
        raise HealthAssetsError(_none_of(wanted.question))
    trace = wanted.trace
    rows = rows_of(trace, look)
    run = _run(trace, look)
    inside, top = _inside(rows, wanted.span)
    show = wanted.show or ("outline" if len(inside) > wanted.most else "all")
    found = _chosen(inside, show, wanted.most)
    start = (wanted.page - 1) * wanted.most
    listed = found[start : start + wanted.most]
    origins = [row for row in rows if row["is_origin"] and row["above"] is not None][:ORIGINS_SHOWN]
    data = {
        "hour": look.hour,
        "why_not": None,
        "run": run,
        "spans": len(rows),
        "counts": _counts(rows),
        "found": len(found),
        "has_spans": trace["spans"] is not None,
        "note": _note(trace),
        "not_listed": trace["not_listed"],
        "loose": trace["loose"] if look.hides_nothing else None,
        "other_runs": [one for one in trace["others"] if look.sees(one["agent_id"])],
        "files_gone": trace["files_gone"],
        "no_logs": trace["no_logs"] if look.view.shows_texts else None,
        "shows_errors": look.view.shows_texts,
        "origins": origins,
        "listed": listed,
    }
    line = Line(inside)
    above = _above(rows, listed, wanted) if show == "all" else []
    shown = {
        "wanted": wanted,
        "show": show,
        "query": _query(wanted, run),
        "own_query": _own_query(run),
        "top": top,
        "above": above,
        "line": line,
        "begun": rows[0]["started_at"],
        "places": {row["place"]: line.span(row) for row in (*listed, *above)},
        "lanes": overview(inside, line),
        "pages": pages_of(len(found), wanted.most),
        "page_of_row": {row["place"]: row["place"] // wanted.most + 1 for row in origins},
        "parents": {row["place"]: rows[row["above"]] for row in (*listed, *origins) if row["above"] is not None},
        "files_gone": gone_sentence(trace["files_gone"]) if trace["files_gone"] else "",
        "files": sorted({row["source_file"] for row in rows if row["source_file"]}),
    }
    return Page(name="trace", title=f"Run {run['execution_id']}", data=data, listing="listed", shown=shown)


def _none_of(question: TraceQuestion) -> str:
    if question.because is None or question.agent_id is None:
        return NO_RUN
    what = {"tool": "a call of the tool", "called_model": "a call of the model"}.get(question.because)
    failed = (
        f"in which {what} {question.value} failed" if what else f"of {question.because} {question.value} that failed"
    )
    return f"No run of {question.agent_id} {failed} is known in the look-back."


def _run(trace: Mapping[str, Any], look: ScopedHistory) -> dict[str, Any]:
    """The run with times as such, its session where it has a page for the caller, and no text that it may not read."""
    run = dict(trace["run"])
    for name in ("started_at", "ended_at"):
        run[name] = datetime.fromisoformat(run[name]) if run[name] else None
    run["error"] = run["error"] if look.view.shows_texts else None
    run["session_id"] = _session(look, run)
    return run


def _session(look: ScopedHistory, run: Mapping[str, Any]) -> str | None:
    if run["session_id"] is None or look.hides_nothing:
        return run["session_id"]
    first = min(floor_hour(run["ended_at"]), look.hour)
    seen = look.seen_sessions([run["session_id"]], HourRange(first, look.hour + HOUR))
    return run["session_id"] if len(seen) else None


def _inside(rows: list[Row], span_id: str) -> tuple[list[Row], Row | None]:
    """The rows of one span and below it, which stand one after another, and the span's own; all for no span.

    Raises:
        HealthAssetsError: there is no such span.
    """
    if not span_id:
        return rows, None
    top = next((row for row in rows if row["span_id"] == span_id), None)
    if top is None:
        raise HealthAssetsError(NO_SPAN)
    return rows[top["place"] : top["place"] + top["below"] + 1], top


def _chosen(rows: list[Row], show: Show, most: int) -> list[Row]:
    if show == "outline":
        return _outline(rows, most)
    if show == "failed":
        return [row for row in rows if row["is_failed"]]
    if show == "calls":
        return [row for row in rows if row["is_call"]]
    if show == "repeated":
        return [row for row in rows if row["is_repeated"]]
    if show == "slowest":
        timed = (row for row in rows if row["duration_s"] is not None and not row["below"])
        return sorted(timed, key=lambda row: (-row["duration_s"], row["place"]))
    return rows


def _outline(rows: list[Row], most: int) -> list[Row]:
    """The rows down to the depth at which they are still no more than a page; the outermost two levels in any case."""
    by_depth = Counter(row["depth"] for row in rows)
    depth = min(by_depth)
    count = by_depth[depth] + by_depth[depth + 1]
    last = depth + 1
    while count + by_depth[last + 1] <= most and by_depth[last + 1]:
        last += 1
        count += by_depth[last]
    return [row for row in rows if row["depth"] <= last]


def _above(rows: list[Row], listed: Sequence[Row], wanted: Wanted) -> list[Row]:
    """The rows above the first one of a page that goes on in the middle of the tree, from the outermost on."""
    found: list[Row] = []
    if wanted.page == 1 or not listed:
        return found
    above = listed[0]["above"]
    while above is not None:
        found.append(rows[above])
        above = rows[above]["above"] if rows[above]["span_id"] != wanted.span else None
    return found[::-1]


def _counts(rows: Sequence[Row]) -> dict[str, int]:
    calls = {kind: [row for row in rows if row["is_call"] and row["kind"] == kind] for kind in CALLS}
    return {
        **{f"{kind}_calls": len(own) for kind, own in calls.items()},
        **{f"failed_{kind}_calls": sum(row["is_failed"] for row in own) for kind, own in calls.items()},
        "failed": sum(row["is_failed"] for row in rows),
        "repeated": sum(row["is_repeated"] for row in rows),
    }


def _note(trace: Mapping[str, Any]) -> str | None:
    """The reason for which there are no spans to draw, in a sentence; None where there are."""
    if trace["spans"] is not None:
        return None
    if trace["run"]["span_id"]:
        return SPANS_GONE
    return ONLY_CALLS if trace["calls"] and trace["calls"]["call_id"] else NO_CALLS


def gone_sentence(files: Sequence[str]) -> str:
    """The logs that are not there any more, in a sentence."""
    them = "This log is" if len(files) == 1 else "These logs are"
    names = ", ".join(map(shape, files))
    return f"{them} gone or renamed, so no line of it can be opened; what was loaded stays: {names}."


def _own_query(run: Mapping[str, Any]) -> str:
    return f"agent={quote(run['agent_id'], safe='')}&until={floor_hour(run['ended_at']):%Y-%m-%dT%H}"


def _query(wanted: Wanted, run: Mapping[str, Any]) -> list[str]:
    """The choices of the address, for the twins."""
    chosen = ([f"show={wanted.show}"] if wanted.show else []) + (
        [f"span={quote(wanted.span, safe='')}"] if wanted.span else []
    )
    return [_own_query(run), *chosen]
