"""Who comes in: roles, hosts, what one client can hold, and what the logs say of it."""

import json
import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from health_assets.apps.serving.hosts import AllowedHosts, is_loopback
from health_assets.apps.serving.quotas import MOST_SESSIONS_AT_ONCE, SESSIONS_IN_RESERVE, ConnectionQuota, WorkQuota
from health_assets.apps.serving.refresher import Refresher
from health_assets.apps.serving.server import configured
from health_assets.apps.serving.tokens import Token, new_token
from health_assets.core.settings import Settings
from health_assets_tests.support.serving_made import (
    PATIENCE_S,
    Served,
    fill,
    fill_agents,
    readers_in_this_process,
    score,
    served,
    state,
)

DOCUMENT = "/agents/fine/.well-known/agent-health"
SCORES = (
    "/agents",
    "/agents/fine",
    "/models",
    "/models/best?candidates=a",
    "/tools",
    "/usage",
    "/usage/breakdown",
    "/sessions/s",
    "/metrics",
)
FOR_ALL = ("/status", "/livez", "/readyz", "/docs", "/openapi.json")
GET = f"GET {DOCUMENT} HTTP/1.1\r\n".encode()


@pytest.fixture(scope="module", autouse=True)
def _readers() -> Iterator[None]:
    with readers_in_this_process():
        yield


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("doors") / "health.duckdb"
    fill_agents(path, (state("fine"), score("fine")))
    fill(path, session_scores=[{"session_id": "s"}])
    return path


def kept_as_json(*tokens: Token) -> SecretStr:
    return SecretStr(json.dumps([token.model_dump(mode="json", exclude_none=True) for token in tokens]))


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@dataclass
class Guarded:
    """A server with a token of each role."""

    server: Served
    secrets: dict[str, str]

    def statuses(self, role: str, paths: tuple[str, ...]) -> set[int]:
        headers = bearer(self.secrets[role]) if role in self.secrets else {}
        return {self.server.ask(path, headers=headers).status for path in paths}


@pytest.fixture(scope="module")
def guarded(warehouse: Path) -> Iterator[Guarded]:
    made = {role: new_token(role, role) for role in ("documents", "read", "operate")}
    made["expired"] = new_token("expired", "operate", (), datetime.now(UTC) - timedelta(seconds=1))
    tokens = kept_as_json(*(kept for _, kept in made.values()))
    secrets = {role: secret for role, (secret, _) in made.items()} | {"unknown": "ha_" + 43 * "x"}
    with served(warehouse, tokens=tokens, token=SecretStr("plain"), host_agent="fine") as server:
        yield Guarded(server, secrets | {"plain": "plain"})


# -- roles --


def test_documents_are_for_all_and_scores_for_those_who_may_read(guarded: Guarded) -> None:
    for role in ("", "unknown", "expired", "documents", "read", "operate", "plain"):
        assert guarded.statuses(role, (DOCUMENT, "/.well-known/agent-health", *FOR_ALL)) == {200}, role
    for role, status in [("", 401), ("unknown", 401), ("expired", 401), ("documents", 403)]:
        assert guarded.statuses(role, SCORES) == {status}, role
    for role in ("read", "operate", "plain"):
        assert guarded.statuses(role, SCORES) == {200}, role


def test_another_spelling_of_a_path_opens_no_door(guarded: Guarded) -> None:
    for path in ("/%61gents", "/agents/%66ine", "/agents/fine?x=1", "/sessions/%73", "//agents"):
        reply = guarded.server.ask(path)
        assert reply.status in (401, 404), path
        assert b"health_score" not in reply.body
    assert guarded.server.ask("/agents", "HEAD").status == 401


def test_who_is_refused_is_told_how_to_come_in(guarded: Guarded) -> None:
    for role, challenge in [
        ("", "Bearer"), ("unknown", 'Bearer error="invalid_token"'), ("documents", 'Bearer error="insufficient_scope"'),
    ]:  # fmt: skip
        reply = guarded.server.ask("/agents", headers=bearer(guarded.secrets[role]) if role else {})
        assert (reply.headers["www-authenticate"], reply.headers["cache-control"]) == (challenge, "no-store")
        assert reply.headers["content-type"] == "application/problem+json"
        assert (
            reply.json["detail"]
            == {
                "": "this needs a token that may do it, as Authorization: Bearer",
                "unknown": "the token that was given is not known or has expired",
                "documents": "the token may not do this",
            }[role]
        )
    for given in ("Basic YTpi", "Bearer", guarded.secrets["read"]):
        reply = guarded.server.ask("/agents", headers={"Authorization": given})
        assert (reply.status, reply.json["detail"]) == (401, "a token is given as one header, Authorization: Bearer …")


def test_who_may_not_read_is_not_told_how_much_there_is(guarded: Guarded) -> None:
    for role, told in [("", (None, None)), ("documents", (None, None)), ("read", (1, 0)), ("operate", (1, 0))]:
        status = guarded.server.ask("/status", headers=bearer(guarded.secrets[role]) if role else {}).json
        assert (status["agents"], status["models"]) == told
        assert status["is_ready"]


def test_two_credentials_in_one_request_are_none(guarded: Guarded) -> None:
    twice = b"".join(f"Authorization: Bearer {guarded.secrets['read']}\r\n".encode() for _ in range(2))
    head = b"GET /agents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    assert guarded.server.send(head + twice + b"\r\n").startswith(b"HTTP/1.1 401 ")


def test_the_operator_may_close_documents_or_open_scores(warehouse: Path) -> None:
    with served(warehouse, anonymous_role="none", is_ready=False) as server:
        assert {server.ask(path).status for path in (DOCUMENT, "/.well-known/agent-health", *SCORES)} == {401}
        assert server.ask("/status").status == 200
    with served(warehouse, anonymous_role="read", token=SecretStr("plain")) as server:
        assert server.ask("/agents").status == 200


def test_without_tokens_scores_are_open_on_this_machine_and_nowhere_else(warehouse: Path) -> None:
    settings = Settings(warehouse=str(warehouse))
    told: list[str] = []
    configured(settings, on_fault=told.append, is_local=True)
    assert told == []
    configured(settings, on_fault=told.append, host="0.0.0.0")
    [sentence] = told
    assert "no token" in sentence and "health documents alone" in sentence
    told.clear()
    configured(settings.model_copy(update={"anonymous_role": "read"}), on_fault=told.append, host="0.0.0.0")
    [sentence] = told
    assert "everybody" in sentence
    with served(warehouse) as server:
        assert server.ask("/agents").status == 200
    with served(warehouse, allowed_hosts="health.example") as server:  # a proxy leads others here
        assert server.ask("/agents").status == 401
    with served(warehouse, token=SecretStr("")) as server:  # as of an empty variable
        assert server.ask("/agents", headers={"Authorization": "Bearer "}).json["total"] == 1


@pytest.mark.parametrize(("length", "is_told"), [(1, True), (15, True), (16, False), (0, False)])
def test_a_token_that_can_be_guessed_is_told_once_and_not_repeated(length: int, is_told: bool, warehouse: Path) -> None:
    told: list[str] = []
    token = SecretStr("geheim-und-noch-mehr"[:length])
    configured(Settings(warehouse=str(warehouse), token=token), on_fault=told.append, is_local=True)
    assert ["fewer than 16 characters" in sentence for sentence in told] == [True] * is_told
    assert not is_told or token.get_secret_value() not in told[0].split()


@pytest.mark.parametrize(
    ("address", "is_home"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True), ("0.0.0.0", False), ("::", False), ("192.0.2.1", False), ("", False)],
)  # fmt: skip
def test_home_is_the_loopback(address: str, is_home: bool) -> None:
    assert is_loopback(address) is is_home


def test_a_token_that_is_taken_out_of_the_file_stops_working(tmp_path: Path, warehouse: Path) -> None:
    (first, first_kept), (second, second_kept) = new_token("first", "read"), new_token("second", "read")
    path, audit = tmp_path / "tokens.yaml", tmp_path / "audit.jsonl"
    path.write_text(f"tokens:\n{first_kept.lines()}\n{second_kept.lines()}\n")
    with served(warehouse, tokens_file=path, audit_log=audit, serve_refresh_s=0.1) as server:
        assert server.ask("/agents", headers=bearer(first)).status == 200
        path.write_text(f"tokens:\n{second_kept.lines()}\n")
        server.wait_for(lambda _: server.ask("/agents", headers=bearer(first)).status == 401)
        path.write_text("tokens: 17")
        server.wait_for(lambda _: server.faults)
        assert server.ask("/agents", headers=bearer(second)).status == 200
        path.write_text("tokens: []")
        server.wait_for(lambda _: server.ask("/agents", headers=bearer(second)).status == 401)
        assert "the tokens stay what they were" in server.faults[0]
    changes = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [change["tokens_left_out"] for change in changes] == [["first"], ["second"]]


def test_a_token_that_is_taken_out_stops_working_while_a_snapshot_takes_long(
    tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, kept = new_token("first", "read")
    path = tmp_path / "tokens.yaml"
    path.write_text(f"tokens:\n{kept.lines()}\n")
    is_loaded, is_reading, may_go_on = threading.Event(), threading.Event(), threading.Event()
    real = Refresher._read

    def slow(refresher: Refresher) -> Any:
        if is_loaded.is_set():
            is_reading.set()
            may_go_on.wait(PATIENCE_S)
        return real(refresher)

    monkeypatch.setattr(Refresher, "_read", slow)
    with served(warehouse, tokens_file=path, serve_refresh_s=0.1) as server:
        assert server.ask("/agents", headers=bearer(secret)).status == 200
        is_loaded.set()
        os.utime(warehouse)
        assert is_reading.wait(PATIENCE_S)
        path.write_text("tokens: []")
        server.wait_for(lambda _: server.ask("/agents", headers=bearer(secret)).status == 401)
        assert not may_go_on.is_set()
        may_go_on.set()


# -- hosts --


def test_a_request_for_another_host_is_refused(warehouse: Path) -> None:
    with served(warehouse, allowed_hosts="Health.example, other") as server:
        for host, status in [
            ("localhost", 200), ("127.0.0.1", 200), (f"127.0.0.1:{server.port}", 200), ("[::1]:80", 200), ("LOCALHOST.", 200),
            ("health.example", 200), ("health.EXAMPLE.:443", 200), ("other", 200),
            ("evil.example", 421), ("health.example.evil", 421), ("127.0.0.1.evil.example", 421), ("192.0.2.1", 421),
            ("xlocalhost", 421), ("[::1].evil.example", 421), ("[::1]evil", 421), ("localhost:evil.example", 421), ("a" * 5000, 400), ("", 400), ("localhost, evil", 421), ("\xff", 421),
        ]:  # fmt: skip
            head = GET + b"Connection: close\r\nHost: " + host.encode("latin-1") + b"\r\n\r\n"
            reply = server.send(head)
            assert reply.startswith(b"HTTP/1.1 %d " % status), (host, reply[:80])
        for heads, status in [
            (b"", 400), (b"Host: localhost\r\nHost: evil\r\n", 400), (b"Host: localhost\r\nHost: localhost\r\n", 400),
        ]:  # fmt: skip
            assert server.send(GET + heads + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 %d " % status)
        old = GET.replace(b"HTTP/1.1", b"HTTP/1.0")
        assert server.send(old + b"\r\n").startswith(b"HTTP/1.1 400 "), "it names no host, and the operator lists hosts"
        assert b" 200 " in server.send(old + b"Host: other\r\n\r\n")[:20]
        target = GET.replace(b" /", b" http://evil.example/", 1)
        assert server.send(target + b"Host: localhost\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 421 ")
        target = GET.replace(b" /", b" http://localhost/", 1)
        assert server.send(target + b"Host: evil.example\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_hosts_are_those_that_are_listened_on_and_that_the_operator_lists() -> None:
    everywhere = AllowedHosts("0.0.0.0", "")
    for host, own, is_allowed in [
        (b"192.0.2.7:8080", "192.0.2.7", True), (b"192.0.2.8", "192.0.2.7", False), (b"0.0.0.0", "192.0.2.7", False),
        (b"[2001:db8::1]:1", "2001:db8::1", True), (b"localhost", "192.0.2.7", True),
    ]:  # fmt: skip
        assert (everywhere.refusal([(b"host", host)], own, "1.1") is None) is is_allowed, host
    for listed, is_allowed in [("", True), ("*", True), ("box", False)]:
        assert (AllowedHosts("::1", listed).refusal([], "::1", "1.0") is None) is is_allowed, listed
        assert AllowedHosts("::1", listed).refusal([], "::1", "1.1") is not None
    assert AllowedHosts("Box", "").refusal([(b"host", b"box:1")], "192.0.2.7", "1.1") is None
    assert AllowedHosts("::", "*").refusal([(b"host", b"whatever")], "192.0.2.7", "1.1") is None


# -- what one client can hold --


def test_many_slow_connections_of_one_address_keep_nobody_else_out(warehouse: Path) -> None:
    with served(warehouse, serve_max_connections=60, serve_connections_per_address=10) as server, ExitStack() as slow:
        for _ in range(100):
            connection = slow.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S))
            connection.sendall(b"GET /agents HT")
        refused = slow.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S))
        assert refused.recv(65536).startswith(b"HTTP/1.1 429 ")
        for _ in range(30):
            assert server.ask(DOCUMENT, source="127.0.0.2").status == 200


def test_connections_that_are_closed_count_no_more() -> None:
    quota = ConnectionQuota(2)
    assert [quota.take("a"), quota.take("a"), quota.take("a"), quota.take("b")] == [True, True, False, True]
    quota.give_back("a")
    assert [quota.take("a"), quota.take("a")] == [True, False]
    assert [quota.take(f"2001:db8::{n}") for n in range(3)] == [True, True, False]  # one client has the whole network


def test_clients_that_loop_over_sessions_starve_nobody_else(warehouse: Path) -> None:
    is_over = threading.Event()
    refusals: list[int] = []

    def loop(server: Served, number: int) -> None:
        asked = 0
        while not is_over.is_set():
            asked += 1
            refusals.append(server.ask(f"/sessions/{number}-{asked}").status)

    with served(warehouse) as server:
        loops = [threading.Thread(target=loop, args=(server, number)) for number in range(8)]
        for thread in loops:
            thread.start()
        try:
            replies = [server.ask(f"/sessions/honest-{n}", source="127.0.0.2").status for n in range(15)]
            documents = [server.ask(DOCUMENT, source="127.0.0.3").status for _ in range(15)]
        finally:
            is_over.set()
            for thread in loops:
                thread.join()
    assert set(replies) == {404}
    assert set(documents) == {200}
    assert 429 in refusals


def test_work_is_limited_at_once_and_in_time() -> None:
    quota = WorkQuota(1.0)
    assert [quota.take("a", 0.0) for _ in range(MOST_SESSIONS_AT_ONCE + 1)] == [0] * MOST_SESSIONS_AT_ONCE + [1]
    assert quota.take("b", 0.0) == 0
    for _ in range(SESSIONS_IN_RESERVE - MOST_SESSIONS_AT_ONCE):
        quota.give_back("a")
        assert quota.take("a", 0.0) == 0
    quota.give_back("a")
    assert quota.take("a", 0.0) == 1
    assert quota.take("a", 1.0) == 0


def test_a_session_that_was_looked_up_costs_nothing_for_a_while(warehouse: Path) -> None:
    with served(warehouse, serve_sessions_per_s=0.001) as server:
        assert {server.ask("/sessions/s").status for _ in range(2 * SESSIONS_IN_RESERVE)} == {200}
        others = [server.ask(f"/sessions/{n}") for n in range(SESSIONS_IN_RESERVE)]
        assert {reply.status for reply in others} == {404, 429}
        assert int(others[-1].headers["retry-after"]) > 0


# -- logs --


def test_the_access_log_says_who_asked_for_what_and_never_the_token(tmp_path: Path, warehouse: Path) -> None:
    log = tmp_path / "access.jsonl"
    secret, kept = new_token("dash\nboard", "read")
    with served(warehouse, tokens=kept_as_json(kept), access_log=str(log), serve_connections_per_address=9) as server:
        server.ask("/agents?limit=1", headers=bearer(secret))
        server.ask("/agents", "HEAD")
        server.ask(f"/agents/{secret}?token={secret}", headers=bearer(secret))
        server.ask(DOCUMENT, headers={"Host": 'evil"\\example'})
        server.ask("/agents", "POST")
        with ExitStack() as held:
            for _ in range(9):
                held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S))
            assert server.send().startswith(b"HTTP/1.1 429 ")
    text = log.read_text()
    assert secret not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert all(set(line) == {"time", "who", "method", "path", "status", "ms", "bytes"} for line in lines)
    told = [(one["who"], one["method"], one["path"], one["status"]) for one in lines if one["path"] != "/status"]
    assert told == [
        ("dash\nboard", "GET", "/agents?limit=1", 200),
        ("127.0.0.1", "HEAD", "/agents", 401),
        ("dash\nboard", "GET", "/agents/ha_…?token=ha_…", 404),
        ("127.0.0.1", "GET", DOCUMENT, 421),
        ("127.0.0.1", "POST", "/agents", 405),
        ("127.0.0.1", None, None, 429),
    ]
    whole, head = [one for one in lines if one["path"] in ("/agents?limit=1", "/agents")][:2]
    assert whole["bytes"] > 100
    assert head["bytes"] == 0
    assert 0 < whole["ms"] < 1000 * PATIENCE_S
    assert datetime.fromisoformat(whole["time"]).tzinfo is not None
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_token_in_a_path_is_not_logged_however_it_is_written(tmp_path: Path, warehouse: Path) -> None:
    log = tmp_path / "access.jsonl"
    secret, _ = new_token("a", "read")
    plain = "open sesame (now)"
    with served(warehouse, token=SecretStr(plain), access_log=str(log)) as server:
        for text in (secret, plain, "x"):
            server.ask(f"/agents?token={quote(text)}")
            escaped = "".join(f"%{byte:02x}" for byte in text.encode())
            server.ask(f"/agents?token={escaped}")
            server.ask(f"/agents?token={quote(escaped)}")
    paths = [path for line in log.read_text().splitlines() if (path := json.loads(line)["path"]) != "/status"]
    assert paths == ["/agents?token=ha_…"] * 3 + ["/agents?token=…"] * 3 + [
        f"/agents?token={text}" for text in ("x", "%78", "%2578")
    ]


def test_an_access_log_that_cannot_be_written_is_told_and_stops_no_answer(tmp_path: Path, warehouse: Path) -> None:
    with served(warehouse, access_log=str(tmp_path)) as server:
        assert server.ask(DOCUMENT).status == 200
        server.wait_for(lambda _: server.faults)
        assert server.ask(DOCUMENT).status == 200
    assert [fault for fault in server.faults if "HEALTH_ACCESS_LOG" in fault] == server.faults
    assert len(server.faults) == 1
