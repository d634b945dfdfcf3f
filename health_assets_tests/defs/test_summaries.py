"""The small tables that Dagster shows with a materialization."""

from datetime import timedelta
from pathlib import Path

from health_assets.core.hours import HourRange
from health_assets.pipeline.summaries import summary
from health_assets.systems.declared_assets import DERIVED
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.serving_made import HOUR, fill

SCORES = [
    {"agent_id": agent, "health_score": score, "state": state, "n": 100, "n_full": 20, "is_provisional": False}
    for agent, score, state in (("low", 40.0, "unhealthy"), ("failing", 94.5, "healthy"), ("so-so", 80.0, "degraded"))
]


def worst_agents(warehouse: Path) -> list[str]:
    derived, hours = DERIVED["agent_health"], HourRange.of(HOUR)
    with Warehouse(str(warehouse)).read() as session:
        shown = summary(
            session, derived.name, hours, derived.preview_title, derived.preview_rows, derived.empty_without, derived.preview_join
        )  # fmt: skip
    _, _, *rows = shown["worst agents"].text.splitlines()
    return [row.split("|")[2].strip() for row in rows]


def test_the_agent_that_fails_now_stands_before_all_scores(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    now = [
        {"agent_id": agent, "verdict": verdict, "since": HOUR - timedelta(hours=1)}
        for agent, verdict in (("low", "ok"), ("failing", "failing"), ("so-so", "suspect"))
    ]
    fill(path, agent_health=SCORES, agent_now=now)
    assert worst_agents(path) == ["failing", "so-so", "low"]


def test_where_nothing_is_said_of_now_the_worst_verdict_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    fill(path, agent_health=SCORES)
    assert worst_agents(path) == ["low", "so-so", "failing"]
