"""Processes as hosts tell them apart, and whether one is known to have ended.

What belongs here: telling processes apart, also where their numbers were used again. What does not: what a dead process
leaves behind (`defs.write_lock.run_owners`).

A number names a process only where it was given: containers of one host may share a host's name and have a first
process each. So a process is known by the host's name, its boot, the space of its numbers, its number and its start. Of
a process elsewhere, or on a system that has no `/proc`, nothing is known. Where `/proc` hides the processes of other
users (`hidepid`), one whose number is in use counts as alive.
"""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_PROC = Path("/proc")
_FIELDS_BEFORE_THE_START = 19
"""Fields of `/proc/<pid>/stat` between the program's name and the start of the process."""


class Process(BaseModel):
    """A process, as others may know it.

    Args:
        host: name of its host.
        space: boot of the host and space of the process numbers; empty where the system does not tell.
        pid: its number there.
        started: when it started, in ticks since the boot; empty where the system does not tell.
    """

    model_config = ConfigDict(frozen=True)

    host: str
    space: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> "Process":
        """The process that asks."""
        return cls.here(os.getpid())

    @classmethod
    def here(cls, pid: int) -> "Process":
        """The process that has this number where the one that asks runs."""
        return cls(host=socket.gethostname(), space=_space(), pid=pid, started=_stat_of(pid).started)

    @property
    def is_known_to_be_gone(self) -> bool:
        """Whether it ran where this process runs, and does no more."""
        is_here = (self.host, self.space) == (socket.gethostname(), _space())
        if not is_here or not self.space:
            return False
        return not _is_number_in_use(self.pid) or _is_another(_stat_of(self.pid), self.started)

    def __str__(self) -> str:
        return f"host {self.host}, process {self.pid}"


def _space() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


@dataclass(frozen=True)
class _Stat:
    """The part of `/proc/<pid>/stat` that is needed; both are empty where it cannot be read.

    Args:
        state: a letter; Z and X say that the process has ended, and its parent has still to collect it.
        started: when it started, in ticks since the boot.
    """

    state: str = ""
    started: str = ""


def _stat_of(pid: int) -> _Stat:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _Stat()
    state, *fields = text.rpartition(")")[2].split()
    return _Stat(state, fields[_FIELDS_BEFORE_THE_START - 1])


def _is_another(stat: _Stat, started: str) -> bool:
    """Tell whether the number has gone to another process than the one that started then; unknown times say nothing."""
    return stat.state in ("Z", "X") or bool(stat.started and started and stat.started != started)


def _is_number_in_use(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # a process of another user
        return True
    return True
