"""Logs of other tools: told by their content, turned into executions, and nothing in them lost without a word."""

import gzip
import io
import json
import math
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from health_assets.core.hours import HourRange, floor_hour
from health_assets.logs.formats import (
    inspect_eval,
    langfuse,
    langfuse_records,
    otlp_document,
    phoenix,
    tau2_bench,
    tau_bench,
)
from health_assets.logs.formats.foreign_lines import UTF_16 as REASON_OF_UTF_16
from health_assets.logs.formats.foreign_lines import Line, Source
from health_assets.logs.formats.inspect_eval import NEEDS_PACKAGE
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.formats.lines import objects
from health_assets.logs.stores import RawFile
from health_assets.scoring.usage import AMOUNTS
from health_assets_tests.support import foreign_logs_made as made
from health_assets_tests.support.foreign_lines import Row, lines_of, spans_of
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, assert_lines_are_conserved, assert_same_tables, hours_from

HOUR = datetime(2026, 6, 7, 13, tzinfo=UTC)
ZERO = HOUR + timedelta(minutes=10)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def rows_of(project: Project, table: str, *columns: str) -> list[tuple]:
    return project.query(f"SELECT {', '.join(columns)} FROM {table} ORDER BY ALL")


def ingested(project: Project) -> dict[str, Any]:
    """Materialize the record tables of the hour; gives the metadata of `raw_logs`."""
    metadata = project.materialize(HourRange.of(HOUR), only=["ingest"])["raw_logs"]
    assert_lines_are_conserved(project)
    return metadata


# -- names and content -------------------------------------------------------------------------------------------------

NATIVE = line(execution("e1", "planner", START))
OTLP = '{"resourceSpans":[{"resource":{},"scopeSpans":[]}]}'


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.jsonl.1", "a.jsonl.gz", "a.jsonl.2.gz", "a.ndjson", "a.ndjson.gz", "a.json", "a.json.gz",
             "a.json.1", "a.json.2.gz", "A.JSON", "traces-2026-06-07T13-00-00.000.json"],
)  # fmt: skip
@pytest.mark.parametrize("lines", [[NATIVE, NATIVE], [OTLP, OTLP], [OTLP]], ids=["native", "OTLP", "one OTLP line"])
def test_a_file_of_one_object_a_line_is_read_line_by_line_whatever_its_name(
    project: Project, name: str, lines: list[str]
) -> None:
    project.write_log(name, ["", *lines])
    found, _ = lines_of(project)
    assert [(row["line_number"], row["line"].strip(), row["fault"]) for row in found if row["line"].strip()] == [
        (number, text, None) for number, text in enumerate(lines, start=2)
    ]


@pytest.mark.parametrize(
    "content",
    [b"not json\nat all\n", b'{"name": "package", "version": "1.0"}', b"{\n}\n", b"[1, 2]", b"[]", b"17", b"\xff\xff\n",
     b"PKG", b'{"a": 1}\n{"a": 2}\n'],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.eval"])
def test_a_document_that_no_reader_knows_is_one_rejected_record(project: Project, name: str, content: bytes) -> None:
    project.write_bytes(name, content)
    [row], _ = lines_of(project)
    assert row["line_number"] == 1
    assert row["fault"].startswith("no reader knows what this file holds; it looks like ")


@pytest.mark.parametrize(
    "first", [OTLP[: len(OTLP) // 2], OTLP[len(OTLP) // 2 :], "\0\0\0", "[1, 2]"],
    ids=["its end is missing", "its beginning is missing", "zeros", "no object"],
)  # fmt: skip
@pytest.mark.parametrize("good", [NATIVE, OTLP], ids=["native", "OTLP"])
def test_a_damaged_first_line_does_not_cost_the_lines_after_it(project: Project, first: str, good: str) -> None:
    project.write_log("traces.json", [first, good, good])
    found, _ = lines_of(project)
    assert [(row["line_number"], row["line"].strip(), row["fault"]) for row in found] == [
        (number, text, None) for number, text in enumerate([first, good, good], start=1)
    ]


@pytest.mark.parametrize("opening, closing", [("[", "]"), ('{"data": [', "]}"), ('{"data":\n[', "]}")])
def test_a_list_with_an_element_a_line_is_a_document(project: Project, opening: str, closing: str) -> None:
    trace = made.dumped(made.LANGFUSE_TRACE)
    project.write_bytes("traces.json", f"{opening}\n{trace}\n{closing}".encode())
    lines, _ = lines_of(project)
    assert [(row["line_number"], row["fault"]) for row in lines] == [(1, None)] * 3  # spans, a signal, an evaluation


@pytest.mark.parametrize("content", [b"", b" \n\n"])
def test_an_empty_document_holds_nothing(project: Project, content: bytes) -> None:
    project.write_bytes("a.json", content)
    lines, _ = lines_of(project)
    assert [row for row in lines if row["line"].strip()] == []


# -- files in UTF-16 ---------------------------------------------------------------------------------------------------

TWO_LINES = [NATIVE, line(execution("é😀", "planner", START))]
UTF_16 = {"little": b"\xff\xfe", "big": b"\xfe\xff"}


def in_utf_16(text: str, order: str) -> bytes:
    return UTF_16[order] + text.encode(f"utf-16-{order[0]}e")


def texts_of(project: Project) -> list[tuple[int, str, str | None]]:
    """(line number, line, fault) of the lines that are not blank or damaged."""
    rows, _ = lines_of(project)
    kept = [row for row in rows if row["line"].strip() or row["fault"]]
    return [(row["line_number"], row["line"].strip(), row["fault"]) for row in kept]


@pytest.mark.parametrize("order", UTF_16)
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json"])
def test_a_file_in_utf_16_is_read_as_windows_tools_write_it(project: Project, name: str, order: str) -> None:
    project.write_bytes(name, in_utf_16("\r\n".join(TWO_LINES) + "\r\n", order))
    assert texts_of(project) == [(1, TWO_LINES[0], None), (2, TWO_LINES[1], None)]


def test_a_document_in_utf_16_is_told_by_its_content_too(project: Project) -> None:
    project.write_bytes("trace.json", in_utf_16(made.dumped(made.LANGFUSE_TRACE, indent=2), "little"))
    in_utf_16_lines, _ = lines_of(project)
    project.write_bytes("trace.json", made.dumped(made.LANGFUSE_TRACE, indent=2).encode())
    assert lines_of(project)[0] == in_utf_16_lines != []


@pytest.mark.parametrize("order", UTF_16)
def test_a_file_in_utf_16_gives_every_line_that_is_whole_wherever_it_is_cut(project: Project, order: str) -> None:
    ends = [len(in_utf_16("\n".join(TWO_LINES[: number + 1]), order)) for number in range(2)]
    content = in_utf_16("\n".join(TWO_LINES) + "\n", order)
    for cut in range(2, len(content) + 1):
        project.write_bytes("a.jsonl", content[:cut])
        found = texts_of(project)
        ends_within_a_character = cut % 2 == 1
        whole = sum(cut >= end + 2 * ends_within_a_character for end in ends)
        assert found[:whole] == [(number + 1, TWO_LINES[number], None) for number in range(whole)], cut
        assert len(found) <= whole + 1, cut
        if ends_within_a_character:
            assert found[whole][2] == "the UTF-16 text ends within a character: the file is cut off", cut


def test_half_of_a_surrogate_pair_costs_its_own_line_alone(project: Project) -> None:
    lone = NATIVE.replace("planner", "plan\ud83dner").encode("utf-16-le", errors="surrogatepass")
    others = ["\n".encode("utf-16-le") + text.encode("utf-16-le") for text in TWO_LINES]
    project.write_bytes("a.jsonl", UTF_16["little"] + lone + b"".join(others))
    found = texts_of(project)
    assert [(number, fault and fault[:15]) for number, _, fault in found] == [
        (1, "not valid UTF-8"),
        (2, None),
        (3, None),
    ]
    assert [text for _, text, _ in found[1:]] == TWO_LINES


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
@pytest.mark.parametrize("order", UTF_16)
def test_utf_16_that_does_not_say_so_is_rejected_for_one_reason(project: Project, name: str, order: str) -> None:
    text = "\r\n".join([*TWO_LINES, *TWO_LINES, ""])
    project.write_bytes(name, in_utf_16(text, order)[2:], modified=HOUR)
    ingested(project)
    assert rows_of(project, "rejected_records", "DISTINCT reason") == [(REASON_OF_UTF_16,)]


def test_langfuse_lines_in_utf_16_behind_others_are_rejected_for_that_reason(project: Project) -> None:
    trace = made.dumped(made.LANGFUSE_TRACE)
    project.write_bytes("a.jsonl", f"{trace}\n".encode() + f"{trace}\n".encode("utf-16-le"), modified=HOUR)
    ingested(project)
    reasons = rows_of(project, "rejected_records", "line_number", "reason")
    assert reasons == [(2, REASON_OF_UTF_16), (3, REASON_OF_UTF_16)]


# -- documents ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_list_of_native_records_is_read_like_their_lines(project: Project, name: str, indent: int | None) -> None:
    records = [
        execution("e1", "planner", HOUR, actions=["a", "b"], cost_usd=0.1, violations=[]),
        {"type": "trigger", "trigger_id": "t", "agent_id": "é", "fired_at": HOUR.isoformat(), "status": "fired"},
        {"type": "heartbeat"},
        17,
        execution("e2", "planner", HOUR, status="maybe"),
    ]
    project.write_bytes(name, made.dumped(records, indent=indent).encode())
    ingested(project)
    of_list = project.tables()
    (project.raw / name).unlink()
    lines = Project(project.raw.parent / "of lines")
    lines.write_log(name, [made.dumped(record) for record in records])
    ingested(lines)
    for table in ("executions", "trigger_events"):
        assert_same_tables({table: of_list[table]}, {table: lines.tables()[table]})
    reasons = rows_of(lines, "rejected_records", "line_number", "reason")
    assert [number for number, _ in reasons] == [3, 4, 5]
    assert rows_of(project, "rejected_records", "line_number", "reason") == reasons


def test_a_record_in_a_list_is_judged_as_it_is_written(project: Project) -> None:
    twice = NATIVE[:-1] + ', "agent_id": "other"}'
    project.write_bytes("a.json", f'[{NATIVE},\n {twice}, {NATIVE[:-1]}, "cost_usd": NaN}}]'.encode(), modified=START)
    project.materialize(HourRange.of(START), only=["ingest"])
    assert_lines_are_conserved(project)
    assert rows_of(project, "rejected_records", "line_number", "reason", "raw")[0] == (
        2, "a field stands twice in the object", twice,
    )  # fmt: skip
    assert rows_of(project, "rejected_records", "line_number")[1:] == [(3,)]
    assert rows_of(project, "executions", "execution_id", "line_number") == [("e1", 1)]


def test_a_single_native_record_may_be_written_over_many_lines(project: Project) -> None:
    project.write_bytes("a.json", json.dumps(json.loads(NATIVE), indent=2).encode())
    project.materialize(HourRange.of(START), only=["ingest"])
    assert rows_of(project, "executions", "execution_id") == [("e1",)]


def test_an_otlp_document_that_was_made_readable_is_a_line_for_each_resource(project: Project) -> None:
    document = {"resourceSpans": [{"resource": {"place": place}, "scopeSpans": []} for place in range(2)]}
    project.write_bytes("traces.json", made.dumped(document, indent=2).encode())
    lines, _ = lines_of(project)
    assert [(row["line_number"], json.loads(row["line"])) for row in lines] == [
        (place + 1, {"resourceSpans": [resource]}) for place, resource in enumerate(document["resourceSpans"])
    ]


def test_an_otlp_document_whose_spans_are_no_list_is_rejected(project: Project) -> None:
    project.write_bytes("traces.json", made.dumped({"resourceSpans": {"scopeSpans": []}}, indent=2).encode())
    [row], _ = lines_of(project)
    assert row["fault"] == "resourceSpans must be a list"


def test_a_rotated_file_of_the_collector_becomes_executions(project: Project) -> None:
    attributes = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}},
        {"key": "gen_ai.agent.name", "value": {"stringValue": "planner"}},
    ]
    started_ns = int(HOUR.timestamp()) * 10**9
    lines = []
    for place in range(2):
        span = {
            "traceId": f"{place + 1:032x}", "spanId": f"{place + 1:016x}", "name": "invoke_agent planner",
            "startTimeUnixNano": str(started_ns), "endTimeUnixNano": str(started_ns + 3 * 10**9), "attributes": attributes,
        }  # fmt: skip
        scopes = [{"scope": {"name": "planner"}, "spans": [span]}]
        lines.append(json.dumps({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": scopes}]}))
    project.write_log("otel/traces-2026-06-07T13-00-00.000.json", lines)
    ingested(project)
    assert rows_of(project, "executions", "execution_id", "agent_id", "runtime_s") == [
        (f"{place + 1:032x}:{place + 1:016x}", "planner", 3.0) for place in range(2)
    ]


# -- JSON documents, piece by piece ------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(JSON, max_size=4), st.sampled_from([None, 1]), st.booleans(), st.integers(1, 9), st.integers(0, 200))
@settings(max_examples=80, deadline=None)
def test_a_document_gives_every_element_that_is_whole_wherever_it_is_cut(
    value: list[Any], indent: int | None, is_ascii: bool, step: int, cut: int
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()
    kept = text[:cut]
    document = Document(iter([kept[start : start + step] for start in range(0, len(kept), step)]))
    found = []
    try:
        for element in document.elements():
            found += [element]
        document.finish()
        assert len(kept) == len(text)
    except DocumentError:
        assert len(kept) < len(text)
    assert found == value[: len(found)]
    if len(kept) == len(text):
        assert found == value


# -- tau-bench ---------------------------------------------------------------------------------------------------------


def test_trials_of_tau_bench_are_executions(project: Project) -> None:
    modified = HOUR + timedelta(minutes=30)
    path = f"runs/{made.TAU_BENCH_NAME}"
    project.write_bytes(path, made.dumped(made.TAU_BENCH, indent=2).encode(), modified=modified)
    metadata = ingested(project)
    found = rows_of(
        project, "executions", "line_number", "agent_id", "task_id", "model", "status", "error", "actions", "api_calls",
        "ended_at", "runtime_s", "cost_usd",
    )  # fmt: skip
    shared = ("tool-calling:gpt-4o", "gpt-4o")
    assert found == [
        (1, shared[0], "airline/1", shared[1], "failure", "rate limited", None, None, modified, None, None),
        (
            2,
            shared[0],
            "airline/0",
            shared[1],
            "success",
            None,
            ["get_user_details", "book_reservation"],
            3,
            modified,
            None,
            None,
        ),
        (
            3,
            shared[0],
            "airline/0",
            shared[1],
            "failure",
            None,
            ["get_user_details", "transfer_to_human_agents"],
            3,
            modified,
            None,
            None,
        ),
    ]
    assert "| 3 | tau-bench trial without times" in metadata["records of other formats"].text


def test_an_agent_of_tau_bench_without_a_run_name_is_called_like_its_file(project: Project) -> None:
    project.write_bytes("gpt-4o-airline.json.gz", made.dumped(made.TAU_BENCH).encode())
    lines, _ = lines_of(project)
    assert {json.loads(row["line"])["agent_id"] for row in lines} == {"gpt-4o-airline"}


def test_actions_that_an_agent_writes_as_text_count(project: Project) -> None:
    trial = made.tau_bench_trial(3, 0, 1.0)
    trial["traj"] += [
        {"role": "assistant", "content": 'Thought:\nI look.\nAction:\n{"name": "get_order", "arguments": {}}'},
        {"role": "assistant", "content": 'Action:\n{"name": "respond", "arguments": {"content": "Hi"}}'},
        {"role": "assistant", "content": "Action: none"},
    ]
    project.write_bytes("react-m-0.0_range_0-1.json", made.dumped([trial]).encode())
    [row], _ = lines_of(project)
    assert json.loads(row["line"])["actions"] == ["get_order"]
    assert json.loads(row["line"])["agent_id"] == "react:m"


def test_the_same_trial_in_two_files_is_one_execution_and_a_rebuild_agrees(project: Project) -> None:
    for folder in ("a", "b"):
        project.write_bytes(f"{folder}/{made.TAU_BENCH_NAME}", made.dumped(made.TAU_BENCH).encode(), modified=HOUR)
    ingested(project)
    assert len(project.rows("executions")) == 3
    twin = Project(project.folder / "clean")
    twin.raw = project.raw
    ingested(twin)
    assert_same_tables(twin.tables(names=["executions"]), project.tables(names=["executions"]))


CALL_COLUMNS = ("tool", "status", "error", "latency_ms", "execution_id", "agent_id", "ended_at")


def test_results_of_tools_in_tau_bench_are_tool_calls_and_a_failed_one_fails_no_trial(project: Project) -> None:
    trial = made.tau_bench_trial(0, 0, 1.0, "get_order: Error: order not found", "fly: Unknown action fly", "get_order")
    project.write_bytes(made.TAU_BENCH_NAME, made.dumped([trial]).encode(), modified=HOUR)
    ingested(project)
    [(execution_id, status)] = rows_of(project, "executions", "execution_id", "status")
    assert status == "success"
    shared = (None, execution_id, "tool-calling:gpt-4o", HOUR)
    assert rows_of(project, "tool_calls", *CALL_COLUMNS) == [
        ("fly", "failure", "Unknown action fly", *shared),
        ("get_order", "failure", "Error: order not found", *shared),
        ("get_order", "success", None, *shared),
    ]


def test_tool_calls_of_an_agent_that_writes_its_actions_have_the_result_that_it_is_told(project: Project) -> None:
    trial = made.tau_bench_trial(3, 0, 1.0)
    for result in ("API output: {}", "API output: Error: no such order", "No, thanks."):
        action = {"role": "assistant", "content": 'Action:\n{"name": "get_order", "arguments": {}}'}
        trial["traj"] += [action, {"role": "user", "content": result}]
    project.write_bytes("react-m-0.0_range_0-1.json", made.dumped([trial]).encode())
    lines, notes = lines_of(project)
    calls = [json.loads(row["line"]) for row in lines[1:]]
    assert [(call["tool"], call["status"], call.get("error")) for call in calls] == [
        ("get_order", "success", None),
        ("get_order", "failure", "Error: no such order"),
    ]
    assert len({call["call_id"] for call in calls}) == 2
    assert notes[tau_bench.UNANSWERED] == 1


# -- tau2-bench --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 4])
def test_simulations_of_tau2_bench_are_executions(project: Project, indent: int | None) -> None:
    project.write_bytes("tau2/results.json", made.dumped(made.TAU2, indent).encode())
    metadata = ingested(project)
    found = rows_of(
        project, "executions", "execution_id", "agent_id", "task_id", "status", "error", "actions", "api_calls",
        "error_count", "call_latency_s", "cost_usd", "runtime_s", "started_at",
    )  # fmt: skip
    agent, actions, started_at = (
        "llm_agent:claude-3-7-sonnet",
        ["get_customer", "refuel_data"],
        HOUR + timedelta(seconds=60.25),
    )
    assert found == [
        ("sim-1", agent, "telecom/12", "success", None, actions, 2, 1, 3.0, 0.125, 240.0, started_at),
        ("sim-2", agent, "telecom/12", "failure", "max_steps", actions, 2, 1, 3.0, 0.125, 240.0, started_at),
    ]
    assert rows_of(project, "model_calls", "call_id", "model", "latency_ms", "execution_id")[:2] == [
        ("sim-1:2", "claude-3-7-sonnet", 2000.0, "sim-1"),
        ("sim-1:5", "claude-3-7-sonnet", 4000.0, "sim-1"),
    ]
    assert rows_of(project, "rejected_records", "line_number", "reason") == [
        (4, "reward_info.reward is missing: the simulation was not evaluated")
    ]
    assert (
        "| 1 | tau2-bench simulation that ended by infrastructure_error |" in metadata["records of other formats"].text
    )


def test_tau2_bench_tells_tool_calls_tokens_cost_and_the_version(project: Project) -> None:
    document = made.TAU2 | {"simulations": made.TAU2["simulations"][:1]}
    project.write_bytes("tau2/results.json", made.dumped(document).encode())
    ingested(project)
    amounts = ("input_tokens", "output_tokens", "cost_usd")
    assert rows_of(project, "executions", "agent_version", *amounts) == [("c0dd233", 1800, 40, 0.125)]
    assert rows_of(project, "model_calls", "call_id", *amounts) == [
        ("sim-1:2", 900, 20, 0.1),
        ("sim-1:5", 900, 20, None),
    ]
    shared = (None, "sim-1", "llm_agent:claude-3-7-sonnet")
    at = HOUR + timedelta(milliseconds=250)
    assert rows_of(project, "tool_calls", *CALL_COLUMNS) == [
        ("get_customer", "failure", "no such customer", *shared, at + timedelta(minutes=3)),
        ("refuel_data", "success", None, *shared, at + timedelta(minutes=4)),
    ]


def test_what_a_simulation_of_tau2_bench_does_not_tell_of_its_calls_is_counted(project: Project) -> None:
    simulation = made.tau2_simulation("sim-1", 0, 1.0)
    simulation["messages"][2] |= {"timestamp": None, "cost": 0.0}
    simulation["messages"][3]["error"] = None
    del simulation["messages"][4]
    simulation["agent_cost"] = 0.0
    info = made.TAU2["info"] | {"agent_info": {"implementation": "my_agent"}, "git_commit": None}
    project.write_bytes("tau2.json", made.dumped(made.TAU2 | {"info": info, "simulations": [simulation]}).encode())
    lines, notes = lines_of(project)
    [run, call] = [json.loads(row["line"]) for row in lines]
    assert {"cost_usd", "agent_version", "model"} & run.keys() == set()
    assert (call["type"], call["model"]) == ("model_call", "unknown")
    assert notes == {tau2_bench.UNTIMED_CALL: 1, tau2_bench.NO_MODEL: 1, tau2_bench.UNANSWERED: 2}


def test_a_tool_call_of_a_tau2_conversation_by_voice_has_its_result_in_a_tick(project: Project) -> None:
    simulation = made.tau2_simulation("sim-1", 0, 1.0)
    told, result = simulation["messages"][2]["tool_calls"][:1], simulation["messages"][3]
    simulation |= {"messages": [], "ticks": [{"agent_tool_calls": told}, {"agent_tool_results": [result]}]}
    project.write_bytes("tau2.json", made.dumped(made.TAU2 | {"simulations": [simulation]}).encode())
    lines, notes = lines_of(project)
    [_, call] = [json.loads(row["line"]) for row in lines]
    assert (call["tool"], call["status"], notes) == ("get_customer", "failure", {})


def test_a_file_of_tau2_without_simulations_is_rejected(project: Project) -> None:
    document = {name: value for name, value in made.TAU2.items() if name != "simulations"}
    project.write_bytes("results.json", made.dumped(document).encode())
    [row], _ = lines_of(project)
    assert (row["line_number"], row["fault"], row["line"]) == (1, "simulations is missing", "")


def test_a_tau2_simulation_in_a_file_of_its_own_is_rejected_as_a_whole(project: Project) -> None:
    index = [{"id": "sim-1", "task_id": "12", "trial": 0, "reward": 1.0}]
    project.write_bytes(
        "results.json", made.dumped(made.TAU2 | {"simulations": [], "simulation_index": index}).encode()
    )
    project.write_bytes("simulations/sim-1.json", made.dumped(made.tau2_simulation("sim-1", 0, 1.0)).encode())
    [row], notes = lines_of(project)
    assert row["fault"].startswith("a simulation in a file of its own does not name its agent")
    assert notes == {tau2_bench.ELSEWHERE: 1}


# -- Langfuse ----------------------------------------------------------------------------------------------------------

TRACE_SPAN = langfuse_records.trace_span_id(made.TRACE_ID)


def told(spans: list[Row]) -> list[tuple]:
    return [
        (
            span["spanId"], span.get("parentSpanId"), span["times"], span.get("status"),
            span["attributes"].get("gen_ai.operation.name"),
        )
        for span in spans
    ]  # fmt: skip


ROOT, CHAT, SEARCH, REFUND = ("00f067aa0ba902b7", "b7ad6b7169203331", "b7ad6b7169203332", "b7ad6b7169203333")
BELOW_THE_TRACE = [
    (ROOT, TRACE_SPAN, (0, 9), None, None),
    (CHAT, ROOT, (1, 3), None, "chat"),
    (SEARCH, ROOT, (3, 4), None, "execute_tool"),
    (REFUND, ROOT, (5, 6), {"code": 2, "message": "card expired"}, "execute_tool"),
]


@pytest.mark.parametrize("name", ["export.jsonl", "export.json", "export.jsonl.gz"])
def test_a_langfuse_trace_with_its_observations_is_a_tree_of_spans(project: Project, name: str) -> None:
    project.write_log(name, [made.dumped(made.LANGFUSE_TRACE)])
    (trace, signals, thumbs), notes = lines_of(project)
    spans = spans_of(trace, ZERO)
    assert told(spans) == [(TRACE_SPAN, None, (0, 10), None, "invoke_agent"), *BELOW_THE_TRACE]
    assert {span["traceId"] for span in spans} == {made.TRACE_ID}
    assert spans[0]["attributes"] == {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support-agent", "gen_ai.usage.cost": 0.02,
        "gen_ai.conversation.id": "s-7", "user.id": "u-1", "langfuse.trace.input": "{}",
    }  # fmt: skip
    assert spans[2]["attributes"] | {"user.id": "u-1"} == {
        "gen_ai.operation.name": "chat", "langfuse.observation.type": "GENERATION", "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": "900", "gen_ai.usage.output_tokens": "20",
        "gen_ai.usage.cost": 0.02, "gen_ai.conversation.id": "s-7", "user.id": "u-1",
        "langfuse.observation.input": '{"q": 1}',
    }  # fmt: skip
    assert spans[3]["name"] == "search_orders"
    assert json.loads(signals["line"]) == {
        "type": "signals", "execution_id": f"{made.TRACE_ID}:{TRACE_SPAN}", "at": "2026-06-07T13:20:00+00:00",
        "coherence": 0.75,
    }  # fmt: skip
    evaluation = json.loads(thumbs["line"])
    assert (evaluation["type"], evaluation["name"], evaluation["value"]) == ("evaluation", "thumbs up", 1)
    assert notes == {
        "Langfuse EVENT, which has no duration": 1,
        "Langfuse SPAN, which is no agent, model call or tool": 1,
    }


def test_a_single_langfuse_trace_may_be_written_over_many_lines(project: Project) -> None:
    project.write_bytes("trace.json", made.dumped(made.LANGFUSE_TRACE).encode())
    on_one_line = lines_of(project)
    project.write_bytes("trace.json", made.dumped(made.LANGFUSE_TRACE, indent=2).encode())
    assert lines_of(project) == on_one_line
    project.write_bytes("trace.json", made.dumped(made.LANGFUSE_TRACE, indent=2).encode()[:-30])
    [cut_off], _ = lines_of(project)
    assert cut_off["fault"] == "the document ends early: it is cut off"


def test_an_answer_of_the_api_without_a_list_is_rejected(project: Project) -> None:
    project.write_bytes("trace.json", made.dumped({"data": made.LANGFUSE_TRACE, "meta": {}}).encode())
    [row], _ = lines_of(project)
    assert row["fault"] == "neither a trace nor an observation nor a score of Langfuse"


@pytest.mark.parametrize("wrap", [lambda records: records, lambda records: {"data": records, "meta": {"page": 1}}])
def test_a_langfuse_answer_of_the_api_is_read_too(project: Project, wrap: Any) -> None:
    project.write_bytes("traces.json", made.dumped(wrap([made.LANGFUSE_TRACE, {"id": "?"}]), indent=2).encode())
    lines, _ = lines_of(project)
    assert [(row["line_number"], row["fault"]) for row in lines] == [
        *[(1, None)] * 3,
        (2, "neither a trace nor an observation nor a score of Langfuse"),
    ]


def test_the_tables_of_langfuses_blob_storage_export_give_the_same_tree(project: Project) -> None:
    trace = {
        name: value for name, value in made.LANGFUSE_TRACE.items() if name not in ("latency", "observations", "scores")
    }
    project.write_log("traces/1.jsonl", [made.dumped(made.snake(trace))])
    enriched = {"trace_name": "support-agent", "session_id": "s-7", "user_id": "u-1"}
    observations = [made.dumped(made.snake(one) | enriched) for one in made.LANGFUSE_OBSERVATIONS]
    project.write_log("observations/1.jsonl", observations)
    project.write_log("scores/1.jsonl", [made.dumped(made.snake(one)) for one in made.LANGFUSE_TRACE["scores"]])
    lines, notes = lines_of(project)
    spans = [span for row in lines if "resourceSpans" in row["line"] for span in spans_of(row, ZERO)]
    assert told(spans) == [(TRACE_SPAN, None, (0, 9), None, "invoke_agent"), *BELOW_THE_TRACE]
    assert spans[0]["attributes"]["gen_ai.agent.name"] == "support-agent"
    assert spans[0]["attributes"]["gen_ai.conversation.id"] == "s-7"
    assert spans[2]["attributes"]["gen_ai.request.model"] == "gpt-4o"
    assert [json.loads(row["line"])["coherence"] for row in lines if "signals" in row["line"]] == [0.75]
    assert notes[langfuse.NO_OBSERVATIONS] == 1


def test_a_langfuse_trace_fails_with_an_observation_directly_below_it(project: Project) -> None:
    root = made.LANGFUSE_OBSERVATIONS[0] | {"level": "ERROR", "statusMessage": "gave up"}
    observations = [root, *made.LANGFUSE_OBSERVATIONS[1:]]
    project.write_log("a.jsonl", [made.dumped(made.LANGFUSE_TRACE | {"observations": observations, "latency": None})])
    lines, _ = lines_of(project)
    whole = spans_of(lines[0], ZERO)[0]
    assert (whole["times"], whole["status"]) == ((0, 9), {"code": 2, "message": "gave up"})


@pytest.mark.parametrize("form", ["one trace", "three tables"])
def test_a_langfuse_export_becomes_executions_and_model_calls(project: Project, form: str) -> None:
    if form == "one trace":
        project.write_log("langfuse/export.jsonl", [made.dumped(made.LANGFUSE_TRACE)])
    else:
        enriched = {"trace_name": "support-agent", "session_id": "s-7"}
        rows = {"observations": [made.snake(one) | enriched for one in made.LANGFUSE_OBSERVATIONS],
                "scores": [made.snake(one) for one in made.LANGFUSE_TRACE["scores"]]}  # fmt: skip
        for table, records in rows.items():
            project.write_log(f"langfuse/{table}/2026.jsonl.gz", [made.dumped(record) for record in records])
    ingested(project)
    execution_id, zero = f"{made.TRACE_ID}:{TRACE_SPAN}", HOUR + timedelta(minutes=10)
    [found] = rows_of(
        project, "executions", "execution_id", "agent_id", "session_id", "status", "actions", "model", "cost_usd",
        "started_at", "ended_at",
    )  # fmt: skip
    assert found == (
        execution_id, "support-agent", "s-7", "success", ["search_orders", "refund"], "gpt-4o", 0.02, zero,
        zero + timedelta(seconds=10 if form == "one trace" else 9),
    )  # fmt: skip
    assert rows_of(project, "model_calls", "call_id", "model", "latency_ms", "execution_id", "agent_id", "status") == [
        (f"{made.TRACE_ID}:{CHAT}", "gpt-4o", 2000.0, execution_id, "support-agent", "success")
    ]
    assert rows_of(project, "signals", "execution_id", "signal_coherence") == [(execution_id, 0.75)]
    assert project.rows("rejected_records") == []


REJECTED_BY_LANGFUSE = [
    (made.LANGFUSE_TRACE | {"latency": None, "observations": made.LANGFUSE_OBSERVATIONS[4:]}, "the trace has neither a latency nor observations, so its end is not known"),
    (made.LANGFUSE_TRACE | {"name": None, "observations": made.LANGFUSE_OBSERVATIONS[4:]}, "the trace has no name, so the agent is not known"),
    (made.LANGFUSE_TRACE | {"timestamp": "yesterday"}, 'timestamp must be ISO 8601, not "yesterday"'),
    (made.LANGFUSE_OBSERVATIONS[1] | {"endTime": "2026-06-07T13:00:00Z"}, "endTime is before startTime"),
    (made.LANGFUSE_OBSERVATIONS[1] | {"traceId": None}, "traceId is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "reason"), REJECTED_BY_LANGFUSE, ids=[reason for _, reason in REJECTED_BY_LANGFUSE])
def test_a_langfuse_record_that_cannot_be_used_is_rejected_with_its_reason(
    project: Project, record: Row, reason: str
) -> None:
    project.write_log("a.jsonl", [made.dumped(made.LANGFUSE_OBSERVATIONS[0]), made.dumped(record), "{"])
    lines, _ = lines_of(project)
    assert [(row["line_number"], row["fault"]) for row in lines if row["fault"]] == [(2, reason), (3, "not valid JSON")]
    assert json.loads(lines[1]["line"]) == record


def test_ids_of_langfuse_become_ids_of_opentelemetry() -> None:
    assert langfuse_records.trace_id(made.TRACE_ID) == made.TRACE_ID
    assert langfuse_records.trace_id("0AF76519-16cd-43dd-8448-eb211c80319c") == made.TRACE_ID
    assert langfuse_records.observation_span_id("00f067aa0ba902b7") == "00f067aa0ba902b7"
    for length, made_of in (
        (32, langfuse_records.trace_id),
        (16, langfuse_records.observation_span_id),
        (16, langfuse_records.trace_span_id),
    ):
        assert made_of("my trace") == made_of("my trace") != made_of("my trace 2")
        assert len(made_of("my trace")) == length == len(f"{int(made_of('my trace'), 16):0{length}x}")


# -- Inspect AI --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def inspect_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs that Inspect AI itself wrote: an evaluation of three epochs and one without a scorer, in both formats."""
    pytest.importorskip("inspect_ai")
    folder = tmp_path_factory.mktemp("inspect")
    command = [sys.executable, "-m", "health_assets_tests.support.inspect_logs_made", str(folder), "eval", "json"]
    subprocess.run(command, check=True, timeout=120)
    return folder


def logs_of(folder: Path, task: str, suffix: str) -> bytes:
    [path] = folder.glob(f"*_{task}_*.{suffix}")
    return path.read_bytes()


@pytest.mark.parametrize("suffix", ["eval", "json", "json.gz"])
def test_samples_of_inspect_are_executions(project: Project, inspect_logs: Path, suffix: str) -> None:
    from inspect_ai.log import read_eval_log

    for task in ("sums", "unscored"):
        project.write_bytes(f"inspect/{task}.{suffix}", logs_of(inspect_logs, task, suffix.removesuffix(".gz")))
    [path] = inspect_logs.glob(f"*_sums_*.{suffix.removesuffix('.gz')}")
    log = read_eval_log(str(path))
    samples = log.samples
    ended = datetime.fromisoformat(samples[0].completed_at)
    hours = hours_from(ended.replace(minute=0, second=0, microsecond=0), 2)  # the hour may end while it is evaluated
    metadata = project.materialize(hours, only=["ingest"])["raw_logs"]
    assert_lines_are_conserved(project)
    found = rows_of(
        project, "executions", "line_number", "execution_id", "agent_id", "task_id", "model", "status", "actions",
        "api_calls", "error_count", "session_id", "confidence", "started_at", "ended_at",
    )  # fmt: skip
    assert found == [
        (
            number, sample.uuid, "generate:mockllm/model", "sums/one and one", "mockllm/model", status, ["add"], 2, 0,
            log.eval.run_id, None, datetime.fromisoformat(sample.started_at), datetime.fromisoformat(sample.completed_at),
        )
        for number, (sample, status) in enumerate(zip(samples, ("success", "failure", "success"), strict=True), start=1)
    ]  # fmt: skip
    calls = rows_of(project, "model_calls", "execution_id", "model", "status", "agent_id")
    assert calls == sorted(
        (s.uuid, "mockllm/model", "success", "generate:mockllm/model") for s in samples for _ in "12"
    )
    assert metadata["records of other formats"].text.endswith("| 1 | Inspect sample without a score |")


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_inspect_tells_tool_calls_tokens_cost_and_the_version(
    project: Project, inspect_logs: Path, suffix: str
) -> None:
    project.write_bytes(f"quotients.{suffix}", logs_of(inspect_logs, "quotients", suffix))
    lines, notes = lines_of(project)
    run, *calls = [json.loads(row["line"]) for row in lines]
    assert (run["status"], run["agent_version"], run["error_count"]) == ("success", "2.1", 1)
    told = {tuple(call.get(name) for name in AMOUNTS) for call in calls[:3]}
    assert ([call["type"] for call in calls[:3]], told) == (["model_call"] * 3, {(40, 2, 25, 5, 1, 0.25)})
    assert [(call["type"], call["tool"], call["status"], call.get("error")) for call in calls[3:]] == [
        ("tool_call", "divide", "failure", "unknown: y is 0"),
        ("tool_call", "divide", "success", None),
    ]
    assert {call["execution_id"] for call in calls} == {run["execution_id"]}
    assert all(call["latency_ms"] >= 0 for call in calls)
    assert (len({call["call_id"] for call in calls}), notes) == (5, {})


def test_what_inspect_does_not_tell_or_is_not_the_agents_is_counted(project: Project, inspect_logs: Path) -> None:
    from inspect_ai.log import read_eval_log, write_eval_log

    [path] = inspect_logs.glob("*_quotients_*.json")
    log = read_eval_log(str(path))
    [sample] = log.samples
    places = [place for place, event in enumerate(sample.events) if event.event in ("model", "tool")]
    odd = {"cache": "read"}, {"pending": True}, {"retries": 2}
    for place, fields in zip(places, odd, strict=False):
        sample.events[place] = sample.events[place].model_copy(update=fields)
    [scorer] = [event.id for event in sample.events if event.event == "span_begin" and event.type == "scorer"]
    sample.events.append(sample.events[places[4]].model_copy(update={"span_id": scorer, "uuid": "of the scorer"}))
    log.eval.metadata = None
    write_eval_log(log, str(project.raw / "changed.json"))
    lines, notes = lines_of(project)
    run, *calls = [json.loads(row["line"]) for row in lines]
    assert [call["type"] for call in calls] == ["model_call", "model_call", "tool_call"]
    assert run["api_calls"] == 2
    assert notes == {
        inspect_eval.FROM_CACHE: 1, inspect_eval.PENDING: 1, inspect_eval.RETRIED: 2, inspect_eval.OF_SCORER: 1,
    }  # fmt: skip


def test_an_inspect_log_without_calls_tells_the_tokens_of_its_sample_and_one_without_samples_is_counted(
    project: Project, inspect_logs: Path
) -> None:
    from inspect_ai.log import read_eval_log, write_eval_log

    [path] = inspect_logs.glob("*_quotients_*.json")
    log = read_eval_log(str(path))
    log.samples = [changed(log.samples[0], events=[])]
    write_eval_log(log, str(project.raw / "without calls.json"))
    log.samples = []
    write_eval_log(log, str(project.raw / "without samples.json"))
    [row], notes = lines_of(project)
    run = json.loads(row["line"])
    assert [run[name] for name in AMOUNTS] == [120, 6, 75, 15, 3, 0.75]
    assert notes == {inspect_eval.NO_SAMPLES: 1}


VERSIONS = [
    ({"agent_version": 3}, "inspect_swe/claude", True, "3"),
    (None, "inspect_swe/claude", True, "0.2.9"),
    (None, "react", True, "abc123-dirty"),
    (None, "react", None, "abc123"),
]


@pytest.mark.parametrize(("metadata", "solver", "dirty", "version"), VERSIONS)
def test_the_version_of_an_inspect_agent_is_stated_or_its_packages_or_its_codes(
    project: Project, inspect_logs: Path, metadata: Row | None, solver: str, dirty: bool | None, version: str
) -> None:
    from inspect_ai.log import EvalRevision, read_eval_log, write_eval_log

    [path] = inspect_logs.glob("*_quotients_*.json")
    log = read_eval_log(str(path))
    log.eval.metadata, log.eval.solver = metadata, solver
    log.eval.packages = {"inspect_ai": "0.3", "inspect_swe": "0.2.9"}
    log.eval.revision = EvalRevision(type="git", origin="here", commit="abc123", dirty=dirty)
    write_eval_log(log, str(project.raw / "changed.json"))
    lines, _ = lines_of(project)
    assert json.loads(lines[0]["line"])["agent_version"] == version


def changed(sample: Any, **fields: Any) -> Any:
    return sample.model_copy(update=fields)


VALUES = [("C", True), ("P", False), ("I", False), ("N", False), (1, True), (0.99, False), (0, False), (True, True)]


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_what_a_sample_of_inspect_scored_decides(project: Project, inspect_logs: Path, suffix: str) -> None:
    from inspect_ai.log import EvalError, EvalSampleLimit, ProvenanceData, read_eval_log, write_eval_log
    from inspect_ai.scorer import Score

    [path] = inspect_logs.glob("*_sums_*.json")
    log = read_eval_log(str(path))
    sample = log.samples[0]
    samples = [
        changed(sample, uuid=f"u{place}", scores={"match": Score(value=value)})
        for place, (value, _) in enumerate(VALUES)
    ]
    samples += [
        changed(sample, uuid="two scorers", scores={"match": Score(value="I"), "other": Score(value="C")}),
        changed(
            sample, uuid="broke off", scores=None, error=EvalError(message="no net", traceback="", traceback_ansi="")
        ),
        changed(
            sample, uuid="limited", scores={"match": Score(value="I")}, limit=EvalSampleLimit(type="token", limit=5)
        ),
        changed(sample, uuid="too much", scores={"match": Score(value=7)}),
        changed(sample, uuid="many", scores={"match": Score(value={"a": math.nan, "b": 1})}),
        changed(sample, uuid="word", scores={"match": Score(value="good")}),
        changed(sample, uuid="unscored", scores={"match": Score(value=math.nan)}),
        changed(sample, uuid="invalid", invalidation=ProvenanceData(author="me", reason="leak")),
    ]
    log.samples = [changed(one, epoch=place + 1) for place, one in enumerate(samples)]
    log.eval.metadata = {"agent_id": "calculator"}
    write_eval_log(log, str(project.raw / f"changed.{suffix}"))
    lines, notes = lines_of(project)
    executions = [json.loads(row["line"]) for row in lines if '"type": "execution"' in row["line"]]
    assert [(one["execution_id"], one["status"], one.get("error")) for one in executions] == [
        *((f"u{place}", "success" if right else "failure", None) for place, (_, right) in enumerate(VALUES)),
        ("two scorers", "failure", None),
        ("broke off", "failure", "no net"),
        ("limited", "failure", "limit reached: token"),
    ]
    assert {one["agent_id"] for one in executions} == {"calculator"}
    place = len(executions)
    assert [(row["line_number"], row["fault"], json.loads(row["line"])) for row in lines if row["fault"]] == [
        (place + more, reason, {"id": sample.id, "epoch": place + more})
        for more, reason in enumerate(
            [
                "the score of match must lie between 0 and 1 to tell success, not 7",
                "the score of match has several values (a, b); success needs a score of one",
                "the score of match must be C, P, I, N or a number, not good",
            ],
            start=1,
        )
    ]
    assert notes == {inspect_eval.INVALIDATED: 1, inspect_eval.UNSCORED: 1}


def test_samples_that_a_retry_of_an_eval_carries_over_count_once(project: Project, inspect_logs: Path) -> None:
    from inspect_ai.log import EvalError, read_eval_log, write_eval_log

    [path] = inspect_logs.glob("*_sums_*.json")
    log = read_eval_log(str(path))
    first = changed(log.samples[1], uuid="broke off", scores=None)
    log.samples[1] = changed(first, error=EvalError(message="no net", traceback="", traceback_ansi=""))
    carried = [sample.uuid for sample in log.samples if sample.uuid != "broke off"]
    write_eval_log(log, str(project.raw / "1_sums.eval"))
    log.samples[1] = changed(read_eval_log(str(path)).samples[1], uuid="tried again")
    log.eval = changed(log.eval, run_id="another run", eval_id="another eval")
    write_eval_log(log, str(project.raw / "2_sums.eval"))
    ended = [datetime.fromisoformat(sample.completed_at) for sample in log.samples]
    project.ingest(HourRange(floor_hour(min(ended)), floor_hour(max(ended)) + timedelta(hours=1)))
    assert sorted(project.query("SELECT execution_id FROM executions")) == sorted(
        (key,) for key in [*carried, "broke off", "tried again"]
    )


def test_a_damaged_eval_log_is_rejected_as_a_whole(project: Project, inspect_logs: Path) -> None:
    for suffix in ("eval", "json"):
        content = logs_of(inspect_logs, "sums", suffix)
        project.write_bytes(f"half.{suffix}", content[: len(content) // 2])
    lines, _ = lines_of(project)
    assert [row["fault"].partition(": ")[0] for row in lines] == ["Inspect AI cannot read it"] * 2


def test_of_an_eval_log_with_a_damaged_sample_the_others_are_kept(project: Project, inspect_logs: Path) -> None:
    content = logs_of(inspect_logs, "sums", "eval")
    with zipfile.ZipFile(io.BytesIO(content)) as log:
        place = log.getinfo("samples/one and one_epoch_2.json").header_offset + 100
    project.write_bytes("a.eval", content[:place] + bytes(40) + content[place + 40 :])
    lines, _ = lines_of(project)
    found = [(row["line_number"], row["fault"].partition(": ")[0]) for row in lines if row["fault"]]
    assert found == [(2, "Inspect AI cannot read the sample")]
    assert [row["line_number"] for row in lines if '"type": "execution"' in row["line"]] == [1, 3]


def test_without_its_package_an_eval_log_is_rejected_by_a_sentence_that_names_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_eval, "find_spec", lambda name: None)  # as if it were not installed
    project.write_bytes("a.eval", inspect_eval.ZIP_MAGIC + b"...")
    [row], _ = lines_of(project)
    assert row["fault"] == NEEDS_PACKAGE


# -- damage ------------------------------------------------------------------------------------------------------------

WHOLE = {
    "tau.json": made.dumped(made.TAU_BENCH[1:], indent=2),
    "tau2.json": made.dumped(made.TAU2),
    "langfuse.json": made.dumped([made.LANGFUSE_TRACE] * 3, indent=2),
    "langfuse.jsonl": "\n".join([made.dumped(made.LANGFUSE_TRACE)] * 3),
    "native.json": made.dumped([execution(f"e{number}", "a", START) for number in range(5)], indent=2),
    "otlp.json": made.dumped({"resourceSpans": [{"resource": {}, "scopeSpans": []}] * 3}, indent=2),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("share", [0.5, 0.8, 0.999])
@pytest.mark.parametrize("packed", ["plain", "gzip"])
def test_a_half_written_file_gives_all_that_is_whole_and_one_rejected_record(
    project: Project, name: str, share: float, packed: str
) -> None:
    content = WHOLE[name].encode()
    (project.raw / name).write_bytes(content)
    whole, _ = lines_of(project)
    (project.raw / name).unlink()
    cut = content[: int(len(content) * share)]
    if packed == "plain":
        (project.raw / name).write_bytes(cut)
    else:
        zipped = gzip.compress(content, compresslevel=0)
        (project.raw / f"{name}.gz").write_bytes(zipped[: int(len(zipped) * share)])
    lines, _ = lines_of(project)
    written_then = {"started_at": "", "ended_at": ""}  # tau-bench's times are its file's
    good, expected = (
        [(row["line_number"], json.loads(row["line"]) | written_then) for row in rows if row["fault"] is None]
        for rows in (lines, whole)
    )
    assert good == expected[: len(good)]
    faults = [row["fault"] for row in lines if row["fault"] is not None]
    assert faults[-1] in (
        "the document ends early: it is cut off", "not valid JSON", "the gzip stream ends early: the file is cut off",
    )  # fmt: skip


ODD_VALUES = [
    None, True, "", -1, 10**400, float("nan"), 1e15, "1e400", [None], {"a": None}, "9999-12-31T23:59:59.9-23:59",
]  # fmt: skip
"""Valid JSON, for Python's parser at least, that no tool should write anywhere."""
ANNOTATION = {
    "id": "U3BhbkFubm90YXRpb246MQ==", "created_at": "2026-06-07T13:00:02+00:00", "updated_at": "2026-06-07T13:00:02+00:00",
    "name": "thumbs", "annotator_kind": "HUMAN", "result": {"label": "up", "score": 1.0, "explanation": None},
    "metadata": {}, "span_id": "bdc3820d6e077257",
}  # fmt: skip
READ_BY: list[tuple[Callable[[Source], Iterator[Line]], Any]] = [
    (tau_bench.read, made.TAU_BENCH[:2]),
    (tau2_bench.read, made.TAU2 | {"simulations": made.TAU2["simulations"][:1]}),
    (langfuse.read_document, made.LANGFUSE_TRACE),
    (langfuse.read_document, made.snake(made.LANGFUSE_OBSERVATIONS[1])),
    (langfuse.read_document, made.snake(made.LANGFUSE_TRACE["scores"][0])),
    (phoenix.read_document, {"data": [ANNOTATION], "next_cursor": None}),
]


def with_each_value_changed(value: Any, to: Any) -> Iterator[Any]:
    """Copies of a document in which one value of it, at whatever depth, is another."""
    if isinstance(value, dict | list):
        for key, member in list(value.items() if isinstance(value, dict) else enumerate(value)):
            for changed in [to, *with_each_value_changed(member, to)]:
                copied = value.copy()
                copied[key] = changed
                yield copied


@pytest.mark.parametrize("odd", ODD_VALUES, ids=lambda odd: json.dumps(odd)[:10])
def test_no_value_wherever_it_stands_in_a_foreign_record_stops_a_run(odd: Any) -> None:
    for read, document in READ_BY:
        for changed in with_each_value_changed(document, odd):
            content = json.dumps(changed).encode()
            lines = read(
                Source(
                    RawFile(source_file=made.TAU_BENCH_NAME, path=Path(), size_bytes=len(content), modified_ns=0),
                    iter([content]),
                )
            )
            assert all(line.fault or json.loads(line.text) for line in lines)


DEEP = [
    (tau_bench.read, [made.tau_bench_trial(0, 0, 1.0) | {"trial": "?"}]),
    (tau2_bench.read, made.TAU2 | {"simulations": [{"id": "?"}]}),
    (langfuse.read_document, [made.LANGFUSE_OBSERVATIONS[1] | {"startTime": "?"}]),
    (otlp_document.read, {"resourceSpans": [{"scopeSpans": "?"}]}),
    (phoenix.read_document, [ANNOTATION | {"span_id": "?"}]),
]


@pytest.mark.parametrize(("read", "document"), DEEP, ids=["tau-bench", "tau2-bench", "Langfuse", "OTLP", "Phoenix"])
def test_no_nesting_however_deep_stops_a_run(read: Callable[[Source], Iterator[Line]], document: Any) -> None:
    whole, faults = made.dumped(document), set()
    for depth in range(700, 1000):  # to write JSON takes a little more of the stack than to read it
        content = whole.replace('"?"', "[" * depth + "]" * depth).encode()
        lines = read(
            Source(
                RawFile(source_file=made.TAU_BENCH_NAME, path=Path(), size_bytes=len(content), modified_ns=0),
                iter([content]),
            )
        )
        faults |= {line.fault.partition(":")[0] for line in lines if line.fault}
    assert "JSON that cannot be read" in faults
    assert "not valid JSON" not in faults


def test_a_simulation_of_tau2_bench_with_a_message_at_no_time_is_rejected_and_the_others_are_kept(
    project: Project,
) -> None:
    simulations = [made.tau2_simulation(f"sim-{place}", place, 1.0) for place in range(3)]
    simulations[1]["messages"][2]["timestamp"] = "soon"
    project.write_bytes("tau2.json", made.dumped(made.TAU2 | {"simulations": simulations}).encode())
    lines, _ = lines_of(project)
    assert [(row["line_number"], row["fault"]) for row in lines if row["fault"]] == [
        (2, 'timestamp of a message must be ISO 8601, not "soon"')
    ]
    assert {row["line_number"] for row in lines if not row["fault"]} == {1, 3}


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), 10**400, "nan"], ids=lambda reward: str(reward)[:10])
def test_a_reward_that_is_no_number_is_neither_success_nor_failure(project: Project, reward: Any) -> None:
    project.write_bytes(made.TAU_BENCH_NAME, made.dumped([made.tau_bench_trial(0, 0, reward)]).encode())
    project.write_bytes(
        "tau2.json", made.dumped(made.TAU2 | {"simulations": [made.tau2_simulation("s", 0, reward)]}).encode()
    )
    lines, _ = lines_of(project)
    assert sorted(row["fault"] for row in lines) == [
        "reward must be a number", "reward_info.reward is missing: the simulation was not evaluated",
    ]  # fmt: skip


def test_damage_never_stops_a_run_and_counts_survive_in_the_warehouse(project: Project) -> None:
    for name, content in WHOLE.items():
        project.write_bytes(name, content.encode()[:-40], modified=HOUR)
    metadata = ingested(project)
    assert (
        project.materialize(HourRange.of(HOUR), only=["ingest"])["raw_logs"]["records of other formats"]
        == (metadata["records of other formats"])
    )
    assert {name for (name,) in project.query("SELECT source_file FROM rejected_records")} >= set(WHOLE) - {"tau.json"}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": NaN, "b": -Infinity, "c": 1e999, "d": 123456789012345678901234567890, "e": 1.7976931348623157e308}',
        '{"a": "\\ud800", "b": "\\ud83d\\ude00", "c": "\\u0000é", "a": -0.0}',
        f'{{"a": {"[" * 250}{"]" * 250}}}',
        '\ufeff{"a": 1} ',
    ],
)
def test_a_line_has_the_values_that_pythons_own_parser_finds(text: str) -> None:
    [(number, found)] = objects(iter([text.encode()]))
    assert (number, repr(found)) == (1, repr(json.loads(text.removeprefix("\ufeff"))))
