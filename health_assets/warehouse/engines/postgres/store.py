"""A warehouse in a schema of a PostgreSQL database: for a team, with writers on several machines.

What belongs here: connections, the lock of writers, versions, and what PostgreSQL does in a way of its own. What does
not: what is the same on every engine (`warehouse.store`), how SQL is put for it (`sql`), making tables
(`warehouse.migrations`).

A session is one connection and one transaction. Who writes takes one lock of the whole warehouse first, so that writers
follow one another as on DuckDB: each step sees all that the steps before it have committed, and none can deadlock. Who
reads sees the state of one moment and never waits.

Rows go in by COPY and come out as Arrow, both on that connection, through the ADBC driver.
"""

import math
import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any
from urllib.parse import quote

import ibis
import pyarrow as pa
import tenacity
from ibis import ir

from health_assets.core.errors import HealthAssetsError, NoWarehouseError
from health_assets.core.hours import HourRange
from health_assets.schema.catalog import SCHEMA_VERSION
from health_assets.warehouse.engines.postgres import sql as pg
from health_assets.warehouse.location import Database, database_of
from health_assets.warehouse.refusals import (
    LEDGER_TABLE,
    lacks_value,
    of_a_lake,
    require_supported_version,
    still_held,
    without_drivers,
)
from health_assets.warehouse.session import Session

try:
    import adbc_driver_manager.dbapi as adbc

    from health_assets.warehouse.engines.postgres.adbc_database import opened
except ImportError as error:
    raise without_drivers() from error

SETTINGS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "work_mem": "64MB",  # of 4 MB, its default, windows would be sorted on disk
    "jit": "off",  # costs more than it saves here
    # Of an hour that was just loaded, the statistics know nothing, so it counts as one row; joined to others by a loop
    # that takes hours where a hash table takes a second.
    "enable_nestloop": "off",
}
"""What every session sets, for itself alone."""
CONNECT_TIMEOUT_S = 10
UNREACHABLE_FOR_S = 5.0
"""For how long a server that refuses connections is asked again: a restart takes seconds."""

LOCK = "hashtextextended('health-assets ' || current_schema(), 0)"
"""The key of the lock that writers of a schema take."""
LOCK_NOT_AVAILABLE = "55P03"
"""SQLSTATE of a wait for a lock that took too long."""
NOT_NULL_VIOLATION = "23502"
"""SQLSTATE of a row without a required value."""
_REQUIRED = re.compile(r'null value in column "(?P<column>\w+)" of relation "(?P<table>\w+)"')


class PostgresSession(Session):
    """One transaction on a PostgreSQL schema.

    Args:
        connection: an open connection, inside a transaction.
    """

    row_id = "ctid"
    types = pg.TYPES
    unnests_in_engine = False  # it sorts each member with its owner's name, on disk

    def __init__(self, connection: adbc.Connection) -> None:
        self._connection = connection
        self._known_tables: set[str] = set()

    def query(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple]:
        """See `Session.query`."""
        return rows_of(self._connection, sql, parameters)

    def arrow(self, rows: ir.Table) -> pa.Table:
        """See `Session.arrow`."""
        sql = self.sql(rows)
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return pg.as_schema(cursor.fetch_arrow_table(), rows.schema().to_pyarrow())

    def stream(self, rows: ir.Table, rows_per_batch: int) -> pa.RecordBatchReader:
        """See `Session.stream`."""
        schema = rows.schema().to_pyarrow()
        cursor = self._connection.cursor()
        cursor.execute(self.sql(rows))
        found = cursor.fetch_record_batch()

        def parts() -> Iterator[pa.RecordBatch]:
            with cursor:  # which must stay open for as long as batches come
                for batch in found:
                    yield from pg.as_schema(pa.table(batch), schema).to_batches(rows_per_batch)

        return pa.RecordBatchReader.from_batches(schema, parts())

    def sql(self, rows: ir.Table) -> str:
        """See `Session.sql`."""
        for name, types, data in pg.memory_tables(rows):
            if name not in self._known_tables:
                columns = ", ".join(pg.column_definition(column, kind) for column, kind in types.items())
                self.query(f'CREATE TEMP TABLE "{name}" ({columns}) ON COMMIT DROP')
                self._load(name, pg.to_load(data, data.schema), is_temporary=True)
                self.query(f'ANALYZE "{name}"')
                self._known_tables.add(name)
        return pg.postgres_sql(rows)

    def persist(self, rows: ir.Table) -> tuple[ir.Table, int]:
        """See `Session.persist`."""
        name = ibis.util.gen_name("kept")
        self.query(f'CREATE TEMP TABLE "{name}" ON COMMIT DROP AS {pg.typed(self.sql(rows), pg.sql_types(rows))}')
        self.query(f'ANALYZE "{name}"')
        kept = ibis.table(rows.schema(), name=name)
        return kept, self.count(kept)

    def insert_arrow(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """See `Session.insert_arrow`."""
        self._load(name, pg.to_load(rows, pg.load_schema(name)))

    def _load(self, name: str, rows: pa.RecordBatchReader, *, is_temporary: bool = False) -> None:
        with self._connection.cursor() as cursor:
            cursor.adbc_ingest(name, rows, mode="append", temporary=is_temporary)
        # The driver leaves the answer to its COPY unread, takes the transaction for one that has not begun, and begins
        # it again, at which the server warns; to ask for the schema reads what is left.
        _ = self._connection.adbc_current_db_schema

    def digests(self, name: str, hours: HourRange) -> dict[datetime, int]:
        """See `Session.digests`."""
        sql = f"SELECT hour, sum({pg.fingerprint(name)})::text FROM {name} WHERE hour >= ? AND hour < ? GROUP BY hour"
        return {hour: int(digest) for hour, digest in self.query(sql, [hours.start, hours.end])}

    def column_types(self, name: str) -> dict[str, str]:
        """See `Session.column_types`."""
        found = self.query(
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
            f"WHERE attrelid = '{name}'::regclass AND attnum > 0 AND NOT attisdropped"
        )
        return {column: pg.declared_type(formatted) for column, formatted in found}

    def now(self) -> datetime:
        """The server's time: writers may be on machines whose clocks differ."""
        return self.query("SELECT clock_timestamp()")[0][0]

    def use_one_thread(self) -> None:
        """See `Session.use_one_thread`."""
        self.query("SET LOCAL max_parallel_workers_per_gather = 0")

    def is_among(self, rows: str) -> str:
        """Pass the values as an array: rows are then looked up by an index, and the table is not read whole."""
        return f"ctid = ANY (ARRAY({rows}))"


class PostgresSchema:
    """The schema of a warehouse, the first of the connection's search path, and how it is opened.

    Args:
        url: `postgresql://user:password@host:port/database`, with libpq's parameters.
        lock_timeout_s: how long to wait while another process writes.
        is_ledger: whether the schema keeps the account of a lake alone.

    Raises:
        HealthAssetsError: the URL cannot be read.
    """

    def __init__(self, url: str, lock_timeout_s: float, *, is_ledger: bool = False) -> None:
        self._database = database_of(url)
        self._is_ledger = is_ledger
        self._lock_timeout_s = lock_timeout_s

    @property
    def exists(self) -> bool:
        """See `Warehouse.exists`."""
        try:
            with self.read():
                return True
        except NoWarehouseError:
            return False

    @contextmanager
    def write(self) -> Iterator[Session]:
        """See `Warehouse.write`."""
        with self._connection() as connection:
            rows_of(connection, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            self._set(connection, lock_timeout=f"{math.ceil(self._lock_timeout_s * 1000)}ms")
            self._lock(connection)
            self._check_version(connection)
            yield PostgresSession(connection)
            connection.commit()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """See `Warehouse.read`.

        The transaction is rolled back at its end, so nothing that a reader does stays; one that PostgreSQL itself calls
        read-only could make no temporary tables, which expressions may need.
        """
        with self._connection() as connection:
            rows_of(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self._set(connection)
            self._check_version(connection)
            yield PostgresSession(connection)

    @contextmanager
    def _connection(self) -> Iterator[adbc.Connection]:
        with translated_errors(self._database):
            connection = connected(self._database, self._lock_timeout_s)
            try:
                yield connection
            finally:
                with suppress(adbc.Error):  # the connection may be what broke
                    connection.rollback()
                connection.close()

    def _set(self, connection: adbc.Connection, **more: str) -> None:
        settings = {**SETTINGS, **more}
        calls = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
        rows_of(connection, f"SELECT {calls}")

    def _lock(self, connection: adbc.Connection) -> None:
        try:
            rows_of(connection, f"SELECT pg_advisory_xact_lock({LOCK})::text")
        except adbc.Error as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            connection.rollback()
            holder = rows_of(
                connection,
                "SELECT application_name, pg_locks.pid FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) "
                "WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
                "AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
                f"AND (classid::bigint << 32 | objid::bigint) = {LOCK} LIMIT 1",
            )
            program, pid = holder[0] if holder else (None, None)
            by = f"{program or 'another program'} (server process {pid})" if pid else "another program"
            raise still_held(self._database.name, by, self._lock_timeout_s) from error

    def _check_version(self, connection: adbc.Connection) -> None:
        version = version_of(connection)
        if version is None:
            raise NoWarehouseError(
                f"there is no warehouse in the database {self._database.name} yet; "
                "make its tables with health-assets migrate"
            )
        if not self._is_ledger and rows_of(connection, f"SELECT to_regclass('{LEDGER_TABLE}')::text") != [(None,)]:
            raise of_a_lake(self._database.name)
        require_supported_version(self._database.name, version, is_ledger=self._is_ledger)
        if version < SCHEMA_VERSION:
            raise HealthAssetsError(
                f"the warehouse {self._database.name} has version {version}, older than the {SCHEMA_VERSION} "
                "of this program; bring it up to date with health-assets migrate"
            )


def version_of(connection: adbc.Connection) -> int | None:
    """The version of the schema's tables; None where there are none."""
    if rows_of(connection, "SELECT to_regclass('warehouse_version')::text") == [(None,)]:
        return None
    [(version,)] = rows_of(connection, "SELECT max(version) FROM warehouse_version")
    return version


def rows_of(connection: adbc.Connection, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple]:
    """Run a statement and fetch all its rows, if it gives any."""
    text, bound = pg.numbered(sql, parameters)
    with connection.cursor() as cursor:
        cursor.execute(text, bound)
        if not cursor.description:
            return []
        found = cursor.fetch_arrow_table()
    return list(zip(*(_values(column) for column in found.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.tz:
        column = column.cast(pa.timestamp("us", "+00:00"))
    if isinstance(column.type, pa.OpaqueType) and column.type.type_name == "numeric":
        return [None if text is None else _number(text) for text in column.to_pylist()]
    return column.to_pylist()


def _number(text: str) -> int | float:
    """A numeric as Python has it; sums of whole numbers are whole."""
    return int(text) if text.lstrip("-").isdigit() else float(text)


# -- connecting, and what can go wrong ---------------------------------------------------------------------------------


def connected(database: Database, patience_s: float) -> adbc.Connection:
    """A connection; a server that is starting, or has no connection to spare, is asked again for a while."""
    program = quote(f"health-assets@{socket.gethostname()}:{os.getpid()}", safe="")
    ours = {"connect_timeout": str(CONNECT_TIMEOUT_S), "fallback_application_name": program}
    parameters = "&".join(f"{name}={value}" for name, value in ours.items() if f"{name}=" not in database.uri)
    uri = f"{database.uri}{'&' if '?' in database.uri else '?'}{parameters}"
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(_may_pass),
        wait=tenacity.wait_random_exponential(multiplier=0.05, max=1.0),
        stop=tenacity.stop_after_delay(min(patience_s, UNREACHABLE_FOR_S)),
        reraise=True,
    )
    return retrying(opened, uri)


def _may_pass(error: BaseException) -> bool:
    passing = ("Connection refused", "starting up", "shutting down", "too many clients", "remaining connection slots")
    return isinstance(error, adbc.Error) and any(words in str(error) for words in passing)


@contextmanager
def translated_errors(database: Database) -> Iterator[None]:
    """Say in one sentence what a user can mend."""
    try:
        yield
    except adbc.Error as error:
        sentence = _sentence(error, database)
        if sentence is None:
            raise
        raise HealthAssetsError(sentence) from None if database.password else error


_BY_STATE: dict[str, str] = {
    "53100": "the disk of the server of {name} is full, nothing of this step was kept",
    "53200": "the server of {name} is out of memory, nothing of this step was kept",
    "42501": "the user of the warehouse {name} lacks a privilege that docs/postgresql.md grants",
    "25006": "the server of {name} takes no changes; name its primary",
    "57P01": "the server of {name} ended the connection, nothing of this step was kept",
    "3F000": "the schema of the warehouse {name} does not exist",
}
"""Sentences by SQLSTATE."""

_BY_WORDS: dict[str, str] = {
    "password authentication failed": "the server of {name} refuses user or password",
    "no password supplied": "the server of {name} wants a password",
    "no pg_hba.conf entry": "the server of {name} does not let this user in from here",
    "does not exist": "cannot open the warehouse {name}",
    "Connection refused": "cannot reach the server of {name}",
    "could not translate host name": "cannot reach the server of {name}",
    "timeout expired": "cannot reach the server of {name}",
    "Failed to connect": "cannot connect to the warehouse {name}",
    "server closed the connection": "the connection to {name} broke, nothing of this step was kept",
    "No space left on device": _BY_STATE["53100"],
    "no connection to the server": "the connection to {name} broke, nothing of this step was kept",
    "could not receive data from server": "the connection to {name} broke, nothing of this step was kept",
    "SSL": "cannot connect to the warehouse {name}",
}


def _sentence(error: adbc.Error, database: Database) -> str | None:
    text = database.without_password(str(error).partition("Query was:")[0])
    if error.sqlstate == NOT_NULL_VIOLATION and (required := _REQUIRED.search(text)):
        return str(lacks_value(required["table"], required["column"]))
    sentence = _BY_STATE.get(error.sqlstate or "")
    if sentence is None and (error.sqlstate is None or error.sqlstate.startswith("08")):
        sentence = next((sentence for words, sentence in _BY_WORDS.items() if words in text), None)
    return None if sentence is None else f"{sentence.format(name=database.name)}: {text}"
