"""Pieces of work that executors do: their rows are in the table once, and what they tell comes back."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from pyspark.sql.connect.dataframe import DataFrame

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.warehouse.engines.spark import executors, lake_session, store
from health_assets.warehouse.engines.spark.connect import connected, end
from health_assets.warehouse.engines.spark.executor_versions import program
from health_assets.warehouse.engines.spark.executors import inserted, understood
from health_assets.warehouse.engines.spark.lake_place import ID_FILE, LakePlace
from health_assets.warehouse.session import InsertArrow
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.lakes_made import rows_of_hours
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.spark_servers import apache_spark, needs_apache_spark, sail

DAY = HourRange(START, START + 24 * HOUR)


@dataclass
class Told:
    """What a piece of work tells."""

    number: int
    hour: datetime
    digests: dict[str, int]


def made_hours(number: int, insert: InsertArrow) -> Told:
    """As many rows as the number says, one for each hour."""
    hours = [START + place * HOUR for place in range(number)]
    insert("raw_files_of_nobody" if number < 0 else "system_health", rows_of_hours(hours))
    if number == 13:
        raise HealthAssetsError("thirteen cannot be; take another number")
    return Told(number, START, {"digest": 2**64 - number})


@pytest.fixture(scope="module", params=["sail", pytest.param("spark", marks=[pytest.mark.nightly, needs_apache_spark])])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with sail() if request.param == "sail" else apache_spark(tmp_path_factory.mktemp("spark")) as made:
        yield made


@pytest.fixture
def warehouse(url: str, tmp_path: Path) -> Warehouse:
    return Warehouse(url, lake=str(tmp_path / "lake"), ledger=str(tmp_path / "ledger.duckdb"))


def test_rows_of_all_pieces_are_there_and_what_they_told_comes_back_in_order(warehouse: Warehouse) -> None:
    with warehouse.write() as session:
        told = session.insert_from_each([3, 0, 5, 1], made_hours, Told)
        assert told == [Told(number, START, {"digest": 2**64 - number}) for number in (3, 0, 5, 1)]
    with warehouse.read() as session:
        counts = session.counts_by_hour("system_health", DAY)
        assert counts == {START + place * HOUR: sum(number > place for number in (3, 5, 1)) for place in range(5)}
        assert session.latest_hour("system_health", DAY) == START + 4 * HOUR


def test_no_piece_is_no_row(warehouse: Warehouse) -> None:
    with warehouse.write() as session:
        assert session.insert_from_each([], made_hours, Told) == []
        assert session.count_hours("system_health", DAY) == 0


def test_what_a_lost_executor_wrote_does_not_count(warehouse: Warehouse, tmp_path: Path) -> None:
    with warehouse.write() as session:
        place = LakePlace(str(tmp_path / "lake"))
        inserted(3, made_hours, place, str(place.text_of(ID_FILE)), program())  # whose answer nobody got
        session.insert_from_each([3], made_hours, Told)
        assert session.count_hours("system_health", DAY) == 3
    assert len(list((tmp_path / "lake" / "system_health").iterdir())) == 2


def test_an_executor_that_does_not_see_the_lake_is_refused(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a machine where nobody has mounted it: what it wrote would be on its own disk."""
    elsewhere = LakePlace(str(tmp_path / "lake on another disk"))
    monkeypatch.setattr(LakePlace, "__reduce__", lambda _: (LakePlace, (elsewhere.name,)), raising=False)
    with pytest.raises(HealthAssetsError, match="an executor does not see the lake"), warehouse.write() as session:
        session.insert_from_each([3], made_hours, Told)
    assert not Path(elsewhere.name).exists()


def test_rows_of_an_executor_that_this_machine_does_not_see_are_not_counted(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where an executor has a copy of the lake, with the file by which it is known."""
    with warehouse.write():
        pass
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    elsewhere = str(tmp_path / "copy")
    monkeypatch.setattr(LakePlace, "__reduce__", lambda _: (LakePlace, (elsewhere,)), raising=False)
    said = "an executor wrote 3 rows of system_health, and 0 of them are in the lake"
    with pytest.raises(HealthAssetsError, match=said), warehouse.write() as session:
        session.insert_from_each([3], made_hours, Told)


def test_many_pieces_go_out_with_several_statements(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "BYTES_AT_ONCE", 12)
    sent: list[int] = []
    answered = executors._answered
    monkeypatch.setattr(
        executors, "_answered", lambda spark, some, do: sent.append(len(some)) or answered(spark, some, do)
    )
    told = warehouse.each([3, 0, 5, 1, 2], told_of, Told)
    assert [one.digests for one in told] == [{"digest": 2**64 - number} for number in (3, 0, 5, 1, 2)]
    assert sum(sent) == 5 and len(sent) > 1


def test_a_cluster_that_does_not_answer_for_each_piece_is_a_fault(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_arrow = DataFrame.mapInArrow
    for changed in (lambda frame: frame.limit(2), lambda frame: frame.union(frame)):  # one is missing, all come twice
        with monkeypatch.context() as broken:
            broken.setattr(DataFrame, "mapInArrow", lambda *given, changed=changed: changed(in_arrow(*given)))
            with pytest.raises(RuntimeError, match=r"the cluster answered \[.*\] of 3 pieces of work"):
                warehouse.each([3, 0, 5], told_of, Told)


def one_row_each(rows: pa.Table) -> pa.Table:
    """The hours."""
    return rows.select(["hour"])


def test_a_function_of_rows_is_not_called_by_another_program(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_session, "program", lambda: {**program(), "duckdb": "1"})
    with (
        pytest.raises(HealthAssetsError, match=r"orders duckdb 1; install the same on both"),
        warehouse.write() as session,
    ):
        session.insert_arrow("system_health", rows_of_hours([START]))
        session.grouped(session.hours_of("system_health", DAY).select("hour"), ["hour"], ["hour"], one_row_each)


def test_what_a_user_can_mend_is_told_as_on_one_machine(warehouse: Warehouse) -> None:
    with warehouse.write():
        pass
    said = r"^thirteen cannot be; take another number$"
    with pytest.raises(HealthAssetsError, match=said), warehouse.write() as session:
        session.insert_from_each([2, 13], made_hours, Told)
    with warehouse.read() as session:
        assert session.count_hours("system_health", DAY) == 0


def told_of(number: int) -> Told:
    """A piece of work without rows."""
    if number == 13:
        raise HealthAssetsError("thirteen cannot be; take another number")
    return Told(os.getpid(), START, {"digest": 2**64 - number})


def test_work_that_needs_no_table_is_done_before_there_is_a_warehouse(warehouse: Warehouse, tmp_path: Path) -> None:
    assert warehouse.is_distributed
    told = warehouse.each([3, 0, 5, 1], told_of, Told)
    assert [one.digests for one in told] == [{"digest": 2**64 - number} for number in (3, 0, 5, 1)]
    with pytest.raises(HealthAssetsError, match=r"^thirteen cannot be; take another number$"):
        warehouse.each([2, 13], told_of, Told)
    assert not warehouse.exists and not [*tmp_path.iterdir()]


def test_no_piece_asks_no_cluster(tmp_path: Path) -> None:
    away = Warehouse("sc://127.0.0.1:1", lake=str(tmp_path), ledger=str(tmp_path / "ledger.duckdb"))
    assert away.each([], told_of, Told) == []
    with pytest.raises(HealthAssetsError, match=r"cannot connect to Spark at 127\.0\.0\.1:1"):
        away.each([1], told_of, Told)


def test_a_database_has_work_done_in_this_process(tmp_path: Path) -> None:
    here = Warehouse(str(tmp_path / "health.duckdb"))
    assert not here.is_distributed
    assert here.each([2, 4], told_of, Told) == [told_of(2), told_of(4)]
    assert not here.exists


def test_a_fault_of_the_program_is_loud(warehouse: Warehouse) -> None:
    said = "failed, nothing of this step was kept: .*raw_files_of_nobody"
    with pytest.raises(HealthAssetsError, match=said), warehouse.write() as session:
        session.insert_from_each([-1], made_hours, Told)


# -- what comes back -----------------------------------------------------------------------------------------------------


def answer(**changes: object) -> bytes:
    """The answer of an executor, with some of its words changed."""
    own = {"told": 1, "written": [], **changes}
    return json.dumps(own).encode()


def test_an_executor_with_another_program_is_refused(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    ordered = {**program(), "duckdb": "1"}
    monkeypatch.setattr(lake_session, "program", lambda: ordered)
    monkeypatch.setattr(store, "program", lambda: ordered)
    said = rf"^an executor has duckdb {version('duckdb')}, and the machine that gives the orders duckdb 1; install the same"
    with pytest.raises(HealthAssetsError, match=said), warehouse.write() as session:
        session.insert_from_each([3], made_hours, Told)
    with pytest.raises(HealthAssetsError, match=said):
        warehouse.each([3], told_of, Told)


@pytest.mark.parametrize(
    ("table", "folder"),
    [
        ("executions", "../../home"),
        ("executions", "executions/../spans"),
        ("executions", f"spans/{'0' * 32}"),
        ("raw_files", f"raw_files/{'0' * 32}"),
    ],
)
def test_an_executor_that_names_another_folder_is_refused(table: str, folder: str) -> None:
    good = {"table": "executions", "folder": f"executions/{'0' * 32}", "hours": [], "rows": 0}
    assert understood(answer(written=[good]), int).written
    with pytest.raises(ValueError, match="an executor names the folder"):
        understood(answer(written=[{"table": table, "folder": folder, "hours": [], "rows": 0}]), int)


def test_each_piece_has_a_task_of_its_own(url: str) -> None:
    spark = connected(url)
    try:
        numbers = spark.range(0, 16, 1, 16).mapInArrow(count_rows, "rows bigint").toArrow()
    finally:
        end(spark)
    assert sorted(numbers["rows"].to_pylist(), reverse=True)[:16] == [1] * 16


def count_rows(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """The rows of a task."""
    yield pa.record_batch({"rows": [sum(batch.num_rows for batch in batches)]})
