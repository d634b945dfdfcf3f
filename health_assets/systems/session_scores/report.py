"""Session scores' block: how many sessions fail, and the worst ones with their flagged traces.

A session without any signal scores 1 by the source's formula. Nobody evaluated it: it is counted as such, and neither
passes nor stands in a list.
"""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.pipeline.layout import is_narrow, plain_table
from health_assets.warehouse.session import Session

SESSIONS_SHOWN = 5
TRACES_SHOWN = 2
NOT_EVALUATED = Text("–", style="dim")

_NEWEST = """
    SELECT * FROM (
        SELECT *, row_number() OVER (PARTITION BY session_id ORDER BY hour DESC) AS place FROM session_scores
        WHERE hour >= ? AND hour < ?
    ) AS placed WHERE place = 1
"""


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The sessions of these hours by their newest scores, and the worst of them."""
    span = [hours.start, hours.end]
    [(sessions, evaluated, unreliable, inconsistent)] = session.query(
        f"""
        SELECT count(*), count(*) FILTER (WHERE traces_evaluated > 0),
            count(*) FILTER (WHERE NOT reliability_passed), count(*) FILTER (WHERE NOT consistency_passed)
        FROM ({_NEWEST}) AS newest
        """,
        span,
    )
    if not sessions:
        return
    console.print()
    console.print(_title(sessions, evaluated, unreliable, inconsistent))
    if evaluated:
        console.print(_worst(session, span, is_brief=is_narrow(console)))


def _title(sessions: int, evaluated: int, unreliable: int, inconsistent: int) -> Text:
    title = Text("Sessions: ", style="bold")
    title.append(f"{evaluated:,} scored: " if evaluated else "none scored: ")
    if evaluated:
        title.append(f"{unreliable:,} fail reliability", style="red" if unreliable else "green")
        title.append("  ")
        title.append(f"{inconsistent:,} fail consistency", style="red" if inconsistent else "green")
    if sessions > evaluated:
        title.append("  " if evaluated else "")
        title.append(f"{sessions - evaluated:,} without signals, not evaluated", style="dim")
    return title


def _worst(session: Session, span: list, *, is_brief: bool) -> Table:
    """The worst of the sessions that could be evaluated, with their worst traces unless it is brief."""
    found = session.query(
        f"""
        SELECT session_id, agent_reliability, reliability_passed, agent_consistency, consistency_passed, total_traces,
            cardinality(flagged_traces), flagged_traces[1:{TRACES_SHOWN}], consistency_traces_evaluated
        FROM ({_NEWEST}) AS newest WHERE traces_evaluated > 0
        ORDER BY agent_reliability, agent_consistency, session_id LIMIT {SESSIONS_SHOWN}
        """,
        span,
    )
    table = plain_table()
    table.add_column("worst sessions", no_wrap=True, max_width=30)
    for heading in ("reliable", "consistent", "traces", "flagged"):
        table.add_column(heading, justify="right", no_wrap=True)
    if not is_brief:
        table.add_column("worst traces", no_wrap=True, max_width=44)
    for name, reliability, is_reliable, consistency, is_consistent, traces, flagged, worst, confident in found:
        table.add_row(
            Text(printable(name)), _score(reliability, is_passed=is_reliable),
            _score(consistency, is_passed=is_consistent) if confident else NOT_EVALUATED,
            f"{traces:,}", f"{flagged:,}", *(() if is_brief else [Text(printable(" ".join(worst)))]),
        )  # fmt: skip
    if not all(row[-1] for row in found):
        table.caption = "– not evaluated: no trace has a confidence signal"
    return table


def _score(score: float, *, is_passed: bool) -> Text:
    return Text(f"{score:.2f}", style="" if is_passed else "red")
