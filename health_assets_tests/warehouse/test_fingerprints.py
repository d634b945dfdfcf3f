"""Fingerprints of several assets are noted by one statement, and outcomes of several checks forgotten by another."""

from pathlib import Path

import pandas as pd
import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets.quality.evaluation import CheckResult, HourResult, write_history
from health_assets.quality.expectations import Check
from health_assets.warehouse.fingerprints import Fingerprints
from health_assets.warehouse.partition_states import PartitionStates
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.projects import Project, hours_from

HOURS = hours_from(START, 2)


@pytest.fixture(params=["duckdb", "postgres"])
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    return Project(tmp_path / "project", {}, engine=request.param)


def test_each_asset_gets_the_fingerprint_of_its_own_checks_in_these_hours_alone(project: Project) -> None:
    with project.warehouse.write() as session:
        for asset in ("executions", "tool_calls", "model_calls"):
            PartitionStates(session).note(asset, HOURS, [])
        Fingerprints(session).note_checks({}, HOURS)
        Fingerprints(session).note_checks({"executions": "one", "tool_calls": "two"}, [START])
        noted = Fingerprints(session).noted(["executions", "tool_calls", "model_calls"], HOURS)
    found = {asset: [own[hour].checks_fingerprint for hour in HOURS] for asset, own in noted.items()}
    assert found == {"executions": ["one", None], "tool_calls": ["two", None], "model_calls": [None, None]}


def test_a_rerun_of_some_checks_keeps_the_history_of_all_others(project: Project) -> None:
    def results(count: int, *names: str) -> list[CheckResult]:
        checks = [Check(name=name, expectations=()) for name in names]
        return [CheckResult(check, [HourResult(hour, count, 0) for hour in HOURS], pd.DataFrame()) for check in checks]

    with project.warehouse.write() as session:
        write_history(session, HOURS, {asset: results(1, "first", "second") for asset in ("executions", "tool_calls")})
        last = [
            CheckResult(own.check, own.hours[1:], own.samples) for own in [*results(2, "first"), *results(2, "second")]
        ]
        write_history(session, HourRange.of(START + HOUR), {"executions": last[:1], "tool_calls": last[1:]})
        rows = session.query("SELECT asset, expectation, hour, element_count FROM expectation_results")
    assert sorted(rows) == [
        ("executions", "first", START, 1),
        ("executions", "first", START + HOUR, 2),
        ("executions", "second", START, 1),
        ("executions", "second", START + HOUR, 1),
        ("tool_calls", "first", START, 1),
        ("tool_calls", "first", START + HOUR, 1),
        ("tool_calls", "second", START, 1),
        ("tool_calls", "second", START + HOUR, 2),
    ]
