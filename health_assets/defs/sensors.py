"""The late-log sensor: loads what is new in the logs, and requests the hours that are out of date by it."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import dagster as dg

from health_assets.core.errors import NoRawRootError, NoWarehouseError, WarehouseBusyError
from health_assets.core.formatting import counted
from health_assets.core.hours import EVER, HOUR, KEY_FORMAT, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.defs.naming import STANDALONE, Naming
from health_assets.defs.partitions import hours_of_tags, hours_tags
from health_assets.defs.publishing import NAME as PUBLISHED_TABLES
from health_assets.defs.schedules import NOTHING_YET, default_sensor_status
from health_assets.defs.specs import ONLY_STALE_TAG
from health_assets.defs.unfinished_runs import unfinished_runs
from health_assets.defs.write_lock.run_owners import end_runs_of_the_dead, end_runs_that_never_registered
from health_assets.defs.write_lock.write_lock import WriteLock
from health_assets.logs.stores import is_among, require_root
from health_assets.pipeline.first_hour import EARLIEST, earlier_hours
from health_assets.pipeline.hour_arithmetic import newest_finished_hour
from health_assets.pipeline.log_files import known_files
from health_assets.pipeline.log_ingestion import TooMuchToLoadError, load_new_logs
from health_assets.pipeline.publishing import has_unpublished
from health_assets.pipeline.resource import Pipeline
from health_assets.quality.check_names import MOST_REJECTED_SHARE
from health_assets.systems.declared_assets import DERIVED, SYSTEMS
from health_assets.systems.due_hours import DueRun, first_late_hour, late_hours
from health_assets.systems.formula_versions import older_results
from health_assets.warehouse.file_ledger import FileLedger, LostLines
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.location import is_spark, published_folder
from health_assets.warehouse.partition_states import SCORED_ASSET, PartitionStates
from health_assets.warehouse.session import Session

INTERVAL_S = 60
LOCK_TIMEOUT_S = 10.0
MOST_BYTES = 64 << 20
"""Most of the logs that a tick loads itself, since Dagster gives it 60 s; more is loaded by a run."""
LOSSES_TOLD = 3


def late_logs_sensor(
    job_name: str,
    settings: Settings,
    offered_from: datetime = EARLIEST,
    naming: Naming = STANDALONE,
    tables: Collection[str] = DERIVED.keys(),
) -> dg.SensorDefinition:
    """Load new and changed files, and request the hours that they touch and every later hour that depends on them.

    The state is in the warehouse: hours are requested for as long as their tables disagree with the tables that they
    are made from, so nothing is lost when a run fails. Hours of any run of the job that is under way are left to it,
    and the same disagreement is requested once an hour at most. What older versions of the formulas made is requested
    by system, the newest hours first and so many at a time. If nothing else is due, hours that are not
    published are, once an hour at most.

    Args:
        job_name: the job that materializes hours.
        settings: where logs and warehouse are, and the first hour that is looked after.
        offered_from: the first hour that Dagster's pages offered when the definitions were loaded.
        naming: the name of the sensor, and the keys of its assets.
        tables: the assets of the job.
    """
    first_hour = settings.first_hour or EARLIEST

    @dg.sensor(
        name=naming.name("late_logs"),
        required_resource_keys={naming.resource},
        job_name=job_name,
        description="Re-materializes the hours that new and changed logs touch, and those that depend on them.",
        minimum_interval_seconds=INTERVAL_S,
        default_status=default_sensor_status(settings, naming),
    )
    def _late_logs(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        pipeline = naming.pipeline(context).waiting_at_most(LOCK_TIMEOUT_S)
        if _has_instance(context):
            end_runs_of_the_dead(context.instance)  # else what is in the queue behind them would wait for ever
            end_runs_that_never_registered(context.instance, _registering(context, naming), time.time())
        unfinished = unfinished_runs(context.instance, job_name) if _has_instance(context) else []
        if any(ONLY_STALE_TAG in run.tags for run in unfinished):
            return dg.SkipReason("a run for late logs is under way")
        under_way = {hour for run in unfinished for hour in hours_of_tags(run.tags) or ()}
        now = pipeline.clock()
        # the hour that is still the schedule's is not late
        newest = newest_finished_hour(now, timedelta(minutes=settings.schedule_minute + 1))
        try:
            require_root(pipeline.raw_root)
            with pipeline.read() as session:
                last = PartitionStates(session).newest(SCORED_ASSET, now)
            if last is None or last < first_hour:
                return dg.SkipReason(NOTHING_YET)
            requests = _loaded(context, pipeline, newest)
            with pipeline.read() as session:
                late = late_hours(session, settings, newest, now, under_way, tables)
                last_assets = [PUBLISHED_TABLES] if published_folder(settings) else []
                requests += [_request(now, one, last_assets, naming) for one in late]
                if not (requests or unfinished):
                    requests = _publish_request(session, settings, now, newest, naming)
                if requests:
                    return dg.SensorResult(requests)
                not_offered = 0 if settings.first_hour else earlier_hours(session, offered_from)
                said = _agreement(session, settings, newest, now) + _left_to_runs(under_way)
                return dg.SkipReason(said + _hint(not_offered))
        except NoRawRootError as error:
            return dg.SkipReason(str(error))
        except NoWarehouseError:
            return dg.SkipReason(NOTHING_YET)
        except WarehouseBusyError as error:
            return dg.SkipReason(f"{error}; the next tick looks again")

    return _late_logs


def _loaded(context: dg.SensorEvaluationContext, pipeline: Pipeline, newest: datetime) -> list[dg.RunRequest]:
    """Load what is new; where it is too much for a tick, request a run of the newest hour, once an hour at most."""
    try:
        with _write_lock(context, pipeline) as own:
            loaded = load_new_logs(own, most_bytes=-1 if is_spark(pipeline.settings.warehouse) else MOST_BYTES)
    except TooMuchToLoadError as error:
        context.log.info(f"{error}, by a run of the newest hour")
        hours = HourRange.of(newest)
        return [dg.RunRequest(run_key=f"{hours} logs", tags={**hours_tags(hours), ONLY_STALE_TAG: "true"})]
    for log in loaded.many_rejected(MOST_REJECTED_SHARE) if loaded else ():
        context.log.warning(log)
    return []


@contextmanager
def _write_lock(context: dg.SensorEvaluationContext, pipeline: Pipeline) -> Iterator[Pipeline]:
    """The pipeline with the write lock between two runs, which does not wait long."""
    if not _has_instance(context):
        yield pipeline
        return
    with WriteLock(context.instance, pipeline.settings, str(uuid4()), "the sensor late_logs") as write_lock:
        yield replace(pipeline, write_lock=write_lock)


def _request(now: datetime, due: DueRun, last_assets: Sequence[str], naming: Naming) -> dg.RunRequest:
    """A run of some hours, of all assets or of some systems', for the same cause once an hour at most."""
    assets = [asset.name for system in due.systems for asset in SYSTEMS[system]]
    assets += last_assets if assets else []
    return dg.RunRequest(
        run_key=f"{floor_hour(now):{KEY_FORMAT}} {due.hours} {due.dedup_key}",
        tags={**hours_tags(due.hours), ONLY_STALE_TAG: "true"},
        asset_selection=naming.keys(assets) or None,
    )


def _publish_request(
    session: Session, settings: Settings, now: datetime, newest: datetime, naming: Naming
) -> list[dg.RunRequest]:
    """A run of `published_tables` alone, where a failed run, or one of other assets alone, left hours unpublished."""
    folder = published_folder(settings)
    if folder is None or not has_unpublished(session, folder):
        return []
    return [
        dg.RunRequest(
            run_key=f"{floor_hour(now):{KEY_FORMAT}} publish",
            tags={**hours_tags(HourRange.of(newest)), ONLY_STALE_TAG: "true"},
            asset_selection=naming.keys([PUBLISHED_TABLES]),
        )
    ]


def _agreement(session: Session, settings: Settings, newest: datetime, now: datetime) -> str:
    """Say with how many logs the tables agree, and what is not as it should be."""
    first_hour = settings.first_hour or EARLIEST
    start = first_late_hour(session, settings, first_hour, now)
    left_out = Ledger(session).late_before(start) if start > first_hour else []
    unreadable = Ledger(session).unreadable()
    there = [name for name, file in known_files(session, settings, now).items() if file.gone_at is None]
    said = f"the tables agree with all {sum(not is_among(unreadable, name) for name in there)} raw logs"
    if left_out:
        said += f", besides {len(left_out)} hours that retention dropped"
    if unreadable:
        said += f"; {len(unreadable)} cannot be read: {'; '.join(unreadable.values())}"
    said += _what_is_lost(FileLedger(session).lost(HourRange(newest - settings.reach_hours * HOUR, EVER.end)))
    known = HourRange(first_hour, (PartitionStates(session).newest(SCORED_ASSET, now) or first_hour) + HOUR)
    return said + "".join(f"; {results}" for results in older_results(session, known, settings))


def _what_is_lost(lost: Sequence[LostLines]) -> str:
    """Say which logs were gone too early, and how many of their lines are lost."""
    more = f"; and of {counted(len(lost) - LOSSES_TOLD, 'more log')}" if len(lost) > LOSSES_TOLD else ""
    return "".join(f"; {log}" for log in lost[:LOSSES_TOLD]) + more


def _left_to_runs(under_way: Collection[datetime]) -> str:
    """Say how many hours are not looked at, since runs are under way that make them."""
    return f"; {counted(len(under_way), 'hour is', 'hours are')} left to runs that are under way" if under_way else ""


def _hint(not_offered: int) -> str:
    """Say how to see hours with events from before the first one that the pages offer."""
    if not not_offered:
        return ""
    hours = counted(not_offered, "hour has events", "hours have events")
    return (
        f"; before the first hour that the pages offer, {hours}: "
        "reload the code location, or set HEALTH_FIRST_HOUR where months lie between"
    )


def _has_instance(context: dg.SensorEvaluationContext) -> bool:
    """Whether there is an instance to ask; a tick that is evaluated by hand may have none."""
    try:
        context.instance  # noqa: B018  # the only documented way to ask
    except dg.DagsterInvariantViolationError:
        return False
    return True


def _registering(context: dg.SensorEvaluationContext, naming: Naming) -> Callable[[dg.DagsterRun], bool]:
    """Tell runs that register: those of jobs that need our resource."""
    repository = context.repository_def

    def is_ours(run: dg.DagsterRun) -> bool:
        if repository is None or not repository.has_job(run.job_name):
            return False
        return naming.resource in repository.get_job(run.job_name).get_required_resource_defs()

    return is_ours
