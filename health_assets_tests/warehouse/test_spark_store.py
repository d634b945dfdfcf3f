"""A warehouse on Spark refuses what would read as nothing: another lake, a wrong pair, a URL that it cannot read."""

import re
import stat
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import duckdb
import ibis
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange
from health_assets.warehouse.engines.spark import lake_place, store
from health_assets.warehouse.engines.spark.connect import connected
from health_assets.warehouse.engines.spark.lake import SCRATCH
from health_assets.warehouse.engines.spark.lake_place import ID_FILE, LakePlace
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support import postgres_server
from health_assets_tests.support.lakes_made import rows_of_hours
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import REPOSITORY, Project
from health_assets_tests.support.spark_servers import apache_spark, apache_spark_process, needs_apache_spark, sail

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


def _where_only_ids_are_seen(folder: Path) -> Callable[[LakePlace, str], str]:
    """The names of a cluster that sees the lake's file and writes tables to a disk of its own."""
    return lambda place, name: f"{place.name if name == ID_FILE else folder}/{name}"


def _where_kept_rows_are_elsewhere(folder: Path) -> Callable[[LakePlace, str], str]:
    """The names of a cluster that keeps rows of a session on a disk of its own."""
    return lambda place, name: f"{folder if name.startswith(SCRATCH) else place.name}/{name}"


def _where_nothing_is_seen(folder: Path) -> Callable[[LakePlace, str], str]:
    """The names of a cluster that was started anew without the lake."""
    return lambda _, name: f"{folder}/{name}"


@pytest.fixture(params=["sail", pytest.param("spark", marks=[pytest.mark.nightly, needs_apache_spark])])
def any_url(request: pytest.FixtureRequest, url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "sail":
        yield url
    else:
        with apache_spark(tmp_path_factory.mktemp("spark")) as made:
            yield made


def test_a_cluster_that_loses_the_lake_changes_nothing(
    any_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = made(any_url, tmp_path)
    with own.write() as session:
        session.insert_arrow("system_health", rows_of_hours([START]))
    for others, said in (
        (_where_nothing_is_seen(tmp_path / "elsewhere"), "does not see the lake|PATH_NOT_FOUND"),
        (
            _where_only_ids_are_seen(tmp_path / "elsewhere"),
            "0 rows were made of 1 rows of system_health|PATH_NOT_FOUND",
        ),
    ):
        with monkeypatch.context() as lost:
            lost.setattr(LakePlace, "url_of", others)
            with pytest.raises((HealthAssetsError, RuntimeError), match=said), own.write() as session:
                session.rewrite_hours("system_health", HOUR, session.hours_of("system_health", HOUR))
    with own.read() as session:
        assert session.count(session.table("system_health")) == 1


def test_rows_that_the_cluster_wrote_where_nobody_sees_them_are_not_counted_as_none(
    any_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where one machine of it has not mounted the lake, and nothing of the lake is read."""
    own = made(any_url, tmp_path)
    monkeypatch.setattr(LakePlace, "url_of", _where_only_ids_are_seen(tmp_path / "elsewhere"))
    with (
        pytest.raises(
            HealthAssetsError, match="the cluster made 2 rows of system_health, and 0 of them are in the lake"
        ),
        own.write() as session,
    ):
        session.insert("system_health", ibis.memtable(rows_of_hours([START, START])))
    monkeypatch.undo()
    with own.write() as session:
        session.insert_arrow("system_health", rows_of_hours([START]))
    monkeypatch.setattr(LakePlace, "url_of", _where_kept_rows_are_elsewhere(tmp_path / "elsewhere"))
    said = "the cluster made 1 rows of a step, and 0 of them are in the lake"
    with pytest.raises(HealthAssetsError, match=said), own.write() as session:
        session.persist(session.hours_of("system_health", HOUR))
    monkeypatch.undo()
    with own.write() as session:
        session.insert("system_health", ibis.memtable(rows_of_hours([START])))
        assert session.count_hours("system_health", HOUR) == 2


def test_a_lake_with_folders_and_without_a_ledger_is_refused(url: str, tmp_path: Path) -> None:
    """As the folder of raw logs that somebody named by mistake, or a lake that was copied in part."""
    logs = tmp_path / "lake" / "executions" / "2026-11-19"
    logs.mkdir(parents=True)
    with pytest.raises(HealthAssetsError, match="or folders that are none of ours"), warehouse(url, tmp_path).write():
        pass
    assert logs.exists() and not (tmp_path / "lake" / ID_FILE).exists()


def test_another_ledger_that_takes_the_lake_during_a_run_stops_its_commit(url: str, tmp_path: Path) -> None:
    own = made(url, tmp_path)
    with pytest.raises(HealthAssetsError, match="is not the one of HEALTH_LEDGER"), own.write() as session:
        session.insert_arrow("system_health", rows_of_hours([START]))
        (tmp_path / "lake" / ID_FILE).write_text("another's")


def disk_that_fails(_: int) -> None:
    raise OSError("input/output error")


def test_a_disk_that_does_not_keep_what_was_written_stops_the_commit(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = made(url, tmp_path)
    monkeypatch.setattr(lake_place, "sync_disk_of", disk_that_fails)
    with (
        pytest.raises(HealthAssetsError, match=r"cannot keep what was written .*input/output error"),
        own.write() as session,
    ):
        session.insert_arrow("system_health", rows_of_hours([START]))
    with own.write() as session:
        assert session.count_hours("system_health", HOUR) == 0, "whoever writes nothing needs no disk"


def test_a_disk_that_cannot_keep_the_lakes_name_leaves_no_ledger_that_knows_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(lake_place, "sync_disk_of", disk_that_fails)
        with (
            pytest.raises(HealthAssetsError, match=r"cannot write to the lake .*input/output error"),
            warehouse(url, tmp_path).write(),
        ):
            pass
    made(url, tmp_path)


def test_a_new_lake_is_its_owners_alone_and_one_that_is_there_keeps_its_mode(url: str, tmp_path: Path) -> None:
    made(url, tmp_path)
    assert stat.S_IMODE((tmp_path / "lake").stat().st_mode) == 0o700
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o775)
    with warehouse(url, tmp_path, lake="shared", ledger="other.duckdb").write():
        pass
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o775


def test_a_lake_that_cannot_be_written_is_one_sentence(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(HealthAssetsError, match="cannot write to the lake"),
        warehouse(url, tmp_path, lake="file/lake").write(),
    ):
        pass


def test_the_query_of_the_page_reads_what_counts_without_the_cluster(url: str, tmp_path: Path) -> None:
    own = warehouse(url, tmp_path)
    for _ in range(2):  # the second time replaces the folders of the first
        with own.write() as session:
            session.delete_hours("agent_health", HOUR)
            session.insert_arrow("agent_health", rows_of_hours([START, START], "agent_health"))
    [query] = re.findall(r"```sql\n(.+?)```", (REPOSITORY / "docs" / "spark.md").read_text(), re.DOTALL)
    query = query.replace("data/ledger.duckdb", str(tmp_path / "ledger.duckdb"))
    with duckdb.connect() as connection:
        for statement in query.replace("/mnt/lake/health", str(tmp_path / "lake")).split(";")[:-1]:
            found = connection.execute(statement)
        assert found.fetchall() == [(START, None, None, None)] * 2


@pytest.mark.parametrize(
    "wrong",
    [
        "sc://h:50971;token=SECRET", "sc://h:50971/token=SECRET", "sc://u:SECRET@h:50971", "sc://;token=SECRET",
        "sc:h/;token=SECRET", "sc://h:port/;token=SECRET", "sc://h:50971?token=SECRET", "SC://h/;token=SECRET", "sc://:50971",
        "sc://h:50971/;token=SECRET==", "sc://h:50971/;token=a;SECRET", "sc://h:50971/;token=SEC/RET", "sc://h:50971/;token=SECRET#",
        "sc://h:50971/;token=SECRET;",
    ],
)  # fmt: skip
def test_a_url_that_cannot_be_read_is_refused_and_not_shown(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(HealthAssetsError, match="cannot be read") as told:
        warehouse(wrong, tmp_path)
    assert "SECRET" not in str(told.value) and "50971" not in str(told.value)


def test_a_token_is_not_shown_where_nobody_listens() -> None:
    said = r"cannot connect to Spark at 127\.0\.0\.1:1: .*; a token means TLS, does the server speak it\?"
    with pytest.raises(HealthAssetsError, match=said) as told:
        connected("sc://127.0.0.1:1/;token=SECRET")
    assert "SECRET" not in str(told.value)


@pytest.mark.parametrize(
    ("lake", "said"),
    [
        ("s3x://KEY:SECRET@bucket", "the lake s3x://…@bucket is no folder or bucket"),
        ("s3://KEY:SECRET@bucket/a?region=SECRET", "the lake s3://…@bucket/a has a sign in its name"),
    ],
)
def test_a_key_of_a_bucket_is_not_shown(url: str, tmp_path: Path, lake: str, said: str) -> None:
    wrong = Warehouse(url, lake=lake, ledger=str(tmp_path / "ledger.duckdb"))
    with pytest.raises(HealthAssetsError, match=said) as told, wrong.write():
        pass
    assert "SECRET" not in str(told.value)


@pytest.mark.parametrize("sign", "*?[]{}\\")
def test_a_lake_that_a_cluster_takes_for_a_pattern_is_refused(url: str, tmp_path: Path, sign: str) -> None:
    wrong = warehouse(url, tmp_path, lake=f"a{sign}")
    with pytest.raises(HealthAssetsError, match="takes it for a pattern"), wrong.write():
        pass
    with (
        pytest.raises(HealthAssetsError, match=r"there is no ledger \(HEALTH_LEDGER\) at .*ledger.duckdb yet"),
        wrong.read(),
    ):
        pass


def test_a_lake_may_have_any_other_name(any_url: str, tmp_path: Path) -> None:
    with warehouse(any_url, tmp_path, lake="a b%20c#d;é=1/it's").write() as session:
        session.insert_arrow("system_health", rows_of_hours([START]))
        session.insert("system_health", session.hours_of("system_health", HOUR))
        assert session.count_hours("system_health", HOUR) == 2


HOSTILE = {
    "spark.sql.ansi.enabled": "true", "spark.sql.parser.escapedStringLiterals": "true", "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.files.ignoreMissingFiles": "true", "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.parquet.outputTimestampType": "INT96",
}  # fmt: skip
"""Settings that a cluster may have as its own, and that would change results."""


@pytest.mark.nightly
@needs_apache_spark
def test_settings_of_the_cluster_change_no_result(tmp_path: Path) -> None:
    with apache_spark_process(tmp_path, own=HOSTILE) as (url, _):
        own = made(url, tmp_path)
        with own.write() as session:
            rows = rows_of_hours([START, START + timedelta(hours=1)])
            session.insert("system_health", ibis.memtable(rows))
            texts = ["${env:HOME}", "a\\b", "\\d+", "it's"]
            assert session.query("SELECT ?, ?, ?, ?, count(*) FROM system_health", texts) == [(*texts, 2)]
            assert session.query("SELECT 1 / (count(*) - 2) FROM system_health") == [(None,)]
            assert session.count_hours("system_health", HOUR) == 1
            assert (
                session.latest_hour("system_health", HourRange(START, START + timedelta(hours=2)))
                == rows["hour"][1].as_py()
            )
        [folder, *_] = (tmp_path / "lake" / "system_health").glob("*")
        files = [*folder.rglob("*.parquet")]
        assert {str(pq.read_schema(file).field("hour").type) for file in files} == {"timestamp[us, tz=UTC]"}
        with pytest.raises(HealthAssetsError), own.read() as session:
            session.count_hours("system_health", HOUR)  # now the cluster knows the files
            kept = {file: file.rename(tmp_path / file.name) for file in files}
            session.count(session.hours_of("system_health", HOUR))
        for file, other in kept.items():
            other.rename(file)
        for file in files:
            file.write_bytes(b"what a disk makes of it")
        with pytest.raises(HealthAssetsError), own.read() as session:
            session.count_hours("system_health", HOUR)
