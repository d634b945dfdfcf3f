"""An independent reference for error budgets: plain Python over the executions themselves, in exact fractions.

Nothing here imports the product. What is null in the table is None here.
"""

from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from health_assets_tests.support.reference import ONE_HOUR, Record, agent_health, deduplicate, targets_for

MINUTE = timedelta(minutes=1)
SHORT_WINDOWS = {"5m": 5 * MINUTE, "30m": 30 * MINUTE, "1h": ONE_HOUR, "6h": 6 * ONE_HOUR}


def counts(executions: list[Record], end: datetime, length: timedelta) -> tuple[int, int]:
    """Executions that ended in so long a time before `end`, and failures among them."""
    inside = [one for one in executions if end - length <= one["_at"] < end]
    return len(inside), len([one for one in inside if one["status"] == "failure"])


def burn_rate(n: int, failures: int, expected_success_rate: float) -> float | None:
    """The share that failed over the share that may fail; None where nothing ran or nothing may fail."""
    allowed_share = 1 - Fraction(Decimal(repr(expected_success_rate)))
    if n == 0 or allowed_share == 0:
        return None
    return float(Fraction(failures, n) / allowed_share)


def error_budget(
    records: list[Record],
    targets: dict[str, Any],
    hour_from: datetime,
    hour_to: datetime,
    window_hours: int = 24,
    lookback_hours: int = 168,
) -> list[Record]:
    """A row for each hour in `[hour_from, hour_to)` and each agent that the Agent Health Model knows then."""
    executions_of: dict[str, list[Record]] = {}
    for record in deduplicate(records):
        if record["type"] == "execution":
            executions_of.setdefault(record["agent_id"], []).append(record)
    known = agent_health(records, targets, hour_from, hour_to, window_hours, lookback_hours)
    return [
        budget(agent["hour"], agent["agent_id"], executions_of.get(agent["agent_id"], []), targets, window_hours, lookback_hours)
        for agent in known
    ]  # fmt: skip


def budget(
    hour: datetime,
    agent_id: str,
    executions: list[Record],
    targets: dict[str, Any],
    window_hours: int,
    lookback_hours: int,
) -> Record:
    """One agent's row."""
    end = hour + ONE_HOUR
    expected = float(targets_for(agent_id, targets)["expected_success_rate"])
    n, failures = counts(executions, end, window_hours * ONE_HOUR)
    row = {
        "hour": hour, "agent_id": agent_id, "window_start": end - timedelta(hours=window_hours), "window_end": end,
        "as_of": end, "is_final": True,
        "n": n, "failures": failures, "expected_success_rate": expected,
        "allowed_failures": float((1 - Fraction(Decimal(repr(expected)))) * n),
        "budget_spent": burn_rate(n, failures, expected),
    }  # fmt: skip
    for name, length in SHORT_WINDOWS.items():
        n, failures = counts(executions, end, min(length, lookback_hours * ONE_HOUR))
        row |= {
            f"n_{name}": n,
            f"failures_{name}": failures,
            f"burn_rate_{name}": burn_rate(n, failures, expected),
        }
    return row
