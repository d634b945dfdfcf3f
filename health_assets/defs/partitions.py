"""The hourly partitions of every asset, and the hours of a run."""

from datetime import UTC, datetime

import dagster as dg

from health_assets.hours import KEY_FORMAT, HourRange

RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
FIRST_HOUR = datetime(2020, 1, 1, tzinfo=UTC)


def hourly_partitions(first_hour: datetime = FIRST_HOUR, end_offset: int = 0) -> dg.HourlyPartitionsDefinition:
    """Hours in UTC from `first_hour` to the newest finished one, and `end_offset` more."""
    return dg.HourlyPartitionsDefinition(start_date=first_hour, timezone="UTC", fmt=KEY_FORMAT, end_offset=end_offset)


def range_tags(hours: HourRange) -> dict[str, str]:
    """Run tags that make one run over the whole range."""
    *_, last = hours
    return {RANGE_START_TAG: f"{hours.start:{KEY_FORMAT}}", RANGE_END_TAG: f"{last:{KEY_FORMAT}}"}


def run_hours(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> HourRange:
    """The hours of the run.

    Raises:
        dagster.Failure: the run has no partition.
    """
    if not (context.has_partition_key or context.has_partition_key_range):
        raise dg.Failure("this run has no hour; choose a partition or a range of partitions", allow_retries=False)
    window = context.partition_time_window
    return HourRange(window.start.astimezone(UTC), window.end.astimezone(UTC))
