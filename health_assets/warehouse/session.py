"""A session: one transaction on the warehouse, which reads tables as ibis expressions and writes their rows.

What belongs here: what is the same wherever the warehouse is, which is all that plain SQL can say. What does not: which
rows (`pipeline`, `systems`), what tables mean (`schema`), which hours an asset has (`partition_states`), and what each
engine does in a way of its own: connections, locks, versions, rows in bulk, fingerprints (`engines`).

SQL is written once, with `?` or `$name` for parameters, and must be valid on DuckDB and PostgreSQL alike.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, ClassVar, TypeVar

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.schema.catalog import columns_of, describe, schema_of
from health_assets.scoring.relations import within
from health_assets.warehouse.cluster_work import ClusterSession

HOUR_TYPE = pa.timestamp("us", "UTC")
CALLS = 256
"""Calls that keys are dealt out to where nobody knows how many rows there are."""
ROWS_AT_ONCE = 122_880
"""Rows that are shortened at once."""
Work = TypeVar("Work")
Told = TypeVar("Told")
InsertArrow = Callable[[str, pa.Table | pa.RecordBatchReader], None]
"""Appends Arrow rows to the table of a name."""


class Session(ABC):
    """One transaction on the warehouse; each engine has a class of its own for what it does its own way."""

    row_id: ClassVar[str]
    """The engine's name for the place of a row in its table."""
    types: ClassVar[Mapping[str, str]]
    """How the engine spells the types of columns, by how `schema.catalog.describe` writes them."""
    unnests_in_engine: ClassVar[bool]
    """Whether the engine unnests and ranks millions of lists sooner than this process reads and ranks them."""

    is_distributed: ClassVar[bool] = False
    """Whether `insert_from_each` calls its function on other machines."""
    cluster: ClusterSession | None = None
    """Its name on the cluster that computes it; None where none does."""
    last_state_write_at: datetime | None = None
    """The time of its last write to the states of partitions; None before any."""

    # -- what every engine does in a way of its own --

    @abstractmethod
    def query(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple]:
        """Run SQL and fetch all rows; for bookkeeping, not for bulk data."""

    @abstractmethod
    def arrow(self, rows: ir.Table) -> pa.Table:
        """Evaluate an expression."""

    @abstractmethod
    def stream(self, rows: ir.Table, rows_per_batch: int) -> pa.RecordBatchReader:
        """Evaluate an expression batch by batch, so that its rows never are in memory all at once."""

    @abstractmethod
    def sql(self, rows: ir.Table) -> str:
        """The SQL of an expression; small tables in memory that it uses become known to the session."""

    @abstractmethod
    def persist(self, rows: ir.Table) -> tuple[ir.Table, int]:
        """Evaluate an expression once, to be used several times in this session; with its number of rows."""

    @abstractmethod
    def insert_arrow(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Append Arrow rows that have the table's columns by name."""

    def insert_from_each(
        self, works: Sequence[Work], make: Callable[[Work, InsertArrow], Told], told: type[Told]
    ) -> list[Told]:
        """Append the rows that a function makes of each of some pieces of work, wherever the engine calls it.

        Args:
            works: the pieces, which are sent to other machines where the engine is distributed.
            make: the function, of a module. It gets a piece and a function like `insert_arrow` for its rows.
            told: type of what it tells besides: a dataclass of plain values, which come back as JSON.

        Returns:
            What it told of each piece, in their order.
        """
        del told  # nothing is sent
        return [make(work, self.insert_arrow) for work in works]

    @abstractmethod
    def digests(self, name: str, hours: HourRange) -> dict[datetime, int]:
        """A fingerprint of the rows of each hour, the same in any order; to be compared within one warehouse.

        The version of the formula is no part of it: rows that a new version makes as they were have not changed.
        """

    @abstractmethod
    def column_types(self, name: str) -> dict[str, str]:
        """The columns of a table in the warehouse, with their types as `schema.catalog.describe` writes them."""

    @abstractmethod
    def now(self) -> datetime:
        """The time, by the one clock that all who write to this warehouse go by."""

    @abstractmethod
    def use_one_thread(self) -> None:
        """Leave the other cores to other programs for the rest of the session."""

    def before_commit(self) -> None:  # noqa: B027 # most have nothing left
        """Do what an engine has left to do before a commit; to be called once, when all is written."""

    def table(self, name: str) -> ir.Table:
        """A table as an ibis expression."""
        return _table(name)

    def hours_of(self, name: str, hours: HourRange) -> ir.Table:
        """The rows of a table in `[hours.start, hours.end)`."""
        return _hours_of(name, hours)

    def grouped(
        self,
        rows: ir.Table,
        keys: Sequence[str],
        order: Sequence[str],
        make: Callable[[pa.Table], pa.Table],
        calls: int = CALLS,
        shorten: Callable[[pa.Table], pa.Table] | None = None,
    ) -> ir.Table:
        """The rows that a function makes of rows with the same keys, computed where the rows are.

        Args:
            rows: an expression.
            keys: columns that tell apart what the function looks at together.
            order: columns that it wants the rows in the order of, the keys first; none where any order will do.
            make: the function. It gets all rows of any number of keys, also of none, and is sent to other machines
                where the engine has such; so it is one of a module, or a `partial` of one.
            calls: to how many calls the keys are dealt out where they are sent to other machines.
            shorten: a function that the rows go through first, some at a time, so that less is in memory at once.
        """
        del keys, calls  # this process calls it once, for all
        ordered = rows.order_by(list(order)) if order else rows
        return ibis.memtable(make(self.arrow(ordered) if shorten is None else self._shortened(ordered, shorten)))

    def _shortened(self, rows: ir.Table, shorten: Callable[[pa.Table], pa.Table]) -> pa.Table:
        with self.stream(rows, ROWS_AT_ONCE) as batches:
            none = shorten(batches.schema.empty_table())
            return pa.concat_tables([none, *(shorten(pa.table(batch)) for batch in batches)])

    def has_tables(self, names: Sequence[str]) -> bool:
        """Whether the warehouse has all of these tables."""
        sql = (
            "SELECT count(*) FROM information_schema.tables WHERE table_catalog = current_database() "
            "AND table_schema = current_schema() AND table_name IN (SELECT unnest(?))"
        )
        return self.query(sql, [list(names)]) == [(len(names),)]

    def dicts(self, rows: ir.Table) -> list[dict[str, Any]]:
        """Evaluate an expression of few rows: each as a dict by column, for what a person reads."""
        return [dict(zip(rows.columns, values, strict=True)) for values in self.query(self.sql(rows))]

    def count(self, rows: ir.Table) -> int:
        """The number of rows of an expression."""
        [(count,)] = self.query(f"SELECT count(*) FROM ({self.sql(rows)}) AS counted")
        return count

    def count_hours(self, name: str, hours: HourRange) -> int:
        """The number of rows of a table in `[hours.start, hours.end)`."""
        sql = f"SELECT count(*) FROM {name} WHERE hour >= ? AND hour < ?"
        [(count,)] = self.query(sql, [hours.start, hours.end])
        return count

    def counts_by_hour(self, name: str, hours: HourRange) -> dict[datetime, int]:
        """The number of rows of a table in each of these hours; hours without any are left out."""
        sql = f"SELECT hour, count(*) FROM {name} WHERE hour >= ? AND hour < ? GROUP BY hour"
        return dict(self.query(sql, [hours.start, hours.end]))

    def latest_hour(self, name: str, hours: HourRange) -> datetime | None:
        """The last of these hours that has rows in a table; None where none has."""
        sql = f"SELECT max(hour) FROM {name} WHERE hour >= ? AND hour < ?"
        return self.query(sql, [hours.start, hours.end])[0][0]

    def insert(self, name: str, rows: ir.Table) -> None:
        """Append the rows of an expression that has the table's columns."""
        columns = columns_of(name)
        self._insert_from(name, f"({self.sql(rows.select(*columns))})")

    def _insert_from(self, name: str, source: str) -> None:
        """Append rows of SQL in the table's types, where an engine would not by itself make whole numbers of sums."""
        values = ", ".join(f"CAST({column} AS {self.types[kind]})" for column, kind, *_ in describe(name))
        self.query(f"INSERT INTO {name} ({', '.join(columns_of(name))}) SELECT {values} FROM {source} AS incoming")

    def delete_hours(self, name: str, hours: HourRange) -> None:
        """Delete the rows of `[hours.start, hours.end)`."""
        self.query(f"DELETE FROM {name} WHERE hour >= ? AND hour < ?", [hours.start, hours.end])

    def delete_duplicates(
        self,
        name: str,
        hours: HourRange,
        keys: Sequence[str],
        order: Sequence[str],
        *,
        into: str | None = None,
    ) -> int:
        """Keep one of the rows of these hours with equal `keys`: the greatest by `order`, then by the other columns.

        Args:
            name: the table.
            hours: the hours.
            keys: columns that are equal, with `hour` among them.
            order: columns that say which row is greater.
            into: a table with the same columns that gets the others; they are deleted without it.

        Returns:
            How many rows lost.
        """
        span = {"start": hours.start, "end": hours.end}
        inside = f"FROM {name} WHERE hour >= $start AND hour < $end"
        key = ", ".join(keys)
        # looking for one costs a tenth of ranking all, and mostly there is none
        if not self.query(f"SELECT 1 {inside} GROUP BY {key} HAVING count(*) > 1 LIMIT 1", span):
            return 0
        # the other columns are dear to sort by, and mostly no two rows are equal but for them
        has_ties = self.query(
            f"SELECT 1 {inside} GROUP BY {', '.join((*keys, *order))} HAVING count(*) > 1 LIMIT 1", span
        )
        greatest_first = ", ".join((*_descending(name, order, has_ties=bool(has_ties)), f"{self.row_id} DESC"))
        ranked = (
            f"SELECT {self.row_id}, row_number() OVER (PARTITION BY {key} ORDER BY {greatest_first}) AS place {inside}"
        )
        losers = f"SELECT {self.row_id} FROM ({ranked}) AS ranked WHERE place > 1"
        if into is not None:
            columns = ", ".join(columns_of(name))
            lost = f"SELECT {columns} FROM {name} WHERE {self.is_among(losers)}"
            self.query(f"INSERT INTO {into} ({columns}) {lost}", span)
        return len(self.query(f"DELETE FROM {name} WHERE {self.is_among(losers)} RETURNING 1", span))

    def is_among(self, rows: str) -> str:
        """A condition: the row's place is among those that SQL selects."""
        return f"{self.row_id} IN ({rows})"

    def update_rows(self, name: str, corrections: ir.Table, keys: Sequence[str]) -> set[datetime]:
        """Set columns of single rows of a table.

        Args:
            name: the table.
            corrections: `keys`, with `hour` among them, and the columns to set; one row per row of the table.
            keys: columns that tell the rows apart.

        Returns:
            The hours of the corrections.
        """
        kept, count = self.persist(corrections)
        if not count:
            return set()
        hours = {hour for (hour,) in self.query(f"SELECT DISTINCT hour FROM ({self.sql(kept)}) AS kept")}
        is_json = {column for column, kind, *_ in describe(name) if kind == "json"}  # a kept table has it as text
        values = ", ".join(
            f"{column} = CAST(kept.{column} AS JSON)" if column in is_json else f"{column} = kept.{column}"
            for column in kept.columns
            if column not in keys
        )
        same = " AND ".join(f"{name}.{key} = kept.{key}" for key in keys)
        # the range is for engines that would otherwise look at every hour for those of the rows
        self.query(
            f"UPDATE {name} SET {values} FROM ({self.sql(kept)}) AS kept "
            f"WHERE {same} AND {name}.hour >= ? AND {name}.hour < ?",
            [min(hours), max(hours) + HOUR],
        )
        return hours

    def rewrite_hours(self, name: str, hours: HourRange, rows: ir.Table) -> None:
        """Replace whole hours with as many rows, computed from those same hours."""
        columns = columns_of(name)
        self.query(f"CREATE TEMP TABLE rewritten AS {self.sql(rows.select(*columns))}")
        self.delete_hours(name, hours)
        self._insert_from(name, "rewritten")
        self.query("DROP TABLE rewritten")


def _descending(name: str, order: Sequence[str], *, has_ties: bool) -> list[str]:
    """Terms of ORDER BY, the greatest row first: by some columns, and where these have ties by all others."""
    others = {column: kind for column, kind, *_ in describe(name) if column not in order} if has_ties else {}
    texts = {column: f'CAST({column} AS VARCHAR) COLLATE "C"' for column, kind in others.items() if kind == "json"}
    return [f"{texts.get(column, column)} DESC NULLS LAST" for column in (*order, *others)]


@cache
def _table(name: str) -> ir.Table:
    return ibis.table(schema_of(name), name=name)


@lru_cache(1_000)
def _hours_of(name: str, hours: HourRange) -> ir.Table:
    """Made once, since a run asks a hundred times for the rows of the same few tables and hours."""
    return within(_table(name), hours)
