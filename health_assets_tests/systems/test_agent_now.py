"""Agents now: verdicts by hand, the plain-Python reference, chance itself, and how soon an outage is told."""

import math
from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from io import StringIO
from pathlib import Path
from random import Random

import ibis
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import Targets
from health_assets.schema.catalog import columns_of
from health_assets.systems.agent_now import verdict_grid
from health_assets.systems.agent_now.agent_now import agent_now
from health_assets.systems.agent_now.chance import exact_chance, with_chances
from health_assets.systems.agent_now.report import print_block
from health_assets_tests.support import reference, reference_agent_now
from health_assets_tests.support.logs_made import START, Record, execution, line, trigger
from health_assets_tests.support.projects import REPOSITORY, Project, Row, assert_same_tables, hours_from
from health_assets_tests.systems.test_scores_equal_reference import assert_equal_rows, make_random_project

STEPS = ["ingest", "health_components", "now_components", "agent_now"]
THRESHOLD = 1e-4


def runs(hour: int, outcomes: str, agent_id: str = "a") -> list[Record]:
    """Executions of an hour in order, a letter each: s succeeds, f fails."""
    at = START + hour * HOUR
    return [
        execution(
            f"{agent_id} {hour} {place}", agent_id, at + (place + 1) * timedelta(seconds=3),
            status="success" if letter == "s" else "failure",
        )
        for place, letter in enumerate(outcomes)
    ]  # fmt: skip


def verdicts(
    hours: Sequence[tuple[int, int]], expected: float = 0.95, ending: Sequence[int] | None = None
) -> list[Row]:
    """The rows of one agent, from (executions, failures) hour by hour; failures come first, unless they end the hour."""
    return verdicts_of([hours], [expected], [ending or [f if f == n else 0 for n, f in hours]])[0]


def verdicts_of(
    agents: Sequence[Sequence[tuple[int, int]]] | np.ndarray,
    expected: Sequence[float],
    endings: Sequence[Sequence[int]] | np.ndarray,
    lookback_hours: int = 168,
    agents_at_once: int = 40_000,
) -> list[list[Row]]:
    """The rows of each agent, from (executions, failures) and failures at the end, hour by hour."""
    length = len(agents[0])
    span = HourRange(START, START + length * HOUR)
    names = [f"{place:06}" for place in range(len(agents))]
    hour = pa.array([START + place * HOUR for _ in agents for place in range(length)], pa.timestamp("us", "UTC"))
    who = [name for name in names for _ in range(length)]
    counts = np.array(agents, np.int64).reshape(-1, 2)
    components = pa.table({"hour": hour, "agent_id": who, "executions": counts[:, 0], "failures": counts[:, 1]})
    ends = pa.table({"hour": hour, "agent_id": who, "failed_at_end": np.array(endings, np.int64).reshape(-1)})
    targets = Targets.model_validate(
        {"agents": {name: {"expected_success_rate": rate} for name, rate in zip(names, expected, strict=True)}}
    )
    connection = ibis.duckdb.connect()
    kept: list[ibis.Table] = []

    def persist(rows: ibis.Table) -> ibis.Table:
        kept.append(connection.create_table(f"kept_{len(kept)}", connection.to_pyarrow(rows), temp=True))
        return kept[-1]

    rows = agent_now(
        ibis.memtable(components), ibis.memtable(ends), targets, span, lookback_hours, THRESHOLD, persist,
        connection.to_pyarrow, lambda given, keys, order, make: ibis.memtable(make(connection.to_pyarrow(given.order_by(order)))),
        agents_at_once,
    )  # fmt: skip
    found = connection.to_pyarrow(rows.order_by("agent_id", "hour")).to_pylist()
    return [found[place * length : (place + 1) * length] for place in range(len(agents))]


def words(rows: Sequence[Row]) -> list[str]:
    return [row["verdict"] for row in rows]


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_an_outage_is_failing_in_its_first_hour_and_recovering_for_three_good_hours() -> None:
    rows = verdicts([(12, 0), (12, 12), (12, 12), (12, 0), (12, 0), (12, 0), (12, 0)])
    assert words(rows) == ["ok", "failing", "failing", "recovering", "recovering", "recovering", "ok"]
    assert [row["good_hours"] for row in rows] == [None, None, None, 1, 2, 3, None]
    assert [(row["since"] - START) / HOUR for row in rows[1:]] == [1, 1, 3, 3, 3, 6]
    assert [row["failed_in_a_row"] for row in rows] == [0, 12, 24, 0, 0, 0, 0]
    assert rows[1]["p_chance"] == pytest.approx(0.05**12, rel=1e-12)


def test_improbable_failures_of_fewer_than_half_are_suspect_and_of_exactly_half_are_failing() -> None:
    assert words(verdicts([(100, 49)])) == ["suspect"]
    assert words(verdicts([(100, 50)])) == ["failing"]


def test_improbable_over_six_hours_alone_is_suspect() -> None:
    """2 of 12 in an hour is 12 % by chance; 12 of 72 in six hours is 0.02 %, and 14 of 72 less than 0.01 %."""
    rows = verdicts([(12, 2)] * 5 + [(12, 4)])
    assert words(rows) == ["ok"] * 5 + ["suspect"]
    assert rows[-1]["p_chance"] > THRESHOLD > rows[-1]["p_chance_6h"]


def test_an_hour_that_looks_bad_again_is_suspect_and_not_recovering() -> None:
    assert words(verdicts([(12, 12), (40, 12)])) == ["failing", "suspect"]


def test_an_agent_with_one_run_an_hour_is_failing_by_its_streak() -> None:
    rows = verdicts([(1, 0)] + [(1, 1)] * 5)
    assert words(rows) == ["ok", "ok", "ok", "ok", "failing", "failing"]
    assert [row["failed_in_a_row"] for row in rows] == [0, 1, 2, 3, 4, 5]


def test_a_streak_that_stands_keeps_an_agent_failing_when_nothing_runs_until_it_is_six_hours_old() -> None:
    rows = verdicts([(12, 12)] + [(0, 0)] * 7)
    assert words(rows) == ["failing"] * 6 + ["quiet"] * 2
    assert (rows[5]["failed_in_a_row"], rows[6]["failed_in_a_row"], rows[6]["p_chance"]) == (12, 0, None)
    assert rows[-1]["since"] == START + 6 * HOUR


def test_a_run_of_failures_goes_on_over_an_hour_without_runs_and_ends_with_a_success() -> None:
    assert [row["failed_in_a_row"] for row in verdicts([(3, 3), (0, 0), (2, 2)])] == [3, 3, 5]
    assert verdicts([(3, 3), (4, 2)], ending=[3, 2])[1]["failed_in_a_row"] == 2


def test_good_hours_are_hours_in_which_something_ran() -> None:
    rows = verdicts([(4, 4), (0, 0), (4, 0)], ending=[0, 0, 0])
    assert words(rows) == ["failing", "quiet", "recovering"]
    assert rows[2]["good_hours"] == 1


def test_nothing_is_failing_where_nothing_is_expected_to_succeed() -> None:
    rows = verdicts([(50, 50)] * 3, expected=0)
    assert words(rows) == ["ok"] * 3
    assert rows[0]["p_chance"] == 1.0


@pytest.mark.parametrize(("failures", "ending", "verdict"), [(1, 0, "suspect"), (1, 1, "suspect"), (50, 0, "failing")])
def test_where_nothing_may_fail_one_failure_is_suspect_and_half_is_failing(
    failures: int, ending: int, verdict: str
) -> None:
    (row,) = verdicts([(100, failures)], expected=1, ending=[ending])
    assert (row["verdict"], row["p_chance"]) == (verdict, 0.0)


def test_a_chance_of_exactly_the_threshold_is_not_below_it() -> None:
    """0.1^4 is 1e-4; doubles say a little more or less."""
    assert words(verdicts([(4, 4)], expected=0.9)) == ["ok"]
    assert words(verdicts([(4, 4)], expected=0.901)) == ["failing"]
    assert words(verdicts([(4, 4)], expected=0.899)) == ["ok"]


def test_fewer_than_four_failures_in_six_hours_are_never_failing() -> None:
    in_one_hour = [[(0, 0)] * 5 + [(runs, failures)] for failures in (1, 2, 3) for runs in range(failures, 13)]
    spread = [[(1, 1), (0, 0)] * 3, [(2, 2), *[(0, 0)] * 4, (1, 1)], [(0, 0)] * 3 + [(1, 1)] * 3]
    agents = [*in_one_hour, *spread]
    endings = [[failures for _, failures in hours] for hours in agents]
    rows = verdicts_of(agents, [0.95] * len(agents), endings)
    assert "failing" not in {row["verdict"] for agent in rows for row in agent}
    assert words(verdicts([(1, 1)] * 4))[-1] == "failing"


def test_a_verdict_begins_no_earlier_than_the_look_back_tells() -> None:
    rows = verdicts([(12, 12)] * 160)
    assert {(row["hour"] - row["since"]) / HOUR for row in rows[-3:]} == {157}
    assert rows[157]["since"] == START


def test_the_verdict_of_an_hour_is_the_same_wherever_a_range_starts() -> None:
    hours = [(12, 0)] * 3 + [(12, 12)] * 4 + [(12, 0)] * 5
    assert verdicts(hours)[:7] == verdicts(hours[:7])


def test_verdicts_do_not_depend_on_how_many_agents_are_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = [[(12, 12 * (place == worst)) for place in range(9)] for worst in range(7)]
    endings = [[failures for _, failures in hours] for hours in agents]
    together = verdicts_of(agents, [0.9] * 7, endings)
    assert len({tuple(words(rows)) for rows in together}) == 7
    for agents_at_once in (1, 3):
        assert verdicts_of(agents, [0.9] * 7, endings, agents_at_once=agents_at_once) == together
    monkeypatch.setattr(verdict_grid, "CELLS", 2 * (168 + 8))
    assert verdicts_of(agents, [0.9] * 7, endings) == together


def test_chances_are_the_same_whether_their_cases_are_sorted_or_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)
    executions = random.integers(0, 40, (50, 24))
    failures = random.integers(0, executions + 1)
    rates = random.choice([0.5, 0.9, 0.99, 1.0], 50)
    found = []
    for most_numbers_each in (0, 10**6):
        monkeypatch.setattr(verdict_grid, "MAX_SLOTS_PER_NUMBER", most_numbers_each)
        found.append(verdict_grid.chances_of_cells(failures, executions, rates, 1e-4))
    (sorted_chances, sorted_flags), (chances, flags) = found
    np.testing.assert_array_equal(sorted_chances, chances)
    np.testing.assert_array_equal(sorted_flags, flags)
    each = zip(failures.ravel(), executions.ravel(), np.repeat(rates, 24), strict=True)
    expected = [exact_chance(int(failed), int(ran), float(rate)) for failed, ran, rate in each]
    np.testing.assert_allclose(chances.ravel(), [float(chance) for chance in expected], rtol=1e-9)
    assert 0 < flags.sum() < flags.size


def test_the_order_of_lines_decides_among_executions_that_ended_together(project: Project) -> None:
    at = START + HOUR / 2
    for name, statuses in {"a": ["success", "failure", "failure"], "b": ["failure", "success", "failure"]}.items():
        records = [execution(f"{name}{place}", name, at, status=status) for place, status in enumerate(statuses)]
        project.write_log(f"{name}.jsonl", [line(record) for record in records])
    project.write_log("c.jsonl", [line(one) for one in runs(0, "ffsff", "c") + runs(0, "fffs", "d")])
    project.materialize(HourRange.of(START), only=STEPS)
    streaks = {row["agent_id"]: row["failed_at_end"] for row in project.rows("now_components")}
    assert streaks == {"a": 2, "b": 1, "c": 2}


def test_known_agents_without_executions_are_quiet(project: Project) -> None:
    project.write_targets({"agents": {"listed": {}, "gone": {"retired": True}}})
    project.write_log("a.jsonl", [line(trigger("t", "seen", START + HOUR / 2)), *map(line, runs(0, "f", "gone"))])
    project.materialize(HourRange.of(START), only=STEPS)
    rows = {row["agent_id"]: row for row in project.rows("agent_now")}
    assert {name: row["verdict"] for name, row in rows.items()} == {"listed": "quiet", "seen": "quiet"}
    assert rows["seen"]["success_share_1h"] is rows["seen"]["success_low_6h"] is rows["seen"]["p_chance"] is None


# -- against the reference ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "lookback_hours"),
    [
        (1, 168), (4, 4), *(pytest.param(*more, marks=pytest.mark.nightly) for more in [(2, 8), (3, 24)]),
    ],
)  # fmt: skip
def test_every_verdict_of_random_logs_equals_the_reference(tmp_path: Path, seed: int, lookback_hours: int) -> None:
    project = make_random_project(tmp_path, seed, 3, lookback_hours)
    hours = hours_from(START, 40)
    project.materialize(hours, only=STEPS)
    records, _ = reference.read_lines(project.raw)
    expected = reference_agent_now.agent_now(records, project.targets or {}, hours.start, hours.end, lookback_hours)
    rows = project.rows("agent_now")
    assert_equal_rows(rows, expected, ["hour", "agent_id"])
    assert set(expected[0]) == set(columns_of("agent_now")) - {"formula_version"}
    together = {"agent_now": rows}
    for hour in list(hours)[::13]:  # one hour alone looks back over other hours than a range
        project.materialize(HourRange.of(hour), only=["agent_now"])
    assert_same_tables({"agent_now": project.rows("agent_now")}, together)


# -- chance ------------------------------------------------------------------------------------------------------------


def chances(cases: Sequence[tuple[int, int, float]]) -> list[dict]:
    failures, executions, rates = zip(*cases, strict=True)
    table = pa.table(
        {
            "failures": pa.array(failures, pa.int64()), "executions": pa.array(executions, pa.int64()),
            "expected_success_rate": pa.array(rates, pa.float64()),
        }
    )  # fmt: skip
    return with_chances(table, THRESHOLD).to_pylist()


def test_the_tail_is_exact_to_twelve_digits_for_few_and_many_executions() -> None:
    random = Random(5)
    cases = [(1, 1, 0.95), (12, 12, 0.95), (20_000, 20_000, 0.999), (0, 5, 0.9), (1, 30_000, 0.9999), (3, 9, 0.0)]
    for _ in range(150):
        n = random.choice([random.randint(1, 40), random.randint(1, 1000)])
        cases.append((random.randint(0, n), n, random.choice([0.5, 0.9, 0.95, 0.99, 0.999, 1.0])))
    cases += [(random.randint(280, 350), 5_000, 0.95) for _ in range(3)]
    for (failures, n, rate), row in zip(cases, chances(cases), strict=True):
        exact = reference_agent_now.chance(failures, n, rate)
        # doubles end at 1e-308; far above, digits are lost only to the logarithms of huge numbers
        assert math.isclose(row["chance"], float(exact), rel_tol=1e-11, abs_tol=1e-300), (failures, n, rate)
        assert row["is_improbable"] == (exact < Fraction(1, 10_000))


@pytest.mark.parametrize("agents", [50_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_of_agents_as_good_as_expected_at_most_two_in_10000_are_failing(agents: int) -> None:
    """One false `failing` in 10,000 agent-hours for the hour, one for the streak."""
    random, hours = np.random.default_rng(30), 6
    rates = [0.5, 0.9, 0.95, 0.99, 0.999, 1.0]
    expected = np.resize(np.repeat(rates, 5), agents)
    executions = np.broadcast_to(np.resize([1, 6, 12, 100, 1_000], agents)[:, None], (agents, hours))
    success = np.broadcast_to(expected[:, None], executions.shape)
    endings = np.minimum(random.geometric(success) - 1, executions)
    before = np.maximum(executions - endings - 1, 0)  # the run before the streak succeeded
    counts = np.stack([executions, endings + random.binomial(before, 1 - success)], axis=2)
    rows = verdicts_of(counts, expected.tolist(), endings, lookback_hours=hours)
    false = sum(own[-1]["verdict"] == "failing" for own in rows)
    assert 0 < false <= 2 * agents // 10_000


# -- how soon ----------------------------------------------------------------------------------------------------------

RUNS_AN_HOUR = (1, 6, 12, 1_000)
DELAYS = {
    ("all fail", "failing"): (4, 1, 1, 1),
    ("half fail", "failing"): (None, None, 1, 1),
    ("half fail", "suspect"): (None, 3, 1, 1),
}


def delays(share: float, verdict: str, executions: int) -> int | None:
    """Hours of a trouble until it is told, as seen at the end of each hour, with failures spread over each hour."""
    whole = share == 1
    bad = [
        (executions, executions if whole else -(-executions // 2) if executions > 1 else place % 2)
        for place in range(12)
    ]
    rows = verdicts([(executions, 0)] * 8 + bad)[8:]
    told = {"failing"} if verdict == "failing" else {"failing", "suspect"}
    return next((place for place, row in enumerate(rows, 1) if row["verdict"] in told), None)


@pytest.mark.parametrize("executions", RUNS_AN_HOUR)
def test_delays_are_those_of_the_docs(executions: int) -> None:
    place = RUNS_AN_HOUR.index(executions)
    for (trouble, verdict), expected in DELAYS.items():
        assert delays(1 if trouble == "all fail" else 0.5, verdict, executions) == expected[place], (trouble, verdict)


def test_the_docs_table_of_delays_is_what_the_tests_assert() -> None:
    page = (REPOSITORY / "docs" / "agent-now.md").read_text(encoding="utf-8")
    for (trouble, verdict), hours in DELAYS.items():
        said = " | ".join("–" if one is None else f"{one} h" for one in hours)
        assert f"| {trouble} | `{verdict}` | {said} |" in page


@pytest.mark.parametrize("executions", [6, pytest.param(12, marks=pytest.mark.nightly)])
def test_of_agents_that_are_as_good_as_expected_few_are_failing_at_any_minute_of_an_hour(executions: int) -> None:
    """The docs say 2 of 10,000 hours, looked at every minute; by chance 30,000 hours may have some more."""
    hours, random = 30_000, np.random.default_rng(executions)
    ended = np.sort(random.uniform(0, hours, executions * hours))
    failed = random.random(len(ended)) < 0.05
    looks = np.arange(6, hours)[:, None] + np.arange(1, 61) / 60
    first_1h, first_6h, last = (np.searchsorted(ended, looks - back) for back in (1, 6, 0))
    so_far = np.concatenate([[0], failed.cumsum()])
    place = np.arange(len(ended))
    streak = (place - np.maximum.accumulate(np.where(failed, -1, place)))[last - 1]
    counts = [so_far[last] - so_far[first_1h], last - first_1h, np.minimum(streak, last - first_6h)]
    cases, at_look = np.unique(np.stack([one.ravel() for one in counts]), axis=1, return_inverse=True)
    is_failing = np.array([_is_failing(*case) for case in cases.T.tolist()])[at_look].reshape(looks.shape)
    assert 0 < is_failing.any(axis=1).sum() < 15


def _is_failing(failures: int, executions: int, streak: int) -> bool:
    """As the docs have it, at 95 % expected."""
    by_hour, by_streak = chances([(failures, executions, 0.95), (streak, streak, 0.95)])
    return (by_hour["is_improbable"] and failures * 2 >= executions) or (streak >= 2 and by_streak["is_improbable"])


# -- in the terminal ---------------------------------------------------------------------------------------------------


def shown(project: Project, hour: HourRange) -> str:
    console = Console(width=120, record=True, file=StringIO())
    with project.warehouse.read() as session:
        print_block(console, session, hour)
    return console.export_text()


def test_the_terminal_lists_failing_agents_first_and_counts_all(project: Project) -> None:
    records = [
        *runs(0, "f" * 12, "back"), *runs(1, "s" * 12, "back"), *runs(1, "f" * 12, "down\x1b[31m"),
        *runs(1, "s" * 12, "fine"), *runs(0, "s", "still"),
    ]  # fmt: skip
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours_from(START, 2), only=STEPS)
    text = shown(project, HourRange.of(START + HOUR))
    assert "1 FAILING  1 recovering  1 ok  1 quiet" in text
    lines = text.splitlines()[3:]
    assert lines[0].split()[:3] == ["down\\x1b[31m", "FAILING", "01:00"]
    assert "12 of 12" in lines[0]
    assert "recovering, 1 of 3 good hours" in lines[1]
    assert shown(project, HourRange.of(START - HOUR)) == ""
