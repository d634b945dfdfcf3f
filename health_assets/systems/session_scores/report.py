"""Session scores' block: how many sessions fail, and the worst ones: those with failed runs, then the least reliable.

A session without any signal scores 1 by the source's formula. Nobody evaluated it: it is counted as such, does not
pass, and is listed without a score.
"""

from typing import Any

from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import is_narrow, plain_table
from health_assets.core.formatting import duration
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.scoring.prices import COMPUTED
from health_assets.scoring.relations import newest
from health_assets.systems.session_scores.names import CALL_COUNTS
from health_assets.systems.session_scores.session_scores import worst_first
from health_assets.warehouse.session import Session

SESSIONS_SHOWN = 5
NOT_EVALUATED = Text("–", style="dim")

SHOWN = (
    "session_id", "agent_reliability", "reliability_passed", "agent_consistency", "consistency_passed",
    "traces_evaluated", "consistency_traces_evaluated", "runs", "failures", "cancelled_runs", "first_started_at",
    "last_ended_at", "input_tokens", "output_tokens", "cost_usd", "cost_source", *CALL_COUNTS, "last_error",
)  # fmt: skip


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The sessions of these hours by their newest scores, and the worst of them."""
    scores = newest(session.hours_of("session_scores", hours), "session_id")
    [counts] = session.dicts(_counts(scores))
    if not counts["sessions"]:
        return
    console.print()
    console.print(_title(**counts))
    if worst := session.dicts(_worst(scores)):
        console.print(_table(worst, is_brief=is_narrow(console)))


def _counts(scores: ir.Table) -> ir.Table:
    return scores.aggregate(
        sessions=scores.count(), evaluated=scores.count(where=scores.traces_evaluated > 0),
        unreliable=scores.count(where=~scores.reliability_passed),
        inconsistent=scores.count(where=~scores.consistency_passed),
        with_failures=scores.count(where=scores.failures > 0),
        with_cancelled=scores.count(where=scores.cancelled_runs > 0),
    )  # fmt: skip


def _worst(scores: ir.Table) -> ir.Table:
    return worst_first(scores).select(*SHOWN).limit(SESSIONS_SHOWN)


def _title(
    sessions: int, evaluated: int, unreliable: int, inconsistent: int, with_failures: int, with_cancelled: int
) -> Text:
    title = Text("Sessions: ", style="bold")
    if with_failures:
        title.append(f"{with_failures:,} with failed runs", style="red")
        title.append("  ")
    title.append(f"{evaluated:,} scored: " if evaluated else "none scored: ")
    if evaluated:
        title.append(f"{unreliable:,} fail reliability", style="red" if unreliable else "green")
        title.append("  ")
        title.append(f"{inconsistent:,} fail consistency", style="red" if inconsistent else "green")
    if sessions > evaluated:
        title.append("  " if evaluated else "")
        title.append(f"{sessions - evaluated:,} without signals, not evaluated", style="dim")
    if with_cancelled:
        title.append(f"  {with_cancelled:,} with cancelled runs", style="dim")
    return title


def _table(sessions: list[dict[str, Any]], *, is_brief: bool) -> Table:
    """Sessions with their runs and scores, and unless it is brief with their calls, usage and last error."""
    table = plain_table()
    table.add_column("worst sessions", no_wrap=True, min_width=14, max_width=30)
    rows = [_figures(one, is_brief=is_brief) for one in sessions]
    shown = [heading for heading in rows[0] if any(row[heading] for row in rows)]
    for heading in shown:
        width = max(map(len, (heading, *(row[heading] for row in rows))))
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    if not is_brief:
        table.add_column("last error", no_wrap=True, max_width=44)
    for one, row in zip(sessions, rows, strict=True):
        error = Text(printable(" ".join((one["last_error"] or "").split())))
        figures = (row[heading] or NOT_EVALUATED for heading in shown)
        table.add_row(Text(printable(one["session_id"])), *figures, *(() if is_brief else [error]))
    captions = []
    if not all(one["consistency_traces_evaluated"] for one in sessions):
        captions.append("– not known; no score: no trace has a signal, or for consistency a confidence signal")
    if not is_brief and any(one["cost_source"] == COMPUTED for one in sessions):
        captions.append("~ computed from list prices, at least in part")
    table.caption = "\n".join(captions) or None
    return table


def _figures(session: dict[str, Any], *, is_brief: bool) -> dict[str, str | Text]:
    """By heading, the figures of a session; empty where they are not known. A column without any is left out."""
    reliability = _score(session["agent_reliability"], is_passed=session["reliability_passed"])
    consistency = _score(session["agent_consistency"], is_passed=session["consistency_passed"])
    return {
        "runs": f"{session['runs']:,}",
        "failed": Text(f"{session['failures']:,}", style="red" if session["failures"] else ""),
        "cancelled": f"{session['cancelled_runs']:,}" if session["cancelled_runs"] else "",
        **({} if is_brief else _calls_and_usage(session)),
        "reliable": reliability if session["traces_evaluated"] else "",
        "consistent": consistency if session["consistency_traces_evaluated"] else "",
    }


def _calls_and_usage(session: dict[str, Any]) -> dict[str, str]:
    """Tool calls that failed and steps that repeat, the time from the first start to the last end, tokens and cost."""
    started, ended, cost = session["first_started_at"], session["last_ended_at"], session["cost_usd"]
    tokens = [told for name in ("input_tokens", "output_tokens") if (told := session[name]) is not None]
    sign = "~" if session["cost_source"] == COMPUTED else ""
    return {
        "failed tools": _of(session["tool_failures"], session["tool_calls"]),
        "repeats": _of(session["repeated_steps"], session["steps"]),
        "duration": duration((ended - started).total_seconds()) if started and ended else "",
        "tokens": f"{sum(tokens):,}" if tokens else "",
        "cost": "" if cost is None else f"{sign}${cost:,.4f}" if cost < 1 else f"{sign}${cost:,.2f}",
    }


def _of(part: int | None, whole: int | None) -> str:
    return f"{part:,} of {whole:,}" if whole else ""


def _score(score: float, *, is_passed: bool) -> Text:
    return Text(f"{score:.2f}", style="" if is_passed else "red")
