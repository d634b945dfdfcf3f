"""Receivers of alerts on loopback: an HTTP server and an SMTP server that answer as a test wants them to."""

import base64
import json
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Answer = int | Callable[[], int]
"""A status, or what is done before one is given."""


@dataclass
class Receiver:
    """What an HTTP server was sent."""

    port: int = 0
    answers: list[Answer] = field(default_factory=list)
    rest: str = ""
    most_bytes: int | None = None
    """Larger bodies are answered with 413, and not kept."""
    received: list[tuple[dict[str, str], Any]] = field(default_factory=list)
    too_large: list[int] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/hook/secret-path"

    @property
    def keys(self) -> list[str]:
        """Keys of the messages in the order in which they came."""
        return [headers["Idempotency-Key"] for headers, _ in self.received]

    @property
    def bodies(self) -> list[Any]:
        return [body for _, body in self.received]


def hanging(seconds: float = 60.0) -> int:
    """Take longer than anybody waits."""
    time.sleep(seconds)
    return 200


@contextmanager
def receiver(*answers: Answer) -> Iterator[Receiver]:
    """An HTTP server; it gives these answers, and 200 from then on."""
    kept = Receiver(answers=list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if kept.most_bytes is not None and len(body) > kept.most_bytes:
                kept.too_large.append(len(body))
                self.send_response(413)
                self.end_headers()
                return
            kept.received.append((dict(self.headers), json.loads(body)))
            kept.paths.append(self.path)
            answer = kept.answers.pop(0) if kept.answers else 200
            with suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(answer if isinstance(answer, int) else answer())
                if kept.rest:
                    self.send_header("Retry-After", kept.rest)
                self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    kept.port = server.server_port
    with _running(server):
        yield kept


@dataclass
class Mailbox:
    """What an SMTP server was sent."""

    port: int = 0
    answers: list[str] = field(default_factory=list)
    mails: list[Message] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    """By address, what is said instead of taking mail for it, like `451 try later`."""
    most_bytes: int | None = None
    """Larger mails are answered with 552."""
    announced_bytes: int | None = None
    """Size of the largest mail that the greeting says it takes."""
    raw: list[bytes] = field(default_factory=list)
    """The mails as they came."""
    too_large: list[int] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    was_encrypted: bool = False


@contextmanager
def mailbox(*answers: str, certificate: tuple[Path, Path] | None = None, password: str = "") -> Iterator[Mailbox]:
    """An SMTP server; it gives these answers to mails, and takes them from then on.

    Args:
        answers: like `451 try later`.
        certificate: certificate and key, to offer STARTTLS.
        password: the one that it lets in.
    """
    kept = Mailbox(answers=list(answers))
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)

    class Handler(socketserver.StreamRequestHandler):
        def say(self, text: str) -> None:
            self.wfile.write(text.encode() + b"\r\n")
            self.wfile.flush()

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()
            self.connection.close()

        def handle(self) -> None:
            self.say("220 localhost")
            to: list[str] = []
            while line := self.rfile.readline().decode().strip():
                verb, _, rest = line.partition(" ")
                match verb.upper():
                    case "EHLO":
                        offers = ["localhost", "AUTH PLAIN", *(["STARTTLS"] if context else [])]
                        if kept.announced_bytes is not None:
                            offers.append(f"SIZE {kept.announced_bytes}")
                        for offer in offers[:-1]:
                            self.say(f"250-{offer}")
                        self.say(f"250 {offers[-1]}")
                    case "STARTTLS":
                        self.say("220 go on")
                        assert context
                        self.connection = context.wrap_socket(self.connection, server_side=True)
                        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")
                        kept.was_encrypted = True
                    case "AUTH":
                        given = base64.b64decode(rest.split()[1]).decode().split("\0")
                        kept.logins.append(given[1])
                        self.say("235 welcome" if given[2] == password else f"535 not {given[2]}")
                    case "RCPT":
                        answer = kept.refusals.get(rest.partition("<")[2].partition(">")[0], "250 yes")
                        if answer.startswith("250"):
                            to.append(rest)
                        self.say(answer)
                    case "DATA":
                        self.say("354 go on")
                        lines = []
                        while (one := self.rfile.readline()) != b".\r\n":
                            lines.append(one.removeprefix(b".") if one.startswith(b"..") else one)
                        raw = b"".join(lines)
                        if kept.most_bytes is not None and len(raw) > kept.most_bytes:
                            kept.too_large.append(len(raw))
                            self.say("552 5.3.4 message size exceeds fixed limit")
                            continue
                        answer = kept.answers.pop(0) if kept.answers else "250 kept"
                        if answer.startswith("250"):
                            kept.raw.append(raw)
                            kept.mails.append(message_from_bytes(raw))
                            kept.recipients.append(to)
                        self.say(answer)
                    case "QUIT":
                        self.say("221 bye")
                        return
                    case _:
                        self.say("250 yes")

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    kept.port = server.server_address[1]
    with _running(server):
        yield kept


@contextmanager
def _running(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
