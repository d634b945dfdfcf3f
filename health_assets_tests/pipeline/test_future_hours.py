"""Hours that have not begun, which older versions materialized: the newest hour that has begun is shown all the same."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from health_assets.apps.alerts.rules import HourLate
from health_assets.apps.report.blocks import report_hours
from health_assets.apps.serving.reader_process import read_newest, read_session
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.defs.build import FRESHNESS_JOB
from health_assets.systems.model_health.choice import best_model
from health_assets.systems.stale_partitions import left_behind
from health_assets_tests.defs.test_dagster_runs import sensor_tick
from health_assets_tests.support.alerts_made import look
from health_assets_tests.support.dagster_world import QUIET, World
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import FLEET, Project, declared_as_made, forked_command, hours_from

HOURS = hours_from(START, 2)
NOW = HOURS.end
STEPS = (
    *FLEET, "now_components", "agent_now", "state_components", "agent_changes", "agent_health_state", "model_components",
    "model_health", "trace_risks", "session_scores",
)  # fmt: skip
FUTURE = HourRange.of(datetime(2099, 1, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Two hours, and one of the future that was made after them."""
    project = Project(tmp_path_factory.mktemp("future"), {"agents": {"listed": {}}})
    called = {"type": "model_call", "call_id": "c", "model": "poor", "ended_at": START.isoformat(), "status": "failure"}
    records = [execution("e", "planner", START, session_id="monday", confidence=0.5), called]
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(HOURS, only=STEPS)
    project.materialize(FUTURE, only=STEPS)
    return project


def test_the_endpoint_serves_the_newest_hour_that_has_begun(made: Project, tmp_path: Path) -> None:
    facts = read_newest(made.settings, tmp_path, None, NOW)["snapshot"]
    assert facts is not None
    assert facts["hour"] == (HOURS.end - HOUR).isoformat()
    assert facts["model_hour"] == (HOURS.end - HOUR).isoformat()
    running = read_newest(made.settings, tmp_path, None, NOW - HOUR / 2)["snapshot"]
    assert running is not None
    assert running["hour"] == (HOURS.end - HOUR).isoformat(), "the running hour"
    begun = read_newest(made.settings, tmp_path, None, NOW - 1.5 * HOUR)["snapshot"]
    assert begun is not None
    assert begun["hour"] == START.isoformat()
    later = read_newest(made.settings, tmp_path, None, FUTURE.end)["snapshot"]
    assert later is not None
    assert later["hour"] == FUTURE.start.isoformat()
    found = read_session(made.settings, "monday", NOW)
    assert found is not None
    assert found["answer"]["session_id"] == "monday"
    assert read_session(made.settings, "monday", FUTURE.end) is None


def test_the_best_model_is_that_of_the_newest_hour_that_has_begun(made: Project) -> None:
    assert best_model(made.warehouse, ["poor", "unknown"], NOW) == "unknown"
    assert best_model(made.warehouse, ["poor", "unknown"], FUTURE.end) == "poor", "of which nothing is known there"


def test_no_run_is_told_to_make_hours_of_the_future_too(made: Project) -> None:
    made.write_log("late.jsonl", [line(execution("late", "planner", START))])
    made.materialize(HourRange.of(START), only=STEPS)
    with declared_as_made(made.pipeline), made.warehouse.read() as session:
        found = left_behind(session, HourRange.of(START), (), made.settings, NOW)
        running = left_behind(session, HourRange.of(START), (), made.settings, NOW - HOUR / 2)
        hours = report_hours(session, made.settings, None, NOW - 1.5 * HOUR)
    assert found == [HourRange.of(START + HOUR)]
    assert running == []
    assert hours.end == START + HOUR


def test_an_hour_that_is_missing_is_alerted_with_the_newest_that_is_over(made: Project) -> None:
    watched = look(made.warehouse_path, [HourLate()], now=HOURS.end + 10 * HOUR)
    reasons = [incident.reason for incident in watched.opened if "in time" in incident.reason]
    assert len(reasons) == 1
    assert "2026-06-07 01:00" in reasons[0]
    assert "2099" not in reasons[0]


def test_dagsters_check_and_sensor_know_no_hour_of_the_future(made: Project, instance: dg.DagsterInstance) -> None:
    world = World(Settings(raw=made.raw, targets=made.targets_path, warehouse=made.warehouse_url))
    job = world.definitions().resolve_job_def(FRESHNESS_JOB)
    result = job.execute_in_process(instance=instance, run_config=QUIET, raise_on_error=False)
    (found,) = result.get_asset_check_evaluations()
    assert found.metadata["newest_materialized_hour"].value == "2026-06-07-01:00"
    assert all("2099" not in str(request.tags) for request in sensor_tick(world, instance).run_requests or [])


def test_the_command_refuses_them(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("e", "planner", START))])
    arguments = ["materialize", "--raw", str(project.raw), "--warehouse", project.warehouse_url, "--from", "2099-01-01"]
    done = forked_command(*arguments, folder=project.folder)
    assert done.returncode == 1
    assert "2099-01-01T00 has not begun yet" in done.stderr
    assert not project.has_warehouse
