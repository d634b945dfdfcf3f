"""The wheel: what is in it, and that it works, installed in a folder that is not this project's."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from health_assets import __version__
from health_assets.core.hours import HOUR, parse_hour
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import REPOSITORY, command_environment

sys.path.insert(0, str(REPOSITORY))

from supply_chain import different_files

SOURCES = ("health_assets", "constraints.txt", "pyproject.toml", "README.md", "LICENSE")
NOT_SHIPPED = ("health_assets_tests", "bench", "new_system", "docs", "supply_chain.py")
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


def built(folder: Path) -> tuple[Path, Path]:
    """Source distribution and wheel of a copy, so that building leaves nothing here, with files that ship nowhere."""
    for name in SOURCES:
        source, copied = REPOSITORY / name, folder / "source" / name
        copied.parent.mkdir(exist_ok=True)
        ignored = shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, copied, ignore=ignored, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(source, copied)
    for name in NOT_SHIPPED:
        (folder / "source" / name).mkdir()
        (folder / "source" / name / "something.py").touch()
    build = [sys.executable, "-W", "ignore", "-m", "build", "--no-isolation", "--outdir", folder, folder / "source"]
    subprocess.run(build, check=True, capture_output=True)
    [source_distribution, wheel] = sorted(folder.glob("health_assets-*"), key=lambda path: path.suffix)
    assert (source_distribution.suffix, wheel.suffix) == (".gz", ".whl")
    return source_distribution, wheel


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Source distribution and wheel."""
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(distributions: tuple[Path, Path]) -> Path:
    """The wheel that was made from the source distribution."""
    return distributions[1]


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


def test_only_the_package_ships_and_no_file_names_a_folder_of_this_machine(distributions: tuple[Path, Path]) -> None:
    source_distribution, wheel = distributions
    with zipfile.ZipFile(wheel) as content:
        texts = {name: content.read(name) for name in content.namelist()}
    assert {name.partition("/")[0] for name in texts} == {"health_assets", f"health_assets-{__version__}.dist-info"}
    with tarfile.open(source_distribution) as packed:
        for member in packed.getmembers():
            file = packed.extractfile(member)
            assert file is not None
            texts[member.name.partition("/")[2]] = file.read()
    shipped = {name for name in texts if not name.startswith(("health_assets/", "health_assets-"))}
    assert shipped == {"constraints.txt", "pyproject.toml", "README.md", "LICENSE", "PKG-INFO"}
    folders = [os.fsencode(folder) for folder in (REPOSITORY, wheel.parent, Path.home())]
    assert [name for name, text in texts.items() if any(folder in text for folder in folders)] == []


def test_the_same_files_give_the_same_bytes_at_another_time_with_other_permissions(
    distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    umask = os.umask(0o077)
    try:
        again = built(tmp_path)
    finally:
        os.umask(umask)
    assert different_files(distributions, again) == []
    again[1].write_bytes(b"changed")
    assert different_files(distributions, again) == [again[1].name]


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
