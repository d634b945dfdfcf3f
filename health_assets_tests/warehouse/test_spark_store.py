"""A warehouse on Spark refuses what would read as nothing: another lake, a wrong pair, a URL that it cannot read."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange
from health_assets.warehouse.engines.spark import store
from health_assets.warehouse.engines.spark.connect import connected, end
from health_assets.warehouse.engines.spark.lake_place import LakePlace
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support import postgres_server
from health_assets_tests.support.lakes_made import rows_of_hours
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project
from health_assets_tests.support.spark_servers import apache_spark, needs_apache_spark, sail

HOUR = HourRange.of(START)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with sail() as made:
        yield made


def warehouse(url: str, folder: Path, lake: str = "lake", ledger: str = "ledger.duckdb") -> Warehouse:
    return Warehouse(url, lake=str(folder / lake), ledger=str(folder / ledger))


def made(url: str, folder: Path) -> Warehouse:
    own = warehouse(url, folder)
    with own.write():
        pass
    return own


def test_another_lake_than_the_ledgers_is_refused_by_readers_and_writers(url: str, tmp_path: Path) -> None:
    own = made(url, tmp_path)
    (tmp_path / "other").mkdir()
    for lake in ("missing", "other"):
        wrong = warehouse(url, tmp_path, lake=lake)
        for opened in (wrong.read, wrong.write):
            with (
                pytest.raises(
                    HealthAssetsError, match=f"{tmp_path}/{lake} is not the one of .* are in {tmp_path}/lake"
                ),
                opened(),
            ):
                pass
    with own.read() as session:
        assert session.count(session.table("executions")) == 0
    assert not (tmp_path / "missing").exists()


def test_a_lake_belongs_to_its_ledger_also_where_the_first_run_failed(url: str, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), warehouse(url, tmp_path).write() as session:
        session.insert_arrow("system_health", rows_of_hours([START]))
        raise ZeroDivisionError
    with made(url, tmp_path).read() as session:
        assert session.count(session.table("system_health")) == 0
    other = warehouse(url, tmp_path, ledger="other.duckdb")
    with pytest.raises(HealthAssetsError, match=f"{tmp_path}/lake holds tables of another ledger"), other.write():
        pass


def test_a_lake_without_tables_can_be_claimed_again(url: str, tmp_path: Path) -> None:
    """As where the ledger's first transaction was cut off."""
    made(url, tmp_path)
    with warehouse(url, tmp_path, ledger="other.duckdb").write() as session:
        session.insert_arrow("system_health", rows_of_hours([START]))
    with pytest.raises(HealthAssetsError, match="is not the one of HEALTH_LEDGER"), warehouse(url, tmp_path).write():
        pass


def test_a_reader_that_is_slower_than_replaced_folders_stay_is_told(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = made(url, tmp_path)
    monkeypatch.setattr(store, "GRACE", timedelta(0))
    with pytest.raises(HealthAssetsError, match="what was read may lack rows"), own.read():
        pass


def test_a_warehouse_with_hours_is_no_ledger(url: str, tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.write_log("a.jsonl", [line(execution("e", "coder", START))])
    project.ingest(HOUR)
    wrong = Warehouse(url, lake=str(tmp_path / "lake"), ledger=str(project.warehouse_path))
    with pytest.raises(HealthAssetsError, match="has hours of its own"), wrong.write():
        pass
    assert len(project.tables()["executions"]) == 1


def test_a_ledger_is_no_warehouse(url: str, tmp_path: Path) -> None:
    made(url, tmp_path)
    plain = Warehouse(str(tmp_path / "ledger.duckdb"))
    for opened in (plain.read, plain.write):
        with pytest.raises(HealthAssetsError, match="is the ledger of a lake on Spark"), opened():
            pass


def test_a_ledger_on_postgresql_is_no_warehouse(url: str, tmp_path: Path) -> None:
    ledger = postgres_server.fresh_warehouse()
    with Warehouse(url, lake=str(tmp_path / "lake"), ledger=ledger).write():
        pass
    for opened in (Warehouse(ledger).read, Warehouse(ledger).write):
        with pytest.raises(HealthAssetsError, match="is the ledger of a lake on Spark"), opened():
            pass


def test_a_lake_that_the_cluster_does_not_see_is_refused_at_its_first_use(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LakePlace, "url_of", lambda _, folder: f"{tmp_path}/where the cluster looks/{folder}")
    with pytest.raises(HealthAssetsError, match="the cluster does not see the lake"), warehouse(url, tmp_path).write():
        pass
    monkeypatch.undo()
    made(url, tmp_path)


def test_a_lake_that_cannot_be_written_is_one_sentence(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(HealthAssetsError, match="cannot write to the lake"),
        warehouse(url, tmp_path, lake="file/lake").write(),
    ):
        pass


@pytest.mark.parametrize(
    "wrong",
    [
        "sc://h:50971;token=SECRET", "sc://h:50971/token=SECRET", "sc://u:SECRET@h:50971", "sc://;token=SECRET",
        "sc:h/;token=SECRET", "sc://h:port/;token=SECRET", "sc://h:50971?token=SECRET", "SC://h/;token=SECRET", "sc://:50971",
    ],
)  # fmt: skip
def test_a_url_that_cannot_be_read_is_refused_and_not_shown(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(HealthAssetsError, match="cannot be read") as told:
        warehouse(wrong, tmp_path)
    assert "SECRET" not in str(told.value) and "50971" not in str(told.value)


def test_a_token_is_not_shown_where_nobody_listens() -> None:
    with pytest.raises(HealthAssetsError, match=r"cannot connect to Spark at 127\.0\.0\.1:1:") as told:
        connected("sc://127.0.0.1:1/;token=SECRET")
    assert "SECRET" not in str(told.value)


def test_a_key_of_a_bucket_is_not_shown(url: str, tmp_path: Path) -> None:
    wrong = Warehouse(url, lake="s3x://KEY:SECRET@bucket?foo=1", ledger=str(tmp_path / "ledger.duckdb"))
    with pytest.raises(HealthAssetsError, match="is no folder or bucket") as told, wrong.write():
        pass
    assert "SECRET" not in str(told.value)


@pytest.mark.nightly
@needs_apache_spark
def test_a_text_that_looks_like_a_variable_is_that_text_on_apache_spark(tmp_path: Path) -> None:
    with apache_spark(tmp_path) as url:
        spark = connected(url)
        found = spark.sql("SELECT '${env:HOME}' AS text, '${x}' = '$' || '{x}' AS is_itself").collect()
        end(spark)
    assert [(row["text"], row["is_itself"]) for row in found] == [("${env:HOME}", True)]
