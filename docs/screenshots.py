"""Pictures of the pages in `pages/`, of the demo's fleet in Chromium: `make screenshots` takes them."""

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import yaml

from health_assets.apps.demo.sample_fleet import TARGETS_YAML
from health_assets.apps.demo.samples import sample_files, span_until
from health_assets.core.hours import floor_hour
from health_assets_tests.support.browser import CHROMEDRIVER, CHROMIUM, USUAL, browser
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.projects import Project

FOLDER = Path(__file__).parent / "pages"


class Picture(NamedTuple):
    """What a picture shows, from the top of the page."""

    path: str
    height_px: int


PICTURES = {
    "fleet": Picture("/", 1050),
    "agent": Picture("/ui/agents/crm-sync", 1150),
    "session": Picture("/ui/sessions/support-triage-session-146", 900),
    "data": Picture("/ui/data", 800),
    "usage": Picture("/ui/usage", 1000),
}


def fleet_of_today(folder: Path) -> World:
    """The demo's fleet up to now, materialized."""
    project = Project(folder, targets=yaml.safe_load(TARGETS_YAML))
    span = span_until(floor_hour(datetime.now(UTC)))
    project.write_files(sample_files(span))
    project.materialize(span)
    return world_of(project, span)


def main() -> None:
    """Take every picture."""
    if not (CHROMIUM.exists() and CHROMEDRIVER.exists()):
        sys.exit(f"{CHROMIUM} and {CHROMEDRIVER} are needed (apt-get install chromium chromium-driver)")
    with tempfile.TemporaryDirectory(prefix="health-assets-screenshots-") as folder:
        world = fleet_of_today(Path(folder) / "fleet")
        with world.served() as server, browser(Path(folder) / "profile") as window:
            for name, picture in PICTURES.items():
                window.open(f"http://127.0.0.1:{server.port}{picture.path}", USUAL, picture.height_px)
                window.driver.save_screenshot(str(FOLDER / f"{name}.png"))
                print(FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
