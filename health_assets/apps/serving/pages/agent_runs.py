"""An agent's executions summed up: by version, by model, by day.

What belongs here: sums over the series `runs`. What does not: comparing versions (`agent_comparison`).
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.utc_times import without_zone
from health_assets.core.hours import HourRange

SUMS = (
    "executions", "successes", "timed", "runtime_s_sum", "input_tokens", "output_tokens", "cost_usd",
    "executions_with_cost", "executions_with_tokens",
)  # fmt: skip
DAYS = "%Y-%m-%d"


def runs_of(look: ScopedHistory, agent_id: str, hours: HourRange) -> pa.Table:
    """The agent's rows of `runs`, with `day`; maybe none."""
    runs = look.history.of("runs", agent_id, hours)
    if not runs.num_rows:
        return runs
    return runs.append_column("day", pc.strftime(without_zone(runs.column("hour")), DAYS))


def runs_by(runs: pa.Table, column: str) -> list[dict[str, Any]]:
    """Sums of executions by a column, the one that ran last first; amounts are null where no execution tells any.

    Args:
        runs: rows of `runs_of`.
        column: `agent_version`, `model` or `day`; its null is what the logs do not tell.
    """
    if not runs.num_rows:
        return []
    wanted = [(name, "sum") for name in SUMS] + [("hour", "min"), ("hour", "max")]
    summed = runs.group_by(column, use_threads=False).aggregate(wanted).to_pylist()
    found = [_told(row, column) for row in summed]
    return sorted(found, key=lambda one: (one["last_hour"], one[column] or ""), reverse=True)


def _told(row: dict[str, Any], column: str) -> dict[str, Any]:
    """One sum with the shares and means that follow from it."""
    sums = {name: row[f"{name}_sum"] for name in SUMS}
    executions, timed, with_cost = sums["executions"], sums.pop("timed"), sums["executions_with_cost"]
    runtime_s = sums.pop("runtime_s_sum")
    return {
        column: row[column],
        **sums,
        "failures": executions - sums["successes"],
        "success_share": sums["successes"] / executions,
        "mean_runtime_s": runtime_s / timed if timed else None,
        "cost_per_execution_usd": sums["cost_usd"] / with_cost if with_cost else None,
        "first_hour": row["hour_min"],
        "last_hour": row["hour_max"],
    }
