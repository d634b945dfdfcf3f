"""The routes of signatures of health documents, and of the key that verifies them."""

from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import Response

from health_assets.apps.serving.document_signing import DocumentSigner
from health_assets.apps.serving.middleware import ASKED
from health_assets.apps.serving.routes import (
    ALWAYS,
    FROM_DATA,
    INVALID,
    NOT_FOUND,
    OPTIONAL_TOKEN,
    AgentId,
    response_of,
)
from health_assets.apps.serving.service import RequestContext, Service
from health_assets.core.signature_names import KEYS_PATH, SUFFIX

CONDITIONS = frozenset({b"if-none-match", b"if-modified-since"})
"""Headers that are about the document, where its signature is asked for."""
ANSWERS = {status: answer for status, answer in FROM_DATA.items() if status not in (200, 304)}


def signature_routes(service: Service, signer: DocumentSigner) -> APIRouter:
    """The routes, which come before those of agents, whose ids may hold a slash."""
    router = APIRouter(tags=["health documents"])

    @router.get(
        f"/.well-known/agent-health{SUFFIX}",
        summary="Signature of the health document of the host's own agent",
        response_class=Response,
        responses={**ANSWERS, **NOT_FOUND},
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def host_signature(request: Request) -> Response:
        """Compact JWS whose payload is the document."""
        return response_of(signer.signed(service.host_document(_unconditional(request))))

    @router.get(
        "/agents/{agent_id:id}/.well-known/agent-health" + SUFFIX,
        summary="Signature of an agent's health document",
        response_class=Response,
        responses={**ANSWERS, **NOT_FOUND, **INVALID},
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def signature(agent_id: AgentId, request: Request) -> Response:
        """Compact JWS whose payload is the document, as the caller sees it."""
        return response_of(signer.signed(service.document(agent_id.encode(), _unconditional(request))))

    @router.get(
        KEYS_PATH,
        summary="Key that verifies the signatures",
        response_class=Response,
        responses=ALWAYS,
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def keys() -> Response:
        """Set of JSON Web Keys (RFC 7517)."""
        return response_of(signer.keys())

    return router


def _unconditional(request: Request) -> RequestContext:
    asked: RequestContext = request.scope[ASKED]
    return replace(asked, headers=[header for header in asked.headers if header[0] not in CONDITIONS])
