"""The endpoint and the pages show the running hour, as of what is known of it."""

import json
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from health_assets.apps.report.now_block import why_lines
from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.history.exporter import fill
from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.outdated import DataAge
from health_assets.apps.serving.pages.agent_page import WantedOfAgent, agent_page
from health_assets.apps.serving.pages.fleet_page import Wanted, fleet_page
from health_assets.apps.serving.reader_process import read_newest
from health_assets.apps.serving.snapshot import Snapshot
from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.agent_now.report import print_block
from health_assets_tests.support.clocks import settable_clock
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import world_of
from health_assets_tests.support.projects import Project

RUNNING = START + 2 * HOUR
AS_OF = RUNNING + timedelta(minutes=20)
NOW = AS_OF + timedelta(minutes=3)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An agent that fails since the running hour began."""
    project = Project(tmp_path, {}, 4, 24)
    moments = [START + place * timedelta(minutes=2) for place in range(70)]
    statuses = ["success" if moment < RUNNING else "failure" for moment in moments]
    runs = [
        execution(f"e{moment}", "a", moment, 5.0, status=how) for moment, how in zip(moments, statuses, strict=True)
    ]
    project.write_log("a.jsonl", map(line, runs))
    settable_clock(monkeypatch)(AS_OF)
    project.materialize(HourRange(START, RUNNING + HOUR))
    return project


def test_the_document_is_of_the_running_hour_and_says_when(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    snapshot = Snapshot.read(folder, read_newest(project.settings, folder, None, NOW)["snapshot"])
    assert (snapshot.hour, snapshot.known_until) == (RUNNING, AS_OF)
    place = snapshot.find(b"a", AccessScope(is_full=True))
    assert place is not None
    document = json.loads(snapshot.document(place, is_full_view=True))
    assert document["timestamp"] == f"{AS_OF:%Y-%m-%dT%H:%M:%SZ}"
    assert document["calibration"]["measurement_window_seconds"] == 4 * 3600 - 40 * 60
    assert document["extensions"]["org.health-assets.agent-now"]["verdict"] == "failing"


def test_data_is_outdated_from_when_it_was_known_and_not_from_the_end_of_the_hour() -> None:
    age = DataAge(7200.0)
    assert age.left_s(AS_OF, AS_OF + timedelta(minutes=90)) == 1800
    assert age.outdated_at(AS_OF, AS_OF + timedelta(minutes=121)) == AS_OF + timedelta(hours=2)


def test_the_history_of_the_pages_has_the_running_hour_and_is_copied_anew_with_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project.folder / "history"
    while fill(project.settings, folder, project.warehouse, NOW)["missing"]:
        pass
    history = History(folder)
    assert history.newest("agents") == RUNNING
    assert history.facts["as_of"] == {RUNNING.isoformat(): AS_OF.isoformat()}
    later = AS_OF + timedelta(minutes=30)
    more = [execution(f"f{minute}", "a", AS_OF + timedelta(minutes=minute), status="failure") for minute in range(5)]
    project.write_log("b.jsonl", map(line, more))
    settable_clock(monkeypatch)(later)
    project.materialize(HourRange.of(RUNNING), only_stale=True)
    while fill(project.settings, folder, project.warehouse, later)["missing"]:
        pass
    history = History(folder)
    [row] = history.of("agents", "a", HourRange.of(RUNNING)).to_pylist()
    assert (row["n"], history.facts["as_of"][RUNNING.isoformat()]) == (75, later.isoformat())


def test_failures_of_the_last_60_minutes_have_their_error_where_the_running_hour_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [execution(f"e{minute}", "a", START + minute * MINUTE, 5.0) for minute in range(0, 90, 5)]
    runs += [
        execution(f"f{minute}", "a", START + minute * MINUTE, 5.0, status="failure", error="no route")
        for minute in range(90, 118)
    ]
    project = Project(tmp_path, {}, 4, 24)
    project.write_log("a.jsonl", map(line, [*runs, execution("other", "b", RUNNING + MINUTE, 5.0)]))
    settable_clock(monkeypatch)(RUNNING + 10 * MINUTE)
    project.materialize(HourRange(START, RUNNING + HOUR))
    hour = HourRange.of(RUNNING)
    console = Console(file=StringIO(), width=200)
    with project.warehouse.read() as session:
        print_block(console, session, hour)
        [row] = [row for row in session.dicts(session.hours_of("agent_now", hour)) if row["agent_id"] == "a"]
        named = {"now": row["verdict"], "now_failures": row["failures_1h"], "now_since": row["since"], "agent_id": "a"}
        named |= {"now_executions": row["executions_1h"]}
        assert why_lines(session, hour, row | named)[0] == "Every one with: no route"
    assert row["verdict"] == "failing"
    assert re.search(r"FAILING.*28 of \d+.*no route", console.file.getvalue())
    world = world_of(project, HourRange(START, RUNNING + HOUR))
    page = fleet_page(world.look(), Wanted())
    [worst] = page.data["now"]["worst"]
    assert (worst["failures"], worst["error"], worst["error_count"]) == (28, "no route", 28)
    told = agent_page(world.look(), "a", WantedOfAgent()).data["now"]
    assert "no route" in told["error"]
