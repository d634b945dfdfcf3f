"""Periodic digests: each period's once, late rather than never, with what somebody would ask for."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from health_assets.apps.alerts.config import Alerts, Slack, Webhook, load_alerts
from health_assets.apps.alerts.digest_store import write_due_digest
from health_assets.apps.alerts.digest_texts import lines_of, title_of
from health_assets.apps.alerts.periodic import DAY, DigestSchedule
from health_assets.apps.alerts.rules import Floor
from health_assets.apps.alerts.silencing import Silences
from health_assets.apps.alerts.tick_runner import tick
from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR
from health_assets.core.settings import Settings
from health_assets.core.targets import AgentTargets, Targets
from health_assets.warehouse.store import Warehouse
from health_assets_tests.apps.test_alert_deliveries import deliver
from health_assets_tests.support.alerts_made import compared, drift, keep_hour, look, scored
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.receivers import receiver

DAILY = DigestSchedule(every="daily", at="07:30")
WEEKLY = DigestSchedule(every="weekly", at="07:30", weekday="monday")
DUE = datetime(2026, 6, 8, 7, 30, tzinfo=UTC)
"""A Monday; the logs begin on Sunday the 7th."""


# -- when --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", [DAILY, WEEKLY])
def test_a_digest_is_due_at_its_time_and_late_rather_than_never_but_not_when_it_is_long_gone(
    schedule: DigestSchedule,
) -> None:
    second = timedelta(seconds=1)
    assert schedule.due(None, DUE - second) is None or schedule is DAILY
    assert schedule.due(DUE - schedule.length, DUE - second) is None
    assert schedule.due(DUE - schedule.length, DUE) == DUE
    assert schedule.due(DUE - schedule.length, DUE + schedule.length / 2) == DUE
    assert schedule.due(DUE - schedule.length, DUE + schedule.length / 2 + second) is None
    assert schedule.due(DUE, DUE + schedule.length / 2) is None


def test_another_time_of_day_makes_no_second_digest_of_the_same_day() -> None:
    moved = DigestSchedule(every="daily", at="09:00")
    assert moved.due(DUE, DUE + 2 * HOUR) is None
    assert moved.due(DUE, DUE + 26 * HOUR) == DUE + timedelta(hours=25, minutes=30)


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(st.integers(1, 40 * 60), min_size=1, max_size=60), is_weekly=st.booleans())
def test_whenever_ticks_come_no_period_has_two_digests_and_each_that_could_has_one(
    steps: list[int], is_weekly: bool
) -> None:
    schedule = WEEKLY if is_weekly else DAILY
    now, last, written, could = DUE - DAY, None, [], set()
    for minutes in steps:
        now += timedelta(minutes=minutes)
        due_at = schedule.latest(now)
        assert due_at <= now < due_at + schedule.length
        if now - due_at <= schedule.length / 2:
            could.add(due_at)
        if (due := schedule.due(last, now)) is not None:
            written.append(due)
            last = due
    assert len(set(written)) == len(written)
    assert set(written) == could


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "digest must be a mapping"),
        ("{at: '07:30'}", "digest: every: must be given"),
        ("{every: hourly, at: '07:30'}", "digest: every: "),
        ("{every: daily}", "digest: at: must be given"),
        ("{every: daily, at: 25:00}", "digest: at: must be a time of day in UTC like 07:30"),
        ("{every: daily, at: 7}", "digest: at: must be a time of day"),
        ("{every: weekly, at: '07:30'}", "digest: a weekly digest names its weekday, and a daily one none"),
        ("{every: daily, at: '07:30', weekday: monday}", "a weekly digest names its weekday, and a daily one none"),
        ("{every: daily, at: '07:30', channels: nobody}", "digest: channels: one is not there; there are none"),
        ("{every: daily, at: '07:30', lines: 0}", "digest: lines: "),
        ("{every: daily, at: '07:30', to: x}", "digest: to: unknown key"),
    ],
)
def test_a_schedule_that_cannot_be_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "alerts.yaml"
    file.write_text(f"digest: {text}", encoding="utf-8")
    with pytest.raises(HealthAssetsError) as caught:
        load_alerts(file)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "minutes"), [("07:30", 450), ("17:30", 1050), ("'17:30'", 1050), ("1:00", 60)])
def test_a_time_of_day_needs_no_quotes(tmp_path: Path, text: str, minutes: int) -> None:
    file = tmp_path / "alerts.yaml"
    file.write_text(f"digest: {{every: daily, at: {text}}}", encoding="utf-8")
    digest = load_alerts(file).digest
    assert digest is not None
    assert digest.at.hour * 60 + digest.at.minute == minutes
    file.write_text("digest: off", encoding="utf-8")
    assert load_alerts(file).digest is None


# -- of what -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hours 0 to 30 of a small fleet, but hour 10; the last that should be there when the digest is due is 06:00."""
    path = tmp_path_factory.mktemp("digests") / "health.duckdb"
    with Warehouse(str(path)).write() as session:
        for hour in (0, 5, 6, *range(7, 10), *range(11, 31)):
            fell = 95.0 if hour < 20 else 70.0
            agents = [scored("fell", fell), scored("bad", 20.0), scored("good", 99.0), scored("mine", 1.0)]
            budget = {"agent_id": "bad", "budget_spent": 2.5, "burn_rate_1h": 3.0, "burn_rate_6h": 4.0}
            calm = {"agent_id": "good", "budget_spent": 0.1, "burn_rate_1h": 0.0, "burn_rate_6h": 0.0}
            check = {"asset": "executions", "expectation": "ids_are_new", "success": hour % 2 == 0}
            now = [
                {"agent_id": name, "verdict": verdict, "since": START + hour * HOUR, "executions_1h": 12,
                 "failures_1h": failures, "failed_in_a_row": failures, "failures_6h": failures, "executions_6h": 72,
                 "p_chance": 1e-9, "failing_threshold": 1e-4}
                for name, verdict, failures in (
                    ("bad", "failing", 12), ("fell", "suspect", 5), ("good", "ok", 0), ("mine", "failing", 12),
                )
            ]  # fmt: skip
            reason = f"status must be success or failure, not 'secret-{hour}'"
            rejected = {"source_file": "a.jsonl", "line_number": 1, "reason": reason, "lines": 2}
            fleet = {"health_score": 60.0, "agents": 4, "healthy": 1, "degraded": 1, "unhealthy": 2, "inactive": 0}
            releases = [
                compared("good", "better"),
                compared("bad", "worse"),
                compared("bad", "no_difference", "tokens"),
                compared("fell", "not_enough"),
                compared("mine", "worse"),
            ]
            keep_hour(
                session, START + hour * HOUR, agents, error_budget=[budget, calm], expectation_results=[check], agent_now=now,
                rejected_records=[rejected], system_health=[fleet], release_comparison=releases if hour == 20 else [],
            )  # fmt: skip
    look(path, [Floor()])
    return path


PERSONAL = Targets(agents={"mine": AgentTargets(personal=True)})


def alerts_to(**channels: Webhook | Slack) -> Alerts:
    return Alerts(rules=(Floor(),), channels=channels, digest=DAILY)


def test_a_digest_tells_the_worst_the_fallen_budgets_incidents_and_data(fleet: Path) -> None:
    settings = Settings(warehouse=str(fleet))
    with receiver() as hook:
        alerts = alerts_to(hook=Webhook(type="webhook", url=hook.url))
        Silences(Warehouse(str(fleet))).add(agents=["x"], until=DUE + DAY, reason="r", by="b", now=DUE - HOUR)
        tick(settings, alerts, PERSONAL, DUE)
        assert str(tick(settings, alerts, PERSONAL, DUE + HOUR)).endswith("0 messages delivered"), "once"
    [digest] = [body for body in hook.bodies if body["event"] == "periodic_digest"]
    assert (digest["from"], digest["to"]) == ("2026-06-07T07:00:00+00:00", "2026-06-08T07:00:00+00:00")
    assert digest["idempotency_key"] in hook.keys
    assert title_of(digest) == (
        "Daily digest to 2026-06-08 07:00 UTC: 4 agents (1 healthy, 1 degraded, 2 unhealthy), 1 failing now, "
        "1 suspect, 2 incidents open"
    )
    lines = list(lines_of(digest))
    assert lines[:3] == [
        "Now:",
        "· bad failing: 12 of 12 failed in the last hour, since 2026-06-08 06:00 UTC",
        "· fell suspect: 5 of 12 failed in the last hour, since 2026-06-08 06:00 UTC",
    ]
    lines = lines[3:]
    assert lines[:7] == [
        "Worst:",
        "· bad 20.0 (unhealthy)",
        "· fell 70.0 (degraded)",
        "Fell most:",
        "· fell -25.0, from 95.0 to 70.0",
        "Error budgets spent or burning:",
        "· bad 250% spent, 4.0 times as fast as it may over 6 h, 3.0 times as fast as it may over 1 h",
    ]
    lines = lines[7:]
    assert lines[:3] == [
        "Releases:",
        "· bad: version 2 after 1, success rate 95% → 80%, -15.0 points (-25.0 to -5.0): worse",
        "· good: version 2 after 1, success rate 95% → 80%, -15.0 points (-25.0 to -5.0): better",
    ]
    lines = lines[3:]
    assert lines[0].startswith("Incidents: 2 open; ")
    assert lines[1].startswith("· 🔴 floor since")
    assert lines[2] == (
        "Data: 1 hour missing (2026-06-07 10:00 UTC); executions.ids_are_new failed in 12 hours; "
        "46 lines rejected (most: 46 × status must be success or failure)"
    )
    assert "secret-" not in str(digest), "the text of a log stays out of channels"
    assert lines[3:] == ["Silences: 1 silence in force"]
    assert "mine" not in str(digest)


def test_a_verdict_on_a_release_is_in_one_digest(tmp_path: Path) -> None:
    path = tmp_path / "health.duckdb"
    warehouse, settings = Warehouse(str(path)), Settings(warehouse=str(path))
    worse, costlier, better = compared("bad", "worse"), compared("bad", "worse", "tokens"), compared("good", "better")
    with warehouse.write() as session:
        for hour, releases in ((20, [worse, better]), (40, [worse]), (70, [worse, costlier])):
            keep_hour(session, START + hour * HOUR, [scored("bad", 50.0)], release_comparison=releases)
    alerts = alerts_to(hook=Webhook(type="webhook", url="http://127.0.0.1:1/"))
    told = []
    for days in range(3):
        written = write_due_digest(warehouse, alerts, settings, PERSONAL, DUE + days * DAY)
        assert written is not None
        told.append([(one["agent_id"], one["measure"]) for one in written.content["releases"]])
    assert told == [[("bad", "success_rate"), ("good", "success_rate")], [], [("bad", "tokens")]]


def test_a_digest_names_the_agents_that_were_worse_than_their_own_past_and_until_when(tmp_path: Path) -> None:
    path = tmp_path / "health.duckdb"
    warehouse, settings = Warehouse(str(path)), Settings(warehouse=str(path))
    final = {"is_final": True}
    over, goes_on, own = (drift("over", measure="volume_drop") | final, drift("bad") | final, drift("mine") | final)
    nearly = drift("nearly", is_drifting=False) | final
    with warehouse.write() as session:
        for hour, rows in ((20, [over, own]), (29, [goes_on, over]), (30, [goes_on, nearly])):
            keep_hour(session, START + hour * HOUR, [scored("bad", 50.0)], drift=rows)
    alerts = alerts_to(hook=Webhook(type="webhook", url="http://127.0.0.1:1/"))
    written = write_due_digest(warehouse, alerts, settings, PERSONAL, DUE)
    assert written is not None
    lines = list(lines_of(written.content))
    place = lines.index("Unlike their own past:")
    since = f"{drift('bad')['since']:%Y-%m-%d %H:%M} UTC"
    assert lines[place + 1 : place + 3] == [
        f"· bad: success rate 95% → 80% since {since}; version 8: 83% of the failures in excess",
        f"· over: fewer executions 0.9/h → 0.8/h since {since}; no longer from 2026-06-08 06:00 UTC on",
    ]
    assert not lines[place + 3].startswith("·")


def test_a_digest_of_a_channel_that_is_down_is_sent_later_and_is_the_same(fleet: Path) -> None:
    warehouse = Warehouse(str(fleet))
    due = DUE + DAY
    with receiver(500, 500, 500) as hook:
        alerts = alerts_to(late=Webhook(type="webhook", url=hook.url))
        written = write_due_digest(warehouse, alerts, Settings(warehouse=str(fleet)), PERSONAL, due)
        assert written is not None
        assert write_due_digest(warehouse, alerts, Settings(warehouse=str(fleet)), PERSONAL, due + HOUR) is None
        assert len(deliver(warehouse, alerts, due).failed) == 1
        assert len(deliver(warehouse, alerts, due + HOUR).delivered) == 1
        assert deliver(warehouse, alerts, due + 2 * HOUR).delivered == []
    assert len(set(hook.keys)) == 1
    assert all(body == hook.bodies[0] for body in hook.bodies)


def test_without_a_channel_or_a_schedule_no_digest_is_written(fleet: Path) -> None:
    warehouse, settings = Warehouse(str(fleet)), Settings(warehouse=str(fleet))
    assert write_due_digest(warehouse, Alerts(digest=DAILY), settings, PERSONAL, DUE + 5 * DAY) is None
    unscheduled = Alerts(channels={"c": Webhook(type="webhook", url="http://127.0.0.1:1/")})
    assert write_due_digest(warehouse, unscheduled, settings, PERSONAL, DUE + 5 * DAY) is None


def test_a_digest_of_a_period_without_any_hour_says_so(fleet: Path) -> None:
    warehouse, settings = Warehouse(str(fleet)), Settings(warehouse=str(fleet))
    alerts = Alerts(channels={"c": Webhook(type="webhook", url="http://127.0.0.1:1/")}, digest=WEEKLY)
    written = write_due_digest(warehouse, alerts, settings, Targets(), DUE + 14 * DAY)
    assert written is not None
    assert "no hour with scores" in title_of(written.content)
    assert "168 hours missing" in " ".join(lines_of(written.content))


def test_the_command_prints_the_digest_of_now_and_keeps_nothing(fleet: Path) -> None:
    arguments = ["alerts", "digest", "--warehouse", str(fleet)]
    before = _digests(fleet)
    weekly = CliRunner().invoke(app, [*arguments, "--every", "weekly"])
    assert weekly.exit_code == 0
    assert weekly.output.startswith("Weekly digest to ")
    assert "Data: 168 hours missing" in weekly.output
    assert _digests(fleet) == before
    wrong = CliRunner().invoke(app, [*arguments, "--every", "hourly"])
    assert (wrong.exit_code, "--every: must be daily or weekly" in wrong.output) == (1, True)


def _digests(path: Path) -> list[tuple]:
    with Warehouse(str(path)).read() as session:
        return session.query("SELECT digest_id FROM alert_digests ORDER BY digest_id")
