"""The Agent Health Model (source 1): hourly components, scores of agents, and the fleet."""

from collections.abc import Mapping

import ibis
from ibis import ir

from health_assets.core.settings import Settings
from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.schema.records import EVENT_TABLES
from health_assets.scoring.health_components import health_components
from health_assets.systems.agent_health_model import FORMULA_VERSION
from health_assets.systems.agent_health_model.agent_health import agent_health
from health_assets.systems.agent_health_model.names import STATES
from health_assets.systems.agent_health_model.severity_order import with_now, with_verdict
from health_assets.systems.agent_health_model.system_health import system_health

SUMMED_TABLES = ("executions", "trigger_events")


def _components(inputs: Inputs) -> ir.Table:
    presence = [inputs.table(name).select("hour", "agent_id") for name in EVENT_TABLES if name not in SUMMED_TABLES]
    return health_components(
        inputs.table("executions"), inputs.table("trigger_events"), ibis.union(*presence), inputs.targets
    )


def _agents(inputs: Inputs) -> ir.Table:
    settings = inputs.settings
    components = inputs.table("health_components", back_hours=settings.lookback_hours)
    scored = agent_health(
        components, inputs.targets, inputs.hours, settings.window_hours, settings.lookback_hours, inputs.as_of
    )
    return inputs.with_windows(scored, "health_components", settings.window_hours)


def _agents_in_short_windows(inputs: Inputs) -> ir.Table:
    lengths = inputs.settings.short_windows
    scored = [_in_short_window(inputs, length) for length in lengths or (1,)]
    rows = ibis.union(*scored) if len(scored) > 1 else scored[0]
    return rows if lengths else rows.filter(ibis.literal(False))


def _in_short_window(inputs: Inputs, length: int) -> ir.Table:
    components = inputs.table("health_components", back_hours=length)
    scored = agent_health(components, inputs.targets, inputs.hours, length, length, inputs.as_of)
    ran = scored.filter(scored.n > 0).mutate(window_hours=ibis.literal(length, "int64"))
    rows = inputs.with_windows(ran, "health_components", length)
    return rows.select(sorted(rows.columns))  # a union needs one order


def _longest_short_window(settings: Settings) -> int:
    return max(settings.short_windows, default=1)


def _fleet(inputs: Inputs) -> ir.Table:
    windows = inputs.windows("health_components", inputs.settings.window_hours)
    return system_health(inputs.table("agent_health"), windows)


def _busiest_agents(rows: ir.Table) -> ir.Table:
    summed = rows.group_by("agent_id").aggregate(
        executions=rows.executions.sum(),
        failures=rows.failures.sum(),
        long_running=rows.long_running.sum(),
        sla_breaches=rows.sla_breaches.sum(),
        trigger_failures=rows.trigger_failures.sum(),
    )
    return summed.order_by(ibis.desc("executions"), "agent_id")


def _worst_agents(rows: ir.Table) -> ir.Table:
    """The agents that a person looks at first: those that fail now, then by their scores."""
    latest = of_newest_hour(rows)
    active = with_verdict(latest.filter(latest.state != "inactive"))
    return active.order_by("urgency", "health_score", "agent_id").select(
        "hour",
        "agent_id",
        "now",
        "verdict",
        "health_score",
        "points_at_stake",
        "is_provisional",
        "n",
        "n_full",
        "asr",
        "long_running",
        "sla_breaches",
        "trigger_failures",
    )


def _worst_in_short_windows(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by("window_hours", "health_score", "agent_id").select(
        "hour", "window_hours", "agent_id", "health_score", "points_at_stake", "state", "n", "asr", "long_running",
        "sla_breaches", "trigger_failures",
    )  # fmt: skip


def _latest_hours(rows: ir.Table) -> ir.Table:
    return rows.order_by(ibis.desc("hour")).select(
        "hour",
        "health_score",
        "agents",
        "healthy",
        "degraded",
        "unhealthy",
        "inactive",
        "provisional",
        "hours_covered",
    )


def _events_by_outcome(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {"executions": rows.executions.sum(), "failures": rows.failures.sum()}


def _agents_by_state(rows: ir.Table) -> Mapping[str, ir.Value]:
    states = {f"agents {state}": (rows.state == state).sum() for state in STATES}
    return {"mean health score": rows.health_score.mean(), **states}


def _fleet_by_hour(rows: ir.Table) -> Mapping[str, ir.Value]:
    states = {f"agents {state}": rows[state].sum() for state in STATES}
    return {"health score": rows.health_score.mean(), "agents": rows.agents.sum(), **states}


ASSETS = (
    Derived(
        name="health_components",
        upstream=EVENT_TABLES,
        rows=_components,
        preview_title="busiest agents",
        preview_rows=_busiest_agents,
        blocked_by=("raw_logs",),
        empty_without="an event of an agent",
        is_component=True,
        curves=_events_by_outcome,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="agent_health",
        upstream=("health_components",),
        rows=_agents,
        preview_title="worst agents",
        preview_rows=_worst_agents,
        preview_join=with_now,
        empty_without="a known agent",
        back_hours=lambda settings: settings.lookback_hours,
        curves=_agents_by_state,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="agent_health_short",
        upstream=("health_components",),
        rows=_agents_in_short_windows,
        preview_title="worst agents",
        preview_rows=_worst_in_short_windows,
        empty_without="an execution, and a window in `HEALTH_SHORT_WINDOW_HOURS`",
        back_hours=_longest_short_window,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="system_health",
        upstream=("agent_health",),
        rows=_fleet,
        preview_title="latest hours",
        preview_rows=_latest_hours,
        empty_without="an hour",
        curves=_fleet_by_hour,
        formula_version=FORMULA_VERSION,
    ),
)
