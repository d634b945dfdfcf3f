"""Hours that are due: what a process that keeps the tables up to date by itself makes next.

What belongs here: finding them from what the warehouse says of its own tables, once the logs are loaded. What does not:
loading logs (`pipeline.log_ingestion`), hours that somebody names (`pipeline.partition_selection`), and making them
(`pipeline.engine`).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.core.settings import Settings
from health_assets.logs.stores import is_among
from health_assets.pipeline.first_hour import EARLIEST
from health_assets.pipeline.planning import catch_up, late_ranges, newest_finished_hour
from health_assets.systems.formula_versions import OlderResults, older_results
from health_assets.systems.staleness import stale_hours
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.materialized import MaterializedHours
from health_assets.warehouse.session import Session

SCORED = "system_health"
"""The asset whose hours are those that were ever asked for."""


@dataclass(frozen=True, kw_only=True)
class DueRun:
    """Hours to make together.

    Args:
        hours: the hours.
        systems: the scoring systems; all where none is named.
        only_stale: whether hours are left alone whose inputs have not changed since they were made.
    """

    hours: HourGroups
    systems: tuple[str, ...] = ()
    only_stale: bool = True


def due_hours(session: Session, settings: Settings, now: datetime) -> list[DueRun]:
    """The hours that are over and were missed, then those of which something has changed, then those of older formulas.

    The newest of the first is the one that ended `settings.schedule_minute` minutes ago. Before any hour was made, none
    is due: the logs say where to begin.

    Args:
        session: a session, once the logs are loaded.
        settings: how far hours look back, and the first hour that is looked after.
        now: the time, aware.
    """
    materialized = MaterializedHours(session)
    newest = newest_finished_hour(now, timedelta(minutes=settings.schedule_minute))
    first = materialized.first(SCORED)
    if first is None or newest < first:
        return []
    due = []
    span = HourRange.of(newest).extended_back(settings.reach_hours - 1)
    there = materialized.of(SCORED, span)
    missed = catch_up(newest, there, first, settings.reach_hours)
    start = max(missed.start, settings.first_hour or missed.start)
    if newest not in there and start <= newest:
        due.append(DueRun(hours=HourGroups((HourRange(start, missed.end),)), only_stale=False))
    last = materialized.newest(SCORED, now) or newest
    known = HourRange(min(settings.first_hour or EARLIEST, last), last + HOUR)
    older = older_results(session, known, settings)
    late = _late(session, settings, known, newest, older, now)
    due += [DueRun(hours=HourGroups((hours,))) for hours in late]
    made = {hour for one in due for hour in one.hours}
    for results in older:
        due += [DueRun(hours=HourGroups((hours,)), systems=(results.system,)) for hours in results.newest(made)]
    return due


def _late(
    session: Session,
    settings: Settings,
    known: HourRange,
    newest: datetime,
    older: list[OlderResults],
    now: datetime,
) -> list[HourRange]:
    """The hours of which records or components have changed, or were never scored, and those that depend on them."""
    ledger, materialized = Ledger(session), MaterializedHours(session)
    kept_from = filter(None, (materialized.dropped_until(), settings.horizon(now)))
    # for late lines alone, nothing that retention dropped comes back
    start = max([known.start, *kept_from])
    span = HourRange(min(start, newest + HOUR), newest + HOUR)
    unreadable = ledger.unreadable()
    waiting = [part for part in ledger.not_loaded() if not is_among(unreadable, part.source_file)]
    parts = [part for part in [*waiting, *ledger.not_materialized()] if part.hour in span]
    touched = {part.hour for part in parts if part.record_type != "rejected"}
    alone = {part.hour for part in parts} - touched
    components, scores = stale_hours(session, known, settings, older)
    until = min(max({known.end - HOUR, *touched}), newest) + HOUR
    alone |= scores | materialized.unchecked("rejected_records", SCORED, span)
    return late_ranges(touched | components, settings.reach_hours, until, only_themselves=alone)
