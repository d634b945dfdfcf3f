"""Being told: incidents, and the outbox of what is to be delivered about them."""

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field

from health_assets.schema.columns import Hourly, at, count, flag, number, text


class Alert(Hourly, table=True):
    """Incidents: what somebody was or is to be told, one row from opening to recovery, in the hour that opened it."""

    __tablename__ = "alerts"

    incident_id: str = text("Id of the incident; follows from rule, subject and hour.", key=True)
    rule: str = text("Rule that opened it.")
    subject_kind: str = text("`agent`, `model`, `expectation` or `pipeline`.")
    subject_id: str = text("The agent, the model, `asset.expectation`, or `hours`.")
    severity: str = text("`info`, `warning` or `critical`, as the rule has it.")
    opened_at: datetime = at("End of the hour that opened it; of a late hour, when it became late.")
    closed_at: datetime | None = at(
        "End of the hour that closed it, or when its rule was switched off; null while it is open.", nullable=True
    )
    reason: str = text("What happened, in one sentence.")
    recovery: str | None = text("What ended it, in one sentence; null while it is open.")
    recovers_at: float | None = number("Score or burn rate that counts as good again; null where a rule has neither.")
    good_hours: int = count(
        "Consecutive good hours so far; the rule says how many close it. 0 when it closed otherwise."
    )
    is_personal: bool = flag("Whether it is about somebody's own agent, of which messages say no more than a status.")
    evidence: str = Field(
        description="What the rule saw as JSON; of a score, the points lost by component and the ids that weigh most.",
        sa_type=sa.JSON,
    )


class AlertDelivery(Hourly, table=True):
    """The outbox: one row per incident, event and channel, written with the incident and marked once delivered."""

    __tablename__ = "alert_deliveries"

    incident_id: str = text("Incident.", key=True)
    event: str = text("`opened` or `closed`.", key=True)
    channel: str = text("Channel that is to deliver it.", key=True)
    written_at: datetime = at("When it was written.")
    attempts: int = count("Ticks that tried to deliver it.")
    next_attempt_at: datetime = at("Not to be tried before.")
    delivered_at: datetime | None = at("When the channel took it; null while it waits.", nullable=True)
    last_error: str | None = text("Why the last attempt failed, without secrets; null where it did not.")


TABLES = (Alert, AlertDelivery)
