"""The files of the history: one table a file, sorted by key, with an index beside it; and the account of all of them.

What belongs here: writing and opening one file, and the account. What does not: which rows (`datasets`) and when
(`exporter`), and the folder as a whole (`history_folder`).

A file is Arrow's file format: batches of few rows, each compressed by itself, so that looking up a key unpacks little.
The index beside it is the first key of each batch. Files never change; the account, replaced as a whole, says which
count. Whoever reads by an older account finds its files for a while: they are removed one filling later. The account
names no file before the disk has it.
"""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.core.durable_files import replace_file, sync_files
from health_assets.core.hours import HourRange

FORMAT = 2
"""Version of the files; those of another one are made again."""
ACCOUNT = "account.json"
INDEX_SUFFIX = ".index"
ROWS_PER_BATCH = 2048
BY_KEY: Literal["lz4"] = "lz4"
AS_A_WHOLE: Literal["zstd"] = "zstd"
"""How files are packed. Looking up a key unpacks small columns by the hundred, which takes zstd five times as long; it
takes less room where all rows are read."""


class DamagedFileError(Exception):
    """A file is there and is not what was written.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is damaged")
        self.path = path


@dataclass(frozen=True)
class Part:
    """A file, the hours that it holds and what each was made from."""

    path: str
    stamps: dict[str, str]

    @cached_property
    def hours(self) -> tuple[datetime, ...]:
        """The hours that count, in order; the file may hold others, which do not."""
        return tuple(sorted(map(moment, self.stamps)))

    def hours_in(self, hours: HourRange) -> tuple[datetime, ...]:
        """The same, without those outside a range."""
        is_whole = hours.start <= self.hours[0] and self.hours[-1] < hours.end
        return self.hours if is_whole else tuple(hour for hour in self.hours if hour in hours)


@dataclass
class Kept:
    """The files of a series.

    Args:
        key: the column that files are sorted by; None where they are read as a whole.
        days: by day, the files by key of its hours; no hour is in two of them.
        faces: by hour, the file of what lists show.
    """

    key: str | None
    days: dict[str, list[Part]] = field(default_factory=dict)
    faces: dict[str, str] = field(default_factory=dict)

    def parts(self) -> list[Part]:
        """All files by key, by day."""
        return [part for _, parts in sorted(self.days.items()) for part in parts]

    def stamps(self) -> dict[str, str]:
        """By hour, what it was made from."""
        return {hour: stamp for part in self.parts() for hour, stamp in part.stamps.items()}

    def paths(self) -> Iterator[str]:
        """All files."""
        yield from (part.path for part in self.parts())
        yield from self.faces.values()

    def drop(self, hours: Collection[str]) -> None:
        """Forget hours; their rows go when their file is put together again."""
        for day in {hour[:10] for hour in hours} & set(self.days):
            left = [
                Part(part.path, {hour: stamp for hour, stamp in part.stamps.items() if hour not in hours})
                for part in self.days.pop(day)
            ]
            if left := [part for part in left if part.stamps]:
                self.days[day] = left
        for hour in hours:
            self.faces.pop(hour, None)

    def add(self, part: Part) -> None:
        """Take in a file of hours of one day, instead of what was known of them."""
        self.drop(part.stamps)
        self.days.setdefault(min(part.stamps)[:10], []).append(part)


@dataclass(kw_only=True)
class Account:
    """All files that count.

    Args:
        source: the warehouse that was copied.
        version: rises with each change.
        series: by name.
        whole: files of small tables, by name.
        facts: what is known besides rows, as JSON.
    """

    source: str
    version: int = 0
    series: dict[str, Kept] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def paths(self) -> set[str]:
        """All files, relative to the folder."""
        return {path for kept in self.series.values() for path in kept.paths()} | set(self.whole.values())

    def dumps(self) -> str:
        """The account as it is kept."""
        series = {
            name: {
                "key": kept.key,
                "days": {day: [[part.path, part.stamps] for part in parts] for day, parts in kept.days.items()},
                "faces": kept.faces,
            }
            for name, kept in self.series.items()
        }
        told = {"format": FORMAT, "source": self.source, "version": self.version, "series": series}
        return json.dumps({**told, "whole": self.whole, "facts": self.facts}, separators=(",", ":"))


def read_account(folder: Path, source: str | None = None) -> Account | None:
    """The account of a folder; None where there is none, or one of another format or warehouse, or a damaged one."""
    try:
        told = json.loads((folder / ACCOUNT).read_bytes())
        if told["format"] != FORMAT or (source is not None and told["source"] != source):
            return None
        return _account_of(told)
    except (FileNotFoundError, ValueError, LookupError, TypeError, AttributeError):  # nobody can say what it would be
        return None


def _account_of(told: Any) -> Account:
    series = {
        name: Kept(
            kept["key"],
            days={day: [Part(*part) for part in parts] for day, parts in kept["days"].items()},
            faces=kept["faces"],
        )
        for name, kept in told["series"].items()
    }
    return Account(
        source=told["source"], version=told["version"], series=series, whole=told["whole"], facts=told["facts"]
    )


def write_account(folder: Path, account: Account) -> None:
    """Replace the account of a folder; whoever reads it meanwhile has the old one or the new one."""
    replace_file(folder / ACCOUNT, account.dumps())


def make_durable(folder: Path, paths: Iterable[str]) -> None:
    """Wait until the disk has files and their indexes, whatever happens to the machine then.

    Raises:
        OSError: they cannot be written.
    """
    files = [folder / path for path in paths]
    sync_files([*files, *(index for file in files if (index := index_of(file)).exists())])


def write_rows(path: Path, batches: pa.RecordBatchReader, key: str | None) -> None:
    """Write rows that come sorted by key, at most `ROWS_PER_BATCH` at a time, and the index.

    Raises:
        OSError: they cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    batches = _whole_numbers(batches)
    options = pa.ipc.IpcWriteOptions(compression=AS_A_WHOLE if key is None else BY_KEY)
    firsts: list[str] = []
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batches.schema, options=options) as writer:
        for batch in batches:
            if not batch.num_rows:
                continue
            if key is not None:
                firsts.append(batch.column(key)[0].as_py())
            writer.write_batch(batch)
    if key is not None:
        index_of(path).write_text(json.dumps(firsts))


def index_of(path: Path) -> Path:
    """The index beside a file by key."""
    return Path(f"{path}{INDEX_SUFFIX}")


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """Tell whatever cannot be made sense of in a file as damage, and what the system refuses as what it is."""
    try:
        yield
    except (ValueError, LookupError) as error:  # ArrowInvalid and what JSON says are ValueErrors
        raise DamagedFileError(path) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise DamagedFileError(path) from error  # so Arrow says that bytes cannot be unpacked


def _whole_numbers(batches: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The rows with 64 bits for sums of whole numbers, which engines make wider than that."""
    fields = [field.with_type(pa.int64()) if pa.types.is_decimal(field.type) else field for field in batches.schema]
    return batches.cast(pa.schema(fields))


class KeyedFile:
    """A file that is looked into by key.

    Args:
        path: the file.
        columns: the columns to read; None for all.

    Raises:
        DamagedFileError: it cannot be read; so does `of`.
    """

    def __init__(self, path: Path, columns: tuple[str, ...] | None) -> None:
        self._path = path
        with _undamaged(path):
            self._open(columns)

    def _open(self, columns: tuple[str, ...] | None) -> None:
        # read, not mapped: what is mapped counts as memory of the process, in the end all of the history
        self._source = pa.OSFile(str(self._path))
        self._firsts: list[str] = json.loads(index_of(self._path).read_bytes())
        # a batch is small: handing its columns to other threads takes longer than unpacking them
        whole = pa.ipc.open_file(self._source, options=pa.ipc.IpcReadOptions(use_threads=False))
        self.schema: pa.Schema = whole.schema
        if columns is not None:
            fields = [self.schema.get_field_index(name) for name in columns if name in self.schema.names]
            options = pa.ipc.IpcReadOptions(included_fields=sorted(fields), use_threads=False)
            self._file = pa.ipc.open_file(self._source, options=options)
        else:
            self._file = whole

    def of(self, key_column: str, key: str) -> Iterator[pa.RecordBatch]:
        """The rows of a key."""
        for number in self._numbers(key):
            batch = self._batch(number)
            keys = batch.column(key_column)
            start, end = _span(keys, key)
            if start < end:
                yield batch.slice(start, end - start)

    def of_these(self, key_column: str, keys: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """The rows of some keys; a batch with several of them is unpacked once."""
        by_number: defaultdict[int, list[str]] = defaultdict(list)
        for key in keys:
            for number in self._numbers(key):
                by_number[number].append(key)
        for number, own in sorted(by_number.items()):
            batch = self._batch(number)
            found = batch.filter(pc.is_in(batch.column(key_column), value_set=pa.array(own, pa.string())))
            if found.num_rows:
                yield found

    def _numbers(self, key: str) -> Iterator[int]:
        """The batches that may hold a key."""
        number = max(0, bisect_left(self._firsts, key) - 1)
        while number < len(self._firsts) and self._firsts[number] <= key:
            yield number
            number += 1

    def _batch(self, number: int) -> pa.RecordBatch:
        with _undamaged(self._path):
            return self._file.get_batch(number)


def _span(keys: pa.Array, key: str) -> tuple[int, int]:
    """The places in sorted keys that are equal to one: the first, and the one behind the last."""

    def first(is_before: Any) -> int:
        low, high = 0, len(keys)
        while low < high:
            middle = (low + high) // 2
            if is_before(keys[middle].as_py()):
                low = middle + 1
            else:
                high = middle
        return low

    return first(lambda found: found < key), first(lambda found: found <= key)


def read_rows(path: Path, columns: Iterable[str] | None = None) -> pa.Table:
    """All rows of a file.

    Args:
        path: the file.
        columns: the columns to read, in any order, of those that there are; None for all.

    Raises:
        DamagedFileError: it cannot be read.
    """
    with _undamaged(path), pa.memory_map(str(path)) as source:
        whole = pa.ipc.open_file(source)
        if columns is None:
            return whole.read_all()
        fields = [whole.schema.get_field_index(name) for name in columns if name in whole.schema.names]
        options = pa.ipc.IpcReadOptions(included_fields=sorted(fields))  # no other column is unpacked
        return pa.ipc.open_file(source, options=options).read_all()


def is_damaged(path: Path) -> bool:
    """Whether a file cannot be read from its begin to its end."""
    try:
        with _undamaged(path), pa.memory_map(str(path)) as source:
            whole = pa.ipc.open_file(source)
            for number in range(whole.num_record_batches):
                whole.get_batch(number)
    except DamagedFileError:
        return True
    return False


def moment(text: str) -> datetime:
    """An hour as the account writes it."""
    return datetime.fromisoformat(text)
