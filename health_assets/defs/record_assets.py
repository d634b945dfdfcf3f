"""`raw_logs` and the record tables: one step, because each raw file is read only once."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import dagster as dg

from health_assets.core.errors import UnreadableFilesError
from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.core.interruption import noticed
from health_assets.core.temporary import remove_what_the_dead_left
from health_assets.defs.curves import HourlyNumbers, drawn_hours, numbers_by_hour, record_curves, show_curves
from health_assets.defs.holding import show_held
from health_assets.defs.partitions import log_earlier_hours, run_groups
from health_assets.defs.pipeline import Pipeline, readable_failures
from health_assets.defs.placement import ALONE, Placement, table_of
from health_assets.defs.specs import ONLY_STALE_TAG, READ_ANEW_TAG, asset_spec
from health_assets.defs.summaries import (
    lost_summary,
    many_rejected_summary,
    notes_summary,
    odd_summary,
    record_summary,
    unreadable_summary,
)
from health_assets.logs.files import list_files
from health_assets.logs.stores import Faults, RawFile, Stamp, distrusted, is_among, require_root
from health_assets.pipeline.grounds import Grounds
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.ingestion import ingest
from health_assets.quality.check_names import MOST_REJECTED_SHARE
from health_assets.schema.catalog import FROM_SPANS
from health_assets.schema.records import RECORD_TABLES
from health_assets.warehouse.file_ledger import FileLedger, LostLines
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.session import Session

SYSTEM = "raw_records"
MOST_TRIES = 3
"""How often a run tries to read a log that changes meanwhile."""


def _up_to_date(
    pipeline: Pipeline,
    asked: HourGroups,
    drawn: Sequence[datetime],
    names: Sequence[str],
    *,
    only_stale: bool,
    read_anew: bool,
) -> tuple[IngestReport, dict[str, dict[str, dg.MetadataValue]], dict[str, HourlyNumbers]]:
    """Bring the record tables up to date with every readable raw log; with a summary and curves of each asset.

    What there is to read is found out in each transaction anew: while a run waits for its turn, another one may load
    more than there was before, which an old listing would take away again.
    """
    settings, failures = pipeline.settings, _Failures()
    require_root(pipeline.raw_root)  # whoever mistypes this or the targets need not wait to be told
    pipeline.load_targets()
    remove_what_the_dead_left()
    while True:
        files: list[RawFile] = []
        try:
            with pipeline.telling_progress(), pipeline.open().write() as session:
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
                    session, files, asked, [name for name in RECORD_TABLES if name in names], targets,
                    settings.reach_hours, trace_hours=settings.lookback_hours, with_new_targets=not only_stale,
                    unreadable=unreadable, trusted_judgements=settings.trust, limits=pipeline.limits,
                    grounds=Grounds.of(settings, targets, asked), read_anew=read_anew,
                )  # fmt: skip
                lost = FileLedger(session).lost(HourRange(asked.start - settings.reach_hours * HOUR, asked.end))
                curves = {name: numbers_by_hour(session, name, drawn, record_curves(name)) for name in names}
                return report, _summaries(session, names, asked, unreadable, lost, {**odd, **report.told}), curves
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
    names: Sequence[str],
    asked: HourGroups,
    unreadable: Faults,
    lost: Sequence[LostLines],
    odd: Mapping[str, str],
) -> dict[str, dict[str, dg.MetadataValue]]:
    summaries = {name: record_summary(session, name, asked.span) for name in names}
    if "raw_logs" in summaries:
        noted = notes_summary(Ledger(session).notes())
        summaries["raw_logs"] |= noted | unreadable_summary(unreadable) | lost_summary(lost) | odd_summary(odd)
    return summaries


def record_specs(placement: Placement = ALONE) -> list[dg.AssetSpec]:
    """The specs of `raw_logs` and the record tables."""
    sources = {name: ["raw_logs", *(["spans"] if name in FROM_SPANS else [])] for name in RECORD_TABLES}
    return [
        asset_spec(name, deps, kind="json", system=SYSTEM, source=ingest, placement=placement)
        for name, deps in {"raw_logs": [], **sources}.items()
    ]


def record_assets(partitions: dg.PartitionsDefinition | None, placement: Placement = ALONE) -> dg.AssetsDefinition:
    """`raw_logs` and the record tables, which are made together because each file is read only once."""

    @dg.multi_asset(
        name=placement.name("ingest"),
        specs=record_specs(placement),
        partitions_def=partitions,
        required_resource_keys={placement.resource},
        can_subset=True,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def _ingest(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        pipeline = placement.pipeline(context)
        asked = run_groups(context)
        selected = {table_of(key) for key in context.selected_asset_keys}
        names = [name for name in ("raw_logs", *RECORD_TABLES) if name in selected]
        with readable_failures(), noticed():
            report, summaries, curves = _up_to_date(
                pipeline, asked, drawn_hours(context, asked), names,
                only_stale=ONLY_STALE_TAG in context.run.tags, read_anew=READ_ANEW_TAG in context.run.tags,
            )  # fmt: skip
        read: dict[str, dg.MetadataValue | int] = {
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
            read["all_rejected"] = dg.MetadataValue.text(str(report.main_rejection))
        # Dagster wants an asset after those that it is made from
        for name, metadata in sorted(summaries.items(), key=lambda item: item[0] in FROM_SPANS):
            log_earlier_hours(context, placement.key(name), report.changed_hours, asked)
            show_curves(context, placement.key(name), curves[name])
            yield dg.MaterializeResult(asset_key=placement.key(name), metadata={**metadata, **read})
        show_held(context, placement.keys(summaries), report.holds, placement)

    return _ingest
