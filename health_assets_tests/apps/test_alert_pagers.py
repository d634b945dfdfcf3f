"""Pagers and Teams: each gets its own form, over HTTP to real servers, and a pager's alert is resolved by its incident."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from health_assets.apps.alerts import delivering
from health_assets.apps.alerts.config import Alerts, Channel, Opsgenie, PagerDuty, Teams, Webhook, load_alerts
from health_assets.apps.alerts.delivering import Delivery, try_channels
from health_assets.apps.alerts.incidents import Judged
from health_assets.apps.alerts.message_forms import OPSGENIE_MESSAGE
from health_assets.apps.alerts.outbox import keep
from health_assets.apps.alerts.rules import RULES, BudgetBurn, Drop, Floor
from health_assets.core.errors import HealthAssetsError
from health_assets.warehouse.store import Warehouse
from health_assets_tests.apps.test_alert_deliveries import closed, opened
from health_assets_tests.support.receivers import Receiver, receiver

NOW = datetime(2026, 6, 9, tzinfo=UTC)
KEY = "sesame-key"


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "health.duckdb"))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER_KEY", KEY)


def pagerduty(hook: Receiver) -> PagerDuty:
    return PagerDuty(type="pagerduty", key_env="PAGER_KEY", url=hook.origin)


def opsgenie(hook: Receiver) -> Opsgenie:
    return Opsgenie(type="opsgenie", key_env="PAGER_KEY", url=hook.origin)


def told(warehouse: Warehouse, channel: Channel, judged: Judged, digest_above: int = 10) -> Delivery:
    alerts = Alerts(
        rules=tuple(rule() for rule in RULES.values()), channels={"pager": channel}, digest_above=digest_above
    )
    with warehouse.write() as session:
        keep(session, judged, alerts, NOW)
    pages = "https://health.example"
    return delivering.deliver(warehouse, warehouse, alerts, NOW, pages_url=pages, budget_s=60.0, pause_s=0.01)


def test_pagerduty_opens_an_alert_for_an_incident_and_its_end_resolves_it(warehouse: Warehouse) -> None:
    incident = opened("crm-sync")
    with receiver(202, 202) as hook:
        told(warehouse, pagerduty(hook), Judged(opened=(incident,)))
        told(warehouse, pagerduty(hook), Judged(closed=(closed(incident),)))
    assert hook.paths == ["/v2/enqueue"] * 2
    trigger, resolve = hook.bodies
    assert trigger["event_action"] == "trigger"
    assert trigger["routing_key"] == KEY
    assert trigger["dedup_key"] == incident.incident_id
    payload = trigger["payload"]
    assert payload["summary"] == incident.reason
    assert (payload["source"], payload["severity"], payload["class"]) == ("crm-sync", "critical", "floor")
    assert payload["timestamp"] == incident.opened_at.isoformat()
    assert any("<e-2>" in line for line in payload["custom_details"]["lines"])
    assert {"href": "https://health.example/ui/agents/crm-sync", "text": "Agent"} in trigger["links"]
    assert resolve == {"routing_key": KEY, "event_action": "resolve", "dedup_key": incident.incident_id}


def test_opsgenie_opens_an_alert_for_an_incident_and_its_end_closes_it(warehouse: Warehouse) -> None:
    incident = opened("crm-sync", reason="r" * 200)
    with receiver(202, 202) as hook:
        told(warehouse, opsgenie(hook), Judged(opened=(incident,)))
        told(warehouse, opsgenie(hook), Judged(closed=(closed(incident),)))
    assert hook.paths == ["/v2/alerts", f"/v2/alerts/{incident.incident_id}/close?identifierType=alias"]
    assert {headers["Authorization"] for headers, _ in hook.received} == {f"GenieKey {KEY}"}
    create, close = hook.bodies
    assert create["alias"] == incident.incident_id
    assert len(create["message"]) == OPSGENIE_MESSAGE
    assert create["description"].startswith("r" * 200)
    assert (create["priority"], create["entity"], create["tags"]) == ("P1", "crm-sync", ["floor"])
    assert create["details"]["Agent"] == "https://health.example/ui/agents/crm-sync"
    assert close["note"].startswith("crm-sync is back")


@pytest.mark.parametrize("make", [pagerduty, opsgenie], ids=["pagerduty", "opsgenie"])
def test_a_pager_gets_each_incident_by_itself_so_that_each_is_resolved(warehouse: Warehouse, make: type) -> None:
    incidents = [opened(f"agent-{number}") for number in range(5)]
    incidents.append(opened("agent-0", rule="failing_now", incident_id="other"))
    with receiver() as hook:
        told(warehouse, make(hook), Judged(opened=tuple(incidents)), digest_above=2)
        told(warehouse, make(hook), Judged(closed=tuple(map(closed, incidents))), digest_above=2)
    ids = {incident.incident_id for incident in incidents}
    bodies = hook.bodies
    assert len(bodies) == 12
    if make is pagerduty:
        assert {body["dedup_key"] for body in bodies[:6]} == {body["dedup_key"] for body in bodies[6:]} == ids
    else:
        assert {body["alias"] for body in bodies[:6]} == ids
        assert {path.split("/")[3] for path in hook.paths[6:]} == ids


def test_a_pager_is_told_of_critical_rules_unless_others_name_it() -> None:
    chat, pager = Teams(type="teams", url_env="U"), PagerDuty(type="pagerduty", key_env="PAGER_KEY")
    alerts = Alerts(rules=(Floor(), Drop(), BudgetBurn(channels=("pager",))), channels={"chat": chat, "pager": pager})
    told = {rule: alerts.channels_of(rule) for rule in ("floor", "drop", "budget_burn")}
    assert told == {"floor": ("chat", "pager"), "drop": ("chat",), "budget_burn": ("pager",)}


def test_an_incident_that_nobody_looks_at_any_more_is_resolved_at_the_pager_and_told_to_nobody(
    warehouse: Warehouse,
) -> None:
    incident = opened("retired")
    given_up = replace(closed(incident), recovery="retired is retired by now")
    with receiver() as hook, receiver() as chat:
        channels = {"pager": pagerduty(hook), "chat": Webhook(type="webhook", url=chat.url)}
        alerts = Alerts(rules=(Floor(),), channels=channels)
        for judged in (Judged(opened=(incident,)), Judged(dropped=(given_up,))):
            with warehouse.write() as session:
                keep(session, judged, alerts, NOW)
            delivering.deliver(warehouse, warehouse, alerts, NOW, budget_s=60.0, pause_s=0.01)
    assert [body["event_action"] for body in hook.bodies] == ["trigger", "resolve"]
    assert [body["event"] for body in chat.bodies] == ["opened"]


def test_several_rules_about_an_agent_are_one_card_with_its_page(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver() as hook:
        monkeypatch.setenv("TEAMS_URL", hook.url)
        both = (opened("a"), opened("a", rule="failing_now", incident_id="other"))
        told(warehouse, Teams(type="teams", url_env="TEAMS_URL"), Judged(opened=both))
    [card] = [body["attachments"][0]["content"] for body in hook.bodies]
    assert card["actions"][0]["url"] == "https://health.example/ui/agents/a"


def test_a_pager_that_refuses_one_event_gets_the_others_and_is_asked_again_where_it_is_busy(
    warehouse: Warehouse,
) -> None:
    with receiver(400, 429, 202, 202) as hook:
        outcome = told(warehouse, pagerduty(hook), Judged(opened=(opened("a"), opened("b"), opened("c"))))
    assert len(outcome.delivered) == 2
    assert [error for _, error, _ in outcome.failed] == ["it answered 400"]
    assert len(hook.bodies) == 4


@pytest.mark.parametrize("make", [pagerduty, opsgenie], ids=["pagerduty", "opsgenie"])
def test_a_test_of_a_pager_leaves_no_alert_open(make: type) -> None:
    with receiver() as hook:
        assert try_channels(Alerts(channels={"pager": make(hook)}), NOW) == {"pager": None}
    first, last = hook.bodies
    if make is pagerduty:
        assert (first["event_action"], last["event_action"]) == ("trigger", "resolve")
        assert first["dedup_key"] == last["dedup_key"]
        assert first["payload"]["severity"] == "info"
    else:
        assert first["priority"] == "P5"
        assert hook.paths[1] == f"/v2/alerts/{first['alias']}/close?identifierType=alias"


def test_of_a_personal_agent_a_pager_hears_that_something_changed_and_nothing_else(warehouse: Warehouse) -> None:
    incident = opened("mine", is_personal=True)
    with receiver() as hook:
        for make in (pagerduty, opsgenie):
            own = Warehouse(str(warehouse.path.with_name(f"{make.__name__}.duckdb")))
            told(own, make(hook), Judged(opened=(incident,)))
            told(own, make(hook), Judged(closed=(closed(incident),)))
    said = json.dumps(hook.bodies)
    for detail in ("e-1", "40.0", "succeeded", "floor", "is back", "critical", "P1"):
        assert detail not in said
    assert "mine, a personal agent" in said


def test_teams_gets_a_card_whose_texts_are_no_markup(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "[pay](https://evil.example) **now**"
    with receiver(202) as hook:
        monkeypatch.setenv("TEAMS_URL", hook.url)
        told(warehouse, Teams(type="teams", url_env="TEAMS_URL"), Judged(opened=(opened(name),)))
    [body] = hook.bodies
    [attachment] = body["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    runs = [run for block in card["body"] for run in block["inlines"]]
    assert {run["type"] for run in runs} == {"TextRun"}
    assert name in runs[0]["text"]
    assert card["actions"][0]["url"].startswith("https://health.example/ui/agents/")


def test_a_storm_fits_into_what_teams_takes(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as hook:
        hook.most_bytes = 28 * 1024
        monkeypatch.setenv("TEAMS_URL", hook.url)
        incidents = tuple(opened(f"agent-{number}", reason="x" * 1500) for number in range(60))
        outcome = told(warehouse, Teams(type="teams", url_env="TEAMS_URL"), Judged(opened=incidents))
    assert len(outcome.delivered) == 60
    assert not outcome.failed
    assert not hook.too_large


def test_a_key_is_in_no_table_and_no_error(warehouse: Warehouse) -> None:
    with receiver(400, 401) as hook:
        outcome = [
            told(warehouse, make(hook), Judged(opened=(opened(make.__name__),))) for make in (pagerduty, opsgenie)
        ]
    assert KEY.encode() not in warehouse.path.read_bytes() + str(outcome).encode()


def test_a_pager_gets_no_periodic_digest(tmp_path: Path) -> None:
    path = tmp_path / "alerts.yaml"
    channels = "channels: {pager: {type: pagerduty, key_env: K}, chat: {type: slack, url_env: U}}\n"
    path.write_text(channels + "digest: {every: daily, at: '07:30'}\n")
    assert load_alerts(path).channels_of_digest() == ("chat",)
    path.write_text(channels + "digest: {every: daily, at: '07:30', channels: [pager]}\n")
    with pytest.raises(HealthAssetsError, match="digest: channels: a pager takes no digest"):
        load_alerts(path)
    path.write_text("channels: {pager: {type: pagerduty, key_env: K}}\ndigest: {every: daily, at: '07:30'}\n")
    with pytest.raises(HealthAssetsError, match="digest: no channel takes it"):
        load_alerts(path)


def test_a_pager_may_be_below_a_path() -> None:
    with receiver(202) as hook:
        pager = Opsgenie(type="opsgenie", key_env="PAGER_KEY", url=f"{hook.origin}/jsm/ops/integration/")
        try_channels(Alerts(channels={"pager": pager}), NOW)
    assert hook.paths[0] == "/jsm/ops/integration/v2/alerts"
