"""Refusals of a warehouse, in the same words whichever engine it is on.

What belongs here: faults that every engine has. What does not: those of one engine, which its store puts into words.
"""

from health_assets.core.errors import HealthAssetsError, WarehouseBusyError
from health_assets.schema.catalog import BASELINE_VERSION, SCHEMA_VERSION

LEDGER_TABLE = "lake_hours"
"""A database that has it is the ledger of a lake, and its tables of records and results are empty."""


def of_a_lake(name: object) -> HealthAssetsError:
    """The error for a ledger that is named as the warehouse itself."""
    return HealthAssetsError(
        f"{name} is the ledger of a lake on Spark; name its cluster as the warehouse, and it as HEALTH_LEDGER"
    )


def require_supported_version(name: object, version: int | None, *, is_ledger: bool = False) -> int:
    """The version of the tables, which this program can use or upgrade.

    Args:
        name: where the tables are.
        version: what they say; None where they say nothing.
        is_ledger: whether they are the ledger of a lake.

    Raises:
        HealthAssetsError: they are of a newer program, of one so old that nothing leads from it, or say nothing.
    """
    what = "ledger" if is_ledger else "warehouse"
    if version is not None and version > SCHEMA_VERSION:
        raise HealthAssetsError(
            f"the {what} {name} has version {version}, newer than the {SCHEMA_VERSION} "
            "that this program knows; upgrade health-assets"
        )
    if version is None or version < BASELINE_VERSION:
        has = "does not say the version of its tables" if version is None else f"has version {version} of the tables"
        new = "a new HEALTH_LEDGER and a new HEALTH_LAKE" if is_ledger else "a new warehouse"
        raise HealthAssetsError(
            f"the {what} {name} {has}, and the oldest that can be upgraded is {BASELINE_VERSION}; "
            f"name {new} and materialize the hours again from the logs"
        )
    return version


def still_held(name: object, holder: str, lock_timeout_s: float) -> WarehouseBusyError:
    """The error for a warehouse that somebody held for longer than we wait."""
    return WarehouseBusyError(
        f"the warehouse {name} is held by {holder} and did not come free within {lock_timeout_s:g} s; "
        "wait for it or stop it"
    )


def lacks_value(table: str, column: str) -> HealthAssetsError:
    """The error for a row that lacks a value which its table declares as never null."""
    return HealthAssetsError(
        f"a row of {table} has no {column}, which the table declares as never null; nothing of this step was kept"
    )


def without_drivers() -> HealthAssetsError:
    """The error where the extra for PostgreSQL is not installed."""
    return HealthAssetsError("a warehouse on PostgreSQL needs its drivers: pip install 'health-assets[postgres]'")
