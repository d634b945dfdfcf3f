"""Pages in Chromium: how long a person waits until they are painted and, on the fleet's, the search answers.

The browser runs without a screen on the same machine, with nothing in its cache. Its own clock starts with the
navigation: `painted` is the frame after the squares are in the page, `answered` the frame in which the list stands that
a text asks for, typed as soon as the page is there.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM = Path("/usr/bin/chromium")
CHROMEDRIVER = Path("/usr/bin/chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip
ROUNDS, ROUNDS_OF_OTHERS = 10, 5
PATIENCE_S = 60
WATCH = """
window.times = {};
const painted = (name) => requestAnimationFrame(() => setTimeout(() => { window.times[name] ??= performance.now(); }));
document.addEventListener("DOMContentLoaded", () => {
  painted("painted");
  for (const event of ["htmx:after:swap", "htmx:afterSwap"]) {
    document.body.addEventListener(event, () => painted("answered"));
  }
  if ("TEXT") setTimeout(() => {
    document.querySelector("#q").value = "TEXT";
    document.querySelector("#q").dispatchEvent(new Event("input", { bubbles: true }));
  });
});
"""
"""Runs in the page before its own scripts."""


def in_browser(address: str, headers: Mapping[str, str], text: str) -> None:
    """Open the fleet's page several times, each with an empty cache, and print what that took.

    Args:
        address: of the server.
        headers: by which it knows the caller.
        text: what is searched for.
    """
    if not (CHROMIUM.exists() and CHROMEDRIVER.exists()):
        print("the browser is left out: Chromium is not installed")
        return
    with _window(headers, text) as driver:
        rounds = [_opened(driver, address) for _ in range(ROUNDS)]
    told = {name: [one[name] for one in rounds] for name in ("painted", "answered", "kilobytes")}
    print(
        f"in Chromium, ms from the navigation: squares painted {median(told['painted']):.0f} (first "
        f"{told['painted'][0]:.0f}, worst {max(told['painted']):.0f}), search answered {median(told['answered']):.0f} "
        f"(first {told['answered'][0]:.0f}, worst {max(told['answered']):.0f}); {max(told['kilobytes']):.0f} KB with "
        f"styles and scripts  load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def usable(address: str, headers: Mapping[str, str], pages: Mapping[str, str]) -> None:
    """Open pages several times, each with an empty cache, and print when they were painted with their curves drawn.

    Args:
        address: of the server.
        headers: by which it knows the caller.
        pages: paths by name.
    """
    if not (CHROMIUM.exists() and CHROMEDRIVER.exists()):
        return
    with _window(headers, "") as driver:
        for name, path in pages.items():
            took_ms = [_painted(driver, address + path) for _ in range(ROUNDS_OF_OTHERS)]
            print(
                f"{name:<16} in Chromium: painted {median(took_ms):.0f} ms (first {took_ms[0]:.0f}, "
                f"worst {max(took_ms):.0f})  load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


@contextmanager
def _window(headers: Mapping[str, str], text: str) -> Iterator[webdriver.Chrome]:
    """A browser that keeps nothing, known by the headers, whose pages tell their times."""
    with tempfile.TemporaryDirectory(prefix="health-assets-browser-") as profile:
        driver = _driver(profile)
        try:
            driver.execute_cdp_cmd("Network.enable", {})
            driver.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
            driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": dict(headers)})
            driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH.replace("TEXT", text)})
            yield driver
        finally:
            driver.quit()


def _driver(profile: str) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(str(CHROMEDRIVER)))


def _painted(driver: webdriver.Chrome, address: str) -> float:
    """Open a page once; milliseconds from the navigation until it was painted."""
    driver.get("about:blank")
    driver.get(address)
    return WebDriverWait(driver, PATIENCE_S, 0.05).until(lambda it: it.execute_script("return window.times.painted"))


def _opened(driver: webdriver.Chrome, address: str) -> dict[str, float]:
    """Open the page once; milliseconds from the navigation on, and kilobytes that were transferred."""
    driver.get("about:blank")
    driver.get(address)
    WebDriverWait(driver, PATIENCE_S, 0.05).until(lambda it: it.execute_script("return window.times.answered"))
    told = driver.execute_script(
        "return {...window.times, squares: document.querySelectorAll('.squares .square').length,"
        " kilobytes: performance.getEntries().reduce((sum, one) => sum + (one.transferSize ?? 0), 0) / 1000};"
    )
    assert told["squares"], "there is no square to be painted"
    return told
