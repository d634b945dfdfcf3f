"""What pages say of agents of which no runtime is expected, from the history."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa

from health_assets.apps import without_targets
from health_assets.apps.serving.pages.rendering import LONGEST_NAME, shape
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.without_targets import EXPECTED, MEDIANS
from health_assets.core.hours import HourRange
from health_assets.scoring.slowdowns import COMMAND, median_words


def fleet_without_targets(look: ScopedHistory, agents: pa.Table) -> str | None:
    """How many of these agents have runtimes and no expected one, and which slowed most; None without any."""
    if not agents.num_rows or EXPECTED not in agents.column_names:  # of an older copy
        return None

    def earlier(days: int) -> pa.Table:
        return look.of_all("agents", look.hour - timedelta(days=days), MEDIANS)

    return without_targets.fleet_without_targets(agents, earlier, lambda name: shape(name[:LONGEST_NAME]))


def runtime_without_target(look: ScopedHistory, row: Mapping[str, Any]) -> str:
    """How the median runtime of an agent moved, of which none is expected."""
    agent_id, median_ms = row["agent_id"], row["latency_p50_ms"]

    def earlier(days: int) -> pa.Table:
        hour = HourRange.of(look.hour - timedelta(days=days))
        return look.of_key("agents", agent_id, hour, ("hour", *MEDIANS))

    slowed = without_targets.slowdown_of(agent_id, row["n"], median_ms, earlier)
    words = slowed.words if slowed else median_words(median_ms)
    return f"{words[0].upper()}{words[1:]}; {COMMAND} proposes a target."
