"""Schedules: the hourly materialization, that of the running hour, and the check that the newest is in time.

A tick that has nothing to work on yet is skipped with a sentence that says so.
"""

from datetime import UTC, datetime

import dagster as dg

from health_assets.core.errors import HealthAssetsError, NoRawRootError, NoWarehouseError, WarehouseBusyError
from health_assets.core.hours import KEY_FORMAT, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.defs.naming import STANDALONE, Naming
from health_assets.defs.partitions import hours_of_tags, hours_tags
from health_assets.defs.unfinished_runs import unfinished_runs
from health_assets.defs.write_lock.write_lock import URGENT
from health_assets.logs.stores import require_root
from health_assets.pipeline.hour_arithmetic import newest_finished_hour
from health_assets.pipeline.resource import Pipeline
from health_assets.systems.due_hours import missed_hours, running_hour_due
from health_assets.warehouse.partition_states import SCORED_ASSET, PartitionStates

LOCK_TIMEOUT_S = 10.0
NOTHING_YET = "nothing has been materialized yet, so nothing is late"


def default_status(settings: Settings) -> dg.DefaultScheduleStatus:
    """Whether a schedule starts by itself; whatever it does, it can be switched on and off on Dagster's page."""
    return dg.DefaultScheduleStatus.RUNNING if settings.schedules else dg.DefaultScheduleStatus.STOPPED


def default_sensor_status(settings: Settings, naming: Naming) -> dg.DefaultSensorStatus:
    """Whether a sensor starts by itself: always in our own project; in another one, where the schedules do."""
    is_off = naming.is_embedded and not settings.schedules
    return dg.DefaultSensorStatus.STOPPED if is_off else dg.DefaultSensorStatus.RUNNING


def hourly_schedule(job_name: str, settings: Settings, naming: Naming = STANDALONE) -> dg.ScheduleDefinition:
    """Materialize the hour that just ended, with any hours before it that earlier runs missed.

    That is one run, or one for each side of an hour whose checks failed, which the late-log sensor asks for.
    """

    @dg.schedule(
        name=naming.name("hourly"),
        required_resource_keys={naming.resource},
        job_name=job_name,
        description="Materializes the hour that ended, with the hours of the look-back that were missed, as one run.",
        cron_schedule=f"{settings.schedule_minute} * * * *",
        execution_timezone="UTC",
        default_status=default_status(settings),
    )
    def _hourly(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        pipeline = naming.pipeline(context)
        newest = newest_finished_hour(context.scheduled_execution_time.astimezone(UTC))
        if settings.first_hour and newest < settings.first_hour:
            return dg.SkipReason(f"no hour has ended since HEALTH_FIRST_HOUR, {settings.first_hour:{KEY_FORMAT}}")
        try:
            require_root(pipeline.raw_root)
        except NoRawRootError as error:
            return dg.SkipReason(str(error))
        except HealthAssetsError as error:
            context.log.warning(str(error))  # and the run will fail with it, for all to see
        return [
            dg.RunRequest(
                run_key=f"{newest:{KEY_FORMAT}}" if newest in hours else f"{newest:{KEY_FORMAT}} {hours}",
                tags={**hours_tags(hours), **URGENT},
            )
            for hours in _hours_due(newest, pipeline)
        ]

    return _hourly


def _hours_due(newest: datetime, pipeline: Pipeline) -> list[HourRange]:
    """The newest hour and what was missed; the newest alone where the warehouse cannot be looked at just now."""
    try:
        with pipeline.waiting_at_most(LOCK_TIMEOUT_S).read() as session:
            return missed_hours(session, pipeline.settings, newest)
    except (NoWarehouseError, WarehouseBusyError):
        return [HourRange.of(newest)]


def running_hour_schedule(job_name: str, settings: Settings, naming: Naming = STANDALONE) -> dg.ScheduleDefinition:
    """Materialize the running hour, every few minutes; off until somebody switches it on, since each time is a run.

    The late-log sensor loads the lines.
    """

    @dg.schedule(
        name=naming.name("running_hour"),
        required_resource_keys={naming.resource},
        job_name=job_name,
        description="Materializes the running hour as it is so far, where logs have news of it.",
        cron_schedule="*/5 * * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
    )
    def _running_hour(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        pipeline, now = naming.pipeline(context), context.scheduled_execution_time.astimezone(UTC)
        if any(
            floor_hour(now) in (hours_of_tags(run.tags) or ()) for run in unfinished_runs(context.instance, job_name)
        ):
            return dg.SkipReason("a run of the hour is under way")
        try:
            with pipeline.waiting_at_most(LOCK_TIMEOUT_S).read() as session:
                due = running_hour_due(session, settings, now)
        except NoWarehouseError:
            due = None
        except WarehouseBusyError as error:
            return dg.SkipReason(f"{error}; the next tick looks again")
        if due is None:
            return dg.SkipReason(f"nothing is new of the hour from {floor_hour(now):{KEY_FORMAT}}")
        return dg.RunRequest(run_key=f"{now:{KEY_FORMAT}}", tags={**hours_tags(due.hours), **URGENT})

    return _running_hour


def freshness_schedule(job_name: str, settings: Settings, naming: Naming = STANDALONE) -> dg.ScheduleDefinition:
    """Check, once the hour may be called late, that it was materialized."""

    @dg.schedule(
        name=naming.name("freshness"),
        required_resource_keys={naming.resource},
        job_name=job_name,
        description="Checks that the newest finished hour was materialized in time.",
        cron_schedule=f"{(settings.late_after_minutes + 1) % 60} * * * *",
        execution_timezone="UTC",
        default_status=default_status(settings),
    )
    def _freshness(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        pipeline = naming.pipeline(context)
        try:
            with pipeline.waiting_at_most(LOCK_TIMEOUT_S).read() as session:
                has_any = PartitionStates(session).first(SCORED_ASSET) is not None
        except NoWarehouseError:
            has_any = False
        except WarehouseBusyError:
            has_any = True  # the check waits for it
        return dg.RunRequest(tags=URGENT) if has_any else dg.SkipReason(NOTHING_YET)

    return _freshness
