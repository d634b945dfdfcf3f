"""The addresses of incidents."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from health_assets.apps.serving.middleware import ASKED
from health_assets.apps.serving.pages.incidents_page import Days, Wanted, incident_page, incidents_page
from health_assets.apps.serving.pages.lists import most_rows
from health_assets.apps.serving.pages.page_routes import Hour, How, PageNumber, Text
from health_assets.apps.serving.pages.page_service import Pages
from health_assets.apps.serving.routes import response_of

Name = Annotated[str, Query(max_length=1024)]


def incident_routes(pages: Pages) -> APIRouter:
    """The list of incidents, and each of them."""
    router = APIRouter(tags=["pages"])

    @router.get("/ui/incidents", include_in_schema=False)
    def incidents(
        request: Request,
        hour: Hour = None,
        how: How = "html",
        q: Text = "",
        rule: Name = "",
        severity: Literal["critical", "warning", "info", ""] = "",
        agent: Name = "",
        days: Annotated[Literal["7", "30"], Query()] = "7",
        page: PageNumber = 1,
    ) -> Response:
        """The open incidents, and those of the last days."""
        back: Days = 7 if days == "7" else 30
        wanted = Wanted(
            text=q, rule=rule or None, severity=severity or None, agent=agent or None, days=back, page=page,
            most=most_rows(how),
        )  # fmt: skip
        asked = request.scope[ASKED]
        return response_of(pages.answer(asked, lambda look: incidents_page(look, wanted), hour=hour, how=how))

    @router.get("/ui/incidents/{incident_id}", include_in_schema=False)
    def incident(request: Request, incident_id: str, hour: Hour = None, how: How = "html") -> Response:
        """One incident with all that is known of it."""
        asked = request.scope[ASKED]
        return response_of(pages.answer(asked, lambda look: incident_page(look, incident_id), hour=hour, how=how))

    return router
