"""The Agent Health State's block: how many agents have which status, and those that are not healthy."""

from datetime import datetime, timedelta
from typing import Any

from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import is_narrow, plain_table
from health_assets.core.formatting import duration, share
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.systems.agent_health_state.agent_health_state import STATUSES
from health_assets.warehouse.session import Session

COLOURS = {"healthy": "green", "degraded": "yellow", "unhealthy": "red", "unknown": "dim"}
TREND_COLOURS = {"improving": "green", "declining": "red", "stable": ""}
AILING = ("unhealthy", "degraded")
AGENTS_SHOWN = 10
SHOWN = (
    "agent_id", "status", "response_ratio", "calibration_trend", "latency_p50_ms", "latency_p99_ms", "uptime_seconds",
    "days_since_model_change", "last_healthy_at", "window_end",
)  # fmt: skip


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The statuses in the last of these hours, and the agents that are degraded or unhealthy, worst first."""
    latest = session.latest_hour("agent_health_state", hours)
    if latest is None:
        return
    documents = session.hours_of("agent_health_state", HourRange.of(latest))
    counts = {found["status"]: found["agents"] for found in session.dicts(_agents_by_status(documents))}
    title = Text(f"Health documents at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    for status in STATUSES:
        title.append(f"{counts.get(status, 0):,} {status}  ", style=COLOURS[status])
    console.print()
    console.print(title)
    ailing = sum(counts.get(status, 0) for status in AILING)
    if ailing:
        console.print(_table(session.dicts(_worst_agents(documents)), ailing, is_brief=is_narrow(console)))


def _agents_by_status(documents: ir.Table) -> ir.Table:
    return documents.group_by("status").aggregate(agents=documents.count())


def _worst_agents(documents: ir.Table) -> ir.Table:
    """The agents that are unhealthy, then those that are degraded, each from the lowest share of responses on."""
    ailing = documents.filter(documents.status.isin(AILING))
    return ailing.order_by(ailing.status == "degraded", "response_ratio", "agent_id").select(*SHOWN).limit(AGENTS_SHOWN)


def _table(agents: list[dict[str, Any]], ailing: int, *, is_brief: bool) -> Table:
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=24)
    table.add_column("status", no_wrap=True)
    table.add_column("responded", justify="right", no_wrap=True)
    table.add_column("trend", no_wrap=True)
    for heading in ("p50", "p99", *(() if is_brief else ("up for", "model since")), "healthy until"):
        table.add_column(heading, justify="right", no_wrap=True)
    for agent in agents:
        trend = agent["calibration_trend"]
        table.add_row(
            Text(printable(agent["agent_id"])), Text(agent["status"], style=COLOURS[agent["status"]]),
            share(agent["response_ratio"]), Text(trend, style=TREND_COLOURS[trend]),
            *(duration(_seconds_of_ms(agent[name])) for name in ("latency_p50_ms", "latency_p99_ms")),
            *(() if is_brief else _since_changes(agent)), _ago(agent["last_healthy_at"], agent["window_end"]),
        )  # fmt: skip
    table.caption = "durations count to the end of the hour"
    if ailing > AGENTS_SHOWN:
        table.caption += f"\nthe worst {AGENTS_SHOWN} of {ailing:,} agents; all are in the table agent_health_state"
    return table


def _since_changes(agent: dict[str, Any]) -> tuple[str, str]:
    """The time that it is up, and the time that its model is the same."""
    return duration(agent["uptime_seconds"]), duration(_seconds_of_days(agent["days_since_model_change"]))


def _seconds_of_ms(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3


def _seconds_of_days(days: float | None) -> float | None:
    return None if days is None else days * 86_400


def _ago(moment: datetime | None, now: datetime) -> str:
    """The time from the agent's last healthy hour to the window's end; a dash for never."""
    return "–" if moment is None else f"{duration((now - moment) / timedelta(seconds=1))} ago"
