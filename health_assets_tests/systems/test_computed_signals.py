"""Computed signals: examples by hand, recorded traces of real instrumentors, and what is never kept."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.hours import HourRange
from health_assets.schema.catalog import ALL_TABLES
from health_assets_tests.logs.test_recorded_traces import HOUR_OF_ALL, RECORDINGS
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import ENGINES, Project, Row
from health_assets_tests.support.traces_made import agent, chat, otlp_line, tool

HOUR_ONE = HourRange.of(START)
STEPS = ["ingest", "computed_signals", "trace_risks", "session_scores"]
END = START + timedelta(minutes=30)
ASKED_A, ASKED_B, ASKED_C = ({"arguments": {"q": text}, "tool": text} for text in "abc")
ANSWER = {"result": "3 found"}
SHOWN = ("tool_calls", "tool_failures", "steps", "repeated_steps")
SECRET = "the-president-has-pneumonia"


def call(place: int, **fields: Any) -> Record:
    ended_at = (START + timedelta(minutes=place)).isoformat()
    own = {"type": "tool_call", "call_id": f"c:{place}", "tool": "search", "execution_id": "e", "ended_at": ended_at}
    return own | {"agent_id": "a", "status": "success"} | fields


def answer(place: int, text: str) -> Record:
    own = {"type": "model_call", "model": "m", "output": text}
    return {name: value for name, value in call(place).items() if name != "tool"} | own


# -- by hand -----------------------------------------------------------------------------------------------------------


REPEATS = [
    ({"result": "pending"}, {"result": "done"}, 0),
    ({}, {}, 0),  # nobody knows whether the results are the same
    ({"status": "failure", "error": "down"}, {"status": "failure", "error": "down"}, 1),
    ({"status": "failure", "error": "down"}, {"status": "failure", "error": "429"}, 0),
    ({"status": "failure"}, {"result": ""}, 0),
    ({"result": {"id": "call_a1b2c3d4", "rows": 2}}, {"result": {"id": "call_e5f6a7b8", "rows": 2}}, 1),
    ({"result": "at 2026-06-07T13:00:00Z"}, {"result": "at 2026-06-07T13:00:05Z"}, 1),
    ({"result": "order 12345"}, {"result": "order 12346"}, 0),
]
"""What came of a call, what came of the same call after it, and how many repeat."""
CYCLES = [
    ([ASKED_A, ASKED_B, ASKED_A, ASKED_B], 2),
    ([ASKED_A, ASKED_B, ASKED_A, ASKED_B, ASKED_A], 3),
    ([ASKED_A, ASKED_B, ASKED_C] * 2, 3),
    ([ASKED_A, ASKED_A, ASKED_B] * 2, 3),
    ([ASKED_A, ASKED_B, ASKED_A], 0),
    ([ASKED_A] * 6, 0),  # the same call with another result each time is polling, not a loop
    ([ASKED_A, ASKED_B, ASKED_C, ASKED_B, ASKED_A], 0),
    ([{"tool": "a"}, {"tool": "b"}] * 2, 0),  # of unknown arguments
]
"""Calls, each with a result of its own, and how many repeat."""
CASES: dict[str, list[Record]] = {
    "repaired": [call(1, status="failure"), call(2, tool="fetch", status="failure"), call(3), call(4, tool="write")],
    "faults": [call(1, error="HTTP 503"), call(2, status="failure"), call(3, status="failure", error="429")],
    "success first": [call(1), call(2, status="failure")],
    "same result": [
        call(1, **ASKED_A, **ANSWER), call(2, **ASKED_B, **ANSWER), call(3, **ASKED_A, result=" 3  FOUND"),
    ],
    "answers": [answer(1, "Let me look."), answer(2, "let me look."), answer(3, "Let me look.")],
    "two runs": [
        call(1, arguments="a", status="failure"), call(2), call(3, execution_id="second", arguments="a"),
        execution("second", "a", END, session_id="two runs"),
    ],
    "no calls": [],
    "stated": [
        call(1, status="failure"), execution("with signals", "a", END, session_id="stated", signals={"coherence": 0.9}),
    ],
    "another agent": [call(1), call(2, status="failure", agent_id="b"), call(3, status="failure", agent_id=None)],
    "earlier hour": [call(-30, status="failure"), call(1)],
    **{
        f"repeat {n}": [call(place, **ASKED_A, **fields) for place, fields in enumerate(case[:2])]
        for n, case in enumerate(REPEATS)
    },
    **{
        f"cycle {n}": [call(place, **fields, result=place) for place, fields in enumerate(calls)]
        for n, (calls, _) in enumerate(CYCLES)
    },
}  # fmt: skip
"""The records of each run of the module's project, whose agent and session have its name."""


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("by hand") / "project")
    records = [execution(name, name, END, session_id=name) for name in CASES]
    for name, own in CASES.items():
        for record in own:
            of_case = {key: name for key, value in (("execution_id", "e"), ("agent_id", "a")) if record[key] == value}
            if "call_id" in record:
                of_case["call_id"] = f"{name} {record['call_id']}"
            records.append(record | of_case)
    project.write_log("a.jsonl", map(line, records))
    project.materialize(HOUR_ONE, only=STEPS)
    return project


def computed(project: Project, name: str) -> Row:
    """What is computed of a run."""
    [row] = [row for row in project.rows("computed_signals") if row["execution_id"] == name]
    return row


def session_of(project: Project, name: str) -> Row:
    [session] = [row for row in project.rows("session_scores") if row["session_id"] == name]
    return session


def test_a_failure_that_a_later_call_of_the_same_tool_repaired_counts_half(by_hand: Project) -> None:
    row = computed(by_hand, "repaired")
    assert (row["tool_calls"], row["tool_failures"], row["repaired_failures"]) == (4, 2, 1)
    assert row["signal_tool_correctness"] == 0.625, "2 successes and half a one of 4"
    assert (row["steps"], row["signal_loop_detection"]) == (0, None), "no call tells its arguments"


FAULTS = (
    "timeout", "TimeoutError", "httpx.ReadTimeout: ", "asyncio.exceptions.TimeoutError: x", "Command timed out after 5 s",
    "context deadline exceeded", "connect ETIMEDOUT 10.0.0.1", "timeout of 5000ms exceeded", "504 Gateway Time-out",
    "429", "RateLimitError: Error code: 429 - {'error': 1}", "Too Many Requests", "Rate limit reached for m", "HTTP 429",
    "500", "HTTPStatusError: Server error '503 Service Unavailable' for url", "Request failed with status code 502",
    "urllib.error.HTTPError: HTTP Error 500: Internal Server Error", '{"status":503}', "HTTP/1.1 529 overloaded",
    "503\n", "ReadTimeout\nno answer",
)  # fmt: skip
NO_FAULTS = (
    "500 rows deleted", "ValueError: 500 is out of range", "timeout must be a number", "KeyError: 'timeout'",
    "HTTP 404", "status code 5031", "Error code: 400", "no such file: /srv/503", "", "port 5000", "HTTP 501st",
    "timeout: must be a positive number", "args.timeout: not a valid integer", "timeout of -1 is not allowed",
)  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fault_is_told_from_a_failure_of_the_agents_own_by_the_error(tmp_path: Path, engine: str) -> None:
    project = Project(tmp_path / "project", engine=engine)
    errors = [*FAULTS, *NO_FAULTS]
    runs = [execution(f"{place}", "a", END) for place in range(len(errors))]
    calls = [
        call(1, call_id=f"{n}", execution_id=f"{n}", status="failure", error=text) for n, text in enumerate(errors)
    ]
    project.write_log("a.jsonl", map(line, [*runs, *calls]))
    project.materialize(HOUR_ONE, only=STEPS[:2])
    found = {errors[int(row["execution_id"])] for row in project.rows("computed_signals") if row["tool_faults"]}
    assert found == set(FAULTS)


def test_a_fault_is_a_call_that_failed(by_hand: Project) -> None:
    row = computed(by_hand, "faults")
    assert (row["tool_failures"], row["tool_faults"]) == (2, 1)


def test_a_success_before_a_failure_repairs_nothing(by_hand: Project) -> None:
    assert computed(by_hand, "success first")["signal_tool_correctness"] == 0.5


def test_the_same_call_with_the_same_result_repeats(by_hand: Project) -> None:
    row = computed(by_hand, "same result")
    assert (row["steps"], row["repeated_steps"]) == (3, 1)
    assert row["signal_loop_detection"] == pytest.approx(2 / 3, abs=1e-12)


@pytest.mark.parametrize("number", range(len(REPEATS)))
def test_a_call_repeats_where_the_same_came_of_it(by_hand: Project, number: int) -> None:
    assert computed(by_hand, f"repeat {number}")["repeated_steps"] == REPEATS[number][2]


@pytest.mark.parametrize("number", range(len(CYCLES)))
def test_a_cycle_of_two_or_three_calls_repeats_whatever_came_of_them(by_hand: Project, number: int) -> None:
    assert computed(by_hand, f"cycle {number}")["repeated_steps"] == CYCLES[number][1]


def test_an_answer_of_a_model_repeats_unless_the_execution_ends_with_it(by_hand: Project) -> None:
    row = computed(by_hand, "answers")
    assert (row["steps"], row["repeated_steps"], row["signal_tool_correctness"]) == (3, 1, None)


def test_no_score_rests_on_computed_signals_and_the_session_tells_their_counts(by_hand: Project) -> None:
    traces = {row["trace_id"]: row for row in by_hand.rows("trace_risks") if row["session_id"] == "two runs"}
    assert {name: trace["step_risk"] for name, trace in traces.items()} == {"two runs": None, "second": None}
    assert [traces["two runs"][name] for name in SHOWN] == [2, 1, 1, 0]
    session = session_of(by_hand, "two runs")
    assert (session["traces_evaluated"], session["agent_reliability"], session["raw_risk"]) == (0, 1, None)
    assert [session[name] for name in SHOWN] == [3, 1, 2, 0]


def test_a_session_of_runs_without_calls_tells_no_counts(by_hand: Project) -> None:
    assert [session_of(by_hand, "no calls")[name] for name in SHOWN] == [None] * 4


def test_stated_signals_score_and_counts_stand_beside_them(by_hand: Project) -> None:
    session = session_of(by_hand, "stated")
    assert (session["total_traces"], session["traces_evaluated"], session["agent_reliability"]) == (2, 1, 0.9)
    assert (session["tool_calls"], session["tool_failures"]) == (1, 1)


def test_calls_of_another_agents_execution_of_the_same_id_do_not_count(by_hand: Project) -> None:
    row = computed(by_hand, "another agent")
    assert (row["tool_calls"], row["tool_failures"]) == (2, 1), "one that names no agent belongs to every one"


def test_a_call_of_an_earlier_hour_counts(by_hand: Project) -> None:
    assert computed(by_hand, "earlier hour")["signal_tool_correctness"] == 0.75


# -- what instrumentors record -----------------------------------------------------------------------------------------

RECORDED = {
    "openai-agents-openinference/crash_max_turns": [(2, 0, 0, 4, 2)],  # both turns asked for the same, and got it
    "openai-agents-openllmetry/crash_max_turns": [(2, 0, 0, 4, 2)],
    "pydantic-ai-otel/crash_retries": [
        (2, 2, 0, 4, 1)
    ],  # the model asked twice alike, the second failure told no result
    "smolagents-openinference/recovered": [(3, 1, 1, 6, 1)],
    "langgraph-openinference/recovered_handled": [(1, 1, 0, 3, 0)],
    "langgraph-openllmetry/recovered_handled": [(1, 1, 0, 3, 0)],
    "crewai-openinference/nested": [(2, 0, 0, 6, 0)],  # the outer agent passed on the answer of the inner one
    "vercel-ai-7-otel/recovered": [(1, 1, 0, 3, 0)],
    "llama-index-otel/recovered": [(1, 1, 0, 0, 0)],  # records no contents
    "google-adk-openinference/good": [(1, 0, 0, 2, 0), (1, 0, 0, 2, 0)],
    "langgraph-openinference/repeats": [(3, 1, 1, 7, 2)] * 2,  # the model asks again, the tool answers again
    "langgraph-otel/repeats": [(3, 1, 1, 0, 0)] * 2,  # records no contents
    "openai-agents-openinference/repeats": [(3, 1, 1, 7, 2)] * 2,
    "openai-agents-openllmetry/repeats": [(3, 1, 1, 7, 2)] * 2,
    "pydantic-ai-otel/repeats": [(3, 1, 1, 7, 2)] * 2,
    "pydantic-ai-openinference/repeats": [(3, 1, 1, 7, 2)] * 2,
    "google-adk-openinference/repeats": [(3, 1, 1, 4, 1)]
    * 2,  # its model calls share a span, so of the answers one is told
    "strands-agents-otel/repeats": [(3, 1, 1, 0, 0)] * 2,  # records contents as events of spans, which are not read
    "agent-framework-otel/repeats": [(3, 1, 1, 0, 0)] * 2,  # records no contents, as the two below
    "openai-agents-otel/repeats": [(3, 1, 1, 0, 0)] * 2,
    "google-adk-otel/repeats": [(3, 1, 1, 0, 0)] * 2,
}
"""By recording, of each execution: tool calls, failures, repaired ones, steps, repeated ones; from its `told.yaml`."""
COUNTS = ("tool_calls", "tool_failures", "repaired_failures", "steps", "repeated_steps")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(tmp_path_factory.mktemp("computed"))
    for name in RECORDED:
        project.write_log(f"{name}.jsonl", (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    project.materialize(HOUR_OF_ALL, only=STEPS)
    yield project


@pytest.mark.parametrize("recording", RECORDED)
def test_signals_follow_from_what_real_instrumentors_record(recording: str, recorded: Project) -> None:
    runs = {row["execution_id"] for row in recorded.rows("executions") if row["source_file"] == f"{recording}.jsonl"}
    rows = [row for row in recorded.rows("computed_signals") if row["execution_id"] in runs]
    assert sorted(tuple(row[name] for name in COUNTS) for row in rows) == RECORDED[recording]


# -- what is never kept ------------------------------------------------------------------------------------------------


def secret_logs(project: Project) -> None:
    contents = {
        "gen_ai__tool__call__arguments": f'{{"q": "{SECRET}"}}', "gen_ai__tool__call__result": SECRET,
        "input__value": SECRET, "output__value": SECRET, "gen_ai__output__messages": f'[{{"content": "{SECRET}"}}]',
        "gen_ai__input__messages": f'[{{"role": "user", "content": "{SECRET}"}}]', "ai__prompt": SECRET,
        "langfuse__trace__input": SECRET, "llm__input_messages__0__message__content": SECRET,
    }  # fmt: skip
    spans = [agent(1, 1, END, **contents), tool(1, 2, END, 1, **contents), chat(1, 3, END, 1, **contents)]
    project.write_log("spans.jsonl", [otlp_line(*spans)])
    records = [
        call(1, arguments={"q": SECRET}, result=SECRET),
        answer(2, SECRET),
        execution("e", "a", END, input=SECRET),
    ]
    project.write_log("a.jsonl", [line(record) for record in records])


def test_no_content_is_in_the_warehouse(project: Project) -> None:
    secret_logs(project)
    project.materialize(HOUR_ONE, only=STEPS)
    assert sum(row["steps"] for row in project.rows("computed_signals")) == 4
    for table in ALL_TABLES:
        assert project.query(f"SELECT count(*) FROM {table} AS kept WHERE kept::VARCHAR LIKE '%{SECRET}%'") == [(0,)]
    [call_of_span] = project.query("SELECT arguments_digest FROM tool_calls WHERE span_id IS NOT NULL")
    assert len(call_of_span[0]) == 16
    assert {len(row["input_digest"]) for row in project.rows("executions")} == {16}


def test_digests_of_two_warehouses_differ_unless_they_have_the_same_salt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digests(name: str, *later: HourRange) -> set[str]:
        project = Project(tmp_path / name)
        secret_logs(project)
        for hours in (HOUR_ONE, *later):
            project.ingest(hours)
        return {row["arguments_digest"] for row in project.rows("tool_calls")}

    assert digests("one") == digests("other")
    monkeypatch.delenv("HEALTH_DIGEST_SALT")
    both = HourRange(START, START + timedelta(hours=2))
    random = [digests("third", both), digests("fourth", both)]  # the second time by the salt of the first
    assert not random[0] & random[1]
