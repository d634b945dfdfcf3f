"""The names that a session of the cluster knows: tables of the lake, of some hours or all, and what was computed once.

What belongs here: which folders or rows stand behind a name. What does not: which folders count (`lake`), and what is
asked (`lake_session`).
"""

from collections.abc import Collection, Sequence

import ibis
import pyarrow as pa
from ibis import ir
from pyspark.sql import DataFrame

from health_assets.core.hours import HourRange
from health_assets.schema.catalog import schema_of
from health_assets.warehouse.engines.spark import connect
from health_assets.warehouse.engines.spark.lake import SCRATCH, Lake
from health_assets.warehouse.engines.spark.lake_frames import LakeFrames
from health_assets.warehouse.engines.spark.lake_place import HOUR_FORMAT
from health_assets.warehouse.engines.spark.tables import LAKE_TABLES, column_definitions, schema_in_lake
from health_assets.warehouse.session import Session


class LakeViews:
    """The names of one session.

    Args:
        frames: what writes to the lake, with the session on the cluster.
        lake: the lake.
        ledger: an open session of the ledger.
    """

    def __init__(self, frames: LakeFrames, lake: Lake, ledger: Session) -> None:
        self._frames = frames
        self._spark = frames.spark
        self._lake = lake
        self._ledger = ledger
        self._hours_of_view: dict[str, tuple[str, HourRange | None]] = {name: (name, None) for name in LAKE_TABLES}
        self._folders_of_view: dict[str, Sequence[str]] = {}
        self._given: set[str] = set()
        self._kept: set[str] = set()

    def close(self) -> None:
        """Remove what was kept for this session alone."""
        for name in self._kept:
            self._lake.place.remove(f"{SCRATCH}/{name}")

    def __contains__(self, name: str) -> bool:
        """Whether a name stands for rows that the cluster has."""
        return name in self._hours_of_view or name in self._kept

    @property
    def of_tables(self) -> Collection[str]:
        """The names that stand for tables of the lake."""
        return self._hours_of_view.keys()

    def hours_of(self, table: str, hours: HourRange) -> ir.Table:
        """The rows of a table in some hours, of which only the folders are looked at."""
        view = f"{table}_from_{hours.start:{HOUR_FORMAT}}_to_{hours.end:{HOUR_FORMAT}}"
        self._hours_of_view[view] = (table, hours)
        return ibis.table(schema_of(table), name=view)

    def of(self, table: str, hours: HourRange | None = None) -> str:
        """The name of what is published now of a table, of some hours or all."""
        view = table if hours is None else self.hours_of(table, hours).get_name()
        self.make_known([view])
        return view

    def make_known(self, names: Collection[str]) -> None:
        """Let the cluster know what stands behind names: what is published now, or a table of the ledger."""
        for name in names:
            if name in self._hours_of_view:
                self._read_folders(name)
            elif name not in self._kept:
                connect.give(self._spark, name, self._ledger.arrow(self._ledger.table(name)))

    def give(self, name: str, rows: pa.Table) -> None:
        """Give the cluster rows of this process under a name that stands for no others."""
        if name not in self._given:
            connect.give(self._spark, name, rows)
            self._given.add(name)

    def persist(self, frame: DataFrame, schema: ibis.Schema) -> tuple[ir.Table, int]:
        """Rows that are computed once, and written to the lake for this session alone; with their number."""
        name = ibis.util.gen_name("kept")
        folder = f"{SCRATCH}/{name}"
        self._kept.add(name)
        count = self._frames.persist(frame, folder)
        rows = self._spark.read.schema(column_definitions(schema)).parquet(self._lake.place.url_of(folder))
        rows.createOrReplaceTempView(name)
        return ibis.table(schema, name=name), count

    def _read_folders(self, view: str) -> None:
        table, hours = self._hours_of_view[view]
        folders = self._lake.folders(table, hours)
        if self._folders_of_view.get(view) == folders:
            return
        self._rows_in(table, folders).createOrReplaceTempView(view)
        self._folders_of_view[view] = folders

    def _rows_in(self, table: str, folders: Sequence[str]) -> DataFrame:
        schema = schema_in_lake(table)
        if not folders:
            return connect.nothing(self._spark, schema)
        return self._spark.read.schema(column_definitions(schema)).parquet(*map(self._lake.place.url_of, folders))
