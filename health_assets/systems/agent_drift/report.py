"""The block of drift: agents that became worse than their own past."""

import ibis
from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import is_narrow, plain_table
from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.terminal import printable
from health_assets.systems.agent_drift.names import MEASURES
from health_assets.systems.agent_drift.texts import cause_text, change_text, name_text
from health_assets.warehouse.session import Session

DRIFTS_SHOWN = 6


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """What drifts in the last of these hours; nothing where nothing does."""
    drifting = drifting_in(session, HourRange.of(hours.end - HOUR))
    agents = session.count(drifting.select("agent_id").distinct())
    if not agents:
        return
    console.print()
    console.print(Text(f"Unlike their own past: {counted(agents, 'agent')}", style="bold"))
    rows = session.dicts(drifting.limit(DRIFTS_SHOWN))
    console.print(drifts_table(rows, is_brief=is_narrow(console)))
    count = session.count(drifting)
    if count > DRIFTS_SHOWN:
        console.print(f"the {DRIFTS_SHOWN} of {count:,} drifts with most evidence", highlight=False)


def drifting_in(session: Session, hour: HourRange) -> ir.Table:
    """The rows of an hour that drift, those with most evidence first."""
    rows = session.hours_of("drift", hour)
    measure = rows.measure.cases(*((name, place) for place, name in enumerate(MEASURES)), else_=len(MEASURES))
    return rows.filter(rows.is_drifting).order_by(ibis.desc("evidence"), "agent_id", measure)


def drifts_table(rows: list[dict], *, is_brief: bool = False) -> Table:
    """A row for each drift."""
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=14 if is_brief else 24)
    table.add_column("drift", no_wrap=True)
    table.add_column("before → now", no_wrap=True)
    table.add_column("since (UTC)", no_wrap=True)
    if not is_brief:
        table.add_column("most in", no_wrap=True, max_width=48)
    for row in rows:
        cells: list[str | Text] = [
            Text(printable(row["agent_id"])), name_text(row), Text(change_text(row), style="red"),
            f"{row['since']:%m-%d %H:%M}",
        ]  # fmt: skip
        table.add_row(*cells, *([] if is_brief else [Text(printable(cause_text(row)))]))
    return table
