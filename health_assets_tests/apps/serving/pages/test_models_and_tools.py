"""The pages of models and tools say what the tables say, and tell no more than the API does."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health_assets.apps.serving.access_scope import EVERYBODYS, AccessScope
from health_assets.apps.serving.aggregates import hidden_models
from health_assets.apps.serving.ownership import Ownership
from health_assets.apps.serving.pages import tools_page as tools
from health_assets.apps.serving.pages.models_page import models_page
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.tools_page import tools_page
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import load_targets
from health_assets.scoring.wilson import lower_end
from health_assets.systems.model_health.texts import CAVEAT
from health_assets_tests.support.logs_made import START, line
from health_assets_tests.support.pages_made import FULL, World, world_of
from health_assets_tests.support.projects import Project, hours_from
from health_assets_tests.support.session_pages_made import HOURS, SECRET, TARGETS, html_of, look_at, made

RED = AccessScope(teams=frozenset({"red"}))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return made(tmp_path_factory.mktemp("models"))


def html(world: World, page: Page, view: AccessScope = FULL) -> str:
    return html_of(page, look_at(world, view))


# -- models --


def test_degraded_models_stand_first_with_the_numbers_of_the_warehouse(world: World) -> None:
    expected = world.project.query(
        "SELECT model, health_score, success_count, failure_count, p95_latency_ms, last_error, is_degraded "
        "FROM model_health WHERE hour = ? ORDER BY NOT is_degraded, health_score, model",
        [world.hour],
    )
    names = ("model", "health_score", "success_count", "failure_count", "p95_latency_ms", "last_error", "is_degraded")
    found = models_page(look_at(world)).data["models"]
    assert [tuple(one[name] for name in names) for one in found] == expected
    assert [one["model"] for one in found] == ["shaky", "open", "rare"]
    assert found[0]["is_degraded"]


def test_the_page_says_which_model_answered_and_since_when(world: World) -> None:
    page = models_page(look_at(world))
    told = {one["model"]: (one["last_response_model"], one["previous_response_model"]) for one in page.data["models"]}
    assert told == {"shaky": (None, None), "open": ("open-2", "open-1"), "rare": (None, None)}
    [changed] = [one for one in page.data["models"] if one["model"] == "open"]
    assert changed["response_model_changed_at"] == START + 2 * HOUR + timedelta(minutes=10)
    assert "before by <bdi>open-1</bdi>" in html(world, page)


def test_the_best_model_has_the_highest_score_and_of_equal_ones_most_calls(world: World) -> None:
    assert models_page(look_at(world)).data["best"] == "rare"
    assert models_page(look_at(world, EVERYBODYS)).data["best"] == "open"


def test_a_model_of_a_personal_agent_and_too_few_others_is_for_the_full_view(world: World) -> None:
    page = models_page(look_at(world, EVERYBODYS))
    assert [one["model"] for one in page.data["models"]] == ["shaky", "open"]
    assert "hidden" not in page.data, "it looks like a model that was never seen"
    text = html(world, page, EVERYBODYS)
    assert "more model" not in text
    assert "rare" not in text
    assert SECRET not in text and SECRET not in json.dumps(page.data, default=str)
    assert SECRET in html(world, models_page(look_at(world)))


def test_every_hour_hides_what_the_api_hides_in_that_hour(world: World) -> None:
    ownership = Ownership(load_targets(world.project.targets_path))
    for hour in HOURS:
        with world.project.warehouse.read() as session:
            hidden = hidden_models(session, world.project.settings, HourRange.of(hour), ownership)
            names = {row["model"] for row in session.dicts(hidden)}
        look = look_at(world, EVERYBODYS, hour=hour)
        every = set(look_at(world, hour=hour).at("models").column("model").to_pylist())
        assert set(look.at("models").column("model").to_pylist()) == every - names
        assert names == {"rare"}


def test_a_curve_is_of_the_scores_of_these_hours(world: World) -> None:
    page = models_page(look_at(world))
    expected = world.project.query("SELECT hour, health_score FROM model_health WHERE model = 'shaky' ORDER BY hour")
    assert page.data["drawn"][0] == "shaky"
    assert [(point["hour"], point["m0"]) for point in page.data["curve"]] == expected
    assert len(models_page(look_at(world, hour=START)).data["curve"]) == 1


def test_the_page_says_what_a_fallback_might_have_done_with_failed_calls(world: World) -> None:
    page = models_page(look_at(world))
    [row] = page.data["fallbacks"]
    expected = world.project.query(
        "SELECT model, alternative, failures, avoided_failures_low, avoided_failures_high FROM model_fallback "
        "WHERE hour = ?",
        [world.hour],
    )
    names = ("model", "alternative", "failures", "avoided_failures_low", "avoided_failures_high")
    assert [tuple(row[name] for name in names)] == expected
    assert expected[0][:3] == ("shaky", "rare", 3)
    text = html(world, page)
    assert "0.7 to 3.0" in text and "2 of 2" in text
    assert CAVEAT in text


def test_a_fallback_to_a_model_that_a_personal_agent_calls_is_for_the_full_view(world: World) -> None:
    page = models_page(look_at(world, EVERYBODYS))
    assert page.data["fallbacks"] == models_page(look_at(world, RED)).data["fallbacks"] == []
    assert CAVEAT not in html(world, page, EVERYBODYS)


def test_a_fallback_between_models_of_other_agents_is_for_everybody(tmp_path: Path) -> None:
    project = Project(tmp_path, targets=TARGETS)
    calls = [
        {"type": "model_call", "call_id": f"{model} {hour}", "model": model, "agent_id": agent, "status": status,
         "ended_at": (START + hour * HOUR).isoformat()}
        for hour in range(2)
        for model, agent, status in (
            ("bad", "alpha", "failure"), ("good", "beta", "success"), ("poor", "mine", "failure")
        )
    ]  # fmt: skip
    project.write_log("a.jsonl", [line(record) for record in calls])
    project.materialize(hours_from(START, 2))
    own = world_of(project, hours_from(START, 2))
    for view, expected in ((EVERYBODYS, ["bad"]), (FULL, ["bad", "poor"])):
        found = models_page(look_at(own, view)).data["fallbacks"]
        assert [(row["model"], row["alternative"]) for row in found] == [(model, "good") for model in expected]


def test_who_sees_some_teams_is_told_why_no_model_is_there(world: World) -> None:
    page = models_page(look_at(world, RED))
    assert page.data["models"] == []
    assert page.data["why_none"].startswith("Models are measured over the agents of all teams")
    assert page.data["why_none"] in html(world, page, RED)


def test_after_the_targets_have_changed_nothing_is_shown_by_the_old_ones(world: World) -> None:
    """The history hides what it marked by other rules, until it is copied by the new ones."""
    try:
        personal = {"agents": {**TARGETS["agents"], "alpha": {"personal": True, "team": "red"}}}
        world.project.write_targets(personal)
        assert models_page(look_at(world, EVERYBODYS)).data["models"] == []
        assert len(models_page(look_at(world)).data["models"]) == 3
        world.copy()
        assert models_page(look_at(world, EVERYBODYS)).data["models"] == []
        world.project.write_targets({"agents": {"gamma": {"retired": False}}})
        world.copy()
        assert len(models_page(look_at(world, EVERYBODYS)).data["models"]) == 3
    finally:
        world.project.write_targets(TARGETS)
        world.copy()
    assert len(models_page(look_at(world, EVERYBODYS)).data["models"]) == 2


# -- tools --


def rows(world: World, view: AccessScope = FULL, **wanted: Any) -> list[dict[str, Any]]:
    return list(tools_page(look_at(world, view), tools.Wanted(**wanted)).data["listed"])


def test_tools_stand_worst_first_with_the_numbers_of_the_warehouse(world: World) -> None:
    names = ("agent_id", "tool", "calls", "failures", "failure_share", "p50_latency_ms", "p95_latency_ms", "last_error")
    expected = world.project.query(
        f"SELECT {', '.join(names)} FROM tool_health WHERE hour = ? "
        "ORDER BY failure_share_at_least DESC, calls DESC, agent_id, tool",
        [world.hour],
    )
    assert [tuple(one[name] for name in names) for one in rows(world)] == expected
    assert expected[0][:4] == ("mine", "fetch", 5, 5)


def test_calls_of_nobody_to_a_tool_of_a_personal_agent_are_for_the_full_view(world: World) -> None:
    def nobodys(view: AccessScope) -> set[str]:
        return {one["tool"] for one in rows(world, view, agent="")}

    assert nobodys(FULL) == {"diary", "common"}
    assert nobodys(EVERYBODYS) == {"common"}
    assert nobodys(RED) == set()
    assert {one["agent_id"] for one in rows(world, RED)} == {"alpha"}
    assert "mine" not in {one["agent_id"] for one in rows(world, EVERYBODYS)}
    assert "last_error" not in rows(world, EVERYBODYS)[0]


def test_a_tool_across_agents_adds_calls_and_shows_the_slowest_agent(world: World) -> None:
    [(calls, failures)] = world.project.query(
        "SELECT sum(calls), sum(failures) FROM tool_health WHERE hour = ? AND tool = 'fetch' AND agent_id <> 'mine'",
        [world.hour],
    )
    fetch = next(one for one in rows(world, EVERYBODYS, by="tool") if one["tool"] == "fetch")
    assert (fetch["calls"], fetch["failures"], fetch["agents"]) == (calls, failures, 2) == (50, 11, 2)
    assert fetch["p95_agent_id"] == "alpha"
    assert fetch["failure_share"] == 11 / 50
    assert fetch["failure_share_at_least"] == pytest.approx(lower_end(11, 50, lambda value: value**0.5))
    search = next(one for one in rows(world, by="tool") if one["tool"] == "search")
    assert (search["calls"], search["last_error"]) == (2, SECRET)
    assert (
        html(world, tools_page(look_at(world), tools.Wanted(by="tool"))).count("p95 is that of the slowest agent") == 1
    )


def test_one_failure_of_one_call_does_not_lead(world: World) -> None:
    order = [(one["agent_id"], one["tool"]) for one in rows(world)]
    assert order.index(("mine", "fetch")) < order.index(("beta", "once"))


def test_tools_are_found_by_agent_and_by_part_of_a_name(world: World) -> None:
    assert {one["tool"] for one in rows(world, agent="beta")} == {"fetch", "once"}
    assert {one["tool"] for one in rows(world, agent="beta", text="ON")} == {"once"}
    assert {one["agent_id"] for one in rows(world, text="alph")} == {"alpha"}
    assert rows(world, agent="nobody") == []


def test_pages_of_an_hour_without_models_and_tools_say_so(world: World) -> None:
    look = look_at(world, hour=START - timedelta(days=30))
    assert "No tool was called" in html(world, tools_page(look, tools.Wanted()))
    assert "No model that you may see was called" in html(world, models_page(look))
    assert world.hours.start - 30 * 24 * HOUR == look.hour


@given(st.integers(1, 10**6), st.data())
def test_what_a_share_is_at_least_is_never_more_than_the_share(calls: int, data: st.DataObject) -> None:
    failures = data.draw(st.integers(1, calls))
    assert 0 < lower_end(failures, calls, lambda value: value**0.5) < failures / calls
