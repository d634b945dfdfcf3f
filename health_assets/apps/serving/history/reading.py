"""Looking things up in the history: the rows of a key, of an hour, of a small table.

What belongs here: finding files and reading of them what is asked for. What does not: filling (`exporter`), and what a
caller may see (`apps.serving.pages.scoped_history`).

Files that a newer account no longer names are removed one filling later; whoever still reads by the older account opens
the newer one and looks again. A file that is gone or damaged all the same is given up, and copied again.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.history.layout import (
    ACCOUNT,
    Account,
    DamagedFileError,
    Kept,
    KeyedFile,
    Part,
    read_account,
    read_rows,
)
from health_assets.core.errors import HealthAssetsError
from health_assets.core.file_stamps import Stamp, stamp
from health_assets.core.hours import HourRange

T = TypeVar("T")
Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
OPEN_FILES = 256
"""Most files that are kept open; an agent's page of all days looks into some two hundred."""
TABLES_IN_MEMORY = 6
ATTEMPTS = 3
HOURS = pa.timestamp("us", "UTC")


class LostFileError(HealthAssetsError):
    """A file of the history is gone or damaged."""


class OpenFiles:
    """The files by key that were looked into last, kept open.

    A file never changes, so what is open by one account is handed to the next.

    Args:
        folder: the folder of the history.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._files: OrderedDict[tuple[str, tuple[str, ...] | None], KeyedFile] = OrderedDict()

    def of(self, path: str, columns: tuple[str, ...] | None) -> KeyedFile:
        """A file with some columns, opened where it is not open."""
        with self._lock:
            if (file := self._files.get((path, columns))) is not None:
                self._files.move_to_end((path, columns))
                return file
        file = KeyedFile(self._folder / path, columns)
        with self._lock:
            self._files[path, columns] = file
            while len(self._files) > OPEN_FILES:
                self._files.popitem(last=False)
        return file

    def of_these(self, paths: Collection[str]) -> "OpenFiles":
        """The open files at some paths alone."""
        left = OpenFiles(self._folder)
        with self._lock:
            left._files.update((key, file) for key, file in self._files.items() if key[0] in paths)
        return left


class History:
    """Reads a folder by its newest account; any thread may use it.

    Whatever looks rows up raises LostFileError where their file is lost; `lost` has then risen.

    Args:
        folder: the folder; it may be empty as yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._seen: Stamp | None = None
        self._account = Account(source="")
        self.lost = 0
        """How often a file was found to be gone or damaged."""
        self.on_lost: Callable[[], None] = lambda: None
        """Called each time."""
        self._opened = OpenFiles(folder)
        self._read = lru_cache(TABLES_IN_MEMORY)(self._read_table)
        self.look()

    def look(self) -> bool:
        """Take the newest account, an empty one where there is none; returns whether it is another one than before."""
        seen = stamp(self._folder / ACCOUNT)
        with self._lock:
            if seen == self._seen:
                return False
            self._account, self._seen = read_account(self._folder) or Account(source=""), seen
            self._opened = self._opened.of_these(self._account.paths())
            self._read.cache_clear()
            return True

    def newer(self) -> "History | None":
        """The history by the account that is there now, while this one goes on by its own; None where that is it."""
        if stamp(self._folder / ACCOUNT) == self._seen:
            return None
        newer = History(self._folder)
        newer.lost, newer.on_lost = self.lost, self.on_lost
        newer._opened = self._opened.of_these(newer._account.paths())
        return newer

    @property
    def seen(self) -> Stamp | None:
        """The stamp of the account; None where there is none."""
        return self._seen

    @property
    def version(self) -> int:
        """Rises with each change; 0 while there is nothing."""
        return self._account.version

    @property
    def facts(self) -> dict[str, Any]:
        """Facts besides rows: `first_hour`, `window_hours`, `declared`, `missing`."""
        return self._account.facts

    @property
    def missing(self) -> int:
        """Hours that are still to be copied."""
        return self._account.facts.get("missing", 0)

    def hours(self, series: str) -> list[datetime]:
        """The hours that a series has, ascending."""
        return sorted(hour for part in self._kept(series).parts() for hour in part.hours)

    def newest(self, series: str, by: datetime | None = None) -> datetime | None:
        """The newest hour of a series, of those up to an hour; None where there is none."""
        return max((hour for hour in self.hours(series) if by is None or hour <= by), default=None)

    def of(self, series: str, key: str, hours: HourRange, columns: tuple[str, ...] | None = None) -> pa.Table:
        """The rows of a key in these hours, by hour.

        Args:
            series: the series.
            key: the key.
            hours: the hours.
            columns: columns to read, `hour` and the key's among them; None for all.
        """
        return self._again(lambda: self._of(series, key, hours, columns))

    def newest_of(self, series: str, keys: Collection[str], hours: HourRange, columns: tuple[str, ...]) -> pa.Table:
        """The newest row of each of some keys in these hours; none of a key that has none; maybe no column at all.

        Args:
            series: the series, of which a key has at most one row an hour.
            keys: the keys.
            hours: the hours.
            columns: columns to read, `hour` and the key's among them.
        """
        return self._again(lambda: self._newest_of(series, keys, hours, columns))

    def at(self, series: str, hour: datetime) -> pa.Table | None:
        """The face of a series at one hour, by key; all of its rows where it has no key; None where there is none."""
        return self._again(lambda: self._at(series, hour))

    def face(self, series: str, hour: datetime) -> str | None:
        """The file of a series' face at one hour, which never changes; None where there is none."""
        return self._kept(series).faces.get(hour.isoformat())

    def of_all(self, series: str, hour: datetime, columns: tuple[str, ...]) -> pa.Table:
        """Columns of the face of a series at one hour, maybe none.

        They are read anew each time: sums over many hours must not drive from memory what pages show.
        """
        return self._again(lambda: self._of_all(series, hour, columns))

    def between(self, series: str, hours: HourRange) -> pa.Table:
        """The rows of a series without a key in these hours, by hour."""
        return self._again(lambda: self._between(series, hours))

    def whole(self, name: str) -> pa.Table | None:
        """A small table; None while it has not been copied."""
        return self._again(lambda: self._whole(name))

    def _again(self, look_up: Callable[[], T]) -> T:
        for _ in range(ATTEMPTS):
            try:
                return look_up()
            except FileNotFoundError:
                self.look()
            except DamagedFileError as error:
                error.path.unlink(missing_ok=True)
                break
        self.lost += 1
        self.on_lost()
        raise LostFileError("A part of the history was lost and is being copied again. Try again in a minute.")

    def _kept(self, series: str) -> Kept:
        return self._account.series.get(series) or Kept(None)

    def _parts(self, series: str, hours: HourRange) -> list[tuple[Part, pa.Array]]:
        """The files with any of these hours, and which hours of each count."""
        found = [(part, part.hours_in(hours)) for part in self._kept(series).parts()]
        return [(part, pa.array(valid, HOURS)) for part, valid in found if valid]

    def _of(self, series: str, key: str, hours: HourRange, columns: tuple[str, ...] | None) -> pa.Table:
        key_column = self._kept(series).key
        assert key_column is not None
        batches: list[pa.RecordBatch] = []
        schemas: list[pa.Schema] = []
        for part, valid in self._parts(series, hours):
            file = self._opened.of(part.path, columns)
            batches += [_of_hours(batch, valid) for batch in file.of(key_column, key)]
            if not schemas:
                schemas.append(file.schema)
        if not batches:  # nobody of this name, or no file of these hours
            return _chosen(schemas[0], columns).empty_table() if schemas else pa.table({})
        return _together(batches).sort_by("hour")

    def _newest_of(self, series: str, keys: Collection[str], hours: HourRange, columns: tuple[str, ...]) -> pa.Table:
        """Files with the newest hours come first: where a key is in one of them, it is not looked for in older ones."""
        key_column = self._kept(series).key
        assert key_column is not None
        newest: dict[str, datetime] = {}
        batches: list[pa.RecordBatch] = []
        for part, valid in sorted(self._parts(series, hours), key=lambda one: one[1][-1].as_py(), reverse=True):
            last = valid[-1].as_py()
            wanted = [key for key in keys if key not in newest or newest[key] < last]
            for batch in self._opened.of(part.path, columns).of_these(key_column, wanted) if wanted else ():
                batches.append(_of_hours(batch, valid))
                for key, hour in _pairs(batches[-1], key_column):
                    newest[key] = max(hour, newest.get(key, hour))
        if not newest:
            return pa.table({})
        found = _together(batches)
        is_newest = [newest[key] == hour for key, hour in _pairs(found, key_column)]
        return found.filter(pa.array(is_newest, pa.bool_()))

    def _at(self, series: str, hour: datetime) -> pa.Table | None:
        kept, text = self._kept(series), hour.isoformat()
        if text in kept.faces:
            return self._read(kept.faces[text])
        return self._between(series, HourRange.of(hour)) if text in kept.stamps() else None

    def _of_all(self, series: str, hour: datetime, columns: tuple[str, ...]) -> pa.Table:
        path = self.face(series, hour)
        return pa.table({}) if path is None else read_rows(self._folder / path, columns)

    def _between(self, series: str, hours: HourRange) -> pa.Table:
        tables = [_of_hours(read_rows(self._folder / part.path), valid) for part, valid in self._parts(series, hours)]
        return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})

    def _whole(self, name: str) -> pa.Table | None:
        path = self._account.whole.get(name)
        return None if path is None else self._read(path)

    def _read_table(self, path: str) -> pa.Table:
        return read_rows(self._folder / path)


def _pairs(rows: pa.Table | pa.RecordBatch, key_column: str) -> Iterator[tuple[str, datetime]]:
    """The key and the hour of each row."""
    return zip(rows.column(key_column).to_pylist(), rows.column("hour").to_pylist(), strict=True)


def _of_hours(rows: Rows, hours: pa.Array) -> Rows:
    is_valid = pc.is_in(rows.column("hour").cast(HOURS), value_set=hours)
    return rows if pc.all(is_valid).as_py() else rows.filter(is_valid)


def _together(batches: list[pa.RecordBatch]) -> pa.Table:
    """Batches as a table; those of another release may lack columns, or have others types."""
    if all(batch.schema.equals(batches[0].schema) for batch in batches):
        return pa.Table.from_batches(batches)
    return pa.concat_tables(map(pa.Table.from_batches, ([batch] for batch in batches)), promote_options="permissive")


def _chosen(schema: pa.Schema, columns: tuple[str, ...] | None) -> pa.Schema:
    return schema if columns is None else pa.schema([schema.field(name) for name in columns if name in schema.names])
