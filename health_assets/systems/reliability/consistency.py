"""Consistency (source 2, "Consistency"): how alike an agent's baseline runs of one task are.

What belongs here: the formulas by task, and their averages over an agent's tasks. What does not: distances between
trajectories (`trajectories`) and finding windows (`timeline`).
"""

import ibis
import numpy as np
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.prices import STATED
from health_assets.systems.reliability.tasks import LEAST_RUNS, PLACE
from health_assets.systems.reliability.timeline import (
    Numbers,
    Stretches,
    Timeline,
    flat_ranges,
    group_numbers,
    hour_numbers,
    running_sums,
)

EPSILON = 1e-8
MOST_COMPARED = 20
"""Runs of an observed task and hour whose trajectories are compared: ordinary runs may be many, and all different."""
RESOURCES = ("cost_usd", "runtime_s", "api_calls", "action_count", "error_count", "call_latency_s")
AVERAGED = ("c_out", "c_traj_d", "c_traj_s", "c_conf", "c_res", "outcome_agreement")
TASK = ("agent_id", "task_id", "task_source")
RUNS_IN_ORDER = (*TASK, "hour", "execution_id", "source_file", "line_number")

SHARE_UNITS = 1e15
"""Shares are averaged as whole numbers of 1e-15, which add up to the same in any order."""


RUN_COLUMNS = (*RUNS_IN_ORDER, "condition", "succeeded", "actions", "confidence", *RESOURCES, "cost_source")
"""Columns of executions that `baseline_runs` needs."""


def baseline_runs(runs: ir.Table) -> ir.Table:
    """The runs that consistency is about.

    Args:
        runs: rows of `tasks.runs_of_tasks` with `RUN_COLUMNS`.

    Returns:
        `RUNS_IN_ORDER`, `succeeded`, confidence and resources as floating-point numbers, and `actions`, null where
        there are none or the run failed, because trajectories of successful runs alone are compared.
    """
    runs = runs.filter(runs.condition == "baseline")
    runs = runs.mutate(cost_usd=(runs.cost_source == STATED).ifelse(runs.cost_usd, ibis.null("float64")))
    numbers = {name: runs[name].cast("float64") for name in ("confidence", *RESOURCES)}
    is_compared = runs.succeeded & (runs.actions.length() > 0) & (runs[PLACE] < MOST_COMPARED)
    actions = is_compared.ifelse(runs.actions, ibis.null(runs.actions.type()))
    return runs.select(*RUNS_IN_ORDER, "succeeded", **numbers, actions=actions)


def task_consistency(runs: pa.Table, hours: HourRange, window_hours: int) -> pa.Table:
    """Every task that an agent attempted at least twice in a window: the columns of the table but those of windows.

    Args:
        runs: rows of `baseline_runs`, sorted by `RUNS_IN_ORDER`, of `hours` and the window before them.
        hours: the hours that windows end with; at least one.
        window_hours: length of the window.
    """
    group = group_numbers(*(runs[name] for name in TASK))
    timeline = Timeline(group, hour_numbers(runs["hour"]), hours, window_hours)
    windows = timeline.stretches()
    windows = windows[windows.sizes >= LEAST_RUNS]
    values = {
        **_outcomes(runs, windows),
        **_trajectories(runs, timeline, windows, hours, window_hours),
        **_stability(runs, windows),
    }
    place, hour = timeline.over_hours(windows)
    names = runs.select(list(TASK)).take(pa.array(windows.start[place]))
    columns = {name: _with_nulls(column[place]) for name, column in values.items()}
    return pa.table({"hour": hour, **{name: names[name] for name in TASK}, **columns})


def average_over_tasks(tasks: ir.Table) -> ir.Table:
    """The mean of each of `AVERAGED` over the tasks of (hour, agent_id) that have it, and the number of tasks."""

    def mean(column: ir.FloatingColumn) -> ir.FloatingScalar:
        units = (column * SHARE_UNITS).round().cast("int64")
        return units.sum().cast("float64") / SHARE_UNITS / column.count().nullif(0)

    return tasks.group_by(["hour", "agent_id"]).aggregate(
        tasks=tasks.count(), **{name: mean(tasks[name]) for name in AVERAGED}
    )


def _outcomes(runs: pa.Table, windows: Stretches) -> dict[str, np.ndarray]:
    """Source 2, "Outcome Consistency": 1 - s^2 / (p (1 - p) + epsilon), clipped to 0 to 1; s^2 the sample variance."""
    total = running_sums(runs["succeeded"].to_numpy().astype(np.int64))
    count, successes = windows.sizes, total[windows.end] - total[windows.start]
    p = successes / count
    variance = successes * (count - successes) / count / (count - 1)
    return {
        "runs": count,
        "successes": successes,
        "c_out": np.clip(1 - variance / (p * (1 - p) + EPSILON), 0, 1),
        "outcome_agreement": (2 * p - 1) ** 2,
    }


def _trajectories(
    runs: pa.Table, timeline: Timeline, windows: Stretches, hours: HourRange, window_hours: int
) -> dict[str, np.ndarray]:
    """Source 2, "Trajectory … Consistency": 1 - mean distance over pairs of successful runs with an action."""
    from health_assets.systems.reliability.trajectories import PairSums  # with SciPy, which only its step needs

    is_compared = runs["actions"].is_valid().to_numpy()
    compared = runs.select(["hour", "actions"]).filter(pa.array(is_compared))
    group, hour = timeline.group[is_compared], hour_numbers(compared["hour"])
    sums = PairSums(group, hour, compared["actions"], hours, window_hours)
    pairs, shannon, edit = sums.window(windows.group, windows.hour)
    with np.errstate(invalid="ignore"):
        c_traj_d, c_traj_s = (np.clip(1 - total / pairs, 0, 1) for total in (shannon, edit))
    return {"pairs": pairs, "c_traj_d": c_traj_d, "c_traj_s": c_traj_s}


def _stability(runs: pa.Table, windows: Stretches) -> dict[str, np.ndarray]:
    """Source 2, "Confidence Consistency" and "Resource Consistency": exp(-CV), and exp(-mean CV) over resources."""
    variations = {name: _variations(runs[name].to_numpy(), windows) for name in ("confidence", *RESOURCES)}
    resources = np.stack([variations[name] for name in RESOURCES])
    is_available = ~np.isnan(resources)
    total = np.zeros(len(windows))
    for variation in np.where(is_available, resources, 0):  # one after another, so that the sum is always the same
        total += variation
    with np.errstate(invalid="ignore"):
        mean = total / is_available.sum(axis=0)
    return {
        "c_conf": np.exp(-variations["confidence"]),
        "c_res": np.exp(-mean),
        **{f"cv_{name}": variations[name] for name in RESOURCES},
    }


def _variations(values: Numbers, windows: Stretches) -> Numbers:
    """Coefficients of variation; NaN below 2 values that are there, or where their mean is 0 (none is below 0)."""
    return np.concatenate([np.empty(0), *(_variation(values, part) for part in windows.parts())])


def _variation(values: Numbers, windows: Stretches) -> Numbers:
    place, offset = flat_ranges(windows.sizes)
    member = values[windows.start[place] + offset]
    first = np.cumsum(windows.sizes) - windows.sizes
    is_there = ~np.isnan(member)
    count = np.add.reduceat(is_there.astype(np.int64), first)
    largest = np.maximum.reduceat(np.where(is_there, member, 0), first)
    # the CV does not change with the unit, and in units of the largest no sum or square can overflow
    unit = np.where(largest > 0, largest, 1)[place]
    shares = np.where(is_there, member, 0) / unit
    mean = np.add.reduceat(shares, first) / np.maximum(count, 1)
    squares = np.where(is_there, (shares - mean[place]) ** 2, 0)
    deviation = np.sqrt(np.add.reduceat(squares, first) / np.maximum(count - 1, 1))
    is_available = (count >= LEAST_RUNS) & (largest > 0)
    return np.where(is_available, deviation / np.where(is_available, mean, 1), np.nan)


def _with_nulls(column: np.ndarray) -> pa.Array:
    return pa.array(column, from_pandas=True)  # NaN becomes null
