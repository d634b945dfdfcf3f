"""Ingestion: bring the record tables of some hours up to date with the raw logs.

What belongs here: the order of the steps, and what is noted of the hours at the end. What does not: the steps that
read files and change rows (`loading`), what is asked for and lacking (`ingestion_scope`), parsing (`logs`) and the
account of what each file holds (`warehouse.ledger`).

How it stays exact. The ledger knows, for every file, kind of record and hour, a digest of the lines. A new or changed
file is read once, and all that it holds goes into the tables, whatever hours were asked for; what it held before goes
in the same transaction. So an hour is always either as it was or as a clean rebuild would make it. A file that cannot
be read keeps the rows that it had.

Records of hours that retention dropped, or that are older than the horizon, are counted and not loaded. They come back,
whole hours at a time, when hours that need them are asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta

import ibis

from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, NO_HOURS, HourGroups, HourRange, contiguous
from health_assets.core.judges import TRUSTED, Trust
from health_assets.core.targets import Targets
from health_assets.logs.file_matching import match_files
from health_assets.logs.files import RawFile
from health_assets.logs.formats.format_settings import settings_of
from health_assets.logs.known_files import MatchedFiles
from health_assets.logs.limits import Limits, current_limits
from health_assets.logs.stores import names_of
from health_assets.pipeline.enrichment import resolve_outcomes, resolve_usage
from health_assets.pipeline.fingerprints import RECORDS, RunFingerprint
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.ingestion_scope import IngestScope
from health_assets.pipeline.loading import Loading
from health_assets.schema.catalog import TABLE_OF_RECORD
from health_assets.schema.records import RECORD_TABLES, TIME_OF_TABLE
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.file_slices import FileSlice
from health_assets.warehouse.fingerprints import Fingerprints
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.log_coverage import LogCoverage
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session

TOLD_OF_CUT = (
    "it was cut or replaced: {} that it held no longer count; where log rotation moved them, their file needs a name "
    "that counts"
)
TOLD_OF_UNRECOGNIZED = (
    "no format recognizes it any more, so the {} that it had {} gone; its declaration (HEALTH_FORMATS) was deleted "
    "or changed"
)


def ingest(
    session: Session,
    files: Sequence[RawFile],
    hours: HourRange | HourGroups | None,
    targets: Targets,
    reach_hours: int,
    *,
    trace_hours: int | None = None,
    with_new_targets: bool = True,
    unreadable: Mapping[str, str] = {},
    trusted_judgements: Trust = TRUSTED,
    limits: Limits | None = None,
    run: RunFingerprint | None = None,
    horizon: datetime | None = None,
    full_refresh: bool = False,
    salt: str = "",
    with_prices: bool = False,
    read_at: datetime | None = None,
) -> IngestReport:
    """Load the files that are new or changed, and bring `hours` and their look-back up to date.

    The windows of the first hours asked for reach back before them; building what is missing or late there in the same
    reading makes the result for an hour independent of where a range starts (docs/agent-health-state.md names two
    exceptions). Hours that retention dropped come back as far as components of the look-back look back themselves, so
    that these are what they were.

    Args:
        session: a write session; everything happens in its transaction.
        files: all raw logs that there are now.
        hours: the hours asked for; None where nothing is to be built, and logs are merely loaded.
        targets: targets that resolve SLA breaches.
        reach_hours: how far results of an hour look back.
        trace_hours: how many hours apart spans of a trace may be and still see each other; by default as far.
        with_new_targets: whether targets that have changed apply to rows of `hours` that are there already.
        unreadable: files, and folders with a slash behind, that are there and cannot be read, with the reason. What was
            loaded of them before stays.
        trusted_judgements: the logs whose judgements count as whose they say they are.
        limits: limits on what is taken of logs; by default those of now.
        run: fingerprint of the run, noted of the hours asked for where the targets of now apply to all of them.
        horizon: records before it are counted and not loaded, unless their hours are asked for.
        full_refresh: whether every file is compared with what was read of it, whatever its size and times say.
        salt: salt of the digests of contents; by default the warehouse's own.
        with_prices: whether calls that state no cost get that of the price list.
        read_at: when the files were listed, up to which a running hour is known; by default now.

    Raises:
        HealthAssetsError: a file is gone or cannot be read although an hour that retention dropped needs it to come
            back.
        UnreadableFilesError: more files cannot be read; nothing was changed that the transaction does not undo.
    """
    trace_hours = reach_hours if trace_hours is None else trace_hours
    groups, span = (HourGroups(hours.ranges), HourRange(hours.start, hours.end)) if hours else (None, NO_HOURS)
    report = IngestReport(hours=span, files_seen=len(files) + len(unreadable), unreadable=unreadable)
    limits = limits or current_limits()
    matched, report.notices = _settled(
        session, files, unreadable, trusted_judgements, limits, full_refresh=full_refresh
    )
    present = names_of(matched.files) | Ledger(session).emptied()
    scope = IngestScope(session, span, present, reach_hours, trace_hours, horizon)
    loading = Loading(session, matched, scope, targets, unreadable, trusted_judgements, limits, salt)
    Ledger(session).write_unreadable(unreadable)

    due = loading.plan_load()
    found = loading.load_lines(due)
    report.add_read(files, found, due.appended)
    cut = FileLedger(session).note_cut(loading.cut(due.lines_less(found)), matched.before)
    less = {name: TOLD_OF_CUT.format(counted(lines, "line")) for name, lines in cut.items()}
    unrecognized = {
        name: TOLD_OF_UNRECOGNIZED.format(counted(records, "record"), "is" if records == 1 else "are")
        for name, records in loading.no_longer_recognized(due, found).items()
    }
    report.notices = {**loading.notices, **less, **unrecognized, **report.notices}
    report.main_rejection = loading.main_rejection
    report.secrets_redacted, report.lines_redacted = loading.redacted
    changed = due.changed_by(found)
    changed |= loading.assemble_traces(due, changed, with_new_targets=with_new_targets)

    touched = _touched_hours(scope, changed)
    never_built = _never_built(session, groups, reach_hours) if groups else set()
    built = {hour for hour in touched["raw_logs"] if hour in scope.span} | never_built | scope.restored_hours
    report.add_built(built)
    report.superseded, added_up = loading.keep_winners()
    touched["executions"] |= added_up
    for table, others in loading.apply_new_targets(never_built, with_new_targets=with_new_targets).items():
        touched[table] |= others
        built |= {hour for hour in others if hour in scope.span}
    asked = {*scope.hours} if with_new_targets else set[datetime]()
    for some in contiguous(asked | never_built | _hours_to_judge(touched, trace_hours)):
        judged = resolve_outcomes(session, some, trace_hours, targets)
        touched["executions"] |= judged
        built |= {hour for hour in judged if hour in scope.span}
    report.add_built(built)
    elsewhere = _materialized_elsewhere(session, scope, touched)
    report.changed_elsewhere = set().union(*(hours for table, hours in elsewhere.items() if table != "spans"))
    report.touched_hours = set().union(*touched.values())
    # behind the targets: which calls are an agent's follows from its name
    with_runs_or_calls = elsewhere["executions"] | elsewhere["cancellations"] | elsewhere["model_calls"]
    for some in [*filter(len, [report.hours]), *contiguous(with_runs_or_calls)]:
        for table, others in resolve_usage(session, some, reach_hours, with_prices=with_prices).items():
            touched[table] |= others
    _note_materialized(session, scope, built, touched, elsewhere, groups, read_at or session.now())
    if groups and run is not None and with_new_targets:
        inputs_fingerprint = run.with_inputs(run.input_states(session, RECORDS), RECORDS)
        Fingerprints(session).note_inputs(RECORDS, set(groups), inputs_fingerprint)
    return report


def _settled(
    session: Session,
    files: Sequence[RawFile],
    unreadable: Mapping[str, str],
    trusted: Trust,
    limits: Limits,
    *,
    full_refresh: bool,
) -> tuple[MatchedFiles, dict[str, str]]:
    """Recognize the files and bring ledger and tables in step with them; the texts say what to tell of files."""
    ledger = FileLedger(session)
    known = ledger.known(limits.until, settings_of(files[0]).digest if files else None)
    matched = match_files(
        known, files, unreadable, unpacking=limits.unpacking, trusted=trusted, full_refresh=full_refresh
    )
    return matched, ledger.settle(known, matched)


def _touched_hours(scope: IngestScope, changed: Iterable[FileSlice]) -> dict[str, set[datetime]]:
    """The hours whose rows changed, by table; `raw_logs` has no spans beyond the look-back."""
    touched: dict[str, set[datetime]] = {table: set() for table in RECORDS}
    for file_slice in changed:
        if not scope.includes(file_slice):
            continue
        touched[TABLE_OF_RECORD[file_slice.record_type]].add(file_slice.hour)
        if file_slice.record_type != "span" or file_slice.hour in scope.span:
            touched["raw_logs"].add(file_slice.hour)
    return touched


def _hours_to_judge(touched: Mapping[str, AbstractSet[datetime]], trace_hours: int) -> set[datetime]:
    """The hours whose executions other results of evaluators may be about, now that rows have changed."""
    changed = set().union(*(touched[name] for name in ("executions", "evaluations", "model_calls", "tool_calls")))
    others = trace_hours - 1
    near = (hours.extended_back(others).extended_forward(others) for hours in contiguous(changed))
    return {hour for hours in near for hour in hours}


def _never_built(session: Session, hours: HourGroups, reach_hours: int) -> set[datetime]:
    """The hours asked for, and those from the first event on that they look back on, that lack any record table."""
    first_event_hour, reach = LogCoverage(session).first_event_hour(), hours.extended_back(reach_hours - 1)
    return PartitionStates(session).missing(RECORD_TABLES, reach, hours.span, first_event_hour)


def _materialized_elsewhere(
    session: Session, scope: IngestScope, touched: Mapping[str, AbstractSet[datetime]]
) -> dict[str, set[datetime]]:
    """By table, the hours that changed beyond those asked for and had been materialized before."""
    elsewhere: dict[str, set[datetime]] = {}
    for table, hours in touched.items():
        others = {hour for hour in hours if hour not in scope.span}
        span = HourRange(min(others), max(others) + HOUR) if others else None
        elsewhere[table] = others & PartitionStates(session).of(table, span) if span else set()
    return elsewhere


def _note_materialized(
    session: Session,
    scope: IngestScope,
    built: AbstractSet[datetime],
    touched: Mapping[str, AbstractSet[datetime]],
    elsewhere: Mapping[str, AbstractSet[datetime]],
    asked: HourGroups | None,
    read_at: datetime,
) -> None:
    """Write down of each table which hours it has now, and which of them have other rows than before."""
    for table, own_hours in touched.items():
        noted, as_of = built | scope.restored.get(table, set()) | elsewhere[table], dict[datetime, datetime]()
        if table == "spans":
            noted = {hour for hour in noted | own_hours if hour not in scope.pruned_spans}
        if table == "raw_logs":
            noted |= _not_final(session, asked, read_at) if asked else set()
            as_of = {hour: _known_until(session, hour, read_at) for hour in noted if hour + HOUR > read_at}
        for hours in contiguous(noted):
            PartitionStates(session).note(table, hours, own_hours & set(hours), as_of=as_of)


def _not_final(session: Session, asked: HourGroups, read_at: datetime) -> set[datetime]:
    """The hours asked for that are not over, or were not when they were last made."""
    early = PartitionStates(session).as_of("raw_logs", asked.span)
    return {hour for hour in asked if hour + HOUR > read_at or hour in early}


def _known_until(session: Session, hour: datetime, read_at: datetime) -> datetime:
    """Up to when a running hour is known: when the logs were listed, or its newest event, if that is later."""
    until = max(read_at, hour + timedelta(seconds=1))
    tables = {table: session.hours_of(table, HourRange.of(hour)) for table in TIME_OF_TABLE}
    newest = (rows.aggregate(at=rows[TIME_OF_TABLE[table]].max()) for table, rows in tables.items())
    events = [row["at"] + timedelta(microseconds=1) for row in session.dicts(ibis.union(*newest)) if row["at"]]
    return min(max(until, *events) if events else until, hour + HOUR)
