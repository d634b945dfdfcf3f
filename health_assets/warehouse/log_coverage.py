"""Hours of the raw logs: what the logs hold for which hour, as far as they have been read.

What belongs here: looking at `raw_logs` hour by hour, without changing it. What does not: which slices a table lacks,
and keeping the account (`ledger`).
"""

from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime

from health_assets.core.hours import HOUR, HourRange
from health_assets.schema.catalog import SUPERSEDED, TABLE_OF_RECORD
from health_assets.warehouse.file_slices import TRACES
from health_assets.warehouse.ledger import UNREADABLE
from health_assets.warehouse.session import Session


@dataclass(frozen=True, kw_only=True)
class RejectedElsewhere:
    """Rejected lines of hours that nobody materialized: how many, of how many files, the first hour, and a file."""

    lines: int
    files: int
    first: datetime
    example_file: str


@dataclass(frozen=True)
class CoveredHours:
    """The hours that raw logs hold something of.

    Args:
        events: hours of events.
        rejected: hours of rejected lines.
        loaded: hours of events that are in the tables, although their files are gone.
    """

    events: Set[datetime]
    rejected: Set[datetime]
    loaded: Set[datetime]


class LogCoverage:
    """The hours of all raw logs that were read, within a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def covered_hours(self) -> CoveredHours:
        """Hours with records in the logs that were read."""
        rows = self._session.query(
            """
            SELECT DISTINCT slices.hour, slices.record_type = 'rejected', slices.is_loaded,
                files.source_file IS NOT NULL AND files.gone_at IS NULL
            FROM raw_logs AS slices LEFT JOIN raw_files AS files ON files.source_file = slices.source_file
            WHERE slices.lines > coalesce(slices.lost, 0)
            """
        )
        return CoveredHours(
            events={hour for hour, is_rejected, _, is_there in rows if is_there and not is_rejected},
            rejected={hour for hour, is_rejected, _, is_there in rows if is_there and is_rejected},
            loaded={hour for hour, is_rejected, is_loaded, _ in rows if is_loaded and not is_rejected},
        )

    def all_event_hours(self) -> set[datetime]:
        """Hours for which any log that was read holds anything that was not rejected."""
        rows = self._session.query(
            "SELECT DISTINCT hour FROM raw_logs WHERE record_type <> 'rejected' AND lines > coalesce(lost, 0)"
        )
        return {hour for (hour,) in rows}

    def event_span(self) -> HourRange | None:
        """The span from the first to the last hour with an event that was read in any raw log and is not lost."""
        [(first, last)] = self._session.query(
            "SELECT min(hour), max(hour) FROM raw_logs WHERE record_type <> 'rejected' AND lines > coalesce(lost, 0)"
        )
        return None if first is None else HourRange(first, last + HOUR)

    def first_event_hour(self) -> datetime | None:
        """The earliest hour with an event in any raw log that was read, and that is not lost; None before the first."""
        span = self.event_span()
        return span.start if span else None

    def kept_by_hour(self, record_type: str, hours: HourRange) -> dict[datetime, int]:
        """The number of rows that each of these hours should have of a kind.

        Those are its records without superseded and lost ones, without those whose rows retention dropped, and without
        those of files that could not be read when they should have been loaded.
        """
        rows = self._session.query(
            """
            SELECT hour, CAST(sum(lines - coalesce(lost, 0)) AS BIGINT) FROM raw_logs
            WHERE record_type = $record AND hour >= $start AND hour < $end AND NOT coalesce(is_dropped, false)
                AND (is_loaded OR NOT EXISTS (
                    SELECT 1 FROM raw_file_notes AS faults WHERE starts_with(faults.note, $unreadable)
                    AND (faults.source_file = raw_logs.source_file
                         OR faults.source_file LIKE '%/' AND starts_with(raw_logs.source_file, faults.source_file))
                ))
            GROUP BY hour
            """,
            {"record": record_type, "start": hours.start, "end": hours.end, "unreadable": UNREADABLE},
        )
        shadow = SUPERSEDED.get(TABLE_OF_RECORD[record_type])
        superseded = self._session.counts_by_hour(shadow, hours) if shadow else {}
        return {hour: lines - superseded.get(hour, 0) for hour, lines in rows}

    def rejected_share_by_hour(self, hours: HourRange) -> dict[datetime, float]:
        """For each of these hours with lines, which of them were rejected, as a share from 0 to 1."""
        there = "lines - coalesce(lost, 0)"
        rows = self._session.query(
            f"""
            SELECT hour, CAST(sum(CASE record_type WHEN 'rejected' THEN {there} ELSE 0 END) AS DOUBLE PRECISION)
                / greatest(sum({there}), 1)
            FROM raw_logs WHERE source_file <> ? AND hour >= ? AND hour < ? GROUP BY hour
            """,
            [TRACES, hours.start, hours.end],
        )
        return dict(rows)

    def rejected_elsewhere(self) -> RejectedElsewhere | None:
        """The rejected lines of hours that nobody ever materialized; None where there are none."""
        [(lines, files, first, example_file)] = self._session.query(
            """
            SELECT sum(lines), count(DISTINCT source_file), min(hour), min(source_file)
            FROM raw_logs
            WHERE record_type = 'rejected' AND NOT coalesce(is_dropped, false) AND lines > 0
                AND hour NOT IN (SELECT hour FROM partition_states WHERE asset = 'rejected_records')
            """
        )
        if not lines:
            return None
        return RejectedElsewhere(lines=int(lines), files=files, first=first, example_file=example_file)
