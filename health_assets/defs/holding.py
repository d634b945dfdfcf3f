"""Held hours in Dagster: steps leave them alone, and a check and the run's failure name every cause.

What belongs here: which hours of a run are left, and how held ones are told. What does not: why an hour is held
(`pipeline.ingestion`) and where that is kept (`warehouse.holds`).
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

import dagster as dg

from health_assets.core.hours import HOUR, KEY_FORMAT, HourGroups, HourRange
from health_assets.defs.dagster_internals import plan_once_more
from health_assets.defs.partitions import is_told_of_partitions, run_groups
from health_assets.defs.placement import ALONE, Placement
from health_assets.warehouse.holds import EVERY_HOUR_WAS_BUILT, Hold, Holds, causes

HELD = "held hours"
"""Under this key stands why hours are held."""
CAUSES_SHOWN = 20
_CHECK_STEP = f"check_{EVERY_HOUR_WAS_BUILT}"


def without_held(hours: HourGroups, held: AbstractSet[datetime]) -> HourGroups | None:
    """The hours that are not held; None where all are."""
    left = set(hours) - held
    return HourGroups.of(left) if left else None


def show_held(
    context: dg.AssetExecutionContext,
    assets: Iterable[dg.AssetKey],
    holds: Sequence[Hold],
    placement: Placement = ALONE,
) -> None:
    """Plan held hours of assets once more, after Dagster has noted all hours of the run as materialized.

    The run fails, so their partitions show as failed, and those of all other hours as materialized.

    Raises:
        dagster.Failure: hours of the run are held, which no check nor a later step of this run would tell.
    """
    hours = run_groups(context)
    own = [hold for hold in holds if hold.hour in hours]
    if not own:
        return
    held = {hold.hour for hold in own}
    _plan_once_more(context, assets, held)
    if _has_no_check(context, placement) and not _others_follow(context):
        raise dg.Failure(held_sentence(len(held), len(hours), causes(own)), allow_retries=False)


def _has_no_check(context: dg.AssetExecutionContext, placement: Placement) -> bool:
    """Whether the run lacks the check that tells held hours, as where `raw_logs` is not among its assets."""
    return not context.op_execution_context.job_def.has_node_named(placement.name(_CHECK_STEP))


def _others_follow(context: dg.AssetExecutionContext) -> bool:
    """Whether assets of the run are made from those of this step, which a failure would keep from their other hours."""
    graph = context.op_execution_context.job_def.asset_layer
    own = context.selected_asset_keys
    later = {child for key in own for child in graph.asset_graph.get(key).child_keys} - own
    return bool(later & graph.selected_asset_keys)


def _plan_once_more(
    context: dg.AssetExecutionContext, assets: Iterable[dg.AssetKey], held: AbstractSet[datetime]
) -> None:
    if not is_told_of_partitions(context):
        return
    for asset in assets:
        for hour in sorted(held):
            plan_once_more(context.op_execution_context, asset, f"{hour:{KEY_FORMAT}}")


def every_hour_was_built_check(placement: Placement = ALONE) -> dg.AssetChecksDefinition:
    """A check that no hour of a run is held, nor any that these look back on; it fails the run for its own hours."""

    @dg.multi_asset_check(
        name=placement.name(_CHECK_STEP),
        required_resource_keys={placement.resource},
        specs=[
            dg.AssetCheckSpec(
                EVERY_HOUR_WAS_BUILT,
                asset=placement.key("raw_logs"),
                description="Every hour could be built, also those that the run looks back on; held hours are as they "
                "were, and are built once the cause is gone.",
            )
        ],
    )
    def _check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        pipeline = placement.pipeline(context)
        hours = run_groups(context)
        with pipeline.write() as session:
            holds = Holds(session).within(HourRange(hours.start - pipeline.settings.reach_hours * HOUR, hours.end))
        held = {hold.hour for hold in holds}
        own = held & set(hours)
        told = causes(holds)
        yield dg.AssetCheckResult(
            passed=not held,
            asset_key=placement.key("raw_logs"),
            check_name=EVERY_HOUR_WAS_BUILT,
            severity=dg.AssetCheckSeverity.ERROR if own else dg.AssetCheckSeverity.WARN,
            metadata={
                "unexpected_count": dg.MetadataValue.int(len(held)),
                **({HELD: dg.MetadataValue.json(told[:CAUSES_SHOWN])} if told else {}),
            },
        )
        if own:
            raise dg.Failure(held_sentence(len(own), len(hours), told), allow_retries=False)

    return _check


def held_sentence(held: int, hours: int, told: list[str]) -> str:
    """The sentence that says how many hours are held, with every cause."""
    others = ", and all others were built" if held < hours else ""
    more = f"; and {len(told) - CAUSES_SHOWN:,} more" if len(told) > CAUSES_SHOWN else ""
    return f"{held:,} of {hours:,} h are held{others}: {'; '.join(told[:CAUSES_SHOWN])}{more}"
