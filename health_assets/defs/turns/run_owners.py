"""Runs whose process was killed, on whichever host, leave a claim on the lease and a run without an end.

What belongs here: taking the claim away and ending the run. What does not: who counts as dead (`leases`).

A run that was killed would be under way for ever in Dagster, and what waits in Dagster's queue behind it
would wait for ever. Whoever waits for the lease looks after the dead, and so does the late-log sensor, every minute.
"""

import dagster as dg

from health_assets.defs.turns.lease_store import LeaseStore
from health_assets.defs.turns.leases import Claim


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


def _end(instance: dg.DagsterInstance, claim: Claim) -> None:
    run = instance.get_run_by_id(claim.run_id)
    if run is not None and not run.is_finished:
        instance.report_run_failed(run, f"the process of this run was killed or hangs: {claim}")
