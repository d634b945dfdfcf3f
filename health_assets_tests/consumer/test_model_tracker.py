"""The model tracker: the surface of source 4, threads and processes, and the raw log that it appends to."""

import json
import math
import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from health_assets import model_tracker
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import load_settings
from health_assets.model_tracker import ModelHealthSummary, ModelHealthTracker, get_health_tracker, reset_health_tracker
from health_assets_tests.support.projects import REPOSITORY

OPUS, SONNET, HAIKU = "claude-opus-4-7", "claude-sonnet-4-6", "claude-haiku-4-5-20251001"


def test_the_sources_examples_run() -> None:
    """Source 4, in the order of the page."""
    tracker = ModelHealthTracker(window_size=50, degraded_threshold=0.7)
    tracker.record_success(SONNET, latency_ms=250.0)
    tracker.record_failure(SONNET, error="rate_limit", latency_ms=0.0)
    assert tracker.health_score(SONNET) == 0.5
    assert tracker.health_score(OPUS) == 1.0
    assert (tracker.is_degraded(SONNET), tracker.is_degraded(OPUS)) == (True, False)
    assert tracker.summary(SONNET) == ModelHealthSummary(
        model=SONNET,
        health_score=0.5,
        success_count=1,
        failure_count=1,
        p50_latency_ms=250.0,
        p95_latency_ms=250.0,
        is_degraded=True,
        last_error="rate_limit",
    )
    tracker.record_failure(OPUS, error="timeout")
    texts = [f"{s.model}: score={s.health_score:.2f} p95={s.p95_latency_ms:.0f}ms" for s in tracker.all_summaries()]
    assert texts == [f"{OPUS}: score=0.00 p95=–ms", f"{SONNET}: score=0.50 p95=250ms"]
    assert tracker.best_model([OPUS, SONNET, HAIKU]) == HAIKU


def test_what_is_not_known_of_a_model_is_said_so() -> None:
    summary = ModelHealthTracker(50, 0.7).summary("unseen")
    assert math.isnan(summary.p50_latency_ms) and math.isnan(summary.p95_latency_ms)
    assert json.loads(json.dumps(summary.to_dict(), allow_nan=False)) == {
        "model": "unseen", "health_score": 1.0, "success_count": 0, "failure_count": 0, "p50_latency_ms": None,
        "p95_latency_ms": None, "is_degraded": False, "last_error": None,
    }  # fmt: skip


def test_a_latency_that_is_not_known_is_a_dash_in_every_text() -> None:
    unknown = ModelHealthTracker(50, 0.7).summary("unseen").p95_latency_ms
    assert (f"{unknown:.0f}ms", f"{unknown:,.1f}", f"{unknown}", str(unknown)) == ("–ms", "–", "–", "–")
    assert math.isnan(unknown + 1)
    assert "nan" not in repr(ModelHealthTracker(50, 0.7).summary("unseen"))


def test_an_error_of_none_is_no_error_and_an_exception_is_its_text() -> None:
    tracker = ModelHealthTracker(50, 0.7)
    tracker.record_failure("m", error=None)
    assert tracker.summary("m").last_error == ""
    tracker.record_failure("m", error=TimeoutError("too slow"), latency_ms=None)
    tracker.record_failure("m", None)
    assert tracker.summary("m").last_error == "too slow"
    assert tracker.summary("m").failure_count == 3


@pytest.mark.parametrize("name", ["m" * 1025, "ä" * 513, ""])
def test_a_name_that_the_pipeline_rejects_counts_nowhere(name: str, tmp_path: Path) -> None:
    tracker = ModelHealthTracker(50, 0.7, raw_log=tmp_path / "calls.jsonl")
    for record in (
        lambda: tracker.record_success(name),
        lambda: tracker.record_failure(name),
        lambda: tracker.record_success("m", execution_id=name),
        lambda: ModelHealthTracker(50, 0.7, raw_log=tmp_path / "calls.jsonl", agent_id=name),
    ):
        with pytest.raises(ValueError, match=r"is empty|at most 1 KiB"):
            record()
    assert tracker.all_summaries() == []
    assert not (tmp_path / "calls.jsonl").exists()
    tracker.record_success("m" * 1024)


def test_the_routers_example_of_the_docs_runs_and_leaves_a_degraded_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEALTH_TRACKER_LOG", "HEALTH_MODEL_WINDOW_CALLS", "HEALTH_MODEL_DEGRADED_THRESHOLD"):
        monkeypatch.delenv(name, raising=False)
    reset_health_tracker()
    page = (REPOSITORY / "docs/model-health.md").read_text(encoding="utf-8")
    [code] = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def ask(" in block]
    program: dict[str, object] = {}
    exec(code, program)
    try:
        assert program["answers"] == ["from sonnet"] * 6
        assert program["asked"] == ["opus", *["sonnet"] * 6]
    finally:
        reset_health_tracker()


def test_the_oldest_outcome_leaves_a_full_window() -> None:
    tracker = ModelHealthTracker(3, 0.5)
    tracker.record_failure("m", error="old")
    for latency_ms in (1.0, 2.0, 3.0):
        tracker.record_success("m", latency_ms=latency_ms)
    assert tracker.summary("m") == ModelHealthSummary(
        model="m",
        health_score=1.0,
        success_count=3,
        failure_count=0,
        p50_latency_ms=2.0,
        p95_latency_ms=3.0,
        is_degraded=False,
        last_error="",
    )


def test_a_failure_at_once_does_not_make_a_model_look_fast() -> None:
    tracker = ModelHealthTracker(50, 0.7)
    tracker.record_success("m", latency_ms=100.0)
    for _ in range(3):
        tracker.record_failure("m", error="refused")
    tracker.record_failure("m", error="timeout", latency_ms=30_000.0)
    assert (tracker.summary("m").p50_latency_ms, tracker.summary("m").p95_latency_ms) == (100.0, 30_000.0)


def test_a_score_at_the_threshold_is_not_degraded() -> None:
    tracker = ModelHealthTracker(10, 0.7)
    for number in range(10):
        tracker.record_success("m") if number < 7 else tracker.record_failure("m")
    assert tracker.health_score("m") == 0.7
    assert not tracker.is_degraded("m")


def test_the_best_of_equal_models_is_the_first_named() -> None:
    tracker = ModelHealthTracker(50, 0.7)
    for model in ("b", "a"):
        tracker.record_success(model)
    assert tracker.best_model(["b", "a", "c"]) == "b"
    assert tracker.best_model(["c", "a", "b"]) == "c"
    with pytest.raises(ValueError, match="no candidate"):
        tracker.best_model([])


def test_one_model_or_all_are_forgotten() -> None:
    tracker = ModelHealthTracker(50, 0.7)
    for model in "abc":
        tracker.record_failure(model)
    tracker.reset("b")
    tracker.reset("never seen")
    assert [summary.model for summary in tracker.all_summaries()] == ["a", "c"]
    tracker.reset()
    assert tracker.all_summaries() == []
    assert tracker.health_score("a") == 1.0


@pytest.mark.parametrize("latency_ms", [-1.0, math.nan, math.inf])
def test_an_impossible_latency_is_refused_before_anything_is_recorded(latency_ms: float, tmp_path: Path) -> None:
    tracker = ModelHealthTracker(50, 0.7, raw_log=tmp_path / "a.jsonl")
    for record in (tracker.record_success, tracker.record_failure):
        with pytest.raises(ValueError, match="latency_ms"):
            record("m", latency_ms=latency_ms)
        with pytest.raises(ValueError, match="empty"):
            record("")
    assert tracker.all_summaries() == []
    assert not (tmp_path / "a.jsonl").exists()


@pytest.mark.parametrize(("window_size", "threshold"), [(0, 0.7), (-1, 0.7), (50, -0.1), (50, 1.1), (50, math.nan)])
def test_impossible_arguments_are_refused(window_size: int, threshold: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        ModelHealthTracker(window_size, threshold)


# -- settings and the tracker of the process ---------------------------------------------------------------------------


def test_defaults_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = ModelHealthTracker()
    assert (tracker._window_size, tracker._degraded_threshold) == (50, 0.7)
    monkeypatch.setenv("HEALTH_MODEL_WINDOW_CALLS", "2")
    monkeypatch.setenv("HEALTH_MODEL_DEGRADED_THRESHOLD", "0.4")
    tracker = ModelHealthTracker()
    assert (tracker._window_size, tracker._degraded_threshold) == (2, 0.4)
    assert (ModelHealthTracker(9)._window_size, ModelHealthTracker(9)._degraded_threshold) == (9, 0.4)
    monkeypatch.setenv("HEALTH_MODEL_WINDOW_CALLS", "many")
    with pytest.raises(HealthAssetsError, match="HEALTH_MODEL_WINDOW_CALLS"):
        ModelHealthTracker()


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [(None, ("7", "0.25"), (7, 0.25)), (("5", "0.5"), ("7", "0.25"), (5, 0.5)), (None, ("", ""), (50, 0.7))],
)
def test_the_variables_of_the_source_hold_where_ours_are_not_set(
    monkeypatch: pytest.MonkeyPatch, ours: tuple[str, str] | None, theirs: tuple[str, str], expected: tuple[int, float]
) -> None:
    """Source 4, "Environment Variables"."""
    for name, value in zip(("MESHFLOW_HEALTH_WINDOW", "MESHFLOW_HEALTH_DEGRADED_THRESHOLD"), theirs, strict=True):
        monkeypatch.setenv(name, value)
    for name, value in zip(("HEALTH_MODEL_WINDOW_CALLS", "HEALTH_MODEL_DEGRADED_THRESHOLD"), ours or (), strict=False):
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert (settings.model_window_calls, settings.model_degraded_threshold) == expected
    tracker = ModelHealthTracker()
    for _ in range(60):
        tracker.record_success("m")
    assert tracker.summary("m").success_count == expected[0]


def test_an_impossible_value_is_told_by_the_variable_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESHFLOW_HEALTH_WINDOW", "0")
    with pytest.raises(HealthAssetsError, match=r"^MESHFLOW_HEALTH_WINDOW: "):
        load_settings()
    monkeypatch.setenv("HEALTH_MODEL_WINDOW_CALLS", "many")
    with pytest.raises(HealthAssetsError, match=r"^HEALTH_MODEL_WINDOW_CALLS: "):
        load_settings()


def test_the_process_has_one_tracker_until_it_is_reset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reset_health_tracker()
    monkeypatch.setenv("HEALTH_TRACKER_LOG", str(tmp_path / "raw" / "calls.jsonl"))
    found: list[ModelHealthTracker] = []
    threads = [threading.Thread(target=lambda: found.append(get_health_tracker())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert len(set(map(id, found))) == 1
    found[0].record_success("m")
    assert (tmp_path / "raw" / "calls.jsonl").read_text().count("\n") == 1
    reset_health_tracker()
    assert get_health_tracker() is not found[0]
    assert get_health_tracker().all_summaries() == []
    reset_health_tracker()


def test_an_agent_that_imports_the_tracker_does_not_import_the_pipeline() -> None:
    program = "import sys, health_assets.model_tracker; print(sorted({'dagster', 'duckdb', 'ibis', 'pandas'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert found.stdout.strip() == "[]"


# -- the raw log -------------------------------------------------------------------------------------------------------


def records_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_line_says_what_is_known_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "calls.jsonl"
    before = datetime.now(UTC)
    tracker = ModelHealthTracker(50, 0.7, raw_log=path, agent_id="planner")
    tracker.record_success("m", latency_ms=12.5, execution_id="e-1")
    tracker.record_failure("m")
    first, second = records_of(path)
    at = datetime.fromisoformat(first.pop("ended_at"))
    assert before <= at <= datetime.now(UTC)
    assert at.utcoffset() == timedelta(0)
    assert len(first.pop("call_id")) == 32
    assert first == {
        "type": "model_call", "model": "m", "status": "success", "latency_ms": 12.5, "agent_id": "planner",
        "execution_id": "e-1",
    }  # fmt: skip
    assert set(second) == {"type", "call_id", "model", "ended_at", "status", "agent_id"}


def test_threads_lose_no_outcome_and_their_lines_are_whole(tmp_path: Path) -> None:
    """The order in the log is that of the window: its last lines are the window's outcomes."""
    path = tmp_path / "calls.jsonl"
    tracker = ModelHealthTracker(100, 0.7, raw_log=path)
    start = threading.Barrier(8)

    def work(thread: int) -> None:
        start.wait()
        for number in range(200):
            if (thread + number) % 3:
                tracker.record_success("m", latency_ms=thread * 1000 + number)
            else:
                tracker.record_failure("m", error=f"{thread} {number}", latency_ms=thread * 1000 + number + 0.5)
            tracker.summary("m")
            tracker.best_model(["m", "n"])

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = records_of(path)
    assert len(records) == len({record["call_id"] for record in records}) == 1600
    assert [record["ended_at"] for record in records] == sorted(record["ended_at"] for record in records)
    summary, last = tracker.summary("m"), records[-100:]
    assert summary.success_count == sum(record["status"] == "success" for record in last)
    assert summary.success_count + summary.failure_count == 100
    assert summary.p50_latency_ms == sorted(record["latency_ms"] for record in last)[49]
    assert summary.last_error == [record["error"] for record in last if "error" in record][-1]


APPEND = """
import sys
from health_assets.model_tracker import ModelHealthTracker
path, name = sys.argv[1:]
tracker = ModelHealthTracker(50, 0.7, raw_log=path, agent_id=name)
for _ in range(60):
    tracker.record_failure("m", error=name * 3000)
"""


def test_lines_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    commands = [[sys.executable, "-c", APPEND, str(path), name] for name in "abc"]
    processes = [subprocess.Popen(command, cwd=REPOSITORY) for command in commands]
    assert [process.wait() for process in processes] == [0, 0, 0]
    records = records_of(path)
    assert sorted(record["agent_id"] for record in records) == ["a"] * 60 + ["b"] * 60 + ["c"] * 60
    assert all(record["error"] == record["agent_id"] * 3000 for record in records)
    assert len({record["call_id"] for record in records}) == 180


def test_a_clock_that_is_set_back_does_not_change_the_order(tmp_path: Path) -> None:
    times = [
        datetime(2026, 6, 7, 12, tzinfo=UTC),
        datetime(2026, 6, 7, 11, tzinfo=UTC),
        datetime(2026, 6, 7, 13, tzinfo=UTC),
    ]
    log = model_tracker._RawLog(tmp_path / "a.jsonl", None, iter(times).__next__)
    for error in "abc":
        log.append("m", model_tracker._Outcome(False, None, error), None)
    assert [(record["error"], record["ended_at"][11:13]) for record in records_of(tmp_path / "a.jsonl")] == [
        ("a", "12"), ("b", "12"), ("c", "13"),
    ]  # fmt: skip


def test_a_log_that_the_pipeline_would_not_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.jsonl"):
        ModelHealthTracker(50, 0.7, raw_log=tmp_path / "calls.log")


def test_a_log_that_cannot_be_written_is_said_and_the_outcome_counts(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").mkdir()
    tracker = ModelHealthTracker(50, 0.7, raw_log=tmp_path / "calls.jsonl")
    with pytest.raises(HealthAssetsError, match="cannot append"):
        tracker.record_failure("m", error="x")
    assert tracker.summary("m").failure_count == 1


def test_a_line_that_is_cut_off_spoils_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "calls.jsonl"
    tracker = ModelHealthTracker(50, 0.7, raw_log=path)
    write = os.write
    with monkeypatch.context() as full_disk:
        full_disk.setattr(os, "write", lambda descriptor, text: write(descriptor, text[:20]))
        with pytest.raises(HealthAssetsError, match="disk is full"):
            tracker.record_success("m")
    tracker.record_success("m")
    tracker.record_success("m")
    cut, *whole = path.read_text().splitlines()
    assert len(cut) == 20
    assert [json.loads(line)["status"] for line in whole] == ["success", "success"]


def test_a_rotated_log_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    tracker = ModelHealthTracker(50, 0.7, raw_log=path)
    tracker.record_success("m")
    path.rename(tmp_path / "calls-1.jsonl")
    tracker.record_success("m")
    assert len(records_of(path)) == len(records_of(tmp_path / "calls-1.jsonl")) == 1
