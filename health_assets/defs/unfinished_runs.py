"""Runs of a job that have not ended: schedules and sensors leave their hours to them."""

from collections.abc import Sequence

import dagster as dg

UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def unfinished_runs(instance: dg.DagsterInstance, job_name: str) -> Sequence[dg.DagsterRun]:
    """The runs of a job that have not ended yet."""
    return instance.get_runs(dg.RunsFilter(job_name=job_name, statuses=UNFINISHED))
