"""Stale partitions: hours of assets whose inputs have changed since they were made, and hours that were never made.

What belongs here: reading that off the states of all assets' hours. What does not: one asset's hours
(`pipeline.build_selection`), loading logs (`pipeline.log_ingestion`), and which hours are made of it (`due_hours`).
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from health_assets.core.hours import EVER, HOUR, HourGroups, HourRange, contiguous
from health_assets.core.settings import Settings
from health_assets.pipeline.build_selection import statuses_of
from health_assets.pipeline.fingerprints import upstream
from health_assets.systems.declared_assets import DERIVED, SYSTEMS
from health_assets.systems.formula_versions import OlderResults
from health_assets.warehouse.partition_states import AssetInputs, PartitionStates, PartitionStatus
from health_assets.warehouse.session import Session

Statuses = Mapping[str, Mapping[datetime, PartitionStatus]]
"""By asset and hour, the status."""


def stale_statuses(
    session: Session, hours: HourRange, settings: Settings, tables: Collection[str] = DERIVED.keys()
) -> Statuses:
    """The statuses of those of these hours that are stale, of every computed asset or of those among some tables."""
    by_reach: dict[int, dict[str, AssetInputs]] = {}
    for name, asset in DERIVED.items():
        if name in tables:
            own = AssetInputs(asset.upstream, asset.same_hour_upstream)
            by_reach.setdefault(asset.back_hours(settings), {})[name] = own
    states, found = PartitionStates(session), dict[str, dict[datetime, PartitionStatus]]()
    for reach_hours, inputs in by_reach.items():
        found |= states.statuses_of_each(inputs, hours, reach_hours=reach_hours, only_stale=True)
    return found


def stale_hours(statuses: Statuses, older: Sequence[OlderResults] = ()) -> tuple[set[datetime], set[datetime]]:
    """Stale hours of components, and of scores.

    Hours that an asset never had are `missing_systems`'.

    Args:
        statuses: the statuses of assets, at least of their stale hours.
        older: what older versions of formulas made; scores that are brought up to date for it are left out, and so are
            hours that keep an older version, of all systems, lest what retention dropped comes back for them.
    """
    components, scores = set(), set()
    due = {asset.name: results.due for results in older for asset in SYSTEMS[results.system]}
    for name, own in statuses.items():
        stale = {hour for hour in _made(own) if own[hour].is_stale}
        if DERIVED[name].is_component:
            components |= stale
        else:
            scores |= stale - due.get(name, frozenset())
    return components, scores.difference(*(results.kept for results in older))


def missing_systems(
    session: Session, hours: HourRange, systems: Collection[str] = SYSTEMS.keys()
) -> dict[datetime, set[str]]:
    """By hour, those of some scoring systems of which an asset never had it, of the hours that any score had.

    Runs make scores of the requested hours alone, and components of their look-back, too. An hour that was made without
    rows, or whose rows retention dropped, is not missing.
    """
    system_of = {asset.name: system for system in systems for asset in SYSTEMS[system] if not asset.is_external}
    scores = [name for name in system_of if not DERIVED[name].is_component]
    lacking = PartitionStates(session).never_made(system_of, scores, hours)
    return {hour: {system_of[asset] for asset in assets} for hour, assets in lacking.items()}


def stale_by_own_hour(statuses: Statuses) -> set[datetime]:
    """Materialized hours of components that are stale by inputs of the same hour."""
    return {
        hour
        for name, own in statuses.items()
        if DERIVED[name].is_component
        for hour, status in own.items()
        if status.is_materialized and status.is_stale_by_own_hour
    }


def left_behind(
    session: Session, run: HourRange | HourGroups, systems: Collection[str], settings: Settings, now: datetime
) -> list[HourRange]:
    """Stale hours besides those of a run.

    Args:
        session: a session, after the run.
        run: the hours of the run.
        systems: the scoring systems that it materialized; all where none is named.
        settings: how far each asset looks back.
        now: the time; hours that are not over are left alone.
    """
    hours: set[datetime] = set()
    span = _materialized_span(session, now)
    for name in systems or SYSTEMS:
        for asset in SYSTEMS[name]:
            statuses = statuses_of(session, asset, span, settings)
            hours |= {hour for hour in _made(statuses) if statuses[hour].is_stale}
    return contiguous(hours - set(run))


def outdated_sources(
    session: Session, run: HourRange | HourGroups, systems: Collection[str], settings: Settings
) -> dict[str, list[str]]:
    """By system that a run left out, its tables that the run used although their inputs had changed, or without them.

    Args:
        session: a session, after the run.
        run: the hours of the run.
        systems: the scoring systems that it materialized; all where none is named.
        settings: how far each asset looks back.
    """
    made = {asset.name for system in systems or SYSTEMS for asset in SYSTEMS[system]}
    used = set().union(*(upstream(name, DERIVED) for name in made)) - made
    span = HourRange(run.start, run.end).extended_back(settings.reach_hours - 1)
    asked, found = set(run), dict[str, list[str]]()
    for system, assets in SYSTEMS.items():
        for asset in assets:
            if asset.name not in used:
                continue
            statuses = statuses_of(session, asset, span, settings)
            if any(one.is_stale and (hour in asked or one.is_materialized) for hour, one in statuses.items()):
                found.setdefault(system, []).append(asset.name)
    return found


def _made(statuses: Mapping[datetime, PartitionStatus]) -> set[datetime]:
    """The hours that were made, also those that retention dropped: scores are made from the rows that were there."""
    return {hour for hour, status in statuses.items() if status.is_materialized or status.is_dropped}


def _materialized_span(session: Session, now: datetime) -> HourRange:
    states = PartitionStates(session)
    first, newest = states.first("raw_logs"), states.newest("raw_logs", now)
    return HourRange(EVER.start, EVER.start) if first is None or newest is None else HourRange(first, newest + HOUR)
