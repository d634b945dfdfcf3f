"""What every request passes before it is routed: rate limit, method, body; and the health documents themselves.

The documents are what the endpoint is for, so their plain spelling is answered here, in tens of microseconds. Another
spelling of the same URL, and everything else, goes on to FastAPI; `routes` answers it with the same function.
"""

import time
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from health_assets.serving.answers import Answer, Headers, problem
from health_assets.serving.rate_limit import RateLimit
from health_assets.serving.service import Service

WELL_KNOWN = b"/.well-known/agent-health"
AGENTS = b"/agents/"
METHODS = ("GET", "HEAD")


class Gate:
    """ASGI middleware in front of the routes.

    Args:
        app: what is behind.
        service: makes the health documents.
        requests_per_s: what one client address may ask; None for any number.
    """

    def __init__(self, app: ASGIApp, service: Service, requests_per_s: float | None) -> None:
        self._app = app
        self._service = service
        self._limit = RateLimit(requests_per_s) if requests_per_s else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        if (answer := self._refusal(scope) or self._document(scope)) is not None:
            await _send(answer, send, is_head=is_head)
        elif is_head:
            await self._app({**scope, "method": "GET"}, receive, _without_body(send))
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Answer | None:
        if self._limit is not None and (client := scope.get("client")):
            wait_s = self._limit.wait_s(client[0], time.monotonic())
            if wait_s:
                return problem(429, "too many requests from this address", [(b"retry-after", b"%d" % wait_s)])
        if scope["method"] not in METHODS:
            # the connection ends, so that a body is not waited for
            headers = [(b"allow", ", ".join(METHODS).encode()), (b"connection", b"close")]
            return problem(405, "only GET and HEAD are answered", headers)
        if _has_body(scope["headers"]):
            return problem(413, "a request body is not accepted", [(b"connection", b"close")])
        return None

    def _document(self, scope: Scope) -> Answer | None:
        path: bytes = scope["raw_path"]
        if not path.endswith(WELL_KNOWN):
            return None
        if path == WELL_KNOWN:
            return self._service.host_document(scope["headers"])
        if path.startswith(AGENTS) and len(path) > len(AGENTS) + len(WELL_KNOWN):
            agent_id = unquote_to_bytes(path[len(AGENTS) : -len(WELL_KNOWN)])
            return self._service.document(agent_id, scope["headers"])
        return None


def _has_body(headers: Headers) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 ")) for name, value in headers
    )


async def _send(answer: Answer, send: Send, *, is_head: bool) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body})


def _without_body(send: Send) -> Send:
    """Headers as of a GET, and nothing after them (RFC 9110, 9.3.2)."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head
