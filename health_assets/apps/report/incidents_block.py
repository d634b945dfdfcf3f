"""The block of incidents: what is open, what was lately, and what waits to be delivered."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.apps.alerts.evaluator import newest_due
from health_assets.apps.alerts.incidents import Incident, personal_by_now
from health_assets.apps.alerts.outbox import count_waiting, last_judged, recent_incidents
from health_assets.apps.alerts.rules import SEVERITIES, HourLate
from health_assets.apps.alerts.silences import Silence
from health_assets.apps.alerts.silencing import all_silences
from health_assets.core.console import plain_table
from health_assets.core.formatting import counted
from health_assets.core.hours import EVER, HOUR, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.core.terminal import printable
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.session import Session

COLOURS = {"critical": "red", "warning": "yellow", "info": "blue"}
INCIDENTS_SHOWN = 20
IDS_SHOWN = 3
MOST_TOLD = 400


def print_alerts(
    console: Console, session: Session, since: datetime, targets: Targets, *, is_configured: bool = True
) -> None:
    """Open incidents, those closed since a time, and what waits for each channel.

    Args:
        console: where to.
        session: a session on the warehouse.
        since: from when on closed incidents are shown.
        targets: the personal agents.
        is_configured: whether rules are named, by which somebody judges hours.
    """
    judged = last_judged(session)
    if not is_configured:
        console.print(
            "no rules are configured, so no hour is judged; name a file of rules and channels in HEALTH_ALERTS"
        )
    if judged is None and not is_configured:
        return
    found = [personal_by_now(incident, targets) for incident in recent_incidents(session, since)]
    still_open = [incident for incident in found if incident.closed_at is None]
    over = [incident for incident in found if incident.closed_at is not None]
    title = Text("Incidents: ", style="bold")
    title.append(f"{len(still_open):,} open", style="red" if still_open else "green")
    if silenced := sum(incident.is_silenced for incident in still_open):
        title.append(f" ({silenced:,} silenced)", style="yellow")
    title.append(f"  {len(over):,} closed since {since:%Y-%m-%d %H:%M} UTC  ")
    title.append(f"judged to {judged + HOUR:%Y-%m-%d %H:%M} UTC" if judged else "no hour has been judged yet", "dim")
    console.print(title)
    silences = {silence.silence_id: silence for silence in all_silences(session)}
    if still_open:
        console.print(_table(sorted(still_open, key=_urgency), "since", silences))
    if over:
        console.print(Text("closed", style="bold"))
        console.print(_table(over, "lasted", silences))
    for channel, (count, error) in count_waiting(session).items():
        why = f": {printable(error)}" if error else ""
        waiting = counted(count, "message waits", "messages wait")
        console.print(Text(f"{waiting} for the channel {printable(channel)}{why}", style="yellow"))


def print_troubles(console: Console, session: Session, settings: Settings, now: datetime) -> bool:
    """Say that the newest hour is late, what cannot be read or is lost, also where no rule is configured.

    Returns:
        Whether somebody has to do something: lost lines alone come back by nothing that anybody could do.
    """
    seen = newest_due(session, settings, now)
    late = HourLate().opening(replace(seen, is_catching_up=False)) if seen else None  # who asks is told in any case
    if late is not None:
        console.print(Text(printable(late.reason, MOST_TOLD), style="bold red"), soft_wrap=True)
    unreadable = Ledger(session).unreadable()
    _print_each(console, "not read", list(unreadable.values()), "yellow")
    reached = HourRange(floor_hour(now) - settings.reach_hours * HOUR, EVER.end)
    _print_each(console, "lost", [str(log) for log in FileLedger(session).lost(reached)], "yellow")
    return bool(late or unreadable)


def _print_each(console: Console, what: str, sentences: Sequence[str], style: str) -> None:
    for sentence in sentences[:INCIDENTS_SHOWN]:
        console.print(Text(printable(f"{what}: {sentence}", MOST_TOLD), style=style), soft_wrap=True)
    if len(sentences) > INCIDENTS_SHOWN:
        console.print(Text(f"{what}: and {len(sentences) - INCIDENTS_SHOWN:,} more", style=style))


def print_trials(console: Console, outcome: Mapping[str, str | None]) -> None:
    """Print whether each channel took its test message."""
    if not outcome:
        console.print("there is no channel; incidents are kept in the table alerts, and nobody is told")
    for channel, error in outcome.items():
        if error is None:
            console.print(Text(f"✓ {printable(channel)} took the test message", style="green"))
        else:
            console.print(Text(f"✗ {printable(channel)} did not: {printable(error)}", style="red"))


def _urgency(incident: Incident) -> tuple:
    return SEVERITIES.index(incident.severity), -incident.opened_at.timestamp(), incident.subject_id


def _table(incidents: list[Incident], heading: str, silences: Mapping[str, Silence]) -> Table:
    table = plain_table()
    table.add_column("severity", no_wrap=True)
    table.add_column("rule", no_wrap=True)
    table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("what happened")
    for incident in incidents[:INCIDENTS_SHOWN]:
        when = (
            f"{incident.opened_at:%m-%d %H:%M}"
            if incident.closed_at is None
            else _length(incident.closed_at - incident.opened_at)
        )
        of_what = (
            (Text("·", style="dim"), "·")
            if incident.is_personal
            else (Text(incident.severity, style=COLOURS[incident.severity]), Text(printable(incident.rule)))
        )
        table.add_row(*of_what, when, _told(incident).append(_silenced(incident, silences), style="yellow"))
    if len(incidents) > INCIDENTS_SHOWN:
        table.caption = f"{INCIDENTS_SHOWN} of {len(incidents):,}; all are in the table alerts"
    return table


def _told(incident: Incident) -> Text:
    if incident.is_personal:
        return Text(f"{printable(incident.subject_id)}, a personal agent; the table alerts has the rest")
    text = Text(printable(incident.reason, 300))
    if incident.recovery is not None:
        text.append(f" → {printable(incident.recovery)}", style="green" if incident.is_recovered else "dim")
        return text
    if ids := _events_of_the_reason(incident):
        text.append(f"\n{', '.join(printable(name, 60) for name in ids[:IDS_SHOWN])}", style="dim")
    return text


def _silenced(incident: Incident, silences: Mapping[str, Silence]) -> str:
    """The silence because of which nobody is told, on a line of its own; nothing where there is none."""
    if not incident.is_silenced:
        return ""
    silence = silences[incident.silenced_by or ""]
    until = "to its end" if incident.closed_at else f"until {silence.ends_at:%m-%d %H:%M}"
    return f"\nsilenced {until} by {printable(silence.silence_id)}: {printable(silence.reason, 200)}"


def _events_of_the_reason(incident: Incident) -> list[str]:
    """Ids of the events that its one sentence is about; none rather than those of another component."""
    evidence = json.loads(incident.evidence)
    for loss in evidence.get("explanation", ()):
        if incident.reason.endswith(loss["sentence"]):
            return loss["evidence"]
    return evidence.get("latest_failures", [])


def _length(span: timedelta) -> str:
    """Length of an incident: in minutes below two hours; never below zero."""
    minutes = max(0.0, span.total_seconds() / 60)
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 48 * 60 else f"{minutes / (24 * 60):.0f} d"
