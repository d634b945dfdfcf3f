"""Sessions of this computer's coding agents, in one command: linked, not copied, and shown by tool and project."""

from pathlib import Path

import duckdb
import pytest

from health_assets.cli.own_sessions import OwnSessions
from health_assets.core.errors import HealthAssetsError
from health_assets_tests.support import coding_agents_made
from health_assets_tests.support import coding_sessions_made as made
from health_assets_tests.support.commands_here import command_here


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session of each tool, and other files beside them."""
    home = tmp_path / "home"
    for name, content in {
        ".claude/projects/-srv-shop/one.jsonl": made.as_lines(
            {**line, "cwd": "/srv/shop"} for line in made.CLAUDE_TURN
        ),
        ".claude/settings.json": b'{"theme": "dark"}',
        ".codex/sessions/2026/06/07/rollout-1.jsonl": made.as_lines([made.header(0), *made.CODEX_TURN]),
        ".codex/auth.json": b'{"token": "secret"}',
        ".gemini/tmp/shop/chats/session-1.jsonl": made.as_lines(coding_agents_made.GEMINI_CHAT),
        ".gemini/tmp/shop/checkpoint-1.json": b'[{"role": "user"}]',
    }.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return home


def test_sessions_are_linked_and_nothing_else_of_the_tools(home: Path, tmp_path: Path) -> None:
    sessions = OwnSessions(tmp_path / "mine")
    assert sessions.link({}, home) == {"claude-code": 1, "codex": 1, "gemini-cli": 1}
    linked = {path.relative_to(sessions.raw).as_posix(): path for path in sessions.raw.rglob("*") if path.is_file()}
    assert linked.keys() == {
        "claude-code/projects/-srv-shop/one.jsonl", "codex/sessions/2026/06/07/rollout-1.jsonl",
        "gemini-cli/tmp/shop/chats/session-1.jsonl",
    }  # fmt: skip
    original = home / ".claude" / "projects" / "-srv-shop" / "one.jsonl"
    assert linked["claude-code/projects/-srv-shop/one.jsonl"].samefile(original)
    with original.open("ab") as file:
        file.write(b"{}\n")
    replaced = home / ".codex" / "sessions" / "2026" / "06" / "07" / "rollout-1.jsonl"
    replaced.unlink()
    replaced.write_bytes(b"{}\n")
    sessions.link({}, home)
    assert linked["claude-code/projects/-srv-shop/one.jsonl"].read_bytes().endswith(b"{}\n")
    assert linked["codex/sessions/2026/06/07/rollout-1.jsonl"].read_bytes() == b"{}\n"
    original.unlink()
    sessions.link({}, home)
    assert not linked["claude-code/projects/-srv-shop/one.jsonl"].exists(), "a session that its tool deleted is kept"
    assert (sessions.folder / ".gitignore").read_text() == "*\n"


def test_the_folders_that_tools_were_told_are_looked_into(home: Path, tmp_path: Path) -> None:
    environment = {"CLAUDE_CONFIG_DIR": str(home / ".claude"), "CODEX_HOME": str(home / ".codex")}
    elsewhere = tmp_path / "elsewhere"
    assert OwnSessions(tmp_path / "mine").link(environment, elsewhere) == {
        "claude-code": 1,
        "codex": 1,
        "gemini-cli": 0,
    }
    with pytest.raises(
        HealthAssetsError, match=r"no session of a coding agent lies in .*projects/\*\*/\* or .*sessions/\*\*/\* or "
    ):
        OwnSessions(tmp_path / "other").link({}, elsewhere)


def test_one_command_shows_the_health_of_sessions_by_tool_and_project(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    done = command_here("demo", "--mine", "--folder", str(folder), environment={"HOME": str(home)}, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 file of claude-code and 1 file of codex and 1 file of gemini-cli are linked in" in done.stdout
    assert "claude-code/shop" in done.stdout and "over 720 h" in done.stdout
    assert "Versions compared: 0 agents in several versions in 720 h" in done.stdout
    with duckdb.connect(str(folder / "health.duckdb"), read_only=True) as warehouse:
        agents = warehouse.execute("SELECT DISTINCT agent_id FROM executions ORDER BY 1").fetchall()
    assert agents == [("claude-code/shop",), ("codex/orchard",), ("gemini-cli",)]
