"""Columns of copied rows by which a page knows who may see them.

What belongs here: marking rows that are an aggregate over agents, and naming all agents of a session. What does not:
deciding about one caller (`apps.serving.pages.scoped_history`), and which aggregates tell too much
(`apps.serving.aggregates`).

What follows from the targets is marked with their fingerprint: while the marks are not yet those of the targets as they
are now, a page takes the rows for hidden. So it does where retention has dropped the rows that would tell.
"""

from collections.abc import Sequence
from datetime import datetime

import ibis
from ibis import ir

from health_assets.apps.serving.aggregates import hidden_models, models_of_personal, tools_of_personal
from health_assets.apps.serving.history.copying_rules import Rules
from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.relations import lookup
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session

NOBODY = ""
"""Agent of what names none, as in `tool_health`."""
NOT_KNOWN = "not known"
"""Rules of rows of which it cannot be told any more whether they may be shown."""


def mark_models(rows: ir.Table, session: Session, hours: HourRange, rules: Rules) -> ir.Table:
    """Add `is_public` and `rules` to rows of `model_health`."""
    hidden = hidden_models(session, rules.settings, hours, rules.ownership).mutate(is_hidden=True)
    rows = lookup(rows, hidden, ["hour", "model"])
    marked = rows.mutate(is_public=~rows.is_hidden.fill_null(False)).drop("is_hidden")
    sources = ("model_calls", "model_components", "executions")
    return _with_rules(marked, session, hours, rules, sources, rules.settings.lookback_hours)


def mark_fallbacks(rows: ir.Table, session: Session, hours: HourRange, rules: Rules) -> ir.Table:
    """Add `is_public` and `rules` to rows of `model_fallback`.

    Only the full view has models that a personal agent calls: other callers of just these hours are not counted.
    """
    if not rules.ownership.has_personal:
        return rows.mutate(is_public=True, rules=ibis.literal(rules.fingerprint))
    models = models_of_personal(session, rules.settings, hours, rules.ownership).mutate(is_of_personal=True)
    rows = lookup(rows, models, ["hour", "model"])
    others = models.rename(alternative="model", is_alternative_of_personal="is_of_personal")
    rows = lookup(rows, others, ["hour", "alternative"])
    is_hidden = rows.is_of_personal.fill_null(False) | rows.is_alternative_of_personal.fill_null(False)
    marked = rows.mutate(is_public=~is_hidden).drop("is_of_personal", "is_alternative_of_personal")
    length = rules.settings.window_hours + rules.settings.lookback_hours
    return _with_rules(marked, session, hours, rules, ("model_calls", "executions"), length)


def mark_tools(rows: ir.Table, session: Session, hours: HourRange, rules: Rules) -> ir.Table:
    """Add `is_public` and `rules` to rows of `tool_health`."""
    tools = tools_of_personal(session, rules.settings, hours, rules.ownership).mutate(is_of_personal=True)
    rows = lookup(rows, tools, ["hour", "tool"])
    is_public = (rows.agent_id != NOBODY) | ~rows.is_of_personal.fill_null(False)
    marked = rows.mutate(is_public=is_public).drop("is_of_personal")
    return _with_rules(marked, session, hours, rules, ("tool_calls", "executions"), rules.settings.window_hours)


def _with_rules(
    rows: ir.Table, session: Session, hours: HourRange, rules: Rules, sources: Sequence[str], length: int
) -> ir.Table:
    """Add the fingerprint of the rules; another word for hours that look back on what retention has dropped."""
    known = ibis.literal(rules.fingerprint)
    if not rules.ownership.has_personal:
        return rows.mutate(rules=known)
    return rows.mutate(rules=_is_among(rows.hour, _dropped(session, hours, sources, length)).ifelse(NOT_KNOWN, known))


SOURCES = ("trace_risks", "cancellations")
"""Tables of the runs of sessions."""
OF_RUN = ("session_id", "agent_id", "hour")


def name_agents(rows: ir.Table, session: Session, hours: HourRange, rules: Rules) -> ir.Table:
    """Add `other_agents` to rows of `session_scores`: those of the session's runs beside its own, null if not known.

    Nobody asks for them while no agent is somebody's own or a team's, so they are not looked for then.
    """
    rows = rows.mutate(agent_id=rows.agent_id.fill_null(NOBODY))
    nothing = ibis.null("array<string>")
    if not rules.has_owners:
        return rows.mutate(other_agents=nothing)
    length = rules.settings.lookback_hours
    scored = rows.select("hour", "session_id", "agent_id")
    ran = ibis.union(
        *(
            session.hours_of(name, hours.extended_back(length - 1)).semi_join(scored, "session_id").select(*OF_RUN)
            for name in SOURCES
        )
    )
    ran = ran.select("session_id", other=ran.agent_id.fill_null(NOBODY), ran_in="hour").distinct()
    both = scored.join(
        ran,
        [
            scored.session_id == ran.session_id,
            scored.agent_id != ran.other,
            ran.ran_in <= scored.hour,
            ran.ran_in > scored.hour - ibis.interval(hours=length),
        ],
    )
    both = both.select(scored.hour, scored.session_id, ran.other).distinct()
    others = both.group_by("hour", "session_id").aggregate(other_agents=both.other.collect())
    found = lookup(rows, others, ["hour", "session_id"])
    known = ibis.coalesce(found.other_agents, ibis.literal([], "array<string>"))
    is_lost = _is_among(found.hour, _dropped(session, hours, SOURCES, length))
    return found.mutate(other_agents=is_lost.ifelse(nothing, known))


def _dropped(session: Session, hours: HourRange, sources: Sequence[str], length: int) -> list[datetime]:
    """The hours that look back on an hour that retention has dropped from one of these tables."""
    account = PartitionStates(session)
    span = hours.extended_back(length - 1)
    gone = {hour for source in sources for hour in account.dropped(source, span)}
    return [hour for hour in hours if any(hour - length * HOUR < one <= hour for one in gone)] if gone else []


def _is_among(hour: ir.Value, hours: Sequence[datetime]) -> ir.BooleanValue:
    return hour.isin([ibis.literal(one, "timestamp('UTC')") for one in hours]) if hours else ibis.literal(False)
