"""A run's write lock on the warehouse: registering on the lease, waiting for it, keeping it, noticing that it is lost.

What belongs here: what the process of a run does with the lease. What does not: the lease itself (`leases`).

A run is announced when it begins, so that it is noticed when its process dies, whatever it does. It takes the lock when
it first opens the warehouse for writing and keeps it to its end, so that no other run reads
between two of its steps. Only a more urgent run, such as the newest hour's during a long backfill, goes first between
two steps, and then as a whole. That is exact: every step is one transaction, and the urgent run builds whatever it
looks back on that is not up to date itself.

Dagster's database, where the lease is, may be away for as long as the lease lasts without a heartbeat: every look and
change is tried again until then.

A process that was stopped for longer than its lease comes back to find it gone. It looks before every commit, while
it holds the warehouse's own lock, so that nothing of what it did since then is kept.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import dagster as dg
import sqlalchemy as sa

from health_assets.core.errors import HealthAssetsError, WriteLockTimeoutError
from health_assets.core.processes import Process
from health_assets.core.settings import Settings
from health_assets.defs.dagster_internals import PRIORITY_TAG
from health_assets.defs.write_lock.lease_store import Change, LeaseStore, patiently
from health_assets.defs.write_lock.leases import Lease, LockClient
from health_assets.defs.write_lock.recorded_warehouse import note_warehouse
from health_assets.defs.write_lock.run_owners import end_runs_of_the_dead

BEATS_PER_LEASE = 4
FIRST_LOOK_S, LAST_LOOK_S = 0.1, 1.0
"""Rest between two looks at the lease: short at first, for most locks are short."""
LAST_PATIENCE_S = 10.0
"""Most that the end of a run waits for Dagster's database; a client that stays there expires."""
URGENT = {PRIORITY_TAG: "10"}
"""Tags of runs that go ahead of others: in Dagster's queue, and between two steps of a run that has none."""

_log = logging.getLogger(__name__)


class WriteLock:
    """The write lock of one run; a context that releases it.

    Args:
        instance: Dagster's, whose runs share the write lock.
        settings: how long a lease lasts without a heartbeat, and how long to wait for it.
        run_id: the run, which may not exist yet.
        command: what the run does, for people.
        priority: the higher, the sooner.
        say: told once who has to be waited for, if anybody.
    """

    def __init__(
        self,
        instance: dg.DagsterInstance,
        settings: Settings,
        run_id: str,
        command: str,
        priority: int = 0,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._instance = instance
        self._settings = settings
        self._store = LeaseStore(instance.run_storage)
        self._lease_s = settings.lease_s
        self._timeout_s = settings.lease_timeout_s
        self._run_id = run_id
        self._command = command
        self._priority = priority
        self._say = say
        self._id = uuid4().hex
        self._is_over = threading.Event()
        self._heart: threading.Thread | None = None

    @classmethod
    def of_run(
        cls, instance: dg.DagsterInstance, settings: Settings, run: dg.DagsterRun, say: Callable[[str], None]
    ) -> Self:
        """The write lock of a run that Dagster has started, as urgent as its tags say."""
        priority = int(run.tags.get(PRIORITY_TAG, "0"))
        return cls(instance, settings, run.run_id, f"the run {run.run_id[:8]} of {run.job_name}", priority, say)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, raised: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._heart is None:
            return
        self._is_over.set()
        patience_s = min(self._lease_s, LAST_PATIENCE_S)
        self._heart.join(patience_s)
        try:
            patiently(lambda: self._store.change(lambda lease, _: lease.unregistered(self._id)), patience_s)
        except (HealthAssetsError, sa.exc.SQLAlchemyError) as error:  # what the run did is done
            level = logging.INFO if raised else logging.WARNING  # what was raised is told, and says enough
            _log.log(
                level,
                "this run could not be taken off the lease, where it expires in %g s: %s",
                self._lease_s,
                _brief(error),
            )

    def announce(self) -> None:
        """Make known that this run is alive, and go on doing so to its end; it does not want the lock yet."""
        self._register(wants_lock=False)

    def take(self) -> None:
        """Wait until this run has the lock; where it has it already, let a more urgent run go first.

        Raises:
            WriteLockTimeoutError: it took too long.
            HealthAssetsError: the instance records the runs of another warehouse, or the lock was lost, since this
                process was silent or Dagster's database away for too long.
        """
        if self._heart is None:
            self._register(wants_lock=True)
        lease = self._own(self._change(lambda lease, now: lease.requested(self._id, now)))
        if lease.holder == self._id and not lease.is_wanted_sooner(self._id):
            return
        self._change(lambda lease, _: lease.released(self._id))
        self._wait()

    def check(self) -> None:
        """Make sure that this run still has the lock; to be called before a commit.

        Raises:
            HealthAssetsError: it is not, or Dagster's database was away for too long.
        """
        if patiently(self._store.read, self._lease_s).holder != self._id:
            raise self._lost()

    def _register(self, *, wants_lock: bool) -> None:
        note_warehouse(self._instance, self._settings)
        own = {"id": self._id, "command": self._command, "run_id": self._run_id, "process": Process.current()}
        own |= {"priority": self._priority, "lease_s": self._lease_s, "wants_lock": wants_lock}
        self._change(lambda lease, now: lease.registered(LockClient(**own, since=now, beat_at=now)))
        self._heart = threading.Thread(target=self._beat, name="lease", daemon=True)
        self._heart.start()

    def _beat(self) -> None:
        """Send heartbeats until the lock is released; a store that cannot be reached now may be at the next one."""
        while not self._is_over.wait(self._lease_s / BEATS_PER_LEASE):
            try:
                self._store.change(lambda lease, now: lease.heard(self._id, now))
            except Exception as error:
                _log.warning("the lease on the warehouse got no heartbeat: %s", _brief(error))

    def _wait(self) -> None:
        until, rest_s, is_told = time.monotonic() + self._timeout_s, FIRST_LOOK_S, False
        while True:
            lease = self._own(self._change(lambda lease, _: lease.acquired(self._id)))
            if lease.holder == self._id:
                return
            patiently(lambda: end_runs_of_the_dead(self._instance), self._lease_s)
            ahead = lease.first
            if time.monotonic() >= until:
                raise WriteLockTimeoutError(
                    f"the warehouse did not come free within {self._timeout_s:g} s; it is held by {ahead}: "
                    "wait for that or stop it"
                )
            if rest_s >= LAST_LOOK_S and not is_told:
                self._say(f"waiting for the warehouse, held by {ahead}")
                is_told = True
            time.sleep(max(0.0, min(rest_s, until - time.monotonic())))
            rest_s = min(2 * rest_s, LAST_LOOK_S)

    def _change(self, change: Change) -> Lease:
        return patiently(lambda: self._store.change(change), self._lease_s)

    def _own(self, lease: Lease) -> Lease:
        if lease.client(self._id) is None:
            raise self._lost()
        return lease

    def _lost(self) -> HealthAssetsError:
        return HealthAssetsError(
            f"this run gave no sign of life for {self._lease_s:g} s (HEALTH_LEASE_S), so it lost the write lock "
            "and nothing of this step was kept; run it again"
        )


def _brief(error: Exception) -> str:
    """The first line of an error; libraries put the statement below it."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def this_command() -> str:
    """The command of this process, as people know it."""
    program = Path(sys.argv[0]).name or "python"
    return f"health-assets {sys.argv[1]}" if sys.argv[1:] else program
