"""Dagster's own runs and events in PostgreSQL, with the configuration that the documentation gives."""

from pathlib import Path

import dagster as dg
import psycopg
import pytest
import yaml
from dagster._core.instance.ref import InstanceRef
from dagster_postgres import PostgresRunStorage

from health_assets.cli.running import run_hours
from health_assets.core.hours import HOUR, HourRange
from health_assets.defs.build import JOB
from health_assets_tests.support import postgres_server
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import REPOSITORY, Project

DOCUMENTED = REPOSITORY / "docs" / "dagster-postgres.yaml"


def test_an_instance_with_the_documented_storage_materializes_hours_and_remembers_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_bytes(DOCUMENTED.read_bytes())
    project = Project(tmp_path / "project", engine="postgres")
    project.write_log("a.jsonl", [line(execution(f"e{n}", "a", START)) for n in range(3)])
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    storage = postgres_server.empty_database().replace("postgresql:", "postgresql+psycopg2:")
    monkeypatch.setenv("DAGSTER_PG_URL", storage)
    monkeypatch.setenv("HEALTH_WAREHOUSE", project.url)
    outcome = run_hours(project.settings, HourRange(START - HOUR, START + HOUR), lambda _: None, ["agent_health_model"])
    assert outcome.error is None
    assert [row["n"] for row in project.rows("agent_health", HourRange.of(START))] == [3]
    with dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home))) as instance:
        assert isinstance(instance.run_storage, PostgresRunStorage)
        [run] = instance.get_runs()
        assert (run.job_name, run.status) == (JOB, dg.DagsterRunStatus.SUCCESS)
        assert instance.get_latest_materialization_event(dg.AssetKey("agent_health")) is not None
        with psycopg.connect(storage.replace("+psycopg2", "")) as connection:
            checks = connection.execute("SELECT asset_key, check_name FROM asset_check_executions").fetchall()
            assert checks and len(checks) == len(set(checks)), "a run of two hours has one record of each check"
            instance.delete_run(run.run_id)
            assert connection.execute("SELECT count(*) FROM asset_check_executions").fetchone() == (0,)


def test_all_but_the_storage_is_as_in_the_configuration_for_one_machine() -> None:
    documented, own = (
        yaml.safe_load(path.read_text(encoding="utf-8")) for path in (DOCUMENTED, REPOSITORY / "dagster.yaml")
    )
    for storage in ("run_storage", "event_log_storage", "schedule_storage"):
        assert documented.pop(storage)["config"] == {"postgres_url": {"env": "DAGSTER_PG_URL"}}
        del own[storage]
    assert documented == own
