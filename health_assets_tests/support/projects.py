"""A project of its own for one test: a raw root, a targets file and a warehouse in a folder, and ways to look at them.

`Project.materialize` lets the engine make assets without their checks. Checks, commands and Dagster are tested elsewhere.
"""

import atexit
import contextlib
import gzip
import math
import multiprocessing
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, lru_cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

import dagster as dg
import pytest
import yaml
from dagster._core.definitions.sensor_definition import SensorExecutionData

from health_assets.core.errors import NoWarehouseError, WarehouseBusyError
from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import load_targets
from health_assets.logs.files import list_files
from health_assets.logs.formats.format_settings import FormatSettings
from health_assets.logs.limits import Limits
from health_assets.pipeline.derived import Derived
from health_assets.pipeline.engine import run
from health_assets.pipeline.events import Materialized, Metadata
from health_assets.pipeline.fingerprints import RECORDS
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.ingestion import ingest
from health_assets.pipeline.log_ingestion import compared_logs
from health_assets.pipeline.plan import Plan
from health_assets.pipeline.resource import Pipeline
from health_assets.schema import catalog
from health_assets.schema.catalog import ALL_TABLES, columns_of
from health_assets.systems.declared_assets import DERIVED, SYSTEMS
from health_assets.systems.graph import declared_graph
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB
from health_assets.warehouse.file_slices import tables_with_rows_of
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support import postgres_server

REPOSITORY = Path(__file__).resolve().parents[2]
REAL_LOGS = REPOSITORY.parent / "shared" / "data"
needs_real_logs = pytest.mark.skipif(not REAL_LOGS.is_dir(), reason="the real logs are not part of the project")
TABLE_OF_RECORD = {  # the contract's: where each kind of line goes; spans first
    "span": "spans",
    "execution": "executions",
    "cancellation": "cancellations",
    "trigger": "trigger_events",
    "model_call": "model_calls",
    "tool_call": "tool_calls",
    "signals": "signals",
    "evaluation": "evaluations",
    "judgement": "judgements",
    "agent_update": "agent_updates",
    "rejected": "rejected_records",
}
RECORD_TABLES = tuple(TABLE_OF_RECORD.values())
RESULT_TABLES = (*RECORD_TABLES, *DERIVED)
"""Every table whose rows follow from the logs and the targets alone."""
OF_A_WEEK = {"drift"}
"""Those without rows where there is less than a week of logs."""
FLEET = ("ingest", "health_components", "agent_health", "system_health")
"""The steps of the Agent Health Model: they stand for those of all systems where the test is not about one of the others."""
ONE_SYSTEM_BY_DAY = [
    pytest.param(FLEET, id="one system"),
    pytest.param(None, id="all systems", marks=pytest.mark.nightly),
]
"""Values of `only` for what is the same to every system."""
SURVEY_TABLES = ("agent_probes", "survey_summary")
"""Tables of what was observed."""

SALT = "pepper"
"""Salt of the digests of contents, the same for all warehouses of the tests, since these are compared."""

Row = dict[str, Any]


@dataclass
class Project:
    """Where a test's logs, targets and tables are, and how long its windows last.

    With the engine `postgres` the tables are in a database of their own, which `url` names where it is there already; with
    `spark` in a lake of their own, which the cluster at `url` computes, with a DuckDB file or another URL as `ledger`.
    Where `now` is given it is that time, whatever clocks say.
    """

    folder: Path
    targets: dict[str, Any] | None = None
    window_hours: int = 24
    lookback_hours: int = 168
    lock_timeout_s: float = 60.0
    evaluation_window_hours: int | None = None
    engine: str = "duckdb"
    url: str = ""
    ledger: str = ""
    now: datetime | None = None
    raw: Path = field(init=False)
    warehouse_path: Path = field(init=False)

    def __post_init__(self) -> None:
        self.raw = self.folder / "raw"
        self.raw.mkdir(parents=True, exist_ok=True)
        self.warehouse_path = self.folder / "health.duckdb"
        if self.engine == "postgres":
            self.url = self.url or postgres_server.fresh_warehouse()
        if self.targets is not None:
            self.write_targets(self.targets)

    # -- what goes in --

    def write_targets(self, targets: dict[str, Any]) -> None:
        self.targets = targets
        self.targets_path.write_text(yaml.safe_dump(targets), encoding="utf-8")

    @property
    def targets_path(self) -> Path:
        return self.folder / "targets.yaml"

    def write_log(self, name: str, lines: Iterable[str | bytes], *, modified: datetime | None = None) -> Path:
        """Write a raw log, gzipped where its name says so; a byte string stands for itself."""
        content = b"".join(line + b"\n" if isinstance(line, bytes) else line.encode() + b"\n" for line in lines)
        return self.write_bytes(name, content, modified=modified)

    def write_bytes(self, name: str, content: bytes, *, modified: datetime | None = None) -> Path:
        packed = gzip.compress(content, mtime=0) if name.endswith(".gz") else content
        return self._write(name, packed, modified)

    def write_files(self, files: Mapping[str, bytes], *, modified: datetime | None = None) -> None:
        """Write raw logs whose content is compressed already where their names say so."""
        for name, content in files.items():
            self._write(name, content, modified)

    def _write(self, name: str, content: bytes, modified: datetime | None) -> Path:
        path = self.raw / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if modified is not None:
            os.utime(path, (modified.timestamp(), modified.timestamp()))
        return path

    def copy_real_logs(self) -> None:
        """Make the real executions its only raw logs."""
        for path in REAL_LOGS.glob("*.jsonl"):
            shutil.copy(path, self.raw)

    # -- what is done with it --

    @property
    def settings(self) -> Settings:
        own = {
            "raw": self.raw,
            "targets": None if self.targets is None else self.targets_path,
            "warehouse": self.warehouse_url,
            "window_hours": self.window_hours,
            "lookback_hours": self.lookback_hours,
            "lock_timeout_s": self.lock_timeout_s,
            "evaluation_window_hours": self.evaluation_window_hours,
        }
        if self.engine == "spark":
            own |= {"lake": str(self.folder / "lake"), "ledger": self.ledger or str(self.warehouse_path)}
        others = {name: value for name, value in os.environ.items() if name.upper().startswith("HEALTH_")}
        return _settings(tuple(own.items()), tuple(others.items()), Path.cwd())

    @property
    def pipeline(self) -> Pipeline:
        now = self.now
        return Pipeline(settings=self.settings) if now is None else Pipeline(settings=self.settings, clock=lambda: now)

    @property
    def warehouse(self) -> Warehouse:
        return self.pipeline.open()

    @property
    def warehouse_url(self) -> str:
        return self.url or str(self.warehouse_path)

    @property
    def has_warehouse(self) -> bool:
        return self.warehouse.exists

    def materialize(
        self, hours: HourRange | HourGroups, *, only_stale: bool = False, only: Sequence[str] | None = None
    ) -> dict[str, Metadata]:
        """Run the steps for these hours, without checks; returns each asset's metadata.

        Args:
            hours: at least one hour.
            only_stale: as the late-log sensor runs them.
            only: names of the steps to run (`ingest` makes all record tables); all by default.
        """
        self._begin_with_empty_tables()
        with shared_duckdb(self.settings) as duckdb:  # as a run in one process has it
            pipeline = replace(self.pipeline, shared_duckdb=duckdb)
            return run_steps(pipeline, hours, only_stale=only_stale, only=only)

    def copied(self, folder: Path) -> "Project":
        """A copy of all that there is, in a folder that must not exist, which a test may change."""
        shutil.copytree(self.folder, folder, symlinks=True)
        own = {"url": self.url} if self.engine == "postgres" else {"ledger": self.ledger}
        copies = {name: postgres_server.copy_of(url) for name, url in own.items() if url}
        return replace(self, folder=folder, **copies)

    def ingest(
        self,
        hours: HourRange,
        *,
        limits: Limits | None = None,
        horizon: datetime | None = None,
        full_refresh: bool = False,
    ) -> IngestReport:
        """Bring the record tables up to date, and nothing else."""
        self._begin_with_empty_tables()
        with self.session("write") as session:
            files = list_files(self.raw, format_settings=FormatSettings.of(self.settings))
            targets = load_targets(self.settings.targets)
            limits = limits or self.pipeline.limits
            return ingest(
                session, files, hours, targets, self.lookback_hours,
                limits=limits, horizon=horizon, full_refresh=full_refresh, salt=self.pipeline.salt,
            )  # fmt: skip

    def _begin_with_empty_tables(self) -> None:
        if self.engine == "duckdb":
            begin_with_empty_tables(self.warehouse_path)

    # -- what came of it --

    def not_loaded(self) -> set[str]:
        """The files that a look at the logs finds to load."""
        matched = compared_logs(self.pipeline)[0].matched
        return {file.source_file for file in [*matched.new, *matched.changed]}

    def query(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple]:
        with self.session("read") as session:
            return session.query(sql, parameters)

    def change(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """What a person with a SQL prompt does to the tables."""
        with self.session("write") as session:
            session.query(sql, parameters)

    @contextlib.contextmanager
    def session(self, mode: Literal["read", "write"]) -> Iterator[Session]:
        """A session of the warehouse, in a DuckDB that is started already."""
        with shared_duckdb(self.settings) as duckdb:
            warehouse = replace(self.pipeline, shared_duckdb=duckdb).open()
            with warehouse.read() if mode == "read" else warehouse.write() as session:
                yield session

    def rows(self, table: str, hours: HourRange | None = None) -> list[Row]:
        """The rows of a table, of these hours or all, in an order of their own."""
        return self.tables(hours, [table])[table]

    def tables(self, hours: HourRange | None = None, names: Sequence[str] = RESULT_TABLES) -> dict[str, list[Row]]:
        """The rows of several tables."""
        with self.session("read") as session:
            return rows_of_tables(session, names, hours)

    def built_hours(self, asset: str) -> set[datetime]:
        """Hours of an asset that are noted as materialized."""
        return {row[0] for row in self.query("SELECT hour FROM partition_states WHERE asset = ?", [asset])}

    def clean_rebuild(self, hours: HourRange, name: str = "clean", *, only: Sequence[str] | None = None) -> "Project":
        """The same logs and targets materialized in one go into an empty warehouse; all steps, or these."""
        twin = Project(
            self.folder / name, None, self.window_hours, self.lookback_hours,
            evaluation_window_hours=self.evaluation_window_hours, engine=self.engine, now=self.now,
        )  # fmt: skip
        twin.raw.rmdir()
        twin.raw = self.raw
        if self.targets is not None:
            twin.write_targets(self.targets)
        twin.materialize(hours, only=only)
        return twin


def rows_of_tables(session: Session, names: Sequence[str], hours: HourRange | None = None) -> dict[str, list[Row]]:
    """The rows of several tables, of these hours or all, each in an order of its own."""
    tables = {}
    for name in names:
        columns = columns_of(name)
        sql = f"SELECT {', '.join(columns)} FROM {name}"
        where = " WHERE hour >= ? AND hour < ?" if hours else ""
        rows = session.query(sql + where, [hours.start, hours.end] if hours else ())
        found = [dict(zip(columns, row, strict=True)) for row in rows]
        tables[name] = sorted(found, key=lambda row: list(map(str, row.values())))
    return tables


class _IdleDuckDBs(threading.local):
    """The DuckDBs of a thread that no session uses, by memory limit."""

    def __init__(self) -> None:
        self.by_memory_limit: dict[str, SharedDuckDB] = {}


_IDLE = _IdleDuckDBs()


@contextlib.contextmanager
def shared_duckdb(settings: Settings) -> Iterator[SharedDuckDB]:
    """A DuckDB that sessions of this thread used before, since to start one takes 20 ms; a new one within the block."""
    idle = _IDLE.by_memory_limit
    duckdb = idle.pop(settings.memory_limit, None) or SharedDuckDB()
    try:
        yield duckdb
    finally:
        if idle.setdefault(settings.memory_limit, duckdb) is not duckdb:
            duckdb.stop()


class _RollbackError(Exception):
    """Ends a transaction of which nothing is to stay."""


@contextlib.contextmanager
def rolled_back(project: Project, *statements: str) -> Iterator[Session]:
    """A session that sees the tables as they are after these statements; afterwards they are as before."""
    with contextlib.suppress(_RollbackError), project.session("write") as session:
        for statement in statements:
            session.query(statement)
        yield session
        raise _RollbackError


def begin_with_empty_tables(path: Path) -> None:
    """Copy a warehouse without rows where there is none: declaring its columns takes a third of loading a line."""
    if path.parent.is_dir() and not path.exists():
        shutil.copy(_empty_warehouse(catalog.SCHEMA_VERSION, tuple(ALL_TABLES)), path)


@cache
def _empty_warehouse(version: int, tables: tuple[str, ...]) -> Path:
    del version, tables
    path = lasting_folder() / "empty.duckdb"
    with Warehouse(str(path)).write():
        pass
    return path


@lru_cache(128)
def _settings(own: tuple[tuple[str, Any], ...], others: tuple[tuple[str, str], ...], folder: Path) -> Settings:
    """Settings with these values; the others come from the environment, which is read anew only where it is another."""
    del others, folder
    return Settings(**dict(own))


def run_steps(
    pipeline: Pipeline, hours: HourRange | HourGroups, *, only_stale: bool = False, only: Sequence[str] | None = None
) -> dict[str, Metadata]:
    """Do as `Project.materialize`, with any pipeline."""
    graph = declared_graph()
    assets = {*RECORDS, *graph.derived} if only is None else {*only}
    if "ingest" in assets:
        assets |= {*RECORDS}
    plan = Plan(hours=HourGroups(hours.ranges), assets=assets, only_stale=only_stale)
    return {event.asset: event.metadata for event in run(pipeline, graph, plan) if isinstance(event, Materialized)}


def tick(
    sensor: dg.SensorDefinition, pipeline: Pipeline, instance: dg.DagsterInstance | None = None
) -> SensorExecutionData:
    """A sensor's answer when Dagster's daemon looks at it; with an instance of its own where none is given."""
    with (
        declared_as_made(pipeline),
        contextlib.nullcontext(instance) if instance else dg.DagsterInstance.ephemeral() as own,
        dg.build_sensor_context(instance=own, resources={"pipeline": pipeline}) as context,
    ):
        return sensor.evaluate_tick(context)


@contextlib.contextmanager
def declared_as_made(pipeline: Pipeline) -> Iterator[None]:
    """Declare only the assets of which the warehouse has any hour: else all that a test leaves out would be due."""
    try:
        with pipeline.waiting_at_most(1.0).read() as session:
            made = PartitionStates(session).assets()
    except (NoWarehouseError, WarehouseBusyError):
        made = {*DERIVED}
    some = {system: tuple(asset for asset in assets if asset.name in made) for system, assets in SYSTEMS.items()}
    with _declared({system: assets for system, assets in some.items() if assets}):
        yield


@contextlib.contextmanager
def declared_systems(*names: str) -> Iterator[None]:
    """Declare these systems alone: for tests of what makes all systems, but is about no single one."""
    with _declared({name: SYSTEMS[name] for name in names}):
        yield


@contextlib.contextmanager
def _declared(some: Mapping[str, tuple[Derived, ...]]) -> Iterator[None]:
    systems, derived = dict(SYSTEMS), dict(DERIVED)
    try:
        _declare(some)
        yield
    finally:
        _declare(systems)
        DERIVED.update(derived)


def _declare(systems: Mapping[str, tuple[Derived, ...]]) -> None:
    for declared, new in (
        (SYSTEMS, systems), (DERIVED, {asset.name: asset for assets in systems.values() for asset in assets}),
    ):  # fmt: skip
        declared.clear()
        declared.update(new)


def lasting_folder() -> Path:
    """A folder for what many tests copy; it is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="health-assets-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


ENGINES = ("duckdb", "postgres")
DUCKDB_BY_DAY = ["duckdb", pytest.param("postgres", marks=pytest.mark.nightly)]
"""For tests whose statements `test_postgres_equality` runs on PostgreSQL by day."""


def hours_from(start: datetime, count: int) -> HourRange:
    return HourRange(start, start + count * HOUR)


UP_TO_ROUNDING = {"system_health": "health_score"}
"""A mean of floats in no certain order; `test_the_score_of_the_fleet_does_not_depend_on_the_order_of_its_agents` is about it."""


def rounded(table: str, rows: list[Row]) -> list[Row]:
    """The rows, with the column of `UP_TO_ROUNDING` to 9 digits."""
    column = UP_TO_ROUNDING.get(table)
    return [{**row, column: round(row[column], 9)} if column and row[column] is not None else row for row in rows]


def assert_same_tables(found: dict[str, list[Row]], expected: dict[str, list[Row]]) -> None:
    """Compare tables row by row, so that a failure names the first row and column that differ."""
    for table, expected_rows in expected.items():
        left, right = ([repr(row) for row in rounded(table, rows)] for rows in (found[table], expected_rows))
        missing, spare = sorted(set(right) - set(left)), sorted(set(left) - set(right))
        assert not missing and not spare, f"{table}: missing {missing[:3]}, not expected {spare[:3]}"
        assert len(left) == len(right), f"{table}: rows stand there more than once"


def assert_tables_equal_to_9_digits(found: dict[str, list[Row]], expected: dict[str, list[Row]]) -> None:
    """Compare tables of two engines: numbers to 1e-9, and all else exactly."""
    for table, expected_rows in expected.items():
        in_order = [sorted(rows, key=_without_numbers) for rows in (found[table], expected_rows)]
        assert len(in_order[0]) == len(in_order[1]), f"{table}: {len(in_order[0])} rows, not {len(in_order[1])}"
        for left, right in zip(*in_order, strict=True):
            for column, value in right.items():
                is_number = isinstance(value, float) and isinstance(left[column], float)
                is_same = math.isclose(left[column], value, rel_tol=1e-9, abs_tol=1e-9) if is_number else None
                assert left[column] == value or is_same, f"{table}.{column}: {left[column]} not {value} in {right}"


def _without_numbers(row: Row) -> list[str]:
    return [str(value) for value in row.values() if not isinstance(value, float)]


def assert_lines_are_conserved(project: Project) -> None:
    """Every line that is not blank is a row of exactly one record table, or set aside there as superseded."""
    with project.warehouse.read() as session:
        for record_type, table in TABLE_OF_RECORD.items():
            kept = session.query(
                "SELECT coalesce(sum(lines - lost), 0) FROM raw_logs WHERE is_loaded AND record_type = ?",
                [record_type],
            )
            lines = "coalesce(CAST(sum(lines) AS BIGINT), 0)" if record_type == "rejected" else "count(*)"
            rows = [session.query(f"SELECT {lines} FROM {name}")[0][0] for name in tables_with_rows_of(table)]
            assert kept == [(sum(rows),)], f"lines and rows of {table} differ"


def command(
    *arguments: str, environment: dict[str, str] | None = None, folder: Path | None = None, timeout_s: float = 900
) -> subprocess.CompletedProcess[str]:
    """Run `health-assets` as a user does, in a process and a folder of its own."""
    return subprocess.run(
        command_line(*arguments),
        env=command_environment() | (environment or {}),
        cwd=folder or REPOSITORY.parent,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def forked_command(
    *arguments: str, environment: dict[str, str] | None = None, folder: Path | None = None, timeout_s: float = 900
) -> subprocess.CompletedProcess[str]:
    """As `command`, but forked from a process that has done the imports and nothing else, which take seconds."""
    with tempfile.TemporaryDirectory() as said:
        outputs = [f"{said}/stdout", f"{said}/stderr"]
        process = start_forked_command(arguments, environment or {}, folder or REPOSITORY.parent, outputs)
        process.join(timeout_s)
        if process.is_alive():
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(arguments, timeout_s)
        stdout, stderr = (Path(path).read_text(encoding="utf-8") for path in outputs)
    return subprocess.CompletedProcess(arguments, process.exitcode, stdout, stderr)


def start_forked_command(
    arguments: Sequence[str],
    environment: dict[str, str],
    folder: Path,
    outputs: Sequence[str] = (os.devnull, os.devnull),
) -> BaseProcess:
    """Begin what `forked_command` waits for; stdout and stderr go to two files."""
    return in_a_process(run_as_a_command, arguments, command_environment() | environment, str(folder), outputs)


def run_as_a_command(
    arguments: Sequence[str], environment: dict[str, str], folder: str, outputs: Sequence[str]
) -> None:
    """Be the command, in a process that was forked for it."""
    for number, path in enumerate(outputs, 1):
        with Path(path).open("wb") as output:
            os.dup2(output.fileno(), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    tempfile.tempdir = None  # which the environment names
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # which what is imported before may handle
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which whoever starts tests in the background ignores
    sys.argv = ["health-assets", *arguments]
    runpy.run_module("health_assets", run_name="__main__", alter_sys=True)


def in_a_process(work: Callable[..., None], *arguments: object) -> BaseProcess:
    """Begin something in a process of its own that has the imports done already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["health_assets_tests.support.projects", "health_assets_tests.support.preloaded"])
    process = context.Process(target=work, args=arguments)
    process.start()
    return process


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "health_assets", *arguments]


def command_environment() -> dict[str, str]:
    """The environment without settings that a developer may have, wide enough not to fold sentences."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEALTH_", "DAGSTER_"))}
    return kept | {
        "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb", "HEALTH_DIGEST_SALT": SALT, "HEALTH_PRICES": "off",
        "HEALTH_PUBLISHED": "off",
    }  # fmt: skip


def materialize_arguments(project: Project, hours: HourRange, system: str | None = None) -> list[str]:
    """Words of the command line that materialize all systems, or one of them: a fraction of the time."""
    arguments = ["materialize", "--from", f"{hours.start:%Y-%m-%dT%H}", "--to", f"{hours.end:%Y-%m-%dT%H}"]
    arguments += ["--raw", str(project.raw), "--warehouse", project.warehouse_url]
    arguments += [] if system is None else ["--system", system]
    return arguments if project.targets is None else [*arguments, "--targets", str(project.targets_path)]


def later(moment: datetime, **by: float) -> datetime:
    return moment + timedelta(**by)
