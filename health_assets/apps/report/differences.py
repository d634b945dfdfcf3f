"""The block of the agents on which systems differ: what each of them says, and why."""

from typing import Any

from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.apps.report.why_systems_differ import COLUMNS, do_differ, is_burning, is_spent, why
from health_assets.core.console import is_narrow, plain_table
from health_assets.core.formatting import counted, share
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.scoring.relations import lookup
from health_assets.scoring.verdict import at_stake
from health_assets.systems.agent_health_model.report import shown_verdict
from health_assets.systems.agent_health_model.severity_order import with_now, with_verdict
from health_assets.systems.agent_health_state.report import COLOURS as COLOURS_OF_STATUSES
from health_assets.warehouse.session import Session

AGENTS_SHOWN = 8
TABLES = {"score": "agent_health", "document": "agent_health_state", "budget": "error_budget"}


def print_differences(console: Console, session: Session, hours: HourRange) -> None:
    """The agents of the last of these hours on which score, document and budget differ; nothing where none do."""
    latest = session.latest_hour("agent_health", hours)
    if latest is None:
        return
    agents = differing_agents(session, HourRange.of(latest))
    count = session.count(agents)
    if not count:
        return
    console.print()
    console.print(Text(f"Systems differ on {counted(count, 'agent')}:", style="bold"))
    console.print(_table(session.dicts(_first(agents)), count, is_brief=is_narrow(console)))


def differing_agents(session: Session, hour: HourRange) -> ir.Table:
    """The agents on whom systems differ, with what the three tables say of them."""
    of_hour = {name: session.hours_of(table, hour) for name, table in TABLES.items()}
    agents = of_hour["score"].select("hour", *COLUMNS["score"])
    for name in ("document", "budget"):
        agents = lookup(agents, of_hour[name].select("agent_id", *COLUMNS[name]), "agent_id")
    return with_now(agents.filter(do_differ(agents)), session, hour)


def _first(agents: ir.Table) -> ir.Table:
    """The agents that a person looks at first, in that order."""
    return with_verdict(agents).order_by("urgency", "health_score", "agent_id").limit(AGENTS_SHOWN)


def _table(agents: list[dict[str, Any]], count: int, *, is_brief: bool) -> Table:
    """An agent a row, with its verdicts in columns, or where it is brief above the clause."""
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=24)
    for heading in () if is_brief else ("score", "document", "budget"):
        table.add_column(heading, no_wrap=True)
    table.add_column("score, document, budget, and why" if is_brief else "why")
    for agent in agents:
        stake = f"({at_stake(agent)} tested) " if at_stake(agent) else ""
        score = shown_verdict(agent, f"{agent['health_score']:.1f} {stake}")
        verdicts = [score, _document(agent), _budget(agent)]
        reason = Text(why(agent))
        row = [Text("\n").join([Text(", ").join(verdicts), reason])] if is_brief else [*verdicts, reason]
        table.add_row(Text(printable(agent["agent_id"])), *row)
    if count > len(agents):
        table.caption = f"the {len(agents)} of {count:,} agents to look at first"
    return table


def _document(agent: dict[str, Any]) -> Text:
    status = agent["status"]
    return Text("–", style="dim") if status is None else Text(status, style=COLOURS_OF_STATUSES[status])


def _budget(agent: dict[str, Any]) -> Text:
    if agent["budget_spent"] is None:
        return Text("–", style="dim")
    spent = f"{share(agent['budget_spent'])} spent"
    return Text(spent, style="red" if is_spent(agent) else "yellow" if is_burning(agent) else "")
