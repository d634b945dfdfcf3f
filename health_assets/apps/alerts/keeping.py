"""Incidents, the outbox and the judged hours in the warehouse.

Notices are written with the incident, in one transaction, so that none is lost whatever happens afterwards. That an
hour was judged is noted like that of an asset, under `alerts`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import ibis
import pyarrow as pa

from health_assets.apps.alerts.config import Alerts
from health_assets.apps.alerts.incidents import Incident, Judged, Subject
from health_assets.core.hours import HourRange
from health_assets.schema.catalog import columns_of
from health_assets.warehouse.materialized import MaterializedHours
from health_assets.warehouse.session import Session

ASSET = "alerts"
COLUMNS = tuple(columns_of(ASSET))

CHANGING = ("hour", "incident_id", "closed_at", "recovery", "good_hours")
"""What of an incident changes, and what it is known by."""
OUTBOX = "alert_deliveries"
NOTICE = ("hour", "incident_id", "event", "channel")
"""What a row of the outbox is known by."""
OPENED, CLOSED = "opened", "closed"


@dataclass(frozen=True)
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
    sql = """
        SELECT count(*) FROM information_schema.tables
        WHERE table_catalog = current_database() AND table_schema = current_schema() AND table_name IN (?, ?)
        """
    return session.query(sql, [ASSET, OUTBOX]) == [(2,)]


def open_incidents(session: Session) -> dict[Subject, Incident]:
    """The incidents that are open, by subject."""
    found = (Incident(*row) for row in session.query(f"{_SELECT} WHERE closed_at IS NULL"))
    return {incident.subject: incident for incident in found}


def recent_incidents(session: Session, since: datetime) -> list[Incident]:
    """Incidents that are open or closed after a time, the latest first."""
    order = "ORDER BY opened_at DESC, severity, subject_id, rule"
    return [
        Incident(*row) for row in session.query(f"{_SELECT} WHERE closed_at IS NULL OR closed_at >= ? {order}", [since])
    ]


_SELECT = "SELECT " + ", ".join(COLUMNS[:-1]) + ", CAST(evidence AS VARCHAR) FROM alerts"


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
    """Those that are not stored yet; an hour that is late may become late once only."""
    kept: set[str] = set()
    for hour in {incident.hour for incident in incidents}:
        kept |= {name for (name,) in session.query("SELECT incident_id FROM alerts WHERE hour = ?", [hour])}
    return [incident for incident in incidents if incident.incident_id not in kept]


def _channels_told(session: Session, incidents: Sequence[Incident]) -> Mapping[str, list[str]]:
    """By incident, the channels that tell of its opening: who was not told of it need not hear of its end."""
    told: dict[str, list[str]] = {incident.incident_id: [] for incident in incidents}
    sql = "SELECT incident_id, channel FROM alert_deliveries WHERE hour = ? AND event = ? ORDER BY incident_id, channel"
    for hour in {incident.hour for incident in incidents}:
        for incident_id, channel in session.query(sql, [hour, OPENED]):
            if incident_id in told:
                told[incident_id].append(channel)
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
    """When an hour was last judged; None before the first."""
    return MaterializedHours(session).last_made_at(ASSET)


def note_judged(session: Session, hour: datetime, *, is_changed: bool) -> None:
    """Write down that an hour was judged."""
    MaterializedHours(session).note(ASSET, HourRange.of(hour), [hour] if is_changed else [])


# -- the outbox --------------------------------------------------------------------------------------------------------


def due_notices(session: Session, channel: str, now: datetime, most: int) -> list[Notice]:
    """Notices that wait for a channel and may be tried, the oldest first; no end of an incident before its opening."""
    columns = ", ".join(f"alerts.{name}" for name in COLUMNS[:-1])
    found = session.query(
        f"""
        SELECT delivery.event, delivery.channel, delivery.attempts, {columns}, CAST(alerts.evidence AS VARCHAR)
        FROM alert_deliveries AS delivery JOIN alerts ON alerts.incident_id = delivery.incident_id
        WHERE delivery.channel = ? AND delivery.delivered_at IS NULL AND delivery.next_attempt_at <= ? AND (
            delivery.event = 'opened' OR NOT EXISTS (
                SELECT 1 FROM alert_deliveries AS opening
                WHERE opening.incident_id = delivery.incident_id AND opening.channel = delivery.channel
                    AND opening.event = 'opened' AND opening.delivered_at IS NULL AND opening.next_attempt_at > ?
            )
        )
        ORDER BY delivery.written_at, alerts.opened_at, delivery.event DESC, delivery.incident_id
        LIMIT {int(most)}
        """,
        [channel, now, now],
    )
    return [Notice(Incident(*row), event, channel, attempts) for event, channel, attempts, *row in found]


def count_waiting(session: Session) -> dict[str, tuple[int, str | None]]:
    """By channel, how many notices wait, and why the last attempt failed."""
    found = session.query(
        "SELECT channel, count(*), max(last_error) FROM alert_deliveries WHERE delivered_at IS NULL "
        "GROUP BY channel ORDER BY channel"
    )
    return {channel: (count, error) for channel, count, error in found}


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
