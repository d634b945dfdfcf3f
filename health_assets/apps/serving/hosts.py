"""Names of this host that are answered. A stranger's page must not make a browser ask the endpoint as its own.

That is DNS rebinding: the stranger's name leads to an address of the victim's network, and the browser sends that name
as `Host`. So a request that names another host than the ones known here is refused before anything is done for it.
"""

import ipaddress
import re

from health_assets.apps.serving.answers import Answer, Headers, problem

LOOPBACK_NAMES = frozenset({b"localhost", b"127.0.0.1", b"::1"})
ANY = "*"
WILDCARDS = {"", "0.0.0.0", "::"}
"""To be listened on; nobody's name."""
UNKNOWN_HOST = "this host name is not answered here; the operator lists names in HEALTH_ALLOWED_HOSTS"
NO_HOST = "the request must name one host"
MOST_HOST_BYTES = 300
_HOST = re.compile(rb"(?:\[(?P<v6>[^\]]*)\]|(?P<name>[^\[\]:]*?)\.*)(?::[0-9]*)?")


def is_loopback(address: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def named(allowed_hosts: str) -> frozenset[str]:
    """The names that the setting lists."""
    return frozenset(name.strip().lower().strip("[]") for name in allowed_hosts.split(",")) - {""}


class AllowedHosts:
    """Names of this host: those of the loopback, the one that it listens on, and those that the operator lists.

    The address that a connection came to is allowed, too: no page can give itself the name of an address.

    Args:
        host: the name or address that is listened on.
        allowed_hosts: the operator's names, with commas between; `*` allows any.
    """

    def __init__(self, host: str, allowed_hosts: str) -> None:
        listed = named(allowed_hosts)
        self._is_listed = bool(listed)
        self._listed = frozenset(name.encode() for name in listed - {ANY})
        self._allows_any = ANY in listed
        self._names = LOOPBACK_NAMES | {name.encode() for name in (listed - {ANY}) | ({host.lower()} - WILDCARDS)}

    def refusal(self, headers: Headers, own_address: str, http_version: str) -> Answer | None:
        """The reason why a request is not for this host; None if it is.

        Args:
            headers: headers of the request.
            own_address: the address that the connection came to.
            http_version: an HTTP/1.0 request need not name a host, unless the operator says which names are answered.
        """
        hosts = [value for name, value in headers if name == b"host"]
        if not hosts and http_version == "1.0" and (self._allows_any or not self._is_listed):
            return None
        if len(hosts) != 1 or not hosts[0] or len(hosts[0]) > MOST_HOST_BYTES:
            return problem(400, NO_HOST, [(b"connection", b"close")])
        if self._allows_any:
            return None
        name = _without_port(hosts[0].lower())
        if name in self._names or name == own_address.encode():
            return None
        return problem(421, UNKNOWN_HOST, [(b"connection", b"close")])

    def is_same_origin(self, headers: Headers, scheme: str) -> bool:
        """Whether a page of this very server sends these headers, as browsers say with every form.

        The same is the same name and port, since another port of this machine may be somebody else's. A proxy may pass
        requests on under another name than the browser knows; that one is told by the operator, and has no port.

        Args:
            headers: headers of the request.
            scheme: `https` where TLS is spoken here.
        """
        origins = [value.lower() for name, value in headers if name == b"origin"]
        if len(origins) != 1 or any(
            name == b"sec-fetch-site" and value.lower() != b"same-origin" for name, value in headers
        ):
            return False
        of_origin, _, authority = origins[0].partition(b"://")
        if of_origin not in (b"http", b"https") or not authority or (scheme == "https" and of_origin != b"https"):
            return False
        return authority in [value.lower() for name, value in headers if name == b"host"] or authority in self._listed


def _without_port(host: bytes) -> bytes | None:
    """The name without port, brackets of IPv6 and the dot at its end; None where it is none of these."""
    found = _HOST.fullmatch(host)
    return (found["v6"] or found["name"]) if found else None
