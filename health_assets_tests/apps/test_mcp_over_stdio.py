"""`health-assets mcp`: the user's own warehouse on standard input and output, which belong to the protocol alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from health_assets.apps.alerts.silencing import Silences
from health_assets.apps.serving.mcp_server.backend import NO_SDK
from health_assets.apps.serving.mcp_server.bounded import MOST_BYTES
from health_assets.apps.serving.mcp_server.tools import TOOLS
from health_assets.apps.serving.pages.changing import MAY_NOT
from health_assets.warehouse.store import Warehouse
from health_assets_tests.apps.test_mcp_over_http import EACH_TOOL
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.mcp_clients import over_stdio
from health_assets_tests.support.pages_made import World
from health_assets_tests.support.projects import REPOSITORY, command_environment
from health_assets_tests.support.serving_made import PATIENCE_S
from health_assets_tests.support.session_pages_made import SECRET, made

ALL_DAYS = {"HEALTH_HISTORY_DAYS": "400"}
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A warehouse whose history of this server is copied already, as at its second start."""
    world = made(tmp_path_factory.mktemp("mcp"))
    (world.project.folder / "history").rename(world.project.folder / "health.duckdb.history.mcp")
    return world


def arguments(world: World, *more: str) -> list[str]:
    return ["--warehouse", str(world.project.warehouse_path), "--targets", str(world.project.targets_path), *more]


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.nightly)])
def test_every_tool_answers_the_user_of_the_machine(world: World, mode: str, tmp_path: Path) -> None:
    told = over_stdio(tmp_path, *EACH_TOOL.items(), arguments=arguments(world), mode=mode, **ALL_DAYS)
    assert [*told.tools] == [name for name, tool in TOOLS.items() if not tool.is_change]
    answers = dict(zip(EACH_TOOL, told.answers, strict=True))
    for name, answer in answers.items():
        assert isinstance(answer.json, dict), name
        assert len(answer.text.encode()) <= MOST_BYTES
        assert '"mine"' not in answer.text, name  # a personal agent is shown to an operator alone
    assert [row["agent_id"] for row in answers["fleet"].json["listed"]] == ["alpha", "beta", "gamma"]
    assert SECRET in answers["why"].text  # the local user can read the logs


def test_the_role_operate_sees_personal_agents_and_silences(world: World, tmp_path: Path) -> None:
    silence = ("silence", {"agents": ["alpha"], "until": "2h", "reason": "tested"})
    told = over_stdio(tmp_path, silence, arguments=arguments(world), **ALL_DAYS)
    assert [(one.is_error, one.text) for one in told.answers] == [(True, MAY_NOT)]
    mine = ("agent", {"agent_id": "mine"})
    told = over_stdio(tmp_path, silence, mine, arguments=arguments(world, "--role", "operate"), **ALL_DAYS)
    added, agent = (one.json for one in told.answers)
    assert agent["agent"]["is_personal"]
    found = Silences(Warehouse(str(world.project.warehouse_path), lock_timeout_s=PATIENCE_S)).listed()
    assert [(one.silence_id, one.added_by) for one in found] == [(added["silence_id"], added["added_by"])]


def test_before_any_data_a_call_says_so(tmp_path: Path) -> None:
    told = over_stdio(tmp_path, ("fleet", {}), ("agent", {"agent_id": "alpha"}), ("formats", {}))
    fleet, agent, formats = told.answers
    assert fleet.is_error and agent.is_error
    assert fleet.text.startswith("Nothing has been materialized yet")
    assert formats.json["formats"]


def test_a_first_start_copies_the_history_by_itself(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "history"
    told = over_stdio(tmp_path, ("fleet", {}), arguments=arguments(world), HEALTH_HISTORY=str(folder), **ALL_DAYS)
    assert told.answers[0].json["agents"] == 3
    assert not folder.exists()  # which is the endpoint's
    assert (tmp_path / "history.mcp").is_dir()


def test_standard_output_belongs_to_the_protocol(tmp_path: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "fleet", "arguments": {}}}
    started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    lines = "".join(f"{json.dumps(message)}\n" for message in (INITIALIZE, started, call)) + "no json\n"
    with subprocess.Popen(
        [sys.executable, "-m", "health_assets", "mcp"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=command_environment() | {"PYTHONPATH": str(REPOSITORY), "HEALTH_LOG_FORMAT": "json"},
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(lines)
        process.stdin.flush()
        answers = []
        while not any(answer.get("id") == 2 for answer in answers):
            answers.append(json.loads(process.stdout.readline()))
        rest, _ = process.communicate(timeout=PATIENCE_S)  # its input ends, and so does it
    assert {answer["jsonrpc"] for answer in [*answers, *map(json.loads, rest.splitlines())]} == {"2.0"}
    assert process.returncode == 0


def test_no_other_command_imports_the_sdk() -> None:
    program = (
        "import sys; import health_assets.cli.commands, health_assets.apps.serving.app; print('mcp' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )  # fmt: skip
    assert done.stdout == "False\n"


def test_without_the_extra_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.stdio", None)
    monkeypatch.delitem(sys.modules, "health_assets.apps.serving.mcp_server.over_stdio", raising=False)
    done = command_here("mcp", folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, f"health-assets: {NO_SDK}\n")


def test_a_targets_file_that_cannot_be_used_ends_the_command_with_a_sentence(tmp_path: Path) -> None:
    done = command_here("mcp", "--targets", str(tmp_path / "none.yaml"))
    assert done.returncode == 1
    assert "none.yaml" in done.stderr
    assert done.stdout == ""
