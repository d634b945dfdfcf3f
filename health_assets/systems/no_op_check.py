"""The no-op check: whether a run would change anything, found out from the warehouse and the logs.

What belongs here: everything that could make a run differ from the one that made the hours; what is uncertain is a
reason for a run. What does not: the logs and their records (`pipeline.record_no_op_check`), the fingerprints of hours
(`pipeline.fingerprints`), hours besides those of a run (`stale_partitions`), and printing (`cli`).

The rows of a table are a function of the tables before it, and the first of them of the logs. So nothing changes where
each table alone is what its step would make of the tables of now. What was in between does not count: a run that was
killed, another writer, another setting each leave a table without the fingerprint that it should have.
"""

from collections.abc import Collection, Iterator
from datetime import datetime

from health_assets.core.hours import EVER, HOUR, HourGroups, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.pipeline.build_selection import hours_to_build, versions_to_note
from health_assets.pipeline.derived import Derived
from health_assets.pipeline.fingerprints import RECORDS, RunFingerprint, checks_fingerprint, judged_rows, upstream
from health_assets.pipeline.record_no_op_check import changes_of_records, rests_on
from health_assets.schema.catalog import schema_of
from health_assets.systems.declared_assets import DERIVED, SYSTEMS
from health_assets.warehouse.file_ledger import FileLedger, LostLines
from health_assets.warehouse.fingerprints import (
    EVERY_LINE_IS_STILL_THERE,
    Fingerprints,
    NotedFailure,
    NotedFingerprints,
)
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session


def reason_to_run(
    session: Session,
    settings: Settings,
    targets: Targets,
    hours: HourRange | HourGroups,
    systems: Collection[str],
    records_in: str,
    now: datetime,
) -> str | None:
    """The first reason, in a sentence, for which a run may change or tell anything; None where none can.

    Args:
        session: a session; the answer is about what it sees.
        settings: where the logs are, and what scores depend on.
        targets: the targets.
        hours: the hours asked for.
        systems: the scoring systems asked for; all where none is named.
        records_in: where Dagster would keep its records of the run; empty where nobody would see them again.
        now: the time, aware.

    Raises:
        HealthAssetsError: the logs cannot be listed, or hours need what retention dropped.
    """
    if set(systems) - set(SYSTEMS):
        return "there is no such system"
    if hours.end > now:
        return "some of these hours are not over"
    groups = HourGroups(hours.ranges)
    made = _made_by(systems)
    run = RunFingerprint.of(settings, targets, groups)
    return next(_reasons(session, settings, groups, made, run, records_in, now), None)


def noted_warnings(
    session: Session, settings: Settings, hours: HourRange | HourGroups, systems: Collection[str]
) -> tuple[list[NotedFailure], list[LostLines]]:
    """The warnings of the run that made hours which are up to date; another run would only repeat them.

    Args:
        session: a session.
        settings: how far results look back.
        hours: the hours asked for.
        systems: the scoring systems asked for; all where none is named.

    Returns:
        The checks that hours fail, and the lines that are lost.
    """
    lost = FileLedger(session).lost(rests_on(hours, settings))
    failed = Fingerprints(session).failed_checks(_judged_assets(_made_by(systems)), hours)
    return [
        # by the hour it counts all that the hour looks back on
        check._replace(unexpected=sum(log.lines for log in lost))
        if check.expectation == EVERY_LINE_IS_STILL_THERE
        else check
        for check in failed
    ], lost


def made_at(session: Session, hours: HourRange | HourGroups) -> datetime:
    """The time at which a row of hours that are up to date was last made or changed."""
    noted = Fingerprints(session).noted(list(DERIVED), HourRange(hours.start, hours.end))
    every = [one for own in noted.values() for one in own.values()]
    return max(max(one.materialized_at, one.changed_at or one.materialized_at) for one in every)


def _made_by(systems: Collection[str]) -> list[Derived]:
    return [asset for system in systems or SYSTEMS for asset in SYSTEMS[system]]


def _judged_assets(made: Collection[Derived]) -> list[str]:
    """The assets whose checks a run makes."""
    return [*RECORDS, *(asset.name for asset in made)]


def _reasons(
    session: Session,
    settings: Settings,
    hours: HourGroups,
    made: Collection[Derived],
    run: RunFingerprint,
    records_in: str,
    now: datetime,
) -> Iterator[str]:
    names = _judged_assets(made)
    if changed := [name for name in names if _has_other_columns(session, name)]:
        yield f"columns of {changed[0]} have other types than declared"
    yield from _other_fingerprints(session, names, hours, run, records_in)
    yield from changes_of_records(session, settings, hours, now)
    if early := PartitionStates(session).not_final(names, hours.span).intersection(hours):
        yield f"{min(early):%Y-%m-%dT%H} was made before it was over"
    versions = {asset.name: asset.formula_version for asset in made}
    for name, older in PartitionStates(session).of_other_versions(versions, hours.span).items():
        if older.keys() & set(hours):
            yield f"{name} is of an older formula"
    for asset in made:
        yield from _to_be_built(session, asset, hours, settings)
    for name in sorted(set().union(*({asset.name, *upstream(asset.name, DERIVED)} for asset in made)) - set(RECORDS)):
        if _has_other_rows(session, DERIVED[name], hours, run.reach):
            yield f"{name} has other rows than were written"


def _other_fingerprints(
    session: Session, names: Collection[str], hours: HourGroups, run: RunFingerprint, records_in: str
) -> Iterator[str]:
    """Reasons that lie in the fingerprints of the hours: other inputs than now, or checks of other rows."""
    fingerprints = Fingerprints(session)
    noted = fingerprints.noted(names, hours.span)
    if failed := [check for check in fingerprints.failed_checks(names, hours) if check.is_error]:
        yield f"{failed[0].asset}.{failed[0].expectation} fails"
    outcomes = fingerprints.of_checks(names, hours)
    states = run.input_states(session, {*names, *set().union(*(upstream(name, DERIVED) for name in names))})
    for name in names:
        own = noted.get(name, {})
        if lacking := [hour for hour in hours if hour not in own]:
            yield f"{name} lacks {min(lacking):%Y-%m-%dT%H}"
        sources = upstream(name, DERIVED)
        inputs_fingerprint = run.with_inputs(states, sources)
        if any(own[hour].inputs_fingerprint != inputs_fingerprint for hour in hours):
            yield f"{name} may have other inputs now"
        if name in DERIVED and any(_is_early(own[hour], hour) for hour in hours):
            yield f"{name} was made before its hour was over"
        judged, rows = run.with_inputs(states, {*sources, name}), judged_rows(session, name, hours)
        judged_now = checks_fingerprint(judged, records_in, rows, outcomes.get(name))
        if any(own[hour].checks_fingerprint != judged_now for hour in hours):
            yield f"checks of {name} may say something else by now"


def _has_other_columns(session: Session, table: str) -> bool:
    """Whether a column has another type than its table declares, which a check of the table would tell."""
    there = session.column_types(table)
    return any(there.get(column) != kind for column, kind in schema_of(table).items())


def _is_early(noted: NotedFingerprints, hour: datetime) -> bool:
    """Whether rows were made before their hour was over, by which it is not known as done."""
    return noted.materialized_at < hour + HOUR


def _to_be_built(session: Session, asset: Derived, hours: HourGroups, settings: Settings) -> Iterator[str]:
    """Reasons that lie in the hours that the asset's step would build, and in the version that it would note."""
    if asset.is_component:
        build, restored = hours_to_build(session, asset, hours, settings, only_stale=False)
        if build != set(hours) or restored:
            yield f"{asset.name} lacks hours of the look-back, or has older ones"
    if asset.is_external:
        yield f"{asset.name} is no function of logs"
    if versions_to_note(session, asset, DERIVED, hours, settings):
        yield f"{asset.name} has inputs of an older formula"


def _has_other_rows(session: Session, asset: Derived, hours: HourGroups, reach: HourRange) -> bool:
    """Whether the table has other rows than its step has written, in these hours or in those that they look at."""
    looked_at = EVER if asset.is_self_dependent else reach
    noted = Fingerprints(session).noted_rows(asset.name, looked_at)
    there = {hour: str(digest) for hour, digest in session.digests(asset.name, looked_at).items()}
    if there.keys() - noted.keys():
        return True
    unknown = {hour for hour, rows in noted.items() if rows.digest is None}
    if unknown & set(hours):
        return True
    counts = session.counts_by_hour(asset.name, looked_at) if unknown else {}
    return any(
        counts.get(hour, 0) != rows.rows if rows.digest is None else there.get(hour, "") != rows.digest
        for hour, rows in noted.items()
    )
