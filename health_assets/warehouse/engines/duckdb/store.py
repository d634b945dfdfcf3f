"""A warehouse in a DuckDB file: the default, for one machine.

What belongs here: opening the file, its lock, its versions, and what DuckDB does in a way of its own. What does not:
what is the same on every engine (`warehouse.store`).

A DuckDB file has one writer, and that writer locks out every other process. So a session opens the file, does its work
in one transaction and closes it; who finds it locked waits and tries again.
"""

import errno
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import duckdb
import ibis
import pyarrow as pa
import tenacity
from ibis import ir

from health_assets.core.duckdb_sql import duckdb_sql
from health_assets.core.errors import HealthAssetsError, NoWarehouseError
from health_assets.core.hours import HourRange
from health_assets.core.private_files import make_private_folder, private_files, shut_out_others
from health_assets.schema.catalog import ALL_TABLES, SCHEMA_VERSION, columns_of, describe, description_of
from health_assets.schema.columns import FORMULA_VERSION
from health_assets.warehouse.declared_columns import KnownColumn, declare
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB
from health_assets.warehouse.engines.duckdb.tables import TYPES, create_statement
from health_assets.warehouse.location import path_of
from health_assets.warehouse.refusals import LEDGER_TABLE, lacks_value, of_a_lake, require_supported_version, still_held
from health_assets.warehouse.session import Session
from health_assets.warehouse.upgrades import statements_since

_LOCKED = re.compile(r"Conflicting lock is held in (?P<program>.*?) ?\(PID (?P<pid>\d+)\)")
_PYTHON = "Traceback (most recent call last)"
_FULL = re.compile(r"no space left|disk is full|disk quota|file too large|failed to offload|could not write", re.I)
_REQUIRED = re.compile(r"NOT NULL constraint failed: (?P<table>\w+)\.(?P<column>\w+)")
_NOT_OURS = "not a valid DuckDB database file"
_DECLARED_TYPES = {spelled: kind for kind, spelled in TYPES.items()}


SESSION_SETTINGS = "SET TimeZone = 'UTC'; SET preserve_insertion_order = false; SET enable_progress_bar = false"


def config_of(memory_limit: str) -> dict[str, Any]:
    """What every DuckDB of ours is started with."""
    return {
        "memory_limit": memory_limit,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }


class DuckDBSession(Session):
    """One transaction on a DuckDB file.

    Args:
        connection: an open DuckDB connection, inside a transaction.
    """

    row_id = "rowid"
    types = TYPES
    unnests_in_engine = True

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def query(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple]:
        """See `Session.query`."""
        return self._connection.execute(sql, parameters).fetchall()

    def arrow(self, rows: ir.Table) -> pa.Table:
        """See `Session.arrow`."""
        return self._connection.sql(self.sql(rows)).to_arrow_table()

    def stream(self, rows: ir.Table, rows_per_batch: int) -> pa.RecordBatchReader:
        """See `Session.stream`."""
        return self._connection.sql(self.sql(rows)).to_arrow_reader(rows_per_batch)

    def sql(self, rows: ir.Table) -> str:
        """See `Session.sql`."""
        return duckdb_sql(self._connection, rows)

    def persist(self, rows: ir.Table) -> tuple[ir.Table, int]:
        """See `Session.persist`."""
        name = ibis.util.gen_name("kept")
        self._connection.execute(f"CREATE TEMP TABLE {name} AS {self._typed(rows)}")
        kept = ibis.table(rows.schema(), name=name)
        return kept, self.count(kept)

    def _typed(self, rows: ir.Table) -> str:
        """SQL of rows whose numbers have the types of the expression: to DuckDB, 0.95 is a decimal."""
        columns = (
            f'CAST("{name}" AS DOUBLE) AS "{name}"' if kind.is_float64() else f'"{name}"'
            for name, kind in rows.schema().items()
        )
        return f"SELECT {', '.join(columns)} FROM ({self.sql(rows)}) AS untyped"

    def insert_arrow(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """See `Session.insert_arrow`."""
        self._connection.register("incoming", rows)
        columns = ", ".join(columns_of(name))
        self._connection.execute(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM incoming")
        self._connection.unregister("incoming")

    def digests(self, name: str, hours: HourRange) -> dict[datetime, int]:
        """See `Session.digests`."""
        columns = ", ".join(column for column in columns_of(name) if column != FORMULA_VERSION)
        sql = f"SELECT hour, sum(hash({columns})) FROM {name} WHERE hour >= ? AND hour < ? GROUP BY hour"
        return dict(self.query(sql, [hours.start, hours.end]))

    def column_types(self, name: str) -> dict[str, str]:
        """See `Session.column_types`."""
        columns = self.query(f"FROM pragma_table_info('{name}')")
        return {column: _DECLARED_TYPES.get(sql_type, sql_type) for _, column, sql_type, *_ in columns}

    def now(self) -> datetime:
        """The machine's time: whoever writes to a file is on the machine that has it."""
        return datetime.now(UTC)

    def use_one_thread(self) -> None:
        """See `Session.use_one_thread`."""
        self._connection.execute("SET threads = 1")


class DuckDBFile:
    """The file of a warehouse, and how it is opened.

    Args:
        url: path of the file, or `duckdb:///path`.
        lock_timeout_s: how long to wait while another process holds the file.
        memory_limit: most memory that DuckDB may use before it spills to disk, like `3GB`.
        shared_duckdb: the DuckDB that its sessions share; without one, each starts its own.
        is_ledger: whether the file keeps the account of a lake alone.

    Raises:
        HealthAssetsError: the URL names no file.
    """

    def __init__(
        self,
        url: str,
        lock_timeout_s: float,
        memory_limit: str,
        shared_duckdb: SharedDuckDB | None,
        *,
        is_ledger: bool = False,
    ) -> None:
        self.path = path_of(url)
        self._lock_timeout_s = lock_timeout_s
        self._memory_limit = memory_limit
        self._shared = shared_duckdb
        self._is_ledger = is_ledger
        self._what = "ledger (HEALTH_LEDGER)" if is_ledger else "warehouse"

    @property
    def exists(self) -> bool:
        """See `Warehouse.exists`."""
        return self.path.exists()

    @contextmanager
    def write(self) -> Iterator[Session]:
        """See `Warehouse.write`."""
        try:
            make_private_folder(self.path.parent)
        except OSError as error:
            raise HealthAssetsError(f"cannot make the folder of the warehouse {self.path}: {error.strerror}") from error
        with self._session("write") as session:
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """See `Warehouse.read`."""
        if not self.exists:
            raise NoWarehouseError(f"there is no {self._what} at {self.path} yet; materialize some hours first")
        with self._session("read") as session:
            yield session

    @contextmanager
    def _session(self, mode: Literal["read", "write"]) -> Iterator[Session]:
        with private_files(), self._translated_errors():
            connection = self._connect(mode)
            try:
                if mode == "write":  # only now: a file that is none of ours keeps the mode that it has
                    for path in (self.path, Path(f"{self.path}.wal")):
                        shut_out_others(path)
                # a shared DuckDB still has the threads of the session before
                connection.execute(f"{SESSION_SETTINGS}; RESET threads")
                connection.execute("BEGIN")
                self._prepare(connection, mode)
                yield DuckDBSession(connection)
                connection.execute("COMMIT")
            finally:
                connection.close()
                if self._shared:
                    self._shared.detach()

    def _connect(self, mode: Literal["read", "write"]) -> duckdb.DuckDBPyConnection:
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda error: isinstance(error, duckdb.IOException) and bool(_LOCKED.search(str(error)))
            ),
            wait=tenacity.wait_random_exponential(multiplier=0.02, max=0.5),
            stop=tenacity.stop_after_delay(self._lock_timeout_s),
            reraise=True,
        )
        return retrying(self._shared.attach if self._shared else _start, self.path, mode, self._config)

    @property
    def _config(self) -> dict[str, Any]:
        return config_of(self._memory_limit)

    def _prepare(self, connection: duckdb.DuckDBPyConnection, mode: Literal["read", "write"]) -> None:
        """Refuse what is not ours or of an unknown version; let the session see today's tables of what is older."""
        tables = dict(connection.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall())
        version = SCHEMA_VERSION
        if LEDGER_TABLE in tables and not self._is_ledger:
            raise of_a_lake(self.path)
        if "warehouse_version" in tables:
            [(found,)] = connection.execute("SELECT max(version) FROM warehouse_version").fetchall()
            version = require_supported_version(self.path, found, is_ledger=self._is_ledger)
        elif tables:
            raise HealthAssetsError(f"{self.path} is a DuckDB file but no Health Assets warehouse; name another file")
        elif mode == "read":  # a first write that was cut off leaves an empty file
            raise NoWarehouseError(
                f"there is nothing in the {self._what} {self.path} yet; materialize some hours first"
            )
        if mode == "write":
            _bring_up_to_date(connection, tables, version)
        elif version < SCHEMA_VERSION:
            _complete(connection, tables.keys())

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except duckdb.InterruptException as error:
            raise KeyboardInterrupt from error  # by Ctrl-C; DuckDB drops what the signal's handler had raised
        except (duckdb.Error, OSError) as error:
            if locked := _LOCKED.search(" ".join(str(error).split())):
                program = Path(locked["program"]).name or "another program"
                holder = f"{program} (process {locked['pid']})"
                raise still_held(self.path, holder, self._lock_timeout_s) from error
            sentence = self._sentence(error)
            if sentence is None:
                raise
            raise HealthAssetsError(sentence) from error
        except RuntimeError as error:
            if str(error) != "Query interrupted":
                raise
            raise KeyboardInterrupt from None  # as above, in other words

    def _sentence(self, error: Exception) -> str | None:
        text = " ".join(str(error).split())
        if _FULL.search(text) or (
            isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        ):
            if _PYTHON in text:  # raised by what reads the logs, within DuckDB
                reason = str(error).strip().splitlines()[-1].strip()
                return f"no space is left in {tempfile.gettempdir()} (TMPDIR), nothing of this step was kept: {reason}"
            return f"the disk of the warehouse {self.path} is full, nothing of this step was kept: {text}"
        if isinstance(error, duckdb.ConstraintException) and (required := _REQUIRED.search(text)):
            return str(lacks_value(required["table"], required["column"]))
        if isinstance(error, duckdb.ParserException) and "memory" in text.lower():
            return f"HEALTH_MEMORY_LIMIT: {self._memory_limit!r} is not an amount of memory; write it like 2GB"
        if "corrupt" in text.lower() or "checksum" in text.lower():
            # DuckDB 2.0 has said so of a sound file, once, and not at the next session
            return (
                f"the warehouse {self.path} seems damaged; try again, and if that says the same, move it away and "
                f"build it again from the raw logs: {text}"
            )
        if isinstance(error, duckdb.OutOfMemoryException):
            return f"the step needs more than the memory limit of {self._memory_limit}; raise HEALTH_MEMORY_LIMIT"
        if _NOT_OURS in text:
            return f"cannot open the warehouse {self.path}: it is not a DuckDB file; name another file"
        if isinstance(error, duckdb.IOException) and self.exists and not self.path.is_dir():
            return f"cannot open the warehouse {self.path}: {text}"
        if isinstance(error, duckdb.IOException):
            return f"cannot make the warehouse {self.path}: {text}"
        return None


def _start(path: Path, mode: Literal["read", "write"], config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    # without the prefix, DuckDB takes a file named like data, as .jsonl, for data, and keeps the tables in memory;
    # with it, it would spill into a folder of that name
    config = {**config, "temp_directory": f"{path}.tmp"}
    return duckdb.connect(f"duckdb:{path}", read_only=mode == "read", config=config)


def _missing_columns(connection: duckdb.DuckDBPyConnection, tables: Set[str]) -> dict[str, dict[str, str]]:
    """Declared columns, with their types, that tables of an older warehouse do not have."""
    held = {(table, column) for table, column in connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal"
    ).fetchall()}  # fmt: skip
    missing = {
        table: {name: TYPES[kind] for name, kind, *_ in describe(table) if (table, name) not in held}
        for table in ALL_TABLES.keys() & tables
    }
    return {table: columns for table, columns in missing.items() if columns}


def _bring_up_to_date(connection: duckdb.DuckDBPyConnection, comments: Mapping[str, str | None], version: int) -> None:
    """Make the tables and columns that are not there yet, with all that the classes declare of them.

    Args:
        connection: a connection inside a transaction.
        comments: description of each table that is there; None without any.
        version: version of the tables that are there.
    """
    is_older = version < SCHEMA_VERSION
    for name in ALL_TABLES.keys() - comments.keys():
        connection.execute(create_statement(name))
    if "warehouse_version" not in comments:
        connection.execute("INSERT INTO warehouse_version VALUES (?)", [SCHEMA_VERSION])
    if is_older:
        _add_columns(connection, comments.keys())
    if is_older or any(comments.get(name) != description_of(name) for name in ALL_TABLES):
        _declare(connection)  # before rows are updated: DuckDB adds no constraint to a table with updates
    if is_older:
        _upgrade(connection, version)


def _add_columns(connection: duckdb.DuckDBPyConnection, tables: Set[str]) -> None:
    """Give tables of an older warehouse the columns that they did not have, null in their rows."""
    for table, columns in _missing_columns(connection, tables).items():
        for name, sql_type in columns.items():
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {sql_type}")


def _upgrade(connection: duckdb.DuckDBPyConnection, version: int) -> None:
    """Change what rows of an older version say."""
    for statement in statements_since(version):
        connection.execute(statement)
    connection.execute("UPDATE warehouse_version SET version = ?", [SCHEMA_VERSION])


def _declare(connection: duckdb.DuckDBPyConnection) -> None:
    """Let the file itself say what the classes declare: descriptions, and which columns are never null."""
    columns: dict[str, dict[str, KnownColumn]] = {}
    for table, name, is_nullable, comment in connection.execute(
        "SELECT table_name, column_name, is_nullable, comment FROM duckdb_columns() WHERE NOT internal"
    ).fetchall():
        columns.setdefault(table, {})[name] = KnownColumn(is_nullable, comment)
    comments = dict(connection.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall())
    declare(lambda sql: connection.execute(sql).fetchall(), comments, columns)


def _complete(connection: duckdb.DuckDBPyConnection, tables: Set[str]) -> None:
    """Let a reader see an older warehouse as if it had been upgraded, without touching it."""
    for table in ALL_TABLES.keys() - tables:
        connection.execute(create_statement(table).replace("CREATE TABLE", "CREATE TEMP TABLE"))
    for table, columns in _missing_columns(connection, tables).items():
        nulls = ", ".join(f"CAST(NULL AS {sql_type}) AS {name}" for name, sql_type in columns.items())
        [(place,)] = connection.execute("SELECT current_catalog()").fetchall()
        connection.execute(f'CREATE TEMP VIEW {table} AS SELECT *, {nulls} FROM "{place}".main.{table}')
