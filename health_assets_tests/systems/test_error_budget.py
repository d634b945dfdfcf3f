"""Error budgets from logs: examples by hand, the plain-Python reference, and what the terminal shows."""

from collections.abc import Sequence
from datetime import timedelta
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
from health_assets.schema.catalog import columns_of
from health_assets.systems.error_budget.error_budget import error_budget
from health_assets.systems.error_budget.report import print_block
from health_assets_tests.support import reference, reference_error_budget
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import Project, Row, assert_same_tables, hours_from
from health_assets_tests.systems.test_scores_equal_reference import assert_equal_rows, make_random_project

STEPS = ["ingest", "health_components", "error_budget"]


def runs(successes: int, failures: int, hours_ago: int = 0, agent_id: str = "a") -> list[Record]:
    """Executions that ended in the middle of an hour, counted back from the day's last."""
    at = START + (23 - hours_ago) * HOUR + HOUR / 2
    statuses = ["success"] * successes + ["failure"] * failures
    return [
        execution(f"{agent_id} {hours_ago} {place} {status}", agent_id, at, status=status)
        for place, status in enumerate(statuses)
    ]


LAST = HourRange.of(START + 23 * HOUR)


def budgets(project: Project, records: Sequence[Record], hours: HourRange = LAST) -> list[Row]:
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours, only=STEPS)
    return sorted(project.rows("error_budget"), key=lambda row: (row["hour"], row["agent_id"]))


def ended(time: str, status: str = "success", agent_id: str = "a") -> Record:
    """An execution that ended at a time of the day's last hour."""
    minutes, seconds = time.split(":")
    at = LAST.start + timedelta(minutes=int(minutes), seconds=float(seconds))
    return execution(time, agent_id, at, status=status)


# -- by hand -----------------------------------------------------------------------------------------------------------


TARGETS = {
    "agents": {
        "listed": {}, "perfect": {"expected_success_rate": 1}, "careless": {"expected_success_rate": 0},
    }
}  # fmt: skip


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """By agent, the budget at the end of the day's last hour, for the tests below."""
    project = Project(tmp_path_factory.mktemp("by hand") / "project", TARGETS)
    times = {"29:59.999999": "failure", "30:00": "success", "54:59.999999": "success", "55:00": "failure"}
    records = [
        *runs(9, 1, 0, "share"), *runs(45, 5, 5, "share"), *runs(336, 4, 6, "share"),
        *runs(3, 1, 8, "quiet then"),
        *(ended(time, status, "on the minute") for time, status in times.items()),
        ended("20:00", "failure", "quiet end"),
        *runs(9, 1, 0, "perfect"), *runs(0, 4, 0, "careless"),
    ]  # fmt: skip
    return {row["agent_id"]: row for row in budgets(project, records)}


def test_the_share_of_the_allowed_failures_is_spent_and_the_burn_rates_say_how_fast(by_hand: dict[str, Row]) -> None:
    """95 % expected: of 400 executions 20 may fail. 10 did: 1 in the last hour's 10, 6 in the last 6 hours' 60."""
    row = by_hand["share"]
    assert (row["n"], row["failures"], row["allowed_failures"], row["budget_spent"]) == (400, 10, 20.0, 0.5)
    assert (row["n_1h"], row["failures_1h"], row["burn_rate_1h"]) == (10, 1, 2.0)
    assert (row["n_6h"], row["failures_6h"], row["burn_rate_6h"]) == (60, 6, 2.0)
    assert row["expected_success_rate"] == 0.95
    assert (row["window_start"], row["window_end"], row["hours_covered"]) == (START, LAST.end, 24)


def test_all_of_the_budget_is_exactly_1() -> None:
    """1 - 0.95 is more than 0.05 in binary, so that one failure of twenty would be less than all."""
    cases = {0.95: (20, 1), 0.99: (100, 1), 0.93: (100, 7), 0.9: (10, 1), 0.7: (10, 3), 0.999: (4000, 4)}
    for (_, allowed), row in zip(cases.values(), rows_of_sums(list(cases.values()), list(cases)), strict=True):
        assert (row["allowed_failures"], row["budget_spent"], row["burn_rate_1h"]) == (allowed, 1.0, 1.0)


def test_without_executions_nothing_is_known(by_hand: dict[str, Row]) -> None:
    quiet, then = by_hand["listed"], by_hand["quiet then"]
    assert (quiet["n"], quiet["failures"], quiet["allowed_failures"]) == (0, 0, 0.0)
    assert quiet["budget_spent"] is quiet["burn_rate_1h"] is quiet["burn_rate_6h"] is None
    assert then["budget_spent"] == 5.0
    assert then["burn_rate_1h"] is then["burn_rate_6h"] is None


def test_where_nothing_may_fail_there_is_no_budget_and_a_failure_is_still_counted(by_hand: dict[str, Row]) -> None:
    row = by_hand["perfect"]
    assert (row["n"], row["failures"], row["allowed_failures"]) == (10, 1, 0.0)
    assert row["budget_spent"] is row["burn_rate_1h"] is row["burn_rate_6h"] is None


def test_where_everything_may_fail_no_more_than_all_is_spent(by_hand: dict[str, Row]) -> None:
    row = by_hand["careless"]
    assert (row["allowed_failures"], row["budget_spent"]) == (4.0, 1.0)


def test_a_short_window_may_be_longer_than_the_evaluation_window_but_not_than_the_look_back(tmp_path: Path) -> None:
    records = [*runs(1, 0), *runs(1, 0, 2), *runs(0, 1, 3), *runs(0, 1, 5), *runs(0, 9, 6)]
    (row,) = budgets(Project(tmp_path / "window of 2", None, 2, 12), records)
    assert (row["n"], row["n_6h"], row["failures_6h"]) == (1, 4, 2)
    (row,) = budgets(Project(tmp_path / "look-back of 3", None, 2, 3), records)
    assert (row["n"], row["n_6h"], row["failures_6h"]) == (1, 2, 0)


def test_the_last_5_and_30_minutes_end_with_the_hour_and_begin_on_the_minute(by_hand: dict[str, Row]) -> None:
    row = by_hand["on the minute"]
    assert (row["n_5m"], row["failures_5m"], row["burn_rate_5m"]) == (1, 1, 20.0)
    assert (row["n_30m"], row["failures_30m"], row["burn_rate_30m"]) == (3, 1, pytest.approx(20 / 3))
    assert (row["n_1h"], row["failures_1h"]) == (4, 2)


def test_an_hour_that_ends_quietly_has_no_rate_of_its_last_minutes(by_hand: dict[str, Row]) -> None:
    row = by_hand["quiet end"]
    assert (row["n_5m"], row["burn_rate_5m"], row["n_30m"], row["burn_rate_30m"]) == (0, None, 0, None)
    assert row["burn_rate_1h"] == 20.0


def test_the_last_minutes_of_an_hour_outlast_its_executions(project: Project) -> None:
    before = budgets(project, [ended("40:00", "failure"), ended("59:00")])
    assert [(row["n_5m"], row["failures_30m"]) for row in before] == [(1, 1)]
    with project.warehouse.write() as session:
        session.delete_hours("executions", LAST)
    project.materialize(LAST, only=["error_budget"])
    assert project.rows("error_budget") == before


# -- against the reference ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "window_hours", "lookback_hours"),
    [(2, 3, 5), *(pytest.param(*more, marks=pytest.mark.nightly) for more in [(1, 24, 168), (3, 4, 9)])],
)
def test_every_budget_of_random_logs_equals_the_reference(
    tmp_path: Path, seed: int, window_hours: int, lookback_hours: int
) -> None:
    project = make_random_project(tmp_path, seed, window_hours, lookback_hours)
    hours = hours_from(START, 40)
    project.materialize(hours, only=STEPS)
    records, _ = reference.read_lines(project.raw)
    expected = reference_error_budget.error_budget(
        records, project.targets or {}, hours.start, hours.end, window_hours, lookback_hours
    )
    rows = project.rows("error_budget")
    assert_equal_rows(rows, expected, ["hour", "agent_id"])
    assert set(expected[0]) == set(columns_of("error_budget")) - {"hours_covered", "formula_version"}
    together = {"error_budget": rows}
    for hour in list(hours)[::13]:  # one hour alone takes another way than a range
        project.materialize(HourRange.of(hour), only=["error_budget"])
    assert_same_tables({"error_budget": project.rows("error_budget")}, together)


def test_budgets_are_those_of_the_agents_and_windows_of_the_agent_health_model(tmp_path: Path) -> None:
    project = make_random_project(tmp_path, 5, 4, 8)
    project.materialize(hours_from(START, 12), only=[*STEPS, "agent_health"])
    same = ("hour", "agent_id", "window_start", "window_end", "hours_covered", "n", "failures", "expected_success_rate")
    columns = ", ".join(same)
    budgets_and_scores = [
        sorted(project.query(f"SELECT {columns} FROM {name}")) for name in ("error_budget", "agent_health")
    ]
    assert budgets_and_scores[0] == budgets_and_scores[1]


def rows_of_sums(sums: Sequence[tuple[int, int]], expected: Sequence[float]) -> list[Row]:
    """The scored rows of agents with these (executions, failures) in the last hour and these targets."""
    names = [f"{place:05}" for place in range(len(sums))]
    components = pa.table(
        {
            "hour": pa.array([LAST.start] * len(sums), pa.timestamp("us", "UTC")),
            "agent_id": names,
            "executions": pa.array([n for n, _ in sums], pa.int64()),
            "failures": pa.array([failures for _, failures in sums], pa.int64()),
            **{
                f"{name}_{length}": pa.array([one[place] for one in sums], pa.int64())
                for length in ("5m", "30m")
                for place, name in enumerate(("executions", "failures"))
            },
        }
    )
    agents = {name: {"expected_success_rate": rate} for name, rate in zip(names, expected, strict=True)}
    rows = error_budget(ibis.memtable(components), Targets.model_validate({"agents": agents}), LAST, 24, 168)
    return ibis.duckdb.connect().to_pyarrow(rows.order_by("agent_id")).to_pylist()


def test_the_formula_equals_the_reference_for_any_counts_and_targets() -> None:
    random = Random(4)
    totals = [random.choice([0, 1, 7, 20, random.randrange(10**6), random.randrange(10**12)]) for _ in range(400)]
    sums = [(n, random.choice([0, n, n // 20, random.randint(0, n)])) for n in totals]
    rates = [0, 1, 0.95, 0.999, 0.999_999_999, 1e-9]
    expected = [random.choice([*rates, random.randrange(1001) / 1000]) for _ in totals]
    for (n, failures), rate, row in zip(sums, expected, rows_of_sums(sums, expected), strict=True):
        burn_rate = reference_error_budget.burn_rate(n, failures, rate)
        for column in ("budget_spent", *(f"burn_rate_{length}" for length in reference_error_budget.SHORT_WINDOWS)):
            assert row[column] == (None if burn_rate is None else pytest.approx(burn_rate, rel=1e-9)), (n, failures)


# -- in the terminal ---------------------------------------------------------------------------------------------------


def shown(project: Project) -> str:
    console = Console(width=120, record=True, file=StringIO())
    with project.warehouse.read() as session:
        print_block(console, session, LAST)
    return console.export_text()


def test_the_terminal_lists_the_agents_that_spent_or_burn_their_budget_most_spent_first(project: Project) -> None:
    records: list[Any] = [
        *runs(100, 0, agent_id="sound"), *runs(5, 5, agent_id="burning"), *runs(8, 2, agent_id="warm\x1b[31m"),
        *runs(5, 5, 3, "was burning"), *runs(90, 0, 0, "was burning"),
    ]  # fmt: skip
    budgets(project, records)
    text = shown(project)
    assert "Error budgets at 2026-06-07 23:00 UTC: 4 agents: 3 spent  2 burning too fast" in text
    lines = text.splitlines()[3:]
    assert [text.split("%")[0].rsplit(maxsplit=1)[0] for text in lines] == ["burning", "warm\\x1b[31m", "was burning"]
    assert lines[0].split()[1:6] == ["1,000%", "–", "10.0", "10.0", "10.0"]
    assert lines[2].split()[5] == "0.0", "spent, and not burning any more"


def test_of_many_agents_that_spent_their_budget_ten_are_listed_and_all_are_counted(project: Project) -> None:
    records = [record for number in range(11) for record in runs(5, 5, 20, agent_id=f"spent {number:02}")]
    budgets(project, records)
    text = shown(project)
    assert "11 agents: 11 spent  0 burning too fast" in text
    assert "spent 09" in text and "spent 10" not in text
    assert "the 10 of 11 that burn fastest or spent most; all are in the table error_budget" in " ".join(text.split())


def test_the_terminal_says_so_where_nobody_burns_too_fast_and_nothing_where_there_are_no_budgets(
    project: Project,
) -> None:
    project.materialize(LAST, only=STEPS)
    assert shown(project) == ""
    budgets(project, runs(100, 1))
    assert shown(project).strip().endswith("1 agent: 0 spent  0 burning too fast")
