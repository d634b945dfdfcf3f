"""Alerts of the running hour: what opens is told at once, all else once the hour is over."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from health_assets.apps.alerts.collectors import facts_of
from health_assets.apps.alerts.config import Alerts
from health_assets.apps.alerts.evaluator import Watch, watch
from health_assets.apps.alerts.facts import ExpectationFact
from health_assets.apps.alerts.observed_hour import ObservedHour
from health_assets.apps.alerts.rules import RULES
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import load_targets
from health_assets_tests.support.alerts_made import incidents
from health_assets_tests.support.clocks import SetClock, settable_clock
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import Project

ALERTS = Alerts(rules=(RULES["failing_now"](),))
NOW_STEPS = ("ingest", "health_components", "now_components", "agent_now", "agent_health", "system_health")
"""The steps that make what these rules look at."""
OUTAGE = START + 6 * HOUR
"""The hour in which everything begins to fail, ten minutes after its start."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    return settable_clock(monkeypatch)


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An agent with a run a minute, judged up to the outage; tests change only copies."""
    project = Project(tmp_path_factory.mktemp("well") / "project", {}, 4, 24)
    add(project, "well", runs(START, OUTAGE))
    with pytest.MonkeyPatch.context() as changes:
        materialize(project, OUTAGE - HOUR, settable_clock(changes), OUTAGE + timedelta(minutes=5))
        assert looked(project, OUTAGE + timedelta(minutes=8)).hours == [OUTAGE - HOUR]
    return project


@pytest.fixture
def project(well: Project, tmp_path: Path) -> Project:
    return well.copied(tmp_path / "project")


def runs(start: datetime, end: datetime, status: str = "success") -> list[Record]:
    count = round((end - start) / timedelta(minutes=1))
    moments = (start + (place + 0.5) * timedelta(minutes=1) for place in range(count))
    return [execution(f"e{moment:%H:%M}", "a", moment, 5.0, status=status) for moment in moments]


def add(project: Project, name: str, records: Iterable[Record]) -> None:
    project.write_log(f"{name}.jsonl", map(line, records))


def materialize(
    project: Project, hour: datetime, clock: SetClock, now: datetime, only: Sequence[str] = NOW_STEPS
) -> None:
    clock(now)
    project.materialize(HourRange.of(hour), only=only)


def looked(project: Project, now: datetime, alerts: Alerts = ALERTS) -> Watch:
    return watch(project.warehouse, alerts, project.settings, load_targets(project.settings.targets), now)


def after(minutes: float) -> datetime:
    return OUTAGE + timedelta(minutes=minutes)


def test_an_outage_opens_an_incident_while_its_hour_runs_and_once(project: Project, clock: SetClock) -> None:
    add(project, "well too", runs(OUTAGE, after(10)))
    add(project, "down", runs(after(10), after(14), "failure"))
    materialize(project, OUTAGE, clock, after(14))
    seen = looked(project, after(14.1))
    assert [(one.rule, one.subject_id, one.opened_at) for one in seen.opened] == [("failing_now", "a", after(14))]
    assert not seen.hours, "the hour itself is judged when it is over"
    add(project, "down longer", runs(after(14), after(20), "failure"))
    materialize(project, OUTAGE, clock, after(20))
    assert str(looked(project, after(20.1))) == "0 hours judged, 0 incidents opened, 0 closed"
    assert len(incidents(project.warehouse_path)) == 1


def test_an_incident_of_a_running_hour_closes_by_good_hours_alone(project: Project, clock: SetClock) -> None:
    add(project, "down", runs(OUTAGE, after(5), "failure"))
    materialize(project, OUTAGE, clock, after(5))
    assert looked(project, after(5.1)).opened
    add(project, "well again", runs(after(5), after(60)))
    for minute in (30, 50):
        materialize(project, OUTAGE, clock, after(minute))
        assert not looked(project, after(minute)).closed
    materialize(project, OUTAGE, clock, after(65))
    seen = looked(project, after(70))
    assert (seen.hours, seen.opened) == ([OUTAGE], [])


@pytest.mark.parametrize("minute", [20, 59])
def test_an_hour_that_was_made_while_it_ran_is_not_judged_before_it_is_made_anew(
    project: Project, clock: SetClock, minute: float
) -> None:
    add(project, "well still", runs(OUTAGE, after(minute)))
    materialize(project, OUTAGE, clock, after(minute))
    assert not looked(project, after(60.2)).hours, "however long ago that was"
    assert not looked(project, after(65)).hours
    materialize(project, OUTAGE, clock, after(66))
    assert looked(project, after(70)).hours == [OUTAGE]


def test_what_is_made_of_a_running_hour_is_judged_though_the_rest_is_older_or_missing(
    project: Project, clock: SetClock
) -> None:
    materialize(project, OUTAGE, clock, after(0.5))
    add(project, "down", runs(OUTAGE, after(5), "failure"))
    clock(after(6))
    project.materialize(HourRange.of(OUTAGE), only=NOW_STEPS[:4])
    [opened] = looked(project, after(6.1)).opened
    assert (opened.rule, opened.opened_at) == ("failing_now", after(6))
    materialize(project, OUTAGE, clock, after(7))
    assert not looked(project, after(7.1)).opened, "it is open already"


def test_an_incident_whose_hour_ends_well_says_how_it_went_since_it_opened(project: Project, clock: SetClock) -> None:
    alerts = Alerts(rules=(RULES["failing_now"](good_hours=1),))
    add(project, "down", runs(OUTAGE, after(5), "failure"))
    materialize(project, OUTAGE, clock, after(5))
    assert looked(project, after(5.1), alerts).opened
    add(project, "well again", runs(after(5), after(60)))
    materialize(project, OUTAGE, clock, after(65))
    [closed] = looked(project, after(68), alerts).closed
    assert closed.recovery == "a: 55 of 60 executions succeeded in 1 h"


def test_an_agent_that_is_no_longer_failing_is_not_told_again_as_suspect(project: Project, clock: SetClock) -> None:
    alerts = Alerts(rules=(RULES["failing_now"](), RULES["suspect_now"]()))
    add(project, "down", runs(OUTAGE, after(12), "failure"))
    materialize(project, OUTAGE, clock, after(12))
    assert [one.rule for one in looked(project, after(12.1), alerts).opened] == ["failing_now"]
    add(project, "well again", runs(after(12), after(20)))
    materialize(project, OUTAGE, clock, after(20))
    assert project.query("SELECT verdict FROM agent_now WHERE NOT is_final") == [("suspect",)]
    assert not looked(project, after(20.1), alerts).opened


def test_an_incident_of_a_check_that_is_evaluated_no_more_ends_after_a_day(project: Project) -> None:
    rule = RULES["expectation_failed"]()
    with project.warehouse.read() as session:
        observed = ObservedHour(
            session=session, hour=OUTAGE - HOUR, rules=(rule,), targets=load_targets(project.settings.targets),
            open_subjects={(rule.name, "expectation", "agent_health.forgotten")}, window_hours=4,
        )  # fmt: skip
        [fact] = facts_of(observed, [ExpectationFact])
    assert fact.subject_id == "agent_health.forgotten"
    assert rule.is_good(fact, None) is None
    assert rule.gives_up(fact, fact.hour - timedelta(days=1)) and not rule.gives_up(fact, fact.hour)


def test_an_earlier_hour_that_is_judged_later_closes_no_incident_of_the_running_hour(
    project: Project, clock: SetClock
) -> None:
    alerts = Alerts(rules=(RULES["failing_now"](good_hours=1),))
    add(project, "well still", runs(OUTAGE, after(60)))
    add(project, "down", [*runs(after(60), after(65), "failure"), *_of_a_newcomer(after(60))])
    clock(after(65))
    project.materialize(HourRange(OUTAGE, OUTAGE + 2 * HOUR), only=NOW_STEPS)
    opened = looked(project, after(65.1), alerts).opened
    assert {one.subject_id for one in opened} == {"a", "new"}, "the hour before is still to be judged"
    seen = looked(project, after(68), alerts)
    assert (seen.hours, seen.closed) == ([OUTAGE], [])
    assert all(one.closed_at is None for one in incidents(project.warehouse_path))


def _of_a_newcomer(start: datetime) -> list[Record]:
    return [{**record, "agent_id": "new"} for record in runs(start, start + timedelta(minutes=5), "failure")]


def test_an_agent_without_a_run_so_far_is_no_agent_without_data(project: Project, clock: SetClock) -> None:
    alerts = Alerts(rules=(RULES["no_data"](),))
    records = [execution(f"b{hour}", "hourly", START + hour * HOUR + HOUR / 2, 5.0) for hour in range(6)]
    project.window_hours = 1
    add(project, "hourly", records)
    materialize(project, OUTAGE - HOUR, clock, after(9))
    add(project, "well still", runs(OUTAGE, after(12)))
    materialize(project, OUTAGE, clock, after(12))
    assert not looked(project, after(12.1), alerts).opened


def test_a_fast_burn_is_over_with_the_hour_that_ends_well(project: Project, clock: SetClock) -> None:
    alerts, steps = Alerts(rules=(RULES["budget_burn_fast"](good_hours=1),)), (*NOW_STEPS, "error_budget")
    add(project, "down", runs(OUTAGE, after(50), "failure"))
    materialize(project, OUTAGE, clock, after(50), steps)
    [opened] = looked(project, after(50.1), alerts).opened
    assert "16.7 times as fast as it may in the last hour, and 20.0 times in the last 5 minutes" in opened.reason
    add(project, "well again", runs(after(50), after(60)))
    materialize(project, OUTAGE, clock, after(65), steps)
    [closed] = looked(project, after(68), alerts).closed
    assert (closed.closed_at, closed.is_recovered) == (after(60), True)
    assert closed.recovery == "a: 5 of 5 executions succeeded in the last 5 minutes, 10 of 60 in the last hour"
