"""The declarations of the tables, and that the warehouse has exactly what they declare."""

import importlib
import re
import time
from pathlib import Path
from pkgutil import iter_modules

import duckdb
import pytest
import sqlalchemy as sa
from sqlmodel import SQLModel
from typer.testing import CliRunner

from health_assets import schema
from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange
from health_assets.core.systems import parts
from health_assets.schema.catalog import ALL_TABLES, SCHEMA_VERSION, columns_of, describe
from health_assets.schema.column_types import SQL_NAMES
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB
from health_assets.warehouse.engines.duckdb.tables import TYPES, create_statement
from health_assets.warehouse.engines.postgres.sql import TYPES as POSTGRES_TYPES
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.constraints import drop_constraints
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.older_warehouses import OLDER_VERSION, support_older_version
from health_assets_tests.support.projects import Project

CONTRACT = {  # section 4; the names are fixed, more columns are welcome
    "executions": "hour source_file line_number execution_id agent_id started_at ended_at status session_id task_id condition "
    "trigger_id model error sla_s sla_breached confidence cost_usd api_calls error_count call_latency_s actions violations "
    "platform runtime_s succeeded action_count",
    "trigger_events": "hour trigger_id agent_id fired_at status reason",
    "model_calls": "hour call_id model ended_at status agent_id execution_id latency_ms error",
    "rejected_records": "hour source_file line_number reason raw",
    "health_components": "hour agent_id executions successes failures runtime_s_sum long_running sla_breaches trigger_failures",
    "agent_health": "hour window_start window_end hours_covered agent_id n asr afh ar_s success_score failure_score "
    "reliability_raw confidence_factor reliability_score deviation performance_score stability_score sla_score trigger_score "
    "operational_score health_score state long_running sla_breaches trigger_failures expected_success_rate "
    "expected_failures_per_hour expected_runtime_s",
    "system_health": "hour window_start window_end hours_covered health_score agents healthy degraded unhealthy inactive",
    "agent_health_state": "hour window_start window_end hours_covered agent_id status last_healthy_at uptime_seconds "
    "response_ratio error_ratio latency_p50_ms latency_p99_ms measurement_window_seconds sample_count calibration_trend "
    "days_since_model_change last_capability_update",
    "agent_reliability": "hour window_start window_end hours_covered agent_id c_out c_traj_d c_traj_s c_conf c_res r_con p_rc "
    "p_cal p_auroc p_brier r_pred r_fault r_struct r_prompt r_rob reliability s_comp s_harm r_saf baseline_accuracy tasks runs "
    "outcome_agreement",
    "task_consistency": "hour window_start window_end hours_covered agent_id task_id c_out c_traj_d c_traj_s c_conf c_res "
    "outcome_agreement",
    "model_health": "hour model health_score success_count failure_count p50_latency_ms p95_latency_ms is_degraded last_error",
    "session_scores": "hour session_id agent_id total_traces traces_evaluated agent_reliability raw_risk mean_top_k_risk max_risk "
    "flagged_traces agent_consistency raw_instability consistency_traces_evaluated reliability_passed consistency_passed "
    "reliability_band consistency_band",
    "trace_risks": "hour trace_id session_id confidence_risk loop_risk tool_risk coherence_risk step_risk situational_penalty "
    "weighted_uncertainty",
    "expectation_results": "hour asset expectation success element_count unexpected_count severity",
}
COLUMNS = [(table, *column) for table in ALL_TABLES for column in describe(table)]


@pytest.mark.parametrize("table", sorted(CONTRACT))
def test_every_column_of_the_contract_is_there(table: str) -> None:
    assert set(CONTRACT[table].split()) <= set(columns_of(table))


@pytest.mark.parametrize("table", sorted(ALL_TABLES))
def test_the_warehouse_has_exactly_the_declared_columns(tmp_path: Path, table: str) -> None:
    with Warehouse(str(tmp_path / "w.duckdb")).write() as session:
        found = session.query(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index", [table]
        )
    assert found == [(name, TYPES[kind]) for name, kind, _, _ in describe(table)]


def test_the_warehouse_has_no_other_tables(tmp_path: Path) -> None:
    with Warehouse(str(tmp_path / "w.duckdb")).write() as session:
        assert {row[0] for row in session.query("SELECT table_name FROM duckdb_tables()")} == set(ALL_TABLES)


@pytest.mark.parametrize(
    ("table", "name", "kind", "nullable", "meaning"), COLUMNS, ids=[f"{c[0]}.{c[1]}" for c in COLUMNS]
)
def test_every_column_has_a_meaning(table: str, name: str, kind: str, nullable: bool, meaning: str) -> None:
    assert len(meaning) > 5
    assert meaning.endswith((".", ")."))
    assert kind in TYPES.keys() & POSTGRES_TYPES.keys() & SQL_NAMES.keys()
    assert isinstance(nullable, bool)
    assert name in columns_of(table)


@pytest.mark.parametrize("table", sorted(ALL_TABLES))
def test_every_table_says_what_it_is_and_what_a_row_is_known_by(table: str) -> None:
    model = ALL_TABLES[table]
    assert model.__tablename__ == table
    assert model.__doc__
    assert model.__doc__.strip().endswith(".")
    assert [column.name for column in model.__table__.primary_key]


@pytest.mark.parametrize("table", sorted(ALL_TABLES))
def test_every_time_has_a_zone_and_every_quantity_a_unit(table: str) -> None:
    for column in ALL_TABLES[table].__table__.columns:
        if isinstance(column.type, sa.DateTime):
            assert column.type.timezone, column.name
            is_named_so = column.name.endswith(("_at", "_start", "_end", "_until"))
            assert is_named_so or column.name in ("hour", "as_of", "last_capability_update", "since"), (
                column.name
            )  # the contract's names
        assert not re.search(r"(runtime|latency|duration)(_sum)?$", column.name), f"{column.name} does not say its unit"


def test_every_declared_table_is_listed() -> None:
    shared = [importlib.import_module(f"{schema.__name__}.{found.name}") for found in iter_modules(schema.__path__)]
    modules = [*shared, *parts("tables").values()]
    declared = {
        model.__tablename__
        for module in modules
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, SQLModel) and hasattr(model, "__table__")
    }
    assert declared == set(ALL_TABLES)


def test_the_statements_that_make_tables_can_be_run_twice_and_have_no_index() -> None:
    connection = duckdb.connect()
    for table in ALL_TABLES:
        statement = create_statement(table)
        assert "PRIMARY KEY" not in statement.upper()
        connection.execute(statement)
        connection.execute(statement)
    assert connection.execute("SELECT count(*) FROM duckdb_indexes()").fetchone() == (0,)


def test_a_new_warehouse_has_the_version_of_this_program(tmp_path: Path) -> None:
    with Warehouse(str(tmp_path / "w.duckdb")).write() as session:
        assert session.query("SELECT version FROM warehouse_version") == [(SCHEMA_VERSION,)]


@pytest.fixture
def _older_version(monkeypatch: pytest.MonkeyPatch) -> None:
    support_older_version(monkeypatch)


def an_older_warehouse(path: Path) -> None:
    """A warehouse where a table and some columns are missing, and there are rows."""
    with Warehouse(str(path)).write() as session:
        for statement in drop_constraints():
            session.query(statement)
        session.query("INSERT INTO model_calls (hour, call_id, model) VALUES (?, 'c', 'm')", [START])
        session.query("INSERT INTO executions (hour, execution_id) VALUES (?, 'e')", [START])
    with duckdb.connect(str(path)) as connection:
        connection.execute("ALTER TABLE executions DROP COLUMN confidence")
        connection.execute("ALTER TABLE executions DROP COLUMN violations")
        connection.execute("ALTER TABLE model_calls DROP COLUMN error")
        connection.execute("DROP TABLE agent_probes")
        connection.execute("UPDATE warehouse_version SET version = ?", [OLDER_VERSION])


def types_in(path: Path) -> dict[str, dict[str, str]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        found = connection.execute("SELECT table_name, column_name, data_type FROM duckdb_columns()").fetchall()
    return {table: {name: kind for of, name, kind in found if of == table} for table in ALL_TABLES}


@pytest.mark.usefixtures("_older_version")
def test_an_older_warehouse_gets_what_is_missing_when_it_is_written_to(tmp_path: Path) -> None:
    old, new = tmp_path / "old.duckdb", tmp_path / "new.duckdb"
    an_older_warehouse(old)
    with Warehouse(str(new)).write():
        pass
    with pytest.raises(ZeroDivisionError), Warehouse(str(old)).write():
        raise ZeroDivisionError
    assert "confidence" not in types_in(old)["executions"], "a step that failed left half of it"
    with Warehouse(str(old)).write() as session:
        assert session.query("SELECT execution_id, confidence, violations FROM executions") == [("e", None, None)]
        assert session.query("SELECT version FROM warehouse_version") == [(SCHEMA_VERSION,)]
    assert types_in(old) == types_in(new)


@pytest.mark.usefixtures("_older_version")
@pytest.mark.parametrize("shares_an_engine", [False, True])
def test_an_older_warehouse_can_be_read_without_being_changed(tmp_path: Path, shares_an_engine: bool) -> None:
    path = tmp_path / "old.duckdb"
    an_older_warehouse(path)
    before = path.read_bytes()
    with SharedDuckDB() as shared_duckdb:
        warehouse = Warehouse(str(path), shared_duckdb=shared_duckdb if shares_an_engine else None)
        for _ in range(2):
            with warehouse.read() as session:
                rows = session.arrow(session.hours_of("executions", HourRange.of(START))).to_pylist()
                assert [(row["execution_id"], row["confidence"]) for row in rows] == [("e", None)]
                assert session.query("SELECT call_id, error FROM model_calls") == [("c", None)]
                assert session.query("SELECT url, status FROM agent_probes") == []
    assert path.read_bytes() == before


@pytest.mark.usefixtures("_older_version")
def test_the_command_brings_an_older_file_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "old.duckdb"
    an_older_warehouse(path)
    done = CliRunner().invoke(app, ["migrate", "--warehouse", str(path)])
    assert (done.exit_code, f"version {SCHEMA_VERSION}" in done.output) == (0, True)
    assert "confidence" in types_in(path)["executions"]


# -- the store -----------------------------------------------------------------------------------------------------------


def test_a_block_that_fails_leaves_no_trace(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("e", "a", START))])
    project.materialize(HourRange.of(START), only=["ingest", "health_components", "agent_health"])
    before = project.tables()
    with pytest.raises(ZeroDivisionError), project.warehouse.write() as session:
        for table in before:
            session.delete_hours(table, HourRange.of(START))
        assert session.query("SELECT count(*) FROM executions") == [(0,)]
        raise ZeroDivisionError
    assert project.tables() == before


def test_a_reader_cannot_write(project: Project) -> None:
    project.ingest(HourRange.of(START))
    with pytest.raises(duckdb.Error), project.warehouse.read() as session:
        session.query("DELETE FROM executions")


def test_two_readers_may_look_at_the_same_time(project: Project) -> None:
    project.ingest(HourRange.of(START))
    with project.warehouse.read() as one, project.warehouse.read() as other:
        assert one.query("SELECT 1") == other.query("SELECT 1")


def test_a_warehouse_that_is_not_there_yet_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(HealthAssetsError, match="no warehouse"), Warehouse(str(tmp_path / "w.duckdb")).read():
        pass
    assert not (tmp_path / "w.duckdb").exists()


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("data/health.duckdb", "data/health.duckdb"),
        ("/abs/health.duckdb", "/abs/health.duckdb"),
        ("duckdb:///health.duckdb", "health.duckdb"),
        ("duckdb:///data/health.duckdb", "data/health.duckdb"),
        ("duckdb:////abs/health.duckdb", "/abs/health.duckdb"),
        ("C:/x/health.duckdb", "C:/x/health.duckdb"),
    ],
)
def test_a_warehouse_is_named_by_a_path_or_a_url_like_sqlalchemys(url: str, path: str) -> None:
    assert Warehouse(url).path == Path(path)


@pytest.mark.parametrize("url", ["mysql://host/db", "sqlite:///x.db", "http://x", "DuckDB://x/y.db"])
def test_another_engine_is_refused(url: str) -> None:
    with pytest.raises(HealthAssetsError, match="not supported"):
        Warehouse(url)


@pytest.mark.parametrize("url", [":memory:", "duckdb:///:memory:", "", "duckdb://"])
def test_a_warehouse_that_would_be_forgotten_is_refused(url: str) -> None:
    """Every step opens the warehouse anew; one in memory would be empty each time."""
    with pytest.raises(HealthAssetsError), Warehouse(url).write() as session:
        session.query("SELECT 1")


@pytest.mark.parametrize(
    "name", ["with space.duckdb", "ünï.duckdb", "quote's.duckdb", "no suffix", "a?b=c.duckdb", "100%.db"]
)
def test_a_warehouse_may_have_any_file_name(tmp_path: Path, name: str) -> None:
    warehouse = Warehouse(str(tmp_path / "new folder" / name))
    with warehouse.write() as session:
        session.query("SELECT 1")
    assert warehouse.exists
    with warehouse.read() as session:
        assert session.query("SELECT version FROM warehouse_version") == [(SCHEMA_VERSION,)]


def test_times_come_back_in_utc_whatever_the_zone_of_the_machine(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        project.write_log("a.jsonl", [line(execution("e", "a", START)), "bad"], modified=START)
        project.materialize(HourRange.of(START), only=["ingest", "health_components", "agent_health"])
        assert [row["hour"] for row in project.rows("executions")] == [START]
        assert [row["hour"].utcoffset().total_seconds() for row in project.rows("agent_health")] == [0]
    finally:
        monkeypatch.undo()
        time.tzset()
