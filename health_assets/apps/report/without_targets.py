"""The line about agents of which no runtime is expected, from the tables of the warehouse."""

from datetime import timedelta
from functools import partial

import pyarrow as pa

from health_assets.apps import without_targets
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.scoring.relations import lookup
from health_assets.scoring.slowdowns import COMMAND, sentence_of_agent
from health_assets.warehouse.session import Session


def fleet_without_targets(session: Session, hours: HourRange) -> str | None:
    """How many agents have no expected runtime in the last of these hours, and which slowed most; None without any."""
    latest = session.latest_hour("agent_health", hours)
    if latest is None:
        return None
    hour = HourRange.of(latest)
    earlier = partial(_earlier, session, hour, None)
    sentence = without_targets.fleet_without_targets(_agents(session, hour, None), earlier, printable)
    return sentence and f"{sentence}; `{COMMAND}` proposes some"


def agent_without_targets(session: Session, hour: HourRange, agent_id: str) -> str | None:
    """That no runtime is expected of an agent and how its median moved; None where one is, or none is known."""
    rows = without_targets.agents_without_targets(_agents(session, hour, agent_id)).to_pylist()
    if not rows:
        return None
    runs, median_ms = rows[0]["n"], rows[0]["latency_p50_ms"]
    slowed = without_targets.slowdown_of(agent_id, runs, median_ms, partial(_earlier, session, hour, agent_id))
    return f"{sentence_of_agent(median_ms, slowed)}; `{COMMAND}` proposes one"


def _agents(session: Session, hour: HourRange, agent_id: str | None) -> pa.Table:
    scores = session.hours_of("agent_health", hour).select("agent_id", "health_score", without_targets.EXPECTED)
    if agent_id is not None:
        scores = scores.filter(scores.agent_id == agent_id)
    states = session.hours_of("agent_health_state", hour)
    medians = states.select("agent_id", "latency_p50_ms", n="sample_count")
    return session.arrow(lookup(scores, medians, "agent_id"))


def _earlier(session: Session, hour: HourRange, agent_id: str | None, days: int) -> pa.Table:
    back = timedelta(days=days)
    states = session.hours_of("agent_health_state", HourRange(hour.start - back, hour.end - back))
    if agent_id is not None:
        states = states.filter(states.agent_id == agent_id)
    return session.arrow(states.select("agent_id", "latency_p50_ms", n="sample_count"))
