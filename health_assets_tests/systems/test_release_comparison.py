"""Release comparison: by hand, against the plain-Python reference, at any hour and order, and what people see of it."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import numpy as np
import pytest

from bench.release_measures import Costs, Runtimes, Tasks, simulated_costs, simulated_runtimes, simulated_tasks
from bench.releases import Release, simulated
from health_assets.core.hours import HOUR, HourRange
from health_assets.schema.catalog import columns_of
from health_assets.scoring.confidence_sequences import (
    Means,
    Shares,
    difference_of_means,
    difference_of_shares,
    fewest_for_quantile,
    quantile_ranks,
)
from health_assets.systems.release_comparison.names import MEASURES
from health_assets.systems.release_comparison.release_comparison import ALPHA
from health_assets_tests.support import reference, reference_release_comparison
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import ENGINES, Project, Row, assert_same_tables, hours_from
from health_assets_tests.systems.test_scores_equal_reference import assert_equal_rows

TABLES = ["release_components", "release_comparison"]
STEPS = ["ingest", "computed_signals", *TABLES]
LENGTH = 4
"""Comparison hours of the tests: half of a look-back of 8."""
MARGINS = (0.02, 0.1)


def runs(
    hour: int, count: int, version: str | None, *, failed: int = 0, agent_id: str = "a", **fields: object
) -> list[Record]:
    at = START + hour * HOUR
    return [
        execution(
            f"{agent_id} {version} {hour} {number}", agent_id, at + number * timedelta(seconds=1) + HOUR / 2,
            status="failure" if number < failed else "success", agent_version=version, **fields,
        )
        for number in range(count)
    ]  # fmt: skip


def compared(project: Project, records: Sequence[Record], hours: HourRange) -> list[Row]:
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours, only=STEPS)
    return sorted(project.rows("release_comparison"), key=lambda row: (row["hour"], row["measure"]))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", None, 2, 2 * LENGTH)


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_a_version_that_fails_more_is_worse_as_soon_as_the_interval_leaves_out_0(project: Project) -> None:
    records = [*runs(0, 100, "1", failed=5), *runs(1, 100, "1", failed=5), *runs(2, 60, "2", failed=3)]
    records += [*runs(3, 60, "2", failed=40), *runs(4, 60, "2", failed=40)]
    rows = [row for row in compared(project, records, hours_from(START, 6)) if row["measure"] == "success_rate"]
    assert [(row["hour"] - START) // HOUR for row in rows] == [2, 3, 4, 5]
    assert {(row["to_version"], row["from_version"], row["dimension"]) for row in rows} == {("2", "1", "version")}
    assert {row["released_at"] for row in rows} == {START + 2 * HOUR}
    assert {row["baseline_starts_at"] for row in rows} == {START - 2 * HOUR}
    assert [(row["n_from"], row["n_to"]) for row in rows] == [(200, 60), (200, 120), *[(200, 180)] * 2]
    assert [row["verdict"] for row in rows] == ["not_enough", "worse", "worse", "worse"]
    assert [row["estimate_to"] for row in rows] == [57 / 60, 77 / 120, *[97 / 180] * 2]
    assert rows[0]["low"] < 0 < rows[0]["high"]
    assert rows[1]["high"] < 0
    assert rows[0]["more_runs"] > 0
    assert rows[1]["more_runs"] is None


def test_a_version_is_compared_in_its_first_hours_with_the_one_that_ran_most_before(project: Project) -> None:
    """Version 1 ran long ago and 2 most, 3 is new in hour 5; and new again in hour 14, after more hours than that."""
    records = [
        *runs(0, 9, "1"),
        *runs(3, 5, "2"),
        *runs(4, 2, "1"),
        *runs(5, 3, "3"),
        *runs(9, 1, "2"),
        *runs(14, 1, "3"),
    ]
    rows = [row for row in compared(project, records, hours_from(START, 20)) if row["measure"] == "success_rate"]
    found = {((row["hour"] - START) // HOUR, row["to_version"], row["from_version"]) for row in rows}
    assert {one for one in found if one[1] == "3"} == {(hour, "3", "2") for hour in range(5, 9)}
    assert {one for one in found if one[1] == "2"} == {(hour, "2", "1") for hour in range(3, 7)} | {
        (hour, "2", "3") for hour in range(9, 13)
    }


def test_without_another_version_before_it_and_without_a_name_nothing_is_compared(project: Project) -> None:
    records = [*runs(0, 5, None), *runs(1, 5, "1"), *runs(2, 5, None), *runs(2, 5, "2", agent_id="b")]
    assert not compared(project, records, hours_from(START, 4))


def test_a_new_model_is_compared_apart_from_versions(project: Project) -> None:
    records = [*runs(0, 5, "1", model="small"), *runs(1, 5, "1", model="large", failed=1)]
    rows = compared(project, records, HourRange.of(START + HOUR))
    found = {(row["dimension"], row["to_version"], row["from_version"], row["measure"]) for row in rows}
    assert found == {
        ("model", "large", "small", measure)
        for measure in ("success_rate", "runtime", "latency_p50_ms", "latency_p95_ms")
    }


def test_components_hold_buckets_of_tokens_and_of_millionths_of_a_dollar(project: Project) -> None:
    records = [
        {**record, "input_tokens": tokens, "output_tokens": 100, "cost_usd": cost}
        for record, tokens, cost in zip(runs(0, 3, "1"), (9_900, 0, 900), (0.01, 0, 2.5), strict=True)
    ]
    compared(project, [*records, *runs(0, 1, "2")], HourRange.of(START))
    told, not_told = sorted(project.rows("release_components"), key=lambda row: row["agent_version"])
    assert told["token_buckets"] == sorted(_bucket(amount) for amount in (10_000, 100, 1_000))
    assert told["cost_buckets"] == [0, _bucket(10_000), _bucket(2_500_000)]
    assert not_told["token_buckets"] is None
    assert not_told["cost_buckets"] is None


def _bucket(amount: float) -> int:
    return math.floor(math.log(amount) / math.log(1.02)) + 1


def test_amounts_have_an_interval_once_each_side_has_100_executions(project: Project) -> None:
    random = Random(1)
    records = [
        {**record, "cost_usd": (1 if record["agent_version"] == "1" else 2) * random.uniform(0.5, 1.5)}
        for record in [*runs(0, 120, "1"), *runs(1, 99, "2"), *runs(2, 1, "2")]
    ]
    rows = [row for row in compared(project, records, hours_from(START, 3)) if row["measure"] == "cost_per_success_usd"]
    few, enough = rows
    assert (few["low"], few["verdict"], few["more_runs"]) == (None, "not_enough", 1)
    assert few["difference"] == pytest.approx(1, abs=0.2)
    assert enough["verdict"] == "worse"
    assert 0 < enough["low"] < enough["difference"] < enough["high"]


def test_cost_per_success_is_the_cost_of_all_runs_over_those_that_succeed(project: Project) -> None:
    """The same cost a run, and half as many successes; runs without a cost do not count."""
    records = [{**record, "cost_usd": 1 + number % 2} for number, record in enumerate(runs(0, 120, "1"))]
    records += [{**record, "cost_usd": 1 + number % 2} for number, record in enumerate(runs(1, 120, "2", failed=60))]
    records += runs(1, 30, "2", failed=30, agent_id="a without cost")
    rows = compared(project, [{**record, "agent_id": "a"} for record in records], hours_from(START, 2))
    [row] = [row for row in rows if row["measure"] == "cost_per_success_usd"]
    assert (row["n_from"], row["n_to"], row["estimate_from"], row["estimate_to"]) == (120, 120, 1.5, 3.0)
    assert (row["verdict"], row["difference"]) == ("worse", 1.0)
    assert 0 < row["low"] < 1 < row["high"]


def test_cost_per_success_has_no_interval_while_a_side_hardly_ever_succeeds(project: Project) -> None:
    """No success of the new version in its first hour, and few in the second: any cost per success is possible."""
    failing = [*runs(1, 150, "2", failed=150), *runs(2, 150, "2", failed=148)]
    records = [{**record, "cost_usd": 1.0} for record in [*runs(0, 150, "1"), *failing]]
    rows = compared(project, records, hours_from(START, 3))
    none, few = [row for row in rows if row["measure"] == "cost_per_success_usd"]
    assert (none["estimate_to"], none["difference"]) == (None, None)
    assert (few["estimate_to"], few["difference"]) == (150, 149)
    assert {(row["estimate_from"], row["low"], row["high"], row["verdict"]) for row in (none, few)} == {
        (1, None, None, "not_enough")
    }


def test_a_difference_within_the_margin_is_none_that_matters(project: Project) -> None:
    """Equal runtimes of 60 s, for all that buckets tell."""
    rows = compared(project, [*runs(0, 120, "1"), *runs(1, 120, "2")], hours_from(START, 2))
    [runtime] = [row for row in rows if row["measure"] == "runtime"]
    assert (runtime["verdict"], runtime["difference"]) == ("no_difference", 0)
    assert -0.1 < runtime["low"] < 0 < runtime["high"] < 0.1


def test_quantiles_have_an_interval_of_bucket_ends_once_enough_runs_tell_of_them(project: Project) -> None:
    """Runtimes of 10 s, and of 20 s with the new version, of which a tenth takes 100 s."""
    records = [*runs(0, 200, "1", runtime_s=10), *runs(1, 20, "2", runtime_s=20)]
    records += [*runs(2, 180, "2", runtime_s=20), *runs(3, 20, "2", runtime_s=100)]
    found = {(row["hour"], row["measure"]): row for row in compared(project, records, hours_from(START, 4))}
    few, median, most = (
        found[START + hour * HOUR, measure]
        for hour, measure in ((1, "latency_p50_ms"), (3, "latency_p50_ms"), (3, "latency_p95_ms"))
    )
    assert (few["low"], few["verdict"], few["more_runs"]) == (None, "not_enough", 4)
    assert median["estimate_to"] == pytest.approx(20_000, rel=0.01)
    assert 1.02**-1.01 < (median["low"] + 1) / 2 < 1 < (median["high"] + 1) / 2 < 1.02**1.01
    assert (most["verdict"], most["n_from"], most["n_to"]) == ("worse", 200, 220)
    assert most["estimate_to"] == pytest.approx(100_000, rel=0.01)
    assert (most["low"], most["high"]) == pytest.approx((1, 9), rel=0.05)


def test_violations_are_of_judged_executions_and_follow_the_verdict_that_counts(project: Project) -> None:
    violated = [{"constraint": "c", "severity": "low"}]
    records = [
        *runs(0, 10, "1", violations=[]), *runs(1, 10, "2"),
        *(judgement(f"a 2 1 {number}", 1, violated) for number in range(5)),
        *(judgement(f"a 2 1 {number}", 3, []) for number in range(2)),
        judgement("a 2 1 9", 3, []),
    ]  # fmt: skip
    project.write_log("judgements/a.jsonl", [line(record) for record in records if record["type"] == "judgement"])
    rows = compared(project, [one for one in records if one["type"] != "judgement"], hours_from(START, 5))
    found = [row for row in rows if row["measure"] == "violation_share"]
    assert {(row["n_from"], row["estimate_from"]) for row in found} == {(10, 0.0)}
    assert [((row["hour"] - START) // HOUR, row["n_to"], row["estimate_to"]) for row in found] == [
        (1, 5, 1.0), (2, 5, 1.0), (3, 6, 0.5), (4, 6, 0.5),
    ]  # fmt: skip


def test_harder_tasks_are_told_apart_from_a_worse_version(project: Project) -> None:
    """Each version fails half of the hard tasks and none of the easy ones; the new one runs more hard ones."""
    records = [
        *of_tasks(1, "1", easy=160, hard=40), *of_tasks(4, "1", easy=160, hard=40), *of_tasks(5, "2", easy=60, hard=240)
    ]  # fmt: skip
    rows = {row["measure"]: row for row in compared(project, records, HourRange.of(START + 5 * HOUR))}
    plain, same = rows["success_rate"], rows["success_rate_same_tasks"]
    assert (plain["verdict"], plain["estimate_from"], plain["estimate_to"]) == ("worse", 0.9, 0.6)
    assert (same["estimate_from"], same["estimate_to"]) == pytest.approx((0.9, 0.9))
    assert same["low"] < 0 < same["high"]
    assert {(row["is_mix_changed"], round(row["mix_shift"], 9)) for row in rows.values()} == {(True, 0.6)}


def test_the_same_tasks_are_no_change_of_mix(project: Project) -> None:
    records = [
        *of_tasks(1, "1", easy=160, hard=40), *of_tasks(4, "1", easy=160, hard=40), *of_tasks(5, "2", easy=80, hard=20)
    ]  # fmt: skip
    rows = compared(project, records, HourRange.of(START + 5 * HOUR))
    assert {(row["is_mix_changed"], row["mix_shift"]) for row in rows} == {(False, 0.0)}


def of_tasks(hour: int, version: str, *, easy: int, hard: int) -> list[Record]:
    """Executions of two tasks, of which the hard one fails every second time."""
    found = []
    for number, record in enumerate(runs(hour, easy + hard, version)):
        is_hard = number >= easy
        status = "failure" if is_hard and number % 2 else "success"
        found.append({**record, "task_id": "hard" if is_hard else "easy", "status": status})
    return found


def judgement(execution_id: str, hour: int, violations: list[Record]) -> Record:
    at = (START + hour * HOUR + HOUR / 2).isoformat()
    return {"type": "judgement", "execution_id": execution_id, "at": at, "judged_by": "model", "violations": violations}


# -- against the reference ---------------------------------------------------------------------------------------------


def random_records(random: Random, count: int, hours: int) -> list[Record]:
    """Agents whose versions and models follow one another, or run side by side, with and without amounts."""
    records = []
    for number in range(count):
        at = START + random.randrange(hours * 3600) * timedelta(seconds=1)
        place = (at - START) // HOUR
        agent_id = random.choice(["a", "a", "a", "b", "gone"])
        version = random.choice([None, "1", f"{place // 5}", f"{place // 5}"])
        rate = 0.9 if place < hours / 2 else 0.7
        tasks = ["t" * (1 + random.randrange(9 if place < 10 else random.choice([9, 1, 1]))) for _ in range(5)]
        fields = {
            "agent_version": version,
            "model": random.choice([None, "m", "n"]) if place > 3 else "m",
            "session_id": random.choice([None, f"{agent_id} {place} {random.randrange(9)}"]),
            "input_tokens": random.choice([None, 0, random.randrange(10**4)]),
            "output_tokens": random.choice([None, random.randrange(10**9)]),
            "cost_usd": random.choice([None, 0, random.random(), random.random() * 10**5]),
            "task_id": random.choice([None, *tasks]) if agent_id == "a" else None,
            "violations": random.choice([None, None, None, [], [{"constraint": "c", "severity": "low"}]]),
            "started_at": (at - random.choice([0, 1, 60]) * random.random() * timedelta(seconds=1)).isoformat(),
        }
        status = "success" if random.random() < rate else "failure"
        records.append(execution(f"e{number}", agent_id, at, status=status, **fields))
        records += random_calls(random, f"e{number}", agent_id, at)
        records += random_judgements(random, f"e{number}", agent_id, at)
    return records


def random_judgements(random: Random, execution_id: str, agent_id: str, at: datetime) -> list[Record]:
    """Judgements of an execution, some of them hours later; none of most."""
    return [
        {
            "type": "judgement", "execution_id": execution_id,
            "at": (at + random.choice([0, 1, 5000, 20_000]) * timedelta(seconds=1)).isoformat(),
            "judged_by": random.choice(["model", "person"]),
            "violations": random.choice([[], [{"constraint": "c", "severity": "high"}]]),
            **random.choice([{}, {"agent_id": agent_id}]),
        }
        for _ in range(random.choice([0, 0, 0, 0, 1, 2]))
    ]  # fmt: skip


def write_logs(project: Project, records: Sequence[Record]) -> None:
    """Judgements go where the project's own judges write them."""
    for name, is_judgement in (("judgements/a.jsonl", True), ("a.jsonl", False)):
        project.write_log(name, [line(one) for one in records if (one["type"] == "judgement") is is_judgement])


def random_calls(random: Random, execution_id: str, agent_id: str, at: datetime) -> list[Record]:
    """Calls of an execution, of which some fail or repeat each other; none of most."""
    calls = []
    for place in range(random.choice([0, 0, 0, 1, 3])):
        call = {
            "call_id": f"{execution_id} {place}", "execution_id": execution_id, "agent_id": agent_id,
            "ended_at": (at - random.randrange(600) * timedelta(seconds=1)).isoformat(),
            "status": random.choice(["success", "success", "failure"]),
        }  # fmt: skip
        if random.random() < 0.8:
            asked = {"arguments": {"q": random.randrange(3)}} if random.random() < 0.8 else {}
            calls.append({"type": "tool_call", "tool": "search", "result": "x", **asked, **call})
        else:
            calls.append({"type": "model_call", "model": "m", "output": random.choice(["y", "z"]), **call})
    return calls


@pytest.mark.parametrize(
    ("seed", "count", "hours"), [(1, 3200, 12), pytest.param(2, 4000, 30, marks=pytest.mark.nightly)]
)
def test_comparisons_of_random_logs_equal_the_reference_and_one_hour_equals_its_part_of_a_range(
    tmp_path: Path, seed: int, count: int, hours: int
) -> None:
    project = Project(tmp_path / "project", {"agents": {"gone": {"retired": True}}}, 2, 2 * LENGTH)
    write_logs(project, random_records(Random(seed), count, hours))
    span = hours_from(START, hours + LENGTH)
    project.materialize(span, only=STEPS)
    records, _ = reference.read_lines(project.raw)
    kept = [record for record in records if record.get("agent_id") != "gone"]
    expected = reference_release_comparison.release_comparison(kept, list(span), LENGTH, *MARGINS)
    rows = project.rows("release_comparison", span)
    keys = ["hour", "agent_id", "dimension", "to_version", "measure"]
    assert_equal_rows(rows, expected, keys)
    assert set(columns_of("release_comparison")) - set(expected[0]) == {"formula_version"}
    assert {row["measure"] for row in rows} == {*MEASURES}
    for measure in ("tokens", "latency_p50_ms", "cost_per_success_usd"):
        assert sum(row["low"] is not None for row in rows if row["measure"] == measure) > 0
    assert {row["mix_shift"] is None for row in rows} == {False, True}
    made = project.tables(span, TABLES)
    for hour in span:
        project.materialize(HourRange.of(hour), only=TABLES)
    assert_same_tables(project.tables(span, TABLES), made)


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "duckdb"])
def test_other_engines_have_the_same_comparisons(tmp_path: Path, engine: str) -> None:
    project = Project(tmp_path / "project", None, 2, 2 * LENGTH, engine=engine)
    write_logs(project, random_records(Random(3), 400, 8))
    span = hours_from(START, 8)
    project.materialize(span, only=STEPS)
    records, _ = reference.read_lines(project.raw)
    expected = reference_release_comparison.release_comparison(records, list(span), LENGTH, *MARGINS)
    keys = ["hour", "agent_id", "dimension", "to_version", "measure"]
    assert_equal_rows(project.rows("release_comparison", span), expected, keys)


def test_late_records_give_the_same_tables(tmp_path: Path) -> None:
    random = Random(5)
    early, late = ([line(record) for record in random_records(random, 200, 6)] for _ in range(2))
    hours = hours_from(START, 7)
    clean, project = (Project(tmp_path / name, None, 2, 2 * LENGTH) for name in ("clean", "project"))
    for one in (clean, project):
        one.write_log("early.jsonl", early)
    clean.write_log("late.jsonl", late)
    clean.materialize(hours, only=STEPS)
    project.materialize(hours, only=STEPS)
    project.write_log("late.jsonl", late)
    project.materialize(hours, only=STEPS, only_stale=True)
    assert_same_tables(project.tables(hours, TABLES), clean.tables(hours, TABLES))


# -- confidence sequences ----------------------------------------------------------------------------------------------


def shares_of(count: int, successes: int) -> Shares:
    return Shares(
        runs=np.array([float(count)]), successes=np.array([float(successes)]), prior_successes=np.array([0.5]),
        prior_failures=np.array([3.5]),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [((100, 95), (50, 40)), ((0, 0), (1, 0)), ((1, 1), (0, 0)), ((5, 0), (5, 5)), ((5, 5), (5, 0)), ((3, 3), (4, 4)),
     ((100_000, 93_000), (40, 39)), ((1, 0), (10**6, 999_999)), ((200, 100), (300, 150))],
)  # fmt: skip
def test_intervals_of_shares_equal_those_of_root_finding(old: tuple[int, int], new: tuple[int, int]) -> None:
    sides = [shares_of(*side) for side in (old, new)]
    (low,), (high,) = difference_of_shares(*sides, ALPHA)
    of_old, of_new = (reference_release_comparison.evidence(*side, 0.5, 3.5) for side in (old, new))
    assert high == pytest.approx(reference_release_comparison.greatest(of_old, of_new), abs=1e-9)
    assert low == pytest.approx(-reference_release_comparison.greatest(of_new, of_old), abs=1e-9)
    assert -1 <= low <= high <= 1


def test_without_any_run_nothing_is_known() -> None:
    nothing = shares_of(0, 0)
    assert difference_of_shares(nothing, nothing, ALPHA) == (np.array([-1.0]), np.array([1.0]))
    unknown = Means(*(np.array([value]) for value in (0.0, math.nan, math.nan)))
    known = Means(*(np.array([value]) for value in (200.0, 1.0, 1.0)))
    assert not np.isfinite(difference_of_means(unknown, known, ALPHA)).any()


def test_ranks_of_quantiles_are_all_where_nothing_contradicts_them() -> None:
    low, high = quantile_ranks(np.array([1, 10, 10, 1000]), 0.5, ALPHA)
    assert list(low[:1]) == [0] and list(high[:1]) == [2]
    assert low[1] == low[2] and high[1] == high[2]
    assert 400 < low[3] < 500 < high[3] < 600
    fewest = fewest_for_quantile(0.95, ALPHA)
    ends = [quantile_ranks(np.array([runs]), 0.95, ALPHA)[1][0] - runs for runs in (fewest - 1, fewest)]
    assert (ends[0], ends[1] <= 0) == (1, True)


@pytest.mark.parametrize(
    ("release", "least_naive"),
    [
        (Release(name="nothing changed", old=0.9, new=0.9, old_per_hour=5, new_per_hour=5), 0.2),
        (Release(name="few runs", old=0.9, new=0.9, old_per_hour=0.2, new_per_hour=0.2), 0.0),
        (Release(name="sessions", old=0.9, new=0.9, session_runs=5), 0.5),
        (Release(name="beside", old=0.7, new=0.7, new_per_hour=1, beside_per_hour=9, is_bursty=True), 0.05),
    ],
    ids=lambda value: value.name if isinstance(value, Release) else None,
)
def test_a_release_that_changed_nothing_seldom_has_a_verdict_although_every_hour_is_looked_at(
    release: Release, least_naive: float
) -> None:
    """500 comparisons of 100 hours; a test at 5 % at every hour is wrong far more often."""
    found = simulated(release, 500, 100, seed=7)
    assert found.wrong <= 0.05
    assert found.naive_wrong >= least_naive


def test_quantiles_that_did_not_change_seldom_have_a_verdict_and_slower_ones_are_found() -> None:
    """100 comparisons of 60 hours, each looked at after every hour."""
    same = simulated_runtimes(Runtimes(name="same"), 100, 60, seed=7)
    ties = simulated_runtimes(Runtimes(name="ties", spread=0.0), 100, 60, seed=7)
    for found in (*same.values(), *ties.values()):
        assert found.worse + found.better <= 0.05
    slower = simulated_runtimes(Runtimes(name="slower", slower=2.5), 100, 60, seed=7)
    for found in slower.values():
        assert (found.worse > 0.9, found.better) == (True, 0.0)
        assert found.hours is not None


@pytest.mark.parametrize("changes", [{}, {"spread": 2.0}, {"old_rate": 0.995, "new_rate": 0.995, "spread": 0.0}])
def test_costs_per_success_that_did_not_change_seldom_have_a_verdict(changes: dict[str, float]) -> None:
    """200 comparisons of 60 hours, of ordinary costs, of a few great ones, and of costs that are all the same."""
    found = simulated_costs(Costs(name="same", **changes), 200, 60, seed=7)  # type: ignore[arg-type]
    assert found.worse + found.better <= 0.05


def test_a_greater_cost_per_success_is_found_whether_runs_cost_more_or_fail_more() -> None:
    for changes in ({"cost_factor": 2.0}, {"new_rate": 0.5}):
        found = simulated_costs(Costs(name="worse", **changes), 200, 60, seed=7)  # type: ignore[arg-type]
        assert (found.worse > 0.9, found.better) == (True, 0.0)


def test_another_mix_of_tasks_is_told_apart_from_a_worse_version_although_every_hour_is_looked_at() -> None:
    """100 comparisons of 60 hours."""
    same, same_mix = simulated_tasks(Tasks(name="same", per_hour=20), 100, 60, seed=7)
    assert same.worse + same.better <= 0.05
    assert same_mix <= 0.05
    other = Tasks(name="harder", new_mix=(0.4, 0.3, 0.3), per_hour=20)
    harder, harder_mix = simulated_tasks(other, 100, 60, seed=7)
    assert harder.worse + harder.better <= 0.05
    assert harder_mix == 1
    lower = Tasks(name="worse", new_rates=(0.83, 0.65, 0.35), per_hour=20)
    worse, worse_mix = simulated_tasks(lower, 100, 60, seed=7)
    assert (worse.worse > 0.9, worse.better, worse_mix <= 0.05) == (True, 0.0, True)


def test_a_release_that_is_worse_is_found_nearly_as_soon_as_by_a_single_test() -> None:
    found = simulated(Release(name="worse", old=0.95, new=0.85), 500, 60, seed=7)
    assert found.wrong == 0
    assert found.found > 0.9
    assert found.fixed_hours is not None
    assert found.hours is not None
    assert found.fixed_hours < found.hours < 3 * found.fixed_hours
