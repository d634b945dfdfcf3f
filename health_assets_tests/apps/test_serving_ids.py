"""Agents of any name have a document, a score and a page."""

from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from health_assets.core.hours import HourRange
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import world_of
from health_assets_tests.support.projects import Project
from health_assets_tests.support.serving_made import Served

NAMES = ("we\"ird'\nagent", "ends\n", "a/b/c", "\N{SMILING FACE WITH SUNGLASSES} <b>&?#%41", ".well-known")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    project = Project(tmp_path_factory.mktemp("ids"), {})
    project.write_log("a.jsonl", [line(execution(name, name, START, session_id=name)) for name in NAMES])
    project.materialize(HourRange.of(START))
    with world_of(project, HourRange.of(START)).served() as server:
        server.wait_for_pages()
        yield server


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_an_agent_of_any_name_has_a_document_a_score_and_a_page(server: Served, name: str) -> None:
    base, own = f"http://127.0.0.1:{server.port}", quote(name, safe="")
    assert httpx.get(f"{base}/agents/{own}/.well-known/agent-health").json()["agent_id"] == name
    assert httpx.get(f"{base}/agents/{own}").json()["agent_id"] == name
    page = httpx.get(f"{base}/ui/agents/{own}", headers={"accept": "text/html"})
    assert page.status_code == 200, page.text
    assert httpx.get(f"{base}/ui/sessions/{own}").status_code == 200
