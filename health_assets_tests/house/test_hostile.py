"""A few of the damaged requests of which `make hostile` sends many; `test_kill` has a kill within a write."""

from pathlib import Path

from health_assets_tests.hostile.requests import send_requests
from health_assets_tests.support.serving_made import fill_agents, score, served, state

REQUESTS = 400


def test_damaged_requests_get_answers_that_are_no_fault_of_the_server(tmp_path: Path) -> None:
    fill_agents(tmp_path / "health.duckdb", (state("fine"), score("fine")))
    with served(tmp_path / "health.duckdb", host_agent="fine", pages=True) as server:
        statuses = send_requests(server, REQUESTS, 1)
        assert server.ask("/agents/fine").status == 200
    assert statuses["200"] > REQUESTS / 20, "some are good"
    assert sum(count for status, count in statuses.items() if status.startswith("4")) > REQUESTS / 20, "some are not"
