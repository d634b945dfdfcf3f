"""What a run reads is listed when it has the lock: what others loaded meanwhile is not taken away again."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

import dagster as dg
import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from health_assets.defs.write_lock.lease_store import LeaseStore
from health_assets.defs.write_lock.write_lock import WriteLock
from health_assets.pipeline.resource import Pipeline
from health_assets_tests.support.holders import settings
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, hours_from, run_steps

HOURS = hours_from(START, 1)
LINES = [line(execution(f"e{number:02}", "planner", START)) for number in range(20)]
URGENT = 10


def ingest_with(pipeline: Pipeline) -> dict[str, Any]:
    return run_steps(pipeline, HOURS, only=["ingest"])["raw_logs"]


def executions(project: Project) -> int:
    return len(project.rows("executions"))


def notes(project: Project) -> list[tuple]:
    return project.query("SELECT source_file, note FROM raw_file_notes")


def test_a_run_that_waited_reads_what_a_log_holds_when_its_turn_comes(
    instance: dg.DagsterInstance, project: Project
) -> None:
    project.write_log("app.jsonl", LINES[:8])
    holder = WriteLock(instance, settings(), "holder", "the newest hour's run", URGENT)

    def late_run() -> None:
        with WriteLock(instance, settings(), "late", "a run for late logs") as write_lock:
            ingest_with(replace(project.pipeline, write_lock=write_lock))

    with holder:
        holder.take()
        waiting = threading.Thread(target=late_run)
        waiting.start()
        while len(LeaseStore(instance.run_storage).read().clients) < 2:
            time.sleep(0.02)
        project.write_log("app.jsonl", LINES)
        ingest_with(replace(project.pipeline, write_lock=holder))
    waiting.join()
    assert executions(project) == len(LINES)
    assert notes(project) == []


class Torn(MemoryFileSystem):
    """A store that lists an object `torn`, and loses the connection while it is read."""

    protocol = "torn"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return MemoryFileSystem._strip_protocol(path.removeprefix("torn://"))

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode == "rb" and "torn" in path:
            raise OSError("the connection was lost")
        return super()._open(path, mode, **options)


@pytest.fixture
def torn(project: Project) -> Iterator[Project]:
    fsspec.register_implementation("torn", Torn, clobber=True)
    project.raw = "torn://logs"  # type: ignore[assignment]
    put("torn.jsonl", LINES[:1])
    put("app.jsonl", LINES[1:8])
    yield project
    Torn.store.clear()


def put(name: str, lines: list[str]) -> None:
    fsspec.filesystem("torn").pipe(f"/logs/{name}", "".join(f"{text}\n" for text in lines).encode())


class Between:
    """A guard that lets others go first before a run opens the warehouse for the second time."""

    def __init__(self, project: Project, lines: list[str]) -> None:
        self._project = project
        self._lines = lines
        self._takes = 0

    def take(self) -> None:
        self._takes += 1
        if self._takes == 2:
            put("app.jsonl", self._lines)
            ingest_with(self._project.pipeline)

    def check(self) -> None: ...


def test_a_run_that_reads_again_for_a_log_that_it_cannot_read_lists_all_others_anew(torn: Project) -> None:
    read = ingest_with(replace(torn.pipeline, write_lock=Between(torn, LINES[1:])))  # type: ignore[arg-type]
    assert executions(torn) == len(LINES) - 1
    assert read["files_unreadable"] == 1
    assert [name for name, _ in notes(torn)] == ["torn.jsonl"], "nothing was lost of the other"


class Rotating(Between):
    """A guard before whose second lock the log that could not be read goes by another name."""

    def take(self) -> None:
        self._takes += 1
        if self._takes == 2:
            put("old.jsonl", LINES[:1])
            fsspec.filesystem("torn").rm("/logs/torn.jsonl")


def test_a_log_that_could_not_be_read_and_is_there_by_another_name_when_it_is_listed_again_is_loaded(
    torn: Project,
) -> None:
    read = ingest_with(replace(torn.pipeline, write_lock=Rotating(torn, [])))  # type: ignore[arg-type]
    assert executions(torn) == 8
    assert read["files_unreadable"] == 0


def test_the_time_is_taken_when_the_turn_has_come(instance: dg.DagsterInstance, project: Project) -> None:
    """Else what had happened meanwhile would be taken for the future, and the lines for rejected ones."""
    project.write_log("app.jsonl", LINES)
    now = [START - timedelta(days=1)]
    holder = WriteLock(instance, settings(), "holder", "another run")

    def late_run() -> None:
        with WriteLock(instance, settings(), "late", "a run for late logs") as write_lock:
            ingest_with(Pipeline(settings=project.settings, write_lock=write_lock, clock=lambda: now[0]))

    with holder:
        holder.take()
        waiting = threading.Thread(target=late_run)
        waiting.start()
        while len(LeaseStore(instance.run_storage).read().clients) < 2:
            time.sleep(0.02)
        now[0] = START + timedelta(days=1)
    waiting.join()
    assert executions(project) == len(LINES)
