"""A few of the faults of which `make hostile` has many: whatever breaks on Spark, the next run makes DuckDB's tables."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from health_assets.core.errors import HealthAssetsError
from health_assets_tests.hostile.spark_faults import (
    HOURS,
    ONE_SYSTEM,
    Fleet,
    all_faults,
    fleet_on_sail,
    kill_drivers,
    kill_servers,
    run_two_at_once,
    stop_ledgers,
)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """One fleet for all: after each fault its tables are those of a rebuild."""
    with fleet_on_sail(tmp_path_factory.mktemp("fleet"), 1, system=ONE_SYSTEM) as made:
        yield made


@pytest.mark.nightly
def test_drivers_that_are_killed_lose_nothing_and_count_nothing_twice(fleet: Fleet) -> None:
    assert "0 were done before" in kill_drivers(fleet, 1, 1)


@pytest.mark.nightly  # by day one that is killed between two statements
def test_a_server_that_is_killed_and_there_again_at_once_spoils_nothing(fleet: Fleet) -> None:
    assert "1 servers killed" in kill_servers(fleet, 1, 2)


@pytest.mark.nightly
def test_two_orchestrators_that_were_started_by_mistake_follow_one_another(fleet: Fleet) -> None:
    assert "1 times two" in run_two_at_once(fleet, 1)


@pytest.mark.nightly
def test_a_ledger_that_is_away_for_a_while_spoils_nothing(tmp_path: Path) -> None:
    assert "1 times" in stop_ledgers(tmp_path, 1, 2.0, 1, ONE_SYSTEM)


def test_a_server_that_began_anew_between_two_statements_is_noticed(tmp_path: Path) -> None:
    """Sail takes the old session for a new one, with settings of its own."""
    with fleet_on_sail(tmp_path, 1) as fleet:
        warehouse = fleet.project.warehouse
        with pytest.raises(HealthAssetsError, match="it was started anew meanwhile"), warehouse.write() as session:
            assert session.count(session.table("executions")) == 0
            fleet.restart()
            assert session.count(session.hours_of("executions", HOURS)) == 0


@pytest.mark.nightly  # by day one fault, of one system, stands for it
def test_all_faults_with_all_systems(tmp_path: Path) -> None:
    assert len(list(all_faults(tmp_path, 4, 2))) == 4
