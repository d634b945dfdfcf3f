"""What runs by itself at its time: the hourly materialisation and the check that it happened."""

from datetime import UTC, datetime

import dagster as dg

from health_assets.defs.partitions import hours_tags
from health_assets.defs.pipeline import Pipeline
from health_assets.hours import KEY_FORMAT, HourRange
from health_assets.planning import catch_up, newest_finished_hour
from health_assets.settings import Settings


def hourly_schedule(job_name: str, settings: Settings) -> dg.ScheduleDefinition:
    """Materialise the hour that just ended, with any hours before it that earlier runs missed, as one run."""

    @dg.schedule(
        name="hourly",
        job_name=job_name,
        cron_schedule=f"{settings.schedule_minute} * * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def _hourly(context: dg.ScheduleEvaluationContext, pipeline: Pipeline) -> dg.RunRequest:
        newest = newest_finished_hour(context.scheduled_execution_time.astimezone(UTC))
        hours = catch_up(newest, _last_materialized(pipeline, HourRange.of(newest)), pipeline.lookback_hours)
        return dg.RunRequest(run_key=f"{newest:{KEY_FORMAT}}", tags=hours_tags(hours))

    return _hourly


def _last_materialized(pipeline: Pipeline, newest: HourRange) -> datetime | None:
    warehouse = pipeline.open()
    if not warehouse.exists:
        return None
    with warehouse.read() as session:
        rows = session.query(
            "SELECT max(hour) FROM materialized_hours WHERE asset = 'system_health' AND hour < ?", [newest.start]
        )
    return rows[0][0]


def freshness_schedule(job_name: str, settings: Settings) -> dg.ScheduleDefinition:
    """Check, once the hour may be called late, that it was materialised."""
    return dg.ScheduleDefinition(
        name="freshness",
        job_name=job_name,
        cron_schedule=f"{(settings.late_after_minutes + 1) % 60} * * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
