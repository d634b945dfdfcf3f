"""Ids belong to agents: what several agents call the same stays apart, and what one agent says twice is not lost."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from health_assets.apps.serving.reader_process import read_session, read_session_runs
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import Targets
from health_assets.quality.batches import Source
from health_assets.quality.evaluation import CheckResult, evaluate
from health_assets.systems.explanations.common_values import common_values
from health_assets.systems.suites import SUITES
from health_assets_tests.support.logs_made import START, Record, execution, line, trigger
from health_assets_tests.support.projects import ENGINES, FLEET, Project, Row, assert_same_tables, hours_from

MINUTE = HOUR / 60
ONE_HOUR = hours_from(START, 1)
HIGH, LOW = {"constraint": "no_pii", "severity": "high"}, {"constraint": "no_refunds", "severity": "low"}


def call(kind: str, call_id: str, at: datetime = START, **fields: Any) -> Record:
    name = {"model_call": "model", "tool_call": "tool"}[kind]
    own = {"call_id": call_id, name: "x", "ended_at": at.isoformat(), "status": "success"}
    return {"type": kind, **own, **fields}


def about(kind: str, execution_id: str, at: datetime, **fields: Any) -> Record:
    return {"type": kind, "execution_id": execution_id, "at": at.isoformat(), **fields}


def runs_of(agent_id: str, count: int, **fields: Any) -> list[Record]:
    return [execution(f"run-{number}", agent_id, START + number * MINUTE, **fields) for number in range(1, count + 1)]


def made(folder: Path, logs: dict[str, Sequence[Record]], hours: HourRange = ONE_HOUR, **options: Any) -> Project:
    only = options.pop("only", None)
    project = Project(folder, options.pop("targets", {}), **options)
    for name, records in logs.items():
        project.write_log(name, map(line, records))
    if only == ("ingest",):
        project.ingest(hours)
    else:
        project.materialize(hours, only=only)
    return project


@pytest.mark.parametrize("engine", ENGINES)
def test_two_agents_that_number_their_runs_from_1_are_both_in_every_table(tmp_path: Path, engine: str) -> None:
    logs = {
        "a.jsonl": runs_of("a", 10),
        "b.jsonl": [*runs_of("b", 10, status="failure", error="down"), trigger("t1", "b", START, "failed")],
        "c.jsonl": [trigger("t1", "a", START)],
    }
    project = made(tmp_path, logs, engine=engine, only=FLEET)
    runs = project.rows("executions")
    assert {(row["agent_id"], row["execution_id"]) for row in runs} == {
        (agent, f"run-{number}") for agent in "ab" for number in range(1, 11)
    }
    assert sorted((row["agent_id"], row["status"]) for row in project.rows("trigger_events")) == [
        ("a", "fired"), ("b", "failed"),
    ]  # fmt: skip
    scores = {row["agent_id"]: row for row in project.rows("agent_health")}
    assert scores["a"]["asr"] == 1 and scores["b"]["asr"] == 0
    [fleet] = project.rows("system_health")
    assert fleet["agents"] == 2
    assert fleet["health_score"] == pytest.approx((scores["a"]["health_score"] + scores["b"]["health_score"]) / 2)
    assert fleet["health_score"] < 100


def test_two_names_that_are_one_agent_are_two_claimants_of_an_id(tmp_path: Path) -> None:
    logs = {"a.jsonl": [*runs_of("pod-1", 3), *runs_of("pod-2", 3)]}
    targets = {"names": [{"match": "pod-.*", "agent": "pod"}]}
    project = made(tmp_path, logs, targets=targets, only=FLEET)
    assert [row["n"] for row in project.rows("agent_health")] == [6]


def test_calls_that_name_no_agent_are_told_apart_by_their_execution(tmp_path: Path) -> None:
    records = [
        call(kind, "c1", START, **fields)
        for kind in ("model_call", "tool_call")
        for fields in ({"agent_id": "a"}, {"agent_id": "b"}, {"execution_id": "r1"}, {"execution_id": "r2"}, {}, {})
    ]
    project = made(tmp_path, {"a.jsonl": records}, only=("ingest",))
    for table in ("model_calls", "tool_calls"):
        assert len(project.rows(table)) == 5


@pytest.mark.parametrize("engine", ENGINES)
def test_tokens_of_calls_belong_to_the_runs_of_the_agent_that_they_name(tmp_path: Path, engine: str) -> None:
    records = [
        execution("r", "a", START), execution("r", "b", START), execution("r", "pod-1", START),
        call("model_call", "c1", agent_id="a", execution_id="r", input_tokens=1),
        call("model_call", "c1", agent_id="b", execution_id="r", input_tokens=10),
        call("model_call", "c1", execution_id="r", input_tokens=100),
        call("model_call", "c2", agent_id="pod", execution_id="r", input_tokens=1000),
        call("model_call", "c3", agent_id="elsewhere", execution_id="r", input_tokens=10_000),
    ]  # fmt: skip
    targets = {"names": [{"match": "pod-.*", "agent": "pod"}]}
    project = made(tmp_path, {"a.jsonl": records}, engine=engine, targets=targets, only=("ingest",))
    found = {row["agent_id"]: row["input_tokens"] for row in project.rows("executions")}
    assert found == {"a": 101, "b": 110, "pod": 1100}


@pytest.mark.parametrize("engine", ENGINES)
def test_no_later_line_of_a_run_clears_an_earlier_one(tmp_path: Path, engine: str) -> None:
    """In three orders, each of which has agents of its own."""
    orders = ("abcd", "dcba", "cadb")
    project = Project(tmp_path, {}, engine=engine)
    for place in range(4):
        for order in orders:
            a, b = f"a {order}", f"b {order}"
            logs = {
                "a": [execution("r", a, START, violations=[HIGH]), execution("s", a, START, violations=[LOW])],
                "b": [execution("r", a, START + MINUTE, violations=[LOW]), execution("s", a, START + MINUTE)],
                "c": [execution("r", a, START + 2 * MINUTE, violations=[])],
                "d": [execution("r", b, START + 3 * MINUTE, violations=[])],
            }
            project.write_log(f"{order}/{order[place]}.jsonl", map(line, logs[order[place]]))
        project.ingest(ONE_HOUR)
    found = {(row["agent_id"], row["execution_id"]): row for row in project.rows("executions")}
    assert len(found) == 3 * len(orders)
    for order in orders:
        a, b = f"a {order}", f"b {order}"
        assert json.loads(found[a, "r"]["violations"]) == [HIGH, LOW]
        assert json.loads(found[a, "r"]["violations_reported"]) == []
        assert json.loads(found[a, "s"]["violations"]) == [LOW]
        assert json.loads(found[b, "r"]["violations"]) == []
        assert found[b, "r"]["violations_reported"] is None
        assert found[a, "r"]["ended_at"] == START + 2 * MINUTE


@pytest.mark.parametrize("engine", ENGINES)
def test_a_violation_goes_with_the_line_that_stated_it(tmp_path: Path, engine: str) -> None:
    project = Project(tmp_path, {}, engine=engine)
    project.write_log("a.jsonl", [line(execution("r", "a", START, violations=[HIGH]))], modified=START)
    project.write_log("b.jsonl", [line(execution("r", "a", START + MINUTE))])
    project.ingest(ONE_HOUR)
    assert json.loads(project.rows("executions")[0]["violations"]) == [HIGH]
    project.write_log("a.jsonl", [line(execution("other", "a", START))], modified=START + HOUR)
    project.ingest(ONE_HOUR)
    assert [row["violations"] for row in project.rows("executions")] == [None, None]
    assert [row["violations_reported"] for row in project.rows("executions")] == [None, None]


def test_what_a_later_line_replaced_is_not_called_kept(tmp_path: Path) -> None:
    records = [execution("r", "a", START, status="failure"), execution("r", "a", START + MINUTE), *runs_of("b", 3)]
    project = Project(tmp_path, {})
    project.write_log("a.jsonl", map(line, records))
    report = project.ingest(ONE_HOUR)
    assert (report.lines_read, report.superseded, report.rejected) == (5, 1, 0)
    assert len(project.rows("executions")) == 4


def checked(project: Project, asset: str, check: str) -> CheckResult:
    with project.warehouse.read() as session:
        source = Source(asset=asset, session=session, hours=ONE_HOUR, targets=Targets(), settings=project.settings)
        [result] = evaluate(SUITES[asset], source, [check])
    assert result.check.severity == "warn"
    return result


def test_an_id_of_two_agents_and_a_failure_replaced_by_a_success_are_told(tmp_path: Path) -> None:
    records = [
        *runs_of("a", 3), *runs_of("b", 2),
        execution("r", "a", START, status="failure"), execution("r", "a", START + MINUTE),
        execution("s", "a", START, status="failure"), execution("s", "a", START + MINUTE, status="failure"),
        call("tool_call", "c", agent_id="a"), call("tool_call", "c", agent_id="b"), call("tool_call", "c"),
        call("model_call", "c", execution_id="r"), call("model_call", "c", execution_id="run-1"),
    ]  # fmt: skip
    project = made(tmp_path, {"a.jsonl": records}, only=("ingest",))
    assert checked(project, "executions", "no_id_belongs_to_two_agents").unexpected_count == 4
    assert checked(project, "tool_calls", "no_id_belongs_to_two_agents").unexpected_count == 2
    assert checked(project, "model_calls", "no_id_belongs_to_two_agents").unexpected_count == 0
    assert checked(project, "executions", "no_failure_is_replaced").unexpected_count == 1


@pytest.fixture(scope="module")
def reliability(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """The row of each agent of the cases below, which are in one log."""
    records = [
        execution("r", "replaced", START, violations=[HIGH], task_id="t"),
        execution("r", "replaced", START + MINUTE, violations=[], task_id="t"),
        execution("s", "replaced", START, violations=[], task_id="t"),
        *(execution("named", f"{name} of a name", START, violations=[], task_id="t") for name in "abc"),
        about("judgement", "named", START, violations=[HIGH], agent_id="a of a name"),
        about("judgement", "named", START, violations=[HIGH], agent_id="nobody"),
        *(execution("unnamed", f"{name} of none", START, violations=[], task_id="t") for name in "abc"),
        about("judgement", "unnamed", START, violations=[HIGH]),
        execution("judged", "harmful", START, violations=[], task_id="t"),
        execution("judged", "harmless", START + 2 * MINUTE, violations=[], task_id="t"),
        execution("judged", "harmful", START + 3 * MINUTE, violations=[], task_id="t"),
    ]
    judged = about("judgement", "judged", START + MINUTE, violations=[HIGH], agent_id="harmful", judged_by="person")
    only = ("ingest", "task_consistency", "agent_reliability")
    logs = {"a.jsonl": records, "judgements/p.jsonl": [judged]}
    project = made(tmp_path_factory.mktemp("reliability"), logs, only=only)
    return {row["agent_id"]: row for row in project.rows("agent_reliability")}


def test_safety_counts_the_violation_of_a_line_that_was_replaced(reliability: dict[str, Row]) -> None:
    row = reliability["replaced"]
    assert (row["judged"], row["violated"], row["s_comp"]) == (2, 1, 0.5)


def test_a_judgement_is_about_the_run_of_the_agent_that_it_names(reliability: dict[str, Row]) -> None:
    assert {name: reliability[f"{name} of a name"]["violated"] for name in "abc"} == {"a": 1, "b": 0, "c": 0}
    assert {name: reliability[f"{name} of none"]["violated"] for name in "abc"} == {"a": 1, "b": 1, "c": 1}
    assert "nobody" not in reliability


def test_a_persons_judgement_stays_with_the_run_when_another_agent_takes_its_id(reliability: dict[str, Row]) -> None:
    assert {name: reliability[name]["violated"] for name in ("harmful", "harmless")} == {"harmful": 1, "harmless": 0}


SESSIONS = ("ingest", "trace_risks", "session_scores")


def test_an_id_of_several_agents_is_a_trace_of_each(tmp_path: Path) -> None:
    signals = {"confidence": 1.0}
    records = [
        execution("r", "a", START, session_id="s", signals=signals),
        execution("r", "b", START - HOUR, session_id="s", signals=signals),
        about("signals", "r", START, agent_id="a", coherence=0.1),
        about("signals", "r", START, agent_id="b", coherence=0.2),
        about("signals", "r", START, loop_detection=0.5),
    ]
    hours = hours_from(START - HOUR, 2)
    project = made(tmp_path / "range", {"a.jsonl": records}, hours, only=SESSIONS)
    risks = {row["agent_id"]: row for row in project.rows("trace_risks", ONE_HOUR)}
    assert {agent: row["step_risk"] for agent, row in risks.items()} == {"a": 0.9, "b": 0.8}
    assert {row["loop_risk"] for row in risks.values()} == {0.5}
    assert [row["total_traces"] for row in project.rows("session_scores")] == [1, 2]
    other = Project(tmp_path / "hours", {})
    other.write_log("a.jsonl", map(line, records))
    for hour in hours:
        other.materialize(HourRange.of(hour), only=SESSIONS)
    names = ["trace_risks", "session_scores"]
    assert_same_tables(project.tables(names=names), other.tables(names=names))


def test_signals_of_nobody_become_those_of_the_agents_that_claim_the_id_later(tmp_path: Path) -> None:
    records = [
        about("signals", "r", START, session_id="s", confidence=0.5),
        about("signals", "r", START, session_id="s", agent_id="pod", coherence=0.5),
        execution("r", "pod-1", START + HOUR, session_id="s"),
        execution("r", "pod-2", START + 2 * HOUR, session_id="s"),
    ]
    targets = {"names": [{"match": "pod-.*", "agent": "pod"}]}
    hours = hours_from(START, 4)
    project = made(tmp_path, {"a.jsonl": records}, hours, targets=targets, only=SESSIONS)
    rows = project.rows("trace_risks")
    assert [(row["agent_id"], row["agent_id_reported"], row["confidence_risk"]) for row in rows] == [
        ("pod", None, 0.5), ("pod", "pod-1", 0.5), ("pod", "pod-2", 0.5),
    ]  # fmt: skip
    assert [row["total_traces"] for row in project.rows("session_scores")] == [1, 1, 2]


def test_a_session_shows_the_runs_and_calls_of_each_agent_that_has_the_id(tmp_path: Path) -> None:
    signals = {"confidence": 0.5}
    records = [
        execution("r", "a", START + MINUTE, session_id="s", signals=signals),
        execution("r", "b", START + 2 * MINUTE, session_id="s", signals=signals, status="failure", error="down"),
        call("tool_call", "of a", START + MINUTE / 2, agent_id="a", execution_id="r"),
        call("tool_call", "of b", START + MINUTE / 2, agent_id="b", execution_id="r"),
        call("tool_call", "of any", START + MINUTE / 2, execution_id="r"),
    ]
    project = made(tmp_path, {"a.jsonl": records}, only=SESSIONS)
    now = START + 2 * HOUR
    waterfall = read_session_runs(project.settings, "s", START, now)
    session = read_session(project.settings, "s", now)
    assert waterfall is not None and session is not None
    answer = waterfall["answer"]
    agent_at = {trace["place"]: trace["agent_id"] for trace in answer["traces"]}
    assert {trace["agent_id"]: trace["status"] for trace in answer["traces"]} == {"a": "success", "b": "failure"}
    assert {(agent_at[one["place"]], one["call_id"]) for one in answer["calls"]} == {
        ("a", "of a"), ("a", "of any"), ("b", "of b"), ("b", "of any"),
    }  # fmt: skip
    told = session["answer"]["agent_reliability"]["metadata"]["per_trace_signals"]
    assert set(told) == {"r (a)", "r (b)"}


def test_common_values_of_failed_calls_are_counted_for_the_agent_that_made_them(tmp_path: Path) -> None:
    runs = [execution(f"run-{n}", agent, START + n * MINUTE, status="failure") for agent in "ab" for n in range(20)]
    calls = [
        call("tool_call", f"c{n}", START, agent_id="a", execution_id=f"run-{n}", status="failure") for n in range(20)
    ]
    project = made(
        tmp_path, {"a.jsonl": [*runs, *calls]}, only=("ingest", "health_components", "now_components", "agent_now")
    )
    with project.warehouse.read() as session:
        tables = (session.table(name) for name in ("executions", "tool_calls", "model_calls", "agent_now"))
        rows = session.dicts(common_values(*tables))
    assert [(row["agent_id"], row["failures"]) for row in rows if row["dimension"] == "tool"] == [("a", 20)]
