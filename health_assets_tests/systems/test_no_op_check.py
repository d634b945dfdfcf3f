"""A command with nothing new makes no run and says the same; whatever is new, or not certain, it makes one."""

import os
import re
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.program import PROGRAM, digest_of_program
from health_assets.core.settings import Settings
from health_assets.core.targets import load_targets
from health_assets.pipeline import fingerprints
from health_assets.pipeline.derived import Inputs
from health_assets.pipeline.fingerprints import EXCLUDED_SETTINGS, upstream
from health_assets.pipeline.retention import prune
from health_assets.quality.batches import Source
from health_assets.quality.evaluation import CheckResult, Request, evaluate
from health_assets.schema.catalog import ALL_TABLES, SUPERSEDED
from health_assets.systems.declared_assets import DERIVED, SYSTEMS
from health_assets.systems.no_op_check import made_at, reason_to_run
from health_assets.systems.pruning import PRUNED_COMPONENTS
from health_assets.systems.suites import SUITES
from health_assets.warehouse.engines.duckdb.store import DuckDBSession
from health_assets.warehouse.fingerprints import FEW_READ_LINES_ARE_REJECTED
from health_assets.warehouse.session import Session
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.logs_made import START, execution, line, trigger
from health_assets_tests.support.projects import (
    DUCKDB_BY_DAY,
    ENGINES,
    Project,
    Row,
    assert_same_tables,
    command,
    command_environment,
    hours_from,
    in_a_process,
    lasting_folder,
    materialize_arguments,
    rolled_back,
    run_as_a_command,
    start_forked_command,
)
from health_assets_tests.support.traces_made import agent, chat, otlp_line

WINDOW_HOURS, LOOKBACK_HOURS = 3, 6
HOURS = hours_from(START + 10 * HOUR, 2)
BEFORE = HOURS.start - 2 * HOUR
"""An hour that these look back on."""
ENVIRONMENT = {"HEALTH_WINDOW_HOURS": str(WINDOW_HOURS), "HEALTH_LOOKBACK_HOURS": str(LOOKBACK_HOURS)}
NAMED = ["--system", "agent_health_model", "--system", "agent_health_state"]
"""Systems that stand for all by day: one has components, one looks at its own earlier hours."""
NOBODYS = ""
"""Dagster's records of the commands go with them, since the warehouse is not the environment's."""
ASSETS = [*fingerprints.RECORDS, *(asset.name for system in NAMED[1::2] for asset in SYSTEMS[system])]
"""The record tables, and what these systems make."""
RAN, DID_NOT = "materialized in", "no run was made (--full-refresh makes one)"
TARGETS = {"agents": {"slow": {"expected_runtime_s": 30, "sla_s": 100}}}
OTHER_TARGETS = {
    "agents": {"slow": {"expected_runtime_s": 40, "sla_s": 10}}, "names": [{"match": "qui.*", "agent": "slow"}],
}  # fmt: skip


def logs_and_targets(folder: Path, engine: str = "duckdb") -> Project:
    """A project with nothing materialized: lines of every kind, a bad one, spans, a copy of a log."""
    project = Project(folder, TARGETS, WINDOW_HOURS, LOOKBACK_HOURS, engine=engine)
    records = [
        execution(f"e{n}", "slow" if n % 3 else "quick", START + n * HOUR / 12, 20 + n % 40, model="m", session_id="s")
        for n in range(150)
    ]
    calls = [
        {
            "type": "model_call", "call_id": f"c{n}", "model": "m", "ended_at": (START + n * HOUR / 6).isoformat(),
            "status": "success", "execution_id": f"e{2 * n}", "input_tokens": 7, "agent_id": "slow", "latency_ms": 5,
        }
        for n in range(75)
    ]  # fmt: skip
    lines = [*map(line, records)]
    lines.insert(130, "not JSON")  # in an hour asked for, and few enough of their file for every check to pass
    project.write_log("a.jsonl", lines)
    project.write_log("b.jsonl", map(line, calls))
    project.write_log("c.jsonl", [line(trigger(f"t{n}", "quick", START + n * HOUR / 2)) for n in range(24)])
    project.write_log("copy.jsonl", [line(trigger(f"t{n}", "quick", START + n * HOUR / 2)) for n in range(24)])
    at = HOURS.start + HOUR / 2
    spans = [agent(1, 1, at, name="shopper"), chat(1, 2, at - HOUR / 60, parent=1)]
    project.write_log("traces.jsonl", [otlp_line(*spans)])
    return project


def materialize(project: Project, *flags: str, hours: HourRange = HOURS, exit_code: int = 0) -> str:
    arguments = [*materialize_arguments(project, hours), *NAMED, *flags]
    done = command_here(*arguments, environment=ENVIRONMENT, folder=project.folder)
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout


@cache
def materialized(engine: str) -> Project:
    """A project whose hours a command has made; tests change only copies."""
    project = logs_and_targets(lasting_folder() / "project", engine)
    assert RAN in materialize(project)
    return project


@pytest.fixture(params=ENGINES)
def done(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    """A copy of it, of which nothing is new."""
    project = copied(materialized(request.param), tmp_path / "project")
    assert why(project) is None
    return project


@pytest.fixture(params=DUCKDB_BY_DAY)
def done_by_day(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    """The same, on PostgreSQL by night: by day one change is noticed on both."""
    return copied(materialized(request.param), tmp_path / "project")


@pytest.fixture
def made() -> Project:
    """The project itself on DuckDB, for tests that only look."""
    return materialized("duckdb")


@pytest.fixture
def done_here(tmp_path: Path) -> Project:
    """A copy of it on DuckDB alone."""
    return copied(materialized("duckdb"), tmp_path / "project")


@cache
def all_materialized() -> Project:
    """The same with every system, for tests that only look."""
    project = copied(materialized("duckdb"), lasting_folder() / "project")
    project.materialize(HOURS)
    return project


def copied(made: Project, folder: Path) -> Project:
    """A copy with the same raw root, as the ledger knows it, but files of its own."""
    project = made.copied(folder)
    project.change("UPDATE raw_roots SET root = ?", [str(project.raw.resolve())])
    return project


def why(project: Project, settings: Settings | None = None, **others: object) -> str | None:
    """Why a run is to be made of what `materialize` asks for."""
    with project.warehouse.read() as session:
        return why_in(session, settings or project.settings, **others)


def why_in(session: Session, settings: Settings, **others: object) -> str | None:
    """The same, by what a session sees."""
    asked = {"hours": HOURS, "systems": NAMED[1::2], "records_in": NOBODYS, "now": datetime.now(UTC)} | others
    return reason_to_run(session, settings, load_targets(settings.targets), **asked)


def state(project: Project) -> dict[str, list[Row]]:
    """All rows of all tables, without times at which a run made them or a copy a file, and the check of what it read."""
    tables = project.tables(names=list(ALL_TABLES))
    results = tables["expectation_results"]
    tables["expectation_results"] = [row for row in results if row["expectation"] != FEW_READ_LINES_ARE_REJECTED]
    for row in tables["partition_states"]:
        del row["materialized_at"]
    for row in tables["raw_files"]:
        del row["changed_ns"]
    return tables


def of_the_fleet(said: str) -> str:
    """What a command says behind the account of what it did."""
    return said[said.index("  these hours hold") :]


# -- nothing new -------------------------------------------------------------------------------------------------------


def test_nothing_new_makes_no_run_says_the_same_and_a_run_would_change_no_table(done_by_day: Project) -> None:
    before = state(done_by_day)
    said = materialize(done_by_day)
    assert DID_NOT in said and RAN not in said
    assert_same_tables(state(done_by_day), before)
    refreshed = materialize(done_by_day, "--full-refresh")
    assert RAN in refreshed and DID_NOT not in refreshed
    assert of_the_fleet(said) == of_the_fleet(refreshed)
    assert "not valid JSON" in said
    assert_same_tables(state(done_by_day), before)
    assert DID_NOT in materialize(done_by_day)


@pytest.mark.nightly
@pytest.mark.parametrize("engine", DUCKDB_BY_DAY)
def test_all_systems_are_up_to_date_after_one_run_of_all(tmp_path: Path, engine: str) -> None:
    project = logs_and_targets(tmp_path / "project", engine)
    arguments = materialize_arguments(project, HOURS)
    assert RAN in command_here(*arguments, environment=ENVIRONMENT, folder=project.folder).stdout
    before = state(project)
    again = command_here(*arguments, environment=ENVIRONMENT, folder=project.folder)
    assert (again.returncode, DID_NOT in again.stdout) == (0, True), again.stdout + again.stderr
    refreshed = command_here(*arguments, "--full-refresh", environment=ENVIRONMENT, folder=project.folder)
    assert RAN in refreshed.stdout and of_the_fleet(refreshed.stdout) == of_the_fleet(again.stdout)
    assert_same_tables(state(project), before)


def warnings_in(said: str) -> list[str]:
    return [one for one in said.splitlines() if one.startswith("  check ") or " lost" in one or " was gone " in one]


def test_a_warning_needs_no_second_run_and_is_said_again(tmp_path: Path) -> None:
    project = logs_and_targets(tmp_path / "project")
    project.write_log("bad.jsonl", ["not JSON"] * 9 + [line(execution("last", "quick", HOURS.start + HOUR / 2))])
    first = materialize(project)
    assert RAN in first
    checks = warnings_in(first)
    assert {one.split()[1] for one in checks} >= {
        "raw_logs.few_read_lines_are_rejected", "rejected_records.few_lines_are_rejected",
    }  # fmt: skip
    again = materialize(project)
    assert DID_NOT in again and RAN not in again
    assert sorted(warnings_in(again)) == sorted(checks)


@pytest.mark.nightly
def test_lines_that_are_lost_need_no_second_run_and_are_said_again(tmp_path: Path) -> None:
    project = logs_and_targets(tmp_path / "project")
    project.write_log("gone.jsonl", [line(execution(f"gone {n}", "quick", HOURS.end - HOUR / 2)) for n in range(3)])
    materialize(project, hours=HourRange.of(HOURS.start))
    (project.raw / "gone.jsonl").unlink()
    first = materialize(project)
    assert RAN in first
    assert "gone.jsonl was gone before 3 lines of" in first
    again = materialize(project)
    assert DID_NOT in again
    assert sorted(warnings_in(again)) == sorted(warnings_in(first))


def test_a_command_with_nothing_new_imports_neither_dagster_nor_great_expectations(done_here: Project) -> None:
    environment = ENVIRONMENT | {"PYTHONPROFILEIMPORTTIME": "1"}
    arguments = [*materialize_arguments(done_here, HOURS), *NAMED]
    told = command(*arguments, environment=environment, folder=done_here.folder)
    assert told.returncode == 0 and DID_NOT in told.stdout, told.stdout + told.stderr[-2000:]
    imported = {name.rpartition("|")[2].strip() for name in told.stderr.splitlines()}
    assert "duckdb" in imported
    assert not imported & {"dagster", "great_expectations", "httpx", "pandas", "rapidfuzz", "scipy"}


def test_it_says_since_when_nothing_has_changed(made: Project) -> None:
    with made.warehouse.read() as session:
        since = made_at(session, HOURS)
    [(last,)] = made.query(
        "SELECT max(materialized_at) FROM partition_states WHERE hour >= ? AND hour < ?", [HOURS.start, HOURS.end]
    )
    assert since == last
    assert f"up to date: nothing has changed since {since:%Y-%m-%d %H:%M} UTC; " in materialize(made)


# -- logs --------------------------------------------------------------------------------------------------------------

IS_NEW = "new, changed, moved, gone or back"
Change = Callable[[Project], None]


def a_line_is_appended(project: Project) -> None:
    with (project.raw / "a.jsonl").open("a") as file:
        file.write(line(execution("late", "slow", HOURS.start)) + "\n")


def a_line_of_another_hour_is_appended(project: Project) -> None:
    with (project.raw / "a.jsonl").open("a") as file:
        file.write(line(execution("later", "slow", HOURS.end + 100 * HOUR)) + "\n")


def a_log_is_touched(project: Project) -> None:
    os.utime(project.raw / "a.jsonl")


def a_log_is_written_anew_with_as_many_bytes(project: Project) -> None:
    path = project.raw / "b.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"m"', b'"n"'))


def a_log_goes(project: Project) -> None:
    (project.raw / "b.jsonl").unlink()


def a_copy_goes(project: Project) -> None:
    (project.raw / "copy.jsonl").unlink()


def the_original_of_a_copy_goes(project: Project) -> None:
    (project.raw / "c.jsonl").unlink()


def a_log_comes(project: Project) -> None:
    project.write_log("late.jsonl", [line(execution("late", "slow", HOURS.start))])


def an_empty_log_comes(project: Project) -> None:
    project.write_log("empty.jsonl", [])


def another_copy_comes(project: Project) -> None:
    shutil.copy2(project.raw / "b.jsonl", project.raw / "b-again.jsonl")


def a_log_gets_another_name(project: Project) -> None:
    (project.raw / "b.jsonl").rename(project.raw / "b.jsonl.1")


def a_log_goes_into_a_folder_whose_name_is_no_text(project: Project) -> None:
    folder = os.fsencode(project.raw) + b"/\xff"
    Path(os.fsdecode(folder)).mkdir()
    (project.raw / "b.jsonl").rename(os.fsdecode(folder + b"/b.jsonl"))


OF_LOGS = [
    a_line_is_appended, a_line_of_another_hour_is_appended, a_log_is_touched, a_log_is_written_anew_with_as_many_bytes,
    a_log_goes, a_copy_goes, the_original_of_a_copy_goes, a_log_comes, an_empty_log_comes, another_copy_comes,
    a_log_gets_another_name,
]  # fmt: skip


@pytest.mark.parametrize("happens", OF_LOGS, ids=lambda happens: happens.__name__)
def test_a_log_that_is_not_as_it_was_makes_a_run(done_by_day: Project, happens: Change) -> None:
    happens(done_by_day)
    assert IS_NEW in str(why(done_by_day))


def test_a_log_that_is_not_as_it_was_makes_a_run_on_either_engine(done: Project) -> None:
    assert DID_NOT in materialize(done)
    a_line_is_appended(done)
    assert IS_NEW in str(why(done))


@pytest.mark.nightly
def test_a_log_that_cannot_be_read_makes_a_run_each_time(done_here: Project) -> None:
    (done_here.raw / "no.jsonl").symlink_to(done_here.raw / "nowhere")
    for _ in range(2):
        assert why(done_here) is not None
        assert RAN in materialize(done_here, exit_code=1)
    (done_here.raw / "no.jsonl").unlink()
    assert "a raw log cannot be read, or could not" in str(why(done_here))
    assert RAN in materialize(done_here)
    assert DID_NOT in materialize(done_here)


def test_a_log_below_a_name_that_is_no_text_is_never_overlooked(done_here: Project) -> None:
    a_log_goes_into_a_folder_whose_name_is_no_text(done_here)
    assert why(done_here) is not None


@pytest.mark.nightly
def test_a_log_that_was_away_while_a_run_read_makes_a_run_once_it_is_back(done_here: Project) -> None:
    path, away = done_here.raw / "d.jsonl", done_here.folder / "away"
    done_here.write_log("d.jsonl", [line(execution("of d", "slow", HOURS.start))])
    assert RAN in materialize(done_here)
    path.rename(away)
    assert RAN in materialize(done_here)
    assert DID_NOT in materialize(done_here), "it is gone, which is known, and all its lines are in the tables"
    away.rename(path)
    assert IS_NEW in str(why(done_here))
    assert RAN in materialize(done_here)
    assert DID_NOT in materialize(done_here)


def test_an_event_of_the_future_makes_a_run_once_its_time_has_come(tmp_path: Path) -> None:
    project, now = logs_and_targets(tmp_path / "project"), datetime.now(UTC)
    lines = (project.raw / "a.jsonl").read_text().splitlines()
    project.write_log("a.jsonl", [*lines, line(execution("early", "slow", now + timedelta(days=1)))])
    assert RAN in materialize(project)
    assert why(project, now=now + timedelta(hours=23)) is None
    assert "whose time has come" in str(why(project, now=now + timedelta(days=1)))


def test_another_raw_root_makes_a_run_even_with_the_same_logs(made: Project, tmp_path: Path) -> None:
    shutil.copytree(made.raw, tmp_path / "moved")
    settings = made.settings.model_copy(update={"raw": tmp_path / "moved"})
    assert "raw root" in str(why(made, settings))


# -- targets, settings, program ----------------------------------------------------------------------------------------

OTHER_INPUTS = "may have other inputs"


def test_other_targets_make_a_run_and_the_ones_of_before_another_one(done_by_day: Project) -> None:
    first = state(done_by_day)
    done_by_day.write_targets(OTHER_TARGETS)
    assert OTHER_INPUTS in str(why(done_by_day))
    assert RAN in materialize(done_by_day)
    assert why(done_by_day) is None
    second = state(done_by_day)
    assert RAN in materialize(done_by_day, "--full-refresh")
    assert_same_tables(state(done_by_day), second)
    done_by_day.write_targets(TARGETS)
    assert OTHER_INPUTS in str(why(done_by_day))
    assert RAN in materialize(done_by_day)
    assert_same_tables(done_by_day.tables(), {name: first[name] for name in done_by_day.tables()})


OTHER_SETTINGS = {
    "window_hours": 2, "lookback_hours": 7, "trusted_judgements": ("a*",), "clock_skew_s": 1.0, "max_rejected_lines": 9,
    "max_unpacked_gib": 1, "max_packing_ratio": 9, "max_lines": 99, "model_window_calls": 9, "model_degraded_threshold": 0.1,
    "weight_coherence": 0.5, "evaluation_window_hours": 4, "keep_days": 300, "short_window_hours": (2,),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_SETTINGS)
def test_another_setting_makes_a_run(made: Project, name: str) -> None:
    settings = made.settings.model_copy(update={name: OTHER_SETTINGS[name]})
    assert OTHER_INPUTS in str(why(made, settings))


def test_settings_that_no_row_follows_from_are_all_there_and_make_no_run(made: Project) -> None:
    assert Settings.model_fields.keys() >= EXCLUDED_SETTINGS
    assert why(made, made.settings.model_copy(update={"serve_port": 1, "memory_limit": "1GB"})) is None


def test_another_state_of_the_program_makes_a_run(made: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "PROGRAM", "another")
    assert OTHER_INPUTS in str(why(made))


def test_any_module_that_changes_makes_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert digest_of_program() == PROGRAM
    folder = tmp_path / "program"
    shutil.copytree(Path(fingerprints.__file__).parents[1], folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("health_assets.__file__", str(folder / "__init__.py"))
    assert digest_of_program() == PROGRAM
    with (folder / "systems" / "suites.py").open("a") as file:
        file.write("# changed")
    assert digest_of_program() != PROGRAM


def test_other_hours_other_systems_and_another_home_of_dagster_make_a_run(made: Project) -> None:
    for hours in (HourRange.of(HOURS.start), HourRange(BEFORE, HOURS.end), HOURS.extended_forward(1)):
        assert why(made, hours=hours) is not None
    assert why(made, systems=["agent_health_model"]) is None
    assert "lacks" in str(why(made, systems=[*SYSTEMS]))
    assert "no such system" in str(why(made, systems=["nobody's"]))
    assert "checks of" in str(why(made, records_in="/elsewhere"))


def test_hours_that_are_not_over_or_were_made_before_they_were_make_a_run(done_here: Project) -> None:
    assert "not over" in str(why(done_here, now=HOURS.end - timedelta(seconds=1)))
    done_here.change("UPDATE partition_states SET materialized_at = hour WHERE asset = 'system_health'")
    assert "before its hour was over" in str(why(done_here))


# -- rows that somebody changes by hand --------------------------------------------------------------------------------

AT = f"hour = TIMESTAMPTZ '{HOURS.start:%Y-%m-%d %H}:00:00+00'"
LOOKED_BACK_ON = f"hour = TIMESTAMPTZ '{BEFORE:%Y-%m-%d %H}:00:00+00'"
LONG_BEFORE = f"hour = TIMESTAMPTZ '{HOURS.start - 5 * HOUR:%Y-%m-%d %H}:00:00+00'"
BY_HAND = [
    *(f"DELETE FROM {table} WHERE {AT}" for table in (
        "executions", "model_calls", "trigger_events", "spans", "raw_logs", "health_components", "agent_health",
        "system_health", "state_components", "agent_health_state", "expectation_results", "partition_states",
    )),
    *(f"DELETE FROM {table} WHERE {LOOKED_BACK_ON}" for table in (
        "executions", "model_calls", "raw_logs", "health_components", "state_components", "partition_states",
    )),
    "DELETE FROM executions WHERE execution_id = 'e121'",
    f"DELETE FROM expectation_results WHERE asset = 'agent_health' AND {AT}",
    f"DELETE FROM expectation_results WHERE expectation = 'every_log_was_read' AND {AT}",
    "DELETE FROM raw_files WHERE source_file = 'a.jsonl'",
    "DELETE FROM raw_files WHERE source_file = 'copy.jsonl'",
    "UPDATE expectation_results SET element_count = 5, unexpected_count = 5, success = false "
    "WHERE expectation = 'few_read_lines_are_rejected'",
    "DELETE FROM raw_roots",
    f"UPDATE agent_health SET health_score = 1 WHERE {AT} AND agent_id = 'slow'",
    f"UPDATE agent_health_state SET last_healthy_at = NULL WHERE {AT}",
    f"UPDATE executions SET succeeded = false WHERE {AT}",
    f"UPDATE health_components SET failures = failures + 1 WHERE {LOOKED_BACK_ON}",
    f"UPDATE expectation_results SET success = false WHERE asset = 'executions' AND {AT}",
    f"UPDATE expectation_results SET element_count = element_count + 1 WHERE asset = 'executions' AND {AT}",
    f"UPDATE raw_logs SET is_loaded = false WHERE record_type = 'execution' AND {LOOKED_BACK_ON}",
    f"INSERT INTO superseded_executions SELECT * FROM executions WHERE {LOOKED_BACK_ON} LIMIT 1",
    f"UPDATE raw_logs SET lost = 1, lines = lines + 1 WHERE record_type = 'execution' AND {LOOKED_BACK_ON}",
    f"UPDATE partition_states SET changed_at = now() WHERE asset = 'executions' AND {LOOKED_BACK_ON}",
    f"UPDATE partition_states SET formula_version = '0.9' WHERE asset = 'agent_health' AND {AT}",
    f"UPDATE partition_states SET formula_version = '0.9' WHERE asset = 'health_components' AND {LOOKED_BACK_ON}",
    f"UPDATE partition_states SET inputs_fingerprint = NULL WHERE asset = 'executions' AND {AT}",
    f"UPDATE partition_states SET checks_fingerprint = NULL WHERE asset = 'agent_health' AND {AT}",
    f"UPDATE partition_states SET rows_digest = NULL WHERE asset = 'agent_health' AND {AT}",
    f"INSERT INTO executions SELECT * REPLACE ('e0' AS execution_id) FROM executions WHERE {LOOKED_BACK_ON} LIMIT 1",
    f"INSERT INTO executions SELECT * REPLACE ('no.jsonl' AS source_file) FROM executions WHERE {LONG_BEFORE} LIMIT 1",
    "ALTER TABLE agent_health ALTER n TYPE DOUBLE",
]  # fmt: skip


@pytest.mark.parametrize("sql", BY_HAND)
def test_a_row_that_somebody_changes_makes_a_run(made: Project, sql: str) -> None:
    assert why(made) is None
    with rolled_back(made, sql) as session:
        assert why_in(session, made.settings) is not None


def test_a_score_that_somebody_changed_is_made_anew(done_here: Project) -> None:
    before = done_here.tables()
    done_here.change("UPDATE agent_health SET health_score = 1")
    assert RAN in materialize(done_here)
    at = "hour >= ? AND hour < ?"
    assert not done_here.query(f"SELECT 1 FROM agent_health WHERE health_score = 1 AND {at}", [HOURS.start, HOURS.end])
    assert_same_tables(done_here.tables(), before)


# -- other runs --------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_run_of_an_hour_that_is_looked_back_on_makes_a_run(done_by_day: Project) -> None:
    done_by_day.write_log("late.jsonl", [line(execution("late", "slow", BEFORE, 500))])
    done_by_day.materialize(HourRange.of(BEFORE), only=ASSETS)
    assert OTHER_INPUTS in str(why(done_by_day))
    assert RAN in materialize(done_by_day)
    assert why(done_by_day) is None
    made = ["executions", "agent_health", "system_health"]
    clean = done_by_day.clean_rebuild(HourRange(BEFORE, HOURS.end), only=["ingest", "health_components", *made])
    assert_same_tables(done_by_day.tables(HOURS, made), clean.tables(HOURS, made))


def test_a_run_of_an_hour_that_changes_nothing_here_makes_none(done_by_day: Project) -> None:
    done_by_day.materialize(hours_from(HOURS.end + 8 * HOUR, 1), only=ASSETS)
    assert why(done_by_day) is None


def test_an_asset_that_was_made_alone_with_other_targets_makes_a_run(done_here: Project) -> None:
    done_here.write_targets(OTHER_TARGETS)
    done_here.materialize(HOURS, only=["agent_health"])
    done_here.write_targets(TARGETS)
    assert OTHER_INPUTS in str(why(done_here))


def test_tables_that_no_check_has_judged_since_make_a_run(done_here: Project) -> None:
    done_here.materialize(HOURS, only=["agent_health"])
    assert "checks of agent_health" in str(why(done_here))


def test_an_ingestion_that_leaves_new_targets_alone_makes_a_run(done_here: Project) -> None:
    done_here.write_targets(OTHER_TARGETS)
    done_here.materialize(HOURS, only=["ingest"], only_stale=True)
    assert OTHER_INPUTS in str(why(done_here))


def test_rows_that_retention_dropped_make_a_run(done_here: Project) -> None:
    prune(done_here.warehouse, PRUNED_COMPONENTS, HOURS.start, LOOKBACK_HOURS)
    assert why(done_here) is not None


def test_an_older_warehouse_says_nothing_of_its_rows_so_a_run_is_made(done_here: Project) -> None:
    done_here.change(
        "UPDATE partition_states SET inputs_fingerprint = NULL, checks_fingerprint = NULL, rows_digest = NULL"
    )
    assert RAN in materialize(done_here)
    assert DID_NOT in materialize(done_here)


@pytest.mark.nightly
def test_a_check_that_fails_makes_a_run_each_time(done_here: Project) -> None:
    done_here.change("UPDATE executions SET confidence = 7 WHERE execution_id = 'e121'")
    for _ in range(2):
        materialize(done_here, exit_code=1)
        assert "fails" in str(why(done_here))


def killed_before_checks(
    asset: str, arguments: list[str], environment: dict[str, str], folder: str, outputs: list[str]
) -> None:
    """Be a command that is killed when it is about to check an asset."""
    from health_assets.pipeline import checking

    judged = checking.evaluate_all

    def killed(requests: Sequence[Request]) -> list[list[CheckResult]]:
        if any(request.suite.asset == asset for request in requests):
            os.kill(os.getpid(), signal.SIGKILL)
        return judged(requests)

    checking.evaluate_all = killed
    run_as_a_command(arguments, environment, folder, outputs)


@pytest.mark.parametrize(
    "asset",
    [
        "health_components",
        *(pytest.param(one, marks=pytest.mark.nightly) for one in ("raw_logs", "agent_health_state")),
    ],
)
def test_a_run_that_is_killed_between_rows_and_their_checks_makes_a_run(done_here: Project, asset: str) -> None:
    a_line_is_appended(done_here)
    process = in_a_process(
        killed_before_checks, asset, [*materialize_arguments(done_here, HOURS), *NAMED],
        command_environment() | ENVIRONMENT, str(done_here.folder), [os.devnull, os.devnull],
    )  # fmt: skip
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert why(done_here) is not None
    assert RAN in materialize(done_here)
    assert DID_NOT in materialize(done_here)


@pytest.mark.parametrize(
    "before",
    ["agent_health", *(pytest.param(one, marks=pytest.mark.nightly) for one in ("checks of records", "system_health"))],
)
def test_another_writer_between_two_transactions_of_a_run_makes_a_run(
    done_here: Project, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    from health_assets.pipeline import record_step, system_step

    module = record_step if before == "checks of records" else system_step
    name = "_checks" if before == "checks of records" else "_in_one_transaction"
    does, happened = getattr(module, name), []

    def with_another_writer(pipeline: object, graph: object, what: object, *others: object) -> object:
        names = [one.name for one in what] if isinstance(what, list) else [before]
        if before in names and not happened:
            happened.append(before)
            done_here.write_log("late.jsonl", [line(execution("late", "slow", BEFORE, 500))])
            done_here.materialize(HourRange.of(BEFORE), only=ASSETS)
        return does(pipeline, graph, what, *others)

    with monkeypatch.context() as patched:
        patched.setattr(module, name, with_another_writer)
        assert RAN in materialize(done_here, "--full-refresh")
    assert happened
    assert OTHER_INPUTS in str(why(done_here)) or "checks of" in str(why(done_here))
    assert RAN in materialize(done_here)
    assert DID_NOT in materialize(done_here)


@pytest.mark.parametrize("engine", DUCKDB_BY_DAY)
def test_of_two_commands_at_the_same_time_none_blesses_what_the_other_made(tmp_path: Path, engine: str) -> None:
    project = copied(materialized(engine), tmp_path / "project")
    a_line_is_appended(project)
    (tmp_path / "other").mkdir()
    other = replace(project, folder=tmp_path / "other", url=project.warehouse_url)
    other.engine, other.raw = project.engine, project.raw
    other.write_targets(OTHER_TARGETS)
    runs = [
        start_forked_command([*materialize_arguments(one, HOURS), *NAMED], ENVIRONMENT, one.folder)
        for one in (project, other)
    ]
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0, 0]
    for one in (project, other):
        before = state(one)
        if why(one) is None:
            assert RAN in materialize(one, "--full-refresh")
            assert_same_tables(state(one), before)
        else:
            assert RAN in materialize(one)


# -- what fingerprints cover ---------------------------------------------------------------------------------------------

OF_THE_LEDGER = {"raw_logs", "raw_files", "raw_file_notes", "partition_states", *SUPERSEDED.values()}
_NAMES = re.compile(rf"\b(?:FROM|JOIN)\s+\"?({'|'.join(sorted(ALL_TABLES, key=len, reverse=True))})\b", re.IGNORECASE)


@pytest.fixture
def read_tables(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of all tables that SQL of this process names from now on."""
    found: set[str] = set()
    query, compiled = DuckDBSession.query, DuckDBSession.sql

    def spied_query(session: DuckDBSession, sql: str, parameters: object = ()) -> list[tuple]:
        found.update(_NAMES.findall(sql))
        return query(session, sql, parameters)  # type: ignore[arg-type]

    def spied_sql(session: DuckDBSession, rows: object) -> str:
        sql = compiled(session, rows)  # type: ignore[arg-type]
        found.update(_NAMES.findall(sql))
        return sql

    monkeypatch.setattr(DuckDBSession, "query", spied_query)
    monkeypatch.setattr(DuckDBSession, "sql", spied_sql)
    return found


@pytest.mark.parametrize("name", DERIVED)
def test_rows_are_made_from_the_tables_that_their_fingerprint_covers(
    made: Project, read_tables: set[str], name: str
) -> None:
    derived, settings = DERIVED[name], made.settings
    with made.warehouse.read() as session:
        inputs = Inputs(session=session, hours=HOURS, targets=load_targets(settings.targets), settings=settings)
        session.sql(derived.rows(inputs))
    itself = {name} if derived.is_self_dependent else set()
    reads_none = name == "evaluated_signals"  # its targets have no entries for evaluators
    assert bool(read_tables & {*SUITES}) is not reads_none
    assert read_tables <= upstream(name, DERIVED) | itself | OF_THE_LEDGER


@pytest.mark.parametrize("name", [name for name in SUITES if name in {*DERIVED, *fingerprints.RECORDS}])
def test_checks_look_at_the_tables_that_their_fingerprint_covers(read_tables: set[str], name: str) -> None:
    project = all_materialized()
    settings = project.settings
    read_tables.clear()
    with project.warehouse.write() as session:
        source = Source(
            asset=name, session=session, hours=HOURS, targets=load_targets(settings.targets), settings=settings
        )
        evaluate(SUITES[name], source)
    assert name in read_tables and read_tables <= upstream(name, DERIVED) | {name} | OF_THE_LEDGER


def test_every_table_that_a_run_makes_has_a_fingerprint_of_its_inputs_and_of_its_checks(made: Project) -> None:
    marked = made.query(
        "SELECT DISTINCT asset FROM partition_states WHERE inputs_fingerprint IS NOT NULL AND checks_fingerprint IS NOT NULL"
    )
    assert {asset for (asset,) in marked} == {*ASSETS}
