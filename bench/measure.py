"""Timing: each piece of work in a fresh process, pieces that are compared by turns, medians of several."""

import json
import statistics
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Console

from bench.fleet import ROOT

progress = Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Sample:
    """What one piece of work cost.

    Args:
        wall_s: seconds that it took.
        cpu_s: processor seconds of all threads.
        start_s: seconds for interpreter start and imports before.
        peak_bytes: most memory resident at once, with everything imported.
        details: what the work tells.
    """

    wall_s: float
    cpu_s: float
    start_s: float
    peak_bytes: int
    details: dict[str, Any]


@dataclass(frozen=True)
class Timing:
    """Samples of the same work.

    Args:
        name: what the work is.
        samples: at least one.
        factor: what the seconds are multiplied with, where only a part was run (`--quick`).
    """

    name: str
    samples: list[Sample]
    factor: float = 1.0

    @property
    def median(self) -> Sample:
        """The sample in the middle by wall time."""
        return sorted(self.samples, key=lambda sample: sample.wall_s)[(len(self.samples) - 1) // 2]

    @property
    def wall_s(self) -> float:
        """Median of the wall seconds."""
        return self.factor * statistics.median(sample.wall_s for sample in self.samples)

    @property
    def cpu_s(self) -> float:
        """Median of the processor seconds."""
        return self.factor * statistics.median(sample.cpu_s for sample in self.samples)

    @property
    def start_s(self) -> float:
        """Median of the seconds before the work."""
        return statistics.median(sample.start_s for sample in self.samples)

    @property
    def peak_gib(self) -> float:
        """The largest peak of memory in GiB."""
        return max(sample.peak_bytes for sample in self.samples) / 2**30


class Watch(ABC):
    """Looks at something again and again, beside other work, until that ends.

    Args:
        every_s: seconds between two looks.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _go_on(self) -> None:
        while not self._done.wait(self._every_s):
            self.look()

    @abstractmethod
    def look(self) -> None:
        """Look once."""


def run(task: str, **arguments: Any) -> Sample:
    """Run a task of `bench.tasks` in a fresh process.

    Raises:
        RuntimeError: the task failed; with the end of what it said.
    """
    command = [sys.executable, "-m", "bench.tasks", task, json.dumps(arguments), str(time.time())]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"the task {task} failed:\n{process.stderr[-4000:]}")
    return Sample(**json.loads(process.stdout.splitlines()[-1]))


def by_turns(repeats: int, works: dict[str, Callable[[], Sample]]) -> list[Timing]:
    """Time every work `repeats` times, taking turns, so that noise meets all of them."""
    samples: dict[str, list[Sample]] = {name: [] for name in works}
    for turn in range(repeats):
        for name, work in works.items():
            sample = work()
            samples[name].append(sample)
            progress.print(f"  {name}, {turn + 1} of {repeats}: {sample.wall_s:.2f} s")
    return [Timing(name, taken) for name, taken in samples.items()]
