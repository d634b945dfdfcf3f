"""The page on adding a record type, walked: its declaration makes lines be typed, checked, documented and accounted for."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from health_assets_tests.support import postgres_server
from health_assets_tests.support.projects import REPOSITORY, Project
from health_assets_tests.support.walked import copied, run_in, walk

PAGE = (REPOSITORY / "docs" / "add-a-record-type.md").read_text(encoding="utf-8")
HOUR = datetime(2026, 6, 7, 13, tzinfo=UTC)
SECRET = "token=sk-live-0123456789abcdef0123456789abcdef"
GOOD = {"type": "handoff", "agent_id": "triage", "at": "2026-06-07T13:05:00Z", "to_agent_id": "billing"}
BAD = {
    "outcome must be accepted or refused": {"outcome": "lost"},
    "waited_s must be a number from 0 on": {"waited_s": -1},
    "to_agent_id must be text": {"to_agent_id": "x" * 2000},
    "at must be ISO 8601": {"at": "yesterday"},
}
WALK = """
import json, shutil, sys
from datetime import datetime
from pathlib import Path
from typer.testing import CliRunner
import health_assets
from health_assets.cli.commands import app
from health_assets.core.hours import HourRange
from health_assets.schema import documentation
from health_assets.schema.catalog import SCHEMA_VERSION
from health_assets.schema.records import LINE_TYPES
from health_assets.systems.suites import SUITES
from health_assets_tests.support.changed_tables import declare, revise
from health_assets_tests.support.projects import Project, assert_lines_are_conserved

folder, docs, hour = Path(sys.argv[1]), Path(sys.argv[2]), HourRange.of(datetime.fromisoformat(sys.argv[3]))
declare(SCHEMA_VERSION + 1)
revision = revise("handoffs").read_text()
shutil.copytree(docs, "docs")
documentation.main()
project = Project(folder, {"names": [{"match": "triage", "agent": "front-desk"}]})
project.write_log("sample.jsonl", [json.dumps(LINE_TYPES["handoff"].sample)], modified=hour.start)
told = CliRunner().invoke(app, catch_exceptions=False, args=[
    "materialize", "--system", "agent_health_model", "--raw", str(project.raw), "--warehouse", project.warehouse_url,
    "--targets", str(project.targets_path), "--from", f"{hour.start:%Y-%m-%dT%H}", "--to", f"{hour.end:%Y-%m-%dT%H}",
])
assert "kept 3, rejected 4" in told.output, told.output
assert_lines_are_conserved(project)
checks = project.query("SELECT expectation, success FROM expectation_results WHERE asset = 'handoffs'")
print(json.dumps({
    "program": health_assets.__file__,
    "revision": revision,
    "declared": [check.name for check in SUITES["handoffs"].checks],
    "checks": checks,
    "rows": project.query("SELECT source_file, agent_id, agent_id_reported, to_agent_id, outcome, waited_s, note FROM handoffs ORDER BY ALL"),
    "rejected": project.query("SELECT line_number, reason FROM rejected_records ORDER BY 1"),
    "agents": project.query("SELECT agent_id FROM agent_health"),
}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("walk")


@pytest.fixture(scope="module")
def found(folder: Any) -> dict[str, Any]:
    """What the program that the page makes found in logs with lines of the new type."""
    copy = copied(folder / "copy")
    assert walk(PAGE, copy) == ["health_assets/schema/records.py"], "one file is touched"
    project = Project(folder / "project")
    lines = [GOOD, *(GOOD | wrong for wrong in BAD.values()), GOOD | {"note": SECRET}]
    project.write_log("a.jsonl", [json.dumps(line) for line in lines], modified=HOUR)
    server = {"HEALTH_TEST_POSTGRES": postgres_server.server_url()}
    arguments = map(str, [project.folder, REPOSITORY / "docs", HOUR.isoformat()])
    told = json.loads(run_in(copy, "-W", "ignore", "-c", WALK, *arguments, **server).splitlines()[-1])
    assert told["program"] == str(copy / "health_assets" / "__init__.py")
    return told


def test_its_lines_are_rows_of_its_table_with_names_mapped_and_secrets_replaced(found: dict[str, Any]) -> None:
    sample, plain, secret = sorted(found["rows"], key=lambda row: (row[0] == "a.jsonl", row[-1] or ""))
    assert sample == ["sample.jsonl", "front-desk", "triage", "billing", "accepted", 1.5, "asks for a refund"]
    assert plain == ["a.jsonl", "front-desk", "triage", "billing", None, None, None]
    assert secret[-1] not in (None, "") and "sk-live" not in secret[-1]
    assert found["agents"] == [["front-desk"]], "who hands over is seen"


def test_bad_lines_are_rejected_with_reasons_that_name_the_field(found: dict[str, Any]) -> None:
    assert [number for number, _ in found["rejected"]] == [2, 3, 4, 5]
    for (_, reason), expected in zip(found["rejected"], BAD, strict=True):
        assert reason.startswith(expected)


def test_its_checks_follow_from_its_fields_and_pass(found: dict[str, Any]) -> None:
    assert set(found["declared"]) >= {
        "every_line_is_a_row", "times_are_within_their_hour", "values_are_known", "amounts_are_not_negative",
    }  # fmt: skip
    assert sorted(found["checks"]) == sorted([name, True] for name in found["declared"])


def test_the_migration_and_both_pages_know_it(found: dict[str, Any], folder: Any) -> None:
    assert '"handoffs",' in found["revision"]
    docs = folder / "copy" / "docs"
    assert (
        "| `handoff` | `agent_id`, `at`, `to_agent_id` | `outcome` (`accepted`, `refused`), `waited_s`, `note` |"
        in (docs / "log-format.md").read_text(encoding="utf-8")
    )
    assert "## `handoffs`" in (docs / "tables.md").read_text(encoding="utf-8")
