"""Silences in the warehouse: adding, ending and listing them, and what they make of incidents there.

What belongs here: the table `alert_silences`, and `Silences`, which is for commands and pages. What does not: when a
silence covers an incident (`silences`) and what that does to it (`muting`).

Who adds or ends a silence settles at once what it covers, in the same transaction; what begins or expires by itself is
settled by the next tick.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from health_assets.apps.alerts.alert_rows import append_rows, correct_rows
from health_assets.apps.alerts.muting import Muted, silence_changes
from health_assets.apps.alerts.outbox import (
    SILENCES,
    keep_silenced,
    mark_never_sent,
    open_incidents,
    waiting_notices,
)
from health_assets.apps.alerts.silences import LISTED_FOR, Silence, SilenceWanted, new_silence, remarks_on, silences_of
from health_assets.core.errors import RefusedError
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.terminal import printable
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse


def all_silences(session: Session) -> list[Silence]:
    """Every silence that there is or was, those that are over last first."""
    table = session.table(SILENCES)
    return silences_of(session.dicts(table.mutate(agents=table.agents.cast(str), rules=table.rules.cast(str))))


def active_silences(session: Session, now: datetime) -> list[Silence]:
    """The silences in force."""
    return [silence for silence in all_silences(session) if silence.state(now) == "active"]


# -- as a tick does it -------------------------------------------------------------------------------------------------


def diff_file_silences(session: Session, wanted: Sequence[SilenceWanted], now: datetime) -> tuple[list, list]:
    """The silences of the alerts file that are to be added, and those that have another end than is kept."""
    kept = {silence.silence_id: silence for silence in all_silences(session) if silence.is_of_file}
    there = {silence.silence_id: silence for silence in (one.silence_of_file(now) for one in wanted)}
    added = [one for name, one in there.items() if name not in kept and not one.is_over(now)]
    again = [replace(one, ended_at=None) for name, one in kept.items() if name in there and one.ended_at is not None]
    gone = [replace(one, ended_at=now) for name, one in kept.items() if name not in there and not one.is_over(now)]
    return added, [*again, *gone]


def sync_file_silences(session: Session, wanted: Sequence[SilenceWanted], now: datetime) -> None:
    """Keep the silences of the alerts file, and end those that were taken out of it."""
    added, changed = diff_file_silences(session, wanted, now)
    append_rows(session, SILENCES, [_row(silence) for silence in added])
    for silence in changed:
        _keep_end(session, silence)


def pending_silence_changes(session: Session, now: datetime) -> Muted:
    """The incidents and notices that the silences of now change."""
    active = active_silences(session, now)
    waiting = waiting_notices(session, of_silenced=not active)
    incidents = {incident.incident_id: incident for incident in open_incidents(session).values()}
    incidents |= {notice.incident.incident_id: notice.incident for notice in waiting}
    return silence_changes(incidents.values(), waiting, active, now)


def apply_silences(session: Session, now: datetime) -> Muted:
    """Silence what is silenced now, and let the rest be sent again."""
    changes = pending_silence_changes(session, now)
    keep_silenced(session, changes.incidents)
    mark_never_sent(session, changes.never_sent)
    return changes


# -- as somebody asks for it -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Preview:
    """A silence before it is added.

    Args:
        silence: the silence.
        remarks: sentences about it: the agents that it matches, and warnings.
        is_of_every_agent: whether it covers every rule of every agent that is known, so that somebody should ask again.
    """

    silence: Silence
    remarks: tuple[str, ...]
    is_of_every_agent: bool


class Silences:
    """The silences of a warehouse, for commands and pages.

    Args:
        warehouse: the warehouse; it is opened for each call, and for writing where something changes.
    """

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse

    def preview(self, **wanted: Any) -> Preview:
        """Look at a silence before adding it; takes what `add` takes.

        Raises:
            HealthAssetsError: it cannot be, or the warehouse cannot be opened.
        """
        silence = new_silence(**wanted)
        with self._warehouse.read() as session:
            agents = _known_agents(session, silence.added_at)
            others = all_silences(session)
        remarks = tuple(remarks_on(silence, others, agents))
        return Preview(silence=silence, remarks=remarks, is_of_every_agent=silence.is_of_every_agent(agents))

    def add(self, **wanted: Any) -> Silence:
        """Add a silence, or with a start that is to come a maintenance window.

        Args:
            wanted: `agents` and `rules` (lists; at least one of them), `until` and `start` (a moment, or how long from
                now, like `3d`; without a start it begins at once), `reason`, `by`, and `now`, the time, where it is not
                the clock's.

        Returns:
            The silence, with the id by which it is ended.

        Raises:
            RefusedError: it cannot be.
            HealthAssetsError: the warehouse cannot be opened.
        """
        silence = new_silence(**wanted)
        with self._warehouse.write() as session:
            append_rows(session, SILENCES, [_row(silence)])
            apply_silences(session, silence.added_at)
        return silence

    def end(self, silence_id: str, now: datetime | None = None) -> Silence:
        """End a silence: what it covered and is still open is told by the next tick.

        Args:
            silence_id: its id.
            now: the time, where it is not the clock's.

        Raises:
            RefusedError: there is none of that id, it is over, or it stands in the alerts file.
            HealthAssetsError: the warehouse cannot be opened.
        """
        now = now or datetime.now(UTC)
        with self._warehouse.write() as session:
            found = next((one for one in all_silences(session) if one.silence_id == silence_id), None)
            shown = printable(silence_id, 20)
            if found is None:
                raise RefusedError(f"there is no silence {shown}; `health-assets alerts silences` lists them")
            if found.is_over(now):
                raise RefusedError(f"the silence {shown} is over since {found.over_at:%Y-%m-%d %H:%M} UTC")
            if found.is_of_file:
                raise RefusedError(f"the silence {shown} stands in the alerts file; take it out there")
            ended = replace(found, ended_at=now)
            _keep_end(session, ended)
            apply_silences(session, now)
        return ended

    def active(self, now: datetime | None = None) -> list[Silence]:
        """The silences in force.

        Args:
            now: the time, where it is not the clock's.

        Raises:
            HealthAssetsError: the warehouse cannot be opened.
        """
        now = now or datetime.now(UTC)
        return [silence for silence in self.listed(now) if silence.state(now) == "active"]

    def listed(self, now: datetime | None = None, over_for: timedelta = LISTED_FOR) -> list[Silence]:
        """The silences in force, those to come, and those that are over only lately.

        Args:
            now: the time, where it is not the clock's.
            over_for: how long a silence remains listed when it is over.

        Raises:
            HealthAssetsError: the warehouse cannot be opened.
        """
        now = now or datetime.now(UTC)
        with self._warehouse.read() as session:
            found = all_silences(session)
        return [silence for silence in found if silence.is_listed(now, over_for)]


def _known_agents(session: Session, now: datetime) -> list[str]:
    """Ids of the agents of the newest hour that has scores."""
    newest = PartitionStates(session).newest("agent_health", now + HOUR)  # the running one, too
    if newest is None:
        return []
    rows = session.hours_of("agent_health", HourRange.of(newest)).select("agent_id").order_by("agent_id")
    return [row["agent_id"] for row in session.dicts(rows)]


def _row(silence: Silence) -> dict[str, Any]:
    lists = {name: json.dumps(getattr(silence, name), ensure_ascii=False) for name in ("agents", "rules")}
    return asdict(silence) | lists


def _keep_end(session: Session, silence: Silence) -> None:
    names = ("hour", "silence_id", "ended_at")
    row = {name: getattr(silence, name) for name in names}
    correct_rows(session, SILENCES, [row], ("hour", "silence_id"))
