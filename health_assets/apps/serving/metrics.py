"""The page `/metrics` for Prometheus: the fleet, the hours, the server's own requests.

What belongs here: names, texts and labels of metrics, and working out values that the clock changes. What does not: who
may read the page (`service`), counting requests (`request_counts`), and gathering from the warehouse (`fleet_facts`).

Each page is made by a registry of its own from what is in memory at that moment; nothing is kept in the process-wide
state of the library.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from health_assets.apps.alerts.rules import SEVERITIES
from health_assets.apps.serving.access_scope import EVERYBODYS, AccessScope
from health_assets.apps.serving.ordering import of_now
from health_assets.apps.serving.outdated import DataAge
from health_assets.apps.serving.refresher import Refresher
from health_assets.apps.serving.request_counts import BUCKETS_S, RequestCounts
from health_assets.apps.serving.snapshot import Snapshot
from health_assets.core.hours import HOUR
from health_assets.core.settings import Settings
from health_assets.pipeline.hour_arithmetic import newest_finished_hour
from health_assets.scoring.verdict import NOW, PROVISIONAL
from health_assets.systems.agent_health_model.names import STATES

NO_ANSWER = "none"
"""Stands for the status of a request that got no answer."""


class Metrics:
    """Makes the page.

    Args:
        settings: agents that get series of their own, when an hour is late, and when data is outdated.
        refresher: holds the data.
        requests: the requests so far.
    """

    def __init__(self, settings: Settings, refresher: Refresher, requests: RequestCounts) -> None:
        self._agents = settings.metrics_agents
        self._late_after = timedelta(minutes=settings.late_after_minutes)
        self._age = DataAge(settings.serve_max_data_age_s)
        self._refresher = refresher
        self._requests = requests

    def page(self, accept: str, view: AccessScope, now: datetime | None = None) -> tuple[bytes, str]:
        """The page as its reader wants it, and its content type.

        Args:
            accept: the formats that the reader takes, as the header has them.
            view: the part of the data that the reader may see.
            now: the time.
        """
        moment = now or datetime.now(UTC)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Gathered(lambda: self._families(view, moment)))
        encode, content_type = choose_encoder(accept)
        return encode(registry), content_type

    def _families(self, view: AccessScope, now: datetime) -> Iterator[Metric]:
        snapshot, told = self._refresher.snapshot, self._refresher.describe()
        yield _gauge("ready", "Whether there is data to answer from, 0 or 1.", float(told["is_ready"]))
        yield _gauge("data_current", "Whether the last look at the warehouse went well, 0 or 1.", told["is_current"])
        if self._refresher.checked_at is not None:
            age_s = (now - self._refresher.checked_at).total_seconds()
            yield _gauge("data_checked_age_seconds", "Time since the data was last known to be the newest.", age_s)
        yield from _pipeline(self._refresher.pipeline, self._late_after, view, now)
        if snapshot is not None:
            is_current = self._age.left_s(snapshot.known_until, now) >= 0
            yield from _fleet(snapshot, view, now, is_current=is_current)
            yield from _agents(snapshot, self._agents, is_current=is_current)
        yield from _requests(self._requests)


class _Gathered(Collector):
    def __init__(self, families: Callable[[], Iterator[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return self._families()


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"health_assets_{name}", text, value=float(value))


def _gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"health_assets_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _fleet(snapshot: Snapshot, view: AccessScope, now: datetime, *, is_current: bool) -> Iterator[Metric]:
    age_s = (now - snapshot.known_until).total_seconds()
    yield _gauge(
        "data_age_seconds",
        "Time since the end of the hour that is served, or since when it is known while it runs.",
        age_s,
    )
    states = {state: snapshot.count(state, view) for state in (*STATES, PROVISIONAL)}
    text = "Agents by state, of the hour that is served; one that looks healthy after too few runs is provisional."
    yield _gauges("agents", text, "state", states)
    if is_current:
        verdicts = {verdict: snapshot.count(of_now(verdict), view) for verdict in NOW}
        text = "Agents by what they do in the last hours: failing, suspect, ..."
        yield _gauges("agents_now", text, "verdict", verdicts)
    score = snapshot.fleet_score(view)
    if score is not None:
        yield _gauge("fleet_score", "Mean score of active agents, 0 to 100 points.", score)


def _pipeline(facts: Mapping[str, Any], late_after: timedelta, view: AccessScope, now: datetime) -> Iterator[Metric]:
    if facts.get("newest_hour"):
        newest = datetime.fromisoformat(facts["newest_hour"])
        age_s, late = (now - newest - HOUR).total_seconds(), (newest_finished_hour(now, late_after) - newest) / HOUR
        yield _gauge("newest_hour_age_seconds", "Time since the end of the newest hour of the warehouse.", age_s)
        yield _gauge("late_hours", "Hours after the newest one that should be there by now.", max(0, late))
        text = "Hours of the look-back that were left out while a later one is there."
        yield _gauge("missing_hours", text, facts["missing_hours"])
        text = "Rejected lines of the newest window, by reason."
        yield _gauges("rejected_lines", text, "reason", facts["rejected_lines"])
    if "open_incidents" in facts:
        found = facts["open_incidents"]["full" if view.is_full else "public"]
        every = dict.fromkeys(reversed(SEVERITIES), 0) | found
        yield _gauges("open_incidents", "Incidents that are open, by severity.", "severity", every)


def _agents(snapshot: Snapshot, names: Sequence[str], *, is_current: bool) -> Iterator[Metric]:
    """The named agents that are known and nobody's own; what they do now only from data that says so."""
    score = GaugeMetricFamily("health_assets_agent_score", "Score of an agent, 0 to 100 points.", labels=["agent_id"])
    text = "Points of the score that could be lost, above 0 to 100."
    stake = GaugeMetricFamily("health_assets_agent_points_at_stake", text, labels=["agent_id"])
    text = "Whether an agent is in a state, 0 or 1."
    state = GaugeMetricFamily("health_assets_agent_state", text, labels=["agent_id", "state"])
    text = "Whether an agent is failing, suspect, ... in the last hours, 0 or 1."
    now = GaugeMetricFamily("health_assets_agent_now", text, labels=["agent_id", "verdict"])
    for name in dict.fromkeys(names):
        place = snapshot.find(name.encode(), EVERYBODYS)
        if place is None or snapshot.is_personal(place):
            continue
        own_state, own_score, own_stake, own_verdict = snapshot.verdict(place)
        for each in NOW:
            now.add_metric([name, each], float(each == own_verdict))
        for each in STATES:
            state.add_metric([name, each], float(each == own_state))
        if own_score is not None:
            score.add_metric([name], own_score)
        if own_stake is not None:
            stake.add_metric([name], own_stake)
    if names:
        yield from (score, stake, state, *([now] if is_current else []))


def _requests(requests: RequestCounts) -> Iterator[Metric]:
    text = "Requests by route and status of the answer."
    answered = CounterMetricFamily("health_assets_http_requests", text, labels=["route", "status"])
    for (route, status), count in requests.statuses.items():
        answered.add_metric([route, str(status or NO_ANSWER)], count)
    text = "Time from the end of a request's head to the end of the answer, by route."
    taken = HistogramMetricFamily("health_assets_http_request_duration_seconds", text, labels=["route"])
    for route, latencies in requests.latencies.items():
        bounds = [*map(floatToGoString, BUCKETS_S), "+Inf"]
        up_to = list(zip(bounds, accumulate(latencies.counts), strict=True))
        taken.add_metric([route], up_to, latencies.sum_s)
    yield from (answered, taken)
