"""The fleet's page counts, groups and compares agents as the tables have them, and shows any name as text."""

import csv
import html
import io
import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from health_assets.apps.serving.access_scope import EVERYBODYS, AccessScope
from health_assets.apps.serving.auth import Caller
from health_assets.apps.serving.history import exporter
from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.history.updater import Updater
from health_assets.apps.serving.ownership import Ownership
from health_assets.apps.serving.pages import fleet_page as fleet_module
from health_assets.apps.serving.pages.fleet_page import LEAST_DROP, MOST_SQUARES, Wanted, _squares_each, fleet_page
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.page_service import Pages
from health_assets.apps.serving.pages.rendering import squares
from health_assets.apps.serving.pages.usage_page import Wanted as WantedUsage
from health_assets.apps.serving.pages.usage_page import usage_page
from health_assets.apps.serving.service import RequestContext
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import Targets
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import FULL, World, fill_all, world_of
from health_assets_tests.support.projects import FLEET, Project
from health_assets_tests.support.serving_made import readers_in_this_process
from health_assets_tests.support.session_pages_made import html_of

HOURS = HourRange(START, START + 26 * HOUR)
HOSTILE = 'x"><script>alert(1)</script>\u202e\x1b[31m' + "y" * 900
TARGETS: dict[str, Any] = {
    "defaults": {"expected_runtime_s": 60.0},
    "agents": {"mine": {"personal": True}, "red-1": {"team": "red"}, "red-2": {"team": "red"}},
}
AGENTS = (HOSTILE, "mine", "red-1", "red-2", "steady")


def _lines() -> list[str]:
    """Each agent runs every hour; from the second day on, red-1 fails and is slow."""
    made = []
    for number, hour in enumerate(HOURS):
        for place, agent_id in enumerate(AGENTS):
            is_bad = agent_id == "red-1" and number >= 20
            made.append(
                line(
                    execution(
                        f"{number}-{place}", agent_id, hour + timedelta(minutes=5 + place), 300.0 if is_bad else 30.0,
                        status="failure" if is_bad else "success", platform="desk" if place % 2 else "web",
                    )
                )
            )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    project = Project(tmp_path_factory.mktemp("fleet"), targets=TARGETS)
    project.write_log("a.jsonl", _lines())
    project.materialize(HOURS)
    return world_of(project, HOURS)


def _frame(world: World, view: AccessScope = FULL) -> dict[str, Any]:
    around = {"signed_in": None, "has_alerts": False, "missing": 0, "page_name": "fleet", "target": "/"}
    return {**world.look(view).frame(), **around}


def _standings(world: World) -> Counter[str]:
    """By the tables, the agents that fail now, and the states of the others."""
    rows = world.project.query(
        "SELECT CASE WHEN verdict = 'failing' THEN verdict ELSE state END "
        "FROM agent_health JOIN agent_now USING (hour, agent_id) WHERE hour = ?",
        [world.hour],
    )
    return Counter(standing for (standing,) in rows)


def test_states_and_score_are_those_of_the_tables(world: World) -> None:
    told = fleet_page(world.look(), Wanted()).data
    assert {state: count for state, count in told["states"].items() if count} == _standings(world)
    [(score,)] = world.project.query("SELECT health_score FROM system_health WHERE hour = ?", [world.hour])
    assert told["fleet"]["score"] == score
    assert len(told["fleet"]["curve"]) == len(HOURS)


def test_who_got_worse_is_by_the_scores_of_the_same_hour_a_day_before(world: World) -> None:
    expected = world.project.query(
        "SELECT now.agent_id, before.health_score - now.health_score AS lost "
        "FROM agent_health AS now JOIN agent_health AS before USING (agent_id) "
        "WHERE now.hour = ? AND before.hour = ? AND lost >= ? ORDER BY lost DESC",
        [world.hour, world.hour - timedelta(days=1), LEAST_DROP],
    )
    told = fleet_page(world.look(), Wanted()).data["worse"]
    assert [(one["agent_id"], one["drop"]) for one in told["1"]] == expected
    assert [agent_id for agent_id, _ in expected] == ["red-1"]


def test_an_hour_that_is_not_there_is_no_sign_that_nobody_got_worse(world: World) -> None:
    page = fleet_page(world.look(), Wanted())
    assert page.data["worse"]["7"] is None
    html = page.written("html", _frame(world))[0].decode()
    assert f"the history begins at {HOURS.start:%Y-%m-%d %H:%M} UTC" in html


def test_pages_say_from_when_outdated_numbers_are(world: World) -> None:
    words = "How agents are now is not known."
    page = fleet_page(world.look(), Wanted())
    assert words not in page.written("html", _frame(world))[0].decode()
    old = world.look(now=world.hours.end + timedelta(days=170), max_age_s=7200.0)
    html = page.written("html", {**_frame(world), **old.frame()})[0].decode()
    assert words in html
    assert f">{world.hours.end:%Y-%m-%d %H:%M}</time> UTC, 170 d ago." in html


def test_search_and_group_and_state_narrow_the_list(world: World) -> None:
    found = fleet_page(world.look(), Wanted(text="RED")).data
    assert sorted(one["agent_id"] for one in found["listed"]) == ["red-1", "red-2"]
    by_team = fleet_page(world.look(), Wanted(group="team")).data["groups"]
    assert {(one["name"], one["agents"], one["healthy"]) for one in by_team} == {("red", 2, 1), (None, 3, 3)}
    only = fleet_page(world.look(), Wanted(group="team", of="red")).data
    assert only["found"] == 2
    assert fleet_page(world.look(), Wanted(text="nobody")).data["listed"] == []


@pytest.mark.parametrize("sort", ["urgency", "score", "name", "n", "budget"])
def test_each_order_lists_every_agent_once(world: World, sort: Any) -> None:
    listed = fleet_page(world.look(), Wanted(sort=sort)).data["listed"]
    assert sorted(one["agent_id"] for one in listed) == sorted(AGENTS)
    assert sort != "urgency" or listed[0]["agent_id"] == "red-1"


def test_a_personal_agent_is_in_no_list_of_who_lacks_the_full_view(world: World) -> None:
    page = fleet_page(world.look(EVERYBODYS), Wanted())
    assert "mine" not in page.written("html", _frame(world, EVERYBODYS))[0].decode().replace("determine", "")
    assert (page.data["agents"], page.data["hidden"]) == (len(AGENTS) - 1, 1)


def test_score_and_curve_tell_nothing_of_a_personal_agent(world: World) -> None:
    told = fleet_page(world.look(EVERYBODYS), Wanted()).data
    sql = "SELECT avg(health_score) FROM agent_health WHERE hour = ? AND agent_id <> 'mine'"
    [(of_others,)] = world.project.query(sql, [world.hour])
    [(of_all,)] = world.project.query("SELECT health_score FROM system_health WHERE hour = ?", [world.hour])
    assert told["fleet"] == {"score": pytest.approx(of_others), "curve": [], "changes": {}}
    assert of_others != pytest.approx(of_all)
    in_full = fleet_page(world.look(EVERYBODYS, ownership=Ownership(Targets())), Wanted()).data
    assert in_full["fleet"]["score"] == of_all, "where nobody has an agent of its own, nothing is left out"


def test_who_is_limited_to_teams_sees_these_and_no_number_of_the_fleet(world: World) -> None:
    look = world.look(AccessScope(teams=frozenset({"red"})))
    page = fleet_page(look, Wanted())
    told = page.data
    assert told["hidden"] is None
    assert usage_page(look, WantedUsage()).data["hidden"] is None
    assert "not yours to see" not in page.written("html", _frame(world, look.view))[0].decode()
    assert sorted(one["agent_id"] for one in told["listed"]) == ["red-1", "red-2"]
    assert (told["fleet"]["curve"], told["trust"]["rejected_lines"]) == ([], None)


def test_a_hostile_name_is_shown_as_text_in_all_three_ways(world: World) -> None:
    page = fleet_page(world.look(), Wanted())
    html = page.written("html", _frame(world))[0].decode()
    assert "<script>alert" not in html
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "\\u202e" in html
    told = json.loads(page.written("json", {})[0])
    assert HOSTILE in {one["agent_id"] for one in told["listed"]}
    rows = list(csv.DictReader(io.StringIO(page.written("csv", {})[0].decode(), newline="")))
    assert HOSTILE in {row["agent_id"] for row in rows}


def test_a_spreadsheet_takes_no_name_for_a_formula() -> None:
    page = Page(name="fleet", title="Fleet", data={"listed": [{"agent_id": "=1+1"}]}, listing="listed")
    assert page.written("csv", {})[0].decode().splitlines()[1] == "'=1+1"


@pytest.mark.parametrize("sizes", [[], [5], [100_000, 3, 50_000], [400, 400, 400, 400], [1] * 60])
def test_squares_are_shared_so_that_small_groups_are_whole(sizes: list[int]) -> None:
    shares = _squares_each(sizes)
    assert sum(shares) == min(sum(sizes), MOST_SQUARES)
    for size, share in zip(sizes, shares, strict=True):
        assert share == size or share >= max(shares) - len(sizes)


def test_json_says_how_many_hours_are_still_to_be_copied() -> None:
    page = Page(name="fleet", title="Fleet", data={})
    assert json.loads(page.written("json", {"missing": 7})[0])["hours_to_copy"] == 7
    assert json.loads(page.written("json", {})[0])["hours_to_copy"] == 0


def _made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records which squares are asked for from now on, and makes none."""
    made: list[Any] = []
    monkeypatch.setattr(fleet_module, "_groups", lambda *wanted: made.append(wanted) or [])
    return made


def test_what_the_page_rests_on_is_made_before_somebody_asks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    updater = Updater(world.project.settings.model_copy(update={"history": world.project.folder / "history"}), print)
    pages = Pages(world.project.settings, updater)
    made = _made(monkeypatch)
    pages.make_ahead(updater.history, lambda look: fleet_page(look, Wanted()))
    assert len(made) == len([EVERYBODYS, FULL])
    asked = RequestContext(headers=[], caller=Caller(name=None, standing="read", view=EVERYBODYS))
    assert pages.answer(asked, lambda look: fleet_page(look, Wanted()), hour=None, how="html").status == 200
    assert len(made) == len([EVERYBODYS, FULL]), "it was remembered"


def test_a_step_to_another_hour_keeps_what_was_chosen_but_for_the_page_of_the_list(world: World) -> None:
    updater = Updater(world.project.settings.model_copy(update={"history": world.project.folder / "history"}), print)
    caller = Caller(name=None, standing="read", view=FULL)
    before = world.hour - HOUR
    asked = RequestContext(
        headers=[], caller=caller, target=f"/?hour={before:%Y-%m-%dT%H}&q=a%26b&group=team&page=2".encode()
    )
    pages = Pages(world.project.settings, updater)
    shown = pages.answer(asked, lambda look: fleet_page(look, Wanted()), hour=f"{before:%Y-%m-%dT%H}", how="html")
    text = html.unescape(shown.body.decode())
    for hour in (before - HOUR, world.hour):
        assert f'href="?hour={hour:%Y-%m-%dT%H}&q=a%26b&group=team"' in text
    assert 'class="newest" href="?q=a%26b&group=team"' in text
    assert '<input type="hidden" name="q" value="a&b"><input type="hidden" name="group" value="team">' in text


SHOWN = (*FLEET, "now_components", "agent_now", "evidence_components", "score_evidence")


def test_a_page_shows_the_history_of_before_until_that_of_now_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path)
    for number in range(2):
        project.write_log(f"{number}.jsonl", [line(execution(f"e{number}", "a", START + number * HOUR))])
    project.materialize(HourRange.of(START), only=SHOWN)
    folder = tmp_path / "history"
    fill_all(project, folder, START + 2 * HOUR)
    settings = project.settings.model_copy(update={"history": folder, "history_days": 400})
    with readers_in_this_process():
        updater = Updater(settings, print)
        pages = Pages(settings, updater)
        asked = RequestContext(headers=[], caller=Caller(name=None, standing="read", view=EVERYBODYS))
        seen: list[datetime] = []
        shown_meanwhile: list[datetime] = []

        def shown() -> datetime:
            return pages.seen(asked, lambda look: look.hour)

        def make_ahead(history: History) -> None:
            pages.make_ahead(history, lambda look: seen.append(look.hour) or fleet_page(look, Wanted()))
            shown_meanwhile.append(shown())

        updater.on_new, updater.on_taken = make_ahead, pages.forget_older
        updater._work()
        assert set(seen) == {START}, "what was there before the server started"
        project.materialize(HourRange.of(START + HOUR), only=SHOWN)
        steps = len(shown_meanwhile)  # a slow machine takes more of them
        updater._work()
        assert shown_meanwhile[steps] == START, "while the next one is made"
    assert (shown(), seen[-1]) == (START + HOUR, START + HOUR)
    made = _made(monkeypatch)
    assert pages.answer(asked, lambda look: fleet_page(look, Wanted()), hour=None, how="html").status == 200
    assert not made, "it was remembered"


def test_what_is_not_copied_yet_is_said_and_never_shown_as_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [execution(f"e{n}", "down", START + n * HOUR / 12, status="failure", error="no route") for n in range(12)]
    project.write_log("a.jsonl", [*map(line, runs), "bad"])
    project.materialize(HourRange.of(START), only=SHOWN)
    monkeypatch.setattr(exporter, "HOLD_S", 0.0)  # one series at a time
    folder = project.folder / "history"
    world = World(project, HourRange.of(START), History(folder))
    seen = []
    while True:
        is_done = not exporter.fill(project.settings, folder, project.warehouse, world.hours.end)["missing"]
        world.history.look()
        if world.history.newest("agents") == START:
            look = world.look()
            page = fleet_page(look, Wanted())
            text, told = html_of(page, look), page.data
            [worst], trust = told["now"]["worst"], told["trust"]
            seen.append((worst["failures"], trust["rejected_lines"]))
            assert ("nothing failed" not in text) and ("no route" in text) == (worst["failures"] == 12)
            assert ("lines rejected in 24 h" in text) == (trust["rejected_lines"] == 1)
            assert ("checks failed in 24 h" in text) == (trust["failed_checks"] is not None)
        if is_done:
            break
    assert seen[0] == (None, None) and seen[-1] == (12, 1)


def test_squares_are_escaped_and_lead_to_the_hour_that_is_looked_at() -> None:
    agent = {"agent_id": HOSTILE, "now": None, "state": "healthy", "is_provisional": True, "health_score": None}
    agent |= {"points_at_stake": None}
    [square] = [squares([agent], "?hour=2026-06-07T13")]
    assert "<script>" not in square
    assert f'href="/ui/agents/{quote(HOSTILE, safe="")}?hour=2026-06-07T13"' in square
    assert 'class="square healthy provisional"' in square
    assert ": – healthy, provisional" in square
    failing = squares([agent | {"now": "failing"}])
    assert 'class="square healthy provisional now-failing"' in failing
    assert ": – healthy, provisional, failing now" in failing
    assert "100.0 healthy, provisional, only 40 of 100 points could be lost" in squares(
        [agent | {"health_score": 100.0, "points_at_stake": 40.0}]
    )
