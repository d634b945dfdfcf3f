"""The Agent Health State: worked examples, the plain-Python reference, and any order of work with the same end."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from health_assets.apps.report.blocks import print_health
from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline.retention import prune
from health_assets.schema.catalog import columns_of
from health_assets.scoring.latency_buckets import LAST_BUCKET, bucket_of, latency_ms
from health_assets.scoring.range_ranks import kth_smallest
from health_assets.scoring.window_latencies import sliding_window_buckets, window_buckets
from health_assets.systems.pruning import PRUNED_COMPONENTS
from health_assets_tests.support import reference
from health_assets_tests.support import reference_agent_health_state as state_reference
from health_assets_tests.support.logs_made import (
    AGENTS,
    START,
    Record,
    cut_into_files,
    execution,
    line,
    random_lines,
    random_targets,
)
from health_assets_tests.support.projects import (
    Project,
    Row,
    assert_same_tables,
    hours_from,
    needs_real_logs,
)

STEPS = ["ingest", "health_components", "state_components", "agent_changes", "agent_health_state"]
LATENCIES = ("latency_p50_ms", "latency_p99_ms")
WITHIN = 0.01
MINUTE = timedelta(minutes=1)


def update(agent_id: str, at: datetime, kind: str) -> Record:
    return {"type": "agent_update", "agent_id": agent_id, "at": at.isoformat(), "kind": kind}


def runs(
    agent_id: str, start: datetime, count: int, failures: int = 0, runtime_s: float = 2.0, **fields: Any
) -> list[Record]:
    """Executions a minute apart, of which the first ones failed."""
    return [
        execution(
            f"{agent_id} {start:%d%H%M} {place}", agent_id, start + place * MINUTE, runtime_s,
            status="failure" if place < failures else "success", **fields,
        )
        for place in range(count)
    ]  # fmt: skip


def states(
    project: Project, records: Sequence[Record], hours: HourRange, name: str = "a.jsonl"
) -> dict[tuple[datetime, str], Row]:
    """Rows of `agent_health_state` by hour and agent, once these records are materialized."""
    project.write_log(name, [line(record) for record in records])
    project.materialize(hours, only=STEPS)
    return {(row["hour"], row["agent_id"]): row for row in project.rows("agent_health_state")}


def assert_states_equal_the_reference(project: Project, hours: Sequence[datetime]) -> list[Row]:
    """Every column of every row; returns the rows."""
    records, _ = reference.read_lines(project.raw)
    expected = state_reference.agent_health_state(
        records,
        project.targets or {},
        list(hours),
        project.window_hours,
        project.lookback_hours,
        min(project.built_hours("agent_changes")),
    )
    found = project.rows("agent_health_state")
    by_key = {(row["hour"], row["agent_id"]): row for row in found}
    assert len(by_key) == len(found)
    assert by_key.keys() == {(row["hour"], row["agent_id"]) for row in expected}
    for row in expected:
        own = by_key[row["hour"], row["agent_id"]]
        wrong = {name: (own[name], value) for name, value in row.items() if not is_equal(name, own[name], value)}
        assert not wrong, f"{row['hour']} {row['agent_id']}: (found, expected) is {wrong}"
    return found


def is_equal(name: str, found: Any, expected: Any) -> bool:
    if isinstance(found, float) and expected is not None:
        return math.isclose(found, expected, rel_tol=WITHIN if name in LATENCIES else 1e-12)
    return found == expected and type(found) is type(expected)


# -- worked examples -----------------------------------------------------------------------------------------------------


STATUSES = [  # executions, failures, status
    (0, 0, "unknown"),
    (9, 0, "unknown"),
    (9, 9, "unknown"),
    (10, 0, "healthy"),
    (20, 1, "healthy"),  # 19 of 20 is 0.95
    (19, 1, "degraded"),  # 18 of 19 is 0.947
    (10, 5, "degraded"),  # 0.50
    (11, 6, "unhealthy"),  # 5 of 11 is 0.45
    (10, 10, "unhealthy"),
]
SLOWEST = {"just below": (29.0, "healthy"), "just above": (31.0, "degraded")}
"""Of agents with 50 executions of 2 s, how long one more takes, and the status where the baseline is 10 s."""


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """By agent, the rows of one hour that the tests below look at."""
    agents = {str(place): {} for place in range(len(STATUSES))} | {"listed": {}, "gone": {"retired": True}}
    targets = {"defaults": {"baseline_latency_ms": 10_000}, "agents": agents}
    seconds = list(range(1, 201))
    Random(1).shuffle(seconds)
    records = [
        *(one for place, (count, failures, _) in enumerate(STATUSES) for one in runs(str(place), START, count, failures)),
        *(one for agent in SLOWEST for one in runs(agent, START, 50)),
        *(execution(agent, agent, START + 55 * MINUTE, runtime_s) for agent, (runtime_s, _) in SLOWEST.items()),
        *(execution(f"e{s}", "1 to 200 s", START + place * MINUTE / 5, s) for place, s in enumerate(seconds)),
        *runs("gone", START, 10),
    ]  # fmt: skip
    project = Project(tmp_path_factory.mktemp("examples") / "project", targets)
    return {agent_id: row for (_, agent_id), row in states(project, records, HourRange.of(START)).items()}


def test_the_status_follows_from_the_number_of_samples_and_the_response_ratio(examples: dict[str, Row]) -> None:
    for place, (count, failures, status) in enumerate(STATUSES):
        row = examples[str(place)]
        assert (row["status"], row["sample_count"]) == (status, count)
        assert row["response_ratio"] == ((count - failures) / count if count else None)
        assert row["error_ratio"] == (failures / count if count else None)
        assert row["last_healthy_at"] == (START + HOUR if status == "healthy" else None)


def test_an_agent_whose_p99_is_over_three_times_its_baseline_is_degraded(examples: dict[str, Row]) -> None:
    for agent, (runtime_s, status) in SLOWEST.items():
        row = examples[agent]
        assert row["latency_p50_ms"] == pytest.approx(2_000, rel=WITHIN)
        assert row["latency_p99_ms"] == pytest.approx(runtime_s * 1000, rel=WITHIN)  # rank 51 of 51
        assert (row["status"], row["baseline_latency_ms"]) == (status, 10_000)


def test_the_quantiles_are_those_at_the_nearest_ranks(examples: dict[str, Row]) -> None:
    """Of 200 runtimes of 1 to 200 s, rank 100 is the median and rank 198 the 99th percentile."""
    row = examples["1 to 200 s"]
    assert row["latency_p50_ms"] == pytest.approx(100_000, rel=WITHIN)
    assert row["latency_p99_ms"] == pytest.approx(198_000, rel=WITHIN)


def test_a_retired_agent_has_no_document_and_one_that_is_only_listed_is_unknown(examples: dict[str, Row]) -> None:
    assert "gone" not in examples
    listed = examples["listed"]
    assert (listed["status"], listed["sample_count"], listed["calibration_trend"]) == ("unknown", 0, "stable")
    assert listed["latency_p50_ms"] is None
    assert listed["measurement_window_seconds"] == 86_400


TRENDS = [  # executions and failures of the window before, those of the window, trend
    ((10, 1), (10, 0), "stable"),  # 0.9 to 1.0: a change of 0.10 is not more than 0.10
    ((10, 0), (10, 1), "stable"),
    ((10, 3), (10, 2), "stable"),  # 0.7 to 0.8, which is more than 0.10 for binary doubles
    ((10, 2), (10, 3), "stable"),
    ((10, 2), (10, 0), "improving"),
    ((20, 0), (19, 2), "declining"),  # 1.0 to 0.895
    ((0, 0), (10, 10), "stable"),
    ((10, 10), (0, 0), "stable"),
    ((1, 1), (1, 0), "improving"),
]
CAPABILITY_UPDATES = [START + MINUTE, START + 2 * MINUTE, START + HOUR + MINUTE]
SHOWN_MODELS = [  # minutes from the start, model
    (0, "m1"), (5, None), (10, "m1"), (65, "m2"), (66, None), (125, "m2"), (126, "m1"), (138, "m2"), (180, "m2"),
]  # fmt: skip


@pytest.fixture(scope="module")
def five_hours(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[datetime, str], Row]:
    """By hour and agent, the rows of five hours with windows of one and a look-back of 3, for the tests below."""
    agents = {"never seen": {}, "updated": {}} | {f"trend {place}": {} for place in range(len(TRENDS))}
    project = Project(tmp_path_factory.mktemp("hours") / "project", {"agents": agents}, 1, 3)
    for name, models in [("1.jsonl", {"tie a": "m1", "tie b": "m2"}), ("2.jsonl", {"tie a": "m2", "tie b": "m1"})]:
        ties = [execution(f"{name} {agent}", agent, START + 30 * MINUTE, model=m) for agent, m in models.items()]
        project.write_log(name, [line(record) for record in ties])
    records = [
        *(execution(agent, agent, START + 40 * MINUTE, model="m2") for agent in ("tie a", "tie b")),
        *(
            record
            for place, (before, now, _) in enumerate(TRENDS)
            for record in [*runs(f"trend {place}", START, *before), *runs(f"trend {place}", START + HOUR, *now)]
        ),
        execution("e", "a", START + 10 * MINUTE, 60),
        update("a", START + 20 * MINUTE, "restart"),
        update("a", START + HOUR + 6 * MINUTE, "restart"),
        {"type": "trigger", "trigger_id": "t", "agent_id": "b", "fired_at": (START + 30 * MINUTE).isoformat(),
         "status": "fired"},
        execution("late", "b", START + 2 * HOUR),
        *(update("updated", moment, "capability_update") for moment in CAPABILITY_UPDATES),
        *(
            execution(f"m{place}", "models", START + minute * MINUTE, **({"model": model} if model else {}))
            for place, (minute, model) in enumerate(SHOWN_MODELS)
        ),
        update("models", START + 3 * HOUR + 12 * MINUTE, "model_change"),
    ]  # fmt: skip
    return states(project, records, hours_from(START, 5), "3.jsonl")


def test_a_change_of_the_response_ratio_by_more_than_a_tenth_is_a_trend(
    five_hours: dict[tuple[datetime, str], Row],
) -> None:
    for place, ((count, failures), _, trend) in enumerate(TRENDS):
        row = five_hours[START + HOUR, f"trend {place}"]
        assert row["calibration_trend"] == trend, TRENDS[place]
        assert row["previous_response_ratio"] == ((count - failures) / count if count else None)


def test_uptime_counts_from_the_latest_restart_and_is_not_known_without_one(
    five_hours: dict[tuple[datetime, str], Row],
) -> None:
    uptimes = [five_hours[START + n * HOUR, "a"]["uptime_seconds"] for n in range(4)]
    assert uptimes == [2400, 54 * 60, 114 * 60, 174 * 60]
    assert [five_hours[START + n * HOUR, "b"]["uptime_seconds"] for n in range(5)] == [None] * 5
    assert (START + 4 * HOUR, "a") not in five_hours
    assert five_hours[START, "never seen"]["uptime_seconds"] is None


def changing(place: str = "") -> list[Record]:
    """Two agents whose changes lie before the look-back of 3 hours, and one without any."""
    a, b, c = (f"{agent}{place}" for agent in "abc")
    return [
        update(a, START + 30 * MINUTE, "restart"),
        update(a, START + 31 * MINUTE, "capability_update"),
        execution(f"{a}1", a, START + 32 * MINUTE, model="m1"),
        execution(f"{a}2", a, START + HOUR, model="m2"),
        *(execution(f"{a}{n}", a, START + n * HOUR, model="m2") for n in (3, 5, 7, 12)),
        execution(f"{b}1", b, START, model="m1"),
        execution(f"{b}2", b, START + 9 * HOUR, model="m2"),
        *(execution(f"{c}{n}", c, START + n * HOUR, model="m1") for n in range(13)),
    ]


def told_changes(project: Project) -> dict[tuple[int, str], tuple[Any, ...]]:
    """By hour and agent, how long ago in hours each change was; None where there was none."""
    told: dict[tuple[int, str], tuple[Any, ...]] = {}
    for row in project.rows("agent_health_state"):
        hour, updated = (row["hour"] - START) // HOUR, row["last_capability_update"]
        told[hour, row["agent_id"]] = (
            None if row["uptime_seconds"] is None else row["uptime_seconds"] / 3600,
            None if row["days_since_model_change"] is None else round(row["days_since_model_change"] * 24, 6),
            None if updated is None else (updated - START) / HOUR,
        )
    return told


@pytest.fixture(scope="module")
def changed_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The agents of `changing` in 13 hours that were made at once; tests change only copies."""
    project = Project(tmp_path_factory.mktemp("changed") / "project", window_hours=1, lookback_hours=3)
    states(project, changing(), hours_from(START, 13))
    return project


def test_changes_are_told_however_long_ago_they_were(changed_once: Project) -> None:
    told = told_changes(changed_once)
    assert told[0, "a"] == (0.5, None, 31 / 60)
    assert told[12, "a"] == (12.5, 12.0, 31 / 60), (
        "the look-back has seen none of it for hours, and no agent in hour 10"
    )
    assert (told[8, "c"], told[9, "b"], told[11, "b"]) == ((None, None, None), (None, 1.0, None), (None, 3.0, None))
    rows = [(row["agent_id"], (row["hour"] - START) // HOUR) for row in changed_once.rows("agent_changes")]
    assert sorted(rows) == [("a", 0), ("a", 1), ("a", 12), ("b", 0), ("b", 9), ("c", 0)]


@pytest.mark.nightly  # the test of what is carried forward stands for it
def test_changes_are_the_same_in_whatever_order_hours_are_materialized(tmp_path: Path, changed_once: Project) -> None:
    project = Project(tmp_path / "project", window_hours=1, lookback_hours=3)
    project.write_log("a.jsonl", [line(record) for record in changing()])
    for first in (12, 4, 9, 0, 6, 2):
        project.materialize(hours_from(START + first * HOUR, min(3, 13 - first)), only=STEPS)
    assert_same_tables(
        project.tables(names=["agent_changes", "agent_health_state"]),
        changed_once.tables(names=["agent_changes", "agent_health_state"]),
    )


LATE_CHANGES = [
    [update("a 0", START + 45 * MINUTE, "restart")],
    [update("c 1", START + 45 * MINUTE, "model_change")],
    [execution("b late", "b 2", START + 45 * MINUTE, model="m2")],
    [execution("c late", "c 3", START + 45 * MINUTE, model="m0")],
    [update("b 4", START + 45 * MINUTE, "capability_update"), update("a 4", START + 10 * MINUTE, "restart")],
]
"""Each of agents of its own, those of `changing` at its place."""


def test_a_late_change_is_told_in_every_later_hour_and_gone_with_its_line(tmp_path: Path) -> None:
    project, touched = Project(tmp_path / "project", window_hours=1, lookback_hours=3), hours_from(START, 3)
    records = [record for place in range(len(LATE_CHANGES)) for record in changing(f" {place}")]
    states(project, records, hours_from(START, 13))
    before = told_changes(project)
    project.write_log("late.jsonl", [line(record) for change in LATE_CHANGES for record in change])
    project.materialize(touched, only=STEPS)
    told = told_changes(project)
    changed = {agent for (_, agent), changes in told.items() if before.get((_, agent)) != changes}
    assert changed == {record["agent_id"] for change in LATE_CHANGES for record in change} - {"a 4"}
    assert_states_equal_the_reference(project, list(hours_from(START, 13)))
    project.write_log("late.jsonl", [])
    project.materialize(touched, only=STEPS)
    assert told_changes(project) == before
    assert_states_equal_the_reference(project, list(hours_from(START, 13)))


def test_changes_outlive_what_retention_drops(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", window_hours=1, lookback_hours=3)
    states(project, changing(), hours_from(START, 12))
    prune(project.warehouse, PRUNED_COMPONENTS, START + 6 * HOUR, 3)
    project.materialize(HourRange.of(START + 12 * HOUR), only=STEPS)
    assert told_changes(project)[12, "a"] == (12.5, 12.0, 31 / 60)
    assert_states_equal_the_reference(project, list(hours_from(START, 13)))


def random_changes(random: Random, hours: Sequence[datetime], name: str) -> list[Record]:
    """Agents that come and go, restart, and change their models; one is busy enough to have a status."""
    records: list[Record] = []
    for hour in hours:
        for agent in "abc":
            at = hour + random.randrange(60) * MINUTE
            if random.random() < 0.3:
                records.append(execution(f"{agent} {at} {name}", agent, at, model=random.choice([None, "m1", "m2"])))
            if random.random() < 0.12:
                kind = random.choice(["restart", "model_change", "capability_update"])
                records.append(update(agent, at + random.randrange(60) * timedelta(seconds=1), kind))
        if random.random() < 0.4:
            records += runs("busy", hour, 10, random.choice([0, 0, 10]))
    return records


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.nightly), pytest.param(3, marks=pytest.mark.nightly)]
)
def test_what_is_carried_forward_follows_from_the_logs_whatever_was_done_in_which_order(
    tmp_path: Path, seed: int
) -> None:
    """Pieces in any order, logs that come late, change and go, and rows that retention drops in between."""
    random = Random(seed)
    project, hours = Project(tmp_path / "project", window_hours=1, lookback_hours=3), hours_from(START, 16)
    project.write_log("a.jsonl", [line(record) for record in random_changes(random, list(hours), "a")])
    project.materialize(hours, only=["ingest"])
    for first in random.sample(range(0, 16, 4), 4):
        project.materialize(hours_from(START + first * HOUR, 4), only=STEPS[1:])
    for step in range(2):
        if step == 1:
            prune(project.warehouse, PRUNED_COMPONENTS, START + 7 * HOUR, 3)
        touched = hours_from(START + random.randrange(13) * HOUR, 3)
        late = random_changes(random, [touched.start], f"late {step}")
        project.write_log(f"late {step}.jsonl", [line(record) for record in late])
        project.materialize(touched, only=STEPS)
        assert_states_equal_the_reference(project, list(hours))
    project.write_log("late 1.jsonl", [])
    project.materialize(touched, only=STEPS)
    assert_states_equal_the_reference(project, list(hours))


def test_a_model_changes_by_an_update_or_when_an_execution_shows_another_one(
    five_hours: dict[tuple[datetime, str], Row],
) -> None:
    days = [five_hours[START + n * HOUR, "models"]["days_since_model_change"] for n in range(4)]
    assert days == [None, 55 / 1440, 42 / 1440, 48 / 1440]


def test_a_model_change_is_seen_however_far_its_executions_are_apart(tmp_path: Path) -> None:
    """m1 at hour 0, m2 at hour 3: beyond the look-back of 2 hours."""
    project = Project(tmp_path / "project", window_hours=1, lookback_hours=2)
    records = [execution("e1", "a", START, model="m1"), execution("e2", "a", START + 3 * HOUR, model="m2")]
    one_run = states(project, records, hours_from(START, 5))
    told = {n: one_run[START + n * HOUR, "a"]["days_since_model_change"] for n in (0, 3, 4)}
    assert told == {0: None, 3: 1 / 24, 4: 2 / 24}
    by_hour = Project(tmp_path / "by hour", None, 1, 2)
    by_hour.write_log("a.jsonl", [line(record) for record in records])
    by_hour.materialize(hours_from(START, 5), only=["ingest"])
    for hour in hours_from(START, 5):  # an hour alone reads other code than a range
        by_hour.materialize(HourRange.of(hour), only=STEPS[1:])
    assert_same_tables(by_hour.tables(names=["agent_health_state"]), project.tables(names=["agent_health_state"]))


def test_of_what_was_before_the_look_back_only_hours_that_are_materialized_are_known(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", window_hours=1, lookback_hours=3)
    found = states(project, changing(), HourRange.of(START + 12 * HOUR))
    assert found[START + 12 * HOUR, "a"]["uptime_seconds"] is None
    project.materialize(HourRange.of(START), only=STEPS)
    assert told_changes(project)[12, "a"][0] == 12.5


def test_of_executions_that_end_at_the_same_moment_the_file_and_line_say_which_was_first(
    five_hours: dict[tuple[datetime, str], Row],
) -> None:
    """m1, m2, m2 changes at the half hour; m2, m1, m2 ten minutes later, too."""
    days = [five_hours[START, agent]["days_since_model_change"] for agent in ("tie a", "tie b")]
    assert days == [30 / 1440, 20 / 1440]


def test_the_latest_capability_update_is_told(five_hours: dict[tuple[datetime, str], Row]) -> None:
    told = [five_hours[START + n * HOUR, "updated"]["last_capability_update"] for n in range(4)]
    first, second = CAPABILITY_UPDATES[1:]
    assert told == [first, second, second, second]


# -- last healthy, in any order ------------------------------------------------------------------------------------------

HEALTHY_HOURS = (0, 1, 4, 13)
FAILING_HOURS = (2, 3, 5, 6, 12)


def up_and_down() -> list[Record]:
    """An agent that is healthy and unhealthy by turns and not known from hour 8 to 11, beside one that always is."""
    own = [
        record
        for hour in (*HEALTHY_HOURS, *FAILING_HOURS)
        for record in runs("a", START + hour * HOUR, 10, 0 if hour in HEALTHY_HOURS else 10)
    ]
    return own + [execution(f"steady {hour}", "steady", START + hour * HOUR) for hour in range(15)]


def told_last_healthy(project: Project) -> dict[int, int | None]:
    """For each hour with a document, the last healthy hour that it tells."""
    return {
        (row["hour"] - START) // HOUR: row["last_healthy_at"] and (row["last_healthy_at"] - START) // HOUR - 1
        for row in project.rows("agent_health_state")
        if row["agent_id"] == "a"
    }


@pytest.fixture(scope="module")
def up_and_down_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The agent of `up_and_down` in 15 hours that were made at once; tests change only copies."""
    project = Project(tmp_path_factory.mktemp("up and down") / "project", window_hours=1, lookback_hours=2)
    states(project, up_and_down(), hours_from(START, 15))
    return project


def test_last_healthy_is_the_end_of_the_latest_healthy_window(up_and_down_once: Project) -> None:
    assert told_last_healthy(up_and_down_once) == {
        0: 0, 1: 1, 2: 1, 3: 1, 4: 4, 5: 4, 6: 4, 7: 4, 12: 4, 13: 13, 14: 13,
    }  # fmt: skip


def test_an_agent_that_returns_after_the_look_back_is_remembered(tmp_path: Path) -> None:
    """Hour 11 knows other agents but not this one, so hour 12 has to look further back for it."""
    project = Project(tmp_path / "project", window_hours=1, lookback_hours=2)
    states(project, up_and_down(), hours_from(START, 12))
    project.materialize(HourRange.of(START + 12 * HOUR), only=STEPS)
    assert told_last_healthy(project)[12] == 4


def test_only_hours_that_are_materialized_count_for_last_healthy(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", window_hours=1, lookback_hours=2)
    states(project, up_and_down(), hours_from(START + 2 * HOUR, 2))
    assert told_last_healthy(project) == {2: None, 3: None}


@pytest.mark.nightly  # the test of what is carried forward stands for it
def test_last_healthy_is_the_same_in_whatever_order_hours_are_materialized(tmp_path: Path) -> None:
    random = Random(1)
    hours = hours_from(START, 15)
    project = Project(tmp_path / "project", window_hours=1, lookback_hours=2)
    project.write_log("a.jsonl", [line(record) for record in up_and_down()])
    starts = list(range(0, 15, 3))
    random.shuffle(starts)
    project.materialize(hours, only=["ingest"])
    for first in starts:
        project.materialize(hours_from(START + first * HOUR, random.choice([3, 4])), only=STEPS[1:])
        built = sorted(project.built_hours("agent_health_state"))
        assert_states_equal_the_reference(project, built)
    assert project.built_hours("agent_health_state") >= set(hours)


def test_an_hour_that_is_no_longer_healthy_changes_what_later_hours_tell(
    tmp_path: Path, up_and_down_once: Project
) -> None:
    project, hours = up_and_down_once.copied(tmp_path / "project"), hours_from(START, 15)
    before = dict(project.query("SELECT hour, changed_at FROM partition_states WHERE asset = 'agent_health_state'"))
    project.write_log("late.jsonl", [line(record) for record in runs("a", START + 4.5 * HOUR, 10, 10)])
    project.materialize(HourRange.of(START + 4 * HOUR), only=STEPS)
    assert told_last_healthy(project)[12] == 1
    after = dict(project.query("SELECT hour, changed_at FROM partition_states WHERE asset = 'agent_health_state'"))
    changed = {(hour - START) // HOUR for hour in hours if after[hour] != before[hour]}
    assert changed == {4, 5, 6, 7, 12}
    project.write_log("late.jsonl", [])
    project.materialize(HourRange.of(START + 4 * HOUR), only=STEPS)
    assert_states_equal_the_reference(project, list(hours))


# -- against the reference -----------------------------------------------------------------------------------------------


def random_project(folder: Path, seed: int, window_hours: int, lookback_hours: int, lines: int = 900) -> Project:
    """Random logs with agents that are busy enough to have a status, some with a baseline."""
    random = Random(seed)
    targets = random_targets(random)
    for name in AGENTS[:3]:
        targets["agents"].setdefault(name, {})["baseline_latency_ms"] = random.choice([0.5, 12_345, 1e9])
    project = Project(folder / "project", targets, window_hours, lookback_hours)
    texts = random_lines(random, lines, 30)
    steady = [
        line(execution(f"s{n}", "steady", START + n * 15 * MINUTE, 5 + n % 3, model="m1" if n < 60 else "m2",
                       status="failure" if 40 < n < 60 else "success"))
        for n in range(100)
    ]  # fmt: skip
    for name, part in cut_into_files(random, texts + steady).items():
        project.write_log(name, part, modified=START)
    return project


@pytest.mark.parametrize(
    ("seed", "window_hours", "lookback_hours"),
    [pytest.param(1, 24, 168, marks=pytest.mark.nightly), (2, 3, 7), pytest.param(3, 1, 1, marks=pytest.mark.nightly)],
)
def test_every_state_of_random_logs_equals_the_reference(
    tmp_path: Path, seed: int, window_hours: int, lookback_hours: int
) -> None:
    project = random_project(tmp_path, seed, window_hours, lookback_hours)
    hours = hours_from(START, 36)
    project.materialize(hours, only=STEPS)
    found = assert_states_equal_the_reference(project, list(hours))
    if 1 < window_hours < 24:  # long enough for a status, short enough for the failures to show
        assert {row["status"] for row in found} == {"healthy", "degraded", "unhealthy", "unknown"}
        assert {row["calibration_trend"] for row in found} == {"stable", "improving", "declining"}


def test_an_hour_alone_has_the_rows_of_the_range_and_any_order_ends_like_a_clean_rebuild(tmp_path: Path) -> None:
    project = random_project(tmp_path, 5, 4, 9, lines=400)
    asked = hours_from(START + 9 * HOUR, 3)
    whole = project.clean_rebuild(asked, "whole", only=STEPS)
    project.materialize(asked, only=["ingest"])
    for hour in Random(5).sample(list(asked), len(asked)):
        project.materialize(HourRange.of(hour), only=STEPS[1:])
    names = ["state_components", "agent_health_state"]
    assert_same_tables(project.tables(names=names), whole.tables(names=names))


def test_samples_and_agents_are_those_of_the_agent_health_model(tmp_path: Path) -> None:
    project = random_project(tmp_path, 6, 5, 9, lines=300)
    project.materialize(hours_from(START, 20), only=[*STEPS, "agent_health"])
    model = {(row["hour"], row["agent_id"]): row for row in project.rows("agent_health")}
    own = {(row["hour"], row["agent_id"]): row for row in project.rows("agent_health_state")}
    assert own.keys() == model.keys()
    for key, row in own.items():
        assert (row["sample_count"], row["response_ratio"]) == (model[key]["n"], model[key]["asr"])
        assert row["hours_covered"] == model[key]["hours_covered"]


def test_every_column_of_the_table_is_compared_with_the_reference_or_named_here() -> None:
    (row,) = state_reference.agent_health_state([], {"agents": {"a": {}}}, [START])
    assert set(columns_of("agent_health_state")) - set(row) == {"hours_covered", "formula_version"}


@needs_real_logs
def test_every_state_of_some_days_of_the_real_logs_equals_the_reference(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.copy_real_logs()
    [(first,)] = _busiest_day(project)
    hours = hours_from(first - 12 * HOUR, 60)
    project.materialize(hours, only=STEPS)
    found = assert_states_equal_the_reference(project, list(hours))
    assert sum(row["sample_count"] for row in found) > 0


def _busiest_day(project: Project) -> list[tuple]:
    """The day on which most of the real executions ended."""
    records, _ = reference.read_lines(project.raw)
    days = [record["_hour"].replace(hour=0) for record in records]
    return [(max(set(days), key=days.count),)]


# -- buckets and ranks ---------------------------------------------------------------------------------------------------


def buckets_of(runtimes_us: Sequence[int]) -> list[tuple[int, float]]:
    """Bucket of each runtime, and what it stands for in milliseconds."""
    rows = ibis.memtable(pa.table({"place": range(len(runtimes_us)), "runtime_s": [us / 1e6 for us in runtimes_us]}))
    rows = rows.mutate(bucket=bucket_of(rows.runtime_s))
    found = ibis.duckdb.connect().to_pyarrow(rows.mutate(ms=latency_ms(rows.bucket)).order_by("place")).to_pylist()
    return [(row["bucket"], row["ms"]) for row in found]


def test_what_a_bucket_stands_for_is_within_one_percent_of_every_runtime_in_it() -> None:
    century_us = 100 * 366 * 86_400 * 10**6
    random = Random(3)
    runtimes_us = [*range(2_000), *(round(math.exp(random.uniform(0, math.log(century_us)))) for _ in range(20_000))]
    runtimes_us = sorted([*runtimes_us, century_us])
    found = buckets_of(runtimes_us)
    assert found[0] == (0, 0.0)
    for runtime_us, (bucket, ms) in zip(runtimes_us[1:], found[1:], strict=True):
        assert 0 <= bucket <= LAST_BUCKET
        assert abs(ms * 1e3 - runtime_us) <= 0.01 * runtime_us
    assert [bucket for bucket, _ in found] == sorted(bucket for bucket, _ in found)


def test_runtimes_beyond_all_buckets_fall_into_the_last_one() -> None:
    assert [bucket for bucket, _ in buckets_of([10**18, 9 * 10**18])] == [LAST_BUCKET, LAST_BUCKET]


@pytest.mark.parametrize("count", [1, 2, 17, 300])
def test_the_kth_smallest_of_any_stretch_is_that_of_the_sorted_stretch(count: int) -> None:
    random = Random(count)
    for greatest in (0, 3, LAST_BUCKET):
        numbers = [random.randint(0, greatest) for _ in range(count)]
        edges = [sorted(random.sample(range(count + 1), 2)) for _ in range(100)]
        ranks = [random.randint(1, end - start) for start, end in edges]
        starts, ends = (np.array(side) for side in zip(*edges, strict=True))
        (found,) = kth_smallest(np.array(numbers, np.int16), starts, ends, [np.array(ranks)], 11)
        by_hand = [sorted(numbers[start:end])[rank - 1] for (start, end), rank in zip(edges, ranks, strict=True)]
        assert found.tolist() == by_hand


def test_one_hour_and_many_hours_read_the_same_ranks_for_every_number_of_samples() -> None:
    """Windows of 1 to 1,200 samples, whose sorted buckets are 0, 1, 2...: the bucket is the rank less one."""
    counts = [*range(1, 301), 399, 400, 401, 700, 1_000, 1_200]
    parts = pa.table(
        {
            "hour": pa.array([START] * len(counts), pa.timestamp("us", "UTC")),
            "agent_id": [f"{count:05}" for count in counts],
            "latency_buckets": pa.array([range(count) for count in counts], pa.list_(pa.int16())),
        }
    )
    expected = [(f"{n:05}", math.ceil(n / 2) - 1, -(-99 * n // 100) - 1) for n in counts]
    one = ibis.duckdb.connect().to_pyarrow(window_buckets(ibis.memtable(parts), HourRange.of(START))).to_pylist()
    columns = ("agent_id", "p50_bucket", "p99_bucket")
    assert sorted(tuple(row[name] for name in columns) for row in one) == expected
    many = sliding_window_buckets(parts, hours_from(START, 3), 2).to_pylist()
    assert [tuple(row[name] for name in columns) for row in many if row["hour"] == START] == expected
    assert {row["hour"] for row in many} == {START, START + HOUR}


def test_groups_of_agents_do_not_show_in_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(7)
    rows = [
        {"hour": START + hour * HOUR, "agent_id": agent, "latency_buckets": sorted(random.choices(range(2048), k=random.randrange(9)))}
        for agent in "abcdefgh" for hour in range(12) if random.random() < 0.6
    ]  # fmt: skip
    kinds = {"hour": pa.timestamp("us", "UTC"), "agent_id": pa.string(), "latency_buckets": pa.list_(pa.int16())}
    parts = pa.Table.from_pylist(rows, pa.schema(kinds))
    hours = hours_from(START + 3 * HOUR, 9)
    whole = sliding_window_buckets(parts, hours, 4)
    monkeypatch.setattr("health_assets.scoring.window_latencies.VALUES_AT_ONCE", 20)
    assert sliding_window_buckets(parts, hours, 4).equals(whole)
    for row in whole.to_pylist():
        window = [
            r for r in rows if r["agent_id"] == row["agent_id"] and row["hour"] - 4 * HOUR < r["hour"] <= row["hour"]
        ]
        merged = sorted(bucket for part in window for bucket in part["latency_buckets"])
        assert row["p50_bucket"] == merged[(len(merged) + 1) // 2 - 1]
        assert row["p99_bucket"] == merged[-(-99 * len(merged) // 100) - 1]


def test_of_many_ailing_agents_the_worst_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", window_hours=4, lookback_hours=8)
    records = [record for place in range(20) for record in runs(f"agent {place:02d}", START, 20, 1 + place)]
    project.write_log("a.jsonl", map(line, records))
    hours = HourRange.of(START)
    project.materialize(hours, only=[*STEPS, "agent_health", "system_health"])
    console = Console(width=200, record=True, file=StringIO())
    with project.warehouse.read() as session:
        print_health(console, session, hours)
    fleet, _, after = console.export_text().partition("Health documents at ")
    states, _, _ = after.partition("Systems differ")
    assert states.startswith(f"{START:%Y-%m-%d %H:%M} UTC: ")
    assert "durations count to the end of the hour" in states
    for block, shown in ((fleet, 15), (states, 10)):
        rows = [
            text.split()[1] for text in block.splitlines() if text.startswith("agent 1") or text.startswith("agent 0")
        ]
        assert rows == [f"{place:02d}" for place in range(19, 19 - shown, -1)]
    assert "20 agents" in fleet
    assert "the 15 of 20 agents to look at first" in fleet


def test_an_id_from_a_log_cannot_command_the_terminal(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", window_hours=4, lookback_hours=8)
    for place, agent in enumerate(["esc\x1b[31mred", "two\nlines"]):
        runs = [
            execution(f"{place} {n}", agent, START, status="failure", session_id=agent, task_id=agent, model=agent)
            for n in range(12)
        ]
        project.write_log(f"{place}.jsonl", map(line, runs))
    hours = HourRange.of(START)
    project.materialize(hours)
    console = Console(width=200, record=True, file=StringIO())
    with project.warehouse.read() as session:
        print_health(console, session, hours)
    shown = console.export_text()
    assert "\x1b" not in shown
    assert "esc\\x1b[31mred" in shown
    assert "two\\nlines" in shown
