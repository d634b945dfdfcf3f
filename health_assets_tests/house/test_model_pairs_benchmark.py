"""Pairs of models compared trial by trial come to the verdicts of all their trials, or to none."""

import json
from pathlib import Path
from random import Random

import numpy as np

from bench.model_pairs import outcomes_of, pairs
from health_assets_tests.support.logs_made import START, execution
from health_assets_tests.support.projects import REAL_LOGS, needs_real_logs

TASKS = [f"task {number}" for number in range(10)]


def trials(folder: Path, rates: dict[str, float], per_task: int) -> Path:
    """A file with trials of models at each task, which succeed as often as told, and one of a task of its own."""
    random = Random(3)
    made = []
    for model, rate in rates.items():
        for task in (*TASKS * per_task, f"only of {model}"):
            status = "success" if random.random() < rate else "failure"
            made.append(execution(f"{len(made)}", model, START, status=status, task_id=task))
    path = folder / "trials.jsonl"
    path.write_text("\n".join(map(json.dumps, made)), encoding="utf-8")
    return path


def test_models_that_differ_much_are_told_apart_early_and_equal_ones_never(tmp_path: Path) -> None:
    path = trials(tmp_path, {"good": 0.9, "bad": 0.3, "also bad": 0.3}, per_task=20)
    found = {pair.agents: pair for pair in pairs(outcomes_of(path), orders=10)}
    for names in (("also bad", "good"), ("bad", "good")):
        pair = found[names]
        assert (pair.tasks, pair.trials, pair.decided, pair.agrees.sum()) == (10, (200, 200), 10, 10)
        assert pair.median_trials is not None and pair.median_trials < 120
        assert pair.is_significant
    alike = found["also bad", "bad"]
    assert (alike.decided, alike.median_trials, alike.is_significant) == (0, None, False)


def test_models_without_a_common_task_are_no_pair(tmp_path: Path) -> None:
    assert not list(pairs(outcomes_of(trials(tmp_path, {"a": 1.0, "b": 0.0}, per_task=0)), orders=2))


@needs_real_logs
def test_verdicts_of_real_trials_never_contradict_all_of_them() -> None:
    found = list(pairs(outcomes_of(REAL_LOGS / "metr-executions.jsonl"), orders=10))
    assert len(found) == 21
    assert sum(pair.decided for pair in found) == sum(int(pair.agrees.sum()) for pair in found) >= 20
    assert all(pair.is_significant for pair in found if np.isfinite(pair.decided_after).all())
