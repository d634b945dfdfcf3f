"""The line about agents of which no runtime is expected, so that nobody says when they get slow."""

from datetime import timedelta

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.scoring.relations import lookup
from health_assets.scoring.slowdowns import (
    COMMAND,
    DAYS_BEFORE,
    FEWEST_RUNS,
    Slowdown,
    sentence_of_agent,
    sentence_of_fleet,
    slowdown,
)
from health_assets.warehouse.session import Session

BEFORE = {days: f"before_{days}" for days in DAYS_BEFORE}


def fleet_without_targets(session: Session, hours: HourRange) -> str | None:
    """How many agents have no expected runtime in the last of these hours, and which slowed most; None without any."""
    latest = session.latest_hour("agent_health", hours)
    if latest is None:
        return None
    hour = HourRange.of(latest)
    scored = session.hours_of("agent_health", hour)
    scored = scored.filter(scored.health_score.notnull())
    found = _medians(session, hour)
    shortest = ibis.least(*(found[name] for name in BEFORE.values())).nullif(0.0)
    compared = found.filter(found.runs >= FEWEST_RUNS, shortest.notnull())
    rows = session.dicts(compared.order_by(ibis.desc(found.median_ms / shortest), "agent_id").limit(1))
    worst = _slowdown(rows[0]) if rows else None
    name = printable(worst.agent_id) if worst else ""
    sentence = sentence_of_fleet(session.count(found), session.count(scored), worst, name)
    return sentence and f"{sentence}; `{COMMAND}` proposes some"


def agent_without_targets(session: Session, hour: HourRange, agent_id: str) -> str | None:
    """That no runtime is expected of an agent and how its median moved; None where one is, or none is known."""
    found = _medians(session, hour)
    rows = session.dicts(found.filter(found.agent_id == agent_id))
    if not rows:
        return None
    row = rows[0]
    sentence = sentence_of_agent(row["median_ms"], _slowdown(row) if row["runs"] >= FEWEST_RUNS else None)
    return f"{sentence}; `{COMMAND}` proposes one"


def _medians(session: Session, hour: HourRange) -> ir.Table:
    """Median runtimes now and before, of agents with runtimes and no expected one."""
    agents = session.hours_of("agent_health", hour)
    without = agents.filter(agents.expected_runtime_s.isnull()).select("agent_id")
    states = session.hours_of("agent_health_state", hour)
    timed = states.filter(states.latency_p50_ms.notnull())
    timed = timed.select("agent_id", runs="sample_count", median_ms="latency_p50_ms")
    rows = timed.semi_join(without, "agent_id")
    for days, name in BEFORE.items():
        back = timedelta(days=days)
        earlier = session.hours_of("agent_health_state", HourRange(hour.start - back, hour.end - back))
        earlier = earlier.filter(earlier.sample_count >= FEWEST_RUNS)
        rows = lookup(rows, earlier.select("agent_id", **{name: "latency_p50_ms"}), "agent_id")
    return rows


def _slowdown(row: dict) -> Slowdown | None:
    return slowdown(row["agent_id"], row["median_ms"], {days: row[name] for days, name in BEFORE.items()})
