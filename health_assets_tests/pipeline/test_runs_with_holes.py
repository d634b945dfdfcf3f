"""A run over hours with holes, as Dagster keeps it: its partitions are exactly the hours that it made."""

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from health_assets.core.hours import HOUR, KEY_FORMAT, HourGroups, HourRange
from health_assets.defs.build import JOB, build_definitions
from health_assets.defs.partitions import hours_tags, named_hours_tags, only_partitions
from health_assets.pipeline.resource import Pipeline
from health_assets_tests.support.dagster_world import ASSETS, FLEET_ASSETS, NOON, QUIET, World, execution
from health_assets_tests.support.projects import ONE_SYSTEM_BY_DAY, run_steps

GROUPS = HourGroups((HourRange(NOON - 30 * HOUR, NOON - 28 * HOUR), HourRange.of(NOON)))
FLEET = [dg.AssetKey(name) for name in ("raw_logs", "executions", "health_components", "agent_health", "system_health")]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World.at(tmp_path / "world", window_hours=3, lookback_hours=6)
    world.write("a.jsonl", [execution(NOON - 30 * HOUR, "old"), execution(NOON, "new")])
    return world


def keys(hours: HourGroups) -> set[str]:
    return {f"{hour:{KEY_FORMAT}}" for hour in hours}


def run(instance: dg.DagsterInstance, definitions: dg.Definitions, tags: dict[str, str]) -> None:
    job = definitions.resolve_job_def(JOB)
    assert job.execute_in_process(instance=instance, tags=tags, run_config=QUIET, asset_selection=FLEET).success


def test_the_partitions_of_a_run_with_holes_are_the_hours_that_it_made(
    world: World, instance: dg.DagsterInstance
) -> None:
    definitions = build_definitions(world.settings, only_partitions(GROUPS))
    run(instance, definitions, named_hours_tags(GROUPS) | hours_tags(GROUPS))
    assert instance.get_materialized_partitions(dg.AssetKey("agent_health")) == keys(GROUPS)
    components = instance.get_materialized_partitions(dg.AssetKey("health_components"))
    assert components == keys(HourGroups.of([*GROUPS, *(NOON - back * HOUR for back in range(6))]))
    assert {hour for (hour,) in world.query("SELECT hour FROM system_health")} == set(GROUPS)
    checked = world.query("SELECT DISTINCT hour FROM expectation_results WHERE asset = 'system_health'")
    assert {hour for (hour,) in checked} == set(GROUPS)


def test_a_run_with_holes_that_is_started_again_on_dagsters_page_makes_all_hours_between(
    world: World, instance: dg.DagsterInstance
) -> None:
    """There the partitions have no holes, and whatever Dagster calls materialized must be."""
    run(instance, world.definitions(), named_hours_tags(GROUPS) | hours_tags(GROUPS))
    span = HourGroups((GROUPS.span,))
    assert instance.get_materialized_partitions(dg.AssetKey("agent_health")) == keys(span)
    assert {hour for (hour,) in world.query("SELECT hour FROM system_health")} == set(span)


@pytest.mark.parametrize("only", ONE_SYSTEM_BY_DAY)
def test_a_run_with_holes_without_dagster_makes_the_same(
    world: World, tmp_path: Path, only: Sequence[str] | None
) -> None:
    run_steps(Pipeline(settings=world.settings), GROUPS, only=only)
    clean = world.rebuilt(tmp_path / "clean", GROUPS.span, only=only)
    for name in FLEET_ASSETS if only else ASSETS:
        inside = [row for row in clean.query(f"SELECT hour, * FROM {name} ORDER BY ALL") if row[0] in GROUPS]
        found = [row for row in world.query(f"SELECT hour, * FROM {name} ORDER BY ALL") if row[0] in GROUPS]
        assert found == inside, name
