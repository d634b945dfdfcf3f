"""Real servers on this machine that answer health requests well, badly, slowly and not at all.

A `Host` listens on a port of its own and behaves as its behaviours say, by path. It keeps what it was asked, so that
tests can look at the requests, and at how many were under way at once.
"""

import contextlib
import gzip
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

WELL_KNOWN = "/.well-known/agent-health"
NOW = datetime(2026, 6, 7, 13, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Request:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    at: float


@dataclass
class Exchange:
    """What a behaviour may use: the connection, and the event that ends the server.

    A request is under way until its answer begins: a client may ask again before the server has noticed that it is done.
    """

    connection: socket.socket
    request: Request
    is_over: threading.Event
    on_answer: Callable[[], None]

    def send(self, *parts: bytes) -> None:
        self.on_answer()
        for part in parts:
            self.connection.sendall(part)


Behaviour = Callable[[Exchange], None]


class Host:
    """A server on 127.0.0.1.

    Args:
        behaviours: what to do by path of the agent (without the well-known part), or for every path.
        tls: serve TLS with it.
    """

    def __init__(self, behaviours: Mapping[str, Behaviour] | Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self._behaviours = behaviours
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._listener.getsockname()[1]
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._waiting: set[Request] = set()
        self.most_under_way = 0
        self.requests: list[Request] = []

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> "Host":
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        for thread in list(self._threads):
            thread.join(60)
            assert not thread.is_alive()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._start(self._serve, self._listener.accept()[0])

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(60)
            talking = self._tls.wrap_socket(connection, server_side=True) if self._tls else connection
            with talking:
                request = self._read(talking)
                with self._lock:
                    self.requests.append(request)
                    self._waiting.add(request)
                    self.most_under_way = max(self.most_under_way, len(self._waiting))
                behave = self._behaviour(request.path)
                behave(Exchange(talking, request, self._is_over, lambda: self._waiting.discard(request)))

    def gathers(self, count: int) -> Behaviour:
        """Answers with a document once so many requests have been under way at a time, and a moment later: no sooner,
        so that a client that asks for fewer at a time is found out however fast the machine is.
        """

        def behave(exchange: Exchange) -> None:
            end = time.monotonic() + 20
            while self.most_under_way < count and time.monotonic() < end:
                exchange.is_over.wait(0.005)
            answers(document(), after_s=0.03)(exchange)

        return behave

    def _read(self, connection: socket.socket) -> Request:
        received = b""
        while b"\r\n\r\n" not in received:
            chunk = connection.recv(4096)
            received += chunk
            if not chunk or not received.startswith(b"GET "):
                raise ConnectionError("no request")
        first, *lines = received.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Request(first.split(" ")[1], headers, time.monotonic())

    def _behaviour(self, path: str) -> Behaviour:
        if callable(self._behaviours):
            return self._behaviours
        return self._behaviours.get(path.removesuffix(WELL_KNOWN), answers(b"{}", "404 Not Found"))


# -- documents ---------------------------------------------------------------------------------------------------------


def document(status: str = "healthy", **changes: Any) -> dict[str, Any]:
    """A document with every field; `health__status=...` changes one of a part, `...` leaves it out."""
    made: dict[str, Any] = {
        "schema_version": "0.1.0",
        "agent_id": "https://agent.example/.well-known/agent.json",
        "timestamp": "2026-06-07T13:00:00Z",
        "health": {"status": status, "last_healthy_at": "2026-06-07T10:50:00+00:00", "uptime_seconds": 86400},
        "calibration": {
            "response_ratio": {"healthy": 0.99, "degraded": 0.9, "unhealthy": 0.3, "unknown": 0.99}[status],
            "error_ratio": 0.01, "latency_p50_ms": 420.5, "latency_p99_ms": 1900,
            "measurement_window_seconds": 86400, "sample_count": 1204,
        },
        "decay": {
            "calibration_trend": "stable", "days_since_model_change": 40,
            "last_capability_update": "2026-06-01T08:00:00Z",
        },
        "extensions": {"com.example.feature": {"any": "thing"}},
    }  # fmt: skip
    for name, value in changes.items():
        *parts, last = name.split("__")
        place = made
        for part in parts:
            place = place[part]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return made


def current_document(status: str = "healthy", **changes: Any) -> dict[str, Any]:
    """A document that was made just now."""
    return document(status, timestamp=datetime.now(UTC).isoformat(), **changes)


# -- behaviours --------------------------------------------------------------------------------------------------------


def answers(
    body: bytes | dict[str, Any],
    status: str = "200 OK",
    content_type: str | None = "application/json",
    *,
    headers: Mapping[str, str] = {},
    after_s: float = 0,
) -> Behaviour:
    """Answers, with a length."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def behave(exchange: Exchange) -> None:
        exchange.is_over.wait(after_s)
        exchange.send(head(status, content_type, {"Content-Length": str(len(content)), **headers}), content)

    return behave


def head(status: str, content_type: str | None, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def zipped(body: bytes | dict[str, Any], times: int = 1, **options: Any) -> Behaviour:
    """Answers gzip that was not asked for; `times` repeats a chunk, for bombs."""
    content = (body if isinstance(body, bytes) else json.dumps(body).encode()) * times
    return answers(gzip.compress(content), headers={"Content-Encoding": "gzip"}, **options)


def redirects(location: str, status: str = "302 Found") -> Behaviour:
    return answers(b"", status, headers={"Location": location})


def drips(content: bytes, every_s: float = 0.05, first: bytes = b"") -> Behaviour:
    """After these bytes, a byte at a time (a slow loris)."""

    def behave(exchange: Exchange) -> None:
        exchange.send(first)
        for place in range(len(content)):
            exchange.send(content[place : place + 1])
            if exchange.is_over.wait(every_s):
                return

    return behave


def never_ends(chunk: bytes, first: bytes) -> Behaviour:
    """Sends for as long as somebody listens."""

    def behave(exchange: Exchange) -> None:
        exchange.send(first)
        while not exchange.is_over.is_set():
            exchange.send(chunk)

    return behave


def says(content: bytes) -> Behaviour:
    """Sends these bytes and hangs up."""
    return lambda exchange: exchange.send(content)


def hangs(first: bytes = b"") -> Behaviour:
    """Takes the request, and after these bytes says nothing more."""

    def behave(exchange: Exchange) -> None:
        exchange.send(first)
        exchange.is_over.wait(300)

    return behave


def resets(first: bytes = b"") -> Behaviour:
    """Breaks the connection off hard."""

    def behave(exchange: Exchange) -> None:
        exchange.send(first)
        exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        exchange.connection.close()

    return behave


@contextlib.contextmanager
def closed_port() -> Iterator[str]:
    """A URL at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@dataclass(frozen=True)
class Certificate:
    """A certificate for 127.0.0.1 that nobody signed but itself."""

    path: str
    context: ssl.SSLContext = field(repr=False)


def make_certificate(folder: Any, *names: str) -> Certificate:
    """A certificate for 127.0.0.1, or for these names."""
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([*map(x509.DNSName, names)] or [x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = folder / "certificate.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return Certificate(str(path), context)
