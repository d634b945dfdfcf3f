"""The page of sessions: those with failed runs first, then the worst scores.

What belongs here: choosing and counting sessions. What does not: one session (`session_page`).

A session is listed by its newest score. One that nobody evaluated has no score here, though its row says 1 (source 5,
"Edge cases"): nobody must take it for a good one.
"""

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.lists import ROWS_PER_PAGE, pages_of, rows_of_page
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HOUR
from health_assets.systems.session_scores.names import CALL_COUNTS

Show = Literal["all", "with_failures", "failed", "flagged", "unevaluated"]
Sort = Literal["failures", "reliability", "consistency", "duration", "tokens", "cost", "newest"]
HOURS_BACK = 24
MOST_ROWS = 250_000
"""Rows of so many hours are looked at; a list of more sessions goes less far back, and says so."""
BANDS = (
    "highly_reliable", "generally_reliable", "moderate_risk", "elevated_risk", "high_risk",
)  # fmt: skip
WORST_SCORES = [("agent_reliability", "ascending"), ("agent_consistency", "ascending"), ("session_id", "ascending")]
ORDER: dict[str, list[tuple[str, str]]] = {
    "failures": [("failures", "descending"), ("failure_share", "descending"), *WORST_SCORES],
    "reliability": WORST_SCORES,
    "consistency": [
        ("agent_consistency", "ascending"),
        ("agent_reliability", "ascending"),
        ("session_id", "ascending"),
    ],
    "duration": [("duration_s", "descending"), ("session_id", "ascending")],
    "tokens": [("tokens", "descending"), ("session_id", "ascending")],
    "cost": [("cost_usd", "descending"), ("session_id", "ascending")],
    "newest": [("last_ended_at", "descending"), ("session_id", "ascending")],
}
EVALUATED = {
    "traces_evaluated": ("agent_reliability", "reliability_band", "reliability_passed"),
    "consistency_traces_evaluated": ("agent_consistency", "consistency_band", "consistency_passed"),
}
"""By the count of traces that could be evaluated, what is not known where there were none."""
LISTED = (
    "session_id", "agent_id", "team", "hour", "agent_reliability", "reliability_band", "reliability_passed",
    "agent_consistency", "consistency_band", "consistency_passed", "total_traces", "traces_evaluated", "flagged",
    "max_risk", "runs", "failures", "cancelled_runs", "first_started_at", "last_ended_at", "duration_s",
    "input_tokens", "output_tokens", "cost_usd", "cost_source", *CALL_COUNTS, "last_error", "last_error_at",
)  # fmt: skip

READ = (
    *(name for name in LISTED if name not in ("team", "duration_s")), "consistency_traces_evaluated", "other_agents",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The sessions that are asked for.

    Args:
        text: part of the session's or the agent's id, in any case.
        show: all, those with failed runs, below a threshold, with flagged traces, or without any signal.
        sort: the order.
        page: of the list, from 1.
        most: rows of a page.
    """

    text: str = ""
    show: Show = "all"
    sort: Sort = "failures"
    page: int = 1
    most: int = ROWS_PER_PAGE


def sessions_page(look: ScopedHistory, wanted: Wanted) -> Page:
    """The sessions of the last hours."""
    seen = look.remembered("sessions of the last hours", lambda: _seen(look))
    found = _found(seen.sessions, wanted)
    if wanted.sort != "failures" and found.num_rows:
        found = found.sort_by(ORDER[wanted.sort])
    data: dict[str, Any] = {
        "hour": look.hour,
        "hours": seen.hours,
        "sessions": seen.sessions.num_rows,
        "found": found.num_rows,
        "counts": seen.counts,
        "bands": seen.bands,
        "shows_errors": look.view.shows_texts,
        "listed": rows_of_page(found, LISTED, wanted.page, wanted.most),
    }
    shown = {"wanted": wanted, "pages": pages_of(found.num_rows, wanted.most)}
    return Page(name="sessions", title="Sessions", data=data, listing="listed", shown=shown)


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """The sessions that a caller sees, the worst first, and what is told of all of them."""

    sessions: pa.Table
    hours: int
    counts: dict[str, int]
    bands: dict[str, int]


def _seen(look: ScopedHistory) -> _Seen:
    sessions, hours = _newest(look)
    in_order = _with_sums(look, sessions).sort_by(ORDER["failures"]) if sessions.num_rows else sessions
    return _Seen(sessions=in_order, hours=hours, counts=_counts(in_order), bands=_bands(in_order))


def _newest(look: ScopedHistory) -> tuple[pa.Table, int]:
    """Each session of the last hours by its newest row, and how many hours these are."""
    tables: list[pa.Table] = []
    rows = hours = 0
    seen = pa.array([], pa.string())
    for back in range(HOURS_BACK):
        hour = look.hour - back * HOUR
        of_hour = look.history.of_all("sessions", hour, READ)
        hours = back + 1
        if not of_hour.num_rows:
            continue
        rows += of_hour.num_rows
        fresh = of_hour.filter(pc.invert(pc.is_in(of_hour.column("session_id"), value_set=seen)))
        if fresh.num_rows:  # else all of them went on into later hours
            tables.append(_with_all_columns(look.visible(fresh)))
        if rows > MOST_ROWS:
            break
        seen = pa.concat_arrays([seen, fresh.column("session_id").combine_chunks()])
    return (_scored(pa.concat_tables(tables, promote_options="permissive")) if tables else pa.table({})), hours


def _with_all_columns(sessions: pa.Table) -> pa.Table:
    """Sessions with nulls for what an hour lacks that an earlier release copied."""
    for name in set(OF_RUNS) - set(sessions.column_names):
        sessions = sessions.append_column(name, pa.nulls(sessions.num_rows, OF_RUNS[name]))
    return sessions


MOMENT = pa.timestamp("us", "UTC")
OF_RUNS: dict[str, pa.DataType] = {
    "runs": pa.int64(), "failures": pa.int64(), "cancelled_runs": pa.int64(), "first_started_at": MOMENT,
    "last_ended_at": MOMENT,
    "input_tokens": pa.int64(), "output_tokens": pa.int64(), "cost_usd": pa.float64(), "cost_source": pa.string(),
    **dict.fromkeys(CALL_COUNTS, pa.int64()), "last_error": pa.string(), "last_error_at": MOMENT,
}  # fmt: skip


def _scored(sessions: pa.Table) -> pa.Table:
    """The sessions without the scores of what could not be evaluated."""
    for count, names in EVALUATED.items():
        is_evaluated = pc.greater(sessions.column(count), 0)
        for name in names:
            place = sessions.column_names.index(name)
            values = sessions.column(name)
            known = pc.if_else(is_evaluated, values, pa.scalar(None, values.type))
            sessions = sessions.set_column(place, name, known)
    return sessions


def _with_sums(look: ScopedHistory, sessions: pa.Table) -> pa.Table:
    """The sessions with what orders need besides, and no error that the caller may not read."""
    started, ended = (sessions.column(name).cast(MOMENT) for name in ("first_started_at", "last_ended_at"))
    duration_us = pc.subtract(ended.cast(pa.int64()), started.cast(pa.int64()))
    into, out = sessions.column("input_tokens"), sessions.column("output_tokens")
    runs = pc.cast(sessions.column("runs"), pa.float64())
    added = {
        "duration_s": pc.divide(pc.cast(duration_us, pa.float64()), 1e6),
        "tokens": pc.if_else(pc.is_null(into), out, pc.add(into, pc.fill_null(out, 0))),
        "failure_share": pc.divide(sessions.column("failures"), pc.if_else(pc.equal(runs, 0), None, runs)),
    }
    for name, values in added.items():
        sessions = sessions.append_column(name, values)
    if not look.view.shows_texts:
        nothing = pa.nulls(sessions.num_rows, pa.string())
        sessions = sessions.set_column(sessions.column_names.index("last_error"), "last_error", nothing)
    return sessions


def _failed(sessions: pa.Table) -> pa.ChunkedArray:
    """Whether one of the scores is below its threshold."""
    passed = (pc.fill_null(sessions.column(name), True) for name in ("reliability_passed", "consistency_passed"))
    return pc.invert(pc.and_(*passed))


def _found(sessions: pa.Table, wanted: Wanted) -> pa.Table:
    """The sessions that are asked for."""
    if not sessions.num_rows:
        return sessions
    if wanted.text:
        matches = (
            pc.match_substring(sessions.column(name), wanted.text, ignore_case=True)
            for name in ("session_id", "agent_id")
        )
        sessions = sessions.filter(pc.or_(*matches))
    if wanted.show == "with_failures":
        return sessions.filter(pc.greater(sessions.column("failures"), 0))
    if wanted.show == "failed":
        return sessions.filter(_failed(sessions))
    if wanted.show == "flagged":
        return sessions.filter(pc.greater(sessions.column("flagged"), 0))
    if wanted.show == "unevaluated":
        return sessions.filter(pc.equal(sessions.column("traces_evaluated"), 0))
    return sessions


def _counts(sessions: pa.Table) -> dict[str, int]:
    if not sessions.num_rows:
        return dict.fromkeys(("with_failures", "failed", "flagged", "unevaluated", "traces"), 0)
    return {
        "with_failures": pc.sum(pc.greater(sessions.column("failures"), 0)).as_py(),
        "failed": pc.sum(_failed(sessions)).as_py(),
        "flagged": pc.sum(pc.greater(sessions.column("flagged"), 0)).as_py(),
        "unevaluated": pc.sum(pc.equal(sessions.column("traces_evaluated"), 0)).as_py(),
        "traces": pc.sum(sessions.column("total_traces")).as_py(),
    }


def _bands(sessions: pa.Table) -> dict[str, int]:
    """The number of sessions in each band of reliability."""
    if not sessions.num_rows:
        return dict.fromkeys(BANDS, 0)
    counts = {one["values"]: one["counts"] for one in pc.value_counts(sessions.column("reliability_band")).to_pylist()}
    return {band: counts.get(band, 0) for band in BANDS}
