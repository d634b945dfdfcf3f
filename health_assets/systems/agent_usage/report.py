"""Usage's block: tokens and cost of the fleet, and the agents that cost most, with what a success costs."""

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.terminal import printable
from health_assets.core.wording import counted
from health_assets.pipeline.layout import latest_hour, plain_table
from health_assets.warehouse.session import Session

AGENTS_SHOWN = 10
AMOUNTS = ("input_tokens", "output_tokens", "cost_usd")
SHOWN = (
    "agent_id", "executions", "successes", *AMOUNTS, "executions_with_tokens", "executions_with_cost",
    "cost_per_success_usd",
)  # fmt: skip
TELLS = " OR ".join(f"{name} IS NOT NULL" for name in AMOUNTS)
AT_LEAST = "≥"
"""Before what only some executions tell."""


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """Print what the executions in the window of the last of these hours cost, and the costliest agents."""
    latest = latest_hour(session, "agent_usage", hours)
    if latest is None:
        return
    fleet, agents, telling, window_hours = _fleet(session, latest)
    title = Text(f"Usage at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{counted(agents, 'agent')}, {counted(fleet['executions'], 'execution')} in {window_hours:,} h")
    console.print()
    console.print(title)
    console.print(_in_words(fleet) if telling else "no execution tells tokens or cost", highlight=False)
    if telling:
        console.print(_table(_costliest(session, latest), telling))


def _fleet(session: Session, hour: datetime) -> tuple[dict[str, Any], int, int, int]:
    """The sums over all agents, how many agents there are, how many tell anything, and the window's length in hours."""
    of_fleet = [name for name in SHOWN if name not in ("agent_id", "cost_per_success_usd")]
    sums = ", ".join(
        f"CAST(sum({name}) AS {'DOUBLE PRECISION' if name == 'cost_usd' else 'BIGINT'})" for name in of_fleet
    )
    [row] = session.query(
        f"""
        SELECT count(*), count(CASE WHEN {TELLS} THEN 1 END), max(window_start), max(window_end), {sums}
        FROM agent_usage WHERE hour = ?
        """,
        [hour],
    )
    agents, telling, start, end, *values = row
    return dict(zip(of_fleet, values, strict=True)), agents, telling, (end - start) // HOUR


def _in_words(fleet: dict[str, Any]) -> str:
    """Tokens and cost of the fleet, and how many of its executions tell them."""
    tokens = [
        f"{fleet[name]:,} tokens {way}"
        for name, way in (("input_tokens", "in"), ("output_tokens", "out"))
        if fleet[name] is not None
    ]
    told = [(", ".join(tokens), fleet["executions_with_tokens"])] if tokens else []
    if fleet["cost_usd"] is not None:
        told.append((_dollars(fleet["cost_usd"]), fleet["executions_with_cost"]))
    return "; ".join(f"{amount}, told by {counted(executions, 'execution')}" for amount, executions in told)


def _costliest(session: Session, hour: datetime) -> list[dict[str, Any]]:
    found = session.query(
        f"""
        SELECT {", ".join(SHOWN)} FROM agent_usage WHERE hour = ? AND ({TELLS})
        ORDER BY cost_usd DESC NULLS LAST, coalesce(input_tokens, 0) + coalesce(output_tokens, 0) DESC, agent_id
        LIMIT {AGENTS_SHOWN}
        """,
        [hour],
    )
    return [dict(zip(SHOWN, values, strict=True)) for values in found]


def _table(agents: list[dict[str, Any]], telling: int) -> Table:
    table = plain_table()
    table.add_column("costliest agents", no_wrap=True, max_width=24)
    for heading in ("runs", "succeeded", "tokens in", "tokens out", "cost", "per success"):
        table.add_column(heading, justify="right", no_wrap=True)
    for agent in agents:
        with_tokens, with_cost = (
            AT_LEAST if agent[f"executions_with_{name}"] < agent["executions"] else "" for name in ("tokens", "cost")
        )
        table.add_row(
            Text(printable(agent["agent_id"])), f"{agent['executions']:,}", f"{agent['successes']:,}",
            _or_dash(with_tokens, agent["input_tokens"], "{:,}".format),
            _or_dash(with_tokens, agent["output_tokens"], "{:,}".format),
            _or_dash(with_cost, agent["cost_usd"], _dollars),
            _or_dash(with_cost, agent["cost_per_success_usd"], _dollars),
        )  # fmt: skip
    captions = []
    if telling > len(agents):
        captions.append(f"the {len(agents)} of {telling:,} agents that cost most; all are in the table agent_usage")
    if any(agent[f"executions_with_{name}"] < agent["executions"] for agent in agents for name in ("tokens", "cost")):
        captions.append(f"{AT_LEAST} only some of the agent's executions tell it")
    table.caption = "\n".join(captions) or None
    return table


def _or_dash(prefix: str, value: float | None, said: Callable[[float], str]) -> str:
    """The value after the sign that more is not known; a dash for none."""
    return "–" if value is None else f"{prefix}{said(value)}"


def _dollars(value: float) -> str:
    """Dollars to the cent; less than a dollar has three significant digits."""
    decimals = 2 if value >= 1 or value == 0 else 2 - math.floor(math.log10(value))
    return f"${value:,.{decimals}f}"
