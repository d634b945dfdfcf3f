"""The addresses of silences."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from health_assets.apps.serving.forms import END_SILENCE, FORM, SILENCES
from health_assets.apps.serving.middleware import ASKED
from health_assets.apps.serving.pages.changing import Changes
from health_assets.apps.serving.pages.page_routes import How
from health_assets.apps.serving.pages.page_service import Pages
from health_assets.apps.serving.pages.silences_page import Draft, silences_page
from health_assets.apps.serving.routes import response_of

Typed = Annotated[str, Query(max_length=500)]


def silence_routes(pages: Pages, changes: Changes) -> APIRouter:
    """The list of silences with the form for another one, and what becomes of the forms, in threads."""
    router = APIRouter(tags=["pages"])

    @router.get(SILENCES, include_in_schema=False)
    def silences(
        request: Request,
        how: How = "html",
        agents: Annotated[str, Query(max_length=4096)] = "",
        rules: Annotated[list[str] | None, Query(max_length=50)] = None,
        start: Typed = "",
        until: Typed = "",
        reason: Typed = "",
        done: Annotated[str, Query(max_length=40)] = "",
    ) -> Response:
        """The silences, and a preview of the one that is filled in."""
        draft = Draft(agents=agents, rules=tuple(filter(None, rules or ())), start=start, until=until, reason=reason)
        asked = request.scope[ASKED]
        return response_of(pages.answer(asked, lambda look: silences_page(look, draft, done=done), hour=None, how=how))

    @router.post(SILENCES, include_in_schema=False)
    def add_silence(request: Request) -> Response:
        """Add a silence."""
        return response_of(changes.add_silence(request.scope[ASKED], request.scope[FORM]))

    @router.post(END_SILENCE, include_in_schema=False)
    def end_silence(request: Request) -> Response:
        """End a silence."""
        return response_of(changes.end_silence(request.scope[ASKED], request.scope[FORM]))

    return router
