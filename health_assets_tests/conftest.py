"""Fixtures that every test may use, and how long Hypothesis looks."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from hypothesis import HealthCheck, settings

from health_assets_tests.support.dagster_world import batching_instance
from health_assets_tests.support.projects import SALT, Project, lasting_folder

# The same examples in every run, so that a failure is never a surprise of the day. HYPOTHESIS_PROFILE=nightly looks further
# (`support.examples`), and HYPOTHESIS_PROFILE=explore as far with other examples each time.
_ALWAYS = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
settings.register_profile("ci", derandomize=True, **_ALWAYS)
settings.register_profile("nightly", derandomize=True, **_ALWAYS)
settings.register_profile("explore", derandomize=False, **_ALWAYS)
settings.load_profile(os.getenv("HYPOTHESIS_PROFILE", "ci"))
os.environ["XDG_CACHE_HOME"] = str(lasting_folder())  # no test knows SQL that other tests, or a developer, compiled
os.environ["HEALTH_PRICES"] = "off"
os.environ["HEALTH_PUBLISHED"] = "off"
os.environ["HEALTH_DIGEST_SALT"] = SALT  # of fixtures of modules; tests have it by `_no_settings_of_the_developer`


LONGEST_FIRST = (
    "test_soak", "test_spark_equality", "test_dagster_runs", "test_suites", "test_ingestion_properties", "test_what_became_of_logs", "test_ui", "test_kill",
    "test_session_scores", "test_reliability", "test_evaluated_signals", "test_worker", "test_agent_health_state", "test_serving_faults",
    "test_running_hour", "test_append_detection", "test_component", "test_pruning", "test_cancelled_runs",
    "test_judge", "test_fuzz", "test_formula_versions", "test_dev", "test_outcomes_by_evaluators", "test_agent_usage",
    "test_scores_equal_reference", "test_cli", "test_natural_tasks", "test_alert_rules", "test_mcp_over_stdio", "test_late_logs_sensor",
    "test_faults", "test_sql_memory", "test_wheel", "test_upgrades", "test_postgres_equality", "test_object_stores", "test_unreadable_logs",
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


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else DuckDB counts its types as leaked, at great length


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(autouse=True)
def _no_settings_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("HEALTH_", "DAGSTER_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HEALTH_DIGEST_SALT", SALT)  # warehouses are compared with each other
    monkeypatch.setenv("HEALTH_PRICES", "off")  # a new price list changes no expected value; tests of prices set it
    monkeypatch.setenv("HEALTH_PUBLISHED", "off")  # tests of published tables turn it on


@pytest.fixture(autouse=True)
def _definitions_are_loaded_to_be_shown() -> Iterator[None]:
    """Dagster keeps in a global how it last loaded definitions: a run in an earlier test must not decide our hours."""
    with DefinitionsLoadContext.scoped(DefinitionsLoadContext(DefinitionsLoadType.INITIALIZATION)):
        yield


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project with default targets and windows."""
    return Project(tmp_path / "project")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """A Dagster instance that keeps its records, with the project's event storage, in a folder of its own."""
    folder = tmp_path / "dagster"
    folder.mkdir()
    with batching_instance(folder) as made:
        yield made
