"""The running hour: scored as of what is known of it, again and again, and made anew once it is over."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import ibis
import pyarrow as pa
import pytest

from health_assets.cli.running import run_hours
from health_assets.core.expression_keys import ExpressionKey
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.systems import SYSTEM_NAMES
from health_assets.scoring.windows import window_lengths_s
from health_assets.systems.declared_assets import DERIVED
from health_assets.systems.due_hours import DueRun, due_hours, next_due_at, running_hour_due
from health_assets.warehouse.fingerprints import INGEST_CHECKS
from health_assets.warehouse.partition_states import PartitionStates
from health_assets_tests.support.clocks import SetClock, settable_clock
from health_assets_tests.support.examples import example_count
from health_assets_tests.support.logs_made import START, Record, execution, line, random_lines, trigger
from health_assets_tests.support.projects import (
    Project,
    Row,
    assert_same_tables,
    assert_tables_equal_to_9_digits,
    declared_systems,
)

MINUTE = timedelta(minutes=1)
TRAILING = (
    "executions_1h",
    "failures_1h",
    "executions_6h",
    "failures_6h",
    "failed_in_a_row",
    "p_chance",
    "p_chance_6h",
)
SHORT_RATES = tuple(
    f"{name}_{length}" for length in ("5m", "30m", "1h", "6h") for name in ("n", "failures", "burn_rate")
)
NOW_AND_BUDGETS = ("ingest", "health_components", "now_components", "agent_now", "error_budget")
HEALTH_AND_STATE = (
    "ingest", "health_components", "agent_health", "state_components", "agent_changes", "agent_health_state",
)  # fmt: skip
SYSTEMS_BY_DAY = [
    pytest.param(("agent_health_model", "agent_now", "error_budget"), id="some systems"),
    pytest.param(SYSTEM_NAMES, id="all systems", marks=pytest.mark.nightly),
]
"""Declared systems where the test is about which hours are due."""
RESULTS = [name for name, asset in DERIVED.items() if not asset.is_component and not asset.is_external]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    return settable_clock(monkeypatch)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, {"defaults": {"expected_failures_per_hour": 0.5}}, 4, 24)


def at(minutes: float) -> datetime:
    """A time so many minutes after the first hour began."""
    return START + minutes * MINUTE


def outcomes(random: Random, minutes: Sequence[float]) -> list[Record]:
    """Executions of three agents, of which one fails more and more."""
    return [
        execution(
            f"{agent}-{place}", agent, at(minute), 7.0,
            status="failure" if random.random() < share * (1 + minute / 300) else "success",
        )
        for place, minute in enumerate(minutes)
        for agent, share in (("steady", 0.05), ("falling", 0.4), ("down", 1.0))
        if agent != "down" or minute > 200
    ]  # fmt: skip


def moved(records: Sequence[Record], by: timedelta) -> list[Record]:
    """The same events, so much later."""
    times = ("started_at", "ended_at")
    return [
        {**record, **{name: (datetime.fromisoformat(record[name]) + by).isoformat() for name in times}}
        for record in records
    ]


def materialized(project: Project, records: Sequence[Record], hour: datetime, only: Sequence[str] | None) -> Project:
    project.write_log("a.jsonl", map(line, records))
    project.materialize(HourRange.of(hour), only=only)
    return project


def columns(rows: Sequence[Row], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {row["agent_id"]: {name: row[name] for name in names} for row in rows}


# -- what a running hour says --


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (2, 3))])
def test_the_last_minutes_count_as_those_of_the_hours_end_of_the_same_events_moved_there(
    tmp_path: Path, clock: SetClock, seed: int
) -> None:
    random = Random(seed)
    minute = random.randrange(361, 480)
    hour, known_until = START + minute // 60 * HOUR, at(minute)
    records = outcomes(random, [random.uniform(0, minute) for _ in range(150)])
    clock(known_until)
    running = materialized(Project(tmp_path / "running", {}, 4, 24), records, hour, NOW_AND_BUDGETS)
    clock(START + 1000 * HOUR)
    later = moved(records, hour + HOUR - known_until)
    over = materialized(Project(tmp_path / "over", {}, 4, 24), later, hour, NOW_AND_BUDGETS)
    for table, names in (("agent_now", TRAILING), ("error_budget", SHORT_RATES)):
        hours = HourRange.of(hour)
        assert columns(running.rows(table, hours), names) == columns(over.rows(table, hours), names)


def test_the_last_minutes_of_a_running_hour_reach_into_the_hour_before(project: Project, clock: SetClock) -> None:
    records = [execution(f"e{minute}", "a", at(minute), status="failure") for minute in (211, 213, 237, 239, 241)]
    clock(at(242))
    materialized(project, records, at(240), NOW_AND_BUDGETS)
    [budget] = project.rows("error_budget", HourRange.of(at(240)))
    assert (budget["n_5m"], budget["n_30m"], budget["burn_rate_5m"], budget["as_of"]) == (3, 4, 20.0, at(242))


def test_an_outage_is_failing_within_the_hour_that_it_begins_in(project: Project, clock: SetClock) -> None:
    records = [execution(f"e{minute}", "a", at(minute)) for minute in range(5, 240, 5)]
    records += [execution(f"f{minute}", "a", at(240 + minute), status="failure") for minute in range(1, 13)]
    clock(at(253))
    materialized(project, records, at(240), NOW_AND_BUDGETS)
    [now] = project.rows("agent_now", HourRange.of(at(240)))
    assert (now["verdict"], now["since"], now["failures_1h"], now["executions_1h"]) == ("failing", at(240), 12, 21)
    assert (now["as_of"], now["is_final"]) == (at(253), False)


def test_rates_divide_by_the_hours_that_have_passed(project: Project, clock: SetClock) -> None:
    records = [execution(f"e{minute}", "a", at(minute), status="failure") for minute in (70, 130, 250)]
    records.append({"type": "agent_update", "agent_id": "a", "at": at(100).isoformat(), "kind": "restart"})
    clock(at(255))
    materialized(project, records, at(240), HEALTH_AND_STATE)
    [health] = project.rows("agent_health", HourRange.of(at(240)))
    assert (health["window_start"], health["window_end"], health["n"]) == (at(60), at(255), 3)
    assert health["afh"] == pytest.approx(3 / 3.25)  # of 4 hours, 45 minutes are still to come
    [state] = project.rows("agent_health_state", HourRange.of(at(240)))
    assert (state["measurement_window_seconds"], state["uptime_seconds"]) == (11_700, 155 * 60)


def test_where_a_logs_clock_is_ahead_the_hour_is_known_until_its_newest_event(
    project: Project, clock: SetClock
) -> None:
    records = [execution("e1", "a", at(10)), execution("e2", "a", at(14))]
    clock(at(12))
    materialized(project, records, START, NOW_AND_BUDGETS)
    [now] = project.rows("agent_now", HourRange.of(START))
    assert (now["as_of"], now["executions_1h"]) == (at(14) + timedelta(microseconds=1), 2)


def test_checks_pass_on_a_running_hour(project: Project, clock: SetClock) -> None:
    random = Random(5)
    clock(at(430))
    records = outcomes(random, [random.uniform(0, 430) for _ in range(80)])
    records.append(trigger("t1", "steady", at(425)))
    project.write_log("a.jsonl", map(line, records))
    outcome = run_hours(project.settings, HourRange.of(at(420)), lambda _: None)
    assert (outcome.error, outcome.failed_checks) == (None, [])


# -- again and again, and at last --


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))])
def test_rows_of_any_prefix_of_the_logs_equal_those_of_a_clean_rebuild(
    tmp_path: Path, clock: SetClock, seed: int
) -> None:
    random = Random(seed)
    lines = random_lines(random, 160, hours=6)
    ticks = sorted((random.uniform(200, 359), random.randrange(20, 160)) for _ in range(example_count(2, 4)))
    growing = Project(tmp_path / "growing", {}, 3, 6)
    for place, (minute, held) in enumerate(zip(*map(sorted, zip(*ticks, strict=True)), strict=True)):
        hour = HourRange.of(START + int(minute // 60) * HOUR)
        growing.write_log("a.jsonl", lines[:held])
        clock(at(minute))
        growing.materialize(hour, only_stale=place > 0)
        if not place:  # that was a clean build
            continue
        clean = Project(tmp_path / f"clean-{place}", {}, 3, 6)
        clean.write_log("a.jsonl", lines[:held])
        clean.materialize(hour)
        assert_same_tables(*(_without_history(own.tables(hour, RESULTS)) for own in (growing, clean)))


def _without_history(tables: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The tables without the one column that follows from which hours were materialized before."""
    for row in tables["agent_health_state"]:
        del row["last_healthy_at"]
    return tables


def test_the_running_hour_is_the_same_on_postgresql(tmp_path: Path, clock: SetClock) -> None:
    lines = random_lines(Random(7), 160, hours=6)
    clock(at(340))
    hour, made = HourRange.of(START + 5 * HOUR), {}
    for engine in ("duckdb", "postgres"):
        project = Project(tmp_path / engine, {}, 3, 6, engine=engine)
        project.write_log("a.jsonl", lines)
        project.materialize(hour)
        made[engine] = project.tables(hour, RESULTS)
    assert {row["is_final"] for row in made["postgres"]["agent_now"]} == {False}
    assert_tables_equal_to_9_digits(made["postgres"], made["duckdb"])


@pytest.fixture
def declared(systems: tuple[str, ...]) -> Iterator[None]:
    with declared_systems(*systems):
        yield


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("systems", SYSTEMS_BY_DAY)
def test_an_hour_that_was_made_while_it_ran_is_due_once_it_is_over_without_a_new_line(
    project: Project, clock: SetClock
) -> None:
    clock(at(30))
    materialized(project, [execution("e1", "a", at(20), status="failure")], START, None)
    clock(at(70))
    with project.warehouse.read() as session:
        assert PartitionStates(session).as_of("agent_health") == {START: at(30)}
        [due] = due_hours(session, project.settings, at(70))
    assert set(due.hours) == {START}
    project.materialize(due.hours, only_stale=due.only_stale)
    with project.warehouse.read() as session:
        assert not PartitionStates(session).not_final(DERIVED, HourRange.of(START))
        assert not due_hours(session, project.settings, at(71))
    never_running = Project(project.folder / "other", project.targets, 4, 24)
    materialized(never_running, [execution("e1", "a", at(20), status="failure")], START, None)
    hour = HourRange.of(START)
    assert_same_tables(project.tables(hour, RESULTS), never_running.tables(hour, RESULTS))
    assert all(row["is_final"] for row in project.rows("agent_health", hour))


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("systems", SYSTEMS_BY_DAY)
def test_the_running_hour_is_due_when_logs_have_news_of_it_and_else_not(project: Project, clock: SetClock) -> None:
    def is_due(minute: float) -> bool:
        clock(at(minute))
        project.ingest(HourRange(START, START))
        with project.warehouse.read() as session:
            return running_hour_due(session, project.settings, at(minute)) is not None

    clock(at(70))
    materialized(project, [execution("e1", "a", at(20))], START, None)
    assert not is_due(75), "nothing happened in it"
    project.write_log("b.jsonl", [line(execution("e2", "a", at(76)))])
    assert is_due(77)
    project.materialize(HourRange.of(START + HOUR), only_stale=True)
    assert not is_due(78)
    project.write_log("c.jsonl", [line(execution("e3", "a", at(79)))])
    assert is_due(80)
    project.materialize(HourRange.of(START + HOUR), only_stale=True)
    project.write_log("d.jsonl", [line(execution("e0", "a", at(19)))])
    assert is_due(81), "a late line of its look-back"


def test_scores_besides_those_of_agents_health_follow_the_running_hour_once_they_are_old(
    project: Project, clock: SetClock
) -> None:
    refresh = project.settings.running_hour_refresh_s / 60

    def made(minute: float, records: Sequence[Record]) -> dict[str, datetime]:
        """Write records, and make what is due; gives up to when each asset is known."""
        clock(at(minute))
        if records:
            project.write_log(f"{minute}.jsonl", map(line, records))
        project.ingest(HourRange(START, START))
        with project.warehouse.read() as session:
            due = running_hour_due(session, project.settings, at(minute))
        if due is not None:
            outcome = run_hours(project.settings, due.hours, lambda _: None, due.systems, only_stale=True)
            assert not outcome.problems
        with project.warehouse.read() as session:
            return {
                name: PartitionStates(session).as_of(name)[START]
                for name in ("agent_health", "agent_usage", "tool_health")
            }

    def known_until(live: float, others: float) -> dict[str, datetime]:
        return {"agent_health": at(live), "agent_usage": at(others), "tool_health": at(others)}

    clock(at(10))
    materialized(project, [execution("e1", "a", at(5))], START, None)
    assert made(11, [execution("e2", "a", at(10.5))]) == known_until(11, 10)
    assert made(12, []) == known_until(11, 10), "nothing is new"
    with project.warehouse.read() as session:
        assert at(10 + refresh) <= next_due_at(session, project.settings, at(12)) < at(10.1 + refresh)
    assert made(11 + refresh, []) == known_until(11 + refresh, 11 + refresh)
    assert made(12 + refresh, []) == known_until(11 + refresh, 11 + refresh)
    with project.warehouse.read() as session:
        assert next_due_at(session, project.settings, at(12 + refresh)) > at(59), "nothing waits to be made"


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("systems", SYSTEMS_BY_DAY)
def test_the_running_hour_is_checked_with_all_systems_and_always_while_a_check_stops_what_follows(
    project: Project, clock: SetClock
) -> None:
    hour = HourRange.of(START)

    def due(minute: float) -> DueRun:
        clock(at(minute))
        project.write_log(f"{minute}.jsonl", [line(execution(f"e{minute}", "a", at(minute - 0.5)))])
        project.ingest(HourRange(START, START))
        with project.warehouse.read() as session:
            found = running_hour_due(session, project.settings, at(minute))
        assert found is not None
        return found

    def results() -> list[tuple]:
        return project.query("SELECT asset, expectation, element_count FROM expectation_results ORDER BY ALL")

    clock(at(10))
    project.write_log("a.jsonl", [line(execution("e1", "a", at(5)))])
    assert not run_hours(project.settings, hour, lambda _: None).problems
    before = results()
    assert {asset for asset, *_ in before} >= {"executions", "agent_health"}
    live = due(11)
    assert live.systems and not live.is_checked
    outcome = run_hours(
        project.settings, hour, lambda _: None, live.systems, only_stale=True, is_checked=live.is_checked
    )
    assert not outcome.problems
    assert project.rows("health_components", hour)[0]["executions"] == 2
    of_no_suite = [row for row in results() if row[1] in INGEST_CHECKS]
    assert [row for row in results() if row not in of_no_suite] == [
        row for row in before if row[1] not in INGEST_CHECKS
    ]
    assert ("raw_logs", "every_log_was_read", 2) in of_no_suite, "what the run read is checked all the same"
    project.change("UPDATE expectation_results SET success = false, unexpected_count = 1 WHERE severity = 'error'")
    failing = due(12)
    assert failing.systems and failing.is_checked
    everything = due(10 + project.settings.running_hour_refresh_s / 60 + 1)
    assert everything.is_checked


@pytest.mark.parametrize("window_hours", [1, 24])
def test_the_length_of_a_running_window_is_exact_and_of_one_sql_at_all_times(window_hours: int) -> None:
    random = Random(window_hours)
    hours = ibis.memtable(pa.table({"hour": pa.array([START], pa.timestamp("us", "UTC"))}))
    sql = set()
    for _ in range(example_count(100, nightly=1_000)):
        passed = timedelta(microseconds=random.randrange(1, 3_600_000_000))
        rows = hours.select(length_s=window_lengths_s(hours.hour, window_hours, {START: START + passed}))
        sql.add(ExpressionKey(rows.op()).key)
        whole = passed + (window_hours - 1) * HOUR
        assert rows.to_pyarrow()["length_s"].to_pylist() == [whole.total_seconds()]
    assert len(sql) == 1


def test_a_score_that_cannot_be_made_waits_for_news_of_the_running_hour(project: Project, clock: SetClock) -> None:
    clock(at(10))
    materialized(project, [execution("e1", "a", at(5))], START, None)
    project.change("DELETE FROM partition_states WHERE asset = 'tool_health'")
    clock(at(40))
    with project.warehouse.read() as session:
        assert running_hour_due(session, project.settings, at(40)) is None
        assert next_due_at(session, project.settings, at(40)) > at(59)
