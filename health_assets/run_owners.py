"""Which process a run on the command line belongs to, and what runs of killed processes leave in Dagster's instance.

A step takes the one slot of the warehouse's pool. Dagster frees the slots of runs that it launched itself; one that a
command made in its own process keeps its slot for ever when that process is killed, and every later step would wait. So
such a run names a file that its process holds locked: the operating system lets go of the lock, whatever happens.
"""

import fcntl
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster._core.storage.tags import MAX_RETRIES_TAG

OWNER_TAG = "health_assets/owner"


@contextmanager
def owner_tags() -> Iterator[dict[str, str]]:
    """Tags by which others see whether this process is alive, as long as the context lasts, and start no run again."""
    with tempfile.NamedTemporaryFile(prefix="health-assets-run-") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield {OWNER_TAG: f"{socket.gethostname()}:{held.name}", MAX_RETRIES_TAG: "0"}


def free_what_the_dead_hold(instance: dg.DagsterInstance) -> None:
    """Free the slots that runs of killed processes hold or wait for, and note that these runs failed."""
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        return
    found = [storage.get_concurrency_info(key) for key in storage.get_concurrency_keys()]
    holding = {slot.run_id for info in found for slot in info.claimed_slots}
    waiting = {step.run_id for info in found for step in info.pending_steps}
    dead = [
        run
        for run_id in sorted(holding | waiting)
        if (run := instance.get_run_by_id(run_id)) is not None and _is_dead(run.tags.get(OWNER_TAG, ""))
    ]
    for run in dead:
        if not run.is_finished:
            instance.report_run_failed(run, "the process of this run was killed")
        storage.free_concurrency_slots_for_run(run.run_id)
        Path(run.tags[OWNER_TAG].partition(":")[2]).unlink(missing_ok=True)


def _is_dead(owner: str) -> bool:
    """Whether the process is known to have ended; of one on another machine nothing is known."""
    host, _, path = owner.partition(":")
    if host != socket.gethostname() or not path:
        return False
    try:
        with Path(path).open() as held:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
