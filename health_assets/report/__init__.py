"""What the commands show: one module for the run, and one for each scoring system's block."""

from datetime import datetime

from rich.console import Console
from rich.text import Text

from health_assets.errors import HealthAssetsError, NoWarehouseError
from health_assets.hours import HOUR, HourRange, parse_hour
from health_assets.report.agent_health_model import print_fleet
from health_assets.report.agent_health_state import print_states
from health_assets.report.agent_usage import print_usage
from health_assets.report.differences import print_differences
from health_assets.report.error_budget import print_budgets
from health_assets.report.model_health import print_models
from health_assets.report.reliability import print_reliability
from health_assets.report.session_scores import print_sessions
from health_assets.report.survey import print_survey
from health_assets.report.tool_health import print_tools
from health_assets.settings import Settings
from health_assets.terminal import printable
from health_assets.trace_reading import without_agents
from health_assets.warehouse.store import Session

BLOCKS = (
    print_fleet, print_states, print_differences, print_models, print_tools, print_sessions, print_reliability,
    print_budgets, print_usage, print_survey,
)  # fmt: skip


def report_hours(session: Session, settings: Settings, asked: str | None, now: datetime) -> HourRange:
    """The hours that a report shows: the window that ends with an hour, by default the newest.

    Args:
        session: a session.
        settings: how long the window is.
        asked: the hour, as it was named.
        now: the time; hours that are not over are not shown unless they are named.

    Raises:
        HealthAssetsError: the name is no hour, or the hour has no scores.
    """
    sql = "SELECT max(hour) FROM materialized_hours WHERE asset = 'agent_health' AND hour <= ?"
    [(newest,)] = session.query(sql, [now - HOUR])
    if newest is None:
        raise NoWarehouseError("the warehouse holds no scores yet; materialize some hours first")
    hour = parse_hour(asked) if asked else newest
    if hour not in session.materialized_hours("agent_health", HourRange.of(hour)):
        raise HealthAssetsError(
            f"the hour {hour:%Y-%m-%dT%H} has no scores; the newest that has is {newest:%Y-%m-%dT%H}, and "
            f"health-assets materialize --from {hour:%Y-%m-%dT%H} --to {hour + HOUR:%Y-%m-%dT%H} makes them"
        )
    return HourRange.of(hour).extended_back(settings.window_hours - 1)


def print_report(console: Console, session: Session, hours: HourRange) -> None:
    """All blocks, and before them what else a run says of hours in which only models are known."""
    if hint := without_agents(session, hours):
        console.print(Text(printable(hint), style="yellow"), soft_wrap=True)
    print_health(console, session, hours)


def print_health(console: Console, session: Session, hours: HourRange) -> None:
    """One block for each scoring system that has rows in these hours."""
    for print_block in BLOCKS:
        print_block(console, session, hours)
