"""The bytes of raw logs, decompressed where a name says that they are gzip, up to a limit.

What belongs here: blocks of bytes, whatever state the file is in, and the first bytes of many files. What does not:
asking a store for them (`read_ahead`), and lines (`files`).
"""

import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain

from health_assets.core.errors import HealthAssetsError
from health_assets.logs.formats.foreign_lines import Blocks, Damage
from health_assets.logs.identity import HEAD_BYTES
from health_assets.logs.limits import BLOCK_BYTES, UNPACKED_ANYWAY, Unpacking
from health_assets.logs.progress import Meter
from health_assets.logs.read_ahead import Ahead, Readable
from health_assets.logs.stores import RawFile

COMPRESSED_BLOCK_BYTES = 256 << 10
COMPRESSED_HEAD_BYTES = 16 << 10
GZIP_MAGIC = b"\x1f\x8b"
PACKED_NAME = re.compile(r"\.gz(\.\d+)?$", re.IGNORECASE)


def decompressed_blocks(
    file: RawFile, most: Unpacking, meter: Meter | None = None, ahead: Ahead | None = None
) -> Blocks:
    """The bytes of a file, unpacked where its name says that it is packed, with what is wrong with the rest.

    Args:
        file: the file.
        most: most that is read of it, once it is unpacked.
        meter: counts what is read.
        ahead: opens it and files behind it; by default it is opened alone.

    Raises:
        HealthAssetsError: it cannot be opened, or read to its end.
    """
    is_packed = is_gzip(file)
    with nullcontext(ahead) if ahead else Ahead([file]) as opener, opener.opened(file) as raw:
        read = _read(raw, COMPRESSED_BLOCK_BYTES if is_packed else BLOCK_BYTES, file.size_bytes, meter or Meter())
        yield from _up_to(most.most_bytes, _gunzipped(read, most.ratio) if is_packed else read)


def rest_of_blocks(file: RawFile, skipped_bytes: int, most: Unpacking, meter: Meter) -> Blocks:
    """The bytes of a file of this machine that is not packed, but for its first ones.

    Args:
        file: the file.
        skipped_bytes: how many are left out.
        most: most that the file may have with these.
        meter: counts what is read.

    Raises:
        HealthAssetsError: it cannot be opened, or read to its end.
    """
    with file.opened() as raw:
        raw.seek(skipped_bytes)
        meter.add_bytes(skipped_bytes)
        blocks = _read(raw, BLOCK_BYTES, file.size_bytes - skipped_bytes, meter)
        yield from _up_to(most.most_bytes, blocks, skipped_bytes)


def decompressed_heads(files: Sequence[RawFile]) -> Iterator[bytes | None]:
    """For each file its first bytes, unpacked, as many as tell whether it is worth comparing with another.

    None of a file that cannot be opened or read.
    """
    beginnings = [replace(file, size_bytes=min(file.size_bytes, _head_bytes(file))) for file in files]
    with Ahead(beginnings) as ahead:
        for beginning in beginnings:
            try:
                yield _decompressed_head(beginning, ahead)
            except HealthAssetsError:  # which whoever reads its lines is told
                yield None


def _decompressed_head(beginning: RawFile, ahead: Ahead) -> bytes:
    head = ahead.whole(beginning) if beginning.takes_requests else beginning.beginning(beginning.size_bytes)
    if not is_gzip(beginning):
        return head
    return b"".join(block for block in _gunzipped(iter([head])) if isinstance(block, bytes))[:HEAD_BYTES]


def _head_bytes(file: RawFile) -> int:
    return COMPRESSED_HEAD_BYTES if is_gzip(file) else HEAD_BYTES


def is_gzip(file: RawFile) -> bool:
    """Whether its name says that it is packed."""
    return PACKED_NAME.search(file.source_file) is not None


def _up_to(most_bytes: int, blocks: Blocks, skipped_bytes: int = 0) -> Blocks:
    """The bytes of a file up to its most, with what is wrong with the rest."""
    left = most_bytes - skipped_bytes
    for block in blocks:
        if isinstance(block, Damage):
            yield block
            return
        if len(block) > left:
            yield block[:left]
            yield Damage(f"the file is longer than {most_bytes >> 30:,} GiB unpacked (HEALTH_MAX_UNPACKED_GIB)")
            return
        left -= len(block)
        yield block


def _read(raw: Readable, block_bytes: int, size_bytes: int, meter: Meter) -> Iterator[bytes]:
    """Blocks up to the size that the file had when it was listed; what grew since then is for the next run."""
    left = size_bytes
    while left and (block := raw.read(min(block_bytes, left))):
        left -= len(block)
        meter.add_bytes(len(block))
        yield block


def _gunzipped(blocks: Iterator[bytes], most_ratio: int = sys.maxsize) -> Blocks:
    """Plain bytes of every gzip member; unlike `gzip`, hands out all that comes before a damaged place.

    What is no gzip in spite of its name is handed out as it is.

    A block may hold a thousand times its size, so no more is unpacked at a time than a plain block has.
    """
    first = next(blocks, b"")
    if not first.startswith(GZIP_MAGIC[: len(first)]):  # somebody has decompressed it, and not renamed it
        yield first
        yield from blocks
        return
    member = _new_member()
    is_empty = True
    packed_bytes = plain_bytes = 0
    for compressed in chain([first] if first else [], blocks):
        is_empty = False
        packed_bytes += len(compressed)
        while compressed:
            if member.eof:
                compressed = compressed.lstrip(b"\0")  # some writers pad the end with zeros
                if not compressed:
                    break
                member = _new_member()
            before = member.copy()
            try:
                plain = member.decompress(compressed, BLOCK_BYTES)
            except zlib.error as error:
                yield _plain_before_damage(before, compressed)
                yield Damage(f"the gzip stream is damaged: {error}")
                return
            if plain:
                yield plain
            plain_bytes += len(plain)
            if plain_bytes > max(UNPACKED_ANYWAY, packed_bytes * most_ratio):
                yield Damage(f"the file is packed more than {most_ratio:,} to 1 (HEALTH_MAX_PACKING_RATIO)")
                return
            compressed = member.unconsumed_tail or member.unused_data
    if not member.eof and not is_empty:
        yield Damage("the gzip stream ends early: the file is cut off")


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
