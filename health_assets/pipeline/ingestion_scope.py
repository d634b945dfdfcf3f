"""The scope of an ingestion: which records are loaded, and what the tables lack before any file is read.

Files are loaded whole, whatever hours their records are of. Left out are hours before the horizon and hours that
retention dropped, unless a run asks for them. What does not belong here: reading files and changing rows (`ingestion`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import dataclass
from datetime import datetime

from ibis import ir

from health_assets.core.hours import EVER, HourRange
from health_assets.logs.files import RawFile
from health_assets.logs.stores import names_of
from health_assets.pipeline.append_detection import Appended
from health_assets.pipeline.trace_hours import PrunedSpans
from health_assets.schema.catalog import FROM_SPANS, RECORD_OF_TABLE, TABLE_OF_RECORD
from health_assets.schema.records import RECORD_TABLES
from health_assets.warehouse.file_slices import EMPTY_SLICE, TRACES, Entry, FileSlice, SliceContent
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session


class IngestScope:
    """The scope of a run: the hours asked for, those that they look back on, and what comes back with them.

    Args:
        session: a session, before anything is changed.
        hours: the hours asked for.
        present: names of the logs that there are now, or whose rows are to be deleted.
        reach_hours: how far results of an hour look back.
        trace_hours: how many hours apart spans of a trace may be and still see each other.
        horizon: records before it are counted and not loaded, unless their hours are asked for or were kept.
    """

    def __init__(
        self,
        session: Session,
        hours: HourRange,
        present: set[str],
        reach_hours: int,
        trace_hours: int,
        horizon: datetime | None = None,
    ) -> None:
        self.hours = hours
        self.present = present
        self.reach_hours = reach_hours
        self.trace_hours = trace_hours
        self.span = hours.extended_back(reach_hours - 1) if len(hours) else hours
        # components of the look-back look back themselves; what was dropped there comes back whole or not at all
        self.reach = hours.extended_back(2 * (reach_hours - 1)) if len(hours) else hours
        materialized = PartitionStates(session)
        records = [table for table in RECORD_TABLES if table != "spans"]
        self.restored = materialized.dropped_of_each(records, self.reach)
        """By table, the hours that retention dropped and that come back now."""
        self.restored_from_spans = set().union(*(self.restored.get(table, set()) for table in FROM_SPANS))
        self.pruned_spans = PrunedSpans(session, trace_hours, horizon)
        self.restored["spans"] = self.pruned_spans.restore({*self.span, *self.restored_from_spans})

        ends = [horizon, materialized.dropped_until(*records)]
        self._left_out_before = max(filter(None, ends), default=EVER.start)
        old, ledger = HourRange(EVER.start, self._left_out_before), Ledger(session)
        made, loaded = materialized.of_each(records, old), ledger.loaded_hours(records, old.end)
        self._kept = {table: made[table] | loaded[table] for table in records}
        # what follows from records is dropped together
        self._dropped = dict.fromkeys(records, materialized.dropped("executions", old))
        self._dropped["spans"] = materialized.dropped("spans", old)
        own = self.span.intersection(old)
        self.first_made_from_spans = {*own} - materialized.of("raw_logs", own)
        """Hours asked for of which records that follow from spans were left out so far."""

    def among(self, names: AbstractSet[str]) -> "IngestScope":
        """The same scope for whoever reads some of the files that are present, and knows of no others."""
        own = copy(self)
        own.present = self.present & names
        return own

    @property
    def restored_hours(self) -> set[datetime]:
        """The hours that come back of any table but `spans`, which come back for others' sake."""
        return set().union(*(hours for table, hours in self.restored.items() if table != "spans"))

    def includes(self, file_slice: FileSlice) -> bool:
        """Whether a slice is to be in its hour's table at the end; what is not is counted alone."""
        is_present = file_slice.source_file in self.present or file_slice.source_file == TRACES
        if file_slice.record_type == "span":
            return (is_present or file_slice.hour in self.hours) and file_slice.hour not in self.pruned_spans
        return file_slice.hour in self.hours or (is_present and not self._is_left_out(file_slice))

    def _is_left_out(self, file_slice: FileSlice) -> bool:
        """Whether a slice is of an old hour that nobody asks for, and of which the table has no rows."""
        if file_slice.hour >= self._left_out_before or file_slice.hour in self.span or self.restores(file_slice):
            return False
        return file_slice.hour not in self._kept[TABLE_OF_RECORD[file_slice.record_type]]

    def is_late(self, file_slice: FileSlice) -> bool:
        """Whether a slice that is not loaded belongs to an hour that was made without it, and dropped since."""
        return file_slice.hour in self._dropped[TABLE_OF_RECORD[file_slice.record_type]]

    def leaves_out(self, hour: datetime) -> bool:
        """Whether nothing that follows from the spans of an hour is made, and nothing was."""
        slices = [FileSlice(TRACES, RECORD_OF_TABLE[table], hour) for table in FROM_SPANS]
        return all(self._is_left_out(file_slice) and not self.is_late(file_slice) for file_slice in slices)

    def restores(self, file_slice: FileSlice) -> bool:
        """Whether a slice belongs to an hour of its table that retention dropped and that comes back now."""
        return file_slice.hour in self.restored.get(TABLE_OF_RECORD[file_slice.record_type], ())


@dataclass(frozen=True, kw_only=True)
class LoadPlan:
    """The slices that the tables lack, as the ledger knows them before any file is read.

    Args:
        new: files that were never read.
        changed: files that differ from what was read.
        before: the ledger's entries of the changed ones.
        waiting: known slices whose rows are to be replaced by what their files hold now, with their records.
        not_loaded: known slices that the tables do not have as they are, asked for or not.
        lost: slices asked for that the tables had, or were to get, and that are found to be lost just now.
        traces: (trace_id, hour) of the spans whose rows are to be replaced; None without any.
        appended: those of the changed files that only grew, whose rows stay.
    """

    new: Sequence[RawFile]
    changed: Sequence[RawFile]
    before: Mapping[FileSlice, Entry]
    waiting: Mapping[FileSlice, int]
    not_loaded: AbstractSet[FileSlice]
    lost: AbstractSet[FileSlice]
    traces: ir.Table | None
    appended: Appended

    @property
    def fresh(self) -> list[RawFile]:
        """Files of which is not known what they hold now."""
        return [*self.new, *self.changed]

    def fresh_slices(self, found: Mapping[FileSlice, SliceContent]) -> dict[FileSlice, SliceContent]:
        """The slices found in files that are fresh."""
        names = names_of(self.fresh)
        return {file_slice: lines for file_slice, lines in found.items() if file_slice.source_file in names}

    def lines_less(self, found: Mapping[FileSlice, SliceContent]) -> dict[FileSlice, int]:
        """Count by how many lines a slice of a changed file has become shorter, where it has.

        A rejected line that the file no longer has may be a good one now, such as one that was half written, and a good
        one a rejected one. The file may hold what it held all the same (`file_matching.cut_or_replaced`).
        """
        more: Counter[tuple[str, bool]] = Counter()
        fewer: list[tuple[FileSlice, int]] = []
        for file_slice, before, after in self._compared(found):
            more[file_slice.source_file, file_slice.record_type == "rejected"] += max(0, after.count - before.count)
            fewer.append((file_slice, before.count - after.count))
        less: dict[FileSlice, int] = {}
        for file_slice, lines in fewer:
            others = file_slice.source_file, file_slice.record_type != "rejected"
            become_other = max(0, min(lines, more[others]))
            more[others] -= become_other
            if lines > become_other:
                less[file_slice] = lines - become_other
        return less

    def changed_by(self, found: Mapping[FileSlice, SliceContent]) -> set[FileSlice]:
        """Slices whose lines, or whose rows in the tables, are others than before, now that files have been read."""
        differing = {file_slice for file_slice, before, after in self._compared(found) if before != after}
        return differing | self.lost | (self.not_loaded & self.waiting.keys())

    def _compared(
        self, found: Mapping[FileSlice, SliceContent]
    ) -> Iterator[tuple[FileSlice, SliceContent, SliceContent]]:
        """Every slice of a fresh file, with what it held before and what it holds now."""
        now = self.fresh_slices(found)
        for file_slice in self.before.keys() | now.keys():
            yield (
                file_slice,
                self.before[file_slice].lines if file_slice in self.before else EMPTY_SLICE,
                now.get(file_slice, EMPTY_SLICE),
            )
