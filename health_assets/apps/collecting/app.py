"""The collector's application: requests of OTLP/HTTP, answered once what they hold is on the disk.

What belongs here: HTTP, who may send, and how much may wait. What does not: bodies (`requests`), files (`log_files`).
"""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from health_assets.apps.collecting.log_files import GroupCommit
from health_assets.apps.collecting.requests import (
    LOGS,
    MOST_BODY_BYTES,
    TRACES,
    ConvertedRequest,
    Encoding,
    LargeRequestError,
    MalformedRequestError,
    Signal,
    answer_of,
    converted,
    unpacked,
)
from health_assets.apps.serving.hosts import AllowedHosts

MOST_WAITING_BYTES = 64 << 20
"""Bytes of all requests that are not answered yet, beyond which others are sent away."""
BODY_TIMEOUT_S = 30.0
NEEDS_TOKEN = "this needs the token of the collector, as Authorization: Bearer"
RETRY_AFTER_S = {HTTPStatus.TOO_MANY_REQUESTS: 1, HTTPStatus.SERVICE_UNAVAILABLE: 5}

_CODES = {
    HTTPStatus.BAD_REQUEST: 3, HTTPStatus.UNAUTHORIZED: 16, HTTPStatus.NOT_FOUND: 5, HTTPStatus.METHOD_NOT_ALLOWED: 12,
    HTTPStatus.REQUEST_TIMEOUT: 4, HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 3, HTTPStatus.UNSUPPORTED_MEDIA_TYPE: 3,
    HTTPStatus.MISDIRECTED_REQUEST: 3, HTTPStatus.TOO_MANY_REQUESTS: 8, HTTPStatus.INTERNAL_SERVER_ERROR: 13,
    HTTPStatus.SERVICE_UNAVAILABLE: 14,
}  # fmt: skip
"""Codes of gRPC (google.rpc.Code) by those of HTTP."""


def create_app(
    commits: Mapping[Signal, GroupCommit],
    token: str | None,
    hosts: AllowedHosts | None,
    most_waiting_bytes: int = MOST_WAITING_BYTES,
) -> Starlette:
    """The application.

    Args:
        commits: write the lines of each signal; they run as long as the application.
        token: what a sender must give as `Authorization: Bearer`; None where everybody may send.
        hosts: the names of this host that are answered; None for any.
        most_waiting_bytes: bytes of all requests that are not answered yet.
    """
    collector = _Collector(commits, token, hosts, most_waiting_bytes)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        for commit in commits.values():
            commit.start()
        yield
        for commit in commits.values():
            commit.stop()
        collector.stop()

    async def traces(request: Request) -> Response:
        return await collector.answer(request, TRACES)

    async def logs(request: Request) -> Response:
        return await collector.answer(request, LOGS)

    async def live(_: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    routes = [
        Route("/v1/traces", traces, methods=["POST"]),
        Route("/v1/logs", logs, methods=["POST"]),
        Route("/livez", live, methods=["GET"]),
    ]
    return Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _refused, Exception: _internal}
    )


class _InFlightBytes:
    """Bytes of all requests that are not answered yet.

    Args:
        most_bytes: beyond these, no more of a body is let in.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.size_bytes = 0


class _Reservation:
    """The bytes of one of these requests, until it is answered.

    Args:
        waiting: counts those of all.
    """

    def __init__(self, waiting: _InFlightBytes) -> None:
        self._waiting = waiting
        self._size_bytes = 0

    def __enter__(self) -> "_Reservation":
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.size_bytes -= self._size_bytes

    def reserve(self, size_bytes: int) -> None:
        """Count bytes that have come.

        Raises:
            HTTPException: too many wait already.
        """
        if self._waiting.size_bytes + size_bytes > self._waiting.most_bytes:
            raise HTTPException(HTTPStatus.TOO_MANY_REQUESTS, "too much waits to be written")
        self.count(size_bytes)

    def count(self, size_bytes: int) -> None:
        """Count bytes that a body became."""
        self._waiting.size_bytes += size_bytes
        self._size_bytes += size_bytes


class _Collector:
    """Answers requests.

    Args:
        commits: write the lines of each signal.
        token: what a sender must give; None for nothing.
        hosts: the names of this host that are answered; None for any.
        most_waiting_bytes: bytes of all requests that are not answered yet.
    """

    def __init__(
        self,
        commits: Mapping[Signal, GroupCommit],
        token: str | None,
        hosts: AllowedHosts | None,
        most_waiting_bytes: int,
    ) -> None:
        self._commits = commits
        self._token = None if token is None else token.encode()
        self._hosts = hosts
        self._waiting = _InFlightBytes(most_waiting_bytes)
        self._decoder = ThreadPoolExecutor(1, "decoder")

    def stop(self) -> None:
        """End the thread that decodes."""
        self._decoder.shutdown()

    async def answer(self, request: Request, signal: Signal) -> Response:
        """Take a request, and say so once it is on the disk."""
        self._admit(request)
        encoding, is_packed = _encoding(request), _is_packed(request)
        with _Reservation(self._waiting) as held:
            body = await _body(request, held)
            lines = await self._lines(body, encoding, signal, is_packed=is_packed)
            held.count(len(lines.content))
            if lines.content:
                await self._written(lines.content, signal)
        return Response(answer_of(lines.rejected, encoding, signal), media_type=encoding)

    async def _lines(self, body: bytes, encoding: Encoding, signal: Signal, *, is_packed: bool) -> ConvertedRequest:
        def decoded() -> ConvertedRequest:
            return converted(unpacked(body) if is_packed else body, encoding, signal)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._decoder, decoded)
        except MalformedRequestError as error:
            raise HTTPException(HTTPStatus.BAD_REQUEST, str(error)) from error
        except LargeRequestError as error:
            raise _too_large() from error

    async def _written(self, content: bytes, signal: Signal) -> None:
        try:
            await asyncio.wrap_future(self._commits[signal].append(content))
        except OSError as error:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "what was sent cannot be written now") from error

    def _admit(self, request: Request) -> None:
        """Refuse who may not send.

        Raises:
            HTTPException: the token is missing or another, or a name of the host is none that is answered.
        """
        if self._token is not None:
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode("latin-1"), self._token):
                raise HTTPException(HTTPStatus.UNAUTHORIZED, NEEDS_TOKEN, {"WWW-Authenticate": "Bearer"})
        if self._hosts is not None:
            own_address = (request.scope.get("server") or ("",))[0]
            refusal = self._hosts.refusal(request.scope["headers"], own_address, request.scope["http_version"])
            if refusal is not None:
                raise HTTPException(refusal.status, json.loads(refusal.body)["detail"])


async def _body(request: Request, held: _Reservation) -> bytes:
    """The body as it is sent, up to the most that is taken, and no longer than for a while."""
    pieces, size = [], 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for piece in request.stream():
                size += len(piece)
                if size > MOST_BODY_BYTES:
                    raise _too_large()
                held.reserve(len(piece))
                pieces.append(piece)
    except TimeoutError as error:
        raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, "the request took too long to arrive") from error
    except ClientDisconnect as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "the request ended before its body did") from error
    return b"".join(pieces)


def _encoding(request: Request) -> Encoding:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        return Encoding(media_type)
    except ValueError:
        taken = " or ".join(Encoding)
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content type must be {taken}") from None


def _is_packed(request: Request) -> bool:
    packing = request.headers.get("content-encoding", "identity").strip().lower()
    if packing not in ("identity", "gzip"):
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the content encoding must be gzip, or none")
    return packing == "gzip"


def _too_large() -> HTTPException:
    sentence = f"a request may have {MOST_BODY_BYTES >> 20} MiB, unpacked; make batches smaller"
    return HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)


def _refused(request: Request, error: Exception) -> Response:
    """An error as a google.rpc.Status in the request's encoding, or else in JSON."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    headers = dict(error.headers or {})
    if status in RETRY_AFTER_S:
        headers["Retry-After"] = str(RETRY_AFTER_S[status])
    code = _CODES.get(status, 2)
    if request.headers.get("content-type", "").lower().startswith(Encoding.PROTOBUF):
        return Response(_protobuf_status(code, error.detail), status, headers, Encoding.PROTOBUF)
    content = json.dumps({"code": code, "message": error.detail})
    return Response(content, status, headers, Encoding.JSON)


def _internal(request: Request, _: Exception) -> Response:
    return _refused(request, HTTPException(HTTPStatus.INTERNAL_SERVER_ERROR, "something went wrong here; it is noted"))


def _protobuf_status(code: int, message: str) -> bytes:
    """A google.rpc.Status: the code is field 1, the message field 2 (the package with the class is no dependency)."""
    text = message.encode()
    length, size = bytearray(), len(text)
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return b"\x08%c\x12%b%c%b" % (code, bytes(length), size, text)
