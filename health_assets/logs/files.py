"""The lines of raw logs as Arrow batches.

What belongs here: reading bytes into numbered lines, whatever state the file is in. What does not: where files lie
(`stores`), unpacking them (`decompression`), what files of other formats hold (`formats`), what a line means (`native`)
and which files were read before (`warehouse.ledger`).

A file that is damaged still gives every line up to the damage: the rest becomes one line with a `fault`, which is
rejected with that reason. A file that cannot be opened, or read to its end, is told when all others have been read, so
that whoever reads can do it again without every such file.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise

import numpy as np
import pyarrow as pa

from health_assets.core.errors import HealthAssetsError, UnreadableFilesError
from health_assets.core.interruption import check
from health_assets.logs.append_proof import Beginning
from health_assets.logs.decompression import decompressed_blocks, rest_of_blocks
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
from health_assets.logs.identity import Hasher, Identity
from health_assets.logs.limits import BLOCK_BYTES, WITHOUT_LIMIT, Unpacking
from health_assets.logs.mending import mended
from health_assets.logs.progress import Meter
from health_assets.logs.read_ahead import Ahead
from health_assets.logs.stores import LINES_NAME, RawFile, list_files
from health_assets.logs.unicode import as_utf_8, without_mark

__all__ = [
    "LINES_SCHEMA",
    "Identities",
    "Notes",
    "RawFile",
    "head_of",
    "line_batches",
    "list_files",
]

BATCH_BYTES = 8 << 20
LINES_PER_BATCH = 1000
MOST_LINES_PER_BATCH = 250_000
NEWLINE = 10
SHORT_LINE_BYTES = 16
"""A line that is shorter, on an average of 8 MiB, is no record."""
_NULS = b"\0\0"
_BLANKS = b" \t\r\n"
_IS_SEEN = ~np.isin(np.arange(256, dtype=np.uint8), np.frombuffer(_BLANKS, dtype=np.uint8))

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
    unpacking: Unpacking = WITHOUT_LIMIT,
    beginnings: Mapping[str, Beginning] = {},
    most_lines: int = sys.maxsize,
) -> Iterator[pa.RecordBatch]:
    """Lines of the (file id, file) pairs as batches of `LINES_SCHEMA`, about 8 MiB each, in any number per file.

    Args:
        files: the files.
        notes: is filled as batches are taken.
        meter: counts what is read.
        identities: is filled as batches are taken.
        unpacking: most that is read of a file, once it is unpacked.
        beginnings: by name of a file that only grew, what comes before the lines that are wanted of it.
        most_lines: most lines, or records of a document, that are read of a file.

    Raises:
        UnreadableFilesError: files cannot be read; the lines of all others were given before.
    """
    faults: dict[str, str] = {}
    notes, meter = {} if notes is None else notes, meter or Meter()
    identities = {} if identities is None else identities
    files = list(files)
    with Ahead([file for _, file in files]) as ahead:
        every = _all_batches(files, ahead, notes, meter, identities, unpacking, beginnings, faults, most_lines)
        yield from _collected(every)
    if faults:
        raise UnreadableFilesError(faults)


def _all_batches(
    files: Iterable[tuple[int, RawFile]],
    ahead: Ahead,
    notes: Notes,
    meter: Meter,
    identities: Identities,
    unpacking: Unpacking,
    beginnings: Mapping[str, Beginning],
    faults: dict[str, str],
    most_lines: int,
) -> Iterator[pa.RecordBatch]:
    for file_id, file in files:
        begun = beginnings.get(file.source_file)
        if begun:
            hasher = begun.hasher
            blocks = rest_of_blocks(file, begun.size_bytes, unpacking, meter)
            batches = _rest_batches(file_id, begun, notes, blocks, most_lines)
        else:
            hasher = Hasher(file)
            blocks = decompressed_blocks(file, unpacking, meter, ahead)
            batches = _file_batches(file_id, file, notes, hasher, blocks, most_lines)
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
    file_id: int, file: RawFile, notes: Notes, hasher: Hasher, blocks: Blocks, most_lines: int
) -> Iterator[pa.RecordBatch]:
    plain = map(hasher.passed, blocks)  # no generator that is dropped early
    yield from _batches(file_id, file, notes, as_utf_8(plain), most_lines)
    for _ in plain:  # what no reader wanted belongs to the file all the same
        pass


def _batches(file_id: int, file: RawFile, notes: Notes, blocks: Blocks, most_lines: int) -> Iterator[pa.RecordBatch]:
    head, blocks = head_of(file, blocks)
    reader = reader_of(file, head)
    if reader is not None:
        source = Source(file, blocks)
        notes[file_id] = source.notes
        yield from _converted_batches(file_id, _up_to(most_lines, reader(source)))
        return
    yield from _numbered(
        file_id, _line_arrays(_without_mark(blocks)), first_number=1, notes=notes, most_lines=most_lines
    )


def _rest_batches(
    file_id: int, begun: Beginning, notes: Notes, blocks: Blocks, most_lines: int
) -> Iterator[pa.RecordBatch]:
    """Lines behind those that were read before, with the numbers that they have in the whole file."""
    lines = _line_arrays(map(begun.hasher.passed, blocks))
    return _numbered(file_id, lines, first_number=begun.lines + 1, notes=notes, most_lines=most_lines)


def _numbered(
    file_id: int, arrays: Iterator["_Lines"], first_number: int, notes: Notes, most_lines: int
) -> Iterator[pa.RecordBatch]:
    for lines in arrays:
        beyond = first_number + lines.count - 1 > most_lines
        if beyond:
            lines = lines.first(most_lines + 1 - first_number)
        if lines.notes:
            notes.setdefault(file_id, Counter()).update(lines.notes)
        for piece in _in_pieces(lines):
            yield _batch(file_id, first_number + piece.places, piece)
        if beyond:
            yield _batch(file_id, np.array([most_lines + 1]), _faulty(b"", _too_many(most_lines)))
            return
        first_number += lines.count


def _batch(file_id: int, numbers: np.ndarray, lines: "_Lines") -> pa.RecordBatch:
    ids = pa.array(np.full(len(lines.text), file_id, dtype=np.int32))
    return pa.record_batch([ids, pa.array(numbers, pa.int64()), lines.text, lines.fault], schema=LINES_SCHEMA)


def _too_many(most_lines: int) -> str:
    return f"the file has more than {most_lines:,} lines (HEALTH_MAX_LINES)"


def _up_to(most_lines: int, lines: Iterator[Line]) -> Iterator[Line]:
    """Lines of a document's records up to the last record that is read."""
    for line in lines:
        if line.number > most_lines:
            yield Line(most_lines + 1, "", _too_many(most_lines))
            return
        yield line


def head_of(file: RawFile, blocks: Blocks) -> tuple[bytes, Blocks]:
    """The bytes up to the end of the first line that is not blank, and all blocks again.

    Of a document, which may be one line, they are the first block at most.
    """
    most = MAX_LINE_BYTES if LINES_NAME.search(file.source_file) else BLOCK_BYTES
    taken: list[bytes | Damage] = []
    head: list[bytes] = []
    size, is_blank = 0, True
    for block in blocks:
        taken.append(block)
        if isinstance(block, Damage):
            break
        head.append(block)
        size += len(block)
        line = block.lstrip() if is_blank else block
        is_blank = is_blank and not line
        if size >= most or b"\n" in line:
            break
    return without_mark(b"".join(head)), chain(taken, blocks)


def _converted_batches(file_id: int, lines: Iterator[Line]) -> Iterator[pa.RecordBatch]:
    while some := list(islice(lines, LINES_PER_BATCH)):
        columns = [
            pa.array([file_id] * len(some), pa.int32()),
            pa.array([line.number for line in some], pa.int64()),
            pa.array([line.text for line in some], pa.string()),
            pa.array([line.fault for line in some], pa.string()),
        ]
        yield pa.record_batch(columns, schema=LINES_SCHEMA)


@dataclass(frozen=True, kw_only=True)
class _Lines:
    """Lines of a block, after what its near misses were mended to.

    Args:
        text: the lines.
        fault: the reason for which each cannot be used, or null.
        places: the place of each among the lines of the block.
        count: number of lines of the block.
        notes: counts of mended lines.
    """

    text: pa.Array
    fault: pa.Array
    places: np.ndarray
    count: int
    notes: Counter[str] = field(default_factory=Counter)

    def first(self, count: int) -> "_Lines":
        """The lines that come from the first ones of the block."""
        kept = int(np.searchsorted(self.places, count))
        return replace(self, text=self.text[:kept], fault=self.fault[:kept], places=self.places[:kept], count=count)

    @classmethod
    def blank(cls, count: int) -> "_Lines":
        """Lines of which each is blank, so that nothing is left of them but their count."""
        nothing = pa.array([], pa.string())
        return cls(text=nothing, fault=nothing, places=np.arange(0, dtype=np.int64), count=count)

    @classmethod
    def of(cls, text: pa.Array, fault: pa.Array) -> "_Lines":
        """Lines as they are."""
        return cls(text=text, fault=fault, places=np.arange(len(text), dtype=np.int64), count=len(text))


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
        lines, rest = _whole_lines(buffer)
        if lines is not None:
            yield lines
        if len(rest) > BLOCK_BYTES and rest.startswith(_NULS):  # a gap in the file, of any length
            rest = _NULS + rest.lstrip(b"\0")
        if len(rest) > MAX_LINE_BYTES:
            overlong, rest = rest[:READ_TEXT_BYTES], b""
    if overlong is not None:
        yield _faulty(overlong, OVERLONG)
    elif rest:
        yield _decoded(rest, np.array([len(rest)]))


def _whole_lines(buffer: bytes) -> tuple[_Lines | None, bytes]:
    """The whole lines of some bytes, and what is behind the last of them."""
    if not buffer.lstrip(_BLANKS):
        end = buffer.rfind(b"\n") + 1
        return (_Lines.blank(buffer.count(b"\n")) if end else None), buffer[end:]
    ends = np.flatnonzero(np.frombuffer(buffer, dtype=np.uint8) == NEWLINE)
    return (_decoded(buffer, ends + 1), buffer[ends[-1] + 1 :]) if len(ends) else (None, buffer)


def _in_pieces(lines: _Lines) -> Iterator[_Lines]:
    """The same lines, no more at a time than are soon parsed, so that who waits for the parser never waits long."""
    for start in range(0, max(1, len(lines.text)), MOST_LINES_PER_BATCH):
        end = start + MOST_LINES_PER_BATCH
        yield replace(lines, text=lines.text[start:end], fault=lines.fault[start:end], places=lines.places[start:end])


def _decoded(buffer: bytes, ends: np.ndarray) -> _Lines:
    """Lines that end (newline included) at these offsets of the buffer."""
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    text = pa.Array.from_buffers(pa.string(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(buffer)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return _replaced(buffer, offsets)
    kept = _not_blank(buffer, ends)
    text = text.take(pa.array(kept)) if len(kept) < len(ends) else text
    return _as_meant(buffer, text, pa.nulls(len(text), pa.string()), kept, len(ends))


def _as_meant(buffer: bytes, text: pa.Array, fault: pa.Array, places: np.ndarray, count: int) -> _Lines:
    """Lines of a block, those mended that are near misses."""
    notes: Counter[str] = Counter()
    found = mended(buffer, text, fault, notes)
    if found is not None:
        text, origins = found
        fault, places = fault.take(pa.array(origins)), places[origins]
    return _Lines(text=text, fault=fault, places=places, count=count, notes=notes)


def _not_blank(buffer: bytes, ends: np.ndarray) -> np.ndarray:
    """Places of the lines to parse: all of them, but no blank ones where most are too short to be records."""
    if len(ends) * SHORT_LINE_BYTES < ends[-1]:
        return np.arange(len(ends), dtype=np.int64)
    is_seen = _IS_SEEN[np.frombuffer(buffer, dtype=np.uint8, count=ends[-1])]
    return np.flatnonzero(np.logical_or.reduceat(is_seen, np.concatenate(([0], ends[:-1]))))


def _replaced(buffer: bytes, offsets: np.ndarray) -> _Lines:
    """Lines of which some are not UTF-8, each of those with that fault."""
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
    lines, faults = pa.array(text, pa.string()), pa.array(fault, pa.string())
    return _as_meant(buffer, lines, faults, np.arange(len(lines), dtype=np.int64), len(lines))


def _faulty(line: bytes, reason: str) -> _Lines:
    text = line[:READ_TEXT_BYTES].decode(errors="replace")
    return _Lines.of(pa.array([text], pa.string()), pa.array([reason], pa.string()))
