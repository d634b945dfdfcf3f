"""A materialization that is killed at any moment: whole hours or nothing, and running again mends everything."""

import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
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
from health_assets_tests.support import postgres_server
from health_assets_tests.support.logs_made import START, cut_into_files, execution, line, random_lines
from health_assets_tests.support.projects import (
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

FILLED = hours_from(START, 6)
ALL_HOURS = hours_from(START, 30)
Tables = dict[str, list[Row]]


class Killed:
    """A partially filled warehouse to be copied, and what a clean rebuild of its logs gives."""

    def __init__(self, folder: Path, engine: str = "duckdb") -> None:
        random = Random(11)
        self.project = Project(
            folder / "project", {"agents": {"listed": {}, "coder": {"expected_runtime_s": 30}}}, 6, 24, engine=engine
        )
        for name, lines in cut_into_files(random, random_lines(random, 3000, 30)).items():
            self.project.write_log(name, lines, modified=START + HOUR)
        spans = random_spans(random, 60, 30)
        self.project.write_log("traces.jsonl", in_lines(random, spans[::2]), modified=START + HOUR)
        self.project.materialize(FILLED)
        self.before = self.project.tables()
        for name, lines in cut_into_files(random, random_lines(random, 1000, 30)).items():  # late, for filled hours too
            self.project.write_log(f"late/{name}", lines, modified=START + 2 * HOUR)
        self.project.write_log("late/traces.jsonl", in_lines(random, spans[1::2]), modified=START + 2 * HOUR)
        clean = self.project.clean_rebuild(ALL_HOURS)
        self.clean = clean.tables()
        shutil.rmtree(clean.folder)

    def copy(self, folder: Path) -> Project:
        shutil.copytree(self.project.folder, folder)
        copied = postgres_server.copy_of(self.project.url) if self.project.url else ""
        return replace(self.project, folder=folder, url=copied)

    def assert_whole_hours(self, project: Project) -> None:
        """What is committed is as before or as a clean rebuild has it, hour by hour, and noted with its rows."""
        tables = project.tables()
        counts = project.query("SELECT asset, hour, rows FROM materialized_hours")
        for table in RESULT_TABLES:
            rows = by_hour(tables[table])
            noted = {hour: count for asset, hour, count in counts if asset == table}
            assert {hour: len(found) for hour, found in rows.items()} == {
                hour: count for hour, count in noted.items() if count
            }
            before, clean = by_hour(self.before[table]), by_hour(self.clean[table])
            for hour in noted:
                found = {table: rows.get(hour, [])}
                try:
                    assert_same_tables(found, {table: clean.get(hour, [])})
                except AssertionError:
                    assert_same_tables(found, {table: before.get(hour, [])})
        assert_lines_are_conserved(project)

    def assert_mended(self, project: Project) -> None:
        assert_same_tables(project.tables(), self.clean)
        assert_lines_are_conserved(project)


def by_hour(rows: list[Row]) -> dict[object, list[Row]]:
    hours: dict[object, list[Row]] = {}
    for row in rows:
        hours.setdefault(row["hour"], []).append(row)
    return hours


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    return Killed(tmp_path_factory.mktemp("kill"))


# -- the command -------------------------------------------------------------------------------------------------------


ENVIRONMENT = {"HEALTH_WINDOW_HOURS": "6", "HEALTH_LOOKBACK_HOURS": "24"}


def warehouse_state(project: Project) -> list[tuple[str, int, int]]:
    """Changes with everything that is written: the file and its log, which is there while a commit is under way."""
    files = [path.stat() for path in project.folder.glob("health.duckdb*")]
    return [(str(found.st_ino), found.st_size, found.st_mtime_ns) for found in files]


def kill_after_writes(project: Project, writes: int, seconds: float) -> int | None:
    """Start the command and kill it some seconds after the warehouse has changed so often; gives its exit code."""
    process = start_forked_command(materialize_arguments(project, ALL_HOURS), ENVIRONMENT, project.folder)
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


MOMENTS = [(1, 0.0), (3, 0.01), (7, 0.1)]


def test_the_command_killed_at_any_moment_leaves_whole_hours_and_is_mended_by_running_again(
    killed: Killed, tmp_path: Path
) -> None:
    projects = [killed.copy(tmp_path / str(place)) for place in range(len(MOMENTS))]
    codes = [kill_after_writes(project, *moment) for project, moment in zip(projects, MOMENTS, strict=True)]
    assert codes.count(-signal.SIGKILL) >= len(MOMENTS) - 2, f"the processes were done before they were killed: {codes}"
    for project in projects:
        killed.assert_whole_hours(project)
    arguments = materialize_arguments(projects[-1], ALL_HOURS)
    assert forked_command(*arguments, environment=ENVIRONMENT, timeout_s=600).returncode == 0
    for project in projects[:-1]:
        project.materialize(ALL_HOURS)
    for project in projects:
        killed.assert_mended(project)


# -- the assets alone: many more moments -------------------------------------------------------------------------------

COPIES = 3


def _materialize(project: dict[str, Any], hours: HourRange, only_stale: bool) -> None:
    Project(**project).materialize(hours, only_stale=only_stale)


def start_in_a_process(project: Project, hours: HourRange = ALL_HOURS, *, only_stale: bool = False) -> BaseProcess:
    return in_a_process(_materialize, given(project), hours, only_stale)


def killed_after(project: Project, seconds: float) -> None:
    """Kill a materialization after some seconds; where it was done by then, another one sooner."""
    while True:
        process = start_in_a_process(project)
        process.join(seconds)
        process.kill()
        process.join()
        if process.exitcode == -signal.SIGKILL:
            return
        assert process.exitcode == 0
        seconds /= 2


def given(project: Project) -> dict[str, Any]:
    return {field.name: getattr(project, field.name) for field in fields(project) if field.init}


def test_assets_killed_again_and_again_leave_whole_hours_and_are_mended_by_running_again(
    killed: Killed, tmp_path: Path
) -> None:
    undisturbed = killed.copy(tmp_path / "undisturbed")
    start_in_a_process(undisturbed).join()  # the first one does the imports
    shutil.rmtree(undisturbed.folder)
    undisturbed = killed.copy(tmp_path / "undisturbed")
    start = time.monotonic()
    process = start_in_a_process(undisturbed)
    process.join()
    life = time.monotonic() - start
    assert process.exitcode == 0
    killed.assert_mended(undisturbed)
    random = Random(5)
    for turn in range(COPIES):
        project = killed.copy(tmp_path / str(turn))
        for moment in (life * (turn + random.random()) / COPIES, life * random.random() / 2):
            killed_after(project, moment)
            killed.assert_whole_hours(project)
        project.materialize(ALL_HOURS)
        killed.assert_mended(project)


def test_a_step_killed_in_a_write_leaves_whole_hours_and_is_mended_by_running_again(
    killed: Killed, tmp_path: Path
) -> None:
    """Once in the suite; `make hostile` does it as often as wanted, and with steps of other kinds."""
    from health_assets_tests.hostile.kills import kill_in_writes

    assert kill_in_writes(killed, tmp_path, "ingest", 1, Random(1)).in_write == 1


# -- dropping old hours ------------------------------------------------------------------------------------------------

DAYS = 14
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
    project.write_log("b.jsonl", (otlp_line(agent(place, 1, hour)) for place, hour in enumerate(hours, 1)))
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

STEPS = [1, 7]
"""How many more assets are noted for the last hour before the process is killed in what it does next."""


def test_a_process_killed_while_it_writes_to_postgresql_leaves_whole_hours_and_no_lock(tmp_path: Path) -> None:
    killed = Killed(tmp_path / "killed", "postgres")
    project, random, codes = killed.project, Random(6), []
    for steps in STEPS:
        process = start_in_a_process(project)
        with psycopg.connect(project.url, autocommit=True) as connection:
            while process.is_alive() and assets_of_the_last_hour(connection) < steps:
                time.sleep(0.005)
        time.sleep(random.random() / 10)
        process.kill()
        process.join()
        codes.append(process.exitcode)
        killed.assert_whole_hours(project)
    assert codes.count(-signal.SIGKILL) >= len(STEPS) - 1, f"the processes were done before they were killed: {codes}"
    project.materialize(ALL_HOURS)
    killed.assert_mended(project)


def assets_of_the_last_hour(connection: psycopg.Connection) -> int:
    sql = "SELECT count(*) FROM materialized_hours WHERE hour = %s"
    found = connection.execute(sql, [ALL_HOURS.end - HOUR]).fetchone()
    return found[0] if found else 0


def noted_and_found(project: Project) -> bool:
    """Whether one moment of the warehouse has as many rows in every hour of every asset as are noted."""
    with project.warehouse.read() as session:
        for asset in RESULT_TABLES:
            noted = session.query("SELECT hour, rows FROM materialized_hours WHERE asset = ? AND rows > 0", [asset])
            if sorted(noted) != sorted(session.query(f"SELECT hour, count(*) FROM {asset} GROUP BY hour")):
                return False
    return True


def test_writers_of_different_hours_late_logs_and_a_reader_lose_nothing_at_the_same_time(tmp_path: Path) -> None:
    random = Random(12)
    project = Project(tmp_path / "project", {"agents": {"listed": {}}}, 3, 6, engine="postgres")
    for name, lines in cut_into_files(random, random_lines(random, 400, 12)).items():
        project.write_log(name, lines, modified=START + HOUR)
    project.materialize(hours_from(START, 4))
    for name, lines in cut_into_files(random, random_lines(random, 100, 4)).items():
        project.write_log(f"late/{name}", lines, modified=START + HOUR)
    processes = [start_in_a_process(project, hours_from(START + first * HOUR, 2)) for first in (4, 6, 8, 10)]
    processes.append(start_in_a_process(project, hours_from(START, 4), only_stale=True))
    looks = [noted_and_found(project)]
    while any(process.is_alive() for process in processes):
        looks.append(noted_and_found(project))
        time.sleep(0.3)
    assert [process.exitcode for process in processes] == [0] * 5
    assert len(looks) > 3
    assert all(looks)
    assert_lines_are_conserved(project)
    hours = hours_from(START, 12)
    project.materialize(hours, only_stale=True)
    assert_same_tables(project.tables(), project.clean_rebuild(hours).tables())
