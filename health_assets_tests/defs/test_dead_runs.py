"""Runs that Dagster started and whose process died, whatever it was doing: they end, and free their place."""

import time
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.instance.ref import InstanceRef

from health_assets.core.settings import Settings
from health_assets.defs.build import build_definitions
from health_assets.defs.pipeline import pipeline_resource
from health_assets.defs.write_lock import run_owners
from health_assets.defs.write_lock.lease_store import LeaseStore
from health_assets.defs.write_lock.run_owners import (
    REGISTERED_WITHIN_S,
    end_runs_of_the_dead,
    end_runs_that_never_registered,
)
from health_assets.defs.write_lock.write_lock import WriteLock
from health_assets.pipeline.resource import Pipeline
from health_assets_tests.support.projects import in_a_process

FOREVER_S = 600
SETTINGS = Settings(keep_days=30, judge_model="m", judge_url="http://127.0.0.1:9")


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


@dg.job
def of_somebody_else() -> None:
    pass


def _begun(instance: dg.DagsterInstance, job: dg.JobDefinition) -> str:
    return instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED).run_id


def _statuses(instance: dg.DagsterInstance) -> dict[str, dg.DagsterRunStatus]:
    return {run.run_id: run.status for run in instance.get_runs()}


def _is_ours(run: dg.DagsterRun) -> bool:
    return run.job_name == "reads_before_it_writes"


def test_a_run_whose_process_died_before_its_claim_has_failed_after_a_while(instance: dg.DagsterInstance) -> None:
    silent, other = _begun(instance, reads_before_it_writes), _begun(instance, of_somebody_else)
    end_runs_that_never_registered(instance, _is_ours, time.time() + REGISTERED_WITHIN_S - 5)
    assert set(_statuses(instance).values()) == {dg.DagsterRunStatus.STARTED}, "it may still come so far"
    end_runs_that_never_registered(instance, _is_ours, time.time() + REGISTERED_WITHIN_S + 5)
    assert _statuses(instance) == {silent: dg.DagsterRunStatus.FAILURE, other: dg.DagsterRunStatus.STARTED}
    assert LeaseStore(instance.run_storage).read().dead == ()


def test_a_run_that_has_a_claim_is_not_given_up_however_long_it_takes(instance: dg.DagsterInstance) -> None:
    run_id = _begun(instance, reads_before_it_writes)
    with WriteLock(instance, SETTINGS, run_id, "a long run") as write_lock:
        write_lock.announce()
        end_runs_that_never_registered(instance, _is_ours, time.time() + 86_400)
        assert _statuses(instance) == {run_id: dg.DagsterRunStatus.STARTED}


def test_the_late_log_sensor_ends_a_run_that_never_registered(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(raw=tmp_path / "raw", warehouse=str(tmp_path / "health.duckdb"))
    repository = build_definitions(settings).get_repository_def()
    run_id = _begun(instance, repository.get_job("materialize_hours"))
    monkeypatch.setattr(run_owners, "REGISTERED_WITHIN_S", -1.0)
    pipeline = Pipeline(settings=settings)
    with dg.build_sensor_context(instance, repository_def=repository, resources={"pipeline": pipeline}) as context:
        repository.get_sensor_def("late_logs").evaluate_tick(context)
    assert _statuses(instance) == {run_id: dg.DagsterRunStatus.FAILURE}
