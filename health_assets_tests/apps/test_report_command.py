"""The command `report`: what a run showed, again and at any hour, for the fleet or for one agent."""

from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from random import Random

import ibis
import pytest
from rich.console import Console
from typer.testing import CliRunner

from health_assets.apps.report.agent import _errors, print_agent, shown_tables
from health_assets.apps.report.blocks import print_health, report_hours
from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError, NoWarehouseError
from health_assets.core.hours import HOUR, HourRange
from health_assets.schema.catalog import columns_of
from health_assets.systems.declared_assets import DERIVED
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import ENGINES, Project, hours_from
from health_assets_tests.support.serving_made import fill

HOURS = hours_from(START, 4)
LAST = HOURS.end - HOUR
NOW = HOURS.end + timedelta(minutes=10)


DETAILS = [
    {"error": "CardDeclined: code 51\n  File pay.py", "agent_version": "1.9"},
    {"error": "CardDeclined: code 51\r\n  File pay.py", "agent_version": "1.9"},
    {"error": "\nCardDeclined: code 51", "agent_version": "1.10"},
    {"error": "\x1b[2JTimeout", "agent_version": "1.10"},
    {"error": "", "agent_version": "1.10"},
    {},
]


def at(number: float) -> datetime:
    return START + number * HOUR


def make_project(folder: Path, engine: str) -> Project:
    project = Project(folder, {"agents": {"crashing": {"expected_runtime_s": 10, "n_full": 1}}}, engine=engine)
    records = [
        execution(f"crash {n}", "crashing", at(n / 2), 20, status="failure", session_id="monday", model="atlas",
                  task_id=f"task {n % 2}", confidence=0.2, **DETAILS[n])
        for n in range(6)
    ]  # fmt: skip
    records += [execution(f"good {n}", "steady", at(n / 2), model="borealis") for n in range(8)]
    records += [
        {"type": "model_call", "call_id": f"c{n}", "agent_id": "crashing", "model": "atlas", "error": "overloaded",
         "ended_at": at(n / 2).isoformat(), "status": "failure", "latency_ms": 10}
        for n in range(3)
    ]  # fmt: skip
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(HOURS)
    return project


@pytest.fixture(scope="module", params=ENGINES)
def made(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Project:
    return make_project(tmp_path_factory.mktemp("report"), request.param)


def report(project: Project, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["report", "--warehouse", project.warehouse_url, *arguments], env={"COLUMNS": "200"})
    return done.exit_code, done.output


def printed(project: Project, hours: HourRange, agent_id: str | None = None) -> str:
    output = StringIO()
    with project.warehouse.read() as session:
        console = Console(file=output, width=120)
        if agent_id is None:
            print_health(console, session, hours)
        else:
            print_agent(console, session, hours, agent_id)
    return output.getvalue()


def test_the_fleet_of_the_newest_hour_is_shown_as_the_run_showed_it(made: Project) -> None:
    code, output = report(made)
    assert code == 0, output
    assert "Fleet at 2026-06-07 03:00 UTC" in output
    assert output.split() == printed(made, HOURS).split()


def test_any_hour_can_be_shown(made: Project) -> None:
    code, output = report(made, "--hour", "2026-06-07T01")
    assert code == 0, output
    assert "Fleet at 2026-06-07 01:00 UTC" in output


def test_a_block_of_an_agent_says_where_its_newest_row_is_of_an_earlier_hour(tmp_path: Path) -> None:
    rows = [{"agent_id": "crashing"}]
    fill(tmp_path / "health.duckdb", LAST - HOUR, agent_usage=rows)
    fill(tmp_path / "health.duckdb", LAST, agent_health=rows)
    console = Console(file=StringIO(), width=120)
    with Warehouse(str(tmp_path / "health.duckdb")).read() as session:
        print_agent(console, session, HOURS, "crashing")
    assert "Agent usage at 2026-06-07 02:00 UTC, its newest row\n" in console.file.getvalue()  # type: ignore[attr-defined]


def test_an_agent_is_shown_with_its_lost_points_their_evidence_and_everything_else(made: Project) -> None:
    [(score, state)] = made.query(
        "SELECT health_score, state FROM agent_health WHERE agent_id = 'crashing' AND hour = ?", [LAST]
    )
    code, output = report(made, "--agent", "crashing")
    assert code == 0, output
    assert "crashing at 2026-06-07 03:00 UTC\nFAILING now: " in output
    assert f"over 24 h: {state}, {score:.1f} of 100" in output
    assert "0% succeeded, 95% expected" in output
    assert "crash 5, crash 4, crash 3" in output, "the executions that weigh most"
    for heading in (
        "Agent health state at",
        "Error budget at",
        "Sessions in 24 h",
        "Models in 24 h",
        "Task consistency",
    ):
        assert heading in output
    (session,) = [text for text in output.splitlines() if text.startswith("monday")]
    (model,) = [text for text in output.splitlines() if text.startswith("atlas")]
    assert model.split()[1:3] == ["3", "3"], "calls and failures of its own"
    assert "overloaded" in model
    assert session
    assert "borealis" not in output
    assert "good" not in output


@pytest.mark.parametrize("seed", range(3))
def test_errors_are_counted_by_their_first_line_that_is_not_blank(made: Project, seed: int) -> None:
    random = Random(seed)
    errors = ["".join(random.choices("ab é\t\v\r\n ", k=random.randint(0, 9))) for _ in range(300)] + [None]
    rows = {"error": errors, "status": ["failure"] * len(errors), "ended_at": [at(n) for n in range(len(errors))]}
    executions = ibis.memtable(rows, schema={"error": "string", "status": "string", "ended_at": "timestamp('UTC')"})
    with made.warehouse.read() as session:
        found = session.dicts(_errors(executions))
    by_line: dict[str | None, list[datetime]] = {}
    for error, ended_at in zip(errors, rows["ended_at"], strict=True):
        line = (error or "").lstrip("\r\n ").split("\n")[0].rstrip("\r ")
        by_line.setdefault(line or None, []).append(ended_at)
    assert found == [
        {"line": line, "runs": len(times), "last": max(times)}
        for line, times in sorted(by_line.items(), key=lambda item: (-len(item[1]), -max(item[1]).timestamp()))
    ]


def test_the_errors_and_versions_of_an_agents_runs_are_shown(made: Project) -> None:
    text = printed(made, HOURS.extended_back(20), "crashing")
    blocks = {first: rest for first, *rest in (part.strip().splitlines() for part in text.split("\n\n"))}
    told = blocks["6 failed executions in 24 h"]
    assert [" ".join(row.split()) for row in told] == [
        "3 × CardDeclined: code 51 last 2026-06-07 01:00",
        "2 × the log states no error last 2026-06-07 02:30",
        "1 × \\x1b[2JTimeout last 2026-06-07 01:30",
    ]
    _, *versions = blocks["Versions in 24 h"]
    assert [row.split()[:3] for row in versions] == [["–", "1", "0"], ["1.10", "3", "0"], ["1.9", "2", "0"]]
    steady = printed(made, HOURS, "steady")
    assert "failed execution" not in steady and "Versions" not in steady


def test_every_score_of_an_agent_is_shown_whatever_system_it_is_of() -> None:
    of_agents = {
        name for name, asset in DERIVED.items()
        if not asset.is_component and {"agent_id", "window_end"} <= set(columns_of(name))
    }  # fmt: skip
    shown = set(shown_tables()) | {"agent_health", "score_evidence"}
    assert of_agents <= shown
    assert {"session_scores", "model_health"} <= shown


def test_an_agent_that_there_is_not_is_said_with_those_of_a_like_name(made: Project) -> None:
    code, output = report(made, "--agent", "crashin")
    assert code == 1
    assert "no agent crashin is known at 2026-06-07 03:00 UTC; did you mean crashing?" in " ".join(output.split())
    assert "2 agents are known there" in report(made, "--agent", "zzz")[1]


def test_an_hour_without_scores_says_which_is_the_newest_and_how_to_get_it(made: Project) -> None:
    code, output = report(made, "--hour", "2026-06-09T00")
    assert code == 1
    assert (
        "the hour 2026-06-09T00 has no scores; the newest that has is 2026-06-07T03, and health-assets materialize "
        "--from 2026-06-09T00 --to 2026-06-09T01 makes them"
    ) in " ".join(output.split())


def test_an_hour_that_has_not_begun_is_no_reason_to_materialize(made: Project) -> None:
    code, output = report(made, "--hour", "2099-01-01T00")
    assert code == 1
    assert "the hour 2099-01-01T00 has no scores; the newest that has is 2026-06-07T03" in output
    assert "materialize" not in output


def test_an_hour_of_the_future_hides_no_other(made: Project) -> None:
    with made.warehouse.read() as session:
        assert report_hours(session, made.settings, None, NOW) == HourRange.of(LAST).extended_back(23)
        assert report_hours(session, made.settings, None, LAST + timedelta(minutes=1)).end == LAST + HOUR
        before = LAST - timedelta(minutes=1)
        assert report_hours(session, made.settings, None, before).end == LAST
        with pytest.raises(HealthAssetsError, match="no scores"):
            report_hours(session, made.settings, None, START - HOUR)


def test_an_empty_warehouse_is_said(project: Project) -> None:
    project.materialize(HOURS, only=["ingest"])
    with project.warehouse.read() as session, pytest.raises(NoWarehouseError, match="no scores yet"):
        report_hours(session, project.settings, None, NOW)
