"""The recipes: the page's blocks are run in their order, and what they make is what the tables hold."""

import json
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from health_assets.apps.demo.sample_fleet import SPAN_H, TARGETS_YAML
from health_assets.apps.demo.samples import sample_files, span_until
from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.projects import REPOSITORY, Project, Row
from health_assets_tests.support.walked import blocks_of

PAGE = (REPOSITORY / "docs" / "recipes.md").read_text(encoding="utf-8")
BLOCKS = [code for _, language, code in blocks_of(PAGE) if language == "python"]
END = START + SPAN_H * HOUR
NEWEST = END - HOUR
NEEDED = ("ingest", "health_components", "agent_health", "usage_components", "agent_usage")
"""Steps that make the tables of the page; the others would take twice as long."""
NEEDS_POLARS = "import polars"

Numbers = dict[str, Any]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The demo's logs, of which a day and some hours are materialized, where the page looks for them."""
    made = Project(tmp_path_factory.mktemp("recipes") / "data" / "demo")
    made.write_files(sample_files(span_until(END)))
    (made.folder / "targets.yaml").write_text(TARGETS_YAML, encoding="utf-8")
    made.targets = {}
    made.materialize(HourRange(END - 26 * HOUR, END), only=NEEDED)
    return made


@pytest.fixture(scope="module")
def made(project: Project) -> Numbers:
    """The names that the blocks define, run in one process in the folder of the demo."""
    namespace: Numbers = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.folder.parents[1])
        for code in BLOCKS:
            if NEEDS_POLARS not in code or find_spec("polars") is not None:
                exec(code, namespace)
    return namespace


@pytest.fixture(scope="module")
def scores(project: Project) -> list[Row]:
    return project.rows("agent_health")


def at(scores: list[Row], hour: Any) -> dict[str, Row]:
    return {row["agent_id"]: row for row in scores if row["hour"] == hour}


def close(found: Any, expected: Any) -> bool:
    return bool(pd.isna(found)) if expected is None else found == pytest.approx(expected)


def test_the_frame_of_the_newest_hour_is_that_of_the_table(made: Numbers, scores: list[Row]) -> None:
    rows = at(scores, NEWEST)
    assert set(made["newest"].agent_id) == set(rows)
    assert all(close(row.health_score, rows[row.agent_id]["health_score"]) for row in made["newest"].itertuples())


@pytest.mark.parametrize("read", [pd.read_csv, pd.read_parquet], ids=["csv", "parquet"])
def test_files_hold_every_row_and_column(
    project: Project, made: Numbers, scores: list[Row], read: Callable[[Path], pd.DataFrame]
) -> None:
    assert made
    name = "agent_health.csv" if read is pd.read_csv else "agent_health.parquet"
    frame = read(project.folder.parents[1] / name)
    assert [*frame.columns] == [*scores[0]]
    assert len(frame) == len(scores)
    assert frame.health_score.sum() == pytest.approx(sum(row["health_score"] or 0 for row in scores))


def test_the_folder_of_executions_has_one_for_each_day(project: Project, made: Numbers) -> None:
    assert made
    folder = project.folder.parents[1] / "executions"
    rows = project.query("SELECT strftime(hour, 'day=%Y-%m-%d'), count(*) FROM executions GROUP BY 1")
    assert {path.name for path in folder.iterdir()} == {day for day, _ in rows}
    [(count,)] = duckdb.sql(f"SELECT count(*) FROM '{folder}/*/*.parquet'").fetchall()
    assert count == sum(count for _, count in rows)


@pytest.mark.skipif(find_spec("polars") is None, reason="polars is not installed")
def test_polars_finds_the_agents_that_failed(made: Numbers, scores: list[Row]) -> None:
    failures = {row["agent_id"]: 0 for row in scores if row["failures"]}
    for row in scores:
        if row["agent_id"] in failures:
            failures[row["agent_id"]] = max(failures[row["agent_id"]], row["failures"])
    assert {row["agent_id"]: row["most_failures"] for row in made["failing"].to_dicts()} == failures


def test_the_curve_has_every_hour_of_both_agents(project: Project, made: Numbers, scores: list[Row]) -> None:
    two = [row for row in scores if row["agent_id"] in ("crm-sync", "contract-summarizer")]
    assert len(made["curve"]) == len(two) == 52
    page = (project.folder.parents[1] / "scores.html").read_text(encoding="utf-8")
    [spec] = re.findall(r"var spec = (\{.*?\});\n", page)
    [drawn] = json.loads(spec)["datasets"].values()
    assert sorted(point["health_score"] for point in drawn) == pytest.approx(sorted(row["health_score"] for row in two))


def test_what_changed_between_two_days_adds_up_by_dimension(made: Numbers, scores: list[Row]) -> None:
    before, after = at(scores, NEWEST - 24 * HOUR), at(scores, NEWEST)
    assert len(made["changed"]) > 3
    for row in made["changed"].itertuples():
        old, new = before[row.agent_id], after[row.agent_id]
        assert (row.state_before, row.state) == (old["state"], new["state"])
        if old["health_score"] is not None and new["health_score"] is not None:
            assert row.change == pytest.approx(new["health_score"] - old["health_score"])
            parts = row.by_reliability + row.by_performance + row.by_stability + row.by_operation
            assert parts == pytest.approx(row.change)
    moved = {name for name in before.keys() & after.keys() if before[name]["state"] != after[name]["state"]}
    assert moved <= set(made["changed"].agent_id)


def test_the_ten_that_got_worst_are_those_farthest_below_their_best(made: Numbers, scores: list[Row]) -> None:
    known = [row for row in scores if row["health_score"] is not None and not row["is_provisional"]]
    best: dict[str, float] = {}
    for row in known:
        best[row["agent_id"]] = max(row["health_score"], best.get(row["agent_id"], 0.0))
    fell = {name: best[name] - row["health_score"] for name, row in at(known, NEWEST).items()}
    expected = sorted(fell, key=lambda name: (-fell[name], name))[:10]
    assert [*made["fell"].agent_id] == expected
    assert [*made["fell"].fell_by] == pytest.approx([fell[name] for name in expected])
    assert made["fell"].fell_by[0] > 10


def test_own_tables_join_by_agent(project: Project, made: Numbers) -> None:
    usage = {row["agent_id"]: row for row in project.rows("agent_usage") if row["hour"] == NEWEST}
    found = {row.cost_centre: row for row in made["costs"].itertuples()}
    for centre, name in (("sales", "crm-sync"), ("research", "web-researcher"), ("finance", "invoice-reader")):
        assert (found[centre].agents, found[centre].successes) == (1, usage[name]["successes"])
        assert close(found[centre].cost_usd, usage[name]["cost_usd"])
