"""The first word of every place that says a state: what the agents do now, before any score of 24 hours."""

import io
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from health_assets.apps.report.agent import print_agent
from health_assets.apps.report.blocks import print_health
from health_assets.apps.serving.access_scope import EVERYBODYS
from health_assets.apps.serving.pages import incident_rows
from health_assets.apps.serving.pages.agent_page import WantedOfAgent, agent_page
from health_assets.apps.serving.pages.fleet_now import STANDINGS, in_order, now_of_fleet, with_standing
from health_assets.apps.serving.pages.fleet_page import Wanted, fleet_page
from health_assets.apps.serving.pages.incident_rows import open_incidents
from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring import verdict
from health_assets.systems.agent_now import names
from health_assets_tests.support.outages_made import BACK, DOWN, FEW, FINE, HOURS, QUIET, SECRET, outage_project
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.serving_made import Served

PAGE = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_of(outage_project(tmp_path_factory.mktemp("outage")), HOURS)


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Served]:
    with world.served(metrics_agents=(DOWN,)) as running:
        yield running


def printed(world: World, agent_id: str | None = None, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with world.project.warehouse.read() as session:
        if agent_id is None:
            print_health(console, session, HOURS)
        else:
            print_agent(console, session, HourRange(HOURS.end - 24 * HOUR, HOURS.end), agent_id)
    return console.file.getvalue()  # type: ignore[attr-defined]


def page_of(world: World, agent_id: str, **look: Any) -> dict[str, Any]:
    return dict(agent_page(world.look(**look), agent_id, WantedOfAgent()).data)


def test_words_are_those_of_the_table() -> None:
    assert set(verdict.NOW) == set(names.VERDICTS) and verdict.GOOD_HOURS == names.RECOVERY_HOURS


# -- the fleet's page --


def test_the_fleet_s_page_begins_with_who_is_failing_now(server: Served) -> None:
    body = server.ask("/", headers=PAGE).body.decode()
    now, score = body.index("1 agent is FAILING now"), body.index("Fleet score, over 24 h")
    assert now < score, "the outage comes before the mean of 24 hours"
    head = body[now:score]
    assert DOWN in head and "12 of 12 failed in the last hour" in head
    assert "401 Unauthorized" in head and "[redacted]" in head and SECRET not in body
    assert re.search(r"100\.0 <span[^>]*>\(40 tested\)</span> healthy", head), (
        "24 hours still look good, and stand behind"
    )
    assert "(40 tested)" in head and "healthy or provisional" in body[score:]
    assert "recovering, 1 of 3 good hours" in head and head.index(DOWN) < head.index(BACK)


def test_each_agent_counts_once_and_a_provisional_one_never_as_healthy(world: World) -> None:
    told = fleet_page(world.look(), Wanted()).data
    assert told["states"] == dict.fromkeys(STANDINGS, 0) | {
        "failing": 1, "recovering": 1, "provisional": 1, "healthy": 2,
    }  # fmt: skip
    assert told["now"]["counts"] == {"failing": 1, "suspect": 0, "recovering": 1, "ok": 2, "quiet": 1}
    assert [one["name"] for one in told["groups"]] == ["failing", "recovering", "provisional", "healthy"]
    assert sum(told["states"].values()) == told["agents"] == 5
    only = fleet_page(world.look(), Wanted(state="healthy")).data["listed"]
    assert {one["agent_id"] for one in only} == {QUIET, FINE}


def test_lists_have_failing_agents_first_whatever_their_score(world: World) -> None:
    listed = fleet_page(world.look(), Wanted()).data["listed"]
    assert [one["agent_id"] for one in listed[:3]] == [DOWN, BACK, FEW]
    by_score = fleet_page(world.look(), Wanted(sort="score")).data["listed"]
    stakes = [(one["health_score"], one["points_at_stake"]) for one in by_score]
    assert stakes == sorted(stakes), "of equal scores that comes first of which fewer points could be lost"


def test_after_agents_in_trouble_now_come_spent_error_budgets(world: World) -> None:
    told = fleet_page(world.look(), Wanted()).data["now"]
    assert [one["agent_id"] for one in told["worst"]] == [DOWN, BACK], "the budget of one that recovers is told once"
    agents = world.look().at("agents")
    spent = {BACK: 2.5, FINE: 3.0, FEW: 1.0}
    budgets = pa.array([spent.get(name, 0.2) for name in agents["agent_id"].to_pylist()])
    changed = agents.set_column(agents.column_names.index("budget_spent"), "budget_spent", budgets)
    ordered = in_order(with_standing(changed))
    assert ordered["agent_id"].to_pylist()[:5] == [DOWN, BACK, FINE, FEW, QUIET]
    now = now_of_fleet(world.look(), ordered)
    assert (now["budgets_spent"], [one["agent_id"] for one in now["worst"]]) == (3, [DOWN, BACK, FINE, FEW])


def test_points_that_nobody_judged_are_not_shown_as_earned(world: World, server: Served) -> None:
    listed = {one["agent_id"]: one for one in fleet_page(world.look(), Wanted()).data["listed"]}
    assert (listed[FEW]["health_score"], listed[FEW]["points_at_stake"]) == (100.0, 8.0), "4 of 20 runs, of 40 points"
    assert listed[FINE]["points_at_stake"] == 80.0, "its runtime is expected; there is neither SLA nor trigger"
    body = server.ask("/", headers=PAGE).body.decode()
    assert "(8 tested)" in body and "Only 8 of 100 points could be lost" in body
    page = server.ask(f"/ui/agents/{FEW}", headers=PAGE).body.decode()
    assert "only 8 of 100 points could be lost" in page
    assert (
        "Points counted in full, though nothing tested them: 40 of performance and stability (no runtime is expected), "
        "12 of SLAs (no execution has a limit and a runtime), 8 of triggers (the logs tell of none), "
        "32 of reliability (4 of 20 runs)."
    ) in page


def test_without_rights_the_error_is_withheld_and_the_outage_is_not(world: World) -> None:
    told = page_of(world, DOWN, view=EVERYBODYS)["now"]
    assert (told["word"], told["error"]) == ("FAILING now", "The error is withheld.")


# -- why --


def test_why_leads_with_the_last_hour(world: World, server: Served) -> None:
    now = page_of(world, DOWN)["now"]
    assert (now["word"], now["evidence"]) == ("FAILING now", "12 of 12 failed in the last hour")
    assert now["since"] == HOURS.end - HOUR
    assert now["error"] == "Every one with: 401 Unauthorized: invalid x-api-key [redacted]"
    assert [(one["dimension"], one["value"]) for one in now["causes"]] == [("version", "2.1.0")]
    body = server.ask(f"/ui/agents/{DOWN}", headers=PAGE).body.decode()
    assert body.index("FAILING now: 12 of 12 failed in the last hour") < body.index("Why the score")
    assert "12 of 12</b> failures <bdi>on version 2.1.0" in body


def test_a_tool_that_failed_once_is_not_to_blame(world: World) -> None:
    told = page_of(world, DOWN)
    assert told["worst_tool"] is None
    assert all(one["dimension"] != "tool" for one in told["now"]["causes"])


def test_a_recovering_agent_says_how_many_good_hours_it_had(world: World, server: Served) -> None:
    assert page_of(world, BACK)["now"]["word"] == "recovering, 1 of 3 good hours"
    assert "Recovering, 1 of 3 good hours" in server.ask(f"/ui/agents/{BACK}", headers=PAGE).body.decode()


def test_an_hour_back_nothing_was_failing(world: World) -> None:
    before = page_of(world, DOWN, hour=HOURS.end - 2 * HOUR)["now"]
    assert (before["verdict"], before["error"], before["causes"]) == ("ok", None, [])


# -- programs --


def test_the_api_says_now_first(server: Served) -> None:
    agents = server.ask("/agents").json["agents"]
    assert [one["agent_id"] for one in agents[:2]] == [DOWN, BACK]
    assert (agents[0]["now"], agents[0]["state"]) == ("failing", "healthy")
    assert agents[0]["now_since"] == f"{HOURS.end - HOUR:%Y-%m-%dT%H:%M:%SZ}"
    assert [one["agent_id"] for one in server.ask("/agents?now=failing").json["agents"]] == [DOWN]
    assert {one["agent_id"] for one in server.ask("/agents?state=healthy").json["agents"]} == {DOWN, BACK, QUIET, FINE}
    assert [one["agent_id"] for one in server.ask("/agents?state=provisional").json["agents"]] == [FEW]
    assert server.ask("/agents?state=healthy&now=failing").status == 422
    one = server.ask(f"/agents/{DOWN}").json
    assert one["now_sentence"] == "FAILING now: 12 of 12 failed in the last hour"
    assert (one["last_hours"]["executions"], one["last_hours"]["failures"]) == (12, 12)
    hour = one["short_windows"][0]
    assert (hour["window_hours"], hour["n"], hour["state"]) == (1, 12, "degraded")
    assert hour["health_score"] == pytest.approx(40 * (0.6 * 0.3 / 12 + 0.4) + 60)
    assert [window["window_hours"] for window in one["short_windows"]] == [1, 6]
    assert (one["health_score"], one["points_at_stake"]) == (100.0, 40.0)
    assert [window["points_at_stake"] for window in one["short_windows"]] == [40 * 12 / 20, 40.0]


def test_the_health_document_carries_the_verdict_of_now(server: Served) -> None:
    document = server.ask(f"/agents/{DOWN}/.well-known/agent-health").json
    assert document["extensions"]["org.health-assets.agent-now"] == {
        "verdict": "failing",
        "since": f"{HOURS.end - HOUR:%Y-%m-%dT%H:%M:%SZ}",
    }


def test_metrics_count_agents_by_what_they_do_now(server: Served) -> None:
    lines = server.ask("/metrics").body.decode().splitlines()
    assert 'health_assets_agents_now{verdict="failing"} 1.0' in lines
    assert 'health_assets_agents{state="provisional"} 1.0' in lines
    assert 'health_assets_agents{state="healthy"} 4.0' in lines
    assert f'health_assets_agent_now{{agent_id="{DOWN}",verdict="failing"}} 1.0' in lines


# -- the terminal --


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_says_now_first(world: World, width: int) -> None:
    told = printed(world, width=width)
    now, fleet, *_ = (block.splitlines() for block in told.strip().split("\n\n"))
    assert now[0].startswith("Now at ") and " 1 FAILING  1 recovering  2 ok  1 quiet" in now[0]
    [down] = [row for row in now if row.startswith(DOWN)]
    assert "FAILING" in down and "12 of 12" in down and "401" in down, "who, how many, and with which error"
    assert any(row.startswith(BACK) and "recovering" in row for row in now) and SECRET not in told
    assert fleet[0].startswith("Fleet at ") and " over 24 h" in fleet[0]
    assert any("healthy?" in row and re.search(r" 100\.0 +8 ", row) for row in fleet)
    assert any(row.startswith("tested: points of 100 that could be lost") for row in fleet)
    assert [row.split()[0] for row in fleet if row.startswith((DOWN, BACK, FEW))] == [DOWN, BACK, FEW]
    assert all("FAILING" in row for row in fleet if row.startswith(DOWN)), "never healthy 100.0 alone"
    assert all(len(row) <= width for row in (*now, *fleet))


def test_an_agent_s_report_begins_with_now(world: World) -> None:
    told = printed(world, DOWN)
    assert "FAILING now: 12 of 12 failed in the last hour" in told.splitlines()[2]
    assert "Every one with: 401 Unauthorized: invalid x-api-key [redacted]" in told
    assert "12 of 12 failures on version 2.1.0, the only one that ran" in told
    assert "over 24 h: healthy, 100.0 of 100 (only 40 of 100 points could be lost)" in told
    assert "failures with model" not in told, "it ran with that model before, and succeeded"


def test_incidents_of_agents_come_before_those_of_the_pipeline(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table(
        {
            "incident_id": ["p", "a"],
            "subject_kind": ["pipeline", "agent"],
            "is_open": [True, True],
            "place": [0, 1],
            "opened_at": [HOURS.end, HOURS.end - timedelta(hours=1)],
        }
    )
    monkeypatch.setattr(incident_rows, "seen_incidents", lambda _: rows)
    assert open_incidents(world.look(), agents_first=True)["incident_id"].to_pylist() == ["a", "p"]
    assert open_incidents(world.look())["incident_id"].to_pylist() == ["p", "a"]
