"""Lists of rows cut to the agents of some teams, for tokens that are limited to these.

The lists of all are made by the reader. Those of some teams are cut from them when they are first asked for, some
milliseconds for a fleet of 180,000, and kept as long as their snapshot is; `NO_TEAM` is in none.
"""

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

NO_TEAM = -1
MOST_KEPT = 512


class TeamLists:
    """Cuts lists of one kind of rows.

    Args:
        columns: of every row the place of its team in `teams`, or `NO_TEAM`; batch by batch.
        teams: names of the teams.
    """

    def __init__(self, columns: Sequence[pa.Array], teams: Sequence[str]) -> None:
        self._columns = columns
        self._teams = tuple(teams)
        self._kept: OrderedDict[tuple[str, frozenset[str]], memoryview] = OrderedDict()

    def has(self, row: int, teams: frozenset[str]) -> bool:
        """Whether a row is of one of the teams."""
        return bool(self._is_wanted(teams)[self._of_rows[row]])

    def among(self, name: str, rows: memoryview, teams: frozenset[str]) -> memoryview:
        """The rows of a list that belong to one of the teams, in the list's order.

        Args:
            name: of the list; the same name is always the same list.
            rows: places of its rows, 32 bits each.
            teams: the teams.
        """
        key = name, teams
        if (kept := self._kept.get(key)) is None:
            everyone = np.frombuffer(rows, np.int32)
            kept = self._kept[key] = memoryview(everyone[self._is_wanted(teams)[self._of_rows[everyone]]])
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return kept

    def _is_wanted(self, teams: frozenset[str]) -> np.ndarray:
        """An array that says for each team whether it is wanted; the last place is `NO_TEAM`."""
        return np.array([*(team in teams for team in self._teams), False])

    @cached_property
    def _of_rows(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int32), *(column.to_numpy() for column in self._columns)])
