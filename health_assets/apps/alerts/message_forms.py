"""A message in the form that a channel takes: Slack's blocks, an Adaptive Card, an event of a pager, a plain e-mail."""

from collections.abc import Sequence
from email.header import Header
from email.message import EmailMessage
from email.policy import Policy
from typing import Any
from urllib.parse import quote

from health_assets.apps.alerts.messages import GIVEN_UP, KEY_HEADER, RECOVERED, SIGNS, Message
from health_assets.apps.alerts.outbox import CLOSED
from health_assets.core.terminal import printable

SLACK_TEXT = 2900
"""A block of Slack's takes 3,000 characters."""
PAGERDUTY_SUMMARY, OPSGENIE_MESSAGE, OPSGENIE_DESCRIPTION = 1024, 130, 15_000
"""Most characters of what a pager takes."""
PRIORITIES = {"critical": "P1", "warning": "P3", "info": "P5"}
"""Opsgenie's priorities by severity."""
SOURCE = "Health Assets"


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


def teams_body(message: Message) -> dict[str, Any]:
    """An Adaptive Card. Its texts are runs, in which Teams makes no links, mentions or formats of names."""
    runs: list[dict[str, Any]] = [{"type": "TextRun", "text": message.title, "weight": "Bolder"}]
    runs += [{"type": "TextRun", "text": line} for line in message.lines]
    runs.append({"type": "TextRun", "text": message.key, "isSubtle": True, "size": "Small"})
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": [{"type": "RichTextBlock", "inlines": [run]} for run in runs],
        "actions": [{"type": "Action.OpenUrl", "title": name, "url": url} for name, url in _links(message).items()],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def pagerduty_body(message: Message, routing_key: str) -> dict[str, Any]:
    """An event of PagerDuty's Events API v2: an incident triggers an alert by its id, and its end resolves that.

    Args:
        message: about one incident.
        routing_key: the key of the integration.
    """
    event = {"routing_key": routing_key, "dedup_key": _incident_id(message)}
    if message.event == CLOSED:
        return {**event, "event_action": "resolve"}
    subject = message.body.get("subject", {})
    payload = {
        "summary": _cut(_without_sign(message), PAGERDUTY_SUMMARY),
        "source": subject.get("id") or SOURCE,
        "severity": _severity(message),
        "component": subject.get("id"),
        "group": subject.get("kind"),
        "class": message.body.get("rule"),
        "timestamp": message.body.get("opened_at"),
        "custom_details": {"lines": list(message.lines), "key": message.key},
    }
    return {
        **event,
        "event_action": "trigger",
        "client": SOURCE,
        "payload": {name: value for name, value in payload.items() if value is not None},
        "links": [{"href": url, "text": name} for name, url in _links(message).items()],
    }


def opsgenie_body(message: Message) -> tuple[str, dict[str, Any]]:
    """Path and body of a request to Opsgenie's Alert API: an incident creates an alert, and its end closes it."""
    alias = _incident_id(message)
    if message.event == CLOSED:
        note = _cut("\n".join([_without_sign(message), *message.lines]), OPSGENIE_DESCRIPTION)
        return f"/v2/alerts/{quote(alias, safe='')}/close?identifierType=alias", {"source": SOURCE, "note": note}
    subject, rule = message.body.get("subject", {}), message.body.get("rule")
    title = _without_sign(message)
    return "/v2/alerts", {
        "message": _cut(title, OPSGENIE_MESSAGE),
        "alias": alias,
        "description": _cut("\n".join([title, *message.lines]), OPSGENIE_DESCRIPTION),
        "priority": PRIORITIES[_severity(message)],
        "source": SOURCE,
        "entity": _cut(subject.get("id", SOURCE), 512),
        "tags": [rule] if rule else [],
        "details": {**_links(message), "key": message.key},
    }


def _incident_id(message: Message) -> str:
    return message.body.get("incident_id", message.key)


def _severity(message: Message) -> str:
    """The severity; that of a personal agent's incident is not told, and is a warning."""
    return message.body.get("severity", "info" if message.event == "test" else "warning")


def _links(message: Message) -> dict[str, str]:
    """The pages of a message by what they show."""
    about = message.body["notices"][0] if message.event == "group" else message.body
    pages = {"Agent": about.get("page"), "Failed run": about.get("failed_run_page")}
    return {name: url for name, url in pages.items() if url}


def _without_sign(message: Message) -> str:
    return message.title.lstrip("".join([*SIGNS.values(), RECOVERED, GIVEN_UP]) + " ")


def _cut(text: str, most: int = SLACK_TEXT) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


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
