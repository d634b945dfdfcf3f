"""Incidents, the outbox and the judged hours in the warehouse.

Notices are written with the incident, in one transaction, so that none is lost whatever happens afterwards. That an
hour was judged is noted like that of an asset, under `alerts`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.apps.alerts.config import Alerts
from health_assets.apps.alerts.incidents import Incident, Judged, Subject
from health_assets.core.hours import HourRange
from health_assets.schema.catalog import columns_of
from health_assets.warehouse.materialized import MaterializedHours
from health_assets.warehouse.session import Session

ASSET = "alerts"

CHANGING = ("hour", "incident_id", "closed_at", "recovery", "good_hours")
"""What of an incident changes, and what it is known by."""
OUTBOX = "alert_deliveries"
NOTICE = ("hour", "incident_id", "event", "channel")
"""What a row of the outbox is known by."""
OPENED, CLOSED = "opened", "closed"


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


def is_there(session: Session) -> bool:
    """Whether the warehouse has a place for incidents; one that only an older program wrote to does not."""
    return session.has_tables([ASSET, OUTBOX])


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
    session.insert_arrow(ASSET, _rows(ASSET, [asdict(incident) for incident in new]))
    changes = [{name: getattr(incident, name) for name in CHANGING} for incident in judged.changed]
    _correct(session, ASSET, changes, ("hour", "incident_id"))
    notices = [(incident, OPENED, channel) for incident in new for channel in alerts.channels_of(incident.rule)]
    told = _channels_told(session, judged.closed)
    notices += [(incident, CLOSED, channel) for incident in judged.closed for channel in told[incident.incident_id]]
    session.insert_arrow(OUTBOX, _rows(OUTBOX, [_waiting(*one, now) for one in notices]))
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


def _waiting(incident: Incident, event: str, channel: str, now: datetime) -> dict:
    return {
        "hour": incident.hour,
        "incident_id": incident.incident_id,
        "event": event,
        "channel": channel,
        "written_at": now,
        "attempts": 0,
        "next_attempt_at": now,
        "delivered_at": None,
        "last_error": None,
    }


_ARROW_TYPES = {
    **dict.fromkeys(("hour", "opened_at", "closed_at", "written_at", "next_attempt_at", "delivered_at"),
                    pa.timestamp("us", "UTC")),
    **dict.fromkeys(("good_hours", "attempts"), pa.int64()),
    "recovers_at": pa.float64(),
    "is_personal": pa.bool_(),
}  # fmt: skip


def _rows(table: str, rows: Sequence[dict]) -> pa.Table:
    schema = pa.schema([(name, _ARROW_TYPES.get(name, pa.string())) for name in columns_of(table)])
    return pa.Table.from_pylist(list(rows), schema)


# -- judged hours ------------------------------------------------------------------------------------------------------


def last_judged(session: Session) -> datetime | None:
    """The newest hour that was judged; None before the first."""
    return MaterializedHours(session).newest(ASSET)


def last_judged_at(session: Session) -> datetime | None:
    """The time at which an hour was last judged; None before the first."""
    return MaterializedHours(session).last_made_at(ASSET)


def note_judged(session: Session, hour: datetime, *, is_changed: bool) -> None:
    """Write down that an hour was judged."""
    MaterializedHours(session).note(ASSET, HourRange.of(hour), [hour] if is_changed else [])


# -- the outbox --------------------------------------------------------------------------------------------------------


def due_notices(session: Session, channel: str, now: datetime, most: int) -> list[Notice]:
    """Notices that wait for a channel and may be tried, the oldest first; no end of an incident before its opening."""
    notices = session.table(OUTBOX)
    waiting = notices.filter(notices.channel == channel, notices.delivered_at.isnull())
    due = waiting.filter(waiting.next_attempt_at <= now)
    openings_to_come = waiting.filter(waiting.event == OPENED, waiting.next_attempt_at > now)
    is_early = due.incident_id.isin(openings_to_come.incident_id)
    ready = due.filter((due.event == OPENED) | ~is_early)
    notice_of = ready.select("incident_id", "event", "channel", "attempts", "written_at")
    rows = notice_of.join(_incidents(session), "incident_id")
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
    """The number of notices that wait, and the reason why the last attempt failed, by channel."""
    notices = session.table(OUTBOX)
    waiting = notices.filter(notices.delivered_at.isnull())
    counted = waiting.group_by("channel").aggregate(notices=waiting.count(), last_error=waiting.last_error.max())
    return {row["channel"]: (row["notices"], row["last_error"]) for row in session.dicts(counted.order_by("channel"))}


def mark_delivered(session: Session, notices: Iterable[Notice], at: datetime) -> None:
    """Note that a channel took them."""
    _correct(session, OUTBOX, [_marked(notice, delivered_at=at, last_error=None) for notice in notices], NOTICE)


def mark_failed(session: Session, notices: Iterable[tuple[Notice, str, datetime]]) -> None:
    """Note why they were not taken, and when to try again."""
    rows = [_marked(notice, last_error=error, next_attempt_at=again_at) for notice, error, again_at in notices]
    _correct(session, OUTBOX, rows, NOTICE)


def _marked(notice: Notice, **columns: Any) -> dict:
    names = {"hour": notice.incident.hour, "incident_id": notice.incident.incident_id}
    return {**names, "event": notice.event, "channel": notice.channel, "attempts": notice.attempts + 1, **columns}


def _correct(session: Session, table: str, rows: Sequence[dict], keys: Sequence[str]) -> None:
    """Set the columns that all of these rows name."""
    if rows:
        schema = pa.schema([(name, _ARROW_TYPES.get(name, pa.string())) for name in rows[0]])
        MaterializedHours(session).correct_rows(table, ibis.memtable(pa.Table.from_pylist(list(rows), schema)), keys)
