"""What pages say of agents of which no runtime is expected: how their median runtimes moved."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.look import Look
from health_assets.apps.serving.pages.rendering import LONGEST_NAME, shape
from health_assets.core.hours import HourRange
from health_assets.scoring.slowdowns import (
    COMMAND,
    DAYS_BEFORE,
    FEWEST_RUNS,
    median_words,
    sentence_of_fleet,
    slowdown,
)

COLUMNS = ("agent_id", "n", "latency_p50_ms")
EXPECTED = "expected_runtime_s"


def fleet_without_targets(look: Look, agents: pa.Table) -> str | None:
    """How many of these agents have runtimes and no expected one, and which slowed most; None without any."""
    if not agents.num_rows or EXPECTED not in agents.column_names:  # of an older copy
        return None
    scored = agents.filter(pc.is_valid(agents.column("health_score")))
    is_timed = pc.is_valid(scored.column("latency_p50_ms"))
    without = scored.filter(pc.and_(is_timed, pc.is_null(scored.column(EXPECTED))))
    before = {days: _medians(_earlier(look, days)) for days in DAYS_BEFORE}
    found = (
        slowdown(agent_id, now_ms, {days: medians.get(agent_id) for days, medians in before.items()})
        for agent_id, now_ms in _medians(without).items()
    )
    known = (one for one in found if one is not None)
    worst = min(known, key=lambda one: (-one.ratio, one.agent_id), default=None)
    name = shape(worst.agent_id[:LONGEST_NAME]) if worst else ""
    return sentence_of_fleet(without.num_rows, scored.num_rows, worst, name)


def runtime_without_target(look: Look, row: Mapping[str, Any]) -> str:
    """How the median runtime of an agent moved, of which none is expected."""
    agent_id, now_ms = row["agent_id"], row["latency_p50_ms"]
    hours = {days: HourRange.of(look.hour - timedelta(days=days)) for days in DAYS_BEFORE}
    before = {
        days: _medians(look.of_key("agents", agent_id, hour, ("hour", *COLUMNS))).get(agent_id)
        for days, hour in hours.items()
    }
    found = slowdown(agent_id, now_ms, before) if row["n"] >= FEWEST_RUNS else None
    words = found.words if found else median_words(now_ms)
    return f"{words[0].upper()}{words[1:]}; {COMMAND} proposes a target."


def _earlier(look: Look, days: int) -> pa.Table:
    return look.of_all("agents", look.hour - timedelta(days=days), COLUMNS)


def _medians(rows: pa.Table) -> dict[str, float]:
    """Median runtimes by agent, of those with runs enough."""
    return (
        {
            agent_id: median_ms
            for agent_id, n, median_ms in zip(*(rows.column(name).to_pylist() for name in COLUMNS), strict=True)
            if n >= FEWEST_RUNS and median_ms is not None
        }
        if rows.num_rows
        else {}
    )
