"""Reading what an hour shows of releases."""

from collections.abc import Iterable

from health_assets.apps.alerts.failures import failures_of
from health_assets.apps.alerts.observed_hour import ObservedHour
from health_assets.apps.alerts.seen import Seen
from health_assets.apps.alerts.seen_releases import ReleaseSeen
from health_assets.core.hours import HourRange
from health_assets.systems.release_comparison.names import WORSE
from health_assets.systems.release_comparison.newest import newest_comparisons


def releases_seen(observed: ObservedHour) -> Iterable[Seen]:
    """The comparisons of agents with a release that is worse, and of those with an open incident."""
    hour = HourRange.of(observed.hour)
    compared = observed.session.hours_of("release_comparison", hour)
    worse = observed.session.arrow(compared.filter(compared.verdict == WORSE).select("agent_id").distinct())
    agents = sorted({*worse["agent_id"].to_pylist(), *observed.watched("agent")})
    if not agents:
        return
    rows = newest_comparisons(observed.session, hour)
    failures = failures_of(observed, agents)
    for agent_id in agents:
        yield ReleaseSeen(
            hour=observed.hour,
            subject_id=agent_id,
            rows=[row for row in rows if row["agent_id"] == agent_id],
            is_somebodys_own=observed.targets.of(agent_id).personal,
            failures=failures.get(agent_id, {}),
        )
