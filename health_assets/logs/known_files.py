"""Known files: what the ledger says of raw logs that were read, and what became of them.

What belongs here: the two accounts that file matching and the ledger hand each other. What does not: finding out what
became of a file (`file_matching`), and what follows for ledger and tables (`warehouse.file_ledger`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from health_assets.logs.identity import Identity
from health_assets.logs.stores import RawFile, Stamp


@dataclass(frozen=True, kw_only=True)
class KnownFile:
    """A file as the ledger knows it.

    Args:
        stamp: size and times when it was read.
        identity: identity of its content; None where an older version read it.
        rejected: how many of its records were rejected.
        has_notes: whether a reader noted anything of it, as that lines were mended.
        copy_of: the file that counts in its place.
        gone_at: when a run first found it gone.
        is_complete: whether the tables have, or on purpose no longer have, all that it held.
        is_cut: whether it is not a file, but what a file held before it was cut or replaced.
    """

    stamp: Stamp
    identity: Identity | None
    rejected: int = 0
    has_notes: bool = False
    copy_of: str | None = None
    gone_at: datetime | None = None
    is_complete: bool = True
    is_cut: bool = False

    @property
    def is_to_be_read_anew(self) -> bool:
        """Whether its lines may mean something else by now, as after an upgrade; its time is none that a file has."""
        return self.stamp[1] < 0

    @property
    def is_to_be_read_whole(self) -> bool:
        """Whether a tail of it alone does not say what its lines mean."""
        return bool(self.rejected) or self.has_notes or self.is_to_be_read_anew


@dataclass(kw_only=True)
class MatchedFiles:
    """The fates of known files, and the files that count now.

    Args:
        files: the files that count.
        copies: files that do not, with what they hold and the name of the file that counts for them.
        moved: known names, with the names under which their logs go on.
        resumed: files that were copies of a log that is gone and count again, with that log's known name.
        displaced: known names that hold another known log now, of logs that are gone, not replaced.
        contained: known names whose logs are part of other logs that count by themselves.
        same: files that hold exactly what was read of a log that moved there, or of themselves before something about
            them changed, so that nothing has to be loaded again.
        gone: known names of logs that are nowhere any more.
        new: files of which nothing was read before.
        changed: files of which an earlier or another content was read.
        restored: contents from before files were cut, that files hold again.
        before: by name of a changed file, what was read of it before.
    """

    files: list[RawFile]
    copies: dict[str, tuple[RawFile, Identity, str]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    resumed: dict[str, str] = field(default_factory=dict)
    displaced: set[str] = field(default_factory=set)
    contained: set[str] = field(default_factory=set)
    same: dict[str, RawFile] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    new: list[RawFile] = field(default_factory=list)
    changed: list[RawFile] = field(default_factory=list)
    restored: set[str] = field(default_factory=set)
    before: dict[str, KnownFile] = field(default_factory=dict)

    def name_now(self, known: str) -> str:
        """The name under which a known log goes on."""
        return self.moved.get(known, known)

    @property
    def names_before(self) -> dict[str, str]:
        """The names that the ledger has for what was read of the changed files."""
        before = {now: known for known, now in self.moved.items()}
        return {file.source_file: before.get(file.source_file, file.source_file) for file in self.changed}

    def has_copies_of(self, known: Mapping[str, KnownFile], *, with_change_times: bool = True) -> bool:
        """Whether the copies are those that the ledger knows, and of the same files."""
        length = 3 if with_change_times else 2
        noted = {name: own for name, own in known.items() if own.copy_of is not None}
        return noted.keys() == self.copies.keys() and all(
            noted[name].stamp[:length] == file.stamp[:length] and noted[name].copy_of == self.name_now(keeper)
            for name, (file, _, keeper) in self.copies.items()
        )


def is_settled(known: Mapping[str, KnownFile], found: MatchedFiles) -> bool:
    """Whether nothing became of the known files that the ledger does not know, and there is none to be read.

    A file that was read to its end, and holds what it did, may have another change time.

    Args:
        known: the ledger's word on the files.
        found: files that were matched with it.
    """
    fates = (
        found.new, found.changed, found.moved, found.resumed, found.displaced, found.contained, found.restored,
    )  # fmt: skip
    gone = {name for name, own in known.items() if own.gone_at is not None}
    return not any(fates) and found.gone == gone and found.has_copies_of(known, with_change_times=False)
