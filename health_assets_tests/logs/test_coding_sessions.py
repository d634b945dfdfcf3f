"""Sessions of coding agents: turns become executions, each call counts once, and no prompt, code or path is stored."""

import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health_assets.core.hours import HourRange
from health_assets.logs.files import line_batches, list_files
from health_assets.logs.formats import claude_code, codex, coding_turns
from health_assets_tests.fuzz.mutations import with_another_value
from health_assets_tests.support import coding_agents_made
from health_assets_tests.support import coding_sessions_made as made
from health_assets_tests.support.foreign_lines import lines_of
from health_assets_tests.support.projects import Project, assert_lines_are_conserved

HOUR = datetime(2026, 6, 7, 13, tzinfo=UTC)
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
CANCELLED = ("execution_id", "agent_id", "agent_version", "session_id", "model", "started_at", "ended_at")
RUN = ("execution_id", "status", "error", "started_at", "ended_at", "api_calls", "error_count", "actions")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def rows_of(project: Project, table: str, *columns: str) -> list[tuple]:
    return project.query(f"SELECT {', '.join(columns)} FROM {table} ORDER BY ALL")


def ingested(project: Project) -> None:
    project.materialize(HourRange.of(HOUR), only=["ingest"])
    assert_lines_are_conserved(project)


def after(seconds: float) -> datetime:
    return made.ZERO + timedelta(seconds=seconds)


def read(project: Project, kind: str = "execution") -> list[dict[str, Any]]:
    """The records of a kind that the files come to."""
    lines, _ = lines_of(project)
    records = [json.loads(row["line"]) for row in lines if row["fault"] is None]
    return [record for record in records if record["type"] == kind]


# -- Claude Code -------------------------------------------------------------------------------------------------------


def test_turns_of_claude_code_are_executions(project: Project) -> None:
    project.write_bytes("-home-ada-orchard/s.jsonl", made.as_lines(made.CLAUDE_SESSION))
    ingested(project)
    assert rows_of(project, "executions", *RUN) == [
        (made.PARSER, "success", None, after(0), after(12), 3, 2, ["Bash", "Grep"]),
        (made.LIMIT, "failure", "API error: rate_limit (429)", after(120), after(121), 0, 1, []),
        (made.DOCS, "success", None, after(240), after(250), 2, 0, ["Agent"]),
    ]
    shared = "agent_id, agent_version, session_id"
    assert project.query(f"SELECT DISTINCT {shared} FROM executions") == [("claude-code", "2.1.143", made.SESSION)]
    assert rows_of(project, "executions", "model", "input_digest IS NOT NULL") == [
        ("claude-sonnet-4-6", True), ("claude-sonnet-4-6", True), (None, True),
    ]  # fmt: skip


def test_turns_of_claude_code_that_their_user_interrupted_are_cancellations_with_their_tokens(project: Project) -> None:
    project.write_bytes("s.jsonl", made.as_lines(made.CLAUDE_SESSION))
    ingested(project)
    assert rows_of(project, "cancellations", *CANCELLED, "input_tokens", "output_tokens") == [
        (made.NOTES, "claude-code", "2.1.143", made.SESSION, "claude-sonnet-4-6", after(60), after(65), 153, 1),
        (made.PLAN, "claude-code", "2.1.143", made.SESSION, "claude-sonnet-4-6", after(180), after(185.5), 153, 10),
    ]


def test_a_session_of_claude_code_that_repeats_a_cancelled_turn_counts_it_once(project: Project) -> None:
    project.write_bytes("s.jsonl", made.as_lines(made.CLAUDE_SESSION))
    repeated = made.CLAUDE_SESSION[2 : made.CLAUDE_SESSION.index(made.interrupted(65)) + 1]
    forked = [record | {"sessionId": "s-2", "forkedFrom": {"sessionId": made.SESSION}} for record in repeated]
    project.write_bytes("resumed.jsonl", made.as_lines(forked))
    ingested(project)
    assert rows_of(project, "cancellations", "execution_id") == [(made.NOTES,), (made.PLAN,)]
    assert rows_of(project, "superseded_cancellations", "execution_id", "session_id") == [(made.NOTES, made.SESSION)]


def test_tokens_of_a_message_of_claude_code_count_once_however_many_lines_repeat_them(project: Project) -> None:
    project.write_bytes("s.jsonl", made.as_lines(made.CLAUDE_TURN))
    ingested(project)
    each = (153, 100, 50)
    assert rows_of(project, "model_calls", "call_id", "ended_at", *TOKENS) == [
        (call_id, after(seconds), each[0], output, *each[1:])
        for call_id, seconds, output in (("msg_1", 3, 20), ("msg_2", 6, 30), ("msg_3", 12, 40))
    ]
    assert rows_of(project, "executions", *TOKENS) == [(3 * 153, 90, 300, 150)]


def test_tool_calls_of_claude_code_have_their_outcome_and_duration(project: Project) -> None:
    project.write_bytes("s.jsonl", made.as_lines(made.CLAUDE_SESSION))
    ingested(project)
    columns = ("call_id", "tool", "execution_id", "status", "error", "latency_ms", "ended_at")
    assert rows_of(project, "tool_calls", *columns) == [
        ("toolu_1", "Bash", made.PARSER, "failure", "exit code 2", 2000.0, after(5)),
        ("toolu_2", "Grep", made.PARSER, "success", None, 250.0, after(9)),
        ("toolu_4", "Agent", made.DOCS, "success", None, 5000.0, after(247)),
        ("toolu_5", "Read", made.DOCS, "success", None, 1000.0, after(244)),
    ]
    [(digests,)] = project.query("SELECT count(arguments_digest) FROM tool_calls")
    assert digests == 4


def test_what_a_session_of_claude_code_has_besides_is_counted(project: Project) -> None:
    project.write_bytes("s.jsonl", made.as_lines(made.CLAUDE_SESSION))
    _, notes = lines_of(project)
    assert notes == {
        claude_code.NO_MESSAGE: 9,  # as above turns, turn_duration, stdout, synthetic, of compaction, of a subagent
        claude_code.RETRIED: 1,
        claude_code.LOCAL_COMMAND: 1,
        claude_code.NOT_ALLOWED: 1,
        claude_code.OPEN_TURN: 1,
        claude_code.UNANSWERED: 1,
    }


def test_a_turn_of_claude_code_ends_once_it_is_known_to_and_keeps_its_id(project: Project) -> None:
    turn = [
        made.asked(0, made.PARSER, "Mend it."),
        made.answered(1, "msg_1", made.text("I look."), None),
    ]
    project.write_bytes("s.jsonl", made.as_lines(turn))
    assert read(project) == []
    for number, more in enumerate(
        [
            [made.asked(60, made.NOTES, "And now?")],
            [made.claude("system", 2, subtype="turn_duration")],
            [{"type": "last-prompt", "sessionId": made.SESSION}],
            [made.answered(1, "msg_1", made.text("I look."), "end_turn")],
        ]
    ):
        project.write_bytes("s.jsonl", made.as_lines([*turn, *more]))
        [run] = read(project)
        assert (run["execution_id"], run["status"]) == (made.PARSER, "success"), number
    goes_on = [made.answered(2, "msg_1", made.use("toolu_1", "Read"), "tool_use")]
    project.write_bytes("s.jsonl", made.as_lines([*turn, *goes_on, made.asked(60, made.NOTES, "And now?")]))
    assert read(project) == []


def test_a_turn_of_claude_code_that_recovers_from_a_failed_model_call_is_a_success(project: Project) -> None:
    lines = [
        made.asked(0, made.PARSER, "Mend it."),
        made.api_error(1, "server_error", 529),
        made.answered(3, "msg_1", made.text("Mended."), "end_turn"),
    ]
    project.write_bytes("s.jsonl", made.as_lines(lines))
    [run] = read(project)
    assert (run["status"], run["error_count"], run.get("error")) == ("success", 1, None)


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_turn_of_claude_code_whose_model_broke_off_is_a_failure_unless_it_goes_on(
    project: Project, reason: str
) -> None:
    lines = [made.asked(0, made.PARSER, "Mend it."), made.answered(3, "msg_1", made.text("I would"), reason)]
    project.write_bytes("s.jsonl", made.as_lines(lines))
    [run] = read(project)
    assert (run["status"], run["error"]) == ("failure", f"the model stopped: {reason}")
    project.write_bytes("s.jsonl", made.as_lines([*lines, made.answered(5, "msg_2", made.text("Mended."), "end_turn")]))
    [run] = read(project)
    assert (run["status"], run.get("error")) == ("success", None)


def test_a_session_of_claude_code_that_another_one_repeats_counts_once(project: Project) -> None:
    project.write_bytes("a.jsonl", made.as_lines(made.CLAUDE_SESSION))
    ingested(project)
    tables = ("executions", "model_calls", "tool_calls")
    before = [rows_of(project, table, "* EXCLUDE (source_file, line_number, session_id)" if table == "executions"
                      else "* EXCLUDE (source_file, line_number)") for table in tables]  # fmt: skip
    resumed = [line | {"sessionId": "another"} for line in made.CLAUDE_SESSION]
    project.write_bytes("b.jsonl", made.as_lines(resumed))
    project.write_bytes("c.jsonl", made.as_lines([*made.CLAUDE_SESSION, *resumed]))
    ingested(project)
    after_all = [rows_of(project, table, "* EXCLUDE (source_file, line_number, session_id)" if table == "executions"
                         else "* EXCLUDE (source_file, line_number)") for table in tables]  # fmt: skip
    assert after_all == before


def test_a_fork_of_claude_code_names_the_session_in_which_a_turn_ran(project: Project) -> None:
    origin = {"sessionId": made.SESSION, "messageUuid": "u-0"}
    forked = [line | {"sessionId": "another", "forkedFrom": origin} for line in made.CLAUDE_TURN]
    project.write_bytes("s.jsonl", made.as_lines(forked))
    [run] = read(project)
    assert (run["execution_id"], run["session_id"]) == (made.PARSER, made.SESSION)


def test_calls_of_a_subagents_own_file_belong_to_the_turn_that_asked_for_it(project: Project) -> None:
    lines = [
        made.asked(1, made.DOCS, "Read the docs.", isSidechain=True, agentId="a1"),
        made.answered(2, "msg_1", made.use("toolu_1", "Read", file_path="/a"), "tool_use", isSidechain=True),
        made.result(3, "toolu_1", "# Docs", isSidechain=True),
        made.answered(4, "msg_2", made.text("Docs are read."), "end_turn", isSidechain=True),
        made.api_error(5, "server_error", 500, isSidechain=True),
    ]
    project.write_bytes("s/subagents/agent-a1.jsonl", made.as_lines(lines))
    assert read(project) == []
    calls = read(project, "model_call") + read(project, "tool_call")
    assert [(call["call_id"], call["execution_id"]) for call in calls] == [
        ("msg_1", made.DOCS), ("msg_2", made.DOCS), ("toolu_1", made.DOCS),
    ]  # fmt: skip
    _, notes = lines_of(project)
    assert notes == {claude_code.FAILED_SUBAGENT: 1, claude_code.NO_MESSAGE: 1}


def test_a_second_prompt_under_one_id_is_a_turn_of_its_own(project: Project) -> None:
    lines = [
        made.asked(0, made.PARSER, "Mend it."),
        made.answered(1, "msg_1", made.text("Mended."), "end_turn"),
        made.asked(2, made.PARSER, "<command-message>check</command-message>"),
        made.answered(3, "msg_2", made.text("Checked."), "end_turn"),
    ]
    project.write_bytes("s.jsonl", made.as_lines(lines))
    assert [run["execution_id"] for run in read(project)] == [made.PARSER, "u-2"]


def test_a_background_task_that_ended_wakes_the_agent_for_a_turn_without_a_prompt(project: Project) -> None:
    told = "<task-notification>\n<task-id>a1</task-id></task-notification>"
    lines = [
        *made.CLAUDE_TURN,
        made.asked(100, made.NOTES, told),
        made.asked(100.5, made.NOTES, told),
        made.answered(102, "msg_4", made.text("The task is done."), "end_turn"),
    ]
    project.write_bytes("s.jsonl", made.as_lines(lines))
    _, run = read(project)
    assert (run["execution_id"], run["started_at"]) == (made.NOTES, after(100).isoformat())
    assert "input" not in run


def test_cost_and_duration_that_old_versions_of_claude_code_tell_are_kept(project: Project) -> None:
    lines = [
        made.asked(0, None, "Mend it.", version="1.0.3"),
        made.answered(2, "msg_1", made.text("Mended."), "end_turn", costUSD=0.25, durationMs=1500),
    ]
    project.write_bytes("s.jsonl", made.as_lines(lines))
    [call], [run] = read(project, "model_call"), read(project)
    assert (call["cost_usd"], call["latency_ms"], run["execution_id"]) == (0.25, 1500.0, "u-0")


LINES_OF_CLAUDE = [made.as_lines([line]).rstrip() for line in made.CLAUDE_SESSION]


@pytest.mark.parametrize("seed", range(4))
def test_a_session_of_claude_code_is_the_same_whether_its_parser_skips_fields_or_reads_all(
    project: Project, seed: int
) -> None:
    """A field that is not a number in JSON sends a line to the parser that reads all."""
    random, lines = Random(seed), list(LINES_OF_CLAUDE)
    for name in ("skips", "reads"):
        project.write_bytes(f"{name}.jsonl", b"")
    for _ in range(50):
        place = random.randrange(1, len(lines))  # the first one tells what the file is
        lines[place] = with_another_value(random, random.choice(LINES_OF_CLAUDE)).replace(b"\n", b" ")
        project.write_bytes("skips.jsonl", b"\n".join(lines))
        project.write_bytes("reads.jsonl", b"\n".join(re.sub(rb"\}$", b', "odd": NaN}', line) for line in lines))
        batches = line_batches(enumerate(list_files(project.raw)), notes := {})
        rows = [row for batch in batches for row in batch.to_pylist()]
        reads, skips = ([row | {"file_id": 0} for row in rows if row["file_id"] == file_id] for file_id in (0, 1))
        assert (skips, notes[1]) == (reads, notes[0])
    assert any(row["fault"] for row in skips)


def test_a_line_of_claude_code_that_is_not_utf_8_is_rejected_also_where_it_is_not_read(project: Project) -> None:
    lines = [
        *LINES_OF_CLAUDE,
        b'{"type": "attachment", "attachment": "\xff"}',
        b'{"type": "attachment", "attachment": tru}',
    ]
    project.write_bytes("s.jsonl", b"\n".join(lines))
    faults = {row["line_number"]: row["fault"] for row in lines_of(project)[0] if row["fault"]}
    assert faults == {len(lines) - 1: "not valid UTF-8: byte 39 of the line", len(lines): "not valid JSON"}


# -- Codex -------------------------------------------------------------------------------------------------------------

QUOTA_ERROR = "error of the model or its provider: usage_limit_exceeded"


def test_turns_of_codex_are_executions(project: Project) -> None:
    project.write_bytes("rollout-1.jsonl", made.as_lines(made.CODEX_SESSION))
    ingested(project)
    assert rows_of(project, "executions", *RUN) == [
        (made.BUILD, "success", None, after(0), after(9), 3, 1, ["exec_command", "apply_patch"]),
        (made.QUOTA, "failure", QUOTA_ERROR, after(120), after(122), 0, 1, []),
    ]
    shared = ("codex", "0.130.0", made.THREAD)
    assert rows_of(project, "executions", "agent_id", "agent_version", "session_id", "model") == [
        (*shared, "gpt-5.4"), (*shared, "gpt-5.4-mini"),
    ]  # fmt: skip
    assert rows_of(project, "executions", *TOKENS, "reasoning_tokens") == [
        (3000, 60, 1800, None, 15), (None, None, None, None, None),
    ]  # fmt: skip
    [(digests,)] = project.query("SELECT count(DISTINCT input_digest) FROM executions")
    assert digests == 2


def test_calls_of_codex_have_their_outcome_duration_and_tokens(project: Project) -> None:
    project.write_bytes("rollout-1.jsonl", made.as_lines(made.CODEX_SESSION))
    ingested(project)
    columns = ("call_id", "tool", "execution_id", "status", "error", "latency_ms")
    assert rows_of(project, "tool_calls", *columns) == [
        ("call_1", "exec_command", made.BUILD, "failure", "exit code 2", 1500.0),
        ("call_2", "apply_patch", made.BUILD, "success", None, 500.0),
    ]
    assert rows_of(project, "model_calls", "call_id", "model", "ended_at", *TOKENS) == [
        (f"{made.BUILD}:{number}", "gpt-5.4", after(seconds), 1000, 20, 600, None)
        for number, seconds in ((1, 2.1), (2, 5.1), (3, 8.1))
    ]


def test_a_turn_of_codex_that_its_user_interrupted_is_a_cancellation(project: Project) -> None:
    project.write_bytes("rollout-1.jsonl", made.as_lines(made.CODEX_SESSION))
    ingested(project)
    assert rows_of(project, "cancellations", *CANCELLED) == [
        (made.ESSAY, "codex", "0.130.0", made.THREAD, "gpt-5.4", after(60), after(64))
    ]


@pytest.mark.parametrize(
    ("told", "cancelled"),
    [({}, 1), ({"reason": "interrupted"}, 1), ({"reason": "replaced"}, 1), ({"reason": "budget_limited"}, 0)],
)
def test_a_turn_of_codex_that_ended_for_another_reason_than_its_user_is_no_cancellation(
    project: Project, told: dict[str, str], cancelled: int
) -> None:
    turn = [made.header(0), *made.begun(1, made.ESSAY, "Write."), made.event(2, "turn_aborted", **told)]
    project.write_bytes("rollout-1.jsonl", made.as_lines(turn))
    assert (len(read(project, "cancellation")), read(project)) == (cancelled, [])
    assert lines_of(project)[1][codex.OPEN_TURN] == 1 - cancelled


def test_what_a_session_of_codex_has_besides_is_counted(project: Project) -> None:
    project.write_bytes("rollout-1.jsonl", made.as_lines(made.CODEX_SESSION))
    _, notes = lines_of(project)
    assert notes == {
        codex.NO_EVENT: 10,  # a header, four settings of turns, and five messages, which events tell, too
        codex.OPEN_TURN: 1,
        codex.UNANSWERED: 1,
    }


def test_turns_that_a_fork_of_codex_repeats_with_another_time_count_in_their_own_file_alone(project: Project) -> None:
    project.write_bytes("rollout-2.jsonl", made.as_lines(made.CODEX_FORK))
    [run], [call] = read(project), read(project, "model_call")
    assert (run["execution_id"], run["session_id"]) == (made.AFTER_FORK, made.FORK)
    assert (call["call_id"], read(project, "tool_call")) == (f"{made.AFTER_FORK}:1", [])
    _, notes = lines_of(project)
    assert notes[codex.COPIED_TURN] == 1


def test_a_session_of_codex_that_does_not_write_its_turns_has_those_that_another_prompt_follows(
    project: Project,
) -> None:
    project.write_bytes("rollout-1.jsonl", made.as_lines(made.CODEX_WITHOUT_TURNS))
    [run], [call] = read(project), read(project, "tool_call")
    assert (run["status"], run["started_at"], run["ended_at"]) == ("success", *(after(s).isoformat() for s in (1, 4)))
    assert (run["execution_id"], run["model"]) == (f"{made.THREAD}:{after(1).isoformat()}", "gpt-5-codex")
    assert (call["tool"], call["status"], call["error"]) == ("local_shell", "failure", "the tool failed")
    _, notes = lines_of(project)
    assert notes[codex.OPEN_TURN] == 1


def test_a_session_of_a_subagent_of_codex_has_calls_alone(project: Project) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": made.FORK}}}
    project.write_bytes("rollout-1.jsonl", made.as_lines([made.header(0, source=source), *made.CODEX_TURN]))
    assert (len(read(project)), len(read(project, "model_call")), len(read(project, "tool_call"))) == (0, 3, 2)
    _, notes = lines_of(project)
    assert notes[codex.SUBAGENTS_TURN] == 1


def test_an_old_rollout_of_codex_is_rejected_as_a_whole_since_its_lines_have_no_times(project: Project) -> None:
    project.write_bytes("rollout-1.jsonl", made.as_lines(made.CODEX_OLD))
    lines, _ = lines_of(project)
    assert [(row["line"], row["fault"]) for row in lines] == [("", codex.UNTIMED)]


OUTPUTS: list[tuple[Any, str, str | None]] = [
    ("Plan updated", "success", None),
    ("Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\n", "success", None),
    ("Exit code: 3\nWall time: 0.1 seconds\nOutput:\nno", "failure", "exit code 3"),
    ("Command: make\nProcess exited with code 0\nOutput:\nProcess exited with code 9", "success", None),
    ('{"output":"no","metadata":{"exit_code":1,"duration_seconds":0.1}}', "failure", "exit code 1"),
    ([{"type": "input_text", "text": "Script failed\nWall time 0.2 seconds\nOutput:\n"}], "failure", "the tool failed"),
    ("failed to parse function arguments: EOF", "failure", "the tool failed"),
    ({"content": "fine", "success": True}, "success", None),
    ("the log says:\nProcess exited with code 9", "success", None),
    ("exec command rejected by user", "not allowed", None),
    ('exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }', "not allowed", None),
    (
        'exec_command failed for `/bin/bash -lc \'ls\nrm x\'`: CreateProcess { message: "Rejected(\\"rejected by user\\")" }',
        "not allowed",
        None,
    ),
    (
        'exec_command failed for `ls`: CreateProcess { message: "Rejected(\\"by policy\\")" }',
        "failure",
        "the tool failed",
    ),
    ("apply_patch verification failed: no such line", "failure", "the tool failed"),
    ('exec_command failed: CreateProcess { message: "No such file or directory" }', "failure", "the tool failed"),
]


@pytest.mark.parametrize(("output", "status", "error"), OUTPUTS, ids=[str(output)[:30] for output, *_ in OUTPUTS])
def test_what_a_result_of_codex_says_of_its_tool(project: Project, output: Any, status: str, error: str | None) -> None:
    called = made.item(2, "function_call", name="shell", arguments="{}", call_id="call_1")
    told = made.item(4, "function_call_output", call_id="call_1", output=output)
    project.write_bytes("r.jsonl", made.as_lines([made.header(0), *made.begun(0, made.BUILD, "Go."), called, told]))
    calls, (_, notes) = read(project, "tool_call"), lines_of(project)
    if status == "not allowed":
        assert (calls, notes[codex.NOT_ALLOWED]) == ([], 1)
    else:
        assert [(call["status"], call.get("error")) for call in calls] == [(status, error)]


@pytest.mark.parametrize(
    "output",
    [
        "Chunk ID: {0}\nWall time: {0}.0 seconds\nProcess exited with code 0\nOutput:\na.py",
        '{{"output":"a.py","metadata":{{"exit_code":0,"duration_seconds":{0}.5}}}}',
    ],
)
def test_a_command_of_codex_that_gave_the_same_has_the_same_result_however_long_it_took(
    project: Project, output: str
) -> None:
    lines = [made.header(0), *made.begun(0, made.BUILD, "Go.")]
    for number in (2, 3):
        lines.append(made.item(2 * number, "function_call", name="shell", arguments="{}", call_id=f"call_{number}"))
        told = output.format(number)
        lines.append(made.item(2 * number + 1, "function_call_output", call_id=f"call_{number}", output=told))
    project.write_bytes("r.jsonl", made.as_lines(lines))
    first, second = read(project, "tool_call")
    assert first["result"] == second["result"]


@pytest.mark.parametrize(
    ("result", "status"),
    [({"Err": "no"}, "failure"), ({"Ok": {"isError": True}}, "failure"), ({"Ok": {"isError": False}}, "success")],
)
def test_a_call_of_an_mcp_server_by_codex_failed_by_its_event(
    project: Project, result: dict[str, Any], status: str
) -> None:
    called = made.item(2, "function_call", name="mcp__docs__search", arguments="{}", call_id="call_1")
    ended = made.event(3, "mcp_tool_call_end", call_id="call_1", result=result)
    told = made.item(4, "function_call_output", call_id="call_1", output="no")
    project.write_bytes(
        "r.jsonl", made.as_lines([made.header(0), *made.begun(0, made.BUILD, "Go."), called, ended, told])
    )
    [call] = read(project, "tool_call")
    assert call["status"] == status


@pytest.mark.parametrize(
    ("end", "statuses"),
    [
        ({"last_agent_message": "Done."}, ["success"]),
        ({"last_agent_message": None}, []),
        ({"last_agent_message": "Partly.", "error": {"message": "no", "codex_error_info": "usage_limit"}}, ["failure"]),
    ],
)
def test_a_turn_of_codex_is_a_success_only_where_a_message_handed_it_back_without_an_error(
    project: Project, end: dict[str, Any], statuses: list[str]
) -> None:
    lines = [
        made.header(0), *made.begun(0, made.BUILD, "Go."), made.event(9, "task_complete", turn_id=made.BUILD, **end)
    ]  # fmt: skip
    project.write_bytes("r.jsonl", made.as_lines(lines))
    assert [run["status"] for run in read(project, "execution")] == statuses
    assert lines_of(project)[1][codex.OPEN_TURN] == (0 if statuses else 1)


def test_turns_of_an_application_that_embeds_codex_are_executions(project: Project) -> None:
    header = made.header(0)
    header["payload"]["source"] = {"custom": "my-app"}
    end = made.event(9, "task_complete", turn_id=made.BUILD, last_agent_message="Done.")
    project.write_bytes("r.jsonl", made.as_lines([header, *made.begun(0, made.BUILD, "Go."), end]))
    assert len(read(project, "execution")) == 1


def test_an_unknown_first_line_of_a_rollout_costs_nothing_of_the_others(project: Project) -> None:
    project.write_bytes("a.jsonl", made.as_lines(made.CODEX_SESSION))
    runs = read(project, "execution")
    project.write_bytes("a.jsonl", made.as_lines([{"type": "x"}, *made.CODEX_SESSION]))
    assert read(project, "execution") == runs


def test_a_command_of_codex_that_is_told_to_have_taken_no_time_took_that_between_its_lines(project: Project) -> None:
    called = made.item(2, "function_call", name="exec_command", arguments="{}", call_id="call_1")
    told = "Wall time: 0.0000 seconds\nProcess exited with code 0\nOutput:\n"
    answer = made.item(2.25, "function_call_output", call_id="call_1", output=told)
    project.write_bytes("r.jsonl", made.as_lines([made.header(0), *made.begun(0, made.BUILD, "Go."), called, answer]))
    [call] = read(project, "tool_call")
    assert call["latency_ms"] == 250.0


# -- all ---------------------------------------------------------------------------------------------------------------

SESSIONS = {
    "claude": made.CLAUDE_SESSION,
    "codex": made.CODEX_SESSION,
    "gemini": coding_agents_made.GEMINI_CHAT,
    "copilot": coding_agents_made.COPILOT,
}
RUNS = {"claude": 3, "codex": 2, "gemini": 2, "copilot": 3}
"""How many executions each of them comes to."""


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_the_same_wherever_it_was_cut_before(project: Project, name: str) -> None:
    lines = SESSIONS[name]
    project.write_bytes("s.jsonl", made.as_lines(lines))
    whole = {kind: {record.get("execution_id", record.get("call_id")): record for record in read(project, kind)}
             for kind in ("execution",)}  # fmt: skip
    for count in range(1, len(lines)):
        project.write_bytes("s.jsonl", made.as_lines(lines[:count]) + b'{"type": "us')
        for run in read(project):
            assert run == whole["execution"][run["execution_id"]], count
        ended = [row for row in lines_of(project)[0] if row["fault"]]
        assert [(row["line"], row["fault"], row["line_number"]) for row in ended] == [("", "not valid JSON", count + 1)]


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_that_was_read_while_it_ran_becomes_what_it_is_in_one_go(project: Project, name: str) -> None:
    content = made.as_lines(SESSIONS[name])
    for share in (0.2, 0.5, 1):
        project.write_bytes("s.jsonl", content[: int(share * len(content))])
        ingested(project)
    clean = project.clean_rebuild(HourRange.of(HOUR), only=["ingest"])
    for table in ("executions", "model_calls", "tool_calls", "rejected_records", "raw_file_notes"):
        assert rows_of(project, table, "*") == rows_of(clean, table, "*"), table
    assert rows_of(project, "rejected_records", "reason") == []


@pytest.mark.parametrize("name", SESSIONS)
def test_a_damaged_first_line_does_not_make_a_session_something_else(project: Project, name: str) -> None:
    project.write_bytes("s.jsonl", b'{"half": "of a li\n' + made.as_lines(SESSIONS[name]))
    assert len(read(project)) == RUNS[name]


def test_a_session_that_begins_with_lines_of_a_later_version_is_known_by_those_behind_them(project: Project) -> None:
    later = [{"type": "orchard-mode", "sessionId": made.SESSION, "words": "Mend it."}] * 5
    project.write_bytes("s.jsonl", made.as_lines([*later, *made.CLAUDE_SESSION]))
    assert len(read(project)) == 3


def test_events_of_other_tools_are_no_sessions(project: Project) -> None:
    others = [{"type": "click", "sessionId": "s", "timestamp": made.at(0), "payload": {}}]
    project.write_bytes("s.jsonl", made.as_lines(others))
    lines, notes = lines_of(project)
    assert ([json.loads(row["line"]) for row in lines], notes) == (others, {})


BESIDE = {
    "history.jsonl": b'{"display":"Mend it.","pastedContents":{},"timestamp":1780837800000,"project":"/home/ada"}\n',
    "sessions-index.json": b'{"version":1,"entries":[{"firstPrompt":"Mend it."}],"originalPath":"/home/ada"}',
    "codex/history.jsonl": b'{"session_id":"s","ts":1780837800,"text":"Mend it."}\n',
    "logs.json": b'[{"sessionId":"s","messageId":0,"type":"user","message":"Mend it.","timestamp":"2026-06-07T13:00:00Z"}]',
    "ses_1.json": b'{"id":"ses_1","projectID":"p","directory":"/home/ada","title":"Mend it.","time":{"created":1}}',
    "prt_1.json": b'{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"text","text":"Mend it."}',
    "session_index.jsonl": b'{"id":"s","thread_name":"Mend it.","updated_at":"2026-06-07T13:00:00Z"}\n',
}


@pytest.mark.parametrize("name", BESIDE)
def test_files_beside_sessions_are_counted_and_nothing_of_them_is_read(project: Project, name: str) -> None:
    project.write_bytes(name, BESIDE[name])
    lines, notes = lines_of(project)
    assert (lines, sum(notes.values())) == ([], 1)


WITHOUT = ("type", "subtype", "uuid", "timestamp", "sessionId", "promptId", "version", "id", "tool_use_id", "name",
           "model", "role", "stop_reason", "error", "call_id", "turn_id", "cli_version", "leafUuid", "source", "reason",
           "codex_error_info", "status", "finish", "modelID", "tool",
           "toolCallId", "toolName", "sessionId", "copilotVersion", "messageId", "errorType", "code", "agentId", "say", "ask",
           "modelId", "cancelReason", "apiProtocol")  # fmt: skip
"""Fields whose texts are names, ids and times."""
SECRET = "hunter2-orchard"


def with_secrets(value: Any, field: str = "") -> Any:
    """The same with a secret in each text that is none of these and not empty; how a text begins tells what it is."""
    if isinstance(value, dict):
        return {name: with_secrets(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_secrets(inner, field) for inner in value]
    if isinstance(value, str) and value.startswith("{"):
        return json.dumps(with_secrets(json.loads(value)))
    return f"{value} {SECRET}" if value and isinstance(value, str) and field not in WITHOUT else value


UNUSABLE: dict[str, Callable[[], list[Any]]] = {
    "claude": lambda: [
        made.claude("user", 400, message=SECRET),
        made.claude("assistant", 401, message={"content": [made.text(SECRET)], "id": "msg_x", "model": None}),
        made.asked(402, made.TESTS, SECRET) | {"timestamp": SECRET},
        made.asked(403, "p" * 2000, SECRET),
        made.answered(404, "msg_x", made.text(SECRET), "end_turn"),
        made.asked(10**9, "future", SECRET),
        made.answered(10**9, "msg_y", made.use("toolu_x", "Bash", command=SECRET), "tool_use"),
        made.result(10**9, "toolu_x", SECRET, is_error=True),
        made.answered(10**9, "msg_y", made.text(SECRET), "end_turn"),
        [SECRET],
    ],
    "codex": lambda: [
        made.header(400) | {"payload": SECRET},
        made.item(401, "function_call", name=None, arguments=SECRET, call_id="call_x"),
        made.event(402, "user_message", message=SECRET) | {"timestamp": SECRET},
        *made.begun(10**9, "t" * 2000, SECRET),
        made.item(10**9, "function_call", name="shell", arguments=SECRET, call_id="call_y"),
        made.item(10**9, "function_call_output", call_id="call_y", output=SECRET),
        made.event(10**9, "task_complete", turn_id="t" * 2000, last_agent_message=SECRET),
        [SECRET],
    ],
    "copilot": lambda: [
        coding_agents_made.copilot("user.message", 400, content=SECRET) | {"timestamp": SECRET},
        coding_agents_made.copilot("user.message", 401, content=SECRET) | {"id": None},
        coding_agents_made.copilot("tool.execution_start", 402, toolName=None, toolCallId="x", arguments=SECRET),
        coding_agents_made.copilot("user.message", 10**9, content=SECRET),
        coding_agents_made.copilot_answer(10**9, SECRET),
        coding_agents_made.copilot("assistant.turn_end", 10**9),
        [SECRET],
    ],
    "gemini": lambda: [
        coding_agents_made.prompt(400, SECRET) | {"timestamp": SECRET},
        coding_agents_made.prompt(401, SECRET) | {"id": None},
        coding_agents_made.answer(402, SECRET, 1, {"name": SECRET, "args": SECRET}),
        coding_agents_made.prompt(10**9, SECRET),
        coding_agents_made.answer(10**9 + 1, SECRET, 1),
        [SECRET],
    ],
}


RECORDS_AND_SIGNALS = ["ingest", "computed_signals"]
"""What is made of the files; all else is made of these tables."""


@pytest.mark.parametrize("name", SESSIONS)
def test_no_prompt_code_or_path_of_a_session_is_stored(project: Project, name: str) -> None:
    lines = [*map(with_secrets, SESSIONS[name]), *UNUSABLE[name]()]
    content = made.as_lines(lines) + f'{{"type": "user", "message": "{SECRET}'.encode()
    project.write_bytes("s.jsonl", content)
    project.write_bytes("b.jsonl", b'{"half": "' + SECRET.encode() + b"\n" + content)
    project.write_bytes("long.jsonl", json.dumps({"padding": f"{SECRET} {'x' * (9 << 20)}"}).encode() + b"\n" + content)
    half = made.as_lines([next(one for one in lines if SECRET in json.dumps(one))])
    project.write_bytes("half.jsonl", half[: half.index(SECRET.encode()) + len(SECRET) + 1])
    project.write_bytes("list.json", json.dumps(lines).encode())
    project.write_bytes("formatted.jsonl", "\n".join(json.dumps(one, indent=1) for one in lines).encode())
    project.write_bytes("both.jsonl", made.as_lines([SESSIONS["claude"][0], SESSIONS["codex"][0], {"text": SECRET}]))
    project.write_bytes(
        "s/subagents/agent-a.meta.json", b'{"agentType": "Explore", "description": "%s"}' % SECRET.encode()
    )
    project.write_bytes("s/tool-results/a.json", b'{"found": "%s"}' % SECRET.encode())
    for number, (beside, words) in enumerate(BESIDE.items()):
        project.write_bytes(f"{number}/{beside}", words.replace(b"Mend it.", SECRET.encode()))
    project.materialize(HourRange.of(HOUR), only=None if name == "claude" else RECORDS_AND_SIGNALS)
    [(runs,)] = project.query("SELECT count(*) FROM executions")
    [(rejected,)] = project.query("SELECT sum(lines) FROM rejected_records")
    assert runs == RUNS[name]
    assert rejected >= len(UNUSABLE[name]())
    tables = [name for (name,) in project.query("SELECT table_name FROM information_schema.tables")]
    assert {"rejected_records", "executions", "tool_calls", "raw_file_notes"} <= {*tables}
    holding = [table for table in tables
               if project.query(f"SELECT 1 FROM {table} AS t WHERE contains(lower(t::VARCHAR), '{SECRET}')")]  # fmt: skip
    assert holding == [], project.query(f"SELECT * FROM rejected_records AS t WHERE contains(t::VARCHAR, '{SECRET}')")


DOCUMENTS: dict[str, tuple[Any, int]] = {
    "opencode": (coding_agents_made.OPENCODE, 3),
    "cline": (coding_agents_made.CLINE, 3),
    "roo_code": (coding_agents_made.ROO_CODE, 1),
    "gemini": (coding_agents_made.GEMINI_OLD, 2),
}
"""Sessions that are a document, and how many executions each of them comes to."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_prompt_code_or_path_of_a_document_is_stored(project: Project, name: str) -> None:
    session, count = DOCUMENTS[name]
    content = json.dumps(with_secrets(session)).encode()
    project.write_bytes("s.json", content)
    project.write_bytes("s.jsonl", content)
    project.write_bytes("formatted.json", json.dumps(with_secrets(session), indent=1).encode())
    for share in (0.05, 0.3, 0.6, 0.99):
        place = int(share * len(content))
        project.write_bytes(f"cut-{share}.json", content[:place])
        project.write_bytes(f"cut-{share}.jsonl", content[:place])
        project.write_bytes(f"damaged-{share}.json", content[:place] + b"\xff" + content[place:])
    project.materialize(HourRange.of(HOUR), only=["ingest"])
    assert project.query("SELECT count(*) FROM executions") == [(count,)]
    assert len({row["file_id"] for row in lines_of(project)[0] if row["fault"]}) == 12
    for (table,) in project.query("SELECT table_name FROM information_schema.tables"):
        assert project.query(f"SELECT * FROM {table} AS t WHERE contains(lower(t::VARCHAR), '{SECRET}')") == [], table


@given(st.text(st.sampled_from("aA bÉéİΣσ\t\n\x1f\x85\u2028\u3000\ud800😀—1")) | st.text(min_size=1))
def test_a_fingerprint_is_that_of_lower_words_in_any_language(text: str) -> None:
    digest = hashlib.sha256(" ".join(text.lower().split()).encode(errors="replace")).hexdigest()[:32]
    letters = "".join(chr(ord("g") + int(one)) if one.isdigit() else one for one in digest)
    assert coding_turns.fingerprint(text) == (letters if text.split() else None)


def test_a_fingerprint_tells_contents_apart_and_has_letters_alone() -> None:
    first = coding_turns.fingerprint("Mend  the\nParser")
    assert first == coding_turns.fingerprint("mend the parser") != coding_turns.fingerprint("mend a parser")
    assert first is not None
    assert (first.isalpha(), len(first)) == (True, 32)
    assert coding_turns.fingerprint(" ") is coding_turns.fingerprint(None) is None
