"""Groups: what several rules say of one agent at one time is one message of each channel, with every rule in it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest

from health_assets.apps.alerts import delivering
from health_assets.apps.alerts.config import Alerts, Channel, Slack, Webhook
from health_assets.apps.alerts.incidents import Incident, Judged
from health_assets.apps.alerts.messages import gathered
from health_assets.apps.alerts.outbox import CLOSED, OPENED, Notice
from health_assets.apps.alerts.rules import RULES, Drop, Floor
from health_assets.apps.alerts.silencing import Silences, apply_silences
from health_assets.apps.alerts.tick_runner import tick
from health_assets.core.hours import HOUR
from health_assets.core.settings import Settings
from health_assets.core.targets import AgentTargets, Targets
from health_assets.warehouse.store import Warehouse
from health_assets_tests.apps.test_alert_deliveries import NOW, closed, deliver, opened, outbox, write
from health_assets_tests.support.alerts_made import at, fill_hour, later, scored
from health_assets_tests.support.receivers import receiver


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "health.duckdb"))


def alerts_to(digest_above: int = 10, **channels: Channel) -> Alerts:
    return Alerts(rules=tuple(rule() for rule in RULES.values()), channels=channels, digest_above=digest_above)


def by_rules(agent_id: str, *rules: str, hour: int = 0) -> list[Incident]:
    severities = {"floor": "critical", "drop": "warning", "no_data": "info"}
    return [
        opened(agent_id, hour, rule=rule, incident_id=f"{agent_id}-{rule}-{hour}", severity=severities[rule])
        for rule in rules
    ]


def test_rules_that_object_to_one_agent_in_one_hour_are_one_message_of_each_channel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "health.duckdb"
    for hour, score in enumerate([90.0, 50.0]):
        fill_hour(path, at(hour), [scored("a", score), scored("b", score + 5)])
        if hour == 0:
            tick(Settings(warehouse=str(path)), Alerts(rules=(Floor(), Drop())), Targets(), later())
    with receiver() as hook, receiver() as slack:
        monkeypatch.setenv("SLACK_URL", slack.url)
        channels = {
            "hook": Webhook(type="webhook", url=hook.url),
            "slack": Slack(type="slack", url_env="SLACK_URL"),
        }
        alerts = Alerts(rules=(Floor(), Drop()), channels=channels)
        done = tick(Settings(warehouse=str(path)), alerts, Targets(), later())
    assert len(done.sent.delivered) == 8, "every notice is marked"
    assert [[one["rule"] for one in body["notices"]] for body in hook.bodies] == [["floor", "drop"]] * 2
    assert {body["event"] for body in hook.bodies} == {"group"}
    assert len(slack.bodies) == 2
    first = slack.bodies[0]
    assert first["text"].startswith("🔴 a scored 50.0, below 65")
    assert first["text"].endswith("(and 1 more)")
    lines = first["blocks"][1]["text"]["text"].splitlines()
    assert lines[0].startswith("🔴 floor: a scored 50.0")
    assert lines[1].startswith("🟠 drop: a fell by 40.0 points within 6 h")
    assert len([line for line in lines if line.startswith("-")]) == 1, "what cost the points is said once"


def test_other_agents_other_hours_and_the_end_are_messages_of_their_own(warehouse: Warehouse) -> None:
    with receiver() as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        both, later_one, [other] = (
            by_rules("a", "floor", "drop"),
            by_rules("a", "no_data", hour=1),
            by_rules("b", "drop"),
        )
        write(warehouse, alerts, Judged(opened=(*both, *later_one, other)))
        deliver(warehouse, alerts)
        assert sorted(body["event"] for body in hook.bodies) == ["group", "opened", "opened"]
        hook.received.clear()
        write(warehouse, alerts, Judged(closed=tuple(map(closed, both))), NOW + HOUR)
        deliver(warehouse, alerts, NOW + HOUR)
    [end] = hook.bodies
    assert [one["event"] for one in end["notices"]] == ["closed", "closed"]


def test_what_a_silence_held_back_of_one_agent_is_one_message_when_it_is_over(warehouse: Warehouse) -> None:
    silences = Silences(warehouse)
    with receiver() as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        name = silences.add(agents=["a"], until=NOW + HOUR, reason="r", by="b", now=NOW).silence_id
        write(warehouse, alerts, Judged(opened=tuple(by_rules("a", "floor") + by_rules("a", "drop", hour=3))))
        with warehouse.write() as session:
            apply_silences(session, NOW)
        assert deliver(warehouse, alerts).delivered == []
        silences.end(name, NOW)
        deliver(warehouse, alerts)
    [body] = hook.bodies
    assert [one["rule"] for one in body["notices"]] == ["floor", "drop"]


def test_a_group_that_is_sent_again_has_the_same_key(warehouse: Warehouse) -> None:
    with receiver(500, 500, 500) as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=tuple(by_rules("a", "floor", "drop"))))
        deliver(warehouse, alerts)
        write(warehouse, alerts, Judged(opened=tuple(by_rules("a", "no_data", hour=2))), NOW + HOUR)
        deliver(warehouse, alerts, NOW + HOUR)
    assert len(set(hook.keys[:4])) == 1
    assert len(hook.keys) == 5


def test_a_group_that_is_refused_is_sent_one_by_one_and_holds_up_no_other(warehouse: Warehouse) -> None:
    with receiver(400) as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=tuple(by_rules("a", "floor", "drop") + by_rules("b", "floor"))))
        assert len(deliver(warehouse, alerts).delivered) == 3
    assert [body["event"] for body in hook.bodies] == ["group", "opened", "opened", "opened"]
    assert all(row[3] for row in outbox(warehouse))


def test_a_group_that_is_too_large_is_sent_in_parts(warehouse: Warehouse) -> None:
    with receiver() as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=tuple(by_rules("a", "floor", "drop"))))
        hook.most_bytes = 1500
        assert len(deliver(warehouse, alerts).delivered) == 2
    assert len(hook.too_large) >= 1
    assert len(hook.bodies) == 2


def test_many_rules_of_one_agent_are_one_message_to_what_makes_a_digest(warehouse: Warehouse) -> None:
    with receiver() as hook:
        alerts = alerts_to(2, hook=Webhook(type="webhook", url=hook.url))
        rules = ("floor", "drop", "no_data")
        write(warehouse, alerts, Judged(opened=tuple(by_rules("a", *rules) + by_rules("b", *rules))))
        deliver(warehouse, alerts)
    assert [body["event"] for body in hook.bodies] == ["group", "group"]


def test_a_group_says_no_more_of_a_personal_agent_than_one_message(warehouse: Warehouse) -> None:
    with receiver() as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=tuple(by_rules("mine", "floor", "drop"))))
        targets = Targets(agents={"mine": AgentTargets(personal=True)})
        delivering.deliver(warehouse, warehouse, alerts, NOW, targets=targets)
    [body] = hook.bodies
    assert all("rule" not in one and "reason" not in one for one in body["notices"])
    assert not any(detail in str(body) for detail in ("floor:", "40.0", "critical", "e-1"))


def test_no_end_comes_before_its_opening_in_whatever_order_notices_are() -> None:
    """Of two incidents of an agent that end in one hour, one of which opened before."""
    start = datetime(2026, 6, 9, tzinfo=UTC)
    first, second = (replace(opened("a"), incident_id=name) for name in ("x", "y"))
    second = replace(second, opened_at=start + timedelta(hours=1))
    ends = [replace(closed(one), closed_at=start + 5 * HOUR) for one in (first, second)]
    notices = [
        Notice(incident=ends[0], event=CLOSED, channel="c"),
        Notice(incident=ends[1], event=OPENED, channel="c"),
        Notice(incident=ends[1], event=CLOSED, channel="c"),
    ]
    for order in permutations(notices):
        if order.index(notices[1]) < order.index(notices[2]):
            told = [notice for group in gathered(order) for notice in group]
            assert told.index(notices[1]) < told.index(notices[2])
            assert len(told) == 3
