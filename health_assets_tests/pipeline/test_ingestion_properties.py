"""Whatever the order in which logs arrive and hours are materialized, the end is the same as of a clean rebuild."""

import gzip
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import ibis
import pyarrow as pa
import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from ibis import ir

from health_assets.core.hours import HOUR, HourRange, parse_hour
from health_assets.defs.sensors import late_logs_sensor
from health_assets.defs.specs import ONLY_STALE_TAG
from health_assets.schema.records import identity_of
from health_assets.scoring.health_components import SUMS, merge
from health_assets.scoring.windows import WindowSum, sums_over_windows, window_sums
from health_assets.warehouse.engines.duckdb.store import DuckDBSession
from health_assets_tests.support import reference
from health_assets_tests.support.examples import example_count, tried_with
from health_assets_tests.support.logs_made import (
    START,
    cut_into_files,
    execution,
    line,
    random_lines,
    random_targets,
    trigger,
)
from health_assets_tests.support.projects import (
    FLEET,
    ONE_SYSTEM_BY_DAY,
    RECORD_TABLES,
    RESULT_TABLES,
    Project,
    Row,
    assert_lines_are_conserved,
    assert_same_tables,
    hours_from,
    in_a_process,
    tick,
)
from health_assets_tests.support.traces_made import agent as agent_span
from health_assets_tests.support.traces_made import otlp_line

HOURS = 6
ALL_HOURS = hours_from(START - 2 * HOUR, HOURS + 4)


# -- a fleet's logs in the hands of chance -----------------------------------------------------------------------------


def possible_lines() -> Iterator[str]:
    """So few different lines that ids, times and whole lines repeat often."""
    for hour, minute, agent, number in itertools.product(range(HOURS), [0, 30, 59], "ab", range(3)):
        at = START + hour * HOUR + minute * HOUR / 60
        when = at.isoformat()
        yield line(execution(f"e{number}", agent, at, 60 * number, status=["success", "failure"][(hour + minute) % 2]))
        yield line(execution(f"e{number}", agent, at, 60 * number))
        yield line(trigger(f"t{number}", agent, at, ["fired", "failed"][(hour + minute) % 2]))
        if minute == 30:
            call = {
                "type": "model_call",
                "call_id": f"c{number}",
                "model": agent,
                "ended_at": when,
                "status": "success",
            }
            yield line(call)
            yield line({"type": "agent_update", "agent_id": f"u{number}", "at": when, "kind": "restart"})
            yield line(
                {"type": "judgement", "execution_id": f"e{number}", "at": when, "violations": [], "agent_id": "j"}
            )
            yield from ["bad", f"worse {number}", ""]


POSSIBLE_LINES = list(possible_lines())


def possible_line(number: int) -> str:
    return POSSIBLE_LINES[number]


NAMES = st.sampled_from(["a.jsonl", "b.jsonl.gz", "deep/er/c.jsonl", "deep/d.jsonl.gz"])
SOME_LINES = st.lists(st.integers(0, len(POSSIBLE_LINES) - 1).map(possible_line), min_size=1, max_size=20)
RANGES = st.builds(
    lambda first, count: hours_from(START + first * HOUR, count), st.integers(-1, HOURS), st.integers(1, 5)
)


class Deliveries(RuleBasedStateMachine):
    """Files come, grow, change and come twice, while this hour and that is materialized."""

    engine = "duckdb"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="deliveries-"))
        targets = {"defaults": {"expected_runtime_s": 60}, "agents": {"b": {"sla_s": 100}, "listed": {}}}
        self.project = Project(self.folder / "project", targets, window_hours=3, lookback_hours=5, engine=self.engine)
        self.contents: dict[str, list[str]] = {}
        self.writes = 0
        self.asked: set[datetime] = set()

    def write(self, name: str, lines: list[str]) -> None:
        self.writes += 1  # the time of modification decides the hour of a file without any good line
        self.contents[name] = lines
        path = self.project.write_log(name, lines)
        modified = int((START + self.writes % HOURS * HOUR).timestamp()) * 10**9 + self.writes
        os.utime(path, ns=(modified, modified))

    @rule(name=NAMES, lines=SOME_LINES)
    def a_file_comes_or_is_replaced(self, name: str, lines: list[str]) -> None:
        self.write(name, lines)

    @precondition(lambda self: self.contents)
    @rule(data=st.data(), lines=SOME_LINES)
    def a_file_grows(self, data: st.DataObject, lines: list[str]) -> None:
        name = data.draw(st.sampled_from(sorted(self.contents)))
        self.write(name, self.contents[name] + lines)

    @precondition(lambda self: self.contents)
    @rule(data=st.data(), name=NAMES)
    def a_file_comes_twice(self, data: st.DataObject, name: str) -> None:
        self.write(name, self.contents[data.draw(st.sampled_from(sorted(self.contents)))])

    @precondition(lambda self: self.contents)
    @rule(data=st.data())
    def a_file_loses_or_swaps_lines(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.contents)))
        lines = data.draw(st.permutations(self.contents[name]))
        self.write(name, lines[: data.draw(st.integers(0, len(lines)))])

    def becomes(self, name: str, other: str, lines: list[str], hours: HourRange) -> None:
        """A file goes on as another, perhaps grown since it was read, and is read there before it changes again."""
        assume(other == name or other not in self.contents)  # a log that is overwritten so keeps its rows
        self.project.ingest(hours)
        content = self.contents.pop(name) + lines
        (self.project.raw / name).unlink()
        self.write(other, content)
        self.project.ingest(hours)

    @precondition(lambda self: self.contents)
    @rule(data=st.data(), other=NAMES, lines=st.just([]) | SOME_LINES, hours=RANGES)
    def a_file_is_renamed_or_packed(self, data: st.DataObject, other: str, lines: list[str], hours: HourRange) -> None:
        self.becomes(data.draw(st.sampled_from(sorted(self.contents))), other, lines, hours)

    @rule(lines=SOME_LINES, hours=RANGES)
    def logs_are_rotated_by_number(self, lines: list[str], hours: HourRange) -> None:
        for older, newer in (
            ("r.jsonl.2", f"old.{len(self.contents)}.jsonl.gz"),
            ("r.jsonl.1", "r.jsonl.2"),
            ("r.jsonl", "r.jsonl.1"),
        ):
            if older in self.contents:
                self.becomes(older, newer, [], hours)
        self.write("r.jsonl", lines)

    @precondition(lambda self: self.contents)
    @rule(data=st.data(), lines=SOME_LINES, hours=RANGES)
    def a_file_is_copied_and_begins_anew(self, data: st.DataObject, lines: list[str], hours: HourRange) -> None:
        name = data.draw(st.sampled_from(sorted(self.contents)))
        self.project.ingest(hours)
        self.write(f"copy.{self.writes}.jsonl", self.contents[name])  # a log that a copy overwrites would keep its rows
        if data.draw(st.booleans()):
            self.project.ingest(hours)
        self.write(name, lines)
        self.project.ingest(hours)

    @rule(hours=RANGES)
    def hours_are_materialized(self, hours: HourRange) -> None:
        self.project.materialize(hours, only=FLEET[:2])

    @rule(hours=RANGES)
    def a_file_is_read_once_and_not_again(self, hours: HourRange) -> None:
        self.project.ingest(hours)
        assert self.project.ingest(hours).files_read == []

    @rule(
        hours=RANGES, table=st.sampled_from(["executions", "trigger_events", "rejected_records", "health_components"])
    )
    def somebody_deletes_rows_by_hand(self, hours: HourRange, table: str) -> None:
        if self.project.has_warehouse:
            self.project.change(f"DELETE FROM {table} WHERE hour >= ? AND hour < ?", [hours.start, hours.end])

    @invariant()
    def nothing_is_loaded_twice(self) -> None:
        if self.writes and self.project.has_warehouse:
            for table in ("executions", "trigger_events"):
                identity = ", ".join(["hour", *identity_of(table)])
                assert not self.project.query(f"SELECT {identity} FROM {table} GROUP BY {identity} HAVING count(*) > 1")

    def files_that_count(self) -> Path:
        """A folder without the files that are the beginning of another; of equal ones with the greatest name."""
        folder = self.folder / "counting"
        plain = {name: "".join(f"{text}\n" for text in lines) for name, lines in self.contents.items()}
        for name, text in plain.items():
            others = [other for other in plain if other != name and plain[other].startswith(text)]
            is_copy = any(plain[other] != text or other > name for other in others)
            if not (text and is_copy):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.project.raw / name, folder / name)
        return folder

    def teardown(self) -> None:
        try:
            self.compare_with_a_clean_rebuild()
        finally:
            shutil.rmtree(self.folder)

    def compare_with_a_clean_rebuild(self) -> None:
        self.project.materialize(ALL_HOURS, only=FLEET[:2])
        tables = self.project.tables()
        clean = self.project.clean_rebuild(ALL_HOURS, only=FLEET[:2])
        assert_same_tables(tables, clean.tables())
        assert_lines_are_conserved(self.project)
        good, rejected = reference.read_lines(self.files_that_count())
        places = {(row["source_file"], row["line_number"], row["hour"]) for row in rejected}
        assert {(row["source_file"], row["line_number"], row["hour"]) for row in tables["rejected_records"]} == places
        kept = {(row["_source_file"], row["_line_number"]) for row in reference.deduplicate(good)}
        rows = [row for name in RECORD_TABLES if name != "rejected_records" for row in tables[name]]
        assert {(row["source_file"], row["line_number"]) for row in rows} == kept


class DeliveriesToPostgres(Deliveries):
    """The same into a PostgreSQL database."""

    engine = "postgres"


@pytest.mark.parametrize(("machine", "usual"), [(Deliveries, 2), (DeliveriesToPostgres, 1)])
def test_any_history_of_deliveries_ends_like_a_clean_rebuild(machine: type[Deliveries], usual: int) -> None:
    steps = example_count(6, 10)
    run_state_machine_as_test(machine, settings=settings(tried_with(usual, 60), stateful_step_count=steps))


@pytest.mark.parametrize(
    ("seed", "engine", "turns", "only"),
    [
        (0, "duckdb", 8, FLEET),
        pytest.param(2, "postgres", 8, FLEET, marks=pytest.mark.nightly),
        pytest.param(0, "duckdb", 12, None, marks=pytest.mark.nightly),
        pytest.param(2, "postgres", 8, None, marks=pytest.mark.nightly),
    ],
)
def test_files_delivered_in_any_order_over_many_runs_end_like_a_clean_rebuild(
    tmp_path: Path, seed: int, engine: str, turns: int, only: Sequence[str] | None
) -> None:
    random = Random(seed)
    project = Project(tmp_path / "project", random_targets(random), window_hours=4, lookback_hours=7, engine=engine)
    hours = hours_from(START - 5 * HOUR, 36)
    files = {}
    for delivery in range(4):
        for name, lines in cut_into_files(random, random_lines(random, 40, 24)).items():
            files[f"{delivery}/{name}"] = lines
    twice = random.choice(sorted(files))
    files["zz twice.jsonl"] = files[twice]
    waiting = sorted(files)
    random.shuffle(waiting)
    for turn, name in enumerate(waiting):
        lines = files[name]
        if turn % 3 == 0 and lines:  # half of it first, the whole later
            project.write_log(name, lines[: len(lines) // 2], modified=START + turn * HOUR)
            waiting.append(name)
            files[name] = [*lines, "", "a broken line"]
        else:
            project.write_log(name, lines, modified=START + turn * HOUR)
        if turn % 4 == 3:
            some = hours_from(START + random.randrange(-3, 24) * HOUR, random.randrange(1, 12))
            project.materialize(some, only=only)
        if turn > turns:
            break
    project.materialize(hours, only=only)
    assert_same_tables(project.tables(), project.clean_rebuild(hours, only=only).tables())
    assert_lines_are_conserved(project)


# -- the late-log sensor's part ------------------------------------------------------------------------------------------


def late_logs_tick(project: Project, only: Sequence[str] | None = None) -> list[HourRange]:
    """What the sensor asks for now, materialized as its runs do; all steps, or these."""
    told = tick(late_logs_sensor("job", project.settings), project.pipeline)
    ranges = []
    for request in told.run_requests or ():
        assert ONLY_STALE_TAG in request.tags
        start = request.tags.get("dagster/asset_partition_range_start", request.tags.get("dagster/partition"))
        last = request.tags.get("dagster/asset_partition_range_end", request.tags.get("dagster/partition"))
        ranges.append(HourRange(parse_hour(start), parse_hour(last) + HOUR))
        chosen = [key.to_user_string() for key in request.asset_selection or ()]
        project.materialize(ranges[-1], only_stale=True, only=chosen or only)
    return ranges


def assert_like_a_clean_rebuild_in_the_hours_built(
    project: Project, hours: HourRange, only: Sequence[str] | None = None
) -> None:
    clean = project.clean_rebuild(hours, only=only)
    for table in RESULT_TABLES:
        built = project.built_hours(table)
        expected = [row for row in clean.rows(table) if row["hour"] in built]
        assert_same_tables({table: project.rows(table)}, {table: expected})


@pytest.mark.parametrize(
    ("seed", "engine", "deliveries", "only"),
    [
        (0, "duckdb", 1, FLEET),
        pytest.param(2, "postgres", 1, FLEET, marks=pytest.mark.nightly),
        pytest.param(0, "duckdb", 1, None, marks=pytest.mark.nightly),
        pytest.param(0, "duckdb", 2, None, marks=pytest.mark.nightly),
        pytest.param(2, "postgres", 1, None, marks=pytest.mark.nightly),
    ],
)
def test_the_late_log_sensor_brings_every_hour_up_to_date(
    tmp_path: Path, seed: int, engine: str, deliveries: int, only: Sequence[str] | None
) -> None:
    random = Random(seed)
    targets = {"agents": {"listed": {}}}
    project = Project(tmp_path / "project", targets, window_hours=3, lookback_hours=6, engine=engine)
    on_time, *late = (random_lines(random, 30, 20) for _ in range(1 + deliveries))
    project.write_log("on time.jsonl", on_time, modified=START)
    project.materialize(hours_from(START + 4 * HOUR, 16), only=only)
    for number, lines in enumerate(late):
        few = hours_from(START + random.randrange(20) * HOUR, 2)
        chosen = [text for text in lines if _hour_of(text) in set(few)] or lines[:3]
        project.write_log(f"late {number % 2}.jsonl", chosen, modified=START + number * HOUR)
        ranges = late_logs_tick(project, only)
        assert len(ranges) <= 2
        assert late_logs_tick(project, only) == []
    assert_like_a_clean_rebuild_in_the_hours_built(project, hours_from(START - HOUR, 30), only=only)


def _hour_of(text: str) -> datetime | None:
    parsed = reference.parse_object(text.encode())
    record = None if parsed is None else reference.clean(parsed)
    return None if record is None else record["_hour"]


def test_the_sensor_asks_only_for_hours_that_depend_on_what_is_late(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", window_hours=2, lookback_hours=5)
    project.write_log("a.jsonl", [line(execution(f"e{n}", "a", START + n * HOUR)) for n in range(20)])
    project.materialize(hours_from(START, 20), only=FLEET)
    project.write_log("late.jsonl", [line(execution("late", "b", START + 7 * HOUR))])
    assert late_logs_tick(project, only=[]) == [hours_from(START + 7 * HOUR, 5)]


def test_a_late_bad_line_asks_for_its_hour_alone_and_only_once(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", window_hours=2, lookback_hours=5)
    project.write_log("a.jsonl", [line(execution(f"e{n}", "a", START + n * HOUR, task_id="t")) for n in range(20)])
    steps = [*FLEET, "task_consistency", "agent_reliability"]
    project.materialize(hours_from(START, 20), only=steps)
    project.write_log("late.jsonl", ["not JSON"], modified=START + 7 * HOUR)
    assert late_logs_tick(project, steps) == [HourRange.of(START + 7 * HOUR)]
    assert late_logs_tick(project, steps) == []


def test_the_sensor_asks_only_for_hours_that_depend_on_the_new_lines_of_a_file_that_grew(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", window_hours=3, lookback_hours=5)
    lines = [line(execution(f"e{n} {m}", "a", START + n * HOUR)) for n in range(20) for m in range(5)]
    project.write_log("a.jsonl", lines)
    project.materialize(hours_from(START, 20), only=FLEET)
    project.write_log("a.jsonl", [*lines, line(execution("new", "a", START + 17 * HOUR))])
    assert late_logs_tick(project, only=FLEET) == [hours_from(START + 17 * HOUR, 3)]
    assert late_logs_tick(project) == []
    os.utime(project.raw / "a.jsonl")
    assert late_logs_tick(project) == []


@pytest.mark.nightly
def test_materializing_a_late_hour_by_hand_leaves_no_later_hour_out_of_date(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", window_hours=3, lookback_hours=5)
    project.write_log("a.jsonl", [line(execution(f"e{n}", "a", START + n * HOUR)) for n in range(8)])
    steps = [*FLEET, "trace_risks", "session_scores"]
    project.materialize(hours_from(START, 8), only=steps)
    project.write_log("late.jsonl", [line(execution("late", "b", START + 3 * HOUR))])
    project.materialize(HourRange.of(START + 3 * HOUR), only=steps)  # somebody is faster than the sensor
    late_logs_tick(project, only=steps)
    assert_like_a_clean_rebuild_in_the_hours_built(project, hours_from(START, 8), only=steps)


# -- what is read --------------------------------------------------------------------------------------------------------

_opened: list[str] | None = None


def _note_opened(event: str, arguments: tuple[Any, ...]) -> None:
    """A file that is opened without a mode is merely looked at, whether it can be read."""
    if event == "open" and _opened is not None and arguments[1] is not None:
        _opened.append(str(arguments[0]))


@contextmanager
def opened_below(folder: Path) -> Iterator[list[str]]:
    """Names of the files below the folder that are opened while the block runs, once for every time."""
    global _opened
    if not hasattr(opened_below, "is_listening"):
        sys.addaudithook(_note_opened)  # there is no way to take a hook away
        opened_below.is_listening = True
    names: list[str] = []
    _opened = []
    try:
        yield names
    finally:
        below = [Path(name) for name in _opened if name.startswith(f"{folder}{os.sep}")]
        names += [path.relative_to(folder).as_posix() for path in below]
        _opened = None


def three_files(project: Project) -> None:
    for name in "abc":
        project.write_log(f"{name}.jsonl", [line(execution(f"{name}{n}", "a", START + n * HOUR)) for n in range(4)])


def test_a_run_reads_every_new_file_once(project: Project) -> None:
    three_files(project)
    with opened_below(project.raw) as opened:
        report = project.ingest(hours_from(START, 4))
    assert sorted(opened) == report.files_read == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert (report.files_seen, report.lines_read, report.rejected) == (3, 12, 0)
    with opened_below(project.raw) as opened:
        report = project.ingest(hours_from(START, 4))
    assert opened == report.files_read == []


def test_a_run_reads_only_the_file_that_changed(project: Project) -> None:
    three_files(project)
    project.ingest(hours_from(START, 4))
    with (project.raw / "b.jsonl").open("a", encoding="utf-8") as log:
        log.write(line(execution("new", "a", START + HOUR)) + "\n")
    with opened_below(project.raw) as opened:
        report = project.ingest(hours_from(START, 4))
    assert report.files_read == ["b.jsonl"]
    assert set(opened) == {"b.jsonl"}


def test_a_run_reads_a_changed_file_once(project: Project) -> None:
    three_files(project)
    project.ingest(hours_from(START, 4))
    path = project.raw / "b.jsonl"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    with opened_below(project.raw) as opened:
        project.ingest(hours_from(START, 4))
    assert opened == ["b.jsonl"]


def test_a_run_opens_a_file_that_grew_for_the_proof_and_for_what_is_new(project: Project) -> None:
    three_files(project)
    project.ingest(hours_from(START, 4))
    with (project.raw / "b.jsonl").open("a", encoding="utf-8") as log:
        log.write(line(execution("new", "a", START + HOUR)) + "\n")
    with opened_below(project.raw) as opened:
        assert project.ingest(hours_from(START, 4)).lines_read == 1
    assert opened == ["b.jsonl", "b.jsonl"]


def test_a_file_that_was_only_touched_changes_nothing(project: Project) -> None:
    three_files(project)
    project.ingest(hours_from(START, 4))
    before = project.tables()
    stamps = project.query("SELECT * FROM partition_states WHERE asset = 'executions' ORDER BY ALL")
    os.utime(project.raw / "a.jsonl")
    report = project.ingest(hours_from(START, 4))
    assert report.files_read == ["a.jsonl"]
    assert report.changed_hours == set()
    assert project.tables() == before
    assert project.query("SELECT * FROM partition_states WHERE asset = 'executions' ORDER BY ALL") == stamps


def test_a_file_is_loaded_whole_whatever_hour_is_asked_for(project: Project) -> None:
    three_files(project)
    assert project.ingest(HourRange.of(START)).files_read == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert project.query("SELECT count(*) FROM executions") == [(12,)]
    assert project.built_hours("executions") == {START}, "the others wait for a run"
    assert project.ingest(HourRange.of(START + 3 * HOUR)).files_read == []
    assert project.built_hours("executions") == set(hours_from(START, 4)), "those between are of its window"
    assert project.ingest(hours_from(START, 4)).files_read == []


def test_looking_for_new_logs_writes_nothing(project: Project) -> None:
    three_files(project)
    project.ingest(hours_from(START, 2))
    project.write_log("d.jsonl", [line(execution("d", "a", START))])
    before = project.warehouse_path.read_bytes()
    assert project.not_loaded() == {"d.jsonl"}
    assert project.warehouse_path.read_bytes() == before


# -- replays, repairs and ties -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with rows in every table of records; copy its warehouse to change it."""
    random = Random(4)
    project = Project(tmp_path_factory.mktemp("built once") / "project", random_targets(random), 3, 6)
    lines = random_lines(random, 200, 6, bad_share=0.2, evaluation_share=0.1, cancelled_share=0.1)
    for name, part in cut_into_files(random, lines).items():
        project.write_log(name, part, modified=START)
    project.materialize(hours_from(START, 6), only=FLEET)
    return project


def copy_of(project: Project) -> Project:
    folder = Path(tempfile.mkdtemp(dir=project.folder))
    twin = Project(folder, project.targets, project.window_hours, project.lookback_hours)
    twin.raw = project.raw
    shutil.copy(project.warehouse_path, twin.warehouse_path)
    return twin


@pytest.mark.parametrize("only", ONE_SYSTEM_BY_DAY)
def test_a_replay_changes_nothing(built_once: Project, only: Sequence[str] | None) -> None:
    project = copy_of(built_once)
    if only is None:
        project.materialize(hours_from(START, 6))
    before = project.tables()
    project.materialize(hours_from(START, 6), only=only)
    assert_same_tables(project.tables(), before)
    project.materialize(hours_from(START + HOUR, 3), only=only)
    project.materialize(HourRange.of(START + 5 * HOUR), only=FLEET)
    assert_same_tables(project.tables(), before)


BY_DAY = ("executions", "signals", "rejected_records")
"""Tables of rows with an id, without one, and of lines that are no record."""


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(table, marks=() if table in BY_DAY else pytest.mark.nightly)
        for table in RECORD_TABLES
        if table != "spans"
    ],
)
@pytest.mark.parametrize("rows", [pytest.param("all", marks=pytest.mark.nightly), "one"])
def test_records_deleted_by_hand_come_back(built_once: Project, table: str, rows: str) -> None:
    project = copy_of(built_once)
    before = project.tables(names=RECORD_TABLES)
    project.change(
        f"DELETE FROM {table}" + (f" WHERE rowid = (SELECT max(rowid) FROM {table})" if rows == "one" else "")
    )
    assert project.rows(table) != before[table]
    project.ingest(hours_from(START, 6))
    assert_same_tables(project.tables(names=RECORD_TABLES), before)
    assert_lines_are_conserved(project)


def test_all_records_deleted_by_hand_come_back_at_once(built_once: Project) -> None:
    """Of one table after another by night."""
    project = copy_of(built_once)
    before = project.tables(names=RECORD_TABLES)
    for table in RECORD_TABLES:
        project.change(f"DELETE FROM {table}")
    project.ingest(hours_from(START, 6))
    assert_same_tables(project.tables(names=RECORD_TABLES), before)
    assert_lines_are_conserved(project)


def test_results_deleted_by_hand_come_back(built_once: Project) -> None:
    project = copy_of(built_once)
    before = project.tables()
    for table in ("executions", "health_components", "agent_health", "system_health"):
        project.change(f"DELETE FROM {table}")
    project.materialize(hours_from(START, 6), only=FLEET)
    assert_same_tables(project.tables(), before)


def test_rows_doubled_by_hand_are_single_again(project: Project) -> None:
    three_files(project)
    project.write_log(
        "d.jsonl", ["bad", line({"type": "agent_update", "agent_id": "a", "at": START.isoformat(), "kind": "restart"})]
    )
    hours = hours_from(START, 4)
    project.materialize(hours, only=FLEET)
    before = project.tables()
    for table in ("executions", "agent_updates", "rejected_records", "health_components", "agent_health"):
        project.change(f"INSERT INTO {table} SELECT * FROM {table}")
    project.materialize(hours, only=FLEET)
    assert_same_tables(project.tables(), before)


def ids_and_files(project: Project) -> list[tuple]:
    return project.query("SELECT execution_id, agent_id, source_file, line_number FROM executions ORDER BY ALL")


def test_of_the_same_id_in_one_hour_the_latest_end_then_the_last_file_then_the_last_line_wins(project: Project) -> None:
    early, late = START + HOUR / 4, START + HOUR / 2
    y = execution("y", "a", early)
    project.write_log("a.jsonl", [line(execution("x", "a", late)), line(y)])
    project.write_log("b.jsonl", [line(execution("x", "a", early)), line(y)])
    project.write_log("B.jsonl", [line(y)] * 3)
    project.write_log("c/a.jsonl", [line(y | {"version": "2"}), line(y)])  # not the first lines of another file
    project.ingest(HourRange.of(START))
    assert ids_and_files(project) == [("x", "a", "a.jsonl", 1), ("y", "a", "c/a.jsonl", 2)]
    assert_lines_are_conserved(project)


def test_the_same_id_in_two_hours_stays_two_rows(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("x", "a", START)), line(execution("x", "a", START + HOUR))])
    project.ingest(hours_from(START, 2))
    assert len(ids_and_files(project)) == 2


def test_lines_that_swap_places_are_found_at_their_new_places(project: Project) -> None:
    lines = [line(execution(f"e{n}", "a", START)) for n in range(3)] + ["bad 1", "bad 2"]
    project.write_log("a.jsonl", lines, modified=START)
    project.ingest(HourRange.of(START))
    project.write_log("a.jsonl", lines[::-1], modified=START + HOUR / 2)
    project.ingest(HourRange.of(START))
    places = project.query("SELECT execution_id, line_number FROM executions ORDER BY ALL")
    assert places == [("e0", 5), ("e1", 4), ("e2", 3)]
    assert project.query("SELECT raw, line_number FROM rejected_records ORDER BY ALL") == [("bad 1", 2), ("bad 2", 1)]


@pytest.mark.parametrize("way", ["changes", "loses it", "moves on", "gets another winner"])
def test_a_superseded_duplicate_comes_back_when_the_file_that_beat_it_changes(project: Project, way: str) -> None:
    at = START + HOUR / 2
    project.write_log("a.jsonl", [line(execution("x", "loser", at)), line(execution("other", "a", at))])
    project.write_log("b.jsonl.gz", [line(execution("x", "winner", at)), line(execution("b", "b", at))])
    hours = hours_from(START, 2)
    project.ingest(hours)
    assert ("x", "winner", "b.jsonl.gz", 1) in ids_and_files(project)
    changed = {
        "changes": [line(execution("b", "b", at)), line(execution("x", "new", at))],
        "loses it": [line(execution("b", "b", at))],
        "moves on": [line(execution("x", "winner", at + HOUR)), line(execution("b", "b", at))],
        "gets another winner": [line(execution("x", "too early", START)), line(execution("b", "b", at))],
    }[way]
    project.write_log("b.jsonl.gz", changed, modified=START)
    project.ingest(hours)
    assert ("x", "new" if way == "changes" else "loser") in {row[:2] for row in ids_and_files(project)}
    clean = project.clean_rebuild(hours, only=["ingest"])
    assert_same_tables(project.tables(names=RECORD_TABLES), clean.tables(names=RECORD_TABLES))
    assert_lines_are_conserved(project)


def test_a_superseded_line_that_counts_again_has_the_name_and_the_limit_of_the_targets_of_now(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", {"defaults": {"sla_s": 100}}, 1, 3)
    project.write_log("a.jsonl", [line(execution("x", "pod-1", START, 60)), line(execution("other", "pod-1", START))])
    project.write_log("b.jsonl", [line(execution("x", "pod-1", START + HOUR / 2, 60))])
    project.ingest(HourRange.of(START))
    project.write_targets({"defaults": {"sla_s": 10}, "names": [{"match": "pod-.*", "agent": "pod"}]})
    project.ingest(HourRange.of(START))
    project.write_log("b.jsonl", [line(execution("fresh", "pod-1", START + HOUR / 2, 60))])
    project.materialize(HourRange.of(START), only=["ingest"], only_stale=True)
    rows = {row["execution_id"]: (row["agent_id"], row["sla_breached"]) for row in project.rows("executions")}
    assert rows == {"x": ("pod", True), "other": ("pod", True), "fresh": ("pod", True)}
    assert_same_tables(
        project.tables(names=RECORD_TABLES),
        project.clean_rebuild(HourRange.of(START), only=["ingest"]).tables(names=RECORD_TABLES),
    )


def test_a_renamed_log_of_spans_wins_a_tie_by_its_new_name_and_its_hour_has_changed(project: Project) -> None:
    at = START + HOUR / 2
    project.write_log("b.jsonl", [otlp_line(agent_span(5, 1, at))])
    project.ingest(HourRange.of(START))
    [(execution_id, agent_id, *_)] = ids_and_files(project)
    project.write_log("m.jsonl", [line(execution(execution_id, agent_id, at, 30.0, status="failure"))])
    project.ingest(HourRange.of(START))
    assert ids_and_files(project) == [(execution_id, agent_id, "m.jsonl", 1)]
    changed_at = "SELECT changed_at FROM partition_states WHERE asset = 'executions' AND hour = ?"
    before = project.query(changed_at, [START])
    (project.raw / "b.jsonl").rename(project.raw / "z.jsonl")
    project.ingest(HourRange.of(START + 8 * HOUR))  # looks back on it
    assert ids_and_files(project) == [(execution_id, agent_id, "z.jsonl", 1)]
    assert project.query(changed_at, [START]) != before


def test_an_hour_in_which_nothing_has_changed_keeps_its_superseded_lines_where_they_are(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for minutes, name in enumerate(("a.jsonl", "b.jsonl")):
        project.write_log(name, [line(execution("x", "a", START + minutes * HOUR / 60))])
    project.ingest(HourRange.of(START))
    assert len(project.rows("superseded_executions")) == 1
    inserted: list[str] = []
    insert = DuckDBSession.insert

    def noted_insert(session: DuckDBSession, name: str, rows: ir.Table) -> None:
        inserted.append(name)
        insert(session, name, rows)

    monkeypatch.setattr(DuckDBSession, "insert", noted_insert)
    project.ingest(hours_from(START, 2))
    assert inserted == []
    project.write_log("c.jsonl", [line(execution("y", "a", START))])
    project.ingest(HourRange.of(START))
    assert inserted == ["executions"]
    assert [row[:3] for row in ids_and_files(project)] == [("x", "a", "b.jsonl"), ("y", "a", "c.jsonl")]


@pytest.mark.parametrize("touched", ["a.jsonl", "b.jsonl"])
def test_a_file_that_is_delivered_again_brings_no_superseded_duplicate_back(project: Project, touched: str) -> None:
    """Nor where only later hours are asked for, which look back on the duplicate's."""
    lines = [line(execution("x", "a", START + HOUR / 2))]
    for name in ("a.jsonl", "b.jsonl"):
        project.write_log(name, lines, modified=START)
    project.ingest(hours_from(START, 2))
    project.write_log(touched, lines, modified=START + HOUR)
    project.ingest(hours_from(START + 5 * HOUR, 1))
    assert ids_and_files(project) == [("x", "a", "b.jsonl", 1)]
    assert_lines_are_conserved(project)


def test_a_log_that_was_decompressed_and_not_renamed_keeps_its_rows(project: Project) -> None:
    lines = "".join(f"{line(execution(f'e{number}', 'a', START))}\n" for number in range(3)).encode()
    project.write_bytes("a.jsonl.gz", lines)
    project.ingest(HourRange.of(START))
    before = ids_and_files(project)
    project.write_files({"a.jsonl.gz": lines})
    project.ingest(HourRange.of(START))
    assert ids_and_files(project) == before and len(before) == 3
    project.write_files({"a.jsonl.gz": lines + f"{line(execution('e3', 'a', START))}\n".encode()})
    project.ingest(HourRange.of(START))
    assert [row[0] for row in ids_and_files(project)] == ["e0", "e1", "e2", "e3"]
    assert_lines_are_conserved(project)


def test_the_same_lines_plain_and_gzipped_are_one_row_each(project: Project) -> None:
    lines = [line(execution(f"e{n}", "a", START)) for n in range(5)]
    project.write_log("a.jsonl", lines)
    project.ingest(HourRange.of(START))
    (project.raw / "a.jsonl.gz").write_bytes(gzip.compress((project.raw / "a.jsonl").read_bytes()))
    assert project.ingest(HourRange.of(START)).files_read == [], "its lines are known"
    assert {row[2] for row in ids_and_files(project)} == {"a.jsonl.gz"}
    assert_lines_are_conserved(project)


def test_a_log_that_is_rotated_away_keeps_its_rows(project: Project) -> None:
    """`app.jsonl` is renamed and begins anew, as log rotation does it."""
    project.write_log("app.jsonl", [line(execution(f"old {n}", "a", START + n * HOUR)) for n in range(3)])
    project.materialize(hours_from(START, 4), only=FLEET)
    (project.raw / "app.jsonl").rename(project.raw / "app.1.jsonl")
    project.write_log("app.jsonl", [line(execution("new", "a", START + 3 * HOUR))])
    project.materialize(hours_from(START, 4), only=FLEET)
    assert [row[0] for row in ids_and_files(project)] == ["new", "old 0", "old 1", "old 2"]
    assert_same_tables(project.tables(), project.clean_rebuild(hours_from(START, 4), only=FLEET).tables())


def test_a_log_that_is_gone_keeps_its_rows_and_stops_nothing(project: Project) -> None:
    three_files(project)
    project.materialize(hours_from(START, 2), only=FLEET)
    (project.raw / "a.jsonl").unlink()
    before = project.tables(hours_from(START, 2))
    project.materialize(hours_from(START, 4), only=FLEET)
    assert_same_tables(project.tables(hours_from(START, 2)), before)
    assert len(project.rows("executions")) == 12, "the lines of hours that nobody had asked for were loaded, too"


# -- targets and the past ------------------------------------------------------------------------------------------------


def test_changed_targets_apply_to_the_hours_materialized_from_then_on(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", {"defaults": {"sla_s": 100}}, 1, 3)
    project.write_log("a.jsonl", [line(execution(f"e{n}", "a", START + n * HOUR, 60)) for n in range(4)])
    project.materialize(hours_from(START, 4), only=FLEET)
    assert project.query("SELECT sum(sla_breaches) FROM health_components") == [(0,)]
    project.write_targets({"defaults": {"sla_s": 10}})
    project.materialize(hours_from(START + 2 * HOUR, 2), only=FLEET)
    breached = dict(project.query("SELECT hour, sla_breached FROM executions"))
    assert [breached[START + n * HOUR] for n in range(4)] == [False, False, True, True]
    assert [row["sla_breaches"] for row in project.rows("agent_health")] == [0, 0, 1, 1]
    assert [row["sla_s"] for row in project.rows("agent_health")] == [100, 100, 10, 10]


def test_changed_targets_leave_hours_alone_that_nobody_asked_for(tmp_path: Path) -> None:
    """An old log that comes late makes the run build hours before those that are built already."""
    project = Project(tmp_path / "project", {"defaults": {"sla_s": 100}}, 2, 8)
    project.write_log("a.jsonl", [line(execution(f"e{n}", "a", START + n * HOUR, 60)) for n in range(4)])
    project.materialize(hours_from(START, 4), only=FLEET)
    project.write_targets({"defaults": {"sla_s": 10}})
    project.write_log("old.jsonl", [line(execution("old", "a", START - HOUR, 60))])
    project.materialize(HourRange.of(START + 4 * HOUR), only=FLEET)
    for hour in hours_from(START, 4):
        (breached,) = project.query("SELECT count(*) FILTER (sla_breached) FROM executions WHERE hour = ?", [hour])
        (summed,) = project.query("SELECT sum(sla_breaches) FROM health_components WHERE hour = ?", [hour])
        assert breached == summed == (0,), f"{hour} was not asked for"


# -- where a range starts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("window_hours", "lookback_hours"), [(3, 6), pytest.param(24, 168, marks=pytest.mark.nightly)])
def test_the_result_for_an_hour_does_not_depend_on_where_the_range_starts(
    tmp_path: Path, window_hours: int, lookback_hours: int
) -> None:
    random = Random(5)
    targets = {"agents": {"listed": {}, "coder": {"expected_runtime_s": 30}}}
    project = Project(tmp_path / "project", targets, window_hours, lookback_hours)
    for name, lines in cut_into_files(random, random_lines(random, 200, 12)).items():
        project.write_log(name, lines, modified=START)
    whole = project.clean_rebuild(hours_from(START - HOUR, 15), "whole", only=FLEET)
    asked = hours_from(START + 9 * HOUR, 3)
    for name, hours in [
        ("many", asked),
        ("one", HourRange.of(START + 9 * HOUR)),
        ("last", HourRange.of(asked.end - HOUR)),
    ]:
        found = project.clean_rebuild(hours, name, only=FLEET)
        for table in ("agent_health", "system_health"):
            assert_same_tables({table: found.rows(table)}, {table: whole.rows(table, hours)})
    one_by_one = found
    for hour in reversed(list(asked)[:-1]):
        one_by_one.materialize(HourRange.of(hour), only=FLEET)
    for table in ("agent_health", "system_health"):
        assert_same_tables({table: one_by_one.rows(table)}, {table: whole.rows(table, asked)})


# -- writers at the same time ----------------------------------------------------------------------------------------------


def _materialize(folder: str, targets: dict[str, Any], first: int, count: int) -> None:
    Project(Path(folder), targets, 4, 8).materialize(hours_from(START + first * HOUR, count), only=FLEET)


def test_runs_at_the_same_time_wait_for_each_other_and_end_like_a_clean_rebuild(tmp_path: Path) -> None:
    random = Random(6)
    project = Project(tmp_path / "project", random_targets(random), 4, 8)
    for name, lines in cut_into_files(random, random_lines(random, 300, 9)).items():
        project.write_log(name, lines, modified=START)
    runs = [
        in_a_process(_materialize, str(project.folder), project.targets, first, count)
        for first, count in [(0, 6), (4, 5)]
    ]
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0, 0]
    hours = hours_from(START, 9)
    assert_same_tables(project.tables(), project.clean_rebuild(hours, only=FLEET).tables())
    assert_lines_are_conserved(project)


# -- windows -------------------------------------------------------------------------------------------------------------


COMPONENTS = pa.schema({"hour": pa.timestamp("us", "UTC"), "agent_id": pa.string(), **dict.fromkeys(SUMS, pa.int64())})


def random_components(random: Random, hours: int) -> pa.Table:
    rows = [
        {"hour": START + hour * HOUR, "agent_id": agent, **{name: random.choice([0, 1, 7, 10**15]) for name in SUMS}}
        for hour in range(hours)
        for agent in "abcde"
        if random.random() < 0.15
    ]
    return pa.Table.from_pylist(rows, COMPONENTS)


def evaluated(rows: ibis.Table) -> list[Row]:
    found = ibis.duckdb.connect().to_pyarrow(rows).to_pylist()
    return sorted(found, key=lambda row: (row["hour"], row["agent_id"]))


def sums_by_hand(
    components: Sequence[Row], listed: Sequence[str], hours: HourRange, window: int, lookback: int
) -> list[Row]:
    rows = []
    for hour in hours:
        seen = {row["agent_id"] for row in components if hour - lookback * HOUR < row["hour"] <= hour}
        for agent in sorted(seen | set(listed)):
            own = [row for row in components if row["agent_id"] == agent and hour - window * HOUR < row["hour"] <= hour]
            rows.append({"hour": hour, "agent_id": agent, **{name: sum(row[name] for row in own) for name in SUMS}})
    return rows


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("window_hours", "lookback_hours"), [(1, 1), (3, 3), (4, 9), (9, 4), (1, 12), (24, 168)])
def test_one_hour_many_hours_and_adding_up_by_hand_agree_exactly(
    seed: int, window_hours: int, lookback_hours: int
) -> None:
    components = random_components(Random(seed), 20)
    table = ibis.memtable(components)
    listed = ibis.memtable(pa.table({"agent_id": ["a", "listed"]}))
    hours = hours_from(START + 8 * HOUR, 10)
    columns = ["hour", "agent_id", *SUMS]

    def windows(of: HourRange) -> list[Row]:
        return evaluated(window_sums(table, listed, of, window_hours, lookback_hours).select(columns))

    by_hand = sums_by_hand(components.to_pylist(), ["a", "listed"], hours, window_hours, lookback_hours)
    assert windows(hours) == by_hand
    for hour in list(hours)[::4]:
        assert windows(HourRange.of(hour)) == [row for row in by_hand if row["hour"] == hour]


@pytest.mark.parametrize(("lengths", "lookback_hours"), [((4, 1, 6), 9), ((3, 3, 1), 3), ((2, 6, 12), 4)])
def test_windows_of_several_lengths_at_once_are_those_of_each_length_alone(
    lengths: tuple[int, ...], lookback_hours: int
) -> None:
    components = random_components(Random(lookback_hours), 20)
    table = ibis.memtable(components)
    listed = ibis.memtable(pa.table({"agent_id": ["a", "listed"]}))
    hours = hours_from(START + 8 * HOUR, 8)
    sums = {f"{place}": WindowSum(SUMS[place], length) for place, length in enumerate(lengths)}
    rows = [sums_by_hand(components.to_pylist(), ["a", "listed"], hours, length, lookback_hours) for length in lengths]
    by_hand = [
        {"hour": parts[0]["hour"], "agent_id": parts[0]["agent_id"]}
        | {f"{place}": part[SUMS[place]] for place, part in enumerate(parts)}
        for parts in zip(*rows, strict=True)
    ]

    def windows(of: HourRange) -> list[Row]:
        found = sums_over_windows(table, listed, of, sums, lookback_hours)
        return evaluated(found.select("hour", "agent_id", *sums))

    assert windows(hours) == by_hand
    for hour in list(hours)[::3]:
        assert windows(HourRange.of(hour)) == [row for row in by_hand if row["hour"] == hour]


def test_merging_hours_in_any_grouping_gives_the_whole() -> None:
    random = Random(9)
    rows = random_components(random, 40).to_pylist()
    whole = None
    for _ in range(4):
        random.shuffle(rows)
        place = random.randrange(len(rows))
        parts = [ibis.memtable(pa.Table.from_pylist(part, COMPONENTS)) for part in (rows[:place], rows[place:])]
        merged = merge(ibis.union(*(merge(part, ["agent_id"]) for part in parts)), ["agent_id"])
        found = ibis.duckdb.connect().to_pyarrow(merged.order_by("agent_id")).to_pylist()
        whole = whole or found
        assert found == whole
    nothing = {"hour": START, "agent_id": "a", **dict.fromkeys(SUMS, 0)}
    zero = ibis.memtable(pa.Table.from_pylist([nothing], COMPONENTS))
    with_zero = merge(ibis.union(ibis.memtable(pa.Table.from_pylist(rows, COMPONENTS)), zero), ["agent_id"])
    assert ibis.duckdb.connect().to_pyarrow(with_zero.order_by("agent_id")).to_pylist() == whole
