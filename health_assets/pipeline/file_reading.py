"""File reading: one pass over some raw logs, which sends wanted rows to their tables and accounts for all it finds.

What belongs here: what such a pass needs to know, and what it tells. What does not: parsing (`logs`), which files are
read, what follows (`loading`), and which files other machines read together (`executor_sharding`).

A pass knows nothing of the warehouse: it gets a function that takes rows. So all that it is given and gives can be
sent.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain

from health_assets.core.errors import UnreadableFilesError
from health_assets.core.judges import Trust
from health_assets.core.targets import Targets
from health_assets.core.temporary import temporary_folder
from health_assets.logs.files import Identities, Notes, RawFile
from health_assets.logs.identity import Identity
from health_assets.logs.limits import Limits
from health_assets.logs.reader import log_parser
from health_assets.logs.routing import STREAMED_TABLE, Rejection, Router
from health_assets.logs.stores import names_of
from health_assets.logs.tally import REJECTED, Content
from health_assets.pipeline.append_detection import Appended
from health_assets.pipeline.executor_sharding import ShardReport, shards, stamps_of
from health_assets.pipeline.ingestion_scope import IngestScope
from health_assets.warehouse.file_slices import FileSlice, SliceContent
from health_assets.warehouse.session import InsertArrow


@dataclass(frozen=True, kw_only=True)
class RowFilter:
    """The slices whose rows go to their tables.

    Args:
        scope: the scope of the run, to which slices of fresh files belong or not.
        fresh: names of files of which is not known what they hold.
        known: the slices of all other files whose rows are wanted.
    """

    scope: IngestScope
    fresh: AbstractSet[str] = frozenset()
    known: AbstractSet[FileSlice] = frozenset()

    def __contains__(self, file_slice: FileSlice) -> bool:
        return self.scope.includes(file_slice) if file_slice.source_file in self.fresh else file_slice in self.known

    def shards(self, groups: Iterable[AbstractSet[str]]) -> Iterator["RowFilter"]:
        """For each of some groups of files, what is wanted of these."""
        by_name: defaultdict[str, list[FileSlice]] = defaultdict(list)
        for file_slice in self.known:
            by_name[file_slice.source_file].append(file_slice)
        for names in groups:
            known = frozenset(chain.from_iterable(by_name[name] for name in names & by_name.keys()))
            yield RowFilter(scope=self.scope.among(names), fresh=self.fresh & names, known=known)


@dataclass(frozen=True, kw_only=True)
class ReadTask:
    """The files that are read together, and all that their rows follow from.

    Args:
        files: the files.
        wanted: the slices whose rows go to their tables.
        targets: what rows are made with.
        trusted_judgements: the logs whose judgements count as whose they say they are.
        limits: what is taken of the files.
        appended: those of which only what is new is read.
        salt: salt of the digests of contents.
        is_shard: whether it is one of several shards, each for a core of its own on any machine.
    """

    files: Sequence[RawFile]
    wanted: RowFilter
    targets: Targets
    trusted_judgements: Trust
    limits: Limits
    appended: Appended
    salt: str
    is_shard: bool = False

    def shards(self) -> Iterator["ReadTask"]:
        """The task in shards of some size, each for a core of its own; none of the files may be grown."""
        groups = [*shards(self.files)]
        for files, wanted in zip(groups, self.wanted.shards(map(names_of, groups)), strict=True):
            yield replace(self, files=files, wanted=wanted, is_shard=True)


@dataclass(kw_only=True)
class ReadResult(ShardReport):
    """The facts that one pass has found out.

    Args:
        found: all slices of the files, with their records.
        future: by file, the earliest of its events that are in the future.
        notes: by file, what the readers of foreign formats counted.
        identities: by file, what it turned out to hold.
        rejections: the reasons where every record was rejected, none without any record; None where one was not.
        secrets: secrets that were replaced in wanted rows and in rejected ones.
        lines_with_secrets: such rows that had any.
        stamps: by file, its size and times, as the machine of a shard saw them; not of objects of a store.
        faults: by file that could not be read, why. Where there is one, all other fields are ignored.
    """

    found: list[tuple[FileSlice, SliceContent]] = field(default_factory=list)
    future: dict[str, datetime] = field(default_factory=dict)
    notes: dict[str, Counter[str]] = field(default_factory=dict)
    identities: dict[str, Identity] = field(default_factory=dict)
    rejections: list[Rejection] | None = None
    secrets: int = 0
    lines_with_secrets: int = 0


def read_files(own: ReadTask, insert: InsertArrow) -> ReadResult:
    """Read files once: wanted rows go where `insert` takes them.

    Raises:
        UnreadableFilesError: files cannot be read; of a shard, the result says so.
    """
    try:
        return _read(own, insert)
    except UnreadableFilesError as error:
        if not own.is_shard:
            raise
        return ReadResult(faults=error.faults)


def _read(own: ReadTask, insert: InsertArrow) -> ReadResult:
    files = own.files
    notes: Notes = {}
    identities: Identities = {}
    with (
        temporary_folder() as folder,
        log_parser(
            files, notes, identities, own.limits, own.appended.beginnings, single_threaded=own.is_shard, salt=own.salt
        ) as parser,
    ):
        stream = parser.records(own.targets, own.trusted_judgements)
        most_rejected = own.limits.rejected_lines
        router = Router(
            files,
            lambda *file_slice: FileSlice(*file_slice) in own.wanted,
            stream.schema,
            folder,
            most_rejected,
            parser.tally(),
        )
        insert(STREAMED_TABLE, router.streamed(stream, parser.converted))
        with parser.spans(own.targets) as spans:
            if spans:
                router.read(spans)
        with parser.evaluations(own.targets) as evaluations:
            if evaluations:
                router.read(evaluations)
            contents = own.appended.with_known(files, router.contents())
            for table, rows in router.other_tables():
                insert(table, rows)
    found = slices_of(files, contents)
    return ReadResult(
        found=[*found.items()],
        future=_future_of(files, contents),
        notes={files[place].source_file: own_notes for place, own_notes in notes.items()},
        identities={files[place].source_file: identity for place, identity in identities.items()},
        rejections=_rejections(router, found),
        secrets=router.secrets,
        lines_with_secrets=router.lines_with_secrets,
        stamps=stamps_of(files) if own.is_shard else {},
    )


def _rejections(router: Router, found: Iterable[FileSlice]) -> list[Rejection] | None:
    """The reasons where every record of the files was rejected; None where one was not."""
    kinds = {file_slice.record_type for file_slice in found}
    if not kinds:
        return []
    return router.rejections if kinds == {REJECTED} else None


def slices_of(files: Sequence[RawFile], found: Iterable[Content]) -> dict[FileSlice, SliceContent]:
    """The slices of the files that were read."""
    return {
        FileSlice(files[content.file_id].source_file, content.record_type, content.hour): SliceContent(
            content.lines, str(content.digest)
        )
        for content in found
    }


def _future_of(files: Sequence[RawFile], found: Iterable[Content]) -> dict[str, datetime]:
    """The earliest event of the future in each of the files that holds any."""
    times = sorted((content.future_at, content.file_id) for content in found if content.future_at is not None)
    return {files[file_id].source_file: time for time, file_id in reversed(times)}
