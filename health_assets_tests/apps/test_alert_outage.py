"""The outage walk: agents with 1, 6, 12 and 1,000 runs an hour fail wholly for 11 hours, and what is told when."""

import json
from pathlib import Path

import pytest

from health_assets.apps.alerts.config import Alerts, Webhook
from health_assets.apps.alerts.messages import Audience, message_of
from health_assets.apps.alerts.outbox import CLOSED, OPENED, Notice
from health_assets.apps.alerts.rules import RULES
from health_assets_tests.support.alerts_made import at
from health_assets_tests.support.outages import (
    RATES,
    Outage,
    agent_of,
    delays,
    of_agents,
    table_of_delays,
    walk_of,
    walked,
)
from health_assets_tests.support.projects import Project

DOCS = Path(__file__).parents[2] / "docs" / "alerts.md"
OUTAGE = Outage()
PAGES = "https://health.example"


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("walk") / "project")
    walked(project, OUTAGE)
    return project


def of(project: Project, rule: str, rate: int):
    [incident] = [one for one in of_agents(project) if (one.rule, one.subject_id) == (rule, agent_of(rate))]
    return incident


@pytest.mark.parametrize(("rate", "hours"), [(1, 4), (6, 1), (12, 1), (1000, 1)])
def test_a_total_outage_is_told_as_critical_after_the_first_hour_that_shows_it(
    walk: Project, rate: int, hours: int
) -> None:
    """One run an hour shows it with the fourth failure in a row: three in a row are chance once in 8,000 times."""
    incident = of(walk, "failing_now", rate)
    assert (incident.opened_at, incident.severity) == (at(OUTAGE.well + hours), "critical")


def test_the_table_of_the_docs_says_each_rules_delay(walk: Project) -> None:
    table = table_of_delays(delays(of_agents(walk), OUTAGE))
    assert table in DOCS.read_text(encoding="utf-8"), f"docs/alerts.md should say:\n{table}"


@pytest.mark.parametrize("rate", RATES)
def test_every_incident_of_the_outage_closes_on_good_executions(walk: Project, rate: int) -> None:
    own = [one for one in of_agents(walk) if one.subject_id == agent_of(rate)]
    assert own
    assert [one.rule for one in own if not one.is_recovered] == [], walk_of(own, OUTAGE, rate)
    over_at = at(OUTAGE.well + OUTAGE.down)
    failing = of(walk, "failing_now", rate)
    assert failing.closed_at == at(OUTAGE.well + OUTAGE.down + 3)
    ran = 3 * rate
    assert failing.recovery == (
        f"{agent_of(rate)}: {ran:,} of {ran:,} executions succeeded in 3 h; over since {over_at:%Y-%m-%d %H:%M} UTC"
    )


def test_a_message_says_what_fails_since_when_with_which_error_where_and_links_to_the_page(walk: Project) -> None:
    incident = of(walk, "failing_now", 12)
    told = message_of(Notice(incident=incident, event=OPENED, channel="c"), Audience(pages_url=PAGES))
    assert told.title == (
        "🔴 runs-12 is failing: 12 of 12 executions failed in the last hour, 95% expected to succeed; "
        "since 2026-06-08 00:00 UTC"
    )
    assert told.lines[0] == (
        "9 of 12 failures of the hour: ConnectionError: postgresql://[redacted]@db.example/crm refused"
    )
    [first_line, second_line] = told.lines[1:3]
    assert first_line.startswith("runs.jsonl:")
    assert first_line.endswith(" ConnectionError: postgresql://[redacted]@db.example/crm refused")
    numbers = [int(one.split(":")[1].split()[0]) for one in (first_line, second_line)]
    assert numbers[0] == numbers[1] + 1
    opened, run, page = told.lines[3:]
    assert (opened, page) == ("opened 2026-06-08 01:00 UTC", f"{PAGES}/ui/agents/runs-12")
    assert run.startswith(f"a failed run: {PAGES}/ui/traces/")
    assert run.endswith("?agent=runs-12&until=2026-06-08T00")
    assert told.body["page"] == f"{PAGES}/ui/agents/runs-12"
    assert "hunter2" not in json.dumps(told.body) + str(told.lines)


def test_a_channel_without_error_texts_gets_none(walk: Project) -> None:
    incident = of(walk, "failing_now", 12)
    whole, told = (
        message_of(Notice(incident=incident, event=OPENED, channel="c"), Audience(has_error_texts=has))
        for has in (True, False)
    )
    assert "ConnectionError" in json.dumps(whole.body)
    assert "Error" not in json.dumps(told.body) + told.title + str(told.lines)
    assert told.lines[0].startswith("runs.jsonl:")
    assert told.body["evidence"]["log_lines"][0]["line_number"] > 0


def test_no_sentence_of_an_incident_which_all_readers_see_has_the_text_of_an_error(walk: Project) -> None:
    told = [f"{one.reason} {one.recovery}" for one in of_agents(walk)]
    assert told
    assert not [text for text in told if "Error" in text or "hunter2" in text]
    assert b"hunter2" not in walk.warehouse_path.read_bytes()


def test_the_all_clear_says_what_is_true_now_and_for_how_many_minutes_it_lasted(walk: Project) -> None:
    incident = of(walk, "failing_now", 12)
    told = message_of(Notice(incident=incident, event=CLOSED, channel="c"), Audience(pages_url=PAGES))
    assert told.title == "🟢 runs-12: 36 of 36 executions succeeded in 3 h; over since 2026-06-08 11:00 UTC"
    assert told.lines[0].startswith("open for 780 min, from 2026-06-08 01:00 UTC to 2026-06-08 14:00 UTC: ")
    budget = of(walk, "budget_burn", 12)
    assert budget.recovery
    assert "times" not in budget.recovery


@pytest.fixture(scope="module")
def silence(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The same outage, after which nothing ever runs again."""
    project = Project(tmp_path_factory.mktemp("silence") / "project")
    walked(project, Outage(down=3, silent_from=27, until=76), (6, 12))
    return project


def test_no_incident_stays_open_for_lack_of_traffic(silence: Project) -> None:
    own = [one for one in of_agents(silence) if one.rule != "no_data"]
    assert {"failing_now", "budget_burn_fast", "budget_burn", "status_worsened"} <= {one.rule for one in own}
    assert [(one.rule, one.reason) for one in own if one.closed_at is None] == []
    assert not any(one.is_recovered for one in own), "nothing good is known"
    failing = of(silence, "failing_now", 12)
    assert failing.recovery == "runs-12 is quiet: nothing ran in 6 h, since 2026-06-08 08:00 UTC"
    message = message_of(Notice(incident=failing, event=CLOSED, channel="c"))
    assert message.title.startswith("⚪ ")


def test_a_personal_agent_that_fails_is_told_of_without_a_detail(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", targets={"agents": {"runs-12": {"personal": True}}})
    alerts = Alerts(rules=(RULES["failing_now"](),), channels={"c": Webhook(type="webhook", url="http://127.0.0.1:1/")})
    walked(project, Outage(well=3, down=2, until=6), (12,), alerts)
    [incident] = of_agents(project)
    told = message_of(Notice(incident=incident, event=OPENED, channel="c"), Audience(pages_url=PAGES))
    assert told.title == "🟠 runs-12, a personal agent: an incident opened"
    assert "12 of 12" not in json.dumps(told.body) + str(told.lines)
    assert "Error" not in json.dumps(told.body) + str(told.lines)
