"""Texts of errors: shown to the local user, withheld elsewhere with the command that shows them."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from health_assets.apps.serving.tokens import new_token
from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.apps.test_serving_auth import bearer, kept_as_json
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.projects import Project
from health_assets_tests.support.serving_made import Served

HOURS = HourRange(START, START + HOUR)
SECRET = "sk-ant-api03-" + "a" * 40
ERROR = f"401 Unauthorized, key {SECRET}"
PAGES = ("/ui/agents/alpha", "/ui/models", "/ui/tools", "/ui/sessions/s-1")
ELSEWHERE = {"X-Forwarded-For": "192.0.2.1"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    project = Project(tmp_path_factory.mktemp("texts"), targets={"agents": {"mine": {"personal": False}}})
    at = START + timedelta(minutes=5)
    call = {
        "call_id": "c-1", "ended_at": at.isoformat(), "status": "failure", "error": ERROR, "agent_id": "alpha",
        "execution_id": "e-1",
    }  # fmt: skip
    records = [
        execution("e-1", "alpha", at, 1.0, status="failure", error=ERROR, session_id="s-1"),
        {"type": "model_call", "model": "m", **call},
        {"type": "tool_call", "tool": "search", **call},
    ]
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(HOURS)
    return world_of(project, HOURS)


@pytest.fixture(scope="module")
def on_this_machine(world: World) -> Iterator[Served]:
    with world.served() as running:
        yield running


@pytest.mark.parametrize("path", ["/", *PAGES[:3]])
def test_on_this_machine_texts_are_shown(on_this_machine: Served, path: str) -> None:
    body = on_this_machine.ask(path).body.decode()
    assert "401 Unauthorized" in body and "withheld" not in body
    assert SECRET not in body and "[redacted]" in body


@pytest.mark.parametrize("path", ["/models", "/tools"])
def test_on_this_machine_the_api_tells_errors_too(on_this_machine: Served, path: str) -> None:
    assert "401 Unauthorized" in on_this_machine.ask(path).body.decode()
    assert "401 Unauthorized" not in on_this_machine.ask(path, headers=ELSEWHERE).body.decode()


@pytest.mark.parametrize("path", ["/", *PAGES[:3]])
def test_elsewhere_errors_are_withheld_with_the_command_that_shows_them(world: World, path: str) -> None:
    made = {role: new_token(role, role) for role in ("read", "operate")}
    with world.served(tokens=kept_as_json(*(kept for _, kept in made.values()))) as running:
        body = running.ask(path, headers=bearer(made["read"][0])).body.decode()
        assert "401 Unauthorized" not in body and "withheld" in body
        assert "health-assets report --agent" in body and "health-assets token new --role operate" in body
        assert "401 Unauthorized" in running.ask(path, headers=bearer(made["operate"][0])).body.decode()


def test_what_a_proxy_passes_on_is_not_from_this_machine(on_this_machine: Served) -> None:
    for header in ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"):
        body = on_this_machine.ask("/ui/agents/alpha", headers={header: "for=192.0.2.1"}).body.decode()
        assert "401 Unauthorized" not in body and "withheld" in body, header


def test_a_closed_endpoint_tells_nobody_anything(world: World) -> None:
    with world.served(anonymous_role="documents") as running:
        assert running.ask("/ui/agents/alpha").status == 401
