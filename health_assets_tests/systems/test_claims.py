"""Claims of logs that evidence contradicts: each is counted, by agent and hour, and no score changes by it."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import load_targets
from health_assets.quality.batches import Source
from health_assets.quality.evaluation import CheckResult, evaluate
from health_assets.systems.agent_health_model.claims import OVERDUE_HOURS, claims_of
from health_assets.systems.agent_health_model.names import CLAIMS
from health_assets.systems.suites import SUITES
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import DUCKDB_BY_DAY, ENGINES, Project, hours_from

STEPS = ("ingest", "health_components", "agent_health")
MINUTE = HOUR / 60
ONE_HOUR = hours_from(START, 1)
TARGETS = {
    "defaults": {},
    "agents": {
        "strict": {"sla_s": 60},
        "slow": {"expected_runtime_s": 10, "long_running_factor": 5},
        "liar": {"expected_runtime_s": 10, "long_running_factor": 5},
        "gone": {"retired": True},
    },
    "names": [{"match": "pod-.*", "agent": "pod"}],
}


def run(execution_id: str, agent_id: str, minute: float = 30, runtime_s: float = 60.0, **fields: Any) -> Record:
    return execution(execution_id, agent_id, START + minute * MINUTE, runtime_s, **fields)


def call(call_id: str, status: str, minute: float = 29, kind: str = "tool_call", **fields: Any) -> Record:
    at = START + minute * MINUTE
    name = {"model_call": "model", "tool_call": "tool"}[kind]
    return {"type": kind, "call_id": call_id, name: "x", "ended_at": at.isoformat(), "status": status, **fields}


def made(folder: Path, *records: Record, hours: HourRange = ONE_HOUR, engine: str = "duckdb") -> Project:
    project = Project(folder, TARGETS, engine=engine)
    project.write_log("a.jsonl", map(line, records))
    project.materialize(hours, only=STEPS)
    return project


def found(project: Project, hours: HourRange = ONE_HOUR) -> list[dict[str, Any]]:
    with project.warehouse.read() as session:
        rows = claims_of(session, hours)
        return session.dicts(rows.order_by("hour", "agent_id", "claim"))


def counts(project: Project, hours: HourRange = ONE_HOUR) -> dict[tuple[str, str], int]:
    return {(row["agent_id"], row["claim"]): row["runs"] for row in found(project, hours)}


def checked(project: Project, hours: HourRange = ONE_HOUR) -> CheckResult:
    with project.warehouse.read() as session:
        source = Source(
            asset="agent_health", session=session, hours=hours, settings=project.settings,
            targets=load_targets(project.settings.targets),
        )  # fmt: skip
        [result] = evaluate(SUITES["agent_health"], source, ["claims_agree_with_evidence"])
    return result


@pytest.mark.parametrize("engine", ENGINES)
def test_every_claim_that_evidence_contradicts_is_counted_by_agent(tmp_path: Path, engine: str) -> None:
    records = [
        run("e1", "errs", error="Timeout: no answer"), run("e2", "errs", 31, error="Timeout"), run("e3", "errs", 32),
        run("e4", "counts", error_count=12, api_calls=12), run("e5", "counts", error_count=12),
        run("e6", "alone"), call("c1", "failure", agent_id="alone", execution_id="e6"),
        call("c2", "failure", 29.5, "model_call", execution_id="e6"),
        run("e7", "again", 10, status="failure", error="down"), run("e7", "again", 20),
        run("e8", "strict", runtime_s=61, sla_breached=False),
        run("e9", "slow", runtime_s=51, is_timed=False), run("e10", "slow", 31, runtime_s=2),
    ]  # fmt: skip
    project = made(tmp_path, *records, engine=engine)
    assert counts(project) == {
        ("errs", "successes_with_an_error"): 2,
        ("counts", "successes_with_many_errors"): 2,
        ("alone", "successes_without_a_good_call"): 1,
        ("again", "replaced_failures"): 1,
        ("strict", "unflagged_breaches"): 1,
        ("slow", "untimed_long_runs"): 1,
    }
    result = checked(project)
    assert result.check.severity == "warn" and not result.success
    assert result.unexpected_count == 6 and result.element_count == len(project.rows("agent_health"))
    assert set(CLAIMS) <= set(result.samples.columns)


BELIEVED: tuple[dict[str, Any], ...] = (
    {"status": "failure", "error": "Timeout", "error_count": 12},
    {"error": "  \n"},
    {"error": "None"},
    {"error_count": 2},
    {"error_count": 0, "api_calls": 0},
    {"error_count": 11, "api_calls": 12},
    {"error_count": 3, "actions": ["a", "b", "c", "d"]},
    {"runtime_s": 60, "sla_s": 60, "sla_breached": False},
    {"runtime_s": 61, "sla_s": 60, "sla_breached": True},
    {"runtime_s": 61, "sla_s": 60},
    {"runtime_s": 600, "sla_breached": False},
    {"runtime_s": 600, "is_timed": False},
    {"runtime_s": 60, "sla_s": 60, "is_timed": False},
    {"agent_id": "slow", "runtime_s": 50, "is_timed": False},
    {"agent_id": "slow", "runtime_s": 51},
    {"agent_id": "gone", "error": "Timeout"},
)
CONTRADICTED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"error_count": 3}, "successes_with_many_errors"),
    ({"error_count": 12, "api_calls": 12}, "successes_with_many_errors"),
    ({"error_count": 4, "actions": ["a", "b", "c", "d"], "api_calls": 3}, "successes_with_many_errors"),
    ({"runtime_s": 60.000001, "sla_s": 60, "sla_breached": False}, "unflagged_breaches"),
    ({"runtime_s": 60.000001, "sla_s": 60, "is_timed": False}, "untimed_long_runs"),
    ({"agent_id": "strict", "runtime_s": 61, "is_timed": False, "sla_breached": False}, "untimed_long_runs"),
    ({"agent_id": "slow", "runtime_s": 50.000001, "is_timed": False}, "untimed_long_runs"),
)


def _numbered(many: Iterable[dict[str, Any]]) -> list[Record]:
    """Executions with these fields, each of an agent of its own where none is named."""
    return [run(f"e{n}", **{"agent_id": f"a{n}", "runtime_s": 60.0} | fields) for n, fields in enumerate(many)]


def test_claims_that_nothing_contradicts_are_believed(tmp_path: Path) -> None:
    project = made(tmp_path, *_numbered(BELIEVED))
    assert len(project.rows("executions")) == len(BELIEVED)
    assert found(project) == [] and checked(project).success


CLAIMS_OF_LIES = {"successes_with_an_error", "successes_with_many_errors", "untimed_long_runs"}
LIES = {"error": "x", "error_count": 12, "is_timed": False}


@pytest.fixture(scope="module")
def contradicted(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Runs of `CONTRADICTED`, of an agent with three errors, of one that lies always, and of one that knows no start."""
    return made(
        tmp_path_factory.mktemp("contradicted"),
        run("first", "errs", error="x"),
        run("last", "errs", 50, error="x"),
        run("second", "errs", 40, error="x"),
        *_numbered(fields for fields, _ in CONTRADICTED),
        *(run(f"lie {n}", "liar", n, 600, **LIES) for n in range(20)),
        run("t1", "times", is_timed=False),
        run("t2", "times"),
        run("t3", "times", is_timed=True),
    )


def test_the_latest_of_them_is_told_with_its_line(contradicted: Project) -> None:
    [row] = [row for row in found(contradicted) if row["agent_id"] == "errs"]
    assert (row["event_id"], row["source_file"], row["line_number"]) == ("last", "a.jsonl", 2)
    assert row["happened_at"] == START + 50 * MINUTE and row["runs"] == 3


def test_limits_are_those_of_records_and_targets(contradicted: Project) -> None:
    records = _numbered(fields for fields, _ in CONTRADICTED)
    expected = {(record["agent_id"], claim): 1 for record, (_, claim) in zip(records, CONTRADICTED, strict=True)}
    others = {("errs", "successes_with_an_error"): 3} | {("liar", claim): 20 for claim in CLAIMS_OF_LIES}
    assert counts(contradicted) == expected | others


def test_scores_stay_what_the_sources_make_of_the_claims(contradicted: Project) -> None:
    [row] = [row for row in contradicted.rows("agent_health") if row["agent_id"] == "liar"]
    assert row["health_score"] == 100.0 and row["state"] == "healthy"
    assert {claim for agent_id, claim in counts(contradicted) if agent_id == "liar"} == CLAIMS_OF_LIES


def test_what_a_line_says_of_its_times_is_kept_where_it_says_that_nobody_knows_the_start(
    contradicted: Project,
) -> None:
    known = {
        row["execution_id"]: (row["started_at"], row["runtime_s"], row["untimed_s"])
        for row in contradicted.rows("executions")
        if row["agent_id"] == "times"
    }
    start: datetime = START + 29 * MINUTE
    assert known == {"t1": (None, None, 60.0), "t2": (start, 60.0, None), "t3": (start, 60.0, None)}


@pytest.mark.parametrize("engine", DUCKDB_BY_DAY)  # the test above runs the same statements on both
def test_a_success_with_one_good_call_is_believed(tmp_path: Path, engine: str) -> None:
    records = [
        run("r", "a"), call("c1", "failure", agent_id="a", execution_id="r"),
        call("c2", "success", 28, "model_call", agent_id="a", execution_id="r"),
        run("r", "b"), call("c3", "failure", agent_id="b", execution_id="r"),  # another agent's run of the same id
        call("c31", "failure", agent_id="b", execution_id="r"), run("one", "b"), call("c32", "failure", execution_id="one"),
        run("r", "pod-1"), call("c4", "failure", agent_id="pod", execution_id="r"),
        call("c41", "failure", agent_id="pod-1", execution_id="r"),
        run("s", "pod-1"), call("c5", "failure", agent_id="pod-1", execution_id="s"),
        call("c6", "success", agent_id="pod", execution_id="s"),
        run("t", "a", 5, 600), call("c7", "failure", 4, agent_id="a", execution_id="t"),
        call("c71", "failure", 4, agent_id="a", execution_id="t"), call("c8", "success", -3, agent_id="a", execution_id="t"),
        run("u", "a", 5, 3901), call("c9", "failure", 4, agent_id="a", execution_id="u"),  # began before what is seen
        call("c91", "failure", 4, agent_id="a", execution_id="u"),
        run("v", "a", status="failure"), call("c10", "failure", agent_id="a", execution_id="v"),
        call("c11", "failure", agent_id="a", execution_id="v"),
    ]  # fmt: skip
    hours = hours_from(START - HOUR, 2)
    project = made(tmp_path, *records, hours=hours, engine=engine)
    expected = {("b", "successes_without_a_good_call"): 1, ("pod", "successes_without_a_good_call"): 1}
    assert counts(project) == counts(project, hours) == expected


@pytest.mark.parametrize("engine", DUCKDB_BY_DAY)
def test_a_run_that_ended_with_a_failed_call_and_no_line_is_counted_once_it_is_overdue(
    tmp_path: Path, engine: str
) -> None:
    hours = hours_from(START, OVERDUE_HOURS + 2)
    late = 60 * OVERDUE_HOURS
    records = [
        run("known", "a"),
        call("c1", "failure", 10, agent_id="a", execution_id="lost"), call("c2", "success", 9, agent_id="a", execution_id="lost"),
        call("c3", "failure", 20, agent_id="a", execution_id="ended"), run("ended", "a", late + 59, 7 * 3600),
        call("c4", "failure", 21, agent_id="a", execution_id="goes on"), call("c5", "success", 200, execution_id="goes on"),
        call("c6", "failure", 22, agent_id="a", execution_id="fails on"), call("c7", "failure", 90, agent_id="a", execution_id="fails on"),
        call("c8", "failure", 23, agent_id="silent", execution_id="lost"),  # tells of no execution at all
        call("c9", "failure", 24, execution_id="nobody's"), call("c10", "success", 25, agent_id="a", execution_id="fine"),
        run("lost", "b", 26),  # another agent's run of the same id
    ]  # fmt: skip
    project = made(tmp_path, *records, hours=hours, engine=engine)
    rows = found(project, hours)
    assert [(row["hour"], row["agent_id"], row["event_id"]) for row in rows] == [
        (START + OVERDUE_HOURS * HOUR, "a", "lost"),
        (START + (OVERDUE_HOURS + 1) * HOUR, "a", "fails on"),
    ]
    assert {row["claim"] for row in rows} == {"failing_runs_without_end"}
    one_by_one = [row for hour in hours for row in found(project, HourRange.of(hour))]
    assert one_by_one == rows
