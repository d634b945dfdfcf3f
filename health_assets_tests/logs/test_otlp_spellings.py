"""One trace in every way that it is exported: both spellings of Protobuf's JSON, a span a line, one document."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.hours import HOUR, HourRange, parse_hour
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.projects import Project, Row, assert_lines_are_conserved
from health_assets_tests.support.traces_made import agent, chat, in_snake_case, otlp_line, tool

AT = START + HOUR / 2
FIRST = HourRange.of(START)
RECORDINGS = Path(__file__).parents[1] / "recorded_traces"
OF_RECORDINGS = HourRange.of(parse_hour("2026-06-07T13"))
RECORDED = ("langgraph-openinference/handoff", "google-adk-otel/crash_tool", "strands-agents-otel/good")
TABLES = ("executions", "model_calls", "tool_calls")
PLACES = ("source_file", "line_number")


def one_document(lines: Iterable[str]) -> str:
    resources = [resource for one in lines for resource in json.loads(one)["resourceSpans"]]
    return json.dumps({"resourceSpans": resources}, indent=2)


def one_span_a_line(lines: Iterable[str]) -> str:
    return "\n".join(
        json.dumps({"resourceSpans": [{**resource, "scopeSpans": [{**scope, "spans": [one]}]}]})
        for line in lines
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for one in scope["spans"]
    )


EXPORTS: dict[str, tuple[str, Callable[[list[str]], str]]] = {
    "snake case": ("a.jsonl", lambda lines: in_snake_case("\n".join(lines))),
    "one span a line": ("a.jsonl", one_span_a_line),
    "one span a line in snake case": ("a.jsonl", lambda lines: in_snake_case(one_span_a_line(lines))),
    "one document": ("a.json", one_document),
    "one document in snake case, as Phoenix downloads it": ("a.json", lambda lines: in_snake_case(one_document(lines))),
    "one document in one line": ("a.json", lambda lines: json.dumps(json.loads(one_document(lines)))),
}


def records(project: Project, name: str, text: str) -> dict[str, list[Row]]:
    project.write_bytes(name, text.encode())
    project.ingest(OF_RECORDINGS)
    assert_lines_are_conserved(project)
    assert project.rows("rejected_records") == []
    tables = project.tables(names=TABLES)
    return {
        table: sorted(({key: value for key, value in row.items() if key not in PLACES} for row in rows), key=repr)
        for table, rows in tables.items()
    }


@pytest.mark.parametrize(
    "recorded", [one if one == RECORDED[0] else pytest.param(one, marks=pytest.mark.nightly) for one in RECORDED]
)
def test_the_same_run_gives_the_same_records_whichever_export_it_comes_by(tmp_path: Path, recorded: str) -> None:
    lines = (RECORDINGS / f"{recorded}.jsonl").read_text(encoding="utf-8").splitlines()
    expected = records(Project(tmp_path / "usual"), "a.jsonl", "\n".join(lines))
    assert expected["executions"]
    for number, (export, (name, written)) in enumerate(EXPORTS.items()):
        assert records(Project(tmp_path / str(number)), name, written(lines)) == expected, export


def test_each_key_may_have_either_spelling(project: Project) -> None:
    usual = otlp_line(agent(1, 1, AT), chat(1, 2, AT, 1), tool(1, 3, AT, 1, status={"code": 2, "message": "broke"}))
    keys = ("resource_spans", "scope_spans", "trace_id", "span_id", "parent_span_id", "start_time_unix_nano",
            "end_time_unix_nano", "string_value")  # fmt: skip
    snake = in_snake_case(usual)
    for number, key in enumerate(keys):
        camel = "".join(part.title() if place else part for place, part in enumerate(key.split("_")))
        only_this = usual.replace(f'"{camel}":', f'"{key}":')
        all_but_this = snake.replace(f'"{key}":', f'"{camel}" :')
        assert only_this != usual
        project.write_log(f"{number}.jsonl", [only_this, all_but_this])
    report = project.ingest(FIRST)
    assert (report.spans_read, report.rejected) == (2 * len(keys) * 3, 0)
    assert {row["parent_span_id"] for row in project.rows("spans") if row["kind"] != "agent"} == {f"{1:016x}"}
    [row] = project.rows("tool_calls")
    assert (row["tool"], row["status"], row["error"]) == ("search", "failure", "broke")


def test_values_that_look_like_keys_stay_as_they_are(project: Project) -> None:
    odd: dict[str, Any] = {"gen_ai__tool__name": "trace_id", "note": 'a "trace_id": "x" and "string_value" : 1'}
    project.write_log("a.jsonl", [in_snake_case(otlp_line(agent(1, 1, AT), tool(1, 2, AT, 1, **odd)))])
    project.ingest(FIRST)
    assert project.rows("executions")[0]["actions"] == ["trace_id"]
    assert project.rows("rejected_records") == []


def test_a_key_in_both_spellings_stands_twice(project: Project) -> None:
    line = otlp_line(agent(1, 1, AT)).replace('"traceId":', f'"trace_id": "{7:032x}", "traceId":')
    project.write_log("a.jsonl", [line], modified=AT)
    project.ingest(FIRST)
    assert [row["reason"] for row in project.rows("rejected_records")] == [
        "a key stands twice in the object, in span 0.0.0"
    ]


def test_a_bad_line_in_snake_case_is_kept_as_it_was_written(project: Project) -> None:
    bad = '{"resource_spans": [{"scope_spans": {}}]}'
    project.write_log("a.jsonl", [bad, '{"resource_logs": []}', in_snake_case(otlp_line(agent(1, 1, AT)))])
    project.ingest(FIRST)
    rows = sorted(project.rows("rejected_records"), key=lambda row: row["line_number"])
    assert [(row["raw"], row["reason"]) for row in rows] == [
        (bad, "resourceSpans[*].scopeSpans must be a list"),
        ("", "OTLP logs are not used, only traces: resourceLogs instead of resourceSpans"),
    ]
