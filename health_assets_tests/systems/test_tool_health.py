"""Tool health from logs: examples by hand, the plain-Python reference, how hours merge, and what the terminal shows."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import ibis
import pyarrow as pa
import pytest
from rich.console import Console

from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.core.targets import Targets
from health_assets.schema.catalog import columns_of
from health_assets.scoring.window_latencies import window_buckets
from health_assets.systems.tool_health.report import print_block
from health_assets.systems.tool_health.tool_health import KEYS, tool_components, tool_health
from health_assets_tests.support import reference, reference_tool_health
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import Project, Row, assert_same_tables, hours_from
from health_assets_tests.systems.test_scores_equal_reference import assert_equal_rows

STEPS = ["ingest", "tool_components", "tool_health"]
TABLES = ["tool_components", "tool_health"]
LATENCIES = ("p50_latency_ms", "p95_latency_ms")
FAILED = {"status": "failure"}


def call(
    number: int, at: datetime = START, *, tool: str = "search", agent_id: str | None = "a", **fields: Any
) -> Record:
    """A call of a tool that succeeded unless told otherwise."""
    named = {} if agent_id is None else {"agent_id": agent_id}
    record = {"type": "tool_call", "call_id": f"c{number}", "tool": tool, "ended_at": at.isoformat()}
    return record | {"status": "success"} | named | fields


def health(project: Project, records: Sequence[Record], hours: HourRange) -> list[Row]:
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours, only=STEPS)
    return sorted(project.rows("tool_health"), key=lambda row: (row["hour"], row["agent_id"], row["tool"]))


# -- by hand -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_hour(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An hour of agents whose rows the tests below look at."""
    project = Project(tmp_path_factory.mktemp("hour") / "project")
    records = [
        call(1, agent_id="timed", latency_ms=0), call(2, agent_id="timed"), call(3, agent_id="timed", tool="read"),
        call(4, agent_id="timed", tool="read", latency_ms=None),
        execution("e", "runner", START + HOUR / 2),
        call(11), call(12, agent_id=None), call(13, agent_id=None, execution_id="e"),
        call(14, agent_id="b", execution_id="e"),
        *(execution(f"e{n}", "trier", START) for n in range(30)),
        *(call(100 + n, agent_id="trier", execution_id=f"e{n}", **FAILED) for n in range(30)),
        call(200, agent_id="shares", tool="once", **FAILED),
        *(call(200 + n, agent_id="shares", tool="often", **(FAILED if n % 2 else {})) for n in range(1, 101)),
        *(call(200 + n, agent_id="shares", tool="always", **FAILED) for n in range(101, 106)),
        call(400, agent_id="longest", latency_ms=1.7e308),
    ]  # fmt: skip
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(HourRange.of(START), only=[*STEPS, "health_components", "agent_health"])
    return project


def tools_of(project: Project, agent_id: str) -> list[Row]:
    rows = [row for row in project.rows("tool_health") if row["agent_id"] == agent_id]
    return sorted(rows, key=lambda row: row["tool"])


def test_calls_failures_and_latencies_are_those_of_the_window(tmp_path: Path) -> None:
    """A window of 2 hours: 10 calls an hour, of which as many fail as hours have gone by; latencies 1 to 10 ms."""
    records = [
        call(10 * hour + n, START + hour * HOUR + n * HOUR / 20, latency_ms=n + 1, **(FAILED if n < hour else {}))
        for hour in range(3) for n in range(10)
    ]  # fmt: skip
    rows = health(Project(tmp_path / "project", None, 2, 4), records, hours_from(START, 5))
    assert [(row["calls"], row["failures"], row["failure_share"]) for row in rows] == [
        (10, 0, 0.0), (20, 1, 0.05), (20, 3, 0.15), (10, 2, 0.2),
    ]  # fmt: skip
    for row in rows:
        assert row["p50_latency_ms"] == pytest.approx(5, rel=0.01)
        assert row["p95_latency_ms"] == pytest.approx(10, rel=0.01)
    assert (rows[1]["window_start"], rows[1]["window_end"]) == (START, START + 2 * HOUR)
    assert [row["hours_covered"] for row in rows] == [2] * 4


def test_calls_without_latency_count_and_leave_the_percentiles_unknown(one_hour: Project) -> None:
    read, search = tools_of(one_hour, "timed")
    assert (read["calls"], read["p50_latency_ms"], read["p95_latency_ms"]) == (2, None, None)
    assert (search["calls"], search["p50_latency_ms"], search["p95_latency_ms"]) == (2, 0.0, 0.0)


def test_the_last_error_is_that_of_the_latest_failure_in_the_window_that_states_one(tmp_path: Path) -> None:
    records = [
        call(1, START, error="first", **FAILED),
        call(2, START + HOUR / 4, error="second", **FAILED),
        call(3, START + HOUR / 3, **FAILED),
        call(4, START + HOUR / 2, error="", **FAILED),
        call(5, START + HOUR / 2, error="only a warning"),
        call(6, START + HOUR),
        call(7, START + 3 * HOUR, error="last", **FAILED),
    ]
    rows = health(Project(tmp_path / "project", None, 2, 4), records, hours_from(START, 4))
    second = ("second", START + HOUR / 4)
    assert [(row["last_error"], row["last_error_at"]) for row in rows] == [
        second, second, (None, None), ("last", START + 3 * HOUR),
    ]  # fmt: skip


def test_a_call_counts_for_the_agent_that_its_line_names_and_else_for_nobody(one_hour: Project) -> None:
    """That an execution of an agent has the id that a call names is not looked for: it mostly ends in a later hour."""
    found = {agent_id: [row["calls"] for row in tools_of(one_hour, agent_id)] for agent_id in ("", "a", "b", "runner")}
    assert found == {"": [2], "a": [1], "b": [1], "runner": []}


@pytest.mark.parametrize("by_default", [False, True])
def test_retired_agents_have_no_rows_and_calls_of_nobody_always_have(project: Project, by_default: bool) -> None:
    project.write_targets({"defaults": {"retired": by_default}, "agents": {"odd": {"retired": not by_default}}})
    records = [call(1, agent_id="odd"), call(2, agent_id="usual"), call(3, agent_id=None)]
    for hours in (HourRange.of(START), hours_from(START, 2)):
        rows = health(project, records, hours)
        assert {row["agent_id"] for row in rows} == {"", "odd" if by_default else "usual"}


def test_a_failed_tool_is_no_failed_run(one_hour: Project) -> None:
    [agent] = [row for row in one_hour.rows("agent_health") if row["agent_id"] == "trier"]
    assert (agent["failures"], agent["health_score"]) == (0, 100.0)
    [row] = tools_of(one_hour, "trier")
    assert (row["failures"], row["failure_share"]) == (30, 1.0)


def test_one_failure_of_one_call_does_not_stand_before_half_of_a_hundred(one_hour: Project) -> None:
    in_order = sorted(tools_of(one_hour, "shares"), key=lambda row: -row["failure_share_at_least"])
    assert [row["tool"] for row in in_order] == ["always", "often", "once"]
    assert [round(row["failure_share_at_least"], 3) for row in in_order] == [0.566, 0.404, 0.207]


def test_a_latency_beyond_all_times_is_the_longest_that_is_told(one_hour: Project) -> None:
    [row] = tools_of(one_hour, "longest")
    assert row["p50_latency_ms"] > 1e13


# -- against the reference ---------------------------------------------------------------------------------------------


def random_calls(random: Random, count: int, hours: int) -> list[Record]:
    records = []
    for number in range(count):
        at = START + timedelta(minutes=random.randrange(hours * 60))
        fields = {
            "latency_ms": random.choice([0, 5, random.random() * 100, 10 ** random.uniform(-4, 9)]),
            "error": random.choice(["", "x", "y"]),
            "execution_id": "e",
        }
        record = call(
            random.randrange(count) if number % 9 == 0 else number, at, tool=random.choice(["t", "T", "ünï"]),
            agent_id=random.choice(["a", "b", "gone", None]), status=random.choice(["success", "failure"]),
        )  # fmt: skip
        records.append(record | {name: value for name, value in fields.items() if random.random() < 0.6})
    return records


@pytest.mark.parametrize(
    ("seed", "window_hours", "first", "count"),
    [(2, 3, 2, 9), *(pytest.param(*more, marks=pytest.mark.nightly) for more in [(1, 24, 0, 12), (3, 5, 9, 1)])],
)
def test_tools_of_random_logs_equal_the_reference_and_one_hour_equals_its_part_of_a_range(
    tmp_path: Path, seed: int, window_hours: int, first: int, count: int
) -> None:
    targets = {"agents": {"gone": {"retired": True}}}
    project = Project(tmp_path / "project", targets, window_hours, 2 * window_hours)
    random = Random(seed)
    for name in ("a.jsonl", "b.jsonl.gz"):
        project.write_log(name, [line(record) for record in random_calls(random, 150, 10)])
    hours = hours_from(START + first * HOUR, count)
    project.materialize(hours, only=STEPS)
    records, _ = reference.read_lines(project.raw)
    expected = reference_tool_health.tool_health(records, targets, list(hours), window_hours)
    rows = project.rows("tool_health", hours)
    assert_equal_but_for_latencies(rows, expected)
    assert set(columns_of("tool_health")) - set(expected[0]) == {"hours_covered", "formula_version"}
    for hour in list(hours)[::4]:
        project.materialize(HourRange.of(hour), only=["tool_health"])
    assert_same_tables({"tool_health": project.rows("tool_health", hours)}, {"tool_health": rows})


def assert_equal_but_for_latencies(found: list[Row], expected: list[Row]) -> None:
    """Latencies lie within 1 % of the nearest rank, or 1 microsecond where they are shorter; all else is equal."""
    keys = ["hour", *KEYS]
    by_key = {tuple(row[key] for key in keys): row for row in expected}
    assert_equal_rows(found, [{key: row[key] for key in row if key not in LATENCIES} for row in expected], keys)
    for row in found:
        for name in LATENCIES:
            exact = by_key[tuple(row[key] for key in keys)][name]
            assert row[name] == (
                None if exact is None else pytest.approx(exact, rel=0.01, abs=0.001 if exact < 0.001 else 0)
            ), (name, row)


def test_late_calls_and_any_order_of_hours_give_the_same_tables(tmp_path: Path) -> None:
    random = Random(5)
    early, late = ([line(record) for record in random_calls(random, 60, 6)] for _ in range(2))
    hours = hours_from(START, 8)
    clean, project = (Project(tmp_path / name, None, 3, 4) for name in ("clean", "project"))
    for one in (clean, project):
        one.write_log("early.jsonl", early)
    clean.write_log("late.jsonl", late)
    clean.materialize(hours, only=STEPS)
    project.materialize(hours_from(START + 4 * HOUR, 4), only=STEPS)
    project.write_log("late.jsonl", late)
    project.materialize(hours, only=STEPS, only_stale=True)
    for hour in (6, 0, 3):
        project.materialize(HourRange.of(START + hour * HOUR), only=TABLES)
    assert_same_tables(project.tables(hours, TABLES), clean.tables(hours, TABLES))


# -- how parts merge ---------------------------------------------------------------------------------------------------

CALLS = pa.schema(
    {
        "hour": pa.timestamp("us", "UTC"), "call_id": pa.string(), "tool": pa.string(), "status": pa.string(),
        "ended_at": pa.timestamp("us", "UTC"), "agent_id": pa.string(), "latency_ms": pa.float64(), "error": pa.string(),
        "source_file": pa.string(), "line_number": pa.int64(),
    }
)  # fmt: skip


def rows_of_parts(calls: Sequence[Row], hours: HourRange) -> list[Row]:
    """The rows of the one window that holds all of these hours, made from the parts of the hours."""
    connection = ibis.duckdb.connect()
    components = ibis.memtable(
        connection.to_pyarrow(tool_components(ibis.memtable(pa.Table.from_pylist(calls, CALLS))))
    )
    last = HourRange.of(hours.end - HOUR)
    latencies = window_buckets(
        components.filter(components.latency_buckets.notnull()), last, KEYS, {"p50_bucket": 50, "p95_bucket": 95}
    )
    rows = connection.to_pyarrow(tool_health(components, latencies, Targets(), last, len(hours))).to_pylist()
    return sorted(({**row, "last_error_in": None} for row in rows), key=repr)


def test_the_parts_of_many_hours_merge_to_what_one_hour_with_all_calls_has() -> None:
    for seed in range(5):
        random = Random(seed)
        hours = hours_from(START, 7)
        times = random.sample(range(7 * 3600), 200)
        calls = [
            {
                "call_id": f"c{place}", "tool": random.choice("xy"), "status": random.choice(["success", "failure"]),
                "ended_at": START + timedelta(seconds=second), "agent_id": random.choice([None, "a", "b"]),
                "latency_ms": random.choice([None, 0.0, random.random() * 1e4]), "error": random.choice([None, "", f"e{place}"]),
                "source_file": "f", "line_number": place,
            }
            for place, second in enumerate(times)
        ]  # fmt: skip
        parted = rows_of_parts([{**one, "hour": floor_hour(one["ended_at"])} for one in calls], hours)
        whole = rows_of_parts([{**one, "hour": hours.end - HOUR} for one in calls], hours)
        random.shuffle(calls)
        shuffled = rows_of_parts([{**one, "hour": floor_hour(one["ended_at"])} for one in calls], hours)
        assert parted == whole == shuffled


# -- in the terminal ---------------------------------------------------------------------------------------------------


def shown(project: Project, hours: HourRange) -> str:
    console = Console(width=140, record=True, file=StringIO())
    with project.warehouse.read() as session:
        print_block(console, session, hours)
    return console.export_text()


def test_the_terminal_shows_the_tools_that_failed_the_worst_first(project: Project) -> None:
    records = [call(n, tool="fine", latency_ms=5) for n in range(50)]
    records += [
        call(100 + n, tool="half", latency_ms=20, error="bad\x1b[31m\nnews", **(FAILED if n % 2 else {}))
        for n in range(40)
    ]
    records += [call(200, tool="once", agent_id="b", **FAILED), call(201, tool="whose", agent_id=None)]
    health(project, records, HourRange.of(START))
    text = shown(project, HourRange.of(START))
    assert (
        "Tools at 2026-06-07 00:00 UTC: 3 tools of 2 agents and 1 tool of no known agent, 92 calls in 24 h: 21 failed (22.8%)"
        in text
    )
    rows = [text.split() for text in text.splitlines() if text.startswith(("fine", "half", "once"))]
    assert [row[:6] for row in rows] == [
        ["half", "a", "20", "40", "50.0%", "20"], ["once", "b", "1", "1", "100.0%", "–"],
    ]  # fmt: skip
    assert "bad\\x1b[31m news" in text
    assert "1 call of no known agent: agent_id in a tool_call line says whose it is" in text


def test_the_terminal_says_so_where_no_tool_failed_and_nothing_where_none_was_called(project: Project) -> None:
    health(project, [], HourRange.of(START))
    assert shown(project, HourRange.of(START)) == ""
    health(project, [call(1)], HourRange.of(START))
    assert shown(project, HourRange.of(START)).strip().endswith("1 tool of 1 agent, 1 call in 24 h: 0 failed")


def test_of_many_failing_tools_the_worst_are_shown_and_all_are_counted(project: Project) -> None:
    records = [
        call(100 * tool + n, tool=f"tool {tool:02}", **(FAILED if n <= tool else {})) for tool in range(15) for n in range(20)
    ]  # fmt: skip
    health(project, records, HourRange.of(START))
    text = shown(project, HourRange.of(START))
    assert [row.split()[1] for row in text.splitlines() if row.startswith("tool ")] == [
        f"{n:02}" for n in range(14, 4, -1)
    ]
    assert "the worst 10 of 15 that failed" in text
