"""Data that is too old to say how agents are now: every status is unknown, and the time of the data is told."""

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, TypeAdapter

from health_assets.apps.serving.schemas import HealthDocument
from health_assets.core.hours import HOUR, floor_hour
from health_assets.core.settings import Settings
from health_assets_tests.support.serving_made import (
    fill,
    fill_agents,
    readers_in_this_process,
    score,
    served,
    state,
    write_targets,
)

DOCUMENT = "/agents/a/.well-known/agent-health"
TOKEN = "sixteen characters at least"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(autouse=True)
def _readers() -> object:
    with readers_in_this_process():
        yield


def fill_hour(warehouse: Path, hour: datetime, *agents: str, **columns: Any) -> None:
    span = {"window_start": hour - 23 * HOUR, "window_end": hour + HOUR}
    fill_agents(warehouse, *((state(agent, **span, **columns), score(agent)) for agent in agents), hour=hour)


def test_data_counts_as_the_present_for_two_hours_by_default() -> None:
    assert Settings().serve_max_data_age_s == 7200


def test_the_status_of_old_data_is_unknown_and_the_document_says_from_when_it_is(tmp_path: Path) -> None:
    hour = floor_hour(datetime.now(UTC)) - timedelta(days=170)
    fill_hour(tmp_path / "w.duckdb", hour, "a", response_ratio=0.97, sample_count=40)
    with served(tmp_path / "w.duckdb", serve_max_data_age_s=7200.0, host_agent="a") as server:
        document = server.ask(DOCUMENT).json
        TypeAdapter(HealthDocument).validate_json(server.ask(DOCUMENT).body)
        assert document["health"]["status"] == "unknown"
        assert document["timestamp"] == f"{hour + HOUR:%Y-%m-%dT%H:%M:%SZ}"
        assert document["calibration"]["response_ratio"] == 0.97
        assert document["extensions"]["org.health-assets.data"] == {
            "is_outdated": True, "as_of": document["timestamp"], "status_then": "healthy",
        }  # fmt: skip
        assert server.ask("/.well-known/agent-health").json == document
        assert server.ask("/readyz").status == 503
        assert server.status["is_outdated"] is True


def test_lists_and_scores_of_old_data_have_no_status_of_then(tmp_path: Path) -> None:
    odd = '","status":"healthy","'
    fill_hour(tmp_path / "w.duckdb", floor_hour(datetime.now(UTC)) - 4 * HOUR, "a", odd)
    with served(tmp_path / "w.duckdb", serve_max_data_age_s=7200.0) as server:
        listed = server.ask("/agents").json["agents"]
        assert {agent["agent_id"]: agent["status"] for agent in listed} == {"a": "unknown", odd: "unknown"}
        assert {agent["state"] for agent in listed} == {"healthy"}
        assert server.ask("/agents/a").json["status"] == "unknown"


@pytest.mark.parametrize("most_s", [7200.0, float("inf")], ids=["outdated", "current"])
def test_old_data_counts_and_lists_no_agent_by_what_it_does_now(tmp_path: Path, most_s: float) -> None:
    hour = floor_hour(datetime.now(UTC)) - 4 * HOUR
    fill_hour(tmp_path / "w.duckdb", hour, "a")
    fill(tmp_path / "w.duckdb", hour, agent_now=[{"agent_id": "a", "verdict": "failing"}])
    with served(tmp_path / "w.duckdb", serve_max_data_age_s=most_s, metrics_agents=("a",)) as server:
        listed = server.ask("/agents?now=failing").json
        metrics = server.ask("/metrics").body.decode()
        is_current = most_s > 7200
        assert (listed["total"], len(listed["agents"])) == ((1, 1) if is_current else (0, 0))
        for series in ('health_assets_agents_now{verdict="failing"} 1.0', "health_assets_agent_now{"):
            assert (series in metrics) == is_current
        assert ("_now" in metrics) == is_current
        assert server.ask("/agents?state=healthy").json["total"] == 1
        assert 'health_assets_agents{state="healthy"} 1.0' in metrics


def test_an_answer_gets_outdated_as_time_goes_by_and_no_cache_keeps_it_longer(tmp_path: Path) -> None:
    paths = (DOCUMENT, "/agents", "/agents/a")
    hour = floor_hour(datetime.now(UTC)) - 2 * HOUR
    fill_hour(tmp_path / "w.duckdb", hour, "a")
    with served(tmp_path / "w.duckdb", serve_max_data_age_s=1e9) as server:
        assert {server.ask(path).headers["cache-control"] for path in paths} == {"max-age=3600"}
    age_s, current_s = (datetime.now(UTC) - hour - HOUR).total_seconds(), 10.0  # a busy machine takes some to start
    outdated_at = time.monotonic() + current_s
    with served(tmp_path / "w.duckdb", serve_max_data_age_s=age_s + current_s) as server:
        fresh = {path: server.ask(path) for path in paths}
        for path, answer in fresh.items():
            assert b'"status":"healthy"' in answer.body, path
            assert int(answer.headers["cache-control"].removeprefix("max-age=")) < current_s
        time.sleep(max(0.0, outdated_at - time.monotonic()) + 0.5)
        for path, answer in fresh.items():
            known = {"If-None-Match": answer.headers["etag"]}, {"If-Modified-Since": answer.headers["last-modified"]}
            for headers in ({}, *known):
                old = server.ask(path, headers=headers)
                assert (old.status, b'"status":"unknown"' in old.body) == (200, True), path
                assert old.headers["cache-control"] == "max-age=3600"
            same = server.ask(path, headers={"If-None-Match": old.headers["etag"]})
            assert (same.status, same.headers["last-modified"]) == (304, old.headers["last-modified"])


def test_new_data_after_old_is_the_present_again(tmp_path: Path) -> None:
    now = floor_hour(datetime.now(UTC))
    fill_hour(tmp_path / "w.duckdb", now - 4 * HOUR, "a")
    with served(tmp_path / "w.duckdb", serve_max_data_age_s=7200.0, serve_refresh_s=0.05) as server:
        assert server.ask(DOCUMENT).json["health"]["status"] == "unknown"
        fill_hour(tmp_path / "w.duckdb", now - HOUR, "a")
        server.wait_for(lambda status: not status["is_outdated"])
        document = server.ask(DOCUMENT).json
        assert (document["health"]["status"], "org.health-assets.data" in document["extensions"]) == ("healthy", False)
        assert server.ask("/readyz").status == 200


def test_a_personal_agent_tells_no_more_of_itself_when_data_is_old(tmp_path: Path) -> None:
    targets = write_targets(tmp_path / "targets.yaml", {"agents": {"a": {"personal": True}}})
    fill_hour(tmp_path / "w.duckdb", floor_hour(datetime.now(UTC)) - 4 * HOUR, "a")
    given: dict[str, Any] = {"targets": targets, "token": SecretStr(TOKEN), "serve_max_data_age_s": 7200.0}
    with served(tmp_path / "w.duckdb", **given) as server:
        plain = server.ask(DOCUMENT).json
        assert (set(plain), plain["health"]) == (
            {"schema_version", "agent_id", "timestamp", "health"}, {"status": "unknown"},
        )  # fmt: skip
        full = server.ask(DOCUMENT, headers=BEARER).json
        assert full["extensions"]["org.health-assets.data"]["status_then"] == "healthy"


def test_check_says_that_what_is_known_is_old(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from health_assets.cli.commands import app

    fill_hour(tmp_path / "w.duckdb", floor_hour(datetime.now(UTC)) - timedelta(days=170), "a")
    with served(tmp_path / "w.duckdb", serve_max_data_age_s=7200.0) as server:
        url = f"http://127.0.0.1:{server.port}/agents/a"
        done = CliRunner().invoke(app, ["check", "--allow-private", url])
    assert done.exit_code == 5
    assert re.search("It states its health as of (169|170) d .*ago, so that may be over", done.output)
