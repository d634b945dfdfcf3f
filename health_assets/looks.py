"""Looks: what files begin with and hold, found out by reading no more of them than is needed.

What belongs here: reading files in order to compare them, each once at most for any number of questions. What does not:
what follows from an answer for a log (`recognition`).
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from health_assets.errors import HealthAssetsError
from health_assets.logs.files import RawFile, plain_blocks, plain_head
from health_assets.logs.formats.records import Damage
from health_assets.logs.identity import Hasher, Identity, heads_of, shorter_heads

REQUESTS_AT_ONCE = 16


class Looks:
    """What is known of files, and what is found out by looking into them, each no further than is needed.

    Args:
        known: identities of files that are as they were.
        others: files of which nothing is known.
        unpacked_bytes: most bytes of one file that are read, once it is unpacked.
    """

    def __init__(self, known: Mapping[str, Identity | None], others: Sequence[RawFile], unpacked_bytes: int) -> None:
        self._unpacked_bytes = unpacked_bytes
        self._identities = dict(known)
        self._heads = {name: own.heads for name, own in known.items() if own}
        self._heads |= _heads_of(others)
        self._beginnings: dict[tuple[str, int], str | None] = {}
        self._damaged: set[str] = set()

    def heads(self, name: str) -> str:
        """`Identity.heads` of a file; empty where it cannot be read."""
        return self._heads.get(name, "")

    def heads_among(self, names: Iterable[str]) -> dict[str, str]:
        """`Identity.heads` of these files."""
        return {name: self.heads(name) for name in names}

    def begins_as(self, name: str, before: Identity) -> bool:
        """Whether the first bytes of a file are those of a log; no more is looked at."""
        return self.heads(name).startswith(before.heads)

    def holders(
        self,
        searches: Sequence[tuple[Mapping[str, str], Iterable[RawFile]]],
        identity_of: Callable[[str], Identity | None],
    ) -> dict[str, list[str]]:
        """For each log, the other files that begin with all of it.

        Each file is read once at most, however many logs it may contain.

        Args:
            searches: heads of logs by name, with the files that may contain them.
            identity_of: gives a log's identity; asked only of logs that begin like another file.
        """
        logs: dict[tuple[int, str], list[str]] = {}
        wanted: dict[str, tuple[RawFile, list[tuple[int, str]]]] = {}
        for place, (heads, files) in enumerate(searches):
            for name, own in heads.items():
                if own:
                    logs.setdefault((place, own), []).append(name)
            for file in files:
                keys = [(place, heads) for heads in shorter_heads(self.heads(file.source_file))]
                keys = [key for key in keys if key in logs and logs[key] != [file.source_file]]
                if keys:
                    wanted.setdefault(file.source_file, (file, []))[1].extend(keys)
        ends = {key: _ends(logs[key], identity_of) for key in {key for _, keys in wanted.values() for key in keys}}
        found: dict[str, list[str]] = {}
        for other, (file, keys) in wanted.items():
            lengths = sorted({length for key in keys for length, _ in ends[key]})
            if not lengths:  # of these logs nothing is known, and without a length the file would be read to its end
                continue
            for end in self._beginnings_of(file, lengths).items():
                for name in (name for key in keys for name in ends[key].get(end, []) if name != other):
                    found.setdefault(name, []).append(other)
        return found

    def _beginnings_of(self, file: RawFile, lengths: Sequence[int]) -> dict[int, str]:
        """Digests of a file's first bytes, for those of the ascending lengths that it has."""
        own = self._identities.get(file.source_file)
        if own is None:
            return self._read(file, lengths)
        shorter = [length for length in lengths if length < own.plain_bytes]
        return (self._read(file, shorter) if shorter else {}) | {own.plain_bytes: own.digest}

    def identity(self, file: RawFile) -> Identity | None:
        """What a file holds; None where it cannot be read."""
        if file.source_file not in self._identities:
            self._read(file)
        return self._identities[file.source_file]

    def contains(self, file: RawFile, log: Identity | None) -> bool:
        """Whether a file begins with all of a log."""
        if log is None or log.is_empty:
            return False
        key = (file.source_file, log.plain_bytes)
        if key not in self._beginnings:
            self._beginnings[key] = self._beginnings_of(file, [log.plain_bytes]).get(log.plain_bytes)
        return self._beginnings[key] == log.digest

    def is_same(self, file: RawFile, other: RawFile) -> bool:
        """Whether two files hold the same."""
        return self.identity(file) == self.identity(other)

    def is_whole_and(self, file: RawFile, log: Identity | None) -> bool:
        """Whether a file holds exactly a log, and is not damaged."""
        return self.identity(file) == log and file.source_file not in self._damaged

    def _read(self, file: RawFile, lengths: Sequence[int] = ()) -> dict[int, str]:
        """Digests of a file's first bytes, so and so many, ascending; without lengths it is read to its end.

        What turns out to end there is known as a whole.
        """
        name, hasher = file.source_file, Hasher(file)
        found: dict[int, str] = {}
        left = deque(lengths)
        try:
            for block in plain_blocks(file, self._unpacked_bytes):
                if isinstance(block, Damage):
                    self._damaged.add(name)
                    break
                rest = memoryview(block)
                while left and hasher.plain_bytes + len(rest) >= left[0]:
                    end = left[0] - hasher.plain_bytes
                    hasher.add(rest[:end])
                    found[left.popleft()] = hasher.digest
                    rest = rest[end:]
                if lengths and not left and rest:
                    return found
                hasher.add(rest)
            self._identities[name] = hasher.identity
        except HealthAssetsError:  # which whoever reads its lines is told
            self._identities.setdefault(name, None)
        return found


def _ends(names: Iterable[str], identity_of: Callable[[str], Identity | None]) -> dict[tuple[int, str], list[str]]:
    """Logs by how long they are and the digest of all that they hold."""
    found: dict[tuple[int, str], list[str]] = {}
    for name in names:
        if (own := identity_of(name)) is not None and not own.is_empty:
            found.setdefault((own.plain_bytes, own.digest), []).append(name)
    return found


def _heads_of(files: Sequence[RawFile]) -> dict[str, str]:
    """`Identity.heads` of files, but for those that cannot be read; objects of a store are asked for side by side."""
    if any(file.store is not None for file in files):
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            found = list(pool.map(_head_of, files))
    else:
        found = [_head_of(file) for file in files]
    return {file.source_file: heads for file, heads in zip(files, found, strict=True) if heads is not None}


def _head_of(file: RawFile) -> str | None:
    try:
        return heads_of(file, plain_head(file))
    except HealthAssetsError:  # which whoever reads its lines is told
        return None
