"""What Dagster does with the definitions: schedule, sensor, backfill, blocking checks, metadata. Nothing is mocked."""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetGraph
from dagster._core.definitions.schedule_definition import ScheduleExecutionData
from dagster._core.definitions.sensor_definition import SensorExecutionData
from dagster._core.storage.tags import PRIORITY_TAG
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import PythonFileTarget
from dagster._daemon.backfill import execute_backfill_iteration
from dagster._daemon.sensor import execute_sensor_iteration
from dagster_graphql.client.query import LAUNCH_PARTITION_BACKFILL_MUTATION
from dagster_graphql.test.utils import execute_dagster_graphql

import health_assets.definitions
from health_assets.core.hours import HOUR, KEY_FORMAT, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.defs import sensors
from health_assets.defs.build import FRESHNESS_JOB, JOB, build_definitions
from health_assets.defs.partitions import hours_tags
from health_assets.defs.results import PARTITION_ROW_COUNT
from health_assets.defs.specs import ONLY_STALE_TAG
from health_assets.defs.write_lock.lease_store import LeaseStore
from health_assets.defs.write_lock.leases import Lease
from health_assets.defs.write_lock.write_lock import URGENT
from health_assets.pipeline.hour_arithmetic import newest_finished_hour
from health_assets.systems.declared_assets import DERIVED
from health_assets.systems.suites import SUITES
from health_assets.warehouse.fingerprints import (
    EVERY_LINE_IS_STILL_THERE,
    EVERY_LOG_WAS_READ,
    FEW_READ_LINES_ARE_REJECTED,
)
from health_assets_tests.defs.test_write_lock import holding_here, killed, run_under_way, status
from health_assets_tests.support.dagster_world import (
    ASSETS,
    FLEET_ASSETS,
    NOON,
    QUIET,
    World,
    batching_instance,
    execution,
    lines_of_hour,
    requested_hours,
    stamp,
)
from health_assets_tests.support.holders import holding
from health_assets_tests.support.projects import FLEET, SURVEY_TABLES, declared_as_made

INGEST_CHECKS = (EVERY_LOG_WAS_READ, EVERY_LINE_IS_STILL_THERE, FEW_READ_LINES_ARE_REJECTED)
WINDOW_HOURS = 3
LOOKBACK_HOURS = 6
BUILT = HourRange(NOON - 12 * HOUR, NOON)
HEALTH_TABLES = tuple(DERIVED)
LOG = logging.getLogger("tests")


@dataclass(frozen=True)
class Built:
    """Half a day that was materialized as one run, with its checks; read it, but change only copies."""

    world: World
    result: dg.ExecuteInProcessResult
    instance: dg.DagsterInstance


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    folder = tmp_path_factory.mktemp("built")
    world = World.at(folder, window_hours=WINDOW_HOURS, lookback_hours=LOOKBACK_HOURS)
    world.write_hours(BUILT)
    with batching_instance(tmp_path_factory.mktemp("dagster")) as instance:
        yield Built(world, world.run(instance, BUILT), instance)


@pytest.fixture(scope="module")
def graph(built: Built) -> BaseAssetGraph:
    return built.world.definitions().resolve_asset_graph()


@pytest.fixture
def world(built: Built, tmp_path: Path) -> World:
    """A copy of the hours that were built."""
    return built.world.copied(tmp_path / "world")


@pytest.fixture(scope="module")
def fleet_once(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The same hours, of the Agent Health Model alone; tests change only copies."""
    world = World.at(tmp_path_factory.mktemp("fleet"), window_hours=WINDOW_HOURS, lookback_hours=LOOKBACK_HOURS)
    world.write_hours(BUILT)
    world.materialize(BUILT, only=FLEET)
    return world


@pytest.fixture
def fleet(fleet_once: World, tmp_path: Path) -> World:
    return fleet_once.copied(tmp_path / "world")


# -- the schedule ----------------------------------------------------------------------------------------------------


def schedule_tick(world: World, instance: dg.DagsterInstance, at: datetime) -> dg.RunRequest:
    """The one run that the hourly schedule requests at a moment."""
    (request,) = evaluated_schedule(world, instance, at).run_requests
    return request


def evaluated_schedule(
    world: World, instance: dg.DagsterInstance, at: datetime, name: str = "hourly"
) -> ScheduleExecutionData:
    """What a schedule says at a moment."""
    definitions = world.definitions()
    with dg.build_schedule_context(
        instance, at, resources=world.resources(), repository_def=definitions.get_repository_def()
    ) as context:
        return definitions.resolve_schedule_def(name).evaluate_tick(context)


@pytest.mark.parametrize(
    ("moment", "hours"),
    [
        (NOON + timedelta(minutes=5), HourRange.of(NOON - HOUR)),
        (NOON + timedelta(hours=1, minutes=5), HourRange.of(NOON)),
        (NOON + timedelta(hours=4, minutes=5), HourRange(NOON, NOON + 4 * HOUR)),
        (NOON + timedelta(hours=100, minutes=5), HourRange(NOON + 94 * HOUR, NOON + 100 * HOUR)),
    ],
    ids=["again", "next", "after 4 hours", "after an outage longer than the look-back"],
)
def test_the_schedule_requests_one_run_from_the_last_materialized_hour_to_the_newest_finished_one(
    built: Built, moment: datetime, hours: HourRange
) -> None:
    assert requested_hours(schedule_tick(built.world, built.instance, moment).tags) == hours


def test_the_schedule_of_the_running_hour_requests_it_where_logs_have_news_and_no_run_makes_it(
    tmp_path: Path, built: Built
) -> None:
    world, now = World.at(tmp_path / "running"), NOON + HOUR / 2

    def tick(instance: dg.DagsterInstance = built.instance) -> ScheduleExecutionData:
        return evaluated_schedule(world, instance, now, "running_hour")

    assert tick().skip_message == "nothing is new of the hour from 2026-06-07-12:00"
    world.write("a.jsonl", [execution(NOON - HOUR, "before"), execution(NOON, "so far", minute=10)])
    world.materialize(HourRange.of(NOON - HOUR), only=FLEET)
    assert [requested_hours(request.tags) for request in tick().run_requests] == [HourRange.of(NOON)]
    with dg.instance_for_test() as instance:
        job, tags = world.definitions().resolve_job_def(JOB), hours_tags(HourRange.of(NOON))
        instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)
        assert tick(instance).skip_message == "a run of the hour is under way"
    world.materialize(HourRange.of(NOON), only=FLEET)
    assert tick().skip_message == "nothing is new of the hour from 2026-06-07-12:00"


def test_the_schedule_requests_only_the_newest_finished_hour_of_an_empty_warehouse(
    tmp_path: Path, built: Built
) -> None:
    empty = World.at(tmp_path / "empty")
    request = schedule_tick(empty, built.instance, NOON + timedelta(minutes=5))
    assert requested_hours(request.tags) == HourRange.of(NOON - HOUR)
    assert request.tags["dagster/partition"] == "2026-06-07-11:00"


def test_hours_that_the_schedule_catches_up_with_equal_a_clean_rebuild(
    world: World, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    missed = HourRange(NOON, NOON + 3 * HOUR)
    world.write_hours(missed)
    request = schedule_tick(world, instance, missed.end + timedelta(minutes=5))
    world.materialize(tags=request.tags, only=FLEET)
    clean = world.rebuilt(tmp_path / "clean", HourRange(BUILT.start, missed.end), only=FLEET)
    assert world.tables(FLEET_ASSETS) == clean.tables(FLEET_ASSETS)


def test_the_schedule_catches_up_with_a_hole_before_a_later_hour(world: World, instance: dg.DagsterInstance) -> None:
    world.write("late.jsonl", [execution(NOON + 2 * HOUR, "after the outage")])
    for request in sensor_tick(world, instance).run_requests:
        world.materialize(tags=request.tags, only=FLEET)
    request = schedule_tick(world, instance, NOON + timedelta(hours=4, minutes=5))
    assert requested_hours(request.tags) == HourRange(NOON, NOON + 4 * HOUR)


def test_the_schedule_and_the_sensor_skip_with_a_sentence_while_there_is_no_raw_root(
    built: Built, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    for raw, sentence in (
        (
            tmp_path / "later",
            f"there is no raw root {tmp_path / 'later'}; set HEALTH_RAW or --raw to where the logs are",
        ),
        ("memory://later", "there is nothing at memory://later; set HEALTH_RAW or --raw to where the logs are"),
    ):
        for warehouse in (built.world.settings.warehouse, str(tmp_path / "none.duckdb")):
            changed = {"raw": raw, "warehouse": warehouse}
            world = World(built.world.settings.model_copy(update=changed))
            tick = evaluated_schedule(world, instance, NOON + timedelta(minutes=5))
            assert (tick.run_requests, tick.skip_message) == ([], sentence)
            told = sensor_tick(world, instance)
            assert (told.run_requests, told.skip_message) == ([], sentence)
            assert not (tmp_path / "none.duckdb").exists()


def test_a_raw_root_that_cannot_be_looked_at_fails_the_run_for_all_to_see_rather_than_its_tick(
    built: Built, instance: dg.DagsterInstance
) -> None:
    world = World(built.world.settings.model_copy(update={"raw": "nonsense://bucket"}))
    (request,) = evaluated_schedule(world, instance, NOON + timedelta(minutes=5)).run_requests
    result = world.run(instance, tags=request.tags)
    assert not result.success
    (failure,) = [event.step_failure_data for event in result.get_step_failure_events()]
    assert failure.user_failure_data.description.startswith("the raw root nonsense://bucket")


def test_nothing_is_late_before_anything_was_materialized(built: Built, tmp_path: Path) -> None:
    for world, is_asked in ((World.at(tmp_path / "empty", keep_days=30), False), (built.world, True)):
        tick = evaluated_schedule(world, built.instance, NOON + timedelta(minutes=31), "freshness")
        assert len(tick.run_requests) == is_asked
        assert is_asked or tick.skip_message == "nothing has been materialized yet, so nothing is late"
    world = World.at(tmp_path / "empty", keep_days=30)
    tick = evaluated_schedule(world, built.instance, NOON, "prune_old_hours_daily")
    assert tick.skip_message == "nothing has been materialized yet, so there is nothing to drop"
    kept = World(built.world.settings.model_copy(update={"keep_days": 30}))
    assert len(evaluated_schedule(kept, built.instance, NOON, "prune_old_hours_daily").run_requests) == 1
    assert not Path(world.settings.warehouse).exists()


def test_schedules_start_by_themselves_unless_the_setting_says_otherwise(built: Built) -> None:
    for is_on, expected in ((True, dg.DefaultScheduleStatus.RUNNING), (False, dg.DefaultScheduleStatus.STOPPED)):
        world = World(built.world.settings.model_copy(update={"schedules": is_on, "keep_days": 30}))
        schedules = world.definitions().get_repository_def().schedule_defs
        assert {schedule.name: schedule.default_status for schedule in schedules} == dict.fromkeys(
            ("hourly", "freshness", "survey", "prune_run_history_daily", "prune_old_hours_daily"), expected
        ) | {"running_hour": dg.DefaultScheduleStatus.STOPPED}


def test_schedules_and_sensor_run_by_themselves(built: Built) -> None:
    definitions = built.world.definitions()
    hourly, freshness = (definitions.resolve_schedule_def(name) for name in ("hourly", "freshness"))
    sensor = definitions.resolve_sensor_def("late_logs")
    assert (hourly.cron_schedule, freshness.cron_schedule) == ("5 * * * *", "31 * * * *")
    assert hourly.execution_timezone == freshness.execution_timezone == "UTC"
    assert {hourly.default_status, freshness.default_status} == {dg.DefaultScheduleStatus.RUNNING}
    assert sensor.default_status == dg.DefaultSensorStatus.RUNNING


# -- the late-log sensor ---------------------------------------------------------------------------------------------


def sensor_tick(world: World, instance: dg.DagsterInstance) -> SensorExecutionData:
    """What the late-log sensor says now."""
    definitions = world.definitions()
    sensor, resources = definitions.resolve_sensor_def("late_logs"), world.resources()
    with (
        declared_as_made(resources["pipeline"]),
        dg.build_sensor_context(instance, definitions=definitions, resources=resources) as context,
    ):
        return sensor.evaluate_tick(context)


def dependent_hours(touched: list[datetime], end: datetime) -> set[datetime]:
    """The touched hours and those whose look-back reaches them."""
    return {hour + step * HOUR for hour in touched for step in range(LOOKBACK_HOURS) if hour + step * HOUR < end}


def groups(hours: set[datetime]) -> int:
    """How many ranges without holes hold these hours."""
    return sum(hour - HOUR not in hours for hour in hours)


def test_the_sensor_skips_where_nothing_is_late(built: Built, tmp_path: Path) -> None:
    tick = sensor_tick(built.world, built.instance)
    assert not tick.run_requests
    assert tick.skip_message == "the tables agree with all 12 raw logs"
    empty = World.at(tmp_path / "empty")
    empty.write("first.jsonl", lines_of_hour(NOON))
    assert sensor_tick(empty, built.instance).skip_message == "nothing has been materialized yet, so nothing is late"


def test_a_tick_ends_the_run_of_a_command_that_was_killed_on_another_host(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    run_id = run_under_way(instance)
    with holding(instance, run_id, tmp_path, host="another-host", lease_s=2) as holder:
        sensor_tick(World.at(tmp_path / "empty"), instance)
        assert status(instance, run_id) == dg.DagsterRunStatus.STARTED
        killed(holder)
        while status(instance, run_id) == dg.DagsterRunStatus.STARTED:
            time.sleep(0.5)
            sensor_tick(World.at(tmp_path / "empty"), instance)
    assert status(instance, run_id) == dg.DagsterRunStatus.FAILURE


def test_a_run_that_dagster_starts_waits_for_its_turn_and_fails_with_a_sentence_that_names_the_holder(
    built: Built, instance: dg.DagsterInstance
) -> None:
    impatient = World(built.world.settings.model_copy(update={"lease_timeout_s": 0.5}))
    with holding_here(instance):
        result = impatient.run(instance, HourRange.of(NOON - HOUR), assets=["system_health"])
    (failure,) = [event.step_failure_data for event in result.get_step_failure_events()]
    assert "did not come free within 0.5 s; it is held by another run (host " in failure.user_failure_data.description
    assert LeaseStore(instance.run_storage).read().clients == ()


def test_a_run_holds_the_lease_from_its_first_write_to_its_end_as_urgent_as_its_tags_say(
    world: World, instance: dg.DagsterInstance
) -> None:
    seen: list[Lease] = []
    tags = {**hours_tags(HourRange.of(NOON - HOUR)), **URGENT}
    result = world.run(
        instance, tags=tags, assets=["agent_health", "system_health"],
        on_event=lambda _: seen.append(LeaseStore(instance.run_storage).read()),
    )  # fmt: skip
    assert result.success, "also though the check of the newest hour, which Dagster takes along, finds it late"
    holders = [lease.held_by.run_id if lease.held_by else None for lease in seen]
    assert [holder for holder, _ in groupby(holders)] == [None, result.run_id], "once taken it is kept"
    assert {lease.held_by.priority for lease in seen if lease.held_by} == {10}
    assert LeaseStore(instance.run_storage).read().clients == ()


def test_the_newest_hour_and_its_checks_go_ahead_and_late_logs_wait_their_turn(
    built: Built, world: World, instance: dg.DagsterInstance
) -> None:
    hourly = schedule_tick(built.world, built.instance, NOON + timedelta(minutes=5))
    (freshness,) = evaluated_schedule(built.world, built.instance, NOON, "freshness").run_requests
    world.write("late/0.jsonl", [execution(NOON - HOUR, "late")])
    late = sensor_tick(world, instance).run_requests
    assert [request.tags.get(PRIORITY_TAG) for request in (hourly, freshness, *late)] == ["10", "10", None]


@pytest.mark.parametrize(
    "late",
    [(-30, -9, -1)],
    ids=["before the first, in the middle and the last"],
)
def test_late_files_are_requested_in_one_tick_and_leave_the_tables_of_a_clean_rebuild(
    fleet: World, instance: dg.DagsterInstance, tmp_path: Path, late: tuple[int, ...]
) -> None:
    touched = [NOON + offset * HOUR for offset in late]
    for place, hour in enumerate(touched):
        fleet.write(f"late/{place}.jsonl.gz", [execution(hour, f"late-{place}", agent="eve", status="failure"), "[]"])
    expected = dependent_hours(touched, BUILT.end)
    built_before = materialized_at(fleet, "health_components")

    requests = sensor_tick(fleet, instance).run_requests
    ranges = [requested_hours(request.tags) for request in requests]
    assert sorted(hour for hours in ranges for hour in hours) == sorted(expected), "each dependent hour once"
    assert len(ranges) == groups(expected), "as few runs as possible"
    assert len({request.run_key for request in requests}) == len(requests)
    for request in requests:
        fleet.materialize(tags=request.tags, only=FLEET)

    hours = HourRange(min([*touched, BUILT.start]), BUILT.end)
    clean = fleet.rebuilt(tmp_path / "clean", hours, only=FLEET)
    assert differing(fleet, clean, set(BUILT) | expected, FLEET_ASSETS) == []
    assert sensor_tick(fleet, instance).skip_message.startswith("the tables agree with all")
    built_after = materialized_at(fleet, "health_components")
    rebuilt = {hour for hour in built_before if built_after[hour] != built_before[hour]}
    assert rebuilt == set(touched) & set(BUILT), "components of hours without late events stay as they are"


def test_a_file_that_grew_and_one_delivered_twice_leave_the_tables_of_a_clean_rebuild(
    fleet: World, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    grown, twice = NOON - 10 * HOUR, NOON - 8 * HOUR
    new = {"type": "trigger", "trigger_id": "new", "agent_id": "ada", "fired_at": stamp(grown), "status": "fired"}
    fleet.write("2026-06-07/02.jsonl", [*lines_of_hour(grown), new])
    fleet.write("copies/04.jsonl.gz", lines_of_hour(twice))
    (request,) = sensor_tick(fleet, instance).run_requests
    # what came twice is known by what it holds, and nothing depends on it
    assert set(requested_hours(request.tags)) == dependent_hours([grown], BUILT.end)
    fleet.materialize(tags=request.tags, only=FLEET)
    clean = fleet.rebuilt(tmp_path / "clean", BUILT, only=FLEET)
    assert fleet.tables(FLEET_ASSETS) == clean.tables(FLEET_ASSETS)
    assert fleet.query("SELECT count(*) FROM trigger_events WHERE trigger_id = 'new'") == [(1,)]


def test_a_line_added_to_a_file_of_many_hours_touches_only_its_hour(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    world = World.at(tmp_path / "world", window_hours=1, lookback_hours=2)
    day = [line for hour in BUILT for line in lines_of_hour(hour)]
    world.write("day.jsonl", day)
    world.materialize(BUILT, only=FLEET)
    world.write("day.jsonl", [*day, execution(NOON - 10 * HOUR, "one more")])
    (request,) = sensor_tick(world, instance).run_requests
    assert requested_hours(request.tags) == HourRange(NOON - 10 * HOUR, NOON - 8 * HOUR)


def test_hours_before_the_first_hour_of_the_settings_are_neither_offered_nor_looked_after(
    world: World, instance: dg.DagsterInstance
) -> None:
    first = NOON - 10 * HOUR
    cut = World(world.settings.model_copy(update={"first_hour": first}))
    definitions = build_definitions(cut.settings)
    for name in ASSETS:
        partitions = definitions.resolve_assets_def(name).partitions_def
        assert partitions.get_first_partition_key() == f"{first:{KEY_FORMAT}}"
    cut.write("early.jsonl", [execution(first - HOUR, "early")])
    (request,) = sensor_tick(cut, instance).run_requests
    assert requested_hours(request.tags).start == first, "it looks back on the hour before"
    cut.write("late.jsonl", [execution(first, "late")])
    (request,) = sensor_tick(cut, instance).run_requests
    assert requested_hours(request.tags).start == first
    request = schedule_tick(cut, instance, NOON + timedelta(hours=100, minutes=5))
    assert requested_hours(request.tags) == HourRange(NOON + 94 * HOUR, NOON + 100 * HOUR)
    later = World(world.settings.model_copy(update={"first_hour": NOON + 98 * HOUR}))
    request = schedule_tick(later, instance, NOON + timedelta(hours=100, minutes=5))
    assert requested_hours(request.tags) == HourRange(NOON + 98 * HOUR, NOON + 100 * HOUR), "not what was missed before"
    assert sensor_tick(later, instance).skip_message == "nothing has been materialized yet, so nothing is late"
    skipped = evaluated_schedule(later, instance, NOON + timedelta(hours=98, minutes=5))
    assert "HEALTH_FIRST_HOUR" in skipped.skip_message


def test_a_late_run_that_dies_after_reading_is_requested_again(world: World, instance: dg.DagsterInstance) -> None:
    world.write("late.jsonl", [execution(NOON - 2 * HOUR, "late")])
    (first,) = sensor_tick(world, instance).run_requests
    records = [name for name in ASSETS if name not in HEALTH_TABLES]
    assert world.run(instance, tags=first.tags, assets=records).success  # and then the process is killed
    (second,) = sensor_tick(world, instance).run_requests
    assert requested_hours(second.tags) == requested_hours(first.tags)


def test_hours_of_a_run_under_way_are_not_requested_again(world: World, instance: dg.DagsterInstance) -> None:
    world.write("late.jsonl", [execution(NOON - 2 * HOUR, "late")])
    (first,) = sensor_tick(world, instance).run_requests
    job = world.definitions().resolve_job_def(JOB)
    instance.create_run_for_job(job, tags=first.tags, status=dg.DagsterRunStatus.STARTED)
    world.write("later.jsonl", [execution(NOON - 2 * HOUR, "later")])
    assert not sensor_tick(world, instance).run_requests, "the next tick after the run sees what it has left"


def test_the_sensor_skips_while_a_step_holds_the_warehouse(
    built: Built, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = built.world.copied(tmp_path / "world")
    monkeypatch.setattr(sensors, "LOCK_TIMEOUT_S", 0.2)
    program = (
        f"import duckdb, sys; held = duckdb.connect({world.settings.warehouse!r}); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        try:
            tick = sensor_tick(world, instance)
        finally:
            holder.kill()
    assert tick.skip_message


def test_an_asset_that_was_materialized_alone_before_its_inputs_is_mended_by_the_next_run(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    world = World.at(tmp_path / "world", window_hours=2, lookback_hours=3)
    world.write_hours(HourRange(NOON - 4 * HOUR, NOON))
    world.run(instance, HourRange(NOON - 4 * HOUR, NOON - 2 * HOUR), assets=["health_components"])
    last = HourRange(NOON - 2 * HOUR, NOON)
    world.materialize(last, only=FLEET)
    assert differing(world, world.rebuilt(tmp_path / "clean", last, only=FLEET), hours=set(last.extended_back(2))) == []


def test_a_file_for_the_hour_that_is_still_the_schedules_is_left_to_it(
    built: Built, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # with minute 59, the hour that ended last is the schedule's until one minute before the next ends
    world = built.world.copied(tmp_path / "world", schedule_minute=59)
    this_hour = floor_hour(datetime.now(UTC))
    clock = SimpleNamespace(now=lambda _: this_hour + HOUR / 2)
    monkeypatch.setattr(sensors, "datetime", clock)  # whatever the time is, the hour has half of it left
    world.write("unfinished.jsonl", [execution(this_hour, "e-now", minute=0)])
    world.write("due.jsonl", [execution(this_hour - HOUR, "e-due")])
    tick = sensor_tick(world, instance)
    assert not tick.run_requests
    late = NOON - 4 * HOUR
    world.write("late.jsonl", [execution(late, "e-late")])
    (request,) = sensor_tick(world, instance).run_requests
    assert requested_hours(request.tags) == HourRange(late, BUILT.end)


def materialized_at(world: World, asset: str) -> dict[datetime, datetime]:
    """When each hour of an asset was last built."""
    return dict(world.query(f"SELECT hour, materialized_at FROM partition_states WHERE asset = '{asset}'"))


def materialized_assets(result: dg.ExecuteInProcessResult) -> set[str]:
    """Names of the assets that a run materialized."""
    return {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()}


def differing(world: World, clean: World, hours: set[datetime], assets: Sequence[str] = ASSETS) -> list[str]:
    """Names of assets' tables that differ in the rows of these hours."""
    mine, other = world.tables(assets), clean.tables(assets)
    place = {name: 1 if name == "partition_states" else 0 for name in mine}
    kept = {
        name: tuple([row for row in tables[name] if row[place[name]] in hours] for tables in (mine, other))
        for name in mine
    }
    return [name for name, (left, right) in kept.items() if left != right]


# -- a backfill from the UI ------------------------------------------------------------------------------------------


# both warnings come from inside Dagster
@pytest.mark.filterwarnings("ignore:Function `AssetSelection.sources` is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:coroutine 'BaseEventLoop.shutdown_asyncgens' was never awaited:RuntimeWarning")
@pytest.mark.parametrize(
    ("assets", "has_late_file"),
    [
        pytest.param(FLEET_ASSETS, False, id="some assets"),
        # by day `test_late_logs_sensor` has the requests of late files
        pytest.param(ASSETS, True, id="all assets, then a late file", marks=pytest.mark.nightly),
    ],
)
def test_days_launched_from_the_ui_are_one_run_and_a_file_of_earlier_hours_after_it_is_one_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assets: Sequence[str], has_late_file: bool
) -> None:
    end = floor_hour(datetime.now(UTC)) - HOUR  # Dagster lists all hours from the first to now for every check
    days = HourRange(end - 3 * HOUR, end)
    world = World.at(tmp_path / "world")
    world.write_hours(days)
    for name in ("raw", "warehouse"):
        monkeypatch.setenv(f"HEALTH_{name.upper()}", str(getattr(world.settings, name)))
    (tmp_path / "dagster").mkdir()
    with (
        batching_instance(
            tmp_path / "dagster", synchronous_run_coordinator=True, synchronous_run_launcher=True
        ) as instance,
        create_test_daemon_workspace_context(_definitions_file(), instance) as workspace,
    ):
        backfill_id = _launch_backfill(workspace.create_request_context(), days, assets)
        errors = list(filter(None, execute_backfill_iteration(workspace, LOG)))
        (run,) = instance.get_runs()
        assert not errors
        assert run.status == dg.DagsterRunStatus.SUCCESS
        assert run.tags["dagster/backfill"] == backfill_id
        assert requested_hours(run.tags) == days
        assert run.asset_selection == {dg.AssetKey(name) for name in assets}
        list(execute_backfill_iteration(workspace, LOG))
        assert instance.get_backfill(backfill_id).status.value == "COMPLETED_SUCCESS"
        for name in assets:
            assert set(keys_of(days)) <= instance.get_materialized_partitions(dg.AssetKey(name)), name
        assert world.query("SELECT count(*), min(hour), max(hour) FROM system_health") == [
            (len(days), days.start, end - HOUR)
        ]
        clean = world.rebuilt(tmp_path / "clean", days, only=FLEET)  # at the end all tables are compared
        assert world.tables(FLEET_ASSETS) == clean.tables(FLEET_ASSETS)
        if not has_late_file:
            return

        late = days.start - 2 * HOUR  # before the first hour that the pages offer
        world.write("late.jsonl", [execution(late, "late")])
        for _ in range(2):  # the second time there is nothing left to do
            list(execute_sensor_iteration(workspace, LOG, None, None))
        late_run, *_, first_run = instance.get_runs()
        assert len(instance.get_runs()) == 2
        assert first_run.run_id == run.run_id
        assert late_run.status == dg.DagsterRunStatus.SUCCESS
        assert late_run.tags["dagster/sensor_name"] == "late_logs"
        assert ONLY_STALE_TAG in late_run.tags
        assert requested_hours(late_run.tags) == HourRange(late, end)
        for name in ASSETS:
            assert set(keys_of(HourRange(late, end))) == instance.get_materialized_partitions(dg.AssetKey(name)), name
        assert world.tables() == world.rebuilt(tmp_path / "clean again", HourRange(late, end)).tables()


def _definitions_file() -> PythonFileTarget:
    path = health_assets.definitions.__file__
    return PythonFileTarget(path, attribute="defs", working_directory=None, location_name="health_assets")


def _launch_backfill(request_context: object, hours: HourRange, assets: Sequence[str]) -> str:
    parameters = {
        "partitionNames": keys_of(hours),
        "assetSelection": [{"path": [name]} for name in assets],
        "tags": [],
        "fromFailure": False,
    }
    answer = execute_dagster_graphql(
        request_context, LAUNCH_PARTITION_BACKFILL_MUTATION, {"backfillParams": parameters}
    )
    assert not answer.errors
    assert "backfillId" in answer.data["launchPartitionBackfill"], answer.data
    return answer.data["launchPartitionBackfill"]["backfillId"]


def keys_of(hours: HourRange) -> list[str]:
    """Partition keys, as a user sees them."""
    return [f"{hour:%Y-%m-%d-%H:00}" for hour in hours]


# -- checks ----------------------------------------------------------------------------------------------------------


def failed_checks(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    """The checks of a run that failed."""
    evaluations = result.get_asset_check_evaluations()
    return {f"{one.asset_key.to_user_string()}.{one.check_name}": one for one in evaluations if not one.passed}


def test_a_failing_check_of_a_record_table_stops_all_that_follows_from_the_records_until_it_is_mended(
    world: World, instance: dg.DagsterInstance
) -> None:
    last = HourRange.of(NOON - HOUR)
    before = world.tables(FLEET_ASSETS)
    following = set(DERIVED)
    built_at = {name: materialized_at(world, name) for name in following}
    world.query("UPDATE executions SET confidence = 7 WHERE execution_id = 'e2-0711'")

    result = world.run(instance, last)
    ((name, evaluation),) = failed_checks(result).items()
    assert not result.success
    assert name == "executions.shares_are_between_0_and_1"
    assert evaluation.severity == dg.AssetCheckSeverity.ERROR
    assert materialized_assets(result) == set(ASSETS) - following
    assert {name: materialized_at(world, name) for name in following} == built_at
    assert evaluation.metadata["unexpected_count"].value == 1
    (sample,) = evaluation.metadata["failing_rows"].records
    assert (sample.data["execution_id"], sample.data["confidence"]) == ("e2-0711", 7.0)
    history = "SELECT success, unexpected_count FROM expectation_results WHERE hour = TIMESTAMPTZ '2026-06-07 11:00Z'"
    assert world.query(f"{history} AND asset || '.' || expectation = '{name}'") == [(False, 1)]

    world.query("DELETE FROM executions WHERE confidence > 1")
    result = world.run(instance, last, assets=["raw_logs", "executions"])
    assert result.success
    assert not failed_checks(result)
    world.materialize(last, only=FLEET)
    assert world.tables(FLEET_ASSETS) == before


def test_a_failing_check_of_raw_logs_stops_what_follows(world: World, instance: dg.DagsterInstance) -> None:
    world.query("UPDATE raw_files SET lines = lines + 1 WHERE source_file = '2026-06-07/11.jsonl'")
    result = world.run(instance, HourRange.of(NOON - HOUR))
    assert set(failed_checks(result)) == {"raw_logs.every_line_is_accounted_for"}
    assert not materialized_assets(result) & set(HEALTH_TABLES)


def test_checks_alone_can_be_executed_as_dagsters_page_offers_it(world: World, instance: dg.DagsterInstance) -> None:
    wanted = {
        dg.AssetCheckKey(dg.AssetKey(asset), check)
        for asset, check in (
            ("executions", "shares_are_between_0_and_1"), ("agent_health", "agent_has_one_row_per_hour"),
            ("raw_logs", EVERY_LOG_WAS_READ), ("agent_probes", "required_values_are_present"),
        )
    }  # fmt: skip
    before = {name: materialized_at(world, name) for name in ASSETS}
    job = world.definitions().resolve_implicit_global_asset_job_def()
    alone = job.get_subset(asset_selection=set(), asset_check_selection=wanted)
    result = alone.execute_in_process(
        instance=instance, tags=hours_tags(HourRange.of(NOON - HOUR)), run_config=QUIET, raise_on_error=False
    )
    assert result.success
    assert {one.asset_check_key for one in result.get_asset_check_evaluations()} == wanted
    assert not materialized_assets(result)
    assert {name: materialized_at(world, name) for name in ASSETS} == before


def test_a_failing_warning_stops_nothing_and_shows_samples(built: Built) -> None:
    failed = failed_checks(built.result)
    assert built.result.success
    assert set(failed) == {
        "rejected_records.few_lines_are_rejected", "raw_logs.few_lines_of_a_file_are_rejected",
        "raw_logs.few_read_lines_are_rejected",
    }  # fmt: skip
    evaluation = failed["rejected_records.few_lines_are_rejected"]
    assert evaluation.severity == dg.AssetCheckSeverity.WARN
    assert materialized_assets(built.result) == set(ASSETS)
    assert evaluation.metadata["failed_hours"].value == "1: 2026-06-07-00:00"
    (sample,) = evaluation.metadata["failing_rows"].records
    assert sample.data["rejected_share"] == pytest.approx(1 / 10)


def test_every_check_of_every_suite_is_evaluated_and_kept_for_every_hour(built: Built) -> None:
    declared = {
        (asset, check.name) for asset, suite in SUITES.items() if asset not in SURVEY_TABLES for check in suite.checks
    }
    found = built.result.get_asset_check_evaluations()
    evaluations = [one for one in found if one.check_name not in INGEST_CHECKS]
    assert len(found) == len(evaluations) + len(INGEST_CHECKS)
    assert {(one.asset_key.to_user_string(), one.check_name) for one in evaluations} == declared
    assert len(evaluations) == len(declared)
    assert {one.metadata["hours"].value for one in evaluations} == {"2026-06-07T00 to 2026-06-07T12 (12 h)"}
    history = built.world.query("SELECT asset, expectation FROM expectation_results GROUP BY ALL HAVING count(*) = 12")
    assert set(history) == declared | {("raw_logs", name) for name in INGEST_CHECKS}


def test_an_hour_that_is_not_there_in_time_is_noticed_whatever_else_was_backfilled(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    world = World.at(tmp_path / "world")
    now = floor_hour(datetime.now(UTC))

    def newest_is_in_time() -> bool:
        job = world.definitions().resolve_job_def(FRESHNESS_JOB)
        result = job.execute_in_process(instance=instance, run_config=QUIET, raise_on_error=False)
        (evaluation,) = result.get_asset_check_evaluations()
        assert result.success == evaluation.passed, "a late hour lies in no run that succeeded"
        assert evaluation.severity == dg.AssetCheckSeverity.ERROR
        if not result.success:
            (failure,) = [event.step_failure_data for event in result.get_step_failure_events()]
            due = newest_finished_hour(datetime.now(UTC), timedelta(minutes=world.settings.late_after_minutes))
            assert f"the hour {due:{KEY_FORMAT}} is late" in failure.user_failure_data.description
        return evaluation.passed

    assert not newest_is_in_time(), "nothing was ever materialized"
    world.materialize(HourRange(now - 4 * HOUR, now - 3 * HOUR), only=FLEET)
    assert not newest_is_in_time(), "the newest hour is missing"
    world.materialize(HourRange.of(now - 300 * HOUR), only=FLEET)
    assert not newest_is_in_time(), "only an old hour was materialized just now"
    world.materialize(HourRange(now - 2 * HOUR, now), only=FLEET)
    assert newest_is_in_time()
    world.materialize(HourRange.of(now - 200 * HOUR), only=FLEET)
    assert newest_is_in_time()


# -- what a user sees of an asset ------------------------------------------------------------------------------------


def test_definitions_load_without_a_warning(tmp_path: Path) -> None:
    program = (
        "import dagster as dg; from health_assets.definitions import defs; made = defs; "
        "dg.Definitions.validate_loadable(made); "
        f"assert made.resolve_job_def({JOB!r})"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HEALTH_", "DAGSTER_"))}
    loaded = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stderr == ""
    assert list(tmp_path.iterdir()) == [], "loading leaves nothing behind"


@pytest.mark.parametrize("name", ASSETS)
def test_every_asset_says_what_it_is(built: Built, graph: BaseAssetGraph, name: str) -> None:
    spec = graph.get(dg.AssetKey(name))
    assert spec.description and spec.description.endswith(".")
    assert spec.group_name not in (None, "default")
    assert spec.kinds
    assert spec.owners == ["team:agent-platform"]
    assert spec.backfill_policy == dg.BackfillPolicy.single_run()
    checks = [key for key in graph.asset_check_keys if key.asset_key == dg.AssetKey(name)]
    assert len(checks) >= len(SUITES[name].checks) >= 3
    columns = {column.name: column for column in spec.metadata["dagster/column_schema"].columns}
    assert all(column.description for column in columns.values())
    actual = built.world.query(f"SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = '{name}'")
    double = {"DOUBLE PRECISION": "DOUBLE"}
    assert [(column.name, double.get(column.type, column.type)) for column in columns.values()] == actual


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("data/health.duckdb", "duckdb"),
        ("duckdb:///data/health.duckdb", "duckdb"),
        ("postgresql+psycopg://user@host/database", "postgresql"),
    ],
)
def test_every_asset_shows_where_its_rows_are(url: str, kind: str) -> None:
    assets = build_definitions(Settings(warehouse=url)).resolve_asset_graph()
    for name in (*ASSETS, *SURVEY_TABLES):
        kinds = assets.get(dg.AssetKey(name)).kinds
        assert kind in kinds, name
        assert len(kinds & {"duckdb", "postgresql"}) == 1, name


@pytest.mark.parametrize("name", ASSETS)
def test_every_materialization_has_its_row_count_and_a_small_table(built: Built, name: str) -> None:
    events = [
        event.step_materialization_data.materialization
        for event in built.result.get_asset_materialization_events()
        if event.asset_key.to_user_string() == name
    ]
    assert [event.partition for event in events] == keys_of(BUILT)
    metadata = events[-1].metadata
    assert [(metadata["dagster/row_count"].value,)] == built.world.query(f"SELECT count(*) FROM {name}")
    assert metadata["hours"].value == "2026-06-07T00 to 2026-06-07T12 (12 h)"
    if name in (
        "spans",
        "cancellations",
        "computed_signals",
        "evaluations",
        "evaluated_signals",
        "release_comparison",
        "drift",
        "fallback_components",
        "model_fallback",
    ):  # the world has none of their lines, one version of each agent, no degraded model, and no past
        return
    (table,) = [value.value for value in metadata.values() if isinstance(value, dg.MarkdownMetadataValue)]
    heading, rule, *rows = table.splitlines()
    assert heading.startswith("|") and set(rule) <= set("|:-")
    assert 1 <= len(rows) <= 10
    if name not in HEALTH_TABLES:
        assert (metadata["files_read"].value, metadata["lines_read"].value) == (12, 12 * 9 + 1)
        assert metadata["lines_rejected"].value == 1


def test_the_small_tables_name_the_worst_agents_and_the_reasons_of_rejection(built: Built) -> None:
    tables = {
        event.asset_key.to_user_string(): event.step_materialization_data.materialization.metadata
        for event in built.result.get_asset_materialization_events()
    }
    heading, _, first, *_ = tables["agent_health"]["worst agents"].value.splitlines()
    shown = dict(zip(*([cell.strip() for cell in row.split("|")] for row in (heading, first)), strict=True))
    newest = "hour = (SELECT max(hour) FROM agent_now)"
    [(verdict,)] = built.world.query(f"SELECT verdict FROM agent_now WHERE agent_id = 'bob' AND {newest}")
    assert (shown["agent_id"], shown["now"]) == ("bob", verdict), "agent_now is made before the table that tells it"
    assert "not valid JSON" in tables["rejected_records"]["reasons of rejection"].value


# -- what Dagster draws ----------------------------------------------------------------------------------------------

Numbers = dict[str, dict[str, dict[str, float]]]
"""By asset, partition and name."""


@pytest.fixture(scope="module")
def drawn(built: Built) -> Numbers:
    """The numbers of each asset's materializations."""
    found: Numbers = {}
    for event in built.result.get_asset_materialization_events():
        made = event.step_materialization_data.materialization
        numbers = {name: value.value for name, value in made.metadata.items() if isinstance(value.value, int | float)}
        found.setdefault(made.asset_key.to_user_string(), {})[made.partition] = numbers
    return found


def test_every_hour_of_a_run_has_its_own_row_count(built: Built, drawn: Numbers) -> None:
    assert set(drawn) == set(ASSETS)
    for name, by_hour in drawn.items():
        counts = dict(built.world.query(f"SELECT hour, count(*) FROM {name} GROUP BY hour"))
        expected = {f"{hour:{KEY_FORMAT}}": counts.get(hour, 0) for hour in BUILT}
        assert {key: numbers[PARTITION_ROW_COUNT] for key, numbers in by_hour.items()} == expected, name


def test_curves_are_the_hours_agents_by_state_mean_score_and_rejected_lines(built: Built, drawn: Numbers) -> None:
    for state in ("healthy", "degraded", "unhealthy", "inactive"):
        sql = f"SELECT hour, count(*) FILTER (state = '{state}') FROM agent_health GROUP BY hour"
        expected = {f"{hour:{KEY_FORMAT}}": count for hour, count in built.world.query(sql)}
        assert {key: own[f"agents {state}"] for key, own in drawn["agent_health"].items()} == expected, state
    means = {
        f"{hour:{KEY_FORMAT}}": mean
        for hour, mean in built.world.query("SELECT hour, avg(health_score) FROM agent_health GROUP BY 1")
    }
    assert {key: own["mean health score"] for key, own in drawn["agent_health"].items()} == pytest.approx(means)
    assert [own.get("rejected lines", 0) for _, own in sorted(drawn["rejected_records"].items())] == [1] + [0] * 11
