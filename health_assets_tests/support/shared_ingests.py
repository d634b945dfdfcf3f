"""Tests of one module that share an ingest: each writes its logs, yields, and then sees its own rows alone.

A test is a generator function. It gets a `SharedProject`, whose raw root is a folder in that of the module's project, and
each `yield` waits for the next ingest and gives its `IngestReport`. Within an hour, rows of one agent with one id supersede
each other, spans of one trace are one trace, and equal files are one log: tests keep hours, ids or traces apart where that
matters, by `SharedProject.number`. Tests of later deliveries, kills and other targets that need rebuilds use `log_histories`.
"""

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from health_assets.core.hours import HourRange
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.warehouse.session import Session
from health_assets_tests.support.projects import Project, assert_lines_are_conserved

Steps = Generator[None, IngestReport, Any]
_PARAM = type(pytest.param())


@dataclass
class SharedProject(Project):
    """The project of one test among those that share an ingest; only tables that name their rows' files are cut to its own."""

    number: int = 0
    session: Session | None = field(default=None, init=False, repr=False)

    @classmethod
    def within(cls, project: Project, number: int) -> "SharedProject":
        """The share of the test with this number."""
        shared = cls(project.folder, number=number)
        shared.raw = project.raw / shared.prefix
        shared.raw.mkdir()
        return shared

    @property
    def prefix(self) -> str:
        """Folder of this test's logs, which `source_file` begins with in the module's project."""
        return f"{self.number:03}/"

    @property
    def warehouse(self) -> "SharedProject":
        """The open session stands for the warehouse."""
        return self

    @contextlib.contextmanager
    def read(self) -> Iterator[Session]:
        """The session of the last ingest."""
        assert self.session is not None, "the test has not yielded yet"
        yield self.session

    @contextlib.contextmanager
    def _session(self, mode: Literal["read", "write"]) -> Iterator[Session]:
        assert mode == "read", "the tables are other tests' as well"
        with self.read() as session:
            yield session

    def told(self, report: IngestReport, name: str) -> str:
        """What an ingest tells of one of these logs."""
        return report.told.get(self.prefix + name, "")

    def ingest(self, *_: Any, **__: Any) -> IngestReport:
        raise AssertionError("a test that shares an ingest yields instead")

    materialize = ingest


class SharedIngests:
    """The tests of a module that share ingests, which run when the first of them is asked for.

    Args:
        hours: of each ingest.
        targets: of the module's project.
    """

    def __init__(self, hours: HourRange, targets: dict[str, Any] | None = None) -> None:
        self._hours = hours
        self._targets = targets
        self._cases: dict[str, Callable[[SharedProject], Steps]] = {}

    def test(self, case: Callable[..., Steps]) -> Callable[..., None]:
        """Make a test of a generator function, for each set of values of its `pytest.mark.parametrize`."""
        marks = [mark for mark in getattr(case, "pytestmark", []) if mark.name == "parametrize"]
        for values in itertools.product(*map(_values_of, marks)):
            arguments = dict(itertools.chain.from_iterable(one.items() for one in values))
            self._cases[_name_of(case, arguments)] = functools.partial(case, **arguments)

        def test(outcomes: Mapping[str, Exception | None], **arguments: Any) -> None:
            error = outcomes[_name_of(case, arguments)]
            if error is not None:
                raise error

        functools.update_wrapper(test, case)
        del test.__wrapped__  # a generator function, which pytest collects no tests of
        _, *parameters = inspect.signature(case).parameters.values()
        own = inspect.Parameter("outcomes", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test.__signature__ = inspect.Signature([own, *parameters])
        return test

    def run(self, folder: Path) -> dict[str, Exception | None]:
        """Run all tests in a project of their own; gives the error of each that had one."""
        project = Project(folder / "project", self._targets)
        shares = {name: SharedProject.within(project, number) for number, name in enumerate(self._cases)}
        waiting = {name: case(shares[name]) for name, case in self._cases.items()}
        outcomes: dict[str, Exception | None] = {}
        for name, steps in list(waiting.items()):
            if not _goes_on(outcomes, name, functools.partial(next, steps)):
                del waiting[name]
        while waiting:
            report = project.ingest(self._hours)
            assert_lines_are_conserved(project)
            with project.warehouse.read() as session:
                tables = _tables_with_files(session)
                for name, steps in list(waiting.items()):
                    shares[name].session = session
                    _show_only(session, tables, shares[name].prefix)
                    if not _goes_on(outcomes, name, functools.partial(steps.send, report)):
                        del waiting[name]
                    if outcomes.get(name):  # also of SQL, which ends the transaction
                        session.query("ROLLBACK")
                        session.query("BEGIN")
                    shares[name].session = None
        return outcomes


def _values_of(mark: pytest.Mark) -> list[dict[str, Any]]:
    """The sets of values of a `parametrize`, by name."""
    names, values = mark.args
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    plain = [one.values if isinstance(one, _PARAM) else (one,) if len(names) == 1 else one for one in values]
    return [dict(zip(names, one, strict=True)) for one in plain]


def _name_of(case: Callable[..., Steps], arguments: Mapping[str, Any]) -> str:
    return f"{case.__name__} {sorted(arguments.items(), key=lambda item: item[0])!r}"


def _goes_on(outcomes: dict[str, Exception | None], name: str, step: Callable[[], Any]) -> bool:
    """Let a test take its next step; gives whether it waits for another ingest."""
    try:
        step()
    except StopIteration:
        outcomes[name] = None
    except Exception as error:
        outcomes[name] = error
    return name not in outcomes


def _tables_with_files(session: Session) -> list[str]:
    rows = session.query(
        "SELECT current_database() || '.main.' || table_name FROM duckdb_columns() "
        "WHERE column_name = 'source_file' AND NOT internal AND database_name = current_database()"
    )
    return [table for (table,) in rows]


def _show_only(session: Session, tables: list[str], prefix: str) -> None:
    """Let the session see only rows of files below a folder, under the names that they have there."""
    for table in tables:
        session.query(
            f"CREATE OR REPLACE TEMP VIEW {table.split('.')[-1]} AS "
            f"SELECT * REPLACE (substr(source_file, {len(prefix) + 1}) AS source_file) FROM {table} "
            f"WHERE starts_with(source_file, '{prefix}')"
        )
