"""The reliability evaluation's block: agents from the least reliable on, and the tasks that vary most."""

from datetime import datetime
from typing import Any

from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import is_narrow, plain_table
from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.terminal import printable
from health_assets.systems.reliability.names import OBSERVED
from health_assets.warehouse.session import Session

AGENTS_SHOWN = 10
TASKS_SHOWN = 5
LOW, HIGH = 0.5, 0.8
"""Scores below the first are shown in red, from the second on in green."""

EVALUATION, OBSERVATION = "Reliability evaluation", "Reliability as observed"
"""Titles of the agents whose tasks an evaluation repeated, and of those that were asked the same again by chance."""
SCORES = ("reliability", "r_con", "r_pred", "r_rob", "r_saf", "baseline_accuracy")
COUNTS = ("tasks", "runs", "judged")
SCORES_OF_TASK = ("c_out", "c_traj_d", "c_traj_s", "c_res")


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The evaluation in the last of these hours that has one: agents, and their least consistent tasks."""
    latest = session.latest_hour("agent_reliability", hours)
    if latest is None:
        return
    agents, tasks = (session.hours_of(name, HourRange.of(latest)) for name in ("agent_reliability", "task_consistency"))
    for name, is_observed in ((EVALUATION, False), (OBSERVATION, True)):
        own, own_tasks = (rows.filter((rows.task_source == OBSERVED) == is_observed) for rows in (agents, tasks))
        if session.count(own):
            _print_agents(console, session, name, latest, own, own_tasks)


def _print_agents(
    console: Console, session: Session, name: str, latest: datetime, agents: ir.Table, tasks: ir.Table
) -> None:
    [fleet] = session.dicts(_fleet(agents))
    title = Text(f"{name} at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{counted(fleet['agents'], 'agent')}, {counted(fleet['runs'], 'run')}, ")
    title.append(f"{counted(fleet['tasks'], 'repeated task')} ")
    title.append(f"in {len(HourRange(fleet['window_start'], latest + HOUR))} h")
    if fleet["repeated_share"] is not None:
        title.append(f"; {fleet['repeated_share']:.0%} of their runs repeat a task")
    console.print()
    console.print(title)
    is_brief = is_narrow(console)
    console.print(_agents_table(session.dicts(_least_reliable(agents)), fleet["agents"], is_brief=is_brief))
    if fleet["tasks"]:
        console.print(_tasks_table(session.dicts(_least_consistent(tasks)), fleet["tasks"], is_brief=is_brief))


def _fleet(agents: ir.Table) -> ir.Table:
    return agents.aggregate(
        agents=agents.count(), runs=agents.runs.sum(), tasks=agents.tasks.sum(),
        window_start=agents.window_start.min(),
        repeated_share=agents.runs.sum() / (agents.runs / agents.repeated_share).sum(),
    )  # fmt: skip


def _least_reliable(agents: ir.Table) -> ir.Table:
    in_order = agents.order_by("reliability", "r_con", "agent_id")
    return in_order.select("agent_id", *SCORES, *COUNTS).limit(AGENTS_SHOWN)


def _least_consistent(tasks: ir.Table) -> ir.Table:
    """The tasks whose outcome, trajectory and resources, at equal weight where available as in `r_con`, vary most."""
    trajectory = (tasks.c_traj_d + tasks.c_traj_s) / 2
    known = 1 + tasks.c_traj_d.notnull().cast("int64") + tasks.c_res.notnull().cast("int64")
    consistency = (tasks.c_out + trajectory.fill_null(0) + tasks.c_res.fill_null(0)) / known
    in_order = tasks.order_by(consistency, "agent_id", "task_id")
    return in_order.select("agent_id", "task_id", *SCORES_OF_TASK, "successes", "runs").limit(TASKS_SHOWN)


def _agents_table(agents: list[dict[str, Any]], count: int, *, is_brief: bool) -> Table:
    """The least reliable agents, with what their scores rest on unless it is brief."""
    headings = ("reliable", "consistent", "predictable", "robust", "safe", "accuracy")
    counts = () if is_brief else COUNTS
    table = _table("agent", *headings, *counts)
    for agent in agents:
        scores = (_score(agent[name]) for name in SCORES)
        table.add_row(Text(printable(agent["agent_id"])), *scores, *(f"{agent[name]:,}" for name in counts))
    table.caption = "reliable = mean of consistent, predictable and robust; – is not known"
    if count > AGENTS_SHOWN:
        table.caption += f"\nthe least reliable {AGENTS_SHOWN} of {count:,} agents; all are in agent_reliability"
    return table


def _tasks_table(tasks: list[dict[str, Any]], count: int, *, is_brief: bool) -> Table:
    """The least consistent tasks, with what makes them so unless it is brief."""
    parts = () if is_brief else ("actions", "their order", "resources")
    table = _table("agent", "task", "outcome", *parts, "succeeded", left=2)
    for task in tasks:
        names = (Text(printable(task[name])) for name in ("agent_id", "task_id"))
        scores = (_score(task[name]) for name in SCORES_OF_TASK[: 1 + len(parts)])
        table.add_row(*names, *scores, f"{task['successes']:,} of {task['runs']:,}")
    table.caption = f"the {len(tasks)} least consistent of {count:,} repeated tasks" if count > len(tasks) else None
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
