"""Ingestion: bring the record tables of some hours up to date with the raw logs.

What belongs here: deciding which files to read, sending every line to its table, and keeping `raw_logs`, the account of
what each file holds for each hour and whether the hour's table has it. What does not: parsing (`logs`) and SQL
plumbing (`warehouse.store`).

How it stays exact. `raw_logs` has a row per (file, kind of record, hour) with a digest of the lines. A new or changed
file is read once; what it holds for the hours asked for goes straight into the tables, what it holds for other hours is
only counted and stays `is_loaded = false` until a run asks for those hours. An hour is replaced file by file, all in
one transaction, so it is always either as it was or as a clean rebuild would make it.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.errors import HealthAssetsError
from health_assets.hours import HourRange, contiguous, floor_hour
from health_assets.logs.files import RawFile
from health_assets.logs.reader import ID_OF_TABLE, TABLE_OF_RECORD, Content, contents, records
from health_assets.scoring.targets import resolve_sla
from health_assets.targets import Targets
from health_assets.warehouse.store import Session
from health_assets.warehouse.tables import columns_of

RECORD_OF_TABLE = {table: record for record, table in TABLE_OF_RECORD.items()}
STREAMED_TABLE = "executions"
"""The kind of record that most lines are: its rows flow into the warehouse while files are read; others wait on disk."""


@dataclass
class IngestReport:
    """What a run read.

    Args:
        files_seen: raw logs below the raw root.
        files_read: those read, because they are new, changed, or hold lines for these hours that were not loaded yet.
        bytes_read: their size.
        lines_read: lines in them that are not blank.
        rejected: rejected lines among them.
        hours: the hours built: those asked for, and earlier ones of the look-back that were missing.
        changed_hours: the hours among them whose rows may have changed.
    """

    files_seen: int = 0
    files_read: list[str] = field(default_factory=list)
    bytes_read: int = 0
    lines_read: int = 0
    rejected: int = 0
    hours: HourRange | None = None
    changed_hours: set[datetime] = field(default_factory=set)


@dataclass(frozen=True)
class Part:
    """The lines of one kind of one file for one hour: the unit that is loaded or not."""

    source_file: str
    record_type: str
    hour: datetime


def ingest(
    session: Session,
    files: Sequence[RawFile],
    hours: HourRange,
    tables: Sequence[str],
    targets: Targets,
    lookback_hours: int,
) -> IngestReport:
    """Bring `tables` up to date for `hours`, and for hours of the look-back before them that were never built.

    The windows of the first hours asked for reach back before them; building what is missing there in the same reading
    makes the result for an hour independent of where a range starts.

    Args:
        session: a write session; everything happens in its transaction.
        files: all raw logs that there are now.
        hours: the hours asked for.
        tables: record tables asked for, values of `TABLE_OF_RECORD`.
        targets: targets that resolve SLA breaches.
        lookback_hours: length of the look-back.

    Raises:
        HealthAssetsError: a file cannot be read, or is gone although an hour to build needs it.
    """
    report = IngestReport(files_seen=len(files))
    span = hours.extended_back(lookback_hours - 1)
    built = {table: session.materialized_hours(table, span) for table in tables}
    new, changed = _unread(session, files)
    if changed:
        _account_again(session, changed, report)
    _unload_damaged(session, hours, tables)

    def is_asked(part: Part) -> bool:
        table = TABLE_OF_RECORD[part.record_type]
        return table in built and (part.hour in hours or (part.hour in span and part.hour not in built[table]))

    waiting = {part: lines for part, lines in _waiting(session, span, tables).items() if is_asked(part)}
    _require(waiting, {file.source_file for file in files})
    _forget(session, waiting)
    touched = {part.hour for part in waiting}
    new_names = {file.source_file for file in new}
    wanted_names = new_names | {part.source_file for part, lines in waiting.items() if lines}
    reading = [file for file in files if file.source_file in wanted_names]
    if reading:
        found = _load(
            session,
            reading,
            lambda part: part in waiting or (part.source_file in new_names and is_asked(part)),
            targets,
        )
        _account(session, new, found, is_asked)
        _report_read(report, [file for file in reading if file not in changed], found)
        touched |= {part.hour for part in found if part.source_file in new_names and is_asked(part)}
    _mark_loaded(session, waiting)

    first = session.first_event_hour() or hours.start
    never_built = {
        hour for hour in span if any(hour not in built[table] for table in tables) and (hour >= first or hour in hours)
    }
    report.hours = HourRange(min(never_built | touched | {hours.start}), hours.end)
    report.changed_hours = touched | never_built
    _keep_winners(session, report.hours, tables)
    if "executions" in tables:
        _resolve_slas_again(session, report.hours, targets)
    for table in ("raw_logs", *tables):
        for changed_range in contiguous(report.changed_hours):
            session.note_materialized(table, changed_range)
    return report


def _unread(session: Session, files: Sequence[RawFile]) -> tuple[list[RawFile], list[RawFile]]:
    """(new, changed) files."""
    stamps = session.query("SELECT source_file, size_bytes, modified_ns FROM raw_files")
    known = {name: (size, modified) for name, size, modified in stamps}
    new = [file for file in files if file.source_file not in known]
    changed = [file for file in files if known.get(file.source_file, _stamp(file)) != _stamp(file)]
    return new, changed


def changed_hours(session: Session | None, files: Sequence[RawFile]) -> set[datetime]:
    """Hours whose tables no longer agree with the raw logs, or never did.

    New and changed files are read to find out; nothing is written.
    """
    if session is None:
        return {part.hour for part in _parts(files, contents(files))}
    new, changed = _unread(session, files)
    unread = new + changed
    stale = {row[0] for row in session.query("SELECT DISTINCT hour FROM raw_logs WHERE NOT is_loaded")}
    if not unread:
        return stale
    names = [file.source_file for file in unread]
    before = {
        Part(name, record, hour): (lines, digest)
        for name, record, hour, lines, digest in session.query(
            "SELECT source_file, record_type, hour, lines, digest FROM raw_logs WHERE source_file IN (SELECT unnest(?))",
            [names],
        )
    }
    now = _parts(unread, contents(unread))
    return stale | {
        part.hour for part in before.keys() | now.keys() if before.get(part, (0, "")) != now.get(part, (0, ""))
    }


def _stamp(file: RawFile) -> tuple[int, int]:
    return file.size_bytes, file.modified_ns


def _parts(files: Sequence[RawFile], found: Sequence[Content]) -> dict[Part, tuple[int, str]]:
    """Lines and digest of every part; rejected lines get the hour of their file's earliest event, else of its mtime."""
    earliest: dict[int, datetime] = {}
    for content in found:
        if content.hour is not None:
            earliest[content.file_id] = min(content.hour, earliest.get(content.file_id, content.hour))
    parts: dict[Part, tuple[int, str]] = {}
    for content in found:
        file = files[content.file_id]
        hour = content.hour or earliest.get(content.file_id) or _hour_modified(file)
        parts[Part(file.source_file, content.record_type, hour)] = (content.lines, str(content.digest))
    return parts


def _hour_modified(file: RawFile) -> datetime:
    return floor_hour(datetime.fromtimestamp(file.modified_ns / 1e9, UTC))


def _account_again(session: Session, changed: Sequence[RawFile], report: IngestReport) -> None:
    """Compare what changed files hold now with the account, and mark exactly the parts that differ as not loaded."""
    found = contents(changed)
    now = _parts(changed, found)
    names = [file.source_file for file in changed]
    before = {
        Part(name, record, hour): row
        for name, record, hour, *row in session.query(
            "SELECT source_file, record_type, hour, lines, digest, is_loaded, superseded FROM raw_logs WHERE source_file IN (SELECT unnest(?))",
            [names],
        )
    }
    rows = []
    for part in before.keys() | now.keys():
        lines, digest = now.get(part, (0, ""))
        old_lines, old_digest, is_loaded, superseded = before.get(part, (0, "", False, 0))
        is_same = (lines, digest) == (old_lines, old_digest)
        if lines or old_lines or not is_loaded:
            rows.append((part, lines, digest, is_loaded and is_same, superseded))
    session.query("DELETE FROM raw_logs WHERE source_file IN (SELECT unnest(?))", [names])
    session.query("DELETE FROM raw_files WHERE source_file IN (SELECT unnest(?))", [names])
    _write_parts(session, rows)
    _write_files(session, changed, now)
    _report_read(report, changed, now)


def _unload_damaged(session: Session, hours: HourRange, tables: Sequence[str]) -> None:
    """Mark parts whose rows in the tables are not as many as the account says; the run then loads them again."""
    for table in tables:
        session.query(
            f"""
            UPDATE raw_logs SET is_loaded = false
            FROM (
                SELECT parts.source_file, parts.hour FROM raw_logs AS parts
                LEFT JOIN (
                    SELECT hour, source_file, count(*) AS rows FROM {table} WHERE hour >= $start AND hour < $end GROUP BY ALL
                ) AS loaded ON loaded.hour = parts.hour AND loaded.source_file = parts.source_file
                WHERE parts.record_type = $record AND parts.hour >= $start AND parts.hour < $end AND parts.is_loaded
                    AND parts.lines - parts.superseded <> coalesce(loaded.rows, 0)
            ) AS damaged
            WHERE raw_logs.source_file = damaged.source_file AND raw_logs.hour = damaged.hour AND raw_logs.record_type = $record
            """,
            {"record": RECORD_OF_TABLE[table], "start": hours.start, "end": hours.end},
        )


def _waiting(session: Session, hours: HourRange, tables: Sequence[str]) -> dict[Part, int]:
    """Parts of these hours that must be loaded, with their lines.

    Where a part is replaced, lines of other files that had lost against it may win now, so those are loaded again too.
    """
    rows = session.query(
        """
        WITH asked AS (
            SELECT * FROM raw_logs
            WHERE hour >= $start AND hour < $end AND record_type IN (SELECT unnest($records))
        ), touched AS (SELECT DISTINCT hour, record_type FROM asked WHERE NOT is_loaded)
        SELECT source_file, record_type, hour, lines FROM asked SEMI JOIN touched USING (hour, record_type)
        WHERE NOT is_loaded OR superseded > 0
        """,
        {"start": hours.start, "end": hours.end, "records": [RECORD_OF_TABLE[table] for table in tables]},
    )
    return {Part(name, record, hour): lines for name, record, hour, lines in rows}


def _require(waiting: dict[Part, int], present: set[str]) -> None:
    for part, lines in waiting.items():
        if lines and part.source_file not in present:
            raise HealthAssetsError(
                f"the raw log {part.source_file} is gone, and the hour {part.hour:%Y-%m-%dT%H} cannot be built without its {lines} lines; "
                "put it back, or keep the hour as it is"
            )


def _forget(session: Session, waiting: dict[Part, int]) -> None:
    """Delete the rows that waiting parts have in the tables from before."""
    for record in {part.record_type for part in waiting}:
        parts = [part for part in waiting if part.record_type == record]
        session.query(
            f"""
            DELETE FROM {TABLE_OF_RECORD[record]} AS rows USING (SELECT unnest($files) AS source_file, unnest($hours) AS hour) AS parts
            WHERE rows.source_file = parts.source_file AND rows.hour = parts.hour
            """,
            {"files": [part.source_file for part in parts], "hours": [part.hour for part in parts]},
        )


def _mark_loaded(session: Session, waiting: dict[Part, int]) -> None:
    for record in {part.record_type for part in waiting}:
        parts = [part for part in waiting if part.record_type == record]
        values = {
            "files": [part.source_file for part in parts],
            "hours": [part.hour for part in parts],
            "record": record,
        }
        chosen = "(SELECT unnest($files) AS source_file, unnest($hours) AS hour) AS parts"
        match = (
            "raw_logs.source_file = parts.source_file AND raw_logs.hour = parts.hour AND raw_logs.record_type = $record"
        )
        session.query(f"UPDATE raw_logs SET is_loaded = true, superseded = 0 FROM {chosen} WHERE {match}", values)


def _load(
    session: Session, files: Sequence[RawFile], is_wanted: Callable[[Part], bool], targets: Targets
) -> dict[Part, tuple[int, str]]:
    """Read the files once and send every wanted line to its table; returns what they hold."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="health-assets-")))
        reader = stack.enter_context(records(files, targets))
        router = _Router(files, is_wanted, reader.schema, folder)
        stream = pa.RecordBatchReader.from_batches(router.schema_of(STREAMED_TABLE), router.streamed(reader))
        session.insert_arrow(STREAMED_TABLE, stream)
        for table, rows in router.waiting_rows():
            session.insert_arrow(table, rows)
        return router.parts()


class _Router:
    """Splits the stream of records by table, counts what it sees, and drops what was not asked for."""

    def __init__(
        self, files: Sequence[RawFile], is_wanted: Callable[[Part], bool], schema: pa.Schema, folder: Path
    ) -> None:
        self._files = files
        self._is_wanted = is_wanted
        self._schema = schema
        self._folder = folder
        self._writers: dict[str, pa.ipc.RecordBatchFileWriter] = {}
        self._counts: dict[tuple[int, str, datetime | None], tuple[int, int]] = {}

    def schema_of(self, table: str) -> pa.Schema:
        return pa.schema([self._schema.field(name) for name in columns_of(table)])

    def streamed(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Rows for the streamed table, while those for others go to files of their own."""
        for batch in reader:
            kinds = self._count(batch)
            for record_type in kinds:
                rows = self._wanted_rows(batch, record_type, kinds[record_type], is_alone=len(kinds) == 1)
                if TABLE_OF_RECORD[record_type] == STREAMED_TABLE:
                    yield rows.select(columns_of(STREAMED_TABLE))
                elif rows.num_rows:
                    self._set_aside(TABLE_OF_RECORD[record_type], rows)

    def _count(self, batch: pa.RecordBatch) -> dict[str, list[tuple[int, datetime | None]]]:
        keys = ["file_id", "record_type", "hour"]
        table = pa.Table.from_batches([batch.select([*keys, "fingerprint"])])
        grouped = table.group_by(keys).aggregate([("fingerprint", "count"), ("fingerprint", "sum")])
        kinds: dict[str, list[tuple[int, datetime | None]]] = {}
        for row in grouped.to_pylist():
            key = (row["file_id"], row["record_type"], row["hour"])
            lines, digest = self._counts.get(key, (0, 0))
            self._counts[key] = (lines + row["fingerprint_count"], (digest + row["fingerprint_sum"]) % 2**64)
            kinds.setdefault(row["record_type"], []).append((row["file_id"], row["hour"]))
        return kinds

    def _wanted_rows(
        self, batch: pa.RecordBatch, record_type: str, places: list[tuple[int, datetime | None]], *, is_alone: bool
    ) -> pa.RecordBatch:
        if record_type == "rejected":  # their hour is known only when their file has been read whole
            return batch.filter(pc.equal(batch["record_type"], record_type))
        wanted = [
            place for place in places if self._is_wanted(Part(self._files[place[0]].source_file, record_type, place[1]))
        ]
        if is_alone and len(wanted) == len(places):
            return batch
        chosen = pa.table(
            {
                "file_id": pa.array([file_id for file_id, _ in wanted], batch["file_id"].type),
                "hour": pa.array([hour for _, hour in wanted], batch["hour"].type),
                "record_type": pa.array([record_type] * len(wanted), pa.string()),
            }
        )
        rows = pa.table({"row": range(batch.num_rows), **{name: batch[name] for name in chosen.column_names}})
        kept = rows.join(chosen, keys=chosen.column_names, join_type="left semi")
        return batch.take(kept["row"].combine_chunks())

    def _set_aside(self, table: str, rows: pa.RecordBatch) -> None:
        if table not in self._writers:
            self._writers[table] = pa.ipc.new_file(str(self._folder / table), rows.schema)
        self._writers[table].write_batch(rows)

    def waiting_rows(self) -> Iterator[tuple[str, pa.Table]]:
        """(table, rows) of what was set aside."""
        hours = {part.source_file: part.hour for part in self.parts() if part.record_type == "rejected"}
        for table, writer in self._writers.items():
            writer.close()
            with pa.memory_map(str(self._folder / table)) as source:
                rows = pa.ipc.open_file(source).read_all()
                if table == "rejected_records":
                    rows = self._with_hours(rows, hours)
                yield table, rows.select(columns_of(table))

    def _with_hours(self, rejected: pa.Table, hours: dict[str, datetime]) -> pa.Table:
        kept = {name: hour for name, hour in hours.items() if self._is_wanted(Part(name, "rejected", hour))}
        rows = rejected.filter(pc.is_in(rejected["source_file"], pa.array(list(kept), pa.string())))
        hour = pa.array([kept[name] for name in rows["source_file"].to_pylist()], rejected.schema.field("hour").type)
        return rows.set_column(rows.schema.get_field_index("hour"), "hour", hour)

    def parts(self) -> dict[Part, tuple[int, str]]:
        """What the files hold."""
        return _parts(self._files, [Content(*key, *value) for key, value in self._counts.items()])


def _account(
    session: Session, new: Sequence[RawFile], found: dict[Part, tuple[int, str]], is_wanted: Callable[[Part], bool]
) -> None:
    names = {file.source_file for file in new}
    rows = [
        (part, lines, digest, is_wanted(part), 0)
        for part, (lines, digest) in found.items()
        if part.source_file in names
    ]
    _write_parts(session, rows)
    _write_files(session, new, found)


def _write_parts(session: Session, rows: Sequence[tuple[Part, int, str, bool, int]]) -> None:
    if not rows:
        return
    parts, lines, digests, loaded, superseded = zip(*rows, strict=True)
    session.insert_arrow(
        "raw_logs",
        pa.table(
            {
                "hour": pa.array([part.hour for part in parts], pa.timestamp("us", "UTC")),
                "source_file": [part.source_file for part in parts],
                "record_type": [part.record_type for part in parts],
                "lines": lines,
                "digest": digests,
                "is_loaded": loaded,
                "superseded": superseded,
            }
        ),
    )


def _write_files(session: Session, files: Sequence[RawFile], found: dict[Part, tuple[int, str]]) -> None:
    if not files:
        return
    lines = dict.fromkeys((file.source_file for file in files), 0)
    rejected = dict(lines)
    for part, (count, _) in found.items():
        if part.source_file in lines:
            lines[part.source_file] += count
            rejected[part.source_file] += count if part.record_type == "rejected" else 0
    session.insert_arrow(
        "raw_files",
        pa.table(
            {
                "source_file": [file.source_file for file in files],
                "size_bytes": [file.size_bytes for file in files],
                "modified_ns": [file.modified_ns for file in files],
                "lines": [lines[file.source_file] for file in files],
                "rejected": [rejected[file.source_file] for file in files],
            }
        ),
    )


def _report_read(report: IngestReport, files: Sequence[RawFile], found: dict[Part, tuple[int, str]]) -> None:
    names = {file.source_file for file in files}
    report.files_read += sorted(names)
    report.bytes_read += sum(file.size_bytes for file in files)
    for part, (lines, _) in found.items():
        if part.source_file in names:
            report.lines_read += lines
            report.rejected += lines if part.record_type == "rejected" else 0


def _keep_winners(session: Session, hours: HourRange, tables: Sequence[str]) -> None:
    """Of the rows with one id in one hour keep the greatest (time, file, line), and account for the others."""
    for table in set(tables) & set(ID_OF_TABLE):
        key, time = ID_OF_TABLE[table]
        span = {"start": hours.start, "end": hours.end}
        repeated = session.query(
            f"SELECT 1 FROM {table} WHERE hour >= $start AND hour < $end GROUP BY hour, {key} HAVING count(*) > 1 LIMIT 1",
            span,
        )
        if not repeated:
            continue
        losers = session.query(
            f"""
            DELETE FROM {table} WHERE rowid IN (
                SELECT rowid FROM {table} WHERE hour >= $start AND hour < $end
                QUALIFY row_number() OVER (PARTITION BY hour, {key} ORDER BY {time} DESC, source_file DESC, line_number DESC) > 1
            ) RETURNING hour, source_file
            """,
            span,
        )
        counted: dict[Part, int] = {}
        for hour, source_file in losers:
            part = Part(source_file, RECORD_OF_TABLE[table], hour)
            counted[part] = counted.get(part, 0) + 1
        session.query(
            """
            UPDATE raw_logs SET superseded = superseded + lost.rows
            FROM (SELECT unnest($files) AS source_file, unnest($hours) AS hour, unnest($rows) AS rows) AS lost
            WHERE raw_logs.source_file = lost.source_file AND raw_logs.hour = lost.hour AND raw_logs.record_type = $record
            """,
            {
                "files": [part.source_file for part in counted],
                "hours": [part.hour for part in counted],
                "rows": list(counted.values()),
                "record": RECORD_OF_TABLE[table],
            },
        )


def _resolve_slas_again(session: Session, hours: HourRange, targets: Targets) -> None:
    """Apply targets that changed since the rows were loaded; rows that were just loaded have them already."""
    stored = session.hours_of("executions", hours)
    resolved = resolve_sla(stored.rename(stored_sla_breached="sla_breached"), targets)
    differing = resolved.filter(resolved.sla_breached != resolved.stored_sla_breached).count()
    if session.arrow(differing.as_table())[0][0].as_py():
        session.rewrite_hours("executions", hours, resolved)
