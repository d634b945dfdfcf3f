"""Dagster's records of checks, one a check and run, which go with their run.

What belongs here: what both event storages change of it (`event_storage`, `postgres_event_storage`). What does not: our
own history of checks, which is by hour and lies in the warehouse.

The stock storages plan an evaluation of every check for every hour of a run, though a check of ours looks at all hours
at once: 55 records of 2 KiB an hour, which nothing ever fulfils. And they keep them when the run is deleted. It changes
classes of Dagster 1.13 that are not part of its public interface; `test_check_records` fails first when these move.
"""

from collections.abc import Sequence

import dagster as dg
import sqlalchemy as sa
from dagster import EventLogEntry
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log import SqlEventLogStorage
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable


class OneRecordOfACheck(SqlEventLogStorage):
    """An event log that keeps one record of each check of a run, as long as the run is kept."""

    def _store_asset_check_evaluation_planned(self, event: EventLogEntry, event_id: int | None) -> None:
        """Plan one evaluation of a check, as our checks look at all hours of a run at once."""
        super()._store_asset_check_evaluation_planned(_for_all_hours(event), event_id)

    def plan_checks(self, connection: sa.Connection, planned: Sequence[tuple[EventLogEntry, int]]) -> None:
        """Plan many at once as the stock storage plans each: events, each with its id in the index."""
        rows = [
            {
                "asset_key": event.dagster_event.event_specific_data.asset_key.to_string(),
                "check_name": event.dagster_event.event_specific_data.check_name,
                "run_id": event.run_id,
                "execution_status": AssetCheckExecutionRecordStatus.PLANNED.value,
                "evaluation_event": dg.serialize_value(_for_all_hours(event)),
                "evaluation_event_timestamp": self._event_insert_timestamp(event),
                "evaluation_event_storage_id": event_id,
            }
            for event, event_id in planned
        ]
        if rows:
            connection.execute(AssetCheckExecutionsTable.insert(), rows)

    def delete_events(self, run_id: str) -> None:
        """Delete the events of a run, and its records of checks."""
        super().delete_events(run_id)
        with self.index_connection() as connection:
            table = AssetCheckExecutionsTable
            connection.execute(table.delete().where(table.c.run_id == run_id))


def _for_all_hours(event: EventLogEntry) -> EventLogEntry:
    """The event that plans a check, without the hours of its run."""
    planned = event.dagster_event.event_specific_data
    whole = AssetCheckEvaluationPlanned(asset_key=planned.asset_key, check_name=planned.check_name)
    return event._replace(dagster_event=event.dagster_event._replace(event_specific_data=whole))
