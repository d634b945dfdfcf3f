"""Checks of an asset's hours: its suite, and the checks of `raw_logs` that are of no suite.

What belongs here: evaluating them within a session, writing their history and the fingerprint of hours that all of them
have judged. What does not: declaring and evaluating one suite (`quality`), and what follows from a failure (`engine`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import pandas as pd

from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.pipeline.events import Checked, Metadata
from health_assets.pipeline.fingerprints import RunFingerprint, checks_fingerprint, judged_rows, upstream
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.plan import Graph, Plan
from health_assets.pipeline.summaries import lost_summary, many_rejected_summary, unreadable_summary
from health_assets.quality.batches import Source
from health_assets.quality.check_names import MOST_REJECTED_SHARE
from health_assets.quality.evaluation import (
    CheckResult,
    HourResult,
    Request,
    evaluate_all,
    of_chunks,
    write_history,
)
from health_assets.quality.expectations import Check
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.fingerprints import (
    EVERY_LINE_IS_STILL_THERE,
    EVERY_LOG_WAS_READ,
    FEW_READ_LINES_ARE_REJECTED,
    Fingerprints,
)
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.location import is_spark
from health_assets.warehouse.session import Session


def check_suites(
    session: Session, graph: Graph, settings: Settings, targets: Targets, plan: Plan, assets: Iterable[str]
) -> list[Checked]:
    """Evaluate those checks of some assets' suites that the plan asks for.

    Raises:
        HealthAssetsError: a check looks at a column that its batch does not have.
    """
    names = {asset: own for asset in assets if (own := _asked_checks(graph, plan, asset))}
    if not names:
        return []
    hours = plan.hours
    run = RunFingerprint.of(settings, targets, hours)
    sources = {asset: {*upstream(asset, graph.derived), asset} for asset in names}
    states = run.input_states(session, set().union(*sources.values()))
    rows = dict[str, dict[str, str]]()
    for asset, own in names.items():
        # on a cluster a run is always made, so that nobody asks for a fingerprint
        if not is_spark(settings.warehouse) and len(own) == len(graph.suites[asset].checks):
            rows[asset] = judged_rows(session, asset, hours)
    results = _evaluated(session, graph, settings, targets, hours, names)
    write_history(session, hours, results)
    fingerprints = Fingerprints(session)
    outcomes = fingerprints.of_checks(rows, hours) if rows else {}
    noted = {
        asset: checks_fingerprint(
            run.with_inputs(states, sources[asset]), plan.records_in, judged_digests, outcomes.get(asset)
        )
        for asset, judged_digests in rows.items()
    }
    fingerprints.note_checks(noted, hours)
    return [_checked(asset, result, hours) for asset, own in results.items() for result in own]


def _asked_checks(graph: Graph, plan: Plan, asset: str) -> list[str]:
    """The names of those checks of an asset's suite that the plan asks for, in the order of the suite."""
    suite = graph.suites.get(asset)
    return [check.name for check in suite.checks if check.name in plan.checks.get(asset, ())] if suite else []


def _evaluated(
    session: Session,
    graph: Graph,
    settings: Settings,
    targets: Targets,
    hours: HourGroups,
    names: Mapping[str, Sequence[str]],
) -> dict[str, list[CheckResult]]:
    """By asset, the results of the checks named, over hours that may have holes."""
    chunks = hours.chunks()
    requests = [
        Request(
            graph.suites[asset],
            Source(
                asset=asset, session=session, hours=chunk, targets=targets, settings=settings,
                some=hours.within(chunk),
            ),
            own,
        )
        for asset, own in names.items()
        for chunk in chunks
    ]  # fmt: skip
    found = iter(evaluate_all(requests))
    return {asset: of_chunks([next(found) for _ in chunks]) for asset in names}


def _checked(asset: str, result: CheckResult, hours: HourGroups) -> Checked:
    return Checked(
        asset=asset,
        check=result.check.name,
        severity=result.check.severity,
        passed=result.success,
        hours_text=str(hours),
        element_count=result.element_count,
        unexpected_count=result.unexpected_count,
        failed_hours=[hour.hour for hour in result.hours if hour.unexpected_count],
        samples=result.samples,
    )


# -- checks of `raw_logs` that are of no suite --


def check_raw_logs(
    session: Session, settings: Settings, plan: Plan, names: Collection[str], report: IngestReport | None
) -> list[Checked]:
    """Evaluate those of these checks that are named.

    Args:
        session: a write session.
        settings: how far results look back.
        plan: the plan.
        names: names of checks.
        report: what this run read; None where it read nothing.
    """
    made = {
        EVERY_LOG_WAS_READ: lambda: _every_log_was_read(session, plan.hours),
        EVERY_LINE_IS_STILL_THERE: lambda: _every_line_is_still_there(session, plan.hours, settings.reach_hours),
        FEW_READ_LINES_ARE_REJECTED: lambda: _few_read_lines_are_rejected(session, plan.hours, report),
    }
    return [check() for name, check in made.items() if name in names]


def _every_log_was_read(session: Session, hours: HourGroups) -> Checked:
    """No raw log was left out of a run because it cannot be read."""
    unreadable = Ledger(session).unreadable()
    logs = len(Ledger(session).known_files() | unreadable.keys())
    # a log that nobody could read may hold events of any hour
    _write_own_history(session, EVERY_LOG_WAS_READ, hours, [HourResult(hour, logs, len(unreadable)) for hour in hours])
    return _of_raw_logs(EVERY_LOG_WAS_READ, len(unreadable), unreadable_summary(unreadable))


def _every_line_is_still_there(session: Session, hours: HourGroups, reach_hours: int) -> Checked:
    """No log of these hours, and of those that they look back on, was gone before all of its lines were loaded."""
    rested_on = HourRange(hours.start - reach_hours * HOUR, hours.end)
    lost = FileLedger(session).lost(rested_on)
    counts = FileLedger(session).lines_and_lost(rested_on, reach_hours)
    _write_own_history(session, EVERY_LINE_IS_STILL_THERE, hours, [HourResult(hour, *counts[hour]) for hour in hours])
    return _of_raw_logs(EVERY_LINE_IS_STILL_THERE, sum(log.lines for log in lost), lost_summary(lost))


def _few_read_lines_are_rejected(session: Session, hours: HourGroups, report: IngestReport | None) -> Checked:
    """At most one line in twenty that the run read was rejected, in all files together and in each of them."""
    read, rejected, files = 0, 0, list[str]()
    if report is not None:
        read, rejected = report.lines_read + report.spans_read, report.rejected
        files = report.many_rejected(MOST_REJECTED_SHARE)
    unexpected = rejected if files or rejected > MOST_REJECTED_SHARE * read else 0
    found = [HourResult(hour, read, unexpected) for hour in hours]
    _write_own_history(session, FEW_READ_LINES_ARE_REJECTED, hours, found)
    return _of_raw_logs(FEW_READ_LINES_ARE_REJECTED, unexpected, many_rejected_summary(files), element_count=read)


def _write_own_history(session: Session, name: str, hours: HourGroups, found: Sequence[HourResult]) -> None:
    """Write the history of a warning about `raw_logs` that is of no suite."""
    result = CheckResult(Check(name=name, expectations=(), severity="warn"), found, pd.DataFrame())
    write_history(session, hours, {"raw_logs": [result]})


def _of_raw_logs(name: str, unexpected: int, metadata: Metadata, element_count: int | None = None) -> Checked:
    return Checked(
        asset="raw_logs", check=name, severity="warn", passed=not unexpected, element_count=element_count,
        unexpected_count=unexpected, metadata=metadata,
    )  # fmt: skip
