"""Stale hours: those whose scores are older than what they are made from.

What belongs here: comparing what the warehouse says of its own tables. What does not: loading logs
(`pipeline.log_ingestion`), versions of formulas (`formula_versions`), and which hours are made (`due_hours`).
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from health_assets.core.hours import EVER, HOUR, HourGroups, HourRange, contiguous
from health_assets.core.settings import Settings
from health_assets.pipeline.derived import Derived
from health_assets.systems.declared_assets import DERIVED, SYSTEMS
from health_assets.systems.formula_versions import OlderResults
from health_assets.warehouse.materialized import MaterializedHours
from health_assets.warehouse.session import Session


def stale_hours(
    session: Session, hours: HourRange, settings: Settings, older: Sequence[OlderResults] = ()
) -> tuple[set[datetime], set[datetime]]:
    """Hours of components, and of scores, that are older than what they are made from.

    An asset that has never been materialized is not stale, and neither are hours from before it first was.

    Args:
        session: a session.
        hours: hours to look at.
        settings: how far each asset looks back.
        older: what older versions of formulas made; scores that are brought up to date for it are left out, and so are
            hours that keep an older version, of all systems, lest what retention dropped comes back for them.
    """
    components, scores = set(), set()
    known = MaterializedHours(session).of("agent_health", hours)
    due = {asset.name: results.due for results in older for asset in SYSTEMS[results.system]}
    for asset in DERIVED.values():
        own, stale = _own_and_stale(session, asset, hours, settings)
        if asset.is_component:
            components |= stale & own
        elif own:
            scores |= stale & (own | {hour for hour in known if hour >= min(own)}) - due.get(asset.name, frozenset())
    return components, scores.difference(*(results.kept for results in older))


def changed_within(session: Session, hours: HourRange) -> set[datetime]:
    """Hours of components that are older than the same hour of what they are made from."""
    materialized = MaterializedHours(session)
    found: set[datetime] = set()
    for asset in DERIVED.values():
        if asset.is_component:
            found |= materialized.older_than(asset.name, asset.upstream, hours) & materialized.of(asset.name, hours)
    return found


def left_behind(
    session: Session, run: HourRange | HourGroups, systems: Collection[str], settings: Settings, now: datetime
) -> list[HourRange]:
    """Hours besides those of a run whose rows look back on what has changed since they were made.

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
            own, stale = _own_and_stale(session, asset, span, settings)
            hours |= own & stale
    return contiguous(hours - set(run))


def _own_and_stale(
    session: Session, asset: Derived, hours: HourRange, settings: Settings
) -> tuple[set[datetime], set[datetime]]:
    """Hours that the asset has, and hours in which its rows, if it has any, are older than what they are made from.

    Hours that retention dropped are among those that it has: scores are made from the rows that were there.
    """
    materialized = MaterializedHours(session)
    stale = materialized.older_than(asset.name, asset.upstream, hours, reach_hours=asset.back_hours(settings))
    if asset.same_hour_upstream:
        stale |= materialized.older_than(asset.name, asset.same_hour_upstream, hours)
    return materialized.of(asset.name, hours) | materialized.dropped(asset.name, hours), stale


def _materialized_span(session: Session, now: datetime) -> HourRange:
    materialized = MaterializedHours(session)
    first, newest = materialized.first("raw_logs"), materialized.newest("raw_logs", now)
    return HourRange(EVER.start, EVER.start) if first is None or newest is None else HourRange(first, newest + HOUR)
