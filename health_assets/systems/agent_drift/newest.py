"""The drifts of some hours, each as it was last found."""

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.warehouse.session import Session


def drifts_of_period(session: Session, hours: HourRange) -> ir.Table:
    """The last row of each agent and measure that drifted in these hours: the latest first, then most evidence."""
    rows = session.hours_of("drift", hours)
    drifting = rows.filter(rows.is_drifting)
    placed = drifting.mutate(place=ibis.row_number().over(group_by=["agent_id", "measure"], order_by=ibis.desc("hour")))
    last = placed.filter(placed.place == 0).drop("place")
    return last.order_by(ibis.desc("hour"), ibis.desc("evidence"), "agent_id", "measure")
