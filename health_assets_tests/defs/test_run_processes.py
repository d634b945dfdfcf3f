"""Runs that a real code server starts: forked from a process with their imports done, and what outlives what."""

import inspect
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster._cli.job import _create_run
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.dagster_run import FINISHED_STATUSES
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster._grpc.client import DagsterGrpcClient
from dagster._grpc.server import DagsterApiServer

from health_assets.cli.dagster_home import write_home
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.defs.build import JOB
from health_assets.defs.partitions import hours_tags
from health_assets.defs.run_processes import IMPORTS
from health_assets.defs.turns.lease_store import LeaseStore
from health_assets.defs.turns.leases import Claim
from health_assets.defs.turns.run_owners import end_runs_of_the_dead
from health_assets.defs.turns.turns import Turn
from health_assets_tests.support.dagster_world import World
from health_assets_tests.support.holders import settings
from health_assets_tests.support.projects import command_environment

READY_S = 180.0
HOUR_AGO = floor_hour(datetime.now(UTC)) - HOUR
LOOKS_OF_THE_SERVER_S = 4.0
"""Dagster looks every second whether its runs are alive."""


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def wait_until(holds: Callable[[], bool], seconds: float = READY_S) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


@dataclass
class Server:
    """A code server of the real definitions, and the instance of its runs."""

    process: psutil.Process
    port: int
    instance: dg.DagsterInstance
    folder: Path

    @property
    def fork_servers(self) -> list[psutil.Process]:
        family = [process for process in self.process.children(recursive=True) if not gone(process)]
        of_pool = [process for process in family if "forkserver" in " ".join(process.cmdline())]
        return [process for process in of_pool if process.ppid() not in {other.pid for other in of_pool}]

    @property
    def fork_server(self) -> psutil.Process:
        wait_until(lambda: len(self.fork_servers) == 1)
        return self.fork_servers[0]

    @contextmanager
    def workspace(self) -> Iterator[WorkspaceProcessContext]:
        target = GrpcServerTarget("127.0.0.1", self.port, None, "health_assets")
        with WorkspaceProcessContext(self.instance, target) as made:
            yield made

    def launch(self) -> tuple[str, psutil.Process]:
        """A run of an hour with its process."""
        with self.workspace() as made:
            workspace = made.create_request_context()
            location = workspace.get_code_location("health_assets")
            [repository] = location.get_repositories().values()
            run = _create_run(
                self.instance,
                location,
                repository,
                repository.get_full_job(JOB),
                {},
                hours_tags(HourRange.of(HOUR_AGO)),
                None,
                None,
            )
            self.instance.launch_run(run.run_id, workspace)
        [process] = self.fork_server.children()
        return run.run_id, process

    @property
    def claims(self) -> tuple[Claim, ...]:
        return LeaseStore(self.instance.run_storage).read().claims

    def is_finished(self, run_id: str) -> bool:
        return self.status(run_id) in FINISHED_STATUSES

    def status(self, run_id: str) -> dg.DagsterRunStatus:
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return run.status


@contextmanager
def code_server(folder: Path, environment: Mapping[str, str]) -> Iterator[tuple[psutil.Process, int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dagster", "code-server", "start", "--module-name", "health_assets.definitions"]
    command += ["--port", str(port), "--location-name", "health_assets", "--inject-env-vars-from-instance"]
    with (folder / "log").open("wb") as log:
        started = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    process = psutil.Process(started.pid)
    try:
        wait_until(lambda: started.poll() is None and DagsterGrpcClient(port).health_check_query() == "SERVING")
        yield process, port
    finally:
        for child in (family := [process, *process.children(recursive=True)]):
            child.kill()
        psutil.wait_procs(family)
        started.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    world = World.at(folder)
    world.write_hours(HourRange.of(HOUR_AGO))
    home = folder / "dagster"
    write_home(home)
    environment = command_environment() | {
        "DAGSTER_HOME": str(home), "HEALTH_RAW": str(world.settings.raw), "HEALTH_WAREHOUSE": world.settings.warehouse,
    }  # fmt: skip
    ref = InstanceRef.from_dir(str(home))
    with dg.DagsterInstance.from_ref(ref) as instance, code_server(folder, environment) as (process, port):
        yield Server(process, port, instance, folder)


def test_a_run_is_forked_with_its_imports_done_and_outlives_the_process_that_it_was_forked_from(server: Server) -> None:
    fork_server = server.fork_server
    assert IMPORTS in " ".join(fork_server.cmdline()), "it is there before there is a run"
    with Turn(server.instance, settings(), "own", "a test") as turn:
        turn.take()
        run_id, process = server.launch()
        assert process.ppid() == fork_server.pid
        assert any("pandas/_libs" in part.path for part in fork_server.memory_maps()), "which has imported"
        fork_server.kill()
        wait_until(lambda: gone(fork_server))
        time.sleep(LOOKS_OF_THE_SERVER_S)
        assert process.is_running()
        assert server.status(run_id) == dg.DagsterRunStatus.STARTED
    wait_until(lambda: server.is_finished(run_id))
    assert server.status(run_id) == dg.DagsterRunStatus.SUCCESS
    wait_until(lambda: gone(process))
    time.sleep(LOOKS_OF_THE_SERVER_S)
    assert server.status(run_id) == dg.DagsterRunStatus.SUCCESS


def test_a_run_that_is_killed_has_failed_and_holds_no_turn(server: Server) -> None:
    before = server.fork_servers
    with Turn(server.instance, settings(), "own", "a test") as turn:
        turn.take()
        run_id, process = server.launch()
        assert before in ([], [server.fork_server]), "one that was killed is followed by another"
        wait_until(lambda: run_id in [claim.run_id for claim in server.claims])
        process.kill()
        wait_until(lambda: server.is_finished(run_id))
        assert server.status(run_id) == dg.DagsterRunStatus.FAILURE
    end_runs_of_the_dead(server.instance)
    assert server.claims == (), "its process is known to be gone"


def test_after_a_reload_runs_are_forked_from_another_process_with_the_environment_of_now(server: Server) -> None:
    before = server.fork_server
    (server.folder / ".env").write_text("HEALTH_LOOKBACK_HOURS=99\n", encoding="utf-8")
    DagsterGrpcClient(server.port).reload_code(timeout=int(READY_S))
    wait_until(lambda: gone(before))
    with Turn(server.instance, settings(), "own", "a test") as turn:
        turn.take()
        run_id, process = server.launch()
        assert server.fork_server != before
        assert server.fork_server.environ()["HEALTH_LOOKBACK_HOURS"] == "99"
        assert process.ppid() == server.fork_server.pid
        wait_until(lambda: run_id in [claim.run_id for claim in server.claims])
        server.instance.run_launcher.terminate(run_id)
        wait_until(lambda: server.is_finished(run_id))
    assert server.status(run_id) == dg.DagsterRunStatus.CANCELED


def test_the_process_that_runs_are_forked_from_has_no_thread_that_a_fork_would_leave_behind() -> None:
    code = f"import {IMPORTS}, pathlib; print(*(t.joinpath('comm').read_text() for t in pathlib.Path('/proc/self/task').iterdir()))"
    environment = command_environment() | {"OPENBLAS_NUM_THREADS": "1"}  # it ends its threads before a fork
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    first, *others = told.stdout.split()
    assert set(others) <= {"jemalloc_bg_thd"}, "Arrow's, which starts anew after a fork"
    assert first.startswith("python")
    assert told.stderr == ""


def test_where_no_process_to_fork_from_starts_runs_start_slowly_and_it_is_told(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 30)  # too long for the path of a socket
    folder.mkdir()
    code = "from health_assets.defs.run_processes import context_of_runs; print(context_of_runs().get_start_method())"
    environment = command_environment() | {"TMPDIR": str(folder)}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout == "spawn\n"
    assert "runs start slowly" in told.stderr


def test_dagster_starts_runs_by_the_context_of_which_another_takes_the_place() -> None:
    assert "self._mp_ctx = " in inspect.getsource(DagsterApiServer.__init__)
    started = inspect.getsource(DagsterApiServer.StartRun)
    assert all(f"self._mp_ctx.{part}(" in started for part in ("Queue", "Event", "Process"))
