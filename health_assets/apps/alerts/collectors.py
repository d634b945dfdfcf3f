"""Reading from the warehouse what an hour shows of everything that a rule in force looks at."""

from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_

from health_assets.apps.alerts.budget_rules import BudgetRule
from health_assets.apps.alerts.context import CONTEXT_HOURS, agents_worth_a_look
from health_assets.apps.alerts.drift_collectors import facts_of_drifts
from health_assets.apps.alerts.drift_facts import DriftFact
from health_assets.apps.alerts.facts import (
    AgentFact,
    BudgetFact,
    ExpectationFact,
    Fact,
    HourFact,
    MinimumSample,
    ModelFact,
)
from health_assets.apps.alerts.failures import failures_of
from health_assets.apps.alerts.observed_hour import HOURS, ObservedHour, heaviest_events, ids_table
from health_assets.apps.alerts.release_collectors import facts_of_releases
from health_assets.apps.alerts.release_facts import ReleaseFact
from health_assets.apps.alerts.rules import STATES, Floor, StateWorsened, drop_of
from health_assets.apps.alerts.state_collectors import facts_of_probes, facts_of_statuses, facts_of_verdicts
from health_assets.apps.alerts.state_facts import NowFact, ProbeFact, StatusFact
from health_assets.core.hours import HOUR, HourRange


def observe(observed: ObservedHour, *, is_there: bool) -> list[Fact]:
    """The facts of an hour. An hour that was left out has only that fact and its expectations."""
    wanted = {kind for rule in observed.rules for kind in rule.looks_at}
    facts: list[Fact] = [HourFact(observed.hour, HOURS, is_there=is_there)] if HourFact in wanted else []
    return facts + facts_of(observed, COLLECTORS)


def facts_of(observed: ObservedHour, kinds: Iterable[type[Fact]]) -> list[Fact]:
    """Those of some kinds of facts of an hour that a rule looks at."""
    wanted = {kind for rule in observed.rules for kind in rule.looks_at}
    return [fact for kind in kinds if kind in wanted for fact in COLLECTORS[kind](observed)]


def _agents(observed: ObservedHour) -> Iterable[Fact]:
    drop, floors = drop_of(observed.rules), [rule.below for rule in observed.rules if isinstance(rule, Floor)]
    drop_hours = drop.within_hours if drop else 1
    worsened = next((rule for rule in observed.rules if isinstance(rule, StateWorsened)), None)
    span = HourRange.of(observed.hour).extended_back(max(CONTEXT_HOURS, drop_hours))
    rows = agents_worth_a_look(
        observed.session.hours_of("agent_health", span),
        ids_table(observed.watched("agent")),
        observed.hour,
        window_hours=observed.window_hours,
        drop_hours=drop_hours,
        drop_points=drop.points if drop else 100.0,
        floor=max(floors, default=0.0),
        least_of_drop=drop.least if drop else MinimumSample(),
        least_of_state=worsened.least if worsened else MinimumSample(),
    )
    found = observed.session.arrow(rows).to_pylist()
    names = [row["agent_id"] for row in found]
    evidence, failures = heaviest_events(observed, names), failures_of(observed, names)
    for row in found:
        place = row["best_state_before"]
        yield AgentFact(
            hour=observed.hour,
            subject_id=row["agent_id"],
            row=row,
            is_covered=row["is_covered"],
            best_state_before=None if place is None else STATES[place],
            peak_before=row["peak_before"],
            was_active_before=row["was_active_before"],
            is_personal=observed.targets.of(row["agent_id"]).personal,
            event_ids=evidence.get(row["agent_id"], {}),
            failures=failures.get(row["agent_id"], {}),
        )


def _budgets(observed: ObservedHour) -> Iterable[Fact]:
    """Budgets that are spent fast enough for an incident, and those of agents with an open one."""
    own = observed.session.hours_of("error_budget", HourRange.of(observed.hour))
    watched = ids_table(observed.watched("agent"))
    is_of_interest = own.agent_id.isin(watched.agent_id)
    for rule in observed.rules:
        if isinstance(rule, BudgetRule):
            is_still_fast = reduce(or_, (own[short.rate] > rule.rate for short in rule.shorts))
            is_of_interest |= (own[rule.long.rate] > rule.rate) & is_still_fast
    found = observed.session.arrow(own.filter(is_of_interest).order_by("agent_id")).to_pylist()
    names = [row["agent_id"] for row in found]
    evidence, failures = heaviest_events(observed, names), failures_of(observed, names)
    for row in found:
        yield BudgetFact(
            hour=observed.hour,
            subject_id=row["agent_id"],
            row=row,
            is_covered=row["hours_covered"] >= observed.window_hours,
            is_personal=observed.targets.of(row["agent_id"]).personal,
            event_ids=evidence.get(row["agent_id"], {}),
            failures=failures.get(row["agent_id"], {}),
        )


def _models(observed: ObservedHour) -> Iterable[Fact]:
    rows = observed.session.hours_of("model_health", HourRange.of(observed.hour)).order_by("model")
    calls = rows.success_count + rows.failure_count
    named = ("model", "health_score", "is_degraded", "degraded_threshold", "last_call_at")
    for row in observed.session.dicts(rows.select(*named, calls=calls)):
        yield ModelFact(
            hour=observed.hour,
            subject_id=row["model"],
            score=row["health_score"],
            is_degraded=row["is_degraded"],
            threshold=row["degraded_threshold"],
            calls=row["calls"],
            was_called=row["last_call_at"] >= observed.hour,
            idle_hours=(observed.hour + HOUR - row["last_call_at"]) / HOUR,
        )


def _expectations(observed: ObservedHour) -> Iterable[Fact]:
    results = observed.session.hours_of("expectation_results", HourRange.of(observed.hour)).order_by(
        "asset", "expectation"
    )
    watched = set(observed.watched("expectation"))
    missing = set(watched)
    for row in observed.session.dicts(results):
        name = f"{row['asset']}.{row['expectation']}"
        missing.discard(name)
        if not row["success"] or name in watched:
            yield ExpectationFact(
                hour=observed.hour,
                subject_id=name,
                success=row["success"],
                element_count=row["element_count"],
                unexpected_count=row["unexpected_count"],
                severity=row["severity"],
            )
    for name in sorted(missing):  # that are evaluated no more
        yield ExpectationFact(hour=observed.hour, subject_id=name)


SOURCES: dict[type[Fact], str] = {
    NowFact: "agent_now",
    AgentFact: "agent_health",
    BudgetFact: "error_budget",
    StatusFact: "agent_health_state",
    ReleaseFact: "release_comparison",
    DriftFact: "drift",
    ModelFact: "model_health",
}
"""The asset that a kind of facts is read from; some are read from no asset of logs."""
COLLECTORS: dict[type[Fact], Callable[[ObservedHour], Iterable[Fact]]] = {
    NowFact: facts_of_verdicts,
    AgentFact: _agents,
    BudgetFact: _budgets,
    StatusFact: facts_of_statuses,
    ProbeFact: facts_of_probes,
    ReleaseFact: facts_of_releases,
    DriftFact: facts_of_drifts,
    ModelFact: _models,
    ExpectationFact: _expectations,
}
"""How each kind of subject is read."""
