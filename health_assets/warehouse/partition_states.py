"""Partition states: which hours every asset has, since when, by which formula, and which of them retention dropped.

What belongs here: reading and writing `partition_states`, and with it the rows of whole hours, which change in the
same transaction. What does not: which hours a run builds (`pipeline.build_selection`) and writes that no asset's hours
follow from (`session`).

An hour that was materialized without rows is told from one that never was. An hour that retention dropped keeps its
state, but does not count as materialized until it is made again.

An hour is stale if one of its inputs changed after it was materialized. Times are enough for that: only a write that
leaves other rows moves `changed_at`, and each write is noted later than all before it, also by a clock that was set
back.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import NamedTuple

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import EVER, HOUR, HourGroups, HourRange
from health_assets.core.systems import FIRST_FORMULA_VERSION
from health_assets.schema.catalog import columns_of
from health_assets.schema.columns import FORMULA_VERSION
from health_assets.scoring.relations import lookup, of_hours
from health_assets.warehouse.session import HOUR_TYPE, Session

SCORED_ASSET = "system_health"
"""The asset whose hours count as scored: those it lacks are missed, and what other assets lack of its hours is late."""


class WrittenHour(NamedTuple):
    """An hour of an asset, and when it was last materialized or corrected."""

    hour: datetime
    written_at: datetime


class WrittenRows(NamedTuple):
    """The time at which an hour of an asset was last materialized or corrected, its rows, and whether they are gone."""

    written_at: datetime
    rows: int
    is_dropped: bool


class PartitionStatus(NamedTuple):
    """The status of an hour of an asset.

    Args:
        is_materialized: whether the asset has the hour, with or without rows.
        is_dropped: whether retention dropped its rows.
        formula_version: version of the formula that made its rows.
        is_stale: whether an input changed since it was materialized, or there is one and it never was.
        is_stale_by_own_hour: the same for inputs of the same hour alone.
    """

    is_materialized: bool
    is_dropped: bool
    formula_version: str
    is_stale: bool
    is_stale_by_own_hour: bool


class AssetInputs(NamedTuple):
    """The assets that an asset is made from, and those of which it is made from the same hour alone."""

    upstream: Sequence[str]
    same_hour_upstream: Sequence[str] = ()


class PartitionStates:
    """The state of every asset's hours, within a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    # -- hours that are there --

    def of(self, asset: str, hours: HourRange = EVER) -> set[datetime]:
        """The hours among these that are materialized in the asset, and were not dropped since."""
        return self.of_any([asset], hours)

    def of_any(self, assets: Iterable[str], hours: HourRange = EVER) -> set[datetime]:
        """The hours among these that one of the assets has."""
        rows = self._session.query(
            f"SELECT DISTINCT hour FROM partition_states "
            f"WHERE {_AMONG} AND {_THERE} AND hour >= $start AND hour < $end",
            {"assets": list(assets), "start": hours.start, "end": hours.end},
        )
        return {hour for (hour,) in rows}

    def of_each(self, assets: Iterable[str], hours: HourRange = EVER) -> dict[str, set[datetime]]:
        """By asset, the hours among these that are materialized in it, and were not dropped since."""
        return self._hours_by_asset(_THERE, assets, hours)

    def _hours_by_asset(self, condition: str, assets: Iterable[str], hours: HourRange) -> dict[str, set[datetime]]:
        found: dict[str, set[datetime]] = {asset: set() for asset in assets}
        rows = self._session.query(
            f"SELECT asset, hour FROM partition_states "
            f"WHERE {_AMONG} AND {condition} AND hour >= $start AND hour < $end",
            {"assets": [*found], "start": hours.start, "end": hours.end},
        )
        for asset, hour in rows:
            found[asset].add(hour)
        return found

    def first_of_any(self, assets: Iterable[str], before: datetime) -> datetime | None:
        """The earliest hour before a time that one of the assets has; None where there is none."""
        [(first,)] = self._session.query(
            f"SELECT min(hour) FROM partition_states WHERE {_AMONG} AND {_THERE} AND hour < $before",
            {"assets": list(assets), "before": before},
        )
        return first

    def missing(
        self,
        assets: Iterable[str],
        hours: HourGroups,
        asked: HourRange | HourGroups,
        first_event_hour: datetime | None,
    ) -> set[datetime]:
        """The hours among these that one of the assets lacks; before the first event only those asked for.

        Args:
            assets: the assets.
            hours: the hours.
            asked: hours among them that are asked for.
            first_event_hour: the first hour with an event; None where there is none.
        """
        there = self.of_each(assets, hours.span).values()
        expected = expected_hours(hours, asked, first_event_hour)
        return {hour for hour in expected if any(hour not in own for own in there)}

    def never_made(self, assets: Iterable[str], among: Iterable[str], hours: HourRange) -> dict[datetime, set[str]]:
        """By hour, the assets that never had it, of the hours that one of some assets ever had.

        Hours that retention dropped were made.

        Args:
            assets: the assets.
            among: assets whose hours are looked at.
            hours: the hours to look at.
        """
        rows = self._session.query(
            """
            SELECT known.hour, declared.asset
            FROM (
                SELECT DISTINCT hour FROM partition_states
                WHERE asset IN (SELECT unnest($among)) AND hour >= $start AND hour < $end
            ) AS known
            CROSS JOIN (SELECT unnest($assets) AS asset) AS declared
            LEFT JOIN partition_states AS own ON own.hour = known.hour AND own.asset = declared.asset
            WHERE own.asset IS NULL
            """,
            {"assets": [*assets], "among": [*among], "start": hours.start, "end": hours.end},
        )
        found: dict[datetime, set[str]] = {}
        for hour, asset in rows:
            found.setdefault(hour, set()).add(asset)
        return found

    def covered(self, asset: str, hours: HourRange, window_hours: int, first_event_hour: datetime | None) -> list[int]:
        """For each hour, how many hours of the window that ends with it the asset has, or lie before the first log."""
        there = self.of(asset, hours.extended_back(window_hours - 1))
        return hours_covered(hours, window_hours, there, first_event_hour)

    # -- hours that were ever materialized, also those that retention dropped --

    def first(self, asset: str) -> datetime | None:
        """The earliest hour that was ever materialized; None where none was."""
        [(first,)] = self._session.query("SELECT min(hour) FROM partition_states WHERE asset = ?", [asset])
        return first

    def newest(
        self, asset: str, over_by: datetime | None = None, *, made_by: datetime | None = None
    ) -> datetime | None:
        """The newest hour that was ever materialized, of those over and made by a time; None where none was."""
        [(newest,)] = self._session.query(
            "SELECT max(hour) FROM partition_states WHERE asset = ? AND hour <= ? AND materialized_at <= ?",
            [asset, EVER.end if over_by is None else over_by - HOUR, made_by or EVER.end],
        )
        return newest

    def newest_final(self, asset: str, over_by: datetime) -> datetime | None:
        """The newest hour that is over by a time and was made after its end; None where none was."""
        [(newest,)] = self._session.query(
            "SELECT max(hour) FROM partition_states WHERE asset = ? AND hour <= ? AND as_of IS NULL",
            [asset, over_by - HOUR],
        )
        return newest

    def newest_of_each(self, assets: Iterable[str], over_by: datetime) -> dict[str, WrittenHour]:
        """The newest hour of each asset, in order, that was over by a time; an asset without one is left out."""
        rows = self._session.query(
            f"""
            SELECT asset, hour, greatest(materialized_at, changed_at)
            FROM (
                SELECT *, row_number() OVER (PARTITION BY asset ORDER BY hour DESC) AS place FROM partition_states
                WHERE {_AMONG} AND hour <= $newest
            ) AS placed
            WHERE place = 1 ORDER BY asset
            """,
            {"assets": list(assets), "newest": over_by - HOUR},
        )
        return {asset: WrittenHour(hour, written_at) for asset, hour, written_at in rows}

    def assets(self) -> set[str]:
        """The assets of which any hour was ever materialized."""
        return {asset for (asset,) in self._session.query("SELECT DISTINCT asset FROM partition_states")}

    def last_made_at(self, asset: str, *, made_by: datetime | None = None) -> datetime | None:
        """The time at which any hour of the asset was last materialized, by a time; None if none was."""
        sql = "SELECT max(materialized_at) FROM partition_states WHERE asset = ? AND materialized_at <= ?"
        [(last,)] = self._session.query(sql, [asset, made_by or EVER.end])
        return last

    def made_at(self, hours: HourRange) -> dict[datetime, dict[str, datetime]]:
        """For each of these hours that any asset has, when which asset was last materialized."""
        rows = self._session.query(
            "SELECT hour, asset, materialized_at FROM partition_states WHERE hour >= ? AND hour < ?",
            [hours.start, hours.end],
        )
        made: dict[datetime, dict[str, datetime]] = {}
        for hour, asset, at in rows:
            made.setdefault(hour, {})[asset] = at
        return made

    def written(self, hours: HourRange) -> dict[str, dict[str, WrittenRows]]:
        """For each asset and hour, as ISO 8601, when it was last materialized or corrected, with its rows.

        Hours that retention dropped since are among them: of what follows from them that is no news.
        """
        rows = self._session.query(
            "SELECT asset, hour, greatest(materialized_at, changed_at), rows, dropped_digest IS NOT NULL "
            "FROM partition_states WHERE hour >= ? AND hour < ?",
            [hours.start, hours.end],
        )
        written: dict[str, dict[str, WrittenRows]] = {}
        for asset, hour, at, count, is_dropped in rows:
            written.setdefault(asset, {})[hour.isoformat()] = WrittenRows(at, count, is_dropped)
        return written

    # -- hours that were made before they were over --

    def as_of(self, asset: str, hours: HourRange = EVER) -> dict[datetime, datetime]:
        """Up to when hours of an asset are known that were not over when they were last made; no others."""
        sql = (
            "SELECT hour, as_of FROM partition_states WHERE asset = ? AND as_of IS NOT NULL AND hour >= ? AND hour < ?"
        )
        return dict(self._session.query(sql, [asset, hours.start, hours.end]))

    def not_final(self, assets: Iterable[str], hours: HourRange) -> set[datetime]:
        """The hours among these that one of the assets has as they were before they were over."""
        rows = self._session.query(
            f"SELECT DISTINCT hour FROM partition_states "
            f"WHERE {_AMONG} AND {_THERE} AND as_of IS NOT NULL AND hour >= $start AND hour < $end",
            {"assets": list(assets), "start": hours.start, "end": hours.end},
        )
        return {hour for (hour,) in rows}

    # -- hours that retention dropped --

    def rows_by_hour(self, asset: str, hours: HourRange) -> dict[datetime, int]:
        """The number of rows that each hour of an asset had when it was last materialized, without counting any."""
        sql = "SELECT hour, rows FROM partition_states WHERE asset = ? AND hour >= ? AND hour < ?"
        return dict(self._session.query(sql, [asset, hours.start, hours.end]))

    def row_count(self, assets: Iterable[str], hours: HourRange) -> int:
        """The number of rows that some assets had in these hours when they were last materialized."""
        sql = f"SELECT sum(rows) FROM partition_states WHERE {_AMONG} AND hour >= $start AND hour < $end"
        [(count,)] = self._session.query(sql, {"assets": [*assets], "start": hours.start, "end": hours.end})
        return int(count or 0)

    def dropped(self, asset: str, hours: HourRange = EVER) -> set[datetime]:
        """The hours among these that were dropped from the asset and have not been made again."""
        return self.dropped_of_each([asset], hours)[asset]

    def dropped_of_each(self, assets: Iterable[str], hours: HourRange = EVER) -> dict[str, set[datetime]]:
        """By asset, the hours among these that were dropped from it and have not been made again."""
        return self._hours_by_asset("dropped_digest IS NOT NULL", assets, hours)

    def _dropped_fingerprints(self, asset: str, hours: HourRange) -> dict[datetime, str]:
        sql = (
            "SELECT hour, dropped_digest FROM partition_states "
            "WHERE asset = ? AND dropped_digest IS NOT NULL AND hour >= ? AND hour < ?"
        )
        return dict(self._session.query(sql, [asset, hours.start, hours.end]))

    def dropped_until(self, *assets: str) -> datetime | None:
        """The end of the latest hour of which rows of some assets, or of any, were dropped; None where none were."""
        sql = "SELECT max(hour) FROM partition_states WHERE dropped_digest IS NOT NULL"
        [(latest,)] = (
            self._session.query(f"{sql} AND {_AMONG}", {"assets": [*assets]}) if assets else self._session.query(sql)
        )
        return latest and latest + HOUR

    def dropped_from(self, *, but: str) -> datetime | None:
        """The earliest hour of which the rows of any asset but one were dropped; None where none were."""
        sql = "SELECT min(hour) FROM partition_states WHERE dropped_digest IS NOT NULL AND asset <> ?"
        [(first,)] = self._session.query(sql, [but])
        return first

    # -- hours that are out of date --

    def statuses(
        self,
        asset: str,
        upstream: Sequence[str],
        hours: HourRange,
        *,
        reach_hours: int = 1,
        same_hour_upstream: Sequence[str] = (),
    ) -> dict[datetime, PartitionStatus]:
        """The status of each hour among these that any asset has.

        Args:
            asset: the asset.
            upstream: assets that it is made from.
            hours: the hours.
            reach_hours: how many hours of `upstream`, ending with its own, an hour is made from.
            same_hour_upstream: assets of which it is made from the same hour alone.
        """
        inputs = AssetInputs(upstream, same_hour_upstream)
        return self.statuses_of_each({asset: inputs}, hours, reach_hours=reach_hours)[asset]

    def statuses_of_each(
        self, inputs: Mapping[str, AssetInputs], hours: HourRange, *, reach_hours: int, only_stale: bool = False
    ) -> dict[str, dict[datetime, PartitionStatus]]:
        """By asset, the status of each hour among these that any asset has.

        Args:
            inputs: what each asset is made from.
            hours: the hours.
            reach_hours: as of `statuses`.
            only_stale: whether hours that are not stale are left out.
        """
        edges = [(asset, name, False) for asset, own in inputs.items() for name in own.upstream]
        edges += [(asset, name, True) for asset, own in inputs.items() for name in own.same_hour_upstream]
        rows = self._session.query(
            f"""
            WITH edges AS (
                SELECT unnest($downstream) AS asset, unnest($upstream) AS upstream,
                    CAST(unnest($is_same_hour) AS BOOLEAN) AS is_same_hour
            ), changes AS (
                SELECT edges.asset, hour,
                    max(CASE WHEN NOT is_same_hour THEN changed_at END) AS changed_at,
                    max(CASE WHEN is_same_hour THEN changed_at END) AS same_hour_changed_at
                FROM partition_states JOIN edges ON partition_states.asset = edges.upstream
                WHERE hour + INTERVAL '{int(reach_hours)} hours' > $start AND hour < $end
                GROUP BY edges.asset, hour
            ), known AS (
                SELECT asset, hour, changed_at, same_hour_changed_at
                FROM (SELECT unnest($assets) AS asset) AS assets
                CROSS JOIN (
                    SELECT DISTINCT hour FROM partition_states
                    WHERE hour + INTERVAL '{int(reach_hours)} hours' > $start AND hour < $end
                ) AS hours
                LEFT JOIN changes USING (asset, hour)
            ), inputs AS (
                SELECT asset, hour,
                    greatest(
                        max(changed_at) OVER (
                            PARTITION BY asset ORDER BY hour
                            RANGE BETWEEN INTERVAL '{int(reach_hours) - 1} hours' PRECEDING AND CURRENT ROW
                        ),
                        same_hour_changed_at
                    ) AS changed_at,
                    greatest(changed_at, same_hour_changed_at) AS own_hour_changed_at
                FROM known
            ), statuses AS (
                SELECT inputs.asset, inputs.hour,
                    own.materialized_at IS NOT NULL AND own.dropped_digest IS NULL AS is_materialized,
                    own.dropped_digest IS NOT NULL AS is_dropped,
                    coalesce(own.formula_version, $first) AS formula_version,
                    coalesce(inputs.changed_at > coalesce(own.materialized_at, $never), FALSE) AS is_stale,
                    coalesce(inputs.own_hour_changed_at > coalesce(own.materialized_at, $never), FALSE)
                        AS is_stale_by_own_hour
                FROM inputs LEFT JOIN partition_states AS own ON own.hour = inputs.hour AND own.asset = inputs.asset
                WHERE inputs.hour >= $start
            )
            SELECT * FROM statuses {"WHERE is_stale" if only_stale else ""}
            """,
            {
                "assets": [*inputs], "downstream": [asset for asset, _, _ in edges],
                "upstream": [name for _, name, _ in edges], "is_same_hour": [is_same for *_, is_same in edges],
                "start": hours.start, "end": hours.end, "first": FIRST_FORMULA_VERSION, "never": EVER.start,
            },
        )  # fmt: skip
        found: dict[str, dict[datetime, PartitionStatus]] = {asset: {} for asset in inputs}
        for asset, hour, *status in rows:
            found[asset][hour] = PartitionStatus(*status)
        return found

    def of_other_versions(self, versions: Mapping[str, str], hours: HourRange = EVER) -> dict[str, dict[datetime, str]]:
        """By asset, the hours that another version of its formula made and that are not dropped, with that version.

        Args:
            versions: by asset, the version of its formula.
            hours: the hours to look at.
        """
        rows = self._session.query(
            f"""
            SELECT asset, hour, coalesce(formula_version, $first) FROM partition_states
            JOIN (SELECT unnest($assets) AS asset, unnest($versions) AS version) AS declared USING (asset)
            WHERE {_THERE} AND hour >= $start AND hour < $end AND coalesce(formula_version, $first) <> version
            """,
            {
                "assets": [*versions], "versions": [*versions.values()], "first": FIRST_FORMULA_VERSION,
                "start": hours.start, "end": hours.end,
            },
        )  # fmt: skip
        found: dict[str, dict[datetime, str]] = {}
        for asset, hour, version in rows:
            found.setdefault(asset, {})[hour] = version
        return found

    # -- writing states, and rows with them --

    def note(
        self,
        asset: str,
        hours: HourRange,
        changed: Iterable[datetime],
        versions: Mapping[datetime, str] | None = None,
        digests: Mapping[datetime, str] | None = None,
        inputs_fingerprint: str | None = None,
        at: datetime | None = None,
        as_of: Mapping[datetime, datetime] | None = None,
    ) -> None:
        """Write down that these hours of the asset are materialized, and that no check has judged them yet.

        An hour that never was, and has rows, counts as changed: other assets may have been made without them.

        Args:
            asset: the asset.
            hours: the hours.
            changed: hours among them that have other rows than before.
            versions: by hour, the version of the formula that made its rows; without one, the asset has no formula.
            digests: by hour, the fingerprint of its rows, where they were taken.
            inputs_fingerprint: digest of what the rows rest on, where it is known.
            at: the time to note; by default one after every time that is noted.
            as_of: by hour, up to when it is known, of hours that are not over.
        """
        now = at or self._write_time()
        span = [hours.start, hours.end]
        rows = self._session.counts_by_hour(asset, hours)
        condition = "asset = ? AND hour >= ? AND hour < ?"
        sql = f"SELECT hour, changed_at FROM partition_states WHERE {condition}"
        before = dict(self._session.query(sql, [asset, *span]))
        changed_at = dict.fromkeys(rows.keys() - before.keys(), now) | before | dict.fromkeys(changed, now)
        self._session.query(f"DELETE FROM partition_states WHERE {condition}", [asset, *span])
        columns = {
            "hour": pa.array(list(hours), HOUR_TYPE),
            "asset": [asset] * len(hours),
            "rows": [rows.get(hour, 0) for hour in hours],
            "materialized_at": pa.array([now] * len(hours), HOUR_TYPE),
            "changed_at": pa.array([changed_at.get(hour) for hour in hours], HOUR_TYPE),
            "as_of": pa.array([(as_of or {}).get(hour) for hour in hours], HOUR_TYPE),
            "dropped_digest": pa.nulls(len(hours), pa.string()),
            FORMULA_VERSION: pa.array([(versions or {}).get(hour) for hour in hours], pa.string()),
            "rows_digest": pa.array([(digests or {}).get(hour) for hour in hours], pa.string()),
            "inputs_fingerprint": pa.array([inputs_fingerprint] * len(hours), pa.string()),
            "checks_fingerprint": pa.nulls(len(hours), pa.string()),
        }
        self._session.insert_arrow("partition_states", pa.table(columns))

    def replace_rows(
        self,
        asset: str,
        hours: HourRange | HourGroups,
        rows: ir.Table,
        unchanged: AbstractSet[datetime] = frozenset(),
        *,
        formula_version: str,
        other_versions: Mapping[datetime, str] | None = None,
        inputs_fingerprint: str | None = None,
        as_of: Mapping[datetime, datetime] | None = None,
    ) -> None:
        """Replace whole hours of an asset's table and note that they are materialized, and by which formula.

        Args:
            asset: the asset, which its table is named after.
            hours: the hours.
            rows: their rows, without the column of the formula's version; those of hours that lie in a hole are left
                out.
            unchanged: hours whose rows count as what they were, whatever they are.
            formula_version: version of the formula that made the rows.
            other_versions: versions to note instead, of hours of which that one would not be the whole truth.
            inputs_fingerprint: digest of what the rows rest on, where it is known.
            as_of: by hour, up to when it is known, of hours that are not over.
        """
        versions = dict.fromkeys(hours, formula_version) | dict(other_versions or {})
        if FORMULA_VERSION in columns_of(asset):
            rows = _with_versions(rows, formula_version, other_versions or {})
        span = HourRange(hours.start, hours.end)
        before = self._fingerprints(asset, span) | self._dropped_fingerprints(asset, span)
        for own in hours.ranges:
            self._session.delete_hours(asset, own)
        if len(hours.ranges) > 1:
            rows = of_hours(rows, hours)
        self._session.insert(asset, rows)
        after = self._fingerprints(asset, span)
        digests = {hour: after.get(hour, "") for hour in hours}
        changed = {hour for hour in hours if before.get(hour, "") != digests[hour]} - unchanged
        for own in hours.ranges:
            self.note(asset, own, changed & set(own), versions, digests, inputs_fingerprint, as_of=as_of)

    def drop_rows(self, asset: str, hours: HourRange, *, is_remembered: bool) -> int:
        """Delete the rows of whole hours on purpose; returns how many.

        Args:
            asset: the asset, which its table is named after.
            hours: the hours.
            is_remembered: whether to take a fingerprint, by which the same rows are known again if they come back.
        """
        count = self._session.count_hours(asset, hours)
        if not count and not self.of(asset, hours):
            return 0
        digests = self._fingerprints(asset, hours) if is_remembered else {}
        self._session.delete_hours(asset, hours)
        update = (
            f"UPDATE partition_states SET dropped_digest = ?, rows = 0, {_NOT_KNOWN} "
            f"WHERE asset = ? AND {_THERE} AND hour >= ? AND hour < ?"
        )
        for hour, digest in digests.items():
            self._session.query(update, [digest, asset, hour, hour + HOUR])
        self._session.query(update, ["", asset, hours.start, hours.end])
        return count

    def correct_rows(self, asset: str, corrections: ir.Table, keys: Sequence[str]) -> set[datetime]:
        """Set columns of single rows of an asset's table, and note that their hours have changed.

        Args:
            asset: the asset, which its table is named after.
            corrections: `keys`, with `hour` among them, and the columns to set; one row per row of the table.
            keys: columns that tell the rows apart.

        Returns:
            The hours of the corrections.
        """
        hours = self._session.update_rows(asset, corrections, keys)
        if hours:
            self._session.query(
                f"UPDATE partition_states SET changed_at = ?, {_NOT_KNOWN} "
                "WHERE asset = ? AND hour IN (SELECT unnest(?))",
                [self._write_time(), asset, sorted(hours)],
            )
        return hours

    def _write_time(self) -> datetime:
        """The time of a write: now, or just after the newest one that is noted, where the clock was set back since."""
        newest, now = self._session.last_state_write_at, self._session.now()
        if newest is None:  # once a session: later ones follow its own writes
            sql = "SELECT greatest(max(materialized_at), max(changed_at)) FROM partition_states"
            [(newest,)] = self._session.query(sql)
        self._session.last_state_write_at = now if newest is None else max(now, newest + timedelta(microseconds=1))
        return self._session.last_state_write_at

    def _fingerprints(self, asset: str, hours: HourRange) -> dict[datetime, str]:
        return {hour: str(digest) for hour, digest in self._session.digests(asset, hours).items()}


def _with_versions(rows: ir.Table, formula_version: str, others: Mapping[datetime, str]) -> ir.Table:
    """Rows with the version of the formula that made them, which some hours have of their own."""
    rows = rows.mutate(**{FORMULA_VERSION: ibis.literal(formula_version)})
    if not others:
        return rows
    own = ibis.memtable(pa.table({"hour": pa.array(list(others), HOUR_TYPE), "own_version": list(others.values())}))
    joined = lookup(rows, own, "hour")
    version = ibis.coalesce(joined.own_version, joined[FORMULA_VERSION])
    return joined.mutate(**{FORMULA_VERSION: version}).drop("own_version")


_AMONG = "asset IN (SELECT unnest($assets))"
_THERE = "dropped_digest IS NULL"
_NOT_KNOWN = "rows_digest = NULL, inputs_fingerprint = NULL, checks_fingerprint = NULL"
"""Sets what is known of rows that somebody else than their asset changes."""


def expected_hours(
    hours: HourGroups, asked: HourRange | HourGroups, first_event_hour: datetime | None
) -> set[datetime]:
    """The hours among these that an asset should have: from the first event on, and before it those asked for."""
    first = first_event_hour or asked.start
    return {hour for hour in hours if hour >= first or hour in asked}


def hours_covered(
    hours: HourRange, window_hours: int, materialized: AbstractSet[datetime], first_event_hour: datetime | None
) -> list[int]:
    """For each hour, how many hours of its window were materialized or lie before the first log."""
    span = hours.extended_back(window_hours - 1)
    is_covered = [first_event_hour is None or hour < first_event_hour or hour in materialized for hour in span]
    covered = sum(is_covered[: window_hours - 1])
    counts = []
    for place in range(len(hours)):
        covered += is_covered[place + window_hours - 1]
        counts.append(covered)
        covered -= is_covered[place]
    return counts
