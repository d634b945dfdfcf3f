"""What the commands show: progress, what a run did, and the fleet's health."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from health_assets.hours import HourRange
from health_assets.running import Outcome
from health_assets.scoring.system_health import STATES
from health_assets.warehouse.store import Session

COLOURS = {"healthy": "green", "degraded": "yellow", "unhealthy": "red", "inactive": "dim"}
AGENTS_SHOWN = 15
REASONS_SHOWN = 8


@contextmanager
def progress_bar(console: Console, hours: HourRange, steps: int) -> Iterator:
    """A bar over the steps of a run; gives the function that takes its events."""
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task(f"{len(hours)} h", total=steps)

        def on_event(event: dg.DagsterEvent) -> None:
            kind = event.event_type
            if kind == dg.DagsterEventType.STEP_START:
                bar.update(
                    task, description=f"{len(hours)} h · {(event.step_key or '').replace('check_', 'checking ')}"
                )
            elif kind in (dg.DagsterEventType.STEP_SUCCESS, dg.DagsterEventType.STEP_FAILURE):
                bar.advance(task)

        yield on_event


def print_outcome(console: Console, outcome: Outcome, session: Session) -> None:
    """What was read, kept, rejected and scored, and how long it took."""
    span = [outcome.hours.start, outcome.hours.end]

    def count(sql: str) -> int:
        return session.query(f"{sql} WHERE hour >= ? AND hour < ?", span)[0][0]

    executions = count("SELECT count(*) FROM executions")
    scores = count("SELECT count(*) FROM agent_health")
    agents = count("SELECT count(DISTINCT agent_id) FROM agent_health")
    console.print(f"[bold]{outcome.hours}[/] materialised in {outcome.elapsed_s:.1f} s")
    console.print(
        f"  read {outcome.lines_read:,} lines of {outcome.files_read:,} new or changed files, "
        f"kept {outcome.lines_read - outcome.lines_rejected:,}, rejected {outcome.lines_rejected:,}"
    )
    console.print(f"  hold {executions:,} executions, {scores:,} scores of {agents:,} agents")
    _print_rejections(console, session, span)
    for asset, check, severity, unexpected in outcome.failed_checks:
        colour = "red" if severity == "ERROR" else "yellow"
        console.print(Text(f"  check {asset}.{check} failed: {unexpected:,} rows", style=colour))


def _print_rejections(console: Console, session: Session, span: list) -> None:
    reasons = session.query(
        """
        SELECT regexp_replace(reason, ', not .*', '') AS kind, count(*) AS lines, min(source_file || ':' || line_number)
        FROM rejected_records WHERE hour >= ? AND hour < ? GROUP BY kind ORDER BY lines DESC, kind
        """,
        span,
    )
    for reason, lines, place in reasons[:REASONS_SHOWN]:
        console.print(Text(f"    {lines:>6,} × {reason}  (first in {place})", style="yellow"), soft_wrap=True)
    if len(reasons) > REASONS_SHOWN:
        console.print(f"    and {len(reasons) - REASONS_SHOWN} more reasons in rejected_records")


def print_fleet(console: Console, session: Session, hours: HourRange) -> None:
    """The fleet in the last of these hours, and its agents from the worst on."""
    latest = session.query(
        "SELECT max(hour) FROM system_health WHERE hour >= ? AND hour < ?", [hours.start, hours.end]
    )[0][0]
    if latest is None:
        return
    score, agents, *counts = session.query(
        f"SELECT health_score, agents, {', '.join(STATES)} FROM system_health WHERE hour = ?", [latest]
    )[0]
    title = Text(f"Fleet at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{score:.1f}" if score is not None else "no active agent", style=_colour_of(score))
    title.append(f"  {agents:,} agents: ")
    for state, number in zip(STATES, counts, strict=True):
        title.append(f"{number:,} {state}  ", style=COLOURS[state])
    console.print(title)
    console.print(_agents_table(session, latest))


def _agents_table(session: Session, hour) -> Table:
    rows = session.query(
        """
        SELECT agent_id, state, health_score, 40 * (1 - reliability_score), 20 * (1 - performance_score),
            20 * (1 - stability_score), 20 * (1 - operational_score), n, asr, ar_s, expected_runtime_s, long_running,
            sla_breaches, trigger_failures
        FROM agent_health WHERE hour = ? ORDER BY state = 'inactive', health_score, agent_id
        """,
        [hour],
    )
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("agent", overflow="fold")
    for name in ("state", "score"):
        table.add_column(name)
    for name in ("reliability", "performance", "stability", "operational"):
        table.add_column(f"{name}\npoints lost", justify="right")
    for name in ("runs", "success", "runtime", "long\nruns", "SLA\nbreaches", "trigger\nfailures"):
        table.add_column(name, justify="right")
    for agent, state, score, *lost, runs, asr, runtime_s, expected_s, long_running, breaches, triggers in rows[
        :AGENTS_SHOWN
    ]:
        table.add_row(
            Text(agent), Text(state, style=COLOURS[state]), "–" if score is None else f"{score:.1f}",
            *("–" if points is None else f"{points:.1f}" if points > 0.05 else "·" for points in lost),
            f"{runs:,}", "–" if asr is None else f"{asr:.0%}", _runtime(runtime_s, expected_s),
            *(str(number) if number else "·" for number in (long_running, breaches, triggers)),
        )  # fmt: skip
    if len(rows) > AGENTS_SHOWN:
        table.caption = f"the worst {AGENTS_SHOWN} of {len(rows):,} agents; all are in the table agent_health"
    return table


def _runtime(runtime_s: float | None, expected_s: float | None) -> str:
    if runtime_s is None:
        return "–"
    return f"{runtime_s:,.1f} s" if expected_s is None else f"{runtime_s:,.1f} / {expected_s:,.0f} s"


def _colour_of(score: float | None) -> str:
    if score is None:
        return "dim"
    return "green" if score >= 85 else "yellow" if score >= 65 else "red"
