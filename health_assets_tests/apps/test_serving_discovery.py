"""Discovery: cards and proxies as the docs show them, and browsers on other origins."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from health_assets.consumer import health_url
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import load_settings
from health_assets.core.targets import Targets
from health_assets_tests.support.projects import REPOSITORY
from health_assets_tests.support.serving_made import Served, fill_agents, readers_in_this_process, score, served, state

PAGE = (REPOSITORY / "docs/discovery.md").read_text(encoding="utf-8")
AGENTS = ("invoice-reader", "https://agents.example/crm")
DOCUMENT = "/agents/invoice-reader/.well-known/agent-health"
APP = "https://app.example"


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("discovery") / "w.duckdb"
    fill_agents(path, *((state(agent), score(agent)) for agent in AGENTS))
    return path


@pytest.fixture(scope="module")
def server(warehouse: Path) -> Iterator[Served]:
    with readers_in_this_process(), served(warehouse) as running:
        yield running


def test_every_location_of_the_proxy_in_the_docs_leads_to_the_document_of_its_agent(server: Served) -> None:
    locations = re.findall(r"location = (\S+) \{\s+proxy_pass http://127\.0\.0\.1:8080(\S+);", block("nginx"))
    assert [server.ask(path).json["agent_id"] for _, path in locations] == list(AGENTS)
    for public, _ in locations:
        base = public.removesuffix("/.well-known/agent-health")
        assert health_url(f"https://agents.example{base}") == f"https://agents.example{public}"


def test_the_card_in_the_docs_names_the_endpoint_that_a_consumer_derives_from_the_card(server: Served) -> None:
    [extension] = json.loads(block("json"))["capabilities"]["extensions"]
    assert health_url("https://agents.example/invoice-reader/.well-known/agent.json") == extension["params"]["url"]
    assert server.ask(DOCUMENT).json["schema_version"] == extension["params"]["schema_version"]


def test_a_name_becomes_the_uri_of_the_docs_and_its_path_is_the_one_they_show() -> None:
    targets = Targets.model_validate(yaml.safe_load(block("yaml")))
    uri = targets.names[0].agent
    assert f"`/agents/{quote(uri, safe='')}/.well-known/agent-health`" in PAGE


def test_other_origins_read_nothing_by_default(server: Served) -> None:
    answer = server.ask(DOCUMENT, headers={"Origin": APP})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert server.ask(DOCUMENT, "OPTIONS", {"Origin": APP}).status == 405


@pytest.mark.parametrize(("origins", "allowed"), [((APP,), APP), (("*",), "*")])
def test_an_origin_that_is_named_reads_documents_and_nothing_else(
    warehouse: Path, origins: tuple[str, ...], allowed: str
) -> None:
    with readers_in_this_process(), served(warehouse, serve_cors_origins=origins) as server:
        fresh = server.ask(DOCUMENT, headers={"Origin": APP})
        kept = server.ask(DOCUMENT, headers={"Origin": APP, "If-None-Match": fresh.headers["etag"]})
        missing = server.ask("/agents/nobody/.well-known/agent-health", headers={"Origin": APP})
        spelled = server.ask("/%61gents/invoice-reader/.well-known/agent-health", headers={"Origin": APP})
        assert [answer.status for answer in (fresh, kept, missing, spelled)] == [200, 304, 404, 200]
        for answer in (fresh, kept, missing, spelled):
            assert answer.headers["access-control-allow-origin"] == allowed
            assert "access-control-allow-credentials" not in answer.headers
        asked = {"Origin": APP, "Access-Control-Request-Method": "GET"}
        preflight = server.ask(DOCUMENT, "OPTIONS", asked)
        assert (preflight.status, preflight.body) == (204, b"")
        assert "content-length" not in preflight.headers and "transfer-encoding" not in preflight.headers
        assert preflight.headers["access-control-allow-methods"] == "GET, HEAD"
        assert "access-control-allow-origin" not in server.ask("/agents", headers={"Origin": APP}).headers
        assert server.ask("/agents", "OPTIONS", asked).status == 405
        stranger = server.ask(DOCUMENT, headers={"Origin": "https://evil.example"})
        other = server.ask(DOCUMENT, "OPTIONS", {"Origin": "https://evil.example"})
        if allowed == APP:
            assert (stranger.status, stranger.headers["vary"]) == (200, "origin")
            assert "access-control-allow-origin" not in {**stranger.headers, **other.headers}


@pytest.mark.parametrize("value", ["app.example", "https://app.example/", "https://a b", "ftp://app.example"])
def test_an_origin_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HEALTH_SERVE_CORS_ORIGINS", value)
    with pytest.raises(HealthAssetsError, match="HEALTH_SERVE_CORS_ORIGINS: an origin is written like"):
        load_settings()
