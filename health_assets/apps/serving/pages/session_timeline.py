"""Places of runs and calls on a line of time, from 0 to `WIDTH`.

What belongs here: turning moments to places. What does not: what is drawn there (templates).

A session may last for days and run for seconds. Between runs nothing happens, so a long gap is folded to a short one;
runs keep their widths to scale.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

WIDTH = 1000.0
LEAST_WIDTH = 3.0
"""Of what lasts no time to speak of, so that it is seen."""
GAPS_SHARE = 0.25
"""Most of the line that all folded gaps take."""


@dataclass(frozen=True)
class Fold:
    """A gap that is drawn shorter than it is.

    Args:
        x: place of its middle.
        seconds: how long it lasts.
    """

    x: float
    seconds: float


class Timeline:
    """A line of time.

    Args:
        spans: start and end of each run; at least one.
    """

    def __init__(self, spans: Iterable[tuple[datetime, datetime]]) -> None:
        busy = _merged(spans)
        self.start, self.end = busy[0][0], busy[-1][1]
        gaps = [(after[0] - before[1]).total_seconds() for before, after in pairwise(busy)]
        lasted = sum((end - start).total_seconds() for start, end in busy)
        most = GAPS_SHARE / (1 - GAPS_SHARE) * (lasted or 1.0) / max(1, len(gaps))
        whole = (lasted + sum(min(gap, most) for gap in gaps)) or 1.0
        self._moments: list[datetime] = []
        self._places: list[float] = []
        self.folds: list[Fold] = []
        x = 0.0
        for (start, end), gap in zip(busy, [*gaps, 0.0], strict=True):
            for moment, step in ((start, (end - start).total_seconds()), (end, min(gap, most))):
                self._moments.append(moment)
                self._places.append(x)
                width = WIDTH * step / whole
                if moment is end and gap > most:
                    self.folds.append(Fold(round(x + width / 2, 2), gap))
                x += width

    def place(self, moment: datetime) -> float:
        """The place of a moment; what is before or after all runs is at an end of the line."""
        if moment <= self._moments[0]:
            return self._places[0]
        if moment >= self._moments[-1]:
            return self._places[-1]
        at = bisect_right(self._moments, moment) - 1
        before, after = self._moments[at], self._moments[at + 1]
        share = (moment - before) / (after - before)
        return self._places[at] + share * (self._places[at + 1] - self._places[at])

    def span(self, start: datetime, end: datetime) -> tuple[float, float]:
        """The place and the width of what lasts from one moment to another."""
        x = self.place(start)
        width = max(LEAST_WIDTH, self.place(end) - x)
        return round(min(x, WIDTH - width), 2), round(width, 2)


def _merged(spans: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """The times in which anything ran, in order, without overlaps."""
    merged: list[tuple[datetime, datetime]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged
