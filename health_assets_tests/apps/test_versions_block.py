"""The block of versions: what each agent's versions did, the newest first."""

from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from health_assets.apps.report.versions_block import NO_VERSION, TOO_FEW, print_versions
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, hours_from

HOURS = hours_from(START, 3)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def runs(agent_id: str, count: int, hour: int, **fields: Any) -> list[str]:
    """Lines of runs of an hour; every fourth of them failed."""
    ended_at = START + timedelta(hours=hour, minutes=5)
    return [
        line(execution(f"{agent_id}-{hour}-{place}-{count}", agent_id, ended_at + timedelta(seconds=place),
                       status="failure" if place % 4 == 3 else "success", **fields))
        for place in range(count)
    ]  # fmt: skip


def block(project: Project, lines: list[str]) -> list[str]:
    """The lines of the block, with one space between words."""
    project.write_log("a.jsonl", lines)
    project.materialize(HOURS, only=["ingest", "usage_components"])
    out = StringIO()
    with project.warehouse.read() as session:
        print_versions(Console(file=out, width=200), session, HOURS)
    return [" ".join(one.split()) for one in out.getvalue().splitlines() if one.strip()]


def test_versions_of_an_agent_are_shown_the_newest_first_with_shares_and_means(project: Project) -> None:
    lines = [
        *runs("coder", 40, 0, agent_version="2.0", input_tokens=100, output_tokens=20, cost_usd=0.5),
        *runs("coder", 20, 1, agent_version="10.0", input_tokens=1000, output_tokens=500, cost_usd=0.25),
        *runs("coder", 4, 2, agent_version="9.0"),
        *runs("coder", 20, 2, agent_version="2.0"),  # these tell no tokens, so they are in no mean of these
        *runs("planner", 30, 0, agent_version="1.0"),
    ]
    day = f"{START:%Y-%m-%d}"
    assert block(project, lines) == [
        "Versions compared: 1 agent in several versions in 3 h",
        "agent version since runs succeeded tokens a run cost a run",
        f"coder 9.0 {day} 4 75% – – {TOO_FEW}",
        f"10.0 {day} 20 75% 1,500 $0.250",
        f"2.0 {day} 60 75% 120 $0.500",
        "shares and means: a difference may be chance",
    ]


def test_runs_without_a_version_are_a_version_of_their_own_and_older_versions_are_added_up(project: Project) -> None:
    lines = runs("coder", 2, 2)
    for version in range(12):
        lines += runs("coder", 20 + version, 0, agent_version=f"1.{version:02}")
    day = f"{START:%Y-%m-%d}"
    rows = block(project, lines)[2:-1]
    assert rows[:3] == [
        f"coder {NO_VERSION} {day} 2 100% – – {TOO_FEW}",
        f"1.11 {day} 31 77% – –",  # 24 of 31
        f"1.10 {day} 30 77% – –",  # 23 of 30
    ]
    assert [row.split()[0] for row in rows[3:-1]] == ["1.09", "1.08", "1.07", "1.06", "1.05", "1.04", "1.03"]
    assert rows[-1] == "3 older ones 63"


def test_nothing_is_shown_where_no_run_names_a_version(project: Project) -> None:
    assert block(project, runs("coder", 3, 0)) == []


def test_it_is_said_where_no_agent_ran_in_several_versions(project: Project) -> None:
    shown = block(project, runs("coder", 3, 0, agent_version="1.0"))
    assert shown == ["Versions compared: 0 agents in several versions in 3 h"]
