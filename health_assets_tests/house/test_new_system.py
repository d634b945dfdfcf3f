"""The command for a new scoring system: its files are to the liking of the linter, and what they declare works as it is."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import REPOSITORY, Project
from health_assets_tests.support.walked import copied, run_in

sys.path.append(str(REPOSITORY))
from new_system.__main__ import main

REVISE = """
from health_assets.schema.catalog import SCHEMA_VERSION
from health_assets_tests.support.changed_tables import declare, revise

declare(SCHEMA_VERSION + 1)
revise("failing runs")
"""
MATERIALIZE = """
import json, sys
from pathlib import Path
from typer.testing import CliRunner
from health_assets.cli.commands import app
from health_assets_tests.support.projects import Project

project = Project(Path(sys.argv[1]))
told = CliRunner().invoke(app, catch_exceptions=False, args=[
    "materialize", "--system", "failing_runs", "--raw", str(project.raw), "--warehouse", project.warehouse_url,
    "--from", "2026-06-07T00", "--to", "2026-06-07T02",
])
checks = "SELECT asset, bool_and(success) FROM expectation_results WHERE asset LIKE 'failing_runs%' GROUP BY asset ORDER BY asset"
rows = "SELECT agent_id, executions, failures, failure_share FROM failing_runs ORDER BY hour, agent_id"
print(json.dumps([told.exit_code, told.output, project.query(checks), project.query(rows)]))
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the command looks at."""
    for name in ("health_assets/core/systems.py", "health_assets/systems/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_system_is_materialized_checked_and_reported_as_it_is(tmp_path: Path) -> None:
    folder = copied(tmp_path / "copy")
    shutil.copytree(REPOSITORY / "new_system", folder / "new_system")
    said = run_in(folder, "-m", "new_system", "failing_runs")
    assert 'make schema MESSAGE="failing runs"' in said
    ruff = [sys.executable, "-m", "ruff"]
    for command in ([*ruff, "check", "--no-cache"], [*ruff, "format", "--check", "--no-cache"]):
        done = subprocess.run([*command, "health_assets"], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    run_in(folder, "-W", "ignore", "-c", REVISE)
    project = Project(tmp_path / "project")
    project.write_log(
        "a.jsonl",
        [line(execution(f"e{n}", "ab"[n % 2], START, status="failure" if n < 3 else "success")) for n in range(8)],
    )
    told = run_in(folder, "-W", "ignore", "-c", MATERIALIZE, str(project.folder))
    exit_code, output, checks, rows = json.loads(told.splitlines()[-1])
    assert exit_code == 0, output
    assert "Failing runs at 2026-06-07 01:00 UTC" in output
    assert checks == [["failing_runs", True], ["failing_runs_components", True]]
    assert rows == 2 * [["a", 4, 2, 0.5], ["b", 4, 1, 0.25]]


@pytest.mark.parametrize("name", ["Failing", "failing-runs", "1st", "class", "a__b", "", "../a"])
def test_what_is_no_name_is_refused_and_nothing_is_written(checkout: Path, name: str) -> None:
    before = sorted(checkout.rglob("*"))
    with pytest.raises(SystemExit, match="is no name of a system; use small letters"):
        main([name])
    assert sorted(checkout.rglob("*")) == before


def test_a_name_that_is_taken_is_refused_also_the_second_time(checkout: Path) -> None:
    for name in ("agent_usage", "survey"):
        with pytest.raises(SystemExit, match=f"there is a system {name} already"):
            main([name])
    main(["failing_runs"])
    assert '"failing_runs", "survey",\n)' in (checkout / "health_assets/core/systems.py").read_text()
    with pytest.raises(SystemExit, match="there is a system failing_runs already"):
        main(["failing_runs"])


def test_outside_of_a_checkout_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="run this in a checkout"):
        main(["failing_runs"])
    assert not [*tmp_path.iterdir()]
