"""`health-assets dev` shows the user's own logs, or else the demo, whose run is in the Dagster that it opens."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import dagster as dg
import pytest

from health_assets.cli.demo import Demo
from health_assets.cli.dev import command, what_to_show, with_home
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, KEY_FORMAT, floor_hour
from health_assets.core.settings import load_settings
from health_assets.defs.build import build_definitions
from health_assets.pipeline.first_hour import first_hour
from health_assets.pipeline.resource import Pipeline
from health_assets_tests.defs.test_write_lock import holding_here
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.dagster_world import ASSETS
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import REPOSITORY, command_environment, forked_command, lasting_folder

END = datetime(2026, 6, 8, tzinfo=UTC)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which commands run; it holds nothing."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@cache
def demo_made_once() -> Path:
    """The folder of a demo."""
    folder = lasting_folder() / "demo"
    Demo(folder).make_samples(END)
    return folder


def make_demo() -> Demo:
    """A demo at its default place."""
    return Demo(shutil.copytree(demo_made_once(), Path("data/demo")))


def shows_demo(environment: Mapping[str, str], is_demo_wanted: bool | None = None) -> bool:
    shown = what_to_show(load_settings(), Demo(Path("data/demo")), environment, is_demo_wanted=is_demo_wanted)
    assert ("shows the demo in data/demo" in shown.sentence) == bool(shown.environment)
    return bool(shown.environment)


def test_the_demo_is_shown_once_it_was_made() -> None:
    demo = Demo(Path("data/demo"))
    assert what_to_show(load_settings(), demo, {}).sentence.startswith("There are no logs yet; set HEALTH_RAW to where")
    make_demo()
    assert shows_demo({})
    assert shows_demo({"HEALTH_WINDOW_HOURS": "12", "DAGSTER_HOME": "/elsewhere"}), "no sign of other logs"
    assert shows_demo({"HEALTH_RAW": "", "HEALTH_TARGETS": ""}), "what is empty is not set"


@pytest.mark.parametrize("name", ["HEALTH_RAW", "HEALTH_TARGETS", "HEALTH_WAREHOUSE"])
def test_a_setting_that_names_a_place_wins(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    make_demo()
    monkeypatch.setenv(name, "/mine")
    assert not shows_demo({name: "/mine"})
    assert shows_demo({name: "/mine"}, is_demo_wanted=True)
    assert not shows_demo({}, is_demo_wanted=False)


@pytest.mark.parametrize("name", ["data/raw/log.jsonl", "data/health.duckdb", ".env"])
def test_what_lies_at_the_default_places_or_is_named_by_dagsters_own_file_wins(folder: Path, name: str) -> None:
    make_demo()
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("HEALTH_RAW=/mine\n")
    assert not shows_demo({})
    if name == ".env":  # Dagster reads it last
        with pytest.raises(HealthAssetsError, match=r"\.env sets HEALTH_RAW"):
            shows_demo({}, is_demo_wanted=True)


def test_a_demo_that_is_asked_for_and_not_there_is_an_error_of_one_sentence() -> None:
    with pytest.raises(HealthAssetsError, match=r"there is no demo in data/demo; make it with `make demo`"):
        shows_demo({}, is_demo_wanted=True)


def test_schedules_of_the_demo_are_off_unless_the_user_says_otherwise() -> None:
    demo = make_demo()
    for given, expected in (({}, "off"), ({"HEALTH_SCHEDULES": ""}, "off"), ({"HEALTH_SCHEDULES": "on"}, "on")):
        assert what_to_show(load_settings(), demo, given).environment["HEALTH_SCHEDULES"] == expected


def test_dagster_is_started_for_the_workspace_of_the_folder_or_else_for_the_package(folder: Path) -> None:
    *_, host, on, port, number, workspace, path = command("127.0.0.1", 3001)
    assert [host, on, port, number, workspace] == ["--host", "127.0.0.1", "--port", "3001", "--workspace"]
    assert Path(path).read_bytes() == (REPOSITORY / "workspace.yaml").read_bytes()
    (folder / "workspace.yaml").touch()
    assert command("127.0.0.1", 3001)[-2:] == ["--workspace", "workspace.yaml"]


ENDED_LIKE_DAGSTER = """
import signal, time
signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))  # Dagster's own way
try:
    print("started", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("ended", flush=True)
"""


def test_a_page_in_the_background_ends_on_sigterm() -> None:
    became = f"from health_assets.cli.dev import replace_process; replace_process({[sys.executable, '-c', ENDED_LIKE_DAGSTER]!r}, {{}})"
    started = subprocess.Popen(
        ["/bin/sh", "-c", f'trap "" INT; exec "{sys.executable}" -c "$0"', became],
        stdout=subprocess.PIPE,
        text=True,
        env=command_environment(),
    )  # fmt: skip
    assert started.stdout is not None and started.stdout.readline() == "started\n"
    started.terminate()
    assert started.communicate(timeout=60) == ("ended\n", None)
    assert started.returncode == 0


def test_a_home_of_dagster_that_is_there_or_named_stays_as_it_is(folder: Path) -> None:
    configuration = folder / "data" / "dagster" / "dagster.yaml"
    made = str(configuration.parent)
    for environment in ({}, {"DAGSTER_HOME": ""}):  # what is empty is not set
        assert with_home(environment)["DAGSTER_HOME"] == made
    configuration.write_text("telemetry: {enabled: false}  # mine\n")
    assert with_home({})["DAGSTER_HOME"] == made
    assert configuration.read_text() == "telemetry: {enabled: false}  # mine\n"
    (folder / ".env").write_text("DAGSTER_HOME=/of/the/file\n")
    assert with_home({})["DAGSTER_HOME"] == "/of/the/file"
    assert with_home({"DAGSTER_HOME": "/mine"})["DAGSTER_HOME"] == "/mine"
    (folder / ".env").write_text("DAGSTER_HOME=\n")
    (folder / "dagster.yaml").touch()
    assert with_home({}) == {}, "the folder's own configuration says where records are"


def test_a_command_beside_the_page_waits_for_its_turn_and_is_a_run_on_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", with_home({})["DAGSTER_HOME"])
    log = folder / "data" / "raw" / "a.jsonl"
    log.parent.mkdir()
    log.write_text(line(execution("e", "a", START)) + "\n")
    arguments = ["materialize", "--from", f"{START:%Y-%m-%dT%H}", "--to", f"{START + HOUR:%Y-%m-%dT%H}"]
    arguments += ["--system", "tool_health"]
    with dg.DagsterInstance.get() as instance:
        with holding_here(instance):
            waited = forked_command(*arguments, environment={"HEALTH_LEASE_TIMEOUT_S": "1"}, folder=folder)
        assert waited.returncode == os.EX_TEMPFAIL, waited.stderr
        assert "held by another run" in waited.stderr
        done = forked_command(*arguments, folder=folder)
        assert done.returncode == 0, done.stderr
        [run] = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.SUCCESS


def test_the_demo_ends_with_the_newest_finished_hour_and_is_whole_in_the_dagster_that_dev_opens(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = floor_hour(datetime.now(UTC))
    done = command_here("demo", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    end = before if f"{before:%Y-%m-%dT%H} (48 h) materialized" in done.stdout else before + HOUR
    assert f"to {end:%Y-%m-%dT%H} (48 h) materialized" in done.stdout
    assert f"Fleet at {end - HOUR:%Y-%m-%d %H}:00 UTC" in done.stdout

    for name, value in what_to_show(
        load_settings(), Demo(Path("data/demo")), command_environment()
    ).environment.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert first_hour(settings, end) == end - 48 * HOUR
    definitions = build_definitions(settings)
    partitions = definitions.resolve_assets_def("agent_health").partitions_def
    assert partitions is not None
    offered = {key for key in partitions.get_partition_keys() if key < f"{end:{KEY_FORMAT}}"}
    with dg.DagsterInstance.get() as instance:
        assert Path(instance.root_directory) == folder / "data" / "demo" / "dagster"
        [run] = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.SUCCESS
        for name in ASSETS:
            assert instance.get_materialized_partitions(dg.AssetKey(name)) == offered, name
        resources = {"pipeline": Pipeline(settings=settings)}
        with dg.build_sensor_context(instance, definitions=definitions, resources=resources) as context:
            tick = definitions.resolve_sensor_def("late_logs").evaluate_tick(context)
    assert not tick.run_requests and tick.skip_message is not None
    assert tick.skip_message.startswith("the tables agree with all"), "and there is no hint"
    assert tick.skip_message.endswith("raw logs")
