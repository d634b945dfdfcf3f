"""The batching event storage keeps what Dagster's stock storage keeps, for the same runs.

Both are read back by an instance with the stock storage, so that its files are proved to be Dagster's own.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage

from health_assets.core.hours import HOUR, HourRange
from health_assets.defs.event_storage import BatchingSqliteEventLogStorage
from health_assets.systems.suites import SUITES
from health_assets_tests.support.dagster_world import NOON, World, batching_instance

ASSETS = ("raw_logs", "executions", "rejected_records", "health_components")
STOPPED = "health_components"
GOOD = HourRange(NOON - 4 * HOUR, NOON - HOUR)
FAILING = HourRange(NOON - 2 * HOUR, NOON)
MOST = 1000


@dataclass(frozen=True)
class Kept:
    """What a storage keeps of a run that succeeds and of one after it that overlaps and fails.

    Args:
        instance: an instance with the stock storage that reads the files.
        runs: ids of the two runs.
    """

    instance: dg.DagsterInstance
    runs: tuple[str, str]

    def run_numbers(self, run_ids: Iterable[str]) -> list[int]:
        """The places of runs, which both storages share, for their ids, which they do not."""
        return [self.runs.index(run_id) for run_id in run_ids]


def _runs(folder: Path, made: AbstractContextManager[dg.DagsterInstance], storage: type) -> tuple[str, str]:
    world = World.at(folder / "world", window_hours=3, lookback_hours=6)
    world.write_hours(HourRange(GOOD.start, FAILING.end))
    with made as instance:
        assert type(instance.event_log_storage) is storage
        good = world.run(instance, GOOD, assets=ASSETS)
        world.query("UPDATE executions SET confidence = 7 WHERE execution_id = 'e2-0710'")
        failing = world.run(instance, FAILING, assets=ASSETS)
    assert (good.success, failing.success) == (True, False)
    return good.run_id, failing.run_id


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kept, Kept]]:
    """(stock, batching)."""
    stock, batching = tmp_path_factory.mktemp("stock"), tmp_path_factory.mktemp("batching")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DAGSTER_EVENT_BATCH_SIZE", "0")
        stock_runs = _runs(stock, dg.instance_for_test(temp_dir=str(stock)), SqliteEventLogStorage)
        environment.setenv("DAGSTER_EVENT_BATCH_SIZE", "3")  # several batches, the last one not full
        batching_runs = _runs(batching, batching_instance(batching), BatchingSqliteEventLogStorage)
    with (
        dg.instance_for_test(temp_dir=str(stock)) as stock_instance,
        dg.instance_for_test(temp_dir=str(batching)) as batching_instance_read,
    ):
        yield Kept(stock_instance, stock_runs), Kept(batching_instance_read, batching_runs)


def _materializations(kept: Kept, asset: str) -> list[tuple[Any, ...]]:
    records = kept.instance.fetch_materializations(dg.AssetKey(asset), limit=MOST).records
    runs = kept.run_numbers(record.run_id for record in records)
    rows = [dict(record.asset_materialization.metadata).get("dagster/row_count") for record in records]
    return [(record.partition_key, run, row) for record, run, row in zip(records, runs, rows, strict=True)]


def _latest(kept: Kept, asset: str) -> tuple[Any, ...]:
    (record,) = kept.instance.get_asset_records([dg.AssetKey(asset)])
    entry = record.asset_entry
    assert entry.last_materialization is not None
    newest = kept.instance.fetch_materializations(dg.AssetKey(asset), limit=1).records[0]
    return (
        entry.last_materialization.asset_materialization.partition,
        kept.run_numbers([entry.last_run_id, entry.last_materialization.run_id]),
        entry.last_materialization_record.storage_id == newest.storage_id,
        entry.last_planned_materialization_storage_id,
    )


def _unfinished(kept: Kept, asset: str) -> list[tuple[str, int]]:
    storage = kept.instance.event_log_storage
    attempts = storage.get_latest_asset_partition_materialization_attempts_without_materializations(dg.AssetKey(asset))
    return sorted((partition, kept.runs.index(run_id)) for partition, (run_id, _) in attempts.items())


def _planned(kept: Kept, asset: str) -> list[int | None]:
    storage = kept.instance.event_log_storage
    found = [storage.get_latest_planned_materialization_info(dg.AssetKey(asset), partition=key) for key in _keys()]
    return [kept.runs.index(info.run_id) if info else None for info in found]


def _of_one_hour(kept: Kept, asset: str) -> list[int]:
    of_hour = dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[_keys()[2]])
    records = kept.instance.fetch_materializations(of_hour, limit=MOST).records
    return kept.run_numbers(record.run_id for record in records)


def _tags(kept: Kept, asset: str) -> list[list[tuple[str, str]]]:
    found = kept.instance.event_log_storage.get_event_tags_for_asset(dg.AssetKey(asset))
    shared = [{name: value for name, value in tags.items() if "version" not in name} for tags in found]
    return sorted(sorted(tags.items()) for tags in shared)


def _partitions(kept: Kept, asset: str) -> set[str]:
    return kept.instance.get_materialized_partitions(dg.AssetKey(asset))


def _keys() -> list[str]:
    return [f"{hour:%Y-%m-%d-%H:00}" for hour in HourRange(GOOD.start, FAILING.end)]


@pytest.mark.parametrize("read", [_materializations, _latest, _unfinished, _planned, _of_one_hour, _tags, _partitions])
def test_both_storages_keep_the_same_of_every_asset(kept: tuple[Kept, Kept], read: Callable[[Kept, str], Any]) -> None:
    stock, batching = ({asset: read(one, asset) for asset in ASSETS} for one in kept)
    assert batching == stock


def test_what_is_compared_is_not_empty(kept: tuple[Kept, Kept]) -> None:
    for one in kept:
        assert len(_materializations(one, "executions")) == len(GOOD) + len(FAILING)
        assert len(_materializations(one, STOPPED)) == len(GOOD)
        assert _unfinished(one, STOPPED) == [(key, 1) for key in _keys()[-len(FAILING) :]]
        assert _unfinished(one, "executions") == []
        assert _of_one_hour(one, "executions") == [1, 0]
        assert _planned(one, "executions") == [0, 0, 1, 1]
        assert _partitions(one, "raw_logs") == set(_keys())


@pytest.mark.parametrize("number", [0, 1], ids=["success", "failure"])
def test_both_storages_keep_the_same_events_of_a_run(kept: tuple[Kept, Kept], number: int) -> None:
    events = []
    for one in kept:
        log = [entry.dagster_event for entry in one.instance.all_logs(one.runs[number]) if entry.dagster_event]
        events.append(Counter((event.event_type_value, event.step_key, event.partition) for event in log))
    stock, batching = events
    assert batching == stock
    assert stock.total() > 70


def test_the_history_of_every_check_is_the_same_but_for_what_was_planned(kept: tuple[Kept, Kept]) -> None:
    evaluated, planned = [], []
    for one in kept:
        history = {
            (asset, check.name): one.instance.event_log_storage.get_asset_check_execution_history(
                dg.AssetCheckKey(dg.AssetKey(asset), check.name), limit=MOST
            )
            for asset in ASSETS
            for check in SUITES[asset].checks
        }
        evaluated.append(
            {
                key: [
                    (row.status.value, one.runs.index(row.run_id), row.partition)
                    for row in rows
                    if row.status.value != "PLANNED"
                ]
                for key, rows in history.items()
            }
        )
        planned.append(
            {key: [row.partition for row in rows if row.status.value == "PLANNED"] for key, rows in history.items()}
        )
    assert evaluated[0] == evaluated[1]
    assert evaluated[0]["executions", "shares_are_between_0_and_1"] == [("FAILED", 1, None), ("SUCCEEDED", 0, None)]
    assert evaluated[0][STOPPED, "required_values_are_present"] == [("SUCCEEDED", 0, None)]
    stock, batching = planned
    assert all(len(partitions) == len(GOOD) + len(FAILING) for partitions in stock.values())
    expected = {(asset, name): [None] if asset == STOPPED else [] for asset, name in batching}
    assert batching == expected, "what was stopped stays planned once, whatever the number of hours"


def test_a_batch_of_planned_checks_is_one_transaction_in_each_file(kept: tuple[Kept, Kept], tmp_path: Path) -> None:
    _, batching = kept
    planned = [
        entry
        for entry in batching.instance.all_logs(batching.runs[0])
        if entry.dagster_event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED
    ]
    assert len(planned) > 10
    storage = BatchingSqliteEventLogStorage(str(tmp_path))
    try:
        storage.store_event_batch(planned[:1])  # which makes the files
        engines = dict(storage._engines)
        commits: Counter[str] = Counter()
        for shard, engine in engines.items():
            sa.event.listen(engine, "commit", lambda _, shard=shard: commits.update([shard]))
        storage.store_event_batch(planned[1:])
        assert commits == dict.fromkeys(engines, 1) and len(engines) == 2
        assert len(storage.get_logs_for_run(batching.runs[0])) == len(planned)
    finally:
        storage.dispose()
