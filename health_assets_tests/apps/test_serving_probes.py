"""Probes: what a supervisor is told of a server that lives, one that is ready, and one whose data is too old."""

import math
from pathlib import Path

import pytest

from health_assets_tests.support.projects import forked_command
from health_assets_tests.support.serving_made import fill_agents, readers_in_this_process, score, served, state


@pytest.fixture(autouse=True)
def _readers() -> object:
    with readers_in_this_process():
        yield


def test_a_server_without_data_lives_and_is_not_ready_and_says_why_until_there_is_some(tmp_path: Path) -> None:
    warehouse = tmp_path / "w.duckdb"
    with served(warehouse, is_ready=False, anonymous_role="none") as server:
        server.wait_for(lambda _: server.ask("/status").json["last_error"] is not None)
        assert (server.ask("/livez").status, server.ask("/livez").json) == (200, {"status": "alive"})
        refused = server.ask("/readyz")
        assert (refused.status, refused.headers["content-type"]) == (503, "application/problem+json")
        assert refused.json["detail"] == "there is no warehouse yet"
        assert "retry-after" in refused.headers
        fill_agents(warehouse, (state("a"), score("a")))
        server.wait_for(lambda _: server.ask("/readyz").status == 200)
        ready = server.ask("/readyz")
        assert (ready.json, ready.headers["cache-control"]) == ({"status": "ready"}, "no-store")
        assert server.ask("/readyz", "HEAD").status == 200


@pytest.mark.parametrize(("most_s", "status"), [(math.inf, 200), (60.0, 503), (1e12, 200)])
def test_data_that_is_too_old_is_not_ready(tmp_path: Path, most_s: float, status: int) -> None:
    fill_agents(tmp_path / "w.duckdb", (state("a"), score("a")))
    with served(tmp_path / "w.duckdb", serve_max_data_age_s=most_s) as server:
        answer = server.ask("/readyz")
        assert (answer.status, server.ask("/livez").status) == (status, 200)
        if status == 503:
            assert answer.json["detail"].endswith("s old, more than the 60 s that are allowed")


def test_where_it_listens_is_a_setting_and_a_flag_wins(tmp_path: Path) -> None:
    given = {"HEALTH_SERVE_HOST": "203.0.113.7", "HEALTH_SERVE_PORT": "8099"}  # an address that no machine has
    by_setting = forked_command("serve", environment=given, folder=tmp_path)
    assert (by_setting.returncode, "203.0.113.7" in by_setting.stderr, "8099" in by_setting.stderr) == (1, True, True)
    by_flag = forked_command("serve", "--host", "203.0.113.8", "--port", "8100", environment=given, folder=tmp_path)
    assert ("203.0.113.8" in by_flag.stderr, "8100" in by_flag.stderr) == (True, True)


def test_a_key_without_a_certificate_is_refused_by_environment_as_by_flag(tmp_path: Path) -> None:
    done = forked_command("serve", environment={"HEALTH_SERVE_TLS_KEY": "key.pem"}, folder=tmp_path)
    assert (done.returncode, "needs --tls-cert" in done.stderr) == (1, True)
