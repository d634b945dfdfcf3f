"""Sessions of Gemini CLI and other coding agents: what their turns, model calls and tool calls become."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.hours import HourRange
from health_assets.logs.formats import coding_turns
from health_assets_tests.support import coding_agents_made as made
from health_assets_tests.support.coding_sessions_made import ZERO, as_lines
from health_assets_tests.support.foreign_lines import lines_of
from health_assets_tests.support.projects import Project, assert_lines_are_conserved

HOUR = datetime(2026, 6, 7, 13, tzinfo=UTC)
RUN = ("execution_id", "status", "error", "started_at", "ended_at", "api_calls", "error_count", "actions")
MODEL_CALL = ("call_id", "model", "ended_at", "input_tokens", "output_tokens", "cache_read_tokens", "reasoning_tokens")
TOOL_CALL = ("call_id", "tool", "status", "error", "latency_ms", "ended_at")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def rows_of(project: Project, table: str, *columns: str) -> list[tuple]:
    return project.query(f"SELECT {', '.join(columns)} FROM {table} ORDER BY ended_at")


def ingested(project: Project, name: str, content: bytes) -> None:
    project.write_bytes(name, content)
    project.materialize(HourRange.of(HOUR), only=["ingest"])
    assert_lines_are_conserved(project)
    assert project.query("SELECT reason FROM rejected_records") == []


def after(seconds: float) -> datetime:
    return ZERO + timedelta(seconds=seconds)


def read(project: Project, kind: str = "execution") -> list[dict[str, Any]]:
    """The records of a kind that the files come to."""
    records = [json.loads(row["line"]) for row in lines_of(project)[0] if row["fault"] is None]
    return [record for record in records if record["type"] == kind]


def as_document(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode()


# -- Gemini CLI --------------------------------------------------------------------------------------------------------

GEMINI_RUNS = [
    (f"{made.CHAT}:m-1", "success", None, after(1), after(15), 4, 2,
     ["list_directory", "run_shell_command", "read_file"]),
    (f"{made.CHAT}:m-120", "failure", "API error: RESOURCE_EXHAUSTED (429)", after(120), after(121), 0, 1, []),
]  # fmt: skip


def test_turns_of_gemini_cli_are_executions(project: Project) -> None:
    ingested(project, "session-1.jsonl", as_lines(made.GEMINI_CHAT))
    assert rows_of(project, "executions", *RUN) == GEMINI_RUNS
    shared = "agent_id, agent_version, session_id"
    assert project.query(f"SELECT DISTINCT {shared} FROM executions") == [("gemini-cli", None, made.CHAT)]


def test_calls_of_gemini_cli_have_their_outcome_duration_and_tokens(project: Project) -> None:
    ingested(project, "session-1.jsonl", as_lines(made.GEMINI_CHAT))
    model = "gemini-2.5-pro"
    assert rows_of(project, "model_calls", *MODEL_CALL) == [
        ("m-4", model, after(4), 1000, 70, 0, 30),  # the thoughts are beside the output, the cached tokens in the input
        ("m-8", model, after(8), 1000, 30, 600, 0),
        ("m-12", model, after(12), 1000, 20, 0, 0),
        ("m-15", model, after(15), 1000, 6, 0, 0),
        ("m-182", model, after(182), 1000, 20, 0, 0),
        ("m-242", model, after(242), 1000, 20, 0, 0),
    ]
    assert rows_of(project, "tool_calls", *TOOL_CALL) == [
        ("list_1", "list_directory", "success", None, 250.0, after(4.25)),
        ("make_1", "run_shell_command", "failure", "exit code 2", 1000.0, after(9)),
        ("read_1", "read_file", "failure", "the tool failed", 1000.0, after(13)),
    ]


def test_what_a_chat_of_gemini_cli_has_besides_is_counted(project: Project) -> None:
    project.write_bytes("session-1.jsonl", as_lines(made.GEMINI_CHAT))
    _, notes = lines_of(project)
    assert notes == {
        f"Gemini CLI {coding_turns.NO_EVENT}": 9,  # the header, 5 times, a tool's result, a notice, and what was rewound
        f"Gemini CLI {coding_turns.CANCELLED_TURN}": 1,
        f"Gemini CLI {coding_turns.NOT_ALLOWED}": 1,
        f"Gemini CLI {coding_turns.OPEN_TURN}": 2,
    }


def test_a_chat_of_an_older_gemini_cli_is_a_document_with_the_same_turns(project: Project) -> None:
    ingested(project, "session-1.json", as_document(made.GEMINI_OLD))
    assert rows_of(project, "executions", *RUN) == GEMINI_RUNS


def test_an_answer_of_gemini_cli_at_the_end_is_no_hand_back_if_it_may_ask_for_a_tool_besides(project: Project) -> None:
    for output, found in ((6, 1), (40, 0)):
        turn = [made.gemini_header(), made.prompt(1, "Mend it."), made.answer(4, "I look at the parser.", output)]
        project.write_bytes("s.jsonl", as_lines(turn))
        assert len(read(project)) == found
    project.write_bytes("s.jsonl", as_lines([*turn, made.prompt(60, "And now?")]))
    assert [run["execution_id"] for run in read(project)] == [f"{made.CHAT}:m-1"]


def test_turns_of_a_subagent_of_gemini_cli_have_calls_alone(project: Project) -> None:
    project.write_bytes("s.jsonl", as_lines([made.gemini_header(kind="subagent"), *made.GEMINI_CHAT[2:14]]))
    assert (read(project), len(read(project, "model_call")), len(read(project, "tool_call"))) == ([], 4, 3)
    assert lines_of(project)[1][f"Gemini CLI {coding_turns.SUBAGENTS_TURN}"] == 1
