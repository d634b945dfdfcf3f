"""Sums over any of an agent's last hours, as arrays: one row an hour that drift is found in, one column an agent."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from health_assets.systems.agent_drift.names import LOOK_BACK_HOURS, SPREAD_UNIT

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Past:
    """Counts of runs of some agents, added up from the first hour on.

    Args:
        totals: one row more than there are hours and hours of the look-back, and one column an agent: `runs`; `events`,
            those of them that count against the agent; `spread`, the sum of events^2 / runs of the hours in units of
            `SPREAD_UNIT`; `cells`, the hours with a run.
        hours: how many hours drift is found in; they are the last.
    """

    totals: dict[str, Integers]
    hours: int

    @classmethod
    def of(cls, runs: Integers, events: Integers, hours: int) -> "Past":
        """The sums of counts, of which each row is an hour and each column an agent.

        Args:
            runs: of each hour of the look-back and after it.
            events: likewise.
            hours: how many hours drift is found in.
        """
        squares = events.astype(float) * events / np.maximum(runs, 1) / SPREAD_UNIT
        counts = {"runs": runs, "events": events, "spread": np.rint(squares), "cells": runs > 0}
        return cls({name: _added_up(values) for name, values in counts.items()}, hours)

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
        first = LOOK_BACK_HOURS - back
        return self.totals[name][first : first + self.hours]


def _added_up(values: NDArray) -> Integers:
    totals = np.zeros((len(values) + 1, values.shape[1]), np.int64)
    for place, own in enumerate(values):  # numpy adds up columns far slower
        np.add(totals[place], own, out=totals[place + 1], casting="unsafe")
    return totals
