"""Raw log files: which exist, and their lines as Arrow batches.

What belongs here: walking the raw root and reading bytes into numbered lines, whatever state the file is in. What does
not: what a line means (`native`) and which files were read before (`warehouse.ledger`).

A file that is damaged still gives every line up to the damage: the rest becomes one line with a `fault`, which is
rejected with that reason. Only a file that cannot be opened at all stops a run.
"""

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import RawIOBase
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from health_assets.errors import HealthAssetsError

BLOCK_BYTES = 8 << 20
COMPRESSED_BLOCK_BYTES = 256 << 10
BATCH_BYTES = 8 << 20
MAX_LINE_BYTES = 64 << 20
RAW_TEXT_BYTES = 64 << 10
LOG_NAME = re.compile(r"\.jsonl(\.\d+)?(\.gz)?$", re.IGNORECASE)  # .jsonl.1 is what log rotation leaves
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NEWLINE = 10

LINES_SCHEMA = pa.schema(
    [("file_id", pa.int32()), ("line_number", pa.int64()), ("line", pa.string()), ("fault", pa.string())]
)


@dataclass(frozen=True)
class RawFile:
    """A raw log as it lies below the raw root.

    Args:
        source_file: path relative to the raw root, with forward slashes; its name in every table.
        path: where it is.
        size_bytes: size when it was listed.
        modified_ns: modification time when it was listed, nanoseconds since 1970.
    """

    source_file: str
    path: Path
    size_bytes: int
    modified_ns: int

    @property
    def stamp(self) -> tuple[int, int]:
        """What tells that a file has changed."""
        return self.size_bytes, self.modified_ns


def list_files(root: Path) -> list[RawFile]:
    """Every raw log below `root`, at any depth and through links, sorted by name.

    Raises:
        HealthAssetsError: the root is not a folder, or a log in it cannot be looked at.
    """
    if not root.is_dir():
        raise HealthAssetsError(f"the raw root {root} is not a folder; set HEALTH_RAW or --raw to where the logs are")
    visited: set[str] = set()
    found = []
    for folder, subfolders, names in os.walk(root, followlinks=True, onerror=_cannot_list):
        real = os.path.realpath(folder)
        if real in visited:  # a link that leads back up
            subfolders.clear()
            continue
        visited.add(real)
        paths = [Path(folder, name) for name in names if LOG_NAME.search(name)]
        found += [_stat(root, path) for path in paths if _is_file(path)]
    return sorted(found, key=lambda file: file.source_file)


def _cannot_list(error: OSError) -> None:
    raise HealthAssetsError(f"cannot list the raw logs in {error.filename}: {error.strerror}") from error


def _is_file(path: Path) -> bool:
    """Whether it is a file, or a link that leads nowhere (which must be told); a pipe or a device is no log."""
    return path.is_file() or not path.exists()


def _stat(root: Path, path: Path) -> RawFile:
    try:
        status = path.stat()
    except OSError as error:
        raise HealthAssetsError(f"cannot read the raw log {path}: {error.strerror}") from error
    return RawFile(path.relative_to(root).as_posix(), path, status.st_size, status.st_mtime_ns)


def line_batches(files: Iterable[tuple[int, RawFile]]) -> Iterator[pa.RecordBatch]:
    """Lines of the (file id, file) pairs as batches of `LINES_SCHEMA`, about 8 MiB each, in any number per file.

    Raises:
        HealthAssetsError: a file cannot be opened.
    """
    waiting: list[pa.RecordBatch] = []
    waiting_bytes = 0
    for file_id, file in files:
        for batch in _file_batches(file_id, file):
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


def _file_batches(file_id: int, file: RawFile) -> Iterator[pa.RecordBatch]:
    first_number = 1
    for lines in _line_arrays(file):
        numbers = pa.array(np.arange(first_number, first_number + len(lines.text), dtype=np.int64))
        ids = pa.array(np.full(len(lines.text), file_id, dtype=np.int32))
        yield pa.record_batch([ids, numbers, lines.text, lines.fault], schema=LINES_SCHEMA)
        first_number += len(lines.text)


@dataclass(frozen=True)
class _Lines:
    text: pa.Array
    fault: pa.Array


def _line_arrays(file: RawFile) -> Iterator[_Lines]:
    """Whole lines block by block; a last line without a newline, an overlong line and damage come last or alone."""
    rest = b""
    overlong: bytes | None = None
    is_first = True
    for block in _blocks(file):
        if isinstance(block, _Damage):
            yield _faulty(rest if overlong is None else overlong, block.reason)
            return
        if is_first:
            block, is_first = block.removeprefix(BYTE_ORDER_MARK), False
        if overlong is not None:
            _, newline, block = block.partition(b"\n")
            if not newline:
                continue
            yield _faulty(overlong, f"the line is longer than {MAX_LINE_BYTES >> 20} MiB")
            overlong = None
        buffer = rest + block if rest else block
        ends = np.flatnonzero(np.frombuffer(buffer, dtype=np.uint8) == NEWLINE)
        if len(ends):
            yield _decoded(buffer, ends + 1)
            buffer = buffer[ends[-1] + 1 :]
        rest = buffer
        if len(rest) > MAX_LINE_BYTES:
            overlong, rest = rest[:RAW_TEXT_BYTES], b""
    if overlong is not None:
        yield _faulty(overlong, f"the line is longer than {MAX_LINE_BYTES >> 20} MiB")
    elif rest:
        yield _decoded(rest, np.array([len(rest)]))


@dataclass(frozen=True)
class _Damage:
    reason: str


def _blocks(file: RawFile) -> Iterator[bytes | _Damage]:
    is_gzip = file.source_file.lower().endswith(".gz")
    try:
        with file.path.open("rb", buffering=0) as raw:
            yield from _gunzipped(raw, file.size_bytes) if is_gzip else _read(raw, BLOCK_BYTES, file.size_bytes)
    except OSError as error:
        raise HealthAssetsError(f"cannot read the raw log {file.path}: {error.strerror}") from error


def _read(raw: RawIOBase, block_bytes: int, size_bytes: int) -> Iterator[bytes]:
    """Blocks up to the size that the file had when it was listed; what grew since then is for the next run."""
    left = size_bytes
    while left and (block := raw.read(min(block_bytes, left))):
        left -= len(block)
        yield block


def _gunzipped(raw: RawIOBase, size_bytes: int) -> Iterator[bytes | _Damage]:
    """Plain bytes of every gzip member; unlike `gzip`, hands out all that comes before a damaged place."""
    member = _new_member()
    for compressed in _read(raw, COMPRESSED_BLOCK_BYTES, size_bytes):
        while compressed:
            if member.eof:
                member = _new_member()
            before = member.copy()
            try:
                plain = member.decompress(compressed)
            except zlib.error as error:
                yield _plain_before_damage(before, compressed)
                yield _Damage(f"the gzip stream is damaged: {error}")
                return
            if plain:
                yield plain
            compressed = member.unused_data.lstrip(b"\0")  # some writers pad the end with zeros
    if not member.eof and raw.tell():
        yield _Damage("the gzip stream ends early: the file is cut off")


def _new_member() -> "zlib._Decompress":
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def _plain_before_damage(member: "zlib._Decompress", compressed: bytes) -> bytes:
    plain = b""
    for offset in range(len(compressed)):
        try:
            plain += member.decompress(compressed[offset : offset + 1])
        except zlib.error:
            break
    return plain


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
            fault.append(f"not valid UTF-8: byte {error.start + 1} of the line")
    return _Lines(pa.array(text, pa.string()), pa.array(fault, pa.string()))


def _faulty(line: bytes, reason: str) -> _Lines:
    text = line[:RAW_TEXT_BYTES].decode(errors="replace")
    return _Lines(pa.array([text], pa.string()), pa.array([reason], pa.string()))
