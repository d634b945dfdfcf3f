"""Requests of every kind for every page: as its parameters are declared, and as they are not."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from hypothesis import given

from health_assets.apps.serving.app import create_app
from health_assets.apps.serving.auth import Auth
from health_assets.core.settings import Settings
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.pages_made import World, demo_world
from health_assets_tests.support.serving_made import Served

HOURS = 3


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return demo_world(tmp_path_factory.mktemp("pages"), HOURS)


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Served]:
    with world.served() as running:
        assert running.ask("/").status == 200
        yield running


def declared(settings: Settings) -> dict[str, Any]:
    """An OpenAPI document of the pages, which the public one leaves out."""
    made = APIRoute.__init__

    def shown(route: APIRoute, *args: Any, **options: Any) -> None:
        made(route, *args, **{**options, "include_in_schema": True})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(APIRoute, "__init__", shown)
        auth = Auth(settings, "localhost", lambda _: None, is_local=True)
        routes = create_app(settings, auth, None).routes
    document = get_openapi(title="pages", version="1", routes=routes)
    pages = {path: methods for path, methods in document["paths"].items() if path == "/" or path.startswith("/ui/")}
    return {**document, "paths": pages}


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
def test_no_request_for_a_page_is_a_fault_of_the_server(
    server: Served, world: World, mode: schemathesis.GenerationMode
) -> None:
    schema = schemathesis.openapi.from_dict(declared(world.project.settings.model_copy(update={"pages": True})))
    asked = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        asked.add(operation.label)

        @given(case=operation.as_strategy(generation_mode=mode))
        @tried_with(5, 60)
        def check(case: schemathesis.Case) -> None:
            assert case.call(base_url=f"http://127.0.0.1:{server.port}").status_code < 500

        if mode is schemathesis.GenerationMode.POSITIVE or operation.query or operation.body:
            check()
    assert {"GET /", "GET /ui/agents/{agent_id}", "POST /ui/silences", "POST /ui/sign-in"} <= asked
    assert not server.faults
