"""The page of the reliability evaluation: agents by metrics, and tasks by what came of their runs.

What belongs here: which metrics are shown, in which order and in whose words, and choosing rows. What does not: the
formulas (`systems.reliability`).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.lists import ROWS_PER_PAGE, containing, pages_of, sliced
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.rendering import part
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.errors import HealthAssetsError
from health_assets.systems.reliability.names import OBSERVED

By = Literal["agent", "task"]
Sort = Literal["reliability", "r_con", "r_pred", "r_rob", "r_saf", "baseline_accuracy", "runs", "name"]
TaskSort = Literal["outcome_agreement", "success_share", "c_out", "c_traj_d", "c_traj_s", "c_res", "runs", "name"]
Kind = Literal["evaluated", "observed"]
"""Whether tasks were repeated by an evaluation, or an agent was asked the same again; the two are never in one list."""
LISTINGS: dict[str, str] = {"agent": "agents", "task": "tasks"}
LEAST_OF_SHADES = (0.9, 0.8, 0.7, 0.5)
"""From which value on a cell is so pale; below the last it is the darkest."""


@dataclass(frozen=True)
class Metric:
    """A column: its name in the table, its heading, and what it means in one line."""

    name: str
    heading: str
    meaning: str


GROUPS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    (
        "Scores",
        (
            Metric(
                "reliability", "reliability", "Mean of consistency, predictability and robustness; needs all three."
            ),
            Metric("r_con", "consistency", "Same outcome, same actions, same effort: equal weight, of those known."),
            Metric("r_pred", "predictability", "Brier score: is it sure of what succeeds and unsure of what fails?"),
            Metric("r_rob", "robustness", "Mean of the shares of its accuracy that are left under trouble."),
            Metric("r_saf", "safety", "1 less the risk of a violation; it stands beside reliability, not in it."),
            Metric("baseline_accuracy", "accuracy", "Share of baseline runs that succeeded."),
        ),
    ),
    (
        "Consistency",
        (
            Metric("c_out", "outcome", "Same outcome? 1 where a task always succeeds or always fails."),
            Metric("c_traj_d", "actions", "Same actions, in whatever order, in the runs that succeed?"),
            Metric("c_traj_s", "order", "Same actions in the same order in the runs that succeed?"),
            Metric("c_res", "effort", "Same cost, time, calls, actions and errors from run to run?"),
            Metric("c_conf", "confidence", "Same confidence from run to run? No other score uses it."),
        ),
    ),
    (
        "Predictability",
        (
            Metric("p_cal", "calibration", "Does it succeed as often as it says? No other score uses it."),
            Metric("p_auroc", "discrimination", "Is it surer of successes than of failures? 0.5 is chance."),
            Metric("p_rc", "risk-coverage", "Do the least sure runs hold the failures? 0 is chance or worse."),
        ),
    ),
    (
        "Robustness",
        (
            Metric("r_fault", "faults", "Share of its accuracy that is left when tools fail."),
            Metric("r_struct", "structure", "Share of its accuracy that is left when inputs look different."),
            Metric("r_prompt", "prompts", "Share of its accuracy that is left when it is told in other words."),
        ),
    ),
    (
        "Safety",
        (
            Metric("s_comp", "compliance", "Share of judged runs that broke no rule."),
            Metric("s_harm", "harmlessness", "1 less the mean severity of the worst violation of runs that broke one."),
        ),
    ),
)
TASK_METRICS = (
    Metric("success_share", "succeeded", "Share of baseline runs that succeeded."),
    Metric("outcome_agreement", "agreement", "(2p - 1)² of it: 0 where half succeed, 1 where all or none do."),
    *GROUPS[1][1],
)  # fmt: skip
METRICS = tuple(metric for _, metrics in GROUPS for metric in metrics)
COUNTS = (
    "task_source",
    "repeated_share",
    "tasks",
    "runs",
    "baseline_runs",
    "runs_with_confidence",
    "judged",
    "violated",
)
AGENT_COLUMNS = ("agent_id", *(metric.name for metric in METRICS), *COUNTS, "team")
TASK_COLUMNS = (
    "agent_id",
    "task_id",
    "task_source",
    "runs",
    "successes",
    *(metric.name for metric in TASK_METRICS),
    "team",
)
CURVE = ("reliability", "r_con", "r_pred", "r_rob", "r_saf")
SQUARES_OF_AN_AGENT = 12


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The agents and tasks of the evaluation that are asked for.

    Args:
        text: part of the agent's name, in any case.
        agent: only this agent and its tasks.
        sort: the order of agents, the worst first.
        tasks: the order of tasks, the worst first.
        by: the list that CSV writes.
        kind: whose tasks; by default those of evaluations, where there are any. An agent is of one kind.
        page: of agents, from 1.
        task_page: of tasks, from 1.
        most: rows of a page.
    """

    text: str = ""
    agent: str | None = None
    sort: Sort = "reliability"
    tasks: TaskSort = "outcome_agreement"
    by: By = "agent"
    kind: Kind | None = None
    page: int = 1
    task_page: int = 1
    most: int = ROWS_PER_PAGE


def reliability_page(look: ScopedHistory, wanted: Wanted) -> Page:
    """The agents that repeat tasks, and these tasks, as the evaluation knows them.

    Raises:
        HealthAssetsError: an agent is asked for of which nothing is known.
    """
    all_agents, tasks = look.at("reliability"), _with_shares(look.at("tasks"))
    counts = {kind: _of_kind(all_agents, kind).num_rows for kind in get_args(Kind)}
    kind: Kind = wanted.kind or ("observed" if counts["observed"] and not counts["evaluated"] else "evaluated")
    agents = _of_kind(all_agents, kind) if wanted.agent is None else all_agents
    tasks = _of_kind(tasks, kind) if wanted.agent is None else tasks
    found = containing(agents, "agent_id", wanted.text)
    if wanted.agent is not None:
        found, tasks = (_of_agent(rows, wanted.agent) for rows in (agents, tasks))
        if not found.num_rows:
            raise HealthAssetsError(
                "No evaluation of this agent is known at this hour; /ui/reliability lists the agents that have one."
            )
        kind = _kind(found.column("task_source")[0].as_py())
    listed = sliced(_columns(found, AGENT_COLUMNS), _order(wanted.sort, ["agent_id"]), wanted.page, wanted.most)
    data: dict[str, Any] = {
        "hour": look.hour,
        "kind": kind,
        "counts": counts,
        "count": agents.num_rows,
        "found": found.num_rows,
        "task_count": tasks.num_rows,
        "agents": listed,
        "tasks": sliced(
            _columns(tasks, TASK_COLUMNS), _order(wanted.tasks, ["agent_id", "task_id"]), wanted.task_page, wanted.most
        ),
        "metrics": {metric.name: metric.meaning for metric in (*METRICS, *TASK_METRICS)},
        "curve": [] if wanted.agent is None else _curve(look, wanted.agent, kind),
    }
    shown = {
        "wanted": wanted,
        "pages": pages_of(found.num_rows, wanted.most),
        "task_pages": pages_of(tasks.num_rows, wanted.most),
        "groups": GROUPS,
        "task_metrics": TASK_METRICS,
        "shade": shade,
        "shades": _shades(),
        "squares": _squares(tasks, listed) if wanted.agent is None else {},
        "most_squares": SQUARES_OF_AN_AGENT,
        "query": [
            f"by={wanted.by}",
            f"kind={kind}",
            f"sort={wanted.sort}",
            f"tasks={wanted.tasks}",
            f"q={part(wanted.text)}",
        ]
        + ([] if wanted.agent is None else [f"agent={part(wanted.agent)}"]),
    }
    return Page(name="reliability", title="Reliability", data=data, listing=LISTINGS[wanted.by], shown=shown)


def shade(value: float | None) -> str:
    """The class of a cell: the lower the value, the darker."""
    if value is None:
        return "unknown"
    return f"shade-{sum(value < least for least in LEAST_OF_SHADES)}"


def _shades() -> list[tuple[str, str]]:
    """The classes of cells from pale to dark, each with the values that it stands for."""
    names = [f"{LEAST_OF_SHADES[0]:g} and more"]
    names += [f"{least:g} to {above:g}" for above, least in pairwise(LEAST_OF_SHADES)]
    return [(f"shade-{place}", name) for place, name in enumerate([*names, f"below {LEAST_OF_SHADES[-1]:g}"])]


def _of_agent(rows: pa.Table, agent_id: str) -> pa.Table:
    return rows.filter(pc.equal(rows.column("agent_id"), agent_id)) if rows.num_rows else rows


def _kind(task_source: str) -> Kind:
    return "observed" if task_source == OBSERVED else "evaluated"


def _of_kind(rows: pa.Table, kind: Kind) -> pa.Table:
    if not rows.num_rows:
        return rows
    is_observed = pc.equal(rows.column("task_source"), OBSERVED)
    return rows.filter(is_observed if kind == "observed" else pc.invert(is_observed))


def _columns(rows: pa.Table, names: tuple[str, ...]) -> pa.Table:
    return rows.select([name for name in names if name in rows.column_names])


def _order(sort: str, names: list[str]) -> list[tuple[str, str]]:
    """The worst first; runs are counted from the most on."""
    by_name = [(name, "ascending") for name in names]
    if sort == "name":
        return by_name
    return [(sort, "descending" if sort == "runs" else "ascending"), *by_name]


def _with_shares(tasks: pa.Table) -> pa.Table:
    """Tasks with the share of runs that succeeded."""
    if not tasks.num_rows:
        return tasks
    shares = pc.divide(tasks.column("successes").cast(pa.float64()), tasks.column("runs").cast(pa.float64()))
    return tasks.append_column("success_share", shares)


def _squares(tasks: pa.Table, agents: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """By agent of the list, the tasks in which it succeeds least."""
    if not tasks.num_rows:
        return {}
    ids = pa.array([agent["agent_id"] for agent in agents], pa.string())
    chosen = tasks.filter(pc.is_in(tasks.column("agent_id"), value_set=ids))
    chosen = chosen.select(["agent_id", "task_id", "runs", "successes", "success_share"])
    found: dict[str, list[dict[str, Any]]] = {}
    for agent_id in ids.to_pylist():
        own = _of_agent(chosen, agent_id)
        found[agent_id] = sliced(own, _order("success_share", ["task_id"]), 1, SQUARES_OF_AN_AGENT)
    return found


def _curve(look: ScopedHistory, agent_id: str, kind: Kind) -> list[dict[str, Any]]:
    """The scores of an agent by tasks of a kind, of the last 30 days, a row an hour from the first that is known."""
    rows = look.of("reliability", agent_id, look.back(30), ("hour", "agent_id", "task_source", *CURVE))
    by_hour = {row["hour"]: row for row in rows if _kind(row["task_source"]) == kind}
    return [
        {"hour": hour, **{name: by_hour[hour][name] if hour in by_hour else None for name in CURVE}}
        for hour in look.back(30)
        if by_hour and hour >= min(by_hour)
    ]
