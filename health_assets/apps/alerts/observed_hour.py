"""An hour of the warehouse, as observers look at it, and what several of them read."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import ibis
import pyarrow as pa

from health_assets.apps.alerts.incidents import Subject
from health_assets.apps.alerts.rule import Rule
from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session

HOURS = "hours"
"""The subject of what is about the hours themselves."""

KNOWN_BY = {
    "agent": ("agent_health", "agent_id", "is not known any more: it did nothing in the whole look-back"),
    "model": ("model_health", "model", "is not known any more: nobody called it in the whole look-back"),
}
"""Kinds of subjects that have a row in every hour for as long as they are known: in which table, by which column."""


@dataclass(frozen=True, kw_only=True)
class ObservedHour:
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
            if watched and PartitionStates(self.session).of(table, HourRange.of(self.hour)):
                rows = self.session.hours_of(table, HourRange.of(self.hour))
                known = rows.semi_join(ids_table(watched).rename({column: "agent_id"}), column).select(column)
                there = set(self.session.arrow(known)[column].to_pylist())
                gone |= {(kind, name): f"{name} {why}" for name in watched if name not in there}
        retired = [name for name in self.watched("agent") if self.targets.of(name).retired]
        return gone | {("agent", name): f"{name} is retired" for name in retired}

    def watched(self, kind: str) -> list[str]:
        """Ids of the subjects of a kind with an open incident."""
        return sorted({subject_id for _, own_kind, subject_id in self.open_subjects if own_kind == kind})


def heaviest_events(observed: ObservedHour, agents: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Ids of the events that weigh most, by agent and kind."""
    rows = observed.session.hours_of("score_evidence", HourRange.of(observed.hour)).semi_join(
        ids_table(agents), "agent_id"
    )
    evidence: dict[str, dict[str, list[str]]] = {}
    for row in observed.session.arrow(rows.order_by("agent_id", "kind", "rank")).to_pylist():
        evidence.setdefault(row["agent_id"], {}).setdefault(row["kind"], []).append(row["event_id"])
    return evidence


def ids_table(names: Sequence[str]) -> ibis.Table:
    """A table of ids of agents."""
    return ibis.memtable(pa.table({"agent_id": pa.array(names, pa.string())}))
