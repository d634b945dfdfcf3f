"""One command starts a Spark on this machine and makes the demo's tables on it, which are those of DuckDB."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from health_assets.cli.demo import Demo
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets_tests.support.projects import Project, assert_tables_equal_to_9_digits, forked_command
from health_assets_tests.support.spark_servers import sail


@pytest.mark.nightly
def test_the_demo_is_made_on_a_spark_that_the_command_starts_and_equals_that_of_duckdb(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "demo")
    done = forked_command("demo", "--folder", str(demo.folder), "--spark", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pyspark" not in done.stderr
    assert not demo.warehouse.exists() and demo.ledger.exists() and any(demo.lake.iterdir())
    with sail() as url:
        spark = _project(demo, tmp_path / "spark", engine="spark", url=url, ledger=str(demo.ledger), lake=demo.lake)
        found = spark.tables()
        [(first, last)] = spark.query("SELECT min(hour), max(hour) FROM partition_states")
    duckdb = _project(demo, tmp_path / "duckdb")
    duckdb.materialize(HourRange(first, last + HOUR))
    assert_tables_equal_to_9_digits(found, duckdb.tables())
    assert found["agent_health"]


def _project(demo: Demo, folder: Path, lake: Path | None = None, **more: str) -> Project:
    """A project about the demo's logs and targets."""
    project = Project(folder, **more)
    project.raw.rmdir()
    project.raw = demo.raw
    project.targets_path.write_bytes(demo.targets.read_bytes())
    project.targets = {}
    if lake is not None:
        (folder / "lake").symlink_to(lake)
    return project


def test_a_new_demo_removes_the_lake_of_an_earlier_one_and_no_lake_of_others(tmp_path: Path) -> None:
    demo, end = Demo(tmp_path / "demo"), floor_hour(datetime.now(UTC))
    demo.make_samples(end)
    part = demo.lake / "executions" / "x" / "hour_folder=2026060700" / "part-0.parquet"
    part.parent.mkdir(parents=True)
    part.touch()
    demo.ledger.touch()
    demo.make_samples(end)
    assert not part.exists() and not demo.ledger.exists()
    demo.targets.unlink()
    part.touch()
    for path in sorted(demo.raw.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(HealthAssetsError, match="that no demo made"):
        demo.make_samples(end)
    assert part.exists()
