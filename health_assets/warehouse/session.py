"""A session: one transaction on the warehouse, which reads tables as ibis expressions and replaces whole hours.

What belongs here: what is the same wherever the warehouse is, which is all that plain SQL can say. What does not: which
rows (`pipeline`, `systems`), what tables mean (`schema`), and what each engine does in a way of its own: connections,
locks, versions, rows in bulk, fingerprints (`engines`).

SQL is written once, with `?` or `$name` for parameters, and must be valid on DuckDB and PostgreSQL alike.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, ClassVar

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.schema.catalog import columns_of, describe, schema_of
from health_assets.schema.columns import FIRST_FORMULA_VERSION, FORMULA_VERSION
from health_assets.scoring.relations import lookup


class Session(ABC):
    """One transaction on the warehouse; each engine has a class of its own for what it does its own way."""

    row_id: ClassVar[str]
    """What the engine calls the place of a row in its table."""

    # -- what every engine does in a way of its own --

    @abstractmethod
    def query(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple]:
        """Run SQL and fetch all rows; for bookkeeping, not for bulk data."""

    @abstractmethod
    def arrow(self, rows: ir.Table) -> pa.Table:
        """Evaluate an expression."""

    @abstractmethod
    def stream(self, sql: str, parameters: dict[str, Any], rows_per_batch: int) -> pa.RecordBatchReader:
        """Run SQL and read its rows batch by batch; for bulk data that SQL says better than an expression."""

    @abstractmethod
    def sql(self, rows: ir.Table) -> str:
        """The SQL of an expression; small tables in memory that it uses become known to the session."""

    @abstractmethod
    def kept(self, rows: ir.Table) -> tuple[ir.Table, int]:
        """Evaluate an expression once, to be used several times in this session; with its number of rows."""

    @abstractmethod
    def insert_arrow(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Append Arrow rows that have the table's columns by name."""

    @abstractmethod
    def digests(self, name: str, hours: HourRange) -> dict[datetime, int]:
        """A fingerprint of the rows of each hour, the same in any order; to be compared within one warehouse.

        The version of the formula is no part of it: rows that a new version makes as they were have not changed.
        """

    @abstractmethod
    def column_types(self, name: str) -> dict[str, str]:
        """The columns of a table as the warehouse has them, with their types as `tables.describe` writes them."""

    @abstractmethod
    def now(self) -> datetime:
        """The time, by the one clock that all who write to this warehouse go by."""

    @abstractmethod
    def use_one_thread(self) -> None:
        """Leave the other cores to other programs for the rest of the session."""

    def table(self, name: str) -> ir.Table:
        """A table as an ibis expression."""
        return ibis.table(schema_of(name), name=name)

    def hours_of(self, name: str, hours: HourRange) -> ir.Table:
        """The rows of a table in `[hours.start, hours.end)`."""
        rows = self.table(name)
        return rows.filter(rows.hour >= hours.start, rows.hour < hours.end)

    def count(self, rows: ir.Table) -> int:
        """How many rows an expression has."""
        [(count,)] = self.query(f"SELECT count(*) FROM ({self.sql(rows)}) AS counted")
        return count

    def count_hours(self, name: str, hours: HourRange) -> int:
        """How many rows a table has in `[hours.start, hours.end)`."""
        sql = f"SELECT count(*) FROM {name} WHERE hour >= ? AND hour < ?"
        [(count,)] = self.query(sql, [hours.start, hours.end])
        return count

    def insert(self, name: str, rows: ir.Table) -> None:
        """Append the rows of an expression that has the table's columns."""
        columns = columns_of(name)
        self._insert_from(name, f"({self.sql(rows.select(*columns))})")

    def _insert_from(self, name: str, source: str) -> None:
        """Append rows of SQL in the table's types, where an engine would not by itself make whole numbers of sums."""
        values = ", ".join(f"CAST({column} AS {sql_type})" for column, sql_type, *_ in describe(name))
        self.query(f"INSERT INTO {name} ({', '.join(columns_of(name))}) SELECT {values} FROM {source} AS incoming")

    def delete_hours(self, name: str, hours: HourRange) -> None:
        """Delete the rows of `[hours.start, hours.end)`."""
        self.query(f"DELETE FROM {name} WHERE hour >= ? AND hour < ?", [hours.start, hours.end])

    def replace_hours(
        self,
        name: str,
        hours: HourRange | HourGroups,
        rows: ir.Table,
        unchanged: AbstractSet[datetime] = frozenset(),
        *,
        formula_version: str,
        other_versions: Mapping[datetime, str] | None = None,
    ) -> None:
        """Replace whole hours of an asset's table and note that they are materialized, and by which formula.

        Args:
            name: the asset's table.
            hours: the hours.
            rows: their rows, without the column of the formula's version; those of hours that lie in a hole are left
                out.
            unchanged: hours whose rows count as what they were, whatever they are.
            formula_version: version of the formula that made the rows.
            other_versions: what is noted instead, of hours of which that would not be the whole truth.
        """
        versions = dict.fromkeys(hours, formula_version) | dict(other_versions or {})
        if FORMULA_VERSION in columns_of(name):
            rows = _with_versions(rows, formula_version, other_versions or {})
        span = HourRange(hours.start, hours.end)
        before = self._fingerprints(name, span) | self._dropped_fingerprints(name, span)
        for own in hours.ranges:
            self.delete_hours(name, own)
        if len(hours.ranges) > 1:
            wanted = ibis.memtable(pa.table({"hour": pa.array(list(hours), pa.timestamp("us", "UTC"))}))
            rows = rows.semi_join(wanted, "hour")
        self.insert(name, rows)
        after = self._fingerprints(name, span)
        changed = {hour for hour in hours if before.get(hour, "") != after.get(hour, "")} - unchanged
        for own in hours.ranges:
            self.note_materialized(name, own, changed & set(own), versions)

    def drop_hours(self, name: str, hours: HourRange, *, is_remembered: bool) -> int:
        """Delete the rows of whole hours on purpose; returns how many.

        Args:
            name: the asset's table.
            hours: the hours.
            is_remembered: whether to take a fingerprint, by which the same rows are known again if they come back.
        """
        if not self.materialized_hours(name, hours):
            return 0
        digests = self._fingerprints(name, hours) if is_remembered else {}
        count = self.count_hours(name, hours)
        self.delete_hours(name, hours)
        condition = "asset = ? AND dropped_digest IS NULL AND hour >= ? AND hour < ?"
        for hour, digest in digests.items():
            self.query(
                f"UPDATE materialized_hours SET dropped_digest = ?, rows = 0 WHERE {condition}",
                [digest, name, hour, hour + HOUR],
            )
        self.query(
            f"UPDATE materialized_hours SET dropped_digest = '', rows = 0 WHERE {condition}",
            [name, hours.start, hours.end],
        )
        return count

    def dropped_hours(self, asset: str, hours: HourRange) -> set[datetime]:
        """Those of these hours of the asset that were dropped and have not been made again."""
        return set(self._dropped_fingerprints(asset, hours))

    def dropped_versions(self, asset: str, hours: HourRange) -> dict[datetime, str]:
        """The same hours, with the version of the formula that had made their rows."""
        sql = (
            "SELECT hour, coalesce(formula_version, ?) FROM materialized_hours "
            "WHERE asset = ? AND dropped_digest IS NOT NULL AND hour >= ? AND hour < ?"
        )
        return dict(self.query(sql, [FIRST_FORMULA_VERSION, asset, hours.start, hours.end]))

    def _dropped_fingerprints(self, asset: str, hours: HourRange) -> dict[datetime, str]:
        sql = (
            "SELECT hour, dropped_digest FROM materialized_hours "
            "WHERE asset = ? AND dropped_digest IS NOT NULL AND hour >= ? AND hour < ?"
        )
        return dict(self.query(sql, [asset, hours.start, hours.end]))

    def dropped_until(self, asset: str | None = None) -> datetime | None:
        """The end of the latest hour of which an asset's rows, or any one's, were dropped; None where none were."""
        sql = "SELECT max(hour) FROM materialized_hours WHERE dropped_digest IS NOT NULL"
        [(latest,)] = self.query(f"{sql} AND asset = ?", [asset]) if asset else self.query(sql)
        return latest and latest + HOUR

    def _fingerprints(self, name: str, hours: HourRange) -> dict[datetime, str]:
        return {hour: str(digest) for hour, digest in self.digests(name, hours).items()}

    def delete_duplicates(
        self,
        name: str,
        hours: HourRange,
        keys: Sequence[str],
        order: Sequence[str],
        returning: Sequence[str] = ("hour", "source_file"),
    ) -> list[tuple]:
        """Of rows of these hours with equal `keys` keep the one that is greatest by `order`; of equal ones any.

        Returns:
            The columns `returning` of every row that was deleted.
        """
        span = {"start": hours.start, "end": hours.end}
        inside = f"FROM {name} WHERE hour >= $start AND hour < $end"
        key = ", ".join(keys)
        # looking for one costs a tenth of ranking all, and mostly there is none
        if not self.query(f"SELECT 1 {inside} GROUP BY {key} HAVING count(*) > 1 LIMIT 1", span):
            return []
        greatest_first = ", ".join(f"{column} DESC" for column in (*order, self.row_id))
        ranked = (
            f"SELECT {self.row_id}, row_number() OVER (PARTITION BY {key} ORDER BY {greatest_first}) AS place {inside}"
        )
        losers = f"SELECT {self.row_id} FROM ({ranked}) AS ranked WHERE place > 1"
        deleted = f"DELETE FROM {name} WHERE {self.is_among(losers)} RETURNING {', '.join(returning)}"
        return self.query(deleted, span)

    def is_among(self, rows: str) -> str:
        """A condition: the row's place is among those that SQL selects."""
        return f"{self.row_id} IN ({rows})"

    def correct_rows(self, name: str, corrections: ir.Table, keys: Sequence[str]) -> None:
        """Set columns of single rows of an asset's table, and note that their hours have changed.

        Args:
            name: the table.
            corrections: `keys`, with `hour` among them, and the columns to set; one row per row of the table.
            keys: columns that tell the rows apart.
        """
        kept, count = self.kept(corrections)
        if not count:
            return
        values = ", ".join(f"{column} = kept.{column}" for column in kept.columns if column not in keys)
        same = " AND ".join(f"{name}.{key} = kept.{key}" for key in keys)
        [(first, last)] = self.query(f"SELECT min(hour), max(hour) FROM ({self.sql(kept)}) AS kept")
        # the range is for engines that would otherwise look at every hour for those of the rows
        self.query(
            f"UPDATE {name} SET {values} FROM ({self.sql(kept)}) AS kept "
            f"WHERE {same} AND {name}.hour >= ? AND {name}.hour < ?",
            [first, last + HOUR],
        )
        self.query(
            "UPDATE materialized_hours SET changed_at = ? "
            f"WHERE asset = ? AND hour IN (SELECT hour FROM ({self.sql(kept)}) AS kept)",
            [self.now(), name],
        )

    def rewrite_hours(self, name: str, hours: HourRange, rows: ir.Table) -> None:
        """Replace whole hours with rows computed from those same hours."""
        columns = columns_of(name)
        self.query(f"CREATE TEMP TABLE rewritten AS {self.sql(rows.select(*columns))}")
        self.delete_hours(name, hours)
        self._insert_from(name, "rewritten")
        self.query("DROP TABLE rewritten")

    def note_materialized(
        self,
        asset: str,
        hours: HourRange,
        changed: Iterable[datetime],
        versions: Mapping[datetime, str] | None = None,
    ) -> None:
        """Write down that these hours of the asset are materialized.

        Args:
            asset: the asset.
            hours: the hours.
            changed: those of them that have other rows than before.
            versions: by hour, the version of the formula that made its rows; without one, the asset has no formula.
        """
        now = self.now()
        span = [hours.start, hours.end]
        counted = self.query(f"SELECT hour, count(*) FROM {asset} WHERE hour >= ? AND hour < ? GROUP BY hour", span)
        condition = "asset = ? AND hour >= ? AND hour < ?"
        earlier = self.query(f"SELECT hour, changed_at FROM materialized_hours WHERE {condition}", [asset, *span])
        changed_at = {**dict(earlier), **dict.fromkeys(changed, now)}
        rows = dict(counted)
        times = pa.timestamp("us", "UTC")
        self.query(f"DELETE FROM materialized_hours WHERE {condition}", [asset, *span])
        self.insert_arrow(
            "materialized_hours",
            pa.table(
                {
                    "hour": pa.array(list(hours), times),
                    "asset": [asset] * len(hours),
                    "rows": [rows.get(hour, 0) for hour in hours],
                    "materialized_at": pa.array([now] * len(hours), times),
                    "changed_at": pa.array([changed_at.get(hour) for hour in hours], times),
                    "dropped_digest": pa.nulls(len(hours), pa.string()),
                    "formula_version": pa.array([(versions or {}).get(hour) for hour in hours], pa.string()),
                }
            ),
        )

    def materialized_hours(self, asset: str, hours: HourRange) -> set[datetime]:
        """Those of these hours of the asset that have been materialized, and were not dropped since."""
        rows = self.query(
            "SELECT hour FROM materialized_hours WHERE asset = ? AND dropped_digest IS NULL AND hour >= ? AND hour < ?",
            [asset, hours.start, hours.end],
        )
        return {row[0] for row in rows}

    def other_versions(
        self, assets: Iterable[str], formula_version: str, hours: HourRange
    ) -> dict[str, dict[datetime, str]]:
        """Hours of these assets that have rows which another version of their formula made, with that version.

        Args:
            assets: the assets.
            formula_version: the version of today, the same for all of them.
            hours: hours to look at.

        Returns:
            The hours by asset; nothing of assets that have none.
        """
        rows = self.query(
            """
            SELECT asset, hour, coalesce(formula_version, $first) FROM materialized_hours
            WHERE asset IN (SELECT unnest($assets)) AND hour >= $start AND hour < $end AND dropped_digest IS NULL
                AND coalesce(formula_version, $first) <> $version
            """,
            {
                "assets": list(assets),
                "first": FIRST_FORMULA_VERSION,
                "version": formula_version,
                "start": hours.start,
                "end": hours.end,
            },
        )
        found: dict[str, dict[datetime, str]] = {}
        for asset, hour, version in rows:
            found.setdefault(asset, {})[hour] = version
        return found

    def hours_older_than(
        self, asset: str, sources: Sequence[str], hours: HourRange, *, reach_hours: int = 1
    ) -> set[datetime]:
        """Hours of `asset` that were not materialized since an hour of `sources` that they look back on changed.

        Args:
            asset: the asset in question.
            sources: assets that it is made from.
            hours: hours of `asset` to look at.
            reach_hours: how many hours of the sources, ending with its own, an hour is made from.
        """
        rows = self.query(
            f"""
            WITH newest AS (
                SELECT spine.hour, max(sources.changed_at) AS changed_at
                FROM materialized_hours AS sources
                JOIN (SELECT DISTINCT hour FROM materialized_hours WHERE hour >= $start AND hour < $end) AS spine
                    ON sources.hour <= spine.hour AND sources.hour > spine.hour - INTERVAL '{int(reach_hours)} hours'
                WHERE sources.asset IN (SELECT unnest($sources))
                GROUP BY spine.hour
            )
            SELECT newest.hour FROM newest
            LEFT JOIN materialized_hours AS own ON own.hour = newest.hour AND own.asset = $asset
            WHERE newest.changed_at IS NOT NULL
                AND (own.materialized_at IS NULL OR own.materialized_at < newest.changed_at)
            """,
            {"asset": asset, "sources": list(sources), "start": hours.start, "end": hours.end},
        )
        return {row[0] for row in rows}

    def first_event_hour(self) -> datetime | None:
        """The earliest hour with an event in any raw log that was read, and that is not lost; None before the first."""
        sql = "SELECT min(hour) FROM raw_logs WHERE record_type <> 'rejected' AND lines > coalesce(lost, 0)"
        return self.query(sql)[0][0]


def _with_versions(rows: ir.Table, formula_version: str, others: Mapping[datetime, str]) -> ir.Table:
    """Rows with the version of the formula that made them, which some hours have of their own."""
    rows = rows.mutate(**{FORMULA_VERSION: ibis.literal(formula_version)})
    if not others:
        return rows
    own = ibis.memtable(
        pa.table({"hour": pa.array(list(others), pa.timestamp("us", "UTC")), "own_version": list(others.values())})
    )
    joined = lookup(rows, own, "hour")
    version = ibis.coalesce(joined.own_version, joined[FORMULA_VERSION])
    return joined.mutate(**{FORMULA_VERSION: version}).drop("own_version")
