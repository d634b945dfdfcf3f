"""The block of the agents on which systems differ: what each of them says, and why."""

from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.differences import COLUMNS, DIFFER_SQL, is_burning, is_spent, why
from health_assets.hours import HourRange
from health_assets.report.agent_health_model import COLOURS as COLOURS_OF_STATES
from health_assets.report.agent_health_state import COLOURS as COLOURS_OF_STATUSES
from health_assets.report.layout import latest_hour, plain_table
from health_assets.terminal import printable
from health_assets.verdict import urgency_sql, verdict
from health_assets.warehouse.store import Session
from health_assets.wording import counted, share

AGENTS_SHOWN = 8

_FROM = f"""
FROM (SELECT * FROM agent_health WHERE hour = ?) AS score
LEFT JOIN (SELECT * FROM agent_health_state WHERE hour = ?) AS document ON document.agent_id = score.agent_id
LEFT JOIN (SELECT * FROM error_budget WHERE hour = ?) AS budget ON budget.agent_id = score.agent_id
WHERE {DIFFER_SQL}
"""


def print_differences(console: Console, session: Session, hours: HourRange) -> None:
    """The agents of the last of these hours on which score, document and budget differ; nothing where none do."""
    latest = latest_hour(session, "agent_health", hours)
    if latest is None:
        return
    [(count,)] = session.query(f"SELECT count(*) {_FROM}", [latest] * 3)
    if not count:
        return
    console.print()
    console.print(Text(f"Systems differ on {counted(count, 'agent')}:", style="bold"))
    console.print(_table(_agents(session, latest), count))


def _agents(session: Session, hour: datetime) -> list[dict[str, Any]]:
    names = {name: f"{table}.{name}" for table, columns in COLUMNS.items() for name in columns}
    order = f"{urgency_sql('score')}, score.health_score, score.agent_id"
    sql = f"SELECT {', '.join(names.values())} {_FROM} ORDER BY {order} LIMIT {AGENTS_SHOWN}"
    return [dict(zip(names, values, strict=True)) for values in session.query(sql, [hour] * 3)]


def _table(agents: list[dict[str, Any]], count: int) -> Table:
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=24)
    table.add_column("score", no_wrap=True)
    table.add_column("document", no_wrap=True)
    table.add_column("budget", no_wrap=True)
    table.add_column("why")
    for agent in agents:
        word = verdict(agent["state"], is_provisional=agent["is_provisional"])
        score = f"{agent['health_score']:.1f} {word}"
        status = agent["status"]
        table.add_row(
            Text(printable(agent["agent_id"])), Text(score, style=COLOURS_OF_STATES[agent["state"]]),
            Text(status or "–", style=COLOURS_OF_STATUSES.get(status, "")), _budget(agent), Text(why(agent)),
        )  # fmt: skip
    if count > len(agents):
        table.caption = f"the {len(agents)} of {count:,} agents to look at first"
    return table


def _budget(agent: dict[str, Any]) -> Text:
    if agent["budget_spent"] is None:
        return Text("–", style="dim")
    spent = f"{share(agent['budget_spent'])} spent"
    return Text(spent, style="red" if is_spent(agent) else "yellow" if is_burning(agent) else "")
