"""Model health from logs: examples by hand, the plain-Python reference, and the tracker's numbers on the same outcomes."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from health_assets.core.errors import NoWarehouseError
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.model_tracker import ModelHealthTracker
from health_assets.schema.catalog import columns_of
from health_assets.systems.model_health.choice import best_model
from health_assets.systems.model_health.report import print_block
from health_assets_tests.support import reference, reference_model_health
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.logs_made import START, Record, line
from health_assets_tests.support.projects import Project, Row, assert_same_tables, hours_from
from health_assets_tests.support.traces_made import chat, otlp_line
from health_assets_tests.systems.test_scores_equal_reference import assert_equal_rows

STEPS = ["ingest", "model_components", "model_health"]
TABLES = ["model_components", "model_health"]


def call(number: int, at: datetime, *, model: str = "m", status: str = "success", **fields: Any) -> Record:
    record = {"type": "model_call", "call_id": f"c{number}", "model": model, "ended_at": at.isoformat()}
    return record | {"status": status} | fields


def health(project: Project, records: Sequence[Record], hours: HourRange) -> list[Row]:
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours, only=STEPS)
    return sorted(project.rows("model_health"), key=lambda row: (row["hour"], row["model"]))


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_the_last_fifty_calls_count_whatever_hours_they_ended_in(project: Project) -> None:
    """60 calls, 6 minutes apart: hours of 10; the first 10 fail, then 15 of the last 50. 35 of 50 is 0.7, not below."""
    records = [
        call(n, START + n * timedelta(minutes=6), status="failure" if n < 25 else "success", latency_ms=n)
        for n in range(60)
    ]
    rows = health(project, records, hours_from(START, 6))
    assert [row["success_count"] for row in rows] == [0, 0, 5, 15, 25, 35]
    assert [row["failure_count"] for row in rows] == [10, 20, 25, 25, 25, 15]
    assert rows[-1]["health_score"] == 0.7
    assert [row["is_degraded"] for row in rows] == [True] * 5 + [False]
    assert rows[-1]["p50_latency_ms"] == 34  # the 25th of 10 to 59
    assert rows[-1]["p95_latency_ms"] == 57  # the 48th: 0.95 * 50 = 47.5
    assert rows[-1]["last_call_at"] == START + 59 * timedelta(minutes=6)
    assert (rows[-1]["window_calls"], rows[-1]["degraded_threshold"]) == (50, 0.7)


@pytest.mark.parametrize(
    ("latencies", "p50", "p95"),
    [
        ([], None, None), ([7], 7, 7), ([3, 1], 1, 3), ([3, 1, 2], 2, 3), (list(range(20, 0, -1)), 10, 19),
        (list(range(21)), 10, 19), ([0, 0, 5], 0, 5), ([1.5] * 4, 1.5, 1.5),
    ],
)  # fmt: skip
def test_percentiles_are_nearest_ranks_over_the_calls_that_carry_a_latency(
    latencies: list[float], p50: float | None, p95: float | None
) -> None:
    assert reference_model_health.nearest_rank(sorted(latencies), 50) == p50
    tracker = ModelHealthTracker(50, 0.7)
    tracker.record_success("m")
    for latency_ms in latencies:
        tracker.record_success("m", latency_ms=latency_ms)
    found = tracker.summary("m").to_dict()
    assert (found["p50_latency_ms"], found["p95_latency_ms"]) == (p50, p95)


def test_the_last_error_is_that_of_the_latest_failure_that_states_one(project: Project) -> None:
    failed = {"status": "failure"}
    records = [
        call(1, START, error="first", **failed),
        call(2, START + HOUR / 4, error="second", **failed),
        call(3, START + HOUR / 3, **failed),
        call(4, START + HOUR / 2, error="", **failed),
        call(5, START + HOUR / 2, error="only a warning"),
        call(6, START, model="fine"),
    ]
    fine, row = health(project, records, HourRange.of(START))
    assert row["last_error"] == "second"
    assert fine["last_error"] is fine["p50_latency_ms"] is None


def test_a_model_has_a_row_for_as_long_as_the_look_back_holds_a_call(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", None, 1, 3)
    records = [call(1, START + HOUR), call(2, START + 2 * HOUR, status="failure"), call(3, START, model="other")]
    rows = health(project, records, hours_from(START, 7))
    assert [(row["hour"], row["health_score"]) for row in rows if row["model"] == "m"] == [
        (START + 1 * HOUR, 1.0), (START + 2 * HOUR, 0.5), (START + 3 * HOUR, 0.5), (START + 4 * HOUR, 0.0),
    ]  # fmt: skip
    assert {row["hour"] for row in rows if row["model"] == "other"} == set(hours_from(START, 3))


def test_calls_that_ended_at_once_are_ordered_by_file_and_line(project: Project) -> None:
    project.write_log("b.jsonl", [line(call(3, START, status="failure", error="last"))])
    records = [call(n, START, status="failure", error=f"{n}") for n in range(3)]
    (row,) = health(project, records, HourRange.of(START))
    assert row["last_error"] == "last"


def test_calls_that_fail_and_calls_that_answer_are_of_one_model(project: Project) -> None:
    """A call that fails names no model that answered: 94 failures and 1,809 successes are one model at 95 percent."""
    calls = [
        chat(number, 1, START + HOUR / 2, gen_ai__request__model="gpt-4o-mini", **outcome)
        for number, outcome in enumerate(
            [{"gen_ai__response__model": "", "error__type": "RateLimitError"}] * 94
            + [{"gen_ai__response__model": "gpt-4o-mini-2024-07-18"}] * 1809,
            1,
        )
    ]
    project.write_log("traces.jsonl", [otlp_line(*calls)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEALTH_MODEL_WINDOW_CALLS", "2000")
        project.materialize(HourRange.of(START), only=STEPS)
    [row] = project.rows("model_health")
    assert (row["model"], row["success_count"], row["failure_count"]) == ("gpt-4o-mini", 1809, 94)
    assert row["health_score"] == pytest.approx(1809 / 1903)
    assert (row["last_response_model"], row["previous_response_model"]) == ("gpt-4o-mini-2024-07-18", None)
    assert {row["response_model"] for row in project.rows("model_calls")} == {None, "gpt-4o-mini-2024-07-18"}


def test_another_model_that_answers_is_told_with_the_time_of_the_change(project: Project) -> None:
    answers = ["m-1", "m-2", "m-1", None, "m-3", "m-3"]
    records = [call(number, START + number * HOUR / 10, response_model=answer) for number, answer in enumerate(answers)]
    records.append(call(9, START + HOUR * 0.9, status="failure", response_model="m-1"))
    [row] = health(project, records, HourRange.of(START))
    assert (row["last_response_model"], row["previous_response_model"]) == ("m-3", "m-1")
    assert row["response_model_changed_at"] == START + 4 * HOUR / 10
    console = Console(width=120, file=StringIO())
    with project.warehouse.read() as session:
        print_block(console, session, HourRange.of(START))
    assert isinstance(console.file, StringIO)
    assert (
        f"m: answered by m-3 since {START + 4 * HOUR / 10:%Y-%m-%d %H:%M} UTC, by m-1 before" in console.file.getvalue()
    )


# -- settings ----------------------------------------------------------------------------------------------------------


def test_a_longer_or_shorter_window_is_right_although_the_parts_were_built_for_another(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [
        call(n, START + n * timedelta(minutes=10), status="failure" if n % 3 else "success", latency_ms=n)
        for n in range(36)
    ]
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours_from(START, 6), only=STEPS)
    good = reference.deduplicate(reference.read_lines(project.raw)[0])
    last = HourRange.of(START + 5 * HOUR)
    for window_calls in (4, 2, 35, 50):  # parts of 6 calls are cut to 4, then to 2
        monkeypatch.setenv("HEALTH_MODEL_WINDOW_CALLS", str(window_calls))
        monkeypatch.setenv("HEALTH_MODEL_DEGRADED_THRESHOLD", "0.34")
        hours = hours_from(START, 6) if window_calls in (4, 2) else last
        project.materialize(hours, only=STEPS)
        expected = reference_model_health.model_health(good, list(last), 168, window_calls, 0.34)
        assert_equal_rows(project.rows("model_health", last), expected, ["hour", "model"])
        assert project.rows("model_health", last)[0]["window_calls"] == window_calls


# -- against the reference ---------------------------------------------------------------------------------------------


def random_calls(random: Random, count: int, hours: int) -> list[Record]:
    records = []
    for number in range(count):
        at = START + timedelta(minutes=random.randrange(hours * 60))
        fields = {
            "latency_ms": random.choice([0, 5, random.random() * 100]),
            "error": random.choice(["", "x", "y"]),
            "agent_id": "a",
            "response_model": random.choice(["", "m-1", "m-2"]),
        }
        status = random.choice(["success", "failure"])
        record = call(
            random.randrange(count) if number % 9 == 0 else number, at, model=random.choice("mno"), status=status
        )
        records.append(record | {name: value for name, value in fields.items() if random.random() < 0.6})
    return records


@pytest.mark.parametrize(
    ("seed", "lookback_hours", "first", "count"),
    [(2, 3, 2, 9), (3, 5, 9, 1), pytest.param(1, 168, 0, 12, marks=pytest.mark.nightly)],
)
def test_models_of_random_logs_equal_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, lookback_hours: int, first: int, count: int
) -> None:
    monkeypatch.setenv("HEALTH_MODEL_WINDOW_CALLS", "20")
    project = Project(tmp_path / "project", None, 1, lookback_hours)
    random = Random(seed)
    for name in ("a.jsonl", "b.jsonl.gz"):
        project.write_log(name, [line(record) for record in random_calls(random, 100, 10)])
    hours = hours_from(START + first * HOUR, count)
    project.materialize(hours, only=STEPS)
    records = reference.deduplicate(reference.read_lines(project.raw)[0])
    expected = reference_model_health.model_health(records, list(hours), lookback_hours, 20)
    assert_equal_rows(project.rows("model_health", hours), expected, ["hour", "model"])
    compared_otherwise = {"window_calls", "degraded_threshold", "formula_version"}
    assert set(columns_of("model_health")) - set(expected[0]) == compared_otherwise


def test_late_calls_and_any_order_of_hours_give_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALTH_MODEL_WINDOW_CALLS", "8")
    random = Random(5)
    early, late = ([line(record) for record in random_calls(random, 60, 6)] for _ in range(2))
    hours = hours_from(START, 8)
    clean, project = (Project(tmp_path / name, None, 1, 4) for name in ("clean", "project"))
    for one in (clean, project):
        one.write_log("early.jsonl", early)
    clean.write_log("late.jsonl", late)
    clean.materialize(hours, only=STEPS)
    project.materialize(hours_from(START + 4 * HOUR, 4), only=STEPS)
    project.write_log("late.jsonl", late)
    project.materialize(hours, only=STEPS, only_stale=True)
    for hour in (6, 0, 3):
        project.materialize(HourRange.of(START + hour * HOUR), only=TABLES)
    assert_same_tables(project.tables(hours, TABLES), clean.tables(hours, TABLES))


# -- two paths, one summary --------------------------------------------------------------------------------------------

OUTCOMES = st.tuples(
    st.sampled_from(["m", "n"]),
    st.booleans(),
    st.sampled_from([0.0, 1.0, 250.5]) | st.floats(0, 1e6),
    st.sampled_from(["", "timeout", 'a "quoted"\n\x00error ü\ud800']),
)


@tried_with(2, 40)
@given(outcomes=st.lists(OUTCOMES, min_size=1, max_size=40), window=st.sampled_from([1, 5, 50]))
def test_the_same_outcomes_give_the_same_summary_in_the_process_and_from_its_log(
    tmp_path_factory: pytest.TempPathFactory, outcomes: list[tuple[str, bool, float, str]], window: int
) -> None:
    project = Project(tmp_path_factory.mktemp("paths") / "project", None, 1, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEALTH_MODEL_WINDOW_CALLS", str(window))
        patch.setenv("HEALTH_MODEL_DEGRADED_THRESHOLD", "0.6")
        tracker = ModelHealthTracker(raw_log=project.raw / "tracker" / "calls.jsonl", agent_id="a")
        for model, succeeded, latency_ms, error in outcomes:
            if succeeded:
                tracker.record_success(model, latency_ms=latency_ms, execution_id="e")
            else:
                tracker.record_failure(model, error=error, latency_ms=latency_ms)
        times = [
            datetime.fromisoformat(record["ended_at"])
            for record in map(json.loads, (project.raw / "tracker" / "calls.jsonl").read_text().splitlines())
        ]
        hours = HourRange(floor_hour(min(times)), floor_hour(max(times)) + HOUR)  # two, if the clock struck meanwhile
        project.materialize(hours, only=STEPS)
    rows = project.rows("model_health", HourRange(hours.end - HOUR, hours.end))
    found = {row["model"]: {name: row[name] for name in tracker.summary("m").to_dict()} for row in rows}
    assert found == {summary.model: summary.to_dict() for summary in tracker.all_summaries()}
    assert project.rows("rejected_records") == []


# -- choosing ----------------------------------------------------------------------------------------------------------


def test_the_warehouse_names_the_best_model_of_the_newest_hour(project: Project) -> None:
    with pytest.raises(NoWarehouseError):
        best_model(project.warehouse, ["good"])
    records = [
        *(call(n, START, model="good", status="success" if n else "failure") for n in range(10)),
        *(call(20 + n, START, model="bad", status="failure") for n in range(3)),
        call(30, START, model="was good"), call(31, START + HOUR, model="was good", status="failure"),
    ]  # fmt: skip
    health(project, records, hours_from(START, 2))
    assert best_model(project.warehouse, ["bad", "good", "was good"]) == "good"
    assert best_model(project.warehouse, ["bad", "never called", "good"]) == "never called"
    assert best_model(project.warehouse, ["new", "newer"]) == "new"
    with pytest.raises(ValueError, match="no candidate"):
        best_model(project.warehouse, [])
