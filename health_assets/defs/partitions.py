"""The hourly partitions of every asset, and the hours of a run.

All assets share one partitions definition, so that a range of hours can be chosen for all of them at once. What the
pages offer and what a run takes are not the same hours. The pages offer the finished hours from the logs' first on. A
run is loaded in a process of its own, and takes any hour that it is asked for: also one from before, of which a log
came late, and the one that runs, in which the survey asks its agents.

A run that Dagster starts has the hours of its partitions. A run of the command line names its hours in a tag besides,
since they may have holes between them.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import dagster as dg

from health_assets.core.hours import HOUR, KEY_FORMAT, HourGroups, HourRange, floor_hour, parse_hour
from health_assets.defs.dagster_internals import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    PARTITION_NAME_TAG,
)

HOURS_TAG = "health-assets/hours"
"""Ranges of hours, `first/end` each, with commas between."""


def finished_hours(first: datetime) -> dg.HourlyPartitionsDefinition:
    """The hours from the first to the newest finished one, which the pages offer."""
    return dg.HourlyPartitionsDefinition(start_date=first, timezone="UTC", fmt=KEY_FORMAT)


def begun_hours(first: datetime) -> dg.HourlyPartitionsDefinition:
    """The hours from the first to the one that runs, which a run takes."""
    return _HoursListedOnce(start_date=first, timezone="UTC", fmt=KEY_FORMAT, end_offset=1)


class _HoursListedOnce(dg.HourlyPartitionsDefinition):
    """Hours of years, which Dagster lists again for every check of a run: half a second each time."""

    def get_partition_keys(
        self, current_time: datetime | None = None, dynamic_partitions_store: Any = None
    ) -> Sequence[str]:
        """Every hour's key, listed once for each last one."""
        if current_time is not None:
            return super().get_partition_keys(current_time, dynamic_partitions_store)
        return _listed(self, self.get_last_partition_key())


@lru_cache(maxsize=1)
def _listed(hours: dg.HourlyPartitionsDefinition, last_key: str | None) -> Sequence[str]:
    keys = dg.HourlyPartitionsDefinition.get_partition_keys(hours)
    return [key for key in keys if last_key is not None and key <= last_key]


def hourly_partitions(hours: HourRange) -> dg.HourlyPartitionsDefinition:
    """Exactly these hours, even if they are not over yet."""
    ahead = max(0, int((hours.end - floor_hour(datetime.now(UTC))) / HOUR))
    return dg.HourlyPartitionsDefinition(
        start_date=hours.start, end_date=hours.end, timezone="UTC", fmt=KEY_FORMAT, end_offset=ahead
    )


def only_partitions(hours: HourGroups) -> dg.PartitionsDefinition:
    """Exactly these hours, with holes between them."""
    return dg.StaticPartitionsDefinition([f"{hour:{KEY_FORMAT}}" for hour in hours])


def hours_tags(hours: HourRange | HourGroups) -> dict[str, str]:
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
    if not is_told_of_partitions(context):
        raise dg.Failure("this run has no hour; choose a partition or a range of partitions", allow_retries=False)
    window = context.partition_time_window
    return HourRange(window.start.astimezone(UTC), window.end.astimezone(UTC))


def named_hours_tags(hours: HourGroups) -> dict[str, str]:
    """Run tags that name the hours themselves, in place of partitions or besides them."""
    return {HOURS_TAG: ",".join(f"{own.start:{KEY_FORMAT}}/{own.end:{KEY_FORMAT}}" for own in hours.ranges)}


def run_groups(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> HourGroups:
    """The hours of the run, with the holes that there may be between them.

    Raises:
        dagster.Failure: the run has neither a partition nor a tag that names hours.
    """
    named = context.run.tags.get(HOURS_TAG)
    if named is None:
        return HourGroups((run_hours(context),))
    groups = _named_hours(named)
    if is_told_of_partitions(context) and len(context.partition_keys) != len(groups):
        return HourGroups((run_hours(context),))  # started again on Dagster's page, where there are no holes
    return groups


def _named_hours(text: str) -> HourGroups:
    """The hours that a tag names, as `named_hours_tags` writes it."""
    bounds = (own.split("/") for own in text.split(","))
    return HourGroups(tuple(HourRange(parse_hour(first), parse_hour(end)) for first, end in bounds))


def hours_of_tags(tags: Mapping[str, str]) -> HourGroups | None:
    """The hours of a run with these tags; None where it has none."""
    if named := tags.get(HOURS_TAG):
        return _named_hours(named)
    first = tags.get(ASSET_PARTITION_RANGE_START_TAG, tags.get(PARTITION_NAME_TAG))
    last = tags.get(ASSET_PARTITION_RANGE_END_TAG, tags.get(PARTITION_NAME_TAG))
    return HourGroups((HourRange(parse_hour(first), parse_hour(last) + HOUR),)) if first and last else None


def is_told_of_partitions(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> bool:
    """Whether Dagster keeps which partitions a run is about."""
    return context.has_partition_key or context.has_partition_key_range
