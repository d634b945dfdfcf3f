"""Trace risks and session scores: examples computed by hand, the plain-Python reference, and what must never matter."""

import math
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.schema.catalog import columns_of
from health_assets.systems.session_scores import assets as session_system
from health_assets.systems.session_scores import session_scores as scoring
from health_assets.systems.session_scores.session_scores import SETTINGS_USED, session_scores
from health_assets.systems.session_scores.signal_risks import RISKS
from health_assets.warehouse.engines.duckdb.store import DuckDBSession
from health_assets.warehouse.engines.duckdb.tables import create_statement
from health_assets_tests.support import reference, reference_session_scores
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.logs_made import START, Record, cancellation, execution, line
from health_assets_tests.support.projects import Project, Row, assert_same_tables, hours_from
from health_assets_tests.support.reference_computed_signals import signals_of
from health_assets_tests.support.reference_session_scores import DEFAULTS
from health_assets_tests.systems.test_scores_equal_reference import assert_equal_rows

STEPS = ["ingest", "computed_signals", "trace_risks", "session_scores"]
STATED_STEPS = [name for name in STEPS if name != "computed_signals"]
"""The steps where all signals are stated."""
TABLES = ["trace_risks", "session_scores"]
SIGNALS = reference.SIGNALS


def signals(execution_id: str, at: datetime, **fields: Any) -> Record:
    return {"type": "signals", "execution_id": execution_id, "at": at.isoformat(), **fields}


def scored(project: Project, records: list[Record], hours: HourRange) -> dict[str, Row]:
    """The sessions of the last of these hours."""
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours, only=STATED_STEPS)
    return {row["session_id"]: row for row in project.rows("session_scores", HourRange(hours.end - HOUR, hours.end))}


def sessions_of(
    traces: dict[str, list[dict[str, float | None]]], *, agent_id: str | None = "a", **changed: Any
) -> dict[str, Row]:
    """Score sessions whose traces have these signals, without a project around them."""
    names = columns_of("trace_risks")
    rows = []
    for session_id, signals_of_traces in traces.items():
        for place, given_signals in enumerate(signals_of_traces):
            row = dict.fromkeys(names) | {
                "hour": START, "trace_id": f"{session_id} {place:04}", "session_id": session_id, "agent_id": agent_id,
                "traced_at": START, "oldest_event_at": START, "is_flagged": False, "formula_version": "",
            }  # fmt: skip
            for name, risk in reference_session_scores.RISK_OF.items():
                value = given_signals.get(name)
                row[risk] = None if value is None else 1 - value
            rows.append(row)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        session = DuckDBSession(connection)
        names_of_tables = ("trace_risks", "executions", "signals", "computed_signals")
        tables = [session.table(name) for name in names_of_tables]
        for table in names_of_tables:
            connection.execute(create_statement(table).replace(" NOT NULL", ""))  # of their rows a part is enough
        session.insert_arrow("trace_risks", pa.Table.from_pylist(rows))
        found = session.arrow(session_scores(*tables, HourRange.of(START), Settings(**changed))).to_pylist()
    return {row["session_id"]: row for row in found}


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_the_numbers_of_the_sources_example_traces() -> None:
    """Source 5, "Metadata returned": risks 0.12, 0.05, 0.08, 0.03 and 0.65, 0.72, 0.10, 0.15.

    Max-compose over the weighted risks: max(0.12, 0.05, 0.8 * 0.08, 0.03) = 0.12 and max(0.65, 0.72, 0.08, 0.15) = 0.72.
    Penalties: 0.05 + 0.064 + 0.03 = 0.144 and 0.72 + 0.08 + 0.15 = 0.95; uncertainties 1.144 * 0.12 = 0.13728 and
    1.95 * 0.65 = 1.2675. (The source's example prints 0.134 and 0.136, which its formula does not give.)
    """
    first = {"confidence": 0.88, "loop_detection": 0.95, "tool_correctness": 0.92, "coherence": 0.97}
    second = {"confidence": 0.35, "loop_detection": 0.28, "tool_correctness": 0.90, "coherence": 0.85}
    (row,) = sessions_of({"s": [first, second]}).values()
    assert (row["max_risk"], row["mean_top_k_risk"], row["raw_risk"]) == (0.72, 0.72, 0.72)  # k = max(1, ceil(0.3)) = 1
    assert row["agent_reliability"] == 0.28
    assert row["flagged_traces"] == ["s 0001"]
    rms = math.sqrt((0.13728**2 + 1.2675**2) / 2)
    assert row["raw_instability"] == pytest.approx(rms, abs=1e-12)
    assert row["agent_consistency"] == pytest.approx(1 - rms, abs=1e-12)
    assert (row["reliability_band"], row["consistency_band"]) == ("high_risk", "unstable")
    assert (row["reliability_passed"], row["consistency_passed"]) == (False, False)


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Hours with the traces and sessions that the tests below look at; the ids of each begin alike."""
    at = START + HOUR / 2
    given_signals = {"confidence": 0.35, "loop_detection": 0.28, "tool_correctness": 0.1, "coherence": 0.85}
    records = [
        execution("row", "row", START, session_id="row", signals=given_signals),
        execution("latest", "latest", at, session_id="latest", signals={"confidence": 0.5, "loop_detection": 0.6}),
        signals("latest", at - timedelta(seconds=1), confidence=0.1, coherence=0.2),  # the execution speaks later
        signals("latest", at + timedelta(seconds=2), tool_correctness=0.3, session_id="latest o", agent_id="other"),
        signals("latest", at + timedelta(seconds=2), tool_correctness=0.4),  # the same time, a later line
        signals("latest", at + timedelta(seconds=1), tool_correctness=0.9),
        execution("fill e", "fill", START),
        signals("fill e", START, coherence=0.2, session_id="fill s"),
        signals("fill unknown", START + HOUR / 4, coherence=0.7),
        signals("fill unknown", START + HOUR / 2, confidence=0.9, session_id="fill s", agent_id="b"),
        execution("fill neither", "fill", START),
        execution("fill signals alone", "fill", START, signals={"coherence": 1}),
        execution("fill session alone", "fill", START, session_id="fill t"),
        execution("later e", "later", START, session_id="later", signals={"coherence": 0.9}),
        execution("later f", "later", START + HOUR, session_id="later", signals={"coherence": 0.8}),
        signals("later e", START + 3 * HOUR, coherence=0.1),
        execution("same", "a", START, session_id="same old", signals={"coherence": 0.1}),
        execution("same", "a", START + HOUR, session_id="same new", signals={"confidence": 0.9}),
        execution("same x", "a", START + HOUR, session_id="same old"),
    ]
    project = Project(tmp_path_factory.mktemp("by hand") / "project")
    project.write_log("a.jsonl", map(line, records))
    project.materialize(hours_from(START, 5), only=STATED_STEPS)
    return project


def traces_of(project: Project, case: str) -> list[Row]:
    """The traces whose ids begin so, in the order of their agents and ids."""
    found = (row for row in project.rows("trace_risks") if row["trace_id"].startswith(case))
    return sorted(found, key=lambda row: (row["agent_id"] or "", row["trace_id"]))


def test_a_row_of_trace_risks_by_hand(by_hand: Project) -> None:
    (row,) = traces_of(by_hand, "row")
    assert [row[risk] for risk in RISKS] == [0.65, 0.72, 0.9, 0.15]
    assert row["step_risk"] == 0.72  # tool: 0.8 * 0.9 = 0.72, too
    assert row["situational_penalty"] == 1.59  # 0.72 + 0.72 + 0.15
    assert row["weighted_uncertainty"] == 1.6835  # 2.59 * 0.65
    assert row["is_flagged"]


def test_the_tail_is_blended_with_the_worst_trace() -> None:
    """Ten traces with risks 0.1 to 1.0: k = ceil(1.5) = 2, mean (1.0 + 0.9) / 2 = 0.95, raw 0.9 * 0.95 + 0.1 = 0.955."""
    traces = [{"coherence": 1 - place / 10} for place in range(1, 11)]
    (row,) = sessions_of({"s": traces}).values()
    assert row["mean_top_k_risk"] == 0.95
    assert row["raw_risk"] == 0.955
    assert row["agent_reliability"] == 0.045
    assert row["flagged_traces"] == [f"s {place:04}" for place in (9, 8, 7, 6, 5)]  # 0.5 itself is not above 0.5
    assert row["agent_consistency"] == 1.0  # no trace has a confidence
    assert (row["total_traces"], row["traces_evaluated"], row["consistency_traces_evaluated"]) == (10, 10, 0)


TAILS = {  # share of the traces: how many of how many
    0.15: {1: 1, 6: 1, 7: 2, 20: 3, 21: 4, 40: 6, 100: 15},
    0.07: {100: 7},
    0.29: {100: 29},
    0.1: {30: 3},
    1.0: {9: 9},
    0.001: {5: 1},
    0.3333333333333333: {3: 1},
}


@pytest.mark.parametrize("share", TAILS)
def test_the_tail_has_exactly_its_share_of_the_traces(share: float) -> None:
    """The n-th worst of n traces has risk 0, the k worst risk 1: the mean over the tail is 1 only if it has at most k."""
    sessions = {
        f"{risky} of {n}": [{"coherence": 0.0 if place < risky else 1.0} for place in range(n)]
        for n, k in TAILS[share].items()
        for risky in (k, k - 1)
    }
    found = sessions_of(sessions, top_k_share=share)
    for n, k in TAILS[share].items():
        assert found[f"{k} of {n}"]["mean_top_k_risk"] == 1.0
        assert found[f"{k - 1} of {n}"]["mean_top_k_risk"] == pytest.approx((k - 1) / k, abs=1e-12)


def test_limits_belong_to_the_better_band_and_pass_and_are_not_flagged() -> None:
    values = [1.0, 0.9, 0.8999, 0.7, 0.6999, 0.5, 0.4999, 0.3, 0.2999, 0.0]
    found = sessions_of({f"{value}": [{"confidence": value}] for value in values})
    reliability = [found[f"{value}"]["reliability_band"] for value in values]
    assert reliability == [
        "highly_reliable", "highly_reliable", "generally_reliable", "generally_reliable", "moderate_risk",
        "moderate_risk", "elevated_risk", "elevated_risk", "high_risk", "high_risk",
    ]  # fmt: skip
    assert [found[f"{value}"]["consistency_band"] for value in values] == [
        "highly_consistent", "highly_consistent", "generally_consistent", "generally_consistent",
        "moderate_instability", "moderate_instability", "high_instability", "high_instability", "unstable", "unstable",
    ]  # fmt: skip
    assert [found[f"{value}"]["agent_reliability"] for value in values] == values
    assert [found[f"{value}"]["reliability_passed"] for value in values] == [value >= 0.5 for value in values]
    assert [bool(found[f"{value}"]["flagged_traces"]) for value in values] == [value < 0.5 for value in values]


def test_a_session_that_cannot_be_evaluated_scores_one() -> None:
    """Source 5, "Edge cases"."""
    found = sessions_of({"nothing": [{}, {}], "no confidence": [{"coherence": 0.4}]})
    row = found["nothing"]
    assert (row["agent_reliability"], row["agent_consistency"]) == (1.0, 1.0)
    assert row["raw_risk"] is row["mean_top_k_risk"] is row["max_risk"] is row["raw_instability"] is None
    assert (row["total_traces"], row["traces_evaluated"], row["flagged_traces"]) == (2, 0, [])
    row = found["no confidence"]
    assert (row["agent_reliability"], row["agent_consistency"]) == (0.4, 1.0)
    assert row["raw_instability"] is None


def test_scores_stay_between_0_and_1_when_uncertainty_exceeds_it() -> None:
    (row,) = sessions_of({"s": [dict.fromkeys(SIGNALS, 0.0)]}).values()
    assert row["raw_instability"] == 3.8  # (1 + 1 + 0.8 + 1) * 1
    assert row["agent_consistency"] == 0.0


def test_small_uncertainties_are_not_lost() -> None:
    (row,) = sessions_of({"s": [{"confidence": 1 - 1e-9}] * 3}).values()
    assert row["raw_instability"] == pytest.approx(1e-9, abs=1e-12)


# -- which statement counts --------------------------------------------------------------------------------------------


def test_the_latest_statement_about_each_signal_counts(by_hand: Project) -> None:
    at = START + HOUR / 2
    row, of_another = traces_of(by_hand, "latest")
    assert [row[risk] for risk in RISKS] == [0.5, 0.4, 0.6, 0.8]
    assert (row["session_id"], row["agent_id"], row["traced_at"]) == ("latest", "latest", at)
    assert (of_another["session_id"], of_another["agent_id"]) == ("latest o", "other")
    assert row["oldest_event_at"] == at - timedelta(seconds=1)


def test_signals_fill_in_what_the_execution_does_not_say(by_hand: Project) -> None:
    traces = {row["trace_id"]: row for row in traces_of(by_hand, "fill")}
    assert set(traces) == {"fill e", "fill unknown", "fill signals alone", "fill session alone"}
    assert traces["fill unknown"]["traced_at"] == START + HOUR / 2
    assert traces["fill unknown"]["coherence_risk"] == 0.3
    sessions = {row["session_id"]: row for row in by_hand.rows("session_scores")}
    assert {name for name in sessions if name.startswith("fill")} == {"fill s", "fill t"}
    assert (sessions["fill s"]["total_traces"], sessions["fill s"]["agent_id"]) == (2, "b")
    assert sessions["fill s"]["flagged_traces"] == ["fill e"]
    assert (sessions["fill t"]["traces_evaluated"], sessions["fill t"]["agent_reliability"]) == (0, 1.0)


def test_signals_that_come_later_score_the_session_again_in_the_hour_in_which_they_come(by_hand: Project) -> None:
    rows = {row["hour"]: row for row in by_hand.rows("session_scores") if row["session_id"] == "later"}
    assert {hour: row["agent_reliability"] for hour, row in rows.items()} == {
        START: 0.9, START + HOUR: 0.8, START + 3 * HOUR: 0.1,
    }  # fmt: skip
    assert [rows[hour]["total_traces"] for hour in sorted(rows)] == [1, 2, 2]
    assert rows[START + 3 * HOUR]["flagged_traces"] == ["later e"]
    assert rows[START + 3 * HOUR]["agent_id"] == "later"


def test_an_id_in_two_hours_is_one_trace_of_the_later_execution(by_hand: Project) -> None:
    sessions = {row["session_id"]: row for row in by_hand.rows("session_scores", HourRange.of(START + HOUR))}
    assert (sessions["same old"]["total_traces"], sessions["same old"]["max_risk"]) == (1, None)
    assert (sessions["same new"]["total_traces"], sessions["same new"]["max_risk"]) == (1, 0.1)


@pytest.fixture(scope="module")
def look_back_of_3(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Six hours with a look-back of 3, for the tests of what has left it."""
    project = Project(tmp_path_factory.mktemp("look-back") / "project", None, 1, 3)
    given = [signals("left", START + HOUR * hour + HOUR / 2, coherence=0.5) for hour in (1, 2, 3)]
    records = [
        *(execution(f"e{n}", "a", START + n * HOUR, session_id="s", signals={"coherence": n / 10}) for n in range(6)),
        execution("left", "a", START + HOUR / 2, session_id="left"),
        given[0] | {"session_id": "left"},
        *given[1:],
    ]
    scored(project, records, hours_from(START, 6))
    return project


def test_a_session_is_scored_over_the_look_back_alone(look_back_of_3: Project) -> None:
    found = [row for row in look_back_of_3.rows("session_scores") if row["session_id"] == "s"]
    rows = sorted(found, key=lambda row: row["hour"])
    assert [row["total_traces"] for row in rows] == [1, 2, 3, 3, 3, 3]
    assert [row["max_risk"] for row in rows] == [1.0, 1.0, 1.0, 0.9, 0.8, 0.7]


def test_a_trace_whose_execution_has_left_the_look_back_counts_once(look_back_of_3: Project) -> None:
    rows = look_back_of_3.rows("session_scores", HourRange.of(START + 3 * HOUR))
    [row] = [row for row in rows if row["session_id"] == "left"]
    assert row["total_traces"] == row["traces_evaluated"] == 1


# -- settings ----------------------------------------------------------------------------------------------------------


def test_every_setting_is_used_and_stored_with_the_score(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    used = {
        "weight_confidence": 0.9, "weight_loop_detection": 0.5, "weight_tool_correctness": 1.0, "weight_coherence": 0.2,
        "flag_threshold": 0.3, "pass_threshold": 0.61, "top_k_share": 0.5, "ensemble_weight": 0.25,
    }  # fmt: skip
    for name, value in used.items():
        monkeypatch.setenv(f"HEALTH_{name.upper()}", str(value))
    given_signals = [{"confidence": 0.6}, {"loop_detection": 0.4, "coherence": 0.0}, {"tool_correctness": 0.7}]
    records = [execution(f"e{n}", "a", START, session_id="s", signals=one) for n, one in enumerate(given_signals)]
    (row,) = scored(project, records, HourRange.of(START)).values()
    assert {name: row[name] for name in SETTINGS_USED} == used
    # step risks 0.36, max(0.3, 0.2) = 0.3, 0.3; k = ceil(1.5) = 2; mean 0.33; raw 0.75 * 0.33 + 0.25 * 0.36 = 0.3375
    assert (row["mean_top_k_risk"], row["max_risk"], row["raw_risk"]) == (0.33, 0.36, 0.3375)
    assert row["flagged_traces"] == ["e0"]  # 0.3 is not above 0.3
    assert row["reliability_passed"]
    assert set(used) == set(SETTINGS_USED)


def test_changed_weights_apply_to_all_traces_of_an_hour_scored_from_then_on(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write_log(
        "a.jsonl",
        [line(execution(f"e{n}", "a", START + n * HOUR, session_id="s", signals={"coherence": 0.0})) for n in range(2)],
    )
    project.materialize(HourRange.of(START), only=STATED_STEPS)
    monkeypatch.setenv("HEALTH_WEIGHT_COHERENCE", "0.5")
    project.materialize(HourRange.of(START + HOUR), only=STATED_STEPS)
    rows = sorted(project.rows("session_scores"), key=lambda row: row["hour"])
    assert [(row["max_risk"], row["mean_top_k_risk"]) for row in rows] == [(1.0, 1.0), (0.5, 0.5)]


# -- against the reference ---------------------------------------------------------------------------------------------


def random_records(random: Random, count: int, hours: int) -> list[Record]:
    """Executions and signals of few ids and sessions, so that they repeat, contradict and outlive each other."""
    records = []
    for _ in range(count):
        at = START + timedelta(minutes=random.randrange(hours * 60))
        said = {name: random.choice([0, 1, 0.5, random.random()]) for name in SIGNALS if random.random() < 0.6}
        if random.random() < 0.6:
            record = execution(f"e{random.randrange(40)}", random.choice("ab"), at)
            fields = {"session_id": f"s{random.randrange(6)}", "signals": said, **random_outcome(random)}
            records += random_calls(random, record, at, len(records))
        else:
            record = signals(f"e{random.randrange(45)}", at, **(said or {"coherence": 0.25}))
            fields = {"session_id": f"s{random.randrange(7)}", "agent_id": random.choice("abc")}
        records.append(record | {name: value for name, value in fields.items() if random.random() < 0.7})
    return records


def random_cancellations(random: Random, count: int, hours: int) -> list[Record]:
    """Cancelled runs of few ids and sessions, of which some have nothing else."""
    return [
        cancellation(
            f"x{random.randrange(40)}", random.choice("ab"), START + timedelta(minutes=random.randrange(hours * 60)),
            session_id=random.choice([None, f"s{random.randrange(6)}", f"cancelled {random.randrange(4)}"]),
        )
        for _ in range(count)
    ]  # fmt: skip


def random_outcome(random: Random) -> Record:
    """How an execution ended and what it took, of which logs leave out any part."""
    return {
        "status": random.choice(["success", "failure"]),
        "error": random.choice(["no answer", "\n  refused \nby the host", "x" * 400, " "]),
        "input_tokens": random.randrange(1000),
        "output_tokens": random.randrange(100),
        "cost_usd": random.random(),
    }


def random_calls(random: Random, execution: Record, ended_at: datetime, first_id: int) -> list[Record]:
    """Calls of an execution, mostly alike, of which some fail, end in an earlier hour or name no agent."""
    calls = []
    for place in range(random.choice([0, 0, 1, 3, 9])):
        call = {
            "call_id": f"c{first_id}:{place}",
            "execution_id": execution["execution_id"],
            "ended_at": (ended_at - timedelta(minutes=random.randrange(90))).isoformat(),
            "status": random.choice(["success", "success", "failure"]),
        }
        if random.random() < 0.8:
            call["agent_id"] = execution["agent_id"]
        if random.random() < 0.7:
            told = {"arguments": {"q": random.choice("xy")}, "result": f"run-{place}12345 {random.choice('pq')}"}
            call |= {"type": "tool_call", "tool": random.choice("fg"), "error": random.choice(["bad", "down"])} | told
        else:
            call |= {"type": "model_call", "model": "m", "output": random.choice(["Yes ", "yes", "no"])}
            call |= {"input_tokens": random.randrange(100), "cost_usd": random.random()}
        left_out = {name for name in ("arguments", "result", "output", "error") if random.random() < 0.2}
        calls.append({name: value for name, value in call.items() if name not in left_out})
    return calls


def random_project(folder: Path, seed: int, lookback_hours: int, count: int = 250) -> Project:
    random = Random(seed)
    project = Project(folder / "project", None, 1, lookback_hours)
    for name in ("a.jsonl", "deep/b.jsonl.gz"):
        records = [*random_records(random, count, 14), *random_cancellations(random, 30, 14)]
        project.write_log(name, [line(record) for record in records])
    return project


@pytest.mark.parametrize(
    ("seed", "lookback_hours", "first", "count"),
    [
        (1, 3, 0, 16), (4, 4, 9, 1),
        *(pytest.param(*more, marks=pytest.mark.nightly) for more in [(2, 168, 0, 14), (3, 5, 6, 3), (5, 1, 2, 9)]),
    ],
)  # fmt: skip
def test_traces_and_sessions_of_random_logs_equal_the_reference(
    tmp_path: Path, seed: int, lookback_hours: int, first: int, count: int
) -> None:
    project = random_project(tmp_path, seed, lookback_hours)
    hours = hours_from(START + first * HOUR, count)
    project.materialize(hours, only=STEPS)
    records = reference.deduplicate(reference.read_lines(project.raw)[0])
    used = DEFAULTS | {"lookback_hours": lookback_hours}
    traces = reference_session_scores.trace_risks(records, list(hours), used)
    sessions = reference_session_scores.session_scores(records, list(hours), used)
    computed = [
        {"hour": one["_hour"], "execution_id": one["execution_id"], "agent_id": one["agent_id"], **found}
        for one in records
        if one["type"] == "execution" and one["_hour"] in hours
        and (found := signals_of(one, records, lookback_hours)) is not None
    ]  # fmt: skip
    assert len(sessions) > 3 < len(computed)
    assert_equal_rows(project.rows("computed_signals", hours), computed, ["hour", "execution_id", "agent_id"])
    assert_equal_rows(project.rows("trace_risks", hours), traces, ["hour", "trace_id", "agent_id"])
    assert_equal_rows(project.rows("session_scores", hours), sessions, ["hour", "session_id"])
    assert set(columns_of("trace_risks")) - set(traces[0]) == {"formula_version", "agent_id_reported"}
    assert set(columns_of("session_scores")) - set(sessions[0]) == {"formula_version", *SETTINGS_USED}


share_or_none = st.none() | st.sampled_from([0.0, 1.0, 0.5, 0.7]) | st.floats(0, 1)


@tried_with(2, 60)
@given(
    st.lists(
        st.lists(st.fixed_dictionaries(dict.fromkeys(SIGNALS, share_or_none)), min_size=1, max_size=45),
        min_size=1,
        max_size=12,
    ),
    st.fixed_dictionaries(
        {name: st.sampled_from([0.0, 0.25, 0.8, 1.0]) for name in SETTINGS_USED if name != "top_k_share"}
        | {"top_k_share": st.sampled_from([0.15, 0.01, 0.5, 1.0])}
    ),
)
def test_the_formulas_equal_the_reference_for_any_signals_and_settings(
    sessions: list[list[dict[str, float | None]]], used: dict[str, float]
) -> None:
    named = {f"s{place}": traces for place, traces in enumerate(sessions)}
    found = sessions_of(named, **used)
    for session_id, traces in named.items():
        expected = reference_session_scores.score(
            [
                {"trace_id": f"{session_id} {place:04}", "agent_id": "a", "traced_at": START, "source": "stated" if own else None,
                 "signals": own}
                for place, one in enumerate(traces)
                for own in [{name: value for name, value in one.items() if value is not None}]
            ],
            used,
        )  # fmt: skip
        for column, value in expected.items():
            if isinstance(value, float):
                assert found[session_id][column] == pytest.approx(value, abs=1e-9), column
            elif value is None or (isinstance(value, int) and not isinstance(value, bool)):
                assert found[session_id][column] == value, column


# -- what must never matter --------------------------------------------------------------------------------------------


def test_late_files_and_any_order_of_hours_give_the_same_tables_to_the_last_bit(tmp_path: Path) -> None:
    project = random_project(tmp_path, 11, 4, 120)
    hours = hours_from(START, 14)
    clean = Project(tmp_path / "clean", None, 1, 4)
    for path in project.raw.rglob("*.*"):
        copied = clean.raw / path.relative_to(project.raw)
        copied.parent.mkdir(exist_ok=True)
        copied.write_bytes(path.read_bytes())
    clean.materialize(hours, only=STEPS)
    expected = clean.tables(hours, TABLES)

    late = project.raw / "deep" / "b.jsonl.gz"
    content = late.read_bytes()
    late.unlink()
    project.materialize(hours_from(START + 8 * HOUR, 6), only=STEPS)
    project.materialize(HourRange.of(START + 5 * HOUR), only=STEPS)
    late.write_bytes(content)
    project.materialize(hours, only=STEPS, only_stale=True)
    assert_same_tables(project.tables(hours, TABLES), expected)
    for hour in (13, 7):  # one by one: the plan for one hour is another than that for many
        project.materialize(HourRange.of(START + hour * HOUR), only=["session_scores", "trace_risks"])
    assert_same_tables(project.tables(hours, TABLES), expected)


@pytest.mark.parametrize("traces_at_once", [150, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_range_too_large_for_memory_is_scored_in_pieces_with_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, traces_at_once: int
) -> None:
    project = random_project(tmp_path, 13, 4, 150)
    hours = hours_from(START, 14)
    project.materialize(hours, only=STEPS)
    expected = project.tables(hours, TABLES)
    pieces = []
    scored = session_system._scored
    monkeypatch.setattr(session_system, "TRACES_AT_ONCE", traces_at_once)
    monkeypatch.setattr(session_system, "_scored", lambda inputs, piece: pieces.append(piece) or scored(inputs, piece))
    project.materialize(hours, only=["session_scores"])
    assert_same_tables(project.tables(hours, TABLES), expected)
    assert [hour for piece in pieces for hour in piece.hours] == list(hours)
    assert 1 < len(pieces) <= len(hours)


def test_a_trace_comes_to_a_session_once_the_execution_that_named_another_is_out_of_the_look_back(
    tmp_path: Path,
) -> None:
    """Only its version says the other session, in an hour that the session itself does not reach back to."""
    records = [
        execution("old", "a", START, session_id="other"),
        signals("old", START + HOUR, session_id="mine", confidence=0.4),
        execution("new", "a", START + 3 * HOUR, session_id="mine"),
    ]
    last = HourRange.of(START + 3 * HOUR)
    ways = {
        "alone": [last],
        "in a range": [hours_from(START, 4)],
        "hour by hour": map(HourRange.of, hours_from(START, 4)),
    }
    project = Project(tmp_path / "project", None, 1, lookback_hours=3)
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours_from(START, 4), only=["ingest"])
    for way, ranges in ways.items():
        project.change("DELETE FROM session_scores")
        project.change("DELETE FROM trace_risks")
        for hours in ranges:
            project.materialize(hours, only=["trace_risks", "session_scores"])
        [mine] = [row for row in project.rows("session_scores", last) if row["session_id"] == "mine"]
        assert (mine["total_traces"], mine["traces_evaluated"]) == (2, 1), way


@pytest.mark.nightly  # the random logs whose one hour equals the reference stand for it
def test_the_last_hour_alone_is_as_in_a_range(tmp_path: Path) -> None:
    """Its look-back holds signals of executions from before it, which a run for that hour never loads."""
    whole, alone = (random_project(tmp_path / name, 12, 3) for name in ("whole", "alone"))
    last = HourRange.of(START + 13 * HOUR)
    whole.materialize(hours_from(START, 14), only=STEPS)
    alone.materialize(last, only=STEPS)
    assert_same_tables(alone.tables(last, TABLES), whole.tables(last, TABLES))


def test_sums_do_not_depend_on_the_order_of_the_traces() -> None:
    random = Random(3)
    traces = [{name: random.random() for name in SIGNALS} for _ in range(400)]
    scores = set()
    for _ in range(4):
        random.shuffle(traces)
        (row,) = sessions_of({"s": traces}).values()
        scores.add((row["raw_risk"], row["raw_instability"]))
    assert len(scores) == 1


def test_the_bands_cover_every_score() -> None:
    for bands in (scoring.RELIABILITY_BANDS, scoring.CONSISTENCY_BANDS):
        limits = list(bands.values())
        assert limits == sorted(limits, reverse=True)
        assert limits[-1] == 0.0
