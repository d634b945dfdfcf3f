"""A small fleet whose data lacks something of every kind, with its history: for tests of the page of the data.

Fourteen hours from `START`: six are whole but one, two are missing, of the next four one is empty; then one is late and one
has just ended.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.projects import Project

HOURS = HourRange(START, START + 14 * HOUR)
PARTIAL, EMPTY, LATE, AWAITED = (START + number * HOUR for number in (3, 9, 12, 13))
MISSING = [START + 6 * HOUR, START + 7 * HOUR]
NOW = START + 14 * HOUR + timedelta(minutes=10)
HOSTILE_FILE = "<b>bold</b>\u202e\x1b[31m.jsonl"
HOSTILE_LINE = '<script>alert("1")</script>' + "x" * 10_000
REJECTED = [
    HOSTILE_LINE,
    "not json, password=hunter2hunter2",
    '{"type": "heartbeat"}',
    '{"type": "pulse"}',
    '{"type": "execution", "execution_id": "mine-1", "agent_id": "mine"}',
]
STEPS = ("ingest", "health_components", "agent_health", "tool_components", "tool_health", "error_budget")
"""The steps that are run; the page asks for no rows of other tables."""
CHECKS = {
    ("agent_health", "health_score_is_between_0_and_100", "error"): {START + 4 * HOUR: 2, START + 11 * HOUR: 1},
    ("agent_health", "states_are_known", "error"): {START + 2 * HOUR: 3},
    ("agent_health", "windows_are_covered", "warn"): {START + 11 * HOUR: 2},
    ("executions", "values_are_known", "error"): {},
    ("raw_logs", "every_line_is_still_there", "warn"): {START + 10 * HOUR: 9, START + 11 * HOUR: 7},
    ("raw_logs", "every_log_was_read", "warn"): {},
}
"""Unexpected rows by hour; each check looked at ten rows of every hour that was made."""


def broken_world(folder: Path) -> World:
    """The fleet, whose agent `mine` is somebody's own and whose agent `red` is of a team."""
    project = Project(folder, targets={"agents": {"mine": {"personal": True}, "red": {"team": "red"}}})
    for agent in ("mine", "red", "blue"):
        made = [execution(f"{agent}-{hour:%H}", agent, hour + timedelta(minutes=9)) for hour in HOURS if hour != EMPTY]
        project.write_log(f"{agent}.jsonl", map(line, made[:12]))
    project.write_log("shut.jsonl", [line(execution("s", "blue", START + 10 * HOUR))])
    project.write_log(HOSTILE_FILE, [line(execution("good", "blue", START + HOUR)), *REJECTED])
    project.write_log("copy.jsonl", [line(execution("same", "blue", START))])
    project.write_log("z/copy.jsonl", [line(execution("same", "blue", START))])
    gone = project.write_log("gone.jsonl", [line(execution("g", "blue", START))])
    project.materialize(HourRange(START, START + 6 * HOUR), only=STEPS)
    gone.unlink()
    (project.raw / "shut.jsonl").unlink()
    for name in ("shut.jsonl", "never.jsonl"):
        (project.raw / name).symlink_to("nowhere")
    project.materialize(HourRange(START + 8 * HOUR, START + 12 * HOUR), only=STEPS)
    project.change("DELETE FROM partition_states WHERE asset = 'tool_health' AND hour = ?", [PARTIAL])
    older = "UPDATE partition_states SET formula_version = '0.9' WHERE asset = 'error_budget' AND hour < ?"
    project.change(older, [START + 2 * HOUR])
    _write_checks(project, project.built_hours("agent_health"))
    return world_of(project, HOURS)


def _write_checks(project: Project, hours: Iterable[datetime]) -> None:
    rows = [
        {
            "hour": hour,
            "asset": asset,
            "expectation": expectation,
            "success": hour not in unexpected,
            "element_count": 10,
            "unexpected_count": unexpected.get(hour, 0),
            "severity": severity,
        }
        for (asset, expectation, severity), unexpected in CHECKS.items()
        for hour in sorted(hours)
    ]
    schema = pa.schema(
        [
            ("hour", pa.timestamp("us", "UTC")), ("asset", pa.string()), ("expectation", pa.string()),
            ("success", pa.bool_()), ("element_count", pa.int64()), ("unexpected_count", pa.int64()),
            ("severity", pa.string()),
        ]
    )  # fmt: skip
    with project.warehouse.write() as session:
        session.insert_arrow("expectation_results", pa.Table.from_pylist(rows, schema))
