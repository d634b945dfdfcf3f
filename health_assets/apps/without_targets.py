"""Agents of which no runtime is expected, for reports and pages: how many there are, and how their medians moved.

What belongs here: which agents count and which slowed most. What does not: the sentences (`scoring.slowdowns`), and
where the rows come from. It imports no engine.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.scoring.slowdowns import DAYS_BEFORE, FEWEST_RUNS, Slowdown, sentence_of_fleet, slowdown

MEDIANS = ("agent_id", "n", "latency_p50_ms")
"""Columns of an agent's window: its runs and their median runtime."""
EXPECTED = "expected_runtime_s"
Earlier = Callable[[int], pa.Table]
"""Gives `MEDIANS` of the windows that ended so many days before."""


def fleet_without_targets(agents: pa.Table, earlier: Earlier, shown: Callable[[str], str]) -> str | None:
    """How many of these agents have runtimes and no expected one, and which slowed most; None without any.

    Args:
        agents: `MEDIANS`, `health_score` and `EXPECTED` of the agents of an hour.
        earlier: of their windows before.
        shown: the name of an agent as it may be shown.
    """
    scored = agents.filter(pc.is_valid(agents.column("health_score")))
    without = agents_without_targets(scored)
    before = {days: _medians(earlier(days)) for days in DAYS_BEFORE} if without.num_rows else {}
    found = (
        slowdown(agent_id, now_ms, {days: medians.get(agent_id) for days, medians in before.items()})
        for agent_id, now_ms in _medians(without).items()
    )
    known = (one for one in found if one is not None)
    worst = min(known, key=lambda one: (-one.ratio, one.agent_id), default=None)
    return sentence_of_fleet(without.num_rows, scored.num_rows, worst, shown(worst.agent_id) if worst else "")


def agents_without_targets(agents: pa.Table) -> pa.Table:
    """The agents with a known median runtime and no expected one."""
    is_timed = pc.is_valid(agents.column("latency_p50_ms"))
    return agents.filter(pc.and_(is_timed, pc.is_null(agents.column(EXPECTED))))


def slowdown_of(agent_id: str, runs: int, median_ms: float, earlier: Earlier) -> Slowdown | None:
    """The greatest slowdown of an agent; None after too few runs or without an earlier median."""
    if runs < FEWEST_RUNS:
        return None
    return slowdown(agent_id, median_ms, {days: _medians(earlier(days)).get(agent_id) for days in DAYS_BEFORE})


def _medians(rows: pa.Table) -> dict[str, float]:
    """Median runtimes by agent, of those with enough runs."""
    if not rows.num_rows:
        return {}
    return {
        agent_id: median_ms
        for agent_id, n, median_ms in zip(*(rows.column(name).to_pylist() for name in MEDIANS), strict=True)
        if n >= FEWEST_RUNS and median_ms is not None
    }
