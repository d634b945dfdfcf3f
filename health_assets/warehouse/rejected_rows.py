"""Rejected lines: how many some hours have, and why.

What belongs here: reading `rejected_records`. What does not: why a line is bad (`logs.native`, `logs.otlp`), and what
the ledger says of lines that no table has yet (`ledger`).
"""

from dataclasses import dataclass

from health_assets.core.hours import HourRange
from health_assets.logs.rejections import OF_THE_LINE, example_of
from health_assets.warehouse.session import Session


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A reason for rejection, in general terms.

    Args:
        text: the reason, without what it says of the single line.
        lines: how many lines.
        first_place: file and number of the first of them.
        example: the part of the reason that shows the value of that line, like `, not ok`; may be empty.
    """

    text: str
    lines: int
    first_place: str
    example: str = ""


class Rejections:
    """The rejected lines of some hours.

    Args:
        session: a session.
        hours: the hours.
    """

    def __init__(self, session: Session, hours: HourRange) -> None:
        self._session = session
        self._hours = [hours.start, hours.end]

    def lines(self) -> int:
        """The number of rejected lines; a row may stand for several."""
        [(lines,)] = self._session.query(
            "SELECT coalesce(CAST(sum(lines) AS BIGINT), 0) FROM rejected_records WHERE hour >= ? AND hour < ?",
            self._hours,
        )
        return lines

    def reasons(self) -> list[Reason]:
        """The reasons, most frequent first."""
        rows = self._session.query(
            """
            WITH told AS (
                SELECT regexp_replace(reason, ?, '') AS kind, reason, source_file, line_number, lines
                FROM rejected_records WHERE hour >= ? AND hour < ?
            ), placed AS (
                SELECT kind, reason, source_file, line_number,
                    CAST(sum(lines) OVER (PARTITION BY kind) AS BIGINT) AS lines,
                    row_number() OVER (PARTITION BY kind ORDER BY source_file, line_number) AS place
                FROM told
            )
            SELECT kind, lines, source_file || ':' || line_number, reason
            FROM placed WHERE place = 1 ORDER BY lines DESC, kind
            """,
            [OF_THE_LINE, *self._hours],
        )
        return [
            Reason(text=kind, lines=lines, first_place=place, example=example_of(reason))
            for kind, lines, place, reason in rows
        ]
