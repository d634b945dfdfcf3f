"""Signing in to pages: what the cookie is, what it opens, when it ends, and which forms are taken."""

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from health_assets.apps.serving.forms import MOST_FORM_BYTES
from health_assets.apps.serving.hosts import AllowedHosts
from health_assets.apps.serving.pages.signing import TRIES_IN_RESERVE, own_page
from health_assets.apps.serving.sign_ins import LASTS, MOST_SIGN_INS, SignIns
from health_assets.apps.serving.tokens import new_token
from health_assets_tests.apps.test_serving_auth import SCORES, bearer, kept_as_json
from health_assets_tests.apps.test_serving_tls import certificate
from health_assets_tests.support.browsers import FORM, Browser
from health_assets_tests.support.incidents_made import make_warehouse
from health_assets_tests.support.serving_made import Served, readers_in_this_process, served

NOW = datetime(2026, 6, 7, tzinfo=UTC)
SECRETS = {role: new_token(role, role) for role in ("documents", "read", "operate")}


@pytest.fixture(scope="module", autouse=True)
def _readers() -> Iterator[None]:
    with readers_in_this_process():
        yield


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_warehouse(tmp_path_factory.mktemp("signing"))


@pytest.fixture(scope="module")
def server(warehouse: tuple[Path, Path]) -> Iterator[Served]:
    path, targets = warehouse
    tokens = kept_as_json(*(kept for _, kept in SECRETS.values()))
    with served(path, pages=True, targets=targets, tokens=tokens) as running:
        running.wait_for_pages({"Authorization": f"Bearer {secret('read')}"})
        yield running


@pytest.fixture
def browser(server: Served) -> Browser:
    return Browser(server)


def secret(role: str) -> str:
    return SECRETS[role][0]


def signed_in(server: Served, role: str = "read") -> Browser:
    """A browser of somebody whose tries are not counted among those of this address."""
    browser = Browser(server)
    source = f"127.0.0.{10 + len(SOURCES)}"
    SOURCES.append(source)
    reply = server.ask(
        "/ui/sign-in", "POST", {"Content-Type": FORM, "Origin": browser.origin, "Host": f"127.0.0.1:{server.port}"},
        source, f"token={secret(role)}".encode(),
    )  # fmt: skip
    assert reply.status == 303, reply.body
    name, _, value = reply.headers["set-cookie"].partition(";")[0].partition("=")
    browser.cookies = {name: value}
    return browser


SOURCES: list[str] = []


# -- the cookie --


def test_a_page_asks_for_a_token_and_leads_to_where_one_wanted_to_go(browser: Browser) -> None:
    reply = browser.get("/ui/incidents?q=a%20b&hour=2026-06-07T13")
    assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert 'name="next" value="/ui/incidents?q=a%20b&amp;hour=2026-06-07T13"' in reply.body.decode()
    reply = browser.sign_in(secret("read"), "/ui/incidents?q=a%20b")
    assert (reply.status, reply.headers["location"]) == (303, "/ui/incidents?q=a%20b")
    assert "crawler-1" in browser.page("/ui/incidents")
    assert "<span><bdi>read</bdi></span>" in browser.page("/ui/incidents")


def test_the_cookie_is_for_this_host_and_for_no_script(server: Served) -> None:
    reply = Browser(server).sign_in(secret("read"))
    name, *flags = reply.headers["set-cookie"].split("; ")
    assert name.startswith("health_assets=") and len(name) > 50
    assert set(flags) == {"Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=43200"}
    assert reply.headers["cache-control"] == "no-store"
    assert secret("read") not in reply.headers["set-cookie"]


def test_under_tls_the_cookie_is_secure_and_of_this_host_alone(warehouse: tuple[Path, Path], tmp_path: Path) -> None:
    path, targets = warehouse
    cert, key = certificate(tmp_path)
    with served(path, pages=True, targets=targets, token=SecretStr("plain"), tls_cert=cert, tls_key=key) as running:
        browser = Browser(running)
        assert browser.post("/ui/sign-in", {"token": "plain"}, Origin=f"http://localhost:{running.port}").status == 403
        name, *flags = browser.sign_in("plain").headers["set-cookie"].split("; ")
        assert name.startswith("__Host-health_assets=")
        assert set(flags) == {"Path=/", "HttpOnly", "SameSite=Strict", "Secure", "Max-Age=43200"}
        assert "Sign out" in browser.page("/ui/incidents")


def test_the_cookie_opens_pages_and_nothing_of_the_api(server: Served) -> None:
    browser = signed_in(server, "operate")
    browser.page("/")
    assert {browser.get(path).status for path in SCORES} == {401}
    assert browser.get("/status").json["agents"] is None
    assert {browser.get(path).status for path in ("/ui/../agents", "/ui/%2e%2e/agents", "/ui//agents")} == {404}
    with_token = {"Authorization": f"Bearer {secret('documents')}"}
    assert browser.get("/", **with_token).status == 401, "the token that is given counts"


def test_a_token_in_the_header_opens_pages_but_no_form(server: Served) -> None:
    reply = server.ask("/ui/incidents", headers=bearer(secret("operate")))
    assert (reply.status, b'name="csrf"' in reply.body) == (200, False)
    refused = Browser(server).post("/ui/silences", {"agents": "fine"}, **bearer(secret("operate")))
    assert refused.status == 401


def test_signing_out_ends_the_session(server: Served) -> None:
    browser = signed_in(server)
    stolen = dict(browser.cookies)
    reply = browser.post("/ui/sign-out", {"csrf": browser.csrf(), "next": "/ui/incidents"})
    assert (reply.status, reply.headers["location"], browser.cookies) == (303, "/ui/incidents", {})
    assert "Max-Age=0" in reply.headers["set-cookie"]
    assert Browser(server, stolen).get("/").status == 401


def test_signing_in_again_ends_the_session_before(server: Served) -> None:
    browser = signed_in(server)
    before = dict(browser.cookies)
    browser.sign_in(secret("operate"))
    assert browser.cookies != before
    assert (browser.get("/").status, Browser(server, before).get("/").status) == (200, 401)


def test_a_session_ends_when_its_token_is_withdrawn_or_expires(warehouse: tuple[Path, Path], tmp_path: Path) -> None:
    path, targets = warehouse
    lasting, lasting_kept = new_token("lasting", "read")
    file = tmp_path / "tokens.yaml"
    file.write_text(f"tokens:\n{lasting_kept.lines()}\n")
    with served(path, pages=True, targets=targets, tokens_file=file, serve_refresh_s=0.1) as running:
        browsers = Browser(running), Browser(running)
        browsers[0].sign_in(lasting)
        # from now on pages are quick, so that the other token lives to see one
        running.wait_for(lambda _: browsers[0].get("/ui/incidents").status == 200)
        soon = datetime.now(UTC) + timedelta(seconds=4)
        short, short_kept = new_token("short", "read", (), soon)
        file.write_text(f"tokens:\n{lasting_kept.lines()}\n{short_kept.lines()}\n")
        running.wait_for(lambda _: browsers[1].sign_in(short).status == 303)
        browsers[1].page("/ui/incidents")
        running.wait_for(lambda _: browsers[1].get("/ui/incidents").status == 401)
        assert datetime.now(UTC) >= soon
        assert browsers[0].get("/ui/incidents").status == 200
        file.write_text("tokens: []\n")
        running.wait_for(lambda _: browsers[0].get("/ui/incidents").status == 401)


def test_a_session_ends_after_twelve_hours_and_the_oldest_give_way() -> None:
    kept = SignIns()

    def headers(value: str) -> list[tuple[bytes, bytes]]:
        return [(b"cookie", f"other=1; health_assets={value}".encode())]

    first = kept.begin(b"digest", NOW)
    assert kept.find(headers(first), NOW + LASTS - timedelta(seconds=1)) is not None
    assert kept.find(headers(first), NOW + LASTS) is None
    assert kept.find(headers(first + "x"), NOW) is None
    assert kept.find([(b"cookie", b"health_assets"), (b"cookie", b"\xff=\xff; =;")], NOW) is None
    later = [kept.begin(b"digest", NOW) for _ in range(MOST_SIGN_INS)]
    assert kept.find(headers(first), NOW) is None
    assert all(kept.find(headers(value), NOW) for value in (later[0], later[-1]))


def test_a_link_on_another_site_leads_who_is_signed_in_to_the_page(server: Served) -> None:
    led = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    body = Browser(server).get("/ui/incidents/open-floor", **led).body.decode()
    assert '<meta http-equiv="refresh" content="0;url=/ui/incidents/open-floor">' in body
    assert "http-equiv" not in Browser(server).get("/ui/incidents/open-floor").body.decode(), "once, not for ever"


# -- wrong tokens --


def test_a_wrong_token_gets_the_form_again_and_guesses_are_slowed_down(warehouse: tuple[Path, Path]) -> None:
    path, targets = warehouse
    with served(path, pages=True, targets=targets, tokens=kept_as_json(SECRETS["read"][1])) as running:
        browser = Browser(running)
        reply = browser.sign_in("ha_guess", "/ui/incidents")
        body = reply.body.decode()
        assert (reply.status, browser.cookies) == (401, {})
        assert "This token is not known, or has expired." in body and 'value="/ui/incidents"' in body
        assert "ha_guess" not in body
        statuses = [browser.sign_in(f"guess {number}").status for number in range(TRIES_IN_RESERVE)]
        assert (statuses[0], statuses[-1]) == (401, 429)
        reply = browser.sign_in(secret("read"))
        assert (reply.status, browser.cookies) == (429, {}), (
            "so a guess that is right does not tell itself by its answer"
        )
        assert int(reply.headers["retry-after"]) >= 1
        assert browser.get("/ui/sign-in").status == 200


def test_a_token_that_may_read_no_page_is_told_so(server: Served) -> None:
    browser = Browser(server)
    reply = browser.sign_in(secret("documents"))
    assert (reply.status, browser.cookies) == (403, {})
    assert b"opens health documents, and no page" in reply.body


def test_without_tokens_pages_are_for_this_machine_and_take_no_form(warehouse: tuple[Path, Path]) -> None:
    path, targets = warehouse
    with served(path, pages=True, targets=targets) as running:
        browser = Browser(running)
        body = browser.page("/ui/silences")
        assert "Without tokens pages change nothing" in body and 'method="post"' not in body
        assert browser.post("/ui/silences", {"agents": "fine"}).status == 401
        assert browser.sign_in("").status == 401
    with served(path, pages=True, targets=targets, allowed_hosts="health.example") as running:
        assert b"Pages are for who is on the same machine" in Browser(running).get("/").body


# -- forms --


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://127.0.0.1:1", "http://127.0.0.1", "127.0.0.1", ""]
)
def test_a_form_of_another_origin_is_refused(server: Served, origin: str | None) -> None:
    browser = Browser(server)
    assert browser.post("/ui/sign-in", {"token": secret("read")}, Origin=origin).status == 403
    assert browser.cookies == {}


def test_a_form_that_the_browser_calls_foreign_is_refused(server: Served) -> None:
    for site in ("cross-site", "same-site", "none"):
        assert Browser(server).post("/ui/sign-in", {"token": "x"}, **{"Sec-Fetch-Site": site}).status == 403


@pytest.mark.parametrize(
    ("origin", "host", "listed", "scheme", "is_same"),
    [
        (b"https://health.example", b"127.0.0.1:8080", "health.example", "http", True),
        (b"https://health.example:9999", b"127.0.0.1:8080", "health.example", "http", False),
        (b"https://other.example", b"127.0.0.1:8080", "*", "http", False),
        (b"HTTP://LocalHost:8080", b"localhost:8080", "", "http", True),
        (b"http://localhost:8080", b"localhost:8080", "", "https", False),
        (b"file://localhost:8080", b"localhost:8080", "", "http", False),
    ],
)
def test_a_form_comes_from_the_same_name_and_port_or_a_name_of_the_operator(
    origin: bytes, host: bytes, listed: str, scheme: str, is_same: bool
) -> None:
    headers = [(b"origin", origin), (b"host", host)]
    assert AllowedHosts("127.0.0.1", listed).is_same_origin(headers, scheme) is is_same
    assert not AllowedHosts("127.0.0.1", listed).is_same_origin([*headers, (b"origin", origin)], scheme)


@pytest.mark.parametrize("csrf", ["", "x", "é", None])
def test_a_form_without_what_its_session_gave_it_changes_nothing(server: Served, csrf: str | None) -> None:
    browser = signed_in(server, "operate")
    of_another = signed_in(server, "operate").csrf()
    for given in (csrf, of_another):
        fields = {} if given is None else {"csrf": given}
        assert browser.post("/ui/sign-out", fields).status == 403
        assert browser.post("/ui/silences/end", {**fields, "silence_id": "x"}).status == 403
    assert browser.get("/").status == 200, "still signed in"


def test_a_read_token_changes_nothing(server: Served) -> None:
    browser = signed_in(server)
    fields = {"csrf": browser.csrf(), "agents": "fine", "until": "1h", "reason": "why"}
    reply = browser.post("/ui/silences", fields)
    assert (reply.status, b"role operate" in reply.body) == (403, True)
    assert "<textarea" not in browser.page("/ui/silences")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("Content-Length: 9", 415),
        (f"Content-Type: {FORM}", 411),
        (f"Content-Type: {FORM}\r\nTransfer-Encoding: chunked", 411),
        (f"Content-Type: {FORM}\r\nContent-Length: {MOST_FORM_BYTES + 1}", 413),
        (f"Content-Type: {FORM}\r\nContent-Length: 99999999999999", 413),
        (f"Content-Type: {FORM}\r\nContent-Length: 9\r\nContent-Encoding: gzip", 415),
        ("Content-Type: application/json\r\nContent-Length: 9", 415),
        ("Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 9", 415),
    ],
)
def test_a_body_that_is_no_small_form_is_refused_unread(server: Served, head: str, status: int) -> None:
    origin = f"Host: 127.0.0.1:{server.port}\r\nOrigin: http://127.0.0.1:{server.port}\r\n"
    answer = server.send(f"POST /ui/sign-in HTTP/1.1\r\n{origin}{head}\r\n\r\n".encode())
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer
    assert b"connection: close" in answer


@pytest.mark.parametrize("body", [b"\xff", b"token=%ff", b"a=b&" * 101])
def test_a_form_that_is_no_text_is_refused(server: Served, body: bytes) -> None:
    headers = {"Content-Type": FORM, "Origin": Browser(server).origin}
    assert server.ask("/ui/sign-in", "POST", headers, body=body).status == 400


def test_a_form_that_does_not_come_is_not_waited_for(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("health_assets.apps.serving.forms.FORM_TIMEOUT_S", 0.2)
    head = f"POST /ui/sign-in HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nOrigin: http://127.0.0.1:{server.port}\r\n"
    answer = server.send(f"{head}Content-Type: {FORM}\r\nContent-Length: 9\r\n\r\ntoken".encode())
    assert answer.startswith(b"HTTP/1.1 408 ")
    with socket.create_connection(("127.0.0.1", server.port)) as gone:
        gone.sendall(f"{head}Content-Type: {FORM}\r\nContent-Length: 9\r\n\r\ntok".encode())
    assert server.ask("/livez").status == 200


@pytest.mark.parametrize(
    "path", ["/", "/ui/incidents", "/agents", "/ui/sign-in/", "/ui/%73ign-in", "/ui/static/pages.css"]
)
def test_other_addresses_take_no_form(server: Served, path: str) -> None:
    reply = Browser(server).post(path, {"token": secret("read")})
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


def test_what_only_takes_forms_cannot_be_looked_at(server: Served) -> None:
    for path in ("/ui/sign-out", "/ui/silences/end"):
        assert (server.ask(path).status, server.ask(path).headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example", "https://evil.example", "/\\evil.example", "/ui/\\evil", "/ui//evil.example", "javascript:alert(1)",
        "/ui/../../evil", "/ui/%2F%2fevil", "/ui/x\r\nSet-Cookie: a=b", "/agents", "/docs", "", "ui/x", "/ui/sign-in?next=/", "/ui/sign-out",
        "/ui/" + "x" * 3000, "/ui/é",
    ],
)  # fmt: skip
def test_signing_in_leads_to_no_other_place_than_a_page(server: Served, target: str) -> None:
    assert own_page(target) == "/"
    browser = signed_in(server)
    reply = browser.post("/ui/sign-out", {"csrf": browser.csrf(), "next": target})
    assert (reply.status, reply.headers["location"]) == (303, "/")


def test_pages_of_this_server_are_where_one_may_want_to_go() -> None:
    for target in ("/", "/?state=degraded", "/ui/agents/a%2Fb?hour=2026-06-07T13", "/ui/incidents?q=//x"):
        assert own_page(target) == target


def test_no_log_tells_a_token_or_a_session(warehouse: tuple[Path, Path], tmp_path: Path) -> None:
    path, targets = warehouse
    log = tmp_path / "access.jsonl"
    with served(
        path, pages=True, targets=targets, tokens=kept_as_json(SECRETS["read"][1]), access_log=str(log)
    ) as running:
        browser = Browser(running)
        browser.sign_in(secret("read"))
        browser.page("/ui/incidents")
        [session] = browser.cookies.values()
    told = log.read_text()
    assert secret("read") not in told and session not in told
    lines = [json.loads(line) for line in told.splitlines()]
    assert ("read", "/ui/incidents") in {(line["who"], line["path"]) for line in lines}
