"""`raw_logs` and the record tables: one step, because each raw file is read only once."""

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from health_assets.defs.holding import show_held
from health_assets.defs.partitions import log_earlier_hours, run_groups
from health_assets.defs.pipeline import Pipeline, PipelineResource, readable_failures
from health_assets.defs.specs import ONLY_STALE_TAG, RECORD_TABLES, asset_spec
from health_assets.defs.summaries import (
    lost_summary,
    notes_summary,
    odd_summary,
    record_summary,
    unreadable_summary,
)
from health_assets.errors import UnreadableFilesError
from health_assets.hours import HOUR, HourGroups
from health_assets.ingestion import IngestReport, ingest
from health_assets.interruption import noticed
from health_assets.logs.files import list_files
from health_assets.logs.stores import Faults, is_among
from health_assets.temporary import remove_what_the_dead_left
from health_assets.warehouse.file_ledger import FileLedger, LostLines
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.store import Session
from health_assets.warehouse.tables import FROM_SPANS

SYSTEM = "raw_records"
RECORD_SPECS = [
    asset_spec("raw_logs", kind="json", system=SYSTEM),
    *(
        asset_spec(name, ["raw_logs", *(["spans"] if name in FROM_SPANS else [])], kind="json", system=SYSTEM)
        for name in RECORD_TABLES
    ),
]


def _up_to_date(
    pipeline: Pipeline, asked: HourGroups, names: Sequence[str], *, only_stale: bool
) -> tuple[IngestReport, dict[str, dict[str, dg.MetadataValue]]]:
    """Bring the record tables up to date with every raw log that can be read; with a summary of each asset."""
    unreadable: Faults = {}
    oddities: dict[str, str] = {}
    files, targets = list_files(pipeline.raw_root, unreadable, oddities), pipeline.load_targets()
    settings = pipeline.settings
    limits = pipeline.limits
    remove_what_the_dead_left()
    while True:
        files = [file for file in files if not is_among(unreadable, file.source_file)]
        try:
            with pipeline.open().write() as session:
                Ledger(session).require_root(pipeline.raw_root, files)
                odd = FileLedger(session).write_oddities(oddities)
                report = ingest(
                    session, files, asked, [name for name in RECORD_TABLES if name in names], targets,
                    settings.reach_hours, trace_hours=settings.lookback_hours, with_new_targets=not only_stale,
                    unreadable=unreadable, trusted_judgements=settings.trusted_judgements, limits=limits,
                )  # fmt: skip
                lost = FileLedger(session).lost(asked.start - settings.reach_hours * HOUR)
                return report, _summaries(session, names, asked, unreadable, lost, {**odd, **report.told})
        except UnreadableFilesError as error:  # which shows only when they are read; nothing has been changed
            unreadable |= error.faults


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


def record_assets(partitions: dg.PartitionsDefinition | None) -> dg.AssetsDefinition:
    """`raw_logs` and the record tables, which are made together because each file is read only once."""

    @dg.multi_asset(
        name="ingest",
        specs=RECORD_SPECS,
        partitions_def=partitions,
        can_subset=True,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def _ingest(context: dg.AssetExecutionContext, pipeline: PipelineResource) -> Iterator[dg.MaterializeResult]:
        asked = run_groups(context)
        selected = {key.to_user_string() for key in context.selected_asset_keys}
        names = [name for name in ("raw_logs", *RECORD_TABLES) if name in selected]
        with readable_failures(), noticed():
            report, summaries = _up_to_date(pipeline, asked, names, only_stale=ONLY_STALE_TAG in context.run.tags)
        read: dict[str, dg.MetadataValue | int] = {
            "files_seen": report.files_seen,
            "files_read": len(report.files_read),
            "files_unreadable": len(report.unreadable),
            "folders_unreadable": sum(name.endswith("/") for name in report.unreadable),
            "bytes_read": report.bytes_read,
            "lines_read": report.lines_read,
            "spans_read": report.spans_read,
            "lines_rejected": report.rejected,
            "secrets_redacted": report.secrets_redacted,
            "lines_redacted": report.lines_redacted,
        }
        if report.main_rejection:
            read["all_rejected"] = dg.MetadataValue.text(str(report.main_rejection))
        # Dagster wants an asset after those that it is made from
        for name, metadata in sorted(summaries.items(), key=lambda item: item[0] in FROM_SPANS):
            log_earlier_hours(context, name, report.changed_hours, asked)
            yield dg.MaterializeResult(asset_key=name, metadata={**metadata, **read})
        show_held(context, summaries, {hold.hour for hold in report.holds})

    return _ingest
