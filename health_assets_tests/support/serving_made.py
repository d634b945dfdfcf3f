"""Warehouses filled by hand for the health endpoint, and the real server on loopback in a thread of this process."""

import http.client
import json
import math
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pytest
import uvicorn
import yaml

from health_assets.apps.serving import reader_process, refresher, sessions
from health_assets.apps.serving.client import ReaderError
from health_assets.apps.serving.history import updater
from health_assets.apps.serving.process_loop import reply_to
from health_assets.apps.serving.server import configured, listening
from health_assets.core.hours import HourRange
from health_assets.core.settings import Settings
from health_assets.schema.catalog import describe
from health_assets.warehouse.engines.duckdb import store
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.projects import begin_with_empty_tables

HOUR = START + timedelta(hours=13)
PATIENCE_S = 120.0
START_DUCKDB = store._start
ARROW = {
    "timestamp('UTC')": (pa.timestamp("us", "UTC"), START),
    "float64": (pa.float64(), 0.5),
    "int64": (pa.int64(), 7),
    "boolean": (pa.bool_(), False),
    "string": (pa.string(), "text"),
    "array<string>": (pa.list_(pa.string()), []),
    "array<int16>": (pa.list_(pa.int16()), []),
    "json": (pa.string(), "[]"),
}

Row = dict[str, Any]


def fill(warehouse: Path | str, hour: datetime = HOUR, **tables: Sequence[Row]) -> None:
    """Replace an hour of these tables; a column that a row does not name is null, or where it may not be, something."""
    if isinstance(warehouse, Path):
        begin_with_empty_tables(warehouse)
    with Warehouse(str(warehouse)).write() as session:
        for table, rows in tables.items():
            hours = HourRange.of(hour)
            session.delete_hours(table, hours)
            columns = describe(table)
            defaults = {name: None if nullable else ARROW[kind][1] for name, kind, nullable, _ in columns}
            schema = pa.schema([(name, ARROW[kind][0]) for name, kind, _, _ in columns])
            made = [{**defaults, "hour": hour, **row} for row in rows]
            session.insert_arrow(table, pa.Table.from_pylist(made, schema))
            PartitionStates(session).note(table, hours, [hour])


def state(agent_id: str, status: str = "healthy", **columns: Any) -> Row:
    """A row of `agent_health_state` with a day's window."""
    return {
        "agent_id": agent_id,
        "status": status,
        "window_start": HOUR - timedelta(hours=23),
        "window_end": HOUR + timedelta(hours=1),
        "measurement_window_seconds": 86400,
        "calibration_trend": "stable",
        **columns,
    }


def score(agent_id: str, health_score: float | None = 90.0, **columns: Any) -> Row:
    """A row of `agent_health`."""
    named = "inactive" if health_score is None else "healthy" if health_score >= 85 else "unhealthy"
    at_stake = None if health_score is None else 100.0
    known = {
        "points_at_stake": at_stake,
        "is_provisional": False,
        "n": 7,
        "n_full": 7,
        "untimed": 0,
        "long_running": 0,
        "sla_checked": 0,
        "triggers": 0,
        "formula_version": "1.0",
    }
    return {"agent_id": agent_id, "health_score": health_score, "state": named, **known, **columns}


def fill_agents(warehouse: Path, *agents: tuple[Row, Row], hour: datetime = HOUR) -> None:
    """Replace the agents of an hour by (state, score) rows."""
    states, scores = ([pair[place] for pair in agents] for place in (0, 1))
    fill(warehouse, hour, agent_health_state=states, agent_health=scores)


def write_targets(path: Path, targets: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(targets), encoding="utf-8")
    return path


# -- the server --


class ReaderInThisProcess:
    """A reader without a process of its own, whose start costs a second; what it reads and answers is the same."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def ask(self, request: dict[str, Any], _: float) -> Any:
        reply = json.loads(json.dumps(reply_to(self._settings, request, reader_process.read)))
        if "fault" in reply:
            raise ReaderError(reply["fault"], reply["sentence"])
        return reply["ok"]

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        pass

    def end_if_idle(self) -> None:
        pass


def start_as_another_process(path: Path, mode: Literal["read", "write"], config: Row) -> duckdb.DuckDBPyConnection:
    """Open a warehouse as a process of its own would, which finds it locked where this process has it open otherwise."""
    try:
        return START_DUCKDB(path, mode, config)
    except duckdb.ConnectionException as error:
        if "different configuration" not in str(error):
            raise
        raise duckdb.IOException(f"Conflicting lock is held in this process (PID {os.getpid()})") from error


@contextmanager
def readers_in_this_process() -> Iterator[None]:
    """For tests of what is answered rather than of processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_start", start_as_another_process)
        patch.setattr(refresher, "ReusedReader", ReaderInThisProcess)
        patch.setattr(sessions, "Reader", ReaderInThisProcess)
        patch.setattr(updater, "ReusedReader", ReaderInThisProcess)
        yield


@dataclass
class Reply:
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    """A server that runs."""

    port: int
    faults: list[str]
    tls: ssl.SSLContext | None = None

    def ask(
        self,
        path: str,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        source: str = "127.0.0.1",
        body: bytes | None = None,
    ) -> Reply:
        connection = (
            http.client.HTTPSConnection("localhost", self.port, timeout=PATIENCE_S, context=self.tls)
            if self.tls
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S, source_address=(source, 0))
        )
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            named = {name.lower(): value for name, value in reply.getheaders()}
            return Reply(reply.status, named, reply.read())
        finally:
            connection.close()

    def send(self, *pieces: bytes, pause_s: float = 0.0) -> bytes:
        """Send bytes as they are, and take what comes until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            received = b""
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have refused and gone before all is sent
                for piece in pieces:
                    connection.sendall(piece)
                    time.sleep(pause_s)
            with suppress(ConnectionResetError):
                while piece := connection.recv(65536):
                    received += piece
            return received

    @property
    def status(self) -> dict[str, Any]:
        return self.ask("/status").json

    def wait_for_pages(self, headers: dict[str, str] | None = None) -> None:
        """Wait until the pages show an hour."""
        deadline = time.monotonic() + PATIENCE_S
        while (reply := self.ask("/", headers={"Accept": "text/html"} | (headers or {}))).status == 503:
            assert time.monotonic() < deadline, reply
            time.sleep(0.02)

    def wait_for(self, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Wait until /status fulfils a condition."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition(status := self.status):
            assert time.monotonic() < deadline, status
            time.sleep(0.02)
        return status


@contextmanager
def served(
    warehouse: Path | str,
    *,
    targets: Path | None = None,
    is_ready: bool = True,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    **settings: Any,
) -> Iterator[Served]:
    """The real server; settings go past their limits, so that a test need not wait a minute.

    Data never gets outdated here, unless a test says when.
    """
    chosen = Settings(warehouse=str(warehouse), targets=targets).model_copy(
        update={"serve_refresh_s": 3600.0, "pages": False, "serve_max_data_age_s": math.inf, **settings}
    )
    faults: list[str] = []
    listener = listening("127.0.0.1", 0)
    server = uvicorn.Server(
        configured(chosen, tls_cert, tls_key, on_fault=faults.append, host="127.0.0.1", is_local=True)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    patch = pytest.MonkeyPatch()
    patch.setattr(sessions, "TIMEOUT_S", PATIENCE_S)  # a reader takes long to start where much else runs
    try:
        tls = ssl.create_default_context(cafile=str(tls_cert)) if tls_cert else None
        running = Served(listener.getsockname()[1], faults, tls)
        if is_ready:
            running.wait_for(lambda status: status["is_ready"])
        yield running
    finally:
        server.should_exit = True
        thread.join()
        patch.undo()
