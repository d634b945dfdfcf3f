"""Processes that are killed while they write: whole hours or nothing, and running again gives what a clean rebuild gives.

`test_kill` kills at any moment. Here the process says when it begins and ends a write, so that the kill falls into one.
"""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from health_assets.systems.declared_assets import DERIVED
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse
from health_assets_tests.pipeline.test_kill import ALL_HOURS, Killed, given
from health_assets_tests.support.projects import RECORD_TABLES, Project, assert_same_tables, in_a_process

STEPS = ("ingest", "health_components", "agent_health")
"""A step of each kind: what reads the logs, a table of components, a table of windows."""
WHOLE_CHECK_EVERY = 10


@dataclass
class Kills:
    """What became of the kills in the writes of one step.

    Args:
        step: the step.
        in_write: processes that were killed while they wrote.
        elsewhere: those killed before, between or after their writes.
    """

    step: str
    in_write: int = 0
    elsewhere: int = 0

    def __str__(self) -> str:
        return (
            f"{self.step}: {self.in_write} kills in a write, {self.elsewhere} beside it; every hour was whole, and running "
            "again gave what a clean rebuild gives"
        )


def kill_in_writes(killed: Killed, folder: Path, step: str, count: int, random: Random) -> Kills:
    """Kill a step so often in its writes, each time from the same beginning.

    Raises:
        AssertionError: an hour was not whole, or running again did not mend it.
    """
    steps = ["ingest", *DERIVED]
    prepared = killed.copy(folder / f"{step}-prepared")
    prepared.materialize(ALL_HOURS, only=steps[: steps.index(step)])
    writes = writes_of(copied(prepared, folder / f"{step}-undisturbed"), step)
    assert writes, f"{step} has nothing to write"
    done = Kills(step)
    while done.in_write < count:
        project = copied(prepared, folder / f"{step}-{done.in_write + done.elsewhere}")
        place = random.randrange(len(writes))
        if killed_in_write(project, step, place, random.random() * writes[place]):
            done.in_write += 1
        else:
            done.elsewhere += 1
        killed.assert_whole_hours(project)
        project.materialize(ALL_HOURS, only=[step])
        tables = RECORD_TABLES if step == "ingest" else (step,)
        assert_same_tables(project.tables(names=tables), {table: killed.clean[table] for table in tables})
        if (done.in_write + done.elsewhere) % WHOLE_CHECK_EVERY == 1:
            killed.mend(project)
            killed.assert_mended(project)
        shutil.rmtree(project.folder)
    return done


def copied(project: Project, folder: Path) -> Project:
    shutil.copytree(project.folder, folder)
    return replace(project, folder=folder)


def writes_of(project: Project, step: str) -> list[float]:
    """How long each write of a step takes where nobody disturbs it, in seconds."""
    lasts: list[float] = []
    with _started(project, step) as (process, said):
        begun = 0.0
        while (word := _word(said)) is not None:
            if word == b"begins":
                begun = time.monotonic()
            else:
                lasts.append(time.monotonic() - begun)
        process.join()
        assert process.exitcode == 0
    shutil.rmtree(project.folder)
    return lasts


def killed_in_write(project: Project, step: str, place: int, after_s: float) -> bool:
    """Kill a step some seconds after one of its writes began; gives whether it was in a write then."""
    with _started(project, step) as (process, said):
        balance = 0
        while (word := _word(said)) is not None:
            balance += 1 if word == b"begins" else -1
            place -= word == b"begins"
            if place < 0:
                time.sleep(after_s)
                break
        process.kill()
        process.join()
        while (word := _word(said)) is not None:
            balance += 1 if word == b"begins" else -1
        return process.exitcode == -signal.SIGKILL and balance > 0


def _word(said: Connection) -> bytes | None:
    try:
        return said.recv_bytes()
    except EOFError:
        return None


@contextmanager
def _started(project: Project, step: str) -> Iterator[tuple[Any, Connection]]:
    said, say = Pipe(duplex=False)
    process = in_a_process(_materialize_aloud, given(project), step, say)
    say.close()
    try:
        yield process, said
    finally:
        process.kill()
        process.join()
        said.close()


def _materialize_aloud(project: dict[str, Any], step: str, say: Connection) -> None:
    write: Callable[[Warehouse], Any] = Warehouse.write

    @contextmanager
    def write_aloud(self: Warehouse) -> Iterator[Session]:
        with write(self) as session:
            say.send_bytes(b"begins")
            yield session
        say.send_bytes(b"ended")

    Warehouse.write = write_aloud  # type: ignore[method-assign]
    Project(**project).materialize(ALL_HOURS, only=[step])
    say.close()
