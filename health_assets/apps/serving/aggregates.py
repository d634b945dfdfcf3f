"""Aggregates that would tell about a personal agent; only the full view shows them.

A model's health is an aggregate over the agents that called it. One that a personal agent called in the look-back is
shown to everybody only where its numbers rest on calls of enough other agents. With fewer, its calls, latencies and the
time of the last one tell how much and when that agent is used (source 3, section 8).

Calls of a tool that name no agent are an aggregate, too. Where one of them names an execution of a personal agent, they
are not shown: how many others are among them is not known.
"""

from datetime import datetime

import ibis
from ibis import ir

from health_assets.apps.serving.ownership import Ownership
from health_assets.core.hours import HourRange
from health_assets.core.settings import Settings
from health_assets.scoring.relations import lookup
from health_assets.warehouse.session import Session


def hidden_models(session: Session, settings: Settings, hour: datetime, ownership: Ownership) -> set[str]:
    """The models of an hour that only the full view shows.

    Args:
        session: a session.
        settings: length of the look-back, and how many other agents are enough.
        hour: the hour of `model_health`.
        ownership: whose agents are somebody's own.
    """
    if not ownership.has_personal:
        return set()
    look_back = HourRange.of(hour).extended_back(settings.lookback_hours - 1)
    callers = _callers(session, look_back)
    is_personal = ownership.personal(callers.agent_id)
    personal = callers.filter(is_personal).select("model").distinct()
    calls = session.hours_of("model_components", look_back).semi_join(personal, "model")
    latest_first = [calls[name].desc() for name in ("ended_at", "source_file", "line_number", "call_id")]
    place = ibis.row_number().over(group_by="model", order_by=latest_first)
    calls = calls.select("hour", "model", "call_id", place=place)
    window = session.hours_of("model_health", HourRange.of(hour)).select("model", "window_calls")
    shown = calls.join(window, "model").filter(lambda rows: rows.place < rows.window_calls)
    others = callers.filter(callers.agent_id.notnull(), ~is_personal).semi_join(shown, ["hour", "model", "call_id"])
    counted = others.group_by("model").aggregate(agents=others.agent_id.nunique())
    rows = lookup(personal, counted, "model")
    hidden = rows.filter(rows.agents.fill_null(0) < settings.min_agents_per_aggregate)
    return {row["model"] for row in session.dicts(hidden.select("model"))}


def _callers(session: Session, look_back: HourRange) -> ir.Table:
    """The caller of each call of a model: `hour`, `model`, `call_id`, `agent_id`.

    Of a call that names its execution alone, that execution's agent counts.
    """
    calls = session.hours_of("model_calls", look_back)
    calls = calls.mutate(nameless_of=ibis.ifelse(calls.agent_id.isnull(), calls.execution_id, ibis.null()))
    runs = session.table("executions")  # one ends after its calls
    runs = runs.filter(runs.hour >= look_back.start).select(nameless_of="execution_id", ran="agent_id")
    runs = runs.semi_join(calls, "nameless_of").distinct()
    rows = lookup(calls, runs, "nameless_of")
    return rows.select("hour", "model", "call_id", agent_id=rows.agent_id.coalesce(rows.ran))


def tools_of_personal(session: Session, settings: Settings, hour: datetime, ownership: Ownership) -> ir.Table:
    """Tools that a personal agent's execution called without naming the agent, in the window that ends with an hour.

    Args:
        session: a session.
        settings: length of the window.
        hour: the hour of `tool_health`.
        ownership: whose agents are somebody's own.

    Returns:
        Each `tool` once.
    """
    window = HourRange.of(hour).extended_back(settings.window_hours - 1)
    calls = session.hours_of("tool_calls", window)
    runs = session.table("executions")
    runs = runs.filter(runs.hour >= window.start, ownership.personal(runs.agent_id))
    return calls.filter(calls.agent_id.isnull()).semi_join(runs, "execution_id").select("tool").distinct()
