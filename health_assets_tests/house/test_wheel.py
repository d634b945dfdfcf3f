"""The wheel: what is in it, and that it works in a folder that is not this project's."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy, so that building leaves nothing here."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source, copied = REPOSITORY / name, folder / "source" / name
        copied.parent.mkdir(exist_ok=True)
        shutil.copytree(source, copied) if source.is_dir() else shutil.copy(source, copied)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run([*pip, "--wheel-dir", folder, folder / "source"], check=True, capture_output=True)
    [made] = folder.glob("*.whl")
    return made


def test_the_wheel_has_the_files_of_a_project_folder(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        for name in FILES:
            assert content.read(f"health_assets/cli/instance/{name}") == (REPOSITORY / name).read_bytes()
        assert "health_assets/warehouse/migrations/script.py.mako" in content.namelist()
        assert not [name for name in content.namelist() if name.startswith("health_assets_tests")]


def test_dev_of_an_installed_wheel_has_the_projects_configuration_and_workspace(wheel: Path, tmp_path: Path) -> None:
    installed, folder = tmp_path / "installed", tmp_path / "folder"
    folder.mkdir()
    with zipfile.ZipFile(wheel) as content:
        content.extractall(installed)
    environment = command_environment() | {"PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", STARTS],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    storage, origins, definitions = done.stdout.strip().splitlines()[-3:]
    assert storage == f"BatchingSqliteEventLogStorage False {folder / 'data' / 'dagster'}"
    assert "health_assets" in origins
    assert definitions == str(installed / "health_assets" / "definitions.py")
    assert (folder / "data" / "dagster" / "history" / "runs" / "index.db").exists()
