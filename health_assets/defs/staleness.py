"""Which hours of the scores are older than what they are made from.

What belongs here: comparing what the warehouse says of its own tables. What does not: comparing them with the logs
(`ingestion`) and doing something about it (`sensors`).
"""

from datetime import datetime

from health_assets.defs.systems import DERIVED
from health_assets.hours import HOUR, HourRange
from health_assets.planning import late_ranges
from health_assets.settings import Settings
from health_assets.warehouse.store import Session


def stale_hours(session: Session, hours: HourRange, settings: Settings) -> tuple[set[datetime], set[datetime]]:
    """Hours of components, and of scores, that are older than what they are made from.

    An asset that has never been materialised is not stale, and neither are hours from before it first was.
    """
    components, scores = set(), set()
    known = session.materialized_hours("agent_health", hours)
    for asset in DERIVED.values():
        own = session.materialized_hours(asset.name, hours)
        stale = session.hours_older_than(asset.name, asset.deps, hours, reach_hours=asset.back_hours(settings))
        if asset.is_component:
            components |= stale & own
        elif own:
            scores |= stale & (own | {hour for hour in known if hour >= min(own)})
    return components, scores


def stale_ranges(session: Session, settings: Settings) -> list[HourRange]:
    """The fewest ranges of hours whose materialisation would leave nothing stale."""
    [(first, last)] = session.query(
        "SELECT min(hour), max(hour) FROM materialized_hours WHERE asset IN (SELECT unnest(?))", [list(DERIVED)]
    )
    if first is None:
        return []
    components, scores = stale_hours(session, HourRange(first, last + HOUR), settings)
    return late_ranges(components, settings.reach_hours, last + HOUR, only_themselves=scores)
