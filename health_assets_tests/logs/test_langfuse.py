"""Langfuse's exports, in all of their shapes: what ran, what failed, what it used, and what they do not tell."""

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.hours import HourRange
from health_assets.logs.formats import langfuse, langfuse_records, langfuse_traces
from health_assets_tests.support import langfuse_made as made
from health_assets_tests.support.foreign_lines import Row, lines_of, spans_of
from health_assets_tests.support.langfuse_made import attributes, failed, generation, observation
from health_assets_tests.support.projects import Project, assert_lines_are_conserved

HOUR = datetime(2026, 6, 7, 13, tzinfo=UTC)
ZERO = datetime(2026, 6, 7, 13, 20, tzinfo=UTC)
TRACE_SPAN = langfuse_records.trace_span_id(made.TRACE_ID)
SHAPES = {
    "download": lambda held: made.download(held),
    "download of version 4": lambda held: made.download_without_trace(held),
    "answer of the API": lambda held: made.TRACE | {"observations": held},
    "rows": lambda held: [made.row(item) for item in held],
    "answer with rows": lambda held: {"data": [made.in_version_4(item) for item in held], "meta": {}},
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def written(project: Project, content: Any, *, indent: int | None = 2) -> tuple[list[Row], list[Row], Any]:
    """Read a document; gives its spans, its other lines and what was noted."""
    project.write_bytes("export.json", json.dumps(content, indent=indent).encode())
    lines, notes = lines_of(project)
    spans = [span for row in lines if row["line"].startswith('{"resourceSpans"') for span in spans_of(row, ZERO)]
    return spans, [row for row in lines if not row["line"].startswith('{"resourceSpans"')], notes


def run_of(spans: list[Row]) -> Row:
    """The span that stands for the trace, as the last one that ended says."""
    return [span for span in spans if span["spanId"] == TRACE_SPAN][-1]


def error_of(span: Row) -> str | None:
    return span["status"].get("message", "") if "status" in span else None


TOLD_OF_A_RUN = (
    "agent_id", "session_id", "status", "runtime_s", "actions", "cost_usd", "model", "agent_version", "input_tokens",
    "output_tokens",
)  # fmt: skip


# -- shapes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz"])
@pytest.mark.parametrize("content", [made.download(), made.download_without_trace()], ids=["version 3", "version 4"])
def test_the_download_of_the_web_page_becomes_records_of_all_kinds(project: Project, name: str, content: Row) -> None:
    indent = None if name == "a.jsonl" else 2
    project.write_bytes(name, json.dumps(content, indent=indent).encode())
    project.materialize(HourRange.of(HOUR), only=["ingest"])
    assert_lines_are_conserved(project)
    [run] = project.rows("executions")
    assert {key: run[key] for key in TOLD_OF_A_RUN} == {
        "agent_id": "front-desk", "session_id": "s-9", "status": "success", "runtime_s": 30.0, "actions": ["printer"],
        "cost_usd": 0.04, "model": "gpt-4o", "agent_version": "r-12", "input_tokens": 1000, "output_tokens": 80,
    }  # fmt: skip
    [tool] = project.rows("tool_calls")
    assert (tool["tool"], tool["status"], tool["error"], tool["latency_ms"], tool["execution_id"]) == (
        "printer", "failure", "out of paper", 3000.0, run["execution_id"],
    )  # fmt: skip
    calls = project.rows("model_calls")
    assert [(call["execution_id"], call["model"], call["latency_ms"]) for call in calls] == [
        (run["execution_id"], "gpt-4o", 4000.0),
        (run["execution_id"], "gpt-4o", 19000.0),
    ]
    signals = project.rows("signals")
    assert {row["execution_id"] for row in signals} == {run["execution_id"]}
    assert [(row["signal_coherence"], row["signal_confidence"]) for row in signals] in (
        [(0.5, None), (None, 0.25)],
        [(None, 0.25), (0.5, None)],
    )
    assert project.rows("rejected_records") == []


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_an_export_tells_the_same(project: Project, shape: str) -> None:
    spans, others, _ = written(project, SHAPES[shape](made.OBSERVATIONS))
    assert not [row for row in others if row["fault"]]
    run = run_of(spans)
    assert (run["times"], error_of(run)) == ((0.0, 30.0), None)
    of_trace = made.TRACE["input"] if shape in ("download", "answer of the API") else made.OBSERVATIONS[0]["input"]
    assert run["attributes"].pop("langfuse.trace.input") == of_trace, "of the trace, else of its root"
    assert run["attributes"] == {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "front-desk", "gen_ai.agent.version": "r-12",
        "gen_ai.conversation.id": "s-9", "user.id": "u-4",
    }  # fmt: skip
    below = [(span["spanId"], span["parentSpanId"], span["times"], error_of(span),
              span["attributes"].get("gen_ai.operation.name"), span["attributes"].get("gen_ai.usage.input_tokens"),
              span["attributes"].get("gen_ai.usage.cost")) for span in spans if span["spanId"] != TRACE_SPAN]  # fmt: skip
    root = made.span_id(1)
    assert below == [
        (root, TRACE_SPAN, (0.0, 30.0), None, None, None, None),
        (made.span_id(2), root, (1.0, 5.0), None, "chat", "500", 0.02),
        (made.span_id(3), root, (6.0, 9.0), "out of paper", "execute_tool", None, None),
        (made.span_id(4), root, (10.0, 29.0), None, "chat", "500", 0.02),
    ]


def test_downloads_may_stand_in_lines_and_in_a_list(project: Project) -> None:
    project.write_log("downloads.jsonl", [json.dumps(made.download()), json.dumps(made.download_without_trace())])
    project.write_bytes("downloads.json", json.dumps([made.download()] * 2, indent=2).encode())
    lines, _ = lines_of(project)
    runs = [row["line_number"] for row in lines if row["line"].startswith('{"resourceSpans"')]
    assert (runs, [row["fault"] for row in lines if row["fault"]]) == ([1, 2, 1, 2], [])


@pytest.mark.parametrize("content", [{"observations": []}, {"observations": [{"id": 1}]}, {"trace": 7}])
def test_a_download_of_something_else_is_rejected(project: Project, content: Row) -> None:
    _, [row], _ = written(project, content)
    assert row["fault"] == "neither a trace nor an observation nor a score of Langfuse"


@pytest.mark.parametrize("content", [{"data": [], "meta": {}}, {"id": "s-9", "traces": [], "comments": []}])
def test_an_answer_without_records_holds_nothing(project: Project, content: Row) -> None:
    assert written(project, content) == ([], [], {})


def test_the_download_of_the_log_view_is_rejected_since_it_tells_no_traces(project: Project) -> None:
    kept = ("id", "type", "name", "startTime", "endTime", "input", "output", "metadata")
    view = [{name: item[name] for name in kept} | {"depth": 0} for item in made.OBSERVATIONS]
    spans, others, _ = written(project, view)
    assert (spans, {row["fault"] for row in others}) == ([], {"traceId is missing"})


def test_a_download_that_is_cut_off_is_no_run(project: Project) -> None:
    text = json.dumps(made.download([observation(1, "CHAIN", "desk", (0, 30), **failed())]), indent=2)
    project.write_bytes("export.json", text.encode()[:-200])
    [row], _ = lines_of(project)
    assert row["fault"] == "the document ends early: it is cut off"


def test_the_download_of_a_session_is_counted_since_it_holds_no_observations(project: Project) -> None:
    session = {"id": "s-9", "projectId": made.PROJECT, "bookmarked": False, "traces": [made.TRACE] * 2, "comments": []}
    spans, others, notes = written(project, session)
    assert (spans, notes[langfuse.NO_OBSERVATIONS]) == ([], 2)
    assert [row["fault"] for row in others] == [None] * 6


# -- failures ----------------------------------------------------------------------------------------------------------

SPAN_FAILED = observation(1, "SPAN", "desk", (0, 30), **failed())
ROOT = observation(1, "CHAIN", "desk", (0, 30))
OUTCOMES = {
    "the root failed": ([SPAN_FAILED, generation(2, (1, 5), 1)], "out of paper"),
    "the root failed without a message": ([SPAN_FAILED | failed(None)], ""),
    "the root says error in small letters": ([SPAN_FAILED | {"level": "error"}], "out of paper"),
    "the root was a warning": ([SPAN_FAILED | {"level": "WARNING"}], None),
    "a tool failed and the model went on": (made.OBSERVATIONS, None),
    "a call failed and another one succeeded": ([ROOT, generation(2, (1, 5), 1, **failed()), generation(3, (6, 9), 1)], None),
    "an agent within failed and nothing came after": (
        [observation(1, "AGENT", "Workflow", (0, 30)), observation(2, "AGENT", "desk", (1, 29), 1, **failed()),
         generation(3, (2, 5), 2), observation(4, "TOOL", "printer", (6, 9), 2)],
        "out of paper",
    ),
    "an agent within failed and another took over": (
        [ROOT, observation(2, "AGENT", "first", (1, 9), 1, **failed()), observation(3, "AGENT", "second", (10, 29), 1)],
        None,
    ),
    "the only call failed": ([generation(1, (1, 5), **failed())], "out of paper"),
    "one of several roots failed": ([SPAN_FAILED, observation(2, "SPAN", "bye", (31, 40))], "out of paper"),
    "a tool among several roots failed": (
        [generation(1, (0, 5)), observation(2, "TOOL", "printer", (6, 9), **failed()), generation(3, (10, 29))],
        None,
    ),
    "a tool among several roots failed last": (
        [generation(1, (0, 5)), observation(2, "TOOL", "printer", (6, 9), **failed())],
        "out of paper",
    ),
    "an event at the root tells of a failure": ([ROOT, observation(2, "EVENT", "crash", (3, None), **failed())], "out of paper"),
    "what is above ran elsewhere": ([observation(1, "SPAN", "desk", (0, 30), 77, isAppRoot=True, **failed())], "out of paper"),
    "OpenTelemetry's own error type": (
        [ROOT | attributes(error__type="Timeout"), generation(2, (1, 5), 1)],
        "Timeout",
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", OUTCOMES)
def test_a_failure_of_the_run_comes_out_and_one_that_the_agent_recovers_from_does_not(
    project: Project, case: str, shape: str
) -> None:
    held, error = OUTCOMES[case]
    spans, others, _ = written(project, SHAPES[shape](held))
    assert not [row for row in others if row["fault"]]
    assert error_of(run_of(spans)) == error


@pytest.mark.parametrize("case", OUTCOMES)
def test_rows_tell_the_same_in_whatever_order_they_come(project: Project, case: str) -> None:
    held, error = OUTCOMES[case]
    for seed in range(6):
        rows = random.Random(seed).sample(held, len(held))
        spans, _, _ = written(project, [made.row(item) for item in rows])
        run = max((span for span in spans if span["spanId"] == TRACE_SPAN), key=lambda span: span["times"][1])
        assert error_of(run_of(spans)) == error
        assert run_of(spans)["times"][1] == run["times"][1]


def test_a_trace_without_a_run_above_it_fails_with_a_part_of_which_the_upper_part_is_missing(project: Project) -> None:
    held = [observation(1, "SPAN", "desk", (0, 30), 77, **failed()), generation(2, (1, 5), 1)]
    spans, _, _ = written(project, made.download(held))
    assert error_of(run_of(spans)) == "out of paper"
    assert [span["parentSpanId"] for span in spans[1:]] == [TRACE_SPAN, made.span_id(1)]


def test_a_last_call_that_failed_under_a_run_that_says_nothing_is_told(project: Project) -> None:
    spans, _, notes = written(project, made.download([ROOT, generation(2, (1, 5), 1, **failed())]))
    assert error_of(run_of(spans)) is None
    assert notes[langfuse_traces.LAST_CALL_FAILED] == 1


# -- what is not known -------------------------------------------------------------------------------------------------


def reasons_of(others: list[Row]) -> list[str]:
    return [row["fault"] for row in others if row["fault"]]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_that_does_not_say_whether_it_failed_is_no_success(project: Project, shape: str) -> None:
    root = {name: value for name, value in ROOT.items() if name != "level"}
    spans, others, _ = written(project, SHAPES[shape]([root]))
    assert not [span for span in spans if span["spanId"] == TRACE_SPAN]
    assert reasons_of(others) == ["level is missing, so whether it failed is not known"]


def test_a_run_that_never_ended_is_no_success_and_counted_as_open(project: Project) -> None:
    held = [observation(1, "SPAN", "desk", (0, None)), generation(2, (1, 5), 1)]
    for content, expected in (
        (made.download(held, output=None), {langfuse_traces.OPEN: 1, langfuse_traces.OPEN_TRACE: 1}),
        ([made.row(item) for item in held], {langfuse_traces.OPEN: 1}),
    ):
        spans, others, notes = written(project, content)
        assert [span["spanId"] for span in spans] == [made.span_id(1), made.span_id(2)]
        assert reasons_of(others) == []
        assert {note: notes[note] for note in notes if "open" in note} == expected


def test_a_call_that_never_ended_is_counted_as_open_and_what_is_below_it_keeps_its_place(project: Project) -> None:
    held = [ROOT, generation(2, (1, None), 1), observation(3, "TOOL", "printer", (6, 9), 2)]
    for shape in ("download", "rows"):
        spans, others, notes = written(project, SHAPES[shape](held))
        assert (reasons_of(others), notes[langfuse_traces.OPEN]) == ([], 1)
        below = [(span["spanId"], span["parentSpanId"], span["attributes"].get("gen_ai.operation.name"))
                 for span in spans if span["spanId"] != TRACE_SPAN]  # fmt: skip
        assert below[1:] == [
            (made.span_id(2), made.span_id(1), None),
            (made.span_id(3), made.span_id(2), "execute_tool"),
        ]


def test_an_observation_that_is_sent_open_and_then_finished_is_one_call_and_no_bad_line(project: Project) -> None:
    agent = {"type": "AGENT", **attributes(gen_ai__agent__name="helpdesk")}
    opened = [observation(1, "AGENT", "helpdesk", (0, None), **agent), generation(2, (1, None), 1)]
    ended = [observation(1, "AGENT", "helpdesk", (0, 5), **agent), generation(2, (1, 4), 1)]
    for name, rows in {"open": opened, "ended": [*opened, *ended, ended[1]]}.items():
        content = "\n".join(json.dumps(made.row(item)) for item in rows)
        project.write_bytes("export.jsonl", content.encode(), modified=HOUR)
        report = project.ingest(HourRange.of(HOUR))
        assert_lines_are_conserved(project)
        assert project.query("SELECT count(*) FROM rejected_records") == [(0,)]
        notes = dict(project.query("SELECT note, records FROM raw_file_notes"))
        if name == "open":
            assert project.query("SELECT count(*) FROM model_calls") == [(0,)]
            assert notes[langfuse_traces.OPEN] == 2
            assert f"2 × {langfuse_traces.OPEN}" in report.notices["export.jsonl"]
        else:
            assert project.query("SELECT input_tokens, count(*) FROM model_calls GROUP BY ALL") == [(500, 1)]
            assert project.query("SELECT agent_id, status, count(*) FROM executions GROUP BY ALL") == [
                ("front-desk", "success", 1)
            ]
            assert langfuse_traces.OPEN not in notes
            assert "export.jsonl" not in report.notices


@pytest.mark.parametrize("observations", [[], ["o-1", "o-2"], None])
def test_a_trace_of_a_list_which_tells_no_failures_is_counted_and_no_success(
    project: Project, observations: list[str] | None
) -> None:
    trace = made.TRACE | {"observations": observations, "scores": ["sc-1"]}
    spans, others, notes = written(project, {"data": [trace], "meta": {"page": 1}})
    assert (spans, others, notes) == ([], [], {langfuse.NO_OBSERVATIONS: 1, langfuse.ONLY_IDS: 1})


def test_the_row_that_stands_for_a_trace_is_counted_and_its_scores_are_those_of_the_run(project: Project) -> None:
    upper = observation(1, "SPAN", "front-desk", (0, None), id=f"t-{made.TRACE_ID}")
    root = ROOT | {"parentObservationId": upper["id"]}
    score = made.SCORES[0] | {"observationId": upper["id"]}
    spans, [signals], notes = written(project, [made.row(upper), made.row(root), score])
    assert run_of(spans)["times"] == (0.0, 30.0)
    assert json.loads(signals["line"])["execution_id"] == f"{made.TRACE_ID}:{TRACE_SPAN}"
    assert notes[langfuse.NO_OBSERVATIONS] == 1


def test_scores_that_stand_in_the_row_of_a_trace_are_counted(project: Project) -> None:
    trace = {key: value for key, value in made.TRACE.items() if key not in ("latency", "corrections")}
    row = trace | {"scores": {"coherence": [0.5], "toxicity": [0.1]}, "coherence": [0.5], "toxicity": [0.1]}
    _, others, notes = written(project, [row | {"comments": []}])
    assert (others, notes) == ([], {langfuse.NO_OBSERVATIONS: 1, langfuse.NO_TIME_OF_SCORE: 1})


# -- agents, tools, versions -------------------------------------------------------------------------------------------


def test_a_trace_that_nobody_named_is_a_wrapper_of_the_agents_that_are_told(project: Project) -> None:
    held = [
        observation(1, "AGENT", "Workflow", (0, 30)),
        observation(2, "AGENT", "span 7", (1, 12), 1, **attributes(agent__name="desk")),
        observation(3, "AGENT", "span 8", (13, 29), 1, **attributes(gen_ai__agent__name="printer")),
    ]
    for content in (made.download(held, name="Workflow"), [made.row(item, "Workflow") for item in held]):
        spans, _, _ = written(project, content)
        named = {span["spanId"]: span["attributes"].get("gen_ai.agent.name") for span in spans}
        assert named == {
            TRACE_SPAN: None,
            made.span_id(1): None,
            made.span_id(2): "desk",
            made.span_id(3): "printer",
        }
        assert run_of(spans)["name"] == "Workflow"
    content = made.download(held, name="Workflow")
    assert written(project, content)[2]["Langfuse score of a trace with several agents, which does not tell whose"] == 2
    _, signals, _ = written(project, made.download(held[:2], name="Workflow"))
    execution_ids = {json.loads(row["line"])["execution_id"] for row in signals}
    assert execution_ids == {f"{made.TRACE_ID}:{made.span_id(2)}"}


@pytest.mark.parametrize("shape", ["download", "rows"])
def test_agents_below_a_wrapper_become_executions_which_have_its_session_version_and_failure(
    project: Project, shape: str
) -> None:
    held = [
        observation(1, "CHAIN", "Workflow", (0, 30), **failed("the printer is gone")),
        observation(2, "AGENT", "span 7", (1, 12), 1, **attributes(agent__name="desk")),
        generation(3, (2, 5), 2, model=None, **failed("no answer")),
        generation(4, (6, 9), 2),
    ]
    content = (
        made.download(held, name="Workflow") if shape == "download" else [made.row(one, "Workflow") for one in held]
    )
    project.write_bytes("export.json", json.dumps(content).encode())
    project.materialize(HourRange.of(HOUR), only=["ingest"])
    [run] = project.rows("executions")
    assert {key: run[key] for key in (*TOLD_OF_A_RUN, "error")} == {
        "agent_id": "desk", "session_id": "s-9", "status": "failure", "error": "the printer is gone", "runtime_s": 11.0,
        "actions": None, "cost_usd": 0.04, "model": "gpt-4o", "agent_version": "r-12", "input_tokens": 1000,
        "output_tokens": 80,
    }  # fmt: skip
    calls = sorted((call["model"], call["status"], call["agent_id"]) for call in project.rows("model_calls"))
    assert calls == [("gpt-4o", "success", "desk"), ("unknown", "failure", "desk")]


NAMES = [
    (attributes(gen_ai__agent__name="desk"), "desk"),
    (attributes(gen_ai__agent__id="ag-1"), "ag-1"),
    (attributes(metadata='{"lc_agent_name": "desk"}'), "desk"),
    ({"metadata": '{"lc_agent_name": "desk", "attributes": {}}'}, "desk"),
    ({"metadata": {"attributes": '{"agent.name": "desk"}'}}, "desk"),
    ({"metadata": {"attributes.agent.name": "desk"}}, "desk"),
    (attributes(ai__telemetry__functionId="desk-7"), "desk-7"),
    ({"type": "AGENT"} | attributes(graph__node__id="desk-8"), "desk-8"),
    ({"type": "SPAN"} | attributes(traceloop__span__kind="agent", traceloop__entity__name="desk-9"), "desk-9"),
    (attributes(graph__node__id="node"), None),
    ({"metadata": "not an object"}, None),
    ({"metadata": "{broken"}, None),
    ({"metadata": None}, None),
    ({"metadata": {"attributes": [1], "scope": 7}}, None),
]


@pytest.mark.parametrize(("fields", "name"), NAMES)
def test_a_root_that_tells_the_agents_name_names_a_trace_that_nobody_named(
    project: Project, fields: Row, name: str | None
) -> None:
    spans, _, _ = written(project, made.download([ROOT | fields], name="desk"))
    assert run_of(spans)["attributes"].get("gen_ai.agent.name") == name


@pytest.mark.parametrize(
    ("scope", "own_name", "name"),
    [
        ("openinference.instrumentation.openai_agents", "desk", "desk"),
        ("openinference.instrumentation.google_adk", "agent_run [desk]", "desk"),
        ("gcp.vertex.agent", "invoke_agent desk", "desk"),
        ("gcp.vertex.agent", "call_llm", None),
        ("langfuse-sdk", "desk", None),
    ],
)
def test_instrumentations_that_tell_the_agent_in_the_name_alone_are_understood(
    project: Project, scope: str, own_name: str, name: str | None
) -> None:
    metadata = {"metadata": json.dumps({"scope": {"name": scope}})}
    held = [
        observation(1, "AGENT", "Workflow", (0, 30), **metadata),
        observation(2, "AGENT", own_name, (1, 29), 1, **metadata),
    ]
    spans, _, _ = written(project, made.download(held, name="Workflow"))
    assert [span["attributes"].get("gen_ai.agent.name") for span in spans] == [None, None, name]


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({}, "ai.generateText"),
        ({"service.name": "unknown_service:node"}, "ai.generateText"),
        ({"service.name": "shop"}, "shop"),
    ],
)
def test_a_trace_that_is_called_like_an_operation_is_its_services(project: Project, told: Row, name: str) -> None:
    metadata = json.dumps({"resourceAttributes": told})
    held = [generation(1, (0, 30), metadata=metadata) | {"name": "ai.generateText"}]
    for content in (made.download(held, name="ai.generateText"), [made.row(held[0], "ai.generateText")]):
        spans, _, _ = written(project, content)
        assert run_of(spans)["attributes"]["gen_ai.agent.name"] == name


KINDS = [
    ("SPAN", {"traceloop__span__kind": "tool"}, "execute_tool", None),
    ("SPAN", {"ai__operationId": "ai.toolCall", "ai__toolCall__name": "lookup"}, "execute_tool", "lookup"),
    ("SPAN", {"openinference__span__kind": "TOOL", "tool__name": "lookup"}, "execute_tool", "lookup"),
    ("SPAN", {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "lookup"}, "execute_tool", "lookup"),
    ("SPAN", {"openinference__span__kind": "CHAIN"}, None, None),
    ("SPAN", {"gen_ai__operation__name": "invoke_agent"}, "invoke_agent", None),
    ("TOOL", {"gen_ai__tool__name": "lookup"}, "execute_tool", "lookup"),
    ("TOOL", {}, "execute_tool", None),
    ("AGENT", {"gen_ai__operation__name": "create_agent"}, None, None),
    ("AGENT", {}, "invoke_agent", None),
    ("RETRIEVER", {}, None, None),
]


@pytest.mark.parametrize(("kind", "told", "operation", "tool"), KINDS)
def test_an_observation_is_what_its_type_or_else_its_instrumentation_says(
    project: Project, kind: str, told: dict[str, str], operation: str | None, tool: str | None
) -> None:
    item = observation(2, kind, "step", (1, 9), 1, **attributes(**told))
    for shape in ("download", "rows"):
        spans, _, notes = written(project, SHAPES[shape]([ROOT, item]))
        [span] = [span for span in spans if span["spanId"] == made.span_id(2)]
        assert span["attributes"].get("gen_ai.operation.name") == operation
        assert span["attributes"].get("gen_ai.tool.name") == tool
        counted = {f"Langfuse {name}, which is no agent, model call or tool"
                   for name in ("CHAIN", *([kind] if operation is None else []))}  # fmt: skip
        assert set(notes) - {"Langfuse score that is none of our signals"} == counted


@pytest.mark.parametrize(
    ("of_trace", "of_root", "version"),
    [
        ({"version": "v3", "release": "r-1"}, {}, "v3"),
        ({"version": None, "release": "r-1"}, {"version": "v2"}, "r-1"),
        ({"version": None, "release": None}, {"version": "v2"}, "v2"),
        ({"version": None, "release": None}, {"metadata": '{"resourceAttributes": {"service.version": "1.4"}}'}, "1.4"),
        ({"version": None, "release": None}, {}, None),
    ],
)
def test_the_agents_version_is_that_of_the_trace_or_else_of_its_root(
    project: Project, of_trace: Row, of_root: Row, version: str | None
) -> None:
    spans, _, _ = written(project, made.download([ROOT | of_root], **of_trace))
    assert run_of(spans)["attributes"].get("gen_ai.agent.version") == version


# -- models, tokens, cost ----------------------------------------------------------------------------------------------


def call_of(project: Project, **fields: Any) -> tuple[Row, Any]:
    spans, _, notes = written(project, made.download([ROOT, generation(2, (1, 5), 1, **fields)]))
    return spans[-1], notes


USED = [
    ({"usageDetails": {"input": 60, "input_cached_tokens": 900, "output": 30, "output_reasoning_tokens": 70, "total": 1060}}, (960, 100)),
    ({"usageDetails": {"input": "60", "output": "30", "total": "90"}}, (60, 30)),
    ({"usageDetails": {"input": 60, "total": 60}}, (60, None)),
    ({"usageDetails": {"prompt_tokens": 60, "completion_tokens": 30}}, (60, 30)),
    ({"usageDetails": {}, "inputUsage": 60, "outputUsage": 0}, (60, None)),
    ({"usageDetails": {}}, (None, None)),
    ({"usageDetails": {"input": 0, "output": 0, "total": 0}}, (None, None)),
    ({"usageDetails": None, "usage": {"input": 13, "output": 353, "unit": "TOKENS"}}, (13, 353)),
    ({"usageDetails": None, "usage": {"input": 13, "output": 353, "unit": "CHARACTERS"}}, (None, None)),
    ({"usageDetails": None, "promptTokens": 13, "completionTokens": 353}, (13, 353)),
    ({"usageDetails": None, "promptTokens": 0, "completionTokens": 0}, (None, None)),
    ({"usageDetails": {"input": -1, "output": "many", "total": float("inf")}}, (None, None)),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), USED)
def test_tokens_are_those_of_langfuses_own_page_and_0_is_not_known(
    project: Project, fields: Row, expected: tuple[int | None, int | None]
) -> None:
    call, notes = call_of(project, **fields)
    found = tuple(call["attributes"].get(f"gen_ai.usage.{name}_tokens") for name in ("input", "output"))
    assert found == tuple(None if count is None else str(count) for count in expected)
    is_told = "Langfuse usage in another unit than tokens" in notes
    assert is_told == (fields.get("usage", {}).get("unit") == "CHARACTERS")


KINDS_OF_TOKENS = [
    ({"input": 60, "input_cached_tokens": 900, "output": 30, "output_reasoning_tokens": 70}, ("900", None, "70")),
    ({"input": 2, "cache_read_input_tokens": 500, "cache_creation_input_tokens": 40, "output": 9}, ("500", "40", None)),
    (
        {"input": 2, "input_cache_read": 5, "input_cache_creation": 0, "output": 9, "output_reasoning": 4},
        ("5", "0", "4"),
    ),
    ({"input": 60, "output": 30}, (None, None, None)),
]


@pytest.mark.parametrize(("details", "expected"), KINDS_OF_TOKENS)
def test_cached_tokens_and_those_of_reasoning_are_told_under_the_names_that_langfuse_and_its_sdks_write(
    project: Project, details: Row, expected: tuple[str | None, ...]
) -> None:
    call, _ = call_of(project, usageDetails=details)
    names = "cache_read.input", "cache_creation.input", "reasoning.output"
    assert tuple(call["attributes"].get(f"gen_ai.usage.{name}_tokens") for name in names) == expected


COSTS = [
    ({"costDetails": {"input": 0.01, "output": 0.02, "total": 0.03}}, 0.03),
    ({"costDetails": {"input": "0.01", "output": "0.02"}}, 0.03),
    ({"costDetails": {"total": "0.030000000000"}}, 0.03),
    ({"costDetails": {"total": 0}}, 0),
    ({"costDetails": {}, "totalCost": 0}, None),
    ({"costDetails": {}, "totalCost": "0.5"}, 0.5),
    ({"costDetails": None, "calculatedTotalCost": 0.25}, 0.25),
]


@pytest.mark.parametrize(("fields", "expected"), COSTS)
def test_a_cost_is_what_is_told_and_0_beside_nothing_is_not_known(
    project: Project, fields: Row, expected: float | None
) -> None:
    call, _ = call_of(project, **fields)
    assert call["attributes"].get("gen_ai.usage.cost") == expected


MODELS = [
    ({"model": "gpt-4o"}, "gpt-4o"),
    ({"model": "", "providedModelName": "m-1"}, "m-1"),
    ({"model": None} | attributes(gen_ai__request__model="m-2"), "m-2"),
    ({"model": None} | attributes(llm__model_name="m-3"), "m-3"),
    ({"model": "m-4-dated"} | attributes(gen_ai__request__model="m-4", gen_ai__response__model="m-4-dated"), "m-4"),
    ({"model": "m-5-dated"} | attributes(llm__invocation_parameters='{"model": "m-5"}'), "m-5"),
]


@pytest.mark.parametrize(("fields", "model"), MODELS)
def test_the_model_of_a_call_is_found_under_all_of_its_names(project: Project, fields: Row, model: str) -> None:
    call, _ = call_of(project, **fields)
    assert call["attributes"]["gen_ai.request.model"] == model


def test_the_model_that_answered_is_what_the_instrumentation_told_of_it(project: Project) -> None:
    told = attributes(gen_ai__request__model="m", gen_ai__response__model="m-dated")
    assert call_of(project, model="m-dated", **told)[0]["attributes"]["gen_ai.response.model"] == "m-dated"


def test_a_level_that_says_error_of_waiting_for_a_person_is_no_failure(project: Project) -> None:
    waiting = {"level": "ERROR", "statusMessage": "GraphInterrupt((Interrupt(value='approve?'),))"}
    assert "status" not in call_of(project, **waiting)[0]


# -- scores that are no signals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"value": 4}, {"value": 4.0}),
        ({"value": "4.5"}, {"value": 4.5}),
        ({"dataType": "BOOLEAN", "value": 1, "stringValue": "True"}, {"value": 1.0, "label": "True"}),
        ({"dataType": "BOOLEAN", "value": False}, {"value": 0.0}),
        ({"dataType": "CATEGORICAL", "value": 2, "stringValue": "helpful"}, {"label": "helpful"}),
        ({"dataType": "CATEGORICAL", "value": "helpful"}, {"label": "helpful"}),
        ({"name": "confidence", "dataType": "CATEGORICAL", "value": "sure"}, {"label": "sure"}),
    ],
)
def test_a_score_that_is_no_signal_is_the_result_of_an_evaluator(project: Project, fields: Row, told: Row) -> None:
    score = made.SCORES[2] | {"comment": "a person wrote this"} | fields
    _, [row], notes = written(project, [score])
    record = json.loads(row["line"])
    assert {key: record[key] for key in ("value", "label") if key in record} == told
    assert (record["type"], record["name"]) == ("evaluation", score["name"])
    assert record["execution_id"] == f"{made.TRACE_ID}:{TRACE_SPAN}"
    assert "comment" not in record
    assert not notes


def test_a_score_of_a_session_names_it_and_one_of_a_dataset_run_is_counted(project: Project) -> None:
    of_session = made.SCORES[2] | {"traceId": None, "sessionId": "s-9"}
    of_run = made.SCORES[2] | {"traceId": None, "datasetRunId": "r-1"}
    _, [row], notes = written(project, [of_session, of_run])
    record = json.loads(row["line"])
    assert (record["session_id"], "execution_id" in record) == ("s-9", False)
    assert notes == {"Langfuse score of a session or a dataset run, not of a trace": 1}


@pytest.mark.parametrize("kind", ["TEXT", "CORRECTION"])
def test_what_a_person_wrote_as_a_score_is_counted_and_not_kept(project: Project, kind: str) -> None:
    score = made.SCORES[2] | {"dataType": kind, "value": None, "stringValue": "a person wrote this"}
    _, rows, notes = written(project, [score])
    assert (rows, notes) == ([], {"Langfuse score that is neither a number nor a category": 1})
