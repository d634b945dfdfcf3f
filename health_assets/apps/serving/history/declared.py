"""The program's own declarations that the page of the data needs: assets of hours, versions of formulas, checks.

What belongs here: putting them as plain values, kept with the history. What does not: the declarations themselves
(`systems.declared_assets`, `systems.suites`), which need libraries that the server does without.
"""

from importlib import import_module
from typing import Any

from health_assets.core.systems import SYSTEM_NAMES, parts
from health_assets.schema.catalog import columns_of
from health_assets.schema.columns import FORMULA_VERSION
from health_assets.schema.records import RECORD_TABLES
from health_assets.systems.declared_assets import DERIVED
from health_assets.systems.suites import SUITES


def declared() -> dict[str, Any]:
    """Names, versions and checks that the program declares.

    Returns:
        assets: names of all that a run makes of every hour, in the order of the lineage.
        systems: by scoring system, the `version` of its formulas, and its `results`, whose rows have it.
        checks: by asset, in that order, and by check, what must be true.
    """
    return {
        "assets": ["raw_logs", *RECORD_TABLES, *DERIVED],
        "systems": {system: {"version": _version(system), "results": _results(system)} for system in SYSTEM_NAMES},
        "checks": {asset: {check.name: check.meaning for check in suite.checks} for asset, suite in SUITES.items()},
    }


def _version(system: str) -> str:
    return import_module(f"health_assets.systems.{system}").FORMULA_VERSION


def _results(system: str) -> list[str]:
    tables = [table.__tablename__ for table in parts("tables")[system].TABLES]
    return [name for name in tables if FORMULA_VERSION in columns_of(name)]
