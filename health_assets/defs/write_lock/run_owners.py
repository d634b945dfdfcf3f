"""Runs whose process was killed, on whichever host, stay clients of the lease and have no end in Dagster.

What belongs here: removing the client and ending the run. What does not: when a client is dead (`leases`).

A run that was killed would be under way for ever in Dagster, and what waits in Dagster's queue behind it
would wait for ever. Whoever waits for the lease looks after the dead, and so does the late-log sensor, every minute.
"""

from collections.abc import Callable
from datetime import datetime

import dagster as dg

from health_assets.core.processes import Process
from health_assets.defs.write_lock.lease_store import LeaseStore
from health_assets.defs.write_lock.leases import LockClient


def end_runs_of_the_dead(instance: dg.DagsterInstance) -> None:
    """Remove clients that are dead, and note that their runs failed.

    Dagster starts a run that it launched itself again, as `run_retries` says, and one of a command never.
    """
    store = LeaseStore(instance.run_storage)
    # first the client: who comes back after that can write no more, so that what is said of the run stays true
    lease = store.change(lambda lease, now: lease.without_the_dead(now))
    for client in lease.dead:
        _end(instance, client)
    if lease.dead:
        store.change(lambda now_there, _: now_there.settled(lease.dead))


def end_runs_that_never_registered(
    instance: dg.DagsterInstance, is_ours: Callable[[dg.DagsterRun], bool], now_s: float
) -> None:
    """Note that runs failed which began long ago and are no clients: their process died before it registered.

    One that comes to life after all does no harm: it takes the write lock like any other.

    Args:
        instance: the Dagster instance.
        is_ours: whether a run is one that registers.
        now_s: the time, seconds since 1970.
    """
    filters = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING])
    begun = [record for record in instance.get_run_records(filters) if _began_s(record) < now_s - REGISTERED_WITHIN_S]
    if not begun:
        return
    store = LeaseStore(instance.run_storage)
    lease = store.read()
    registered = {client.run_id for client in (*lease.clients, *lease.dead)}
    for record in begun:
        run = record.dagster_run
        if run.run_id not in registered and is_ours(run):
            store.change(lambda now_there, now, run=run: now_there.given_up(_never_registered(run, now)))  # type: ignore[misc]
    end_runs_of_the_dead(instance)


REGISTERED_WITHIN_S = 180.0
"""Longest time from the begin of a run to its registration: as long as Dagster lets a run take to begin."""


def _began_s(record: dg.RunRecord) -> float:
    return record.start_time or record.create_timestamp.timestamp()


def _never_registered(run: dg.DagsterRun, now: datetime) -> LockClient:
    """The client that a run would have been."""
    nobody = Process(host="unknown", space="", pid=0, started="")
    return LockClient(
        id=run.run_id, process=nobody, command=f"the run {run.run_id[:8]} of {run.job_name}", run_id=run.run_id,
        priority=0, lease_s=REGISTERED_WITHIN_S, since=now, beat_at=now, wants_lock=False,
    )  # fmt: skip


def _end(instance: dg.DagsterInstance, client: LockClient) -> None:
    run = instance.get_run_by_id(client.run_id)
    if run is not None and not run.is_finished:
        instance.report_run_failed(run, f"the process of this run was killed or hangs: {client}")
