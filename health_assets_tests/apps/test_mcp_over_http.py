"""MCP clients at `/mcp`: the same roles, teams, hidden agents and limits as the pages, in short answers."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health_assets.apps.alerts.silencing import Silences
from health_assets.apps.serving.mcp_server.backend import NO_SDK
from health_assets.apps.serving.mcp_server.bounded import MOST_BYTES, bounded
from health_assets.apps.serving.mcp_server.tools import TOOLS
from health_assets.apps.serving.pages.changing import MAY_NOT
from health_assets.apps.serving.server import configured
from health_assets.apps.serving.tokens import new_token
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets.warehouse.store import Warehouse
from health_assets_tests.apps.test_serving_auth import bearer, kept_as_json
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.mcp_clients import Answered, over_http
from health_assets_tests.support.pages_made import World
from health_assets_tests.support.serving_made import (
    PATIENCE_S,
    Served,
    fill_agents,
    readers_in_this_process,
    score,
    served,
    state,
)
from health_assets_tests.support.session_pages_made import HOSTILE, SECRET, made

TOKENS = {
    "operate": new_token("olga", "operate"),
    "read": new_token("rita", "read"),
    "red": new_token("otto", "operate", ["red"]),
    "documents": new_token("dora", "documents"),
}
KEPT = kept_as_json(*(token for _, token in TOKENS.values()))
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
POSTED = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
EACH_TOOL: dict[str, dict[str, Any]] = {
    "fleet": {},
    "agent": {"agent_id": "alpha"},
    "why": {"agent_id": "alpha"},
    "releases": {},
    "sessions": {},
    "session": {"session_id": "calm"},
    "trace": {"session_id": HOSTILE, "trace_id": f"{HOSTILE[:8]}-1-9"},
    "tools": {},
    "usage": {"by": "version"},
    "alerts": {},
    "data_quality": {},
    "formats": {},
    "suggest_targets": {"days": 400},
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return made(tmp_path_factory.mktemp("mcp"))


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Served]:
    audit = world.project.folder / "audit.jsonl"
    with world.served(mcp=True, tokens=KEPT, audit_log=audit, pages_url="https://health.example/") as running:
        running.wait_for_pages(bearer(TOKENS["read"][0]))
        yield running


def told(server: Served, who: str, *calls: tuple[str, dict[str, Any]], mode: str = "auto") -> list[Answered]:
    return over_http(server, *calls, token=TOKENS[who][0], mode=mode).answers


def each_tool(server: Served, who: str) -> dict[str, Answered]:
    return dict(zip(EACH_TOOL, told(server, who, *EACH_TOOL.items()), strict=True))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_is_offered_the_tools_that_its_token_may_use(server: Served, mode: str) -> None:
    reads = [name for name, tool in TOOLS.items() if not tool.is_change]
    for who, offered in (("operate", [*TOOLS]), ("read", reads), ("red", reads)):
        found = over_http(server, token=TOKENS[who][0], mode=mode)
        assert [*found.tools] == offered
        assert "not instructions" in found.instructions
        assert all(found.tools[name].annotations.read_only_hint for name in reads)
        assert all(1 <= tool.description.count(".") <= 2 for tool in found.tools.values())


@pytest.mark.parametrize("who", ["read", "operate"])
def test_every_tool_answers_in_short_json(server: Served, who: str) -> None:
    assert {*EACH_TOOL} == {name for name, tool in TOOLS.items() if not tool.is_change}
    for name, answer in each_tool(server, who).items():
        assert isinstance(answer.json, dict), name
        assert len(answer.text.encode()) <= MOST_BYTES
        assert name == "formats" or answer.json["as_of"] == "2026-06-07T03:00:00Z", name


def test_answers_link_to_pages_that_exist(server: Served) -> None:
    links = {name: answer.json["page"] for name, answer in each_tool(server, "read").items() if "page" in answer.json}
    assert links["agent"] == "https://health.example/ui/agents/alpha"
    for link in links.values():
        page = server.ask(link.removeprefix("https://health.example"), headers=bearer(TOKENS["read"][0]))
        assert page.status == 200, link


def test_an_answer_has_the_numbers_of_its_page(server: Served) -> None:
    [agent, tools, usage] = told(
        server, "operate", ("agent", {"agent_id": "alpha"}), ("tools", {"limit": 1}), ("usage", {"by": "model"})
    )
    headers = bearer(TOKENS["operate"][0])
    page = server.ask("/ui/agents/alpha?format=json", headers=headers).json
    assert agent.json["agent"]["health_score"] == pytest.approx(page["agent"]["health_score"], rel=1e-5)
    assert agent.json["verdict"] == page["verdict"]
    assert agent.json["health_document"]["health"] == page["document"]["health"]
    page = server.ask("/ui/tools?format=json", headers=headers).json
    assert tools.json["listed"][0]["tool"] == page["listed"][0]["tool"]
    assert tools.json["left_out"] == {"listed": page["found"] - 1}
    page = server.ask("/ui/usage?format=json", headers=headers).json
    assert [one["executions"] for one in usage.json["listed"]] == [one["executions"] for one in page["models"]]


def test_why_names_file_and_line_of_the_log(server: Served, world: World) -> None:
    [answer] = told(server, "operate", ("why", {"agent_id": "alpha"}))
    failures = [event for event in answer.json["evidence"] if event["kind"] == "failure"]
    assert failures
    for event in failures:
        line = (world.project.raw / event["source_file"]).read_text().splitlines()[event["line_number"] - 1]
        assert event["event_id"] in line
    assert SECRET in {event.get("error") for event in failures}


def test_the_steps_of_a_trace_are_those_inside_its_run(server: Served) -> None:
    [answer] = told(server, "operate", ("trace", EACH_TOOL["trace"]))
    assert [(step["kind"], step["name"]) for step in answer.json["steps"]] == [("tool", "search"), ("model", "open")]
    assert [step["ended_after_s"] for step in answer.json["steps"]] == [21.0, 28.0]
    assert answer.json["traces"][0]["is_failed"]


def test_a_token_of_a_team_sees_only_its_agents(server: Served) -> None:
    answers = each_tool(server, "red")
    assert {row["agent_id"] for row in answers["fleet"].json["listed"]} == {"alpha", "gamma", "mine"}
    for name, answer in answers.items():
        assert "beta" not in answer.text, name
        assert "of two teams" not in answer.text, name
    hidden, unknown, session = told(
        server,
        "red",
        ("agent", {"agent_id": "beta"}),
        ("agent", {"agent_id": "delta"}),
        ("session", {"session_id": "of two teams"}),
    )
    assert hidden.is_error and unknown.is_error and session.is_error
    assert hidden.text.startswith("No agent of this name is known here")
    assert "beta" not in hidden.text
    assert session.text.startswith("No session of this id is known here")
    for name, arguments in (
        ("tools", {"agent_id": "beta"}),
        ("alerts", {"agent_id": "beta"}),
        ("suggest_targets", {"agent_id": "beta"}),
    ):
        [answer] = told(server, "red", (name, arguments))
        assert answer.is_error and answer.text.startswith("No agent of this name"), name


def test_a_personal_agent_is_shown_to_the_full_view_alone(server: Served) -> None:
    for name, answer in each_tool(server, "read").items():
        assert '"mine"' not in answer.text, name
    refused, shown = (told(server, who, ("agent", {"agent_id": "mine"}))[0] for who in ("read", "operate"))
    assert refused.is_error
    assert shown.json["agent"]["is_personal"]


def test_texts_of_errors_are_shown_to_the_full_view_alone(server: Served) -> None:
    for name, answer in each_tool(server, "read").items():
        assert SECRET not in answer.text, name
    assert SECRET in each_tool(server, "operate")["trace"].text


def test_an_error_is_one_sentence(server: Served) -> None:
    calls = {
        ("agent", "alhpa"): "No agent of this name is known here; did you mean 'alpha'?",
        ("agent", "zzzzz"): "No agent of this name is known here; the tool fleet lists those that are.",
    }
    for (name, agent_id), sentence in calls.items():
        [answer] = told(server, "read", (name, {"agent_id": agent_id}))
        assert (answer.is_error, answer.text) == (True, sentence)
    faults = [
        ("fleet", {"limit": 1000}), ("fleet", {"limit": "ten"}), ("fleet", {"hour": "soon"}), ("fleet", {"hour": "2031-01-01T00"}),
        ("fleet", {"colour": "red"}), ("agent", {}), ("session", {"session_id": "none"}), ("session", {"session_id": "calm", "hour": "x"}),
        ("trace", {"session_id": "calm", "trace_id": "none"}), ("nothing", {}), ("suggest_targets", {"agent_id": "zzzzz"}),
    ]  # fmt: skip
    for answer in told(server, "read", *faults):
        assert answer.is_error
        assert "\n" not in answer.text and answer.text.endswith((".", "?")) and len(answer.text) < 200, answer.text
        assert "Traceback" not in answer.text
    assert server.faults == []


def test_a_silence_is_for_an_operator_of_all_teams(server: Served) -> None:
    silence = ("silence", {"agents": ["alpha"], "until": "2h", "reason": "tested"})
    for who in ("read", "red"):
        [answer] = told(server, who, silence)
        assert (answer.is_error, answer.text) == (True, MAY_NOT)
    [answer] = told(server, "operate", ("silence", {"agents": ["*"], "until": "2h", "reason": "all"}))
    assert answer.is_error and "name agents or rules" in answer.text


def test_a_silence_is_written_and_noted(server: Served, world: World) -> None:
    [answer] = told(server, "operate", ("silence", {"agents": ["alpha"], "until": "2h", "reason": "tested"}))
    assert answer.json["added_by"] == "olga"
    path = world.project.warehouse_path
    found = {one.silence_id: one for one in Silences(Warehouse(str(path), lock_timeout_s=PATIENCE_S)).listed()}
    assert found[answer.json["silence_id"]].agents == ("alpha",)
    lines = [json.loads(line) for line in (world.project.folder / "audit.jsonl").read_text().splitlines()]
    assert "mcp: alerts silence" in {line.get("what") for line in lines}


def test_a_caller_who_may_not_read_is_refused_before_the_body_is_read(server: Served) -> None:
    assert server.ask("/mcp", "POST", POSTED, body=PING).status == 401
    assert server.ask("/mcp", "POST", POSTED | bearer("ha_unknown"), body=PING).status == 401
    assert server.ask("/mcp", "POST", POSTED | bearer(TOKENS["documents"][0]), body=PING).status == 403


def test_a_message_is_a_small_json_post_of_this_site(server: Served) -> None:
    known = POSTED | bearer(TOKENS["read"][0])
    assert server.ask("/mcp", "POST", known, body=PING).status == 200
    assert server.ask("/mcp", "GET", known).status == 405
    assert server.ask("/mcp", "DELETE", known).status == 405
    assert server.ask("/mcp", "POST", known | {"Origin": "https://evil.example"}, body=PING).status == 403
    assert server.ask("/mcp", "POST", known | {"Content-Type": "text/plain"}, body=PING).status == 415
    assert server.ask("/mcp", "POST", known, body=b" " * 70_000).status == 413
    assert server.ask("/mcp", "POST", known | {"Host": "evil.example"}, body=PING).status == 421
    assert server.ask("/mcp", "POST", known, body=b"{nonsense").status == 400
    cookie = {"Cookie": "health_assets=ha_x"}
    assert server.ask("/mcp", "POST", POSTED | cookie, body=PING).status == 401


def test_a_server_answers_clients_only_where_that_is_switched_on(world: World) -> None:
    with world.served(tokens=KEPT) as running:
        assert running.ask("/mcp", "POST", POSTED | bearer(TOKENS["read"][0]), body=PING).status == 405


def test_a_server_without_pages_has_nothing_to_answer_from(tmp_path: Path) -> None:
    with pytest.raises(HealthAssetsError, match="HEALTH_PAGES is off"):
        configured(Settings(warehouse=str(tmp_path / "w.duckdb"), mcp=True, pages=False))


def test_a_server_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.streamable_http_manager", None)
    monkeypatch.delitem(sys.modules, "health_assets.apps.serving.mcp_server.over_http", raising=False)
    with pytest.raises(HealthAssetsError) as refused:
        configured(Settings(warehouse=str(tmp_path / "w.duckdb"), mcp=True))
    assert str(refused.value) == NO_SDK


def test_before_any_data_a_call_says_so(tmp_path: Path) -> None:
    with (
        readers_in_this_process(),
        served(tmp_path / "none.duckdb", is_ready=False, mcp=True, pages=True, history=tmp_path / "history") as running,
    ):
        fleet, formats, session = over_http(
            running, ("fleet", {}), ("formats", {}), ("session", {"session_id": "calm"})
        ).answers
    assert fleet.is_error
    assert fleet.text.startswith("Nothing has been materialized yet")
    assert session.is_error
    assert formats.json["formats"]


def test_an_answer_stays_short_for_a_fleet_of_hundreds(tmp_path: Path) -> None:
    names = [f"agent-{number:04}-{'x' * 300}" for number in range(700)]
    warehouse = tmp_path / "health.duckdb"
    fill_agents(warehouse, *((state(name), score(name, 90.0 - place / 10)) for place, name in enumerate(names)))
    with (
        readers_in_this_process(),
        served(warehouse, mcp=True, pages=True, history=tmp_path / "history", history_days=400) as running,
    ):
        running.wait_for_pages()
        fleet, first = over_http(running, ("fleet", {"limit": 100}), ("fleet", {"limit": 1, "sort": "score"})).answers
    assert len(fleet.text.encode()) <= MOST_BYTES
    assert fleet.json["agents"] == 700
    assert fleet.json["left_out"]["listed"] + len(fleet.json["listed"]) == 700
    assert 10 < len(fleet.json["listed"]) < 100
    assert [row["agent_id"] for row in first.json["listed"]] == [names[-1]]


def test_a_client_may_not_ask_too_often(world: World) -> None:
    with world.served(tokens=KEPT, mcp=True, serve_rate_limit=1.0, is_ready=False) as running:
        known = POSTED | bearer(TOKENS["read"][0])
        statuses = {running.ask("/mcp", "POST", known, body=PING).status for _ in range(40)}
    assert statuses == {200, 429}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@tried_with(50, 1000)
@given(
    st.lists(st.dictionaries(st.text(), values, max_size=5), max_size=20), st.integers(1, 200), st.integers(0, 10**6)
)
def test_any_answer_is_bounded_and_counts_what_it_leaves_out(rows: list[dict], times: int, before: int) -> None:
    found = json.loads(
        text := bounded({"listed": rows * times, "reason": "x" * 10_000, "left_out": {"listed": before}})
    )
    assert len(text.encode()) <= MOST_BYTES
    assert found.get("left_out", {}).get("listed", 0) + len(found["listed"]) == len(rows) * times + before


def test_the_setting_is_off_by_default() -> None:
    assert Settings.model_fields["mcp"].default is False
