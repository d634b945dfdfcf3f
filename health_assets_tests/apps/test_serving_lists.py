"""The JSON lists: agents by score, a score explained, models, sessions; and every answer as the OpenAPI document says."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
import schemathesis
from hypothesis import assume, given
from pydantic import SecretStr, TypeAdapter

from health_assets.apps.serving import reader_process, vocabulary
from health_assets.apps.serving.access_scope import EVERYBODYS
from health_assets.apps.serving.reader_process import session_answer
from health_assets.apps.serving.session_schemas import SessionScores
from health_assets.apps.serving.snapshot import Snapshot
from health_assets.core.settings import Settings
from health_assets.model_tracker import ModelHealthTracker
from health_assets.systems.agent_health_model import agent_health
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.serving_made import (
    HOUR,
    Row,
    Served,
    fill,
    fill_agents,
    score,
    served,
    state,
    write_targets,
)

BEARER = {"Authorization": "Bearer secret"}
PERSONAL = ("mine bad", "mine good")
TOLD = ("state", "health_score", "is_provisional", "n", "n_full")
STATES = ("healthy", "degraded", "unhealthy", "inactive", "provisional")


LOST: Row = {
    "n": 40, "successes": 20, "failures": 20, "asr": 0.5, "afh": 1.0, "success_score": 0.5, "failure_score": 1.0,
    "confidence_factor": 1.0, "performance_score": 0.5, "ar_s": 11.0, "expected_runtime_s": 10.0, "deviation": 0.1,
    "stability_score": 1.0, "sla_score": 1.0, "trigger_score": 1.0, "expected_success_rate": 1.0, "long_running": 0,
    "sla_breaches": 0, "trigger_failures": 0,
}  # fmt: skip
"""An agent that lost 14 points to its success rate and 10 to its runtime."""


def made_scores() -> list[Row]:
    """Scores with ties and gaps, and two of personal agents."""
    random = Random(2)
    scores = [score(f"agent {number}", random.choice([None, 10.0, 50.0, 70.0, 90.0, 100.0])) for number in range(60)]
    scores += [score("mine bad", 1.0), score("mine good", 99.0)]
    scores += [score("explained", 76.0, **LOST)]
    for row in scores:
        value = row["health_score"]
        row["state"] = (
            "inactive" if value is None else "healthy" if value >= 85 else "degraded" if value >= 65 else "unhealthy"
        )
        row["is_provisional"] = value is not None and row["agent_id"] != "explained" and random.random() < 0.4
    return scores


SCORES = made_scores()


def trace(trace_id: str, session_id: str = "s/1", **columns: object) -> Row:
    return {"trace_id": trace_id, "session_id": session_id, "agent_id": "agent 1", **columns}


FIGURES: Row = {
    "runs": 2, "failures": 1, "cancelled_runs": 0, "first_started_at": HOUR, "last_ended_at": HOUR + timedelta(seconds=90.5),
    "input_tokens": 1200, "output_tokens": 80, "cost_usd": 0.25, "cost_source": "computed",
    "tool_calls": 40, "tool_failures": 9, "steps": 60, "repeated_steps": 5,
    "last_error": "no secret host db-2", "last_error_at": HOUR + timedelta(seconds=30),
}  # fmt: skip


def session(session_id: str, agent_id: str | None = "agent 1", **columns: object) -> Row:
    return {"session_id": session_id, "agent_id": agent_id, "total_traces": 3, **columns}


def event(agent_id: str, kind: str, rank: int, event_id: str) -> Row:
    return {"agent_id": agent_id, "kind": kind, "rank": rank, "event_id": event_id}


def tool_row(agent_id: str, tool: str, **columns: object) -> Row:
    window = {"window_start": HOUR - timedelta(hours=23), "window_end": HOUR + timedelta(hours=1)}
    return {"agent_id": agent_id, "tool": tool, "calls": 10, "failures": 0, "failure_share": 0.0, **window, **columns}


def usage_row(agent_id: str, **columns: object) -> Row:
    window = {"window_start": HOUR - timedelta(hours=23), "window_end": HOUR + timedelta(hours=1)}
    return {"agent_id": agent_id, "executions": 3, "successes": 2, "positive_feedback": 1, **window, **columns}


TOOLS = [
    tool_row("agent 1", "search", failure_share_at_least=0.2, failures=5, failure_share=0.5, p50_latency_ms=12.5,
             last_error="secret host db-1", last_error_at=HOUR),
    tool_row("agent 1", 'the "best"\\ tool', failure_share_at_least=0.4),
    tool_row("", "whose", failure_share_at_least=0.1),
    tool_row("mine bad", "diary", failure_share_at_least=0.9, last_error="private"),
    *(tool_row(f"agent {n}", "common", failure_share_at_least=0.0, calls=n) for n in range(2, 30)),
]  # fmt: skip
USAGE = [
    usage_row(
        "agent 1", cost_usd=5.0, input_tokens=10, output_tokens=None, cost_per_success_usd=2.5, executions_with_tokens=3
    ),
    usage_row(
        "agent 2", cost_usd=0.5, input_tokens=9, output_tokens=90, cost_per_success_usd=None, executions_with_tokens=1
    ),
    usage_row("silent", cost_usd=None, input_tokens=None, output_tokens=None, executions_with_tokens=0),
    usage_row("mine good", cost_usd=1000.0, input_tokens=10**9, executions_with_tokens=3, cost_per_success_usd=500.0),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("lists")
    warehouse = folder / "health.duckdb"
    statuses = {"mine bad": "unhealthy"}
    fill_agents(warehouse, *((state(row["agent_id"], statuses.get(row["agent_id"], "healthy")), row) for row in SCORES))
    models = [
        {
            "model": "gpt",
            "health_score": 0.6,
            "is_degraded": True,
            "last_error": "secret host db-1",
            "p50_latency_ms": 12.5,
            "last_response_model": "gpt-2",
            "previous_response_model": "gpt-1",
            "response_model_changed_at": HOUR,
        },
        {"model": "claude", "health_score": 0.9},
        {"model": "tied", "health_score": 0.9},
    ]
    early = HOUR - timedelta(hours=5)
    fill(
        warehouse,
        early,
        session_scores=[session("s/1", agent_reliability=0.1), session("old", total_traces=1)],
        trace_risks=[
            trace("t1", confidence_risk=0.9, step_risk=0.9),
            trace(
                "t2",
                confidence_risk=0.2,
                tool_risk=0.1,
                step_risk=0.2,
                situational_penalty=0.08,
                weighted_uncertainty=0.216,
            ),
        ],
    )
    fill(
        warehouse,
        model_health=models,
        session_scores=[
            session(
                "s/1",
                agent_reliability=0.7,
                flagged_traces=["t1"],
                mean_top_k_risk=0.3,
                max_risk=0.3,
                raw_risk=0.3,
                **FIGURES,
            ),
            session("of mine", "mine good"),
            session("of nobody", None),
            session("mixed"),
        ],
        trace_risks=[
            trace("t1", confidence_risk=0.3, step_risk=0.3, is_flagged=True),
            trace("t3"),
            trace("t4", "other"),
            trace("t5", "mixed", agent_id="mine bad"),
        ],
    )
    fill(
        warehouse,
        score_evidence=[
            event("explained", "failure", 2, "second"),
            event("explained", "failure", 1, 'the "first" \\'),
            event("explained", "slow_run", 1, "slow"),
            event("mine bad", "failure", 1, "private"),
        ],
    )
    fill(warehouse, HOUR - timedelta(hours=1), score_evidence=[event("explained", "failure", 1, "of yesterday")])
    fill(warehouse, HOUR - timedelta(hours=200), session_scores=[session("forgotten")])
    breakdown = [{**row, "agent_version": "1", "model": f"model of {row['agent_id']}", "user_id": "u"} for row in USAGE]
    breakdown.append(usage_row("agent 2", agent_version="2", model="", user_id="", cost_usd=7.0))
    fill(warehouse, tool_health=TOOLS, agent_usage=USAGE, usage_breakdown=breakdown)
    fill(warehouse, HOUR - timedelta(hours=1), tool_health=[tool_row("agent 1", "of yesterday")])
    targets = write_targets(folder / "targets.yaml", {"agents": {name: {"personal": True} for name in PERSONAL}})
    with served(warehouse, targets=targets, token=SecretStr("secret"), anonymous_role="read") as running:
        yield running


# -- agents --


VERDICTS = ("unhealthy", "unhealthy?", "degraded", "degraded?", "healthy?", "healthy", "inactive")


def in_order(rows: list[Row], sort: str) -> list[str]:
    """By verdict and score or by score alone, those without one last; of equal ones by id."""
    sign = -1 if sort.startswith("-") else 1

    def key(row: Row) -> tuple:
        value = row["health_score"]
        word = row["state"] + ("?" if row["is_provisional"] else "")
        place = VERDICTS.index(word) if sort.endswith("verdict") and value is not None else 0
        return value is None, sign * place, sign * (value or 0), row["agent_id"].encode()

    return [row["agent_id"] for row in sorted(rows, key=key)]


def list_of(row: Row) -> str:
    """The list by state that an agent is in: one that looks healthy after too few runs is in that of provisional ones."""
    return "provisional" if row["state"] == "healthy" and row["is_provisional"] else row["state"]


def shown(row: Row, *, is_full_view: bool) -> Row:
    if is_full_view or row["agent_id"] not in PERSONAL:
        return row
    hidden = dict.fromkeys(("health_score", "is_provisional", "n", "n_full"))
    return {**row, **hidden, "state": "unhealthy" if row["agent_id"] == "mine bad" else "healthy"}


@pytest.mark.parametrize("is_full_view", [False, True])
@pytest.mark.parametrize("wanted", [None, *STATES])
@pytest.mark.parametrize("sort", ["verdict", "-verdict", "score", "-score"])
def test_pages_put_together_are_the_agents_of_a_state_in_the_order_that_is_asked_for(
    server: Served, sort: str, wanted: str | None, is_full_view: bool
) -> None:
    rows = [shown(row, is_full_view=is_full_view) for row in SCORES]
    expected = in_order([row for row in rows if wanted in (None, list_of(row))], sort)
    query = f"/agents?sort={sort}&limit=7" + (f"&state={wanted}" if wanted else "")
    found: list[str] = []
    while True:
        page = server.ask(f"{query}&offset={len(found)}", headers=BEARER if is_full_view else {}).json
        assert page["total"] == len(expected)
        if not page["agents"]:
            break
        found += [agent["agent_id"] for agent in page["agents"]]
        for agent in page["agents"]:
            [row] = [row for row in rows if row["agent_id"] == agent["agent_id"]]
            assert {name: agent[name] for name in TOLD} == {name: row[name] for name in TOLD}
    assert found == expected


def test_a_list_begins_with_what_a_person_on_call_looks_at_first(server: Served) -> None:
    assert server.ask("/agents?limit=20").json == server.ask("/agents?sort=verdict&limit=20").json


def test_a_page_far_behind_the_end_is_empty(server: Served) -> None:
    assert server.ask("/agents?offset=100000000").json["agents"] == []


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=-1", "limit=x", "limit=", "limit=1e3", "limit=" + "9" * 400, "offset=-1", "offset=99999999999999999999", "state=good", "state=", "state=Healthy", "sort=name", "sort=%FF", "limit=5&limit=x"],
)  # fmt: skip
def test_an_impossible_parameter_is_named(server: Served, query: str) -> None:
    reply = server.ask(f"/agents?{query}")
    assert (reply.status, reply.headers["content-type"]) == (422, "application/problem+json")
    assert reply.json["detail"].startswith(query.partition("=")[0])


def test_a_score_is_explained_to_the_last_point(server: Served) -> None:
    row = next(row for row in SCORES if row["health_score"] == 50.0)
    explained = server.ask(f"/agents/{row['agent_id'].replace(' ', '%20')}").json
    assert explained["health_score"] == 50.0
    assert {name: part["points"] for name, part in explained["dimensions"].items()} == {
        "reliability": 40, "performance": 20, "stability": 20, "operation": 20,
    }  # fmt: skip
    for part in explained["dimensions"].values():
        assert part["cost"] == (None if part["score"] is None else part["points"] * (1 - part["score"]))
    assert explained["targets"]["healthy_at"] == 0.5  # what `fill` puts where a number must stand
    assert explained["inputs"]["n"] == 7


def test_a_score_is_explained_by_the_events_that_weigh_most(server: Served) -> None:
    losses = server.ask("/agents/explained").json["explanation"]
    found = [(one["component"], one["dimension"], one["lost"], one["sentence"], one["evidence"]) for one in losses]
    assert found == [
        ("success", "reliability", 14.0, "50% succeeded, 100% expected", ['the "first" \\', "second"]),
        ("performance", "performance", 10.0, "11.0 s a run, 10 s expected", ["slow"]),
    ]
    assert losses[0]["inputs"] == {"n": 40, "successes": 20, "asr": 0.5, "confidence_factor": 1.0}
    assert losses[0]["targets"]["expected_success_rate"] == 1.0
    best = next(row["agent_id"] for row in SCORES if row["health_score"] == 100.0)
    assert server.ask(f"/agents/{best.replace(' ', '%20')}").json["explanation"] == []


def test_the_evidence_of_a_personal_agent_is_for_the_holder_of_the_token_alone(server: Served) -> None:
    for path in ("/agents/mine%20bad", "/agents", "/agents/mine%20bad/.well-known/agent-health"):
        assert b"private" not in server.ask(path).body
        assert b"explanation" not in server.ask(path).body
    assert "explanation" in server.ask("/agents/mine%20bad", headers=BEARER).json


def test_a_warehouse_without_evidence_is_served_without_it(tmp_path: Path) -> None:
    warehouse = tmp_path / "health.duckdb"
    fill_agents(warehouse, (state("a"), score("a", 76.0, **LOST)))
    reader_process.read_newest(Settings(warehouse=str(warehouse)), tmp_path, None)
    snapshot = Snapshot.read(
        tmp_path,
        {
            "version": "",
            "hour": HOUR.isoformat(),
            "known_until": HOUR.isoformat(),
            "model_hour": HOUR.isoformat(),
            "models": [],
            "teams": [],
            "slices": {},
            "fleet_scores": {"full": None, "public": None},
            "lists": {},
        },
    )
    place = snapshot.find(b"a", EVERYBODYS)
    assert place is not None
    losses = snapshot.explain(place, is_full_view=False)["explanation"]
    assert [(one["lost"], one["evidence"]) for one in losses] == [(14.0, []), (10.0, [])]


def test_what_the_server_says_of_the_model_is_what_the_score_is_made_with() -> None:
    assert {name: points for name, (_, points) in vocabulary.DIMENSIONS.items()} == {
        "reliability": agent_health.RELIABILITY_POINTS,
        "performance": agent_health.PERFORMANCE_POINTS,
        "stability": agent_health.STABILITY_POINTS,
        "operation": agent_health.OPERATIONAL_POINTS,
    }


def test_a_personal_score_is_explained_to_the_holder_of_the_token_alone(server: Served) -> None:
    assert "dimensions" not in server.ask("/agents/mine%20bad").json
    assert server.ask("/agents/mine%20bad", headers=BEARER).json["health_score"] == 1.0


# -- models --


def test_models_are_listed_by_name_and_their_errors_to_the_holder_of_the_token_alone(server: Served) -> None:
    plain = server.ask("/models")
    assert [model["model"] for model in plain.json["models"]] == ["claude", "gpt", "tied"]
    assert b"secret host" not in plain.body
    full = server.ask("/models", headers=BEARER).json["models"][1]
    assert (full["last_error"], full["is_degraded"], full["p50_latency_ms"]) == ("secret host db-1", True, 12.5)


def test_a_model_says_which_model_answered_and_since_when(server: Served) -> None:
    claude, gpt, _ = server.ask("/models").json["models"]
    assert (gpt["last_response_model"], gpt["previous_response_model"]) == ("gpt-2", "gpt-1")
    assert datetime.fromisoformat(gpt["response_model_changed_at"]) == HOUR
    assert (claude["last_response_model"], claude["response_model_changed_at"]) == (None, None)


@pytest.mark.parametrize(
    ("candidates", "best", "best_score"),
    [
        ("gpt,claude", "claude", 0.9),
        ("gpt", "gpt", 0.6),
        ("tied,claude", "tied", 0.9),
        ("claude,tied", "claude", 0.9),
        ("claude,new%20one,gpt", "new one", 1.0),
        ("new,newer", "new", 1.0),
        ("gpt,gpt", "gpt", 0.6),
    ],
)
def test_the_best_model_has_the_highest_score_and_an_unseen_one_counts_as_perfect(
    server: Served, candidates: str, best: str, best_score: float
) -> None:
    reply = server.ask(f"/models/best?candidates={candidates}").json
    assert (reply["model"], reply["health_score"]) == (best, best_score)


def test_an_unseen_model_counts_in_the_endpoint_as_it_does_in_the_tracker(server: Served) -> None:
    [candidate] = server.ask("/models/best?candidates=never%20seen").json["candidates"]
    assert candidate["health_score"] == ModelHealthTracker(50, 0.7).health_score("never seen")


@pytest.mark.parametrize("query", ["", "?candidates=", "?candidates=,", "?candidates=a,,b", "?candidates=a,"])
def test_without_candidates_there_is_no_best_model(server: Served, query: str) -> None:
    assert server.ask(f"/models/best{query}").status == 422


# -- tools and usage --


def test_tools_are_listed_from_the_worst_on_without_those_of_personal_agents(server: Served) -> None:
    answer = server.ask("/tools?limit=4").json
    assert [(item["agent_id"], item["tool"]) for item in answer["tools"]] == [
        ("agent 1", 'the "best"\\ tool'), ("agent 1", "search"), ("", "whose"), ("agent 29", "common"),
    ]  # fmt: skip
    assert (answer["total"], answer["offset"], answer["limit"]) == (len(TOOLS) - 1, 0, 4)
    assert answer["hour"] == HOUR.isoformat()
    assert answer["window_end"] == (HOUR + timedelta(hours=1)).isoformat()
    search = answer["tools"][1]
    assert (search["calls"], search["failures"], search["failure_share"], search["p50_latency_ms"]) == (
        10,
        5,
        0.5,
        12.5,
    )
    assert search["p95_latency_ms"] is None
    assert b"secret" not in server.ask("/tools?limit=1000").body


def test_pages_of_tools_are_cut_without_gap_or_overlap(server: Served) -> None:
    whole = server.ask("/tools?limit=1000").json["tools"]
    pages = [server.ask(f"/tools?limit=7&offset={offset}").json["tools"] for offset in range(0, len(TOOLS) + 7, 7)]
    assert [item for page in pages for item in page] == whole
    assert pages[-1] == []


def test_the_holder_of_the_token_sees_personal_agents_tools_and_errors(server: Served) -> None:
    answer = server.ask("/tools?limit=3", headers=BEARER).json
    assert answer["total"] == len(TOOLS)
    assert [(item["tool"], item["last_error"]) for item in answer["tools"]] == [
        ("diary", "private"), ('the "best"\\ tool', None), ("search", "secret host db-1"),
    ]  # fmt: skip
    assert server.ask("/usage", headers=BEARER).json["usage"][0]["agent_id"] == "mine good"


def test_an_agents_tools_can_be_asked_for_and_a_personal_agent_looks_like_an_unknown_one(server: Served) -> None:
    for agent_id, tools in [
        ("agent%201", ['the "best"\\ tool', "search"]), ("", ["whose"]), ("mine%20bad", []), ("never%20seen", []), ("%FF", []),
    ]:  # fmt: skip
        answer = server.ask(f"/tools?agent_id={agent_id}").json
        assert [item["tool"] for item in answer["tools"]] == tools, agent_id
        assert answer["total"] == len(tools)
    assert [item["tool"] for item in server.ask("/tools?agent_id=mine%20bad", headers=BEARER).json["tools"]] == [
        "diary"
    ]
    assert server.ask("/tools?agent_id=agent%201&offset=1").json["tools"][0]["tool"] == "search"
    assert server.ask("/usage?agent_id=mine%20good").json["usage"] == []
    assert server.ask("/usage?agent_id=agent%202").json["usage"][0]["cost_usd"] == 0.5


@pytest.mark.parametrize(
    ("sort", "agents"),
    [
        ("", ["agent 1", "agent 2", "silent"]),
        ("?sort=cost", ["agent 1", "agent 2", "silent"]),
        ("?sort=tokens", ["agent 2", "agent 1", "silent"]),
        ("?sort=cost_per_success", ["agent 1", "agent 2", "silent"]),
    ],
)
def test_usage_is_listed_from_the_greatest_on_and_the_unknown_last(
    server: Served, sort: str, agents: list[str]
) -> None:
    answer = server.ask(f"/usage{sort}").json
    assert [item["agent_id"] for item in answer["usage"]] == agents
    assert answer["total"] == 3
    silent = next(item for item in answer["usage"] if item["agent_id"] == "silent")
    assert silent["cost_usd"] is silent["input_tokens"] is silent["cost_per_success_usd"] is None


def test_usage_is_listed_by_version_model_and_user_too(server: Served) -> None:
    def named(query: str, **asked: Any) -> list[tuple[str, str, str, str]]:
        items = server.ask(f"/usage/breakdown{query}", **asked).json["usage_breakdown"]
        return [(item["agent_id"], item["agent_version"], item["model"], item["user_id"]) for item in items]

    first, second = ("agent 1", "1", "model of agent 1", "u"), ("agent 2", "1", "model of agent 2", "u")
    silent, newer = ("silent", "1", "model of silent", "u"), ("agent 2", "2", "", "")
    assert named("") == [newer, first, second, silent]
    assert named("?sort=cost_per_success")[0] == first
    assert named("?agent_id=agent%202") == [newer, second]
    assert named("?agent_id=mine%20good") == []
    assert named("?limit=1", headers=BEARER) == [("mine good", "1", "model of mine good", "u")]


@pytest.mark.parametrize("query", ["tools?limit=0", "tools?limit=1001", "usage?sort=worst", "usage?offset=-1"])
def test_a_page_that_cannot_be_is_refused(server: Served, query: str) -> None:
    assert server.ask(f"/{query}").status == 422


def test_calls_of_nobody_are_personal_where_agents_are_by_default(tmp_path: Path) -> None:
    warehouse = tmp_path / "health.duckdb"
    fill_agents(warehouse, (state("public"), score("public")))
    fill(warehouse, tool_health=[tool_row("", "whose"), tool_row("public", "x"), tool_row("mine", "y")])
    sections = {"defaults": {"personal": True}, "agents": {"public": {"personal": False}}}
    with served(warehouse, targets=write_targets(tmp_path / "targets.yaml", sections)) as running:
        answer = running.ask("/tools").json
    assert ([item["agent_id"] for item in answer["tools"]], answer["total"]) == (["public"], 1)


@pytest.mark.parametrize("path", ["tools", "usage"])
def test_a_list_that_was_never_materialized_has_no_hour_and_an_hour_without_items_has_one(
    tmp_path: Path, path: str
) -> None:
    warehouse = tmp_path / "health.duckdb"
    fill_agents(warehouse, (state("a"), score("a")))
    with served(warehouse) as running:
        nothing = {
            "hour": None,
            "window_start": None,
            "window_end": None,
            "total": 0,
            "offset": 0,
            "limit": 100,
            path: [],
        }
        assert running.ask(f"/{path}").json == nothing
    fill(warehouse, tool_health=[], agent_usage=[])
    with served(warehouse) as running:
        assert running.ask(f"/{path}").json == nothing | {"hour": HOUR.isoformat()}
        assert running.ask(f"/{path}?agent_id=a").json["total"] == 0


# -- sessions --


def test_a_session_has_its_newest_scores_and_the_newest_risks_of_each_trace(server: Served) -> None:
    answer = server.ask("/sessions/s%2F1").json
    reliability, consistency = answer["agent_reliability"], answer["agent_consistency"]
    assert reliability["score"] == 0.7
    assert reliability["metadata"]["per_trace_signals"] == {
        "t1": {"confidence_risk": 0.3, "step_risk": 0.3},
        "t2": {"confidence_risk": 0.2, "tool_risk": 0.1, "step_risk": 0.2},
    }
    assert reliability["metadata"]["flagged_traces"] == ["t1"]
    assert reliability["metadata"]["flagged_not_listed"] == 0
    assert reliability["metadata"]["aggregation"] == {
        "method": "max_compose_top_k", "top_k_percentile": 0.5, "ensemble_weight": 0.5, "mean_top_k_risk": 0.3, "max_risk": 0.3,
    }  # fmt: skip
    assert consistency["metadata"]["per_trace_signals"] == {
        "t2": {"confidence_risk": 0.2, "tool_risk": 0.1, "situational_penalty": 0.08, "weighted_uncertainty": 0.216}
    }
    assert consistency["metadata"]["aggregation"] == {"method": "weighted_rms", "rms_value": None}
    assert answer["traces_not_listed"] == 0


def test_a_session_tells_of_its_executions_without_any_signal(server: Served) -> None:
    answer = server.ask("/sessions/s%2F1", headers=BEARER).json
    moments = {name for name in FIGURES if name.endswith("_at")}
    assert {name: answer[name] for name in FIGURES if name not in moments} == {
        name: value for name, value in FIGURES.items() if name not in moments
    }
    assert {name: datetime.fromisoformat(answer[name]) for name in moments} == {name: FIGURES[name] for name in moments}
    assert answer["duration_s"] == 90.5
    nothing = server.ask("/sessions/old", headers=BEARER).json
    assert (nothing["duration_s"], nothing["cost_usd"], nothing["last_error"]) == (None, None, None)


def test_the_last_error_of_a_session_is_for_who_may_read_errors_alone(server: Served) -> None:
    answer = server.ask("/sessions/s%2F1")
    assert answer.json["failures"] == 1 and "last_error_at" in answer.json
    assert "last_error" not in answer.json and b"db-2" not in answer.body


def test_the_openapi_document_has_the_metadata_of_the_source(server: Served) -> None:
    """Source 5, "Metadata returned"."""
    schemas = server.ask("/openapi.json").json["components"]["schemas"]
    own = {name: set(schemas[name]["properties"]) for name in ("ReliabilityMetadata", "ConsistencyMetadata")}
    common = {"total_traces_in_session", "traces_evaluated", "signal_weights", "per_trace_signals", "aggregation"}
    assert own["ReliabilityMetadata"] == common | {"raw_risk", "flagged_traces", "flagged_not_listed", "flag_threshold"}
    assert own["ConsistencyMetadata"] == common | {"raw_instability"}


@pytest.mark.parametrize(
    ("evaluated", "with_confidence", "reliability", "consistency"),
    [
        (0, 0, "No traces or signals to evaluate.", "No traces or signals to evaluate."),
        (2, 0, None, "No evaluable traces."),
        (2, 1, None, None),
    ],
)
def test_a_metric_without_a_score_says_the_reason_of_the_source(
    evaluated: int, with_confidence: int, reliability: str | None, consistency: str | None
) -> None:
    """Source 5, "Edge cases"."""
    made = session(
        "s", traces_evaluated=evaluated, consistency_traces_evaluated=with_confidence, agent_reliability=1.0,
        agent_consistency=1.0, reliability_passed=True, consistency_passed=True, reliability_band="b",
        consistency_band="b", hour=HOUR, flagged_not_listed=0, duration_s=90.5, **FIGURES,
    )  # fmt: skip
    names = ("raw_risk", "raw_instability", "mean_top_k_risk", "max_risk")
    settings = dict.fromkeys(("flag_threshold", "pass_threshold", "top_k_share", "ensemble_weight"), 0.5)
    weights = {f"weight_{name}": 1.0 for name in ("confidence", "loop_detection", "tool_correctness", "coherence")}
    answer = session_answer({**dict.fromkeys(names), "flagged_traces": [], **settings, **weights, **made}, [])
    TypeAdapter(SessionScores).validate_python(answer)
    assert answer["agent_reliability"]["reason"] == reliability
    assert answer["agent_consistency"]["reason"] == consistency


def test_a_session_is_found_as_long_as_the_look_back_lasts(server: Served) -> None:
    assert server.ask("/sessions/old").status == 200
    assert server.ask("/sessions/s/1").status == 200
    for session_id in ("forgotten", "never", "%FF", "'%20OR%201=1;--", "..%2f..", "x" * 5000):
        assert server.ask(f"/sessions/{session_id}").status == 404, session_id


def test_a_personal_agents_session_is_there_for_the_holder_of_the_token_alone(server: Served) -> None:
    assert server.ask("/sessions/of%20mine").status == 404
    assert server.ask("/sessions/of%20mine", headers=BEARER).json["agent_id"] == "mine good"
    assert server.ask("/sessions/of%20mine").status == 404
    assert server.ask("/sessions/mixed").status == 404  # one of its traces is a personal agent's
    assert server.ask("/sessions/mixed", headers=BEARER).status == 200
    assert server.ask("/sessions/of%20nobody").status == 200


@pytest.mark.parametrize("named", ["in the score", "in no score"])
def test_a_session_without_an_agent_is_personal_where_agents_are_by_default(tmp_path: Path, named: str) -> None:
    warehouse = tmp_path / "health.duckdb"
    known = "public" if named == "in the score" else None  # the latest trace that names an agent gives it to the score
    fill(warehouse, session_scores=[session("s", known)], trace_risks=[trace("t", "s", agent_id=None)])
    for by_default in (True, False):
        sections = {"defaults": {"personal": by_default}, "agents": {"public": {"personal": False}}}
        targets = write_targets(tmp_path / "targets.yaml", sections)
        found = reader_process.read_session(Settings(warehouse=str(warehouse), targets=targets), "s")
        assert found is not None
        assert found["is_personal"] is by_default


def test_a_personal_agent_behind_the_traces_that_are_listed_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_process, "MOST_TRACES", 2)
    warehouse = tmp_path / "health.duckdb"
    risks = [trace(f"t{number}", "s", step_risk=0.9) for number in range(2)]
    fill(
        warehouse,
        session_scores=[session("s")],
        trace_risks=[*risks, trace("t2", "s", agent_id="mine", step_risk=0.1)],
    )
    targets = write_targets(tmp_path / "targets.yaml", {"agents": {"mine": {"personal": True}}})
    found = reader_process.read_session(Settings(warehouse=str(warehouse), targets=targets), "s")
    assert found is not None
    assert found["answer"]["traces_not_listed"] == 1
    assert found["is_personal"]


def test_of_flagged_traces_the_riskiest_thousand_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    warehouse = tmp_path / "health.duckdb"
    flagged = [f"t{number}" for number in range(1003)]
    fill(warehouse, session_scores=[session("s", flagged_traces=flagged)])
    found = reader_process.read_session(Settings(warehouse=str(warehouse)), "s")
    assert found is not None
    metadata = found["answer"]["agent_reliability"]["metadata"]
    assert metadata["flagged_traces"] == flagged[:1000]
    assert metadata["flagged_not_listed"] == 3


# -- the OpenAPI document --


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
def test_every_answer_is_one_that_the_openapi_document_declares(
    server: Served, mode: schemathesis.GenerationMode
) -> None:
    """Requests as the document allows them, and as it does not: nothing undeclared, nothing accepted, never a 500."""
    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/openapi.json")
    asked = []
    for found in schema.get_all_operations():
        operation = found.ok()
        asked.append(operation.label)

        @given(case=operation.as_strategy(generation_mode=mode))
        @tried_with(6, 15)
        def check(case: schemathesis.Case) -> None:
            assume(not {"state", "now"} <= set(case.query or {}))  # each alone; OpenAPI cannot say so
            assert case.call_and_validate().status_code < 500

        if mode is schemathesis.GenerationMode.POSITIVE or operation.query:  # any text may be an id
            check()
    assert len(asked) == 28


def test_the_openapi_document_has_every_path_and_the_page_needs_nothing_from_elsewhere(server: Served) -> None:
    document = server.ask("/openapi.json").json
    assert set(document["paths"]) == {
        "/.well-known/agent-health", "/agents/{agent_id}/.well-known/agent-health", "/agents", "/agents/{agent_id}",
        "/models", "/models/best", "/tools", "/usage", "/usage/breakdown", "/sessions/{session_id}", "/status",
        "/metrics", "/livez", "/readyz",
    }  # fmt: skip
    page = server.ask("/docs").body.decode()
    assert all(f"</span> {path}</h2>" in page for path in document["paths"])
    assert "http://" not in page
    assert "https://" not in page
    assert "<script" not in page
