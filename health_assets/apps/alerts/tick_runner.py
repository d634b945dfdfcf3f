"""One tick: judge what is new, deliver what waits, and where it is due a digest. Sensor and command do the same."""

from dataclasses import dataclass
from datetime import datetime

from health_assets.apps.alerts.config import Alerts
from health_assets.apps.alerts.delivering import Delivery, deliver
from health_assets.apps.alerts.digest_store import write_due_digest
from health_assets.apps.alerts.evaluator import Watch, watch
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.warehouse.store import Warehouse

LOCK_TIMEOUT_S = 10.0
MARK_TIMEOUT_S = 60.0
"""What was sent is marked, or sent again: so this waits longer for the warehouse."""


@dataclass(frozen=True)
class Tick:
    """The outcome of a tick.

    Args:
        watched: hours judged, incidents opened and closed.
        sent: messages delivered, and not.
    """

    watched: Watch
    sent: Delivery

    def __str__(self) -> str:
        return f"{self.watched}; {self.sent}"


def tick(settings: Settings, alerts: Alerts, targets: Targets, now: datetime) -> Tick:
    """Judge the hours that are ready and deliver what is due; the warehouse is closed while messages are sent.

    Args:
        settings: where the warehouse is, how long windows are.
        alerts: rules and channels.
        targets: the personal agents and the retired ones.
        now: the time.

    Raises:
        HealthAssetsError: the warehouse cannot be opened.
    """
    warehouse = Warehouse.of(settings, lock_timeout_s=min(settings.lock_timeout_s, LOCK_TIMEOUT_S))
    marking = Warehouse.of(settings, lock_timeout_s=max(settings.lock_timeout_s, MARK_TIMEOUT_S))
    watched = watch(warehouse, alerts, settings, targets, now)
    sent = deliver(warehouse, marking, alerts, now, targets=targets, pages_url=settings.pages_url)
    if write_due_digest(warehouse, alerts, settings, targets, now):
        sent += deliver(warehouse, marking, alerts, now, targets=targets, pages_url=settings.pages_url)
    return Tick(watched, sent)
