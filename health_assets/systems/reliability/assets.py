"""The reliability evaluation (source 2): consistency of tasks, and reliability and safety of agents."""

from collections.abc import Mapping
from functools import partial

from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.systems.reliability import FORMULA_VERSION
from health_assets.systems.reliability.consistency import (
    RUNS_IN_ORDER,
    TASK,
    average_over_tasks,
    baseline_runs,
    task_consistency,
)
from health_assets.systems.reliability.overall import agent_reliability
from health_assets.systems.reliability.predictability import COUNTS_IN_ORDER, confidence_counts, predictability
from health_assets.systems.reliability.robustness import robustness
from health_assets.systems.reliability.safety import safety

RUN_COLUMNS = (
    "hour", "execution_id", "agent_id", "agent_id_reported", "task_id", "condition", "succeeded", "confidence",
    "violations",
)  # fmt: skip


def _tasks(inputs: Inputs) -> ir.Table:
    window_hours = inputs.settings.evaluation_hours
    runs = baseline_runs(inputs.table("executions", back_hours=window_hours))
    of_runs = partial(task_consistency, hours=inputs.hours, window_hours=window_hours)
    rows = inputs.session.grouped(runs, TASK, RUNS_IN_ORDER, of_runs)
    return inputs.with_windows(rows, "executions", window_hours)


def _agents(inputs: Inputs) -> ir.Table:
    settings, session = inputs.settings, inputs.session
    executions = inputs.table("executions", back_hours=settings.evaluation_hours)
    runs, _ = session.persist(executions.filter(executions.task_id.notnull()).select(*RUN_COLUMNS))
    judgements = inputs.table("judgements", back_hours=settings.reach_hours)
    windows = inputs.windows("executions", settings.evaluation_hours)
    of_counts = partial(predictability, hours=inputs.hours, window_hours=settings.evaluation_hours)
    predicted = session.grouped(confidence_counts(runs), ["agent_id"], COUNTS_IN_ORDER, of_counts)
    return agent_reliability(
        robustness(runs, windows),
        average_over_tasks(inputs.table("task_consistency")),
        predicted,
        safety(runs, judgements, windows, early_hours=settings.reach_hours - settings.evaluation_hours),
        windows,
    )


def _least_consistent_tasks(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by("outcome_agreement", "agent_id", "task_id").select(
        "hour", "agent_id", "task_id", "runs", "successes", "c_out", "c_traj_d", "c_traj_s", "c_conf", "c_res"
    )


def _least_reliable_agents(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by(latest.reliability.asc(nulls_first=False), "agent_id").select(
        "hour", "agent_id", "reliability", "r_con", "r_pred", "r_rob", "r_saf", "tasks", "runs", "judged"
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
        empty_without="two baseline runs of a task by an agent (executions with a task_id) in the evaluation window",
        back_hours=lambda settings: settings.evaluation_hours,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="agent_reliability",
        upstream=("executions", "judgements", "task_consistency"),
        rows=_agents,
        preview_title="least reliable agents",
        preview_rows=_least_reliable_agents,
        empty_without="an evaluation run (an execution with a task_id) in the evaluation window",
        back_hours=lambda settings: settings.reach_hours,
        curves=_mean_scores,
        formula_version=FORMULA_VERSION,
    ),
)
