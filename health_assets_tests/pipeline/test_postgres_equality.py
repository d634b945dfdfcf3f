"""The same logs on DuckDB and on PostgreSQL: the same rows in every table, and the same answers."""

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from io import StringIO
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import quote

import pytest
from rich.console import Console

from health_assets.apps.alerts.budget_rules import BudgetBurn, BudgetBurnFast, BudgetBurnSlow
from health_assets.apps.alerts.config import Alerts, Webhook
from health_assets.apps.alerts.delivering import deliver
from health_assets.apps.alerts.digest_store import write_due_digest
from health_assets.apps.alerts.now_rules import FailingNow, SuspectNow
from health_assets.apps.alerts.outbox import recent_incidents
from health_assets.apps.alerts.periodic import PERIODIC, DigestSchedule
from health_assets.apps.alerts.rules import (
    Drop,
    ExpectationFailed,
    Floor,
    HourLate,
    ModelDegraded,
    NoData,
    StateWorsened,
)
from health_assets.apps.alerts.silencing import Silences
from health_assets.apps.alerts.status_rules import ProbeWorsened, StatusWorsened
from health_assets.apps.alerts.tick_runner import tick
from health_assets.apps.report.incidents_block import print_alerts
from health_assets.cli.demo import Demo
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import Targets
from health_assets.systems.declared_assets import DERIVED
from health_assets.systems.suites import SUITES
from health_assets.systems.survey.surveying import keep_probes, summarise
from health_assets.warehouse.partition_states import PartitionStates
from health_assets_tests.quality.test_suites import red, results_of
from health_assets_tests.support.alerts_made import later
from health_assets_tests.support.logs_made import (
    EVALUATORS,
    START,
    Record,
    cut_into_files,
    execution,
    line,
    random_lines,
    random_targets,
)
from health_assets_tests.support.projects import (
    ENGINES,
    OF_A_WEEK,
    RESULT_TABLES,
    Project,
    assert_tables_equal_to_9_digits,
    hours_from,
    needs_real_logs,
)
from health_assets_tests.support.receivers import receiver
from health_assets_tests.support.serving_made import served
from health_assets_tests.support.surveys_made import made_probe

HOURS = hours_from(START, 14)


class Pair(NamedTuple):
    """Two projects with the same logs and targets."""

    duckdb: Project
    postgres: Project

    def materialize(self, hours: HourRange) -> None:
        for project in self:
            project.materialize(hours)

    def assert_equal(self) -> None:
        tables, expected = self.postgres.tables(), self.duckdb.tables()
        assert_tables_equal_to_9_digits(tables, expected)
        empty = {name for name, rows in expected.items() if not rows}
        assert not empty & set(DERIVED) - OF_A_WEEK, f"nothing was compared in {empty}"
        noted = [project.query("SELECT asset, hour, rows FROM partition_states") for project in self]
        assert sorted(noted[0]) == sorted(noted[1])


def random_pair(folder: Path, seed: int) -> Pair:
    random = Random(seed)
    targets = random_targets(random) | {"evaluators": EVALUATORS}
    made = Pair(*(Project(folder / engine, targets, 4, 9, engine=engine) for engine in ENGINES))
    lines = random_lines(random, 500, 20, evaluation_share=0.1, cancelled_share=0.1)
    for name, part in cut_into_files(random, lines).items():
        for project in made:
            project.write_log(name, part, modified=START + HOUR)
    return made


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    made = random_pair(tmp_path_factory.mktemp("pair"), 31)
    made.materialize(HOURS)
    return made


def test_every_table_of_random_logs_is_the_same_on_both_engines(pair: Pair) -> None:
    pair.assert_equal()


@pytest.mark.nightly
def test_every_table_of_the_sample_fleet_is_the_same_on_both_engines(tmp_path: Path) -> None:
    sample = Demo(tmp_path / "sample")
    hours = sample.make_samples(START + 24 * HOUR)
    projects = []
    for engine in ENGINES:
        project = Project(tmp_path / engine, engine=engine)
        project.raw = sample.raw
        (tmp_path / engine / "targets.yaml").write_bytes(sample.targets.read_bytes())
        project.targets = {}
        projects.append(project)
    fleet = Pair(*projects)
    fleet.materialize(HourRange(hours.start, hours.start + 30 * HOUR))
    fleet.assert_equal()


@pytest.mark.nightly
@needs_real_logs
def test_every_table_of_the_real_logs_is_the_same_on_both_engines(tmp_path: Path) -> None:
    projects = [Project(tmp_path / engine, engine=engine) for engine in ENGINES]
    start = START.replace(year=2024, month=11, day=6, hour=0)
    for project in projects:
        project.copy_real_logs()
        project.materialize(hours_from(start, 48))
    assert projects[0].rows("executions"), "no execution in these hours"
    assert_tables_equal_to_9_digits(projects[1].tables(), projects[0].tables())


# -- what engines are known to see differently ---------------------------------------------------------------------------

NAMES = ["b", "B", "a-1", "a_1", "a1", "Ä", "é", "z", "~", "日本", "", " a", "it's", 'q"', "\\", "$1", "?", "%s", "😀"]


def strange_records() -> Iterator[Record]:
    """Names in any script, and the least and the greatest numbers."""
    for agent in NAMES:
        for n, model in enumerate(NAMES):
            if model and agent.strip() == agent and agent:
                yield execution(
                    f"e {agent} {n}", agent, START + n * HOUR / 60, model=model, error=model, session_id="s", task_id=model,
                    actions=NAMES[: n + 1], signals={"confidence": 0.5},
                    violations=[{"constraint": model, "severity": "low"}],
                )  # fmt: skip
    for n, number in enumerate([0, 5e-324, 1e-300, 1e-9, 0.1, 1 / 3, 1e15, 1e300, 1.7e308]):
        yield execution(
            f"e{n}", f"a{n % 2}", START, 0.000001 * 10**n, cost_usd=number, call_latency_s=number, task_id="t",
            api_calls=2**62, confidence=min(number, 1), signals={"confidence": min(number, 1)}, session_id="t",
        )  # fmt: skip


FEW_STEPS = ("ingest", "health_components", "agent_health", "usage_components", "agent_usage", "usage_breakdown", "trace_risks", "session_scores",
             "task_consistency", "agent_reliability")  # fmt: skip
"""The steps that make most of names and numbers."""


@pytest.mark.parametrize("only", [FEW_STEPS, pytest.param(None, marks=pytest.mark.nightly)], ids=["few steps", "all"])
def test_names_in_any_script_and_extreme_numbers_come_out_the_same_on_both_engines(
    tmp_path: Path, only: Sequence[str] | None
) -> None:
    projects = [Project(tmp_path / engine, {"agents": {"listed $1": {}}}, engine=engine) for engine in ENGINES]
    for project in projects:
        project.write_log("ü?$1 %s.jsonl", map(line, strange_records()))
        project.materialize(HourRange.of(START), only=only)
    assert len(projects[1].rows("executions")) > 200
    assert_tables_equal_to_9_digits(projects[1].tables(), projects[0].tables())


def test_what_postgresql_cannot_hold_is_shown_as_a_replacement_and_loses_no_line(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", engine="postgres")
    violations = [{"constraint": "a\0b \\u0000", "severity": "high"}]
    record = execution("e\0", "a\0b", START, task_id="t", actions=["x\0", "y"], violations=violations)
    lenient = '[{"constraint": "c", "severity": "low", "severity": "high", "x": [NaN, -Infinity, "NaN",]}]'
    other = line(execution("e2", "b", START, task_id="t", violations="?")).replace('"?"', lenient)
    project.write_log("a.jsonl", [line(record), other, '{"type": "nul \\u0000"}', b"\x00"])
    project.materialize(HourRange.of(START), only=["ingest", "task_consistency", "agent_reliability"])
    row, second = sorted(project.rows("executions"), key=lambda row: row["line_number"])
    assert json.loads(second["violations"]) == [{"constraint": "c", "severity": "low"}]
    assert (row["execution_id"], row["agent_id"], row["actions"]) == ("e\ufffd", "a\ufffdb", ["x\ufffd", "y"])
    assert json.loads(row["violations"]) == [{"constraint": "a\ufffdb \\u0000", "severity": "high"}]
    harm = {row["agent_id"]: row["s_harm"] for row in project.rows("agent_reliability")}
    assert harm == {"a\ufffdb": 0.0, "b": 0.75}, "as on DuckDB, of a member that stands there twice the first counts"
    assert len(project.rows("rejected_records")) == 2


# -- what is made of the tables ------------------------------------------------------------------------------------------


def test_every_check_of_every_table_can_be_evaluated_on_postgresql(pair: Pair) -> None:
    looked_at = set()
    for asset in (*RESULT_TABLES, "raw_logs"):
        with pair.postgres.warehouse.write() as session:
            results = results_of(pair.postgres, session, asset, HOURS)
        assert {result.check.severity for result in results.values() if not result.success} <= {"warn"}, asset
        looked_at |= {asset for result in results.values() if result.element_count}
    assert looked_at == {*RESULT_TABLES, "raw_logs"}


def test_a_broken_rule_turns_its_check_red_on_postgresql(pair: Pair) -> None:
    pair.postgres.change("UPDATE agent_health SET health_score = 101 WHERE hour = ?", [START])
    with pair.postgres.warehouse.write() as session:
        assert red(results_of(pair.postgres, session, "agent_health", HourRange.of(START)))
        assert "agent_health" in SUITES
    pair.postgres.materialize(HourRange.of(START), only=["agent_health"])


def rounded(number: str) -> float:
    return round(float(number), 9)


@pytest.mark.nightly
def test_the_endpoint_answers_the_same_from_both_engines(pair: Pair) -> None:
    sessions = [row["session_id"] for row in pair.duckdb.rows("session_scores")][:3]
    lists = ["/tools?limit=1000", *(f"/usage?sort={order}" for order in ("cost", "tokens", "cost_per_success"))]
    paths = ["/agents?limit=100", "/models", *(f"/sessions/{quote(name, safe='')}" for name in sessions)]
    answers = []
    for project in pair:
        with served(project.warehouse_url, targets=project.targets_path) as server:
            agents = [agent["agent_id"] for agent in server.ask(paths[0]).json["agents"]]
            own = [
                f"/agents/{quote(name, safe='')}{end}" for name in agents for end in ("", "/.well-known/agent-health")
            ]
            answers.append({path: server.ask(path).json for path in (*paths, *own)})
            # sums of dollars that were added up exactly may be rounded otherwise in the seventeenth digit
            answers[-1] |= {path: json.loads(server.ask(path).body, parse_float=rounded) for path in lists}
    assert len(answers[0]) > 8
    assert answers[0] == answers[1]
    assert answers[0]["/tools?limit=1000"]["tools"] and answers[0]["/usage?sort=cost"]["usage"]
    assert any(loss["evidence"] for answer in answers[0].values() for loss in answer.get("explanation", ()))


@pytest.mark.nightly
def test_the_same_incidents_are_told_once_from_both_engines(pair: Pair) -> None:
    rules = (
        StateWorsened(least_executions=1, good_hours=1), Floor(below=95, least_executions=1, good_hours=1, margin=0),
        Drop(points=1, least_executions=1, good_hours=1), BudgetBurn(rate=1, least_failures=1, good_hours=1),
        BudgetBurnFast(), BudgetBurnSlow(), FailingNow(), SuspectNow(), StatusWorsened(good_hours=1), ProbeWorsened(),
        ModelDegraded(least_calls=1, good_hours=1), ExpectationFailed(severities=("error", "warn")), HourLate(), NoData(),
    )  # fmt: skip
    found = []
    for project in pair:
        with project.warehouse.write() as session:  # as if it had looked before
            PartitionStates(session).note("alerts", HourRange.of(START), [])
        with receiver() as hook:
            alerts = Alerts(rules=rules, channels={"c": Webhook(type="webhook", url=hook.url)}, digest_above=1000)
            now = later()
            done = tick(project.settings, alerts, Targets(), now)
            again = tick(project.settings, alerts, Targets(), now)
        assert str(again) == "0 hours judged, 0 incidents opened, 0 closed; 0 messages delivered"
        assert len(done.watched.hours) == pair.duckdb.lookback_hours + 1
        assert len(hook.keys) == len(set(hook.keys))
        assert sum(len(body.get("notices", "1")) for body in hook.bodies) == len(done.sent.delivered)
        with project.warehouse.read() as session:
            kept = recent_incidents(session, START)
            print_alerts(Console(file=StringIO()), session, START, Targets())
        of_hours = [one for one in kept if one.rule != "hour_late"]  # which is about now
        found.append(sorted(of_hours, key=lambda one: one.incident_id))
    assert found[0] == found[1]
    assert {one.rule for one in found[0]} >= {"floor", "drop", "budget_burn", "model_degraded"}
    assert any(one.closed_at for one in found[0])


def test_silences_and_digests_are_the_same_on_both_engines(pair: Pair) -> None:
    now, end = later(), START + 12 * HOUR
    schedule = DigestSchedule(every="daily", at=f"{end:%H:%M}")
    told = []
    for project in pair:
        silences = Silences(project.warehouse)
        wanted = {
            "agents": ["*"],
            "rules": ["floor"],
            "reason": 'a "move"',
            "by": "ops",
            "until": now + HOUR,
            "now": now,
        }
        kept = silences.add(**wanted)
        with receiver() as hook:
            alerts = Alerts(channels={"c": Webhook(type="webhook", url=hook.url)}, digest=schedule)
            digest = write_due_digest(project.warehouse, alerts, project.settings, Targets(), end)
            deliver(project.warehouse, project.warehouse, alerts, end)
        assert digest is not None
        bodies = [body for body in hook.bodies if body["event"] == PERIODIC]
        told.append((bodies, silences.listed(now), silences.end(kept.silence_id, now + timedelta(minutes=1))))
    assert told[0] == told[1]
    [body] = told[0][0]
    assert body["fleet"]["agents"] > 0


def test_a_survey_is_kept_and_summed_up_on_postgresql(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", engine="postgres")
    with project.warehouse.write() as session:
        keep_probes(session, [made_probe("a", "p", START, status="healthy"), made_probe("b", "q", START, "timeout")])
        summarise(session, HourRange.of(START))
    rates = {row["platform"]: row["survival_rate"] for row in project.rows("survey_summary")}
    assert rates == {"all": 0.5, "p": 1.0, "q": 0.0}
