"""Incidents, the outbox and the judged hours in the warehouse.

Notices are written with the incident, in one transaction, so that none is lost whatever happens afterwards. That an
hour was judged is noted like that of an asset, under `alerts`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Protocol

from ibis import ir

from health_assets.apps.alerts.alert_rows import append_rows, correct_rows
from health_assets.apps.alerts.config import Alerts
from health_assets.apps.alerts.incidents import Incident, Judged, Subject
from health_assets.core.hours import HourRange
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session

ASSET = "alerts"

CHANGING = ("hour", "incident_id", "closed_at", "recovery", "good_hours")
"""What of an incident changes, and what it is known by."""
OUTBOX = "alert_deliveries"
NOTICE = ("hour", "incident_id", "event", "channel")
"""What a row of the outbox is known by."""
OPENED, CLOSED = "opened", "closed"
SILENCES, DIGESTS = "alert_silences", "alert_digests"
LONGEST_WAIT = timedelta(hours=1)
"""Longest wait between two attempts to deliver a message."""


class Waiting(Protocol):
    """A row of the outbox: something that a channel is to be told."""

    @property
    def hour(self) -> datetime:
        """The hour that it is kept with."""

    @property
    def about_id(self) -> str:
        """The incident, or the digest, that it is about."""

    @property
    def event(self) -> str:
        """The event that it tells."""

    @property
    def channel(self) -> str:
        """Name of the channel."""

    @property
    def attempts(self) -> int:
        """Ticks that tried before."""


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A row of the outbox with the incident that it is about.

    Args:
        incident: the incident.
        event: `opened` or `closed`.
        channel: name of the channel.
        attempts: ticks that tried before.
    """

    incident: Incident
    event: str
    channel: str
    attempts: int = 0

    @property
    def key(self) -> str:
        """The same in every message about this event, so that a receiver can drop duplicates."""
        return f"{self.incident.incident_id}-{self.event}"

    @property
    def hour(self) -> datetime:
        """The hour that opened the incident."""
        return self.incident.hour

    @property
    def about_id(self) -> str:
        """The incident."""
        return self.incident.incident_id

    @property
    def told_at(self) -> datetime:
        """The moment at which there was something to tell: as it happened, or when a silence was over."""
        incident = self.incident
        happened_at = (incident.closed_at if self.event == CLOSED else None) or incident.opened_at
        return max(happened_at, incident.unsilenced_at or happened_at)


def open_incidents(session: Session) -> dict[Subject, Incident]:
    """The incidents that are open, by subject."""
    incidents = _incidents(session)
    found = _read(session, incidents.filter(incidents.closed_at.isnull()))
    return {incident.subject: incident for incident in found}


def recent_incidents(session: Session, since: datetime) -> list[Incident]:
    """Incidents that are open or closed after a time, the latest first."""
    incidents = _incidents(session)
    recent = incidents.filter(incidents.closed_at.isnull() | (incidents.closed_at >= since))
    return _read(session, recent.order_by(recent.opened_at.desc(), "severity", "subject_id", "rule"))


def _incidents(session: Session) -> ir.Table:
    incidents = session.table(ASSET)
    return incidents.mutate(evidence=incidents.evidence.cast(str))


def _read(session: Session, incidents: ir.Table) -> list[Incident]:
    return [Incident(**row) for row in session.dicts(incidents)]


def keep(session: Session, judged: Judged, alerts: Alerts, now: datetime) -> Sequence[Incident]:
    """Write what opened and closed, with a notice for every channel that is to tell of it; gives what is new."""
    new = not_kept(session, judged.opened)
    append_rows(session, ASSET, [asdict(incident) for incident in new])
    changes = [{name: getattr(incident, name) for name in CHANGING} for incident in judged.changed]
    correct_rows(session, ASSET, changes, ("hour", "incident_id"))
    notices = [(incident, OPENED, channel) for incident in new for channel in alerts.channels_of(incident.rule)]
    told = _channels_told(session, [*judged.closed, *judged.dropped])
    notices += [(incident, CLOSED, channel) for incident in judged.closed for channel in told[incident.incident_id]]
    # nobody is told of these, but a pager would keep its alert open
    notices += [
        (incident, CLOSED, channel)
        for incident in judged.dropped
        for channel in told[incident.incident_id]
        if channel in alerts.channels and alerts.channels[channel].is_pager
    ]
    append_rows(session, OUTBOX, [_waiting(*one, now) for one in notices])
    return new


def not_kept(session: Session, incidents: Sequence[Incident]) -> list[Incident]:
    """The incidents that are not stored yet; an hour can become late only once."""
    kept: set[str] = set()
    for hour in {incident.hour for incident in incidents}:
        known = session.hours_of(ASSET, HourRange.of(hour)).select("incident_id")
        kept |= {row["incident_id"] for row in session.dicts(known)}
    return [incident for incident in incidents if incident.incident_id not in kept]


def _channels_told(session: Session, incidents: Sequence[Incident]) -> Mapping[str, list[str]]:
    """The channels that told of the opening, by incident: those that did not tell of it need not tell of its end."""
    told: dict[str, list[str]] = {incident.incident_id: [] for incident in incidents}
    for hour in {incident.hour for incident in incidents}:
        notices = session.hours_of(OUTBOX, HourRange.of(hour))
        openings = notices.filter(notices.event == OPENED).order_by("incident_id", "channel")
        for row in session.dicts(openings.select("incident_id", "channel")):
            if row["incident_id"] in told:
                told[row["incident_id"]].append(row["channel"])
    return told


def _waiting(incident: Incident, event: str, channel: str, now: datetime) -> dict[str, Any]:
    return new_row(incident.hour, incident.incident_id, event, channel, now)


def new_row(hour: datetime, about_id: str, event: str, channel: str, now: datetime) -> dict[str, Any]:
    """A row of the outbox that nobody has tried to deliver yet."""
    return {
        "hour": hour,
        "incident_id": about_id,
        "event": event,
        "channel": channel,
        "written_at": now,
        "attempts": 0,
        "next_attempt_at": now,
    }


# -- judged hours ------------------------------------------------------------------------------------------------------


def last_judged(session: Session) -> datetime | None:
    """The newest hour that was judged, not counting what a clock that ran ahead judged; None before the first."""
    return PartitionStates(session).newest(ASSET, made_by=session.now() + LONGEST_WAIT)


def last_judged_at(session: Session) -> datetime | None:
    """The time at which an hour was last judged, likewise; None before the first."""
    return PartitionStates(session).last_made_at(ASSET, made_by=session.now() + LONGEST_WAIT)


def note_judged(session: Session, hour: datetime, *, is_changed: bool) -> None:
    """Write down that an hour was judged, by the clock: `last_judged` leaves out what one that ran ahead judged."""
    PartitionStates(session).note(ASSET, HourRange.of(hour), [hour] if is_changed else [], at=session.now())


# -- the outbox --------------------------------------------------------------------------------------------------------


def is_due(rows: ir.Table, now: datetime) -> ir.BooleanValue:
    """Whether rows of the outbox may be tried: their wait is over, or longer than any, as a clock that ran ahead wrote.

    Args:
        rows: rows of the outbox.
        now: the time.
    """
    return (rows.next_attempt_at <= now) | (rows.next_attempt_at > now + LONGEST_WAIT)


def due_notices(session: Session, channel: str, now: datetime, most: int) -> list[Notice]:
    """Notices that wait for a channel and may be tried, the oldest first; no end of an incident before its opening."""
    waiting = _unsent(session)
    waiting = waiting.filter(waiting.channel == channel)
    due = waiting.filter(is_due(waiting, now))
    openings_to_come = waiting.filter(waiting.event == OPENED, ~is_due(waiting, now))
    is_early = due.incident_id.isin(openings_to_come.incident_id)
    ready = due.filter((due.event == OPENED) | ~is_early)
    incidents = _incidents(session)
    loud = incidents.filter(incidents.silenced_by.isnull() | incidents.unsilenced_at.notnull())
    return _notices(session, ready, loud, most)


def waiting_notices(session: Session, *, of_silenced: bool) -> list[Notice]:
    """Notices that no channel has taken yet, whether or not they may be tried; or only those of silenced incidents."""
    incidents = _incidents(session)
    if of_silenced:
        incidents = incidents.filter(incidents.silenced_by.notnull(), incidents.unsilenced_at.isnull())
    return _notices(session, _unsent(session), incidents, None)


def _unsent(session: Session) -> ir.Table:
    notices = session.table(OUTBOX)
    return notices.filter(notices.delivered_at.isnull(), notices.hushed_by.isnull())


def _notices(session: Session, outbox: ir.Table, incidents: ir.Table, most: int | None) -> list[Notice]:
    notice_of = outbox.select("incident_id", "event", "channel", "attempts", "written_at")
    rows = notice_of.join(incidents, "incident_id")
    first = rows.order_by("written_at", "opened_at", rows.event.desc(), "incident_id").limit(most)
    names = [field.name for field in fields(Incident)]
    return [
        Notice(
            incident=Incident(**{name: row[name] for name in names}),
            event=row["event"],
            channel=row["channel"],
            attempts=row["attempts"],
        )
        for row in session.dicts(first.select("event", "channel", "attempts", *names))
    ]


def count_waiting(session: Session) -> dict[str, tuple[int, str | None]]:
    """By channel, how many messages wait and why the last attempt failed; silenced ones do not count."""
    incidents = session.table(ASSET)
    silenced = incidents.filter(incidents.silenced_by.notnull(), incidents.unsilenced_at.isnull())
    waiting = _unsent(session)
    waiting = waiting.filter(~waiting.incident_id.isin(silenced.incident_id))
    counted = waiting.group_by("channel").aggregate(notices=waiting.count(), last_error=waiting.last_error.max())
    return {row["channel"]: (row["notices"], row["last_error"]) for row in session.dicts(counted.order_by("channel"))}


def mark_delivered(session: Session, notices: Iterable[Waiting], at: datetime) -> None:
    """Note that a channel took them."""
    rows = [_tried(notice) | {"delivered_at": at, "last_error": None} for notice in notices]
    correct_rows(session, OUTBOX, rows, NOTICE)


def mark_failed(session: Session, notices: Iterable[tuple[Waiting, str, datetime]]) -> None:
    """Note why they were not taken, and when to try again."""
    rows = [_tried(notice) | {"last_error": error, "next_attempt_at": again_at} for notice, error, again_at in notices]
    correct_rows(session, OUTBOX, rows, NOTICE)


def mark_never_sent(session: Session, notices: Iterable[tuple[Waiting, str]]) -> None:
    """Note that they are never delivered, and because of which silence."""
    correct_rows(session, OUTBOX, [_named(notice) | {"hushed_by": silence} for notice, silence in notices], NOTICE)


def keep_silenced(session: Session, incidents: Iterable[Incident]) -> None:
    """Store the silence of each incident, and when it ended."""
    names = ("hour", "incident_id", "silenced_by", "unsilenced_at")
    rows = [{name: getattr(incident, name) for name in names} for incident in incidents]
    correct_rows(session, ASSET, rows, ("hour", "incident_id"))


def _tried(notice: Waiting) -> dict[str, Any]:
    return _named(notice) | {"attempts": notice.attempts + 1}


def _named(notice: Waiting) -> dict[str, Any]:
    return {
        "hour": notice.hour,
        "incident_id": notice.about_id,
        "event": notice.event,
        "channel": notice.channel,
    }
