"""The documentation as a site: built without a warning, with every page, a search, and nothing from another host."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from health_assets_tests.support.projects import REPOSITORY

LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=\"?(https?:[^\"\s>]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it, where any warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder],
        cwd=REPOSITORY, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


def text_of(site: Path, name: str) -> str:
    return (site / name).read_text(encoding="utf-8")


def test_every_page_of_the_docs_is_a_page_of_the_site(site: Path) -> None:
    for page in (REPOSITORY / "docs").glob("*.md"):
        assert (site / f"{page.stem}.html").is_file(), page


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 40
    assert {page.name: found for page in pages if (found := LOADED.findall(page.read_text(encoding="utf-8")))} == {}


def test_the_search_knows_headings_and_settings(site: Path) -> None:
    found = {entry["location"] for entry in json.loads(text_of(site, "search/search_index.json"))["docs"]}
    assert {"running.html#backfill", "scores.html#points-at-stake", "tables.html#agent_health"} <= found
    assert "HEALTH_WINDOW_HOURS" in text_of(site, "search/search_index.json")


def test_links_to_files_outside_of_the_docs_lead_to_pages_of_the_site(site: Path) -> None:
    assert 'href="project/compose.yaml.html"' in text_of(site, "running.html")
    assert "docker-entrypoint-initdb.d" in text_of(site, "project/compose.yaml.html")
    assert 'href="../operation.html#upgrade"' in text_of(site, "project/SECURITY.html")
    assert 'src="../overview.svg"' in text_of(site, "project/index.html")


def test_the_flow_chart_of_the_lineage_is_a_table(site: Path) -> None:
    rows = re.findall(r"<tr>\s*<td>(.*?)</td>\s*<td>(.*?)</td>", text_of(site, "lineage.html"), re.S)
    made_from = {re.sub("<.*?>", "", table): re.sub("<.*?>", "", sources).split(", ") for table, sources in rows}
    assert made_from["agent_now"] == ["health_components", "now_components"]
    assert made_from["executions"] == ["raw_logs", "spans"]


def test_the_python_api_has_what_its_modules_export(site: Path) -> None:
    page = text_of(site, "python-api.html")
    for name in ("consumer.fetch_health", "consumer.advise", "model_tracker.get_health_tracker"):
        assert f'id="health_assets.{name}"' in page
    assert "HealthAssetsComponent" in page
