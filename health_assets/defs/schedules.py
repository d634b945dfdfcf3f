"""What runs by itself at its time: the hourly materialisation and the check that it happened."""

from datetime import UTC, datetime

import dagster as dg

from health_assets.defs.partitions import hours_tags
from health_assets.defs.pipeline import Pipeline, PipelineResource
from health_assets.errors import NoWarehouseError, WarehouseBusyError
from health_assets.hours import KEY_FORMAT, HourRange
from health_assets.planning import catch_up, newest_finished_hour
from health_assets.settings import Settings

LOCK_TIMEOUT_S = 10.0


def hourly_schedule(job_name: str, settings: Settings) -> dg.ScheduleDefinition:
    """Materialise the hour that just ended, with any hours before it that earlier runs missed, as one run."""

    @dg.schedule(
        name="hourly",
        job_name=job_name,
        description="Materialises the hour that ended, with the hours of the look-back that were missed, as one run.",
        cron_schedule=f"{settings.schedule_minute} * * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def _hourly(context: dg.ScheduleEvaluationContext, pipeline: PipelineResource) -> dg.RunRequest | dg.SkipReason:
        newest = newest_finished_hour(context.scheduled_execution_time.astimezone(UTC))
        if newest < settings.first_hour:
            return dg.SkipReason(f"no hour has ended since HEALTH_FIRST_HOUR, {settings.first_hour:{KEY_FORMAT}}")
        return dg.RunRequest(run_key=f"{newest:{KEY_FORMAT}}", tags=hours_tags(_hours_due(newest, pipeline)))

    return _hourly


def _hours_due(newest: datetime, pipeline: Pipeline) -> HourRange:
    """The newest hour and what was missed; the newest alone where the warehouse cannot be looked at just now."""
    span = HourRange.of(newest).extended_back(pipeline.settings.reach_hours - 1)
    try:
        with pipeline.open(LOCK_TIMEOUT_S).read() as session:
            materialized = session.materialized_hours("system_health", span)
            [(first,)] = session.query("SELECT min(hour) FROM materialized_hours WHERE asset = 'system_health'")
    except (NoWarehouseError, WarehouseBusyError):
        return HourRange.of(newest)
    due = catch_up(newest, materialized, first, pipeline.settings.reach_hours)
    return HourRange(max(due.start, pipeline.settings.first_hour), due.end)


def freshness_schedule(job_name: str, settings: Settings) -> dg.ScheduleDefinition:
    """Check, once the hour may be called late, that it was materialised."""
    return dg.ScheduleDefinition(
        name="freshness",
        description="Checks that the newest finished hour was materialised in time.",
        job_name=job_name,
        cron_schedule=f"{(settings.late_after_minutes + 1) % 60} * * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
