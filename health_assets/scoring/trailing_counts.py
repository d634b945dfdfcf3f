"""Trailing counts: executions and failures of the last hours before a time within an hour that runs.

Of an hour that is over, the last 1 and 6 hours are whole ones, whose components are there. Before any other time they
begin within an hour, so that executions are counted anew. What does not belong here: where the executions come from
(`pipeline.derived`).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from ibis import ir

from health_assets.scoring.relations import time_literal

TRAILING_HOURS = (1, 6)


@dataclass(frozen=True, kw_only=True)
class Trailing:
    """The executions of the last hours before a time.

    Args:
        executions: `executions`, at least of these hours.
        hour: the hour that runs.
        until: the time, excluded.
        longest_hours: hours that are counted at most.
    """

    executions: ir.Table
    hour: datetime
    until: datetime
    longest_hours: int = max(TRAILING_HOURS)

    def of(self, hours: int) -> ir.Table:
        """The executions of the last hours, with the one that runs as their `hour`."""
        start, end = self._start(hours), time_literal(self.until)
        rows = self.executions.filter(self.executions.ended_at >= start, self.executions.ended_at < end)
        return rows.mutate(hour=time_literal(self.hour))

    def counts(self) -> ir.Table:
        """One row per agent with an execution: `hour`, `agent_id`, `executions` and `failures` of each length.

        They are called `executions_1h`, `failures_1h`, `executions_6h` and `failures_6h`.
        """
        rows = self.of(max(TRAILING_HOURS))
        counts: dict[str, ir.IntegerScalar] = {}
        for hours in TRAILING_HOURS:
            is_within = rows.ended_at >= self._start(hours)
            counts[f"executions_{hours}h"] = rows.count(where=is_within)
            counts[f"failures_{hours}h"] = rows.count(where=is_within & ~rows.succeeded)
        return rows.group_by("hour", "agent_id").aggregate(**counts)

    def _start(self, hours: int) -> ir.TimestampScalar:
        return time_literal(self.until - timedelta(hours=min(hours, self.longest_hours)))
