"""Select the hours of a command: the ones that it names, else all hours with events.

What belongs here: reading names of hours, refusing those that have not begun, leaving out holes in which nothing
happened. What does not: what is shown of it (`cli`) and arithmetic on sets of hours (`hour_arithmetic`).

The running hour is not over, so its events are not all there yet. It is chosen where the logs hold no event of an
hour that is over, as it is so far; otherwise only when it is named.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime

from health_assets.core.errors import HealthAssetsError, NoWarehouseError
from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, HourGroups, HourRange, contiguous, floor_hour, parse_hour
from health_assets.core.raw_roots import shown
from health_assets.core.settings import Settings
from health_assets.core.systems import parts
from health_assets.core.targets import load_targets
from health_assets.logs.formats.format_settings import FormatSettings
from health_assets.logs.limits import Limits
from health_assets.logs.stores import NAMES_THAT_COUNT, list_files
from health_assets.pipeline.files_without_events import sentences_about
from health_assets.pipeline.hour_arithmetic import late_ranges, newest_finished_hour
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.log_ingestion import load_new_logs
from health_assets.pipeline.resource import Pipeline
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.log_coverage import CoveredHours, LogCoverage
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse


@dataclass(frozen=True)
class PartitionSelection:
    """The hours of a run, and what is to be said of the choice.

    Args:
        hours: the hours.
        notices: sentences about the choice.
        loaded: report of the logs that were loaded to find them out, where any were.
    """

    hours: HourGroups
    notices: tuple[str, ...] = ()
    loaded: IngestReport | None = None


def select_hours(
    pipeline: Pipeline, first: str | None, end: str | None, *, full_refresh: bool = False
) -> PartitionSelection:
    """The hours from `first` to `end`; where one is missing, those of the logs, of which new ones are loaded for it.

    Args:
        pipeline: where logs, targets and warehouse are.
        first: the first hour, as it was named.
        end: the hour to stop before, as it was named.
        full_refresh: whether every log is read for it.

    Raises:
        HealthAssetsError: a name is no hour, or one that has not begun; the range is empty; the warehouse was filled
            from another raw root; the logs hold no event of an hour that has begun, or cannot be loaded.
    """
    settings, now = pipeline.settings, pipeline.clock()
    start, stop = (first and parse_hour(first)) or None, (end and parse_hour(end)) or None
    _refuse_future(start, stop, now)
    if start and stop and stop <= start:
        raise HealthAssetsError(f"--to ({end}) must be after --from ({first})")
    _refuse_another_root(settings)
    if start and stop:
        return PartitionSelection(HourGroups((HourRange(start, stop),)))
    loaded = load_new_logs(pipeline, lambda session: _covered_hours(session, settings, now), full_refresh=full_refresh)
    try:
        with pipeline.read() as session:
            held, scored = _covered_hours(session, settings, now), PartitionStates(session).of_any(_scores())
    except NoWarehouseError:
        raise _without_events(settings, CoveredHours(set(), set(), set()), {}, now) from None
    return replace(_of_logs(settings, held, scored, start, stop, now), loaded=loaded)


def _refuse_future(start: datetime | None, stop: datetime | None, now: datetime) -> None:
    running = floor_hour(now)
    if start is not None and start > running:
        raise HealthAssetsError(
            f"--from {start:%Y-%m-%dT%H} has not begun yet; "
            f"the newest hour that is over is {running - HOUR:%Y-%m-%dT%H}"
        )
    if stop is not None and stop > running + HOUR:
        raise HealthAssetsError(
            f"--to {stop:%Y-%m-%dT%H} asks for hours that have not begun yet; --to {running:%Y-%m-%dT%H} ends with the "
            f"newest hour that is over, --to {running + HOUR:%Y-%m-%dT%H} with the one that runs"
        )


def _refuse_another_root(settings: Settings) -> None:
    """Refuse the logs of another raw root before anything is made of them; the run itself would, too, but as a failure.

    Raises:
        HealthAssetsError: the warehouse was filled from another.
    """
    warehouse = Warehouse.of(settings)
    try:
        with warehouse.read() as session:
            is_known = Ledger(session).knows_root(settings.raw)
        if not is_known:
            files = list_files(settings.raw, {})  # with the warehouse closed, since stores take their time
            with warehouse.read() as session:
                Ledger(session).refuse_another_root(settings.raw, files)
    except NoWarehouseError:
        return


def _covered_hours(session: Session, settings: Settings, now: datetime) -> CoveredHours:
    """The hours of the logs that were loaded.

    Raises:
        HealthAssetsError: no log holds an event.
    """
    held = LogCoverage(session).covered_hours()
    if not held.events:
        raise _without_events(settings, held, Ledger(session).unreadable(), now)
    return held


def _without_events(
    settings: Settings, held: CoveredHours, unreadable: Mapping[str, str], now: datetime
) -> HealthAssetsError:
    """Say why no hour has an event."""
    unreadable = {**unreadable}
    files, root = list_files(settings.raw, unreadable, format_settings=FormatSettings.of(settings)), shown(settings.raw)
    if not files and unreadable:
        return HealthAssetsError(f"no raw log below {root} can be read: {'; '.join(unreadable.values())}")
    if not files:
        return HealthAssetsError(f"no raw log lies below {root}; {NAMES_THAT_COUNT}")
    logs = "the raw log" if len(files) == 1 else f"the {len(files):,} raw logs"
    why = "; ".join(unreadable.values())
    if held.rejected:
        why = ". ".join(sentences_about(files, load_targets(settings.targets), Limits.of(settings, now)))
    return HealthAssetsError(f"there is no event in {logs} below {root}; {why or 'they hold no line'}")


def _scores() -> list[str]:
    """Assets whose hours are filled again, since their rows may follow from others that come before."""
    return [asset.name for module in parts("assets").values() for asset in module.ASSETS if not asset.is_component]


def _of_logs(
    settings: Settings,
    held: CoveredHours,
    scored: Set[datetime],
    start: datetime | None,
    stop: datetime | None,
    now: datetime,
) -> PartitionSelection:
    over = newest_finished_hour(now) + HOUR
    of_logs = HourRange(min(held.events), max(held.events) + HOUR)
    notices = [f"the logs in {shown(settings.raw)} hold events of {of_logs}"]
    first, end = start or of_logs.start, stop or min(of_logs.end, over)
    if stop is None and of_logs.end > over:
        later = sorted(hour for hour in held.events if hour >= over)
        if first >= over:
            if over not in held.events:
                raise HealthAssetsError(_nothing_has_begun(of_logs, over, start))
            notices.append(f"no hour of them is over, so {over:%Y-%m-%dT%H} is shown as it is so far")
            return PartitionSelection(HourGroups((HourRange.of(over),)), tuple(notices))
        notices.append(_later(later))
    if end <= first:
        raise HealthAssetsError(
            f"--to ({stop or of_logs.end:%Y-%m-%dT%H}) must be after --from ({first:%Y-%m-%dT%H}); {notices[0]}"
        )
    asked = HourRange(first, end)
    hours = worth_materializing(held, scored, asked, settings.reach_hours)
    if left_out := len(asked) - len(hours):
        those = f"these {len(asked):,} hours" if asked == of_logs else f"the hours of {asked}"
        notices.append(
            f"{left_out:,} of {those} are left out: no event lies in them nor in the {settings.reach_hours:,} h "
            "before, so nothing is known of any agent there"
        )
    return PartitionSelection(hours, tuple(notices))


def _later(later: list[datetime]) -> str:
    hours = contiguous(later)
    if len(later) == 1:
        return f"they hold events of {later[0]:%Y-%m-%dT%H} too, which is not over and left for later"
    first, last = f"{hours[0].start:%Y-%m-%dT%H}", f"{hours[-1].end - HOUR:%Y-%m-%dT%H}"
    several = counted(len(later), "hour")
    return f"they hold events of {several} from {first} to {last} too, which are not over and left for later"


def _nothing_has_begun(of_logs: HourRange, running: datetime, start: datetime | None) -> str:
    if start is None:
        return f"the logs hold events of {of_logs} alone, which has not begun; is a clock wrong?"
    return f"the logs hold no event of {start:%Y-%m-%dT%H} nor later, and {running:%Y-%m-%dT%H} is not over"


def worth_materializing(held: CoveredHours, scored: Set[datetime], span: HourRange, reach_hours: int) -> HourGroups:
    """The hours of a range that hold something, that depend on such hours, or that have scores already.

    A hole that is shorter than the reach stays: the hours before the next event are looked back on anyway.

    Args:
        held: hours that the logs hold something of.
        scored: hours that have scores.
        span: the range.
        reach_hours: how far results look back.
    """
    alone = {hour for hour in held.rejected | held.loaded | scored if hour in span}
    ranges = late_ranges(set(held.events), reach_hours, span.end, only_themselves=alone)
    inside = [own for own in (own.intersection(span) for own in ranges) if len(own)]
    if not inside:
        return HourGroups((span,))
    filled = [inside[0]]
    for own in inside[1:]:
        if own.start - filled[-1].end < reach_hours * HOUR:
            filled[-1] = HourRange(filled[-1].start, own.end)
        else:
            filled.append(own)
    return HourGroups(tuple(filled))
