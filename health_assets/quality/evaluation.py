"""Running a suite: Great Expectations judges small batches whole, and of large ones the rows that may be wrong.

Loading millions of rows into a frame to learn that all are fine would cost more than everything else in a run. So of a
large batch the warehouse counts, hour by hour, the rows that break each check, and Great Expectations validates those
rows and a sample of the others. The two must agree; if they ever do not, that is an internal error and the run stops.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import NamedTuple

import ibis
import pandas as pd
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourGroups, HourRange
from health_assets.quality.batches import Source
from health_assets.quality.expectations import Check, RowsMaker, Suite
from health_assets.quality.validation import Batch, unexpected_rows
from health_assets.scoring.author_errors import require_columns, written_by_an_author
from health_assets.scoring.relations import of_hours
from health_assets.warehouse.fingerprints import Fingerprints
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


class Request(NamedTuple):
    """The checks of a suite that are asked for, or all where none is named, over the hours of a source."""

    suite: Suite
    source: Source
    names: Sequence[str] | None = None

    @property
    def checks(self) -> list[Check]:
        """The checks that are asked for, in the order of the suite."""
        return [check for check in self.suite.checks if self.names is None or check.name in self.names]


class _SmallBatch(NamedTuple):
    """The rows of a batch that Great Expectations judges whole, and the checks that look at them."""

    frame: pd.DataFrame
    checks: Sequence[Check]
    source: Source


def evaluate(suite: Suite, source: Source, names: Sequence[str] | None = None) -> list[CheckResult]:
    """Evaluate the checks of a suite, or those named, over the hours of `source`; raises as `evaluate_all`."""
    [results] = evaluate_all([Request(suite, source, names)])
    return results


def evaluate_all(requests: Sequence[Request]) -> list[list[CheckResult]]:
    """Evaluate the checks of several suites, of which Great Expectations judges all small batches together.

    Raises:
        HealthAssetsError: a check looks at a column that its batch does not have.
        RuntimeError: Great Expectations and the warehouse disagree about a row, which is a bug in `expectations`.
    """
    read = list[tuple[list[_SmallBatch], list[CheckResult]]]()
    for request in requests:
        with written_by_an_author(f"the checks of {request.suite.asset}"):
            read.append(_read(request))
    judged = iter(_evaluate_small([batch for small, _ in read for batch in small]))
    results = list[list[CheckResult]]()
    for request, (small, outcomes) in zip(requests, read, strict=True):
        outcomes += [outcome for own in islice(judged, len(small)) for outcome in own]
        results.append(_in_order(request, outcomes))
    return results


def _read(request: Request) -> tuple[list[_SmallBatch], list[CheckResult]]:
    """The small batches of a suite, and the outcomes of checks whose batch is large or has no row."""
    suite, source, asked = request.suite, request.source, request.checks
    small, outcomes = list[_SmallBatch](), list[CheckResult]()
    checks = {
        name: own for name in ("hours", *suite.rows) if (own := [check for check in asked if check.batch == name])
    }
    for name, own in checks.items():
        rows = suite.hours(source) if name == "hours" else _rows(suite.rows[name], source, is_own=name == "rows")
        if rows is None:
            outcomes += [_of_no_row(check, source) for check in own]
            continue
        _require_columns(rows.columns, own, source)
        if isinstance(rows, pd.DataFrame):
            small.append(_SmallBatch(rows, own, source))
        elif rows.row_count > SMALL_BATCH_ROWS:
            outcomes += _evaluate_large(rows.rows, own, source)
        else:
            frame = source.session.arrow(rows.rows.select(_shown(rows.columns, own))).to_pandas()
            small.append(_SmallBatch(frame, own, source))
    return small, outcomes


def _in_order(request: Request, outcomes: Sequence[CheckResult]) -> list[CheckResult]:
    """The outcomes in the order of the suite; those of a search tell of all rows that were searched."""
    by_name = {outcome.check.name: outcome for outcome in outcomes}
    ordered = [by_name[check.name] for check in request.checks]
    searched = request.suite.prefiltered
    return [_of_all_rows(one, request.source) if one.check.batch in searched else one for one in ordered]


class _Rows(NamedTuple):
    """Rows to look at, and how many they are."""

    rows: ir.Table
    row_count: int

    @property
    def columns(self) -> Sequence[str]:
        return self.rows.columns


def _rows(make_rows: RowsMaker, source: Source, *, is_own: bool) -> _Rows | None:
    """The rows of a batch; None where the asset has none."""
    row_count = sum(source.row_counts.values())
    if not row_count:
        return None
    rows = make_rows(source)
    # what is looked for among many rows, of which mostly there is nothing, is looked for once
    return _Rows(rows, row_count) if is_own else _Rows(*source.session.persist(rows))


def _of_no_row(check: Check, source: Source) -> CheckResult:
    return CheckResult(check, [HourResult(hour, 0, 0) for hour in source.asked], pd.DataFrame())


def _require_columns(there: Iterable[str], checks: Sequence[Check], source: Source) -> None:
    columns = [*there]
    for check in checks:
        looked_at = {name for expectation in check.expectations for name in expectation.columns}
        what = f"the check {check.name} of {source.asset} looks at batch {check.batch!r}, which"
        require_columns(what, looked_at, columns)


def _of_all_rows(outcome: CheckResult, source: Source) -> CheckResult:
    """The outcome of a search, with the rows that were searched: nothing found is not nothing looked at."""
    sizes = source.row_counts
    return replace(outcome, hours=[replace(hour, element_count=sizes.get(hour.hour, 0)) for hour in outcome.hours])


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


def write_history(
    session: Session, hours: HourRange | HourGroups, results: Mapping[str, Sequence[CheckResult]]
) -> None:
    """Replace the history of these checks, by asset, for the hours that were looked at."""
    Fingerprints(session).forget_outcomes(
        [(asset, result.check.name) for asset, own in results.items() for result in own], hours
    )
    lines = [(asset, result.check, hour) for asset, own in results.items() for result in own for hour in result.hours]
    session.insert_arrow(
        "expectation_results",
        pa.table(
            {
                "hour": pa.array([hour.hour for _, _, hour in lines], pa.timestamp("us", "UTC")),
                "asset": pa.array([asset for asset, _, _ in lines], pa.string()),
                "expectation": pa.array([check.name for _, check, _ in lines], pa.string()),
                "success": pa.array([hour.unexpected_count == 0 for _, _, hour in lines], pa.bool_()),
                "element_count": pa.array([hour.element_count for _, _, hour in lines], pa.int64()),
                "unexpected_count": pa.array([hour.unexpected_count for _, _, hour in lines], pa.int64()),
                "severity": pa.array([check.severity for _, check, _ in lines], pa.string()),
            }
        ),
    )


def _evaluate_small(batches: Sequence[_SmallBatch]) -> list[list[CheckResult]]:
    """Let Great Expectations judge batches whole; gives the results of each."""
    refused = [
        found
        for some in _groups(batches)
        for found in unexpected_rows([_batch(batch.frame, batch.checks) for batch in some])
    ]
    return [_results(batch, iter(found)) for batch, found in zip(batches, refused, strict=True)]


def _groups(batches: Iterable[_SmallBatch]) -> Iterator[list[_SmallBatch]]:
    """Group batches up to `SMALL_BATCH_ROWS` rows, since Great Expectations gets one frame for each group."""
    group, rows = list[_SmallBatch](), 0
    for batch in batches:
        if group and rows + len(batch.frame) > SMALL_BATCH_ROWS:
            yield group
            group, rows = [], 0
        group.append(batch)
        rows += len(batch.frame)
    if group:
        yield group


def _results(batch: _SmallBatch, refused: Iterator[set[int]]) -> list[CheckResult]:
    """The results of a batch's checks, of the rows that each of their expectations refuses."""
    frame, source, sizes = batch.frame, batch.source, _sizes(batch.frame)
    results = []
    for check in batch.checks:
        positions = set().union(*islice(refused, len(check.expectations)))
        broken = _asked(frame.iloc[sorted(positions)], source)
        broken_sizes = _sizes(broken)
        hours = [HourResult(hour, sizes.get(hour, 0), broken_sizes.get(hour, 0)) for hour in source.asked]
        results.append(CheckResult(check, hours, _samples(broken, check)))
    return results


def _batch(frame: pd.DataFrame, checks: Sequence[Check]) -> Batch:
    return Batch(frame, [expectation for check in checks for expectation in check.expectations])


def _asked(broken: pd.DataFrame, source: Source) -> pd.DataFrame:
    """The rows of the hours that the checks are about."""
    return broken[broken["hour"].isin(list(source.asked))] if source.asked.has_holes and len(broken) else broken


def _sizes(frame: pd.DataFrame) -> dict[datetime, int]:
    """The number of rows of each hour in a frame."""
    return {} if frame.empty else frame.groupby("hour").size().to_dict()


def _evaluate_large(rows: ir.Table, checks: Sequence[Check], source: Source) -> list[CheckResult]:
    """Count in the warehouse; Great Expectations judges the rows that break a check, and a sample of the others."""
    if source.asked.has_holes:
        rows = of_hours(rows, source.asked)
    counts = _counts(rows, checks, source)
    outcomes = []
    for place, check in enumerate(checks):
        hours = [HourResult(hour, *counts.get(hour, {}).get(place, (0, 0))) for hour in source.asked]
        broken = (
            _offending(rows, check, source.session) if any(hour.unexpected_count for hour in hours) else pd.DataFrame()
        )
        outcomes.append(CheckResult(check, hours, _samples(broken, check)))
        [refused] = unexpected_rows([_batch(broken, [check])])
        if len(broken) != len(set().union(*refused)):
            raise RuntimeError(f"Great Expectations passes rows that break {check.name} in the warehouse")
    sound = [outcome.check for outcome in outcomes if outcome.success]
    sample = source.session.arrow(rows.select(_shown(rows.columns, checks)).limit(SMALL_BATCH_ROWS)).to_pandas()
    refused_of = zip(sound, unexpected_rows([_batch(sample, [check]) for check in sound]), strict=True)
    if names := [check.name for check, refused in refused_of if any(refused)]:
        raise RuntimeError(f"Great Expectations refuses rows that keep {', '.join(names)} in the warehouse")
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
