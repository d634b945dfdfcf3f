"""The demo's fleet with a history, for tests of pages: the real steps from logs to tables, once for all tests of a module.

Use `demo_world` in a fixture of the module's scope; it takes some seconds. `look_at` is what a caller sees of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from health_assets.apps.demo.sample_fleet import SPAN_H, TARGETS_YAML
from health_assets.apps.demo.samples import sample_files, span_until
from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.history.exporter import fill
from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.ownership import Ownership
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import load_targets
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.projects import Project
from health_assets_tests.support.serving_made import Served, readers_in_this_process, served

END = START + timedelta(days=3)
FULL = AccessScope(is_full=True)


@dataclass
class World:
    """A warehouse, its history and when it ends."""

    project: Project
    hours: HourRange
    history: History

    @property
    def hour(self) -> datetime:
        """The newest hour."""
        return self.hours.end - HOUR

    @contextmanager
    def served(self, **options: Any) -> Iterator[Served]:
        """The pages and their history on a real server, whose readers are in this process."""
        project = self.project
        known = {"targets": project.targets_path, "pages": True, "history": project.folder / "history"}
        with readers_in_this_process(), served(project.warehouse_path, history_days=400, **known | options) as running:
            yield running

    def look(self, view: AccessScope = FULL, hour: datetime | None = None, **changes: Any) -> ScopedHistory:
        """What a caller sees, who looks a little after the newest hour has ended."""
        known = {
            "history": self.history,
            "hour": hour or self.hour,
            "view": view,
            "ownership": Ownership(load_targets(self.project.settings.targets)),
            "now": self.hours.end + timedelta(minutes=6),
            "late_after": timedelta(minutes=30),
            "is_newest": hour is None or hour == self.hour,
        }
        return ScopedHistory(**{**known, **changes})

    def copy(self) -> None:
        """Bring the history up to the warehouse."""
        fill_all(self.project, self.project.folder / "history", self.hours.end)
        self.history.look()


def fill_all(project: Project, folder: Path, now: datetime, settings: Settings | None = None) -> None:
    """Copy all hours into a history; one filling stops after a few seconds, with hours still to be copied."""
    while fill(settings or project.settings, folder, project.warehouse, now)["missing"]:
        pass


def world_of(project: Project, hours: HourRange) -> World:
    """A project whose hours are materialized already, with its history."""
    made = World(project, hours, History(project.folder / "history"))
    made.copy()
    return made


def demo_world(folder: Path, hours: int = SPAN_H) -> World:
    """The last hours of the demo's story, materialized, with their history."""
    project = Project(folder, targets=yaml.safe_load(TARGETS_YAML))
    span = span_until(END)
    project.write_files(sample_files(span))
    wanted = HourRange(span.end - hours * HOUR, span.end)
    project.materialize(wanted)
    return world_of(project, wanted)
