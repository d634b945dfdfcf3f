"""Dagster's records of checks: one a check and run, as long as the run is kept, where the stock storage has one an hour."""

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from dagster import EventLogEntry
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.definitions.partitions.subset import DefaultPartitionsSubset
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._core.storage.event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage

from health_assets.defs.event_storage import BatchingSqliteEventLogStorage

CHECK = dg.AssetCheckKey(dg.AssetKey("executions"), "ids_are_unique")
HOURS = {"2026-06-07-12:00", "2026-06-07-13:00", "2026-06-07-14:00"}


def plan(storage: SqlEventLogStorage, run_id: str) -> None:
    """Plan the check for the hours of a run, as Dagster does."""
    planned = AssetCheckEvaluationPlanned(
        asset_key=CHECK.asset_key, check_name=CHECK.name, partitions_subset=DefaultPartitionsSubset(HOURS)
    )
    kind = DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED.value
    event = DagsterEvent(kind, "job", event_specific_data=planned, message="planned")
    storage.store_event(EventLogEntry(None, 20, "", run_id, 1.0, None, "job", event))


def planned_of(storage: SqlEventLogStorage) -> list[tuple[str, str | None]]:
    history = storage.get_asset_check_execution_history(CHECK, limit=100)
    return [(record.run_id, record.partition) for record in history]


@pytest.mark.parametrize(
    ("storage", "partitions"),
    [(SqliteEventLogStorage, HOURS), (BatchingSqliteEventLogStorage, {None})],
    ids=["stock", "ours"],
)
def test_a_check_of_a_run_of_hours_is_one_record(
    tmp_path: Path, storage: Callable[[str], SqlEventLogStorage], partitions: set[str | None]
) -> None:
    made = storage(str(tmp_path))
    plan(made, "first")
    plan(made, "second")
    assert sorted(planned_of(made), key=str) == sorted(
        ((run_id, one) for run_id in ("first", "second") for one in partitions), key=str
    )
    made.dispose()


def test_records_of_checks_go_with_their_run(tmp_path: Path) -> None:
    storage = BatchingSqliteEventLogStorage(str(tmp_path))
    plan(storage, "first")
    plan(storage, "second")
    storage.delete_events("first")
    assert planned_of(storage) == [("second", None)]
    storage.dispose()
