"""The page of usage: what a success costs, and who and what takes the tokens and the dollars.

What belongs here: the agents of one window, and which sums are shown. What does not: adding up (`usage_sums`).

Amounts are sums over the executions that tell theirs: where some do not, at least that much was spent.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.lists import ROWS_PER_PAGE, containing, pages_of, sliced, total
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.rendering import part
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.usage_sums import (
    DAY,
    DAY_H,
    SUMS,
    Sums,
    days_of,
    models_of,
    of_window,
    summed,
    users_of,
    versions_of,
)
from health_assets.systems.agent_usage.names import CANCELLED

By = Literal["agent", "model", "version", "user", "day"]
Sort = Literal["cost", "tokens", "cost_per_success", "executions", "name"]
Days = Literal["7", "30"]
LISTINGS: dict[str, str] = {"agent": "agents", "model": "models", "version": "versions", "user": "users", "day": "days"}
ORDER: dict[str, list[tuple[str, str]]] = {
    "cost": [("cost_usd", "descending"), ("tokens", "descending"), ("agent_id", "ascending")],
    "tokens": [("tokens", "descending"), ("agent_id", "ascending")],
    "cost_per_success": [("cost_per_success_usd", "descending"), ("agent_id", "ascending")],
    "executions": [("executions", "descending"), ("agent_id", "ascending")],
    "name": [("agent_id", "ascending")],
}
LISTED = ("agent_id", *SUMS, "tokens", "cost_per_success_usd", *CANCELLED, "team")
BEFORE_DAYS = (1, 7)
MODELS_SHOWN = 50
VERSIONS_SHOWN = 50
USERS_SHOWN = 50
LEAST_PLACES = 7


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The usage that is asked for.

    Args:
        text: part of the agent's name, in any case.
        sort: the order of agents.
        days: how many days are shown.
        by: the list that CSV writes.
        page: of agents, from 1.
        most: agents of a page.
    """

    text: str = ""
    sort: Sort = "cost"
    days: Days = "30"
    by: By = "agent"
    page: int = 1
    most: int = ROWS_PER_PAGE


def usage_page(look: ScopedHistory, wanted: Wanted) -> Page:
    """The tokens and cost of the window by agent, and of the last days by model and by day."""
    agents = look.at("usage")
    fleet = summed(agents)
    found = containing(_with_tokens(agents), "agent_id", wanted.text)
    listed = found.select([name for name in LISTED if name in found.column_names])
    data: dict[str, Any] = {
        "hour": look.hour,
        "window_hours": look.history.facts.get("window_hours"),
        "fleet": fleet,
        "cancelled": {name: total(agents, name) for name in CANCELLED},
        "before": look.remembered("usage before", lambda: {str(days): _before(look, days) for days in BEFORE_DAYS}),
        "count": agents.num_rows,
        "found": found.num_rows,
        "hidden": look.hidden_agents(),
        "agents": sliced(listed, ORDER[wanted.sort], wanted.page, wanted.most),
        "models": look.remembered("models", lambda: models_of(look, look.back(1))),
        "versions": look.remembered_of_face("usage_breakdown", look.hour, "versions", lambda: versions_of(look)),
        "users": look.remembered_of_face("usage_breakdown", look.hour, "users", lambda: users_of(look)),
        "days": look.remembered(("days", wanted.days), lambda: days_of(look, int(wanted.days)) or []),
    }
    shown = {
        "wanted": wanted,
        "pages": pages_of(found.num_rows, wanted.most),
        "models_shown": MODELS_SHOWN,
        "versions_shown": VERSIONS_SHOWN,
        "users_shown": USERS_SHOWN,
        "has_days": look.hides_nothing or data["window_hours"] == DAY_H,
        "bars": _bars(data["days"]),
        "has_feedback": any(sums["positive_feedback"] or sums["negative_feedback"] for sums in (fleet, *data["days"])),
        "query": [f"by={wanted.by}", f"sort={wanted.sort}", f"days={wanted.days}", f"q={part(wanted.text)}"],
    }
    return Page(name="usage", title="Usage", data=data, listing=LISTINGS[wanted.by], shown=shown)


def _with_tokens(agents: pa.Table) -> pa.Table:
    """The agents with all tokens of each, into models and out of them; null where it tells neither."""
    if not agents.num_rows:
        return agents
    into, out = agents.column("input_tokens"), agents.column("output_tokens")
    tokens = pc.add(pc.coalesce(into, pc.if_else(pc.is_valid(out), 0, None)), pc.fill_null(out, 0))
    return agents.append_column("tokens", tokens)


def _before(look: ScopedHistory, days: int) -> Sums | None:
    """The sums of the window so many days ago; None where there are none."""
    found = of_window(look, look.hour - timedelta(days=days))
    return None if found is None else found[0]


def _bars(days: list[Sums]) -> dict[str, Any]:
    """A bar a day: of the cost where any day tells it, else of tokens; few days stand at the end of more places."""
    costs = [day["cost_usd"] for day in days]
    has_cost = any(cost is not None for cost in costs)
    values = costs if has_cost else [_tokens(day) for day in days]
    most = max((value for value in values if value is not None), default=0)
    heights = [None if value is None else value / most if most else 0.0 for value in values]
    places = max(LEAST_PLACES, len(days))
    first = days[-1]["hour"] - (places - 1) * DAY if days else None
    return {"has_cost": has_cost, "most": most, "heights": heights, "places": places, "first": first}


def _tokens(sums: Sums) -> int | None:
    data = [sums[name] for name in ("input_tokens", "output_tokens") if sums[name] is not None]
    return sum(data) if data else None
