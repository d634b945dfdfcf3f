"""The error budgets' block: the agents that have spent theirs, and those that spend faster than they may."""

from typing import Any

import ibis
from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import plain_table
from health_assets.core.formatting import counted, few_digits
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.systems.error_budget.error_budget import burns_too_fast, is_spent
from health_assets.warehouse.session import Session

AGENTS_SHOWN = 10
RATES = {"burn_rate_5m": "rate 5 min", "burn_rate_30m": "30 min", "burn_rate_1h": "1 h", "burn_rate_6h": "6 h"}
"""The rates that are shown, and their headings."""
SHOWN = ("agent_id", "budget_spent", *RATES, "failures", "allowed_failures")


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The budgets in the last of these hours, and the agents that burn theirs too fast, then those that spent most."""
    latest = session.latest_hour("error_budget", hours)
    if latest is None:
        return
    budgets = session.hours_of("error_budget", HourRange.of(latest))
    [fleet] = session.dicts(_counts(budgets))
    title = Text(f"Error budgets at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{counted(fleet['agents'], 'agent')}: ")
    title.append(f"{fleet['spent']:,} spent", style="red" if fleet["spent"] else "green")
    title.append(f"  {fleet['burning']:,} burning too fast", style="red" if fleet["burning"] else "green")
    console.print()
    console.print(title)
    if fleet["listed"]:
        console.print(_table(session.dicts(_fastest(budgets)), fleet["listed"]))


def _counts(budgets: ir.Table) -> ir.Table:
    """The number of all agents, and of those whose budget is spent, burns too fast, or one of both."""
    spent, burning = is_spent(budgets), burns_too_fast(budgets)
    return budgets.aggregate(
        agents=budgets.count(), spent=budgets.count(where=spent), burning=budgets.count(where=burning),
        listed=budgets.count(where=spent | burning),
    )  # fmt: skip


def _fastest(budgets: ir.Table) -> ir.Table:
    """The budgets that burn too fast, then those that are spent, each the most spent first."""
    listed = budgets.filter(is_spent(budgets) | burns_too_fast(budgets))
    urgency = burns_too_fast(listed).ifelse(0, 1)
    in_order = listed.order_by(urgency, ibis.desc("budget_spent"), ibis.desc("failures"), "agent_id")
    return in_order.select(*SHOWN).limit(AGENTS_SHOWN)


def _table(found: list[dict[str, Any]], listed: int) -> Table:
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=24)
    for heading in ("spent", *RATES.values(), "failed", "allowed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for agent in found:
        spent = agent["budget_spent"]
        table.add_row(
            Text(printable(agent["agent_id"])), Text(f"{spent:,.0%}", style="red" if spent >= 1 else "yellow"),
            *(_rate(agent[rate]) for rate in RATES), f"{agent['failures']:,}",
            few_digits(agent["allowed_failures"]),
        )  # fmt: skip
    if listed > len(found):
        table.caption = (
            f"the {len(found)} of {listed:,} that burn fastest or spent most; all are in the table error_budget"
        )
    return table


def _rate(burn_rate: float | None) -> str:
    return "–" if burn_rate is None else f"{burn_rate:,.1f}"
