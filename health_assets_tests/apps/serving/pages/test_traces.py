"""The page of a run tells what happened inside it, to those who may see it, and is one click from where runs are named."""

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from health_assets.apps.serving import run_traces
from health_assets.apps.serving.access_scope import EVERYBODYS, AccessScope
from health_assets.apps.serving.pages.agent_page import WantedOfAgent, agent_page
from health_assets.apps.serving.pages.fleet_page import Wanted as WantedFleet
from health_assets.apps.serving.pages.fleet_page import fleet_page
from health_assets.apps.serving.pages.session_page import Wanted as WantedSession
from health_assets.apps.serving.pages.session_page import session_page
from health_assets.apps.serving.pages.trace_page import NO_CALLS, NO_RUN, ONLY_CALLS, SPANS_GONE, Wanted, trace_page
from health_assets.apps.serving.reader_process import read_session_runs, read_trace
from health_assets.apps.serving.tokens import new_token
from health_assets.apps.serving.trace_question import TraceQuestion
from health_assets.core.errors import HealthAssetsError
from health_assets_tests.apps.test_serving_auth import bearer, kept_as_json
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.pages_made import FULL, World
from health_assets_tests.support.serving_made import Served
from health_assets_tests.support.session_pages_made import html_of, look_at
from health_assets_tests.support.waterfalls_made import FAILING, LONG, PROMPT, SECRET, WRAPPED, made, run_id

RED = AccessScope(teams=frozenset({"red"}))
LONG_SPANS = 1201
PAGE = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return made(tmp_path_factory.mktemp("traces"), LONG_SPANS)


def trace(world: World, run: str = FAILING, agent: str | None = None, **wanted: Any) -> dict[str, Any]:
    question = TraceQuestion(run_id=run, agent_id=agent, until=START, **wanted)
    found = read_trace(world.project.settings, question, world.hours.end)
    assert found is not None
    return json.loads(json.dumps(found["answer"]))


@pytest.fixture(scope="module")
def failing(world: World) -> dict[str, Any]:
    return trace(world)


@pytest.fixture(scope="module")
def long(world: World) -> dict[str, Any]:
    return trace(world, LONG)


def page(world: World, answer: dict[str, Any], view: AccessScope = FULL, **wanted: Any) -> Any:
    question = TraceQuestion(run_id=answer["run"]["execution_id"])
    return trace_page(look_at(world, view), Wanted(question=question, trace=answer, **wanted))


def listed(world: World, answer: dict[str, Any], view: AccessScope = FULL, **wanted: Any) -> list[dict[str, Any]]:
    return list(page(world, answer, view, **wanted).data["listed"])


def html(world: World, answer: dict[str, Any], view: AccessScope = FULL, **wanted: Any) -> str:
    return html_of(page(world, answer, view, **wanted), look_at(world, view))


def test_spans_are_told_in_the_order_of_their_tree_with_times_tokens_and_lines(
    world: World, failing: dict[str, Any]
) -> None:
    rows = listed(world, failing)
    assert [(row["depth"], row["kind"], row["name"]) for row in rows] == [
        (0, "agent", "planner"), (1, "model", "m1"), (1, "tool", "search"), (1, "tool", "search"),
        (1, "tool", "search"), (1, "other", "hand over to 4711"), (2, "agent", "helper"), (3, "tool", "refund"),
        (1, "agent", "diary"), (2, "tool", "read-diary"), (1, "agent", "billing"), (2, "tool", "read-bills"),
    ]  # fmt: skip
    refund = rows[7]
    assert refund["duration_s"] == 6.0
    assert refund["started_at"] - rows[0]["started_at"] == timedelta(seconds=12)
    assert (rows[1]["input_tokens"], rows[1]["output_tokens"], rows[1]["model"]) == (1200, 80, "m1")
    assert {(row["source_file"], row["line_number"]) for row in rows} == {("traces/failing.jsonl", 1)}


def test_a_failure_is_told_where_it_began(world: World, failing: dict[str, Any]) -> None:
    told = page(world, failing).data
    assert [(one["name"], one["error"]) for one in told["origins"]] == [("refund", SECRET)]
    assert told["counts"]["failed"] == 2, "the run itself, and the tool"


def test_steps_that_repeat_are_marked_by_the_rule_of_the_loop_signal(world: World, failing: dict[str, Any]) -> None:
    assert [row["is_repeated"] for row in listed(world, failing) if row["name"] == "search"] == [False, True, True]
    with world.project.warehouse.read() as session:
        [signals] = session.dicts(session.table("computed_signals").filter(lambda row: row.execution_id == FAILING))
    assert signals["repeated_steps"] == page(world, failing).data["counts"]["repeated"] == 2
    assert len(listed(world, failing, show="repeated")) == 2


def test_a_call_that_several_spans_tell_of_counts_once(world: World) -> None:
    counts = page(world, trace(world, WRAPPED)).data["counts"]
    assert (
        counts["model_calls"]
        == len([row for row in world.project.rows("model_calls") if row["execution_id"] == WRAPPED])
        == 1
    )
    assert [row["kind"] for row in listed(world, trace(world, WRAPPED))] == ["agent", "model", "model"]
    assert len(listed(world, trace(world, WRAPPED), show="calls")) == 1


def test_a_run_is_found_by_the_id_of_its_trace_too(world: World) -> None:
    trace_id = WRAPPED.partition(":")[0]
    for asked in (trace_id, trace_id.upper()):
        assert trace(world, asked)["run"]["execution_id"] == WRAPPED


def test_spans_below_one_that_no_log_has_are_said_and_not_drawn(world: World, failing: dict[str, Any]) -> None:
    assert failing["loose"] == 1
    assert "1 orphan span of its trace, whose parent is in no log" in html(world, failing)
    assert "orphan" not in html(world, failing, RED), "it may be of an agent that is not theirs"


def test_no_prompt_and_no_argument_is_anywhere(world: World, failing: dict[str, Any]) -> None:
    assert PROMPT not in json.dumps(failing) and PROMPT not in html(world, failing)


def test_who_may_not_read_texts_reads_no_error_and_no_name_that_a_program_chose(
    world: World, failing: dict[str, Any]
) -> None:
    found = page(world, failing, EVERYBODYS)
    told = html_of(found, look_at(world, EVERYBODYS)) + json.dumps(found.data, default=str)
    assert SECRET not in told and "hand over" not in told
    assert "error withheld" in told and "name withheld" in told and "refund" in told


def test_a_part_of_a_personal_agent_is_closed_without_the_full_view(world: World, failing: dict[str, Any]) -> None:
    found = page(world, failing, EVERYBODYS)
    told = html_of(found, look_at(world, EVERYBODYS)) + json.dumps(found.data, default=str)
    assert "diary" not in told and "a part that is not yours to see" in told
    assert found.data["counts"]["tool_calls"] == 5
    assert "read-diary" in html(world, failing, FULL)


def test_a_team_sees_agents_inside_its_run_but_for_those_that_another_team_has(
    world: World, failing: dict[str, Any]
) -> None:
    names = [row["name"] for row in listed(world, failing, RED)]
    assert "helper" in names, "the targets name it nowhere, so it belongs to the run"
    assert "read-bills" not in names and "billing" not in names and "read-diary" not in names
    assert sum(row["is_hidden"] for row in listed(world, failing, RED)) == 2


def test_a_run_without_spans_tells_its_calls_over_time(world: World) -> None:
    answer = trace(world, "p-1")
    rows = listed(world, answer)
    told = [(row["name"], row["kind"], row["duration_s"], row["is_failed"]) for row in rows]
    assert told == [
        ("plain", "agent", 60.0, True), ("fetch", "tool", 0.9, False), ("small", "model", 4.0, False),
        ("fetch", "tool", 0.9, True), ("wait", "tool", None, False),
    ]  # fmt: skip
    assert page(world, answer).data["note"] == ONLY_CALLS
    assert page(world, answer).data["origins"][0]["name"] == "fetch"


def test_a_run_of_which_nothing_inside_is_known_says_why_there_is_nothing_to_draw(world: World) -> None:
    told = html(world, trace(world, "s-1"))
    assert NO_CALLS in told and "no times are known: " in told and "look" in told


def test_spans_that_retention_dropped_are_said_to_be_gone(world: World, failing: dict[str, Any]) -> None:
    nothing = {name: [] for name in trace(world, "p-1")["calls"]}
    assert SPANS_GONE in html(world, {**failing, "spans": None, "calls": nothing})


def test_where_the_logs_cannot_be_seen_the_run_is_shown_all_the_same(world: World) -> None:
    elsewhere = world.project.settings.model_copy(update={"raw": world.project.folder / "elsewhere"})
    found = read_trace(elsewhere, TraceQuestion(run_id=FAILING, until=START), world.hours.end)
    assert found is not None
    told = html(world, json.loads(json.dumps(found["answer"])))
    assert "No line can be opened from here: there is no raw root" in " ".join(told.split())
    assert "is gone or renamed" not in told


def test_a_log_that_is_gone_is_said_in_a_sentence(world: World) -> None:
    log = world.project.raw / "plain.jsonl"
    kept = log.read_bytes()
    log.unlink()
    try:
        told = html(world, trace(world, "p-1"))
    finally:
        log.write_bytes(kept)
    assert "This log is gone or renamed" in told
    assert "is gone or renamed" not in html(world, trace(world, "p-1"))


def test_a_long_trace_begins_with_an_outline_and_no_span_of_it_is_lost(world: World, long: dict[str, Any]) -> None:
    found = page(world, long)
    assert found.shown["show"] == "outline"
    assert [row["below"] for row in found.data["listed"][:3]] == [LONG_SPANS - 1, 99, 99]
    pages = [listed(world, long, show="all", page=number) for number in (1, 2, 3, 4)]
    assert [len(rows) for rows in pages] == [500, 500, 201, 0]
    assert len({row["span_id"] for rows in pages for row in rows}) == LONG_SPANS
    assert "1,201 in all; rows 501 to 1,000" in html(world, long, show="all", page=2)
    assert [row["depth"] for row in page(world, long, show="all", page=2).shown["above"]] == [0, 1]


def test_a_part_of_a_run_is_shown_alone_on_its_own_line_of_time(world: World, long: dict[str, Any]) -> None:
    step = next(row for row in listed(world, long, show="all") if row["below"] == 99)
    found = page(world, long, span=step["span_id"])
    assert found.data["found"] == 100 and found.shown["line"].seconds == pytest.approx(step["duration_s"])
    with pytest.raises(HealthAssetsError, match="no such span"):
        page(world, long, span="ffff")


def test_failures_and_the_slowest_steps_can_be_shown_alone(world: World, long: dict[str, Any]) -> None:
    assert {row["is_failed"] for row in listed(world, long, show="failed")} == {True}
    durations = [row["duration_s"] for row in listed(world, long, show="slowest")]
    assert durations == sorted(durations, reverse=True)
    assert {row["kind"] for row in listed(world, long, show="calls")} == {"model", "tool"}


def test_spans_beyond_the_most_that_are_listed_are_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_traces, "MOST_SPANS", 100)
    answer = trace(world, LONG)
    assert (len(answer["spans"]["span_id"]), answer["not_listed"]) == (100, LONG_SPANS - 100)
    assert "The first 100 by start; 1,101 more" in html(world, answer)


def test_the_newest_run_that_failed_with_a_tool_is_found(world: World) -> None:
    wanted = TraceQuestion(agent_id="planner", because="tool", value="refund", until=START)
    found = read_trace(world.project.settings, wanted, world.hours.end)
    assert found is not None and found["answer"]["run"]["execution_id"] == FAILING
    for because, value in [("tool", "search"), ("called_model", "m1"), ("version", "9")]:
        wanted = TraceQuestion(agent_id="planner", because=because, value=value, until=START)  # type: ignore[arg-type]
        assert read_trace(world.project.settings, wanted, world.hours.end) is None
    nothing = Wanted(question=TraceQuestion(agent_id="planner", because="tool", value="search"))
    with pytest.raises(HealthAssetsError, match="in which a call of the tool search failed"):
        trace_page(look_at(world), nothing)


def test_a_busy_warehouse_is_said_with_a_way_to_try_again(world: World) -> None:
    found = trace_page(look_at(world), Wanted(question=TraceQuestion(run_id=FAILING), why_not="the warehouse is held"))
    assert found.status == 503
    assert "cannot be shown now: the warehouse is held" in html_of(found, look_at(world))


LINK = re.compile(r'href="(/ui/traces/[^"]+)"')


def test_runs_are_one_click_from_the_pages_that_name_them(world: World) -> None:
    look = look_at(world)
    pages = {
        "fleet": fleet_page(look, WantedFleet()),
        "agent": agent_page(look, "plain", WantedOfAgent()),
        "session": session_page(look, _session(world, "talk")),
    }
    for name, found in pages.items():
        links = LINK.findall(html_of(found, look))
        assert any(link.startswith("/ui/traces/p-1?agent=plain&") for link in links), name


def _session(world: World, session_id: str) -> WantedSession:
    found = read_session_runs(world.project.settings, session_id, None, world.hours.end)
    assert found is not None
    return WantedSession(session_id=session_id, runs=json.loads(json.dumps(found["answer"])))


@pytest.fixture(scope="module")
def tokens() -> dict[str, tuple[str, Any]]:
    return {
        "red": new_token("red", "read", ["red"]),
        "blue": new_token("blue", "read", ["blue"]),
        "operate": new_token("operate", "operate"),
    }


@pytest.fixture(scope="module")
def server(world: World, tokens: dict[str, tuple[str, Any]]) -> Iterator[Served]:
    with world.served(raw=world.project.raw, tokens=kept_as_json(*(kept for _, kept in tokens.values()))) as running:
        running.wait_for_pages(bearer(tokens["operate"][0]))
        yield running


def address(run: str = FAILING, agent: str = "planner", more: str = "") -> str:
    return f"/ui/traces/{run}?agent={agent}&until=2026-06-07T00{more}"


def test_a_run_of_another_team_looks_like_one_that_is_not_there(
    server: Served, tokens: dict[str, tuple[str, Any]]
) -> None:
    asked = {name: bearer(token) | PAGE for name, (token, _) in tokens.items()}
    assert server.ask(address(), headers=asked["red"]).status == 200
    hidden = server.ask(address(), headers=asked["blue"])
    missing = server.ask(address(run_id(77)), headers=asked["blue"])
    assert hidden.status == missing.status == 404 and NO_RUN.encode() in hidden.body
    assert hidden.body.replace(FAILING.encode(), b"") == missing.body.replace(run_id(77).encode(), b"")
    assert server.ask(address(), headers=PAGE).status == 401
    assert not server.faults


def test_the_twins_of_a_run_tell_every_row_and_no_more(server: Served, tokens: dict[str, tuple[str, Any]]) -> None:
    red, operator = (bearer(tokens[name][0]) for name in ("red", "operate"))
    rows = list(
        csv.DictReader(io.StringIO(server.ask(address(LONG, "long", "&format=csv"), headers=red).body.decode()))
    )
    assert len(rows) == LONG_SPANS
    told = server.ask(address(more="&format=json"), headers=red)
    assert (
        b"read-bills" not in told.body
        and SECRET.encode() not in told.body
        and told.json["run"]["agent_id"] == "planner"
    )
    assert SECRET.encode() in server.ask(address(more="&format=json"), headers=operator).body
    assert not server.faults
