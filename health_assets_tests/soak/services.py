"""Processes that a service manager would keep: started, ended by signals, started again, and looked at.

What belongs here: processes and what they take. What does not: which processes an installation has (`installation`).
"""

import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

END_S = 60.0


@dataclass
class Service:
    """A process that is started again when it has ended.

    Args:
        name: what people call it.
        command: its program and arguments.
        environment: all of its environment.
        log: file to which it writes what it says.
        user: id of the user that runs it, where that is not the user of this process.
        after_s: the pause before it is started again.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    user: int | None = None
    after_s: float = 2.0
    starts: int = 0
    rss_mib: list[float] = field(default_factory=list)
    _process: subprocess.Popen | None = None
    _ended_at: float = 0.0

    def start(self) -> None:
        """Start it."""
        as_user = {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, env=dict(self.environment), stdout=log, stderr=log, cwd=self.log.parent,
                start_new_session=True, **as_user,
            )  # fmt: skip
        self.starts += 1
        self._ended_at = 0.0

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def keep(self) -> None:
        """Start it again a while after it ended, as a service manager does."""
        if self._process is None or self.is_running:
            return
        self._ended_at = self._ended_at or time.monotonic()
        if time.monotonic() - self._ended_at >= self.after_s:
            self.start()

    def measure(self) -> None:
        """Note how much memory its process has."""
        if self._process is None:
            return
        try:
            self.rss_mib.append(psutil.Process(self._process.pid).memory_info().rss / 2**20)
        except psutil.NoSuchProcess:
            return  # it has just been killed

    def below(self) -> list[psutil.Process]:
        """The processes that it started, and those that these started."""
        if self._process is None:
            return []
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def send(self, number: signal.Signals) -> bool:
        """Send its process a signal, if there is one; it is started again by `keep`. Returns whether there is one."""
        if self._process is None or not self.is_running:
            return False
        self._process.send_signal(number)
        return True

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it for good; with SIGKILL where it does not end in time."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Manager:
    """Keeps services running, and measures them, while a block runs.

    Args:
        services: which, by name; others may come and go.
        every_s: how often it looks.
    """

    def __init__(self, services: Mapping[str, Service], every_s: float = 1.0) -> None:
        self._services, self._every_s = services, every_s
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="manager", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._is_over.wait(self._every_s):
            for service in list(self._services.values()):
                service.keep()
                service.measure()


def python_module(module: str, *arguments: object) -> list[str]:
    """The command line of a module of the tests."""
    return [sys.executable, "-m", module, *map(str, arguments)]


def command_of(options: Path) -> list[str]:
    """The command line of a PostgreSQL server, as it notes it in `postmaster.opts`."""
    return shlex.split(options.read_text(encoding="utf-8"))
