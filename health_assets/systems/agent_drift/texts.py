"""Drifts as people read them."""

from collections.abc import Mapping
from typing import Any

from health_assets.core.formatting import dollars, duration, share
from health_assets.systems.agent_drift.names import (
    COST,
    LATENCY,
    SUCCESS_RATE,
    TOKENS,
    TOOL_FAILURES,
    TOOL_MIX,
    VOLUME_DROP,
    VOLUME_RISE,
)

NAMES = {
    SUCCESS_RATE: "success rate",
    TOOL_FAILURES: "runs with a failed tool",
    TOOL_MIX: "calls of another tool",
    VOLUME_DROP: "fewer executions",
    VOLUME_RISE: "more executions",
}


def name_text(row: Mapping[str, Any]) -> str:
    """`success rate`, or `runs over 33.0 s`."""
    measure = row["measure"]
    if measure == LATENCY:
        return f"runs over {duration(row['threshold'])}"
    if measure == TOKENS:
        return f"runs over {row['threshold']:,.0f} tokens"
    if measure == COST:
        return f"runs over {dollars(row['threshold'])}"
    return NAMES[measure]


def value_text(measure: str, value: float) -> str:
    """`81%`, or `12.5/h`."""
    return f"{value:,.1f}/h" if measure in (VOLUME_DROP, VOLUME_RISE) else share(value)


def change_text(row: Mapping[str, Any]) -> str:
    """`94% → 81%`."""
    return " → ".join(value_text(row["measure"], row[name]) for name in ("baseline", "value"))


def cause_text(row: Mapping[str, Any]) -> str:
    """`version 8: 83% of the failures in excess`; empty where nothing stands out."""
    return row["hint"] or ""


def sentence(row: Mapping[str, Any]) -> str:
    """`success rate 94% → 81% since 2026-06-07 14:00 UTC; version 8: 83% of the failures in excess`."""
    change = f"{name_text(row)} {change_text(row)} since {row['since']:%Y-%m-%d %H:%M} UTC"
    return f"{change}; {cause_text(row)}" if row["cause"] else change
