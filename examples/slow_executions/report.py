"""The block of slow executions: the agents with the most of them."""

import ibis
from rich.console import Console
from rich.text import Text

from health_assets.core.console import plain_table
from health_assets.core.formatting import counted
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.warehouse.session import Session

AGENTS_SHOWN = 5


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The agents with the greatest shares in the last of these hours that has any."""
    latest = session.latest_hour("slow_executions", hours)
    if latest is None:
        return
    rows = session.hours_of("slow_executions", HourRange.of(latest))
    agents = counted(session.count(rows), "agent")
    console.print()
    console.print(Text(f"Slow executions at {latest:%Y-%m-%d %H:%M} UTC: {agents}", style="bold"))
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=24)
    for heading in ("slow", "runs", "share", "median s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in session.dicts(rows.order_by(ibis.desc("slow_share"), "agent_id").limit(AGENTS_SHOWN)):
        table.add_row(
            Text(printable(row["agent_id"])), f"{row['slow']:,}", f"{row['executions']:,}", f"{row['slow_share']:.1%}",
            f"{row['median_runtime_s']:,.1f}",
        )  # fmt: skip
    console.print(table)
