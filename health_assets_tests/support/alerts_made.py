"""Histories of scores made by hand, in a warehouse of their own."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from health_assets.apps.alerts.config import Alerts
from health_assets.apps.alerts.evaluator import Watch, watch
from health_assets.apps.alerts.incidents import Incident
from health_assets.apps.alerts.outbox import recent_incidents
from health_assets.apps.alerts.rules import Rule
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.schema.catalog import describe
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.projects import begin_with_empty_tables

Row = dict[str, Any]
ARROW = {
    "timestamp('UTC')": (pa.timestamp("us", "UTC"), START),
    "float64": (pa.float64(), 0.5),
    "int64": (pa.int64(), 24),
    "boolean": (pa.bool_(), False),
    "string": (pa.string(), "text"),
}
ALL_IN_TIME = timedelta(days=400)


def later() -> datetime:
    """A time at which all that was written by now has been left alone for long enough."""
    return datetime.now(UTC) + timedelta(hours=1)


def compared(agent: str, verdict: str, measure: str = "success_rate", candidate: str = "2") -> dict[str, Any]:
    """A row of `release_comparison`."""
    return {
        "agent_id": agent, "dimension": "version", "to_version": candidate, "from_version": "1", "measure": measure,
        "released_at": at(0), "baseline_starts_at": at(-4), "n_from": 200, "n_to": 100,
        "estimate_from": 0.95, "estimate_to": 0.8, "difference": -0.15, "low": -0.25,
        "high": -0.05, "margin": 0.02, "verdict": verdict,
        "more_runs": 70 if verdict == "not_enough" else None,
    }  # fmt: skip


def drift(agent: str, *, is_drifting: bool = True, measure: str = "success_rate") -> dict[str, Any]:
    """A row of `drift`."""
    cause = {"cause_dimension": "version", "cause": "8", "cause_share": 0.83}
    cause["hint"] = "version 8: 83% of the failures in excess"
    is_caused = is_drifting and measure == "success_rate"
    return {
        "agent_id": agent, "measure": measure, "since": at(-4), "runs": 40, "value": 0.8, "baseline_runs": 960,
        "baseline": 0.95, "limit_value": 0.9, "evidence": 12.5, "detectors": 30, "is_drifting": is_drifting,
        **(cause if is_caused else {}),
    }  # fmt: skip


def scored(agent_id: str, score: float | None, *, n: int = 100, covered: int = 24, **columns: Any) -> Row:
    """A row of `agent_health`: what the score lacks was lost to its success rate."""
    state = "inactive" if score is None else "healthy" if score >= 85 else "degraded" if score >= 65 else "unhealthy"
    lost = None if score is None else 1 - (100 - score) / 28
    parts = dict.fromkeys(("failure_score", "performance_score", "stability_score", "sla_score", "trigger_score"), 1.0)
    row = {name: None if nullable else ARROW[kind][1] for name, kind, nullable, _ in describe("agent_health")}
    return {
        **row, "agent_id": agent_id, "health_score": score, "state": state, "n": 0 if score is None else n,
        "hours_covered": covered, "healthy_at": 85.0, "degraded_at": 65.0, "confidence_factor": 1.0,
        "points_at_stake": None if score is None else 100.0, "success_score": lost, "asr": 0.5, **({} if score is None else parts), **columns,
    }  # fmt: skip


def insert(session: Session, table: str, hour: datetime, rows: Iterable[Row]) -> None:
    """Replace an hour of a table; a column that a row does not name is null, or where it may not be, something."""
    columns = describe(table)
    defaults = {name: None if nullable else ARROW[kind][1] for name, kind, nullable, _ in columns}
    schema = pa.schema([(name, ARROW[kind][0]) for name, kind, _, _ in columns])
    session.delete_hours(table, HourRange.of(hour))
    session.insert_arrow(table, pa.Table.from_pylist([{**defaults, "hour": hour, **row} for row in rows], schema))


def fill_hour(warehouse: Path, hour: datetime, agents: Sequence[Row] = (), **tables: Sequence[Row]) -> None:
    """An hour as a run leaves it: its scores, other tables, and that it was materialized."""
    begin_with_empty_tables(warehouse)
    with Warehouse(str(warehouse)).write() as session:
        keep_hour(session, hour, agents, **tables)


def keep_hour(session: Session, hour: datetime, agents: Sequence[Row] = (), **tables: Sequence[Row]) -> None:
    """The same, in a session that is open."""
    for table, rows in {"agent_health": agents, **tables}.items():
        insert(session, table, hour, [{**row, "hour": hour} for row in rows])
    for asset in ("raw_logs", "agent_health", "system_health", *tables):
        if asset != "expectation_results":
            PartitionStates(session).note(asset, HourRange.of(hour), [hour])


def look(
    warehouse: Path,
    rules: Sequence[Rule],
    *,
    now: datetime | None = None,
    targets: Targets | None = None,
    channels: Mapping[str, Any] | None = None,
) -> Watch:
    """Judge what is ready."""
    settings = Settings(warehouse=str(warehouse))
    alerts = Alerts(rules=tuple(rules), channels=dict(channels or {}))
    return watch(Warehouse(str(warehouse)), alerts, settings, targets or Targets(), now or later())


def incidents(warehouse: Path) -> list[Incident]:
    """All incidents, by hour, rule and subject."""
    with Warehouse(str(warehouse)).read() as session:
        found = recent_incidents(session, datetime(2000, 1, 1, tzinfo=UTC))
    return sorted(found, key=lambda one: (one.hour, one.rule, one.subject_kind, one.subject_id))


def at(number: int) -> datetime:
    """The start of an hour of the histories."""
    return START + number * HOUR
