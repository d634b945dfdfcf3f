"""The MCP server at `/mcp` of the endpoint: streamable HTTP, one request and one answer in JSON at a time, no sessions.

What belongs here: what a request must be before the SDK reads it, and handing it on. What does not: who sends it, and
rates (`apps.serving.middleware`).

Only POST is answered: no tool sends anything by itself, so there is no stream to open. A page of another site must not
ask in the name of somebody's browser, so a request with an Origin is answered where it is this server's own alone.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Receive, Scope, Send

from health_assets.apps.serving.answers import Answer, problem
from health_assets.apps.serving.forms import CLOSES, body_refusal, read_body
from health_assets.apps.serving.hosts import AllowedHosts
from health_assets.apps.serving.mcp_server.backend import Backend
from health_assets.apps.serving.mcp_server.protocol import Context, mcp_server
from health_assets.apps.serving.middleware import ASKED
from health_assets.apps.serving.service import RequestContext

MOST_BYTES = 64 * 1024
JSON_TYPE = b"application/json"


class McpOverHttp:
    """Answers requests to `/mcp`.

    Args:
        backend: answers calls.
        hosts: the names of this server.
        on_fault: told, for the operator, of a fault of ours.
    """

    def __init__(self, backend: Backend, hosts: AllowedHosts, on_fault: Callable[[str], None]) -> None:
        logging.getLogger("mcp").setLevel(logging.ERROR)  # what a client does wrong is no event
        self._hosts = hosts
        server = mcp_server(backend, _asked, on_fault)
        self._manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=MOST_BYTES
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer while the block lasts."""
        async with self._manager.run():
            yield

    def refusal(self, scope: Scope, asked: RequestContext) -> Answer | None:
        """The reason why a request is not read; None if it is."""
        if scope["method"] != "POST":
            return problem(405, "only POST is answered", [(b"allow", b"POST"), CLOSES])
        headers = scope["headers"]
        if any(name == b"origin" for name, _ in headers) and not self._hosts.is_same_origin(headers, scope["scheme"]):
            return problem(403, "a page of another site may not ask this", [CLOSES])
        if (refusal := asked.caller.refusal("read")) is not None:
            refusal.headers.append(CLOSES)
            return refusal
        return body_refusal(headers, "message", JSON_TYPE, MOST_BYTES)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> Answer | None:
        """Answer a request that is read; gives an answer still to be sent where its body does not come."""
        body = await read_body(receive, "message")
        if not isinstance(body, bytes):
            return body
        await self._manager.handle_request(scope, _replayed(body, receive), send)
        return None


def _asked(context: Context) -> RequestContext:
    assert context.request is not None
    asked: RequestContext = context.request.scope[ASKED]
    return asked


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body as one message, and after it what else comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again
