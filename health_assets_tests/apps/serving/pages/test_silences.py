"""Silences on pages: which there are, what a new one would silence, and forms that a process of its own carries out."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from health_assets.apps.alerts.silencing import Silences
from health_assets.apps.serving.pages import changing
from health_assets.apps.serving.tokens import new_token
from health_assets.core.hours import HOUR
from health_assets.warehouse.store import Warehouse
from health_assets_tests.apps.test_serving_auth import kept_as_json
from health_assets_tests.support.browsers import Browser
from health_assets_tests.support.incidents_made import make_warehouse
from health_assets_tests.support.serving_made import PATIENCE_S, Served, fill, readers_in_this_process, served

TOKENS = {
    "operate": new_token("olga", "operate"),
    "read": new_token("rita", "read"),
    "ours": new_token("otto", "operate", ["ours"]),
}
NOW = datetime.now(UTC)


@dataclass
class World:
    """A server with silences, and browsers that are signed in."""

    path: Path
    audit: Path
    server: Served
    browsers: dict[str, Browser]

    @property
    def operator(self) -> Browser:
        return self.browsers["operate"]

    def silences(self) -> Silences:
        return Silences(Warehouse(str(self.path), lock_timeout_s=PATIENCE_S))

    def count(self) -> int:
        with Warehouse(str(self.path), lock_timeout_s=PATIENCE_S).read() as session:
            [(count,)] = session.query("SELECT count(*) FROM alert_silences")
        return count

    def lines(self) -> list[dict]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


def row(silence_id: str, starts_h: float, ends_h: float, **columns: object) -> dict:
    return {
        "silence_id": silence_id, "agents": '["crawler*"]', "rules": "[]", "starts_at": NOW + starts_h * HOUR, "ends_at": NOW + ends_h * HOUR,
        "reason": f"why {silence_id}", "added_by": "olga", "added_at": NOW, "is_of_file": False, **columns,
    }  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("silences")
    path, targets = make_warehouse(folder)
    fill(
        path, NOW.replace(minute=0, second=0, microsecond=0), alert_silences=[
            row("active", -1, 5), row("of-file", -1, 50, is_of_file=True, rules='["floor"]', agents="[]"), row("planned", 5, 9),
            row("expired", -9, -5), row("ended", -9, 5, ended_at=NOW - HOUR), row("forgotten", -900, -800),
            row("personal", -1, 5, agents='["mine"]'), row("hostile", -1, 4, reason="<script>alert(1)</script>"),
        ],
    )  # fmt: skip
    audit = folder / "audit.jsonl"
    tokens = kept_as_json(*(kept for _, kept in TOKENS.values()))
    with readers_in_this_process(), served(path, pages=True, targets=targets, tokens=tokens, audit_log=audit) as server:
        server.wait_for_pages({"Authorization": f"Bearer {TOKENS['operate'][0]}"})
        browsers = {role: Browser(server) for role in TOKENS}
        for role, browser in browsers.items():
            assert browser.sign_in(TOKENS[role][0]).status == 303
        browsers["operate"].page("/ui/silences")
        yield World(path, audit, server, browsers)


def test_silences_are_listed_by_what_they_do_now(world: World) -> None:
    told = world.operator.get("/ui/silences?format=json").json
    ids = {place: {one["silence_id"] for one in told[place]} for place in ("active", "planned", "over")}
    assert ids == {
        "active": {"active", "of-file", "personal", "hostile"}, "planned": {"planned"}, "over": {"expired", "ended"},
    }  # fmt: skip
    by_id = {one["silence_id"]: one for one in told["active"]}
    assert by_id["active"]["open_incidents"] == 1
    assert by_id["of-file"]["open_incidents"] == 3, "every subject of the rule"
    page = world.operator.page("/ui/silences")
    assert "<script>alert" not in page and "&lt;script&gt;" in page
    assert f"{NOW - HOUR:%a %Y-%m-%d %H:%M}" in page, "people think in days of the week"
    assert page.count('action="/ui/silences/end"') == 4, "one for each that is not over and not of the file"


def test_silences_are_for_those_who_see_all_teams_and_those_of_personal_agents_for_operators(world: World) -> None:
    reply = world.browsers["ours"].get("/ui/silences")
    assert (reply.status, b"limited to some" in reply.body) == (404, True)
    told = world.browsers["read"].get("/ui/silences?format=json").json
    assert "personal" not in {one["silence_id"] for one in told["active"]}
    assert "<textarea" not in world.browsers["read"].page("/ui/silences")


@pytest.mark.parametrize(
    ("asked", "sentences"),
    [
        ("agents=crawler*&until=3h&reason=x", ["Matches <b>2</b> of 6 agents", "<b>1</b> open incident.", "3 h"]),
        ("agents=crawler*%0Afine", ["Matches <b>3</b> of 6 agents", "<b>2</b> open incidents."]),
        ("agents=nobody", ["Matches <b>0</b> of 6 agents", "<b>0</b> open incidents."]),
        ("agents=*", ["Matches <b>6</b> of 6 agents", "This silences every rule of every agent"]),
        ("rules=floor", ["Every subject of these rules", "open incidents."]),
        ("agents=fine&until=then", ["until: must be a moment like"]),
        ("agents=fine&until=200d&reason=x", ["It lasts more than 90 days"]),
    ],
)
def test_a_preview_says_what_a_silence_would_silence_and_changes_nothing(
    world: World, asked: str, sentences: list[str]
) -> None:
    before = world.path.read_bytes()
    shown = world.operator.page(f"/ui/silences?{asked}")
    for sentence in sentences:
        assert sentence in shown
    assert world.path.read_bytes() == before


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"agents": "fine", "until": "3h"},
        {"agents": "fine", "until": "3h", "reason": " "},
        {"agents": "fine", "until": "", "reason": "x"},
        {"agents": "fine", "until": "9999w", "reason": "x"},
        {"agents": "fine", "until": "2001-01-01", "reason": "x"},
        {"agents": "fine", "until": "0001-01-01T00:00+14:00", "reason": "x"},
        {"agents": "fine", "start": "5h", "until": "3h", "reason": "x"},
        {"agents": "fine", "until": "3h", "reason": "x" * 501},
        {"agents": "\n".join(f"a{number}" for number in range(101)), "until": "3h", "reason": "x"},
        {"agents": "fine\x00", "until": "3h", "reason": "x"},
        {"agents": "fine", "until": "3h", "reason": "\x1b[31m"},
        {"agents": "fine\u202e", "until": "3h", "reason": "x"},
        {"rules": ["floor", "<script>"], "until": "3h", "reason": "x"},
        {"agents": "*", "until": "3h", "reason": "x"},
        {"agents": "[a-z]*\n<*", "until": "3h", "reason": "x"},
    ],
)  # fmt: skip
def test_a_silence_that_cannot_be_is_refused_in_a_sentence_and_the_form_keeps_what_was_typed(
    world: World, fields: dict
) -> None:
    reply = world.operator.post("/ui/silences", {"csrf": world.operator.csrf(), **fields})
    body = reply.body.decode()
    assert reply.status == 422 and 'role="alert"' in body, body
    assert "Try again" not in body
    assert "<script>" not in body
    if fields.get("reason") == "x":
        assert 'name="reason" value="x"' in body


def test_an_operator_of_some_teams_changes_nothing(world: World) -> None:
    browser = world.browsers["ours"]
    fields = {"csrf": browser.csrf("/ui/incidents"), "agents": "crawler-1", "until": "3h", "reason": "x"}
    assert browser.post("/ui/silences", fields).status == 403


def test_a_silence_is_added_and_ended_and_shows_at_once(world: World) -> None:
    browser = world.operator
    fields = {
        "csrf": browser.csrf(),
        "agents": "crawler-2",
        "rules": ["floor", "drop"],
        "start": "1h",
        "until": "3h",
        "reason": "a deploy",
    }
    reply = browser.post("/ui/silences", fields)
    address, _, silence_id = reply.headers["location"].partition("=")
    assert (reply.status, address) == (303, "/ui/silences?done"), reply.body
    [kept] = [one for one in world.silences().listed() if one.silence_id == silence_id]
    assert (kept.agents, kept.rules, kept.reason, kept.added_by) == (
        ("crawler-2",),
        ("floor", "drop"),
        "a deploy",
        "olga",
    )
    assert (kept.ends_at - kept.starts_at).total_seconds() == 7200
    shown = browser.page(reply.headers["location"])
    assert "Done." in shown and "a deploy" in shown
    told = browser.get("/ui/silences?format=json").json
    assert silence_id in {one["silence_id"] for one in told["planned"]}

    reply = browser.post("/ui/silences/end", {"csrf": browser.csrf(), "silence_id": silence_id})
    assert (reply.status, reply.headers["location"]) == (303, f"/ui/silences?done={silence_id}")
    assert silence_id not in {one.silence_id for one in world.silences().listed() if one.ended_at is None}
    told = browser.get("/ui/silences?format=json").json
    assert {one["silence_id"]: one["state"] for one in told["over"]}[silence_id] == "ended"
    noted = [(line["what"], line.get("asked", {}).get("by"), line.get("outcome")) for line in world.lines()[-4:]]
    assert noted == [
        ("page: alerts silence", "olga", None), ("page: alerts silence", None, "done"),
        ("page: alerts unsilence", "olga", None), ("page: alerts unsilence", None, "done"),
    ]  # fmt: skip


@pytest.mark.parametrize("silence_id", ["of-file", "ended", "expired", "nothing", "", "\x00", "x" * 5000])
def test_what_cannot_be_ended_is_said(world: World, silence_id: str) -> None:
    reply = world.operator.post("/ui/silences/end", {"csrf": world.operator.csrf(), "silence_id": silence_id})
    assert (reply.status, b'role="alert"' in reply.body) == (409, True)


def test_what_was_over_before_the_history_knew_is_said_and_nobody_is_told_of_a_fault(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    [kept] = [one for one in world.silences().listed() if one.silence_id == "expired"]
    before = [replace(kept, ends_at=NOW + HOUR)]
    monkeypatch.setattr(changing, "known_silences", lambda history: before)
    faults = len(world.server.faults)
    reply = world.operator.post("/ui/silences/end", {"csrf": world.operator.csrf(), "silence_id": "expired"})
    body = reply.body.decode()
    assert (reply.status, f"The silence expired is over since {kept.ends_at:%Y-%m-%d %H:%M} UTC." in body) == (
        409,
        True,
    )
    assert "Try again" not in body and "cannot be written" not in body
    assert len(world.server.faults) == faults


def test_a_busy_warehouse_is_said_plainly_and_others_are_answered_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "PATIENCE_S", 0.2)
    browser = world.operator
    fields = {"csrf": browser.csrf(), "agents": "crawler-2", "until": "3h", "reason": "a deploy"}
    before = world.count()
    with Warehouse(str(world.path), lock_timeout_s=PATIENCE_S).write():
        reply = browser.post("/ui/silences", fields)
        assert world.server.ask("/agents/fine/.well-known/agent-health").status == 200
    body = reply.body.decode()
    assert reply.status == 503
    assert "The warehouse is busy" in body and "Nothing has been changed." in body and "Try again" in body
    for name in ("agents", "until", "reason"):
        assert f'<input type="hidden" name="{name}" value="{fields[name]}">' in body
    assert world.count() == before
    assert world.lines()[-1]["outcome"] == "failed"


def test_a_change_that_cannot_be_noted_is_not_made(world: World) -> None:
    kept, browser = world.audit.read_bytes(), world.operator
    world.audit.unlink()
    world.audit.mkdir()
    try:
        before = world.count()
        reply = browser.post(
            "/ui/silences", {"csrf": browser.csrf(), "agents": "crawler-2", "until": "3h", "reason": "x"}
        )
        assert (reply.status, b"cannot be noted" in reply.body) == (503, True)
        assert str(world.audit) not in reply.body.decode()
        assert world.count() == before
    finally:
        world.audit.rmdir()
        world.audit.write_bytes(kept)
