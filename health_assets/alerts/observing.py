"""Reading from the warehouse what an hour shows of everything that a rule in force looks at."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import ibis
import pyarrow as pa

from health_assets.alerts.incidents import Subject
from health_assets.alerts.rules import STATES, AgentRule, Floor, Rule, drop_of
from health_assets.alerts.seen import AgentSeen, ExpectationSeen, HourSeen, ModelSeen, Seen
from health_assets.hours import HourRange
from health_assets.scoring.alert_context import CONTEXT_HOURS, agents_worth_a_look
from health_assets.targets import Targets
from health_assets.warehouse.store import Session

HOURS = "hours"
"""The subject of what is about the hours themselves."""


@dataclass(frozen=True)
class View:
    """What an hour is looked at with.

    Args:
        session: a session.
        hour: the hour.
        rules: the rules in force.
        open_subjects: what there are open incidents of.
        targets: who is personal.
        window_hours: length of the evaluation window.
    """

    session: Session
    hour: datetime
    rules: Sequence[Rule]
    open_subjects: Collection[Subject]
    targets: Targets
    window_hours: int

    def watched(self, kind: str) -> list[str]:
        """Ids of the subjects of a kind with an open incident."""
        return sorted({subject_id for _, own_kind, subject_id in self.open_subjects if own_kind == kind})


def observe(view: View, *, is_there: bool) -> list[Seen]:
    """What the hour shows; of one that was left out, that alone and its expectations."""
    wanted = {kind for rule in view.rules for kind in rule.looks_at}
    seen: list[Seen] = [HourSeen(view.hour, HOURS, is_there=is_there)] if HourSeen in wanted else []
    for kind, read in OBSERVERS.items():
        if kind in wanted:
            seen += read(view)
    return seen


def _agents(view: View) -> Iterable[Seen]:
    drop, floors = drop_of(view.rules), [rule.below for rule in view.rules if isinstance(rule, Floor)]
    drop_hours = drop.within_hours if drop else 1
    least = min((rule.least_executions for rule in view.rules if isinstance(rule, AgentRule)), default=1)
    span = HourRange.of(view.hour).extended_back(max(CONTEXT_HOURS, drop_hours))
    rows = agents_worth_a_look(
        view.session.hours_of("agent_health", span),
        _ids(view.watched("agent")),
        view.hour,
        window_hours=view.window_hours,
        drop_hours=drop_hours,
        drop_points=drop.points if drop else 100.0,
        floor=max(floors, default=0.0),
        least_executions=least,
    )
    found = view.session.arrow(rows).to_pylist()
    evidence = _evidence(view, [row["agent_id"] for row in found])
    for row in found:
        place = row["best_state_before"]
        yield AgentSeen(
            view.hour,
            row["agent_id"],
            row,
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


def _models(view: View) -> Iterable[Seen]:
    found = view.session.query(
        "SELECT model, health_score, is_degraded, degraded_threshold, success_count + failure_count, "
        "last_call_at FROM model_health WHERE hour = ? ORDER BY model",
        [view.hour],
    )
    for model, score, is_degraded, threshold, calls, last_call_at in found:
        yield ModelSeen(view.hour, model, score, is_degraded, threshold, calls, was_called=last_call_at >= view.hour)


def _expectations(view: View) -> Iterable[Seen]:
    found = view.session.query(
        "SELECT asset, expectation, success, element_count, unexpected_count, severity "
        "FROM expectation_results WHERE hour = ? ORDER BY asset, expectation",
        [view.hour],
    )
    watched = set(view.watched("expectation"))
    for asset, expectation, success, elements, unexpected, severity in found:
        name = f"{asset}.{expectation}"
        if not success or name in watched:
            yield ExpectationSeen(view.hour, name, success, elements, unexpected, severity)


OBSERVERS: dict[type[Seen], Callable[[View], Iterable[Seen]]] = {
    AgentSeen: _agents,
    ModelSeen: _models,
    ExpectationSeen: _expectations,
}
"""How each kind of subject is read."""
