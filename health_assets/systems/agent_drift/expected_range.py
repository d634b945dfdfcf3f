"""The success rates at which an agent is as before, hour by hour, for a chart of one agent."""

import numpy as np
from numpy.typing import NDArray

from health_assets.systems.agent_drift.evidence import SHARE_DAYS, Bets, success_rate_bets
from health_assets.systems.agent_drift.names import DAY_HOURS, LOOK_BACK_HOURS, SPREAD_UNIT
from health_assets.systems.agent_drift.past import Past

RANGE_HOURS = DAY_HOURS
"""Hours whose success rate is compared with those before them."""
NEEDED_HOURS = RANGE_HOURS + SHARE_DAYS * DAY_HOURS
"""Hours, the last its own, that the range of an hour follows from."""
FEWEST_HOURS = 2
"""`Past` keeps other places of a single hour."""


def expected_success(executions: NDArray[np.int64], failures: NDArray[np.int64], hours: int, margin: float) -> Bets:
    """The last `RANGE_HOURS` of each hour beside the four days before them, of one agent: one row an hour.

    Args:
        executions: of each hour of the range, and of `NEEDED_HOURS` - 1 before them.
        failures: likewise.
        hours: how many hours of the range there are, at least `FEWEST_HOURS`.
        margin: largest difference that does not matter.
    """
    ran = np.flatnonzero(executions)
    own = {"executions": executions[ran], "failures": failures[ran], "cells": np.ones(len(ran), np.int64)}
    spread = own["failures"].astype(float) * own["failures"] / own["executions"] / SPREAD_UNIT
    counts = {**own, "spread": np.round(spread).astype(np.int64)}
    places = ran + LOOK_BACK_HOURS - NEEDED_HOURS
    with np.errstate(divide="ignore", invalid="ignore"):
        return success_rate_bets(Past.of(counts, np.zeros(len(ran), np.int64), places, hours), RANGE_HOURS, margin)
