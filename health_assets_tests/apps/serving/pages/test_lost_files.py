"""A server whose history loses files says so on the page that needs them, copies them again, and shows the page."""

import json
import re
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import fill_all
from health_assets_tests.support.projects import Project
from health_assets_tests.support.serving_made import PATIENCE_S, Reply, Served, served

HOURS = HourRange(START, START + 3 * HOUR)
SENTENCE = "A part of the history was lost and is being copied again. Try again in a minute."
PAST = f"{START:%Y-%m-%dT%H}"
"""An hour whose files nobody has looked into before one of these is lost."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("lost"))
    made.write_log("a.jsonl", [line(execution(f"e-{hour:%H}", "blue", hour + timedelta(minutes=5))) for hour in HOURS])
    made.materialize(HOURS)
    return made


@pytest.fixture(scope="module")
def server(project: Project) -> Iterator[Served]:
    """The real server with the real processes beside it, once it has nothing more to copy."""
    folder = project.folder / "history"
    fill_all(project, folder, HOURS.end)
    with served(project.warehouse_path, pages=True, is_ready=False, history=folder, history_days=400) as running:
        assert _answered(running, "/").status == 200
        yield running


@pytest.mark.parametrize(
    ("lost", "address"),
    [
        (f"agents/{PAST}.face.*.arrow", f"/?hour={PAST}"),
        ("runs/*[0-9].arrow.index", f"/ui/agents/blue?hour={PAST}&format=json"),
        ("whole/files.*.arrow", "/ui/data"),
    ],
    ids=["face", "index", "small table"],
)
def test_a_page_whose_file_is_lost_is_answered_with_503_and_then_mended(
    project: Project, server: Served, lost: str, address: str
) -> None:
    found = list((project.folder / "history").glob(lost))
    assert found
    for path in found:
        path.unlink()
    refused = server.ask(address)
    assert refused.status == 503
    assert SENTENCE in _texts(refused.body.decode())
    assert str(project.folder) not in refused.body.decode()
    assert _answered(server, address).status == 200
    assert set((project.folder / "history").glob(lost)) - set(found), "it was copied again, not found somewhere"
    assert server.ask("/").status == 200
    assert not server.faults


def _texts(body: str) -> list[str]:
    """The text of each element, or what the JSON tells."""
    if body.startswith("{"):
        return list(json.loads(body).values())
    return [text.strip() for text in re.split(r"<[^>]*>", body)]


def _answered(server: Served, address: str) -> Reply:
    """The page, once it is no longer refused for now."""
    deadline = time.monotonic() + PATIENCE_S
    while (reply := server.ask(address)).status == 503:
        assert time.monotonic() < deadline, reply.body
        time.sleep(0.2)
    return reply
