"""Fetching a health document from a server that nobody vouches for.

What belongs here: one GET with limits on time, size and redirects, and what its answer is worth. What does not: what
the document says (`document`) and what to make of it (`advice`).

The server may be slow, gone, broken or hostile. So the whole exchange has one time limit, from the name's look-up to
the last byte; the body is read raw and unpacked no further than the size limit; redirects stay with the same host and
never leave TLS; addresses that are not public are not asked unless that is allowed, and a name is looked up once
(`addresses`); no cookie or other credential is sent. Whatever happens becomes an `Answer`, not an exception.
"""

import asyncio
import contextlib
import json
import re
import socket
import threading
import time
import zlib
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Literal, TypeVar, get_args

import httpx

from health_assets import __version__
from health_assets.consumer.addresses import PINS, PinningTransport, PrivateAddressError
from health_assets.consumer.document import HealthDocument, ReadableDocument
from health_assets.consumer.faulty_documents import Reading, read_document
from health_assets.core.errors import HealthAssetsError
from health_assets.core.terminal import printable

PATH = "/.well-known/agent-health"
MEDIA_TYPE = "application/json"
TIMEOUT_S = 10.0
MOST_BYTES = 64 * 1024
MOST_REDIRECTS = 3
MOST_RETRY_AFTER_S = 24 * 3600
HEADERS = {
    "Accept": MEDIA_TYPE,
    "Accept-Encoding": "identity",
    "User-Agent": f"health-assets/{__version__} (agent-health consumer)",
}
SHARE_FOR_FAULTS = 0.25
"""Share of the time limit that the body of an error may take."""
REASONS = ("detail", "message", "error_description", "error", "title")
MOST_OF_REASON = 200
REDIRECTS = frozenset({301, 302, 303, 307, 308})
NOT_ALLOWED = "which is no public address and not asked; --allow-private or HEALTH_ALLOW_PRIVATE_ADDRESSES=on allows it"
DEFAULT_PORTS = {"http": 80, "https": 443}

Outcome = Literal["valid", "invalid", "http_error", "timeout", "unreachable", "refused", "private"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The outcome of asking for a health document.

    Args:
        url: address that was asked.
        asked_at: when, UTC.
        outcome: one of `OUTCOMES`. `valid`: a valid document. `invalid`: HTTP 200, but no valid document. `http_error`:
            another HTTP status. `timeout`: no whole answer within the time limit. `unreachable`: no connection, or it
            broke before the answer was whole. `refused`: we declined to follow a redirect to another host, out of TLS
            or in circles. `private`: its host has no public address, and others may not be asked.
        document: the document, when valid.
        readable: of any answer with a document whose status can be read, its valid members; also of one that is
            `invalid` or an `http_error`.
        http_status: HTTP status, None where none arrived.
        latency_ms: time to the whole answer, or to as much of it as was read; None where none arrived.
        error: the fault, in one sentence without a full stop; None when valid.
        problems: of an invalid document, what is wrong with each field.
        unknown_members: members that the draft does not know; no fault, since a consumer ignores them.
        retry_after_s: how long the server asks to be left alone, where it does.
        was_connected: whether a connection to its host was made; of no use to judge the agent, but its host.
    """

    url: str
    asked_at: datetime
    outcome: Outcome
    document: HealthDocument | None = None
    readable: ReadableDocument | None = None
    http_status: int | None = None
    latency_ms: float | None = None
    error: str | None = None
    problems: tuple[str, ...] = ()
    unknown_members: tuple[str, ...] = ()
    retry_after_s: int | None = None
    was_connected: bool = False

    @property
    def is_over_tls(self) -> bool:
        """Whether it was asked for over HTTPS, as the draft requires (section 4.1)."""
        return self.url.startswith("https://")


def health_url(url: str) -> str:
    """The address of an agent's health document, in its normal form.

    Args:
        url: that address, or the agent's base address, or any other well-known address of it, such as its A2A card.

    Raises:
        HealthAssetsError: the text is no address that can be asked over HTTP.
    """
    try:
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        detail = printable(f"{str(error)[:1].lower()}{str(error)[1:]}")
        raise HealthAssetsError(f"{_told(url)} is not a URL: {detail}") from error
    if not _is_web_address(parsed):
        raise HealthAssetsError(f"{_told(url)} is not a web address; write it like https://agent.example")
    if parsed.userinfo:
        raise HealthAssetsError(
            f"the address at {printable(parsed.host)!r} names a user; a health document is read without credentials"
        )
    # as it is encoded: an agent's id may be a URI, whose %2F is no slash of the path
    path = parsed.raw_path.partition(b"?")[0]
    base = path.partition(b"/.well-known/")[0].rstrip(b"/")
    query = b"?" + parsed.query if parsed.query else b""
    return str(parsed.copy_with(raw_path=base + PATH.encode() + query, fragment=None))


def _told(url: str) -> str:
    """A URL as an error may show it: without a password."""
    return repr(printable(re.sub(r"//[^/@]*@", "//…@", url)))


def fetch_health(
    url: str, *, timeout_s: float = TIMEOUT_S, max_bytes: int = MOST_BYTES, allow_private: bool = False
) -> Answer:
    """Ask an agent for its health document (source 3, appendix A, step 1).

    Works in a thread with a running event loop too, such as a notebook's, where it blocks that loop.

    Args:
        url: the agent's base address, or the address of the document itself.
        timeout_s: most time that everything together may take, in seconds.
        max_bytes: largest document taken, in bytes, packed and unpacked.
        allow_private: whether addresses that are not public, such as those of this machine, may be asked.

    Raises:
        HealthAssetsError: the URL or a limit is impossible. No answer of a server raises.
    """

    async def fetch() -> Answer:
        async with new_client(allow_private=allow_private) as client:
            return await fetch_health_async(client, url, timeout_s=timeout_s, max_bytes=max_bytes)

    return run_async(fetch())


async def fetch_health_async(
    client: httpx.AsyncClient, url: str, *, timeout_s: float = TIMEOUT_S, max_bytes: int = MOST_BYTES
) -> Answer:
    """Do as `fetch_health` does, with a client from `new_client` that many calls may share."""
    if not 0 < timeout_s < float("inf") or max_bytes < 1:
        raise HealthAssetsError(f"a time limit of {timeout_s:g} s or a size limit of {max_bytes} bytes cannot be kept")
    asked = Answer(url=health_url(url), asked_at=datetime.now(UTC), outcome="unreachable")
    start = time.perf_counter()
    progress = _Progress()
    try:
        async with asyncio.timeout(timeout_s):
            answer = await _exchange(client, asked, max_bytes, progress, timeout_s * SHARE_FOR_FAULTS)
    except (TimeoutError, httpx.TimeoutException):
        stage = "answer" if progress.http_status is None else "finish its answer"
        late = f"it did not {stage} within {timeout_s:g} s"
        return replace(
            asked, outcome="timeout", http_status=progress.http_status, error=late, was_connected=progress.is_connected
        )
    except PrivateAddressError as error:
        return replace(asked, outcome="private", error=f"its host leads to {error}, {NOT_ALLOWED}")
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:  # Unicode: a name beyond all rules
        fault = _transport_fault(error, progress)
        return replace(asked, http_status=progress.http_status, error=fault, was_connected=progress.is_connected)
    return replace(answer, was_connected=True, latency_ms=(time.perf_counter() - start) * 1000)


def new_client(most_connections: int = 1, *, allow_private: bool = False) -> httpx.AsyncClient:
    """A client that keeps nothing between requests: no cookies, no connections.

    Args:
        most_connections: most requests under way at a time.
        allow_private: whether addresses that are not public may be asked.
    """
    limits = httpx.Limits(max_connections=most_connections, max_keepalive_connections=0)
    return httpx.AsyncClient(
        transport=PinningTransport(limits, allow_private=allow_private),
        headers=HEADERS,
        follow_redirects=False,
        timeout=None,  # one limit over everything instead: see `fetch_health_async`
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, from code that is not asynchronous, whether or not an event loop runs around it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_run, work).result()


def _run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)


class _Loop(asyncio.SelectorEventLoop):
    """A loop that does not wait at its end for names that are still looked up, which nothing can interrupt."""

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        """Look a name up in a thread of its own, which holds up neither the end of the loop nor that of the process."""
        found: asyncio.Future[Any] = self.create_future()

        def tell(deliver: Callable[[Any], None], what: Any) -> None:
            if not found.done():  # nobody waits any more after the time limit
                deliver(what)

        def look_up() -> None:
            outcome: tuple[Callable[[Any], None], Any]
            try:
                outcome = (found.set_result, socket.getaddrinfo(host, port, family, type, proto, flags))
            except Exception as error:  # given to who asked
                outcome = (found.set_exception, error)
            with contextlib.suppress(RuntimeError):  # the loop is closed: too late
                self.call_soon_threadsafe(tell, *outcome)

        threading.Thread(target=look_up, name="name look-up", daemon=True).start()
        return await found


@dataclass
class _Progress:
    """The progress of an exchange, needed when it is cut off."""

    http_status: int | None = None
    is_connected: bool = False

    async def trace(self, event: str, _: Any) -> None:
        """Note a step of an exchange; the client calls this."""
        self.is_connected = self.is_connected or event == "connection.connect_tcp.complete"


async def _exchange(
    client: httpx.AsyncClient, asked: Answer, max_bytes: int, progress: _Progress, patience_s: float
) -> Answer:
    """Ask, follow redirects that may be followed, and judge the answer."""
    url = httpx.URL(asked.url)
    extensions: dict[str, Any] = {PINS: {}, "trace": progress.trace}
    for _ in range(MOST_REDIRECTS + 1):
        async with client.stream("GET", url, extensions=extensions) as response:
            progress.http_status = response.status_code
            found = replace(asked, http_status=response.status_code)
            if response.status_code not in REDIRECTS or "location" not in response.headers:
                return await _judged(found, response, max_bytes, patience_s)
        following = url.join(response.headers["location"]).copy_with(fragment=None)
        if fault := _redirect_fault(url, following):
            return replace(found, outcome="refused", error=f"it redirects to {printable(str(following))}, {fault}")
        url = following
    return replace(found, outcome="refused", error=f"it redirects more than {MOST_REDIRECTS} times")


def _redirect_fault(url: httpx.URL, following: httpx.URL) -> str | None:
    """The reason why a redirect is not followed; None if it is."""
    if not _is_web_address(following):
        return "which is no web address"
    if url.scheme == "https" and following.scheme == "http":
        return "which is out of TLS"
    is_upgrade = url.scheme == "http" and following.scheme == "https"
    allowed_ports = {_port(url), DEFAULT_PORTS["https"]} if is_upgrade else {_port(url)}
    if following.host != url.host or _port(following) not in allowed_ports:
        return "which is another host or port"
    return "which names a user" if following.userinfo else None


def _is_web_address(url: httpx.URL) -> bool:
    return url.scheme in DEFAULT_PORTS and bool(url.host) and 0 < _port(url) < 2**16


def _port(url: httpx.URL) -> int:
    return DEFAULT_PORTS[url.scheme] if url.port is None else url.port


async def _judged(found: Answer, response: httpx.Response, max_bytes: int, patience_s: float) -> Answer:
    """Judge an answer that is no redirect (section 4.1)."""
    media_type = response.headers.get("content-type", "")
    is_json = media_type.partition(";")[0].strip().lower() == MEDIA_TYPE
    if response.status_code == 200 and is_json:
        body, fault = await limited_body(response, max_bytes)
    else:
        body, fault = await _body_of_fault(response, max_bytes, patience_s, media_type), None
    reading = read_document(body)
    found = replace(found, readable=reading.readable, unknown_members=reading.unknown_members)
    if response.status_code != 200:
        status = f"{response.status_code} {printable(response.reason_phrase, 60)}".strip()
        hint = ", although health may not need credentials" if response.status_code in (401, 403) else ""
        why = f": {reason}" if (reason := _reason(body)) else ""
        return replace(
            found,
            outcome="http_error",
            error=f"it answers HTTP {status}{hint}{why}",
            retry_after_s=_retry_after_s(response),
        )
    if not is_json:
        named = repr(printable(media_type, 60)) if media_type else "missing"
        return replace(found, outcome="invalid", error=f"its content type is {named}, not {MEDIA_TYPE}")
    if fault:
        return replace(found, outcome="invalid", error=fault)
    return _of_reading(found, reading)


def _of_reading(found: Answer, reading: Reading) -> Answer:
    if reading.document is not None:
        return replace(found, outcome="valid", document=reading.document)
    faults = "; ".join(reading.problems)
    return replace(found, outcome="invalid", error=f"its document is not valid: {faults}", problems=reading.problems)


def _reason(body: bytes) -> str:
    """The reason that the body of an error gives (RFC 9457, and common frameworks); empty where there is none."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(content, dict):
        return ""
    named = (content.get(name) for name in REASONS)
    reason = next((value for value in named if isinstance(value, str) and value.strip()), "")
    return printable(reason.strip().rstrip("."), MOST_OF_REASON)


async def _body_of_fault(response: httpx.Response, max_bytes: int, patience_s: float, media_type: str) -> bytes:
    """The body of an answer that is no good anyway, where it may hold a reason and comes soon; else nothing."""
    if media_type and not ("json" in media_type.lower() or media_type.lower().startswith("text/plain")):
        return b""
    try:
        async with asyncio.timeout(patience_s):
            body, fault = await limited_body(response, max_bytes)
    except (TimeoutError, httpx.HTTPError):
        return b""
    return b"" if fault else body


async def limited_body(response: httpx.Response, max_bytes: int) -> tuple[bytes, str | None]:
    """The body, unpacked, and what is wrong with it; neither form is ever held much beyond the limit."""
    too_large = f"its answer is larger than {max_bytes:,} bytes"
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and len(declared) < 20 and int(declared) > max_bytes:
        return b"", too_large
    raw = bytearray()
    async for chunk in response.aiter_raw():
        raw += chunk
        if len(raw) > max_bytes:
            return b"", too_large
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return bytes(raw), None
    if encoding not in ("gzip", "x-gzip"):
        return b"", f"its answer is encoded as {printable(encoding, 60)!r}, which was not asked for"
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        body = unpacker.decompress(raw, max_bytes + 1)
    except zlib.error:
        return b"", "its answer is not the gzip that it says it is"
    if len(body) > max_bytes:
        return b"", f"{too_large} when unpacked"
    return body, None if unpacker.eof else "its gzip is cut off"


def _retry_after_s(response: httpx.Response) -> int | None:
    """Seconds of a Retry-After header; its form as a date is rare and left alone."""
    value = response.headers.get("retry-after", "").strip()
    if not (value.isascii() and value.isdigit()):
        return None
    return min(int(value[:12]), MOST_RETRY_AFTER_S)


def _transport_fault(error: Exception, progress: _Progress) -> str:
    """The fault of the transport, in words."""
    detail = printable(re.sub(r"^\[Errno -?\d+\] |\.$", "", str(error))) or type(error).__name__
    if progress.http_status is not None:
        return f"the connection broke before its answer was whole ({detail})"
    if isinstance(error, httpx.ConnectError | OSError | UnicodeError):
        return f"no connection ({detail})"
    if isinstance(error, httpx.ProtocolError):
        return f"what answers does not speak HTTP, or hangs up ({detail})"
    return f"the connection broke ({detail})"
