"""Parts of Great Expectations that it does not document and this project needs.

What belongs here: reaching into the library, for version 1.24, to which `pyproject.toml` pins it; `test_gx_internals`
fails first when they move. What does not: validating (`evaluation`).

Importing this imports nothing of the library, which takes seconds.

- A kind of expectation is made by a metaclass, which registers it, and asks itself for its configuration a hundred
  times per verdict; making that anew each time took nearly half of a validation.
- A context shows progress bars unless a type that is not exported says otherwise.
- It imports statistics and charts with itself, half of all that it imports, for expectations that no suite has, and
  clients of Spark, of clouds and of PostgreSQL where they are installed, for sources that are not ours.
"""

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

OF_OTHER_EXPECTATIONS = ("scipy.stats", "altair")
"""Modules that Great Expectations imports whole, and of which the suites need nothing."""
OF_OTHER_SOURCES = ("pyspark", "boto3", "botocore", "psycopg2")
"""Modules that it does without where they are not installed."""


class _ImportFilter(MetaPathFinder):
    """Finds no modules of other sources, and lets some be imported when somebody first asks them for something."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in OF_OTHER_SOURCES:
            raise ModuleNotFoundError(f"Great Expectations needs no {fullname}", name=fullname)
        spec = PathFinder.find_spec(fullname, path, target) if fullname in self._names else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def importing_without_unused_modules() -> Iterator[None]:
    """Let the library, when it is imported, import statistics later, and find no clients of other sources."""
    finder = _ImportFilter(OF_OTHER_EXPECTATIONS)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def remembering(kind: Any) -> Any:
    """A kind of expectation that makes its configuration once, under a name of its own.

    Args:
        kind: a class of `great_expectations.expectations`.
    """
    from great_expectations.compatibility.pydantic import PrivateAttr

    def configuration(expectation: Any) -> Any:
        if expectation._configuration is None:  # noqa: SLF001
            expectation._configuration = kind.configuration.fget(expectation)  # noqa: SLF001
        return expectation._configuration  # noqa: SLF001

    # each under a name of its own, by which Great Expectations registers it
    members = {"_configuration": PrivateAttr(None), "configuration": property(configuration), "__module__": __name__}
    return type(kind)(f"Remembering{kind.__name__}", (kind,), members)


def without_progress_bars(context: Any) -> None:
    """Let a context show no progress bars."""
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context.variables.progress_bars = ProgressBarsConfig(globally=False)
