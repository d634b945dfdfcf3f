"""Batches of the reliability evaluation."""

import ibis
import pandas as pd
from ibis import Deferred, _, ir

from health_assets.quality.batches import Source, hours, rows, with_fact, with_facts
from health_assets.systems.reliability.names import OBSERVED
from health_assets.systems.reliability.tasks import SOURCES


def scored_tasks(source: Source) -> ir.Table:
    """Rows of `task_consistency`, with whether there are pairs and distances, and the window's full length."""
    own = rows(source)
    return own.mutate(
        has_pairs=(own.pairs > 0).cast("int64"),
        has_c_traj_d=own.c_traj_d.notnull().cast("int64"),
        has_c_traj_s=own.c_traj_s.notnull().cast("int64"),
        window_hours=ibis.literal(source.settings.evaluation_hours),
    )


def scored_reliability(source: Source) -> ir.Table:
    """Rows of `agent_reliability`, with which scores there are and should be, and the window's full length."""
    own = rows(source)
    has_dimensions = own.r_con.notnull() & own.r_pred.notnull() & own.r_rob.notnull()
    return own.mutate(
        is_observed=(own.task_source == OBSERVED).cast("int64"),
        has_repeated_share=own.repeated_share.notnull().cast("int64"),
        has_reliability=own.reliability.notnull().cast("int64"),
        has_dimensions=has_dimensions.cast("int64"),
        has_safety=own.r_saf.notnull().cast("int64"),
        is_judged=(own.judged > 0).cast("int64"),
        window_hours=ibis.literal(source.settings.evaluation_hours),
    )


def hours_of_tasks(source: Source) -> pd.DataFrame:
    """`hours`, with the runs of all stated tasks, and the baseline runs that state one in the windows."""
    runs = source.session.table("executions")
    frame = hours(source).assign(baseline_runs=_stated_runs(source, runs.filter(runs.condition == "baseline")))
    return with_facts(frame, ["runs_of_tasks"], source.facts("task_consistency", _of_stated_tasks()))


def hours_of_reliability(source: Source) -> pd.DataFrame:
    """`hours`, with the runs of stated tasks, the tasks of all agents, these runs in the windows, and rows of tasks."""
    frame = hours(source).assign(runs_of_hours=_stated_runs(source, source.session.table("executions")))
    own = source.facts("agent_reliability", _of_stated_tasks(), _.tasks.sum())
    frame = with_facts(frame, ["runs_in_windows", "tasks_of_agents"], own)
    return with_fact(frame, "task_rows", source.counts("task_consistency"))


def _of_stated_tasks() -> Deferred:
    """The runs of tasks that the log states, which count whatever else there is."""
    return _.runs.sum(where=_.task_source == SOURCES[0]).fill_null(0)


def _stated_runs(source: Source, executions: ir.Table) -> list[int]:
    """For each hour checked, those of the executions in the window that ends with it that state a task."""
    length = source.settings.evaluation_hours
    span = source.hours.extended_back(length - 1)
    runs = executions.filter(executions.task_id.notnull(), executions.task_source == SOURCES[0])
    by_hour = source.facts(runs, _.count(), hours=span)
    counts = [by_hour.get(hour, (0,))[0] for hour in span]
    return [sum(counts[place : place + length]) for place in range(len(source.hours))]
