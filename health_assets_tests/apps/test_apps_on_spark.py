"""What goes on beside the runs does on a Spark warehouse what it does on DuckDB: retention, alerts, survey, endpoint."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from rich.console import Console

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from health_assets.apps.alerts.config import Alerts, Webhook
from health_assets.apps.alerts.outbox import recent_incidents
from health_assets.apps.alerts.rules import RULES, Floor, StateWorsened
from health_assets.apps.alerts.tick_runner import tick
from health_assets.apps.report.agent import print_agent
from health_assets.apps.serving.history.exporter import fill
from health_assets.apps.serving.history.layout import Kept, read_account, read_rows
from health_assets.core.hours import HOUR
from health_assets.core.targets import load_targets
from health_assets.pipeline.retention import prune
from health_assets.systems.pruning import PRUNED_COMPONENTS
from health_assets.systems.survey.surveyed_agents import RegisteredAgent
from health_assets.systems.survey.surveying import keep_probes, summarise, survey
from health_assets_tests.pipeline.test_spark_equality import Pair
from health_assets_tests.support.alerts_made import later
from health_assets_tests.support.health_servers import Host, answers, document
from health_assets_tests.support.logs_made import AGENTS, START, cut_into_files, random_lines
from health_assets_tests.support.projects import (
    SURVEY_TABLES,
    Project,
    assert_tables_equal_to_9_digits,
    hours_from,
)
from health_assets_tests.support.receivers import receiver
from health_assets_tests.support.serving_made import Served, served
from health_assets_tests.support.spark_servers import sail
from health_assets_tests.support.surveys_made import made_probe

pytestmark = pytest.mark.nightly  # by day the tables' equality on Sail stands for it
HOURS = hours_from(START, 6)
WINDOW_HOURS, LOOKBACK_HOURS = 3, 5


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The same logs in both, with all that follows from them."""
    folder, random = tmp_path_factory.mktemp("pair"), Random(8)
    targets = {"agents": {name: {"expected_runtime_s": 30, "n_full": 1} for name in AGENTS}}
    with sail() as url:
        made = Pair(
            Project(folder / "duckdb", targets, WINDOW_HOURS, LOOKBACK_HOURS),
            Project(folder / "spark", targets, WINDOW_HOURS, LOOKBACK_HOURS, engine="spark", url=url),
        )
        for name, lines in cut_into_files(random, random_lines(random, 300, len(HOURS))).items():
            made.write_log(name, lines)
        made.materialize(HOURS)
        yield made


@pytest.fixture
def copied(pair: Pair, tmp_path: Path) -> Pair:
    return Pair(pair.duckdb.copied(tmp_path / "duckdb"), pair.spark.copied(tmp_path / "spark"))


@pytest.mark.nightly
def test_rows_that_were_dropped_and_rows_that_came_back_are_the_same_on_spark(copied: Pair) -> None:
    before = START + 4 * HOUR
    pruned = [prune(project.warehouse, PRUNED_COMPONENTS, before, project.lookback_hours) for project in copied]
    assert pruned[0] == pruned[1]
    assert pruned[1].rows["executions"] and pruned[1].rows["health_components"]
    assert_same(copied)
    assert copied.spark.query("SELECT count(*) FROM executions WHERE hour < ?", [before]) == [(0,)]
    for project in copied:
        project.materialize(hours_from(START + HOUR, 2), only=["ingest", "health_components"])
    assert_same(copied)
    assert copied.spark.query("SELECT count(*) FROM executions WHERE hour < ?", [before]) != [(0,)]


def assert_same(pair: Pair) -> None:
    assert_tables_equal_to_9_digits(pair.spark.tables(), pair.duckdb.tables())


def test_incidents_and_what_people_are_told_of_them_are_the_same_on_spark(copied: Pair) -> None:
    now = later()
    found, told = [], []
    for project in copied:
        with receiver() as hook:
            rules = [rule() for rule in RULES.values() if rule not in (Floor, StateWorsened)]
            rules += [Floor(below=99, least_executions=1), StateWorsened(least_executions=1)]
            alerts = Alerts(rules=tuple(rules), channels={"hook": Webhook(type="webhook", url=hook.url)})
            done = tick(project.settings, alerts, load_targets(project.targets_path), now)
            again = tick(project.settings, alerts, load_targets(project.targets_path), now + HOUR / 2)
            told.append((str(done), str(again), sorted(map(_without_digits, hook.bodies))))
        with project.warehouse.read() as session:
            incidents = recent_incidents(session, START)
            [waiting] = session.query("SELECT count(*) FROM alert_deliveries WHERE delivered_at IS NULL")
        assert waiting == (0,)
        found.append(sorted(_without_digits(vars(incident)) for incident in incidents))
    assert found[0] == found[1] and len(found[1]) > 1
    assert told[0] == told[1] and told[1][2]


def _without_digits(told: Any) -> str:
    """What is told, with numbers to 9 digits."""

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rounded(one) for key, one in value.items()}
        if isinstance(value, list):
            return [rounded(one) for one in value]
        return round(value, 9) if isinstance(value, float) else value

    return json.dumps(rounded(told), sort_keys=True, default=str)


def test_probes_and_their_summary_are_the_same_on_spark(copied: Pair) -> None:
    random = Random(3)
    probes = [
        made_probe(random.choice("abcd"), "p", START + random.randrange(3) * HOUR, "valid", status="healthy", minute=minute)
        for minute in range(20)
    ]  # fmt: skip
    for project in copied:
        for batch in (probes[:8], probes[8:], probes[:2]):  # some come twice
            with project.warehouse.write() as session:
                keep_probes(session, batch)
        with project.warehouse.write() as session:
            summarise(session, hours_from(START, 3))
    found, expected = (project.tables(names=SURVEY_TABLES) for project in (copied.spark, copied.duckdb))
    assert_tables_equal_to_9_digits(found, expected)
    assert expected["agent_probes"] and expected["survey_summary"]


def test_a_survey_asks_who_was_not_asked_just_now_on_spark(copied: Pair) -> None:
    with Host(answers(document())) as host:
        agents = [RegisteredAgent(name=name, platform="p", url=f"{host.url}/{name}") for name in "abc"]
        settings = copied.spark.settings.model_copy(update={"allow_private_addresses": True, "survey_pause_s": 0})
        done = [survey(settings, some) for some in (agents[:2], agents)]
    assert [(one.probed, one.too_soon) for one in done] == [(2, 0), (1, 2)]
    assert len(copied.spark.rows("agent_probes")) == 3


@pytest.mark.nightly
def test_the_report_of_an_agent_is_the_same_on_spark(pair: Pair) -> None:
    for agent_id in AGENTS:
        told = []
        for project in pair:
            console = Console(file=io.StringIO(), width=200)
            with project.warehouse.read() as session:
                print_agent(console, session, HOURS, agent_id)
            told.append(console.file.getvalue())
        assert told[0] == told[1]


def test_the_endpoint_answers_the_same_on_spark(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("health_assets.apps.serving.sessions.TIMEOUT_S", 300.0)  # a slow machine needs long for Spark
    asked = ["/agents", "/agents?limit=2", "/models", "/tools"]
    asked += [f"/agents/{quote(name, safe='')}/.well-known/agent-health" for name in AGENTS]
    sessions = {row["session_id"] for row in pair.duckdb.rows("session_scores")}
    asked += [f"/sessions/{quote(session, safe='')}" for session in sorted(sessions)[:3]]
    answered = []
    for project in pair:
        own = project.settings
        others = {name: getattr(own, name) for name in ("lake", "ledger", "window_hours", "lookback_hours")}
        with served(own.warehouse, targets=project.targets_path, **others) as server:
            answered.append([_answer(server, path) for path in asked])
    for path, found, expected in zip(asked, *answered[::-1], strict=True):
        assert found == expected, path
    assert [status for status, _ in answered[1]].count(200) > len(AGENTS)


def _answer(server: Served, path: str) -> tuple[int, str]:
    reply = server.ask(path)
    return reply.status, _without_digits(reply.json)


@pytest.mark.nightly
def test_the_history_of_the_pages_is_copied_the_same_from_spark(pair: Pair, tmp_path: Path) -> None:
    copies = []
    for name, project in pair._asdict().items():
        (tmp_path / name).mkdir()
        done = {"missing": 1}
        while done["missing"]:
            done = fill(project.settings, tmp_path / name, project.warehouse, HOURS.end)
        account = read_account(tmp_path / name)
        assert account is not None
        copies.append({series: _rows_of(tmp_path / name, kept) for series, kept in account.series.items()})
    assert_tables_equal_to_9_digits(copies[1], copies[0])
    assert sum(map(bool, copies[0].values())) > 3


def _rows_of(folder: Path, kept: Kept) -> list[dict[str, Any]]:
    """The rows of a series that were copied."""
    paths = [part.path for parts in kept.days.values() for part in parts]
    return [row for path in paths for row in read_rows(folder / path).to_pylist()]
