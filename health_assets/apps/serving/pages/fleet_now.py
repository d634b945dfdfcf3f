"""The first words of the fleet's page: which agents are failing now, and how each agent stands.

What belongs here: verdicts on the last hours and spent error budgets, before any score. What does not: the rest of the
page (`fleet_page`), and what one agent's failures have in common (`agent_last_hours`).
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.agent_last_hours import error_of_last_hour
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.formatting import counted
from health_assets.core.hours import HourRange
from health_assets.scoring.verdict import FAILING, NOW, NOW_FIRST, PROVISIONAL, SUSPECT, now_evidence, now_word

AGENTS_SHOWN = 8
SPENT = 1.0
"""Share of an error budget from which on nothing of it is left."""
TOLD = (
    "agent_id", "now", "now_since", "state", "is_provisional", "health_score", "points_at_stake", "budget_spent", "n",
)  # fmt: skip
STANDINGS = (*NOW_FIRST, "unhealthy", "degraded", PROVISIONAL, "inactive", "healthy")
"""How an agent stands, in the order in which a person looks at agents; each agent counts once."""


def with_standing(agents: pa.Table) -> pa.Table:
    """Add `standing`, one of `STANDINGS`, to rows of agents: what it does now, else its state.

    An agent that looks healthy after too few executions is provisional; nobody knows yet that it is healthy.
    """
    state, now = agents.column("state"), agents.column("now")
    is_provisional = pc.and_(pc.fill_null(agents.column("is_provisional"), False), pc.equal(state, "healthy"))
    known = pc.if_else(pc.fill_null(is_provisional, False), PROVISIONAL, state)
    is_first = pc.fill_null(pc.is_in(now, value_set=pa.array(NOW_FIRST)), False)
    return agents.append_column("standing", pc.if_else(is_first, now, known))


def in_order(agents: pa.Table) -> pa.Table:
    """Agents with `standing` in the order in which a person looks at them, from the most urgent on.

    After those that are in trouble now come those whose error budget is spent, the most first; then all others.
    """
    is_first = pc.is_in(agents.column("standing"), value_set=pa.array(NOW_FIRST))
    is_spent = pc.fill_null(pc.greater_equal(agents.column("budget_spent"), SPENT), False)
    place = pc.if_else(is_first, 0, pc.if_else(is_spent, 1, 2))
    urgency = pc.if_else(pc.equal(place, 1), 0, agents.column("urgency"))
    spent = pc.if_else(pc.equal(place, 1), agents.column("budget_spent"), 0.0)
    keys = pa.table(
        {
            "place": place, "urgency": urgency, "spent": spent, "score": agents.column("health_score"),
            "agent": agents.column("agent_id"),
        }
    )  # fmt: skip
    order = [(name, "descending" if name == "spent" else "ascending") for name in keys.column_names]
    return agents.take(pc.sort_indices(keys, sort_keys=order))


def now_of_fleet(look: ScopedHistory, agents: pa.Table) -> dict[str, Any]:
    """The agents now: how many by verdict, how many spent their budgets, and the first few of both.

    Args:
        look: the part of the history that the caller sees.
        agents: its agents of the hour with `standing`, the most urgent first.
    """
    counts = dict.fromkeys(NOW, 0)
    if not agents.num_rows:
        return {"counts": counts, "budgets_spent": 0, "sentence": "", "worst": [], "more": 0}
    found = pc.value_counts(pc.drop_null(agents.column("now"))).to_pylist()
    counts |= {one["values"]: one["counts"] for one in found}
    is_spent = pc.fill_null(pc.greater_equal(agents.column("budget_spent"), SPENT), False)
    spent = pc.sum(is_spent).as_py() or 0
    is_first = pc.fill_null(pc.is_in(agents.column("now"), value_set=pa.array(NOW_FIRST)), False)
    troubled = agents.filter(pc.or_(is_first, is_spent))
    is_copied = look.has_all("errors", HourRange.of(look.hour))
    worst = [_told(look, row, is_copied=is_copied) for row in troubled.slice(0, AGENTS_SHOWN).to_pylist()]
    return {
        "counts": counts,
        "budgets_spent": spent,
        "sentence": _sentence(counts, is_present=look.is_present),
        "worst": worst,
        "more": max(0, troubled.num_rows - AGENTS_SHOWN),
    }


def _sentence(counts: dict[str, int], *, is_present: bool) -> str:
    """The fleet now in one sentence; "" where nothing is known of the last hours."""
    if not sum(counts.values()):
        return ""
    failing, suspect = counts[FAILING], counts[SUSPECT]
    one, many, when = ("is", "are", "now") if is_present else ("was", "were", "in that hour")
    if failing:
        return f"{counted(failing, f'agent {one}', f'agents {many}')} FAILING {when}"
    if suspect:
        return f"No agent {one} failing {when}; {counted(suspect, one, many)} suspect"
    return f"No agent {one} failing {when}"


def _told(look: ScopedHistory, row: dict[str, Any], *, is_copied: bool) -> dict[str, Any]:
    """An agent of the list, with its last hour's most frequent error; `failures` is null unless errors are copied."""
    failures, worst = error_of_last_hour(look, row["agent_id"])
    return {
        **{name: row[name] for name in TOLD},
        "word": now_word(row, is_present=look.is_present),
        "evidence": now_evidence(row),
        "failures": failures if is_copied else None,
        "failures_of_window": row["failures"],
        "error": worst["error"],
        "error_count": worst["failures"],
        "error_run": worst["last_run"],
        "error_at": worst["last_at"],
    }
