"""Evidence and explanations: the events that weigh most, against plain Python, and points that add up to what was lost."""

from collections import defaultdict
from datetime import datetime
from itertools import groupby
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.explanation import COMPONENTS, costliest, explain, points_lost
from health_assets.systems.explanations.names import KINDS
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
from health_assets_tests.support.projects import Project, Row, hours_from
from health_assets_tests.systems.test_scores_equal_reference import assert_equal_rows, sums_and_targets, window_rows

MOST = 5
STEPS = ["ingest", "health_components", "agent_health", "evidence_components", "score_evidence"]


# -- the reference ------------------------------------------------------------------------------------------------------


def events_of_hour(records: list[Row], targets: Row) -> list[Row]:
    """Every event that counts against an agent, with its kind; plain Python."""
    found = []
    runtimes = defaultdict(list)
    for record in records:
        if record["type"] == "execution":
            runtimes[record["_hour"], record["agent_id"]].append(record["_runtime_s"])
    for record in records:
        if record["type"] not in ("execution", "trigger"):
            continue
        target = reference.targets_for(record["agent_id"], targets)
        kinds = []
        if record["type"] == "trigger":
            kinds = ["trigger_failure"] if record["status"] == "failed" else []
        else:
            own = runtimes[record["_hour"], record["agent_id"]]
            expected_s = target["expected_runtime_s"]
            is_slow = expected_s is not None and record["_runtime_s"] > expected_s and sum(own) / len(own) > expected_s
            kinds = [
                kind
                for kind, applies in (
                    ("failure", record["status"] == "failure"),
                    ("slow_run", is_slow),
                    ("long_run", reference.is_long_running(record, target)),
                    ("sla_breach", reference.is_sla_breached(record, target)),
                )
                if applies
            ]
        found += [
            {
                "happened_in": record["_hour"],
                "agent_id": record["agent_id"],
                "kind": kind,
                "event_id": record.get("execution_id", record.get("trigger_id"))
                if record["type"] == "execution"
                else record["trigger_id"],
                "happened_at": record["_at"],
                "runtime_s": record.get("_runtime_s"),
            }
            for kind in kinds
        ]
    return found


def heaviest(events: list[Row]) -> list[Row]:
    """The five that weigh most of each agent and kind, ranked."""
    groups = defaultdict(list)
    for event in events:
        groups[event["agent_id"], event["kind"]].append(event)
    ranked = []
    for (_, kind), group in groups.items():
        group.sort(key=lambda event: event["event_id"])
        group.sort(key=lambda event: event["happened_at"], reverse=True)
        if kind in ("slow_run", "long_run"):
            group.sort(key=lambda event: event["runtime_s"], reverse=True)
        ranked += [{**event, "rank": place} for place, event in enumerate(group[:MOST], 1)]
    return ranked


COLUMN_OF_KIND = {
    "failure": "reliability_score", "slow_run": "performance_score", "long_run": "stability_score",
    "sla_breach": "sla_score", "trigger_failure": "trigger_score",
}  # fmt: skip


def hourly(events: list[Row], hour: datetime) -> list[Row]:
    kept = heaviest([event for event in events if event["happened_in"] == hour])
    return [{key: value for key, value in event.items() if key != "happened_in"} | {"hour": hour} for event in kept]


def windowed(events: list[Row], scores: list[Row], hour: datetime, window_hours: int) -> list[Row]:
    by_agent = {row["agent_id"]: row for row in scores if row["hour"] == hour}
    inside = [event for event in events if hour - window_hours * HOUR < event["happened_in"] <= hour]
    rows = []
    for event in heaviest(inside):
        score = by_agent.get(event["agent_id"])
        if score and score["health_score"] is not None and score[COLUMN_OF_KIND[event["kind"]]] < 1:
            rows.append({key: value for key, value in event.items() if key != "happened_in"} | {"hour": hour})
    return rows


# -- the tables --------------------------------------------------------------------------------------------------------


KEYS = ["hour", "agent_id", "kind", "rank"]


@pytest.mark.parametrize(("seed", "window_hours"), [pytest.param(1, 24, marks=pytest.mark.nightly), (2, 3)])
def test_the_evidence_of_random_logs_equals_the_reference(tmp_path: Path, seed: int, window_hours: int) -> None:
    random = Random(seed)
    targets = random_targets(random)
    targets["defaults"] |= {"expected_runtime_s": 100, "sla_s": 500}
    project = Project(tmp_path / "project", targets, window_hours, 30)
    for name, lines in cut_into_files(random, random_lines(random, 500, 10)).items():
        project.write_log(name, lines, modified=START)
    hours = hours_from(START, 11)
    project.materialize(hours, only=STEPS)
    events = events_of_hour(reference.deduplicate(reference.read_lines(project.raw)[0]), targets)
    components = [row for hour in hours for row in hourly(events, hour)]
    assert {row["kind"] for row in components} == set(KINDS)
    assert_equal_rows(project.rows("evidence_components"), components, KEYS)
    scores = project.rows("agent_health")
    expected = [row for hour in hours for row in windowed(events, scores, hour, window_hours)]
    assert len(expected) > 100
    assert_equal_rows(project.rows("score_evidence"), expected, KEYS)
    many = project.rows("score_evidence")
    for hour in (hours.start + 6 * HOUR, hours.end - HOUR):  # one hour at a time gives the same
        project.materialize(HourRange.of(hour), only=["score_evidence"])
    assert project.rows("score_evidence") == many


def test_an_agent_that_lost_no_points_has_no_evidence(project: Project) -> None:
    records = [execution(f"e{n}", "fine", START) for n in range(50)]
    records += [execution("failed", "fine", START, status="failure"), execution("bad", "poor", START, status="failure")]
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(HourRange.of(START), only=STEPS)
    assert {row["agent_id"] for row in project.rows("evidence_components")} == {"fine", "poor"}
    assert {row["agent_id"] for row in project.rows("score_evidence")} == {"poor"}


def test_late_events_and_another_order_give_the_evidence_of_a_clean_rebuild(project: Project) -> None:
    hours = hours_from(START, 3)
    lines = [
        line(execution(f"e{n}", "a", START + (n % 3) * HOUR + HOUR / 3, 10.0 + n % 4, status="failure"))
        for n in range(40)
    ]
    lines += [line(trigger(f"t{n}", "a", START + (n % 3) * HOUR, "failed")) for n in range(30)]
    project.write_targets({"defaults": {"expected_runtime_s": 2}})
    Random(4).shuffle(lines)
    project.write_log("b.jsonl", lines[:30])
    project.materialize(hours, only=STEPS)
    project.write_log("a.jsonl", lines[30:])
    project.materialize(hours, only=STEPS, only_stale=True)
    clean = Project(project.folder / "clean", project.targets)
    clean.raw.rmdir()
    clean.raw = project.raw
    clean.materialize(hours, only=STEPS)
    for table in ("evidence_components", "score_evidence"):
        assert project.rows(table) == clean.rows(table)
        assert project.rows(table)


# -- explanations ------------------------------------------------------------------------------------------------------


@tried_with(3, 60)
@given(st.lists(sums_and_targets(), min_size=1, max_size=40), st.sampled_from([1, 24]))
def test_the_points_lost_add_up_to_what_the_score_lacks(cases: list[tuple[Row, Row]], window_hours: int) -> None:
    targets = {f"{place:03}": own for place, (_, own) in enumerate(cases)}
    for row in window_rows([counts for counts, _ in cases], targets, window_hours):
        losses = explain(row)
        if row["health_score"] is None:
            assert losses == []
            continue
        assert abs(sum(points_lost(component, row) for component in COMPONENTS) - (100 - row["health_score"])) < 1e-9
        assert abs(sum(loss.lost for loss in losses) - (100 - row["health_score"])) < 1e-8
        assert all(loss.sentence for loss in losses)
        grouped = [list(group) for _, group in groupby(losses, key=lambda loss: loss.component.dimension)]
        assert len(grouped) == len({loss.component.dimension for loss in losses})
        assert all(group == sorted(group, key=lambda loss: -loss.lost) for group in grouped)
        of_dimensions = [round(sum(loss.lost for loss in group), 9) for group in grouped]
        assert of_dimensions == sorted(of_dimensions, reverse=True)
        assert costliest(losses) is (losses[0] if losses else None)


def test_each_component_says_what_was_seen_what_was_expected_and_which_events() -> None:
    counts = {
        "executions": 100, "successes": 80, "failures": 20, "runtime_us_sum": 11 * 10**8, "long_running": 3,
        "sla_breaches": 1, "trigger_failures": 2,
    }  # fmt: skip
    own = {"expected_runtime_s": 10.0, "expected_failures_per_hour": 0.5}
    [row] = window_rows([counts], {"a": own})
    evidence = {
        "failure": ["f1", "f2"],
        "slow_run": ["s"],
        "long_run": ["l"],
        "sla_breach": ["b"],
        "trigger_failure": ["t"],
    }
    found = {loss.component.name: loss for loss in explain(row, evidence)}
    assert {name: (loss.sentence, loss.evidence) for name, loss in found.items()} == {
        "success": ("80% succeeded, 95% expected", ("f1", "f2")),
        "failures": ("0.8 failures an hour, 0.5 expected", ("f1", "f2")),
        "performance": ("11.0 s a run, 10 s expected", ("s",)),
        "stability": ("3 long runs", ("l",)),
        "sla": ("1 SLA breach", ("b",)),
        "triggers": ("2 failed triggers", ("t",)),
    }
    assert found["success"].lost == pytest.approx(28 * (1 - 0.8 / 0.95))
    assert found["failures"].lost == pytest.approx(12 * (1 - 0.5 * 24 / 20))
    assert found["performance"].lost == pytest.approx(10)
    assert found["performance"].inputs == {"n": 100, "ar_s": 11.0, "deviation": pytest.approx(0.1)}
    assert found["performance"].targets == {"expected_runtime_s": 10.0, "deviation_allowed": 0.2}
    assert costliest(explain(row)).component.name == "performance"


def test_an_agent_with_few_executions_loses_what_its_softened_score_lost() -> None:
    counts = {
        "executions": 4, "successes": 0, "failures": 4, "runtime_us_sum": 0, "long_running": 0, "sla_breaches": 0,
        "trigger_failures": 0,
    }  # fmt: skip
    [row] = window_rows([counts], {"a": {}})
    [loss] = explain(row)
    assert loss.sentence == "0 of 4 succeeded, 95% expected"
    assert loss.lost == pytest.approx(100 - row["health_score"]) == pytest.approx(28 * 4 / 20)
