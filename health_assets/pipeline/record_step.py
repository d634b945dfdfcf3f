"""The step that makes `raw_logs` and the record tables: one step, because each raw file is read only once.

What belongs here: what is told of it, and its checks. What does not: ingesting the logs (`log_ingestion`) and the other
steps (`system_step`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.interruption import noticed
from health_assets.pipeline.checking import check_raw_logs, check_suites
from health_assets.pipeline.events import Checked, Event, HourlyNumbers, Materialized, Value
from health_assets.pipeline.fingerprints import RECORDS
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.log_ingestion import ingest_logs
from health_assets.pipeline.partition_metadata import numbers_by_hour, record_curves
from health_assets.pipeline.plan import INGEST, Graph, Plan
from health_assets.pipeline.resource import Pipeline
from health_assets.pipeline.summaries import (
    cluster_summary,
    lost_summary,
    many_rejected_summary,
    notes_summary,
    odd_summary,
    record_summary,
    unreadable_summary,
)
from health_assets.quality.check_names import MOST_REJECTED_SHARE
from health_assets.schema.catalog import FROM_SPANS
from health_assets.warehouse.file_ledger import FileLedger, LostLines
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.session import Session


def record_step(pipeline: Pipeline, graph: Graph, plan: Plan) -> Iterator[Event]:
    """Bring the record tables of the plan up to date with every readable raw log, and check them.

    Raises:
        HealthAssetsError: the raw root, the targets or the warehouse cannot be read.
    """
    names = [name for name in RECORDS if name in plan.assets]
    pipeline = replace(pipeline, step=INGEST)
    report = None
    if names:
        with noticed():
            report, summaries, numbers = _up_to_date(pipeline, plan, names)
        read = _read_metadata(report)
        earlier = sorted(report.changed_hours - set(plan.hours))
        for name in sorted(names, key=lambda name: name in FROM_SPANS):  # an asset after those that it is made from
            yield Materialized(
                asset=name, hours=plan.hours, metadata={**summaries[name], **read}, numbers=numbers[name],
                earlier_hours=earlier,
            )  # fmt: skip
    yield from _checks(pipeline, graph, plan, report)


def _checks(pipeline: Pipeline, graph: Graph, plan: Plan, report: IngestReport | None) -> list[Checked]:
    asked = {check for name in RECORDS for check in plan.checks.get(name, ())}
    if not asked:
        return []
    with pipeline.write() as session:
        targets = pipeline.load_targets()
        found = check_suites(session, graph, pipeline.settings, targets, plan, RECORDS)
        names = plan.checks.get("raw_logs", ())
        return [*found, *check_raw_logs(session, pipeline.settings, plan, names, report)]


def _up_to_date(
    pipeline: Pipeline, plan: Plan, names: Sequence[str]
) -> tuple[IngestReport, dict[str, dict[str, Value]], dict[str, HourlyNumbers]]:
    """Bring the record tables up to date; with a summary and numbers of each asset."""
    settings, asked = pipeline.settings, plan.hours
    span = HourRange(asked.start - settings.reach_hours * HOUR, asked.end)

    def with_summaries(
        session: Session, report: IngestReport, odd: Mapping[str, str]
    ) -> tuple[IngestReport, dict[str, dict[str, Value]], dict[str, HourlyNumbers]]:
        if pipeline.loaded:
            report = report.with_loaded(pipeline.loaded, span)
            odd = {**pipeline.loaded.notices, **odd}
        numbers = {name: numbers_by_hour(session, name, plan.metadata_hours, record_curves(name)) for name in names}
        lost = FileLedger(session).lost(span)
        return report, _summaries(session, names, plan, report.unreadable, lost, odd), numbers

    is_full_refresh = plan.full_refresh and pipeline.loaded is None
    return ingest_logs(
        pipeline, asked, with_summaries, with_new_targets=not plan.only_stale, full_refresh=is_full_refresh
    )


def _summaries(
    session: Session,
    names: Collection[str],
    plan: Plan,
    unreadable: Mapping[str, str],
    lost: Sequence[LostLines],
    odd: Mapping[str, str],
) -> dict[str, dict[str, Value]]:
    summaries = {
        name: record_summary(session, name, plan.hours.span) if plan.has_summaries else cluster_summary(session)
        for name in names
    }
    if "raw_logs" in summaries:
        noted = notes_summary(Ledger(session).notes()) if plan.has_summaries else {}
        summaries["raw_logs"] |= noted | unreadable_summary(unreadable) | lost_summary(lost) | odd_summary(odd)
    return summaries


def _read_metadata(report: IngestReport) -> dict[str, Value]:
    """What the run read, which each of its assets tells."""
    read: dict[str, Value] = {
        "files_seen": report.files_seen,
        "files_read": len(report.files_read),
        "files_unreadable": len(report.unreadable),
        "folders_unreadable": sum(name.endswith("/") for name in report.unreadable),
        "bytes_read": report.bytes_read,
        "lines_read": report.lines_read,
        "spans_read": report.spans_read,
        "lines_rejected": report.rejected,
        "lines_superseded": report.superseded,
        "secrets_redacted": report.secrets_redacted,
        "lines_redacted": report.lines_redacted,
    }
    read |= many_rejected_summary(report.many_rejected(MOST_REJECTED_SHARE))
    if report.main_rejection:
        read["all_rejected"] = str(report.main_rejection)
    return read
