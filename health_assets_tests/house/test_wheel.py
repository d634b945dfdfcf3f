"""The wheel: what is in it, and that it works, installed in a folder that is not this project's."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from health_assets.core.hours import HOUR, parse_hour
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import REPOSITORY, command_environment

SOURCES = ("health_assets", "pyproject.toml", "README.md", "LICENSE")
FILES = ("dagster.yaml", "workspace.yaml")
STARTS = """
import os
from health_assets.cli.dev import command, with_home
os.environ.update(with_home(os.environ))
import dagster as dg
from dagster._core.workspace.load import location_origins_from_yaml_paths
with dg.DagsterInstance.get() as instance:
    print(type(instance.event_log_storage).__name__, instance.telemetry_enabled, instance.root_directory)
print(*location_origins_from_yaml_paths([command("127.0.0.1", 3000)[-1]]))
import health_assets.definitions
print(health_assets.definitions.__file__)
"""


ALONE = """
import json, sys
from datetime import datetime

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

HEAVY = {"dagster", "duckdb", "great_expectations", "ibis", "pandas", "pyarrow", "sqlmodel", "sqlalchemy", "numpy"}
sys.meta_path.insert(0, Absent())
from health_assets.consumer import advise, fetch_health, parse_document
from health_assets.model_tracker import get_health_tracker

tracker = get_health_tracker()
tracker.record_success("steady", latency_ms=320.0)
tracker.record_failure("shaky", error="timeout")
assert HEAVY & set(sys.modules) == set(), HEAVY & set(sys.modules)
print(tracker.best_model(["shaky", "steady"]))
print(advise(fetch_health("http://127.0.0.1:9", allow_private=True)).kind)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy, so that building leaves nothing here: made from the source distribution, as `build` does it."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source, copied = REPOSITORY / name, folder / "source" / name
        copied.parent.mkdir(exist_ok=True)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, copied, ignore=ignored) if source.is_dir() else shutil.copy(source, copied)
    build = [sys.executable, "-W", "ignore", "-m", "build", "--no-isolation", "--outdir", folder, folder / "source"]
    subprocess.run(build, check=True, capture_output=True)
    [_, made] = sorted(folder.glob("health_assets-*"), key=lambda path: path.suffix)
    assert made.suffix == ".whl"
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the wheel; what it depends on is there already."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-compile", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", "--target", folder, wheel], check=True, capture_output=True)
    return folder


def run(installed: Path, folder: Path, *arguments: str) -> str:
    """The output of a program of the installed wheel, run in an empty folder."""
    environment = command_environment() | {"PYTHONPATH": os.fspath(installed), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_wheel_has_the_files_of_a_project_folder(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        for name in FILES:
            assert content.read(f"health_assets/cli/instance/{name}") == (REPOSITORY / name).read_bytes()
        assert "health_assets/warehouse/migrations/script.py.mako" in content.namelist()
        assert not [name for name in content.namelist() if name.startswith("health_assets_tests")]


def test_dev_of_an_installed_wheel_has_the_projects_configuration_and_workspace(
    installed: Path, tmp_path: Path
) -> None:
    storage, origins, definitions = run(installed, tmp_path, "-c", STARTS).strip().splitlines()[-3:]
    assert storage == f"BatchingSqliteEventLogStorage False {tmp_path / 'data' / 'dagster'}"
    assert "health_assets" in origins
    assert definitions == str(installed / "health_assets" / "definitions.py")
    assert (tmp_path / "data" / "dagster" / "history" / "runs" / "index.db").exists()


def test_an_installed_wheel_materializes_logs_without_the_repository(installed: Path, tmp_path: Path) -> None:
    """One system of one hour; the demo, with all of them, is run by night."""
    (tmp_path / "raw").mkdir()
    ran = execution("e", "planner", START)
    (tmp_path / "raw" / "a.jsonl").write_text(line(ran) + "\n", encoding="utf-8")
    hours = ["--from", f"{START:%Y-%m-%dT%H}", "--to", f"{START + HOUR:%Y-%m-%dT%H}"]
    logs = ["--raw", "raw", "--warehouse", "own.duckdb", "--system", "agent_health_model"]
    command = str(installed / "bin" / "health-assets")
    shown = run(installed, tmp_path, command, "materialize", *logs, *hours)
    assert f"\nFleet at {START:%Y-%m-%d %H}:00 UTC" in shown, shown
    assert (tmp_path / "own.duckdb").exists()


@pytest.mark.nightly
def test_an_installed_wheel_runs_the_demo_and_materializes_its_logs_without_the_repository(
    installed: Path, tmp_path: Path
) -> None:
    command = str(installed / "bin" / "health-assets")
    assert run(installed, tmp_path, "-c", "import health_assets; print(health_assets.__file__)").startswith(
        str(installed)
    )
    shown = run(installed, tmp_path, command, "demo")
    for block in ("Fleet at ", "Models at ", "Tools at ", "Sessions: ", "Error budgets at ", "Usage at "):
        assert f"\n{block}" in shown, shown
    found = re.search(r"Fleet at (\d{4}-\d\d-\d\d) (\d\d):00 UTC", shown)
    assert found is not None
    last = parse_hour(f"{found[1]}T{found[2]}")
    hours = ["--from", f"{last:%Y-%m-%dT%H}", "--to", f"{last + HOUR:%Y-%m-%dT%H}"]
    logs = ["--raw", "data/demo/raw", "--warehouse", "other.duckdb"]
    assert f"Fleet at {found[1]} {found[2]}:00 UTC" in run(installed, tmp_path, command, "materialize", *logs, *hours)
    assert (tmp_path / "other.duckdb").exists()


def test_the_tracker_and_the_consumer_work_where_the_databases_and_dagster_are_not_installed(
    installed: Path, tmp_path: Path
) -> None:
    best, advice = run(installed, tmp_path, "-c", ALONE).splitlines()
    assert (best, advice) == ("steady", "unknown")
