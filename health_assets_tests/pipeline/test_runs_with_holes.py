"""A run over hours with holes, as Dagster keeps it: its partitions are exactly the hours that it made."""

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from health_assets.core.hours import HOUR, KEY_FORMAT, HourGroups, HourRange
from health_assets.defs.build import JOB, build_definitions
from health_assets.defs.partitions import HOURS_TAG, hours_tags, named_hours_tags, only_partitions
from health_assets_tests.support.dagster_world import ASSETS, NOON, QUIET, World, execution
from health_assets_tests.support.projects import FLEET as STEPS_OF_FLEET

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


@pytest.mark.parametrize(
    ("selection", "only"),
    [
        pytest.param(FLEET, STEPS_OF_FLEET, id="one system"),
        pytest.param(None, None, id="all systems", marks=pytest.mark.nightly),
    ],
)
def test_a_run_whose_records_are_thrown_away_has_no_partitions_and_makes_the_same(
    world: World,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    selection: Sequence[dg.AssetKey] | None,
    only: Sequence[str] | None,
) -> None:
    definitions = build_definitions(world.settings, is_partitioned=False)
    job = definitions.resolve_job_def(JOB)
    tags = named_hours_tags(GROUPS)
    result = job.execute_in_process(instance=instance, tags=tags, run_config=QUIET, asset_selection=selection)
    assert result.success
    all_keys = definitions.resolve_asset_graph().materializable_asset_keys
    assert len(result.get_asset_materialization_events()) == (len(selection) if selection else len(all_keys) - 2)
    assert not instance.get_materialized_partitions(dg.AssetKey("agent_health"))
    clean = world.rebuilt(tmp_path / "clean", GROUPS.span, only=only)
    for name in [key.to_user_string() for key in selection or ()] or ASSETS:
        inside = [row for row in clean.query(f"SELECT hour, * FROM {name} ORDER BY ALL") if row[0] in GROUPS]
        found = [row for row in world.query(f"SELECT hour, * FROM {name} ORDER BY ALL") if row[0] in GROUPS]
        assert found == inside, name
    assert HOURS_TAG in tags
