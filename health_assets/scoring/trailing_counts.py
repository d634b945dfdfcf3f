"""Trailing counts: executions and failures of the last minutes and hours before a time within a running hour.

Of an hour that is over, the last 5 and 30 minutes and the last 1 and 6 hours are in the components. Before any other
time they begin elsewhere, so that executions are counted anew. What does not belong here: where the executions come
from (`pipeline.derived`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ibis import ir

from health_assets.core.hours import HOUR
from health_assets.scoring.relations import time_literal

LENGTHS = {"5m": timedelta(minutes=5), "30m": timedelta(minutes=30), "1h": HOUR, "6h": 6 * HOUR}
LONGEST_HOURS = max(LENGTHS.values()) // HOUR


@dataclass(frozen=True, kw_only=True)
class Trailing:
    """The executions of the last hours before a time.

    Args:
        executions: `executions`, at least of these hours.
        hour: the running hour.
        until: the time, excluded.
        longest_hours: hours that are counted at most.
    """

    executions: ir.Table
    hour: datetime
    until: datetime
    longest_hours: int = LONGEST_HOURS

    def of(self, length: str) -> ir.Table:
        """The executions of the last minutes or hours, with the running hour as their `hour`.

        Args:
            length: one of `LENGTHS`.
        """
        start, end = self._start(length), time_literal(self.until)
        rows = self.executions.filter(self.executions.ended_at >= start, self.executions.ended_at < end)
        return rows.mutate(hour=time_literal(self.hour))

    def counts(self, lengths: Sequence[str] = tuple(LENGTHS)) -> ir.Table:
        """One row per agent with an execution: `hour`, `agent_id`, `executions_5m`, `failures_5m` and so on.

        Args:
            lengths: some of `LENGTHS`.
        """
        rows = self.of(max(lengths, key=LENGTHS.__getitem__))
        counts: dict[str, ir.IntegerScalar] = {}
        for length in lengths:
            is_within = rows.ended_at >= self._start(length)
            counts[f"executions_{length}"] = rows.count(where=is_within)
            counts[f"failures_{length}"] = rows.count(where=is_within & ~rows.succeeded)
        return rows.group_by("hour", "agent_id").aggregate(**counts)

    def _start(self, length: str) -> ir.TimestampScalar:
        return time_literal(self.until - min(LENGTHS[length], self.longest_hours * HOUR))
