"""Metrics for Prometheus: they say what the API says, in the form that Prometheus wants, to whom may read it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import parser
from prometheus_client.openmetrics import parser as open_metrics
from pydantic import SecretStr

from health_assets.apps.serving import metrics
from health_assets.apps.serving.fleet_facts import MOST_REASONS
from health_assets.apps.serving.request_counts import BUCKETS_S, RequestCounts
from health_assets.apps.serving.tokens import new_token
from health_assets.core.hours import HourRange
from health_assets.core.settings import Settings, load_settings
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.serving_made import (
    HOUR,
    Served,
    fill,
    readers_in_this_process,
    score,
    served,
    state,
    write_targets,
)

HOSTILE = 'quo"te\\ back\nnew{line}="x"} 1'
NAMED = ("fine", "poor", "idle", HOSTILE, "mine", "nobody", "fine")
REASONS = {"not valid JSON": 5, "unknown type": 3}
SECONDS = timedelta(seconds=1)

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(scope="module", autouse=True)
def _readers() -> Iterator[None]:
    with readers_in_this_process():
        yield


def rejected(place: int, reason: str, lines: int = 1) -> dict[str, Any]:
    return {"source_file": "a.jsonl", "line_number": place, "reason": reason, "raw": "x", "lines": lines}


def incident(name: str, severity: str = "warning", **columns: Any) -> dict[str, Any]:
    known = {"incident_id": name, "rule": name, "subject_kind": "agent", "subject_id": "poor", "severity": severity}
    return {**known, "closed_at": None, **columns}


@dataclass
class Fleet:
    """A server with a token of each role, and what its warehouse holds."""

    server: Served
    secrets: dict[str, str]
    warehouse: Path

    def ask(self, path: str, role: str = "read", **headers: str) -> Any:
        return self.server.ask(path, headers={"Authorization": f"Bearer {self.secrets[role]}", **headers})


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("metrics")
    path = folder / "health.duckdb"
    agents = {"fine": 95.0, "poor": 40.25, "idle": None, HOSTILE: 88.0, "mine": 10.0}
    earliest = HOUR - timedelta(hours=5)
    for hour in (earliest, earliest + timedelta(hours=2)):  # of the five before, three are missing
        fill(path, hour, system_health=[{}])
    fill(
        path,
        agent_health_state=[
            state(name, "unhealthy" if (value or 90) < 65 else "healthy") for name, value in agents.items()
        ],
        agent_health=[score(name, value) for name, value in agents.items()],
        system_health=[{"health_score": 58.3125, "agents": 5}],
        rejected_records=[
            rejected(1, "not valid JSON, not {", 2),
            rejected(2, "not valid JSON, not [", 3),
            rejected(3, "unknown type", 3),
        ],
        alerts=[
            incident("a", "critical"),
            incident("b"),
            incident("closed", closed_at=HOUR),
            incident("c", subject_id="mine"),
            incident("d", subject_kind="model", subject_id="some-model"),
            incident("e", subject_kind="expectation", subject_id="executions.x", severity="info"),
        ],
    )
    fill(path, HOUR - timedelta(hours=24), rejected_records=[rejected(9, "too old for the window")])
    targets = write_targets(folder / "targets.yaml", {"agents": {"mine": {"personal": True}}})
    made = {role: new_token(role, role) for role in ("documents", "read", "operate")}
    made["limited"] = new_token("limited", "operate", ["payments"])
    kept = [token.model_dump(mode="json", exclude_none=True) for _, token in made.values()]
    tokens = SecretStr(json.dumps(kept))
    with served(path, targets=targets, tokens=tokens, metrics_agents=NAMED, anonymous_role="none") as server:
        yield Fleet(server, {role: secret for role, (secret, _) in made.items()}, path)


def series_of(text: str) -> Series:
    """Every series of a page once; fails where one stands twice."""
    found: Series = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def page(fleet: Fleet, role: str = "read") -> Series:
    return series_of(fleet.ask("/metrics", role).body.decode())


def labelled(found: Series, name: str) -> dict[Any, float]:
    """The values of a metric by its labels; of one label by that alone."""
    own = {tuple(value for _, value in labels): value for (each, labels), value in found.items() if each == name}
    return {key[0] if len(key) == 1 else key: value for key, value in own.items()}


def one(found: Series, name: str) -> float:
    return found[name, ()]


def test_values_are_those_of_the_api(fleet: Fleet) -> None:
    found = page(fleet)
    states = {name: fleet.ask(f"/agents?state={name}").json["total"] for name in (*metrics.STATES, "provisional")}
    assert labelled(found, "health_assets_agents") == states
    assert sum(states.values()) == fleet.ask("/agents").json["total"] == 5
    for name, value in labelled(found, "health_assets_agent_score").items():
        items = {item["agent_id"]: item for item in fleet.ask("/agents").json["agents"]}
        assert items[name]["health_score"] == value
        assert found["health_assets_agent_points_at_stake", (("agent_id", name),)] == items[name]["points_at_stake"]
        assert found["health_assets_agent_state", (("agent_id", name), ("state", items[name]["state"]))] == 1
    status = fleet.ask("/status").json
    for name in ("data_age", "newest_hour_age"):
        assert abs(one(found, f"health_assets_{name}_seconds") - status["data_age_s"]) < 60
    assert (one(found, "health_assets_ready"), one(found, "health_assets_data_current")) == (1, 1)


def test_hours_lines_and_incidents_are_those_of_the_tables(fleet: Fleet) -> None:
    found = page(fleet, "operate")
    assert one(found, "health_assets_missing_hours") == 3
    assert labelled(found, "health_assets_rejected_lines") == REASONS
    assert labelled(found, "health_assets_open_incidents") == {"info": 1, "warning": 3, "critical": 1}
    with Warehouse(str(fleet.warehouse)).read() as session:
        [row] = session.dicts(session.hours_of("system_health", HourRange.of(HOUR)))
    assert one(found, "health_assets_fleet_score") == row["health_score"]


def test_what_a_personal_agent_does_shows_in_no_number(fleet: Fleet) -> None:
    read, operate = page(fleet), page(fleet, "operate")
    assert one(read, "health_assets_fleet_score") == pytest.approx((95 + 40.25 + 88) / 3)
    assert labelled(read, "health_assets_open_incidents") == {"info": 1, "warning": 1, "critical": 1}
    for found in (read, operate):
        assert set(labelled(found, "health_assets_agent_score")) == {"fine", "poor", HOSTILE}
        assert {name for name, _ in labelled(found, "health_assets_agent_state")} == {"fine", "poor", "idle", HOSTILE}
        assert not any("mine" in dict(labels).values() for _, labels in found)


def test_the_same_doors_as_for_scores(fleet: Fleet) -> None:
    assert {role: fleet.ask("/metrics", role).status for role in fleet.secrets} == {
        "documents": 403, "read": 200, "operate": 200, "limited": 403,
    }  # fmt: skip
    assert fleet.server.ask("/metrics").status == 401
    assert "of all teams" in fleet.ask("/metrics", "limited").json["detail"]


def test_the_page_obeys_the_rules_of_prometheus(fleet: Fleet) -> None:
    for path in ("/agents", "/nothing", "/agents/fine/.well-known/agent-health"):
        fleet.ask(path)
    text = fleet.ask("/metrics").body.decode()
    families = list(parser.text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    for family in families:
        assert re.fullmatch(r"health_assets_[a-z]+(_[a-z]+)*", family.name)
        assert re.fullmatch(r"[A-Z].*\.", family.documentation), family.name
        assert family.type in ("gauge", "counter", "histogram")
        assert not re.search(r"_(ms|milliseconds|minutes|percent|count|sum|bucket|info)$", family.name)
        if family.type == "counter":
            assert {sample.name for sample in family.samples} == {f"{family.name}_total"}
        if re.search("_age_|_duration_", family.name + "_"):
            assert family.name.endswith("_seconds")
    assert text.endswith("\n")
    assert len(series_of(text)) > 50


def test_a_reader_that_takes_open_metrics_gets_the_same_series(fleet: Fleet) -> None:
    reply = fleet.ask("/metrics", Accept="application/openmetrics-text; version=1.0.0, text/plain; version=0.0.4;q=0.5")
    assert reply.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    families = open_metrics.text_string_to_metric_families(reply.body.decode())
    agents = {family.name: family for family in families}["health_assets_agent_score"]
    assert {sample.labels["agent_id"] for sample in agents.samples} == {"fine", "poor", HOSTILE}
    plain = fleet.ask("/metrics")
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert plain.headers["cache-control"] == "no-store"
    assert fleet.server.ask("/metrics", "HEAD", {"Authorization": f"Bearer {fleet.secrets['read']}"}).body == b""


def test_requests_are_counted_by_route_and_status(tmp_path: Path) -> None:
    fill(tmp_path / "w.duckdb", agent_health_state=[state("a/b")], agent_health=[score("a/b")])
    with served(tmp_path / "w.duckdb", host_agent="a/b") as server:
        for path in ("/agents/a/b", "/agents/a%2Fb", "/agents/x", "/.well-known/agent-health"):
            server.ask(path)
        server.ask("/%61gents/a/b/.well-known/agent-health")  # answered behind the gate
        server.ask("/agents/a/b/.well-known/agent-health", "HEAD")
        server.ask("/tools?limit=0")
        server.ask("/docs")
        server.ask("/openapi.json")
        server.ask("/wp-login.php")
        server.ask("/agents", "DELETE")
        found = series_of(server.ask("/metrics").body.decode())
    counts = labelled(found, "health_assets_http_requests_total")
    counts.pop(("/status", "200"))
    assert counts == {
        ("/agents/{agent_id}", "200"): 2,
        ("/agents/{agent_id}", "404"): 1,
        ("/.well-known/agent-health", "200"): 1,
        ("/agents/{agent_id}/.well-known/agent-health", "200"): 2,
        ("/tools", "422"): 1,
        ("/docs", "200"): 1,
        ("/openapi.json", "200"): 1,
        ("(none)", "404"): 1,
        ("(refused)", "405"): 1,
    }
    by_route = labelled(found, "health_assets_http_request_duration_seconds_count")
    assert by_route["/agents/{agent_id}"] == 3
    assert labelled(found, "health_assets_http_request_duration_seconds_bucket")["+Inf", "/agents/{agent_id}"] == 3


def test_latencies_lie_below_the_bounds_that_they_do_not_pass() -> None:
    counts = RequestCounts()
    for seconds in (0.0, BUCKETS_S[0], BUCKETS_S[1], 0.3, 99.0):
        counts.note("/r", 200, seconds)
    answered, taken = metrics._requests(counts)
    values = {(sample.name, sample.labels.get("le")): sample.value for sample in taken.samples}
    name = "health_assets_http_request_duration_seconds"
    assert [values[f"{name}_bucket", bound] for bound in ("0.0001", "0.00025", "0.25", "1.0", "20.0", "+Inf")] == [
        2, 3, 3, 4, 4, 5,
    ]  # fmt: skip
    assert values[f"{name}_sum", None] == pytest.approx(99.30035)
    assert [sample.value for sample in answered.samples] == [5]


def test_a_request_that_got_no_answer_is_counted_as_that() -> None:
    counts = RequestCounts()
    counts.note("/r", 0, 1.0)
    assert [sample.labels["status"] for sample in next(metrics._requests(counts)).samples] == ["none"]


@pytest.mark.parametrize(("after_the_end", "late"), [(29, 0), (31, 0), (89, 0), (91, 1), (151, 2)])
def test_an_hour_is_late_when_it_should_be_there_by_the_setting(after_the_end: int, late: int) -> None:
    now = HOUR + timedelta(hours=1, minutes=after_the_end)
    facts = {"newest_hour": HOUR.isoformat(), "missing_hours": 0, "rejected_lines": {}}
    families = metrics._pipeline(facts, timedelta(minutes=30), metrics.EVERYBODYS, now)
    values = {family.name: family.samples for family in families}
    assert values["health_assets_late_hours"][0].value == late
    assert values["health_assets_newest_hour_age_seconds"][0].value == 60 * after_the_end


def test_a_server_without_data_has_metrics_all_the_same(tmp_path: Path) -> None:
    with served(tmp_path / "none.duckdb", is_ready=False) as server:
        server.wait_for(lambda status: status["last_error"])
        found = series_of(server.ask("/metrics").body.decode())
    assert (one(found, "health_assets_ready"), one(found, "health_assets_data_current")) == (0, 0)
    assert labelled(found, "health_assets_agents") == {}


def test_an_incident_that_opens_shows_before_the_next_hour_does(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    fill(path, agent_health_state=[state("a")], agent_health=[score("a")])
    with served(path, serve_refresh_s=0.05) as server:
        before = server.status["loaded_at"]
        fill(path, alerts=[incident("x", "critical")])
        for _ in range(200):
            found = labelled(series_of(server.ask("/metrics").body.decode()), "health_assets_open_incidents")
            if found["critical"]:
                break
        assert (found["critical"], server.status["loaded_at"]) == (1, before)


def test_many_reasons_are_few_series(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    many = [rejected(place, f"reason {place}", 100 - place) for place in range(MOST_REASONS + 3)]
    fill(path, agent_health_state=[state("a")], agent_health=[score("a")], system_health=[{}], rejected_records=many)
    with served(path) as server:
        lines = labelled(series_of(server.ask("/metrics").body.decode()), "health_assets_rejected_lines")
    assert len(lines) == MOST_REASONS + 1
    assert lines["other"] == sum(100 - place for place in range(MOST_REASONS, MOST_REASONS + 3))


def test_the_setting_names_agents_between_commas_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALTH_METRICS_AGENTS", "a, b/c ,")
    assert load_settings().metrics_agents == ("a", "b/c")
    monkeypatch.setenv("HEALTH_METRICS_AGENTS", ",".join(map(str, range(201))))
    with pytest.raises(Exception, match=r"HEALTH_METRICS_AGENTS: .* at most 200"):
        load_settings()
    assert Settings(metrics_agents=()).metrics_agents == ()
