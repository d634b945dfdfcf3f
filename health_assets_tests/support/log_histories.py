"""Tests that write logs step by step, in one project: each step of all of them is one ingestion and one clean rebuild.

A history is a generator function. It gets a folder of its own below the raw root, and each `yield` waits for the next
ingestion, whose report it gives. Histories must hold different lines, since equal files are one log.
"""

import functools
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.hours import HourRange
from health_assets.pipeline.ingest_report import IngestReport
from health_assets_tests.support.projects import (
    RECORD_TABLES,
    Project,
    Row,
    assert_lines_are_conserved,
    assert_same_tables,
)

Steps = Generator[None, IngestReport, None]


@dataclass(frozen=True)
class LogFolder:
    """The folder of one history in the raw root of the shared project."""

    project: Project
    name: str

    def path(self, name: str) -> Path:
        """The path of a log."""
        return self.project.raw / self.name / name

    def key(self, name: str) -> str:
        """The name of a log in the tables."""
        return f"{self.name}/{name}"

    def without_folder(self, key: str) -> str:
        """The name of a log in the tables as the history gave it."""
        return key.removeprefix(self.key(""))

    def write(self, name: str, content: bytes, *, modified: datetime | None = None) -> Path:
        """Write a log, gzipped where its name says so."""
        return self.project.write_bytes(self.key(name), content, modified=modified)

    def rows(self, table: str) -> list[Row]:
        """The rows of a table that are from these logs, with the names that the history gave them."""
        rows = [row for row in self.project.rows(table) if row["source_file"].startswith(self.key(""))]
        return [{**row, "source_file": self.without_folder(row["source_file"])} for row in rows]

    def files_read(self, report: IngestReport) -> list[str]:
        """Which of these logs an ingestion read."""
        return [self.without_folder(name) for name in report.files_read if name.startswith(self.key(""))]

    def lines_read(self, report: IngestReport) -> int:
        """How many lines and spans of these logs an ingestion read."""
        return sum(read for name, (read, _) in report.read_by_file.items() if name.startswith(self.key("")))

    def told(self, report: IngestReport) -> dict[str, str]:
        """What an ingestion tells of these logs."""
        return {self.without_folder(name): told for name, told in report.told.items() if name.startswith(self.key(""))}


class Outcomes:
    """What became of each history, and of the rebuilds after each step.

    Args:
        errors: by name of a history that has ended, its error, if it had one.
        differences: what a rebuild had otherwise.
    """

    def __init__(self) -> None:
        self.errors: dict[str, Exception | None] = {}
        self.differences: list[AssertionError] = []

    def require(self, name: str) -> None:
        """Raise the error of a history, if it had one."""
        error = self.errors[name]
        if error is not None:
            raise error

    def goes_on(self, name: str, steps: Steps, report: IngestReport | None) -> bool:
        """Let a history take its next step; gives whether it waits for another ingestion."""
        try:
            if report is None:
                next(steps)
            else:
                steps.send(report)
        except StopIteration:
            self.errors[name] = None
            return False
        except Exception as error:
            self.errors[name] = error
            return False
        return True


class Histories:
    """The histories of a module, which run side by side when the first of them is asked for.

    Args:
        hours: of the ingestions, one by one; the last ones are those of all further ones, and of the rebuilds.
        account: gives what else is to be the same after a rebuild.
    """

    def __init__(self, *hours: HourRange, account: Callable[[Project], Any] = lambda _: None) -> None:
        self._hours = hours
        self._account = account
        self._histories: dict[str, Callable[[LogFolder], Steps]] = {}

    def test(self, history: Callable[[LogFolder], Steps]) -> Callable[[Outcomes], None]:
        """Make a test of a history."""
        name = history.__name__
        self._histories[name] = history

        def test(outcomes: Outcomes) -> None:
            outcomes.require(name)

        test.__name__ = name
        return test

    def test_each(self, cases: Mapping[str, Any]) -> Callable[[Callable[..., Steps]], Callable[..., None]]:
        """Make a test of a history for each case, its second argument."""

        def decorated(history: Callable[..., Steps]) -> Callable[..., None]:
            names = {case: f"{history.__name__} {case}" for case in cases}
            for case, value in cases.items():
                self._histories[names[case]] = functools.partial(history, case=value)

            @pytest.mark.parametrize("case", cases)
            def test(outcomes: Outcomes, case: str) -> None:
                outcomes.require(names[case])

            test.__name__ = history.__name__
            return test

        return decorated

    def run(self, folder: Path) -> Outcomes:
        """Run all histories in a project of their own."""
        project, outcomes = Project(folder / "project"), Outcomes()
        begun = {
            name: history(LogFolder(project, f"{place:02}")) for place, (name, history) in enumerate(self._histories.items())
        }  # fmt: skip
        under_way = {name: steps for name, steps in begun.items() if outcomes.goes_on(name, steps, None)}
        step = 0
        while under_way:
            hours = self._hours[min(step, len(self._hours) - 1)]
            report = project.ingest(hours)
            if hours == self._hours[-1]:
                self._compare(project, f"clean {step}", outcomes)
            under_way = {name: steps for name, steps in under_way.items() if outcomes.goes_on(name, steps, report)}
            step += 1
        return outcomes

    def _compare(self, project: Project, name: str, outcomes: Outcomes) -> None:
        clean = project.clean_rebuild(self._hours[-1], name, only=["ingest"])
        try:
            assert_same_tables(project.tables(names=RECORD_TABLES), clean.tables(names=RECORD_TABLES))
            assert self._account(project) == self._account(clean)
            assert_lines_are_conserved(project)
        except AssertionError as error:
            outcomes.differences.append(error)
