"""Deliveries: at least once, to real servers that work, are down, slow, or have a bad day; and nothing leaks."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from health_assets.apps.alerts import delivering
from health_assets.apps.alerts.config import Alerts, Channel, Email, Slack, Webhook
from health_assets.apps.alerts.delivering import Delivery, next_attempt, try_channels
from health_assets.apps.alerts.facts import AgentFact
from health_assets.apps.alerts.incidents import Incident, Judged, judge
from health_assets.apps.alerts.messages import LISTED_OF_DIGEST, SIGNS, digest_of
from health_assets.apps.alerts.outbox import Notice, count_waiting, keep
from health_assets.apps.alerts.rules import RULES, Floor
from health_assets.core.hours import HOUR
from health_assets.core.targets import AgentTargets, Targets
from health_assets.warehouse.store import Warehouse
from health_assets_tests.apps.test_serving_tls import certificate
from health_assets_tests.support.alerts_made import at, scored
from health_assets_tests.support.health_servers import closed_port
from health_assets_tests.support.projects import command_environment
from health_assets_tests.support.receivers import hanging, mailbox, receiver

NOW = datetime(2026, 6, 9, tzinfo=UTC)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "health.duckdb"))


def opened(agent_id: str = "a", hour: int = 0, **columns: Any) -> Incident:
    """An incident with all that there is to say about it."""
    row = scored(agent_id, 40.0)
    seen = AgentFact(hour=at(hour), subject_id=agent_id, row=row, event_ids={"failure": ["e-1", "<e-2>"]})
    [incident] = judge([Floor()], [seen], {}, at=at(hour + 1)).opened
    return replace(incident, **columns)


def closed(incident: Incident) -> Incident:
    return replace(
        incident, closed_at=incident.opened_at + 5 * HOUR, recovery=f"{incident.subject_id} is back", good_hours=3
    )


def alerts_to(**channels: Channel) -> Alerts:
    return Alerts(rules=tuple(rule() for rule in RULES.values()), channels=channels)


def write(warehouse: Warehouse, alerts: Alerts, judged: Judged, now: datetime = NOW) -> None:
    with warehouse.write() as session:
        keep(session, judged, alerts, now)


def deliver(warehouse: Warehouse, alerts: Alerts, now: datetime = NOW, budget_s: float = 60.0) -> Delivery:
    return delivering.deliver(warehouse, warehouse, alerts, now, budget_s=budget_s, pause_s=0.01)


def outbox(warehouse: Warehouse) -> list[tuple]:
    with warehouse.read() as session:
        return session.query(
            "SELECT event, channel, attempts, delivered_at IS NOT NULL, last_error FROM alert_deliveries "
            "ORDER BY written_at, channel, event DESC"
        )


# -- at least once -----------------------------------------------------------------------------------------------------


def test_opening_and_end_are_each_told_once_over_every_channel(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    incident = opened()
    with receiver() as hook, receiver() as slack, mailbox() as mail:
        monkeypatch.setenv("SLACK_URL", slack.url)
        alerts = alerts_to(
            hook=Webhook(type="webhook", url=hook.url),
            slack=Slack(type="slack", url_env="SLACK_URL"),
            mail=Email(
                type="email",
                host="127.0.0.1",
                port=mail.port,
                security="none",
                sender="h@example.org",
                to="ops@example.org",
            ),
        )
        write(warehouse, alerts, Judged(opened=(incident,)))
        write(warehouse, alerts, Judged(opened=(incident,)))  # judged again, nothing new
        assert len(deliver(warehouse, alerts).delivered) == 3
        write(warehouse, alerts, Judged(closed=(closed(incident),)), NOW + HOUR)
        assert len(deliver(warehouse, alerts, NOW + HOUR).delivered) == 3
        assert str(deliver(warehouse, alerts, NOW + 2 * HOUR)) == "0 messages delivered"
    keys = [f"{incident.incident_id}-opened", f"{incident.incident_id}-closed"]
    assert hook.keys == slack.keys == [one["Idempotency-Key"] for one in mail.mails] == keys
    assert all(row[2:] == (1, True, None) for row in outbox(warehouse))
    _assert_bodies(hook.bodies, incident)
    assert slack.bodies[0]["text"] == "🔴 a scored 40.0, below 65: 50% succeeded, 50% expected"
    texts = [block["text"]["text"] for block in slack.bodies[0]["blocks"] if "text" in block]
    assert texts[1].splitlines() == [
        "-60.0 success: 50% succeeded, 50% expected (e-1, &lt;e-2&gt;)",
        "opened 2026-06-07 01:00 UTC",
    ]
    assert slack.bodies[1]["text"] == "🟢 a is back"
    end = slack.bodies[1]["blocks"][1]["text"]["text"]
    assert end.startswith(
        "open for 300 min, from 2026-06-07 01:00 UTC to 2026-06-07 06:00 UTC: a scored 40.0, below 65"
    )
    assert mail.mails[0]["Message-ID"] == f"<{keys[0]}@example.org>"
    text = mail.mails[0].get_payload(decode=True).decode()
    assert "a scored 40.0" in text
    assert "(e-1, <e-2>)" in text
    assert mail.recipients == [["TO:<ops@example.org>"]] * 2


def _assert_bodies(bodies: list[dict], incident: Incident) -> None:
    opening, end = bodies
    assert opening["idempotency_key"] == f"{incident.incident_id}-opened"
    assert (opening["event"], opening["rule"], opening["severity"]) == ("opened", "floor", "critical")
    assert opening["subject"] == {"kind": "agent", "id": "a"}
    assert opening["evidence"]["explanation"][0]["evidence"] == ["e-1", "<e-2>"]
    assert (opening["closed_at"], opening["recovery"]) == (None, None)
    assert (end["event"], end["recovery"], end["open_minutes"]) == ("closed", "a is back", 300)
    assert end["closed_at"] == closed(incident).closed_at.isoformat()


def test_a_receiver_with_a_bad_moment_is_asked_again_within_the_tick(warehouse: Warehouse) -> None:
    with receiver(500, 503) as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=(opened(),)))
        assert len(deliver(warehouse, alerts).delivered) == 1
    assert len(set(hook.keys)) == 1
    assert len(hook.keys) == 3


@pytest.mark.parametrize(
    ("rest", "asked", "wait_s"), [("300", 1, 300), ("999999999999", 1, 3600), ("soon", 3, 60), ("0", 3, 60)]
)
def test_a_receiver_that_asks_to_be_left_alone_is(warehouse: Warehouse, rest: str, asked: int, wait_s: int) -> None:
    with receiver(429, 503, 429) as hook:
        hook.rest = rest
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=(opened(),)))
        assert [again_at for *_, again_at in deliver(warehouse, alerts).failed] == [NOW + timedelta(seconds=wait_s)]
    assert len(hook.keys) == asked


def test_a_receiver_that_asks_for_a_moment_is_given_it_within_the_tick(warehouse: Warehouse) -> None:
    with receiver(429) as hook:
        hook.rest = "1"
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=(opened(),)))
        began = time.monotonic()
        assert len(deliver(warehouse, alerts).delivered) == 1
        assert time.monotonic() - began >= 1
    assert len(hook.keys) == 2


def test_what_is_down_is_tried_again_at_later_ticks_and_in_order(warehouse: Warehouse) -> None:
    incident = opened()
    with closed_port() as url:
        down = alerts_to(hook=Webhook(type="webhook", url=url))
        write(warehouse, down, Judged(opened=(incident,)))
        write(warehouse, down, Judged(closed=(closed(incident),)), NOW + timedelta(seconds=1))
        now = NOW + timedelta(seconds=2)
        assert len(deliver(warehouse, down, now).failed) == 1  # the end waits for its opening
        assert deliver(warehouse, down, now + timedelta(seconds=30)).failed == []  # not yet
    [opening, end] = outbox(warehouse)
    assert opening[:4] == ("opened", "hook", 1, False)
    assert "refused" in opening[4]
    assert end[:4] == ("closed", "hook", 0, False)
    with receiver() as hook:
        up = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        assert len(deliver(warehouse, up, now + timedelta(seconds=61)).delivered) == 2
    assert [body["event"] for body in hook.bodies] == ["opened", "closed"]


def test_the_wait_doubles_up_to_an_hour() -> None:
    waits = [(next_attempt(NOW, attempts) - NOW).total_seconds() / 60 for attempts in (0, 1, 2, 5, 6, 400)]
    assert waits == [1, 2, 4, 32, 60, 60]


def test_a_message_that_is_refused_holds_up_no_other(warehouse: Warehouse) -> None:
    with receiver(400) as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=(opened("a"), opened("b", 1))))
        done = deliver(warehouse, alerts)
    assert [notice.incident.subject_id for notice in done.delivered] == ["b"]
    assert [(notice.incident.subject_id, error) for notice, error, _ in done.failed] == [("a", "it answered 400")]
    assert len(hook.keys) == 2  # nobody insists


def test_a_redirect_is_not_followed(warehouse: Warehouse) -> None:
    with receiver(302) as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=(opened(),)))
        assert [error for _, error, _ in deliver(warehouse, alerts).failed] == ["it answered 302"]
    assert len(hook.keys) == 1


def test_a_receiver_that_hangs_holds_up_neither_the_others_nor_the_tick(warehouse: Warehouse) -> None:
    with receiver(*[hanging] * 4) as slow, receiver() as hook:
        alerts = alerts_to(
            a_slow=Webhook(type="webhook", url=slow.url, timeout_s=0.5),
            hanging=Webhook(type="webhook", url=slow.url, timeout_s=60),
            hook=Webhook(type="webhook", url=hook.url),
        )
        write(warehouse, alerts, Judged(opened=(opened(),)))
        start = time.monotonic()
        done = deliver(warehouse, alerts, budget_s=6)
        assert time.monotonic() - start < 40
    assert [notice.channel for notice in done.delivered] == ["hook"]
    assert {notice.channel: error for notice, error, _ in done.failed} == {
        "a_slow": "it did not answer within 0.5 s", "hanging": "it did not answer in time",
    }  # fmt: skip


def test_the_warehouse_is_free_while_a_message_is_sent(warehouse: Warehouse) -> None:
    outcomes = []

    def opening_it_elsewhere() -> int:
        code = "import duckdb, sys; duckdb.connect(sys.argv[1]).close()"
        outcomes.append(subprocess.run([sys.executable, "-c", code, str(warehouse.path)], check=False).returncode)
        return 200

    with receiver(opening_it_elsewhere) as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url, timeout_s=60))
        write(warehouse, alerts, Judged(opened=(opened(),)))
        assert len(deliver(warehouse, alerts, budget_s=120).delivered) == 1
    assert outcomes == [0]


DELIVERS = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from health_assets.apps.alerts.config import load_alerts
from health_assets.apps.alerts.delivering import deliver
from health_assets.warehouse.store import Warehouse
warehouse = Warehouse(sys.argv[1])
deliver(warehouse, warehouse, load_alerts(Path(sys.argv[2])), datetime(2026, 6, 9, tzinfo=UTC))
"""


def test_a_process_that_is_killed_between_sending_and_marking_sends_again(warehouse: Warehouse, tmp_path: Path) -> None:
    sender: subprocess.Popen[bytes]

    def killing() -> int:
        sender.send_signal(signal.SIGKILL)  # the message is here, and nobody has been told so
        return 200

    with receiver(killing) as hook:
        (tmp_path / "alerts.yaml").write_text(f"channels: {{hook: {{type: webhook, url: '{hook.url}'}}}}")
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=(opened(),)))
        arguments = [sys.executable, "-c", DELIVERS, str(warehouse.path), str(tmp_path / "alerts.yaml")]
        sender = subprocess.Popen(arguments, env=command_environment())
        assert sender.wait(240) == -signal.SIGKILL
        assert outbox(warehouse) == [("opened", "hook", 0, False, None)]
        assert len(deliver(warehouse, alerts).delivered) == 1
    assert len(hook.keys) == 2
    assert len(set(hook.keys)) == 1


def test_a_process_that_delivers_ends_without_a_word(warehouse: Warehouse, tmp_path: Path) -> None:
    """Who runs the command from cron is told of what it writes to standard error."""
    with receiver() as hook:
        (tmp_path / "alerts.yaml").write_text(f"channels: {{hook: {{type: webhook, url: '{hook.url}'}}}}")
        write(warehouse, alerts_to(hook=Webhook(type="webhook", url=hook.url)), Judged(opened=(opened(),)))
        arguments = [sys.executable, "-c", DELIVERS, str(warehouse.path), str(tmp_path / "alerts.yaml")]
        done = subprocess.run(arguments, env=command_environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert outbox(warehouse) == [("opened", "hook", 1, True, None)]


def test_incident_and_notice_are_kept_together_or_not_at_all(warehouse: Warehouse) -> None:
    alerts = alerts_to(hook=Webhook(type="webhook", url="http://127.0.0.1:1/"))
    with suppress(ZeroDivisionError), warehouse.write() as session:
        keep(session, Judged(opened=(opened(),)), alerts, NOW)
        raise ZeroDivisionError
    with warehouse.write() as session:
        assert session.query("SELECT (SELECT count(*) FROM alerts), (SELECT count(*) FROM alert_deliveries)") == [
            (0, 0)
        ]


def test_who_was_not_told_of_the_opening_is_not_told_of_the_end(warehouse: Warehouse) -> None:
    incident = opened()
    one = alerts_to(one=Webhook(type="webhook", url="http://127.0.0.1:1/"))
    write(warehouse, one, Judged(opened=(incident,)))
    both = alerts_to(**one.channels, two=Webhook(type="webhook", url="http://127.0.0.1:2/"))
    write(warehouse, both, Judged(closed=(closed(incident),)))
    assert [row[:2] for row in outbox(warehouse)] == [("opened", "one"), ("closed", "one")]
    with warehouse.read() as session:
        assert count_waiting(session) == {"one": (2, None)}


def test_a_bad_hour_of_a_fleet_is_one_message(warehouse: Warehouse) -> None:
    with receiver(500, 500, 500) as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=tuple(opened(f"a{number}") for number in range(300))))
        assert len(deliver(warehouse, alerts).failed) == 300
        assert len(deliver(warehouse, alerts, NOW + HOUR).delivered) == 300
    assert len(hook.keys) == 4
    assert len(set(hook.keys)) == 1
    assert hook.bodies[-1]["event"] == "digest"
    [body] = {json.dumps(body) for body in hook.bodies}
    assert len({notice["idempotency_key"] for notice in json.loads(body)["notices"]}) == LISTED_OF_DIGEST
    assert json.loads(body)["counts"] == {"opened": {"critical": 300}, "closed": 0, "opened_by_rule": {"floor": 300}}
    assert json.loads(body)["not_listed"] == 200


def test_a_digest_says_of_each_event_when_it_was() -> None:
    incident = opened()
    told = digest_of(
        [
            Notice(incident=incident, event="opened", channel="hook"),
            Notice(incident=closed(incident), event="closed", channel="hook"),
        ]
    )
    assert [line[2:] for line in told.lines] == [
        "a scored 40.0, below 65: 50% succeeded, 50% expected (2026-06-07 01:00 UTC)",
        "a is back (2026-06-07 06:00 UTC)",
    ]


def test_a_digest_that_is_refused_is_sent_one_by_one_until_what_is_not_taken_is_set_aside(warehouse: Warehouse) -> None:
    with receiver(422, 400, 200) as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url)).model_copy(update={"digest_above": 2})
        write(warehouse, alerts, Judged(opened=tuple(opened(f"a{number}") for number in range(6))))
        done = deliver(warehouse, alerts)
        assert [error for _, error, _ in done.failed] == ["it answered 400"]
        assert len(done.delivered) == 1
        done = deliver(warehouse, alerts, NOW + timedelta(seconds=30))
    assert len(done.delivered) == 4
    assert [body["event"] for body in hook.bodies] == ["digest", "opened", "opened", "digest"]


# -- e-mail ------------------------------------------------------------------------------------------------------------


def email(port: int, **fields: Any) -> Email:
    given = {
        "host": "localhost",
        "security": "none",
        "sender": "h@example.org",
        "to": ["a@example.org", "b@example.org"],
    }
    return Email.model_validate({"type": "email", "port": port, **given, **fields})


def test_mail_is_sent_encrypted_after_logging_in(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    monkeypatch.setenv("MAIL_PASSWORD", "sesame")
    with mailbox(certificate=(cert, key), password="sesame") as mail:
        alerts = alerts_to(mail=email(mail.port, security="starttls", username="me", password_env="MAIL_PASSWORD"))
        write(warehouse, alerts, Judged(opened=(opened("Ünï\r\nBcc: x@example.org"),)))
        assert len(deliver(warehouse, alerts).delivered) == 1
        monkeypatch.setenv("MAIL_PASSWORD", "wrong-word")
        write(warehouse, alerts, Judged(opened=(opened("b", 1),)))
        [(_, error, _)] = deliver(warehouse, alerts).failed
    assert mail.was_encrypted
    assert set(mail.logins) == {"me"}
    assert mail.mails[0]["Bcc"] is None
    assert mail.recipients == [["TO:<a@example.org>", "TO:<b@example.org>"]]
    assert "535" in error
    assert "wrong-word" not in error


@pytest.mark.parametrize("digest_above", [10, 1])
def test_a_recipient_for_whom_a_server_takes_no_mail_yet_gets_it_later(warehouse: Warehouse, digest_above: int) -> None:
    with mailbox() as mail:
        alerts = alerts_to(mail=email(mail.port)).model_copy(update={"digest_above": digest_above})
        write(warehouse, alerts, Judged(opened=(opened("a"), opened("b", 1))))
        mail.refusals["b@example.org"] = "451 greylisted, try later"
        failed = deliver(warehouse, alerts).failed
        assert [error for _, error, _ in failed] == ["it does not take it for b@example.org yet"] * 2
        mails = 2 if digest_above == 10 else 1
        assert mail.recipients == [["TO:<a@example.org>"]] * mails, "once in a tick, and none holds up another"
        mail.refusals.clear()
        assert len(deliver(warehouse, alerts, failed[0][2]).delivered) == 2
    assert mail.recipients[mails:] == [["TO:<a@example.org>", "TO:<b@example.org>"]] * mails
    assert [sent["Message-ID"] for sent in mail.mails[:mails]] == [sent["Message-ID"] for sent in mail.mails[mails:]]


def test_a_recipient_whom_a_server_does_not_know_does_not_keep_the_others_waiting_or_hearing_it_again(
    warehouse: Warehouse,
) -> None:
    with mailbox() as mail:
        alerts = alerts_to(mail=email(mail.port))
        mail.refusals["b@example.org"] = "550 nobody of that name"
        write(warehouse, alerts, Judged(opened=(opened(),)))
        assert len(deliver(warehouse, alerts).delivered) == 1
    assert mail.recipients == [["TO:<a@example.org>"]]


def test_a_server_that_is_not_who_it_says_gets_no_password(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "sesame")
    with mailbox(certificate=certificate(tmp_path), password="sesame") as mail:
        alerts = alerts_to(mail=email(mail.port, security="starttls", username="me", password_env="MAIL_PASSWORD"))
        write(warehouse, alerts, Judged(opened=(opened(),)))
        [(_, error, _)] = deliver(warehouse, alerts).failed
    assert "CERTIFICATE_VERIFY_FAILED" in error
    assert mail.logins == []


def test_a_mail_server_that_is_busy_is_asked_again_and_one_that_refuses_is_not(warehouse: Warehouse) -> None:
    with mailbox("451 later", "250 kept", "554 never") as mail:
        alerts = alerts_to(mail=email(mail.port))
        write(warehouse, alerts, Judged(opened=(opened("a"), opened("b", 1))))
        done = deliver(warehouse, alerts)
    assert [notice.incident.subject_id for notice in done.delivered] == ["a"]
    assert [error for _, error, _ in done.failed] == ["it answered 554"]


# -- what must not be told ---------------------------------------------------------------------------------------------


def test_secrets_are_in_no_table_no_error_no_log_and_no_message(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with receiver(500, 500, 500) as hook:
        monkeypatch.setenv("HOOK_URL", hook.url)
        monkeypatch.setenv("HOOK_TOKEN", "sesame-token\n")
        monkeypatch.setenv("BAD_TOKEN", "sesame-token\nand another line")
        monkeypatch.setenv("ODD_TOKEN", "sesame-tökén")
        monkeypatch.setenv("BAD_URL", "http://host:secret-path/")
        alerts = alerts_to(
            hook=Webhook(type="webhook", url_env="HOOK_URL", token_env="HOOK_TOKEN"),
            bad=Slack(type="slack", url_env="BAD_URL"),
            lines=Webhook(type="webhook", url_env="HOOK_URL", token_env="BAD_TOKEN"),
            odd=Webhook(type="webhook", url_env="HOOK_URL", token_env="ODD_TOKEN"),
            unset=Slack(type="slack", url_env="NOBODY_SET_ME"),
        )
        write(warehouse, alerts, Judged(opened=(opened(),)))
        told = str(deliver(warehouse, alerts))
        assert hook.received[0][0]["Authorization"] == "Bearer sesame-token"
    assert "the environment variable NOBODY_SET_ME is not set" in told
    assert "bad: its address is not valid" in told
    assert "lines: the environment variable BAD_TOKEN has characters that cannot be sent" in told
    assert "odd: the environment variable ODD_TOKEN has" in told
    told += caplog.text
    kept = warehouse.path.read_bytes() + told.encode() + json.dumps(hook.bodies).encode() + repr(alerts).encode()
    for secret in (b"secret-path", b"sesame-t"):
        assert secret not in kept


def test_of_a_personal_agent_a_message_says_that_something_changed_and_nothing_else(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    incident = opened("mine", is_personal=True)
    with receiver() as hook, receiver() as slack, mailbox() as mail:
        monkeypatch.setenv("SLACK_URL", slack.url)
        alerts = alerts_to(
            hook=Webhook(type="webhook", url=hook.url),
            slack=Slack(type="slack", url_env="SLACK_URL"),
            mail=email(mail.port),
        )
        write(warehouse, alerts, Judged(opened=(incident,)))
        deliver(warehouse, alerts)
        write(warehouse, alerts, Judged(closed=(closed(incident),)))
        deliver(warehouse, alerts)
    told = json.dumps([hook.bodies, slack.bodies], ensure_ascii=False) + "".join(one.as_string() for one in mail.mails)
    for detail in ("e-1", "40.0", "succeeded", "floor", "is back", "critical", SIGNS["critical"]):
        assert detail not in told
    assert hook.bodies[0]["subject"]["id"] == "mine"
    with warehouse.read() as session:
        assert "e-1" in session.query("SELECT CAST(evidence AS VARCHAR) FROM alerts")[0][0]


def test_an_agent_that_became_personal_since_is_told_of_as_one(warehouse: Warehouse) -> None:
    mine = Targets(agents={"mine": AgentTargets(personal=True)})
    with receiver() as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=(opened("mine"),)))
        delivering.deliver(warehouse, warehouse, alerts, NOW, targets=mine)
    assert hook.bodies[0]["is_personal"] is True
    assert "evidence" not in hook.bodies[0]


def test_a_channel_can_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOBODY_SET_ME", raising=False)
    with receiver() as hook:
        alerts = alerts_to(good=Webhook(type="webhook", url=hook.url), bad=Slack(type="slack", url_env="NOBODY_SET_ME"))
        outcome = try_channels(alerts, NOW)
    assert outcome == {"good": None, "bad": "the environment variable NOBODY_SET_ME is not set"}
    assert hook.bodies[0]["event"] == "test"
    assert os.environ.get("NOBODY_SET_ME") is None
