"""A materialization that is killed at any moment: whole hours or nothing, and running again mends everything."""

import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline.retention import prune
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.examples import example_count
from health_assets_tests.support.logs_made import START, cut_into_files, execution, line, random_lines
from health_assets_tests.support.projects import (
    ONE_SYSTEM_BY_DAY,
    RECORD_TABLES,
    RESULT_TABLES,
    Project,
    Row,
    assert_lines_are_conserved,
    assert_same_tables,
    forked_command,
    hours_from,
    in_a_process,
    materialize_arguments,
    start_forked_command,
)
from health_assets_tests.support.traces_made import agent, in_lines, otlp_line, random_spans

FILLED = hours_from(START, 4)
HOUR_COUNT = example_count(12, 30)
ALL_HOURS = hours_from(START, HOUR_COUNT)
LINES = example_count(300, 3000)
SYSTEM = "agent_health_model"
"""The one that stands for all by day; its steps are `FLEET`."""
Tables = dict[str, list[Row]]


class Killed:
    """A partially filled warehouse to be copied, and what a clean rebuild of its logs gives; of all steps, or of these."""

    def __init__(
        self, folder: Path, engine: str = "duckdb", count: int = 3000, only: Sequence[str] | None = None
    ) -> None:
        self.only = only
        random = Random(11)
        self.project = Project(
            folder / "project", {"agents": {"listed": {}, "coder": {"expected_runtime_s": 30}}}, 6, 24, engine=engine
        )
        for name, lines in cut_into_files(random, random_lines(random, count, HOUR_COUNT)).items():
            self.project.write_log(name, lines, modified=START + HOUR)
        spans = random_spans(random, example_count(5, 60), HOUR_COUNT)
        self.project.write_log("traces.jsonl", in_lines(random, spans[::2]), modified=START + HOUR)
        self.project.materialize(FILLED, only=only)
        self.before = self.project.tables()
        for name, lines in cut_into_files(
            random, random_lines(random, count // 3, HOUR_COUNT)
        ).items():  # late, for filled hours too
            self.project.write_log(f"late/{name}", lines, modified=START + 2 * HOUR)
        self.project.write_log("late/traces.jsonl", in_lines(random, spans[1::2]), modified=START + 2 * HOUR)
        clean = self.project.clean_rebuild(ALL_HOURS, only=only)
        self.clean = clean.tables()
        shutil.rmtree(clean.folder)

    def copy(self, folder: Path) -> Project:
        return self.project.copied(folder)

    def assert_whole_hours(self, project: Project) -> None:
        """What is committed is as before or as a clean rebuild has it, hour by hour, and noted with its rows."""
        tables = project.tables()
        counts = project.query("SELECT asset, hour, rows FROM partition_states")
        for table in RESULT_TABLES:
            rows = by_hour(tables[table])
            noted = {hour: count for asset, hour, count in counts if asset == table}
            # records of hours that no run was asked for are there, and not noted
            is_noted = {hour: len(found) for hour, found in rows.items() if hour in noted or table not in RECORD_TABLES}
            assert is_noted == {hour: count for hour, count in noted.items() if count}
            before, clean = by_hour(self.before[table]), by_hour(self.clean[table])
            for hour in {*noted, *rows}:
                found = {table: rows.get(hour, [])}
                try:
                    assert_same_tables(found, {table: clean.get(hour, [])})
                except AssertionError:
                    assert_same_tables(found, {table: before.get(hour, [])})
        assert_lines_are_conserved(project)

    def mend(self, project: Project) -> None:
        """Run again, undisturbed."""
        project.materialize(ALL_HOURS, only=self.only)

    def assert_mended(self, project: Project) -> None:
        assert_same_tables(project.tables(), self.clean)
        assert_lines_are_conserved(project)


def by_hour(rows: list[Row]) -> dict[object, list[Row]]:
    hours: dict[object, list[Row]] = {}
    for row in rows:
        hours.setdefault(row["hour"], []).append(row)
    return hours


@pytest.fixture(scope="module", params=ONE_SYSTEM_BY_DAY)
def killed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Killed:
    return Killed(tmp_path_factory.mktemp("kill"), count=LINES, only=request.param)


# -- the command -------------------------------------------------------------------------------------------------------


ENVIRONMENT = {"HEALTH_WINDOW_HOURS": "6", "HEALTH_LOOKBACK_HOURS": "24", "HEALTH_SHORT_WINDOW_HOURS": "off"}


def warehouse_state(project: Project) -> list[tuple[str, int, int]]:
    """Changes with everything that is written: the file and its log, which is there while a commit is under way."""
    files = [path.stat() for path in project.folder.glob("health.duckdb*")]
    return [(str(found.st_ino), found.st_size, found.st_mtime_ns) for found in files]


def kill_after_writes(project: Project, arguments: Sequence[str], writes: int, seconds: float) -> int | None:
    """Start the command and kill it some seconds after the warehouse has changed so often; gives its exit code."""
    process = start_forked_command(arguments, ENVIRONMENT, project.folder)
    state = warehouse_state(project)
    while writes and process.is_alive():
        now = warehouse_state(project)
        writes -= now != state
        state = now
        time.sleep(0.002)
    time.sleep(seconds)
    process.kill()
    process.join()
    return process.exitcode


MOMENTS = [(3, 0.01), (1, 0.0), (7, 0.1)][: example_count(1, 3)]
"""Writes to wait for, and seconds after them."""


def test_the_command_killed_at_any_moment_leaves_whole_hours_and_is_mended_by_running_again(
    killed: Killed, tmp_path: Path
) -> None:
    """One warehouse suffers all the kills of the one system, and one each of those of all systems."""
    projects = [killed.copy(tmp_path / str(place)) for place in range(1 if killed.only else len(MOMENTS))]
    codes = []
    for place, moment in enumerate(MOMENTS):
        project = projects[place % len(projects)]
        arguments = materialize_arguments(project, ALL_HOURS, SYSTEM if killed.only else None)
        codes.append(kill_after_writes(project, arguments, *moment))
        killed.assert_whole_hours(project)
    assert -signal.SIGKILL in codes, f"the processes were done before they were killed: {codes}"
    for project in projects[1:]:
        killed.mend(project)
    arguments = materialize_arguments(projects[0], ALL_HOURS, SYSTEM if killed.only else None)
    assert forked_command(*arguments, environment=ENVIRONMENT, timeout_s=600).returncode == 0
    for project in projects:
        killed.assert_mended(project)


# -- the assets alone: many more moments -------------------------------------------------------------------------------


def _materialize(project: dict[str, Any], hours: HourRange, only_stale: bool, only: Sequence[str] | None) -> None:
    Project(**project).materialize(hours, only_stale=only_stale, only=only)


def start_in_a_process(
    project: Project, hours: HourRange = ALL_HOURS, *, only_stale: bool = False, only: Sequence[str] | None = None
) -> BaseProcess:
    return in_a_process(_materialize, given(project), hours, only_stale, only)


def killed_after(project: Project, seconds: float, only: Sequence[str] | None) -> None:
    """Kill a materialization after some seconds; where it was done by then, another one sooner."""
    while True:
        process = start_in_a_process(project, only=only)
        process.join(seconds)
        process.kill()
        process.join()
        if process.exitcode == -signal.SIGKILL:
            return
        assert process.exitcode == 0
        seconds /= 2


def given(project: Project) -> dict[str, Any]:
    return {field.name: getattr(project, field.name) for field in fields(project) if field.init}


@pytest.mark.nightly  # by day the command's test stands for it
def test_assets_killed_again_and_again_leave_whole_hours_and_are_mended_by_running_again(
    killed: Killed, tmp_path: Path
) -> None:
    in_a_process(time.time).join()  # the first one waits for the imports
    undisturbed = killed.copy(tmp_path / "undisturbed")
    start = time.monotonic()
    process = start_in_a_process(undisturbed, only=killed.only)
    process.join()
    life = time.monotonic() - start
    assert process.exitcode == 0
    killed.assert_mended(undisturbed)
    random = Random(5)
    for turn in range(3):
        project = killed.copy(tmp_path / str(turn))
        for moment in (life * (turn + random.random()) / 3, life * random.random() / 2):
            killed_after(project, moment, killed.only)
            killed.assert_whole_hours(project)
        killed.mend(project)
        killed.assert_mended(project)


def test_a_step_killed_in_a_write_leaves_whole_hours_and_is_mended_by_running_again(
    killed: Killed, tmp_path: Path
) -> None:
    """Once in the suite; `make hostile` does it as often as wanted, and with steps of other kinds."""
    from health_assets_tests.hostile.kills import kill_in_writes

    assert kill_in_writes(killed, tmp_path, "ingest", 1, Random(1)).in_write == 1


# -- dropping old hours ------------------------------------------------------------------------------------------------

DAYS = 7
PRUNED = hours_from(START, 24 * DAYS)


class Unhurried(Warehouse):
    """A warehouse that rests after each transaction, so that who looks at its file sees one after another."""

    @contextmanager
    def write(self) -> Iterator[Session]:
        with super().write() as session:
            yield session
        time.sleep(0.2)


def _prune(project: dict[str, Any], kind: type[Warehouse] = Unhurried) -> None:
    prune(kind.of(Project(**project).settings), ["health_components"], PRUNED.end, 3)


def test_a_pruning_killed_at_any_moment_leaves_whole_days_and_the_next_one_goes_on(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", {"agents": {"a": {}}}, 2, 3)
    hours = [hour for hour in PRUNED if hour.hour % 4 == 0]
    project.write_log("a.jsonl", (line(execution(f"{hour}", "a", hour)) for hour in hours))
    project.write_log("b.jsonl", (otlp_line(agent(place, 1, hour)) for place, hour in enumerate(hours[::6], 1)))
    project.materialize(PRUNED, only=["ingest", "health_components"])
    days = []
    for writes in (1, 2, 1):
        process, state = in_a_process(_prune, given(project)), warehouse_state(project)
        while writes and process.is_alive():
            now = warehouse_state(project)
            writes -= now != state
            state = now
            time.sleep(0.002)
        process.kill()
        process.join()
        first = {table: min(row["hour"] for row in project.rows(table)) for table in PRUNED_TABLES}
        assert first["executions"] == first["health_components"] >= first["spans"]
        assert {row["hour"] for row in project.rows("executions")} == {
            hour for hour in hours if hour >= first["executions"]
        }
        assert_lines_are_conserved(project)
        days.append((first["executions"] - START) / (24 * HOUR))
    assert days == sorted(days)
    assert all(day.is_integer() for day in days)
    assert 0 < days[-1] < DAYS, f"the process was killed before or after its work: {days}"
    _prune(given(project), Warehouse)
    assert [len(project.rows(table)) for table in PRUNED_TABLES] == [0, 0, 0]


PRUNED_TABLES = ("executions", "spans", "health_components")


# -- on PostgreSQL -----------------------------------------------------------------------------------------------------

STEPS = [1, len(RECORD_TABLES) + 1]
"""How many assets are noted for the last hour before the process is killed in what it does next: logs, then components."""


@pytest.mark.nightly
@pytest.mark.parametrize("only", ONE_SYSTEM_BY_DAY)
def test_a_process_killed_while_it_writes_to_postgresql_leaves_whole_hours_and_no_lock(
    tmp_path: Path, only: Sequence[str] | None
) -> None:
    killed = Killed(tmp_path / "killed", "postgres", LINES, only)
    project, random, codes = killed.project, Random(6), []
    for steps in STEPS:
        process = start_in_a_process(project, only=only)
        with psycopg.connect(project.url, autocommit=True) as connection:
            while process.is_alive() and assets_of_the_last_hour(connection) < steps:
                time.sleep(0.005)
        time.sleep(random.random() / 10)
        process.kill()
        process.join()
        codes.append(process.exitcode)
        killed.assert_whole_hours(project)
    assert codes.count(-signal.SIGKILL) >= len(STEPS) - 1, f"the processes were done before they were killed: {codes}"
    killed.mend(project)
    killed.assert_mended(project)


def assets_of_the_last_hour(connection: psycopg.Connection) -> int:
    sql = "SELECT count(*) FROM partition_states WHERE hour = %s"
    found = connection.execute(sql, [ALL_HOURS.end - HOUR]).fetchone()
    return found[0] if found else 0


def noted_and_found(project: Project) -> bool:
    """Whether one moment of the warehouse has as many rows in every hour of every asset as are noted."""
    with project.warehouse.read() as session:
        for asset in RESULT_TABLES:
            noted = session.query("SELECT hour, rows FROM partition_states WHERE asset = ? AND rows > 0", [asset])
            if sorted(noted) != sorted(session.query(f"SELECT hour, count(*) FROM {asset} GROUP BY hour")):
                return False
    return True


@pytest.mark.nightly
@pytest.mark.parametrize("only", ONE_SYSTEM_BY_DAY)
def test_writers_of_different_hours_late_logs_and_a_reader_lose_nothing_at_the_same_time(
    tmp_path: Path, only: Sequence[str] | None
) -> None:
    random = Random(12)
    project = Project(tmp_path / "project", {"agents": {"listed": {}}}, 3, 6, engine="postgres")
    for name, lines in cut_into_files(random, random_lines(random, 300, 8)).items():
        project.write_log(name, lines, modified=START + HOUR)
    project.materialize(hours_from(START, 4), only=only)
    for name, lines in cut_into_files(random, random_lines(random, 100, 4)).items():
        project.write_log(f"late/{name}", lines, modified=START + HOUR)
    some = [hours_from(START + first * HOUR, 2) for first in (4, 6)]
    processes = [start_in_a_process(project, hours, only=only) for hours in some]
    processes.append(start_in_a_process(project, hours_from(START, 4), only_stale=True, only=only))
    looks = [noted_and_found(project)]
    while any(process.is_alive() for process in processes):
        looks.append(noted_and_found(project))
        time.sleep(0.3)
    assert [process.exitcode for process in processes] == [0] * 3
    assert len(looks) > 3
    assert all(looks)
    assert_lines_are_conserved(project)
    hours = hours_from(START, 8)
    project.materialize(hours, only_stale=True, only=only)
    assert_same_tables(project.tables(), project.clean_rebuild(hours, only=only).tables())
