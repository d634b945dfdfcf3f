"""The first hour that Dagster's pages offer, where `HEALTH_FIRST_HOUR` does not name it: that of the logs.

What belongs here: finding it out from what is at hand, at little cost, since Dagster loads its definitions again and
again. What does not: what Dagster makes of it (`defs.partitions`).
"""

import logging
from datetime import datetime
from pathlib import Path

from health_assets.core.errors import HealthAssetsError, NoRawRootError, NoWarehouseError
from health_assets.core.hours import HOUR, floor_hour, parse_hour
from health_assets.core.settings import Settings
from health_assets.logs.files import list_files
from health_assets.logs.formats.format_settings import FormatSettings
from health_assets.logs.limits import Limits
from health_assets.logs.reader import contents
from health_assets.logs.stores import Faults
from health_assets.pipeline.hour_arithmetic import newest_finished_hour, newest_stretch
from health_assets.warehouse.log_coverage import LogCoverage
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse

EARLIEST = parse_hour("2020-01-01T00")
"""Hours before it are looked after only where `HEALTH_FIRST_HOUR` says so."""
MOST_APART_HOURS = 24 * 92
"""A longer gap ends the history that is looked at: behind it lies a line of a clock that stood, or a test."""
MOST_BYTES_READ = 16 << 20
"""Raw logs that are larger together are not read to find out; the ledger knows once they have been."""

_log = logging.getLogger(__name__)


def first_hour(settings: Settings, now: datetime) -> datetime:
    """The first hour to offer: of what the logs hold, the start of the stretch that leads up to now.

    The warehouse's ledger knows every hour of every log that was read. Before there is one, logs that are small are
    read, and otherwise the hours of one look-back are offered. A finished hour is always among those that are offered.

    Args:
        settings: where logs and warehouse are.
        now: the time, aware.
    """
    newest = newest_finished_hour(now)
    try:
        held = _hours_held(settings, now)
    except HealthAssetsError as error:
        _log.warning(f"Dagster offers all hours since {EARLIEST:%Y-%m-%d}, since the logs' first is not known: {error}")
        return EARLIEST
    first = newest_stretch({hour for hour in held if EARLIEST <= hour <= floor_hour(now)}, MOST_APART_HOURS)
    return newest - (settings.lookback_hours - 1) * HOUR if first is None else min(first, newest)


def earlier_hours(session: Session, first: datetime) -> int:
    """The number of known hours with events before the first one that is offered."""
    return sum(EARLIEST <= hour < first for hour in LogCoverage(session).all_event_hours())


def _hours_held(settings: Settings, now: datetime) -> set[datetime]:
    """Hours in which there is anything to see.

    Raises:
        HealthAssetsError: the warehouse stays locked or cannot be reached, the logs cannot be read.
    """
    try:
        with Warehouse.of(settings).read() as session:
            known = LogCoverage(session).all_event_hours() | PartitionStates(session).of("agent_probes")
    except NoWarehouseError:
        known = set()
    return known or _hours_of_small_logs(settings, now)


def _hours_of_small_logs(settings: Settings, now: datetime) -> set[datetime]:
    """The hours of which logs hold events, where these are in a folder and small; none where they are not."""
    root = settings.raw
    if not isinstance(root, Path):
        return set()
    try:
        unreadable: Faults = {}  # what cannot be read is told by those who load it
        files = list_files(root, unreadable, format_settings=FormatSettings.of(settings))
    except NoRawRootError:
        return set()
    if sum(file.size_bytes for file in files) > MOST_BYTES_READ:
        return set()
    held = contents(files, Limits.of(settings, now))
    return {content.hour for content in held if content.record_type != "rejected"}
