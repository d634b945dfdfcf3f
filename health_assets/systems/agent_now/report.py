"""The block of agents now: those that are failing, suspect or recovering in the last hour, and with which error."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import ibis
from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import is_narrow, plain_table
from health_assets.core.formatting import counted
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.scoring.relations import first_line, lookup
from health_assets.systems.agent_now.last_hour import executions_of_last_hour
from health_assets.systems.agent_now.names import FAILING, RECOVERING, RECOVERY_HOURS, SUSPECT, VERDICTS
from health_assets.warehouse.session import Session

AGENTS_SHOWN = 10
COLOURS = {FAILING: "bold white on red", SUSPECT: "bold yellow", RECOVERING: "cyan"}
WORDS = {FAILING: "FAILING"}
SHOWN = (
    "hour", "agent_id", "verdict", "since", "good_hours", "executions_1h", "failures_1h", "executions_6h",
    "failures_6h",
)  # fmt: skip
LONGEST_ERROR = 160


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The number of agents by verdict in the last of these hours, and those to look at, failing ones first."""
    latest = session.latest_hour("agent_now", hours)
    if latest is None:
        return
    hour = HourRange.of(latest)
    agents = session.hours_of("agent_now", hour)
    counts = {row["verdict"]: row["agents"] for row in session.dicts(_counts(agents))}
    title = Text(f"Now at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    for verdict in VERDICTS:
        count = counts.get(verdict, 0)
        if count or verdict == FAILING:
            style = COLOURS.get(verdict, "") if count else "dim"
            title.append(f"{count:,} {WORDS.get(verdict, verdict)}", style=style).append("  ")
    console.print()
    console.print(title)
    listed = sum(counts.get(verdict, 0) for verdict in COLOURS)
    if listed:
        found = session.dicts(_with_errors(_first(agents), session, hour).order_by("place"))
        console.print(_table(found, listed, is_brief=is_narrow(console)))


def _counts(agents: ir.Table) -> ir.Table:
    return agents.group_by("verdict").aggregate(agents=agents.count())


def _first(agents: ir.Table) -> ir.Table:
    """The agents to look at first, each with its `place`."""
    listed = agents.filter(agents.verdict.isin(list(COLOURS)))
    urgency = listed.verdict.cases(*((verdict, place) for place, verdict in enumerate(VERDICTS)), else_=len(VERDICTS))
    order = [urgency, listed.p_chance, listed.agent_id]
    placed = listed.select(*SHOWN, place=ibis.row_number().over(order_by=order))
    return placed.filter(placed.place < AGENTS_SHOWN)


def _with_errors(agents: ir.Table, session: Session, hour: HourRange) -> ir.Table:
    """Add `error`, the first line of the last hour's most frequent one, and `error_runs`, how many failures have it."""
    runs = executions_of_last_hour(session, hour).semi_join(agents, "agent_id")
    failed = runs.filter(runs.status == "failure").mutate(error=first_line(runs.error))
    lines = failed.group_by("agent_id", "error").aggregate(error_runs=failed.count())
    order = [ibis.desc("error_runs"), lines.error.isnull(), lines.error]
    placed = lines.mutate(of_agent=ibis.row_number().over(group_by="agent_id", order_by=order))
    return lookup(agents, placed.filter(placed.of_agent == 0).drop("of_agent"), "agent_id")


def _table(found: list[dict[str, Any]], listed: int, *, is_brief: bool) -> Table:
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=24)
    table.add_column("now", no_wrap=True)
    table.add_column("since", no_wrap=True)
    for heading in ("failed 1 h",) if is_brief else ("failed 1 h", "failed 6 h"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("most frequent error")
    for agent in found:
        table.add_row(
            Text(printable(agent["agent_id"])), _verdict(agent, is_brief=is_brief),
            _since(agent["since"], agent["hour"]), *_failed(agent, is_brief=is_brief), Text(_error(agent)),
        )  # fmt: skip
    table.caption = "\n".join(_captions(found, listed, is_brief=is_brief))
    return table


def _captions(found: list[dict[str, Any]], listed: int, *, is_brief: bool) -> Iterator[str]:
    if is_brief and any(agent["verdict"] == RECOVERING for agent in found):
        yield f"recovering 1/{RECOVERY_HOURS}: good hours of the {RECOVERY_HOURS} that it takes"
    if listed > len(found):
        yield f"the {len(found)} of {counted(listed, 'agent')} to look at first; all are in the table agent_now"


def _verdict(agent: dict[str, Any], *, is_brief: bool) -> Text:
    verdict = agent["verdict"]
    text = Text(WORDS.get(verdict, verdict), style=COLOURS[verdict])
    if verdict == RECOVERING:
        hours = agent["good_hours"]
        shown = f" {hours}/{RECOVERY_HOURS}" if is_brief else f", {hours} of {RECOVERY_HOURS} good hours"
        text.append(shown, style="default")
    return text


def _failed(agent: dict[str, Any], *, is_brief: bool) -> list[str]:
    """The counts of failed executions in the last hour, and in the last 6 where there is room."""
    spans = ("1h",) if is_brief else ("1h", "6h")
    return [f"{agent[f'failures_{span}']:,} of {agent[f'executions_{span}']:,}" for span in spans]


def _error(agent: dict[str, Any]) -> str:
    """The most frequent error of the last hour, and of how many failures it is, unless of all."""
    if not agent["failures_1h"]:
        return "–"
    if agent["error"] is None:
        return "the logs state none"
    share = "" if agent["error_runs"] == agent["failures_1h"] else f"{agent['error_runs']:,} × "
    return share + printable(agent["error"], LONGEST_ERROR)


def _since(since: datetime, hour: datetime) -> str:
    return f"{since:%H:%M}" if since.date() == hour.date() else f"{since:%Y-%m-%d %H:%M}"
