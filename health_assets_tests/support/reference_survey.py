"""The survey's summary in plain Python, written from source 3, appendix B, and the contract."""

from collections.abc import Iterable
from typing import Any


def summary(probes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `survey_summary` without their version, from rows of `agent_probes`."""
    found = []
    rows = list(probes)
    for hour in sorted({row["hour"] for row in rows}):
        latest: dict[str, dict[str, Any]] = {}
        for row in rows:
            if row["hour"] == hour and (row["url"] not in latest or row["probed_at"] > latest[row["url"]]["probed_at"]):
                latest[row["url"]] = row
        platforms = {row["platform"] for row in latest.values()}
        for platform in [*sorted(platforms), "all"]:
            own = [row for row in latest.values() if platform in (row["platform"], "all")]
            responsive = [row for row in own if row["outcome"] == "valid"]
            healthy = [row for row in responsive if row["status"] == "healthy"]
            found.append(
                {
                    "hour": hour, "platform": platform, "agents": len(own), "healthy": len(healthy),
                    "responsive": len(responsive), "survival_rate": len(responsive) / len(own),
                }
            )  # fmt: skip
    return found
