"""Files of the history that are written once and told for every day: `bench.pages` has weeks of them.

What belongs here: a file as the product writes it, with other hours. What does not: which series are told for which
days (`pages_data`).
"""

import mmap
import shutil
import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.history.layout import AS_A_WHOLE, BY_KEY, ROWS_PER_BATCH, index_of, write_rows
from health_assets.core.hours import HOUR

ROWS_AT_ONCE = 100_000
SHIFT = 7919
"""By so many rows further the numbers of the next hour are taken."""
SESSION_PLACES = 8
"""Characters of a session's name before the number of its two hours: `s-00001-`."""
HOLDERS = np.random.default_rng(13).integers(1 << 60, 1 << 62, ROWS_PER_BATCH)
"""Numbers that stand for hours in a template; they cannot be packed, so that enough of them need more than hours do."""
ROOM = 16
"""So many more of these stand there than the hours of any day need."""
BUFFER = struct.Struct("<qq")
"""Place and length of a column's values in a batch, as its head tells them."""
LENGTH = struct.Struct("<q")
MESSAGE = b"\xff\xff\xff\xff"
"""Begin of the head of a batch; its length follows in 4 bytes."""


@dataclass(frozen=True)
class Place:
    """Where the packed hours of a batch stand in a file.

    Args:
        begin: the first byte.
        length_begin: the first byte of their length in the head of the batch.
        room: the bytes that there are for them.
        at: the hour of the day of each row.
    """

    begin: int
    length_begin: int
    room: int
    at: bytes


@dataclass(frozen=True)
class Template:
    """A file as the product writes it, but for the hours, and where these stand.

    Packing is what takes the time. So a day is packed once. For each day the file is copied, and the packed hours in
    it are replaced by others, which need less room.

    Args:
        path: the file.
        codec: by which it is packed.
        places: where the hours of each batch stand.
    """

    path: Path
    codec: pa.Codec
    places: list[Place]

    @classmethod
    def of_rows(
        cls,
        path: Path,
        rows: pa.Table,
        key: str | None,
        at: Sequence[int],
        days: Collection[datetime],
        rows_per_batch: int,
    ) -> "Template":
        """Write rows of the real hour for some hours of a day, by key and hour.

        Args:
            path: the file.
            rows: the rows.
            key: the key; None for a file that is read as a whole.
            at: the hours of the day.
            days: the days that it is for.
            rows_per_batch: how many rows a batch has at most.
        """
        told: list[tuple[bytes, bytes]] = []
        codec = pa.Codec(AS_A_WHOLE if key is None else BY_KEY)

        @cache
        def room(of_batch: bytes) -> int:
            return max(len(_packed(codec, _hours_of(day), of_batch)) for day in days)

        def batches() -> Iterator[pa.RecordBatch]:
            for own, hours in _told(rows, key, np.array(at)):
                for batch in own.to_batches(max_chunksize=rows_per_batch):
                    of_batch, hours = hours[: batch.num_rows].astype(np.int8).tobytes(), hours[batch.num_rows :]
                    holders = np.resize(HOLDERS[: room(of_batch) // 8 + ROOM], batch.num_rows)
                    told.append((codec.compress(holders.tobytes(), asbytes=True), of_batch))
                    place = batch.schema.get_field_index("hour")
                    column = pa.array(holders).cast(batch.schema.field(place).type)
                    yield batch.set_column(place, batch.schema.field(place), column)

        write_rows(path, pa.RecordBatchReader.from_batches(rows.schema, batches()), key)
        return cls(path, codec, list(_places(path, told)))

    def write(self, path: Path, day: datetime) -> None:
        """Write the file as it is on a day, and its index."""
        shutil.copyfile(self.path, path)
        if index_of(self.path).exists():
            shutil.copyfile(index_of(self.path), index_of(path))
        hours = _hours_of(day)
        with path.open("r+b") as file:
            for place in self.places:
                packed = _packed(self.codec, hours, place.at)
                assert len(packed) <= place.room, "hours take more room than what stands for them"
                file.seek(place.begin)
                file.write(packed)
                file.seek(place.length_begin)
                file.write(LENGTH.pack(LENGTH.size + len(packed)))


def _hours_of(day: datetime) -> np.ndarray:
    return np.array([int((day + at * HOUR).timestamp() * 1e6) for at in range(24)])


def _places(path: Path, told: Sequence[tuple[bytes, bytes]]) -> Iterator[Place]:
    """Where what stands for the hours of each batch lies in a file."""
    if not told:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        end = 0
        for packed, at in told:
            if (begin := content.find(packed, end)) < 0:
                raise RuntimeError(f"the hours of a batch are not in {path} as they were packed")
            yield Place(begin, _length_begin(content, begin, len(packed)), len(packed), at)
            end = begin + len(packed)


def _length_begin(content: mmap.mmap, begin: int, length: int) -> int:
    """Where the head of a batch tells the length of values; their length unpacked stands before them."""
    head = begin
    while (head := content.rfind(MESSAGE, 0, head)) >= 0:
        body = head + 8 + int.from_bytes(content[head + 4 : head + 8], "little")
        told = BUFFER.pack(begin - LENGTH.size - body, LENGTH.size + length)
        if body <= begin and (place := content.find(told, head, body)) >= 0:
            return place + LENGTH.size
    raise RuntimeError("no head of a batch tells of its hours")


def _packed(codec: pa.Codec, hours: np.ndarray, at: bytes) -> bytes:
    return codec.compress(hours[np.frombuffer(at, np.int8)].tobytes(), asbytes=True)


def _told(rows: pa.Table, key: str | None, at: np.ndarray) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """The rows told for some hours of a day, by key and hour, a little at a time, with the hour of each row.

    Args:
        rows: the rows of the real hour, by key.
        key: the key; None for rows that are in the order of hours alone.
        at: the hours of the day, ascending.
    """
    groups = np.zeros(rows.num_rows, np.int64) if key is None else _groups(rows.column(key))
    start = 0
    while start < rows.num_rows:
        end = min(rows.num_rows, start + max(1, ROWS_AT_ONCE // len(at)) // ROWS_PER_BATCH * ROWS_PER_BATCH)
        while end < rows.num_rows and groups[end] == groups[end - 1]:
            end += 1
        place, hour = (one.ravel() for one in np.meshgrid(np.arange(start, end), at, indexing="ij"))
        order = np.lexsort((place, hour, groups[place]))
        yield _of(rows, place[order], hour[order]), hour[order]
        start = end


def _groups(keys: pa.ChunkedArray) -> np.ndarray:
    """The number of each row's key, ascending with the rows."""
    codes = keys.combine_chunks().dictionary_encode().indices.to_numpy()
    return np.concatenate([[0], np.cumsum(codes[1:] != codes[:-1])]) if len(codes) else codes


def _of(rows: pa.Table, place: np.ndarray, at: np.ndarray) -> pa.Table:
    """Rows told for hours of a day: names are their own, numbers those of another row, which the hour decides."""
    other = pa.array((place + SHIFT * (at + 1)) % rows.num_rows)
    own = pa.array(place)
    columns: list[pa.Array] = []
    for field in rows.schema:
        column = rows.column(field.name).chunk(0)
        if field.name == "session_id":
            columns.append(_renamed(column.take(own), pa.array(at // 2)))
        elif pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
            columns.append(column.take(other))
        else:
            columns.append(column.take(own))
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _renamed(sessions: pa.Array, numbers: pa.Array) -> pa.Array:
    """Names of sessions with the number of their two hours."""
    short = pc.utf8_slice_codeunits(sessions, 0, SESSION_PLACES)
    return pc.binary_join_element_wise(short, pc.utf8_lpad(pc.cast(numbers, pa.string()), 3, "0"), "")
