"""`raw_logs` and the record tables: one step, because each raw file is read only once."""

from collections.abc import Iterator

import dagster as dg

from health_assets.defs.partitions import log_earlier_hours, run_hours
from health_assets.defs.pipeline import PipelineResource, readable_failures
from health_assets.defs.specs import ONLY_STALE_TAG, POOL, RECORD_TABLES, asset_spec
from health_assets.defs.summaries import notes_summary, record_summary
from health_assets.ingestion import ingest
from health_assets.logs.files import list_files
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.tables import FROM_SPANS

SYSTEM = "raw_records"
RECORD_SPECS = [
    asset_spec("raw_logs", kind="json", system=SYSTEM),
    *(
        asset_spec(name, ["raw_logs", *(["spans"] if name in FROM_SPANS else [])], kind="json", system=SYSTEM)
        for name in RECORD_TABLES
    ),
]


def record_assets(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """`raw_logs` and the record tables, which are made together because each file is read only once."""

    @dg.multi_asset(
        name="ingest",
        specs=RECORD_SPECS,
        partitions_def=partitions,
        can_subset=True,
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=POOL,
    )
    def _ingest(context: dg.AssetExecutionContext, pipeline: PipelineResource) -> Iterator[dg.MaterializeResult]:
        hours = run_hours(context)
        selected = {key.to_user_string() for key in context.selected_asset_keys}
        with readable_failures():
            files, targets = list_files(pipeline.raw_root), pipeline.load_targets()
        with pipeline.write() as session:
            tables = [name for name in RECORD_TABLES if name in selected]
            Ledger(session).require_root(pipeline.raw_root, files)
            report = ingest(
                session, files, hours, tables, targets, pipeline.settings.reach_hours,
                trace_hours=pipeline.settings.lookback_hours, with_new_targets=ONLY_STALE_TAG not in context.run.tags,
            )  # fmt: skip
            summaries = {
                name: record_summary(session, name, hours) for name in ("raw_logs", *RECORD_TABLES) if name in selected
            }
            if "raw_logs" in summaries:
                summaries["raw_logs"] |= notes_summary(Ledger(session).notes())
        read = {
            "files_seen": report.files_seen,
            "files_read": len(report.files_read),
            "bytes_read": report.bytes_read,
            "lines_read": report.lines_read,
            "spans_read": report.spans_read,
            "lines_rejected": report.rejected,
        }
        # Dagster wants an asset after those that it is made from
        for name, metadata in sorted(summaries.items(), key=lambda item: item[0] in FROM_SPANS):
            log_earlier_hours(context, name, report.changed_hours, hours)
            yield dg.MaterializeResult(asset_key=name, metadata={**metadata, **read})

    return _ingest
