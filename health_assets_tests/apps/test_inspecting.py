"""Inspection of files: what each was taken for, what it holds, and one useful sentence about any other file."""

import gzip
import io
import json
import pickle
import sqlite3
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from rich.console import Console

from health_assets.apps.inspecting.block import print_formats, print_inspection
from health_assets.apps.inspecting.suggesting import suggested
from health_assets.core.errors import HealthAssetsError
from health_assets.core.targets import Targets
from health_assets.logs.formats import DESCRIPTIONS, FORMATS
from health_assets.logs.formats.format_settings import FormatSettings, own_formats
from health_assets.logs.inspection import FILES_AT_ONCE, Inspection, files_at, inspected
from health_assets.logs.limits import current_limits
from health_assets.logs.stores import RawFile
from health_assets_tests.support import coding_sessions_made
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import REPOSITORY

SAMPLE_LOGS = REPOSITORY / "health_assets_tests" / "support" / "sample_logs"


def inspection(path: Path) -> Inspection:
    return inspection_of(files_at(path))


def inspection_of(files: list[RawFile]) -> Inspection:
    [found] = inspected(files, Targets(), current_limits())
    return found


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def shown(found: Inspection) -> str:
    console = Console(file=io.StringIO(), width=120)
    print_inspection(console, found)
    return console.file.getvalue()  # type: ignore[attr-defined]


# -- files of known formats --------------------------------------------------------------------------------------------


def test_a_log_is_told_with_its_records_and_what_is_rejected(tmp_path: Path) -> None:
    lines = [
        line(execution("e1", "planner", START)), line(execution("e2", "planner", START, status="failure")),
        line(execution("e3", "reader", START, status="great")), "no record", line({"type": "model_call", "call_id": "c1",
        "model": "m", "ended_at": START.isoformat(), "status": "success"}),
    ]  # fmt: skip
    found = inspection(written(tmp_path / "a.jsonl", "\n".join(lines)))
    assert (found.formats, found.look, found.passed_over, found.is_useful) == (["the native format"], None, None, True)
    runs = found.records["execution"]
    assert (runs.lines, runs.values, runs.agents) == (2, {"success": 1, "failure": 1}, {"planner": 2})
    assert found.records.keys() == {"execution", "model_call"} and found.records["model_call"].lines == 1
    assert [(one.lines, one.first_line) for one in found.rejections] == [(1, 3), (1, 4)]
    text = shown(found)
    assert text.startswith("a.jsonl is the native format\n")
    assert (
        "executions  2 1 failure, 1 success 2 planner" in text or "executions  2 1 success, 1 failure 2 planner" in text
    )
    assert "1 × not valid JSON (first in line 4)" in text


def test_spans_are_counted_by_their_kind() -> None:
    [path] = SAMPLE_LOGS.glob("traces.jsonl")
    found = inspection(path)
    assert found.formats == ["OTLP-JSON"] and found.records["span"].values == {"agent": 1, "chat": 1}


def test_what_is_ignored_is_told_with_its_reason(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", coding_sessions_made.as_lines(coding_sessions_made.CLAUDE_SESSION))
    found = inspection(path)
    assert found.formats == ["Claude Code"] and found.records["execution"].lines > 0
    assert any("without a hand-back" in note or "belongs to no turn" in note for note in found.notes)
    assert "ignored or mended" in shown(found)


def test_a_name_that_a_load_passes_over_is_told_with_those_that_count(tmp_path: Path) -> None:
    found = inspection(written(tmp_path / "app.log", line(execution("e1", "planner", START))))
    assert found.records["execution"].lines == 1 and not found.is_useful
    assert "a load passes it over for its name; names that count end in .jsonl" in shown(found)


def test_a_file_of_two_formats_is_told_with_both(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({
        "name": "planner log", "recognize": [{"fields": ["execution_id"]}],
        "make": [{"type": "execution", "fields": {"agent_id": "agent_id", "ended_at": "ended_at", "status": "status"}}],
    }))  # fmt: skip
    path = written(tmp_path / "a.jsonl", line(execution("e1", "planner", START)))
    [file] = files_at(path, FormatSettings(own_formats(tmp_path / "own.yaml")))
    found = inspection_of([file])
    assert set(found.formats) == {"the native format", "planner log"} and not found.records
    assert "so nothing of it is read" in shown(found)


def test_files_of_a_folder_are_told_apart(tmp_path: Path) -> None:
    for number in range(FILES_AT_ONCE + 2):
        lines = [line(execution(f"e{number}", "planner", START))] * number
        written(tmp_path / f"{number:03d}.jsonl", "\n".join([*lines, "x"]))
    found = list(inspected(files_at(tmp_path), Targets(), current_limits()))
    assert [one.name for one in found] == [f"{number:03d}.jsonl" for number in range(FILES_AT_ONCE + 2)]
    assert [sum(own.lines for own in one.records.values()) for one in found] == [*range(FILES_AT_ONCE + 2)]
    assert [one.rejections[0].first_line for one in found] == [number + 1 for number in range(FILES_AT_ONCE + 2)]


def test_a_folder_is_all_of_its_logs_and_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    assert {file.source_file for file in files_at(SAMPLE_LOGS)} == {path.name for path in SAMPLE_LOGS.iterdir()}
    with pytest.raises(HealthAssetsError, match="has a name that counts"):
        files_at(tmp_path)
    with pytest.raises(HealthAssetsError, match=r"cannot look at .*: No such file"):
        files_at(tmp_path / "none.json")


def test_a_file_of_a_folder_that_is_passed_over_for_its_name_is_told(tmp_path: Path) -> None:
    written(tmp_path / "app.log", line(execution("e", "planner", START)))
    ended = command_here("inspect", str(tmp_path))
    assert (ended.returncode, ended.stdout.count("app.log: it is not read, for its name: names that count")) == (1, 1)
    written(tmp_path / "app.jsonl", line(execution("e", "planner", START)))
    ended = command_here("inspect", str(tmp_path))
    assert ended.returncode == 0 and "app.log: it is not read, for its name" in ended.stdout
    (tmp_path / "empty").mkdir()
    assert "has a name that counts" in command_here("inspect", str(tmp_path), str(tmp_path / "empty")).stderr


def test_a_log_that_is_named_as_gzip_and_is_none_is_read_as_it_is(tmp_path: Path) -> None:
    found = inspection(written(tmp_path / "a.jsonl.gz", f"{line(execution('e1', 'planner', START))}\n"))
    assert (found.records["execution"].lines, found.look) == (1, None)


def test_a_gzip_file_of_which_nothing_can_be_read_is_not_called_empty(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(line(execution("e1", "planner", START)).encode())[:8])
    found = inspection(tmp_path / "a.jsonl.gz")
    assert found.look == "cannot be read: the gzip stream ends early: the file is cut off"
    assert "looks like" not in shown(found)


def test_a_log_that_cannot_be_opened_hides_no_other_ones_of_its_folder(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", line(execution("e", "planner", START)))
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    ended = command_here("inspect", str(tmp_path))
    assert ended.returncode == 1
    assert "a.jsonl is the native format" in ended.stdout
    assert "2 files, of which 1 could not be used" in ended.stdout
    assert "gone.jsonl" in ended.stderr


# -- files of other things ---------------------------------------------------------------------------------------------


def saved(write: Any) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def tar_archive(buffer: io.BytesIO) -> None:
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))


def database(folder: Path) -> bytes:
    path = folder / "db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE a (b)")
    connection.commit()
    connection.close()
    return path.read_bytes()


STRANGE: dict[str, tuple[str, bytes | str]] = {
    "CSV; write one JSON object a line": ("people.json", "id,name,age\n1,Ann,30\n2,Bob,31\n"),
    "tab-separated values": ("table.jsonl", "a\tb\n1\t2\n"),
    "YAML": ("conf.json", "a: 1\nb:\n  - c\n"),
    "TOML or INI": ("project.json", '[project]\nname = "x"\n'),
    "Markdown": ("readme.json", "# Title\n\nSome text.\n"),
    "plain text": ("poem.jsonl", "roses are red\nviolets are blue\n"),
    "a script; it is no log": ("run.json", "#!/bin/sh\necho 1\n"),
    "a patch; it is no log": ("change.json", "diff --git a/x b/x\n--- a/x\n+++ b/x\n"),
    "a Jupyter notebook": ("n.json", json.dumps({"cells": [], "metadata": {}, "nbformat": 4})),
    "a package's own file": ("package.json", json.dumps({"name": "x", "dependencies": {}}, indent=2)),
    "GeoJSON": ("map.json", json.dumps({"type": "FeatureCollection", "features": []})),
    "recorded web traffic (HAR)": ("web.json", json.dumps({"log": {"version": "1.2", "entries": []}})),
    "objects of Kubernetes; it tells lines of a program and no runs": ("k.json", json.dumps({"apiVersion": "v1", "kind": "List"})),
    "events of CloudTrail": ("trail.json", json.dumps({"Records": [{"eventVersion": "1", "eventName": "X"}]})),
    "entries of Google Cloud Logging": ("g.jsonl", json.dumps({"insertId": "a", "logName": "x", "severity": "INFO"})),
    "lines of a program's log; it tells": ("app.jsonl", json.dumps({"time": "2026-01-01", "level": "info", "msg": "hello"})),
    "lines of a program's log": ("py.jsonl", "2026-06-07 12:00:00,123 INFO root: started\n" * 3),
    "a web server's log": ("web.jsonl", '127.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 12\n' * 3),
    "traces of Jaeger; export them as OTLP-JSON": ("j.json", json.dumps({"data": [{"traceID": "a", "spans": []}]})),
    "chat messages without times and outcome": ("ft.jsonl", json.dumps({"messages": [{"role": "user"}]})),
    "answers of a model's API": ("answer.json", json.dumps({"id": "1", "object": "chat.completion", "choices": []})),
    "JSON objects with the fields ts, bot, ok; give each line one of our types": (
        "own.jsonl", json.dumps({"ts": 1, "bot": "b", "ok": True})),
    "JSON without an object": ("numbers.json", "[1, 2, 3]"),
    "JSON that is not valid": ("half.json", '{"a": 1, "b": '),
    "an HTML page": ("page.json", "<!doctype html><html></html>"),
    "XML": ("junit.json", "<testsuites/>"),
    "an image; it is no log": ("picture.json", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    "a program; it is no log": ("tool.jsonl", b"\x7fELF\2\1\1\0" + bytes(200)),
    "gzip data; add .gz to its name": ("packed.json", gzip.compress(b'{"a": 1}\n')),
    "a Parquet file": ("rows.json", saved(lambda to: pq.write_table(pa.table({"a": [1]}), to))),
    "a NumPy array": ("array.json", saved(lambda to: np.save(to, np.arange(3)))),
    "a Python pickle": ("object.json", pickle.dumps({"a": 1})),
    "binary data": ("archive.json", saved(tar_archive)),
    "an empty file; nothing was written there": ("empty.json", ""),
    "NUL bytes and blanks alone": ("zeros.jsonl", bytes(100)),
}  # fmt: skip


@pytest.mark.parametrize("look", STRANGE)
def test_a_file_that_no_reader_knows_is_one_sentence_that_says_what_it_looks_like_and_what_would_help(
    look: str, tmp_path: Path
) -> None:
    name, content = STRANGE[look]
    found = inspection(written(tmp_path / name, content))
    assert not found.formats and not found.records and not found.is_useful
    assert shown(found).startswith(f"{name} is of no format that is known; it looks like {look}")


def test_a_database_and_a_zip_are_told_as_such(tmp_path: Path) -> None:
    found = inspection(written(tmp_path / "db.jsonl", database(tmp_path)))
    assert found.look == "looks like an SQLite database; write one JSON object a line"
    archive = saved(lambda to: zipfile.ZipFile(to, "w").writestr("a.txt", "x"))
    assert "Inspect AI cannot read it" in shown(inspection(written(tmp_path / "files.json", archive)))


def test_there_are_thirty_strange_files() -> None:
    assert len(STRANGE) >= 30


# -- the list of formats, and a first declaration ----------------------------------------------------------------------


def test_every_format_is_listed_as_the_docs_list_it() -> None:
    assert DESCRIPTIONS.keys() == {known.name for known in FORMATS}
    page = (REPOSITORY / "docs" / "formats.md").read_text("utf-8")
    for name, (_, becomes) in DESCRIPTIONS.items():
        rows = [row for row in page.splitlines() if row.startswith("| ") and name in row.split("|")[1]]
        assert name == "the native format" or any(becomes in row for row in rows), f"docs/formats.md lacks {name}"
    console = Console(file=io.StringIO(), width=200)
    print_formats(console, DESCRIPTIONS)
    assert all(name in console.file.getvalue() for name in DESCRIPTIONS)  # type: ignore[attr-defined]


RUNS = [
    {"id": "a", "bot": "mail", "ts": "2026-06-07T12:00:00Z", "took_ms": 1500, "outcome": "passed", "usage": {"prompt_tokens": 7}},
    {"id": "b", "bot": "mail", "ts": "2026-06-07T12:01:00Z", "took_ms": 900, "outcome": "gave up", "err": "no folder"},
]  # fmt: skip


@pytest.mark.parametrize("shape", ["lines", "list", "member"])
def test_a_suggested_declaration_reads_the_file_that_it_was_made_of(shape: str, tmp_path: Path) -> None:
    contents = {
        "lines": "\n".join(map(json.dumps, RUNS)), "list": json.dumps(RUNS, indent=1), "member": json.dumps({"runs": RUNS})
    }  # fmt: skip
    path = written(tmp_path / ("runs.jsonl" if shape == "lines" else "runs.json"), contents[shape])
    [file] = files_at(path)
    text = suggested(file)
    assert '"gave up": failure # success or failure?' in text and '"passed": success\n' in text
    formats = own_formats(written(tmp_path / "runs.yaml", text))
    [file] = files_at(path, FormatSettings(formats))
    found = inspection_of([file])
    assert found.formats == ["runs"] and not found.rejections
    runs = found.records["execution"]
    assert (runs.values, runs.agents) == ({"success": 1, "failure": 1}, {"mail": 2})
    assert (runs.first, runs.last) == tuple(datetime(2026, 6, 7, 12, minute, tzinfo=UTC) for minute in (0, 1))


def test_a_suggestion_proposes_cancellations_and_asks_where_a_user_may_not_have_wanted_them(tmp_path: Path) -> None:
    words = ("passed", "Cancelled", "canceled", "aborted", "broken")
    runs = [{"id": word, "bot": "mail", "ts": 1780833600, "state": word} for word in words]
    path = written(tmp_path / "runs.json", json.dumps(runs))
    text = suggested(files_at(path)[0])
    assert '"Cancelled": cancelled\n' in text and '"canceled": cancelled\n' in text
    assert '"aborted": cancelled # or failure, where its user did not want that?\n' in text
    formats = own_formats(written(tmp_path / "runs.yaml", text))
    found = inspection_of(files_at(path, FormatSettings(formats)))
    assert not found.rejections
    assert {kind: records.lines for kind, records in found.records.items()} == {"execution": 2, "cancellation": 3}
    assert found.records["execution"].values == {"success": 1, "failure": 1}


def test_no_suggestion_makes_a_success_of_runs_that_do_not_tell_it(tmp_path: Path) -> None:
    path = written(tmp_path / "runs.json", json.dumps([{"id": "a", "bot": "mail", "ts": 1780833600}]))
    text = suggested(files_at(path)[0])
    assert "status: # success or failure?\n" in text
    with pytest.raises(HealthAssetsError, match=r"make, entry 1: fields\.status: it is still undecided"):
        own_formats(written(tmp_path / "runs.yaml", text))


@pytest.mark.parametrize("word", ["done", "completed", "finished", "exited"])
def test_a_word_that_says_only_that_a_run_ended_is_no_success_until_somebody_says_so(word: str, tmp_path: Path) -> None:
    runs = [{"id": one, "bot": "mail", "ts": 1780833600, "state": one} for one in (word, "broken")]
    text = suggested(files_at(written(tmp_path / "runs.json", json.dumps(runs)))[0])
    assert f'"{word}": failure # success or failure?\n' in text


@pytest.mark.parametrize(
    ("fields", "asked"),
    [({"status": ["done", "done"], "outcome": ["ok", "failed"], "state": ["a", "b"]}, "status: # success or failure? Which field tells it: outcome, state?"),
     ({"status": ["done", "done"]}, "status: # success or failure? Which field tells it: status?"),
     ({"error": [None, "lost"]}, "status: # success or failure?\n"),
     ({"code": [200, 500]}, "status: # success or failure? Of code, by `at_least` or `values`?")],
)  # fmt: skip
def test_what_tells_the_outcome_is_asked_where_it_is_not_exactly_one_field(
    fields: dict[str, list[Any]], asked: str, tmp_path: Path
) -> None:
    runs = [{"id": f"r{place}", "bot": "mail", "ts": 1780833600} | {name: own[place] for name, own in fields.items()}
            for place in range(2)]  # fmt: skip
    text = suggested(files_at(written(tmp_path / "runs.json", json.dumps(runs)))[0])
    assert asked in text
    with pytest.raises(HealthAssetsError, match="it is still undecided"):
        own_formats(written(tmp_path / "runs.yaml", text))


@pytest.mark.parametrize(
    ("times", "told"),
    [({"startedAt": "2026-06-07T12:00:00Z", "finishedAt": "2026-06-07T12:00:04Z"}, ["started_at: startedAt", "ended_at: finishedAt"]),
     ({"begin": 1780833600, "secs": 4}, ["started_at: begin", "ended_at: {path: begin, plus: secs, factor: 1}"]),
     ({"ts": 1780833600, "durationMs": 4}, ["ended_at: ts", "started_at: {path: ts, plus: durationMs, factor: -0.001}"]),
     ({"when": 1780833600}, ["ended_at: # which field?", "# fields that nothing uses: when"])],
)  # fmt: skip
def test_times_are_found_by_any_spelling_and_asked_where_there_is_none(
    times: dict[str, Any], told: list[str], tmp_path: Path
) -> None:
    runs = [{"id": "a", "bot": "mail", "ok": ok, **times} for ok in (True, False)]
    text = suggested(files_at(written(tmp_path / "runs.json", json.dumps(runs)))[0])
    assert all(one in text for one in told)


def test_tokens_and_seconds_are_found_in_other_fields_and_lists_are_told_as_unused(tmp_path: Path) -> None:
    run = {"id": "a", "bot": {"name": "mail", "ver": "3"}, "start": 1780833600, "elapsed_seconds": 4, "ok": True,
           "usage": {"prompt": 7, "completion": 2}, "tools": [{"name": "grep"}]}  # fmt: skip
    path = written(tmp_path / "runs.json", json.dumps([run, run | {"id": "b", "ok": False}]))
    told = {line.strip() for line in suggested(files_at(path)[0]).splitlines()}
    assert told >= {
        "input_tokens: usage.prompt", "output_tokens: usage.completion", "agent_version: bot.ver",
        "ended_at: {path: start, plus: elapsed_seconds, factor: 1}", "# fields that nothing uses: tools",
    }  # fmt: skip
    assert not any("private" in one for one in told)


@pytest.mark.parametrize(
    ("record", "told"),
    [({"name": "orchard", "dependencies": {}}, "# this looks like a package's own file; it is no log; move it elsewhere"),
     ({"type": "trigger", "trigger_id": "t", "agent_id": "a", "at": "2026-06-07T12:00:00Z", "status": "fired"},
      "# needed only for other files than this one, which is read as the native format"),
     (RUNS[0], "name: \"a\"")],
    ids=["no log", "known", "own"],
)  # fmt: skip
def test_a_suggestion_says_where_no_declaration_is_needed(record: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", json.dumps(record))
    assert suggested(files_at(path)[0]).splitlines()[0] == told


def test_a_suggestion_proposes_to_store_no_text_where_there_is_any(tmp_path: Path) -> None:
    runs = [{"id": "a", "bot": "mail", "ok": ok, "ts": 1, "request": {"text": "x"}} for ok in (True, False)]
    text = suggested(files_at(written(tmp_path / "runs.json", json.dumps(runs)))[0])
    assert "# private: true # stores no text of these files: there is request.text" in text


@pytest.mark.parametrize(
    ("name", "values", "statuses"),
    [("failed", [0, 1], {"success": 1, "failure": 1}), ("is_error", [True, False], {"success": 1, "failure": 1}),
     ("ok", [1, 0], {"success": 1, "failure": 1}), ("failed", [0, 3], None), ("status", [200, 500], None)],
)  # fmt: skip
def test_a_number_is_only_taken_for_an_outcome_where_it_is_a_flag(
    name: str, values: list[int], statuses: dict[str, int] | None, tmp_path: Path
) -> None:
    runs = [{"id": f"r{place}", "bot-name": "mail", "agent-id": "a", "end-time": 1780833600, name: value}
            for place, value in enumerate(values)]  # fmt: skip
    path = written(tmp_path / "runs.json", json.dumps(runs))
    declared = written(tmp_path / "runs.yaml", suggested(files_at(path)[0]))
    if statuses is None:
        with pytest.raises(HealthAssetsError, match=r"fields\.status: "):
            own_formats(declared)
        return
    found = inspection_of(files_at(path, FormatSettings(own_formats(declared))))
    assert found.records["execution"].values == statuses and not found.rejections


def test_a_file_beside_sessions_is_told_as_that_and_a_damaged_session_without_its_text(tmp_path: Path) -> None:
    beside = inspection(written(tmp_path / "api_conversation_history.json", '[{"role": "user", "content": "x"}]'))
    assert (beside.formats, beside.look, beside.records) == (["Cline"], None, {})
    damaged = inspection(written(tmp_path / "chat.json", '{"projectHash": "a", "text": "the recipe"'))
    text = shown(damaged)
    assert damaged.look is None and "has not the form of one" in text and "recipe" not in text


def test_nothing_is_suggested_for_what_holds_no_object(tmp_path: Path) -> None:
    for content in ("[1, 2]", "plain", ""):
        with pytest.raises(HealthAssetsError):
            suggested(files_at(written(tmp_path / "a.json", content))[0])
