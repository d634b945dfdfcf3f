"""An hour that was written by many statements is put together at the end of the session that left it so."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import pytest

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline import executor_sharding
from health_assets.warehouse.engines.spark import compaction, lake_session
from health_assets.warehouse.engines.spark.compaction import MOST_FOLDERS
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.lakes_made import rows_of_hours
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import (
    RECORD_TABLES,
    Project,
    assert_same_tables,
    assert_tables_equal_to_9_digits,
    hours_from,
)
from health_assets_tests.support.spark_servers import apache_spark, needs_apache_spark, sail

TABLE = "executions"
HOURS = hours_from(START, 5)
EVERY_OTHER = [START, START + 2 * HOUR, START + 3 * HOUR]


@pytest.fixture(scope="module", params=["sail", pytest.param("spark", marks=[pytest.mark.nightly, needs_apache_spark])])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with sail() if request.param == "sail" else apache_spark(tmp_path_factory.mktemp("spark")) as made:
        yield made


@pytest.fixture(scope="module")
def records(url: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("compaction"), engine="spark", url=url)
    project.write_log("a.jsonl", [line(execution(f"{hour}", "a", hour)) for hour in HOURS])
    project.ingest(HOURS)
    return project


def folder_counts(warehouse: Warehouse) -> list[int]:
    """How many folders each hour has."""
    with warehouse.read() as session:
        found = session.query("SELECT hour, count(*) FROM lake_hours WHERE table_name = ? GROUP BY hour", [TABLE])
    return [dict(found)[hour] for hour in HOURS]


def files_of(project: Project, hours: Sequence[datetime]) -> list[list[Path]]:
    """The files of each hour that count."""
    with project.warehouse.read() as session:
        folders = dict(session.query("SELECT hour, folder FROM lake_hours WHERE table_name = ?", [TABLE]))
    return [[*(project.folder / "lake" / folders[hour]).glob("*.parquet")] for hour in hours]


def insert_again(project: Project, times: int) -> None:
    """Insert the rows of every other hour so often, under other names."""
    with project.warehouse.write() as session:
        rows = session.arrow(session.hours_of(TABLE, HourRange.of(START)))
        for time in range(times):
            for hour in EVERY_OTHER:
                moved = rows.to_pylist()[0] | {"hour": hour, "execution_id": f"{hour} {time}"}
                session.insert_arrow(TABLE, rows.from_pylist([moved], schema=rows.schema))


def test_an_hour_of_many_folders_gets_one_and_keeps_its_rows(
    records: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = records.copied(tmp_path / "project")
    with monkeypatch.context() as as_before:
        as_before.setattr(lake_session, "compact", lambda *_: None)
        insert_again(project, MOST_FOLDERS)
    many = MOST_FOLDERS + 1
    assert folder_counts(project.warehouse) == [many, 1, many, many, 1]
    monkeypatch.setattr(compaction, "HOURS_AT_ONCE", 1)
    with project.warehouse.write() as session:
        session.insert("executions", session.hours_of(TABLE, HourRange.of(START + HOUR)))
    assert folder_counts(project.warehouse) == [many, 2, many, many, 1], "hours that nobody touched stay as they are"
    expected = project.tables(names=[TABLE])
    with project.warehouse.write() as session:
        session.insert_arrow(TABLE, rows_of_hours(EVERY_OTHER, TABLE))
    assert folder_counts(project.warehouse) == [1, 2, 1, 1, 1]
    assert set(map(len, files_of(project, EVERY_OTHER))) == {1}
    found = project.tables(names=[TABLE])[TABLE]
    assert len(found) == len(expected[TABLE]) + len(EVERY_OTHER)
    assert_same_tables({TABLE: [row for row in found if row["execution_id"] is not None]}, expected)


def test_whose_turn_it_is_is_asked_when_nothing_is_left_to_do(
    records: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Putting hours together takes minutes, in which the lock may be lost."""
    done: list[str] = []

    class Turns:
        def take(self) -> None:
            done.append("taken")

        def check(self) -> None:
            done.append("checked")

    project = records.copied(tmp_path / "project")
    compact = lake_session.compact
    monkeypatch.setattr(lake_session, "compact", lambda *given: done.append("put together") or compact(*given))
    with Warehouse.of(project.settings, guard=Turns()).write():
        done.append("written")
    assert done == ["taken", "written", "put together", "checked"]


def test_many_files_that_are_read_apart_leave_few_folders(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_sharding, "FILES_PER_SHARD", 1)
    monkeypatch.setattr(compaction, "MOST_FOLDERS", 3)
    projects = [Project(tmp_path / "spark", engine="spark", url=url), Project(tmp_path / "duckdb")]
    for project in projects:
        for number in range(4):
            hours = list(HOURS)[: 5 if number else 4]
            records = [execution(f"{number} {hour}", "a", hour) for hour in hours]
            project.write_log(f"{number}.jsonl", map(line, records))
        project.ingest(HOURS)
    assert folder_counts(projects[0].warehouse) == [1, 1, 1, 1, 3]
    assert_tables_equal_to_9_digits(*(project.tables(names=RECORD_TABLES) for project in projects))
