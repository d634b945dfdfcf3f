"""Tokens that are limited to teams: their answers are those of a world in which nothing of others exists."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from health_assets.apps.serving.tokens import new_token
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.serving_made import (
    HOUR,
    Row,
    Served,
    fill,
    readers_in_this_process,
    score,
    served,
    state,
    write_targets,
)

TEAMS = ("payments", "search", "a/b ü")
AGENTS = tuple(f"agent-{number}" for number in range(9))
SESSIONS = tuple(f"session-{number}" for number in range(6))
OF_THE_MOMENT = {"date", "last-modified"}
OF_THE_SERVER = ("loaded_at", "checked_at", "data_age_s")

teams_of_agents = st.dictionaries(st.sampled_from(AGENTS), st.sampled_from([*TEAMS, None]))
agents = st.sampled_from(AGENTS)


@dataclass
class World:
    """A fleet, its teams, and a token that is limited to some of them."""

    default_team: str | None
    teams: dict[str, str | None]
    personal: frozenset[str]
    agents: list[str]
    scores: list[float | None]
    tools: list[str]
    sessions: dict[str, list[str | None]]
    host_agent: str
    wanted: frozenset[str]
    role: str

    def team(self, agent_id: str | None) -> str | None:
        return None if not agent_id else self.teams.get(agent_id, self.default_team)

    def is_wanted(self, agent_id: str | None) -> bool:
        return self.team(agent_id) in self.wanted

    @property
    def without_others(self) -> "World":
        """The world of which the token may know: others, their teams and their sessions do not exist."""
        pairs = [(one, value) for one, value in zip(self.agents, self.scores, strict=True) if self.is_wanted(one)]
        return World(
            self.default_team,
            {agent_id: team for agent_id, team in self.teams.items() if self.is_wanted(agent_id)},
            frozenset(filter(self.is_wanted, self.personal)),
            [agent_id for agent_id, _ in pairs],
            [value for _, value in pairs],
            [agent_id for agent_id in self.tools if self.is_wanted(agent_id)],
            {name: of for name, of in self.sessions.items() if all(map(self.is_wanted, of))},
            self.host_agent,
            self.wanted,
            self.role,
        )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    known = draw(st.lists(agents, unique=True, min_size=3))
    scores = st.sampled_from([None, 5.0, 70.0, 90.0, 90.5])
    return World(
        draw(st.sampled_from([None, *TEAMS])),
        draw(teams_of_agents),
        draw(st.frozensets(agents, max_size=3)),
        known,
        draw(st.lists(scores, min_size=len(known), max_size=len(known))),
        draw(st.lists(st.sampled_from(["", *AGENTS]), unique=True)),
        draw(
            st.dictionaries(
                st.sampled_from(SESSIONS), st.lists(st.sampled_from([*AGENTS, None]), min_size=1, max_size=3)
            )
        ),
        draw(agents),
        draw(st.frozensets(st.sampled_from(TEAMS), min_size=1, max_size=2)),
        draw(st.sampled_from(["documents", "read", "operate"])),
    )


def build(world: World, folder: Path) -> tuple[Path, Path]:
    """The world's warehouse and targets."""
    warehouse = folder / "health.duckdb"
    in_window = {"window_start": HOUR, "window_end": HOUR}
    bad = {"failures": 3, "failure_share_at_least": 0.5}
    fill(
        warehouse,
        agent_health_state=[state(agent_id) for agent_id in world.agents],
        agent_health=[score(agent_id, value) for agent_id, value in zip(world.agents, world.scores, strict=True)],
        score_evidence=[
            {"agent_id": agent_id, "kind": "failure", "rank": 1, "event_id": f"event of {agent_id}"}
            for agent_id in world.agents
        ],
        model_health=[{"model": f"model of {agent_id}", "health_score": 0.5} for agent_id in world.agents],
        tool_health=[
            {"agent_id": agent_id, "tool": tool, "last_error": f"error of {agent_id}", **in_window, **bad}
            for agent_id in world.tools
            for tool in ("a", "b")
        ],
        agent_usage=[{"agent_id": agent_id, "cost_usd": 1.0, **in_window} for agent_id in world.tools if agent_id],
        usage_breakdown=[
            {"agent_id": agent_id, "model": model, "user_id": "u", "cost_usd": 1.0, **in_window}
            for agent_id in world.tools
            if agent_id
            for model in ("m", "n")
        ],
        session_scores=[
            {"session_id": name, "agent_id": of[0], "total_traces": len(of)} for name, of in world.sessions.items()
        ],
        trace_risks=[
            {"trace_id": f"{name} {place}", "session_id": name, "agent_id": agent_id, "step_risk": 0.5}
            for name, of in world.sessions.items()
            for place, agent_id in enumerate(of)
        ],
    )
    own: dict[str, dict[str, Any]] = {agent_id: {"team": team} for agent_id, team in world.teams.items()}
    for agent_id in world.personal:
        own.setdefault(agent_id, {})["personal"] = True
    sections = {"defaults": {"team": world.default_team} if world.default_team else {}, "agents": own}
    return warehouse, write_targets(folder / "targets.yaml", sections)


def paths() -> Iterator[str]:
    yield from (
        "/",
        "/nothing",
        "/docs",
        "/openapi.json",
        "/status",
        "/.well-known/agent-health",
        "/models",
        "/metrics",
    )
    yield from (
        "/models/best?candidates=model%20of%20agent-1,x",
        "/agents?limit=0",
        "/tools?limit=x",
        "/agents/",
        "/sessions/",
    )
    for agent_id in (*AGENTS, "nobody"):
        for spelling in (quote(agent_id), agent_id.replace("-", "%2D")):
            yield from (f"/agents/{spelling}", f"/agents/{spelling}/.well-known/agent-health")
        yield from (f"/tools?agent_id={agent_id}", f"/usage?agent_id={agent_id}&offset=1")
    yield "/tools?agent_id="
    for sort in ("verdict", "-verdict", "score", "-score"):
        yield from (f"/agents?sort={sort}&limit=2&offset={offset}" for offset in (0, 2, 100))
    yield from (f"/agents?state={named}" for named in ("healthy", "degraded", "unhealthy", "inactive"))
    for sort in ("cost", "tokens", "cost_per_success"):
        yield from (f"/usage?sort={sort}&limit=1&offset={offset}" for offset in (0, 1, 50))
    yield from (f"/tools?limit=3&offset={offset}" for offset in (0, 3, 50))
    yield from (f"/sessions/{session_id}" for session_id in (*SESSIONS, "none"))


def answers(server: Served, headers: dict[str, str], tags: dict[str, str]) -> dict[tuple[str, str], Any]:
    """All that a caller is told; also by HEAD, and when it guesses the entity tags of what others are told."""
    found: dict[tuple[str, str], Any] = {}
    for path in paths():
        ways = [("GET", {}), ("HEAD", {})] + ([("GET", {"If-None-Match": tags[path]})] if path in tags else [])
        for method, more in ways:
            reply = server.ask(path, method, {**headers, **more})
            told = {name: value for name, value in reply.headers.items() if name not in OF_THE_MOMENT}
            body: Any = reply.body
            if path == "/status":
                body = {
                    name: value for name, value in (reply.json if body else {}).items() if name not in OF_THE_SERVER
                }
                told = {name: value for name, value in told.items() if name != "content-length"}
            found[f"{method} {path}", str(more)] = reply.status, told, body
    return found


@pytest.fixture(scope="module", autouse=True)
def _readers() -> Iterator[None]:
    with readers_in_this_process():
        yield


@given(worlds())
@tried_with(3, 20)
def test_a_token_of_some_teams_is_told_what_it_would_be_told_if_there_were_no_others(
    tmp_path_factory: pytest.TempPathFactory, world: World
) -> None:
    secret, kept = new_token("limited", world.role, sorted(world.wanted))
    everything, whole = new_token("everything", "operate")
    tokens = SecretStr(json.dumps([token.model_dump(mode="json", exclude_none=True) for token in (kept, whole)]))
    told, tags = [], {}
    for one in (world, world.without_others):
        warehouse, targets = build(one, tmp_path_factory.mktemp("teams"))
        with served(
            warehouse, targets=targets, tokens=tokens, host_agent=world.host_agent, serve_sessions_per_s=1e6
        ) as server:
            if not tags:  # of the whole world, as one of the operators may have told them
                for path in paths():
                    reply = server.ask(path, headers={"Authorization": f"Bearer {everything}"})
                    if etag := reply.headers.get("etag"):
                        tags[path] = etag
            told.append(answers(server, {"Authorization": f"Bearer {secret}"}, tags))
            if one is world and world.role != "documents":
                listed = server.ask("/agents?limit=1000", headers={"Authorization": f"Bearer {secret}"}).json
    assert told[0] == told[1]
    if world.role != "documents":
        mine = {agent_id for agent_id in world.agents if world.is_wanted(agent_id)}
        assert {item["agent_id"] for item in listed["agents"]} == mine
        assert listed["total"] == len(mine)


def row_of(server: Served, secret: str, path: str) -> Row:
    return server.ask(path, headers={"Authorization": f"Bearer {secret}"}).json


def test_of_an_agent_of_its_team_a_token_sees_what_its_role_allows(tmp_path: Path) -> None:
    world = World(None, {"agent-1": "payments", "agent-2": "search"}, frozenset({"agent-1"}), ["agent-1", "agent-2"],
                  [50.0, 60.0], ["agent-1"], {"session-1": ["agent-1"]}, "agent-1", frozenset({"payments"}), "read")  # fmt: skip
    warehouse, targets = build(world, tmp_path)
    made = {role: new_token(role, role, ["payments"]) for role in ("read", "operate")}
    tokens = SecretStr(json.dumps([kept.model_dump(mode="json", exclude_none=True) for _, kept in made.values()]))
    with served(warehouse, targets=targets, tokens=tokens) as server:
        seen = {role: row_of(server, secret, "/agents/agent-1")["health_score"] for role, (secret, _) in made.items()}
        assert seen == {"read": None, "operate": 50.0}
        operate = made["operate"][0]
        assert row_of(server, operate, "/tools")["tools"][0]["last_error"] == "error of agent-1"
        assert row_of(server, operate, "/tools")["window_start"] == HOUR.isoformat()
        assert row_of(server, operate, "/sessions/session-1")["agent_id"] == "agent-1"
        assert row_of(server, made["read"][0], "/sessions/session-1")["status"] == 404  # a personal agent's
        assert row_of(server, operate, "/status")["agents"] == 1
        assert row_of(server, operate, "/models")["detail"].startswith(
            "models are measured over the agents of all teams"
        )
        # who leaves the token away gets what everybody gets
        assert server.ask("/agents/agent-2/.well-known/agent-health").status == 200
        assert row_of(server, operate, "/agents/agent-2/.well-known/agent-health")["status"] == 404
