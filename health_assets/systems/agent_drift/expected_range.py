"""The success rates at which an agent is as before, hour by hour, for a chart of one agent."""

import numpy as np

from health_assets.systems.agent_drift.evidence import SHARE_DAYS, Bets, share_bets
from health_assets.systems.agent_drift.names import DAY_HOURS, LOOK_BACK_HOURS
from health_assets.systems.agent_drift.past import Integers, Past

RANGE_HOURS = DAY_HOURS
"""Hours whose success rate is compared with those before them."""
NEEDED_HOURS = RANGE_HOURS + SHARE_DAYS * DAY_HOURS
"""Hours, the last its own, that the range of an hour follows from."""


def expected_success(executions: Integers, failures: Integers, hours: int, margin: float) -> Bets:
    """The last `RANGE_HOURS` of each hour beside the four days before them, of one agent: one row an hour.

    Args:
        executions: of each hour of the range, and of `NEEDED_HOURS` - 1 before them.
        failures: likewise.
        hours: how many hours of the range there are.
        margin: largest difference that does not matter.
    """
    earlier = np.zeros(LOOK_BACK_HOURS - NEEDED_HOURS, np.int64)  # are not looked at
    runs, events = (np.concatenate([earlier, counts])[:, None] for counts in (executions, failures))
    with np.errstate(divide="ignore", invalid="ignore"):
        return share_bets(Past.of(runs, events, hours), RANGE_HOURS, margin).complement
