"""What the product writes is its owner's alone, whatever the umask; seen on real files after real runs."""

import os
import stat
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from health_assets.apps.judge.judging import _write
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange
from health_assets.core.judges import TRUSTED
from health_assets.core.private_files import private_files
from health_assets.logs import reader
from health_assets.model_tracker import ModelHealthTracker
from health_assets.warehouse.engines.duckdb.store import DuckDBFile
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project
from health_assets_tests.support.traces_made import agent, otlp_line


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """A process that would let everybody do everything."""
    before = os.umask(0)
    yield
    assert os.umask(before) == 0, "the umask is as it was"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_ones(folder: Path) -> dict[str, str]:
    """What below a folder somebody else may do anything with."""
    modes = {str(path.relative_to(folder)): mode_of(path) for path in [folder, *folder.rglob("*")]}
    return {name: oct(mode) for name, mode in modes.items() if mode & 0o077}


def test_the_warehouse_and_all_that_a_run_writes_beside_it_are_its_owners_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir(mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    project = Project(tmp_path / "project")
    project.warehouse_path = tmp_path / "new" / "folder" / "health.duckdb"
    project.write_log("a.jsonl", [line(execution("e", "a", START)), otlp_line(agent(1, 1, START)), "bad"])
    seen: dict[str, str] = {}
    real = reader.redacted_spans

    def looking(*arguments: object) -> str:  # while lines that were set aside lie in the temporary folder
        seen.update(open_ones(temporary) | open_ones(tmp_path / "new"))
        assert list(temporary.rglob("otlp_spans"))
        assert (tmp_path / "new/folder/health.duckdb").exists()
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reader, "redacted_spans", looking)
    project.ingest(HourRange.of(START))
    assert seen == {}
    assert open_ones(tmp_path / "new") == {}


def test_the_log_beside_the_database_and_what_is_spilled_are_their_owners_alone(tmp_path: Path) -> None:
    warehouse = DuckDBFile(str(tmp_path / "new" / "health.duckdb"), 1.0, "40MB", None)
    with warehouse.write() as session:
        session.query("CREATE TEMP TABLE big AS SELECT range AS n, md5(range::VARCHAR) AS t FROM range(1_000_000)")
        session.query("CREATE TABLE kept AS SELECT range AS n FROM range(10)")
        session.query("COMMIT")
        beside = {path.name for path in (tmp_path / "new").iterdir()}
        assert open_ones(tmp_path / "new") == {}
        session.query("BEGIN")
    assert {"health.duckdb", "health.duckdb.wal", "health.duckdb.tmp"} <= beside


def test_of_a_database_that_is_there_others_are_shut_out_and_the_group_keeps_what_it_may(tmp_path: Path) -> None:
    warehouse = DuckDBFile(str(tmp_path / "health.duckdb"), 1.0, "100MB", None)
    with warehouse.write():
        pass
    for before, after in ((0o644, 0o640), (0o666, 0o660), (0o640, 0o640), (0o600, 0o600)):
        warehouse.path.chmod(before)
        with warehouse.read():
            assert mode_of(warehouse.path) == before  # who only reads changes nothing
        with warehouse.write():
            pass
        assert mode_of(warehouse.path) == after


def test_a_folder_that_somebody_names_as_the_warehouse_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(HealthAssetsError), DuckDBFile(str(tmp_path), 1.0, "100MB", None).write():
        pass
    assert mode_of(tmp_path) == 0o755


def test_judgements_and_the_trackers_log_are_their_owners_alone(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir(mode=0o700)
    _write(raw, TRUSTED, [{"type": "judgement"}], datetime(2026, 6, 7, tzinfo=UTC))
    ModelHealthTracker(10, 0.5, raw_log=raw / "of" / "agents" / "tracker.jsonl").record_success("m")
    assert len(list(raw.rglob("*.jsonl"))) == 2
    assert open_ones(raw) == {}


def test_a_tracker_appends_to_a_log_that_is_there_and_leaves_its_mode(tmp_path: Path) -> None:
    log = tmp_path / "tracker.jsonl"
    log.touch(mode=0o644)
    ModelHealthTracker(10, 0.5, raw_log=log).record_success("m")
    assert mode_of(log) == 0o644


def test_a_file_where_the_folder_should_be_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with (
            pytest.raises(HealthAssetsError, match="cannot make the folder"),
            DuckDBFile(str(folder / "health.duckdb"), 1.0, "100MB", None).write(),
        ):
            pass


def test_threads_that_write_at_the_same_time_leave_the_umask_as_it_was(tmp_path: Path) -> None:
    def write(number: int) -> None:
        for time in range(50):
            with private_files():
                (tmp_path / f"{number}-{time}").touch()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {mode_of(path) for path in tmp_path.iterdir()} == {0o600}
    (tmp_path / "after").touch()
    assert mode_of(tmp_path / "after") == 0o666
