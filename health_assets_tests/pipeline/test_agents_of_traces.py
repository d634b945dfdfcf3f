"""Whose runs a trace tells: agents with and without a name, what wraps them, their tools, tokens and failures."""

import json
from collections.abc import Generator

import pytest

from health_assets.core.hours import HOUR
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.span_summary import summarize_spans
from health_assets.scoring.usage import AMOUNTS
from health_assets_tests.logs.test_opentelemetry import AT, FIRST, SECOND, id_of
from health_assets_tests.support.log_histories import Histories, LogFolder, Outcomes, Steps
from health_assets_tests.support.projects import REPOSITORY, Project, Row, forked_command, hours_from
from health_assets_tests.support.traces_made import Span, agent, chat, otlp_line, span, tool


def test_what_became_of_spans_is_counted_by_reason(project: Project) -> None:
    spans = [
        agent(1, 1, AT, gen_ai__agent__name=""), agent(1, 2, AT, 1), agent(1, 3, AT, 2), tool(1, 4, AT, 3),
        chat(1, 5, AT, 3), chat(1, 6, AT, 5), chat(2, 1, AT, error__type="Timeout"), chat(2, 2, AT, gen_ai__response__model=""),
        span(2, 3, AT), span(2, 4, AT, gen_ai__operation__name="embeddings"),
    ]  # fmt: skip
    project.write_log("a.jsonl", [otlp_line(*spans), otlp_line(spans[0])])
    project.ingest(FIRST)
    with project.warehouse.read() as session:
        reading = summarize_spans(session, FIRST)
        assert summarize_spans(session, hours_from(FIRST.start + 5 * HOUR, 1)) is None
    assert str(reading) == "11 spans became 1 execution, 3 model calls and 1 tool call"
    assert reading.unused == {
        "agent span inside another agent's run": 1,
        "agent span without a name, around named ones or inside another agent's run": 1,
        "chat span around another one, which is the call": 1,
        "span of the kind embeddings, which is no agent, model call or tool": 1,
        "span that came more than once": 1,
        "span that states no kind, which is no agent, model call or tool": 1,
    }
    assert sum(reading.unused.values()) + 1 + 3 + 1 == reading.spans
    assert reading.warnings == [
        "2 model calls outside any agent's run, 1 of them failed",
        "1 model call of the model unknown, since no attribute names it",
    ]


def test_a_run_over_model_calls_alone_says_that_there_is_no_agent_span(project: Project) -> None:
    project.write_log("a.jsonl", [otlp_line(*(chat(number, 1, AT) for number in range(1, 7)))])
    arguments = ["materialize", "--raw", str(project.raw), "--system", "agent_health_model"]
    done = forked_command(*arguments, folder=project.folder)
    assert done.returncode == 0, done.stderr
    told = (
        "6 chat spans and no agent span: see docs/opentelemetry.md#spans-of-model-calls-only, "
        "or name their services under services: in the targets file"
    )
    assert told in done.stdout
    assert told in forked_command("report", folder=project.folder).stdout
    heading = "## Spans of model calls only"
    assert heading in (REPOSITORY / "docs" / "opentelemetry.md").read_text(encoding="utf-8")


# -- agents with and without a name ---------------------------------------------------------------------------------------

UNNAMED = {"gen_ai__agent__name": ""}
FAILED = {"status": {"code": 2, "message": "broke"}}


TABLES = ("executions", "model_calls", "tool_calls")
HISTORIES = Histories(FIRST)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return HISTORIES.run(tmp_path_factory.mktemp("histories"))


def test_after_each_step_all_tables_are_those_of_a_clean_rebuild(outcomes: Outcomes) -> None:
    assert outcomes.differences == []


def trace(log: LogFolder, number: int) -> int:
    """The number of a trace that no other history has."""
    return 10 * (int(log.name) + 1) + number


def ingested(log: LogFolder, *lines: str) -> Generator[None, IngestReport, dict[str, list[Row]]]:
    """The rows of these lines, once they are loaded."""
    log.write("traces.jsonl", "".join(f"{one}\n" for one in lines).encode(), modified=AT)
    yield
    return {name: log.rows(name) for name in TABLES}


def runs(log: LogFolder, *spans: Span) -> Generator[None, IngestReport, dict[str, tuple]]:
    rows = (yield from ingested(log, otlp_line(*spans)))["executions"]
    return {row["span_id"][-1]: (row["agent_id"], row["status"], row["error"]) for row in rows}


@HISTORIES.test
def test_an_unnamed_agent_span_around_named_ones_is_passed_through(log: LogFolder) -> Steps:
    wrapper = agent(trace(log, 1), 1, AT, name="Agent workflow", session__id="s", gen_ai__agent__version="2", **UNNAMED)
    inner = agent(trace(log, 1), 2, AT, 1, **UNNAMED)
    spans = [
        wrapper,
        inner,
        agent(trace(log, 1), 3, AT, 2),
        agent(trace(log, 1), 4, AT, 3),
        agent(trace(log, 1), 5, AT, 1, session__id="own"),
    ]
    rows = {row["span_id"][-1]: row for row in (yield from ingested(log, otlp_line(*spans)))["executions"]}
    found = {name: (row["agent_id"], row["session_id"], row["agent_version"]) for name, row in rows.items()}
    assert found == {"3": ("planner", "s", "2"), "5": ("planner", "own", "2")}


@HISTORIES.test
def test_an_unnamed_agent_span_without_named_ones_below_is_an_execution_also_beside_named_ones(
    log: LogFolder,
) -> Steps:
    spans = [
        agent(trace(log, 1), 1, AT, **UNNAMED),
        agent(trace(log, 1), 2, AT, 1),
        agent(trace(log, 1), 3, AT, 1, name="helper", **UNNAMED),
    ]
    assert (yield from runs(log, *spans)) == {"2": ("planner", "success", None), "3": ("helper", "success", None)}


@HISTORIES.test
def test_an_error_of_a_wrapper_that_no_run_below_it_has_is_theirs(log: LogFolder) -> Steps:
    """A tool's or a model's own error below does not tell that the run failed, so the wrapper's counts."""
    wrapper = agent(trace(log, 1), 1, AT, **UNNAMED, **FAILED)
    spans = [
        wrapper,
        agent(trace(log, 1), 2, AT, 1),
        tool(trace(log, 1), 3, AT, 2, **FAILED),
        agent(trace(log, 1), 4, AT, 1),
    ]
    assert (yield from runs(log, *spans)) == dict.fromkeys("24", ("planner", "failure", "broke"))


@HISTORIES.test
def test_an_error_of_a_wrapper_that_a_run_below_it_has_is_that_runs_alone(log: LogFolder) -> Steps:
    wrapper = agent(trace(log, 1), 1, AT, **UNNAMED, **FAILED)
    inner = agent(trace(log, 1), 2, AT, 1, **UNNAMED, status={"code": 2, "message": "again"})
    spans = [wrapper, agent(trace(log, 1), 3, AT, 1, status={"code": 2, "message": "own"}), agent(trace(log, 1), 4, AT, 1), inner,
             agent(trace(log, 1), 5, AT, 2)]  # fmt: skip
    assert (yield from runs(log, *spans)) == {
        "3": ("planner", "failure", "own"), "4": ("planner", "success", None), "5": ("planner", "failure", "again"),
    }  # fmt: skip


@HISTORIES.test
def test_a_wrapper_whose_named_span_comes_late_stops_being_an_execution(log: LogFolder) -> Steps:
    log.write("a.jsonl", otlp_line(agent(trace(log, 1), 1, AT, name="Agent workflow", **UNNAMED)).encode())
    yield
    assert [row["agent_id"] for row in log.rows("executions")] == ["Agent workflow"]
    log.write("b.jsonl", otlp_line(agent(trace(log, 1), 2, AT, 1)).encode())
    yield
    assert [row["agent_id"] for row in log.rows("executions")] == ["planner"]


@HISTORIES.test
def test_a_failed_tool_is_a_failed_call_and_no_failed_run(log: LogFolder) -> Steps:
    tables = yield from ingested(
        log, otlp_line(agent(trace(log, 1), 1, AT), tool(trace(log, 1), 2, AT, 1, **FAILED), tool(trace(log, 2), 1, AT))
    )
    assert [row["status"] for row in tables["executions"]] == ["success"]
    calls = {row["call_id"]: row for row in tables["tool_calls"]}
    inside, outside = calls[id_of(trace(log, 1), 2)], calls[id_of(trace(log, 2), 1)]
    assert (inside["tool"], inside["status"], inside["error"]) == ("search", "failure", "broke")
    assert (inside["agent_id"], inside["execution_id"], inside["latency_ms"]) == (
        "planner",
        id_of(trace(log, 1), 1),
        1000.0,
    )
    assert (outside["status"], outside["agent_id"], outside["execution_id"]) == ("success", None, None)


@HISTORIES.test
def test_a_call_that_a_tool_of_a_call_makes_is_a_call_of_its_own(log: LogFolder) -> Steps:
    spans = [
        agent(trace(log, 1), 1, AT),
        chat(trace(log, 1), 2, AT, 1),
        tool(trace(log, 1), 3, AT, 2),
        chat(trace(log, 1), 4, AT, 3),
        chat(trace(log, 1), 5, AT, 4),
    ]
    calls = (yield from ingested(log, otlp_line(*spans)))["model_calls"]
    assert {row["call_id"] for row in calls} == {id_of(trace(log, 1), 2), id_of(trace(log, 1), 5)}


@HISTORIES.test
def test_two_spans_of_one_tool_in_one_another_are_one_call_and_fail_if_either_does(log: LogFolder) -> Steps:
    spans = [agent(trace(log, 1), 1, AT), tool(trace(log, 1), 2, AT, 1), tool(trace(log, 1), 3, AT, 2, **FAILED), tool(trace(log, 1), 4, AT, 1, **FAILED), tool(trace(log, 1), 5, AT, 4),
             tool(trace(log, 1), 6, AT, 5, gen_ai__tool__name="other")]  # fmt: skip
    tables = yield from ingested(log, otlp_line(*spans))
    assert {row["call_id"]: (row["tool"], row["status"]) for row in tables["tool_calls"]} == {
        id_of(trace(log, 1), 3): ("search", "failure"), id_of(trace(log, 1), 5): ("search", "failure"), id_of(trace(log, 1), 6): ("other", "success"),
    }  # fmt: skip
    assert [sorted(row["actions"]) for row in tables["executions"]] == [["other", "search", "search"]]


@HISTORIES.test
def test_what_only_the_span_around_a_call_tells_is_the_calls(log: LogFolder) -> Steps:
    """A retry that failed for good, and a client that tells less than the library around it."""
    silent = {"gen_ai__response__model": ""}
    told = {"gen_ai__response__model": "gpt-9", "gen_ai__usage__input_tokens": 9, "gen_ai__usage__cost": 0.5}
    spans = [
        agent(trace(log, 1), 1, AT), chat(trace(log, 1), 2, AT, 1, **FAILED), chat(trace(log, 1), 3, AT - SECOND, 2), chat(trace(log, 1), 4, AT, 2),
        chat(trace(log, 2), 1, AT, **told), chat(trace(log, 2), 2, AT, 1, **silent), chat(trace(log, 2), 3, AT, 2, **silent),
    ]  # fmt: skip
    calls = {row["call_id"]: row for row in (yield from ingested(log, otlp_line(*spans)))["model_calls"]}
    assert {name: (row["status"], row["error"]) for name, row in calls.items()} == {
        id_of(trace(log, 1), 3): ("success", None), id_of(trace(log, 1), 4): ("failure", "broke"), id_of(trace(log, 2), 3): ("success", None),
    }  # fmt: skip
    inner = calls[id_of(trace(log, 2), 3)]
    assert (inner["model"], inner["input_tokens"], inner["output_tokens"], inner["cost_usd"]) == ("gpt-9", 9, None, 0.5)


@HISTORIES.test
def test_amounts_beyond_all_reason_neither_stop_a_run_nor_vanish(log: LogFolder) -> Steps:
    huge = {"gen_ai__usage__input_tokens": 2**63 - 1, "gen_ai__usage__cost": 1e308}
    spans = [agent(trace(log, 1), 1, AT), *(chat(trace(log, 1), number, AT, 1, **huge) for number in (2, 3))]
    [row] = (yield from ingested(log, otlp_line(*spans)))["executions"]
    assert (row["input_tokens"], row["cost_usd"]) == (2 * 10**12, 2e9)


@HISTORIES.test
@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")], ids=["with spaces", "without"])
def test_a_failure_that_langchain_caught_is_a_failed_tool_call(log: LogFolder, separators: tuple[str, str]) -> Steps:
    result = json.dumps({"kwargs": {"content": "no such city", "status": "error"}}, separators=separators)
    spans = [
        agent(trace(log, 1), 1, AT),
        tool(trace(log, 1), 2, AT, 1, output__value=result),
        tool(trace(log, 1), 3, AT, 1, output__value="error"),
    ]
    calls = {row["call_id"]: row for row in (yield from ingested(log, otlp_line(*spans)))["tool_calls"]}
    assert (calls[id_of(trace(log, 1), 2)]["status"], calls[id_of(trace(log, 1), 2)]["error"]) == (
        "failure",
        "no such city",
    )
    assert calls[id_of(trace(log, 1), 3)]["status"] == "success"


@HISTORIES.test
def test_a_method_is_cut_off_an_agents_name_in_openinference_alone(log: LogFolder) -> Steps:
    spans = [
        span(trace(log, 1), 1, AT, name="writer.run", openinference__span__kind="AGENT"),
        agent(trace(log, 2), 1, AT, name="nightly.run", **UNNAMED),
        span(trace(log, 3), 1, AT, name="browser.run", openinference__span__kind="TOOL"),
    ]
    tables = yield from ingested(log, otlp_line(*spans))
    assert {row["agent_id"] for row in tables["executions"]} == {"writer", "nightly.run"}
    assert [row["tool"] for row in tables["tool_calls"]] == ["browser.run"]


@HISTORIES.test
def test_tokens_and_cost_of_a_run_are_its_own_else_those_of_its_calls(log: LogFolder) -> Steps:
    used = {"gen_ai__usage__input_tokens": 3, "gen_ai__usage__output_tokens": 4, "gen_ai__usage__cost": 0.5,
            "gen_ai__usage__cache_read__input_tokens": 2, "gen_ai__usage__cache_creation__input_tokens": 1,
            "gen_ai__usage__reasoning__output_tokens": 3}  # fmt: skip
    spans = [agent(trace(log, 1), 1, AT), chat(trace(log, 1), 2, AT, 1, **used), chat(trace(log, 1), 3, AT, 1, **used), chat(trace(log, 1), 4, AT, 1),
             agent(trace(log, 2), 1, AT, gen_ai__usage__input_tokens=9, gen_ai__usage__cache_read__input_tokens=8), chat(trace(log, 2), 2, AT, 1, **used), agent(trace(log, 3), 1, AT)]  # fmt: skip
    rows = {row["execution_id"]: row for row in (yield from ingested(log, otlp_line(*spans)))["executions"]}
    found = {name: [row[column] for column in AMOUNTS] for name, row in rows.items()}
    assert found == {
        id_of(trace(log, 1), 1): [6, 8, 4, 2, 6, 1.0],
        id_of(trace(log, 2), 1): [9, 4, 8, 1, 3, 0.5],
        id_of(trace(log, 3), 1): [None] * 6,
    }
    calls = [row for row in log.rows("model_calls") if row["cost_usd"] is not None]
    assert {tuple(row[column] for column in AMOUNTS) for row in calls} == {(3, 4, 2, 1, 3, 0.5)}
