"""What draft-liang-agent-health-state-00 demands of a server, statement by statement; each test names its section.

What it demands of consumers is tested with the consumer.
"""

import re
import socket
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from health_assets_tests.apps.test_serving_tls import certificate
from health_assets_tests.support.serving_made import (
    PATIENCE_S,
    Served,
    fill_agents,
    score,
    served,
    state,
    write_targets,
)

HEALTHY = "/agents/fine/.well-known/agent-health"
PERSONAL = "/agents/mine/.well-known/agent-health"
UNKNOWN = "/agents/young/.well-known/agent-health"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("conformance")
    fill_agents(
        folder / "health.duckdb",
        (state("fine", response_ratio=1.0, error_ratio=0.0, sample_count=40), score("fine")),
        (state("young", "unknown", sample_count=9), score("young", None)),
        (state("mine", "degraded", response_ratio=0.7, error_ratio=0.3, sample_count=20), score("mine", 60.0)),
    )
    targets = write_targets(folder / "targets.yaml", {"agents": {"mine": {"personal": True}}})
    with served(folder / "health.duckdb", targets=targets, host_agent="fine") as running:
        yield running


def test_section_4_1_the_endpoint_is_at_the_well_known_path(server: Served) -> None:
    assert server.ask("/.well-known/agent-health").json["agent_id"] == "fine"
    assert server.ask(HEALTHY).json["agent_id"] == "fine"


def test_section_4_1_it_is_accessible_via_https_get(tmp_path: Path) -> None:
    fill_agents(tmp_path / "health.duckdb", (state("fine"), score("fine")))
    cert, key = certificate(tmp_path)
    with served(tmp_path / "health.duckdb", tls_cert=cert, tls_key=key) as running:
        assert running.tls is not None
        assert running.ask(HEALTHY).status == 200


def test_section_4_1_the_content_type_is_json(server: Served) -> None:
    for path in (HEALTHY, PERSONAL, UNKNOWN, "/.well-known/agent-health"):
        assert server.ask(path).headers["content-type"] == "application/json"


def test_section_4_1_the_base_health_state_needs_no_authentication(server: Served) -> None:
    for path in (HEALTHY, PERSONAL, UNKNOWN):
        reply = server.ask(path)
        assert reply.status == 200
        assert "www-authenticate" not in reply.headers
        assert reply.json["health"]["status"]


def test_section_4_2_the_object_has_the_members_of_the_draft_and_no_others(server: Served) -> None:
    document = server.ask(HEALTHY).json
    assert set(document) == {
        "schema_version", "agent_id", "timestamp", "health", "calibration", "decay", "extensions",
    }  # fmt: skip
    assert set(document["health"]) <= {"status", "last_healthy_at", "uptime_seconds"}
    assert set(document["calibration"]) <= {
        "response_ratio", "error_ratio", "latency_p50_ms", "latency_p99_ms", "measurement_window_seconds", "sample_count",
    }  # fmt: skip
    assert set(document["decay"]) <= {"calibration_trend", "days_since_model_change", "last_capability_update"}


def test_section_4_2_the_schema_version_is_semantic(server: Served) -> None:
    version = server.ask(HEALTHY).json["schema_version"]
    assert version == "0.1.0"
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)


def test_section_4_2_the_timestamp_has_a_time_zone(server: Served) -> None:
    moment = datetime.fromisoformat(server.ask(HEALTHY).json["timestamp"])
    assert moment.tzinfo is not None


def test_section_4_2_extensions_have_a_namespace_prefix(server: Served) -> None:
    extensions = server.ask(HEALTHY).json["extensions"]
    assert extensions
    for name in extensions:
        assert re.fullmatch(r"[a-z-]+(\.[a-z-]+){2,}", name)


def test_section_4_3_the_status_is_one_of_four(server: Served) -> None:
    for path in (HEALTHY, PERSONAL, UNKNOWN):
        assert server.ask(path).json["health"]["status"] in ("healthy", "degraded", "unhealthy", "unknown")


def test_section_4_4_ratios_are_shares_and_the_window_is_long_enough(server: Served) -> None:
    calibration = server.ask(HEALTHY).json["calibration"]
    assert (calibration["response_ratio"], calibration["error_ratio"]) == (1.0, 0.0)
    assert calibration["measurement_window_seconds"] >= 300


def test_section_4_5_the_model_change_is_null_where_it_is_not_known(server: Served) -> None:
    assert server.ask(HEALTHY).json["decay"]["days_since_model_change"] is None


def test_section_7_no_answer_tells_about_the_infrastructure(server: Served) -> None:
    paths = [HEALTHY, "/agents/nobody/.well-known/agent-health", "/nothing", "/agents?limit=x", "/status", "/docs"]
    replies = [server.ask(path) for path in paths] + [server.ask(HEALTHY, "POST")]
    texts = [f"{reply.headers} {reply.body!r}" for reply in replies]
    texts.append(repr(server.send(b"nonsense\r\n\r\n")))
    for text in texts:
        assert not re.search(
            r"uvicorn|starlette|fastapi|python|traceback|duckdb|'server'|/tmp|127\.0\.0\.1", text, re.I
        )
        assert socket.gethostname() not in text


def test_section_7_health_state_may_be_cached_for_60_seconds(tmp_path: Path) -> None:
    fill_agents(tmp_path / "health.duckdb", (state("fine"), score("fine")))
    with served(tmp_path / "health.duckdb", serve_refresh_s=60.0) as running:
        assert running.ask(HEALTHY).headers["cache-control"] == "max-age=60"


def test_section_7_a_request_neither_reads_nor_waits_for_the_warehouse(tmp_path: Path) -> None:
    """Where the file was is a folder: answers come all the same."""
    path = tmp_path / "health.duckdb"
    fill_agents(path, (state("fine"), score("fine")))
    with served(path) as running:
        path.unlink()
        path.mkdir()
        start = time.monotonic()
        for _ in range(50):
            assert running.ask(HEALTHY).status == 200
        assert time.monotonic() - start < PATIENCE_S / 3


def test_section_7_the_endpoint_does_not_block_while_others_are_slow(server: Served) -> None:
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
    try:
        for connection in slow:
            connection.sendall(b"GET " + HEALTHY.encode())
        replies: list[int] = []
        threads = [threading.Thread(target=lambda: replies.append(server.ask(HEALTHY).status)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S / 3)
        assert replies == [200] * 8
    finally:
        for connection in slow:
            connection.close()


def test_section_7_requests_may_be_limited_by_rate(tmp_path: Path) -> None:
    fill_agents(tmp_path / "health.duckdb", (state("fine"), score("fine")))
    with served(tmp_path / "health.duckdb", is_ready=False, serve_rate_limit=0.01) as running:
        replies = [running.ask(HEALTHY) for _ in range(3)]
        assert [reply.status for reply in replies][1:] == [429, 429]
        assert 0 < int(replies[1].headers["retry-after"]) <= 100
        assert replies[1].json["detail"] == "too many requests from this address"


def test_section_8_a_personal_agent_has_a_coarse_status_and_nothing_more(server: Served) -> None:
    document = server.ask(PERSONAL).json
    assert set(document) == {"schema_version", "agent_id", "timestamp", "health"}
    assert document["health"] == {"status": "healthy"}


def test_section_8_no_list_tells_more_about_a_personal_agent(server: Served) -> None:
    [item] = [item for item in server.ask("/agents").json["agents"] if item["agent_id"] == "mine"]
    assert item == {
        "agent_id": "mine", "state": "healthy", "status": "healthy", "health_score": None, "is_personal": True,
        "is_provisional": None, "n": None, "n_full": None, "now": None, "now_since": None, "points_at_stake": None,
    }  # fmt: skip
    alone = server.ask("/agents/mine").json
    assert alone == {**item, "hour": server.status["data_hour"]}
    assert "mine" not in [item["agent_id"] for item in server.ask("/agents?state=unhealthy").json["agents"]]
