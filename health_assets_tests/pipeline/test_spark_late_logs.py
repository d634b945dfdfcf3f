"""The look for late logs on a cluster: executors find what this process finds by itself, and it reads no line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

import fsspec
import pytest

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from health_assets.core.errors import UnreadableFilesError
from health_assets.core.hours import HOUR
from health_assets.defs import sensors
from health_assets.defs.sensors import late_logs_sensor
from health_assets.logs import reader
from health_assets.logs.files import RawFile, list_files
from health_assets.logs.late_memory import Count, LateMemory
from health_assets.logs.stores import Faults
from health_assets.pipeline import executor_sharding
from health_assets.pipeline.file_counts import counted_here, counting_of
from health_assets.pipeline.late_logs import all_unread, late_parts, unread
from health_assets.pipeline.partition_selection import select_hours
from health_assets.warehouse.ledger_parts import Lines, Part
from health_assets_tests.support.logs_made import START, cut_into_files, execution, line, random_lines
from health_assets_tests.support.projects import FLEET, Project, hours_from, tick
from health_assets_tests.support.spark_servers import apache_spark_process, needs_apache_spark, sail_process

pytestmark = pytest.mark.nightly  # by day the tables' equality on Sail stands for it
NOW = START + timedelta(days=3, minutes=20)
HOURS = hours_from(START, 6)
IN_THE_FUTURE = line(execution("future", "planner", NOW + HOUR))


class Pair(NamedTuple):
    """Two projects that look at the same logs."""

    duckdb: Project
    spark: Project

    def write_log(self, name: str, lines: Sequence[str | bytes], modified: datetime = START + HOUR) -> Path:
        return self.duckdb.write_log(name, lines, modified=modified)


@pytest.fixture(scope="module", params=["sail", pytest.param("spark", marks=[pytest.mark.nightly, needs_apache_spark])])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in another process, so that what this one does can be told from what executors do."""
    process = sail_process if request.param == "sail" else apache_spark_process
    with process(tmp_path_factory.mktemp("spark")) as (made, _):
        yield made


@pytest.fixture(autouse=True)
def small_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let executors read few files at a time, so that there are many passes."""
    monkeypatch.setattr(executor_sharding, "BYTES_PER_PASS", 5_000)


@pytest.fixture
def pair(url: str, tmp_path: Path) -> Pair:
    spark = Project(tmp_path / "spark", None, 3, 6, engine="spark", url=url, now=NOW)
    duckdb = Project(tmp_path / "duckdb", None, 3, 6, now=NOW)
    spark.raw = duckdb.raw
    return Pair(duckdb, spark)


class LineReadHereError(Exception):
    """This process reads lines of logs."""


@contextmanager
def no_line_is_read_here() -> Iterator[None]:
    """Let every look at lines fail that this process takes."""

    def refused(*_: object) -> None:
        raise LineReadHereError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "line_batches", refused)
        yield


class Found(NamedTuple):
    """What a look finds: late parts, files that cannot be read, and what each file holds."""

    late: dict[Part, Lines]
    unreadable: Faults
    counts: dict[str, set[Count] | None]


def looked(project: Project, files: list[RawFile]) -> Found:
    """What a look at files finds, by the machines that compute for the warehouse."""
    count, limits, unreadable = counting_of(project.warehouse), project.pipeline.limits, Faults()
    with project.warehouse.read() if project.has_warehouse else nullcontext() as session:
        known = unread(session, files, limits=limits) if session else all_unread(files, limits)
    memory = LateMemory(limits)
    late = late_parts(known, memory, unreadable, limits, count)
    counts = {file.source_file: memory.of(file).counts for file in files}
    return Found(
        late=late,
        unreadable=unreadable,
        counts={name: None if own is None else set(own) for name, own in counts.items()},
    )


def looked_alike(pair: Pair, files: list[RawFile]) -> Found:
    """What a look finds, which is the same on both engines."""
    expected = looked(pair.duckdb, files)
    with no_line_is_read_here():
        found = looked(pair.spark, files)
    assert found == expected
    return found


def assert_same_hours_are_wanted(pair: Pair) -> None:
    expected = select_hours(pair.duckdb.pipeline, None, None)
    with no_line_is_read_here():
        assert select_hours(pair.spark.pipeline, None, None) == expected


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly), pytest.param(3, marks=pytest.mark.nightly)])  # fmt: skip
def test_executors_find_the_late_parts_and_hours_that_this_process_finds(pair: Pair, seed: int) -> None:
    random = Random(seed)
    lines = random_lines(random, 300, 6)
    for name, own in cut_into_files(random, lines[:200]).items():
        pair.write_log(name, own)
    pair.write_log("changes.jsonl", [*lines[200:230], IN_THE_FUTURE])
    gone = pair.write_log("gone.jsonl", [line(execution("gone", "planner", START))])
    files = list_files(pair.duckdb.raw)
    gone.unlink()  # once it was listed

    first = looked_alike(pair, files)
    assert {part.record_type for part in first.late} >= {"execution", "rejected", "model_call"}
    assert first.unreadable == {"gone.jsonl": f"cannot read the raw log {gone}: No such file or directory"}
    assert_same_hours_are_wanted(pair)
    assert not pair.spark.has_warehouse, "there was none yet"

    for project in pair:
        project.ingest(HOURS)
    pair.write_log("changes.jsonl", lines[230:250], modified=NOW)
    pair.write_log("new.jsonl", [*lines[250:], b"\xff", IN_THE_FUTURE])
    pair.write_log("empty.jsonl", [])
    second = looked_alike(pair, list_files(pair.duckdb.raw))
    assert {part.source_file for part in second.late} == {"changes.jsonl", "new.jsonl"}
    assert second.hours.loaded and second.counts["empty.jsonl"] == set()
    assert_same_hours_are_wanted(pair)


def test_one_machine_does_read_lines_itself(pair: Pair) -> None:
    """So the tests beside this one can fail."""
    pair.write_log("a.jsonl", [line(execution("e", "planner", START))])
    with no_line_is_read_here(), pytest.raises(LineReadHereError):
        looked(pair.duckdb, list_files(pair.duckdb.raw))


def test_a_file_that_grew_is_counted_as_a_whole_by_executors_and_holds_the_same(pair: Pair) -> None:
    early = [line(execution(f"e{n}", "planner", START + n * HOUR)) for n in range(3)]
    log = pair.write_log("a.jsonl", [*early])
    for project in pair:
        project.ingest(HOURS)
    with log.open("a") as more:
        more.write(line(execution("late", "planner", START + HOUR)) + "\n")
    found = looked_alike(pair, list_files(pair.duckdb.raw))
    assert {(part.hour, lines.count) for part, lines in found.late.items()} == {(START + HOUR, 2)}


def test_a_log_that_only_this_machine_can_read_is_told_and_those_beside_it_count(pair: Pair) -> None:
    store = fsspec.filesystem("memory")  # which each process has of its own
    store.pipe("/only-here/mine.jsonl", line(execution("mine", "planner", START)).encode())
    try:
        pair.write_log("a.jsonl", [line(execution("e", "planner", START + HOUR))])
        limits = pair.spark.pipeline.limits
        found = all_unread([*list_files("memory://only-here"), *list_files(pair.spark.raw)], limits)
        count, unreadable = counting_of(pair.spark.warehouse), Faults()
        with no_line_is_read_here():
            late = late_parts(found, unreadable=unreadable, limits=limits, count=count)
            with pytest.raises(UnreadableFilesError, match="name a raw root that both reach"):
                late_parts(found, limits=limits, count=count)
        assert [(part.source_file, part.hour) for part in late] == [("a.jsonl", START + HOUR)]
        assert unreadable.keys() == {"mine.jsonl"}
        assert unreadable["mine.jsonl"].endswith(
            " (on the cluster; this machine can read it: name a raw root that both reach)"
        )
        assert len(late_parts(found, limits=limits, count=counted_here)) == 2
    finally:
        store.rm("/only-here", recursive=True)


def test_a_log_that_was_replaced_once_it_was_listed_does_not_count(pair: Pair) -> None:
    pair.write_log("a.jsonl", [line(execution("e", "planner", START))] * 2)
    pair.write_log("b.jsonl", [line(execution("b", "planner", START + HOUR))])
    files = list_files(pair.spark.raw)
    pair.write_log("a.jsonl", [line(execution("other", "planner", START + 2 * HOUR))])
    with no_line_is_read_here():
        found = looked(pair.spark, files)
    assert {part.source_file for part in found.late} == {"b.jsonl"}
    assert found.unreadable == {"a.jsonl": "a.jsonl was replaced while it was read, or is another file on the cluster"}


def test_the_sensor_asks_for_the_same_runs_within_the_same_bytes_and_reads_no_line(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.write_log("a.jsonl", [line(execution(f"e{n}", "planner", START + n * HOUR)) for n in range(3)])
    for project in pair:
        project.materialize(HOURS, only=FLEET)
    late = {
        "late.jsonl": ["not json", line(execution("late", "late", START + HOUR))],
        "later.jsonl": [line(execution("later", "late", START + 4 * HOUR)), " " * 2_000],
    }
    for name, lines in late.items():
        pair.write_log(name, lines)
    requests = requests_alike(pair)
    monkeypatch.setattr(sensors, "BYTES_PER_TICK", 1_000)
    of_less = requests_alike(pair)
    assert requests and of_less and requests != of_less


def requests_alike(pair: Pair) -> list[tuple[str | None, Mapping[str, str]]]:
    """The runs that the sensor asks for now, which are the same on both engines."""
    expected = tick(late_logs_sensor("job", pair.duckdb.settings), pair.duckdb.pipeline)
    with no_line_is_read_here():
        found = tick(late_logs_sensor("job", pair.spark.settings), pair.spark.pipeline)
    requests = [[(one.run_key, one.tags) for one in answer.run_requests or ()] for answer in (found, expected)]
    assert requests[0] == requests[1] and found.skip_message == expected.skip_message
    return requests[0]
