"""The lines of raw logs as Arrow batches.

What belongs here: reading bytes into numbered lines, whatever state the file is in. What does not: where files lie
(`stores`), unpacking them (`plain`), what files of other formats hold (`formats`), what a line means (`native`) and
which files were read before (`warehouse.ledger`).

A file that is damaged still gives every line up to the damage: the rest becomes one line with a `fault`, which is
rejected with that reason. A file that cannot be opened, or read to its end, is told when all others have been read, so
that whoever reads can do it again without every such file.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice, pairwise

import numpy as np
import pyarrow as pa

from health_assets.core.errors import HealthAssetsError, UnreadableFilesError
from health_assets.core.interruption import check
from health_assets.logs.formats import reader_of
from health_assets.logs.formats.foreign_lines import (
    MAX_LINE_BYTES,
    OVERLONG,
    READ_TEXT_BYTES,
    Blocks,
    Damage,
    Line,
    Source,
    not_utf_8,
)
from health_assets.logs.growth import Beginning
from health_assets.logs.identity import Hasher, Identity
from health_assets.logs.plain import BLOCK_BYTES, plain_blocks, plain_rest
from health_assets.logs.progress import Meter
from health_assets.logs.read_ahead import Ahead
from health_assets.logs.stores import RawFile, list_files
from health_assets.logs.unicode import as_utf_8, without_mark

__all__ = [
    "LINES_SCHEMA",
    "Identities",
    "Notes",
    "RawFile",
    "line_batches",
    "list_files",
]

BATCH_BYTES = 8 << 20
LINES_PER_BATCH = 1000
MOST_LINES_PER_BATCH = 250_000
NEWLINE = 10

LINES_SCHEMA = pa.schema(
    [("file_id", pa.int32()), ("line_number", pa.int64()), ("line", pa.string()), ("fault", pa.string())]
)

Notes = dict[int, Counter[str]]
"""By file id: what the readers of foreign formats counted besides the lines that they made."""

Identities = dict[int, Identity]
"""By file id, what the file turned out to hold when it was read to its end."""


def line_batches(
    files: Iterable[tuple[int, RawFile]],
    notes: Notes | None = None,
    meter: Meter | None = None,
    identities: Identities | None = None,
    unpacked_bytes: int = sys.maxsize,
    beginnings: Mapping[str, Beginning] = {},
) -> Iterator[pa.RecordBatch]:
    """Lines of the (file id, file) pairs as batches of `LINES_SCHEMA`, about 8 MiB each, in any number per file.

    Args:
        files: the files.
        notes: is filled as batches are taken.
        meter: counts what is read.
        identities: is filled as batches are taken.
        unpacked_bytes: most that is read of a file, once it is unpacked.
        beginnings: by name of a file that only grew, what comes before the lines that are wanted of it.

    Raises:
        UnreadableFilesError: files cannot be read; the lines of all others were given before.
    """
    faults: dict[str, str] = {}
    notes, meter = {} if notes is None else notes, meter or Meter()
    identities = {} if identities is None else identities
    files = list(files)
    with Ahead([file for _, file in files]) as ahead:
        yield from _collected(_all_batches(files, ahead, notes, meter, identities, unpacked_bytes, beginnings, faults))
    if faults:
        raise UnreadableFilesError(faults)


def _all_batches(
    files: Iterable[tuple[int, RawFile]],
    ahead: Ahead,
    notes: Notes,
    meter: Meter,
    identities: Identities,
    unpacked_bytes: int,
    beginnings: Mapping[str, Beginning],
    faults: dict[str, str],
) -> Iterator[pa.RecordBatch]:
    for file_id, file in files:
        begun = beginnings.get(file.source_file)
        if begun:
            hasher = begun.hasher
            batches = _rest_batches(file_id, begun, plain_rest(file, begun.size_bytes, unpacked_bytes, meter))
        else:
            hasher = Hasher(file)
            batches = _file_batches(file_id, file, notes, hasher, plain_blocks(file, unpacked_bytes, meter, ahead))
        for batch in _told(batches, file, faults):
            check()
            yield batch
        if file.source_file not in faults:
            identities[file_id] = hasher.identity
        meter.end_file(file)


def _collected(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows; small batches become one."""
    waiting: list[pa.RecordBatch] = []
    waiting_bytes = 0
    for batch in batches:
        if batch.nbytes >= BATCH_BYTES // 2:
            yield batch
            continue
        waiting.append(batch)
        waiting_bytes += batch.nbytes
        if waiting_bytes >= BATCH_BYTES:
            yield pa.concat_batches(waiting)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def _told(batches: Iterator[pa.RecordBatch], file: RawFile, faults: dict[str, str]) -> Iterator[pa.RecordBatch]:
    """The batches of a file, up to where it cannot be read."""
    try:
        yield from batches
    except HealthAssetsError as error:
        faults[file.source_file] = str(error)


def _file_batches(
    file_id: int, file: RawFile, notes: Notes, hasher: Hasher, blocks: Blocks
) -> Iterator[pa.RecordBatch]:
    plain = map(hasher.passed, blocks)  # no generator that is dropped early
    yield from _batches(file_id, file, notes, as_utf_8(plain))
    for _ in plain:  # what no reader wanted belongs to the file all the same
        pass


def _batches(file_id: int, file: RawFile, notes: Notes, blocks: Blocks) -> Iterator[pa.RecordBatch]:
    head, blocks = _head(blocks)
    reader = reader_of(file, head)
    if reader is not None:
        source = Source(file, blocks)
        notes[file_id] = source.notes
        yield from _converted_batches(file_id, reader(source))
        return
    yield from _numbered(file_id, _line_arrays(_without_mark(blocks)), first_number=1)


def _rest_batches(file_id: int, begun: Beginning, blocks: Blocks) -> Iterator[pa.RecordBatch]:
    """Lines behind those that were read before, with the numbers that they have in the whole file."""
    return _numbered(file_id, _line_arrays(map(begun.hasher.passed, blocks)), first_number=begun.lines + 1)


def _numbered(file_id: int, arrays: Iterator["_Lines"], first_number: int) -> Iterator[pa.RecordBatch]:
    for lines in chain.from_iterable(map(_in_pieces, arrays)):
        numbers = pa.array(np.arange(first_number, first_number + len(lines.text), dtype=np.int64))
        ids = pa.array(np.full(len(lines.text), file_id, dtype=np.int32))
        yield pa.record_batch([ids, numbers, lines.text, lines.fault], schema=LINES_SCHEMA)
        first_number += len(lines.text)


def _head(blocks: Blocks) -> tuple[bytes, Blocks]:
    """The bytes up to the end of the first line that is not blank, or the first block; and all blocks again."""
    taken: list[bytes | Damage] = []
    head = b""
    for block in blocks:
        taken.append(block)
        if isinstance(block, Damage):
            break
        head += block
        if len(head) >= BLOCK_BYTES or b"\n" in head.lstrip():
            break
    return without_mark(head), chain(taken, blocks)


def _converted_batches(file_id: int, lines: Iterator[Line]) -> Iterator[pa.RecordBatch]:
    while some := list(islice(lines, LINES_PER_BATCH)):
        columns = [
            pa.array([file_id] * len(some), pa.int32()),
            pa.array([line.number for line in some], pa.int64()),
            pa.array([line.text for line in some], pa.string()),
            pa.array([line.fault for line in some], pa.string()),
        ]
        yield pa.record_batch(columns, schema=LINES_SCHEMA)


@dataclass(frozen=True)
class _Lines:
    text: pa.Array
    fault: pa.Array


def _without_mark(blocks: Blocks) -> Blocks:
    for first in islice(blocks, 1):
        yield first if isinstance(first, Damage) else without_mark(first)
    yield from blocks


def _line_arrays(blocks: Blocks) -> Iterator[_Lines]:
    """Yield whole lines by block. A last line without a newline, an overlong line and damage come last or alone."""
    rest = b""
    overlong: bytes | None = None
    for block in blocks:
        if isinstance(block, Damage):
            yield _faulty(rest if overlong is None else overlong, block.reason)
            return
        if overlong is not None:
            _, newline, block = block.partition(b"\n")
            if not newline:
                continue
            yield _faulty(overlong, OVERLONG)
            overlong = None
        buffer = rest + block if rest else block
        ends = np.flatnonzero(np.frombuffer(buffer, dtype=np.uint8) == NEWLINE)
        if len(ends):
            yield _decoded(buffer, ends + 1)
            buffer = buffer[ends[-1] + 1 :]
        rest = buffer
        if len(rest) > MAX_LINE_BYTES:
            overlong, rest = rest[:READ_TEXT_BYTES], b""
    if overlong is not None:
        yield _faulty(overlong, OVERLONG)
    elif rest:
        yield _decoded(rest, np.array([len(rest)]))


def _in_pieces(lines: _Lines) -> Iterator[_Lines]:
    """The same lines, no more at a time than are soon parsed, so that who waits for the parser never waits long."""
    for start in range(0, len(lines.text), MOST_LINES_PER_BATCH):
        yield _Lines(
            lines.text.slice(start, MOST_LINES_PER_BATCH),
            lines.fault.slice(start, MOST_LINES_PER_BATCH),
        )


def _decoded(buffer: bytes, ends: np.ndarray) -> _Lines:
    """Lines that end (newline included) at these offsets of the buffer."""
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    text = pa.Array.from_buffers(pa.string(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(buffer)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return _replaced(buffer, offsets)
    return _Lines(text, pa.nulls(len(ends), pa.string()))


def _replaced(buffer: bytes, offsets: np.ndarray) -> _Lines:
    text: list[str] = []
    fault: list[str | None] = []
    for start, end in pairwise(offsets):
        line = buffer[start:end]
        try:
            text.append(line.decode())
            fault.append(None)
        except UnicodeDecodeError as error:
            text.append(line.decode(errors="replace"))
            fault.append(not_utf_8(line, error))
    return _Lines(pa.array(text, pa.string()), pa.array(fault, pa.string()))


def _faulty(line: bytes, reason: str) -> _Lines:
    text = line[:READ_TEXT_BYTES].decode(errors="replace")
    return _Lines(pa.array([text], pa.string()), pa.array([reason], pa.string()))
