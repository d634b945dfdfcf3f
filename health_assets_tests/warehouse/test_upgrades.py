"""Warehouses of other versions of the tables, on both engines: upgraded without losing a row, or refused in a sentence."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import duckdb
import psycopg
import pytest
from typer.testing import CliRunner

from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError
from health_assets.schema.catalog import BASELINE_VERSION, SCHEMA_DIGEST, SCHEMA_VERSION
from health_assets.warehouse import upgrades
from health_assets.warehouse.refusals import require_supported_version
from health_assets_tests.support.changed_tables import VERSIONS, digest_of_the_tables
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.older_warehouses import bring_up_to_date
from health_assets_tests.support.projects import ENGINES, FLEET, Project, assert_same_tables, hours_from

HOURS = hours_from(START, 2)
KNOW_THE_VERSION = ("refusals", "migrations", "engines.duckdb.store", "engines.postgres.store")
"""Modules that compare a warehouse's version with the program's."""


@pytest.fixture(params=ENGINES)
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    project = Project(tmp_path / "project", {}, engine=request.param)
    project.write_log("a.jsonl", [line(execution(f"e{n}", "a", START)) for n in range(3)])
    project.materialize(HOURS, only=FLEET)
    return project


@pytest.fixture
def next_program(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes of this program the one of the next version, whose upgrade is a statement."""

    def become(statement: str) -> None:
        for name in KNOW_THE_VERSION:
            monkeypatch.setattr(import_module(f"health_assets.warehouse.{name}"), "SCHEMA_VERSION", SCHEMA_VERSION + 1)
        monkeypatch.setattr(upgrades, "STATEMENTS", {SCHEMA_VERSION: ["not SQL"], SCHEMA_VERSION + 1: [statement]})

    return become


def version_in(project: Project) -> int:
    [(version,)] = project.query("SELECT version FROM warehouse_version")
    return version


def test_the_version_rises_whenever_a_table_changes() -> None:
    found = digest_of_the_tables()
    assert found == SCHEMA_DIGEST, (
        f'a table has changed: make schema MESSAGE="what is new" raises the version {SCHEMA_VERSION} and writes what follows'
    )


def test_there_is_a_revision_for_every_version_since_the_baseline() -> None:
    found = sorted(int(path.name[1:5]) for path in VERSIONS.glob("r*.py"))
    assert found == list(range(BASELINE_VERSION, SCHEMA_VERSION + 1))


def test_the_next_version_upgrades_a_warehouse_of_the_baseline_once_and_keeps_its_rows(
    project: Project, next_program: Callable[[str], None]
) -> None:
    before = project.tables()
    next_program("UPDATE raw_files SET size_bytes = size_bytes + 1")
    if project.url:
        with pytest.raises(HealthAssetsError, match=f"has version {SCHEMA_VERSION}, .* with health-assets migrate"):
            project.query("SELECT 1")
    [size_bytes] = [path.stat().st_size for path in project.raw.iterdir()]
    for _ in range(2):
        bring_up_to_date(project.warehouse_url)
        assert version_in(project) == SCHEMA_VERSION + 1
        assert project.query("SELECT size_bytes FROM raw_files") == [(size_bytes + 1,)]
    assert_same_tables(project.tables(), before)


@pytest.mark.parametrize("project", ["duckdb"], indirect=True)
def test_a_file_of_an_older_version_is_read_without_being_changed(
    project: Project, next_program: Callable[[str], None]
) -> None:
    before = project.warehouse_path.read_bytes()
    next_program("DELETE FROM executions")
    told = CliRunner().invoke(app, ["report", "--warehouse", project.warehouse_url])
    assert (told.exit_code, "Fleet at 2026" in told.output) == (0, True), told.output
    assert project.warehouse_path.read_bytes() == before


@pytest.mark.parametrize("version", [1, BASELINE_VERSION - 1])
def test_a_warehouse_that_is_too_old_is_refused_in_a_sentence_and_stays_as_it_is(
    project: Project, version: int
) -> None:
    before = project.tables()
    project.change("UPDATE warehouse_version SET version = ?", [version])
    sentence = (
        f"has version {version} of the tables, and the oldest that can be upgraded is {BASELINE_VERSION}; name a new"
    )
    for use in (
        lambda: project.query("SELECT 1"),
        lambda: project.change("SELECT 1"),
        lambda: bring_up_to_date(project.warehouse_url),
    ):
        with pytest.raises(HealthAssetsError, match=sentence):
            use()
    told = CliRunner().invoke(app, ["migrate", "--warehouse", project.warehouse_url])
    assert (told.exit_code, "the oldest that can be upgraded" in " ".join(told.output.split())) == (1, True), (
        told.output
    )
    if project.url:
        with psycopg.connect(project.url, autocommit=True) as connection:
            connection.execute("UPDATE warehouse_version SET version = %s", [SCHEMA_VERSION])
    else:
        with duckdb.connect(str(project.warehouse_path)) as file:
            file.execute("UPDATE warehouse_version SET version = ?", [SCHEMA_VERSION])
    assert_same_tables(project.tables(), before)


def test_a_warehouse_that_does_not_say_its_version_is_refused_in_a_sentence(project: Project) -> None:
    project.change("DELETE FROM warehouse_version")
    with pytest.raises(HealthAssetsError, match=r"does not say the version of its tables|there is no warehouse in"):
        project.query("SELECT 1")
    with pytest.raises(HealthAssetsError, match="does not say the version of its tables"):
        bring_up_to_date(project.warehouse_url)


def test_the_sentence_for_a_ledger_names_what_is_to_be_named_anew() -> None:
    version = BASELINE_VERSION - 1
    with pytest.raises(
        HealthAssetsError,
        match=rf"the ledger x has version {version} .*; name a new HEALTH_LEDGER and a new HEALTH_LAKE",
    ):
        require_supported_version("x", BASELINE_VERSION - 1, is_ledger=True)
