"""Warehouses of every earlier state of the tables, on both engines: brought up to date, none of them losing a row."""

import os
from importlib import import_module
from pathlib import Path

import duckdb
import psycopg
import pytest
from typer.testing import CliRunner

from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import EVER
from health_assets.core.systems import FIRST_FORMULA_VERSION, SYSTEM_NAMES
from health_assets.schema.catalog import SCHEMA_DIGEST, SCHEMA_VERSION
from health_assets.systems.formula_versions import older_results
from health_assets.warehouse.engines.postgres.tables import ALEMBIC_TABLE
from health_assets.warehouse.migrations import migrate
from health_assets_tests.support.changed_tables import digest_of_the_tables
from health_assets_tests.support.projects import Project, assert_same_tables, forked_command, materialize_arguments
from health_assets_tests.support.stored_schemas import HOURS, Stored, logs_alone, stored

FILES = stored("duckdb")
SCHEMAS = stored("postgresql")
STATES = [*FILES, *SCHEMAS]
FIRST_ON_POSTGRES = 2
LOGS_READ_ALIKE_SINCE = 5
"""The last version that made other things of a log than the one before."""
CHANGED_SINCE = {
    name for name in SYSTEM_NAMES
    if import_module(f"health_assets.systems.{name}").FORMULA_VERSION != FIRST_FORMULA_VERSION
}  # fmt: skip
"""The systems whose formulas are others than those that made the stored rows."""
SET_BY_UPGRADES = {("raw_files", "modified_ns"), ("raw_logs", "is_loaded"), ("warehouse_version", "version")}
"""Values that an upgrade changes: the next run reads every log again, and loads parts with superseded lines anew, since an
older program may have taken lines of two agents for one."""


# -- the version -----------------------------------------------------------------------------------------------------------


def test_the_version_rises_whenever_a_table_changes() -> None:
    found = digest_of_the_tables()
    assert found == SCHEMA_DIGEST, (
        f'a table has changed: make schema MESSAGE="what is new" raises the version, {SCHEMA_VERSION} where that has landed, '
        f"and writes what follows; where it has not landed, set SCHEMA_DIGEST in health_assets/schema/catalog.py to {found!r}"
    )


def test_a_schema_of_every_earlier_version_is_stored() -> None:
    assert {one.version for one in FILES} >= set(range(1, SCHEMA_VERSION))
    assert {one.version for one in SCHEMAS} >= set(range(FIRST_ON_POSTGRES, SCHEMA_VERSION))


# -- upgrades --------------------------------------------------------------------------------------------------------------


def opened(project: Project) -> duckdb.DuckDBPyConnection | psycopg.Connection:
    return psycopg.connect(project.url) if project.url else duckdb.connect(str(project.warehouse_path), read_only=True)


def columns_in(project: Project) -> dict[str, dict[str, str]]:
    """The columns, with their types, of every table that is there, whatever is declared."""
    columns: dict[str, dict[str, str]] = {}
    with opened(project) as connection:
        found = connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema IN ('main', 'public') ORDER BY 1, 2"
        ).fetchall()
    for table, column, kind in found:
        columns.setdefault(table, {})[column] = kind
    columns.pop(ALEMBIC_TABLE, None)
    return columns


def indexes_in(project: Project) -> list[tuple]:
    with opened(project) as connection:
        return connection.execute("SELECT tablename, indexname FROM pg_indexes ORDER BY 1, 2").fetchall()


def values_in(project: Project, columns: dict[str, dict[str, str]]) -> dict[str, list[str]]:
    """The rows of tables, of these columns alone, without what an upgrade sets."""
    values = {}
    with opened(project) as connection:
        for table, names in columns.items():
            if kept := [name for name in names if (table, name) not in SET_BY_UPGRADES]:
                rows = connection.execute(f"SELECT {', '.join(kept)} FROM {table}").fetchall()
                values[table] = sorted(map(repr, rows))
    return values


def version_in(project: Project) -> int:
    with opened(project) as connection:
        [(version,)] = connection.execute("SELECT version FROM warehouse_version").fetchall()
    return version


def bring_up_to_date(project: Project) -> None:
    """Do as `health-assets migrate` does."""
    if project.url:
        migrate(project.url, 10)
    else:
        with project.warehouse.write():
            pass


@pytest.fixture(scope="module")
def todays(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Project]:
    """What the program of today makes of the logs, on each engine."""
    made = {}
    for engine in ("duckdb", "postgresql"):
        made[engine] = logs_alone(tmp_path_factory.mktemp(engine), engine)
        bring_up_to_date(made[engine])
        made[engine].materialize(HOURS)
    return made


@pytest.mark.parametrize("one", STATES, ids=lambda one: one.name)
def test_a_warehouse_of_any_earlier_state_is_brought_up_to_date_and_keeps_its_rows(
    tmp_path: Path, one: Stored, todays: dict[str, Project]
) -> None:
    project = one.project(tmp_path)
    columns = columns_in(project)
    before = values_in(project, columns)
    assert before["executions"] and before["agent_health"], "nothing is stored that could be lost"
    if project.url:
        with pytest.raises(HealthAssetsError, match=f"has version {one.version}, .* with health-assets migrate"):
            project.query("SELECT 1")
    bring_up_to_date(project)
    assert version_in(project) == SCHEMA_VERSION
    assert columns_in(project) == columns_in(todays[one.engine])
    assert indexes_in(project) == indexes_in(todays[one.engine])
    assert values_in(project, columns) == before
    with project.warehouse.read() as session:
        older = {results.system for results in older_results(session, EVER, project.settings)}
    assert older <= CHANGED_SINCE, "an upgrade alone makes no result stale"
    said = CliRunner().invoke(app, ["report", "--warehouse", project.warehouse_url])
    assert (said.exit_code, "Fleet at 2026-06-07 13:00 UTC" in said.output) == (0, True), said.output


ENDS = [FILES[0], SCHEMAS[0]]
"""The oldest state of each engine, which the others stand between and today's."""


@pytest.mark.parametrize(
    "one",
    [one if one in ENDS else pytest.param(one, marks=pytest.mark.nightly) for one in STATES],
    ids=lambda one: one.name,
)
def test_a_warehouse_of_an_earlier_state_ends_as_a_rebuild(
    tmp_path: Path, one: Stored, todays: dict[str, Project]
) -> None:
    project = one.project(tmp_path)
    bring_up_to_date(project)
    project.materialize(HOURS)
    assert_same_tables(project.tables(HOURS), todays[one.engine].tables(HOURS))
    said = CliRunner().invoke(app, ["report", "--warehouse", project.warehouse_url])
    assert (said.exit_code, "Fleet at 2026-06-07 13:00 UTC" in said.output) == (0, True), said.output


def test_what_an_earlier_version_made_of_a_log_is_made_anew_although_the_log_is_as_it_was(tmp_path: Path) -> None:
    """A line with other meaning stands for one that this program reads otherwise: neither size nor time has changed."""
    [*_, project] = [one.project(tmp_path / one.name) for one in FILES if one.version < LOGS_READ_ALIKE_SINCE]
    path = project.raw / "native.jsonl"
    before, line = path.stat(), b'"2026-06-07T12:10:42Z", "status": "success"'
    assert line in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(line, line.replace(b"success", b"failure")))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    project.materialize(HOURS, only=["ingest"])
    assert project.query("SELECT status FROM executions WHERE execution_id = 'e-1'") == [("failure",)]


@pytest.mark.parametrize("one", FILES, ids=lambda one: one.name)
def test_a_file_of_any_earlier_state_can_be_reported_without_being_changed(tmp_path: Path, one: Stored) -> None:
    project = one.project(tmp_path)
    before = project.warehouse_path.read_bytes()
    for more in ([], ["--agent", "invoice-reader"]):
        said = CliRunner().invoke(app, ["report", "--warehouse", project.warehouse_url, *more])
        assert (said.exit_code, "invoice-reader" in said.output) == (0, True), said.output
    assert project.warehouse_path.read_bytes() == before


@pytest.mark.parametrize("one", ENDS, ids=lambda one: one.name)
def test_the_oldest_warehouses_take_a_run_and_a_report_of_the_commands(tmp_path: Path, one: Stored) -> None:
    project = one.project(tmp_path)
    arguments = materialize_arguments(project, HOURS, "agent_health_model")
    if project.url:
        with pytest.raises(HealthAssetsError, match="with health-assets migrate"):
            project.query("SELECT 1")
        migrated = CliRunner().invoke(app, ["migrate", "--warehouse", project.url])
        assert (migrated.exit_code, f"version {SCHEMA_VERSION}" in migrated.output) == (0, True), migrated.output
    run = forked_command(*arguments)
    assert run.returncode == 0, run.stderr
    said = CliRunner().invoke(app, ["report", "--warehouse", project.warehouse_url])
    assert "Fleet at 2026-06-07 13:00 UTC" in said.output
