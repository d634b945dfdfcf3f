"""The page on adding a metric: its example is put into the program, and what it declares is there and right."""

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from runpy import run_path
from typing import Any

import pytest

from health_assets.core.hours import HOUR
from health_assets.schema.catalog import SCHEMA_VERSION
from health_assets_tests.support import postgres_server
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import REPOSITORY, Project, hours_from
from health_assets_tests.support.walked import blocks_of, copied, run_in, walk

PAGE = (REPOSITORY / "docs" / "add-a-metric.md").read_text(encoding="utf-8")
EXAMPLE = REPOSITORY / "examples" / "slow_executions"
REFERENCE = run_path(str(REPOSITORY / "examples" / "slow_executions_reference.py"))["reference"]
WINDOW_HOURS = 3
HOURS = hours_from(START, 6)
TABLES = ["runtime_components", "slow_executions"]
WALK = """
import json, shutil, sys
from datetime import datetime, timedelta
from pathlib import Path
from typer.testing import CliRunner
import health_assets
from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange
from health_assets.schema.catalog import SCHEMA_VERSION
from health_assets.warehouse.migrations import migrate
from health_assets_tests.support.projects import Project, assert_same_tables, assert_tables_equal_to_9_digits

folder, url, first = Path(sys.argv[1]), sys.argv[2], datetime.fromisoformat(sys.argv[3])
count, window_hours, tables = int(sys.argv[4]), int(sys.argv[5]), sys.argv[6:]
hours = HourRange(first, first + count * timedelta(hours=1))
project = Project(folder, {"agents": {"gone": {"retired": True}}}, window_hours, 2 * window_hours)
told = CliRunner().invoke(app, catch_exceptions=False, args=[
    "materialize", "--system", "slow_executions", "--raw", str(project.raw), "--warehouse", project.warehouse_url,
    "--targets", str(project.targets_path), "--from", f"{hours.start:%Y-%m-%dT%H}", "--to", f"{hours.end:%Y-%m-%dT%H}",
])
assert told.exit_code == 0, (told.output, told.exception)
of_range = project.tables(hours, tables)
for hour in hours:
    project.materialize(HourRange.of(hour), only=["slow_executions"])
assert_same_tables(project.tables(hours, tables), of_range)
on_postgres = Project(folder / "shared", project.targets, window_hours, 2 * window_hours, engine="postgres", url=url)
shutil.copytree(project.raw, on_postgres.raw, dirs_exist_ok=True)
try:
    on_postgres.query("SELECT 1")
except HealthAssetsError as error:
    refusal = str(error)
migrate(url, 10)
on_postgres.materialize(hours, only=["ingest", *tables])
assert_tables_equal_to_9_digits(on_postgres.tables(hours, tables), of_range)

print(json.dumps({
    "refusal": refusal, "program": health_assets.__file__, "exit_code": told.exit_code, "told": told.output, "version": SCHEMA_VERSION,
    "rows": of_range["slow_executions"],
    "checks": project.query("SELECT DISTINCT asset, expectation, success FROM expectation_results WHERE asset IN (SELECT unnest(?))", [tables]),
    "kept": project.query("SELECT count(*) FROM executions")[0][0],
}, default=str))
"""

GENERATE = """
import shutil, sys
from health_assets.schema import documentation
from health_assets.schema.catalog import SCHEMA_VERSION
from health_assets_tests.support.changed_tables import declare, revise

declare(SCHEMA_VERSION + 1)
print(revise("slow executions").read_text())
shutil.copytree(sys.argv[1], "docs")
documentation.main()
"""


def random_executions(random: Random, count: int) -> list[Record]:
    """Of three agents, one of them retired: equal and very different runtimes, in all hours, also to the microsecond."""
    records = []
    for number in range(count):
        ended_at = START + timedelta(seconds=random.randrange(len(HOURS) * 3600))
        took = random.choice([10, 10, 20, random.random() * 30, 10 ** random.uniform(-3, 3)])
        started_at = ended_at - timedelta(microseconds=round(took * 1e6))
        record = execution(f"e{number}", random.choice(["a", "ünï", "gone"]), ended_at)
        records.append(record | {"started_at": started_at.isoformat(), "ended_at": ended_at.isoformat()})
    return records


def test_the_page_names_every_file_of_the_example_and_shows_its_code_as_it_is() -> None:
    code = "".join(file.read_text(encoding="utf-8") for file in sorted(EXAMPLE.iterdir()))
    assert all(f"](../examples/slow_executions/{file.name})" in PAGE for file in EXAMPLE.glob("*.py"))
    shown = [block for _, language, block in blocks_of(PAGE) if language == "python"]
    assert shown and all(block in code for block in shown)


def test_the_folder_and_the_line_of_the_page_make_an_asset_that_is_materialized_checked_documented_and_reported(
    tmp_path: Path,
) -> None:
    records = random_executions(Random(1), 300)
    project = Project(tmp_path / "project", {"agents": {"gone": {"retired": True}}}, WINDOW_HOURS, 2 * WINDOW_HOURS)
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours_from(START, 1), only=["ingest"])  # by the program of before, which knows no such table
    with pytest.raises(Exception, match="slow_executions"):
        project.query("SELECT 1 FROM slow_executions")

    folder = copied(tmp_path / "copy")
    shutil.copytree(EXAMPLE, folder / "health_assets" / "systems" / EXAMPLE.name)
    assert walk(PAGE, folder) == ["health_assets/core/systems.py"]
    database = postgres_server.fresh_warehouse()
    server = {"HEALTH_TEST_POSTGRES": postgres_server.server_url()}
    revision = run_in(folder, "-W", "ignore", "-c", GENERATE, str(REPOSITORY / "docs"), **server)
    assert re.findall(r'op\.(\w+)\(\s*"(\w+)"', revision) == [
        (change, f"{table}{ending}")
        for table in TABLES
        for change, ending in (("create_table", ""), ("create_index", "_by_hour"))
    ]
    arguments = map(str, [project.folder, database, START.isoformat(), len(HOURS), WINDOW_HOURS, *TABLES])
    windows = {"HEALTH_WINDOW_HOURS": str(WINDOW_HOURS), "HEALTH_LOOKBACK_HOURS": str(2 * WINDOW_HOURS)}
    found = json.loads(run_in(folder, "-W", "ignore", "-c", WALK, *arguments, **windows).splitlines()[-1])

    assert found["program"] == str(folder / "health_assets" / "__init__.py")
    assert (found["exit_code"], "Slow executions at 2026" in found["told"]) == (0, True), found["told"]
    assert found["kept"] == len(records)
    assert_checked(found["checks"])
    assert (found["version"], "migrate" in found["refusal"]) == (SCHEMA_VERSION + 1, True)
    page = (folder / "docs" / "tables.md").read_text(encoding="utf-8")
    assert "## `slow_executions`" in page
    assert "Executions that took more than twice the median." in page
    assert_equal_to_the_reference(found["rows"], records)


def assert_checked(results: list[list[Any]]) -> None:
    checks = {(asset, check): passed for asset, check, passed in results}
    assert len(checks) == len(results)
    assert all(checks.values()), checks
    assert {asset for asset, _ in checks} == set(TABLES)
    declared = (EXAMPLE / "expectations.py").read_text(encoding="utf-8")
    shown = set(re.findall(r'Check\(\s*name="(\w+)"', declared))
    assert {check for _, check in checks} >= shown, shown


def assert_equal_to_the_reference(rows: list[dict[str, Any]], records: list[Record]) -> None:
    executions = [
        record | {name: datetime.fromisoformat(record[name]).astimezone(UTC) for name in ("started_at", "ended_at")}
        for record in records
        if record["agent_id"] != "gone"
    ]
    expected = {
        (hour, agent_id): values
        for hour in HOURS
        for agent_id, values in REFERENCE(executions, hour, WINDOW_HOURS).items()
    }
    assert any(slow for _, slow, _ in expected.values())
    by_key = {
        (datetime.fromisoformat(row["hour"]), row["agent_id"]): (
            row["executions"],
            row["slow"],
            row["median_runtime_s"],
        )
        for row in rows
    }
    assert by_key == expected
    for row in rows:
        assert row["slow_share"] == row["slow"] / row["executions"]
        assert datetime.fromisoformat(row["window_end"]) == datetime.fromisoformat(row["hour"]) + HOUR
