"""Sessions of Gemini CLI and other coding agents: what their turns, model calls and tool calls become."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.hours import HourRange
from health_assets.logs.formats import aider, cline, coding_turns
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


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("s.jsonl", as_lines(made.GEMINI_CHAT), (f"{made.CHAT}:m-60", "gemini-cli", made.CHAT, None, 60, 62)),
        ("s.json", as_document(made.OPENCODE), ("msg_60", "opencode", made.EXPORTED, "claude-sonnet-5", 60, 62)),
        ("events.jsonl", as_lines(made.COPILOT), ("e-120", "copilot-cli", made.WORKSPACE, "gpt-5-mini", 120, 123)),
        ("ui_messages.json", as_document(made.CLINE),
         (f"{made.ms(0)}:{made.ms(120)}", "cline", str(made.ms(0)), "claude-opus-4-6", 120, 121)),
    ],
)  # fmt: skip
def test_a_turn_that_its_user_interrupted_is_a_cancellation(
    project: Project, name: str, content: bytes, expected: tuple
) -> None:
    ingested(project, name, content)
    *ids, started, ended = expected
    columns = ("execution_id", "agent_id", "session_id", "model", "started_at", "ended_at")
    assert rows_of(project, "cancellations", *columns) == [(*ids, after(started), after(ended))]


def test_a_task_of_cline_that_is_resumed_was_cancelled_when_its_user_cancelled_it(project: Project) -> None:
    until = made.CLINE[: next(n for n, one in enumerate(made.CLINE) if "user_cancelled" in str(one)) + 1]
    resumed = {"ts": made.ms(3000), "type": "ask", "ask": "resume_task"}
    project.write_bytes("ui_messages.json", as_document([*until, resumed]))
    assert [one["ended_at"] for one in read(project, "cancellation")] == [after(121).isoformat()]


def test_a_task_of_cline_that_is_resumed_later_was_left_and_a_turn_that_was_handed_back_stays_a_success(
    project: Project,
) -> None:
    resumed = {"ts": made.ms(90_000), "type": "ask", "ask": "resume_task"}
    planned = next(n for n, one in enumerate(made.CLINE) if one.get("ask") == "plan_mode_respond") + 1
    for messages in (made.CLINE, made.CLINE[:planned]):
        project.write_bytes("ui_messages.json", as_document([*messages, resumed]))
        assert [one["status"] for one in read(project, "execution")] == ["success", "failure", "success"]
        assert len(read(project, "cancellation")) == 1, "the turn that its user cancelled"


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
        f"Gemini CLI {coding_turns.NOT_ALLOWED}": 1,
        f"Gemini CLI {coding_turns.OPEN_TURN}": 2,
    }


def test_a_chat_of_an_older_gemini_cli_is_a_document_with_the_same_turns(project: Project) -> None:
    for name, content in (
        ("session-1.json", as_document(made.GEMINI_OLD)),
        ("line.jsonl", as_lines([made.GEMINI_OLD])),
    ):
        ingested(project, name, content)
        assert rows_of(project, "executions", *RUN) == GEMINI_RUNS
        assert len(read(project)) == len(GEMINI_RUNS) * len(list(project.raw.iterdir()))


def test_an_answer_of_gemini_cli_at_the_end_is_no_hand_back_if_it_may_ask_for_a_tool_besides(project: Project) -> None:
    for output, found in ((6, 1), (40, 0)):
        turn = [made.gemini_header(), made.prompt(1, "Mend it."), made.answer(4, "I look at the parser.", output)]
        project.write_bytes("s.jsonl", as_lines(turn))
        assert len(read(project)) == found
    project.write_bytes("s.jsonl", as_lines([*turn, made.prompt(60, "And now?")]))
    assert [run["execution_id"] for run in read(project)] == [f"{made.CHAT}:m-1"]


@pytest.mark.parametrize("fault", [{"name": None}, {"id": ""}, {"timestamp": "yesterday"}])
def test_an_answer_of_gemini_cli_whose_tool_call_cannot_be_used_costs_nothing_behind_it(
    project: Project, fault: dict[str, Any]
) -> None:
    turn = [made.gemini_header(), made.prompt(1, "Mend it."), made.answer(4, "", 40, made.LISTED | fault)]
    rest = [made.prompt(60, "And now?"), made.answer(62, "It is mended.", 6)]
    project.write_bytes("s.jsonl", as_lines([*turn, *rest]))
    assert [run["execution_id"] for run in read(project)] == [f"{made.CHAT}:m-60"]
    assert [row["line_number"] for row in lines_of(project)[0] if row["fault"]] == [3]
    project.write_bytes("s.jsonl", as_lines([*turn[:2], *rest[1:], turn[2]]))
    assert [run["execution_id"] for run in read(project)] == [f"{made.CHAT}:m-1"]


def test_turns_of_a_subagent_of_gemini_cli_have_calls_alone(project: Project) -> None:
    project.write_bytes("s.jsonl", as_lines([made.gemini_header(kind="subagent"), *made.GEMINI_CHAT[2:14]]))
    assert (read(project), len(read(project, "model_call")), len(read(project, "tool_call"))) == ([], 4, 3)
    assert lines_of(project)[1][f"Gemini CLI {coding_turns.SUBAGENTS_TURN}"] == 1


# -- OpenCode ----------------------------------------------------------------------------------------------------------


def test_turns_of_opencode_are_executions(project: Project) -> None:
    ingested(project, "session.json", as_document(made.OPENCODE))
    assert rows_of(project, "executions", *RUN) == [
        ("msg_1", "success", None, after(1), after(8), 3, 2, ["bash", "read", "edit"]),
        ("msg_120", "failure", f"{coding_turns.MODEL_ERROR}: APIError", after(120), after(121), 0, 1, []),
        ("msg_180", "failure", "the model stopped early", after(180), after(190), 1, 0, []),
    ]
    shared = "agent_id, agent_version, session_id"
    assert project.query(f"SELECT DISTINCT {shared} FROM executions") == [("opencode", "1.17.18", made.EXPORTED)]


def test_calls_of_opencode_have_their_outcome_duration_tokens_and_cost(project: Project) -> None:
    ingested(project, "session.json", as_document(made.OPENCODE))
    columns = (*MODEL_CALL, "cache_creation_tokens", "latency_ms", "cost_usd")
    tokens = (152, 30, 100, 10, 50)  # OpenCode counts 2 in, 20 out, 100 read, 10 of reasoning, 50 written
    assert rows_of(project, "model_calls", *columns) == [
        ("msg_1", "claude-sonnet-5", after(4), *tokens, None, 0.5),
        ("msg_4", "claude-sonnet-5", after(5), *tokens, None, 0.5),
        ("msg_5", "claude-sonnet-5", after(8), *tokens, 3000.0, None),
        ("msg_60", "claude-sonnet-5", after(62), *tokens, 2000.0, 0.5),
        ("msg_180", "claude-sonnet-5", after(190), *tokens, 10_000.0, 0.5),
        ("msg_240", "claude-sonnet-5", after(241), *tokens, None, 0.5),
        ("msg_300", "claude-sonnet-5", after(300), *tokens, None, 0.5),
    ]
    assert rows_of(project, "tool_calls", *TOOL_CALL) == [
        ("prt_b", "read", "success", None, 250.0, after(2.25)),
        ("prt_a", "bash", "failure", "exit code 2", 1500.0, after(3.5)),
        ("prt_c", "edit", "failure", "the tool failed", 500.0, after(5)),
    ]


def test_what_a_session_of_opencode_has_besides_is_counted(project: Project) -> None:
    project.write_bytes("session.json", as_document(made.OPENCODE))
    counted = {"NO_EVENT": 1, "OPEN_TURN": 2, "NOT_ALLOWED": 1, "UNANSWERED": 1}
    assert lines_of(project)[1] == {f"OpenCode {getattr(coding_turns, what)}": n for what, n in counted.items()}


def test_a_turn_of_opencode_goes_on_where_it_was_compacted(project: Project) -> None:
    summary = made.open_answer(5, 6, "stop", made.words("So far: apples."), summary=True)
    messages = [*made.OPENCODE["messages"][:2], summary, made.open_prompt(6, "Continue.", synthetic=True)]
    document = made.OPENCODE | {"messages": messages}
    project.write_bytes("session.json", as_document(document))
    assert read(project) == []
    document["messages"] = [*messages, made.open_answer(7, 8, "stop", made.words("It is mended."))]
    project.write_bytes("session.json", as_document(document))
    assert [(run["execution_id"], run["status"], run["api_calls"]) for run in read(project)] == [
        ("msg_1", "success", 3)
    ]


def test_turns_of_a_session_that_another_one_of_opencode_asked_for_have_calls_alone(project: Project) -> None:
    child = made.OPENCODE | {"info": made.OPENCODE["info"] | {"parentID": "ses_other"}}
    project.write_bytes("session.json", as_document(child))
    assert (read(project), len(read(project, "model_call"))) == ([], 7)


def test_an_export_of_opencode_without_its_beginning_is_rejected(project: Project) -> None:
    content = json.dumps(made.OPENCODE)
    project.write_bytes("session.json", content[content.index('{"role": "assistant"') :].encode())
    [row], notes = lines_of(project)
    assert (row["fault"], row["line"], notes) == ("something follows the end of the document", "", {})


# -- Copilot CLI -------------------------------------------------------------------------------------------------------


def test_turns_of_copilot_cli_are_executions(project: Project) -> None:
    ingested(project, "events.jsonl", as_lines(made.COPILOT))
    assert rows_of(project, "executions", *RUN) == [
        ("e-1", "success", None, after(1), after(8), 2, 1, ["bash", "task"]),
        ("e-60", "failure", f"{coding_turns.MODEL_ERROR}: query (400)", after(60), after(61), 0, 1, []),
        ("e-180", "success", None, after(180), after(184), 1, 0, ["create"]),
    ]
    shared = "agent_id, agent_version, session_id"
    assert project.query(f"SELECT DISTINCT {shared} FROM executions") == [("copilot-cli", "1.0.77", made.WORKSPACE)]


def test_calls_of_copilot_cli_have_their_outcome_duration_and_output(project: Project) -> None:
    ingested(project, "events.jsonl", as_lines(made.COPILOT))
    columns = ("call_id", "model", "execution_id", "input_tokens", "output_tokens")
    assert rows_of(project, "model_calls", *columns) == [
        (f"m-{seconds}", "gpt-5-mini", execution_id, None, 50)
        for execution_id, times in (("e-1", (3, 4, 4.75, 8)), ("e-120", (121,)), ("e-180", (181,)), ("e-240", (241,)))
        for seconds in times
    ]
    assert rows_of(project, "tool_calls", *TOOL_CALL) == [
        ("call_3", "view", "success", None, 500.0, after(4.5)),
        ("call_2", "task", "success", None, 1500.0, after(5)),
        ("call_1", "bash", "failure", "the tool failed", 3000.0, after(6)),
        ("call_5", "create", "success", None, 1000.0, after(182)),
    ]


def test_what_a_session_of_copilot_cli_has_besides_is_counted(project: Project) -> None:
    project.write_bytes("events.jsonl", as_lines(made.COPILOT))
    counted = {"NO_EVENT": 9, "OPEN_TURN": 1, "NOT_ALLOWED": 1, "UNANSWERED": 1}
    assert lines_of(project)[1] == {f"Copilot CLI {getattr(coding_turns, what)}": n for what, n in counted.items()}


def test_an_answer_of_copilot_cli_is_a_hand_back_once_its_round_has_ended(project: Project) -> None:
    turn = [made.COPILOT[0], made.COPILOT[2], made.copilot_answer(8, "It is mended.")]
    project.write_bytes("events.jsonl", as_lines(turn))
    assert read(project) == []
    project.write_bytes("events.jsonl", as_lines([*turn, made.copilot("assistant.turn_end", 9)]))
    assert [run["status"] for run in read(project)] == ["success"]
    project.write_bytes("events.jsonl", as_lines([*turn, made.copilot("session.task_complete", 9, success=False)]))
    assert [run["status"] for run in read(project)] == ["failure"]


# -- Cline -------------------------------------------------------------------------------------------------------------

TASK = str(made.ms(0))


def test_turns_of_cline_are_executions(project: Project) -> None:
    ingested(project, "ui_messages.json", as_document(made.CLINE))
    failed, plan = f"{TASK}:{made.ms(60)}", f"{TASK}:{made.ms(180)}"
    assert rows_of(project, "executions", *RUN) == [
        (TASK, "success", None, after(0), after(9), 4, 0, ["readFile", "editedExistingFile", "execute_command"]),
        (failed, "failure", coding_turns.MODEL_ERROR, after(60), after(64), 0, 2, []),
        (plan, "success", None, after(180), after(183), 1, 0, []),
    ]
    shared = "agent_id, agent_version, session_id, model"
    assert project.query(f"SELECT DISTINCT {shared} FROM executions WHERE model IS NOT NULL") == [
        ("cline", None, TASK, "claude-opus-4-6")
    ]


def test_requests_of_cline_are_model_calls_with_their_tokens_and_cost(project: Project) -> None:
    ingested(project, "ui_messages.json", as_document([*made.CLINE, made.request(242, apiProtocol="openai")]))
    columns = ("ended_at", "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "cost_usd")
    assert rows_of(project, "model_calls", *columns) == [
        *((after(seconds), 160, 20, 100, 50, 0.5) for seconds in (1, 3, 5)),
        (after(8), 160, 20, 100, 50, None),
        *((after(seconds), 160, 20, 100, 50, 0.5) for seconds in (121, 181)),
        (after(242), 10, 20, 100, 50, 0.5),
    ]
    assert project.query("SELECT count(*) FROM tool_calls") == [(0,)]


def test_what_a_task_of_cline_has_besides_is_counted(project: Project) -> None:
    project.write_bytes("ui_messages.json", as_document(made.CLINE))
    assert lines_of(project)[1] == {
        f"Cline {coding_turns.NO_EVENT}": 2,  # an answer to a question, and a tool that is being asked for
        f"Cline {cline.NO_OUTCOME}": 3,
        f"Cline {coding_turns.OPEN_TURN}": 1,
        f"Cline {cline.NO_USAGE}": 2,
    }


@pytest.mark.parametrize("name", ["api_conversation_history", "task_metadata", "history_item"])
def test_files_beside_a_task_of_cline_are_counted_and_nothing_of_them_is_read(project: Project, name: str) -> None:
    project.write_bytes(f"tasks/1/{name}.json", as_document([{"role": "user", "content": "Mend it."}]))
    lines, notes = lines_of(project)
    assert (lines, sum(notes.values())) == ([], 1)


# -- Roo Code ----------------------------------------------------------------------------------------------------------


def test_turns_of_roo_code_are_executions_of_an_agent_of_its_own(project: Project) -> None:
    ingested(project, "ui_messages.json", as_document(made.ROO_CODE))
    assert rows_of(project, "executions", "agent_id", *RUN) == [
        ("roo-code", TASK, "success", None, after(0), after(39), 5, 0, ["newTask", "count", "execute_command"]),
    ]


def test_requests_of_roo_code_and_what_condensed_its_history_are_model_calls(project: Project) -> None:
    ingested(project, "ui_messages.json", as_document(made.ROO_CODE))
    columns = ("ended_at", "model", "input_tokens", "output_tokens", "cache_read_tokens", "cost_usd")
    assert rows_of(project, "model_calls", *columns) == [
        *((after(seconds), "unknown", 160, 20, 100, 0.5) for seconds in (1, 21, 31)),
        (after(34), "unknown", None, None, None, 0.25),
        *((after(seconds), "unknown", 160, 20, 100, 0.5) for seconds in (35, 38, 61)),
    ]


def test_what_a_task_of_roo_code_has_besides_is_counted(project: Project) -> None:
    project.write_bytes("ui_messages.json", as_document(made.ROO_CODE))
    assert lines_of(project)[1] == {
        f"Roo Code {coding_turns.NO_EVENT}": 6,
        f"Roo Code {cline.NO_OUTCOME}": 3,
    }


def test_a_turn_of_roo_code_that_its_user_cancelled_is_a_cancellation(project: Project) -> None:
    ingested(project, "ui_messages.json", as_document(made.ROO_CODE))
    of_turn = f"{TASK}:{int(TASK) + 60_000}"
    assert rows_of(project, "cancellations", "agent_id", "execution_id", "started_at") == [
        ("roo-code", of_turn, after(60))
    ]


def test_no_text_is_kept_of_a_task_that_breaks_off_in_a_damaged_first_message(project: Project) -> None:
    written = json.dumps(made.ROO_CODE)
    project.write_bytes(
        "ui_messages.json", written[: written.index("apples") + 9].replace('"say": "', '"ay": "').encode()
    )
    [row], _ = lines_of(project)
    assert row["fault"] and "apples" not in row["line"]


# -- aider -------------------------------------------------------------------------------------------------------------


def test_answered_messages_of_aider_are_executions(project: Project) -> None:
    ingested(project, "aider.jsonl", as_lines(made.AIDER))
    columns = ("agent_id", "status", "error", "started_at", "ended_at", "runtime_s", "model", "cost_usd")
    assert rows_of(project, "executions", *columns) == [
        ("aider", "success", None, after(2), after(9), 7.0, "gpt-5.2", 0.25),
        ("aider", "failure", aider.EMPTY, after(20), after(24), 4.0, "gpt-5.2", 0.25),
        ("aider", "success", None, None, after(40), None, "gpt-5.2", None),
        ("aider", "success", None, None, after(41), None, None, 0.25),
        ("aider", "success", None, None, after(70), None, "openai/REDACTED", 0.25),
    ]
    assert project.query("SELECT count(DISTINCT execution_id), count(DISTINCT user_id) FROM executions") == [(5, 1)]


def test_answers_of_aider_are_model_calls_with_their_tokens_and_cost(project: Project) -> None:
    ingested(project, "aider.jsonl", as_lines(made.AIDER))
    columns = ("model", "status", "latency_ms", "input_tokens", "output_tokens", "cost_usd")
    assert rows_of(project, "model_calls", *columns) == [
        ("gpt-5.2", "success", 7000.0, 100, 20, 0.25),
        ("gpt-5.2", "failure", 4000.0, 100, 0, 0.25),
        ("gpt-5.2", "success", None, 100, 20, None),
        ("unknown", "success", None, 100, 20, 0.25),
        ("openai/REDACTED", "success", None, 100, 20, 0.25),
    ]


def test_messages_of_aider_without_an_answer_and_its_other_events_are_counted(project: Project) -> None:
    project.write_bytes("aider.jsonl", as_lines(made.AIDER))
    assert lines_of(project)[1] == {aider.NO_MESSAGE: 8, aider.NO_ANSWER: 1}


def test_a_message_of_aider_that_failed_with_an_exception_is_a_failure(project: Project) -> None:
    lines = [made.event(2, "message_send_starting"), made.event(5, "message_send_exception", exception="no route")]
    ingested(project, "aider.jsonl", as_lines([*lines, *made.AIDER[7:9]]))
    assert rows_of(project, "executions", "status", "error", "started_at", "ended_at") == [
        ("failure", aider.EXCEPTION, after(2), after(5)),
        ("failure", aider.EMPTY, after(20), after(24)),
    ]
    assert rows_of(project, "model_calls", "model", "status")[0] == ("unknown", "failure")


def test_an_answer_of_aider_that_does_not_tell_its_tokens_is_rejected(project: Project) -> None:
    project.write_bytes("aider.jsonl", as_lines([*made.AIDER[:5], made.event(9, "message_send", main_model="m")]))
    assert [row["fault"] for row in lines_of(project)[0]] == ["completion_tokens is missing"]


def test_a_log_of_aider_without_its_beginning_is_one_and_a_log_of_another_program_is_not(project: Project) -> None:
    ingested(project, "aider.jsonl", as_lines(made.AIDER[6:]))
    assert project.query("SELECT count(*) FROM executions") == [(4,)]
    assert not aider.is_line(made.event(0, "exit"))
    assert not aider.is_line(made.event(0, "repo") | {"properties": None})


@pytest.mark.parametrize("time", [None, True, "1780837200", 10**20])
def test_an_event_of_aider_without_a_time_is_rejected_without_its_text(project: Project, time: Any) -> None:
    lines = [*made.AIDER, made.aider_answer(80, main_model="gpt-secret") | {"time": time}]
    project.write_bytes("aider.jsonl", as_lines(lines))
    [(text, fault)] = [(row["line"], row["fault"]) for row in lines_of(project)[0] if row["fault"]]
    assert (text, fault.startswith("time ")) == ("", True)


def test_nothing_that_an_event_of_aider_has_besides_is_stored(project: Project) -> None:
    told = {"exception": "hunter2-orchard", "edit_format": "hunter2-orchard"}
    lines = [made.event(1, "message_send_exception", **told), made.aider_answer(2, **told), ["hunter2-orchard"]]
    content = as_lines([*made.AIDER, *lines]) + b'{"event": "message_send", "properties": {"a": "hunter2-orchard'
    project.write_bytes("aider.jsonl", content)
    project.write_bytes("half.jsonl", b'{"event": "message_send", "properties": {"hunter2-orchard')
    project.write_bytes("damaged.json", b'{"event": "message_send",\n "properties": {"hunter2-orchard"\n')
    project.materialize(HourRange.of(HOUR), only=["ingest"])
    assert project.query("SELECT count(*) FROM executions") == [(7,)]
    assert project.query("SELECT count(DISTINCT source_file) FROM rejected_records") == [(3,)]
    for (table,) in project.query("SELECT table_name FROM information_schema.tables"):
        assert project.query(f"SELECT 1 FROM {table} AS t WHERE contains(t::VARCHAR, 'hunter2-orchard')") == [], table
