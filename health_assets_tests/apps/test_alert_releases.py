"""Alerts on releases that are worse than what ran before them."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from health_assets.apps.alerts.incidents import Incident
from health_assets.apps.alerts.release_rules import ReleaseWorse
from health_assets_tests.support.alerts_made import at, compared, fill_hour, incidents, look, scored

WORDS = {"w": "worse", "b": "better", "n": "no_difference", "?": "not_enough"}


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "health.duckdb"


def told_of(warehouse: Path, verdicts: str, rule: ReleaseWorse | None = None) -> list[Incident]:
    """Incidents of a release with these verdicts in one hour after another; a dash where nothing is compared."""
    for hour, verdict in enumerate(verdicts):
        rows = [] if verdict == "-" else [compared("a", WORDS[verdict]), compared("a", "worse", "cost_per_success_usd")]
        fill_hour(warehouse, at(hour), [scored("a", 95.0)], release_comparison=rows)
        look(warehouse, [rule or ReleaseWorse()])
    return incidents(warehouse)


def test_a_release_that_is_worse_is_told_with_the_interval(warehouse: Path) -> None:
    [incident] = told_of(warehouse, "?w")
    assert (incident.hour, incident.subject_kind, incident.subject_id) == (at(1), "agent", "a")
    assert incident.reason == ("version 2 of a is worse than 1: success rate 95% → 80%, -15.0 points (-25.0 to -5.0)")
    [rate, _] = json.loads(incident.evidence)["comparisons"]
    assert (rate["to_version"], rate["verdict"], rate["n_to"]) == ("2", "worse", 100)


def test_other_verdicts_and_other_measures_are_no_incident(warehouse: Path) -> None:
    assert told_of(warehouse, "?bn-") == []


def test_measures_that_are_named_count(warehouse: Path) -> None:
    [incident] = told_of(warehouse, "n", ReleaseWorse(measures=("cost_per_success_usd",)))
    assert "cost per success" in incident.reason
    with pytest.raises(
        ValidationError,
        match="'speed' is no measure; those are success_rate, success_rate_same_tasks, tool_failure_share, loop_share, "
        "violation_share, runtime, latency_p50_ms, latency_p95_ms, tokens, cost_per_success_usd",
    ):
        ReleaseWorse(measures=("speed",))


def test_it_is_over_after_three_hours_in_which_nothing_is_worse(warehouse: Path) -> None:
    [incident] = told_of(warehouse, "wn?n")
    assert (incident.closed_at, incident.is_recovered) == (at(4), True)
    assert incident.recovery == "version 2 of a: none is worse than the one before it"


def test_it_ends_without_having_recovered_once_nothing_is_compared_for_a_day(warehouse: Path) -> None:
    [incident] = told_of(warehouse, "w" + "-" * 24)
    assert (incident.closed_at, incident.is_recovered) == (at(25), False)
    assert incident.recovery == "no release of a is compared any more"
