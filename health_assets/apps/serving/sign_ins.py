"""Browsers that are signed in: which cookie stands for which token, for how long.

What belongs here: the sessions, in the server's memory alone, and the cookie's spelling. What does not: what a token
may do (`auth`), and the pages that sign in and out (`apps.serving.pages.signing`).

A session knows the digest of a token and nothing else of it: what its caller may do is asked of the tokens with each
request, so it ends when the token is withdrawn or expires.
"""

import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from health_assets.apps.serving.answers import Headers

LASTS = timedelta(hours=12)
MOST_SIGN_INS = 4000
"""Sessions that are kept; of more, the oldest are forgotten."""
COOKIE = "health_assets"
SECURE_COOKIE = f"__Host-{COOKIE}"
"""Name of the cookie under TLS: no browser takes it from another host, nor without TLS."""
RANDOM_BYTES = 32


@dataclass(frozen=True, slots=True)
class SignIn:
    """A session.

    Args:
        digest: SHA-256 of the token.
        csrf: repeated by every form of this session.
        until: when it ends.
    """

    digest: bytes
    csrf: str
    until: datetime


class SignIns:
    """The sessions of a server; to be used by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, SignIn] = OrderedDict()

    def begin(self, digest: bytes, now: datetime) -> str:
        """Begin a session of a token; returns the cookie's value."""
        value = secrets.token_urlsafe(RANDOM_BYTES)
        with self._lock:
            self._kept[_key(value)] = SignIn(digest, secrets.token_urlsafe(RANDOM_BYTES), now + LASTS)
            while len(self._kept) > MOST_SIGN_INS:
                self._kept.popitem(last=False)
        return value

    def find(self, headers: Headers, now: datetime) -> SignIn | None:
        """The session that these headers name; None where they name none, or one that is over."""
        for value in cookies(headers):
            with self._lock:
                found = self._kept.get(_key(value))
            if found is not None and now < found.until:
                return found
        return None

    def end(self, headers: Headers) -> None:
        """End the sessions that these headers name."""
        with self._lock:
            for value in cookies(headers):
                self._kept.pop(_key(value), None)


def cookies(headers: Headers) -> Iterator[str]:
    """The values of our cookies, that of the name under TLS first."""
    given = [
        part.strip().partition("=")
        for name, line in headers
        if name == b"cookie"
        for part in line.decode("latin-1").split(";")
    ]
    for wanted in (SECURE_COOKIE, COOKIE):
        yield from (value for name, _, value in given if name == wanted)


def cookie_line(value: str, *, is_tls: bool, lasts_s: int) -> bytes:
    """The cookie as an answer sets it.

    Args:
        value: its value.
        is_tls: whether the browser speaks TLS.
        lasts_s: how long the browser keeps it; 0 takes it away.
    """
    name, secure = (SECURE_COOKIE, "; Secure") if is_tls else (COOKIE, "")
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={lasts_s}{secure}".encode()


def _key(value: str) -> bytes:
    # the look-up's time may tell about the hash of a guess, from which no value follows
    return hashlib.sha256(value.encode()).digest()
