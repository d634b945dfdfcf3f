"""Rows of the cluster as files of the lake, by the hour, and whether all of them arrived there.

What belongs here: writing what the cluster computes. What does not: rows of a process of ours (`lake_files`), and which
folders count (`lake`).

A machine of the cluster that has no such lake writes to a folder of its own, and nothing fails. So the rows are counted
on both sides: by the cluster, and in the files as this machine sees them.
"""

from pyspark.sql import DataFrame, Observation
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.functions import count, lit

from health_assets.core.errors import HealthAssetsError
from health_assets.warehouse.engines.spark.lake_place import HOUR_COLUMN, LakePlace, WrittenFolder, new_folder
from health_assets.warehouse.engines.spark.tables import column_definitions, schema_in_lake, typed_columns

_BY_HOUR = f"date_format(hour, 'yyyyMMddHH') AS {HOUR_COLUMN}"


def write_frame(
    spark: SparkSession, place: LakePlace, table: str, frame: DataFrame, *, counts_rows: bool
) -> WrittenFolder:
    """Let the cluster write rows of a table to a new folder.

    Args:
        spark: the session of the frame.
        place: the lake.
        table: the table.
        frame: rows with its columns.
        counts_rows: whether the cluster counts rows beside a statement; one that does not reads them once more.

    Raises:
        HealthAssetsError: the lake does not have all of them.
    """
    folder = new_folder(table)
    url = place.url_of(folder)
    # two steps, since a column of the second must not be taken for one before its cast
    rows = frame.selectExpr(*typed_columns(table)).selectExpr("*", _BY_HOUR)
    observed = Observation()
    if counts_rows:
        rows = rows.observe(observed, count(lit(1)).alias("rows"))
    rows.write.partitionBy(HOUR_COLUMN).parquet(url)
    if counts_rows:
        made = observed.get["rows"]
    else:
        made = spark.read.schema(column_definitions(schema_in_lake(table))).parquet(url).count()
    written = place.written(table, folder)
    if written.rows != made:
        raise HealthAssetsError(
            f"the cluster made {made} rows of {table}, and {written.rows} of them are in the lake {place.shown}: let "
            "all of its machines reach the lake by that name"
        )
    return written
