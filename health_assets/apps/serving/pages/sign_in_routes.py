"""The addresses of signing in and out."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from health_assets.apps.serving.forms import FORM, SIGN_IN, SIGN_OUT, is_tls
from health_assets.apps.serving.middleware import ASKED
from health_assets.apps.serving.pages.signing import MOST_TARGET, Signing
from health_assets.apps.serving.routes import response_of

Next = Annotated[str, Query(max_length=MOST_TARGET, description="Page to go on to.")]


def sign_in_routes(signing: Signing) -> APIRouter:
    """The form, and what becomes of it. They count tries, so they run on the event loop, one at a time."""
    router = APIRouter(tags=["pages"])

    @router.get(SIGN_IN, include_in_schema=False)
    async def form(request: Request, next: Next = "/") -> Response:
        """Show the form to sign in."""
        return response_of(signing.form(request.scope[ASKED], next))

    @router.post(SIGN_IN, include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        """Give a cookie for a token."""
        scope = request.scope
        return response_of(signing.sign_in(scope[ASKED], scope[FORM], is_tls=is_tls(scope)))

    @router.post(SIGN_OUT, include_in_schema=False)
    async def sign_out(request: Request) -> Response:
        """Take the cookie away."""
        scope = request.scope
        return response_of(signing.sign_out(scope[ASKED], scope[FORM], is_tls=is_tls(scope)))

    return router
