"""Thresholds of every system, asked at, just under and just over: decimal numbers decide, never the last bit of a double."""

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.model_tracker import ModelHealthTracker
from health_assets.scoring.decimal_limits import whole_us
from health_assets.scoring.health_components import COMPONENTS, SUMS, with_long_running
from health_assets.scoring.latency_buckets import bucket_of
from health_assets.scoring.target_columns import resolve_sla
from health_assets.systems.agent_health_model.agent_health import agent_health
from health_assets.systems.agent_health_state.agent_health_state import _status, _with_trend
from health_assets.systems.error_budget.error_budget import error_budget, is_spent
from health_assets.systems.explanations.evidence import _slow
from health_assets.systems.model_health.model_health import model_health
from health_assets.systems.reliability.predictability import predictability
from health_assets.systems.session_scores.names import CALL_COUNTS
from health_assets.systems.session_scores.session_scores import (
    CONSISTENCY_BANDS,
    RELIABILITY_BANDS,
    _band,
    _scores,
    _sums,
)
from health_assets.systems.session_scores.signal_risks import SIGNALS, with_risks, with_weighted_risks
from health_assets_tests.support.logs_made import START

SPAN = HourRange.of(START)
Row = dict[str, Any]


def rows_of(table: ir.Table) -> list[Row]:
    return ibis.duckdb.connect().to_pyarrow(table).to_pylist()


def with_hour(rows: Sequence[Row]) -> ir.Table:
    """A table of rows of one hour."""
    hour = pa.array([START] * len(rows), pa.timestamp("us", "UTC"))
    return ibis.memtable(pa.Table.from_pylist(list(rows)).append_column("hour", hour))


# -- the score of 100 points -------------------------------------------------------------------------------------------

EXACTLY_85 = {
    "executions": 25,
    "successes": 19,
    "failures": 6,
    "runtime_us_sum": 25 * 103_000_000,
    "trigger_failures": 4,
}
"""34.4 + 17 + 20 + 13.6; doubles add up to a hair less."""
EXACTLY_65 = EXACTLY_85 | {"runtime_us_sum": 25 * 111_000_000, "sla_breaches": 5}
"""34.4 + 9 + 20 + 1.6; doubles add up to a hair less."""


def scored(sums: Row, **targets: Any) -> Row:
    component = dict.fromkeys(SUMS, 0) | {"agent_id": "a"} | sums
    wanted = Targets.model_validate({"defaults": {"expected_runtime_s": 100.0} | targets})
    [row] = rows_of(agent_health(with_hour([component]), wanted, SPAN, 24, 168))
    return row


@pytest.mark.parametrize(
    ("sums", "score", "states"),
    [(EXACTLY_85, 85.0, ("healthy", "degraded")), (EXACTLY_65, 65.0, ("degraded", "unhealthy"))],
)
def test_a_score_of_exactly_a_limit_is_stored_as_that_and_reaches_it(
    sums: Row, score: float, states: tuple[str, str]
) -> None:
    above, below = states
    row = scored(sums)
    assert (row["health_score"], row["state"]) == (score, above)
    shorter, longer = (scored(sums | {"runtime_us_sum": sums["runtime_us_sum"] + more_us}) for more_us in (-1, 1))
    assert shorter["health_score"] > score > longer["health_score"], "a microsecond more or less shows"
    assert (shorter["state"], longer["state"]) == (above, below)


def test_an_agent_s_own_limit_is_reached_exactly_too() -> None:
    assert scored(EXACTLY_65, degraded_at=65.0, healthy_at=65.0)["state"] == "healthy"
    assert scored(EXACTLY_85, healthy_at=85.000001)["state"] == "degraded"


@pytest.mark.parametrize(("more_us", "is_on_time"), [(-1, True), (0, True), (1, False)])
def test_a_mean_of_exactly_the_expected_runtime_loses_nothing(more_us: int, is_on_time: bool) -> None:
    """49 runs of 0.29 s in the mean: 14.21 / 49 is more than 0.29 in doubles, or less."""
    for n in (3, 7, 49, 1_001):
        sums = {"executions": n, "successes": n, "runtime_us_sum": n * 290_000 + more_us}
        assert (scored(sums, expected_runtime_s=0.29)["performance_score"] == 1.0) is is_on_time


# -- runs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected_s", "factor", "limit_us"),
    [(0.59, 5.0, 2_950_000), (0.1, 3.0, 300_000), (0.29, 100.0, 29_000_000), (1.1, 1.1, 1_210_000)],
)
def test_a_run_is_long_from_a_microsecond_over_the_limit(expected_s: float, factor: float, limit_us: int) -> None:
    targets = Targets.model_validate({"defaults": {"expected_runtime_s": expected_s, "long_running_factor": factor}})
    runs = with_hour([{"agent_id": "a", "runtime_s": (limit_us + more) / 1e6} for more in (-1, 0, 1)])
    found = rows_of(with_long_running(runs, targets).order_by("runtime_s"))
    assert [row["is_long_running"] for row in found] == [False, False, True]


def test_no_run_is_long_without_a_runtime_or_an_expectation_or_below_an_endless_limit() -> None:
    runs = with_hour([{"agent_id": "a", "runtime_s": 1e9}, {"agent_id": "b", "runtime_s": None}])
    for own in ({}, {"expected_runtime_s": 1e300}):
        targets = Targets.model_validate({"defaults": own, "agents": {"b": {"expected_runtime_s": 0.1}}})
        assert [row["is_long_running"] for row in rows_of(with_long_running(runs, targets))] == [False, False]


@pytest.mark.parametrize("limit_s", [0.3, 2.95, 0.57, 1234.567])
def test_an_sla_is_breached_from_a_microsecond_over_its_limit(limit_s: float) -> None:
    limit_us = round(limit_s * 1e6)
    runs = with_hour(
        [
            {"agent_id": "a", "runtime_s": (limit_us + more) / 1e6, "sla_s": own, "sla_breached_reported": flag}
            for own in (limit_s, None)
            for flag in (None, True)
            for more in (-1, 0, 1)
        ]
    )
    targets = Targets.model_validate({"defaults": {"sla_s": limit_s}})
    found = [row["sla_breached"] for row in rows_of(resolve_sla(runs, targets))]
    assert found == [False, False, True, True, True, True] * 2


def test_slow_runs_are_evidence_only_where_the_mean_is_over_the_expected_runtime() -> None:
    """0.1, 0.2 and 0.3 s are 0.2 s in the mean; doubles add up to a hair more."""

    def slow(*runtimes_us: int) -> list[float]:
        runs = [
            {"agent_id": "a", "execution_id": str(us), "runtime_s": us / 1e6, "target_expected_runtime_s": 0.2}
            for us in runtimes_us
        ]
        return sorted(row["runtime_s"] for row in rows_of(_slow(with_hour(runs))))

    assert slow(100_000, 200_000, 300_000) == slow(99_999, 200_000, 300_000) == []
    assert slow(100_001, 200_000, 300_000) == [0.3]


# -- the health document -----------------------------------------------------------------------------------------------


def statuses(rows: Sequence[Row]) -> list[str]:
    known = {"p99_bucket": 0, "baseline_latency_ms": None}
    table = with_hour([known | {"place": place} | row for place, row in enumerate(rows)])
    table = table.mutate(baseline_latency_ms=table.baseline_latency_ms.cast("float64"))
    return [row["status"] for row in rows_of(_status(table).order_by("place"))]


def test_95_and_50_percent_are_reached_exactly() -> None:
    cases = [(19, 20), (949, 1000), (951, 1000), (10, 20), (499, 1000), (501, 1000), (9, 9), (10, 10)]
    found = statuses([{"successes": successes, "sample_count": count} for successes, count in cases])
    assert found == [
        "healthy", "degraded", "healthy", "degraded", "unhealthy", "degraded", "unknown", "healthy",
    ]  # fmt: skip


def test_a_tenth_more_or_less_is_no_trend_and_a_hair_more_is_one() -> None:
    cases = [(800, 700), (801, 700), (799, 700), (700, 800), (700, 801), (300, 200), (300, 199)]
    table = with_hour(
        [
            {"place": place, "successes": now, "sample_count": 1000, "successes_before": then, "samples_before": 1000}
            for place, (now, then) in enumerate(cases)
        ]
    )
    trends = [row["calibration_trend"] for row in rows_of(_with_trend(table).order_by("place"))]
    assert trends == ["stable", "improving", "stable", "stable", "declining", "stable", "improving"]


@pytest.mark.parametrize("baseline_ms", [0.1, 1.1, 10.0, 777.7, 10_000.0, 86_400_000.0])
def test_a_p99_of_exactly_three_times_the_baseline_does_not_exceed_it(baseline_ms: float) -> None:
    limit_s = 3 * baseline_ms / 1e3
    latencies = ibis.memtable({"place": [0, 1, 2, 3], "runtime_s": [limit_s * x for x in (0.5, 0.999, 1.0, 1.021)]})
    buckets = [row["b"] for row in rows_of(latencies.mutate(b=bucket_of(latencies.runtime_s)).order_by("place"))]
    known = {"successes": 20, "sample_count": 20, "baseline_latency_ms": baseline_ms}
    found = statuses([known | {"p99_bucket": bucket} for bucket in buckets])
    assert found == ["healthy", "healthy", "healthy", "degraded"]


def test_no_p99_degrades_an_agent_that_declares_no_latency() -> None:
    found = statuses([{"successes": 20, "sample_count": 20, "p99_bucket": bucket} for bucket in (0, 1, 900, 2047)])
    assert found == ["healthy"] * 4


# -- models ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("calls", "at"), [(10, 7), (50, 35), (100, 70)])
def test_a_model_at_the_threshold_is_not_degraded_in_the_table_nor_in_the_tracker(calls: int, at: int) -> None:
    for successes, is_degraded in ((at - 1, True), (at, False), (at + 1, False)):
        tracker = ModelHealthTracker(window_size=calls, degraded_threshold=0.7)
        for place in range(calls):
            if place < successes:
                tracker.record_success("m")
            else:
                tracker.record_failure("m", error="timeout")
        assert tracker.is_degraded("m") is is_degraded
        parts = with_hour(
            [
                {
                    "model": "m", "ended_at": START + timedelta(seconds=place), "source_file": "f", "line_number": place,
                    "call_id": str(place), "succeeded": place < successes, "latency_ms": 1.0, "error": "e",
                    "response_model": "m", "window_calls": calls, "status": "success",
                }
                for place in range(calls)
            ]
        )  # fmt: skip
        [row] = rows_of(model_health(parts, parts, SPAN, 168, calls, 0.7))
        assert (row["health_score"], row["is_degraded"]) == (successes / calls, is_degraded)


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_trace_is_flagged_from_above_the_threshold() -> None:
    """The confidence risk of 0.7 is 1 - 0.3; doubles say a hair more."""
    settings = Settings().model_copy(update={"weight_confidence": 1.0, "flag_threshold": 0.7})
    signals = [{**dict.fromkeys(SIGNALS, 1.0), SIGNALS[0]: 1 - risk} for risk in (0.699999, 0.7, 0.700001)]
    rows = with_weighted_risks(with_risks(with_hour(signals)), settings).order_by("step_risk")
    assert [row["is_flagged"] for row in rows_of(rows)] == [False, False, True]


def test_a_session_passes_at_its_threshold() -> None:
    settings = Settings().model_copy(update={"weight_confidence": 1.0, "pass_threshold": 0.5, "ensemble_weight": 0.3})
    confidences = {"under": 0.499999, "at": 0.5, "over": 0.500001}
    traces = [
        {
            "session_id": name, "trace_id": f"{name} {place}", "agent_id": "a", "claimant": "a", "traced_at": START,
            **dict.fromkeys(SIGNALS, 1.0), SIGNALS[0]: confidence, "status": "success", "started_at": START,
            "input_tokens": 1, "output_tokens": 1, "cost_usd": 0.5, "cost_source": "stated", **dict.fromkeys(CALL_COUNTS, 1), "error": "",
        }
        for name, confidence in confidences.items()
        for place in range(7)
    ]  # fmt: skip
    sums = _sums(with_weighted_risks(with_risks(with_hour(traces)), settings))
    found = rows_of(_scores(sums, settings))
    passed = {row["session_id"]: (row["reliability_passed"], row["consistency_passed"]) for row in found}
    assert passed == {"under": (False, False), "at": (True, True), "over": (True, True)}


@pytest.mark.parametrize("bands", [RELIABILITY_BANDS, CONSISTENCY_BANDS])
def test_a_band_begins_at_its_limit(bands: dict[str, float]) -> None:
    names = list(bands)
    for (name, limit), lower in zip(list(bands.items())[:-1], names[1:], strict=True):
        scores = ibis.memtable({"score": [limit - 1e-12, limit, limit + 1e-12]})
        found = rows_of(scores.mutate(band=_band(scores.score, bands)).order_by("score"))
        assert [row["band"] for row in found] == [lower, name, name]


# -- evaluations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edge", range(1, 10))
def test_a_confidence_of_a_bin_s_edge_lies_in_the_upper_bin(edge: int) -> None:
    """In one bin a sure success and a sure failure balance each other; in two they do not."""

    def p_cal(*confidences: float) -> float:
        counts = pa.table(
            {
                "agent_id": ["a", "a"], "task_source": ["stated", "stated"], "hour": pa.array([START, START], pa.timestamp("us", "UTC")),
                "confidence": list(confidences), "runs": pa.array([1, 1], pa.int64()),
                "successes": pa.array([0, 1], pa.int64()),
            }
        )  # fmt: skip
        return float(predictability(counts, SPAN, 24)["p_cal"][0].as_py())

    at = edge / 10
    under, over = float(np.nextafter(at, 0)), at + 0.05
    apart, together = 1 - (at + (1 - at)) / 2, 1 - abs(1 - 2 * at) / 2
    assert p_cal(under, at) == pytest.approx(apart, abs=1e-9)
    assert p_cal(at, over) == pytest.approx(1 - abs(1 - at - over) / 2, abs=1e-9)
    assert p_cal(at, at + 1e-12) == pytest.approx(together, abs=1e-9)


# -- error budgets -----------------------------------------------------------------------------------------------------


def budget(executions: int, failures: int, expected: float = 0.95) -> Row:
    component = dict.fromkeys(COMPONENTS, 0) | {"agent_id": "a", "executions": executions, "failures": failures}
    targets = Targets.model_validate({"defaults": {"expected_success_rate": expected}})
    rows = error_budget(with_hour([component]), targets, SPAN, 24, 168)
    [row] = rows_of(rows.mutate(is_spent=is_spent(rows)))
    return row


def test_a_budget_is_spent_from_exactly_the_allowed_failures_on() -> None:
    found = [budget(1_000, failures) for failures in (49, 50, 51)]
    assert [(row["budget_spent"], row["is_spent"]) for row in found] == [(0.98, False), (1.0, True), (1.02, True)]
    assert budget(1_000_000, 100, 0.9999)["budget_spent"] == 1.0


@pytest.mark.parametrize(("executions", "failures"), [(28, 21), (44, 33), (56, 42)])
def test_a_burn_rate_of_exactly_15_is_15(executions: int, failures: int) -> None:
    """21 / 1.4 is more than 15 in doubles, or less."""
    assert budget(executions, failures)["burn_rate_1h"] == 15.0
    assert budget(executions, failures - 1)["burn_rate_1h"] < 15.0 < budget(executions, failures + 1)["burn_rate_1h"]


@pytest.mark.parametrize(
    ("seconds", "us"),
    [(1.5, 1.5e6), (math.inf, 9e18), (-math.inf, -9e18), (math.nan, 9e18), (1e300, 9e18), (-1e300, -9e18)],
)
def test_any_number_that_a_line_states_can_be_compared(seconds: float, us: float) -> None:
    assert ibis.duckdb.connect().execute(whole_us(ibis.literal(seconds, "float64"))) == us
