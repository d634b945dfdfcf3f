"""Append proof: a log that only grew goes on where it ended.

What belongs here: proving that a file begins with all that was read of it. What does not: reading the lines behind that
(`files`), and whether what was made of the lines before may stay (`pipeline.append_detection`).

The proof is the digest of what was read, taken anew of as many bytes of the file; a log that was cut, replaced or
written to in its middle has another one. Reading goes on at the start of a line, so what was read has to end with one:
the last line may have been half of one. Neither objects of a store, which are replaced and do not grow, nor packed
files are looked at.
"""

from dataclasses import dataclass

from health_assets.core.errors import HealthAssetsError
from health_assets.core.interruption import check
from health_assets.logs.decompression import is_gzip
from health_assets.logs.formats import reader_of
from health_assets.logs.identity import HEAD_BYTES, Hasher, Identity, heads_of
from health_assets.logs.limits import BLOCK_BYTES
from health_assets.logs.stores import LINES_NAME, RawFile
from health_assets.logs.unicode import UTF_16_MARKS, without_mark

NEWLINE = b"\n"


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """The part of a file that was read before, and that the file still begins with.

    Args:
        hasher: has taken these bytes, and takes those behind them next.
        size_bytes: how many they are.
        lines: how many lines they are, blank ones, too.
        last_line: the last of them that is not blank, as text; None where there is none.
    """

    hasher: Hasher
    size_bytes: int
    lines: int
    last_line: str | None = None


def beginning(file: RawFile, before: Identity | None) -> Beginning | None:
    """Prove that a file goes on behind what was read of it; None where it does not, or is not read line by line.

    Args:
        file: the file as it is now.
        before: what it held when it was read; None where nobody knows.
    """
    if before is None or before.is_empty or not _is_plain(file) or file.size_bytes <= before.plain_bytes:
        return None
    try:
        return _proven(file, before)
    except HealthAssetsError:  # which whoever reads its lines is told
        return None


def _is_plain(file: RawFile) -> bool:
    return file.store is None and not is_gzip(file) and LINES_NAME.search(file.source_file) is not None


def _proven(file: RawFile, before: Identity) -> Beginning | None:
    hasher, lines, block = Hasher(file), 0, b""
    with file.opened() as raw:
        while left := before.plain_bytes - hasher.plain_bytes:
            check()
            is_first = not hasher.plain_bytes
            shown = raw.read(BLOCK_BYTES if is_first else min(BLOCK_BYTES, left))
            block = shown[:left]
            if not block or (is_first and not _may_be(file, shown, before)):
                return None
            hasher.add(block)
            lines += block.count(NEWLINE)
    if not block.endswith(NEWLINE) or hasher.digest != before.digest:
        return None
    is_whole = hasher.plain_bytes == len(block)
    start, _, last_line = block.rstrip().rpartition(NEWLINE)
    if not is_whole and not start:  # the line, or all that is blank, begins before this block
        return None
    try:
        return Beginning(
            hasher=hasher,
            size_bytes=before.plain_bytes,
            lines=lines,
            last_line=without_mark(last_line).decode() or None,
        )
    except UnicodeDecodeError:
        return None


def _may_be(file: RawFile, block: bytes, before: Identity) -> bool:
    """Whether a file with this first block may begin with a log, and is one whose own lines are parsed.

    The first line that is not blank tells the format, so it has to be there; a later one may tell another format, also
    one that was written since.
    """
    if not before.heads.startswith(heads_of(file, block[: min(HEAD_BYTES, before.plain_bytes)])):
        return False
    head = without_mark(block)
    is_shown = NEWLINE in head.lstrip() and not block.startswith(UTF_16_MARKS)
    return is_shown and reader_of(file, head) is None
