"""Fetching a health document from real servers that answer well, badly, slowly and not at all."""

import asyncio
import gzip
import json
import socket
import threading
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from health_assets import consumer
from health_assets.consumer import Answer, health_url
from health_assets.consumer.addresses import is_public, look_up
from health_assets.consumer.fetching import _redirect_fault
from health_assets.core.errors import HealthAssetsError
from health_assets_tests.support.health_servers import (
    WELL_KNOWN,
    Certificate,
    Host,
    answers,
    closed_port,
    document,
    drips,
    hangs,
    head,
    make_certificate,
    never_ends,
    redirects,
    resets,
    says,
    zipped,
)

fetch_health = partial(consumer.fetch_health, allow_private=True)
"""The servers of these tests are on this machine."""

GOOD = document()
BODY = json.dumps(GOOD).encode()
JSON_HEAD = head("200 OK", "application/json", {"Connection": "close"})
CHUNKED = head("200 OK", "application/json", {"Transfer-Encoding": "chunked"})
LIMIT = 64 * 1024

Expected = tuple[str, int | None, str]
"""Outcome, HTTP status, and words of the error."""

BAD: dict[str, tuple] = {
    "empty": (answers(b""), "invalid", 200, "not valid JSON"),
    "html": (answers(b"<html>", content_type="text/html; charset=utf-8"), "invalid", 200, "text/html"),
    "no content type": (answers(BODY, content_type=None), "invalid", 200, "missing"),
    "another JSON": (answers(BODY, content_type="application/problem+json"), "invalid", 200, "problem+json"),
    "text of JSON": (answers(b"{status: healthy}"), "invalid", 200, "not valid JSON"),
    "cut JSON": (answers(BODY[:-5]), "invalid", 200, "not valid JSON"),
    "list": (answers(b"[]"), "invalid", 200, "must be an object, not a list"),
    "NaN": (answers(BODY.replace(b"0.99", b"NaN")), "invalid", 200, "NaN is no JSON number"),
    "Infinity": (answers(BODY.replace(b"0.99", b"-Infinity")), "invalid", 200, "-Infinity is no JSON number"),
    "too large a number": (answers(BODY.replace(b"0.99", b"1e999")), "invalid", 200, "more than a double"),
    "nulls": (answers(document(calibration=None)), "invalid", 200, "calibration: must not be null"),
    "wrong types": (
        answers(document(health__uptime_seconds="1", calibration__error_ratio=True)),
        "invalid",
        200,
        "health.uptime_seconds: must be a number, not \"1\"; calibration.error_ratio: must be a number, not true",
    ),
    "deep": (answers(b'{"a":' * 10_000), "invalid", 200, "nested too deeply"),
    "many digits": (answers(b'{"a":' + b"1" * 5000 + b"}"), "invalid", 200, "too many digits"),
    "not UTF-8": (answers(b'{"agent_id": "\xff"}'), "invalid", 200, "not UTF-8"),
    "UTF-16": (answers(BODY.decode().encode("utf-16")), "invalid", 200, "not UTF-8"),
    "huge": (answers(b" " * (LIMIT + 1)), "invalid", 200, "larger than 65,536 bytes"),
    "says it is huge": (hangs(head("200 OK", "application/json", {"Content-Length": "9" * 15})), "invalid", 200, "larger"),
    "endless": (never_ends(b" " * 4096, JSON_HEAD), "invalid", 200, "larger than 65,536 bytes"),
    "endless chunks": (never_ends(b"1000\r\n" + b" " * 4096 + b"\r\n", CHUNKED), "invalid", 200, "larger"),
    "gzip bomb": (zipped(b" " * 1_000_000, 30), "invalid", 200, "when unpacked"),
    "cut gzip": (answers(gzip.compress(BODY)[:-9], headers={"Content-Encoding": "gzip"}), "invalid", 200, "cut off"),
    "no gzip": (answers(BODY, headers={"Content-Encoding": "gzip"}), "invalid", 200, "not the gzip"),
    "brotli": (answers(BODY, headers={"Content-Encoding": "br"}), "invalid", 200, "'br', which was not asked for"),
    "404": (answers(b"{}", "404 Not Found"), "http_error", 404, "HTTP 404 Not Found"),
    "500 with a good document": (answers(GOOD, "500 Internal Server Error"), "http_error", 500, "HTTP 500"),
    "401": (answers(b"", "401 Unauthorized"), "http_error", 401, "may not need credentials"),
    "204": (says(b"HTTP/1.1 204 No Content\r\n\r\n"), "http_error", 204, "HTTP 204"),
    "206": (answers(GOOD, "206 Partial Content"), "http_error", 206, "HTTP 206"),
    "304": (says(b"HTTP/1.1 304 Not Modified\r\n\r\n"), "http_error", 304, "HTTP 304"),
    "redirect to nowhere": (says(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"), "http_error", 302, "HTTP 302"),
    "redirect elsewhere": (redirects("http://192.0.2.1/x"), "refused", 302, "another host or port"),
    "redirect to a name": (redirects("http://localhost/x"), "refused", 302, "another host or port"),
    "redirect to another port": (redirects("http://127.0.0.1:1/x", "308 Permanent Redirect"), "refused", 308, "another"),
    "redirect to a file": (redirects("file:///etc/passwd"), "refused", 302, "no web address"),
    "redirect to nonsense": (redirects("http://[::"), "unreachable", None, "Invalid URL in location header"),
    "redirect in circles": (redirects("/again"), "refused", 302, "more than 3 times"),
    "hangs up": (says(b""), "unreachable", None, "does not speak HTTP, or hangs up"),
    "no HTTP": (says(b"SSH-2.0-OpenSSH_9.6\r\n"), "unreachable", None, "does not speak HTTP"),
    "endless head": (never_ends(b"X-A: b\r\n" * 500, b"HTTP/1.1 200 OK\r\n"), "unreachable", None, "not speak HTTP"),
    "resets": (resets(), "unreachable", None, "broke"),
    "resets half way": (
        resets(head("200 OK", "application/json", {"Content-Length": "900"}) + BODY[:20]), "unreachable", 200, "broke",
    ),
    "hangs up half way": (
        says(head("200 OK", "application/json", {"Content-Length": "900"}) + BODY[:20]), "unreachable", 200, "whole",
    ),
    "hangs": (hangs(), "timeout", None, "did not answer within 0.3 s"),
    "hangs after its head": (hangs(JSON_HEAD), "timeout", 200, "did not finish its answer within 3 s"),
    "drips": (drips(JSON_HEAD + BODY), "timeout", None, "did not answer within 0.3 s"),
    "drips its body": (drips(BODY, first=JSON_HEAD), "timeout", 200, "did not finish"),
    "is late": (answers(GOOD, after_s=60), "timeout", None, "did not answer within 0.3 s"),
    "answers 100 for ever": (never_ends(b"HTTP/1.1 100 Continue\r\n\r\n", b""), "timeout", None, "did not answer"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_is_named_and_never_raises(name: str) -> None:
    behaviour, outcome, http_status, words = BAD[name]
    is_slow = outcome == "timeout"
    limit_s = (0.3 if http_status is None else 3) if is_slow else 40
    start = time.monotonic()
    with Host(behaviour) as host:
        answer = fetch_health(host.url, timeout_s=limit_s)
        took_s = time.monotonic() - start
    assert (answer.outcome, answer.http_status) == (outcome, http_status), answer
    assert words in answer.error
    assert answer.document is None
    assert (answer.latency_ms is None) == (outcome in ("timeout", "unreachable"))
    assert took_s < limit_s + 20 if is_slow else took_s < limit_s


GOOD_ANSWERS = {
    "plain": answers(GOOD),
    "with a parameter": answers(GOOD, content_type="Application/JSON; charset=utf-8"),
    "until it hangs up": says(JSON_HEAD + BODY),
    "in chunks": says(CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)),
    "gzip that was not asked for": zipped(GOOD),
    "with a byte order mark": answers(b"\xef\xbb\xbf" + BODY),
    "exactly at the limit": answers(BODY + b" " * (LIMIT - len(BODY))),
    "gzip exactly at the limit": zipped(BODY + b" " * (LIMIT - len(BODY))),
    "slow but in time": answers(GOOD, after_s=0.05),
    "without anything optional": answers(
        {"schema_version": "0.1.0", "agent_id": "a", "timestamp": "2026-06-07T13:00:00Z", "health": {"status": "unknown"}}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD_ANSWERS)
def test_a_good_answer_is_valid(name: str) -> None:
    with Host(GOOD_ANSWERS[name]) as host:
        answer = fetch_health(host.url)
    assert answer.outcome == "valid", answer.error
    assert answer.document is not None
    assert (answer.http_status, answer.error, answer.problems) == (200, None, ())
    assert 0 < answer.latency_ms < 5000
    assert answer.url == f"{host.url}{WELL_KNOWN}"


def test_nothing_at_a_port_is_unreachable() -> None:
    with closed_port() as url:
        answer = fetch_health(url)
    assert answer.outcome == "unreachable"
    assert answer.error.startswith("no connection")


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", f"{'a' * 64}.invalid"])
def test_a_name_that_nobody_knows_is_unreachable(host: str) -> None:
    assert fetch_health(f"http://{host}", timeout_s=60).outcome == "unreachable"


@pytest.mark.parametrize("is_in_loop", [False, True])
def test_the_time_limit_holds_for_the_look_up_of_a_name(monkeypatch: pytest.MonkeyPatch, is_in_loop: bool) -> None:
    resolver_ends = threading.Event()

    def slow(*_: object, **__: object) -> None:
        resolver_ends.wait(60)
        raise socket.gaierror("at last")

    async def notebook() -> Answer:
        return fetch_health("http://slow.example", timeout_s=0.5)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    start = time.monotonic()
    answer = asyncio.run(notebook()) if is_in_loop else fetch_health("http://slow.example", timeout_s=0.5)
    took_s = time.monotonic() - start
    resolver_ends.set()
    assert answer.outcome == "timeout"
    assert took_s < 20


def test_a_name_that_is_known_is_looked_up() -> None:
    with Host(answers(GOOD)) as host:
        assert fetch_health(host.url.replace("127.0.0.1", "localhost")).outcome == "valid"


def test_a_gzip_bomb_is_not_unpacked_into_memory() -> None:
    """30 MB of spaces in 30 kB: unpacking them at once would show."""
    with Host(zipped(b" " * 1_000_000, 30)) as host:
        fetch_health(host.url)  # what is imported and cached at first
        tracemalloc.start()
        try:
            answer = fetch_health(host.url)
            peak_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert "when unpacked" in answer.error
    assert peak_bytes < 5_000_000


def test_redirects_within_the_same_host_are_followed() -> None:
    behaviours = {
        "": redirects("/a/b"),
        "/a/b": redirects("c?x=1", "307 Temporary Redirect"),
        "/a/c?x=1": answers(GOOD),
    }
    with Host(behaviours) as host:
        answer = fetch_health(host.url)
    assert answer.outcome == "valid"
    assert [request.path for request in host.requests] == [WELL_KNOWN, "/a/b", "/a/c?x=1"]


def test_no_request_goes_to_the_host_that_a_redirect_names() -> None:
    with Host(answers(GOOD)) as other, Host(redirects(f"{other.url}/x")) as host:
        answer = fetch_health(host.url)
    assert answer.outcome == "refused"
    assert other.requests == []


def test_a_request_asks_for_json_says_who_asks_and_carries_no_credential() -> None:
    behaviours = {
        "": answers(b"", "302 Found", headers={"Location": "/next", "Set-Cookie": "track=me; Path=/"}),
        "/next": answers(GOOD),
    }
    with Host(behaviours) as host:
        fetch_health(host.url)
    first, second = host.requests
    assert first.headers["accept"] == "application/json"
    assert first.headers["accept-encoding"] == "identity"
    assert first.headers["user-agent"].startswith("health-assets/")
    for request in (first, second):
        assert not {"cookie", "authorization"} & set(request.headers)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("https://agent.example", "https://agent.example/.well-known/agent-health"),
        ("https://agent.example/", "https://agent.example/.well-known/agent-health"),
        ("HTTPS://Agent.Example:443", "https://agent.example/.well-known/agent-health"),
        (
            "https://agent.example:8443/agents/a%20b/",
            "https://agent.example:8443/agents/a%20b/.well-known/agent-health",
        ),
        (
            "https://agent.example/agents/did:wba:x%2Fy%3Fz/",
            "https://agent.example/agents/did:wba:x%2Fy%3Fz/.well-known/agent-health",
        ),
        ("https://agent.example/a?", "https://agent.example/a/.well-known/agent-health"),
        ("https://agent.example/.well-known/agent-health", "https://agent.example/.well-known/agent-health"),
        ("https://agent.example/.well-known/agent.json", "https://agent.example/.well-known/agent-health"),
        ("https://agent.example/a/.well-known/agent.json#x", "https://agent.example/a/.well-known/agent-health"),
        ("https://agent.example/a?key=1", "https://agent.example/a/.well-known/agent-health?key=1"),
        ("  http://[::1]:80/ ", "http://[::1]/.well-known/agent-health"),
        ("https://bücher.example", "https://xn--bcher-kva.example/.well-known/agent-health"),
    ],
)
def test_the_address_asked_is_that_of_the_health_document(given: str, asked: str) -> None:
    assert health_url(given) == asked
    assert health_url(asked) == asked


@pytest.mark.parametrize(
    "url",
    ["", "agent.example", "localhost:8000", "ftp://agent.example", "file:///etc/passwd", "http://", "http://:80", "http://[::",
     "http://a:99999", "http://a:0", "http://user:secret@agent.example", "javascript:alert(1)", "http://\x00", "//agent.example"],
)  # fmt: skip
def test_what_is_no_web_address_is_an_error_of_one_sentence(url: str) -> None:
    with pytest.raises(HealthAssetsError) as caught:
        fetch_health(url)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "limits", [{"timeout_s": 0}, {"timeout_s": float("nan")}, {"timeout_s": float("inf")}, {"max_bytes": 0}]
)
def test_an_impossible_limit_is_an_error(limits: dict) -> None:
    with pytest.raises(HealthAssetsError, match="cannot be kept"):
        fetch_health("http://127.0.0.1:1", **limits)


def test_fetching_works_where_an_event_loop_runs_already() -> None:
    async def notebook(url: str) -> Answer:
        return fetch_health(url)

    with Host(answers(GOOD)) as host:
        assert asyncio.run(notebook(host.url)).outcome == "valid"


@pytest.mark.parametrize(
    ("header", "seconds"), [("120", 120), ("0", 0), ("9" * 30, 86400), ("-1", None), ("soon", None), ("²", None)]
)
def test_how_long_a_server_wants_to_be_left_alone_is_read(header: str, seconds: int | None) -> None:
    busy = answers(b"", "503 Service Unavailable", headers={"Retry-After": header})
    with Host(busy) as host:
        assert fetch_health(host.url).retry_after_s == seconds


def test_text_of_strangers_cannot_reach_a_terminal_as_control_characters() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e"
    bodies = [
        answers(document(health__status=evil)),
        answers(b"{}", content_type="text/\x1b[31m"),
        redirects("http://x/\x1b[2J"),
    ]
    for behaviour in [*bodies, answers(document(**{"extensions": {evil: 1}}))]:
        with Host(behaviour) as host:
            answer = fetch_health(host.url)
        assert answer.outcome in ("invalid", "refused", "unreachable")
        assert answer.error.isprintable()


# -- TLS ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def test_a_certificate_that_is_trusted_is_taken_and_another_is_not(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Host(answers(GOOD), certificate.context) as host:
        stranger = fetch_health(host.url)
        monkeypatch.setenv("SSL_CERT_FILE", certificate.path)
        answer = fetch_health(host.url)
    assert stranger.outcome == "unreachable"
    assert "certificate" in stranger.error.lower()
    assert answer.outcome == "valid"
    assert answer.is_over_tls


def test_a_redirect_never_leaves_tls(certificate: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", certificate.path)
    with Host(answers(GOOD)) as plain, Host(redirects(plain.url), certificate.context) as safe:
        down = fetch_health(safe.url)
    assert (down.outcome, plain.requests) == ("refused", [])
    assert "out of TLS" in down.error


def test_a_redirect_into_tls_keeps_the_port_or_takes_that_of_https(certificate: Certificate) -> None:
    with Host(answers(GOOD), certificate.context) as safe, Host(redirects(safe.url)) as plain:
        elsewhere = fetch_health(plain.url)
    assert (elsewhere.outcome, safe.requests) == ("refused", [])
    assert "another host or port" in elsewhere.error
    url = httpx.URL("http://agent.example:8080/a")
    for location, is_followed in (
        ("https://agent.example/a", True),
        ("https://agent.example:443/a", True),
        ("https://agent.example:8080/a", True),
        ("https://agent.example:8443/a", False),
        ("https://agent.example:80/a", False),
        ("https://other.example/a", False),
        ("http://agent.example:443/a", False),
    ):
        assert (_redirect_fault(url, httpx.URL(location)) is None) is is_followed, location


def test_tls_spoken_to_a_plain_server_is_unreachable() -> None:
    with Host(answers(GOOD)) as host:
        assert fetch_health(host.url.replace("http", "https")).outcome == "unreachable"


# -- addresses ---------------------------------------------------------------------------------------------------------


class Resolver:
    """Names, each with what is answered to the first look-up, the second and so on; the last stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **names: list[list[str]]) -> None:
        self.asked: list[str] = []
        self._names = {name.replace("_", "."): answers for name, answers in names.items()}
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self.look_up)

    def look_up(self, host: Any, port: Any, *arguments: Any, **options: Any) -> list:
        host = host.decode() if isinstance(host, bytes) else host
        if host not in self._names:
            return self._real(host, port, *arguments, **options)
        place = min(self.asked.count(host), len(self._names[host]) - 1)
        self.asked.append(host)
        return [
            made for address in self._names[host][place] for made in self._real(address, port, *arguments, **options)
        ]


def test_a_name_is_looked_up_once_and_a_redirect_goes_to_the_address_that_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: the second look-up of the name would lead to a server inside."""
    resolver = Resolver(monkeypatch, agent_example=[["127.0.0.1"], ["127.0.0.2"]])
    with (
        Host({"": redirects("/next"), "/next": answers(GOOD)}) as host,
        socket.create_server(("127.0.0.2", host.port)) as inside,
    ):
        inside.setblocking(False)
        answer = fetch_health(f"http://agent.example:{host.port}")
        with pytest.raises(BlockingIOError):
            inside.accept()
    assert answer.outcome == "valid", answer.error
    assert resolver.asked == ["agent.example"]
    assert [request.headers["host"] for request in host.requests] == [f"agent.example:{host.port}"] * 2


@pytest.mark.parametrize("written", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]"])
def test_an_address_that_is_not_public_is_not_asked_unless_that_is_allowed(written: str) -> None:
    with Host(answers(GOOD)) as host:
        answer = consumer.fetch_health(host.url.replace("127.0.0.1", written))
        assert host.requests == []
        assert (answer.outcome, answer.http_status, answer.document) == ("private", None, None)
        assert "HEALTH_ALLOW_PRIVATE_ADDRESSES" in answer.error
        assert fetch_health(host.url.replace("127.0.0.1", written)).outcome == "valid"


def test_a_name_that_leads_inside_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(monkeypatch, agent_example=[["127.0.0.1"]])
    with Host(answers(GOOD)) as host:
        answer = consumer.fetch_health(f"http://agent.example:{host.port}")
    assert (answer.outcome, host.requests) == ("private", [])
    assert resolver.asked == ["agent.example"]


NOT_PUBLIC = [
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "127.0.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "239.255.255.255",
    "0.0.0.0",
    "240.0.0.1",
    "255.255.255.255",
    "192.0.2.1",
    "198.18.0.1",
    "192.0.0.1",
    "192.0.0.9",
    "192.0.0.255",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.175.48.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.255",
    "224.0.0.1",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12:3456::1",
    "ff02::1",
    "ff0e::1",
    "fec0::1",
    "2001:db8::1",
    "3fff::1",
    "100::1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "2002:a00:1::",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::1",
    "2001:0:102:304::1",
    "::ffff:192.88.99.1",
    "::ffff:0:8.8.8.8",
    "64:ff9b::192.0.0.8",
    "2002:c058:6301::1",
    "2001:2::1",
    "2001:20::1",
    "2620:4f:8000::1",
    "5f00::1",
    "4000::1",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_what_is_not_of_the_public_internet_is_known(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "192.0.1.0",
        "192.88.98.255",
        "192.88.100.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2001:200::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::",
    ],
)
def test_what_is_of_the_public_internet_is_known(address: str) -> None:
    assert is_public(address)


def test_of_public_and_private_addresses_the_public_ones_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    Resolver(monkeypatch, agent_example=[["10.0.0.1", "8.8.8.8", "127.0.0.1"]])
    assert asyncio.run(look_up("agent.example", allow_private=False)) == ("8.8.8.8",)
    assert asyncio.run(look_up("agent.example", allow_private=True)) == ("10.0.0.1", "8.8.8.8", "127.0.0.1")


def test_an_address_at_which_nothing_listens_is_followed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    Resolver(monkeypatch, agent_example=[["127.0.0.3", "127.0.0.1"]])
    with Host({"": redirects("/next"), "/next": answers(GOOD)}) as host:
        assert fetch_health(f"http://agent.example:{host.port}").outcome == "valid"


def test_a_certificate_is_that_of_the_name_although_an_address_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Resolver(monkeypatch, agent_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
    own = make_certificate(tmp_path, "agent.example")
    monkeypatch.setenv("SSL_CERT_FILE", own.path)
    names: list[str | None] = []
    own.context.sni_callback = lambda _, name, __: names.append(name)
    with Host(answers(GOOD), own.context) as host:
        assert fetch_health(f"https://agent.example:{host.port}").outcome == "valid"
        stranger = fetch_health(f"https://other.example:{host.port}")
    assert stranger.outcome == "unreachable"
    assert "certificate" in stranger.error.lower()
    assert names == ["agent.example", "other.example"]


def test_behind_a_proxy_the_proxy_looks_names_up_and_written_addresses_are_refused_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolver = Resolver(monkeypatch, agent_example=[["127.0.0.1"]])
    with Host(answers(GOOD)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "direct.example")
        assert consumer.fetch_health("http://agent.example").outcome == "valid"
        for inside in ("http://127.1", "http://localhost", "http://[::1]", "http://169.254.169.254"):
            assert consumer.fetch_health(inside).outcome == "private", inside
        Resolver(monkeypatch, direct_example=[["127.0.0.1"]])
        assert consumer.fetch_health("http://direct.example").outcome == "private"
    assert [request.path for request in proxy.requests] == [f"http://agent.example{WELL_KNOWN}"]
    assert resolver.asked == []
