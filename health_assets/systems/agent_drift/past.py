"""Sums over any of an agent's last hours, as arrays: one row an hour that drift is found in, one column an agent."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from health_assets.systems.agent_drift.names import DAY_HOURS, LOOK_BACK_HOURS, PARTS

Integers = NDArray[np.int64]

BACK = tuple(day + part for day in range(0, LOOK_BACK_HOURS, DAY_HOURS) for part in PARTS[:-1])
"""Hours back of a single hour that `hourly_counts` tells apart."""
_PLACES = LOOK_BACK_HOURS - 1 - np.array(BACK[::-1])
_ROW_OF_BACK = {back: len(BACK) - number for number, back in enumerate((*BACK, LOOK_BACK_HOURS))}


@dataclass(frozen=True)
class Past:
    """The counts of some agents, added up from the first hour on.

    Args:
        totals: by name, one row more than there are hours and hours of the look-back, and one column an agent; of a
            single hour only the rows that are asked for.
        hours: how many hours drift is found in; they are the last.
    """

    totals: dict[str, Integers]
    hours: int

    @classmethod
    def of(cls, counts: dict[str, Integers], agents: Integers, places: Integers, hours: int) -> "Past":
        """The sums of counts, each of an agent and a place.

        Args:
            counts: by name.
            agents: the agents' numbers, from 0 on.
            places: the numbers of the hours, from the first of the look-back on; of a single hour those that
                `hourly_counts` tells apart.
            hours: how many hours drift is found in.
        """
        rows = places if hours > 1 else np.searchsorted(_PLACES, places)
        last = hours + LOOK_BACK_HOURS - 1 if hours > 1 else len(BACK)
        totals = {}
        for name, values in counts.items():
            totals[name] = np.zeros((last + 1, int(agents.max()) + 1 if len(agents) else 0), np.int64)
            totals[name][rows + 1, agents] = values
            np.cumsum(totals[name], axis=0, out=totals[name])
        return cls(totals, hours)

    def between(self, name: str, newer: int, older: int) -> Integers:
        """The sum over the hours that began less than `older` and at least `newer` hours before the end of each hour.

        Args:
            name: what is counted.
            newer: how many of the last hours are left out.
            older: how many of the last hours there are with these.
        """
        newest, oldest = (self._before(name, back) for back in (newer, older))
        return newest - oldest

    def _before(self, name: str, back: int) -> Integers:
        first = LOOK_BACK_HOURS - back if self.hours > 1 else _ROW_OF_BACK[back]
        return self.totals[name][first : first + self.hours]
