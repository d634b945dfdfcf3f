"""A few of the hostile runs that `make hostile` makes many of."""

from pathlib import Path
from random import Random

import pytest
from serving_made import fill_agents, score, served, state

from health_assets_tests.hostile.kills import STEPS, kill_in_writes
from health_assets_tests.hostile.requests import send_requests
from health_assets_tests.test_kill import Killed

REQUESTS = 400


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    return Killed(tmp_path_factory.mktemp("killed"))


@pytest.mark.parametrize("step", STEPS)
def test_a_step_killed_in_a_write_leaves_whole_hours_and_is_mended_by_running_again(
    step: str, killed: Killed, tmp_path: Path
) -> None:
    assert kill_in_writes(killed, tmp_path, step, 1, Random(step)).in_write == 1


def test_damaged_requests_get_answers_that_are_no_fault_of_the_server(tmp_path: Path) -> None:
    fill_agents(tmp_path / "health.duckdb", (state("fine"), score("fine")))
    with served(tmp_path / "health.duckdb", host_agent="fine") as server:
        statuses = send_requests(server, REQUESTS, 1, is_rude=False)
        assert server.ask("/agents/fine").status == 200
    assert statuses["200"] > REQUESTS / 20, "some are good"
    assert sum(count for status, count in statuses.items() if status.startswith("4")) > REQUESTS / 20, "some are not"
