"""The page on architecture: the functions that it lists are called, in its order, on the way of a log line."""

import re
import sys
from datetime import timedelta
from pathlib import Path
from types import FrameType

from health_assets.core.hours import HourGroups
from health_assets.pipeline import engine
from health_assets.pipeline.fingerprints import RECORDS
from health_assets.pipeline.plan import Plan
from health_assets.systems.graph import declared_graph
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, hours_from

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
LISTED = re.compile(r"^\| \d+ \| `([A-Za-z_.]+)` \|", re.MULTILINE)
MOST_FUNCTIONS = 30


def functions_called(project: Project) -> list[str]:
    """The package's functions in the order in which a run of one hour first calls them."""
    graph = declared_graph()
    plan = Plan(
        hours=HourGroups((hours_from(START, 1),)),
        assets={*RECORDS, "health_components", "agent_health"},
        checks={"health_components": graph.check_names("health_components")},
    )
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            module = str(frame.f_globals.get("__name__", "")).removeprefix("health_assets.")
            found.setdefault(f"{module}.{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        list(engine.run(project.pipeline, graph, plan))
    finally:
        sys.setprofile(None)
    return [*found]


def test_the_functions_between_a_line_and_its_score_are_few_and_called_in_the_order_of_the_page(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write_log("a.jsonl", [line(execution("e", "a", START + timedelta(minutes=10)))])
    listed = LISTED.findall(PAGE.read_text(encoding="utf-8"))
    assert 20 < len(listed) <= MOST_FUNCTIONS
    assert [name for name in functions_called(project) if name in listed] == listed
