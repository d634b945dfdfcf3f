"""Reading what an hour shows of verdicts on the last hours, and of the statuses of health documents."""

from collections.abc import Iterable, Mapping
from typing import Any

import ibis
from ibis import ir

from health_assets.apps.alerts.context import CONTEXT_HOURS
from health_assets.apps.alerts.facts import Fact
from health_assets.apps.alerts.failures import failures_of
from health_assets.apps.alerts.observed_hour import ObservedHour, ids_table
from health_assets.apps.alerts.state_facts import NowFact, ProbeFact, StatusFact
from health_assets.apps.alerts.status_rules import STATUSES
from health_assets.core.hours import HourRange
from health_assets.scoring.latency_buckets import bucket_of_us
from health_assets.scoring.relations import lookup
from health_assets.systems.agent_health_state.agent_health_state import is_slow
from health_assets.systems.agent_now.names import FAILING, SUSPECT


def facts_of_verdicts(observed: ObservedHour) -> Iterable[Fact]:
    """Verdicts that are bad, and those on agents with an open incident, with their history."""
    own = observed.session.hours_of("agent_now", HourRange.of(observed.hour))
    watched = observed.watched("agent")
    rows = own.filter(own.verdict.isin([FAILING, SUSPECT]) | own.agent_id.isin(ids_table(watched).agent_id))
    found = observed.session.arrow(rows.order_by("agent_id")).to_pylist()
    history = _history(observed, watched)
    failures = failures_of(observed, [row["agent_id"] for row in found if row["verdict"] in (FAILING, SUSPECT)])
    for row in found:
        yield NowFact(
            hour=observed.hour,
            subject_id=row["agent_id"],
            row=row,
            history=history.get(row["agent_id"], ()),
            is_personal=observed.targets.of(row["agent_id"]).personal,
            failures=failures.get(row["agent_id"], {}),
        )


def _history(observed: ObservedHour, agents: list[str]) -> dict[str, list[Mapping[str, Any]]]:
    """Verdicts and counts of the hour and the day before, by agent."""
    if not agents:
        return {}
    rows = observed.session.hours_of("agent_now", HourRange.of(observed.hour).extended_back(CONTEXT_HOURS))
    own = rows.semi_join(ids_table(agents), "agent_id").order_by("agent_id", "hour")
    history: dict[str, list[Mapping[str, Any]]] = {}
    for row in observed.session.dicts(own.select("agent_id", "hour", "verdict", "executions_1h", "failures_1h")):
        history.setdefault(row["agent_id"], []).append(row)
    return history


def facts_of_statuses(observed: ObservedHour) -> Iterable[Fact]:
    """Documents that are not healthy, and those of agents with an open incident."""
    rows = observed.session.hours_of("agent_health_state", _context(observed))
    watched = ids_table(observed.watched("agent"))
    found = _with_known_before(rows, observed, "agent_id")
    found = found.filter(found.status.isin(STATUSES[1:]) | found.agent_id.isin(watched.agent_id))
    p99_bucket = bucket_of_us(found.latency_p99_ms * 1e3)
    told = found.mutate(is_slow=is_slow(p99_bucket, found.baseline_latency_ms).fill_null(False))
    rows_found = observed.session.arrow(told.order_by("agent_id")).to_pylist()
    failures = failures_of(observed, [row["agent_id"] for row in rows_found])
    for row in rows_found:
        yield StatusFact(
            hour=observed.hour,
            subject_id=row["agent_id"],
            row=row,
            status=row["status"],
            best_status_before=_status_at(row["best_place"]),
            last_known_in=row["last_known_in"],
            is_personal=observed.targets.of(row["agent_id"]).personal,
            failures=failures.get(row["agent_id"], {}),
        )


def facts_of_probes(observed: ObservedHour) -> Iterable[Fact]:
    """Documents that surveyed agents answered with, where they are not healthy, and of those with an open incident."""
    rows = observed.session.hours_of("agent_probes", _context(observed))
    found = _with_known_before(rows, observed, "url")
    watched = set(observed.watched("probe"))
    of_interest = found.filter(found.status.isin(STATUSES[1:]) | found.url.isin(sorted(watched)))
    names = ("url", "name", "status", "best_place", "last_known_in")
    for row in observed.session.dicts(of_interest.order_by("url").select(*names)):
        watched.discard(row["url"])
        yield ProbeFact(
            hour=observed.hour,
            subject_id=row["url"],
            row=row,
            status=row["status"],
            best_status_before=_status_at(row["best_place"]),
            last_known_in=row["last_known_in"],
            is_personal=observed.targets.of(row["name"]).personal,
        )
    yield from _not_asked(rows, observed, sorted(watched))


def _not_asked(rows: ir.Table, observed: ObservedHour, urls: list[str]) -> Iterable[Fact]:
    """Surveyed agents that nobody asked in the hour."""
    before = _known_before(rows.filter(rows.url.isin(urls)), observed, "url")
    known_in = {row["url"]: row["last_known_in"] for row in observed.session.dicts(before)} if urls else {}
    for url in urls:
        yield ProbeFact(hour=observed.hour, subject_id=url, last_known_in=known_in.get(url))


def _status_at(place: int | None) -> str | None:
    return None if place is None else STATUSES[place]


def _context(observed: ObservedHour) -> HourRange:
    return HourRange.of(observed.hour).extended_back(CONTEXT_HOURS)


def _with_known_before(rows: ir.Table, observed: ObservedHour, key: str) -> ir.Table:
    """Rows of the hour, with what was known of the subject before."""
    return lookup(rows.filter(rows.hour == observed.hour), _known_before(rows, observed, key), key)


def _known_before(rows: ir.Table, observed: ObservedHour, key: str) -> ir.Table:
    """By subject, the place in `STATUSES` of its best status before the hour, and the last hour that has one."""
    before = rows.filter(rows.hour < observed.hour)
    place = before.status.cases(*((status, place) for place, status in enumerate(STATUSES)), else_=ibis.null("int8"))
    known = before.mutate(place=place)
    return known.group_by(key).aggregate(
        best_place=known.place.min(), last_known_in=known.hour.max(where=known.place.notnull())
    )
