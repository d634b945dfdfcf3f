"""File matching: what became of raw logs that the ledger knows, by what they hold and not by their names.

What belongs here: comparing the files that there are now with those that were read, and with each other. What does not:
looking into files (`content_index`), what follows for the ledger and the tables (`warehouse.file_ledger`) and reading
lines (`logs`).

A log is *contained* in a file whose plain bytes begin with the log's: the same log renamed, packed, rotated or copied,
and perhaps grown since. Of files that are there now, one that is contained in another is its copy and counts for
nothing; of equal ones the greatest name counts. So what counts follows from the files alone, not from when they came.

A file whose size and modification time are those of before, and whose change time is another, is read to its end: it
may have been rewritten by a program that sets times.

A log that was read and is no longer under its name has *moved* to the file that contains it now, or is gone. Of
files that were not read before, a few kilobytes are looked at; whole files are compared only where these agree.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from health_assets.core.judges import TRUSTED, Trust
from health_assets.logs.content_index import ContentIndex
from health_assets.logs.identity import Identity, shorter_heads
from health_assets.logs.known_files import KnownFile, MatchedFiles
from health_assets.logs.limits import Unpacking
from health_assets.logs.stores import RawFile, Stamp, is_among, is_same_stamp, is_trusted


def match_files(
    known: Mapping[str, KnownFile],
    files: Sequence[RawFile],
    unreadable: Collection[str] = (),
    *,
    unpacking: Unpacking,
    trusted: Trust = TRUSTED,
    full_refresh: bool = False,
) -> MatchedFiles:
    """Find out what became of known files, and which of those there are now count.

    Args:
        known: the ledger's word on the files.
        files: all raw logs that there are now.
        unreadable: files that are there and cannot be read; nothing is found out about them.
        unpacking: most that is read of one file, once it is unpacked.
        trusted: the logs whose judgements count as whose they say they are; no other log counts for these.
        full_refresh: whether to read every file to its end, also where size and times tell of no change.
    """
    return _Comparison(known, files, unreadable, unpacking, trusted, full_refresh=full_refresh).result()


def cut_or_replaced(
    files: Iterable[RawFile],
    before: Mapping[str, Identity | None],
    now: Mapping[str, Identity],
    unpacking: Unpacking,
) -> set[str]:
    """Names of files that no longer begin with what was read of them before, as far as that is known.

    The others may still have fewer lines, where this program makes other lines of the same bytes than an older one.

    Args:
        files: the files.
        before: by name, what was read of it; None where an older version read it, and nobody knows.
        now: by name, what was read of it just now.
        unpacking: most that is read of one file, once it is unpacked.
    """
    chosen = [file for file in files if before[file.source_file] is not None]
    index = ContentIndex({file.source_file: now.get(file.source_file) for file in chosen}, [], unpacking)
    return {file.source_file for file in chosen if not index.contains(file, before[file.source_file])}


class _Comparison:
    def __init__(
        self,
        known: Mapping[str, KnownFile],
        files: Sequence[RawFile],
        unreadable: Collection[str],
        unpacking: Unpacking,
        trusted: Trust,
        *,
        full_refresh: bool,
    ) -> None:
        self._known = known
        self._files = {file.source_file: file for file in files}
        self._unreadable = unreadable
        self._trusted = trusted
        self._unchanged = {
            name
            for name, file in self._files.items()
            if not full_refresh and name in known and is_same_stamp(known[name].stamp, file.stamp)
        }
        self._logs_by_heads = Counter(
            own.identity.heads
            for own in known.values()
            if own.copy_of is None and own.identity is not None and not own.is_cut
        )
        self._index = ContentIndex(
            {name: known[name].identity for name in self._unchanged},
            [file for name, file in self._files.items() if name not in self._unchanged],
            unpacking,
        )
        doubtful = {
            name: file
            for name, file in self._files.items()
            if name in known and name not in self._unchanged and known[name].stamp[:2] == file.stamp[:2]
        }
        self._confirmed = {
            name: file
            for name, file in doubtful.items()
            if (before := known[name].identity) is not None and self._index.is_whole_and(file, before)
        }
        self._rewritten = doubtful.keys() - self._confirmed.keys()
        self._unchanged |= self._confirmed.keys()

    def result(self) -> MatchedFiles:
        copies = self._copies()
        counting = [name for name in self._files if name not in copies]
        found = MatchedFiles(files=[self._files[name] for name in counting])
        for name, keeper in copies.items():
            identity = self._index.identity(self._files[name])
            if identity:
                found.copies[name] = (self._files[name], identity, keeper)
        self._find_moved(found, copies)
        self._find_restored(found)
        found.gone = {
            name
            for name, own in self._known.items()
            if own.copy_of is None
            and name not in self._files
            and name not in found.moved
            and name not in found.contained
            and name not in found.restored
            and (own.is_cut or not is_among(self._unreadable, name))
        }
        counted = {name: file for name, file in self._confirmed.items() if self._counted(name) and name not in copies}
        found.same |= {name: file for name, file in counted.items() if file.stamp != self._known[name].stamp}
        self._find_unread(found)
        return found

    def _find_unread(self, found: MatchedFiles) -> None:
        """Tell which of the files that count have to be read."""
        displaced = found.contained | found.displaced
        stamps = {
            found.name_now(name): own.stamp
            for name, own in self._known.items()
            if own.copy_of is None and name not in displaced
        }
        for file in found.files:
            if file.source_file not in stamps:
                found.new.append(file)
            elif self._is_changed(file, stamps[file.source_file]) and file.source_file not in found.same:
                found.changed.append(file)
        found.before = {now: self._known[name] for now, name in found.names_before.items()}

    def _is_changed(self, file: RawFile, before: Stamp) -> bool:
        return file.source_file in self._rewritten or not is_same_stamp(file.stamp, before)

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
        rest = [file for name, file in self._files.items() if name not in settled]
        steady = [file.source_file for file in rest if file.source_file not in doubtful]
        holders = self._index.holders(
            [
                (self._index.heads_among(doubtful), rest),
                (self._index.heads_among(steady), [self._files[name] for name in doubtful]),
            ],
            lambda names: self._index.identities([self._files[name] for name in names]),
        )
        longer: dict[str, str] = {}
        for name, others in holders.items():
            greater = [other for other in others if self._counts_for(other, name)]
            if greater:
                longer[name] = max(greater)
        return settled | {name: _end_of(longer, name) for name in longer}

    def _still_counts(self, keeper: str, copy: str) -> bool:
        """Whether a file goes on counting for its copy: as it was, or out of sight when all that it held was loaded.

        A gone file whose copy is all of it has not gone at all, so that is looked at anew. Of one that cannot be read,
        nobody knows better.
        """
        if is_among(self._unreadable, keeper):
            return True
        if keeper in self._files:
            is_as_it_was = keeper in self._unchanged and self._known[keeper].copy_of is None
            return is_as_it_was and self._counts_for(keeper, copy)
        own = self._known.get(keeper)
        return (
            own is not None
            and own.is_complete
            and own.identity != self._known[copy].identity
            and self._may_count_for(keeper, copy)
        )

    def _counts_for(self, other: str, name: str) -> bool:
        """Whether a file that begins with all of another makes that one its copy."""
        if not self._may_count_for(other, name):
            return False
        is_longer = not self._index.is_same(self._files[name], self._files[other])
        return is_longer or self._rank(name) < self._rank(other)

    def _may_count_for(self, other: str, name: str) -> bool:
        """Whether no trust is lost where a log goes by another name.

        Else anybody who copies what a person wrote could make it an agent's.
        """
        return self._is_trusted(other) or not self._is_trusted(name)

    def _rank(self, name: str) -> tuple[bool, str]:
        """The rank of a file among equal ones: the greatest counts."""
        return self._is_trusted(name), name

    def _is_trusted(self, name: str) -> bool:
        """Whether a log is trusted; of one that is gone its name decides, so that no trust is lost with it."""
        file = self._files.get(name)
        return self._trusted.names(name) if file is None else is_trusted(file, self._trusted)

    # -- files that were read --

    def _find_moved(self, found: MatchedFiles, copies: Mapping[str, str]) -> None:
        """Find the logs that are not, or not only, under their old names."""
        unmatched = {name: own.identity for name, own in self._unmatched(copies) if own.identity}
        matches = self._matches(unmatched, copies)
        resuming = self._resuming(unmatched.keys() - matches.keys(), copies)
        matches |= resuming
        taken: set[str] = set()
        for name in sorted(matches, key=lambda name: (unmatched[name].plain_bytes, name), reverse=True):
            home = matches[name]
            if name in resuming:
                found.resumed[home] = name
            if home in taken or self._goes_on(home, matches):
                found.contained.add(name)
                continue
            taken.add(home)
            found.moved[name] = home
            if self._is_all_of(name, home):
                found.same[home] = self._files[home]
        found.contained |= {name for name in copies if self._counted(name) and name not in found.moved}
        self._find_displaced(found, taken)

    def _find_restored(self, found: MatchedFiles) -> None:
        """Find what files held before they were cut, in files that are others than in the last run."""
        cut = {name: own.identity for name, own in self._known.items() if own.is_cut and own.identity}
        others = [file for name, file in self._files.items() if name not in self._unchanged]
        holders = self._index.holders([({name: own.heads for name, own in cut.items()}, others)], lambda _: cut)
        found.restored = {
            name for name, files in holders.items() if any(self._may_count_for(file, name) for file in files)
        }

    def _matches(self, unmatched: Mapping[str, Identity], copies: Mapping[str, str]) -> dict[str, str]:
        """The files that hold logs which are no longer where they were."""
        keepers = set(copies.values())
        targets = [
            file
            for name, file in self._files.items()
            if name not in copies and (name not in self._unchanged or name in keepers or self._was_copy(name))
        ]
        heads = {name: own.heads for name, own in unmatched.items()}
        matches = {}
        for name, others in self._index.holders([(heads, targets)], lambda _: unmatched).items():
            fit = [other for other in others if self._may_count_for(other, name)]
            if fit:
                matches[name] = max(fit)
        return matches

    def _resuming(self, gone: Collection[str], copies: Mapping[str, str]) -> dict[str, str]:
        """The copies that stand in for logs that are nowhere: each counts now, and still begins as the log did.

        What both held would count twice, were the rows of the log that is gone to stay.
        """
        found: dict[str, str] = {}
        for name in sorted(self._files.keys() - copies.keys()):
            own = self._known.get(name)
            if own is None or own.copy_of is None or own.copy_of not in gone:
                continue
            may_count = self._may_count_for(name, own.copy_of)
            if may_count and self._index.contains(self._files[name], own.identity):
                found[own.copy_of] = max(found.get(own.copy_of, name), name, key=self._plain_bytes)
        return found

    def _plain_bytes(self, name: str) -> int:
        identity = self._known[name].identity
        return identity.plain_bytes if identity else 0

    def _find_displaced(self, found: MatchedFiles, taken: Collection[str]) -> None:
        """Find the logs that are nowhere, and whose names other known logs have now."""
        for home in self._known.keys() & taken:
            if not self._counted(home) or home in found.moved or home in found.contained:
                continue
            identity = self._known[home].identity
            is_nothing = identity is not None and identity.is_empty
            (found.contained if is_nothing else found.displaced).add(home)

    def _unmatched(self, copies: Mapping[str, str]) -> Iterable[tuple[str, KnownFile]]:
        """Known logs that are gone from their names, or stand there beside another that counts for them."""
        for name, own in self._known.items():
            if own.copy_of is not None or own.identity is None or own.identity.is_empty or own.is_cut:
                continue
            if name in copies or self._holds_another(name, own.identity):
                yield name, own

    def _holds_another(self, name: str, before: Identity) -> bool:
        """Whether a name is no longer there, or its file begins otherwise than it did."""
        if name not in self._files:
            return not is_among(self._unreadable, name)
        if name in self._unchanged:
            return False
        if not self._index.begins_as(name, before):
            return True
        logs = sum(self._logs_by_heads[heads] for heads in shorter_heads(self._index.heads(name)))
        # all logs may begin with the same header, so the rest decides where it may be another of them
        return logs > 1 and not self._index.contains(self._files[name], before)

    def _counted(self, name: str) -> bool:
        return name in self._known and self._known[name].copy_of is None

    def _was_copy(self, name: str) -> bool:
        return name in self._known and self._known[name].copy_of is not None

    def _goes_on(self, home: str, matches: Mapping[str, str]) -> bool:
        """Whether a file has a log of its own in the ledger already, as it was or grown."""
        own = self._known.get(home)
        if own is None or own.copy_of is not None or home in matches:
            return False
        if home in self._unchanged or own.identity is None or own.identity.is_empty:
            return home in self._unchanged
        return self._index.contains(self._files[home], own.identity)

    def _is_all_of(self, name: str, home: str) -> bool:
        """Whether a file holds exactly a known log, of which nothing depends on name, time or damage of the file."""
        own = self._known[name]
        return not own.rejected and self._index.is_whole_and(self._files[home], own.identity)


def _end_of(chain: Mapping[str, str], name: str) -> str:
    while name in chain:
        name = chain[name]
    return name
