"""Late logs: what the logs hold that the hours' tables do not, found out without changing anything.

What belongs here: comparing files with what the ledger says of them. What does not: counting what files hold
(`file_counts`), loading what is missing (`ingestion`) and requesting runs that do (`defs.sensors`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from health_assets.core.errors import UnreadableFilesError
from health_assets.core.judges import TRUSTED, Trust
from health_assets.logs.files import RawFile
from health_assets.logs.known_files import Recognized
from health_assets.logs.late_memory import LateMemory
from health_assets.logs.limits import Limits, current_limits
from health_assets.logs.recognition import recognize
from health_assets.logs.stores import Faults, is_among
from health_assets.logs.tally import Content
from health_assets.pipeline.file_counts import CountFiles, counted_here
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.ledger_parts import NO_LINES, Entry, Lines, Part
from health_assets.warehouse.session import Session


@dataclass(frozen=True, kw_only=True)
class Unread:
    """The facts that tell which tables no longer agree with the logs; reading them does not hold the warehouse.

    Args:
        found: fate of the known files.
        files: new and changed files.
        entries: the ledger's entries of the changed ones, under their names of now.
        not_loaded: parts that are known, but not in their hours' tables, also of a file that was found gone just now;
            and those of hours that no run was asked for yet.
    """

    found: Recognized
    files: Sequence[RawFile]
    entries: Sequence[Entry]
    not_loaded: Sequence[Part]


def unread(
    session: Session,
    files: Sequence[RawFile],
    unreadable: Collection[str] = (),
    *,
    limits: Limits | None = None,
    trusted: Trust = TRUSTED,
) -> Unread:
    """Look up what there is to compare; files that were merely renamed or packed are compared with what they were.

    Whoever must not hold the warehouse while files are read does the two steps of this: `recognize`, and `compared`.

    Args:
        session: a session on the warehouse.
        files: all raw logs that there are now.
        unreadable: files that are there and cannot be read.
        limits: limits on what is taken of logs; by default those of now.
        trusted: the logs whose judgements count as whose they say they are.
    """
    limits = limits or current_limits()
    before = FileLedger(session).known(limits.until)
    found = recognize(before, files, unreadable, unpacking=limits.unpacking, trusted=trusted)
    return compared(session, found, unreadable)


def compared(session: Session, found: Recognized, unreadable: Collection[str] = ()) -> Unread:
    """Look up what recognized files are compared with; reads nothing but the warehouse."""
    ledger = Ledger(session)
    known = ledger.entries(found.names_before.values())
    waiting = [part for part in ledger.not_loaded() if not is_among(unreadable, part.source_file)]
    waiting += ledger.not_materialized()
    return Unread(
        found=found,
        files=[*found.new, *found.changed],
        entries=[replace(entry, part=_part_now(found, entry.part)) for entry in known],
        not_loaded=[_part_now(found, part) for part in waiting],
    )


def all_unread(files: Sequence[RawFile], limits: Limits, trusted: Trust = TRUSTED) -> Unread:
    """The files that count, where there is no warehouse that knows any."""
    found = recognize({}, files, unpacking=limits.unpacking, trusted=trusted)
    return Unread(found=found, files=found.files, entries=[], not_loaded=[])


def _part_now(found: Recognized, part: Part) -> Part:
    return replace(part, source_file=found.name_now(part.source_file))


def late_parts(
    found: Unread,
    memory: LateMemory | None = None,
    unreadable: Faults | None = None,
    limits: Limits | None = None,
    count: CountFiles = counted_here,
) -> dict[Part, Lines]:
    """Parts that differ from what the tables were built with, with their lines now; has new and changed files read.

    Args:
        found: result of `unread`.
        memory: what files held when they were last looked at, and how much may be read; what it puts off is seen
            another time. By default everything is read.
        unreadable: is filled with files that cannot be read, which are left out; without it, that is an error.
        limits: limits on what is taken of the files; by default those of now.
        count: counts what files hold; by default this process does.

    Raises:
        UnreadableFilesError: a file cannot be read, and `unreadable` was not given.
    """
    memory = memory or LateMemory.boundless()
    files = [file for file in found.files if not memory.is_put_off(file)]
    memory.only_wait_for(files)
    _remember(_to_be_read(files, memory), found, memory, unreadable, limits, count)
    files = [file for file in files if memory.counts_of(file) is not None]
    now = parts_of(files, _remembered(files, memory))
    before = {entry.part: entry.lines for entry in found.entries if entry.part.source_file in names_of(files)}
    late = {part: now.get(part, NO_LINES) for part in before.keys() | now.keys() if before.get(part) != now.get(part)}
    return dict.fromkeys(found.not_loaded, NO_LINES) | late


def _to_be_read(files: Sequence[RawFile], memory: LateMemory) -> list[RawFile]:
    """The files of which the memory does not know what they hold, as far as it allows."""
    return [file for file in memory.in_turn(files) if memory.counts_of(file) is None and memory.may_read(file)]


def _remember(
    files: Sequence[RawFile],
    known: Unread,
    memory: LateMemory,
    unreadable: Faults | None,
    limits: Limits | None,
    count: CountFiles,
) -> None:
    """Have files read, and note what they hold; of one that cannot be read, nothing."""
    left = {file.source_file: file for file in files}
    while left:
        found = count([*left.values()], limits or current_limits(), known.found.before, known.entries)
        if found.faults:
            if unreadable is None:
                raise UnreadableFilesError(found.faults)
            unreadable |= found.faults
        for name, counts in found.counts.items():
            memory.of(left[name]).counts = counts
        left = {name: file for name, file in left.items() if name not in found.counts and name not in found.faults}


def _remembered(files: Sequence[RawFile], memory: LateMemory) -> list[Content]:
    return [
        Content(
            file_id=place,
            record_type=count.record_type,
            hour=count.hour,
            lines=count.lines,
            digest=count.digest,
            future_at=count.future_at,
        )
        for place, file in enumerate(files)
        for count in memory.counts_of(file) or ()
    ]


def names_of(files: Sequence[RawFile]) -> set[str]:
    """The names by which the ledger knows these files."""
    return {file.source_file for file in files}


def parts_of(files: Sequence[RawFile], found: Sequence[Content]) -> dict[Part, Lines]:
    """The parts of the files that were read."""
    return {
        Part(files[content.file_id].source_file, content.record_type, content.hour): Lines(
            content.lines, str(content.digest)
        )
        for content in found
    }


def future_of(files: Sequence[RawFile], found: Sequence[Content]) -> dict[str, datetime]:
    """The earliest event of the future in each of the files that holds any."""
    times = sorted((content.future_at, content.file_id) for content in found if content.future_at is not None)
    return {files[file_id].source_file: time for time, file_id in reversed(times)}
