"""The step that makes `raw_logs` and the record tables: one step, because each raw file is read only once.

What belongs here: listing the logs, trying again where one changes meanwhile, and reporting. What does not: loading
(`ingestion`) and the other steps (`system_step`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from health_assets.core.errors import UnreadableFilesError
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.interruption import noticed
from health_assets.core.temporary import remove_what_the_dead_left
from health_assets.logs.files import list_files
from health_assets.logs.stores import Faults, RawFile, Stamp, distrusted, is_among, require_root
from health_assets.pipeline.checking import check_raw_logs, check_suite
from health_assets.pipeline.curves import numbers_by_hour, record_curves
from health_assets.pipeline.events import Checked, Event, HourlyNumbers, Materialized, Value
from health_assets.pipeline.grounds import RECORDS, Grounds
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.ingestion import ingest
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

MOST_TRIES = 3
"""How often a run tries to read a log that changes meanwhile."""


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
        found = [
            result for name in RECORDS for result in check_suite(session, graph, pipeline.settings, targets, plan, name)
        ]
        names = plan.checks.get("raw_logs", ())
        return [*found, *check_raw_logs(session, pipeline.settings, plan, names, report)]


def _up_to_date(
    pipeline: Pipeline, plan: Plan, names: Sequence[str]
) -> tuple[IngestReport, dict[str, dict[str, Value]], dict[str, HourlyNumbers]]:
    """Bring the record tables up to date; with a summary and numbers of each asset.

    What there is to read is found out in each transaction anew: while a run waits for its turn, another one may load
    more than there was before, which an old listing would take away again.
    """
    settings, asked, failures = pipeline.settings, plan.hours, _Failures()
    require_root(pipeline.raw_root)  # whoever mistypes this or the targets need not wait to be told
    pipeline.load_targets()
    remove_what_the_dead_left()
    while True:
        files: list[RawFile] = []
        try:
            with pipeline.write() as session:
                unreadable: Faults = {}
                oddities: dict[str, str] = {}
                files = list_files(pipeline.raw_root, unreadable, oddities)
                unreadable |= failures.still_of(files)
                files = [file for file in files if not is_among(unreadable, file.source_file)]
                Ledger(session).require_root(pipeline.raw_root, files)
                oddities = distrusted(files, settings.trust) | oddities
                odd = FileLedger(session).write_oddities(oddities)
                targets = pipeline.load_targets()
                report = ingest(
                    session, files, asked, targets,
                    settings.reach_hours, trace_hours=settings.lookback_hours, with_new_targets=not plan.only_stale,
                    unreadable=unreadable, trusted_judgements=settings.trust, limits=pipeline.limits,
                    grounds=Grounds.of(settings, targets, asked), horizon=pipeline.horizon, read_anew=plan.read_anew,
                )  # fmt: skip
                lost = FileLedger(session).lost(HourRange(asked.start - settings.reach_hours * HOUR, asked.end))
                numbers = {
                    name: numbers_by_hour(session, name, plan.metadata_hours, record_curves(name)) for name in names
                }
                summaries = _summaries(session, names, plan, unreadable, lost, {**odd, **report.told})
                return report, summaries, numbers
        except UnreadableFilesError as error:  # which shows only when they are read; nothing has been changed
            failures.add(files, error.faults)


class _Failures:
    """Logs that were listed and could not be read in this run.

    A name that has another file by now, as after a rotation, is tried again, for the log may be there twice otherwise.
    """

    def __init__(self) -> None:
        self._stamps: dict[str, set[Stamp]] = {}
        self._reasons: Faults = {}

    def add(self, files: Sequence[RawFile], faults: Faults) -> None:
        """Note which of the files, as they were listed, cannot be read, and why."""
        for file in files:
            if file.source_file in faults:
                self._stamps.setdefault(file.source_file, set()).add(file.stamp)
        self._reasons |= faults

    def still_of(self, files: Sequence[RawFile]) -> Faults:
        """Faults of these files that are as they were when they could not be read, or that failed too often."""
        failed = [(file, self._stamps[file.source_file]) for file in files if file.source_file in self._stamps]
        return {
            file.source_file: self._reasons[file.source_file]
            for file, stamps in failed
            if file.stamp in stamps or len(stamps) >= MOST_TRIES
        }


def _summaries(
    session: Session,
    names: Collection[str],
    plan: Plan,
    unreadable: Faults,
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
