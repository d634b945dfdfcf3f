"""Loading: the steps of an ingestion that change rows, each with its part of the ledger.

What belongs here: how rows of record tables come and go. What does not: in which order the steps follow, and what is
noted of the hours at the end (`ingestion`); what is asked for and lacking (`ingestion_scope`); reading files
(`file_reading`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from itertools import chain

from health_assets.core.errors import HealthAssetsError, UnreadableFilesError
from health_assets.core.formatting import counted
from health_assets.core.hours import EVER, NO_HOURS, contiguous
from health_assets.core.judges import Trust
from health_assets.core.targets import Targets
from health_assets.logs.decompression import decompressed_blocks
from health_assets.logs.file_matching import cut_or_replaced
from health_assets.logs.files import RawFile, head_of
from health_assets.logs.formats import taken_for
from health_assets.logs.formats.langfuse_traces import OPEN, OPEN_TRACE
from health_assets.logs.identity import Identity
from health_assets.logs.known_files import MatchedFiles
from health_assets.logs.limits import Limits
from health_assets.logs.mending import MENDED
from health_assets.logs.routing import Rejection, main_rejection
from health_assets.logs.stores import is_among, names_of, reason_of
from health_assets.logs.tally import REJECTED
from health_assets.logs.unicode import as_utf_8
from health_assets.pipeline.append_detection import NOTHING, Appended, detect_appends
from health_assets.pipeline.enrichment import resolve_judges, resolve_names, resolve_slas
from health_assets.pipeline.executor_sharding import faults_of
from health_assets.pipeline.file_reading import ReadResult, ReadTask, RowFilter, read_files
from health_assets.pipeline.ingestion_scope import IngestScope, LoadPlan
from health_assets.pipeline.superseding import add_up_violations, keep_winners
from health_assets.pipeline.trace_hours import (
    TraceAssembly,
    affected_hours,
    hours_of_other_services,
    traces_of,
)
from health_assets.schema.catalog import ID_OF_TABLE, TABLE_OF_RECORD, columns_of
from health_assets.schema.records import RECORD_TABLES
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.file_slices import EMPTY_SLICE, TRACES, Entry, FileSlice, SliceContent
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.session import Session

TOLD = (*MENDED, OPEN, OPEN_TRACE)
"""Notes of files that the run tells by name."""
GAP_HOURS = 48
"""Hours this near are looked at with one statement, since each has its price."""


class Loading:
    """The steps of one ingestion, to be taken in the order in which they stand here.

    Args:
        session: a write session.
        matched: the raw logs that there are now, and what became of those that were read.
        scope: the scope of the run.
        targets: targets that resolve SLA breaches.
        unreadable: files and folders that cannot be read, with the reason.
        trusted_judgements: the logs whose judgements count as whose they say they are.
        limits: limits on what is taken of the files.
        salt: salt of the digests of contents; empty where the warehouse has its own.
    """

    def __init__(
        self,
        session: Session,
        matched: MatchedFiles,
        scope: IngestScope,
        targets: Targets,
        unreadable: Mapping[str, str],
        trusted_judgements: Trust,
        limits: Limits,
        salt: str,
    ) -> None:
        self._session = session
        self._matched = matched
        self._scope = scope
        self._targets = targets
        self._unreadable = unreadable
        self._trusted_judgements = trusted_judgements
        self._limits = limits
        self._salt = salt
        self._future: dict[str, datetime] = {}
        """By file that was read, the earliest of its events that are in the future."""
        self._ledger = Ledger(session)
        self.main_rejection: Rejection | None = None
        self._identities: dict[str, Identity] = {}
        self.redacted = (0, 0)
        """Secrets that were replaced, and lines and spans that had any."""
        self.notices: dict[str, str] = {}
        """By file, near misses of a known format that were read, and records that are open still."""
        self._noted: set[str] = set()
        """Files that a reader of a foreign format read, and others of which anything was noted."""
        self._unreadable_slices: dict[FileSlice, int] = {}
        """Slices that should be loaded and cannot be read, with their records."""
        self._competing: set[datetime] = set()
        """Hours of which tables with ids lost or got rows, whether or not these are others than before."""
        self._hours_with_new_rows: dict[str, set[datetime]] = {table: set() for table in RECORD_TABLES}
        """By table, hours that got rows, which are made with the targets of now."""

    def plan_load(self) -> LoadPlan:
        """Find out which files have changed and which slices the tables lack; what they have wrongly counts as lacking.

        Raises:
            HealthAssetsError: a file is gone, or cannot be read, that a dropped slice has to come back from.
        """
        scope, ledger = self._scope, self._ledger
        ledger.load_again([kind for kind in TABLE_OF_RECORD if kind != "span"], scope.span, "raw_logs")
        for hours in contiguous(scope.restored["spans"]):
            ledger.load_again(["span"], hours, "spans")
        new, changed = self._matched.new, self._matched.changed
        before = {entry.file_slice: entry for entry in ledger.entries(names_of(changed))}
        ledger.unload_damaged(scope.hours, [table for table in RECORD_TABLES if table != "spans"])
        seen_by_traces = scope.span.extended_back(scope.trace_hours).extended_forward(scope.trace_hours)
        ledger.unload_damaged(seen_by_traces, ["spans"])
        lost = {file_slice for file_slice in FileLedger(self._session).write_off() if scope.includes(file_slice)}
        not_loaded = set(ledger.not_loaded())
        appended, known = self._unload_changed_files(before.keys())
        waiting = {file_slice: lines for file_slice, lines in known.items() if scope.includes(file_slice)}
        restored = {
            file_slice: lines
            for file_slice, lines in (known | self._unreadable_slices).items()
            if scope.restores(file_slice)
        }
        _require(restored, scope.present, self._unreadable)
        waiting = {
            file_slice: lines for file_slice, lines in waiting.items() if file_slice.source_file in scope.present
        }
        return LoadPlan(
            new=new,
            changed=changed,
            before=before,
            waiting=waiting,
            not_loaded=not_loaded,
            lost=lost,
            traces=traces_of(self._session, _spans(waiting)),
            appended=appended,
        )

    def _unload_changed_files(self, before: Collection[FileSlice]) -> tuple[Appended, dict[FileSlice, int]]:
        """Unload what is asked for of the changed files but those that only grew; gives these, and what must be loaded.

        A file that only grew is read as a whole where a table lacks rows of it, or where its lines compete anew.
        """
        scope, changed = self._scope, self._matched.changed
        entries = self._ledger.entries(names_of(changed))
        incomplete = {
            entry.file_slice.source_file
            for entry in entries
            if scope.includes(entry.file_slice) and not entry.is_loaded
        }
        # the proof of growth is not sent to other machines
        files = [file for file in changed if file.source_file not in incomplete and not self._session.is_distributed]
        appended = detect_appends(files, self._matched.before, entries, self._limits)
        while True:
            self._ledger.unload(
                file_slice
                for file_slice in before
                if scope.includes(file_slice) and file_slice.source_file not in appended.beginnings
            )
            known = self._waiting()
            wanted = {
                file_slice.source_file
                for file_slice in known
                if scope.includes(file_slice) or scope.restores(file_slice)
            }
            if not wanted & appended.beginnings.keys():
                return appended, known
            appended = appended.without(wanted)

    def _waiting(self) -> dict[FileSlice, int]:
        """Slices that must be loaded, with their records; what follows from spans is not among them."""
        scope, ledger = self._scope, self._ledger
        hours = scope.reach if any(scope.restored.values()) else scope.span
        waiting = ledger.waiting(hours, [table for table in RECORD_TABLES if table != "spans"])
        waiting |= ledger.waiting(EVER, RECORD_TABLES, with_dropped=False)
        for back in contiguous(scope.restored["spans"]):
            waiting |= ledger.waiting(back, ["spans"])
        self._unreadable_slices = {
            file_slice: lines
            for file_slice, lines in waiting.items()
            if lines and is_among(self._unreadable, file_slice.source_file)
        }
        return {
            file_slice: lines
            for file_slice, lines in waiting.items()
            if file_slice.source_file != TRACES and file_slice not in self._unreadable_slices
        }

    def load_lines(self, due: LoadPlan) -> dict[FileSlice, SliceContent]:
        """Read what is due once, bring its lines into their tables, and account for them; gives what the files hold."""
        fresh = names_of(due.fresh)
        self._ledger.delete_rows(due.waiting)
        self._competing |= _hours_with_ids(due.waiting)
        found = self._read(fresh | _names_with_lines(due.waiting), fresh, due.waiting, due.appended)
        self._ledger.mark_loaded(due.waiting)
        self._ledger.forget(due.changed)
        entries = _entries(due, due.fresh_slices(found), self._scope)
        self._ledger.write(due.fresh, entries, self._identities, self._future, self._noted)
        return found

    def cut(self, less: Mapping[FileSlice, int]) -> dict[FileSlice, int]:
        """The slices with fewer lines than before whose files were cut or replaced, not only read otherwise."""
        names = {file_slice.source_file for file_slice in less}
        files = [file for file in self._matched.changed if file.source_file in names]
        before = {name: self._matched.before[name].identity for name in names}
        gone = cut_or_replaced(files, before, self._identities, self._limits.unpacking)
        return {file_slice: lines for file_slice, lines in less.items() if file_slice.source_file in gone}

    def no_longer_recognized(self, due: LoadPlan, found: Mapping[FileSlice, SliceContent]) -> dict[str, int]:
        """The files that no format takes for its own since formats are declared otherwise, with their records before.

        Args:
            due: what was read.
            found: what the files hold now.

        Raises:
            HealthAssetsError: a file can no longer be read.
        """
        records = _records_by_file({file_slice: entry.lines for file_slice, entry in due.before.items()})
        without_records = records.keys() - _records_by_file(found).keys()
        return {
            file.source_file: records[file.source_file]
            for file in due.changed
            if file.source_file in without_records
            and self._matched.before[file.source_file].is_to_be_read_anew
            and not self._formats_of(file)
        }

    def _formats_of(self, file: RawFile) -> list[str]:
        head, _ = head_of(file, as_utf_8(decompressed_blocks(file, self._limits.unpacking)))
        return taken_for(file, head).names

    def assemble_traces(self, due: LoadPlan, changed: Iterable[FileSlice], *, with_new_targets: bool) -> set[FileSlice]:
        """Bring what follows from spans up to date; gives the slices whose lines or rows are others than before.

        Args:
            due: slices that the tables lacked before lines were loaded.
            changed: slices that differ from before, now that they are.
            with_new_targets: whether patterns of services that have changed apply to hours asked for that were built
                before; they apply in any case to what sees spans that changed.
        """
        scope = self._scope
        of_traces = {file_slice for file_slice in due.not_loaded if file_slice.source_file == TRACES}
        put_off = {file_slice.hour for file_slice in of_traces if file_slice.record_type == "span"}
        lacking = {file_slice.hour for file_slice in of_traces if scope.includes(file_slice)}
        session, services = self._session, self._targets.services
        touched = affected_hours(
            session, [due.traces, traces_of(session, _spans(changed))], scope.trace_hours, services
        )
        seen = {*(scope.span if with_new_targets else ()), *touched}
        for some in contiguous(seen, gap_hours=GAP_HOURS):
            touched |= hours_of_other_services(session, some, services, scope.trace_hours)
        hours = scope.restored_from_spans | scope.first_made_from_spans | lacking | touched | put_off
        hours = {hour for hour in hours if not scope.leaves_out(hour)}
        incomplete = scope.pruned_spans.seen_from(hours)
        if incomplete != put_off:
            self._ledger.put_off(incomplete)
        assembly = TraceAssembly(self._session, self._targets, scope.trace_hours, scope.includes)
        assembly.bring_up_to_date(hours - incomplete)
        self._competing |= _hours_with_ids(assembly.loaded)
        self._note_new_rows(assembly.loaded)
        return assembly.changed | (due.not_loaded & assembly.loaded)

    def _read(
        self,
        names: AbstractSet[str],
        fresh: AbstractSet[str],
        known: Collection[FileSlice],
        appended: Appended = NOTHING,
    ) -> dict[FileSlice, SliceContent]:
        """Read the files of these names once, and send every line that is wanted to its table; gives what they hold.

        Args:
            names: names of the files.
            fresh: those of which everything is wanted that is asked for.
            known: the slices that are wanted of all others.
            appended: those of which only what is new is read.

        Raises:
            UnreadableFilesError: files cannot be read.
        """
        files = [file for file in self._matched.files if file.source_file in names]
        if not files:
            return {}
        wanted = RowFilter(scope=self._scope, fresh=fresh, known=frozenset(known))
        whole = ReadTask(
            files=files,
            wanted=wanted,
            targets=self._targets,
            trusted_judgements=self._trusted_judgements,
            limits=self._limits,
            appended=appended,
            salt=self._salt or self._ledger.salt(),
        )
        tasks = [*whole.shards()] if self._session.is_distributed else [whole]
        results = self._session.insert_from_each(tasks, read_files, ReadResult)
        if faults := faults_of(files, results):
            raise UnreadableFilesError(faults)
        return self._merged(wanted, files, results, appended)

    def _merged(
        self, wanted: RowFilter, files: Sequence[RawFile], results: Sequence[ReadResult], appended: Appended
    ) -> dict[FileSlice, SliceContent]:
        """Note what was read of files; gives what they hold."""
        all_rejected = [result.rejections for result in results if result.rejections is not None]
        is_all = len(all_rejected) == len(results)
        self.main_rejection = main_rejection(chain.from_iterable(all_rejected)) if is_all else None
        secrets, lines = self.redacted
        self.redacted = (
            secrets + sum(result.secrets for result in results),
            lines + sum(result.lines_with_secrets for result in results),
        )
        notes: dict[str, Counter[str]] = {}
        found: dict[FileSlice, SliceContent] = {}
        for result in results:
            notes |= result.notes
            found |= result.found
            self._identities |= result.identities
            self._future |= result.future
        self.notices |= {name: sentence for name, own in notes.items() if (sentence := _sentences(own))}
        self._ledger.write_notes(names_of(files), notes)
        self._noted |= notes.keys()
        with_lines = [file_slice for file_slice, lines in appended.without_known(found).items() if lines]
        read = [file_slice for file_slice in with_lines if file_slice in wanted]
        self._competing |= _hours_with_ids(read)
        self._note_new_rows(read)
        return found

    def _note_new_rows(self, slices: Iterable[FileSlice]) -> None:
        for file_slice in slices:
            self._hours_with_new_rows[TABLE_OF_RECORD[file_slice.record_type]].add(file_slice.hour)

    def keep_winners(self) -> tuple[int, set[datetime]]:
        """Let one row of each agent and id stay in each hour, with the violations of all lines of an execution.

        Returns:
            How many lines another one superseded, and the hours whose executions have changed by it.
        """
        superseded, added_up = 0, set()
        for hours in contiguous(self._competing, gap_hours=GAP_HOURS):
            lines, back = keep_winners(self._session, hours, self._competing, self._targets)
            superseded += lines
            for table, own_hours in back.items():
                self._hours_with_new_rows[table] |= own_hours
            added_up |= add_up_violations(self._session, hours)
        return superseded, added_up

    def apply_new_targets(
        self, first_built: AbstractSet[datetime], *, with_new_targets: bool
    ) -> dict[str, set[datetime]]:
        """Apply targets that changed since rows were loaded; gives by table the hours that have others now.

        Hours that got rows in this load are of these targets as a whole, whether or not they were asked for. Another
        limit of an SLA holds for them and for the hours asked for. Another name, and other trust in a log's judgements,
        hold for all that their windows see, since an agent would be two in them; the windows of an hour that got rows
        are those of all hours that are made again for it.

        Args:
            first_built: hours that are built for the first time, to which the targets of now apply in any case.
            with_new_targets: whether they apply to hours asked for that were built before and got no rows.
        """
        session, scope, targets = self._session, self._scope, self._targets
        asked, looked_back_on = (scope.hours, scope.span) if with_new_targets else (NO_HOURS, NO_HOURS)
        span = contiguous({*looked_back_on, *first_built, *self._hours_around_new_rows()})
        of_slas = {*asked, *first_built, *self._hours_with_new_rows["executions"]}
        changed: dict[str, set[datetime]] = {}
        for table in RECORD_TABLES:
            changed[table] = set().union(*(resolve_names(session, table, hours, targets) for hours in span))
        for hours in contiguous(of_slas, gap_hours=GAP_HOURS):
            changed["executions"] |= resolve_slas(session, hours, targets, of_slas)
        for hours in span:
            changed["judgements"] |= resolve_judges(session, hours, self._matched.files, self._trusted_judgements)
        return changed

    def _hours_around_new_rows(self) -> set[datetime]:
        """The hours that windows see which see an hour that got rows of an agent."""
        others = self._scope.reach_hours - 1
        tables = [table for table in RECORD_TABLES if "agent_id_reported" in columns_of(table)]
        with_new_rows = set().union(*(self._hours_with_new_rows[table] for table in tables))
        ranges = (hours.extended_back(others).extended_forward(others) for hours in contiguous(with_new_rows))
        return {hour for hours in ranges for hour in hours}


def _records_by_file(slices: Mapping[FileSlice, SliceContent]) -> Counter[str]:
    """By file that has any, its records that were not rejected."""
    records: Counter[str] = Counter()
    for file_slice, content in slices.items():
        if file_slice.record_type != REJECTED and content.count:
            records[file_slice.source_file] += content.count
    return records


def _sentences(notes: Mapping[str, int]) -> str:
    return "; ".join(f"{count:,} × {note}" for note, count in notes.items() if note in TOLD)


def _hours_with_ids(slices: Iterable[FileSlice]) -> set[datetime]:
    """The hours of slices whose tables keep one row of each agent and id."""
    return {file_slice.hour for file_slice in slices if TABLE_OF_RECORD[file_slice.record_type] in ID_OF_TABLE}


def _spans(slices: Iterable[FileSlice]) -> list[FileSlice]:
    return [file_slice for file_slice in slices if file_slice.record_type == "span"]


def _names_with_lines(slices: Mapping[FileSlice, int]) -> set[str]:
    return {file_slice.source_file for file_slice, lines in slices.items() if lines}


def _require(restored: Mapping[FileSlice, int], present: AbstractSet[str], unreadable: Mapping[str, str]) -> None:
    """Refuse to make hours that retention dropped from fewer lines than their scores were made from.

    Later hours, which look back on them, would be made from nothing.
    """
    for file_slice, lines in restored.items():
        name = file_slice.source_file
        if not lines or name in present:
            continue
        is_there = is_among(unreadable, name)
        why = reason_of(unreadable, name) if is_there else f"the raw log {name} is gone"
        mend = "let it be read" if is_there else "put it back"
        raise HealthAssetsError(
            f"{why}, and the hour {file_slice.hour:%Y-%m-%dT%H} cannot be built without the "
            f"{counted(lines, 'line')} of {name} that retention dropped; {mend}, or leave the hour as it is"
        )


def _entries(due: LoadPlan, after: Mapping[FileSlice, SliceContent], scope: IngestScope) -> list[Entry]:
    """The ledger's new entries of files that were read; what is not asked for stays loaded only if it is unchanged."""
    before, entries = due.before, []
    for file_slice in before.keys() | after.keys():
        lines, old = (
            after.get(file_slice, EMPTY_SLICE),
            before.get(file_slice, Entry(file_slice=file_slice, lines=EMPTY_SLICE, is_loaded=False)),
        )
        if scope.includes(file_slice):
            if lines.count:
                entries.append(Entry(file_slice=file_slice, lines=lines, is_loaded=True))
        else:
            is_same = lines == old.lines
            is_late = scope.is_late(file_slice) and not (old.is_dropped and is_same)
            if lines.count or is_late:
                entries.append(
                    Entry(
                        file_slice=file_slice, lines=lines, is_loaded=old.is_loaded and is_same, is_dropped=not is_late
                    )
                )
    return entries
