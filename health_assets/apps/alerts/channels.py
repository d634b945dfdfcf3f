"""Sending one message over one channel. What comes back is nothing, or a `NotDelivered` without any secret in it.

A library of channels such as apprise is not used, since it would lose what tests promise: it follows redirects with the
message, reads an answer to its end, names hosts in its log, and says of a failure only that there was one: neither
whether to try again and when, nor whether a smaller message or another recipient would do. Nor does it resolve what it
opened at a pager.
"""

import asyncio
import json
import logging
import os
import smtplib
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from email.errors import MessageError
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

import httpx
import tenacity

from health_assets.apps.alerts.config import Channel, Chat, Email, Opsgenie, Pager, PagerDuty, Slack, Teams, Webhook
from health_assets.apps.alerts.message_forms import mail_of, opsgenie_body, pagerduty_body, slack_body, teams_body
from health_assets.apps.alerts.messages import KEY_HEADER, Message
from health_assets.apps.alerts.smtp import mail_session
from health_assets.consumer.fetching import run_async
from health_assets.core.errors import HealthAssetsError
from health_assets.core.terminal import printable

ATTEMPTS = 3
"""How often a message is tried within one tick."""
RETRY_PAUSE_S = 1.0
MOST_ERROR = 300
LATE = "it did not answer in time"
LONGEST_REST_S = 5
"""A channel that asks to be left alone for longer is not tried again within the tick."""
AGAIN = frozenset({408, 409, 425, 429})
"""Answers below 500 that may be others later."""
CONTENT_TOO_LARGE = 413
MAIL_TOO_LARGE = 552
TOO_LARGE_STATUSES = (b"5.2.3", b"5.3.4")
"""Enhanced codes of mail servers for a message that is too large for the mailbox or for the system."""
MAILBOX_FULL_STATUS = b"5.2.2"
"""The other thing that 552 may say, which a smaller message does not help."""


class NotDelivered(Exception):
    """The channel did not take the message; it may later.

    Args:
        sentence: why.
        rest_s: for how long it asks to be left alone; 0 where it does not.
    """

    def __init__(self, sentence: str, rest_s: int = 0) -> None:
        super().__init__(sentence)
        self.rest_s = rest_s


class Refused(NotDelivered):
    """The channel will not take this message, whatever it does with others."""


class TooLarge(Refused):
    """The channel will not take a message of this size; it may take a smaller one."""


class TakenInPart(NotDelivered):
    """Some recipients have the message and others may get it later: to try at once would send it to all again."""


def send(channel: Channel, message: Message, *, pause_s: float = RETRY_PAUSE_S, until: float = float("inf")) -> None:
    """Send a message, trying again for a moment where that may help.

    Args:
        channel: where to.
        message: what.
        pause_s: about how long to wait before trying again.
        until: when all of it must be over, by the monotonic clock.

    Raises:
        TooLarge: the channel does not want a message of this size.
        Refused: the channel does not want this message, or it cannot be written.
        TakenInPart: some recipients have it, and others may get it later.
        NotDelivered: the channel cannot be reached or does not work, or its secrets are not set.
    """
    try:
        secrets = channel.secrets
    except HealthAssetsError as error:
        raise NotDelivered(str(error)) from None
    written = _written(channel, message, secrets)
    pause = tenacity.wait_random_exponential(multiplier=pause_s, max=4 * pause_s)
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(
            lambda error: not isinstance(error, Refused | TakenInPart) and _rest_s(error) <= LONGEST_REST_S
        ),
        wait=lambda state: max(pause(state), _rest_s(state.outcome.exception()) if state.outcome else 0),
        stop=lambda state: state.attempt_number >= ATTEMPTS or time.monotonic() + state.upcoming_sleep >= until,
        reraise=True,
    )
    kind, sentence, rest_s = NotDelivered, None, 0
    try:
        retrying(_try, channel, written, secrets, until)
    except NotDelivered as error:
        kind, sentence, rest_s = type(error), str(error), error.rest_s
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError):
        sentence = "its address is not valid"  # which the error repeats in pieces
    except httpx.HTTPError as error:
        sentence = f"{type(error).__name__}: {_system_error(error) or error}"
    except (smtplib.SMTPException, OSError) as error:
        sentence = f"{type(error).__name__}: {error}"
    if sentence is not None:  # outside of the handlers: what the libraries raise may hold addresses and passwords
        raise kind(_without(secrets, channel, sentence), rest_s)


def _try(channel: Channel, written: "Written", secrets: dict[str, str], until: float) -> None:
    """Send a message once; one deadline is for all of it, from the connection to the end of the answer's head."""
    seconds = min(channel.timeout_s, until - time.monotonic())
    if seconds <= 0:
        raise NotDelivered(LATE)
    sender: Callable[[Channel, Written, dict[str, str], float], None] = _SENDERS[type(channel)]
    try:
        sender(channel, written, secrets, seconds)
    except TimeoutError:
        is_own_limit = seconds == channel.timeout_s
        raise NotDelivered(f"it did not answer within {channel.timeout_s:g} s" if is_own_limit else LATE) from None


def _system_error(error: BaseException) -> str | None:
    """The operating system's words behind an error, without the addresses that libraries add to them."""
    found, cause = None, error.__cause__ or error.__context__
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None and not isinstance(cause, ssl.SSLError):
            found = os.strerror(cause.errno) if cause.errno > 0 else found
        cause = cause.__cause__ or cause.__context__
    return found


def _rest_s(error: BaseException | None) -> int:
    return error.rest_s if isinstance(error, NotDelivered) else 0


def _without(secrets: dict[str, str], channel: Channel, sentence: str) -> str:
    """The sentence without secrets, on one line."""
    for name, secret in secrets.items():
        sentence = sentence.replace(secret, f"${name}")
    if isinstance(channel, Webhook) and channel.url:
        sentence = sentence.replace(channel.url, "its address")
    return printable(" ".join(sentence.split()), MOST_ERROR)


# -- writing -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Written:
    """A message as it goes over the wire.

    Args:
        key: the message's.
        content: JSON, or the mail with its head.
        path: what follows the address of a service.
        mail: the mail.
    """

    key: str
    content: bytes
    path: str = ""
    mail: EmailMessage | None = None


def _written(channel: Channel, message: Message, secrets: dict[str, str]) -> Written:
    """The message in the channel's form. Where that fails, the channel is well, and takes others."""
    try:
        if isinstance(channel, Email):
            mail = mail_of(message, channel.sender, channel.to)
            written = Written(key=message.key, content=mail.as_bytes(policy=SMTP.clone(utf8=True)), mail=mail)
        else:
            path, body = _json_of(channel, message, secrets)
            content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
            written = Written(key=message.key, content=content, path=path)
    except (ValueError, TypeError, RecursionError, MessageError) as error:
        raise Refused(printable(" ".join(f"it cannot be written: {error}".split()), MOST_ERROR)) from None
    if channel.max_bytes is not None and len(written.content) > channel.max_bytes:
        raise TooLarge(f"it has {len(written.content):,} bytes, and the channel's max_bytes is {channel.max_bytes:,}")
    return written


def _json_of(channel: Channel, message: Message, secrets: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """What is posted, and to which path of the service."""
    match channel:
        case Slack():
            return "", slack_body(message)
        case Teams():
            return "", teams_body(message)
        case PagerDuty():
            return "/v2/enqueue", pagerduty_body(message, secrets[channel.key_env])
        case Opsgenie():
            return opsgenie_body(message)
    return "", message.body


# -- sending -----------------------------------------------------------------------------------------------------------


def _post_webhook(channel: Channel, written: Written, secrets: dict[str, str], seconds: float) -> None:
    assert isinstance(channel, Webhook)
    url = channel.url or secrets[channel.url_env or ""]
    headers = {"Authorization": f"Bearer {secrets[channel.token_env]}"} if channel.token_env else {}
    _post(url, written, headers, seconds)


def _post_chat(channel: Channel, written: Written, secrets: dict[str, str], seconds: float) -> None:
    assert isinstance(channel, Chat)
    _post(secrets[channel.url_env], written, {}, seconds)


def _post_pager(channel: Channel, written: Written, secrets: dict[str, str], seconds: float) -> None:
    assert isinstance(channel, Pager)
    headers = {"Authorization": f"GenieKey {secrets[channel.key_env]}"} if isinstance(channel, Opsgenie) else {}
    _post(channel.url.rstrip("/") + written.path, written, headers, seconds)


_is_logged: ContextVar[Any] = ContextVar("is_logged")
# Where nothing is set, `get` gives back the record, which is then logged. A function of ours would keep this module
# alive beyond the interpreter's end, and with it what the database's driver then complains about on standard error.
logging.getLogger("httpx").addFilter(_is_logged.get)


@contextmanager
def _discreetly() -> Iterator[None]:
    """Keep the requests made meanwhile out of the client's own log, which names whole addresses."""
    token = _is_logged.set(False)
    try:
        yield
    finally:
        _is_logged.reset(token)


async def _answer(url: str, written: Written, headers: dict[str, str], seconds: float) -> tuple[int, str]:
    """Status of the answer, and for how long it asks to be left alone; its body is not read, and may never end."""
    # the client's own limits are of each read, which a receiver that sends a byte a second never reaches
    async with (
        asyncio.timeout(seconds),
        httpx.AsyncClient(timeout=None, follow_redirects=False) as client,
        client.stream("POST", url, content=written.content, headers=headers) as answer,
    ):
        return answer.status_code, answer.headers.get("retry-after", "").strip()[:9]


def _post(url: str, written: Written, headers: dict[str, str], seconds: float) -> None:
    headers = {**headers, KEY_HEADER: written.key, "Content-Type": "application/json"}
    with _discreetly():
        status, rest = run_async(_answer(url, written, headers, seconds))
    if 200 <= status < 300:
        return
    sentence = f"it answered {status}"
    if status == CONTENT_TOO_LARGE:
        raise TooLarge(sentence)
    if status < 500 and status not in AGAIN:
        raise Refused(sentence)
    raise NotDelivered(sentence, int(rest) if rest.isascii() and rest.isdigit() else 0)


def _mail(channel: Channel, written: Written, secrets: dict[str, str], seconds: float) -> None:
    assert isinstance(channel, Email)
    assert written.mail
    with mail_session(channel.host, channel.port, channel.security, seconds) as server:
        if channel.username and channel.password_env:
            server.login(channel.username, secrets[channel.password_env])
        answers: list[tuple[int, bytes | str]]
        server.ehlo_or_helo_if_needed()
        announced = server.esmtp_features.get("size", "")
        if announced.isdecimal() and 0 < int(announced[:18]) < len(written.content):
            raise TooLarge(f"it has {len(written.content):,} bytes, and the server takes {int(announced[:18]):,}")
        try:
            not_taken = server.send_message(written.mail)
        except smtplib.SMTPRecipientsRefused as error:
            answers = list(error.recipients.values())
            sentence = f"it refused every recipient ({', '.join(sorted({str(code) for code, _ in answers}))})"
        except smtplib.SMTPResponseException as error:
            answers, sentence = [(error.smtp_code, error.smtp_error)], f"it answered {error.smtp_code}"
        else:
            if later := sorted(address for address, (code, _) in not_taken.items() if code < 500):
                raise TakenInPart(f"it does not take it for {', '.join(later)} yet")
            return
    if all(_is_about_size(code, text) for code, text in answers):
        raise TooLarge(sentence)
    raise Refused(sentence) if min(code for code, _ in answers) >= 500 else NotDelivered(sentence)


def _is_about_size(code: int, text: bytes | str) -> bool:
    """Whether a mail server's refusal says that the message is too large."""
    said = text.encode("ascii", "replace") if isinstance(text, str) else text
    is_named = any(said.startswith(status) for status in TOO_LARGE_STATUSES)
    return code >= 500 and (is_named or (code == MAIL_TOO_LARGE and not said.startswith(MAILBOX_FULL_STATUS)))


_SENDERS: dict[type[Channel], Callable[[Channel, Written, dict[str, str], float], None]] = {
    Webhook: _post_webhook,
    Slack: _post_chat,
    Teams: _post_chat,
    PagerDuty: _post_pager,
    Opsgenie: _post_pager,
    Email: _mail,
}
