"""Chromium without a screen, for tests of pages: what it complains of, whom it asks, what axe-core finds."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM = Path("/usr/bin/chromium")
CHROMEDRIVER = Path("/usr/bin/chromedriver")
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
SCREENSHOTS = Path(os.environ["HEALTH_SCREENSHOTS_IN"]) if "HEALTH_SCREENSHOTS_IN" in os.environ else None
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip
PATIENCE_S = 60
NARROW, USUAL, WIDE = 390, 1280, 1920
IMPACTS = ("serious", "critical")
OVER_THE_NETWORK = ("http", "https", "ws", "wss", "ftp")
"""All other addresses are the browser's own, such as those of its first, empty tab."""

needs_browser = pytest.mark.skipif(
    not (CHROMIUM.exists() and CHROMEDRIVER.exists()),
    reason=f"{CHROMIUM} and {CHROMEDRIVER} are not both installed (apt-get install chromium chromium-driver)",
)


class Browser:
    """A window, and what it has complained of since it was last asked."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str, width: int = USUAL, height: int = 1000) -> None:
        """Open a page in a window of that size, and wait until its scripts have run."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        self.driver.get(address)
        is_ready = (
            "return document.readyState === 'complete' && document.documentElement.classList.contains('scripted')"
        )
        WebDriverWait(self.driver, PATIENCE_S).until(lambda driver: driver.execute_script(is_ready))

    def complaints(self) -> list[str]:
        """Errors on the console since the last time."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def hosts(self) -> set[str]:
        """The hosts that pages have asked for anything since the last time."""
        found = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = urlsplit(message["params"]["request"]["url"])
                if url.scheme in OVER_THE_NETWORK:
                    found.add(url.netloc)
        return found

    def barriers(self) -> list[str]:
        """Findings of axe-core that are serious."""
        # by the debugger's door: the page's policy lets no other script in
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
        found: list[dict[str, Any]] = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then(found => done(found.violations));"
        )
        return [
            f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in IMPACTS
        ]

    def overflow_px(self) -> int:
        """By how much the page is wider than its window."""
        return self.driver.execute_script("return document.documentElement.scrollWidth - window.innerWidth")

    def unreachable(self, most: int = 250) -> list[str]:
        """Elements that can be pressed or filled in on the page, but that the tabulator key does not reach."""
        self.driver.execute_script(
            "window.wanted = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary,"
            " textarea')].filter(one => one.checkVisibility() && !one.disabled); window.reached = new Set();"
            "document.addEventListener('focusin', event => window.reached.add(event.target));"
        )
        count = self.driver.execute_script(
            "return window.wanted.length + document.querySelectorAll('[tabindex=\"0\"]').length"  # boxes that scroll
        )
        body = self.driver.find_element(By.TAG_NAME, "body")
        for _ in range(min(most, count + 12)):
            body.send_keys(Keys.TAB) if _ == 0 else self.driver.switch_to.active_element.send_keys(Keys.TAB)
        return self.driver.execute_script(
            f"return window.wanted.slice(0, {max(1, most - 12)}).filter(one => !window.reached.has(one)).map(one => one.outerHTML.slice(0, 160))"
        )

    def keep(self, name: str) -> None:
        """Keep a picture of the page, where somebody wants to look at it."""
        if SCREENSHOTS is not None:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            height = self.driver.execute_script("return document.documentElement.scrollHeight")
            width = self.driver.execute_script("return window.innerWidth")
            size = {"width": width, "height": min(height, 6000), "deviceScaleFactor": 1, "mobile": False}
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            self.driver.save_screenshot(str(SCREENSHOTS / f"{name}.png"))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser of its own, which ends with the block."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(CHROMEDRIVER)))
    driver.set_script_timeout(PATIENCE_S)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
