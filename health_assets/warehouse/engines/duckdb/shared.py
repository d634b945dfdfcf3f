"""A DuckDB without a file, to which the warehouse's file is attached for as long as a session lasts.

What belongs here: starting it once, attaching and detaching. What does not: locks, transactions and versions (`store`).

To start DuckDB and to run its first statements takes 20 ms, which a run of some thirty sessions need not pay each time;
to attach a file takes 2 ms. Between sessions the file is as free as if each had started its own DuckDB.
"""

from pathlib import Path
from typing import Any, Literal

import duckdb

from health_assets.core.sql_text import quoted

CATALOG = "warehouse"


class SharedDuckDB:
    """One DuckDB for the sessions of one thread, one after another; a context that ends it."""

    def __init__(self) -> None:
        self._started: duckdb.DuckDBPyConnection | None = None
        self._is_attached = False

    def __enter__(self) -> "SharedDuckDB":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def attach(self, path: Path, mode: Literal["read", "write"], config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
        """A connection that works in the file; close it, then `detach`.

        Raises:
            duckdb.Error: the file cannot be opened; nothing is attached then.
            RuntimeError: a session is still open.
        """
        if self._is_attached:
            raise RuntimeError("a shared DuckDB serves one session at a time, and one is still open")
        try:
            connection = self._attached(path, mode, config)
        except BaseException:
            self.stop()
            raise
        self._is_attached = True
        return connection

    def _attached(
        self, path: Path, mode: Literal["read", "write"], config: dict[str, Any]
    ) -> duckdb.DuckDBPyConnection:
        if self._started is None:
            # without a file of its own it would spill into the working directory
            self._started = duckdb.connect(config={**config, "temp_directory": f"{path}.tmp"})
        access = "READ_ONLY" if mode == "read" else "READ_WRITE"
        self._started.execute(f"ATTACH {quoted(str(path))} AS {CATALOG} (TYPE duckdb, {access})")
        connection = self._started.cursor()
        connection.execute(f"USE {CATALOG}")
        return connection

    def detach(self) -> None:
        """Let go of the file.

        Raises:
            KeyboardInterrupt: the process was asked to end meanwhile.
        """
        if self._started is None:
            return
        try:
            self._started.execute(f"DETACH {CATALOG}")
        except duckdb.InterruptException as error:
            self.stop()
            raise KeyboardInterrupt from error  # by Ctrl-C; DuckDB drops what the signal's handler had raised
        except duckdb.Error:
            # what was committed is in the file's log and stays, though there was no room to move it into the file
            self.stop()
        except BaseException:
            self.stop()
            raise
        self._is_attached = False

    def stop(self) -> None:
        """End DuckDB; the next session starts another."""
        self._is_attached = False
        if self._started is not None:
            self._started.close()
            self._started = None
