"""The server's log of a run: nothing in it that whoever runs the server would have to look into."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from health_assets.warehouse.migrations import migrate
from health_assets_tests.support import postgres_server
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, forked_command, hours_from, materialize_arguments

TELLING = {"log_min_messages": "warning", "log_min_error_statement": "warning"}
LOUD = (" WARNING: ", " ERROR: ", " FATAL: ", " PANIC: ")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the user of the server may enter; those of pytest are their owner's alone."""
    folder = Path(tempfile.mkdtemp(prefix="health-assets-postgres-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)  # the server ends with this process


@pytest.mark.parametrize(
    "system",
    ["agent_health_model", pytest.param(None, marks=pytest.mark.nightly)],
    ids=["one system", "all systems"],
)
def test_a_run_leaves_no_warning_in_the_servers_log(tmp_path: Path, open_folder: Path, system: str | None) -> None:
    folder = open_folder
    url = postgres_server.start_server(folder, {**postgres_server.FAST, **TELLING})
    migrate(url, 10)
    project = Project(tmp_path / "project", engine="postgres", url=url)
    project.write_log("a.jsonl", [line(execution(f"e{n}", "a", START)) for n in range(3)])
    before = (folder / "log").stat().st_size  # of its start, a server may say much
    done = forked_command(*materialize_arguments(project, hours_from(START, 3), system), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [row["n"] for row in project.rows("agent_health")] == [3, 3, 3]
    told = (folder / "log").read_bytes()[before:].decode().splitlines()
    found = [text for text in told if any(level in text for level in LOUD)]
    assert not found, f"{len(found)} warnings, the first: {found[0]}"
