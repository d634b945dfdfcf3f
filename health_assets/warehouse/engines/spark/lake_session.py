"""One transaction on a warehouse that a Spark cluster computes: rows in the lake, and the account of them in a ledger.

What belongs here: sending each statement to the place of its tables, and writing whole hours of the lake. What does
not: the names that the cluster knows (`lake_views`), which folders count (`lake`), the client (`connect`), and
translation (`sql`, `spark_compiler`).

The transaction is the ledger's. Rows are written to new folders; a change of single rows is a new folder for each hour
that has one of them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any

import ibis
import ibis.expr.operations as ops
import pyarrow as pa
import sqlglot as sg
import sqlglot.expressions as sge
from ibis import ir
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from health_assets.core.hours import HOUR, HourRange
from health_assets.schema.catalog import columns_of, schema_of
from health_assets.schema.columns import FORMULA_VERSION
from health_assets.warehouse.cluster_work import ClusterSession
from health_assets.warehouse.engines.spark import connect, executors
from health_assets.warehouse.engines.spark.arrow_batches import arrow_batches
from health_assets.warehouse.engines.spark.compaction import compact
from health_assets.warehouse.engines.spark.executor_versions import program
from health_assets.warehouse.engines.spark.groups import GROUP_COLUMN, of_group, of_shortened
from health_assets.warehouse.engines.spark.lake import Lake
from health_assets.warehouse.engines.spark.lake_files import write_rows
from health_assets.warehouse.engines.spark.lake_frames import LakeFrames
from health_assets.warehouse.engines.spark.lake_views import LakeViews
from health_assets.warehouse.engines.spark.sql import (
    DIALECT,
    LEDGER_DIALECT,
    Parameters,
    RowChange,
    filled,
    is_among,
    parsed,
    parts_about,
    spark_sql,
    tables_in,
    tables_of,
    used_in,
)
from health_assets.warehouse.engines.spark.sql_hours import hours_asked, narrowed
from health_assets.warehouse.engines.spark.tables import LAKE_TABLES, column_definitions, schema_in_lake
from health_assets.warehouse.session import CALLS, InsertArrow, Session, Told, Work


class LakeSession(Session):
    """One transaction; what is said of the lake is computed by the cluster, all else by the ledger.

    Args:
        spark: a session on the cluster, which is this one's alone.
        lake: the lake.
        ledger: an open session of the ledger.
        counts_rows: whether the cluster counts the rows of a statement beside it.
        cluster: the session's name on the cluster.
    """

    unnests_in_engine = True
    is_distributed = True

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        ledger: Session,
        *,
        counts_rows: bool,
        cluster: ClusterSession | None = None,
    ) -> None:
        self.cluster = cluster
        self._spark = spark
        self._lake = lake
        self._ledger = ledger
        self._frames = LakeFrames(spark, lake.place, counts_rows)
        self._views = LakeViews(self._frames, lake, ledger)

    def close(self) -> None:
        """Remove what was kept for this session alone."""
        self._views.close()

    def before_commit(self) -> None:
        """See `Session.before_commit`: compacts hours of many folders, and flushes what the ledger will name."""
        compact(self, self._lake)
        self._lake.require_own()
        self._lake.flush()

    # -- reading --

    def hours_of(self, name: str, hours: HourRange) -> ir.Table:
        """See `Session.hours_of`; only the folders of these hours are looked at."""
        return self._views.hours_of(name, hours) if name in LAKE_TABLES else super().hours_of(name, hours)

    def query(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple]:
        """See `Session.query`; it goes to the place of the tables that it is about."""
        named = tables_of(sql)
        if not any(name in self._views for name in named):
            return self._ledger.query(sql, parameters)
        statement = parsed(sql)
        is_change = isinstance(statement, sge.Update | sge.Delete)
        if is_change and statement.this.name in LAKE_TABLES:
            self._change(statement, parameters)
            return []
        if is_change or not all(name in self._views for name in named):
            return self._query_ledger(statement, parameters)
        return _tuples(self._of_cluster(statement, parameters))

    def _of_cluster(self, statement: sge.Expression, parameters: Parameters) -> pa.Table:
        """The rows of a query that is about the lake; of its tables only the hours that it asks for are looked at."""
        tree = narrowed(statement, parameters, LAKE_TABLES, lambda name, hours: self.hours_of(name, hours).get_name())
        self._views.make_known(tables_in(tree))
        return self._spark.sql(filled(tree, parameters).sql(DIALECT)).toArrow()

    def _query_ledger(self, statement: sge.Expression, parameters: Parameters) -> list[tuple]:
        """A statement about the ledger, which the cluster tells what the lake has to do with it."""
        tree = statement.copy()
        for part in parts_about(tree, self._views.of_tables):
            kept, _ = self._ledger.persist(ibis.memtable(self._of_cluster(part, parameters)))
            part.replace(sg.select("*").from_(kept.get_name()))
        return self._ledger.query(tree.sql(LEDGER_DIALECT), used_in(tree, parameters))

    def sql(self, rows: ir.Table) -> str:
        """See `Session.sql`."""
        self._views.make_known({node.name for node in rows.op().find(ops.UnboundTable)})
        for node in rows.op().find(ops.InMemoryTable):
            self._views.give(node.name, node.data.to_pyarrow(node.schema))
        return spark_sql(rows)

    def arrow(self, rows: ir.Table) -> pa.Table:
        """See `Session.arrow`."""
        if self._is_of_ledger(rows):
            return self._ledger.arrow(rows)
        return self._frame(rows).toArrow().cast(_plain_schema(rows))

    def stream(self, rows: ir.Table, rows_per_batch: int) -> pa.RecordBatchReader:
        """See `Session.stream`."""
        if self._is_of_ledger(rows):
            return self._ledger.stream(rows, rows_per_batch)
        schema, frame = _plain_schema(rows), self._frame(rows)

        def parts() -> Iterator[pa.RecordBatch]:
            for batch in arrow_batches(frame):
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches(rows_per_batch)

        return pa.RecordBatchReader.from_batches(schema, parts())

    def dicts(self, rows: ir.Table) -> list[dict[str, Any]]:
        """See `Session.dicts`."""
        return self._ledger.dicts(rows) if self._is_of_ledger(rows) else self.arrow(rows).to_pylist()

    def count(self, rows: ir.Table) -> int:
        """See `Session.count`."""
        return self._ledger.count(rows) if self._is_of_ledger(rows) else self._frame(rows).count()

    def persist(self, rows: ir.Table) -> tuple[ir.Table, int]:
        """See `Session.persist`; the cluster keeps the rows in a folder of the lake."""
        return self._views.persist(self._frame(rows), rows.schema())

    def grouped(
        self,
        rows: ir.Table,
        keys: Sequence[str],
        order: Sequence[str],
        make: Callable[[pa.Table], pa.Table],
        calls: int = CALLS,
        shorten: Callable[[pa.Table], pa.Table] | None = None,
    ) -> ir.Table:
        """See `Session.grouped`; the executors call the function."""
        schema = _plain_schema(rows)
        if shorten is not None:
            make = partial(of_shortened, make=make, shorten=shorten)
        made = make(schema.empty_table()).schema
        group = f"pmod(xxhash64({', '.join(keys)}), {calls}) AS {GROUP_COLUMN}"
        by_group = self._frame(rows).selectExpr("*", group).groupBy(GROUP_COLUMN)
        given = ibis.Schema.from_pyarrow(made)
        on_group = partial(of_group, make=make, schema=schema, order=tuple(order), made=made, ordered=program())
        found = by_group.applyInArrow(on_group, column_definitions(given))
        return self._views.persist(found, given)[0]

    def digests(self, name: str, hours: HourRange) -> dict[datetime, int]:
        """See `Session.digests`."""
        if name not in LAKE_TABLES:
            return self._ledger.digests(name, hours)
        columns = [column for column in columns_of(name) if column != FORMULA_VERSION]
        # Spark's hash goes on from null as if nothing had been there
        told_apart = ", ".join(f"`{column}`, `{column}` IS NULL" for column in columns)
        digest = f"SUM(CAST(XXHASH64({told_apart}) AS DECIMAL(38, 0)))"
        view = self._views.of(name, hours)
        return dict(self._rows(f"SELECT hour, {digest} AS digest FROM {view} GROUP BY hour"))

    def column_types(self, name: str) -> dict[str, str]:
        """See `Session.column_types`; files of the lake have the columns that were declared when they were written."""
        return schema_of(name) if name in LAKE_TABLES else self._ledger.column_types(name)

    def has_tables(self, names: Sequence[str]) -> bool:
        """See `Session.has_tables`; the ledger knows every table of its version."""
        return self._ledger.has_tables(names)

    def now(self) -> datetime:
        """See `Session.now`: the ledger's clock."""
        return self._ledger.now()

    def use_one_thread(self) -> None:
        """See `Session.use_one_thread`; the cluster's cores are other machines'."""
        self._ledger.use_one_thread()

    def counts_by_hour(self, name: str, hours: HourRange) -> dict[datetime, int]:
        """See `Session.counts_by_hour`; the cluster is not asked where nothing is published."""
        if name in LAKE_TABLES and not self._lake.hours_of(name, hours):
            return {}
        return super().counts_by_hour(name, hours)

    def latest_hour(self, name: str, hours: HourRange) -> datetime | None:
        """See `Session.latest_hour`; no folder of an hour is without rows."""
        if name not in LAKE_TABLES:
            return super().latest_hour(name, hours)
        return max(self._lake.hours_of(name, hours), default=None)

    # -- writing --

    def insert(self, name: str, rows: ir.Table) -> None:
        """See `Session.insert`."""
        if name not in LAKE_TABLES:
            if self._is_of_ledger(rows):
                self._ledger.insert(name, rows)
            else:
                self._ledger.insert_arrow(name, self.arrow(rows.select(*columns_of(name))))
            return
        self._lake.publish([self._frames.write(name, self._frame(rows.select(*columns_of(name))))])

    def insert_arrow(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """See `Session.insert_arrow`; this process writes the files."""
        if name not in LAKE_TABLES:
            self._ledger.insert_arrow(name, rows)
            return
        self._lake.publish([write_rows(self._lake.place, name, rows)])

    def insert_from_each(
        self, works: Sequence[Work], make: Callable[[Work, InsertArrow], Told], told: type[Told]
    ) -> list[Told]:
        """See `Session.insert_from_each`; executors call the function, and write the files."""
        place, lake_id = self._lake.place, self._lake.require_own()
        do = partial(executors.inserted, make=make, place=place, lake_id=lake_id, ordered=program())
        answers = [executors.understood(one, told) for one in executors.answers(self._spark, works, do)]
        written = [*chain.from_iterable(answer.written for answer in answers)]
        for one in written:
            self._frames.require_seen(one)
        self._lake.publish(written)
        return [answer.told for answer in answers]

    def delete_hours(self, name: str, hours: HourRange) -> None:
        """See `Session.delete_hours`."""
        if name not in LAKE_TABLES:
            self._ledger.delete_hours(name, hours)
        elif there := self._lake.hours_of(name, hours):
            self._lake.withdraw(name, there)

    def delete_duplicates(
        self,
        name: str,
        hours: HourRange,
        keys: Sequence[str],
        order: Sequence[str],
        *,
        into: str | None = None,
    ) -> int:
        """See `Session.delete_duplicates`."""
        if name not in LAKE_TABLES:
            return self._ledger.delete_duplicates(name, hours, keys, order, into=into)
        view, key = self._views.of(name, hours), ", ".join(keys)
        repeated = f"SELECT hour FROM {view} GROUP BY {key} HAVING count(*) > 1"
        touched = [hour for (hour,) in self._rows(f"SELECT DISTINCT hour FROM ({repeated})")]
        if not touched:
            return 0
        others = [column for column in columns_of(name) if column not in order]
        greatest_first = ", ".join(f"`{column}` DESC NULLS LAST" for column in (*order, *others))
        ranked = self._spark.sql(
            f"SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {greatest_first}) AS place FROM {view} "
            f"WHERE {is_among('hour', touched)}"
        )
        # rows that are equal in all columns have no order, so the choice is made once
        rows, _ = self._views.persist(ranked, ibis.schema({**schema_in_lake(name), "place": "int32"}))
        kept = rows.get_name()
        columns = ", ".join(f"`{column}`" for column in columns_of(name))
        [(losers,)] = self._rows(f"SELECT count(*) FROM {kept} WHERE place > 1")
        if into is not None:
            lost = self._spark.sql(f"SELECT {columns} FROM {kept} WHERE place > 1")
            self._lake.publish([self._frames.write(into, lost)])
        winners = self._spark.sql(f"SELECT {columns} FROM {kept} WHERE place = 1")
        self._rewrite(name, touched, winners, losers)
        return losers

    def update_rows(self, name: str, corrections: ir.Table, keys: Sequence[str]) -> set[datetime]:
        """See `Session.update_rows`."""
        if name not in LAKE_TABLES:
            return self._ledger.update_rows(name, corrections, keys)
        kept, count = self.persist(corrections)
        if not count:
            return set()
        place = kept.get_name()
        touched = [hour for (hour,) in self._rows(f"SELECT DISTINCT hour FROM {place}")]
        change = RowChange(
            table=name,
            condition=" AND ".join(f"{name}.`{key}` = {place}.`{key}`" for key in keys),
            values={column: f"{place}.`{column}`" for column in kept.columns if column not in keys},
            source=None,
        )
        self._apply(change, place, touched)
        return set(touched)

    def rewrite_hours(self, name: str, hours: HourRange, rows: ir.Table) -> None:
        """See `Session.rewrite_hours`."""
        if name not in LAKE_TABLES:
            self._ledger.rewrite_hours(name, hours, rows)
            return
        # few files of each hour, whatever machines have what of it
        frame = self._frame(rows.select(*columns_of(name))).hint("rebalance", "hour")
        self._rewrite(name, self._lake.hours_of(name, hours), frame)

    def _change(self, statement: sge.Expression, parameters: Parameters) -> None:
        """Update or delete single rows."""
        change = RowChange.of(statement, parameters)
        hours = hours_asked(statement, change.table, parameters, is_alone=change.source is None)
        view, source = self._views.of(change.table, hours), None
        if change.source is not None:
            source = change.source.alias
            given = change.source.this
            rows = self._ledger.query(given.sql(LEDGER_DIALECT), used_in(given, parameters))
            columns = [list(column) for column in zip(*rows, strict=True)]
            if not rows:
                return
            connect.give(self._spark, source, pa.table(columns, names=given.named_selects))
        rows_of_hour = dict(self._rows(change.touched(view, source)))
        if rows_of_hour:
            removed = sum(rows_of_hour.values()) if change.values is None else 0
            self._apply(change, source, rows_of_hour, removed)

    def _apply(self, change: RowChange, source: str | None, touched: Collection[datetime], removed: int = 0) -> None:
        """Write the hours that a change touches anew; its source is known to the cluster under this name."""
        hours = HourRange(min(touched), max(touched) + HOUR)
        rows = change.rows(self._views.of(change.table, hours), source, columns_of(change.table))
        frame = self._spark.sql(f"SELECT * FROM ({rows}) WHERE {is_among('hour', touched)}")
        self._rewrite(change.table, touched, frame, removed)

    def _rewrite(self, name: str, hours: Collection[datetime], frame: DataFrame, removed: int = 0) -> None:
        """Replace hours of a table with rows that were made of them.

        Args:
            name: the table.
            hours: the hours.
            frame: the rows.
            removed: how many rows fewer these are than before.

        Raises:
            RuntimeError: other rows are missing, or some are there more than once, as where a source has two for one.
        """
        before = self._lake.count(name, hours)
        written = self._frames.write(name, frame)
        if written.rows != before - removed:
            raise RuntimeError(
                f"{written.rows} rows were made of {before} rows of {name}, of which {removed} had to go"
            )
        self._lake.withdraw(name, hours)
        self._lake.publish([written])

    def _rows(self, sql: str) -> list[tuple]:
        """Few rows of SQL for Spark."""
        return _tuples(self._spark.sql(sql).toArrow())

    def _is_of_ledger(self, rows: ir.Table) -> bool:
        """Whether an expression is about the ledger's tables alone."""
        named = [node.name for node in rows.op().find(ops.UnboundTable)]
        return bool(named) and not any(name in self._views for name in named)

    def _frame(self, rows: ir.Table) -> DataFrame:
        return self._spark.sql(self.sql(rows))


def _plain_schema(rows: ir.Table) -> pa.Schema:
    return rows.schema().to_pyarrow()


def _tuples(rows: pa.Table) -> list[tuple]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
