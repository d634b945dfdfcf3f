"""The text of a line of a raw log: who may read it, without secrets, and what became of its file since."""

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from health_assets.apps.serving.line_text import shown_text
from health_assets.apps.serving.log_lines import MOST_CHARACTERS, known_file, line_of
from health_assets.apps.serving.pages.line_page import WITHHELD
from health_assets.apps.serving.tokens import new_token
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.redaction import REDACTION, Redaction
from health_assets.core.targets import load_targets
from health_assets.logs.limits import WITHOUT_LIMIT
from health_assets.logs.stores import list_files
from health_assets.logs.written_lines import written_line
from health_assets_tests.apps.test_serving_auth import bearer, kept_as_json
from health_assets_tests.support import coding_sessions_made
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


DEEP = "[" * 100_000
"""A line that no parser of Python reads."""


def _project(
    folder: Path, only: Sequence[str] | None = LOADED, lines: Sequence[str] | None = None, **targets: object
) -> Project:
    project = Project(folder, targets={"defaults": {}, **targets})
    project.write_log("team a/b.jsonl", _lines() if lines is None else lines)
    project.materialize(HOURS, only=only)
    return project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return _project(tmp_path)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_of(_project(tmp_path_factory.mktemp("lines"), None, [*_lines(), DEEP]), HOURS)


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Served]:
    with world.served(raw=world.project.raw) as running:
        yield running


def told(project: Project, file: str = "team a/b.jsonl", number: int = 2) -> dict:
    with project.warehouse.read() as session:
        known = known_file(session, file)
    redaction = load_targets(project.settings.targets).redact if project.settings.targets else REDACTION
    return line_of(project.settings, redaction, known, number)


def test_of_a_coding_agents_session_no_text_is_shown_but_what_its_reader_made_of_it(tmp_path: Path) -> None:
    project = _project(tmp_path)
    path = project.write_bytes("s.jsonl", coding_sessions_made.as_lines(coding_sessions_made.CLAUDE_SESSION))
    project.materialize(HOURS, only=LOADED)
    texts = [told(project, "s.jsonl", number)["text"] or "" for number in range(1, path.read_text().count("\n") + 1)]
    assert any('"type": "execution"' in text for text in texts)
    assert not any("uuid" in text or "parentUuid" in text for text in texts)


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
    laid_out = json.dumps(json.loads(long), indent=2)
    assert cut["text"] == laid_out[:MOST_CHARACTERS] and cut["cut_characters"] == len(laid_out) - MOST_CHARACTERS


def test_patterns_of_the_targets_are_redacted(tmp_path: Path) -> None:
    project = _project(tmp_path, redact={"patterns": ["run-[0-9]+"]})
    assert "run-2" not in told(project)["text"]


def shown(text: str, **redact: Any) -> str:
    return shown_text(text, Redaction(**redact))


@pytest.mark.parametrize(
    "text",
    [
        r'{"error":"a\u0040b.example p\u0061ssword: geheim99"}',
        r'INFO {"error":"a\u0040b.example p\u0061ssword: geheim99"}',
        r'{"error":"a\u0040b.example p\u0061ssword: geheim99"} {"error":"a@b.example"}',
        r'{"error":"a\u0040b.example p\u0061ssword: geheim99","deep":' + DEEP,
    ],
    ids=["JSON", "behind a prefix", "several documents", "nested too deeply"],
)
def test_a_secret_that_is_written_with_escapes_is_not_shown(text: str) -> None:
    found = shown(text, emails=True)
    assert "geheim99" not in found and "b.example" not in found and found.count("[redacted]") >= 2


def test_a_pattern_sees_a_text_and_not_how_json_writes_it() -> None:
    assert "geheim" not in shown(r'{"error":"first\ngeheim"}', patterns=[r"\bgeheim\b"])


@pytest.mark.parametrize(
    "text",
    ['{"command":"mysql","args":["-u","root","-pgeheim99"]}', '{"secret":[11,99,12]}', '{"password":"geheim99"}'],
)
def test_layout_hides_no_secret_from_a_pattern(text: str) -> None:
    assert "99" not in shown(text)


def test_json_is_laid_out_and_anything_else_is_as_it_is_written() -> None:
    assert shown('{"a": 1, "b": "é"}') == '{\n  "a": 1,\n  "b": "é"\n}'
    assert shown('{"password":"geheim99","b":{}}') == '{\n  "password": [redacted],\n  "b": {}\n}'
    assert shown(r'{"a": "\ud800"}') == r"{" + "\n" + r'  "a": "\\ud800"' + "\n}"
    for text in ("plain text", "12 13", "", "{not JSON", r"a\nb\\u0061\u0022"):
        assert shown(text) == text


def test_a_line_that_is_nested_too_deeply_is_shown(server: Served) -> None:
    reply = server.ask(address(4), headers=PAGE)
    assert reply.status == 200 and b"[[[[" in reply.body
    assert not server.faults


HEADER = "Jun 07, 2026 10:00:00 AM io.opentelemetry.exporter.logging.otlp export"


def test_a_line_that_holds_no_data_is_shown_and_has_not_changed(tmp_path: Path) -> None:
    project = _project(tmp_path, lines=[_lines(1)[0], HEADER, f"INFO 10:00:00 {_lines(2)[1]}"])
    assert (told(project)["state"], told(project)["text"]) == ("same", HEADER)
    assert told(project, number=3)["text"].startswith("INFO 10:00:00 {")
    assert told(project, number=4)["state"] == "short"


def test_all_documents_of_a_line_are_shown(tmp_path: Path) -> None:
    project = _project(tmp_path, lines=["".join(_lines())])
    assert all(f'"run-{number}"' in told(project, number=1)["text"] for number in (1, 2, 3))


def test_all_that_a_reader_makes_of_a_record_is_shown(tmp_path: Path) -> None:
    project = Project(tmp_path)
    records = [json.loads(text) for text in _lines()]
    (project.raw / "list.json").write_text(json.dumps(records, indent=2))
    project.materialize(HOURS, only=LOADED)
    found = told(project, "list.json", 2)
    assert (json.loads(found["text"])["execution_id"], found["is_converted"]) == ("run-2", True)


@pytest.mark.parametrize(
    ("content", "number", "expected"),
    [
        (b"one\n\nthree", 1, "one"),
        (b"one\n\nthree", 2, ""),
        (b"one\n\nthree", 3, "three"),
        (b"one\n\nthree", 4, None),
        (b"one\n", 2, None),
        (b"\xef\xbb\xbfone\r\ntwo\r\n", 1, "one"),
        (b"one\r\ntwo\r\n", 2, "two"),
        (b"one\n\0\0\0two\n", 2, "two"),
        (b"one\n\xff\n", 2, "\ufffd"),
        ("one\ntwo\n".encode("utf-16"), 2, "two"),
        (b"x" * (9 << 20) + b"\ntwo\n", 2, "two"),
        (b"\n" * (9 << 20) + b"last", (9 << 20) + 1, "last"),
    ],
    ids=range(12),
)
def test_a_line_is_found_by_its_number(tmp_path: Path, content: bytes, number: int, expected: str | None) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    [file] = list_files(tmp_path)
    assert written_line(file, number, WITHOUT_LIMIT).text == expected
