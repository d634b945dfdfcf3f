"""The one warehouse whose runs a Dagster instance records: its pages would show the hours of two as those of one.

What belongs here: noting it in the instance, and refusing a run for another. What does not: the write lock, which
cannot order runs that belong to two warehouses (`write_lock`).
"""

from pathlib import Path

import dagster as dg

from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets.defs.write_lock.lease_store import patiently
from health_assets.warehouse.location import ledger_of, warehouse_name

KEY = "health_assets/warehouse"


def note_warehouse(instance: dg.DagsterInstance, settings: Settings) -> None:
    """Note whose runs the instance records; a warehouse in a file that is no longer there gives way to another.

    Raises:
        HealthAssetsError: it records the runs of another warehouse, or its database was away for too long.
    """
    storage, own = instance.run_storage, warehouse_name(ledger_of(settings))
    known = patiently(lambda: storage.get_cursor_values({KEY}), settings.lease_s).get(KEY)
    if known == own:
        return
    if known and (not Path(known).is_absolute() or Path(known).exists()):
        raise HealthAssetsError(
            f"the Dagster instance in use records the runs of the warehouse {known}, and would show those of {own} as "
            "the same; give each warehouse a DAGSTER_HOME of its own"
        )
    patiently(lambda: storage.set_cursor_values({KEY: own}), settings.lease_s)
