"""A materialisation that is killed at any moment: whole hours or nothing, and running again mends everything."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from health_assets.hours import HOUR
from logs_made import START, cut_into_files, random_lines
from projects import (
    RESULT_TABLES,
    Project,
    Row,
    assert_lines_are_conserved,
    assert_same_tables,
    command_environment,
    command_line,
    hours_from,
    materialise_arguments,
)

FILLED = hours_from(START, 6)
ALL_HOURS = hours_from(START, 30)
Tables = dict[str, list[Row]]


class Killed:
    """A partially filled warehouse to be copied, and what a clean rebuild of its logs gives."""

    def __init__(self, folder: Path) -> None:
        random = Random(11)
        self.project = Project(folder / "project", {"agents": {"listed": {}, "coder": {"expected_runtime_s": 30}}}, 6, 24)
        for name, lines in cut_into_files(random, random_lines(random, 3000, 30)).items():
            self.project.write_log(name, lines, modified=START + HOUR)
        self.project.materialise(FILLED)
        self.before = self.project.tables()
        for name, lines in cut_into_files(random, random_lines(random, 1000, 30)).items():  # late, for filled hours too
            self.project.write_log(f"late/{name}", lines, modified=START + 2 * HOUR)
        clean = self.project.clean_rebuild(ALL_HOURS)
        self.clean = clean.tables()
        shutil.rmtree(clean.folder)

    def copy(self, folder: Path) -> Project:
        shutil.copytree(self.project.folder, folder)
        return Project(folder, self.project.targets, self.project.window_hours, self.project.lookback_hours)

    def assert_whole_hours(self, project: Project) -> None:
        """What is committed is as before or as a clean rebuild has it, hour by hour, and noted with its rows."""
        for table in RESULT_TABLES:
            rows = by_hour(project.rows(table))
            noted = dict(project.query("SELECT hour, rows FROM materialized_hours WHERE asset = ?", [table]))
            assert {hour: len(found) for hour, found in rows.items()} == {hour: count for hour, count in noted.items() if count}
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


def start_command(project: Project) -> subprocess.Popen:
    environment = command_environment() | {"HEALTH_WINDOW_HOURS": "6", "HEALTH_LOOKBACK_HOURS": "24"}
    arguments = command_line(*materialise_arguments(project, ALL_HOURS))
    return subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def warehouse_state(project: Project) -> list[tuple[str, int, int]]:
    """Changes with everything that is written: the file and its log, which is there while a commit is under way."""
    files = [path.stat() for path in project.folder.glob("health.duckdb*")]
    return [(str(found.st_ino), found.st_size, found.st_mtime_ns) for found in files]


def kill_after_writes(project: Project, writes: int, seconds: float) -> int:
    """Start the command and kill it some seconds after the warehouse has changed so often; gives its exit code."""
    process = start_command(project)
    state = warehouse_state(project)
    while writes and process.poll() is None:
        now = warehouse_state(project)
        writes -= now != state
        state = now
        time.sleep(0.002)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    return process.wait()


MOMENTS = [(0, 1.5), (1, 0.0), (3, 0.01), (5, 0.2), (8, 0.0), (12, 0.1)]


def test_the_command_killed_at_any_moment_leaves_whole_hours_and_is_mended_by_running_again(
    killed: Killed, tmp_path: Path
) -> None:
    projects = [killed.copy(tmp_path / str(place)) for place in range(len(MOMENTS))]
    with ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(lambda place: kill_after_writes(projects[place], *MOMENTS[place]), range(len(MOMENTS))))
    assert codes.count(-signal.SIGKILL) >= len(MOMENTS) - 2, f"the processes were done before they were killed: {codes}"
    for project in projects:
        killed.assert_whole_hours(project)
    assert start_command(projects[-1]).wait() == 0  # once as the user does it
    for project in projects[:-1]:
        project.materialise(ALL_HOURS)
    for project in projects:
        killed.assert_mended(project)


# -- the assets alone: many more moments -------------------------------------------------------------------------------


def _materialise(folder: str, targets: dict) -> None:
    Project(Path(folder), targets, 6, 24).materialise(ALL_HOURS)


def _in_a_process(project: Project, wait: Callable[[int], None]) -> int:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["projects"])
    process = context.Process(target=_materialise, args=(str(project.folder), project.targets))
    process.start()
    wait(process.pid)
    if process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    return process.exitcode


def test_assets_killed_at_many_moments_and_again_and_again_end_like_a_clean_rebuild(killed: Killed, tmp_path: Path) -> None:
    whole = killed.copy(tmp_path / "whole")
    start = time.monotonic()
    assert _in_a_process(whole, lambda _: None if time.sleep(0) else _wait_for_the_end(whole)) in (0, -signal.SIGKILL)
    life = time.monotonic() - start
    random = Random(5)
    project = killed.copy(tmp_path / "project")
    codes = []
    for turn in range(10):
        moment = life * (turn + random.random()) / 10
        codes.append(_in_a_process(project, lambda _, moment=moment: time.sleep(moment)))
        killed.assert_whole_hours(project)
    assert -signal.SIGKILL in codes
    project.materialise(ALL_HOURS)
    killed.assert_mended(project)


def _wait_for_the_end(project: Project) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        time.sleep(0.2)
        try:
            if ALL_HOURS.end - HOUR in project.built_hours("system_health"):
                return
        except Exception:  # noqa: BLE001, S110, the child holds the warehouse
            pass
