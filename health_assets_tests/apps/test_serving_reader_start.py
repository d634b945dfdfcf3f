"""A reader process that cannot be started is told as that, and not as a warehouse that cannot be read."""

import subprocess
import sys
from pathlib import Path

import pytest

from health_assets.apps.serving.client import SENTENCES, Reader, ReaderError
from health_assets.core.settings import Settings


def test_a_reader_that_cannot_be_started_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python3"
    python.write_text("not to be executed")
    monkeypatch.setattr("sys.executable", str(python))
    with Reader(Settings(warehouse=str(tmp_path / "w.duckdb"))) as reader, pytest.raises(ReaderError) as told:
        reader.ask({"session": "s"}, timeout_s=5)
    assert SENTENCES[told.value.kind] == "the process that reads the warehouse cannot be started"
    assert str(told.value).endswith(f"[Errno 13] Permission denied: '{python}'")


def test_a_reader_whose_server_was_killed_ends_without_a_word(tmp_path: Path) -> None:
    settings = Settings(warehouse=str(tmp_path / "w.duckdb")).model_dump_json()
    command = [sys.executable, "-m", "health_assets.apps.serving.reader_process"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as reader:
        reader.stdout.close()
        _, stderr = reader.communicate(f'{settings}\n{{"session": "s"}}\n', timeout=60)
    assert (reader.returncode, stderr) == (0, "")
