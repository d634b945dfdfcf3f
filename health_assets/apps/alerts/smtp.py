"""A session with a mail server that is over when its time is, whatever the server does meanwhile.

The time limit of `smtplib` is of each read: a server that sends a byte a second is never late for it. So the connection
is shut down when the time of the whole session is over, which ends whatever waits for it.
"""

import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

READY = 220

Security = Literal["starttls", "tls", "none"]


class _Deadline:
    """Shuts a connection down when its time is over.

    Args:
        seconds: how long the connection may be used.
    """

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._connection: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, connection: socket.socket) -> None:
        """Shut down this connection, at once where the time is over."""
        with self._lock:
            self._connection = connection
        if self.is_over:
            self._shut_down()

    def cancel(self) -> None:
        """Shut nothing down any more."""
        self._timer.cancel()

    def _end(self) -> None:
        self.is_over = True
        self._shut_down()

    def _shut_down(self) -> None:
        with self._lock, suppress(OSError):
            if self._connection is not None:  # what TLS would say at its end is not waited for
                socket.socket.shutdown(self._connection, socket.SHUT_RDWR)


@contextmanager
def mail_session(host: str, port: int, security: Security, seconds: float) -> Iterator[smtplib.SMTP]:
    """A session with a mail server, encrypted where that is wanted.

    Args:
        host: name of the server.
        port: its port.
        security: whether TLS begins with `starttls`, with the connection (`tls`), or not at all.
        seconds: most time for the whole session.

    Raises:
        TimeoutError: the time was over.
        smtplib.SMTPException: the server does not do what it should.
        OSError: it cannot be reached, or its certificate does not hold.
    """
    deadline = _Deadline(seconds)
    try:
        server = smtplib.SMTP(timeout=seconds)
        connection = socket.create_connection((host, port), seconds)
        deadline.watch(connection)
        if security == "tls":
            connection = _encrypted(connection, host, deadline)
        server.sock = connection
        try:
            _expect_ready(server.getreply())
            if security == "starttls":
                _start_tls(server, connection, host, deadline)
            yield server
            with suppress(smtplib.SMTPException, OSError):  # the mail is taken by now, whatever the server says to this
                server.quit()
        finally:
            server.close()
    except (smtplib.SMTPException, OSError) as error:
        if deadline.is_over:
            raise TimeoutError("timed out") from error
        raise
    finally:
        deadline.cancel()


def _encrypted(connection: socket.socket, host: str, deadline: _Deadline) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    encrypted = context.wrap_socket(connection, server_hostname=host, do_handshake_on_connect=False)
    deadline.watch(encrypted)
    try:
        encrypted.do_handshake()
    except BaseException:
        encrypted.close()
        raise
    return encrypted


def _start_tls(server: smtplib.SMTP, connection: socket.socket, host: str, deadline: _Deadline) -> None:
    """Begin TLS, and forget all that the server said before it, since anybody may have said it."""
    server.ehlo_or_helo_if_needed()
    if not server.has_extn("starttls"):
        raise smtplib.SMTPNotSupportedError("STARTTLS extension not supported by server.")
    _expect_ready(server.docmd("STARTTLS"))
    server.sock = _encrypted(connection, host, deadline)
    server.file = None
    server.helo_resp = server.ehlo_resp = None
    server.esmtp_features = {}
    server.does_esmtp = False


def _expect_ready(reply: tuple[int, bytes]) -> None:
    code, text = reply
    if code != READY:
        raise smtplib.SMTPResponseException(code, text)
