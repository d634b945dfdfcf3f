"""The warehouse as a place: open it, read tables as ibis expressions, replace whole hours in one transaction.

What belongs here: connections, locks, transactions, versions, moving rows. What does not: which rows (`ingestion`,
`scoring`) and what tables mean (`tables`).

A DuckDB file has one writer, and that writer locks out every other process. So a session opens the file, does its work
in one transaction and closes it; who finds it locked waits and tries again.
"""

import errno
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

import duckdb
import ibis
import pyarrow as pa
import tenacity
from ibis import ir

from health_assets.errors import HealthAssetsError, NoWarehouseError, WarehouseBusyError
from health_assets.hours import HOUR, HourRange
from health_assets.settings import Settings
from health_assets.warehouse.engine import Engine
from health_assets.warehouse.expressions import duckdb_sql
from health_assets.warehouse.location import path_of
from health_assets.warehouse.tables import ALL_TABLES, SCHEMA_VERSION, columns_of, create_statement, schema_of

_LOCKED = re.compile(r"Conflicting lock is held in (?P<program>.*?) ?\(PID (?P<pid>\d+)\)")
_FULL = re.compile(r"no space left|disk is full|disk quota|file too large|failed to offload|could not write", re.I)


class Session:
    """One transaction on the warehouse.

    Args:
        connection: an open DuckDB connection, inside a transaction.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def table(self, name: str) -> ir.Table:
        """A table as an ibis expression."""
        return ibis.table(schema_of(name), name=name)

    def hours_of(self, name: str, hours: HourRange) -> ir.Table:
        """The rows of a table in `[hours.start, hours.end)`."""
        rows = self.table(name)
        return rows.filter(rows.hour >= hours.start, rows.hour < hours.end)

    def query(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple]:
        """Run SQL and fetch all rows; for bookkeeping, not for bulk data."""
        return self._connection.execute(sql, parameters).fetchall()

    def arrow(self, rows: ir.Table) -> pa.Table:
        """Evaluate an expression."""
        return self._connection.sql(self._sql(rows)).to_arrow_table()

    def stream(self, sql: str, parameters: dict[str, Any], rows_per_batch: int) -> pa.RecordBatchReader:
        """Run SQL and read its rows batch by batch; for bulk data that SQL says better than an expression."""
        return self._connection.sql(sql, params=parameters).to_arrow_reader(rows_per_batch)

    def _sql(self, rows: ir.Table) -> str:
        return duckdb_sql(self._connection, rows)

    def count(self, rows: ir.Table) -> int:
        """How many rows an expression has."""
        [(count,)] = self.query(f"SELECT count(*) FROM ({self._sql(rows)})")
        return count

    def count_hours(self, name: str, hours: HourRange) -> int:
        """How many rows a table has in `[hours.start, hours.end)`."""
        sql = f"SELECT count(*) FROM {name} WHERE hour >= ? AND hour < ?"
        [(count,)] = self.query(sql, [hours.start, hours.end])
        return count

    def column_types(self, name: str) -> dict[str, str]:
        """The columns of a table as the warehouse has them, with their types as DuckDB writes them."""
        return {column: sql_type for _, column, sql_type, *_ in self.query(f"FROM pragma_table_info('{name}')")}

    def kept(self, rows: ir.Table) -> tuple[ir.Table, int]:
        """Evaluate an expression once, to be used several times in this session; with its number of rows."""
        name = ibis.util.gen_name("kept")
        self._connection.execute(f"CREATE TEMP TABLE {name} AS {self._sql(rows)}")
        kept = ibis.table(rows.schema(), name=name)
        return kept, self.count(kept)

    def insert(self, name: str, rows: ir.Table) -> int:
        """Append the rows of an expression that has the table's columns; returns how many."""
        columns = columns_of(name)
        sql = f"INSERT INTO {name} ({', '.join(columns)}) {self._sql(rows.select(*columns))}"
        [(inserted,)] = self.query(sql)
        return inserted

    def insert_arrow(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> int:
        """Append Arrow rows that have the table's columns by name; returns how many."""
        self._connection.register("incoming", rows)
        columns = ", ".join(columns_of(name))
        [(inserted,)] = self.query(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM incoming")
        self._connection.unregister("incoming")
        return inserted

    def delete_hours(self, name: str, hours: HourRange) -> None:
        """Delete the rows of `[hours.start, hours.end)`."""
        self._connection.execute(f"DELETE FROM {name} WHERE hour >= ? AND hour < ?", [hours.start, hours.end])

    def replace_hours(
        self, name: str, hours: HourRange, rows: ir.Table, unchanged: AbstractSet[datetime] = frozenset()
    ) -> None:
        """Replace whole hours of an asset's table and note that they are materialised.

        Args:
            name: the asset's table.
            hours: the hours.
            rows: their rows.
            unchanged: hours whose rows count as what they were, whatever they are.
        """
        before = self._fingerprints(name, hours) | self._dropped_fingerprints(name, hours)
        self.delete_hours(name, hours)
        self.insert(name, rows)
        after = self._fingerprints(name, hours)
        changed = {hour for hour in hours if before.get(hour, "") != after.get(hour, "")}
        self.note_materialized(name, hours, changed - unchanged)

    def drop_hours(self, name: str, hours: HourRange, *, is_remembered: bool) -> int:
        """Delete the rows of whole hours on purpose; returns how many.

        Args:
            name: the asset's table.
            hours: the hours.
            is_remembered: whether to take a fingerprint, by which the same rows are known again if they come back.
        """
        if not self.materialized_hours(name, hours):
            return 0
        digests = self._fingerprints(name, hours) if is_remembered else {}
        count = self.count_hours(name, hours)
        self.delete_hours(name, hours)
        condition = "asset = ? AND dropped_digest IS NULL AND hour >= ? AND hour < ?"
        for hour, digest in digests.items():
            self.query(
                f"UPDATE materialized_hours SET dropped_digest = ?, rows = 0 WHERE {condition}",
                [digest, name, hour, hour + HOUR],
            )
        self.query(
            f"UPDATE materialized_hours SET dropped_digest = '', rows = 0 WHERE {condition}",
            [name, hours.start, hours.end],
        )
        return count

    def dropped_hours(self, asset: str, hours: HourRange) -> set[datetime]:
        """Which of these hours of the asset were dropped and have not been made again."""
        return set(self._dropped_fingerprints(asset, hours))

    def _dropped_fingerprints(self, asset: str, hours: HourRange) -> dict[datetime, str]:
        sql = (
            "SELECT hour, dropped_digest FROM materialized_hours "
            "WHERE asset = ? AND dropped_digest IS NOT NULL AND hour >= ? AND hour < ?"
        )
        return dict(self.query(sql, [asset, hours.start, hours.end]))

    def dropped_until(self) -> datetime | None:
        """The end of the latest hour of which some asset's rows were dropped; None where nothing is."""
        [(latest,)] = self.query("SELECT max(hour) FROM materialized_hours WHERE dropped_digest IS NOT NULL")
        return latest and latest + HOUR

    def _fingerprints(self, name: str, hours: HourRange) -> dict[datetime, str]:
        return {hour: str(digest) for hour, digest in self.digests(name, hours).items()}

    def delete_duplicates(
        self, name: str, hours: HourRange, keys: Sequence[str], order: Sequence[str]
    ) -> list[tuple[datetime, str]]:
        """Of rows of these hours with equal `keys` keep the one that is greatest by `order`.

        Returns:
            (hour, source_file) of every row that was deleted.
        """
        span = {"start": hours.start, "end": hours.end}
        inside = f"FROM {name} WHERE hour >= $start AND hour < $end"
        key = ", ".join(keys)
        # looking for one costs a tenth of ranking all, and mostly there is none
        if not self.query(f"SELECT 1 {inside} GROUP BY {key} HAVING count(*) > 1 LIMIT 1", span):
            return []
        greatest_first = ", ".join(f"{column} DESC" for column in order)
        ranked = f"SELECT rowid, row_number() OVER (PARTITION BY {key} ORDER BY {greatest_first}) AS rank {inside}"
        losers = f"SELECT rowid FROM ({ranked}) WHERE rank > 1"
        return self.query(f"DELETE FROM {name} WHERE rowid IN ({losers}) RETURNING hour, source_file", span)

    def correct_rows(self, name: str, corrections: ir.Table, keys: Sequence[str]) -> None:
        """Set columns of single rows of an asset's table, and note that their hours have changed.

        Args:
            name: the table.
            corrections: `keys`, with `hour` among them, and the columns to set; one row per row of the table.
            keys: columns that tell the rows apart.
        """
        kept, count = self.kept(corrections)
        if not count:
            return
        values = ", ".join(f"{column} = kept.{column}" for column in kept.columns if column not in keys)
        same = " AND ".join(f"{name}.{key} = kept.{key}" for key in keys)
        self.query(f"UPDATE {name} SET {values} FROM ({self._sql(kept)}) AS kept WHERE {same}")
        self.query(
            "UPDATE materialized_hours SET changed_at = ? "
            f"WHERE asset = ? AND hour IN (SELECT hour FROM ({self._sql(kept)}))",
            [datetime.now(UTC), name],
        )

    def rewrite_hours(self, name: str, hours: HourRange, rows: ir.Table) -> None:
        """Replace whole hours with rows computed from those same hours."""
        columns = columns_of(name)
        self._connection.execute(f"CREATE TEMP TABLE rewritten AS {self._sql(rows.select(*columns))}")
        self.delete_hours(name, hours)
        self._connection.execute(f"INSERT INTO {name} ({', '.join(columns)}) FROM rewritten")
        self._connection.execute("DROP TABLE rewritten")

    def digests(self, name: str, hours: HourRange) -> dict[datetime, int]:
        """A fingerprint of the rows of each hour, the same in any order."""
        span = [hours.start, hours.end]
        columns = ", ".join(columns_of(name))
        sql = f"SELECT hour, sum(hash({columns})) FROM {name} WHERE hour >= ? AND hour < ? GROUP BY hour"
        return dict(self.query(sql, span))

    def note_materialized(self, asset: str, hours: HourRange, changed: Iterable[datetime]) -> None:
        """Write down that these hours of the asset are materialised, and which of them have other rows than before."""
        now = datetime.now(UTC)
        span = [hours.start, hours.end]
        counted = self.query(f"SELECT hour, count(*) FROM {asset} WHERE hour >= ? AND hour < ? GROUP BY hour", span)
        condition = "asset = ? AND hour >= ? AND hour < ?"
        earlier = self.query(f"SELECT hour, changed_at FROM materialized_hours WHERE {condition}", [asset, *span])
        changed_at = {**dict(earlier), **dict.fromkeys(changed, now)}
        rows = dict(counted)
        times = pa.timestamp("us", "UTC")
        self.query(f"DELETE FROM materialized_hours WHERE {condition}", [asset, *span])
        self.insert_arrow(
            "materialized_hours",
            pa.table(
                {
                    "hour": pa.array(list(hours), times),
                    "asset": [asset] * len(hours),
                    "rows": [rows.get(hour, 0) for hour in hours],
                    "materialized_at": pa.array([now] * len(hours), times),
                    "changed_at": pa.array([changed_at.get(hour) for hour in hours], times),
                    "dropped_digest": pa.nulls(len(hours), pa.string()),
                }
            ),
        )

    def materialized_hours(self, asset: str, hours: HourRange) -> set[datetime]:
        """Which of these hours of the asset have been materialised, and were not dropped since."""
        rows = self.query(
            "SELECT hour FROM materialized_hours WHERE asset = ? AND dropped_digest IS NULL AND hour >= ? AND hour < ?",
            [asset, hours.start, hours.end],
        )
        return {row[0] for row in rows}

    def hours_older_than(
        self, asset: str, sources: Sequence[str], hours: HourRange, *, reach_hours: int = 1
    ) -> set[datetime]:
        """Hours of `asset` that were not materialised since an hour of `sources` that they look back on changed.

        Args:
            asset: the asset in question.
            sources: assets that it is made from.
            hours: hours of `asset` to look at.
            reach_hours: how many hours of the sources, ending with its own, an hour is made from.
        """
        rows = self.query(
            f"""
            WITH newest AS (
                SELECT spine.hour, max(sources.changed_at) AS changed_at
                FROM materialized_hours AS sources
                JOIN (SELECT DISTINCT hour FROM materialized_hours WHERE hour >= $start AND hour < $end) AS spine
                    ON sources.hour <= spine.hour AND sources.hour > spine.hour - INTERVAL {int(reach_hours)} HOUR
                WHERE sources.asset IN (SELECT unnest($sources))
                GROUP BY spine.hour
            )
            SELECT newest.hour FROM newest
            LEFT JOIN materialized_hours AS own ON own.hour = newest.hour AND own.asset = $asset
            WHERE newest.changed_at IS NOT NULL
                AND (own.materialized_at IS NULL OR own.materialized_at < newest.changed_at)
            """,
            {"asset": asset, "sources": list(sources), "start": hours.start, "end": hours.end},
        )
        return {row[0] for row in rows}

    def first_event_hour(self) -> datetime | None:
        """The earliest hour with an event in any raw log that was read; None before the first."""
        return self.query("SELECT min(hour) FROM raw_logs WHERE record_type <> 'rejected' AND lines > 0")[0][0]


def _start(path: Path, mode: Literal["read", "write"], config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(path), read_only=mode == "read", config=config)


class Warehouse:
    """A DuckDB file.

    Args:
        url: path of the file, or `duckdb:///path`.
        lock_timeout_s: how long to wait while another process holds the file.
        memory_limit: most memory that DuckDB may use before it spills to disk, like `3GB`.
        engine: the DuckDB that its sessions share; without one, each starts its own.

    Raises:
        HealthAssetsError: the URL names an engine that is not supported.
    """

    def __init__(
        self, url: str, *, lock_timeout_s: float = 60.0, memory_limit: str = "3GB", engine: Engine | None = None
    ) -> None:
        self.path = path_of(url)
        self._lock_timeout_s = lock_timeout_s
        self._memory_limit = memory_limit
        self._engine = engine

    @classmethod
    def of(cls, settings: Settings, *, lock_timeout_s: float | None = None, engine: Engine | None = None) -> Self:
        """The warehouse that settings name, with their limits, or another limit on waiting for it."""
        timeout_s = settings.lock_timeout_s if lock_timeout_s is None else lock_timeout_s
        return cls(settings.warehouse, lock_timeout_s=timeout_s, memory_limit=settings.memory_limit, engine=engine)

    @property
    def exists(self) -> bool:
        """Whether anything has been written yet."""
        return self.path.exists()

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that commits when the block ends and leaves no trace when it raises.

        Raises:
            HealthAssetsError: the file stays locked, is no warehouse or a newer one, or the disk is full.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HealthAssetsError(f"cannot make the folder of the warehouse {self.path}: {error.strerror}") from error
        with self._session("write") as session:
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A view of the last committed state, next to other readers.

        Raises:
            HealthAssetsError: as `write`, or there is no warehouse yet.
        """
        if not self.exists:
            raise NoWarehouseError(f"there is no warehouse at {self.path} yet; materialise some hours first")
        with self._session("read") as session:
            yield session

    @contextmanager
    def _session(self, mode: Literal["read", "write"]) -> Iterator[Session]:
        with self._translated_errors():
            connection = self._connect(mode)
            try:
                connection.execute(
                    "SET TimeZone = 'UTC'; SET preserve_insertion_order = false; SET enable_progress_bar = false"
                )
                connection.execute("BEGIN")
                self._check_version(connection, mode)
                yield Session(connection)
                connection.execute("COMMIT")
            finally:
                connection.close()
                if self._engine:
                    self._engine.detach()

    def _connect(self, mode: Literal["read", "write"]) -> duckdb.DuckDBPyConnection:
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda error: isinstance(error, duckdb.IOException) and bool(_LOCKED.search(str(error)))
            ),
            wait=tenacity.wait_random_exponential(multiplier=0.02, max=0.5),
            stop=tenacity.stop_after_delay(self._lock_timeout_s),
            reraise=True,
        )
        return retrying(self._engine.attach if self._engine else _start, self.path, mode, self._config)

    @property
    def _config(self) -> dict[str, Any]:
        return {
            "memory_limit": self._memory_limit,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }

    def _check_version(self, connection: duckdb.DuckDBPyConnection, mode: Literal["read", "write"]) -> None:
        """Refuse what is not ours or newer than we are; make the tables that are not there yet."""
        tables = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if "warehouse_version" in tables:
            [(version,)] = connection.execute("SELECT max(version) FROM warehouse_version").fetchall()
            if version > SCHEMA_VERSION:
                raise HealthAssetsError(
                    f"the warehouse {self.path} has version {version}, newer than the {SCHEMA_VERSION} "
                    "that this program knows; upgrade health-assets"
                )
        elif tables:
            raise HealthAssetsError(f"{self.path} is a DuckDB file but no Health Assets warehouse; name another file")
        elif mode == "read":  # a first write that was cut off leaves an empty file
            raise NoWarehouseError(f"there is nothing in the warehouse {self.path} yet; materialise some hours first")
        if mode == "write":
            for name in ALL_TABLES.keys() - tables:
                connection.execute(create_statement(name))
            if "warehouse_version" not in tables:
                connection.execute("INSERT INTO warehouse_version VALUES (?)", [SCHEMA_VERSION])

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, OSError) as error:
            if locked := _LOCKED.search(" ".join(str(error).split())):
                raise WarehouseBusyError(self._held_by(locked)) from error
            sentence = self._sentence(error)
            if sentence is None:
                raise
            raise HealthAssetsError(sentence) from error
        except RuntimeError as error:
            if str(error) != "Query interrupted":
                raise
            raise KeyboardInterrupt from None  # by Ctrl-C; DuckDB drops what the signal's handler had raised

    def _held_by(self, locked: re.Match[str]) -> str:
        program = Path(locked["program"]).name or "another program"
        return (
            f"the warehouse {self.path} is held by {program} (process {locked['pid']}) "
            f"and did not come free within {self._lock_timeout_s:g} s; wait for it or stop it"
        )

    def _sentence(self, error: Exception) -> str | None:
        text = " ".join(str(error).split())
        if _FULL.search(text) or (
            isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        ):
            return f"the disk of the warehouse {self.path} is full, nothing of this step was kept: {text}"
        if isinstance(error, duckdb.ParserException) and "memory" in text.lower():
            return f"HEALTH_MEMORY_LIMIT: {self._memory_limit!r} is not an amount of memory; write it like 2GB"
        if "corrupt" in text.lower() or "checksum" in text.lower():
            return f"the warehouse {self.path} is damaged; move it away and build it again from the raw logs: {text}"
        if isinstance(error, duckdb.OutOfMemoryException):
            return f"the step needs more than the memory limit of {self._memory_limit}; raise HEALTH_MEMORY_LIMIT"
        if isinstance(error, duckdb.IOException) and self.exists and not self.path.is_dir():
            return f"cannot open the warehouse {self.path}: {text}"
        if isinstance(error, duckdb.IOException):
            return f"cannot make the warehouse {self.path}: {text}"
        return None
