"""Robustness (source 2, "Robustness"): what is left of an agent's accuracy when conditions get worse."""

from ibis import ir

from health_assets.systems.reliability.tasks import COUNTED, held_in

RATIOS = {"fault": "r_fault", "structural": "r_struct", "prompt": "r_prompt"}


def robustness(runs: ir.Table, windows: ir.Table) -> ir.Table:
    """One row per hour, agent and source of tasks with runs of them in the window.

    Accuracy is the share of a condition's runs that succeeded; a ratio is accuracy under the condition over baseline
    accuracy, at most 1, and null where one of the two is not known or the baseline is 0.

    Args:
        runs: rows of `tasks.with_counted_hours`, at least of the windows.
        windows: `hour` of every hour asked for.

    Returns:
        `hour`, `agent_id`, `task_source`, `runs`, `baseline_runs`, `baseline_accuracy` and the ratios.
    """
    conditions = ("baseline", *RATIOS)
    keys = ["agent_id", "task_source", *COUNTED]
    counted = runs.group_by(keys).aggregate(
        runs=runs.count(),
        **{f"{name}_runs": runs.count(where=runs.condition == name) for name in conditions},
        **{f"{name}_successes": runs.count(where=(runs.condition == name) & runs.succeeded) for name in conditions},
    )
    counts = [name for name in counted.columns if name not in keys]
    held = held_in(counted, windows)
    sums = held.group_by(["hour", "agent_id", "task_source"]).aggregate(
        **{name: held[name].sum().cast("int64") for name in counts}
    )
    accuracy = {name: sums[f"{name}_successes"] / sums[f"{name}_runs"].nullif(0) for name in conditions}
    ratios = {column: _at_most_one(accuracy[name] / accuracy["baseline"].nullif(0)) for name, column in RATIOS.items()}
    return sums.select(
        "hour", "agent_id", "task_source", "runs", "baseline_runs", baseline_accuracy=accuracy["baseline"], **ratios
    )


def _at_most_one(ratio: ir.FloatingValue) -> ir.FloatingValue:
    return (ratio > 1).ifelse(1.0, ratio)  # `least` would make 1 of null
