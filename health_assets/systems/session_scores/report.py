"""Session scores' block: how many sessions fail, and the worst ones with their flagged traces.

A session without any signal scores 1 by the source's formula. Nobody evaluated it: it is counted as such, and neither
passes nor stands in a list.
"""

from typing import Any

from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import is_narrow, plain_table
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.scoring.relations import newest
from health_assets.systems.session_scores.merged_traces import BY_CALLS
from health_assets.warehouse.session import Session

SESSIONS_SHOWN = 5
TRACES_SHOWN = 2
NOT_EVALUATED = Text("–", style="dim")

SHOWN = (
    "session_id", "agent_reliability", "reliability_passed", "agent_consistency", "consistency_passed", "total_traces",
    "flagged_traces", "consistency_traces_evaluated",
)  # fmt: skip


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The sessions of these hours by their newest scores, and the worst of them."""
    scores = newest(session.hours_of("session_scores", hours), "session_id")
    [counts] = session.dicts(_counts(scores))
    if not counts["sessions"]:
        return
    console.print()
    console.print(_title(**counts))
    if counts["evaluated"]:
        console.print(_table(session.dicts(_worst(scores)), is_brief=is_narrow(console)))


def _counts(scores: ir.Table) -> ir.Table:
    return scores.aggregate(
        sessions=scores.count(), evaluated=scores.count(where=scores.traces_evaluated > 0),
        computed=scores.count(where=scores.signal_source == BY_CALLS),
        unreliable=scores.count(where=~scores.reliability_passed),
        inconsistent=scores.count(where=~scores.consistency_passed),
    )  # fmt: skip


def _worst(scores: ir.Table) -> ir.Table:
    """The worst of the sessions that could be evaluated."""
    evaluated = scores.filter(scores.traces_evaluated > 0)
    in_order = evaluated.order_by("agent_reliability", "agent_consistency", "session_id")
    return in_order.select(*SHOWN).limit(SESSIONS_SHOWN)


def _title(sessions: int, evaluated: int, computed: int, unreliable: int, inconsistent: int) -> Text:
    title = Text("Sessions: ", style="bold")
    title.append(f"{evaluated:,} scored: " if evaluated else "none scored: ")
    if evaluated:
        title.append(f"{unreliable:,} fail reliability", style="red" if unreliable else "green")
        title.append("  ")
        title.append(f"{inconsistent:,} fail consistency", style="red" if inconsistent else "green")
    if computed:
        title.append(f"  {computed:,} by computed signals", style="dim")
    if sessions > evaluated:
        title.append("  " if evaluated else "")
        title.append(f"{sessions - evaluated:,} without signals, not evaluated", style="dim")
    return title


def _table(sessions: list[dict[str, Any]], *, is_brief: bool) -> Table:
    """Sessions with their worst traces unless it is brief."""
    table = plain_table()
    table.add_column("worst sessions", no_wrap=True, max_width=30)
    for heading in ("reliable", "consistent", "traces", "flagged"):
        table.add_column(heading, justify="right", no_wrap=True)
    if not is_brief:
        table.add_column("worst traces", no_wrap=True, max_width=44)
    for one in sessions:
        consistency = _score(one["agent_consistency"], is_passed=one["consistency_passed"])
        flagged = one["flagged_traces"]
        table.add_row(
            Text(printable(one["session_id"])), _score(one["agent_reliability"], is_passed=one["reliability_passed"]),
            consistency if one["consistency_traces_evaluated"] else NOT_EVALUATED, f"{one['total_traces']:,}",
            f"{len(flagged):,}", *(() if is_brief else [Text(printable(" ".join(flagged[:TRACES_SHOWN])))]),
        )  # fmt: skip
    if not all(one["consistency_traces_evaluated"] for one in sessions):
        table.caption = "– not evaluated: no trace has a confidence signal"
    return table


def _score(score: float, *, is_passed: bool) -> Text:
    return Text(f"{score:.2f}", style="" if is_passed else "red")
