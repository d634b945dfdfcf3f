"""Hours that were materialized without Dagster are told to it, so that its page shows them as materialized."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from health_assets.cli import dagster_history
from health_assets.cli.dagster_history import report_unseen, report_unseen_here
from health_assets.cli.dagster_home import write_home
from health_assets.core.errors import NoWarehouseError
from health_assets.core.hours import HOUR, HourRange
from health_assets.defs.build import JOB, build_definitions
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import FLEET, Project, hours_from

HOURS = hours_from(START, 3)
LATER = datetime(2026, 6, 8, tzinfo=UTC)
HEALTH = dg.AssetKey("agent_health")


@pytest.fixture
def made(project: Project) -> Project:
    """Three hours that the engine has made, without any Dagster."""
    for hour in HOURS:
        project.write_log(f"{hour:%H}.jsonl", [line(execution(f"{hour:%H}", "a", hour + HOUR / 2))])
    project.materialize(HOURS, only=FLEET)
    return project


def partitions_of(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[str]:
    records = instance.fetch_materializations(key, limit=100).records
    return sorted(record.partition_key for record in records if record.partition_key is not None)


def test_every_hour_of_every_asset_is_told_once(made: Project, instance: dg.DagsterInstance) -> None:
    first = report_unseen(made.settings, instance, LATER)
    assert partitions_of(instance, HEALTH) == ["2026-06-07-00:00", "2026-06-07-01:00", "2026-06-07-02:00"]
    assert partitions_of(instance, dg.AssetKey("executions")) == partitions_of(instance, HEALTH)
    [record] = instance.fetch_materializations(HEALTH, limit=1).records
    assert record.asset_materialization is not None
    assert record.asset_materialization.metadata["dagster/partition_row_count"].value == 1
    assert (first.left_out, first.since) == (0, START)
    assert report_unseen(made.settings, instance, LATER).events == 0
    made.write_log("next.jsonl", [line(execution("next", "a", HOURS.end + HOUR / 2))])
    made.materialize(HourRange.of(HOURS.end), only=FLEET)
    assert report_unseen(made.settings, instance, LATER).since == HOURS.end


def test_dagster_counts_them_as_materialized_partitions(made: Project, instance: dg.DagsterInstance) -> None:
    report_unseen(made.settings, instance, LATER)
    partitions = build_definitions(made.settings, HOURS).resolve_assets_def("agent_health").partitions_def
    assert partitions is not None
    found = instance.get_status_by_partition(HEALTH, partitions.get_partition_keys(), partitions)
    assert found is not None
    assert {status.value for status in found.values() if status} == {"MATERIALIZED"}
    assert len(found) == len(HOURS)


def test_what_dagster_made_itself_is_not_told_again(made: Project, instance: dg.DagsterInstance) -> None:
    job = build_definitions(made.settings, HOURS, ["agent_health_model"]).resolve_job_def(JOB)
    job.execute_in_process(instance=instance, partition_key="2026-06-07-01:00")
    report_unseen(made.settings, instance, LATER)
    assert partitions_of(instance, HEALTH) == ["2026-06-07-00:00", "2026-06-07-01:00", "2026-06-07-02:00"]


def test_the_hour_that_runs_is_left_to_dagster(made: Project, instance: dg.DagsterInstance) -> None:
    report_unseen(made.settings, instance, HOURS.end - HOUR / 2)
    assert partitions_of(instance, HEALTH) == ["2026-06-07-00:00", "2026-06-07-01:00"]


def test_of_many_the_newest_are_told_and_the_others_are_counted(
    made: Project, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dagster_history, "MOST_EVENTS", 10)
    reported = report_unseen(made.settings, instance, LATER)
    assert (reported.events, reported.since) == (10, HOURS.end - HOUR)
    assert reported.left_out > 0
    assert "10 hours of assets since 2026-06-07T02 that were materialized without it; it lacks" in str(reported)


def test_without_a_warehouse_there_is_nothing_to_tell(
    project: Project, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoWarehouseError):
        report_unseen(project.settings, instance, LATER)
    monkeypatch.chdir(tmp_path)
    assert report_unseen_here(project.settings, LATER) is None


def test_a_dagster_of_another_warehouse_is_left_alone(
    made: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    write_home(home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    assert "Dagster was told of" in str(report_unseen_here(made.settings, LATER))
    other = made.copied(tmp_path / "other")
    told = report_unseen_here(other.settings, LATER)
    assert told is not None
    assert "give each warehouse a DAGSTER_HOME of its own" in told


def test_a_warehouse_that_cannot_be_read_is_told_and_stops_nothing(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.warehouse_path.write_text("no database")
    monkeypatch.chdir(tmp_path)
    told = report_unseen_here(replace(project, lock_timeout_s=0.1).settings, LATER)
    assert told is not None
    assert told.startswith("Dagster may show hours as never materialized that are: cannot open the warehouse")
