"""Receivers that drip, and storms of incidents: a tick ends in time, without a thread, noise or a storm of messages."""

import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from health_assets.apps.alerts.channels import NotDelivered, send
from health_assets.apps.alerts.config import Channel, Webhook
from health_assets.apps.alerts.incidents import Judged
from health_assets.apps.alerts.messages import LISTED_OF_DIGEST, trial_message
from health_assets.warehouse.store import Warehouse
from health_assets_tests.apps.test_alert_deliveries import (
    DELIVERS,
    NOW,
    alerts_to,
    closed,
    deliver,
    email,
    opened,
    outbox,
    write,
)
from health_assets_tests.apps.test_serving_tls import certificate
from health_assets_tests.support.alerts_made import at
from health_assets_tests.support.projects import command_environment
from health_assets_tests.support.receivers import receiver

ANSWER = b"HTTP/1.1 200 OK\r\nX-Padding: " + b"x" * 5000 + b"\r\n\r\n"
GREETING = b"220 " + b"x" * 5000 + b"\r\n"
SERVER_HELLO = b"\x16\x03\x03\x13\x88\x02\x00\x13\x84\x03\x03" + b"\0" * 5000
"""A record of TLS of 5,000 bytes."""


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "health.duckdb"))


@contextmanager
def dripping(sent: bytes, first: bytes = b"", *, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server that sends a byte every 50 ms, after something that it says at once and perhaps within TLS."""
    server = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()

    def drip(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            own = context.wrap_socket(connection, server_side=True) if context else connection
            with own:
                own.sendall(first)
                for place in range(len(sent)):
                    if is_over.wait(0.05):
                        return
                    own.sendall(sent[place : place + 1])

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=drip, args=[connection], daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        is_over.set()
        server.close()


def webhook(port: int) -> Channel:
    return Webhook(type="webhook", url=f"http://127.0.0.1:{port}/", timeout_s=1)


def mail(port: int) -> Channel:
    return email(port, timeout_s=1)


def encrypted_mail(port: int) -> Channel:
    return email(port, timeout_s=1, security="tls")


@pytest.mark.parametrize(
    ("channel", "sent", "first"),
    [
        (webhook, ANSWER, b""),
        (webhook, ANSWER[20:], ANSWER[:20]),
        (mail, GREETING, b""),
        (mail, GREETING, b"220 ready\r\n"),
        (encrypted_mail, SERVER_HELLO, b""),
    ],
    ids=["status", "headers", "greeting", "ehlo", "handshake"],
)
def test_one_deadline_is_for_the_whole_exchange_with_a_receiver_that_drips(
    channel: Callable[[int], Channel], sent: bytes, first: bytes
) -> None:
    with dripping(sent, first) as port:
        began = time.monotonic()
        with pytest.raises(NotDelivered, match="did not answer within 1 s"):
            send(channel(port), trial_message("hook", NOW), pause_s=0.01)
        assert 3 <= time.monotonic() - began < 10, "three attempts of a second each"


def test_a_mail_server_that_drips_within_tls_is_left_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with dripping(GREETING, context=context) as port:
        began = time.monotonic()
        with pytest.raises(NotDelivered, match="did not answer within 1 s"):
            send(encrypted_mail(port), trial_message("mail", NOW), pause_s=0.01)
        assert time.monotonic() - began < 10


def test_after_a_tick_no_thread_is_left(warehouse: Warehouse) -> None:
    before = set(threading.enumerate())
    with dripping(ANSWER) as http, dripping(GREETING) as smtp:
        alerts = alerts_to(
            hook=Webhook(type="webhook", url=f"http://127.0.0.1:{http}/", timeout_s=60), mail=email(smtp, timeout_s=60)
        )
        write(warehouse, alerts, Judged(opened=(opened(),)))
        began = time.monotonic()
        done = deliver(warehouse, alerts, budget_s=2)
        assert time.monotonic() - began < 10
        names = {thread.name for thread in set(threading.enumerate()) - before}
    assert {error for _, error, _ in done.failed} == {"it did not answer in time"}
    assert not {name for name in names if "(drip)" not in name and "(serve)" not in name}


def test_a_process_whose_receiver_drips_ends_in_time_and_without_a_word(warehouse: Warehouse, tmp_path: Path) -> None:
    with dripping(ANSWER) as http, dripping(GREETING) as smtp:
        (tmp_path / "alerts.yaml").write_text(
            f"channels: {{hook: {{type: webhook, url: 'http://127.0.0.1:{http}/', timeout_s: 1}}, "
            f"mail: {{type: email, host: 127.0.0.1, port: {smtp}, security: none, timeout_s: 1, "
            "sender: h@example.org, to: ops@example.org}}"
        )
        alerts = alerts_to(hook=webhook(http), mail=mail(smtp))
        write(warehouse, alerts, Judged(opened=(opened(),)))
        arguments = [sys.executable, "-c", DELIVERS, str(warehouse.path), str(tmp_path / "alerts.yaml")]
        done = subprocess.run(arguments, env=command_environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {row[4] for row in outbox(warehouse)} == {"it did not answer within 1 s"}


# -- storms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3334, pytest.param(33_334, marks=pytest.mark.nightly)])
def test_a_storm_of_incidents_is_one_digest_with_counts_the_worst_and_where_the_rest_is(
    warehouse: Warehouse, count: int
) -> None:
    made = opened()
    storm = tuple(
        replace(
            made,
            incident_id=f"{number:020}",
            subject_id=f"agent-{number}",
            hour=at(number % 24),
            severity="critical" if number % 1000 == 7 else "warning",
            rule="floor" if number % 2 else "drop",
        )
        for number in range(count)
    )
    with receiver() as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=storm))
        assert len(deliver(warehouse, alerts).delivered) == count
        assert deliver(warehouse, alerts).delivered == []
    [body] = hook.bodies
    critical = sum(one.severity == "critical" for one in storm)
    assert body["counts"] == {
        "opened": {"critical": critical, "warning": count - critical},
        "closed": 0,
        "opened_by_rule": {"floor": count // 2, "drop": count - count // 2},
    }
    assert len(body["notices"]) == LISTED_OF_DIGEST
    assert [one["severity"] for one in body["notices"]][: critical + 1] == [*["critical"] * critical, "warning"]
    assert (body["not_listed"], body["read_more"]) == (count - LISTED_OF_DIGEST, "all are in the table alerts")
    assert len(json.dumps(body)) < 110_000


def test_a_storm_that_a_receiver_does_not_take_whole_is_cut_to_one_message_with_the_counts(
    warehouse: Warehouse,
) -> None:
    made = opened()
    storm = tuple(replace(made, incident_id=f"{number:020}", subject_id=f"agent-{number}") for number in range(400))
    with receiver() as hook:
        hook.most_bytes = 8_000
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        write(warehouse, alerts, Judged(opened=storm))
        assert len(deliver(warehouse, alerts).delivered) == 400
    [body] = hook.bodies
    assert body["counts"]["opened"] == {"critical": 400}
    assert body["note"]


def test_a_digest_leads_to_the_page_of_incidents_and_a_message_to_that_of_its_agent(warehouse: Warehouse) -> None:
    from health_assets.apps.alerts import delivering

    made = opened("crm/eu 1")
    storm = [replace(made, incident_id=f"{number:020}", subject_id=f"agent-{number}") for number in range(40)]
    with receiver() as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        for judged in (Judged(opened=(made,)), Judged(opened=tuple(storm)), Judged(closed=(closed(made),))):
            write(warehouse, alerts, judged)
            delivering.deliver(warehouse, warehouse, alerts, NOW, pages_url="https://health.example/")
    alone, digest, end = hook.bodies
    assert alone["page"] == end["page"] == "https://health.example/ui/agents/crm%2Feu%201"
    assert digest["read_more"] == "all are at https://health.example/ui/incidents"
