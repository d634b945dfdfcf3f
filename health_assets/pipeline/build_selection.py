"""Which hours of an asset a run builds, in which chunks, and which versions of formulas it notes of them.

What belongs here: answers from the states of partitions. What does not: building (`system_step`), and which hours a run
is asked for (`partition_selection`, `systems.due_hours`).
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.core.settings import Settings
from health_assets.pipeline.derived import Derived
from health_assets.warehouse.log_coverage import LogCoverage
from health_assets.warehouse.partition_states import PartitionStates, PartitionStatus, expected_hours
from health_assets.warehouse.session import Session

ON_OLDER = ", on older components"
"""Follows the version of rows that were made from components of an older version of a formula."""


def chunks(build: AbstractSet[datetime], asked: HourGroups) -> list[tuple[HourRange, HourGroups]]:
    """Hours to compute at once, and those of them that are to be built.

    In a run with holes little happens, so that computing a hole with its neighbours costs less than another statement;
    its rows are left out. In a run without holes, hours that are to be built may lie far apart with much between them.
    """
    if not build:
        return []
    wanted = HourGroups.of(build)
    if asked.has_holes:
        return [(chunk, wanted.within(chunk)) for chunk in wanted.chunks()]
    return [(own, HourGroups((own,))) for own in wanted.ranges]


def require_sources(session: Session, derived: Derived, hours: HourRange | HourGroups, settings: Settings) -> None:
    """Refuse to make rows from hours that retention dropped: they would say less than those that are there.

    Raises:
        HealthAssetsError: a table that the asset is made from has been dropped for hours that these hours look back on.
    """
    reach = HourGroups(hours.ranges).extended_back(
        0 if derived.is_exempt_from_retention else derived.back_hours(settings) - 1
    )
    sources = (*derived.upstream, *derived.same_hour_upstream)
    for source, dropped in PartitionStates(session).dropped_of_each(sources, reach.span).items():
        needed = hours if source in derived.same_hour_upstream else reach
        if lacking := {hour for hour in dropped if hour in needed}:
            raise HealthAssetsError(
                f"{derived.name} of {hours} needs {len(lacking)} hours of {source} that retention dropped, the first "
                f"of them {min(lacking):%Y-%m-%dT%H}; materialize all assets of these hours together"
            )


def statuses_of(
    session: Session, derived: Derived, hours: HourRange, settings: Settings
) -> dict[datetime, PartitionStatus]:
    """The status of each of these hours that any asset has."""
    return PartitionStates(session).statuses(
        derived.name, derived.upstream, hours,
        reach_hours=derived.back_hours(settings), same_hour_upstream=derived.same_hour_upstream,
    )  # fmt: skip


def hours_to_build(
    session: Session, derived: Derived, asked: HourRange | HourGroups, settings: Settings, *, only_stale: bool
) -> tuple[set[datetime], set[datetime]]:
    """The hours asked for (with `only_stale`, none as such), and missing and stale ones of the look-back.

    Returns:
        The hours, and which of them merely come back after retention dropped them: what was made from them stands, also
        where targets have changed since.
    """
    reach = HourGroups(asked.ranges).extended_back(settings.reach_hours - 1)
    statuses = {
        hour: status for hour, status in statuses_of(session, derived, reach.span, settings).items() if hour in reach
    }
    present = {hour for hour, status in statuses.items() if status.is_materialized}
    missing = expected_hours(reach, asked, LogCoverage(session).first_event_hour()) - present
    older = {hour for hour in present if statuses[hour].formula_version != derived.formula_version}
    stale = {hour for hour, status in statuses.items() if status.is_stale}
    stale |= _with_sources(session, derived, older, settings)
    # what comes back of another formula is compared with what was dropped, as if its inputs had changed
    restored = {
        hour
        for hour, status in statuses.items()
        if status.is_dropped and status.formula_version == derived.formula_version
    }
    wanted = set() if only_stale else set(asked)
    return missing | stale | wanted, restored - stale - wanted


def _with_sources(
    session: Session, derived: Derived, hours: AbstractSet[datetime], settings: Settings
) -> set[datetime]:
    """The hours without those that look back on what retention dropped."""
    lacking: set[datetime] = set()
    for source in derived.upstream if hours else ():
        reach_hours = derived.back_hours(settings)
        span = HourRange(min(hours), max(hours) + HOUR).extended_back(reach_hours - 1)
        for dropped in PartitionStates(session).dropped(source, span):
            lacking |= set(HourRange.of(dropped).extended_forward(reach_hours - 1))
    return {*hours} - lacking


def versions_to_note(
    session: Session,
    derived: Derived,
    sources: Mapping[str, Derived],
    hours: HourRange | HourGroups,
    settings: Settings,
) -> dict[datetime, str]:
    """Versions of the hours that look back on hours of an older formula; to be asked once the inputs are built.

    Components are brought up to date before, so this happens only where some cannot be, or where a run leaves them out.

    Args:
        session: a session.
        derived: the asset.
        sources: every asset that is computed, by name.
        hours: the hours.
        settings: how far each asset looks back.

    Returns:
        By hour, a version that is no formula's own, so that the hour stays stale.
    """
    upstream = [name for name in (*derived.upstream, *derived.same_hour_upstream) if name in sources]
    span = HourRange(hours.start, hours.end).extended_back(derived.back_hours(settings) - 1)
    versions = {name: sources[name].formula_version for name in upstream}
    mixed: set[datetime] = set()
    for name, older in PartitionStates(session).of_other_versions(versions, span).items():
        looks_back = sources[name].is_component and name not in derived.same_hour_upstream
        reach_hours = derived.back_hours(settings) if looks_back else 1
        for hour in older:
            mixed |= set(HourRange.of(hour).extended_forward(reach_hours - 1))
    return {hour: f"{derived.formula_version}{ON_OLDER}" for hour in hours if hour in mixed}
