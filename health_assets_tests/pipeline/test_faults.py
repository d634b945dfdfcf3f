"""Faults that a user can mend: one readable sentence, an exit code that is not 0, and a warehouse that is still whole.

Each case is the command itself in a process of its own, because what a user sees is the point.
"""

import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR
from health_assets.logs.files import list_files
from health_assets.schema.catalog import SCHEMA_VERSION
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import (
    FLEET,
    Project,
    Row,
    assert_same_tables,
    command,
    command_environment,
    command_line,
    forked_command,
    hours_from,
    in_a_process,
    materialize_arguments,
    run_as_a_command,
)

HOURS = hours_from(START, 2)
LATER = hours_from(START + 2 * HOUR, 1)
SYSTEM = "agent_health_model"
"""One that stands for all: the faults are the same to each."""

DUCKDB_PROCESS = """
import sys, time, duckdb
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


def make_filled_project(folder: Path) -> Project:
    """A project with two hours materialized and a third one waiting in the logs."""
    project = Project(folder, {"agents": {"listed": {}}})
    records = [execution(f"e{n}", "a", START + n * HOUR / 4) for n in range(12)]
    project.write_log("deep/a.jsonl", [line(record) for record in records], modified=START)
    project.materialize(HOURS, only=FLEET)
    return project


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_filled_project(tmp_path_factory.mktemp("filled") / "project")


def copy_of(project: Project, folder: Path) -> Project:
    shutil.copytree(project.folder, folder, symlinks=True)
    return Project(folder, project.targets)


# -- the cases ---------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """A fault: how to bring it about, and what the message must name."""

    name: str
    message: str
    prepare: Callable[[Project], None] = lambda project: None
    arguments: Callable[[Project], Sequence[str]] = lambda project: materialize_arguments(project, LATER, SYSTEM)
    environment: dict[str, str] = field(default_factory=dict)
    keeps_warehouse: bool = True


def without_raw_root(project: Project) -> None:
    shutil.rmtree(project.raw)


def with_a_dangling_link(project: Project) -> None:
    (project.raw / "deep" / "dangling.jsonl").symlink_to("nowhere")


def with_targets(text: str) -> Callable[[Project], None]:
    return lambda project: project.targets_path.write_text(text, encoding="utf-8") and None


def without_targets_file(project: Project) -> None:
    project.targets_path.unlink()


def with_newer_version(project: Project) -> None:
    project.change("UPDATE warehouse_version SET version = version + 1")


def with_another_warehouse_file(content: bytes) -> Callable[[Project], None]:
    return lambda project: project.warehouse_path.write_bytes(content) and None


def with_somebody_elses_database(project: Project) -> None:
    project.warehouse_path.unlink()
    with duckdb.connect(str(project.warehouse_path)) as connection:
        connection.execute("CREATE TABLE precious (value INTEGER); INSERT INTO precious VALUES (42)")


def with_a_damaged_warehouse(project: Project) -> None:
    content = bytearray(project.warehouse_path.read_bytes())
    content[8192 : len(content) // 2] = b"\xa5" * (len(content) // 2 - 8192)
    project.warehouse_path.write_bytes(content)


def with_a_cut_off_warehouse(project: Project) -> None:
    content = project.warehouse_path.read_bytes()
    project.warehouse_path.write_bytes(content[: len(content) // 3])


def with_a_folder_as_warehouse(project: Project) -> None:
    project.warehouse_path.unlink()
    project.warehouse_path.mkdir()


def between(start: str, end: str) -> Callable[[Project], Sequence[str]]:
    def arguments(project: Project) -> Sequence[str]:
        made = materialize_arguments(project, HOURS, SYSTEM)
        made[made.index("--from") + 1], made[made.index("--to") + 1] = start, end
        return made

    return arguments


def with_warehouse(name: str) -> Callable[[Project], Sequence[str]]:
    def arguments(project: Project) -> Sequence[str]:
        made = materialize_arguments(project, LATER, SYSTEM)
        made[made.index("--warehouse") + 1] = name.format(folder=project.folder)
        return made

    return arguments


CASES = [
    Case("an empty range", "2026-06-07T00", arguments=between("2026-06-07T00", "2026-06-07T00")),
    Case("a bad hour", "2026-06-07T0x", arguments=between("2026-06-07T0x", "2026-06-07T05")),
    Case("an hour before the calendar", "0001", arguments=between("0001-01-01T00", "0001-01-01T01")),
    Case("an hour after the calendar", "9999", arguments=between("9999-12-31T22", "9999-12-31T23")),
    Case("a raw root that is missing", "raw", without_raw_root),
    Case("a dangling link", "dangling.jsonl", with_a_dangling_link, keeps_warehouse=False),
    Case("an unknown target", "n_ful", with_targets("agents: {agent 7: {n_ful: 3}}")),
    Case("an impossible target", "agent 7.*n_full", with_targets("agents: {agent 7: {n_full: -3}}")),
    Case("targets that are missing", "targets.yaml", without_targets_file),
    Case("a warehouse of a newer version", f"version {SCHEMA_VERSION + 1}.*upgrade", with_newer_version),
    Case(
        "a file that is no DuckDB",
        "health.duckdb",
        with_another_warehouse_file(b"dear diary\n" * 1000),
        keeps_warehouse=False,
    ),
    Case("somebody else's DuckDB", "no.* Health Assets warehouse", with_somebody_elses_database, keeps_warehouse=False),
    Case("a damaged warehouse", "health.duckdb", with_a_damaged_warehouse, keeps_warehouse=False),
    Case("a warehouse that is cut off", "health.duckdb", with_a_cut_off_warehouse, keeps_warehouse=False),
    Case("a folder in place of the warehouse", "health.duckdb", with_a_folder_as_warehouse, keeps_warehouse=False),
    Case("a warehouse below a file", "targets.yaml", arguments=with_warehouse("{folder}/targets.yaml/w.duckdb")),
    Case("a warehouse of an unsupported kind", "mysql", arguments=with_warehouse("mysql://host/db")),
    Case("a setting that is no number", "(?i)window_hours", environment={"HEALTH_WINDOW_HOURS": "a day"}),
    Case("a setting that is impossible", "(?i)lookback_hours", environment={"HEALTH_LOOKBACK_HOURS": "0"}),
    Case("a first hour that is none", "HEALTH_FIRST_HOUR.*2026-06-07T13", environment={"HEALTH_FIRST_HOUR": "soon"}),
    Case("a look-back shorter than the window", "(?i)lookback_hours", environment={"HEALTH_LOOKBACK_HOURS": "23"}),
    Case("a memory limit in words", "(?i)memory", environment={"HEALTH_MEMORY_LIMIT": "lots"}),
]


@dataclass
class Outcome:
    project: Project
    before: dict[str, list[Row]]
    done: subprocess.CompletedProcess[str]


def run_case(case: Case, filled: Project, folder: Path) -> Outcome:
    project = copy_of(filled, folder)
    before = project.tables()
    case.prepare(project)
    run = command if case is CASES[0] else forked_command  # once as the user does it
    return Outcome(project, before, run(*case.arguments(project), environment=case.environment, folder=folder))


@pytest.fixture(scope="module")
def outcomes(filled: Project, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    folder = tmp_path_factory.mktemp("cases")
    return {case.name: run_case(case, filled, folder / str(place)) for place, case in enumerate(CASES)}


def assert_one_sentence(done: subprocess.CompletedProcess[str], message: str) -> None:
    """The command failed with one sentence on stderr that names what it is about."""
    assert done.returncode not in (0, None), done.stdout
    assert done.returncode > 0, f"died of signal {-done.returncode}"
    assert "Traceback" not in done.stdout + done.stderr
    assert "internal error" not in done.stderr
    said = done.stderr.strip()
    assert re.search(message, said, re.DOTALL), said
    assert len(said.splitlines()) == 1, said
    assert len(said) < 600, said


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fault_is_said_in_one_sentence(case: Case, outcomes: dict[str, Outcome]) -> None:
    assert_one_sentence(outcomes[case.name].done, case.message)


@pytest.mark.parametrize("case", [case for case in CASES if case.keeps_warehouse], ids=lambda case: case.name)
def test_after_a_fault_the_tables_are_as_they_were(case: Case, outcomes: dict[str, Outcome]) -> None:
    project = outcomes[case.name].project
    if case.prepare is with_newer_version:
        project.warehouse_path.chmod(0o644)
        with duckdb.connect(str(project.warehouse_path)) as connection:
            connection.execute("UPDATE warehouse_version SET version = version - 1")
    assert_same_tables(project.tables(), outcomes[case.name].before)


def test_after_a_fault_is_mended_the_run_succeeds(outcomes: dict[str, Outcome], filled: Project) -> None:
    for name in ("a dangling link", "an unknown target"):
        project = outcomes[name].project
        (project.raw / "deep" / "dangling.jsonl").unlink(missing_ok=True)
        shutil.copytree(filled.raw, project.raw, dirs_exist_ok=True)
        shutil.copy(filled.targets_path, project.targets_path)
        project.materialize(LATER, only=FLEET)
        assert project.query("SELECT count(*) FROM executions") == [(12,)]


def test_somebody_elses_files_are_left_as_they_were(outcomes: dict[str, Outcome]) -> None:
    project = outcomes["somebody else's DuckDB"].project
    with duckdb.connect(str(project.warehouse_path)) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("precious",)]
    diary = outcomes["a file that is no DuckDB"].project.warehouse_path
    assert diary.read_bytes() == b"dear diary\n" * 1000


@pytest.mark.parametrize(("make", "named"), [
    (lambda raw: raw.rmdir(), "raw"),
    (lambda raw: (raw.rmdir(), raw.write_text("a file", encoding="utf-8")), "raw"),
    (lambda raw: (raw / "circle.jsonl").symlink_to("circle.jsonl"), "circle.jsonl"),
    (lambda raw: (raw / "gone.jsonl").symlink_to("nowhere"), "gone.jsonl"),
])  # fmt: skip
def test_logs_that_cannot_be_looked_at_are_named(project: Project, make: Callable[[Path], None], named: str) -> None:
    make(project.raw)
    with pytest.raises(HealthAssetsError, match=named):
        list_files(project.raw)


@pytest.mark.parametrize("first", ["the folder", "the link"])
def test_a_folder_that_links_lead_to_keeps_its_own_name_whatever_was_made_first(project: Project, first: str) -> None:
    days = [project.raw / f"2026-06-{day:02d}" for day in range(1, 16)]
    for day in days if first == "the folder" else []:
        day.mkdir()
    for day in days:  # which of the two a file system lists first is luck, so there are many
        (project.raw / f"0-newest-on-{day.name}").symlink_to(day.name)
    for day in days:
        day.mkdir(exist_ok=True)
        (day / "a.jsonl").touch()
        (day / "up").symlink_to("..")
    assert [file.source_file for file in list_files(project.raw)] == [f"{day.name}/a.jsonl" for day in days]


# -- a locked warehouse ------------------------------------------------------------------------------------------------


@contextmanager
def held_by_another_process(path: Path, seconds: float) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        [*command_line()[:1], "-c", DUCKDB_PROCESS, str(path), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_locked_warehouse_is_waited_for_and_then_its_holder_is_named(filled: Project, tmp_path: Path) -> None:
    project = copy_of(filled, tmp_path / "project")
    before = project.tables()
    with held_by_another_process(project.warehouse_path, 300) as holder:
        start = time.monotonic()
        done = forked_command(
            *materialize_arguments(project, LATER, SYSTEM), environment={"HEALTH_LOCK_TIMEOUT_S": "2"}
        )
        assert time.monotonic() - start > 2
        assert_one_sentence(done, rf"health\.duckdb.*process {holder.pid}\b.*2 s")
    assert_same_tables(project.tables(), before)


def test_a_warehouse_that_comes_free_in_time_is_used(filled: Project, tmp_path: Path) -> None:
    project = copy_of(filled, tmp_path / "project")
    with held_by_another_process(project.warehouse_path, 2):
        project.materialize(LATER, only=["ingest"])
    assert project.built_hours("executions") >= {*LATER}


def test_a_reader_waits_for_a_writer_and_says_who_it_is(filled: Project, tmp_path: Path) -> None:
    project = copy_of(filled, tmp_path / "project")
    project.lock_timeout_s = 0.5
    with held_by_another_process(project.warehouse_path, 300) as holder:
        for mode in (project.warehouse.read, project.warehouse.write):
            with pytest.raises(HealthAssetsError, match=rf"process {holder.pid}\b"), mode():
                pass
    with held_by_another_process(project.warehouse_path, 1):
        project.lock_timeout_s = 30
        assert project.query("SELECT count(*) FROM executions") == [(12,)]


# -- a full disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 6 MiB."""
    folder = tmp_path / "small disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("a small disk cannot be mounted here (needs root)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def write_much(project: Project) -> None:
    """Logs that make a warehouse of tens of megabytes."""
    for number in range(4):
        records = (
            execution(f"{number} {n}", f"agent {n}", START + 2 * HOUR, error=os.urandom(300).hex())
            for n in range(10_000)
        )
        project.write_log(f"much {number}.jsonl", [line(record) for record in records])


def test_a_full_disk_is_named_and_nothing_is_lost(filled: Project, tmp_path: Path, small_disk: Path) -> None:
    project = copy_of(filled, tmp_path / "project")
    project.warehouse_path = Path(shutil.copy(project.warehouse_path, small_disk / "health.duckdb"))
    before = project.tables()
    write_much(project)
    done = forked_command(*materialize_arguments(project, LATER, SYSTEM))
    assert_one_sentence(done, r"disk.*health\.duckdb.*full")
    assert_same_tables(project.tables(), before)
    for path in project.raw.glob("much*"):
        path.unlink()
    # what was cut off may fill the disk to its last byte, so somebody makes room
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    project.materialize(LATER, only=FLEET)
    assert project.query("SELECT count(*) FROM executions") == [(12,)]


def test_a_disk_without_any_room_left_is_named(filled: Project, tmp_path: Path, small_disk: Path) -> None:
    project = copy_of(filled, tmp_path / "project")
    project.warehouse_path = Path(shutil.copy(project.warehouse_path, small_disk / "health.duckdb"))
    before = project.tables()
    with (small_disk / "filling").open("wb", buffering=0) as filling, suppress(OSError):
        while filling.write(b"\0" * 4096):
            pass
    assert_one_sentence(forked_command(*materialize_arguments(project, LATER, SYSTEM)), r"disk.*full")
    (small_disk / "filling").unlink()
    assert_same_tables(project.tables(), before)


def _write_small_files(most_bytes: int, *command: Any) -> None:
    """Be the command where no file may be larger."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    run_as_a_command(*command)


def test_a_limit_on_file_sizes_is_named_like_a_full_disk(filled: Project, tmp_path: Path) -> None:
    project = copy_of(filled, tmp_path / "project")
    before = project.tables()
    write_much(project)
    arguments = materialize_arguments(project, LATER, SYSTEM)
    outputs = [str(tmp_path / "stdout"), str(tmp_path / "stderr")]
    process = in_a_process(_write_small_files, 8 << 20, arguments, command_environment(), str(tmp_path), outputs)
    process.join(300)
    said = [Path(output).read_text(encoding="utf-8") for output in outputs]
    done = subprocess.CompletedProcess(arguments, process.exitcode or 0, *said)
    assert_one_sentence(done, r"(disk.*full|too large)")
    assert_same_tables(project.tables(), before)


def test_a_full_temporary_folder_is_named(filled: Project, tmp_path: Path, small_disk: Path) -> None:
    """Rows of some tables wait in temporary files while the logs are read; Dagster's records have room beside them."""
    subprocess.run(["mount", "-o", "remount,size=24m", str(small_disk)], check=True)
    project = copy_of(filled, tmp_path / "project")
    before = project.tables()
    for number in range(4):
        project.write_log(
            f"much {number}.jsonl", ["x" * 1000 + os.urandom(500).hex() for _ in range(5000)], modified=START + 2 * HOUR
        )
    done = forked_command(*materialize_arguments(project, LATER, SYSTEM), environment={"TMPDIR": str(small_disk)})
    assert_one_sentence(done, r"(full|space)")
    assert_same_tables(project.tables(), before)


def test_ctrl_c_stops_without_a_wall_of_text(filled: Project, tmp_path: Path) -> None:
    took_s = 0.0
    for attempt in range(5):  # a run may be over before the signal comes; then the next one has it earlier
        project = copy_of(filled, tmp_path / f"project-{attempt}")
        before = project.tables(HOURS)
        began_s = time.monotonic()
        process = subprocess.Popen(
            command_line(*materialize_arguments(project, LATER, SYSTEM)),
            env=command_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        log = project.warehouse_path.with_name(f"{project.warehouse_path.name}.wal")
        while process.poll() is None and not log.exists():
            if took_s and time.monotonic() - began_s > took_s * (1 - attempt / 5):
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        output, complaints = process.communicate(timeout=300)
        took_s = time.monotonic() - began_s
        if process.returncode:
            break
    assert process.returncode > 0, output + complaints
    assert "Traceback" not in output + complaints
    assert len(complaints.strip().splitlines()) <= 2
    assert_same_tables(project.tables(HOURS), before)
