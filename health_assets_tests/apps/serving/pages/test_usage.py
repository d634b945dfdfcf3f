"""The page of usage says what the executions tell, to each caller of the agents that it sees, and never less as exact."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.rendering import usd
from health_assets.apps.serving.pages.result_cache import ResultCache
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.usage_page import Wanted, usage_page
from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START, cancellation, execution, line
from health_assets_tests.support.pages_made import FULL, World, world_of
from health_assets_tests.support.projects import Project

HOURS = HourRange(START, START + 38 * HOUR)
"""A whole day, and 14 hours of the next."""
STEPS = ["ingest", "usage_components", "agent_usage", "usage_breakdown"]
STRANGER, OF_TEAM = AccessScope(), AccessScope(teams=frozenset({"b"}))
HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m"
LONG = "=" + "long" * 250
SEEN = {
    FULL: ("dear", "half", "silent", "tokens", "mine", HOSTILE, LONG),
    STRANGER: ("dear", "half", "silent", "tokens", HOSTILE, LONG),
    OF_TEAM: ("half", "tokens"),
}
TARGETS: dict[str, Any] = {"agents": {"mine": {"personal": True}, "half": {"team": "b"}, "tokens": {"team": "b"}}}
TARGETS["evaluators"] = [{"match": "thumbs", "feedback": True}]
SUMS = (
    "count(*), count(CASE WHEN succeeded THEN 1 END), "
    "count(CASE WHEN input_tokens IS NOT NULL OR output_tokens IS NOT NULL THEN 1 END), count(cost_usd), "
    "sum(input_tokens), sum(output_tokens), sum(cost_usd)"
)
NAMES = (
    "executions", "successes", "executions_with_tokens", "executions_with_cost", "input_tokens", "output_tokens",
    "cost_usd",
)  # fmt: skip


def _lines() -> Iterator[str]:
    for number, hour in enumerate(HOURS):
        outcome = "failure" if number % 3 == 0 else "success"
        told: dict[str, dict[str, Any]] = {
            "dear": {"cost_usd": 1.0 + number / 8, "input_tokens": 100, "output_tokens": 7, "status": outcome},
            "half": {
                "model": "mini",
                "agent_version": "1" if number < 30 else "2",
                "user_id": "u-1" if number % 2 else None,
                **({"cost_usd": 0.25} if number % 2 else {}),
            },
            "silent": {"status": outcome},
            "tokens": {"model": HOSTILE, "output_tokens": 3},
            "mine": {"model": "mini", "cost_usd": 8.0},
            HOSTILE: {"cost_usd": 1 / 512},
            LONG: {"cost_usd": 0.0},
        }
        for place, (agent_id, fields) in enumerate(told.items()):
            yield line(execution(f"{number}-{place}", agent_id, hour + timedelta(minutes=30), **fields))
        said = {"type": "evaluation", "name": "thumbs", "at": (hour + timedelta(minutes=40)).isoformat()}
        yield line(said | {"execution_id": f"{number}-1", "value": number % 3 > 0})  # of half


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    project = Project(tmp_path_factory.mktemp("usage"), TARGETS)
    project.write_log("a.jsonl", _lines())
    project.materialize(HOURS, only=STEPS)
    return world_of(project, HOURS)


def _page(look: ScopedHistory, **wanted: Any) -> Page:
    return usage_page(look, Wanted(**wanted))


def _html(look: ScopedHistory, **wanted: Any) -> str:
    body, _ = _page(look, **wanted).written(
        "html", {**look.frame(), "signed_in": None, "missing": 0, "page_name": "usage"}
    )
    return body.decode()


def _sums(world: World, view: AccessScope, hours: HourRange, by: str) -> dict[Any, tuple]:
    """The sums of executions of the agents that a caller sees, asked of the warehouse."""
    seen = SEEN[view]
    rows = world.project.query(
        f"SELECT {by}, {SUMS} FROM executions WHERE hour >= ? AND hour < ? AND agent_id IN ({', '.join('?' * len(seen))})"
        f" GROUP BY {by}",
        [hours.start, hours.end, *seen],
    )
    return {row[0]: row[1:] for row in rows}


def _window(world: World) -> HourRange:
    return HourRange(world.hour - 23 * HOUR, world.hour + HOUR)


@pytest.mark.parametrize("view", SEEN, ids=["full", "stranger", "team"])
def test_agents_are_the_ones_of_the_window_that_the_caller_sees_the_costliest_first(
    world: World, view: AccessScope
) -> None:
    told = _page(world.look(view)).data
    expected = _sums(world, view, _window(world), "agent_id")
    assert {row["agent_id"]: tuple(row[name] for name in NAMES) for row in told["agents"]} == expected
    costs = [row["cost_usd"] for row in told["agents"]]
    known = [cost for cost in costs if cost is not None]
    assert known == sorted(known, reverse=True)
    assert costs == known + [None] * (len(costs) - len(known))


@pytest.mark.parametrize("view", SEEN, ids=["full", "stranger", "team"])
def test_a_success_costs_what_all_executions_that_the_caller_sees_cost(world: World, view: AccessScope) -> None:
    fleet = _page(world.look(view)).data["fleet"]
    [(executions, successes, _, with_cost, _, _, cost)] = _sums(world, view, _window(world), "1").values()
    assert fleet["cost_per_success_usd"] == pytest.approx(cost / successes)
    assert (fleet["executions"], fleet["executions_with_cost"]) == (executions, with_cost)


@pytest.mark.parametrize("view", SEEN, ids=["full", "stranger", "team"])
def test_versions_are_those_of_the_agents_that_the_caller_sees(world: World, view: AccessScope) -> None:
    """From hour 14 on, `half` ran 16 hours in version 1 and 8 in version 2; half of the hours tell 25 cents."""
    told = _page(world.look(view)).data["versions"]
    found = {(row["agent_id"], row["agent_version"]): tuple(row[name] for name in NAMES) for row in told}
    agents = _sums(world, view, _window(world), "agent_id")
    assert {agent_id for agent_id, _ in found} == agents.keys()
    assert {agent_id: sums for (agent_id, version), sums in found.items() if version is None} == {
        agent_id: sums for agent_id, sums in agents.items() if agent_id != "half"
    }
    assert found["half", "1"] == (16, 16, 0, 8, None, None, 2.0)
    assert found["half", "2"] == (8, 8, 0, 4, None, None, 1.0)
    assert "no version named" in _html(world.look(view))


@pytest.mark.parametrize("view", SEEN, ids=["full", "stranger", "team"])
def test_users_are_those_of_the_agents_that_the_caller_sees(world: World, view: AccessScope) -> None:
    found = {row["user_id"]: tuple(row[name] for name in NAMES) for row in _page(world.look(view)).data["users"]}
    assert found == _sums(world, view, _window(world), "user_id")
    assert len(found) == 2
    page = _page(world.look(view), by="user")
    assert page.listing == "users"
    assert "no user named" in _html(world.look(view))


@pytest.mark.parametrize("view", SEEN, ids=["full", "stranger", "team"])
def test_feedback_of_people_stands_beside_success(world: World, view: AccessScope) -> None:
    """From hour 14 on, every third of 24 was disliked: 15, 18, ... 36."""
    told = _page(world.look(view)).data
    [half] = [row for row in told["agents"] if row["agent_id"] == "half"]
    for sums in (half, told["fleet"]):
        assert (sums["positive_feedback"], sums["negative_feedback"]) == (16, 8)
    text = " ".join(_html(world.look(view)).split())
    assert '<th scope="col" class="num">liked</th><th scope="col" class="num">disliked</th>' in text
    assert '<td class="num">16</td><td class="num">8</td>' in text


@pytest.mark.parametrize("view", SEEN, ids=["full", "stranger", "team"])
def test_models_are_those_of_the_executions_that_the_caller_sees(world: World, view: AccessScope) -> None:
    found = {row["model"]: tuple(row[name] for name in NAMES) for row in _page(world.look(view)).data["models"]}
    expected = _sums(world, view, _window(world), "model")
    assert found.keys() == expected.keys()
    for model, sums in expected.items():
        assert found[model] == pytest.approx(sums)


def test_sums_of_an_hour_are_made_once_for_each_view_and_outlive_what_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, read = ResultCache(), list[str]()
    real = History.of_all

    def of_all(self: History, series: str, hour: datetime, *asked: Any) -> Any:
        if hour in self.hours(series):  # of others there is nothing to read
            read.append(series)
        return real(self, series, hour, *asked)

    monkeypatch.setattr(History, "of_all", of_all)
    first = _page(world.look(STRANGER, memory=memory)).data
    assert set(read) == {"runs", "usage"}
    read.clear()
    memory.forget_before(world.history.version + 1)
    again = _page(world.look(STRANGER, memory=memory)).data
    assert (read, again) == ([], first)
    others = _page(world.look(OF_TEAM, memory=memory)).data
    assert read, "what one caller sees is nothing for another"
    assert others["models"] != first["models"]


@pytest.mark.parametrize("hour", [HOURS.end - HOUR, HOURS.start + 23 * HOUR], ids=["so far", "over"])
@pytest.mark.parametrize("view", SEEN, ids=["full", "stranger", "team"])
def test_days_are_those_of_the_calendar_up_to_the_hour(world: World, view: AccessScope, hour: datetime) -> None:
    days = {row["hour"]: row for row in _page(world.look(view, hour)).data["days"]}
    expected = _sums(world, view, HourRange(HOURS.start, hour + HOUR), "CAST(hour AS DATE)")
    assert {start.date() for start in days} == expected.keys()
    for start, row in days.items():
        assert tuple(row[name] for name in NAMES) == pytest.approx(expected[start.date()])
        over = min(24, (hour + HOUR - start) // HOUR)
        assert (row["hours"], row["hours_due"]) == (over, over)


def test_a_day_of_which_an_hour_is_missing_says_so(world: World) -> None:
    history = History(world.project.folder / "history")
    lost = HOURS.start + 5 * HOUR
    history._account.series["usage_by_hour"].drop({lost.isoformat()})
    first, second = _page(world.look(history=history)).data["days"]
    assert (first["hours"], first["hours_due"]) == (23, 24)
    assert (second["hours"], second["hours_due"]) == (14, 14)
    [left] = _sums(world, FULL, HourRange.of(lost), "1").values()
    [whole] = _sums(world, FULL, HourRange(HOURS.start, HOURS.start + 24 * HOUR), "1").values()
    assert first["executions"] == whole[0] - left[0]
    assert "23 of 24" in _html(world.look(history=history))


def test_what_only_some_executions_tell_is_told_as_the_least(world: World) -> None:
    half, dear = (
        {row["agent_id"]: row for row in _page(world.look()).data["agents"]}[name] for name in ("half", "dear")
    )
    page = _html(world.look())
    assert half["executions_with_cost"] == 12 < half["executions"] == 24
    assert f"≥</abbr>{usd(half['cost_per_success_usd'])}" in page
    assert f'<td class="num">{usd(dear["cost_per_success_usd"])}</td>' in page


def test_personal_agents_are_in_nothing_that_a_stranger_gets(world: World) -> None:
    page = _page(world.look(STRANGER))
    assert "mine" in _html(world.look())
    assert ">mine<" not in _html(world.look(STRANGER))
    assert "mine" not in json.dumps(page.data["agents"], default=str)


@pytest.mark.parametrize("sort", ["cost", "tokens", "cost_per_success", "executions", "name"])
def test_agents_stand_in_the_order_that_is_asked_for(world: World, sort: Any) -> None:
    rows = _page(world.look(), sort=sort).data["agents"]
    column = {"cost": "cost_usd", "cost_per_success": "cost_per_success_usd", "name": "agent_id"}.get(sort, sort)
    values = [row[column] for row in rows]
    known = sorted((value for value in values if value is not None), reverse=sort != "name")
    assert values == known + [None] * (len(values) - len(known))
    assert {row["agent_id"] for row in rows} == set(SEEN[FULL])


def test_a_search_finds_parts_of_names_in_any_case_and_the_rest_is_on_further_pages(world: World) -> None:
    found = _page(world.look(), text="SCRIPT").data
    assert [row["agent_id"] for row in found["agents"]] == [HOSTILE]
    assert (found["found"], found["count"]) == (1, len(SEEN[FULL]))
    pages = [_page(world.look(), sort="name", most=3, page=page).data["agents"] for page in (1, 2, 3, 4)]
    assert [row["agent_id"] for rows in pages for row in rows] == sorted(SEEN[FULL])
    assert list(map(len, pages)) == [3, 3, 1, 0]
    assert "No agent with an execution has such a name" in _html(world.look(), text="nobody at all")


def test_names_from_logs_are_text_on_the_page_and_no_formulas_in_the_file(world: World) -> None:
    page = _html(world.look())
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\u001b[31m" in page
    assert f"{LONG[:120]}…" in page
    body, _ = _page(world.look()).written("csv", {})
    ids = [row["agent_id"] for row in csv.DictReader(io.StringIO(body.decode()))]
    assert f"'{LONG}" in ids
    assert not any(agent_id.startswith("=") for agent_id in ids)


@pytest.mark.parametrize(("by", "rows"), [("agent", 7), ("model", 3), ("day", 2)])
def test_each_list_has_a_file_and_all_is_told_to_programs(world: World, by: Any, rows: int) -> None:
    page = _page(world.look(), by=by)
    body, _ = page.written("csv", {})
    assert len(list(csv.DictReader(io.StringIO(body.decode())))) == rows
    told = json.loads(page.written("json", {})[0])
    assert (len(told["agents"]), len(told["models"]), len(told["days"])) == (7, 3, 2)
    assert told["fleet"]["cost_per_success_usd"] == page.data["fleet"]["cost_per_success_usd"]


def test_an_hour_without_any_execution_is_told_as_that(world: World) -> None:
    look = world.look(hour=HOURS.start - 30 * HOUR)
    page = _html(look)
    assert "No execution ended in the 24 h up to this hour." in page
    assert "Nothing is known of these days yet." in page
    assert _page(look).data["agents"] == _page(look).data["models"] == _page(look).data["days"] == []


def test_a_fleet_that_tells_no_cost_is_told_how_to(tmp_path: Any) -> None:
    project = Project(tmp_path)
    project.write_log("a.jsonl", [line(execution("e", "a", START + HOUR / 2, output_tokens=5))])
    project.materialize(HourRange.of(START), only=STEPS)
    page = _html(world_of(project, HourRange.of(START)).look())
    assert "No execution tells its cost" in page
    assert "Tokens by day" in page


def test_days_of_part_of_a_fleet_are_not_told_where_windows_are_no_days(world: World) -> None:
    world.history.facts["window_hours"] = 48
    try:
        assert _page(world.look(STRANGER)).data["days"] == []
        assert "You see part of the fleet" in _html(world.look(STRANGER))
        assert len(_page(world.look()).data["days"]) == 2
    finally:
        world.history.facts["window_hours"] = 24


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "$0.00"), (1234.5, "$1,234.50"), (0.25, "$0.250"), (0.0000123, "$0.0000123"), (None, "–")],
)
def test_dollars_are_told_to_the_cent_and_small_ones_by_three_digits(value: float | None, said: str) -> None:
    assert usd(value) == said


def test_the_day_of_an_hour_is_that_of_utc(world: World) -> None:
    assert [row["hour"] for row in _page(world.look()).data["days"]] == [
        datetime(2026, 6, 7, tzinfo=UTC),
        datetime(2026, 6, 8, tzinfo=UTC),
    ]


# -- cancelled runs --


def test_what_cancelled_runs_took_is_told_beside_the_sums(tmp_path: Path) -> None:
    project, hours = Project(tmp_path), HourRange.of(START)
    at = START + timedelta(minutes=30)
    records = [
        execution("e", "a", at, cost_usd=1.0),
        *(cancellation(f"x{n}", "a", at, input_tokens=1000, cost_usd=0.25) for n in range(2)),
        cancellation("y", "only cancelled", at, input_tokens=7),
    ]
    project.write_log("a.jsonl", map(line, records))
    project.materialize(hours, only=STEPS)
    look = world_of(project, hours).look()
    told = _page(look).data
    assert (told["fleet"]["executions"], told["fleet"]["cost_usd"], told["fleet"]["cost_per_success_usd"]) == (1, 1, 1)
    by_agent = {row["agent_id"]: (row["executions"], row["cancelled_runs"]) for row in told["agents"]}
    assert by_agent == {"a": (1, 2), "only cancelled": (0, 1)}
    assert "In no sum: 3 runs that users cancelled, with 2,007 tokens in," in " ".join(_html(look).split())


def test_a_page_without_cancelled_runs_says_nothing_of_them(world: World) -> None:
    assert "cancelled" not in _html(world.look())
