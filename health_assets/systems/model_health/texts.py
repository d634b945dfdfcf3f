"""The fallback replay in sentences."""

import math
from collections.abc import Mapping
from typing import Any

from health_assets.core.formatting import counted
from health_assets.systems.model_health.names import NO_ALTERNATIVE

CAVEAT = (
    "What another model would have done with a call is not known: failed calls may be harder than others, and more "
    "calls may slow a model down."
)


def fallback_text(row: Mapping[str, Any]) -> str:
    """What a row of `model_fallback` says, behind the name of the model that was degraded."""
    failed = counted(row["failures"], "failed call")
    if row["alternative"] == NO_ALTERNATIVE:
        return f"{failed} had no healthy alternative"
    if not row["compared_calls"]:
        return f"{failed} in hours without a call to {row['alternative']}, the healthiest model known"
    others = row["compared_alternative_calls"]
    good = others - row["compared_alternative_failures"]
    text = (
        f"of {counted(row['compared_failures'], 'failed call')} {_interval(row, 'avoided')} might have succeeded on "
        f"{row['alternative']}, if calls are alike ({good:,} of {counted(others, 'call')} to it succeeded in the same "
        "hours)"
    )
    successes = row["compared_calls"] - row["compared_failures"]
    if successes:
        text += f"; of {successes:,} good ones {_interval(row, 'added')} might have failed"
    if others_failed := row["failures"] - row["compared_failures"]:
        text += f"; {others_failed:,} more failed in hours without a call to {row['alternative']}"
    return text


def _interval(row: Mapping[str, Any], name: str) -> str:
    """The whole numbers around an interval."""
    low, high = math.floor(row[f"{name}_failures_low"]), math.ceil(row[f"{name}_failures_high"])
    if low == high:
        return f"{low:,}"
    return f"between {low:,} and {high:,}" if low else f"up to {high:,}"
