"""Releases and drifts on pages: the verdicts of the warehouse, in order, for whom may see the agent, and pictures that agree."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from health_assets.apps.serving.access_scope import EVERYBODYS, AccessScope
from health_assets.apps.serving.pages.agent_page import WantedOfAgent, agent_page
from health_assets.apps.serving.pages.release_rows import (
    HEIGHT,
    WIDTH,
    band,
    interval,
    with_changed_together,
    with_repeats,
)
from health_assets.apps.serving.pages.releases_page import Wanted, releases_page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HOUR, HourRange
from health_assets.warehouse.partition_states import PartitionStates
from health_assets_tests.support.alerts_made import drift, insert
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.mcp_clients import over_http
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.projects import Project, Row
from health_assets_tests.support.session_pages_made import html_of

HOURS = HourRange(START, START + 5 * HOUR)
HOSTILE = "<script>2"
TARGETS = {"agents": {"falls": {"team": "red"}, "mine": {"personal": True}}}


def _runs(agent_id: str, hour: int, version: str, count: int, failed: int, runtime_s: float = 20.0) -> Iterator[Record]:
    for number in range(count):
        yield execution(
            f"{agent_id} {hour} {number}", agent_id, START + hour * HOUR + timedelta(seconds=600 + number), runtime_s,
            agent_version=version, status="failure" if number < failed else "success",
        )  # fmt: skip


def _logs() -> Iterator[Record]:
    for hour in range(2):
        for agent_id in ("falls", "slows", "same", "mine"):
            yield from _runs(agent_id, hour, "1", 120, 6)
    for hour in range(2, 5):
        yield from _runs("falls", hour, HOSTILE, 60, 40)
        yield from _runs("slows", hour, "2", 60, 3, runtime_s=60.0)
        yield from _runs("same", hour, "2", 3, 0)
        yield from _runs("mine", hour, "2", 60, 40)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    project = Project(tmp_path_factory.mktemp("releases"), TARGETS, 4, 8)
    project.write_log("a.jsonl", [line(record) for record in _logs()])
    project.materialize(HOURS)
    return world_of(project, HOURS)


def listed(look: ScopedHistory, **wanted: object) -> list[dict]:
    return list(releases_page(look, Wanted(**wanted)).data["listed"])


def test_releases_stand_worst_first_with_the_numbers_of_the_warehouse(world: World) -> None:
    found = listed(world.look())
    assert [(one["agent_id"], one["from_version"], one["to_version"], one["verdict"]) for one in found] == [
        ("falls", "1", HOSTILE, "worse"), ("mine", "1", "2", "worse"), ("slows", "1", "2", "worse"),
        ("same", "1", "2", "not_enough"),
    ]  # fmt: skip
    for one in found:
        columns = list(one["measures"][0])
        rows = world.project.query(
            f"SELECT {', '.join(columns)} FROM release_comparison WHERE agent_id = ? AND hour = ?",
            [one["agent_id"], world.hour],
        )
        assert sorted(tuple(measure.values()) for measure in one["measures"]) == sorted(rows)
        assert one["measures"][0]["measure"] == "success_rate"
    told = releases_page(world.look(), Wanted()).data
    assert told["counts"] == {"worse": 3, "better": 0, "no_difference": 0, "not_enough": 1}


def test_releases_are_looked_for_by_verdict_name_and_page(world: World) -> None:
    look = world.look()
    assert [one["agent_id"] for one in listed(look, show="worse")] == ["falls", "mine", "slows"]
    assert [one["agent_id"] for one in listed(look, text="SA")] == ["same"]
    assert [one["agent_id"] for one in listed(look, page=2, most=3)] == ["same"]
    assert listed(look, page=9) == listed(look, show="better") == listed(look, of="model") == []


def test_a_personal_agent_s_release_is_for_the_full_view_and_a_team_sees_its_own(world: World) -> None:
    assert [one["agent_id"] for one in listed(world.look(EVERYBODYS))] == ["falls", "slows", "same"]
    red = world.look(AccessScope(teams=frozenset({"red"})))
    assert [one["agent_id"] for one in listed(red)] == ["falls"]
    assert releases_page(red, Wanted()).data["compared"] == 1


def test_the_page_says_what_was_and_is_and_which_way_is_better(world: World) -> None:
    look = world.look()
    text = html_of(releases_page(look, Wanted(text="slows")), look)
    assert re.search(r"runtime.*19\.8 s.*60\.1 s.*\+203% \(\+203 to \+204\).*worse", text, re.S)
    assert "worse ← → better" in text
    assert HOSTILE not in html_of(releases_page(look, Wanted()), look)
    hour = HOURS.start
    assert "No new version or model is compared at this hour" in html_of(
        releases_page(world.look(hour=hour), Wanted()), world.look(hour=hour)
    )


def test_an_agent_s_page_has_its_releases_with_the_success_rate_since(world: World) -> None:
    look = world.look()
    page = agent_page(look, "falls", WantedOfAgent())
    [release] = page.data["releases"]
    assert (release["to_version"], release["verdict"]) == (HOSTILE, "worse")
    assert [one["hour"] for one in release["hours"]] == [START + number * HOUR for number in (2, 3, 4)]
    assert release["hours"][-1]["difference"] == release["measures"][0]["difference"]
    text = html_of(page, look)
    assert "New versions and models" in text
    assert 'class="band worse"' in text
    assert HOSTILE not in text


def test_an_agent_s_page_says_in_what_it_is_worse_than_its_own_past(world: World, tmp_path: Path) -> None:
    own = world_of(world.project.copied(tmp_path / "copy"), HOURS)
    rows = [drift("falls"), drift("falls", measure="volume_drop", is_drifting=False)]
    with own.project.warehouse.write() as session:
        insert(session, "drift", own.hour, rows)
        PartitionStates(session).note("drift", HourRange.of(own.hour), [own.hour])
    own.copy()
    look = own.look()
    page = agent_page(look, "falls", WantedOfAgent())
    [told] = page.data["drifts"]
    assert (told["measure"], told["cause"]) == ("success_rate", "8")
    assert "detectors" not in told, "it tells how many agents there are"
    assert "Worse than its own past: <b><bdi>success rate 95% → 80% since" in html_of(page, look)
    assert agent_page(look, "same", WantedOfAgent()).data["drifts"] == []


def test_a_coding_agent_reads_the_same_verdicts(world: World) -> None:
    with world.served(mcp=True) as server:
        server.wait_for_pages()
        worse, agent = over_http(server, ("releases", {"show": "worse"}), ("agent", {"agent_id": "falls"})).answers
    found = worse.json
    assert [one["agent_id"] for one in found["listed"]] == ["falls", "slows"]
    assert (found["compared"], found["by_verdict"]["worse"]) == (3, 2)
    [release] = agent.json["releases_7d"]
    assert release["to_version"] == HOSTILE
    assert release["measures"][0].startswith("success rate 95% → 33%, -61.7 points (")
    assert agent.json["worse_than_its_past"] == []


def test_better_is_to_the_right_whatever_is_measured() -> None:
    rate = {
        "measure": "success_rate",
        "difference": -0.2,
        "low": -0.3,
        "high": -0.1,
        "margin": 0.02,
    }
    cost = {"measure": "cost_per_success_usd", "difference": 0.5, "low": 0.2, "high": 2.5, "margin": 0.1}
    cheaper = {**cost, "difference": -0.4, "low": -1.0, "high": -0.2}
    for measure, is_better in ((rate, False), (cost, False), (cheaper, True)):
        seen = interval(measure)
        assert seen is not None
        assert 0 <= seen.ends[0] <= seen.value <= seen.ends[1] <= WIDTH
        assert seen.margin[0] < seen.zero == WIDTH / 2 < seen.margin[1]
        assert (seen.value > seen.margin[1]) == is_better
        assert (seen.value < seen.margin[0]) != is_better
    assert interval({**rate, "low": None}) is None


def test_a_band_is_as_high_as_the_intervals_and_no_difference() -> None:
    hours = [
        {
            "hour": START + number * HOUR,
            "difference": -0.2,
            "low": -0.4 + number / 10,
            "high": -0.1,
        }
        for number in range(3)
    ]
    seen = band(hours)
    assert seen is not None
    heights = [float(point.split(",")[1]) for point in seen.outline.split()]
    assert seen.zero == 0.0
    assert max(heights) == HEIGHT
    assert min(heights) == HEIGHT / 4
    assert band(hours[:1]) is None


def test_a_release_says_in_one_line_what_it_is_worse_in_and_what_that_rests_on(world: World) -> None:
    look = world.look()
    text = html_of(releases_page(look, Wanted(text="slows")), look)
    assert "<p>Worse in mean runtime, median runtime" in text
    assert (
        "; not enough runs yet for the success rate. From 180 runs of the new one and 240 of the one before.</p>"
        in text
    )
    assert "another mix" not in text


def test_the_legend_says_which_difference_matters_and_which_side_is_better(world: World) -> None:
    look = world.look()
    text = html_of(releases_page(look, Wanted()), look)
    assert "within the grey (±2 pts or ±10%): no difference that matters" in text
    assert "no interval yet" in text, "what has no interval says why"
    assert text.count("runs of the one before since") == 4


def test_a_version_and_a_model_that_changed_together_have_one_table(world: World) -> None:
    look = world.look()
    for page in (releases_page(look, Wanted(text="slows")), agent_page(look, "slows", WantedOfAgent())):
        releases = page.data["listed" if "listed" in page.data else "releases"]
        releases.append(releases[0] | {"dimension": "model", "from_version": "small", "to_version": "large"})
        releases[:] = with_repeats(with_changed_together(releases))
        text = html_of(page, look)
        assert text.count('<table class="measures">') == 1
        assert "The same numbers as <bdi>1</bdi> → <b><bdi>2</bdi></b> above" in text


@pytest.mark.parametrize(
    ("others", "is_same"),
    [
        ([("model", "large", 1, 5)], True),
        ([("model", "large", 1, 6)], False),
        ([("model", "large", 2, 5)], False),
        ([("version", "3", 1, 5)], False),
        ([("version", "3", 1, 5), ("model", "large", 1, 5)], False),
        ([("model", "large", 1, 5), ("model", "huge", 1, 5)], False),
    ],
    ids=["both", "other runs", "another hour", "two versions", "two versions and a model", "two models"],
)
def test_only_one_version_and_one_model_of_an_hour_with_the_same_numbers_are_shown_once(
    others: list[tuple[str, str, int, int]], is_same: bool
) -> None:
    def release(dimension: str, to_version: str, hour: int, n_to: int) -> Row:
        names = {"agent_id": "a", "dimension": dimension, "from_version": "1", "to_version": to_version}
        return {**names, "released_at": START + hour * HOUR, "measures": [{"measure": "success_rate", "n_to": n_to}]}

    releases = with_changed_together([release("version", "2", 1, 5), *(release(*other) for other in others)])
    found = [one["same_as"] and one["same_as"]["to_version"] for one in with_repeats(releases)]
    assert found == [None, "2" if is_same else None, *[None] * (len(others) - 1)]


def test_a_release_that_ran_other_tasks_says_so(world: World) -> None:
    look = world.look()
    page = releases_page(look, Wanted(text="slows"))
    page.data["listed"][0] |= {"is_mix_changed": True, "mix_shift": 0.4}
    assert "It ran another mix of tasks than before (40% would have to be of other tasks): " in html_of(page, look)


def test_a_model_that_changed_in_the_same_hour_as_the_version_is_named_beside_it() -> None:
    def release(agent_id: str, dimension: str, to_version: str, hour: int) -> Row:
        at = START + hour * HOUR
        return {"agent_id": agent_id, "dimension": dimension, "to_version": to_version, "released_at": at}

    releases = [
        release("a", "version", "2", 1), release("a", "model", "large", 1), release("a", "model", "huge", 2),
        release("b", "model", "large", 1),
    ]  # fmt: skip
    found = [[other["to_version"] for other in one["changed_with"]] for one in with_changed_together(releases)]
    assert found == [["large"], ["2"], [], []]
