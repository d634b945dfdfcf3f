"""Parts of Dagster that it does not export and this project needs: tags, storages, and how an instance is made.

What belongs here: every import from Dagster's private modules, each with its reason, but for those of modules that have
a test of their own: how events are stored (`event_storage`, `postgres_event_storage`, `check_records`).
What does not: what is made of these parts.

They are those of Dagster 1.13, to which `pyproject.toml` pins it; `test_dagster_internals` fails first when they move.

- The tags say which partitions a run has, how urgent it is, and that it is not to be started again. Dagster documents
  their text, and exports no name for it.
- `SqliteEventLogStorage` tells where the file of a run's events is, since Dagster leaves files of deleted runs.
- `SqlRunStorage` and `KeyValueStoreTable` are where the lease is kept: Dagster's own interface to that table knows no
  compare-and-set.
- `environ` sets a variable for as long as an instance is open.
- `SerializableErrorInfo` is what a failed step tells, cause by cause.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.schema import KeyValueStoreTable
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    MAX_RETRIES_TAG,
    PARTITION_NAME_TAG,
    PRIORITY_TAG,
)
from dagster._utils.env import environ
from dagster_shared.error import SerializableErrorInfo

__all__ = [
    "ASSET_PARTITION_RANGE_END_TAG",
    "ASSET_PARTITION_RANGE_START_TAG",
    "MAX_RETRIES_TAG",
    "PARTITION_NAME_TAG",
    "PRIORITY_TAG",
    "KeyValueStoreTable",
    "SerializableErrorInfo",
    "SqlRunStorage",
    "SqliteEventLogStorage",
    "environ",
    "instance_in",
    "is_loaded_for_a_run",
]


def is_loaded_for_a_run() -> bool:
    """Whether Dagster loads the definitions to execute a run, rather than to show them and to decide what runs.

    Dagster exports no way to ask.
    """
    return DefinitionsLoadContext.get().load_type is DefinitionsLoadType.RECONSTRUCTION


def instance_in(
    folder: str, config_dir: str | None = None, overrides: Mapping[str, Any] | None = None
) -> dg.DagsterInstance:
    """A Dagster instance whose files are in a folder that need not hold its configuration, which Dagster's own must.

    Args:
        folder: where its files are.
        config_dir: where its `dagster.yaml` is; the folder itself if None.
        overrides: settings that stand above those of the file.
    """
    return dg.DagsterInstance.from_ref(InstanceRef.from_dir(folder, config_dir=config_dir, overrides=overrides))
