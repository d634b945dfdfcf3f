"""Networks that are not of the public internet, by IANA's registries of special-purpose addresses.

A table of our own, since what Python's `is_global` says differs between its versions.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

SPECIAL_IPV4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared, of carriers
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local, metadata of clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # multicast relays
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
GLOBAL_IPV6 = IPv6Network("2000::/3")
"""All that was ever given out for hosts of the internet; whatever lies outside is not public."""
SPECIAL_IPV6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
            "2001:db8::/32",  # documentation
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
NAT64 = IPv6Network("64:ff9b::/96")


def is_special(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address lies in a network that is not of the public internet.

    An IPv6 address that stands for an IPv4 one (mapped, 6to4, NAT64) is what that one is.

    Args:
        address: the address.
    """
    if isinstance(address, IPv4Address):
        return any(address in network for network in SPECIAL_IPV4)
    inner = _inner(address)
    if inner is not None:
        return is_special(inner)
    return address not in GLOBAL_IPV6 or any(address in network for network in SPECIAL_IPV6)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for."""
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour
