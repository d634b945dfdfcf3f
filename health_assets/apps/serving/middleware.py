"""The gate that every request passes before its route: host, caller, rate limit, method, body. It answers documents.

The documents are what the endpoint is for, so their plain spelling is answered here, in tens of microseconds. Another
spelling of the same URL, and everything else, goes on to FastAPI; `routes` answers it with the same function.
"""

import time
from typing import Protocol
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from health_assets.apps.serving.access_log import AccessLog
from health_assets.apps.serving.answers import Answer, Headers, problem
from health_assets.apps.serving.auth import Auth
from health_assets.apps.serving.browsers import VARY, has_page, page_for
from health_assets.apps.serving.forms import FORM, Form, form_refusal, is_form_address, read_form
from health_assets.apps.serving.rate_limit import RateLimit
from health_assets.apps.serving.request_counts import NO_ROUTE, REFUSED, RequestCounts
from health_assets.apps.serving.service import RequestContext, Service

WELL_KNOWN = b"/.well-known/agent-health"
AGENTS = b"/agents/"
HOST_ROUTE = WELL_KNOWN.decode()
AGENT_ROUTE = "/agents/{agent_id}/.well-known/agent-health"
MCP_ROUTE = "/mcp"
MCP = MCP_ROUTE.encode()
METHODS = ("GET", "HEAD")
ASKED = "health_assets.asked"
"""Where the routes find who asks, in the scope."""


class Messages(Protocol):
    """Answers messages of MCP clients; the SDK of which is imported only where it is wanted."""

    def refusal(self, scope: Scope, asked: RequestContext) -> Answer | None:
        """The reason why a request is not read; None if it is."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> Answer | None:
        """Answer a request that is read; gives an answer still to be sent where its body does not come."""


class Middleware:
    """ASGI middleware in front of the routes.

    Args:
        app: the application behind it.
        service: makes the health documents.
        auth: recognizes hosts and callers.
        requests_per_s: requests that one client address may send; None for any number.
        requests: where they are counted.
        log: where requests are noted; None for nowhere.
        has_pages: whether there are pages that a browser can be led to.
        mcp: answers MCP clients; None where they are not answered.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        auth: Auth,
        requests_per_s: float | None,
        requests: RequestCounts,
        log: AccessLog | None,
        *,
        has_pages: bool,
        mcp: Messages | None,
    ) -> None:
        self._app = app
        self._service = service
        self._auth = auth
        self._requests = requests
        self._log = log
        self._has_pages = has_pages
        self._mcp = mcp
        self._limit = RateLimit(requests_per_s) if requests_per_s else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = scope.get("client")
        address, headers = client[0] if client else "", scope["headers"]
        if _is_page(scope["raw_path"]):  # a cookie opens pages, and nothing of the API
            asked = RequestContext(
                headers=headers, caller=self._auth.authenticate_browser(headers), address=address, target=_target(scope)
            )
        else:
            asked = RequestContext(headers=headers, caller=self._auth.authenticate(headers), address=address)
        start, counted = time.perf_counter(), _Counted(send, varies=self._has_pages and has_page(scope["raw_path"]))
        try:
            await self._handle(scope, asked, receive, counted)
        finally:
            seconds = time.perf_counter() - start
            self._requests.note(counted.route, counted.status, seconds)
            if self._log is not None:
                self._log.note(
                    asked.caller.name or asked.address,
                    scope["method"],
                    _target(scope),
                    counted.status,
                    1000 * seconds,
                    counted.size,
                )

    async def _handle(self, scope: Scope, asked: RequestContext, receive: Receive, send: "_Counted") -> None:
        is_head = scope["method"] == "HEAD"
        if (refusal := self._refusal(scope, asked)) is not None:
            await _send(refusal, send, is_head=is_head)
            return
        if (found := self._document(scope, asked)) is not None:
            send.route, document = found
            await _send(document, send, is_head=is_head)
            return
        if self._has_pages and (page := page_for(scope["raw_path"], asked.headers)) is not None:
            await _send(page, send, is_head=is_head)
            return
        routed = {**scope, ASKED: asked}
        if self._mcp is not None and scope["raw_path"] == MCP:
            send.route = MCP_ROUTE
            if (late := await self._mcp.answer(routed, receive, send)) is not None:
                await _send(late, send, is_head=False)
            return
        if is_form_address(scope):
            form = await read_form(receive)
            if not isinstance(form, Form):
                if form is not None:
                    await _send(form, send, is_head=False)
                return
            routed[FORM] = form
        elif is_head:
            routed["method"] = "GET"
        try:
            await self._app(routed, receive, _without_body(send) if is_head else send)
        finally:
            send.route = getattr(routed.get("route"), "path_format", NO_ROUTE)

    def _refusal(self, scope: Scope, asked: RequestContext) -> Answer | None:
        own_address = (scope.get("server") or ("",))[0]
        if (refusal := self._auth.hosts.refusal(asked.headers, own_address, scope["http_version"])) is not None:
            return refusal
        if self._limit is not None and asked.address:
            wait_s = self._limit.wait_s(asked.address, time.monotonic())
            if wait_s:
                return problem(429, "too many requests from this address", [(b"retry-after", b"%d" % wait_s)])
        if self._mcp is not None and scope["raw_path"] == MCP:
            return self._mcp.refusal(scope, asked)
        if is_form_address(scope):
            return form_refusal(scope, self._auth.hosts)
        if scope["method"] == "OPTIONS" and scope["raw_path"].endswith(WELL_KNOWN):
            preflight = self._service.preflight(asked)
            if preflight is not None:
                return preflight
        if scope["method"] not in METHODS:
            # the connection ends, so that a body is not waited for
            headers = [(b"allow", ", ".join(METHODS).encode()), (b"connection", b"close")]
            return problem(405, "only GET and HEAD are answered", headers)
        if _has_body(asked.headers):
            return problem(413, "a request body is not accepted", [(b"connection", b"close")])
        return None

    def _document(self, scope: Scope, asked: RequestContext) -> tuple[str, Answer] | None:
        """The route of a document and the answer; None where something else is asked for."""
        path: bytes = scope["raw_path"]
        if not path.endswith(WELL_KNOWN):
            return None
        if path == WELL_KNOWN:
            return HOST_ROUTE, self._service.host_document(asked)
        if path.startswith(AGENTS) and len(path) > len(AGENTS) + len(WELL_KNOWN):
            agent_id = unquote_to_bytes(path[len(AGENTS) : -len(WELL_KNOWN)])
            return AGENT_ROUTE, self._service.document(agent_id, asked)
        return None


def _is_page(path: bytes) -> bool:
    return path == b"/" or path.startswith(b"/ui/")


def _target(scope: Scope) -> bytes:
    query: bytes = scope["query_string"]
    return scope["raw_path"] + (b"?" + query if query else b"")


def _has_body(headers: Headers) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 ")) for name, value in headers
    )


async def _send(answer: Answer, send: Send, *, is_head: bool) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body})


class _Counted:
    """Sends on, and keeps what counts and access log tell of the answer.

    Args:
        send: sends.
        varies: whether the answer depends on the Accept header, which a cache must know.
    """

    def __init__(self, send: Send, *, varies: bool) -> None:
        self._send = send
        self._varies = varies
        self.route = REFUSED
        self.status = 0
        self.size = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self._varies and VARY not in message["headers"]:
                message = {**message, "headers": [*message["headers"], VARY]}
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
        await self._send(message)


def _without_body(send: Send) -> Send:
    """Headers as of a GET, and nothing after them (RFC 9110, 9.3.2)."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head
