"""Running a suite: the warehouse finds the rows that break an expectation, Great Expectations judges them.

Loading millions of rows into a frame to learn that all are fine would cost more than everything else in a run. So each
batch is looked at where it lies: one aggregation counts, hour by hour, the rows that break each check. Great
Expectations then validates the batch itself where it is small, else the offending rows and a sample of the others. The
two must agree; if they ever do not, that is an internal error and the run stops.
"""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import ibis
import pandas as pd
import pyarrow as pa
from ibis import ir

from health_assets.quality.batches import Source
from health_assets.quality.expectations import Check, Expectation, Suite
from health_assets.warehouse.store import Session

WHOLE_BATCH_ROWS = 2_000
SAMPLE_ROWS = 10


@dataclass(frozen=True)
class HourResult:
    """How many rows of an hour were looked at, and how many break the check."""

    hour: datetime
    element_count: int
    unexpected_count: int


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check over the hours that were looked at.

    Args:
        check: the check.
        hours: one result per hour, in order.
        samples: some of the rows that break it, with the columns that it looks at.
    """

    check: Check
    hours: Sequence[HourResult]
    samples: pd.DataFrame

    @property
    def success(self) -> bool:
        """Whether no row of any hour breaks the check."""
        return not self.unexpected_count

    @property
    def element_count(self) -> int:
        """Rows looked at."""
        return sum(hour.element_count for hour in self.hours)

    @property
    def unexpected_count(self) -> int:
        """Rows that break the check."""
        return sum(hour.unexpected_count for hour in self.hours)


def evaluate(suite: Suite, source: Source, names: Sequence[str] | None = None) -> list[CheckResult]:
    """Evaluate the checks of a suite, or those named, over the hours of `source`.

    Raises:
        RuntimeError: Great Expectations and the warehouse disagree about a row, which is a bug in `expectations`.
    """
    results: dict[str, CheckResult] = {}
    for batch_name, build in suite.batches.items():
        checks = [check for check in suite.checks if check.batch == batch_name and (names is None or check.name in names)]
        if checks:
            results |= {result.check.name: result for result in _evaluate_batch(build(source), checks, source)}
    return [results[check.name] for check in suite.checks if check.name in results]


def write_history(session: Session, asset: str, source: Source, results: Sequence[CheckResult]) -> None:
    """Replace the history of these checks for the hours that were looked at."""
    names = [result.check.name for result in results]
    session.query(
        "DELETE FROM expectation_results WHERE asset = ? AND expectation IN (SELECT unnest(?)) AND hour >= ? AND hour < ?",
        [asset, names, source.hours.start, source.hours.end],
    )
    lines = [(hour, result.check) for result in results for hour in result.hours]
    session.insert_arrow(
        "expectation_results",
        pa.table(
            {
                "hour": pa.array([hour.hour for hour, _ in lines], pa.timestamp("us", "UTC")),
                "asset": pa.array([asset] * len(lines), pa.string()),
                "expectation": pa.array([check.name for _, check in lines], pa.string()),
                "success": pa.array([hour.unexpected_count == 0 for hour, _ in lines], pa.bool_()),
                "element_count": pa.array([hour.element_count for hour, _ in lines], pa.int64()),
                "unexpected_count": pa.array([hour.unexpected_count for hour, _ in lines], pa.int64()),
                "severity": pa.array([check.severity for _, check in lines], pa.string()),
            }
        ),
    )


def _evaluate_batch(rows: ir.Table, checks: Sequence[Check], source: Source) -> list[CheckResult]:
    counts = _count_by_hour(rows, checks, source)
    total = sum(hour["rows"] for hour in counts.values())
    frame, is_whole = _frame(rows, checks, counts, total, source.session)
    expectations = [expectation for check in checks for expectation in check.expectations]
    verdicts = dict(zip(map(id, expectations), _validate(frame, expectations), strict=True))
    results = []
    for place, check in enumerate(checks):
        hours = [
            HourResult(hour, counts[hour]["rows"], counts[hour][f"broken_{place}"]) if hour in counts else HourResult(hour, 0, 0)
            for hour in source.hours
        ]
        result = CheckResult(check, hours, _samples(frame, check))
        _require_agreement(result, [verdicts[id(expectation)] for expectation in check.expectations], is_whole=is_whole)
        results.append(result)
    return results


def _count_by_hour(rows: ir.Table, checks: Sequence[Check], source: Source) -> dict[datetime, dict[str, int]]:
    """Per hour: `rows`, and for each check by its place the rows that break it."""
    broken = {
        f"broken_{place}": _any(check, rows).cast("int64").sum().cast("int64")
        for place, check in enumerate(checks)
        if not any(expectation.is_uniqueness for expectation in check.expectations)
    }
    counted = source.session.arrow(rows.group_by("hour").aggregate(rows=rows.count(), **broken)).to_pylist()
    counts = {hour.pop("hour"): hour for hour in counted}
    for place, check in enumerate(checks):
        if f"broken_{place}" in broken:
            continue
        repeated = _repeated(rows, check.expectations[0].columns)
        by_hour = repeated.group_by("hour").aggregate(broken=repeated.copies.sum().cast("int64"))
        copies = {row["hour"]: row["broken"] for row in source.session.arrow(by_hour).to_pylist()}
        for hour, count in counts.items():
            count[f"broken_{place}"] = copies.get(hour, 0)
    return counts


def _any(check: Check, rows: ir.Table) -> ir.BooleanValue:
    conditions = [expectation.unexpected(rows) for expectation in check.expectations]
    return ibis.or_(*conditions)


def _repeated(rows: ir.Table, columns: Sequence[str]) -> ir.Table:
    """The values of `columns` (with `hour` among them) that stand in more than one row, with their `copies`."""
    counted = rows.group_by(list(columns)).aggregate(copies=rows.count())
    return counted.filter(counted.copies > 1)


def _frame(
    rows: ir.Table, checks: Sequence[Check], counts: dict[datetime, dict[str, int]], total: int, session: Session
) -> tuple[pd.DataFrame, bool]:
    """The rows for Great Expectations, and whether they are the whole batch."""
    wanted = {column for check in checks for expectation in check.expectations for column in expectation.columns}
    shown = [name for name in rows.columns if name in wanted or name in _IDENTITY]
    if total <= WHOLE_BATCH_ROWS:
        return session.arrow(rows.select(shown)).to_pandas(), True
    pieces = [rows.select(shown).limit(WHOLE_BATCH_ROWS)]
    for place, check in enumerate(checks):
        if not any(hour[f"broken_{place}"] for hour in counts.values()):
            continue
        if check.expectations[0].is_uniqueness:
            columns = check.expectations[0].columns
            offending = rows.semi_join(_repeated(rows, columns), columns).order_by(columns)
        else:
            offending = rows.filter(_any(check, rows))
        pieces.append(offending.select(shown).limit(WHOLE_BATCH_ROWS))
    frames = [session.arrow(piece).to_pandas() for piece in pieces]
    if len(frames) == 1:
        return frames[0], False
    # a row may be in the sample and among the offending ones; a second copy must not look like a repetition
    return pd.concat(frames[1:] + frames[:1], ignore_index=True), False


_IDENTITY = ("hour", "agent_id", "execution_id", "trigger_id", "call_id", "source_file", "line_number", "column_name", "state")


def _samples(frame: pd.DataFrame, check: Check) -> pd.DataFrame:
    if frame.empty:
        return frame
    wanted = {column for expectation in check.expectations for column in expectation.columns}
    shown = [name for name in frame.columns if name in wanted or name in _IDENTITY]
    if check.expectations[0].is_uniqueness:
        is_broken = frame.duplicated(check.expectations[0].columns, keep=False)
    else:
        table = ibis.memtable(frame)
        is_broken = table.select(broken=_any(check, table)).execute()["broken"]
    return frame.loc[is_broken.to_numpy(), shown].head(SAMPLE_ROWS)


def _require_agreement(result: CheckResult, verdicts: Sequence[bool], *, is_whole: bool) -> None:
    if all(verdicts) != result.success:
        raise RuntimeError(
            f"Great Expectations and the warehouse disagree about {result.check.name}: "
            f"{result.unexpected_count} rows break it, verdicts {verdicts}, whole batch {is_whole}"
        )


def _validate(frame: pd.DataFrame, expectations: Sequence[Expectation]) -> list[bool]:
    """Great Expectations' verdict on each expectation."""
    gx, batch_definition = _great_expectations()
    batch = batch_definition.get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(name="batch")
    for place, expectation in enumerate(expectations):
        made = getattr(gx.expectations, expectation.type)(**expectation.arguments, meta={"place": place})
        suite.expectations.append(made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from inside Great Expectations
        validated = batch.validate(suite, result_format="BOOLEAN_ONLY")
    verdicts: dict[int, bool] = {}
    for outcome in validated.results:
        if outcome.exception_info and outcome.exception_info.get("raised_exception"):
            raise RuntimeError(f"Great Expectations could not evaluate {outcome.expectation_config}: {outcome.exception_info}")
        verdicts[outcome.expectation_config.meta["place"]] = bool(outcome.success)
    return [verdicts[place] for place in range(len(expectations))]


@cache
def _great_expectations() -> tuple[Any, Any]:
    """The library and a batch definition; importing takes seconds, so only who validates pays for it."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("frames").add_dataframe_asset("frame")
    return gx, asset.add_batch_definition_whole_dataframe("whole")
