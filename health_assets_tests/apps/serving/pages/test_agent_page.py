"""An agent's page says what the warehouse's tables say of it, to those who may know, and shows hostile texts as texts."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from health_assets.apps.serving.access_scope import EVERYBODYS, AccessScope
from health_assets.apps.serving.pages.agent_causes import budget, worst_tool
from health_assets.apps.serving.pages.agent_page import WantedOfAgent, agent_page
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START, execution, line, trigger
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.projects import Project
from health_assets_tests.support.serving_made import Served, fill
from health_assets_tests.support.session_pages_made import html_of

HOURS = HourRange(START, START + 50 * HOUR)
"""Two days and some hours: a day is put together in the history, and the window is shorter than what there is."""
FALLS_AT = 40
HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m/'\"&"
LONG_ERROR = "</code><img src=x onerror=alert(1)>" + "x" * 10_000
TARGETS = {
    "defaults": {"n_full": 5},
    "agents": {
        "falling": {"expected_runtime_s": 10, "sla_s": 20, "platform": "tower"},
        "mine": {"personal": True},
        "theirs": {"team": "blue"},
        "silent": {},
        "flawless": {"expected_success_rate": 1.0},
    },
}


def _lines() -> Iterator[str]:
    for number, hour in enumerate(HOURS):
        is_bad = number >= FALLS_AT
        for place in range(6):
            ended_at = hour + timedelta(minutes=9 * place + 1, seconds=number)
            yield line(
                execution(
                    f"falling-{number}-{place}",
                    "falling",
                    ended_at,
                    30.0 + place if is_bad else 5.0,
                    status="failure" if is_bad and place % 2 else "success",
                    error=("Timeout: no answer\n  in line 7", LONG_ERROR)[place % 3 == 0] if is_bad else None,
                    session_id=f"session-{number // 4}",
                    signals={"confidence": 0.9 - place / 10} if number % 2 else None,
                    agent_version="1.1.0" if is_bad else "1.0.0",
                    model="newer" if number >= FALLS_AT + 3 else "older",
                    cost_usd=0.01 if place else None,
                    input_tokens=100 + place,
                )
            )
        for agent in ("mine", "theirs", "flawless", HOSTILE):
            error = "\x1b[2J<b>bold</b>\u202e" if agent == HOSTILE else None
            status = "failure" if agent == HOSTILE else "success"
            yield line(execution(f"{agent}-{number}", agent, hour + timedelta(minutes=5), status=status, error=error))
        status = "failure" if number == FALLS_AT - 4 else "success"
        yield line(execution(f"clumsy-{number}", "clumsy", hour + timedelta(minutes=5), status=status))
        if is_bad:
            yield line(trigger(f"trigger-{number}", "falling", hour + timedelta(minutes=2), "failed", reason="no slot"))
    yield line(execution("late-1", "late", HOURS.end - timedelta(minutes=1)))
    for place, (tool, status) in enumerate(
        [
            ("search", "failure"),
            ("search", "success"),
            ("search", "failure"),
            ("fetch", "failure"),
            ("fetch", "success"),
        ]
    ):
        at = (HOURS.end - timedelta(minutes=place + 5)).isoformat()
        for agent in ("falling", "clumsy"):
            known = {"type": "tool_call", "call_id": f"{agent}-{place}", "ended_at": at, "agent_id": agent}
            yield line(known | {"tool": tool, "status": status, "error": HOSTILE if status == "failure" else None})
    for hours, kind in ((10, "restart"), (20, "capability_update"), (30, "model_change")):
        at = (START + hours * HOUR + timedelta(minutes=7)).isoformat()
        yield line({"type": "agent_update", "agent_id": "falling", "at": at, "kind": kind, "detail": "told"})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    project = Project(tmp_path_factory.mktemp("agent"), targets=TARGETS)
    project.write_log("of all/a.jsonl", _lines())
    project.materialize(HOURS)
    opened = {"rule": "score below", "subject_kind": "agent", "severity": "critical", "is_personal": False}
    fill(
        project.warehouse_path,
        START + 44 * HOUR,
        alerts=[
            {**opened, "incident_id": "open", "subject_id": "falling", "reason": "It fell <i>far</i>.",
             "opened_at": START + 45 * HOUR},
            {**opened, "incident_id": "closed later", "subject_id": "falling", "reason": "It fell.",
             "opened_at": START + 42 * HOUR, "closed_at": HOURS.end, "recovery": "It rose."},
            {**opened, "incident_id": "another's", "subject_id": "theirs", "reason": "Not this agent's.",
             "opened_at": START + 45 * HOUR},
        ],
    )  # fmt: skip
    return world_of(project, HOURS)


BOTH = WantedOfAgent(against=START + 30 * HOUR, versions=("1.0.0", "1.1.0", "9.9"))


@pytest.fixture(scope="module")
def told(world: World) -> dict[str, Any]:
    """The page of the agent that fell, with both comparisons."""
    return dict(agent_page(world.look(), "falling", BOTH).data)


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Served]:
    with world.served() as running:
        yield running


def page(world: World, agent_id: str, hour: int | None = None, view: AccessScope | None = None, **wanted: Any) -> dict:
    look = world.look(view or AccessScope(is_full=True), None if hour is None else START + hour * HOUR)
    return dict(agent_page(look, agent_id, WantedOfAgent(**wanted)).data)


def html(world: World, agent_id: str, **wanted: Any) -> str:
    look = world.look()
    return html_of(agent_page(look, agent_id, WantedOfAgent(**wanted)), look)


def of_table(world: World, sql: str, *parameters: Any) -> list[tuple]:
    return world.project.query(sql, list(parameters))


def test_the_curve_is_the_score_of_the_table_and_each_dimension_s_loss_up_to_100(world: World, told: dict) -> None:
    rows = of_table(world, "SELECT hour, health_score FROM agent_health WHERE agent_id = 'falling' ORDER BY hour")
    known = [(point["hour"], point["score"]) for point in told["curve"]]
    assert known == rows and len(rows) == len(HOURS)
    lost = ("reliability", "performance", "stability", "operation")
    sums = [point["score"] + sum(point[name] for name in lost) for point in told["curve"]]
    assert sums == pytest.approx([100] * len(HOURS))


def test_the_success_rate_is_of_24_hours_beside_what_is_no_worse_than_before(world: World, told: dict) -> None:
    points = {point["hour"]: point for point in told["success"]}
    assert list(points) == [point["hour"] for point in told["curve"]]
    [(share,)] = of_table(
        world,
        "SELECT avg(succeeded::INT) FROM executions WHERE agent_id = 'falling' AND hour > ?",
        world.hour - 24 * HOUR,
    )
    newest = points[world.hour]
    assert newest["success_percent"] == pytest.approx(100 * share)
    assert newest["success_percent"] < newest["as_before_from_percent"] < 98
    assert points[START + 30 * HOUR]["as_before_from_percent"] is None, "42 executions are no past"
    text = html(world, "falling")
    assert 'data-curve="success"' in text and 'data-kind="expected"' in text


def test_the_points_lost_add_up_to_what_the_score_lacks(told: dict) -> None:
    lacking = 100 - told["agent"]["health_score"]
    assert lacking > 40
    assert sum(loss["lost"] for loss in told["losses"]) == pytest.approx(lacking)
    assert told["verdict"] == "Operation cost most, 20.0 of 20 points: 60 SLA breaches."


def test_the_fall_is_told_from_the_best_hour_with_what_changed_since(told: dict) -> None:
    assert told["fall"]["since"] == START + (FALLS_AT - 1) * HOUR
    assert told["fall"]["points"] == pytest.approx(told["fall"]["before"] - told["agent"]["health_score"])
    assert sum(told["fall"]["dimensions"].values()) == pytest.approx(told["fall"]["points"])
    assert {mark["kind"] for mark in told["fall"]["meanwhile"]} == {"version change", "model change"}


@pytest.mark.parametrize("hour", [FALLS_AT, FALLS_AT + 2, len(HOURS) - 1])
def test_the_executions_that_cost_points_are_those_of_the_table_of_evidence(world: World, hour: int) -> None:
    sql = "SELECT kind, rank, event_id FROM score_evidence WHERE agent_id = 'falling' AND hour = ?"
    shown = {(one["kind"], one["rank"], one["event_id"]) for one in page(world, "falling", hour)["evidence"]}
    assert shown == set(of_table(world, sql, START + hour * HOUR)) and shown


def test_the_kind_that_cost_most_comes_first(told: dict) -> None:
    kinds = list(dict.fromkeys(event["kind"] for event in told["evidence"]))
    costs = {kind: sum(loss["lost"] for loss in told["losses"] if loss["evidence_kind"] == kind) for kind in kinds}
    assert kinds == ["slow_run", "sla_breach", "trigger_failure", "failure"]
    assert list(costs.values()) == sorted(costs.values(), reverse=True)


def test_each_execution_names_its_line_of_the_log(world: World, told: dict) -> None:
    found = {
        row[0]: row[1:]
        for table, key in (("executions", "execution_id"), ("trigger_events", "trigger_id"))
        for row in of_table(world, f"SELECT {key}, source_file, line_number FROM {table}")
    }
    for event in told["evidence"]:
        assert (event["source_file"], event["line_number"]) == found[event["event_id"]]
    assert {event["session_id"] for event in told["evidence"] if event["kind"] == "failure"} == {"session-12"}


def test_failures_are_counted_by_the_first_line_of_their_error_over_the_window(world: World, told: dict) -> None:
    sql = """SELECT split_part(error, chr(10), 1), count(*), max(ended_at) FROM executions
             WHERE agent_id = 'falling' AND status = 'failure' AND hour > ? GROUP BY 1"""
    expected = {text[:300]: rest for text, *rest in of_table(world, sql, world.hour - 24 * HOUR)}
    listed = told["errors"]["listed"]
    assert {one["error"]: [one["failures"], one["last_at"]] for one in listed} == expected
    assert told["errors"]["failures"] == told["agent"]["failures"]


def _tool(name: str, calls: int, failures: int) -> dict[str, Any]:
    return {"tool": name, "calls": calls, "failures": failures, "failure_share": failures / calls, "last_error": "no"}


@pytest.mark.parametrize(
    ("failures", "tools", "expected"),
    [
        (3, [("slow", 40, 0), ("fetch", 10, 2), ("search", 90, 5)], "search"),
        (3, [("search", 90, 5), ("fetch", 10, 5)], "fetch"),
        (3, [("b", 10, 5), ("a", 10, 5)], "a"),
        (3, [("slow", 40, 0)], None),
        (3, [], None),
        (0, [("search", 90, 5)], None),
        (None, [("search", 90, 5)], None),
    ],
    ids=["most", "fewer calls", "same", "none failed", "no tools", "no execution failed", "nothing known"],
)
def test_the_tool_that_failed_most_is_named_where_executions_failed(
    failures: int | None, tools: list[tuple[str, int, int]], expected: str | None
) -> None:
    found = worst_tool({"failures": failures}, [_tool(*one) for one in tools])
    assert (found and found["tool"]) == expected
    assert found is None or set(found) == {"tool", "calls", "failures", "failure_share"}, "no text of an error"


def test_the_page_says_which_tool_failed_most_beside_why_the_score_fell(world: World, told: dict) -> None:
    clumsy = agent_page(world.look(), "clumsy", WantedOfAgent()).data
    assert clumsy["worst_tool"] == {"tool": "search", "calls": 3, "failures": 2, "failure_share": pytest.approx(2 / 3)}
    page = html(world, "clumsy")
    assert "Of its tools search failed most: 2 of 3 calls" in " ".join(re.sub("<[^>]*>", "", page).split())
    assert 'href="/ui/traces?' in page, "to a run in which it failed"
    assert told["worst_tool"] is None, "of an agent that is failing now, the last hours say what failed"
    assert "failed most" not in html(world, "falling")
    assert "failed most" not in html(world, "flawless")


def test_changes_are_marked_where_they_happened(told: dict) -> None:
    marks = {(mark["kind"], mark["text"]): mark["at"] for mark in told["marks"]}
    seven = timedelta(minutes=7)
    assert marks == {
        ("restart", None): START + 10 * HOUR + seven,
        ("capability update", None): START + 20 * HOUR + seven,
        ("model change", "older"): START + 30 * HOUR + seven,
        ("version change", "1.0.0 → 1.1.0"): START + FALLS_AT * HOUR,
        ("model change", "older → newer"): START + (FALLS_AT + 3) * HOUR,
        ("incident", "It fell <i>far</i>."): START + 45 * HOUR,
        ("incident", "It fell."): START + 42 * HOUR,
    }


def test_an_incident_that_closed_after_the_hour_was_open_then(world: World, told: dict) -> None:
    assert [(one["incident_id"], one["closed_at"]) for one in told["incidents"]] == [
        ("open", None),
        ("closed later", HOURS.end),
    ]
    before = page(world, "falling", 45)["incidents"]
    assert [(one["closed_at"], one["recovery"]) for one in before] == [(None, None), (None, None)]
    assert page(world, "falling", 30)["incidents"] == []


def test_the_budget_is_that_of_the_table_in_words_of_how_long_it_lasts(world: World, told: dict) -> None:
    sql = """SELECT budget_spent, failures, n, burn_rate_1h, burn_rate_6h FROM error_budget
             WHERE agent_id = 'falling' AND hour = ?"""
    [(spent, failures, n, rate_1h, rate_6h)] = of_table(world, sql, world.hour)
    assert told["curve"][-1]["budget_spent_percent"] == pytest.approx(100 * spent)
    assert told["budget"]["sentence"].startswith(f"{failures} of {n} executions in 24 h failed")
    assert (rate_1h, rate_6h) == pytest.approx((10, 10))
    assert told["budget"]["speeds"][2] == (
        "In the last hour 3 of 6 failed, 10.0 times what is allowed: at this speed a budget of 24 h is gone in 2.4 h."
    )


@pytest.mark.parametrize(
    ("n", "failures", "rate", "said"),
    [
        (0, 0, None, "In the last hour nothing ran."),
        (4, 0, 0.0, "In the last hour nothing of 4 failed."),
        (4, 1, None, "In the last hour 1 of 4 failed; there is no budget to burn."),
        (40, 1, 0.5, "In the last hour 1 of 40 failed, 0.5 times what is allowed: at this speed the budget lasts."),
        (4, 4, 20.0, "In the last hour 4 of 4 failed, 20.0 times what is allowed: at this speed a budget of 24 h is gone in "
         "72 min."),
        (None, None, None, "In the last hour: not known."),
    ],
)  # fmt: skip
def test_a_burn_rate_is_said_in_plain_words(n: int | None, failures: int | None, rate: float | None, said: str) -> None:
    row = {"n": n, "failures": failures, "allowed_failures": 1.0, "budget_spent": rate, "expected_success_rate": 0.95}
    for length in ("5m", "30m", "1h", "6h"):
        row |= {f"n_{length}": n, f"failures_{length}": failures, f"burn_rate_{length}": rate}
    speeds = budget(row, 24)["speeds"]
    words = ("5 minutes", "30 minutes", "hour", "6 h")
    assert speeds == [said.replace("In the last hour", f"In the last {when}") for when in words]


def test_sessions_are_the_newest_scores_of_the_window_the_worst_first(world: World, told: dict) -> None:
    sql = """SELECT session_id, arg_max(agent_reliability, hour), arg_max(traces_evaluated, hour) FROM session_scores
             WHERE agent_id = 'falling' AND hour > ? GROUP BY 1"""
    expected = {row[0]: row[1] if row[2] else None for row in of_table(world, sql, world.hour - 24 * HOUR)}
    listed = told["sessions"]["listed"]
    assert {one["session_id"]: one["agent_reliability"] for one in listed} == expected
    known = [one["agent_reliability"] for one in listed if one["agent_reliability"] is not None]
    assert known == sorted(known) and told["sessions"]["count"] == len(expected)


def test_usage_by_day_and_by_version_add_up_to_the_executions(world: World, told: dict) -> None:
    sql = """SELECT strftime(hour, '%Y-%m-%d'), count(*), sum(input_tokens), sum(cost_usd), count(cost_usd)
             FROM executions WHERE agent_id = 'falling' GROUP BY 1"""
    expected = {row[0]: pytest.approx(row[1:]) for row in of_table(world, sql)}
    columns = ("executions", "input_tokens", "cost_usd", "executions_with_cost")
    assert {one["day"]: tuple(one[name] for name in columns) for one in told["usage"]} == expected
    for rows in (told["versions"], told["models"]):
        assert sum(one["executions"] for one in rows) == 6 * len(HOURS)


def test_two_hours_stand_side_by_side_with_what_got_worse(world: World, told: dict) -> None:
    then, now = ({point["hour"]: point for point in told["curve"]}[hour] for hour in (START + 30 * HOUR, world.hour))
    rows = {(one["group"], one["name"]): one for one in told["hours"]["rows"]}
    score = rows["score", "score"]
    assert (score["then"], score["now"], score["is_worse"]) == (then["score"], now["score"], True)
    assert score["difference"] == pytest.approx(now["score"] - then["score"])
    assert rows["points lost by dimension", "reliability"]["difference"] == pytest.approx(now["reliability"])
    assert rows["runtime", "p99"]["is_worse"] and not rows["executions", "long runs"]["is_worse"]
    assert [one["then"] for one in told["hours"]["errors"]] == [0, 0]
    assert sum(one["now"] for one in told["hours"]["errors"]) == told["agent"]["failures"]


def test_an_hour_of_which_nothing_is_known_is_said_to_be_one(world: World) -> None:
    early = START - 5 * HOUR
    assert page(world, "falling", against=early)["hours"] == {"hour": early, "rows": [], "errors": []}
    assert "Nothing is known of it at" in html(world, "falling", against=early)


def test_versions_stand_side_by_side_with_their_errors(world: World, told: dict) -> None:
    sql = """SELECT agent_version, count(*), avg(succeeded::int), avg(runtime_s), sum(cost_usd) FROM executions
             WHERE agent_id = 'falling' GROUP BY 1"""
    expected = {row[0]: pytest.approx(row[1:]) for row in of_table(world, sql)}
    old, new, none = told["side_by_side"]["versions"]
    columns = ("executions", "success_share", "mean_runtime_s", "cost_usd")
    assert {one["agent_version"]: tuple(one[name] for name in columns) for one in (old, new)} == expected
    assert none == {"agent_version": "9.9", "executions": 0}
    failures = Counter[int]()
    for error in told["side_by_side"]["errors"]:
        failures.update(dict(enumerate(error["failures"])))
    assert failures == {0: 0, 1: new["failures"], 2: 0}
    assert "did not run" in html(world, "falling", versions=("1.0.0", "9.9"))


def test_an_agent_that_ran_nothing_has_a_page_that_says_so(world: World) -> None:
    shown = html(world, "silent")
    assert "It ran nothing in the 24 h that end with this hour, so it has no score." in shown
    assert "No execution or trigger cost it points." in shown and "It ran nothing in this time." in shown
    assert page(world, "silent")["fall"] is None


def test_few_executions_are_a_doubt_and_points_that_nothing_tested_are_named(world: World) -> None:
    told = page(world, "late")
    assert told["doubts"][0] == "The score is provisional, 1 of 5 runs: with so few it leans to 100."
    assert told["untested"].startswith(
        "Points counted in full, though nothing tested them: 40 of performance and stability"
    )
    assert told["untested"].endswith(
        "32 of reliability (1 of 5 runs). Median runtime 60.1 s; health-assets targets suggest proposes a target."
    )
    assert told["untested"] in html(world, "late") and page(world, "silent")["untested"] == ""
    early = page(world, "falling", 3)
    assert early["doubts"] == [] and early["agent"]["hours_covered"] == 24  # nothing was before the first log


def test_who_allows_no_failure_has_no_budget_of_which_to_tell_a_share(world: World) -> None:
    told = page(world, "flawless")
    assert "None may fail, so there is no budget" in told["budget"]["sentence"]
    assert "No budget was spent or left" in html(world, "flawless")


def test_who_may_not_see_an_agent_is_told_what_everybody_is_told_of_nobody(world: World) -> None:
    no_one = _refused(world, "nobody", AccessScope(is_full=True))
    assert _refused(world, "mine", AccessScope(is_full=False)) == no_one
    assert _refused(world, "theirs", AccessScope(is_full=True, teams=frozenset({"red"}))) == no_one
    assert page(world, "mine")["agent"]["is_personal"]
    assert page(world, "theirs", view=AccessScope(is_full=False, teams=frozenset({"blue"})))["agent"]["team"] == "blue"


def _refused(world: World, agent_id: str, view: AccessScope) -> str:
    with pytest.raises(HealthAssetsError) as refused:
        page(world, agent_id, view=view)
    return str(refused.value)


def test_an_agent_of_other_hours_is_told_to_be_looked_at_then(world: World) -> None:
    with pytest.raises(HealthAssetsError, match=f"look at {world.hour:%Y-%m-%dT%H}, the last hour at which it is"):
        page(world, "late", 4)


def test_hostile_names_and_texts_are_shown_as_text(world: World) -> None:
    shown = html(world, HOSTILE) + html(world, "falling", against=START + 20 * HOUR, versions=("1.0.0", HOSTILE))
    for active in ("<script>alert", "<img src=x", "<b>bold", "<i>far", "\u202e", "\x1b", "x" * 1300):
        assert active not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\u001b[31m" in shown
    assert shown.count("</html>") == 2


def test_hours_that_are_not_copied_yet_are_said_to_be_missing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    events = world.history._account.series["events"]
    monkeypatch.setattr(events, "days", {day: parts for day, parts in events.days.items() if day != max(events.days)})
    assert page(world, "falling")["incomplete"] == ["events"]
    assert "Not every hour of this time is kept here, so there may be more." in html(world, "falling")
    assert "Nothing of this is known: not every hour of this time is kept here." in html(world, "silent")


def test_the_document_of_the_newest_hour_is_the_endpoint_s(world: World, server: Served) -> None:
    for agent_id in ("falling", "theirs", HOSTILE, "silent", "late"):
        served_document = server.ask(f"/agents/{quote(agent_id, safe='')}/.well-known/agent-health").json
        assert page(world, agent_id)["document"] == served_document


def test_texts_of_errors_are_for_the_full_view_as_on_the_api(world: World, told: dict) -> None:
    seen = agent_page(world.look(EVERYBODYS), "falling", BOTH)
    texts = {one["error"] for one in told["errors"]["listed"]} | {one["error"] for one in told["evidence"]}
    told_to_everybody = seen.written("json", {})[0].decode()
    assert not any(text in told_to_everybody for text in texts - {None})
    assert len(texts - {None}) > 0
    assert seen.data["errors"]["failures"] == told["errors"]["failures"]
    assert "withheld" in html_of(seen, world.look(EVERYBODYS))


def test_a_page_has_an_address_and_twins(world: World, server: Served) -> None:
    told = agent_page(world.look(AccessScope(is_local_user=True)), "falling", BOTH).data
    address = f"/ui/agents/falling?days=7&against={START + 30 * HOUR:%Y-%m-%dT%H}&versions=1.0.0,1.1.0,9.9"
    twin = server.ask(f"{address}&format=json").json
    assert twin == {**json.loads(json.dumps(told, default=datetime.isoformat)), "title": "falling", "hours_to_copy": 0}
    listed = list(csv.DictReader(io.StringIO(server.ask("/ui/agents/falling?days=1&format=csv").body.decode())))
    assert len(listed) == 24 and float(listed[-1]["score"]) == told["agent"]["health_score"]
    whole = server.ask(address)
    assert whole.status == 200
    assert b'"?format=json&days=7&against=2026-06-08T06&versions=1.0.0&versions=1.1.0&versions=9.9"' in whole.body


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/ui/agents/nobody", 404, b"No agent of this name is known here"),
        ("/ui/agents/mine", 404, b"No agent of this name is known here"),
        ("/ui/agents/falling?against=noon", 404, b"is not a whole hour in UTC"),
        ("/ui/agents/falling?days=8", 422, b"days"),
        (f"/ui/agents/{quote(HOSTILE, safe='')}", 200, b"&lt;script&gt;"),
        ("/ui/agents/falling?versions=&against=", 200, b"Compare versions"),
    ],
)
def test_addresses_that_people_type_are_answered(server: Served, address: str, status: int, said: bytes) -> None:
    reply = server.ask(address)
    assert reply.status == status and said in reply.body
