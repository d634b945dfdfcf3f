"""File counts: how many records of each kind and hour files hold, found out by the machines that a warehouse has.

What belongs here: counting in this process, which reads only what is new of a file that grew, and on other machines,
which read each file as a whole. What does not: what follows from the counts (`late_logs`), parsing (`logs.reader`) and
which files go together (`executor_sharding`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from health_assets.core.errors import UnreadableFilesError
from health_assets.logs.known_files import KnownFile
from health_assets.logs.late_memory import Count
from health_assets.logs.limits import Limits
from health_assets.logs.reader import contents
from health_assets.logs.stores import RawFile
from health_assets.logs.tally import Content
from health_assets.pipeline.executor_sharding import Seen, dealt_out, faults_of, stamps_of
from health_assets.pipeline.grown_files import grown
from health_assets.warehouse.ledger_parts import Entry
from health_assets.warehouse.store import Warehouse


@dataclass(kw_only=True)
class FileCounts(Seen):
    """The records that some files hold.

    Args:
        counts: by file, its records by kind and hour.
        stamps: as of `Seen`.
        faults: by file that could not be read, why. Others may lack their counts then, and are asked for again.
    """

    counts: dict[str, list[Count]] = field(default_factory=dict)


class CountFiles(Protocol):
    """Counts the records of files, in this process or elsewhere."""

    def __call__(
        self, files: Sequence[RawFile], limits: Limits, before: Mapping[str, KnownFile], entries: Iterable[Entry]
    ) -> FileCounts:
        """Count the records of files, but perhaps not of those that were read together with one that cannot be read.

        Args:
            files: the files.
            limits: what is taken of them.
            before: by name, what the ledger says of those that are known.
            entries: their parts in the ledger, with others perhaps.
        """


def counted_here(
    files: Sequence[RawFile], limits: Limits, before: Mapping[str, KnownFile], entries: Iterable[Entry]
) -> FileCounts:
    """Count in this process, all files at once; see `CountFiles`."""
    grown_files = grown([file for file in files if file.source_file in before], before, entries)
    try:
        found = grown_files.with_known(files, contents(files, limits, grown_files.beginnings))
    except UnreadableFilesError as error:
        return FileCounts(faults=error.faults)
    return FileCounts(counts=_by_file(files, found))


def counting_of(warehouse: Warehouse) -> CountFiles:
    """The way to count files for a warehouse: on the machines that compute for it, or in this process."""
    return partial(_counted_by, warehouse) if warehouse.spreads else counted_here


def _counted_by(
    warehouse: Warehouse,
    files: Sequence[RawFile],
    limits: Limits,
    before: Mapping[str, KnownFile],
    entries: Iterable[Entry],
) -> FileCounts:
    """Count on other machines; see `CountFiles`."""
    del before, entries  # the proof of growth is not sent to other machines
    found = warehouse.each([*dealt_out(files)], partial(counted_apart, limits=limits), FileCounts)
    faults = faults_of(files, found)
    counts = {name: own for one in found for name, own in one.counts.items() if name not in faults}
    return FileCounts(counts=counts, faults=faults)


def counted_apart(files: Sequence[RawFile], limits: Limits) -> FileCounts:
    """Count beside others on a machine, with one core."""
    try:
        found = contents(files, limits, is_apart=True)
    except UnreadableFilesError as error:
        return FileCounts(faults=error.faults)
    return FileCounts(counts=_by_file(files, found), stamps=stamps_of(files))


def _by_file(files: Sequence[RawFile], found: Iterable[Content]) -> dict[str, list[Count]]:
    counts: dict[str, list[Count]] = {file.source_file: [] for file in files}
    for content in found:
        counts[files[content.file_id].source_file].append(
            Count(
                record_type=content.record_type,
                hour=content.hour,
                lines=content.lines,
                digest=content.digest,
                future_at=content.future_at,
            )
        )
    return counts
