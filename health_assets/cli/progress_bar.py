"""The progress of a run: a bar on a terminal, elsewhere a line now and then.

What belongs here: turning a run's events, and what is read of the logs, into something to look at. What does not: what
the run did (`run_summary`).
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from health_assets.core.formatting import counted
from health_assets.core.hours import HourGroups, HourRange
from health_assets.logs import progress as reading
from health_assets.pipeline.events import Event, StepFailed, StepFinished, StepSkipped, StepStarted
from health_assets.pipeline.plan import INGEST
from health_assets.warehouse import cluster_work
from health_assets.warehouse.cluster_work import ClusterProgress

READING_WEIGHT = 3
"""Reading the logs takes as long as some of the other steps together."""
SECONDS_BETWEEN_LINES = 15.0
OnEvent = Callable[[Event], None]


class RunProgress:
    """The progress of a run.

    Args:
        hours: its hours.
        steps: how many steps it has.
    """

    def __init__(self, hours: HourRange | HourGroups, steps: int) -> None:
        self._hours = f"{len(hours):,} h"
        self._steps = steps
        self._done: set[str] = set()
        self._step = ""
        self._read: reading.Progress | None = None
        self._tasks: ClusterProgress | None = None
        self._is_waiting = False

    def on_event(self, event: Event) -> None:
        """Take an event of the run."""
        self._is_waiting = False
        self._tasks = None
        if isinstance(event, StepStarted):
            self._step = event.step
        elif isinstance(event, StepFinished | StepFailed | StepSkipped):
            self._done.add(event.step)

    def on_wait(self) -> None:
        """Note that the run waits for the write lock; its next event ends that."""
        self._is_waiting = True

    def on_read(self, read: reading.Progress) -> None:
        """Take what has been read so far."""
        self._read = read

    def on_tasks(self, tasks: ClusterProgress | None) -> None:
        """Take how far a cluster has come with one of the step's statements; None once that has ended."""
        self._tasks = tasks

    @property
    def total(self) -> float:
        """The value at which the bar is full."""
        return self._steps - 1 + READING_WEIGHT

    @property
    def completed(self) -> float:
        """The value that the bar has now, at most `total`."""
        share = 1.0 if INGEST in self._done else self._read.share if self._read else 0.0
        return len(self._done - {INGEST}) + READING_WEIGHT * share

    def __str__(self) -> str:
        return f"{self._hours} · {len(self._done)} of {self._steps} steps · {self.doing}"

    @property
    def brief(self) -> str:
        """The progress in few words, to fit beside a bar."""
        return f"{len(self._done)}/{self._steps} {self.doing}"

    @property
    def doing(self) -> str:
        """The step that the run is at, in words."""
        if self._is_waiting:
            return "waiting for the write lock"
        if self._step == INGEST and self._tasks is None:
            return self._reading()
        step = self._step.replace("_", " ") or "starting"
        return f"{step}, {self._tasks}" if self._tasks else step

    def _reading(self) -> str:
        read = self._read
        if read is None:
            return "comparing the logs with the tables"
        if read.files_done == read.files:
            return f"read {counted(read.files, 'file')}, writing the records"
        return f"reading {read}"


@dataclass(frozen=True)
class Shown:
    """The ends of a progress bar that a run speaks to.

    Args:
        on_event: takes its events.
        on_wait: takes that it waits for the write lock.
    """

    on_event: OnEvent
    on_wait: Callable[[], None]


@contextmanager
def progress_bar(
    console: Console,
    hours: HourRange | HourGroups,
    steps: int,
    *,
    seconds_between_lines: float = SECONDS_BETWEEN_LINES,
) -> Iterator[Shown]:
    """Show how far a run has come while the block runs; gives what takes its events."""
    progress = RunProgress(hours, steps)
    with _apart(console) as own:
        show = _bar(own, progress) if own.is_terminal else _lines(own, progress, seconds_between_lines)
        with (
            show as refresh,
            reading.listening(_then(progress.on_read, refresh)),
            cluster_work.listening(_then(progress.on_tasks, refresh)),
        ):

            def on_wait() -> None:
                progress.on_wait()
                refresh()

            yield Shown(_then(progress.on_event, refresh), on_wait)


@contextmanager
def _apart(console: Console) -> Iterator[Console]:
    """The same console with a file of its own: while a step runs, Dagster turns what the process prints into a file.

    Then there would be no terminal any more, and the bar would stand still to the end of the run.
    """
    try:
        descriptor = os.dup(console.file.fileno())
    except OSError:  # a file in memory
        yield console
        return
    with os.fdopen(descriptor, "w", encoding=console.encoding) as file:
        yield Console(file=file, width=console.width, force_terminal=console.is_terminal, no_color=console.no_color)


Value = TypeVar("Value")


def _then(take: Callable[[Value], None], refresh: Callable[[], None]) -> Callable[[Value], None]:
    def taken(value: Value) -> None:
        take(value)
        refresh()

    return taken


@contextmanager
def _bar(console: Console, progress: RunProgress) -> Iterator[Callable[[], None]]:
    bar = Progress(
        SpinnerColumn(), BarColumn(bar_width=14), TimeElapsedColumn(), TextColumn("{task.description}", markup=False),
        console=console, transient=True,
    )  # fmt: skip
    others = set(threading.enumerate())
    with bar:
        refreshing = set(threading.enumerate()) - others
        task = bar.add_task(progress.brief, total=progress.total)
        yield lambda: bar.update(task, completed=progress.completed, description=progress.brief)
    for thread in refreshing:  # one that is left behind keeps objects alive that libraries complain of at the end
        thread.join()


@contextmanager
def _lines(console: Console, progress: RunProgress, seconds: float) -> Iterator[Callable[[], None]]:
    """A line after every so many seconds, so that whoever watches a log sees that something happens."""
    is_over = threading.Event()
    start = time.monotonic()

    def tell() -> None:
        while not is_over.wait(seconds):
            elapsed = timedelta(seconds=round(time.monotonic() - start))
            console.print(f"  {elapsed} · {progress}", markup=False, highlight=False, soft_wrap=True)

    teller = threading.Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield lambda: None
    finally:
        is_over.set()
        teller.join()
