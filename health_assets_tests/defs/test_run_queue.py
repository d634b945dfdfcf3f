"""What Dagster's daemon launches next, with the configuration that we ship, and how much its runs say on the console."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon
from dagster._loggers import default_system_loggers

from health_assets.defs.specs import ONLY_STALE_TAG
from health_assets.defs.write_lock.write_lock import URGENT
from health_assets_tests.support.projects import REPOSITORY

OWN = yaml.safe_load((REPOSITORY / "dagster.yaml").read_text(encoding="utf-8"))
ORIGIN = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), "here").get_job_origin("work")
BACKFILL = {"dagster/backfill": "first"}
LATE = {ONLY_STALE_TAG: "true"}
BY_HAND: dict[str, str] = {}
MOST_RUNS = 4


@dg.job
def work() -> None: ...


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    overrides = {name: OWN[name] for name in ("concurrency", "run_monitoring", "run_retries")}
    with dg.instance_for_test(overrides=overrides, temp_dir=str(tmp_path)) as made:
        yield made


def add(instance: dg.DagsterInstance, status: dg.DagsterRunStatus, tags: dict[str, str]) -> str:
    return instance.create_run_for_job(work, status=status, tags=tags, remote_job_origin=ORIGIN).run_id


def launched_next(instance: dg.DagsterInstance) -> list[str]:
    daemon = QueuedRunCoordinatorDaemon(interval_seconds=1)
    runs = daemon._get_runs_to_dequeue(instance, instance.get_concurrency_config(), None)
    return [run.run_id for run in runs]


def test_the_newest_hour_is_launched_first_beside_a_backfill_and_a_second_backfill_is_not(
    instance: dg.DagsterInstance,
) -> None:
    add(instance, dg.DagsterRunStatus.STARTED, BACKFILL)
    add(instance, dg.DagsterRunStatus.QUEUED, {"dagster/backfill": "second"})
    late = add(instance, dg.DagsterRunStatus.QUEUED, LATE)
    newest = add(instance, dg.DagsterRunStatus.QUEUED, URGENT)
    assert launched_next(instance) == [newest, late]


def test_runs_say_nothing_at_debug_on_the_console_of_which_every_partition_would_be_a_line(tmp_path: Path) -> None:
    with dg.instance_for_test(overrides={"python_logs": OWN["python_logs"]}, temp_dir=str(tmp_path)) as instance:
        assert [config["log_level"] for _, config in default_system_loggers(instance)] == ["INFO"]
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:  # without the part, so that the test can fail
        assert [config["log_level"] for _, config in default_system_loggers(instance)] == ["DEBUG"]


def test_backfills_and_late_logs_however_many_leave_places_for_the_newest_hour(instance: dg.DagsterInstance) -> None:
    waiting = [add(instance, dg.DagsterRunStatus.QUEUED, tags) for tags in 4 * [LATE, BACKFILL]]
    assert launched_next(instance) == waiting[:2], "one of each"
    for tags in (LATE, BACKFILL):
        add(instance, dg.DagsterRunStatus.STARTED, tags)
    newest = add(instance, dg.DagsterRunStatus.QUEUED, URGENT)
    assert launched_next(instance) == [newest]


def test_in_a_queue_that_runs_launched_by_hand_have_filled_the_newest_hour_is_first_once_one_ends(
    instance: dg.DagsterInstance,
) -> None:
    first, *_ = (add(instance, dg.DagsterRunStatus.STARTED, BY_HAND) for _ in range(MOST_RUNS))
    add(instance, dg.DagsterRunStatus.QUEUED, BY_HAND)
    newest = add(instance, dg.DagsterRunStatus.QUEUED, URGENT)
    assert launched_next(instance) == []
    run = instance.get_run_by_id(first)
    assert run is not None
    instance.report_run_canceled(run)
    assert launched_next(instance) == [newest]
