"""Silences and maintenance windows: nobody is told while they last, and nothing that still matters is lost."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from health_assets.apps.alerts.config import Alerts, Webhook, load_alerts
from health_assets.apps.alerts.delivering import deliver
from health_assets.apps.alerts.incidents import Incident, Judged
from health_assets.apps.alerts.outbox import CLOSED, OPENED, due_notices, keep, mark_delivered
from health_assets.apps.alerts.rules import RULES, Drop, Floor
from health_assets.apps.alerts.silences import Scope, SilenceWanted, moment_ahead
from health_assets.apps.alerts.silencing import Silences, apply_silences, sync_file_silences
from health_assets.apps.alerts.tick_runner import tick
from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.warehouse.store import Warehouse
from health_assets_tests.apps.test_alert_deliveries import closed, opened
from health_assets_tests.support.alerts_made import at, fill_hour, incidents, later, look, scored
from health_assets_tests.support.receivers import Receiver, receiver

NOW = datetime(2026, 6, 9, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "health.duckdb"))


@pytest.fixture
def silences(warehouse: Warehouse) -> Silences:
    return Silences(warehouse)


class Told:
    """A channel and the ticks that tell it."""

    def __init__(self, warehouse: Warehouse, hook: Receiver) -> None:
        self.warehouse = warehouse
        self.hook = hook
        self.alerts = Alerts(
            rules=tuple(rule() for rule in RULES.values()), channels={"hook": Webhook(type="webhook", url=hook.url)}
        )

    def tick(self, now: datetime, judged: Judged = Judged()) -> list[str]:  # noqa: B008, frozen
        """The notices of the channel: event and agent."""
        before = len(self.hook.bodies)
        with self.warehouse.write() as session:
            keep(session, judged, self.alerts, now)
            apply_silences(session, now)
        deliver(self.warehouse, self.warehouse, self.alerts, now, pause_s=0.01)
        return [f"{body['event']} {body['subject']['id']}" for body in self.hook.bodies[before:]]


def silenced(silences: Silences, until: datetime = NOW + DAY, **wanted: object) -> str:
    return silences.add(
        **{"agents": ["a"], "until": until, "reason": "it moves", "by": "ops", "now": NOW, **wanted}
    ).silence_id


# -- who is told -------------------------------------------------------------------------------------------------------


def test_a_silenced_agent_tells_nobody_and_the_others_are_told(warehouse: Warehouse, silences: Silences) -> None:
    name = silenced(silences)
    with receiver() as hook:
        told = Told(warehouse, hook)
        assert told.tick(NOW, Judged(opened=(opened("a"), opened("b")))) == ["opened b"]
        assert told.tick(NOW + HOUR) == []
    assert {one.subject_id: (one.silenced_by, one.is_silenced) for one in incidents(warehouse.path)} == {
        "a": (name, True), "b": (None, False),
    }  # fmt: skip


def test_an_incident_that_is_open_when_its_silence_expires_is_told_then_and_once(
    warehouse: Warehouse, silences: Silences
) -> None:
    name = silenced(silences)
    with receiver() as hook:
        told = Told(warehouse, hook)
        told.tick(NOW, Judged(opened=(opened("a"),)))
        assert told.tick(NOW + DAY - timedelta(seconds=1)) == []
        assert told.tick(NOW + DAY) == ["opened a"]
        assert told.tick(NOW + DAY + HOUR) == []
        assert told.tick(NOW + DAY + 2 * HOUR, Judged(closed=(closed(opened("a")),))) == ["closed a"]
    assert hook.bodies[0]["silenced_by"] == name
    [incident] = incidents(warehouse.path)
    assert (incident.silenced_by, incident.unsilenced_at) == (name, NOW + DAY)


def test_an_incident_that_opens_and_ends_in_a_silence_is_never_told(warehouse: Warehouse, silences: Silences) -> None:
    name = silenced(silences)
    with receiver() as hook:
        told = Told(warehouse, hook)
        told.tick(NOW, Judged(opened=(opened("a"),)))
        assert told.tick(NOW + HOUR, Judged(closed=(closed(opened("a")),))) == []
        assert told.tick(NOW + 2 * DAY) == []
    [incident] = incidents(warehouse.path)
    assert incident.is_silenced
    with warehouse.read() as session:
        assert session.query("SELECT DISTINCT hushed_by FROM alert_deliveries") == [(name,)]


def test_what_is_over_by_the_tick_that_sees_the_silence_expire_is_not_told(
    warehouse: Warehouse, silences: Silences
) -> None:
    silenced(silences)
    with receiver() as hook:
        told = Told(warehouse, hook)
        told.tick(NOW, Judged(opened=(opened("a"),)))
        assert told.tick(NOW + DAY + HOUR, Judged(closed=(closed(opened("a")),))) == []


def test_the_end_of_an_incident_that_was_told_before_its_silence_is_told_after_it(
    warehouse: Warehouse, silences: Silences
) -> None:
    """A pager that rang would ring on for ever."""
    with receiver() as hook:
        told = Told(warehouse, hook)
        assert told.tick(NOW - HOUR, Judged(opened=(opened("a"),))) == ["opened a"]
        silenced(silences)
        assert told.tick(NOW + HOUR, Judged(closed=(closed(opened("a")),))) == []
        assert told.tick(NOW + DAY) == ["closed a"]
        assert told.tick(NOW + 2 * DAY) == []


def test_a_notice_that_waits_for_its_channel_is_silenced_from_the_moment_somebody_adds_a_silence(
    warehouse: Warehouse, silences: Silences
) -> None:
    with receiver(500, 500, 500) as hook:
        told = Told(warehouse, hook)
        told.tick(NOW - HOUR, Judged(opened=(opened("a"),)))
        hook.received.clear()
        silenced(silences)
        assert incidents(warehouse.path)[0].is_silenced, "before any tick"
        assert told.tick(NOW + HOUR) == []
        assert told.tick(NOW + DAY) == ["opened a"]


def test_a_silence_that_somebody_ends_lets_be_told_what_is_open(warehouse: Warehouse, silences: Silences) -> None:
    name = silenced(silences)
    with receiver() as hook:
        told = Told(warehouse, hook)
        told.tick(NOW, Judged(opened=(opened("a"),)))
        assert silences.end(name, NOW + HOUR).state(NOW + HOUR) == "ended"
        assert told.tick(NOW + HOUR) == ["opened a"]
    with pytest.raises(HealthAssetsError, match=f"the silence {name} is over since 2026-06-09 01:00 UTC"):
        silences.end(name, NOW + 2 * HOUR)
    with pytest.raises(HealthAssetsError, match="there is no silence nobody"):
        silences.end("nobody", NOW)


def test_a_maintenance_window_covers_from_its_start_on(warehouse: Warehouse, silences: Silences) -> None:
    silenced(silences, start=NOW + HOUR)
    with receiver() as hook:
        told = Told(warehouse, hook)
        assert told.tick(NOW, Judged(opened=(opened("a"),))) == ["opened a"]
        assert [one.state(NOW) for one in silences.listed(NOW)] == ["planned"]
        assert silences.active(NOW) == []
        assert told.tick(NOW + HOUR, Judged(opened=(opened("a", 3),))) == []
        assert len(silences.active(NOW + HOUR)) == 1


def test_of_two_silences_the_longer_one_decides(warehouse: Warehouse, silences: Silences) -> None:
    silenced(silences, until=NOW + HOUR)
    longer = silenced(silences, until=NOW + DAY, agents=["*"])
    with receiver() as hook:
        told = Told(warehouse, hook)
        assert told.tick(NOW, Judged(opened=(opened("a"),))) == []
        assert incidents(warehouse.path)[0].silenced_by == longer
        assert told.tick(NOW + 2 * HOUR) == []


@pytest.mark.parametrize(
    ("wanted", "is_covered"),
    [
        ({"agents": ["crawler*"]}, True),
        ({"agents": ["CRAWLER*"]}, False),
        ({"agents": ["x", "crawler-1"], "rules": ["floor"]}, True),
        ({"agents": ["crawler*"], "rules": ["drop"]}, False),
        ({"rules": ["floor", "drop"]}, True),
    ],
)
def test_a_silence_covers_patterns_of_agents_and_names_of_rules(wanted: dict, is_covered: bool) -> None:
    silence = SilenceWanted(until=NOW + DAY, reason="r", by="b", **wanted).silence_of_caller(NOW)
    assert silence.covers(opened("crawler-1")) is is_covered


@pytest.mark.parametrize(
    ("scope", "known", "is_of_all"),
    [
        (Scope(agents=("*",), rules=()), [], True),
        (Scope(agents=("a*", "b"), rules=()), ["a", "ab", "b"], True),
        (Scope(agents=("a*",), rules=()), ["a", "b"], False),
        (Scope(agents=("a*",), rules=()), [], False),
        (Scope(agents=("*",), rules=("floor",)), ["a"], False),
    ],
)
def test_a_silence_of_all_that_there_is_to_say_is_known_as_one(scope: Scope, known: list[str], is_of_all: bool) -> None:
    assert scope.is_of_every_agent(known) is is_of_all


def test_a_silence_of_every_agent_leaves_the_pipeline_itself_loud() -> None:
    silence = SilenceWanted(agents="*", until=NOW + DAY, reason="r", by="b").silence_of_caller(NOW)
    late = opened("hours", rule="hour_late", subject_kind="pipeline")
    assert not silence.covers(late)
    assert SilenceWanted(rules=["hour_late"], until=NOW, reason="r", by="b").silence_of_caller(NOW).covers(late)


def test_hours_are_judged_in_a_silence_as_without_one(tmp_path: Path) -> None:
    """Two warehouses with one history: their incidents differ by the silence alone."""
    found = []
    for name in ("loud", "silent"):
        path = tmp_path / f"{name}.duckdb"
        if name == "silent":
            Silences(Warehouse(str(path))).add(agents=["*"], until="30d", reason="r", by="b")
        for hour, score in enumerate([90.0, 50.0, 90.0]):
            fill_hour(path, at(hour), [scored("a", score)])
            look(path, [Floor(good_hours=1), Drop()])
        found.append([(one.incident_id, one.opened_at, one.closed_at, one.recovery) for one in incidents(path)])
        assert all(one.is_silenced == (name == "silent") for one in incidents(path))
    assert found[0] == found[1]
    assert len(found[0]) == 2


# -- the file ----------------------------------------------------------------------------------------------------------

FILE = """
channels: {{c: {{type: webhook, url: '{url}'}}}}
rules: {{hour_late: off}}
silences:
{silences}
"""
ONE = "- {agents: 'a*', until: 2090-01-01, reason: the move, by: ops}"


def test_a_silence_of_the_file_is_in_force_while_it_stands_there(tmp_path: Path) -> None:
    path, file = tmp_path / "health.duckdb", tmp_path / "alerts.yaml"
    fill_hour(path, at(0), [scored("a", 10.0)])
    silences = Silences(Warehouse(str(path)))
    with receiver() as hook:

        def ticked(text: str) -> int:
            file.write_text(FILE.format(url=hook.url, silences=text))
            tick(Settings(warehouse=str(path)), load_alerts(file), Targets(), later())
            return len(hook.bodies)

        assert ticked(ONE) == ticked(ONE) == 0
        [silence] = silences.listed()
        assert (silence.agents, silence.reason, silence.added_by, silence.is_of_file) == (
            ("a*",),
            "the move",
            "ops",
            True,
        )
        with pytest.raises(HealthAssetsError, match="stands in the alerts file; take it out there"):
            silences.end(silence.silence_id)
        assert ticked("") == 1, "taken out, it covers no longer"
        assert ticked(ONE) == 1
        [again] = silences.listed(later())
        assert (again.silence_id, again.state(later())) == (silence.silence_id, "active")
        assert ticked("- {agents: a, until: 2020-01-01, reason: long ago, by: ops}") == 1
        assert len(silences.listed(later())) == 1, "one that was over before it was seen is none"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{agents: a}", "silences must be a list"),
        ("[a]", "silence 1 must be a mapping"),
        ("[{agents: a, reason: r, by: b}]", "silence 1: until: must be given"),
        ("[{agents: a, until: 3d, reason: r, by: b}]", "silence 1: until: must be a moment like 2026-12-02T06:00Z"),
        ("[{agents: a, until: 5, reason: r, by: b}]", "silence 1: until: must be a moment"),
        ("[{agents: a, until: 1999-01-01, reason: r, by: b}]", "silence 1: until: must be in the years 2000 to 2098"),
        ("[{until: 2026-12-01, reason: r, by: b}]", "silence 1: name agents, or rules, or both"),
        ("[{rules: flor, until: 2026-12-01, reason: r, by: b}]", "rules: 'flor' is no rule; there are failing_now"),
        ("[{agents: [''], until: 2026-12-01, reason: r, by: b}]", "agents: a name must not be blank"),
        ("[{agents: a, until: 2026-12-01, reason: ' ', by: b}]", "reason: must be said"),
        ("[{agents: a, until: 2026-12-01, reason: r, by: b, why: x}]", "why: unknown key"),
        ("[{agents: a, from: 2026-12-02, until: 2026-12-01, reason: r, by: b}]", "until must be later than from"),
    ],
)
def test_a_silence_that_cannot_be_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "alerts.yaml"
    file.write_text(f"silences: {text}", encoding="utf-8")
    with pytest.raises(HealthAssetsError) as caught:
        load_alerts(file)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_moments_are_read_as_people_write_them() -> None:
    noon = datetime(2026, 6, 9, 12, tzinfo=UTC)
    for text in ("2026-06-09T12:00Z", "2026-06-09 12:00", "2026-06-09T14:00+02:00", "12h", "720 min", "720m"):
        assert moment_ahead(text, NOW) == noon, text
    assert moment_ahead("2W", NOW) == NOW + 14 * DAY
    for text in ("soon", "", "3 months", "-3d", "9999w", "99999d"):
        with pytest.raises(ValueError, match="must be"):
            moment_ahead(text, NOW)


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A warehouse with an incident of one of three agents."""
    path = tmp_path / "health.duckdb"
    fill_hour(path, at(0), [scored("crawler-1", 10.0), scored("crawler-2", 90.0), scored("writer", 90.0)])
    look(path, [Floor()])
    return path


def said(path: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["alerts", *arguments, "--warehouse", str(path)])
    return done.exit_code, " ".join(done.output.split())


def test_the_command_says_what_a_silence_matches_before_it_adds_it_and_lists_and_ends_it(fleet: Path) -> None:
    code, told = said(fleet, "silence", "--agent", "crawler*", "--until", "3d", "--reason", "the move", "--by", "ops")
    [silence] = Silences(Warehouse(str(fleet))).active()
    assert code == 0
    assert "matches 2 of 3 agents: crawler-1, crawler-2" in told
    assert f"silence {silence.silence_id} is added." in told
    assert silence.added_by == "ops"
    code, told = said(fleet, "silences")
    assert f"{silence.silence_id} active" in told
    assert "every rule of crawler*" in told
    days = str((datetime.now(UTC) - at(0)).days + 2)
    code, told = said(fleet, "--days", days)
    assert "1 open (1 silenced)" in told
    assert f"by {silence.silence_id}: the move" in told
    code, told = said(fleet, "unsilence", silence.silence_id)
    assert (code, "(every rule of crawler*) is ended." in told) == (0, True)
    assert f"{silence.silence_id} ended" in said(fleet, "silences")[1], "it remains listed for a while"
    assert said(fleet, "silences", "--days", "0") == (0, "there is no silence")


def test_the_command_asks_again_before_every_agent_is_silenced(fleet: Path) -> None:
    wanted = ("silence", "--until", "1h", "--reason", "r")
    for pattern in ("*", "?*"):
        code, told = said(fleet, *wanted, "--agent", pattern)
        assert code == 1
        assert "matches 3 of 3 agents" in told
        assert "this tells nobody of any agent; say --yes where that is meant" in told
    assert Silences(Warehouse(str(fleet))).listed() == []
    assert said(fleet, *wanted, "--agent", "*", "--yes")[0] == 0
    assert said(fleet, *wanted, "--agent", "*", "--rule", "drop")[0] == 0


def test_the_command_warns_of_what_lasts_long_matches_nothing_or_comes_again_and_again(fleet: Path) -> None:
    wanted = ("silence", "--agent", "nobody", "--reason", "r")
    code, told = said(fleet, *wanted, "--until", "91d")
    assert code == 0
    assert "matches 0 of 3 agents" in told
    assert "warning: it lasts 91 days" in told
    assert "warning" not in said(fleet, *wanted, "--until", "90d")[1]
    assert "warning: it is number 3 of the same within 30 days" in said(fleet, *wanted, "--until", "1h")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--agent", "a", "--until", "soon"], "until: must be a moment like 2026-12-02T06:00Z, or how long from now"),
        (["--agent", "a", "--until", "2020-01-01"], "until: 2020-01-01 00:00 UTC is over already"),
        (["--agent", "a", "--until", "1d", "--from", "2d"], "until must be later than from"),
        (["--until", "1d"], "name agents, or rules, or both"),
        (["--rule", "flor", "--until", "1d"], "rules: 'flor' is no rule; there are failing_now, suspect_now"),
        (["--agent", "a", "--until", "1d", "--by", " "], "by: must be said"),
    ],
)
def test_a_silence_that_cannot_be_is_refused_in_one_sentence(fleet: Path, arguments: list[str], words: str) -> None:
    code, told = said(fleet, "silence", *arguments, "--reason", "r")
    assert code == 1
    assert told.startswith(f"health-assets: {words}")


def test_an_option_in_front_of_a_further_command_is_refused_since_it_would_not_be_heeded(fleet: Path) -> None:
    done = CliRunner().invoke(app, ["alerts", "--warehouse", str(fleet), "silences"])
    assert done.exit_code == 1
    assert "write --warehouse behind `alerts silences`" in done.output


# -- any history -------------------------------------------------------------------------------------------------------

TICKS = 6
AGENTS = ("a", "b")
spans = st.tuples(st.integers(0, TICKS - 1), st.integers(1, TICKS)).map(lambda one: (one[0], one[0] + one[1]))
silence_lists = st.lists(st.tuples(st.sampled_from([("a",), ("b",), ("*",)]), spans), max_size=3)
outcomes = st.fixed_dictionaries({agent: st.lists(st.booleans(), min_size=TICKS, max_size=TICKS) for agent in AGENTS})


def expected(states: list[bool], silenced: list[bool]) -> list[tuple[int, str]]:
    """The notices of an agent and their times, in plain Python, of whether it is bad and whether it is silenced at each tick."""
    told, is_open, is_heard, owed = [], False, False, 0
    for place in range(TICKS):
        was_open, is_open = is_open, states[place]
        if was_open and not is_open:
            owed, is_heard = owed + is_heard, False
        if silenced[place]:
            continue
        told += [(place, CLOSED)] * owed
        owed = 0
        if is_open and not is_heard:
            told.append((place, OPENED))
            is_heard = True
    return told


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return Warehouse(str(tmp_path_factory.mktemp("silences") / "health.duckdb"))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(outcomes=outcomes, wanted=silence_lists)
def test_what_is_told_is_what_would_be_told_without_what_was_silenced_and_with_what_outlived_it(
    shared: Warehouse, outcomes: dict[str, list[bool]], wanted: list
) -> None:
    alerts = Alerts(rules=(Floor(),), channels={"c": Webhook(type="webhook", url="http://127.0.0.1:1/")})
    file = [
        SilenceWanted(agents=agents, start=NOW + first * HOUR, until=NOW + last * HOUR, reason=f"r{number}", by="b")
        for number, (agents, (first, last)) in enumerate(wanted)
    ]
    told: dict[str, list] = defaultdict(list)
    with pytest.raises(ZeroDivisionError), shared.write() as session:  # so that nothing is left for the next history
        sync_file_silences(session, file, NOW)
        is_open: dict[str, Incident] = {}
        for place in range(TICKS):
            now = NOW + place * HOUR
            new = {agent: opened(agent, place) for agent in AGENTS if outcomes[agent][place] and agent not in is_open}
            over = [agent for agent in is_open if not outcomes[agent][place]]
            ended = tuple(closed(is_open.pop(agent)) for agent in over)
            keep(session, Judged(opened=tuple(new.values()), closed=ended), alerts, now)
            is_open |= new
            apply_silences(session, now)
            due = due_notices(session, "c", now, 100)
            mark_delivered(session, due, now)
            for notice in due:
                told[notice.incident.subject_id].append((place, notice.event))
        raise ZeroDivisionError
    for agent in AGENTS:
        silenced = [
            any(agent in agents or "*" in agents for agents, (first, last) in wanted if first <= place < last)
            for place in range(TICKS)
        ]
        assert told[agent] == expected(outcomes[agent], silenced), agent
