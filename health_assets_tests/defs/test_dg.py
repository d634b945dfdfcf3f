"""Dagster's own tools and pages over our definitions: `dg`, groups, links to the source, freshness, curves."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetGraph

from health_assets.core.hours import HOUR, KEY_FORMAT, HourRange
from health_assets.core.settings import Settings
from health_assets.core.systems import SYSTEM_NAMES
from health_assets.defs.build import build_definitions
from health_assets.defs.curves import ROWS
from health_assets.systems.declared_assets import DERIVED
from health_assets_tests.support.dagster_world import ASSETS, NOON, World
from health_assets_tests.support.projects import REPOSITORY, SURVEY_TABLES

LINK = "dagster/code_references"


@pytest.fixture(scope="module")
def graph() -> BaseAssetGraph:
    return build_definitions(Settings(raw="/tmp")).resolve_asset_graph()


def test_dg_checks_the_definitions_of_this_project(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEALTH_", "DAGSTER_"))}
    own = {
        "PYTHONPATH": str(REPOSITORY),
        "HEALTH_RAW": str(tmp_path),
        "HEALTH_WAREHOUSE": str(tmp_path / "none.duckdb"),
    }
    done = subprocess.run(
        [str(Path(sys.executable).parent / "dg"), "check", "defs", "--use-active-venv"],
        cwd=REPOSITORY, env=kept | own, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All definitions loaded successfully" in done.stdout + done.stderr


def test_every_asset_is_in_the_group_of_its_scoring_system(graph: BaseAssetGraph) -> None:
    groups = {name: graph.get(dg.AssetKey(name)).group_name for name in (*ASSETS, *SURVEY_TABLES)}
    assert set(groups.values()) == {*SYSTEM_NAMES, "raw_records"}
    assert groups["agent_health"] == groups["health_components"] == "agent_health_model"
    assert groups["executions"] == groups["raw_logs"] == "raw_records"


def test_every_asset_links_to_the_function_that_makes_its_rows(graph: BaseAssetGraph) -> None:
    for name in (*ASSETS, *SURVEY_TABLES):
        [link] = graph.get(dg.AssetKey(name)).metadata[LINK].code_references
        assert (REPOSITORY / link.label).samefile(link.file_path), name
        line = Path(link.file_path).read_text(encoding="utf-8").splitlines()[link.line_number - 1]
        assert line.startswith("def "), f"{name}: {line}"
        if name in DERIVED:
            assert line.startswith(f"def {DERIVED[name].rows.__name__}("), name


def test_assets_are_due_every_hour_where_schedules_start_by_themselves(graph: BaseAssetGraph) -> None:
    assert all(graph.get(dg.AssetKey(name)).freshness_policy for name in ASSETS)
    quiet = build_definitions(Settings(raw="/tmp", schedules=False)).resolve_asset_graph()
    assert not any(quiet.get(dg.AssetKey(name)).freshness_policy for name in ASSETS)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, dict[str, dict[str, dict[str, float]]]]:
    """Three hours in one run, and the numbers of each asset's events by partition."""
    world = World.at(tmp_path_factory.mktemp("drawn"), window_hours=3, lookback_hours=6)
    hours = HourRange(NOON - 3 * HOUR, NOON)
    world.write_hours(hours)
    found: dict[str, dict[str, dict[str, float]]] = {}
    with dg.instance_for_test() as instance:
        result = world.run(instance, hours)
        assert result.success
        for event in result.get_asset_materialization_events():
            made = event.step_materialization_data.materialization
            numbers = {
                name: value.value for name, value in made.metadata.items() if isinstance(value.value, int | float)
            }
            found.setdefault(made.asset_key.to_user_string(), {})[made.partition] = numbers
    return world, found


def test_every_hour_of_a_run_has_its_own_row_count(drawn: tuple[World, dict]) -> None:
    world, found = drawn
    assert set(found) == set(ASSETS)
    for name, by_hour in found.items():
        counts = dict(world.query(f"SELECT hour, count(*) FROM {name} GROUP BY hour"))
        hours = [NOON - back * HOUR for back in (3, 2, 1)]
        expected = {f"{hour:{KEY_FORMAT}}": counts.get(hour, 0) for hour in hours}
        assert {key: numbers[ROWS] for key, numbers in by_hour.items()} == expected, name


def test_curves_are_the_hours_agents_by_state_mean_score_and_rejected_lines(drawn: tuple[World, dict]) -> None:
    world, found = drawn
    for state in ("healthy", "degraded", "unhealthy", "inactive"):
        sql = f"SELECT hour, count(*) FILTER (state = '{state}') FROM agent_health GROUP BY hour"
        expected = {f"{hour:{KEY_FORMAT}}": count for hour, count in world.query(sql)}
        assert {key: own[f"agents {state}"] for key, own in found["agent_health"].items()} == expected, state
    means = {
        f"{hour:{KEY_FORMAT}}": mean
        for hour, mean in world.query("SELECT hour, avg(health_score) FROM agent_health GROUP BY 1")
    }
    assert {key: own["mean health score"] for key, own in found["agent_health"].items()} == pytest.approx(means)
    assert [own.get("rejected lines", 0) for _, own in sorted(found["rejected_records"].items())] == [1, 0, 0]
