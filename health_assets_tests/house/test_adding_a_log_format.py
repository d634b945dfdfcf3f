"""The page on adding a log format, walked: its module and its lines make files of a made-up tool be read, none lost."""

import json
import shutil
from datetime import UTC, datetime
from typing import Any

import pytest

from health_assets_tests.support.projects import REPOSITORY, Project
from health_assets_tests.support.walked import blocks_of, copied, run_in, walk

PAGE = (REPOSITORY / "docs" / "add-a-log-format.md").read_text(encoding="utf-8")
MODULE = REPOSITORY / "examples" / "runlog.py"
[LOG] = [code for _, language, code in blocks_of(PAGE) if language == "text"]
[JOBS] = [code for _, language, code in blocks_of(PAGE) if language == "json"]
HEADER, *RUNS = LOG.splitlines()
ARRIVED = datetime(2026, 6, 7, 12, 30, tzinfo=UTC)
BAD = {
    "id=3 start=2026-06-07T12:02:00Z result=ok": "end is missing",
    "id=4 start=2026-06-07T12:02:00Z end=2026-06-07T12:02:01Z result=maybe": "result must be ok or error, not maybe",
    "id=5 is not a pair": "a word is no key=value, or a key stands twice",
    "id=6 id=7 start=2026-06-07T12:02:00Z end=2026-06-07T12:02:01Z result=ok": "a word is no key=value, or a key stands twice",
    "id=8 start=2026-06-07T12:02:00Z end=2026-06-07T12:01:00Z result=ok": None,  # as the native format has it
    "id=9 start=yesterday end=2026-06-07T12:02:01Z result=ok": None,
}
WALK = """
import json, random, sys
from datetime import datetime, timedelta
from pathlib import Path
import health_assets
from health_assets.core.hours import HourRange
from health_assets.logs import formats
from health_assets.logs.files import list_files
from health_assets_tests.fuzz.running import inputs_of
from health_assets_tests.fuzz.targets import TARGETS
from health_assets_tests.support.foreign_lines import lines_of
from health_assets_tests.support.projects import Project, assert_lines_are_conserved

folder, scratch, hour = Path(sys.argv[1]), Path(sys.argv[2]), datetime.fromisoformat(sys.argv[3])
project = Project(folder)
lines, notes = lines_of(project)
for seed in range(5):
    formats.FORMATS = tuple(random.Random(seed).sample(formats.FORMATS, len(formats.FORMATS)))
    assert lines_of(project) == (lines, notes), "the order of the formats matters"
project.materialize(HourRange.of(hour), only=["ingest"])
assert_lines_are_conserved(project)
scratch.mkdir()
TARGETS["runlog"].check(TARGETS["runlog"].samples(), scratch / "samples")
TARGETS["runlog"].check(inputs_of("runlog", 1, 0, 60), scratch / "damaged")
print(json.dumps({
    "program": health_assets.__file__,
    "files": [file.source_file for file in list_files(project.raw)],
    "notes": notes,
    "executions": project.query("SELECT execution_id, agent_id, runtime_s, status, error FROM executions ORDER BY 1"),
    "tool_calls": project.query("SELECT call_id, agent_id, execution_id, tool, status FROM tool_calls"),
    "rejected": project.query("SELECT source_file, line_number, raw, reason FROM rejected_records ORDER BY 1, 2"),
    "superseded": project.query("SELECT count(*) FROM superseded_executions"),
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The program that the page makes reads logs of the tool; this is what it found."""
    folder = tmp_path_factory.mktemp("walk")
    copy = copied(folder / "copy")
    shutil.copy(MODULE, copy / "health_assets" / "logs" / "formats")
    assert walk(PAGE, copy) == [
        "health_assets/logs/formats/declarations/jobs.yaml", "health_assets/logs/formats/__init__.py",
        "health_assets/logs/formats/__init__.py", "health_assets/logs/stores.py", "health_assets_tests/fuzz/targets.py",
    ]  # fmt: skip
    project = Project(folder / "project")
    for name in ("mail/june.runlog", "mail/june.json", "mail/june.jsonl", "mail/june.runlog.1.gz"):
        project.write_log(name, ["", *LOG.splitlines()], modified=ARRIVED)
    project.write_log("bad.runlog", [HEADER, *BAD, b"id=\xff", RUNS[0].replace("id=1", "id=10")], modified=ARRIVED)
    project.write_bytes(
        "cut.runlog", f"{HEADER}\n{RUNS[0].replace('id=1', 'id=11')}\n{RUNS[1][:50]}".encode(), modified=ARRIVED
    )
    project.write_log("jobs.jsonl", JOBS.splitlines(), modified=ARRIVED)
    project.write_log("other.runlog", ["#runlog 2 agent=a", RUNS[0]], modified=ARRIVED)
    project.write_log("other.log", [HEADER, RUNS[0].replace("id=1", "id=12")], modified=ARRIVED)
    arguments = map(str, [project.folder, folder / "scratch", ARRIVED.replace(minute=0).isoformat()])
    told = json.loads(run_in(copy, "-W", "ignore", "-c", WALK, *arguments).splitlines()[-1])
    assert told["program"] == str(copy / "health_assets" / "__init__.py")
    return told


def test_the_code_of_the_page_is_that_of_the_module() -> None:
    [shown] = [code for _, language, code in blocks_of(PAGE) if language == "python"]
    assert shown in MODULE.read_text(encoding="utf-8")


def test_files_of_the_new_format_are_read_under_all_names_that_count(found: dict[str, Any]) -> None:
    assert "other.log" not in found["files"]
    assert len(found["files"]) == 8
    of_page = [
        ["mail-sorter:1", "mail-sorter", 4.5, "success", None],
        ["mail-sorter:2", "mail-sorter", 9.0, "failure", "no such folder"],
    ]
    of_others = [[f"mail-sorter:{number}", "mail-sorter", 4.5, "success", None] for number in (10, 11)]
    of_declared = [
        ["archiver:1", "archiver", 4.5, "success", None], ["archiver:2", "archiver", 9.0, "failure", "no such folder"],
    ]  # fmt: skip
    assert found["executions"] == sorted([*of_page, *of_others, *of_declared])
    assert found["tool_calls"] == [["archiver:1:tool_call:0", "archiver", "archiver:1", "list_folders", "success"]]
    assert found["superseded"] == [[2]], "files with the same bytes are one, but a .jsonl may be read otherwise"
    assert found["notes"] == {"run log header": 6, "job runner job that runs still": 1}


def test_bad_lines_are_rejected_with_reasons_and_nothing_is_lost(found: dict[str, Any]) -> None:
    rejected = {(name, number): (raw, reason) for name, number, raw, reason in found["rejected"]}
    for number, (line, reason) in enumerate(BAD.items(), start=2):
        raw, told = rejected.pop(("bad.runlog", number))
        if reason is None:
            assert told and json.loads(raw)["agent_id"] == "mail-sorter"
        else:
            assert (raw, told) == (line, reason)
    assert rejected.pop(("bad.runlog", len(BAD) + 2))[1].startswith("not valid UTF-8")
    assert rejected.pop(("cut.runlog", 3))[0] == RUNS[1][:50]
    assert rejected.pop(("other.runlog", 1))[1].startswith("no reader knows what this file holds; it looks like ")
    assert rejected == {}
