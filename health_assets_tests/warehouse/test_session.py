"""A session reads expressions of few rows as dicts, alike on both engines."""

from datetime import timedelta
from itertools import permutations
from pathlib import Path

import ibis
import pyarrow as pa
import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.relations import newest
from health_assets_tests.support.constraints import drop_constraints
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.projects import ENGINES, Project

ROWS = pa.table(
    {
        "hour": pa.array([START, START + HOUR, START, START + 2 * HOUR], pa.timestamp("us", "UTC")),
        "agent_id": ["a", "a", "b", "b"],
        "executions": [2**53, 2**53 + 1, None, 1],
        "share": [0.1, None, 0.3, 0.4],
    }
)


@pytest.fixture(params=ENGINES)
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    made = Project(tmp_path, {}, engine=request.param)
    with made.warehouse.write():
        pass
    return made


def test_sums_of_whole_numbers_are_whole_times_are_in_utc_and_nothing_is_none(project: Project) -> None:
    rows = ibis.memtable(ROWS)
    by_agent = rows.group_by("agent_id").aggregate(
        executions=rows.executions.sum(),
        share=rows.share.max(),
        until=rows.hour.max(),
        never=rows.share.sum(where=False),
    )
    with project.warehouse.read() as session:
        found = session.dicts(by_agent.order_by("agent_id"))
    assert found == [
        {"agent_id": "a", "executions": 2**54 + 1, "share": 0.1, "until": START + HOUR, "never": None},
        {"agent_id": "b", "executions": 1, "share": 0.4, "until": START + 2 * HOUR, "never": None},
    ]
    assert all(type(row["executions"]) is int and row["until"].utcoffset() == timedelta() for row in found)


def test_of_rows_with_one_key_those_of_the_latest_hour_are_the_newest(project: Project) -> None:
    with project.warehouse.read() as session:
        found = session.dicts(newest(ibis.memtable(ROWS), "agent_id").order_by("agent_id"))
    assert [(row["agent_id"], row["hour"]) for row in found] == [("a", START + HOUR), ("b", START + 2 * HOUR)]
    assert list(found[0]) == ROWS.column_names


@pytest.mark.parametrize(
    "others",
    [
        {"model": ["a", "B", None]},
        {"violations": ['[{"constraint": "b"}]', None, '[{"constraint": "A"}]']},
        {"task_id": ["t"] * 3, "cost_usd": [None, 0.5, 2.0]},
    ],
    ids=lambda others: " ".join(others),
)
def test_of_rows_with_one_key_and_place_the_same_stays_in_whatever_order_they_came(
    project: Project, others: dict[str, list]
) -> None:
    columns = ["hour", "agent_id", "execution_id", "ended_at", "source_file", "line_number", *others]
    place = [START, "planner", "e", START + HOUR / 2, "a.jsonl", 1]
    rows = [[*place, *values] for values in zip(*others.values(), strict=True)]
    found = set()
    with project.warehouse.write() as session:
        for statement in drop_constraints("executions", "superseded_executions"):
            session.query(statement)
        for ordered in permutations(rows):
            for table in ("executions", "superseded_executions"):
                session.query(f"DELETE FROM {table}")
            for row in ordered:
                marks = ", ".join("CAST(? AS JSON)" if column == "violations" else "?" for column in columns)
                session.query(f"INSERT INTO executions ({', '.join(columns)}) VALUES ({marks})", row)
            keys, order = ["hour", "execution_id"], ["ended_at", "source_file", "line_number"]
            hours = HourRange.of(START)
            assert session.delete_duplicates("executions", hours, keys, order, into="superseded_executions") == 2
            found.add(str(session.query(f"SELECT {', '.join(others)} FROM executions")))
    assert len(found) == 1
    assert "None" not in found.pop(), "a value that is stated goes before one that is not"


def test_the_latest_hour_of_some_is_the_last_that_has_rows(project: Project) -> None:
    hours = HourRange(START, START + 3 * HOUR)
    with project.warehouse.write() as session:
        for statement in drop_constraints("system_health"):
            session.query(statement)
        for hour in (START, START + HOUR):
            session.query("INSERT INTO system_health (hour) VALUES (?)", [hour])
        assert session.latest_hour("system_health", hours) == START + HOUR
        assert session.latest_hour("system_health", HourRange.of(START)) == START
        assert session.latest_hour("system_health", HourRange.of(START + 2 * HOUR)) is None
