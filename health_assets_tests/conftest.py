"""Fixtures that every test may use, and how long Hypothesis looks."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from health_assets_tests.support import remembered_sql
from health_assets_tests.support.projects import Project

# The same examples in every run, so that a failure is never a surprise of the day; HYPOTHESIS_PROFILE=explore looks further.
_ALWAYS = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
settings.register_profile("steady", derandomize=True, **_ALWAYS)
settings.register_profile("explore", derandomize=False, **_ALWAYS)
settings.load_profile(os.getenv("HYPOTHESIS_PROFILE", "steady"))
remembered_sql.remember()


LONGEST_FIRST = (
    "test_ingestion_properties", "test_kill", "test_dagster_runs", "test_faults", "test_cli", "test_pruning", "test_ui",
)  # fmt: skip
"""Modules that take minutes: begun first, so that no process is left alone with one at the end."""


def pytest_configure(config: pytest.Config) -> None:
    # ibis 12.0 uses names of DuckDB 2.0 and pandas 3 that are going away; nothing that we could change
    config.addinivalue_line("filterwarnings", r"ignore:fetch_arrow_table\(\) is deprecated:DeprecationWarning")
    config.addinivalue_line(
        "filterwarnings", "ignore:The 'future.infer_string' option is deprecated:DeprecationWarning"
    )


def pytest_collection_finish() -> None:
    """What is imported stays to the end: the collector of garbage need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(autouse=True)
def _no_settings_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("HEALTH_", "DAGSTER_")):
            monkeypatch.delenv(name)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project with default targets and windows."""
    return Project(tmp_path / "project")
