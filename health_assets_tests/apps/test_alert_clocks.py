"""A clock that ran ahead for days, and was put right: nothing waits for the time it showed, nothing lasts less than 0."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from health_assets.apps.alerts.config import Alerts, Webhook
from health_assets.apps.alerts.digest_store import write_due_digest
from health_assets.apps.alerts.facts import DueFact
from health_assets.apps.alerts.incidents import Judged, judge, unwatched
from health_assets.apps.alerts.outbox import last_judged, last_judged_at
from health_assets.apps.alerts.rules import Floor, HourLate
from health_assets.apps.alerts.silencing import Silences
from health_assets.cli.commands import app
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.systems.survey.surveying import survey
from health_assets.warehouse.store import Warehouse
from health_assets_tests.apps.test_alert_deliveries import NOW, alerts_to, closed, deliver, opened, write
from health_assets_tests.apps.test_periodic_digests import DAILY, DUE
from health_assets_tests.consumer.test_consumer_document import document
from health_assets_tests.support.alerts_made import at, fill_hour, incidents, later, look, scored
from health_assets_tests.support.health_servers import Host, answers, closed_port
from health_assets_tests.support.projects import Project
from health_assets_tests.support.receivers import receiver
from health_assets_tests.systems.test_survey import registered, settings_of, this_hour

AHEAD = timedelta(days=10)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "health.duckdb"))


@pytest.mark.parametrize("ahead", [timedelta(days=2), AHEAD, timedelta(hours=1, seconds=1)])
def test_a_notice_that_waits_longer_than_the_longest_wait_is_due(warehouse: Warehouse, ahead: timedelta) -> None:
    with closed_port() as url:
        down = alerts_to(hook=Webhook(type="webhook", url=url))
        write(warehouse, down, Judged(opened=(opened(),)), NOW + ahead)
        deliver(warehouse, down, NOW + ahead)
    with receiver() as hook:
        up = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        assert len(deliver(warehouse, up, NOW).delivered) == 1
        write(warehouse, up, Judged(closed=(closed(opened()),)), NOW)
        assert len(deliver(warehouse, up, NOW).delivered) == 1
    assert [body["event"] for body in hook.bodies] == ["opened", "closed"]


def test_an_end_waits_for_an_opening_that_waits_no_longer_than_it_may(warehouse: Warehouse) -> None:
    with closed_port() as url:
        down = alerts_to(hook=Webhook(type="webhook", url=url))
        write(warehouse, down, Judged(opened=(opened(),)))
        deliver(warehouse, down)
    with receiver() as hook:
        up = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, up, Judged(closed=(closed(opened()),)))
        assert deliver(warehouse, up, NOW + timedelta(seconds=1)).delivered == []


def digest_to(url: str) -> Alerts:
    return alerts_to(hook=Webhook(type="webhook", url=url)).model_copy(update={"digest": DAILY})


def test_a_digest_of_a_time_to_come_waits_for_nothing_and_holds_up_no_digest(warehouse: Warehouse) -> None:
    settings = Settings(warehouse=str(warehouse.path))
    with warehouse.write():
        pass
    with closed_port() as url:
        assert write_due_digest(warehouse, digest_to(url), settings, Targets(), DUE + AHEAD)
        deliver(warehouse, digest_to(url), DUE + AHEAD)
    with receiver() as hook:
        written = write_due_digest(warehouse, digest_to(hook.url), settings, Targets(), DUE)
        assert written
        assert written.due_at == DUE
        assert write_due_digest(warehouse, digest_to(hook.url), settings, Targets(), DUE + HOUR) is None
        assert len(deliver(warehouse, digest_to(hook.url), DUE).delivered) == 2


def test_hours_that_a_clock_ahead_judged_are_judged_in_their_time(warehouse: Warehouse) -> None:
    path = Path(str(warehouse.path))
    for place in range(4):
        fill_hour(path, at(place), [scored("a", 90.0)])
        look(path, [Floor()])
    with warehouse.write() as session:
        ahead = session.now() + AHEAD
        sql = "UPDATE partition_states SET materialized_at = ? WHERE asset = 'alerts' AND hour > ?"
        session.query(sql, [ahead, at(1)])
    with warehouse.read() as session:
        assert last_judged(session) == at(1)
        assert last_judged_at(session) < ahead - AHEAD + HOUR
    fill_hour(path, at(2), [scored("a", 10.0)])
    assert look(path, [Floor()], now=later()).hours == [at(2), at(3)]
    assert [one.hour for one in incidents(path)] == [at(2)]


def test_no_incident_ends_before_it_opened() -> None:
    late = DueFact(hour=at(240), subject_id="hours", is_there=False, newest=at(0))
    [incident] = judge([HourLate()], [late], {}, at=at(241)).opened
    is_open = {incident.subject: incident}
    there = replace(late, hour=at(1), is_there=True)
    [over] = judge([HourLate()], [there], is_open, at=at(2)).closed
    [given_up] = unwatched([], is_open, at=at(2)).closed
    assert over.closed_at == given_up.closed_at == incident.opened_at


def test_the_command_never_says_that_an_incident_lasted_less_than_nothing(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an older version wrote it: it ended 239 hours before it opened. Another one lasted 25 minutes."""
    monkeypatch.setenv("HEALTH_WAREHOUSE", str(warehouse.path))
    alerts = alerts_to()
    first, short = opened("a"), opened("b", 1)
    ends = [
        replace(first, closed_at=first.opened_at - 239 * HOUR, recovery="a is back", good_hours=1),
        replace(short, closed_at=short.opened_at + timedelta(minutes=25), recovery="b is back", good_hours=1),
    ]
    write(warehouse, alerts, Judged(opened=(first, short)))
    write(warehouse, alerts, Judged(closed=tuple(ends)))
    with warehouse.write() as session:
        from health_assets.warehouse.partition_states import PartitionStates

        PartitionStates(session).note("alerts", HourRange.of(at(0)), [])
    done = CliRunner().invoke(app, ["alerts", "--days", "3650"], terminal_width=200)
    assert "-239" not in done.output
    assert "0 min" in done.output
    assert "25 min" in done.output


def test_a_silence_from_now_on_is_in_force_whatever_the_clock_said_when_it_was_added(warehouse: Warehouse) -> None:
    silences = Silences(warehouse)
    wanted = {"agents": ["a"], "reason": "it moves", "by": "ops", "until": NOW + 2 * AHEAD, "now": NOW + AHEAD}
    silences.add(**wanted)
    planned = silences.add(**{**wanted, "start": NOW + AHEAD + HOUR})
    assert [one.silence_id for one in silences.active(NOW)] != [planned.silence_id]
    assert len(silences.active(NOW)) == 1


def test_an_agent_that_a_clock_ahead_asked_is_asked_again(project: Project) -> None:
    this_hour()
    with Host(answers(document())) as host:
        settings = settings_of(project, allow_private_addresses=True)
        assert survey(settings, registered(host, "a")).probed == 1
        for minutes, probed in [(2, 0), (60, 1)]:
            project.change(f"UPDATE agent_probes SET probed_at = probed_at + INTERVAL {minutes} MINUTE")
            assert survey(settings, registered(host, "a")).probed == probed, minutes
