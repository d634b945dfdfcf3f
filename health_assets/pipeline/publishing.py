"""Publishing: writing the tables of the warehouse as Parquet files, those periods of them that changed.

What belongs here: which periods changed, their files, and forgetting old files. What does not: the manifest and reading
(`warehouse.engines.published`), and when to publish (`cli`, `defs`).

A table has a file for each UTC day, and for each hour of the newest two, so that a run rewrites little. Rows are sorted
by key within a file, so that readers skip what they do not look for.
"""

import fcntl
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import tenacity
from ibis import ir

from health_assets.core.durable_files import replace_file, sync_files
from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.private_files import make_private_folder, private_files
from health_assets.core.settings import Settings
from health_assets.schema.catalog import SCHEMA_VERSION, columns_of, describe, key_of
from health_assets.scoring.relations import of_hours
from health_assets.warehouse.engines.published.manifest import (
    KEPT_S,
    PUBLISHED,
    Manifest,
    PublishedFile,
    PublishedTable,
    read_manifest,
    write_manifest,
)
from health_assets.warehouse.engines.published.views import VIEWS, views_sql
from health_assets.warehouse.location import MANIFEST, ledger_of, published_folder, warehouse_name
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse
from health_assets.warehouse.write_marks import (
    BETWEEN_HOURS,
    HOUR_FORMAT,
    Marks,
    hours_of_period,
    marks_of_assets,
    write_marks,
)

_log = logging.getLogger(__name__)
ROWS_PER_GROUP = 65_536
LOCK = "publishing.lock"
LOOK_S = 0.1
"""How often a folder is looked at where somebody else publishes."""
SHORT_PATIENCE_S = 5.0
"""How long the warehouse or the folder is waited for by who has something else to do."""
ALL = "all"
"""Period of a table without hours."""


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What was published.

    Args:
        folder: where.
        version: version of the manifest.
        files: files that were written.
        rows: their rows.
        size_bytes: their size.
    """

    folder: Path
    version: int
    files: int
    rows: int
    size_bytes: int

    def __str__(self) -> str:
        if not self.files:
            return f"the tables in {self.folder} are up to date."
        return f"published {counted(self.rows, 'row')} in {counted(self.files, 'file')} to {self.folder}."


def publish_if_configured(settings: Settings, patience_s: float | None = None) -> Publication | None:
    """`publish` in the folder of the settings; None where there is none.

    Raises:
        HealthAssetsError: as `publish`.
    """
    folder = published_folder(settings)
    return None if folder is None else publish(settings, folder, patience_s)


def _now() -> datetime:
    return datetime.now(UTC)


def publish(
    settings: Settings, folder: Path, patience_s: float | None = None, clock: Callable[[], datetime] = _now
) -> Publication:
    """Write what changed in the warehouse since the last publication, and replace the manifest.

    Nothing is written where nothing changed.

    Args:
        settings: which warehouse, read in one session.
        folder: where to publish.
        patience_s: how long to wait for the warehouse, and for somebody else who publishes there; by default
            HEALTH_LOCK_TIMEOUT_S.
        clock: tells the time.

    Raises:
        HealthAssetsError: the warehouse is published tables, the folder holds something else, somebody else publishes
            there for too long, or it cannot be written; or as `Warehouse.read`.
    """
    warehouse = Warehouse.of(settings, lock_timeout_s=patience_s)
    if warehouse.is_read_only:
        raise HealthAssetsError(f"{settings.warehouse} holds published tables; name the warehouse itself")
    try:
        with private_files(), _locked(folder, settings.lock_timeout_s if patience_s is None else patience_s):
            return _publish(folder, settings, warehouse, clock)
    except OSError as error:
        raise _unwritten(folder, error) from error


def publish_or_warn(settings: Settings) -> None:
    """`publish_if_configured` without a long wait; where that fails, the next publication has what was written."""
    try:
        publish_if_configured(settings, SHORT_PATIENCE_S)
    except HealthAssetsError as error:
        _log.warning("%s", error)


def has_unpublished(session: Session, folder: Path) -> bool:
    """Whether an hour of an asset was made or changed since the tables were published in a folder.

    Raises:
        HealthAssetsError: the manifest is damaged.
    """
    manifest = read_manifest(folder, of_any_version=True)
    if manifest is None or manifest.schema_version != SCHEMA_VERSION:
        return True
    published = manifest.tables
    return any(
        asset in PUBLISHED and published.get(asset, PublishedTable()).marks != marks
        for asset, marks in marks_of_assets(session).items()
    )


def _unwritten(folder: Path, error: OSError) -> HealthAssetsError:
    return HealthAssetsError(f"cannot publish the tables in {folder}: {error.strerror or error}")


def _publish(folder: Path, settings: Settings, warehouse: Warehouse, clock: Callable[[], datetime]) -> Publication:
    source = hashlib.sha256(warehouse_name(ledger_of(settings)).encode()).hexdigest()[:16]
    before = read_manifest(folder, of_any_version=True) or Manifest(warehouse=source)
    if (before.warehouse, before.schema_version) != (source, SCHEMA_VERSION):  # its readers keep its files for a while
        replaced = before.replaced | dict.fromkeys(before.paths(), clock())
        before = Manifest(warehouse=source, version=before.version, replaced=replaced)
    _forget_lost(folder, before)
    _remove_unlisted(folder, before)
    writer = _Writer(folder, before.version + 1)
    with warehouse.read() as session:
        tables = {name: writer.table(session, name, before.tables.get(name), now) for name, now in _marks(session)}
    version = before.version
    if tables != before.tables:
        version += 1
        writer.make_durable()
        after = Manifest(warehouse=source, version=version, published_at=clock(), tables=tables)
        kept_from = after.published_at - timedelta(seconds=KEPT_S)
        after.replaced = {path: at for path, at in before.replaced.items() if at > kept_from}
        after.replaced |= dict.fromkeys(before.paths() - after.paths(), after.published_at)
        write_manifest(folder, after)
        replace_file(folder / VIEWS, views_sql(after))
    return Publication(
        folder=folder,
        version=version,
        files=len(writer.written),
        rows=sum(file.rows for file in writer.written),
        size_bytes=sum(file.size_bytes for file in writer.written),
    )


def _marks(session: Session) -> Iterator[tuple[str, Marks]]:
    """The marks of every table that is published."""
    hourly = [table for table in PUBLISHED if "hour" in columns_of(table)]
    marks = write_marks(session, hourly)
    for table in PUBLISHED:
        yield table, marks[table] if table in marks else {ALL: _digest_of_rows(session, table)}


class _Writer:
    """Writes the files of one publication.

    Args:
        folder: the folder.
        version: of the publication, which no file of an earlier one has in its name.
    """

    def __init__(self, folder: Path, version: int) -> None:
        self._folder = folder
        self._version = version
        self.written: list[PublishedFile] = []

    def table(self, session: Session, name: str, before: PublishedTable | None, marks: Marks) -> PublishedTable:
        """The table as it is to be published: files of periods with other marks are written, all others kept."""
        known = before or PublishedTable()
        changed = [period for period, mark in marks.items() if known.marks.get(period) != mark]
        files = {period: file for period, file in known.files.items() if period in marks and period not in changed}
        first = len(self.written)
        try:
            self._write(session, name, changed)
        except OSError as error:  # told here, where nobody takes it for one of the warehouse's disk
            raise _unwritten(self._folder, error) from error
        return PublishedTable(marks=marks, files=files | {file.period: file for file in self.written[first:]})

    def _write(self, session: Session, name: str, periods: Sequence[str]) -> None:
        """Write the rows of periods; no file where there are none."""
        hours = sorted(hours_of_period(period).start for period in periods if "T" in period)
        for together in _hour_batches(session, name, hours):
            rows = _rows_of_hours(session, name, together)
            self._write_files(name, _by_hour(_sorted(session, name, rows, by_hour=True)))
        for period in periods:
            if period == ALL:
                rows = session.table(name)
            elif "T" not in period:
                rows = _rows_of_day(session, name, hours_of_period(period))
            else:
                continue
            self._write_files(name, ((period, batch) for batch in _sorted(session, name, rows)))

    def _write_files(self, name: str, parts: Iterable[tuple[str, pa.RecordBatch]]) -> None:
        """Write rows as they come, those of a period after each other, to a file for each."""
        for period, own in groupby(parts, itemgetter(0)):
            day, _, hour = period.partition("T")
            place = ALL if period == ALL else f"day={day}/{hour or 'day'}"
            path = f"{name}/{place}.{self._version}.parquet"
            rows = _write_rows(self._folder / path, (batch for _, batch in own))
            size_bytes = (self._folder / path).stat().st_size
            self.written.append(PublishedFile(path=path, period=period, rows=rows, size_bytes=size_bytes))

    def make_durable(self) -> None:
        """Wait until the disk has what was written."""
        sync_files(self._folder / file.path for file in self.written)


def _hour_batches(session: Session, name: str, hours: list[datetime]) -> Iterator[list[datetime]]:
    """Hours whose rows are read by one statement: as many of those with rows as a row group has room for."""
    if len(hours) < 2:
        yield from filter(None, [hours])
        return
    counts = session.counts_by_hour(name, HourRange(hours[0], hours[-1] + HOUR))
    together: list[datetime] = []
    rows = 0
    for hour in filter(counts.get, hours):
        if together and rows + counts[hour] > ROWS_PER_GROUP:
            yield together
            together, rows = [], 0
        together.append(hour)
        rows += counts[hour]
    yield from filter(None, [together])


def _sorted(session: Session, name: str, rows: ir.Table, *, by_hour: bool = False) -> Iterator[pa.RecordBatch]:
    """Rows by key, or by hour and then by key, in batches that have any."""
    key = list(key_of(name))
    order = ["hour", *(column for column in key if column != "hour")] if by_hour else key
    yield from filter(len, session.stream(_plain(rows, name).order_by(order), ROWS_PER_GROUP))


def _by_hour(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each hour, as a period, of batches that are sorted by hour."""
    for batch in batches:
        runs, start = pc.run_end_encode(batch["hour"]), 0
        for end, hour in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
            yield f"{hour.astimezone(UTC):{HOUR_FORMAT}}", batch.slice(start, end - start)
            start = end


def _write_rows(path: Path, batches: Iterable[pa.RecordBatch]) -> int:
    """Write rows, at least one, to a file as they come; gives how many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rest = iter(batches)
    first = next(rest)
    count = 0
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        for batch in chain([first], rest):
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=ROWS_PER_GROUP)
            count += batch.num_rows
    return count


def _plain(rows: ir.Table, table: str) -> ir.Table:
    """Rows in types that every reader of Parquet knows: JSON as its text."""
    texts = {name: rows[name].cast("string") for name, kind, *_ in describe(table) if kind == "json"}
    return rows.mutate(**texts) if texts else rows


def _rows_of_hours(session: Session, table: str, hours: list[datetime]) -> ir.Table:
    span = HourRange(hours[0], hours[-1] + HOUR)
    rows = session.hours_of(table, span)
    return of_hours(rows, hours) if len(hours) < len(span) else rows


def _rows_of_day(session: Session, table: str, hours: HourRange) -> ir.Table:
    """The rows of a day; of an asset, those of hours that are materialized, as each hour with a mark of its own is."""
    made = set() if table in BETWEEN_HOURS else PartitionStates(session).of(table, hours)
    return _rows_of_hours(session, table, sorted(made) or [*hours])


def _digest_of_rows(session: Session, table: str) -> str:
    rows = session.arrow(_plain(session.table(table), table).order_by(key_of(table)))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()[:16]


@contextmanager
def _locked(folder: Path, patience_s: float) -> Iterator[None]:
    """Hold the folder, which is made where there is none, so that nobody else publishes there meanwhile.

    Raises:
        HealthAssetsError: it holds other files than published tables, or somebody else publishes there for too long.
    """
    make_private_folder(folder)
    there = {path.name for path in folder.iterdir()}
    if there and not there & {MANIFEST, LOCK}:
        raise HealthAssetsError(f"{folder} holds other files; HEALTH_PUBLISHED must name a folder of its own")
    with (folder / LOCK).open("w") as file:
        waiting = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(BlockingIOError),
            wait=tenacity.wait_fixed(LOOK_S),
            stop=tenacity.stop_after_delay(patience_s),
            reraise=True,
        )
        try:
            waiting(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HealthAssetsError(f"another process publishes in {folder}") from None
        yield


def _forget_lost(folder: Path, manifest: Manifest) -> None:
    """Take from a manifest what is not there any more or has another size, so that it is written again."""
    for table in manifest.tables.values():
        for period, file in list(table.files.items()):
            if not _is_whole(folder / file.path, file.size_bytes):
                del table.files[period], table.marks[period]


def _is_whole(path: Path, size_bytes: int) -> bool:
    try:
        return path.stat().st_size == size_bytes
    except FileNotFoundError:
        return False


def _remove_unlisted(folder: Path, manifest: Manifest) -> None:
    """Remove files of tables that no manifest names: of a publication that was killed, or replaced a while ago."""
    listed = manifest.paths() | set(manifest.replaced)
    for table in PUBLISHED:
        for path in [*(folder / table).rglob("*.parquet")]:
            if str(path.relative_to(folder)) not in listed:
                path.unlink(missing_ok=True)
                if path.parent.name.startswith("day=") and not any(path.parent.iterdir()):
                    path.parent.rmdir()
