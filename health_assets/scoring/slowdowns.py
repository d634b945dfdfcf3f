"""Agents of which no runtime is expected, so that none is too slow: how their median runtimes moved, in words.

What belongs here: the sentences of reports and pages. What does not: reading the medians. It imports no engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from health_assets.core.formatting import duration

DAYS_BEFORE = (1, 2)
"""How many days before the window's end lies the end of each window that it is compared with."""
AGO = {1: "a day ago", 2: "two days ago"}
FEWEST_RUNS = 20
"""Runs that a window needs for its median to be compared."""
LEAST_RATIO = 1.2
"""Smaller slowdowns are not named for a fleet."""
COMMAND = "health-assets targets suggest"


@dataclass(frozen=True, kw_only=True)
class Slowdown:
    """An agent's median runtime over a window, and that of the earlier window in which it was shortest.

    Args:
        agent_id: the agent.
        now_ms: the median now.
        before_ms: the median then.
        days: how many days before.
    """

    agent_id: str
    now_ms: float
    before_ms: float
    days: int

    @property
    def ratio(self) -> float:
        """Times that the median is of what it was; 1 where both are 0."""
        if self.before_ms == 0:
            return 1.0 if self.now_ms == 0 else float("inf")
        return self.now_ms / self.before_ms

    @property
    def words(self) -> str:
        """Both medians: `median runtime 25.0 s, was 6.0 s two days ago`."""
        return f"{median_words(self.now_ms)}, was {duration(self.before_ms / 1e3)} {AGO[self.days]}"


def slowdown(agent_id: str, now_ms: float, before: Mapping[int, float | None]) -> Slowdown | None:
    """The greatest slowdown of an agent; None without an earlier median.

    Args:
        agent_id: the agent.
        now_ms: its median over the window.
        before: by `DAYS_BEFORE`, its median over the window that ended so many days before; None where nothing ran.
    """
    known = [(median, days) for days, median in before.items() if median is not None]
    if not known:
        return None
    before_ms, days = min(known)
    return Slowdown(agent_id=agent_id, now_ms=now_ms, before_ms=before_ms, days=days)


def median_words(median_ms: float) -> str:
    """`median runtime 25.0 s`."""
    return f"median runtime {duration(median_ms / 1e3)}"


def sentence_of_agent(median_ms: float, found: Slowdown | None) -> str:
    """That an agent's performance is not judged, and how its median moved."""
    return f"performance is not judged: no target; {found.words if found else median_words(median_ms)}"


def sentence_of_fleet(without: int, agents: int, worst: Slowdown | None, name: str) -> str | None:
    """The same of a fleet, with its greatest slowdown; None where every agent has a target.

    Args:
        without: agents with known runtimes of which none is expected.
        agents: agents with a score.
        worst: the greatest slowdown of these; None where none is known.
        name: the name of its agent, as it may be shown.
    """
    if not without:
        return None
    sentence = f"performance is not judged for {without:,} of {agents:,} agents: no target"
    if worst is None or worst.ratio < LEAST_RATIO:
        return sentence
    return f"{sentence}; slowed most: {name}, {worst.words} ({worst.ratio:,.1f} times)"
