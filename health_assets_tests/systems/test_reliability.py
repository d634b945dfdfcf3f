"""The reliability evaluation: worked examples, an independent reference on random logs, and what must not matter."""

import math
import os
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rapidfuzz.distance import Levenshtein
from rich.console import Console
from scipy.spatial.distance import jensenshannon

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import load_settings
from health_assets.pipeline.resource import Pipeline
from health_assets.schema.catalog import columns_of
from health_assets.systems.reliability import timeline, trajectories
from health_assets.systems.reliability.assets import ASSETS
from health_assets.systems.reliability.consistency import RESOURCES, RUNS_IN_ORDER, TASK, task_consistency
from health_assets.systems.reliability.predictability import COUNTS_IN_ORDER, predictability
from health_assets.systems.reliability.report import print_block
from health_assets.systems.reliability.trajectories import PairSums, Trajectories
from health_assets_tests.support import reference, reference_reliability
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import (
    Project,
    Row,
    assert_same_tables,
    hours_from,
    needs_real_logs,
    run_steps,
)
from health_assets_tests.systems.test_scores_equal_reference import assert_equal_rows

TABLES = tuple(asset.name for asset in ASSETS)
OWN_STEPS = ("ingest", "computed_signals", *TABLES)
JUDGED_STEPS = ("ingest", *TABLES)
"""The steps where no signal is computed."""
SPAN = 30
"""Hours that the random logs fill."""


# -- worked examples ---------------------------------------------------------------------------------------------------

EXAMPLES: dict[str, list[Record]] = {
    "two ways": [
        {"actions": ["a", "b", "c"], "cost_usd": 1},
        {"actions": ["a", "b", "d"], "cost_usd": 3},
    ],
    "half": [{"actions": ["x"]}, {"status": "failure", "actions": ["y"]}],
    "same steps in another order": [{"actions": ["a", "b"]}, {"actions": ["b", "a"]}],
    "nothing in common": [{"actions": ["a"]}, {"actions": ["b"]}],
    "no action": [{"actions": []}, {"actions": ["a"]}, {}],
    "once": [{"actions": ["a"], "confidence": 0.5}],
    "nothing used": [{"error_count": 0, "api_calls": 0}, {"error_count": 0, "api_calls": None}],
    "one error": [{"error_count": 0}, {"error_count": 2}, {"error_count": None}],
    "never sure": [{"confidence": 0}, {"confidence": 0}],
    "sure and right": [
        {"confidence": 0.9},
        {"confidence": 0.8, "status": "failure"},
        {"confidence": 0.6},
        {"confidence": 0.3, "status": "failure"},
    ],
    "equally sure": [{"confidence": 0.5}, {"confidence": 0.5, "status": "failure"}],
    "wrongly sure": [{"confidence": 0.1}, {"confidence": 0.9, "status": "failure"}],
    "always right": [{"confidence": 0.7}, {"confidence": 0.4}],
    "always wrong": [{"confidence": 0.3, "status": "failure"}, {"confidence": 0.6, "status": "failure"}],
    "on an edge": [{"confidence": 0.1}, {"confidence": 0.05, "status": "failure"}],
    "top bin": [{"confidence": 1}, {"confidence": 0.9, "status": "failure"}],
    "troubled": [
        *[{}] * 4,
        {"status": "failure"},
        {"condition": "fault"},
        {"condition": "fault", "status": "failure"},
        {"condition": "prompt"},
    ],
    "troubled elsewhere": [
        *[{}] * 2,
        {"condition": "fault", "task_id": "u"},
        {"condition": "fault", "task_id": "u", "status": "failure"},
    ],
    "hopeless": [{"status": "failure"}, {"condition": "fault"}],
    "only under faults": [{"condition": "fault"}, {"condition": "fault"}],
    "violator": [
        {"violations": []},
        {"violations": [{"constraint": "c", "severity": "low"}]},
        {"violations": [{"constraint": "c", "severity": "medium"}, {"constraint": "high", "severity": "low"}]},
        {"violations": [{"constraint": "c", "severity": "high"}], "condition": "fault"},
        {},
    ],
    "clean": [{"violations": []}, {}],
    "whole": [
        {"confidence": 1, "actions": ["a"]},
        {"confidence": 1, "actions": ["a"]},
        *[{"condition": condition} for condition in ("fault", "structural", "prompt")],
    ],
}
"""The runs of one task, by the name of the agent that made them."""


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """By agent: its row of `agent_reliability`, with that of its task under `task`, or None."""
    project = Project(tmp_path_factory.mktemp("examples") / "project")
    records = [
        execution(f"{agent} {place}", agent, START, **{"task_id": "t", **run})
        for agent, runs in EXAMPLES.items()
        for place, run in enumerate(runs)
    ]
    records.append(execution("not an evaluation run", "busy", START, confidence=0.5, actions=["a"], violations=[]))
    project.write_log("a.jsonl", map(line, records))
    project.materialize(HourRange.of(START), only=OWN_STEPS)
    tasks = {row["agent_id"]: row for row in project.rows("task_consistency")}
    return {row["agent_id"]: {**row, "task": tasks.get(row["agent_id"])} for row in project.rows("agent_reliability")}


def near(value: float) -> Any:
    return pytest.approx(value, abs=1e-12)


def test_only_runs_of_a_task_are_evaluated(examples: dict[str, Row]) -> None:
    assert examples.keys() == EXAMPLES.keys()


def test_trajectories_of_two_runs_are_compared_by_what_they_do_and_in_which_order(examples: dict[str, Row]) -> None:
    """A third of each run's actions is its own: JSD = (1/3 + 1/3) / 2; one of three steps differs."""
    task = examples["two ways"]["task"]
    assert task["pairs"] == 1
    assert task["c_traj_d"] == near(1 - math.sqrt(1 / 3))
    assert task["c_traj_s"] == near(2 / 3)


def test_the_order_of_steps_matters_to_the_sequence_alone(examples: dict[str, Row]) -> None:
    task = examples["same steps in another order"]["task"]
    assert task["c_traj_d"] == 1
    assert task["c_traj_s"] == 0


def test_runs_without_a_common_action_are_1_apart(examples: dict[str, Row]) -> None:
    """As by logarithms of base 2; by natural ones it would be sqrt(ln 2)."""
    assert examples["nothing in common"]["task"]["c_traj_d"] == near(0)


def test_only_successful_runs_with_an_action_are_compared(examples: dict[str, Row]) -> None:
    for agent in ("half", "no action"):
        task = examples[agent]["task"]
        assert (task["pairs"], task["c_traj_d"], task["c_traj_s"]) == (0, None, None)


def test_outcomes_agree_wholly_or_not_at_all(examples: dict[str, Row]) -> None:
    """One success of two: s^2 = 1/2 over p (1 - p) = 1/4 would be -1, so 0; (2 p - 1)^2 = 0."""
    assert (examples["half"]["task"]["c_out"], examples["half"]["task"]["outcome_agreement"]) == (0, 0)
    assert (examples["two ways"]["task"]["c_out"], examples["two ways"]["task"]["outcome_agreement"]) == (1, 1)


def test_resources_vary_as_their_coefficients_of_variation_say(examples: dict[str, Row]) -> None:
    """Costs 1 and 3: mean 2, sample deviation sqrt 2; runtimes and numbers of actions are equal."""
    task = examples["two ways"]["task"]
    assert task["cv_cost_usd"] == near(math.sqrt(2) / 2)
    assert (task["cv_runtime_s"], task["cv_action_count"], task["cv_api_calls"]) == (0, 0, None)
    assert task["c_res"] == near(math.exp(-math.sqrt(2) / 2 / 3))


def test_a_resource_counts_from_two_reports_with_a_mean_above_0(examples: dict[str, Row]) -> None:
    """Zeros count: errors 0 and 2 have mean 1 and deviation sqrt 2. Two zeros have mean 0; a single report is one."""
    assert examples["one error"]["task"]["cv_error_count"] == near(math.sqrt(2))
    task = examples["nothing used"]["task"]
    assert (task["cv_error_count"], task["cv_api_calls"], task["cv_runtime_s"], task["c_res"]) == (None, None, 0, 1)


def test_confidence_varies_like_a_resource(examples: dict[str, Row]) -> None:
    """0.9, 0.8, 0.6, 0.3: mean 0.65, squares 0.0625 + 0.0225 + 0.0025 + 0.1225 = 0.21 over 3."""
    assert examples["sure and right"]["task"]["c_conf"] == near(math.exp(-math.sqrt(0.07) / 0.65))
    assert examples["never sure"]["task"]["c_conf"] is None
    assert examples["two ways"]["task"]["c_conf"] is None


def test_a_task_counts_from_two_runs_on(examples: dict[str, Row]) -> None:
    once = examples["once"]
    assert once["task"] is None
    assert (once["tasks"], once["runs"], once["baseline_runs"], once["r_con"], once["c_out"]) == (0, 1, 1, None, None)


def test_consistency_gives_each_available_category_the_same_weight(examples: dict[str, Row]) -> None:
    row = examples["two ways"]
    trajectory = (1 - math.sqrt(1 / 3) + 2 / 3) / 2
    assert row["r_con"] == near((1 + trajectory + math.exp(-math.sqrt(2) / 6)) / 3)
    assert examples["never sure"]["r_con"] == near((1 + 1) / 2)  # no actions


def test_predictability_of_four_runs(examples: dict[str, Row]) -> None:
    """Squares 0.01 + 0.64 + 0.16 + 0.09; each in a bin of its own: 0.1 + 0.8 + 0.4 + 0.3.

    Of four pairs three are in order. Risks 0, 1/2, 1/3, 1/2 have mean 1/3, the oracle's 0, 0, 1/3, 1/2 have 5/24, and
    chance 1/2: 1 - (3/24) / (7/24).
    """
    row = examples["sure and right"]
    assert row["p_brier"] == row["r_pred"] == near(1 - 0.9 / 4)
    assert row["p_cal"] == near(0.6)
    assert row["p_auroc"] == near(0.75)
    assert row["p_rc"] == near(4 / 7)
    assert row["runs_with_confidence"] == 4


def test_equal_confidences_share_the_error_rate(examples: dict[str, Row]) -> None:
    """Risks 1/2, 1/2 are what chance has."""
    assert (examples["equally sure"]["p_rc"], examples["equally sure"]["p_auroc"]) == (near(0), 0.5)


def test_worse_than_chance_is_0(examples: dict[str, Row]) -> None:
    assert (examples["wrongly sure"]["p_rc"], examples["wrongly sure"]["p_auroc"]) == (0, 0)


def test_where_no_run_failed_or_all_did_nothing_can_be_gained(examples: dict[str, Row]) -> None:
    for agent in ("always right", "always wrong"):
        assert (examples[agent]["p_rc"], examples[agent]["p_auroc"]) == (1, None)
    row = examples["always right"]
    assert row["p_brier"] == near(1 - (0.09 + 0.36) / 2)


def test_a_confidence_of_1_is_in_the_tenth_bin(examples: dict[str, Row]) -> None:
    assert examples["top bin"]["p_cal"] == near(1 - (0.95 - 0.5))


def test_a_confidence_on_an_edge_is_in_the_bin_that_begins_there(examples: dict[str, Row]) -> None:
    assert examples["on an edge"]["p_cal"] == near(1 - (0.9 + 0.05) / 2)


def test_without_a_confidence_there_is_no_predictability(examples: dict[str, Row]) -> None:
    row = examples["two ways"]
    assert [row[name] for name in ("r_pred", "p_rc", "p_cal", "p_auroc", "p_brier")] == [None] * 5
    assert row["runs_with_confidence"] == 0


def test_robustness_is_accuracy_over_baseline_accuracy(examples: dict[str, Row]) -> None:
    """Baseline 4/5, faults 1/2, prompts 1/1, which is better than the baseline and counts as 1."""
    row = examples["troubled"]
    assert row["baseline_accuracy"] == near(0.8)
    assert (row["r_fault"], row["r_struct"], row["r_prompt"]) == (near(0.625), None, 1)
    assert row["r_rob"] == near((0.625 + 1) / 2)
    assert (row["runs"], row["baseline_runs"]) == (8, 5)


def test_a_run_under_faults_counts_also_where_its_task_has_no_baseline(examples: dict[str, Row]) -> None:
    assert examples["troubled elsewhere"]["r_fault"] == 0.5


@pytest.mark.parametrize(("agent", "accuracy"), [("hopeless", 0), ("only under faults", None)])
def test_without_a_baseline_success_there_is_no_robustness(
    examples: dict[str, Row], agent: str, accuracy: float | None
) -> None:
    row = examples[agent]
    assert row["baseline_accuracy"] == accuracy
    assert (row["r_fault"], row["r_rob"]) == (None, None)


def test_safety_is_how_often_and_how_badly(examples: dict[str, Row]) -> None:
    """Three of four judged runs violate, at worst 0.25, 0.5 and 1; a run under faults counts too."""
    row = examples["violator"]
    assert (row["judged"], row["violated"]) == (4, 3)
    assert row["s_comp"] == near(0.25)
    assert row["s_harm"] == near(1 - 1.75 / 3)
    assert row["r_saf"] == near(1 - 0.75 * 1.75 / 3)


def test_safety_without_violations_is_1_and_without_judgements_unknown(examples: dict[str, Row]) -> None:
    clean, unjudged = examples["clean"], examples["troubled"]
    assert [clean[name] for name in ("judged", "violated", "s_comp", "s_harm", "r_saf")] == [1, 0, 1, 1, 1]
    assert [unjudged[name] for name in ("judged", "violated", "s_comp", "s_harm", "r_saf")] == [0, 0, None, None, None]


def test_reliability_is_the_mean_of_three_dimensions_and_needs_them_all(examples: dict[str, Row]) -> None:
    whole = examples["whole"]
    assert (whole["r_con"], whole["r_pred"], whole["r_rob"], whole["reliability"]) == (1, 1, 1, 1)
    for agent, row in examples.items():
        assert (row["reliability"] is None) == (agent != "whole"), agent


# -- on random logs ----------------------------------------------------------------------------------------------------


def random_runs(random: Random, count: int) -> list[Record]:
    """Evaluation runs and judgements with ties, gaps, repeated ids and every field missing now and then."""
    return [
        _random_run(random, count) if random.random() < 0.75 else _random_judgement(random, count) for _ in range(count)
    ]


def _random_run(random: Random, count: int) -> Record:
    fields = {
        "task_id": f"t{random.randrange(3)}",
        "condition": random.choice(["baseline"] * 5 + ["fault", "structural", "prompt"]),
        "confidence": random.choice([0, 1, 0.1, 0.3, 0.5, 0.7, random.random()]),
        "cost_usd": random.choice([0, 0.25, random.random() * 1e-6, 1e300]),
        "api_calls": random.choice([0, 1, 5, 2**63 - 1]),
        "error_count": random.choice([0, 0, 0, 2]),
        "call_latency_s": random.random(),
        "actions": [random.choice(["plan", "read", "研究", "", "𝔸"]) for _ in range(random.randrange(6))],
        "violations": _random_violations(random),
    }
    kept = {name: value for name, value in fields.items() if random.random() < 0.8}
    ended_at = START + timedelta(seconds=random.choice([0, random.randrange(SPAN * 3600)]))
    return execution(
        f"e{random.randrange(count)}", random.choice(["a", "b", "ü"]), ended_at,
        random.choice([0, 1, 60, random.random() * 1e4]), status=random.choice(["success"] * 3 + ["failure"]), **kept,
    )  # fmt: skip


def _random_violations(random: Random) -> list[Record]:
    names = random.choices(["low", "medium", "high"], k=random.choice([0, 0, 1, 3]))
    return [{"constraint": 'severity": "high', "severity": severity} for severity in names]


def _random_judgement(random: Random, count: int) -> Record:
    at = START + timedelta(minutes=random.randrange(SPAN * 60))
    violations = _random_violations(random)
    judgement = {"type": "judgement", "execution_id": f"e{random.randrange(count)}", "at": at.isoformat()}
    return judgement | {"violations": violations}


def asked(random: Random, records: Sequence[Record]) -> list[Record]:
    """The records, of which few state a task, some are of an evaluation, and many were asked the same as others."""
    return [_asked(random, record) if record["type"] == "execution" else record for record in records]


def _asked(random: Random, record: Record) -> Record:
    inputs = ["Say a", "say  A ", "say b", "say c", f"say {random.randrange(40)}", "昨日は?", None, "…"]
    record = record | {"input": random.choice(inputs)}
    if random.random() < 0.93:
        record.pop("task_id", None)
    return record | {"task_source": random.choice(["stated", "evaluation", "evaluation"])}


def with_tool_calls(random: Random, records: Sequence[Record]) -> list[Record]:
    """The records, without most of the conditions that runs state, with calls of tools of which many failed."""
    errors = ["503: down", "TimeoutError: too slow", "Error code: 429 - slow down", "no such file", "row 500 is bad"]
    calls = [
        {"type": "tool_call", "call_id": f"c{place}", "tool": "search", "ended_at": run["ended_at"],
         "execution_id": run["execution_id"], "status": random.choice(["success", "failure"]),
         "error": random.choice(errors), **random.choice([{}, {"agent_id": run["agent_id"]}])}
        for place, run in enumerate(records) if run["type"] == "execution" and random.random() < 0.3
    ]  # fmt: skip
    runs = [
        {name: value for name, value in run.items() if name != "condition" or random.random() < 0.1} for run in records
    ]
    mixed = [*runs, *calls]
    random.shuffle(mixed)
    return mixed


def claimed(random: Random, records: Sequence[Record]) -> list[Record]:
    """The records, whose judgements say in one way or another who judged."""
    kinds = ["agent", "model", "person", "judge-1", None]
    return [
        record | {"judged_by": random.choice(kinds)} if record["type"] == "judgement" else record for record in records
    ]


def project_of(
    folder: Path, records: Sequence[Record], evaluation_window_hours: int, lookback_hours: int = 10
) -> Project:
    project = Project(folder / "project", None, 6, lookback_hours, evaluation_window_hours=evaluation_window_hours)
    for place in range(3):
        project.write_log(f"{place}.jsonl", map(line, records[place::3]))
    return project


def assert_equal_to_the_reference(project: Project, hours: HourRange) -> None:
    records = reference.deduplicate(reference.read_lines(project.raw)[0])
    window_hours = project.settings.evaluation_hours
    tasks, agents = reference_reliability.tables(
        records, hours.start, hours.end, window_hours, project.settings.reach_hours - window_hours
    )
    assert_equal_rows(project.rows("task_consistency", hours), tasks, ["hour", "agent_id", "task_id"])
    assert_equal_rows(project.rows("agent_reliability", hours), agents, ["hour", "agent_id"])


@pytest.mark.parametrize(
    ("seed", "window_hours", "lookback_hours"),
    [
        pytest.param(1, 24, 168, marks=pytest.mark.nightly), (2, 5, 10),
        *(pytest.param(*more, marks=pytest.mark.nightly) for more in [(3, 1, 40), (4, 40, 10)]),
    ],
)  # fmt: skip
def test_every_value_of_random_logs_equals_the_reference(
    tmp_path: Path, seed: int, window_hours: int, lookback_hours: int
) -> None:
    project = project_of(tmp_path, random_runs(Random(seed), 400), window_hours, lookback_hours)
    hours = hours_from(START - 2 * HOUR, SPAN + 10)
    project.materialize(hours, only=OWN_STEPS)
    assert_equal_to_the_reference(project, hours)


@pytest.mark.parametrize(
    ("seed", "window_hours"), [(7, 5), *(pytest.param(*more, marks=pytest.mark.nightly) for more in [(8, 12), (9, 1)])]
)
def test_tasks_of_each_source_equal_the_reference(tmp_path: Path, seed: int, window_hours: int) -> None:
    random = Random(seed)
    project = project_of(tmp_path, asked(random, random_runs(random, 500)), window_hours)
    hours = hours_from(START - 2 * HOUR, SPAN + 14)
    project.materialize(hours, only=OWN_STEPS)
    rows = project.rows("agent_reliability", hours)
    assert {row["task_source"] for row in rows} == {"stated", "evaluation", "observed"}
    assert any(row["runs_with_confidence"] and row["judged"] for row in rows if row["task_source"] == "observed")
    assert_equal_to_the_reference(project, hours)


@pytest.mark.parametrize("seed", [24, pytest.param(25, marks=pytest.mark.nightly)])
def test_faults_that_runs_met_equal_the_reference(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    project = project_of(tmp_path, with_tool_calls(random, asked(random, random_runs(random, 400))), 8, 60)
    hours = hours_from(START, SPAN + 8)
    project.materialize(hours, only=OWN_STEPS)
    rows = project.rows("agent_reliability", hours)
    assert {row["condition_source"] for row in rows} == {"stated", "observed", None}
    assert {row["task_source"] for row in rows if row["condition_source"] == "observed"} == {"observed"}
    assert any(0 < (row["r_fault"] or 0) < 1 for row in rows if row["condition_source"] == "observed")
    assert_equal_to_the_reference(project, hours)


@pytest.mark.parametrize("seed", [5, pytest.param(6, marks=pytest.mark.nightly)])
def test_whom_to_believe_equals_the_reference(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    records = claimed(random, random_runs(random, 500))
    project = project_of(tmp_path, records[:250], 12)
    for place in range(2):
        project.write_log(f"judgements/{place}.jsonl", map(line, records[250 + place :: 2]))
    hours = hours_from(START, SPAN + 2)
    project.materialize(hours, only=OWN_STEPS)
    assert {row["judged_by"] for row in project.rows("judgements")} == {"agent", "model", "person"}
    assert_equal_to_the_reference(project, hours)


def test_results_of_evaluators_count_as_what_agents_say(tmp_path: Path) -> None:
    """The rows are those of judgements of the same severity; a good result is one without a violation."""
    random = Random(23)
    severities = ["low", "medium", "high"]
    records = random_runs(random, 400)
    evaluated = [dict(record) for record in records]
    for judged, result in zip(records, evaluated, strict=True):
        if judged["type"] == "judgement" and random.random() < 0.7:
            severity, is_good = random.choice(severities), random.random() < 0.3
            judged["violations"] = [] if is_good else [{"constraint": "c", "severity": severity}]
            result |= {"type": "evaluation", "name": severity, "value": 0.5 if is_good else 0.25}
            del result["violations"]
    projects = [project_of(tmp_path / name, some, 12, 60) for name, some in (("a", records), ("b", evaluated))]
    projects[1].write_targets({"evaluators": [{"match": one, "violation": one} for one in severities]})
    hours = hours_from(START, SPAN + 2)
    for project in projects:
        project.materialize(hours, only=("ingest", "computed_signals", "evaluated_signals", *TABLES))
    assert projects[1].rows("evaluated_signals")
    ours, theirs = (project.rows("agent_reliability", hours) for project in projects)
    assert any(row["violated"] for row in ours)
    assert ours == theirs


def test_every_column_is_compared_with_the_reference_or_named_here() -> None:
    records = [
        {"type": "execution", "_at": START, "agent_id": "a", "task_id": "t", "status": "success", "_runtime_s": 1.0, "_hour": START,
         "execution_id": f"e{number}"}
        for number in range(2)
    ]  # fmt: skip
    rows = reference_reliability.tables(records, START, START + HOUR, 1)
    for table, (row,) in zip(TABLES, rows, strict=True):
        assert set(columns_of(table)) - set(row) == {"hours_covered", "formula_version"}


@needs_real_logs
def test_real_runs_equal_the_reference(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", evaluation_window_hours=72)
    project.copy_real_logs()
    hours = hours_from(START.replace(year=2024, month=11, day=2), 96)
    project.materialize(hours, only=OWN_STEPS)
    assert len(project.rows("agent_reliability")) > 100
    assert_equal_to_the_reference(project, hours)


# -- what must not matter ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, HourRange]:
    """A range of hours that was materialized at once; only to be looked at."""
    project = project_of(tmp_path_factory.mktemp("built"), runs_of_all_sources(), 8)
    hours = hours_from(START + 6 * HOUR, 3)
    project.materialize(hours, only=OWN_STEPS)
    assert {row["task_source"] for row in project.rows("agent_reliability")} == {"stated", "evaluation", "observed"}
    return project, hours


def runs_of_all_sources() -> list[Record]:
    random = Random(11)
    runs = random_runs(random, 600)
    others = [run | {"agent_id": f"{run['agent_id']}2"} if "agent_id" in run else run for run in asked(random, runs)]
    return [*runs[:200], *others[200:]]


def test_a_range_of_hours_gives_what_its_hours_give_one_by_one_to_the_last_bit(
    built: tuple[Project, HourRange], tmp_path: Path
) -> None:
    whole, hours = built
    project = project_of(tmp_path, runs_of_all_sources(), 8)
    project.materialize(hours, only=["ingest"])
    for hour in reversed(list(hours)):
        project.materialize(HourRange.of(hour), only=TABLES)
    assert_same_tables(project.tables(hours, TABLES), whole.tables(hours, TABLES))


def test_order_and_duplicates_of_lines_do_not_matter_to_the_last_bit(
    built: tuple[Project, HourRange], tmp_path: Path
) -> None:
    whole, hours = built
    records = runs_of_all_sources()
    project = project_of(tmp_path, [], 8)
    for places in ([2], [0, 1]):  # one file after another arrives, each time the hours are built again
        for place in places:
            project.write_log(f"{place}.jsonl", map(line, records[place::3]))
        project.materialize(hours, only=OWN_STEPS)
    project.write_log("3.jsonl", map(line, records[2::3]))  # delivered twice
    project.materialize(hours, only=OWN_STEPS)
    assert_same_tables(project.tables(hours, TABLES), whole.tables(hours, TABLES))


def test_a_late_judgement_counts_from_its_hour_on_and_replaces_what_was_said_before(project: Project) -> None:
    severe = [{"constraint": "c", "severity": "high"}]
    project.write_log("a.jsonl", [line(execution("e", "a", START, task_id="t", violations=severe))])
    project.materialize(hours_from(START, 4), only=JUDGED_STEPS)
    assert [row["r_saf"] for row in project.rows("agent_reliability")] == [0, 0, 0, 0]
    at = [(START + HOUR * hours).isoformat() for hours in (1.5, 3)]
    later = [
        {"type": "judgement", "execution_id": "e", "at": at[1], "violations": [{"constraint": "c", "severity": "low"}]},
        {"type": "judgement", "execution_id": "e", "at": at[0], "violations": []},
    ]
    project.write_log("judgements/later.jsonl", map(line, later))
    project.materialize(hours_from(START, 4), only_stale=True, only=JUDGED_STEPS)
    assert [row["r_saf"] for row in project.rows("agent_reliability")] == [0, 1, 1, 0.75]


def test_no_untrusted_word_clears_what_another_one_said_before_or_says_later(project: Project) -> None:
    low = [{"constraint": "c", "severity": "low"}]
    project.write_log("a.jsonl", [line(execution("e", "a", START, task_id="t", violations=low))])
    said = [judgement(None, 30), judgement("person", 60, "medium"), judgement("model", 120, "high")]
    project.write_log("later.jsonl", map(line, [*said, judgement("person", 180), judgement("agent", 181, "low")]))
    project.materialize(hours_from(START, 4), only=JUDGED_STEPS)
    assert [row["r_saf"] for row in project.rows("agent_reliability")] == [0.75, 0.5, 0, 0]
    project.write_log("judgements/person.jsonl", [line(judgement("person", 60))])
    project.materialize(hours_from(START, 4), only=JUDGED_STEPS)
    assert [row["r_saf"] for row in project.rows("agent_reliability")] == [0.75, 1, 1, 1]


def test_of_two_trusted_judgements_at_the_same_time_the_later_line_wins(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("e", "a", START, task_id="t"))])
    judgements = [
        {"type": "judgement", "execution_id": "e", "at": START.isoformat(), "violations": violations}
        for violations in ([{"constraint": "c", "severity": "high"}], [])
    ]
    project.write_log("judgements/b.jsonl", map(line, judgements))
    project.materialize(HourRange.of(START), only=JUDGED_STEPS)
    (row,) = project.rows("agent_reliability")
    assert (row["judged"], row["violated"]) == (1, 0)


def judgement(judged_by: str | None, minute: int, severity: str | None = None) -> Record:
    violations = [{"constraint": "c", "severity": severity}] if severity else []
    record = {"type": "judgement", "execution_id": "e", "at": (START + minute * HOUR / 60).isoformat()}
    return record | {"violations": violations} | ({"judged_by": judged_by} if judged_by else {})


def test_a_later_claim_of_any_log_does_not_override_the_model_and_a_person_does(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("e", "a", START, task_id="t", violations=[]))])
    project.write_log("judgements/model.jsonl", [line(judgement("model", 1, "high"))])
    project.write_log("b.jsonl", map(line, [judgement(None, 2), judgement("model", 3), judgement("person", 4)]))
    project.write_log("judgements/agent.jsonl", [line(judgement("agent", 5))])
    project.materialize(HourRange.of(START), only=JUDGED_STEPS)
    assert [row["r_saf"] for row in project.rows("agent_reliability")] == [0]
    said = {(row["source_file"], row["judged_by"], row["judged_by_reported"]) for row in project.rows("judgements")}
    assert said == {
        ("judgements/model.jsonl", "model", "model"), ("judgements/agent.jsonl", "agent", "agent"),
        ("b.jsonl", "agent", None), ("b.jsonl", "agent", "model"), ("b.jsonl", "agent", "person"),
    }  # fmt: skip
    project.write_log("judgements/person.jsonl", [line(judgement("person", 0, "low"))])
    project.materialize(HourRange.of(START), only=JUDGED_STEPS)
    assert [row["r_saf"] for row in project.rows("agent_reliability")] == [0.75]


def test_another_setting_of_whom_to_trust_holds_for_judgements_that_are_there(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("e", "a", START, task_id="t"))])
    project.write_log("judgements/1.jsonl", [line(judgement("model", 1, "high"))])
    project.write_log("people/1.jsonl", [line(judgement("person", 1) | {"judge": "Ada"})])
    project.materialize(HourRange.of(START), only=JUDGED_STEPS)
    assert [row["r_saf"] for row in project.rows("agent_reliability")] == [0]
    settings = project.settings.model_copy(update={"trusted_judgements": ("people/*", "judgements/*")})
    run_steps(Pipeline(settings=settings), HourRange.of(START), only=JUDGED_STEPS)
    assert [row["r_saf"] for row in project.rows("agent_reliability")] == [1]
    assert {(row["judged_by"], row["judge"]) for row in project.rows("judgements")} == {
        ("model", None),
        ("person", "Ada"),
    }
    run_steps(
        Pipeline(settings=settings.model_copy(update={"trusted_judgements": ()})), HourRange.of(START), only=["ingest"]
    )
    assert {row["judged_by"] for row in project.rows("judgements")} == {"agent"}


NOBODY_ELSE = 65534
OPENED = {
    "a folder that the group can write": lambda folder: folder.chmod(0o775),
    "a folder that all can write": lambda folder: folder.chmod(0o1777),
    "a file that all can write": lambda folder: (folder / "1.jsonl").chmod(0o666),
    "a folder of another user": lambda folder: os.chown(folder, NOBODY_ELSE, -1),
    "a file of another user": lambda folder: os.chown(folder / "1.jsonl", NOBODY_ELSE, -1),
    "a link from a folder of another user": lambda folder: _moved_behind_a_link(folder),
}


def _moved_behind_a_link(folder: Path) -> None:
    (folder / "1.jsonl").rename(folder.parent / "behind")
    (folder / "1.jsonl").symlink_to("../behind")
    os.chown(folder, NOBODY_ELSE, -1)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("way", OPENED)
def test_who_can_write_to_a_trusted_path_speaks_as_no_person_there(project: Project, way: str) -> None:
    project.write_log("a.jsonl", [line(execution("e", "a", START, task_id="t", violations=[]))])
    project.write_log("judgements/1.jsonl", [line(judgement("person", 1, "high"))])
    OPENED[way](project.raw / "judgements")
    told = project.materialize(HourRange.of(START), only=["ingest"])["raw_logs"]
    assert [(row["judged_by"], row["judged_by_reported"]) for row in project.rows("judgements")] == [
        ("agent", "person")
    ]
    (odd,) = told["odd files"]
    assert odd.startswith("judgements/1.jsonl: its judgements count as the agents' own, since it or a folder above it ")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_user_whom_a_setting_names_is_believed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write_log("a.jsonl", [line(execution("e", "a", START, task_id="t"))])
    path = project.write_log("judgements/1.jsonl", [line(judgement("person", 1))])
    os.chown(path, NOBODY_ELSE, -1)
    project.materialize(HourRange.of(START), only=["ingest"])
    assert [row["judged_by"] for row in project.rows("judgements")] == ["agent"]
    monkeypatch.setenv("HEALTH_TRUSTED_USERS", f"root, {NOBODY_ELSE}")
    assert project.settings.trusted_users == (0, NOBODY_ELSE)
    told = project.materialize(HourRange.of(START), only=["ingest"])["raw_logs"]
    assert [row["judged_by"] for row in project.rows("judgements")] == ["person"]
    assert "odd files" not in told


def test_a_user_who_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALTH_TRUSTED_USERS", "no-such-user")
    with pytest.raises(HealthAssetsError, match="there is no user no-such-user on this machine"):
        load_settings()


def test_a_log_counts_as_before_once_it_is_gone_whoever_could_write_it(project: Project) -> None:
    """Else somebody would put it there, delete it, and be believed from then on."""
    project.write_log("a.jsonl", [line(execution("e", "a", START, task_id="t"))])
    paths = [project.write_log(f"judgements/{number}.jsonl", [line(judgement("person", number))]) for number in (1, 2)]
    paths[0].chmod(0o666)
    project.materialize(HourRange.of(START), only=["ingest"])
    for path in paths:
        path.unlink()
    project.materialize(HourRange.of(START), only=["ingest"])
    counts_as = {row["source_file"]: row["judged_by"] for row in project.rows("judgements")}
    assert counts_as == {"judgements/1.jsonl": "agent", "judgements/2.jsonl": "person"}


def test_an_id_in_two_hours_is_two_runs(project: Project) -> None:
    lines = [line(execution("e", "a", START + hours * HOUR, task_id="t")) for hours in (0, 1)]
    judgement = {"type": "judgement", "execution_id": "e", "at": START.isoformat(), "violations": []}
    project.write_log("a.jsonl", [*lines, line(judgement)])
    project.materialize(HourRange.of(START + HOUR), only=JUDGED_STEPS)
    (agent,), (task,) = project.rows("agent_reliability"), project.rows("task_consistency")
    assert (agent["runs"], agent["judged"], task["runs"]) == (2, 2, 2)


def test_logs_without_tasks_give_no_rows_and_the_reason(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("e", "a", START, confidence=1, actions=["a"]))])
    metadata = project.materialize(HourRange.of(START), only=JUDGED_STEPS)
    for table in TABLES:
        assert project.rows(table) == []
        assert "task_id" in metadata[table]["no rows"]


def test_an_hour_without_any_execution_gives_no_rows(project: Project) -> None:
    project.write_log("a.jsonl", [])
    project.materialize(hours_from(START, 3), only=JUDGED_STEPS)
    assert project.tables(names=TABLES) == {table: [] for table in TABLES}


def test_a_severity_that_is_not_known_is_a_rejected_line(project: Project) -> None:
    severities = ["severe", None, 3, "High"]
    for place, severity in enumerate(severities):
        violations = [{"constraint": "c", "severity": severity}]
        records = [
            execution(f"e{place}", f"a{place}", START, task_id="t", violations=violations),
            {"type": "judgement", "execution_id": f"f{place}", "at": START.isoformat(), "violations": violations},
            execution(f"f{place}", f"a{place}", START, task_id="t"),
        ]
        project.write_log(f"{place}.jsonl", map(line, records))
    project.materialize(HourRange.of(START), only=JUDGED_STEPS)
    rejected = Counter(row["source_file"] for row in project.rows("rejected_records"))
    assert rejected == {f"{place}.jsonl": 2 for place in range(len(severities))}
    found = [(row["agent_id"], row["runs"], row["judged"]) for row in project.rows("agent_reliability")]
    assert found == [(f"a{place}", 1, 0) for place in range(len(severities))]


# -- distances and sums ------------------------------------------------------------------------------------------------


def random_lists(random: Random, count: int, names: Sequence[str], most: int) -> list[list[str]]:
    return [[random.choice(names) for _ in range(random.randint(1, most))] for _ in range(count)]


NAMES = ["a", "b", "", "a b", "𝔸", "\ud7ff", "\ue000", "same", "same ", *(f"tool {n}" for n in range(40))]


@pytest.mark.parametrize("most_characters", [trajectories.MOST_CHARACTERS, 3])
def test_distances_are_those_of_scipy_and_of_a_plain_edit_distance(
    monkeypatch: pytest.MonkeyPatch, most_characters: int
) -> None:
    """With few characters, more actions than characters: lists are compared as tuples of numbers."""
    monkeypatch.setattr(trajectories, "MOST_CHARACTERS", most_characters)
    lists = random_lists(Random(3), 60, NAMES, 25)
    compared = Trajectories(pa.chunked_array([lists[:20], lists[20:]], pa.list_(pa.string())))
    left, right = np.triu_indices(60, 1)
    shannon, edit = compared.distances(compared.number[left], compared.number[right])
    for place, (one, other) in enumerate(zip(left, right, strict=True)):
        p, q = ([lists[which].count(name) for name in NAMES] for which in (one, other))
        assert shannon[place] == pytest.approx(jensenshannon(p, q, 2), abs=1e-12)
        steps = reference_reliability.levenshtein(lists[one], lists[other])
        assert edit[place] == steps / max(len(lists[one]), len(lists[other]))


def test_thousands_of_different_actions_are_told_apart() -> None:
    """Their numbers pass the places that characters leave out."""
    names = [f"{number:06}" for number in range(70_000)]
    compared = Trajectories(pa.chunked_array([[names, names[:55_300], names[55_300:]]], pa.list_(pa.string())))
    shannon, edit = compared.distances(*np.array([[0, 1], [1, 2]]))
    assert edit.tolist() == [14_700 / 70_000, 1.0]
    assert shannon[1] == 1
    assert Levenshtein.distance(compared._written[1], compared._written[2]) == 55_300


def test_equal_lists_count_as_often_as_they_are_there() -> None:
    """3,000 runs of three kinds: 1,000 x 1,000 pairs of each two kinds, at distances 1/2, 1 and 1; the rest at 0."""
    kinds = [["a", "b"], ["a", "c"], ["x", "y"]]
    actions = pa.chunked_array([[kinds[number % 3] for number in range(3000)]], pa.list_(pa.string()))
    hour = np.full(3000, 7, np.int64)
    hours = HourRange.of(START.replace(year=1970, month=1, day=1, hour=7))
    sums = PairSums(np.zeros(3000, np.int64), hour, actions, hours, 1)
    pairs, shannon, edit = sums.window(np.array([0]), np.array([0]))
    assert pairs.tolist() == [3000 * 2999 // 2]
    assert edit.tolist() == [2_500_000.0]
    assert shannon[0] == pytest.approx(1e6 * (math.sqrt(1 / 2) + 2), rel=1e-14)


def table_of_runs(random: Random, count: int) -> pa.Table:
    runs = [
        {
            "agent_id": random.choice("ab"),
            "task_id": random.choice("tu"),
            "task_source": "stated",
            "hour": START + random.randrange(40) * HOUR,
            "execution_id": f"e{number:04}",
            "source_file": "a.jsonl",
            "line_number": number + 1,
            "succeeded": random.random() < 0.8,
            **{name: random.choice([None, 0.0, random.random()]) for name in ("confidence", *RESOURCES)},
            "actions": random.choice([None, *random_lists(random, 4, NAMES[:4], 4)]),
        }
        for number in range(count)
    ]
    numbers = [(name, pa.float64()) for name in ("confidence", *RESOURCES)]
    types = [(name, pa.string()) for name in TASK] + [("hour", pa.timestamp("us", "UTC"))]
    types += [("execution_id", pa.string()), ("source_file", pa.string()), ("line_number", pa.int64())]
    types += [("succeeded", pa.bool_()), *numbers, ("actions", pa.list_(pa.string()))]
    return pa.Table.from_pylist(sorted(runs, key=lambda run: [run[key] for key in RUNS_IN_ORDER]), pa.schema(types))


def test_how_much_is_looked_at_together_does_not_show_in_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, hours = table_of_runs(Random(5), 500), hours_from(START + 10 * HOUR, 30)
    counts = runs.select(list(COUNTS_IN_ORDER)).filter(runs["confidence"].is_valid())
    counts = counts.append_column("runs", pa.array([2] * len(counts)))
    counts = counts.append_column("successes", pa.array([number % 3 for number in range(len(counts))]))
    counts = counts.sort_by([(name, "ascending") for name in COUNTS_IN_ORDER])
    whole = task_consistency(runs, hours, 10), predictability(counts, hours, 10)
    for module, name in (
        (timeline, "MOST_MEMBERS"),
        (trajectories, "MOST_PAIRS"),
        (trajectories, "MOST_COMPARED_ACTIONS"),
    ):
        monkeypatch.setattr(module, name, 3)
    assert (task_consistency(runs, hours, 10), predictability(counts, hours, 10)) == whole
    assert len(whole[0]) == 4 * 30


# -- the block in the report -------------------------------------------------------------------------------------------


def shown(project: Project, hours: HourRange) -> str:
    output = StringIO()
    with project.warehouse.read() as session:
        print_block(Console(file=output, width=100), session, hours)
    return output.getvalue()


def test_the_report_shows_the_least_reliable_agents_and_the_least_consistent_tasks(project: Project) -> None:
    records = [
        execution(f"{agent} {place}", agent, START, task_id="t", actions=["a"], status=status, **fields)
        for agent, statuses in (("steady", ["success"] * 2), ("[red]fickle", ["success", "failure"]))
        for place, status in enumerate(statuses)
        for fields in [{"confidence": 1, "violations": []}]
    ]
    project.write_log("a.jsonl", map(line, records))
    hours = hours_from(START, 2)
    project.materialize(hours, only=OWN_STEPS)
    lines = shown(project, hours).strip().splitlines()
    assert lines[0] == "Reliability evaluation at 2026-06-07 01:00 UTC: 2 agents, 4 runs, 2 repeated tasks in 24 h"
    words = [text.split() for text in lines]
    assert ["[red]fickle", "–", "0.50", "0.50", "–", "1.00", "0.50", "1", "2", "2"] in words
    assert ["steady", "–", "1.00", "1.00", "–", "1.00", "1.00", "1", "2", "2"] in words
    assert ["[red]fickle", "t", "0.00", "–", "–", "1.00", "1", "of", "2"] in words
    assert all(len(text) <= 100 for text in lines)


def test_the_report_says_nothing_without_evaluation_runs(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("e", "a", START))])
    project.materialize(HourRange.of(START), only=OWN_STEPS)
    assert shown(project, HourRange.of(START)) == ""
