"""Sending one message over one channel. What comes back is nothing, or a `NotDelivered` without any secret in it."""

import logging
import smtplib
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpx
import tenacity

from health_assets.alerts.config import Channel, Email, Slack, Webhook
from health_assets.alerts.messages import KEY_HEADER, Message, mail_of, slack_body
from health_assets.errors import HealthAssetsError

ATTEMPTS = 3
"""How often a message is tried within one tick."""
RETRY_PAUSE_S = 1.0
MOST_ERROR = 300
LONGEST_REST_S = 5
"""A channel that asks to be left alone for longer is not tried again within the tick."""
AGAIN = frozenset({408, 409, 425, 429})
"""Answers below 500 that may be others later."""


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


class TakenInPart(NotDelivered):
    """Some recipients have the message and others may get it later: to try at once would send it to all again."""


def send(channel: Channel, message: Message, *, pause_s: float = RETRY_PAUSE_S) -> None:
    """Send a message, trying again for a moment where that may help.

    Args:
        channel: where to.
        message: what.
        pause_s: about how long to wait before trying again.

    Raises:
        Refused: the channel does not want this message.
        TakenInPart: some recipients have it, and others may get it later.
        NotDelivered: the channel cannot be reached or does not work, or its secrets are not set.
    """
    try:
        secrets = channel.secrets
    except HealthAssetsError as error:
        raise NotDelivered(str(error)) from None
    pause = tenacity.wait_random_exponential(multiplier=pause_s, max=4 * pause_s)
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(
            lambda error: not isinstance(error, Refused | TakenInPart) and _rest_s(error) <= LONGEST_REST_S
        ),
        wait=lambda state: max(pause(state), _rest_s(state.outcome.exception()) if state.outcome else 0),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        reraise=True,
    )
    sender: Callable[[Channel, Message, dict[str, str]], None] = _SENDERS[type(channel)]
    kind, sentence, rest_s = NotDelivered, None, 0
    try:
        retrying(sender, channel, message, secrets)
    except NotDelivered as error:
        kind, sentence, rest_s = type(error), str(error), error.rest_s
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError):
        sentence = "its address is not valid"  # which the error repeats in pieces
    except (httpx.HTTPError, smtplib.SMTPException, OSError) as error:
        sentence = f"{type(error).__name__}: {error}"
    if sentence is not None:  # outside of the handlers: what the libraries raise may hold addresses and passwords
        raise kind(_without(secrets, channel, sentence), rest_s)


def _rest_s(error: BaseException | None) -> int:
    return error.rest_s if isinstance(error, NotDelivered) else 0


def _without(secrets: dict[str, str], channel: Channel, sentence: str) -> str:
    """The sentence without secrets, on one line."""
    for name, secret in secrets.items():
        sentence = sentence.replace(secret, f"${name}")
    if isinstance(channel, Webhook) and channel.url:
        sentence = sentence.replace(channel.url, "its address")
    return " ".join(sentence.split())[:MOST_ERROR]


def _post_webhook(channel: Channel, message: Message, secrets: dict[str, str]) -> None:
    assert isinstance(channel, Webhook)
    url = channel.url or secrets[channel.url_env or ""]
    headers = {"Authorization": f"Bearer {secrets[channel.token_env]}"} if channel.token_env else {}
    _post(url, message.body, {**headers, KEY_HEADER: message.key}, channel.timeout_s)


def _post_slack(channel: Channel, message: Message, secrets: dict[str, str]) -> None:
    assert isinstance(channel, Slack)
    _post(secrets[channel.url_env], slack_body(message), {KEY_HEADER: message.key}, channel.timeout_s)


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


def _post(url: str, body: dict, headers: dict[str, str], timeout_s: float) -> None:
    # the answer's body is not read: nobody needs it, and it may never end
    with (
        _discreetly(),
        httpx.Client(timeout=timeout_s, follow_redirects=False) as client,
        client.stream("POST", url, json=body, headers=headers) as answer,
    ):
        status, rest = answer.status_code, answer.headers.get("retry-after", "").strip()[:9]
    if 200 <= status < 300:
        return
    sentence = f"it answered {status}"
    if status < 500 and status not in AGAIN:
        raise Refused(sentence)
    raise NotDelivered(sentence, int(rest) if rest.isascii() and rest.isdigit() else 0)


def _mail(channel: Channel, message: Message, secrets: dict[str, str]) -> None:
    assert isinstance(channel, Email)
    with _server(channel) as server:
        if channel.security == "starttls":
            server.starttls(context=ssl.create_default_context())
        if channel.username and channel.password_env:
            server.login(channel.username, secrets[channel.password_env])
        try:
            not_taken = server.send_message(mail_of(message, channel.sender, channel.to))
        except smtplib.SMTPRecipientsRefused as error:
            codes = {code for code, _ in error.recipients.values()}
            sentence = f"it refused every recipient ({', '.join(map(str, sorted(codes)))})"
        except smtplib.SMTPResponseException as error:
            codes, sentence = {error.smtp_code}, f"it answered {error.smtp_code}"
        else:
            if later := sorted(address for address, (code, _) in not_taken.items() if code < 500):
                raise TakenInPart(f"it does not take it for {', '.join(later)} yet")
            return
    raise Refused(sentence) if min(codes) >= 500 else NotDelivered(sentence)


def _server(channel: Email) -> smtplib.SMTP:
    if channel.security == "tls":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(channel.host, channel.port, timeout=channel.timeout_s, context=context)
    return smtplib.SMTP(channel.host, channel.port, timeout=channel.timeout_s)


_SENDERS: dict[type[Channel], Callable[[Channel, Message, dict[str, str]], None]] = {
    Webhook: _post_webhook,
    Slack: _post_slack,
    Email: _mail,
}
