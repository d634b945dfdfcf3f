"""The routes, and what the OpenAPI document says about them. Each hands its request to the `service`."""

from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from health_assets.apps.serving import schemas
from health_assets.apps.serving.answers import Answer, problem
from health_assets.apps.serving.middleware import ASKED
from health_assets.apps.serving.ordering import Order, of_now
from health_assets.apps.serving.service import AgentListQuery, ListQuery, Service
from health_assets.apps.serving.session_schemas import SessionScores
from health_assets.scoring.verdict import ORDER

MOST_AGENTS_A_PAGE = 1000
MOST_ITEMS_A_PAGE = 1000
MOST_OFFSET = 100_000_000

AgentId = Annotated[
    str,
    Path(
        min_length=1,
        description="Id of the agent, percent-encoded; a slash in it may also stand for itself.",
    ),
]
OnlyAgent = Annotated[str | None, Query(description="Only this agent's; an agent that is not known has none.")]
Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS_A_PAGE, description="Items on a page.")]
Offset = Annotated[int, Query(ge=0, le=MOST_OFFSET, description="Items to leave out before it.")]
UsageSort = Annotated[
    Literal["cost", "tokens", "cost_per_success"],
    Query(description="The greatest first; those of which it is not known last."),
]
SessionId = Annotated[str, Path(min_length=1, description="Id of the session.")]
Candidates = Annotated[
    str,
    Query(
        pattern="^[^,]+(,[^,]+)*$",
        description="Names of models with commas between, the preferred one first.",
        examples=["claude-opus-4,gpt-5"],
    ),
]

VALIDATORS = {
    name: {"description": description, "schema": {"type": "string"}}
    for name, description in {
        "ETag": "Strong tag of exactly this answer, for If-None-Match.",
        "Last-Modified": "When the data was loaded.",
        "Cache-Control": "How long the answer may be kept.",
    }.items()
}
TEXT, OPEN_METRICS = "text/plain", "application/openmetrics-text"
OPTIONAL_TOKEN: dict[str, Any] = {"security": [{}, {"token": []}]}


def problems(**whens: str) -> dict[int | str, dict[str, Any]]:
    """Declare error responses: names of `HTTPStatus` with a sentence each."""
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {int(HTTPStatus[name]): {"description": when, "content": content} for name, when in whens.items()}


ALWAYS = problems(
    REQUEST_TIMEOUT="The request took too long to arrive.",
    REQUEST_ENTITY_TOO_LARGE="A request body is not accepted.",
    TOO_MANY_REQUESTS="This address asks too often; Retry-After says when to come back.",
    REQUEST_HEADER_FIELDS_TOO_LARGE="The head of the request is too large.",
    BAD_REQUEST="The request is not valid HTTP.",
    METHOD_NOT_ALLOWED="Only GET and HEAD are answered.",
    MISDIRECTED_REQUEST="The request is for a host name that is not answered here.",
)
FROM_DATA: dict[int | str, dict[str, Any]] = {
    **ALWAYS,
    200: {"headers": VALIDATORS},
    304: {"description": "The client has this answer already.", "headers": VALIDATORS},
    **problems(
        SERVICE_UNAVAILABLE="There is no data yet, or too much is asked at once; Retry-After says when.",
        UNAUTHORIZED="This needs a token; health documents do so only where the operator has closed them.",
        FORBIDDEN="The token may not do this.",
    ),
}
INVALID = problems(UNPROCESSABLE_ENTITY="A parameter is not what it must be; the detail names it.")
NOT_FOUND = problems(NOT_FOUND="There is none of this name.")


def routes(service: Service) -> APIRouter:
    """All routes of the service."""
    router = APIRouter()

    @router.get(
        "/.well-known/agent-health",
        summary="Health document of the host's own agent",
        tags=["health documents"],
        response_model=schemas.HealthDocument,
        responses={**FROM_DATA, **NOT_FOUND},
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def host_health_document(request: Request) -> Response:
        """The agent that is configured as this host's own."""
        return response_of(service.host_document(request.scope[ASKED]))

    @router.get(
        "/agents/{agent_id:id}/.well-known/agent-health",
        summary="Health document of an agent",
        tags=["health documents"],
        response_model=schemas.HealthDocument,
        responses={**FROM_DATA, **NOT_FOUND, **INVALID},
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def health_document(agent_id: AgentId, request: Request) -> Response:
        """The Agent Health State as of the end of the newest hour, without authentication.

        Of a personal agent only the token's holder sees more than a coarse status (section 8).
        """
        return response_of(service.document(agent_id.encode(), request.scope[ASKED]))

    @router.get(
        "/agents",
        summary="Agents, the most urgent first",
        tags=["scores"],
        response_model=schemas.AgentPage,
        responses={**FROM_DATA, **INVALID},
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def agents(
        request: Request,
        state: Annotated[
            Literal["healthy", "degraded", "unhealthy", "inactive", "provisional"] | None,
            Query(description="Only agents in it; one that looks healthy after too few runs is `provisional`."),
        ] = None,
        now: Annotated[
            Literal["failing", "suspect", "recovering", "ok", "quiet"] | None,
            Query(description="Only agents that do this in the last hours; not together with `state`."),
        ] = None,
        sort: Annotated[
            Order,
            Query(
                description="`verdict` starts with agents that are failing now, then suspect and recovering ones, then "
                f"goes by state, provisional scores before good ones: {', '.join(ORDER)}; `score` goes by the number, "
                "of equal ones that with fewer points at stake first. With a minus the best come first."
            ),
        ] = "verdict",
        limit: Annotated[int, Query(ge=1, le=MOST_AGENTS_A_PAGE, description="Agents on a page.")] = 100,
        offset: Annotated[int, Query(ge=0, le=MOST_OFFSET, description="Agents to leave out before it.")] = 0,
    ) -> Response:
        """Agents, those that are failing now first, then lowest score of a verdict first; agents without a score last.

        A score that rests on fewer than n_full executions is provisional.
        """
        if state is not None and now is not None:
            return response_of(problem(422, "now: give state or now, not both"))
        page = AgentListQuery(chosen=state if now is None else of_now(now), offset=offset, limit=limit, order=sort)
        return response_of(service.agents(page, request.scope[ASKED]))

    @router.get(
        "/agents/{agent_id:id}",
        summary="An agent's score with everything behind it",
        tags=["scores"],
        response_model=schemas.AgentScore,
        responses={**FROM_DATA, **NOT_FOUND, **INVALID},
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def agent(agent_id: AgentId, request: Request) -> Response:
        """The Agent Health Model's dimensions, the points that each cost, and the inputs and targets behind them."""
        return response_of(service.agent(agent_id.encode(), request.scope[ASKED]))

    @router.get(
        "/models",
        summary="Rolling health of all models",
        tags=["models"],
        response_model=schemas.ModelList,
        responses=FROM_DATA,
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def models(request: Request) -> Response:
        """The last calls of every model, by name."""
        return response_of(service.models(request.scope[ASKED]))

    @router.get(
        "/models/best",
        summary="The healthiest of several models",
        tags=["models"],
        response_model=schemas.BestModel,
        responses={**FROM_DATA, **INVALID},
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def best_model(request: Request, candidates: Candidates) -> Response:
        """The model with the highest score: one that was not seen counts as 1, and of equal ones the first is taken."""
        return response_of(service.best_model(candidates.split(","), request.scope[ASKED]))

    @router.get(
        "/tools",
        summary="Tools that agents called, the worst first",
        tags=["tools and usage"],
        response_model=schemas.ToolPage,
        responses={**FROM_DATA, **INVALID},
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def tools(request: Request, agent_id: OnlyAgent = None, limit: Limit = 100, offset: Offset = 0) -> Response:
        """Every tool of every agent in the window: calls, failures and latencies.

        The worst is the one whose failure share is at least the greatest, with 95 % certainty, so that one failure of
        one call does not lead. Calls of no known agent have an empty `agent_id`.
        """
        return response_of(
            service.listed(
                ListQuery(name="tools", order="worst", offset=offset, limit=limit, agent_id=agent_id),
                request.scope[ASKED],
            )
        )

    @router.get(
        "/usage",
        summary="Tokens and cost of agents",
        tags=["tools and usage"],
        response_model=schemas.UsagePage,
        responses={**FROM_DATA, **INVALID},
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def usage(
        request: Request,
        agent_id: OnlyAgent = None,
        sort: UsageSort = "cost",
        limit: Limit = 100,
        offset: Offset = 0,
    ) -> Response:
        """Every agent with an execution in the window; at least that much, where not all executions tell theirs."""
        return response_of(
            service.listed(
                ListQuery(name="usage", order=sort, offset=offset, limit=limit, agent_id=agent_id), request.scope[ASKED]
            )
        )

    @router.get(
        "/usage/breakdown",
        summary="Tokens and cost of agents by version, model and user",
        tags=["tools and usage"],
        response_model=schemas.UsageBreakdownPage,
        responses={**FROM_DATA, **INVALID},
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def usage_breakdown(
        request: Request,
        agent_id: OnlyAgent = None,
        sort: UsageSort = "cost",
        limit: Limit = 100,
        offset: Offset = 0,
    ) -> Response:
        """Every version, model and user that executions in the window name, by agent; they add up to `/usage`."""
        page = ListQuery(name="usage_breakdown", order=sort, offset=offset, limit=limit, agent_id=agent_id)
        return response_of(service.listed(page, request.scope[ASKED]))

    @router.get(
        "/sessions/{session_id:id}",
        summary="A session's reliability and consistency",
        tags=["sessions"],
        response_model=SessionScores,
        responses={**FROM_DATA, **NOT_FOUND, **INVALID},
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def session(session_id: SessionId, request: Request) -> Response:
        """Both metrics with the signals of each trace, the flagged traces and how they were aggregated."""
        return response_of(await service.session(session_id, request.scope[ASKED]))

    @router.get(
        "/status", summary="How old the data is", tags=["server"], responses=ALWAYS, openapi_extra=OPTIONAL_TOKEN
    )
    async def status(request: Request) -> schemas.ServerStatus:
        """The data that is served, its hour, and the reason why it is not newer."""
        return JSONResponse(service.status(request.scope[ASKED]), headers={"Cache-Control": "no-store"})  # type: ignore[return-value]

    @router.get(
        "/metrics",
        summary="Metrics for Prometheus",
        tags=["server"],
        response_class=PlainTextResponse,
        responses={
            **ALWAYS,
            **problems(UNAUTHORIZED="This needs a token.", FORBIDDEN="The token may not do this."),
            200: {"content": {TEXT: {"schema": {"type": "string"}}, OPEN_METRICS: {"schema": {"type": "string"}}}},
        },
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def metrics(request: Request) -> Response:
        """Agents by state, the fleet's score, hours, rejected lines, incidents and this server's own requests."""
        return response_of(service.metrics(request.scope[ASKED]))

    @router.get(
        "/livez", summary="Whether the server lives", tags=["server"], responses=ALWAYS, openapi_extra=OPTIONAL_TOKEN
    )
    async def livez() -> schemas.Probe:
        """Answer a supervisor that restarts processes which do not."""
        return response_of(service.liveness())  # type: ignore[return-value]

    @router.get(
        "/readyz",
        summary="Whether there is data to answer from",
        tags=["server"],
        responses={
            **ALWAYS,
            **problems(SERVICE_UNAVAILABLE="There is no data yet, or it is too old; the detail says."),
        },
        openapi_extra=OPTIONAL_TOKEN,
    )
    async def readyz() -> schemas.Probe:
        """Tell a balancer whether the server is ready; HEALTH_SERVE_MAX_DATA_AGE_S says when data is too old."""
        return response_of(service.readiness())  # type: ignore[return-value]

    return router


def response_of(answer: Answer) -> Response:
    """An answer as Starlette sends it."""
    response = Response(answer.body, answer.status)
    response.raw_headers = answer.headers
    return response
