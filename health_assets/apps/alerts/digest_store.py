"""Periodic digests in the warehouse: each period's is written once, together with what the channels are to be told."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from ibis import ir

from health_assets.apps.alerts.alert_rows import append_rows
from health_assets.apps.alerts.config import Alerts
from health_assets.apps.alerts.digest_facts import Facts, facts
from health_assets.apps.alerts.outbox import DIGESTS, OUTBOX, is_due, new_row
from health_assets.apps.alerts.periodic import PERIODIC, DigestNotice, PeriodicDigest, new_digest
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse

DIGESTS_LOOKED_AT = 15
"""A release is compared for at most half of the longest look-back, of four weeks."""


def write_due_digest(
    warehouse: Warehouse, alerts: Alerts, settings: Settings, targets: Targets, now: datetime
) -> PeriodicDigest | None:
    """Write the digest that is due, if one is and some channel is to send it.

    The facts are read first, so that the warehouse is open for writing for a moment only.

    Args:
        warehouse: the warehouse.
        alerts: the schedule and the channels.
        settings: how long windows are, and when an hour is late.
        targets: the personal agents and the retired ones.
        now: the time.

    Raises:
        HealthAssetsError: the warehouse cannot be opened.
    """
    schedule, channels = alerts.digest, alerts.channels_of_digest()
    if schedule is None or not channels:
        return None
    with warehouse.read() as session:
        due_at = schedule.due(_last_due_at(session, schedule.every, now), now)
        if due_at is None:
            return None
        content = facts(
            session, settings, targets, schedule.every, due_at, now,
            lines=schedule.lines, releases_told=_releases_told(session, schedule.every, now),
        )  # fmt: skip
    digest = new_digest(schedule.every, due_at, now, content)
    with warehouse.write() as session:
        if schedule.due(_last_due_at(session, schedule.every, now), now) is None:  # another program was faster
            return None
        append_rows(session, DIGESTS, [asdict(digest) | {"content": json.dumps(content, ensure_ascii=False)}])
        rows = [new_row(digest.hour, digest.digest_id, PERIODIC, channel, now) for channel in channels]
        append_rows(session, OUTBOX, rows)
    return digest


def _last_due_at(session: Session, cadence: str, now: datetime) -> datetime | None:
    """Time of the last digest that was due; a time to come, which a clock that ran ahead wrote, holds up no other."""
    last = _last(session, cadence, now, 1)
    return next((row["due_at"] for row in session.dicts(last.select("due_at"))), None)


def _releases_told(session: Session, cadence: str, now: datetime) -> Sequence[Facts]:
    """The verdicts on releases of the last digests; a release is compared for some days."""
    last = _last(session, cadence, now, DIGESTS_LOOKED_AT)
    contents = session.dicts(last.select(content=last.content.cast(str)))
    return [told for row in contents for told in json.loads(row["content"]).get("releases", [])]


def _last(session: Session, cadence: str, now: datetime, count: int) -> ir.Table:
    digests = session.table(DIGESTS)
    own = digests.filter(digests.cadence == cadence, digests.due_at <= now)
    return own.order_by(digests.due_at.desc()).limit(count)


def due_digests(session: Session, channel: str, now: datetime) -> Sequence[DigestNotice]:
    """Digests that wait for a channel and may be tried, the oldest first."""
    outbox, digests = session.table(OUTBOX), session.table(DIGESTS)
    due = outbox.filter(
        outbox.channel == channel,
        outbox.event == PERIODIC,
        outbox.delivered_at.isnull(),
        is_due(outbox, now),
    ).select("incident_id", "attempts")
    told = digests.mutate(content=digests.content.cast(str))
    rows = due.join(told, due.incident_id == told.digest_id).drop("incident_id").order_by("due_at")
    found = []
    for row in session.dicts(rows):
        attempts = row.pop("attempts")
        digest = PeriodicDigest(**{**row, "content": json.loads(row["content"])})
        found.append(DigestNotice(digest=digest, channel=channel, attempts=attempts))
    return found
