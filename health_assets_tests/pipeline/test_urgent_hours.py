"""The newest hour's run goes between two steps of a backfill, as a whole: what both leave equals a clean rebuild."""

from random import Random

import pytest

from health_assets.core.hours import HOUR, HourRange, contiguous
from health_assets.systems.declared_assets import DERIVED
from health_assets.systems.stale_partitions import stale_hours, stale_statuses
from health_assets_tests.support.logs_made import START, cut_into_files, execution, line, random_lines
from health_assets_tests.support.projects import Project, assert_lines_are_conserved, assert_same_tables, hours_from

HOURS = hours_from(START, 12)
NEWEST = HourRange.of(HOURS.end - HOUR)
STEPS = ["ingest", *DERIVED]
FEW_STEPS = [
    "ingest", "health_components", "agent_health", "system_health", "state_components", "agent_changes",
    "agent_health_state",
]  # fmt: skip
"""The steps of two systems, one of which is made from the other's components; they stand for all by day."""


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("urgent"), {"agents": {"listed": {}}}, 4, 8)


def write_first_logs(project: Project) -> None:
    random = Random(3)
    for name, lines in cut_into_files(random, random_lines(random, 300, len(HOURS))).items():
        project.write_log(name, lines, modified=START + HOUR)


def write_logs_of_the_newest_hour(project: Project) -> None:
    found = [line(execution(f"new-{n}", "listed", NEWEST.start, status="failure")) for n in range(5)]
    project.write_log("newest.jsonl", found, modified=NEWEST.end)


@pytest.mark.parametrize("steps", [FEW_STEPS, pytest.param(STEPS, marks=pytest.mark.nightly)], ids=len)
@pytest.mark.parametrize(
    ("backfill", "last_before"),
    [
        pytest.param(
            HourRange(HOURS.start, NEWEST.start), "ingest", id="after the logs are read", marks=pytest.mark.nightly
        ),
        pytest.param(HOURS, "health_components", id="before the scores"),
        pytest.param(HourRange(HOURS.start, NEWEST.start), "agent_health_state", id="amid them"),
    ],
)
def test_the_newest_hour_between_two_steps_of_a_backfill_leaves_the_tables_of_a_clean_rebuild(
    project: Project, backfill: HourRange, last_before: str, steps: list[str]
) -> None:
    steps = sorted(steps, key=STEPS.index)
    place = steps.index(last_before) + 1
    write_first_logs(project)
    for step in steps[:place]:
        project.materialize(backfill, only=[step])
    write_logs_of_the_newest_hour(project)
    project.materialize(NEWEST, only=steps)
    for step in steps[place:]:
        project.materialize(backfill, only=[step])
    with project.warehouse.read() as session:
        components, scores = stale_hours(stale_statuses(session, HOURS, project.settings))
    assert components == set()
    assert scores <= set(NEWEST), "but for what the newest hour looks back on, the backfill leaves nothing to do"
    for hours in contiguous(scores):
        project.materialize(hours, only_stale=True, only=steps)  # as the late-log sensor does
    assert_same_tables(project.tables(), project.clean_rebuild(HOURS, only=steps).tables())
    assert_lines_are_conserved(project)
