"""An agent's success rate hour by hour, and from which rate on it is as before, by the rules of drift."""

from typing import Any

import numpy as np

from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.agent_drift.expected_range import NEEDED_HOURS, expected_success

COUNTED = ("hour", "agent_id", "hour_executions", "hour_successes")


def success_of(look: ScopedHistory, agent_id: str, hours: HourRange) -> list[dict[str, Any]]:
    """Finds points of the curve, an hour each; a rate is null where nothing ran or nothing is there to compare with."""
    margin = look.history.facts.get("comparison_margin")  # not in a history that an earlier version copied
    if margin is None or not hours:
        return []
    read = hours.extended_back(NEEDED_HOURS - 1)
    executions, failures = np.zeros(len(read), np.int64), np.zeros(len(read), np.int64)
    for row in look.of("agents", agent_id, read, COUNTED):
        if row["hour_executions"]:
            place = (row["hour"] - read.start) // HOUR
            executions[place] = row["hour_executions"]
            failures[place] = row["hour_executions"] - row["hour_successes"]
    if not executions.any():
        return []
    expected = expected_success(executions, failures, len(hours), margin)
    return [
        {
            "hour": hour,
            "success_percent": float(100 * value) if runs else None,
            "as_before_from_percent": float(100 * limit) if has_past else None,
        }
        for hour, runs, value, limit, has_past in zip(
            hours, expected.runs[:, 0], expected.value[:, 0], expected.limit_value[:, 0], expected.has_past[:, 0],
            strict=True,
        )
    ]  # fmt: skip
