"""A page refreshes itself in a real browser: only what changed is touched, and what a person is about stays."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from selenium.webdriver.support.wait import WebDriverWait

from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.browser import Browser, browser, needs_browser
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.projects import Project
from health_assets_tests.support.serving_made import Served

pytestmark = needs_browser

WAIT_S = 40
FAILED = {"status": "failure", "error": "Refused by the bank"}


def _write(project: Project, hours: int, failing: int) -> None:
    """Runs of some agents over some hours, of which in the last hour those of the first few agents fail."""
    lines = []
    for hour in range(hours):
        for agent in ("alpha", "beta", "gamma"):
            for number in range(12):
                is_failing = hour == hours - 1 and ("alpha", "beta").index(agent) < failing if agent != "gamma" else False
                at = START + hour * HOUR + timedelta(minutes=4 * number + 3)
                lines.append(line(execution(f"{agent}-{hour}-{number}", agent, at, 5.0, **(FAILED if is_failing else {}))))
    project.write_log("a.jsonl", lines)
    project.materialize(HourRange(START, START + hours * HOUR))


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    project = Project(tmp_path_factory.mktemp("fleet"))
    _write(project, 2, 0)
    return world_of(project, HourRange(START, START + 2 * HOUR))
