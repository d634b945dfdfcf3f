"""File reading: one pass over some raw logs, which sends wanted rows to their tables and accounts for all it finds.

What belongs here: what such a pass needs to know, what it tells, and dealing files out to several passes, which may be
on other machines. What does not: parsing (`logs`), which files are read, and what follows (`loading`).

A pass knows nothing of the warehouse: it gets a function that takes rows. So all that it is given and gives can be
sent.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import le

import pyarrow as pa

from health_assets.core.errors import HealthAssetsError, UnreadableFilesError
from health_assets.core.targets import Targets
from health_assets.core.temporary import temporary_folder
from health_assets.logs.files import Identities, Notes, RawFile
from health_assets.logs.identity import Identity
from health_assets.logs.limits import Limits
from health_assets.logs.reader import reading
from health_assets.logs.routing import STREAMED_TABLE, Rejection, Router
from health_assets.pipeline.grown_files import Grown
from health_assets.pipeline.ingestion_scope import Asked
from health_assets.pipeline.late_logs import future_of, names_of, parts_of, rejected_hours
from health_assets.warehouse.ledger_parts import Lines, Part

BYTES_PER_PASS = 128 << 20
"""Files of about so many bytes are read together where several machines read. A larger file is one pass by itself."""
FILES_PER_PASS = 1_000

_NOT_REACHED = "the cluster does not read the raw log {} that this machine lists; name a raw root that both reach"

Insert = Callable[[str, pa.Table | pa.RecordBatchReader], None]
"""Appends rows to the table of a name."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The parts whose rows go to their tables.

    Args:
        asked: the scope of the run, to which parts of fresh files belong or not.
        fresh: names of files of which is not known what they hold.
        known: the parts of all other files whose rows are wanted.
    """

    asked: Asked
    fresh: AbstractSet[str] = frozenset()
    known: AbstractSet[Part] = frozenset()

    def __contains__(self, part: Part) -> bool:
        return self.asked.includes(part) if part.source_file in self.fresh else part in self.known

    def of(self, names: AbstractSet[str]) -> "Wanted":
        """The same of some files alone."""
        known = frozenset(part for part in self.known if part.source_file in names)
        return Wanted(asked=self.asked.among(names), fresh=self.fresh & names, known=known)


@dataclass(frozen=True, kw_only=True)
class Pass:
    """The files that are read together, and all that their rows follow from.

    Args:
        files: the files.
        wanted: the parts whose rows go to their tables.
        targets: what rows are made with.
        trusted_judgements: patterns of logs whose judgements count as whose they say they are.
        limits: what is taken of the files.
        grown: those of which only what is new is read.
        is_apart: whether it is one of several, each for a core of its own on any machine.
    """

    files: Sequence[RawFile]
    wanted: Wanted
    targets: Targets
    trusted_judgements: Sequence[str]
    limits: Limits
    grown: Grown
    is_apart: bool = False

    def dealt_out(self) -> Iterator["Pass"]:
        """The files in passes of some size, each for a core of its own; none of the files may be grown."""
        for files in _groups(self.files):
            yield replace(self, files=files, wanted=self.wanted.of(names_of(files)), is_apart=True)


@dataclass(kw_only=True)
class Account:
    """The facts that one pass has found out.

    Args:
        found: all parts of the files, with their records.
        future: by file, the earliest of its events that are in the future.
        notes: by file, what the readers of foreign formats counted.
        identities: by file, what it turned out to hold.
        rejections: the reasons where every record was rejected; None where one was not.
        secrets: secrets that were replaced in wanted rows and in rejected ones.
        lines_with_secrets: such rows that had any.
        stamps: by file, its size and its time of change, as a pass apart saw them; not of objects of a store.
        faults: by file that could not be read, why. No other account counts where there is one.
    """

    found: list[tuple[Part, Lines]] = field(default_factory=list)
    future: dict[str, datetime] = field(default_factory=dict)
    notes: dict[str, Counter[str]] = field(default_factory=dict)
    identities: dict[str, Identity] = field(default_factory=dict)
    rejections: list[Rejection] | None = None
    secrets: int = 0
    lines_with_secrets: int = 0
    stamps: dict[str, tuple[int, int]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


def read_files(own: Pass, insert: Insert) -> Account:
    """Read files once: wanted rows go where `insert` takes them."""
    try:
        return _read(own, insert)
    except UnreadableFilesError as error:
        return Account(faults=error.faults)


def _read(own: Pass, insert: Insert) -> Account:
    files = own.files
    notes: Notes = {}
    identities: Identities = {}
    with (
        temporary_folder() as folder,
        reading(files, notes, identities, own.limits, own.grown.beginnings, is_apart=own.is_apart) as parser,
    ):
        stream = parser.records(own.targets, own.trusted_judgements)
        most_rejected = own.limits.rejected_lines
        router = Router(files, lambda *part: Part(*part) in own.wanted, stream.schema, folder, most_rejected)
        insert(STREAMED_TABLE, router.streamed(stream))
        with parser.spans(own.targets) as spans:
            if spans:
                router.read(spans)
            contents = own.grown.with_known(files, router.contents())
            for table, rows in router.set_aside(rejected_hours(files, contents)):
                insert(table, rows)
    return Account(
        found=[*parts_of(files, contents).items()],
        future=future_of(files, contents),
        notes={files[place].source_file: own_notes for place, own_notes in notes.items()},
        identities={files[place].source_file: identity for place, identity in identities.items()},
        rejections=router.rejections,
        secrets=router.secrets,
        lines_with_secrets=router.lines_with_secrets,
        stamps={file.source_file: stamp for file in files if (stamp := file.stamp_now())} if own.is_apart else {},
    )


def require_read(accounts: Iterable[Account]) -> None:
    """Refuse accounts that do not count.

    Raises:
        UnreadableFilesError: files could not be read.
    """
    if faults := {name: fault for account in accounts for name, fault in account.faults.items()}:
        raise UnreadableFilesError(faults)


def require_same_files(files: Sequence[RawFile], accounts: Iterable[Account]) -> None:
    """Refuse what other machines read where that was not what this one has listed.

    Raises:
        HealthAssetsError: a file could not be read there and can be read here, or is another one there.
    """
    by_name = {file.source_file: file for file in files}
    for account in accounts:
        for name, fault in account.faults.items():
            if _can_be_read(by_name[name]):
                raise HealthAssetsError(f"{_NOT_REACHED.format(name)}: {fault}")
        for name, seen in account.stamps.items():
            file = by_name[name]
            now = file.stamp_now() or seen
            if not all(map(le, file.stamp, seen)) or not all(map(le, seen, now)):
                raise HealthAssetsError(f"{_NOT_REACHED.format(name)}: it has another file there, or one that was cut")


def _can_be_read(file: RawFile) -> bool:
    try:
        file.beginning(1)
    except HealthAssetsError:
        return False
    return True


def _groups(files: Sequence[RawFile]) -> Iterator[list[RawFile]]:
    """Files of about `BYTES_PER_PASS` each, the largest first, so that the longest pass does not begin last."""
    group: list[RawFile] = []
    size_bytes = 0
    for file in sorted(files, key=lambda file: -file.size_bytes):
        if group and (size_bytes + file.size_bytes > BYTES_PER_PASS or len(group) == FILES_PER_PASS):
            yield group
            group, size_bytes = [], 0
        group.append(file)
        size_bytes += file.size_bytes
    if group:
        yield group
