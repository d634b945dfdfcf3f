"""The ledger's account of files: which there are, what they hold, what became of those that are no longer there.

What belongs here: keeping the ledger and the rows of tables in step with files that were renamed, packed, copied or
deleted. What does not: finding that out (`logs.file_matching`) and the account of what is loaded (`ledger`).

A log that goes on under another name takes its rows and slices with it. One that is gone keeps them: they are all that
is left of it. Its lines that no table had yet are lost, which is noted in `raw_logs`; so are those that a file held
before it was cut or replaced, under its name with a mark.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, count

import pyarrow as pa

from health_assets.core.formatting import counted
from health_assets.core.hours import EVER, HOUR, HourRange
from health_assets.core.systems import parts
from health_assets.logs.identity import Identity
from health_assets.logs.known_files import KnownFile, MatchedFiles
from health_assets.logs.stores import RawFile, Stamp
from health_assets.schema.catalog import FROM_SPANS, RECORD_OF_TABLE, SUPERSEDED, TABLE_OF_RECORD
from health_assets.warehouse.file_rows import columns_of_identity, insert_files
from health_assets.warehouse.file_slices import TRACES, FileSlice, rows_by_slice, tables_with_rows_of
from health_assets.warehouse.ledger import ODD, UNREADABLE, Ledger
from health_assets.warehouse.session import Session

GONE = "gone"
ELSEWHERE = "elsewhere"
"""Marks behind the name of a log whose name is another's now."""
CUT = "cut"
"""Mark behind the name of a file for what it held before it was cut or replaced."""
_CUT_NAME = re.compile(rf" \({CUT}( \d+)?\)$")
_COMPONENTS_WITH_FILES = tuple(
    table.__tablename__
    for module in parts("tables").values()
    for table in module.TABLES
    if "source_file" in table.model_fields
)
"""Tables of scoring systems that keep in which log a record stands."""


@dataclass(frozen=True, kw_only=True)
class LostLines:
    """The lines that are lost of a log which is gone, or was cut or replaced.

    Args:
        source_file: the log; of one that was cut, with that mark.
        lines: how many of its records no table has.
        gone_at: when a run first found that.
        hours: from the first to the last hour that lacks any.
    """

    source_file: str
    lines: int
    gone_at: datetime
    hours: HourRange

    def __str__(self) -> str:
        if _is_cut(self.source_file):
            return (
                f"{_CUT_NAME.sub('', self.source_file)} was cut or replaced, and {counted(self.lines, 'line')} of "
                f"{self.hours} that it held are lost (noticed {self.gone_at:%Y-%m-%d %H:%M})"
            )
        return (
            f"{self.source_file} was gone before {counted(self.lines, 'line')} of {self.hours} could be loaded "
            f"(noticed {self.gone_at:%Y-%m-%d %H:%M})"
        )


class FileLedger:
    """The ledger's account of files, within a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def known(self, until: datetime | None = None, formats_digest: str | None = None) -> dict[str, KnownFile]:
        """Every file that was read, and has not been forgotten.

        Args:
            until: the latest time that is not in the future. A file that held an event beyond it when it was read
                counts as changed once the event's time has come; None leaves such files as they are.
            formats_digest: digest of the settings of formats of now. A file counts as changed that was read with
                others, by a reader of a foreign format or with rejected lines; None leaves such files as they are.
        """
        rows = self._session.query(
            """
            SELECT source_file, size_bytes, CASE WHEN future_at <= ? OR (
                    formats_digest <> coalesce(?, formats_digest)
                ) THEN -1 ELSE modified_ns END, changed_ns,
                rejected, source_file IN (
                    SELECT source_file FROM raw_file_notes WHERE NOT starts_with(note, ?) AND NOT starts_with(note, ?)
                ), plain_bytes, content_digest, head_digests, copy_of, gone_at, source_file NOT IN (
                    SELECT source_file FROM raw_logs
                    WHERE lines > 0 AND (coalesce(lost, 0) > 0 OR (NOT is_loaded AND NOT coalesce(is_dropped, false)))
                )
            FROM raw_files
            """,
            [until, formats_digest, ODD, UNREADABLE],
        )
        return {
            name: KnownFile(
                stamp=(stamp[0], stamp[1], stamp[2]),
                identity=None if digest is None else Identity(plain_bytes, digest, heads),
                rejected=rejected,
                has_notes=notes,
                copy_of=copy_of,
                gone_at=gone_at,
                is_complete=is_complete,
                is_cut=_is_cut(name),
            )
            for name, *stamp, rejected, notes, plain_bytes, digest, heads, copy_of, gone_at, is_complete in rows
        }

    def next_event_at(self, until: datetime) -> datetime | None:
        """The earliest event of a log beyond a time, whose file is read again then; None where there is none."""
        [(first,)] = self._session.query("SELECT min(future_at) FROM raw_files WHERE future_at > ?", [until])
        return first

    def settle(self, known: Mapping[str, KnownFile], found: MatchedFiles) -> dict[str, str]:
        """Bring ledger and tables in step with what became of known files.

        Args:
            known: result of `known`.
            found: files that were matched with it.

        Returns:
            By name of a file, what people should be told of it.
        """
        told = {name: self._resumption(gone) for name, gone in found.resumed.items()}
        copies = {name: (file, own, found.name_now(keeper)) for name, (file, own, keeper) in found.copies.items()}
        is_same = found.has_copies_of(known)
        if not is_same:
            self._session.query("DELETE FROM raw_files WHERE copy_of IS NOT NULL")
        self._forget(found.restored)
        renamed = self._names_beside(found.contained, ELSEWHERE) | self._names_beside(found.displaced, GONE)
        renamed |= found.moved
        self._rename(renamed)
        self._empty([renamed[name] for name in found.contained])
        if not is_same:
            self._write_copies(copies)
        for name, file in found.same.items():
            self._session.query(
                "UPDATE raw_files SET size_bytes = ?, modified_ns = ?, changed_ns = ? WHERE source_file = ?",
                [file.size_bytes, file.modified_ns, file.changed_ns, name],
            )
        self._learn_change_times(known, found)
        self._unload_ties([*found.moved.values()])
        self._note_gone(found.gone | {renamed[name] for name in found.displaced})
        return told

    def _learn_change_times(self, known: Mapping[str, KnownFile], found: MatchedFiles) -> None:
        """Note when files last changed of which an older version did not."""
        times = {
            file.source_file: file.changed_ns
            for file in found.files
            if (own := known.get(file.source_file)) and own.stamp == (*file.stamp[:2], None) and file.changed_ns
        }
        if times:
            self._session.query(
                "UPDATE raw_files SET changed_ns = learned.changed_ns "
                "FROM (SELECT unnest($names) AS name, unnest($times) AS changed_ns) AS learned "
                "WHERE raw_files.source_file = learned.name AND raw_files.changed_ns IS NULL",
                {"names": [*times], "times": [*times.values()]},
            )

    def _resumption(self, gone: str) -> str:
        """Tell of a file that it counts again, since the log is gone that counted for it."""
        rows = self._session.query("SELECT CAST(sum(lines) AS BIGINT) FROM raw_logs WHERE source_file = ?", [gone])
        return (
            f"it counts again, since {gone} is gone, whose copy it was; "
            f"of the {counted(rows[0][0] or 0, 'line')} of that log, those that it does not hold are gone, too"
        )

    def _write_copies(self, copies: Mapping[str, tuple[RawFile, Identity, str]]) -> None:
        """Remember which files are copies of which, so that they are compared once."""
        insert_files(
            self._session,
            (
                {**_file_row(name, file.stamp, identity), "copy_of": keeper}
                for name, (file, identity, keeper) in copies.items()
            ),
        )

    def _names_beside(self, names: Iterable[str], mark: str) -> dict[str, str]:
        """Names that no file has, for logs whose own are others' now."""
        taken = {name for (name,) in self._session.query("SELECT DISTINCT source_file FROM raw_logs")}
        chosen: dict[str, str] = {}
        for name in sorted(names):
            numbers = (f" {number}" if number > 1 else "" for number in count(1))
            chosen[name] = next(free for number in numbers if (free := f"{name} ({mark}{number})") not in taken)
        return chosen

    def _rename(self, names: Mapping[str, str]) -> None:
        """Give logs other names, all at once, since one may get another's."""
        if not names:
            return
        values = {"old": [*names], "now": [*names.values()]}
        renamed = "(SELECT unnest($old) AS old, unnest($now) AS now) AS renamed"
        hours = self._session.query(
            "SELECT record_type, min(hour), max(hour) FROM raw_logs "
            "WHERE source_file IN (SELECT unnest($old)) GROUP BY record_type",
            {"old": values["old"]},
        )
        for table, span in _tables_of(hours).items():
            self._session.query(
                f"UPDATE {table} SET source_file = renamed.now FROM {renamed} "
                f"WHERE {table}.source_file = renamed.old AND {table}.hour >= $start AND {table}.hour < $end",
                {**values, "start": span.start, "end": span.end},
            )
        for table in _COMPONENTS_WITH_FILES:
            self._session.query(
                "UPDATE partition_states SET rows_digest = NULL WHERE asset = $asset AND hour IN "
                f"(SELECT hour FROM {table} WHERE source_file IN (SELECT unnest($old)))",
                {"asset": table, "old": values["old"]},
            )
        for table in ("raw_logs", "raw_files", "raw_file_notes", *_COMPONENTS_WITH_FILES):
            self._session.query(
                f"UPDATE {table} SET source_file = renamed.now FROM {renamed} WHERE {table}.source_file = renamed.old",
                values,
            )

    def _empty(self, names: list[str]) -> None:
        """Note of logs that they have no lines any more; their rows go when their hours are brought up to date."""
        if not names:
            return
        for table in ("raw_files", "raw_file_notes"):
            self._session.query(f"DELETE FROM {table} WHERE source_file IN (SELECT unnest(?))", [names])
        self._session.query("DELETE FROM raw_logs WHERE is_dropped AND source_file IN (SELECT unnest(?))", [names])
        self._session.query(
            "UPDATE raw_logs SET lines = 0, digest = '', is_loaded = false, lost = 0 "
            "WHERE source_file IN (SELECT unnest(?))",
            [names],
        )

    def _unload_ties(self, names: list[str]) -> None:
        """Let records of one id compete anew where the name of a file may have decided."""
        rows = self._session.query(
            "SELECT DISTINCT hour FROM raw_logs WHERE source_file IN (SELECT unnest(?))", [names]
        )
        hours = {hour for (hour,) in rows}  # of its spans, too, which executions and calls follow from
        for table, shadow in SUPERSEDED.items() if hours else ():
            ties = self._session.counts_by_hour(shadow, HourRange(min(hours), max(hours) + HOUR)).keys() & hours
            self._session.query(
                "UPDATE raw_logs SET is_loaded = false WHERE is_loaded AND record_type = ? "
                "AND hour IN (SELECT unnest(CAST(? AS TIMESTAMPTZ[]))) AND source_file IN (SELECT unnest(?))",
                [RECORD_OF_TABLE[table], sorted(ties), [*names, TRACES]],
            )

    # -- what is odd --

    def write_warnings(self, file_warnings: Mapping[str, str]) -> dict[str, str]:
        """Replace what is noted as odd about files; gives what was not noted before, to be told once."""
        rows, notes = self._noted_warnings(), _warning_notes(file_warnings)
        if notes != dict(rows):
            self._session.query("DELETE FROM raw_file_notes WHERE starts_with(note, ?)", [ODD])
            if notes:
                columns = {"source_file": [*notes], "note": [*notes.values()], "records": [1] * len(notes)}
                self._session.insert_arrow("raw_file_notes", pa.table(columns))
        return {name: what for name, what in file_warnings.items() if (name, notes[name]) not in rows}

    def has_noted(self, file_warnings: Mapping[str, str]) -> bool:
        """Whether exactly this is noted as odd about files."""
        return dict(self._noted_warnings()) == _warning_notes(file_warnings)

    def _noted_warnings(self) -> list[tuple[str, str]]:
        return self._session.query("SELECT source_file, note FROM raw_file_notes WHERE starts_with(note, ?)", [ODD])

    # -- what is gone --

    def _note_gone(self, gone: AbstractSet[str]) -> None:
        """Note since when files are gone; what was lost of one that is back waits to be loaded."""
        names = [*gone]
        self._session.query(
            "UPDATE raw_files SET gone_at = ? WHERE gone_at IS NULL AND source_file IN (SELECT unnest(?))",
            [self._session.now(), names],
        )
        back = "gone_at IS NOT NULL AND source_file NOT IN (SELECT unnest(?))"
        self._session.query(
            "UPDATE raw_logs SET is_loaded = false, lost = 0 "
            f"WHERE lost > 0 AND source_file IN (SELECT source_file FROM raw_files WHERE {back})",
            [names],
        )
        self._session.query(f"UPDATE raw_files SET gone_at = NULL WHERE {back}", [names])

    def write_off(self) -> set[FileSlice]:
        """Note of lines of gone files that no table has that they are lost; gives their slices.

        The rows that a table has of such a slice stay, since nothing else is left of it.
        """
        slices = self._session.query(
            f"SELECT record_type, min(hour), max(hour) FROM raw_logs WHERE {_TO_BE_WRITTEN_OFF} GROUP BY 1"
        )
        lost: set[FileSlice] = set()
        for record_type, first, last in slices:
            table = TABLE_OF_RECORD[record_type]
            lost |= {
                FileSlice(*row)
                for row in self._session.query(
                    f"""
                    UPDATE raw_logs SET is_loaded = true, lost = greatest(kept.lines - kept.rows, 0)
                    FROM (
                        SELECT slices.source_file, slices.hour, slices.lines, coalesce(own.rows, 0) AS rows
                        FROM raw_logs AS slices LEFT JOIN ({rows_by_slice(table)}) AS own
                            ON own.source_file = slices.source_file AND own.hour = slices.hour
                        WHERE slices.record_type = $record
                    ) AS kept
                    WHERE raw_logs.record_type = $record AND {_TO_BE_WRITTEN_OFF}
                        AND raw_logs.source_file = kept.source_file AND raw_logs.hour = kept.hour
                    RETURNING raw_logs.source_file, raw_logs.record_type, raw_logs.hour
                    """,
                    {"record": record_type, "start": first, "end": last + HOUR},
                )
            }
        return lost

    # -- what was cut --

    def note_cut(self, less: Mapping[FileSlice, int], before: Mapping[str, KnownFile]) -> dict[str, int]:
        """Note of files that they were cut or replaced; gives by name how many lines are lost.

        What they held before is known by its identity, so that it is no longer lost once a file holds it again.

        Args:
            less: by slice, how many lines fewer it has than before.
            before: by name of a changed file, what was read of it before.
        """
        lines: Counter[str] = Counter()
        for file_slice, count_less in less.items():
            lines[file_slice.source_file] += count_less
        names = self._names_beside(lines, CUT)
        insert_files(
            self._session,
            (
                {
                    **_file_row(names[name], before[name].stamp, before[name].identity),
                    "lines": own,
                    "gone_at": self._session.now(),
                }
                for name, own in lines.items()
            ),
        )
        slices = {
            replace(file_slice, source_file=names[file_slice.source_file]): count for file_slice, count in less.items()
        }
        Ledger(self._session).write_lost(slices)
        return dict(lines)

    def _forget(self, names: Iterable[str]) -> None:
        """Forget what files held before they were cut."""
        chosen = [*names]
        for table in ("raw_files", "raw_logs") if chosen else ():
            self._session.query(f"DELETE FROM {table} WHERE source_file IN (SELECT unnest(?))", [chosen])

    def lost(self, hours: HourRange = EVER) -> list[LostLines]:
        """The losses in these hours, of logs that are gone or were cut."""
        rows = self._session.query(
            """
            SELECT source_file, CAST(sum(lost) AS BIGINT), min(gone_at), min(hour), max(hour)
            FROM raw_logs JOIN raw_files USING (source_file)
            WHERE lost > 0 AND hour >= ? AND hour < ? GROUP BY source_file ORDER BY source_file
            """,
            [hours.start, hours.end],
        )
        return [
            LostLines(source_file=name, lines=lines, gone_at=gone_at, hours=HourRange(first, last + HOUR))
            for name, lines, gone_at, first, last in rows
        ]

    def lines_and_lost(self, hours: HourRange, reach_hours: int) -> dict[datetime, tuple[int, int]]:
        """For each hour, the lines on which its results rest, and how many of them are lost.

        Args:
            hours: the hours; what lies before the first one is not counted.
            reach_hours: how many hours before an hour belong to it.
        """
        rows = self._session.query(
            "SELECT hour, CAST(sum(lines) AS BIGINT), CAST(sum(coalesce(lost, 0)) AS BIGINT) FROM raw_logs "
            "WHERE hour >= ? AND hour < ? GROUP BY hour",
            [hours.start, hours.end],
        )
        own = {hour: (lines, lost) for hour, lines, lost in rows}
        found, lines, lost = {}, 0, 0
        for hour in hours:
            come, go = own.get(hour, (0, 0)), own.get(hour - (reach_hours + 1) * HOUR, (0, 0))
            lines, lost = lines + come[0] - go[0], lost + come[1] - go[1]
            found[hour] = (lines, lost)
        return found


_TO_BE_WRITTEN_OFF = (
    "NOT raw_logs.is_loaded AND NOT coalesce(raw_logs.is_dropped, false) AND raw_logs.lines > 0 "
    "AND raw_logs.source_file IN (SELECT source_file FROM raw_files WHERE gone_at IS NOT NULL)"
)


def _warning_notes(file_warnings: Mapping[str, str]) -> dict[str, str]:
    return {name: f"{ODD}{what}" for name, what in file_warnings.items()}


def _is_cut(name: str) -> bool:
    return _CUT_NAME.search(name) is not None


def _file_row(name: str, stamp: Stamp, identity: Identity | None) -> dict[str, object]:
    """A row of `raw_files` for a log of which no table has lines."""
    size, modified, changed = stamp
    times = {"modified_ns": modified, "changed_ns": changed}
    own = {"source_file": name, "size_bytes": size, **times, "lines": 0, "rejected": 0}
    return {**own, **columns_of_identity(identity)}


def _tables_of(hours: Iterable[tuple[str, datetime, datetime]]) -> dict[str, HourRange]:
    """The tables that have rows of slices of these kinds, with the hours in which they have any."""
    spans: dict[str, HourRange] = {}
    for record_type, first, last in hours:
        table = TABLE_OF_RECORD[record_type]
        records = (table, *FROM_SPANS) if table == "spans" else (table,)
        for name in chain.from_iterable(map(tables_with_rows_of, records)):
            before = spans.get(name, HourRange(first, last + HOUR))
            spans[name] = HourRange(min(first, before.start), max(last + HOUR, before.end))
    return spans
