"""Hours that are due: those that are over and were missed, those of which something has changed, none twice."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from health_assets.cli.running import run_hours
from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.pipeline.log_ingestion import load_new_logs
from health_assets.systems import formula_versions
from health_assets.systems.declared_assets import SYSTEMS
from health_assets.systems.due_hours import DueRun, due_hours
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, declared_as_made, declared_systems, hours_from

SYSTEM = "agent_health_model"
NOW = START + 10 * HOUR + timedelta(minutes=20)
LAST = START + 9 * HOUR
STEPS = ["ingest", *(asset.name for asset in SYSTEMS[SYSTEM])]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return of_ten_hours(tmp_path / "project")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = of_ten_hours(tmp_path_factory.mktemp("made") / "project")
    made.materialize(hours_from(START, 10), only=STEPS)
    return made


@pytest.fixture
def ten_hours(made_once: Project, tmp_path: Path) -> Project:
    """A copy of ten hours that were made."""
    return made_once.copied(tmp_path / "project")


def of_ten_hours(folder: Path) -> Project:
    made = Project(folder, None, 2, 4, now=NOW)
    made.write_log("a.jsonl", [line(execution(f"e{n}", "planner", START + n * HOUR + HOUR / 2)) for n in range(10)])
    return made


def load(project: Project) -> None:
    load_new_logs(project.pipeline)


def due(project: Project, now: datetime = NOW) -> list[DueRun]:
    with declared_as_made(project.pipeline), project.warehouse.read() as session:
        return due_hours(session, project.settings, now)


def due_of_all_systems(project: Project) -> list[DueRun]:
    with project.warehouse.read() as session:
        return due_hours(session, project.settings, NOW)


def late(hours: HourRange) -> DueRun:
    return DueRun(hours=HourGroups((hours,)))


def test_nothing_is_due_before_any_hour_was_made(project: Project) -> None:
    load(project)
    assert due(project) == []


def test_an_hour_is_due_once_it_is_over_for_as_long_as_the_schedule_waits(ten_hours: Project) -> None:
    assert due(ten_hours) == []
    ends = START + 11 * HOUR
    assert due(ten_hours, ends + timedelta(minutes=ten_hours.settings.schedule_minute - 1)) == []
    [one] = due(ten_hours, ends + timedelta(minutes=ten_hours.settings.schedule_minute))
    assert one == DueRun(hours=HourGroups((HourRange.of(START + 10 * HOUR),)), only_stale=False)


def test_a_new_hour_whose_lines_came_while_it_ran_is_due_once(ten_hours: Project) -> None:
    ten_hours.write_log("b.jsonl", [line(execution("e10", "planner", START + 10 * HOUR + HOUR / 6))])
    load(ten_hours)
    [one] = due(ten_hours, NOW + HOUR)
    assert one == DueRun(hours=HourGroups((HourRange.of(START + 10 * HOUR),)), only_stale=False)


def test_a_late_line_before_a_new_hour_is_due_beside_it(ten_hours: Project) -> None:
    ten_hours.write_log("b.jsonl", [line(execution(f"e{n}", "a", START + n * HOUR + HOUR / 6)) for n in (8, 10)])
    load(ten_hours)
    [new, before] = due(ten_hours, NOW + HOUR)
    assert list(new.hours) == [START + 10 * HOUR]
    assert list(before.hours) == [START + 8 * HOUR, START + 9 * HOUR]


def fail_a_check(project: Project, hour: datetime) -> None:
    """Note of an hour, as a run does, that its executions failed a check."""
    project.change(
        "INSERT INTO expectation_results (hour, asset, expectation, success, element_count, unexpected_count, severity) "
        "VALUES (?, 'executions', 'runtimes_are_plausible', false, 1, 1, 'error')",
        [hour],
    )


def test_a_new_hour_does_not_wait_for_one_that_fails_a_check(project: Project) -> None:
    project.materialize(hours_from(START, 7), only=STEPS)
    load(project)
    fail_a_check(project, START + 8 * HOUR)
    missed, last, failing = due(project)
    assert [list(one.hours) for one in (missed, last, failing)] == [
        [START + 7 * HOUR], [LAST], [START + 8 * HOUR],
    ]  # fmt: skip
    assert (missed.only_stale, last.only_stale, failing.only_stale) == (False, False, True)


def test_late_hours_are_made_apart_from_one_among_them_that_fails_a_check(ten_hours: Project) -> None:
    ten_hours.write_log("late.jsonl", [line(execution("late", "planner", START + 2 * HOUR + HOUR / 2))])
    load(ten_hours)
    fail_a_check(ten_hours, START + 3 * HOUR)
    ranges = [list(one.hours) for one in due(ten_hours)]
    assert [START + 3 * HOUR] in ranges
    assert ranges.index([START + 3 * HOUR]) == len(ranges) - 1, "it is made last"


def test_a_new_hour_that_fails_a_check_is_due_for_as_long_as_it_was_not_made(project: Project) -> None:
    project.materialize(hours_from(START, 9), only=STEPS)
    load(project)
    fail_a_check(project, LAST)
    assert due(project) == [DueRun(hours=HourGroups((HourRange.of(LAST),)), only_stale=False)]


def test_hours_that_were_missed_are_made_with_the_newest_as_far_as_it_looks_back(project: Project) -> None:
    project.materialize(hours_from(START, 3), only=STEPS)
    [missed, *_] = due(project)
    assert list(missed.hours) == [*hours_from(LAST - 3 * HOUR, 4)]


def test_a_late_line_makes_its_hour_due_and_those_that_look_back_on_it(ten_hours: Project) -> None:
    ten_hours.write_log("late.jsonl", [line(execution("late", "planner", START + 2 * HOUR + HOUR / 2))])
    load(ten_hours)
    [one] = due(ten_hours)
    assert one.only_stale
    assert {START + 2 * HOUR, START + 3 * HOUR} <= set(one.hours) <= {*hours_from(START + 2 * HOUR, 4)}
    ten_hours.materialize(one.hours, only=STEPS, only_stale=True)
    assert due(ten_hours) == []


def test_a_late_line_that_is_rejected_makes_its_hour_alone_due_until_a_run_checks_it(
    ten_hours: Project,
) -> None:
    project = ten_hours
    assert due(project) == []
    project.write_log("late.jsonl", [line(execution("late", "planner", START + 2 * HOUR)), "bad"])
    bad = line({"type": "trigger", "trigger_id": "t", "fired_at": (START + 5 * HOUR).isoformat(), "status": "no"})
    project.write_log("late.jsonl", [bad])
    load(project)
    assert due(project) == [late(HourRange.of(START + 5 * HOUR))]
    run_hours(project.settings, HourRange.of(START + 5 * HOUR), lambda _: None, [SYSTEM], only_stale=True)
    assert due(project) == []


def test_hours_that_logs_have_and_nobody_asked_for_are_due(project: Project) -> None:
    project.materialize(HourRange.of(LAST), only=STEPS)
    [one] = due(project)
    assert (START in one.hours, LAST in one.hours) == (True, False), "the last looks back on none of these"


def test_hours_of_an_older_formula_are_due_for_its_system_alone(ten_hours: Project) -> None:
    ten_hours.change(
        "UPDATE partition_states SET formula_version = '0' WHERE asset = 'agent_health' AND hour = ?", [LAST]
    )
    [one] = due(ten_hours)
    assert (list(one.hours), one.systems) == ([LAST], (SYSTEM,))


# -- hours that an asset lacks ---------------------------------------------------------------------------------------------


def test_hours_that_a_killed_first_run_left_to_other_systems_are_due_for_these(ten_hours: Project) -> None:
    with declared_systems(SYSTEM, "tool_health", "agent_usage"):
        [one] = due_of_all_systems(ten_hours)
        assert list(one.hours) == [*hours_from(START, 10)]
        assert (one.only_stale, one.systems) == (True, tuple(name for name in SYSTEMS if name != SYSTEM))
        made = [asset.name for name in one.systems for asset in SYSTEMS[name]]
        ten_hours.materialize(one.hours, only=["ingest", *made], only_stale=True)
        assert due_of_all_systems(ten_hours) == []
        ten_hours.change("DELETE FROM partition_states WHERE asset = 'agent_usage' AND hour < ?", [START + 2 * HOUR])
        ten_hours.change(
            "UPDATE partition_states SET dropped_digest = '' WHERE hour = ? AND asset = 'executions'", [START]
        )
        ten_hours.change("DELETE FROM partition_states WHERE asset = 'tool_health' AND hour = ?", [LAST])
        found = [(list(one.hours), one.systems) for one in due_of_all_systems(ten_hours)]
        assert found == [([START + HOUR], ()), ([LAST], ("tool_health",))], (
            "systems alone do not look back on dropped rows"
        )


def test_a_missing_hour_is_made_with_the_system_whose_check_failed_before_it(project: Project) -> None:
    assets = [asset.name for name in (SYSTEM, "error_budget", "agent_usage") for asset in SYSTEMS[name]]
    project.materialize(hours_from(START, 10), only=["ingest", *assets])
    project.change("DELETE FROM partition_states WHERE asset = 'error_budget' AND hour >= ?", [LAST - HOUR])
    project.change(
        "INSERT INTO expectation_results (hour, asset, expectation, success, element_count, unexpected_count, severity) "
        "VALUES (?, 'health_components', 'counts_add_up', false, 1, 1, 'error')",
        [LAST],
    )
    found = {tuple(one.hours): one.systems for one in due(project)}
    assert found == {(LAST - HOUR,): ("error_budget",), (LAST,): (SYSTEM, "error_budget")}


def test_of_many_missing_hours_the_newest_are_due_first(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formula_versions, "HOURS_AT_ONCE", 4)
    project.materialize(hours_from(START, 10), only=[*STEPS, "usage_components", "agent_usage"])
    project.change("DELETE FROM partition_states WHERE asset = 'agent_usage' AND hour <> ?", [START])
    [one] = due(project)
    assert (list(one.hours), one.systems) == ([*hours_from(START + 6 * HOUR, 4)], ("agent_usage",))
