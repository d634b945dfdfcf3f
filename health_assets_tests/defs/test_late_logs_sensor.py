"""A tick of the late-log sensor: what it loads itself, what it leaves to a run, and which runs it requests."""

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData

from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.defs import sensors
from health_assets.defs.build import JOB
from health_assets.defs.partitions import hours_of_tags, hours_tags, named_hours_tags
from health_assets.defs.specs import ONLY_STALE_TAG
from health_assets.defs.write_lock.write_lock import WriteLock
from health_assets.pipeline.publishing import publish
from health_assets.pipeline.resource import Pipeline
from health_assets_tests.support.dagster_world import NOON, World, execution
from health_assets_tests.support.projects import FLEET, declared_as_made

NOW = NOON + timedelta(hours=1, minutes=40)
"""NOON's hour is over, and the schedule has run."""
Tick = Callable[[], SensorExecutionData]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> World:
    """NOON's hour, made of one execution; tests change only copies."""
    made = World.at(tmp_path_factory.mktemp("world"), window_hours=3, lookback_hours=6)
    made.write("first.jsonl", [execution(NOON, "first")])
    made.materialize(HourRange.of(NOON), only=FLEET)
    return made


@pytest.fixture
def world(made_once: World, tmp_path: Path) -> World:
    return made_once.copied(tmp_path / "world")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def tick(instance: dg.DagsterInstance, world: World) -> Tick:
    return tick_of(world, instance)


def tick_of(world: World, instance: dg.DagsterInstance) -> Tick:
    definitions = world.definitions()
    pipeline = Pipeline(settings=world.settings, clock=lambda: NOW)

    def _tick() -> SensorExecutionData:
        with (
            declared_as_made(pipeline),
            dg.build_sensor_context(
                instance=instance, definitions=definitions, resources={"pipeline": pipeline}
            ) as context,
        ):
            return definitions.resolve_sensor_def("late_logs").evaluate_tick(context)

    return _tick


def loaded(world: World) -> set[str]:
    return {name for (name,) in world.query("SELECT execution_id FROM executions")}


def test_it_loads_lines_of_the_hour_that_runs_and_requests_nothing_for_them(world: World, tick: Tick) -> None:
    world.write("now.jsonl", [execution(NOON + HOUR, "now")])
    said = tick()
    assert not said.run_requests
    assert said.skip_message == "the tables agree with all 2 raw logs"
    assert loaded(world) == {"first", "now"}


def test_a_late_line_is_loaded_and_its_hour_requested_by_the_same_key_until_more_comes(
    world: World, tick: Tick
) -> None:
    world.write("late.jsonl", [execution(NOON, "late")])
    [request] = tick().run_requests or ()
    assert loaded(world) == {"first", "late"}
    assert request.tags[ONLY_STALE_TAG] == "true"
    assert [again.run_key for again in tick().run_requests or ()] == [request.run_key]
    world.write("later.jsonl", [execution(NOON, "later")])
    [other] = tick().run_requests or ()
    assert other.run_key != request.run_key
    world.materialize(tags=other.tags, only=FLEET)
    assert tick().skip_message == "the tables agree with all 3 raw logs"


def test_hours_that_a_run_makes_are_left_to_it(world: World, tick: Tick, instance: dg.DagsterInstance) -> None:
    world.write("late.jsonl", [execution(NOON, "late"), execution(NOON - HOUR, "later")])
    hourly = instance.create_run_for_job(
        world.definitions().resolve_job_def(JOB),
        tags=hours_tags(HourRange.of(NOON)),
        status=dg.DagsterRunStatus.STARTED,
    )
    [request] = tick().run_requests or ()
    assert hours_of_tags(request.tags) == HourGroups((HourRange.of(NOON - HOUR),))
    instance.delete_run(hourly.run_id)
    [request] = tick().run_requests or ()
    assert hours_of_tags(request.tags) == HourGroups((HourRange(NOON - HOUR, NOON + HOUR),))


def test_a_new_hour_is_left_to_the_run_of_the_schedule(world: World, tick: Tick, instance: dg.DagsterInstance) -> None:
    tags = named_hours_tags(HourGroups.of([NOON - 5 * HOUR, NOON]))
    instance.create_run_for_job(world.definitions().resolve_job_def(JOB), tags=tags, status=dg.DagsterRunStatus.STARTED)
    world.write("late.jsonl", [execution(NOON, "late")])
    said = tick()
    assert not said.run_requests
    assert str(said.skip_message).endswith("; 2 hours are left to runs that are under way")


def test_what_is_too_much_for_a_tick_is_loaded_by_a_run_of_the_newest_hour(
    world: World, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensors, "MOST_BYTES", 1_000)
    world.write("large.jsonl", [{**execution(NOON - HOUR, "late"), "filler": "x" * 2_000}])
    [request] = tick().run_requests or ()
    assert loaded(world) == {"first"}
    assert (request.run_key, request.tags["dagster/partition"]) == (f"{HourRange.of(NOON)} logs", "2026-06-07-12:00")
    world.materialize(tags=request.tags, only=FLEET)
    assert loaded(world) == {"first", "late"}
    [late] = tick().run_requests or ()
    assert late.tags["dagster/partition"] == "2026-06-07-11:00", "the run looked back on it"
    world.materialize(tags=late.tags, only=FLEET)
    assert not tick().run_requests


def test_late_hours_are_requested_beside_logs_that_are_too_much_for_a_tick(
    world: World, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("late.jsonl", [execution(NOON, "late")])
    [late] = tick().run_requests or ()
    monkeypatch.setattr(sensors, "MOST_BYTES", 1_000)
    world.write("large.jsonl", [{**execution(NOON + HOUR, "now"), "filler": "x" * 2_000}])
    keys = [request.run_key for request in tick().run_requests or ()]
    assert keys == [f"{HourRange.of(NOON)} logs", late.run_key]


def test_of_a_large_log_that_grew_only_the_new_lines_count_against_what_a_tick_may_load(
    world: World, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [{**execution(NOON + HOUR, "large"), "filler": "x" * 2_000}]
    world.write("large.jsonl", lines)
    tick()
    monkeypatch.setattr(sensors, "MOST_BYTES", 1_000)
    world.write("large.jsonl", [*lines, execution(NOON + HOUR, "new")])
    assert not tick().run_requests
    assert loaded(world) == {"first", "large", "new"}


def test_while_a_run_has_the_write_lock_of_command_it_loads_nothing_and_says_so(
    world: World, tick: Tick, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensors, "LOCK_TIMEOUT_S", 0.2)
    world.write("late.jsonl", [execution(NOON, "late")])
    with WriteLock(instance, world.settings, str(uuid4()), "the run 1234") as write_lock:
        write_lock.take()
        said = tick()
    assert not said.run_requests
    assert "it is held by the run 1234" in str(said.skip_message)
    assert str(said.skip_message).endswith("; the next tick looks again")
    assert loaded(world) == {"first"}


def test_a_log_that_cannot_be_read_is_told_and_those_beside_it_are_loaded(world: World, tick: Tick) -> None:
    (world.settings.raw / "dangling.jsonl").symlink_to(world.settings.raw / "nowhere")
    world.write("now.jsonl", [execution(NOON + HOUR, "now")])
    said = tick()
    assert "the tables agree with all 2 raw logs; 1 cannot be read: " in str(said.skip_message)
    assert loaded(world) == {"first", "now"}
    assert tick().skip_message == said.skip_message


def test_of_a_compressed_log_what_it_unpacks_to_counts(
    world: World, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensors, "MOST_BYTES", 1_000)
    packed = gzip.compress(json.dumps({**execution(NOON + HOUR, "packed"), "filler": "x" * 20_000}).encode())
    assert len(packed) < 1_000
    (world.settings.raw / "packed.jsonl.gz").write_bytes(packed)
    assert [request.run_key for request in tick().run_requests or ()] == [f"{HourRange.of(NOON)} logs"]


def test_what_a_run_left_unpublished_is_published_by_a_run_of_that_alone(
    made_once: World, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    world = made_once.copied(tmp_path / "world", published=tmp_path / "published")
    first, again = (tick_of(world, instance)() for _ in range(2))
    [request] = first.run_requests or []
    assert request.asset_selection == [dg.AssetKey("published_tables")]
    assert [request.run_key] == [one.run_key for one in again.run_requests or []]
    publish(world.settings, tmp_path / "published")
    done = tick_of(world, instance)()
    assert not done.run_requests
    assert done.skip_message == "the tables agree with all 1 raw logs"
