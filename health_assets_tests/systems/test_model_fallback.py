"""The fallback replay: examples by hand, the plain-Python reference, and how often its intervals hold the truth."""

from collections.abc import Sequence
from datetime import timedelta
from io import StringIO
from math import sqrt
from pathlib import Path
from random import Random

import ibis
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from health_assets.core.hours import HOUR, HourRange
from health_assets.schema.catalog import columns_of
from health_assets.systems.model_health.model_fallback import model_fallback
from health_assets.systems.model_health.report import print_block
from health_assets_tests.support import reference, reference_model_fallback
from health_assets_tests.support.logs_made import START, Record, line
from health_assets_tests.support.projects import Project, Row, assert_same_tables, hours_from
from health_assets_tests.systems.test_scores_equal_reference import assert_equal_rows

STEPS = ["ingest", "model_components", "fallback_components", "model_fallback"]
TABLES = STEPS[1:]
WINDOW_HOURS, LOOKBACK_HOURS = 2, 5
KNOWN_HOURS = LOOKBACK_HOURS - WINDOW_HOURS


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", None, WINDOW_HOURS, LOOKBACK_HOURS)


def calls(model: str, place: int, *, good: int = 0, failed: int = 0) -> list[Record]:
    """Calls that ended in an hour, spread over it."""
    at = START + place * HOUR
    step = HOUR / (good + failed + 1)
    return [
        {
            "type": "model_call",
            "call_id": f"{model} {place} {number}",
            "model": model,
            "ended_at": (at + number * step).isoformat(),
            "status": "success" if number < good else "failure",
        }
        for number in range(good + failed)
    ]


def replay(project: Project, records: Sequence[Record], hours: HourRange) -> list[Row]:
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours, only=STEPS)
    rows = project.rows("model_fallback", HourRange(hours.end - HOUR, hours.end))
    return sorted(rows, key=lambda row: (row["model"], row["alternative"]))


def wilson(share: float, calls: float) -> tuple[float, float]:
    middle = (share + 1.96**2 / (2 * calls)) / (1 + 1.96**2 / calls)
    half = 1.96 * sqrt(share * (1 - share) / calls + 1.96**2 / (4 * calls**2)) / (1 + 1.96**2 / calls)
    return middle - half, middle + half


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_failed_calls_of_a_degraded_model_are_weighed_by_the_alternative_of_their_hour(project: Project) -> None:
    records = [
        *calls("opus", 0, failed=10), *calls("haiku", 0, good=10), *calls("sonnet", 0, good=9, failed=1),
        *calls("opus", 1, good=5, failed=15), *calls("haiku", 1, good=45, failed=5), *calls("sonnet", 1, good=9),
    ]  # fmt: skip
    [row] = replay(project, records, hours_from(START, 2))
    assert (row["model"], row["alternative"]) == ("opus", "haiku")
    assert (row["calls"], row["failures"], row["compared_calls"], row["compared_failures"]) == (20, 15, 20, 15)
    assert (row["compared_alternative_calls"], row["compared_alternative_failures"]) == (50, 5)
    low, high = wilson(0.9, 15**2 / (15**2 / 50 + 15))
    found = [row[f"avoided_failures{end}"] for end in ("", "_low", "_high")]
    assert found == pytest.approx([15 * 0.9, 15 * low, 15 * high], rel=1e-5)
    low, high = wilson(0.1, 5**2 / (5**2 / 50 + 5))
    found = [row[f"added_failures{end}"] for end in ("", "_low", "_high")]
    assert found == pytest.approx([5 * 0.1, 5 * low, 5 * high], rel=1e-5)


def test_an_hour_is_judged_by_the_calls_before_it_alone(project: Project) -> None:
    """In the second hour opus falls and haiku rises; who chose before could know neither."""
    records = [
        *calls("opus", 0, good=10), *calls("haiku", 0, failed=10),
        *calls("opus", 1, failed=50), *calls("haiku", 1, good=45, failed=5),
    ]  # fmt: skip
    [row] = replay(project, records, hours_from(START, 2))
    assert (row["model"], row["alternative"], row["failures"]) == ("haiku", "opus", 5)
    assert row["avoided_failures"] == 0


def test_without_a_healthy_model_the_failures_have_no_alternative(project: Project) -> None:
    records = [
        *calls("opus", 0, failed=10), *calls("haiku", 0, good=1, failed=9), *calls("unknown", 0, good=10),
        *calls("opus", 1, failed=3),
    ]  # fmt: skip
    [row] = replay(project, records, hours_from(START, 2))
    assert (row["model"], row["alternative"], row["failures"], row["compared_calls"]) == ("opus", "", 3, 0)
    assert row["avoided_failures"] is row["avoided_failures_low"] is row["added_failures_high"] is None


def test_hours_in_which_the_alternative_was_not_called_are_counted_and_not_compared(project: Project) -> None:
    records = [
        *calls("opus", 0, failed=10), *calls("haiku", 0, good=10), *calls("opus", 1, failed=4),
        *calls("opus", 2, failed=6), *calls("haiku", 2, good=10),
    ]  # fmt: skip
    [row] = replay(project, records, hours_from(START, 3))
    assert (row["failures"], row["compared_failures"], row["compared_alternative_calls"]) == (10, 6, 10)
    assert row["avoided_failures"] == row["avoided_failures_high"] == 6
    assert row["avoided_failures_low"] == pytest.approx(6 * wilson(1, 6**2 / (6**2 / 10 + 6))[0])


def test_the_report_says_what_a_fallback_might_have_done(project: Project) -> None:
    records = [
        *calls("opus", 0, failed=10), *calls("haiku", 0, good=10), *calls("opus", 1, failed=4),
        *calls("opus", 2, good=3, failed=6), *calls("haiku", 2, good=9, failed=1),
    ]  # fmt: skip
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours_from(START, 3), only=[*STEPS, "model_health"])
    console = Console(width=300, file=StringIO())
    with project.warehouse.read() as session:
        print_block(console, session, hours_from(START, 3))
    assert isinstance(console.file, StringIO)
    assert (
        "opus while degraded: of 6 failed calls between 2 and 6 might have succeeded on haiku, if calls are alike "
        "(9 of 10 calls to it succeeded in the same hours); of 3 good ones up to 3 might have failed; 4 more failed in "
        "hours without a call to haiku"
    ) in console.file.getvalue()


# -- against the reference ---------------------------------------------------------------------------------------------


def random_calls(random: Random, count: int, hours: int) -> list[Record]:
    """Calls to models of which each is good in some hours and bad in others."""
    shares = {(model, place): random.random() for model in ("m", "n", "o", "unknown") for place in range(hours)}
    records = []
    for number in range(count):
        at = START + timedelta(minutes=random.randrange(hours * 60))
        model = random.choice(["m", "n", "n", "o", "unknown"])
        is_good = random.random() < shares[model, (at - START) // HOUR]
        record = {"type": "model_call", "call_id": f"c{number}", "model": model, "ended_at": at.isoformat()}
        records.append(record | {"status": "success" if is_good else "failure"})
    return records


@pytest.mark.parametrize(
    ("engine", "seed", "first", "count"),
    [("duckdb", 2, 0, 12), ("duckdb", 3, 9, 1), pytest.param("postgres", 4, 0, 12, marks=pytest.mark.nightly)],
)
def test_replays_of_random_logs_equal_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, seed: int, first: int, count: int
) -> None:
    monkeypatch.setenv("HEALTH_MODEL_WINDOW_CALLS", "6")
    project = Project(tmp_path / "project", None, WINDOW_HOURS, LOOKBACK_HOURS, engine=engine)
    for name, own in (("a.jsonl", Random(seed)), ("b.jsonl.gz", Random(seed + 100))):
        project.write_log(name, [line(record | {"call_id": f"{name} {record['call_id']}"})
                                 for record in random_calls(own, 100, 10)])  # fmt: skip
    hours = hours_from(START + first * HOUR, count)
    project.materialize(hours, only=STEPS)
    records = reference.deduplicate(reference.read_lines(project.raw)[0])
    expected = reference_model_fallback.model_fallback(records, list(hours), WINDOW_HOURS, KNOWN_HOURS, 6)
    found = project.rows("model_fallback", hours)
    assert_equal_rows(found, expected, ["hour", "model", "alternative"])
    assert set(columns_of("model_fallback")) - set(expected[0]) == {"formula_version"}
    assert {row["alternative"] == "" for row in found} == {row["avoided_failures"] is None for row in found}


def test_late_calls_and_any_order_of_hours_give_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALTH_MODEL_WINDOW_CALLS", "6")
    early, late = ([line(record) for record in random_calls(Random(seed), 80, 8)] for seed in (5, 6))
    late = [text.replace('"c', '"late c') for text in late]
    hours = hours_from(START, 8)
    clean, project = (Project(tmp_path / name, None, WINDOW_HOURS, LOOKBACK_HOURS) for name in ("clean", "project"))
    for one in (clean, project):
        one.write_log("early.jsonl", early)
    clean.write_log("late.jsonl", late)
    clean.materialize(hours, only=STEPS)
    project.materialize(HourRange.of(START + 7 * HOUR), only=STEPS)
    project.write_log("late.jsonl", late)
    project.materialize(hours, only=STEPS, only_stale=True)
    for place in (6, 0, 3):
        project.materialize(HourRange.of(START + place * HOUR), only=TABLES)
    assert_same_tables(project.tables(hours, TABLES), clean.tables(hours, TABLES))


def test_the_first_hour_that_is_asked_for_changes_nothing(tmp_path: Path) -> None:
    whole, alone = (Project(tmp_path / name, None, WINDOW_HOURS, LOOKBACK_HOURS) for name in ("whole", "alone"))
    last = HourRange.of(START + 9 * HOUR)
    for project, hours in ((whole, hours_from(START, 10)), (alone, last)):
        project.write_log("a.jsonl", [line(record) for record in random_calls(Random(7), 200, 10)])
        project.materialize(hours, only=STEPS)
    assert alone.rows("model_fallback", last)
    assert alone.rows("model_fallback", last) == whole.rows("model_fallback", last)


# -- what the intervals hold -------------------------------------------------------------------------------------------


def test_intervals_of_some_hours_hold_the_truth_nearly_always() -> None:
    """3,000 windows of 8 hours; the alternative is called seldom, and its true rate differs from hour to hour."""
    random = np.random.default_rng(11)
    windows, length = 3000, 8
    shape = (windows, length)
    rates, cases = random.beta(6, 1, shape), random.integers(3, 40, shape)
    failures, good = random.integers(0, 20, shape), random.binomial(cases, rates)
    components = pa.table(
        {
            "hour": pa.array([START + place * HOUR for place in range(length)] * windows, pa.timestamp("us", "UTC")),
            "model": np.repeat([f"m{place}" for place in range(windows)], length),
            "alternative": ["n"] * windows * length,
            "calls": failures.ravel(),
            "failures": failures.ravel(),
            "alternative_calls": cases.ravel(),
            "alternative_failures": (cases - good).ravel(),
        }
    )
    found = model_fallback(ibis.memtable(components), HourRange.of(START + (length - 1) * HOUR), length).to_pyarrow()
    truth = dict(
        zip((f"m{place}" for place in range(windows)), random.binomial(failures, rates).sum(axis=1), strict=True)
    )
    held = [
        row["avoided_failures_low"] <= truth[row["model"]] <= row["avoided_failures_high"] for row in found.to_pylist()
    ]
    assert len(held) == windows
    assert 0.94 < np.mean(held) < 1
