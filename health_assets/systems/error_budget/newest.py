"""A query for the newest error budget of an agent."""

from health_assets.core.hours import HourRange
from health_assets.warehouse.session import Session


def budget_spent(session: Session, hours: HourRange, agent_id: str) -> float | None:
    """The share of its error budget that an agent had spent by the last of these hours that knows it; None for none."""
    budgets = session.hours_of("error_budget", hours)
    own = budgets.filter(budgets.agent_id == agent_id)
    found = session.dicts(own.filter(own.hour == own.hour.max()).select("budget_spent"))
    return found[0]["budget_spent"] if found else None
