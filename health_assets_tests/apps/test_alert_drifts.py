"""Alerts on agents that became worse than their own past."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from health_assets.apps.alerts.drift_rules import Drifting
from health_assets.apps.alerts.incidents import Incident
from health_assets_tests.support.alerts_made import at, drift, fill_hour, incidents, look, scored


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "health.duckdb"


def told_of(warehouse: Path, hours: str, rule: Drifting | None = None) -> list[Incident]:
    """Incidents of an agent that drifts (d), does not, with some evidence or none (? or .), is silent (s), or was not looked at."""
    for hour, letter in enumerate(hours):
        rows = {"d": [drift("a")], "?": [drift("a", is_drifting=False)]}.get(letter, [])
        tables = {} if letter == "-" else {"drift": [*rows, drift("a", measure="volume_rise")]}
        ran = [] if letter == "s" else [{"agent_id": "a", "executions": 10}]
        fill_hour(warehouse, at(hour), [scored("a", 95.0)], health_components=ran, **tables)
        look(warehouse, [rule or Drifting()])
    return incidents(warehouse)


def test_a_drift_of_what_runs_take_is_told_with_its_threshold(warehouse: Path) -> None:
    slow = {**drift("a", measure="latency"), "baseline": 0.1, "value": 0.32, "threshold": 33.0}
    fill_hour(warehouse, at(0), [scored("a", 95.0)], health_components=[], drift=[slow])
    look(warehouse, [Drifting()])
    [incident] = incidents(warehouse)
    assert incident.reason == (
        f"a is worse than its own past: runs over 33.0 s 10% → 32% since {at(-4):%Y-%m-%d %H:%M} UTC"
    )
    [told] = json.loads(incident.evidence)["drifts"]
    assert told["threshold"] == 33.0


def test_a_drift_is_told_with_what_it_is_since_when_and_where(warehouse: Path) -> None:
    [incident] = told_of(warehouse, "?d")
    assert (incident.hour, incident.subject_kind, incident.subject_id) == (at(1), "agent", "a")
    assert incident.reason == (
        f"a is worse than its own past: success rate 95% → 80% since {at(-4):%Y-%m-%d %H:%M} UTC; "
        "version 8: 83% of the failures in excess"
    )
    [rate, rise] = json.loads(incident.evidence)["drifts"]
    assert (rate["measure"], rate["runs"], rate["cause"], rate["evidence"]) == ("success_rate", 40, "8", 12.5)
    assert rise["measure"] == "volume_rise"


def test_some_evidence_and_other_measures_are_no_incident(warehouse: Path) -> None:
    assert told_of(warehouse, "?.-?") == []


def test_measures_that_are_named_count(warehouse: Path) -> None:
    [incident] = told_of(warehouse, ".", Drifting(measures=("volume_rise",)))
    assert "more executions" in incident.reason
    with pytest.raises(
        ValidationError, match="'speed' is no measure; those are success_rate, latency, tool_failure_share, tool_mix"
    ):
        Drifting(measures=("speed",))


def test_it_is_over_after_three_hours_that_were_looked_at_in_which_nothing_drifts(warehouse: Path) -> None:
    [incident] = told_of(warehouse, "d.-?.")
    assert (incident.closed_at, incident.is_recovered) == (at(5), True)
    assert incident.recovery == "a is no worse than in the days before"


def test_silence_is_no_recovery(warehouse: Path) -> None:
    [incident] = told_of(warehouse, "dssss")
    assert incident.closed_at is None
