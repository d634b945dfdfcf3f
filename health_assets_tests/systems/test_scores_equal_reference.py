"""Every number of the tables against the plain-Python reference, on random logs, on edge values and on real logs."""

import json
import math
import shutil
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import ibis
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import AgentTargets, Targets
from health_assets.schema.catalog import columns_of
from health_assets.scoring.health_components import SUMS
from health_assets.scoring.usage import AMOUNTS
from health_assets.systems.agent_health_model.agent_health import TARGETS_USED, agent_health
from health_assets.systems.agent_health_model.system_health import system_health
from health_assets_tests.support import reference
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.logs_made import (
    START,
    cut_into_files,
    execution,
    line,
    random_lines,
    random_targets,
    trigger,
)
from health_assets_tests.support.projects import (
    DUCKDB_BY_DAY,
    Project,
    Row,
    assert_same_tables,
    hours_from,
    needs_real_logs,
    run_steps,
)

TOLERANCE = 1e-9

CLEANED = {  # table: (kind of record, the columns whose value the record holds under the same name)
    "executions": ("execution", set(reference.OPTIONAL["execution"]) | {"execution_id", "agent_id", "status"}),
    "trigger_events": ("trigger", {"trigger_id", "agent_id", "status", "reason"}),
    "model_calls": ("model_call", set(reference.OPTIONAL["model_call"]) | {"call_id", "model", "status"}),
    "tool_calls": ("tool_call", set(reference.OPTIONAL["tool_call"]) | {"call_id", "tool", "status"}),
    "signals": ("signals", {"execution_id", "agent_id", "session_id"}),
    "judgements": ("judgement", {"execution_id", "agent_id"}),
    "agent_updates": ("agent_update", {"agent_id", "kind", "detail"}),
}
FLEET = ["ingest", "health_components", "agent_health", "system_health"]
EVENT_TIMES = {
    "executions": "ended_at",
    "trigger_events": "fired_at",
    "model_calls": "ended_at",
    "tool_calls": "ended_at",
    "signals": "given_at",
    "judgements": "judged_at",
    "agent_updates": "updated_at",
}


def assert_equal_rows(found: list[Row], expected: list[Row], keys: list[str]) -> None:
    """The same rows by key, and in each the columns of the expected row, numbers within `TOLERANCE`."""
    by_key = {tuple(row[key] for key in keys): row for row in found}
    assert len(by_key) == len(found), f"two rows have the same {keys}"
    expected_keys = {tuple(row[key] for key in keys) for row in expected}
    assert by_key.keys() == expected_keys, f"rows differ: {sorted(by_key.keys() ^ expected_keys, key=repr)[:5]}"
    for row in expected:
        other = by_key[tuple(row[key] for key in keys)]
        for column, value in row.items():
            assert is_equal(other[column], value), f"{column} is {other[column]!r}, the reference has {value!r}: {row}"


def is_equal(found: Any, expected: Any) -> bool:
    if isinstance(found, float) or isinstance(expected, float):
        if found is None or expected is None:
            return False
        return math.isclose(found, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return found == expected and type(found) is type(expected)


def assert_scores_equal_the_reference(project: Project, hours: HourRange) -> None:
    records, _ = reference.read_lines(project.raw)
    agents = reference.agent_health(
        records, project.targets or {}, hours.start, hours.end, project.window_hours, project.lookback_hours
    )
    assert_equal_rows(project.rows("agent_health"), agents, ["hour", "agent_id"])
    fleet = {row["hour"]: row for row in reference.system_health(agents)}
    nobody = {"health_score": None, "agents": 0, "healthy": 0, "degraded": 0, "unhealthy": 0, "inactive": 0}
    assert_equal_rows(
        project.rows("system_health"), [fleet.get(hour, {"hour": hour, **nobody}) for hour in hours], ["hour"]
    )


def make_random_project(folder: Path, seed: int, window_hours: int, lookback_hours: int) -> Project:
    random = Random(seed)
    project = Project(folder / "project", random_targets(random), window_hours, lookback_hours)
    for name, lines in cut_into_files(random, random_lines(random, 500, 36)).items():
        project.write_log(name, lines, modified=START + random.randrange(36) * HOUR)
    return project


# -- on random logs ----------------------------------------------------------------------------------------------------

RANDOM_HOURS = hours_from(START, 40)


@pytest.fixture(scope="module")
def random_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Random logs with windows of a day and a look-back of a week, materialized; tests only look."""
    project = make_random_project(tmp_path_factory.mktemp("random"), 7, 24, 168)
    project.materialize(RANDOM_HOURS, only=FLEET)
    return project


def test_every_score_over_a_day_of_random_logs_equals_the_reference(random_project: Project) -> None:
    assert_scores_equal_the_reference(random_project, RANDOM_HOURS)


@pytest.mark.parametrize(
    ("seed", "window_hours", "lookback_hours"),
    [(2, 3, 5), *(pytest.param(*more, marks=pytest.mark.nightly) for more in [(1, 24, 168), (3, 1, 1), (4, 6, 6)])],
)
def test_every_score_of_random_logs_equals_the_reference(
    tmp_path: Path, seed: int, window_hours: int, lookback_hours: int
) -> None:
    project = make_random_project(tmp_path, seed, window_hours, lookback_hours)
    project.materialize(RANDOM_HOURS, only=FLEET)
    assert_scores_equal_the_reference(project, RANDOM_HOURS)


def test_every_cleaned_row_of_random_logs_equals_the_reference(random_project: Project) -> None:
    good, rejected = reference.read_lines(random_project.raw)
    kept = reference.deduplicate(good)
    for table, (kind, names) in CLEANED.items():
        expected = [_cleaned_row(table, record, names) for record in kept if record["type"] == kind]
        assert expected, f"the random logs have no {kind}"
        assert_equal_rows(random_project.rows(table), expected, ["source_file", "line_number"])
    assert_equal_rows(random_project.rows("rejected_records"), rejected, ["source_file", "line_number"])


def _cleaned_row(table: str, record: reference.Record, names: Iterable[str]) -> Row:
    row = {name: record.get(name) for name in names}
    row |= {"hour": record["_hour"], "source_file": record["_source_file"], "line_number": record["_line_number"]}
    row[EVENT_TIMES[table]] = record["_at"]
    if table in ("executions", "signals"):
        signals = (row.pop("signals", None) or {}) if table == "executions" else record
        row |= {f"signal_{name}": _as_float(signals.get(name)) for name in reference.SIGNALS}
    if table == "executions":
        row |= {
            "started_at": record["_started_at"],
            "runtime_s": record["_runtime_s"],
            "succeeded": record["status"] == "success",
            "outcome_source": "stated",
            "condition": record.get("condition", "baseline"),
            "task_source": record.get("task_source", "stated") if record.get("task_id") is not None else None,
            "sla_breached_reported": row.pop("sla_breached"),
            "action_count": None if record.get("actions") is None else len(record["actions"]),
        }
        row |= {name: _as_float(row[name]) for name in ("sla_s", "confidence", "cost_usd", "call_latency_s")}
        row |= {f"{name}_reported": row.pop(name) for name in AMOUNTS}  # what their calls add is another test's
    if table in ("model_calls", "tool_calls"):
        row["latency_ms"] = _as_float(row["latency_ms"])
    if table == "model_calls":
        row["cost_usd"] = _as_float(row["cost_usd"])
    row.pop("violations", None)  # JSON text; compared below
    return row


def _as_float(value: float | None) -> float | None:
    return None if value is None else float(value)


def test_of_violations_constraint_and_severity_are_kept_in_order(project: Project) -> None:
    kept = [
        None,
        [],
        [{"constraint": 'ünï \\ " {}', "severity": "high"}] * 2,
        [{"constraint": str(place), "severity": severity} for place, severity in enumerate(["low", "high", "medium"])],
    ]
    given = [value and [{"note": [1]} | one | {"more": "x" * (1 << 20)} for one in value] for value in kept]
    records = [execution(f"e{place}", "a", START + HOUR / 2, violations=value) for place, value in enumerate(given)]
    judged = {"type": "judgement", "execution_id": "e0", "at": START.isoformat(), "violations": given[-1]}
    project.write_log("a.jsonl", map(line, [*records, judged]))
    project.ingest(HourRange.of(START))
    found = dict(project.query("SELECT execution_id, violations FROM executions"))
    assert [None if value is None else json.loads(value) for _, value in sorted(found.items())] == kept
    assert [json.loads(row["violations"]) for row in project.rows("judgements")] == kept[-1:]


def test_every_component_of_random_logs_equals_the_reference(random_project: Project) -> None:
    records = reference.deduplicate(reference.read_lines(random_project.raw)[0])
    executions = [record for record in records if record["type"] == "execution"]
    triggers = [record for record in records if record["type"] == "trigger"]
    expected = reference.components(executions, triggers, random_project.targets)
    seen = {(record["_hour"], record["agent_id"]) for record in records if record.get("agent_id") is not None}
    nothing = dict.fromkeys(
        ["executions", "successes", "failures", "long_running", "sla_checked", "sla_breaches", "trigger_failures"], 0
    )
    for key in seen:  # agents that only other events show are known, with nothing to add up
        expected.setdefault(key, {**nothing, "runtime_s_sum": 0.0})
    rows = [{"hour": hour, "agent_id": agent_id, **row} for (hour, agent_id), row in expected.items()]
    assert_equal_rows(random_project.rows("health_components"), rows, ["hour", "agent_id"])


def test_every_column_of_the_score_tables_is_compared_with_the_reference_or_named_here() -> None:
    agents = reference.agent_health([], {"agents": {"a": {}}}, START, START + HOUR)
    compared_otherwise = {"hours_covered", "formula_version", "successes", "failures", *TARGETS_USED}
    assert set(columns_of("agent_health")) - set(agents[0]) <= compared_otherwise
    assert set(agents[0]) <= set(columns_of("agent_health"))
    fleet = reference.system_health(agents)
    assert set(columns_of("system_health")) - set(fleet[0]) == {
        "as_of", "is_final", "window_start", "window_end", "hours_covered", "formula_version"
    }  # fmt: skip


SHORT = [*FLEET, "agent_health_short"]


@pytest.mark.parametrize("engine", DUCKDB_BY_DAY)
def test_every_score_over_a_short_window_of_random_logs_equals_the_reference(tmp_path: Path, engine: str) -> None:
    project = replace(make_random_project(tmp_path, 10, 24, 168), folder=tmp_path / engine, engine=engine)
    shutil.copytree(tmp_path / "project" / "raw", project.raw, dirs_exist_ok=True)
    hours = hours_from(START, 40)
    project.materialize(hours, only=SHORT)
    records, _ = reference.read_lines(project.raw)
    expected = [
        {**row, "window_hours": length}
        for length in (1, 6)
        for row in reference.agent_health(records, project.targets or {}, hours.start, hours.end, length)
        if row["n"]
    ]
    rows = project.rows("agent_health_short")
    assert {row["state"] for row in rows} == {"healthy", "degraded", "unhealthy"}
    assert_equal_rows(rows, expected, ["hour", "agent_id", "window_hours"])
    whole = {"hour", "window_hours", "agent_id", *columns_of("agent_health")}
    assert set(columns_of("agent_health_short")) == whole
    for hour in list(hours)[::20]:  # one hour alone is made by another expression than a range
        project.materialize(HourRange.of(hour), only=["agent_health_short"])
    assert_same_tables({"agent_health_short": project.rows("agent_health_short")}, {"agent_health_short": rows})


def test_short_windows_are_those_of_the_setting_that_the_look_back_holds(tmp_path: Path) -> None:
    project = make_random_project(tmp_path, 10, 4, 5)
    lengths = {}
    for text, steps in (("2,4, 9", SHORT), ("off", SHORT[-1:])):
        settings = project.settings.model_validate({**project.settings.model_dump(), "short_window_hours": text})
        run_steps(replace(project.pipeline, settings=settings), hours_from(START, 12), only=steps)
        lengths[text] = {row["window_hours"] for row in project.rows("agent_health_short")}
    assert lengths == {"2,4, 9": {2, 4}, "off": set()}


def test_every_row_records_the_targets_that_it_used(random_project: Project) -> None:
    for row in random_project.rows("agent_health"):
        used = reference.targets_for(row["agent_id"], random_project.targets)
        assert {name: row[name] for name in TARGETS_USED} == {name: used[name] for name in TARGETS_USED}
        assert row["successes"] + row["failures"] == row["n"]


# -- on edge values ----------------------------------------------------------------------------------------------------


def window_rows(counts: list[Row], targets: dict[str, Row], window_hours: int = 24) -> list[Row]:
    """Rows of `agent_health` for agents whose single hour has these sums."""
    components = [
        {"hour": START, "agent_id": name, **dict.fromkeys(SUMS, 0), **row}
        for name, row in zip(targets, counts, strict=True)
    ]
    types = {"hour": "timestamp('UTC')", "agent_id": "string", **dict.fromkeys(SUMS, "int64")}
    table = ibis.memtable({name: [row[name] for row in components] for name in types}, schema=types)
    parsed = Targets(agents={name: AgentTargets.model_validate(own) for name, own in targets.items()})
    rows = agent_health(table, parsed, HourRange.of(START), window_hours, 168)
    return ibis.duckdb.connect().to_pyarrow(rows.order_by("agent_id")).to_pylist()


def expected_row(counts: Row, own: Row, window_hours: int = 24) -> Row:
    """The reference's scores for a window with these sums; its executions are made so that they have them."""
    target = reference.targets_for("a", {"agents": {"a": own}})
    n = counts["executions"]
    executions = [
        {
            "status": "success" if place < counts["successes"] else "failure",
            "_runtime_s": counts["runtime_us_sum"] / 1e6 / n,
            **({"sla_breached": place < counts["sla_breaches"]} if place < counts["sla_checked"] else {}),
        }
        for place in range(n)
    ]
    fired = counts["triggers"] - counts["trigger_failures"]
    triggers = [{"status": "failed"}] * counts["trigger_failures"] + [{"status": "fired"}] * fired
    row = reference.scores(executions, triggers, {**target, "expected_runtime_s": None}, window_hours)
    long_running = counts["long_running"]  # the sums say how many; the formula only needs the number
    if target["expected_runtime_s"] is not None and n:
        row["expected_runtime_s"] = target["expected_runtime_s"]
        row["points_at_stake"] += 40
        row["deviation"] = (row["ar_s"] - target["expected_runtime_s"]) / target["expected_runtime_s"]
        if row["ar_s"] > target["expected_runtime_s"]:
            row["performance_score"] = 1 - min(1, row["deviation"] / target["deviation_allowed"])
    row["long_running"] = long_running
    if n and long_running and target["expected_runtime_s"] is None:
        row["points_at_stake"] += 20  # counted before the target was taken away
    if n:
        penalty = math.log2(long_running + 1) / math.log2(target["stability_threshold"] + 1)
        row["stability_score"] = 1 - min(1, penalty)
        row["health_score"] = 40 * row["reliability_score"] + 20 * (
            row["performance_score"] + row["stability_score"] + row["operational_score"]
        )
    del row["state"], row["expected_success_rate"], row["expected_failures_per_hour"], row["expected_runtime_s"]
    return row


@st.composite
def sums_and_targets(draw: st.DrawFn) -> tuple[Row, Row]:
    n = draw(st.integers(0, 60))
    few = st.integers(0, n)
    successes = draw(few)
    sla_checked, triggers = draw(few), draw(st.integers(0, 20))
    counts = {
        "executions": n,
        "successes": successes,
        "failures": n - successes,
        "runtime_us_sum": draw(st.sampled_from([0, 1, 10**6, 10**15]) | st.integers(0, 10**10)) if n else 0,
        "long_running": draw(few),
        "sla_checked": sla_checked,
        "sla_breaches": draw(st.integers(0, sla_checked)),
        "triggers": triggers,
        "trigger_failures": draw(st.integers(0, triggers)),
    }
    positive = st.floats(1e-3, 1e6, allow_nan=False)
    targets = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "expected_success_rate": st.sampled_from([0, 1]) | st.floats(0, 1),
                "expected_failures_per_hour": st.sampled_from([0, 1]) | st.floats(0, 1e6),
                "expected_runtime_s": st.none() | positive,
                "deviation_allowed": positive,
                "n_full": st.integers(1, 10**6),
                "stability_threshold": positive,
                "sla_breach_threshold": positive,
                "trigger_failure_threshold": positive,
            },
        )
    )
    return counts, targets


@tried_with(5, 60)
@given(st.lists(sums_and_targets(), min_size=1, max_size=40), st.sampled_from([1, 7, 24, 100]))
def test_the_formulas_equal_the_reference_for_any_sums_and_targets(
    cases: list[tuple[Row, Row]], window_hours: int
) -> None:
    targets = {f"{place:03}": own for place, (_, own) in enumerate(cases)}
    found = window_rows([counts for counts, _ in cases], targets, window_hours)
    for row, (counts, own) in zip(found, cases, strict=True):
        for column, value in expected_row(counts, own, window_hours).items():
            assert is_equal(row[column], value), f"{column} is {row[column]!r}, not {value!r}, of {counts} with {own}"
        score = row["health_score"]
        assert row["state"] == (
            "inactive" if score is None else "healthy" if score >= 85 else "degraded" if score >= 65 else "unhealthy"
        )


def _accepted(name: str, value: float) -> bool:
    try:
        AgentTargets.model_validate({name: value})
    except ValidationError:
        return False
    return True


def test_extreme_targets_are_refused_or_give_scores_in_range() -> None:
    names = sorted(name for name in TARGETS_USED if name not in ("n_full", "healthy_at", "degraded_at"))
    accepted = [{name: value} for name in names for value in (5e-324, 1e-20, 1e15, 1.7e308) if _accepted(name, value)]
    counts = {"executions": 4, "successes": 2, "failures": 2, "runtime_us_sum": 10**7, "sla_breaches": 0}
    counts |= {"long_running": 0, "trigger_failures": 0}
    many = counts | {"long_running": 4, "trigger_failures": 9, "sla_breaches": 4}
    cases = [(one, own) for own in accepted for one in (counts, many)]
    cases += [(many, {"expected_runtime_s": 1e-3} | own) for own in accepted if "expected_runtime_s" not in own]
    targets = {f"{place:03} {own}": own for place, (_, own) in enumerate(cases)}
    rows = window_rows([sums for sums, _ in cases], targets)
    assert len({name for own in accepted for name in own}) > 5
    for row in rows:
        shares = {column: row[column] for column in row if column.endswith(("_score", "_factor", "_raw"))}
        del shares["long_running_factor"], shares["health_score"]
        assert all(0 <= share <= 1 for share in shares.values()), (row["agent_id"], shares)
        assert 0 <= row["health_score"] <= 100, row["agent_id"]
        for sum_of, score in [("long_running", "stability"), ("sla_breaches", "sla"), ("trigger_failures", "trigger")]:
            assert row[sum_of] or row[f"{score}_score"] == 1, f"{score} of {row['agent_id']} is not 1 for nothing"


def exact_score(counts: Row, own: Row) -> Fraction:
    """Source 1 in exact fractions, for sums whose logarithms are whole."""
    target = AgentTargets.model_validate(own)
    n, one = counts["executions"], Fraction(1)
    asr, afh = Fraction(counts["successes"], n), Fraction(counts["failures"], 24)
    expected_rate, expected_failures = (
        _decimal(target.expected_success_rate),
        _decimal(target.expected_failures_per_hour),
    )
    success = min(one, asr / expected_rate)
    failure = min(one, expected_failures / afh) if afh else one
    confidence = min(one, Fraction(n, target.n_full))
    reliability = confidence * (Fraction(7, 10) * success + Fraction(3, 10) * failure) + 1 - confidence
    logs = [Fraction(math.log2(value + 1)) for value in (counts["long_running"], target.stability_threshold)]
    assert all(value.denominator == 1 for value in logs)
    stability = 1 - min(one, logs[0] / logs[1])
    sla = 1 - min(one, counts["sla_breaches"] / _decimal(target.sla_breach_threshold))
    triggers = 1 - min(one, counts["trigger_failures"] / _decimal(target.trigger_failure_threshold))
    return 40 * reliability + 20 + 20 * stability + 20 * (Fraction(6, 10) * sla + Fraction(4, 10) * triggers)


def _decimal(value: float) -> Fraction:
    return Fraction(str(value))


def _on_the_edge(score: int) -> list[tuple[Row, Row]]:
    """Windows whose score is exactly this number."""
    cases = []
    for n, failures in [(20, 0), (20, 1), (20, 5), (10, 5), (40, 10), (8, 8)]:
        for long_running in (0, 1, 3, 7, 15, 31):
            for breaches in range(6):
                for trigger_failures in range(6):
                    for own in (
                        {},
                        {"expected_success_rate": 1},
                        {"stability_threshold": 31},
                        {"stability_threshold": 7},
                    ):
                        counts = {
                            "executions": n,
                            "successes": n - failures,
                            "failures": failures,
                            "runtime_us_sum": 0,
                            "long_running": long_running,
                            "sla_breaches": breaches,
                            "trigger_failures": trigger_failures,
                        }
                        if exact_score(counts, own) == score:
                            cases.append((counts, own))
    return cases


@pytest.mark.parametrize(("score", "state"), [(85, "healthy"), (65, "degraded")])
def test_a_score_on_the_edge_of_a_state_belongs_to_the_better_one(score: int, state: str) -> None:
    cases = _on_the_edge(score)
    assert len(cases) > 3
    targets = {f"{place:03}": own for place, (_, own) in enumerate(cases)}
    found = window_rows([counts for counts, _ in cases], targets)
    wrong = [(row["health_score"], *case) for row, case in zip(found, cases, strict=True) if row["state"] != state]
    assert not wrong, f"{len(wrong)} of {len(cases)} windows that score exactly {score} are not {state}: {wrong[:3]}"


def test_there_is_no_gap_between_the_states(project: Project) -> None:
    project.write_targets({"agents": {"a": {"healthy_at": 84.5, "degraded_at": 84.5}}})
    project.write_log("a.jsonl", [line(execution("e", "a", START + HOUR / 2))])
    project.materialize(HourRange.of(START), only=FLEET)
    assert [row["state"] for row in project.rows("agent_health")] == ["healthy"]


def test_agents_are_known_for_exactly_the_look_back(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", {"agents": {"listed": {}, "gone": {"retired": True}}}, 2, 3)
    events = [execution("e", "a", START + 59 * HOUR / 60), trigger("t", "b", START), execution("r", "gone", START)]
    events.append(
        {"type": "judgement", "execution_id": "x", "at": START.isoformat(), "violations": [], "agent_id": "c"}
    )
    events.append(
        {"type": "model_call", "call_id": "x", "ended_at": START.isoformat(), "model": "m", "status": "success"}
    )
    project.write_log("a.jsonl", [line(event) for event in events])
    hours = hours_from(START - HOUR, 6)
    project.materialize(hours, only=FLEET)
    known: dict[Any, set[str]] = {hour: set() for hour in hours}
    for row in project.rows("agent_health"):
        known[row["hour"]].add(row["agent_id"])
    seen = {"a", "b", "c", "listed"}
    assert list(known.values()) == [{"listed"}, seen, seen, seen, {"listed"}, {"listed"}]


def test_quiet_agents_do_not_weigh_in_the_score_of_the_fleet(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", {"agents": {"quiet": {}, "bad": {"n_full": 1, "sla_s": 1}, "good": {}}})
    records = [execution(f"b{n}", "bad", START + timedelta(minutes=n), status="failure") for n in range(50)]
    records.append(execution("g", "good", START))
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(HourRange.of(START), only=FLEET)
    scores = {row["agent_id"]: row["health_score"] for row in project.rows("agent_health")}
    (fleet,) = project.rows("system_health")
    assert scores["quiet"] is None
    assert fleet["health_score"] == pytest.approx((scores["bad"] + scores["good"]) / 2, abs=TOLERANCE)
    assert (fleet["agents"], fleet["inactive"]) == (3, 1)


def fleet_rows(agents: pa.Table) -> list[Row]:
    hours = ibis.memtable(
        {
            "hour": [START], "as_of": [START + HOUR], "is_final": [True], "window_start": [START - 23 * HOUR],
            "window_end": [START + HOUR], "hours_covered": [24],
        },
        schema={
            **dict.fromkeys(["hour", "as_of", "window_start", "window_end"], "timestamp('UTC')"),
            "is_final": "boolean", "hours_covered": "int64",
        },
    )  # fmt: skip
    return ibis.duckdb.connect().to_pyarrow(system_health(ibis.memtable(agents), hours)).to_pylist()


AGENT_ROWS = pa.schema(
    {
        "hour": pa.timestamp("us", "UTC"), "health_score": pa.float64(), "state": pa.string(),
        "is_provisional": pa.bool_(),
    }
)  # fmt: skip


def test_the_score_of_the_fleet_does_not_depend_on_the_order_of_its_agents() -> None:
    random = Random(1)
    rows = [{"hour": START, "health_score": random.random() * 100, "state": "healthy"} for _ in range(50)]
    scores = set()
    for _ in range(5):
        random.shuffle(rows)
        scores.add(fleet_rows(pa.Table.from_pylist(rows, AGENT_ROWS))[0]["health_score"])
    assert len(scores) == 1, f"a rebuild may give another of {scores}"


def test_an_hour_without_any_agent_has_a_row_with_no_score() -> None:
    (row,) = fleet_rows(AGENT_ROWS.empty_table())
    assert row["health_score"] is None
    assert row["agents"] == row["healthy"] == row["degraded"] == row["unhealthy"] == row["inactive"] == 0


# -- on real logs ------------------------------------------------------------------------------------------------------


@needs_real_logs
def test_every_score_of_the_real_logs_equals_the_reference(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.copy_real_logs()
    first, last = START.replace(year=2024, month=10, day=11), START.replace(year=2024, month=12, day=17)
    hours = HourRange(first, last)
    project.materialize(hours, only=FLEET)
    assert len(project.rows("executions")) == 1536
    assert project.rows("rejected_records") == []
    assert_scores_equal_the_reference(project, hours)
    states = dict(project.query("SELECT state, count(*) FROM agent_health GROUP BY state"))
    assert set(states) <= {"healthy", "degraded", "unhealthy", "inactive"}
    assert states["inactive"] > 0
