"""Runs whose process was killed, on whichever host, leave a claim on the lease and a run without an end.

What belongs here: taking the claim away and ending the run. What does not: when a claim is dead (`leases`).

A run that was killed would be under way for ever in Dagster, and what waits in Dagster's queue behind it
would wait for ever. Whoever waits for the lease looks after the dead, and so does the late-log sensor, every minute.
"""

from collections.abc import Callable
from datetime import datetime

import dagster as dg

from health_assets.core.processes import Process
from health_assets.defs.write_lock.lease_store import LeaseStore
from health_assets.defs.write_lock.leases import Claim


def end_runs_of_the_dead(instance: dg.DagsterInstance) -> None:
    """Take claims away whose owners are dead, and note that their runs failed.

    Dagster starts a run that it launched itself again, as `run_retries` says, and one of a command never.
    """
    store = LeaseStore(instance.run_storage)
    # first the claim: who comes back after that can write no more, so that what is said of the run stays true
    lease = store.change(lambda lease, now: lease.without_the_dead(now))
    for claim in lease.dead:
        _end(instance, claim)
    if lease.dead:
        store.change(lambda now_there, _: now_there.settled(lease.dead))


def end_runs_that_never_claimed(
    instance: dg.DagsterInstance, is_ours: Callable[[dg.DagsterRun], bool], now_s: float
) -> None:
    """Note that runs failed which began long ago and have no claim: their process died before it made one.

    One that comes to life after all does no harm: it takes the write lock like any other.

    Args:
        instance: the Dagster instance.
        is_ours: whether a run is one that makes a claim.
        now_s: the time, seconds since 1970.
    """
    filters = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING])
    begun = [record for record in instance.get_run_records(filters) if _began_s(record) < now_s - CLAIMED_WITHIN_S]
    if not begun:
        return
    store = LeaseStore(instance.run_storage)
    lease = store.read()
    claimed = {claim.run_id for claim in (*lease.claims, *lease.dead)}
    for record in begun:
        run = record.dagster_run
        if run.run_id not in claimed and is_ours(run):
            store.change(lambda now_there, now, run=run: now_there.given_up(_never_made(run, now)))  # type: ignore[misc]
    end_runs_of_the_dead(instance)


CLAIMED_WITHIN_S = 180.0
"""Longest time from the begin of a run to its claim: as long as Dagster lets a run take to begin."""


def _began_s(record: dg.RunRecord) -> float:
    return record.start_time or record.create_timestamp.timestamp()


def _never_made(run: dg.DagsterRun, now: datetime) -> Claim:
    """The claim that a run would have made."""
    nobody = Process(host="unknown", space="", pid=0, started="")
    return Claim(
        id=run.run_id, process=nobody, command=f"the run {run.run_id[:8]} of {run.job_name}", run_id=run.run_id,
        priority=0, lease_s=CLAIMED_WITHIN_S, since=now, beat_at=now, contends=False,
    )  # fmt: skip


def _end(instance: dg.DagsterInstance, claim: Claim) -> None:
    run = instance.get_run_by_id(claim.run_id)
    if run is not None and not run.is_finished:
        instance.report_run_failed(run, f"the process of this run was killed or hangs: {claim}")
