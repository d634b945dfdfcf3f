"""The reliability evaluation's block: agents from the least reliable on, and the tasks that vary most."""

from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.terminal import printable
from health_assets.core.wording import counted
from health_assets.pipeline.layout import is_narrow, latest_hour, plain_table
from health_assets.warehouse.session import Session

AGENTS_SHOWN = 10
TASKS_SHOWN = 5
LOW, HIGH = 0.5, 0.8
"""Scores below the first are shown in red, from the second on in green."""

CONSISTENCY_OF_TASK = """
(c_out + coalesce((c_traj_d + c_traj_s) / 2, 0) + coalesce(c_res, 0))
    / (1 + CASE WHEN c_traj_d IS NULL THEN 0 ELSE 1 END + CASE WHEN c_res IS NULL THEN 0 ELSE 1 END)
"""
"""Outcome, trajectory and resources at equal weight where available, as r_con has them for an agent."""


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The evaluation in the last of these hours that has one: agents, and their least consistent tasks."""
    latest = latest_hour(session, "agent_reliability", hours)
    if latest is None:
        return
    [(agents, runs, tasks, start, end)] = session.query(
        "SELECT count(*), sum(runs)::BIGINT, sum(tasks)::BIGINT, min(window_start), max(window_end) "
        "FROM agent_reliability WHERE hour = ?",
        [latest],
    )
    title = Text(f"Reliability evaluation at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{counted(agents, 'agent')}, {counted(runs, 'run')}, {counted(tasks, 'repeated task')} ")
    title.append(f"in {(end - start) // HOUR} h")
    console.print()
    console.print(title)
    console.print(_agents_table(session, latest, agents, is_brief=is_narrow(console)))
    if tasks:
        console.print(_tasks_table(session, latest, tasks, is_brief=is_narrow(console)))


def _agents_table(session: Session, hour: datetime, count: int, *, is_brief: bool) -> Table:
    """The least reliable agents, with what their scores rest on unless it is brief."""
    scores = ("reliability", "r_con", "r_pred", "r_rob", "r_saf")
    found = session.query(
        f"SELECT agent_id, {', '.join(scores)}, baseline_accuracy, tasks, runs, judged FROM agent_reliability "
        f"WHERE hour = ? ORDER BY reliability NULLS LAST, r_con NULLS LAST, agent_id LIMIT {AGENTS_SHOWN}",
        [hour],
    )
    headings = ("reliable", "consistent", "predictable", "robust", "safe", "accuracy")
    table = _table("agent", *headings, *(() if is_brief else ("tasks", "runs", "judged")))
    for agent_id, *values in found:
        shown, counts = values[: len(scores) + 1], values[len(scores) + 1 :]
        table.add_row(
            Text(printable(agent_id)), *map(_score, shown), *(() if is_brief else [f"{value:,}" for value in counts])
        )
    table.caption = "reliable = mean of consistent, predictable and robust; – is not known"
    if count > AGENTS_SHOWN:
        table.caption += f"\nthe least reliable {AGENTS_SHOWN} of {count:,} agents; all are in agent_reliability"
    return table


def _tasks_table(session: Session, hour: datetime, count: int, *, is_brief: bool) -> Table:
    """The least consistent tasks, with what makes them so unless it is brief."""
    found = session.query(
        "SELECT agent_id, task_id, c_out, c_traj_d, c_traj_s, c_res, successes, runs FROM task_consistency "
        f"WHERE hour = ? ORDER BY {CONSISTENCY_OF_TASK}, agent_id, task_id LIMIT {TASKS_SHOWN}",
        [hour],
    )
    parts = () if is_brief else ("actions", "their order", "resources")
    table = _table("agent", "task", "outcome", *parts, "succeeded", left=2)
    for agent_id, task_id, *scores, successes, runs in found:
        shown = map(_score, scores[: 1 + len(parts)])
        table.add_row(Text(printable(agent_id)), Text(printable(task_id)), *shown, f"{successes:,} of {runs:,}")
    table.caption = f"the {len(found)} least consistent of {count:,} repeated tasks" if count > len(found) else None
    return table


def _table(*headings: str, left: int = 1) -> Table:
    table = plain_table()
    for place, heading in enumerate(headings):
        if place < left:
            table.add_column(heading, no_wrap=True, max_width=28)
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    return table


def _score(score: float | None) -> Text:
    if score is None:
        return Text("–", style="dim")
    return Text(f"{score:.2f}", style="green" if score >= HIGH else "red" if score < LOW else "yellow")
