"""Slow executions: the share that takes more than twice the median.

The median is the runtime at the nearest rank: the shortest one that at least half of the executions do not exceed.
"""

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.scoring.target_columns import with_targets_used
from health_assets.scoring.window_merges import merged_windows

KEYS = ("agent_id", "runtime_us")
SLOW_FROM = 2
"""Times the median; what takes longer is slow."""


def runtime_components(executions: ir.Table) -> ir.Table:
    """One row per (hour, agent_id, runtime_us): every column of `runtime_components`."""
    timed = executions.filter(executions.runtime_s.notnull())
    timed = timed.mutate(runtime_us=(timed.runtime_s * 1e6).round().cast("int64"))
    return timed.group_by("hour", *KEYS).aggregate(executions=timed.count())


def slow_executions(components: ir.Table, targets: Targets, hours: HourRange, window_hours: int) -> ir.Table:
    """One row per hour and agent with an execution in the window, from components of `hours` and the window before."""
    windows = merged_windows(components, KEYS, hours, window_hours, ["executions"])
    windows = with_targets_used(windows, targets, [])
    all_of_it = ibis.window(group_by=["hour", "agent_id"])
    up_to_here = ibis.cumulative_window(group_by=["hour", "agent_id"], order_by="runtime_us")
    ranked = windows.mutate(
        in_all=windows.executions.sum().over(all_of_it), up_to_here=windows.executions.sum().over(up_to_here)
    )
    is_from_median_on = 2 * ranked.up_to_here >= ranked.in_all
    timed = ranked.mutate(median_us=ranked.runtime_us.min(where=is_from_median_on).over(all_of_it))
    is_slow = timed.runtime_us > SLOW_FROM * timed.median_us
    rows = timed.group_by("hour", "agent_id").aggregate(
        executions=timed.executions.sum(),
        slow=timed.executions.sum(where=is_slow).fill_null(0),
        median_us=timed.median_us.max(),
    )
    return rows.mutate(slow_share=rows.slow / rows.executions, median_runtime_s=rows.median_us / 1e6).drop("median_us")
