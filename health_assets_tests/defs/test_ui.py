"""The Dagster web page in a real browser: `health-assets dev` in a copy of the workspace, and what a user sees of it.

With HEALTH_SCREENSHOTS set, the screenshots are also kept in /tmp/ui, to be looked at.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pytest
from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.wait import WebDriverWait

from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.defs.assets import all_assets
from health_assets.defs.partitions import hourly_partitions
from health_assets.systems.suites import SUITES
from health_assets.warehouse.fingerprints import INGEST_CHECKS
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.dagster_world import ASSETS, World
from health_assets_tests.support.ports import free_port
from health_assets_tests.support.projects import SURVEY_TABLES, command_environment

REPOSITORY = Path(__file__).resolve().parents[2]
CHROMIUM = "/usr/bin/chromium"
CHROMEDRIVER = "/usr/bin/chromedriver"
SCREENSHOTS = Path("/tmp/ui") if os.getenv("HEALTH_SCREENSHOTS") else None
START_S = 240
PAGE_S = 120
STOP_S = 20
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--window-size=3200,13000",  # the whole graph; what lies outside of the window, Dagster leaves out
)  # fmt: skip
WARNING = "few_lines_are_rejected"

Found = TypeVar("Found")

pytestmark = pytest.mark.skipif(
    not (Path(CHROMIUM).exists() and Path(CHROMEDRIVER).exists()),
    reason=f"{CHROMIUM} and {CHROMEDRIVER} are not both installed (apt-get install chromium chromium-driver)",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of Dagster's page in a copy of the workspace where the newest three hours are materialized."""
    workspace = tmp_path_factory.mktemp("workspace")
    for name in ("dagster.yaml", "workspace.yaml"):
        shutil.copy2(REPOSITORY / name, workspace)
    now = datetime.now(UTC)
    hours = HourRange(floor_hour(now) - 3 * HOUR, floor_hour(now))
    World.at(workspace / "data").write_hours(hours)
    _materialize(workspace, hours)
    with _dagster_dev(workspace) as address:
        yield address


def _materialize(workspace: Path, hours: HourRange) -> None:
    bounds = ["--from", f"{hours.start:%Y-%m-%dT%H}", "--to", f"{hours.end:%Y-%m-%dT%H}"]
    done = command_here("materialize", *bounds, folder=workspace)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def _dagster_dev(workspace: Path) -> Iterator[str]:
    """The page, without the developer's settings; no schedule or sensor works while the test runs."""
    environment = command_environment() | {"HEALTH_SCHEDULES": "off"}
    port = free_port()
    log = workspace / "dagster-dev.log"
    command = [sys.executable, "-m", "health_assets", "dev", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, cwd=workspace, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        address = f"http://127.0.0.1:{port}"
        _until(lambda: _answers(f"{address}/server_info"), START_S, lambda: log.read_text(errors="replace"), server)
        yield address
    finally:
        _end_session(server)


def _answers(address: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(address, timeout=5) as answer:
        return answer.status == 200
    return False


def _until(
    is_there: Callable[[], bool], timeout_s: float, explain: Callable[[], str], server: subprocess.Popen[bytes]
) -> None:
    end = time.monotonic() + timeout_s
    while not is_there():
        assert server.poll() is None, explain()
        assert time.monotonic() < end, explain()
        time.sleep(0.2)


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session, and all that it started: as Ctrl-C does, then for certain."""
    for ending in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, ending)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    service = Service(CHROMEDRIVER, popen_kw={"start_new_session": True})
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SE_OFFLINE", "true")
        driver = webdriver.Chrome(options=options, service=service)
    try:
        yield driver
    finally:
        with suppress(Exception):  # whatever a broken browser says, it is ended below
            driver.quit()
        _end_session(service.process)


@pytest.fixture
def look(browser: WebDriver, page: str, tmp_path: Path) -> Iterator[Callable[[str, Callable[[], Found]], Found]]:
    """Open a path, wait until what is looked for is there, keep a screenshot, and return what was found."""
    shots = []

    def looked(path: str, find: Callable[[], Found]) -> Found:
        browser.get(page + path)
        waiting = WebDriverWait(
            browser, PAGE_S, ignored_exceptions=[NoSuchElementException, StaleElementReferenceException]
        )
        try:
            return waiting.until(lambda _: find(), f"{path} shows: {_text(browser)}")
        finally:
            shots.append(tmp_path / f"{'-'.join(re.findall(r'[a-z_]+', path)[:4])}.png")
            browser.save_screenshot(str(shots[-1]))

    yield looked
    if SCREENSHOTS:
        SCREENSHOTS.mkdir(exist_ok=True)
        for shot in shots:
            shutil.copy2(shot, SCREENSHOTS)


def _text(browser: WebDriver) -> str:
    return browser.find_element(By.TAG_NAME, "body").text


def _groups() -> list[str]:
    specs = [
        spec
        for made in all_assets(hourly_partitions(HourRange.of(floor_hour(datetime.now(UTC)))))
        for spec in made.specs
    ]
    return sorted({spec.group_name or "default" for spec in specs})


def test_the_lineage_shows_every_asset_with_its_checks(
    browser: WebDriver, look: Callable[[str, Callable[[], Found]], Found]
) -> None:
    def nodes() -> dict[str, list[str]]:
        """Lines of every asset in the graph, once all have the state of their checks."""
        boxes = browser.find_elements(By.CSS_SELECTOR, "foreignObject > *")
        # not `text`, which leaves out what the edge of the window cuts off
        texts = [[line for line in (box.get_property("innerText") or "").splitlines() if line] for box in boxes]
        found = {lines[0]: lines for lines in texts if lines and lines[0] in ASSETS and "Asset checks" in lines}
        is_complete = set(found) == set(ASSETS) and all("Passed" in " ".join(lines) for lines in found.values())
        return found if is_complete else {}

    expanded = ",".join(f"global@global:{group}" for group in _groups())
    found = look(f"/asset-groups?expanded={expanded}", nodes)
    checks = {name: lines[lines.index("Asset checks") + 1] for name, lines in found.items()}
    expected = {name: f"{len(SUITES[name].checks)} / {len(SUITES[name].checks)} Passed" for name in ASSETS}
    count = len(SUITES["rejected_records"].checks)
    expected["rejected_records"] = f"{count - 1} / {count} Passed"  # one line of nine is bad, and a warning says so
    count = len(SUITES["raw_logs"].checks) + len(INGEST_CHECKS)
    expected["raw_logs"] = f"{count - 2} / {count} Passed"  # one bad line of nine: too many, of the file and of the run
    count = len(SUITES["system_health"].checks)
    expected["system_health"] = (
        f"{count} / {count + 1} Passed"  # whether the newest hour is there is checked at its time
    )
    assert checks == expected
    boxes = [box.get_attribute("textContent") for box in browser.find_elements(By.TAG_NAME, "foreignObject")]
    of_assets = [text for text in boxes if text and "Asset checks" in text]  # with what lies at the edge of the page
    assert len(of_assets) >= len(ASSETS)
    assert [text for text in of_assets if "DuckDB" not in text] == []


def test_the_page_of_an_asset_shows_its_description_columns_owners_and_rows(
    browser: WebDriver, look: Callable[[str, Callable[[], Found]], Found]
) -> None:
    text = look(
        "/assets/agent_health?view=overview", lambda: _complete(browser, "Row count", "Owners", "null when inactive")
    )
    assert "The Agent Health Model" in text
    assert "agent-platform" in text
    assert "Health score, 0 to 100; null when inactive." in text
    rows = text.splitlines()
    assert rows[rows.index("Row count") + 1] == str(3 * 4), "three hours of four agents"


def test_the_page_of_a_materialization_shows_the_worst_agents(
    browser: WebDriver, look: Callable[[str, Callable[[], Found]], Found]
) -> None:
    text = look(
        "/assets/agent_health?view=events", lambda: _complete(browser, "worst agents", "bob", "dagster/row_count")
    )
    assert text.index(" bob ") < text.index(" ada "), "the one that fails comes first"


def test_the_page_of_checks_shows_all_of_them_and_samples_of_a_failing_one(
    browser: WebDriver, look: Callable[[str, Callable[[], Found]], Found]
) -> None:
    path = f"/assets/rejected_records?view=checks&checkDetail={WARNING}"
    text = look(path, lambda: _complete(browser, "failing_rows", "unexpected_count"))
    assert f"Checks ({len(SUITES['rejected_records'].checks)})" in text
    for check in SUITES["rejected_records"].checks:
        assert check.name in text
    assert "failed_hours" in text


def test_the_partitions_of_an_asset_begin_with_the_logs(
    browser: WebDriver, look: Callable[[str, Callable[[], Found]], Found]
) -> None:
    text = look("/assets/agent_health?view=partitions", lambda: _complete(browser, "Materialized (3)", "Missing ("))
    [missing] = re.findall(r"Missing \((\d+)\)", text)
    assert int(missing) <= 1, "but for the hour that may have ended since"


def test_materialize_all_on_the_lineage_offers_a_range_of_hours(
    browser: WebDriver, look: Callable[[str, Callable[[], Found]], Found]
) -> None:
    def dialog() -> str:
        text = _complete(browser, "Partition selection", "Launch backfill")
        if re.search(r"Showing [1-9]\d* of", text):  # the partitions come after the dialog
            return text
        for button in browser.find_elements(By.TAG_NAME, "button"):
            if button.text.startswith("Materialize all"):
                with suppress(ElementClickInterceptedException):  # the dialog opens already
                    button.click()
        return ""

    text = look("/asset-groups", dialog)
    assert f"Launch runs to materialize {len(ASSETS) + len(SURVEY_TABLES)} assets" in text
    [(offered, there)] = re.findall(r"Showing (\d+) of (\d+) partitions", text)
    assert offered == there and int(there) in (3, 4)


def _complete(browser: WebDriver, *wanted: str) -> str:
    """The page's text, once it holds all that is wanted."""
    text = _text(browser)
    return text if all(part in text for part in wanted) else ""
