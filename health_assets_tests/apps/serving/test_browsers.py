"""A browser at an address of the API gets the page of the same thing, a program gets JSON."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from health_assets.apps.serving.browsers import page_for
from health_assets_tests.support.incidents_made import make_warehouse
from health_assets_tests.support.serving_made import Served, readers_in_this_process, served

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}
ADDRESSES = {
    "/agents": "/",
    "/agents/crawler-1": "/ui/agents/crawler-1",
    "/agents/a%2Fb%20c": "/ui/agents/a%2Fb%20c",
    "/models": "/ui/models",
    "/tools": "/ui/tools",
    "/usage": "/ui/usage",
    "/sessions/s-1": "/ui/sessions/s-1",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path, targets = make_warehouse(tmp_path_factory.mktemp("browsers"))
    with readers_in_this_process(), served(path, pages=True, targets=targets) as running:
        running.wait_for_pages()
        yield running


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_browser_at_an_address_of_the_api_is_led_to_its_page(server: Served, address: str) -> None:
    reply = server.ask(address, headers=BROWSER)
    assert (reply.status, reply.headers["location"]) == (303, ADDRESSES[address])
    assert reply.headers["vary"] == "accept"


def test_a_browser_at_an_agent_gets_the_page_and_a_program_gets_json(server: Served) -> None:
    where = server.ask("/agents/crawler-1", headers=BROWSER).headers["location"]
    page = server.ask(where, headers=BROWSER)
    assert page.status == 200 and page.headers["content-type"].startswith("text/html")
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json, text/html;q=0.5"}, {"Accept": "text/html;q=x"}):
        reply = server.ask("/agents/crawler-1", headers=accept)
        assert reply.status == 200 and reply.json["agent_id"] == "crawler-1", accept
        assert reply.headers["vary"] == "accept", "a cache must not give a browser the JSON"


@pytest.mark.parametrize("address", ["/ui", "/ui/", "/ui/agents"])
def test_an_address_of_a_page_that_was_cut_short_leads_to_the_fleet(server: Served, address: str) -> None:
    reply = server.ask(address)
    assert (reply.status, reply.headers["location"]) == (303, "/")


def test_a_health_document_is_json_for_browsers_too(server: Served) -> None:
    for address in ("/agents/crawler-1/.well-known/agent-health", "/models/best?candidates=a", "/status", "/metrics"):
        assert server.ask(address, headers=BROWSER).status == 200, address


def test_without_pages_a_browser_gets_json(tmp_path: Path) -> None:
    path, targets = make_warehouse(tmp_path)
    with readers_in_this_process(), served(path, pages=False, targets=targets) as running:
        assert running.ask("/agents/crawler-1", headers=BROWSER).json["agent_id"] == "crawler-1"


@pytest.mark.parametrize("path", [b"/agents/", b"/agents/a/.well-known/agent-health", b"/", b"/ui/agents/a"])
def test_what_has_no_page_leads_nowhere(path: bytes) -> None:
    assert page_for(path, [(b"accept", b"text/html")]) is None
