"""The processes of Dagster's runs: forked from one that has a run's imports done, which takes seconds off each run.

What belongs here: the private parts of Dagster 1.13 and of `multiprocessing`, as of Python 3.11, that this takes;
`test_run_processes` fails first when they move.
What does not: what is imported (`run_imports`).

Dagster's code server starts a process for every run, from nothing, by a context of `multiprocessing` that it keeps.
Here it gets another one, whose processes are forked from a fork server: a process without connections and without
threads of Python's, which ends with the code server that it belongs to. So a code location that is loaded anew, in a
new code server, has a new one with the code and the environment of that. A fork server that died is started again for
the next run, and the runs that it has forked go on: they are not taken for dead with it.
"""

import functools
import logging
import multiprocessing
import os
import sys
import time
from multiprocessing import forkserver, popen_forkserver
from multiprocessing.context import BaseContext, ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from health_assets.core.processes import Process
from health_assets.defs.dagster_internals import is_loaded_for_a_run

IMPORTS = "health_assets.defs.run_imports"
DAGSTER_SERVERS = "dagster._grpc.server"
REST_S = 0.1

_log = logging.getLogger(__name__)


class _Forked(popen_forkserver.Popen):
    """A run's process, of which the fork server tells how it ended."""

    def _launch(self, process_obj: Any) -> None:
        super()._launch(process_obj)  # type: ignore[misc]
        self._process = Process.here(self.pid)

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        """The exit code of the process; 255 for one that is gone if the fork server died before."""
        was_known = self.returncode is not None
        code: int | None = super().poll(flag)
        while not was_known and code == 255 and not self._process.is_known_to_be_gone:
            self.returncode = None  # type: ignore[assignment]
            if flag == os.WNOHANG:
                return None
            time.sleep(REST_S)
            self.returncode = 255
        return code


class _RunProcess(ForkServerProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return _Forked(process_obj)


class _RunContext(ForkServerContext):
    Process = _RunProcess


class _ContextOfRuns:
    """Stands on Dagster's class of servers, in place of the context that each of them keeps."""

    def __get__(self, server: Any, _: type) -> BaseContext:
        return context_of_runs()

    def __set__(self, server: Any, context: BaseContext) -> None:
        """Leave Dagster's own context aside."""


def context_of_runs() -> BaseContext:
    """A context by which processes are forked with the imports done; Dagster's own where no such process starts."""
    try:
        _fork_server()
    except OSError as error:  # no room for its socket, or too long a path to it
        _log.warning("runs start slowly, since the process that they are forked from does not start: %s", error)
        return multiprocessing.get_context("spawn")
    return _context()


@functools.cache
def _context() -> _RunContext:
    return _RunContext()


def _fork_server() -> None:
    """Start the process that runs are forked from, if none is alive; its imports go on after the return."""
    forkserver.set_forkserver_preload([IMPORTS])
    forkserver.ensure_running()


def fork_runs() -> None:
    """Let this process fork its runs, where it is a code server of Dagster's and the system is Linux.

    Elsewhere libraries of the system do not bear a fork. A server behind `dagster code-server start` stays, and makes
    ready for its first run at once; one that the daemon has started for itself may end before there is a run.
    """
    servers = sys.modules.get(DAGSTER_SERVERS)
    if servers is None or sys.platform != "linux" or is_loaded_for_a_run():
        return
    servers.DagsterApiServer._mp_ctx = _ContextOfRuns()  # noqa: SLF001
    if _is_to_stay():
        context_of_runs()


def _is_to_stay() -> bool:
    return b"code-server" in Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\0")
