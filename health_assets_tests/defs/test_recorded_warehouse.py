"""A Dagster instance records the runs of one warehouse: those of a second one would show as the same."""

import subprocess
from pathlib import Path

import dagster as dg
import pytest

from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets.defs.write_lock.recorded_warehouse import note_warehouse
from health_assets.warehouse.location import path_of
from health_assets_tests.support.holders import settings
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, forked_command, hours_from, materialize_arguments


def made(folder: Path) -> Project:
    project = Project(folder, None, 6, 24)
    project.write_log("a.jsonl", [line(execution("e1", "a", START))], modified=START)
    return project


def materialize(project: Project, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "DAGSTER_HOME": str(home), "HEALTH_WAREHOUSE": project.warehouse_url,
        "HEALTH_WINDOW_HOURS": "6", "HEALTH_LOOKBACK_HOURS": "24", "HEALTH_SHORT_WINDOW_HOURS": "off",
    }  # fmt: skip
    arguments = materialize_arguments(project, hours_from(START, 1), "error_budget")
    return forked_command(*arguments, environment=environment, folder=project.folder)


def test_the_command_refuses_a_second_warehouse_in_one_dagster_home_and_leaves_it_as_it_was(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    first, second = made(tmp_path / "first"), made(tmp_path / "second")
    assert materialize(first, home).returncode == 0
    refused = materialize(second, home)
    assert refused.returncode == 1
    assert "give each warehouse a DAGSTER_HOME of its own" in refused.stderr
    assert str(first.warehouse_path) in refused.stderr
    assert not second.warehouse_path.exists() or not second.tables()["error_budget"]
    assert materialize(first, home).returncode == 0


def test_a_warehouse_that_was_moved_keeps_its_dagster_home(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    first, second = (settings().model_copy(update={"warehouse": str(tmp_path / name)}) for name in ("a", "b"))
    path_of(first.warehouse).touch()
    note_warehouse(instance, first)
    with pytest.raises(HealthAssetsError, match=r"records the runs of the warehouse .*/a, "):
        note_warehouse(instance, second)
    path_of(first.warehouse).rename(path_of(second.warehouse))
    note_warehouse(instance, second)
    with pytest.raises(HealthAssetsError, match=r"records the runs of the warehouse .*/b, "):
        note_warehouse(instance, first)


def test_a_database_is_the_same_whichever_host_reaches_it(instance: dg.DagsterInstance) -> None:
    note_warehouse(instance, Settings(warehouse="postgresql://one@localhost/health"))
    note_warehouse(instance, Settings(warehouse="postgresql+psycopg://two:secret@db.internal:5433/health"))
    with pytest.raises(HealthAssetsError, match=r"of the warehouse health, and would show those of staging") as refused:
        note_warehouse(instance, Settings(warehouse="postgresql://one:secret@localhost/staging"))
    assert "secret" not in str(refused.value)
