"""Fingerprints of partitions: digests of their states and of the outcomes of their checks.

What belongs here: reading both as digests, and writing `inputs_fingerprint` and `checks_fingerprint`. What does not:
what else a fingerprint holds (`pipeline.fingerprints`), and the states themselves (`partition_states`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from health_assets.core.digests import digest_of
from health_assets.core.hours import HourGroups, HourRange
from health_assets.warehouse.session import Session

EVERY_LOG_WAS_READ = "every_log_was_read"
EVERY_LINE_IS_STILL_THERE = "every_line_is_still_there"
FEW_READ_LINES_ARE_REJECTED = "few_read_lines_are_rejected"
INGEST_CHECKS = (EVERY_LOG_WAS_READ, EVERY_LINE_IS_STILL_THERE, FEW_READ_LINES_ARE_REJECTED)
"""Checks of `raw_logs` that are in no suite: they look at the ledger or at the run alone, each for itself."""


class NotedFingerprints(NamedTuple):
    """The fingerprints of an hour of an asset, and when its rows were made and last changed."""

    inputs_fingerprint: str | None
    checks_fingerprint: str | None
    materialized_at: datetime
    changed_at: datetime | None


class NotedRows(NamedTuple):
    """The number of rows that an hour of an asset was written with, and their digest where one was taken."""

    rows: int
    digest: str | None


class NotedFailure(NamedTuple):
    """A check that hours fail, as the history has it.

    Args:
        asset: the asset that it is about.
        expectation: name of the check.
        severity: `error` or `warn`.
        unexpected: rows that break it, in all of these hours; of a check of no suite, what it counts.
        hours: the hours.
    """

    asset: str
    expectation: str
    severity: str
    unexpected: int
    hours: Sequence[datetime]

    @property
    def is_error(self) -> bool:
        """Whether it stopped what follows."""
        return self.severity == "error"


class Fingerprints:
    """The fingerprints of a warehouse, within a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def of_assets(self, assets: Collection[str], hours: HourRange) -> dict[str, str]:
        """By asset, a digest of its hours among these: which there are, of which formula, and when each last changed.

        Rows that were made anew and are what they were leave it as it is.
        """
        rows = self._session.query(
            """
            SELECT asset, md5(string_agg(line, '|' ORDER BY line)) FROM (
                SELECT asset,
                    CAST(hour AS VARCHAR) || ' ' || coalesce(CAST(changed_at AS VARCHAR), 'never') || ' '
                    || CAST(rows AS VARCHAR) || ' ' || coalesce(formula_version, '')
                    || CASE WHEN dropped_digest IS NULL THEN '' ELSE ' dropped' END AS line
                FROM partition_states
                WHERE asset IN (SELECT unnest($assets)) AND hour >= $start AND hour < $end
            ) AS noted GROUP BY asset
            """,
            {"assets": sorted(assets), "start": hours.start, "end": hours.end},
        )
        return dict(rows)

    def of_checks(self, assets: Collection[str], hours: HourRange | HourGroups) -> dict[str, str]:
        """By asset, a digest of the outcomes of its suite's checks in these hours."""
        found: dict[str, list[str]] = {}
        for own in hours.ranges:
            rows = self._session.query(
                """
                SELECT asset, md5(string_agg(line, '|' ORDER BY line)) FROM (
                    SELECT asset,
                        CAST(hour AS VARCHAR) || ' ' || expectation || ' ' || severity || ' '
                        || CAST(success AS VARCHAR) || ' ' || CAST(element_count AS VARCHAR) || ' '
                        || CAST(unexpected_count AS VARCHAR) AS line
                    FROM expectation_results
                    WHERE asset IN (SELECT unnest($assets)) AND hour >= $start AND hour < $end
                        AND NOT (asset = 'raw_logs' AND expectation IN (SELECT unnest($others)))
                ) AS noted GROUP BY asset
                """,
                {"assets": sorted(assets), "others": [*INGEST_CHECKS], "start": own.start, "end": own.end},
            )
            for asset, digest in rows:
                found.setdefault(asset, []).append(digest)
        return {asset: digest_of(digests) for asset, digests in found.items()}

    def failed_checks(self, assets: Collection[str], hours: HourRange | HourGroups) -> list[NotedFailure]:
        """The checks of these assets that an hour fails, by asset and name."""
        found: dict[tuple[str, str, str], dict[datetime, int]] = {}
        for own in hours.ranges:
            for asset, name, severity, hour, unexpected in self._session.query(
                "SELECT asset, expectation, severity, hour, unexpected_count FROM expectation_results "
                "WHERE asset IN (SELECT unnest($assets)) AND hour >= $start AND hour < $end "
                "AND (NOT success OR unexpected_count <> 0)",
                {"assets": sorted(assets), "start": own.start, "end": own.end},
            ):
                found.setdefault((asset, name, severity), {})[hour] = unexpected
        return [
            NotedFailure(
                asset, name, severity, (max if name in INGEST_CHECKS else sum)(counts.values()), sorted(counts)
            )
            for (asset, name, severity), counts in sorted(found.items())
        ]

    def counts_of_check(self, name: str, hours: HourRange | HourGroups) -> dict[datetime, tuple[int, int]]:
        """By hour, the rows that a check of `raw_logs` looked at, and how many of them broke it."""
        return {
            hour: (elements, unexpected)
            for own in hours.ranges
            for hour, elements, unexpected in self._session.query(
                "SELECT hour, element_count, unexpected_count FROM expectation_results "
                "WHERE asset = 'raw_logs' AND expectation = ? AND hour >= ? AND hour < ?",
                [name, own.start, own.end],
            )
        }

    def noted(self, assets: Collection[str], hours: HourRange) -> dict[str, dict[datetime, NotedFingerprints]]:
        """By asset and hour, the fingerprints of these hours; those that retention dropped have none."""
        rows = self._session.query(
            "SELECT asset, hour, inputs_fingerprint, checks_fingerprint, materialized_at, changed_at "
            "FROM partition_states WHERE asset IN (SELECT unnest($assets)) AND hour >= $start AND hour < $end "
            "AND dropped_digest IS NULL",
            {"assets": sorted(assets), "start": hours.start, "end": hours.end},
        )
        noted: dict[str, dict[datetime, NotedFingerprints]] = {}
        for asset, hour, *own in rows:
            noted.setdefault(asset, {})[hour] = NotedFingerprints(*own)
        return noted

    def noted_rows(self, asset: str, hours: HourRange) -> dict[datetime, NotedRows]:
        """By hour, the rows that the asset was written with; of hours that retention dropped, none."""
        rows = self._session.query(
            "SELECT hour, rows, CASE WHEN dropped_digest IS NULL THEN rows_digest ELSE '' END FROM partition_states "
            "WHERE asset = ? AND hour >= ? AND hour < ?",
            [asset, hours.start, hours.end],
        )
        return {hour: NotedRows(count, digest) for hour, count, digest in rows}

    def note_inputs(self, assets: Iterable[str], hours: Iterable[datetime], inputs_fingerprint: str) -> None:
        """Note the fingerprint of hours whose rows a run with these inputs leaves, whether or not it wrote them."""
        self._session.query(
            "UPDATE partition_states SET inputs_fingerprint = ? "
            "WHERE asset IN (SELECT unnest(?)) AND hour IN (SELECT unnest(?)) AND dropped_digest IS NULL",
            [inputs_fingerprint, [*assets], sorted(hours)],
        )

    def note_checks(self, checks_fingerprints: Mapping[str, str], hours: Iterable[datetime]) -> None:
        """Note, by asset, the fingerprint of hours whose rows all its checks have judged in this transaction."""
        if not checks_fingerprints:
            return
        self._session.query(
            """
            UPDATE partition_states SET checks_fingerprint = judged.fingerprint
            FROM (SELECT unnest($assets) AS asset, unnest($fingerprints) AS fingerprint) AS judged
            WHERE partition_states.asset = judged.asset AND hour IN (SELECT unnest($hours))
            """,
            {
                "assets": [*checks_fingerprints], "fingerprints": [*checks_fingerprints.values()],
                "hours": sorted(hours),
            },
        )  # fmt: skip

    def forget_outcomes(self, checks: Sequence[tuple[str, str]], hours: HourRange | HourGroups) -> None:
        """Delete the outcomes of checks, told by asset and name, in these hours."""
        if not checks:
            return
        assets, names = zip(*checks, strict=True)
        for own in hours.ranges:
            self._session.query(
                "DELETE FROM expectation_results WHERE hour >= $start AND hour < $end "
                "AND (asset, expectation) IN (SELECT unnest($assets), unnest($names))",
                {"start": own.start, "end": own.end, "assets": [*assets], "names": [*names]},
            )
