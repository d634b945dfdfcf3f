"""Addresses that may be asked, and a transport that asks no other.

What belongs here: from a host's name to the address of a connection. What does not: what is asked and what the answer
is worth (`fetching`).

Whoever writes a registry or answers with a redirect chooses a name, and whoever owns the name chooses what it leads to,
anew with every look-up. So a name is looked up once in a fetch, addresses that are not public are left out, and every
connection of the fetch goes to the address that was found. TLS certificates and the `Host` header are still by name.
"""

import asyncio
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx

from health_assets.consumer.networks import is_special

PINS = "health_assets.pins"
"""Extension of a request: a mapping of host to address that the requests of one fetch share."""
MOST_ADDRESSES = 4
CONNECT_S = 2.5
"""How long a host's address may take to connect where there is another one to try."""


class PrivateAddressError(Exception):
    """A host that leads to no public address, and may not be asked."""


def is_public(address: str) -> bool:
    """Whether an address belongs to the public internet.

    Addresses of special purpose (`networks`) do not, nor do IPv6 addresses that stand for such IPv4 ones.

    Args:
        address: an IP address, with a zone or without.
    """
    return not is_special(ip_address(address.partition("%")[0]))


async def look_up(host: str, *, allow_private: bool) -> tuple[str, ...]:
    """The addresses of a host that may be asked, the system's first choice first.

    Args:
        host: name or address.
        allow_private: whether addresses that are not public may be asked too.

    Raises:
        PrivateAddressError: it has none but private ones.
        OSError: there is no such host.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
    allowed = [address for address in addresses if allow_private or is_public(address)]
    if not allowed:
        raise PrivateAddressError(addresses[0])
    return tuple(allowed[:MOST_ADDRESSES])


class PinningTransport(httpx.AsyncBaseTransport):
    """Sends each request to an address of its host that may be asked, or to the proxy that the environment names.

    A proxy looks names up by itself, so behind one only addresses that are written out can be refused here.

    Args:
        limits: of connections.
        allow_private: whether addresses that are not public may be asked too.
    """

    def __init__(self, limits: httpx.Limits, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        context = httpx.create_ssl_context()
        self._direct = httpx.AsyncHTTPTransport(verify=context, limits=limits)
        self._proxies = {
            scheme: httpx.AsyncHTTPTransport(
                verify=context, limits=limits, proxy=proxy if "://" in proxy else f"http://{proxy}"
            )
            for scheme, proxy in getproxies().items()
            if scheme in ("http", "https", "all") and proxy
        }

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            PrivateAddressError: its host may not be asked.
            httpx.ConnectError: there is no such host, or it cannot be reached.
        """
        host = request.url.raw_host.decode("ascii")
        proxy = self._proxies.get(request.url.scheme) or self._proxies.get("all")
        if proxy is not None and not proxy_bypass(host):
            written_out = _written_out(host)
            if written_out and not (self._allow_private or is_public(written_out)):
                raise PrivateAddressError(written_out)
            return await proxy.handle_async_request(request)
        pins: dict[str, str] = request.extensions.get(PINS, {})
        if host in pins:
            return await self._send(request, host, pins[host], {})
        *others, last = await self._addresses(host)
        for address in others:
            try:
                response = await self._send(request, host, address, {"timeout": _shorter(request.extensions)})
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
            pins[host] = address
            return response
        pins[host] = last
        return await self._send(request, host, last, {})

    async def _addresses(self, host: str) -> tuple[str, ...]:
        try:
            return await look_up(host, allow_private=self._allow_private)
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error

    async def _send(
        self, request: httpx.Request, host: str, address: str, extensions: Mapping[str, Any]
    ) -> httpx.Response:
        """Send a request, which has its `Host` header already, to an address."""
        pinned = httpx.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host, **extensions},
        )
        return await self._direct.handle_async_request(pinned)

    async def aclose(self) -> None:
        """Close every connection."""
        for transport in (self._direct, *self._proxies.values()):
            await transport.aclose()


def _written_out(host: str) -> str | None:
    """The address that a host is by itself, without a look-up; None for a name."""
    if host == "localhost" or host.endswith(".localhost"):
        return "127.0.0.1"
    try:
        return socket.inet_ntoa(socket.inet_aton(host))  # takes 127.1 and 2130706433, as look-ups do
    except OSError:
        try:
            return str(ip_address(host))
        except ValueError:
            return None


def _shorter(extensions: Mapping[str, Any]) -> dict[str, Any]:
    return {**extensions.get("timeout", {}), "connect": CONNECT_S}
