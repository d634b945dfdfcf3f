"""Agent drift: by hand, against plain loops, at any hour, what people see of it, and by simulation."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from bench.drift import Fleet, simulated
from health_assets.apps.report.agent import print_agent
from health_assets.core.hours import HOUR, HourRange
from health_assets.schema.catalog import columns_of
from health_assets.systems.agent_drift.agent_drift import named
from health_assets.systems.agent_drift.expected_range import NEEDED_HOURS, expected_success
from health_assets.systems.agent_drift.names import LOOK_BACK_HOURS
from health_assets.systems.agent_drift.report import print_block
from health_assets.systems.agent_drift.texts import sentence
from health_assets_tests.support import reference, reference_agent_drift
from health_assets_tests.support.clocks import SetClock, settable_clock
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import ENGINES, FLEET, Project, Row, assert_same_tables, hours_from
from health_assets_tests.systems.test_scores_equal_reference import assert_equal_rows

STEPS = ["ingest", "computed_signals", "release_components", "tool_components", "drift"]
NOW = START + LOOK_BACK_HOURS * HOUR
"""An hour before which there is a whole look-back."""
KEYS = ["hour", "agent_id", "measure"]
MARGIN = 0.02


def runs(hour: int, count: int, *, failed: int = 0, agent_id: str = "a", **fields: object) -> list[Record]:
    """Executions of the hour so many hours after `NOW`, of which the first failed."""
    at = NOW + hour * HOUR
    return [
        execution(
            f"{agent_id} {hour} {number} {fields.get('agent_version')}", agent_id, at + number * timedelta(seconds=1),
            status="failure" if number < failed else "success", **fields,
        )
        for number in range(count)
    ]  # fmt: skip


def past(count: int, *, every: int = 7, **fields: object) -> list[Record]:
    """So many executions in each hour before `NOW`, of which one failed in each of `every` hours."""
    return [
        record
        for hour in range(-LOOK_BACK_HOURS, 0)
        for record in runs(hour, count, failed=int(hour % every == 0), **fields)
    ]


def drifts(project: Project, records: Sequence[Record], hours: HourRange) -> dict[str, list[Row]]:
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours, only=STEPS)
    rows = sorted(project.rows("drift", hours), key=lambda row: row["hour"])
    return {measure: [row for row in rows if row["measure"] == measure] for measure in {row["measure"] for row in rows}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    return settable_clock(monkeypatch)


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_the_range_of_a_chart_is_the_limit_of_the_table(tmp_path: Path) -> None:
    """The last 24 hours have most evidence here, so that the row tells their limit."""
    hours = HourRange(NOW, NOW + 30 * HOUR)
    records = [*past(20), *(record for hour in range(30) for record in runs(hour, 20, failed=4))]
    rows = drifts(Project(tmp_path / "project"), records, hours)["success_rate"]
    counts = np.zeros((2, NEEDED_HOURS - 1 + len(hours)), np.int64)
    for hour in range(-NEEDED_HOURS + 1, len(hours)):
        failed = 4 if hour >= 0 else int(hour % 7 == 0)
        counts[:, hour + NEEDED_HOURS - 1] = 20, failed
    expected = expected_success(*counts, len(hours), MARGIN)
    [told] = [row for row in rows if row["hour"] == NOW + 23 * HOUR]
    assert told["since"] == NOW
    assert told["limit_value"] == pytest.approx(expected.limit_value[23, 0], abs=1e-12)
    assert told["value"] == pytest.approx(expected.value[23, 0]) == pytest.approx(0.8)


def test_an_agent_that_fails_more_than_in_its_past_drifts_since_the_first_of_these_hours(project: Project) -> None:
    records = [*past(4), *(record for hour in range(8) for record in runs(hour, 4, failed=2))]
    found = drifts(project, records, hours_from(NOW, 8))
    assert set(found) == {"success_rate"}
    last = found["success_rate"][-1]
    assert (last["hour"], last["since"], last["is_drifting"]) == (NOW + 7 * HOUR, NOW, True)
    assert (last["runs"], last["value"]) == (32, 0.5)
    assert last["baseline_runs"] == 4 * 96
    assert 0.96 < last["baseline"] < 0.97
    assert last["value"] < last["limit_value"] < last["baseline"]
    assert last["detectors"] == 4  # of success, latency and both volumes
    assert not found["success_rate"][0]["is_drifting"]


def test_an_agent_that_falls_silent_drifts_and_one_that_runs_far_more_does(project: Project) -> None:
    records = [*past(4), *past(4, agent_id="b"), *runs(0, 40, agent_id="b"), *runs(1, 40, agent_id="b")]
    found = drifts(project, records, hours_from(NOW, 6))
    silent, busy = [row for row in found["volume_drop"] if row["agent_id"] == "a"][-1], found["volume_rise"][-1]
    assert (silent["agent_id"], silent["runs"], silent["value"], silent["baseline"]) == ("a", 0, 0, 4)
    assert (silent["since"], silent["is_drifting"]) == (NOW + 2 * HOUR, True)  # of the starts that are looked at
    assert (busy["agent_id"], busy["is_drifting"]) == ("b", True)


def test_the_silence_of_an_hour_that_runs_says_nothing_yet(project: Project, clock: SetClock) -> None:
    clock(NOW + HOUR / 3)
    assert drifts(project, past(40), HourRange.of(NOW)) == {}
    clock(NOW + HOUR)
    project.materialize(HourRange.of(NOW), only=STEPS)
    assert [row["measure"] for row in project.rows("drift", HourRange.of(NOW))] == ["volume_drop"]


def test_a_cron_job_and_an_agent_with_little_past_and_one_that_is_retired_have_no_row(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", {"agents": {"gone": {"retired": True}}})
    daily = [record for day in range(-7, 1) for record in runs(24 * day, 30, agent_id="cron")]
    new = [record for hour in range(-20, 4) for record in runs(hour, 4, failed=4 * (hour >= 0), agent_id="new")]
    gone = [*past(4, agent_id="gone"), *runs(0, 40, failed=40, agent_id="gone")]
    assert drifts(project, [*daily, *new, *gone], hours_from(NOW, 4)) == {}


def test_an_agent_that_rests_at_weekends_has_no_drift_at_one(project: Project) -> None:
    saturday = next(NOW + hour * HOUR for hour in range(168) if (NOW + hour * HOUR).weekday() == 5)
    days = [NOW + hour * HOUR for hour in range(-LOOK_BACK_HOURS, (saturday - NOW) // HOUR)]
    work = [(at - NOW) // HOUR for at in days if at.weekday() < 5 and 9 <= at.hour < 17]
    found = drifts(project, [one for hour in work for one in runs(hour, 10)], hours_from(saturday, 57))
    assert [row for rows in found.values() for row in rows if row["is_drifting"]] == []


def test_a_day_that_was_an_incident_is_no_part_of_the_past(project: Project) -> None:
    before = [*past(4, every=1000), *(own for hour in range(-96, -72) for own in runs(hour, 4, failed=4, agent_id="b"))]
    calm = [own for hour in (*range(-168, -96), *range(-72, 0)) for own in runs(hour, 4, agent_id="b")]
    now = [own for hour in range(12) for own in runs(hour, 4, failed=2, agent_id="b")]
    found = drifts(project, [*before, *calm, *now], HourRange.of(NOW + 11 * HOUR))
    [row] = found["success_rate"]
    assert (row["baseline_runs"], row["baseline"], row["is_drifting"]) == (4 * 72, 1.0, True)


def test_the_version_in_which_most_failures_in_excess_are_is_named(project: Project) -> None:
    before = past(8, agent_version="7", model="m")
    now = [
        record
        for hour in range(8)
        for record in [
            *runs(hour, 6, agent_version="7", model="m"),
            *runs(hour, 4, failed=4, agent_version="8", model="m"),
        ]
    ]
    found = drifts(project, [*before, *now], HourRange.of(NOW + 7 * HOUR))
    [row] = found["success_rate"]
    assert row["is_drifting"]
    assert (row["cause_dimension"], row["cause"]) == ("version", "8")
    assert 0.9 < row["cause_share"] <= 1


def test_an_agent_whose_runs_take_longer_drifts_and_the_version_with_most_slow_runs_is_named(project: Project) -> None:
    random = Random(1)

    def timed(records: Sequence[Record], factor: float) -> list[Record]:
        runtimes = (factor * random.choice((20, 25, 30, 35, 40)) for _ in records)
        return [
            {**record, "started_at": (datetime.fromisoformat(record["ended_at"]) - timedelta(seconds=one)).isoformat()}
            for record, one in zip(records, runtimes, strict=True)
        ]

    now = []
    for hour in range(20):
        now += timed(runs(hour, 6, agent_version="7"), 1.0) + timed(runs(hour, 4, agent_version="8"), 2.0)
    found = drifts(project, [*timed(past(10, every=1000, agent_version="7"), 1.0), *now], HourRange.of(NOW + 19 * HOUR))
    assert set(found) == {"latency"}
    [row] = found["latency"]
    assert row["is_drifting"]
    assert row["baseline"] == 0
    assert 0.2 < row["value"] < 0.5
    assert 40 < row["threshold"] < 45  # a tenth above what nine of ten took
    assert row["hint"] == "version 8: 100% of the slow runs in excess"
    assert sentence(row).startswith("runs over 4")
    assert sentence(row).endswith("version 8: 100% of the slow runs in excess")


def test_an_agent_that_calls_a_tool_it_never_called_drifts_and_the_tool_is_named(project: Project) -> None:
    def called(hour: int, tools: Sequence[str]) -> list[Record]:
        return [
            {
                "type": "tool_call", "call_id": f"{hour} {number}", "tool": tool, "agent_id": "a", "status": "success",
                "ended_at": (NOW + hour * HOUR).isoformat(),
            }
            for number, tool in enumerate(tools)
        ]  # fmt: skip

    usual = [
        *past(4),
        *(one for hour in range(-LOOK_BACK_HOURS, 0) for one in called(hour, ["search"] * 5 + ["edit"] * 5)),
    ]
    now = [one for hour in range(12) for one in [*runs(hour, 4), *called(hour, ["search", "edit", *["browse"] * 8])]]
    found = drifts(project, [*usual, *now], HourRange.of(NOW + 11 * HOUR))
    assert set(found) == {"tool_mix"}
    [row] = found["tool_mix"]
    assert (row["is_drifting"], row["value"], row["baseline"]) == (True, 0.8, 0)
    assert (row["cause_dimension"], row["cause"], row["cause_share"], row["hint"]) == (
        "tool",
        "browse",
        None,
        "tool browse",
    )
    assert sentence(row) == f"calls of another tool 0% → 80% since {row['since']:%Y-%m-%d %H:%M} UTC; tool browse"


def test_a_look_back_of_less_than_a_week_finds_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", None, 24, 120)
    records = [*past(4), *(record for hour in range(4) for record in runs(hour, 4, failed=4))]
    assert drifts(project, records, hours_from(NOW, 4)) == {}


def test_the_report_names_what_drifts(project: Project) -> None:
    records = [*past(4), *(record for hour in range(8) for record in runs(hour, 4, failed=2))]
    drifts(project, records, hours_from(NOW, 8))
    project.materialize(HourRange.of(NOW + 7 * HOUR), only=FLEET)
    console = Console(width=120, record=True, file=None, quiet=False)
    with project.warehouse.read() as session, console.capture() as capture:
        print_block(console, session, hours_from(NOW, 8))
        print_block(console, session, hours_from(NOW - 5 * HOUR, 2))
        print_agent(console, session, hours_from(NOW, 8), "a")
    told = capture.get()
    assert told.count("Unlike their own past: 1 agent") == 1
    assert f"worse than its own past: success rate 97% → 50% since {NOW:%Y-%m-%d %H:%M} UTC" in told
    assert "success rate 97% → 50%" in " ".join(told.split())


# -- against plain loops -----------------------------------------------------------------------------------------------


def random_records(random: Random, hours: int) -> list[Record]:
    """Agents of which some get worse in one way or another, or fall silent, or have bad days, in clumps or not."""
    records = []
    for agent_id, per_hour, rate in [("a", 3, 0.9), ("b", 6, 0.98), ("c", 6, 0.8), ("d", 5, 1.0), ("gone", 4, 0.9)]:
        for hour in range(-LOOK_BACK_HOURS, hours):
            drift = hour >= hours // 2
            count = random.randrange(2 * per_hour + 1) if agent_id != "c" else per_hour * (not drift)
            count *= 4 if drift and agent_id == "d" else 1
            own = rate - 0.3 * (drift and agent_id in ("a", "b")) - 0.5 * (-60 < hour < -40 and agent_id == "b")
            failed = (
                count * (random.random() > own) if agent_id == "d" else sum(random.random() > own for _ in range(count))
            )
            version = str(1 + (hour > 2 and random.random() < 0.5))
            records += runs(hour, count, failed=failed, agent_id=agent_id, agent_version=version)
    for hour in range(-LOOK_BACK_HOURS, hours):
        records += random_amounts(random, hour, grown=2.5 if hour >= hours // 2 else 1.0)
    return records


def random_amounts(random: Random, hour: int, *, grown: float) -> list[Record]:
    """Executions of an agent that take more time, tokens and money, with calls of which more fail, and of others."""
    at, records = NOW + hour * HOUR, []
    for number in range(random.randrange(3, 9)):
        name = f"e {hour} {number}"
        record = execution(
            name,
            "e",
            at + timedelta(minutes=30, seconds=number),
            grown * round(random.lognormvariate(3, 0.5), 6),
            agent_version=str(1 + (grown > 1)),
        )
        if random.random() < 0.8:
            record["input_tokens"] = round(grown * random.lognormvariate(7, 0.5))
            record["cost_usd"] = round(grown * random.lognormvariate(-3, 0.5), 4)
        tools = random.choices(["search", "edit", "test", "odd"], [5, 4, 2 * grown**3, 0.1], k=random.randrange(4))
        records += [record, *(
            {
                "type": "tool_call", "call_id": f"{name} {place}", "execution_id": name, "agent_id": "e", "tool": tool,
                "ended_at": (at + timedelta(minutes=30)).isoformat(),
                "status": "failure" if random.random() < 0.05 * grown**3 else "success",
            }
            for place, tool in enumerate(tools)
        )]  # fmt: skip
    return records


CAUSES = ("cause_dimension", "cause", "cause_share", "hint")


def test_drifts_of_random_logs_equal_plain_loops_and_one_hour_equals_its_part_of_a_range(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", {"agents": {"gone": {"retired": True}}})
    project.write_log("a.jsonl", [line(record) for record in random_records(Random(3), 30)])
    span = hours_from(NOW, 32)
    project.materialize(span, only=STEPS)
    records, _ = reference.read_lines(project.raw)
    kept = [record for record in records if record["agent_id"] != "gone"]
    expected = reference_agent_drift.agent_drift(kept, list(span), MARGIN, 1.0)
    rows = project.rows("drift", span)
    assert_equal_rows([{name: row[name] for name in row if name not in CAUSES} for row in rows], expected, KEYS)
    assert set(columns_of("drift")) - set(expected[0]) == {"formula_version", *CAUSES}
    drifting = {(row["agent_id"], row["measure"]) for row in rows if row["is_drifting"]}
    assert drifting >= {("b", "success_rate"), ("c", "volume_drop"), ("d", "volume_rise")}
    assert drifting >= {("e", measure) for measure in ("latency", "tokens", "cost", "tool_failure_share", "tool_mix")}
    made = project.tables(span, ["drift"])
    for hour in list(span)[::7]:
        project.materialize(HourRange.of(hour), only=["drift"])
    assert_same_tables(project.tables(span, ["drift"]), made)


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "duckdb"])
def test_other_engines_have_the_same_drifts(tmp_path: Path, engine: str) -> None:
    project = Project(tmp_path / "project", engine=engine)
    records = [
        *past(4, agent_version="7"),
        *(own for hour in range(4) for own in runs(hour, 4, failed=4, agent_version="8")),
    ]
    project.write_log("a.jsonl", [line(record) for record in records])
    span = hours_from(NOW + 2 * HOUR, 2)
    project.materialize(span, only=STEPS)
    read, _ = reference.read_lines(project.raw)
    expected = reference_agent_drift.agent_drift(read, list(span), MARGIN, 1.0)
    rows = project.rows("drift", span)
    told = {(row["cause"], row["cause_share"], row["hint"]) for row in rows if row["is_drifting"]}
    assert told == {("8", 1.0, "version 8: 100% of the failures in excess")}
    assert_equal_rows([{name: row[name] for name in row if name not in CAUSES} for row in rows], expected, KEYS)
    made = project.tables(span, ["drift"])
    project.materialize(HourRange.of(span.start), only=["drift"])
    assert_same_tables(project.tables(span, ["drift"]), made)


def test_late_records_give_the_same_rows(tmp_path: Path) -> None:
    records = random_records(Random(5), 8)
    random = Random(1)
    late = [record for record in records if random.random() < 0.1]
    early = [record for record in records if record not in late]
    hours = hours_from(NOW, 8)
    clean, project = (Project(tmp_path / name) for name in ("clean", "project"))
    for one in (clean, project):
        one.write_log("early.jsonl", [line(record) for record in early])
    clean.write_log("late.jsonl", [line(record) for record in late])
    clean.materialize(hours, only=STEPS)
    project.materialize(hours, only=STEPS)
    project.write_log("late.jsonl", [line(record) for record in late])
    project.materialize(hours, only=STEPS, only_stale=True)
    assert_same_tables(project.tables(hours, ["drift"]), clean.tables(hours, ["drift"]))


# -- how much evidence is enough ---------------------------------------------------------------------------------------


def test_many_with_much_evidence_need_less_each() -> None:
    wanted = np.log(100 * 168)
    assert list(named(np.array([wanted - 0.1]), 100, 1.0)) == [False]
    assert list(named(np.array([wanted - 0.1, wanted - 0.5, 3.0]), 100, 1.0)) == [True, True, False]
    assert list(named(np.array([wanted - 0.1]), 100, 2.0)) == [True]


# -- by simulation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fleet",
    [Fleet(name="steady"), Fleet(name="by the hour and day of the week", profile=0.8, daily_slowdown=0.5)],
    ids=lambda fleet: fleet.name,
)
def test_a_healthy_fleet_has_no_more_false_alarms_than_are_allowed(fleet: Fleet) -> None:
    assert simulated(fleet, 200, 7, seed=7).alarms_a_week <= 1


def test_runs_that_come_in_clumps_break_the_promise_for_success_and_volume_alone() -> None:
    found = simulated(Fleet(name="clumps", profile=0.8, daily_slowdown=0.5, session_runs=5), 200, 7, seed=7)
    assert found.alarms_a_week <= 5
    assert set(found.measures) <= {"success_rate", "volume_drop"}


@pytest.mark.parametrize(
    ("changes", "hours"),
    [
        ({"per_hour": (100, 100), "drop": 0.1}, 8),
        ({"per_hour": (100, 100), "growth": 1.5}, 12),
        ({"per_hour": (100, 100), "tool_shift": 0.5}, 8),
        ({"per_hour": (10, 10), "volume_factor": 0}, 6),
    ],
    ids=["10 points less success", "slower by half", "another tool", "silence"],
)
def test_drifts_are_found_within_hours(changes: dict[str, Any], hours: int) -> None:
    fleet = Fleet(name="drifting", success_rates=(0.95,), drifting=0.2, **changes)
    assert np.median(simulated(fleet, 100, 2, seed=1).hours) <= hours
