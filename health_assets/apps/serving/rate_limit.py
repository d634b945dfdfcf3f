"""A limit of requests a second: a token bucket for each address, in bounded memory."""

import ipaddress
import math
from collections import OrderedDict

MOST_CLIENTS = 10_000
IPV6_NETWORK_BITS = 64


class RateLimit:
    """A token bucket per client: it holds a second's worth of requests, or what is in reserve, and refills steadily.

    A bucket is kept as the moment at which it will be full again. Of more than `MOST_CLIENTS`, the ones that were
    quiet for longest are forgotten; their buckets are the fullest.

    Args:
        requests_per_s: steady rate of one client.
        in_reserve: requests that a bucket holds at least, 1 or more.
    """

    def __init__(self, requests_per_s: float, in_reserve: int = 1) -> None:
        self._interval_s = 1 / requests_per_s
        self._capacity_s = max(in_reserve, requests_per_s) * self._interval_s
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, address: str, now_s: float) -> int:
        """Take one request out of the client's bucket; 0, or after how many whole seconds to try again."""
        client = client_of(address)
        full_at = max(now_s, self._full_at.pop(client, now_s)) + self._interval_s
        over_s = full_at - now_s - self._capacity_s
        is_allowed = over_s <= 1e-9
        self._full_at[client] = full_at if is_allowed else full_at - self._interval_s
        if len(self._full_at) > MOST_CLIENTS:
            self._full_at.popitem(last=False)
        return 0 if is_allowed else math.ceil(over_s)


def client_of(address: str) -> str:
    """The client behind an address: of IPv6, where one client has a whole network of addresses, that network."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], IPV6_NETWORK_BITS), strict=False))
    except ValueError:
        return address
