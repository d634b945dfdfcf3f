"""The error budgets' block: the agents that have spent theirs, and those that spend faster than they may."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.core.wording import counted, few_digits
from health_assets.pipeline.layout import latest_hour, plain_table
from health_assets.warehouse.session import Session

AGENTS_SHOWN = 10
SHOWN = ("agent_id", "budget_spent", "burn_rate_1h", "burn_rate_6h", "failures", "allowed_failures")
IS_BURNING = "burn_rate_1h > 1 AND burn_rate_6h > 1"
"""It matters, as the longer window says, and goes on, as the shorter one says."""
IS_LISTED = f"(budget_spent >= 1 OR ({IS_BURNING}))"


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The budgets in the last of these hours, and the agents that burn theirs too fast, then those that spent most."""
    latest = latest_hour(session, "error_budget", hours)
    if latest is None:
        return
    [(agents, spent, burning, listed)] = session.query(
        f"""
        SELECT count(*), count(CASE WHEN budget_spent >= 1 THEN 1 END), count(CASE WHEN {IS_BURNING} THEN 1 END),
            count(CASE WHEN {IS_LISTED} THEN 1 END)
        FROM error_budget WHERE hour = ?
        """,
        [latest],
    )
    title = Text(f"Error budgets at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{counted(agents, 'agent')}: ")
    title.append(f"{spent:,} spent", style="red" if spent else "green")
    title.append(f"  {burning:,} burning too fast", style="red" if burning else "green")
    console.print()
    console.print(title)
    if listed:
        order = f"CASE WHEN {IS_BURNING} THEN 0 ELSE 1 END, budget_spent DESC, failures DESC, agent_id"
        sql = f"SELECT {', '.join(SHOWN)} FROM error_budget WHERE hour = ? AND {IS_LISTED} ORDER BY {order} LIMIT ?"
        console.print(_table(session.query(sql, [latest, AGENTS_SHOWN]), listed))


def _table(found: list[tuple], listed: int) -> Table:
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=24)
    for heading in ("spent", "rate 1 h", "rate 6 h", "failed", "allowed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for agent_id, spent, rate_1h, rate_6h, failures, allowed in found:
        table.add_row(
            Text(printable(agent_id)), Text(f"{spent:,.0%}", style="red" if spent >= 1 else "yellow"),
            _rate(rate_1h), _rate(rate_6h), f"{failures:,}", few_digits(allowed),
        )  # fmt: skip
    if listed > len(found):
        table.caption = (
            f"the {len(found)} of {listed:,} that burn fastest or spent most; all are in the table error_budget"
        )
    return table


def _rate(burn_rate: float | None) -> str:
    return "–" if burn_rate is None else f"{burn_rate:,.1f}"
