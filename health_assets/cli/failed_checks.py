"""Failed checks as commands tell them: of a run that was just made, or noted of the hours that are shown.

What belongs here: a check in words. What does not: taking them from a run (`outcomes`) or from the warehouse
(`systems.no_op_check`). It imports no Dagster, since a command that makes no run tells of them, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from health_assets.core.formatting import counted
from health_assets.pipeline.events import Checked
from health_assets.quality.check_names import FEW_LINES_ARE_REJECTED, MOST_REJECTED_SHARE
from health_assets.warehouse.fingerprints import (
    EVERY_LINE_IS_STILL_THERE,
    EVERY_LOG_WAS_READ,
    FEW_READ_LINES_ARE_REJECTED,
    INGEST_CHECKS,
    NotedFailure,
)

HOURS_SHOWN = 3
ERROR = "ERROR"
"""The severity of a check that stops what follows."""
UNITS = {
    EVERY_LOG_WAS_READ: "raw log",
    EVERY_LINE_IS_STILL_THERE: "line",
    FEW_READ_LINES_ARE_REJECTED: "rejected line",
}
"""What the checks count that look at something else than rows."""
FOUND = {FEW_LINES_ARE_REJECTED: f"more than {MOST_REJECTED_SHARE:.0%} of the lines are rejected"}
"""What checks of whole hours found, in words."""


@dataclass(frozen=True, kw_only=True)
class FailedCheck:
    """A check that failed.

    Args:
        asset: the asset that it is about.
        name: says what should be true.
        severity: `ERROR`, which stops what follows, or `WARN`.
        unexpected: rows that break it; of the checks of the raw logs, logs or lines.
        hours: the hours that these are of, at least the first ones, where the check tells them.
        hour_count: how many hours these are.
    """

    asset: str
    name: str
    severity: str
    unexpected: int
    hours: Sequence[datetime] = ()
    hour_count: int = 0

    @classmethod
    def of(cls, noted: NotedFailure) -> Self:
        """A check as the history has it, in the words of the run that noted it."""
        hours = () if noted.expectation in INGEST_CHECKS else noted.hours
        return cls(
            asset=noted.asset,
            name=noted.expectation,
            severity=noted.severity.upper(),
            unexpected=noted.unexpected,
            hours=hours[:HOURS_SHOWN],
            hour_count=len(hours),
        )

    @classmethod
    def found(cls, event: Checked) -> Self:
        """A check as a run has found it."""
        return cls(
            asset=event.asset,
            name=event.check,
            severity=event.severity.upper(),
            unexpected=event.unexpected_count,
            hours=event.failed_hours[:HOURS_SHOWN],
            hour_count=len(event.failed_hours),
        )

    @property
    def is_error(self) -> bool:
        """Whether it stops what follows."""
        return self.severity == ERROR

    def __str__(self) -> str:
        """The check, and how much breaks it."""
        unit = UNITS.get(self.name, "row")
        return f"{self.asset}.{self.name} failed ({'error' if self.is_error else 'warning'}): {self._counted(unit)}"

    def _counted(self, unit: str) -> str:
        told = FOUND.get(self.name) or counted(self.unexpected, unit)
        if not self.hours:
            return told
        names = [f"{hour:%Y-%m-%dT%H}" for hour in self.hours[:HOURS_SHOWN]]
        more = ", …" if self.hour_count > len(names) else ""
        of = "in" if self.name in FOUND else "of"
        return f"{told} {of} {counted(self.hour_count, 'hour')}, {', '.join(names)}{more}"
