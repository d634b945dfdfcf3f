"""Aggregates that would tell about a personal agent; only the full view shows them.

A model's health is an aggregate over the agents that called it. One that a personal agent called in the look-back is
shown to everybody only where its numbers rest on calls of enough other agents. With fewer, its calls, latencies and the
time of the last one tell how much and when that agent is used (source 3, section 8).

Calls of a tool that name no agent are an aggregate, too. Where one of them names an execution of a personal agent, they
are not shown: how many others are among them is not known.
"""

from datetime import datetime, timedelta

from health_assets.apps.serving.ownership import Ownership
from health_assets.core.settings import Settings
from health_assets.warehouse.session import Session

IS_PERSONAL = "coalesce(named.agent_id IN (SELECT unnest($exceptions)), false) <> $personal_by_default"
"""Of calls of no known agent: what is so by default."""

HIDDEN = f"""
WITH runs AS (
    SELECT DISTINCT execution_id, agent_id FROM executions WHERE hour > $after AND execution_id IN (
        SELECT execution_id FROM model_calls WHERE hour > $after AND hour <= $hour AND agent_id IS NULL
    )
),
named AS (
    SELECT model_calls.model, model_calls.hour, model_calls.call_id,
        coalesce(model_calls.agent_id, runs.agent_id) AS agent_id
    FROM model_calls
    LEFT JOIN runs ON model_calls.agent_id IS NULL AND runs.execution_id = model_calls.execution_id
    WHERE model_calls.hour > $after AND model_calls.hour <= $hour
),
personal AS (SELECT DISTINCT model FROM named WHERE {IS_PERSONAL}),
calls AS (
    SELECT model, hour, call_id,
        row_number() OVER (
            PARTITION BY model ORDER BY ended_at DESC, source_file DESC, line_number DESC, call_id DESC
        ) AS place
    FROM model_components
    WHERE hour > $after AND hour <= $hour AND model IN (SELECT model FROM personal)
),
others AS (
    SELECT calls.model, count(DISTINCT named.agent_id) AS agents
    FROM calls
    JOIN (SELECT model, window_calls FROM model_health WHERE hour = $hour) AS health ON health.model = calls.model
    JOIN named ON named.hour = calls.hour AND named.model = calls.model AND named.call_id = calls.call_id
    WHERE calls.place <= health.window_calls AND named.agent_id IS NOT NULL AND NOT ({IS_PERSONAL})
    GROUP BY calls.model
)
SELECT personal.model FROM personal LEFT JOIN others ON others.model = personal.model
WHERE coalesce(others.agents, 0) < $fewest
"""
"""Of a call that names its execution alone, that execution's agent counts."""


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
    span = {"hour": hour, "after": hour - timedelta(hours=settings.lookback_hours)}
    fewest = {"fewest": settings.min_agents_per_aggregate}
    return {model for (model,) in session.query(HIDDEN, {**span, **fewest, **ownership.parameters})}


TOOLS = f"""
SELECT DISTINCT tool_calls.tool
FROM tool_calls JOIN executions AS named ON named.execution_id = tool_calls.execution_id
WHERE tool_calls.agent_id IS NULL AND tool_calls.hour > $after AND tool_calls.hour <= $hour AND named.hour > $after
    AND {IS_PERSONAL}
"""


def tools_of_personal(session: Session, settings: Settings, hour: datetime, ownership: Ownership) -> list[str]:
    """Tools that a personal agent's execution called without naming the agent, in the window that ends with an hour.

    Args:
        session: a session.
        settings: length of the window.
        hour: the hour of `tool_health`.
        ownership: whose agents are somebody's own.
    """
    if not ownership.has_personal:
        return []
    span = {"hour": hour, "after": hour - timedelta(hours=settings.window_hours)}
    return [tool for (tool,) in session.query(TOOLS, {**span, **ownership.parameters})]
