"""An agent's page tells the claims that evidence contradicts, and what an agent is that runs too rarely for its window."""

import io
import re
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console

from health_assets.apps.report.agent import print_agent
from health_assets.apps.serving.documents import agents_of
from health_assets.apps.serving.pages.agent_page import WantedOfAgent, agent_page
from health_assets.apps.serving.vocabulary import EXTENSION
from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.agent_health_model.names import CLAIMS
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.projects import Project
from health_assets_tests.support.session_pages_made import html_of

HOURS = HourRange(START, START + 6 * HOUR)
WINDOW_HOURS = 2
TARGETS = {"defaults": {"n_full": 3}, "agents": {"liar": {"n_full": 1}}}
FAILED = {"status": "failure", "error": "down"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    project = Project(tmp_path_factory.mktemp("claims"), TARGETS, WINDOW_HOURS, 12)
    minutes = [START + timedelta(minutes=minute) for minute in (30, 150, 280, 290, 300, 310)]
    lies = [
        execution(f"lie-{place}", "liar", at, error="Timeout", **({} if place % 2 else {"error_count": 12}))
        for place, at in enumerate(minutes)
    ]
    rare = [
        execution(f"rare-{place}", "rare", START + timedelta(minutes=minute), **(FAILED if place == 1 else {}))
        for place, minute in enumerate((10, 130, 250))
    ]
    never = [execution("never-1", "never", START + timedelta(minutes=310))]
    project.write_log("a.jsonl", map(line, [*lies, *rare, *never]))
    project.materialize(HOURS)
    return world_of(project, HOURS)


def page(world: World, agent_id: str, hour: int = 5, **look: Any) -> dict[str, Any]:
    return dict(agent_page(world.look(hour=START + hour * HOUR, **look), agent_id, WantedOfAgent()).data)


def shown(world: World, agent_id: str) -> str:
    """What a reader sees of the page, without its markup."""
    look = world.look()
    return re.sub(r"<[^>]*>", "", html_of(agent_page(look, agent_id, WantedOfAgent()), look))


def test_the_page_counts_claims_of_the_window_with_the_latest_line_of_each(world: World) -> None:
    told = page(world, "liar")
    assert [(one["claim"], one["runs"], one["event_id"], one["line_number"]) for one in told["claims"]] == [
        ("successes_with_an_error", 4, "lie-5", 6),
        ("successes_with_many_errors", 2, "lie-4", 5),
    ]
    assert told["claims"][0]["words"] == CLAIMS["successes_with_an_error"]
    assert told["doubts"][-1] == (
        "Its logs contradict themselves: 4 executions succeeded, and state an error, and one more claim does not hold. "
        "The score believes what is claimed."
    )
    assert [one["runs"] for one in page(world, "liar", hour=0)["claims"]] == [1, 1]
    assert page(world, "liar", hour=1)["claims"] == page(world, "liar", hour=0)["claims"]
    assert page(world, "liar")["agent"]["health_score"] == 100.0


def test_the_page_shows_claims_and_says_where_there_are_none(world: World) -> None:
    text = shown(world, "liar")
    for words in ("Claims against evidence", CLAIMS["successes_with_an_error"], "lie-5", "a.jsonl:6"):
        assert words in text, words
    assert "Timeout" not in text
    assert page(world, "rare")["claims"] == []
    assert "Nothing that the logs say of its executions is contradicted" in shown(world, "rare")


BY_LAST_RUNS = "healthy, 91.6 (40 of 100 tested), over its last 3 runs, since 2026-06-07 00:00 UTC: 2 succeeded"
"""60 points, and of 40 the share 0.7 x (2 / 3) / 0.95 + 0.3."""


def test_a_rare_agent_has_a_verdict_by_its_last_runs(world: World) -> None:
    rows = {row["agent_id"]: row for row in world.project.rows("agent_health", HourRange.of(HOURS.end - HOUR))}
    assert rows["rare"]["is_provisional"] and rows["rare"]["n"] == 1 and rows["rare"]["state"] == "healthy"
    assert page(world, "rare")["doubts"][0] == (
        f"The score is provisional, 1 of 3 runs: with so few it leans to 100. It is {BY_LAST_RUNS}."
    )
    assert "healthy over its last 3 runs, since 06-07 00:00" in shown(world, "rare")
    assert page(world, "never")["doubts"][0].endswith("leans to 100.")  # there are no more runs
    assert page(world, "rare", hour=3)["agent"]["last_runs"] is None  # two so far
    assert page(world, "liar")["agent"]["last_runs"] is None  # its window holds enough


def test_the_terminal_counts_claims_too(world: World) -> None:
    console = Console(file=io.StringIO(), width=140, color_system=None)
    with world.project.warehouse.read() as session:
        print_agent(console, session, HourRange(HOURS.end - WINDOW_HOURS * HOUR, HOURS.end), "liar")
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Claims that evidence contradicts in 2 h, which scores count" in said
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "4 × succeeded, and state an error latest lie-5, a.jsonl:6" in lines


def test_the_terminal_and_the_document_say_so_too(world: World) -> None:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    hour = HOURS.end - HOUR
    with world.project.warehouse.read() as session:
        print_agent(console, session, HourRange(HOURS.end - WINDOW_HOURS * HOUR, HOURS.end), "rare")
        rows = {row["agent_id"]: row for row in session.dicts(agents_of(session, hour))}
    assert BY_LAST_RUNS in console.file.getvalue()  # type: ignore[attr-defined]
    assert (rows["rare"]["last_runs"], rows["rare"]["last_runs_failures"]) == (3, 1)
    assert rows["never"]["last_runs"] is None
    with world.served() as server:
        documents = {agent: server.ask(f"/agents/{agent}/.well-known/agent-health").json for agent in ("rare", "never")}
    score = documents["rare"]["extensions"][EXTENSION]
    assert score["is_provisional"] and score["n"] == 1
    assert score["last_runs"] == {
        "state": "healthy", "n": 3, "failures": 1, "score": pytest.approx(91.6491, abs=1e-3),
        "points_at_stake": 40.0, "since": "2026-06-07T00:00:00Z",
    }  # fmt: skip
    assert "last_runs" not in documents["never"]["extensions"][EXTENSION]
    assert page(world, "rare")["document"]["extensions"] == documents["rare"]["extensions"]
