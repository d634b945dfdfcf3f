"""One line of a raw log as its writer wrote it.

What belongs here: finding a line by the number that tables have of it. What does not: mending and parsing (`files`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from health_assets.logs.decompression import decompressed_blocks
from health_assets.logs.files import NEWLINE, head_of, line_batches
from health_assets.logs.formats import taken_for
from health_assets.logs.formats.foreign_lines import MAX_LINE_BYTES, READ_TEXT_BYTES, Blocks, Damage
from health_assets.logs.formats.opening import Opening
from health_assets.logs.limits import Unpacking
from health_assets.logs.stores import RawFile
from health_assets.logs.unicode import as_utf_8

_MARK = "\ufeff"


@dataclass(frozen=True, kw_only=True)
class Written:
    """A line, or a record of a document.

    Args:
        text: the line as it is written, without its end; of a record that is converted the lines that its reader makes
            of it; None where there is none of this number.
        is_converted: whether it is a record of a document, or of a format whose own text is not shown.
    """

    text: str | None
    is_converted: bool


def written_line(file: RawFile, number: int, most: Unpacking) -> Written:
    """The line of this number, from 1; of an overlong one its beginning.

    Raises:
        HealthAssetsError: the file cannot be opened, or read up to there.
    """
    head, blocks = head_of(file, as_utf_8(decompressed_blocks(file, most)))
    taken = taken_for(file, head)
    if taken.is_private or (taken.read is not None and not Opening(file.source_file, head).is_named_lines):
        pieces = [piece for some in _pieces(file, number, most) for piece in some]
        return Written(text="\n".join(pieces) if pieces else None, is_converted=True)
    line = _line(blocks, number)
    if line is None:
        return Written(text=None, is_converted=False)
    text = line.decode(errors="replace").removesuffix("\r")
    return Written(text=text.removeprefix(_MARK) if number == 1 else text, is_converted=False)


def _line(blocks: Blocks, number: int) -> bytes | None:
    """The line without NUL bytes before it, which a file has that was cut while its writer held it open."""
    ends_before = number - 1
    found = b""
    is_there = False
    for block in blocks:
        if isinstance(block, Damage):  # which is told as a line of its own
            return found if not ends_before else None
        if ends_before:
            ends = block.count(b"\n")
            if ends < ends_before:
                ends_before -= ends
                continue
            block, ends_before = block[_end_of(block, ends_before) :], 0
        piece, end, _ = block.partition(b"\n")
        is_there |= bool(block)
        found = (found + piece).lstrip(b"\0")
        if len(found) > MAX_LINE_BYTES:
            return found[:READ_TEXT_BYTES]
        if end:
            return found
    return found if is_there else None


def _end_of(block: bytes, lines: int) -> int:
    """The offset behind so many lines of a block."""
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == NEWLINE)
    return int(ends[lines - 1]) + 1


def _pieces(file: RawFile, number: int, most: Unpacking) -> Iterator[list[str]]:
    """The lines of one record, by batch; reading ends behind them."""
    is_found = False
    for batch in line_batches([(0, file)], unpacking=most):
        numbers = batch["line_number"]
        own = batch.filter(pc.equal(numbers, number))["line"].to_pylist()
        yield own
        is_found |= bool(own)
        if is_found and pc.max(numbers).as_py() > number:
            return
