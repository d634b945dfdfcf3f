"""The disk that Dagster's history takes: the job that deletes old runs gives it back."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest

from health_assets.core.settings import Settings
from health_assets.defs.pipeline import pipeline_resource
from health_assets.defs.run_files import shrink
from health_assets.defs.run_retention import prune_runs_job
from health_assets.pipeline.resource import Pipeline

RESOURCES = {"pipeline": pipeline_resource(Pipeline(settings=Settings()))}
KIB = 1 << 10
RUNS = 3
TEXT_KIB = 1000
"""What each run leaves in its own file, and again in the one of all assets' events."""


@dg.op
def say_much(context: dg.OpExecutionContext) -> None:
    print("said on the way")
    for number in range(4):
        text = f"{number}" * (TEXT_KIB * KIB // 4)
        context.log_event(dg.AssetMaterialization("much", metadata={"text": dg.TextMetadataValue(text)}))


@dg.job
def much() -> None:
    say_much()


def run_of_much(instance: dg.DagsterInstance) -> str:
    return much.execute_in_process(instance=instance).run_id


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def record_a_check(instance: dg.DagsterInstance, run_id: str) -> None:
    with instance.event_log_storage.index_connection() as connection:
        columns = "asset_key, check_name, run_id, execution_status"
        connection.exec_driver_sql(
            f"INSERT INTO asset_check_executions ({columns}) VALUES ('[\"much\"]', 'enough', '{run_id}', 'SUCCEEDED')"
        )


def recorded_checks(instance: dg.DagsterInstance) -> list[str]:
    with instance.event_log_storage.index_connection() as connection:
        return [run_id for (run_id,) in connection.exec_driver_sql("SELECT run_id FROM asset_check_executions")]


def make_old(instance: dg.DagsterInstance, run_ids: list[str]) -> None:
    with instance.run_storage.connect() as connection:
        places = ", ".join(f"'{run_id}'" for run_id in run_ids)
        connection.exec_driver_sql(f"UPDATE runs SET create_timestamp = '2020-01-01' WHERE run_id IN ({places})")


def prune(instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    return prune_runs_job(Settings()).execute_in_process(instance=instance, resources=RESOURCES)


def test_the_job_gives_back_the_disk_that_old_runs_took_and_keeps_those_of_young_ones(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    empty = bytes_in(tmp_path)
    young, *old = [run_of_much(instance) for _ in range(RUNS + 1)]
    make_old(instance, old)
    for run_id in (young, *old):
        record_a_check(instance, run_id)
    full = bytes_in(tmp_path)
    assert full - empty > 2 * (RUNS + 1) * TEXT_KIB * KIB
    assert prune(instance).success
    left = bytes_in(tmp_path)
    assert full - left > 2 * RUNS * TEXT_KIB * KIB, f"{full:,} bytes before, {left:,} after"
    names = {path.name for path in tmp_path.rglob("*")}
    assert not [name for name in names if name.startswith(tuple(old))]
    assert f"{young}.db" in names and young in names
    assert instance.has_run(young) and instance.all_logs(young) and not any(map(instance.has_run, old))
    assert len(instance.fetch_materializations(dg.AssetKey("much"), limit=100).records) == 4
    assert recorded_checks(instance) == [young]


def test_files_of_runs_that_an_earlier_version_deleted_go_too(instance: dg.DagsterInstance) -> None:
    young = run_of_much(instance)
    file = Path(instance.event_log_storage.path_for_shard(young))
    lost = file.with_name("01234567-89ab-cdef-0123-456789abcdef.db")
    lost.write_bytes(file.read_bytes())
    assert prune(instance).success
    assert lost.exists(), "it was written to a moment ago, so its run may be about to begin"
    os.utime(lost, (1, 1))
    os.utime(file, (1, 1))
    assert prune(instance).success
    assert (lost.exists(), file.exists()) == (False, True)


# -- shared files ----------------------------------------------------------------------------------------------------------


def file_with_free_pages(path: Path, kept: int, deleted: int) -> Path:
    """A SQLite file in WAL mode with rows of 100 KiB, some of them deleted."""
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("CREATE TABLE t (n INTEGER, text TEXT)")
        file.executemany("INSERT INTO t VALUES (?, ?)", [(n, "x" * 100 * KIB) for n in range(kept + deleted)])
        file.execute("DELETE FROM t WHERE n >= ?", [kept])
    return path


@pytest.mark.parametrize(("kept", "deleted", "pays"), [(5, 20, True), (5, 5, False), (100, 20, False)])
def test_a_shared_file_is_made_smaller_where_much_of_it_is_free(
    tmp_path: Path, kept: int, deleted: int, pays: bool
) -> None:
    path = file_with_free_pages(tmp_path / "shared.db", kept, deleted)
    before = path.stat().st_size
    shrunk = shrink(path)
    assert (shrunk is not None) == pays
    if shrunk:
        assert (shrunk.problem, shrunk.freed_bytes) == ("", before - path.stat().st_size)
        assert path.stat().st_size < before / 2
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT count(*) FROM t").fetchone() == (kept,)


def test_a_shared_file_that_keeps_so_much_that_others_would_wait_is_left_alone_and_said(tmp_path: Path) -> None:
    path = file_with_free_pages(tmp_path / "shared.db", 5, 20)
    before = path.stat().st_size
    shrunk = shrink(path, most_kept_bytes=500_000)
    assert shrunk is not None and path.stat().st_size == before
    assert (shrunk.freed_bytes, shrunk.problem) == (0, "it keeps more than 500.0 kB, and others would wait too long")


def test_a_shared_file_that_somebody_writes_to_is_left_alone_and_said(tmp_path: Path) -> None:
    path = file_with_free_pages(tmp_path / "shared.db", 5, 20)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        shrunk = shrink(path, patience_s=0.1)
    assert shrunk is not None and (shrunk.freed_bytes, shrunk.problem) == (0, "database is locked")
