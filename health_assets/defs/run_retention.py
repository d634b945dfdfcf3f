"""Keeps Dagster's history from growing without end: old runs, their events and files are deleted once a day.

The warehouse keeps its own account of what was materialized (`partition_states`, `expectation_results`), so nothing
about health is lost; Dagster's page merely shows partitions of deleted runs as never materialized.

What belongs here: which runs are old, the job and its schedule. What does not: files (`run_files`).
"""

from datetime import UTC, datetime, timedelta

import dagster as dg

from health_assets.core.settings import Settings
from health_assets.defs.run_files import delete_run, deleted_runs_with_files, shared_files, shrink
from health_assets.defs.schedules import default_status

JOB = "prune_run_history"
RUNS_AT_ONCE = 500
ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def prune_runs_job(settings: Settings) -> dg.JobDefinition:
    """A job that deletes ended runs older than the setting says."""

    @dg.op(name="delete_old_runs", required_resource_keys={"pipeline"})  # with which it is noticed if its process dies
    def delete_old_runs(context: dg.OpExecutionContext) -> None:
        before = datetime.now(UTC) - timedelta(days=settings.run_history_days)
        filters = dg.RunsFilter(statuses=ENDED, created_before=before)
        deleted = 0
        while records := context.instance.get_run_records(filters, limit=RUNS_AT_ONCE):
            for record in records:
                delete_run(context.instance, record.dagster_run.run_id)
            deleted += len(records)
        context.log.info(f"deleted {deleted} runs that started before {before:%Y-%m-%d}")
        for run_id in deleted_runs_with_files(context.instance, before):
            delete_run(context.instance, run_id)
        for shrunk in map(shrink, shared_files(context.instance)):
            if shrunk and shrunk.problem:
                context.log.warning(f"{shrunk.path.name} stays as large as it is until the next time: {shrunk.problem}")
            elif shrunk:
                context.log.info(f"{shrunk.path.name} is smaller by {shrunk.freed_bytes:,} bytes")

    @dg.job(
        name=JOB, description=f"Deletes runs older than {settings.run_history_days} days, with their events and files."
    )
    def prune_run_history() -> None:
        delete_old_runs()

    return prune_run_history


def prune_runs_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """Once a day, at a quiet minute."""
    return dg.ScheduleDefinition(
        name="prune_run_history_daily",
        job_name=JOB,
        cron_schedule="41 3 * * *",
        execution_timezone="UTC",
        description="Deletes old runs of Dagster, with their events and files.",
        default_status=default_status(settings),
    )
