"""Tokens and cost of executions of native lines: their own, else the sums over their model calls (contract, section 8)."""

from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.usage import AMOUNTS
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import ENGINES, Project, Row, assert_same_tables, hours_from

LOOKBACK_HOURS = 3
ALL_HOURS = hours_from(START, 8)


def call(call_id: str, execution_id: str | None, at: datetime, **amounts: Any) -> Record:
    told = {"call_id": call_id, "model": "m", "ended_at": at.isoformat(), "status": "success", **amounts}
    return {"type": "model_call", **told} | ({"execution_id": execution_id} if execution_id else {})


def random_records(random: Random, count: int) -> list[Record]:
    records = []
    for _ in range(count):
        at = START + random.randrange(len(ALL_HOURS)) * HOUR + random.random() * HOUR
        amounts = {
            "input_tokens": random.randrange(9),
            "output_tokens": random.randrange(9),
            "cache_read_tokens": random.randrange(5),
            "cache_creation_tokens": random.randrange(5),
            "reasoning_tokens": random.randrange(5),
            "cost_usd": random.choice([0, 0.1, 1e-7]),
        }
        told = {name: value for name, value in amounts.items() if random.random() < 0.4}
        name = f"e{random.randrange(count // 4)}"
        if random.random() < 0.3:
            records.append(execution(name, "a", at, **told))
        else:
            records.append(call(f"c{random.randrange(count)}", random.choice([name, name, None]), at, **told))
    return records


def expected_amounts(executions: list[Row], calls: list[Row]) -> dict[tuple[datetime, str], list[Any]]:
    """The reference: walks from each execution over all calls."""
    found = {}
    for row in executions:
        own = [one for one in calls if one["execution_id"] == row["execution_id"]
               and row["hour"] - LOOKBACK_HOURS * HOUR < one["hour"] <= row["hour"]]  # fmt: skip
        values = []
        for name in AMOUNTS:
            told = [one[name] for one in own if one[name] is not None]
            stated = row[f"{name}_reported"]
            values.append(stated if stated is not None else sum(sorted(told)) if told else None)
        found[row["hour"], row["execution_id"]] = values
    return found


def assert_equal_to_the_reference(project: Project, hours: HourRange) -> None:
    expected = expected_amounts(project.rows("executions", hours), project.rows("model_calls"))
    found = {
        (row["hour"], row["execution_id"]): [row[name] for name in AMOUNTS] for row in project.rows("executions", hours)
    }
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == [
            value if value is None else pytest.approx(value, rel=1e-12, abs=1e-15) for value in values
        ]


@pytest.mark.parametrize("engine", ENGINES)
def test_in_any_order_of_arrival_the_sums_are_those_of_the_reference_and_of_a_rebuild(
    tmp_path: Path, engine: str
) -> None:
    random = Random(5)
    project = Project(tmp_path / "project", {}, 1, LOOKBACK_HOURS, engine=engine)
    records = random_records(random, 120)
    for turn in range(4):
        some = random.sample(records, 50)
        project.write_log(f"{turn % 3}.jsonl", map(line, some), modified=START + turn * HOUR)  # the last one replaces
        first = random.randrange(6)
        asked = hours_from(START + first * HOUR, 3)
        project.ingest(asked)
        assert_equal_to_the_reference(project, asked)
    project.ingest(ALL_HOURS)
    assert_equal_to_the_reference(project, ALL_HOURS)
    tables = ["executions", "model_calls"]
    assert_same_tables(
        project.tables(names=tables), project.clean_rebuild(ALL_HOURS, only=["ingest"]).tables(names=tables)
    )


def test_a_call_that_comes_late_is_added_and_one_that_goes_is_taken_away(project: Project) -> None:
    def amounts() -> list[Any]:
        project.ingest(HourRange.of(START))
        [row] = project.rows("executions")
        return [row[name] for name in AMOUNTS]

    project.write_log("a.jsonl", [line(execution("e", "a", START, cost_usd=2.5))])
    assert amounts() == [None, None, None, None, None, 2.5]
    own = {"input_tokens": 7, "cache_read_tokens": 6, "reasoning_tokens": 0, "cost_usd": 1}
    project.write_log("b.jsonl", [line(call("c", "e", START, **own))])
    assert amounts() == [7, None, 6, None, 0, 2.5]
    project.write_log("b.jsonl", [line(call("c", "other", START, **own))], modified=START)
    assert amounts() == [None, None, None, None, None, 2.5]


IMPOSSIBLE = [
    ("input_tokens", -1), ("output_tokens", 1.5), ("input_tokens", "7"), ("cost_usd", -0.1), ("cache_read_tokens", -1),
    ("cache_creation_tokens", 0.5), ("reasoning_tokens", "7"),
]  # fmt: skip


def test_amounts_that_cannot_be_are_rejected(project: Project) -> None:
    for number, (field, value) in enumerate(IMPOSSIBLE):
        records = [call("c", None, START, **{field: value}), execution("e", "a", START, **{field: value})]
        project.write_log(f"{number}.jsonl", map(line, records), modified=START)
    project.ingest(HourRange.of(START))
    rows = sorted(project.rows("rejected_records"), key=lambda row: (row["source_file"], row["line_number"]))
    assert [row["reason"].split(" must")[0] for row in rows] == [field for field, _ in IMPOSSIBLE for _ in range(2)]
    assert not project.rows("model_calls") and not project.rows("executions")


def test_a_tool_call_needs_its_id_tool_end_and_status(project: Project) -> None:
    whole = {"type": "tool_call", "call_id": "c", "tool": "t", "ended_at": START.isoformat(), "status": "failure"}
    parts = [{name: value for name, value in whole.items() if name != left} for left in list(whole)[1:]]
    project.write_log("a.jsonl", [line({**whole, "latency_ms": 5, "error": "x"}), *map(line, parts)], modified=START)
    project.ingest(HourRange.of(START))
    [row] = project.rows("tool_calls")
    assert (row["tool"], row["status"], row["latency_ms"], row["error"], row["agent_id"]) == (
        "t",
        "failure",
        5.0,
        "x",
        None,
    )
    assert sorted(row["reason"] for row in project.rows("rejected_records")) == [
        "call_id is missing", "ended_at is missing", "status is missing", "tool is missing",
    ]  # fmt: skip
