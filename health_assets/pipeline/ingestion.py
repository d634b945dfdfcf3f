"""Ingestion: bring the record tables of some hours up to date with the raw logs.

What belongs here: deciding which files to read, and sending every line to its table. What does not: parsing (`logs`)
and the account of what each file holds (`warehouse.ledger`).

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

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import EVER, HourGroups, HourRange, contiguous
from health_assets.core.judges import TRUSTED
from health_assets.core.targets import Targets
from health_assets.core.temporary import temporary_folder
from health_assets.core.wording import counted
from health_assets.logs.files import Identities, Notes, RawFile
from health_assets.logs.identity import Identity
from health_assets.logs.known_files import Recognized
from health_assets.logs.limits import Limits, current_limits
from health_assets.logs.reader import reading
from health_assets.logs.recognition import cut_or_replaced, recognize
from health_assets.logs.routing import STREAMED_TABLE, Rejection, Router
from health_assets.logs.stores import is_among, reason_of
from health_assets.pipeline.ingestion_scope import Asked, Due
from health_assets.pipeline.late_logs import future_of, names_of, parts_of, rejected_hours
from health_assets.pipeline.resolving import resolve_judges, resolve_names, resolve_slas, resolve_usage
from health_assets.pipeline.trace_assembly import TraceAssembly, touched_hours, traces_of
from health_assets.schema.catalog import ID_OF_TABLE, RECORD_OF_TABLE, TABLE_OF_RECORD
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.holds import Hold, Holds
from health_assets.warehouse.ledger import NO_LINES, TRACES, Entry, Ledger, Lines, Part, part_source
from health_assets.warehouse.materialized import MaterializedHours
from health_assets.warehouse.session import Session

CUT = (
    "it was cut or replaced: {} that it held no longer count; where log rotation moved them, their file needs a name "
    "that counts"
)


@dataclass(kw_only=True)
class IngestReport:
    """The counts of what a run read and built.

    Args:
        files_seen: raw logs below the raw root.
        files_read: those read, because they are new, changed, or hold lines for these hours that were not loaded yet.
        bytes_read: their size.
        lines_read: lines in them that are not blank, but for those that hold spans; what was rejected of those counts.
        spans_read: spans in them.
        rejected: rejected lines and spans.
        secrets_redacted: secrets that were replaced in texts of lines and spans that were loaded or rejected.
        lines_redacted: lines and spans that had any.
        hours: the hours built: those asked for, and earlier ones of the look-back that were missing.
        changed_hours: the hours among them whose rows may have changed.
        unreadable: what there is and cannot be read, with the reason.
        holds: why hours, asked for or looked back on, could not be built.
        main_rejection: where every line was rejected, the most frequent reason and where.
        told: by name of a file, what became of it that people should be told.
    """

    hours: HourRange
    files_seen: int = 0
    files_read: list[str] = field(default_factory=list)
    bytes_read: int = 0
    lines_read: int = 0
    spans_read: int = 0
    rejected: int = 0
    secrets_redacted: int = 0
    lines_redacted: int = 0
    changed_hours: set[datetime] = field(default_factory=set)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    holds: Sequence[Hold] = ()
    main_rejection: Rejection | None = None
    told: Mapping[str, str] = field(default_factory=dict)

    def add_read(self, files: Sequence[RawFile], found: Mapping[Part, Lines]) -> None:
        """Count what was found in files that were read, and those of the files that hold any of it."""
        names = {part.source_file for part in found}
        self.files_read += sorted(names)
        self.bytes_read += sum(file.size_bytes for file in files if file.source_file in names)
        for part, lines in found.items():
            if part.record_type == "span":
                self.spans_read += lines.count
            else:
                self.lines_read += lines.count
            self.rejected += lines.count if part.record_type == "rejected" else 0

    def add_built(self, changed_hours: AbstractSet[datetime]) -> None:
        """Count hours whose rows may have changed."""
        self.changed_hours |= changed_hours
        self.hours = HourRange(min(self.changed_hours | {self.hours.start}), self.hours.end)


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
    trusted_judgements: Sequence[str] = TRUSTED,
    limits: Limits | None = None,
) -> IngestReport:
    """Bring `tables` up to date for `hours`, and for the hours of the look-back before them.

    The windows of the first hours asked for reach back before them; building what is missing or late there in the same
    reading makes the result for an hour independent of where a range starts. Hours that retention dropped come back as
    far as components of the look-back look back themselves, so that these are what they were.

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
        trusted_judgements: patterns of logs whose judgements count as whose they say they are.
        limits: what is taken of logs; by default that of now.

    Raises:
        HealthAssetsError: a file is gone or cannot be read although an hour that retention dropped needs it to come
            back.
        UnreadableFilesError: more files cannot be read; nothing was changed that the transaction does not undo.
    """
    reach_hours = lookback_hours if trace_hours is None else trace_hours
    groups, hours = HourGroups(hours.ranges), HourRange(hours.start, hours.end)
    report = IngestReport(hours=hours, files_seen=len(files) + len(unreadable), unreadable=unreadable)
    limits = limits or current_limits()
    recognized, report.told = _settled(session, files, unreadable, trusted_judgements, limits)
    present = names_of(recognized.files) | Ledger(session).emptied()
    asked = Asked(session, hours, tables, present, lookback_hours, reach_hours)
    loading = _Loading(session, recognized, asked, targets, unreadable, trusted_judgements, limits)
    Ledger(session).write_unreadable(unreadable)

    due = loading.compare_with_ledger()
    found = loading.load_lines(due)
    report.add_read(files, found)
    cut = FileLedger(session).note_cut(loading.cut(due.lines_less(found)), recognized.before)
    less = {name: CUT.format(counted(lines, "line")) for name, lines in cut.items()}
    report.told = {**less, **report.told}
    report.main_rejection = loading.main_rejection
    report.secrets_redacted, report.lines_redacted = loading.redacted
    changed = due.changed_by(found)
    changed |= loading.put_traces_together(due, changed)
    report.holds = loading.hold()

    touched = _touched_hours(asked, changed)
    first_event_hour, reach = Ledger(session).first_event_hour(), groups.extended_back(lookback_hours - 1)
    never_built = MaterializedHours(session).missing(asked.tables, reach, asked.hours, first_event_hour)
    built = touched["raw_logs"] | never_built
    built -= asked.held
    report.add_built(built | (asked.restored_hours - asked.held))
    loading.keep_winners(report.hours)
    if "executions" in asked.tables:
        touched["executions"] |= resolve_usage(session, report.hours, lookback_hours)
    for table, others in loading.apply_new_targets().items() if with_new_targets else ():
        touched[table] |= others
        built |= others - asked.held
        report.add_built(others - asked.held)
    _note_materialized(session, asked, built, touched)
    return report


def _settled(
    session: Session,
    files: Sequence[RawFile],
    unreadable: Mapping[str, str],
    trusted: Sequence[str],
    limits: Limits,
) -> tuple[Recognized, dict[str, str]]:
    """Recognize the files and bring ledger and tables in step with them; the texts say what to tell of files."""
    ledger = FileLedger(session)
    known = ledger.known(limits.until)
    recognized = recognize(known, files, unreadable, unpacked_bytes=limits.unpacked_bytes, trusted=trusted)
    return recognized, ledger.settle(known, recognized)


class _Loading:
    """The steps of a run that read files and change rows, each with its part of the ledger.

    Args:
        session: a write session.
        recognized: the raw logs that there are now, and what became of those that were read.
        asked: what is to be brought up to date.
        targets: targets that resolve SLA breaches.
        unreadable: what cannot be read.
        trusted_judgements: patterns of logs whose judgements count as whose they say they are.
        limits: what is taken of the files.
    """

    def __init__(
        self,
        session: Session,
        recognized: Recognized,
        asked: Asked,
        targets: Targets,
        unreadable: Mapping[str, str],
        trusted_judgements: Sequence[str],
        limits: Limits,
    ) -> None:
        self._session = session
        self._recognized = recognized
        self._asked = asked
        self._targets = targets
        self._unreadable = unreadable
        self._trusted_judgements = trusted_judgements
        self._limits = limits
        self._future: dict[str, datetime] = {}
        """By file that was read, the earliest of its events that are in the future."""
        self._ledger = Ledger(session)
        self.main_rejection: Rejection | None = None
        self._identities: dict[str, Identity] = {}
        self.redacted = (0, 0)
        """Secrets that were replaced, and lines and spans that had any."""
        self._kept_back: dict[Part, int] = {}
        """Parts that should be loaded and cannot be read, with their records."""
        self._overdue: set[Part] = set()
        """Parts of these for which their hours have waited for long enough."""
        self._filled_hours: set[datetime] = set()
        """Hours whose tables got rows from files, whether or not these are others than before."""

    def compare_with_ledger(self) -> Due:
        """Find out which files have changed and which parts the tables lack; what they have wrongly counts as lacking.

        Raises:
            HealthAssetsError: a file is gone, or cannot be read, that a dropped part has to come back from.
        """
        asked, ledger = self._asked, self._ledger
        new, changed = self._recognized.new, self._recognized.changed
        before = {entry.part: entry for entry in ledger.entries(names_of(changed))}
        ledger.unload_damaged(asked.hours, asked.tables)
        seen_by_traces = asked.span.extended_back(asked.trace_hours).extended_forward(asked.trace_hours)
        ledger.unload_damaged(seen_by_traces, ["spans"])
        lost = {part for part in FileLedger(self._session).write_off() if asked.includes(part)}
        not_loaded = set(ledger.not_loaded())
        ledger.unload(part for part in before if asked.includes(part))
        known = self._waiting()
        waiting = {part: lines for part, lines in known.items() if asked.includes(part)}
        restored = {part: lines for part, lines in (known | self._kept_back).items() if asked.restores(part)}
        _require(restored, asked.present, self._unreadable)
        waiting = {part: lines for part, lines in waiting.items() if part.source_file in asked.present}
        return Due(
            new=new,
            changed=changed,
            before=before,
            waiting=waiting,
            not_loaded=not_loaded,
            lost=lost,
            traces=traces_of(self._session, _spans(waiting)),
        )

    def _waiting(self) -> dict[Part, int]:
        """Parts that must be loaded, with their records; what follows from spans is not among them."""
        asked, ledger = self._asked, self._ledger
        hours = asked.reach if any(asked.restored.values()) else asked.span
        there = asked.present | ledger.known_among(self._unreadable)
        waiting = ledger.waiting(hours, [table for table in asked.tables if table != "spans"], there)
        waiting |= ledger.waiting(EVER, ["spans"], there, with_dropped=False)
        for back in contiguous(asked.restored["spans"]):
            waiting |= ledger.waiting(back, ["spans"], there)
        self._kept_back = {
            part: lines for part, lines in waiting.items() if lines and is_among(self._unreadable, part.source_file)
        }
        overdue = {(hold.hour, hold.source_file) for hold in Holds(self._session).overdue(asked.span)}
        may_hold = self._limits.hold > timedelta(0)
        self._overdue = {part for part in self._kept_back if not may_hold or (part.hour, part.source_file) in overdue}
        # what is loaded beside them wins or loses anew as soon as they can be read
        ledger.unload({*_spans(self._kept_back), *self._overdue})
        asked.held = {part.hour for part in self._kept_back.keys() - self._overdue if part.hour in asked.span}
        return {
            part: lines for part, lines in waiting.items() if part.source_file != TRACES and part not in self._kept_back
        }

    def load_lines(self, due: Due) -> dict[Part, Lines]:
        """Read what is due once, bring its lines into their tables, and account for them; gives what the files hold."""
        fresh = names_of(due.fresh)

        def is_wanted(part: Part) -> bool:
            return self._asked.includes(part) if part.source_file in fresh else part in due.waiting

        self._ledger.delete_rows(due.waiting)
        found = self._read(fresh | _names_with_lines(due.waiting), is_wanted)
        self._ledger.mark_loaded(due.waiting)
        self._ledger.forget(due.changed)
        entries = _entries(due.before, due.fresh_parts(found), self._asked)
        self._ledger.write(due.fresh, entries, self._identities, self._future)
        return found

    def cut(self, less: Mapping[Part, int]) -> dict[Part, int]:
        """The parts with fewer lines than before whose files were cut or replaced, not only read otherwise."""
        names = {part.source_file for part in less}
        files = [file for file in self._recognized.changed if file.source_file in names]
        before = {name: self._recognized.before[name].identity for name in names}
        gone = cut_or_replaced(files, before, self._identities, self._limits.unpacked_bytes)
        return {part: lines for part, lines in less.items() if part.source_file in gone}

    def put_traces_together(self, due: Due, changed: Iterable[Part]) -> set[Part]:
        """Bring what follows from spans up to date; gives the parts whose lines or rows are others than before.

        Args:
            due: what the tables lacked before lines were loaded.
            changed: parts that differ from before, now that they are.
        """
        asked = self._asked
        of_traces = {part for part in due.not_loaded if part.source_file == TRACES}
        put_off = {part.hour for part in of_traces if part.record_type == "span"}
        lacking = {part.hour for part in of_traces if asked.includes(part)}
        traces = pa.concat_tables([due.traces, traces_of(self._session, _spans(changed))])
        touched = touched_hours(self._session, traces, asked.trace_hours)
        hours = asked.restored_from_spans | lacking | touched | put_off
        incomplete = asked.away.seen_from(hours)
        if incomplete != put_off:
            self._ledger.put_off(incomplete)
        assembly = TraceAssembly(self._session, self._targets, asked.trace_hours, asked.includes)
        assembly.bring_up_to_date(hours - incomplete)
        self._read_again(self._ledger.beaten_beside(assembly.loaded, asked.present))
        return assembly.changed | (due.not_loaded & assembly.loaded)

    def _read_again(self, parts: Mapping[Part, int]) -> None:
        """Load parts once more whose records had lost against rows that were replaced."""
        self._ledger.delete_rows(parts)
        self._read(_names_with_lines(parts), lambda part: part in parts)
        self._ledger.mark_loaded(parts)

    def _read(self, names: AbstractSet[str], is_wanted: Callable[[Part], bool]) -> dict[Part, Lines]:
        """Read the files of these names once, and send every line that is wanted to its table."""
        files = [file for file in self._recognized.files if file.source_file in names]
        if not files:
            return {}
        notes: Notes = {}
        identities: Identities = {}
        with ExitStack() as stack:
            folder = stack.enter_context(temporary_folder())
            parser = stack.enter_context(reading(files, notes, identities, self._limits))
            stream = parser.records(self._targets, self._trusted_judgements)
            most_rejected = self._limits.rejected_lines
            router = Router(files, lambda *part: is_wanted(Part(*part)), stream.schema, folder, most_rejected)
            self._session.insert_arrow(STREAMED_TABLE, router.streamed(stream))
            spans = stack.enter_context(parser.spans(self._targets))
            if spans:
                router.read(spans)
            for table, rows in router.set_aside(rejected_hours(files, router.contents())):
                self._session.insert_arrow(table, rows)
            self.main_rejection = router.main_rejection
            self.redacted = (self.redacted[0] + router.secrets, self.redacted[1] + router.lines_with_secrets)
            self._ledger.write_notes(files, notes)
            self._identities |= {files[place].source_file: identity for place, identity in identities.items()}
            found = parts_of(files, router.contents())
            self._future |= future_of(files, router.contents())
        self._filled_hours |= {
            part.hour for part in found if is_wanted(part) and TABLE_OF_RECORD[part.record_type] in ID_OF_TABLE
        }
        return found

    def hold(self) -> list[Hold]:
        """Settle, now that all others are loaded, which hours are held, and note why; gives the causes.

        An hour whose tables lack nothing is not, although a log with lines of it cannot be read. What is overdue holds
        nothing, and stays noted.
        """
        asked, now = self._asked, self._session.now()
        asked.held &= {part.hour for part in self._ledger.not_loaded()} | asked.restored_hours
        found: Counter[tuple[datetime, str]] = Counter()
        for part, lines in self._kept_back.items():
            if part.hour in asked.held or part in self._overdue:
                found[part.hour, part.source_file] += lines
        holds = [
            Hold(
                hour=hour,
                source_file=name,
                reason=reason_of(self._unreadable, name),
                lines=lines,
                held_at=now,
                held_until=now + self._limits.hold,
            )
            for (hour, name), lines in sorted(found.items())
        ]
        known = Holds(self._session)
        is_all = set(asked.tables) >= set(RECORD_OF_TABLE)
        # lines for tables that nobody asked for may hold an hour
        others = [] if is_all else [*known.within(asked.span), *known.overdue(asked.span)]
        new = {(hold.hour, hold.source_file) for hold in holds}
        known.replace(asked.span, [*holds, *(hold for hold in others if (hold.hour, hold.source_file) not in new)])
        overdue = {(part.hour, part.source_file) for part in self._overdue}
        return [hold for hold in holds if (hold.hour, hold.source_file) not in overdue]

    def keep_winners(self, hours: HourRange) -> None:
        """Keep the greatest row (time, file, line) of one id in one hour, and account for the others.

        Args:
            hours: the hours built; those that merely got their rows once more are looked at, too.
        """
        hours = HourRange(min(self._filled_hours | {hours.start}), hours.end)
        for table in set(self._asked.tables) & set(ID_OF_TABLE):
            key, time = ID_OF_TABLE[table]
            order = [time, "source_file", "line_number"]
            losers = self._session.delete_duplicates(table, hours, ["hour", key], order, ["hour", part_source(table)])
            self._ledger.add_superseded(Counter(Part(name, RECORD_OF_TABLE[table], hour) for hour, name in losers))

    def apply_new_targets(self) -> dict[str, set[datetime]]:
        """Apply targets that changed since rows were loaded; gives by table the hours that have others now.

        Another limit of an SLA holds for the hours asked for. Another name, and other trust in a log's judgements, hold
        for all that their windows see, since an agent would be two in them.
        """
        session, asked = self._session, self._asked
        changed = {table: resolve_names(session, table, asked.span, self._targets) for table in asked.tables}
        if "executions" in asked.tables and resolve_slas(session, asked.hours, self._targets):
            changed["executions"] |= set(asked.hours)
        if "judgements" in asked.tables:
            changed["judgements"] |= resolve_judges(session, asked.span, self._trusted_judgements)
        return changed


def _spans(parts: Iterable[Part]) -> list[Part]:
    return [part for part in parts if part.record_type == "span"]


def _names_with_lines(parts: Mapping[Part, int]) -> set[str]:
    return {part.source_file for part, lines in parts.items() if lines}


def _require(restored: Mapping[Part, int], present: AbstractSet[str], unreadable: Mapping[str, str]) -> None:
    """Refuse to make hours that retention dropped from fewer lines than their scores were made from.

    They cannot be held: later hours, which would be built from them, would be built from nothing.
    """
    for part, lines in restored.items():
        name = part.source_file
        if not lines or name in present:
            continue
        is_there = is_among(unreadable, name)
        why = reason_of(unreadable, name) if is_there else f"the raw log {name} is gone"
        mend = "let it be read" if is_there else "put it back"
        raise HealthAssetsError(
            f"{why}, and the hour {part.hour:%Y-%m-%dT%H} cannot be built without the {counted(lines, 'line')} of "
            f"{name} that retention dropped; {mend}, or leave the hour as it is"
        )


def _entries(before: Mapping[Part, Entry], after: Mapping[Part, Lines], asked: Asked) -> list[Entry]:
    """The ledger's new entries of files that were read; what is not asked for stays loaded only if it is unchanged."""
    entries = []
    for part in before.keys() | after.keys():
        lines, old = after.get(part, NO_LINES), before.get(part, Entry(part=part, lines=NO_LINES, is_loaded=False))
        if asked.includes(part):
            entries += [Entry(part=part, lines=lines, is_loaded=True)] if lines.count else []
        else:
            is_same = lines == old.lines
            entries.append(
                Entry(
                    part=part,
                    lines=lines,
                    is_loaded=old.is_loaded and is_same,
                    superseded=old.superseded,
                    is_dropped=old.is_dropped and is_same,
                )
            )
    return entries


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
