"""Robustness (source 2, "Robustness"): what is left of an agent's accuracy when conditions get worse.

Conditions are stated by the log. Of an agent with observed tasks in whose window no run states one they are observed: a
run meets a fault where a tool fails by a fault that is not the agent's. Stated and observed ones are never mixed.
"""

import ibis
from ibis import ir

from health_assets.scoring.identities import with_columns_of_runs
from health_assets.systems.reliability.names import OBSERVED
from health_assets.systems.reliability.tasks import COUNTED, held_in

RATIOS = {"fault": "r_fault", "structural": "r_struct", "prompt": "r_prompt"}
STATED = "stated"
MET_FAULT = "met_fault"
"""Whether a tool of the run failed by a fault that is not the agent's."""


def with_faults_met(executions: ir.Table, computed: ir.Table) -> ir.Table:
    """Executions with `MET_FAULT`.

    Args:
        executions: cleaned executions.
        computed: rows of `computed_signals` of the same hours.
    """
    rows = with_columns_of_runs(executions, computed, ["tool_faults"])
    return rows.mutate(**{MET_FAULT: (rows.tool_faults > 0).fill_null(False)}).drop("tool_faults")


def robustness(runs: ir.Table, windows: ir.Table) -> ir.Table:
    """One row per hour, agent and source of tasks with runs of them in the window.

    Accuracy is the share of a condition's runs that succeeded; a ratio is accuracy under the condition over baseline
    accuracy, at most 1, and null where one of the two is not known or the baseline is 0. Of observed conditions the
    baseline are the runs that met no fault.

    Args:
        runs: rows of `tasks.with_counted_hours` with `MET_FAULT`, at least of the windows.
        windows: `hour` of every hour asked for.

    Returns:
        `hour`, `agent_id`, `task_source`, `runs`, `baseline_runs`, `baseline_accuracy`, the ratios, `condition_source`
        and `fault_runs`.
    """
    conditions = {name: runs.condition == name for name in ("baseline", *RATIOS)}
    conditions[MET_FAULT] = conditions["baseline"] & runs[MET_FAULT]
    keys = ["agent_id", "task_source", *COUNTED]
    counted = runs.group_by(keys).aggregate(
        runs=runs.count(),
        **{f"{name}_runs": runs.count(where=is_of_it) for name, is_of_it in conditions.items()},
        **{f"{name}_successes": runs.count(where=is_of_it & runs.succeeded) for name, is_of_it in conditions.items()},
    )
    counts = [name for name in counted.columns if name not in keys]
    held = held_in(counted, windows)
    sums = held.group_by(["hour", "agent_id", "task_source"]).aggregate(
        **{name: held[name].sum().cast("int64") for name in counts}
    )
    is_observed = (sums.task_source == OBSERVED) & (sums.baseline_runs == sums.runs)
    accuracy = {name: _share(sums[f"{name}_successes"], sums[f"{name}_runs"]) for name in ("baseline", *RATIOS)}
    ratios = {column: _ratio(accuracy[name], accuracy["baseline"]) for name, column in RATIOS.items()}
    undisturbed = _share(
        sums.baseline_successes - sums[f"{MET_FAULT}_successes"], sums.baseline_runs - sums[f"{MET_FAULT}_runs"]
    )
    disturbed = _share(sums[f"{MET_FAULT}_successes"], sums[f"{MET_FAULT}_runs"])
    ratios["r_fault"] = is_observed.ifelse(_ratio(disturbed, undisturbed), ratios["r_fault"])
    is_known = ibis.or_(*(ratio.notnull() for ratio in ratios.values()))
    return sums.select(
        "hour", "agent_id", "task_source", "runs", "baseline_runs", baseline_accuracy=accuracy["baseline"], **ratios,
        condition_source=is_known.ifelse(is_observed.ifelse(OBSERVED, STATED), ibis.null("string")),
        fault_runs=is_observed.ifelse(sums[f"{MET_FAULT}_runs"], sums.fault_runs),
    )  # fmt: skip


def _share(successes: ir.IntegerValue, runs: ir.IntegerValue) -> ir.FloatingValue:
    return successes / runs.nullif(0)


def _ratio(accuracy: ir.FloatingValue, baseline: ir.FloatingValue) -> ir.FloatingValue:
    """The accuracy over that of the baseline, at most 1."""
    ratio = accuracy / baseline.nullif(0)
    return (ratio > 1).ifelse(1.0, ratio)  # `least` would make 1 of null
