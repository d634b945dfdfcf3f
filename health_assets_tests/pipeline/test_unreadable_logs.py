"""Logs that lie there and cannot be read: they are told, the exit code says so, and all others are loaded.

Most of them are dangling links, since whoever runs the tests may be allowed to read everything else.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from health_assets.cli.outcomes import Outcome
from health_assets.core.errors import HealthAssetsError, UnreadableFilesError
from health_assets.core.hours import HOUR, HourRange
from health_assets.logs.files import RawFile, line_batches, list_files
from health_assets.logs.formats.format_settings import FormatSettings
from health_assets.logs.stores import is_among
from health_assets.pipeline import log_ingestion
from health_assets.pipeline.log_ingestion import load_new_logs
from health_assets.pipeline.retention import prune
from health_assets.systems.pruning import PRUNED_COMPONENTS
from health_assets.warehouse.fingerprints import EVERY_LOG_WAS_READ
from health_assets_tests.defs.test_dagster_runs import sensor_tick
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.dagster_world import NOON, World
from health_assets_tests.support.dagster_world import execution as world_execution
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import (
    FLEET,
    RECORD_TABLES,
    Project,
    assert_same_tables,
    hours_from,
    in_a_process,
    materialize_arguments,
)

HOURS = hours_from(START, 3)
SYSTEM = "tool_health"
"""One that stands for all: whether logs can be read is the same to each."""
LATE = timedelta(minutes=30)


def dangling(project: Project, name: str) -> Path:
    path = project.raw / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to("nowhere")
    return path


def executions(project: Project) -> list[str]:
    return sorted(row["execution_id"] for row in project.rows("executions"))


def test_a_dangling_link_fails_the_exit_code_and_all_other_logs_are_loaded(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("a", "planner", START))])
    project.write_log("deep/z.jsonl", [line(execution("z", "planner", START + HOUR))])
    path = dangling(project, "deep/gone.jsonl")
    read = project.materialize(HOURS, only=["ingest"])["raw_logs"]
    assert (read["files_unreadable"], executions(project)) == (1, ["a", "z"])
    done = command_here(*materialize_arguments(project, HOURS, SYSTEM), folder=project.folder)  # it still lies there
    assert done.returncode == 1
    assert done.stderr == (
        "health-assets: 1 raw log could not be read; all others were loaded: "
        f"cannot read the raw log {path}: it is a link that leads nowhere, to nowhere\n"
    )
    assert "these hours hold 2 executions" in done.stdout
    assert "check raw_logs.every_log_was_read failed (warning): 1 raw log\n" in done.stdout
    assert executions(project) == ["a", "z"]
    path.unlink()
    done = command_here(*materialize_arguments(project, HOURS, SYSTEM), folder=project.folder)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_hours_named_the_logs_that_can_be_read_tell_them(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("a", "planner", START))])
    dangling(project, "gone.jsonl")
    arguments = ["materialize", "--raw", str(project.raw), "--warehouse", project.warehouse_url, "--system", SYSTEM]
    done = command_here(*arguments, folder=project.folder)
    assert done.returncode == 1
    assert "gone.jsonl" in done.stderr
    assert executions(project) == ["a"]


def test_many_unreadable_logs_are_counted_and_the_first_are_named(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("a", "planner", START))])
    for number in range(30):
        dangling(project, f"gone-{number:02}.jsonl")
    done = command_here(*materialize_arguments(project, hours_from(START, 1), SYSTEM), folder=project.folder)
    assert "30 raw logs could not be read" in done.stderr
    assert "gone-02.jsonl" in done.stderr
    assert "gone-03.jsonl" not in done.stderr
    assert done.stderr.rstrip().endswith("and 27 more")


def test_a_fault_of_a_file_that_was_not_listed_ends_the_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """To list the logs again would not leave it out."""
    project.write_log("a.jsonl", [line(execution("a", "planner", START))])
    tries = []

    def fails(*_: Any, **__: Any) -> None:
        tries.append(1)
        assert len(tries) < 10, "it tries for ever"
        raise UnreadableFilesError({"deep/": "cannot list the folder deep: it is gone"})

    monkeypatch.setattr(log_ingestion, "ingest", fails)
    with pytest.raises(HealthAssetsError, match="no raw log that was listed: cannot list the folder deep: it is gone"):
        load_new_logs(project.pipeline)
    assert tries == [1]


def test_a_pipe_and_a_folder_named_like_a_log_are_no_logs(project: Project) -> None:
    os.mkfifo(project.raw / "pipe.jsonl")
    project.write_log("folder.jsonl/a.jsonl", [line(execution("a", "planner", START))])
    unreadable: dict[str, str] = {}
    assert [file.source_file for file in list_files(project.raw, unreadable)] == ["folder.jsonl/a.jsonl"]
    assert unreadable == {}


ENDLESS = {"a pipe": os.mkfifo, "a device": lambda path: path.symlink_to("/dev/zero")}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("other", ENDLESS)
def test_what_is_no_file_any_more_when_it_is_opened_is_told_and_nobody_waits_for_it(
    project: Project, other: str
) -> None:
    """Also where only its first bytes are looked at."""
    path = project.write_log("a.jsonl", [line(execution("a", "planner", START))])
    project.write_log("b.jsonl", [line(execution("b", "planner", START))])
    files = list_files(project.raw)
    path.unlink()
    ENDLESS[other](path)
    given = []
    with pytest.raises(UnreadableFilesError, match=r"cannot read the raw log .*a\.jsonl: ") as told:
        for batch in line_batches(enumerate(files)):
            given += batch["file_id"].to_pylist()
    assert (given, list(told.value.faults)) == ([1], ["a.jsonl"])
    with pytest.raises(HealthAssetsError, match=r"cannot read the raw log .*a\.jsonl: "):
        files[0].beginning(10)


def test_a_file_that_a_link_out_of_the_root_replaces_after_the_listing_is_not_read(project: Project) -> None:
    path = project.write_log("a.jsonl", ["own"])
    project.write_log("target.jsonl", ["linked"])
    (project.raw / "link.jsonl").symlink_to("target.jsonl")
    files = list_files(project.raw)
    secret = project.folder / "secret"
    secret.write_text("out")
    for odd in (path, project.raw / "link.jsonl"):
        odd.unlink()
        odd.symlink_to(secret)
    given = []
    with pytest.raises(UnreadableFilesError) as told:
        for batch in line_batches(enumerate(files)):
            given += batch["line"].to_pylist()
    assert (given, list(told.value.faults)) == (["linked\n", "linked\n"], ["a.jsonl"])


def _look_as_nobody(root: str) -> None:
    os.setuid(65534)
    faults: dict[str, str] = {}
    assert [file.source_file for file in list_files(Path(root), faults)] == ["a.jsonl"]
    assert list(faults) == ["shut/b.jsonl"]
    assert faults["shut/b.jsonl"].endswith("shut/b.jsonl: Permission denied")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_folder_that_may_be_listed_and_not_entered_hides_no_other_logs() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # where nobody else may look, nobody finds a file
        root = Path(folder)
        (root / "shut").mkdir()
        for name in ("a.jsonl", "shut/b.jsonl"):
            (root / name).write_text("bad\n")
        root.chmod(0o755)
        (root / "shut").chmod(0o744)
        process = in_a_process(_look_as_nobody, folder)
        process.join()
    assert process.exitcode == 0


def test_a_folder_that_cannot_be_listed_covers_all_that_lies_below_it() -> None:
    unreadable = {"shut/": "…", "a.jsonl": "…"}
    assert is_among(unreadable, "shut/deep/b.jsonl")
    assert is_among(unreadable, "a.jsonl")
    assert not is_among(unreadable, "shutter/b.jsonl")
    assert not is_among(unreadable, "a.jsonl.1")


# -- what was loaded of it before --------------------------------------------------------------------------------------


def hidden(project: Project, name: str) -> Path:
    """Put a log out of reach without a change of its own, and a dangling link in its place."""
    away = project.folder / f"away-{name}"
    (project.raw / name).rename(away)
    dangling(project, name)
    return away


def back(project: Project, name: str, away: Path) -> None:
    (project.raw / name).unlink()
    away.rename(project.raw / name)


def test_rows_of_a_log_that_can_no_longer_be_read_stay_while_others_come(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("a", "planner", START))])
    project.materialize(HOURS, only=FLEET)
    away = hidden(project, "a.jsonl")
    project.write_log("b.jsonl", [line(execution("b", "planner", START + LATE))])
    read = project.materialize(HOURS, only=FLEET)["raw_logs"]
    assert executions(project) == ["a", "b"]
    assert read["files_unreadable"] == 1
    back(project, "a.jsonl", away)
    project.materialize(HOURS, only=FLEET)
    assert_same_tables(project.tables(), project.clean_rebuild(HOURS, only=FLEET).tables())
    assert project.query("SELECT note FROM raw_file_notes") == []


def test_a_line_that_lost_against_one_that_is_gone_wins_although_its_log_cannot_be_read(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("twice", "planner", START))])
    project.write_log("b.jsonl", [line(execution("twice", "planner", START + LATE))])
    project.materialize(HOURS, only=["ingest"])
    away = hidden(project, "a.jsonl")
    project.write_log("b.jsonl", [line(execution("other", "planner", START + LATE))])
    project.materialize(HOURS, only=["ingest"])
    assert executions(project) == ["other", "twice"]
    back(project, "a.jsonl", away)
    project.materialize(HOURS, only=["ingest"])
    assert executions(project) == ["other", "twice"]
    assert_same_tables(
        project.tables(names=RECORD_TABLES), project.clean_rebuild(HOURS, only=["ingest"]).tables(names=RECORD_TABLES)
    )


def test_a_log_that_was_never_read_is_loaded_when_it_can_be(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("a", "planner", START))])
    project.write_log("b.jsonl", [line(execution("b", "planner", START + LATE))])
    away = hidden(project, "b.jsonl")
    project.materialize(HOURS, only=["ingest"])
    back(project, "b.jsonl", away)
    project.materialize(HOURS, only=["ingest"])
    assert_same_tables(
        project.tables(names=RECORD_TABLES), project.clean_rebuild(HOURS, only=["ingest"]).tables(names=RECORD_TABLES)
    )


# -- what shows only when it is read -----------------------------------------------------------------------------------


class Flaky(MemoryFileSystem):
    """A store that lists objects which it does not give, or gives the start of and no more."""

    protocol = "flaky"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return MemoryFileSystem._strip_protocol(path.removeprefix("flaky://"))

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode == "rb" and "forbidden" in path:
            raise PermissionError("Access Denied")
        opened = super()._open(path, mode, **options)
        if mode == "rb" and "torn" in path:
            opened.read = lambda size=-1: (_ for _ in ()).throw(OSError("the connection was lost"))
        return opened


@pytest.fixture
def flaky(project: Project) -> Iterator[Project]:
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    project.raw = "flaky://logs"  # type: ignore[assignment]
    yield project
    Flaky.store.clear()


def put(name: str, *records: dict[str, Any]) -> None:
    fsspec.filesystem("flaky").pipe(f"/logs/{name}", "".join(line(record) + "\n" for record in records).encode())


def test_objects_that_a_store_does_not_give_are_told_and_all_others_are_loaded(flaky: Project) -> None:
    put("a.jsonl", execution("a", "planner", START))
    put("forbidden.jsonl", execution("no", "planner", START))
    put("torn.jsonl", execution("torn", "planner", START))
    put("z.jsonl", execution("z", "planner", START + HOUR))
    read = flaky.materialize(HOURS, only=["ingest"])["raw_logs"]
    assert executions(flaky) == ["a", "z"]
    assert read["files_unreadable"] == 2
    told = read["could not be read"]
    assert [sentence.partition(": ")[0] for sentence in told] == [
        "cannot read the raw log flaky:///logs/forbidden.jsonl",
        "cannot read the raw log flaky:///logs/torn.jsonl",
    ]


def test_a_file_that_vanishes_between_listing_and_reading_is_told_after_all_others(project: Project) -> None:
    from health_assets.logs.reader import contents

    project.write_log("a.jsonl", [line(execution("a", "planner", START))])
    project.write_log("b.jsonl", [line(execution("b", "planner", START))])
    files = list_files(project.raw)
    (project.raw / "a.jsonl").unlink()
    with pytest.raises(UnreadableFilesError) as told:
        contents(files)
    assert list(told.value.faults) == ["a.jsonl"]
    shutil.rmtree(project.raw)
    with pytest.raises(UnreadableFilesError) as told:
        contents(files)
    assert list(told.value.faults) == ["a.jsonl", "b.jsonl"]


# -- in Dagster --------------------------------------------------------------------------------------------------------


def test_in_dagster_a_check_says_which_log_could_not_be_read_and_the_sensor_does_not_ask_again(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    world = World.at(tmp_path / "world", window_hours=3, lookback_hours=6)
    world.write("a.jsonl", [world_execution(NOON, "a")])
    gone = Path(world.settings.raw, "gone.jsonl")
    gone.symlink_to("nowhere")
    result = world.run(instance, HourRange.of(NOON), assets=["raw_logs", "executions", "system_health"])
    assert result.success
    (found,) = [one for one in result.get_asset_check_evaluations() if one.check_name == EVERY_LOG_WAS_READ]
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert str(gone) in str(found.metadata)
    history = world.query(
        "SELECT hour, success, element_count, unexpected_count, severity FROM expectation_results "
        f"WHERE asset = 'raw_logs' AND expectation = '{EVERY_LOG_WAS_READ}'"
    )
    assert history == [(NOON, False, 2, 1, "warn")]

    world.materialize(HourRange.of(NOON), only=FLEET)
    tick = sensor_tick(world, instance)
    assert not tick.run_requests
    assert tick.skip_message.startswith("the tables agree with all 1 raw logs; 1 cannot be read: cannot read the raw")
    world.write("late.jsonl", [world_execution(NOON, "late")])
    (request,) = sensor_tick(world, instance).run_requests
    world.materialize(tags=request.tags, only=FLEET)
    assert world.query("SELECT count(*) FROM executions") == [(2,)]
    assert not sensor_tick(world, instance).run_requests


# -- how it is told --


def test_folders_that_cannot_be_listed_are_counted_apart_from_logs() -> None:
    def faults(files: int, folders: int) -> list[str]:
        counts = {"files_unreadable": files, "folders_unreadable": folders, "unreadable": ["cannot list it: why"]}
        return Outcome(
            hours=HOURS,
            files_seen=9,
            files_read=9,
            lines_read=9,
            spans_read=0,
            lines_rejected=0,
            failed_checks=[],
            error=None,
            **counts,
        ).faults

    assert faults(1, 1) == ["1 folder could not be listed; all others were loaded: cannot list it: why"]
    (told,) = faults(5, 2)
    assert told.startswith("2 folders could not be listed and 3 raw logs could not be read; all others were loaded: ")


def test_a_run_counts_the_folders_that_cannot_be_listed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """An administrator, as whom tests may run, can list every folder, so the fault is put in."""
    project.write_log("a.jsonl", [line(execution("a", "planner", START))])

    def listed(
        root: Path, unreadable: dict[str, str], file_warnings: dict[str, str], _: FormatSettings
    ) -> list[RawFile]:
        unreadable["shut/"] = "cannot list the raw logs in shut: Permission denied"
        return list_files(root, None, file_warnings)

    monkeypatch.setattr("health_assets.pipeline.log_ingestion.list_files", listed)
    read = project.materialize(hours_from(START, 1), only=["ingest"])["raw_logs"]
    assert (read["files_unreadable"], read["folders_unreadable"]) == (1, 1)


# -- with retention --

PRUNED_STEPS = ["ingest", "health_components", "agent_health"]


def pruned_logs(folder: Path) -> Project:
    """Two logs of ten hours, of which all but the last two were dropped."""
    project = Project(folder / "project", None, window_hours=2, lookback_hours=3)
    for agent in ("a", "b"):
        made = [execution(f"{agent}{number}", agent, START + number * HOUR) for number in range(10)]
        project.write_log(f"{agent}.jsonl", map(line, made))
    project.materialize(hours_from(START, 10), only=PRUNED_STEPS)
    prune(project.warehouse, PRUNED_COMPONENTS, START + 8 * HOUR, project.lookback_hours)
    return project


def test_a_dropped_hour_whose_log_cannot_be_read_is_refused_and_its_scores_stay(tmp_path: Path) -> None:
    project = pruned_logs(tmp_path)
    before = project.tables()
    built = {name: project.built_hours(name) for name in ("executions", "health_components", "agent_health")}
    away = hidden(project, "b.jsonl")
    why = (
        r"^cannot read the raw log .*b\.jsonl: .*, and the hour 2026-06-07T0\d cannot be built without the 1 line of b"
    )
    with pytest.raises(HealthAssetsError, match=why):
        project.materialize(hours_from(START + 6 * HOUR, 2), only=PRUNED_STEPS)
    assert_same_tables(project.tables(), before)
    assert {name: project.built_hours(name) for name in built} == built
    back(project, "b.jsonl", away)
    hours = hours_from(START + 6 * HOUR, 2)
    project.materialize(hours, only=PRUNED_STEPS)
    assert_same_tables(
        project.tables(hours), project.clean_rebuild(hours_from(START, 10), only=PRUNED_STEPS).tables(hours)
    )
