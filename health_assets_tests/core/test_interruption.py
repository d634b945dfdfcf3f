"""A run that is asked to end, or is killed, in the middle of a file that nobody would want to read to its end."""

import gzip
import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from health_assets.core.hours import HourRange
from health_assets.core.temporary import remove_what_the_dead_left, swept, temporary_folder
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, materialize_arguments, start_forked_command

BAD_LINES = 30_000_000
"""More than can be read within any patience of these tests."""


@pytest.fixture(scope="module")
def flood(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flood") / "flood.jsonl.gz"
    piece = b"x\n" * 1_000_000
    with gzip.open(path, "wb", compresslevel=1) as out:
        for _ in range(BAD_LINES // 1_000_000):
            out.write(piece)
    os.utime(path, (START.timestamp(), START.timestamp()))
    return path


def started_reading(project: Project, flood: Path, temporary: Path, outputs: list[str]) -> BaseProcess:
    """The command, as soon as it has set rejected lines of the flood aside."""
    (project.raw / "flood.jsonl.gz").hardlink_to(flood)
    temporary.mkdir()
    arguments = materialize_arguments(project, HourRange.of(START))
    process = start_forked_command(arguments, {"TMPDIR": str(temporary)}, project.folder, outputs)
    deadline = time.monotonic() + 120
    while not any(found.stat().st_size for found in temporary.glob("health-assets-*/rejected_records")):
        assert process.is_alive(), "it ended before it was asked to"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("asked_by", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_asked_to_end_does_so_within_seconds(
    project: Project, flood: Path, tmp_path: Path, asked_by: signal.Signals
) -> None:
    outputs = [str(tmp_path / "out"), str(tmp_path / "err")]
    process = started_reading(project, flood, tmp_path / "temporary", outputs)
    assert process.pid is not None
    os.kill(process.pid, asked_by)
    process.join(20)
    is_alive = process.is_alive()
    process.kill()
    assert not is_alive, "it went on reading"
    said = Path(outputs[1]).read_text(encoding="utf-8")
    assert process.exitcode == 1, said
    told = "stopped during ingest; run it again"
    assert " ".join(said.split()).endswith(told)
    assert "Traceback" not in said
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_a_killed_run_left_is_removed_by_the_next_and_what_a_living_one_has_stays(
    project: Project, flood: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    process = started_reading(project, flood, temporary, [os.devnull, os.devnull])
    held = set(temporary.glob("health-assets-*/.held"))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (temporary / "health-assets-of-somebody").mkdir()
    remove_what_the_dead_left()
    assert set(temporary.glob("health-assets-*/.held")) == held, "a living run's folders stay"
    process.kill()
    process.join()
    assert held == set(temporary.glob("health-assets-*/.held"))
    (project.raw / "flood.jsonl.gz").unlink()
    project.write_log("a.jsonl", [line(execution("e", "a", START))])
    with temporary_folder() as own:
        project.materialize(HourRange.of(START), only=["ingest"])
        assert [path.parent for path in temporary.glob("*/.held")] == [own]
    assert (temporary / "health-assets-of-somebody").exists()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_a_folder_that_only_looks_like_one_of_a_dead_process_stops_nobody_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "health-assets-x"
    folder.mkdir()
    held, elsewhere = folder / ".held", tmp_path / "elsewhere"
    elsewhere.touch()
    {"pipe": lambda: os.mkfifo(held), "link": lambda: held.symlink_to(elsewhere), "folder": held.mkdir}[kind]()
    (tmp_path / "health-assets-link").symlink_to(folder)
    remove_what_the_dead_left()
    assert folder.exists()
    assert elsewhere.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_too_leaves_what_the_dead_of_other_users_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folders = [tmp_path / f"health-assets-{name}" for name in ("mine", "theirs", "half")]
    for folder in folders:
        folder.mkdir()
        (folder / ".held").touch()
    mine, theirs, half = folders
    for given in (theirs, theirs / ".held", half / ".held"):
        os.chown(given, 65534, 65534)
    remove_what_the_dead_left()
    assert (mine.exists(), theirs.exists(), half.exists()) == (False, True, True)


def test_the_end_of_a_run_removes_the_folders_that_nobody_got_to_remove() -> None:
    with temporary_folder() as of_somebody:
        with swept():
            dropped = temporary_folder()
            folder = dropped.__enter__()
        assert not folder.exists()
        assert of_somebody.exists()
        dropped.__exit__(None, None, None)
