"""Dagster's private parts are where `dagster_internals` takes them from, and do what this project needs of them."""

import os
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType

from health_assets.defs import dagster_internals as internals


def test_the_tags_have_the_texts_that_dagster_documents() -> None:
    tags = {name: getattr(internals, name) for name in internals.__all__ if name.endswith("_TAG")}
    assert tags == {
        "ASSET_PARTITION_RANGE_END_TAG": "dagster/asset_partition_range_end",
        "ASSET_PARTITION_RANGE_START_TAG": "dagster/asset_partition_range_start",
        "MAX_RETRIES_TAG": "dagster/max_retries",
        "PARTITION_NAME_TAG": "dagster/partition",
        "PRIORITY_TAG": "dagster/priority",
    }


@pytest.mark.parametrize(
    ("how", "is_for_a_run"), [(DefinitionsLoadType.INITIALIZATION, False), (DefinitionsLoadType.RECONSTRUCTION, True)]
)
def test_definitions_are_loaded_for_a_run_where_dagster_makes_them_again(
    how: DefinitionsLoadType, is_for_a_run: bool
) -> None:
    with DefinitionsLoadContext.scoped(DefinitionsLoadContext(how)):  # another test's run may have left one behind
        assert internals.is_loaded_for_a_run() is is_for_a_run


def test_an_instance_has_its_files_in_one_folder_and_its_configuration_in_another(tmp_path: Path) -> None:
    files, configuration = tmp_path / "files", tmp_path / "configuration"
    configuration.mkdir()
    (configuration / "dagster.yaml").write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
    with internals.instance_in(str(files), config_dir=str(configuration)) as instance:
        assert instance.telemetry_enabled is False
        assert instance.root_directory == str(files)
    with internals.instance_in(str(files), overrides={"telemetry": {"enabled": True}}) as instance:
        assert instance.telemetry_enabled is True


def test_a_stock_instance_keeps_runs_and_events_in_the_storages_that_are_known(tmp_path: Path) -> None:
    with internals.instance_in(str(tmp_path)) as instance:
        events, runs = instance.event_log_storage, instance.run_storage
        assert isinstance(events, internals.SqliteEventLogStorage)
        assert Path(events.path_for_shard("any")).suffix == ".db"
        assert isinstance(runs, internals.SqlRunStorage)
        runs.set_cursor_values({"key": "value"})
        table = internals.KeyValueStoreTable
        with runs.connect() as connection:
            assert connection.execute(sa.select(table.c.value).where(table.c.key == "key")).scalar() == "value"


def test_a_variable_is_set_for_the_length_of_a_block() -> None:
    before = os.environ.get("DAGSTER_HOME")
    with internals.environ({"DAGSTER_HOME": "elsewhere"}):
        assert os.environ["DAGSTER_HOME"] == "elsewhere"
    assert os.environ.get("DAGSTER_HOME") == before


def test_a_failed_step_tells_its_error_cause_by_cause(tmp_path: Path) -> None:
    @dg.op
    def fails() -> None:
        raise ValueError("first") from KeyError("second")

    @dg.job
    def job() -> None:
        fails()

    with internals.instance_in(str(tmp_path)) as instance:
        result = job.execute_in_process(instance=instance, raise_on_error=False)
    error = result.failure_data_for_node("fails").error
    causes = []
    while error is not None:
        assert isinstance(error, internals.SerializableErrorInfo)
        causes.append(error.cls_name)
        error = error.cause
    assert causes == ["DagsterExecutionStepExecutionError", "ValueError", "KeyError"]
