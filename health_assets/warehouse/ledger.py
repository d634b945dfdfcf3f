"""The ledger: which slices of every raw log the hours' tables have, and from which raw root the warehouse was filled.

What belongs here: keeping the account of slices in `raw_logs`, of files in `raw_files`, of what was noted of them in
`raw_file_notes`, and of the raw root. What does not: what a slice is (`file_slices`), what the logs hold hour by hour
(`log_coverage`), what became of files (`file_ledger`), reading files (`logs`) and the rows of the record tables
(`pipeline.ingestion`).

`raw_logs` has one row per slice, with a digest. A slice `is_loaded` when its hour's table was built with exactly these
records.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.raw_roots import RawRoot, root_name
from health_assets.logs.files import RawFile
from health_assets.logs.formats.format_settings import settings_of
from health_assets.logs.identity import Identity
from health_assets.schema.catalog import RECORD_OF_TABLE, SUPERSEDED, TABLE_OF_RECORD
from health_assets.warehouse.file_rows import columns_of_identity, insert_files
from health_assets.warehouse.file_slices import (
    EMPTY_SLICE,
    TRACES,
    Entry,
    FileSlice,
    SliceContent,
    rows_by_slice,
    slice_source,
    tables_with_rows_of,
)
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import HOUR_TYPE, Session

UNREADABLE = "not read: "
"""How the note of a file begins that could not be read."""
ODD = "odd: "
"""How the note begins of what is odd about a file's name, time or place."""


class Ledger:
    """The ledger of a warehouse, within a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def entries(self, names: Iterable[str]) -> list[Entry]:
        """The ledger's entries of the files with these names."""
        rows = self._session.query(
            f"SELECT {_ENTRY} FROM raw_logs WHERE source_file IN (SELECT unnest(?))",
            [[*names]],
        )
        return [_entry(row) for row in rows]

    def of_traces(self, hours: HourRange) -> dict[FileSlice, Entry]:
        """The ledger's entries of records that were put together from spans."""
        rows = self._session.query(
            f"SELECT {_ENTRY} FROM raw_logs WHERE source_file = $source AND hour >= $start AND hour < $end",
            {"source": TRACES, "start": hours.start, "end": hours.end},
        )
        entries = [_entry(row) for row in rows]
        return {entry.file_slice: entry for entry in entries}

    def not_loaded(self) -> list[FileSlice]:
        """Slices that differ from what their hours' tables hold, without slices that retention dropped."""
        rows = self._session.query(
            "SELECT source_file, record_type, hour FROM raw_logs "
            "WHERE NOT is_loaded AND NOT coalesce(is_dropped, false)"
        )
        return [FileSlice(*row) for row in rows]

    def not_materialized(self, asset: str) -> list[FileSlice]:
        """Slices of hours whose records are loaded, and that an asset never had."""
        rows = self._session.query(
            "SELECT source_file, record_type, hour FROM raw_logs "
            "WHERE is_loaded AND record_type <> 'span' AND lines > coalesce(lost, 0) "
            "AND hour NOT IN (SELECT hour FROM partition_states WHERE asset = ?)",
            [asset],
        )
        return [FileSlice(*row) for row in rows]

    def emptied(self) -> set[str]:
        """Names of logs with slices that no file has any more, whose rows are still to be deleted."""
        rows = self._session.query("SELECT DISTINCT source_file FROM raw_logs WHERE lines = 0 AND NOT is_loaded")
        return {name for (name,) in rows} - {TRACES}

    def loaded_hours(self, tables: Iterable[str], before: datetime) -> dict[str, set[datetime]]:
        """By table, the hours before a time with records that it has."""
        found: dict[str, set[datetime]] = {table: set() for table in tables}
        rows = self._session.query(
            "SELECT DISTINCT record_type, hour FROM raw_logs "
            "WHERE is_loaded AND record_type IN (SELECT unnest(?)) AND hour < ?",
            [[RECORD_OF_TABLE[table] for table in found], before],
        )
        for record_type, hour in rows:
            found[TABLE_OF_RECORD[record_type]].add(hour)
        return found

    def load_again(self, record_types: Collection[str], hours: HourRange, asset: str) -> None:
        """Let slices of these hours be loaded that were left out, where the asset was never materialized."""
        self._session.query(
            "UPDATE raw_logs SET is_dropped = false WHERE is_dropped AND record_type IN (SELECT unnest(?)) "
            "AND hour >= ? AND hour < ? AND hour NOT IN (SELECT hour FROM partition_states WHERE asset = ?)",
            [[*record_types], hours.start, hours.end, asset],
        )

    def first_loaded(self, tables: Sequence[str], before: datetime) -> datetime | None:
        """The earliest hour before a time with records that these tables have; None where there is none."""
        [(first,)] = self._session.query(
            "SELECT min(hour) FROM raw_logs "
            "WHERE is_loaded AND lines > coalesce(lost, 0) AND record_type IN (SELECT unnest(?)) AND hour < ?",
            [[RECORD_OF_TABLE[table] for table in tables], before],
        )
        return first

    def drop(self, tables: Sequence[str], hours: HourRange) -> None:
        """Note that rows were dropped on purpose."""
        for shadow in (SUPERSEDED[table] for table in tables if table in SUPERSEDED):
            self._session.delete_hours(shadow, hours)
        self._session.query(
            "UPDATE raw_logs SET is_loaded = false, is_dropped = true "
            "WHERE is_loaded AND record_type IN (SELECT unnest(?)) AND hour >= ? AND hour < ?",
            [[RECORD_OF_TABLE[table] for table in tables], hours.start, hours.end],
        )

    def late_before(self, end: datetime) -> list[tuple[datetime, int]]:
        """Hours from the first dropped one to `end` with lines that no table ever had; and how many.

        Lines that are no longer there count as none; their hour is told all the same.
        """
        first = PartitionStates(self._session).dropped_from(but="spans")
        return self._session.query(
            """
            SELECT hour, cast(sum(lines) AS BIGINT) FROM raw_logs
            WHERE NOT is_loaded AND NOT coalesce(is_dropped, false) AND hour < $end AND hour >= $start
                AND hour IN (SELECT hour FROM partition_states)
            GROUP BY hour ORDER BY hour
            """,
            {"start": first or end, "end": end},
        )

    def lines_by_hour(self, record_type: str, hours: HourRange) -> dict[datetime, int]:
        """The number of records of a kind in the logs of each of these hours; hours without any are left out."""
        rows = self._session.query(
            "SELECT hour, CAST(sum(lines) AS BIGINT) FROM raw_logs "
            "WHERE record_type = ? AND hour >= ? AND hour < ? GROUP BY hour",
            [record_type, hours.start, hours.end],
        )
        return dict(rows)

    def require_root(self, root: RawRoot, files: Sequence[RawFile]) -> None:
        """Remember the raw root; files are known by their place below it, so another root is refused.

        A root that has merely moved still holds all known files, and is taken.

        Raises:
            HealthAssetsError: the warehouse was filled from another root.
        """
        if not self.knows_root(root):
            self.refuse_another_root(root, files)
            self._session.query("INSERT INTO raw_roots VALUES (?)", [root_name(root)])

    def knows_root(self, root: RawRoot) -> bool:
        """Whether the warehouse was filled from this raw root before."""
        return root_name(root) in self._roots()

    def refuse_another_root(self, root: RawRoot, files: Sequence[RawFile]) -> None:
        """Refuse a root that does not hold all known files; changes nothing.

        Raises:
            HealthAssetsError: the warehouse was filled from another root.
        """
        known = self._roots()
        sizes = {file.source_file: file.size_bytes for file in files}
        read = self._session.query("SELECT source_file, size_bytes FROM raw_files WHERE gone_at IS NULL")
        if known and not all(sizes.get(name, -1) >= size for name, size in read):
            raise HealthAssetsError(
                f"the warehouse was filled from the raw logs in {known[-1]}, and {root_name(root)} does not hold them "
                "all; use one warehouse for one raw root"
            )

    def _roots(self) -> list[str]:
        return [name for (name,) in self._session.query("SELECT root FROM raw_roots")]

    def salt(self) -> str:
        """The salt of this warehouse's digests of contents, made where there is none."""
        found = self._session.query("SELECT salt FROM digest_salt")
        if not found:
            found = [(secrets.token_hex(16),)]
            self._session.query("INSERT INTO digest_salt VALUES (?)", [*found[0]])
        [(salt,)] = found
        return salt

    def forget(self, files: Sequence[RawFile]) -> None:
        """Drop what the ledger says of these files."""
        names = [file.source_file for file in files]
        for table in ("raw_logs", "raw_files"):
            self._session.query(f"DELETE FROM {table} WHERE source_file IN (SELECT unnest(?))", [names])

    def write(
        self,
        files: Sequence[RawFile],
        entries: Sequence[Entry],
        identities: Mapping[str, Identity] = {},
        future_at: Mapping[str, datetime] = {},
        converted: Collection[str] = (),
    ) -> None:
        """Add files that the ledger does not have, with their slices.

        Args:
            files: the files.
            entries: their slices.
            identities: by file, what tells it under another name.
            future_at: by file, the earliest of its events that are in the future.
            converted: files that a reader of a foreign format made lines of.
        """
        self._write_entries(entries)
        lines = dict.fromkeys((file.source_file for file in files), 0)
        rejected = dict(lines)
        for entry in entries:
            lines[entry.file_slice.source_file] += entry.lines.count
            if entry.file_slice.record_type == "rejected":
                rejected[entry.file_slice.source_file] += entry.lines.count
        columns = {
            "source_file": [file.source_file for file in files],
            "size_bytes": [file.size_bytes for file in files],
            "modified_ns": [file.modified_ns for file in files],
            "changed_ns": [file.changed_ns for file in files],
            "lines": [lines[file.source_file] for file in files],
            "rejected": [rejected[file.source_file] for file in files],
            "future_at": [future_at.get(file.source_file) for file in files],
            "formats_digest": [
                settings_of(file).digest if rejected[file.source_file] or file.source_file in converted else None
                for file in files
            ],
        }
        insert_files(
            self._session,
            (
                {**dict(zip(columns, row, strict=True)), **columns_of_identity(identities.get(row[0]))}
                for row in zip(*columns.values(), strict=True)
            ),
        )

    def write_notes(self, names: Collection[str], notes: Mapping[str, Mapping[str, int]]) -> None:
        """Replace what was noted of the files of these names by what was counted when they were read just now."""
        self._session.query(
            "DELETE FROM raw_file_notes WHERE source_file IN (SELECT unnest(?)) AND NOT starts_with(note, ?)",
            [[*names], ODD],
        )
        rows = [(name, note, count) for name, own in notes.items() for note, count in own.items()]
        if rows:
            columns = zip(("source_file", "note", "records"), zip(*rows, strict=True), strict=True)
            self._session.insert_arrow("raw_file_notes", pa.table({name: list(values) for name, values in columns}))

    def write_unreadable(self, unreadable: Mapping[str, str]) -> None:
        """Replace what is noted of files that could not be read, each with the reason."""
        self._session.query("DELETE FROM raw_file_notes WHERE starts_with(note, ?)", [UNREADABLE])
        if unreadable:
            notes = [f"{UNREADABLE}{reason}" for reason in unreadable.values()]
            columns = {"source_file": [*unreadable], "note": notes, "records": [1] * len(notes)}
            self._session.insert_arrow("raw_file_notes", pa.table(columns))

    def known_files(self) -> set[str]:
        """The files that were read, whether they are still there or not."""
        return {name for (name,) in self._session.query("SELECT source_file FROM raw_files")}

    def unreadable(self) -> dict[str, str]:
        """The files that could not be read when hours were last brought up to date, and why."""
        rows = self._session.query(
            "SELECT source_file, note FROM raw_file_notes WHERE starts_with(note, ?) ORDER BY source_file", [UNREADABLE]
        )
        return {name: note.removeprefix(UNREADABLE) for name, note in rows}

    def notes(self) -> dict[str, int]:
        """The notes of all files together, most frequent first."""
        rows = self._session.query(
            "SELECT note, CAST(sum(records) AS BIGINT) AS records FROM raw_file_notes "
            "WHERE NOT starts_with(note, ?) AND NOT starts_with(note, ?) GROUP BY note ORDER BY 2 DESC, 1",
            [UNREADABLE, ODD],
        )
        return dict(rows)

    def write_lost(self, slices: Mapping[FileSlice, int]) -> None:
        """Add slices of which all lines are lost, with their number."""
        self._write_entries(
            [
                Entry(file_slice=file_slice, lines=SliceContent(count, ""), is_loaded=True)
                for file_slice, count in slices.items()
            ],
            [*slices.values()],
        )

    def _write_entries(self, entries: Sequence[Entry], lost: Sequence[int] = ()) -> None:
        columns = {
            "hour": pa.array([entry.file_slice.hour for entry in entries], HOUR_TYPE),
            "source_file": [entry.file_slice.source_file for entry in entries],
            "record_type": [entry.file_slice.record_type for entry in entries],
            "lines": [entry.lines.count for entry in entries],
            "digest": [entry.lines.digest for entry in entries],
            "is_loaded": [entry.is_loaded for entry in entries],
            "is_dropped": [entry.is_dropped for entry in entries],
            "lost": [*lost] or [0] * len(entries),
        }
        if entries:
            self._session.insert_arrow("raw_logs", pa.table(columns))

    def replace(self, entries: Sequence[Entry]) -> None:
        """Write entries anew, in place of those of the same slices."""
        for values in _by_record(entry.file_slice for entry in entries):
            self._session.query(f"DELETE FROM raw_logs USING {_CHOSEN} WHERE {_MATCHES}", values)
        self._write_entries(entries)

    def put_off(self, hours: Iterable[datetime]) -> None:
        """Note of exactly these hours that other records than before may follow from their spans."""
        self._session.query("DELETE FROM raw_logs WHERE source_file = ? AND record_type = 'span'", [TRACES])
        self._write_entries(
            [
                Entry(file_slice=FileSlice(TRACES, "span", hour), lines=EMPTY_SLICE, is_loaded=False)
                for hour in sorted(hours)
            ]
        )

    def unload(self, slices: Iterable[FileSlice]) -> None:
        """Mark slices as not loaded."""
        for values in _by_record(slices):
            self._session.query(f"UPDATE raw_logs SET is_loaded = false FROM {_CHOSEN} WHERE {_MATCHES}", values)

    def unload_damaged(self, hours: HourRange, tables: Sequence[str]) -> None:
        """Mark slices whose rows in the tables are not as many as the ledger says as not loaded."""
        if not len(hours):
            return
        loaded = " UNION ALL ".join(
            f"SELECT '{RECORD_OF_TABLE[table]}' AS record_type, hour, source_file, rows "
            f"FROM ({rows_by_slice(table)}) AS {table}_loaded"
            for table in tables
        )
        self._session.query(
            f"""
            UPDATE raw_logs SET is_loaded = false
            FROM (
                SELECT slices.record_type, slices.source_file, slices.hour FROM raw_logs AS slices
                LEFT JOIN ({loaded}) AS loaded
                    ON loaded.record_type = slices.record_type AND loaded.hour = slices.hour
                    AND loaded.source_file = slices.source_file
                WHERE slices.record_type IN (SELECT unnest($records))
                    AND slices.hour >= $start AND slices.hour < $end
                    AND slices.is_loaded AND slices.lines - coalesce(slices.lost, 0) <> coalesce(loaded.rows, 0)
            ) AS damaged
            WHERE raw_logs.record_type = damaged.record_type
                AND raw_logs.source_file = damaged.source_file AND raw_logs.hour = damaged.hour
            """,
            {"records": [RECORD_OF_TABLE[table] for table in tables], "start": hours.start, "end": hours.end},
        )

    def waiting(self, hours: HourRange, tables: Sequence[str], *, with_dropped: bool = True) -> dict[FileSlice, int]:
        """Slices of these hours that must be loaded, with their lines that are not lost."""
        of_interest = "" if with_dropped else "AND NOT coalesce(is_dropped, false)"
        rows = self._session.query(
            f"""
            SELECT source_file, record_type, hour, lines - coalesce(lost, 0) FROM raw_logs
            WHERE NOT is_loaded AND hour >= $start AND hour < $end AND record_type IN (SELECT unnest($records))
                {of_interest}
            """,
            {"start": hours.start, "end": hours.end, "records": [RECORD_OF_TABLE[table] for table in tables]},
        )
        return {FileSlice(*row[:3]): row[3] for row in rows}

    def mark_loaded(self, slices: Iterable[FileSlice]) -> None:
        """Note that the tables have these slices; a slice without lines need not be remembered any more."""
        for values in _by_record(slices):
            self._session.query(
                f"UPDATE raw_logs SET is_loaded = true, is_dropped = false, lost = 0 FROM {_CHOSEN} WHERE {_MATCHES}",
                values,
            )
        self._session.query("DELETE FROM raw_logs WHERE is_loaded AND lines = 0")

    def delete_rows(self, slices: Iterable[FileSlice]) -> None:
        """Delete the rows that these slices have in the record tables, superseded ones among them."""
        for values in _by_record(slices):
            # the range is for engines that would otherwise look at every hour for those that are chosen
            span = {"start": min(values["hours"]), "end": max(values["hours"]) + HOUR}
            for table in tables_with_rows_of(TABLE_OF_RECORD[values.pop("record")]):
                self._session.query(
                    f"DELETE FROM {table} USING {_CHOSEN} "
                    f"WHERE {slice_source(table)} = slices.source_file AND {table}.hour = slices.hour "
                    f"AND {table}.hour >= $start AND {table}.hour < $end",
                    values | span,
                )


def _entry(row: Sequence[Any]) -> Entry:
    """A row of the columns of `_ENTRY`."""
    *file_slice, lines, digest, is_loaded, is_dropped = row
    return Entry(
        file_slice=FileSlice(*file_slice),
        lines=SliceContent(lines, digest),
        is_loaded=is_loaded,
        is_dropped=is_dropped,
    )


_ENTRY = "source_file, record_type, hour, lines, digest, is_loaded, coalesce(is_dropped, false)"
_CHOSEN = "(SELECT unnest($files) AS source_file, unnest($hours) AS hour) AS slices"
_MATCHES = (
    "raw_logs.source_file = slices.source_file AND raw_logs.hour = slices.hour AND raw_logs.record_type = $record"
)


def _by_record(slices: Iterable[FileSlice]) -> list[dict]:
    """Query parameters for the slices of each kind of record."""
    by_record: dict[str, list[FileSlice]] = {}
    for file_slice in slices:
        by_record.setdefault(file_slice.record_type, []).append(file_slice)
    return [
        {
            "record": record,
            "files": [file_slice.source_file for file_slice in own],
            "hours": [file_slice.hour for file_slice in own],
        }
        for record, own in by_record.items()
    ]
