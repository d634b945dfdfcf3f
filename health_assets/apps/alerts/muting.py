"""Muting: the effect of silences on incidents and on notices that wait. Pure: no clock, no warehouse.

Notices are written in any case, and those of a muted incident wait. When the silence is over, they are sent if the
incident is still open or its opening was sent before. An incident that opened and closed during the silence is never
sent. So a notice is sent once or never, whatever happens to silences and processes.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from health_assets.apps.alerts.incidents import Incident
from health_assets.apps.alerts.outbox import OPENED, Notice
from health_assets.apps.alerts.silences import Silence, longest_covering


@dataclass(frozen=True)
class Muted:
    """The incidents and notices that silences change.

    Args:
        incidents: incidents that are muted now, by another silence, or no longer.
        never_sent: notices that are dropped, with the silence that stopped them.
    """

    incidents: tuple[Incident, ...] = ()
    never_sent: tuple[tuple[Notice, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.incidents or self.never_sent)


def silence_changes(
    incidents: Iterable[Incident], waiting: Sequence[Notice], active: Sequence[Silence], now: datetime
) -> Muted:
    """The changes that the silences of a moment make.

    Args:
        incidents: the incidents that are open, or of which a notice waits.
        waiting: the notices that no channel has taken, of these incidents.
        active: the silences in force.
        now: the time.
    """
    waiting_of: dict[str, list[Notice]] = defaultdict(list)
    for notice in waiting:
        waiting_of[notice.about_id].append(notice)
    changed: list[Incident] = []
    never_sent: list[tuple[Notice, str]] = []
    for incident in incidents:
        silence = longest_covering(active, incident)
        by = silence.silence_id if silence else incident.silenced_by if incident.is_silenced else None
        if by is None:
            continue
        own = waiting_of[incident.incident_id]
        dropped = _to_channels_without_opening(own) if incident.closed_at is not None else []
        never_sent += [(notice, by) for notice in dropped]
        after = replace(incident, silenced_by=by, unsilenced_at=None)
        if silence is None and (incident.closed_at is None or len(dropped) < len(own)):
            after = replace(incident, unsilenced_at=now)
        if after != incident:
            changed.append(after)
    return Muted(tuple(changed), tuple(never_sent))


def _to_channels_without_opening(waiting: Sequence[Notice]) -> list[Notice]:
    """The notices of an incident to channels that were not sent its opening."""
    channels = {notice.channel for notice in waiting if notice.event == OPENED}
    return [notice for notice in waiting if notice.channel in channels]
