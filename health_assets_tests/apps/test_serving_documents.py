"""Health documents: the same as an independent reference says, found by any id, for those who may see them."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any
from urllib.parse import quote

import pytest

from health_assets_tests.support import reference_serving as reference
from health_assets_tests.support.serving_made import HOUR, Row, Served, fill_agents, score, served, state, write_targets

ODD_IDS = (
    "a", "A", "ä", "a/b", "a/b/", "/a", "//", "a%2Fb", "%", "a b", "a?b#c", "a\\b", '"quoted"', "new\nline", "\x01",
    "研究/エージェント", "🤖", "a" * 2000, "https://agents.example/.well-known/agent.json", "did:wba:example.com:agent",
    "x/.well-known/agent-health", "\u00e9", "e\u0301", "O'Brien; --", "..a", "null", "..;/a",
)  # fmt: skip
STATUSES = ("healthy", "degraded", "unhealthy", "unknown")
TOKEN = "sesam, öffne dich"
PERSONAL = ("mine 0", "mine 1", "mine 2", "mine 3")


@dataclass
class World:
    """What the warehouse holds, and the server over it."""

    states: dict[str, Row]
    scores: dict[str, Row]
    server: Served
    failing: set[str]

    def now(self, agent_id: str) -> Row | None:
        """What the document's extension says of the last hours."""
        since = reference.timestamp(HOUR - timedelta(hours=1))
        return {"verdict": "failing", "since": since} if agent_id in self.failing else None


def random_pair(random: Random, agent_id: str, status: str) -> tuple[Row, Row]:
    def maybe(value: Any) -> Any:
        return value if random.random() < 0.7 else None

    moment = HOUR - timedelta(seconds=random.randrange(10**6), microseconds=random.choice([0, 0, 1, 999_999, 500_000]))
    number = random.choice([0.0, 1.0, 1e-9, 0.1 + 0.2, 123456789.125, 1e22, math.nan, math.inf])
    states = state(
        agent_id,
        status,
        last_healthy_at=maybe(moment),
        uptime_seconds=maybe(number),
        response_ratio=maybe(random.random()),
        error_ratio=maybe(random.random()),
        latency_p50_ms=maybe(random.expovariate(0.001)),
        latency_p99_ms=maybe(number),
        sample_count=random.randrange(10**9),
        calibration_trend=random.choice(["stable", "declining", "improving"]),
        days_since_model_change=maybe(random.choice([0.0, 3.25, math.nan])),
        last_capability_update=maybe(moment),
    )
    health_score = maybe(100 * random.random())
    names = ("reliability_score", "performance_score", "stability_score", "operational_score")
    return states, score(agent_id, health_score, **{name: maybe(random.random()) for name in names})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("documents")
    random = Random(1)
    ids = [*ODD_IDS, *PERSONAL, *(f"agent {number}" for number in range(300))]
    pairs = [random_pair(random, agent_id, STATUSES[place % 4]) for place, agent_id in enumerate(ids)]
    for place, agent_id in enumerate(PERSONAL):
        pairs[ids.index(agent_id)][0]["status"] = STATUSES[place]
    scores = [pair[1] for pair in pairs if pair[0]["agent_id"] != "agent 7"]  # as if its score were still to come
    random.shuffle(pairs)
    from health_assets_tests.support.serving_made import fill

    now = [
        {"agent_id": pair[0]["agent_id"], "verdict": "failing", "since": HOUR - timedelta(hours=1)}
        for pair in pairs[::2]
    ]
    states = [pair[0] for pair in pairs]
    fill(folder / "health.duckdb", agent_health_state=states, agent_health=scores, agent_now=now)
    fill_agents(folder / "health.duckdb", (state("of yesterday"), score("of yesterday")), hour=HOUR - timedelta(days=1))
    targets = write_targets(folder / "targets.yaml", {"agents": {name: {"personal": True} for name in PERSONAL}})
    with served(folder / "health.duckdb", targets=targets, token=_secret(), host_agent="a/b") as server:
        scores_by_agent = {row["agent_id"]: row for row in scores}
        yield World({row["agent_id"]: row for row in states}, scores_by_agent, server, {row["agent_id"] for row in now})


def _secret() -> Any:
    from pydantic import SecretStr

    return SecretStr(TOKEN)


def path_of(agent_id: str, safe: str = "") -> str:
    return f"/agents/{quote(agent_id, safe=safe)}/.well-known/agent-health"


BEARER = {"Authorization": f"Bearer {TOKEN}".encode().decode("latin-1")}


def test_every_document_is_the_one_that_the_reference_makes(world: World) -> None:
    for agent_id, row in world.states.items():
        reply = world.server.ask(path_of(agent_id))
        assert reply.status == 200, agent_id
        expected = reference.document(
            row, world.scores.get(agent_id), is_coarse=agent_id in PERSONAL, now=world.now(agent_id)
        )
        assert reply.json == expected, agent_id


def test_with_the_token_a_personal_document_is_whole(world: World) -> None:
    for agent_id in PERSONAL:
        whole = reference.document(
            world.states[agent_id], world.scores[agent_id], is_coarse=False, now=world.now(agent_id)
        )
        assert world.server.ask(path_of(agent_id), headers=BEARER).json == whole


def test_the_scheme_of_the_credentials_is_written_in_any_case(world: World) -> None:
    headers = {"Authorization": BEARER["Authorization"].replace("Bearer", "bEARER")}
    assert "calibration" in world.server.ask(path_of(PERSONAL[0]), headers=headers).json


@pytest.mark.parametrize(
    "credentials",
    ["Bearer wrong", "Bearer ", "Bearer", "", f"bearer{TOKEN}", "Basic c2VzYW0=", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \xff\xfe"],
)  # fmt: skip
def test_a_wrong_token_sees_what_everybody_sees(world: World, credentials: str) -> None:
    credentials = credentials.encode().decode("latin-1")
    plain = world.server.ask(path_of(PERSONAL[1]))
    assert world.server.ask(path_of(PERSONAL[1]), headers={"Authorization": credentials}).body == plain.body
    assert set(plain.json) == {"schema_version", "agent_id", "timestamp", "health"}
    assert set(plain.json["health"]) == {"status"}


def test_the_coarse_status_is_unhealthy_only_on_evidence_of_failure(world: World) -> None:
    shown = [world.server.ask(path_of(agent_id)).json["health"]["status"] for agent_id in PERSONAL]
    assert dict(zip(STATUSES, shown, strict=True)) == {
        "healthy": "healthy", "degraded": "healthy", "unhealthy": "unhealthy", "unknown": "healthy",
    }  # fmt: skip


def test_views_are_told_apart_by_caches(world: World) -> None:
    plain, full = (world.server.ask(path_of(PERSONAL[0]), headers=headers) for headers in ({}, BEARER))
    assert plain.headers["vary"] == full.headers["vary"] == "authorization"
    assert plain.headers["etag"] != full.headers["etag"]
    assert full.headers["cache-control"].startswith("private")
    assert "private" not in plain.headers["cache-control"]


def test_a_slash_in_an_id_may_stand_for_itself(world: World) -> None:
    for agent_id in ("a/b", "/a", "//", "a/b/", "https://agents.example/.well-known/agent.json", "研究/エージェント"):
        assert world.server.ask(path_of(agent_id, safe="/:")).json["agent_id"] == agent_id


def test_another_spelling_of_the_same_url_gives_the_same_answer(world: World) -> None:
    plain = world.server.ask("/agents/a/.well-known/agent-health")
    for path in (
        "/agents/%61/%2Ewell-known/agent-health",
        "/agents/a/.well-known/agent%2Dhealth",
        "/%61gents/a/.well-known/agent-health",
    ):
        other = world.server.ask(path)
        assert (other.status, other.body, other.headers["etag"]) == (200, plain.body, plain.headers["etag"]), path


@pytest.mark.parametrize(
    "agent_id",
    ["nobody", "a/b/c", "", "A" * 5000, "%FF%FE", "a%00", "%C3", "..%2F..%2Fetc%2Fpasswd", "%2E%2E", "a%25252Fb", "of%20yesterday", "agent%20", "~", "%00", "\x7e" * 9],
)  # fmt: skip
def test_an_unknown_agent_is_a_problem_and_not_found(world: World, agent_id: str) -> None:
    reply = world.server.ask(f"/agents/{agent_id}/.well-known/agent-health")
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.status in (404, 422)
    assert reply.json["status"] == reply.status


def test_the_host_has_the_document_of_the_agent_that_is_configured(world: World) -> None:
    assert world.server.ask("/.well-known/agent-health").body == world.server.ask(path_of("a/b")).body


def test_documents_have_no_null_but_that_of_the_model_change(world: World) -> None:
    def nulls(value: Any, path: str = "") -> list[str]:
        if isinstance(value, dict):
            return [found for name, member in value.items() for found in nulls(member, f"{path}.{name}")]
        return [path] if value is None else []

    found = {path for agent_id in world.states for path in nulls(json.loads(world.server.ask(path_of(agent_id)).body))}
    assert found == {".decay.days_since_model_change"}
