"""Usage from logs: examples by hand, the plain-Python reference, how hours merge, and what the terminal shows."""

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import ibis
import pyarrow as pa
import pytest
from rich.console import Console

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import Targets
from health_assets.schema.catalog import ALL_TABLES, columns_of
from health_assets.scoring.usage import MOST_TOKENS, MOST_USD
from health_assets.systems.agent_usage.agent_usage import agent_usage, usage_components
from health_assets.systems.agent_usage.report import print_block
from health_assets_tests.support import reference, reference_agent_usage
from health_assets_tests.support.logs_made import START, Record, cancellation, execution, line
from health_assets_tests.support.projects import (
    DUCKDB_BY_DAY,
    ENGINES,
    SALT,
    Project,
    Row,
    assert_same_tables,
    hours_from,
)
from health_assets_tests.support.traces_made import agent, otlp_line, span
from health_assets_tests.systems.test_scores_equal_reference import assert_equal_rows

TABLES = ["usage_components", "agent_usage", "usage_breakdown"]
STEPS = ["ingest", *TABLES]
NOTHING = {"input_tokens": None, "output_tokens": None, "cost_usd": None, "cost_per_success_usd": None}


def usage(project: Project, records: Sequence[Record], hours: HourRange) -> list[Row]:
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours, only=STEPS)
    return sorted(project.rows("agent_usage"), key=lambda row: (row["hour"], row["agent_id"]))


def run(number: int, hour: int = 0, agent_id: str = "a", **fields: object) -> Record:
    return execution(f"{agent_id} {number}", agent_id, START + hour * HOUR + HOUR / 2, **fields)


def model_call(number: int, execution_id: str, hour: int = 0, **fields: object) -> Record:
    at = START + hour * HOUR + HOUR / 4
    record = {"type": "model_call", "call_id": f"c{number}", "model": "m", "ended_at": at.isoformat()}
    return record | {"status": "success", "execution_id": execution_id} | fields


def digest_of_user(user_id: str) -> str:
    return hashlib.sha256(f"{SALT}user{user_id}".encode()).hexdigest()[:16]


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_tokens_cost_and_the_cost_of_a_success_are_those_of_the_window(tmp_path: Path) -> None:
    """A window of 2 hours; an hour has a success of 1 dollar and a failure of 50 cents, the last one nothing."""
    records = [
        record
        for hour in range(3)
        for record in (
            run(2 * hour, hour, input_tokens=1000, output_tokens=10, cost_usd=1.0),
            run(2 * hour + 1, hour, input_tokens=500, output_tokens=0, cost_usd=0.5, status="failure"),
        )
    ]
    rows = usage(Project(tmp_path / "project", None, 2, 4), records, hours_from(START, 5))
    assert [(row["executions"], row["successes"]) for row in rows] == [(2, 1), (4, 2), (4, 2), (2, 1)]
    assert [(row["input_tokens"], row["output_tokens"]) for row in rows] == [
        (1500, 10),
        (3000, 20),
        (3000, 20),
        (1500, 10),
    ]
    assert [row["cost_usd"] for row in rows] == [1.5, 3.0, 3.0, 1.5]
    assert {row["cost_per_success_usd"] for row in rows} == {1.5}
    assert (rows[1]["window_start"], rows[1]["window_end"], rows[1]["hours_covered"]) == (START, START + 2 * HOUR, 2)


@pytest.fixture(scope="module")
def amounts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """By agent, the usage of an hour in which each tells other amounts."""
    records = [
        run(1, agent_id="silent"),
        run(1, agent_id="tokens", output_tokens=0),
        run(1, agent_id="free", cost_usd=0),
        run(1, agent_id="some", cost_usd=3),
        run(2, agent_id="some"),
        run(3, agent_id="some"),
        run(4, agent_id="some", status="failure"),
        run(1, agent_id="failing", cost_usd=3, status="failure"),
    ]
    project = Project(tmp_path_factory.mktemp("amounts") / "project")
    return {row["agent_id"]: row for row in usage(project, records, HourRange.of(START))}


def test_what_no_execution_tells_is_unknown_and_never_0(amounts: dict[str, Row]) -> None:
    silent, tokens, free = (amounts[name] for name in ("silent", "tokens", "free"))
    assert {name: silent[name] for name in NOTHING} == NOTHING
    assert (silent["executions_with_tokens"], silent["executions_with_cost"]) == (0, 0)
    assert {name: tokens[name] for name in NOTHING} == NOTHING | {"output_tokens": 0}
    assert (tokens["executions_with_tokens"], tokens["executions_with_cost"]) == (1, 0)
    assert {name: free[name] for name in NOTHING} == NOTHING | {"cost_usd": 0.0, "cost_per_success_usd": 0.0}
    assert (free["executions_with_tokens"], free["executions_with_cost"]) == (0, 1)


def test_where_some_executions_tell_their_cost_it_is_counted_how_many(amounts: dict[str, Row]) -> None:
    row = amounts["some"]
    assert (row["executions"], row["successes"], row["executions_with_cost"]) == (4, 3, 1)
    assert (row["cost_usd"], row["cost_per_success_usd"]) == (3.0, 1.0)


def test_without_a_success_there_is_no_cost_of_one(amounts: dict[str, Row]) -> None:
    row = amounts["failing"]
    assert (row["successes"], row["cost_usd"], row["cost_per_success_usd"]) == (0, 3.0, None)


def test_an_execution_that_states_nothing_has_the_sums_of_its_model_calls(project: Project) -> None:
    records = [
        run(1, 1), model_call(1, "a 1", 0, input_tokens=7, cost_usd=0.25), model_call(2, "a 1", 1, input_tokens=5, cost_usd=0.5),
        run(2, 1, cost_usd=9), model_call(3, "a 2", 1, cost_usd=1),
    ]  # fmt: skip
    (row,) = usage(project, records, HourRange.of(START + HOUR))
    assert (row["input_tokens"], row["output_tokens"], row["cost_usd"]) == (12, None, 9.75)
    assert (row["executions_with_tokens"], row["executions_with_cost"]) == (1, 2)


@pytest.mark.parametrize("engine", DUCKDB_BY_DAY)  # the test of nonsensical amounts runs the same statements
def test_the_breakdown_has_the_executions_of_each_version_and_model(tmp_path: Path, engine: str) -> None:
    """A window of 2 hours: version 1 with the model m in both, version 2 in the second one, once without a model."""
    project = Project(tmp_path / "project", None, 2, 4, engine=engine)
    records = [
        run(1, 0, agent_version="1", model="m", cost_usd=1.0),
        run(2, 1, agent_version="1", model="m", cost_usd=0.5, status="failure"),
        run(3, 1, agent_version="2", model="m", cost_usd=4.0, input_tokens=10),
        run(4, 1, agent_version="2", output_tokens=3),
        run(5, 1, agent_id="b"),
    ]
    usage(project, records, hours_from(START, 3))
    names = ("agent_id", "agent_version", "model", "executions", "successes", "cost_usd", "cost_per_success_usd")
    found = {hour: [] for hour in range(3)}
    for row in project.rows("usage_breakdown"):
        found[(row["hour"] - START) // HOUR].append(tuple(row[name] for name in names))
    second = [("a", "2", "", 1, 1, None, None), ("a", "2", "m", 1, 1, 4.0, 4.0), ("b", "", "", 1, 1, None, None)]
    assert {hour: sorted(rows) for hour, rows in found.items()} == {
        0: [("a", "1", "m", 1, 1, 1.0, 1.0)],
        1: [("a", "1", "m", 2, 1, 1.5, 1.5), *second],
        2: [("a", "1", "m", 1, 0, 0.5, None), *second],
    }


@pytest.mark.parametrize(("setting", "is_plain"), [("", False), ("hashed", False), ("plain", True)])
def test_users_are_kept_as_digests_unless_a_setting_keeps_their_ids(
    project: Project, monkeypatch: pytest.MonkeyPatch, setting: str, is_plain: bool
) -> None:
    """Ids may be texts or whole numbers; anything else is no id, and rejects no line."""
    monkeypatch.setenv("HEALTH_USER_IDS", setting)
    ids: list[Any] = ["ana@example.org", "Ana@example.org", 17, "", None, ["ana"], "x" * 2000]
    project.write_log("a.jsonl", [line(run(n, user_id=one, cost_usd=n)) for n, one in enumerate(ids)])
    project.materialize(HourRange.of(START), only=STEPS)
    kept = [user if is_plain else digest_of_user(user) for user in ("ana@example.org", "Ana@example.org", "17")]
    too_long = digest_of_user("x" * 2000)
    rows = sorted(project.rows("executions"), key=lambda row: row["execution_id"])
    assert [row["user_id"] for row in rows] == [*kept, None, None, None, too_long]
    costs = {row["user_id"]: row["cost_usd"] for row in project.rows("usage_breakdown")}
    assert costs == {**dict(zip(kept, [0, 1, 2], strict=True)), "": 12, too_long: 6}
    assert ("ana@" in str(project.tables(names=[*ALL_TABLES]))) == is_plain


def test_a_span_names_its_user_itself_or_by_the_span_around_it(project: Project) -> None:
    end = START + HOUR / 2
    spans = [
        span(1, 1, end, user__id="u-1", name="wrapper"), agent(1, 2, end, 1),
        agent(2, 1, end, enduser__id="u-2", user__id=""), agent(3, 1, end, user__id=3), agent(4, 1, end),
    ]  # fmt: skip
    project.write_log("t.jsonl", [otlp_line(*spans)])
    project.materialize(HourRange.of(START), only=STEPS)
    users = {row["execution_id"][31]: row["user_id"] for row in project.rows("executions")}
    assert users == {"1": None, "2": digest_of_user("u-2"), "3": digest_of_user("3"), "4": None}


@pytest.mark.parametrize("by_default", [False, True])
def test_retired_agents_and_agents_without_an_execution_have_no_row(project: Project, by_default: bool) -> None:
    project.write_targets(
        {"defaults": {"retired": by_default}, "agents": {"odd": {"retired": not by_default}, "listed": {}}}
    )
    records = [run(1, agent_id="odd"), run(1, agent_id="usual")]
    for hours in (HourRange.of(START), hours_from(START, 2)):
        assert {row["agent_id"] for row in usage(project, records, hours)} == {"odd" if by_default else "usual"}


@pytest.mark.parametrize("engine", ENGINES)
def test_nonsensical_amounts_count_as_the_most_that_counts_and_stop_nothing(tmp_path: Path, engine: str) -> None:
    project = Project(tmp_path / "project", engine=engine)
    most = {"input_tokens": 2**63 - 1, "output_tokens": 2**63 - 1, "cost_usd": 1.7e308}
    records = [run(n, hour, **most) for hour in range(2) for n in (hour, 10 + hour)]
    rows = usage(project, records, hours_from(START, 2))
    assert [row["cost_usd"] for row in rows] == [2 * MOST_USD, 4 * MOST_USD]
    assert [row["input_tokens"] for row in rows] == [2 * MOST_TOKENS, 4 * MOST_TOKENS]


# -- against the reference ---------------------------------------------------------------------------------------------


def random_records(random: Random, count: int, hours: int) -> list[Record]:
    """Executions and calls of models, each of which tells some amounts; ids repeat now and then."""

    def some_amounts(share: float) -> Record:
        amounts = {
            "input_tokens": random.choice([0, 12, random.randrange(10**6)]),
            "output_tokens": random.randrange(10**4),
            "cache_read_tokens": random.randrange(10**4),
            "cache_creation_tokens": random.randrange(10**3),
            "reasoning_tokens": random.randrange(10**3),
            "cost_usd": random.choice([0, 0.1, random.random(), random.random() * 1e-6, random.random() * 1e4]),
        }
        return {name: value for name, value in amounts.items() if random.random() < share}

    records = []
    for number in range(count):
        name = random.randrange(count) if number % 9 == 0 else number
        status = random.choice(["success", "failure"])
        agent_id = random.choice(["a", "b", "gone"])
        at = START + random.randrange(hours * 3600) * HOUR / 3600
        named = {"agent_version": random.choice([None, "1", "2"]), "model": random.choice([None, "m", "n"])}
        named["user_id"] = f"user {name % 2}" if name % 3 else None
        records.append(execution(f"e{name}", agent_id, at, status=status, **named, **some_amounts(0.4)))
        records.append(execution(f"silent {name}", "never tells", at))
        record = model_call(number, f"e{random.randrange(count)}", **some_amounts(0.5))
        records.append(record | {"ended_at": (START + random.randrange(hours * 60) * HOUR / 60).isoformat()})
        if number % 4 == 0:
            agent_id = random.choice(["a", "gone", "always cancelled"])
            records.append(cancellation(f"x{name}", agent_id, at, **named, **some_amounts(0.4)))
            records.append(model_call(count + number, f"x{name}", **some_amounts(0.5)) | {"ended_at": at.isoformat()})
    return records


@pytest.mark.parametrize(
    ("seed", "window_hours", "first", "count"),
    [(2, 3, 2, 9), *(pytest.param(*more, marks=pytest.mark.nightly) for more in [(1, 24, 0, 12), (3, 5, 9, 1)])],
)
def test_usage_of_random_logs_equals_the_reference_and_one_hour_equals_its_part_of_a_range(
    tmp_path: Path, seed: int, window_hours: int, first: int, count: int
) -> None:
    targets = {"agents": {"gone": {"retired": True}}}
    project = Project(tmp_path / "project", targets, window_hours, 2 * window_hours)
    random = Random(seed)
    for name in ("a.jsonl", "b.jsonl.gz"):
        project.write_log(name, [line(record) for record in random_records(random, 100, 10)])
    hours = hours_from(START + first * HOUR, count)
    project.materialize(hours, only=STEPS)
    records, _ = reference.read_lines(project.raw)
    expected = reference_agent_usage.agent_usage(records, targets, list(hours), window_hours, 2 * window_hours)
    rows = project.rows("agent_usage", hours)
    assert_equal_rows(rows, expected, ["hour", "agent_id"])
    assert set(columns_of("agent_usage")) - set(expected[0]) == {"hours_covered", "formula_version"}
    assert {row["cost_usd"] for row in rows if row["agent_id"] == "never tells"} == {None}
    for record in records:
        record["user_id"] = record.get("user_id") and digest_of_user(record["user_id"])
    parts = reference_agent_usage.agent_usage(
        records, targets, list(hours), window_hours, 2 * window_hours, reference_agent_usage.BY_PART
    )
    assert len({(row["agent_version"], row["model"]) for row in parts}) == 9
    assert len({row["user_id"] for row in parts}) == 3
    made = project.tables(hours, ["agent_usage", "usage_breakdown"])
    assert_equal_rows(made["usage_breakdown"], parts, ["hour", *reference_agent_usage.BY_PART])
    for hour in list(hours)[::3]:
        project.materialize(HourRange.of(hour), only=[*made])
    assert_same_tables(project.tables(hours, [*made]), made)


def test_late_records_and_any_order_of_hours_give_the_same_tables(tmp_path: Path) -> None:
    random = Random(5)
    early, late = ([line(record) for record in random_records(random, 60, 6)] for _ in range(2))
    hours = hours_from(START, 8)
    clean, project = (Project(tmp_path / name, None, 3, 4) for name in ("clean", "project"))
    for one in (clean, project):
        one.write_log("early.jsonl", early)
    clean.write_log("late.jsonl", late)
    clean.materialize(hours, only=STEPS)
    project.materialize(hours_from(START + 4 * HOUR, 4), only=STEPS)
    project.write_log("late.jsonl", late)
    project.materialize(hours, only=STEPS, only_stale=True)
    for hour in (6, 3):
        project.materialize(HourRange.of(START + hour * HOUR), only=TABLES)
    assert_same_tables(project.tables(hours, TABLES), clean.tables(hours, TABLES))


# -- how parts merge ---------------------------------------------------------------------------------------------------

EXECUTIONS = pa.schema(
    {
        "hour": pa.timestamp("us", "UTC"), "agent_id": pa.string(), "succeeded": pa.bool_(), "input_tokens": pa.int64(),
        "output_tokens": pa.int64(), "cache_read_tokens": pa.int64(), "cache_creation_tokens": pa.int64(),
        "reasoning_tokens": pa.int64(), "cost_usd": pa.float64(), "cost_source": pa.string(), "feedback": pa.string(),
        "agent_version": pa.string(), "model": pa.string(), "user_id": pa.string(),
    }
)  # fmt: skip


def window_of(executions: Sequence[Row], hours: HourRange) -> Row:
    """The row of the one window that holds all of these hours, made from the parts of the hours."""
    connection = ibis.duckdb.connect()
    rows = ibis.memtable(pa.Table.from_pylist(list(executions), EXECUTIONS))
    components = ibis.memtable(connection.to_pyarrow(usage_components(rows)))
    last = HourRange.of(hours.end - HOUR)
    (row,) = connection.to_pyarrow(agent_usage(components, Targets(), last, len(hours))).to_pylist()
    return row


def test_the_cost_of_many_hours_is_the_sum_of_all_executions_in_whatever_order_they_stand() -> None:
    """Where doubles are added one by one, these sums differ by order in the twelfth digit."""
    for seed in range(5):
        random = Random(seed)
        hours = hours_from(START, 6)
        executions = [
            {
                "hour": random.choice(list(hours)), "agent_id": "a", "succeeded": random.random() < 0.5,
                "input_tokens": random.choice([None, random.randrange(10**9)]), "output_tokens": None,
                "cost_usd": random.choice([None, random.random() * 10 ** random.randrange(-6, 6)]),
                "model": random.choice([None, "small", "large"]),
            }
            for _ in range(500)
        ]  # fmt: skip
        found = window_of(executions, hours)
        random.shuffle(executions)
        assert window_of(executions, hours) == found
        costs = [Fraction(one["cost_usd"]) for one in executions if one["cost_usd"] is not None]
        assert found["cost_usd"] == pytest.approx(float(sum(costs)), rel=1e-15)
        assert found["executions_with_cost"] == len(costs)
        assert found["input_tokens"] == sum(one["input_tokens"] or 0 for one in executions)
        in_one_hour = window_of([{**one, "hour": hours.end - HOUR} for one in executions], hours)
        assert in_one_hour.pop("cost_usd") == pytest.approx(found["cost_usd"], rel=1e-15)
        assert in_one_hour.pop("cost_per_success_usd") == pytest.approx(found["cost_per_success_usd"], rel=1e-15)
        assert in_one_hour.items() <= found.items()


# -- in the terminal ---------------------------------------------------------------------------------------------------


def shown(project: Project) -> str:
    console = Console(width=140, record=True, file=StringIO())
    with project.warehouse.read() as session:
        print_block(console, session, HourRange.of(START))
    return console.export_text()


def test_the_terminal_shows_the_costliest_agents_and_what_a_success_costs(project: Project) -> None:
    told = {"cache_read_tokens": 930, "cache_creation_tokens": 70, "reasoning_tokens": 5, "cost_usd": 0.0021}
    records = [run(n, input_tokens=1500, output_tokens=20, **told) for n in range(10)]
    records += [
        run(n, agent_id="dear\x1b[31m", cost_usd=617.25, status="failure" if n else "success") for n in range(2)
    ]
    records += [run(n, agent_id="half", input_tokens=7, **({"cost_usd": 1.5} if n else {})) for n in range(2)]
    records += [run(1, agent_id="silent")]
    usage(project, records, HourRange.of(START))
    title, sums, heading, *rows = shown(project).strip().splitlines()
    assert title == "Usage at 2026-06-07 00:00 UTC: 4 agents, 15 executions in 24 h"
    assert sums == (
        "15,014 tokens in (62% cached), 200 tokens out (25% reasoning), told by 12 executions; "
        "$1,236.02, told by 13 executions"
    )
    assert heading.split()[:3] == ["costliest", "agents", "runs"]
    assert [row.split() for row in rows[:3]] == [
        ["dear\\x1b[31m", "2", "1", "–", "–", "$1,234.50", "$1,234.50"],
        ["half", "2", "2", "14", "–", "≥$1.50", "≥$0.750"],
        ["a", "10", "10", "15,000", "200", "$0.0210", "$0.00210"],
    ]
    assert rows[3].strip() == "≥ only some of the agent's executions tell it"


def test_the_terminal_shows_the_costliest_models_users_and_versions_of_agents_that_ran_several(
    project: Project,
) -> None:
    records = [
        run(1, agent_version="1", model="big", cost_usd=1.5, input_tokens=10, user_id="ana"),
        run(2, agent_version="1", model="small", cost_usd=0.5, input_tokens=20, status="failure"),
        run(3, agent_version="2", model="small", input_tokens=1000),
        run(4, model="small", cost_usd=0.25),
        run(1, agent_id="b", agent_version="7", cost_usd=9),
    ]
    usage(project, records, HourRange.of(START))
    lines = [row.split() for row in shown(project).splitlines()]
    headings = {tuple(row[:2]): place for place, row in enumerate(lines)}
    models = headings["costliest", "models"]
    assert lines[models + 1 : models + 3] == [
        ["big", "1", "1", "10", "–", "$1.50", "$1.50"],
        ["small", "3", "2", "≥1,020", "–", "≥$0.750", "≥$0.375"],
    ]
    versions = headings["costliest", "versions"]
    assert lines[versions + 1 : versions + 4] == [
        ["a", "1", "2", "1", "30", "–", "$2.00", "$2.00"],
        ["a", "(no", "version)", "1", "1", "–", "–", "$0.250", "$0.250"],
        ["a", "2", "1", "1", "1,000", "–", "–", "–"],
    ]
    users = headings["costliest", "users"]
    assert lines[users + 1 :] == [[digest_of_user("ana"), "1", "1", "10", "–", "$1.50", "$1.50"]]


def test_the_terminal_says_so_where_no_execution_tells_anything_and_nothing_where_there_is_none(
    project: Project,
) -> None:
    usage(project, [], HourRange.of(START))
    assert shown(project) == ""
    usage(project, [run(1)], HourRange.of(START))
    assert shown(project).strip().endswith("1 agent, 1 execution in 24 h\nno execution tells tokens or cost")


def test_of_many_agents_the_costliest_are_shown_and_those_that_tell_are_counted(project: Project) -> None:
    records = [run(1, agent_id=f"agent {n:02}", cost_usd=n) for n in range(15)]
    usage(project, [*records, run(1, agent_id="silent")], HourRange.of(START))
    text = shown(project)
    assert [row.split()[1] for row in text.splitlines() if row.startswith("agent ")] == [
        f"{n:02}" for n in range(14, 4, -1)
    ]
    assert "the 10 of 15 agents that cost most" in text
