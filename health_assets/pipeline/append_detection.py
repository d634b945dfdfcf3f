"""Append detection: of a log that only grew, the new lines alone are read, and its rows stay.

What belongs here: which changed files these are, and adding what they held before to what is read of them. What does
not: the proof that a file only grew (`logs.append_proof`) and what becomes of rows (`ingestion`).

A file is read as a whole all the same where what is made of its first lines depends on those behind them: how many
rejected lines get a row does, and what lines are mended to; where the last line gives rejected ones behind it no hour;
and where an upgrade wants all lines read anew.
Digests of lines are sums, so those of both pieces add up to what reading the whole would have given.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from health_assets.logs.append_proof import Beginning, beginning
from health_assets.logs.known_files import KnownFile
from health_assets.logs.limits import Limits
from health_assets.logs.otlp_lines import is_otlp
from health_assets.logs.reader import hour_of_line
from health_assets.logs.stores import RawFile
from health_assets.logs.tally import Content
from health_assets.warehouse.file_slices import EMPTY_SLICE, Entry, FileSlice, SliceContent


@dataclass(frozen=True)
class Appended:
    """Files that only grew since they were read.

    Args:
        beginnings: by name, what was read of them.
        known: the slices of what was read.
    """

    beginnings: Mapping[str, Beginning]
    known: Mapping[FileSlice, SliceContent]

    def without(self, names: Collection[str]) -> "Appended":
        """The same but for some files, which are read as a whole."""
        return Appended(
            {name: begun for name, begun in self.beginnings.items() if name not in names},
            {file_slice: lines for file_slice, lines in self.known.items() if file_slice.source_file not in names},
        )

    def with_known(self, files: Sequence[RawFile], found: Iterable[Content]) -> list[Content]:
        """Add what files held before to what was read of them just now.

        Args:
            files: the files that were read.
            found: what was read just now.
        """
        places = {file.source_file: place for place, file in enumerate(files)}
        whole = {(content.file_id, content.record_type, content.hour): content for content in found}
        for file_slice, lines in self.known.items():
            if file_slice.source_file not in places or not lines.count:
                continue
            key = places[file_slice.source_file], file_slice.record_type, file_slice.hour
            own = Content(file_id=key[0], record_type=key[1], hour=key[2], lines=lines.count, digest=int(lines.digest))
            new = whole.get(key)
            whole[key] = own if new is None else _sum(new, own)
        return [*whole.values()]

    def without_known(self, whole: Mapping[FileSlice, SliceContent]) -> dict[FileSlice, int]:
        """Count the lines of each slice that were read just now, where files hold these as a whole."""
        return {
            file_slice: lines.count - self.known.get(file_slice, EMPTY_SLICE).count
            for file_slice, lines in whole.items()
        }

    def read_bytes(self, file: RawFile) -> int:
        """Count the bytes of a file that are read now."""
        begun = self.beginnings.get(file.source_file)
        return file.size_bytes - (begun.size_bytes if begun else 0)


NOTHING = Appended({}, {})
"""No file."""


def detect_appends(
    files: Iterable[RawFile], before: Mapping[str, KnownFile], entries: Iterable[Entry], limits: Limits
) -> Appended:
    """Find out which of some changed files only grew, and need not be read as a whole.

    Args:
        files: the files.
        before: by name, what the ledger says of them.
        entries: their slices in the ledger, with others perhaps.
        limits: limits on what is taken of logs.
    """
    slices: dict[str, dict[FileSlice, SliceContent]] = {}
    for entry in entries:
        slices.setdefault(entry.file_slice.source_file, {})[entry.file_slice] = entry.lines
    found = Appended({}, {})
    for file in files:
        own, known = slices.get(file.source_file, {}), before[file.source_file]
        if known.is_to_be_read_whole:
            continue
        begun = beginning(file, known.identity)
        if begun and _gives_an_hour(begun, limits):
            found = Appended({**found.beginnings, file.source_file: begun}, {**found.known, **own})
    return found


def _gives_an_hour(begun: Beginning, limits: Limits) -> bool:
    """Whether the last line that was read gives an hour to rejected lines behind it; records of our own always do."""
    line = begun.last_line
    return line is None or not is_otlp(line) or hour_of_line(line, limits) is not None


def _sum(one: Content, other: Content) -> Content:
    return replace(one, lines=one.lines + other.lines, digest=(one.digest + other.digest) % 2**64)
