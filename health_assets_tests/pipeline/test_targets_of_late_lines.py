"""Targets that changed before late lines came: no hour is of two, and hours that got no line stay as they are."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest

from health_assets.core.hours import HOUR
from health_assets.pipeline.log_ingestion import load_new_logs
from health_assets.systems.stale_partitions import stale_statuses
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import FLEET, Project, hours_from

WINDOW_HOURS, LOOKBACK_HOURS = 2, 4
HOURS = hours_from(START, 16)
LATE = START + 7 * HOUR
LENIENT, STRICT = {"defaults": {"sla_s": 1e6}}, {"defaults": {"sla_s": 0.001}}
FOLDED = {"names": [{"match": "(planner)-.*", "agent": r"\1"}]}
LOADS = ["before a run", "in a run"]


def run_line(execution_id: str, hour: datetime, agent_id: str = "planner-7f") -> str:
    return line(execution(execution_id, agent_id, hour + HOUR / 2))


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict], Project]:
    """A line an hour, materialized once with each targets; tests change only copies."""

    @cache
    def of(targets: str) -> Project:
        project = Project(
            tmp_path_factory.mktemp("made") / "project", json.loads(targets), WINDOW_HOURS, LOOKBACK_HOURS
        )
        project.write_log("a.jsonl", [run_line(f"e{number}", hour) for number, hour in enumerate(HOURS)])
        project.materialize(HOURS, only=FLEET)
        project.change("DELETE FROM raw_roots")  # copies have others
        return project

    return lambda targets: of(json.dumps(targets))


@pytest.fixture
def made(made_once: Callable[[dict], Project], tmp_path: Path) -> Callable[[dict], Project]:
    return lambda targets: made_once(targets).copied(tmp_path / "copy")


def load(project: Project, where: str) -> None:
    """As a worker or a sensor does, or as the run of another late hour."""
    if where == "before a run":
        load_new_logs(project.pipeline)
    else:
        project.materialize(hours_from(START, 1), only=["ingest"], only_stale=True)


def stale(project: Project, asset: str) -> set[datetime]:
    with project.warehouse.read() as session:
        statuses = stale_statuses(session, HOURS, project.settings)[asset]
    return {*statuses}


@pytest.mark.parametrize("where", LOADS)
def test_an_hour_that_gets_a_late_line_has_one_limit_of_its_sla(made: Callable[[dict], Project], where: str) -> None:
    project = made(LENIENT)
    project.write_targets(STRICT)
    project.write_log("late.jsonl", [run_line("late", LATE), run_line("later", LATE + 3 * HOUR)])
    load(project, where)
    breached = project.query("SELECT hour, execution_id FROM executions WHERE sla_breached ORDER BY hour, execution_id")
    assert breached == [
        (LATE, "e7"), (LATE, "late"), (LATE + 3 * HOUR, "e10"), (LATE + 3 * HOUR, "later"),
    ]  # fmt: skip
    assert stale(project, "health_components") == {LATE, LATE + 3 * HOUR}
    project.materialize(hours_from(LATE, LOOKBACK_HOURS), only=FLEET, only_stale=True)
    [(counted,)] = project.query("SELECT sum(sla_breaches) FROM health_components WHERE hour = ?", [LATE])
    assert counted == 2


@pytest.mark.parametrize("where", LOADS)
def test_an_agent_is_one_in_every_hour_that_is_made_again_for_a_late_line(
    made: Callable[[dict], Project], where: str
) -> None:
    project = made({})
    project.write_targets(FOLDED)
    project.write_log("late.jsonl", [run_line("late", LATE)])
    load(project, where)
    seen = {LATE + number * HOUR for number in range(1 - LOOKBACK_HOURS, LOOKBACK_HOURS)}
    assert {hour for (hour,) in project.query("SELECT hour FROM executions WHERE agent_id = 'planner'")} == seen
    assert {hour for (hour,) in project.query("SELECT hour FROM executions WHERE agent_id <> 'planner'")} == {
        *HOURS
    } - seen
    assert stale(project, "health_components") == seen
    project.materialize(HOURS, only=FLEET, only_stale=True)
    agents = Counter(hour for (hour,) in project.query("SELECT hour FROM agent_health"))
    assert {agents[LATE + number * HOUR] for number in range(LOOKBACK_HOURS)} == {1}


def test_a_line_that_comes_back_in_an_hour_brings_no_other_limit_than_the_others_have(
    made: Callable[[dict], Project],
) -> None:
    project = made(LENIENT)
    project.write_log("b.jsonl", [run_line("e7", LATE)])
    load_new_logs(project.pipeline)
    project.write_log("c.jsonl", [run_line("other", LATE)])
    load_new_logs(project.pipeline)
    project.write_targets(STRICT)
    project.write_log("b.jsonl", [run_line("of now", HOURS.end - HOUR)])  # the superseded line comes back
    load_new_logs(project.pipeline)
    assert set(project.query("SELECT sla_breached FROM executions WHERE hour = ?", [LATE])) == {(True,)}


def test_a_load_that_brings_no_line_into_an_hour_leaves_it_to_its_targets(made: Callable[[dict], Project]) -> None:
    project = made(LENIENT)
    project.write_targets(STRICT)
    project.write_log("late.jsonl", ["not JSON"])
    load_new_logs(project.pipeline)
    assert project.query("SELECT DISTINCT sla_breached FROM executions") == [(False,)]
    assert not stale(project, "health_components")
