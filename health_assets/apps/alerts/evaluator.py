"""Judging hours: which of them are ready, one after another, each once.

An hour is judged when it is over, its tables are there and nothing has been written to it for a moment; the hours are
judged in order, and never a second time. Of the running hour, whatever opens is told at once; all else waits until it
is over. So whatever comes late changes no past incident and sends no message about the past: it shows in the windows of
the hours that follow. An hour that was left out while a later one is there counts as missing. The first time, only the
newest hour is judged, with the hours before it to compare with.

Rules that are switched off, or look at others than before, take their incidents with them at once, whether or not there
is an hour to judge. Silences change nothing of this: they are settled last, and decide who is told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from health_assets.apps.alerts.collectors import COLLECTORS, SOURCES, facts_of, observe
from health_assets.apps.alerts.config import Alerts
from health_assets.apps.alerts.facts import DueFact, Fact
from health_assets.apps.alerts.incidents import Incident, Judged, Subject, judge, unwatched
from health_assets.apps.alerts.observed_hour import HOURS, ObservedHour
from health_assets.apps.alerts.outbox import (
    ASSET,
    count_waiting,
    keep,
    last_judged,
    last_judged_at,
    not_kept,
    note_judged,
    open_incidents,
)
from health_assets.apps.alerts.rules import NoData
from health_assets.apps.alerts.silencing import (
    all_silences,
    apply_silences,
    diff_file_silences,
    pending_silence_changes,
    sync_file_silences,
)
from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.pipeline.hour_arithmetic import newest_finished_hour
from health_assets.warehouse.partition_states import SCORED_ASSET, PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse

NEEDED = (*SOURCES.values(), "system_health", "score_evidence")
"""Assets whose hour must be there, where they have ever been made."""
NOT_OF_LOGS = (ASSET, "agent_probes", "survey_summary")
"""Assets that do not follow from logs: when they are written says nothing of whether a run for the hour is done."""
QUIET = timedelta(seconds=90)
"""How long nothing may have been written to an hour: its checks come last, and leave no mark of their own."""
GIVEN_UP = timedelta(minutes=20)
"""After so long without a write an hour is judged by what is there: its run has failed."""
LATEST = timedelta(hours=2)
"""So long after its end an hour is judged although something still changes it: a complete one at once, another by what
is there once none was judged for as long. A run that fails again and again holds up no alerts."""
MOST_HOURS_A_TICK = 24


@dataclass
class Watch:
    """The outcome of a look at the warehouse.

    Args:
        hours: hours that were judged.
        opened: incidents that opened.
        closed: incidents that closed.
    """

    hours: list[datetime] = field(default_factory=list)
    opened: list[Incident] = field(default_factory=list)
    closed: list[Incident] = field(default_factory=list)

    def __str__(self) -> str:
        hours = counted(len(self.hours), "hour")
        opened = counted(len(self.opened), "incident")
        return f"{hours} judged, {opened} opened, {len(self.closed):,} closed"


def watch(warehouse: Warehouse, alerts: Alerts, settings: Settings, targets: Targets, now: datetime) -> Watch:
    """Close what no rule looks at any more, judge the hours that are ready, and whether the newest is late.

    Args:
        warehouse: the warehouse; it is opened for writing only where there is something to do.
        alerts: the rules.
        settings: how long windows are, and when an hour is late.
        targets: the personal agents and the retired ones.
        now: the time.

    Raises:
        HealthAssetsError: the warehouse cannot be opened.
    """
    done = Watch()
    with warehouse.read() as session:
        if not _is_anything_new(session, alerts, settings, targets, now):
            return done
    with warehouse.write() as session:
        sync_file_silences(session, alerts.silences, now)
        _keep(session, unwatched(alerts.rules, open_incidents(session), at=now), alerts, now, done)
        for hour, was_made in ready_hours(session, settings, now):
            judged = _judge_hour(session, alerts, settings, targets, hour, was_made=was_made)
            _keep(session, judged, alerts, now, done)
            note_judged(session, hour, is_changed=bool(judged.opened or judged.changed))
            done.hours.append(hour)
        so_far = _judge_hour_so_far(session, alerts, settings, targets, open_incidents(session), now)
        _keep(session, so_far, alerts, now, done)
        _keep(session, _judge_lateness(session, alerts, settings, open_incidents(session), now), alerts, now, done)
        apply_silences(session, now)
    return done


def _is_anything_new(session: Session, alerts: Alerts, settings: Settings, targets: Targets, now: datetime) -> bool:
    already_open = open_incidents(session)
    so_far = _judge_hour_so_far(session, alerts, settings, targets, already_open, now)
    late = _judge_lateness(session, alerts, settings, already_open, now)
    left = unwatched(alerts.rules, already_open, at=now)
    opened = not_kept(session, (*late.opened, *so_far.opened))
    is_judged = bool(left.changed or opened or late.changed or ready_hours(session, settings, now))
    return (
        is_judged
        or any(diff_file_silences(session, alerts.silences, now))
        or bool(pending_silence_changes(session, now))
    )


def _keep(session: Session, judged: Judged, alerts: Alerts, now: datetime, done: Watch) -> None:
    done.opened += keep(session, judged, alerts, now)
    done.closed += judged.closed


def _judge_hour(
    session: Session, alerts: Alerts, settings: Settings, targets: Targets, hour: datetime, *, was_made: bool
) -> Judged:
    already_open = open_incidents(session)
    observed = _observed(session, alerts, settings, targets, hour, already_open)
    facts = observe(observed, is_there=was_made)
    return judge(alerts.rules, facts, already_open, at=hour + HOUR, gone=observed.gone(), hour=hour)


def _judge_hour_so_far(
    session: Session,
    alerts: Alerts,
    settings: Settings,
    targets: Targets,
    already_open: Mapping[Subject, Incident],
    now: datetime,
) -> Judged:
    """The incidents that open in the running hour; whether any closes is asked once it is over."""
    hour = floor_hour(now)
    known = known_so_far(session, hour)
    observed = _observed(session, alerts, settings, targets, hour, already_open)
    # who runs once a day may still run in the rest of the hour
    rules = [rule for rule in alerts.rules if not isinstance(rule, NoData)]
    opened: list[Incident] = []
    for at, kinds in _kinds_by_time(known).items():
        opened += judge(rules, facts_of(observed, kinds), already_open, at=at).opened
    return Judged(opened=tuple(opened))


def _observed(
    session: Session,
    alerts: Alerts,
    settings: Settings,
    targets: Targets,
    hour: datetime,
    already_open: Mapping[Subject, Incident],
) -> ObservedHour:
    return ObservedHour(
        session=session,
        hour=hour,
        rules=alerts.rules,
        open_subjects=already_open.keys(),
        targets=targets,
        window_hours=settings.window_hours,
    )


def known_so_far(session: Session, hour: datetime) -> dict[str, datetime]:
    """Up to when the scores of a running hour are known, by asset; no others.

    Some are made less often than others (`systems.due_hours`), and one that cannot be made stays as it was.
    """
    states, hours = PartitionStates(session), HourRange.of(hour)
    known = {asset: states.as_of(asset, hours) for asset in states.assets() & set(NEEDED)}
    return {asset: own[hour] for asset, own in known.items() if hour in own}


def _kinds_by_time(known: Mapping[str, datetime]) -> dict[datetime, list[type[Fact]]]:
    """The kinds of facts that a running hour has, by when they are known; those of no asset are of the newest time."""
    found: dict[datetime, list[type[Fact]]] = {}
    for kind in COLLECTORS if known else ():
        at = known.get(SOURCES[kind]) if kind in SOURCES else max(known.values())
        if at is not None:
            found.setdefault(at, []).append(kind)
    return found


def _judge_lateness(
    session: Session, alerts: Alerts, settings: Settings, already_open: Mapping[Subject, Incident], now: datetime
) -> Judged:
    """Whether the newest hour that should be there is; a warehouse in which nothing was ever made is not late."""
    fact = newest_due(session, settings, now)
    if fact is None:
        return Judged()
    due_at = fact.hour + HOUR + timedelta(minutes=settings.late_after_minutes)
    return judge(alerts.rules, [fact], already_open, at=now if fact.is_there else due_at)


def newest_due(session: Session, settings: Settings, now: datetime) -> DueFact | None:
    """The newest hour that should be there by now; None where nothing was ever made, or asked for."""
    due = newest_finished_hour(now, timedelta(minutes=settings.late_after_minutes))
    newest, first = PartitionStates(session).newest(SCORED_ASSET, now), PartitionStates(session).first(SCORED_ASSET)
    if newest is None or first is None or due < max(first, settings.first_hour or first):
        return None
    states, hours = PartitionStates(session), HourRange.of(due)
    is_there = bool(states.of(SCORED_ASSET, hours) - states.not_final([SCORED_ASSET], hours))
    is_catching_up = not is_there and _is_catching_up(session, newest, due, now)
    return DueFact(hour=due, subject_id=HOURS, is_there=is_there, newest=newest, is_catching_up=is_catching_up)


def next_change_at(session: Session, alerts: Alerts, settings: Settings, now: datetime) -> datetime:
    """The time at which the clock alone may give a tick that finds nothing to do something to do.

    That is at once while hours wait to be judged, the newest is late, or messages wait to be sent.
    """
    grace, due = timedelta(minutes=settings.late_after_minutes), newest_due(session, settings, now)
    is_waiting = _span(session, settings, now) is not None or bool(count_waiting(session))
    if is_waiting or (due is not None and not due.is_there):
        return now
    silences = [*all_silences(session), *(wanted.silence_of_file(now) for wanted in alerts.silences)]
    moments = [floor_hour(now) + HOUR, newest_finished_hour(now, grace) + 2 * HOUR + grace]
    moments += [moment for silence in silences for moment in (silence.starts_at, silence.ends_at)]
    moments += [alerts.digest.latest(now) + alerts.digest.length] if alerts.digest else []
    return min(moment for moment in moments if moment > now)


def _is_catching_up(session: Session, newest: datetime, due: datetime, now: datetime) -> bool:
    """Whether a run was seen to make the newest hour, or later ones up to the one that is due, a moment ago."""
    if due <= newest:
        return False
    moments = [
        at
        for assets in PartitionStates(session).made_at(HourRange(newest, due + HOUR)).values()
        for asset, at in assets.items()
        if asset not in NOT_OF_LOGS
    ]
    return any(timedelta(0) <= now - at < GIVEN_UP for at in moments)


def ready_hours(session: Session, settings: Settings, now: datetime) -> list[tuple[datetime, bool]]:
    """The next hours to judge, in order, and whether each is there at all; some of them where there are many."""
    span = _span(session, settings, now)
    if span is None:
        return []
    written = _written(session, span)
    needed = PartitionStates(session).assets() & set(NEEDED)
    not_final = PartitionStates(session).not_final(needed, span)
    idle_for = now - (last_judged_at(session) or now)
    ready: list[tuple[datetime, bool]] = []
    missing: list[tuple[datetime, bool]] = []
    for hour in span:
        if hour not in written:
            missing.append((hour, False))
        elif is_ready(hour, written[hour], needed, now, idle_for, is_final=hour not in not_final):
            ready += [*missing, (hour, True)]
            missing = []
        else:
            break
    return ready[:MOST_HOURS_A_TICK]


def is_ready(
    hour: datetime,
    written: dict[str, datetime],
    needed: set[str],
    now: datetime,
    idle_for: timedelta,
    *,
    is_final: bool = True,
) -> bool:
    """Whether an hour can be judged.

    Args:
        hour: the hour.
        written: when each of its assets was last written.
        needed: assets that must be there.
        now: the time.
        idle_for: how long no hour has been judged.
        is_final: whether it was over when they were last made.
    """
    last_written = max(written.values())
    quiet_for = now - (last_written if is_final else max(last_written, hour + HOUR))
    is_overdue = now >= hour + HOUR + LATEST
    if needed <= written.keys() and is_final:
        return quiet_for >= QUIET or is_overdue
    return quiet_for >= GIVEN_UP or (is_overdue and idle_for >= LATEST)


def _span(session: Session, settings: Settings, now: datetime) -> HourRange | None:
    """The hours from the first that was not judged to the newest that is over and has any table of records."""
    newest = PartitionStates(session).newest("raw_logs", now)
    judged = last_judged(session)
    if newest is None:
        return None
    if judged is None:
        newest = PartitionStates(session).newest(SCORED_ASSET, now)
        return HourRange.of(newest) if newest else None
    start = max(judged + HOUR, newest - settings.reach_hours * HOUR)
    return HourRange(start, newest + HOUR) if start <= newest else None


def _written(session: Session, span: HourRange) -> dict[datetime, dict[str, datetime]]:
    """The time of the last write of each asset and hour; only hours whose logs were read."""
    written = PartitionStates(session).made_at(span)
    return {
        hour: {asset: at for asset, at in assets.items() if asset not in NOT_OF_LOGS}
        for hour, assets in written.items()
        if "raw_logs" in assets
    }
