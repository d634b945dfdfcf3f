"""Hours that get curves on Dagster's page; what they show is in `test_dagster_runs`."""

import dagster as dg
import pytest

from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.defs.multi_assets import MOST_METADATA_HOURS, metadata_hours
from health_assets.pipeline.partition_metadata import numbers_by_hour
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, hours_from

HOURS = hours_from(START, MOST_METADATA_HOURS + 2)


def test_the_newest_hours_of_a_long_run_are_drawn() -> None:
    with dg.build_asset_context(partition_key="2026-06-07-00:00") as context:
        assert metadata_hours(context, HourGroups((HOURS,))) == [*HOURS][2:]


def test_where_dagster_is_told_of_no_partitions_no_hour_is_drawn_and_no_number_is_asked_for(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dg.build_asset_context() as context:
        drawn = metadata_hours(context, HourGroups((HOURS,)))
    project.write_log("a.jsonl", [line(execution("e", "a", START))])
    project.ingest(HourRange.of(START))
    with project.warehouse.read() as session:
        monkeypatch.setattr(session, "arrow", None)
        assert numbers_by_hour(session, "executions", drawn, lambda _: {}) == {}
        with pytest.raises(TypeError, match="not callable"):
            numbers_by_hour(session, "executions", [START, START + HOUR], lambda _: {})
