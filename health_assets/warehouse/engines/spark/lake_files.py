"""Rows of this process as files of the lake: records that were parsed here, and what few rows are put together here.

What belongs here: writing Arrow batches by the hour, on any machine. What does not: rows that the cluster has
(`lake_session`).
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from health_assets.warehouse.engines.spark.lake_place import (
    HOUR_COLUMN,
    HOUR_FORMAT,
    LakePlace,
    WrittenFolder,
    new_folder,
)
from health_assets.warehouse.engines.spark.tables import arrow_schema

MOST_HOURS_AT_ONCE = 100_000


def write_rows(place: LakePlace, table: str, rows: pa.Table | pa.RecordBatchReader) -> WrittenFolder:
    """Write rows of a table to a new folder, batch by batch."""
    folder = new_folder(table)
    schema = arrow_schema(table)
    by_hour = schema.append(pa.field(HOUR_COLUMN, pa.string()))
    batches = rows.to_batches() if isinstance(rows, pa.Table) else rows

    def parts() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [_plain(batch[field.name]).cast(field.type) for field in schema]
            of_hour = pc.strftime(batch["hour"].cast(pa.timestamp("s", "UTC")), HOUR_FORMAT)
            yield pa.RecordBatch.from_arrays([*columns, of_hour], schema=by_hour)

    ds.write_dataset(
        pa.RecordBatchReader.from_batches(by_hour, parts()), place.path_of(folder), filesystem=place.files,
        format="parquet", partitioning=ds.partitioning(pa.schema([by_hour.field(HOUR_COLUMN)]), flavor="hive"),
        max_partitions=MOST_HOURS_AT_ONCE, existing_data_behavior="overwrite_or_ignore",
    )  # fmt: skip
    return place.written(table, folder)


def _plain(column: pa.Array) -> pa.Array:
    return column.storage if isinstance(column, pa.ExtensionArray) else column
