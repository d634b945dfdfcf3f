"""Tool health's block: how many calls of tools failed, and the tools that fail most, each with its latest error."""

from typing import Any

import ibis
from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import is_narrow, plain_table
from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.terminal import printable
from health_assets.systems.tool_health.tool_health import NOBODY
from health_assets.warehouse.session import Session

TOOLS_SHOWN = 10
NAME_WIDTH, NARROW_NAME_WIDTH = 24, 17
ERROR_WIDTH, NARROW_ERROR_WIDTH = 40, 22
ALARMING = 0.05
"""A tool of whose calls surely more than that share fail is shown in red."""
SHOWN = (
    "tool", "agent_id", "failures", "calls", "failure_share", "failure_share_at_least", "p50_latency_ms",
    "p95_latency_ms", "last_error",
)  # fmt: skip


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The calls of tools in the window of the last of these hours that has any, and the tools that failed."""
    latest = session.latest_hour("tool_health", hours)
    if latest is None:
        return
    tools = session.hours_of("tool_health", HourRange.of(latest))
    [facts] = session.dicts(_facts(tools))
    window_hours = len(HourRange(facts["window_start"], latest + HOUR))
    title = Text(f"Tools at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{_whose(facts)}, ")
    title.append(f"{counted(facts['calls'], 'call')} in {window_hours:,} h: ")
    share = f" ({facts['failures'] / facts['calls']:.1%})" if facts["failures"] else ""
    title.append(f"{facts['failures']:,} failed{share}", style="red" if facts["failures"] else "green")
    console.print()
    console.print(title)
    if facts["failing"]:
        console.print(_table(session.dicts(_worst_tools(tools)), facts["failing"], is_brief=is_narrow(console)))
    if calls := facts["calls_of_nobody"]:
        console.print(f"{counted(calls, 'call')} of no known agent: agent_id in a tool_call line says whose it is")


def _whose(facts: dict[str, Any]) -> str:
    """Count tools and their agents in words, those that no known agent calls apart from them."""
    ours = f"{counted(facts['tools'], 'tool')} of {counted(facts['agents'], 'agent')}" if facts["tools"] else ""
    others = f"{counted(facts['tools_of_nobody'], 'tool')} of no known agent" if facts["tools_of_nobody"] else ""
    return " and ".join(filter(None, [ours, others]))


def _facts(tools: ir.Table) -> ir.Table:
    """Counts of tools, agents, calls and failures, apart those of no known agent, and the window."""
    of_nobody = tools.agent_id == NOBODY
    return tools.aggregate(
        tools=tools.tool.nunique(where=~of_nobody), agents=tools.agent_id.nunique(where=~of_nobody),
        tools_of_nobody=tools.tool.nunique(where=of_nobody), calls=tools.calls.sum(), failures=tools.failures.sum(),
        failing=tools.count(where=tools.failures > 0), calls_of_nobody=tools.calls.sum(where=of_nobody),
        window_start=tools.window_start.max(),
    )  # fmt: skip


def _worst_tools(tools: ir.Table) -> ir.Table:
    """The tools that fail most, surely."""
    failing = tools.filter(tools.failures > 0)
    in_order = failing.order_by(ibis.desc("failure_share_at_least"), ibis.desc("calls"), "agent_id", "tool")
    return in_order.select(*SHOWN).limit(TOOLS_SHOWN)


def _table(tools: list[dict[str, Any]], failing: int, *, is_brief: bool) -> Table:
    table = plain_table()
    for heading in ("worst tools", "agent"):
        table.add_column(heading, no_wrap=True, max_width=NARROW_NAME_WIDTH if is_brief else NAME_WIDTH)
    latencies = {} if is_brief else {"p50 ms": "p50_latency_ms", "p95 ms": "p95_latency_ms"}
    for heading in ("failed", "calls", "share", *latencies):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("last error", no_wrap=True, max_width=NARROW_ERROR_WIDTH if is_brief else ERROR_WIDTH)
    for tool in tools:
        table.add_row(
            Text(printable(tool["tool"])), Text(printable(tool["agent_id"]) or "–"), f"{tool['failures']:,}",
            f"{tool['calls']:,}", Text(f"{tool['failure_share']:.1%}", style=_colour(tool)),
            *(_ms(tool[name]) for name in latencies.values()),
            Text(printable(" ".join((tool["last_error"] or "").split()))),
        )  # fmt: skip
    if failing > len(tools):
        table.caption = f"the worst {len(tools)} of {failing:,} that failed; all are in the table tool_health"
    return table


def _colour(tool: dict[str, Any]) -> str:
    return "red" if tool["failure_share_at_least"] > ALARMING else ""


def _ms(latency_ms: float | None) -> str:
    return "–" if latency_ms is None else f"{latency_ms:,.0f}"
