"""The MCP server on standard input and output, for the user of this machine: `health-assets mcp`.

What belongs here: the parts of the endpoint that answer, without HTTP. What does not: answers (`calls`).

It reads the warehouse as the endpoint does: a process of its own copies what changed to a history, from which all is
answered, so a run that wants to write is never kept waiting. The history is this server's own, beside that of the
endpoint, whose settings may differ.
"""

import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
from mcp.server.stdio import stdio_server

from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.auth import Auth, Caller
from health_assets.apps.serving.history.updater import Updater, history_folder
from health_assets.apps.serving.mcp_server.backend import Backend
from health_assets.apps.serving.mcp_server.protocol import mcp_server
from health_assets.apps.serving.metrics import Metrics
from health_assets.apps.serving.pages.changing import Changes
from health_assets.apps.serving.pages.page_service import Pages
from health_assets.apps.serving.refresher import Refresher
from health_assets.apps.serving.request_counts import RequestCounts
from health_assets.apps.serving.service import RequestContext, Service
from health_assets.apps.serving.sessions import Sessions
from health_assets.apps.serving.startup_publishing import StartupPublishing
from health_assets.apps.serving.tokens import Role
from health_assets.core.settings import Settings
from health_assets.warehouse.location import as_published

READER_TIMEOUT_S = 55.0
"""How long an answer from the warehouse may take; clients wait for a minute, and nobody else waits here."""


def serve_stdio(settings: Settings, role: Role, user: str, on_fault: Callable[[str], None]) -> None:
    """Answer messages on standard input until it ends.

    Args:
        settings: the warehouse and the targets.
        role: what the client may do; texts of errors it sees in any case, since its user can read the logs.
        user: name of the user of this machine, who is noted for changes.
        on_fault: told in a sentence what the user must know.

    Raises:
        HealthAssetsError: the warehouse's URL names no file.
    """
    logging.getLogger("mcp").setLevel(logging.ERROR)  # what a client does wrong is no event
    read = as_published(settings)
    read = read.model_copy(update={"history": own_history(read)})
    updater, sessions = Updater(read, on_fault), Sessions(read, READER_TIMEOUT_S)
    pages = Pages(settings, updater)
    updater.on_taken = pages.forget_older
    backend = Backend(
        settings=settings,
        updater=updater,
        pages=pages,
        service=_service(read, sessions, on_fault),
        changes=Changes(settings, updater, pages, on_fault),
    )
    caller = Caller(name=user, standing=role, view=AccessScope(is_full=role == "operate", is_local_user=True))
    asked = RequestContext(headers=[], caller=caller)
    publishing = StartupPublishing(settings, on_fault)
    publishing.start()
    updater.start()
    try:
        with closing(sessions):
            anyio.run(_serve, backend, asked, on_fault)
    finally:
        updater.stop()
        publishing.stop()


def own_history(settings: Settings) -> Path:
    """The folder of this server's history, beside that of the endpoint."""
    folder = history_folder(settings)
    return folder.with_name(f"{folder.name}.mcp")


def _service(settings: Settings, sessions: Sessions, on_fault: Callable[[str], None]) -> Service:
    """The service, of which only the parts that ask the warehouse are used: nothing is loaded into memory."""
    refresher = Refresher(settings, on_fault)
    auth = Auth(settings, "localhost", on_fault, is_local=True)
    return Service(settings, auth, refresher, sessions, Metrics(settings, refresher, RequestCounts()))


async def _serve(backend: Backend, asked: RequestContext, on_fault: Callable[[str], None]) -> None:
    server = mcp_server(backend, lambda _: asked, on_fault)
    async with stdio_server() as (messages, answers):
        await server.run(messages, answers, server.create_initialization_options())
