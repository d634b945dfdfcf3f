"""Reading from the warehouse what an hour shows of everything that a rule in force looks at."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import ibis
import pyarrow as pa

from health_assets.apps.alerts.context import CONTEXT_HOURS, agents_worth_a_look
from health_assets.apps.alerts.incidents import Subject
from health_assets.apps.alerts.rules import STATES, Floor, Rule, StateWorsened, burn_of, drop_of
from health_assets.apps.alerts.seen import AgentSeen, BudgetSeen, ExpectationSeen, HourSeen, ModelSeen, Seen
from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.warehouse.materialized import MaterializedHours
from health_assets.warehouse.session import Session

HOURS = "hours"
"""The subject of what is about the hours themselves."""

KNOWN_BY = {
    "agent": ("agent_health", "agent_id", "is not known any more: it did nothing in the whole look-back"),
    "model": ("model_health", "model", "is not known any more: nobody called it in the whole look-back"),
}
"""Kinds of subjects that have a row in every hour for as long as they are known: in which table, by which column."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Everything that an observer of an hour needs.

    Args:
        session: a session.
        hour: the hour.
        rules: the rules in force.
        open_subjects: subjects with open incidents.
        targets: the personal agents.
        window_hours: length of the evaluation window.
    """

    session: Session
    hour: datetime
    rules: Sequence[Rule]
    open_subjects: Collection[Subject]
    targets: Targets
    window_hours: int

    def gone(self) -> dict[tuple[str, str], str]:
        """Watched subjects that nobody looks at any more, by kind and id, with the reason."""
        gone: dict[tuple[str, str], str] = {}
        for kind, (table, column, why) in KNOWN_BY.items():
            watched = self.watched(kind)
            if watched and MaterializedHours(self.session).of(table, HourRange.of(self.hour)):
                rows = self.session.hours_of(table, HourRange.of(self.hour))
                known = rows.semi_join(_ids(watched).rename({column: "agent_id"}), column).select(column)
                there = set(self.session.arrow(known)[column].to_pylist())
                gone |= {(kind, name): f"{name} {why}" for name in watched if name not in there}
        retired = [name for name in self.watched("agent") if self.targets.of(name).retired]
        return gone | {("agent", name): f"{name} is retired" for name in retired}

    def watched(self, kind: str) -> list[str]:
        """Ids of the subjects of a kind with an open incident."""
        return sorted({subject_id for _, own_kind, subject_id in self.open_subjects if own_kind == kind})


def observe(view: View, *, is_there: bool) -> list[Seen]:
    """The facts of an hour. An hour that was left out has only that fact and its expectations."""
    wanted = {kind for rule in view.rules for kind in rule.looks_at}
    seen: list[Seen] = [HourSeen(view.hour, HOURS, is_there=is_there)] if HourSeen in wanted else []
    for kind, read in OBSERVERS.items():
        if kind in wanted:
            seen += read(view)
    return seen


def _agents(view: View) -> Iterable[Seen]:
    drop, floors = drop_of(view.rules), [rule.below for rule in view.rules if isinstance(rule, Floor)]
    drop_hours = drop.within_hours if drop else 1
    worsened = next((rule for rule in view.rules if isinstance(rule, StateWorsened)), None)
    span = HourRange.of(view.hour).extended_back(max(CONTEXT_HOURS, drop_hours))
    rows = agents_worth_a_look(
        view.session.hours_of("agent_health", span),
        _ids(view.watched("agent")),
        view.hour,
        window_hours=view.window_hours,
        drop_hours=drop_hours,
        drop_points=drop.points if drop else 100.0,
        floor=max(floors, default=0.0),
        least_of_drop=drop.least_executions if drop else 1,
        least_of_state=worsened.least_executions if worsened else 1,
    )
    found = view.session.arrow(rows).to_pylist()
    evidence = _evidence(view, [row["agent_id"] for row in found])
    for row in found:
        place = row["best_state_before"]
        yield AgentSeen(
            hour=view.hour,
            subject_id=row["agent_id"],
            row=row,
            is_covered=row["is_covered"],
            best_state_before=None if place is None else STATES[place],
            peak_before=row["peak_before"],
            was_active_before=row["was_active_before"],
            is_somebodys_own=view.targets.of(row["agent_id"]).personal,
            event_ids=evidence.get(row["agent_id"], {}),
        )


def _evidence(view: View, agents: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Ids of the events that weigh most, by agent and kind."""
    rows = view.session.hours_of("score_evidence", HourRange.of(view.hour)).semi_join(_ids(agents), "agent_id")
    evidence: dict[str, dict[str, list[str]]] = {}
    for row in view.session.arrow(rows.order_by("agent_id", "kind", "rank")).to_pylist():
        evidence.setdefault(row["agent_id"], {}).setdefault(row["kind"], []).append(row["event_id"])
    return evidence


def _ids(names: Sequence[str]) -> ibis.Table:
    return ibis.memtable(pa.table({"agent_id": pa.array(names, pa.string())}))


def _budgets(view: View) -> Iterable[Seen]:
    """Budgets that are spent fast enough for an incident, and those of agents with an open one."""
    rule = burn_of(view.rules)
    if rule is None:
        return
    own = view.session.hours_of("error_budget", HourRange.of(view.hour))
    watched = _ids(view.watched("agent"))
    is_fast = (own.burn_rate_1h > rule.rate) & (own.burn_rate_6h > rule.rate)
    rows = own.filter(is_fast | own.agent_id.isin(watched.agent_id))
    found = view.session.arrow(rows.order_by("agent_id")).to_pylist()
    evidence = _evidence(view, [row["agent_id"] for row in found])
    for row in found:
        yield BudgetSeen(
            hour=view.hour,
            subject_id=row["agent_id"],
            row=row,
            is_covered=row["hours_covered"] >= view.window_hours,
            is_somebodys_own=view.targets.of(row["agent_id"]).personal,
            event_ids=evidence.get(row["agent_id"], {}),
        )


def _models(view: View) -> Iterable[Seen]:
    rows = view.session.hours_of("model_health", HourRange.of(view.hour)).order_by("model")
    calls = rows.success_count + rows.failure_count
    named = ("model", "health_score", "is_degraded", "degraded_threshold", "last_call_at")
    for row in view.session.dicts(rows.select(*named, calls=calls)):
        yield ModelSeen(
            hour=view.hour,
            subject_id=row["model"],
            score=row["health_score"],
            is_degraded=row["is_degraded"],
            threshold=row["degraded_threshold"],
            calls=row["calls"],
            was_called=row["last_call_at"] >= view.hour,
        )


def _expectations(view: View) -> Iterable[Seen]:
    results = view.session.hours_of("expectation_results", HourRange.of(view.hour)).order_by("asset", "expectation")
    watched = set(view.watched("expectation"))
    for row in view.session.dicts(results):
        name = f"{row['asset']}.{row['expectation']}"
        if not row["success"] or name in watched:
            yield ExpectationSeen(
                hour=view.hour,
                subject_id=name,
                success=row["success"],
                element_count=row["element_count"],
                unexpected_count=row["unexpected_count"],
                severity=row["severity"],
            )


OBSERVERS: dict[type[Seen], Callable[[View], Iterable[Seen]]] = {
    AgentSeen: _agents,
    BudgetSeen: _budgets,
    ModelSeen: _models,
    ExpectationSeen: _expectations,
}
"""How each kind of subject is read."""
