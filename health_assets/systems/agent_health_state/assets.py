"""The Agent Health State (source 3): hourly parts, and the health document of every agent as columns."""

from collections.abc import Mapping
from datetime import datetime

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.pipeline.latencies import latencies
from health_assets.schema.records import EVENT_TABLES
from health_assets.systems.agent_health_state import FORMULA_VERSION
from health_assets.systems.agent_health_state.agent_changes import agent_changes
from health_assets.systems.agent_health_state.agent_health_state import (
    OF_CHANGES,
    STATUSES,
    agent_health_state,
    with_changes,
)
from health_assets.systems.agent_health_state.last_healthy import (
    corrections,
    last_known,
    unhealthy_since,
    with_last_healthy,
)
from health_assets.systems.agent_health_state.state_components import state_components
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import HOUR_TYPE

TIMES_OF_SIGHTINGS = {
    "cancellations": "ended_at",
    "trigger_events": "fired_at",
    "model_calls": "ended_at",
    "tool_calls": "ended_at",
    "signals": "given_at",
    "judgements": "judged_at",
}


def _components(inputs: Inputs) -> ir.Table:
    presence = [
        inputs.table(name).select("hour", "agent_id", first_event_at=at) for name, at in TIMES_OF_SIGHTINGS.items()
    ]
    return state_components(inputs.table("executions"), inputs.table("agent_updates"), presence)


def _states(inputs: Inputs) -> ir.Table:
    settings = inputs.settings
    window_hours, lookback_hours = settings.window_hours, settings.lookback_hours
    described = agent_health_state(
        inputs.table("health_components", back_hours=max(lookback_hours, 2 * window_hours)),
        _changes_until(inputs, inputs.hours.end),
        latencies(inputs, inputs.table("state_components", back_hours=window_hours)),
        inputs.targets,
        inputs.hours,
        window_hours,
        lookback_hours,
        inputs.as_of,
    )
    rows, _ = inputs.session.persist(inputs.with_windows(described, "health_components", window_hours))
    return with_last_healthy(rows, _known(inputs, rows, inputs.hours.start))


def _known(inputs: Inputs, agents: ir.Table, before: datetime) -> ir.Table:
    """The time at which each of these agents was last healthy, as known from the hours before a time.

    The latest of these hours knows it of all its agents; only for others is history looked through.
    """
    states = inputs.session.table("agent_health_state")
    earlier = states.filter(states.hour < before)
    [latest] = inputs.session.dicts(earlier.aggregate(hour=earlier.hour.max()))
    if latest["hour"] is None:
        return last_known(earlier)
    at_latest = inputs.session.hours_of("agent_health_state", HourRange.of(latest["hour"]))
    newcomers, count = inputs.session.persist(agents.select("agent_id").distinct().anti_join(at_latest, "agent_id"))
    known = at_latest.select("agent_id", "last_healthy_at")
    if not count:
        return known
    return ibis.union(known, last_known(earlier.semi_join(newcomers, "agent_id")))


def _changes(inputs: Inputs) -> ir.Table:
    lookback_hours = inputs.settings.lookback_hours
    return agent_changes(inputs.table("state_components", back_hours=lookback_hours), inputs.hours, lookback_hours)


def _changes_until(inputs: Inputs, end: datetime) -> ir.Table:
    changes = inputs.session.table("agent_changes")
    return changes.filter(changes.hour < end)


def _correct_later_hours(inputs: Inputs) -> None:
    states = inputs.session.table("agent_health_state")
    if not inputs.session.count(states.filter(states.hour >= inputs.hours.end).limit(1)):
        return
    _correct_last_healthy(inputs, states)
    _correct_changes(inputs, states)


def _correct_changes(inputs: Inputs, states: ir.Table) -> None:
    """Correct what later rows tell of changes, in hours whose own changes are known."""
    later = states.filter(states.hour >= inputs.hours.end)
    known = PartitionStates(inputs.session).of("agent_changes")
    [last] = inputs.session.dicts(later.aggregate(hour=later.hour.max()))
    hours = HourRange(inputs.hours.end, last["hour"] + HOUR)
    there = ibis.memtable(pa.table({"hour": pa.array([hour for hour in hours if hour in known], HOUR_TYPE)}))
    rows = later.semi_join(there, "hour").select("hour", "agent_id", "window_end", *OF_CHANGES)
    expected = with_changes(rows.drop(*OF_CHANGES), _changes_until(inputs, hours.end), hours)
    joined = rows.inner_join(expected, ["hour", "agent_id"], rname="{name}_now")
    differs = ibis.or_(*(~joined[name].identical_to(joined[f"{name}_now"]) for name in OF_CHANGES))
    wrong = joined.filter(differs)
    corrected, count = inputs.session.persist(
        wrong.select("hour", "agent_id", **{name: wrong[f"{name}_now"] for name in OF_CHANGES})
    )
    if count:
        PartitionStates(inputs.session).correct_rows("agent_health_state", corrected, ["hour", "agent_id"])


def _correct_last_healthy(inputs: Inputs, states: ir.Table) -> None:
    rows, count = inputs.session.persist(unhealthy_since(states, inputs.hours))
    if count:
        wrong = corrections(rows, _known(inputs, rows, inputs.hours.end))
        PartitionStates(inputs.session).correct_rows("agent_health_state", wrong, ["hour", "agent_id"])


def _agents_that_change(rows: ir.Table) -> ir.Table:
    counted = rows.group_by("agent_id").aggregate(
        executions=rows.latency_buckets.length().sum(),
        last_restart_at=rows.last_restart_at.max(),
        last_model=rows.last_model.max(),
        model_switches=rows.last_model_switch_at.count(),
    )
    return counted.order_by(ibis.desc("executions"), "agent_id")


def _agents_that_changed(rows: ir.Table) -> ir.Table:
    counted = rows.group_by("agent_id").aggregate(
        changes=rows.count(), last_restart_at=rows.last_restart_at.max(), last_model=rows.last_model.max()
    )
    return counted.order_by(ibis.desc("changes"), "agent_id")


def _worst_agents(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    severity = latest.status.cases(("unhealthy", 0), ("degraded", 1), ("healthy", 2), else_=3)
    return latest.order_by(severity, "response_ratio", "agent_id").select(
        "hour",
        "agent_id",
        "status",
        "sample_count",
        "response_ratio",
        "latency_p50_ms",
        "latency_p99_ms",
        "calibration_trend",
        "last_healthy_at",
        "uptime_seconds",
        "days_since_model_change",
    )


def _agents_by_status(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {f"agents {status}": (rows.status == status).sum() for status in STATUSES}


ASSETS = (
    Derived(
        name="state_components",
        upstream=EVENT_TABLES,
        rows=_components,
        preview_title="busiest agents",
        preview_rows=_agents_that_change,
        blocked_by=("raw_logs",),
        empty_without="an event of an agent",
        is_component=True,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="agent_changes",
        upstream=("state_components",),
        rows=_changes,
        preview_title="agents that changed most",
        preview_rows=_agents_that_changed,
        empty_without="a change of an agent",
        back_hours=lambda settings: settings.lookback_hours,
        is_component=True,
        is_exempt_from_retention=True,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="agent_health_state",
        upstream=("health_components", "state_components", "agent_changes"),
        rows=_states,
        preview_title="worst agents",
        preview_rows=_worst_agents,
        empty_without="a known agent",
        back_hours=lambda settings: max(settings.lookback_hours, 2 * settings.window_hours),
        post_write=_correct_later_hours,
        is_self_dependent=True,
        curves=_agents_by_status,
        formula_version=FORMULA_VERSION,
    ),
)
