"""Suggested targets: the statistics by hand, which days are left out, the YAML, and the command on each engine."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from health_assets.apps.target_suggestions.document import changes, document
from health_assets.apps.target_suggestions.statistics_of_days import (
    Day,
    Lacking,
    LeftOut,
    Suggestion,
    Value,
    lacking,
    rounded_up,
    suggestion,
    typical_days,
)
from health_assets.apps.target_suggestions.suggesting import Suggestions
from health_assets.cli.commands import app
from health_assets.core.targets import AgentTargets, Targets, load_targets
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import ENGINES, Project, hours_from

FIRST = date(2026, 6, 7)
BUCKET_OF_10_S = 814
"""1.02^813 µs is 9.82 s, and 1.02^814 is 10.01 s."""
HOSTILE = "x\n  evil: {retired: true}  # \u202e\"'"


def day(number: int, runs: int = 100, failures: int = 0, mean_s: float = 10.0, **given: float | None) -> Day:
    known = {"timed": runs, "p50_s": mean_s, **given}
    timed = int(known["timed"] or 0)
    return Day(
        day=FIRST + timedelta(days=number), runs=runs, successes=runs - failures, timed=timed,
        runtime_us=round(timed * mean_s * 1e6), p50_s=known["p50_s"],
    )  # fmt: skip


def suggested(days: Sequence[Day], p99_bucket: int | None = BUCKET_OF_10_S) -> dict[str, float]:
    return {name: one.value for name, one in suggestion("a", days, (), p99_bucket).values.items()}


# -- values --


def test_the_success_rate_is_the_lower_wilson_bound_for_the_runs_of_a_day() -> None:
    # 95 % of 200 runs: (0.95 + z²/400 - z sqrt(0.95 x 0.05 / 200 + z²/160,000)) / (1 + z²/200) = 0.9104, with z = 1.96
    assert suggested([day(0, 200, 10), day(1, 200, 10), day(2, 200, 10)])["expected_success_rate"] == 0.910


def test_where_a_day_has_few_runs_the_bound_is_for_100() -> None:
    # 98 % of 100 runs: 0.92999, as scipy.stats.binomtest(98, 100).proportion_ci(method="wilson") says, rounded down
    days = [day(number, 50, 1) for number in range(4)]
    assert suggested(days)["expected_success_rate"] == 0.929


def test_failures_per_hour_are_those_of_the_worst_typical_day_and_one_a_day_at_least() -> None:
    assert suggested([day(0), day(1, failures=6), day(2, failures=3)])["expected_failures_per_hour"] == 0.25
    assert suggested([day(0), day(1), day(2)])["expected_failures_per_hour"] == 0.042  # 1/24, rounded up


def test_the_runtime_is_the_median_of_the_mean_runtimes_and_its_spread_the_deviation_allowed() -> None:
    means = suggested([day(0, mean_s=9), day(1, mean_s=10), day(2, mean_s=12), day(3, mean_s=10), day(4, mean_s=11)])
    # deviations from 10 are 1, 0, 2, 0, 1: their median is 1, which is 10 %; 3 x 1.4826 x 0.1 = 0.445
    assert (means["expected_runtime_s"], means["deviation_allowed"]) == (10, 0.45)
    alike = suggested([day(0, mean_s=9.9), day(1, mean_s=10), day(2, mean_s=10.1)])
    assert alike["deviation_allowed"] == AgentTargets().deviation_allowed == 0.2


def test_an_sla_is_above_every_run_of_the_p99s_bucket_and_the_breaches_of_usual_days_cost_little() -> None:
    few = suggested([day(number, 50) for number in range(3)])
    assert (few["sla_s"], few["baseline_latency_ms"]) == (10.1, 10_100)
    assert "sla_breach_threshold" not in few  # 5 x 0.5 runs a day are less than the default
    assert suggested([day(number, 1000) for number in range(3)])["sla_breach_threshold"] == 50


def test_without_runtimes_only_success_is_suggested_and_the_reason_told() -> None:
    days = [day(number, timed=10 * (number == 0), p50_s=None) for number in range(3)]
    found = suggestion("a", days, (), None)
    assert list(found.values) == ["expected_success_rate", "expected_failures_per_hour"]
    assert found.remark == "no target of runtimes: the logs tell those of 10 runs on 1 day"


def test_days_with_means_that_differ_too_much_give_no_runtime() -> None:
    found = suggestion("a", [day(0, mean_s=1), day(1, mean_s=5), day(2, mean_s=9)], (), BUCKET_OF_10_S)
    assert found.remark == "no target of runtimes: no day is typical, with means of 1 to 9 s"
    assert "expected_runtime_s" not in found.values


def test_long_runs_that_will_cost_stability_are_told() -> None:
    found = suggestion("a", [day(number, mean_s=1) for number in range(3)], (), BUCKET_OF_10_S)
    assert found.remark == (
        "its p99 is 10.1 times expected_runtime_s: long runs cost stability unless long_running_factor is as high"
    )


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [(10.0, 3, 10.0), (10.01, 3, 10.1), (0.04166, 2, 0.042), (97_650.0, 3, 97_700.0), (0.3, 1, 0.3), (999.9, 3, 1000)],
)
def test_values_are_rounded_up_to_digits_that_count(value: float, digits: int, expected: float) -> None:
    assert rounded_up(value, digits) == expected


# -- days that are left out --


def test_a_day_of_many_failures_is_left_out_with_the_reason() -> None:
    typical, left_out = typical_days([day(0, failures=2), day(1, failures=40), day(2, failures=3), day(3, failures=2)])
    assert left_out == [LeftOut(date(2026, 6, 8), "60% succeeded, usually 98%")]
    assert [one.day.day for one in typical] == [7, 9, 10]


def test_a_slow_day_is_left_out_and_a_fast_one_is_not() -> None:
    days = [day(0, mean_s=6), day(1, mean_s=6.1), day(2, mean_s=25), day(3, mean_s=6), day(4, mean_s=2)]
    _, left_out = typical_days(days)
    assert [one.words for one in left_out] == ["left out 2026-06-09: median runtime 25.0 s, usually 6.0 s"]


def test_a_day_that_fails_and_is_slow_has_both_reasons() -> None:
    _, [one] = typical_days([day(0), day(1), day(2, failures=50, mean_s=20), day(3)])
    assert one.reason == "50% succeeded, usually 100% and median runtime 20.0 s, usually 10.0 s"


def test_days_that_scatter_as_much_as_others_stay() -> None:
    # failures of 2 to 10 in 100: median 6 %, median absolute deviation 2 %, so up to 6 + 3 x 1.4826 x 2 = 14.9 % is usual
    days = [day(number, failures=failures) for number, failures in enumerate((2, 4, 6, 8, 10, 14))]
    assert typical_days(days)[1] == []


def test_a_few_failures_of_a_few_runs_condemn_no_day() -> None:
    assert typical_days([day(0), day(1), day(2), day(3, runs=6, failures=4)])[1] == []


# -- too little history --


@pytest.mark.parametrize(
    ("days", "reason"),
    [
        ([day(0), day(1)], "200 runs on 2 typical days"),
        ([day(number, 33) for number in range(3)], "99 runs on 3 typical days"),
        ([day(number, 34) for number in range(3)], None),
        ([], "0 runs on 0 typical days"),
        ([day(number, failures=60) for number in range(3)], "40% of 300 runs succeeded; less than half is nothing to expect"),
        ([day(0, failures=1), day(1, failures=30), day(2, failures=60)], "no day is typical: 40% to 99% of its runs succeeded"),
    ],
)  # fmt: skip
def test_agents_with_too_little_history_are_told_what_they_lack(days: list[Day], reason: str | None) -> None:
    assert lacking(days) == reason


# -- the document --


def of_fleet(*found: Suggestion, lacks: Sequence[Lacking] = ()) -> Suggestions:
    end = datetime(2026, 6, 11, tzinfo=UTC)
    return Suggestions(first=FIRST, end=end, days=4, found=found, lacking=lacks)


@pytest.mark.parametrize(
    "name", [HOSTILE, "1", "no", "a: b", "- x", "ü\u2028研究", "long" * 400, "#", "~", "0777", "?"]
)
def test_any_agents_name_is_read_back_as_it_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / "suggested.yaml"
    values = {"sla_s": Value(1e15, "x"), "expected_runtime_s": Value(1.25e-5, "x"), "n_full": Value(30, "x")}
    one = Suggestion(agent_id=name, runs=1, days=1, left_out=(), values=values)
    path.write_text(document(of_fleet(one, lacks=[Lacking(agent_id=name, reason="no run")])), encoding="utf-8")
    assert load_targets(path) == Targets(
        agents={name: AgentTargets(sla_s=1e15, expected_runtime_s=1.25e-5, n_full=30)}
    )  # fmt: skip


def test_nothing_to_suggest_is_a_targets_file_too(tmp_path: Path) -> None:
    path = tmp_path / "suggested.yaml"
    path.write_text(document(of_fleet()), encoding="utf-8")
    assert load_targets(path) == Targets()


def test_changes_are_values_that_differ_and_say_where_the_present_one_comes_from() -> None:
    values = {name: Value(value, "") for name, value in (("sla_s", 9), ("expected_runtime_s", 3), ("n_full", 20))}
    one = Suggestion(agent_id="a", runs=1, days=1, left_out=(), values=values)
    found = changes([one], Targets(agents={"a": AgentTargets(expected_runtime_s=5)}))
    assert [(change.name, change.present, change.suggested, change.is_default) for change in found] == [
        ("sla_s", None, 9, True), ("expected_runtime_s", 5, 3, False),
    ]  # fmt: skip


# -- the command --


def runs_of(
    agent_id: str, number: int, count: int, failures: int = 0, long: int = 0, runtime_s: float = 10
) -> list[str]:
    """Runs that end at the beginning and at the very end of a day."""
    midnight = START + timedelta(days=number)
    return [
        line(
            execution(
                f"{agent_id} {number} {place}", agent_id,
                midnight + timedelta(minutes=place) if place % 2 else midnight + timedelta(hours=23, minutes=59),
                100.0 if place < long else runtime_s, status="failure" if place < failures else "success",
            )
        )
        for place in range(count)
    ]  # fmt: skip


def make_project(folder: Path, engine: str) -> Project:
    targets = {
        "defaults": {"n_full": 30},
        "agents": {"steady": {"expected_runtime_s": 20, "team": "red"}, "old": {"retired": True}, "never": {}},
    }
    project = Project(folder, targets, engine=engine)
    lines = []
    for number in range(4):
        lines += runs_of("steady", number, 50, failures=25 if number == 2 else 1)
        lines += runs_of("three long", number, 50, long=(0, 1, 1, 1)[number])
        lines += runs_of("two long", number, 50, long=number % 2)
        lines += runs_of("old", number, 50) + runs_of(HOSTILE, number, 50)
    lines += runs_of("new", 3, 10)
    project.write_log("a.jsonl", lines)
    project.materialize(hours_from(START, 96), only=["ingest", "health_components", "state_components"])
    return project


@pytest.fixture(scope="module", params=ENGINES)
def made(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Project:
    return make_project(tmp_path_factory.mktemp("suggest"), request.param)


def suggest(project: Project, *arguments: str) -> Result:
    named = ["--warehouse", project.warehouse_url, "--targets", str(project.targets_path)]
    return CliRunner().invoke(app, ["targets", "suggest", *named, *arguments], env={"COLUMNS": "120"})


def test_what_is_printed_is_a_targets_file_with_the_values_of_typical_days(made: Project, tmp_path: Path) -> None:
    before = made.targets_path.read_bytes()
    path = tmp_path / "suggested.yaml"
    path.write_text(suggest(made).stdout, encoding="utf-8")
    loaded = load_targets(path)
    assert set(loaded.agents) == {"steady", "three long", "two long", HOSTILE}
    assert loaded.agents["steady"] == AgentTargets(
        expected_success_rate=0.929, expected_failures_per_hour=0.042, expected_runtime_s=10, deviation_allowed=0.2,
        sla_s=10.1, baseline_latency_ms=10_100,
    )  # fmt: skip
    # the 198th of 200 runs is the first long one of three, and of two it is none; 1.02^931 µs is 101.6 s
    assert (loaded.agents["three long"].sla_s, loaded.agents["two long"].sla_s) == (102, 10.1)
    assert made.targets_path.read_bytes() == before


def test_values_have_their_evidence_and_agents_without_enough_history_what_they_lack(made: Project) -> None:
    assert suggest(made, "--agent", "steady", "--agent", "new").stdout.splitlines()[4:] == [
        "agents:",
        "  steady:  # 150 runs on 3 typical days",
        "    # left out 2026-06-09: 50% succeeded, usually 98%",
        "    expected_success_rate: 0.929       # 147 of 150 succeeded; lower 95% Wilson bound for 100 runs",
        "    expected_failures_per_hour: 0.042  # one a day; no typical day had more",
        "    expected_runtime_s: 10             # median of the means of 3 days, 10 to 10 s",
        "    deviation_allowed: 0.2             # the default, above 3 times the spread of the days' means, 0%",
        "    sla_s: 10.1                        # p99 of 150 timed runs",
        "    baseline_latency_ms: 10100         # the same p99; a p99 of more than three times it is degraded",
        "# Nothing is suggested for these; 100 runs on 3 typical days are needed:",
        "#   new: 10 runs on 1 typical day",
    ]
    assert "#   never: no run" in suggest(made).stdout


def test_the_differences_are_beside_the_yaml_on_standard_error(made: Project) -> None:
    title, *rows = suggest(made, "--agent", "steady").stderr.strip().splitlines()
    assert title == f"5 targets of 1 agent would change against {made.targets_path}"
    assert [row.split() for row in rows] == [
        ["agent", "target", "present", "suggested"],
        ["steady", "expected_success_rate", "default", "0.95", "0.929"],
        ["expected_failures_per_hour", "default", "1", "0.042"],
        ["expected_runtime_s", "20", "10"],
        ["sla_s", "none", "10.1"],
        ["baseline_latency_ms", "none", "10100"],
    ]


def test_days_before_those_that_are_looked_at_do_not_count(made: Project) -> None:
    shown = suggest(made, "--days", "3", "--agent", "steady").stdout
    assert "from 2026-06-08 to 2026-06-11 00:00 UTC" in shown
    assert "#   steady: 100 runs on 2 typical days\n#     left out 2026-06-09: 50% succeeded, usually 98%" in shown


def test_an_output_that_exists_is_refused_and_stays(made: Project, tmp_path: Path) -> None:
    path = tmp_path / "suggested.yaml"
    done = suggest(made, "--output", str(path))
    assert done.exit_code == 0 and path.read_text(encoding="utf-8") == suggest(made).stdout
    assert "would change against" in done.stdout
    path.write_text("mine", encoding="utf-8")
    refused = suggest(made, "--output", str(path))
    assert refused.exit_code == 1 and path.read_text(encoding="utf-8") == "mine"
    assert f"{path} exists already, and nothing is overwritten; name another --output" in refused.stderr


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        ("stedy", "no agent stedy ran in this time; did you mean 'steady'?"),
        ("old", "old is retired; nothing is expected"),
    ],
)
def test_an_agent_that_cannot_get_targets_is_refused(made: Project, agent: str, sentence: str) -> None:
    refused = suggest(made, "--agent", agent)
    assert refused.exit_code == 1 and sentence in refused.stderr


def test_a_warehouse_without_an_hour_says_so(tmp_path: Path) -> None:
    done = suggest(Project(tmp_path, {}))
    assert done.exit_code == 1 and "materialize some hours first" in done.stderr
