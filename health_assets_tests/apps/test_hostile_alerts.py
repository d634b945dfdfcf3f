"""Alerts about agents whose names were made to harm, and alerts that are too large for who gets them."""

import base64
import email.policy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import EmailMessage
from typing import Any

import pytest

from health_assets.apps.alerts.config import Alerts, Webhook
from health_assets.apps.alerts.incidents import Incident, Judged
from health_assets.apps.alerts.message_forms import slack_body
from health_assets.apps.alerts.messages import CUT_NOTE, Message
from health_assets.core.hours import HOUR
from health_assets.warehouse.store import Warehouse
from health_assets_tests.apps.test_alert_deliveries import alerts_to, closed, deliver, opened, outbox, warehouse, write
from health_assets_tests.apps.test_alert_deliveries import email as email_channel
from health_assets_tests.support.receivers import Mailbox, Receiver, mailbox, receiver

__all__ = ["warehouse"]

NOW = datetime(2026, 6, 9, tzinfo=UTC)


def encoded_word(content: bytes, charset: str = "utf-8") -> str:
    """Text that a reader of mail heads takes for other text."""
    return f"=?{charset}?B?{base64.b64encode(content).decode()}?="


HEADERS = encoded_word(b"a\r\nBcc: victim@example.org\r\nContent-Type: text/html\r\n\r\n<h1>owned</h1>")
NAMES = {
    "headers in an encoded word": HEADERS,
    "bytes that are no text": encoded_word(b"\xff\xfe\x80"),
    "an unknown character set": encoded_word(b"abc", "no-such"),
    "half a pair of surrogates": "a\ud800b",
    "line ends": "a\r\nBcc: victim@example.org\r\n\r\n<h1>owned</h1>",
    "the end of a mail": "a\r\n.\r\nMAIL FROM:<x@example.org>\r\n",
    "terminal commands": "a\x1b[2J\u202e\u2028\x00b",
    "beyond ASCII": "Überprüfer 审计 🤖",
    "long": "x" * 1024,
    "words in pieces": "=?utf-8?Q?a?= =?utf-8?Q?b?= =?utf-8?B?",
}


def named(name: str, hour: int = 0) -> Incident:
    """An incident of an agent of that name, as the warehouse would give it back."""
    made = opened("plain", hour)
    evidence = json.loads(made.evidence)
    evidence["explanation"][0]["evidence"] = [name]
    evidence["explanation"][0]["sentence"] = f"{name} failed"
    return replace(
        made, subject_id=name, reason=f"{name} scored 40.0", evidence=json.dumps(evidence), incident_id=f"id-{hour}"
    )


@contextmanager
def mail_and_hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Mailbox, Receiver, Alerts]]:
    del monkeypatch
    with mailbox() as mail, receiver() as hook:
        yield mail, hook, alerts_to(mail=email_channel(mail.port), hook=Webhook(type="webhook", url=hook.url))


def text_of(mail: EmailMessage) -> str:
    body = mail.get_body()
    assert body is not None
    return body.get_content()


@pytest.mark.parametrize("name", NAMES)
def test_a_mail_says_any_name_literally_and_has_no_other_header_nor_body(name: str) -> None:
    """Sent to a server, and read back as mail programs do: by both of Python's parsers, decoded once."""
    from health_assets.apps.alerts.channels import send
    from health_assets.apps.alerts.messages import message_of
    from health_assets.apps.alerts.outbox import Notice
    from health_assets.core.terminal import printable

    literal = printable(NAMES[name], 500)
    with mailbox() as mail:
        send(email_channel(mail.port), message_of(Notice(incident=named(NAMES[name]), event="opened", channel="mail")))
    [raw] = mail.raw
    modern = message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(modern, EmailMessage)
    old = message_from_bytes(raw)
    for parsed in (modern, old):
        assert sorted(key.lower() for key in parsed) == sorted(
            [
                "subject",
                "from",
                "to",
                "message-id",
                "idempotency-key",
                "content-type",
                "content-transfer-encoding",
                "mime-version",
            ]
        )
        assert parsed.get_content_type() == "text/plain"
        assert not parsed.is_multipart()
        assert not parsed.defects
    wanted = f"🔴 {literal} scored 40.0"
    wanted = wanted if len(wanted) <= 200 else wanted[:200] + "…"
    shown = str(make_header(decode_header(old["Subject"].replace("\r\n", ""))))
    assert shown == modern["Subject"] == wanted
    assert text_of(modern).startswith(f"🔴 {literal} scored 40.0"[:400])
    assert all(line.isprintable() for line in text_of(modern).splitlines())
    assert mail.recipients == [["TO:<a@example.org>", "TO:<b@example.org>"]]
    assert old["Bcc"] is None


def test_every_name_is_told_over_every_channel(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name.encode("utf-8", "replace").decode() for name in NAMES.values()]  # as a warehouse can hold them
    with mail_and_hook(monkeypatch) as (mail, hook, alerts):
        incidents = tuple(named(name, place) for place, name in enumerate(names))
        write(warehouse, alerts, Judged(opened=incidents))
        assert len(deliver(warehouse, alerts).delivered) == 2 * len(names)
        assert {body["subject"]["id"] for body in hook.bodies} == set(names)
    assert len(mail.mails) == len(names)


def test_a_notice_of_which_no_message_can_be_made_holds_up_no_other(warehouse: Warehouse) -> None:
    broken = replace(named("broken"), evidence='{"explanation": [{"lost": "no number"}]}')
    with receiver() as hook, mailbox() as mail:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url), mail=email_channel(mail.port))
        write(warehouse, alerts, Judged(opened=(broken, named("well", 1))))
        done = deliver(warehouse, alerts)
        assert [(notice.incident.subject_id, notice.channel) for notice in done.delivered] == [
            ("well", "hook"), ("well", "mail"),
        ]  # fmt: skip
        assert [notice.incident.subject_id for notice, *_ in done.failed] == ["broken", "broken"]
        assert all(error.startswith("it cannot be written: ") for _, error, _ in done.failed)
        write(warehouse, alerts, Judged(closed=(closed(broken),)), NOW + HOUR)
        again = deliver(warehouse, alerts, NOW + 2 * HOUR)
    assert again.delivered == [], "an end is not told to who did not hear of the beginning"


def test_a_message_that_is_no_json_is_its_own_failure(warehouse: Warehouse) -> None:
    made = named("odd")
    odd = replace(made, evidence=json.dumps({**json.loads(made.evidence), "score": float("nan")}))
    with receiver() as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url)).model_copy(update={"digest_above": 1})
        with warehouse.write() as session:
            from health_assets.apps.alerts.outbox import keep

            keep(session, Judged(opened=(named("well", 1),)), alerts, NOW)
        from health_assets.apps.alerts.channels import Refused, send
        from health_assets.apps.alerts.messages import message_of
        from health_assets.apps.alerts.outbox import Notice

        with pytest.raises(Refused, match="it cannot be written"):
            send(alerts.channels["hook"], message_of(Notice(incident=odd, event="opened", channel="hook")))
        assert len(deliver(warehouse, alerts).delivered) == 1
    assert [body["subject"]["id"] for body in hook.bodies] == ["well"]


# -- size --------------------------------------------------------------------------------------------------------------


def storm(count: int) -> tuple[Incident, ...]:
    return tuple(opened(f"agent-{number}", number % 24) for number in range(count))


def told(bodies: list[Any]) -> list[str]:
    """Keys of the events that bodies tell of, in order."""
    return [one["idempotency_key"] for body in bodies for one in body.get("notices", [body])]


def test_a_digest_that_is_too_large_is_halved_until_it_fits(warehouse: Warehouse) -> None:
    with receiver() as hook:
        hook.most_bytes = 16_000
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=storm(100)))
        done = deliver(warehouse, alerts)
        assert len(done.delivered) == 100, done
        assert done.failed == []
    assert hook.too_large, "the whole was tried first"
    assert all(body["event"] == "digest" for body in hook.bodies)
    assert len(hook.bodies) < 10
    keys = told(hook.bodies)
    assert len(keys) == len(set(keys)) == 100
    assert len(set(hook.keys)) == len(hook.keys)
    assert all(row[2:] == (1, True, None) for row in outbox(warehouse))


def test_one_event_that_is_too_large_is_cut_and_says_so_and_the_others_come_in_digests(warehouse: Warehouse) -> None:
    huge = replace(named("huge", 7), evidence=json.dumps({"latest_failures": ["x" * 200] * 1000}))
    with receiver() as hook:
        hook.most_bytes = 32_000
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=(*storm(40), huge)))
        assert len(deliver(warehouse, alerts).delivered) == 41
    [cut] = [body for body in hook.bodies if body.get("note")]
    assert (cut["subject"]["id"], cut["note"], cut["evidence"]) == ("huge", CUT_NOTE, None)
    assert len(hook.bodies) < 12
    assert len(set(told(hook.bodies))) == 41


def test_a_receiver_that_takes_nothing_at_all_gets_each_once_a_tick(warehouse: Warehouse) -> None:
    with receiver() as hook:
        hook.most_bytes = 10
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url)).model_copy(update={"digest_above": 1})
        write(warehouse, alerts, Judged(opened=storm(4)))
        done = deliver(warehouse, alerts)
    assert done.delivered == []
    assert [error for _, error, _ in done.failed] == ["it answered 413"] * 4
    assert len(hook.too_large) == 3 + 2 * 4, "three digests, and each event whole and cut"


@pytest.mark.parametrize("limit", ["answers", "greeting", "setting"])
def test_a_mail_that_is_too_large_is_halved_however_the_limit_is_known(warehouse: Warehouse, limit: str) -> None:
    most = 4096
    with mailbox() as mail:
        if limit == "answers":
            mail.most_bytes = most
        elif limit == "greeting":
            mail.announced_bytes = most
        channel = email_channel(mail.port, **({"max_bytes": most} if limit == "setting" else {}))
        alerts = alerts_to(mail=channel).model_copy(update={"digest_above": 2})
        incidents = tuple(named(f"{'n' * 300}{place}", place) for place in range(24))
        write(warehouse, alerts, Judged(opened=incidents))
        done = deliver(warehouse, alerts)
        assert len(done.delivered) == 24, done
    assert 1 < len(mail.raw) < 24
    assert all(len(raw) <= most for raw in mail.raw)
    assert bool(mail.too_large) is (limit == "answers")


def test_a_mailbox_that_is_full_is_not_a_mail_that_is_too_large(warehouse: Warehouse) -> None:
    with mailbox("552 5.2.2 mailbox full") as mail:
        alerts = alerts_to(mail=email_channel(mail.port)).model_copy(update={"digest_above": 1})
        write(warehouse, alerts, Judged(opened=storm(4)))
        done = deliver(warehouse, alerts)
    assert len(done.delivered) == 1, "the oldest alone, as after any refusal"
    assert len(mail.mails) == 1


def test_slack_makes_neither_a_link_nor_a_mention_of_a_name() -> None:
    body = slack_body(
        Message(key="k", event="opened", title="@here <!channel> https://evil.example", lines=("#all",), body={})
    )
    texts = [block["text"] for block in body["blocks"] if block["type"] == "section"]
    assert [text["verbatim"] for text in texts] == [True, True]
    assert "<!channel>" not in json.dumps(body)
