"""Dagster's event log in PostgreSQL, with one record of each check of a run.

It is named in `docs/dagster-postgres.yaml`, and needs the extra `postgres`. It extends a class of Dagster 1.13 that is
not part of its public interface; `test_postgres_event_storage` fails first when that class moves.
"""

from collections.abc import Mapping
from typing import Any

from dagster._serdes import ConfigurableClassData
from dagster_postgres import PostgresEventLogStorage
from dagster_postgres.utils import pg_url_from_config

from health_assets.defs.check_records import OneRecordOfACheck


class LeanPostgresEventLogStorage(OneRecordOfACheck, PostgresEventLogStorage):
    """PostgreSQL event log without records of checks by hour, and of runs that are deleted."""

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> "LeanPostgresEventLogStorage":
        """Make the storage from the `config` of `dagster.yaml`; Dagster calls this."""
        return cls(
            postgres_url=pg_url_from_config(config_value),
            should_autocreate_tables=config_value.get("should_autocreate_tables", True),
            inst_data=inst_data,
        )
