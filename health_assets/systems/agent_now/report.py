"""The block of agents now: those that are failing, suspect or recovering in the last hour."""

from datetime import datetime
from typing import Any

from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import is_narrow, plain_table
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.core.wording import counted
from health_assets.systems.agent_now.names import FAILING, RECOVERING, RECOVERY_HOURS, SUSPECT, VERDICTS
from health_assets.warehouse.session import Session

AGENTS_SHOWN = 10
COLOURS = {FAILING: "red", SUSPECT: "yellow", RECOVERING: "cyan"}
SHOWN = (
    "hour", "agent_id", "verdict", "since", "executions_1h", "failures_1h", "executions_6h", "failures_6h",
    "failed_in_a_row", "good_hours", "expected_success_rate",
)  # fmt: skip


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The number of agents by verdict in the last of these hours, and those to look at, failing ones first."""
    latest = session.latest_hour("agent_now", hours)
    if latest is None:
        return
    agents = session.hours_of("agent_now", HourRange.of(latest))
    counts = {row["verdict"]: row["agents"] for row in session.dicts(_counts(agents))}
    title = Text(f"Now, in the hour from {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    for verdict in VERDICTS:
        count = counts.get(verdict, 0)
        title.append(f"{count:,} {verdict}  ", style=COLOURS.get(verdict, "") if count else "dim")
    console.print()
    console.print(title)
    listed = sum(counts.get(verdict, 0) for verdict in COLOURS)
    if listed:
        console.print(_table(session.dicts(_first(agents)), listed, is_brief=is_narrow(console)))


def _counts(agents: ir.Table) -> ir.Table:
    return agents.group_by("verdict").aggregate(agents=agents.count())


def _first(agents: ir.Table) -> ir.Table:
    listed = agents.filter(agents.verdict.isin(list(COLOURS)))
    urgency = listed.verdict.cases(*((verdict, place) for place, verdict in enumerate(VERDICTS)), else_=len(VERDICTS))
    return listed.order_by(urgency, "p_chance", "agent_id").select(*SHOWN).limit(AGENTS_SHOWN)


def _table(found: list[dict[str, Any]], listed: int, *, is_brief: bool) -> Table:
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=24)
    table.add_column("now", no_wrap=True)
    table.add_column("since", no_wrap=True)
    for heading in ("failed 1 h",) if is_brief else ("failed 1 h", "failed 6 h", "in a row", "expected"):
        table.add_column(heading, justify="right", no_wrap=True)
    for agent in found:
        longer = (
            f"{agent['failures_6h']:,} of {agent['executions_6h']:,}", f"{agent['failed_in_a_row']:,}",
            f"{1 - agent['expected_success_rate']:.3g}".rstrip("."),
        )  # fmt: skip
        table.add_row(
            Text(printable(agent["agent_id"])), _verdict(agent), _since(agent["since"], agent["hour"]),
            f"{agent['failures_1h']:,} of {agent['executions_1h']:,}", *(() if is_brief else longer),
        )  # fmt: skip
    if listed > len(found):
        table.caption = (
            f"the {len(found)} of {counted(listed, 'agent')} to look at first; all are in the table agent_now"
        )
    return table


def _verdict(agent: dict[str, Any]) -> Text:
    text = Text(agent["verdict"], style=COLOURS[agent["verdict"]])
    if agent["verdict"] == RECOVERING:
        text.append(f", {agent['good_hours']} of {RECOVERY_HOURS} good hours")
    return text


def _since(since: datetime, hour: datetime) -> str:
    return f"{since:%H:%M}" if since.date() == hour.date() else f"{since:%Y-%m-%d %H:%M}"
