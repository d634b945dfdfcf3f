"""Processes that take the lock to write and keep it, also under the name of another host.

What belongs here: starting them, and seeing what they hold. What does not: assertions.
"""

import ctypes
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.instance.ref import InstanceRef

from health_assets.core.settings import Settings
from health_assets.defs.write_lock.write_lock import WriteLock
from health_assets_tests.support.projects import in_a_process

CLONE_NEWUTS, CLONE_NEWUSER = 0x04000000, 0x10000000
COMMAND = "health-assets materialize"
FOREVER_S = 600
NOT_ALLOWED = 77
"""Exit code of a process that may have no host name of its own."""


def settings(lease_s: float = 3600.0, timeout_s: float = 60.0) -> Settings:
    return Settings(lease_s=lease_s, lease_timeout_s=timeout_s)


def get_host_name_of_its_own(name: str) -> None:
    """Give this process another host's name, as `unshare --uts` does; it ends where the kernel forbids it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUTS) and libc.unshare(CLONE_NEWUSER | CLONE_NEWUTS):
        os._exit(NOT_ALLOWED)
    socket.sethostname(name)


def _hold(ref: InstanceRef, run_id: str, host: str | None, lease_s: float, folder: Path, *, writes: str) -> None:
    if host is not None:
        get_host_name_of_its_own(host)
    with (
        dg.DagsterInstance.from_ref(ref) as instance,
        WriteLock(instance, settings(lease_s), run_id, COMMAND) as write_lock,
    ):
        write_lock.take()
        if not writes:
            (folder / "held").touch()
            time.sleep(FOREVER_S)
        _write(write_lock, writes, folder)


def _write(write_lock: WriteLock, warehouse: str, folder: Path) -> None:
    """Change something, and commit it when somebody makes the file `go`."""
    from health_assets.warehouse.store import Warehouse

    with Warehouse(warehouse, guard=write_lock).write() as session:
        session.query("DELETE FROM agent_health")
        (folder / "held").touch()
        while not (folder / "go").exists():
            time.sleep(0.02)
    (folder / "committed").touch()


@contextmanager
def holding(
    instance: dg.DagsterInstance,
    run_id: str,
    folder: Path,
    *,
    host: str | None = None,
    lease_s: float = 3600.0,
    writes: str = "",
) -> Iterator[BaseProcess]:
    """A process that holds the lease, for a run of Dagster; where it names a warehouse, in a transaction.

    Args:
        instance: whose lease.
        run_id: the run.
        folder: where the files `held`, `go` and `committed` are; it must exist.
        host: a host name of its own.
        lease_s: how long it may be silent.
        writes: the warehouse that it is about to empty a table of.
    """
    process = in_a_process(_begin, instance.get_ref(), run_id, host, lease_s, folder, writes)
    try:
        while not (folder / "held").exists():
            if process.exitcode == NOT_ALLOWED:
                pytest.skip("the kernel allows no host name of a process's own here")
            assert process.is_alive()
            time.sleep(0.02)
        yield process
    finally:
        if process.is_alive():
            os.kill(process.pid or 0, signal.SIGKILL)
        process.join()


def _begin(ref: InstanceRef, run_id: str, host: str | None, lease_s: float, folder: Path, writes: str) -> None:
    _hold(ref, run_id, host, lease_s, folder, writes=writes)
