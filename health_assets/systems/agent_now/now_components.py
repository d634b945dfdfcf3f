"""Streaks at the end of an hour: a component that merges, although it is no sum.

Executions are in the order of (ended_at, source_file, line_number, execution_id), since one line may hold several.
Where all of an hour failed, the streak goes on into the hour before.
"""

import ibis
from ibis import ir

from health_assets.scoring.relations import lookup

IN_ORDER = ("ended_at", "source_file", "line_number", "execution_id")


def now_components(executions: ir.Table) -> ir.Table:
    """One row per (hour, agent_id) whose last execution failed: `failed_at_end`."""
    runs = executions.select("hour", "agent_id", "succeeded", *IN_ORDER)
    successes = (
        runs.filter(runs.succeeded).group_by(["hour", "agent_id"]).aggregate(last_success_at=runs.ended_at.max())
    )
    # few are left, so that hardly anything is to be sorted
    joined = lookup(runs, successes, ["hour", "agent_id"])
    last = joined.filter(joined.last_success_at.isnull() | (joined.ended_at >= joined.last_success_at))
    latest_first = [ibis.desc(name) for name in IN_ORDER]
    by_agent = {"group_by": ["hour", "agent_id"]}
    placed = last.mutate(place=ibis.row_number().over(order_by=latest_first, **by_agent))
    placed = placed.mutate(first_success=placed.place.min(where=placed.succeeded).over(ibis.window(**by_agent)))
    streak = placed.filter(placed.first_success.isnull() | (placed.place < placed.first_success))
    return streak.group_by(["hour", "agent_id"]).aggregate(failed_at_end=streak.count())
