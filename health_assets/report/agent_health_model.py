"""The Agent Health Model's block: the fleet, and its agents from the worst on."""

from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.explanation import COLUMNS, costliest, explain
from health_assets.hours import HourRange
from health_assets.report.layout import latest_hour, plain_table
from health_assets.scoring.system_health import STATES
from health_assets.scoring.weights import (
    OPERATIONAL_POINTS,
    PERFORMANCE_POINTS,
    RELIABILITY_POINTS,
    STABILITY_POINTS,
)
from health_assets.terminal import printable
from health_assets.warehouse.store import Session
from health_assets.wording import counted

COLOURS = {"healthy": "green", "degraded": "yellow", "unhealthy": "red", "inactive": "dim"}
POINTS = {
    "rel": RELIABILITY_POINTS, "perf": PERFORMANCE_POINTS, "stab": STABILITY_POINTS, "oper": OPERATIONAL_POINTS,
}  # fmt: skip
LEAST_LOSS = 0.05
AGENTS_SHOWN = 15


def print_fleet(console: Console, session: Session, hours: HourRange) -> None:
    """The fleet in the last of these hours, and its agents from the worst on."""
    latest = latest_hour(session, "system_health", hours)
    if latest is None:
        return
    score, agents, *counts = session.query(
        f"SELECT health_score, agents, {', '.join(STATES)} FROM system_health WHERE hour = ?", [latest]
    )[0]
    title = Text(f"Fleet at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{score:.1f}" if score is not None else "no active agent", style=_colour_of(score))
    title.append(f"  {counted(agents, 'agent')}: ")
    for state, number in zip(STATES, counts, strict=True):
        title.append(f"{number:,} {state}  ", style=COLOURS[state])
    console.print()
    console.print(title)
    console.print(_agents_table(session, latest, agents))


def _agents_table(session: Session, hour: datetime, count: int) -> Table:
    """The worst agents, the points that each dimension cost them, and what cost most."""
    own = ("agent_id", "state", "health_score", "reliability_score", "operational_score")
    names = tuple(dict.fromkeys((*own, *COLUMNS)))
    order = "state = 'inactive', health_score, agent_id"
    sql = f"SELECT {', '.join(names)} FROM agent_health WHERE hour = ? ORDER BY {order} LIMIT ?"
    found = session.query(sql, [hour, AGENTS_SHOWN])
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=24)
    table.add_column("state", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    for dimension in POINTS:
        table.add_column(f"-{dimension}", justify="right", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    table.add_column("what cost most")
    for values in found:
        agent = dict(zip(names, values, strict=True))
        table.add_row(
            Text(printable(agent["agent_id"])), Text(agent["state"], style=COLOURS[agent["state"]]),
            _points(agent["health_score"]),
            *(_points(lost) if lost is None or lost > LEAST_LOSS else "·" for lost in _losses(agent)),
            f"{agent['n']:,}", Text(_reason(agent)),
        )  # fmt: skip
    table.caption = "points lost to reliability (of 40), performance, stability and operation (of 20 each)"
    if count > AGENTS_SHOWN:
        table.caption += f"\nthe worst {AGENTS_SHOWN} of {count:,} agents; all are in the table agent_health"
    return table


def _losses(agent: dict[str, Any]) -> list[float | None]:
    scores = [agent[f"{name}_score"] for name in ("reliability", "performance", "stability", "operational")]
    return [
        None if score is None else points * (1 - score) for points, score in zip(POINTS.values(), scores, strict=True)
    ]


def _points(points: float | None) -> str:
    return "–" if points is None else f"{points:.1f}"


def _reason(agent: dict[str, Any]) -> str:
    """The loss that is greatest, as what was seen against what was expected."""
    if agent["health_score"] is None:
        return "no execution in the window"
    loss = costliest(explain(agent))
    return loss.sentence if loss and loss.lost > LEAST_LOSS else ""


def _colour_of(score: float | None) -> str:
    if score is None:
        return "dim"
    return "green" if score >= 85 else "yellow" if score >= 65 else "red"
