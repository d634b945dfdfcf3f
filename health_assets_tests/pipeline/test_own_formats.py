"""Formats that an installation declares: their logs are loaded, and loaded again where a declaration changes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from health_assets.core.errors import HealthAssetsError
from health_assets.logs.formats.format_settings import FormatSettings, own_formats
from health_assets.pipeline.summaries import ODD
from health_assets_tests.support import coding_sessions_made
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import (
    Project,
    assert_lines_are_conserved,
    assert_same_tables,
    hours_from,
)

HOURS = hours_from(START, 2)
FORMAT: dict[str, Any] = {
    "name": "bot log",
    "recognize": [{"fields": ["ts", "bot", "ok"]}],
    "make": [{"type": "execution", "fields": {
        "agent_id": "bot", "ended_at": "ts", "status": {"path": "ok", "values": {"true": "success", "false": "failure"}},
    }}],
}  # fmt: skip
LINES = [
    json.dumps({"ts": START.isoformat(), "bot": "b", "ok": ok, "n": place}) for place, ok in enumerate([True, False])
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Logs of which one is of a format that nobody declares yet."""
    monkeypatch.setenv("HEALTH_FORMATS", str(tmp_path / "formats"))
    (tmp_path / "formats").mkdir()
    project = Project(tmp_path / "project")
    project.write_log("bot.jsonl", LINES)
    project.write_log("good.jsonl", [line(execution("e1", "planner", START))])
    project.materialize(HOURS, only=["ingest"])
    assert agents(project) == ["planner"]
    return project


def declare(folder: Path, file_name: str = "bot.yaml", **changes: Any) -> None:
    (folder / "formats" / file_name).write_text(yaml.safe_dump(FORMAT | changes), "utf-8")


def assert_as_rebuilt(project: Project) -> None:
    tables = ("executions", "rejected_records", "raw_logs")
    assert_same_tables(project.clean_rebuild(HOURS, only=["ingest"]).tables(names=tables), project.tables(names=tables))


def told(project: Project) -> dict[str, str]:
    """What a load of the logs says of files."""
    return {**project.ingest(HOURS).notices}


def agents(project: Project) -> list[str]:
    return [agent for (agent,) in project.query("SELECT agent_id FROM executions ORDER BY ALL")]


def test_a_log_that_nobody_could_read_is_loaded_once_its_format_is_declared(project: Project, tmp_path: Path) -> None:
    assert not project.not_loaded()
    declare(tmp_path)
    assert project.not_loaded() == {"bot.jsonl"}, "a file that was read without a fault is not read again"
    project.materialize(HOURS, only=["ingest"])
    assert agents(project) == ["b", "b", "planner"]
    assert not project.not_loaded()
    assert_lines_are_conserved(project)
    assert_as_rebuilt(project)


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_log_is_loaded_again_where_its_declaration_is_another_or_gone(
    project: Project, tmp_path: Path, is_gone: bool
) -> None:
    declare(tmp_path)
    project.materialize(HOURS, only=["ingest"])
    if is_gone:
        (tmp_path / "formats" / "bot.yaml").unlink()
    else:
        changed = json.loads(json.dumps(FORMAT["make"]))
        changed[0]["fields"]["agent_id"] = {"constant": "the-bot"}
        declare(tmp_path, make=changed)
    assert project.not_loaded() == {"bot.jsonl"}
    project.materialize(HOURS, only=["ingest"])
    assert agents(project) == (["planner"] if is_gone else ["planner", "the-bot", "the-bot"])
    assert_as_rebuilt(project)


def test_a_run_says_which_file_no_format_recognizes_any_more_and_how_many_records_it_had(
    project: Project, tmp_path: Path
) -> None:
    project.write_bytes("bots.json", json.dumps([json.loads(one) | {"of": "document"} for one in LINES]).encode())
    declare(tmp_path)
    project.materialize(HOURS, only=["ingest"])
    assert told(project) == {}
    (tmp_path / "formats" / "bot.yaml").unlink()
    sentence = (
        "no format recognizes it any more, so the 2 records that it had are gone; "
        "its declaration (HEALTH_FORMATS) was deleted or changed"
    )
    shown = project.materialize(HOURS, only=["ingest"])["raw_logs"][ODD]
    assert shown == [f"bot.jsonl: {sentence}", f"bots.json: {sentence}"]
    assert agents(project) == ["planner"]
    assert told(project) == {}


def test_a_file_that_is_recognized_and_has_no_usable_record_is_not_said_to_be_of_no_format(
    project: Project, tmp_path: Path
) -> None:
    declare(tmp_path)
    project.materialize(HOURS, only=["ingest"])
    changed = json.loads(json.dumps(FORMAT["make"]))
    changed[0]["fields"]["status"] = {"path": "nowhere"}
    declare(tmp_path, make=changed)
    assert told(project) == {}
    assert agents(project) == ["planner"]


def test_sessions_are_loaded_again_where_their_agents_are_called_otherwise(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write_bytes("session.jsonl", coding_sessions_made.as_lines(coding_sessions_made.CLAUDE_TURN))
    project.materialize(HOURS, only=["ingest"])
    for by_project, name in (("on", "claude-code/orchard"), ("off", "claude-code")):
        monkeypatch.setenv("HEALTH_SESSIONS_BY_PROJECT", by_project)
        assert "session.jsonl" in project.not_loaded()
        project.materialize(HOURS, only=["ingest"])
        assert not project.not_loaded()
        assert agents(project) == sorted([name, "planner"])
        assert_as_rebuilt(project)


def test_a_declaration_that_takes_a_known_format_for_its_own_spoils_no_row_silently(
    project: Project, tmp_path: Path
) -> None:
    declare(tmp_path, recognize=[{"fields": ["execution_id"]}])
    project.write_log("later.jsonl", [line(execution("e2", "planner", START))])
    project.materialize(HOURS, only=["ingest"])
    reasons = project.query("SELECT reason FROM rejected_records WHERE source_file = 'later.jsonl'")
    assert reasons == [("this file begins as one of bot log and as one of the native format; nothing of it is read",)]


def test_declarations_are_in_a_file_or_in_the_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "formats").mkdir()
    assert own_formats(None) == own_formats(tmp_path / "formats") == ()
    declare(tmp_path)
    declare(tmp_path, "other.yml", name="other log")
    assert [one.name for one in own_formats(tmp_path / "formats")] == ["bot log", "other log"]
    [one] = own_formats(tmp_path / "formats" / "other.yml")
    assert (
        one.name == "other log"
        and FormatSettings((one,)).digest != FormatSettings(own_formats(tmp_path / "formats")).digest
    )
    with pytest.raises(HealthAssetsError, match="cannot read the format declaration"):
        own_formats(tmp_path / "none.yaml")
    declare(tmp_path, "twin.yaml")
    with pytest.raises(HealthAssetsError, match="declares a format of the name 'bot log', too"):
        own_formats(tmp_path / "formats")
