"""Publishing: writing the tables of the warehouse as Parquet files, those periods of them that changed.

What belongs here: which periods changed, their files, and forgetting old files. What does not: the manifest and reading
(`warehouse.engines.published`), and when to publish (`cli`, `defs`).

A table has a file for each UTC day, and for each hour of the newest day, so that a run rewrites little. Rows are sorted
by key within a file, so that readers skip what they do not look for.
"""

import fcntl
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from ibis import ir

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import EVER, HourGroups
from health_assets.core.private_files import make_private_folder, private_files
from health_assets.core.settings import Settings
from health_assets.core.wording import counted
from health_assets.schema.catalog import columns_of, describe, key_of
from health_assets.scoring.relations import of_hours
from health_assets.warehouse.engines.published.manifest import (
    KEPT_S,
    PUBLISHED,
    Manifest,
    PublishedFile,
    PublishedTable,
    read_manifest,
    replace_file,
    write_manifest,
)
from health_assets.warehouse.engines.published.views import VIEWS, views_sql
from health_assets.warehouse.location import MANIFEST, ledger_of
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse

ROWS_PER_GROUP = 65_536
LOCK = "publishing.lock"
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


def publish_where_wanted(settings: Settings, now: datetime | None = None) -> Publication | None:
    """`publish` where HEALTH_PUBLISHED names a folder; None where it names none.

    Raises:
        HealthAssetsError: as `publish`.
    """
    return None if settings.published is None else publish(settings, settings.published, now)


def publish(settings: Settings, folder: Path, now: datetime | None = None) -> Publication:
    """Write what changed in the warehouse since the last publication, and replace the manifest.

    Nothing is written where nothing changed.

    Args:
        settings: which warehouse, read in one session.
        folder: where to publish.
        now: the time.

    Raises:
        HealthAssetsError: the warehouse is published tables, the folder holds something else or cannot be written, or
            as `Warehouse.read`.
    """
    warehouse = Warehouse.of(settings)
    if warehouse.is_read_only:
        raise HealthAssetsError(f"{settings.warehouse} holds published tables; name the warehouse itself")
    try:
        with private_files(), _locked(folder):
            return _publish(folder, settings, warehouse, now or datetime.now(UTC))
    except OSError as error:
        raise HealthAssetsError(f"cannot publish the tables in {folder}: {error.strerror or error}") from error


def _publish(folder: Path, settings: Settings, warehouse: Warehouse, now: datetime) -> Publication:
    source = hashlib.sha256(ledger_of(settings).encode()).hexdigest()[:16]
    before = read_manifest(folder) or Manifest(warehouse=source)
    if before.warehouse != source:  # what readers of the old one look at stays a while
        replaced = before.replaced | dict.fromkeys(before.paths(), now)
        before = Manifest(warehouse=source, version=before.version, replaced=replaced)
    _forget_lost(folder, before)
    _remove_unlisted(folder, before)
    writer = _Writer(folder, before.version + 1)
    with warehouse.read() as session:
        tables = {name: writer.table(session, name, before.tables.get(name), now) for name, now in _periods(session)}
    after = Manifest(warehouse=source, version=before.version + 1, published_at=now, tables=tables)
    if after.tables != before.tables:
        kept = now - timedelta(seconds=KEPT_S)
        after.replaced = {path: at for path, at in before.replaced.items() if at > kept}
        after.replaced |= dict.fromkeys(before.paths() - after.paths(), now)
        writer.make_durable()
        write_manifest(folder, after)
        replace_file(folder / VIEWS, views_sql(after))
    return Publication(
        folder=folder,
        version=after.version if after.tables != before.tables else before.version,
        files=len(writer.written),
        rows=sum(file.rows for file in writer.written),
        size_bytes=sum(file.size_bytes for file in writer.written),
    )


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

    def table(
        self, session: Session, name: str, before: PublishedTable | None, periods: Mapping[str, "_Period"]
    ) -> PublishedTable:
        """The table as it is to be published: files of periods with other marks are written, all others kept."""
        known = before or PublishedTable()
        after = PublishedTable()
        for period, now in periods.items():
            is_known = known.marks.get(period) == now.mark
            file = known.files.get(period) if is_known else self._write(session, name, period, now.hours)
            after.marks[period] = now.mark
            if file is not None:
                after.files[period] = file
        return after

    def _write(self, session: Session, name: str, period: str, hours: HourGroups | None) -> PublishedFile | None:
        """Write the rows of a period; None where there are none."""
        if hours is None:
            path, rows = f"{name}/{ALL}.{self._version}.parquet", session.table(name)
        else:
            part = period[11:] or "day"
            path = f"{name}/day={period[:10]}/{part}.{self._version}.parquet"
            rows = session.hours_of(name, hours.span)
            rows = of_hours(rows, hours) if hours.has_holes else rows
        count = _write_rows(self._folder / path, session, _plain(rows, name).order_by(key_of(name)))
        if not count:
            return None
        size_bytes = (self._folder / path).stat().st_size
        self.written.append(PublishedFile(path=path, period=period, rows=count, size_bytes=size_bytes))
        return self.written[-1]

    def make_durable(self) -> None:
        """Wait until the disk has what was written."""
        files = [self._folder / file.path for file in self.written]
        for path in (*files, *{file.parent for file in files}):
            opened = os.open(path, os.O_RDONLY)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)


def _write_rows(path: Path, session: Session, rows: ir.Table) -> int:
    """Write rows to a file as they come; returns how many, and leaves no file where there are none."""
    batches = session.stream(rows, ROWS_PER_GROUP)
    count, writer = 0, None
    try:
        for batch in batches:
            if not batch.num_rows:
                continue
            if writer is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                writer = pq.ParquetWriter(path, batch.schema, compression="zstd")
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=ROWS_PER_GROUP)
            count += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    return count


def _plain(rows: ir.Table, table: str) -> ir.Table:
    """Rows in types that every reader of Parquet knows: JSON as its text."""
    return rows.mutate(**{name: rows[name].cast("string") for name, kind, *_ in describe(table) if kind == "json"})


class _Period(NamedTuple):
    """A UTC day, an hour of the newest day, or all of a table without hours.

    Args:
        mark: changes whenever the rows do.
        hours: its hours that are materialized; None of a table without hours.
    """

    mark: str
    hours: HourGroups | None


def _periods(session: Session) -> Iterator[tuple[str, dict[str, _Period]]]:
    """The periods of each table as they are now."""
    written = PartitionStates(session).written(EVER)
    newest = max((hour for hours in written.values() for hour in hours), default="")[:10]
    for table in PUBLISHED:
        if "hour" not in columns_of(table):
            yield table, {ALL: _Period(_digest_of_rows(session, table), None)}
        elif table in written:
            own = {hour: [str(value) for value in known] for hour, known in written[table].items()}
            yield table, _by_period(own, newest)
        else:
            digests = session.digests(table, EVER)
            yield table, _by_period({hour.isoformat(): digest for hour, digest in digests.items()}, newest)


def _by_period(hours: Mapping[str, object], newest_day: str) -> dict[str, _Period]:
    """The periods of hours, as ISO 8601, with what is known of each."""
    periods: defaultdict[str, dict[str, object]] = defaultdict(dict)
    for hour, known in sorted(hours.items()):
        periods[hour[:13] if hour[:10] >= newest_day else hour[:10]][hour] = known
    return {
        period: _Period(_digest(known), HourGroups.of(map(datetime.fromisoformat, known)))
        for period, known in periods.items()
    }


def _digest_of_rows(session: Session, table: str) -> str:
    rows = session.arrow(_plain(session.table(table), table).order_by(key_of(table)))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()[:16]


def _digest(told: object) -> str:
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder, which is made where there is none, so that nobody else publishes there meanwhile.

    Raises:
        HealthAssetsError: it holds other files than published tables.
    """
    make_private_folder(folder)
    there = {path.name for path in folder.iterdir()}
    if there and not there & {MANIFEST, LOCK}:
        raise HealthAssetsError(f"{folder} holds other files; HEALTH_PUBLISHED must name a folder of its own")
    with (folder / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
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
