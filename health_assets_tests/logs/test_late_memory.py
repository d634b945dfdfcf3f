"""What the late-log sensor reads in a tick, what it remembers of it, and whose turn it is next."""

import subprocess
import sys
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData

from health_assets.core.hours import HOUR, HourRange
from health_assets.defs import sensors
from health_assets.logs import file_looks, late_memory
from health_assets.logs.files import RawFile, plain_blocks
from health_assets.logs.formats.foreign_lines import Damage
from health_assets.logs.late_memory import Count, LateMemory
from health_assets.logs.limits import Limits, Unpacking
from health_assets.logs.read_ahead import Ahead
from health_assets.pipeline import file_counts
from health_assets.pipeline.resource import Pipeline
from health_assets_tests.support.dagster_world import NOON, World, execution

NOW = NOON + timedelta(hours=1, minutes=40)
"""NOON's hour is over, and the schedule has had its turn."""
BUDGET = 100_000
Tick = Callable[..., SensorExecutionData]
FILLER = "x" * 60_000


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.at(tmp_path / "world", window_hours=3, lookback_hours=6)
    made.write("first.jsonl", [execution(NOON, "first")])
    made.materialize(HourRange.of(NOON))
    return made


@pytest.fixture(autouse=True)
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "BYTES_PER_TICK", BUDGET)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the files that are parsed."""
    names: list[str] = []
    real = file_counts.contents

    def noted(files: list[RawFile], *others: Any) -> list[file_counts.Content]:
        names.extend(file.source_file for file in files)
        return real(files, *others)

    monkeypatch.setattr(file_counts, "contents", noted)
    yield names


def large(hour: datetime, name: str) -> list[dict]:
    """An execution whose line is 60 kB long."""
    return [{**execution(hour, name), "filler": FILLER}]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Keeps the memory from tick to tick."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def tick(instance: dg.DagsterInstance, world: World) -> Tick:
    def _tick(cursor: str | None = None) -> SensorExecutionData:
        definitions = world.definitions()
        resources = {"pipeline": Pipeline(settings=world.settings, clock=lambda: NOW)}
        with dg.build_sensor_context(
            instance=instance, cursor=cursor, definitions=definitions, resources=resources
        ) as context:
            return definitions.resolve_sensor_def("late_logs").evaluate_tick(context)

    return _tick


def test_a_late_file_has_its_turn_behind_files_of_the_hour_that_runs_and_is_not_agreed_with_before(
    world: World, parsed: list[str], tick: Tick
) -> None:
    for name in "abc":
        world.write(f"{name}.jsonl", large(NOON + HOUR, name))
    world.write("late.jsonl", large(NOON, "late"))
    said = tick()
    assert parsed == ["a.jsonl"]
    assert said.skip_message == "the tables agree with 2 of 5 raw logs; 3 files, 180,786 bytes, not looked at yet"
    cursors = [said.cursor]
    while not said.run_requests:
        said = tick(cursors[-1])
        cursors.append(said.cursor)
    assert parsed == ["a.jsonl", "b.jsonl", "c.jsonl", "late.jsonl"]
    assert len(cursors) == 4
    tick(cursors[-1])
    assert len(parsed) == 4, "what was parsed is remembered"
    world.materialize(tags=said.run_requests[0].tags)
    assert tick(cursors[-1]).skip_message == "the tables agree with all 5 raw logs"


def test_the_same_late_lines_are_asked_for_by_the_same_key_once_they_are_remembered(world: World, tick: Tick) -> None:
    world.write("late.jsonl", [execution(NOON, "late")])
    said = tick()
    [key] = [request.run_key for request in said.run_requests or ()]
    assert [request.run_key for request in tick(said.cursor).run_requests or ()] == [key]


def test_files_that_grow_with_every_tick_do_not_take_the_turn_of_one_that_waits(world: World, tick: Tick) -> None:
    cursor = None
    for name in ("a", "b"):
        world.write(f"{name}.jsonl", large(NOON + HOUR, name))
    world.write("late.jsonl", large(NOON, "late"))
    for minute in range(4):
        said = tick(cursor)
        if said.run_requests:
            return
        cursor = said.cursor
        for name in ("a", "b"):
            world.write(f"{name}.jsonl", large(NOON + HOUR, f"{name}{minute}"))
    pytest.fail("the late file never had its turn")


def test_a_file_that_grows_and_has_a_copy_is_hashed_and_parsed_in_one_turn_and_leaves_others_theirs(
    world: World, parsed: list[str], tick: Tick
) -> None:
    live = large(NOON + HOUR, "live")
    world.write("app.jsonl", live)
    world.write("app.copy.jsonl", live)
    world.write("late.jsonl", large(NOON, "late"))
    cursor = None
    for minute in range(7):
        said = tick(cursor)
        if said.run_requests:
            assert "app.jsonl" in parsed, "as soon as it is hashed"
            return
        cursor = said.cursor
        live.append(execution(NOON + HOUR, f"live{minute}"))
        world.write("app.jsonl", live)
    pytest.fail("the late file never had its turn")


def test_files_of_which_a_beginning_is_hashed_are_not_all_parsed_within_one_budget(
    world: World, parsed: list[str], tick: Tick
) -> None:
    begun = [execution(NOON, f"begun{number}") for number in range(20)]
    world.write("known.jsonl", begun)
    world.materialize(HourRange.of(NOON))
    (world.settings.raw / "known.jsonl").unlink()
    for name in "abc":
        world.write(f"{name}.jsonl", [*begun, *large(NOON, name)])
    tick()
    assert len(parsed) == 1


def test_a_file_that_is_larger_than_the_budget_is_read_alone_when_its_turn_comes(
    world: World, parsed: list[str], tick: Tick
) -> None:
    world.write("a.jsonl", large(NOON + HOUR, "a"))
    world.write("huge.jsonl", [*large(NOON, "one"), *large(NOON, "two")])
    first = tick()
    assert parsed == ["a.jsonl"]
    second = tick(first.cursor)
    assert parsed == ["a.jsonl", "huge.jsonl"]
    assert len(second.run_requests) == 1


def test_renamed_files_are_hashed_within_the_budget_and_while_the_warehouse_is_closed(
    world: World, monkeypatch: pytest.MonkeyPatch, tick: Tick
) -> None:
    for name in "abc":
        world.write(f"{name}.jsonl", large(NOON, name))
    world.materialize(HourRange.of(NOON))
    for name in "abc":
        (world.settings.raw / f"{name}.jsonl").rename(world.settings.raw / f"{name}.old.jsonl")
    hashed: list[str] = []

    def noted(file: RawFile, most: Unpacking, *, ahead: Ahead) -> Iterator[bytes | Damage]:
        world.query("CREATE OR REPLACE TABLE nobody_holds_it (one INTEGER)")  # an error while anybody reads
        hashed.append(file.source_file)
        yield from plain_blocks(file, most, ahead=ahead)

    monkeypatch.setattr(file_looks, "plain_blocks", noted)
    said, messages = tick(), []
    for _ in range(3):
        assert not said.run_requests
        messages.append(said.skip_message)
        said = tick(said.cursor)
    assert sorted(hashed) == ["a.old.jsonl", "b.old.jsonl", "c.old.jsonl"]
    assert [message.rpartition(";")[0] for message in messages] == [
        "the tables agree with 2 of 4 raw logs",
        "the tables agree with 3 of 4 raw logs",
        "",
    ]
    assert said.skip_message == "the tables agree with all 4 raw logs"


def test_a_tick_leaves_a_short_cursor_however_many_files_it_remembers_and_without_it_all_is_looked_at_again(
    world: World, parsed: list[str], tick: Tick
) -> None:
    for number in range(200):
        world.write(f"{number}.jsonl", [execution(NOON + HOUR, f"new{number}")])
    said = tick()
    assert len(said.cursor) <= 16
    assert len(parsed) == 200
    assert tick(said.cursor).cursor == said.cursor, "nothing else was found"
    assert len(parsed) == 200, "what was parsed is remembered"
    tick(None)
    assert len(parsed) == 400


def test_what_is_kept_is_bounded_in_bytes_and_no_turn_is_lost_for_it() -> None:
    limits = Limits(until=NOON, rejected_lines=10, unpacked_bytes=1 << 30)
    memory = LateMemory(limits, most_bytes=10)
    heads = "".join(f"{number:02x}" for number in range(64))
    files = [
        RawFile(source_file=f"{number:06}.jsonl", path=Path(f"{number}"), size_bytes=11, modified_ns=number)
        for number in range(60_000)
    ]
    for file in files:
        memory.of(file).heads = heads
        memory.may_read(file)
    text = memory.dump()
    assert len(zlib.decompress(b64decode(text))) <= late_memory.MOST_BYTES + 1000
    again = LateMemory.load(text, limits, 10, 0)
    kept = [again.of(file).heads == heads for file in files]
    assert 10_000 < sum(kept) < len(files)
    assert kept == sorted(kept, reverse=True), "the first ones, so that the same stay"
    assert again.may_read(files[1]), "whose turn it is"


def test_an_event_of_the_future_is_counted_again_when_its_time_has_come(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n")
    file = RawFile(source_file="a.jsonl", path=path, size_bytes=3, modified_ns=path.stat().st_mtime_ns)
    limits = Limits(until=NOON, rejected_lines=10, unpacked_bytes=1 << 30)
    memory = LateMemory(limits)
    memory.of(file).counts = [Count(record_type="rejected", hour=NOON, lines=1, digest=7, future_at=NOON + HOUR)]
    text = memory.dump()
    assert LateMemory.load(text, limits, BUDGET, 0).counts_of(file) == memory.of(file).counts
    assert (
        LateMemory.load(
            text, Limits(until=NOON + HOUR, rejected_lines=10, unpacked_bytes=1 << 30), BUDGET, 0
        ).counts_of(file)
        is None
    )
    assert (
        LateMemory.load(text, Limits(until=NOON, rejected_lines=10, unpacked_bytes=1 << 40), BUDGET, 0).counts_of(file)
        is None
    ), "other limits"
    assert LateMemory.load(text, limits, BUDGET, 1).counts_of(file) is None, "lines are read otherwise"
    changed = RawFile(source_file="a.jsonl", path=path, size_bytes=4, modified_ns=file.modified_ns)
    assert LateMemory.load(text, limits, BUDGET, 0).counts_of(changed) is None


def test_whoever_compares_files_needs_neither_the_memory_of_the_sensor_nor_the_tables() -> None:
    program = "import sys, health_assets.logs.recognition; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"health_assets.logs.late_memory", "health_assets.schema.catalog"}.isdisjoint(done.stdout.split())
