"""Requests that no client should send: each gets an answer that is no fault of the server, soon, and nobody else waits."""

import logging
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from random import Random

from health_assets_tests.fuzz.mutations import EVERYDAY
from health_assets_tests.support.serving_made import Served

PATHS = (
    "/agents", "/agents?limit=2&cursor=x", "/agents/fine", "/agents/fine/.well-known/agent-health", "/models",
    "/models/best?candidates=a,b", "/sessions/s", "/status", "/docs", "/openapi.json", "/.well-known/agent-health",
    "/", "/ui/sign-in", "/ui/sign-in?next=//x", "/ui/incidents?q=%ff", "/ui/incidents/x", "/ui/silences?agents=[&rules=x",
    "/agents/%2e%2e%2f", "/agents/" + "x" * 300, "/%00", "/agents?limit=99999999999999999999", "*", "http://x/agents",
)  # fmt: skip
HEADERS = (
    "Accept: */*", 'If-None-Match: "x"', "If-Modified-Since: Sun, 07 Jun 2026 13:00:00 GMT", "Authorization: Bearer x",
    "Authorization: Basic eDp5", "Range: bytes=0-1", "Connection: keep-alive", "Upgrade: websocket", "Expect: 100-continue",
    "Content-Length: 3", "Transfer-Encoding: chunked", "X-Forwarded-For: 10.0.0.1", "Cookie: a=b", "Accept-Encoding: gzip, br",
)  # fmt: skip
FORMS = ("/ui/sign-in", "/ui/sign-out", "/ui/silences", "/ui/silences/end")
BODIES = (
    b"", b"token=x&next=//example.org", b"token=%ff&next=/ui/%0d%0aSet-Cookie:x", b"csrf=x&agents=*&until=1h&reason=x",
    b"silence_id=%00", b"=&&=&", b"a=b&" * 200, b"\xff\x00", b"token=" + b"x" * 20_000,
)  # fmt: skip
METHODS = ("GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "PRI", "get")
ANSWERED_WITHIN_S = 30.0
AT_A_TIME = 4
LEAKS = re.compile(rb"Traceback|File \"|uvicorn|starlette|duckdb|/site-packages/", re.IGNORECASE)


def request_of(random: Random) -> bytes:
    """A request, mostly damaged."""
    if random.random() < 0.2:
        return _damaged(random, form_of(random))
    lines = [f"{random.choice(METHODS)} {random.choice(PATHS)} HTTP/1.1", "Host: 127.0.0.1"]
    lines += random.sample(HEADERS, random.choice([0, 0, 1, 3]))
    request = "\r\n".join([*lines, "Connection: close", "", ""]).encode()
    return _damaged(random, request)


def form_of(random: Random) -> bytes:
    """A form, as a page of the server sends it."""
    body = random.choice(BODIES)
    lines = [
        f"POST {random.choice(FORMS)} HTTP/1.1", "Host: 127.0.0.1", "Origin: http://127.0.0.1",
        "Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}",
    ]  # fmt: skip
    return (
        "\r\n".join([*lines, *random.sample(HEADERS, random.choice([0, 0, 1])), "Connection: close", "", ""]).encode()
        + body
    )


def _damaged(random: Random, request: bytes) -> bytes:
    for _ in range(random.choice([0, 1, 1, 2, 4])):
        request = random.choice(EVERYDAY[:5])(random, request)
    return request


def send_requests(server: Served, count: int, seed: int) -> Counter[str]:
    """Send so many requests, some by clients that ask several things at once or hang up.

    Gives how often each status came, and `no answer` where the connection was closed.

    Args:
        server: whom to send them.
        count: how many.
        seed: another one gives other requests.

    Raises:
        AssertionError: an answer is a fault of the server, tells what it should not, or is late.
    """
    with _faults_of_the_server() as faults, ThreadPoolExecutor(AT_A_TIME) as threads:
        share = -(-count // AT_A_TIME)
        told = threads.map(
            lambda place: _sent(server, min(share, count - place * share), Random(f"{seed} {place}")),
            range(AT_A_TIME),
        )
        statuses = sum(told, Counter())
    assert not faults, f"the server said: {faults[:3]}"
    return statuses


def _sent(server: Served, count: int, random: Random) -> Counter[str]:
    statuses: Counter[str] = Counter()
    for _ in range(max(0, count)):
        request, half_closes = request_of(random) * random.choice([1, 1, 1, 1, 3]), random.random() < 0.9
        start = time.monotonic()
        answer = _exchange(server.port, request, half_closes=half_closes)
        late_s = time.monotonic() - start
        assert late_s < ANSWERED_WITHIN_S, f"{request!r} took {late_s:.1f} s"
        assert not LEAKS.search(answer.split(b"\r\n\r\n")[0]), f"{request!r} is answered with {answer[:500]!r}"
        found = re.findall(rb"^HTTP/1\.1 (\d{3})", answer, re.MULTILINE)
        assert not any(status == b"500" for status in found), f"{request!r} is answered with {answer[:500]!r}"
        assert found or not answer, f"{request!r} is answered with {answer[:200]!r}"
        statuses.update([status.decode() for status in found] or ["no answer"])
    return statuses


def _exchange(port: int, request: bytes, *, half_closes: bool) -> bytes:
    """Send bytes; a client that does not say that it is done waits shortly, and goes."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWERED_WITHIN_S) as connection, suppress(OSError):
        connection.sendall(request)
        if half_closes:
            connection.shutdown(socket.SHUT_WR)
        elif is_complete(request):
            connection.settimeout(ANSWERED_WITHIN_S)
        else:
            connection.settimeout(0.05)
        while piece := connection.recv(65536):
            received += piece
    return received


def is_complete(request: bytes) -> bool:
    """Whether a server that closes after its answer has all that it waits for."""
    return request.endswith(b"\r\n\r\n") and b"Connection: close" in request and b"Content-Length" not in request


@contextmanager
def _faults_of_the_server() -> Iterator[list[str]]:
    """What the server and its event loop log as an error."""
    faults: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            faults.append(f"{record.getMessage()} {self.format(record)}"[:2000])

    keep = Keep(logging.ERROR)
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addHandler(keep)
    try:
        yield faults
    finally:
        for logger in loggers:
            logger.removeHandler(keep)
