"""The identity of a raw log: its bytes, whatever it is called and however it is packed.

What belongs here: digests of plain bytes. What does not: reading files (`files`) and telling by the digests what became
of a file (`file_matching`).

A log that grows keeps its first bytes, so an identity is that of a beginning, too: another file is the same log if its
first `plain_bytes` bytes have the same digest.
"""

import hashlib
from dataclasses import dataclass

from health_assets.logs.formats.foreign_lines import Damage
from health_assets.logs.stores import LINES_NAME, RawFile

HEAD_BYTES = 4096
"""How much of a file is looked at to find out with which others it is worth comparing."""
_HEAD_LENGTHS = [1 << power for power in range(HEAD_BYTES.bit_length())]
_HEX_DIGITS = 8


@dataclass(frozen=True)
class Identity:
    """The content of a log in short: its length, its digest, and digests of its beginnings.

    Args:
        plain_bytes: how many bytes it has, unpacked.
        digest: a digest of them, and of whether they are read line by line.
        heads: a short digest of its first 1, 2, 4, ... bytes up to `HEAD_BYTES`, as far as it has so many; only for
            finding out quickly that two files differ.
    """

    plain_bytes: int
    digest: str
    heads: str

    @property
    def is_empty(self) -> bool:
        """Whether it has no bytes; all such files are alike, and none is another's beginning."""
        return not self.plain_bytes


class Hasher:
    """Takes the plain bytes of a file from its start.

    Args:
        file: the file; whether its name is that of a log of lines decides how it is read, so it counts.
    """

    def __init__(self, file: RawFile) -> None:
        self._kind = _kind(file)
        self._hash = hashlib.sha256(self._kind, usedforsecurity=False)
        self._head = b""
        self.plain_bytes = 0

    def add(self, plain: bytes | memoryview) -> None:
        """Take the next bytes."""
        if len(self._head) < HEAD_BYTES:
            self._head = (self._head + bytes(plain[:HEAD_BYTES]))[:HEAD_BYTES]
        self._hash.update(plain)
        self.plain_bytes += len(plain)

    def passed(self, block: bytes | Damage) -> bytes | Damage:
        """A block as it is, taken on its way."""
        if isinstance(block, bytes):
            self.add(block)
        return block

    @property
    def digest(self) -> str:
        """`Identity.digest` of the bytes taken so far."""
        return self._hash.hexdigest()

    @property
    def identity(self) -> Identity:
        """The identity of the bytes taken so far."""
        return Identity(self.plain_bytes, self.digest, _heads(self._kind, self._head))


def heads_of(file: RawFile, head: bytes) -> str:
    """`Identity.heads` of a file whose first `HEAD_BYTES` bytes these are, or all where it has fewer."""
    return _heads(_kind(file), head)


def shorter_heads(heads: str) -> list[str]:
    """`Identity.heads` of every log whose beginning a file with these may hold, the shortest first."""
    return [heads[:end] for end in range(_HEX_DIGITS, len(heads) + 1, _HEX_DIGITS)]


def _heads(kind: bytes, head: bytes) -> str:
    lengths = [length for length in _HEAD_LENGTHS if length <= len(head)]
    digests = [hashlib.sha256(kind + head[:length], usedforsecurity=False).hexdigest() for length in lengths]
    return "".join(digest[:_HEX_DIGITS] for digest in digests)


def _kind(file: RawFile) -> bytes:
    return b"lines:" if LINES_NAME.search(file.source_file) else b"document:"
