"""A reader process that cannot be started is told as that, and not as a warehouse that cannot be read."""

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
