"""Logs as JSON: every line of a real run, of a real server and of Dagster's console is one object."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import (
    Project,
    command_environment,
    command_line,
    forked_command,
    hours_from,
    materialize_arguments,
)

JSON = {"HEALTH_LOG_FORMAT": "json"}


def objects(text: str) -> list[dict[str, Any]]:
    """The lines, each of which must be an object that says when, how bad, who and what."""
    found = [json.loads(said) for said in text.splitlines()]
    assert all({"time", "level", "logger", "message"} <= said.keys() for said in found), text
    return found


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("filled"))
    project.write_log("a.jsonl", [line(execution("e", "a", START)), "bad"])
    return project


def test_every_line_of_a_run_is_an_object(filled: Project) -> None:
    arguments = materialize_arguments(filled, hours_from(START, 1), "tool_health")
    done = forked_command(*arguments, environment=JSON, folder=filled.folder)
    assert done.returncode == 0, done.stderr
    told = objects(done.stdout)
    assert any("materialized in" in said["message"] for said in told)
    assert objects(done.stderr) == []


def test_every_line_of_a_server_is_an_object(filled: Project) -> None:
    environment = command_environment() | JSON | {"HEALTH_TOKEN": "short"}
    with subprocess.Popen(
        command_line("serve", "--port", "0", "--warehouse", str(filled.folder / "none.duckdb")),
        env=environment, cwd=filled.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        [first] = objects(server.stdout.readline())
        assert first["message"].startswith("serving health documents on http://127.0.0.1:")
        server.send_signal(signal.SIGTERM)
        rest, faults = server.communicate(timeout=60)
    assert objects(rest) == []
    told = objects(faults)
    assert any("fewer than 16 characters" in said["message"] for said in told)
    assert {said["level"] for said in told} == {"WARNING"}


def test_what_a_command_complains_of_is_an_object(tmp_path: Path) -> None:
    done = forked_command("materialize", "--from", "nonsense", environment=JSON, folder=tmp_path)
    assert done.returncode == 1
    [said] = objects(done.stderr)
    assert said["message"].startswith("health-assets: ")


AS_DAGSTER_DOES = """
from health_assets.definitions import defs
defs.resolve_job_def("check_freshness").execute_in_process(raise_on_error=False)
"""


def test_every_line_of_dagsters_console_is_an_object_with_run_and_step(filled: Project) -> None:
    """A run that Dagster starts loads the definitions and logs to the console that it makes by itself."""
    done = subprocess.run(
        [sys.executable, "-c", AS_DAGSTER_DOES],
        env=command_environment() | JSON | {"HEALTH_WAREHOUSE": str(filled.warehouse_path)},
        cwd=filled.folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    told = objects(done.stderr)
    assert len({said["run_id"] for said in told if "run_id" in said}) == 1
    assert {"DEBUG", "ERROR"} <= {said["level"] for said in told if said.get("step") == "newest_hour_is_in_time"}
