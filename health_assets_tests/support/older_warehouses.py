"""Warehouses of an older version of the tables: a version that this program upgrades, and the upgrade."""

import pytest

from health_assets.schema.catalog import BASELINE_VERSION
from health_assets.warehouse import refusals
from health_assets.warehouse.location import is_postgres
from health_assets.warehouse.migrations import migrate
from health_assets.warehouse.store import Warehouse

OLDER_VERSION = BASELINE_VERSION - 1


def support_older_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `OLDER_VERSION` be upgraded, as will be every version after the baseline."""
    monkeypatch.setattr(refusals, "BASELINE_VERSION", OLDER_VERSION)


def bring_up_to_date(url: str) -> None:
    """Do as `health-assets migrate` does."""
    if is_postgres(url):
        migrate(url, 10)
    else:
        with Warehouse(url).write():
            pass
