"""Requests counted by route and status, with their latencies, for `/metrics`.

The event loop alone counts, so that nothing is locked, and a request costs less than a microsecond for it. Routes are
templates, of which there are few: a path would be a series for each agent, and for whatever strangers make up.
"""

from bisect import bisect_left
from collections import Counter

BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 20.0)
"""Upper bounds: a document takes some 0.1 ms, a session up to 20 s."""
REFUSED = "(refused)"
"""Stands for the route of what was refused before there was one."""
NO_ROUTE = "(none)"
"""Stands for the route of a path at which there is nothing."""


class Latencies:
    """The latencies of one route: how many lie between each two bounds and above the last, and their sum."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0


class RequestCounts:
    """Counts answered requests since the server began."""

    def __init__(self) -> None:
        self.statuses: Counter[tuple[str, int]] = Counter()
        """Requests by route and status."""
        self.latencies: dict[str, Latencies] = {}
        """Latencies by route."""

    def note(self, route: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            route: template of its path.
            status: of the answer; 0 where none was sent.
            seconds: from the end of its head to the end of the answer.
        """
        self.statuses[route, status] += 1
        latencies = self.latencies.get(route)
        if latencies is None:
            latencies = self.latencies[route] = Latencies()
        latencies.counts[bisect_left(BUCKETS_S, seconds)] += 1
        latencies.sum_s += seconds
