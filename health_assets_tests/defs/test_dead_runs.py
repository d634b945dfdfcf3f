"""Runs that Dagster started and whose process died, whatever it was doing: they end, and free their place."""

import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.instance.ref import InstanceRef

from health_assets.core.settings import Settings
from health_assets.defs.build import build_definitions
from health_assets.defs.pipeline import Pipeline, pipeline_resource
from health_assets.defs.turns.lease_store import LeaseStore
from health_assets.defs.turns.run_owners import end_runs_of_the_dead
from health_assets_tests.support.dagster_world import batching_instance
from health_assets_tests.support.projects import in_a_process

FOREVER_S = 600
SETTINGS = Settings(keep_days=30, judge_model="m", judge_url="http://127.0.0.1:9")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with batching_instance(tmp_path) as made:
        yield made


@dg.op(required_resource_keys={"pipeline"})
def read_long() -> None:
    Path("reading").touch()
    time.sleep(FOREVER_S)


@dg.job(resource_defs={"pipeline": pipeline_resource(Pipeline(settings=SETTINGS))})
def reads_before_it_writes() -> None:
    read_long()


def _run(ref: InstanceRef) -> None:
    with dg.DagsterInstance.from_ref(ref) as instance:
        reads_before_it_writes.execute_in_process(instance=instance)


def test_a_run_that_is_killed_before_it_writes_has_failed_at_the_next_look(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    process = in_a_process(_run, instance.get_ref())
    while not Path("reading").exists():
        assert process.is_alive()
        time.sleep(0.02)
    end_runs_of_the_dead(instance)
    [run] = instance.get_runs()
    assert run.status == dg.DagsterRunStatus.STARTED
    lease = LeaseStore(instance.run_storage).read()
    assert lease.first is None, "nobody has to wait for a run that does not write"
    process.kill()
    process.join()
    end_runs_of_the_dead(instance)
    [run] = instance.get_runs()
    assert run.status == dg.DagsterRunStatus.FAILURE


def test_every_job_is_announced_when_it_starts() -> None:
    jobs = build_definitions(SETTINGS).resolve_all_job_defs()
    assert {"prune_run_history", "prune_old_hours", "judge_safety", "survey_agents"} <= {job.name for job in jobs}
    for job in jobs:
        assert "pipeline" in job.get_required_resource_defs(), job.name
