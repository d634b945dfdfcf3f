"""The FastAPI application: routes behind the middleware, problems for errors, an OpenAPI document that says it all."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from health_assets.apps.serving import id_paths
from health_assets.apps.serving.access_log import AccessLog
from health_assets.apps.serving.answers import problem
from health_assets.apps.serving.auth import Auth
from health_assets.apps.serving.docs_page import docs_page
from health_assets.apps.serving.document_signing import DocumentSigner
from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.history.updater import Updater
from health_assets.apps.serving.mcp_server.backend import NO_SDK, Backend
from health_assets.apps.serving.metrics import Metrics
from health_assets.apps.serving.middleware import Middleware
from health_assets.apps.serving.pages.changing import Changes
from health_assets.apps.serving.pages.fleet_page import Wanted, fleet_page
from health_assets.apps.serving.pages.incident_routes import incident_routes
from health_assets.apps.serving.pages.page_routes import page_routes
from health_assets.apps.serving.pages.page_service import Pages
from health_assets.apps.serving.pages.sign_in_routes import sign_in_routes
from health_assets.apps.serving.pages.signing import Signing
from health_assets.apps.serving.pages.silence_routes import silence_routes
from health_assets.apps.serving.pages.usage_page import Wanted as WantedUsage
from health_assets.apps.serving.pages.usage_page import usage_page
from health_assets.apps.serving.refresher import Refresher, tell_operator
from health_assets.apps.serving.repeating import Repeated
from health_assets.apps.serving.request_counts import RequestCounts
from health_assets.apps.serving.routes import response_of, routes
from health_assets.apps.serving.schemas import Problem
from health_assets.apps.serving.service import Service
from health_assets.apps.serving.sessions import Sessions
from health_assets.apps.serving.signature_routes import signature_routes
from health_assets.apps.serving.startup_publishing import StartupPublishing
from health_assets.apps.serving.vocabulary import SCHEMA_VERSION
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets.warehouse.location import as_published

if TYPE_CHECKING:
    from health_assets.apps.serving.mcp_server.over_http import McpOverHttp

NO_PATH = "there is nothing at this path; what there is, is at /docs"
DESCRIPTION = (
    "Health documents of AI agents (draft-liang-agent-health-state-00) and the scores behind them, "
    "answered from memory and renewed from the warehouse in the background."
)
CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def create_app(
    settings: Settings, auth: Auth, log: AccessLog | None, on_fault: Callable[[str], None] = tell_operator
) -> FastAPI:
    """The application; its data is loaded and kept new while it runs.

    Args:
        settings: the warehouse or its published tables, the targets, and how to serve.
        auth: recognizes callers.
        log: the access log, which runs as long as the application; None for none.
        on_fault: told in a sentence when refreshing the data fails; by default it goes to standard error.

    Raises:
        HealthAssetsError: the warehouse's URL names no file, the signing key cannot be used, or MCP clients cannot be
            answered.
    """
    read = as_published(settings)
    refresher = Refresher(read, on_fault)
    # a token that is withdrawn must not wait for a snapshot, which may take minutes
    tokens = Repeated("tokens", auth.refresh, lambda: settings.serve_refresh_s, on_fault)
    sessions = Sessions(read)
    updater = Updater(read, on_fault) if settings.pages else None
    publishing = StartupPublishing(settings, on_fault)
    requests = RequestCounts()
    signer = DocumentSigner(settings.signing_key) if settings.signing_key else None
    service = Service(settings, auth, refresher, sessions, Metrics(settings, refresher, requests))
    mcp: McpOverHttp | None = None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if log is not None:
            log.start()
        publishing.start()
        refresher.start()
        if updater is not None:
            updater.start()
        tokens.start()
        async with nullcontext() if mcp is None else mcp.running():
            yield
        publishing.stop()
        tokens.stop()
        if updater is not None:
            updater.stop()
        refresher.stop()
        sessions.close()
        if log is not None:
            log.stop()

    id_paths.register()
    app = FastAPI(
        title="Health Assets",
        version=SCHEMA_VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,  # its own route is none that a request can be counted by
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    if signer is not None:
        app.include_router(signature_routes(service, signer))
    app.include_router(routes(service))
    if updater is not None:
        pages = Pages(settings, updater, has_tokens=auth.has_tokens, anonymous=auth.anonymous_view)
        updater.on_new = partial(_make_ahead, pages)
        updater.on_taken = pages.forget_older
        app.include_router(page_routes(pages, service))
        app.include_router(incident_routes(pages))
        changes = Changes(settings, updater, pages, on_fault)
        app.include_router(silence_routes(pages, changes))
        app.include_router(sign_in_routes(Signing(auth, pages.alone)))
        if settings.mcp:
            backend = Backend(settings=settings, updater=updater, pages=pages, service=service, changes=changes)
            mcp = _mcp(backend, auth, on_fault)
    elif settings.mcp:
        raise HealthAssetsError("HEALTH_MCP is on, but HEALTH_PAGES is off: tools are answered from the pages' history")
    app.add_middleware(
        Middleware,
        service=service,
        auth=auth,
        requests_per_s=settings.serve_rate_limit,
        requests=requests,
        log=log,
        has_pages=updater is not None,
        mcp=mcp,
    )
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _internal)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return JSONResponse(app.openapi())

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi()), headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})

    return app


def _mcp(backend: Backend, auth: Auth, on_fault: Callable[[str], None]) -> "McpOverHttp":
    """What answers MCP clients.

    Raises:
        HealthAssetsError: the extra is not installed.
    """
    try:
        from health_assets.apps.serving.mcp_server.over_http import McpOverHttp
    except ModuleNotFoundError as error:
        raise HealthAssetsError(NO_SDK) from error
    return McpOverHttp(backend, auth.hosts, on_fault)


def _make_ahead(pages: Pages, history: History) -> None:
    """Make what takes seconds of a large fleet before somebody asks for it."""
    pages.make_ahead(history, lambda look: fleet_page(look, Wanted()))
    pages.make_ahead(history, lambda look: usage_page(look, WantedUsage()))


def _http_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = [(name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items()]
    return response_of(problem(error.status_code, NO_PATH if error.status_code == 404 else error.detail, headers))


def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return response_of(problem(422, f"{first['loc'][-1]}: {first['msg']}"))


def _internal(_: Request, __: Exception) -> Response:
    return response_of(problem(500, "something went wrong here; it has been noted"))


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: what FastAPI knows, and HEAD, the token and the shape of problems."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        for path in document["paths"].values():
            path["head"] = _head_of(path["get"])
        components = document.setdefault("components", {})
        components.setdefault("schemas", {})["Problem"] = TypeAdapter(Problem).json_schema()
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        app.openapi_schema = document
    return app.openapi_schema


def _head_of(operation: dict[str, Any]) -> dict[str, Any]:
    head = deepcopy(operation)
    head["operationId"] += "_head"
    for response in head["responses"].values():
        response.pop("content", None)
    return head
