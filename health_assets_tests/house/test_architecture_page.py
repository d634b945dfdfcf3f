"""The page on architecture: the functions that it lists are called, in its order, on the way of a log line."""

import re
import sys
from datetime import timedelta
from pathlib import Path
from types import FrameType

from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, hours_from, run_steps
from health_assets_tests.support.repository import ROOT

PAGE = ROOT / "docs" / "architecture.md"
LISTED = re.compile(r"^\| \d+ \| `([A-Za-z_.]+)` \|", re.MULTILINE)
MOST_FUNCTIONS = 30
ASSETS = ("health_components", "agent_health")


def called(project: Project) -> list[str]:
    """Functions of the package in the order in which a run of an hour first calls them, with checks."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            module = frame.f_globals.get("__name__", "")
            found.setdefault(f"{module}.{frame.f_code.co_qualname}".removeprefix("health_assets."))

    sys.setprofile(note)
    try:
        run_steps(project.pipeline, hours_from(START, 1), only=["ingest", *ASSETS], checks=["health_components"])
    finally:
        sys.setprofile(None)
    return [*found]


def test_the_functions_between_a_line_and_its_score_are_few_and_called_in_the_order_of_the_page(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write_log("a.jsonl", [line(execution("e", "a", START + timedelta(minutes=10)))])
    listed = LISTED.findall(PAGE.read_text())
    assert 20 < len(listed) <= MOST_FUNCTIONS
    assert [name for name in called(project) if name in listed] == listed
