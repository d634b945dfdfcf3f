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
from health_assets.pipeline.trace_assembly import PrunedSpans
from health_assets.schema.catalog import FROM_SPANS, RECORD_OF_TABLE, TABLE_OF_RECORD
from health_assets.schema.records import RECORD_TABLES
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.ledger_parts import NO_LINES, TRACES, Entry, Lines, Part
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session


class IngestScope:
    """The scope of a run: the hours asked for, those that they look back on, and what comes back with them.

    Args:
        session: a session, before anything is changed.
        hours: the hours asked for.
        present: names of the logs that there are now, or whose rows are to be deleted.
        lookback_hours: length of the look-back.
        trace_hours: how many hours apart spans of a trace may be and still see each other.
        horizon: records before it are counted and not loaded, unless their hours are asked for or were kept.
    """

    def __init__(
        self,
        session: Session,
        hours: HourRange,
        present: set[str],
        lookback_hours: int,
        trace_hours: int,
        horizon: datetime | None = None,
    ) -> None:
        self.hours = hours
        self.present = present
        self.trace_hours = trace_hours
        self.span = hours.extended_back(lookback_hours - 1) if len(hours) else hours
        # components of the look-back look back themselves; what was dropped there comes back whole or not at all
        self.reach = hours.extended_back(2 * (lookback_hours - 1)) if len(hours) else hours
        materialized = PartitionStates(session)
        records = [table for table in RECORD_TABLES if table != "spans"]
        self.restored = {table: materialized.dropped(table, self.reach) for table in records}
        """By table, the hours that retention dropped and that come back now."""
        self.restored_from_spans = set().union(*(self.restored.get(table, set()) for table in FROM_SPANS))
        self.away = PrunedSpans(session, trace_hours, horizon)
        self.restored["spans"] = self.away.bring_back({*self.span, *self.restored_from_spans})

        ends = [horizon, *map(materialized.dropped_until, records)]
        self._left_out_before = max(filter(None, ends), default=EVER.start)
        old, ledger = HourRange(EVER.start, self._left_out_before), Ledger(session)
        self._kept = {
            table: materialized.of(table, old) | ledger.loaded_hours(RECORD_OF_TABLE[table], old.end)
            for table in records
        }
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

    def includes(self, part: Part) -> bool:
        """Whether a part is to be in its hour's table at the end; what is not is counted alone."""
        is_present = part.source_file in self.present or part.source_file == TRACES
        if part.record_type == "span":
            return (is_present or part.hour in self.hours) and part.hour not in self.away
        return part.hour in self.hours or (is_present and not self._is_left_out(part))

    def _is_left_out(self, part: Part) -> bool:
        """Whether a part is of an old hour that nobody asks for, and of which the table has no rows."""
        if part.hour >= self._left_out_before or part.hour in self.span or self.restores(part):
            return False
        return part.hour not in self._kept[TABLE_OF_RECORD[part.record_type]]

    def is_late(self, part: Part) -> bool:
        """Whether a part that is not loaded belongs to an hour that was made without it, and dropped since."""
        return part.hour in self._dropped[TABLE_OF_RECORD[part.record_type]]

    def leaves_out(self, hour: datetime) -> bool:
        """Whether nothing that follows from the spans of an hour is made, and nothing was."""
        parts = [Part(TRACES, RECORD_OF_TABLE[table], hour) for table in FROM_SPANS]
        return all(self._is_left_out(part) and not self.is_late(part) for part in parts)

    def restores(self, part: Part) -> bool:
        """Whether a part belongs to an hour of its table that retention dropped and that comes back now."""
        return part.hour in self.restored.get(TABLE_OF_RECORD[part.record_type], ())


@dataclass(frozen=True, kw_only=True)
class LoadPlan:
    """The parts that the tables lack, as the ledger knows them before any file is read.

    Args:
        new: files that were never read.
        changed: files that differ from what was read.
        before: the ledger's entries of the changed ones.
        waiting: known parts whose rows are to be replaced by what their files hold now, with their records.
        not_loaded: known parts that the tables do not have as they are, asked for or not.
        lost: parts asked for that the tables had, or were to get, and that are found to be lost just now.
        traces: (trace_id, hour) of the spans whose rows are to be replaced; None without any.
        appended: those of the changed files that only grew, whose rows stay.
    """

    new: Sequence[RawFile]
    changed: Sequence[RawFile]
    before: Mapping[Part, Entry]
    waiting: Mapping[Part, int]
    not_loaded: AbstractSet[Part]
    lost: AbstractSet[Part]
    traces: ir.Table | None
    appended: Appended

    @property
    def fresh(self) -> list[RawFile]:
        """Files of which is not known what they hold now."""
        return [*self.new, *self.changed]

    def fresh_parts(self, found: Mapping[Part, Lines]) -> dict[Part, Lines]:
        """The parts found in files that are fresh."""
        names = names_of(self.fresh)
        return {part: lines for part, lines in found.items() if part.source_file in names}

    def lines_less(self, found: Mapping[Part, Lines]) -> dict[Part, int]:
        """Count by how many lines a part of a changed file has become shorter, where it has.

        A rejected line that the file no longer has may be a good one now, such as one that was half written, and a good
        one a rejected one. The file may hold what it held all the same (`file_matching.cut_or_replaced`).
        """
        more: Counter[tuple[str, bool]] = Counter()
        fewer: list[tuple[Part, int]] = []
        for part, before, after in self._compared(found):
            more[part.source_file, part.record_type == "rejected"] += max(0, after.count - before.count)
            fewer.append((part, before.count - after.count))
        less: dict[Part, int] = {}
        for part, lines in fewer:
            others = part.source_file, part.record_type != "rejected"
            become_other = max(0, min(lines, more[others]))
            more[others] -= become_other
            if lines > become_other:
                less[part] = lines - become_other
        return less

    def changed_by(self, found: Mapping[Part, Lines]) -> set[Part]:
        """Parts whose lines, or whose rows in the tables, are others than before, now that files have been read."""
        differing = {part for part, before, after in self._compared(found) if before != after}
        return differing | self.lost | (self.not_loaded & self.waiting.keys())

    def _compared(self, found: Mapping[Part, Lines]) -> Iterator[tuple[Part, Lines, Lines]]:
        """Every part of a fresh file, with what it held before and what it holds now."""
        now = self.fresh_parts(found)
        for part in self.before.keys() | now.keys():
            yield part, self.before[part].lines if part in self.before else NO_LINES, now.get(part, NO_LINES)
