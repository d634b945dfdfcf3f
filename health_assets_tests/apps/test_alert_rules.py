"""Rules and incidents: against plain Python on random histories, and that nothing is told twice or about nothing."""

import json
from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from health_assets.apps.alerts.budget_rules import BudgetBurn, BudgetBurnFast, BudgetBurnSlow
from health_assets.apps.alerts.config import Webhook
from health_assets.apps.alerts.evaluator import is_ready
from health_assets.apps.alerts.facts import AgentFact, BudgetFact, DueFact
from health_assets.apps.alerts.incidents import judge
from health_assets.apps.alerts.messages import message_of
from health_assets.apps.alerts.outbox import due_notices, open_incidents
from health_assets.apps.alerts.rules import (
    RULES,
    Drop,
    ExpectationFailed,
    Floor,
    HourLate,
    ModelDegraded,
    NoData,
    StateWorsened,
)
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import AgentTargets, Targets
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.alerts_made import at, fill_hour, incidents, insert, keep_hour, later, look, scored
from health_assets_tests.support.logs_made import START

CHANNEL = Webhook(type="webhook", url="http://127.0.0.1:1/")
AGENT_RULES = (StateWorsened(), Floor(), Drop(), NoData())
RANKS = {"healthy": 0, "degraded": 1, "unhealthy": 2}

History = dict[datetime, dict[str, dict]]
"""Rows by hour and agent; an hour that is not in it was left out."""


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "health.duckdb"


# -- the reference -----------------------------------------------------------------------------------------------------


def expected_incidents(history: History, first: datetime, last: datetime) -> set[tuple]:
    """(rule, kind, subject, hour that opened, hour that closed) by the rules' defaults, in plain Python."""
    found = set()
    agents = {agent for rows in history.values() for agent in rows}
    for agent in agents:
        rows = {hour: own[agent] for hour, own in history.items() if agent in own}
        for rule in ("state_worsened", "floor", "drop", "no_data"):
            found |= {(rule, "agent", agent, *span) for span in _spans(rule, rows, set(history), first, last)}
    opened = None
    for hour in _hours(first, last):
        if hour not in history:
            opened = opened or hour
        elif opened:
            found.add(("no_data", "pipeline", "hours", opened, hour))
            opened = None
    return found | ({("no_data", "pipeline", "hours", opened, None)} if opened else set())


def _hours(first: datetime, last: datetime) -> list[datetime]:
    return [first + place * HOUR for place in range(int((last - first) / HOUR) + 1)]


def _is_enough(row: dict | None) -> bool:
    return bool(row) and row["hours_covered"] == 24 and row["n"] >= 10


def _spans(rule: str, rows: dict[datetime, dict], made: set[datetime], first: datetime, last: datetime) -> list[tuple]:
    spans, opened, line, good = [], None, 0.0, 0
    for hour in _hours(first, last):
        row = rows.get(hour)
        if row is None:
            if hour in made and opened is not None:  # the agent is not known any more
                spans.append((opened, hour))
                opened = None
            continue
        day = [rows.get(hour - back * HOUR) for back in range(1, 25)]
        known = [one for one in day if _is_enough(one)]
        if rule == "no_data":
            was_active = any(one and one["hours_covered"] == 24 and one["n"] > 0 for one in day)
            if opened is None and row["n"] == 0 and row["hours_covered"] == 24 and was_active:
                opened = hour
            elif opened is not None and row["n"] > 0:
                spans.append((opened, hour))
                opened = None
            continue
        if not _is_enough(row):
            if opened is not None and row["hours_covered"] == 24 and hour - opened >= 24 * HOUR:
                spans.append((opened, hour))  # for lack of traffic
                opened = None
            continue
        score = row["health_score"]
        if opened is not None:
            good = good + 1 if score >= line else 0
            if good == 3:
                spans.append((opened, hour))
                opened = None
            continue
        if rule == "floor" and score < 65:
            opened, line, good = hour, 67.0, 0
        if rule == "drop":
            recent = [one for one in (rows.get(hour - back * HOUR) for back in range(1, 7)) if _is_enough(one)]
            peak = max((one["health_score"] for one in recent), default=None)
            if peak is not None and peak - score > 15:
                opened, line, good = hour, min(100.0, peak - 15 + 2), 0
        if rule == "state_worsened" and known:
            best = min(RANKS[one["state"]] for one in known)
            if RANKS[row["state"]] > best:
                opened, line, good = hour, (87.0, 67.0)[best], 0
    return [*spans, (opened, None)] if opened else spans


def random_history(random: Random, hours: int, agents: int) -> History:
    """Scores that wander and jump, with idle spells, few executions, windows with holes and hours left out."""
    scores = {f"a{number}": random.uniform(50, 100) for number in range(agents)}
    idle = dict.fromkeys(scores, 0)
    history: History = {}
    for place in range(hours):
        left_out = random.random() < 0.08 and 0 < place < hours - 1
        rows = {}
        covered = 24 if random.random() < 0.85 else 20
        for agent in scores:
            jump = random.gauss(0, 3) if random.random() < 0.8 else random.gauss(0, 30)
            scores[agent] = min(100.0, max(0.0, scores[agent] + jump))
            idle[agent] = idle[agent] - 1 if idle[agent] > 0 else random.randrange(6) if random.random() < 0.05 else 0
            value = None if idle[agent] > 0 else round(scores[agent], 3)
            rows[agent] = scored(agent, value, n=random.choice([100, 100, 100, 9]), covered=covered)
            if random.random() < 0.02:
                del rows[agent]
        if not left_out:
            history[at(place)] = rows
    return history


def told(warehouse: Path) -> set[tuple]:
    return {
        (one.rule, one.subject_kind, one.subject_id, one.hour, one.closed_at and one.closed_at - HOUR)
        for one in incidents(warehouse)
    }


@pytest.mark.parametrize(("hours", "agents"), [(14, 60), pytest.param(26, 60, marks=pytest.mark.nightly)])
def test_catching_up_equals_hour_by_hour_equals_the_reference_on_random_histories(
    tmp_path: Path, hours: int, agents: int
) -> None:
    history = random_history(Random(5), hours, agents)
    step_by_step, at_once = tmp_path / "steps.duckdb", tmp_path / "once.duckdb"
    for hour, rows in history.items():
        fill_hour(step_by_step, hour, list(rows.values()))
        look(step_by_step, AGENT_RULES)
    fill_hour(at_once, min(history), list(history[min(history)].values()))
    look(at_once, AGENT_RULES)  # the first look begins with the newest hour
    with Warehouse(str(at_once)).write() as session:
        for hour, rows in history.items():
            keep_hour(session, hour, list(rows.values()))
    while look(at_once, AGENT_RULES).hours:
        pass
    assert incidents(at_once) == incidents(step_by_step)
    expected = expected_incidents(history, min(history), max(history))
    assert told(step_by_step) == expected
    assert {one[0] for one in expected} == {"state_worsened", "floor", "drop", "no_data"}
    assert sum(one[4] is not None for one in expected) > hours
    _assert_no_flapping({one for one in expected if one[4] is None or one[2] in history[one[4]] or one[2] == "hours"})
    assert look(at_once, AGENT_RULES).hours == []  # and again


def _assert_no_flapping(spans: set[tuple]) -> None:
    by_subject = defaultdict(list)
    for rule, kind, subject, opened, closed in spans:
        by_subject[rule, kind, subject].append((opened, closed))
    for (rule, *_), own in by_subject.items():
        own.sort()
        for (opened, closed), following in zip(own, [*own[1:], None], strict=True):
            assert closed is None or closed >= opened + (1 if rule == "no_data" else 3) * HOUR
            assert following is None or (closed is not None and following[0] > closed)


def test_a_score_that_trembles_at_the_line_is_one_incident() -> None:
    rule, opened, told_of = Floor(), {}, 0
    for place in range(200):
        seen = AgentFact(hour=at(place), subject_id="a", row=scored("a", 64.9 if place % 2 else 66.9))
        judged = judge([rule], [seen], opened, at=at(place + 1))
        told_of += len(judged.opened) + len(judged.closed)
        opened |= {one.subject: one for one in (*judged.opened, *judged.counted)}
    assert told_of == 1


# -- no data -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("silence", [{"score": None}, {"score": 20.0, "n": 9}, {"score": 20.0, "covered": 23}])
def test_what_rests_on_too_little_opens_nothing(silence: dict) -> None:
    seen = AgentFact(
        hour=at(1),
        subject_id="a",
        row=scored("a", **silence),
        is_covered=silence.get("covered", 24) == 24,
        best_state_before="healthy",
        peak_before=100.0,
    )
    assert judge([StateWorsened(), Floor(), Drop()], [seen], {}, at=at(2)).opened == ()


@pytest.mark.parametrize("silence", [{"score": None}, {"score": 99.0, "n": 9}, {"score": 99.0, "covered": 23}])
def test_no_data_is_no_good_news_and_ends_an_incident_after_a_day(silence: dict) -> None:
    """But where hours of the pipeline are missing, which is no lack of traffic."""
    rules = [StateWorsened(), Floor(), Drop()]
    bad = AgentFact(
        hour=at(0),
        subject_id="a",
        row=scored("a", 20.0),
        is_covered=True,
        best_state_before="healthy",
        peak_before=100.0,
    )
    opened = {one.subject: one for one in judge(rules, [bad], {}, at=at(1)).opened}
    assert len(opened) == 3
    is_covered = silence.get("covered", 24) == 24
    for place in range(1, 50):
        seen = AgentFact(hour=at(place), subject_id="a", row=scored("a", **silence), is_covered=is_covered)
        judged = judge(rules, [seen], opened, at=at(place + 1))
        assert (judged.counted, judged.opened) == ((), ())
        assert len(judged.closed) == (3 if is_covered and place >= 24 else 0)
        assert not any(one.is_recovered for one in judged.closed)


@pytest.mark.parametrize("points", [59.9, 60.0])
def test_a_rule_may_want_so_many_points_at_stake(points: float) -> None:
    wanted = {"least_points_at_stake": 60}
    rules = [StateWorsened(**wanted), Floor(**wanted), Drop(**wanted)]
    told = {"is_covered": True, "best_state_before": "healthy", "peak_before": 100.0}

    def seen(place: int, score: float, at_stake: float) -> AgentFact:
        row = scored("a", score, points_at_stake=at_stake)
        return AgentFact(hour=at(place), subject_id="a", row=row, **(told if not place else {}))

    opened = {one.subject: one for one in judge(rules, [seen(0, 45.0, points)], {}, at=at(1)).opened}
    assert len(opened) == (3 if points >= 60 else 0)
    for incident in opened.values():
        assert "(only 60 of 100 points could be lost)" in incident.reason or "(45.0; only 60 of" in incident.reason
        assert json.loads(incident.evidence)["points_at_stake"] == 60.0
    for place in (1, 23):
        judged = judge(rules, [seen(place, 99.0, 12.0)], opened, at=at(place + 1))
        assert (judged.counted, judged.closed) == ((), ()), "a score of 99 with 12 points at stake is no recovery"
    gone = judge(rules, [seen(24, 99.0, 12.0)], opened, at=at(25)).closed
    assert {one.recovery for one in gone} == (
        {"a had 12 points at stake in its window, too few to judge by; nothing is known since"} if opened else set()
    )


def test_a_rule_compares_with_no_score_that_rests_on_fewer_points(warehouse: Path) -> None:
    rules = [StateWorsened(), Drop(least_points_at_stake=50)]
    for place, (score, points) in enumerate([(100.0, 40.0), (70.0, 60.0)]):
        fill_hour(warehouse, at(place), [scored("a", score, points_at_stake=points)])
        look(warehouse, rules)
    assert [one.rule for one in incidents(warehouse)] == ["state_worsened"]


def test_a_silent_hour_between_good_ones_neither_counts_nor_starts_over() -> None:
    opened = {
        one.subject: one
        for one in judge([Floor()], [AgentFact(hour=at(0), subject_id="a", row=scored("a", 20.0))], {}, at=at(1)).opened
    }
    counts = []
    for place, score in enumerate([90.0, 90.0, None, 90.0], 1):
        judged = judge(
            [Floor()], [AgentFact(hour=at(place), subject_id="a", row=scored("a", score))], opened, at=at(place + 1)
        )
        opened |= {one.subject: one for one in (*judged.counted, *judged.closed)}
        counts.append(next(iter(opened.values())).good_hours)
    assert counts == [1, 2, 2, 3]
    assert judged.closed[0].recovery == "a is back at 90.0 (healthy)"


def test_an_agent_that_falls_silent_is_told_once_and_its_return_too(warehouse: Path) -> None:
    for place, score in enumerate([90.0, None, None, 90.0]):
        fill_hour(warehouse, at(place), [scored("a", score), scored("never", None), scored("mine", score)])
        look(warehouse, [NoData()], targets=Targets(agents={"mine": AgentTargets(personal=True)}))
    [incident] = incidents(warehouse)
    assert (incident.subject_id, incident.hour, incident.closed_at) == ("a", at(1), at(4))
    assert incident.severity == "info"


def test_an_hour_that_was_left_out_is_told_when_a_later_one_is_there(warehouse: Path) -> None:
    for place in (0, 1, 4):
        fill_hour(warehouse, at(place), [scored("a", 90.0)])
        look(warehouse, [NoData()])
    [incident] = incidents(warehouse)
    assert (incident.subject_kind, incident.subject_id, incident.hour, incident.closed_at) == (
        "pipeline",
        "hours",
        at(2),
        at(5),
    )


# -- other rules -------------------------------------------------------------------------------------------------------


def model(score: float, **columns: object) -> dict:
    good = round(50 * score)
    return {
        "model": "gpt", "health_score": score, "success_count": good, "failure_count": 50 - good,
        "is_degraded": score < 0.7, "degraded_threshold": 0.7, **columns,
    }  # fmt: skip


def test_a_degraded_model_is_told_until_it_answers_well_again(warehouse: Path) -> None:
    scores = [0.9, 0.6, 0.9, 0.9, 0.72, 0.8, 0.8, 0.8]
    for place, score in enumerate(scores):
        called = at(place) if place != 3 else at(2)  # nobody calls it in that hour, so its score is old
        fill_hour(warehouse, at(place), model_health=[model(score, last_call_at=called)])
        look(warehouse, [ModelDegraded()])
    [incident] = incidents(warehouse)
    assert (incident.subject_id, incident.hour, incident.closed_at) == ("gpt", at(1), at(8))
    assert incident.reason == "gpt answered 60% of its last 50 calls, 70% wanted"


def check(success: bool, severity: str = "error", elements: int = 10) -> dict:
    return {
        "asset": "executions", "expectation": f"is_{severity}", "success": success, "severity": severity,
        "element_count": elements, "unexpected_count": 0 if success else 3,
    }  # fmt: skip


def test_a_failed_expectation_is_told_even_if_its_hour_got_no_further(warehouse: Path) -> None:
    fill_hour(warehouse, at(0), [scored("a", 90.0)], expectation_results=[check(True)])
    rules = [ExpectationFailed(), Floor()]
    look(warehouse, rules)
    with Warehouse(str(warehouse)).write() as session:  # a check that blocks: no scores
        insert(session, "expectation_results", at(1), [check(False), check(False, "warn")])
        PartitionStates(session).note("raw_logs", HourRange.of(at(1)), [at(1)])
    soon = later() - timedelta(minutes=50)
    assert look(warehouse, rules, now=soon).hours == []  # its run may still be at it
    look(warehouse, rules)
    fill_hour(warehouse, at(2), expectation_results=[check(True, elements=0)])
    look(warehouse, rules)
    [incident] = incidents(warehouse)
    assert (incident.subject_id, incident.hour, incident.closed_at) == ("executions.is_error", at(1), None)
    assert incident.reason == "the check executions.is_error failed for 2026-06-07 01:00 UTC: 3 of 10 rows break it"
    fill_hour(warehouse, at(3), expectation_results=[check(True)])
    look(warehouse, rules)
    assert incidents(warehouse)[0].closed_at == at(4)


def test_an_hour_is_late_once_and_in_time_again(warehouse: Path) -> None:
    fill_hour(warehouse, at(0), [scored("a", 90.0)])
    rules = [HourLate()]
    for minutes, expected in [(119, []), (121, [None]), (150, [None]), (181, [None])]:
        look(warehouse, rules, now=START + timedelta(minutes=30 + minutes))
        assert [one.closed_at for one in incidents(warehouse)] == expected, minutes
    fill_hour(warehouse, at(1))
    look(warehouse, rules, now=START + timedelta(minutes=30 + 185))
    assert incidents(warehouse)[0].closed_at is None  # the next one is due, too
    fill_hour(warehouse, at(2))
    for _ in range(2):
        look(warehouse, rules, now=START + timedelta(minutes=30 + 190))
    [incident] = incidents(warehouse)
    assert (incident.hour, incident.opened_at) == (at(1), START + timedelta(minutes=150))
    assert incident.closed_at == START + timedelta(minutes=220)


def test_an_hour_is_not_late_while_a_run_catches_up_and_is_once_it_stands_still(warehouse: Path) -> None:
    """A machine that slept: the newest hour is old, and a run makes one hour after another."""
    fill_hour(warehouse, at(0), [scored("a", 90.0)])
    awake = START + 60 * HOUR
    with Warehouse(str(warehouse)).write() as session:
        made = PartitionStates(session)
        for number in range(1, 30):
            made.note("raw_logs", HourRange.of(at(number)), [at(number)])
        session.query("UPDATE partition_states SET materialized_at = ? WHERE hour > ?", [awake, START])
    for minutes, opened in [(1, 0), (19, 0), (20, 1)]:
        done = look(warehouse, [HourLate()], now=awake + timedelta(minutes=minutes))
        assert len(done.opened) == opened, minutes


def test_an_hour_that_is_late_stays_so_while_a_run_catches_up() -> None:
    rule = HourLate()
    late = DueFact(hour=at(5), subject_id="hours", is_there=False, newest=at(0))
    opened = {one.subject: one for one in judge([rule], [late], {}, at=at(7)).opened}
    catching_up = replace(late, is_catching_up=True)
    assert judge([rule], [catching_up], {}, at=at(7)).opened == ()
    assert judge([rule], [catching_up], opened, at=at(8)) == judge([rule], [], opened, at=at(8))
    [over] = judge([rule], [replace(late, is_there=True)], opened, at=at(9)).closed
    assert over.is_recovered


def test_an_empty_warehouse_is_not_late(warehouse: Path) -> None:
    with Warehouse(str(warehouse)).write():
        pass
    assert look(warehouse, [HourLate(), NoData(), Floor()]).opened == []


# -- incidents ---------------------------------------------------------------------------------------------------------


def test_an_incident_says_why_and_which_executions_weigh_most(warehouse: Path) -> None:
    fill_hour(warehouse, at(0), [scored("a", 100.0), scored("b", 100.0)])
    look(warehouse, AGENT_RULES)
    events = [{"agent_id": "a", "kind": "failure", "rank": rank, "event_id": f"e{rank}"} for rank in (2, 1)]
    events.append({"agent_id": "b", "kind": "failure", "rank": 1, "event_id": "other"})
    fill_hour(warehouse, at(1), [scored("a", 80.0), scored("b", 100.0)], score_evidence=events)
    look(warehouse, AGENT_RULES)
    drop, worsened = incidents(warehouse)
    assert worsened.reason == "a went from healthy to degraded (80.0): 50% succeeded, 50% expected"
    assert drop.reason == "a fell by 20.0 points within 6 h, from 100.0 to 80.0: 50% succeeded, 50% expected"
    evidence = json.loads(worsened.evidence)
    assert (evidence["health_score"], evidence["best_state_before"], evidence["hour"]) == (
        80.0,
        "healthy",
        at(1).isoformat(),
    )
    [loss] = evidence["explanation"]
    assert (loss["component"], loss["lost"], loss["evidence"]) == ("success", pytest.approx(20.0), ["e1", "e2"])


def test_late_data_changes_no_past_incident_and_tells_nothing_about_the_past(warehouse: Path) -> None:
    for place in range(5):
        fill_hour(warehouse, at(place), [scored("a", 90.0)])
        look(warehouse, AGENT_RULES)
    for place in range(4):  # the past turns out to have been bad
        fill_hour(warehouse, at(place), [scored("a", 10.0)])
    assert look(warehouse, AGENT_RULES).hours == []
    assert incidents(warehouse) == []
    fill_hour(warehouse, at(-3), [scored("a", 10.0)])  # and there is more of it
    assert look(warehouse, AGENT_RULES).hours == []
    fill_hour(warehouse, at(5), [scored("a", 12.0)])
    look(warehouse, AGENT_RULES)
    assert {(one.rule, one.hour) for one in incidents(warehouse)} >= {("floor", at(5)), ("state_worsened", at(5))}


def test_the_first_look_tells_of_what_is_and_not_of_what_was(warehouse: Path) -> None:
    for place, score in enumerate([10.0, 90.0, 90.0, 60.0]):
        fill_hour(warehouse, at(place), [scored("a", score)])
    assert look(warehouse, AGENT_RULES).hours == [at(3)]
    assert {one.rule for one in incidents(warehouse)} == {"drop", "floor", "state_worsened"}
    assert {one.hour for one in incidents(warehouse)} == {at(3)}


def test_after_a_long_pause_what_lies_before_the_look_back_is_left_out(warehouse: Path) -> None:
    fill_hour(warehouse, at(0), [scored("a", 90.0)])
    look(warehouse, [ExpectationFailed()])
    fill_hour(warehouse, at(400), [scored("a", 90.0)])
    assert look(warehouse, [ExpectationFailed()]).hours == [at(400 - 168 + place) for place in range(24)]


def test_a_retired_agents_incidents_end_without_a_word(warehouse: Path) -> None:
    fill_hour(warehouse, at(0), [scored("a", 10.0)])
    look(warehouse, [Floor()], channels={"c": CHANNEL})
    fill_hour(warehouse, at(1), [])
    retired = Targets(agents={"a": AgentTargets(retired=True)})
    assert look(warehouse, [Floor()], targets=retired, channels={"c": CHANNEL}).closed == []
    [incident] = incidents(warehouse)
    assert incident.recovery == "a is retired"
    with Warehouse(str(warehouse)).read() as session:
        assert session.query("SELECT event FROM alert_deliveries") == [("opened",)]
        assert open_incidents(session) == {}


def test_a_rule_that_is_switched_off_closes_its_incidents_for_those_who_were_told(warehouse: Path) -> None:
    quiet, loud = {"c": CHANNEL}, {"c": CHANNEL, "new": CHANNEL}
    fill_hour(warehouse, at(0), [scored("a", 10.0)], model_health=[model(0.1, last_call_at=at(0))])
    look(warehouse, [Floor(), ModelDegraded()], channels=quiet)
    now = later()
    done = look(warehouse, [ModelDegraded()], channels=loud, now=now)
    assert (done.hours, [one.rule for one in done.closed]) == ([], ["floor"]), "there need not be an hour to judge"
    floor, degraded = incidents(warehouse)
    assert floor.closed_at == now
    assert floor.recovery == "a is not watched any more: the rule floor is switched off"
    assert degraded.closed_at is None
    assert look(warehouse, [ModelDegraded()], channels=loud).closed == []
    with Warehouse(str(warehouse)).read() as session:
        [notice] = [one for one in due_notices(session, "c", later(), 10) if one.event == "closed"]
        assert due_notices(session, "new", later(), 10) == []
    assert message_of(notice).title == f"⚪ {floor.recovery}", "it is over, but not good"


def test_a_rule_that_comes_back_opens_a_new_incident(warehouse: Path) -> None:
    for place, rules in enumerate([[Floor()], [], [Floor()]]):
        fill_hour(warehouse, at(place), [scored("a", 10.0)])
        look(warehouse, rules)
    assert [(one.hour, one.closed_at is None) for one in incidents(warehouse)] == [(at(0), False), (at(2), True)]


def test_a_rule_that_looks_at_others_now_leaves_no_incident_behind(warehouse: Path) -> None:
    fill_hour(warehouse, at(0), [scored("pay-1", 10.0), scored("crm", 10.0)])
    look(warehouse, [Floor(good_hours=2)])
    fill_hour(warehouse, at(1), [scored("pay-1", 90.0), scored("crm", 90.0)])  # a good hour, and not enough of them
    look(warehouse, [Floor(good_hours=2)])
    look(warehouse, [Floor(only=("pay-*",), good_hours=2)])
    crm, pay = incidents(warehouse)
    assert crm.recovery == "crm is not watched any more: the rule floor leaves it out"
    assert (crm.closed_at is None, crm.is_recovered, pay.closed_at) == (False, False, None)
    fill_hour(warehouse, at(2), [scored("pay-1", 90.0), scored("crm", 10.0)])
    look(warehouse, [Floor(only=("pay-*",), good_hours=2)])
    crm, pay = incidents(warehouse)
    assert (pay.closed_at, pay.is_recovered) == (at(3), True)


def test_an_hour_stays_late_once_when_its_rule_is_switched_off_and_on(warehouse: Path) -> None:
    fill_hour(warehouse, at(0), [scored("a", 90.0)])
    for minutes, rules, opened in [
        (160, [HourLate()], 1),
        (161, [], 0),
        (162, [HourLate()], 0),
        (163, [HourLate()], 0),
    ]:
        assert len(look(warehouse, rules, now=START + timedelta(minutes=minutes)).opened) == opened
    [incident] = incidents(warehouse)
    assert (incident.closed_at, incident.is_recovered) == (START + timedelta(minutes=161), False)


def test_what_is_not_known_any_more_takes_its_incidents_with_it(warehouse: Path) -> None:
    rules = [Floor(), ModelDegraded()]
    fill_hour(warehouse, at(0), [scored("a", 10.0)], model_health=[model(0.1, last_call_at=at(0))])
    look(warehouse, rules, channels={"c": CHANNEL})
    with Warehouse(str(warehouse)).write() as session:  # an hour whose run failed says nothing of who is known
        PartitionStates(session).note("raw_logs", HourRange.of(at(1)), [at(1)])
    assert look(warehouse, rules, channels={"c": CHANNEL}).hours == [at(1)]
    assert [one.closed_at for one in incidents(warehouse)] == [None, None]
    fill_hour(warehouse, at(2), [], model_health=[])
    assert look(warehouse, rules, channels={"c": CHANNEL}).closed == []
    assert [one.recovery for one in incidents(warehouse)] == [
        "a is not known any more: it did nothing in the whole look-back",
        "gpt is not known any more: nobody called it in the whole look-back",
    ]
    with Warehouse(str(warehouse)).read() as session:
        assert session.query("SELECT DISTINCT event FROM alert_deliveries") == [("opened",)]


def test_each_rule_compares_with_windows_that_are_enough_for_itself(warehouse: Path) -> None:
    rules = [StateWorsened(least_executions=10), Drop(least_executions=50)]
    for place, (score, n) in enumerate([(100.0, 20), (70.0, 100)]):
        fill_hour(warehouse, at(place), [scored("a", score, n=n)])
        look(warehouse, rules)
    assert [one.rule for one in incidents(warehouse)] == ["state_worsened"]


# -- error budgets -----------------------------------------------------------------------------------------------------


def budget(agent_id: str, short: float | None, long: float | None, n: int, covered: int = 24) -> dict:
    return {
        **{f"{name}_{length}": None if name == "burn_rate" else 0 for name in ("n", "failures", "burn_rate") for length in ("5m", "30m")},
        "agent_id": agent_id, "burn_rate_1h": short, "burn_rate_6h": long, "n_1h": n, "n_6h": 6 * n, "failures_1h": 1,
        "failures_6h": 10, "hours_covered": covered, "budget_spent": long, "allowed_failures": 1.0, "n": 100, "failures": 12,
        "expected_success_rate": 0.95,
    }  # fmt: skip


def burns(rows: list[dict]) -> list[tuple[int, int | None]]:
    """From which hour to which the budget burns, by the rule's defaults, in plain Python."""
    spans: list[tuple[int, int | None]] = []
    opened, good = None, 0
    for place, row in enumerate(rows):
        short = "30m" if row["n_30m"] >= 12 else "1h"
        rates = row[f"burn_rate_{short}"], row["burn_rate_6h"]
        if row[f"n_{short}"] < 1 or row["hours_covered"] < 24 or None in rates:
            if opened is not None and row["hours_covered"] == 24 and (row["n_6h"] == 0 or place - opened >= 24):
                spans.append((opened, place))
                opened = None
            continue
        if opened is None:
            failed, ran = row["failures_6h"], row["n_6h"]
            is_burning = rates[0] > 6 and rates[1] > 6 and (failed >= 10 or (failed >= 4 and failed / ran >= 0.5))
            opened, good = (place, 0) if is_burning else (None, 0)
            continue
        good = good + 1 if rates[0] <= 5 or rates[1] <= 5 else 0
        if good == 3:
            spans.append((opened, place))
            opened = None
    return [*spans, (opened, None)] if opened is not None else spans


def random_budgets(random: Random, agent_id: str) -> list[dict]:
    """Burn rates that wander about the line, with hours of few or no executions and windows with holes."""
    speed, rows = random.uniform(2, 9), []
    for _ in range(60):
        speed = max(0.0, speed + random.gauss(0, 1.5))
        short = random.choice([None, 0.0, *[speed] * 6, speed + 1])
        n, covered = random.choice([0, 1, 10, 50]), random.choice([23, *[24] * 6])
        row = budget(agent_id, short, speed, n, covered) | {"failures_6h": random.choice([3, 4, 9, 10, 10, 10])}
        last_minutes = min(n, random.choice([0, 11, 12, 40]))
        rows.append(row | {"n_30m": last_minutes, "burn_rate_30m": random.choice([0.0, speed, speed + 1])})
    return rows


def test_a_budget_burns_as_the_reference_says_on_random_histories() -> None:
    random, found, expected = Random(8), [], []
    for agent_id in (f"a{number}" for number in range(100)):
        rows = random_budgets(random, agent_id)
        expected += [(agent_id, *span) for span in burns(rows)]
        opened: dict = {}
        for place, row in enumerate(rows):
            seen = BudgetFact(hour=at(place), subject_id=agent_id, row=row, is_covered=row["hours_covered"] == 24)
            judged = judge([BudgetBurn()], [seen], opened, at=at(place + 1))
            opened |= {one.subject: one for one in (*judged.opened, *judged.counted)}
            for one in judged.closed:
                del opened[one.subject]
                found.append((agent_id, one.hour, one.closed_at))
        found += [(agent_id, one.hour, None) for one in opened.values()]
    assert sorted(found, key=str) == sorted(
        ((agent_id, at(first), None if last is None else at(last + 1)) for agent_id, first, last in expected), key=str
    )
    assert sum(last is not None for _, _, last in expected) > 50


@pytest.mark.parametrize(
    ("n", "failures", "opens"), [(4, 4, True), (8, 4, True), (9, 4, False), (3, 3, False), (40, 10, True)]
)
def test_few_failures_count_where_they_are_half_of_the_executions(n: int, failures: int, opens: bool) -> None:
    """As many times as fast as it may be, however few executions there are."""
    spent = failures / n / 0.05
    row = budget("a", 20.0, 20.0, 1) | {
        "n": n,
        "failures": failures,
        "budget_spent": spent,
        "n_6h": 1,
        "failures_6h": 1,
    }
    opening = BudgetBurnSlow().opening(BudgetFact(hour=at(0), subject_id="a", row=row))
    assert (opening is not None) == opens
    if opening:
        assert f"{failures} of {n} executions failed" in opening.reason


def at_the_end_of_an_outage(**columns: float | None) -> BudgetFact:
    """Half of the hour's 100 executions failed, as fast as 20 times what may."""
    row = budget("a", 20.0, 20.0, 100) | {"failures_1h": 50, "n_30m": 50, "failures_30m": 50, "burn_rate_30m": 20.0}
    return BudgetFact(hour=at(0), subject_id="a", row=row | columns)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"n_5m": 4, "burn_rate_5m": 16.0}, ", and 16.0 times in the last 5 minutes"),
        ({"n_5m": 4, "burn_rate_5m": 14.0}, None),
        ({"n_5m": 3, "burn_rate_5m": 0.0}, ", and 20.0 times in the last 30 minutes"),
        ({"n_5m": 0, "burn_rate_30m": 0.0}, None),
        ({"n_5m": 0, "n_30m": 0, "burn_rate_30m": None}, ""),
    ],
    ids=["goes on", "is over", "few in 5 minutes", "over for 30 minutes", "ends quietly"],
)
def test_a_fast_burn_goes_on_by_the_shortest_window_with_enough_executions(columns: dict, reason: str | None) -> None:
    """An agent that runs at half past each hour has no execution in the last minutes, and is told of all the same."""
    opening = BudgetBurnFast().opening(at_the_end_of_an_outage(**columns))
    told = (
        f"a spends its error budget 20.0 times as fast as it may in the last hour{reason}: 50 of 100 executions failed"
    )
    assert (opening and opening.reason) == (None if reason is None else told)


def test_the_hour_in_which_a_fast_burn_ends_is_a_good_one() -> None:
    rule, over = BudgetBurnFast(), at_the_end_of_an_outage(n_5m=9, failures_5m=1, burn_rate_5m=13.4)
    assert rule.is_good(over, 13.4)
    assert rule.is_good(at_the_end_of_an_outage(n_5m=9, burn_rate_5m=13.5), 13.4) is False
    assert rule.recovery(over, at(0)) == (
        "a: 8 of 9 executions succeeded in the last 5 minutes, 50 of 100 in the last hour"
    )


def test_a_burning_budget_says_how_fast_and_names_the_latest_failures(warehouse: Path) -> None:
    rules = [BudgetBurn(), Floor()]
    events = [{"agent_id": "a", "kind": "failure", "rank": 1, "event_id": "e-1"}]
    for place, short in enumerate([8.0, None, 5.0, 0.0, 5.0]):
        agents = [scored("a", 90.0), scored("b", 90.0)]
        own = budget("a", short, 7.0, 0 if short is None else 10) | {"n_6h": 60}
        budgets = [own, budget("b", 9.0, 6.0, 10)]
        fill_hour(warehouse, at(place), agents, error_budget=budgets, score_evidence=events)
        look(warehouse, rules)
    [incident] = incidents(warehouse)
    assert incident.reason == (
        "a spends its error budget 7.0 times as fast as it may over 6 h, and 8.0 times in the last hour: "
        "10 of 60 executions failed"
    )
    evidence = json.loads(incident.evidence)
    assert (evidence["burn_rate_1h"], evidence["latest_failures"], incident.recovers_at) == (8.0, ["e-1"], 5.0)
    assert (incident.hour, incident.closed_at) == (at(0), at(5))
    assert incident.recovery == "a: 9 of 10 executions succeeded in the last hour, 50 of 60 over 6 h"


def test_a_rule_may_look_at_some_agents_only_and_have_its_own_numbers(warehouse: Path) -> None:
    rule = Floor(only=("pay-*",), below=50, good_hours=1, least_executions=1, severity="info", margin=0)
    for place, score in enumerate([49.0, 50.0]):
        fill_hour(warehouse, at(place), [scored("pay-1", score, n=1), scored("other", 1.0), scored("pay-2", 51.0)])
        look(warehouse, [rule])
    [incident] = incidents(warehouse)
    assert (incident.subject_id, incident.severity, incident.closed_at) == ("pay-1", "info", at(2))


def test_an_hour_is_ready_when_it_is_complete_and_quiet() -> None:
    now = START + 10 * HOUR
    written = {"raw_logs": now - timedelta(seconds=200), "agent_health": now - timedelta(seconds=100)}

    def is_ready_at(hour: int, written: dict[str, datetime], *needed: str, idle_h: float = 0) -> bool:
        return is_ready(START + hour * HOUR, written, set(needed), now, timedelta(hours=idle_h))

    assert is_ready_at(9, written, "agent_health")
    assert not is_ready_at(9, written | {"x": now - timedelta(seconds=80)}, "agent_health")
    assert is_ready_at(7, written | {"x": now}, "agent_health"), "changed again and again"
    assert not is_ready_at(7, written, "agent_health", "model_health")
    old = {name: moment - timedelta(minutes=20) for name, moment in written.items()}
    assert is_ready_at(7, old, "agent_health", "model_health"), "its run has failed"
    assert is_ready_at(7, written, "agent_health", "model_health", idle_h=2), "it fails again and again"
    assert not is_ready_at(8, written, "agent_health", "model_health", idle_h=2), "which may still come right"


def test_every_rule_is_named_and_described() -> None:
    assert list(RULES) == [
        "failing_now", "suspect_now", "state_worsened", "floor", "drop", "budget_burn_fast", "budget_burn",
        "budget_burn_slow", "status_worsened", "probe_worsened", "release_worse", "drifting", "model_degraded",
        "expectation_failed", "hour_late", "no_data",
    ]  # fmt: skip
    assert all(rule.__doc__ and rule.looks_at for rule in RULES.values())
