"""Incidents on pages: what is told, in which order, and who sees which."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from health_assets.apps.alerts.outbox import count_waiting, note_judged
from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.history.exporter import fill
from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.ownership import Ownership
from health_assets.apps.serving.pages.agent_curves import incidents_of
from health_assets.apps.serving.pages.fleet_page import Wanted as WantedFleet
from health_assets.apps.serving.pages.fleet_page import fleet_page
from health_assets.apps.serving.pages.incident_rows import seen_incidents
from health_assets.apps.serving.pages.incidents_page import Wanted, _by_day, incident_page, incidents_page
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR
from health_assets.core.settings import Settings
from health_assets.core.targets import load_targets
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.incidents_made import AGENTS, NEWEST, incident, make_warehouse, notice
from health_assets_tests.support.serving_made import Served, readers_in_this_process, score, served, state
from health_assets_tests.support.serving_made import fill as fill_tables

FULL = AccessScope(is_full=True)
OURS = AccessScope(teams=frozenset({"ours"}))
FRAME = {
    "signed_in": None, "csrf": None, "has_tokens": False, "has_alerts": False, "target": "/", "is_led_here": False, "missing": 0, "page_name": "incidents",
}  # fmt: skip
MakeLook = Callable[..., ScopedHistory]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_warehouse(tmp_path_factory.mktemp("incidents"))


@pytest.fixture(scope="module")
def look(world: tuple[Path, Path]) -> MakeLook:
    return looks(*world)


def looks(path: Path, targets: Path) -> MakeLook:
    folder = path.with_name("history")
    while fill(Settings(warehouse=str(path)), folder, Warehouse(str(path)))["missing"]:
        pass  # one filling stops after a few seconds
    history, ownership = History(folder), Ownership(load_targets(targets))

    def made(view: AccessScope = AccessScope(), **changes: Any) -> ScopedHistory:  # noqa: B008, frozen
        plain = ScopedHistory(
            history=history, hour=NEWEST, view=view, ownership=ownership, now=NEWEST + 1.5 * HOUR,
            late_after=timedelta(minutes=90), is_newest=True,
        )  # fmt: skip
        return replace(plain, **changes)

    return made


@pytest.fixture(scope="module")
def server(world: tuple[Path, Path]) -> Iterator[Served]:
    path, targets = world
    with readers_in_this_process(), served(path, pages=True, targets=targets) as running:
        running.wait_for(lambda _: running.ask("/ui/incidents").status == 200)
        yield running


def ids(page: Page) -> list[str]:
    return [one["incident_id"] for one in page.data["listed"]]


def html(page: Page, look: ScopedHistory) -> str:
    return page.written("html", {**FRAME, **look.frame()})[0].decode()


def test_open_incidents_come_first_the_worst_and_latest_before_the_others(look: MakeLook) -> None:
    page = incidents_page(look(FULL), Wanted())
    assert ids(page) == [
        "late", "open-floor", "of-check", "of-model", "of-theirs", "open-drop", "hostile", "of-mine", "over-floor",
    ]  # fmt: skip
    assert (page.data["open"], page.data["over"]) == (8, 1)
    assert page.data["open_by_severity"] == {"critical": 2, "warning": 4, "info": 2}
    assert ids(incidents_page(look(FULL), Wanted(days=30)))[-2:] == ["over-floor", "long-over"]


def test_what_is_told_is_what_the_warehouse_holds(look: MakeLook, world: tuple[Path, Path]) -> None:
    told = {one["incident_id"]: one for one in incidents_page(look(FULL), Wanted(days=30)).data["listed"]}
    with Warehouse(str(world[0])).read() as session:
        rows = session.query("SELECT incident_id, rule, subject_id, severity, opened_at, closed_at, reason FROM alerts")
    assert {row[0] for row in rows} == set(told)
    for row in rows:
        one = told[row[0]]
        assert row == tuple(
            one[name] for name in ("incident_id", "rule", "subject_id", "severity", "opened_at", "closed_at", "reason")
        )
    assert [loss["lost"] for loss in told["open-floor"]["losses"]] == [14.5]


def test_an_incident_says_who_was_told_and_who_was_not_and_why(look: MakeLook) -> None:
    page = incident_page(look(), "open-floor")
    assert [(one["channel"], one["state"], one["last_error"]) for one in page.data["deliveries"]] == [
        ("chat", "delivered", None), ("pager", "failed", "it answered 503"),
    ]  # fmt: skip
    [other] = page.data["others"]
    assert other["incident_id"] == "over-floor"
    shown = html(page, look())
    for text in ("14.5", "46% succeeded, 95% expected", "run-7", "it answered 503", 'href="/ui/agents/crawler-1"'):
        assert text in shown
    assert "Silence this" not in shown
    assert "agents=crawler-1#new" in html(page, look(FULL, may_submit_forms=True))
    states = {"open-drop": "waiting", "over-floor": "silenced"}
    assert {one: incident_page(look(), one).data["deliveries"][0]["state"] for one in states} == states


def test_what_waits_is_counted_by_channel(look: MakeLook) -> None:
    assert incidents_page(look(), Wanted()).data["undelivered"] == [
        {"channel": "chat", "notices": 1, "last_error": None},
        {"channel": "pager", "notices": 1, "last_error": "it answered 503"},
        {"channel": "theirs-only", "notices": 1, "last_error": "it answered 500"},
    ]


def test_notices_of_an_incident_that_a_silence_covers_do_not_wait(tmp_path: Path) -> None:
    path = tmp_path / "health.duckdb"
    fill_tables(path, NEWEST, agent_health=[score("fine")], agent_health_state=[state("fine")])
    silenced = {"silenced_by": "0a1b2c3d"}
    incidents = [
        incident("loud", "fine", rule="drop"), incident("silenced", "fine", **silenced),
        incident("told again", "fine", rule="budget", unsilenced_at=NEWEST, **silenced),
    ]  # fmt: skip
    notices = [notice(one, "chat", last_error="it answered 503") for one in ("loud", "silenced", "told again")]
    fill_tables(path, NEWEST, alerts=incidents, alert_deliveries=notices)
    targets = tmp_path / "targets.yaml"
    targets.write_text("{}")
    seen = looks(path, targets)()
    page = incidents_page(seen, Wanted())
    assert page.data["undelivered"] == [{"channel": "chat", "notices": 2, "last_error": "it answered 503"}]
    with Warehouse(str(path)).read() as session:
        assert count_waiting(session) == {"chat": (2, "it answered 503")}, "as the commands count"
    states = {one["incident_id"]: one["deliveries"][0]["state"] for one in page.data["listed"]}
    assert states == {"loud": "failed", "silenced": "silenced", "told again": "failed"}


def test_days_are_counted_where_no_list_of_time_zones_is(look: MakeLook) -> None:
    """A zone that no machine knows is what UTC is on one without such a list."""
    rows = seen_incidents(look(FULL))
    there = pa.table({name: rows.column(name) for name in ("severity",)})
    there = there.append_column("opened_at", rows.column("opened_at").cast(pa.timestamp("us", "No/Where")))
    assert _by_day(there, look().now) == incidents_page(look(FULL), Wanted()).data["days"]


def test_an_agents_page_shows_the_incidents_that_the_page_of_incidents_shows(look: MakeLook) -> None:
    for view in (AccessScope(), FULL, OURS):
        for agent_id in AGENTS:
            if look(view).sees(agent_id):
                on_its_page = {one["incident_id"] for one in incidents_of(look(view), agent_id)}
                assert on_its_page == set(ids(incidents_page(look(view), Wanted(agent=agent_id, days=30))))
    assert {one["incident_id"] for one in incidents_of(look(FULL), "crawler-1")} == {"open-floor", "over-floor"}


def test_what_opened_while_an_agent_was_somebodys_own_is_for_operators(tmp_path: Path) -> None:
    path = tmp_path / "health.duckdb"
    fill_tables(path, NEWEST, agent_health=[score("fine")], agent_health_state=[state("fine")])
    fill_tables(path, NEWEST, alerts=[incident("then", "fine", is_personal=True), incident("now", "fine", rule="drop")])
    targets = tmp_path / "targets.yaml"
    targets.write_text("{}")
    look = looks(path, targets)
    for view, seen in ((AccessScope(), {"now"}), (FULL, {"then", "now"})):
        assert {one["incident_id"] for one in incidents_of(look(view), "fine")} == seen
        assert set(ids(incidents_page(look(view), Wanted()))) == seen


def test_incidents_of_a_personal_agent_and_of_models_that_may_be_its_alone_are_for_operators(look: MakeLook) -> None:
    assert {"of-mine", "of-model"} & set(ids(incidents_page(look(), Wanted(days=30)))) == set()
    assert {"of-mine", "of-model"} <= set(ids(incidents_page(look(FULL), Wanted())))
    with pytest.raises(HealthAssetsError, match="no incident of this id"):
        incident_page(look(), "of-mine")


def test_who_is_of_a_team_sees_incidents_of_its_agents_alone(look: MakeLook) -> None:
    page = incidents_page(look(OURS), Wanted(days=30))
    assert set(ids(page)) == {"open-floor", "open-drop", "over-floor", "long-over", "hostile"}
    assert sum(day[severity] for day in page.data["days"] for severity in ("critical", "warning", "info")) == 5
    assert [one["channel"] for one in page.data["undelivered"]] == ["chat", "pager"]
    for hidden in ("late", "of-theirs", "of-check", "of-model"):
        with pytest.raises(HealthAssetsError, match="no incident of this id"):
            incident_page(look(OURS), hidden)


def test_the_fleets_page_counts_the_same_open_incidents(look: MakeLook) -> None:
    for view in (AccessScope(), FULL, OURS):
        trust = fleet_page(look(view), WantedFleet()).data["trust"]
        page = incidents_page(look(view), Wanted())
        assert trust["open_incidents"] == page.data["open"]
        of_agents_first = sorted(page.data["listed"], key=lambda one: one["subject_kind"] != "agent")
        opened = [one["incident_id"] for one in of_agents_first if one["closed_at"] is None]
        assert [one["incident_id"] for one in trust["incidents"]] == opened[:5]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(text="CRAWLER"), {"open-floor", "over-floor"}),
        (Wanted(text="below 65", severity="warning"), {"open-drop", "of-theirs", "of-model", "of-check"}),
        (Wanted(rule="drop"), {"open-drop", "hostile"}),
        (Wanted(agent="crawler-1"), {"open-floor", "over-floor"}),
        (Wanted(agent="hours"), set()),
        (Wanted(text="nobody is called so"), set()),
        (Wanted(page=2), set()),
    ],
)
def test_incidents_are_found_by_text_rule_severity_and_agent(look: MakeLook, wanted: Wanted, found: set[str]) -> None:
    page = incidents_page(look(FULL), wanted)
    assert set(ids(page)) == found
    assert found or "No incident is open" in html(page, look(FULL)) or wanted.page > 1


def test_who_looks_back_sees_what_was_open_then(look: MakeLook) -> None:
    then = look(hour=NEWEST - 95 * HOUR, is_newest=False)
    page = incidents_page(then, Wanted(days=30))
    assert ids(page) == ["over-floor", "long-over"]
    [first, _] = page.data["listed"]
    assert (first["is_open"], first["closed_at"], first["recovery"], first["deliveries"]) == (True, None, None, [])
    assert page.data["open"] == 1


def test_a_bar_for_each_day_is_as_high_as_its_incidents(look: MakeLook) -> None:
    page = incidents_page(look(FULL), Wanted())
    days = page.data["days"]
    assert len(days) == 30 and days[-1]["day"] == look().now.date().isoformat()
    assert sum(sum(day[severity] for severity in ("critical", "warning", "info")) for day in days) == 10
    heights = [float(bar["height"]) for bar in page.shown["bars"]]
    assert heights and all(0 < height <= 48 for height in heights)


def test_names_from_logs_are_text(look: MakeLook) -> None:
    for page in (incidents_page(look(), Wanted()), incident_page(look(), "hostile")):
        shown = html(page, look())
        assert "<script>alert" not in shown
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
        assert "/ui/agents/%3Cscript%3Ealert%281%29%3C%2Fscript%3E" in shown


def test_pages_have_twins_for_programs(server: Served) -> None:
    told = server.ask("/ui/incidents?format=json&severity=critical").json
    assert [one["incident_id"] for one in told["listed"]] == ["late", "open-floor", "over-floor"]
    rows = list(csv.DictReader(io.StringIO(server.ask("/ui/incidents?format=csv").body.decode())))
    assert [row["incident_id"] for row in rows][:2] == ["late", "open-floor"]
    rows = list(csv.DictReader(io.StringIO(server.ask("/ui/incidents/open-floor?format=csv").body.decode())))
    assert [row["channel"] for row in rows] == ["chat", "pager"]
    assert server.ask("/ui/incidents/open-floor?format=json").json["incident"]["rule"] == "floor"


def test_what_is_not_there_is_said_in_a_sentence(server: Served) -> None:
    for path in ("/ui/incidents/nothing", "/ui/incidents/of-mine", "/ui/incidents/%00", "/ui/incidents/" + "x" * 3000):
        reply = server.ask(path)
        assert (reply.status, b"There is no incident of this id here" in reply.body) == (404, True)
    assert server.ask("/ui/incidents?days=8").status == 422


def test_where_nobody_judges_hours_the_page_says_how_to_begin(tmp_path: Path) -> None:
    path = tmp_path / "health.duckdb"
    fill_tables(path, NEWEST, agent_health=[score("fine")], agent_health_state=[state("fine")])
    targets = tmp_path / "targets.yaml"
    targets.write_text("{}")
    look = looks(path, targets)()
    shown = html(incidents_page(look, Wanted()), look)
    assert "HEALTH_ALERTS" in shown and "docs/alerts.md" in shown
    with Warehouse(str(path)).write() as session:
        note_judged(session, NEWEST, is_changed=False)
    look = looks(path, targets)()
    shown = html(incidents_page(look, Wanted()), look)
    assert "No incident is open." in shown and "HEALTH_ALERTS" not in shown


@pytest.mark.parametrize("alerts", [None, Path("alerts.yaml")])
def test_no_alerts_are_set_up_is_said_only_where_none_are(tmp_path: Path, alerts: Path | None) -> None:
    path = tmp_path / "health.duckdb"
    fill_tables(path, NEWEST, agent_health=[score("fine")], agent_health_state=[state("fine")])
    with readers_in_this_process(), served(path, pages=True, alerts=alerts) as server:
        server.wait_for(lambda _: server.ask("/ui/incidents").status == 200)
        for page in ("/", "/ui/agents/fine", "/ui/incidents"):
            shown = server.ask(page).body.decode()
            assert ("No alerts are set up" in shown) == (alerts is None), page
            assert ("Alerts are set up; no hour has been judged yet." in shown) == (alerts is not None), page


def test_a_storm_of_incidents_stays_a_page(tmp_path: Path) -> None:
    path = tmp_path / "health.duckdb"
    fill_tables(
        path, NEWEST, agent_health=[score(name) for name in AGENTS], agent_health_state=[state(name) for name in AGENTS]
    )
    fill_tables(path, NEWEST, alerts=[incident(f"id-{number:05}", f"agent-{number}") for number in range(3000)])
    targets = tmp_path / "targets.yaml"
    targets.write_text("{}")
    look = looks(path, targets)()
    page = incidents_page(look, Wanted(page=60))
    assert (page.data["open"], len(page.data["listed"]), page.shown["pages"]) == (3000, 50, 60)
    assert ids(page)[-1] == "id-02999"
    assert len(html(page, look)) < 120_000
    assert json.loads(page.written("json", {})[0])["open"] == 3000
