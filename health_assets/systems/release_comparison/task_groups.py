"""Executions of each pair by task, in a few groups: the tasks that the old version ran most, and all others.

The groups are those of the baseline's executions in the first half of the hours before the release, which are no
evidence. A task is the one that an execution names, else its input.
"""

import math

import ibis
import numpy as np
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.relations import lookup
from health_assets.scoring.window_latencies import hours_since, owners_of
from health_assets.systems.release_comparison.names import BASELINE, CANDIDATE, DIMENSIONS
from health_assets.systems.release_comparison.pairs import PAIR, of_releases, sides_of

GROUPS = 8
"""More would make intervals wider; the last one has all other tasks."""
FEWEST_RUNS_OF_GROUP = 5
"""Executions of a task before the release that make it a group of its own."""
PARTS = ("prior", BASELINE, CANDIDATE)
COUNTS = ("task_runs", "task_successes")
COLUMNS = tuple(f"{part}_{count}_{group}" for part in PARTS for count in COUNTS for group in range(GROUPS))
_TASK = "task"


def with_tasks(executions: ir.Table) -> ir.Table:
    """The executions of which the task is known, by hour, agent, the columns of `DIMENSIONS` and `task`: counts."""
    task = ibis.coalesce(executions.task_id, executions.input_digest)
    rows = executions.mutate(task=task).filter(task.notnull())
    rows = rows.fill_null(dict.fromkeys(DIMENSIONS.values(), ""))
    keys = ["hour", "agent_id", *DIMENSIONS.values(), _TASK]
    return rows.group_by(keys).aggregate(task_runs=rows.count(), task_successes=rows.count(where=rows.succeeded))


def groups_of_pairs(tasks: ir.Table, pairs: ir.Table, comparison_hours: int) -> ir.Table:
    """Counts of both versions of the pairs that have groups: `PAIR`, `part`, `ran_at`, `task_group` and `COUNTS`.

    Args:
        tasks: rows of `with_tasks`.
        pairs: the pairs.
        comparison_hours: the comparison hours.
    """
    joined = pairs.inner_join(of_releases(tasks).rename(ran_at="hour"), ["agent_id", "dimension"])
    is_candidate, is_baseline, is_prior = sides_of(joined, comparison_hours)
    part = ibis.cases((is_candidate, CANDIDATE), (is_prior, "prior"), else_=BASELINE)
    counted = joined.filter(is_candidate | is_baseline).mutate(part=part)
    before = counted.filter(counted.part == "prior")
    common = before.group_by([*PAIR, _TASK]).aggregate(runs=before.task_runs.sum())
    common = common.filter(common.runs >= FEWEST_RUNS_OF_GROUP)
    order = [ibis.desc("runs"), _TASK]
    placed = common.mutate(task_group=ibis.row_number().over(group_by=list(PAIR), order_by=order).cast("int64"))
    placed = placed.filter(placed.task_group < GROUPS - 1).drop("runs")
    grouped = lookup(counted.semi_join(placed, list(PAIR)), placed, [*PAIR, _TASK])
    grouped = grouped.mutate(task_group=grouped.task_group.fill_null(GROUPS - 1))
    keys = [*PAIR, "part", "ran_at", "task_group"]
    return grouped.group_by(keys).aggregate(**{name: grouped[name].sum().cast("int64") for name in COUNTS})


def sums_of_groups(parts: pa.Table, hours: HourRange, comparison_hours: int) -> pa.Table:
    """One row per hour and pair: `hour`, `PAIR` and `COLUMNS`, the counts of each group by then.

    Args:
        parts: rows of `groups_of_pairs`, in the order of `PAIR`.
        hours: the hours to give rows for; at least one.
        comparison_hours: how long a pair is compared.
    """
    owners = owners_of(parts, PAIR)
    _, firsts = np.unique(owners, return_index=True)
    released = hours_since(hours.start, parts["released_at"])[firsts]
    first = np.maximum(hours_since(hours.start, parts["ran_at"]), 0)
    part = np.array([PARTS.index(name) for name in parts["part"].to_pylist()], np.int64)
    group = parts["task_group"].cast(pa.int64()).to_numpy()
    shape = (len(firsts), len(hours), len(PARTS), GROUPS)
    places = np.ravel_multi_index((owners, first, part, group), shape)
    counts = [parts[name].cast(pa.int64()).to_numpy() for name in COUNTS]
    counts = [np.bincount(places, count, minlength=math.prod(shape)).reshape(shape) for count in counts]
    sums = np.stack(counts, axis=3).astype(np.int64)
    sums[:, :, PARTS.index(BASELINE)] += sums[:, :, PARTS.index("prior")]
    owner, hour = (array.ravel() for array in np.meshgrid(np.arange(len(firsts)), np.arange(len(hours)), indexing="ij"))
    is_compared = (hour >= released[owner]) & (hour < released[owner] + comparison_hours)
    owner, hour = owner[is_compared], hour[is_compared]
    by_then = sums.cumsum(axis=1)[owner, hour].reshape(len(owner), len(COLUMNS))
    named = parts.select(list(PAIR)).take(pa.array(firsts[owner]))
    named = named.add_column(0, "hour", pa.array(list(hours), pa.timestamp("us", "UTC")).take(pa.array(hour)))
    for place, name in enumerate(COLUMNS):
        named = named.append_column(name, pa.array(by_then[:, place]))
    return named
