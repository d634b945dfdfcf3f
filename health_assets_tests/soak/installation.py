"""A whole installation on a disk of its own: PostgreSQL or DuckDB, Dagster's code server, its daemon, and a writer of logs.

What belongs here: what runs where, with which settings, and how to ask it. What does not: what is done to it
(`disturbances`).
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import dagster as dg
import psutil
import psycopg
import yaml
from dagster._core.instance.ref import InstanceRef
from dagster._daemon.controller import all_daemons_live

from health_assets.cli.dagster_home import write_home
from health_assets.core.settings import Settings
from health_assets.warehouse.migrations import migrate
from health_assets_tests.soak.services import Manager, Service, command_of, python_module
from health_assets_tests.support import postgres_server
from health_assets_tests.support.ports import free_port
from health_assets_tests.support.projects import REPOSITORY, command_environment, command_line

DISK_MIB = 3072
READY_S = 180.0
JOURNAL_S = 60.0
SENSOR = "late_logs"
SPAWNED = "multiprocessing.spawn import spawn_main"
"""In the command line of a process that Dagster starts for a run."""
WAREHOUSE, DAGSTER, WRITE_AHEAD_LOG, ELSE = "warehouse", "Dagster's records", "write-ahead log", "else"
"""Parts of the disk."""
AGREES = "the tables agree with all"
"""What the sensor says once there is nothing left to do."""
POSTGRES_SETTINGS = {
    "max_wal_size": "128MB", "min_wal_size": "32MB", "max_connections": "100", "shared_buffers": "64MB",
    "log_min_messages": "panic",
}  # fmt: skip


@dataclass
class Installation:
    """What runs, where it keeps its data, and how to ask it.

    Args:
        folder: raw logs, and what services say; never full.
        disk: warehouse, Dagster's home and temporary files.
        is_limited: whether that is a disk of its own, which can be filled.
        environment: of every process.
        services: what is kept running, in the order of their start.
    """

    folder: Path
    disk: Path
    is_limited: bool
    environment: Mapping[str, str]
    services: dict[str, Service] = field(default_factory=dict)

    @property
    def raw(self) -> Path:
        """The raw root."""
        return self.folder / "raw"

    @property
    def journal(self) -> Path:
        """What the writer says it wrote."""
        return self.folder / "journal.json"

    @cached_property
    def settings(self) -> Settings:
        """The settings of its processes."""
        return Settings(raw=self.raw, targets=None, warehouse=self.environment["HEALTH_WAREHOUSE"])

    def command(self, *arguments: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
        """Run `health-assets` to its end."""
        return subprocess.run(
            command_line(*arguments), env=dict(self.environment), cwd=self.folder, capture_output=True, text=True,
            timeout=timeout_s, check=False,
        )  # fmt: skip

    def start_on_another_host(self, *arguments: str) -> subprocess.Popen:
        """Start `health-assets` where the host has another name; in a process group, to be killed whole."""
        with (self.folder / "second-host.log").open("ab") as log:
            return subprocess.Popen(
                ["unshare", "--uts", "sh", "-c", 'hostname second-host && exec "$@"', "sh", *command_line(*arguments)],
                env=dict(self.environment), cwd=self.folder, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    @contextmanager
    def dagster(self) -> Iterator[dg.DagsterInstance]:
        """Dagster's own records, as its page sees them."""
        with dg.DagsterInstance.from_ref(InstanceRef.from_dir(self.environment["DAGSTER_HOME"])) as instance:
            yield instance

    def runs(self, *statuses: dg.DagsterRunStatus) -> list[dg.DagsterRun]:
        """Its runs, or those of some states."""
        with self.dagster() as instance:
            return list(instance.get_runs(dg.RunsFilter(statuses=list(statuses))))

    def sensor_said(self, after: float) -> str:
        """What the newest tick of the sensor for late logs said, if it began after a time; else nothing."""
        with self.dagster() as instance:
            for state in instance.all_instigator_state():
                if state.name == SENSOR:
                    ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
                    return next((tick.skip_reason or "" for tick in ticks if tick.timestamp > after), "")
        return ""

    def run_processes(self) -> list[psutil.Process]:
        """The processes of runs that are under way, which the code server starts."""
        found = []
        for process in self.services["code-server"].below():
            with suppress(psutil.NoSuchProcess):
                if SPAWNED in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def used_mib(self) -> dict[str, float]:
        """The space that its data takes on the disk, in MiB: the warehouse, Dagster's records, PostgreSQL's log, all else.

        PostgreSQL's log is brought to a checkpoint first: how much is left to write says nothing about growth.
        """
        databases: dict[str, str] = {}
        if "postgres" in self.services:
            with psycopg.connect(self.environment["HEALTH_WAREHOUSE"], autocommit=True) as connection:
                connection.execute("CHECKPOINT")
                databases = dict(connection.execute("SELECT oid::text, datname FROM pg_database").fetchall())
        used = dict.fromkeys((WAREHOUSE, DAGSTER, WRITE_AHEAD_LOG, ELSE), 0.0)
        for path in self.disk.rglob("*"):
            with suppress(FileNotFoundError):  # a temporary file
                used[_part_of(path.relative_to(self.disk), databases)] += path.lstat().st_blocks * 512 / 2**20
        return used


def _part_of(path: Path, databases: Mapping[str, str]) -> str:
    """The part that a file on the disk belongs to; databases are folders that are named by their numbers."""
    if "pg_wal" in path.parts:
        return WRITE_AHEAD_LOG
    if path.parts[0].startswith("health.duckdb"):
        return WAREHOUSE
    if path.parts[0] == "dagster":
        return DAGSTER
    names = {databases.get(part) for part in path.parts[:-1]}
    return WAREHOUSE if "health" in names else DAGSTER if "dagster" in names else ELSE


@contextmanager
def installed(folder: Path, *, engine: str, lease_s: float, seed: int) -> Iterator[Installation]:
    """An installation with the logs of some hours materialized and all services running; it ends with the block."""
    with _disk(folder / "disk") as (disk, is_limited):
        environment = _environment(folder, disk, lease_s)
        made = Installation(folder, disk, is_limited, environment)
        made.raw.mkdir()
        with _kept(made.services):
            if engine == "postgres":
                made.services["postgres"], url = _postgres(folder, disk)
                environment |= _on_postgres(url, disk)
                os.environ["DAGSTER_PG_URL"] = environment["DAGSTER_PG_URL"]  # this process looks at the runs, too
            else:
                write_home(disk / "dagster")
            start_writer(made, seed)
            done = made.command("materialize")
            assert done.returncode == 0, done.stdout + done.stderr
            for service in _dagster_services(folder, environment):
                made.services[service.name] = service
                service.start()
            wait_until(lambda: _is_live(made), READY_S, "Dagster's daemon is not ready")
            yield made


def end_with_journal(installation: Installation, name: str, journal: Path) -> None:
    """Let a program that writes or sends end as it wants to, with its journal."""
    installation.services.pop(name).end()
    wait_until(journal.exists, JOURNAL_S, f"the {name} left no journal")


def wait_until(is_so: Callable[[], bool], timeout_s: float, otherwise: str, every_s: float = 0.5) -> None:
    """Wait for something.

    Raises:
        AssertionError: it did not become so in time.
    """
    end = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < end, f"{otherwise}, after {timeout_s:.0f} s"
        time.sleep(every_s)


def _is_live(made: Installation) -> bool:
    with made.dagster() as instance:
        return all_daemons_live(instance)


@contextmanager
def _kept(services: dict[str, Service]) -> Iterator[None]:
    manager = Manager(services)
    try:
        with manager:
            yield
    finally:
        os.environ.pop("DAGSTER_PG_URL", None)
        for service in reversed(list(services.values())):
            service.end(signal.SIGINT if service.name == "postgres" else signal.SIGTERM)


@contextmanager
def _disk(folder: Path) -> Iterator[tuple[Path, bool]]:
    """A disk that can become full, where this user may mount one; else a folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=755", "soak", folder]
    is_limited = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield folder, is_limited
    finally:
        if is_limited:
            subprocess.run(["umount", "--lazy", folder], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def _environment(folder: Path, disk: Path, lease_s: float) -> dict[str, str]:
    for name in ("tmp", "dagster"):
        (disk / name).mkdir()
    return command_environment() | {
        "HEALTH_RAW": str(folder / "raw"),
        "HEALTH_WAREHOUSE": str(disk / "health.duckdb"),
        "HEALTH_LEASE_S": str(lease_s),
        "HEALTH_SCHEDULES": "on",
        "DAGSTER_HOME": str(disk / "dagster"),
        "TMPDIR": str(disk / "tmp"),
    }


def _postgres(folder: Path, disk: Path) -> tuple[Service, str]:
    """A server with an empty database for the warehouse and one for Dagster, and the URL of a database on it."""
    data = disk / "postgres"
    data.mkdir()
    service, url = postgres_service(data, folder / "postgres.log")
    with psycopg.connect(url, autocommit=True) as connection:
        for name in ("health", "dagster"):
            connection.execute(f"CREATE DATABASE {name}")
    return service, url


def postgres_service(data: Path, log: Path) -> tuple[Service, str]:
    """A PostgreSQL server that can be stopped and started, and the URL of an empty database on it.

    Args:
        data: an empty folder for its data.
        log: file to which it writes what it says.
    """
    url = postgres_server.start_server(data, POSTGRES_SETTINGS)
    first = psutil.Process(int((data / "data" / "postmaster.pid").read_text().split()[0]))
    command = command_of(data / "data" / "postmaster.opts")
    first.send_signal(signal.SIGINT)
    first.wait(READY_S)
    user = postgres_server.NOBODY if os.geteuid() == 0 else None
    service = Service("postgres", command, {"PATH": os.environ["PATH"]}, log, user)
    start_postgres(service, url)
    return service, url


def start_postgres(service: Service, url: str) -> None:
    """Start such a server, and wait until it answers."""
    service.start()
    wait_until(lambda: _answers(url), READY_S, "PostgreSQL does not answer")


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def _on_postgres(url: str, disk: Path) -> dict[str, str]:
    """Where the warehouse and Dagster's records are, with the documented configuration."""
    server = url.rpartition("/")[0]
    migrate(f"{server}/health", 60)
    (disk / "dagster" / "dagster.yaml").write_bytes((REPOSITORY / "docs" / "dagster-postgres.yaml").read_bytes())
    dagster_url = f"{server}/dagster".replace("postgresql:", "postgresql+psycopg2:")
    return {"HEALTH_WAREHOUSE": f"{server}/health", "DAGSTER_PG_URL": dagster_url}


def start_writer(made: Installation, seed: int) -> None:
    """Start the program that writes the raw logs, and wait for those of the hours before."""
    command = python_module("health_assets_tests.soak.writer", made.raw, made.journal, "--seed", seed)
    environment = command_environment() | {"PYTHONPATH": str(REPOSITORY)}
    log = made.folder / "writer.log"
    made.services["writer"] = Service("writer", command, environment, log)
    made.services["writer"].start()
    wait_until(lambda: "history" in log.read_text(), READY_S, "the writer does not write")


def _dagster_services(folder: Path, environment: Mapping[str, str]) -> Iterator[Service]:
    """One code server, and the daemon that asks it, as the examples of deployment have them."""
    programs = Path(sys.executable).parent
    port = free_port()
    server = {"host": "127.0.0.1", "port": port, "location_name": "health_assets"}
    workspace = folder / "workspace.yaml"
    workspace.write_text(yaml.safe_dump({"load_from": [{"grpc_server": server}]}), encoding="utf-8")
    code = ["code-server", "start", "--module-name", "health_assets.definitions", "--host", "127.0.0.1", "--port"]
    yield Service("code-server", [str(programs / "dagster"), *code, str(port)], environment, folder / "code-server.log")
    daemon = [str(programs / "dagster-daemon"), "run", "--workspace", str(workspace)]
    yield Service("daemon", daemon, environment, folder / "daemon.log")
