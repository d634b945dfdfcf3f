"""Held hours in Dagster: their partitions show as failed, and the run's failure names every cause.

What belongs here: how held hours of an asset are told. What does not: why an hour is held (`pipeline.ingestion`), where
that is kept (`warehouse.holds`), and the check of it (`checks`).
"""

from collections.abc import Sequence

import dagster as dg

from health_assets.core.hours import KEY_FORMAT
from health_assets.defs.checks import HELD_HOURS_STEP
from health_assets.defs.dagster_internals import plan_once_more
from health_assets.defs.partitions import is_told_of_partitions, run_groups
from health_assets.defs.placement import ALONE, Placement
from health_assets.pipeline.checking import held_sentence
from health_assets.warehouse.holds import Hold, causes


def plan_held_once_more(context: dg.AssetExecutionContext, asset: dg.AssetKey, held: Sequence[Hold]) -> None:
    """Plan held hours of an asset once more, after Dagster has noted all hours of the run as materialized.

    The run fails, so their partitions show as failed, and those of all other hours as materialized.
    """
    if not is_told_of_partitions(context):
        return
    for hour in sorted({hold.hour for hold in held}):
        plan_once_more(context.op_execution_context, asset, f"{hour:{KEY_FORMAT}}")


def fail_for_held(
    context: dg.AssetExecutionContext, held: Sequence[Hold], placement: Placement = ALONE, *, is_blocked: bool
) -> None:
    """End a step whose hours are held, where no check nor a later step of this run would tell.

    Args:
        context: the step.
        held: the causes of its hours.
        placement: the name of the check.
        is_blocked: whether a check of the step fails, so that neither that check nor a later step runs.

    Raises:
        dagster.Failure: hours of the run are held.
    """
    if held and (is_blocked or (_has_no_check(context, placement) and not _others_follow(context))):
        hours = {hold.hour for hold in held}
        sentence = held_sentence(len(hours), len(run_groups(context)), causes(held))
        raise dg.Failure(sentence, allow_retries=False)


def _has_no_check(context: dg.AssetExecutionContext, placement: Placement) -> bool:
    """Whether the run lacks the check that tells held hours, as where `raw_logs` is not among its assets."""
    return not context.op_execution_context.job_def.has_node_named(placement.name(HELD_HOURS_STEP))


def _others_follow(context: dg.AssetExecutionContext) -> bool:
    """Whether assets of the run are made from those of this step, which a failure would keep from their other hours."""
    graph = context.op_execution_context.job_def.asset_layer
    own = context.selected_asset_keys
    later = {child for key in own for child in graph.asset_graph.get(key).child_keys} - own
    return bool(later & graph.selected_asset_keys)
