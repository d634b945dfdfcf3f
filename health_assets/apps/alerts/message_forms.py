"""A message as Slack's blocks and as a plain e-mail."""

from collections.abc import Sequence
from email.header import Header
from email.message import EmailMessage
from email.policy import Policy
from typing import Any

from health_assets.apps.alerts.messages import KEY_HEADER, Message
from health_assets.core.terminal import printable

SLACK_TEXT = 2900
"""A block of Slack's takes 3,000 characters."""


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
