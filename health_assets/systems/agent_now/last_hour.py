"""The executions that the verdict on an agent's last hour is about.

What belongs here: which executions these are. What does not: counting them (`agent_now`, `scoring.trailing_counts`).
"""

from ibis import ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.relations import time_literal
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session


def executions_of_last_hour(session: Session, hour: HourRange) -> ir.Table:
    """The executions of an hour; while it runs, of the 60 minutes up to when it is known, with it as their `hour`.

    Args:
        session: a session.
        hour: one hour.
    """
    until = PartitionStates(session).as_of("agent_now", hour).get(hour.start, hour.end)
    rows = session.hours_of("executions", hour.extended_back(1))
    rows = rows.filter(rows.ended_at >= time_literal(until - HOUR), rows.ended_at < time_literal(until))
    return rows.mutate(hour=time_literal(hour.start))
