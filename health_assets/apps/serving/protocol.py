"""Uvicorn's HTTP protocol with limits on connections, on a head's time and size, and on time to send.

Uvicorn itself waits for ever for the rest of a head, takes one of any length, and waits for ever for who does not read.

What belongs here: all that is taken from uvicorn's own protocol, of which it documents nothing but its name. It is that
of uvicorn 0.32 to 0.54, where `pyproject.toml` keeps it; `test_uvicorn_protocol` fails first when it moves. What
does not: who may connect (`quotas`), and what is answered (`app`).
"""

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from health_assets.apps.serving.access_log import AccessLog
from health_assets.apps.serving.answers import Headers, problem
from health_assets.apps.serving.quotas import ConnectionQuota

HEAD_TIMEOUT_S = 10.0
SEND_TIMEOUT_S = 30.0
"""How long answers that a client does not take may hold its connection."""
MOST_HEAD_BYTES = 16 * 1024
NOT_HTTP = (400, "the request is not valid HTTP")
LARGE_HEAD = (431, "the head of the request is too large")
TOO_SLOW = (408, "the request took too long to arrive")
TOO_MANY = (503, "too many connections are open")
TOO_MANY_OF_ONE = (429, "too many connections are open from this address")


class LimitedProtocol(HttpToolsProtocol):
    """One connection; refusals are problems in JSON, after which it is closed.

    Args:
        quota: counts the connections of each address.
        log: where refusals are noted; None for nowhere.
    """

    def __init__(self, *args: Any, quota: ConnectionQuota, log: AccessLog | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._quota, self._log = quota, log
        self._is_counted = False
        # a connection beyond the limit is refused when it is made, not when it has sent a request
        self._most_connections, self.limit_concurrency = self.limit_concurrency, None
        self._timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._head_bytes = self._open_bytes = 0  # in lines that are whole, and as they arrive
        self._has_begun = False
        self._is_head_open = True
        self._refusal = NOT_HTTP
        self._answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, or say that there are too many."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self._is_counted = self._quota.take(self._address)
        if not self._is_counted:
            self._refuse(*TOO_MANY_OF_ONE, [(b"retry-after", b"1")])
        elif self._most_connections is not None and len(self.connections) > self._most_connections:
            self._refuse(*TOO_MANY, [(b"retry-after", b"1")])
        else:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        self._stop_send_timer()
        if self._is_counted:
            self._quota.give_back(self._address)
            self._is_counted = False
        super().connection_lost(exc)  # tells the newest request, which of several is not the one that is answered
        self.pipeline.clear()
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()

    def pause_writing(self) -> None:
        """More is to be sent than the client takes."""
        super().pause_writing()
        self._limit_sending()

    def resume_writing(self) -> None:
        """The client has taken it."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_send_timer()

    def on_response_complete(self) -> None:
        """An answer has been handed to the transport, which may have been told to close when all is sent."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._limit_sending()

    def timeout_keep_alive_handler(self) -> None:
        """No request has come for a while; a client that did not even take its answers is not waited for."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def data_received(self, data: bytes) -> None:
        """Parse what came; of a head that is still open, count it."""
        self._has_begun = False
        super().data_received(data)
        # what came together with the first byte of a head may belong to the requests before it
        if self._is_head_open and not self._has_begun:
            self._open_bytes += len(data)
            if self._open_bytes > MOST_HEAD_BYTES:
                self._refuse(*LARGE_HEAD)

    def on_message_begin(self) -> None:
        """The first byte of a request has come."""
        super().on_message_begin()
        self._head_bytes = self._open_bytes = 0
        self._has_begun = True
        self._expect_head()

    def on_url(self, url: bytes) -> None:
        """A piece of the URL has come."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header has come."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head has come in time."""
        self._is_head_open = False
        self._stop_timer()
        if not self.url.startswith(
            b"/"
        ):  # then the target names the host, and the header does not count (RFC 9112, 3.2.2)
            self._take_host_of_target()
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # what the parser says is not for the world
        """Refuse what the parser did not take."""
        self._refuse(*self._refusal)

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _take_host_of_target(self) -> None:
        host = httptools.parse_url(self.url).host
        if host:
            self.headers[:] = [(b"host", host), *(pair for pair in self.headers if pair[0] != b"host")]

    def _expect_head(self) -> None:
        self._is_head_open = True
        self._stop_timer()
        self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self._refuse, *TOO_SLOW)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _limit_sending(self) -> None:
        if self._send_timer is None:
            self._send_timer = self.loop.call_later(SEND_TIMEOUT_S, self.transport.abort)

    def _stop_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MOST_HEAD_BYTES:
            self._refusal = LARGE_HEAD
            raise ValueError  # the parser stops, and `send_400_response` is called

    def _refuse(self, status: int, detail: str, more: Headers | tuple[()] = ()) -> None:
        if self.transport.is_closing():
            return
        answer = problem(status, detail, [*more, (b"connection", b"close")])
        headers = [*self.server_state.default_headers, *answer.headers]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(STATUS_LINE[status] + lines + b"\r\n" + answer.body)
        self.transport.close()
        self._limit_sending()
        if self._log is not None:
            self._log.note(self._address, None, None, status, 0.0, len(answer.body))
