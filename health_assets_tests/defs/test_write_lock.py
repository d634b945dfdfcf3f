"""Runs share the write lock at writing: real processes, also of two hosts, that are killed, stopped, asked to end, or wait."""

import os
import signal
import threading
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster_postgres import PostgresRunStorage

from health_assets.core.errors import HealthAssetsError, WriteLockTimeoutError
from health_assets.core.processes import Process
from health_assets.defs.write_lock.lease_store import LeaseStore
from health_assets.defs.write_lock.leases import LockClient
from health_assets.defs.write_lock.write_lock import WriteLock
from health_assets_tests.support import postgres_server
from health_assets_tests.support.holders import COMMAND, holding, settings
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, hours_from, materialize_arguments, start_forked_command

ELSEWHERE = "another-host"
LEASE_S = 4.0
AT_ONCE_S = 30.0
"""What counts as at once on a machine that does much else, against leases and waits of an hour."""


@dg.job
def work() -> None: ...


def run_under_way(instance: dg.DagsterInstance) -> str:
    return instance.create_run_for_job(work, status=dg.DagsterRunStatus.STARTED).run_id


def status(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def killed(process: BaseProcess) -> None:
    process.kill()
    process.join()


# -- the dead ----------------------------------------------------------------------------------------------------------


def test_what_a_killed_process_of_this_host_held_is_free_at_once_and_its_run_has_failed(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    run_id = run_under_way(instance)
    with holding(instance, run_id, tmp_path) as holder, WriteLock(instance, settings(), "own", "a test") as write_lock:
        killed(holder)
        start = time.monotonic()
        write_lock.take()
    assert time.monotonic() - start < AT_ONCE_S
    assert status(instance, run_id) == dg.DagsterRunStatus.FAILURE
    assert LeaseStore(instance.run_storage).read().clients == ()


def test_a_holder_on_another_host_is_waited_for_while_it_lives_and_loses_its_turn_once_it_is_silent(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    run_id = run_under_way(instance)
    with holding(instance, run_id, tmp_path, host=ELSEWHERE, lease_s=LEASE_S) as holder:
        told: list[str] = []
        impatient = settings(timeout_s=2 * LEASE_S)
        with (
            WriteLock(instance, impatient, "own", "a test", say=told.append) as write_lock,
            pytest.raises(WriteLockTimeoutError) as no,
        ):
            write_lock.take()
        assert f"{COMMAND} (host {ELSEWHERE}, process {holder.pid}, since " in str(no.value)
        assert f"within {2 * LEASE_S:g} s" in str(no.value)
        assert len(told) == 1 and f"held by {COMMAND} (host {ELSEWHERE}, process {holder.pid}, since " in told[0]
        assert status(instance, run_id) == dg.DagsterRunStatus.STARTED
        killed(holder)
        with WriteLock(instance, settings(), "own", "a test") as write_lock:
            write_lock.take()
            assert status(instance, run_id) == dg.DagsterRunStatus.FAILURE


def test_a_stopped_process_that_comes_back_after_its_lease_writes_nothing(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    project = Project(tmp_path / "project")
    project.write_log("a.jsonl", [line(execution("e", "a", START))])
    project.materialize(hours_from(START, 1), only=["ingest", "health_components", "agent_health"])
    url = project.warehouse_url
    with holding(instance, run_under_way(instance), tmp_path, host=ELSEWHERE, lease_s=LEASE_S, writes=url) as holder:
        os.kill(holder.pid or 0, signal.SIGSTOP)
        with WriteLock(instance, settings(), "own", "a test") as write_lock:
            write_lock.take()
            os.kill(holder.pid or 0, signal.SIGCONT)
            (tmp_path / "go").touch()
            holder.join()
            write_lock.check()
    assert holder.exitcode == 1
    assert not (tmp_path / "committed").exists()
    assert len(project.rows("agent_health")) == 1


def test_a_run_that_lost_its_turn_is_told_so_before_it_writes_and_before_it_commits(
    instance: dg.DagsterInstance,
) -> None:
    store = LeaseStore(instance.run_storage)
    with WriteLock(instance, settings(), "own", "a test") as write_lock:
        write_lock.take()
        write_lock.check()
        store.change(lambda lease, _: lease.unregistered(lease.clients[0].id))
        for look in (write_lock.check, write_lock.take):
            with pytest.raises(HealthAssetsError, match=r"no sign of life for 3600 s .HEALTH_LEASE_S.*run it again"):
                look()


def test_an_end_of_a_dead_run_that_was_itself_cut_off_is_made_up_for(instance: dg.DagsterInstance) -> None:
    run_id = run_under_way(instance)
    gone = Process.current().model_copy(update={"started": "1"})
    store = LeaseStore(instance.run_storage)
    store.change(
        lambda lease, now: lease.registered(
            LockClient(id="x", process=gone, command="c", run_id=run_id, priority=0, lease_s=60, since=now, beat_at=now)
        ).without_the_dead(now)
    )
    assert status(instance, run_id) == dg.DagsterRunStatus.STARTED
    impatient = WriteLock(instance, settings(timeout_s=0.2), "own", "a test")
    with holding_here(instance), impatient, pytest.raises(WriteLockTimeoutError):
        impatient.take()
    assert status(instance, run_id) == dg.DagsterRunStatus.FAILURE
    assert store.read().dead == ()


def holding_here(instance: dg.DagsterInstance, priority: int = 0) -> WriteLock:
    write_lock = WriteLock(instance, settings(), "held", "another run", priority)
    write_lock.take()
    return write_lock


# -- order -------------------------------------------------------------------------------------------------------------


class Taking(threading.Thread):
    """A lock that is waited for in a thread, and kept until `over` is set."""

    def __init__(self, instance: dg.DagsterInstance, name: str, priority: int, order: list[str]) -> None:
        super().__init__()
        self._turn = WriteLock(instance, settings(), name, name, priority)
        self._name = name
        self._order = order
        self.over = threading.Event()
        self.start()

    def run(self) -> None:
        with self._turn as write_lock:
            write_lock.take()
            self._order.append(self._name)
            self.over.wait()


def wait_for_claims(instance: dg.DagsterInstance, count: int) -> None:
    store = LeaseStore(instance.run_storage)
    while len(store.read().clients) < count:
        time.sleep(0.02)


def test_between_two_steps_a_more_urgent_run_goes_first_as_a_whole_and_an_equal_one_waits_to_the_end(
    instance: dg.DagsterInstance,
) -> None:
    order: list[str] = []
    with holding_here(instance) as backfill:
        late = Taking(instance, "late logs", 0, order)
        wait_for_claims(instance, 2)
        backfill.take()
        assert order == []
        newest = Taking(instance, "newest hour", 10, order)
        wait_for_claims(instance, 3)
        assert order == [], "not before the step is over"
        next_step = threading.Thread(target=backfill.take)
        next_step.start()
        while not order:
            time.sleep(0.02)
        assert order == ["newest hour"]
        next_step.join(0.5)
        assert next_step.is_alive(), "the urgent run lets nobody between its own steps"
        newest.over.set()
        next_step.join()
        backfill.check()
        assert order == ["newest hour"]
    late.over.set()
    for thread in (late, newest):
        thread.join()
    assert order == ["newest hour", "late logs"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_claims_that_are_made_at_the_same_time_are_all_kept(instance: dg.DagsterInstance, kind: str) -> None:
    storage = instance.run_storage
    if kind == "postgres":
        url = postgres_server.empty_database().replace("postgresql:", "postgresql+psycopg2:")
        storage = PostgresRunStorage(url, should_autocreate_tables=True)
    store = LeaseStore(storage)
    own = {"process": Process.current(), "command": "c", "run_id": "r", "priority": 0, "lease_s": 60}

    def register(first: int) -> None:
        for name in range(first, first + 5):
            store.change(
                lambda lease, now, name=name: lease.registered(LockClient(id=str(name), **own, since=now, beat_at=now))
            )

    threads = [threading.Thread(target=register, args=(first,)) for first in (0, 5, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lease = store.read()
    assert sorted(int(client.id) for client in lease.clients) == list(range(15))
    assert {client.since.utcoffset().total_seconds() for client in lease.clients} == {0}
    assert abs(lease.clients[0].since.timestamp() - time.time()) < 60


# -- a command that waits ----------------------------------------------------------------------------------------------


class Waiting:
    """A command that waits for a lock which this process keeps."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, **environment: str) -> None:
        self.project = Project(folder / "project")
        self.project.write_log("a.jsonl", [line(execution("e", "a", START))])
        self._said = folder / "said"
        home = instance.get_ref().local_artifact_storage_data.config_dict["base_dir"]
        self._environment = {
            "DAGSTER_HOME": home, "HEALTH_WAREHOUSE": self.project.warehouse_url, **environment,
        }  # fmt: skip

    def start(self) -> BaseProcess:
        arguments = materialize_arguments(self.project, hours_from(START, 1), "agent_health_model")
        outputs = [os.devnull, str(self._said)]
        process = start_forked_command(arguments, self._environment, self.project.folder, outputs)
        while "waiting for the warehouse" not in self.said:
            assert process.is_alive() or "waiting for the warehouse" in self.said, self.said
            time.sleep(0.05)
        return process

    @property
    def said(self) -> str:
        return self._said.read_text(encoding="utf-8") if self._said.exists() else ""


def test_a_waiting_command_sleeps_says_once_for_whom_and_ends_at_once_when_it_is_asked_to(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    waiting = Waiting(tmp_path, instance)
    with holding_here(instance) as write_lock:
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            process = waiting.start()
            assert waiting.said.count("waiting for the warehouse, held by another run (host ") == 1
            assert f"process {os.getpid()}, since " in waiting.said
            before = sum(psutil.Process(process.pid).cpu_times()[:2])
            time.sleep(4)
            assert sum(psutil.Process(process.pid).cpu_times()[:2]) - before < 0.4
            assert waiting.said.count("waiting") == 1
            os.kill(process.pid or 0, number)
            asked = time.monotonic()
            process.join(AT_ONCE_S)
            assert time.monotonic() - asked < AT_ONCE_S / 3
            assert process.exitcode == code, waiting.said
            assert [client.command for client in LeaseStore(instance.run_storage).read().clients] == ["another run"]
            (tmp_path / "said").unlink()
        write_lock.check()
    assert instance.get_runs() == []


def test_a_command_that_waited_too_long_names_the_holder_and_exits_with_75(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    waiting = Waiting(tmp_path, instance, HEALTH_LEASE_TIMEOUT_S="2")
    with holding_here(instance):
        process = waiting.start()
        process.join()
    assert process.exitcode == os.EX_TEMPFAIL
    *_, last = waiting.said.splitlines()
    assert "did not come free within 2 s; it is held by another run (host " in last
    assert instance.get_runs() == []


def test_a_command_goes_on_when_the_one_before_it_was_killed_on_another_host(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    run_id = run_under_way(instance)
    waiting = Waiting(tmp_path, instance)
    with holding(instance, run_id, tmp_path, host=ELSEWHERE, lease_s=LEASE_S) as holder:
        process = waiting.start()
        killed(holder)
        process.join()
    assert process.exitcode == 0, waiting.said
    assert f"held by {COMMAND} (host {ELSEWHERE}, " in waiting.said
    assert status(instance, run_id) == dg.DagsterRunStatus.FAILURE
    assert len(waiting.project.rows("agent_health")) == 1
    assert LeaseStore(instance.run_storage).read().clients == ()
