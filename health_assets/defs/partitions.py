"""The hourly partitions of every asset, and the hours of a run.

All assets share one partitions definition, so that a range of hours can be chosen for all of them at once. What the
pages offer and what a run takes are not the same hours. The pages offer the finished hours from the logs' first on. A
run is loaded in a process of its own, and takes any hour that it is asked for: also one from before, of which a log
came late, and the one that runs, in which the survey asks its agents.
"""

from collections.abc import Set as AbstractSet
from datetime import UTC, datetime

import dagster as dg
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    PARTITION_NAME_TAG,
)

from health_assets.hours import HOUR, KEY_FORMAT, HourRange, floor_hour


def finished_hours(first: datetime) -> dg.HourlyPartitionsDefinition:
    """The hours from the first to the newest finished one, which the pages offer."""
    return dg.HourlyPartitionsDefinition(start_date=first, timezone="UTC", fmt=KEY_FORMAT)


def begun_hours(first: datetime) -> dg.HourlyPartitionsDefinition:
    """The hours from the first to the one that runs, which a run takes."""
    return dg.HourlyPartitionsDefinition(start_date=first, timezone="UTC", fmt=KEY_FORMAT, end_offset=1)


def is_loaded_for_a_run() -> bool:
    """Whether Dagster loads the definitions to execute a run, rather than to show them and to decide what runs."""
    return DefinitionsLoadContext.get().load_type is DefinitionsLoadType.RECONSTRUCTION


def hourly_partitions(hours: HourRange) -> dg.HourlyPartitionsDefinition:
    """Exactly these hours, even if they are not over yet."""
    ahead = max(0, int((hours.end - floor_hour(datetime.now(UTC))) / HOUR))
    return dg.HourlyPartitionsDefinition(
        start_date=hours.start, end_date=hours.end, timezone="UTC", fmt=KEY_FORMAT, end_offset=ahead
    )


def hours_tags(hours: HourRange) -> dict[str, str]:
    """Run tags that make one run over all of these hours."""
    *_, last = hours
    if len(hours) == 1:
        return {PARTITION_NAME_TAG: f"{last:{KEY_FORMAT}}"}
    return {
        ASSET_PARTITION_RANGE_START_TAG: f"{hours.start:{KEY_FORMAT}}",
        ASSET_PARTITION_RANGE_END_TAG: f"{last:{KEY_FORMAT}}",
    }


def run_hours(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> HourRange:
    """The hours of the run.

    Raises:
        dagster.Failure: the run has no partition.
    """
    if not (context.has_partition_key or context.has_partition_key_range):
        raise dg.Failure("this run has no hour; choose a partition or a range of partitions", allow_retries=False)
    window = context.partition_time_window
    return HourRange(window.start.astimezone(UTC), window.end.astimezone(UTC))


def log_earlier_hours(
    context: dg.AssetExecutionContext, asset: str, built: AbstractSet[datetime], asked: HourRange
) -> None:
    """Tell Dagster about hours of the look-back that were built besides those asked for."""
    for hour in sorted(built - set(asked)):
        context.log_event(dg.AssetMaterialization(asset, partition=f"{hour:{KEY_FORMAT}}"))
