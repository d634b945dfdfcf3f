"""Histories of deliveries and runs, which all end with the same tables."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from health_assets.core.hours import HourRange
from health_assets_tests.equality.corpus import MODIFIED, Case
from health_assets_tests.support.projects import Project


def build_project(case: Case, folder: Path, history: str = "clean") -> Project:
    """A project with the tables of a case, whose hours were made by this history."""
    project = Project(folder, case.targets, case.window_hours, case.lookback_hours)
    HISTORIES[history](project, case)
    return project


def _clean(project: Project, case: Case) -> None:
    project.write_files(case.files(), modified=MODIFIED)
    _materialize(project, case)


def _hour_by_hour(project: Project, case: Case) -> None:
    project.write_files(case.files(), modified=MODIFIED)
    for hour in case.hours():
        project.materialize(HourRange.of(hour))


def _late(project: Project, case: Case) -> None:
    """Each log grows or comes anew in three deliveries, with a run of all hours after each."""
    random = Random(f"late {case.name}")
    files = case.files()
    rests = random.sample(sorted(files), len(files))
    for count in (len(rests) // 3, 2 * len(rests) // 3, len(rests)):
        shutil.rmtree(project.raw)
        project.raw.mkdir()
        arrived = {name: files[name] for name in rests[:count]}
        if count < len(rests) and not rests[count].endswith(".gz"):
            content = files[rests[count]]
            arrived[rests[count]] = content[: content.rfind(b"\n", 0, len(content) // 2) + 1]
        project.write_files(arrived, modified=MODIFIED)
        _materialize(project, case)


def _materialize(project: Project, case: Case) -> None:
    hours = case.hours()
    if case.later_targets is None:
        project.materialize(hours)
        return
    assert isinstance(hours, HourRange)
    first, second = _halves(hours)
    project.materialize(first)
    project.write_targets(case.later_targets)
    project.materialize(second)


def _halves(hours: HourRange) -> tuple[HourRange, HourRange]:
    middle = list(hours)[len(hours) // 2]
    return HourRange(hours.start, middle), HourRange(middle, hours.end)


HISTORIES: Mapping[str, Callable[[Project, Case], None]] = {
    "clean": _clean,
    "hour by hour": _hour_by_hour,
    "late": _late,
}
"""By name. `late` and `hour by hour` are for cases whose targets stay the same."""
