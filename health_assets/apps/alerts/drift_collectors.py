"""Reading what an hour shows of agents beside their own past."""

from collections.abc import Iterable, Sequence

from health_assets.apps.alerts.drift_facts import DriftFact
from health_assets.apps.alerts.facts import Fact
from health_assets.apps.alerts.failures import failures_of
from health_assets.apps.alerts.observed_hour import ObservedHour, ids_table
from health_assets.core.hours import HourRange
from health_assets.systems.agent_drift.report import drifting_in
from health_assets.warehouse.partition_states import PartitionStates


def facts_of_drifts(observed: ObservedHour) -> Iterable[Fact]:
    """The drifts of agents, and of those with an open incident whether there is one."""
    hour = HourRange.of(observed.hour)
    by_agent: dict[str, list[dict]] = {}
    for row in observed.session.dicts(drifting_in(observed.session, hour)):
        by_agent.setdefault(row["agent_id"], []).append(row)
    is_known = observed.hour in PartitionStates(observed.session).of("drift", hour)
    failures = failures_of(observed, sorted(by_agent))  # kept when an incident opens
    watched = sorted({*by_agent, *observed.watched("agent")})
    ran = _with_executions(observed, watched)
    for agent_id in watched:
        yield DriftFact(
            hour=observed.hour,
            subject_id=agent_id,
            rows=by_agent.get(agent_id, ()),
            is_known=is_known,
            has_run=agent_id in ran,
            is_personal=observed.targets.of(agent_id).personal,
            failures=failures.get(agent_id, {}),
        )


def _with_executions(observed: ObservedHour, agent_ids: Sequence[str]) -> set[str]:
    """Those of the agents that executed anything in the hour."""
    if not agent_ids:
        return set()
    rows = observed.session.hours_of("health_components", HourRange.of(observed.hour))
    ran = rows.filter(rows.executions > 0).semi_join(ids_table(agent_ids), "agent_id").select("agent_id")
    return {row["agent_id"] for row in observed.session.dicts(ran)}
