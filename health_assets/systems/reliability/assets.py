"""The reliability evaluation (source 2): consistency of tasks, and reliability and safety of agents."""

from collections.abc import Mapping
from functools import partial

import ibis
from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.systems.reliability import FORMULA_VERSION
from health_assets.systems.reliability.consistency import (
    RUN_COLUMNS,
    RUNS_IN_ORDER,
    TASK,
    average_over_tasks,
    baseline_runs,
    task_consistency,
)
from health_assets.systems.reliability.names import OBSERVED
from health_assets.systems.reliability.overall import agent_reliability
from health_assets.systems.reliability.predictability import (
    AGENT,
    COUNTS_IN_ORDER,
    confidence_counts,
    predictability,
)
from health_assets.systems.reliability.robustness import MET_FAULT, robustness, with_faults_met
from health_assets.systems.reliability.safety import safety
from health_assets.systems.reliability.tasks import (
    asked,
    held_in,
    runs_of_tasks,
    with_counted_hours,
    without_worse_sources,
)

COLUMNS = (
    "hour", "execution_id", "agent_id", "agent_id_reported", "task_id", "task_source", "condition", "succeeded",
    "confidence", "violations", "source_file", "line_number", MET_FAULT,
)  # fmt: skip
"""Columns of executions that the rows of agents need, and whether a run met a fault."""


def _tasks(inputs: Inputs) -> ir.Table:
    window_hours = inputs.settings.evaluation_hours
    executions = inputs.table("executions", back_hours=window_hours)
    runs = baseline_runs(runs_of_tasks(executions, RUN_COLUMNS, with_observed=_is_asked(inputs, executions)))
    of_runs = partial(task_consistency, hours=inputs.hours, window_hours=window_hours)
    rows = inputs.session.grouped(runs, TASK, RUNS_IN_ORDER, of_runs)
    windows = inputs.windows("executions", window_hours)
    return without_worse_sources(rows, executions, windows, window_hours).inner_join(windows, "hour")


def _agents(inputs: Inputs) -> ir.Table:
    settings, session = inputs.settings, inputs.session
    executions = inputs.table("executions", back_hours=settings.evaluation_hours)
    with_observed = _is_asked(inputs, executions)
    runs = runs_of_tasks(_with_faults_met(inputs, executions, with_observed), COLUMNS, with_observed=with_observed)
    runs, _ = session.persist(with_counted_hours(runs, settings.evaluation_hours, with_observed=with_observed))
    judgements = inputs.table("judgements", back_hours=settings.reach_hours)
    windows = inputs.windows("executions", settings.evaluation_hours)
    return agent_reliability(
        robustness(runs, windows),
        average_over_tasks(inputs.table("task_consistency")),
        _predicted(inputs, runs, windows, with_observed=with_observed),
        safety(
            runs, judgements, _evaluated(inputs), windows, early_hours=settings.reach_hours - settings.evaluation_hours
        ),
        executions if with_observed else None,
        windows,
    )


def _evaluated(inputs: Inputs) -> ir.Table | None:
    """Results of evaluators that tell of violations; None where there are none, as in most logs."""
    results = inputs.table("evaluated_signals", back_hours=inputs.settings.reach_hours)
    results = results.filter(results.is_violation.notnull())
    return results if inputs.session.count(results.limit(1)) else None


def _with_faults_met(inputs: Inputs, executions: ir.Table, with_observed: bool) -> ir.Table:
    """Executions with `MET_FAULT`, which only counts where tasks are observed."""
    if not with_observed:
        return executions.mutate(**{MET_FAULT: ibis.literal(False)})
    return with_faults_met(executions, inputs.table("computed_signals", back_hours=inputs.settings.evaluation_hours))


def _is_asked(inputs: Inputs, executions: ir.Table) -> bool:
    """Whether a task may be observed; most logs do not tell what runs were asked."""
    return inputs.session.count(asked(executions).limit(1)) > 0


def _predicted(inputs: Inputs, runs: ir.Table, windows: ir.Table, *, with_observed: bool) -> ir.Table:
    """Predictability by hour, agent and source of tasks; observed runs are brought to their windows one by one."""
    session = inputs.session
    predicted = partial(predictability, hours=inputs.hours)
    others = confidence_counts(runs.filter(runs.task_source != OBSERVED))
    of_others = partial(predicted, window_hours=inputs.settings.evaluation_hours)
    rows = session.grouped(others, AGENT, COUNTS_IN_ORDER, of_others)
    observed = runs.filter(runs.task_source == OBSERVED, runs.confidence.notnull())
    if not with_observed or not session.count(observed):
        return rows
    counts = confidence_counts(held_in(observed.drop("hour"), windows))
    return ibis.union(rows, session.grouped(counts, AGENT, COUNTS_IN_ORDER, partial(predicted, window_hours=1)))


def _least_consistent_tasks(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by("outcome_agreement", "agent_id", "task_id").select(
        "hour",
        "agent_id",
        "task_source",
        "task_id",
        "runs",
        "successes",
        "c_out",
        "c_traj_d",
        "c_traj_s",
        "c_conf",
        "c_res",
    )


def _least_reliable_agents(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by(latest.reliability.asc(nulls_first=False), "agent_id").select(
        "hour", "agent_id", "task_source", "reliability", "r_con", "r_pred", "r_rob", "r_saf", "tasks", "runs", "judged"
    )


def _mean_scores(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {
        "mean reliability": rows.reliability.mean(), "mean safety": rows.r_saf.mean(),
        "violations": rows.violated.sum(), "runs": rows.runs.sum(),
    }  # fmt: skip


ASSETS = (
    Derived(
        name="task_consistency",
        upstream=("executions",),
        rows=_tasks,
        preview_title="least consistent tasks",
        preview_rows=_least_consistent_tasks,
        blocked_by=("raw_logs",),
        empty_without=(
            "two baseline runs of a task by an agent (executions with a task_id, or with the same input) in the "
            "evaluation window"
        ),
        back_hours=lambda settings: settings.evaluation_hours,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="agent_reliability",
        upstream=("executions", "judgements", "computed_signals", "evaluated_signals", "task_consistency"),
        rows=_agents,
        preview_title="least reliable agents",
        preview_rows=_least_reliable_agents,
        empty_without=(
            "an evaluation run (an execution with a task_id), or two with the same input, in the evaluation window"
        ),
        back_hours=lambda settings: settings.reach_hours,
        curves=_mean_scores,
        formula_version=FORMULA_VERSION,
    ),
)
