"""Find the hours that are due, from the state of the tables: missed, running, late, or of an older formula.

Loading logs is `pipeline.log_ingestion`'s; hours that a user names are `pipeline.partition_selection`'s.
"""

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from health_assets.core.digests import digest_of
from health_assets.core.hours import HOUR, HourGroups, HourRange, contiguous, floor_hour
from health_assets.core.settings import Settings
from health_assets.logs.limits import Limits
from health_assets.logs.stores import is_among
from health_assets.pipeline.fingerprints import RECORDS, upstream
from health_assets.pipeline.first_hour import EARLIEST
from health_assets.pipeline.hour_arithmetic import catch_up, late_ranges, newest_finished_hour
from health_assets.systems.declared_assets import DERIVED, SYSTEMS
from health_assets.systems.formula_versions import OlderResults, newest_first, older_results
from health_assets.systems.stale_partitions import (
    Statuses,
    missing_systems,
    stale_by_own_hour,
    stale_hours,
    stale_statuses,
)
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.fingerprints import Fingerprints
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.partition_states import SCORED_ASSET, PartitionStates
from health_assets.warehouse.session import Session

ALL_SYSTEMS: tuple[str, ...] = ()
"""As the systems of a run: every one."""
LIVE_SYSTEMS = frozenset({"agent_health_model", "agent_now", "explanations", "agent_health_state", "error_budget"})
"""The systems of which the running hour is made anew whenever logs have news of it; of the others less often."""
_MADE_BY_RUNS = (*RECORDS, *(name for name, asset in DERIVED.items() if not asset.is_external))
"""Assets whose hours a run makes."""


@dataclass(frozen=True, kw_only=True)
class DueRun:
    """Hours to make together.

    Args:
        hours: the hours.
        systems: the scoring systems; all where none is named.
        only_stale: whether components that are up to date are left alone and new targets not applied; scores
            are made in any case.
        is_checked: whether the suites of the assets are evaluated.
        dedup_key: part of the key by which a sensor asks for the run once: a digest of what the tables hold of these
            hours, or the formula that is older.
    """

    hours: HourGroups
    systems: tuple[str, ...] = ()
    only_stale: bool = True
    is_checked: bool = True
    dedup_key: str = field(default="", compare=False)


def due_hours(session: Session, settings: Settings, now: datetime) -> list[DueRun]:
    """Missed hours first, then late ones, then hours of older formulas; none before the first hour was made.

    An hour is missed once it has been over for `settings.schedule_minute` minutes. Hours that fail a check of severity
    `error` are made apart from the others, which a failing run would leave undone.

    Args:
        session: a session, once the logs are loaded.
        settings: how far hours look back, and the first hour that is looked after.
        now: the time, aware.
    """
    materialized = PartitionStates(session)
    newest = newest_finished_hour(now, timedelta(minutes=settings.schedule_minute))
    first = materialized.first(SCORED_ASSET)
    if first is None or newest < first:
        return []
    due = []
    if newest not in materialized.of(SCORED_ASSET, HourRange.of(newest)):
        missed = missed_hours(session, settings, newest)
        due = [DueRun(hours=HourGroups((hours,)), only_stale=False) for hours in missed]
    return due + late_hours(session, settings, newest, now, {hour for one in due for hour in one.hours})


def running_hour_due(session: Session, settings: Settings, now: datetime) -> DueRun | None:
    """The running hour, if anything is loaded that its scores lack; None otherwise.

    The systems of the run are `LIVE_SYSTEMS`, or all once the others are `settings.running_hour_refresh_s` old. Checks,
    too, are evaluated with all systems, unless one of severity `error` fails: then nothing is made unchecked.

    Args:
        session: a session, once the logs are loaded.
        settings: how far hours look back, and how old scores may be.
        now: the time, aware.
    """
    hour = HourRange.of(floor_hour(now))
    everything = DueRun(hours=HourGroups((hour,)))
    if not PartitionStates(session).of(SCORED_ASSET, hour):
        return everything if _has_news(session, hour) else None
    refresh_at = _refresh_at(session, settings, hour)
    if refresh_at is not None and refresh_at <= now:
        return everything
    if not _is_stale(session, SCORED_ASSET, hour, settings):
        return None
    live = tuple(system for system in SYSTEMS if system in LIVE_SYSTEMS)
    return replace(everything, systems=live, is_checked=bool(_failing(session, hour)))


def _refresh_at(session: Session, settings: Settings, hour: HourRange) -> datetime | None:
    """The time at which the systems that are not live are due of the running hour; None if nothing changed for them.

    None, too, where the hour was never scored.
    """
    made_at = PartitionStates(session).made_at(hour).get(hour.start, {})
    if SCORED_ASSET not in made_at:
        return None
    others = [asset for system, own in SYSTEMS.items() if system not in LIVE_SYSTEMS for asset in own]
    assets = {asset.name for asset in others if not asset.is_external and not asset.is_component}
    made = {name: at for name, at in made_at.items() if name in assets}
    if not made:
        return hour.start if assets and _is_stale(session, SCORED_ASSET, hour, settings) else None
    newest = max(made, key=made.__getitem__)
    if not _is_stale(session, newest, hour, settings):
        return None
    return made[newest] + timedelta(seconds=settings.running_hour_refresh_s)


def _is_stale(session: Session, asset: str, hour: HourRange, settings: Settings) -> bool:
    """Whether records changed that an hour of an asset can follow from."""
    statuses = PartitionStates(session).statuses(asset, RECORDS, hour, reach_hours=settings.reach_hours)
    return hour.start in statuses and statuses[hour.start].is_stale


def _has_news(session: Session, hour: HourRange) -> bool:
    """Whether records of an hour are loaded that was never scored."""
    waiting = Ledger(session).not_materialized(SCORED_ASSET)
    return any(file_slice.hour in hour and file_slice.record_type != "rejected" for file_slice in waiting)


def next_due_at(session: Session, settings: Settings, now: datetime) -> datetime:
    """The time at which the clock alone may make hours due.

    Then an hour begins, one is over for long enough, the running hour is due with all systems, or an event of a log is
    no longer in the future.
    """
    grace = timedelta(minutes=settings.schedule_minute)
    refresh_at = _refresh_at(session, settings, HourRange.of(floor_hour(now))) if settings.running_hour else None
    moments = [floor_hour(now) + HOUR, newest_finished_hour(now, grace) + 2 * HOUR + grace]
    event_at = FileLedger(session).next_event_at(Limits.of(settings, now).until)
    if event_at is not None:
        moments.append(event_at - timedelta(seconds=settings.clock_skew_s))
    return min(moments) if refresh_at is None else min(refresh_at, *moments)


def late_hours(
    session: Session,
    settings: Settings,
    newest: datetime,
    now: datetime,
    under_way: Collection[datetime] = (),
    tables: Collection[str] = DERIVED.keys(),
) -> list[DueRun]:
    """Hours that are late or of older formulas.

    Args:
        session: a session, once the logs are loaded and an hour was made.
        settings: how far hours look back, and the first hour that is looked after.
        newest: the newest hour that may be late.
        now: the time, aware.
        under_way: hours that another run makes, and that are left to it.
        tables: the assets that runs can make.
    """
    systems = [
        system
        for system, assets in SYSTEMS.items()
        if all(asset.name in tables for asset in assets if not asset.is_external)
    ]
    last = PartitionStates(session).newest(SCORED_ASSET, now) or newest
    known = HourRange(min(settings.first_hour or EARLIEST, last), last + HOUR)
    start = first_late_hour(session, settings, known.start, now)
    span = HourRange(min(start, newest + HOUR), newest + HOUR)
    older = [results for results in older_results(session, known, settings) if results.system in systems]
    missing = _missing(session, settings, span, systems)
    whole = missing.pop(ALL_SYSTEMS, set())
    of_some = set().union(*missing.values())
    statuses = stale_statuses(session, known, settings, tables)
    late = _late(session, settings, known, span, older, of_some, statuses) | whole
    made = {*under_way, *late}
    due = _runs(session, [late - set(under_way)], ALL_SYSTEMS)
    for lacking, some in missing.items():
        due += _runs(session, newest_first(some - made), lacking)
    for results in older:
        dedup_key = f"{results.system} {results.version} {len(results.due)}"
        due += _runs(session, results.newest(made), (results.system,), dedup_key)
    return due


def _runs(
    session: Session, groups: Iterable[Iterable[datetime]], systems: tuple[str, ...], dedup_key: str = ""
) -> list[DueRun]:
    """The runs of some groups of hours, with one key or each with that of its hours."""
    return [
        DueRun(hours=HourGroups((hours,)), systems=systems, dedup_key=dedup_key or _state_digest(session, hours))
        for group in groups
        for hours in _apart(session, set(group))
    ]


def _missing(
    session: Session, settings: Settings, hours: HourRange, systems: Collection[str]
) -> dict[tuple[str, ...], set[datetime]]:
    """By scoring systems among some, the hours of which they never made an asset; they are made together.

    Where a check of an asset failed that they are made from, its system is among them: it is judged again before
    anything is made from it. Systems alone cannot be made of hours that look back on what retention dropped.
    """
    lacking = missing_systems(session, hours, systems)
    if not lacking:
        return {}
    failed = Fingerprints(session).failed_checks([*RECORDS, *DERIVED], HourRange(min(lacking), max(lacking) + HOUR))
    system_of = {asset.name: system for system, assets in SYSTEMS.items() for asset in assets}
    sources = {
        system: set().union(*(upstream(asset.name, DERIVED) for asset in assets)) for system, assets in SYSTEMS.items()
    }
    dropped_until = PartitionStates(session).dropped_until()
    alone_from = hours.start if dropped_until is None else dropped_until + 2 * (settings.reach_hours - 1) * HOUR
    found: dict[tuple[str, ...], set[datetime]] = {}
    for hour, own in lacking.items():
        failing = {check.asset for check in failed if check.is_error and hour in check.hours}
        judged = failing & set().union(*(sources[system] for system in own))
        together = own | {system_of[asset] for asset in judged if asset in system_of}
        is_whole = hour < alone_from or not judged.isdisjoint(RECORDS) or len(together) == len(SYSTEMS)
        names = ALL_SYSTEMS if is_whole else tuple(name for name in SYSTEMS if name in together)
        found.setdefault(names, set()).add(hour)
    return found


def _state_digest(session: Session, hours: HourRange) -> str:
    return digest_of(sorted(Fingerprints(session).of_assets([*RECORDS, *DERIVED], hours).items()))[:16]


def missed_hours(session: Session, settings: Settings, newest: datetime) -> list[HourRange]:
    """The newest hour and the earlier hours of its look-back that runs missed; none before the first hour of all.

    Hours that fail a check of severity `error` are left out, which `late_hours` has: the newest would wait for them.
    """
    span = HourRange.of(newest).extended_back(settings.reach_hours - 1)
    materialized = PartitionStates(session)
    failing = _failing(session, span) - {newest}
    done = materialized.of(SCORED_ASSET, span) | failing
    due = catch_up(newest, done, materialized.first(SCORED_ASSET), settings.reach_hours)
    return contiguous({hour for hour in due if hour >= (settings.first_hour or hour)} - failing)


def _failing(session: Session, hours: HourRange) -> set[datetime]:
    """The hours among these that fail a check of severity `error`."""
    failed = Fingerprints(session).failed_checks([*RECORDS, *DERIVED], hours)
    return {hour for check in failed if check.is_error for hour in check.hours}


def _apart(session: Session, hours: Collection[datetime]) -> list[HourRange]:
    """Ranges of these hours: first hours whose checks pass, then hours that fail a check of severity `error`.

    A failing hour stops its run, so hours in the same run would never be made.
    """
    if not hours:
        return []
    failing = _failing(session, HourRange(min(hours), max(hours) + HOUR))
    return [*contiguous(set(hours) - failing), *contiguous(failing.intersection(hours))]


def first_late_hour(session: Session, settings: Settings, first: datetime, now: datetime) -> datetime:
    """The first hour that late lines are asked for: for them alone, nothing that retention dropped comes back."""
    kept_from = filter(None, (PartitionStates(session).dropped_until(), settings.horizon(now)))
    return max([first, *kept_from])


def _late(
    session: Session,
    settings: Settings,
    known: HourRange,
    span: HourRange,
    older: list[OlderResults],
    of_some: AbstractSet[datetime],
    statuses: Statuses,
) -> set[datetime]:
    """Hours with changed or never scored records, hours with changed components, and all that depend on them.

    Hours that some systems lack, `of_some`, are late only where they changed.
    """
    ledger, newest = Ledger(session), span.end - HOUR
    unreadable = ledger.unreadable()
    waiting = [file_slice for file_slice in ledger.not_loaded() if not is_among(unreadable, file_slice.source_file)]
    new = [file_slice for file_slice in [*waiting, *ledger.not_materialized("raw_logs")] if file_slice.hour in span]
    touched = {file_slice.hour for file_slice in new if file_slice.record_type != "rejected"}
    # hours that a run looked back on, and those of a run that died, have raw logs and no score
    unscored = {file_slice.hour for file_slice in ledger.not_materialized(SCORED_ASSET) if file_slice.hour in span}
    alone = {file_slice.hour for file_slice in new} | unscored - of_some
    components, scores = stale_hours(statuses, older)
    touched |= stale_by_own_hour(statuses)
    until = min(max({known.end - HOUR, *touched, *alone}), newest) + HOUR
    alone |= PartitionStates(session).not_final(_MADE_BY_RUNS, span)
    # no score follows from rejected lines, but a run checks them
    checked = PartitionStates(session).statuses(SCORED_ASSET, ["rejected_records"], span)
    alone |= scores | {hour for hour, status in checked.items() if status.is_materialized and status.is_stale}
    depending = {hour for hours in late_ranges(touched, settings.reach_hours, until) for hour in hours}
    ranges = late_ranges(touched | components - depending, settings.reach_hours, until, only_themselves=alone)
    return {hour for hours in ranges for hour in hours}
