"""Hours before a run that keep the targets that they were made with, where the targets are others now."""

from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from health_assets.core.formatting import counted
from health_assets.core.hours import EVER, HourRange
from health_assets.core.targets import AgentTargets, Targets
from health_assets.schema.catalog import columns_of
from health_assets.scoring.target_columns import with_targets
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session

TABLE = "agent_health"


@dataclass(frozen=True, kw_only=True)
class OlderTargets:
    """Hours whose scores were made with other targets.

    Args:
        first: the first of the hours that have scores.
        end: the end of the last of them.
        agents: agents of the last hour whose targets are others now.
        agent_id: the first of these agents.
        target: a target of it that has changed.
        used: its value then.
        current: its value now.
    """

    first: datetime
    end: datetime
    agents: int
    agent_id: str
    target: str
    used: float | None
    current: float | None

    def __str__(self) -> str:
        more = f", and {counted(self.agents - 1, 'more agent')}" if self.agents > 1 else ""
        return (
            f"hours before {self.end:%Y-%m-%dT%H} keep the targets that they were made with ({self.agent_id}: "
            f"{self.target} {_shown(self.used)}, now {_shown(self.current)}{more}); "
            f"--from {self.first:%Y-%m-%dT%H} applies the new ones to them, too"
        )


def older_targets(session: Session, before: datetime, targets: Targets) -> OlderTargets | None:
    """Compare the targets of the last hour before a run with those of now; None where they are the same.

    Args:
        session: a session.
        before: the first hour of the run.
        targets: the targets of the run.
    """
    latest = session.latest_hour(TABLE, HourRange(EVER.start, before))
    if latest is None:
        return None
    names = [name for name in AgentTargets.model_fields if name in columns_of(TABLE)]
    rows = session.hours_of(TABLE, HourRange.of(latest)).select("agent_id", *names)
    found = with_targets(rows, targets, names)
    differs = [~found[name].identical_to(found[f"target_{name}"]) for name in names]
    changed = found.filter(reduce(or_, differs))
    agents = session.count(changed)
    if not agents:
        return None
    [row] = session.dicts(changed.order_by("agent_id").limit(1))
    values = {name: (_as_float(row[name]), _as_float(row[f"target_{name}"])) for name in names}
    target = next(name for name, (used, current) in values.items() if used != current)
    return OlderTargets(
        first=PartitionStates(session).first(TABLE) or latest,
        end=before,
        agents=agents,
        agent_id=row["agent_id"],
        target=target,
        used=values[target][0],
        current=values[target][1],
    )


def _as_float(value: Any) -> float | None:
    """An engine's number, which may be a decimal."""
    return None if value is None else float(value)


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
