"""The page of tools: which fail or are slow, for which agent, the worst first.

What belongs here: choosing, ordering and adding up tools of one hour. What does not: models (`models_page`).

Tools stand in the order of what their failure share is at least, so that one failure of one call does not lead.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.lists import ROWS_PER_PAGE, pages_of, rows_of_page
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.scoring.wilson import lower_end

By = Literal["agent", "tool"]
WORST_FIRST = [
    ("failure_share_at_least", "descending"), ("calls", "descending"), ("agent_id", "ascending"),
    ("tool", "ascending"),
]  # fmt: skip
COUNTED = ("calls", "failures", "failure_share", "failure_share_at_least")
OF_AGENT = (
    "agent_id", "team", "tool", *COUNTED, "p50_latency_ms", "p95_latency_ms", "last_error_at", "last_error",
)  # fmt: skip
OF_TOOL = (
    "tool", "agents", *COUNTED, "p95_latency_ms", "p95_agent_id", "last_error_at", "last_error",
)  # fmt: skip
"""Columns of the list, by agent and of tools across agents; an error only for the full view."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The tools that are asked for.

    Args:
        text: part of the tool's or the agent's name, in any case.
        agent: only this agent's; empty for calls of no known agent, None for all.
        by: a row for each agent and tool, or for each tool across agents.
        page: of the list, from 1.
        most: rows of a page.
    """

    text: str = ""
    agent: str | None = None
    by: By = "agent"
    page: int = 1
    most: int = ROWS_PER_PAGE


def tools_page(look: ScopedHistory, wanted: Wanted) -> Page:
    """The tools at one hour."""
    tools = look.remembered("tools, the worst first", lambda: _in_order(look.at("tools")))
    found = _found(tools, wanted)
    if wanted.by == "tool" and found.num_rows:
        found = _in_order(_across_agents(found))
    columns = [
        name for name in (OF_TOOL if wanted.by == "tool" else OF_AGENT) if look.view.shows_texts or name != "last_error"
    ]
    data: dict[str, Any] = {
        "hour": look.hour,
        "window_hours": look.history.facts.get("window_hours"),
        "tools": tools.num_rows,
        "found": found.num_rows,
        "totals": look.remembered("totals of tools", lambda: _totals(tools)),
        "shows_errors": look.view.shows_texts,
        "listed": rows_of_page(found, columns, wanted.page, wanted.most),
    }
    shown = {"wanted": wanted, "pages": pages_of(found.num_rows, wanted.most)}
    return Page(name="tools", title="Tools", data=data, listing="listed", shown=shown)


def _in_order(tools: pa.Table) -> pa.Table:
    order = [key for key in WORST_FIRST if key[0] in tools.column_names]
    return tools.sort_by(order) if tools.num_rows else tools


def _found(tools: pa.Table, wanted: Wanted) -> pa.Table:
    """The tools that are asked for."""
    if not tools.num_rows:
        return tools
    if wanted.agent is not None:
        tools = tools.filter(pc.equal(tools.column("agent_id"), wanted.agent))
    if wanted.text:
        names = ("tool",) if wanted.agent is not None else ("tool", "agent_id")
        matches = [pc.match_substring(tools.column(name), wanted.text, ignore_case=True) for name in names]
        tools = tools.filter(matches[0] if len(matches) == 1 else pc.or_(*matches))
    return tools


def _across_agents(tools: pa.Table) -> pa.Table:
    """A row for each tool: sums of calls and failures, the slowest agent, the latest error.

    Percentiles of several agents cannot be put together from those of each, so the worst one is shown.
    """
    sums = tools.group_by("tool").aggregate([("calls", "sum"), ("failures", "sum"), ("agent_id", "count")])
    sums = sums.rename_columns({"calls_sum": "calls", "failures_sum": "failures", "agent_id_count": "agents"})
    slowest = _first(tools, "p95_latency_ms", {"p95_latency_ms": "p95_latency_ms", "agent_id": "p95_agent_id"})
    latest = _first(tools, "last_error_at", {"last_error_at": "last_error_at", "last_error": "last_error"})
    found = sums.join(slowest, "tool").join(latest, "tool")
    calls, failures = (found.column(name).to_numpy() for name in ("calls", "failures"))
    at_least = np.where(failures == 0, 0.0, lower_end(failures, calls, np.sqrt))
    shares = {"failure_share": failures / calls, "failure_share_at_least": at_least}
    for name, values in shares.items():
        found = found.append_column(name, pa.array(values))
    return found


def _first(tools: pa.Table, by: str, columns: dict[str, str]) -> pa.Table:
    """The row of each tool with the greatest value of a column, where it has any; some columns under new names."""
    known = tools.filter(pc.is_valid(tools.column(by))).sort_by([(by, "descending"), ("agent_id", "ascending")])
    first = known.group_by("tool", use_threads=False).aggregate([(name, "first") for name in columns])
    return first.rename_columns({f"{name}_first": new for name, new in columns.items()})


def _totals(tools: pa.Table) -> dict[str, int]:
    if not tools.num_rows:
        return {"calls": 0, "failures": 0, "names": 0}
    return {
        "calls": pc.sum(tools.column("calls")).as_py(),
        "failures": pc.sum(tools.column("failures")).as_py(),
        "names": pc.count_distinct(tools.column("tool")).as_py(),
    }
