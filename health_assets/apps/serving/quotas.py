"""Quotas of one client, so that it can starve nobody but itself.

What belongs here: counting by client, in bounded memory. What does not: the number of requests (`rate_limit`).
"""

import math
from collections import Counter

from health_assets.apps.serving.rate_limit import RateLimit, client_of

MOST_SESSIONS_AT_ONCE = 2
"""Of one client; the others wait in turn for the one reader, and no queue is filled by one."""
SESSIONS_IN_RESERVE = 20
"""How many sessions a client that was quiet may have looked up at once."""


class ConnectionQuota:
    """Counts open connections by client.

    Args:
        most: connections that one client may have.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def take(self, address: str) -> bool:
        """Count one more; False, and it is not counted, where the client has as many as it may."""
        client = client_of(address)
        if self._open[client] >= self._most:
            return False
        self._open[client] += 1
        return True

    def give_back(self, address: str) -> None:
        """Count one less of those that were counted."""
        client = client_of(address)
        self._open[client] -= 1
        if self._open[client] <= 0:
            del self._open[client]


class WorkQuota:
    """A quota of work that costs more than memory: few jobs of a client at once, and so many a second.

    Args:
        per_s: steady rate of one client, which may have some more in reserve.
    """

    def __init__(self, per_s: float) -> None:
        self._limit = RateLimit(per_s, in_reserve=SESSIONS_IN_RESERVE)
        self._under_way: Counter[str] = Counter()

    def take(self, client: str, now_s: float) -> int:
        """Begin a piece of work; 0, or after how many whole seconds to try again, where it is not begun."""
        if self._under_way[client] >= MOST_SESSIONS_AT_ONCE:
            return 1
        if wait_s := self._limit.wait_s(client, now_s):
            return math.ceil(wait_s)
        self._under_way[client] += 1
        return 0

    def give_back(self, client: str) -> None:
        """End a piece of work that was begun."""
        self._under_way[client] -= 1
        if self._under_way[client] <= 0:
            del self._under_way[client]
