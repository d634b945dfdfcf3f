"""One verdict, and none on too little: provisional scores, the order of lists, and what was not evaluated."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from random import Random
from urllib.parse import quote

import ibis
import pytest
from rich.console import Console

from health_assets.apps.alerts.messages import message_of
from health_assets.apps.alerts.outbox import OPENED, Notice
from health_assets.apps.alerts.rules import Drop, Floor, StateWorsened
from health_assets.apps.report import why_systems_differ as differences
from health_assets.apps.report.agent import print_agent
from health_assets.apps.report.blocks import print_health
from health_assets.apps.report.differences import differing_agents
from health_assets.apps.report.incidents_block import print_alerts
from health_assets.core.formatting import few_digits, share
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import Targets
from health_assets.scoring import explanation
from health_assets.scoring.verdict import ORDER, reservation, runs, verdict
from health_assets.systems.agent_health_model.severity_order import with_verdict
from health_assets.systems.agent_health_state import agent_health_state
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support import foreign_logs_made as made
from health_assets_tests.support.alerts_made import at, fill_hour, incidents, look, scored
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import Project, Row, assert_same_tables, hours_from
from health_assets_tests.support.serving_made import Served, readers_in_this_process, served
from health_assets_tests.systems.test_scores_equal_reference import window_rows

HOURS = hours_from(START, 24)
LAST = HOURS.end - HOUR
FLEET = ["ingest", "health_components", "agent_health", "system_health"]
STATES = ["ingest", "health_components", "state_components", "agent_changes", "agent_health_state"]
TROUBLE_NOW = ["failing", "suspect", "recovering"]
AS_A_PERSON_WANTS_THEM = ["unhealthy", "unhealthy?", "degraded", "degraded?", "healthy?", "healthy", "inactive"]


def some(agent_id: str, count: int, failures: int = 0, runtime_s: float = 5.0, end: datetime = LAST) -> list[Record]:
    """Executions a second apart from an hour's start on, of which the first ones failed."""
    return [
        execution(
            f"{agent_id} {end:%H} {place}", agent_id, end + timedelta(seconds=place), runtime_s,
            status="failure" if place < failures else "success",
        )
        for place in range(count)
    ]  # fmt: skip


TARGETS = {
    "agents": {
        "slow": {"expected_runtime_s": 20},
        "bad": {"expected_runtime_s": 1},
        "lax": {"expected_success_rate": 0.5},
        "strict": {"expected_success_rate": 0.999},
        "declared": {"baseline_latency_ms": 1000},
        "eager": {"n_full": 3},
        "tool-calling:gpt-4o": {"expected_runtime_s": 20},
        "silent": {},
    }
}
RECORDS = [
    *some("failed four of four", 4, failures=4),
    *some("newcomer", 2),
    *some("proven", 30),
    *some("bad", 30, failures=28, runtime_s=60),
    *some("slow", 30, runtime_s=24),
    *some("lax", 30, failures=10),
    *some("strict", 100, failures=1),
    *some("declared", 30),
    *some("eager", 4, failures=1),
    *(record for hour in range(12) for record in some("lately", 30, end=START + hour * HOUR)),
    *some("lately", 10, failures=5),
]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Agents of every verdict, one whose log tells no runtime, and a session that nobody evaluated."""
    project = Project(tmp_path_factory.mktemp("verdicts") / "project", TARGETS)
    sessions: list[Record] = [
        {**record, "session_id": f"session {name}", **fields}
        for name, fields in [
            ("unseen", {}),
            ("bad", {"signals": {"confidence": 0.4}}),
            ("looped", {"signals": {"loop_detection": 0.9}}),
        ]
        for record in some(f"worker {name}", 1)
    ]
    records = [line(record) for record in [*RECORDS, *sessions]]
    Random(1).shuffle(records)
    project.write_log("a.jsonl", records)
    trials = [made.tau_bench_trial(task, 0, 1.0) for task in range(25)]
    project.write_bytes(made.TAU_BENCH_NAME, made.dumped(trials).encode(), modified=LAST)
    project.materialize(HOURS)
    return project


def shown(project: Project, width: int = 160) -> str:
    """What the terminal shows."""
    console = Console(file=StringIO(), width=width)
    with project.warehouse.read() as session:
        print_health(console, session, HOURS)
    return console.file.getvalue()  # type: ignore[attr-defined]


def shown_agent(project: Project, agent_id: str) -> str:
    """The report of one agent, as the terminal shows it."""
    console = Console(file=StringIO(), width=160)
    with project.warehouse.read() as session:
        print_agent(console, session, HOURS, agent_id)
    return console.file.getvalue()  # type: ignore[attr-defined]


def block(text: str, title: str) -> list[str]:
    """The lines of the block whose title starts so."""
    [found] = [part for part in text.split("\n\n") if part.strip().startswith(title)]
    return [line.rstrip() for line in found.strip().splitlines()]


def rows_of(project: Project, table: str, key: str = "agent_id") -> dict[str, Row]:
    return {row[key]: row for row in project.rows(table, hours_from(LAST, 1))}


# -- provisional -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "is_provisional"), [(0, False), (1, True), (19, True), (20, False), (21, False)])
def test_a_score_is_provisional_from_the_first_execution_until_there_are_n_full(n: int, is_provisional: bool) -> None:
    [row] = window_rows([{"executions": n, "successes": n}], {"a": {"n_full": 20}})
    assert row["is_provisional"] is is_provisional
    assert runs(row) == (f"{n} (needs 20)" if is_provisional else str(n))
    assert reservation(row) == (f"provisional, {n} of 20 runs" if is_provisional else "")
    assert verdict(row["state"], is_provisional=is_provisional).endswith("?") is is_provisional


def test_agents_stand_in_the_order_in_which_a_person_looks_at_them() -> None:
    assert list(ORDER) == AS_A_PERSON_WANTS_THEM
    rows = [{"state": word.rstrip("?"), "is_provisional": word.endswith("?")} for word in reversed(ORDER)]
    rows.append({"state": "healthy", "is_provisional": None})  # of a warehouse from before there were provisional ones
    schema = {"state": "string", "is_provisional": "boolean"}
    table = ibis.memtable({name: [row[name] for row in rows] for name in schema}, schema=schema)
    found = ibis.duckdb.connect().to_pyarrow(with_verdict(table)).to_pylist()
    expected = [6, 5, 4, 3, 2, 1, 0, 5]
    assert [row["urgency"] - len(TROUBLE_NOW) for row in found] == expected, "after those in trouble now"
    assert [row["verdict"] for row in found] == [ORDER[place] for place in expected]


def in_order(rows: Sequence[Row], now: Mapping[str, Row] | None = None) -> list[str]:
    """The agents as a person wants them, in plain Python; first by what they do now, where that is given."""

    def place(row: Row) -> tuple:
        word = row["state"] + ("?" if row["is_provisional"] else "")
        verdict_now = now[row["agent_id"]]["verdict"] if now else None
        if verdict_now in TROUBLE_NOW:
            return 0, TROUBLE_NOW.index(verdict_now), row["health_score"] or 0, row["agent_id"]
        return 1, AS_A_PERSON_WANTS_THEM.index(word), row["health_score"] or 0, row["agent_id"]

    return [row["agent_id"] for row in sorted(rows, key=place)]


def test_an_agent_that_failed_four_of_four_stands_above_the_healthy_ones_and_says_of_how_many(fleet: Project) -> None:
    rows = rows_of(fleet, "agent_health")
    assert rows["failed four of four"]["health_score"] > 94
    table = block(shown(fleet), "Fleet at")
    listed = [agent_id for text in table for agent_id in rows if text.startswith(f"{agent_id} ")]
    now = rows_of(fleet, "agent_now")
    assert listed == in_order(list(rows.values()), now)[: len(listed)]
    assert now["failed four of four"]["verdict"] == "failing", "four failures in a row are no chance at 95 %"
    assert len(listed) == len(rows)
    [own] = [text for text in table if text.startswith("failed four of four")]
    assert "healthy?" in own and "4 (needs 20)" in own and own.endswith("0 of 4 succeeded, 95% expected")
    [proven] = [text for text in table if text.startswith("proven")]
    assert "healthy " in proven and "?" not in proven and " of " not in proven
    assert "? provisional: fewer runs than the score needs, so it leans to 100" in table
    provisional = sum(row["is_provisional"] for row in rows.values())
    counts = Counter(verdict(row["state"], is_provisional=row["is_provisional"]) for row in rows.values())
    told = dict(pair.split(" ")[::-1] for pair in table[0].partition("agents: ")[2].strip().split("  "))
    assert told == {word: str(number) for word, number in counts.items()} | {
        state: "0" for state in ("healthy", "degraded", "unhealthy", "inactive") if state not in counts
    }
    assert int(told["healthy?"]) > 0, "an agent that failed four of four is not counted as healthy"
    assert rows_of(fleet, "system_health", "hour")[LAST]["provisional"] == provisional > 0


def test_the_report_of_one_agent_says_that_its_score_is_provisional_and_of_how_many_runs(fleet: Project) -> None:
    score = "over 24 h: healthy?, 94.4 of 100 (provisional, 4 of 20 runs; only 8 of 100 points could be lost)"
    assert score in shown_agent(fleet, "failed four of four").splitlines()
    score = "over 24 h: healthy, 100.0 of 100 (only 40 of 100 points could be lost)"
    assert score in shown_agent(fleet, "proven").splitlines()


def test_a_fleet_without_a_provisional_score_has_no_word_about_it(project: Project) -> None:
    project.write_log("a.jsonl", [line(record) for record in some("proven", 20)])
    project.materialize(hours_from(LAST, 1), only=FLEET)
    console = Console(file=StringIO(), width=160)
    with project.warehouse.read() as session:
        print_health(console, session, hours_from(LAST, 1))
    assert "provisional" not in console.file.getvalue()  # type: ignore[attr-defined]


def test_dagster_shows_the_verdicts_in_that_order(fleet: Project) -> None:
    metadata = fleet.materialize(hours_from(LAST, 1), only=["agent_health", "system_health"])
    rows = rows_of(fleet, "agent_health")
    told = metadata["agent_health"]["worst agents"].text.splitlines()[2:]
    cells = [[cell.strip() for cell in text.strip("|").split("|")] for text in told]
    in_this_order = in_order(list(rows.values()), rows_of(fleet, "agent_now"))
    expected = [name for name in in_this_order if rows[name]["state"] != "inactive"]
    assert [row[1] for row in cells] == expected[: len(cells)]
    assert {row[1]: row[2:4] for row in cells}["failed four of four"] == ["failing", "healthy?"]
    assert "provisional" in metadata["system_health"]["latest hours"].text


# -- why systems differ ------------------------------------------------------------------------------------------------


def test_where_systems_differ_the_report_says_why_from_the_numbers(fleet: Project) -> None:
    with fleet.warehouse.read() as session:
        rows = session.dicts(differing_agents(session, HourRange.of(LAST)))
    found = {row["agent_id"]: differences.why(row) for row in rows}
    assert found == {
        "slow": "24.0 s a run, 20 s expected (-20.0); the document asks for success alone: 100% succeeded, 95% wanted",
        "failed four of four": "4 of 4 failed, 0.2 allowed; the score needs 20 runs and leans to 100",
        "lax": "the document: 67% succeeded, 95% wanted; the score expects 50%",
        "lately": "5 of 10 failed in the last 6 h, 5 of 370 in the whole window",
        "strict": "1 of 100 failed, 0.1 allowed; that costs the score 0.3 points of 40",
        "declared": "the document: p99 of 5.0 s is above 3 times the declared 1.0 s; "
        "the score looks at the mean runtime, 5.0 s, and expects none",
        "eager": "4 runs: the document wants 10 runs, the score 3; 1 of 4 failed, 0.2 allowed; "
        "that costs the score 5.9 points of 40",
    }
    lines = block(shown(fleet, 250), "Systems differ on")
    assert lines[0] == f"Systems differ on {len(found)} agents:"
    for agent_id, clause in found.items():
        [own] = [text for text in lines if text.startswith(f"{agent_id} ")]
        assert own.endswith(clause)


def test_agents_of_one_verdict_need_no_word(fleet: Project) -> None:
    lines = "\n".join(block(shown(fleet), "Systems differ on"))
    for agent_id in ("proven", "bad", "newcomer", "silent"):
        assert agent_id not in lines


def test_the_documents_thresholds_are_those_that_it_is_made_with() -> None:
    assert differences.FEWEST_SAMPLES == agent_health_state.FEWEST_SAMPLES
    assert differences.BASELINE_FACTOR == agent_health_state.BASELINE_FACTOR


def test_any_row_has_a_clause_where_systems_differ_and_none_where_they_agree() -> None:
    random = Random(3)
    counts, targets = [], {}
    for place in range(300):
        n = random.choice([1, 5, 9, 10, 19, 20, 100])
        failures = random.randint(0, n)
        counts.append(
            {"executions": n, "successes": n - failures, "failures": failures, "runtime_us_sum": n * 3 * 10**6}
        )
        targets[f"{place:03}"] = {"expected_runtime_s": random.choice([None, 2.0]), "n_full": random.choice([1, 20])}
    told = 0
    for score in window_rows(counts, targets):
        statuses = ["healthy", "degraded", "unhealthy"] if score["n"] >= 10 else ["unknown"]
        row = score | {
            "status": random.choice(statuses), "response_ratio": score["asr"], "latency_p99_ms": 9000.0,
            "baseline_latency_ms": 1.0, "budget_spent": random.choice([None, 0.5, 2.0]), "allowed_failures": 0.5,
            "burn_rate_1h": random.choice([None, 2.0]), "burn_rate_6h": 2.0, "n_6h": score["n"],
            "failures_6h": score["failures"],
        }  # fmt: skip
        is_unknown = row["status"] == "unknown"
        differs = not row["is_provisional"] if is_unknown else row["status"] != row["state"]
        is_spending = differences.is_spent(row) or differences.is_burning(row)
        differs |= is_spending and "healthy" in (row["state"], row["status"])
        clauses = differences.why(row).split("; ")
        assert any(clauses) is differs, row
        assert len(set(clauses)) == len(clauses), "no clause is said twice"
        told += differs
    assert 0 < told < 300


# -- what was not evaluated --------------------------------------------------------------------------------------------


def test_a_session_without_signals_is_counted_and_in_no_list_of_the_worst(fleet: Project) -> None:
    scores = rows_of(fleet, "session_scores", "session_id")
    assert scores["session unseen"]["agent_reliability"] == 1.0  # the source's formula stays
    lines = block(shown(fleet), "Sessions:")
    assert lines[0].startswith("Sessions: 2 scored:")
    assert lines[0].endswith("1 without signals, not evaluated")
    assert not [text for text in lines if "session unseen" in text]
    [looped] = [text for text in lines if text.startswith("session looped")]
    assert [word for word in looped.split() if word in ("0.90", "–")] == ["0.90", "–"]  # no confidence signal
    metadata = fleet.materialize(hours_from(LAST, 1), only=["session_scores"])["session_scores"]
    assert "session unseen" not in metadata["worst sessions"].text
    assert "session bad" in metadata["worst sessions"].text


def test_the_report_of_one_agent_gives_a_session_that_nobody_evaluated_no_score(fleet: Project) -> None:
    _, _, unseen = block(shown_agent(fleet, "worker unseen"), "Sessions in 24 h")
    assert unseen.split() == ["session", "unseen", "–", "not", "evaluated", "–", "not", "evaluated", "1", "none"]
    _, _, looped = block(shown_agent(fleet, "worker looped"), "Sessions in 24 h")
    assert looped.split()[2] == "0.9" and looped.split()[4:7] == ["–", "not", "evaluated"]


def test_sessions_that_nobody_evaluated_are_no_good_news(project: Project) -> None:
    project.write_log("a.jsonl", [line(record | {"session_id": "s"}) for record in some("a", 2)])
    project.materialize(hours_from(LAST, 1), only=["ingest", "trace_risks", "session_scores"])
    console = Console(file=StringIO(), width=160)
    with project.warehouse.read() as session:
        print_health(console, session, hours_from(LAST, 1))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert block(text, "Sessions:") == ["Sessions: none scored: 1 without signals, not evaluated"]
    assert "nothing to evaluate: sessions: no signals lines" in text


def test_trials_without_times_have_no_runtime_and_nothing_rests_on_one(fleet: Project) -> None:
    agent_id = "tool-calling:gpt-4o"
    [(untimed, started, runtimes)] = fleet.query(
        "SELECT count(*), count(started_at), count(runtime_s) FROM executions WHERE agent_id = ?", [agent_id]
    )
    assert (untimed, started, runtimes) == (25, 0, 0)
    score = rows_of(fleet, "agent_health")[agent_id]
    assert (score["ar_s"], score["deviation"], score["untimed"], score["health_score"]) == (None, None, 25, 100.0)
    state = rows_of(fleet, "agent_health_state")[agent_id]
    assert (state["latency_p50_ms"], state["latency_p99_ms"], state["latency_sample_count"]) == (None, None, 0)
    assert (state["status"], state["sample_count"]) == ("healthy", 25)
    text = shown(fleet)
    assert " 0 ms" not in text
    [own] = [one for one in block(text, "Fleet at") if one.startswith(agent_id)]
    assert own.split()[-7:] == ["100.0", "40", "·", "–", "–", "–", "25"]
    [told] = [one for one in block(text, "Fleet at") if "– not evaluated: " in one]
    assert "no runtime in the logs" in told and "logs, or" not in told


def test_an_ailing_agent_without_times_shows_dashes(project: Project) -> None:
    trials = [made.tau_bench_trial(task, 0, float(task > 20)) for task in range(25)]
    project.write_bytes(made.TAU_BENCH_NAME, made.dumped(trials).encode(), modified=LAST)
    project.materialize(hours_from(LAST, 1), only=STATES)
    console = Console(file=StringIO(), width=160)
    with project.warehouse.read() as session:
        print_health(console, session, hours_from(LAST, 1))
    lines = block(console.file.getvalue(), "Health documents")  # type: ignore[attr-defined]
    assert lines[2].split()[:6] == ["tool-calling:gpt-4o", "unhealthy", "16%", "stable", "–", "–"]


@pytest.mark.parametrize("hours", [hours_from(LAST, 1), hours_from(LAST, 2)])
def test_a_mean_runtime_is_that_of_the_executions_whose_runtime_is_known(project: Project, hours: HourRange) -> None:
    records = [record | {"is_timed": place % 2 == 0} for place, record in enumerate(some("a", 10, runtime_s=8.0))]
    project.write_targets({"agents": {"a": {"expected_runtime_s": 7}}})
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours, only=[*FLEET, *STATES[1:]])
    score = rows_of(project, "agent_health")["a"]
    assert (score["n"], score["untimed"], score["ar_s"]) == (10, 5, 8.0)
    assert score["performance_score"] == pytest.approx(1 - (1 / 7) / 0.2)
    state = rows_of(project, "agent_health_state")["a"]
    assert (state["sample_count"], state["latency_sample_count"]) == (10, 5)
    assert state["latency_p50_ms"] == pytest.approx(8000, rel=0.01)


def in_utc(value: object) -> object:
    """Each driver has a class of its own for the zone."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def test_both_warehouses_show_the_same_verdicts(tmp_path: Path) -> None:
    texts, tables = [], []
    for engine in ("duckdb", "postgres"):
        project = Project(tmp_path / engine, TARGETS, engine=engine)
        project.write_log("a.jsonl", [line(record) for record in RECORDS if "lately" not in record["agent_id"]])
        trials = [made.tau_bench_trial(task, 0, float(task > 20)) for task in range(25)]
        project.write_bytes(made.TAU_BENCH_NAME, made.dumped(trials).encode(), modified=LAST)
        project.materialize(hours_from(LAST - HOUR, 2), only=[*FLEET, *STATES[1:], "error_budget"])
        texts.append(shown(project))
        rows = project.tables(names=["state_components"])["state_components"]
        tables.append({"state_components": [{name: in_utc(value) for name, value in row.items()} for row in rows]})
    assert texts[0] == texts[1]
    assert_same_tables(*tables)
    assert "healthy?" in texts[0] and "Systems differ on" in texts[0] and "gpt-4o unhealthy" in texts[0]


def test_a_dimension_without_anything_to_compare_is_not_evaluated() -> None:
    [expecting, untimed, without] = window_rows(
        [{"executions": 30, "successes": 30}, {"executions": 30, "successes": 30, "untimed": 30},
         {"executions": 30, "successes": 30}],
        {"a": {"expected_runtime_s": 5}, "b": {"expected_runtime_s": 5}, "c": {}},
    )  # fmt: skip
    assert explanation.unmeasured(expecting) == {"operation"}
    assert explanation.unmeasured(untimed) == explanation.unmeasured(without) == {
        "performance", "stability", "operation",
    }  # fmt: skip
    [checked, triggered, once_long] = window_rows(
        [{"executions": 30, "successes": 30, "sla_checked": 1}, {"executions": 30, "successes": 30, "triggers": 1},
         {"executions": 30, "successes": 30, "triggers": 1, "long_running": 1}],
        {"a": {"expected_runtime_s": 5}, "b": {"expected_runtime_s": 5}, "c": {}},
    )  # fmt: skip
    assert explanation.unmeasured(checked) == explanation.unmeasured(triggered) == frozenset()
    assert explanation.unmeasured(once_long) == {"performance"}


# -- the endpoint ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answers(fleet: Project) -> Iterator[Served]:
    with readers_in_this_process(), served(fleet.warehouse_path, targets=fleet.targets_path) as server:
        yield server


def test_the_endpoint_lists_agents_in_that_order_and_says_what_a_score_rests_on(
    fleet: Project, answers: Served
) -> None:
    rows = rows_of(fleet, "agent_health")
    items = answers.ask("/agents").json["agents"]
    assert [item["agent_id"] for item in items] == in_order(list(rows.values()), rows_of(fleet, "agent_now"))
    for item in items:
        assert {name: item[name] for name in ("is_provisional", "n", "n_full")} == {
            name: rows[item["agent_id"]][name] for name in ("is_provisional", "n", "n_full")
        }
    one = answers.ask("/agents/failed%20four%20of%20four").json
    assert (one["state"], one["is_provisional"], one["n"], one["n_full"]) == ("healthy", True, 4, 20)
    document = answers.ask("/agents/failed%20four%20of%20four/.well-known/agent-health").json
    told = document["extensions"]["org.health-assets.agent-health-model"]
    assert (told["is_provisional"], told["n"], told["n_full"]) == (True, 4, 20)


def test_the_endpoint_says_which_dimensions_were_evaluated_and_tells_no_latency_of_runs_without_times(
    answers: Served,
) -> None:
    one = answers.ask("/agents/tool-calling:gpt-4o").json
    assert {name: part["is_evaluated"] for name, part in one["dimensions"].items()} == {
        "reliability": True, "performance": False, "stability": False, "operation": False,
    }  # fmt: skip
    assert (one["inputs"]["ar_s"], one["inputs"]["untimed"]) == (None, 25)
    document = answers.ask("/agents/tool-calling:gpt-4o/.well-known/agent-health").json
    assert not [name for name in document["calibration"] if name.startswith("latency")]
    assert document["calibration"]["sample_count"] == 25


def test_the_document_leaves_out_dimensions_that_nobody_evaluated(fleet: Project, answers: Served) -> None:
    told = {}
    for name in rows_of(fleet, "agent_health"):
        one = answers.ask(f"/agents/{quote(name, safe='')}").json
        if one["health_score"] is None:
            continue
        document = answers.ask(f"/agents/{quote(name, safe='')}/.well-known/agent-health").json
        told[name] = set(document["extensions"]["org.health-assets.agent-health-model"]["components"])
        assert told[name] == {part for part, said in one["dimensions"].items() if said["is_evaluated"]}
    assert told["tool-calling:gpt-4o"] == {"reliability"}
    assert {"reliability", "performance", "stability"} in told.values()


def test_the_endpoint_gives_a_session_that_nobody_evaluated_no_score(answers: Served) -> None:
    unseen = answers.ask("/sessions/session%20unseen").json
    for metric in ("agent_reliability", "agent_consistency"):
        own = unseen[metric]
        assert [own[name] for name in ("is_evaluated", "score", "passed", "band")] == [False, None, None, None]
        assert own["reason"] in ("No traces or signals to evaluate.", "No evaluable traces.")
    looped = answers.ask("/sessions/session%20looped").json
    assert (looped["agent_reliability"]["score"], looped["agent_consistency"]["score"]) == (pytest.approx(0.9), None)
    bad = answers.ask("/sessions/session%20bad").json
    assert bad["agent_consistency"]["is_evaluated"] and bad["agent_consistency"]["reason"] is None


# -- sentences and their events ----------------------------------------------------------------------------------------


@pytest.fixture
def alarmed(tmp_path: Path) -> Path:
    """An agent that lost most in one component to its runtime, and most in one dimension to its failures."""
    warehouse = tmp_path / "health.duckdb"
    bad = {
        "success_score": 0.5, "failure_score": 0.1, "performance_score": 0.0, "asr": 0.457, "afh": 10.0, "ar_s": 28.9,
        "expected_runtime_s": 20.0, "deviation": 0.4, "expected_success_rate": 0.95, "expected_failures_per_hour": 1.0,
    }  # fmt: skip
    events = [
        {"agent_id": "crm", "kind": kind, "rank": rank, "event_id": f"{kind} {rank}"}
        for kind in ("slow_run", "failure")
        for rank in (1, 2)
    ]
    few = {"is_provisional": True, "n_full": 20}
    fill_hour(warehouse, at(0), [scored("crm", 100.0), scored("few", 100.0)])
    look(warehouse, [Floor(), Drop(), StateWorsened()])
    fill_hour(
        warehouse, at(1), [scored("crm", 41.2, **bad), scored("few", 60.0, n=12, **few)], score_evidence=events
    )  # fmt: skip
    look(warehouse, [Floor(), Drop(), StateWorsened()])
    return warehouse


def test_the_sentence_of_an_alert_and_the_ids_under_it_are_of_one_component(alarmed: Path) -> None:
    own = [incident for incident in incidents(alarmed) if incident.subject_id == "crm"]
    assert len(own) == 3
    for incident in own:
        assert incident.reason.endswith("46% succeeded, 95% expected")
        first, *others = json.loads(incident.evidence)["explanation"]
        assert (first["component"], first["evidence"]) == ("success", ["failure 1", "failure 2"])
        assert [loss["component"] for loss in others] == ["failures", "performance"]
        lines = message_of(Notice(incident=incident, event=OPENED, channel="chat")).lines
        assert lines[0] == "-14.0 success: 46% succeeded, 95% expected (failure 1, failure 2)"
        assert lines[2] == "-20.0 performance: 28.9 s a run, 20 s expected (slow_run 1, slow_run 2)"
    console = Console(file=StringIO(), width=160)
    with Warehouse(str(alarmed)).read() as session:
        print_alerts(console, session, START, Targets())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "failure 1, failure 2" in text
    assert "slow_run" not in text


def test_a_message_about_a_score_of_few_executions_says_that_it_is_provisional(alarmed: Path) -> None:
    doubted = "provisional, 12 of 20 runs"
    reasons = {one.rule: one.reason for one in incidents(alarmed) if one.subject_id == "few"}
    assert reasons["floor"].startswith(f"few scored 60.0 ({doubted}), below 65")
    assert f"from 100.0 to 60.0 ({doubted}): " in reasons["drop"]
    assert reasons["state_worsened"].startswith(f"few went from healthy to unhealthy (60.0; {doubted})")
    for incident in incidents(alarmed):
        evidence = json.loads(incident.evidence)
        assert evidence["is_provisional"] is (incident.subject_id == "few")
        assert ("provisional" in incident.reason) is (incident.subject_id == "few")


# -- words -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0%"), (1, "100%"), (0.457, "46%"), (0.99, "99%"), (0.9901, "99%"), (0.9947, "99.4%"), (0.9999, "99.99%"),
     (0.0049, "0.5%"), (0.00004, "0.004%"), (66.67, "6,667%")],
)  # fmt: skip
def test_what_is_not_all_is_never_called_all_and_what_is_not_nothing_never_nothing(value: float, told: str) -> None:
    assert share(value) == told


def test_two_shares_that_differ_do_not_read_the_same() -> None:
    assert share(0.948, beside=0.95) == "94.8%"
    assert share(0.95, beside=0.95) == share(0.95) == "95%"


@pytest.mark.parametrize(
    ("amount", "told"),
    [(0, "0.0"), (0.0601, "0.060"), (0.5, "0.50"), (0.996, "1.00"), (1, "1.0"), (29.85, "29.9"), (1234.5, "1,234.5")],
)
def test_a_small_amount_keeps_two_digits_that_count(amount: float, told: str) -> None:
    assert few_digits(amount) == told
