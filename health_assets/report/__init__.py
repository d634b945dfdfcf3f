"""What the commands show: one module for the run, and one for each scoring system's block."""

from rich.console import Console

from health_assets.hours import HourRange
from health_assets.report.agent_health_model import print_fleet
from health_assets.report.agent_health_state import print_states
from health_assets.report.agent_usage import print_usage
from health_assets.report.error_budget import print_budgets
from health_assets.report.model_health import print_models
from health_assets.report.reliability import print_reliability
from health_assets.report.session_scores import print_sessions
from health_assets.report.survey import print_survey
from health_assets.report.tool_health import print_tools
from health_assets.warehouse.store import Session

BLOCKS = (
    print_fleet, print_states, print_models, print_tools, print_sessions, print_reliability, print_budgets, print_usage,
    print_survey,
)  # fmt: skip


def print_health(console: Console, session: Session, hours: HourRange) -> None:
    """One block for each scoring system that has rows in these hours."""
    for print_block in BLOCKS:
        print_block(console, session, hours)
