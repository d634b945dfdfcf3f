"""The text of a line of a raw log: who may read it, without secrets, and what became of its file since."""

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest

from health_assets.apps.serving.log_lines import MOST_CHARACTERS, known_file, line_of
from health_assets.apps.serving.pages.line_page import WITHHELD
from health_assets.apps.serving.tokens import new_token
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.redaction import REDACTION
from health_assets.core.targets import load_targets
from health_assets_tests.apps.test_serving_doors import bearer, kept_as_json
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.projects import Project
from health_assets_tests.support.serving_made import Served

HOURS = HourRange(START, START + HOUR)
SECRET = "could not connect to postgresql://app:hunter2@db.example/health"
PAGE = {"Accept": "text/html"}


def _lines(count: int = 3) -> list[str]:
    return [
        line(execution(f"run-{number}", "alpha", START, 1.0, status="failure", error=f"{SECRET} <b>{number}</b>"))
        for number in range(1, count + 1)
    ]


LOADED = ("ingest",)


def _project(folder: Path, only: Sequence[str] | None = LOADED, **targets: object) -> Project:
    project = Project(folder, targets={"defaults": {}, **targets})
    project.write_log("team a/b.jsonl", _lines())
    project.materialize(HOURS, only=only)
    return project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return _project(tmp_path)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_of(_project(tmp_path_factory.mktemp("lines"), None), HOURS)


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Served]:
    with world.served(raw=world.project.raw) as running:
        yield running


def told(project: Project, file: str = "team a/b.jsonl", number: int = 2) -> dict:
    with project.warehouse.read() as session:
        known = known_file(session, file)
    redaction = load_targets(project.settings.targets).redact if project.settings.targets else REDACTION
    return line_of(project.settings, redaction, known, number)


def address(number: int = 2, file: str = "team a/b.jsonl") -> str:
    return f"/ui/line?file={quote(file, safe='')}&number={number}"


def test_the_text_of_a_line_is_one_click_from_where_its_place_is_shown(server: Served) -> None:
    page = server.ask("/ui/agents/alpha", headers=PAGE).body.decode()
    assert 'href="/ui/line?file=team%20a%2Fb.jsonl&amp;number=2"' in page or (
        'href="/ui/line?file=team%20a%2Fb.jsonl&number=2"' in page
    )
    shown = server.ask(address(), headers=PAGE)
    assert shown.status == 200
    body = shown.body.decode()
    assert "run-2" in body and "run-1" not in body and "&lt;b&gt;2&lt;/b&gt;" in body
    assert "hunter2" not in body and "postgresql://[redacted]@db.example" in body
    assert "The file is as it was when it was loaded." in body


def test_only_logs_that_were_loaded_can_be_read(world: World, server: Served) -> None:
    (world.project.raw / "never-loaded.jsonl").write_text(_lines(1)[0])
    (world.project.raw.parent / "outside.jsonl").write_text(_lines(1)[0])
    for file in ("never-loaded.jsonl", "../outside.jsonl", "/etc/passwd", "", "\0", "team a"):
        reply = server.ask(address(1, file), headers=PAGE)
        assert reply.status in (404, 422) and b"run-1" not in reply.body, file
    assert not server.faults


def test_who_may_not_read_texts_of_logs_reads_none_here(world: World) -> None:
    made = {role: new_token(role, role) for role in ("read", "operate")}
    made["team"] = new_token("team", "operate", ["red"])
    tokens = kept_as_json(*(kept for _, kept in made.values()))
    with world.served(raw=world.project.raw, tokens=tokens) as running:
        for name, status in [("read", 403), ("team", 403), ("operate", 200)]:
            reply = running.ask(address(), headers=bearer(made[name][0]) | PAGE)
            assert reply.status == status, name
            assert (b"run-2" in reply.body) == (status == 200), name
        assert WITHHELD in running.ask(address(), headers=bearer(made["read"][0]) | PAGE).body.decode()
        assert running.ask(address(), headers=PAGE).status == 401
        assert "/ui/line" not in running.ask("/ui/agents/alpha", headers=bearer(made["read"][0])).body.decode()


def test_where_an_agent_is_personal_lines_are_for_the_full_view(tmp_path: Path) -> None:
    world = world_of(_project(tmp_path, None, agents={"mine": {"personal": True}}), HOURS)
    with world.served(raw=world.project.raw) as running:
        assert running.ask(address(), headers=PAGE).status == 403


def test_a_file_that_only_grew_still_has_the_line(project: Project) -> None:
    with (project.raw / "team a" / "b.jsonl").open("a") as log:
        log.write(_lines(1)[0] + "\n")
    assert (told(project)["state"], json.loads(told(project)["text"])["execution_id"]) == ("grown", "run-2")


def test_a_file_with_other_times_and_the_same_bytes_is_as_it_was(project: Project) -> None:
    assert told(project)["state"] == "same"
    os.utime(project.raw / "team a" / "b.jsonl", (1, 1))
    assert told(project)["state"] == "same"


def test_a_file_that_changed_is_said_to_have_changed(project: Project) -> None:
    (project.raw / "team a" / "b.jsonl").write_text("\n".join(reversed(_lines())) + "\n")
    assert told(project, number=1)["state"] == "changed"
    (project.raw / "team a" / "b.jsonl").write_text(_lines(1)[0] + "\n")
    assert told(project) == {"state": "short", "text": None, "is_converted": False, "cut_characters": 0}


def test_a_file_that_is_gone_is_said_to_be_gone(project: Project) -> None:
    (project.raw / "team a" / "b.jsonl").unlink()
    assert told(project)["state"] == "gone"
    assert told(project, "other.jsonl")["state"] == "unknown"


def test_a_packed_log_is_unpacked_and_a_long_line_is_cut(tmp_path: Path) -> None:
    project = Project(tmp_path)
    long = line(execution("long", "alpha", START, 1.0, status="failure", error="x" * 2 * MOST_CHARACTERS))
    (project.raw / "a.jsonl.gz").parent.mkdir(parents=True, exist_ok=True)
    (project.raw / "a.jsonl.gz").write_bytes(gzip.compress(f"{_lines(1)[0]}\n{long}\n".encode()))
    project.materialize(HOURS, only=LOADED)
    assert json.loads(told(project, "a.jsonl.gz", 1)["text"])["execution_id"] == "run-1"
    cut = told(project, "a.jsonl.gz", 2)
    assert len(cut["text"]) == MOST_CHARACTERS and cut["cut_characters"] == len(long) - MOST_CHARACTERS


def test_patterns_of_the_targets_are_redacted(tmp_path: Path) -> None:
    project = _project(tmp_path, redact={"patterns": ["run-[0-9]+"]})
    assert "run-2" not in told(project)["text"]
