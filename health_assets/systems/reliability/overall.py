"""The reliability of agents (source 2, "Overall Reliability"): the dimensions put together.

A mean skips what is not available and is null when nothing is; the overall value alone wants all three dimensions.
Safety stands beside it.
"""

from collections.abc import Sequence

import ibis
from ibis import ir

from health_assets.scoring.relations import lookup
from health_assets.systems.reliability.names import OBSERVED
from health_assets.systems.reliability.robustness import RATIOS
from health_assets.systems.reliability.tasks import of_best_source

COUNTS = ("tasks", "runs_with_confidence", "judged", "violated")


def agent_reliability(
    runs: ir.Table,
    consistency: ir.Table,
    predictability: ir.Table,
    safety: ir.Table,
    executions: ir.Table | None,
    windows: ir.Table,
) -> ir.Table:
    """One row per hour and agent with runs of tasks in the window: every column of `agent_reliability`.

    Of an agent's tasks of several sources those of the best one count alone.

    r_con = mean of c_out, (c_traj_d + c_traj_s) / 2 and c_res; r_pred = p_brier; r_rob = mean of the ratios;
    reliability = (r_con + r_pred + r_rob) / 3.

    Args:
        runs: rows of `robustness`.
        consistency: rows of `average_over_tasks`, which are of the best source alone.
        predictability: rows of `predictability`.
        safety: rows of `safety`.
        executions: cleaned executions, at least of the windows; None where no task is observed.
        windows: the columns of `Windowed` of every hour asked for.
    """
    best = of_best_source(runs)
    rows = lookup(best, windows, "hour")
    rows = lookup(rows, consistency, ["hour", "agent_id"])
    for part in (predictability, safety):
        rows = lookup(rows, part, ["hour", "agent_id", "task_source"])
    share: ir.FloatingValue = ibis.null("float64")
    if executions is not None:
        observed = best.filter(best.task_source == OBSERVED)
        rows = lookup(rows, _executions_of(observed, executions, windows), ["hour", "agent_id"])
        share = rows.runs / (rows.task_source == OBSERVED).ifelse(rows.executions, ibis.null("int64"))
    rows = rows.mutate(
        repeated_share=share,
        r_con=_mean([rows.c_out, _mean([rows.c_traj_d, rows.c_traj_s]), rows.c_res]),
        r_pred=rows.p_brier,
        r_rob=_mean([rows[name] for name in RATIOS.values()]),
        **{name: rows[name].fill_null(0).cast("int64") for name in COUNTS},
    )
    return rows.mutate(reliability=(rows.r_con + rows.r_pred + rows.r_rob) / 3)


def _executions_of(observed: ir.Table, executions: ir.Table, windows: ir.Table) -> ir.Table:
    """Of agents with observed tasks, the number of all executions in each window."""
    counted = (
        executions.semi_join(observed, "agent_id").group_by(["agent_id", "hour"]).aggregate(executions=ibis._.count())
    )
    held = counted.rename(run_hour="hour").inner_join(
        windows, [ibis._.run_hour >= windows.window_start, ibis._.run_hour < windows.window_end]
    )
    return held.group_by(["hour", "agent_id"]).aggregate(executions=held.executions.sum().cast("int64"))


def _mean(values: Sequence[ir.FloatingValue]) -> ir.FloatingValue:
    """The mean of those that are not null, added from left to right; null when all are."""
    total: ir.FloatingValue = ibis.literal(0.0)
    count: ir.IntegerValue = ibis.literal(0)
    for value in values:
        total += value.fill_null(0.0)
        count += value.notnull().cast("int64")
    return total / count.nullif(0)
