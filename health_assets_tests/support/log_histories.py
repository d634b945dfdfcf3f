"""Tests that write logs step by step, in one project: each step of all of them is one ingestion and one rebuild.

A history is a generator function. It gets a folder of its own below the raw root, and each `yield` waits for the next
ingestion, whose report it gives. Histories must hold different lines, since equal files are one log, and spans of
different traces. A module whose tests are not about rebuilds does without them.
"""

import functools
import inspect
import itertools
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.hours import HourRange
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.schema.catalog import columns_of
from health_assets.warehouse.session import Session
from health_assets_tests.support.projects import (
    RECORD_TABLES,
    Project,
    Row,
    assert_lines_are_conserved,
    assert_same_tables,
    rows_of_tables,
)

Steps = Generator[None, IngestReport, Any]


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
        return self.tables([table])[table]

    def tables(self, names: Sequence[str]) -> dict[str, list[Row]]:
        """The same of several tables."""
        with self.session(names) as session:
            return rows_of_tables(session, names)

    @contextmanager
    def session(self, names: Sequence[str] = RECORD_TABLES) -> Iterator[Session]:
        """A session in which these tables have the rows that are from these logs."""
        folder = self.key("")
        with self.project.session("read") as session:
            [(warehouse,)] = session.query("SELECT current_database()")
            for name in names:
                if "source_file" in columns_of(name):
                    session.query(
                        f"CREATE TEMP VIEW {name} AS "
                        f"SELECT * REPLACE (substr(source_file, {len(folder) + 1}) AS source_file) "
                        f"FROM {warehouse}.main.{name} WHERE starts_with(source_file, '{folder}')"
                    )
            yield session

    def files_read(self, report: IngestReport) -> list[str]:
        """Which of these logs an ingestion read."""
        return [self.without_folder(name) for name in report.files_read if name.startswith(self.key(""))]

    def lines_read(self, report: IngestReport) -> int:
        """How many lines and spans of these logs an ingestion read."""
        return sum(read for name, (read, _) in report.read_by_file.items() if name.startswith(self.key("")))

    def told(self, report: IngestReport) -> dict[str, str]:
        """What an ingestion tells of these logs."""
        return {
            self.without_folder(name): told for name, told in report.notices.items() if name.startswith(self.key(""))
        }


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
        has_rebuilds: whether the tables are compared with those of a clean rebuild after each step.
    """

    def __init__(
        self, *hours: HourRange, account: Callable[[Project], Any] = lambda _: None, has_rebuilds: bool = True
    ) -> None:
        self._hours = hours
        self._account = account
        self._has_rebuilds = has_rebuilds
        self._histories: dict[str, Callable[[LogFolder], Steps]] = {}

    def test(self, history: Callable[..., Steps]) -> Callable[..., None]:
        """Make a test of a history, for each set of values of its `pytest.mark.parametrize`."""
        marks = [mark for mark in getattr(history, "pytestmark", ()) if mark.name == "parametrize"]
        for sets in itertools.product(*map(_sets_of_values, marks)):
            values = dict(itertools.chain.from_iterable(map(dict.items, sets)))
            self._histories[_name_of(history, values)] = functools.partial(history, **values)

        def test(outcomes: Outcomes, **values: Any) -> None:
            outcomes.require(_name_of(history, values))

        functools.update_wrapper(test, history)
        del test.__wrapped__  # a generator function, of which pytest makes no test
        own = inspect.Parameter("outcomes", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test.__signature__ = inspect.Signature([own, *[*inspect.signature(history).parameters.values()][1:]])
        return test

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
            if not self._has_rebuilds:
                assert_lines_are_conserved(project)
            elif hours == self._hours[-1]:
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


def _sets_of_values(mark: pytest.Mark) -> list[dict[str, Any]]:
    """The sets of values of a `parametrize`, by name."""
    names, sets = mark.args
    if isinstance(names, str):
        return [{names: value} for value in sets]
    return [dict(zip(names, values, strict=True)) for values in sets]


def _name_of(history: Callable[..., Steps], values: Mapping[str, Any]) -> str:
    return f"{history.__name__} {sorted(values.items())}"
