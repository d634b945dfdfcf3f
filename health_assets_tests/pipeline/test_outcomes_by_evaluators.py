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
COMPONENTS = ("ingest", "health_components")
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

USAGE = ("usage_components", "agent_usage", "usage_breakdown")
EVALUATORS = [
    {"match": "correct.*", "outcome": True},
    {"match": "thumbs", "feedback": True},
    {"match": "annoyance", "outcome": True, "scale": [1, 5], "direction": "lower_is_better", "threshold": 4},
    {"match": "verdict", "outcome": True, "categories": {"pass": 1, "partly": 0.5, "fail": 0}, "threshold": 0.8},
]


class Judged:
    """Every case of what results say, in one log that was materialized once; each is an execution with an id of its own."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._records: list[Record] = []
        self._add("absurd", *(result(value, minute) for minute, value in enumerate((1e10, -1e12, 1e300, 1.5), 40)))
        self._add("bad", result(0.49), agent="scored")
        self._add("good", result(0.5), agent="scored")
        self._add("unjudged", result(0, name="other"), agent="scored")
        self._add("annoying as allowed", result(4, name="annoyance"))
        self._add("annoying", result(4.5, name="annoyance"))
        for label in ("pass", "partly", "unknown"):
            self._add(label, result(1, name="verdict", label=label))
        self._add("stated failure", result(1), status="failure", error="timeout")
        self._add("good at last", result(0, 40), result(1, 41))
        self._add("bad at last", result(1, 40), result(0, 41))
        self._add("equally late", result(0, 40), result(1, 40))
        self._add("bad by one", result(0, 40), result(1, 50, name="correctness"))
        self._add("bad and with an error", result(0, 40), error="retried once")
        self._add("of two agents", agent="a")
        self._add("of two agents", result(0, agent_id="b"), agent="b")
        self._add("in reach", result(0, minute=60 * LOOKBACK_HOURS - 1))
        self._add("out of reach", result(0, minute=60 * LOOKBACK_HOURS))
        for number, (results, fields) in enumerate(FEEDBACK):
            self._add(f"e{number}", *results, agent="liked", cost_usd=1, **fields)
        project.write_targets({"evaluators": EVALUATORS})
        project.write_log("a.jsonl", map(line, self._records))
        project.ingest(ALL_HOURS)
        project.materialize(HourRange.of(START), only=(*FLEET, "evaluated_signals", *USAGE))
        self.rows = {(row["agent_id"], row["execution_id"]): row for row in project.rows("executions")}

    def _add(self, name: str, *results: Record, agent: str = "a", **fields: Any) -> None:
        self._records += [execution(name, agent, END, **fields), *(one | {"execution_id": name} for one in results)]

    def outcome(self, name: str, agent: str = "a") -> tuple[str, bool, str]:
        return outcome(self.rows[agent, name])

    def rows_of(self, table: str, agent: str) -> list[Row]:
        return [row for row in self.project.rows(table) if row["agent_id"] == agent]


FEEDBACK: list[tuple[list[Record], Record]] = [
    ([result(1, 40, "thumbs")], {"status": "failure"}),
    ([result(0, 40, "thumbs"), result(0, 40)], {}),
    ([result(1, 40, "thumbs"), result(0, 41, "thumbs")], {}),
    ([result(0, 40, "thumbs"), result(1, 59, "thumbs")], {}),
    ([], {}),
]
"""Results and other fields of five executions."""


@pytest.fixture(scope="module", params=ENGINES)
def judged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    return Judged(project_of(tmp_path_factory.mktemp("judged"), request.param))


def test_a_result_far_outside_its_scale_says_nothing_and_stops_no_load(judged: Judged) -> None:
    assert judged.outcome("absurd") == STATED_SUCCESS


def test_a_bad_result_makes_a_success_a_failure_and_a_good_one_keeps_it(judged: Judged) -> None:
    found = {name: judged.outcome(name, "scored") for name in ("bad", "good", "unjudged")}
    assert found == {"bad": BAD, "good": GOOD, "unjudged": STATED_SUCCESS}
    [component] = judged.rows_of("health_components", "scored")
    assert (component["successes"], component["failures"]) == (2, 1)
    told = {
        row["execution_id"]: (row["signal"], row["is_failure"]) for row in judged.rows_of("evaluated_signals", "scored")
    }
    assert told == {"bad": ("outcome", True), "good": ("outcome", False)}


def test_direction_scale_and_threshold_are_those_of_the_entry(judged: Judged) -> None:
    assert judged.outcome("annoying as allowed") == GOOD
    assert judged.outcome("annoying") == BAD


def test_categories_decide_by_their_worth(judged: Judged) -> None:
    assert judged.outcome("pass") == GOOD
    assert judged.outcome("partly") == BAD
    assert judged.outcome("unknown") == STATED_SUCCESS


def test_no_result_makes_a_stated_failure_a_success(judged: Judged) -> None:
    assert judged.outcome("stated failure") == STATED_FAILURE


def test_of_an_evaluator_the_latest_result_counts_and_of_equally_late_ones_the_worse(judged: Judged) -> None:
    assert judged.outcome("good at last") == GOOD
    assert judged.outcome("bad at last") == BAD
    assert judged.outcome("equally late") == BAD


def test_one_evaluator_that_says_failure_is_enough_and_is_named_as_its_error(judged: Judged) -> None:
    assert judged.outcome("bad by one") == BAD
    assert judged.rows["a", "bad by one"]["error"] == "judged a failure by correct"
    assert judged.outcome("bad and with an error") == BAD
    assert judged.rows["a", "bad and with an error"]["error"] == "retried once"


def test_a_result_is_about_the_agent_that_it_names(judged: Judged) -> None:
    assert {name: judged.outcome("of two agents", name) for name in "ab"} == {"a": STATED_SUCCESS, "b": BAD}


def test_a_result_further_away_than_the_look_back_comes_too_late(judged: Judged) -> None:
    assert judged.outcome("in reach") == BAD
    assert judged.outcome("out of reach") == STATED_SUCCESS


def test_another_mapping_changes_outcomes_without_reading_a_line(project: Project) -> None:
    assert outcome_after(project, result(0)) == BAD
    for targets, expected in (({}, STATED_SUCCESS), (MAPPED, BAD)):
        project.write_targets(targets)
        assert project.ingest(ALL_HOURS).lines_read == 0
        [row] = project.rows("executions")
        assert outcome(row) == expected
        assert (row["error"] is None) == row["succeeded"]


# -- feedback of people ------------------------------------------------------------------------------------------------


def test_feedback_stands_beside_success_and_changes_none(judged: Judged) -> None:
    project = judged.project
    rows = {f"e{n}": judged.rows["liked", f"e{n}"] for n in range(len(FEEDBACK))}
    assert {name: (*outcome(row), row["feedback"]) for name, row in rows.items()} == {
        "e0": (*STATED_FAILURE, "positive"), "e1": (*BAD, "negative"), "e2": (*STATED_SUCCESS, "negative"),
        "e3": (*STATED_SUCCESS, "positive"), "e4": (*STATED_SUCCESS, None),
    }  # fmt: skip
    for table in USAGE:
        [row] = judged.rows_of(table, "liked")
        assert (row["successes"], row["positive_feedback"], row["negative_feedback"]) == (3, 2, 2)
    [row] = [row for row in judged.rows_of("evaluated_signals", "liked") if row["execution_id"] == "e0"]
    assert (row["signal"], row["value"], row["is_negative"], row["is_failure"]) == ("feedback", 1, False, None)
    console = Console(width=140, record=True, file=StringIO())
    with project.warehouse.read() as session:
        print_block(console, session, HourRange.of(START))
    table = [text.split() for text in console.export_text().splitlines()]
    assert ["costliest", "agents", "runs", "succeeded", "liked", "disliked"] in [row[:6] for row in table]
    assert ["liked", "5", "3", "2", "2"] in [row[:5] for row in table]


def test_without_its_entry_a_result_is_no_feedback(project: Project) -> None:
    project.write_targets({"evaluators": [{"match": "thumbs", "feedback": True}]})
    assert outcome_after(project, result(1, name="thumbs")) == STATED_SUCCESS
    assert [row["feedback"] for row in project.rows("executions")] == ["positive"]
    project.write_targets({})
    project.ingest(ALL_HOURS)
    assert [row["feedback"] for row in project.rows("executions")] == [None]


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


def test_a_result_of_a_trace_counts_whichever_comes_first(project: Project) -> None:
    runs = {trace: otlp_line(agent(trace, 1, END)) for trace in (1, 2)}
    results = {trace: line(result(0, minute=100, execution_id=f"{trace:032x}")) for trace in (1, 2)}
    for number, lines in enumerate(([runs[1], results[2]], [results[1], runs[2]])):
        project.write_log(f"{number}.jsonl", lines)
        project.ingest(ALL_HOURS)
    assert [outcome(row) for row in project.rows("executions")] == [BAD] * 2
    assert project.tables() == project.clean_rebuild(ALL_HOURS, only=["ingest"]).tables()


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
        project.materialize(some, only=COMPONENTS, only_stale=random.random() < 0.5)
    project.materialize(ALL_HOURS, only=COMPONENTS)
    stated = {(record["execution_id"], record["ended_at"]): record["status"]
              for record in records if record["type"] == "execution"}  # fmt: skip
    evaluations, rows = project.rows("evaluations"), project.rows("executions")
    expected = [
        expected_outcome(row, stated[row["execution_id"], row["ended_at"].isoformat()], evaluations) for row in rows
    ]
    assert {BAD, GOOD} < {*expected}
    assert [outcome(row) for row in rows] == expected
    names = (*RESULT_TABLES, SUPERSEDED["executions"])
    assert project.tables(names=names) == project.clean_rebuild(ALL_HOURS, only=COMPONENTS).tables(names=names)
