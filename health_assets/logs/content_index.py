"""The content index: digests of raw logs, as far as is needed to tell which of them hold the same.

What belongs here: heads, digests of beginnings and of whole files, found out once. What does not: what follows from
them for the logs (`file_matching`), and unpacking bytes (`logs.decompression`).
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from health_assets.core.errors import HealthAssetsError
from health_assets.logs.decompression import decompressed_blocks, decompressed_heads, is_gzip
from health_assets.logs.formats.foreign_lines import Blocks, Damage
from health_assets.logs.identity import Hasher, Identity, heads_of, shorter_heads
from health_assets.logs.limits import Unpacking
from health_assets.logs.read_ahead import Ahead
from health_assets.logs.stores import RawFile


class ContentIndex:
    """The findings about files, those that are known and those of looks into them, each no further than is needed.

    Args:
        known: identities of files that are as they were.
        others: files of which nothing is known.
        unpacking: most that is read of one file, once it is unpacked.
    """

    def __init__(self, known: Mapping[str, Identity | None], others: Sequence[RawFile], unpacking: Unpacking) -> None:
        self._unpacking = unpacking
        self._identities = dict(known)
        self._damaged: set[str] = set()
        self._heads = {name: own.heads for name, own in known.items() if own}
        self._heads |= _heads_of(others)
        self._beginnings: dict[tuple[str, int], str | None] = {}
        self._read_beginnings: dict[str, dict[int, str]] = {}
        """By file that was read, digests of its first bytes, by how many these are."""

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
        identities_of: Callable[[Collection[str]], Mapping[str, Identity | None]],
    ) -> dict[str, list[str]]:
        """For each log, the other files that begin with all of it.

        Each file is read once at most, however many logs it may contain.

        Args:
            searches: heads of logs by name, with the files that may contain them.
            identities_of: gives what logs hold; asked only of logs that begin like another file.
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
        sought = {key for _, keys in wanted.values() for key in keys}
        identities = identities_of({name for key in sought for name in logs[key]})
        ends = {key: _ends(logs[key], identities) for key in sought}
        to_read: list[tuple[RawFile, list[int]]] = []
        for file, keys in wanted.values():
            lengths = sorted({length for key in keys for length, _ in ends[key]})
            if lengths:  # of some logs nothing is known, and without a length the file would be read to its end
                to_read.append((file, lengths))
        found: dict[str, list[str]] = {}
        for other, beginnings in self._beginnings_of(to_read).items():
            _, keys = wanted[other]
            for end in beginnings.items():
                for name in (name for key in keys for name in ends[key].get(end, []) if name != other):
                    found.setdefault(name, []).append(other)
        return found

    def _beginnings_of(self, wanted: Sequence[tuple[RawFile, Sequence[int]]]) -> dict[str, dict[int, str]]:
        """Digests of the first bytes of each file, for those of the ascending lengths that it has."""
        unknown = [(file, self._unknown(file, lengths)) for file, lengths in wanted]
        to_read = [(file, _as_long_as(file, lengths), lengths) for file, lengths in unknown if lengths]
        with Ahead([beginning for _, beginning, _ in to_read]) as ahead:
            found = {
                file.source_file: self._read(file, beginning, ahead, lengths) for file, beginning, lengths in to_read
            }
        for name in (file.source_file for file, _ in wanted):
            if (own := self._identities.get(name)) is not None:
                found[name] = found.get(name, {}) | {own.plain_bytes: own.digest}
        return found

    def _unknown(self, file: RawFile, lengths: Sequence[int]) -> Sequence[int]:
        """The lengths for which a file has to be read."""
        own = self._identities.get(file.source_file)
        return lengths if own is None else [length for length in lengths if length < own.plain_bytes]

    def identities(self, files: Iterable[RawFile]) -> Mapping[str, Identity | None]:
        """The identities of these files, and of others perhaps; None where one cannot be read."""
        unknown = [file for file in files if file.source_file not in self._identities]
        with Ahead(unknown) as ahead:
            for file in unknown:
                self._read(file, file, ahead)
        return self._identities

    def identity(self, file: RawFile) -> Identity | None:
        """The identity of all that a file holds; None where it cannot be read."""
        return self.identities([file])[file.source_file]

    def contains(self, file: RawFile, log: Identity | None) -> bool:
        """Whether a file begins with all of a log."""
        if log is None or log.is_empty:
            return False
        key = (file.source_file, log.plain_bytes)
        if key not in self._beginnings:
            self._beginnings[key] = self._beginnings_of([(file, [log.plain_bytes])])[file.source_file].get(
                log.plain_bytes
            )
        return self._beginnings[key] == log.digest

    def is_same(self, file: RawFile, other: RawFile) -> bool:
        """Whether two files hold the same."""
        return self.identity(file) == self.identity(other)

    def is_whole_and(self, file: RawFile, log: Identity | None) -> bool:
        """Whether a file holds exactly a log, and is not damaged."""
        return self.identity(file) == log and file.source_file not in self._damaged

    def _read(self, file: RawFile, beginning: RawFile, ahead: Ahead, lengths: Sequence[int] = ()) -> dict[int, str]:
        """Digests of a file's first bytes, so and so many, ascending; without lengths it is read to its end.

        What turns out to end there is known as a whole.

        Args:
            file: the file, as it was listed.
            beginning: as much of it as is read.
            ahead: opens the beginning.
            lengths: how many bytes, ascending.
        """
        name, hasher = file.source_file, Hasher(file)
        past = self._read_beginnings.setdefault(name, {})
        if lengths and all(length in past for length in lengths):
            return {length: past[length] for length in lengths}
        try:
            blocks = decompressed_blocks(beginning, self._unpacking, ahead=ahead)
            found, is_whole = self._hashed(name, blocks, hasher, lengths)
        except HealthAssetsError:  # which whoever reads its lines is told
            self._identities.setdefault(name, None)
            return {}
        past |= found
        if is_whole:
            self._identities[name] = hasher.identity
        return found

    def _hashed(self, name: str, blocks: Blocks, hasher: Hasher, lengths: Sequence[int]) -> tuple[dict[int, str], bool]:
        """Digests of the first bytes of a file, and whether it was read to its end for them."""
        found: dict[int, str] = {}
        left = deque(lengths)
        for block in blocks:
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
                return found, False
            hasher.add(rest)
        return found, True


def _heads_of(files: Sequence[RawFile]) -> dict[str, str]:
    """`Identity.heads` of files, but for those that cannot be read."""
    heads = zip(files, decompressed_heads(files), strict=True)
    return {file.source_file: heads_of(file, head) for file, head in heads if head is not None}


def _ends(names: Iterable[str], identities: Mapping[str, Identity | None]) -> dict[tuple[int, str], list[str]]:
    """Logs by how long they are and the digest of all that they hold."""
    found: dict[tuple[int, str], list[str]] = {}
    for name in names:
        if (own := identities[name]) is not None and not own.is_empty:
            found.setdefault((own.plain_bytes, own.digest), []).append(name)
    return found


def _as_long_as(file: RawFile, lengths: Sequence[int]) -> RawFile:
    """An object as if it ended one byte behind the last of the lengths, so that a store is not asked for the rest."""
    if not file.takes_requests or is_gzip(file):
        return file
    return replace(file, size_bytes=min(file.size_bytes, lengths[-1] + 1))
