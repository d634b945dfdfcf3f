"""OTLP-JSON lines by hand: what is used of a span, what is rejected, and traces that come in pieces."""

import base64
import gzip
import json
from typing import Any

import pytest
from typer.testing import CliRunner

from health_assets.cli.commands import app
from health_assets.core.errors import NoWarehouseError
from health_assets.core.hours import HOUR, HourRange
from health_assets.logs.span_trees import circles
from health_assets.warehouse.log_coverage import LogCoverage
from health_assets_tests.pipeline.test_ingestion_properties import (
    assert_like_a_clean_rebuild_in_the_hours_built,
    late_logs_tick,
)
from health_assets_tests.pipeline.test_trace_properties import assert_equal_to_the_reference
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import (
    FLEET,
    Project,
    Row,
    assert_lines_are_conserved,
    forked_command,
    hours_from,
)
from health_assets_tests.support.traces_made import (
    Span,
    agent,
    attributes,
    chat,
    nanoseconds,
    otlp_line,
    span,
    span_id,
    tool,
    trace_id,
)

HALF = HOUR / 2
AT = START + HALF
FIRST = HourRange.of(START)
SECOND = HOUR / 3600


def ingested(project: Project, *lines: str, hours: HourRange = FIRST) -> dict[str, list[Row]]:
    project.write_log("traces.jsonl", lines, modified=AT)
    project.ingest(hours)
    assert_lines_are_conserved(project)
    return project.tables(names=["executions", "model_calls", "tool_calls", "spans", "rejected_records"])


def id_of(trace: int, number: int) -> str:
    return f"{trace_id(trace)}:{span_id(number)}"


# -- what a line may look like --------------------------------------------------------------------------------------------


def test_a_line_of_spans_may_be_written_in_any_way_that_json_allows(project: Project) -> None:
    plain = json.loads(otlp_line(agent(1, 1, AT)))
    with_numbers = json.loads(otlp_line(agent(2, 1, AT, status={"code": "STATUS_CODE_ERROR"})))
    for one in with_numbers["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        one["startTimeUnixNano"], one["endTimeUnixNano"] = int(one["startTimeUnixNano"]), int(one["endTimeUnixNano"])
        one["traceId"], one["spanId"] = one["traceId"].upper(), one["spanId"].upper()
        one["parentSpanId"], one["flags"], one["droppedAttributesCount"] = "0000000000000000", 257, 0
    bare = {"resourceSpans": [{"scopeSpans": [{"spans": [agent(0xABC, 1, AT)]}, {"scope": {}}]}, {}]}
    tables = ingested(
        project,
        f" \t{json.dumps(plain, indent=None)} ",
        json.dumps(with_numbers, separators=(",", ":")) + "\r",
        json.dumps({"schemaUrl": "https://opentelemetry.io/schemas/1.37.0", **bare}),
        '{"resourceSpans": []}',
        "",
    )
    assert tables["rejected_records"] == []
    found = {row["execution_id"]: (row["agent_id"], row["status"], row["line_number"]) for row in tables["executions"]}
    assert found == {
        id_of(1, 1): ("planner", "success", 1),
        id_of(2, 1): ("planner", "failure", 2),
        id_of(0xABC, 1): ("planner", "success", 3),
    }
    assert {row["service_name"] for row in tables["spans"]} == {"shop", None}


def test_spans_and_native_lines_may_stand_in_one_file(project: Project) -> None:
    native = line(execution("e1", "native", AT))
    content = "\ufeff" + "\n".join([otlp_line(agent(1, 1, AT)), native, "bad", otlp_line(chat(1, 2, AT, 1)), native])
    project.write_bytes("mixed.jsonl.gz", content.encode(), modified=AT)
    report = project.ingest(FIRST)
    assert (report.lines_read, report.spans_read, report.rejected) == (3, 2, 1)
    assert [(row["line_number"], row["execution_id"]) for row in project.rows("executions")] == [
        (1, id_of(1, 1)),
        (5, "e1"),
    ]
    assert [row["line_number"] for row in project.rows("model_calls")] == [4]
    assert [row["line_number"] for row in project.rows("rejected_records")] == [3]
    assert_lines_are_conserved(project)


def test_a_line_that_only_speaks_of_spans_is_a_native_line(project: Project) -> None:
    native = execution("e1", "a", AT, resourceSpans=[], error='{"resourceSpans": []}')
    tables = ingested(project, line(native), json.dumps({"note": 1, "resourceSpans": []}))
    assert [row["execution_id"] for row in tables["executions"]] == ["e1"]
    assert [row["reason"] for row in tables["rejected_records"]] == ["type is missing"]


def test_a_cut_off_file_gives_the_spans_before_the_cut(project: Project) -> None:
    lines = [otlp_line(agent(number, 1, AT, note="x" * 200)) for number in range(1, 400)]
    packed = gzip.compress("\n".join(lines).encode())
    (project.raw / "cut.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    project.ingest(FIRST)
    assert 0 < len(project.rows("executions")) < 399
    assert any("gzip" in row["reason"] for row in project.rows("rejected_records"))


# -- what is rejected -----------------------------------------------------------------------------------------------------


def changed(**fields: Any) -> Span:
    """An agent span with other fields; None takes one away."""
    made = agent(1, 1, AT) | fields
    return {name: value for name, value in made.items() if value is not None}


BASE64_TRACE = base64.b64encode(bytes(range(16))).decode()
TIME_RULE = "must be whole nanoseconds since 1970 in the years 2000 to 2099"
STATUS_RULE = "status.code must be one of 0, 1, 2, STATUS_CODE_UNSET, STATUS_CODE_OK, STATUS_CODE_ERROR"
BAD_SPANS = [
    (changed(traceId=None), "traceId is missing"),
    (changed(traceId=""), "traceId is missing"),
    (
        changed(traceId=BASE64_TRACE),
        f"traceId must be 32 hexadecimal digits that are not all zero, not {BASE64_TRACE}",
    ),
    (
        changed(traceId="0" * 32),
        f"traceId must be 32 hexadecimal digits that are not all zero, not {'0' * 32}",
    ),
    (changed(spanId=17), "spanId must be 16 hexadecimal digits that are not all zero, not 17"),
    (changed(spanId=None), "spanId is missing"),
    (changed(parentSpanId="xyz"), "parentSpanId must be 16 hexadecimal digits that are not all zero, not xyz"),
    (changed(startTimeUnixNano=None), "startTimeUnixNano is missing"),
    (changed(endTimeUnixNano="soon"), f"endTimeUnixNano {TIME_RULE}, not soon"),
    (changed(endTimeUnixNano="9" * 30), f"endTimeUnixNano {TIME_RULE}, not {'9' * 30}"),
    (changed(startTimeUnixNano="-5"), f"startTimeUnixNano {TIME_RULE}, not -5"),
    (changed(startTimeUnixNano="1000"), f"startTimeUnixNano {TIME_RULE}, not 1000"),
    (changed(endTimeUnixNano=str(nanoseconds(AT - HOUR))), "endTimeUnixNano is before startTimeUnixNano"),
    (changed(status="fine"), 'status must be an object, not "fine"'),
    (changed(status={"code": 7}), f"{STATUS_RULE}, not 7"),
    (changed(status={"code": "ERROR"}), f"{STATUS_RULE}, not ERROR"),
]


def test_a_span_that_breaks_a_rule_is_rejected_by_itself_and_the_others_are_kept(project: Project) -> None:
    good = [agent(2, 1, AT), chat(2, 2, AT, 1)]
    tables = ingested(project, otlp_line(good[0], *(bad for bad, _ in BAD_SPANS), good[1]))
    assert len(tables["executions"]) == len(tables["model_calls"]) == 1
    assert [row["position"] for row in tables["spans"]] == ["0.0.0", f"0.0.{len(BAD_SPANS) + 1}"]
    rejected = {row["reason"] for row in tables["rejected_records"]}
    assert rejected == {f"{reason}, in span 0.0.{number}" for number, (_, reason) in enumerate(BAD_SPANS, 1)}
    own_end = [row["hour"] for row in tables["rejected_records"] if "is before" in row["reason"]]
    assert own_end == [START - HOUR], "a span lies at the end that it states"
    assert {row["hour"] for row in tables["rejected_records"]} == {START, START - HOUR}
    assert all(json.loads(row["raw"])["name"] == "span 1" for row in tables["rejected_records"])


BAD_LINES = [
    ('{"resourceSpans": [', "not valid JSON"),
    ('{"resourceSpans": [{"scopeSpans": []}],}', "not valid JSON"),
    ('{"resourceSpans": "none"}', "resourceSpans must be a list"),
    ('{"resourceSpans": [17]}', "resourceSpans[*] must be an object"),
    ('{"resourceSpans": [{"scopeSpans": {}}]}', "resourceSpans[*].scopeSpans must be a list"),
    ('{"resourceSpans": [{"scopeSpans": [{"spans": 1}]}]}', "resourceSpans[*].scopeSpans[*].spans must be a list"),
    (
        '{"resourceSpans": [{"instrumentationLibrarySpans": []}]}',
        "instrumentationLibrarySpans is of OTLP before 0.15 and is not used",
    ),
    ('{"resourceMetrics": []}', "OTLP metrics are not used, only traces: resourceMetrics instead of resourceSpans"),
    (' {"resourceLogs": [{}]}', "OTLP logs are not used, only traces: resourceLogs instead of resourceSpans"),
]


def test_a_line_that_is_no_otlp_is_rejected_with_its_text_unless_it_may_hold_prompts(project: Project) -> None:
    tables = ingested(project, *(bad for bad, _ in BAD_LINES), otlp_line(agent(1, 1, AT)))
    found = [
        (row["raw"], row["reason"]) for row in sorted(tables["rejected_records"], key=lambda row: row["line_number"])
    ]
    assert found == [("" if "are not used, only traces" in reason else line, reason) for line, reason in BAD_LINES]
    assert len(tables["executions"]) == 1


def test_what_stands_in_place_of_a_span_is_told(project: Project) -> None:
    scope = {"spans": ["one", None, agent(1, 1, AT)]}
    tables = ingested(project, json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]}))
    assert [row["reason"] for row in tables["rejected_records"]] == [
        'a span must be an object, not "one", in span 0.0.0',
        "a span must be an object, not null, in span 0.0.1",
    ]
    assert len(tables["executions"]) == 1


def test_a_span_whose_attributes_cannot_be_read_is_rejected_once(project: Project) -> None:
    odd = {**agent(1, 1, AT), "attributes": {"gen_ai.operation.name": "chat"}}
    tables = ingested(project, otlp_line(odd, agent(2, 1, AT)))
    assert [row["reason"] for row in tables["rejected_records"]] == [
        'attributes must be a list, not {"gen_ai.operation.name":"chat"}, in span 0.0.0'
    ]
    assert [row["kind"] for row in tables["spans"]] == ["agent"]


def test_the_text_of_a_long_line_is_cut(project: Project) -> None:
    tables = ingested(project, '{"resourceSpans": ["' + "ü" * 100_000 + '"]}', otlp_line(changed(spanId="x" * 200_000)))
    assert sorted(len(row["raw"].encode()) // 1000 for row in tables["rejected_records"]) == [65, 65]


# -- what a span is -------------------------------------------------------------------------------------------------------

AGENT = {"gen_ai__operation__name": "invoke_agent"}
CHAT = {"gen_ai__operation__name": "chat"}
OPENINFERENCE_AGENT = {"openinference__span__kind": "AGENT"}
LLM = {"openinference__span__kind": "LLM"}
KINDS = [
    ({"gen_ai__operation__name": "invoke_agent"}, "agent", "gen_ai"),
    ({"gen_ai__operation__name": "invoke_workflow"}, "workflow", "gen_ai"),
    ({"gen_ai__operation__name": "handle_conversation_turn"}, "workflow", "gen_ai"),
    ({"gen_ai__operation__name": "text_completion"}, "chat", "gen_ai"),
    ({"gen_ai__operation__name": "generate_content"}, "chat", "gen_ai"),
    ({"gen_ai__operation__name": "execute_tool"}, "tool", "gen_ai"),
    ({"gen_ai__operation__name": "embeddings", "gen_ai__request__model": "m"}, "other", "gen_ai"),
    ({"gen_ai__operation__name": "create_agent"}, "other", "gen_ai"),
    ({"gen_ai__system": "openai", "gen_ai__request__model": "m"}, "chat", "gen_ai"),
    ({"gen_ai__system": "openai", "llm__request__type": "embedding"}, "other", None),
    ({"openinference__span__kind": "LLM"}, "chat", "openinference"),
    ({"openinference__span__kind": "llm"}, "chat", "openinference"),
    ({"openinference__span__kind": "EMBEDDING"}, "other", "openinference"),
    ({"openinference__span__kind": "AGENT", "gen_ai__operation__name": "chat"}, "chat", "gen_ai"),
    ({"openinference__span__kind": "AGENT", "gen_ai__operation__name": "of my own"}, "agent", "openinference"),
    ({"http__request__method": "POST"}, "other", None),
    ({}, "other", None),
]
NAMES = [
    ({**AGENT, "gen_ai__agent__name": "a", "gen_ai__agent__id": "b"}, "agent_id", "a"),
    ({**AGENT, "gen_ai__agent__name": "", "gen_ai__agent__id": "b"}, "agent_id", "b"),
    ({**AGENT}, "agent_id", "span 1"),
    ({**AGENT, "name": "invoke_agent m", "gen_ai__request__model": "m"}, "agent_id", "shop"),
    ({**AGENT, "name": "invoke_agent d"}, "agent_id", "d"),
    ({**AGENT, "name": "invoke_agent"}, "agent_id", "shop"),
    ({**AGENT, "name": ""}, "agent_id", "shop"),
    ({**OPENINFERENCE_AGENT, "metadata": '{"lc_agent_name": "e"}'}, "agent_id", "e"),
    ({**OPENINFERENCE_AGENT, "name": "f", "metadata": '{"lc_agent_name": '}, "agent_id", "f"),
    ({**AGENT, "gen_ai__agent__version": "1"}, "agent_version", "1"),
    ({**AGENT}, "agent_version", "shop-1"),
    ({**OPENINFERENCE_AGENT, "agent__name": "c"}, "agent_id", "c"),
    ({**AGENT, "gen_ai__conversation__id": "a", "session__id": "b"}, "session_id", "a"),
    ({**AGENT, "session__id": "b"}, "session_id", "b"),
    ({**AGENT}, "session_id", None),
    ({**AGENT, "gen_ai__request__model": "m"}, "model", "m"),
    ({**AGENT, "gen_ai__usage__cost": 0.5}, "cost_usd", 0.5),
    ({**AGENT, "gen_ai__usage__cost": -1}, "cost_usd", None),
    ({**AGENT, "status": {"code": 2, "message": "broke"}}, "error", "broke"),
    ({**AGENT, "error__type": "Timeout", "status": {"code": 2, "message": "broke"}}, "error", "Timeout: broke"),
    ({**AGENT, "error__type": "Timeout", "status": {"code": 2, "message": "Timeout: x"}}, "error", "Timeout: x"),
    ({**AGENT, "error__type": "Timeout"}, "status", "failure"),
    ({**AGENT, "error__type": ""}, "status", "success"),
    ({**AGENT, "status": {"code": 1, "message": "not an error"}}, "error", None),
    ({**CHAT, "gen_ai__response__model": "a", "gen_ai__request__model": "b"}, "model", "b"),
    ({**CHAT, "gen_ai__response__model": "a", "gen_ai__request__model": "b"}, "response_model", "a"),
    ({**CHAT, "gen_ai__request__model": "b"}, "model", "b"),
    ({**CHAT, "gen_ai__request__model": "b"}, "response_model", None),
    ({**CHAT, "gen_ai__response__model": "a"}, "model", "a"),
    ({**CHAT, "gen_ai__response__model": "a", "gen_ai__request__model": "None"}, "model", "a"),
    ({"openinference__span__kind": "LLM", "llm__model_name": "c"}, "model", "c"),
    ({**LLM, "llm__model_name": "c-1", "llm__invocation_parameters": '{"model": "c"}'}, "model", "c"),
    ({**LLM, "llm__model_name": "c-1", "llm__invocation_parameters": '{"model": "c"}'}, "response_model", "c-1"),
    ({"openinference__span__kind": "LLM", "llm__invocation_parameters": '{"model": "d"}'}, "model", "d"),
    ({"openinference__span__kind": "LLM", "llm__invocation_parameters": '{"model_name": "e"}'}, "model", "e"),
    ({"openinference__span__kind": "LLM", "llm__invocation_parameters": '{"temperature": 1}'}, "model", "unknown"),
    ({**CHAT, "error__type": "Timeout"}, "model", "unknown"),
]


def test_attributes_of_newer_and_older_conventions_tell_the_kind_of_a_span(project: Project) -> None:
    tables = ingested(project, otlp_line(*(span(number, 1, AT, **own) for number, (own, *_) in enumerate(KINDS, 1))))
    found = {row["trace_id"]: (row["kind"], row["convention"]) for row in tables["spans"]}
    assert found == {trace_id(number): (kind, name) for number, (_, kind, name) in enumerate(KINDS, 1)}


def test_each_column_has_the_first_attribute_that_is_there_and_not_empty(project: Project) -> None:
    tables = ingested(project, otlp_line(*(span(number, 1, AT, **own) for number, (own, *_) in enumerate(NAMES, 1))))
    rows = {row.get("execution_id") or row["call_id"]: row for row in tables["executions"]}
    rows |= {row["call_id"]: row for row in tables["model_calls"]}
    for number, (_, column, expected) in enumerate(NAMES, 1):
        assert rows[id_of(number, 1)][column] == expected, NAMES[number - 1]


def test_tokens_are_read_under_newer_and_older_names(project: Project) -> None:
    older = chat(1, 1, AT, gen_ai__usage__prompt_tokens=3, gen_ai__usage__completion_tokens=4)
    newer = chat(2, 1, AT, gen_ai__usage__input_tokens=5, gen_ai__usage__output_tokens="many")
    spans = ingested(project, otlp_line(older, newer))["spans"]
    assert [(row["input_tokens"], row["output_tokens"]) for row in spans] == [(3, 4), (5, None)]


def test_an_agent_of_a_service_without_a_name_is_unknown_service(project: Project) -> None:
    unnamed = span(1, 1, AT, name="invoke_agent", **AGENT)
    assert ingested(project, otlp_line(unnamed, service=None))["executions"][0]["agent_id"] == "unknown_service"


# -- what a trace adds up to ----------------------------------------------------------------------------------------------


def test_the_outermost_agent_span_is_the_execution_and_all_below_it_is_its_own(project: Project) -> None:
    trace = [
        span(1, 1, AT, name="POST /ask"),
        agent(1, 2, AT, 1, gen_ai__agent__name="boss"),
        span(1, 3, AT, 2, name="thread"),
        agent(1, 4, AT, 3, gen_ai__agent__name="helper"),
        chat(1, 5, AT, 4),
        tool(1, 6, AT - SECOND, 4, gen_ai__tool__name="second"),
        tool(1, 7, AT - 2 * SECOND, 2, gen_ai__tool__name="first"),
        tool(1, 8, AT, 1, gen_ai__tool__name="of no agent"),
        agent(1, 9, AT, 1, gen_ai__agent__name="sibling"),
    ]
    tables = ingested(project, *(otlp_line(one) for one in reversed(trace)))
    found = {row["execution_id"]: (row["agent_id"], row["actions"]) for row in tables["executions"]}
    assert found == {id_of(1, 2): ("boss", ["first", "second"]), id_of(1, 9): ("sibling", None)}
    [call] = tables["model_calls"]
    assert (call["agent_id"], call["execution_id"]) == ("boss", id_of(1, 2))
    assert_equal_to_the_reference(project, FIRST)


def test_only_the_innermost_chat_spans_are_calls(project: Project) -> None:
    trace = [
        chat(1, 1, AT), span(1, 2, AT, 1), chat(1, 3, AT, 2), chat(1, 4, AT, 2), chat(2, 1, AT),
        chat(3, 1, AT, gen_ai__response__model=""),
    ]  # fmt: skip
    calls = ingested(project, otlp_line(*trace))["model_calls"]
    assert {row["call_id"]: row["model"] for row in calls} == {
        id_of(1, 3): "m1", id_of(1, 4): "m1", id_of(2, 1): "m1", id_of(3, 1): "unknown",
    }  # fmt: skip
    assert {(row["agent_id"], row["execution_id"]) for row in calls} == {(None, None)}


def test_an_execution_names_a_model_only_if_its_calls_agree(project: Project) -> None:
    spans = [agent(1, 1, AT), chat(1, 2, AT, 1), chat(1, 3, AT, 1), agent(2, 1, AT), chat(2, 2, AT, 1),
             chat(2, 3, AT, 1, gen_ai__response__model="m2")]  # fmt: skip
    found = {row["execution_id"]: row["model"] for row in ingested(project, otlp_line(*spans))["executions"]}
    assert found == {id_of(1, 1): "m1", id_of(2, 1): None}


def test_spans_above_one_another_in_a_circle_are_all_kept_and_the_first_one_is_the_outermost(project: Project) -> None:
    around = [agent(1, 1, AT, 3), agent(1, 2, AT, 1, runtime_s=60), agent(1, 3, AT, 2), chat(1, 4, AT, 3)]
    its_own_parent = [agent(2, 1, AT, 1), tool(2, 2, AT, 1)]
    tables = ingested(project, otlp_line(*around, *its_own_parent))
    assert len(tables["spans"]) == 6
    assert {row["execution_id"] for row in tables["executions"]} == {id_of(1, 2), id_of(2, 1)}
    assert tables["model_calls"][0]["execution_id"] == id_of(1, 2)
    assert_equal_to_the_reference(project, FIRST)


def test_circles_are_found_once_each() -> None:
    assert [set(circle) for circle in circles({1: 2, 2: 3, 3: 2, 4: 4, 5: 1})] == [{2, 3}, {4}]


def test_a_trace_may_be_thousands_of_spans_deep(project: Project) -> None:
    depth = 3000
    chain = [span(1, number, AT, number - 1) for number in range(2, depth)]
    tables = ingested(project, otlp_line(chat(1, depth, AT, depth - 1), *chain, agent(1, 1, AT)))
    assert tables["model_calls"][0]["execution_id"] == id_of(1, 1)
    assert len(tables["spans"]) == depth


def test_a_span_that_came_twice_counts_once_and_the_later_end_counts(project: Project) -> None:
    project.write_log("b.jsonl", [otlp_line(agent(1, 1, AT), tool(1, 2, AT, 1))])
    project.write_log("a.jsonl", [otlp_line(agent(1, 1, AT + SECOND), tool(1, 2, AT, 1))])
    project.ingest(FIRST)
    [row] = project.rows("executions")
    assert (row["source_file"], row["ended_at"], row["action_count"]) == ("a.jsonl", AT + SECOND, 1)
    assert len(project.rows("spans")) == 4
    assert_equal_to_the_reference(project, FIRST)


# -- pieces that come late ------------------------------------------------------------------------------------------------


def executions(project: Project) -> dict[str, int | None]:
    return {row["execution_id"]: row["action_count"] for row in project.rows("executions")}


def test_an_agent_span_that_comes_hours_after_its_children_takes_them_over(project: Project) -> None:
    project.write_log("early.jsonl", [otlp_line(agent(1, 2, AT, 1), tool(1, 3, AT, 2), chat(1, 4, AT, 2))])
    project.materialize(FIRST, only=["ingest"])
    assert executions(project) == {id_of(1, 2): 1}
    project.write_log("late.jsonl", [otlp_line(agent(1, 1, AT + 5 * HOUR))])
    project.materialize(hours_from(START + 5 * HOUR, 1), only=["ingest"])
    assert executions(project) == {id_of(1, 1): 1}
    assert [row["execution_id"] for row in project.rows("model_calls")] == [id_of(1, 1)]


def test_an_hour_that_nobody_asked_for_takes_over_a_span_that_comes_late(project: Project) -> None:
    project.write_log("early.jsonl", [otlp_line(agent(1, 1, AT + 5 * HOUR))])
    project.ingest(hours_from(START, 6))
    assert executions(project) == {id_of(1, 1): None}
    project.write_log("late.jsonl", [otlp_line(tool(1, 2, AT, 1))])
    assert project.ingest(FIRST).spans_read == 1
    assert len(project.rows("spans")) == 2
    assert project.query("SELECT source_file, hour FROM raw_logs WHERE NOT is_loaded") == []
    assert project.ingest(hours_from(START + 5 * HOUR, 1)).files_read == []
    assert executions(project) == {id_of(1, 1): 1}


def test_spans_further_apart_than_the_look_back_do_not_see_each_other(project: Project) -> None:
    project.lookback_hours = 24
    inner, outer = agent(1, 2, AT, 1), agent(1, 1, AT + 25 * HOUR)
    between = tool(1, 3, AT + 12 * HOUR, 2)
    project.write_log("a.jsonl", [otlp_line(inner, between, outer)])
    project.ingest(hours_from(START, 26))
    assert executions(project) == {id_of(1, 2): 1, id_of(1, 1): None}
    assert_equal_to_the_reference(project, hours_from(START, 26))


def test_native_lines_and_spans_with_one_id_in_one_hour_are_one_row_whichever_is_later(project: Project) -> None:
    native = line(execution(id_of(1, 1), "planner", AT + SECOND))
    project.write_log("native.jsonl", [native])
    project.write_log("traces.jsonl", [otlp_line(agent(1, 1, AT))])
    project.ingest(FIRST)
    assert [row["source_file"] for row in project.rows("executions")] == ["native.jsonl"]
    project.write_log("more.jsonl", [otlp_line(agent(1, 1, AT + 2 * SECOND))])
    project.ingest(FIRST)
    assert [row["source_file"] for row in project.rows("executions")] == ["more.jsonl"]
    assert_lines_are_conserved(project)
    project.write_log("more.jsonl", [otlp_line(span(2, 1, AT))])
    project.ingest(FIRST)
    assert [row["source_file"] for row in project.rows("executions")] == ["native.jsonl"]
    assert_lines_are_conserved(project)


def test_a_log_of_spans_that_is_gone_keeps_its_rows_until_they_are_damaged(project: Project) -> None:
    path = project.write_log("a.jsonl", [otlp_line(agent(1, 1, AT), chat(1, 2, AT, 1))])
    project.ingest(FIRST)
    path.unlink()
    project.ingest(FIRST)
    assert executions(project) == {id_of(1, 1): None}
    project.change("DELETE FROM executions")
    project.ingest(FIRST)
    assert executions(project) == {id_of(1, 1): None}, "spans are enough to put it together again"
    project.change("DELETE FROM spans")
    project.ingest(FIRST)
    assert executions(project) == {id_of(1, 1): None}, "what was put together from them is all that is left"
    assert project.query("SELECT sum(lost) FROM raw_logs") == [(2,)]


# -- the late-log sensor --------------------------------------------------------------------------------------------------


def test_the_sensor_builds_every_hour_that_a_late_span_touches_and_then_rests(project: Project) -> None:
    project.window_hours, project.lookback_hours = 2, 6
    early = [
        otlp_line(agent(number, 2, AT + number * HOUR, 1), chat(number, 3, AT + number * HOUR, 2))
        for number in range(1, 9)
    ]
    project.write_log("early.jsonl", early)
    steps = FLEET
    project.materialize(hours_from(START, 12), only=steps)
    late = [otlp_line(agent(2, 1, AT + 6 * HOUR)), otlp_line(tool(7, 9, AT + 3 * HOUR, 2)), otlp_line(agent(9, 1, AT))]
    project.write_log("late.jsonl", late)
    ticks = 0
    while late_logs_tick(project, steps):
        ticks += 1
        assert ticks < 4, "the sensor does not come to rest"
    assert_equal_to_the_reference(project, hours_from(START, 12))
    assert_like_a_clean_rebuild_in_the_hours_built(project, hours_from(START, 12), only=steps)


def test_the_whole_way_to_health(project: Project) -> None:
    """The assets of two systems from spans alone."""
    spans = [agent(number, 1, AT, status={"code": 2} if number == 1 else {}) for number in range(1, 21)]
    project.write_log("traces.jsonl", [otlp_line(*spans, *(chat(number, 2, AT, 1) for number in range(1, 21)))])
    metadata = project.materialize(FIRST, only=[*FLEET, "model_components", "model_health"])
    [health] = project.rows("agent_health", FIRST)
    assert (health["agent_id"], health["n"], health["failures"], health["asr"]) == ("planner", 20, 1, 0.95)
    assert [row["model"] for row in project.rows("model_health", FIRST)] == ["m1"]
    assert metadata["spans"]["spans_read"] == 40
    became = metadata["spans"]["what became of the spans"].text
    assert "40 spans became 20 executions, 20 model calls and 0 tool calls" in became


def test_attribute_helpers_write_what_the_collector_writes() -> None:
    assert attributes(a__b="c", d=1, e=[True]) == [
        {"key": "a.b", "value": {"stringValue": "c"}},
        {"key": "d", "value": {"intValue": "1"}},
        {"key": "e", "value": {"arrayValue": {"values": [{"boolValue": True}]}}},
    ]


def test_one_command_takes_a_newcomer_from_a_collectors_file_to_a_health_table(project: Project) -> None:
    """All hours that the logs hold; a bad line of another time does not count."""
    spans = [agent(number, 1, AT + number * HOUR) for number in range(3)]
    project.write_log("traces.jsonl", ["bad", *map(otlp_line, spans[1:])], modified=AT - 100 * HOUR)
    arguments = ["materialize", "--raw", str(project.raw), "--system", "agent_health_model"]
    done = forked_command(*arguments, folder=project.folder)
    assert done.returncode == 0, done.stderr
    assert "hold events of 2026-06-07T01 to 2026-06-07T03 (2 h)" in " ".join(done.stdout.split())
    assert "read 1 line and 2 spans of 1 file, kept 2, rejected 1" in done.stdout
    assert "planner" in done.stdout


def test_the_hours_of_logs_are_those_of_known_and_of_new_ones(project: Project) -> None:
    files = [("a", line(execution("e", "a", AT))), ("b", otlp_line(span(1, 1, AT + 5 * HOUR))), ("c", "bad")]
    for name, text in files:
        project.write_log(f"{name}.jsonl", [text], modified=AT - 50 * HOUR)
        project.ingest(FIRST)
    with project.warehouse.read() as session:
        assert LogCoverage(session).covered_hours().events == {START, START + 5 * HOUR}


def test_logs_without_an_event_want_to_be_told_the_hours(project: Project) -> None:
    project.write_log("a.jsonl", ["bad"])
    arguments = ["materialize", "--raw", str(project.raw), "--warehouse", str(project.warehouse_path)]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 1
    with pytest.raises(NoWarehouseError):  # no log is noted there, so another folder may be named
        project.rows("rejected_records")
