"""Ingestion: bring the record tables of some hours up to date with the raw logs.

What belongs here: the order of the steps, and what is noted of the hours at the end. What does not: the steps that
read files and change rows (`loading`), what is asked for and lacking (`ingestion_scope`), parsing (`logs`) and the
account of what each file holds (`warehouse.ledger`).

How it stays exact. The ledger knows, for every file, kind of record and hour, a digest of the lines. A new or changed
file is read once; what it holds for the hours asked for goes straight into the tables, what it holds for other hours is
only counted and waits until a run asks for those. An hour is replaced file by file, all in one transaction, so it is
always either as it was or as a clean rebuild would make it. Hours fail alone: one that needs lines which cannot be read
now is *held*. It stays as it was while all others are built, and is built once the lines can be read. Spans alone are
loaded for all hours of a file that is read, because what follows from them may be for other hours than their own
(`trace_assembly`).

What retention dropped comes back, whole hours at a time, when hours that need it are asked for, and never otherwise. So
spans of dropped hours are no exception: until then they are only counted, like every other line that nobody asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

from health_assets.core.hours import HourGroups, HourRange, contiguous
from health_assets.core.judges import TRUSTED, Trust
from health_assets.core.targets import Targets
from health_assets.core.wording import counted
from health_assets.logs.files import RawFile
from health_assets.logs.known_files import Recognized
from health_assets.logs.limits import Limits, current_limits
from health_assets.logs.recognition import recognize
from health_assets.pipeline.grounds import RECORDS, Grounds
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.ingestion_scope import Asked
from health_assets.pipeline.late_logs import names_of
from health_assets.pipeline.loading import Loading
from health_assets.pipeline.resolving import resolve_usage
from health_assets.schema.catalog import TABLE_OF_RECORD
from health_assets.warehouse.account_digests import AccountDigests
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.ledger_parts import Part
from health_assets.warehouse.log_hours import LogHours
from health_assets.warehouse.materialized import MaterializedHours
from health_assets.warehouse.session import Session

TOLD_OF_CUT = (
    "it was cut or replaced: {} that it held no longer count; where log rotation moved them, their file needs a name "
    "that counts"
)


def ingest(
    session: Session,
    files: Sequence[RawFile],
    hours: HourRange | HourGroups,
    tables: Sequence[str],
    targets: Targets,
    lookback_hours: int,
    *,
    trace_hours: int | None = None,
    with_new_targets: bool = True,
    unreadable: Mapping[str, str] = {},
    trusted_judgements: Trust = TRUSTED,
    limits: Limits | None = None,
    grounds: Grounds | None = None,
    read_anew: bool = False,
) -> IngestReport:
    """Bring `tables` up to date for `hours`, and for the hours of the look-back before them.

    The windows of the first hours asked for reach back before them; building what is missing or late there in the same
    reading makes the result for an hour independent of where a range starts (docs/agent-health-state.md names two
    exceptions). Hours that retention dropped come back as far as components of the look-back look back themselves, so
    that these are what they were.

    Args:
        session: a write session; everything happens in its transaction.
        files: all raw logs that there are now.
        hours: the hours asked for; between them, but not beyond them, lines of other hours are loaded too.
        tables: record tables asked for, values of `TABLE_OF_RECORD`; `spans` always comes along.
        targets: targets that resolve SLA breaches.
        lookback_hours: length of the look-back.
        trace_hours: how many hours apart spans of a trace may be and still see each other; by default the look-back.
        with_new_targets: whether targets that have changed apply to rows of `hours` that are there already.
        unreadable: files, and folders with a slash behind, that are there and cannot be read, with the reason. What was
            loaded of them before stays; hours that need what was not are held until they can be read.
        trusted_judgements: the logs whose judgements count as whose they say they are.
        limits: limits on what is taken of logs; by default those of now.
        grounds: grounds of the run, by which the hours asked for are marked where all that it does applies to them.
        read_anew: whether every file is compared with what was read of it, whatever its size and times say.

    Raises:
        HealthAssetsError: a file is gone or cannot be read although an hour that retention dropped needs it to come
            back.
        UnreadableFilesError: more files cannot be read; nothing was changed that the transaction does not undo.
    """
    reach_hours = lookback_hours if trace_hours is None else trace_hours
    groups, hours = HourGroups(hours.ranges), HourRange(hours.start, hours.end)
    report = IngestReport(hours=hours, files_seen=len(files) + len(unreadable), unreadable=unreadable)
    limits = limits or current_limits()
    recognized, report.told = _settled(session, files, unreadable, trusted_judgements, limits, read_anew=read_anew)
    present = names_of(recognized.files) | Ledger(session).emptied()
    asked = Asked(session, hours, tables, present, lookback_hours, reach_hours)
    loading = Loading(session, recognized, asked, targets, unreadable, trusted_judgements, limits)
    Ledger(session).write_unreadable(unreadable)

    due = loading.compare_with_ledger()
    found = loading.load_lines(due)
    report.add_read(files, found, due.grown)
    cut = FileLedger(session).note_cut(loading.cut(due.lines_less(found)), recognized.before)
    less = {name: TOLD_OF_CUT.format(counted(lines, "line")) for name, lines in cut.items()}
    report.told = {**loading.told, **less, **report.told}
    report.main_rejection = loading.main_rejection
    report.secrets_redacted, report.lines_redacted = loading.redacted
    changed = due.changed_by(found)
    changed |= loading.put_traces_together(due, changed)
    report.holds = loading.hold()

    touched = _touched_hours(asked, changed)
    first_event_hour, reach = LogHours(session).first_event_hour(), groups.extended_back(lookback_hours - 1)
    never_built = MaterializedHours(session).missing(asked.tables, reach, asked.hours, first_event_hour)
    built = touched["raw_logs"] | never_built
    built -= asked.held
    report.add_built(built | (asked.restored_hours - asked.held))
    report.superseded, added_up = loading.keep_winners(report.hours)
    for table, others in loading.apply_new_targets().items() if with_new_targets else ():
        touched[table] |= others
        built |= others - asked.held
        report.add_built(others - asked.held)
    if "executions" in asked.tables:  # behind the targets: which calls are an agent's follows from its name
        touched["executions"] |= added_up | resolve_usage(session, report.hours, lookback_hours)
    _note_materialized(session, asked, built, touched)
    if grounds is not None and with_new_targets:
        made_with = grounds.of_rows(grounds.account(session, RECORDS), RECORDS)
        AccountDigests(session).note_made(["raw_logs", *asked.tables], set(groups) - asked.held, made_with)
    return report


def _settled(
    session: Session,
    files: Sequence[RawFile],
    unreadable: Mapping[str, str],
    trusted: Trust,
    limits: Limits,
    *,
    read_anew: bool,
) -> tuple[Recognized, dict[str, str]]:
    """Recognize the files and bring ledger and tables in step with them; the texts say what to tell of files."""
    ledger = FileLedger(session)
    known = ledger.known(limits.until)
    recognized = recognize(known, files, unreadable, unpacking=limits.unpacking, trusted=trusted, anew=read_anew)
    return recognized, ledger.settle(known, recognized)


def _touched_hours(asked: Asked, changed: Iterable[Part]) -> dict[str, set[datetime]]:
    """The hours asked for whose rows changed, by table; `raw_logs` has no spans beyond the look-back."""
    touched: dict[str, set[datetime]] = {"raw_logs": set(), **{table: set() for table in asked.tables}}
    for part in changed:
        if not asked.includes(part):
            continue
        touched[TABLE_OF_RECORD[part.record_type]].add(part.hour)
        if part.record_type != "span" or part.hour in asked.span:
            touched["raw_logs"].add(part.hour)
    return touched


def _note_materialized(
    session: Session, asked: Asked, built: AbstractSet[datetime], touched: Mapping[str, AbstractSet[datetime]]
) -> None:
    """Write down of each table which hours it has now, and which of them have other rows than before."""
    for table, own_hours in touched.items():
        restored = asked.restored.get(table, set())
        noted = built | (restored if table == "spans" else restored - asked.held)
        if table == "spans":
            noted = {hour for hour in noted | own_hours if hour not in asked.away}
        for hours in contiguous(noted):
            MaterializedHours(session).note(table, hours, own_hours & set(hours))
