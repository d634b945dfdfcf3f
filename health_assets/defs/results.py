"""Events of the engine as Dagster's results: metadata, numbers of partitions, evaluations of checks.

What belongs here: how an event looks in Dagster. What does not: what happened (`pipeline.events`).
"""

import dagster as dg
import pandas as pd

from health_assets.core.hours import KEY_FORMAT
from health_assets.defs.naming import STANDALONE, Naming
from health_assets.defs.partitions import is_told_of_partitions
from health_assets.pipeline.events import ROWS, Checked, Event, Link, Markdown, Materialized, Metadata, Value

Result = dg.MaterializeResult | dg.AssetCheckResult

SEVERITIES = {"error": dg.AssetCheckSeverity.ERROR, "warn": dg.AssetCheckSeverity.WARN}
HOURS_SHOWN = 24
ROW_COUNT, PARTITION_ROW_COUNT = "dagster/row_count", "dagster/partition_row_count"
"""Keys under which Dagster looks for numbers of rows."""


def result_of(context: dg.AssetExecutionContext, event: Event, naming: Naming = STANDALONE) -> Result | None:
    """The result for Dagster; None for the begin and the end of a step, which Dagster records itself."""
    if isinstance(event, Materialized):
        return _materialized(context, event, naming)
    return check_result(event, naming) if isinstance(event, Checked) else None


def _materialized(context: dg.AssetExecutionContext, event: Materialized, naming: Naming) -> dg.MaterializeResult:
    key = naming.key(event.asset)
    for hour, numbers in event.numbers.items():
        own = {PARTITION_ROW_COUNT if name == ROWS else name: number for name, number in numbers.items()}
        context.add_asset_metadata(own, asset_key=key, partition_key=f"{hour:{KEY_FORMAT}}")
    if is_told_of_partitions(context):
        for hour in event.earlier_hours:
            context.log_event(dg.AssetMaterialization(key, partition=f"{hour:{KEY_FORMAT}}"))
    return dg.MaterializeResult(key, metadata=metadata_of(event.metadata))


def check_result(event: Checked, naming: Naming = STANDALONE) -> dg.AssetCheckResult:
    """The evaluation of a check."""
    metadata: dict[str, dg.MetadataValue] = {}
    if event.hours_text is not None:
        metadata["hours"] = dg.MetadataValue.text(event.hours_text)
    if event.element_count is not None:
        metadata["element_count"] = dg.MetadataValue.int(event.element_count)
    metadata["unexpected_count"] = dg.MetadataValue.int(event.unexpected_count)
    if event.failed_hours:
        shown = [f"{hour:{KEY_FORMAT}}" for hour in event.failed_hours[:HOURS_SHOWN]]
        metadata["failed_hours"] = dg.MetadataValue.text(f"{len(event.failed_hours)}: {', '.join(shown)}")
        if event.samples is not None:
            metadata["failing_rows"] = _table(event.samples)
    return dg.AssetCheckResult(
        asset_key=naming.key(event.asset),
        check_name=event.check,
        passed=event.passed,
        severity=SEVERITIES[event.severity],
        metadata=metadata | metadata_of(event.metadata),
    )


def metadata_of(metadata: Metadata) -> dict[str, dg.MetadataValue]:
    """Metadata as Dagster shows it."""
    return {ROW_COUNT if name == ROWS else name: _value(value) for name, value in metadata.items()}


def _value(value: Value) -> dg.MetadataValue:
    if isinstance(value, Markdown):
        return dg.MetadataValue.md(value.text)
    if isinstance(value, Link):
        return dg.MetadataValue.url(value.url)
    if isinstance(value, list):
        return dg.MetadataValue.json(value)
    return dg.MetadataValue.int(value) if isinstance(value, int) else dg.MetadataValue.text(value)


def _table(frame: pd.DataFrame) -> dg.MetadataValue:
    records = [
        dg.TableRecord(
            {name: value if isinstance(value, int | float | bool) else str(value) for name, value in row.items()}
        )
        for row in frame.to_dict("records")
    ]
    schema = dg.TableSchema([dg.TableColumn(name, "string") for name in frame.columns])
    return dg.MetadataValue.table(records, schema)
