"""Robustness (source 2, "Robustness"): what is left of an agent's accuracy when conditions get worse."""

import ibis
from ibis import ir

RATIOS = {"fault": "r_fault", "structural": "r_struct", "prompt": "r_prompt"}


def robustness(runs: ir.Table, windows: ir.Table) -> ir.Table:
    """One row per hour and agent with evaluation runs in the window.

    Accuracy is the share of a condition's runs that succeeded; a ratio is accuracy under the condition over baseline
    accuracy, at most 1, and null where one of the two is not known or the baseline is 0.

    Args:
        runs: evaluation runs, at least of the windows.
        windows: `hour`, `window_start` and `window_end` of every hour asked for.

    Returns:
        `hour`, `agent_id`, `runs`, `baseline_runs`, `baseline_accuracy` and the ratios.
    """
    conditions = ("baseline", *RATIOS)
    counted = runs.group_by(["agent_id", "hour"]).aggregate(
        runs=runs.count(),
        **{f"{name}_runs": runs.count(where=runs.condition == name) for name in conditions},
        **{f"{name}_successes": runs.count(where=(runs.condition == name) & runs.succeeded) for name in conditions},
    )
    counts = [name for name in counted.columns if name not in ("agent_id", "hour")]
    held = counted.rename(run_hour="hour").inner_join(
        windows, [ibis._.run_hour >= windows.window_start, ibis._.run_hour < windows.window_end]
    )
    sums = held.group_by(["hour", "agent_id"]).aggregate(**{name: held[name].sum().cast("int64") for name in counts})
    accuracy = {name: sums[f"{name}_successes"] / sums[f"{name}_runs"].nullif(0) for name in conditions}
    ratios = {column: _at_most_one(accuracy[name] / accuracy["baseline"].nullif(0)) for name, column in RATIOS.items()}
    return sums.select("hour", "agent_id", "runs", "baseline_runs", baseline_accuracy=accuracy["baseline"], **ratios)


def _at_most_one(ratio: ir.FloatingValue) -> ir.FloatingValue:
    return (ratio > 1).ifelse(1.0, ratio)  # `least` would make 1 of null
