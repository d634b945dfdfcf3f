"""The assets: each reads, calls one pure function, replaces its hours and reports.

What belongs here: asset specs and bodies of a few lines. What does not: formulas (`scoring`), files (`logs`,
`ingestion`) and SQL (`warehouse`).
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

import dagster as dg
import ibis
import pyarrow as pa

from health_assets.defs.partitions import run_hours
from health_assets.defs.pipeline import Pipeline, readable_failures
from health_assets.defs.summaries import summary
from health_assets.hours import KEY_FORMAT, HourRange, contiguous
from health_assets.ingestion import ingest
from health_assets.logs.files import list_files
from health_assets.planning import hours_covered
from health_assets.scoring.agent_health import agent_health, window_span
from health_assets.scoring.health_components import health_components
from health_assets.scoring.system_health import system_health
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.store import Session
from health_assets.warehouse.tables import ALL_TABLES, TABLE_OF_RECORD, describe

POOL = "warehouse"
GROUP = "agent_health_model"
OWNERS = ["team:agent-platform"]
RECORD_TABLES = tuple(TABLE_OF_RECORD.values())
SUMMED_TABLES = ("executions", "trigger_events")
SIGHTING_TABLES = tuple(table for table in RECORD_TABLES if table not in (*SUMMED_TABLES, "rejected_records"))
EVENT_TABLES = (*SUMMED_TABLES, *SIGHTING_TABLES)
ONLY_STALE_TAG = "health-assets/only-stale"
"""A run with this tag leaves hours alone whose inputs have not changed since they were built."""


def asset_spec(name: str, deps: Sequence[str] = ()) -> dg.AssetSpec:
    """Spec of the asset that makes a table: description and columns come from the table's class."""
    model = ALL_TABLES[name]
    columns = [
        dg.TableColumn(column, sql_type, meaning, dg.TableColumnConstraints(nullable=is_nullable))
        for column, sql_type, is_nullable, meaning in describe(name)
    ]
    return dg.AssetSpec(
        name,
        deps=list(deps),
        description=model.__doc__,
        group_name=GROUP,
        kinds={"duckdb", "python"} if name.endswith(("_health", "_components")) else {"duckdb", "json"},
        owners=OWNERS,
        metadata={"dagster/column_schema": dg.TableSchema(columns), "dagster/table_name": name},
    )


RECORD_SPECS = [asset_spec("raw_logs"), *(asset_spec(name, ["raw_logs"]) for name in RECORD_TABLES)]


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
    def _ingest(context: dg.AssetExecutionContext, pipeline: Pipeline) -> Iterator[dg.MaterializeResult]:
        hours = run_hours(context)
        selected = {key.to_user_string() for key in context.selected_asset_keys}
        with readable_failures():
            files, targets = list_files(pipeline.raw_root), pipeline.load_targets()
        with pipeline.write() as session:
            tables = [name for name in RECORD_TABLES if name in selected]
            Ledger(session).require_root(pipeline.raw_root, files)
            report = ingest(
                session, files, hours, tables, targets, pipeline.lookback_hours,
                with_new_targets=ONLY_STALE_TAG not in context.run.tags,
            )  # fmt: skip
            summaries = {
                name: summary(session, name, hours) for name in ("raw_logs", *RECORD_TABLES) if name in selected
            }
        read = {
            "files_seen": report.files_seen,
            "files_read": len(report.files_read),
            "bytes_read": report.bytes_read,
            "lines_read": report.lines_read,
            "lines_rejected": report.rejected,
        }
        for name, metadata in summaries.items():
            _log_earlier_hours(context, name, report.changed_hours, hours)
            yield dg.MaterializeResult(asset_key=name, metadata={**metadata, **read})

    return _ingest


def components_asset(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """`health_components`, for the hours asked for and those of the look-back that were never built."""

    @dg.multi_asset(
        name="health_components",
        specs=[asset_spec("health_components", ("raw_logs", *EVENT_TABLES))],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=POOL,
    )
    def _components(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult:
        asked = run_hours(context)
        with readable_failures():
            targets = pipeline.load_targets()
        with pipeline.write() as session:
            ranges = _hours_to_build(
                session, asked, pipeline.lookback_hours, only_stale=ONLY_STALE_TAG in context.run.tags
            )
            for hours in ranges:
                events = [session.hours_of(name, hours).select("hour", "agent_id") for name in SIGHTING_TABLES]
                rows = health_components(
                    session.hours_of("executions", hours),
                    session.hours_of("trigger_events", hours),
                    ibis.union(*events),
                    targets,
                )
                session.replace_hours("health_components", hours, rows)
            metadata = summary(session, "health_components", asked)
        _log_earlier_hours(context, "health_components", {hour for hours in ranges for hour in hours}, asked)
        return dg.MaterializeResult(metadata=metadata)

    return _components


def agent_health_asset(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """`agent_health`."""

    @dg.multi_asset(
        name="agent_health",
        specs=[asset_spec("agent_health", ["health_components"])],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=POOL,
    )
    def _agent_health(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult:
        hours = run_hours(context)
        with readable_failures():
            targets = pipeline.load_targets()
        with pipeline.write() as session:
            span = window_span(hours, pipeline.lookback_hours, pipeline.window_hours)
            components = session.hours_of("health_components", span)
            scored = agent_health(components, targets, hours, pipeline.window_hours, pipeline.lookback_hours)
            rows = scored.inner_join(_coverage(session, hours, pipeline).select("hour", "hours_covered"), "hour")
            session.replace_hours("agent_health", hours, rows)
            return dg.MaterializeResult(metadata=summary(session, "agent_health", hours))

    return _agent_health


def system_health_asset(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """`system_health`."""

    @dg.multi_asset(
        name="system_health",
        specs=[asset_spec("system_health", ["agent_health"])],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=POOL,
    )
    def _system_health(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult:
        hours = run_hours(context)
        with pipeline.write() as session:
            rows = system_health(session.hours_of("agent_health", hours), _coverage(session, hours, pipeline))
            session.replace_hours("system_health", hours, rows)
            return dg.MaterializeResult(metadata=summary(session, "system_health", hours))

    return _system_health


def all_assets(partitions: dg.PartitionsDefinition) -> list[dg.AssetsDefinition]:
    """Every asset, in the order of the lineage."""
    makers = (record_assets, components_asset, agent_health_asset, system_health_asset)
    return [make(partitions) for make in makers]


def _hours_to_build(session: Session, asked: HourRange, lookback_hours: int, *, only_stale: bool) -> list[HourRange]:
    """The hours asked for (with `only_stale`, none as such), and those of the look-back that are not up to date."""
    span = asked.extended_back(lookback_hours - 1)
    built = session.materialized_hours("health_components", span)
    first = session.first_event_hour() or asked.start
    missing = {hour for hour in span if hour not in built and (hour >= first or hour in asked)}
    stale = session.hours_older_than("health_components", EVENT_TABLES, span)
    return contiguous(missing | stale | (set() if only_stale else set(asked)))


def _coverage(session: Session, hours: HourRange, pipeline: Pipeline) -> ibis.Table:
    """One row per hour: the window that ends with it, and how many of the window's hours there are."""
    span = hours.extended_back(pipeline.window_hours - 1)
    materialized = session.materialized_hours("health_components", span)
    covered = hours_covered(hours, pipeline.window_hours, materialized, session.first_event_hour())
    hour = pa.array(list(hours), pa.timestamp("us", "UTC"))
    rows = ibis.memtable(pa.table({"hour": hour, "hours_covered": pa.array(covered, pa.int64())}))
    return rows.mutate(
        window_start=rows.hour - ibis.interval(hours=pipeline.window_hours - 1),
        window_end=rows.hour + ibis.interval(hours=1),
    )


def _log_earlier_hours(context: dg.AssetExecutionContext, asset: str, built: set[datetime], asked: HourRange) -> None:
    """Tell Dagster about hours of the look-back that were built besides those asked for."""
    for hour in sorted(built - set(asked)):
        context.log_event(dg.AssetMaterialization(asset, partition=f"{hour:{KEY_FORMAT}}"))
