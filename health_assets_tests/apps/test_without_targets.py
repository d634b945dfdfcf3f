"""Report and pages say of agents without an expected runtime that nobody judges it, and which got slower."""

from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from health_assets.apps.report.agent import print_agent
from health_assets.apps.report.blocks import print_health
from health_assets.apps.report.without_targets import agent_without_targets, fleet_without_targets
from health_assets.apps.serving.access_scope import EVERYBODYS
from health_assets.apps.serving.pages.agent_page import WantedOfAgent, agent_page
from health_assets.apps.serving.pages.fleet_page import Wanted, fleet_page
from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.projects import ENGINES, Project, hours_from

HOURS = hours_from(START, 72)
LAST = HourRange.of(HOURS.end - HOUR)
SLOW_FROM = 30
"""42 h ago: the window of a day ago is mostly slow already."""
ASSETS = ["ingest", "health_components", "state_components", "agent_changes", "agent_health", "agent_health_state"]
SLOWER = "median runtime 25.1 s, was 5.0 s two days ago"
"""The middles of the buckets of 25 s and of 5 s are 25.14 s and 4.957 s."""
OF_FLEET = f"performance is not judged for 3 of 4 agents: no target; slowed most: slower, {SLOWER} (5.1 times)"
TARGETS = {"agents": {"expected": {"expected_runtime_s": 9}, "mine": {"personal": True}}}


def make_project(folder: Path, engine: str) -> Project:
    project = Project(folder, TARGETS, engine=engine)
    lines = []
    for number, hour in enumerate(HOURS):
        is_slow = number >= SLOW_FROM
        runs = {"slower": 25.0 if is_slow else 5.0, "expected": 60.0 if is_slow else 1.0, "mine": 5.0}
        if number % 6 == 0:
            runs["rare"] = 600.0 if is_slow else 1.0
        lines += [
            line(execution(f"{agent} {number}", agent, hour + timedelta(minutes=59), runtime_s))
            for agent, runtime_s in runs.items()
        ]
    project.write_log("a.jsonl", lines)
    return project


@pytest.fixture(scope="module", params=ENGINES)
def made(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Project:
    project = make_project(tmp_path_factory.mktemp("without"), request.param)
    project.materialize(HOURS, only=ASSETS)
    return project


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    project = make_project(tmp_path_factory.mktemp("pages"), "duckdb")
    project.materialize(HOURS)
    return world_of(project, HOURS)


def test_the_fleets_report_names_the_agent_that_slowed_most_of_those_that_run_enough(made: Project) -> None:
    with made.warehouse.read() as session:
        assert fleet_without_targets(session, HOURS) == f"{OF_FLEET}; `health-assets targets suggest` proposes some"
        console = Console(file=StringIO(), width=120)
        print_health(console, session, HOURS)
        assert OF_FLEET in console.file.getvalue()


def test_an_agents_report_says_how_its_median_moved(made: Project) -> None:
    proposes = "; `health-assets targets suggest` proposes one"
    with made.warehouse.read() as session:
        told = agent_without_targets(session, LAST, "slower")
        assert told == f"performance is not judged: no target; {SLOWER}{proposes}"
        rare = agent_without_targets(session, LAST, "rare")
        assert rare is not None and rare.startswith("performance is not judged: no target; median runtime 10.0 min; ")
        assert agent_without_targets(session, LAST, "expected") is None
        console = Console(file=StringIO(), width=120)
        print_agent(console, session, HOURS.intersection(LAST.extended_back(23)), "slower")
        assert told in console.file.getvalue()


def test_without_an_earlier_window_only_the_median_is_told(made: Project) -> None:
    first = HourRange.of(START + 23 * HOUR)
    with made.warehouse.read() as session:
        told = agent_without_targets(session, first, "slower")
        assert told is not None and told.startswith("performance is not judged: no target; median runtime 5.0 s; ")
        assert fleet_without_targets(session, HourRange(START, first.end)) == (
            "performance is not judged for 3 of 4 agents: no target; `health-assets targets suggest` proposes some"
        )


def test_where_every_agent_has_a_target_nothing_is_told(tmp_path: Path) -> None:
    project = Project(tmp_path, {"defaults": {"expected_runtime_s": 9}})
    project.write_log("a.jsonl", [line(execution("e", "a", START))])
    project.materialize(hours_from(START, 1), only=ASSETS)
    with project.warehouse.read() as session:
        assert fleet_without_targets(session, hours_from(START, 1)) is None
        assert fleet_without_targets(session, hours_from(START + HOUR, 1)) is None


def test_the_fleets_page_says_the_same_of_the_agents_that_one_sees(world: World) -> None:
    assert fleet_page(world.look(), Wanted()).data["without_targets"] == OF_FLEET
    of_others = fleet_page(world.look(EVERYBODYS), Wanted()).data["without_targets"]
    assert of_others == OF_FLEET.replace("3 of 4", "2 of 3")


def test_an_agents_page_says_it_beside_the_points_that_nothing_tested(world: World) -> None:
    told = {
        one: agent_page(world.look(), one, WantedOfAgent()).data["untested"] for one in ("slower", "rare", "expected")
    }
    proposes = "; health-assets targets suggest proposes a target."
    assert told["slower"].endswith(f" {SLOWER[0].upper()}{SLOWER[1:]}{proposes}")
    assert told["rare"].endswith(f". Median runtime 10.0 min{proposes}")
    assert proposes not in told["expected"]
