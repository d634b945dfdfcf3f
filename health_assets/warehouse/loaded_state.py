"""The state of what is loaded: whether the record tables have what the ledger says; nothing is changed for it.

What belongs here: questions whose answer is no where nothing is to be done. What does not: bringing about what the
answer lacks (`ledger`, `pipeline.ingestion`).
"""

from health_assets.core.hours import HourRange
from health_assets.schema.catalog import RECORD_OF_TABLE
from health_assets.warehouse.file_slices import rows_by_slice
from health_assets.warehouse.session import Session


class LoadedState:
    """The ledger of a warehouse beside its record tables, within a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def lacks_slices(self, hours: HourRange) -> bool:
        """Whether a slice of these hours is not in its table, or one of any hour that each run looks after.

        That are spans, what was put off with them, rows of logs that are nowhere any more, and lines of files that are
        gone and not written off yet. A slice of which every line is lost has nothing that could be loaded.
        """
        rows = self._session.query(
            """
            SELECT 1 FROM raw_logs WHERE NOT is_loaded AND (
                hour >= ? AND hour < ? AND lines > coalesce(lost, 0)
                OR lines = 0
                OR NOT coalesce(is_dropped, false) AND (
                    record_type = 'span' OR source_file IN (SELECT source_file FROM raw_files WHERE gone_at IS NOT NULL)
                )
            ) LIMIT 1
            """,
            [hours.start, hours.end],
        )
        return bool(rows)

    def has_other_rows(self, table: str, hours: HourRange) -> bool:
        """Whether a record table has more or fewer rows of any log in an hour than the ledger says."""
        rows = self._session.query(
            f"""
            SELECT 1 FROM (
                SELECT hour, source_file, lines - coalesce(lost, 0) AS lines FROM raw_logs
                WHERE record_type = $record AND is_loaded AND hour >= $start AND hour < $end
            ) AS slices FULL JOIN ({rows_by_slice(table)}) AS loaded
                ON loaded.hour = slices.hour AND loaded.source_file = slices.source_file
            WHERE coalesce(slices.lines, 0) <> coalesce(loaded.rows, 0) LIMIT 1
            """,
            {"record": RECORD_OF_TABLE[table], "start": hours.start, "end": hours.end},
        )
        return bool(rows)
