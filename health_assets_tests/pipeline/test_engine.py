"""The engine: the order of steps, the events of a run, and what a failing check stops."""

from collections.abc import Iterable
from contextlib import AbstractContextManager

import duckdb
import pytest
from ibis import ir

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourGroups
from health_assets.pipeline import log_ingestion, system_step
from health_assets.pipeline.derived import Derived, Inputs
from health_assets.pipeline.engine import planned_steps, run
from health_assets.pipeline.events import (
    Checked,
    Event,
    Materialized,
    StepFailed,
    StepFinished,
    StepSkipped,
    StepStarted,
)
from health_assets.pipeline.fingerprints import RECORDS
from health_assets.pipeline.plan import INGEST, Graph, Plan
from health_assets.pipeline.resource import Pipeline
from health_assets.systems.graph import declared_graph
from health_assets.warehouse.session import Session
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, Row, hours_from

HOURS = HourGroups((hours_from(START, 2),))
GRAPH = declared_graph()
FLEET = ("health_components", "agent_health", "system_health")


def plan(*assets: str) -> Plan:
    """These computed assets and all records, with every check."""
    wanted = [*RECORDS, *assets]
    return Plan(hours=HOURS, assets=wanted, checks={asset: GRAPH.check_names(asset) for asset in wanted})


def derived(name: str, *deps: str, has_priority: bool = False) -> Derived:
    return Derived(
        name=name, upstream=deps, rows=lambda _: None, preview_title="", preview_rows=lambda rows: rows, empty_without="", has_priority=has_priority,
        formula_version="1",
    )  # fmt: skip


def materialized(events: Iterable[Event]) -> list[str]:
    return [event.asset for event in events if isinstance(event, Materialized)]


@pytest.fixture
def logged(project: Project) -> Project:
    project.write_log("a.jsonl", [line(execution(f"e{n}", "coder", START, confidence=0.5)) for n in range(3)])
    return project


# -- the graph, without a warehouse --


def test_every_step_follows_those_that_make_what_it_needs() -> None:
    made: set[str] = set()
    for assets in GRAPH.steps.values():
        for asset in assets:
            assert made.issuperset(GRAPH.sources(asset)), asset
            made.add(asset)
    assert made == {*RECORDS, *GRAPH.derived}
    assert len(GRAPH.steps) <= 15


def test_what_has_priority_is_made_in_the_step_that_it_needs_before_all_that_need_not_come_earlier() -> None:
    systems = {
        "scores": (derived("sums", "executions"), derived("scores", "sums"), derived("fleet", "scores")),
        "now": (
            derived("runs", "executions", has_priority=True),
            derived("verdicts", "sums", "runs", has_priority=True),
        ),
        "budgets": (derived("budgets", "sums"),),
    }
    graph = Graph(systems=systems, suites={})
    assert graph.steps == {
        INGEST: RECORDS, "scores": ("runs", "sums", "verdicts", "scores", "fleet"), "budgets": ("budgets",),
    }  # fmt: skip
    assert graph.system_of["verdicts"] == "now"
    assert graph.depends_on_any("budgets", ["sums"]) and not graph.depends_on_any("budgets", ["scores"])
    assert not graph.depends_on_any("scores", ["sums"]), "it makes them itself"


def test_a_plan_has_the_planned_steps_its_assets_and_checks_alone() -> None:
    assert planned_steps(GRAPH, Plan(hours=HOURS, assets=["tool_health"])) == ["tool_health"]
    checks = {"agent_health": ["scores_are_between_0_and_100"], "tool_health": []}
    assert planned_steps(GRAPH, Plan(hours=HOURS, assets=[], checks=checks)) == ["agent_health_model"]
    assert planned_steps(GRAPH, plan(*FLEET)) == [INGEST, "agent_health_model"]


# -- runs --


def test_a_run_tells_of_each_step_its_assets_and_their_checks(logged: Project) -> None:
    events = [*run(logged.pipeline, GRAPH, plan(*FLEET))]
    steps = [event for event in events if isinstance(event, StepStarted | StepFinished)]
    assert steps == [made(step) for step in (INGEST, "agent_health_model") for made in (StepStarted, StepFinished)]
    assert materialized(events)[-3:] == [*FLEET] and {*materialized(events)} == {*RECORDS, *FLEET}
    checked = [(event.asset, event.check) for event in events if isinstance(event, Checked)]
    assert sorted(checked) == sorted((name, check) for name in (*RECORDS, *FLEET) for check in GRAPH.check_names(name))
    assert all(event.passed for event in events if isinstance(event, Checked))


def test_a_check_that_fails_stops_what_its_step_makes_from_the_asset(logged: Project) -> None:
    logged.materialize(HOURS, only=[INGEST, *FLEET])
    logged.change("UPDATE health_components SET executions = -1")
    only_scores = Plan(
        hours=HOURS, assets=["agent_health", "system_health"],
        checks={"health_components": GRAPH.check_names("health_components")},
    )  # fmt: skip
    events = [*run(logged.pipeline, GRAPH, only_scores)]
    assert any(event.blocks for event in events if isinstance(event, Checked))
    assert materialized(events) == []


def test_assets_made_together_are_what_they_are_one_by_one(logged: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    told, tables = list[list[tuple[str, ...]]](), list[list[list[Row]]]()
    for few_records in (10_000, 0):
        monkeypatch.setattr(system_step, "FEW_RECORDS", few_records)
        events = [*run(logged.pipeline, GRAPH, plan(*FLEET))]
        told.append([
            (event.asset, event.check if isinstance(event, Checked) else "made")
            for event in events
            if isinstance(event, Checked | Materialized)
        ])  # fmt: skip
        tables.append([logged.rows(name) for name in FLEET])
    assert told[0] == told[1] and tables[0] == tables[1]


def test_steps_of_few_records_are_one_transaction_and_those_of_many_one_for_each_asset(
    logged: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    [*run(logged.pipeline, GRAPH, plan(*FLEET))]
    opened, transactions = Pipeline.write, list[str]()

    def counted(pipeline: Pipeline) -> AbstractContextManager[Session]:
        transactions.append(pipeline.step)
        return opened(pipeline)

    monkeypatch.setattr(Pipeline, "write", counted)
    counts, tables = list[int](), list[list[list[Row]]]()
    wanted = (*FLEET, "tool_components", "error_budget")
    for few_records in (10_000, 0):
        monkeypatch.setattr(system_step, "FEW_RECORDS", few_records)
        before = len(transactions)
        [*run(logged.pipeline, GRAPH, Plan(hours=HOURS, assets=wanted))]
        counts.append(len(transactions) - before)
        tables.append([logged.rows(name) for name in wanted])
    assert counts[0] == 1 and counts[1] >= len(wanted)
    assert tables[0] == tables[1]


def test_what_does_not_follow_from_a_failing_check_is_made_also_where_it_was_made_together_with_it(
    logged: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = system_step.rows_of

    def negative(derived: Derived, inputs: Inputs) -> ir.Table:
        rows = made(derived, inputs)
        return rows.mutate(executions=-rows.executions) if derived.name == "health_components" else rows

    monkeypatch.setattr(system_step, "rows_of", negative)
    wanted = plan(*FLEET, "tool_components", "now_components")
    events = [*run(logged.pipeline, GRAPH, wanted)]
    assert {*materialized(events)} == {*RECORDS, "health_components", "tool_components", "now_components"}
    assert [event.check for event in events if isinstance(event, Checked) and event.blocks]
    assert not logged.built_hours("agent_health") and logged.built_hours("now_components")


def test_a_statement_that_is_interrupted_ends_the_run(logged: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> ir.Table:
        raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")

    monkeypatch.setattr(system_step, "rows_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        [*run(logged.pipeline, GRAPH, plan(*FLEET))]


def test_a_check_that_fails_stops_every_step_that_follows(logged: Project) -> None:
    logged.materialize(HOURS, only=[INGEST, *FLEET])
    logged.change("UPDATE executions SET confidence = 7")
    events = [*run(logged.pipeline, GRAPH, plan(*FLEET, "error_budget"))]
    assert {*materialized(events)} == {*RECORDS}
    assert [event.step for event in events if isinstance(event, StepSkipped)] == ["agent_health_model", "error_budget"]


def test_the_events_of_a_run_with_an_error_say_which_steps_failed_and_which_were_left_out(
    logged: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    does = system_step._made

    def fails(*arguments: object) -> Materialized:
        if arguments[3].name == "health_components":  # type: ignore[attr-defined]
            raise ValueError("a bug")
        return does(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(system_step, "_made", fails)
    told: list[Event] = []
    events = run(logged.pipeline, GRAPH, plan(*FLEET, "now_components", "error_budget", "tool_components"))
    with pytest.raises(ValueError, match="a bug"):
        for event in events:
            told.append(event)  # noqa: PERF402
    assert [event.step for event in told if isinstance(event, StepFailed)] == ["agent_health_model"]
    assert [event.step for event in told if isinstance(event, StepSkipped)] == ["error_budget"]
    assert {*materialized(told)} == {*RECORDS, "now_components", "tool_components"}
    assert told[-1] == StepSkipped("error_budget")


def test_a_warehouse_that_cannot_be_opened_fails_every_step_that_needs_it(
    logged: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    [*run(logged.pipeline, GRAPH, plan(*FLEET))]

    def held(_: Pipeline) -> AbstractContextManager[Session]:
        raise HealthAssetsError("another program holds the warehouse")

    monkeypatch.setattr(Pipeline, "write", held)
    told: list[Event] = []
    with pytest.raises(HealthAssetsError, match="another program holds"):
        for event in run(logged.pipeline, GRAPH, Plan(hours=HOURS, assets=[*FLEET, "tool_components"])):
            told.append(event)  # noqa: PERF402
    assert [event.step for event in told if isinstance(event, StepFailed)] == ["agent_health_model", "tool_health"]


def test_logs_that_cannot_be_read_leave_out_every_other_step(logged: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise HealthAssetsError("no raw root")

    monkeypatch.setattr(log_ingestion, "require_root", away)
    told: list[Event] = []
    with pytest.raises(HealthAssetsError, match="no raw root"):
        for event in run(logged.pipeline, GRAPH, plan(*FLEET)):
            told.append(event)  # noqa: PERF402
    assert told == [StepStarted(INGEST), StepFailed(INGEST), StepSkipped("agent_health_model")]


def test_checks_alone_are_evaluated_also_where_one_before_them_fails(logged: Project) -> None:
    logged.materialize(HOURS, only=[INGEST, *FLEET])
    logged.change("UPDATE health_components SET executions = -1")
    checks = {asset: GRAPH.check_names(asset) for asset in ("health_components", "agent_health", "error_budget")}
    events = [*run(logged.pipeline, GRAPH, Plan(hours=HOURS, assets=[], checks=checks))]
    assert {event.asset for event in events if isinstance(event, Checked)} == checks.keys()


def test_a_check_that_cannot_be_evaluated_takes_the_rows_back(logged: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = system_step.check_suites

    def broken(*arguments: object) -> list[Checked]:
        if "health_components" in arguments[-1]:  # type: ignore[operator]
            raise RuntimeError("the evaluator disagrees")
        return checked(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(system_step, "check_suites", broken)
    with pytest.raises(RuntimeError, match="disagrees"):
        [*run(logged.pipeline, GRAPH, plan(*FLEET))]
    assert logged.built_hours("health_components") == set()


def test_assets_that_are_made_from_each_other_are_refused() -> None:
    graph = Graph(systems={"a": (derived("x", "y"),), "b": (derived("y", "x"),)}, suites={})
    with pytest.raises(HealthAssetsError, match="a, b are made from each other"):
        _ = graph.steps
