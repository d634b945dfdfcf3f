"""Every page in a real browser, with the demo's fleet: no complaint, nothing from elsewhere, no barrier, no overflow."""

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from health_assets_tests.support.browser import NARROW, USUAL, WIDE, Browser, browser, needs_browser
from health_assets_tests.support.pages_made import World, demo_world

pytestmark = needs_browser

PAGES = {
    "fleet": "/",
    "agent": "/ui/agents/crm-sync?against=2026-06-09T03&versions=1.0.0,1.1.0",
    "agent of few runs": "/ui/agents/nightly-reporter?days=1",
    "sessions": "/ui/sessions",
    "session": "/ui/sessions/support-triage-session-146",
    "releases": "/ui/releases",
    "models": "/ui/models",
    "tools": "/ui/tools?by=tool",
    "usage": "/ui/usage",
    "reliability": "/ui/reliability",
    "reliability-of-an-agent": "/ui/reliability?agent=code-reviewer",
    "survey": "/ui/survey",
    "data": "/ui/data",
}
"""Addresses by the names of their pictures."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return demo_world(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module")
def address(world: World) -> Iterator[str]:
    with world.served() as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_whole_and_open_to_everybody(name: str, address: str, window: Browser) -> None:
    window.complaints(), window.hosts()
    window.open(address + PAGES[name])
    assert window.complaints() == []
    assert window.hosts() == {address.removeprefix("http://")}
    assert window.barriers() == []
    window.keep(f"{name}-{USUAL}")
    for width in (NARROW, WIDE):
        window.open(address + PAGES[name], width)
        assert window.overflow_px() <= 0, f"at {width} px"
        window.keep(f"{name}-{width}")


@pytest.mark.parametrize(
    "name", [name if name in ("fleet", "agent") else pytest.param(name, marks=pytest.mark.nightly) for name in PAGES]
)
def test_the_keyboard_alone_reaches_everything_on_a_page(name: str, address: str, window: Browser) -> None:
    window.open(address + PAGES[name])
    assert window.unreachable() == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_the_same_without_scripts(name: str, address: str, window: Browser) -> None:
    window.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        window.driver.get(address + PAGES[name])
        assert "Health Assets" in window.driver.title
        assert window.driver.find_elements("css selector", "main h1")
    finally:
        window.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_search_as_one_types_shows_what_is_found_and_puts_it_into_the_address(address: str, window: Browser) -> None:
    window.open(f"{address}/")
    before = len(window.driver.find_elements("css selector", "#found tbody tr"))
    window.driver.find_element("id", "q").send_keys("crm")
    waiting = WebDriverWait(window.driver, 20)
    waiting.until(lambda driver: len(driver.find_elements("css selector", "#found tbody tr")) == 1)
    assert before > 1
    waiting.until(lambda driver: "q=crm" in driver.current_url)
    assert window.complaints() == []


def test_a_curve_is_drawn_from_its_table(address: str, window: Browser) -> None:
    window.open(f"{address}/ui/agents/crm-sync")
    assert window.driver.find_elements("css selector", "figure.curve canvas")


def test_a_curve_tells_its_values_without_a_mouse(address: str, window: Browser) -> None:
    window.open(f"{address}/ui/agents/crm-sync")
    figure = window.driver.find_element("css selector", "figure.curve[data-curve=latency]")
    plot = figure.find_element("css selector", ".plot")
    cells = window.driver.execute_script(
        "return [...arguments[0].querySelectorAll('tbody tr')].map(row => [...row.cells].map(one => one.textContent))",
        figure,
    )

    def legend() -> list[str]:
        return [one.text for one in plot.find_elements("css selector", ".u-legend .u-value")]

    def told(row: list[str]) -> bool:
        hour, *values = legend()
        assert row[0] in hour
        return [float(one.removesuffix(" s").replace(",", "")) for one in values] == pytest.approx(
            list(map(float, row[1:]))
        )

    assert told(cells[-1]), "before anybody points at it"
    window.driver.execute_script("arguments[0].focus()", plot)
    plot.send_keys(Keys.ARROW_LEFT)
    plot.send_keys(Keys.ARROW_LEFT)
    assert told(cells[-3])
    plot.send_keys(Keys.ARROW_RIGHT)
    assert told(cells[-2])
    plot.send_keys(Keys.TAB)
    assert told(cells[-1]), "whoever leaves it sees the newest again"
    assert window.complaints() == []
