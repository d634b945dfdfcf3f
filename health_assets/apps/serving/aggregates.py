"""Aggregates that would tell about a personal agent; only the full view shows them.

A model's health is an aggregate over the agents that called it. One that a personal agent called in the look-back is
shown to everybody only where its numbers rest on calls of enough other agents. With fewer, its calls, latencies and the
time of the last one tell how much and when that agent is used (source 3, section 8).

Calls of a tool that name no agent are an aggregate, too. Where one of them names an execution of a personal agent, they
are not shown: how many others are among them is not known.
"""

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.apps.serving.ownership import Ownership
from health_assets.core.hours import HourRange
from health_assets.core.settings import Settings
from health_assets.scoring.relations import lookup, spine
from health_assets.warehouse.session import HOUR_TYPE, Session

CALL = ("source_file", "line_number", "call_id")
"""Columns that tell the calls of an hour apart: several agents may have one of the same id."""


def hidden_models(session: Session, settings: Settings, hours: HourRange, ownership: Ownership) -> ir.Table:
    """The models that only the full view shows, by hour.

    Args:
        session: a session.
        settings: length of the look-back, and how many other agents are enough.
        hours: hours of `model_health`.
        ownership: owners of the agents.

    Returns:
        Each `hour` and `model` once.
    """
    if not ownership.has_personal:
        return ibis.memtable(pa.table({"hour": pa.array([], HOUR_TYPE), "model": pa.array([], pa.string())}))
    look_back = hours.extended_back(settings.lookback_hours - 1)
    callers = _callers(session, look_back)
    is_personal = ownership.personal(callers.agent_id)
    personal = callers.filter(is_personal).select("model", called_in=callers.hour).distinct()
    touched = _looking_back(personal, hours, settings.lookback_hours, "model")
    calls = session.hours_of("model_components", look_back).semi_join(personal, "model")
    shown = _last_calls(calls, session.hours_of("model_health", hours), settings.lookback_hours)
    others = callers.filter(callers.agent_id.notnull(), ~is_personal).rename(called_in="hour")
    others = shown.join(others, ["called_in", "model", *CALL])
    counted = others.group_by("hour", "model").aggregate(agents=others.agent_id.nunique())
    rows = lookup(touched, counted, ["hour", "model"])
    return rows.filter(rows.agents.fill_null(0) < settings.min_agents_per_aggregate).select("hour", "model")


def models_of_personal(session: Session, settings: Settings, hours: HourRange, ownership: Ownership) -> ir.Table:
    """Models that a personal agent called in the window of hours or the look-back before: each `hour` and `model` once.

    Args:
        session: a session.
        settings: lengths of window and look-back.
        hours: hours of `model_fallback`.
        ownership: owners of the agents.
    """
    length = settings.window_hours + settings.lookback_hours
    callers = _callers(session, hours.extended_back(length - 1))
    personal = callers.filter(ownership.personal(callers.agent_id)).select("model", called_in=callers.hour).distinct()
    return _looking_back(personal, hours, length, "model")


def _looking_back(found: ir.Table, hours: HourRange, length: int, what: str) -> ir.Table:
    """Each of these hours with what was found in the hours up to it, by `called_in`; each pair once."""
    each = spine(hours)
    is_within = [found.called_in <= each.hour, found.called_in > each.hour - ibis.interval(hours=length)]
    return each.join(found, is_within).select("hour", what).distinct()


def _last_calls(calls: ir.Table, health: ir.Table, lookback_hours: int) -> ir.Table:
    """The calls that each row of `model_health` is made from: `hour`, `model`, `called_in` and `CALL`."""
    in_order = [calls[name] for name in ("ended_at", "source_file", "line_number", "call_id")]
    place = ibis.row_number().over(group_by="model", order_by=in_order)
    calls = calls.select("model", *CALL, called_in="hour", place=place)
    last = calls.group_by("model", "called_in").aggregate(last=calls.place.max())
    window = health.select("hour", "model", "window_calls")
    seen = window.join(last, [window.model == last.model, last.called_in <= window.hour])
    seen = seen.select(window.hour, window.model, window.window_calls, last.last)
    ends = seen.group_by("hour", "model", "window_calls").aggregate(last=seen.last.max())
    is_shown = [
        ends.model == calls.model,
        calls.place <= ends.last,
        calls.place > ends.last - ends.window_calls,
        calls.called_in > ends.hour - ibis.interval(hours=lookback_hours),
    ]
    return ends.join(calls, is_shown).select(ends.hour, ends.model, calls.called_in, *(calls[name] for name in CALL))


def _callers(session: Session, look_back: HourRange) -> ir.Table:
    """The callers of each call of a model: `hour`, `model`, `CALL`, `agent_id`.

    Of a call that names its execution alone, the agents of all executions of that id count.
    """
    calls = session.hours_of("model_calls", look_back)
    calls = calls.mutate(nameless_of=ibis.ifelse(calls.agent_id.isnull(), calls.execution_id, ibis.null()))
    runs = session.table("executions")  # one ends after its calls
    runs = runs.filter(runs.hour >= look_back.start).select(nameless_of="execution_id", ran="agent_id")
    runs = runs.semi_join(calls, "nameless_of").distinct()
    rows = lookup(calls, runs, "nameless_of")
    return rows.select("hour", "model", *CALL, agent_id=rows.agent_id.coalesce(rows.ran))


def tools_of_personal(session: Session, settings: Settings, hours: HourRange, ownership: Ownership) -> ir.Table:
    """Tools that a personal agent's execution called without naming the agent, in the windows that end with hours.

    Args:
        session: a session.
        settings: length of the window.
        hours: hours of `tool_health`.
        ownership: owners of the agents.

    Returns:
        Each `hour` and `tool` once.
    """
    window = hours.extended_back(settings.window_hours - 1)
    calls = session.hours_of("tool_calls", window)
    runs = session.table("executions")
    runs = runs.filter(runs.hour >= window.start, ownership.personal(runs.agent_id))
    nameless = calls.filter(calls.agent_id.isnull()).semi_join(runs, "execution_id")
    return _looking_back(nameless.select("tool", called_in="hour").distinct(), hours, settings.window_hours, "tool")
