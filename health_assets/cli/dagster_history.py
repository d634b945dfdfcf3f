"""Reporting to Dagster the hours that were materialized without it, so that its page shows them.

What belongs here: which hours Dagster lacks, and the events that tell of them. What does not: runs (`dagster_run`).
"""

from datetime import datetime
from typing import NamedTuple

import dagster as dg

from health_assets.cli.dagster_run import instance_here
from health_assets.core.errors import HealthAssetsError, NoWarehouseError
from health_assets.core.formatting import counted
from health_assets.core.hours import EVER, HOUR, KEY_FORMAT, HourRange
from health_assets.core.settings import Settings
from health_assets.defs.naming import STANDALONE
from health_assets.defs.partitions import hourly_partitions
from health_assets.defs.results import PARTITION_ROW_COUNT
from health_assets.defs.write_lock.recorded_warehouse import note_warehouse
from health_assets.pipeline.fingerprints import RECORDS
from health_assets.systems.declared_assets import DERIVED
from health_assets.warehouse.partition_states import PartitionStates, WrittenRows
from health_assets.warehouse.store import Warehouse

MOST_EVENTS = 3000
"""Dagster stores each by itself, which takes 2 to 6 ms."""
MATERIALIZED = "MATERIALIZED"
"""Status of a partition, of an enumeration that Dagster does not export."""
DESCRIPTION = "Materialized by a run without Dagster."


class Reported(NamedTuple):
    """What Dagster was told.

    Args:
        events: materializations that it lacked and was told of.
        left_out: older ones that it still lacks.
        since: the oldest hour of those that it was told of; None without any.
    """

    events: int
    left_out: int
    since: datetime | None

    def __str__(self) -> str:
        older = f"; it lacks {self.left_out:,} older ones" if self.left_out else ""
        told = f"{counted(self.events, 'hour')} of assets since {self.since:%Y-%m-%dT%H}"
        return f"Dagster was told of {told} that were materialized without it{older}"


def report_unseen_here(settings: Settings, now: datetime) -> str | None:
    """`report_unseen` to the Dagster of this folder or of DAGSTER_HOME; a sentence, None where it lacks nothing."""
    try:
        with instance_here() as instance:
            note_warehouse(instance, settings)
            reported = report_unseen(settings, instance, now)
    except NoWarehouseError:
        return None
    except HealthAssetsError as error:
        return f"Dagster may show hours as never materialized that are: {error}"
    return str(reported) if reported.events else None


def report_unseen(settings: Settings, instance: dg.DagsterInstance, now: datetime) -> Reported:
    """Tell Dagster of the newest hours of assets that it has no materialization of.

    Args:
        settings: which warehouse.
        instance: where Dagster keeps its records.
        now: the time; hours that are not over by then have no partition on its page yet.

    Raises:
        HealthAssetsError: as `Warehouse.read`.
    """
    with Warehouse.of(settings).read() as session:
        written = PartitionStates(session).written(EVER)
    lacking = [
        (hour, asset, rows)
        for asset in (*RECORDS, *DERIVED)
        for hour, rows in _unseen(instance, asset, written.get(asset, {})).items()
    ]
    over = sorted((one for one in lacking if one[0] + HOUR <= now), key=lambda one: one[0], reverse=True)
    told = over[:MOST_EVENTS]
    for hour, asset, rows in reversed(told):
        instance.report_runless_asset_event(_materialization(asset, hour, rows))
    return Reported(len(told), len(over) - len(told), told[-1][0] if told else None)


def _unseen(instance: dg.DagsterInstance, asset: str, written: dict[str, WrittenRows]) -> dict[datetime, WrittenRows]:
    """The hours that an asset has in the warehouse and that Dagster does not count as materialized."""
    there = {datetime.fromisoformat(hour): rows for hour, rows in written.items() if not rows.is_dropped}
    if not there:
        return {}
    keys = {hour: f"{hour:{KEY_FORMAT}}" for hour in there}
    partitions = hourly_partitions(HourRange(min(there), max(there) + HOUR))
    statuses = instance.get_status_by_partition(STANDALONE.key(asset), [*keys.values()], partitions) or {}
    seen = {key for key, status in statuses.items() if status and status.value == MATERIALIZED}
    return {hour: rows for hour, rows in there.items() if keys[hour] not in seen}


def _materialization(asset: str, hour: datetime, rows: WrittenRows) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        STANDALONE.key(asset),
        description=DESCRIPTION,
        partition=f"{hour:{KEY_FORMAT}}",
        metadata={
            PARTITION_ROW_COUNT: dg.MetadataValue.int(rows.rows),
            "materialized at": dg.MetadataValue.timestamp(rows.written_at),
        },
    )
