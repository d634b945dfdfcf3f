"""Alerts on the status of health documents, and on what surveyed agents answer."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from health_assets.apps.alerts.incidents import Incident
from health_assets.apps.alerts.messages import message_of
from health_assets.apps.alerts.outbox import OPENED, Notice
from health_assets.apps.alerts.rules import Rule
from health_assets.apps.alerts.status_rules import ProbeWorsened, StatusWorsened
from health_assets.core.targets import AgentTargets, Targets
from health_assets.scoring.latency_buckets import GAMMA
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.alerts_made import Row, at, fill_hour, incidents, keep_hour, look, scored

URL = "https://agent.example/.well-known/agent-health"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "health.duckdb"


def document(status: str, *, ratio: float | None = 0.9, n: int = 50, p99: float = 400.0) -> dict[str, Any]:
    return {
        "agent_id": "a", "status": status, "response_ratio": ratio, "sample_count": n, "latency_p99_ms": p99,
        "baseline_latency_ms": 100.0,
    }  # fmt: skip


def told_of(warehouse: Path, *statuses: str | None, targets: Targets | None = None) -> list[Incident]:
    """Incidents of a document that had these statuses in one hour after another; None for no row."""
    documents = [
        [] if status is None else [document(status, ratio=1.0 if status == "healthy" else 0.9)] for status in statuses
    ]
    return judged(warehouse, StatusWorsened(), "agent_health_state", documents, targets)


def probed(warehouse: Path, *statuses: str | None) -> list[Incident]:
    """Incidents of a surveyed agent that answered so; None where nobody asked it."""
    probes = [[] if status is None else [{"url": URL, "name": "planner", "status": status}] for status in statuses]
    return judged(warehouse, ProbeWorsened(), "agent_probes", probes)


def judged(
    warehouse: Path, rule: Rule, table: str, rows: Sequence[Sequence[Row]], targets: Targets | None = None
) -> list[Incident]:
    """Incidents of hours with these rows: the first is judged by itself, and the others once all are there."""
    first, *others = rows
    fill_hour(warehouse, at(0), [scored("a", 95.0)], **{table: first})
    look(warehouse, [rule], targets=targets)
    with Warehouse(str(warehouse)).write() as session:
        for hour, own in enumerate(others, 1):
            keep_hour(session, at(hour), [scored("a", 95.0)], **{table: own})
    while look(warehouse, [rule], targets=targets).hours:
        pass
    return incidents(warehouse)


def test_a_document_that_goes_from_healthy_to_degraded_is_told_with_the_reason(warehouse: Path) -> None:
    [incident] = told_of(warehouse, "healthy", "degraded")
    assert (incident.hour, incident.subject_kind, incident.severity) == (at(1), "agent", "warning")
    assert incident.reason == (
        "the health document of a went from healthy to degraded (90% of 50 executions succeeded, p99 400 ms, "
        "declared 100 ms); what is trusted because of its health is to be verified again"
    )
    evidence = json.loads(incident.evidence)
    assert (evidence["status"], evidence["best_status_before"]) == ("degraded", "healthy")


@pytest.mark.parametrize(("bucket", "is_told"), [(637, False), (638, True)])
def test_the_latency_is_named_where_it_decides_the_status_and_not_below(
    warehouse: Path, bucket: int, is_told: bool
) -> None:
    """297 ms, three times the baseline, lie in bucket 637, below its middle."""
    middle_ms = GAMMA ** (bucket - 0.5) / 1e3
    assert middle_ms > 297
    for hour, row in enumerate([document("healthy"), document("degraded", p99=middle_ms)]):
        fill_hour(warehouse, at(hour), [scored("a", 95.0)], agent_health_state=[row | {"baseline_latency_ms": 99.0}])
        look(warehouse, [StatusWorsened()])
    [incident] = incidents(warehouse)
    assert (", p99 " in incident.reason) is is_told


@pytest.mark.parametrize(
    "statuses",
    [
        ("degraded", "degraded"),
        ("unknown", "degraded"),
        ("healthy", "unknown"),
        ("degraded", "healthy"),
        (None, "unhealthy"),
    ],
)
def test_a_status_that_is_no_worse_than_before_or_unknown_is_no_incident(
    warehouse: Path, statuses: tuple[str | None, ...]
) -> None:
    assert told_of(warehouse, *statuses) == []


def test_it_is_over_after_three_hours_that_are_as_good_as_before(warehouse: Path) -> None:
    worse = ("healthy", "degraded", "unhealthy")
    [incident] = told_of(warehouse, *worse, "healthy", "healthy", "unknown", "healthy")
    assert (incident.closed_at, incident.is_recovered) == (at(7), True)
    assert incident.recovery is not None
    assert incident.recovery.startswith("the health document of a is healthy again (100% of 50 executions succeeded")


def test_an_incident_of_a_status_that_is_unknown_for_a_day_ends_without_having_recovered(warehouse: Path) -> None:
    [incident] = told_of(warehouse, "healthy", "degraded", *["unknown"] * 24)
    assert (incident.closed_at, incident.is_recovered) == (at(26), False)
    assert incident.recovery == "the status of the health document of a is not known any more"


def test_one_hour_without_a_status_ends_no_incident_however_old(warehouse: Path) -> None:
    [incident] = told_of(warehouse, "healthy", *["degraded"] * 25, "unknown", "degraded")
    assert (incident.hour, incident.closed_at) == (at(1), None)


def test_a_personal_agents_status_is_told_of_without_a_detail(warehouse: Path) -> None:
    targets = Targets(agents={"a": AgentTargets(personal=True)})
    [incident] = told_of(warehouse, "healthy", "degraded", targets=targets)
    told = message_of(Notice(incident=incident, event=OPENED, channel="c"))
    assert told.title == "🟠 a, a personal agent: an incident opened"
    assert "degraded" not in json.dumps(told.body) + str(told.lines)


def test_a_surveyed_agent_that_answers_worse_than_before_is_told(warehouse: Path) -> None:
    [incident] = probed(warehouse, "healthy", "degraded")
    assert (incident.rule, incident.subject_kind, incident.subject_id) == ("probe_worsened", "probe", URL)
    assert incident.reason == (
        f"planner ({URL}) went from healthy to degraded; what is trusted because of its health is to be verified again"
    )


def test_a_surveyed_agent_that_nobody_asks_any_more_keeps_no_incident_open(warehouse: Path) -> None:
    [incident] = probed(warehouse, "healthy", "unhealthy", *[None] * 24)
    assert (incident.closed_at, incident.is_recovered) == (at(26), False)


@pytest.mark.parametrize("status", [None, "unknown"])
def test_a_surveyed_agent_that_answers_in_most_hours_keeps_its_incident(warehouse: Path, status: str | None) -> None:
    [incident] = probed(warehouse, "healthy", *["degraded"] * 25, status, "degraded")
    assert (incident.hour, incident.closed_at) == (at(1), None)


def test_a_surveyed_agent_that_answers_well_again_is_over(warehouse: Path) -> None:
    [incident] = probed(warehouse, "healthy", "unhealthy", "healthy", None, "healthy", "healthy")
    assert (incident.closed_at, incident.is_recovered) == (at(6), True)
    assert incident.recovery == f"planner ({URL}) is healthy again"
