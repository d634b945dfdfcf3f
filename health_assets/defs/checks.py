"""Asset checks: one op per asset evaluates its suite, reports each check to Dagster and writes the history."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

import dagster as dg
import pandas as pd

from health_assets.core.hours import HOUR, KEY_FORMAT, HourGroups, HourRange
from health_assets.defs.check_marks import CheckMark
from health_assets.defs.holding import without_held
from health_assets.defs.partitions import run_groups
from health_assets.defs.pipeline import Pipeline, readable_failures
from health_assets.defs.placement import ALONE, Placement
from health_assets.defs.specs import FIRST
from health_assets.defs.summaries import MANY_REJECTED, lost_summary, many_rejected_summary, unreadable_summary
from health_assets.pipeline.planning import newest_finished_hour
from health_assets.quality.batches import Source
from health_assets.quality.check_names import MOST_REJECTED_SHARE
from health_assets.quality.evaluation import CheckResult, HourResult, evaluate, of_pieces, write_history
from health_assets.quality.expectations import Check, Suite
from health_assets.systems.declared_assets import DERIVED
from health_assets.systems.suites import SUITES
from health_assets.warehouse.account_digests import (
    EVERY_LINE_IS_STILL_THERE,
    EVERY_LOG_WAS_READ,
    FEW_READ_LINES_ARE_REJECTED,
)
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.holds import Holds, causes
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.materialized import MaterializedHours
from health_assets.warehouse.session import Session

SEVERITIES = {"error": dg.AssetCheckSeverity.ERROR, "warn": dg.AssetCheckSeverity.WARN}
HOURS_SHOWN = 24
FAILED_HOURS = "failed_hours"
"""Under this key stand the hours that break a check: how many, and the first ones."""
NEWEST_HOUR_IS_IN_TIME = "newest_hour_is_in_time"


def suite_checks(suite: Suite, placement: Placement = ALONE) -> dg.AssetChecksDefinition:
    """The asset checks of a suite."""
    key = placement.key(suite.asset)

    @dg.multi_asset_check(
        name=placement.name(f"check_{suite.asset}"),
        specs=[_check_spec(key, check) for check in suite.checks],
        required_resource_keys={placement.resource},
        can_subset=True,
        op_tags=FIRST if suite.asset in DERIVED and DERIVED[suite.asset].goes_first else None,
    )
    def _checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        pipeline = placement.pipeline(context)
        hours = run_groups(context)
        names = [key.name for key in context.selected_asset_check_keys]
        with readable_failures():
            targets = pipeline.load_targets()
        with pipeline.write() as session:
            left = without_held(hours, Holds(session).hours(hours.span))
            if left is None:  # a held hour is as it was; `every_hour_was_built` alone fails for it
                yield from _nothing_to_check(key, suite, names, hours)
                return
            mark = CheckMark(session, suite, pipeline.settings, targets, left)
            found = [
                evaluate(
                    suite,
                    Source(
                        asset=suite.asset,
                        session=session,
                        hours=piece,
                        targets=targets,
                        settings=pipeline.settings,
                        some=left.within(piece),
                    ),
                    names,
                )
                for piece in left.pieces()
            ]
            results = of_pieces(found)
            write_history(session, suite.asset, left, results)
            mark.note(names, context.run)
        for result in results:
            yield _check_result(key, result, left)

    return _checks


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


def _nothing_to_check(
    asset: dg.AssetKey, suite: Suite, names: Collection[str], hours: HourGroups
) -> Iterator[dg.AssetCheckResult]:
    """Tell Dagster of checks that look at nothing, since all hours are held; the history stays as it is."""
    for check in suite.checks:
        if check.name in names:
            yield dg.AssetCheckResult(
                asset_key=asset,
                check_name=check.name,
                passed=True,
                severity=SEVERITIES[check.severity],
                metadata={
                    "hours": dg.MetadataValue.text(f"none, since all are held: {hours}"),
                    "element_count": dg.MetadataValue.int(0),
                    "unexpected_count": dg.MetadataValue.int(0),
                },
            )


def _check_result(asset: dg.AssetKey, result: CheckResult, hours: HourGroups) -> dg.AssetCheckResult:
    failed = [f"{hour.hour:{KEY_FORMAT}}" for hour in result.hours if hour.unexpected_count]
    metadata: dict[str, dg.MetadataValue] = {
        "hours": dg.MetadataValue.text(str(hours)),
        "element_count": dg.MetadataValue.int(result.element_count),
        "unexpected_count": dg.MetadataValue.int(result.unexpected_count),
    }
    if failed:
        metadata[FAILED_HOURS] = dg.MetadataValue.text(f"{len(failed)}: {', '.join(failed[:HOURS_SHOWN])}")
        metadata["failing_rows"] = _table(result.samples)
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=result.check.name,
        passed=result.success,
        severity=SEVERITIES[result.check.severity],
        metadata=metadata,
    )


def _table(frame: pd.DataFrame) -> dg.MetadataValue:
    records = [
        dg.TableRecord(
            {name: value if isinstance(value, int | float | bool) else str(value) for name, value in row.items()}
        )
        for row in frame.to_dict("records")
    ]
    schema = dg.TableSchema([dg.TableColumn(name, "string") for name in frame.columns])
    return dg.MetadataValue.table(records, schema)


def _newest_hour(pipeline: Pipeline, due: datetime, now: datetime) -> tuple[datetime | None, bool, Sequence[str]]:
    """The newest hour that is over, whether the one that is due was materialized after its end, and why it is held."""
    with readable_failures():
        has_warehouse = pipeline.open().exists
    if not has_warehouse:
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


def _write_own_history(session: Session, name: str, hours: HourGroups, found: Sequence[HourResult]) -> None:
    """Write the history of a warning about `raw_logs` that is of no suite."""
    write_history(
        session,
        "raw_logs",
        hours,
        [CheckResult(Check(name=name, expectations=(), severity="warn"), found, pd.DataFrame())],
    )


def every_log_was_read_check(placement: Placement = ALONE) -> dg.AssetChecksDefinition:
    """A check that no raw log was left out of a run because it cannot be read."""

    @dg.asset_check(
        asset=placement.key("raw_logs"), name=EVERY_LOG_WAS_READ, required_resource_keys={placement.resource}
    )
    def every_log_was_read(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        """Every raw log below the raw root could be read; what was loaded of one before stays in the tables."""
        pipeline = placement.pipeline(context)
        hours = run_groups(context)
        with pipeline.write() as session:
            unreadable = Ledger(session).unreadable()
            logs = len(Ledger(session).known_files() | unreadable.keys())
            # a log that nobody could read may hold events of any hour
            _write_own_history(
                session, EVERY_LOG_WAS_READ, hours, [HourResult(hour, logs, len(unreadable)) for hour in hours]
            )
        reasons = unreadable_summary(unreadable)
        return dg.AssetCheckResult(
            passed=not unreadable,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"unexpected_count": dg.MetadataValue.int(len(unreadable)), **reasons},
        )

    return every_log_was_read


def every_line_is_still_there_check(placement: Placement = ALONE) -> dg.AssetChecksDefinition:
    """A check that the results of a run rest on every line, also of logs that are gone by now."""

    @dg.asset_check(
        asset=placement.key("raw_logs"), name=EVERY_LINE_IS_STILL_THERE, required_resource_keys={placement.resource}
    )
    def every_line_is_still_there(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        """No log of these hours, and of those that they look back on, was gone before all of its lines were loaded."""
        pipeline = placement.pipeline(context)
        hours, reach = run_groups(context), pipeline.settings.reach_hours
        rested_on = HourRange(hours.start - reach * HOUR, hours.end)
        with pipeline.write() as session:
            lost = FileLedger(session).lost(rested_on)
            counts = FileLedger(session).lines_and_lost(rested_on, reach)
            _write_own_history(
                session, EVERY_LINE_IS_STILL_THERE, hours, [HourResult(hour, *counts[hour]) for hour in hours]
            )
        return dg.AssetCheckResult(
            passed=not lost,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"unexpected_count": dg.MetadataValue.int(sum(log.lines for log in lost)), **lost_summary(lost)},
        )

    return every_line_is_still_there


def few_read_lines_are_rejected_check(placement: Placement = ALONE) -> dg.AssetChecksDefinition:
    """A check of the lines that a run read, whatever hours their times name."""
    asset = placement.key("raw_logs")

    @dg.asset_check(asset=asset, name=FEW_READ_LINES_ARE_REJECTED, required_resource_keys={placement.resource})
    def few_read_lines_are_rejected(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        """At most one line in twenty that the run read was rejected, in all files together and in each of them."""
        read, rejected, files = _read_in(context, asset)
        is_too_much = bool(files) or rejected > MOST_REJECTED_SHARE * read
        unexpected = rejected if is_too_much else 0
        hours = run_groups(context)
        with placement.pipeline(context).write() as session:
            _write_own_history(
                session, FEW_READ_LINES_ARE_REJECTED, hours, [HourResult(hour, read, unexpected) for hour in hours]
            )
        return dg.AssetCheckResult(
            passed=not is_too_much,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={
                "element_count": dg.MetadataValue.int(read),
                "unexpected_count": dg.MetadataValue.int(unexpected),
                **many_rejected_summary(files),
            },
        )

    return few_read_lines_are_rejected


def _read_in(context: dg.AssetCheckExecutionContext, asset: dg.AssetKey) -> tuple[int, int, Sequence[str]]:
    """Lines and spans that this run read and rejected, and sentences about files with too many rejected ones."""
    found = context.instance.get_latest_materialization_event(asset)
    if found is None or found.run_id != context.run.run_id or found.asset_materialization is None:
        return 0, 0, ()
    told = {name: value.value for name, value in found.asset_materialization.metadata.items()}
    return told["lines_read"] + told["spans_read"], told["lines_rejected"], told.get(MANY_REJECTED, ())


def all_suite_checks(
    placement: Placement = ALONE, tables: Collection[str] | None = None
) -> list[dg.AssetChecksDefinition]:
    """The checks of every suite, or of those of these tables."""
    return [suite_checks(suite, placement) for suite in SUITES.values() if tables is None or suite.asset in tables]
