"""A fleet in which one agent is wholly down, one recovers, one is quiet, one is provisional, and one is as it should be.

What belongs here: logs of that fleet, for every place that says how agents are now.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import Project

RUNS_AN_HOUR = 12
HOURS_MADE = 26
SECRET = "sk-ant-api03-" + "x" * 40
ERROR = f"401 Unauthorized: invalid x-api-key {SECRET}"
DOWN, BACK, QUIET, FEW, FINE = "checkout-bot", "invoice-bot", "night-bot", "new-bot", "steady-bot"
HOURS = HourRange(START, START + HOURS_MADE * HOUR)
TARGETS: dict[str, Any] = {
    "defaults": {"expected_success_rate": 0.95},
    "agents": {FINE: {"expected_runtime_s": 30.0}},
}


def outage_records(hours: HourRange = HOURS) -> Iterator[Record]:
    """All lines: in the last hour every run of one agent fails, in another version than before."""
    for number, hour in enumerate(hours):
        left = len(hours) - number  # 1 in the last hour
        for minute in range(0, 60, 60 // RUNS_AN_HOUR):
            yield _down(hour, minute, is_down=left == 1)
            yield _run(BACK, hour, minute, is_failed=left in (2, 3, 4))
            yield _run(FINE, hour, minute, is_failed=False)
            if left > 3:
                yield _run(QUIET, hour, minute, is_failed=False)
        if left <= 4:
            yield _run(FEW, hour, 30, is_failed=False)
        call = f"{DOWN}-{hour:%d%H}-00"
        yield {
            "type": "tool_call", "call_id": f"t-{call}", "tool": "search", "agent_id": DOWN, "execution_id": call,
            "ended_at": (hour + timedelta(minutes=1)).isoformat(), "status": "failure" if left == 3 else "success",
        }  # fmt: skip


def _down(hour: datetime, minute: int, *, is_down: bool) -> Record:
    version = {"agent_version": "2.1.0" if is_down else "2.0.3", "model": "atlas-large-1"}
    return _run(DOWN, hour, minute, is_failed=is_down) | version


def _run(agent_id: str, hour: datetime, minute: int, *, is_failed: bool) -> Record:
    failed = {"status": "failure", "error": ERROR} if is_failed else {}
    ended_at = hour + timedelta(minutes=minute, seconds=59)
    return execution(f"{agent_id}-{hour:%d%H}-{minute:02}", agent_id, ended_at, 20.0, **failed)


def outage_project(folder: Path, hours: HourRange = HOURS) -> Project:
    """A project with these logs, materialized."""
    project = Project(folder, targets=TARGETS)
    project.write_log("agents.jsonl", [line(record) for record in outage_records(hours)])
    project.materialize(hours)
    return project
