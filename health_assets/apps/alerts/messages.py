"""Texts of notices: one sentence, the points lost, the events to look at; as lines and as JSON.

Every message carries the key of its event, by which a receiver can drop a duplicate: delivery is at least once. Of a
personal agent a message says that something changed and nothing else; the rest is in the table.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from health_assets.apps.alerts.outbox import CLOSED, OPENED, Notice
from health_assets.core.formatting import counted
from health_assets.core.terminal import printable

KEY_HEADER = "Idempotency-Key"
LINES_OF_DIGEST = 30
LISTED_OF_DIGEST = 100
"""Most events that a digest tells one by one, the worst first; of the others it has counts."""
IDS_SHOWN = 5
LOG_LINES_SHOWN = 2
CUT_TEXT = 200
"""Most characters of any text in a message that is cut."""
ENTRIES_OF_CUT = 5
CUT_NOTE = "this message is cut, since the channel refused the whole as too large; all of it is in the table alerts"
RANKS = {"info": 0, "warning": 1, "critical": 2}
SIGNS = {"critical": "🔴", "warning": "🟠", "info": "🔵"}
RECOVERED, GIVEN_UP = "🟢", "⚪"
"""Signs of the end of an incident: not everything that ends has become good."""


@dataclass(frozen=True, kw_only=True)
class Audience:
    """Facts that a message may tell the readers of a channel, and the address where they read more.

    Args:
        pages_url: public address of the pages, to which messages link; None where there is none.
        has_error_texts: whether they may read texts of errors.
    """

    pages_url: str | None = None
    has_error_texts: bool = True

    def page_of_agent(self, agent_id: str) -> str | None:
        """Address of an agent's page; None without pages."""
        return None if self.pages_url is None else f"{self._base}/ui/agents/{quote(agent_id, safe='')}"

    def page_of_run(self, run_id: str, agent_id: str, until: datetime) -> str | None:
        """Address of the page of an agent's run that ended by an hour; None without pages."""
        if self.pages_url is None:
            return None
        asked = f"agent={quote(agent_id, safe='')}&until={until:%Y-%m-%dT%H}"
        return f"{self._base}/ui/traces/{quote(run_id, safe='')}?{asked}"

    @property
    def place_of_incidents(self) -> str:
        """The page or command that shows all incidents."""
        return "all are in the table alerts" if self.pages_url is None else f"all are at {self._base}/ui/incidents"

    @property
    def _base(self) -> str:
        return (self.pages_url or "").rstrip("/")


EVERYBODY = Audience()


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message to one channel.

    Args:
        key: the same whenever it is sent again.
        event: `opened`, `closed`, `group`, `digest`, `periodic_digest` or `test`.
        title: one line.
        lines: further lines.
        body: all of it, for programs.
    """

    key: str
    event: str
    title: str
    lines: tuple[str, ...]
    body: dict[str, Any]

    def cut(self) -> "Message":
        """The same in at most about 2 KiB, with a note that says so."""
        body = _short(self.body)
        lines = (*(_short(line) for line in self.lines[-1:]), CUT_NOTE)
        return Message(
            key=self.key, event=self.event, title=_short(self.title), lines=lines, body={**body, "note": CUT_NOTE}
        )


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: None if name == "evidence" else _short(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_short(one) for one in value[:ENTRIES_OF_CUT]]
    return f"{value[:CUT_TEXT]}…" if isinstance(value, str) and len(value) > CUT_TEXT else value


def message_of(notice: Notice, audience: Audience = EVERYBODY) -> Message:
    """The message about one event."""
    lines = [] if notice.incident.is_personal else _explained(json.loads(notice.incident.evidence), audience)
    opened_at = _time(notice.incident.opened_at)
    if notice.event == CLOSED:
        lines = [f"open for {_minutes(notice):,} min, from {opened_at} to {_when(notice)}: {_reason(notice)}"]
    else:
        lines.append(f"opened {opened_at}")
    lines += _after_a_silence(notice) + _page(notice, audience)
    return Message(
        key=notice.key,
        event=notice.event,
        title=f"{_sign(notice)} {_sentence(notice)}",
        lines=tuple(lines),
        body=_body(notice, audience),
    )


def message_about(notices: Sequence[Notice], audience: Audience = EVERYBODY) -> Message:
    """One message about one event, about one event of several rules of a subject, or about many events."""
    if len(notices) == 1:
        return message_of(notices[0], audience)
    is_group = len({occasion_of(notice) for notice in notices}) == 1
    return group_of(notices, audience) if is_group else digest_of(notices, audience)


def occasion_of(notice: Notice) -> tuple:
    """The occasion for which rules are told together: a subject, its event, and when there was something to tell."""
    incident = notice.incident
    return incident.subject_kind, incident.subject_id, incident.is_personal, notice.event, notice.told_at


def gathered(notices: Sequence[Notice]) -> list[list[Notice]]:
    """The notices by occasion, in their order; no end of an incident comes before its opening."""
    groups: dict[tuple, list[Notice]] = {}
    places: dict[tuple, int] = {}
    for place, notice in enumerate(notices):
        occasion = occasion_of(notice)
        groups.setdefault(occasion, []).append(notice)
        if occasion not in places or notice.event == CLOSED:
            places[occasion] = place
    return [groups[occasion] for occasion in sorted(places, key=lambda occasion: places[occasion])]


def group_of(notices: Sequence[Notice], audience: Audience = EVERYBODY) -> Message:
    """One message about what several rules say of a subject at one time; the most severe is its title."""
    ranked = sorted(notices, key=lambda notice: (-RANKS[notice.incident.severity], notice.incident.rule))
    first = ranked[0]
    key = f"{_key_of(notices)}-group"
    lines: list[str] = []
    if not first.incident.is_personal:
        lines += [
            f"{_sign(notice)} {notice.incident.rule}: {_sentence(notice)} ({_when(notice)})"
            for notice in ranked[:LINES_OF_DIGEST]
        ]
        if first.event == OPENED:
            explained = (
                line for notice in ranked for line in _explained(json.loads(notice.incident.evidence), audience)
            )
            lines += list(dict.fromkeys(explained))[:LINES_OF_DIGEST]
    lines += _after_a_silence(first) + _page(first, audience)
    return Message(
        key=key,
        event="group",
        title=f"{_sign(first)} {_sentence(first)} (and {len(notices) - 1:,} more)",
        lines=tuple(lines),
        body={"idempotency_key": key, "event": "group", "notices": [_body(notice, audience) for notice in ranked]},
    )


def _after_a_silence(notice: Notice) -> list[str]:
    incident = notice.incident
    if incident.silenced_by is None or incident.unsilenced_at is None or notice.told_at > incident.unsilenced_at:
        return []
    return [f"silenced until {_time(incident.unsilenced_at)}, by {printable(incident.silenced_by)}"]


def _page(notice: Notice, audience: Audience) -> list[str]:
    """The addresses of the agent's page, and of the latest run that failed, a line each."""
    run, address = _failed_run_of(notice, audience), _page_of(notice, audience)
    return ([f"a failed run: {run}"] if run else []) + ([address] if address else [])


def _failed_run_of(notice: Notice, audience: Audience) -> str | None:
    """The page of the latest failed run that an incident rests on; None of a personal agent, or once it is over."""
    incident = notice.incident
    if incident.is_personal or incident.subject_kind != "agent" or notice.event == CLOSED:
        return None
    evidence = json.loads(incident.evidence)
    runs = [line["execution_id"] for line in evidence.get("log_lines", ())] or evidence.get("latest_failures", [])
    return audience.page_of_run(runs[0], incident.subject_id, incident.hour) if runs else None


def _page_of(notice: Notice, audience: Audience) -> str | None:
    incident = notice.incident
    return audience.page_of_agent(incident.subject_id) if incident.subject_kind == "agent" else None


def _key_of(notices: Sequence[Notice]) -> str:
    return hashlib.sha256("\n".join(sorted(notice.key for notice in notices)).encode()).hexdigest()[:20]


def digest_of(notices: Sequence[Notice], audience: Audience = EVERYBODY) -> Message:
    """One message about many events, so that a bad hour of a large fleet is not a storm: counts, and the worst."""
    key = _key_of(notices)
    opened = [notice for notice in notices if notice.event == OPENED]
    worst = notices if len(notices) <= LINES_OF_DIGEST else sorted(notices, key=_severity_order)
    lines = [f"{_sign(notice)} {_sentence(notice)} ({_when(notice)})" for notice in worst[:LINES_OF_DIGEST]]
    severities = Counter(_shown_severity(notice) for notice in opened)
    rules = Counter(notice.incident.rule for notice in opened if not notice.incident.is_personal)
    title = f"{counted(len(opened), 'incident')} opened and {len(notices) - len(opened):,} closed"
    if len(notices) > LINES_OF_DIGEST:
        by_severity = ", ".join(f"{severities[name]:,} {name}" for name in SIGNS if severities[name])
        title += f" ({by_severity})" if opened else ""
        if rules:
            lines.insert(0, "opened by rule: " + ", ".join(f"{count:,} {rule}" for rule, count in rules.most_common()))
        lines.append(f"and {len(notices) - LINES_OF_DIGEST:,} more; {audience.place_of_incidents}")
    body = {
        "counts": {"opened": dict(severities), "closed": len(notices) - len(opened), "opened_by_rule": dict(rules)},
        "notices": [_body(notice, audience) for notice in worst[:LISTED_OF_DIGEST]],
        "not_listed": max(0, len(notices) - LISTED_OF_DIGEST),
        "read_more": audience.place_of_incidents,
    }
    return Message(
        key=f"{key}-digest",
        event="digest",
        title=title,
        lines=tuple(lines),
        body={"idempotency_key": f"{key}-digest", "event": "digest", **body},
    )


def _severity_order(notice: Notice) -> tuple[bool, int]:
    """Order of notices: openings before ends, and each the most severe first."""
    return notice.event != OPENED, -RANKS[_shown_severity(notice)]


def _shown_severity(notice: Notice) -> str:
    """The severity that a message may say: of a personal agent always the same."""
    return "warning" if notice.incident.is_personal else notice.incident.severity


def trial_message(channel: str, at: datetime) -> Message:
    """A message that only says that messages arrive."""
    key = hashlib.sha256(f"{channel} {at.isoformat()}".encode()).hexdigest()[:20] + "-test"
    title = f"Health Assets can reach the channel {printable(channel)}"
    return Message(
        key=key,
        event="test",
        title=title,
        lines=("This is a test; nothing has happened.",),
        body={"idempotency_key": key, "event": "test", "reason": title},
    )


def trial_end(channel: str, at: datetime) -> Message:
    """The message that resolves the alert of a test, at a pager."""
    trial = trial_message(channel, at)
    body = {**trial.body, "event": CLOSED, "incident_id": trial.key}
    return replace(trial, event=CLOSED, body=body)


def _sign(notice: Notice) -> str:
    if notice.event == CLOSED:
        return RECOVERED if notice.incident.is_recovered else GIVEN_UP
    return SIGNS[_shown_severity(notice)]


def _sentence(notice: Notice) -> str:
    incident = notice.incident
    if incident.is_personal:
        change = "opened" if notice.event == OPENED else "is over"
        return printable(f"{incident.subject_id}, a personal agent: an incident {change}")
    return printable((incident.recovery if notice.event == CLOSED else incident.reason) or incident.reason, 500)


def _reason(notice: Notice) -> str:
    return "a personal agent" if notice.incident.is_personal else printable(notice.incident.reason, 500)


def _when(notice: Notice) -> str:
    """The time at which the incident opened or closed; the time of the notice does not matter."""
    incident = notice.incident
    return _time((incident.closed_at if notice.event == CLOSED else None) or incident.opened_at)


def _minutes(notice: Notice) -> int:
    """Length of an incident that is over."""
    incident = notice.incident
    return max(0, round(((incident.closed_at or incident.opened_at) - incident.opened_at).total_seconds() / 60))


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _explained(evidence: dict[str, Any], audience: Audience) -> list[str]:
    """Failures of the last hour, and a line for each component that cost points, with the ids to look at."""
    lines = []
    for loss in evidence.get("explanation", ()):
        ids = ", ".join(printable(name, 80) for name in loss["evidence"][:IDS_SHOWN])
        told = printable(f"-{loss['lost']:.1f} {loss['component']}: {loss['sentence']}", 500)
        lines.append(told + (f" ({ids})" if ids else ""))
    if failures := evidence.get("latest_failures"):
        lines.append(f"latest failures: {', '.join(printable(name, 80) for name in failures[:IDS_SHOWN])}")
    return _failures(evidence, audience) + lines


def _failures(evidence: dict[str, Any], audience: Audience) -> list[str]:
    """The most frequent error of the hour, and lines of logs to look at; without texts where nobody may read them."""
    lines = []
    for error in evidence.get("errors", [])[:1] if audience.has_error_texts else ():
        hour = (
            "the hour"
            if error["hour"] == evidence["hour"]
            else f"the hour {error['hour']:.16}".replace("T", " ") + " UTC"
        )
        of = f"{error['count']:,} of {counted(error['failures'], 'failure')} of {hour}"
        lines.append(f"{of}: {printable(error['text'], 300)}")
    for line in evidence.get("log_lines", ())[:LOG_LINES_SHOWN]:
        text = f" {printable(line['text'], 200)}" if line["text"] and audience.has_error_texts else ""
        lines.append(f"{printable(line['source_file'], 200)}:{line['line_number']}{text}")
    return lines


def _without_error_texts(evidence: dict[str, Any]) -> dict[str, Any]:
    lines = [{**line, "text": None} for line in evidence.get("log_lines", ())]
    return {name: value for name, value in evidence.items() if name != "errors"} | (
        {"log_lines": lines} if lines else {}
    )


def _body(notice: Notice, audience: Audience) -> dict[str, Any]:
    incident = notice.incident
    common: dict[str, Any] = {
        "idempotency_key": notice.key,
        "event": notice.event,
        "incident_id": incident.incident_id,
        "subject": {"kind": incident.subject_kind, "id": incident.subject_id},
        "hour": incident.hour.isoformat(),
        "opened_at": incident.opened_at.isoformat(),
        "closed_at": incident.closed_at.isoformat() if incident.closed_at and notice.event == CLOSED else None,
        "open_minutes": _minutes(notice) if notice.event == CLOSED else None,
        "silenced_by": incident.silenced_by,
    }
    if page := _page_of(notice, audience):
        common["page"] = page
    if run := _failed_run_of(notice, audience):
        common["failed_run_page"] = run
    if incident.is_personal:
        return _as_text({**common, "is_personal": True})
    evidence = json.loads(incident.evidence)
    return _as_text(
        {
            **common,
            "is_personal": False,
            "rule": incident.rule,
            "severity": incident.severity,
            "reason": incident.reason,
            "recovery": incident.recovery if notice.event == CLOSED else None,
            "evidence": evidence if audience.has_error_texts else _without_error_texts(evidence),
        }
    )


def _as_text(value: Any) -> Any:
    """A body whose strings are text: half a pair of surrogates, which no encoding takes, is written as its escape."""
    if isinstance(value, dict):
        return {_as_text(name): _as_text(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_as_text(one) for one in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
