"""Recognition: what became of raw logs that the ledger knows, by what they hold and not by their names.

What belongs here: comparing the files that there are now with those that were read, and with each other. What does not:
what follows for the ledger and the tables (`warehouse.file_ledger`) and reading lines (`logs`).

A log is *contained* in a file whose plain bytes begin with the log's: the same log renamed, packed, rotated or copied,
and perhaps grown since. Of files that are there now, one that is contained in another is its copy and counts for
nothing; of equal ones the greatest name counts. So what counts follows from the files alone, not from when they came.

A log that was read and is no longer under its name has *moved* to the file that contains it now, or is gone. Of
files that were not read before, a few kilobytes are looked at; whole files are compared only where these agree.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime

from health_assets.errors import HealthAssetsError
from health_assets.logs.files import RawFile, plain_blocks, plain_head
from health_assets.logs.formats.records import Damage
from health_assets.logs.identity import Hasher, Identity, heads_of
from health_assets.logs.stores import is_among

NUMBERED = re.compile(r"\.\d+(\.gz)?$", re.IGNORECASE)
"""Names by which log rotation counts: what is pushed out of one is deleted, not replaced."""

REQUESTS_AT_ONCE = 16


@dataclass(frozen=True)
class KnownFile:
    """A file as the ledger knows it.

    Args:
        stamp: size and modification time when it was read.
        identity: what it held; None where it was read by an older version.
        rejected: how many of its records were rejected.
        copy_of: the file that counts in its place.
        gone_at: when a run first found it gone.
        is_complete: whether the tables have, or on purpose no longer have, all that it held.
    """

    stamp: tuple[int, int]
    identity: Identity | None
    rejected: int = 0
    copy_of: str | None = None
    gone_at: datetime | None = None
    is_complete: bool = True


@dataclass
class Recognized:
    """What became of known files, and which of those there are now count.

    Args:
        files: the files that count.
        copies: files that do not, with what they hold and the name of the file that counts for them.
        moved: known names, with the names under which their logs go on.
        pushed_out: known names that hold something else now, of logs that are gone, not replaced.
        contained: known names whose logs are part of other logs that count by themselves.
        same: files that hold exactly what was read of a log that moved there, so that nothing has to be read again.
        gone: known names of logs that are nowhere any more.
        new: those of the files of which nothing was read before.
        changed: those of which an earlier or another content was read.
    """

    files: list[RawFile]
    copies: dict[str, tuple[RawFile, Identity, str]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    pushed_out: set[str] = field(default_factory=set)
    contained: set[str] = field(default_factory=set)
    same: dict[str, RawFile] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    new: list[RawFile] = field(default_factory=list)
    changed: list[RawFile] = field(default_factory=list)

    def name_now(self, known: str) -> str:
        """The name under which a known log goes on."""
        return self.moved.get(known, known)

    @property
    def names_before(self) -> dict[str, str]:
        """The names that the ledger has for what was read of the changed files."""
        before = {now: known for known, now in self.moved.items()}
        return {file.source_file: before.get(file.source_file, file.source_file) for file in self.changed}


def recognize(
    known: Mapping[str, KnownFile], files: Sequence[RawFile], unreadable: Collection[str] = (), *, unpacked_bytes: int
) -> Recognized:
    """Find out what became of known files, and which of those there are now count.

    Args:
        known: what the ledger says.
        files: all raw logs that there are now.
        unreadable: what is there and cannot be read; nothing is found out about it.
        unpacked_bytes: most bytes of one file that are read, once it is unpacked.
    """
    return _Comparison(known, files, unreadable, unpacked_bytes).result()


class _Comparison:
    def __init__(
        self,
        known: Mapping[str, KnownFile],
        files: Sequence[RawFile],
        unreadable: Collection[str],
        unpacked_bytes: int,
    ) -> None:
        self._known = known
        self._files = {file.source_file: file for file in files}
        self._unreadable = unreadable
        self._unchanged = {
            name for name, file in self._files.items() if name in known and known[name].stamp == file.stamp
        }
        self._looks = _Looks(
            {name: known[name].identity for name in self._unchanged},
            [file for name, file in self._files.items() if name not in self._unchanged],
            unpacked_bytes,
        )

    def result(self) -> Recognized:
        copies = self._copies()
        counting = [name for name in self._files if name not in copies]
        found = Recognized([self._files[name] for name in counting])
        for name, keeper in copies.items():
            identity = self._looks.identity(self._files[name])
            if identity:
                found.copies[name] = (self._files[name], identity, keeper)
        self._find_moved(found, copies)
        found.gone = {
            name
            for name, own in self._known.items()
            if own.copy_of is None
            and name not in self._files
            and name not in found.moved
            and name not in found.contained
            and not is_among(self._unreadable, name)
        }
        self._find_unread(found)
        return found

    def _find_unread(self, found: Recognized) -> None:
        """Tell which of the files that count have to be read."""
        displaced = found.contained | found.pushed_out
        stamps = {
            found.name_now(name): own.stamp
            for name, own in self._known.items()
            if own.copy_of is None and name not in displaced
        }
        stamps |= {name: file.stamp for name, file in found.same.items()}
        for file in found.files:
            if file.source_file not in stamps:
                found.new.append(file)
            elif stamps[file.source_file] != file.stamp:
                found.changed.append(file)

    # -- files that are there now --

    def _copies(self) -> dict[str, str]:
        """The files that do not count, each with the one that does."""
        settled = {
            name: keeper
            for name in self._unchanged
            if (keeper := self._known[name].copy_of) is not None and self._still_counts(keeper, name)
        }
        doubtful = {
            name for name in self._files if name not in self._unchanged or self._known[name].copy_of is not None
        } - settled.keys()
        if not doubtful:
            return settled
        rest = [name for name in self._files if name not in settled]
        steady = [name for name in rest if name not in doubtful]
        alike = self._looks.beginning_alike(doubtful, rest) | self._looks.beginning_alike(steady, doubtful)
        longer: dict[str, str] = {}
        for name, others in alike.items():
            greater = [other for other in others if self._is_copy(name, other)]
            if greater:
                longer[name] = max(greater)
        return settled | {name: _end_of(longer, name) for name in longer}

    def _still_counts(self, keeper: str, copy: str) -> bool:
        """Whether a file goes on counting for its copy: as it was, or gone when all that it held was loaded.

        A gone file whose copy is all of it has not gone at all, so that is looked at anew.
        """
        if keeper in self._files:
            return keeper in self._unchanged and self._known[keeper].copy_of is None
        own = self._known.get(keeper)
        return own is not None and own.is_complete and own.identity != self._known[copy].identity

    def _is_copy(self, name: str, other: str) -> bool:
        if not self._looks.contains(self._files[other], self._looks.identity(self._files[name])):
            return False
        return not self._looks.is_same(self._files[name], self._files[other]) or name < other

    # -- files that were read --

    def _find_moved(self, found: Recognized, copies: Mapping[str, str]) -> None:
        """Find the logs that are not, or not only, under their old names."""
        homeless = {name: own.identity for name, own in self._homeless(copies) if own.identity}
        keepers = set(copies.values())
        targets = [
            name
            for name in self._files
            if name not in copies and (name not in self._unchanged or name in keepers or self._was_copy(name))
        ]
        alike = self._looks.beginning_alike(homeless, targets, {name: own.heads for name, own in homeless.items()})
        homes = {}
        for name, others in alike.items():
            holding = [other for other in others if self._looks.contains(self._files[other], homeless[name])]
            if holding:
                homes[name] = max(holding)
        taken: set[str] = set()
        for name in sorted(homes, key=lambda name: (homeless[name].plain_bytes, name), reverse=True):
            home = homes[name]
            if home in taken or self._goes_on(home, homes):
                found.contained.add(name)
                continue
            taken.add(home)
            found.moved[name] = home
            if self._is_all_of(name, home):
                found.same[home] = self._files[home]
        found.contained |= {name for name in copies if self._counted(name) and name not in found.moved}
        for home in taken & self._known.keys():
            if self._counted(home) and home not in found.moved and home not in found.contained:
                (found.pushed_out if NUMBERED.search(home) else found.contained).add(home)

    def _homeless(self, copies: Mapping[str, str]) -> Iterable[tuple[str, KnownFile]]:
        """Known logs that are gone from their names, or stand there beside another that counts for them."""
        for name, own in self._known.items():
            if own.copy_of is not None or own.identity is None or own.identity.is_empty:
                continue
            if name in copies or self._holds_another(name, own.identity):
                yield name, own

    def _holds_another(self, name: str, before: Identity) -> bool:
        """Whether a name is no longer there, or its file begins otherwise than it did."""
        if name not in self._files:
            return not is_among(self._unreadable, name)
        return name not in self._unchanged and not self._looks.begins_as(name, before)

    def _counted(self, name: str) -> bool:
        return name in self._known and self._known[name].copy_of is None

    def _was_copy(self, name: str) -> bool:
        return name in self._known and self._known[name].copy_of is not None

    def _goes_on(self, home: str, homes: Mapping[str, str]) -> bool:
        """Whether a file has a log of its own in the ledger already, as it was or grown."""
        own = self._known.get(home)
        if own is None or own.copy_of is not None or home in homes:
            return False
        if home in self._unchanged or own.identity is None or own.identity.is_empty:
            return home in self._unchanged
        return self._looks.begins_as(home, own.identity)

    def _is_all_of(self, name: str, home: str) -> bool:
        """Whether a file holds exactly a known log, of which nothing depends on name, time or damage of the file."""
        own = self._known[name]
        return not own.rejected and self._looks.is_whole_and(self._files[home], own.identity)


def _end_of(chain: Mapping[str, str], name: str) -> str:
    while name in chain:
        name = chain[name]
    return name


class _Looks:
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

    def begins_as(self, name: str, before: Identity) -> bool:
        """Whether a file begins like a log; no more than that is looked at."""
        return self._heads.get(name, "").startswith(before.heads)

    def beginning_alike(
        self, names: Iterable[str], others: Iterable[str], heads: Mapping[str, str] | None = None
    ) -> dict[str, list[str]]:
        """Of each file or log, the other files that may contain it, by their first bytes."""
        heads = self._heads if heads is None else heads
        sought = {name: heads[name] for name in names if heads.get(name)}
        wanted, lengths = set(sought.values()), {len(own) for own in sought.values()}
        holders: dict[str, list[str]] = {}
        for other in others:
            own = self._heads.get(other, "")
            for length in lengths:
                if length <= len(own) and own[:length] in wanted:
                    holders.setdefault(own[:length], []).append(other)
        alike = {name: [other for other in holders.get(own, []) if other != name] for name, own in sought.items()}
        return {name: found for name, found in alike.items() if found}

    def identity(self, file: RawFile) -> Identity | None:
        """What a file holds; None where it cannot be read."""
        if file.source_file not in self._identities:
            self._read(file, None)
        return self._identities[file.source_file]

    def contains(self, file: RawFile, log: Identity | None) -> bool:
        """Whether a file begins with all of a log."""
        if log is None or log.is_empty:
            return False
        key = (file.source_file, log.plain_bytes)
        own = self._identities.get(file.source_file)
        if own is not None and own.plain_bytes <= log.plain_bytes:
            return own == log
        if key not in self._beginnings:
            self._read(file, log.plain_bytes)
        return self._beginnings[key] == log.digest

    def is_same(self, file: RawFile, other: RawFile) -> bool:
        """Whether two files hold the same."""
        return self.identity(file) == self.identity(other)

    def is_whole_and(self, file: RawFile, log: Identity | None) -> bool:
        """Whether a file holds exactly a log, and is not damaged."""
        return self.identity(file) == log and file.source_file not in self._damaged

    def _read(self, file: RawFile, end: int | None) -> None:
        """Read a file up to some length, or to its end; what turns out to end there is known as a whole."""
        name, hasher = file.source_file, Hasher(file)
        at_end: str | None = None
        try:
            for block in plain_blocks(file, self._unpacked_bytes):
                if isinstance(block, Damage):
                    self._damaged.add(name)
                    break
                if end is not None and at_end is None and hasher.plain_bytes + len(block) >= end:
                    left = end - hasher.plain_bytes
                    hasher.add(block[:left])
                    at_end, block = hasher.identity.digest, block[left:]
                if at_end is not None and block:
                    break
                hasher.add(block)
            else:
                self._identities[name] = hasher.identity
            if name in self._damaged:
                self._identities[name] = hasher.identity
        except HealthAssetsError:  # which whoever reads its lines is told
            self._identities.setdefault(name, None)
        if end is not None:
            self._beginnings[name, end] = at_end


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
