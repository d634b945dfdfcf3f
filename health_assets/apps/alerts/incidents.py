"""Opening and closing incidents by the rules and an hour's facts. Pure: no clock, no warehouse.

There is at most one open incident of a rule and a subject. It opens with the first hour that the rule objects to, and
closes after as many good hours in a row as the rule says; an hour in which nothing is known leaves it as it is, for a
time. It closes without having recovered when nothing is known for longer, and when nobody looks any more: at its
subject, or by its rule.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from health_assets.apps.alerts.facts import SUBJECT_KINDS, Fact
from health_assets.apps.alerts.rules import Rule
from health_assets.core.targets import Targets

Subject = tuple[str, str, str]
"""Rule, kind of subject and id of subject: what there is one open incident of."""


@dataclass(frozen=True, kw_only=True)
class Incident:
    """A row of `alerts`."""

    hour: datetime
    incident_id: str
    rule: str
    subject_kind: str
    subject_id: str
    severity: str
    opened_at: datetime
    closed_at: datetime | None
    reason: str
    recovery: str | None
    recovers_at: float | None
    good_hours: int
    is_personal: bool
    evidence: str
    silenced_by: str | None = None
    unsilenced_at: datetime | None = None

    @property
    def subject(self) -> Subject:
        """The subject; each has at most one open incident."""
        return self.rule, self.subject_kind, self.subject_id

    @property
    def is_recovered(self) -> bool:
        """Whether good hours closed it; one that was given up has none."""
        return self.closed_at is not None and self.good_hours > 0

    @property
    def is_silenced(self) -> bool:
        """Whether nobody is told of it now, or was until it ended."""
        return self.silenced_by is not None and self.unsilenced_at is None


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The incidents that an hour changed.

    Args:
        opened: incidents that opened.
        closed: incidents that closed, to be told.
        dropped: incidents that closed because nobody looks any more, not to be told.
        counted: incidents that stay open with another count of good hours.
    """

    opened: tuple[Incident, ...] = ()
    closed: tuple[Incident, ...] = ()
    dropped: tuple[Incident, ...] = ()
    counted: tuple[Incident, ...] = ()

    @property
    def changed(self) -> tuple[Incident, ...]:
        """Incidents of earlier hours that are other than before."""
        return (*self.closed, *self.dropped, *self.counted)


def judge(
    rules: Sequence[Rule],
    facts: Iterable[Fact],
    open_incidents: Mapping[Subject, Incident],
    *,
    at: datetime,
    gone: Mapping[tuple[str, str], str] = MappingProxyType({}),
    hour: datetime | None = None,
) -> Judged:
    """Apply the rules to an hour's facts, and return the incidents that open and close.

    Args:
        rules: the rules in force that are to look at it.
        facts: facts of an hour, of each subject once.
        open_incidents: the incidents that are open.
        at: when the facts held: the end of the hour.
        gone: subjects that are left out from now on, by kind and id, and why.
        hour: the hour that is judged; incidents that opened in later ones, which ran already, are left alone.
    """
    opened, closed, counted = [], [], []
    dropped = [
        _given_up(incident, at, gone[incident.subject[1:]])
        for incident in open_incidents.values()
        if incident.subject[1:] in gone and not _is_later(incident, hour)
    ]
    over = {incident.subject for incident in dropped}
    for one in facts:
        for rule in rules:
            if not rule.covers(one):
                continue
            subject = subject_of(rule, one)
            incident = open_incidents.get(subject)
            if incident is None:
                is_told = any((other, *subject[1:]) in open_incidents for other in rule.implied_by)
                if not is_told and (opening := rule.opening(one)):
                    opened.append(_opened(rule, one, subject, opening.reason, opening.recovers_at, at))
            elif subject not in over and not _is_later(incident, hour):
                after = _after(rule, one, incident, at)
                if after.closed_at is not None:
                    closed.append(after)
                elif after != incident:
                    counted.append(after)
    return Judged(opened=tuple(opened), closed=tuple(closed), dropped=tuple(dropped), counted=tuple(counted))


def _is_later(incident: Incident, hour: datetime | None) -> bool:
    return hour is not None and incident.hour > hour


def unwatched(rules: Sequence[Rule], open_incidents: Mapping[Subject, Incident], *, at: datetime) -> Judged:
    """Incidents that close because their rule was switched off or looks at others now; who was told of them is told.

    Args:
        rules: the rules in force.
        open_incidents: the incidents that are open.
        at: the time.
    """
    in_force = {rule.name: rule for rule in rules}
    closed = []
    for incident in open_incidents.values():
        rule = in_force.get(incident.rule)
        if rule is None or not rule.includes(incident.subject_id):
            why = "is switched off" if rule is None else "leaves it out"
            told = f"{incident.subject_id} is not watched any more: the rule {incident.rule} {why}"
            closed.append(_given_up(incident, at, told))
    return Judged(closed=tuple(closed))


def personal_by_now(incident: Incident, targets: Targets) -> Incident:
    """The incident, as a personal agent's where the targets call it one by now, whatever was so when it opened."""
    is_personal = incident.subject_kind == "agent" and targets.of(incident.subject_id).personal
    return replace(incident, is_personal=True) if is_personal else incident


def subject_of(rule: Rule, fact: Fact) -> Subject:
    """The subject of an incident: a rule has at most one open for it."""
    return rule.name, SUBJECT_KINDS[fact.kind], fact.subject_id


def _given_up(incident: Incident, at: datetime, why: str) -> Incident:
    return replace(incident, closed_at=_end_of(incident, at), recovery=why, good_hours=0)


def _end_of(incident: Incident, at: datetime) -> datetime:
    """Time at which an incident closes: never before it opened, whatever the clock said then."""
    return max(at, incident.opened_at)


def _opened(rule: Rule, fact: Fact, subject: Subject, reason: str, recovers_at: float | None, at: datetime) -> Incident:
    return Incident(
        hour=fact.hour,
        incident_id=incident_id_of(subject, fact.hour),
        rule=rule.name,
        subject_kind=subject[1],
        subject_id=fact.subject_id,
        severity=rule.severity,
        opened_at=at,
        closed_at=None,
        reason=reason,
        recovery=None,
        recovers_at=recovers_at,
        good_hours=0,
        is_personal=fact.is_personal,
        evidence=json.dumps(fact.evidence, ensure_ascii=False),
    )


def incident_id_of(subject: Subject, hour: datetime) -> str:
    """The id of the incident of a rule and a subject that opens in an hour: the same whenever it is judged."""
    text = json.dumps([*subject, hour.isoformat()], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _after(rule: Rule, fact: Fact, incident: Incident, at: datetime) -> Incident:
    good = rule.is_good(fact, incident.recovers_at)
    if good is None:
        why = rule.gives_up(fact, incident.hour)
        return _given_up(incident, at, why) if why else incident
    if not good:
        return replace(incident, good_hours=0)
    good_hours = incident.good_hours + 1
    if good_hours < rule.good_hours:
        return replace(incident, good_hours=good_hours)
    recovery = rule.recovery(fact, incident.hour)
    return replace(incident, good_hours=good_hours, closed_at=_end_of(incident, at), recovery=recovery)
