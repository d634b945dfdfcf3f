"""The addresses of the pages. Each hands its request to the module of its page."""

from contextlib import suppress
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from health_assets.apps.serving.middleware import ASKED
from health_assets.apps.serving.pages import releases_page as releases_module
from health_assets.apps.serving.pages import session_page as session_module
from health_assets.apps.serving.pages import sessions_page as sessions_module
from health_assets.apps.serving.pages import tools_page as tools_module
from health_assets.apps.serving.pages import trace_page as trace_module
from health_assets.apps.serving.pages.agent_page import WantedOfAgent, agent_page
from health_assets.apps.serving.pages.data_page import Days, Part, WantedData, data_page
from health_assets.apps.serving.pages.fleet_page import Group, Sort, Wanted, fleet_page
from health_assets.apps.serving.pages.line_page import Wanted as WantedLine
from health_assets.apps.serving.pages.line_page import line_page
from health_assets.apps.serving.pages.lists import most_rows
from health_assets.apps.serving.pages.models_page import models_page
from health_assets.apps.serving.pages.page import Format, Page
from health_assets.apps.serving.pages.page_service import Pages
from health_assets.apps.serving.pages.releases_page import Of as OfReleases
from health_assets.apps.serving.pages.releases_page import Show as ShowReleases
from health_assets.apps.serving.pages.releases_page import releases_page
from health_assets.apps.serving.pages.reliability_page import By as ReliabilityBy
from health_assets.apps.serving.pages.reliability_page import Kind as ReliabilityKind
from health_assets.apps.serving.pages.reliability_page import Sort as ReliabilitySort
from health_assets.apps.serving.pages.reliability_page import TaskSort, reliability_page
from health_assets.apps.serving.pages.reliability_page import Wanted as ReliabilityWanted
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.session_page import session_page
from health_assets.apps.serving.pages.sessions_page import Show as ShowSessions
from health_assets.apps.serving.pages.sessions_page import Sort as SessionSort
from health_assets.apps.serving.pages.sessions_page import sessions_page
from health_assets.apps.serving.pages.survey_page import survey_page
from health_assets.apps.serving.pages.tools_page import By, tools_page
from health_assets.apps.serving.pages.trace_page import Show, trace_page
from health_assets.apps.serving.pages.usage_page import By as UsageBy
from health_assets.apps.serving.pages.usage_page import Days as UsageDays
from health_assets.apps.serving.pages.usage_page import Sort as UsageSort
from health_assets.apps.serving.pages.usage_page import Wanted as UsageWanted
from health_assets.apps.serving.pages.usage_page import usage_page
from health_assets.apps.serving.routes import SessionId, response_of
from health_assets.apps.serving.service import Service
from health_assets.apps.serving.trace_question import Because, TraceQuestion
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import parse_hour
from health_assets.systems.survey.names import ALL_PLATFORMS

Hour = Annotated[
    str | None, Query(max_length=40, description="Hour to look back to, like 2026-06-07T13; by default the newest.")
]
How = Annotated[Format, Query(alias="format", description="The page for people, or its twin for programs.")]
Text = Annotated[str, Query(max_length=1024, description="Part of a name, in any case.")]
PageNumber = Annotated[int, Query(ge=1, le=1_000_000, description="Page of the list.")]

RunAgent = Annotated[str | None, Query(max_length=1024, description="Agent of the run; its id may be another one's.")]
RunBecause = Annotated[Because, Query(description="What the run failed with.")]
RunValue = Annotated[str, Query(max_length=1024, description="Name of that tool, model or version.")]
RunUntil = Annotated[
    str | None, Query(max_length=40, description="Hour in which the run ended, at the latest; by default the newest.")
]
ShowRows = Annotated[Show, Query(description="The rows to show.")]
SpanId = Annotated[str, Query(max_length=1024, description="Only this span and those below it.")]

KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
STATIC_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page_routes(pages: Pages, service: Service) -> APIRouter:
    """All pages, and the files that they load.

    Args:
        pages: makes the pages.
        service: looks up what only the warehouse knows.
    """
    router = APIRouter(tags=["pages"])

    @router.get("/", summary="The fleet", include_in_schema=False)
    def fleet(
        request: Request,
        hour: Hour = None,
        how: How = "html",
        q: Text = "",
        state: Literal["healthy", "degraded", "unhealthy", "inactive", "provisional", ""] = "",
        group: Group = "state",
        of: Annotated[str | None, Query(max_length=1024)] = None,
        sort: Sort = "urgency",
        page: PageNumber = 1,
    ) -> Response:
        """Every agent as a square, the score over the last weeks, who got worse."""
        wanted = Wanted(text=q, state=state or None, group=group, of=of, sort=sort, page=page, most=most_rows(how))
        asked = request.scope[ASKED]
        return response_of(pages.answer(asked, lambda look: fleet_page(look, wanted), hour=hour, how=how))

    @router.get("/ui", include_in_schema=False)
    @router.get("/ui/", include_in_schema=False)
    @router.get("/ui/agents", include_in_schema=False)
    def to_the_fleet() -> Response:
        """The page of the fleet, for an address that somebody cut short."""
        return RedirectResponse("/", 303)

    @router.get("/ui/agents/{agent_id:id}", summary="An agent", include_in_schema=False)
    def agent(
        request: Request,
        agent_id: str,
        hour: Hour = None,
        how: How = "html",
        days: Literal["1", "7", "30"] = "7",
        against: Annotated[str, Query(max_length=40, description="Another hour to compare with.")] = "",
        versions: Annotated[list[str] | None, Query(max_length=20, description="Versions to compare.")] = None,
    ) -> Response:
        """The causes of an agent's score: the points it lost, the executions that cost them, and what changed."""

        def made(look: ScopedHistory) -> Page:
            other = parse_hour(against) if against else None
            return agent_page(
                look, agent_id, WantedOfAgent(days=int(days), against=other, versions=_named(versions or []))
            )

        return response_of(pages.answer(request.scope[ASKED], made, hour=hour, how=how))

    @router.get("/ui/sessions", summary="Sessions", include_in_schema=False)
    def sessions(
        request: Request,
        hour: Hour = None,
        how: How = "html",
        q: Text = "",
        show: ShowSessions = "all",
        sort: SessionSort = "failures",
        page: PageNumber = 1,
    ) -> Response:
        """Sessions of the last hours, those with the most failed runs first."""
        wanted = sessions_module.Wanted(text=q, show=show, sort=sort, page=page, most=most_rows(how))
        asked = request.scope[ASKED]
        return response_of(pages.answer(asked, lambda look: sessions_page(look, wanted), hour=hour, how=how))

    @router.get("/ui/sessions/{session_id:id}", summary="A session", include_in_schema=False)
    async def session(session_id: SessionId, request: Request, hour: Hour = None, how: How = "html") -> Response:
        """Both scores of a session, why they are what they are, and its runs over time."""
        asked = request.scope[ASKED]
        runs = await service.runs(session_id, known_hour(hour), asked)
        wanted = session_module.Wanted(session_id=session_id, runs=runs.data, why_not=runs.why_not)
        made = await run_in_threadpool(pages.answer, asked, lambda look: session_page(look, wanted), hour=hour, how=how)
        return response_of(made)

    async def traced(
        request: Request,
        question: TraceQuestion,
        hour: str | None,
        how: Format,
        show: Show | None,
        span: str,
        page: int,
    ) -> Response:
        asked = request.scope[ASKED]
        found = await service.trace(question, asked)
        wanted = trace_module.Wanted(
            question=question, trace=found.data, why_not=found.why_not, show=show, span=span, page=page,
            most=trace_module.most_rows(how),
        )  # fmt: skip
        made = await run_in_threadpool(pages.answer, asked, lambda look: trace_page(look, wanted), hour=hour, how=how)
        return response_of(made)

    @router.get("/ui/traces", summary="A run that failed", include_in_schema=False)
    async def example(
        request: Request,
        agent: RunAgent = None,
        because: RunBecause | None = None,
        value: RunValue = "",
        until: RunUntil = None,
        hour: Hour = None,
        how: How = "html",
        show: ShowRows | None = None,
        span: SpanId = "",
        page: PageNumber = 1,
    ) -> Response:
        """The newest run of an agent that failed with a tool, a model or a version."""
        question = TraceQuestion(agent_id=agent, because=because, value=value, until=known_hour(until))
        return await traced(request, question, hour, how, show, span, page)

    @router.get("/ui/traces/{run_id:id}", summary="A run", include_in_schema=False)
    async def trace(
        request: Request,
        run_id: Annotated[str, Path(min_length=1, description="Id of the run.")],
        agent: RunAgent = None,
        until: RunUntil = None,
        hour: Hour = None,
        how: How = "html",
        show: ShowRows | None = None,
        span: SpanId = "",
        page: PageNumber = 1,
    ) -> Response:
        """What happened inside a run, over time."""
        question = TraceQuestion(run_id=run_id, agent_id=agent, until=known_hour(until))
        return await traced(request, question, hour, how, show, span, page)

    @router.get("/ui/line", summary="A line of a raw log", include_in_schema=False)
    async def line(
        request: Request,
        file: Annotated[str, Query(min_length=1, max_length=4096, description="The raw log, below the raw root.")],
        number: Annotated[int, Query(ge=1, le=10**12, description="Number of the line, from 1.")],
        hour: Hour = None,
        how: How = "html",
    ) -> Response:
        """The text of a line of a raw log, without secrets."""
        asked = request.scope[ASKED]
        found = await service.line(file, number, asked)
        wanted = WantedLine(file=file, number=number, line=found.data, why_not=found.why_not)
        made = await run_in_threadpool(pages.answer, asked, lambda look: line_page(look, wanted), hour=hour, how=how)
        return response_of(made)

    @router.get("/ui/models", summary="Models", include_in_schema=False)
    def models(request: Request, hour: Hour = None, how: How = "html") -> Response:
        """Rolling health of all models, degraded ones first."""
        return response_of(pages.answer(request.scope[ASKED], models_page, hour=hour, how=how))

    @router.get("/ui/releases", summary="Releases", include_in_schema=False)
    def releases(
        request: Request,
        hour: Hour = None,
        how: How = "html",
        q: Text = "",
        show: ShowReleases = "all",
        of: OfReleases = "all",
        page: PageNumber = 1,
    ) -> Response:
        """New versions and models, those that are worse than what ran before them first."""
        wanted = releases_module.Wanted(text=q, show=show, of=of, page=page, most=most_rows(how))
        asked = request.scope[ASKED]
        return response_of(pages.answer(asked, lambda look: releases_page(look, wanted), hour=hour, how=how))

    @router.get("/ui/tools", summary="Tools", include_in_schema=False)
    def tools(
        request: Request,
        hour: Hour = None,
        how: How = "html",
        q: Text = "",
        agent: Annotated[str | None, Query(max_length=1024, description="Only this agent's.")] = None,
        by: By = "agent",
        page: PageNumber = 1,
    ) -> Response:
        """Tools that agents called, the worst first."""
        wanted = tools_module.Wanted(text=q, agent=agent, by=by, page=page, most=most_rows(how))
        asked = request.scope[ASKED]
        return response_of(pages.answer(asked, lambda look: tools_page(look, wanted), hour=hour, how=how))

    @router.get("/ui/usage", summary="Usage", include_in_schema=False)
    def usage(
        request: Request,
        hour: Hour = None,
        how: How = "html",
        q: Text = "",
        sort: UsageSort = "cost",
        days: UsageDays = "30",
        by: UsageBy = "agent",
        page: PageNumber = 1,
    ) -> Response:
        """The cost of a success, and who and what takes the tokens and the dollars."""
        wanted = UsageWanted(text=q, sort=sort, days=days, by=by, page=page, most=most_rows(how))
        asked = request.scope[ASKED]
        return response_of(pages.answer(asked, lambda look: usage_page(look, wanted), hour=hour, how=how))

    @router.get("/ui/reliability", summary="Reliability", include_in_schema=False)
    def reliability(
        request: Request,
        hour: Hour = None,
        how: How = "html",
        q: Text = "",
        agent: Annotated[str | None, Query(max_length=1024)] = None,
        sort: ReliabilitySort = "reliability",
        tasks: TaskSort = "outcome_agreement",
        kind: ReliabilityKind | None = None,
        by: ReliabilityBy = "agent",
        page: PageNumber = 1,
        task_page: PageNumber = 1,
    ) -> Response:
        """Repeated tasks and what they tell of agents: metrics by agent, and outcomes by task."""
        wanted = ReliabilityWanted(
            text=q, agent=agent, sort=sort, tasks=tasks, by=by, kind=kind, page=page, task_page=task_page,
            most=most_rows(how),
        )  # fmt: skip
        asked = request.scope[ASKED]
        return response_of(pages.answer(asked, lambda look: reliability_page(look, wanted), hour=hour, how=how))

    @router.get("/ui/survey", summary="The survey", include_in_schema=False)
    def survey(
        request: Request,
        hour: Hour = None,
        how: How = "html",
        platform: Annotated[str, Query(max_length=1024)] = ALL_PLATFORMS,
    ) -> Response:
        """The agents of the registry that answer with a health document, counted by platform."""
        asked = request.scope[ASKED]
        return response_of(pages.answer(asked, lambda look: survey_page(look, platform), hour=hour, how=how))

    @router.get("/ui/data", summary="The data", include_in_schema=False)
    def data(
        request: Request,
        hour: Hour = None,
        how: How = "html",
        part: Part | None = None,
        days: Days = "2",
        line: Text = "",
        log: Text = "",
        checks: PageNumber = 1,
        reasons: PageNumber = 1,
        files: PageNumber = 1,
    ) -> Response:
        """Whether the data is complete: hours, checks, rejected lines, raw logs, versions of formulas."""
        whole = part if how != "html" else None
        wanted = WantedData(days=days, line=line, log=log, checks=checks, reasons=reasons, files=files, part=whole)
        asked = request.scope[ASKED]
        return response_of(pages.answer(asked, lambda look: data_page(look, wanted), hour=hour, how=how))

    @router.get("/ui/static/{name:path}", include_in_schema=False)
    def static(name: str) -> Response:
        """A file that pages load."""
        found = _static().get(name)
        if found is None:
            raise HTTPException(404)
        headers = {"cache-control": "max-age=3600", "x-content-type-options": "nosniff"}
        kind = KINDS[name.rsplit(".", 1)[-1]]
        return Response(found, media_type=kind, headers={**headers, "content-security-policy": STATIC_POLICY})

    return router


def _named(versions: list[str]) -> tuple[str, ...]:
    """Versions as they are asked for: one text with commas between them, or each by itself."""
    if len(versions) == 1:
        return tuple(versions[0].split(",")) if versions[0] else ()
    return tuple(versions)


def known_hour(text: str | None) -> datetime | None:
    """An hour as somebody wrote it; None where it is none, which the page itself says."""
    with suppress(HealthAssetsError):
        return parse_hour(text) if text else None
    return None


@cache
def _static() -> dict[str, bytes]:
    """The files that pages load, by their names."""
    folder = files("health_assets.apps.serving.pages") / "static"
    found = {one.name: one.read_bytes() for one in folder.iterdir() if one.name.rsplit(".", 1)[-1] in KINDS}
    vendored = folder / "vendor"
    found |= {f"vendor/{one.name}": one.read_bytes() for one in vendored.iterdir() if one.name[-3:] in ("css", ".js")}
    return found
