"""Rows of the cluster as files of the lake, and whether all of them arrived there.

What belongs here: writing what the cluster computes. What does not: rows of a process of ours (`lake_files`), and which
folders count (`lake`).

A machine of the cluster that has no such lake writes to a folder of its own, and nothing fails. So the rows are counted
on both sides: by the cluster, and in the files as this machine sees them. Sail cannot count what it writes and reads it
once more, so of it this shows no more than that cluster and machine see the same files.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.functions import count, lit

from health_assets.core.errors import HealthAssetsError
from health_assets.warehouse.engines.spark.lake_place import HOUR_COLUMN, LakePlace, WrittenFolder, new_folder
from health_assets.warehouse.engines.spark.tables import typed_columns

_BY_HOUR = f"date_format(hour, 'yyyyMMddHH') AS {HOUR_COLUMN}"


@dataclass(frozen=True)
class LakeFrames:
    """A writer of the frames of a session.

    Args:
        spark: the session.
        place: the lake.
        counts_rows: whether the cluster counts the rows of a statement beside it.
    """

    spark: SparkSession
    place: LakePlace
    counts_rows: bool

    def write(self, table: str, frame: DataFrame) -> WrittenFolder:
        """Write rows of a table to a new folder, by the hour.

        Raises:
            HealthAssetsError: the lake does not have all of them.
        """
        folder = new_folder(table)
        # two steps, since a column of the second must not be taken for one before its cast
        rows = frame.selectExpr(*typed_columns(table)).selectExpr("*", _BY_HOUR)
        made = self._write(rows, folder, HOUR_COLUMN)
        written = self.place.written(table, folder)
        if written.rows != made:
            raise self._lost(f"the cluster made {made}", written.rows, table)
        return written

    def require_seen(self, written: WrittenFolder) -> None:
        """Refuse a folder of an executor that this machine does not see as that one did.

        Raises:
            HealthAssetsError: the lake does not have all of its rows, or has them in other hours.
        """
        seen = self.place.written(written.table, written.folder)
        if seen != written:
            raise self._lost(f"an executor wrote {written.rows}", seen.rows, written.table)

    def persist(self, frame: DataFrame, folder: str) -> int:
        """Write rows to a folder as they are; gives how many there are.

        Raises:
            HealthAssetsError: the lake does not have all of them.
        """
        made = self._write(frame, folder)
        seen = self.place.rows_in([folder])
        if seen != made:
            raise self._lost(f"the cluster made {made}", seen, "a step")
        return made

    def _write(self, rows: DataFrame, folder: str, *partition: str) -> int:
        """Write rows; gives how many there are for the cluster."""
        url = self.place.url_of(folder)
        if not self.counts_rows:
            rows.write.partitionBy(*partition).parquet(url)
            return self.spark.read.schema(rows.schema).parquet(url).count()
        observed = Observation()
        rows.observe(observed, count(lit(1)).alias("rows")).write.partitionBy(*partition).parquet(url)
        made: int = observed.get["rows"]
        return made

    def _lost(self, made: str, seen: int, what: str) -> HealthAssetsError:
        return HealthAssetsError(
            f"{made} rows of {what}, and {seen} of them are in the lake {self.place.shown}: let all machines reach the "
            "lake by that name"
        )
