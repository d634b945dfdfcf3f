"""Dagster's SQLite event log, written in batches.

A run over a range of hours has two events for every asset and hour. Dagster buffers them, but its SQLite storage then
writes one by one, each in two transactions on new connections: 720 hours of eleven assets take over two minutes. This
storage writes a batch in two transactions and keeps its connections, which takes five seconds. The checks that a run
plans, 230 of even the smallest, are a batch too. Files and tables are Dagster's own, so that the stock storage reads
them. The file of a run goes when its events are deleted.

It is named in `dagster.yaml`. It extends a class that is not part of Dagster's public interface, so Dagster is pinned
to 1.13, and `test_event_storage`, which compares what both storages keep, fails first when that class moves.
"""

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from dagster import EventLogEntry
from dagster._core.events import DagsterEventType
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy.pool import StaticPool

from health_assets.defs.check_records import OneRecordOfACheck

EVENTS_PER_BATCH = 2000
OF_ASSETS = {DagsterEventType.ASSET_MATERIALIZATION, DagsterEventType.ASSET_MATERIALIZATION_PLANNED}
BATCHED = {*OF_ASSETS, DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED}
OPEN_FILES = 4


class BatchingSqliteEventLogStorage(OneRecordOfACheck, SqliteEventLogStorage):
    """SQLite event log that stores a batch of materializations, planned ones and planned checks at once."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        # Dagster hands over batches only when this variable says so, in every process that has the instance
        os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", str(EVENTS_PER_BATCH))
        self._engines: OrderedDict[str, sa.Engine] = OrderedDict()
        self._found_tables: set[str] = set()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: dict[str, Any]
    ) -> "BatchingSqliteEventLogStorage":
        """Make the storage from the `config` of `dagster.yaml`; Dagster calls this."""
        return cls(inst_data=inst_data, **config_value)

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Store events of one run; kinds that need more than inserting go the stock way."""
        batch = [event for event in events if event.is_dagster_event and event.dagster_event_type in BATCHED]
        if not batch or len({event.run_id for event in events}) != 1:
            super().store_event_batch(events)
            return
        rows = [self._event_to_row(event) for event in batch]
        with self.run_connection(batch[0].run_id) as connection:
            connection.execute(SqlEventLogStorageTable.insert(), rows)
        insert = SqlEventLogStorageTable.insert().returning(SqlEventLogStorageTable.c.id, sort_by_parameter_order=True)
        with self.index_transaction() as connection:
            stored = list(zip(batch, (row[0] for row in connection.execute(insert, rows)), strict=True))
            of_assets = [(event, event_id) for event, event_id in stored if event.dagster_event_type in OF_ASSETS]
            if of_assets:
                self._store_asset_event_tags(connection, *map(list, zip(*of_assets, strict=True)))
            latest = {
                (event.dagster_event.asset_key, event.dagster_event_type): (event, event_id)
                for event, event_id in of_assets
            }
            for event, event_id in latest.values():
                self._store_asset_event(connection, event, event_id)
            self.plan_checks(connection, [own for own in stored if own[0].dagster_event_type not in OF_ASSETS])
        others = [event for event in events if not (event.is_dagster_event and event.dagster_event_type in BATCHED)]
        if others:
            super().store_event_batch(others)

    def has_table(self, table_name: str) -> bool:
        """Whether there is a table; the stock storage opens the file anew to see, for every event of a check."""
        if table_name not in self._found_tables and super().has_table(table_name):
            self._found_tables.add(table_name)
        return table_name in self._found_tables

    @contextmanager
    def _connect(self, shard: str) -> Iterator[sa.Connection]:
        with self._db_lock:
            engine = self._engine(shard)
            with engine.connect() as connection, connection.begin():
                yield connection

    def _engine(self, shard: str) -> sa.Engine:
        engine = self._engines.pop(shard, None) or self._new_engine(shard)
        self._engines[shard] = engine
        while len(self._engines) > OPEN_FILES:
            self._engines.popitem(last=False)[1].dispose()
        return engine

    def _new_engine(self, shard: str) -> sa.Engine:
        engine = sa.create_engine(
            self.conn_string_for_shard(shard),
            poolclass=StaticPool,
            connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
        )
        sa.event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous = NORMAL").close())
        if shard not in self._initialized_dbs:
            self._initdb(engine)
            self._initialized_dbs.add(shard)
        return engine

    def delete_events(self, run_id: str) -> None:
        """Delete the events of a run and the file that they were in, which the stock storage leaves where it is."""
        super().delete_events(run_id)
        with self._db_lock:
            if engine := self._engines.pop(run_id, None):
                engine.dispose()
            self._initialized_dbs.discard(run_id)
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.path_for_shard(run_id)}{suffix}").unlink(missing_ok=True)

    def dispose(self) -> None:
        """Close the files."""
        super().dispose()
        with self._db_lock:
            while self._engines:
                self._engines.popitem()[1].dispose()
