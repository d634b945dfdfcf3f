"""Results of evaluators become signals by the targets file: values by hand, each source, and what is never kept."""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.hours import HourRange, floor_hour, parse_hour
from health_assets.schema.catalog import ALL_TABLES
from health_assets.systems.session_scores.unmapped_evaluators import unmapped_evaluators
from health_assets_tests.support import langfuse_made
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import ENGINES, FLEET, Project, Row
from health_assets_tests.support.traces_made import agent, attributes, chat, nanoseconds, otlp_line, span

HOUR_ONE = HourRange.of(START)
HOUR_TWO = HourRange.of(START + timedelta(hours=1))
TWO_HOURS = HourRange(START, HOUR_TWO.end)
RISK_STEPS = ["ingest", "evaluated_signals", "trace_risks"]
STEPS = [*RISK_STEPS, "computed_signals", "session_scores"]
WITH_RELIABILITY = [*STEPS, "task_consistency", "agent_reliability"]
END = START + timedelta(minutes=30)
TRACE = f"{1:032x}"
AGENT = f"{TRACE}:{1:016x}"
EXPLANATION = "the-president-has-pneumonia"


def evaluators(*entries: Record) -> dict[str, Any]:
    return {"evaluators": list(entries)}


def result(name: str, minute: int = 40, execution_id: str = "e", **fields: Any) -> Record:
    at = (START + timedelta(minutes=minute)).isoformat()
    return {"type": "evaluation", "name": name, "at": at, "execution_id": execution_id} | fields


def event(name: str, minute: int = 20, **told: Any) -> Record:
    """An event of a span, as an instrumentor writes it."""
    named = {f"gen_ai__evaluation__{key}": value for key, value in told.items()}
    return {
        "name": "gen_ai.evaluation.result",
        "timeUnixNano": str(nanoseconds(START + timedelta(minutes=minute))),
        "attributes": attributes(gen_ai__evaluation__name=name, gen_ai__evaluation__explanation=EXPLANATION, **named),
    }


def log_line(trace: str, span_id: str, *events: Record) -> str:
    """The same as log records, as the SDKs write them."""
    own = [
        {"eventName": one["name"], "observedTimeUnixNano": one["timeUnixNano"], "attributes": one["attributes"],
         "traceId": trace, "spanId": span_id, "body": {"stringValue": EXPLANATION}}
        for one in events
    ]  # fmt: skip
    return json.dumps({"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": own}]}]})


def write(project: Project, *records: Record) -> None:
    run = execution("e", "a", END, session_id="s")
    project.write_log("a.jsonl", [line(record) for record in [run, *records]])


def answer_of(project: Project, *arguments: str) -> str:
    """What a command says."""
    own = project.settings
    environment = {
        "HEALTH_RAW": str(own.raw), "HEALTH_WAREHOUSE": str(own.warehouse), "HEALTH_TARGETS": str(own.targets),
        "COLUMNS": "200", "DAGSTER_HOME": "",
    }  # fmt: skip
    found = command_here(*arguments, environment=environment, folder=project.folder)
    assert found.returncode == 0, found.stderr
    return found.stdout


def values(rows: Iterable[Row]) -> dict[tuple[str, str], float]:
    return {(row["evaluator"], row["signal"]): row["value"] for row in rows}


# -- by hand -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=ENGINES)
def on_engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Runs with results of every kind on either engine; nobody changes it."""
    targets = evaluators(
        {"match": "annoyance", "signal": "coherence", "scale": [1, 5], "direction": "lower_is_better"},
        {"match": "tool_.*", "signal": "tool_correctness"},
        {"match": "tone", "signal": "confidence", "categories": {"friendly": 1, "curt": 0.25}},
        {"match": "toxicity", "violation": "medium", "direction": "lower_is_better", "threshold": 0.7},
        {"match": "pii", "violation": "high", "scale": [1, 5]},
        {"match": "manner", "violation": "low", "categories": {"friendly": 1, "rude": 0.25}, "threshold": 0.5},
        {"match": "of .*", "signal": "confidence"},
    )
    project = Project(tmp_path_factory.mktemp("on engine") / "project", targets, engine=request.param)
    results = {
        "signals": [
            result("annoyance", value=2), result("tool_ok", value=True), result("tone", value=9, label="curt"),
            result("unknown", value=0),
        ],
        "violations": [
            result("toxicity", value=0.7), result("toxicity", value=0.71), result("pii", value=3),
            result("manner", label="rude"), result("manner", label="friendly"), result("manner", label="unknown"),
        ],
    }  # fmt: skip
    runs = [execution(name, name, END, task_id=name, session_id=name) for name in results]
    told = [one | {"execution_id": name} for name, records in results.items() for one in records]
    project.write_log("a.jsonl", map(line, [*runs, *told]))
    spans = [
        agent(1, 1, END, events=[]) | {"events": [event("of agent", score__value=0.5)]},
        chat(1, 2, END - timedelta(minutes=5), 1) | {"events": [event("of call", score__value=0.25)]},
        span(1, 3, END - timedelta(minutes=4), 1) | {"events": [event("of retriever", score__value=0.75)]},
    ]
    project.write_log("t.jsonl", [otlp_line(*spans)])
    project.write_log("l.jsonl", [log_line(TRACE, "", event("of trace", 40, score__value=1))])
    project.materialize(HOUR_ONE, only=WITH_RELIABILITY)
    return project


def test_a_score_a_boolean_and_a_category_become_signals(on_engine: Project) -> None:
    rows = signals_of(on_engine, "signals")
    assert values(rows) == {
        ("annoyance", "coherence"): 0.75,  # 2 of 1 to 5 is a quarter from the best end
        ("tool_ok", "tool_correctness"): 1.0,
        ("tone", "confidence"): 0.25,
    }
    assert {row["agent_id"] for row in rows} == {"signals"}
    trace = trace_of(on_engine, "signals")
    assert (trace["confidence_risk"], trace["coherence_risk"], trace["tool_risk"]) == (0.75, 0.25, 0.0)
    assert (trace["loop_risk"], trace["session_id"]) == (None, "signals")
    [session] = [row for row in on_engine.rows("session_scores") if row["session_id"] == "signals"]
    assert session["traces_evaluated"] == 1


MAPPING = evaluators(
    {"match": "quality", "signal": "coherence"},
    {"match": "qual.*", "signal": "confidence"},
    {"match": "stars", "signal": "confidence", "scale": [1, 5]},
    {"match": "grade", "signal": "confidence", "categories": {"good": 1}},
    {"match": "share", "signal": "confidence"},
    {"match": "moment .*", "signal": "confidence"},
    {"match": "pii", "violation": "high"},
    {"match": "of .*", "signal": "confidence"},
)
RESULTS: dict[str, list[Record]] = {
    "first entry": [result("quality", value=0.5), result("quality of tools", value=0.25), result("a quality", value=1)],
    "outside": [result("stars", value=5.5), result("stars", value=0), result("stars", label="great")],
    "no category": [result("grade", label="Good"), result("grade", label="good")],
    "result before": [result("share", 40, value=0.8)],
    "result after": [result("share", 50, value=0.8)],
    "violating": [result("pii", value=0)],
    "good": [result("pii", value=1)],
    "self-reported": [result("pii", value=1)],
    "cleared": [result("pii", value=0)],
    "no entry": [result("confidence", value=0.25)],
    "violating later": [result("pii", 70, value=0)],
    "later": [result("share", 70, value=0.25)],
}
"""Of each run, which is also an agent, what evaluators said of it."""


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Runs with the results of `RESULTS` and what else the tests below say of them; nobody changes it."""
    project = Project(tmp_path_factory.mktemp("mapped") / "project", MAPPING)
    own = {"self-reported": {"violations": [{"constraint": "c", "severity": "low"}]}}
    runs = [execution(name, name, END, task_id=name, session_id=name, **own.get(name, {})) for name in RESULTS]
    results = [record | {"execution_id": name} for name, records in RESULTS.items() for record in records]
    at = (START + timedelta(minutes=45)).isoformat()
    stated = [
        {"type": "signals", "execution_id": name, "at": at, "confidence": 0.1}
        for name in ("result before", "result after")
    ]
    project.write_log("a.jsonl", map(line, [*runs, *results, *stated]))
    at = (START + timedelta(minutes=35)).isoformat()
    cleared = {"type": "judgement", "execution_id": "cleared", "at": at, "violations": [], "judged_by": "person"}
    project.write_log("judgements/people.jsonl", [line(cleared)])
    events = [event(f"moment {name}", score__value=value) for name, value in (("a", 0.75), ("b", 0.25), ("c", 0.5))]
    of_two = [span(2, 9, END), agent(2, 1, END, 9), agent(2, 2, END, 9, gen_ai__agent__name="coder")]
    project.write_log("t.jsonl", [otlp_line(agent(1, 1, END) | {"events": events}), otlp_line(*of_two)])
    told = [(f"{9:016x}", "of wrapper"), (f"{2:016x}", "of coder"), ("", "of trace")]
    told_of = [log_line(f"{2:032x}", span_id, event(name, 40, score__value=1)) for span_id, name in told]
    project.write_log("l.jsonl", told_of)
    project.materialize(TWO_HOURS, only=WITH_RELIABILITY)
    return project


def signals_of(project: Project, execution_id: str) -> list[Row]:
    return [row for row in project.rows("evaluated_signals") if row["execution_id"] == execution_id]


def trace_of(project: Project, execution_id: str, hours: HourRange = HOUR_ONE) -> Row:
    [trace] = [row for row in project.rows("trace_risks", hours) if row["trace_id"] == execution_id]
    return trace


def reliability_of(project: Project, agent_id: str, hours: HourRange = HOUR_ONE) -> Row:
    [row] = [row for row in project.rows("agent_reliability", hours) if row["agent_id"] == agent_id]
    return row


def test_the_first_entry_that_matches_counts(mapped: Project) -> None:
    assert values(signals_of(mapped, "first entry")) == {
        ("quality", "coherence"): 0.5,
        ("quality of tools", "confidence"): 0.25,
    }


def test_what_an_entry_cannot_take_states_no_signal(mapped: Project) -> None:
    """A value above the scale, one below it, and a label where there are no categories."""
    assert not signals_of(mapped, "outside")
    assert len([row for row in mapped.rows("evaluations") if row["execution_id"] == "outside"]) == 3


def test_a_label_that_has_no_category_states_no_signal(mapped: Project) -> None:
    lines = {row["label"]: row["line_number"] for row in mapped.rows("evaluations") if row["name"] == "grade"}
    assert [row["line_number"] for row in signals_of(mapped, "no category")] == [lines["good"]]


@pytest.mark.parametrize(("execution_id", "risk"), [("result before", 0.9), ("result after", 0.2)])
def test_the_latest_of_a_stated_signal_and_a_result_counts(mapped: Project, execution_id: str, risk: float) -> None:
    assert trace_of(mapped, execution_id)["confidence_risk"] == risk


def test_of_results_of_one_moment_in_one_line_the_lower_counts(mapped: Project) -> None:
    assert trace_of(mapped, AGENT)["confidence_risk"] == 0.75


def test_another_mapping_scores_anew_without_reading_a_line(project: Project) -> None:
    project.write_targets(evaluators({"match": "q", "signal": "confidence"}))
    write(project, result("q", value=0.25))
    project.materialize(HOUR_ONE, only=RISK_STEPS)
    project.write_targets(evaluators({"match": "q", "signal": "coherence", "direction": "lower_is_better"}))
    found = project.materialize(HOUR_ONE, only=RISK_STEPS)
    assert found["raw_logs"]["lines_read"] == 0
    [trace] = project.rows("trace_risks")
    assert (trace["confidence_risk"], trace["coherence_risk"]) == (None, 0.25)
    assert project.tables() == project.clean_rebuild(HOUR_ONE, only=RISK_STEPS).tables()


def test_without_an_entry_no_score_changes(mapped: Project) -> None:
    assert trace_of(mapped, "no entry")["confidence_risk"] is None


# -- violations --------------------------------------------------------------------------------------------------------


def test_a_result_below_the_threshold_is_a_violation_and_one_at_it_is_none(on_engine: Project) -> None:
    """The worst is medium, in one run of one: 1 - 1 * 1/2."""
    row = reliability_of(on_engine, "violations")
    results = sorted(signals_of(on_engine, "violations"), key=lambda one: one["line_number"])
    found = [(one["evaluator"], one["value"], one["is_violation"], one["severity"]) for one in results]
    assert found == [
        ("toxicity", pytest.approx(0.3), False, "medium"), ("toxicity", pytest.approx(0.29), True, "medium"),
        ("pii", 0.5, False, "high"), ("manner", 0.25, True, "low"), ("manner", 1, False, "low"),
    ]  # fmt: skip
    assert {one["signal"] for one in results} == {"violation"}
    assert (row["judged"], row["violated"]) == (1, 1)
    assert (row["s_comp"], row["s_harm"], row["r_saf"]) == (0, 0.5, 0.5)


def test_a_violation_is_no_signal_of_its_trace(mapped: Project) -> None:
    assert signals_of(mapped, "violating")
    assert trace_of(mapped, "violating")["step_risk"] is None


def test_a_good_result_makes_a_run_judged_and_clears_nothing_that_was_said(mapped: Project) -> None:
    row = reliability_of(mapped, "good")
    assert (row["judged"], row["violated"], row["r_saf"]) == (1, 0, 1)
    row = reliability_of(mapped, "self-reported")
    assert (row["judged"], row["violated"], row["s_harm"]) == (1, 1, 0.75)


def test_a_person_is_believed_before_an_evaluator(mapped: Project) -> None:
    [one] = signals_of(mapped, "cleared")
    assert one["is_violation"] is True
    row = reliability_of(mapped, "cleared")
    assert (row["judged"], row["violated"]) == (1, 0)


def test_a_result_counts_as_a_violation_from_its_own_hour_on(mapped: Project) -> None:
    rows = [reliability_of(mapped, "violating later", hours) for hours in (HOUR_ONE, HOUR_TWO)]
    assert [(row["judged"], row["violated"]) for row in rows] == [(0, 0), (1, 1)]


def test_a_run_of_reliability_alone_says_that_it_lacks_what_evaluators_say(project: Project) -> None:
    project.write_targets(evaluators({"match": "pii", "violation": "high"}))
    run = execution("e", "a", END, task_id="t")
    project.write_log("a.jsonl", [line(run), line(result("pii", value=0))])
    asked = ["materialize", "--from", "2026-06-07T00", "--to", "2026-06-07T01"]
    warning = (
        "scores were made from computed_signals, evaluated_signals, older than these logs: add --system session_scores"
    )
    for _ in range(2):  # a run, and a look at what is up to date
        assert warning in answer_of(project, *asked, "--system", "reliability")
    assert [row["violated"] for row in project.rows("agent_reliability")] == [0]
    said = answer_of(project, *asked, "--system", "reliability", "--system", "session_scores")
    assert "older than these logs" not in said
    assert "older than these logs" not in answer_of(project, *asked, "--system", "reliability")
    assert [row["violated"] for row in project.rows("agent_reliability")] == [1]


# -- what a result is about --------------------------------------------------------------------------------------------


def test_a_result_is_about_the_execution_that_its_span_is_part_of(on_engine: Project) -> None:
    """On the agent span, on a call, on another span of the trace, and on the trace alone."""
    rows = [row for row in on_engine.rows("evaluated_signals") if row["evaluator"].startswith("of ")]
    assert {row["execution_id"] for row in rows} == {AGENT}
    assert sorted(row["evaluator"] for row in rows) == ["of agent", "of call", "of retriever", "of trace"]
    traces = {row["trace_id"] for row in on_engine.rows("trace_risks")}
    assert traces == {AGENT, "signals", "violations"}


def test_of_a_trace_with_two_executions_a_result_needs_a_span_of_one(mapped: Project) -> None:
    [row] = [row for row in mapped.rows("evaluated_signals") if row["evaluator"].startswith("of ")]
    assert (row["evaluator"], row["agent_id"]) == ("of coder", "coder")


@pytest.mark.parametrize("is_at_once", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_result_counts_from_when_its_execution_is_known(project: Project, is_at_once: bool) -> None:
    """It is given in the hour before its run ends; whichever comes first, the rows are those of a clean rebuild."""
    project.write_targets(evaluators({"match": "q", "signal": "confidence"}))
    late = END + timedelta(hours=1)
    logs = {
        name: {
            "run": otlp_line(agent(number, 1, late, runtime_s=7000.0), chat(number, 2, END, 1)),
            "result": log_line(f"{number:032x}", f"{2:016x}", event("q", 31, score__value=0.25)),
        }
        for number, name in enumerate(["run first", "result first", "both"], 1)
    }
    deliveries = [
        [("run first", "run"), ("result first", "result"), ("both", "run"), ("both", "result")],
        [("run first", "result"), ("result first", "run")],
    ]
    for delivery in deliveries:
        for name, part in delivery:
            project.write_log(f"{name}/{part}.jsonl", [logs[name][part]])
        for hours in [TWO_HOURS] if is_at_once else [HOUR_ONE, HOUR_TWO]:
            project.materialize(hours, only=RISK_STEPS)
    project.materialize(TWO_HOURS, only=STEPS)
    runs = {f"{number:032x}:{1:016x}" for number in (1, 2, 3)}
    found = [(row["execution_id"], row["hour"]) for row in project.rows("evaluated_signals")]
    assert sorted(found) == sorted((run, START + timedelta(hours=1)) for run in runs)
    found = {row["trace_id"]: (row["hour"], row["confidence_risk"]) for row in project.rows("trace_risks")}
    assert found == dict.fromkeys(runs, (START + timedelta(hours=1), 0.75))
    names = ["evaluations", "evaluated_signals", "trace_risks", "session_scores"]
    assert project.tables(names=names) == project.clean_rebuild(TWO_HOURS, only=STEPS).tables(names=names)


def test_a_result_that_comes_later_scores_in_its_own_hour(mapped: Project) -> None:
    risks = [trace_of(mapped, "later", hours)["confidence_risk"] for hours in (HOUR_ONE, HOUR_TWO)]
    assert risks == [None, 0.75]


# -- what is kept and rejected -----------------------------------------------------------------------------------------


def test_explanations_are_never_stored(project: Project) -> None:
    good, bad = event("q", score__value=1), event("", score__value=1)
    project.write_log("t.jsonl", [otlp_line(agent(1, 1, END) | {"events": [good, bad]})])
    project.write_log("l.jsonl", [log_line(TRACE, f"{1:016x}", good, bad)])
    write(project, result("q", value=1, explanation=EXPLANATION, comment=EXPLANATION))
    project.materialize(HOUR_ONE, only=STEPS)
    reasons = sorted(row["reason"] for row in project.rows("rejected_records"))
    assert reasons == [
        "gen_ai.evaluation.name is missing, in log record 0.0.1", "gen_ai.evaluation.name is missing, in span 0.0.0",
    ]  # fmt: skip
    assert len(project.rows("evaluations")) == 3
    assert EXPLANATION not in str(project.tables(names=[*ALL_TABLES]))


def test_a_line_of_logs_without_a_result_is_rejected_as_ever(project: Project) -> None:
    other = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}]})
    talk = other.replace('"x"', '"gen_ai.evaluation.result"')
    project.write_log("l.jsonl", [other, talk, '{"resourceLogs": [ gen_ai.evaluation.result'])
    written = project.raw / "l.jsonl"
    hour = HourRange.of(floor_hour(datetime.fromtimestamp(written.stat().st_mtime, UTC)))
    project.ingest(hour)
    reasons = [row["reason"] for row in project.rows("rejected_records")]
    unused = "OTLP logs are not used, only traces: resourceLogs instead of resourceSpans"
    assert sorted(reasons) == [unused, unused, "not valid JSON"]


# -- what others recorded ----------------------------------------------------------------------------------------------

RECORDINGS = Path(__file__).parents[1] / "recorded_evaluations"
RECORDED = RECORDINGS / "pydantic-evals.jsonl"
HOUR_OF_RECORDING = HourRange.of(parse_hour("2026-06-07T13"))


def test_the_log_records_of_pydantic_evals_are_results_about_the_run_that_they_judge(project: Project) -> None:
    project.write_targets(
        evaluators(
            {"match": "helpfulness", "signal": "coherence", "scale": [1, 5]},
            {"match": "IsNonEmpty|Broken", "signal": "confidence"},
            {"match": "tone", "signal": "loop_detection", "categories": {"friendly": 0.9}},
        )
    )
    project.write_log("recorded.jsonl", RECORDED.read_text(encoding="utf-8").splitlines())
    project.materialize(HOUR_OF_RECORDING, only=STEPS)
    told = {row["name"]: (row["value"], row["label"]) for row in project.rows("evaluations")}
    assert told == {
        "helpfulness": (4.0, None), "IsNonEmpty": (1.0, "pass"), "tone": (None, "friendly"), "Broken": (None, None),
    }  # fmt: skip
    assert values(project.rows("evaluated_signals")) == {
        ("helpfulness", "coherence"): 0.75, ("IsNonEmpty", "confidence"): 1.0, ("tone", "loop_detection"): 0.9,
    }  # fmt: skip
    [trace], [run] = project.rows("trace_risks"), project.rows("executions")
    assert (trace["trace_id"], trace["agent_id"]) == (run["execution_id"], "weather-agent")
    assert (trace["coherence_risk"], trace["confidence_risk"], trace["loop_risk"]) == (0.25, 0.0, 0.1)
    assert trace["tool_risk"] is None
    assert not project.rows("rejected_records")
    assert "the answer greets the user" not in str(project.tables(names=[*ALL_TABLES]))


def test_scores_of_langfuse_become_signals_of_their_traces(project: Project) -> None:
    project.write_targets(evaluators({"match": "toxicity", "signal": "loop_detection", "direction": "lower_is_better"}))
    project.write_log("download.json", [json.dumps(langfuse_made.download())])
    project.materialize(HOUR_OF_RECORDING, only=STEPS)
    [trace] = [row for row in project.rows("trace_risks") if row["session_id"]]
    assert trace["loop_risk"] == 0.1, "toxicity of 0.1 where lower is better"
    assert trace["coherence_risk"] == 0.5


SPAN_ANNOTATIONS = {
    ("thumbs", 1.0, "up"), ("thumbs", 0.0, "down"), ("toxicity", 0.9, "toxic"), ("toxicity", 0.1, "non-toxic"),
    ("is_json", 0.0, None), ("relevance", None, "relevant"),
}  # fmt: skip


def copy_of_phoenix(project: Project, *names: str) -> None:
    for name in names:
        project.write_bytes(f"phoenix/{name}", (RECORDINGS / f"phoenix-{name}").read_bytes())


def test_every_export_of_phoenix_gives_the_same_results(project: Project) -> None:
    names = ("span-annotations.json", "client.json", "dataframe.jsonl")
    copy_of_phoenix(project, *names)
    project.ingest(HOUR_OF_RECORDING)
    evaluations = project.rows("evaluations")
    for name in names:
        rows = [row for row in evaluations if row["source_file"] == f"phoenix/{name}"]
        assert {(row["name"], row["value"], row["label"]) for row in rows} == SPAN_ANNOTATIONS, name
        assert len(rows) == len(SPAN_ANNOTATIONS), name
        assert all(len(row["execution_id"]) == 16 and row["session_id"] is None for row in rows), name
    assert not project.rows("rejected_records")
    kept = str(project.tables(names=[*ALL_TABLES]))
    assert not [text for text in ("insults", "answer is wrong", "looks odd", "ana") if text in kept]


def test_annotations_of_phoenix_are_about_the_run_of_their_span_or_trace(project: Project) -> None:
    """Of the agent, of its model call and of its tool, by the span's id alone; one of a retriever is of none."""
    project.write_targets(
        evaluators(
            {"match": "thumbs|goal reached|satisfaction", "signal": "coherence"},
            {"match": "toxicity", "violation": "high", "direction": "lower_is_better"},
            {"match": "is_json", "signal": "tool_correctness"},
            {"match": "relevance", "signal": "confidence", "categories": {"relevant": 1}},
        )
    )
    copy_of_phoenix(
        project, "spans.jsonl", "span-annotations.json", "trace-annotations.json", "session-annotations.json"
    )
    project.materialize(HOUR_OF_RECORDING, only=STEPS)
    first, second = sorted(project.rows("executions"), key=lambda row: row["started_at"])
    found = {(row["execution_id"], row["evaluator"]): row["value"] for row in project.rows("evaluated_signals")}
    assert found == {
        (first["execution_id"], "thumbs"): 1, (second["execution_id"], "thumbs"): 0,
        (first["execution_id"], "toxicity"): pytest.approx(0.1, abs=1e-12),
        (second["execution_id"], "toxicity"): pytest.approx(0.9, abs=1e-12),
        (first["execution_id"], "is_json"): 0, (first["execution_id"], "goal reached"): 1,
    }  # fmt: skip
    [of_session] = [row for row in project.rows("evaluations") if row["execution_id"] is None]
    assert (of_session["name"], of_session["value"], of_session["session_id"]) == ("satisfaction", 4, "chat-42")


def test_a_long_answer_of_phoenix_is_told_by_its_first_annotation(project: Project) -> None:
    """The list is longer than the beginning of a file from which its format is recognized."""
    page = json.loads((RECORDINGS / "phoenix-span-annotations.json").read_text(encoding="utf-8"))
    page["data"] *= 600
    names = ("page.json", "page.jsonl")
    for name in names:
        project.write_bytes(name, json.dumps(page, indent=1).encode())
    project.ingest(HOUR_OF_RECORDING)
    files = Counter(row["source_file"] for row in project.rows("evaluations"))
    assert files == dict.fromkeys(names, 600 * len(SPAN_ANNOTATIONS))


UNUSABLE: list[tuple[Record, str]] = [
    ({"span_id": "U3BhbjoxMg=="}, 'span_id must be 16 hexadecimal digits, not "U3BhbjoxMg=="'),
    ({"span_id": None}, "it names neither a span nor a trace nor a session"),
    ({"name": ""}, "name is missing"),
    ({"updated_at": "soon"}, 'updated_at must be ISO 8601, not "soon"'),
]
"""Fields of the last annotation of a page, and why it is rejected."""


@pytest.fixture(scope="module")
def with_unusable(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A page for each of `UNUSABLE`."""
    project = Project(tmp_path_factory.mktemp("unusable") / "project")
    for place, (fields, _) in enumerate(UNUSABLE):
        page = json.loads((RECORDINGS / "phoenix-span-annotations.json").read_text(encoding="utf-8"))
        last = page["data"][-1]
        last |= {"metadata": {"why": EXPLANATION}} | fields
        last["result"]["explanation"] = EXPLANATION
        project.write_bytes(f"page{place}.json", json.dumps(page).encode())
    project.ingest(HOUR_OF_RECORDING)
    return project


@pytest.mark.parametrize("place", range(len(UNUSABLE)))
def test_an_annotation_that_cannot_be_used_is_rejected_without_its_explanation(
    with_unusable: Project, place: int
) -> None:
    of_page = {
        table: [row for row in with_unusable.rows(table) if row["source_file"] == f"page{place}.json"]
        for table in ("rejected_records", "evaluations")
    }
    [rejected] = of_page["rejected_records"]
    assert rejected["reason"] == UNUSABLE[place][1]
    assert EXPLANATION not in rejected["raw"]
    assert len(of_page["evaluations"]) == len(SPAN_ANNOTATIONS) - 1


# -- what nobody mapped ------------------------------------------------------------------------------------------------


def test_evaluators_that_no_entry_matches_are_told_with_their_results(project: Project) -> None:
    project.write_targets(evaluators({"match": "q", "signal": "confidence"}))
    write(project, result("q", value=1), *[result("helpfulness", value=n) for n in range(3)], result("tone", label="x"))
    project.materialize(HOUR_ONE, only=[*FLEET, *STEPS])
    again = ["materialize", "--from", "2026-06-07T00", "--to", "2026-06-07T01", "--system", "session_scores"]
    for arguments in (again, ["report"]):
        said = " ".join(answer_of(project, *arguments).split())
        assert "2 evaluators are not mapped: helpfulness (3), tone (1); see `evaluators:` in the targets file" in said
    project.write_targets(evaluators({"match": ".*", "signal": "confidence"}))
    assert "not mapped" not in answer_of(project, "report")


def test_of_many_evaluators_the_first_are_named(project: Project) -> None:
    write(project, *[result(f"e{n}", value=1) for n in range(7)])
    project.materialize(HOUR_ONE, only=["ingest"])
    with project.warehouse.read() as session:
        sentence = unmapped_evaluators(session, HOUR_ONE, ())
    assert sentence is not None
    assert sentence.startswith("7 evaluators are not mapped: e0 (1), e1 (1), e2 (1), e3 (1), e4 (1), and 2 more;")
