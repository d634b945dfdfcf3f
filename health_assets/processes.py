"""Which process of which host something belongs to, and whether that process is known to have ended.

What belongs here: telling processes apart, also where their numbers were used again. What does not: what a dead process
leaves behind (`run_owners`).

A number names a process only where it was given: containers of one host may share a host's name and have a first
process each. So a process is known by the host's name, its boot, the space of its numbers, its number and its start. Of
a process elsewhere, or on a system that has no `/proc`, nothing is known.
"""

import os
import socket
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_PROC = Path("/proc")
_FIELDS_BEFORE_THE_START = 19
"""How many fields of `/proc/<pid>/stat` stand between the program's name and the start of the process."""


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
        return cls(host=socket.gethostname(), space=_space(), pid=pid, started=_start_of(pid))

    @property
    def is_known_to_be_gone(self) -> bool:
        """Whether it ran where this process runs, and does no more."""
        is_here = (self.host, self.space) == (socket.gethostname(), _space())
        return is_here and bool(self.space) and _start_of(self.pid) != self.started

    def __str__(self) -> str:
        return f"host {self.host}, process {self.pid}"


def _space() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start_of(pid: int) -> str:
    """When a process started; empty where there is none, or none but what its parent has still to collect."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[_FIELDS_BEFORE_THE_START - 1]
