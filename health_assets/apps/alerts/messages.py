"""Texts of notices: one sentence, the points lost, the events to look at; as JSON, Slack blocks, e-mail.

Every message carries the key of its event, by which a receiver can drop a duplicate: delivery is at least once. Of a
personal agent a message says that something changed and nothing else; the rest is in the table.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.message import EmailMessage
from email.policy import Policy
from typing import Any

from health_assets.apps.alerts.outbox import CLOSED, OPENED, Notice
from health_assets.core.terminal import printable
from health_assets.core.wording import counted

KEY_HEADER = "Idempotency-Key"
LINES_OF_DIGEST = 30
IDS_SHOWN = 5
CUT_TEXT = 200
"""Most characters of any text in a message that is cut."""
ENTRIES_OF_CUT = 5
CUT_NOTE = "this message is cut, since the channel refused the whole as too large; all of it is in the table alerts"
SLACK_TEXT = 2900
"""A block of Slack's takes 3,000 characters."""
RANKS = {"info": 0, "warning": 1, "critical": 2}
SIGNS = {"info": "🔵", "warning": "🟠", "critical": "🔴"}
RECOVERED, GIVEN_UP = "🟢", "⚪"
"""Signs of the end of an incident: not everything that ends has become good."""


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
        body = {name: _short(value) for name, value in self.body.items()}
        if body.get("evidence") is not None:
            body["evidence"] = None
        lines = (*(_short(line) for line in self.lines[-1:]), CUT_NOTE)
        return Message(
            key=self.key, event=self.event, title=_short(self.title), lines=lines, body={**body, "note": CUT_NOTE}
        )


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_short(one) for one in value[:ENTRIES_OF_CUT]]
    return f"{value[:CUT_TEXT]}…" if isinstance(value, str) and len(value) > CUT_TEXT else value


def message_of(notice: Notice) -> Message:
    """The message about one event."""
    lines = [] if notice.incident.is_personal else _explained(json.loads(notice.incident.evidence))
    opened_at = _time(notice.incident.opened_at)
    if notice.event == CLOSED:
        lines = [f"open from {opened_at} to {_when(notice)}: {_reason(notice)}"]
    else:
        lines.append(f"opened {opened_at}")
    lines += _after_a_silence(notice)
    return Message(
        key=notice.key,
        event=notice.event,
        title=f"{_sign(notice)} {_sentence(notice)}",
        lines=tuple(lines),
        body=_body(notice),
    )


def message_about(notices: Sequence[Notice]) -> Message:
    """One message about one event, about one event of several rules of a subject, or about many events."""
    if len(notices) == 1:
        return message_of(notices[0])
    is_group = len({occasion_of(notice) for notice in notices}) == 1
    return group_of(notices) if is_group else digest_of(notices)


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


def group_of(notices: Sequence[Notice]) -> Message:
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
            explained = (line for notice in ranked for line in _explained(json.loads(notice.incident.evidence)))
            lines += list(dict.fromkeys(explained))[:LINES_OF_DIGEST]
    lines += _after_a_silence(first)
    return Message(
        key=key,
        event="group",
        title=f"{_sign(first)} {_sentence(first)} (and {len(notices) - 1:,} more)",
        lines=tuple(lines),
        body={"idempotency_key": key, "event": "group", "notices": [_body(notice) for notice in ranked]},
    )


def _after_a_silence(notice: Notice) -> list[str]:
    incident = notice.incident
    if incident.silenced_by is None or incident.unsilenced_at is None or notice.told_at > incident.unsilenced_at:
        return []
    return [f"silenced until {_time(incident.unsilenced_at)}, by {printable(incident.silenced_by)}"]


def _key_of(notices: Sequence[Notice]) -> str:
    return hashlib.sha256("\n".join(sorted(notice.key for notice in notices)).encode()).hexdigest()[:20]


def digest_of(notices: Sequence[Notice]) -> Message:
    """One message about many events, so that a bad hour of a large fleet is not a storm."""
    key = _key_of(notices)
    opened = sum(notice.event == OPENED for notice in notices)
    title = f"{counted(opened, 'incident')} opened and {len(notices) - opened:,} closed"
    lines = [f"{_sign(notice)} {_sentence(notice)} ({_when(notice)})" for notice in notices[:LINES_OF_DIGEST]]
    if len(notices) > LINES_OF_DIGEST:
        lines.append(f"and {len(notices) - LINES_OF_DIGEST:,} more; all are in the table alerts")
    body = {"notices": [_body(notice) for notice in notices]}
    return Message(
        key=f"{key}-digest",
        event="digest",
        title=title,
        lines=tuple(lines),
        body={"idempotency_key": f"{key}-digest", "event": "digest", **body},
    )


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


def _sign(notice: Notice) -> str:
    if notice.event == CLOSED:
        return RECOVERED if notice.incident.is_recovered else GIVEN_UP
    return SIGNS["warning" if notice.incident.is_personal else notice.incident.severity]


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


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _explained(evidence: dict[str, Any]) -> list[str]:
    """A line for each component that cost points, or for a budget's failures, with the ids to look at."""
    lines = []
    for loss in evidence.get("explanation", ()):
        ids = ", ".join(printable(name, 80) for name in loss["evidence"][:IDS_SHOWN])
        told = printable(f"-{loss['lost']:.1f} {loss['component']}: {loss['sentence']}", 500)
        lines.append(told + (f" ({ids})" if ids else ""))
    if failures := evidence.get("latest_failures"):
        lines.append(f"latest failures: {', '.join(printable(name, 80) for name in failures[:IDS_SHOWN])}")
    return lines


def _body(notice: Notice) -> dict[str, Any]:
    incident = notice.incident
    common: dict[str, Any] = {
        "idempotency_key": notice.key,
        "event": notice.event,
        "incident_id": incident.incident_id,
        "subject": {"kind": incident.subject_kind, "id": incident.subject_id},
        "hour": incident.hour.isoformat(),
        "opened_at": incident.opened_at.isoformat(),
        "closed_at": incident.closed_at.isoformat() if incident.closed_at and notice.event == CLOSED else None,
        "silenced_by": incident.silenced_by,
    }
    if incident.is_personal:
        return _as_text({**common, "is_personal": True})
    return _as_text(
        {
            **common,
            "is_personal": False,
            "rule": incident.rule,
            "severity": incident.severity,
            "reason": incident.reason,
            "recovery": incident.recovery if notice.event == CLOSED else None,
            "evidence": json.loads(incident.evidence),
        }
    )


def _as_text(value: Any) -> Any:
    """A body whose strings are text: half a pair of surrogates, which no encoding takes, is written as its escape."""
    if isinstance(value, dict):
        return {_as_text(name): _as_text(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_as_text(one) for one in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


# -- forms -------------------------------------------------------------------------------------------------------------


def slack_body(message: Message) -> dict[str, Any]:
    """Text for notifications, and blocks for the eye.

    A name is verbatim: Slack makes neither a link nor a mention of what looks like one.
    """
    sections = [f"*{_escaped(message.title)}*"]
    if message.lines:
        sections.append("\n".join(_escaped(line) for line in message.lines))
    blocks: list[dict[str, Any]] = [
        {"type": "section", "text": {"type": "mrkdwn", "text": _cut(text), "verbatim": True}} for text in sections
    ]
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": message.key}]})
    return {"text": _cut(_escaped(message.title)), "blocks": blocks}


def _cut(text: str) -> str:
    return text if len(text) <= SLACK_TEXT else text[: SLACK_TEXT - 1] + "…"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class _LiteralSubject(str):
    """A subject that says its text and nothing else.

    A string that is given to `EmailMessage` is read as a header of a mail that came in: what looks like an encoded word
    (RFC 2047) is decoded, and what was in it, line ends too, is then written as it stands. A header with a `name` is
    left as it is, and writes itself.
    """

    name = "Subject"

    def fold(self, *, policy: Policy) -> str:
        """The header's lines; what is more than plain words is one or more encoded words, so that it is read once."""
        is_plain = self.isascii() and self.isprintable() and "=?" not in self
        header = Header(str(self), "us-ascii" if is_plain else "utf-8", header_name=self.name)
        return f"{self.name}: {header.encode(linesep=policy.linesep)}{policy.linesep}"


def mail_of(message: Message, sender: str, to: Sequence[str]) -> EmailMessage:
    """A plain e-mail, whose Message-ID follows from the key."""
    mail = EmailMessage()
    mail["Subject"] = _LiteralSubject(printable(message.title, 200))
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Message-ID"] = f"<{message.key}@{sender.partition('@')[2]}>"
    mail[KEY_HEADER] = message.key
    mail.set_content("\n".join([message.title, "", *message.lines, "", f"{message.event} {message.key}", ""]))
    return mail
