"""Drifts as people read them."""

from collections.abc import Mapping
from typing import Any

from health_assets.core.wording import share
from health_assets.systems.agent_drift.names import SUCCESS_RATE, VOLUME_DROP, VOLUME_RISE

NAMES = {SUCCESS_RATE: "success rate", VOLUME_DROP: "fewer executions", VOLUME_RISE: "more executions"}


def value_text(measure: str, value: float) -> str:
    """`81%`, or `12.5/h`."""
    return share(value) if measure == SUCCESS_RATE else f"{value:,.1f}/h"


def change_text(row: Mapping[str, Any]) -> str:
    """`94% → 81%`."""
    return " → ".join(value_text(row["measure"], row[name]) for name in ("baseline", "value"))


def cause_text(row: Mapping[str, Any]) -> str:
    """`version 8: 83% of the failures in excess`; empty where no version or model stands out."""
    return row["hint"] or ""


def sentence(row: Mapping[str, Any]) -> str:
    """`success rate 94% → 81% since 2026-06-07 14:00 UTC; version 8: 83% of the failures in excess`."""
    told = f"{NAMES[row['measure']]} {change_text(row)} since {row['since']:%Y-%m-%d %H:%M} UTC"
    return f"{told}; {cause_text(row)}" if row["cause"] else told
