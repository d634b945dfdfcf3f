"""The page of the survey says who answered, by platform and over weeks, and how to switch it on where nobody was asked."""

import csv
import io
import json
from datetime import timedelta

import pytest

from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.survey_page import survey_page
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.survey.surveying import keep_probes, summarise
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import FULL, World, world_of
from health_assets_tests.support.projects import Project
from health_assets_tests.support.surveys_made import made_probe

HOURS = HourRange(START, START + 3 * HOUR)
HOSTILE = "<b>bold</b>\u202e"
LEFT_OUT = START + HOUR
"""The hour in which nobody was asked."""
ANSWERS = {
    START: {"quick": ["healthy", "healthy"], HOSTILE: ["timeout"]},
    START + 2 * HOUR: {"quick": ["healthy", "degraded", "http_error"], HOSTILE: ["timeout", "unreachable", "invalid", "timeout"]},
}  # fmt: skip
"""The answers of the agents of each platform: a status, or how they failed."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    project = Project(tmp_path_factory.mktemp("survey"))
    project.write_log("a.jsonl", [line(execution("e", "a", START + timedelta(minutes=1)))])
    project.materialize(HOURS, only=["ingest"])
    probes = [
        made_probe(f"{number}", platform, hour, status=answer)
        if answer in ("healthy", "degraded")
        else made_probe(f"{number}", platform, hour, answer)
        for hour, platforms in ANSWERS.items()
        for platform, answers in platforms.items()
        for number, answer in enumerate(answers, start=10 * len(platform))
    ]
    with project.warehouse.write() as session:
        summarise(session, keep_probes(session, probes))
    return world_of(project, HOURS)


def _html(look: ScopedHistory, page: Page) -> str:
    frame = {**look.frame(), "signed_in": None, "missing": 0, "page_name": "survey"}
    return page.written("html", frame)[0].decode()


def test_platforms_have_the_counts_of_the_warehouse_the_largest_first(world: World) -> None:
    told = survey_page(world.look()).data
    expected = world.project.query(
        "SELECT platform, agents, responsive, healthy, survival_rate FROM survey_summary"
        " WHERE hour = ? AND platform <> 'all' ORDER BY agents DESC",
        [START + 2 * HOUR],
    )
    names = ("platform", "agents", "responsive", "healthy", "survival_rate")
    assert [tuple(row[name] for name in names) for row in told["platforms"]] == expected
    assert [row[:4] for row in expected] == [(HOSTILE, 4, 0, 0), ("quick", 3, 2, 1)]
    assert [told["everyone"][name] for name in names] == ["all", 7, 2, 1, pytest.approx(2 / 7)]


def test_the_others_are_counted_by_what_they_did(world: World) -> None:
    look = world.look()
    page = survey_page(look)
    hostile, quick = page.data["platforms"]
    assert [hostile[name] for name in ("timeout", "unreachable", "invalid", "http_error")] == [2, 1, 1, 0]
    assert (quick["http_error"], page.data["everyone"]["http_error"], page.data["everyone"]["timeout"]) == (1, 1, 2)
    assert "1 no valid document, 2 too slow, 1 unreachable" in _html(look, page)


def test_curves_have_the_hours_that_were_surveyed_and_no_other(world: World) -> None:
    curve = survey_page(world.look()).data["curve"]
    assert [(row["hour"], row["agents"], row["survival_rate"]) for row in curve] == [
        (START, 3, pytest.approx(2 / 3)),
        (START + 2 * HOUR, 7, pytest.approx(2 / 7)),
    ]
    of_one = survey_page(world.look(), "quick").data["curve"]
    assert [(row["responsive"], row["healthy_share"]) for row in of_one] == [(2, 1.0), (2, pytest.approx(1 / 3))]


def test_who_looks_back_sees_the_last_survey_up_to_that_hour(world: World) -> None:
    look = world.look(hour=LEFT_OUT)
    assert survey_page(look).data["surveyed"] == START
    assert survey_page(world.look()).data["surveyed"] == START + 2 * HOUR


def test_a_survey_of_an_hour_that_is_not_scored_yet_is_shown(world: World) -> None:
    told = survey_page(world.look(hour=START - HOUR, is_newest=True)).data
    assert told["surveyed"] == START + 2 * HOUR
    assert [row["hour"] for row in told["curve"]] == list(ANSWERS)


def test_without_a_survey_the_page_says_how_to_switch_it_on(world: World) -> None:
    look = world.look(hour=START - HOUR)
    page = survey_page(look)
    assert page.data["platforms"] == []
    assert page.data["everyone"] is None
    for part in ("HEALTH_REGISTRY", "health-assets survey --registry", "platform: Meyo"):
        assert part in _html(look, page)


def test_who_sees_some_teams_alone_sees_no_survey(world: World) -> None:
    look = world.look(AccessScope(teams=frozenset({"b"})))
    page = survey_page(look)
    assert page.data["platforms"] == page.data["curve"] == []
    assert "only who sees all teams sees it" in _html(look, page)
    assert "quick" not in _html(look, page)


def test_a_platform_that_is_in_no_survey_is_an_error(world: World) -> None:
    with pytest.raises(HealthAssetsError, match="No survey of these days has this platform"):
        survey_page(world.look(), "nobody's")


def test_names_of_platforms_are_text(world: World) -> None:
    look = world.look(FULL)
    for page in (survey_page(look), survey_page(look, HOSTILE)):
        html = _html(look, page)
        assert "<b>bold" not in html
        assert "\u202e" not in html
        assert "&lt;b&gt;bold&lt;/b&gt;\\u202e" in html


def test_platforms_are_a_file_and_all_is_told_to_programs(world: World) -> None:
    page = survey_page(world.look())
    rows = list(csv.DictReader(io.StringIO(page.written("csv", {})[0].decode())))
    assert [(row["agents"], row["timeout"]) for row in rows] == [("4", "2"), ("3", "0")]
    assert len(json.loads(page.written("json", {})[0])["curve"]) == 2
