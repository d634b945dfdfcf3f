"""Suggestions for a fleet, read from a warehouse: which days, which agents, and the agents that lack history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.apps.target_suggestions.day_sums import day_sums, nearest_ranks, runs_by_bucket
from health_assets.apps.target_suggestions.statistics_of_days import (
    Day,
    Lacking,
    Suggestion,
    lacking,
    suggestion,
    typical_days,
)
from health_assets.core.errors import HealthAssetsError, NoWarehouseError
from health_assets.core.formatting import nearest
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import Targets
from health_assets.core.terminal import printable
from health_assets.scoring.latency_buckets import latency_ms
from health_assets.scoring.relations import lookup
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session

EPOCH = date(1970, 1, 1)


class UnknownAgentError(HealthAssetsError):
    """An agent that is asked for did not run in this time, or is retired."""


@dataclass(frozen=True, kw_only=True)
class Suggestions:
    """What is suggested for a fleet.

    Args:
        first: the first UTC day that was looked at.
        end: the end of the newest complete hour.
        days: how many of the days have runs.
        found: suggestions, by agent.
        lacking: agents for which nothing is suggested, and why.
    """

    first: date
    end: datetime
    days: int
    found: Sequence[Suggestion]
    lacking: Sequence[Lacking]


def suggest(session: Session, targets: Targets, now: datetime, days: int, agents: Sequence[str] = ()) -> Suggestions:
    """Suggest targets from the UTC days up to that of the newest complete hour; retired agents are left out.

    Args:
        session: a session.
        targets: the present targets.
        now: the time.
        days: how many days.
        agents: only these; all by default.

    Raises:
        NoWarehouseError: the warehouse has no components.
        UnknownAgentError: an agent of these is not known or retired.
    """
    newest = PartitionStates(session).newest("health_components", now)
    if newest is None:
        raise NoWarehouseError("the warehouse holds no complete hour yet; materialize some hours first")
    first = newest.date() - timedelta(days=days - 1)
    hours = HourRange(datetime(first.year, first.month, first.day, tzinfo=UTC), newest + HOUR)
    runs, _ = session.persist(runs_by_bucket(_of(session.hours_of("state_components", hours), agents)))
    sums = day_sums(session.hours_of("health_components", hours))
    medians = nearest_ranks(runs, ["agent_id", "day"], 50)
    medians = medians.select("agent_id", "day", p50_s=latency_ms(medians.bucket) / 1e3)
    history = _history(session, lookup(sums, medians, ["agent_id", "day"]))
    _require(agents, history, targets)
    by_agent = {
        agent_id: typical_days(found)
        for agent_id, found in history.items()
        if (agent_id in agents or not agents) and not targets.of(agent_id).retired
    }
    reasons = {agent_id: lacking(found[0]) for agent_id, found in by_agent.items()}
    typical = {agent_id: found[0] for agent_id, found in by_agent.items() if reasons[agent_id] is None}
    p99 = _p99(session, runs, typical)
    return Suggestions(
        first=first,
        end=hours.end,
        days=len({day.day for found in history.values() for day in found}),
        found=[suggestion(agent_id, *by_agent[agent_id], p99.get(agent_id)) for agent_id in typical],
        lacking=[
            *_without_runs(targets, history, agents),
            *(
                Lacking(agent_id=name, reason=reason, left_out=by_agent[name][1])
                for name, reason in reasons.items()
                if reason
            ),
        ],
    )


def _of(rows: ir.Table, agents: Sequence[str]) -> ir.Table:
    return rows.filter(rows.agent_id.isin(agents)) if agents else rows


def _history(session: Session, rows: ir.Table) -> dict[str, list[Day]]:
    """The days of each agent, both in order."""
    history: dict[str, list[Day]] = {}
    for row in session.arrow(rows).sort_by([("agent_id", "ascending"), ("day", "ascending")]).to_pylist():
        # engines add whole numbers up to decimals
        day = Day(
            day=EPOCH + timedelta(days=row["day"]), runs=int(row["executions"]), successes=int(row["successes"]),
            timed=int(row["timed"]), runtime_us=int(row["runtime_us"]), p50_s=row["p50_s"],
        )  # fmt: skip
        history.setdefault(row["agent_id"], []).append(day)
    return history


def _require(agents: Sequence[str], history: Mapping[str, Sequence[Day]], targets: Targets) -> None:
    for agent_id in agents:
        if agent_id not in history and agent_id not in targets.agents:
            hint = nearest(agent_id, history)
            raise UnknownAgentError(f"no agent {printable(agent_id)} ran in this time{hint}")
        if targets.of(agent_id).retired:
            raise UnknownAgentError(f"{printable(agent_id)} is retired; nothing is expected of it")


def _without_runs(targets: Targets, history: Mapping[str, Sequence[Day]], agents: Sequence[str]) -> list[Lacking]:
    """Agents that the targets list and that did not run."""
    listed = (name for name, own in targets.agents.items() if not own.retired and name not in history)
    return [Lacking(agent_id=name, reason="no run") for name in sorted(listed) if not agents or name in agents]


def _p99(session: Session, runs: ir.Table, typical: Mapping[str, Sequence[Day]]) -> dict[str, int]:
    """The bucket of the 99th percentile of each agent, over its typical days."""
    pairs = [(agent_id, (day.day - EPOCH).days) for agent_id, days in typical.items() for day in days]
    names, days = ([pair[place] for pair in pairs] for place in (0, 1))
    wanted = ibis.memtable(pa.table({"agent_id": pa.array(names, pa.string()), "day": pa.array(days, pa.int64())}))
    found = nearest_ranks(runs.semi_join(wanted, ["agent_id", "day"]), ["agent_id"], 99)
    return {row["agent_id"]: row["bucket"] for row in session.dicts(found)}
