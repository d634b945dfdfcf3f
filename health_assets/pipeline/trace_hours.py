"""Trace assembly: bring what follows from spans up to date, after spans were loaded.

What belongs here: which hours' records a changed span may touch, and putting their rows in place of those before. What
does not: how spans become such records (`logs.traces`) and loading spans (`loading`).

How it stays exact. `spans` holds every span of every log that was read, whatever hours were asked for. What follows
from the spans of an hour is a function of the spans in the look-back before and after it. When spans change, the hours
in which their traces start anything are put together anew, and compared with what the ledger says of them:
an hour that is asked for gets the rows, any other is marked as not loaded and waits.

An hour that sees one whose spans retention dropped is not put together, since it would get too little. `loading` has
the spans back that an hour asked for sees; any other is noted, and put together anew once its spans are there.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import ibis
import pyarrow as pa
import pyarrow.compute as pc
from ibis import ir

from health_assets.core.agent_names import AgentService, services_among, with_agents
from health_assets.core.digests import digest_of
from health_assets.core.hours import EVER, HOUR, HourRange, contiguous
from health_assets.core.targets import Targets
from health_assets.logs.span_kinds import KINDS_OF_RECORDS
from health_assets.logs.traces import DIGEST_PARTS, Assembled, assemble, assembled_rows
from health_assets.schema.catalog import FROM_SPANS, RECORD_OF_TABLE, TABLE_OF_RECORD, columns_of
from health_assets.scoring.relations import of_hours
from health_assets.scoring.target_columns import resolve_sla
from health_assets.warehouse.ledger import EMPTY_SLICE, TRACES, Entry, FileSlice, Ledger, SliceContent
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import HOUR_TYPE, Session

RECORD_TYPES = tuple(RECORD_OF_TABLE[table] for table in FROM_SPANS)
SPANS_AT_ONCE = 2_000_000
SPANS_PER_CALL = 100_000
"""About how many spans an executor puts together at once: a call has its price, and its spans are in memory."""
ROWS_AT_ONCE = 100_000
"""How many rows may wait to be inserted together: each statement has its price, and far spans make few rows each."""


def traces_of(session: Session, slices: Iterable[FileSlice]) -> ir.Table | None:
    """(trace_id, hour) of the spans of these slices, as the table has them now; None where there are no slices."""
    chosen = list(slices)
    if not chosen:
        return None
    spans = _inside(session, _reach((file_slice.hour for file_slice in chosen), 0))
    places = pa.table(
        {
            "source_file": [file_slice.source_file for file_slice in chosen],
            "hour": pa.array([file_slice.hour for file_slice in chosen], HOUR_TYPE),
        }
    )
    own = spans.semi_join(ibis.memtable(places), ["source_file", "hour"])
    kept, _ = session.persist(own.select("trace_id", "hour").distinct())
    return kept


def affected_hours(
    session: Session,
    traces: Collection[ir.Table | None],
    trace_hours: int,
    services: Sequence[AgentService] = (),
) -> set[datetime]:
    """Hours whose records may differ because of changed spans.

    Args:
        session: a session, after the spans were loaded.
        traces: results of `traces_of` of the changed spans, of before and after.
        trace_hours: how many hours apart spans of a trace may be and still see each other.
        services: services whose outermost spans may be executions.
    """
    changed = [own for own in traces if own is not None]
    if not changed:
        return set()
    every = ibis.union(*changed, distinct=True) if len(changed) > 1 else changed[0]
    own = _hours_in(session, every)
    if not own:
        return set()
    spans = _starting(session, _inside(session, _reach(own, trace_hours)), services)
    reach = ibis.interval(hours=trace_hours)
    near = spans.inner_join(every.rename(changed_hour="hour"), "trace_id").filter(
        lambda pair: pair.hour <= pair.changed_hour + reach, lambda pair: pair.hour >= pair.changed_hour - reach
    )
    return own | _hours_in(session, near)


def _hours_in(session: Session, rows: ir.Table) -> set[datetime]:
    return set(session.arrow(rows.select("hour").distinct())["hour"].to_pylist())


def hours_of_other_services(
    session: Session, hours: HourRange, services: Sequence[AgentService], trace_hours: int
) -> set[datetime]:
    """Hours among some whose records were put together by other patterns of services, and others of their traces."""
    mark = _mark_of(services)
    entries = Ledger(session).of_traces(hours).items()
    stale = {file_slice.hour for file_slice, entry in entries if entry.lines.count and _mark(entry.lines) != mark}
    if not stale:
        return set()
    spans = of_hours(_starting(session, _inside(session, _reach(stale, 0)), services), stale)
    traces, _ = session.persist(spans.select("trace_id", "hour").distinct())
    return stale | affected_hours(session, [traces], trace_hours, services)


def _mark_of(services: Sequence[AgentService]) -> str:
    """What the ledger keeps of the patterns by which records of an hour were put together; empty for none."""
    return digest_of([one.match for one in services])[:16] if services else ""


def _mark(lines: SliceContent) -> str:
    return lines.digest.partition(":")[2]


class PrunedSpans:
    """The hours whose spans are not there because retention dropped them, or what came before.

    Args:
        session: a session.
        trace_hours: how many hours apart spans of a trace may be and still see each other.
        horizon: records before it are not loaded; spans are, as far as those of later hours see them.
    """

    def __init__(self, session: Session, trace_hours: int, horizon: datetime | None = None) -> None:
        self._trace_hours = trace_hours
        ends = [PartitionStates(session).dropped_until("spans"), horizon and horizon - trace_hours * HOUR]
        self._end = max(filter(None, ends), default=EVER.start)
        self._present = PartitionStates(session).of("spans", HourRange(EVER.start, self._end))
        self._present |= Ledger(session).loaded_hours(["spans"], self._end)["spans"]

    def __contains__(self, hour: datetime) -> bool:
        return hour < self._end and hour not in self._present

    def seen_from(self, hours: Iterable[datetime]) -> set[datetime]:
        """The hours among these that see an hour whose spans are pruned."""
        return {hour for hour in hours if any(seen in self for seen in self._sight(HourRange.of(hour)))}

    def restore(self, hours: Iterable[datetime]) -> set[datetime]:
        """The hours whose pruned spans some hours see; from now on they count as present."""
        restored = {seen for whole in contiguous(hours) for seen in self._sight(whole) if seen in self}
        self._present |= restored
        return restored

    def _sight(self, hours: HourRange) -> HourRange:
        """Hours that these see, as far as any can be pruned."""
        seen = hours.extended_back(self._trace_hours).extended_forward(self._trace_hours)
        return seen.intersection(HourRange(EVER.start, self._end))


class TraceAssembly:
    """Puts records together from the spans of a warehouse.

    Args:
        session: a write session, in which the spans are as the logs have them.
        targets: targets that resolve SLA breaches.
        trace_hours: how many hours apart spans of a trace may be and still see each other.
        is_asked: whether a slice is to be loaded now.
    """

    def __init__(
        self, session: Session, targets: Targets, trace_hours: int, is_asked: Callable[[FileSlice], bool]
    ) -> None:
        self._session = session
        self._ledger = Ledger(session)
        self._targets = targets
        self._trace_hours = trace_hours
        self._mark = _mark_of(targets.services)
        self._is_asked = is_asked
        self._waiting: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self.changed: set[FileSlice] = set()
        self.loaded: set[FileSlice] = set()

    def bring_up_to_date(self, hours: Collection[datetime]) -> None:
        """Compare what follows from spans in these hours with the ledger, and load what is asked for.

        Afterwards, `changed` has the slices that differ from before, and `loaded` those whose rows were replaced.
        """
        for some in self._groups(hours):
            known = self._ledger.of_traces(_reach(some, 0))
            for made in self._assembled(some):
                self._replace(made, some, known)
            if sum(rows.num_rows for made in self._waiting.values() for rows in made) >= ROWS_AT_ONCE:
                self._insert_waiting()
        self._insert_waiting()

    def _groups(self, hours: Collection[datetime]) -> Iterator[list[datetime]]:
        """The hours in groups; where one machine does all, it can hold the spans of each, or that is a single hour."""
        if not hours:
            return
        spans = self._ledger.lines_by_hour("span", _reach(hours, 0))
        most = sys.maxsize if self._session.is_distributed else SPANS_AT_ONCE
        group: list[datetime] = []
        size = 0
        for hour in sorted(hours):
            # hours far from each other have little in common, and would make one another's reach wide
            is_far = bool(group) and hour - group[-1] > self._trace_hours * HOUR
            if group and (size + spans.get(hour, 0) > most or is_far):
                yield group
                group, size = [], 0
            group.append(hour)
            size += spans.get(hour, 0)
        yield group

    def _assembled(self, hours: Collection[datetime]) -> list[Assembled]:
        """Records that follow from spans in these hours, put together where the spans are."""
        spans = self._spans(hours)
        if not self._session.is_distributed:
            return assemble(self._session.arrow(spans), hours, self._trace_hours, self._targets.services)
        make = partial(
            assembled_rows,
            hours=sorted(hours),
            lookback_hours=self._trace_hours,
            names=self._targets.names,
            services=self._targets.services,
        )
        count = sum(self._ledger.lines_by_hour("span", _reach(hours, self._trace_hours)).values())
        calls = 1 + count // SPANS_PER_CALL
        rows = self._session.grouped(spans, ["trace_id"], ["trace_id", "span_id"], make, calls)
        return [*_by_kind(self._session, rows)]

    def _spans(self, hours: Collection[datetime]) -> ir.Table:
        """All spans of traces that start anything in these hours, in as many hours as they see."""
        spans = _inside(self._session, _reach(hours, self._trace_hours))
        traces = of_hours(_starting(self._session, spans, self._targets.services), hours).select("trace_id").distinct()
        return spans.semi_join(traces, "trace_id")

    def _replace(self, made: Assembled, hours: Collection[datetime], known: dict[FileSlice, Entry]) -> None:
        entries = []
        to_load = set()
        for hour in hours:
            file_slice = FileSlice(TRACES, made.record_type, hour)
            lines = self._content(made, hour)
            before = known.get(file_slice, Entry(file_slice=file_slice, lines=EMPTY_SLICE, is_loaded=True))
            is_same = before.lines.count == lines.count and _rows_digest(before.lines) == _rows_digest(lines)
            is_same = is_same or before.lines.count == lines.count == 0
            if is_same and lines.count and before.lines != lines:  # by other patterns of services
                entries.append(replace(before, lines=lines))
            elif not is_same:
                entries.append(Entry(file_slice=file_slice, lines=lines, is_loaded=False))
                self.changed.add(file_slice)
            if self._is_asked(file_slice) and not (is_same and before.is_loaded):
                to_load.add(file_slice)
        self._ledger.replace(entries)
        self._ledger.delete_rows(to_load)
        self._await(made, {file_slice.hour for file_slice in to_load})
        self._ledger.mark_loaded(to_load)
        self.loaded |= to_load

    def _content(self, made: Assembled, hour: datetime) -> SliceContent:
        """The count and digest of an hour's records, with the mark of the patterns that they were made by."""
        if hour not in made.counts:
            return EMPTY_SLICE
        count, digest = made.counts[hour]
        return SliceContent(count, f"{digest}:{self._mark}" if self._mark else digest)

    def _await(self, made: Assembled, hours: set[datetime]) -> None:
        """Insert the rows of these hours; those in memory wait for others that are inserted with them."""
        if not made.counts.keys() & hours:
            return
        table, is_whole = TABLE_OF_RECORD[made.record_type], made.counts.keys() <= hours
        if isinstance(made.rows, ir.Table):
            self._insert(table, made.rows if is_whole else made.rows.filter(made.rows.hour.isin(sorted(hours))))
            return
        wanted = pa.array(sorted(hours), HOUR_TYPE)
        rows = made.rows if is_whole else made.rows.filter(pc.is_in(made.rows["hour"], value_set=wanted))
        self._waiting[table].append(rows)

    def _insert_waiting(self) -> None:
        for table, made in self._waiting.items():
            self._insert(table, ibis.memtable(with_agents(pa.concat_tables(made), self._targets.names)))
        self._waiting.clear()

    def _insert(self, table: str, rows: ir.Table) -> None:
        if table == "executions":
            rows = resolve_sla(rows, self._targets)
        self._session.insert(table, rows.select(*columns_of(table)))


def _by_kind(session: Session, rows: ir.Table) -> Iterator[Assembled]:
    """The records of each kind in rows of `assembled_rows`, counted by hour."""
    high, low = DIGEST_PARTS
    counts: dict[str, dict[datetime, tuple[int, str]]] = {record_type: {} for record_type in RECORD_TYPES}
    by_hour = rows.group_by("record_type", "hour").aggregate(
        rows=rows.count(), high=rows[high].sum(), low=rows[low].sum()
    )
    for found in session.arrow(by_hour).to_pylist():
        digest = (found["high"] * 2**32 + found["low"]) % 2**64
        counts[found["record_type"]][found["hour"]] = (found["rows"], str(digest))
    for record_type, own in counts.items():
        yield Assembled(record_type, rows.filter(rows.record_type == record_type), own)


def _reach(hours: Iterable[datetime], trace_hours: int) -> HourRange:
    chosen = list(hours)
    whole = HourRange(min(chosen), max(chosen) + HOUR)
    return whole.extended_back(trace_hours).extended_forward(trace_hours)


def _inside(session: Session, hours: HourRange) -> ir.Table:
    return session.hours_of("spans", hours)


def _starting(session: Session, spans: ir.Table, services: Sequence[AgentService]) -> ir.Table:
    """The spans that may become a record: by their kind, or as the outermost one of their service."""
    is_starting = spans.kind.isin(KINDS_OF_RECORDS)
    if services:
        named = session.arrow(spans.filter(spans.service_name.notnull()).select("service_name").distinct())
        if found := services_among(named["service_name"].to_pylist(), services):
            is_starting |= spans.service_name.isin(found)
    return spans.filter(is_starting)


def _rows_digest(lines: SliceContent) -> str:
    return lines.digest.partition(":")[0]
