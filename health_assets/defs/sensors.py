"""The late-log sensor: what came after its hour was materialized changes exactly the hours that depend on it."""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import dagster as dg

from health_assets.core.errors import NoRawRootError, NoWarehouseError, WarehouseBusyError
from health_assets.core.hours import EVER, HOUR, KEY_FORMAT, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.core.wording import counted
from health_assets.defs.partitions import hours_tags
from health_assets.defs.placement import ALONE, Placement
from health_assets.defs.remembering import keep, recalled
from health_assets.defs.schedules import NOTHING_YET, default_sensor_status
from health_assets.defs.specs import ONLY_STALE_TAG
from health_assets.defs.turns.run_owners import end_runs_of_the_dead, end_runs_that_never_claimed
from health_assets.logs.files import list_files
from health_assets.logs.late_memory import LateMemory
from health_assets.logs.limits import Limits
from health_assets.logs.recognition import recognize
from health_assets.logs.stores import Faults, is_among
from health_assets.pipeline.derived import Derived
from health_assets.pipeline.file_counts import CountFiles, counting_of
from health_assets.pipeline.first_hour import EARLIEST, earlier_hours
from health_assets.pipeline.late_logs import Unread, compared, late_parts
from health_assets.pipeline.planning import late_ranges, newest_finished_hour
from health_assets.schema.catalog import SCHEMA_VERSION
from health_assets.systems.declared_assets import SYSTEMS
from health_assets.systems.due_hours import SCORED, first_late_hour
from health_assets.systems.formula_versions import older_results
from health_assets.systems.staleness import stale_hours
from health_assets.warehouse.file_ledger import FileLedger, LostLines
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.materialized import MaterializedHours

INTERVAL_S = 60
LOCK_TIMEOUT_S = 10.0
BYTES_PER_TICK = 256 << 20
LOSSES_TOLD = 3
UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def late_logs_sensor(
    job_name: str, settings: Settings, offered_from: datetime = EARLIEST, placement: Placement = ALONE
) -> dg.SensorDefinition:
    """Find new and changed files, and request the hours that they touch and every later hour that depends on them.

    The state is in the warehouse: hours are requested for as long as their tables disagree with the logs or with the
    tables that they are made from, so nothing is lost when a run fails. What is under way is not requested again, and
    the same disagreement once an hour at most. What older versions of the formulas made is requested by system, the
    newest hours first and so many at a time. What a tick found in files is remembered (`remembering`), since a tick
    reads no more than so many bytes; without that, the next one looks again.

    Args:
        job_name: the job that materializes hours.
        settings: where logs and warehouse are, and the first hour that is looked after.
        offered_from: the first hour that Dagster's pages offered when the definitions were loaded.
        placement: the name of the sensor.
    """
    first_hour = settings.first_hour or EARLIEST

    @dg.sensor(
        name=placement.name("late_logs"),
        required_resource_keys={placement.resource},
        job_name=job_name,
        description="Re-materializes the hours that new and changed logs touch, and those that depend on them.",
        minimum_interval_seconds=INTERVAL_S,
        default_status=default_sensor_status(settings, placement),
    )
    def _late_logs(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        pipeline = placement.pipeline(context)
        if _has_instance(context):
            end_runs_of_the_dead(context.instance)  # else what is in the queue behind them would wait for ever
            end_runs_that_never_claimed(context.instance, _claiming(context, placement), time.time())
        if _is_under_way(context, job_name):
            return dg.SkipReason("a run for late logs is under way")
        now = pipeline.clock()
        # the hour that is still the schedule's is not late
        newest = newest_finished_hour(now, timedelta(minutes=settings.schedule_minute + 1))
        # of later hours none is requested
        limits = replace(pipeline.limits, until=min(newest + HOUR, pipeline.limits.until))
        instance = context.instance if _has_instance(context) else None
        kept = recalled(instance, pipeline.raw_root, context.cursor)
        memory = LateMemory.load(kept, limits, BYTES_PER_TICK, SCHEMA_VERSION)
        unreadable: Faults = {}
        try:
            files = list_files(pipeline.raw_root, unreadable)
            with pipeline.open(LOCK_TIMEOUT_S).read() as session:
                last = MaterializedHours(session).newest(SCORED, now)
                if last is None or last < first_hour:
                    return dg.SkipReason(NOTHING_YET)
                known = FileLedger(session).known(limits.until)
                known_hours = HourRange(first_hour, last + HOUR)
                older = older_results(session, known_hours, settings)
                stale_components, stale_scores = stale_hours(session, known_hours, settings, older)
                start = first_late_hour(session, settings, first_hour, now)
                left_out = Ledger(session).late_before(start) if start > first_hour else []
                lost = FileLedger(session).lost(HourRange(newest - settings.reach_hours * HOUR, EVER.end))
                not_offered = 0 if settings.first_hour else earlier_hours(session, offered_from)
            # files are looked into while nobody has to wait for the warehouse
            recognized = recognize(
                known, files, unreadable,
                unpacking=limits.unpacking, trusted=settings.trust, memory=memory,
            )  # fmt: skip
            with pipeline.open(LOCK_TIMEOUT_S).read() as session:
                is_as_it_was = FileLedger(session).known(limits.until) == known
                found = compared(session, recognized, unreadable)
        except NoRawRootError as error:
            return dg.SkipReason(str(error))
        except NoWarehouseError:
            return dg.SkipReason(NOTHING_YET)
        except WarehouseBusyError as error:
            return dg.SkipReason(f"{error}; the next tick looks again")
        if not is_as_it_was:
            context.update_cursor(keep(instance, pipeline.raw_root, context.cursor, memory.dump()))
            return dg.SkipReason("logs were loaded while this tick looked at them; the next tick looks again")
        span = HourRange(min(start, newest + HOUR), newest + HOUR)
        count = counting_of(pipeline.open(LOCK_TIMEOUT_S))
        touched, only_rejected, state = _touched(found, span, unreadable, limits, memory, count)
        context.update_cursor(keep(instance, pipeline.raw_root, context.cursor, memory.dump()))
        touched |= stale_components
        until = min(max({last, *touched}), newest) + HOUR
        ranges = late_ranges(touched, settings.reach_hours, until, only_themselves=only_rejected | stale_scores)
        of_older_formulas = [
            _request(now, hours, f"{results.system} {results.version} {len(results.due)}", SYSTEMS[results.system])
            for results in older
            for hours in results.newest({hour for own in ranges for hour in own})
        ]
        if not ranges and not of_older_formulas:
            besides = f", besides {len(left_out)} hours that retention dropped" if left_out else ""
            besides += f"; {len(unreadable)} cannot be read: {'; '.join(unreadable.values())}" if unreadable else ""
            besides += _what_is_lost(lost)
            besides += "".join(f"; {results}" for results in older)
            read = sum(not is_among(unreadable, file.source_file) for file in files)
            return dg.SkipReason(f"{_agreement(read, memory)}{besides}{_hint(not_offered)}")
        if memory.put_off:
            context.log.info(memory.put_off)
        digest = hashlib.sha256(f"{state} {sorted(stale_components | stale_scores)}".encode()).hexdigest()[:16]
        return dg.SensorResult([*(_request(now, hours, digest) for hours in ranges), *of_older_formulas])

    return _late_logs


def _request(now: datetime, hours: HourRange, cause: str, assets: Sequence[Derived] = ()) -> dg.RunRequest:
    """A run of some hours, of all assets or of these, for the same cause once an hour at most."""
    return dg.RunRequest(
        run_key=f"{floor_hour(now):{KEY_FORMAT}} {hours} {cause}",
        tags={**hours_tags(hours), ONLY_STALE_TAG: "true"},
        asset_selection=[dg.AssetKey(asset.name) for asset in assets] or None,
    )


def _agreement(logs: int, memory: LateMemory) -> str:
    """Say with how many logs the tables agree, and which logs nobody knows."""
    if not memory.put_off:
        return f"the tables agree with all {logs} raw logs"
    return f"the tables agree with {logs - memory.put_off_count:,} of {logs:,} raw logs; {memory.put_off}"


def _what_is_lost(lost: Sequence[LostLines]) -> str:
    """Say which logs were gone too early, and how many of their lines are lost."""
    more = f"; and of {counted(len(lost) - LOSSES_TOLD, 'more log')}" if len(lost) > LOSSES_TOLD else ""
    return "".join(f"; {log}" for log in lost[:LOSSES_TOLD]) + more


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


def _claiming(context: dg.SensorEvaluationContext, placement: Placement) -> Callable[[dg.DagsterRun], bool]:
    """Tell runs that make a claim: those of jobs that need our resource."""
    repository = context.repository_def

    def is_ours(run: dg.DagsterRun) -> bool:
        if repository is None or not repository.has_job(run.job_name):
            return False
        return placement.resource in repository.get_job(run.job_name).get_required_resource_defs()

    return is_ours


def _is_under_way(context: dg.SensorEvaluationContext, job_name: str) -> bool:
    """Whether a run for late logs has not ended yet."""
    if not _has_instance(context):
        return False
    filters = dg.RunsFilter(job_name=job_name, statuses=UNFINISHED, tags={ONLY_STALE_TAG: "true"})
    return bool(context.instance.get_run_records(filters, limit=1))


def _touched(
    found: Unread, hours: HourRange, unreadable: Faults, limits: Limits, memory: LateMemory, count: CountFiles
) -> tuple[set[datetime], set[datetime], str]:
    """Hours whose events are late, hours with late rejected lines alone, and a fingerprint of both.

    Files that turn out not to be readable are added to `unreadable`; nothing is requested for them.
    """
    parts = late_parts(found, memory, unreadable, limits, count)
    late = {part: lines for part, lines in parts.items() if part.hour in hours}
    touched = {part.hour for part in late if part.record_type != "rejected"}
    only_rejected = {part.hour for part in late} - touched
    # an hour is written out, since a time that was remembered says of itself that it is in another UTC
    state = sorted(
        (part.source_file, part.record_type, part.hour.isoformat(), lines.digest) for part, lines in late.items()
    )
    return touched, only_rejected, str(state)
