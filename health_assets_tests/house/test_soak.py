"""The short forms of `make soak`: installations whose programs are killed end as a clean rebuild would."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from health_assets_tests.soak.__main__ import figures, soak
from health_assets_tests.soak.live import KILLED, live_soak

MINUTES = 3


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the user of PostgreSQL may enter, too; those of pytest are their owner's alone."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.nightly
def test_an_installation_that_is_killed_restarted_and_full_ends_as_a_clean_rebuild(open_folder: Path) -> None:
    said: list[str] = []
    verdict = soak(open_folder, MINUTES, 1, "postgres", said.append)
    assert verdict.executions > 0 and verdict.runs.get("SUCCESS"), said
    assert len(said) > 3, "disturbances happened"
    print(*said, figures(verdict), sep="\n")


@pytest.mark.nightly
def test_a_live_installation_whose_programs_are_killed_ends_as_a_clean_rebuild(tmp_path: Path) -> None:
    lived = live_soak(tmp_path, minutes=1, every_s=5, seed=1, report=print)
    assert all(lived.kills[name] for name in KILLED)
    assert lived.sent and lived.runs and lived.answers["MCP: right"], lived
    print(lived)
