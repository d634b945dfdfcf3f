"""The verdict on an agent in a word: its state, how much it rests on, and which agents a person looks at first.

What belongs here: how a state is written wherever one is shown, and the order of lists. What does not: how a state
comes about (`systems.agent_health_model.agent_health`), what a score lost (`explanation`) and why systems differ
(`apps.report.differences`). It imports no engine.

With few executions a score leans to 100, as its source wants it. So a state that rests on fewer than `n_full` of them
is provisional: it is written with a question mark, and never stands among those that are known.
"""

from collections.abc import Mapping
from typing import Any

from health_assets.core.wording import counted

Row = Mapping[str, Any]

PROVISIONAL_MARK = "?"

ORDER = ("unhealthy", "unhealthy?", "degraded", "degraded?", "healthy?", "healthy", "inactive")
"""Verdicts in the order in which a person on call wants them; in each of them the lowest score comes first.

What is known to be bad comes first. What looks good after a few runs comes before what is known to be good: four of
four failed runs still score 94, and must not vanish below a hundred healthy agents.
"""


def verdict(state: str, *, is_provisional: bool | None) -> str:
    """A state as it is written: one of `ORDER`."""
    return f"{state}{PROVISIONAL_MARK}" if is_provisional else state


def runs(row: Row) -> str:
    """The number of executions behind a row of `agent_health`; for a provisional score, also of how many."""
    return f"{row['n']:,} of {row['n_full']:,}" if row["is_provisional"] else f"{row['n']:,}"


def reservation(row: Row) -> str:
    """The words behind a provisional score of a row of `agent_health`; none behind any other."""
    return f"provisional, {row['n']:,} of {counted(row['n_full'], 'run')}" if row["is_provisional"] else ""
