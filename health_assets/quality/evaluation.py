"""Running a suite: Great Expectations judges small batches whole, and of large ones the rows that may be wrong.

Loading millions of rows into a frame to learn that all are fine would cost more than everything else in a run. So of a
large batch the warehouse counts, hour by hour, the rows that break each check, and Great Expectations validates those
rows and a sample of the others. The two must agree; if they ever do not, that is an internal error and the run stops.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

import ibis
import pandas as pd
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourGroups, HourRange
from health_assets.quality.batches import Source
from health_assets.quality.expectations import Check, Expectation, RowsMaker, Suite
from health_assets.quality.gx_internals import (
    importing_without_unused_modules,
    remembering,
    without_progress_bars,
)
from health_assets.scoring.author_errors import require_columns, written_by_an_author
from health_assets.warehouse.session import Session

SMALL_BATCH_ROWS = 2_000
SAMPLE_ROWS = 10


@dataclass(frozen=True)
class HourResult:
    """The number of rows of an hour that were looked at, and the number that break the check."""

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
        HealthAssetsError: a check looks at a column that its batch does not have.
        RuntimeError: Great Expectations and the warehouse disagree about a row, which is a bug in `expectations`.
    """
    with written_by_an_author(f"the checks of {suite.asset}"):
        return _evaluate(suite, source, names)


def _evaluate(suite: Suite, source: Source, names: Sequence[str] | None) -> list[CheckResult]:
    asked = [check for check in suite.checks if names is None or check.name in names]
    by_hour = [check for check in asked if check.batch == "hours"]
    outcomes = _evaluate_hours(suite.hours(source), by_hour, source) if by_hour else []
    for batch_name, make_rows in suite.rows.items():
        checks = [check for check in asked if check.batch == batch_name]
        if checks:
            found = _evaluate_rows(make_rows, checks, source, is_own=batch_name == "rows")
            outcomes += _of_all_rows(found, source) if batch_name in suite.searches else found
    by_name = {outcome.check.name: outcome for outcome in outcomes}
    return [by_name[check.name] for check in asked]


def _evaluate_rows(make_rows: RowsMaker, checks: Sequence[Check], source: Source, *, is_own: bool) -> list[CheckResult]:
    own_rows = sum(source.row_counts.values())
    if not own_rows:
        return [
            CheckResult(check, [HourResult(hour, 0, 0) for hour in source.asked], pd.DataFrame()) for check in checks
        ]
    rows, row_count = make_rows(source), own_rows
    _require_columns(rows.columns, checks, source)
    if not is_own:  # something looked for among many rows, of which mostly there is nothing: look once
        rows, row_count = source.session.kept(rows)
    if row_count > SMALL_BATCH_ROWS:
        return _evaluate_large(rows, checks, source)
    return _evaluate_small(source.session.arrow(rows.select(_shown(rows.columns, checks))).to_pandas(), checks, source)


def _evaluate_hours(frame: pd.DataFrame, checks: Sequence[Check], source: Source) -> list[CheckResult]:
    _require_columns(frame.columns, checks, source)
    return _evaluate_small(frame, checks, source)


def _require_columns(there: Iterable[str], checks: Sequence[Check], source: Source) -> None:
    columns = [*there]
    for check in checks:
        looked_at = {name for expectation in check.expectations for name in expectation.columns}
        what = f"the check {check.name} of {source.asset} looks at batch {check.batch!r}, which"
        require_columns(what, looked_at, columns)


def _of_all_rows(outcomes: Sequence[CheckResult], source: Source) -> list[CheckResult]:
    """The outcomes of a search, with the rows that were searched: nothing found is not nothing looked at."""
    sizes = source.row_counts
    return [
        replace(outcome, hours=[replace(hour, element_count=sizes.get(hour.hour, 0)) for hour in outcome.hours])
        for outcome in outcomes
    ]


def of_chunks(found: Sequence[Sequence[CheckResult]]) -> list[CheckResult]:
    """One result for each check, of what was found in several ranges of hours; the checks are the same in each."""
    return [
        CheckResult(
            results[0].check,
            [hour for result in results for hour in result.hours],
            pd.concat([result.samples for result in results]).head(SAMPLE_ROWS),
        )
        for results in zip(*found, strict=True)
    ]


def write_history(session: Session, asset: str, hours: HourRange | HourGroups, results: Sequence[CheckResult]) -> None:
    """Replace the history of these checks for the hours that were looked at."""
    names = [result.check.name for result in results]
    for own in hours.ranges:
        session.delete_hours("expectation_results", own, asset=[asset], expectation=names)
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


def _evaluate_small(frame: pd.DataFrame, checks: Sequence[Check], source: Source) -> list[CheckResult]:
    """Let Great Expectations judge the whole batch."""
    sizes = _sizes(frame)
    outcomes = []
    none = frame.head(0)
    for check, positions in zip(checks, _validate(frame, checks), strict=True):
        broken = _asked(frame.iloc[sorted(set().union(*positions))], source) if any(positions) else none
        broken_sizes = _sizes(broken)
        hours = [HourResult(hour, sizes.get(hour, 0), broken_sizes.get(hour, 0)) for hour in source.asked]
        outcomes.append(CheckResult(check, hours, _samples(broken, check)))
    return outcomes


def _asked(broken: pd.DataFrame, source: Source) -> pd.DataFrame:
    """The rows of the hours that the checks are about."""
    return broken[broken["hour"].isin(list(source.asked))] if source.asked.has_holes and len(broken) else broken


def _sizes(frame: pd.DataFrame) -> dict[datetime, int]:
    """The number of rows of each hour in a frame."""
    return {} if frame.empty else frame.groupby("hour").size().to_dict()


def _evaluate_large(rows: ir.Table, checks: Sequence[Check], source: Source) -> list[CheckResult]:
    """Count in the warehouse; Great Expectations judges the rows that break a check, and a sample of the others."""
    counts = _counts(rows, checks, source)
    outcomes = []
    for place, check in enumerate(checks):
        hours = [HourResult(hour, *counts.get(hour, {}).get(place, (0, 0))) for hour in source.asked]
        broken = (
            _offending(rows, check, source.session) if any(hour.unexpected_count for hour in hours) else pd.DataFrame()
        )
        outcomes.append(CheckResult(check, hours, _samples(broken, check)))
        if len(broken) != len(set().union(*_validate(broken, [check])[0])):
            raise RuntimeError(f"Great Expectations passes rows that break {check.name} in the warehouse")
    sound = [outcome.check for outcome in outcomes if outcome.success]
    sample = source.session.arrow(rows.select(_shown(rows.columns, checks)).limit(SMALL_BATCH_ROWS)).to_pandas()
    for check, positions in zip(sound, _validate(sample, sound), strict=True):
        if any(positions):
            raise RuntimeError(f"Great Expectations refuses rows that keep {check.name} in the warehouse")
    return outcomes


def _shown(columns: Sequence[str], checks: Sequence[Check]) -> list[str]:
    """The columns that the checks look at, and those that tell rows apart."""
    wanted = {column for check in checks for expectation in check.expectations for column in expectation.columns}
    return [name for name in columns if name in wanted or name in _IDENTITY]


def _samples(broken: pd.DataFrame, check: Check) -> pd.DataFrame:
    if broken.empty:
        return pd.DataFrame()
    samples = broken[_shown(broken.columns, [check])].head(SAMPLE_ROWS)
    looked_at = {name for expectation in check.expectations for name in expectation.columns}
    said = [name for name in samples.columns if name in looked_at or (samples[name].astype(str) != "").any()]
    return samples[said]


Counts = dict[datetime, dict[int, tuple[int, int]]]
"""Per hour and check by its place: rows looked at, rows that break it."""


def _is_broken(check: Check, rows: ir.Table) -> ir.BooleanValue:
    return ibis.or_(*(expectation.unexpected(rows) for expectation in check.expectations))


def _counts(rows: ir.Table, checks: Sequence[Check], source: Source) -> Counts:
    by_row = {f"broken_{place}": check for place, check in enumerate(checks) if not check.is_uniqueness}
    sums = {name: _is_broken(check, rows).cast("int64").sum() for name, check in by_row.items()}
    counted = source.session.arrow(rows.group_by("hour").aggregate(rows=rows.count(), **sums)).to_pylist()
    counts: Counts = {
        row["hour"]: {place: (row["rows"], int(row.get(f"broken_{place}", 0))) for place in range(len(checks))}
        for row in counted
    }
    for place, check in enumerate(checks):
        if check.is_uniqueness:
            repeated = _repeated(rows, check)
            by_hour = repeated.group_by("hour").aggregate(copies=repeated.copies.sum())
            for row in source.session.arrow(by_hour).to_pylist():
                counts[row["hour"]][place] = (counts[row["hour"]][place][0], int(row["copies"]))
    return counts


def _repeated(rows: ir.Table, check: Check) -> ir.Table:
    """The values of the check's columns (with `hour` among them) that stand in several rows, with their `copies`."""
    counted = rows.group_by(check.expectations[0].columns).aggregate(copies=rows.count())
    return counted.filter(counted.copies > 1)


def _offending(rows: ir.Table, check: Check, session: Session) -> pd.DataFrame:
    """Some of the rows that break a check, copies of a repeated id next to each other."""
    if check.is_uniqueness:
        columns = check.expectations[0].columns
        repeated = _repeated(rows, check)
        same = [rows[name].identical_to(repeated[name]) for name in columns]  # values that are missing agree, too
        broken = rows.semi_join(repeated, same).order_by(columns)
    else:
        broken = rows.filter(_is_broken(check, rows))
    return session.arrow(broken.select(_shown(rows.columns, [check])).limit(SMALL_BATCH_ROWS)).to_pandas()


_IDENTITY = (
    "hour", "agent_id", "execution_id", "trigger_id", "call_id", "model", "trace_id", "session_id", "source_file",
    "line_number", "state", "missing_columns", "changed_columns",
)  # fmt: skip


def _validate(frame: pd.DataFrame, checks: Sequence[Check]) -> list[list[set[int]]]:
    """For each check and each of its expectations, the positions of the rows that Great Expectations refuses."""
    if frame.empty:
        return [[set() for _ in check.expectations] for check in checks]
    expectations = [expectation for check in checks for expectation in check.expectations]
    refused = dict(zip(map(id, expectations), _verdicts(frame, expectations), strict=True))
    failed = [expectation for expectation in expectations if not refused[id(expectation)]]
    positions = dict(zip(map(id, failed), _refused_positions(frame, failed), strict=True))
    return [[positions.get(id(expectation), set()) for expectation in check.expectations] for check in checks]


def _verdicts(frame: pd.DataFrame, expectations: Sequence[Expectation]) -> list[bool]:
    return [bool(outcome.success) for outcome in _run(frame, expectations, "BOOLEAN_ONLY")]


def _refused_positions(frame: pd.DataFrame, expectations: Sequence[Expectation]) -> list[set[int]]:
    return [set(outcome.result["unexpected_index_list"]) for outcome in _run(frame, expectations, "COMPLETE")]


def _run(frame: pd.DataFrame, expectations: Sequence[Expectation], result_format: str) -> list[Any]:
    """Great Expectations' outcomes, in the order of the expectations."""
    if not expectations:
        return []
    gx, batch_definition, kinds = _great_expectations()
    batch = batch_definition.get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(name="batch")
    for place, expectation in enumerate(expectations):
        suite.expectations.append(kinds(expectation.type)(**expectation.arguments, meta={"place": place}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Great Expectations' own
        outcomes = batch.validate(suite, result_format=result_format).results
    for outcome in outcomes:
        if outcome.exception_info and outcome.exception_info.get("raised_exception"):
            raise RuntimeError(
                f"Great Expectations could not evaluate {outcome.expectation_config}: {outcome.exception_info}"
            )
    return sorted(outcomes, key=lambda outcome: outcome.expectation_config.meta["place"])


def import_great_expectations() -> None:
    """Import what checks need now rather than with the first of them."""
    _great_expectations()


@cache
def _great_expectations() -> tuple[Any, Any, Callable[[str], Any]]:
    """The library, a batch definition, and its expectations by name.

    Importing takes seconds, so only who validates pays for it.
    """
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    with warnings.catch_warnings(), importing_without_unused_modules():
        warnings.simplefilter("ignore", DeprecationWarning)  # Great Expectations' own
        import great_expectations as gx

        context = gx.get_context(mode="ephemeral")
        without_progress_bars(context)
    asset = context.data_sources.add_pandas("frames").add_dataframe_asset("frame")
    kinds = cache(lambda name: remembering(getattr(gx.expectations, name)))
    return gx, asset.add_batch_definition_whole_dataframe("whole"), kinds
