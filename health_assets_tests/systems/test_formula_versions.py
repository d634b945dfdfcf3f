"""A formula that changes: its system's hours are stale and no others, and what brings them up to date mixes nothing."""

import os
import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random

import pytest
from ibis import ir
from typer.testing import CliRunner

from health_assets.cli.commands import app
from health_assets.consumer.fetching import Answer
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.systems import FIRST_FORMULA_VERSION, SYSTEM_NAMES
from health_assets.defs import survey
from health_assets.defs.sensors import late_logs_sensor
from health_assets.pipeline import system_step
from health_assets.pipeline.derived import Inputs
from health_assets.pipeline.retention import prune
from health_assets.systems import formula_versions
from health_assets.systems.declared_assets import DERIVED, SYSTEMS
from health_assets.systems.error_budget import FORMULA_VERSION
from health_assets.systems.formula_versions import OlderResults, older_results
from health_assets.systems.pruning import PRUNED_COMPONENTS
from health_assets.systems.stale_partitions import stale_hours, stale_statuses
from health_assets.systems.survey.probing import Probe
from health_assets.systems.survey.surveyed_agents import RegisteredAgent
from health_assets.systems.survey.surveying import keep_probes, summarise
from health_assets.warehouse.partition_states import PartitionStates
from health_assets_tests.pipeline.test_ingestion_properties import late_logs_tick
from health_assets_tests.support.logs_made import START, random_lines
from health_assets_tests.support.projects import (
    DUCKDB_BY_DAY,
    RESULT_TABLES,
    Project,
    Row,
    assert_same_tables,
    hours_from,
    in_a_process,
    lasting_folder,
    tick,
)

HOURS = hours_from(START, 26)
WINDOW_HOURS, LOOKBACK_HOURS = 4, 6
REACH_HOURS = 8
"""Twice the window is more than the look-back."""
AT_ONCE = 16
STEPS = [
    "ingest", "health_components", "agent_health", "agent_health_short", "system_health", "error_budget", "usage_components", "agent_usage", "usage_breakdown", "trace_risks", "session_scores",
]  # fmt: skip
"""The systems whose versions are raised, one that is made from another's components, and what the sensor looks at."""
MIXED = "2.0, on older components"

Formula = Callable[[Inputs], ir.Table]


# -- a formula that changes ------------------------------------------------------------------------------------------------


def _doubled(asset: str, *columns: str) -> Formula:
    made = DERIVED[asset].rows

    def rows(inputs: Inputs) -> ir.Table:
        table = made(inputs)
        return table.mutate(**{column: (table[column] * 2).cast(table[column].type()) for column in columns})

    return rows


def of_usage() -> dict[str, Formula]:
    """Components that count twice as many tokens, and results that double the cost."""
    changed = {
        "input_tokens": ("usage_components",),
        "cost_usd": ("agent_usage", "usage_breakdown"),
    }
    return {asset: _doubled(asset, column) for column, assets in changed.items() for asset in assets}


def of_agent_health() -> dict[str, Formula]:
    """Components whose long runs count twice, of which other systems' results are made, too."""
    return {"health_components": _doubled("health_components", "executions", "failures")}


def of_sessions() -> dict[str, Formula]:
    """A component that is a result, too, and looks back itself."""
    return {"trace_risks": _doubled("trace_risks", "step_risk")}


CHANGES = {"agent_usage": of_usage, "agent_health_model": of_agent_health, "session_scores": of_sessions}


def raise_version(monkeypatch: pytest.MonkeyPatch, system: str, formulas: Mapping[str, Formula]) -> None:
    """Declare version 2.0 of a system, with these formulas."""
    assets = tuple(
        replace(asset, formula_version="2.0", rows=formulas.get(asset.name, asset.rows)) for asset in SYSTEMS[system]
    )
    monkeypatch.setitem(SYSTEMS, system, assets)
    for asset in assets:
        monkeypatch.setitem(DERIVED, asset.name, asset)


@cache
def made_once(engine: str) -> Project:
    """Random logs of more than a day, materialized with the formulas of version 1.0; to be copied."""
    targets = {"agents": {"listed": {}}}
    project = Project(lasting_folder() / "project", targets, WINDOW_HOURS, LOOKBACK_HOURS, engine=engine)
    project.write_log("all.jsonl", random_lines(Random(7), 100, len(HOURS)), modified=START)
    project.materialize(HOURS, only=STEPS)
    return project


def made(folder: Path, engine: str = "duckdb") -> Project:
    """A copy of that, which a test may change."""
    return made_once(engine).copied(folder / "project")


@cache
def rebuilt(engine: str, system: str) -> dict[str, list[Row]]:
    """The tables that the formulas of `CHANGES` make of those logs in one go; ask first while these are declared."""
    assert {asset.formula_version for asset in SYSTEMS[system]} == {"2.0"}
    project = made(lasting_folder(), engine)
    project.materialize(HOURS, only=STEPS[1:])
    return project.tables()


def noted_versions(project: Project) -> dict[str, dict[datetime, str]]:
    """By asset that is computed, the version that is noted of each hour."""
    found: dict[str, dict[datetime, str]] = {}
    for asset, hour, version in project.query("SELECT asset, hour, formula_version FROM partition_states"):
        if asset in DERIVED:
            found.setdefault(asset, {})[hour] = version
    return found


def stale_by_version(project: Project) -> dict[str, set[datetime]]:
    with project.warehouse.read() as session:
        versions = {name: asset.formula_version for name, asset in DERIVED.items()}
        return {name: set(hours) for name, hours in PartitionStates(session).of_other_versions(versions, HOURS).items()}


def older(project: Project) -> list[OlderResults]:
    with project.warehouse.read() as session:
        return older_results(session, HOURS, project.settings)


def by_hour(rows: list[Row]) -> dict[datetime, list[Row]]:
    hours: dict[datetime, list[Row]] = {hour: [] for hour in HOURS}
    for row in rows:
        hours[row["hour"]].append(row)
    return hours


def assert_each_hour_is_wholly_of_its_version(
    project: Project, system: str, of_version: Mapping[str, Mapping[str, list[Row]]]
) -> None:
    """The rows of every hour of the system are those that a rebuild with the formula of the noted version has."""
    noted = noted_versions(project)
    for asset in SYSTEMS[system]:
        expected = {version: by_hour(tables[asset.name]) for version, tables in of_version.items()}
        for hour, rows in by_hour(project.rows(asset.name)).items():
            version = noted[asset.name][hour]
            assert_same_tables({asset.name: rows}, {asset.name: expected[version][hour]})
            assert {row.get("formula_version", version) for row in rows} <= {version}


def materialized_at(project: Project) -> dict[tuple[str, datetime], datetime]:
    found = project.query("SELECT asset, hour, materialized_at FROM partition_states")
    return {(asset, hour): moment for asset, hour, moment in found}


def skip_message(project: Project) -> str:
    """What the sensor says, which asks for nothing."""
    told = tick(late_logs_sensor("job", project.settings), project.pipeline)
    assert told.skip_message is not None, told.run_requests
    return told.skip_message


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formula_versions, "HOURS_AT_ONCE", AT_ONCE)


# -- what is stale, and how it is brought up to date -----------------------------------------------------------------------


@pytest.mark.usefixtures("few_at_once")
@pytest.mark.parametrize(
    ("system", "engine"),
    [
        ("agent_usage", "duckdb"),
        *(pytest.param(*more, marks=pytest.mark.nightly) for more in [("agent_usage", "postgres"), ("session_scores", "duckdb")]),
    ],
)  # fmt: skip
def test_a_raised_version_makes_that_systems_hours_stale_and_the_sensor_brings_them_up_to_date_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, engine: str
) -> None:
    project = made(tmp_path, engine)
    before, written = project.tables(), materialized_at(project)
    assert stale_by_version(project) == {}
    raise_version(monkeypatch, system, CHANGES[system]())
    after = rebuilt(engine, system)
    names = {asset.name for asset in SYSTEMS[system]}
    assert all(before[name] != after[name] for name in names), "the new formula changes nothing"
    assert stale_by_version(project) == {name: set(HOURS) for name in names}
    with project.warehouse.read() as session:
        assert stale_hours(stale_statuses(session, HOURS, project.settings)) == (set(), set()), (
            "no other system's hours are"
        )
    left = HOURS
    while ranges := late_logs_tick(project, STEPS):
        assert ranges == [HourRange(max(left.start, left.end - AT_ONCE * HOUR), left.end)]
        left = HourRange(left.start, ranges[0].start)
        assert_each_hour_is_wholly_of_its_version(project, system, {"1.0": before, "2.0": after})
    assert not len(left)
    assert_same_tables(project.tables(), after)
    assert (stale_by_version(project), older(project)) == ({}, [])
    again = materialized_at(project)
    assert {asset for asset, hour in written if written[asset, hour] != again[asset, hour]} == names


@pytest.mark.usefixtures("few_at_once")
@pytest.mark.parametrize("engine", DUCKDB_BY_DAY)
def test_results_of_other_systems_follow_where_the_components_that_they_are_made_from_come_out_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    project = made(tmp_path, engine)
    before = project.tables()
    raise_version(monkeypatch, "agent_health_model", of_agent_health())
    assert set(stale_by_version(project)) == {asset.name for asset in SYSTEMS["agent_health_model"]}
    for _ in range(10):
        if not late_logs_tick(project, STEPS):
            break
    after = rebuilt(engine, "agent_health_model")
    assert before["error_budget"] != after["error_budget"]
    assert_same_tables(project.tables(), after)
    assert {*noted_versions(project)["error_budget"].values()} == {FORMULA_VERSION}
    assert stale_by_version(project) == {}


def test_a_new_version_whose_rows_come_out_the_same_makes_nothing_stale_that_is_made_from_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = made(tmp_path)
    changed = project.query("SELECT asset, hour, changed_at FROM partition_states ORDER BY ALL")
    raise_version(monkeypatch, "agent_health_model", {})
    assert late_logs_tick(project, STEPS) == [HOURS]
    assert {row["formula_version"] for row in project.rows("agent_health")} == {"2.0"}
    assert project.query("SELECT asset, hour, changed_at FROM partition_states ORDER BY ALL") == changed
    assert late_logs_tick(project, STEPS) == []
    expected = project.tables()
    project.materialize(HOURS, only=STEPS[1:])
    assert_same_tables(project.tables(), expected)


def test_the_command_brings_the_hours_asked_for_up_to_date_and_tells_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALTH_WINDOW_HOURS", str(WINDOW_HOURS))
    monkeypatch.setenv("HEALTH_LOOKBACK_HOURS", str(LOOKBACK_HOURS))
    project = made(tmp_path)
    before = project.tables()
    raise_version(monkeypatch, "agent_usage", of_usage())
    after = rebuilt("duckdb", "agent_usage")
    common = ["--warehouse", project.warehouse_url]
    told = CliRunner().invoke(app, ["report", *common, "--hour", f"{HOURS.end - HOUR:%Y-%m-%dT%H}"])
    assert (
        "agent_usage of this hour is of formula version 1.0, now 2.0; the late-log sensor brings it up" in told.output
    )
    newest = HourRange(HOURS.end - 4 * HOUR, HOURS.end)
    asked = ["--from", f"{newest.start:%Y-%m-%dT%H}", "--to", f"{newest.end:%Y-%m-%dT%H}", "--raw", str(project.raw)]
    asked += ["--targets", str(project.targets_path), "--system", "agent_usage"]
    done = CliRunner().invoke(app, ["materialize", *asked, *common])
    assert done.exit_code == 0, done.output
    assert "22 hours of agent_usage are of formula version 1.0, now 2.0" in done.output
    assert f"health-assets materialize --from {START:%Y-%m-%dT%H} --to {newest.start:%Y-%m-%dT%H}" in done.output
    assert_each_hour_is_wholly_of_its_version(project, "agent_usage", {"1.0": before, "2.0": after})
    assert {hour for hour, version in noted_versions(project)["agent_usage"].items() if version == "2.0"} == {*newest}
    told = CliRunner().invoke(app, ["report", *common, "--hour", f"{HOURS.end - HOUR:%Y-%m-%dT%H}"])
    assert (told.exit_code, "of formula version" in told.output) == (0, False), told.output


# -- nothing old and new under one version ---------------------------------------------------------------------------------


def _kill_before_the_results(project: Project, hours: HourRange) -> None:
    def killed(_: Inputs) -> ir.Table:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("the process is gone")

    patch = pytest.MonkeyPatch()
    patch.setattr(system_step, "FEW_RECORDS", -1)  # each asset has its own transaction
    raise_version(patch, "agent_usage", of_usage() | {"agent_usage": killed})
    project.materialize(hours, only_stale=True, only=["usage_components", "agent_usage"])


@pytest.mark.parametrize("engine", DUCKDB_BY_DAY)
def test_a_kill_between_components_and_results_leaves_nothing_mixed_under_one_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    project = made(tmp_path, engine)
    before = project.tables()
    hours = HourRange(HOURS.end - 12 * HOUR, HOURS.end)
    process = in_a_process(_kill_before_the_results, project, hours)
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    raise_version(monkeypatch, "agent_usage", of_usage())
    after = rebuilt(engine, "agent_usage")
    noted = noted_versions(project)
    reach = hours.extended_back(REACH_HOURS - 1)
    assert {hour for hour, version in noted["usage_components"].items() if version == "2.0"} == {*reach}
    assert {*noted["agent_usage"].values()} == {"1.0"}
    assert_each_hour_is_wholly_of_its_version(project, "agent_usage", {"1.0": before, "2.0": after})
    assert late_logs_tick(project, STEPS) == [HOURS]
    assert_same_tables(project.tables(), after)


def test_results_made_while_components_are_left_out_say_so_and_stay_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = made(tmp_path)
    raise_version(monkeypatch, "agent_usage", of_usage())
    last = HourRange.of(HOURS.end - HOUR)
    project.materialize(last, only=["agent_usage", "usage_breakdown"])
    assert noted_versions(project)["agent_usage"][last.start] == MIXED
    assert {row["formula_version"] for row in project.rows("agent_usage", last)} == {MIXED}
    [found] = older(project)
    assert (found.versions, found.due) == (("1.0", MIXED), frozenset(HOURS))
    late_logs_tick(project, STEPS)
    assert_same_tables(project.tables(), rebuilt("duckdb", "agent_usage"))


# -- retention -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "system", ["agent_usage", *(pytest.param(name, marks=pytest.mark.nightly) for name in CHANGES if name != "agent_usage")]
)  # fmt: skip
def test_hours_that_look_back_on_what_retention_dropped_keep_their_version_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    project = made(tmp_path)
    before = project.tables()
    cut = START + 6 * HOUR
    prune(project.warehouse, PRUNED_COMPONENTS, cut, LOOKBACK_HOURS)
    raise_version(monkeypatch, system, CHANGES[system]())
    after = rebuilt("duckdb", system)
    with project.warehouse.write() as session:  # which a warehouse that was copied knows at another place
        session.query("DELETE FROM raw_roots")
    for log in project.raw.iterdir():
        log.rename(project.folder / log.name)
    first = cut + 2 * (REACH_HOURS - 1) * HOUR
    [found] = older(project)
    assert (found.due, found.kept) == ({*HourRange(first, HOURS.end)}, {*HourRange(HOURS.start, first)})
    for _ in range(5):
        if not late_logs_tick(project, STEPS):
            break
    kept = f"{len(found.kept)} hours of {system} are of formula version 1.0, now 2.0; {len(found.kept)} of them keep it"
    assert kept in skip_message(project)
    results = [asset.name for asset in SYSTEMS[system] if asset.name not in PRUNED_COMPONENTS]
    for name in results:
        rows: dict[str, list[Row]] = {"old": [], "new": []}
        for row in project.rows(name):
            rows["old" if row["hour"] < first else "new"].append(row)
        assert_same_tables({name: rows["old"]}, {name: [row for row in before[name] if row["hour"] < first]})
        assert_same_tables({name: rows["new"]}, {name: [row for row in after[name] if row["hour"] >= first]})
    shown = ["report", "--warehouse", project.warehouse_url, "--hour", f"{cut:%Y-%m-%dT%H}"]
    assert (
        f"{system} of this hour is of formula version 1.0, now 2.0; it stays so"
        in CliRunner().invoke(app, shown).output
    )


def test_dropped_components_that_come_back_with_a_new_formula_make_stale_what_was_made_of_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = made(tmp_path)
    prune(project.warehouse, PRUNED_COMPONENTS, START + 12 * HOUR, LOOKBACK_HOURS)
    raise_version(monkeypatch, "agent_health_model", of_agent_health())
    project.materialize(HOURS, only=STEPS)  # as a user asks for it, while the logs are still there
    assert_same_tables(project.tables(), rebuilt("duckdb", "agent_health_model"))
    assert stale_by_version(project) == {}


# -- what declares and keeps versions --------------------------------------------------------------------------------------


def test_every_system_declares_one_version_and_all_its_assets_carry_it() -> None:
    declared = {name: import_module(f"health_assets.systems.{name}").FORMULA_VERSION for name in SYSTEM_NAMES}
    assert all(asset.formula_version == declared[name] for name, assets in SYSTEMS.items() for asset in assets)
    assert all(re.fullmatch(r"[1-9]\d*\.\d+", version) for version in declared.values())
    assert survey.SUMMARY.formula_version == declared["survey"]


def test_every_computed_hour_notes_its_version_and_no_record_does(tmp_path: Path) -> None:
    project = made(tmp_path)
    project.materialize(HourRange.of(START))
    found = project.query("SELECT DISTINCT asset, formula_version FROM partition_states")
    declared = {name: asset.formula_version for name, asset in DERIVED.items()}
    assert {asset: version for asset, version in found if asset in DERIVED} == declared
    assert {version for asset, version in found if asset not in DERIVED} == {None}
    project.change("UPDATE partition_states SET formula_version = NULL")
    raised = {name for name, version in declared.items() if version != FIRST_FORMULA_VERSION}
    assert set(stale_by_version(project)) == raised, "hours from before versions were kept are of 1.0"
    assert set(RESULT_TABLES) >= set(DERIVED)


def test_a_survey_brings_older_summaries_up_to_date_with_its_own(tmp_path: Path) -> None:
    project = Project(tmp_path)
    agent = RegisteredAgent(name="a", platform="p", url="https://a.example")
    hours = [START, START + 5 * HOUR]
    with project.warehouse.write() as session:
        keep_probes(
            session, [Probe(agent, Answer(url=agent.url, asked_at=hour, outcome="unreachable")) for hour in hours]
        )
        summarise(session, hours)
    current = project.rows("survey_summary")
    project.change(
        "UPDATE partition_states SET formula_version = '0.9' WHERE asset = 'survey_summary' AND hour = ?", [START]
    )
    project.change("UPDATE survey_summary SET formula_version = '0.9', agents = 7 WHERE hour = ?", [START])
    assert project.rows("survey_summary") != current
    with project.warehouse.write() as session:
        summarise(session, hours[1:])
    assert project.rows("survey_summary") == current
