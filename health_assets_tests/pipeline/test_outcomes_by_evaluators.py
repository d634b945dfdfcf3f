"""Outcomes of executions by the results of evaluators, which may come hours after their executions."""

from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console

from health_assets.core.hours import HOUR, HourRange, parse_hour
from health_assets.schema.catalog import SUPERSEDED
from health_assets.systems.agent_usage.report import print_block
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import ENGINES, FLEET, RESULT_TABLES, Project, Row, hours_from
from health_assets_tests.support.traces_made import agent, otlp_line

LOOKBACK_HOURS = 3
ALL_HOURS = hours_from(START, 8)
RECORDED = Path(__file__).parents[1] / "recorded_evaluations"
END = START + timedelta(minutes=30)
MAPPED = {"evaluators": [{"match": "correct.*", "outcome": True}]}
STATED_SUCCESS, STATED_FAILURE = ("success", True, "stated"), ("failure", False, "stated")
GOOD, BAD = ("success", True, "evaluated"), ("failure", False, "evaluated")


def result(value: float, minute: float = 40, name: str = "correct", execution_id: str = "e", **fields: Any) -> Record:
    at = (START + timedelta(minutes=minute)).isoformat()
    return {"type": "evaluation", "name": name, "at": at, "execution_id": execution_id, "value": value} | fields


def project_of(folder: Path, engine: str = "duckdb") -> Project:
    return Project(folder / "project", MAPPED, 2, LOOKBACK_HOURS, engine=engine)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return project_of(tmp_path)


def outcome(row: Row) -> tuple[str, bool, str]:
    return row["status"], row["succeeded"], row["outcome_source"]


def outcome_after(project: Project, *results: Record, **fields: Any) -> tuple[str, bool, str]:
    """The outcome of an execution after these results."""
    project.write_log("a.jsonl", [line(record) for record in [execution("e", "a", END, **fields), *results]])
    project.ingest(ALL_HOURS)
    [row] = project.rows("executions")
    return outcome(row)


# -- what results say --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_result_far_outside_its_scale_says_nothing_and_stops_no_load(tmp_path: Path, engine: str) -> None:
    project = project_of(tmp_path, engine)
    absurd = [result(value, minute) for minute, value in enumerate((1e10, -1e12, 1e300, 1.5), 40)]
    assert outcome_after(project, *absurd) == STATED_SUCCESS


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bad_result_makes_a_success_a_failure_and_a_good_one_keeps_it(tmp_path: Path, engine: str) -> None:
    project = project_of(tmp_path, engine)
    runs = [execution(name, "a", END) for name in ("bad", "good", "unjudged")]
    results = [result(0.49, execution_id="bad"), result(0.5, execution_id="good"), result(0, name="other")]
    project.write_log("a.jsonl", [line(record) for record in [*runs, *results]])
    project.materialize(HourRange.of(START), only=(*FLEET, "evaluated_signals"))
    found = {row["execution_id"]: outcome(row) for row in project.rows("executions")}
    assert found == {"bad": BAD, "good": GOOD, "unjudged": STATED_SUCCESS}
    [component] = project.rows("health_components")
    assert (component["successes"], component["failures"]) == (2, 1)
    told = {row["execution_id"]: (row["signal"], row["is_failure"]) for row in project.rows("evaluated_signals")}
    assert told == {"bad": ("outcome", True), "good": ("outcome", False)}


def test_direction_scale_and_threshold_are_those_of_the_entry(project: Project) -> None:
    entry = {"match": "annoyance", "outcome": True, "scale": [1, 5], "direction": "lower_is_better", "threshold": 4}
    project.write_targets({"evaluators": [entry]})
    assert outcome_after(project, result(4, name="annoyance")) == GOOD
    assert outcome_after(project, result(4.5, name="annoyance")) == BAD


def test_categories_decide_by_their_worth(project: Project) -> None:
    entry = {"match": "verdict", "outcome": True, "categories": {"pass": 1, "partly": 0.5, "fail": 0}, "threshold": 0.8}
    project.write_targets({"evaluators": [entry]})
    assert outcome_after(project, result(1, name="verdict", label="pass")) == GOOD
    assert outcome_after(project, result(1, name="verdict", label="partly")) == BAD
    assert outcome_after(project, result(1, name="verdict", label="unknown")) == STATED_SUCCESS


def test_no_result_makes_a_stated_failure_a_success(project: Project) -> None:
    assert outcome_after(project, result(1), status="failure", error="timeout") == STATED_FAILURE


def test_of_an_evaluator_the_latest_result_counts_and_of_equally_late_ones_the_worse(project: Project) -> None:
    assert outcome_after(project, result(0, 40), result(1, 41)) == GOOD
    assert outcome_after(project, result(1, 40), result(0, 41)) == BAD
    assert outcome_after(project, result(0, 40), result(1, 40)) == BAD


def test_one_evaluator_that_says_failure_is_enough_and_is_named_as_its_error(project: Project) -> None:
    assert outcome_after(project, result(0, 40), result(1, 50, name="correctness")) == BAD
    assert project.rows("executions")[0]["error"] == "judged a failure by correct"
    assert outcome_after(project, result(0, 40), error="retried once") == BAD
    assert project.rows("executions")[0]["error"] == "retried once"


def test_a_result_is_about_the_agent_that_it_names(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("e", name, END)) for name in ("a", "b")])
    project.write_log("results.jsonl", [line(result(0, agent_id="b"))])
    project.ingest(ALL_HOURS)
    assert {row["agent_id"]: outcome(row) for row in project.rows("executions")} == {"a": STATED_SUCCESS, "b": BAD}


def test_another_mapping_changes_outcomes_without_reading_a_line(project: Project) -> None:
    assert outcome_after(project, result(0)) == BAD
    for targets, expected in (({}, STATED_SUCCESS), (MAPPED, BAD)):
        project.write_targets(targets)
        assert project.ingest(ALL_HOURS).lines_read == 0
        [row] = project.rows("executions")
        assert outcome(row) == expected
        assert (row["error"] is None) == row["succeeded"]


# -- feedback of people ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_feedback_stands_beside_success_and_changes_none(tmp_path: Path, engine: str) -> None:
    project = project_of(tmp_path, engine)
    project.write_targets(
        {"evaluators": [{"match": "thumbs", "feedback": True}, {"match": "correct", "outcome": True}]}
    )
    runs = [execution(f"e{n}", "a", END, status="success" if n else "failure", cost_usd=1) for n in range(5)]
    results = [
        result(1, 40, "thumbs", "e0"), result(0, 40, "thumbs", "e1"), result(0, 40, "correct", "e1"),
        result(1, 40, "thumbs", "e2"), result(0, 41, "thumbs", "e2"),
        result(0, 40, "thumbs", "e3"), result(1, 59, "thumbs", "e3"),
    ]  # fmt: skip
    project.write_log("a.jsonl", [line(record) for record in [*runs, *results]])
    usage = ["usage_components", "agent_usage", "usage_breakdown"]
    project.materialize(HourRange.of(START), only=["ingest", "evaluated_signals", *usage])
    found = {row["execution_id"]: (*outcome(row), row["feedback"]) for row in project.rows("executions")}
    assert found == {
        "e0": (*STATED_FAILURE, "positive"), "e1": (*BAD, "negative"), "e2": (*STATED_SUCCESS, "negative"),
        "e3": (*STATED_SUCCESS, "positive"), "e4": (*STATED_SUCCESS, None),
    }  # fmt: skip
    for table in usage:
        [row] = project.rows(table)
        assert (row["successes"], row["positive_feedback"], row["negative_feedback"]) == (3, 2, 2)
    [row] = [row for row in project.rows("evaluated_signals") if row["execution_id"] == "e0"]
    assert (row["signal"], row["value"], row["is_negative"], row["is_failure"]) == ("feedback", 1, False, None)
    console = Console(width=140, record=True, file=StringIO())
    with project.warehouse.read() as session:
        print_block(console, session, HourRange.of(START))
    table = [text.split() for text in console.export_text().splitlines()]
    assert ["costliest", "agents", "runs", "succeeded", "liked", "disliked"] in [row[:6] for row in table]
    assert ["a", "5", "3", "2", "2"] in [row[:5] for row in table]
    project.write_targets({})
    project.ingest(ALL_HOURS)
    assert {row["feedback"] for row in project.rows("executions")} == {None}


def test_thumbs_that_people_gave_in_phoenix_are_feedback(project: Project) -> None:
    project.write_targets({"evaluators": [{"match": "thumbs", "feedback": True}]})
    for name in ("spans.jsonl", "span-annotations.json"):
        project.write_bytes(f"phoenix/{name}", (RECORDED / f"phoenix-{name}").read_bytes())
    project.ingest(HourRange.of(parse_hour("2026-06-07T13")))
    rows = sorted(project.rows("executions"), key=lambda row: row["started_at"])
    assert [(row["feedback"], row["outcome_source"]) for row in rows] == [
        ("positive", "stated"),
        ("negative", "stated"),
    ]


# -- results that come late --------------------------------------------------------------------------------------------


def test_a_late_result_changes_the_hour_of_its_execution(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("e", "a", END))])
    third = HourRange.of(START + 2 * HOUR)
    project.materialize(hours_from(START, 2), only=FLEET)
    assert [row["failures"] for row in project.rows("health_components")] == [0]
    project.write_log("late.jsonl", [line(result(0, minute=150))])
    project.materialize(third, only=FLEET, only_stale=True)
    assert [outcome(row) for row in project.rows("executions")] == [BAD]
    assert [row["failures"] for row in project.rows("health_components")] == [1]
    project.materialize(hours_from(START, 3), only=FLEET, only_stale=True)
    assert project.tables() == project.clean_rebuild(hours_from(START, 3), only=FLEET).tables()


def test_a_result_further_away_than_the_look_back_comes_too_late(project: Project) -> None:
    assert outcome_after(project, result(0, minute=60 * LOOKBACK_HOURS - 1)) == BAD
    assert outcome_after(project, result(0, minute=60 * LOOKBACK_HOURS)) == STATED_SUCCESS


def test_a_result_of_a_trace_counts_whichever_comes_first(project: Project) -> None:
    runs = {trace: otlp_line(agent(trace, 1, END)) for trace in (1, 2)}
    results = {trace: line(result(0, minute=100, execution_id=f"{trace:032x}")) for trace in (1, 2)}
    for number, lines in enumerate(([runs[1], results[2]], [results[1], runs[2]])):
        project.write_log(f"{number}.jsonl", lines)
        project.materialize(ALL_HOURS, only=FLEET)
    assert [outcome(row) for row in project.rows("executions")] == [BAD] * 2
    assert project.tables() == project.clean_rebuild(ALL_HOURS, only=FLEET).tables()


def test_a_line_that_loses_to_a_later_one_says_what_it_states(project: Project) -> None:
    """Else the failure that an evaluator told of would count as one that the log replaced."""
    aside = SUPERSEDED["executions"]
    project.write_targets({"evaluators": [*MAPPED["evaluators"], {"match": "thumbs", "feedback": True}]})
    assert outcome_after(project, result(0), result(1, name="thumbs")) == BAD
    project.write_log("b.jsonl", [line(execution("e", "a", END + timedelta(minutes=5)))])
    project.ingest(ALL_HOURS)
    told = [(outcome(row), row["error"], row["feedback"]) for row in project.rows(aside)]
    assert told == [(STATED_SUCCESS, None, None)]
    assert [outcome(row) for row in project.rows("executions")] == [BAD]
    project.write_log("b.jsonl", [line(execution("other", "a", END))])
    project.ingest(ALL_HOURS)
    assert [outcome(row) for row in project.rows("executions")] == [BAD, STATED_SUCCESS]
    assert not project.rows(aside)


# -- any order ---------------------------------------------------------------------------------------------------------


def random_records(random: Random) -> list[Record]:
    records: list[Record] = []
    for _ in range(80):
        at, name = START + random.random() * len(ALL_HOURS) * HOUR, f"e{random.randrange(20)}"
        if random.random() < 0.4:
            records.append(execution(name, "a", at, status=random.choice(["success", "success", "failure"])))
        else:
            minute = (at - START) / timedelta(minutes=1)
            value = random.choice([0, 1])
            records.append(result(value, minute, random.choice(["correct", "correctness", "x"]), name))
    return records


def expected_outcome(row: Row, stated: str, evaluations: list[Row]) -> tuple[str, bool, str]:
    """The reference: walks over all results of an execution."""
    latest: dict[str, tuple[datetime, float]] = {}
    for one in evaluations:
        is_near = abs(one["hour"] - row["hour"]) < LOOKBACK_HOURS * HOUR
        if is_near and one["execution_id"] == row["execution_id"] and one["name"] != "x":
            latest[one["name"]] = max(latest.get(one["name"], (START, 0)), (one["evaluated_at"], one["value"]))
    if stated == "failure" or not latest:
        return stated, stated == "success", "stated"
    return BAD if any(value < 0.5 for _, value in latest.values()) else GOOD


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 4))])
def test_outcomes_are_the_same_in_whatever_order_logs_and_hours_come(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    project = project_of(tmp_path)
    records = random_records(random)
    for place in range(4):
        project.write_log(f"{place}.jsonl", map(line, records[place::4]))
        start = random.randrange(len(ALL_HOURS))
        some = hours_from(START + start * HOUR, random.randrange(1, len(ALL_HOURS) - start + 1))
        project.materialize(some, only=FLEET, only_stale=random.random() < 0.5)
    project.materialize(ALL_HOURS, only=FLEET)
    stated = {(record["execution_id"], record["ended_at"]): record["status"]
              for record in records if record["type"] == "execution"}  # fmt: skip
    evaluations, rows = project.rows("evaluations"), project.rows("executions")
    expected = [
        expected_outcome(row, stated[row["execution_id"], row["ended_at"].isoformat()], evaluations) for row in rows
    ]
    assert {BAD, GOOD} < {*expected}
    assert [outcome(row) for row in rows] == expected
    names = (*RESULT_TABLES, SUPERSEDED["executions"])
    assert project.tables(names=names) == project.clean_rebuild(ALL_HOURS, only=FLEET).tables(names=names)
