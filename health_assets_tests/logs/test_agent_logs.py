"""OpenTelemetry logs of coding agents: what their turns, model calls and tool calls become."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.logs.formats import AGENT_LOGS, agent_log_turns, agent_logs, coding_turns
from health_assets.logs.inspection import files_at, inspected
from health_assets.logs.limits import current_limits
from health_assets.logs.otlp_evaluations import NOT_USED
from health_assets_tests.support import agent_logs_made as made
from health_assets_tests.support import coding_sessions_made as sessions
from health_assets_tests.support.coding_sessions_made import SESSION, ZERO
from health_assets_tests.support.foreign_lines import lines_of
from health_assets_tests.support.logs_made import execution, line
from health_assets_tests.support.projects import Project, assert_lines_are_conserved

HOUR = datetime(2026, 6, 7, 13, tzinfo=UTC)
RUN = ("execution_id", "status", "error", "started_at", "ended_at", "api_calls", "error_count", "actions")
SHARED = "agent_id, agent_version, session_id, model"
MODEL_CALL = (
    "call_id", "model", "status", "error", "ended_at", "latency_ms", "execution_id", "input_tokens", "output_tokens",
)  # fmt: skip
TOOL_CALL = ("call_id", "tool", "status", "error", "latency_ms", "ended_at", "execution_id")
TRACE = "0da3367daf1cbc99670ae8902bdee1c9"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def rows_of(project: Project, table: str, *columns: str) -> list[tuple]:
    order = "ALL" if columns == ("*",) else "ended_at"
    return project.query(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")


def ingested(project: Project, **contents: bytes) -> None:
    for name, content in contents.items():
        project.write_bytes(f"{name}.jsonl", content)
    project.materialize(HourRange.of(HOUR), only=["ingest"])
    assert_lines_are_conserved(project)


def after(seconds: float) -> datetime:
    return ZERO + timedelta(seconds=seconds)


def read(project: Project, kind: str = "execution") -> list[dict[str, Any]]:
    """The records of a kind that the files come to."""
    records = [json.loads(row["line"]) for row in lines_of(project)[0] if row["fault"] is None]
    return [record for record in records if record.get("type") == kind]


def session(agent: str) -> bytes:
    return made.dumped(made.SESSIONS[agent])


def line_of(agent: str, *records: dict[str, Any]) -> bytes:
    return made.dumped([made.line(agent, records)])


# -- Claude Code -------------------------------------------------------------------------------------------------------


def test_turns_of_claude_code_are_executions(project: Project) -> None:
    ingested(project, logs=session("claude_code"))
    assert rows_of(project, "executions", *RUN) == [
        ("p-1", "success", None, after(0), after(6), 2, 1, ["Bash", "Bash"]),
        ("p-3", "failure", "API error (529)", after(20), after(21), 0, 1, []),
    ]
    first = project.query(f"SELECT {SHARED}, cost_usd, input_tokens FROM executions WHERE execution_id = 'p-1'")
    model = "claude-sonnet-4-6"
    assert first == [("claude-code", "2.1.197", SESSION, model, pytest.approx(4 * 0.002), 4 * 153)]
    assert [run["user_id"] for run in read(project)] == ["installation-7"] * 2


def test_calls_of_claude_code_have_their_outcome_duration_tokens_and_cost(project: Project) -> None:
    ingested(project, logs=session("claude_code"))
    model = "claude-sonnet-4-6"
    assert rows_of(project, "model_calls", *MODEL_CALL) == [
        ("req_title", model, "success", None, after(1), 900.0, "p-1", 153, 40),  # tokens of the cache are input, too
        ("req_1", model, "success", None, after(2.1), 900.0, "p-1", 153, 40),
        ("req_sub", model, "success", None, after(4), 900.0, "p-1", 153, 40),
        ("req_2", model, "success", None, after(6), 900.0, "p-1", 153, 40),
        ("req_3", model, "failure", "API error (529)", after(21), 12.0, "p-3", None, None),
        ("req_4", model, "success", None, after(31), 900.0, "p-4", 153, 40),
        ("req_5", model, "success", None, after(41), 900.0, "p-5", 153, 40),
    ]
    cached = "cache_read_tokens, cache_creation_tokens, cost_usd"
    assert project.query(f"SELECT DISTINCT {cached} FROM model_calls WHERE status = 'success'") == [(100, 50, 0.002)]
    assert rows_of(project, "tool_calls", *TOOL_CALL) == [
        ("toolu_1", "Bash", "success", None, 250.0, after(3), "p-1"),
        ("toolu_2", "Bash", "failure", "ShellError", 250.0, after(5), "p-1"),
    ]


def test_what_logs_of_claude_code_hold_besides_is_counted(project: Project) -> None:
    project.write_bytes("logs.jsonl", session("claude_code"))
    assert lines_of(project)[1] == {
        f"Claude Code {coding_turns.OPEN_TURN}": 2,
        f"Claude Code {coding_turns.UNANSWERED}": 1,
        f"Claude Code {coding_turns.NOT_ALLOWED}": 1,
        f"Claude Code {agent_log_turns.UNTOUCHED}": 1,
    }


def test_a_session_of_claude_code_and_its_logs_tell_of_the_same_executions(project: Project) -> None:
    prompt, run = "b0b00000-0000-4000-8000-000000000009", "make test"
    written = [
        sessions.asked(0, prompt, "Mend it."),
        sessions.answered(1, "msg_1", sessions.use("toolu_1", "Bash", command=run), "tool_use", 40),
        sessions.result(2, "toolu_1", "Exit code 2", is_error=True, toolUseResult="Error: Exit code 2"),
        sessions.answered(3, "msg_2", sessions.text("It is mended."), "end_turn", 40),
    ]
    logged = [
        made.claude("user_prompt", 0, prompt, prompt="Mend it."),
        made.claude_request(1, "req_1", prompt),
        made.claude_decision(1.5, "toolu_1", prompt=prompt),
        made.claude_tool(2, "toolu_1", prompt, success="false", error_type="ShellError"),
        made.claude_request(3, "req_2", prompt),
        made.claude_text(3, "req_2", prompt),
    ]
    found = []
    for content in (sessions.as_lines(written), line_of("claude_code", *logged)):
        project.write_bytes("a.jsonl", content)
        [execution], [tool] = read(project), read(project, "tool_call")
        usage = [(call["input_tokens"], call["output_tokens"]) for call in read(project, "model_call")]
        versions_and_users = ("agent_version", "user_id")
        found.append((
            {name: of for name, of in execution.items() if name not in versions_and_users},
            (tool["call_id"], tool["execution_id"], tool["status"], tool["arguments"]), usage,
        ))  # fmt: skip
    assert found[0] == found[1]
    project.write_bytes("b.jsonl", sessions.as_lines(written))
    project.materialize(HourRange.of(HOUR), only=["ingest"])
    assert project.query("SELECT count(*) FROM executions") == [(1,)]
    assert project.query("SELECT count(*) FROM model_calls") == [(4,)]


def test_logs_of_an_older_claude_code_have_turns_from_prompt_to_prompt(project: Project) -> None:
    def old(record: dict[str, Any]) -> dict[str, Any]:
        return made.without(record, "prompt.id", "event.sequence", "query_source", "request_id", "tool_use_id")

    records = [
        made.claude("user_prompt", 0), made.claude_request(1, "r"), made.claude_decision(2, "t"),
        made.claude_tool(3, "t"), made.claude_request(4, "r"), made.claude("user_prompt", 10), made.claude_request(11, "r"),
    ]  # fmt: skip
    ingested(project, logs=line_of("claude_code", *map(old, records)))
    assert rows_of(project, "executions", *RUN) == [
        (f"{SESSION}:{after(0).isoformat()}", "success", None, after(0), after(4), 2, 0, ["Bash"]),
        (f"{SESSION}:{after(10).isoformat()}", "success", None, after(10), after(11), 1, 0, []),
    ]
    assert project.query("SELECT count(DISTINCT call_id) FROM model_calls") == [(3,)]
    assert project.query("SELECT count(*) FROM tool_calls") == [(1,)]


def test_a_turn_of_claude_code_that_only_asked_for_a_tool_is_open_also_where_another_follows(project: Project) -> None:
    later = made.claude("user_prompt", 10, "p-2"), made.claude_request(11, "s", "p-2"), made.claude_text(11, "s", "p-2")
    ingested(project, logs=line_of("claude_code", made.claude("user_prompt", 0), made.claude_request(1, "r"), *later))
    assert rows_of(project, "executions", "execution_id") == [("p-2",)]


SUBAGENT = [
    made.claude("user_prompt", 0),
    made.claude_decision(0.113, "toolu_9", tool_name="Agent"),
    made.claude_request(0.13, "req_10", duration_ms=36),  # it asked for the subagent: it began before the tool did
    made.claude_decision(0.192, "toolu_11"),
    made.claude_request(0.198, "req_12", duration_ms=67, query_source="agent:builtin:general-purpose"),
    made.claude_tool(0.221, "toolu_11"),
    made.claude_request(0.28, "req_16", duration_ms=5, query_source="agent:builtin:general-purpose"),
    made.claude_text(0.28, "req_16", query_source="agent:builtin:general-purpose"),
    made.claude_tool(0.282, "toolu_9", tool_name="Agent"),
    made.claude_request(0.35, "req_18", duration_ms=60),
    made.claude_text(0.35, "req_18"),
]
"""A turn with a subagent, in the order and with the times of a recorded one."""
SUBAGENTS_TEXT = f"Claude Code {agent_log_turns.NO_EVENT}"


@pytest.mark.parametrize("is_told", [True, False])
def test_a_tool_of_claude_code_is_one_action_and_one_call_whether_or_not_a_subagents_answers_are_told_apart(
    project: Project, is_told: bool
) -> None:
    records = SUBAGENT if is_told else [made.without(record, "query_source") for record in SUBAGENT]
    ingested(project, logs=line_of("claude_code", *records))
    actions = ["Agent", "Bash"]
    assert rows_of(project, "executions", *RUN) == [("p-1", "success", None, after(0), after(0.35), 2, 0, actions)]
    assert rows_of(project, "tool_calls", "call_id") == [("toolu_11",), ("toolu_9",)]
    assert lines_of(project)[1] == {SUBAGENTS_TEXT: 1}


@pytest.mark.parametrize("is_told", [True, False])
def test_a_turn_of_claude_code_whose_subagent_is_at_work_is_open(project: Project, is_told: bool) -> None:
    records = SUBAGENT[:8] if is_told else [made.without(record, "query_source") for record in SUBAGENT[:8]]
    project.write_bytes("logs.jsonl", line_of("claude_code", *records))
    assert read(project) == []
    waiting = {f"Claude Code {coding_turns.OPEN_TURN}": 1, f"Claude Code {coding_turns.UNANSWERED}": 1}
    assert lines_of(project)[1] == {SUBAGENTS_TEXT: 1, **waiting}


def test_a_result_of_claude_code_that_comes_once_the_agent_went_on_is_no_second_action(project: Project) -> None:
    records = [
        made.claude("user_prompt", 0), made.claude_decision(1, "t"), made.claude_request(2, "r"),
        made.claude_request(3, "s"), made.claude_tool(4, "t"), made.claude_request(5, "u"), made.claude_text(5, "u"),
    ]  # fmt: skip
    project.write_bytes("logs.jsonl", line_of("claude_code", *records))
    assert [(run["status"], run["actions"], run["api_calls"]) for run in read(project)] == [("success", ["Bash"], 3)]
    assert lines_of(project)[1] == {}


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ([made.claude_request(1, "r"), made.claude_text(1, "r")], "success"),
        ([made.claude_request(1, "r")], "success"),  # of a version that does not tell which answers have a text
        ([made.claude_text(0.5, "q"), made.claude_request(1, "r")], None),  # of one that does
        ([made.claude_decision(1, "t"), made.claude_request(2, "r"), made.claude_text(2, "r")], None),
        ([made.claude_decision(1, "t"), *(made.claude_request(s, f"r{s}") for s in (2, 3))], "success"),  # it went on
        ([made.claude_request(1, "r"), made.claude_tool(2, "t")], None),
        ([made.claude_request(1, "r", query_source="compact")], None),
        ([made.claude_request(1, "r"), made.claude("api_error", 2, status_code=500)], "failure"),
        ([made.claude("api_error", 1, status_code=500), made.claude_request(2, "r")], "success"),
        ([made.claude_request(1, "r"), made.claude("api_error", 2, query_source="agent:custom")], "success"),
    ],
)
def test_the_last_turn_of_claude_code_ended_if_an_answer_is_the_last_thing_and_no_tool_is_at_work(
    project: Project, records: list[dict[str, Any]], status: str | None
) -> None:
    project.write_bytes("logs.jsonl", line_of("claude_code", made.claude("user_prompt", 0), *records))
    assert [run["status"] for run in read(project)] == ([] if status is None else [status])


def test_events_of_claude_code_within_a_trace_are_told_by_its_spans_alone(project: Project) -> None:
    traced = [record | {"traceId": TRACE, "spanId": TRACE[:16]} for record in made.CLAUDE[0]]
    untraced = [record | {"traceId": "0" * 32, "spanId": ""} for record in made.CLAUDE[1]]
    project.write_bytes("logs.jsonl", line_of("claude_code", *traced) + line_of("claude_code", *untraced))
    lines, notes = lines_of(project)
    assert notes[agent_logs.TRACED] == len(traced)
    assert [run["execution_id"] for run in read(project)] == ["p-3"]
    assert {row["line_number"] for row in lines} == {2}


# -- Codex -------------------------------------------------------------------------------------------------------------


def test_turns_of_codex_are_executions(project: Project) -> None:
    ingested(project, logs=session("codex"))
    turn = f"{made.CONVERSATION}:{{}}".format
    tools = ["exec_command"] * 3
    assert rows_of(project, "executions", *RUN) == [
        (turn(after(1).isoformat()), "success", None, after(1), after(8), 2, 1, tools),
        (turn(after(20).isoformat()), "failure", "API error (503)", after(20), after(22), 0, 2, []),
        (turn(after(30).isoformat()), "success", None, after(30), after(33), 1, 1, []),
    ]
    shared = project.query(f"SELECT DISTINCT {SHARED} FROM executions")
    assert shared == [("codex", "0.171.0", made.CONVERSATION, "gpt-5")]


def test_calls_of_codex_have_their_outcome_duration_and_tokens(project: Project) -> None:
    ingested(project, logs=session("codex"))
    columns = ("status", "error", "ended_at", "latency_ms", "input_tokens", "output_tokens", "reasoning_tokens")
    failed = ("failure", "API error (503)")
    assert rows_of(project, "model_calls", *columns) == [
        ("success", None, after(3), 1100.0, 200, 30, 5),  # from the request to the end of the answer
        ("success", None, after(8), 1100.0, 200, 30, 5),
        (*failed, after(21), 100.0, None, None, None),
        (*failed, after(22), 100.0, None, None, None),
        (*failed, after(31), 100.0, None, None, None),
        ("success", None, after(33), 1100.0, 200, 30, 5),
        ("success", None, after(42), 1100.0, 200, 30, 5),
    ]
    of = f"{made.CONVERSATION}:{after(1).isoformat()}"
    assert rows_of(project, "tool_calls", *TOOL_CALL) == [
        ("call_1", "exec_command", "success", None, 500.0, after(4), of),
        ("call_2", "exec_command", "failure", "exit code 3", 500.0, after(5), of),
    ]


def test_what_logs_of_codex_hold_besides_is_counted(project: Project) -> None:
    project.write_bytes("logs.jsonl", session("codex"))
    assert lines_of(project)[1] == {
        f"Codex {agent_log_turns.NO_EVENT}": 9,  # a start, 4 requests and 4 ends of answers without tokens
        f"Codex {coding_turns.OPEN_TURN}": 1,
        f"Codex {coding_turns.UNANSWERED}": 1,
        f"Codex {coding_turns.NOT_ALLOWED}": 1,
    }


# -- Gemini CLI --------------------------------------------------------------------------------------------------------


def test_an_exit_code_that_a_command_of_codex_writes_is_not_its_own(project: Project) -> None:
    own = {"tool_name": "exec_command", "call_id": "call_1", "success": "true"}
    result = made.codex("tool_result", 3, output="the log says:\nProcess exited with code 9", **own)
    ingested(project, logs=line_of("codex", made.codex("user_prompt", 1, prompt="Go."), result))
    assert rows_of(project, "tool_calls", "status", "error") == [("success", None)]


def test_turns_of_gemini_cli_are_executions(project: Project) -> None:
    ingested(project, logs=session("gemini_cli"))
    tools = ["run_shell_command"] * 2
    assert rows_of(project, "executions", *RUN) == [
        (f"{made.CHAT}########0", "success", None, after(1), after(5), 2, 1, tools),
        (f"{made.CHAT}########1", "failure", "API error (503)", after(20), after(21), 0, 1, []),
    ]
    first = project.query(f"SELECT {SHARED} FROM executions WHERE succeeded")
    assert first == [("gemini-cli", None, made.CHAT, "gemini-2.5-flash")]  # the service's version is that of Node


def test_calls_of_gemini_cli_have_their_outcome_duration_and_tokens(project: Project) -> None:
    ingested(project, logs=session("gemini_cli"))
    columns = ("status", "ended_at", "latency_ms", "execution_id", "input_tokens", "output_tokens", "cache_read_tokens")
    turns = [f"{made.CHAT}########{turn}" for turn in range(4)]
    assert rows_of(project, "model_calls", *columns) == [
        ("success", after(2), 800.0, turns[0], 300, 31, 80),  # thoughts are beside the output, the cache in the input
        ("success", after(5), 800.0, turns[0], 300, 31, 80),
        ("success", after(6), 800.0, None, 300, 31, 80),
        ("failure", after(21), 9.0, turns[1], None, None, None),
        ("success", after(31), 800.0, turns[2], 300, 31, 80),
        ("success", after(41), 800.0, turns[3], 300, 31, 80),
    ]
    assert rows_of(project, "tool_calls", *TOOL_CALL[1:]) == [
        ("run_shell_command", "success", None, 75.0, after(3), turns[0]),
        ("run_shell_command", "failure", "invalid_tool_params", 75.0, after(4), turns[0]),
    ]


def test_tools_of_gemini_cli_that_end_in_the_same_millisecond_are_calls_of_their_own(project: Project) -> None:
    tools = [made.gemini_tool(2), made.gemini_tool(2, success=False, error="no", function_args="{}")]
    ingested(project, logs=line_of("gemini_cli", made.gemini("user_prompt", 1), *tools))
    assert sorted(rows_of(project, "tool_calls", "status")) == [("failure",), ("success",)]


def test_what_logs_of_gemini_cli_hold_besides_is_counted(project: Project) -> None:
    project.write_bytes("logs.jsonl", session("gemini_cli"))
    assert lines_of(project)[1] == {
        f"Gemini CLI {agent_log_turns.NO_EVENT}": 4,
        f"Gemini CLI {agent_log_turns.NO_PROMPT}": 1,
        f"Gemini CLI {coding_turns.OPEN_TURN}": 2,
        f"Gemini CLI {coding_turns.NOT_ALLOWED}": 1,
    }


@pytest.mark.parametrize(
    ("records", "count"),
    [
        ([made.gemini_answer(2)], 0),  # it may have asked for a tool
        ([made.gemini_answer(2, response_text='[{"parts": [{"text": "Done."}]}]')], 1),
        ([made.gemini_answer(2, response_text='[{"parts": [{"text": "a \\"functionCall\\": is"}]}]')], 1),
        ([made.gemini_answer(2, response_text='[{"parts": [{"functionCall": {"name": "ls"}}]}]')], 0),
        ([made.gemini_answer(2), made.gemini("plan.approval_mode_duration", 3, None, mode="yolo")], 1),
        ([made.gemini_answer(2), made.gemini("user_prompt", 3, 1)], 1),
    ],
)
def test_the_last_turn_of_gemini_cli_ended_if_its_answer_asked_for_no_tool_or_something_ended_it(
    project: Project, records: list[dict[str, Any]], count: int
) -> None:
    project.write_bytes("logs.jsonl", line_of("gemini_cli", made.gemini("user_prompt", 1), *records))
    assert len(read(project)) == count


# -- all ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", made.SESSIONS)
def test_logs_are_the_same_in_every_spelling_order_and_form(project: Project, agent: str) -> None:
    lines = made.SESSIONS[agent]
    project.write_bytes("logs.jsonl", made.dumped(lines))
    kinds = ("execution", "model_call", "tool_call")
    expected = [sorted(map(str, read(project, kind))) for kind in kinds]
    records = [record for one in lines for record in one["resourceLogs"][0]["scopeLogs"][0]["logRecords"]]
    mixed = [made.line(agent, [record]) for record in Random(7).sample(records, len(records))]
    resources = [resource for one in lines for resource in one["resourceLogs"]]
    forms = {
        "logs.jsonl": [
            made.dumped(made.as_collected(lines)), made.in_snake_case(made.dumped(lines).decode()).encode(),
            made.dumped(lines + lines), b'{"half": "of a li\n' + made.dumped(lines),
        ],
        "logs.json": [json.dumps({"resourceLogs": resources}, indent=1).encode(), made.dumped(lines)],
    }  # fmt: skip
    forms["logs.jsonl"].append(made.dumped(mixed))
    for name, contents in forms.items():
        for place, content in enumerate(contents):
            (project.raw / "logs.jsonl").unlink(missing_ok=True)
            project.write_bytes(name, content)
            assert [sorted(map(str, read(project, kind))) for kind in kinds] == expected, (name, place)


def gemini_write(seconds: float) -> dict[str, Any]:
    return made.gemini_tool(seconds, function_name="write_file", function_args="{}", success=False, error="full")


OF_ONE_MOMENT = {
    "claude_code": [
        made.claude("user_prompt", 0), made.claude_request(1, "r1"), made.claude_decision(1, "t1"),
        made.claude_decision(1, "t2", tool_name="Write"), made.claude_tool(1, "t1"),
        made.claude_tool(1, "t2", tool_name="Write", success="false"), made.claude_request(2, "r2"),
        made.claude_text(2, "r2"),
    ],
    "codex": [
        made.codex("user_prompt", 0), made.codex_request(0.9), *made.codex_answer(1), *made.codex_tool(1.5, "t1"),
        *made.codex_tool(1.5, "t2", code=3), made.codex_request(1.5), *made.codex_answer(2),
    ],
    "gemini_cli": [
        made.gemini("user_prompt", 0), made.gemini_answer(1), made.gemini_tool(1), gemini_write(1), made.gemini_answer(2),
        made.gemini("conversation_finished", 2, None),
    ],
}  # fmt: skip
"""A turn with two tools, many of whose events are of one moment."""


@pytest.mark.parametrize(
    ("agent", "actions"),
    [
        ("claude_code", ["Bash", "Write"]),
        ("codex", ["exec_command"] * 2),
        ("gemini_cli", ["run_shell_command", "write_file"]),
    ],
)
def test_events_of_one_moment_are_the_same_turn_in_every_order(
    project: Project, agent: str, actions: list[str]
) -> None:
    records = [made.without(record, "event.sequence") for record in OF_ONE_MOMENT[agent]]
    found = set()
    for seed in range(20):
        lines = [made.line(agent, [record]) for record in Random(seed).sample(records, len(records))]
        project.write_bytes("logs.jsonl", made.dumped(lines))
        [run] = read(project)
        assert (run["status"], run["actions"], run["api_calls"], run["error_count"]) == ("success", actions, 2, 1)
        found.add(str([sorted(map(str, read(project, kind))) for kind in ("execution", "model_call", "tool_call")]))
    assert len(found) == 1


@pytest.mark.parametrize("agent", made.SESSIONS)
def test_logs_that_were_read_while_they_grew_become_what_they_are_in_one_go(project: Project, agent: str) -> None:
    content = session(agent)
    for share in (0.3, 0.6, 0.9, 1):
        ingested(project, logs=content[: int(share * len(content))])
    clean = project.clean_rebuild(HourRange.of(HOUR), only=["ingest"])
    for table in ("executions", "model_calls", "tool_calls", "rejected_records", "raw_file_notes"):
        assert rows_of(project, table, "*") == rows_of(clean, table, "*"), table
    assert project.query("SELECT reason FROM rejected_records") == []


def test_logs_that_come_behind_spans_of_the_same_file_are_read_once_they_are_there(project: Project) -> None:
    span = {"traceId": TRACE, "spanId": TRACE[:16], "name": "invoke_agent", "attributes": [],
            "startTimeUnixNano": str(made.ZERO_NS), "endTimeUnixNano": str(made.ZERO_NS + 10**9)}  # fmt: skip
    spans = made.dumped([{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}])
    ingested(project, all=spans)
    ingested(project, all=spans + session("claude_code"))
    clean = project.clean_rebuild(HourRange.of(HOUR), only=["ingest"])
    for table in ("spans", "executions", "model_calls", "rejected_records"):
        assert rows_of(project, table, "*") == rows_of(clean, table, "*"), table
    assert project.query("SELECT count(*) FROM spans") == [(1,)]
    assert rows_of(project, "executions", "execution_id") == [("p-1",), ("p-3",)]


def test_a_turn_that_lies_in_two_files_has_all_calls_and_the_execution_that_the_one_with_its_prompt_tells(
    project: Project,
) -> None:
    first, second = (made.dumped([line]) for line in made.SESSIONS["claude_code"])
    prompt, answer = made.claude("user_prompt", 50, "p-6"), made.claude_request(51, "a", "p-6")
    third = line_of("claude_code", prompt, answer, made.claude_text(51, "a", "p-6"))
    ingested(project, a=first, b=second, c=third, d=line_of("claude_code", made.claude_tool(52, "toolu_9", "p-6")))
    assert rows_of(project, "executions", "execution_id", "ended_at") == [("p-3", after(21)), ("p-6", after(51))]
    assert rows_of(project, "tool_calls", "call_id", "execution_id")[-1] == ("toolu_9", "p-6")
    assert project.query("SELECT count(*) FROM model_calls WHERE execution_id = 'p-1'") == [(4,)]
    assert project.query("SELECT count(*) FROM tool_calls WHERE execution_id = 'p-1'") == [(2,)]


def test_what_else_such_a_file_holds_is_read_as_it_is_elsewhere(project: Project) -> None:
    result = {"eventName": "gen_ai.evaluation.result", "timeUnixNano": str(made.ZERO_NS), "traceId": TRACE,
              "attributes": made.attributes({"gen_ai.evaluation.name": "polite", "gen_ai.evaluation.score.value": 0.5})}  # fmt: skip
    evaluated = {"scopeLogs": [{"scope": {"name": "judge"}, "logRecords": [result]}]}
    other = {"scopeLogs": [{"scope": {"name": "shop"}, "logRecords": [{"body": made.value("sold")}]}]}
    own = made.SESSIONS["claude_code"][1]
    lines = [{"resourceLogs": [other]}, {"resourceLogs": [evaluated, *own["resourceLogs"]]}, {"resourceMetrics": []}]
    ingested(project, all=made.dumped(lines))
    assert rows_of(project, "executions", "execution_id") == [("p-3",)]
    assert project.query("SELECT name, value FROM evaluations") == [("polite", 0.5)]
    rejected = project.query("SELECT line_number, reason, raw FROM rejected_records ORDER BY line_number")
    assert rejected == [(1, NOT_USED, ""), (3, agent_logs.METRICS, "")]


def test_native_lines_of_such_a_file_are_read_unless_it_begins_with_one(project: Project) -> None:
    native = line(execution("e1", "planner", HOUR)).encode() + b"\n"
    ingested(project, last=session("codex") + native)
    assert project.query("SELECT count(*) FROM executions") == [(4,)]
    ingested(project, last=native + session("codex"))
    assert project.query("SELECT count(*) FROM executions") == [(1,)]
    assert project.query("SELECT DISTINCT reason FROM rejected_records") == [(NOT_USED,)]


def test_logs_beyond_the_first_8_mib_do_not_make_a_file_one_of_coding_agents(project: Project) -> None:
    before = made.dumped([{"resourceMetrics": [], "padding": "x" * (1 << 20)}])
    for count, found in ((7, 3), (9, 0)):
        project.write_bytes("all.jsonl", before * count + session("codex"))
        assert len([row for row in lines_of(project)[0] if '"type": "execution"' in row["line"]]) == found


def test_logs_of_other_programs_stay_what_they_are(project: Project) -> None:
    lines = [made.line("codex", [{"body": made.value("codex is a book"), "attributes": []}], scope="library")]
    project.write_bytes("logs.jsonl", made.dumped(lines))
    [found] = inspected(files_at(project.raw), Targets(), current_limits())
    assert (found.formats, [one.reason for one in found.rejections]) == (["OTLP-JSON"], [NOT_USED])


@pytest.mark.parametrize("agent", made.SESSIONS)
def test_an_inspection_names_logs_of_coding_agents(project: Project, agent: str) -> None:
    project.write_bytes("logs.jsonl", session(agent))
    [found] = inspected(files_at(project.raw), Targets(), current_limits())
    assert (found.formats, found.rejections) == ([AGENT_LOGS], [])
    assert {*found.records["execution"].agents} == {agent.replace("_", "-")}


def test_an_event_that_cannot_be_used_is_rejected_once_a_line_with_its_reason_alone(project: Project) -> None:
    records = [
        made.without(made.claude("user_prompt", 0), "session.id"),
        made.without(made.claude("user_prompt", 1), "event.timestamp")
        | {"timeUnixNano": "0", "observedTimeUnixNano": ""},
        made.claude("user_prompt", 2, event__timestamp="at noon"),
        made.claude_tool(3, "toolu_1", tool_name=None),
        made.claude_tool(4, "toolu_2", tool_name=None),
    ]
    project.write_bytes("logs.jsonl", line_of("claude_code", *records))
    rejected = [(row["line_number"], row["line"], row["fault"]) for row in lines_of(project)[0] if row["fault"]]
    assert sorted(rejected) == [
        (1, "", "event.timestamp must be ISO 8601"),
        (1, "", "id of an event's session is missing"),
        (1, "", "name of a tool is missing"),
        (1, "", "the time of an event is missing"),
    ]


NAMES = (
    "event.name", "event.timestamp", "session.id", "conversation.id", "prompt.id", "prompt_id", "event.kind", "app.version",
    "model", "role", "query_source", "request_id", "error_type", "tool_name", "function_name", "tool_use_id", "call_id",
    "success", "decision", "endpoint", "service.name", "service.version",
)  # fmt: skip
"""Attributes whose texts are names, ids and times."""


def test_logs_without_a_log_record_are_counted(project: Project) -> None:
    lines = made.SESSIONS["gemini_cli"]
    written = made.dumped(lines).replace(b'"logRecords"', b'"logRecorDs"')
    project.write_bytes("logs.jsonl", written)
    project.write_bytes("logs.json", json.dumps({"resourceLogs": lines[0]["resourceLogs"]}).encode() + b"\n")
    project.write_bytes("damaged.json", written.split(b"\n")[0])
    _, notes = lines_of(project)
    assert notes[agent_logs.NO_RECORDS] == len(lines) + 1


SECRET = "hunter2-orchard"


def with_secrets(written: Any) -> Any:
    """The same with a secret in each text of an attribute that is none of these and no number."""
    if isinstance(written, dict) and "key" in written:
        of = written["value"].get("stringValue")
        is_content = isinstance(of, str) and written["key"] not in NAMES and not of.isdigit()
        return written | {"value": made.value(f"{of} {SECRET}")} if is_content else written
    if isinstance(written, dict):
        return {key: with_secrets(of) for key, of in written.items()}
    return [with_secrets(one) for one in written] if isinstance(written, list) else written


@pytest.mark.parametrize(("agent", "count"), [("claude_code", 2), ("codex", 3), ("gemini_cli", 2)])
def test_no_prompt_argument_or_address_of_logs_is_stored(project: Project, agent: str, count: int) -> None:
    lines = with_secrets(made.SESSIONS[agent])
    secret = made.attributes({"process.command_args": SECRET, "prompt": SECRET})
    lines.append({"resourceLogs": [lines[0]["resourceLogs"][0] | {"resource": {"attributes": secret}}]})
    lines.append(made.line(agent, [{"body": made.value(SECRET), "attributes": secret, "timeUnixNano": "1"}]))
    lines.append({"resourceMetrics": [{"resource": {"attributes": secret}}]})
    content = made.dumped(lines)
    assert content.count(SECRET.encode()) > 20
    project.write_bytes("logs.jsonl", content)
    project.write_bytes("half.jsonl", content[: content.index(SECRET.encode()) + 40])
    project.write_bytes("without_its_beginning.jsonl", content[content.index(f'"{agent}.'.encode()) :].split(b"\n")[0])
    project.write_bytes("cut.jsonl", content[content.index(SECRET.encode()) :] + content)
    project.write_bytes(
        "damaged.jsonl", content.replace(SECRET.encode(), SECRET.encode() + b"\xff", 1) + b'{"a": "' + content
    )
    project.write_bytes("list.jsonl", content + json.dumps([SECRET]).encode() + b"\n")
    resources = [resource for line in lines for resource in line.get("resourceLogs", [])]
    document = json.dumps({"resourceLogs": resources}, indent=1).encode()
    project.write_bytes("logs.json", document)
    project.write_bytes("half.json", document[: len(document) // 2])
    project.materialize(HourRange.of(HOUR), only=["ingest"])
    assert project.query("SELECT count(DISTINCT execution_id) FROM executions") == [(count,)]
    assert project.query("SELECT count(*) > 3 FROM rejected_records") == [(True,)]
    for (table,) in project.query("SELECT table_name FROM information_schema.tables"):
        assert project.query(f"SELECT * FROM {table} AS t WHERE contains(lower(t::VARCHAR), '{SECRET}')") == [], table
        assert project.query(f"SELECT * FROM {table} AS t WHERE contains(t::VARCHAR, 'orchard.example')") == [], table


def test_a_session_that_another_hour_goes_on_has_its_turns_in_their_own_hours(project: Project) -> None:
    later = [
        made.claude("user_prompt", 3600, "p-9"),
        made.claude_request(3601, "r", "p-9"),
        made.claude_text(3601, "r", "p-9"),
    ]
    project.write_bytes("logs.jsonl", session("claude_code") + line_of("claude_code", *later))
    project.materialize(HourRange(HOUR, HOUR + timedelta(hours=2)), only=["ingest"])
    assert project.query("SELECT hour, count(*) FROM executions GROUP BY hour ORDER BY hour") == [
        (HOUR, 2), (HOUR + timedelta(hours=1), 1),
    ]  # fmt: skip
