"""The executions that the verdict on an agent's last hour is about.

What belongs here: which executions these are. What does not: counting them (`agent_now`, `scoring.trailing_counts`).
"""

from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.trailing_counts import Trailing
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session


def executions_of_last_hour(session: Session, hour: HourRange) -> ir.Table:
    """The executions of an hour; while it runs, of the 60 minutes up to when it is known, with it as their `hour`.

    Args:
        session: a session.
        hour: one hour.
    """
    until = PartitionStates(session).as_of("agent_now", hour).get(hour.start, hour.end)
    executions = session.hours_of("executions", hour.extended_back(1))
    return Trailing(executions=executions, hour=hour.start, until=until).of("1h")
