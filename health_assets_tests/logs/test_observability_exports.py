"""Exports of LangSmith, MLflow, Phoenix, Weave and the OpenAI Agents SDK: the same runs are the same executions, model calls and tool calls."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from health_assets.core.hours import HourRange
from health_assets.logs.formats import mlflow_traces, openai_agents, phoenix_spans
from health_assets_tests.support import exports_made as made
from health_assets_tests.support.coding_sessions_made import ZERO, as_lines
from health_assets_tests.support.foreign_lines import lines_of
from health_assets_tests.support.projects import Project, assert_lines_are_conserved

HOUR = datetime(2026, 6, 7, 13, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def rows_of(project: Project, table: str, *columns: str) -> list[tuple]:
    return project.query(f"SELECT {', '.join(columns)} FROM {table} ORDER BY ended_at")


def ingested(project: Project, name: str, content: bytes) -> None:
    project.write_bytes(name, content)
    project.materialize(HourRange.of(HOUR), only=["ingest"])
    assert_lines_are_conserved(project)


def rejected(project: Project) -> list[str]:
    return [row["fault"] for row in lines_of(project)[0] if row["fault"]]


def after(seconds: float) -> datetime:
    return ZERO + timedelta(seconds=seconds)


def as_document(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


EXPORTS: dict[str, Callable[[], bytes]] = {
    "langsmith.json": lambda: as_document(made.LANGSMITH),
    "langsmith.jsonl": lambda: as_lines(made.LANGSMITH),
    "mlflow.json": lambda: as_document(made.MLFLOW),
    "mlflow.jsonl": lambda: as_lines(made.MLFLOW),
    "mlflow-2.json": lambda: as_document([made.mlflow_old_trace(run) for run in range(3)]),
    "mlflow-table.json": lambda: as_document(list(map(made.mlflow_row, made.MLFLOW))),
    "mlflow-2-table.jsonl": lambda: as_lines([made.mlflow_row(made.mlflow_old_trace(run)) for run in range(3)]),
    "phoenix.json": lambda: as_document({"data": made.PHOENIX_SPANS, "next_cursor": None}),
    "phoenix-client.json": lambda: as_document(made.PHOENIX_SPANS),
    "phoenix-table.json": lambda: as_document(made.phoenix_rows()),
    "phoenix-table.jsonl": lambda: as_lines(made.phoenix_rows()),
    "weave.jsonl": lambda: as_lines(made.WEAVE),
    "weave.json": lambda: as_document(made.WEAVE),
    "agents.jsonl": lambda: as_lines(made.AGENTS),
    "agents.json": lambda: as_document(made.AGENTS),
    "agents-new.jsonl": lambda: as_lines(made.AGENTS_NEW),
    "agents-body.json": lambda: as_document({"data": made.AGENTS_NEW}),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_runs_of_an_export_are_executions_with_their_calls(project: Project, name: str) -> None:
    ingested(project, name, EXPORTS[name]())
    assert rejected(project) == []
    columns = ("agent_id", "status", "error", "started_at", "ended_at", "session_id", "actions")
    assert rows_of(project, "executions", *columns) == [
        ("advisor", "success", None, after(0), after(9), made.SESSION, ["get_soil"]),
        ("advisor", "failure", "no such field", after(60), after(69), made.SESSION, ["get_soil"]),
        ("advisor", "success", None, after(120), after(129), made.SESSION, ["get_soil"]),
    ]
    assert rows_of(project, "tool_calls", "tool", "status", "error", "latency_ms") == [
        ("get_soil", "success", None, 1500.0), *2 * [("get_soil", "failure", "no such field", 1500.0)]
    ]  # fmt: skip
    cost = None if name.startswith("agents") else 0.002
    columns = ("model", "latency_ms", "input_tokens", "output_tokens", "cache_read_tokens", "cost_usd")
    assert rows_of(project, "model_calls", *columns) == 3 * [("small-1", 2000.0, 100, 20, 40, cost)]
    [(inputs,)] = project.query("SELECT count(input_digest) FROM executions")
    assert inputs == 3


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_that_was_cut_off_has_what_is_whole_and_tells_that_it_was(project: Project, name: str) -> None:
    content = EXPORTS[name]()
    ingested(project, name, content[: int(0.9 * len(content))])
    assert len(rejected(project)) == 1
    assert project.query("SELECT count(*) FROM executions WHERE status = 'success'")[0][0] <= 2


@pytest.mark.parametrize("name", ["langsmith.jsonl", "mlflow.jsonl", "phoenix-table.jsonl", "weave.jsonl"])
def test_the_version_of_an_agent_is_kept_where_an_export_tells_it(project: Project, name: str) -> None:
    ingested(project, name, EXPORTS[name]())
    version = None if name.startswith("phoenix") else "1.2"
    assert project.query("SELECT DISTINCT agent_version FROM executions") == [(version,)]


# -- LangSmith ---------------------------------------------------------------------------------------------------------


def test_a_pending_run_of_langsmith_is_open_and_counts_once_it_ended(project: Project) -> None:
    first = made.steps(0)
    pending = made.langsmith_run(0, first[0], end_time=None, status="pending", outputs=None)
    rest = [made.langsmith_run(0, step) for step in first[1:]]
    ingested(project, "a.jsonl", as_lines([pending, *rest]))
    assert project.query("SELECT count(*) FROM executions") == [(0,)]
    assert project.query("SELECT count(*) FROM tool_calls") == [(1,)]
    ingested(project, "a.jsonl", as_lines([made.langsmith_run(0, step) for step in first]))
    assert project.query("SELECT agent_id, status FROM executions") == [("advisor", "success")]


def test_a_run_of_langsmith_with_an_unknown_status_is_rejected_and_one_with_an_error_is_a_failure(
    project: Project,
) -> None:
    for number, status in enumerate(("paused", "success")):
        run = made.langsmith_run(0, made.steps(0)[0], status=status, error="no such field" if number else None)
        ingested(project, "a.jsonl", as_lines([run]))
        assert len(rejected(project)) == 1 - number
    assert project.query("SELECT status, error FROM executions") == [("failure", "no such field")]


def test_an_example_of_a_langsmith_dataset_is_the_task(project: Project) -> None:
    run = made.langsmith_run(0, made.steps(0)[0], reference_example_id="example-1")
    ingested(project, "a.json", as_document([run]))
    assert project.query("SELECT task_id, task_source FROM executions") == [("example-1", "evaluation")]


# -- MLflow ------------------------------------------------------------------------------------------------------------


def test_a_trace_of_mlflow_without_an_agent_is_a_run_under_the_name_of_its_root(project: Project) -> None:
    trace = made.mlflow_trace(0)
    trace["data"]["spans"][0]["attributes"]["mlflow.spanType"] = '"CHAIN"'
    ingested(project, "a.json", as_document(trace))
    assert project.query("SELECT agent_id, status FROM executions") == [("advisor", "success")]


def test_a_trace_of_mlflow_that_failed_is_a_failure_whatever_its_root_says(project: Project) -> None:
    trace = made.mlflow_trace(0)
    trace["info"]["state"] = "ERROR"
    ingested(project, "a.json", as_document(trace))
    assert project.query("SELECT status FROM executions") == [("failure",)]


def test_a_trace_of_mlflow_that_runs_still_is_open(project: Project) -> None:
    trace = made.mlflow_trace(0)
    trace["info"]["state"] = "IN_PROGRESS"
    trace["data"]["spans"][0]["end_time_unix_nano"] = None
    ingested(project, "a.json", as_document(trace))
    assert project.query("SELECT count(*) FROM executions") == [(0,)]


def test_the_artifact_of_a_trace_of_mlflow_is_read_without_what_the_trace_knows_besides(project: Project) -> None:
    ingested(project, "traces.json", as_document({"spans": made.MLFLOW[1]["data"]["spans"], "request": "{}"}))
    assert project.query("SELECT agent_id, status, session_id FROM executions") == [("advisor", "failure", None)]


def test_feedback_of_mlflow_is_a_result_of_an_evaluator_and_its_rationale_is_not_read(project: Project) -> None:
    given = [
        made.assessed("correct", feedback={"value": True}),
        made.assessed("grade", feedback={"value": 0.5}, span_id=made.in_base64(made.span_id(0, "small-1"))),
        made.assessed("tone", feedback={"value": "dry"}),
        made.assessed("expected", expectation={"value": "clay"}),
        made.assessed("old", feedback={"value": 1}, valid=False),
    ]
    project.write_bytes("a.json", as_document(made.mlflow_trace(0, *given)))
    lines, notes = lines_of(project)
    found = [record for row in lines if (record := json.loads(row["line"])).get("type") == "evaluation"]
    common = {"type": "evaluation", "at": made.at(30)}
    assert found == [
        common | {"name": "correct", "execution_id": made.TRACES[0], "value": True},
        common | {"name": "grade", "execution_id": made.span_id(0, "small-1"), "value": 0.5},
        common | {"name": "tone", "execution_id": made.TRACES[0], "label": "dry"},
    ]
    assert notes == {mlflow_traces.NO_FEEDBACK: 2}
    assert "it is clay" not in str(found)


def test_a_trace_of_mlflow_without_spans_is_rejected(project: Project) -> None:
    ingested(project, "a.json", as_document(made.mlflow_trace(0) | {"data": {"spans": []}}))
    assert rejected(project) == ["the trace has no spans, so what it did is not known"]


# -- Phoenix -----------------------------------------------------------------------------------------------------------


def test_a_table_of_phoenix_without_its_index_is_rejected_with_what_would_help(project: Project) -> None:
    rows = [{name: value for name, value in row.items() if name != "context.span_id"} for row in made.phoenix_rows()]
    ingested(project, "a.jsonl", as_lines(rows))
    assert rejected(project) == [phoenix_spans.WITHOUT_INDEX] * len(rows)


def test_a_span_of_phoenix_with_an_unknown_status_is_rejected_and_one_without_an_end_is_open(project: Project) -> None:
    agent = made.PHOENIX_SPANS[0]
    ingested(project, "a.json", as_document([agent | {"status_code": "FINE"}, agent | {"end_time": None}]))
    assert rejected(project) == ["status_code must be one of OK, UNSET, ERROR"]
    assert project.query("SELECT count(*) FROM executions") == [(0,)]


# -- Weave -------------------------------------------------------------------------------------------------------------


def test_a_call_of_weave_that_is_running_is_open(project: Project) -> None:
    step = made.steps(0)[0]
    running = made.weave_call(0, step, ended_at=None, summary={"weave": {"status": "running"}})
    ingested(project, "a.jsonl", as_lines([running, made.weave_call(0, made.steps(0)[2])]))
    assert rejected(project) == []
    assert project.query("SELECT count(*) FROM executions") == [(0,)]
    assert project.query("SELECT count(*) FROM tool_calls") == [(1,)]


def test_a_call_of_weave_with_an_unknown_status_is_rejected_and_one_with_an_exception_is_a_failure(
    project: Project,
) -> None:
    step = made.steps(0)[0]
    told = {"summary": {"weave": {"status": "paused"}}}
    ingested(project, "a.jsonl", as_lines([made.weave_call(0, step, **told)]))
    assert len(rejected(project)) == 1
    ingested(project, "a.jsonl", as_lines([made.weave_call(0, step, exception="no such field")]))
    assert project.query("SELECT status, error FROM executions") == [("failure", "no such field")]


def test_a_call_of_weave_without_a_kind_is_a_model_call_where_it_is_of_openai_and_else_a_part_of_its_run(
    project: Project,
) -> None:
    calls = [made.weave_call(0, step, attributes={"weave": {"client_version": "0.51.59"}}) for step in made.steps(0)]
    ingested(project, "a.jsonl", as_lines(calls))
    assert project.query("SELECT agent_id, input_tokens, actions FROM executions") == [("advisor", 100, None)]
    assert project.query("SELECT model, response_model, reasoning_tokens FROM model_calls") == [
        ("small-1", "small-1", 5)
    ]
    assert project.query("SELECT count(*) FROM tool_calls") == [(0,)]


def test_an_agent_of_weave_within_another_is_part_of_it(project: Project) -> None:
    inner = made.weave_call(0, ("get_soil", "agent", 3, 4, None, made.span_id(0, "advisor")))
    inner["attributes"]["weave"]["kind"] = "agent"
    ingested(project, "a.jsonl", as_lines([made.weave_call(0, made.steps(0)[0]), inner]))
    assert project.query("SELECT agent_id FROM executions") == [("advisor",)]


# -- OpenAI Agents SDK -------------------------------------------------------------------------------------------------


def statuses(project: Project, records: list[dict[str, Any]]) -> list[tuple]:
    """Agent, status and error of the executions of these records."""
    ingested(project, "a.jsonl", as_lines(records))
    return rows_of(project, "executions", "agent_id", "status", "error")


def test_a_model_call_of_the_agents_sdk_without_an_answer_failed_and_ended_its_run(project: Project) -> None:
    trace, model, _, agent = made.agents_records(0)
    model["span_data"] |= {"output": None, "usage": None}
    assert statuses(project, [trace, model, agent]) == [("advisor", "failure", openai_agents.NO_ANSWER)]
    assert rows_of(project, "model_calls", "model", "status") == [("small-1", "failure")]


def test_a_run_of_the_agents_sdk_that_asked_a_model_again_after_a_failed_call_is_a_success(project: Project) -> None:
    trace, model, _, agent = made.agents_records(0)
    failed = model | {"id": "span_0", "span_data": model["span_data"] | {"output": None, "usage": None}}
    assert statuses(project, [trace, failed, model, agent]) == [("advisor", "success", None)]


def test_a_run_of_the_agents_sdk_that_ends_with_the_result_of_a_failed_tool_is_a_success(project: Project) -> None:
    assert statuses(project, made.agents_records(2)) == [("advisor", "success", None)]


def test_a_guardrail_of_the_agents_sdk_that_ends_a_turn_makes_its_run_a_failure(project: Project) -> None:
    records = made.agents_new_records(0)
    records[3]["error"] = {"message": "Guardrail tripwire triggered", "data": {"guardrail": "soils alone"}}
    assert statuses(project, records) == [("advisor", "failure", "Guardrail tripwire triggered")]


def test_a_failed_turn_of_the_agents_sdk_does_not_count_once_another_one_followed(project: Project) -> None:
    records = made.agents_new_records(0)
    failed = records[3] | {"id": "span_first", "error": {"message": "broken", "data": None}}
    assert statuses(project, [*records[:1], failed, *records[1:]]) == [("advisor", "success", None)]


def test_agents_of_the_sdk_that_hand_over_are_executions_and_one_that_is_a_tool_is_part_of_its_caller(
    project: Project,
) -> None:
    trace, model, tool, agent = made.agents_records(0)
    inner = agent | {"id": "span_inner", "parent_id": tool["id"], "span_data": {"type": "agent", "name": "helper"}}
    later = made.at(20)
    other = agent | {"id": "span_other", "span_data": {"type": "agent", "name": "gardener"}, "ended_at": later}
    handoff = agent | {"id": "span_handoff", "parent_id": agent["id"],
                       "span_data": {"type": "handoff", "from_agent": "advisor", "to_agent": "gardener"}}  # fmt: skip
    found = statuses(project, [trace, model, inner, tool, handoff, agent, other])
    assert found == [("advisor", "success", None), ("gardener", "success", None)]
    assert project.query("SELECT count(DISTINCT session_id) FROM executions") == [(1,)]


@pytest.mark.parametrize("name", ["agents.jsonl", "agents-new.jsonl"])
def test_spans_of_the_agents_sdk_may_come_in_any_order(project: Project, name: str) -> None:
    records = made.AGENTS if name == "agents.jsonl" else made.AGENTS_NEW
    expected = [("advisor", "success", None), ("advisor", "failure", "no such field"), ("advisor", "success", None)]
    for seed in range(5):
        assert statuses(project, Random(seed).sample(records, len(records))) == expected


def test_the_last_call_of_an_agent_of_the_sdk_is_the_one_that_ended_last_wherever_it_stands(project: Project) -> None:
    trace, model, _, agent = made.agents_records(0)
    unanswered = model["span_data"] | {"output": None, "usage": None}
    failed = model | {"id": "span_0", "span_data": unanswered, "started_at": made.at(4), "ended_at": made.at(5)}
    assert statuses(project, [agent, failed, model, trace]) == [("advisor", "failure", openai_agents.NO_ANSWER)]
    first = failed | {"started_at": made.at(0), "ended_at": made.at(1)}
    assert statuses(project, [agent, model, first, trace]) == [("advisor", "success", None)]


def test_an_agent_of_the_sdk_whose_calls_are_not_in_its_file_is_counted(project: Project) -> None:
    trace, model, tool, agent = made.agents_records(0)
    for records, count in (
        ([trace, agent], 1),
        ([agent | {"ended_at": None}], 0),
        ([agent, model], 0),
        ([agent, tool], 0),
    ):
        project.write_bytes("a.jsonl", as_lines(records))
        assert lines_of(project)[1][openai_agents.WITHOUT_CALLS] == count


def test_ids_and_types_of_the_agents_sdk_may_be_numbers(project: Project) -> None:
    trace, model, _, agent = made.agents_records(0)
    odd = model | {"id": 8, "parent_id": 7, "span_data": {"type": 3}}
    assert statuses(project, [trace, odd, agent | {"id": 7}]) == [("advisor", "success", None)]
    assert rejected(project) == []


def test_a_failed_call_of_the_agents_sdk_without_its_times_is_rejected_and_fails_its_agent(project: Project) -> None:
    trace, model, _, agent = made.agents_records(0)
    failed = model | {"id": "span_0", "started_at": None, "error": {"message": "broken", "data": None}}
    assert statuses(project, [trace, model, failed, agent]) == [("advisor", "failure", "broken")]
    assert rejected(project) == ["started_at is missing"]


def test_a_response_of_the_agents_sdk_names_no_model_and_one_with_an_error_failed(project: Project) -> None:
    trace, model, _, agent = made.agents_records(0)
    usage = model["span_data"]["usage"]
    answered = model | {"span_data": {"type": "response", "response_id": "resp_1", "usage": usage}}
    failed = answered | {
        "id": "span_failed", "ended_at": made.at(8), "span_data": {"type": "response", "response_id": None, "usage": None},
        "error": {"message": "Error getting response", "data": {"error": "no key"}},
    }  # fmt: skip
    assert statuses(project, [trace, answered, failed, agent]) == [("advisor", "failure", "no key")]
    columns = ("model", "status", "error", "input_tokens", "reasoning_tokens")
    assert rows_of(project, "model_calls", *columns) == [
        ("unknown", "success", None, 100, 5), ("unknown", "failure", "no key", None, None)
    ]  # fmt: skip


def test_no_tokens_at_all_of_the_agents_sdk_are_not_known(project: Project) -> None:
    trace, model, _, agent = made.agents_records(0)
    model["span_data"]["usage"] = {"requests": 1, "input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    ingested(project, "a.jsonl", as_lines([trace, model, agent]))
    assert rows_of(project, "model_calls", "input_tokens", "output_tokens", "status") == [(None, None, "success")]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"id": None}, "the id or the type of the span is missing"),
        ({"span_data": {}}, "the id or the type of the span is missing"),
        ({"trace_id": None}, "the id of the trace is missing"),
        ({"object": "thread"}, "object must be trace or trace.span"),
        ({"started_at": None}, "started_at is missing"),
        (
            {"span_data": {"type": "generation", "input": None, "output": None, "model": "small-1", "usage": None}},
            "a generation without input, output and usage does not tell whether it failed",
        ),
    ],
)
def test_a_span_of_the_agents_sdk_that_cannot_be_used_is_rejected(
    project: Project, fields: dict[str, Any], reason: str
) -> None:
    trace, model, _, agent = made.agents_records(0)
    ingested(project, "a.jsonl", as_lines([trace, model | fields, agent]))
    assert rejected(project) == [reason]
    assert project.query("SELECT agent_id, status FROM executions") == [("advisor", "success")]


def test_traces_of_the_agents_sdk_are_counted(project: Project) -> None:
    project.write_bytes("a.jsonl", as_lines(made.AGENTS))
    _, notes = lines_of(project)
    assert notes == {openai_agents.TRACE_LINE: 3}
