"""Reading what an hour shows of releases."""

from collections.abc import Iterable

from health_assets.apps.alerts.facts import Fact
from health_assets.apps.alerts.failures import failures_of
from health_assets.apps.alerts.observed_hour import ObservedHour
from health_assets.apps.alerts.release_facts import ReleaseFact
from health_assets.core.hours import HourRange
from health_assets.systems.release_comparison.comparison_rows import Comparison
from health_assets.systems.release_comparison.names import WORSE
from health_assets.systems.release_comparison.newest import newest_comparisons


def facts_of_releases(observed: ObservedHour) -> Iterable[Fact]:
    """The comparisons of agents with a release that is worse, and of those with an open incident."""
    hour = HourRange.of(observed.hour)
    compared = observed.session.hours_of("release_comparison", hour)
    worse = observed.session.arrow(compared.filter(compared.verdict == WORSE).select("agent_id").distinct())
    are_worse = worse["agent_id"].to_pylist()
    agents = sorted({*are_worse, *observed.watched("agent")})
    if not agents:
        return
    rows = newest_comparisons(observed.session, hour, agents)
    failures = failures_of(observed, sorted(are_worse))  # kept when an incident opens
    by_agent: dict[str, list[Comparison]] = {}
    for row in rows:
        by_agent.setdefault(row["agent_id"], []).append(row)
    for agent_id in agents:
        yield ReleaseFact(
            hour=observed.hour,
            subject_id=agent_id,
            rows=by_agent.get(agent_id, ()),
            is_personal=observed.targets.of(agent_id).personal,
            failures=failures.get(agent_id, {}),
        )
