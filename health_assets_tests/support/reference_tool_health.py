"""The independent reference of tool health: contract section 8 in plain Python loops over records.

Nothing here imports the product. What is null in the table is None here; latencies are the exact ones.
"""

import math
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from health_assets_tests.support.reference import ONE_HOUR, Record, deduplicate, targets_for


def tool_health(
    records: list[Record], targets: dict[str, Any], hours: list[datetime], window_hours: int
) -> list[Record]:
    """A row for each hour, agent and tool with a call in the window, but of agents that are retired."""
    calls = [record for record in deduplicate(records) if record["type"] == "tool_call"]
    rows = []
    for hour in hours:
        end = hour + ONE_HOUR
        start = end - timedelta(hours=window_hours)
        by_tool: dict[tuple[str, str], list[Record]] = {}
        for call in calls:
            if start <= call["_at"] < end:
                by_tool.setdefault((call.get("agent_id", ""), call["tool"]), []).append(call)
        for (agent_id, tool), window in by_tool.items():
            if agent_id == "" or not targets_for(agent_id, targets)["retired"]:
                row = {
                    "hour": hour,
                    "agent_id": agent_id,
                    "tool": tool,
                    "window_start": start,
                    "window_end": end,
                    "as_of": end,
                    "is_final": True,
                }
                rows.append(row | summary(window))
    return rows


def summary(window: list[Record]) -> Record:
    """The calls of a tool in a window."""
    failed = [call for call in window if call["status"] == "failure"]
    stating = sorted(
        (call for call in failed if call.get("error")),
        key=lambda call: (call["_at"], call["_source_file"], call["_line_number"]),
    )
    latencies = sorted(float(call["latency_ms"]) for call in window if call.get("latency_ms") is not None)
    return {
        "calls": len(window),
        "failures": len(failed),
        "failure_share": len(failed) / len(window),
        "failure_share_at_least": wilson_lower(len(failed), len(window)),
        "p50_latency_ms": nearest_rank(latencies, 50),
        "p95_latency_ms": nearest_rank(latencies, 95),
        "last_error": stating[-1]["error"] if stating else None,
        "last_error_at": stating[-1]["_at"] if stating else None,
    }


def wilson_lower(failures: int, calls: int) -> float:
    """The smaller share p for which |failures / calls - p| is 1.96 standard errors, found by halving."""
    share = Fraction(failures, calls)

    def is_too_far(p: float) -> bool:
        return float(share) - p > 1.96 * math.sqrt(p * (1 - p) / calls)

    low, high = 0.0, float(share)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if is_too_far(middle) else (low, middle)
    return high


def nearest_rank(ordered: list[float], percent: int) -> float | None:
    """The least value that at least so many percent of the values do not exceed."""
    for place, value in enumerate(ordered, start=1):
        if place * 100 >= percent * len(ordered):
            return value
    return None
