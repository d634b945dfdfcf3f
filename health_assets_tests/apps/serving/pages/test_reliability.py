"""The page of the reliability evaluation shows every number that is known, and a dash for what is not."""

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.reliability_page import METRICS, TASK_METRICS, Wanted, reliability_page, shade
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.projects import Project

HOURS = HourRange(START, START + 6 * HOUR)
STEPS = ["ingest", "task_consistency", "agent_reliability"]
STRANGER, OF_TEAM = AccessScope(), AccessScope(teams=frozenset({"b"}))
HOSTILE = "<img src=x>\u202e\x1b"
TARGETS = {"agents": {"mine": {"personal": True}, "bare": {"team": "b"}}}
TASKS = 5


def _lines() -> Iterator[str]:
    """Runs of tasks by an agent of which all is told, one of which little is, a personal one and a hostile one."""
    for number, hour in enumerate(HOURS):
        for task in range(TASKS):
            is_right = (number + task) % (task + 2) > 0
            told: dict[str, Any] = {
                "confidence": 0.9 if is_right else 0.3, "actions": ["read", "think", "write"][: 1 + (number + task) % 3],
                "cost_usd": 0.1 * (1 + number % 2), "violations": [] if is_right else [{"constraint": "c", "severity": "low"}],
                "status": "success" if is_right else "failure",
            }  # fmt: skip
            for agent_id, fields in (("full", told), ("bare", {}), ("mine", {}), (HOSTILE, {})):
                run = f"{number}-{task}-{agent_id[:4]}"
                at = hour + timedelta(minutes=task + 1)
                name = f"task-{task}" if agent_id != HOSTILE else f"{HOSTILE}{task}"
                yield line(execution(run, agent_id, at, task_id=name, **fields))
        for condition in ("fault", "structural", "prompt"):
            run = f"{number}-{condition}"
            yield line(execution(run, "full", hour + HOUR / 2, task_id="task-0", condition=condition, confidence=0.5))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    project = Project(tmp_path_factory.mktemp("reliability"), TARGETS)
    project.write_log("a.jsonl", _lines())
    project.materialize(HOURS, only=STEPS)
    return world_of(project, HOURS)


def _page(look: ScopedHistory, **wanted: Any) -> Page:
    return reliability_page(look, Wanted(**wanted))


def _html(look: ScopedHistory, **wanted: Any) -> str:
    frame = {**look.frame(), "signed_in": None, "missing": 0, "page_name": "reliability"}
    return _page(look, **wanted).written("html", frame)[0].decode()


def _cells(page: str) -> list[tuple[str, str]]:
    """Shades and texts of all cells."""
    return re.findall(r'<td class="num heat ([a-z0-9-]+)"[^>]*>([^<]*)</td>', page)


def test_agents_have_the_values_of_the_warehouse(world: World) -> None:
    names = ["agent_id", *(metric.name for metric in METRICS), "tasks", "runs"]
    expected = world.project.query(f"SELECT {', '.join(names)} FROM agent_reliability WHERE hour = ?", [world.hour])
    found = _page(world.look()).data["agents"]
    assert sorted(tuple(row[name] for name in names) for row in found) == sorted(expected)
    assert len(expected) == 4


def test_tasks_have_the_values_of_the_warehouse_and_the_share_of_successes(world: World) -> None:
    names = ["agent_id", "task_id", "runs", "successes", *(metric.name for metric in TASK_METRICS)]
    expected = world.project.query(
        f"SELECT {', '.join(name if name != 'success_share' else 'successes / CAST(runs AS DOUBLE)' for name in names)}"
        " FROM task_consistency WHERE hour = ?",
        [world.hour],
    )
    found = _page(world.look()).data["tasks"]
    assert sorted(tuple(row[name] for name in names) for row in found) == sorted(expected)
    assert len(expected) == 4 * TASKS


def test_each_cell_shows_its_number_and_the_unknown_is_a_dash(world: World) -> None:
    [full] = _page(world.look(), agent="full").data["agents"]
    assert all(full[metric.name] is not None for metric in METRICS)
    cells = _cells(_html(world.look(), agent="full"))
    assert [text for _, text in cells[: len(METRICS)]] == [f"{full[metric.name]:.2f}" for metric in METRICS]
    [bare] = _page(world.look(), agent="bare").data["agents"]
    page = _html(world.look(), agent="bare")
    shown = _cells(page)[: len(METRICS)]
    for metric, (kind, text) in zip(METRICS, shown, strict=True):
        assert (kind, text) == (
            shade(bare[metric.name]),
            "–" if bare[metric.name] is None else f"{bare[metric.name]:.2f}",
        )
    assert ("unknown", "–") in shown
    assert "not known: the logs do not hold what it needs" in page


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.0, "shade-0"),
        (0.9, "shade-0"),
        (0.8999, "shade-1"),
        (0.8, "shade-1"),
        (0.7, "shade-2"),
        (0.5, "shade-3"),
        (0.0, "shade-4"),
        (None, "unknown"),
    ],
)
def test_a_cell_is_the_darker_the_lower_its_value(value: float | None, kind: str) -> None:
    assert shade(value) == kind


def test_every_column_says_what_it_means(world: World) -> None:
    page = _html(world.look())
    for metric in (*METRICS, *TASK_METRICS):
        assert f"<code>{metric.name}</code>" in page
        assert metric.name in _page(world.look()).data["metrics"]


def test_one_agent_has_its_own_tasks_and_the_curve_of_its_scores(world: World) -> None:
    page = _page(world.look(), agent="full")
    assert {task["agent_id"] for task in page.data["tasks"]} == {"full"}
    assert page.data["task_count"] == TASKS
    expected = world.project.query("SELECT hour, r_con FROM agent_reliability WHERE agent_id = 'full' ORDER BY hour")
    assert [(row["hour"], row["r_con"]) for row in page.data["curve"]] == expected
    assert 'data-curve="reliability"' in _html(world.look(), agent="full")


@pytest.mark.parametrize("agent", ["nobody", "mine"])
def test_an_agent_that_is_not_known_and_one_that_is_not_shown_are_told_alike(world: World, agent: str) -> None:
    with pytest.raises(HealthAssetsError, match="No evaluation of this agent is known at this hour"):
        _page(world.look(STRANGER), agent=agent)


def test_personal_agents_and_other_teams_are_in_no_list(world: World) -> None:
    for view, seen in ((STRANGER, {"full", "bare", HOSTILE}), (OF_TEAM, {"bare"})):
        told = _page(world.look(view)).data
        assert {row["agent_id"] for row in told["agents"]} == {row["agent_id"] for row in told["tasks"]} == seen
        assert "mine" not in _html(world.look(view))
        assert told["count"] == len(seen)


@pytest.mark.parametrize("sort", ["reliability", "r_con", "r_saf", "baseline_accuracy", "runs", "name"])
def test_agents_stand_the_worst_first_and_the_unknown_last(world: World, sort: Any) -> None:
    rows = [row["agent_id" if sort == "name" else sort] for row in _page(world.look(), sort=sort).data["agents"]]
    known = sorted((value for value in rows if value is not None), reverse=sort == "runs")
    assert rows == known + [None] * (len(rows) - len(known))


@pytest.mark.parametrize("sort", ["outcome_agreement", "success_share", "c_out", "c_traj_s", "c_res", "runs"])
def test_tasks_stand_the_worst_first_and_on_pages(world: World, sort: Any) -> None:
    pages = [_page(world.look(), tasks=sort, most=6, task_page=page).data["tasks"] for page in (1, 2, 3, 4)]
    assert list(map(len, pages)) == [6, 6, 6, 2]
    rows = [row[sort] for page in pages for row in page]
    known = sorted((value for value in rows if value is not None), reverse=sort == "runs")
    assert rows == known + [None] * (len(rows) - len(known))


def test_squares_of_an_agent_are_its_tasks_and_lead_to_them(world: World) -> None:
    page = _html(world.look(), sort="name")
    strips = re.findall(r'<td class="strip"><a href="([^"]*)"[^>]*>(.*?)</a>', page, re.DOTALL)
    assert len(strips) == 4
    assert all(strip.count("<rect") == TASKS for _, strip in strips)
    assert any("agent=full" in address for address, _ in strips)


def test_a_search_finds_parts_of_names(world: World) -> None:
    assert [row["agent_id"] for row in _page(world.look(), text="FUL").data["agents"]] == ["full"]
    assert "No agent with evaluation runs has such a name" in _html(world.look(), text="xyz")


def test_names_from_logs_are_text(world: World) -> None:
    for page in (_html(world.look()), _html(world.look(), agent=HOSTILE)):
        assert "<img" not in page
        assert "&lt;img src=x&gt;\\u202e\\u001b" in page
    assert "\u202e" not in _html(world.look())
    assert "<img" not in _html(world.look(), text=HOSTILE)


def test_each_list_has_a_file_and_all_is_told_to_programs(world: World) -> None:
    for by, rows in (("agent", 4), ("task", 4 * TASKS)):
        page = _page(world.look(), by=by)
        assert len(list(csv.DictReader(io.StringIO(page.written("csv", {})[0].decode())))) == rows
        told = json.loads(page.written("json", {})[0])
        assert (len(told["agents"]), len(told["tasks"])) == (4, 4 * TASKS)


def test_an_hour_without_evaluations_is_told_as_that(world: World) -> None:
    look = world.look(hour=HOURS.start - HOUR)
    assert "No execution of the evaluation window carries a task_id" in _html(look)
    assert _page(look).data["agents"] == _page(look).data["tasks"] == []


def test_observed_tasks_have_a_list_of_their_own(tmp_path: Path) -> None:
    """`seen` was asked the same in 2 of 3 runs, and the first hour holds nothing but those."""
    asked = [execution(f"s{n}", "seen", START, input="pay" if n else "hello") for n in range(3)]
    stated = [execution(f"t{n}", "told", START + HOUR, task_id="t") for n in range(2)]
    project = Project(tmp_path)
    project.write_log("a.jsonl", map(line, [*asked, *stated]))
    project.materialize(HOURS, only=STEPS)
    look = world_of(project, HOURS).look()
    listed = {kind: _page(look, kind=kind).data for kind in (None, "evaluated", "observed")}
    agents, tasks = ({kind: [row["agent_id"] for row in told[rows]] for kind, told in listed.items()}
                     for rows in ("agents", "tasks"))  # fmt: skip
    assert agents == tasks == {None: ["told"], "evaluated": ["told"], "observed": ["seen"]}
    assert listed[None]["counts"] == {"evaluated": 1, "observed": 1}
    assert [row["repeated_share"] for row in listed["observed"]["agents"]] == [2 / 3]
    assert "1 agents as observed</a>" in _html(look)
    assert "67 % of this agent's runs repeat a task" in _html(look, agent="seen")
    early = _page(world_of(project, HOURS).look(hour=START)).data
    assert (early["kind"], [row["agent_id"] for row in early["agents"]]) == ("observed", ["seen"])
