"""Asset checks as Dagster has them: the specs of every suite's, and the check that is a step of its own.

What belongs here: names, descriptions and severities. What does not: evaluating checks (`pipeline.checking`).
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import dagster as dg

from health_assets.core.hours import HOUR, KEY_FORMAT, HourRange
from health_assets.defs.naming import STANDALONE, Naming
from health_assets.defs.pipeline import readable_failures
from health_assets.pipeline.hour_arithmetic import newest_finished_hour
from health_assets.pipeline.plan import Graph
from health_assets.pipeline.resource import Pipeline
from health_assets.quality.expectations import Check
from health_assets.warehouse.fingerprints import (
    EVERY_LINE_IS_STILL_THERE,
    EVERY_LOG_WAS_READ,
    FEW_READ_LINES_ARE_REJECTED,
)
from health_assets.warehouse.partition_states import SCORED_ASSET, PartitionStates

NEWEST_HOUR_IS_IN_TIME = "newest_hour_is_in_time"
OF_RAW_LOGS = {
    EVERY_LOG_WAS_READ: "Every raw log below the raw root could be read; what was loaded of one before stays in the "
    "tables.",
    EVERY_LINE_IS_STILL_THERE: "No log of these hours, and of those that they look back on, was gone before all of its "
    "lines were loaded.",
    FEW_READ_LINES_ARE_REJECTED: "At most one line in twenty that the run read was rejected, in all files together and "
    "in each of them.",
}
"""Descriptions of the checks of `raw_logs` that are of no suite; each is a warning."""


def suite_specs(graph: Graph, assets: Iterable[str], naming: Naming = STANDALONE) -> list[dg.AssetCheckSpec]:
    """The specs of all checks of these assets that their step evaluates."""
    specs = []
    for asset in assets:
        key, suite = naming.key(asset), graph.suites.get(asset)
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


def _newest_hour(pipeline: Pipeline, due: datetime, now: datetime) -> tuple[datetime | None, bool]:
    """The newest hour that is over, and whether the one that is due was materialized after its end."""
    if not pipeline.open().exists:
        return None, False
    with pipeline.read() as session:
        materialized = PartitionStates(session)
        made_at = materialized.made_at(HourRange.of(due)).get(due, {}).get(SCORED_ASSET)
        return materialized.newest(SCORED_ASSET, now), made_at is not None and made_at >= due + HOUR


def newest_hour_check(late_after: timedelta, own_job: str, naming: Naming = STANDALONE) -> dg.AssetChecksDefinition:
    """A check that the newest finished hour has been materialized, however fresh a backfill of an old one looks.

    Args:
        late_after: how long after its end an hour is late.
        own_job: the job whose run fails for a late hour besides, since nobody looks into a run that succeeded. Runs
            that Dagster's page starts for other hours take the check along, and are not to blame.
        naming: the key of `system_health`.
    """

    @dg.multi_asset_check(
        name=naming.name(NEWEST_HOUR_IS_IN_TIME),
        required_resource_keys={naming.resource},
        specs=[
            dg.AssetCheckSpec(
                NEWEST_HOUR_IS_IN_TIME,
                asset=naming.key(SCORED_ASSET),
                description="The newest hour that ended long enough ago has been materialized.",
            )
        ],
    )
    def _check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        pipeline = naming.pipeline(context)
        now = pipeline.clock()
        due = newest_finished_hour(now, late_after)
        with readable_failures():
            newest, is_in_time = _newest_hour(pipeline, due, now)
        yield dg.AssetCheckResult(
            passed=is_in_time,
            asset_key=naming.key(SCORED_ASSET),
            check_name=NEWEST_HOUR_IS_IN_TIME,
            severity=dg.AssetCheckSeverity.ERROR,
            metadata={
                "due_hour": f"{due:{KEY_FORMAT}}",
                "newest_materialized_hour": f"{newest:{KEY_FORMAT}}" if newest else "none",
            },
        )
        if not is_in_time and context.run.job_name == own_job:
            there = f"the newest is {newest:{KEY_FORMAT}}" if newest else "there is none"
            raise dg.Failure(
                f"the hour {due:{KEY_FORMAT}} is late: it was not materialized after its end; {there}",
                allow_retries=False,
            )

    return _check
