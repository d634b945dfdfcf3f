"""Asset checks as Dagster has them: the specs of every suite's, and the two checks that are steps of their own.

What belongs here: names, descriptions and severities. What does not: evaluating checks (`pipeline.checking`).
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import dagster as dg

from health_assets.core.hours import HOUR, KEY_FORMAT, HourRange
from health_assets.defs.partitions import run_groups
from health_assets.defs.pipeline import readable_failures
from health_assets.defs.placement import ALONE, Placement
from health_assets.defs.results import check_result
from health_assets.pipeline.engine import held_hours_step
from health_assets.pipeline.events import StepFinished, StepStarted
from health_assets.pipeline.plan import HELD_HOURS, Graph
from health_assets.pipeline.planning import newest_finished_hour
from health_assets.pipeline.resource import Pipeline
from health_assets.quality.expectations import Check
from health_assets.warehouse.account_digests import (
    EVERY_LINE_IS_STILL_THERE,
    EVERY_LOG_WAS_READ,
    FEW_READ_LINES_ARE_REJECTED,
)
from health_assets.warehouse.holds import EVERY_HOUR_WAS_BUILT, Holds, causes
from health_assets.warehouse.materialized import MaterializedHours

NEWEST_HOUR_IS_IN_TIME = "newest_hour_is_in_time"
HELD_HOURS_STEP = f"check_{EVERY_HOUR_WAS_BUILT}"
OF_RAW_LOGS = {
    EVERY_LOG_WAS_READ: "Every raw log below the raw root could be read; what was loaded of one before stays in the "
    "tables.",
    EVERY_LINE_IS_STILL_THERE: "No log of these hours, and of those that they look back on, was gone before all of its "
    "lines were loaded.",
    FEW_READ_LINES_ARE_REJECTED: "At most one line in twenty that the run read was rejected, in all files together and "
    "in each of them.",
}
"""Descriptions of the checks of `raw_logs` that are of no suite; each is a warning."""


def suite_specs(graph: Graph, assets: Iterable[str], placement: Placement = ALONE) -> list[dg.AssetCheckSpec]:
    """The specs of all checks of these assets that their step evaluates."""
    specs = []
    for asset in assets:
        key, suite = placement.key(asset), graph.suites.get(asset)
        specs += [_check_spec(key, check) for check in (suite.checks if suite else ())]
        if asset == "raw_logs":
            specs += [
                dg.AssetCheckSpec(name, asset=key, description=description) for name, description in OF_RAW_LOGS.items()
            ]
    return specs


def _check_spec(asset: dg.AssetKey, check: Check) -> dg.AssetCheckSpec:
    kinds = ", ".join(sorted({expectation.type for expectation in check.expectations}))
    columns = ", ".join(dict.fromkeys(column for expectation in check.expectations for column in expectation.columns))
    sentence = check.name.replace("_", " ").capitalize()
    return dg.AssetCheckSpec(
        check.name,
        asset=asset,
        description=f"{sentence}. {kinds} on {columns}.",
        blocking=check.severity == "error",
        metadata={"severity": check.severity, "batch": check.batch},
    )


def every_hour_was_built_check(placement: Placement = ALONE) -> dg.AssetChecksDefinition:
    """A check that no hour of a run is held, nor any that these look back on; it fails the run for its own hours."""
    asset = placement.key("raw_logs")

    @dg.multi_asset_check(
        name=placement.name(HELD_HOURS_STEP),
        required_resource_keys={placement.resource},
        specs=[
            dg.AssetCheckSpec(
                EVERY_HOUR_WAS_BUILT,
                asset=asset,
                description="Every hour could be built, also those that the run looks back on; held hours are as they "
                "were, and are built once the cause is gone.",
            )
        ],
    )
    def _check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        pipeline = placement.pipeline(context)
        pipeline.on_event(StepStarted(HELD_HOURS))
        with readable_failures():
            for event in held_hours_step(pipeline, run_groups(context)):
                pipeline.on_event(event)
                yield check_result(event, placement)
        pipeline.on_event(StepFinished(HELD_HOURS))

    return _check


def _newest_hour(pipeline: Pipeline, due: datetime, now: datetime) -> tuple[datetime | None, bool, Sequence[str]]:
    """The newest hour that is over, whether the one that is due was materialized after its end, and why it is held."""
    if not pipeline.open().exists:
        return None, False, ()
    with pipeline.read() as session:
        materialized = MaterializedHours(session)
        made_at = materialized.made_at(HourRange.of(due)).get(due, {}).get("system_health")
        why = causes(Holds(session).within(HourRange.of(due)))
        return materialized.newest("system_health", now), made_at is not None and made_at >= due + HOUR, why


def newest_hour_check(late_after: timedelta, own_job: str, placement: Placement = ALONE) -> dg.AssetChecksDefinition:
    """A check that the newest finished hour has been materialized, however fresh a backfill of an old one looks.

    Args:
        late_after: how long after its end an hour is late.
        own_job: the job whose run fails for a late hour besides, since nobody looks into a run that succeeded. Runs
            that Dagster's page starts for other hours take the check along, and are not to blame.
        placement: the key of `system_health`.
    """

    @dg.multi_asset_check(
        name=placement.name(NEWEST_HOUR_IS_IN_TIME),
        required_resource_keys={placement.resource},
        specs=[
            dg.AssetCheckSpec(
                NEWEST_HOUR_IS_IN_TIME,
                asset=placement.key("system_health"),
                description="The newest hour that ended long enough ago has been materialized.",
            )
        ],
    )
    def _check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        pipeline = placement.pipeline(context)
        now = pipeline.clock()
        due = newest_finished_hour(now, late_after)
        with readable_failures():
            newest, is_in_time, why = _newest_hour(pipeline, due, now)
        yield dg.AssetCheckResult(
            passed=is_in_time,
            asset_key=placement.key("system_health"),
            check_name=NEWEST_HOUR_IS_IN_TIME,
            severity=dg.AssetCheckSeverity.ERROR,
            metadata={
                "due_hour": f"{due:{KEY_FORMAT}}",
                "newest_materialized_hour": f"{newest:{KEY_FORMAT}}" if newest else "none",
            },
        )
        if not is_in_time and context.run.job_name == own_job:
            there = f"the newest is {newest:{KEY_FORMAT}}" if newest else "there is none"
            held = f"; it is held: {'; '.join(why)}" if why else ""
            raise dg.Failure(
                f"the hour {due:{KEY_FORMAT}} is late: it was not materialized after its end; {there}{held}",
                allow_retries=False,
            )

    return _check
