"""Which hours a command is about: named ones, those of the logs, never the future, and no long holes."""

import os
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.logs.files import list_files
from health_assets.pipeline.partition_selection import PartitionSelection, select_hours, worth_materializing
from health_assets.pipeline.resource import Pipeline
from health_assets.systems.stale_partitions import left_behind, stale_hours, stale_statuses
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.log_coverage import CoveredHours
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import FLEET, ONE_SYSTEM_BY_DAY, Project, Row, assert_same_tables, hours_from

NOW = START + timedelta(days=3, minutes=20)
RUNNING = START + timedelta(days=3)
RESULTS = ("executions", *FLEET[1:])


def hour(number: int) -> datetime:
    return START + number * HOUR


def wanted(
    project: Project, first: str | None = None, end: str | None = None, now: datetime = NOW
) -> PartitionSelection:
    return select_hours(Pipeline(settings=project.settings, clock=lambda: now), first, end)


def test_hours_that_have_not_begun_are_refused_in_one_sentence(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("e", "planner", START))])
    with pytest.raises(
        HealthAssetsError,
        match=r"^--from 2099-01-01T00 has not begun yet; the newest hour that is over is 2026-06-09T23$",
    ):
        wanted(project, "2099-01-01", "2099-01-02")
    with pytest.raises(HealthAssetsError, match="--from 2026-06-10T01 has not begun yet"):
        wanted(project, "2026-06-10T01")
    sentence = (
        "^--to 2026-06-10T02 asks for hours that have not begun yet; --to 2026-06-10T00 ends with the newest hour that "
        "is over, --to 2026-06-10T01 with the one that runs$"
    )
    for first in ("2026-06-07T00", None):
        with pytest.raises(HealthAssetsError, match=sentence):
            wanted(project, first, "2026-06-10T02")
    assert not project.has_warehouse


def test_the_hour_that_runs_is_taken_only_when_it_is_named(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution(f"e{at}", "planner", at)) for at in (RUNNING - HOUR, RUNNING)])
    named = wanted(project, "2026-06-09T23", "2026-06-10T01")
    assert named == PartitionSelection(HourGroups((HourRange(RUNNING - HOUR, RUNNING + HOUR),)))
    by_itself = wanted(project)
    assert list(by_itself.hours) == [RUNNING - HOUR]
    assert by_itself.notices[1:] == ("they hold events of 2026-06-10T00 too, which is not over and left for later",)


def test_lines_that_tell_the_hours_are_not_read_again_by_the_run(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("a", "planner", START)), "bad"], modified=START)
    found = wanted(project)
    assert found.loaded is not None
    assert (found.loaded.lines_read, found.loaded.rejected) == (2, 1)
    assert not project.ingest(found.hours.span).files_read
    again = wanted(project)
    assert (again.hours, again.loaded) == (found.hours, None)


def test_a_late_line_that_tells_the_hours_changes_the_results_of_its_hour_and_of_those_after_it(
    project: Project,
) -> None:
    project.write_log("a.jsonl", [line(execution(f"e{n}", "planner", START + n * HOUR)) for n in range(0, 30, 5)])
    project.materialize(wanted(project).hours, only=FLEET)
    project.write_log("late.jsonl", [line(execution("late", "planner", START + 6 * HOUR, status="failure"))])
    found = wanted(project)
    assert found.loaded is not None
    project.materialize(found.hours, only=FLEET)
    assert_same_tables(
        project.tables(names=RESULTS), project.clean_rebuild(found.hours.span, only=FLEET).tables(names=RESULTS)
    )


def test_logs_of_a_wrong_folder_do_not_bind_the_warehouse_to_it(project: Project) -> None:
    wrong, right = project.folder / "wrong", project.raw
    wrong.mkdir()
    (wrong / "a.jsonl").write_text("no event\n")
    project.raw = wrong
    with pytest.raises(HealthAssetsError, match="there is no event in the raw log below"):
        wanted(project)
    project.raw = right
    project.write_log("b.jsonl", [line(execution("b", "planner", START))])
    assert list(wanted(project).hours) == [START]


def test_a_log_that_was_merely_touched_holds_what_it_held(project: Project) -> None:
    path = project.write_log("a.jsonl", [line(execution("e", "planner", START))], modified=START)
    project.ingest(hours_from(START, 1))
    os.utime(path)
    assert list(wanted(project).hours) == [START]


def test_later_events_are_left_for_later_and_said(project: Project) -> None:
    at = [START, START + HOUR, RUNNING, RUNNING + 5000 * HOUR]  # the last one is rejected
    project.write_log("a.jsonl", [line(execution(f"e{n}", "planner", moment)) for n, moment in enumerate(at)])
    found = wanted(project)
    assert found.hours == HourGroups((HourRange(START, RUNNING),))
    assert "they hold events of 2026-06-10T00 too, which is not over and left for later" in found.notices[1]


@pytest.mark.parametrize("named", [None, "2026-06-10T00"])
def test_with_nothing_else_there_the_running_hour_is_shown_as_it_is_so_far(project: Project, named: str | None) -> None:
    project.write_log("a.jsonl", [line(execution("e", "planner", NOW))])
    found = wanted(project, named)
    assert list(found.hours) == [RUNNING]
    assert found.notices[1:] == ("no hour of them is over, so 2026-06-10T00 is shown as it is so far",)
    project.write_log("b.jsonl", [line(execution("f", "planner", RUNNING - HOUR))])
    assert RUNNING not in wanted(project).hours, "there is something else"


def test_logs_of_the_future_alone_say_why_there_is_no_event(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("e", "planner", NOW + 50 * HOUR))], modified=START)
    with pytest.raises(HealthAssetsError, match="line 1: ended_at is in the future"):
        wanted(project)


@pytest.mark.parametrize("named", [(None, None), ("2026-06-07T00", "2026-06-07T01")])
def test_the_logs_of_another_raw_root_are_refused_before_they_are_looked_at(
    project: Project, named: tuple[str | None, str | None]
) -> None:
    project.write_log("a.jsonl", [line(execution("a", "planner", START))])
    project.write_log("b.jsonl", [line(execution("b", "planner", START + HOUR))])
    project.ingest(hours_from(START, 2))
    with project.warehouse.write() as session:
        Ledger(session).require_root(project.raw, list_files(project.raw))
    first, project.raw = project.raw, project.folder / "another"
    project.raw.mkdir()
    (project.raw / "a.jsonl").write_bytes((first / "a.jsonl").read_bytes())
    with pytest.raises(
        HealthAssetsError, match=r"^the warehouse was filled from the raw logs in .*raw, and .*another "
    ):
        wanted(project, *named)
    (project.raw / "b.jsonl").write_bytes((first / "b.jsonl").read_bytes())
    assert list(wanted(project, *named).hours), "one that has merely moved is taken"


# -- holes -------------------------------------------------------------------------------------------------------------

EVENTS = (0, 2, 60, 200, 210)
REACH_HOURS = 24


def sparse_project(project: Project) -> Project:
    """A few events days apart of an agent that targets list, and another that nobody has seen."""
    project.window_hours, project.lookback_hours = REACH_HOURS // 2, REACH_HOURS
    project.write_targets({"agents": {"planner": {"expected_runtime_s": 10}, "listed": {}}})
    for place, number in enumerate(EVENTS):
        at = hour(number) + timedelta(minutes=5)
        lines = [
            line(execution(f"e{number}", "planner", at, 20, session_id="s", model=f"m{place % 2}", task_id="t",
                           status="failure" if place % 2 else "success", confidence=0.4)),
            line({"type": "model_call", "call_id": f"c{number}", "model": "m1", "ended_at": at.isoformat(),
                  "status": "success", "latency_ms": 5}),
            "bad",
        ]  # fmt: skip
        project.write_log(f"{place}.jsonl", lines)
    return project


FAR = hour(400)


def within(tables: dict[str, list[Row]], hours: HourGroups) -> dict[str, list[Row]]:
    return {name: [row for row in rows if row["hour"] in hours] for name, rows in tables.items()}


@pytest.mark.parametrize("only", ONE_SYSTEM_BY_DAY)
def test_a_sparse_log_needs_no_naming_and_its_hours_are_those_of_a_full_rebuild(
    project: Project, only: Sequence[str] | None
) -> None:
    sparse_project(project)
    found = wanted(project, now=FAR)
    assert [(own.start, len(own)) for own in found.hours.ranges] == [(hour(0), 26), (hour(60), 24), (hour(200), 11)]
    assert found.notices[-1] == (
        f"{211 - 61} of these 211 hours are left out: no event lies in them nor in the {REACH_HOURS} h before, "
        "so nothing is known of any agent there"
    )
    project.materialize(found.hours, only=only)
    clean = project.clean_rebuild(HourRange(START, hour(211)), only=only)
    assert_same_tables(project.tables(), within(clean.tables(), found.hours))
    lost = [name for name, rows in clean.tables().items() if len(rows) > len(project.rows(name))]
    assert set(lost) <= {"system_health", "agent_health", "agent_health_state", "error_budget", "agent_usage"}
    in_holes = [row for row in clean.rows("agent_health") if row["hour"] not in found.hours]
    assert {(row["agent_id"], row["state"]) for row in in_holes} == {
        (name, "inactive") for name in ("listed", "planner")
    }


def test_hours_before_the_first_event_after_a_hole_are_said_to_be_left_out(project: Project) -> None:
    sparse_project(project)
    found = wanted(project, f"{hour(190):%Y-%m-%dT%H}", now=FAR)
    assert list(found.hours.ranges) == [HourRange(hour(200), hour(211))]
    assert found.notices[-1] == (
        f"10 of the hours of {HourRange(hour(190), hour(211))} are left out: no event lies in them nor in the 24 h "
        "before, so nothing is known of any agent there"
    )
    assert len(wanted(project, f"{hour(200):%Y-%m-%dT%H}", now=FAR).notices) == 1, "nothing is left out"


def test_after_a_sparse_run_nothing_is_late_or_left_behind(project: Project) -> None:
    sparse_project(project)
    hours = wanted(project, now=FAR).hours
    project.materialize(hours, only=FLEET)
    assert project.not_loaded() == set()
    with project.warehouse.read() as session:
        assert stale_hours(stale_statuses(session, hours.span, project.settings)) == (set(), set())
        assert left_behind(session, hours, (), project.settings, FAR) == []
    again = wanted(project, now=FAR)
    assert again.hours == hours, "hours that were made along with others do not make further ones"
    project.write_log("late.jsonl", [line(execution("late", "planner", hour(120)))])
    found = wanted(project, now=FAR)
    assert HourRange(hour(120), hour(144)) in found.hours.ranges
    project.materialize(found.hours, only=FLEET)
    clean = project.clean_rebuild(HourRange(START, hour(211)), only=FLEET)
    assert_same_tables(project.tables(), within(clean.tables(), found.hours))


def test_hours_with_scores_are_filled_again_and_short_holes_stay() -> None:
    held = CoveredHours({hour(0), hour(100)}, rejected={hour(60)}, loaded=set())
    span = HourRange(hour(0), hour(101))
    found = worth_materializing(held, {hour(80)}, span, reach_hours=10)
    ranges = [(own.start, own.end) for own in found.ranges]
    assert ranges == [(hour(0), hour(10)), (hour(60), hour(61)), (hour(80), hour(81)), (hour(100), hour(101))]
    assert worth_materializing(held, {hour(80)}, span, reach_hours=60).ranges == (span,)


def test_a_line_of_long_ago_starts_no_run_over_the_years_between(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("old", "planner", datetime(2001, 1, 1, tzinfo=START.tzinfo)))])
    project.write_log("b.jsonl", [line(execution("new", "planner", START))])
    assert len(wanted(project).hours) == 168 + 1


def test_groups_of_hours_know_their_hours() -> None:
    groups = HourGroups.of([hour(0), hour(1), hour(5)])
    assert (list(groups), len(groups), groups.has_holes) == ([hour(0), hour(1), hour(5)], 3, True)
    assert [one in groups for one in (hour(-1), hour(1), hour(2), hour(5), hour(6))] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert list(groups.extended_back(2).ranges) == [HourRange(hour(-2), hour(2)), HourRange(hour(3), hour(6))]
    assert groups.span == hours_from(START, 6)
    assert groups.chunks() == [groups.span]
    assert len(HourGroups.of([hour(0), hour(10_000)]).chunks()) == 2
    assert str(groups) == "3 h of 2026-06-07T00 to 2026-06-07T06 (6 h)"
    with pytest.raises(ValueError, match="touch or are not in order"):
        HourGroups((hours_from(START, 2), hours_from(hour(2), 1)))
    with pytest.raises(ValueError, match="at least one range"):
        HourGroups(())
