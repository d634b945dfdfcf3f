"""Dagster's own tools and pages over our definitions: `dg`, groups, links to the source, freshness."""

import os
import re
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetGraph

from health_assets.core.settings import Settings
from health_assets.core.systems import SYSTEM_NAMES
from health_assets.defs.build import build_definitions
from health_assets.defs.page_links import PAGES
from health_assets.systems.declared_assets import DERIVED
from health_assets_tests.support.dagster_world import ASSETS
from health_assets_tests.support.projects import REPOSITORY, SURVEY_TABLES

LINK = "dagster/code_references"


@pytest.fixture(scope="module")
def graph() -> BaseAssetGraph:
    return build_definitions(Settings(raw="/nowhere")).resolve_asset_graph()


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
    assert groups["agent_now"] == groups["now_components"] == "agent_now"
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


def described(**settings: str) -> BaseAssetGraph:
    return build_definitions(Settings(raw="/nowhere", **settings)).resolve_asset_graph()  # type: ignore[arg-type]


def test_assets_link_to_their_pages_of_serve_where_a_setting_says_where_it_is(graph: BaseAssetGraph) -> None:
    with_pages = described(pages_url="https://health.example/")
    found = {
        name: with_pages.get(dg.AssetKey(name)).metadata["page"].url
        for name in (*ASSETS, *SURVEY_TABLES)
        if "page" in with_pages.get(dg.AssetKey(name)).metadata
    }
    assert {name: url.removeprefix("https://health.example") for name, url in found.items()} == PAGES
    for name in (*ASSETS, *SURVEY_TABLES):
        assert with_pages.get(dg.AssetKey(name)).metadata["data quality page"].url == "https://health.example/data"
        assert not {"page", "data quality page"} & graph.get(dg.AssetKey(name)).metadata.keys()


def test_descriptions_name_pages_of_the_documentation_and_link_them_where_it_has_an_address(
    graph: BaseAssetGraph,
) -> None:
    with_docs = described(docs_url="https://docs.example/v1")
    for name in (*ASSETS, *SURVEY_TABLES):
        plain = graph.get(dg.AssetKey(name)).description or ""
        named = re.findall(r"`docs/([^`]+)`", plain)
        assert len(named) == 2, plain
        for page in named:
            file, _, table = page.partition("#")
            text = (REPOSITORY / "docs" / file).read_text(encoding="utf-8")
            assert not table or f"## `{table}`" in text
        links = re.findall(
            r"\]\(https://docs\.example/v1/([^)]+)\)", with_docs.get(dg.AssetKey(name)).description or ""
        )
        assert links == named


def test_assets_are_due_every_hour_where_schedules_start_by_themselves(graph: BaseAssetGraph) -> None:
    assert all(graph.get(dg.AssetKey(name)).freshness_policy for name in ASSETS)
    quiet = build_definitions(Settings(raw="/nowhere", schedules=False)).resolve_asset_graph()
    assert not any(quiet.get(dg.AssetKey(name)).freshness_policy for name in ASSETS)
