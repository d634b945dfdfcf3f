"""Ingestion: bring the record tables of some hours up to date with the raw logs.

What belongs here: deciding which files to read, and sending every line to its table. What does not: parsing (`logs`)
and the account of what each file holds (`warehouse.ledger`).

How it stays exact. The ledger knows, for every file, kind of record and hour, a digest of the lines. A new or changed
file is read once; what it holds for the hours asked for goes straight into the tables, what it holds for other hours is
only counted and waits until a run asks for those. An hour is replaced file by file, all in one transaction, so it is
always either as it was or as a clean rebuild would make it. Spans alone are loaded for all hours of a file that is
read, because what follows from them may be for other hours than their own (`trace_assembly`).

What retention dropped comes back, whole hours at a time, when hours that need it are asked for, and never otherwise. So
spans of dropped hours are no exception: until then they are only counted, like every other line that nobody asked for.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from health_assets.errors import HealthAssetsError
from health_assets.hours import EVER, HOUR, HourRange, contiguous, floor_hour
from health_assets.logs.files import Notes, RawFile
from health_assets.logs.reader import Content, contents, reading
from health_assets.logs.routing import STREAMED_TABLE, Router
from health_assets.scoring.targets import resolve_sla
from health_assets.targets import Targets
from health_assets.trace_assembly import AwaySpans, TraceAssembly, touched_hours, traces_of
from health_assets.warehouse.ledger import NO_LINES, TRACES, Entry, Ledger, Lines, Part, part_source
from health_assets.warehouse.store import Session
from health_assets.warehouse.tables import FROM_SPANS, ID_OF_TABLE, RECORD_OF_TABLE, TABLE_OF_RECORD


@dataclass
class IngestReport:
    """What a run read and built.

    Args:
        files_seen: raw logs below the raw root.
        files_read: those read, because they are new, changed, or hold lines for these hours that were not loaded yet.
        bytes_read: their size.
        lines_read: lines in them that are not blank, but for those that hold spans; what was rejected of those counts.
        spans_read: spans in them.
        rejected: rejected lines and spans.
        hours: the hours built: those asked for, and earlier ones of the look-back that were missing.
        changed_hours: the hours among them whose rows may have changed.
    """

    hours: HourRange
    files_seen: int = 0
    files_read: list[str] = field(default_factory=list)
    bytes_read: int = 0
    lines_read: int = 0
    spans_read: int = 0
    rejected: int = 0
    changed_hours: set[datetime] = field(default_factory=set)

    def add_read(self, files: Sequence[RawFile], found: dict[Part, Lines]) -> None:
        """Count files that were read, of those in `found`."""
        names = {file.source_file for file in files}
        self.files_read += sorted(names)
        self.bytes_read += sum(file.size_bytes for file in files)
        for part, lines in found.items():
            if part.source_file in names:
                if part.record_type == "span":
                    self.spans_read += lines.count
                else:
                    self.lines_read += lines.count
                self.rejected += lines.count if part.record_type == "rejected" else 0


def ingest(
    session: Session,
    files: Sequence[RawFile],
    hours: HourRange,
    tables: Sequence[str],
    targets: Targets,
    lookback_hours: int,
    *,
    trace_hours: int | None = None,
    with_new_targets: bool = True,
) -> IngestReport:
    """Bring `tables` up to date for `hours`, and for the hours of the look-back before them.

    The windows of the first hours asked for reach back before them; building what is missing or late there in the same
    reading makes the result for an hour independent of where a range starts. Hours that retention dropped come back as
    far as components of the look-back look back themselves, so that these are what they were.

    Args:
        session: a write session; everything happens in its transaction.
        files: all raw logs that there are now.
        hours: the hours asked for.
        tables: record tables asked for, values of `TABLE_OF_RECORD`; `spans` always comes along.
        targets: targets that resolve SLA breaches.
        lookback_hours: length of the look-back.
        trace_hours: how many hours apart spans of a trace may be and still see each other; by default the look-back.
        with_new_targets: whether targets that have changed apply to rows of `hours` that are there already.

    Raises:
        HealthAssetsError: a file cannot be read, or is gone although an hour asked for needs it.
    """
    report = IngestReport(hours, files_seen=len(files))
    ledger = Ledger(session)
    tables = [*tables] if "spans" in tables else [*tables, "spans"]
    trace_hours = lookback_hours if trace_hours is None else trace_hours
    span = hours.extended_back(lookback_hours - 1)
    # components of the look-back look back themselves; what was dropped there comes back whole or not at all
    reach = hours.extended_back(2 * (lookback_hours - 1))
    built = {table: session.materialized_hours(table, span) for table in tables}
    dropped = {table: session.dropped_hours(table, reach) for table in tables if table != "spans"}
    away = AwaySpans(session, trace_hours)
    put_together = set().union(*(dropped.get(table, set()) for table in FROM_SPANS))
    dropped["spans"] = away.bring_back({*span, *put_together})

    present = _names(files)

    def is_asked(part: Part) -> bool:
        table = TABLE_OF_RECORD[part.record_type]
        is_present = part.source_file in present or part.source_file == TRACES
        if part.record_type == "span":
            return (is_present or part.hour in hours) and part.hour not in away
        is_before = part.hour in span or part.hour in dropped.get(table, ())
        return table in tables and (part.hour in hours or (is_before and is_present))

    new, changed = ledger.unread(files)
    fresh = [*new, *changed]
    before = {entry.part: entry for entry in ledger.entries(changed)}
    ledger.unload_damaged(hours, tables)
    ledger.unload_damaged(span.extended_back(trace_hours).extended_forward(trace_hours), ["spans"])
    not_loaded = set(ledger.not_loaded())
    ledger.unload(part for part in before if is_asked(part))
    known = _waiting(ledger, reach if any(dropped.values()) else span, tables, present, dropped["spans"])
    waiting = {part: lines for part, lines in known.items() if is_asked(part)}
    was_dropped = {
        part: lines for part, lines in known.items() if part.hour in dropped[TABLE_OF_RECORD[part.record_type]]
    }
    _require(waiting | was_dropped, present)
    traces_before = traces_of(session, (part for part in waiting if part.record_type == "span"))
    ledger.delete_rows(waiting)
    found = _read(session, files, _names(fresh), waiting, is_asked, targets)
    report.add_read([file for file in files if file.source_file in _files_of(found)], found)
    after = {part: lines for part, lines in found.items() if part.source_file in _names(fresh)}
    ledger.mark_loaded(waiting)
    ledger.forget(changed)
    ledger.write(fresh, _entries(before, after, is_asked))

    late = {part for part in before.keys() | after.keys() if _lines_of(before, part) != after.get(part, NO_LINES)}
    late |= not_loaded & waiting.keys()
    assembly = TraceAssembly(session, targets, trace_hours, is_asked)
    changed_spans = [part for part in late if part.record_type == "span"]
    traces = pa.concat_tables([traces_before, traces_of(session, changed_spans)])
    put_together |= {part.hour for part in not_loaded if part.source_file == TRACES and is_asked(part)}
    put_off = {part.hour for part in not_loaded if part.source_file == TRACES and part.record_type == "span"}
    put_together |= touched_hours(session, traces, trace_hours) | put_off
    incomplete = away.seen_from(put_together)
    if incomplete != put_off:
        ledger.put_off(incomplete)
    assembly.bring_up_to_date(put_together - incomplete)
    _read_again(session, files, ledger.beaten_beside(assembly.loaded, present), targets)
    late |= assembly.changed | (not_loaded & assembly.loaded)

    touched: dict[str, set[datetime]] = {"raw_logs": set(), **{table: set() for table in tables}}
    for part in late:
        if not is_asked(part):
            continue
        touched[TABLE_OF_RECORD[part.record_type]].add(part.hour)
        if part.record_type != "span" or part.hour in span:
            touched["raw_logs"].add(part.hour)
    first = session.first_event_hour() or hours.start
    never_built = {
        hour for hour in span if (hour >= first or hour in hours) and any(hour not in done for done in built.values())
    }
    changed_hours = touched["raw_logs"] | never_built
    report.changed_hours = changed_hours.union(*(own for table, own in dropped.items() if table != "spans"))
    report.hours = HourRange(min(report.changed_hours | {hours.start}), hours.end)
    _keep_winners(session, ledger, report.hours, tables)
    if "executions" in tables and with_new_targets and _resolve_slas_again(session, hours, targets):
        touched["executions"] |= set(hours)
        changed_hours |= set(hours)
        report.changed_hours |= set(hours)
    for table, own_hours in touched.items():
        noted = changed_hours | dropped.get(table, set())
        if table == "spans":
            noted = {hour for hour in noted | own_hours if hour not in away}
        for changed_range in contiguous(noted):
            session.note_materialized(table, changed_range, own_hours & set(changed_range))
    return report


def _waiting(
    ledger: Ledger, span: HourRange, tables: Sequence[str], present: set[str], spans_back: set[datetime]
) -> dict[Part, int]:
    """Parts that must be loaded, with their records; what follows from spans is not among them."""
    of_files = ledger.waiting(span, [table for table in tables if table != "spans"], present)
    waiting = of_files | ledger.waiting(EVER, ["spans"], present, with_dropped=False)
    for hours in contiguous(spans_back):
        waiting |= ledger.waiting(hours, ["spans"], present)
    return {part: lines for part, lines in waiting.items() if part.source_file != TRACES}


def _read_again(session: Session, files: Sequence[RawFile], parts: dict[Part, int], targets: Targets) -> None:
    """Load parts once more whose records had lost against rows that were replaced."""
    ledger = Ledger(session)
    ledger.delete_rows(parts)
    _read(session, files, set(), parts, lambda _: False, targets)
    ledger.mark_loaded(parts)


@dataclass(frozen=True)
class Unread:
    """What is needed to tell which hours' tables no longer agree with the logs, without holding the warehouse.

    Args:
        files: new and changed files.
        entries: what the ledger says of the changed ones.
        not_loaded: parts that are known, but not in their hours' tables.
    """

    files: Sequence[RawFile]
    entries: Sequence[Entry]
    not_loaded: Sequence[Part]


def unread(session: Session, files: Sequence[RawFile]) -> Unread:
    """Look up what there is to compare; parts whose file is gone are left out, since nothing can be done for them."""
    ledger = Ledger(session)
    new, changed = ledger.unread(files)
    present = _names(files)
    waiting = [part for part in ledger.not_loaded() if part.source_file in present or part.source_file == TRACES]
    return Unread(new + changed, ledger.entries(changed), waiting)


def late_parts(found: Unread, most_bytes: int | None = None) -> dict[Part, Lines]:
    """Parts that differ from what the tables were built with, with their lines now; reads new and changed files.

    Args:
        found: what `unread` gave.
        most_bytes: read no more files once so many bytes have been read; what is left is seen another time.
    """
    files, size_bytes = [], 0
    for file in found.files:
        if most_bytes is None or size_bytes < most_bytes:
            files.append(file)
            size_bytes += file.size_bytes
    now = _parts(files, contents(files)) if files else {}
    before = {entry.part: entry.lines for entry in found.entries if entry.part.source_file in _names(files)}
    late = {part: now.get(part, NO_LINES) for part in before.keys() | now.keys() if before.get(part) != now.get(part)}
    return dict.fromkeys(found.not_loaded, NO_LINES) | late


def hours_with_events(session: Session | None, files: Sequence[RawFile]) -> HourRange | None:
    """From the first to the last hour of which the logs hold an event; None where they hold none.

    Reads files that the warehouse does not know yet.

    Args:
        session: a session on the warehouse; None before there is one.
        files: all raw logs that there are now.
    """
    found = unread(session, files) if session else Unread(files, [], [])
    known = [part.hour for part in late_parts(found) if part.record_type != "rejected"]
    if session:
        known += Ledger(session).event_hours(_names(files) - _names(found.files))
    return HourRange(min(known), max(known) + HOUR) if known else None


def _names(files: Sequence[RawFile]) -> set[str]:
    return {file.source_file for file in files}


def _files_of(parts: Iterable[Part]) -> set[str]:
    return {part.source_file for part in parts}


def _parts(files: Sequence[RawFile], found: Sequence[Content]) -> dict[Part, Lines]:
    """The parts of the files that were read; rejected lines get the hour that the contract gives them."""
    hours = _rejected_hours(files, found)
    return {
        Part(
            files[content.file_id].source_file,
            content.record_type,
            content.hour or hours[files[content.file_id].source_file],
        ): Lines(content.lines, str(content.digest))
        for content in found
    }


def _rejected_hours(files: Sequence[RawFile], found: Sequence[Content]) -> dict[str, datetime]:
    """The hour of each file's rejected lines: that of its earliest good event, else of its modification time."""
    hours = {file.source_file: floor_hour(datetime.fromtimestamp(file.modified_ns // 10**9, UTC)) for file in files}
    events = [(content.file_id, content.hour) for content in found if content.hour]
    for file_id, hour in sorted(events, reverse=True):
        hours[files[file_id].source_file] = hour
    return hours


def _lines_of(entries: Mapping[Part, Entry], part: Part) -> Lines:
    return entries[part].lines if part in entries else NO_LINES


def _entries(
    before: Mapping[Part, Entry], after: Mapping[Part, Lines], is_asked: Callable[[Part], bool]
) -> list[Entry]:
    """The ledger's new entries of files that were read; what is not asked for stays loaded only if it is unchanged."""
    entries = []
    for part in before.keys() | after.keys():
        lines, old = after.get(part, NO_LINES), before.get(part, Entry(part, NO_LINES, is_loaded=False))
        if is_asked(part):
            entries += [Entry(part, lines, is_loaded=True)] if lines.count else []
        else:
            is_same = lines == old.lines
            entries.append(Entry(part, lines, old.is_loaded and is_same, old.superseded, old.is_dropped and is_same))
    return entries


def _require(waiting: dict[Part, int], present: set[str]) -> None:
    for part, lines in waiting.items():
        if lines and part.source_file not in present:
            raise HealthAssetsError(
                f"the raw log {part.source_file} is gone, and the hour {part.hour:%Y-%m-%dT%H} cannot be built "
                f"without its {lines} lines; put it back, or leave the hour as it is"
            )


def _read(
    session: Session,
    files: Sequence[RawFile],
    fresh: set[str],
    waiting: dict[Part, int],
    is_asked: Callable[[Part], bool],
    targets: Targets,
) -> dict[Part, Lines]:
    """Read fresh files and those with waiting parts once, and send every line that is asked for to its table."""
    needed = fresh | {part.source_file for part, lines in waiting.items() if lines}
    needed_files = [file for file in files if file.source_file in needed]
    if not needed_files:
        return {}

    def is_wanted(source_file: str, record_type: str, hour: datetime) -> bool:
        part = Part(source_file, record_type, hour)
        return is_asked(part) if source_file in fresh else part in waiting

    notes: Notes = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="health-assets-")))
        parser = stack.enter_context(reading(needed_files, notes))
        stream = parser.records(targets)
        router = Router(needed_files, is_wanted, stream.schema, folder)
        session.insert_arrow(STREAMED_TABLE, router.streamed(stream))
        spans = stack.enter_context(parser.spans())
        if spans:
            router.read(spans)
        for table, rows in router.set_aside(_rejected_hours(needed_files, router.contents())):
            session.insert_arrow(table, rows)
        Ledger(session).write_notes(needed_files, notes)
        return _parts(needed_files, router.contents())


def _keep_winners(session: Session, ledger: Ledger, hours: HourRange, tables: Sequence[str]) -> None:
    """Of the rows with one id in one hour keep the greatest (time, file, line), and account for the others."""
    for table in set(tables) & set(ID_OF_TABLE):
        key, time = ID_OF_TABLE[table]
        order = [time, "source_file", "line_number"]
        losers = session.delete_duplicates(table, hours, ["hour", key], order, ["hour", part_source(table)])
        ledger.add_superseded(Counter(Part(name, RECORD_OF_TABLE[table], hour) for hour, name in losers))


def _resolve_slas_again(session: Session, hours: HourRange, targets: Targets) -> bool:
    """Apply targets that changed since the rows were loaded; gives whether any row differs."""
    stored = session.hours_of("executions", hours)
    resolved = resolve_sla(stored.rename(stored_sla_breached="sla_breached"), targets)
    differing = resolved.filter(resolved.sla_breached != resolved.stored_sla_breached).count()
    if not session.arrow(differing.as_table())[0][0].as_py():
        return False
    session.rewrite_hours("executions", hours, resolved)
    return True
