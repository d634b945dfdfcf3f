"""Signing in and out: the form, the cookie, and where one wanted to go.

What belongs here: answers to the two forms, and the rule of who may change anything. What does not: which cookie stands
for which token (`apps.serving.sign_ins`), and what every form must be (`apps.serving.forms`).
"""

import hmac
import re
import time
from collections.abc import Callable

from health_assets.apps.serving.answers import Answer
from health_assets.apps.serving.auth import Auth, Caller
from health_assets.apps.serving.forms import Form
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.rate_limit import RateLimit
from health_assets.apps.serving.service import RequestContext
from health_assets.apps.serving.sign_ins import LASTS, cookie_line

FLEET = "/"
MOST_TARGET = 2048
_OWN = re.compile(r"/(\?[!-~]*|ui/[!-~]*)?")
_ODD = re.compile(r"\\|//|/\.|%2f%2f|^/ui/sign-")
TRIES_PER_S = 0.2
TRIES_IN_RESERVE = 10
"""How often an address may try to sign in: so often at once, and then every five seconds."""
MAY_READ_NOTHING = "This token opens health documents, and no page."
UNKNOWN = "This token is not known, or has expired."
TOO_OFTEN = "Too many tries from this address. Wait a few seconds and try again."
SIGN_IN_AGAIN = "Nothing has been changed, since you are not signed in any more. Sign in, and repeat it."
OLD_FORM = "This form is not of this session any more. Go back, load the page again, and repeat it there."


def own_page(target: bytes | str) -> str:
    """The page that somebody wanted, if it is one of this server; else the fleet's page."""
    text = target.decode("latin-1") if isinstance(target, bytes) else target
    path = text.partition("?")[0].lower()
    return text if len(text) <= MOST_TARGET and _OWN.fullmatch(text) and not _ODD.search(path) else FLEET


def may_submit_forms(caller: Caller) -> bool:
    """Whether a caller may change anything on pages: signed in by a token that may."""
    return caller.csrf is not None and is_unrestricted_operator(caller)


def is_unrestricted_operator(caller: Caller) -> bool:
    """Whether a caller's token may change anything: an operator's that is limited to no team."""
    return caller.refusal("operate") is None and caller.view.teams is None


def has_valid_csrf(caller: Caller, form: Form) -> bool:
    """Whether a form repeats what its session gave it."""
    return caller.csrf is not None and hmac.compare_digest(caller.csrf.encode(), form.one("csrf").encode())


def sign_in_page(detail: str, target: bytes | str, *, status: int = 200, is_wrong: bool = False) -> Page:
    """The form to sign in.

    Args:
        detail: a sentence above it.
        target: where one wanted to go.
        status: the HTTP status.
        is_wrong: whether the sentence says what is wrong.
    """
    data = {"detail": detail, "next": own_page(target)}
    return Page(name="sign_in", title="Sign in", data=data, status=status, shown={"is_wrong": is_wrong})


def led_to(address: str, cookie: bytes | None = None) -> Answer:
    """The answer to a form that was taken: the browser goes on to a page."""
    headers = [(b"location", address.encode()), (b"cache-control", b"no-store"), (b"content-length", b"0")]
    return Answer(303, [*headers, *([] if cookie is None else [(b"set-cookie", cookie)])], b"")


class Signing:
    """Answers the forms to sign in and out.

    Args:
        auth: knows the tokens, and keeps the sessions.
        show: makes an answer of a page.
    """

    def __init__(self, auth: Auth, show: Callable[[RequestContext, Page], Answer]) -> None:
        self._auth = auth
        self._show = show
        self._tries = RateLimit(TRIES_PER_S, in_reserve=TRIES_IN_RESERVE)

    def form(self, asked: RequestContext, target: str) -> Answer:
        """The page with the form."""
        detail = "Give a token that may read."
        if not self._auth.has_tokens:
            detail = "No token is configured, so there is nothing to sign in with."
        return self._show(asked, sign_in_page(detail, target))

    def sign_in(self, asked: RequestContext, form: Form, *, is_tls: bool) -> Answer:
        """Take a token, and give a cookie for it; a wrong one gets the form again."""
        target = form.one("next")
        if wait_s := self._tries.wait_s(asked.address, time.monotonic()):
            answer = self._show(asked, sign_in_page(TOO_OFTEN, target, status=429, is_wrong=True))
            answer.headers.append((b"retry-after", b"%d" % wait_s))
            return answer
        caller, value = self._auth.sign_in(form.one("token").strip(), asked.headers)
        if value is None:
            status, sentence = (401, UNKNOWN) if caller.fault else (403, MAY_READ_NOTHING)
            return self._show(asked, sign_in_page(sentence, target, status=status, is_wrong=True))
        return led_to(own_page(target), cookie_line(value, is_tls=is_tls, lasts_s=int(LASTS.total_seconds())))

    def sign_out(self, asked: RequestContext, form: Form, *, is_tls: bool) -> Answer:
        """End the session; who has none is signed out already."""
        if asked.caller.csrf is not None and not has_valid_csrf(asked.caller, form):
            return self._show(asked, Page(name="sorry", title="Not done", data={"detail": OLD_FORM}, status=403))
        self._auth.sign_out(asked.headers)
        return led_to(own_page(form.one("next")), cookie_line("", is_tls=is_tls, lasts_s=0))
